-- +goose Up
-- What a transfer costs its sender beside the amount, and the quote that it was opened with. Both are fixed at
-- its creation.

ALTER TABLE transfers
    ADD COLUMN fee            zero_or_more NOT NULL DEFAULT 0,
    ADD COLUMN fee_profile_id uuid         REFERENCES fee_profiles (id),
    ADD COLUMN fee_hold_id    uuid         REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    ADD COLUMN fx_quote_id    uuid         REFERENCES fx_quotes (id),
    ADD COLUMN fiat_currency  asset        CHECK (fiat_currency = 'KES'),
    ADD COLUMN fiat_amount    positive_amount,
    ADD COLUMN fiat_rate      numeric      CHECK (fiat_rate > 0 AND fiat_rate < 1e15),
    ADD CONSTRAINT transfers_fee_scale CHECK (scale(fee) <= asset_scale(asset)),
    ADD CONSTRAINT transfers_fee_by CHECK (fee = 0 OR fee_profile_id IS NOT NULL),
    ADD CONSTRAINT transfers_fee_held CHECK ((fee > 0) = (fee_hold_id IS NOT NULL)),
    ADD CONSTRAINT transfers_fee_hold_key UNIQUE (fee_hold_id),
    ADD CONSTRAINT transfers_fx_quote_key UNIQUE (fx_quote_id),
    ADD CONSTRAINT transfers_quoted CHECK (num_nulls(fx_quote_id, fiat_currency, fiat_amount, fiat_rate) IN (0, 4));

CREATE TRIGGER transfers_price_same BEFORE UPDATE ON transfers FOR EACH ROW
    WHEN ((OLD.fee, OLD.fee_profile_id, OLD.fee_hold_id, OLD.fx_quote_id, OLD.fiat_currency, OLD.fiat_amount, OLD.fiat_rate)
          IS DISTINCT FROM
          (NEW.fee, NEW.fee_profile_id, NEW.fee_hold_id, NEW.fx_quote_id, NEW.fiat_currency, NEW.fiat_amount, NEW.fiat_rate))
    EXECUTE FUNCTION refuse_change();

-- A transfer's quote is its asker's own, for exactly this, used by nothing else, and says what the transfer says.
-- +goose StatementBegin
CREATE FUNCTION check_transfer_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.fx_quote_id IS NOT NULL AND NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.fx_quote_id AND q.purpose = 'transfer'
            AND q.status = 'consumed' AND q.object_type = 'transfer' AND q.object_id = NEW.id AND q.owner_id = NEW.requested_by
            AND q.asset = NEW.asset AND q.amount = NEW.amount AND q.fee = NEW.fee AND q.profile_id IS NOT DISTINCT FROM NEW.fee_profile_id
            AND q.fiat_currency = NEW.fiat_currency AND q.fiat_amount = NEW.fiat_amount AND q.rate = NEW.fiat_rate) THEN
        RAISE EXCEPTION 'transfer % is not what its quote says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.fee_profile_id IS NOT NULL AND NOT EXISTS (SELECT FROM fee_profiles p WHERE p.id = NEW.fee_profile_id AND p.scope = 'transfer'
            AND p.asset = NEW.asset) THEN
        RAISE EXCEPTION 'transfer % is charged by a profile of something else', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER transfers_price BEFORE INSERT ON transfers FOR EACH ROW WHEN (NEW.fx_quote_id IS NOT NULL OR NEW.fee_profile_id IS NOT NULL)
    EXECUTE FUNCTION check_transfer_price();

-- At the end of its transaction, what consumed a quote is there and names it: no quote is used up for nothing.
-- +goose StatementBegin
CREATE FUNCTION check_quote_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.fx_quote_id = NEW.id) THEN
        RAISE EXCEPTION 'quote % is consumed by nothing', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER fx_quotes_use AFTER UPDATE ON fx_quotes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'consumed' AND NEW.object_type = 'transfer') EXECUTE FUNCTION check_quote_use();

-- At the end of its transaction, the fee of a completed transfer is taken and that of any other end is free.
-- +goose StatementBegin
CREATE FUNCTION check_transfer_fee() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held text := (SELECT status FROM holds WHERE id = NEW.fee_hold_id);
BEGIN
    IF held IS DISTINCT FROM (CASE NEW.status WHEN 'completed' THEN 'captured' ELSE 'released' END) THEN
        RAISE EXCEPTION 'transfer % is % and the hold of its fee is %', NEW.id, NEW.status, held USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'completed' AND NOT EXISTS (SELECT FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id JOIN ledger_accounts a ON a.id = l.account_id
            WHERE e.key = 'transfer:' || NEW.id || ':fee' AND a.kind = 'fees' AND a.asset = NEW.asset AND l.amount = -NEW.fee) THEN
        RAISE EXCEPTION 'the fee of transfer % is not booked', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER transfers_fee AFTER UPDATE ON transfers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.fee > 0 AND NEW.status IN ('completed', 'cancelled', 'rejected', 'failed')) EXECUTE FUNCTION check_transfer_fee();

-- +goose Up
-- A transaction that this database has lost and the watch has found on the final chain becomes its payment's, on
-- networks with sequence numbers too. Its number stays unknown: the lane of the wallet is opened again by itself. And
-- whoever was paid by it: whether the recipient was cleared may be lost as well, and no word takes the money back.

ALTER TABLE chain_attempts
    ADD COLUMN adopted boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT chain_attempts_lane,
    ADD CONSTRAINT chain_attempts_lane CHECK (CASE WHEN adopted THEN lane IS NULL ELSE (lane IS NOT NULL) = (network = 'ethereum') END);
UPDATE chain_attempts SET adopted = true WHERE raw = convert_to('found on the chain: ' || tx_id, 'UTF8');
CREATE TRIGGER chain_attempts_adopted_same BEFORE UPDATE ON chain_attempts FOR EACH ROW WHEN (OLD.adopted <> NEW.adopted) EXECUTE FUNCTION refuse_change();

-- What was found is exactly what the payment was to make, and nobody here had known it.
-- +goose StatementBegin
CREATE FUNCTION check_adopted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_payments p JOIN deposit_quarantine q ON q.network = p.network AND q.tx_id = NEW.tx_id AND q.reason = 'not_our_send'
        JOIN chain_deposits d ON d.network = q.network AND d.tx_id = q.tx_id AND d.event_index = q.event_index AND d.status = 'final'
        WHERE p.id = NEW.payment_id AND p.network = NEW.network
            AND (d.from_wallet_id, d.to_address, d.asset, d.amount) = (p.wallet_id, p.to_address, p.asset, p.amount);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % was not found on the final chain as payment %', NEW.tx_id, NEW.payment_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_adopted BEFORE INSERT ON chain_attempts FOR EACH ROW WHEN (NEW.adopted) EXECUTE FUNCTION check_adopted();

-- A payment of a cold wallet is found like any other, also when what was handed out for it is lost. While something
-- is out that could pay beside it, or may be it, that has to be brought back.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_cold_signature() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.adopted THEN
        PERFORM FROM cold_drafts WHERE payment_id = NEW.payment_id AND status IN ('open', 'closing');
        IF FOUND THEN
            RAISE EXCEPTION 'a transaction of payment % was handed out and may come back signed', NEW.payment_id USING ERRCODE = 'KV001';
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM chain_payments p JOIN wallets w ON w.id = p.wallet_id WHERE p.id = NEW.payment_id AND w.type = 'cold'
        AND NOT EXISTS (SELECT FROM cold_drafts d WHERE d.payment_id = p.id AND d.attempt_id = NEW.id AND d.tx_id IN ('', NEW.tx_id)
            AND (d.lane, d.nonce) IS NOT DISTINCT FROM (NEW.lane, NEW.nonce));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % is of a cold wallet, whose key signs nothing here', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM chain_payments p JOIN wallets w ON w.id = p.fee_wallet_id WHERE p.id = NEW.payment_id AND w.type = 'cold';
    IF FOUND THEN
        RAISE EXCEPTION 'the fee of payment % is of a cold wallet, whose key signs nothing here', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM chain_attempts WHERE payment_id = NEW.id AND adopted AND status = 'included') THEN
        RETURN NEW; -- it is paid already
    END IF;
    IF NOT recipient_cleared(NEW) THEN
        RAISE EXCEPTION 'the recipient of payment % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose Up
-- Coins that a network took as a fee before the ledger knew of them, and the deposits that turn out to have
-- brought them. Without this both would raise what the wallet holds.

-- What a fee took beyond what the ledger had in the wallet. netted is how much of it deposits have explained.
CREATE TABLE gas_found (
    attempt_id uuid            PRIMARY KEY REFERENCES chain_attempts (id),
    wallet_id  uuid            NOT NULL REFERENCES wallets (id),
    asset      asset           NOT NULL,
    block      bigint          NOT NULL CHECK (block >= 0), -- that the transaction is final in
    amount     positive_amount NOT NULL,
    netted     zero_or_more    NOT NULL DEFAULT 0,
    found_at   timestamptz     NOT NULL,
    CONSTRAINT gas_found_netted CHECK (netted <= amount)
);
CREATE INDEX gas_found_open_idx ON gas_found (wallet_id, block) WHERE netted < amount;

-- Which deposit explains how much of which fee.
CREATE TABLE gas_nettings (
    deposit_id uuid            NOT NULL REFERENCES chain_deposits (id),
    attempt_id uuid            NOT NULL REFERENCES gas_found (attempt_id),
    amount     positive_amount NOT NULL,
    netted_at  timestamptz     NOT NULL,
    PRIMARY KEY (deposit_id, attempt_id)
);
CREATE INDEX gas_nettings_attempt_idx ON gas_nettings (attempt_id);

-- A deposit explains a fee of its own wallet and coin, out of a block that does not come before its own, and
-- never more than it brought. That a fee is not explained twice is the check on gas_found.
-- +goose StatementBegin
CREATE FUNCTION net_gas() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    d record;
BEGIN
    SELECT * INTO d FROM chain_deposits WHERE id = NEW.deposit_id FOR NO KEY UPDATE;
    IF d.status <> 'final' OR d.kind NOT IN ('credit', 'house', 'awaited', 'unmatched')
        OR d.amount < NEW.amount + coalesce((SELECT sum(amount) FROM gas_nettings WHERE deposit_id = NEW.deposit_id), 0) THEN
        RAISE EXCEPTION 'deposit % brought no % that are left', NEW.deposit_id, NEW.amount USING ERRCODE = 'KV002';
    END IF;
    UPDATE gas_found SET netted = netted + NEW.amount
        WHERE attempt_id = NEW.attempt_id AND wallet_id = d.wallet_id AND asset = d.asset AND block >= d.block;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'deposit % can''t have paid the fee of transaction %', NEW.deposit_id, NEW.attempt_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER gas_nettings_applied BEFORE INSERT ON gas_nettings FOR EACH ROW EXECUTE FUNCTION net_gas();
CREATE TRIGGER gas_nettings_same BEFORE UPDATE OR DELETE ON gas_nettings FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER gas_nettings_kept BEFORE TRUNCATE ON gas_nettings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER gas_found_born BEFORE INSERT ON gas_found FOR EACH ROW WHEN (NEW.netted <> 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER gas_found_same BEFORE UPDATE ON gas_found FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 OR (OLD.attempt_id, OLD.wallet_id, OLD.asset, OLD.block, OLD.amount, OLD.found_at)
          IS DISTINCT FROM (NEW.attempt_id, NEW.wallet_id, NEW.asset, NEW.block, NEW.amount, NEW.found_at) OR NEW.netted < OLD.netted)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER gas_found_kept BEFORE DELETE ON gas_found FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER gas_found_kept_all BEFORE TRUNCATE ON gas_found FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What was found before there was this table. Which deposits explained it is not known any more; those to come
-- may still.
INSERT INTO gas_found (attempt_id, wallet_id, asset, block, amount, found_at)
SELECT t.id, a.owner_id, a.asset, t.block, l.amount, e.at
FROM chain_attempts t JOIN ledger_entries e ON e.key = 'chain_attempt:' || t.id || ':gas'
JOIN ledger_lines l ON l.entry_id = e.id JOIN ledger_accounts a ON a.id = l.account_id AND a.kind = 'custody'
WHERE t.status IN ('succeeded', 'failed');

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT ON gas_found, gas_nettings TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Up
-- Cold wallets on a network whose transactions live by nonce accounts, and the end of what was handed out: it is
-- proven, or it is no end. No clock of ours ends a transaction that somebody may have signed.

-- The gas wallet opens a nonce account for a cold wallet, and advances it when what was handed out is withdrawn.
-- Each is a payment of its own, into the account.
ALTER TABLE chain_payments
    DROP CONSTRAINT chain_payments_purpose,
    DROP CONSTRAINT chain_payments_numbered,
    DROP CONSTRAINT chain_payments_reserved,
    ADD CONSTRAINT chain_payments_purpose CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance')),
    ADD CONSTRAINT chain_payments_numbered CHECK (n = 1 OR purpose IN ('gas', 'nonce_account')),
    ADD CONSTRAINT chain_payments_reserved CHECK ((hold_id IS NULL) = (purpose IN ('gas', 'nonce_account', 'nonce_advance')));
CREATE UNIQUE INDEX chain_payments_nonce_key ON chain_payments (object_id) WHERE purpose = 'nonce_account' AND status NOT IN ('completed', 'cancelled');

ALTER TABLE chain_attempts
    ADD COLUMN nonce_account text   NOT NULL DEFAULT '' CHECK (char_length(nonce_account) <= 200),
    ADD COLUMN nonce_block   bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT chain_attempts_durable CHECK ((nonce_account <> '') = (nonce_block > 0)
        AND (nonce_account = '' OR (network = 'solana' AND ref_block <> '' AND last_valid_height = 0 AND expires_at IS NULL)));
CREATE TRIGGER chain_attempts_durable_same BEFORE UPDATE ON chain_attempts FOR EACH ROW
    WHEN ((OLD.nonce_account, OLD.nonce_block, OLD.ref_block) IS DISTINCT FROM (NEW.nonce_account, NEW.nonce_block, NEW.ref_block))
    EXECUTE FUNCTION refuse_change();
-- Of two that live by one account's value one can be included. The other would have to be given up by a person.
CREATE UNIQUE INDEX chain_attempts_nonce_account_key ON chain_attempts (nonce_account)
    WHERE nonce_account <> '' AND status IN ('signed', 'broadcast', 'included');

ALTER TABLE cold_drafts
    ADD COLUMN nonce_account text   NOT NULL DEFAULT '' CHECK (char_length(nonce_account) <= 200),
    ADD COLUMN nonce_block   bigint NOT NULL DEFAULT 0,
    ADD COLUMN part          bytea  CHECK (octet_length(part) BETWEEN 1 AND 4096), -- the owner's signature, where the fee payer signs after it
    ADD COLUMN evidence      text   NOT NULL DEFAULT '' CHECK (char_length(evidence) <= 500), -- why it can never be included
    DROP CONSTRAINT cold_drafts_status_check,
    ADD CONSTRAINT cold_drafts_status CHECK (status IN ('open', 'signed', 'closing', 'lapsed')),
    ADD CONSTRAINT cold_drafts_durable CHECK ((nonce_account <> '') = (nonce_block > 0)
        AND (nonce_account = '' OR (network = 'solana' AND ref_block <> '' AND expires_at IS NULL AND lane IS NULL))
        AND (nonce_account <> '' OR (part IS NULL AND status <> 'closing')));
DROP INDEX cold_drafts_open_key;
CREATE UNIQUE INDEX cold_drafts_open_key ON cold_drafts (payment_id) WHERE status IN ('open', 'closing');
CREATE UNIQUE INDEX cold_drafts_nonce_account_key ON cold_drafts (nonce_account) WHERE nonce_account <> '' AND status IN ('open', 'closing');
CREATE TRIGGER cold_drafts_durable_same BEFORE UPDATE ON cold_drafts FOR EACH ROW
    WHEN ((OLD.nonce_account, OLD.nonce_block) IS DISTINCT FROM (NEW.nonce_account, NEW.nonce_block)
          OR (OLD.part IS NOT NULL AND OLD.part IS DISTINCT FROM NEW.part)
          OR (OLD.part IS DISTINCT FROM NEW.part AND NEW.status <> 'open')
          -- What is being withdrawn never becomes a transaction again.
          OR (OLD.nonce_account <> '' AND OLD.status <> NEW.status
              AND (OLD.status, NEW.status) NOT IN (('open', 'signed'), ('open', 'closing'), ('closing', 'lapsed'))))
    EXECUTE FUNCTION refuse_change();
-- The rule of before let an open draft stay open only as it was; its owner's signature may come now.
DROP TRIGGER cold_drafts_same ON cold_drafts;
CREATE TRIGGER cold_drafts_same BEFORE UPDATE ON cold_drafts FOR EACH ROW
    WHEN (OLD.status = 'signed'
          OR (OLD.id, OLD.payment_id, OLD.network, OLD.body, OLD.payload, OLD.tx_id, OLD.expires_at, OLD.lane, OLD.nonce, OLD.ref_block, OLD.bid_tip, OLD.bid_cap,
              OLD.fee_limit, OLD.closes_at, OLD.asked_by, OLD.created_at)
          IS DISTINCT FROM
             (NEW.id, NEW.payment_id, NEW.network, NEW.body, NEW.payload, NEW.tx_id, NEW.expires_at, NEW.lane, NEW.nonce, NEW.ref_block, NEW.bid_tip, NEW.bid_cap,
              NEW.fee_limit, NEW.closes_at, NEW.asked_by, NEW.created_at)
          OR (NEW.status = 'open' AND (OLD.status <> 'open' OR OLD.nonce_account = '')))
    EXECUTE FUNCTION refuse_change();

-- A draft is over when its network can't include it any more: its own end has come and the nodes were asked after
-- that, its number was used by a transaction of ours that is final (or the same number was handed out anew, which
-- leaves the same question with the next one), or its nonce account was advanced for it.
-- +goose StatementBegin
CREATE FUNCTION check_draft_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.evidence = '' THEN
        RAISE EXCEPTION 'draft % is not proven to be over', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.nonce_account <> '' AND NOT EXISTS (SELECT FROM chain_payments WHERE purpose = 'nonce_advance' AND object_id = NEW.id AND status = 'completed') THEN
        RAISE EXCEPTION 'draft % may still be included: its nonce account was not advanced', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.lane IS NOT NULL
        AND NOT EXISTS (SELECT FROM chain_attempts WHERE lane = NEW.lane AND nonce = NEW.nonce AND status IN ('succeeded', 'failed'))
        AND NOT EXISTS (SELECT FROM cold_drafts WHERE payment_id = NEW.payment_id AND lane = NEW.lane AND nonce = NEW.nonce AND status IN ('open', 'signed')) THEN
        RAISE EXCEPTION 'draft % may still be included: no final transaction has its number', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.nonce_account = '' AND NEW.lane IS NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > clock_timestamp()) THEN
        RAISE EXCEPTION 'draft % may still be included: it has not expired', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER cold_drafts_over AFTER UPDATE ON cold_drafts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> 'lapsed' AND NEW.status = 'lapsed') EXECUTE FUNCTION check_draft_over();

-- Bytes that live by a nonce account are those that were handed out, by the same account and value, and with the
-- owner's signature.
-- +goose StatementBegin
CREATE FUNCTION refuse_other_nonce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cold_drafts d WHERE d.payment_id = NEW.payment_id AND d.attempt_id = NEW.id AND d.part IS NOT NULL
        AND (d.nonce_account, d.nonce_block, d.ref_block) = (NEW.nonce_account, NEW.nonce_block, NEW.ref_block);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % lives by a nonce account and was not handed out', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_handed_out BEFORE INSERT ON chain_attempts FOR EACH ROW WHEN (NEW.nonce_account <> '') EXECUTE FUNCTION refuse_other_nonce();

-- What is being withdrawn has its payment wait too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_giving_up_open_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cold_drafts WHERE payment_id = NEW.id AND status IN ('open', 'closing');
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of payment % was handed out and may come back signed', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- The ends of payments for nonce accounts, which nothing is reserved for: from the house's gas wallet, of little.
-- +goose StatementBegin
CREATE FUNCTION check_nonce_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.network <> 'solana' OR NEW.asset <> 'SOL' OR NEW.fee_wallet_id IS NOT NULL OR NOT EXISTS (SELECT FROM wallets w
            WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot') THEN
        RAISE EXCEPTION 'chain payment % for a nonce account is not of the gas wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'nonce_account' AND (NEW.amount > 0.01 OR NOT EXISTS (SELECT FROM wallets w
            WHERE w.id = NEW.object_id AND w.network = NEW.network AND w.type = 'cold')) THEN
        RAISE EXCEPTION 'chain payment % opens no nonce account of a cold wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'nonce_advance' AND (NEW.amount > 0.000000001 OR NOT EXISTS (SELECT FROM cold_drafts d JOIN chain_payments p ON p.id = d.payment_id
            WHERE d.id = NEW.object_id AND d.status = 'closing' AND d.nonce_account = NEW.to_address AND p.fee_wallet_id = NEW.wallet_id)) THEN
        RAISE EXCEPTION 'chain payment % advances no nonce account of what is withdrawn', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_nonce BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose IN ('nonce_account', 'nonce_advance'))
    EXECUTE FUNCTION check_nonce_payment();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT UPDATE (part, evidence) ON cold_drafts TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd

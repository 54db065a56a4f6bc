-- +goose Up
-- Guards of what is agreed once. The service never changes these columns; the triggers make sure that
-- a mistake, or somebody with the service's own rights, can't either.

-- apply_lines is as before and asks besides that an entry gets all of its lines in one statement. Lines
-- that balance could otherwise be added to an entry that is booked, and move money under its old key.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION apply_lines() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    off record;
BEGIN
    SELECT l.entry_id, a.asset, sum(l.amount) AS sum INTO off
        FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id
        GROUP BY l.entry_id, a.asset HAVING sum(l.amount) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'entry % is off by % %', off.entry_id, off.sum, off.asset USING ERRCODE = 'KV003';
    END IF;
    PERFORM FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE scale(trim_scale(l.amount)) > asset_scale(a.asset) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'an amount has more decimal places than its asset' USING ERRCODE = 'KV003';
    END IF;
    IF (SELECT count(*) FROM ledger_lines WHERE entry_id = ANY (ARRAY(SELECT DISTINCT entry_id FROM new_lines)))
        <> (SELECT count(*) FROM new_lines) THEN
        RAISE EXCEPTION 'an entry that is booked gets no more lines' USING ERRCODE = 'KV002';
    END IF;
    UPDATE ledger_accounts a
        SET posted = a.posted + CASE WHEN a.debit_normal THEN d.sum ELSE -d.sum END, updated_at = now()
        FROM (SELECT account_id, sum(amount) AS sum FROM new_lines GROUP BY account_id) d
        WHERE a.id = d.account_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- An address belongs to one key for ever: with another one in its place, money would go to a stranger.
CREATE TRIGGER wallets_same BEFORE UPDATE ON wallets FOR EACH ROW
    WHEN ((OLD.owner_type, OLD.owner_id, OLD.vendor_id, OLD.purpose, OLD.network, OLD.address, OLD.custody)
          IS DISTINCT FROM
          (NEW.owner_type, NEW.owner_id, NEW.vendor_id, NEW.purpose, NEW.network, NEW.address, NEW.custody))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER wallet_keys_kept BEFORE TRUNCATE ON wallet_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A hold, once named, stays the offer's.
CREATE TRIGGER offers_same BEFORE UPDATE ON offers FOR EACH ROW
    WHEN ((OLD.vendor_id, OLD.offer_type, OLD.network, OLD.asset, OLD.wallet_id, coalesce(OLD.hold_id, NEW.hold_id))
          IS DISTINCT FROM
          (NEW.vendor_id, NEW.offer_type, NEW.network, NEW.asset, NEW.wallet_id, NEW.hold_id))
    EXECUTE FUNCTION refuse_change();

-- What is asked of the operator is written before it is asked, and a receipt is learnt once.
CREATE TRIGGER payment_attempts_same BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN ((OLD.direction, OLD.order_id, OLD.refund_id, OLD.provider, OLD.asset, OLD.amount, OLD.phone, OLD.reference, OLD.token_hash, OLD.hold_id)
          IS DISTINCT FROM
          (NEW.direction, NEW.order_id, NEW.refund_id, NEW.provider, NEW.asset, NEW.amount, NEW.phone, NEW.reference, NEW.token_hash, NEW.hold_id)
          OR (OLD.receipt <> '' AND (OLD.receipt, OLD.moved) IS DISTINCT FROM (NEW.receipt, NEW.moved)))
    EXECUTE FUNCTION refuse_change();

-- The kind decides whether a collection paid its order, of which there is one.
CREATE TRIGGER collections_whole BEFORE UPDATE ON collections FOR EACH ROW
    WHEN ((OLD.attempt_id, OLD.kind, OLD.asset) IS DISTINCT FROM (NEW.attempt_id, NEW.kind, NEW.asset))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER collections_kept_all BEFORE TRUNCATE ON collections FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER payment_exceptions_same BEFORE UPDATE ON payment_exceptions FOR EACH ROW
    WHEN ((OLD.kind, OLD.order_id, OLD.attempt_id, OLD.receipt, OLD.asset, OLD.amount)
          IS DISTINCT FROM
          (NEW.kind, NEW.order_id, NEW.attempt_id, NEW.receipt, NEW.asset, NEW.amount))
    EXECUTE FUNCTION refuse_change();

CREATE TRIGGER refunds_whole BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN ((OLD.attempt_id, OLD.exception_id, OLD.asset) IS DISTINCT FROM (NEW.attempt_id, NEW.exception_id, NEW.asset))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refunds_kept_all BEFORE TRUNCATE ON refunds FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- One payment of the operator pays one refund back, also when a person names it.
CREATE UNIQUE INDEX refunds_receipt_key ON refunds (receipt) WHERE receipt <> '';

-- A person's decision stays as it was made; only its use is noted, once.
CREATE TRIGGER operator_commands_same BEFORE UPDATE ON operator_commands FOR EACH ROW
    WHEN ((OLD.object_type, OLD.object_id, OLD.verb, OLD.note, OLD.actor_id, OLD.created_at, coalesce(OLD.used_at, NEW.used_at))
          IS DISTINCT FROM
          (NEW.object_type, NEW.object_id, NEW.verb, NEW.note, NEW.actor_id, NEW.created_at, NEW.used_at))
    EXECUTE FUNCTION refuse_change();

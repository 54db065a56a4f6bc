-- +goose Up
-- The double-entry ledger and its holds.

-- An account of the ledger. posted and held are in the direction in which the kind grows. Nothing
-- writes them but the triggers below, from the lines of entries and the amounts of holds.
CREATE TABLE ledger_accounts (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code         text        NOT NULL,
    kind         text        NOT NULL,
    owner_id     uuid,
    asset        asset       NOT NULL,
    debit_normal boolean     NOT NULL,
    may_go_below boolean     NOT NULL,
    posted       amount      NOT NULL DEFAULT 0,
    held         amount      NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    -- Locking a row needs the right to update some column of it; the service has it on this one only.
    touched      boolean     NOT NULL DEFAULT false,
    CONSTRAINT ledger_accounts_code_key UNIQUE (code),
    CONSTRAINT ledger_accounts_code CHECK (code = kind || ':' || coalesce(owner_id::text, 'house') || ':' || asset),
    CONSTRAINT ledger_accounts_kind CHECK (kind IN ('custody', 'wallet_balance', 'fiat_balance', 'momo_collection',
        'momo_payout', 'bank', 'orders_in_flight', 'refunds_due', 'suspense', 'rounding', 'fees', 'network_fees', 'capital')),
    CONSTRAINT ledger_accounts_direction CHECK (debit_normal = (kind IN ('custody', 'momo_collection', 'momo_payout', 'bank', 'network_fees'))),
    CONSTRAINT ledger_accounts_limit CHECK (may_go_below = (kind IN ('rounding', 'fees', 'network_fees', 'capital'))),
    CONSTRAINT ledger_accounts_held CHECK (held >= 0),
    CONSTRAINT ledger_accounts_available CHECK (may_go_below OR posted - held >= 0)
) WITH (fillfactor = 50); -- room for balance updates on the same page, without touching an index
CREATE INDEX ledger_accounts_owner_idx ON ledger_accounts (owner_id);

CREATE TABLE ledger_entries (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         text        NOT NULL,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 16),
    kind        text        NOT NULL,
    object_type text        NOT NULL,
    object_id   uuid,
    at          timestamptz NOT NULL,
    CONSTRAINT ledger_entries_key_key UNIQUE (key),
    CONSTRAINT ledger_entries_texts CHECK (char_length(key) BETWEEN 1 AND 200 AND char_length(kind) BETWEEN 1 AND 80)
);
CREATE INDEX ledger_entries_object_idx ON ledger_entries (object_id) WHERE object_id IS NOT NULL;

-- A positive amount is a debit, a negative one a credit.
CREATE TABLE ledger_lines (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry_id   bigint NOT NULL REFERENCES ledger_entries (id),
    account_id bigint NOT NULL REFERENCES ledger_accounts (id),
    amount     amount NOT NULL CHECK (amount <> 0)
);
CREATE INDEX ledger_lines_entry_idx ON ledger_lines (entry_id);
CREATE INDEX ledger_lines_account_idx ON ledger_lines (account_id, id);

CREATE TRIGGER ledger_entries_immutable BEFORE UPDATE OR DELETE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entries_kept BEFORE TRUNCATE ON ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_lines_immutable BEFORE UPDATE OR DELETE ON ledger_lines FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_lines_kept BEFORE TRUNCATE ON ledger_lines FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- apply_lines proves that the lines written by one statement sum to zero in every asset of every
-- entry, and adds them to the balances. As every statement adds nothing to an entry's sum, no
-- committed entry can be off.
-- +goose StatementBegin
CREATE FUNCTION apply_lines() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
    UPDATE ledger_accounts a
        SET posted = a.posted + CASE WHEN a.debit_normal THEN d.sum ELSE -d.sum END, updated_at = now()
        FROM (SELECT account_id, sum(amount) AS sum FROM new_lines GROUP BY account_id) d
        WHERE a.id = d.account_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_lines_applied AFTER INSERT ON ledger_lines REFERENCING NEW TABLE AS new_lines
    FOR EACH STATEMENT EXECUTE FUNCTION apply_lines();

-- A hold reserves part of an account's balance. amount is what it reserves now; placed is what it was
-- asked to reserve first, which identifies a repetition. grown counts additions.
CREATE TABLE holds (
    id          uuid            PRIMARY KEY,
    key         text            NOT NULL,
    account_id  bigint          NOT NULL REFERENCES ledger_accounts (id),
    parent_id   uuid            REFERENCES holds (id),
    placed      positive_amount NOT NULL,
    amount      zero_or_more    NOT NULL,
    status      text            NOT NULL CHECK (status IN ('held', 'captured', 'released')),
    object_type text            NOT NULL,
    object_id   uuid            NOT NULL,
    created_at  timestamptz     NOT NULL,
    updated_at  timestamptz     NOT NULL,
    CONSTRAINT holds_key_key UNIQUE (key),
    CONSTRAINT holds_key CHECK (char_length(key) BETWEEN 1 AND 200)
);
CREATE INDEX holds_parent_idx ON holds (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX holds_account_idx ON holds (account_id) WHERE status = 'held';

CREATE TRIGGER holds_final BEFORE UPDATE ON holds FOR EACH ROW WHEN (OLD.status <> 'held') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER holds_same BEFORE UPDATE ON holds FOR EACH ROW
    WHEN (OLD.account_id <> NEW.account_id OR OLD.key <> NEW.key OR OLD.id <> NEW.id OR OLD.placed <> NEW.placed)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER holds_born BEFORE INSERT ON holds FOR EACH ROW
    WHEN (NEW.status <> 'held' OR NEW.amount <> NEW.placed) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER holds_kept BEFORE DELETE ON holds FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER holds_kept_all BEFORE TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- apply_holds keeps what an account has held equal to the sum of its holds.
-- +goose StatementBegin
CREATE FUNCTION apply_new_holds() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE ledger_accounts a SET held = a.held + d.sum, updated_at = now()
        FROM (SELECT account_id, sum(amount) AS sum FROM new_holds GROUP BY account_id) d
        WHERE a.id = d.account_id AND d.sum <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION apply_changed_holds() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE ledger_accounts a SET held = a.held + d.sum, updated_at = now()
        FROM (SELECT account_id, sum(change) AS sum FROM (
                SELECT account_id, CASE WHEN status = 'held' THEN amount ELSE 0 END AS change FROM new_holds
                UNION ALL
                SELECT account_id, CASE WHEN status = 'held' THEN -amount ELSE 0 END FROM old_holds) c
              GROUP BY account_id) d
        WHERE a.id = d.account_id AND d.sum <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER holds_applied AFTER INSERT ON holds REFERENCING NEW TABLE AS new_holds
    FOR EACH STATEMENT EXECUTE FUNCTION apply_new_holds();
CREATE TRIGGER holds_reapplied AFTER UPDATE ON holds REFERENCING OLD TABLE AS old_holds NEW TABLE AS new_holds
    FOR EACH STATEMENT EXECUTE FUNCTION apply_changed_holds();

-- Balances move only from within a trigger; an account keeps its name and is born empty.
CREATE TRIGGER ledger_accounts_derived BEFORE UPDATE ON ledger_accounts FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND (OLD.posted <> NEW.posted OR OLD.held <> NEW.held)) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_accounts_same BEFORE UPDATE ON ledger_accounts FOR EACH ROW
    WHEN (OLD.code <> NEW.code OR OLD.kind <> NEW.kind OR OLD.asset <> NEW.asset OR OLD.debit_normal <> NEW.debit_normal
          OR OLD.may_go_below <> NEW.may_go_below) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_accounts_born BEFORE INSERT ON ledger_accounts FOR EACH ROW
    WHEN (NEW.posted <> 0 OR NEW.held <> 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_accounts_kept BEFORE DELETE ON ledger_accounts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_accounts_kept_all BEFORE TRUNCATE ON ledger_accounts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

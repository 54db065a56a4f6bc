-- +goose Up
-- The mobile money operator's terms by date, what it charges, the float that payouts are made from, and the breaker
-- that stops payouts when our own credential is turned down.

-- momo_fees: what the operator took for payouts.
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_kind, ADD CONSTRAINT ledger_accounts_kind CHECK (kind IN ('custody',
    'wallet_balance', 'fiat_balance', 'momo_collection', 'momo_payout', 'bank', 'orders_in_flight', 'refunds_due', 'suspense', 'unclaimed',
    'receivable', 'rounding', 'fees', 'network_fees', 'momo_fees', 'capital'));
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_direction, ADD CONSTRAINT ledger_accounts_direction CHECK (debit_normal =
    (kind IN ('custody', 'momo_collection', 'momo_payout', 'bank', 'network_fees', 'momo_fees', 'receivable')));
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_limit, ADD CONSTRAINT ledger_accounts_limit CHECK (may_go_below =
    (kind IN ('rounding', 'fees', 'network_fees', 'momo_fees', 'capital')));

-- What two persons agree to, besides what was there: the operator's terms, the platform's own treasury, and a large
-- movement of float.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind_check, ADD CONSTRAINT control_changes_kind CHECK (kind IN
    ('house_limits', 'user_limits', 'staff_access', 'momo_terms', 'treasury_allocation', 'float_move'));
ALTER TABLE control_changes DROP CONSTRAINT control_changes_subject, ADD CONSTRAINT control_changes_subject CHECK
    ((kind IN ('user_limits', 'staff_access')) = (subject_id IS NOT NULL));

-- check_control_change is as before, except that a treasury officer may propose what is the treasury's business.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_control_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decider text;
BEGIN
    NEW.applied_in := NULL;
    PERFORM FROM users WHERE id = NEW.proposed_by AND is_active AND (role = 'admin'
        OR (role = 'treasury' AND NEW.kind IN ('momo_terms', 'treasury_allocation', 'float_move'))) FOR SHARE;
    IF NOT FOUND AND NEW.status <> 'rejected' THEN
        RAISE EXCEPTION 'change % is not proposed by anybody active who may', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        SELECT role INTO decider FROM users WHERE id = NEW.decided_by AND is_active AND role IN ('admin', 'treasury') FOR SHARE;
        IF decider IS NULL THEN
            RAISE EXCEPTION 'change % is decided by nobody who may', NEW.id USING ERRCODE = 'KV006';
        END IF;
        IF NEW.status = 'confirmed' THEN
            IF coalesce(NEW.change -> 'roles' ? decider, false) THEN
                RAISE EXCEPTION 'change % is confirmed by somebody who gains by it', NEW.id USING ERRCODE = 'KV006';
            END IF;
            NEW.applied_in := pg_current_xact_id();
        END IF;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- momo_tariff_fits tells whether a tariff is a list of bands without gaps: each goes up to its whole amount from where
-- the one before it ended, and the last reaches the largest payout.
-- +goose StatementBegin
CREATE FUNCTION momo_tariff_fits(tariff jsonb, largest numeric) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    band  jsonb;
    below numeric := 0;
BEGIN
    IF jsonb_typeof(tariff) IS DISTINCT FROM 'array' OR jsonb_array_length(tariff) NOT BETWEEN 1 AND 50 THEN
        RETURN false;
    END IF;
    FOR band IN SELECT value FROM jsonb_array_elements(tariff) LOOP
        IF jsonb_typeof(band) IS DISTINCT FROM 'object' OR (band - 'up_to' - 'charge') <> '{}'::jsonb
            OR coalesce(band ->> 'up_to', '') !~ '^[0-9]{1,9}$' OR coalesce(band ->> 'charge', '') !~ '^[0-9]{1,6}([.][0-9]{1,2})?$'
            OR (band ->> 'up_to')::numeric <= below THEN
            RETURN false;
        END IF;
        below := (band ->> 'up_to')::numeric;
    END LOOP;
    RETURN below >= largest;
END $$;
-- +goose StatementEnd

-- The operator's limits and what it charges for a payout, from a time on. Nobody changes what held once.
CREATE TABLE momo_terms (
    id         uuid            PRIMARY KEY,
    valid_from timestamptz     NOT NULL,
    min_prompt positive_amount NOT NULL,
    max_prompt positive_amount NOT NULL,
    min_payout positive_amount NOT NULL,
    max_payout positive_amount NOT NULL,
    payee_day  positive_amount NOT NULL, -- the most that a payee can be paid in a day
    tariff     jsonb           NOT NULL,
    change_id  uuid            REFERENCES control_changes (id), -- who proposed and who agreed; the first terms have none
    entered_at timestamptz     NOT NULL,
    CONSTRAINT momo_terms_from_key UNIQUE (valid_from),
    CONSTRAINT momo_terms_change_key UNIQUE (change_id),
    CONSTRAINT momo_terms_limits CHECK (min_prompt <= max_prompt AND min_payout <= max_payout AND max_payout <= payee_day),
    CONSTRAINT momo_terms_whole CHECK (0 = ALL (ARRAY[min_prompt % 1, max_prompt % 1, min_payout % 1, max_payout % 1, payee_day % 1])),
    CONSTRAINT momo_terms_tariff CHECK (momo_tariff_fits(tariff, max_payout))
);

-- The limits that the operator documents, and its published disbursement tariff, whose last band is taken to go on.
-- Whoever goes live enters what the house's own contract says.
INSERT INTO momo_terms (id, valid_from, min_prompt, max_prompt, min_payout, max_payout, payee_day, tariff, entered_at) VALUES
    ('00000000-0000-7000-8000-00000000da1a', '2000-01-01T00:00:00Z', 1, 250000, 10, 250000, 500000, '[
        {"up_to": "100", "charge": "0"}, {"up_to": "500", "charge": "7"}, {"up_to": "1000", "charge": "13"},
        {"up_to": "1500", "charge": "23"}, {"up_to": "2500", "charge": "33"}, {"up_to": "3500", "charge": "56"},
        {"up_to": "5000", "charge": "57"}, {"up_to": "7500", "charge": "70"}, {"up_to": "10000", "charge": "90"},
        {"up_to": "15000", "charge": "110"}, {"up_to": "20000", "charge": "130"}, {"up_to": "25000", "charge": "150"},
        {"up_to": "35000", "charge": "175"}, {"up_to": "50000", "charge": "200"}, {"up_to": "70000", "charge": "250"},
        {"up_to": "250000", "charge": "330"}]', '2000-01-01T00:00:00Z');

-- New terms are what two persons agreed to, and hold for nothing that began before they were entered.
-- +goose StatementBegin
CREATE FUNCTION guard_momo_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.valid_from < NEW.entered_at OR NOT EXISTS (SELECT FROM control_changes c
            WHERE c.id = NEW.change_id AND c.applied_in = pg_current_xact_id() AND c.kind = 'momo_terms'
                AND NEW.entered_at = c.decided_at AND (c.change ->> 'valid_from')::timestamptz = NEW.valid_from
                AND (c.change ->> 'min_prompt')::numeric = NEW.min_prompt AND (c.change ->> 'max_prompt')::numeric = NEW.max_prompt
                AND (c.change ->> 'min_payout')::numeric = NEW.min_payout AND (c.change ->> 'max_payout')::numeric = NEW.max_payout
                AND (c.change ->> 'payee_day')::numeric = NEW.payee_day AND c.change -> 'tariff' = NEW.tariff) THEN
        RAISE EXCEPTION 'nobody confirmed terms of the operator from %', NEW.valid_from USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER momo_terms_guarded BEFORE INSERT ON momo_terms FOR EACH ROW EXECUTE FUNCTION guard_momo_terms();
CREATE TRIGGER momo_terms_immutable BEFORE UPDATE OR DELETE ON momo_terms FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER momo_terms_kept BEFORE TRUNCATE ON momo_terms FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What the operator took for a payout: what its terms said when the payout began, which the float was held for and
-- which is booked with the payout, and what it said itself afterwards. The difference is booked once.
CREATE TABLE payout_charges (
    attempt_id uuid         PRIMARY KEY REFERENCES payment_attempts (id),
    expected   zero_or_more NOT NULL,
    told       zero_or_more,
    fixed_at   timestamptz,
    created_at timestamptz  NOT NULL,
    CONSTRAINT payout_charges_fixed CHECK (fixed_at IS NULL OR told IS NOT NULL)
);
CREATE INDEX payout_charges_off_idx ON payout_charges (created_at) WHERE told <> expected AND fixed_at IS NULL;
CREATE TRIGGER payout_charges_same BEFORE UPDATE ON payout_charges FOR EACH ROW
    WHEN (OLD.attempt_id <> NEW.attempt_id OR OLD.expected <> NEW.expected OR OLD.created_at <> NEW.created_at
        OR (OLD.told IS NOT NULL AND OLD.told IS DISTINCT FROM NEW.told) OR (OLD.fixed_at IS NOT NULL AND OLD.fixed_at IS DISTINCT FROM NEW.fixed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payout_charges_kept BEFORE DELETE ON payout_charges FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payout_charges_whole BEFORE TRUNCATE ON payout_charges FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What the operator says of our accounts, and what the books said when it was heard. The utility account is right
-- between what is booked less what is held, and what is booked: open payouts may or may not have left it.
CREATE TABLE float_reports (
    ticket      text        PRIMARY KEY CHECK (char_length(ticket) BETWEEN 1 AND 128), -- the operator's name of our question
    utility     amount      NOT NULL, -- the account that payouts leave
    working     amount      NOT NULL, -- the account that collections are credited to
    booked      amount      NOT NULL, -- momo_payout
    held        amount      NOT NULL,
    collected   amount      NOT NULL, -- momo_collection
    open        int         NOT NULL CHECK (open >= 0), -- payouts that may still move money
    difference  amount      NOT NULL,
    told_at     timestamptz NOT NULL, -- the operator's time
    received_at timestamptz NOT NULL,
    CONSTRAINT float_reports_difference CHECK (difference = CASE WHEN utility > booked THEN utility - booked
        WHEN utility < booked - held THEN utility - (booked - held) ELSE 0 END)
);
CREATE INDEX float_reports_received_idx ON float_reports (received_at DESC);
CREATE TRIGGER float_reports_immutable BEFORE UPDATE OR DELETE ON float_reports FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER float_reports_kept BEFORE TRUNCATE ON float_reports FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Float that is moved from the working account to the utility account. The operator knows no id of ours here, so it is
-- asked once: a movement is of unknown outcome before the operator is asked, and only what the operator says ends that.
CREATE TABLE float_moves (
    id              uuid            PRIMARY KEY,
    asset           asset           NOT NULL CHECK (asset = 'KES'),
    amount          positive_amount NOT NULL CHECK (amount % 1 = 0),
    status          text            NOT NULL,
    hold_id         uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    change_id       uuid            REFERENCES control_changes (id),
    asked_by        uuid            NOT NULL REFERENCES users (id),
    token_hash      bytea           CHECK (octet_length(token_hash) = 32), -- of the operator's answers, from when it is asked
    conversation_id text            NOT NULL DEFAULT '' CHECK (char_length(conversation_id) <= 128),
    originator_id   text            NOT NULL DEFAULT '' CHECK (char_length(originator_id) <= 128),
    code            text            NOT NULL DEFAULT '' CHECK (char_length(code) <= 40),
    receipt         text            NOT NULL DEFAULT '' CHECK (char_length(receipt) <= 40),
    note            text            NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    settled_by      uuid            REFERENCES users (id), -- the person who said what became of it, where the operator did not
    created_at      timestamptz     NOT NULL,
    updated_at      timestamptz     NOT NULL,
    settled_at      timestamptz,
    version         bigint          NOT NULL DEFAULT 1,
    CONSTRAINT float_moves_change_key UNIQUE (change_id),
    CONSTRAINT float_moves_token_key UNIQUE (token_hash),
    CONSTRAINT float_moves_hold_key UNIQUE (hold_id),
    CONSTRAINT float_moves_asked CHECK ((status = 'created') = (token_hash IS NULL)),
    CONSTRAINT float_moves_settled CHECK ((status IN ('refused', 'completed', 'failed')) = (settled_at IS NOT NULL)),
    CONSTRAINT float_moves_proof CHECK (status <> 'completed' OR receipt <> '')
);
-- One movement at a time: two that are both of unknown outcome could not be told apart by the balances.
CREATE UNIQUE INDEX float_moves_open_key ON float_moves (asset) WHERE status IN ('created', 'unknown', 'accepted');
CREATE UNIQUE INDEX float_moves_receipt_key ON float_moves (receipt) WHERE receipt <> '';
CREATE INDEX float_moves_list_idx ON float_moves (created_at DESC, id DESC);

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('float_move', '', 'created'),
    ('float_move', 'created', 'unknown'),
    ('float_move', 'accepted', 'completed'),
    ('float_move', 'accepted', 'failed'),
    ('float_move', 'unknown', 'accepted'),
    ('float_move', 'unknown', 'refused'),
    ('float_move', 'unknown', 'completed'),
    ('float_move', 'unknown', 'failed');

-- A movement above the value at which a transfer asks for an officer is one that another person agreed to.
-- +goose StatementBegin
CREATE FUNCTION guard_float_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.change_id IS NULL AND NEW.amount > (SELECT one_above FROM approval_rules WHERE object_type = 'transfer') THEN
        RAISE EXCEPTION 'nobody confirmed moving % of float', NEW.amount USING ERRCODE = 'KV006';
    END IF;
    IF NEW.change_id IS NOT NULL AND NOT EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'float_move'
            AND c.applied_in = pg_current_xact_id() AND (c.change ->> 'amount')::numeric = NEW.amount AND c.proposed_by = NEW.asked_by) THEN
        RAISE EXCEPTION 'change % is not about moving % of float', NEW.change_id, NEW.amount USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER float_moves_guarded BEFORE INSERT ON float_moves FOR EACH ROW EXECUTE FUNCTION guard_float_move();
CREATE TRIGGER float_moves_born BEFORE INSERT ON float_moves FOR EACH ROW EXECUTE FUNCTION check_transition('float_move');
CREATE TRIGGER float_moves_moves BEFORE UPDATE ON float_moves FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition('float_move');
CREATE TRIGGER float_moves_same BEFORE UPDATE ON float_moves FOR EACH ROW
    WHEN ((OLD.id, OLD.asset, OLD.amount, OLD.hold_id, OLD.change_id, OLD.asked_by, OLD.created_at)
          IS DISTINCT FROM
          (NEW.id, NEW.asset, NEW.amount, NEW.hold_id, NEW.change_id, NEW.asked_by, NEW.created_at)
          OR (OLD.token_hash IS NOT NULL AND OLD.token_hash IS DISTINCT FROM NEW.token_hash)
          OR (OLD.receipt <> '' AND OLD.receipt <> NEW.receipt) OR (OLD.conversation_id <> '' AND OLD.conversation_id <> NEW.conversation_id))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER float_moves_kept BEFORE DELETE ON float_moves FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER float_moves_whole BEFORE TRUNCATE ON float_moves FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The operator answers about a movement at an address of its own, as it does about an attempt.
ALTER TABLE momo_callbacks ADD COLUMN float_move_id uuid REFERENCES float_moves (id),
    ADD CONSTRAINT momo_callbacks_of_one CHECK (attempt_id IS NULL OR float_move_id IS NULL);
CREATE INDEX momo_callbacks_float_idx ON momo_callbacks (float_move_id, received_at) WHERE float_move_id IS NOT NULL;

-- The results with which the operator turns our own credential down, or our right to pay out. Repeating such a payout
-- locks the credential.
CREATE TABLE momo_credential_codes (code text PRIMARY KEY);
INSERT INTO momo_credential_codes (code) VALUES
    ('11'), ('18'), ('20'), ('21'), ('22'), ('2001'), ('2006'), ('2028'), ('8006'), ('TP40153'),
    ('token_refused'), ('401'), ('400.003.01'), ('401.002.01'), ('401.003.01'), ('403.002.1001'), ('404.001.03'), ('404.001.04');

-- The breaker of a provider: two such results in a row open it, and while it is open no payout begins. A person closes
-- it; then one payout at a time is tried, until the operator takes one.
CREATE TABLE momo_breakers (
    provider    text        PRIMARY KEY,
    hits        int         NOT NULL CHECK (hits >= 0),
    code        text        NOT NULL DEFAULT '',
    opened_at   timestamptz,
    closed_at   timestamptz,
    closed_by   uuid        REFERENCES users (id),
    note        text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    CONSTRAINT momo_breakers_open CHECK ((opened_at IS NOT NULL) = (hits >= 2)),
    CONSTRAINT momo_breakers_closed CHECK ((closed_at IS NULL) = (closed_by IS NULL))
);
CREATE TRIGGER momo_breakers_kept BEFORE DELETE ON momo_breakers FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER momo_breakers_whole BEFORE TRUNCATE ON momo_breakers FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- guard_breaker lets nobody but the results below count or open, and nobody but an active officer close, which leaves
-- one hit: the next refusal opens it again.
-- +goose StatementBegin
CREATE FUNCTION guard_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() > 1 THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' OR OLD.opened_at IS NULL OR NEW.opened_at IS NOT NULL OR NEW.hits <> 1 OR NEW.provider <> OLD.provider
        OR NEW.code <> OLD.code OR NEW.closed_at IS NULL THEN
        RAISE EXCEPTION 'the breaker of % is closed by a person and moved by results', NEW.provider USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM users WHERE id = NEW.closed_by AND is_active AND role IN ('admin', 'treasury') FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the breaker of % is closed by nobody who may', NEW.provider USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER momo_breakers_guarded BEFORE INSERT OR UPDATE ON momo_breakers FOR EACH ROW EXECUTE FUNCTION guard_breaker();

-- A payout counts once, when the operator first says so: at its gateway, in its result, or when it is settled.
CREATE TABLE momo_credential_hits (
    attempt_id uuid        PRIMARY KEY REFERENCES payment_attempts (id),
    code       text        NOT NULL REFERENCES momo_credential_codes (code),
    at         timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER momo_credential_hits_immutable BEFORE UPDATE OR DELETE ON momo_credential_hits FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER momo_credential_hits_kept BEFORE TRUNCATE ON momo_credential_hits FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- +goose StatementBegin
CREATE FUNCTION count_credential_hit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    payer text;
BEGIN
    SELECT provider INTO payer FROM payment_attempts WHERE id = NEW.attempt_id AND direction = 'payout';
    IF payer IS NULL THEN
        RAISE EXCEPTION 'attempt % is no payout', NEW.attempt_id USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO momo_breakers AS b (provider, hits, code) VALUES (payer, 1, NEW.code)
    ON CONFLICT (provider) DO UPDATE SET hits = b.hits + 1, code = NEW.code,
        opened_at = CASE WHEN b.hits + 1 >= 2 THEN coalesce(b.opened_at, now()) END;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER momo_credential_hits_counted AFTER INSERT ON momo_credential_hits FOR EACH ROW EXECUTE FUNCTION count_credential_hit();

-- count_credential counts what becomes of payouts. Any other word of the operator about a payout that it looked at proves the
-- credential; a refusal at its gateway for another reason proves nothing.
-- +goose StatementBegin
CREATE FUNCTION count_credential() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.status IN ('refused', 'failed') AND EXISTS (SELECT FROM momo_credential_codes WHERE code = NEW.result_code) THEN
        INSERT INTO momo_credential_hits (attempt_id, code) VALUES (NEW.id, NEW.result_code) ON CONFLICT DO NOTHING;
    ELSIF NEW.status IN ('succeeded', 'failed') THEN
        UPDATE momo_breakers SET hits = 0 WHERE provider = NEW.provider AND hits = 1;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_attempts_credential AFTER UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND OLD.status <> NEW.status AND NEW.status IN ('refused', 'failed', 'succeeded'))
    EXECUTE FUNCTION count_credential();

-- check_breaker begins no payout while the breaker is open, and one at a time after a refusal. Payouts that begin when
-- all is well share a lock, so that they don't wait for each other, and one that opens the breaker waits for them.
-- +goose StatementBegin
CREATE FUNCTION check_breaker() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    refusals int;
BEGIN
    SELECT hits INTO refusals FROM momo_breakers WHERE provider = NEW.provider FOR SHARE;
    IF coalesce(refusals, 0) = 0 THEN
        RETURN NEW;
    END IF;
    IF refusals >= 2 THEN
        RAISE EXCEPTION 'payouts of % are suspended', NEW.provider USING ERRCODE = 'KV055';
    END IF;
    PERFORM pg_advisory_xact_lock(x'6d6f6d6f'::int, hashtext(NEW.provider));
    IF EXISTS (SELECT FROM payment_attempts WHERE direction = 'payout' AND provider = NEW.provider AND status IN ('created', 'unknown', 'accepted')) THEN
        RAISE EXCEPTION 'a payout of % is being tried alone', NEW.provider USING ERRCODE = 'KV055';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE INDEX payment_attempts_open_payouts_idx ON payment_attempts (provider) WHERE direction = 'payout' AND status IN ('created', 'unknown', 'accepted');
CREATE TRIGGER payment_attempts_breaker BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.direction = 'payout')
    EXECUTE FUNCTION check_breaker();

-- The platform's own treasury gets and gives back shillings by agreement of two persons only.
-- +goose StatementBegin
CREATE FUNCTION check_allocation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.object_id AND c.kind = 'treasury_allocation' AND c.applied_in = pg_current_xact_id()
            AND NEW.key = 'treasury.allocated:' || c.id
            AND (SELECT -sum(l.amount) FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id
                 WHERE l.entry_id = NEW.id AND a.kind = 'fiat_balance') = (c.change ->> 'amount')::numeric) THEN
        RAISE EXCEPTION 'nobody confirmed the allocation %', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER ledger_entries_allocated AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind = 'treasury.allocated') EXECUTE FUNCTION check_allocation();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT ON momo_terms, float_reports, float_moves, payout_charges TO kivuko_app;
        GRANT UPDATE (told, fixed_at) ON payout_charges TO kivuko_app;
        GRANT UPDATE (status, token_hash, conversation_id, originator_id, code, receipt, note, settled_by, updated_at, settled_at, version) ON float_moves TO kivuko_app;
        GRANT SELECT, INSERT (attempt_id, code) ON momo_credential_hits TO kivuko_app;
        GRANT SELECT ON momo_breakers, momo_credential_codes TO kivuko_app;
        GRANT UPDATE (hits, opened_at, closed_at, closed_by, note) ON momo_breakers TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Up
-- One rule for all value that leaves: the freeze, and the releases with their running sums.

-- An officer's stop of all outgoing payments. At most one is in force.
CREATE TABLE freezes (
    id        uuid        PRIMARY KEY,
    reason    text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    pulled_by uuid        NOT NULL REFERENCES users (id),
    pulled_at timestamptz NOT NULL,
    lifted_at timestamptz,
    change_id uuid        REFERENCES control_changes (id), -- by which two officers lifted it
    CONSTRAINT freezes_lifted CHECK ((lifted_at IS NULL) = (change_id IS NULL))
);
CREATE UNIQUE INDEX freezes_one_key ON freezes ((lifted_at IS NULL)) WHERE lifted_at IS NULL;
CALL never_removed('freezes');
CALL same_columns('freezes', 'id, reason, pulled_by, pulled_at');
CALL set_once('freezes', 'lifted_at');
CREATE TRIGGER freezes_guarded BEFORE INSERT OR UPDATE ON freezes FOR EACH ROW EXECUTE FUNCTION guard_freeze();
CREATE TRIGGER payment_attempts_frozen BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.direction = 'payout') EXECUTE FUNCTION refuse_while_frozen();
CREATE TRIGGER order_payouts_frozen BEFORE UPDATE ON order_payouts FOR EACH ROW
    WHEN (OLD.status <> 'processing' AND NEW.status = 'processing') EXECUTE FUNCTION refuse_while_frozen();

-- How long a new destination outside of our custody rests before more than a value goes there within a day.
CREATE TABLE release_policy (
    one          boolean      PRIMARY KEY DEFAULT true CHECK (one),
    rest_seconds int          NOT NULL CHECK (rest_seconds BETWEEN 0 AND 604800),
    rest_above   zero_or_more NOT NULL,
    updated_by   uuid         REFERENCES users (id),
    updated_at   timestamptz  NOT NULL
);
INSERT INTO release_policy (rest_seconds, rest_above, updated_at) VALUES (86400, 200000, now());
CALL never_removed('release_policy');
CREATE TRIGGER release_policy_guarded BEFORE UPDATE ON release_policy FOR EACH ROW
    WHEN (NEW.rest_seconds < OLD.rest_seconds OR NEW.rest_above > OLD.rest_above) EXECUTE FUNCTION guard_release_policy();

-- What value leaves for, the values above which officers approve it, and whether a new destination of it rests first. The
-- service changes neither this nor the next table.
CREATE TABLE release_purposes (
    purpose text PRIMARY KEY,
    rule    text NOT NULL REFERENCES approval_rules (object_type),
    rests   text NOT NULL DEFAULT '' -- why its destination does not rest; empty when it does
);
INSERT INTO release_purposes (purpose, rule, rests) VALUES
    ('transfer', 'transfer', ''),
    ('funding', 'transfer', ''),
    ('refund', 'refund', 'It goes back to the number that paid or to the address that was agreed; to another one, another officer approves it at any value.'),
    ('payout', 'bank_payout', 'The crypto for it came in and is proven; the payee was named before that, and gets no more than its price.');
CALL append_only('release_purposes');

-- Why a release asks no officer by its value and counts in no sum.
CREATE TABLE release_exemptions (
    exempt text PRIMARY KEY,
    why    text NOT NULL
);
INSERT INTO release_exemptions (exempt, why) VALUES
    ('', 'It is not exempt.'),
    ('own', 'It goes to another wallet of its owner, so nothing leaves the owner.'),
    ('surplus', 'What was paid above or below the price goes back by rule to the number that paid it: nobody chose the amount or the payee.'),
    ('sale', 'Crypto of the same value came in for the shillings and is proven, at a price near the market''s.');
CALL append_only('release_exemptions');

-- Value that is to leave its owner, one open row for each object. It counts in the running sums from its opening until a day
-- after it passed. A sum whose key is NULL does not apply.
CREATE TABLE releases (
    id           uuid            PRIMARY KEY,
    purpose      text            NOT NULL REFERENCES release_purposes (purpose),
    object_id    uuid            NOT NULL,
    house        boolean         NOT NULL,
    owner_id     uuid            REFERENCES users (id),
    source       text            CHECK (char_length(source) BETWEEN 4 AND 40), -- a wallet's id, or an account of the house
    requester_id uuid            REFERENCES users (id),
    recipient    text            NOT NULL CHECK (char_length(recipient) BETWEEN 5 AND 200),
    inside       boolean         NOT NULL,
    exempt       text            NOT NULL REFERENCES release_exemptions (exempt),
    value        zero_or_more    NOT NULL,
    opened_at    timestamptz     NOT NULL,
    digest       text            NOT NULL DEFAULT '', -- of the terms that officers approve, where the object has no column for it
    at_opening   int             NOT NULL DEFAULT 0, -- the officers that it needed when it was opened, set by the trigger; it never needs fewer
    officers     int             NOT NULL DEFAULT 0 CHECK (officers BETWEEN 0 AND 2),
    rests_until  timestamptz,
    passed_at    timestamptz,
    passed_in    xid8,           -- the transaction that let it pass, set by the trigger
    ended_at     timestamptz, -- when its object ended and moved nothing, or goes on with another release
    counts_until timestamptz     NOT NULL DEFAULT 'infinity', -- set by the trigger
    CONSTRAINT releases_digest CHECK (char_length(digest) = CASE purpose WHEN 'funding' THEN 64 ELSE 0 END),
    CONSTRAINT releases_owner CHECK (NOT house OR owner_id IS NULL)
);
CREATE UNIQUE INDEX releases_object_key ON releases (object_id, purpose) WHERE ended_at IS NULL;
CREATE INDEX releases_object_idx ON releases (object_id, purpose);
CREATE INDEX releases_source_idx ON releases (source, counts_until) INCLUDE (value) WHERE exempt = '';
CREATE INDEX releases_owner_idx ON releases (owner_id, counts_until) INCLUDE (value) WHERE exempt = '';
CREATE INDEX releases_house_idx ON releases (counts_until) INCLUDE (value) WHERE house AND exempt = '';
CREATE INDEX releases_requester_idx ON releases (requester_id, counts_until) INCLUDE (value) WHERE exempt = '';
CREATE INDEX releases_recipient_idx ON releases (recipient, counts_until) INCLUDE (value) WHERE exempt = '';
CREATE INDEX releases_known_idx ON releases (recipient, opened_at);
CALL never_removed('releases');
CALL same_columns('releases',
    'id, purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at, digest, at_opening');
CALL set_once('releases', 'passed_at, ended_at');
CREATE TRIGGER releases_judged BEFORE INSERT OR UPDATE ON releases FOR EACH ROW EXECUTE FUNCTION check_release();
CREATE CONSTRAINT TRIGGER releases_ended AFTER UPDATE ON releases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION check_release_end();
CREATE TRIGGER refunds_announced AFTER INSERT ON refunds FOR EACH ROW EXECUTE FUNCTION announce_owed('refund');
CREATE TRIGGER order_payouts_announced AFTER INSERT ON order_payouts FOR EACH ROW EXECUTE FUNCTION announce_owed('payout');
-- What leaves as shillings leaves in the transaction that judged it.
CREATE TRIGGER payment_attempts_value_released BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.direction = 'payout')
    EXECUTE FUNCTION check_payout_released();

-- What lets more money pass, or other money, takes two officers.
CREATE TRIGGER deny_list_removal BEFORE UPDATE ON deny_list FOR EACH ROW WHEN (OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL)
    EXECUTE FUNCTION guard_two_officers('deny_removal', 'denied_id');
CREATE TRIGGER fee_profiles_agreed BEFORE INSERT ON fee_profiles FOR EACH ROW EXECUTE FUNCTION guard_two_officers('fee_profile', 'id');
-- Fires before the sequence moves, by its name.
CREATE TRIGGER nonce_sequence_reopenings_agreed BEFORE INSERT ON nonce_sequence_reopenings FOR EACH ROW
    EXECUTE FUNCTION guard_two_officers('nonce_reopened', 'id');
-- A movement is also settled when its transaction turns out to be ours.
CREATE CONSTRAINT TRIGGER deposit_quarantine_agreed AFTER UPDATE ON deposit_quarantine DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.settled_at IS NULL AND NEW.settled_at IS NOT NULL) EXECUTE FUNCTION guard_quarantine();

CREATE TRIGGER orders_collar BEFORE INSERT ON orders FOR EACH ROW WHEN (NEW.offer_id IS NOT NULL) EXECUTE FUNCTION check_rate_collar();
CREATE TRIGGER orders_collar_more BEFORE UPDATE ON orders FOR EACH ROW WHEN (NEW.offer_id IS NOT NULL AND NEW.crypto_amount > OLD.crypto_amount)
    EXECUTE FUNCTION check_rate_collar();

-- What single officers attested within a day is summed.
CREATE INDEX payment_attempts_attested_idx ON payment_attempts (settled_at) WHERE result_class = 'attested';

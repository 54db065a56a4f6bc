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

-- Value that is to leave its owner, one row for each object. It counts in the running sums from its opening until a day
-- after it passed.
CREATE TABLE releases (
    id           uuid            PRIMARY KEY,
    purpose      text            NOT NULL CHECK (purpose IN ('transfer', 'funding')),
    object_id    uuid            NOT NULL,
    house        boolean         NOT NULL,
    owner_id     uuid            REFERENCES users (id),
    wallet_id    uuid            NOT NULL REFERENCES wallets (id),
    requester_id uuid            NOT NULL REFERENCES users (id),
    recipient    text            NOT NULL CHECK (char_length(recipient) BETWEEN 5 AND 200),
    inside       boolean         NOT NULL,
    own          boolean         NOT NULL,
    value        positive_amount NOT NULL,
    opened_at    timestamptz     NOT NULL,
    officers     int             NOT NULL DEFAULT 0 CHECK (officers BETWEEN 0 AND 2),
    rests_until  timestamptz,
    passed_at    timestamptz,
    ended_at     timestamptz, -- when its object ended and moved nothing
    counts_until timestamptz     NOT NULL DEFAULT 'infinity', -- set by the trigger
    CONSTRAINT releases_object_key UNIQUE (object_id, purpose),
    CONSTRAINT releases_owner CHECK (house = (owner_id IS NULL))
);
CREATE INDEX releases_wallet_idx ON releases (wallet_id, counts_until) INCLUDE (value) WHERE NOT own;
CREATE INDEX releases_owner_idx ON releases (owner_id, counts_until) INCLUDE (value) WHERE NOT own;
CREATE INDEX releases_house_idx ON releases (counts_until) INCLUDE (value) WHERE house AND NOT own;
CREATE INDEX releases_requester_idx ON releases (requester_id, counts_until) INCLUDE (value) WHERE NOT own;
CREATE INDEX releases_recipient_idx ON releases (recipient, counts_until) INCLUDE (value) WHERE NOT own;
CREATE INDEX releases_known_idx ON releases (recipient, opened_at);
CALL never_removed('releases');
CALL same_columns('releases',
    'id, purpose, object_id, house, owner_id, wallet_id, requester_id, recipient, inside, own, value, opened_at');
CALL set_once('releases', 'passed_at, ended_at');
CREATE TRIGGER releases_judged BEFORE INSERT OR UPDATE ON releases FOR EACH ROW EXECUTE FUNCTION check_release();
CREATE CONSTRAINT TRIGGER releases_ended AFTER UPDATE ON releases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION check_release_end();

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

-- What single officers attested within a day is summed.
CREATE INDEX payment_attempts_attested_idx ON payment_attempts (settled_at) WHERE result_class = 'attested';

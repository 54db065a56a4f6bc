-- +goose Up
-- Mobile money: attempts to collect and to pay out for any object, the provider's reports about them, money that fits
-- none, the provider's terms, the float for payouts, and the breaker that stops payouts when the provider refuses our
-- credential.

CREATE TABLE payment_attempts (
    id                  uuid            PRIMARY KEY,
    direction           text            NOT NULL CHECK (direction IN ('collection', 'payout')),
    object_type         text            NOT NULL, -- what it is collected or paid out for
    object_id           uuid            NOT NULL,
    -- The object, in one column for each type, so that the database knows that it exists.
    order_id            uuid            GENERATED ALWAYS AS (CASE object_type WHEN 'order' THEN object_id END) STORED REFERENCES orders (id),
    refund_id           uuid            GENERATED ALWAYS AS (CASE object_type WHEN 'refund' THEN object_id END) STORED,
    provider            text            NOT NULL CHECK (char_length(provider) BETWEEN 1 AND 40),
    status              text            NOT NULL,
    soft                boolean         NOT NULL DEFAULT false,
    asset               asset           NOT NULL,
    amount              positive_amount NOT NULL,
    phone               text            NOT NULL CHECK (phone ~ '^254[17][0-9]{8}$'),
    reference           text            NOT NULL CHECK (char_length(reference) BETWEEN 1 AND 12),
    token_hash          bytea           CHECK (octet_length(token_hash) = 32),        -- of the address for its result
    status_token_hash   bytea           CHECK (octet_length(status_token_hash) = 32), -- of the address for answers about a payout
    merchant_request_id text            NOT NULL DEFAULT '',
    checkout_request_id text            NOT NULL DEFAULT '',
    conversation_id     text            NOT NULL DEFAULT '',
    result_code         text            NOT NULL DEFAULT '', -- the provider's, which only its driver interprets
    -- What the code means. The rules rest on it and never on the code.
    result_class        text            NOT NULL DEFAULT '' CHECK (result_class IN ('', 'payee', 'payee_limit', 'float', 'busy', 'config',
                                            'credential', 'account', 'denied', 'declared', 'attested', 'declined', 'payer', 'unanswered')),
    result_text         text            NOT NULL DEFAULT '',
    receipt             text            NOT NULL DEFAULT '',
    moved               zero_or_more    NOT NULL DEFAULT 0,
    workflow_id         text            NOT NULL DEFAULT '',
    hold_id             uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    created_at          timestamptz     NOT NULL,
    submitted_at        timestamptz,
    settled_at          timestamptz,
    version             bigint          NOT NULL DEFAULT 1,
    CONSTRAINT payment_attempts_token_key UNIQUE (token_hash),
    CONSTRAINT payment_attempts_status_token_key UNIQUE (status_token_hash),
    CONSTRAINT payment_attempts_tokens CHECK (status_token_hash IS NULL OR (direction = 'payout' AND status_token_hash <> token_hash)),
    CONSTRAINT payment_attempts_object CHECK (num_nonnulls(order_id, refund_id) = 1),
    CONSTRAINT payment_attempts_direction CHECK (object_type IN ('order') OR direction = 'payout'), -- the others are only paid out for
    CONSTRAINT payment_attempts_object_key UNIQUE (object_id, object_type, id),
    CONSTRAINT payment_attempts_proof CHECK (status <> 'succeeded' OR (receipt <> '' AND moved > 0)),
    -- Officers find a receipt of money that moved, and declare money that did not.
    CONSTRAINT payment_attempts_class CHECK ((result_class <> 'attested' OR status = 'succeeded')
        AND (result_class <> 'declared' OR status IN ('refused', 'failed')))
);
-- While one attempt for an object may still move money, a second must not begin.
CREATE UNIQUE INDEX payment_attempts_open_key ON payment_attempts (object_type, object_id, direction)
    WHERE status IN ('created', 'unknown', 'accepted');
-- A receipt of the provider proves one movement.
CREATE UNIQUE INDEX payment_attempts_receipt_key ON payment_attempts (receipt) WHERE receipt <> '';
-- The provider's id names one prompt: its query would else prove another.
CREATE UNIQUE INDEX payment_attempts_checkout_key ON payment_attempts (checkout_request_id, provider) WHERE checkout_request_id <> '';
CREATE INDEX payment_attempts_phone_idx ON payment_attempts (phone, created_at) WHERE direction = 'collection';
CREATE INDEX payment_attempts_reference_idx ON payment_attempts (reference, created_at) WHERE direction = 'collection';
CREATE INDEX payment_attempts_open_payouts_idx ON payment_attempts (provider) WHERE direction = 'payout' AND status IN ('created', 'unknown', 'accepted');
-- Requests to the provider are counted every half hour, to check that its callbacks arrive at all.
CREATE INDEX payment_attempts_submitted_idx ON payment_attempts (submitted_at) WHERE submitted_at IS NOT NULL;
-- A payee's promised and paid amounts per day are counted by phone.
CREATE INDEX payment_attempts_payee_idx ON payment_attempts (phone, created_at) WHERE direction = 'payout';
CALL moves_by('payment_attempts', 'payment_attempt');
-- A request is stored before it is sent to the provider, and a receipt is stored once.
CALL same_columns('payment_attempts',
    'direction, object_type, object_id, provider, asset, amount, phone, reference, token_hash, status_token_hash, hold_id');
CREATE TRIGGER payment_attempts_closed BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN (OLD.receipt <> '' AND (OLD.receipt, OLD.moved) IS DISTINCT FROM (NEW.receipt, NEW.moved))
    EXECUTE FUNCTION refuse_change();
-- What each type of object wants or owes.
CREATE TRIGGER payment_attempts_of_purchase BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'collection' AND NEW.object_type = 'order') EXECUTE FUNCTION check_order_collection();
CREATE TRIGGER payment_attempts_of_order BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.object_type = 'order') EXECUTE FUNCTION check_order_payout();
CREATE TRIGGER payment_attempts_of_refund BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.object_type = 'refund') EXECUTE FUNCTION check_refund_rail();
CREATE CONSTRAINT TRIGGER payment_attempts_float AFTER INSERT ON payment_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.direction = 'payout') EXECUTE FUNCTION check_payout_float();
CREATE TRIGGER payment_attempts_doubt AFTER UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.object_type = 'order' AND NEW.status = 'unknown' AND OLD.status <> 'unknown')
    EXECUTE FUNCTION doubt_order_payout();
CREATE TRIGGER payment_attempts_credential AFTER UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND OLD.status <> NEW.status AND NEW.status IN ('refused', 'failed', 'succeeded'))
    EXECUTE FUNCTION count_credential();
CREATE TRIGGER payment_attempts_breaker BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.direction = 'payout')
    EXECUTE FUNCTION check_breaker();
CREATE TRIGGER payment_attempts_payee_day BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.direction = 'payout')
    EXECUTE FUNCTION check_payee_day();
CREATE TRIGGER payment_attempts_declared BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.result_class = 'declared' AND OLD.result_class <> 'declared') EXECUTE FUNCTION check_declared();
CREATE TRIGGER payment_attempts_attested BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.result_class = 'attested' AND OLD.result_class <> 'attested') EXECUTE FUNCTION check_attested();
CREATE TRIGGER payment_attempts_sent BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND OLD.status = 'unknown' AND NEW.status = 'refused') EXECUTE FUNCTION refuse_refusal_of_unknown();

-- The reports of the provider's notices and statement rows, once per receipt and channel: a notice comes to us, the statement is
-- asked for, and only together they prove a payment.
CREATE TABLE momo_receipts (
    receipt     text            NOT NULL CHECK (char_length(receipt) BETWEEN 1 AND 40),
    channel     text            NOT NULL CHECK (channel IN ('confirmation', 'statement', 'callback', 'query')),
    asset       asset           NOT NULL,
    amount      positive_amount NOT NULL,
    reference   text            NOT NULL CHECK (char_length(reference) <= 60),
    party_hash  text            NOT NULL CHECK (char_length(party_hash) <= 64),
    paid_at     timestamptz     NOT NULL,
    received_at timestamptz     NOT NULL,
    PRIMARY KEY (receipt, channel)
);
CREATE INDEX momo_receipts_reference_idx ON momo_receipts (reference, paid_at);
CALL append_only('momo_receipts');

-- Money booked as received, once per receipt, for the object of its attempt. Its refunds never exceed it.
CREATE TABLE collections (
    receipt    text            PRIMARY KEY,
    attempt_id uuid            NOT NULL,
    object_type text           NOT NULL,
    object_id  uuid            NOT NULL,
    kind       text            NOT NULL CHECK (kind IN ('exact', 'over', 'under', 'late', 'duplicate')),
    asset      asset           NOT NULL,
    amount     positive_amount NOT NULL,
    refunded   zero_or_more    NOT NULL DEFAULT 0,
    created_at timestamptz     NOT NULL,
    kept       zero_or_more    NOT NULL DEFAULT 0, -- by the house or credited to another party, so it can't be refunded any more
    CONSTRAINT collections_refunded CHECK (refunded + kept <= amount),
    CONSTRAINT collections_attempt_fkey FOREIGN KEY (object_type, object_id, attempt_id) REFERENCES payment_attempts (object_type, object_id, id)
);
CREATE INDEX collections_object_idx ON collections (object_id, object_type);
-- One collection pays an object.
CREATE UNIQUE INDEX collections_paying_key ON collections (object_id, object_type) WHERE kind IN ('exact', 'over', 'under');
CALL never_removed('collections');
-- The kind defines whether a collection paid its object; only one does.
CALL same_columns('collections', 'amount, receipt, object_type, object_id, attempt_id, kind, asset');
CALL only_grow('collections', 'refunded, kept');
CREATE TRIGGER collections_proven BEFORE INSERT ON collections FOR EACH ROW EXECUTE FUNCTION check_collection();

CREATE TABLE payment_exceptions (
    id         uuid            PRIMARY KEY,
    kind       text            NOT NULL CHECK (kind IN ('under', 'over', 'late', 'duplicate', 'wrong_asset', 'wrong_network',
                                   'unmatched', 'paid_twice', 'reconciliation')),
    status     text            NOT NULL,
    order_id   uuid            REFERENCES orders (id),
    attempt_id uuid            REFERENCES payment_attempts (id),
    receipt    text            NOT NULL,
    asset      asset           NOT NULL,
    amount     positive_amount NOT NULL,
    note       text            NOT NULL CHECK (char_length(note) <= 500),
    created_at timestamptz     NOT NULL,
    updated_at timestamptz     NOT NULL,
    version    bigint          NOT NULL DEFAULT 1,
    CONSTRAINT payment_exceptions_receipt_key UNIQUE (receipt)
);
CREATE INDEX payment_exceptions_list_idx ON payment_exceptions (created_at DESC, id DESC);
CREATE INDEX payment_exceptions_order_idx ON payment_exceptions (order_id);
CREATE INDEX payment_exceptions_attempt_idx ON payment_exceptions (attempt_id) WHERE attempt_id IS NOT NULL;
CALL moves_by('payment_exceptions', 'payment_exception');
CALL same_columns('payment_exceptions', 'kind, order_id, attempt_id, receipt, asset, amount');
CREATE TRIGGER payment_exceptions_kept AFTER UPDATE ON payment_exceptions FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('accepted', 'credited', 'written_off') AND NEW.kind NOT IN ('paid_twice', 'reconciliation'))
    EXECUTE FUNCTION count_kept();

CREATE TABLE exception_decisions (
    id           uuid        PRIMARY KEY, -- the request's id
    exception_id uuid        NOT NULL REFERENCES payment_exceptions (id),
    verdict      text        NOT NULL CHECK (verdict IN ('accepted', 'credited', 'written_off')),
    wallet_id    uuid        REFERENCES wallets (id),
    merchant_id  uuid        REFERENCES users (id),
    reason       text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    decided_by   uuid        NOT NULL REFERENCES users (id),
    decided_at   timestamptz NOT NULL,
    change_id    uuid        REFERENCES control_changes (id),
    CONSTRAINT exception_decisions_exception_key UNIQUE (exception_id),
    CONSTRAINT exception_decisions_account CHECK (num_nonnulls(wallet_id, merchant_id) = CASE verdict WHEN 'credited' THEN 1 ELSE 0 END)
);
CREATE UNIQUE INDEX exception_decisions_change_key ON exception_decisions (change_id) WHERE change_id IS NOT NULL;
CALL append_only('exception_decisions');
CREATE TRIGGER exception_decisions_checked BEFORE INSERT ON exception_decisions FOR EACH ROW EXECUTE FUNCTION check_exception_decision();
CREATE TRIGGER exception_decisions_officers BEFORE INSERT ON exception_decisions FOR EACH ROW EXECUTE FUNCTION check_decision_officers();

-- Payments to our number, once by receipt whichever channels reported them: the result of a prompt, the provider's
-- notice, its statement. A payment either pays an object or has an exception, never both.
CREATE TABLE c2b_payments (
    id           uuid            PRIMARY KEY,
    receipt      text            NOT NULL CHECK (char_length(receipt) BETWEEN 1 AND 40),
    status       text            NOT NULL,
    asset        asset           NOT NULL CHECK (asset = 'KES'),
    amount       positive_amount NOT NULL,
    reference    text            NOT NULL CHECK (char_length(reference) <= 60),
    party_hash   text            NOT NULL CHECK (char_length(party_hash) <= 64),
    paid_at      timestamptz     NOT NULL,
    object_type  text,
    object_id    uuid,
    attempt_id   uuid,
    exception_id uuid            REFERENCES payment_exceptions (id),
    notified_at      timestamptz, -- by the provider's notice
    listed_at    timestamptz, -- in the provider's statement
    booked_at    timestamptz, -- for the object that it paid
    disputed     boolean         NOT NULL DEFAULT false, -- two channels named different amounts or references
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    CONSTRAINT c2b_payments_receipt_key UNIQUE (receipt),
    CONSTRAINT c2b_payments_exception_key UNIQUE (exception_id),
    CONSTRAINT c2b_payments_match CHECK (num_nonnulls(object_type, object_id, attempt_id, booked_at) = CASE status WHEN 'matched' THEN 4 ELSE 0 END),
    CONSTRAINT c2b_payments_attempt_fkey FOREIGN KEY (object_type, object_id, attempt_id) REFERENCES payment_attempts (object_type, object_id, id),
    -- Only a payment in the provider's statement is booked as fitting no object: a notice is not signed.
    CONSTRAINT c2b_payments_aside CHECK (exception_id IS NULL OR (status = 'unmatched' AND listed_at IS NOT NULL))
);
CREATE INDEX c2b_payments_paid_idx ON c2b_payments (paid_at DESC, id DESC);
CREATE INDEX c2b_payments_object_idx ON c2b_payments (object_id) WHERE object_id IS NOT NULL;
CREATE INDEX c2b_payments_party_idx ON c2b_payments (party_hash, paid_at) WHERE party_hash <> '';
CREATE INDEX c2b_payments_waiting_idx ON c2b_payments (paid_at) WHERE status = 'unmatched' AND exception_id IS NULL;
CREATE INDEX c2b_payments_unlisted_idx ON c2b_payments (paid_at) WHERE listed_at IS NULL;
CALL moves_by('c2b_payments', 'c2b_payment');
CALL never_removed('c2b_payments');
-- The first reported payment data are immutable, a payment keeps its object or exception, and no report is lost.
CALL same_columns('c2b_payments', 'id, receipt, amount, paid_at, created_at');
CALL set_once('c2b_payments', 'reference, party_hash, disputed, exception_id, notified_at, listed_at');
CREATE TRIGGER c2b_payments_closed BEFORE UPDATE ON c2b_payments FOR EACH ROW
    WHEN (OLD.attempt_id IS NOT NULL AND (NEW.attempt_id, NEW.object_type, NEW.object_id, NEW.booked_at) IS DISTINCT FROM (OLD.attempt_id, OLD.object_type, OLD.object_id, OLD.booked_at))
    EXECUTE FUNCTION refuse_change();

-- Quarantined lines of the provider's statement that can't be taken as a payment. They are kept for an officer; the
-- other lines are processed.
CREATE TABLE c2b_quarantine (
    digest     text        PRIMARY KEY CHECK (digest ~ '^[0-9a-f]{64}$'), -- of the line, so that it is stored once
    receipt    text        NOT NULL CHECK (char_length(receipt) <= 60),
    kind       text        NOT NULL CHECK (char_length(kind) <= 60), -- the provider's name of the transaction type
    amount     text        NOT NULL CHECK (char_length(amount) <= 40),
    reason     text        NOT NULL CHECK (reason IN ('unreadable', 'refused')),
    paid_at    timestamptz,
    created_at timestamptz NOT NULL
);
CREATE INDEX c2b_quarantine_created_idx ON c2b_quarantine (created_at);
CALL append_only('c2b_quarantine');

-- momo_tariff_fits reports whether a tariff is a list of bands without gaps: each begins where the previous one ended
-- and ends at a whole amount, and the last reaches the largest payout.
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

-- The provider's limits and its charges for a payout, from a time on. Terms that have applied never change.
CREATE TABLE momo_terms (
    id         uuid            PRIMARY KEY,
    valid_from timestamptz     NOT NULL,
    min_prompt positive_amount NOT NULL,
    max_prompt positive_amount NOT NULL,
    min_payout positive_amount NOT NULL,
    max_payout positive_amount NOT NULL,
    payee_day  positive_amount NOT NULL, -- the daily limit of a payee
    tariff     jsonb           NOT NULL,
    change_id  uuid            REFERENCES control_changes (id), -- the confirmed change; NULL for the first terms
    entered_at timestamptz     NOT NULL,
    CONSTRAINT momo_terms_from_key UNIQUE (valid_from),
    CONSTRAINT momo_terms_change_key UNIQUE (change_id),
    CONSTRAINT momo_terms_limits CHECK (min_prompt <= max_prompt AND min_payout <= max_payout AND max_payout <= payee_day),
    CONSTRAINT momo_terms_whole CHECK (0 = ALL (ARRAY[min_prompt % 1, max_prompt % 1, min_payout % 1, max_payout % 1, payee_day % 1])),
    CONSTRAINT momo_terms_tariff CHECK (momo_tariff_fits(tariff, max_payout))
);
-- The provider's documented limits and published disbursement tariff, whose last band is assumed to continue. Before
-- going live, the terms of the house's own contract have to be entered.
INSERT INTO momo_terms (id, valid_from, min_prompt, max_prompt, min_payout, max_payout, payee_day, tariff, entered_at) VALUES
    ('00000000-0000-7000-8000-00000000da1a', '2000-01-01T00:00:00Z', 1, 250000, 10, 250000, 500000, '[
        {"up_to": "100", "charge": "0"}, {"up_to": "500", "charge": "7"}, {"up_to": "1000", "charge": "13"},
        {"up_to": "1500", "charge": "23"}, {"up_to": "2500", "charge": "33"}, {"up_to": "3500", "charge": "56"},
        {"up_to": "5000", "charge": "57"}, {"up_to": "7500", "charge": "70"}, {"up_to": "10000", "charge": "90"},
        {"up_to": "15000", "charge": "110"}, {"up_to": "20000", "charge": "130"}, {"up_to": "25000", "charge": "150"},
        {"up_to": "35000", "charge": "175"}, {"up_to": "50000", "charge": "200"}, {"up_to": "70000", "charge": "250"},
        {"up_to": "250000", "charge": "330"}]', '2000-01-01T00:00:00Z');
CALL append_only('momo_terms');
CREATE TRIGGER momo_terms_guarded BEFORE INSERT ON momo_terms FOR EACH ROW EXECUTE FUNCTION guard_momo_terms();

-- The provider's charge for a payout: the one by its terms when the payout began, which the float was held for and
-- which is booked with the payout, and the one that it reported later. The difference is booked once.
CREATE TABLE payout_charges (
    attempt_id uuid         PRIMARY KEY REFERENCES payment_attempts (id),
    expected   zero_or_more NOT NULL,
    reported       zero_or_more,
    fixed_at   timestamptz,
    created_at timestamptz  NOT NULL,
    CONSTRAINT payout_charges_fixed CHECK (fixed_at IS NULL OR reported IS NOT NULL)
);
CREATE INDEX payout_charges_off_idx ON payout_charges (created_at) WHERE reported <> expected AND fixed_at IS NULL;
CALL never_removed('payout_charges');
CALL same_columns('payout_charges', 'attempt_id, expected, created_at');
CALL set_once('payout_charges', 'reported, fixed_at');

-- The provider's report about our accounts, and the books' values when it came. The utility account is correct between
-- booked minus held, and booked: open payouts may or may not have left it.
CREATE TABLE float_reports (
    ticket      text        PRIMARY KEY CHECK (char_length(ticket) BETWEEN 1 AND 128), -- the provider's id of our query
    utility     amount      NOT NULL, -- the account that pays payouts
    working     amount      NOT NULL, -- the account that collections are credited to
    booked      amount      NOT NULL, -- momo_payout
    held        amount      NOT NULL,
    collected   amount      NOT NULL, -- momo_collection
    open        int         NOT NULL CHECK (open >= 0), -- payouts that may still move money
    difference  amount      NOT NULL,
    notified_at     timestamptz NOT NULL, -- the provider's time
    received_at timestamptz NOT NULL,
    CONSTRAINT float_reports_difference CHECK (difference = CASE WHEN utility > booked THEN utility - booked
        WHEN utility < booked - held THEN utility - (booked - held) ELSE 0 END)
);
CREATE INDEX float_reports_received_idx ON float_reports (received_at DESC);
CALL append_only('float_reports');

-- Float that is moved from the working account to the utility account. The provider stores no id of ours here, so the
-- request is sent only once: the outcome is unknown before the request, and only the provider's reports settle it.
CREATE TABLE float_moves (
    id              uuid            PRIMARY KEY,
    asset           asset           NOT NULL CHECK (asset = 'KES'),
    amount          positive_amount NOT NULL CHECK (amount % 1 = 0),
    status          text            NOT NULL,
    hold_id         uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    change_id       uuid            REFERENCES control_changes (id),
    asked_by        uuid            NOT NULL REFERENCES users (id),
    token_hash      bytea           CHECK (octet_length(token_hash) = 32), -- of the callback address, set before the request
    status_token_hash bytea         CHECK (octet_length(status_token_hash) = 32), -- of the address for answers, likewise
    conversation_id text            NOT NULL DEFAULT '' CHECK (char_length(conversation_id) <= 128),
    originator_id   text            NOT NULL DEFAULT '' CHECK (char_length(originator_id) <= 128),
    code            text            NOT NULL DEFAULT '' CHECK (char_length(code) <= 40),
    receipt         text            NOT NULL DEFAULT '' CHECK (char_length(receipt) <= 40),
    note            text            NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    settled_by      uuid            REFERENCES users (id), -- the officer who attested the outcome, where the provider did not report it
    created_at      timestamptz     NOT NULL,
    updated_at      timestamptz     NOT NULL,
    claimed_at      timestamptz, -- when a run claimed it, which alone may send the request; set by the trigger
    settled_at      timestamptz,
    version         bigint          NOT NULL DEFAULT 1,
    CONSTRAINT float_moves_claimed CHECK ((status = 'created') = (claimed_at IS NULL)),
    CONSTRAINT float_moves_change_key UNIQUE (change_id),
    CONSTRAINT float_moves_token_key UNIQUE (token_hash),
    CONSTRAINT float_moves_status_token_key UNIQUE (status_token_hash),
    CONSTRAINT float_moves_hold_key UNIQUE (hold_id),
    CONSTRAINT float_moves_asked CHECK (num_nonnulls(token_hash, status_token_hash) = CASE status WHEN 'created' THEN 0 ELSE 2 END),
    CONSTRAINT float_moves_tokens CHECK (token_hash <> status_token_hash),
    CONSTRAINT float_moves_settled CHECK ((status IN ('refused', 'completed', 'failed')) = (settled_at IS NOT NULL)),
    CONSTRAINT float_moves_proof CHECK (status <> 'completed' OR receipt <> '')
);
-- One movement at a time: the balances could not distinguish two of unknown outcome.
CREATE UNIQUE INDEX float_moves_open_key ON float_moves (asset) WHERE status IN ('created', 'unknown', 'accepted');
CREATE UNIQUE INDEX float_moves_receipt_key ON float_moves (receipt) WHERE receipt <> '';
CREATE INDEX float_moves_list_idx ON float_moves (created_at DESC, id DESC);
CALL moves_by('float_moves', 'float_move');
CALL never_removed('float_moves');
CALL same_columns('float_moves', 'id, asset, amount, hold_id, change_id, asked_by, created_at');
CALL set_once('float_moves', 'token_hash, status_token_hash, receipt, conversation_id');
CREATE TRIGGER float_moves_guarded BEFORE INSERT ON float_moves FOR EACH ROW EXECUTE FUNCTION guard_float_move();
CREATE TRIGGER float_moves_sent BEFORE UPDATE ON float_moves FOR EACH ROW
    WHEN (OLD.status = 'created' AND NEW.status = 'unknown' OR OLD.status = 'unknown' AND NEW.status = 'failed') EXECUTE FUNCTION check_float_sent();

CREATE TABLE momo_callbacks (
    id          uuid        PRIMARY KEY,
    attempt_id  uuid        REFERENCES payment_attempts (id),
    kind        text        NOT NULL,
    remote_ip   text        NOT NULL,
    off_range   boolean     NOT NULL, -- it came from outside the provider's known addresses
    body        bytea       NOT NULL CHECK (octet_length(body) <= 65536),
    received_at timestamptz NOT NULL,
    standing      boolean     NOT NULL DEFAULT false, -- it came to one of the permanent callback addresses
    float_move_id uuid        REFERENCES float_moves (id),
    CONSTRAINT momo_callbacks_standing CHECK (NOT standing OR attempt_id IS NULL),
    CONSTRAINT momo_callbacks_of_one CHECK (attempt_id IS NULL OR float_move_id IS NULL)
);
CREATE INDEX momo_callbacks_attempt_idx ON momo_callbacks (attempt_id, received_at);
CREATE INDEX momo_callbacks_standing_idx ON momo_callbacks (received_at) WHERE standing;
CREATE INDEX momo_callbacks_float_idx ON momo_callbacks (float_move_id, received_at) WHERE float_move_id IS NOT NULL;
CALL append_only('momo_callbacks');

-- The provider's ids of our queries about payouts and movements of float. Their answers come to the object's address for
-- answers: one to a query that we did not send is no evidence.
CREATE TABLE payout_queries (
    attempt_id uuid        NOT NULL REFERENCES payment_attempts (id),
    ticket     text        NOT NULL CHECK (char_length(ticket) BETWEEN 1 AND 128),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (attempt_id, ticket)
);
CALL append_only('payout_queries');
CREATE TABLE float_queries (
    move_id    uuid        NOT NULL REFERENCES float_moves (id),
    ticket     text        NOT NULL CHECK (char_length(ticket) BETWEEN 1 AND 128),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (move_id, ticket)
);
CALL append_only('float_queries');

-- The breaker of a provider: two results in a row with which it refuses our own credential, or our right to pay out,
-- open it, because repeating such a payout locks the credential, and while it is open no payout begins. A single one
-- stops only its own payout. A refusal counts once per payout, and a payee refused before later payouts succeeded does
-- not count again. An officer closes the breaker; then one payout at a time is on trial, whatever else is open, until
-- the provider accepts one. A trial payout without a response blocks the next one for two minutes.
CREATE TABLE momo_breakers (
    provider    text        PRIMARY KEY,
    hits        int         NOT NULL CHECK (hits >= 0),
    code        text        NOT NULL DEFAULT '',
    opened_at   timestamptz,
    closed_at   timestamptz,
    closed_by   uuid        REFERENCES users (id),
    note        text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    -- Closed by an officer, and no payout was accepted since.
    trial       boolean     NOT NULL DEFAULT false,
    -- How often an officer closed it, and how often the provider accepted a payout after a refusal, so that refusals can
    -- be ordered between them without a clock.
    closings    int         NOT NULL DEFAULT 0 CHECK (closings >= 0),
    takings     int         NOT NULL DEFAULT 0 CHECK (takings >= 0),
    CONSTRAINT momo_breakers_open CHECK ((opened_at IS NOT NULL) = (hits >= 2)),
    CONSTRAINT momo_breakers_closed CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
    CONSTRAINT momo_breakers_trial CHECK (NOT trial OR (hits = 1 AND closed_at IS NOT NULL))
);
CALL never_removed('momo_breakers');
CREATE TRIGGER momo_breakers_guarded BEFORE INSERT OR UPDATE ON momo_breakers FOR EACH ROW EXECUTE FUNCTION guard_breaker();

-- A payout counts once, when the provider first reports the refusal: at its gateway, in its result, or when it is
-- settled.
CREATE TABLE momo_credential_hits (
    attempt_id uuid        PRIMARY KEY REFERENCES payment_attempts (id),
    code       text        NOT NULL CHECK (char_length(code) <= 40),
    at         timestamptz NOT NULL DEFAULT now(),
    closings   int         NOT NULL DEFAULT 0,
    takings    int         NOT NULL DEFAULT 0
);
CALL append_only('momo_credential_hits');
CREATE TRIGGER momo_credential_hits_placed BEFORE INSERT ON momo_credential_hits FOR EACH ROW EXECUTE FUNCTION place_credential_hit();
CREATE TRIGGER momo_credential_hits_counted AFTER INSERT ON momo_credential_hits FOR EACH ROW EXECUTE FUNCTION count_credential_hit();

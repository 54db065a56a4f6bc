-- +goose Up
-- Money paid out: the payouts of orders that sell crypto, once, in full, to the agreed payee, and refunds. By mobile
-- money the flow pays and two independent reports prove it; by bank officers pay and confirm it, two of them above a
-- value.

CREATE TABLE order_payouts (
    id           uuid            PRIMARY KEY REFERENCES orders (id), -- the order's
    rail         text            NOT NULL CHECK (rail IN ('momo', 'bank')),
    asset        asset           NOT NULL CHECK (asset = 'KES'),
    amount       positive_amount NOT NULL CHECK (amount = trunc(amount)),
    phone        text            NOT NULL CHECK (phone ~ '^254[17][0-9]{8}$'),
    status       text            NOT NULL,
    paid_by      uuid            REFERENCES payment_attempts (id),
    hold_id      uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    receipt      text            NOT NULL DEFAULT '' CHECK (char_length(receipt) <= 64),
    refused_code text            NOT NULL DEFAULT '' CHECK (char_length(refused_code) <= 40),
    -- The outcome of an attempt was unknown at some time.
    doubted      boolean         NOT NULL DEFAULT false,
    -- There is a claim that a refused attempt has paid, not denied yet.
    claimed      boolean         NOT NULL DEFAULT false,
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    completed_at timestamptz,
    version      bigint          NOT NULL DEFAULT 1,
    CONSTRAINT order_payouts_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL) AND (status = 'completed') = (receipt <> '')),
    CONSTRAINT order_payouts_payer CHECK ((paid_by IS NOT NULL) = (status = 'completed' AND rail = 'momo')),
    CONSTRAINT order_payouts_bank CHECK (hold_id IS NULL OR rail = 'bank'),
    -- One form, so that one payment of the bank can't be named for two orders by writing its reference differently.
    CONSTRAINT order_payouts_bank_reference_form CHECK (rail <> 'bank' OR receipt ~ '^[0-9A-Z]*$')
);
CREATE INDEX order_payouts_bank_idx ON order_payouts (created_at, id) WHERE rail = 'bank';
-- One bank payment pays one order.
CREATE UNIQUE INDEX order_payouts_reference_key ON order_payouts (receipt) WHERE rail = 'bank' AND receipt <> '';
CALL moves_by('order_payouts', 'order_payout');
CALL never_removed('order_payouts');
CALL same_columns('order_payouts', 'id, rail, asset, amount, phone, created_at');
CALL set_once('order_payouts', 'doubted');
CREATE TRIGGER order_payouts_closed BEFORE UPDATE ON order_payouts FOR EACH ROW
    WHEN (OLD.status = 'completed' AND (OLD.paid_by, OLD.receipt, OLD.hold_id, OLD.completed_at)
          IS DISTINCT FROM (NEW.paid_by, NEW.receipt, NEW.hold_id, NEW.completed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER order_payouts_of_order BEFORE INSERT ON order_payouts FOR EACH ROW EXECUTE FUNCTION check_payout_created();
CREATE TRIGGER order_payouts_steps BEFORE UPDATE ON order_payouts FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_payout_moves();
CREATE CONSTRAINT TRIGGER order_payouts_end AFTER UPDATE ON order_payouts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('completed', 'cancelled')) EXECUTE FUNCTION check_payout_end();
CREATE CONSTRAINT TRIGGER order_payouts_hold AFTER UPDATE ON order_payouts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'processing' AND NEW.rail = 'bank') EXECUTE FUNCTION check_bank_hold();
CREATE TRIGGER order_payouts_screened BEFORE UPDATE ON order_payouts FOR EACH ROW WHEN (OLD.status <> 'processing' AND NEW.status = 'processing')
    EXECUTE FUNCTION check_sold_crypto();

-- The officers' confirmations of a bank payout. A withdrawn confirmation does not count.
CREATE TABLE bank_confirmations (
    id           uuid            PRIMARY KEY, -- of the request
    order_id     uuid            NOT NULL REFERENCES order_payouts (id),
    officer_id   uuid            NOT NULL REFERENCES users (id),
    reference    text            NOT NULL CHECK (reference ~ '^[0-9A-Z]{1,64}$'), -- in one form, as the receipt above
    paid_on      date            NOT NULL,
    amount       positive_amount NOT NULL,
    note         text            NOT NULL CHECK (char_length(note) <= 500),
    created_at   timestamptz     NOT NULL,
    withdrawn_at timestamptz
);
CREATE UNIQUE INDEX bank_confirmations_officer_key ON bank_confirmations (order_id, officer_id) WHERE withdrawn_at IS NULL;
CREATE INDEX bank_confirmations_reference_idx ON bank_confirmations (reference) WHERE withdrawn_at IS NULL;
CALL never_removed('bank_confirmations');
CALL same_columns('bank_confirmations', 'id, order_id, officer_id, reference, paid_on, amount, note, created_at');
CALL set_once('bank_confirmations', 'withdrawn_at');
CREATE TRIGGER bank_confirmations_checked BEFORE INSERT OR UPDATE ON bank_confirmations FOR EACH ROW EXECUTE FUNCTION check_bank_confirmation();

-- How long a refund waits after the last payout of its order was refused: providers report successes after failures.
-- unknown_seconds is the least age of a payout of unknown outcome before officers may declare that it was not made.
-- The service changes neither.
CREATE TABLE refund_policy (
    one              boolean PRIMARY KEY DEFAULT true CHECK (one),
    cool_off_seconds int     NOT NULL CHECK (cool_off_seconds BETWEEN 0 AND 86400),
    unknown_seconds  int     NOT NULL DEFAULT 7200 CHECK (unknown_seconds BETWEEN 0 AND 604800)
);
INSERT INTO refund_policy (cool_off_seconds) VALUES (600);

CREATE TABLE refunds (
    id           uuid            PRIMARY KEY,
    order_id     uuid            REFERENCES orders (id),
    attempt_id   uuid            REFERENCES payment_attempts (id),
    collection   text            REFERENCES collections (receipt),
    exception_id uuid            REFERENCES payment_exceptions (id),
    asset        asset           NOT NULL,
    amount       positive_amount NOT NULL,
    phone        text            CHECK (phone ~ '^254[17][0-9]{8}$'),
    reason       text            NOT NULL CHECK (char_length(reason) <= 200),
    status       text            NOT NULL,
    detail       text            NOT NULL DEFAULT '' CHECK (char_length(detail) <= 200),
    receipt      text            NOT NULL DEFAULT '',
    paid_by      uuid            REFERENCES payment_attempts (id),
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    completed_at timestamptz,
    version      bigint          NOT NULL DEFAULT 1,
    payee_confirmed boolean      NOT NULL DEFAULT false, -- set once by an officer, where the payer is doubtful
    rail         text            NOT NULL DEFAULT 'momo' CHECK (rail IN ('momo', 'chain')),
    deposit_id   uuid            REFERENCES chain_deposits (id), -- the deposit of the crypto; NULL if a payment of ours brought it
    wallet_id    uuid            REFERENCES wallets (id),        -- where the crypto lies
    network      network,
    address      text            NOT NULL DEFAULT '' CHECK (char_length(address) <= 128), -- the destination; empty until it is set
    hold_id      uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    value        zero_or_more,                                   -- in shillings, when the refund was opened
    digest       text            NOT NULL DEFAULT '',
    requested_by uuid            REFERENCES users (id),          -- NULL if it was opened by rule
    addressed_by uuid            REFERENCES users (id),          -- who gave the address, if it is not the order's
    dismissed_by uuid            REFERENCES users (id),           -- who dismissed the claim that the payee was paid
    -- There is a claim that a refused attempt by mobile money has paid, not denied yet.
    claimed      boolean         NOT NULL DEFAULT false,
    CONSTRAINT refunds_exception_key UNIQUE (exception_id),
    CONSTRAINT refunds_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL AND receipt <> '')),
    CONSTRAINT refunds_rail CHECK (CASE rail
        WHEN 'momo' THEN num_nulls(order_id, attempt_id, collection, phone) = 0 AND address = '' AND digest = ''
            AND num_nonnulls(deposit_id, wallet_id, network, hold_id, value, addressed_by) = 0
        ELSE num_nonnulls(attempt_id, collection, phone, paid_by) = 0 AND num_nulls(wallet_id, network, hold_id, value) = 0
            AND char_length(digest) = 64 AND num_nonnulls(order_id, exception_id) > 0 AND NOT payee_confirmed END),
    CONSTRAINT refunds_claimed CHECK (NOT claimed OR (rail = 'momo' AND status <> 'completed')),
    CONSTRAINT refunds_addressed CHECK (addressed_by IS NULL OR address <> ''),
    CONSTRAINT refunds_sent CHECK (rail = 'momo' OR address <> '' OR status IN ('pending', 'needs_review', 'completed')),
    CONSTRAINT refunds_hold_key UNIQUE (hold_id),
    CONSTRAINT refunds_deposit_key UNIQUE (deposit_id)
);
-- An order itself is refunded once; exceptions have refunds of their own.
CREATE UNIQUE INDEX refunds_order_key ON refunds (order_id) WHERE exception_id IS NULL;
CREATE INDEX refunds_list_idx ON refunds (created_at DESC, id DESC);
CREATE INDEX refunds_order_idx ON refunds (order_id);
-- What officers paid counts into the payee's day.
CREATE INDEX refunds_payee_idx ON refunds (phone, completed_at) WHERE rail = 'momo' AND status = 'completed' AND paid_by IS NULL;
-- One payment of the provider pays one refund, even if an officer enters it.
CREATE UNIQUE INDEX refunds_receipt_key ON refunds (receipt) WHERE receipt <> '';
CALL moves_by('refunds', 'refund');
CALL never_removed('refunds');
CALL same_columns('refunds',
    'id, rail, order_id, attempt_id, collection, exception_id, asset, amount, phone, deposit_id, wallet_id, network, hold_id,
     value, requested_by, created_at');
CALL set_once('refunds', 'payee_confirmed');
-- The address may still be set before the payment is approved; it changes what officers approve.
CREATE TRIGGER refunds_closed BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN ((OLD.address, OLD.addressed_by, OLD.digest) IS DISTINCT FROM (NEW.address, NEW.addressed_by, NEW.digest)
          AND (OLD.status NOT IN ('pending', 'needs_review') OR NEW.status <> OLD.status OR (OLD.address = NEW.address) <> (OLD.digest = NEW.digest)))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refunds_of_exception BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.exception_id IS NOT NULL)
    EXECUTE FUNCTION check_exception_refund();
CREATE TRIGGER refunds_payee BEFORE UPDATE ON refunds FOR EACH ROW WHEN (NEW.payee_confirmed AND NOT OLD.payee_confirmed)
    EXECUTE FUNCTION check_payee_confirmed();
CREATE TRIGGER refunds_own_receipt BEFORE UPDATE ON refunds FOR EACH ROW WHEN (OLD.receipt = '' AND NEW.receipt <> '')
    EXECUTE FUNCTION check_refund_receipt();
CREATE TRIGGER refunds_resolved BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (NEW.rail = 'momo' AND OLD.status <> 'completed' AND NEW.status = 'completed')
    EXECUTE FUNCTION check_resolved_refund();
CREATE TRIGGER refunds_paid BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (OLD.status = 'completed' AND (OLD.paid_by, OLD.receipt, OLD.completed_at) IS DISTINCT FROM (NEW.paid_by, NEW.receipt, NEW.completed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refunds_address_created BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.address <> '') EXECUTE FUNCTION check_refund_address();
CREATE TRIGGER refunds_address_given BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (NEW.address <> '' AND (OLD.address <> NEW.address OR OLD.addressed_by IS DISTINCT FROM NEW.addressed_by))
    EXECUTE FUNCTION check_refund_address();
CREATE TRIGGER refunds_of_chain BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.rail = 'chain') EXECUTE FUNCTION check_chain_refund();
CREATE CONSTRAINT TRIGGER refunds_reserved AFTER INSERT ON refunds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.rail = 'chain')
    EXECUTE FUNCTION check_refund_hold();
CREATE TRIGGER refunds_counted AFTER INSERT ON refunds FOR EACH ROW WHEN (NEW.rail = 'momo') EXECUTE FUNCTION count_refund();
CREATE CONSTRAINT TRIGGER refunds_proven AFTER UPDATE ON refunds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.rail = 'chain' AND OLD.status <> NEW.status AND NEW.status = 'completed') EXECUTE FUNCTION check_refund_sent();

CREATE TRIGGER holds_of_sales AFTER UPDATE ON holds FOR EACH ROW
    WHEN (NEW.object_type = 'order' AND OLD.status = 'held' AND (NEW.status <> 'held' OR NEW.amount < OLD.amount))
    EXECUTE FUNCTION check_shillings_freed();

-- Attestations of payouts: what two officers attest about a payout with too little evidence from the provider: that it
-- was made, with its receipt, or that it was not made.
CREATE TABLE payout_attestations (
    id         uuid        PRIMARY KEY REFERENCES control_changes (id), -- the confirmed change
    object_type text       NOT NULL, -- what the payout pays, as in payment_attempts
    object_id  uuid        NOT NULL,
    order_id   uuid        GENERATED ALWAYS AS (CASE object_type WHEN 'order' THEN object_id END) STORED REFERENCES orders (id),
    refund_id  uuid        GENERATED ALWAYS AS (CASE object_type WHEN 'refund' THEN object_id END) STORED REFERENCES refunds (id),
    attempt_id uuid, -- the attempt that was not made; one that was made has its receipt
    receipt    text        NOT NULL DEFAULT '' CHECK (receipt = '' OR receipt ~ '^[A-Z0-9]{8,20}$'),
    note       text        NOT NULL CHECK (char_length(note) BETWEEN 1 AND 500), -- how this was found out
    attested_by    uuid        NOT NULL REFERENCES users (id),
    agreed_by  uuid        NOT NULL REFERENCES users (id),
    said_at    timestamptz NOT NULL,
    CONSTRAINT payout_attestations_either CHECK ((receipt = '') = (attempt_id IS NOT NULL)),
    CONSTRAINT payout_attestations_apart CHECK (attested_by <> agreed_by),
    CONSTRAINT payout_attestations_object CHECK (num_nonnulls(order_id, refund_id) = 1),
    CONSTRAINT payout_attestations_attempt_fkey FOREIGN KEY (object_type, object_id, attempt_id) REFERENCES payment_attempts (object_type, object_id, id)
);
-- An attempt may be declared unpaid again after a new claim.
CREATE INDEX payout_attestations_attempt_idx ON payout_attestations (attempt_id) WHERE attempt_id IS NOT NULL;
-- A receipt proves one payout.
CREATE UNIQUE INDEX payout_attestations_receipt_key ON payout_attestations (receipt) WHERE receipt <> '';
CREATE INDEX payout_attestations_object_idx ON payout_attestations (object_id);
CALL append_only('payout_attestations');
CREATE TRIGGER payout_attestations_checked BEFORE INSERT ON payout_attestations FOR EACH ROW EXECUTE FUNCTION check_payout_attestation();
CREATE TRIGGER payout_attestations_doubt AFTER INSERT ON payout_attestations FOR EACH ROW WHEN (NEW.attempt_id IS NOT NULL AND NEW.object_type = 'order')
    EXECUTE FUNCTION doubt_order_payout();

-- Requests for refunds: the money of an exception, or an address for a refund without a usable one. The flow gets only
-- the id.
CREATE TABLE refund_requests (
    id           uuid        PRIMARY KEY,
    order_id     uuid        REFERENCES orders (id),
    exception_id uuid        REFERENCES payment_exceptions (id),
    address      text        NOT NULL CHECK (char_length(address) <= 128),
    reason       text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    requested_by uuid        NOT NULL REFERENCES users (id),
    requested_at timestamptz NOT NULL,
    CONSTRAINT refund_requests_object CHECK (num_nonnulls(order_id, exception_id) = 1)
);
CALL append_only('refund_requests');

ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_refund_fkey FOREIGN KEY (refund_id) REFERENCES refunds (id);

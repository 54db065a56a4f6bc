-- +goose Up
-- What an order that sells crypto pays out: once, whole, to the payee that was agreed. By mobile money the flow pays and two
-- witnesses prove it; by bank officers pay and say so, two of them above a value.

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
    -- Nobody knew, at some time, whether an attempt had paid.
    doubted      boolean         NOT NULL DEFAULT false,
    -- Somebody claims that an attempt which was refused has paid, and nobody has denied it yet.
    claimed      boolean         NOT NULL DEFAULT false,
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    completed_at timestamptz,
    version      bigint          NOT NULL DEFAULT 1,
    CONSTRAINT order_payouts_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL) AND (status = 'completed') = (receipt <> '')),
    CONSTRAINT order_payouts_payer CHECK ((paid_by IS NOT NULL) = (status = 'completed' AND rail = 'momo')),
    CONSTRAINT order_payouts_bank CHECK (hold_id IS NULL OR rail = 'bank')
);
CREATE INDEX order_payouts_bank_idx ON order_payouts (created_at, id) WHERE rail = 'bank';
-- One payment of the bank pays one order.
CREATE UNIQUE INDEX order_payouts_reference_key ON order_payouts (receipt) WHERE rail = 'bank' AND receipt <> '';

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('order_payout', '', 'pending'),
    ('order_payout', 'pending', 'processing'),
    ('order_payout', 'processing', 'completed'),
    ('order_payout', 'processing', 'refused'),
    ('order_payout', 'refused', 'processing'),
    ('order_payout', 'refused', 'completed'),
    ('order_payout', 'pending', 'cancelled'),
    ('order_payout', 'refused', 'cancelled'),
    ('order_payout', 'cancelled', 'completed');

CREATE TRIGGER order_payouts_born BEFORE INSERT ON order_payouts FOR EACH ROW EXECUTE FUNCTION check_transition('order_payout');
CREATE TRIGGER order_payouts_moves BEFORE UPDATE ON order_payouts FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('order_payout');
CREATE TRIGGER order_payouts_same BEFORE UPDATE ON order_payouts FOR EACH ROW
    WHEN ((OLD.id, OLD.rail, OLD.asset, OLD.amount, OLD.phone, OLD.created_at) IS DISTINCT FROM (NEW.id, NEW.rail, NEW.asset, NEW.amount, NEW.phone, NEW.created_at)
          OR (OLD.doubted AND NOT NEW.doubted)
          OR (OLD.status = 'completed' AND (OLD.paid_by, OLD.receipt, OLD.hold_id, OLD.completed_at) IS DISTINCT FROM (NEW.paid_by, NEW.receipt, NEW.hold_id, NEW.completed_at)))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER order_payouts_kept BEFORE DELETE ON order_payouts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER order_payouts_kept_all BEFORE TRUNCATE ON order_payouts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A payout is born of an order whose crypto was taken, with what that order says.
-- +goose StatementBegin
CREATE FUNCTION check_payout_born() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.id AND o.order_type LIKE 'OFF\_RAMP%' AND o.status = 'processing'
            AND o.fiat_amount = NEW.amount AND o.payment_phone = NEW.phone AND o.payment_method = NEW.rail) THEN
        RAISE EXCEPTION 'the payout of order % is not what the order says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER order_payouts_of_order BEFORE INSERT ON order_payouts FOR EACH ROW EXECUTE FUNCTION check_payout_born();

-- Attempts to pay out belong to a refund, or to an order's own payout.
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_direction,
    ADD CONSTRAINT payment_attempts_direction CHECK (direction = 'payout' OR refund_id IS NULL);

-- check_order_payout lets an attempt begin only for a payout that is under way, to its payee, over its amount, and while
-- nobody gives the crypto back or claims that it is paid. payment_attempts_open_key lets one at a time be open.
-- +goose StatementBegin
CREATE FUNCTION check_order_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM order_payouts p JOIN orders o ON o.id = p.id
        WHERE p.id = NEW.order_id AND p.rail = 'momo' AND p.status = 'processing' AND o.status = 'processing'
            AND p.asset = NEW.asset AND p.amount = NEW.amount AND p.phone = NEW.phone AND NOT p.claimed FOR SHARE OF p;
    IF NOT FOUND OR NEW.hold_id IS NULL THEN
        RAISE EXCEPTION 'payment attempt % does not pay what its order owes now', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF EXISTS (SELECT FROM refunds r WHERE r.order_id = NEW.order_id AND r.exception_id IS NULL) THEN
        RAISE EXCEPTION 'order % is being refunded', NEW.order_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_attempts_of_order BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.refund_id IS NULL) EXECUTE FUNCTION check_order_payout();

-- Holds are written last, so that this looks at the end of the transaction: what an attempt may pay is reserved in the float.
-- +goose StatementBegin
CREATE FUNCTION check_payout_float() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND a.kind = 'momo_payout'
            AND a.asset = NEW.asset AND h.object_type = 'payment_attempt' AND h.object_id = NEW.id AND h.status = 'held' AND h.amount >= NEW.amount) THEN
        RAISE EXCEPTION 'payment attempt % has no float', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER payment_attempts_float AFTER INSERT ON payment_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.refund_id IS NULL) EXECUTE FUNCTION check_payout_float();

-- +goose StatementBegin
CREATE FUNCTION doubt_order_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE order_payouts SET doubted = true WHERE id = NEW.order_id AND NOT doubted;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_attempts_doubt AFTER UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.refund_id IS NULL AND NEW.status = 'unknown' AND OLD.status <> 'unknown')
    EXECUTE FUNCTION doubt_order_payout();

-- What officers say of a bank payout. A word that was taken back does not count.
CREATE TABLE bank_confirmations (
    id           uuid            PRIMARY KEY, -- of the request
    order_id     uuid            NOT NULL REFERENCES order_payouts (id),
    officer_id   uuid            NOT NULL REFERENCES users (id),
    reference    text            NOT NULL CHECK (char_length(reference) BETWEEN 1 AND 64 AND reference ~ '^[!-~]([ -~]*[!-~])?$'),
    paid_on      date            NOT NULL,
    amount       positive_amount NOT NULL,
    note         text            NOT NULL CHECK (char_length(note) <= 500),
    created_at   timestamptz     NOT NULL,
    withdrawn_at timestamptz
);
CREATE UNIQUE INDEX bank_confirmations_officer_key ON bank_confirmations (order_id, officer_id) WHERE withdrawn_at IS NULL;
CREATE INDEX bank_confirmations_reference_idx ON bank_confirmations (reference) WHERE withdrawn_at IS NULL;
CREATE TRIGGER bank_confirmations_same BEFORE UPDATE ON bank_confirmations FOR EACH ROW
    WHEN ((OLD.id, OLD.order_id, OLD.officer_id, OLD.reference, OLD.paid_on, OLD.amount, OLD.note, OLD.created_at, coalesce(OLD.withdrawn_at, NEW.withdrawn_at))
          IS DISTINCT FROM
          (NEW.id, NEW.order_id, NEW.officer_id, NEW.reference, NEW.paid_on, NEW.amount, NEW.note, NEW.created_at, NEW.withdrawn_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER bank_confirmations_kept BEFORE DELETE ON bank_confirmations FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER bank_confirmations_kept_all BEFORE TRUNCATE ON bank_confirmations FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- check_bank_confirmation holds an officer's word to who may give it, and to one reference for an order and one order
-- for a reference. The lock is on the reference: two orders that name it at the same moment must not both pass.
-- +goose StatementBegin
CREATE FUNCTION check_bank_confirmation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM order_payouts p JOIN orders o ON o.id = p.id
        WHERE p.id = NEW.order_id AND p.rail = 'bank' AND p.status = 'processing' AND o.status = 'processing' FOR UPDATE OF p;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % waits for no payment by bank', NEW.order_id USING ERRCODE = 'KV001';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        RETURN NEW;
    END IF;
    PERFORM FROM users u JOIN orders o ON o.id = NEW.order_id WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('admin', 'treasury')
        AND u.id <> o.customer_id AND u.id <> o.vendor_id FOR SHARE OF u;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the payment of order % is confirmed by nobody who may', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko bank reference ' || NEW.reference, 0));
    IF EXISTS (SELECT FROM bank_confirmations c WHERE c.reference = NEW.reference AND c.order_id <> NEW.order_id AND c.withdrawn_at IS NULL)
        OR EXISTS (SELECT FROM bank_confirmations c WHERE c.order_id = NEW.order_id AND c.reference <> NEW.reference AND c.withdrawn_at IS NULL)
        OR NOT EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.order_id AND p.amount = NEW.amount)
        OR NEW.paid_on > (NEW.created_at AT TIME ZONE 'Africa/Nairobi')::date THEN
        RAISE EXCEPTION 'the confirmation of order % contradicts what is known of it', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bank_confirmations_checked BEFORE INSERT OR UPDATE ON bank_confirmations FOR EACH ROW EXECUTE FUNCTION check_bank_confirmation();

-- The value above which a payment by bank, or a refund in crypto, needs a second person.
ALTER TABLE approval_rules DROP CONSTRAINT approval_rules_object_type_check,
    ADD CONSTRAINT approval_rules_object_type_check CHECK (object_type IN ('transfer', 'bank_payout', 'refund'));
INSERT INTO approval_rules (object_type, one_above, two_above, updated_at) VALUES
    ('bank_payout', 200000, 2000000, now()), ('refund', 200000, 2000000, now());

-- guard_approval_rule is as before for transfers. What was agreed about them raises no value of another object.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION guard_approval_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.object_type <> OLD.object_type OR NOT EXISTS (SELECT FROM control_changes c, LATERAL (SELECT CASE NEW.object_type
                WHEN 'transfer' THEN c.change -> 'approvals' ELSE c.change -> 'object_approvals' -> NEW.object_type END AS values) a
            WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
                AND (a.values ->> 'one_above')::numeric = NEW.one_above AND (a.values ->> 'two_above')::numeric = NEW.two_above) THEN
        RAISE EXCEPTION 'nobody confirmed higher approval values' USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- check_payout_moves holds each step of a payout against its attempts, or against the officers' words.
-- +goose StatementBegin
CREATE FUNCTION check_payout_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    needed int;
BEGIN
    IF NEW.status IN ('refused', 'cancelled') AND (
            EXISTS (SELECT FROM payment_attempts a WHERE a.order_id = NEW.id AND a.direction = 'payout' AND a.refund_id IS NULL
                AND a.status IN ('created', 'unknown', 'accepted', 'succeeded'))
            OR EXISTS (SELECT FROM bank_confirmations c WHERE c.order_id = NEW.id AND c.withdrawn_at IS NULL)) THEN
        RAISE EXCEPTION 'the payout of order % has moved money, or may', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'processing' AND NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.id AND o.status = 'processing') THEN
        RAISE EXCEPTION 'order % pays nothing out', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'completed' AND NEW.rail = 'momo' AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.id = NEW.paid_by
            AND a.order_id = NEW.id AND a.direction = 'payout' AND a.refund_id IS NULL AND a.status = 'succeeded'
            AND a.moved = NEW.amount AND a.receipt = NEW.receipt) THEN
        RAISE EXCEPTION 'no attempt has paid order %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.status = 'completed' AND NEW.rail = 'bank' THEN
        SELECT CASE WHEN NEW.amount > r.one_above THEN 2 ELSE 1 END INTO needed FROM approval_rules r WHERE r.object_type = 'bank_payout' FOR SHARE;
        IF coalesce(needed, 2) > (SELECT count(*) FROM (SELECT u.id FROM bank_confirmations c JOIN users u ON u.id = c.officer_id
                WHERE c.order_id = NEW.id AND c.withdrawn_at IS NULL AND c.reference = NEW.receipt AND c.amount = NEW.amount
                    AND u.is_active AND u.role IN ('admin', 'treasury') FOR SHARE OF u) x) THEN
            RAISE EXCEPTION 'the payment of order % by bank lacks officers', NEW.id USING ERRCODE = 'KV006';
        END IF;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER order_payouts_steps BEFORE UPDATE ON order_payouts FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_payout_moves();

-- Order and payout end together: one that is paid is completed with its order, unless the order was given up before, and one
-- that is given up is cancelled with it. Looked at when both are written.
-- +goose StatementBegin
CREATE FUNCTION check_payout_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    o_status text;
    p_status text;
BEGIN
    SELECT o.status, p.status INTO o_status, p_status FROM orders o JOIN order_payouts p ON p.id = o.id WHERE o.id = NEW.id;
    IF NOT FOUND THEN
        RETURN NULL; -- it ended before its crypto was taken
    END IF;
    IF (o_status = 'completed' AND p_status <> 'completed') OR (o_status = 'failed' AND p_status NOT IN ('cancelled', 'completed'))
        OR (p_status = 'cancelled' AND o_status <> 'failed') OR (p_status = 'completed' AND o_status NOT IN ('completed', 'failed')) THEN
        RAISE EXCEPTION 'order % is % while its payout is %', NEW.id, o_status, p_status USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER order_payouts_end AFTER UPDATE ON order_payouts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('completed', 'cancelled')) EXECUTE FUNCTION check_payout_end();
CREATE CONSTRAINT TRIGGER orders_payout_end AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('completed', 'failed') AND NEW.order_type LIKE 'OFF\_RAMP%') EXECUTE FUNCTION check_payout_end();

-- What a bank payout reserves of the house's money at its bank. Holds are written last.
-- +goose StatementBegin
CREATE FUNCTION check_bank_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND a.kind = 'bank'
            AND a.asset = NEW.asset AND h.object_type = 'order' AND h.object_id = NEW.id AND h.status = 'held' AND h.amount = NEW.amount) THEN
        RAISE EXCEPTION 'the payout of order % reserves nothing at the bank', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER order_payouts_hold AFTER UPDATE ON order_payouts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'processing' AND NEW.rail = 'bank') EXECUTE FUNCTION check_bank_hold();

-- The receipt with which a person ends a refund is of no other order's payment.
-- +goose StatementBegin
CREATE FUNCTION check_refund_receipt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM payment_attempts a WHERE a.receipt = NEW.receipt AND a.order_id <> NEW.order_id) THEN
        RAISE EXCEPTION 'refund % names the receipt of another order', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refunds_own_receipt BEFORE UPDATE ON refunds FOR EACH ROW WHEN (OLD.receipt = '' AND NEW.receipt <> '')
    EXECUTE FUNCTION check_refund_receipt();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE (status, paid_by, hold_id, receipt, refused_code, doubted, claimed, updated_at, completed_at, version) ON order_payouts TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE (withdrawn_at) ON bank_confirmations TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd

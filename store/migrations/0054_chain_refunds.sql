-- +goose Up
-- Refunds in crypto: of an order whose shillings could not be paid out or whose deposit did not fit, and of money that
-- came to an address of ours and fits nothing. They go where a person said before anything was wrong, or where two
-- persons say, and never while the payee may have got the shillings.

-- How long a refund waits after the last payout of its order was refused: operators report successes after failures.
-- No one of the service changes it.
CREATE TABLE refund_policy (
    one              boolean PRIMARY KEY DEFAULT true CHECK (one),
    cool_off_seconds int     NOT NULL CHECK (cool_off_seconds BETWEEN 0 AND 86400)
);
INSERT INTO refund_policy (cool_off_seconds) VALUES (600);

ALTER TABLE refunds
    ALTER COLUMN order_id DROP NOT NULL,
    ALTER COLUMN attempt_id DROP NOT NULL,
    ALTER COLUMN collection DROP NOT NULL,
    ALTER COLUMN phone DROP NOT NULL,
    ADD COLUMN rail         text NOT NULL DEFAULT 'momo' CHECK (rail IN ('momo', 'chain')),
    ADD COLUMN deposit_id   uuid REFERENCES chain_deposits (id), -- that brought the crypto; none where a payment of ours did
    ADD COLUMN wallet_id    uuid REFERENCES wallets (id),        -- where the crypto lies
    ADD COLUMN network      network,
    ADD COLUMN address      text NOT NULL DEFAULT '' CHECK (char_length(address) <= 128), -- where it goes; empty until somebody says
    ADD COLUMN hold_id      uuid REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    ADD COLUMN value        zero_or_more,                        -- in shillings, as it counted when the refund was opened
    ADD COLUMN digest       text NOT NULL DEFAULT '',
    ADD COLUMN requested_by uuid REFERENCES users (id),          -- none where a flow opened it
    ADD COLUMN addressed_by uuid REFERENCES users (id),          -- who gave the address, where it is not the order's
    ADD COLUMN dismissed_by uuid REFERENCES users (id),          -- who let it go on although the payee was said to be paid
    ADD CONSTRAINT refunds_rail CHECK (CASE rail
        WHEN 'momo' THEN num_nulls(order_id, attempt_id, collection, phone) = 0 AND address = '' AND digest = ''
            AND num_nonnulls(deposit_id, wallet_id, network, hold_id, value, requested_by, addressed_by) = 0
        ELSE num_nonnulls(attempt_id, collection, phone, paid_by) = 0 AND num_nulls(wallet_id, network, hold_id, value) = 0
            AND char_length(digest) = 64 AND num_nonnulls(order_id, exception_id) > 0 AND NOT payee_confirmed END),
    ADD CONSTRAINT refunds_addressed CHECK (addressed_by IS NULL OR address <> ''),
    ADD CONSTRAINT refunds_sent CHECK (rail = 'momo' OR address <> '' OR status IN ('pending', 'needs_review', 'completed')),
    ADD CONSTRAINT refunds_hold_key UNIQUE (hold_id),
    ADD CONSTRAINT refunds_deposit_key UNIQUE (deposit_id);

-- What is promised stays. Where crypto goes may still be said while nothing of it is approved, and with it changes what
-- officers agree to.
DROP TRIGGER refunds_same ON refunds;
DROP TRIGGER refunds_whole ON refunds;
CREATE TRIGGER refunds_same BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN ((OLD.id, OLD.rail, OLD.order_id, OLD.attempt_id, OLD.collection, OLD.exception_id, OLD.asset, OLD.amount, OLD.phone, OLD.deposit_id, OLD.wallet_id,
           OLD.network, OLD.hold_id, OLD.value, OLD.requested_by, OLD.created_at)
          IS DISTINCT FROM
          (NEW.id, NEW.rail, NEW.order_id, NEW.attempt_id, NEW.collection, NEW.exception_id, NEW.asset, NEW.amount, NEW.phone, NEW.deposit_id, NEW.wallet_id,
           NEW.network, NEW.hold_id, NEW.value, NEW.requested_by, NEW.created_at)
          OR ((OLD.address, OLD.addressed_by, OLD.digest) IS DISTINCT FROM (NEW.address, NEW.addressed_by, NEW.digest)
              AND (OLD.status NOT IN ('pending', 'needs_review') OR NEW.status <> OLD.status OR (OLD.address = NEW.address) <> (OLD.digest = NEW.digest))))
    EXECUTE FUNCTION refuse_change();

-- Where crypto goes back to is what the customer said at its order, the wallet of ours that it came from, or an
-- address that a person gave. It is no address of the house: what goes there belongs to nobody.
-- +goose StatementBegin
CREATE FUNCTION check_refund_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets w WHERE w.network = NEW.network AND w.address = NEW.address AND w.owner_id IS NULL) THEN
        RAISE EXCEPTION 'refund % would go to the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.addressed_by IS NULL AND NOT EXISTS (SELECT FROM orders o LEFT JOIN wallets w ON w.id = o.fund_wallet_id
            WHERE o.id = NEW.order_id AND o.network = NEW.network AND NEW.address = coalesce(w.address, o.refund_address)) THEN
        RAISE EXCEPTION 'refund % goes where nobody said', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.addressed_by IS NOT NULL AND NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.addressed_by AND u.is_active
            AND u.role IN ('admin', 'treasury', 'otc_officer')) THEN
        RAISE EXCEPTION 'refund % goes where somebody says who may not', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refunds_address_born BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.address <> '') EXECUTE FUNCTION check_refund_address();
CREATE TRIGGER refunds_address_given BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (NEW.address <> '' AND (OLD.address <> NEW.address OR OLD.addressed_by IS DISTINCT FROM NEW.addressed_by))
    EXECUTE FUNCTION check_refund_address();

-- A refund in crypto promises what lies there: the claim of its order, or the deposit that its exception is about, all
-- of it and once.
-- +goose StatementBegin
CREATE FUNCTION check_chain_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL AND w.type = 'hot') THEN
        RAISE EXCEPTION 'refund % is of no money that lies with the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.deposit_id IS NOT NULL AND NOT EXISTS (SELECT FROM chain_deposits d WHERE d.id = NEW.deposit_id AND d.status = 'final' AND d.kind <> 'own'
            AND d.wallet_id = NEW.wallet_id AND d.asset = NEW.asset AND d.amount = NEW.amount) THEN
        RAISE EXCEPTION 'refund % is not of its deposit', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.exception_id IS NULL AND NOT EXISTS (SELECT FROM escrow_claims c JOIN orders o ON o.id = c.order_id AND o.status = 'failed'
            WHERE c.order_id = NEW.order_id AND c.hold_id = NEW.hold_id AND c.kind IN ('exact', 'repriced') AND c.asset = NEW.asset AND c.amount = NEW.amount
                AND c.deposit_id IS NOT DISTINCT FROM NEW.deposit_id) THEN
        RAISE EXCEPTION 'refund % is not of what its order was paid with', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF EXISTS (SELECT FROM escrow_claims c WHERE c.exception_id = NEW.exception_id AND c.hold_id <> NEW.hold_id) THEN
        RAISE EXCEPTION 'refund % is not of what its order held', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refunds_of_chain BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.rail = 'chain') EXECUTE FUNCTION check_chain_refund();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_exception_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.rail = 'chain' THEN
        PERFORM FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.status = 'refunding' AND x.asset = NEW.asset AND x.amount = NEW.amount
            AND x.order_id IS NOT DISTINCT FROM NEW.order_id AND x.kind NOT IN ('paid_twice', 'reconciliation')
            AND deposit_of(x.receipt) = NEW.deposit_id FOR SHARE;
    ELSE
        PERFORM FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.status = 'refunding' AND x.receipt = NEW.collection
            AND x.attempt_id = NEW.attempt_id AND x.asset = NEW.asset AND x.amount >= NEW.amount
            AND x.kind NOT IN ('paid_twice', 'reconciliation') FOR SHARE;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % is not of the money of exception %', NEW.id, NEW.exception_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- What is promised in crypto is reserved where it lies. Holds are written last.
-- +goose StatementBegin
CREATE FUNCTION check_refund_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND h.status = 'held' AND h.amount = NEW.amount
            AND a.kind = 'wallet_balance' AND a.owner_id = NEW.wallet_id AND a.asset = NEW.asset
            AND (h.object_type, h.object_id) IN (('order', NEW.order_id), ('refund', NEW.id))) THEN
        RAISE EXCEPTION 'nothing is reserved for refund %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER refunds_reserved AFTER INSERT ON refunds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.rail = 'chain')
    EXECUTE FUNCTION check_refund_hold();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET refunded = refunded + NEW.amount
        WHERE receipt = NEW.collection AND order_id = NEW.order_id AND asset = NEW.asset;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % names a collection of another order or asset', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER refunds_counted ON refunds;
CREATE TRIGGER refunds_counted AFTER INSERT ON refunds FOR EACH ROW WHEN (NEW.rail = 'momo') EXECUTE FUNCTION count_refund();

-- What left an escrow address is counted at what had come, which can't leave twice however it left.
-- +goose StatementBegin
CREATE FUNCTION count_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.purpose = 'refund' THEN
        UPDATE escrow_claims c SET refunded = c.refunded + NEW.amount FROM refunds f
            WHERE f.id = NEW.object_id AND (c.hold_id = f.hold_id OR (c.hold_id IS NULL AND c.exception_id = f.exception_id));
    ELSE
        UPDATE escrow_claims SET taken = taken + NEW.amount WHERE hold_id = NEW.hold_id AND order_id = NEW.object_id;
        UPDATE escrow_claims SET kept = kept + NEW.amount WHERE exception_id = NEW.object_id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_claimed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'refund') AND OLD.status <> 'completed' AND NEW.status = 'completed') EXECUTE FUNCTION count_claim();

-- A refund in crypto is completed by its payment, or by the payout that it was to make good for.
-- +goose StatementBegin
CREATE FUNCTION check_refund_sent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'refund' AND p.object_id = NEW.id AND p.status = 'completed' AND p.tx_id = NEW.receipt)
        AND NOT EXISTS (SELECT FROM order_payouts y WHERE y.id = NEW.order_id AND y.status = 'completed' AND y.receipt = NEW.receipt
            AND NEW.exception_id IS NULL AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'refund' AND p.object_id = NEW.id AND p.status <> 'cancelled')) THEN
        RAISE EXCEPTION 'refund % is not sent', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER refunds_proven AFTER UPDATE ON refunds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.rail = 'chain' AND OLD.status <> NEW.status AND NEW.status = 'completed') EXECUTE FUNCTION check_refund_sent();

-- Mobile money pays no refund that goes back on a chain.
-- +goose StatementBegin
CREATE FUNCTION check_refund_rail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM refunds f WHERE f.id = NEW.refund_id AND f.rail = 'momo') THEN
        RAISE EXCEPTION 'payment attempt % pays no refund of its rail', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_attempts_rail BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.refund_id IS NOT NULL) EXECUTE FUNCTION check_refund_rail();

-- refund_officers is how many persons have to agree to a refund beside who asked for it, who gave its address and who
-- dismissed a claim that its payee was paid.
-- +goose StatementBegin
CREATE FUNCTION refund_officers(f refunds) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    rule approval_rules;
    need int := 0;
BEGIN
    SELECT * INTO STRICT rule FROM approval_rules WHERE object_type = 'refund';
    IF f.value > rule.two_above THEN
        need := 2;
    ELSIF f.value > rule.one_above OR f.addressed_by IS NOT NULL
        OR (f.exception_id IS NULL AND EXISTS (SELECT FROM order_payouts y WHERE y.id = f.order_id AND y.doubted)) THEN
        need := 1;
    END IF;
    RETURN need;
END $$;
-- +goose StatementEnd

-- refund_ready_at is the moment from which the payouts of a refund's order let it go; infinity while one may have paid.
CREATE FUNCTION refund_ready_at(f refunds) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(CASE WHEN a.status IN ('refused', 'failed')
            THEN coalesce(a.settled_at, a.submitted_at, a.created_at) + (SELECT cool_off_seconds FROM refund_policy) * interval '1 second'
            ELSE 'infinity' END), f.created_at)
    FROM payment_attempts a WHERE a.order_id = f.order_id AND a.direction = 'payout' AND a.refund_id IS NULL AND f.exception_id IS NULL
$$;

-- +goose StatementBegin
CREATE FUNCTION refund_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f refunds;
    o orders;
BEGIN
    SELECT * INTO f FROM refunds WHERE id = p.object_id FOR SHARE;
    IF NOT FOUND OR f.rail <> 'chain' OR f.status <> 'processing' OR (f.network, f.asset, f.amount, f.wallet_id, f.address, f.hold_id)
        IS DISTINCT FROM (p.network, p.asset, p.amount, p.wallet_id, p.to_address, p.hold_id) THEN
        RETURN 'it is not what its refund says';
    END IF;
    IF reserved_for(p, 'order', f.order_id) THEN
        SELECT * INTO o FROM orders WHERE id = f.order_id FOR SHARE;
        IF o.status <> 'failed' OR EXISTS (SELECT FROM order_payouts y WHERE y.id = o.id AND y.status <> 'cancelled') THEN
            RETURN 'its order may be paid out';
        END IF;
        IF refund_ready_at(f) > clock_timestamp() THEN
            RETURN 'a payout of its order may have paid';
        END IF;
    ELSIF NOT reserved_for(p, 'refund', f.id) THEN
        RETURN 'its money is not held';
    END IF;
    IF refund_officers(f) > (SELECT count(*) FROM (SELECT u.id FROM approvals a JOIN users u ON u.id = a.officer_id
            WHERE a.object_type = 'refund' AND a.object_id = f.id AND a.action = 'approve' AND a.digest = f.digest AND u.is_active
                AND u.role IN ('admin', 'treasury') AND u.id IS DISTINCT FROM f.requested_by AND u.id IS DISTINCT FROM f.addressed_by
                AND u.id IS DISTINCT FROM f.dismissed_by FOR SHARE OF u) x) THEN
        RETURN 'too few persons agreed';
    END IF;
    IF EXISTS (SELECT FROM approvals a WHERE a.object_type = 'refund' AND a.object_id = f.id AND a.action = 'reject' AND a.digest = f.digest) THEN
        RETURN 'somebody refused it';
    END IF;
    RETURN '';
END $$;
-- +goose StatementEnd

-- Nobody asked for a refund that a flow opened. A person agrees once to one address, and anew to another one.
ALTER TABLE approval_tokens DROP CONSTRAINT approval_tokens_object_type_check,
    ADD CONSTRAINT approval_tokens_object_type_check CHECK (object_type IN ('transfer', 'refund'));
ALTER TABLE approvals
    DROP CONSTRAINT approvals_object_type_check,
    ADD CONSTRAINT approvals_object_type_check CHECK (object_type IN ('transfer', 'refund')),
    ALTER COLUMN requester_id DROP NOT NULL,
    ADD CONSTRAINT approvals_requester CHECK (requester_id IS NOT NULL OR object_type = 'refund'),
    DROP CONSTRAINT approvals_person_key,
    ADD CONSTRAINT approvals_person_key UNIQUE (object_type, object_id, officer_id, digest);

-- check_approval is as before for transfers. A refund is agreed to while it waits, as it stands, by who neither asked
-- for it nor gave its address, and by nobody whose order it is.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approval_tokens k WHERE k.id = NEW.token_id AND k.officer_id = NEW.officer_id
            AND k.object_type = NEW.object_type AND k.object_id = NEW.object_id AND k.action = NEW.action AND k.digest = NEW.digest
            AND k.used_at IS NOT NULL) THEN
        RAISE EXCEPTION 'approval % has no token of its officer for exactly its object', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'transfer' AND NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.requested_by = NEW.requester_id
            AND f.digest = NEW.digest AND f.status = 'pending_approval') THEN
        RAISE EXCEPTION 'approval % does not fit its transfer', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'refund' AND NOT EXISTS (SELECT FROM refunds f LEFT JOIN orders o ON o.id = f.order_id
            WHERE f.id = NEW.object_id AND f.rail = 'chain' AND f.address <> '' AND f.digest = NEW.digest AND f.status IN ('pending', 'needs_review')
                AND f.requested_by IS NOT DISTINCT FROM NEW.requester_id AND NEW.officer_id IS DISTINCT FROM f.requested_by
                AND NEW.officer_id IS DISTINCT FROM f.addressed_by AND NEW.officer_id IS DISTINCT FROM f.dismissed_by
                AND NEW.officer_id IS DISTINCT FROM o.customer_id AND NEW.officer_id IS DISTINCT FROM o.vendor_id) THEN
        RAISE EXCEPTION 'approval % does not fit its refund', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('treasury', 'admin')) THEN
        RAISE EXCEPTION 'approval % is by nobody who may approve', NEW.id USING ERRCODE = 'KV004';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- What a person asked for: money of an exception back, or an address for a refund that has none or one that can't be
-- used. The flow is told the id alone.
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
CREATE TRIGGER refund_requests_immutable BEFORE UPDATE OR DELETE ON refund_requests FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refund_requests_kept BEFORE TRUNCATE ON refund_requests FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT ON refund_policy TO kivuko_app;
        GRANT SELECT, INSERT ON refund_requests TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd

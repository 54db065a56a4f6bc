-- The fault of the chain payment of a refund.
CREATE OR REPLACE FUNCTION refund_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f refunds;
    o orders;
    r releases;
BEGIN
    SELECT * INTO f FROM refunds WHERE id = p.object_id FOR SHARE;
    IF NOT FOUND OR f.rail <> 'chain' OR f.status <> 'processing' OR (f.network, f.asset, f.amount, f.wallet_id, f.address, f.hold_id)
        IS DISTINCT FROM (p.network, p.asset, p.amount, p.wallet_id, p.to_address, p.hold_id) THEN
        RETURN 'it does not match its refund';
    END IF;
    IF reserved_for(p, 'order', f.order_id) THEN
        SELECT * INTO o FROM orders WHERE id = f.order_id FOR SHARE;
        IF o.status <> 'failed' OR EXISTS (SELECT FROM order_payouts y WHERE y.id = o.id AND y.status <> 'cancelled') THEN
            RETURN 'its order may be paid out';
        END IF;
        IF payee_attested(o.id) THEN
            RETURN 'two officers attested that its payee was paid';
        END IF;
        IF refund_ready_at(f) > clock_timestamp() THEN
            RETURN 'a payout of its order may have paid';
        END IF;
    ELSIF NOT reserved_for(p, 'refund', f.id) THEN
        RETURN 'its money is not held';
    END IF;
    SELECT * INTO r FROM releases WHERE purpose = 'refund' AND object_id = f.id AND passed_at IS NOT NULL AND ended_at IS NULL;
    IF NOT FOUND OR NOT release_matches(r) THEN
        RETURN 'it is not released';
    END IF;
    PERFORM lock_release(r);
    IF release_officers(r, clock_timestamp()) > release_approvals(r) THEN
        RETURN 'too few officers approved';
    END IF;
    IF EXISTS (SELECT FROM approvals a WHERE a.object_type = 'refund' AND a.object_id = f.id AND a.action = 'reject' AND a.digest = f.digest) THEN
        RETURN 'an officer refused it';
    END IF;
    RETURN '';
END $$;

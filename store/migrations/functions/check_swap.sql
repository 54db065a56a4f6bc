-- Each step of a swap follows from what is proven on the chain, from who asked for it, or from what two officers decided. Only the chain's
-- worker compares it with the ledger. Which holds it has by then is checked at the end of the transaction (check_swap_money).
CREATE OR REPLACE FUNCTION check_swap() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved   boolean := OLD.status <> NEW.status;
    decided boolean := NEW.resolution_id IS NOT NULL AND NEW.resolution_id IS DISTINCT FROM OLD.resolution_id;
    fault   text;
BEGIN
    fault := CASE
        WHEN decided AND NOT (moved AND OLD.status = 'needs_review' AND EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.resolution_id AND c.kind = 'swap_resolution'
                AND c.applied_in = pg_current_xact_id() AND c.change ->> 'swap_id' = NEW.id::text
                AND c.change ->> 'outcome' = CASE NEW.status WHEN 'completed' THEN 'accept_difference' WHEN 'refunding' THEN 'refund' END)) THEN 'is resolved by nobody'
        WHEN NEW.return_hold_id IS DISTINCT FROM OLD.return_hold_id AND NOT (moved AND NEW.status = 'collected') THEN 'collects nothing now'
        WHEN NEW.collected_at IS DISTINCT FROM OLD.collected_at AND NEW.collected_at < clock_timestamp() - interval '1 minute' THEN 'was not collected earlier'
        WHEN NOT moved AND NEW.difference IS DISTINCT FROM OLD.difference AND NEW.status <> 'needs_review' THEN 'has no difference'
        WHEN moved THEN CASE NEW.status
            WHEN 'collecting' THEN CASE WHEN NOT EXISTS (SELECT FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id AND p.purpose = 'swap_collect' AND p.object_id = NEW.id)
                THEN 'has no signed transaction' END
            WHEN 'cancelled' THEN CASE
                WHEN NOT (swap_party_gone(NEW) OR EXISTS (SELECT FROM approvals a WHERE a.object_type = 'swap' AND a.object_id = NEW.id AND a.action = 'reject' AND a.digest = NEW.digest)
                    OR EXISTS (SELECT FROM intents i JOIN users u ON u.id = i.user_id AND u.is_active WHERE i.object_id = NEW.id AND i.kind = 'swap.cancel' AND i.used_in = pg_current_xact_id()
                        AND (u.role IN ('admin', 'treasury') OR swap_wallet(NEW.wallet_id, u.id)))) THEN 'is cancelled by nobody' END
            WHEN 'expired' THEN CASE WHEN NEW.expires_at > clock_timestamp() + interval '5 seconds' THEN 'has time left' END
            WHEN 'paying_out' THEN CASE WHEN NOT swap_paid(NEW.id, 'swap_collect') THEN 'is not collected' END
            WHEN 'refunding' THEN CASE
                WHEN put_back() THEN 'may have been paid before the database was put back'
                WHEN OLD.status = 'needs_review' AND NOT decided THEN 'is refunded by nobody'
                WHEN OLD.status <> 'needs_review' AND NEW.collected_at + interval '30 minutes' > clock_timestamp() THEN 'may still be paid' END
            WHEN 'syncing' THEN CASE WHEN OLD.status_detail = 'balances_differ' AND current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer') THEN 'was not compared' END
            WHEN 'completed' THEN CASE
                WHEN OLD.status = 'needs_review' AND NOT decided THEN 'differs'
                WHEN OLD.status = 'syncing' AND current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer') THEN 'was not compared' END
        END
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'swap % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

-- Each step of a withdrawal is that of a person who asked for it, was active and had the role then, or of what is proven; see
-- decision 58. Its requester, the officers who approve and the one who executes are apart.
CREATE OR REPLACE FUNCTION check_withdrawal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fault text;
    moved boolean := OLD.status <> NEW.status;
    ended boolean := moved AND NEW.status IN ('rejected', 'cancelled', 'failed');
BEGIN
    IF moved AND NEW.status = 'confirming' AND withdrawal_party_gone(NEW) THEN
        RAISE EXCEPTION 'withdrawal % is of an account that is switched off', NEW.id USING ERRCODE = 'KV058';
    END IF;
    IF moved AND NEW.status = 'confirming' AND NEW.method = 'bank' AND put_back() THEN
        RAISE EXCEPTION 'withdrawal % may have been paid before the database was put back', NEW.id USING ERRCODE = 'KV055';
    END IF;
    fault := CASE
        WHEN NEW.hold_id <> OLD.hold_id AND (NEW.sold_at IS NULL OR OLD.sold_at IS NOT NULL) THEN 'has other money'
        WHEN NEW.sold_at IS NOT NULL AND OLD.sold_at IS NULL AND (OLD.status <> 'executing' OR NEW.hold_id = OLD.hold_id) THEN 'sells nothing now'
        WHEN NEW.house_hold_id IS DISTINCT FROM OLD.house_hold_id AND (OLD.house_hold_id IS NOT NULL OR NEW.status <> 'executing' OR OLD.sold_at IS NOT NULL)
            THEN 'buys nothing now'
        WHEN NEW.bank_hold_id IS DISTINCT FROM OLD.bank_hold_id AND NOT (moved AND NEW.status = 'confirming' AND NEW.bank_hold_id IS NOT NULL) THEN 'reserves nothing at a bank now'
        WHEN moved AND OLD.status = 'on_hold' AND NEW.status IN ('requested', 'pending_approval')
            AND (NEW.status <> CASE OLD.held_from WHEN 'requested' THEN 'requested' ELSE 'pending_approval' END
                OR NOT withdrawal_asked(NEW.id, 'unhold', intent_asker(NEW.id, 'withdrawal.unhold'), '{admin,treasury}')) THEN 'was not held as ' || NEW.status
        WHEN moved AND NEW.status = 'on_hold' AND (NEW.held_from <> OLD.status OR NOT withdrawal_asked(NEW.id, 'hold', intent_asker(NEW.id, 'withdrawal.hold'), '{admin,otc_officer,treasury}'))
            THEN 'is held by nobody'
        WHEN moved AND NEW.status = 'pending_approval' AND OLD.status = 'requested' AND NOT withdrawal_cleared(NEW) THEN 'is not cleared by a screening'
        WHEN moved AND NEW.status = 'cancelled' AND NOT (NEW.ended_by IS NULL AND (NEW.created_at + interval '7 days' <= clock_timestamp() OR withdrawal_party_gone(NEW))
            OR withdrawal_asked(NEW.id, 'cancel', NEW.ended_by, '{vendor,subvendor}')) THEN 'is cancelled by nobody'
        WHEN moved AND NEW.status = 'rejected' AND NOT (NEW.ended_by IS NULL AND OLD.status = 'requested' AND NOT withdrawal_cleared(NEW)
            OR EXISTS (SELECT FROM approvals a WHERE a.object_type = 'otc_withdrawal' AND a.object_id = NEW.id AND a.action = 'reject' AND a.digest = NEW.digest AND a.officer_id = NEW.ended_by))
            THEN 'is rejected by nobody'
        WHEN moved AND NEW.status = 'approved' AND OLD.status = 'pending_approval' AND NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'withdrawal' AND r.object_id = NEW.id
            AND r.ended_at IS NULL AND NOT release_lacks(r)) THEN 'lacks officers'
        WHEN NEW.executed_by IS DISTINCT FROM OLD.executed_by AND NOT (moved AND (OLD.status = 'approved' AND NEW.status = 'executing' OR NEW.status = 'approved'))
            THEN 'is executed by nobody now'
        WHEN moved AND NEW.status = 'confirming' AND NEW.method = 'bank' AND NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'withdrawal' AND r.object_id = NEW.id
            AND r.ended_at IS NULL AND r.passed_in = pg_current_xact_id()) THEN 'is not released'
        WHEN moved AND NEW.status = 'approved' AND OLD.executed_by IS NOT NULL AND NEW.method <> 'chain' THEN 'is executed once'
        WHEN (ended OR moved AND NEW.status = 'approved') AND OLD.executed_by IS NOT NULL AND withdrawal_alive(OLD) IS NOT NULL THEN withdrawal_alive(OLD)
        WHEN moved AND NEW.status = 'failed' AND NOT (EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.failure_id AND c.kind = 'withdrawal_failure'
                AND c.applied_in = pg_current_xact_id() AND c.change ->> 'withdrawal_id' = NEW.id::text)
            OR NEW.failure_id IS NULL AND OLD.status = 'needs_review' AND NEW.method = 'momo' AND (SELECT a.result_class IN ('payee', 'declared') FROM payment_attempts a
                WHERE a.object_type = 'otc_withdrawal' AND a.object_id = NEW.id ORDER BY a.created_at DESC, a.id DESC LIMIT 1)) THEN 'is given up by nobody'
    END;
    fault := coalesce(fault,
        CASE WHEN moved AND OLD.status = 'approved' AND NEW.status = 'executing' THEN check_withdrawal_execution(NEW) END,
        CASE WHEN (NEW.transfer_intent_id, NEW.transfer_id) IS DISTINCT FROM (OLD.transfer_intent_id, OLD.transfer_id) THEN check_withdrawal_transfer(OLD, NEW) END,
        CASE WHEN moved AND NEW.status = 'completed' THEN check_withdrawal_paid(NEW) END);
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'withdrawal % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

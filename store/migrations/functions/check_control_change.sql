-- Checks the roles of a change's proposer and decider. Both are locked, so that an account that is being deactivated
-- at this moment does not count. A treasury officer may propose changes that concern the treasury. An officer whose
-- own role's limits change benefits from it and can't confirm it. House money (journal entries, sweeps of earned fees) is the treasury
-- officers' alone.
CREATE OR REPLACE FUNCTION check_control_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decider text;
BEGIN
    NEW.applied_in := NULL;
    PERFORM FROM users WHERE id = NEW.proposed_by AND is_active AND ((role = 'admin' AND NEW.kind NOT IN ('journal_entry', 'fee_sweep', 'fee_sweep_rule'))
        OR (role = 'treasury' AND NEW.kind IN ('journal_entry', 'fee_sweep', 'fee_sweep_rule', 'momo_terms', 'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'bank_day', 'withdrawal_failure', 'line_freed', 'inventory_allocation', 'bank_refund', 'bank_refund_failure', 'bank_payout_refusal', 'swap_marks', 'swap_resolution', 'multisig_wallet'))) FOR SHARE;
    IF NOT FOUND AND NEW.status <> 'rejected' THEN
        RAISE EXCEPTION 'change % needs an active proposer with the right role', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        SELECT role INTO decider FROM users WHERE id = NEW.decided_by AND is_active AND role IN ('admin', 'treasury')
            AND (NEW.status = 'rejected' OR NEW.kind NOT IN ('journal_entry', 'fee_sweep', 'fee_sweep_rule') OR role = 'treasury') FOR SHARE;
        IF decider IS NULL THEN
            RAISE EXCEPTION 'the officer may not decide about change %', NEW.id USING ERRCODE = 'KV006';
        END IF;
        IF NEW.status = 'confirmed' THEN
            IF coalesce(NEW.change -> 'roles' ? decider, false) THEN
                RAISE EXCEPTION 'change % is confirmed by an officer who benefits from it', NEW.id USING ERRCODE = 'KV006';
            END IF;
            NEW.applied_in := pg_current_xact_id();
        END IF;
    END IF;
    RETURN NEW;
END $$;

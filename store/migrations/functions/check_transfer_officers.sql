-- A queued transfer has approvals of officers who may approve now, not only in the past. They are locked, so that none
-- of them is deactivated at the same moment.
CREATE OR REPLACE FUNCTION check_transfer_officers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.approvals_required > (SELECT count(*) FROM (SELECT u.id FROM approvals a JOIN users u ON u.id = a.officer_id
            WHERE a.object_type = 'transfer' AND a.object_id = NEW.id AND a.action = 'approve' AND a.digest = NEW.digest
                AND u.is_active AND u.role IN ('admin', 'treasury') FOR SHARE OF u) x) THEN
        RAISE EXCEPTION 'transfer % lacks approvals of active officers', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

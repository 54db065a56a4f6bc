-- A payment to an account of several owners is neither approved nor signed while its owners on the final chain are others than were agreed. One
-- found on the final chain is already made.
CREATE OR REPLACE FUNCTION refuse_other_owners() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM multisig_accounts a WHERE a.network = NEW.network AND a.address = NEW.to_address AND a.status = 'differs')
            AND NOT EXISTS (SELECT FROM chain_attempts t WHERE t.payment_id = NEW.id AND t.adopted AND t.status = 'included') THEN
        RAISE EXCEPTION 'payment % goes to an account with other owners than were agreed', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

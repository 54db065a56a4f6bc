-- A payout by mobile money pays exactly what its withdrawal owes now.
CREATE OR REPLACE FUNCTION check_withdrawal_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM otc_withdrawals w JOIN otc_destinations d ON d.id = w.destination_id WHERE w.id = NEW.object_id AND w.method = 'momo' AND w.status = 'confirming' AND NOT w.claimed
        AND (w.payout_asset, w.payout_amount, d.phone) = (NEW.asset, NEW.amount, NEW.phone) FOR SHARE OF w;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % does not pay out what its withdrawal owes now', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

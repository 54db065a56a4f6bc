-- A chain payment of a transfer pays exactly what was approved. The row is written in the transaction that queues the
-- transfer.
CREATE OR REPLACE FUNCTION check_transfer_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.status = 'queued' AND f.network = NEW.network AND f.asset = NEW.asset
            AND f.amount = NEW.amount AND f.wallet_id = NEW.wallet_id AND f.from_address = NEW.from_address AND f.to_address = NEW.to_address
            AND f.hold_id = NEW.hold_id) THEN
        RAISE EXCEPTION 'chain payment % does not match its transfer', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

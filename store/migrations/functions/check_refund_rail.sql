-- Mobile money pays no refund that goes back on a chain.
CREATE OR REPLACE FUNCTION check_refund_rail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM refunds f WHERE f.id = NEW.refund_id AND f.rail = 'momo') THEN
        RAISE EXCEPTION 'payment attempt % pays no refund of its rail', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

-- A deposit's money is booked with it: what came at a bank by an entry and from the operator by a collection, and where it went when the
-- deposit was credited or ended. Money of a deposit that ended without crediting it is a payment exception.
CREATE OR REPLACE FUNCTION check_deposit_booked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (CASE NEW.method WHEN 'bank' THEN deposit_entry(NEW, 'received')
            ELSE EXISTS (SELECT FROM collections c WHERE c.object_type = 'otc_deposit' AND c.object_id = NEW.id AND c.receipt = NEW.momo_receipt AND c.amount = NEW.received_amount) END)
        OR (NEW.statement_line_id IS NOT NULL AND NOT EXISTS (SELECT FROM bank_lines l WHERE l.id = NEW.statement_line_id AND l.object_type = 'otc_deposit' AND l.object_id = NEW.id))
        OR (NEW.status IN ('credited', 'audited') AND NOT deposit_entry(NEW, CASE NEW.asset WHEN 'KES' THEN 'settled' ELSE 'sold' END))
        OR (NEW.status IN ('rejected', 'cancelled') AND NOT (deposit_entry(NEW, 'returned')
            AND EXISTS (SELECT FROM payment_exceptions x WHERE x.deposit_id = NEW.id AND x.line_id IS NULL AND x.amount = NEW.received_amount))) THEN
        RAISE EXCEPTION 'deposit % is not booked as it is %', NEW.id, NEW.status USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;

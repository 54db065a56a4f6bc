-- The API changes transfers, transactions and drafts only for the payment that a quarantined movement was, in the transaction
-- in which a second officer confirms that. The argument is the column with the id of the payment or of its object.
CREATE OR REPLACE FUNCTION check_adopter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c JOIN chain_payments p ON p.id::text = c.change ->> 'payment_id'
        WHERE c.kind = 'quarantine_settled' AND c.applied_in = pg_current_xact_id() AND to_jsonb(NEW) ->> TG_ARGV[0] IN (p.id::text, p.object_id::text);
    IF NOT FOUND THEN
        RAISE EXCEPTION '% changes no %', current_user, TG_TABLE_NAME USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

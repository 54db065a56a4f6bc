-- A journal entry is written in the transaction in which a second treasury officer confirmed exactly it. A correction undoes
-- an entry that is no correction, and that no line is being matched with at this moment (see guard_line_match).
CREATE OR REPLACE FUNCTION check_journal_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'journal_entry' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.proposed_by AND c.decided_by = NEW.confirmed_by
        AND c.change ->> 'id' = NEW.id::text AND c.change ->> 'journal_kind' = NEW.kind AND c.change ->> 'note' = NEW.note
        AND (c.change ->> 'amount')::numeric = NEW.amount AND c.change ->> 'currency' = NEW.asset AND (c.change ->> 'value_date')::date = NEW.value_date
        AND (c.change ->> 'bank_account_id') IS NOT DISTINCT FROM NEW.bank_account_id::text
        AND (c.change ->> 'float_account') IS NOT DISTINCT FROM NEW.float_account
        AND (c.change ->> 'statement_line_id') IS NOT DISTINCT FROM NEW.line_id::text
        AND (c.change ->> 'file_id') IS NOT DISTINCT FROM NEW.file_id::text
        AND (c.change ->> 'corrects') IS NOT DISTINCT FROM NEW.corrects::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed journal entry %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko journal entry ' || NEW.corrects, 0)) WHERE NEW.corrects IS NOT NULL;
    IF NEW.kind = 'correction' AND NOT EXISTS (SELECT FROM journal_entries o WHERE o.id = NEW.corrects AND o.kind <> 'correction'
            AND o.amount = NEW.amount AND (o.bank_account_id, o.float_account) IS NOT DISTINCT FROM (NEW.bank_account_id, NEW.float_account)) THEN
        RAISE EXCEPTION 'journal entry % does not undo entry %', NEW.id, NEW.corrects USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

-- A line is matched with an object that moved exactly its money at its bank, and with nothing while an officer has decided about
-- it; it is freed when that object was a mistake, or two officers say so of a payout that an officer named by hand, none of whom brought
-- its statement in; and is aside under an open exception. Money did not leave before what it was for was there.
CREATE OR REPLACE FUNCTION check_bank_line() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fits boolean;
BEGIN
    fits := CASE NEW.status
        WHEN 'matched' THEN NOT EXISTS (SELECT FROM payment_exceptions x WHERE x.line_id = NEW.id AND x.status <> 'matched')
            AND line_in_time(NEW, NEW.object_type, NEW.object_id)
            AND NOT line_typed(NEW, CASE NEW.object_type WHEN 'otc_deposit' THEN NEW.object_id END)
            AND CASE NEW.object_type
                WHEN 'journal_entry' THEN EXISTS (SELECT FROM journal_entries j WHERE j.id = NEW.object_id AND j.bank_account_id = NEW.bank_account_id
                    AND j.asset = NEW.asset AND j.amount = NEW.amount AND journal_side(j) = NEW.side AND coalesce(j.line_id, NEW.id) = NEW.id)
                WHEN 'bank_payout' THEN NEW.side = 'debit' AND EXISTS (SELECT FROM order_payouts p JOIN holds h ON h.id = p.hold_id JOIN ledger_accounts a ON a.id = h.account_id
                    WHERE p.id = NEW.object_id AND p.rail = 'bank' AND p.status = 'completed' AND p.asset = NEW.asset AND p.amount = NEW.amount
                        AND a.owner_id = NEW.bank_account_id AND (NEW.matched_by IS NOT NULL OR p.receipt IN (NEW.bank_reference, NEW.reference_code)))
                WHEN 'otc_withdrawal' THEN NEW.side = 'debit' AND EXISTS (SELECT FROM otc_withdrawals w JOIN holds h ON h.id = w.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id
                    WHERE w.id = NEW.object_id AND w.status = 'completed' AND w.payout_amount = NEW.amount AND NEW.asset = 'KES' AND a.owner_id = NEW.bank_account_id
                        AND (NEW.matched_by IS NOT NULL OR w.receipt IN (NEW.bank_reference, NEW.reference_code)))
                WHEN 'bank_refund' THEN NEW.side = 'debit' AND EXISTS (SELECT FROM refunds f JOIN holds h ON h.id = f.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id
                    WHERE f.id = NEW.object_id AND f.status = 'completed' AND f.amount = NEW.amount AND NEW.asset = 'KES' AND a.owner_id = NEW.bank_account_id
                        AND (NEW.matched_by IS NOT NULL OR f.receipt IN (NEW.bank_reference, NEW.reference_code)))
                WHEN 'otc_deposit' THEN NEW.side = 'credit' AND EXISTS (SELECT FROM otc_deposits d WHERE d.id = NEW.object_id AND d.statement_line_id = NEW.id
                        AND d.bank_account_id = NEW.bank_account_id AND d.received_amount = NEW.amount AND NEW.asset = 'KES'
                        AND NOT EXISTS (SELECT FROM otc_deposits o WHERE o.payment_reference = substring(NEW.reference_code FROM 'KVD[0-9A-Z]{9}') AND o.merchant_id <> d.merchant_id))
            END
        WHEN 'new' THEN CASE OLD.object_type
            WHEN 'journal_entry' THEN EXISTS (SELECT FROM journal_entries c WHERE c.corrects = OLD.object_id AND c.line_id IS NULL)
            ELSE OLD.object_type IN ('bank_payout', 'otc_withdrawal', 'bank_refund') AND OLD.matched_by IS NOT NULL AND EXISTS (SELECT FROM control_changes c
                WHERE c.kind = 'line_freed' AND c.applied_in = pg_current_xact_id() AND c.change ->> 'line_id' = OLD.id::text AND c.was ->> 'object_id' = OLD.object_id::text
                    AND NOT EXISTS (SELECT FROM bank_statements s JOIN files f ON f.id = s.file_id WHERE s.id = OLD.statement_id
                        AND (c.proposed_by IN (s.imported_by, f.uploaded_by) OR c.decided_by IN (s.imported_by, f.uploaded_by))))
                AND NOT EXISTS (SELECT FROM otc_withdrawals w WHERE w.statement_line_id = OLD.id) AND NOT EXISTS (SELECT FROM refunds f WHERE f.statement_line_id = OLD.id) END
        ELSE EXISTS (SELECT FROM payment_exceptions x WHERE x.line_id = NEW.id AND x.status = 'open')
    END;
    IF NOT coalesce(fits, false) THEN
        RAISE EXCEPTION 'line % can''t be %', NEW.id, NEW.status USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;

-- Keeps an account's held equal to the sum of its holds, as apply_new_holds does.
CREATE OR REPLACE FUNCTION apply_changed_holds() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE ledger_accounts a SET held = a.held + d.sum, updated_at = now()
        FROM (SELECT account_id, sum(change) AS sum FROM (
                SELECT account_id, CASE WHEN status = 'held' THEN amount ELSE 0 END AS change FROM new_holds
                UNION ALL
                SELECT account_id, CASE WHEN status = 'held' THEN -amount ELSE 0 END FROM old_holds) c
              GROUP BY account_id) d
        WHERE a.id = d.account_id AND d.sum <> 0;
    RETURN NULL;
END $$;

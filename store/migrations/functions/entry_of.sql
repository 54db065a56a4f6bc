-- The id of the ledger entry with a key. Entries lie in parts by their ids, so a search by the key itself would go through all of them.
CREATE OR REPLACE FUNCTION entry_of(key text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT k.entry_id FROM ledger_keys k WHERE k.key = $1
$$;

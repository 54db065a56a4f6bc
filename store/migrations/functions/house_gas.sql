-- gas_share of a wallet where the house's coins are kept apart from its owner's. It is negative when the house owes the wallet coins. NULL
-- where nothing is kept apart: in the house's own wallets, and in cold ones, whose transactions are signed on the cold machine.
CREATE OR REPLACE FUNCTION house_gas(wallet uuid, payment uuid) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT gas_share(w.id, payment) FROM wallets w WHERE w.id = wallet AND w.owner_id IS NOT NULL AND w.type = 'hot');
END $$;

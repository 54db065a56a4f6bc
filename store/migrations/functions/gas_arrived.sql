-- Reports whether the gas of a top-up is in a block, so that payments are signed with it although it is not final.
CREATE OR REPLACE FUNCTION gas_arrived(payment uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM chain_attempts a JOIN gas_arrivals g ON g.attempt_id = a.id AND g.block_id = a.block_id
        WHERE a.payment_id = payment AND a.status = 'included');
END $$;

-- Reports whether a payment attempt prompts nobody: a merchant pays our number by hand, under the reference of its deposit.
CREATE OR REPLACE FUNCTION by_hand(a payment_attempts) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM otc_deposits d WHERE d.id = a.deposit_id AND d.method = 'c2b')
$$;

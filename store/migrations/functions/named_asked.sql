-- Reports whether an officer said, by an intent that the deposit's flow used, that a payment to our number is a deposit's money.
CREATE OR REPLACE FUNCTION named_asked(deposit uuid, payment uuid, person uuid) RETURNS boolean LANGUAGE sql AS $$
    SELECT deposit_asked(deposit, 'match', person, '{admin,otc_officer}')
        AND EXISTS (SELECT FROM intents i WHERE i.object_id = deposit AND i.kind = 'deposit.match' AND i.user_id = person AND i.used_at IS NOT NULL
            AND convert_from(i.statement, 'UTF8')::jsonb -> 'terms' ->> 'payment_id' = payment::text)
$$;

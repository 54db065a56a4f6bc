-- Nothing more is reserved in an overdrawn payout float before it is replenished.
CREATE OR REPLACE FUNCTION refuse_float_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the payout float has too little' USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_accounts_available';
END $$;

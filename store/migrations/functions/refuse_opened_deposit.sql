-- What moved up to the block of the opening balance of an account of several owners is part of that balance.
CREATE OR REPLACE FUNCTION refuse_opened_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM multisig_accounts a WHERE a.id IN (NEW.wallet_id, NEW.from_wallet_id) AND a.opened_block >= NEW.block) THEN
        RAISE EXCEPTION 'movement % is part of the opening balance of its wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

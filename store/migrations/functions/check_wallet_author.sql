-- The chain worker adds only a counterpart: another network's form of an address of ours, where money was found. All other wallets
-- are made by the signer, which has their keys.
CREATE OR REPLACE FUNCTION check_wallet_author() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'kivuko_chain' AND NEW.purpose <> 'counterpart' THEN
        RAISE EXCEPTION 'the chain worker makes no wallet' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

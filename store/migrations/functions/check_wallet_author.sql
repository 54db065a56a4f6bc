-- The chain worker adds only what it found on the chain: a counterpart, which is another network's form of an address of ours where money was
-- found, and an account of several owners. All other wallets are made by the signer, which has their keys.
CREATE OR REPLACE FUNCTION check_wallet_author() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'kivuko_chain' AND NEW.purpose NOT IN ('counterpart', 'multisig') THEN
        RAISE EXCEPTION 'the chain worker makes no wallet' USING ERRCODE = '42501';
    END IF;
    IF current_user = 'kivuko_signer' AND NEW.purpose = 'multisig' THEN
        RAISE EXCEPTION 'the signer does not read who owns an account' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

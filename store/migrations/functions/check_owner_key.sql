-- The key of an owner is made once, while its account is prepared or when a change that brings the owner is released, and only where ours is agreed. A new seal holds the key of the seal before
-- it, under another master key.
CREATE OR REPLACE FUNCTION check_owner_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seal = 1 THEN
        PERFORM FROM multisig_owners o JOIN multisig_accounts a ON a.id = o.account_id WHERE (o.account_id, o.n) = (NEW.account_id, NEW.n) AND o.held
            AND CASE o.standing WHEN 'agreed' THEN a.status = 'preparing' WHEN 'coming' THEN proposal_released(o.brought_by) ELSE false END;
    ELSE
        PERFORM FROM multisig_owner_keys k WHERE (k.account_id, k.n) = (NEW.account_id, NEW.n) AND k.seal = NEW.seal - 1
            AND k.public_key = NEW.public_key AND k.algorithm = NEW.algorithm AND k.master_key <> NEW.master_key;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'key % of owner % of account % is not the owner''s', NEW.seal, NEW.n, NEW.account_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

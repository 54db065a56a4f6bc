-- Bytes with a nonce account must be those that were handed out, with the same account and value, and with the owner's
-- signature; or those that several owners signed, as an officer had them executed.
CREATE OR REPLACE FUNCTION refuse_other_nonce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cold_drafts d WHERE d.payment_id = NEW.payment_id AND d.attempt_id = NEW.id AND d.part IS NOT NULL
        AND (d.nonce_account, d.nonce_block, d.ref_block) = (NEW.nonce_account, NEW.nonce_block, NEW.ref_block);
    IF FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM FROM multisig_payloads y JOIN multisig_proposals p ON p.payload_id = y.id WHERE y.payment_id = NEW.payment_id AND y.status = 'open'
        AND (y.nonce_account, y.ref_block) = (NEW.nonce_account, NEW.ref_block);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % uses a nonce account and was not handed out', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

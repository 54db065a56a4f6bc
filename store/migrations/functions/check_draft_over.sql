-- A draft ends when its network can't include it any more: it has expired and the nodes were queried after that, a
-- final transaction of ours used its number (or the number was handed out again, so that the next draft is checked
-- instead), or its nonce account was advanced for it.
CREATE OR REPLACE FUNCTION check_draft_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.evidence = '' THEN
        RAISE EXCEPTION 'draft % is not proven impossible', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.nonce_account <> '' AND NOT EXISTS (SELECT FROM chain_payments WHERE purpose = 'nonce_advance' AND object_id = NEW.id AND status = 'completed') THEN
        RAISE EXCEPTION 'draft % may still be included: its nonce account was not advanced', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.nonce_wallet IS NOT NULL
        AND NOT EXISTS (SELECT FROM chain_attempts WHERE nonce_wallet = NEW.nonce_wallet AND nonce = NEW.nonce AND status IN ('succeeded', 'failed'))
        AND NOT EXISTS (SELECT FROM cold_drafts WHERE payment_id = NEW.payment_id AND nonce_wallet = NEW.nonce_wallet AND nonce = NEW.nonce AND status IN ('open', 'signed')) THEN
        RAISE EXCEPTION 'draft % may still be included: no final transaction has its number', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.nonce_account = '' AND NEW.nonce_wallet IS NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > clock_timestamp()) THEN
        RAISE EXCEPTION 'draft % may still be included: it has not expired', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;

-- Only stored signed bytes are ever sent. The only signed bytes of a cold wallet's payment are those imported for its
-- draft, whatever the service does. A payment that the watch found on the chain needs none; but an open draft that
-- could pay a second time, or may be that payment, has to be imported first. A wallet of several owners has no key: what is sent of it has
-- the signatures of its owners, which an officer had executed.
CREATE OR REPLACE FUNCTION refuse_cold_signature() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.adopted THEN
        PERFORM FROM cold_drafts WHERE payment_id = NEW.payment_id AND status IN ('open', 'closing');
        IF FOUND THEN
            RAISE EXCEPTION 'a transaction of payment % was handed out and may come back signed', NEW.payment_id USING ERRCODE = 'KV001';
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM chain_attempts a WHERE a.network = NEW.network AND a.tx_id = NEW.tx_id AND a.adopted;
    IF FOUND THEN
        RAISE EXCEPTION 'transaction % is that of another payment', NEW.tx_id USING ERRCODE = 'unique_violation';
    END IF;
    -- The end of a payload takes the same lock, so that it sees this transaction, or this sees the end.
    IF EXISTS (SELECT FROM chain_payments p WHERE p.id = NEW.payment_id AND p.purpose = 'proposal') THEN
        PERFORM FROM multisig_proposals s WHERE s.id = (SELECT p.object_id FROM chain_payments p WHERE p.id = NEW.payment_id) FOR NO KEY UPDATE;
    END IF;
    PERFORM FROM chain_payments p WHERE p.id = NEW.payment_id AND p.purpose = 'proposal' AND NOT (proposal_executable(p.id)
        AND (p.network <> 'tron' OR NEW.tx_id = (SELECT y.joint_id FROM multisig_proposals s JOIN multisig_payloads y ON y.id = s.payload_id WHERE s.id = p.object_id)));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % is of a wallet of several owners, and they did not sign this', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM chain_payments p JOIN wallets w ON w.id = p.wallet_id WHERE p.id = NEW.payment_id AND w.type = 'cold' AND p.purpose <> 'proposal'
        AND NOT EXISTS (SELECT FROM cold_drafts d WHERE d.payment_id = p.id AND d.attempt_id = NEW.id AND d.tx_id IN ('', NEW.tx_id)
            AND (d.nonce_wallet, d.nonce) IS NOT DISTINCT FROM (NEW.nonce_wallet, NEW.nonce));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % is of a cold wallet, whose key never signs online', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM chain_payments p JOIN wallets w ON w.id = p.fee_wallet_id WHERE p.id = NEW.payment_id AND w.type = 'cold';
    IF FOUND THEN
        RAISE EXCEPTION 'the fee of payment % is of a cold wallet, whose key never signs online', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

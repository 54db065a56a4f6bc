-- Checks payments for nonce accounts, for which nothing is reserved: small ones from the house's gas wallet. One is advanced to make a
-- handed-out transaction impossible, or what several owners sign for a proposal that is to end.
CREATE OR REPLACE FUNCTION check_nonce_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.network <> 'solana' OR NEW.asset <> 'SOL' OR NEW.fee_wallet_id IS NOT NULL OR NOT EXISTS (SELECT FROM wallets w
            WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot') THEN
        RAISE EXCEPTION 'chain payment % for a nonce account must be from the gas wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'nonce_account' AND (NEW.amount > 0.01 OR NOT EXISTS (SELECT FROM wallets w
            WHERE w.id = NEW.object_id AND w.network = NEW.network AND w.type = 'cold' AND w.custody <> 'multisig')
            AND NOT EXISTS (SELECT FROM multisig_proposals s JOIN chain_payments p ON p.purpose = 'proposal' AND p.object_id = s.id
                WHERE s.id = NEW.object_id AND s.network = NEW.network AND s.ending IS NULL AND p.status = 'approved' AND p.fee_wallet_id = NEW.wallet_id)) THEN
        RAISE EXCEPTION 'chain payment % does not open a nonce account of a cold wallet, or of a proposal that is signed', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'nonce_advance' AND (NEW.amount > 0.000000001 OR NOT EXISTS (SELECT FROM cold_drafts d JOIN chain_payments p ON p.id = d.payment_id
            WHERE d.id = NEW.object_id AND d.status = 'closing' AND d.nonce_account = NEW.to_address AND p.fee_wallet_id = NEW.wallet_id)
            AND NOT EXISTS (SELECT FROM multisig_payloads y JOIN multisig_proposals s ON s.id = y.proposal_id JOIN chain_payments p ON p.id = y.payment_id
                WHERE y.id = NEW.object_id AND y.status = 'open' AND s.ending IS NOT NULL AND y.nonce_account = NEW.to_address AND p.fee_wallet_id = NEW.wallet_id)) THEN
        RAISE EXCEPTION 'chain payment % does not advance the nonce account of a withdrawn draft or payload', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

-- Checks payments for nonce accounts, for which nothing is reserved: small ones from the house's gas wallet.
CREATE OR REPLACE FUNCTION check_nonce_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.network <> 'solana' OR NEW.asset <> 'SOL' OR NEW.fee_wallet_id IS NOT NULL OR NOT EXISTS (SELECT FROM wallets w
            WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot') THEN
        RAISE EXCEPTION 'chain payment % for a nonce account must be from the gas wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'nonce_account' AND (NEW.amount > 0.01 OR NOT EXISTS (SELECT FROM wallets w
            WHERE w.id = NEW.object_id AND w.network = NEW.network AND w.type = 'cold' AND w.custody = 'custodial')) THEN
        RAISE EXCEPTION 'chain payment % does not open a nonce account of a cold wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'nonce_advance' AND (NEW.amount > 0.000000001 OR NOT EXISTS (SELECT FROM cold_drafts d JOIN chain_payments p ON p.id = d.payment_id
            WHERE d.id = NEW.object_id AND d.status = 'closing' AND d.nonce_account = NEW.to_address AND p.fee_wallet_id = NEW.wallet_id)) THEN
        RAISE EXCEPTION 'chain payment % does not advance the nonce account of a withdrawn draft', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

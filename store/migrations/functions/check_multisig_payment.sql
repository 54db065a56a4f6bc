-- A payment that opens an account of several owners is small, from the house's gas wallet, because nothing is reserved for it, and goes to the
-- account that is being opened, also when it is signed. On Ethereum it moves nothing; on Solana it pays what the account must hold, and on TRON the fee for giving it to its
-- owners. There a further one may follow, when the ones before are completed and no transaction gives the account away.
CREATE OR REPLACE FUNCTION check_multisig_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.fee_wallet_id IS NOT NULL OR NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL AND w.purpose = 'gas'
            AND w.type = 'hot' AND w.custody = 'custodial') THEN
        RAISE EXCEPTION 'chain payment % that opens an account must be from the gas wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT coalesce(CASE NEW.network WHEN 'ethereum' THEN NEW.asset = 'ETH' AND NEW.amount = 0 WHEN 'solana' THEN NEW.asset = 'SOL' AND NEW.amount > 0 AND NEW.amount <= 0.01
            WHEN 'tron' THEN NEW.asset = 'TRX' AND NEW.amount > 0 AND NEW.amount <= 250 END, false) THEN
        RAISE EXCEPTION 'chain payment % moves more than opening an account needs', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (SELECT FROM multisig_accounts a WHERE a.id = NEW.object_id AND a.status = 'opening' AND (a.network, a.address) = (NEW.network, NEW.to_address)) THEN
        RAISE EXCEPTION 'chain payment % opens no account that two officers agreed to', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.n <> (SELECT count(*) + 1 FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = NEW.object_id AND p.id <> NEW.id AND p.status = 'completed')
            OR TG_OP = 'INSERT' AND EXISTS (SELECT FROM multisig_handovers h WHERE h.account_id = NEW.object_id AND h.status <> 'expired') THEN
        RAISE EXCEPTION 'chain payment % comes beside what opens its account already', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

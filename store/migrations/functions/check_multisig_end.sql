-- At the end of the transaction an account that is being opened has its payment, and one that is active is a wallet, which is what the account
-- is. No other wallet has several owners.
CREATE OR REPLACE FUNCTION check_multisig_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    a multisig_accounts;
BEGIN
    SELECT * INTO a FROM multisig_accounts WHERE id = NEW.id;
    IF a.status = 'opening' AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = a.id) THEN
        RAISE EXCEPTION 'account % is being opened without a payment', a.id USING ERRCODE = 'KV002';
    END IF;
    IF (coalesce(a.status, '') IN ('active', 'differs') OR TG_TABLE_NAME = 'wallets') AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = a.id AND w.purpose = 'multisig'
            AND a.status IN ('active', 'differs') AND (w.network, w.address, w.asset, w.label, w.created_by) = (a.network, a.address, a.asset, a.label, a.requested_by)) THEN
        RAISE EXCEPTION 'the wallet of account % of several owners is not that account', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;

-- A chain payment pays its object's amount from its object's wallet. This matters most for gas: nothing is reserved
-- for it, so a row with wrong ends would be signed from any wallet. The object of gas is the payment that needs it, or the wallet
-- that gets it ahead of need (see check_gas). An order's payment delivers bought crypto; an order that sells crypto has no delivery.
CREATE OR REPLACE FUNCTION check_payment_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.address = NEW.from_address AND w.custody = CASE NEW.purpose WHEN 'proposal' THEN 'multisig' ELSE 'custodial' END) THEN
        RAISE EXCEPTION 'chain payment % has another sender than its wallet, or one that several owners control', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.fee_wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.fee_wallet_id AND w.network = NEW.network
            AND w.address = NEW.fee_payer AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot') THEN
        RAISE EXCEPTION 'chain payment % has its fee paid by no gas wallet of the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'order' AND NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.object_id AND o.status = 'processing'
            AND o.order_type IN ('ON_RAMP_BUY', 'ON_RAMP_SELL')
            AND o.network = NEW.network AND o.asset = NEW.asset AND o.crypto_amount = NEW.amount AND o.wallet_id = NEW.wallet_id
            AND o.wallet_address = NEW.to_address AND o.hold_id = NEW.hold_id) THEN
        RAISE EXCEPTION 'chain payment % does not match its order', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'gas' AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot'
            AND NEW.asset = CASE NEW.network WHEN 'ethereum' THEN 'ETH' WHEN 'tron' THEN 'TRX' END
            AND (EXISTS (SELECT FROM chain_payments p WHERE p.id = NEW.object_id AND p.status = 'approved' AND p.purpose <> 'gas'
                    AND p.network = NEW.network AND p.from_address = NEW.to_address AND p.wallet_id <> w.id)
                OR EXISTS (SELECT FROM wallets r WHERE r.id = NEW.object_id AND r.network = NEW.network AND r.address = NEW.to_address AND r.id <> w.id))) THEN
        RAISE EXCEPTION 'chain payment % is not a gas top-up of another payment or of a wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

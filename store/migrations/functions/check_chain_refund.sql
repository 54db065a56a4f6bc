-- A refund in crypto covers exactly the claim of its order, or the deposit of its exception, in full and once.
CREATE OR REPLACE FUNCTION check_chain_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL AND w.type = 'hot') THEN
        RAISE EXCEPTION 'refund % has no money in the custody of the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.deposit_id IS NOT NULL AND NOT EXISTS (SELECT FROM chain_deposits d WHERE d.id = NEW.deposit_id AND d.status = 'final' AND d.kind <> 'own'
            AND d.wallet_id = NEW.wallet_id AND d.asset = NEW.asset AND d.amount = NEW.amount) THEN
        RAISE EXCEPTION 'refund % does not match its deposit', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.exception_id IS NULL AND NOT EXISTS (SELECT FROM escrow_claims c JOIN orders o ON o.id = c.order_id AND o.status = 'failed'
            WHERE c.order_id = NEW.order_id AND c.hold_id = NEW.hold_id AND c.kind IN ('exact', 'repriced') AND c.asset = NEW.asset AND c.amount = NEW.amount
                AND c.deposit_id IS NOT DISTINCT FROM NEW.deposit_id) THEN
        RAISE EXCEPTION 'refund % does not match the deposit that was taken for its order', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF EXISTS (SELECT FROM escrow_claims c WHERE c.exception_id = NEW.exception_id AND c.hold_id <> NEW.hold_id) THEN
        RAISE EXCEPTION 'refund % names another hold than its order''s claim', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

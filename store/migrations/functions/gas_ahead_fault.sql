-- Why a gas wallet may not bring an amount to a wallet ahead of need; empty when it may. The reserve of the gas wallet is its share of the
-- policy and a top-up for each payment that is approved and not signed: those may lack gas after all.
CREATE OR REPLACE FUNCTION gas_ahead_fault(wallet uuid, amount numeric, source uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w    wallets;
    p    gas_policy;
    kind text := gas_ahead_kind(wallet);
    left_over numeric;
BEGIN
    IF kind IS NULL THEN
        RETURN 'not_eligible';
    ELSIF frozen() THEN
        RETURN 'frozen';
    ELSIF put_back() THEN
        RETURN 'put_back';
    END IF;
    SELECT * INTO w FROM wallets WHERE id = wallet;
    SELECT * INTO p FROM gas_policy WHERE network = w.network;
    IF EXISTS (SELECT FROM chain_payments g WHERE g.purpose = 'gas' AND g.network = w.network AND g.to_address = w.address
            AND g.status NOT IN ('completed', 'cancelled')) THEN
        RETURN 'under_way';
    ELSIF gas_share(w.id, NULL) + amount > (CASE kind WHEN 'vendor' THEN p.vendor_most ELSE p.most END) THEN
        RETURN 'wallet_cap';
    ELSIF (SELECT count(*) FROM gas_ahead g WHERE g.wallet_id = w.id AND g.at > clock_timestamp() - interval '1 day') >= p.wallet_day THEN
        RETURN 'wallet_day';
    ELSIF amount + coalesce((SELECT sum(g.amount) FROM gas_ahead g WHERE g.network = w.network AND g.at > clock_timestamp() - interval '1 day'), 0) > p.day_budget THEN
        RETURN 'day_budget';
    END IF;
    left_over := gas_share(source, NULL) - amount - p.reserve
        - coalesce((SELECT sum(g.amount) FROM chain_payments g WHERE g.wallet_id = source AND g.purpose = 'gas' AND g.status NOT IN ('completed', 'cancelled')), 0)
        - p.most * (SELECT count(*) FROM chain_payments o WHERE o.network = w.network AND o.status = 'approved' AND o.hold_id IS NOT NULL);
    IF left_over IS NULL OR left_over < 0 THEN
        RETURN 'gas_wallet';
    END IF;
    RETURN '';
END $$;

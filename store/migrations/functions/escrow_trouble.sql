-- Why an address can't be lent, whatever its status; NULL when it can. Money left on an address would be mixed with
-- that of its next order.
CREATE OR REPLACE FUNCTION escrow_trouble(wallet uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM FROM ledger_accounts WHERE owner_id = wallet AND kind = 'custody' AND asset IN ('USDT', 'USDC') AND posted <> 0;
    IF FOUND THEN
        RETURN 'money';
    END IF;
    PERFORM FROM chain_deposits WHERE wallet_id = wallet AND status = 'seen' AND kind <> 'empty';
    IF FOUND THEN
        RETURN 'seen';
    END IF;
    -- From the wallet's rows to their exceptions, so that the cost does not grow with the number of exceptions.
    PERFORM FROM chain_deposits d JOIN payment_exceptions x ON x.id = d.exception_id
        WHERE d.wallet_id = wallet AND d.exception_id IS NOT NULL AND x.status IN ('open', 'refunding');
    IF FOUND THEN
        RETURN 'exception';
    END IF;
    PERFORM FROM escrow_claims c JOIN payment_exceptions x ON x.id = c.exception_id WHERE c.wallet_id = wallet AND x.status IN ('open', 'refunding');
    IF FOUND THEN
        RETURN 'exception';
    END IF;
    PERFORM FROM deposit_quarantine q JOIN wallets w ON w.id = wallet AND w.network = q.network
        WHERE q.settled_at IS NULL AND (q.wallet_id = w.id OR w.address IN (q.payload ->> 'from', q.payload ->> 'to'));
    IF FOUND THEN
        RETURN 'quarantine';
    END IF;
    RETURN NULL;
END $$;

-- An adopted transaction matches its payment exactly and was unknown to this database; two officers found so just now.
CREATE OR REPLACE FUNCTION check_adopted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_payments p JOIN deposit_quarantine q ON q.network = p.network AND q.tx_id = NEW.tx_id AND q.reason = 'not_our_send'
        JOIN chain_deposits d ON d.network = q.network AND d.tx_id = q.tx_id AND d.event_index = q.event_index AND d.status = 'final'
        JOIN control_changes c ON c.kind = 'quarantine_settled' AND c.applied_in = pg_current_xact_id() AND c.change ->> 'payment_id' = p.id::text
        WHERE p.id = NEW.payment_id AND p.network = NEW.network
            AND (d.from_wallet_id, d.to_address, d.asset, d.amount) = (p.wallet_id, p.to_address, p.asset, p.amount);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % was not found on the final chain as payment %', NEW.tx_id, NEW.payment_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

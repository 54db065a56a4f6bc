-- An adopted transaction matches its payment exactly and was unknown to this database; two officers found so just now. What owners of a wallet
-- signed anybody may send, so the chain's worker adopts it for the payload of which it stored that this very movement executed it, whether
-- officers have settled the alarm about it or not. One transaction may execute several payloads, so each has a movement of its own. On TRON
-- the account also pays for what fails: such a transaction of a payload, which moved nothing, is adopted for its fee, and can't complete
-- the payment (check_payload_end).
CREATE OR REPLACE FUNCTION check_adopted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id WHERE a.network = NEW.network AND a.tx_id = NEW.tx_id AND a.id <> NEW.id
        AND NOT (a.adopted AND p.purpose = 'proposal' AND EXISTS (SELECT FROM chain_payments n WHERE n.id = NEW.payment_id AND n.purpose = 'proposal'));
    IF FOUND THEN
        RAISE EXCEPTION 'transaction % is that of another payment', NEW.tx_id USING ERRCODE = 'unique_violation';
    END IF;
    PERFORM FROM chain_payments p JOIN deposit_quarantine q ON q.network = p.network AND q.tx_id = NEW.tx_id AND q.reason = 'not_our_send'
        JOIN chain_deposits d ON d.network = q.network AND d.tx_id = q.tx_id AND d.event_index = q.event_index AND d.status = 'final'
        JOIN control_changes c ON c.kind = 'quarantine_settled' AND c.applied_in = pg_current_xact_id() AND c.change ->> 'payment_id' = p.id::text
        WHERE p.id = NEW.payment_id AND p.network = NEW.network
            AND (d.from_wallet_id, d.to_address, d.asset, d.amount) = (p.wallet_id, p.to_address, p.asset, p.amount);
    IF FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM FROM chain_payments p JOIN deposit_quarantine q ON q.network = p.network AND q.tx_id = NEW.tx_id AND q.reason = 'not_our_send'
        JOIN chain_deposits d ON d.network = q.network AND d.tx_id = q.tx_id AND d.event_index = q.event_index AND d.status = 'final'
        JOIN multisig_payloads y ON y.payment_id = p.id AND y.status = 'open' AND (y.found_tx, y.found_index) = (d.tx_id, d.event_index)
            AND (p.network <> 'tron' OR y.joint_id = NEW.tx_id)
        WHERE p.id = NEW.payment_id AND p.network = NEW.network AND p.purpose = 'proposal' AND current_user NOT IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer')
            AND (d.from_wallet_id, d.to_address, d.asset, d.amount) = (p.wallet_id, p.to_address, p.asset, p.amount);
    IF FOUND THEN
        RETURN NEW;
    END IF;
    -- What moves nothing is proven by the final chain's answer about the payload alone, in a block that the watch has read.
    PERFORM FROM chain_payments p JOIN multisig_payloads y ON y.payment_id = p.id AND y.status = 'open' AND y.found_tx = NEW.tx_id AND y.found_index IS NULL
            AND (p.network <> 'tron' OR y.joint_id = NEW.tx_id)
        WHERE p.id = NEW.payment_id AND p.network = NEW.network AND p.purpose = 'proposal' AND p.amount = 0
            AND current_user NOT IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer');
    IF FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM FROM chain_payments p JOIN multisig_payloads y ON y.payment_id = p.id AND y.status = 'open' AND y.joint_id = NEW.tx_id AND y.found_tx = ''
        WHERE p.id = NEW.payment_id AND p.network = NEW.network AND p.network = 'tron' AND p.purpose = 'proposal'
            AND current_user NOT IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer')
            AND NOT EXISTS (SELECT FROM chain_deposits d WHERE d.network = NEW.network AND d.tx_id = NEW.tx_id);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % was not found on the final chain as payment %', NEW.tx_id, NEW.payment_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

-- A payload ends once: executed with its payment, or void with what proves it, when no transaction of ours could execute it. Before that the
-- chain's worker may store once which transaction of another tool executed it, and which movement of that transaction it made, if its
-- proposal moves something. Nothing else proves what moves nothing, so that only what owners can have signed is so found. One on TRON that another
-- one is to follow has ended on the watch's chain: one node's word would let both be executed.
CREATE OR REPLACE FUNCTION check_payload_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p     multisig_proposals;
    fault text;
BEGIN
    SELECT * INTO p FROM multisig_proposals WHERE id = NEW.proposal_id FOR NO KEY UPDATE;
    fault := CASE
        WHEN OLD.status <> 'open' THEN 'has ended'
        WHEN (NEW.found_tx, NEW.found_index) IS DISTINCT FROM (OLD.found_tx, OLD.found_index) THEN CASE
            WHEN OLD.found_tx <> '' OR NEW.status <> 'open' THEN 'was executed by another transaction'
            WHEN p.kind <> 'payment' THEN CASE WHEN NEW.found_index IS NOT NULL OR NEW.network = 'tron' AND NEW.found_tx <> NEW.joint_id
                OR current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer') THEN 'moves nothing, and was not found by the chain''s worker'
                WHEN NOT others_could_sign(NEW.id) THEN 'can not have been executed: keys that only our key store has did not sign it' END
            WHEN NOT EXISTS (SELECT FROM chain_deposits d JOIN chain_payments c ON c.id = NEW.payment_id
                WHERE (d.network, d.tx_id, d.event_index) = (NEW.network, NEW.found_tx, NEW.found_index) AND d.status = 'final'
                    AND (d.from_wallet_id, d.to_address, d.asset, d.amount) = (c.wallet_id, c.to_address, c.asset, c.amount)) THEN 'was executed by no movement that the watch has seen' END
        WHEN NEW.status = 'open' THEN 'does not end'
        WHEN NEW.status = 'void' AND NEW.evidence = '' THEN 'ends without evidence'
        WHEN NEW.status = 'void' AND EXISTS (SELECT FROM chain_attempts a WHERE a.payment_id = NEW.payment_id AND a.status IN ('signed', 'broadcast', 'included', 'replaced')) THEN
            'may be executed by a transaction of ours'
        WHEN NEW.status = 'void' AND NEW.network = 'tron' AND p.ending IS NULL
            AND NOT EXISTS (SELECT FROM deposit_cursors c WHERE c.network = 'tron' AND c.final_time >= NEW.expires_at) THEN 'can be executed by what the watch has read'
        WHEN NEW.status = 'executed' AND NOT EXISTS (SELECT FROM chain_payments c WHERE c.id = NEW.payment_id AND c.status = 'completed' AND (c.tx_id = NEW.found_tx
            OR NEW.found_tx = '' AND EXISTS (SELECT FROM chain_attempts a WHERE a.payment_id = c.id AND a.tx_id = c.tx_id AND NOT a.adopted))) THEN 'is not paid'
        END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'payload % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    NEW.updated_at := clock_timestamp(); -- the money is freed when the watch has read all that was final by then
    RETURN NEW;
END $$;

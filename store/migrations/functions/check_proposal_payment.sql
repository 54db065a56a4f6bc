-- The payment of a proposal is exactly what officers approved, when they are enough. Where the account does not pay the fee itself, the house's gas
-- wallet does. It is signed only with a payload that enough owners signed, which an officer had executed. Checked at the end of the transaction
-- that approves it, because holds are written last, and whenever it is signed.
CREATE OR REPLACE FUNCTION check_proposal_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p chain_payments;
BEGIN
    SELECT * INTO p FROM chain_payments WHERE id = NEW.id;
    IF p.status NOT IN ('approved', 'signed') OR EXISTS (SELECT FROM chain_attempts WHERE payment_id = p.id AND adopted AND status = 'included') THEN
        RETURN NULL; -- it was given up at once, or is already made
    END IF;
    IF p.amount > 0 AND NOT reserved_for(p, 'multisig_proposal', p.object_id) OR (p.fee_wallet_id IS NULL) <> (p.network = 'tron')
            OR NOT EXISTS (SELECT FROM multisig_proposals s JOIN wallets w ON w.id = s.wallet_id WHERE s.id = p.object_id
                AND (p.network, p.wallet_id, p.from_address, p.to_address, p.asset, p.amount) = (s.network, s.wallet_id, w.address, s.destination, s.asset, s.amount) AND p.hold_id IS NOT DISTINCT FROM s.hold_id
                AND (s.status = 'approving' OR p.status = 'signed' AND s.status IN ('ready', 'broadcasting', 'confirming')) AND s.ending IS NULL AND proposal_released(s.id)) THEN
        RAISE EXCEPTION 'chain payment % is not what its proposal may pay now', p.id USING ERRCODE = 'KV001';
    END IF;
    IF p.status = 'signed' AND NOT proposal_executable(p.id) THEN
        RAISE EXCEPTION 'the proposal of chain payment % can not be executed now', p.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;

-- Reports whether a payment's proposal may be executed by us: an officer had it executed, with an open payload, and it is
-- not to end. Nothing is sent for the first time, or again, without the signatures of enough owners, when its time is over, or when its wallet is not
-- as it was released. What was sent may need a higher fee, also then, and when owners who signed have left since: it would hold up all later
-- transactions of the wallet that pays.
CREATE OR REPLACE FUNCTION proposal_executable(payment uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM multisig_payloads y JOIN multisig_proposals p ON p.payload_id = y.id
        WHERE y.payment_id = payment AND y.status = 'open' AND p.status IN ('ready', 'broadcasting', 'confirming') AND p.ending IS NULL AND p.executed_by IS NOT NULL
            AND (payload_signed(y.id) AND p.expires_at > clock_timestamp() AND proposal_released(p.id)
                OR own_attempt_lives(payment)));
END $$;

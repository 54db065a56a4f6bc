-- The fewest officers that a release needs, whatever its value: no fewer than when it was opened, another person for the
-- house's own money and for a withdrawal, the one who pays by bank, and another one for crypto that goes back to an address that an officer named,
-- after a payout that may have paid, or from senders whom no screening accepts. Those are screened after the opening. What leaves a wallet of
-- several owners needs as many as its policy says.
CREATE OR REPLACE FUNCTION release_least(r releases) RETURNS int LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN greatest(r.at_opening, CASE WHEN r.house OR r.purpose = 'withdrawal' OR (r.purpose = 'payout' AND r.exempt = '') OR EXISTS (SELECT FROM refunds f
            WHERE r.purpose = 'refund' AND f.id = r.object_id AND f.rail = 'chain' AND (f.addressed_by IS NOT NULL
                OR (f.exception_id IS NULL AND EXISTS (SELECT FROM order_payouts y WHERE y.id = f.order_id AND y.doubted))
                OR (r.at_opening IS NOT NULL AND f.requested_by IS NULL AND EXISTS (SELECT FROM chain_deposits d WHERE d.id = f.deposit_id AND NOT deposit_cleared(d)))))
        THEN 1 ELSE 0 END, (SELECT p.policy_needed FROM multisig_proposals p WHERE r.purpose = 'proposal' AND p.id = r.object_id));
END $$;

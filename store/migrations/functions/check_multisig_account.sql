-- An account of several owners is stored in the transaction in which a second officer confirmed exactly it. Its owners and rules are compared at
-- the end of that transaction (check_multisig_terms).
CREATE OR REPLACE FUNCTION check_multisig_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'multisig_wallet' AND c.applied_in = pg_current_xact_id() AND c.proposed_by = NEW.requested_by
        AND (c.change ->> 'id', c.change ->> 'network', c.change ->> 'account_kind', c.change ->> 'custody', c.change ->> 'name', c.change ->> 'label', c.change ->> 'asset')
            = (NEW.id::text, NEW.network::text, NEW.kind, NEW.custody, NEW.name, NEW.label, NEW.asset::text)
        AND (c.change ->> 'merchant_id', c.change ->> 'address') IS NOT DISTINCT FROM (NEW.merchant_id::text, NEW.address)
        AND ((c.change ->> 'quorum')::int, (c.change -> 'policy' ->> 'approvals')::int) = (NEW.threshold, NEW.approvals);
    IF NOT FOUND OR NEW.adopted <> (NEW.address IS NOT NULL) OR NEW.policy_version <> 1 OR num_nonnulls(NEW.control_threshold, NEW.checked_block, NEW.opened_block) > 0 THEN
        RAISE EXCEPTION 'no second officer confirmed account % of several owners', NEW.id USING ERRCODE = 'KV006';
    END IF;
    NEW.watched_from := CASE WHEN NEW.adopted THEN watched_block(NEW.network) END;
    RETURN NEW;
END $$;

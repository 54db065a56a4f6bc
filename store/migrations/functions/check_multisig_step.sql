-- An account moves on when there is reason to. The flows open one when each owner has an address, and give it up when its payment is; the chain
-- worker, which reads the final chain, alone says whether it is what was agreed. Another transaction than ours may have opened it, for the
-- same owners; our payment is cancelled then. On TRON it is opened at the address of the key that it begins with, and a transaction that is final
-- has given it to its owners, whose quorum for changes of the owners is one higher than for payments. Every change is a step, or what a newer
-- block says. What an account has at the block at which it becomes a wallet is its opening balance. Its thresholds change with its owners, in the
-- transaction that stores an executed change of them: what is older than that execution is no newer block.
CREATE OR REPLACE FUNCTION check_multisig_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    payment text := (SELECT p.status FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = NEW.id ORDER BY p.n DESC LIMIT 1);
    given   boolean := NEW.kind = 'tron' AND NOT NEW.adopted;
    fault   text;
    agreed  boolean := OLD.status IN ('active', 'differs') AND NEW.status = OLD.status
        AND current_user NOT IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer')
        AND EXISTS (SELECT FROM multisig_proposals p WHERE p.kind = 'owners' AND p.wallet_id = NEW.id AND p.status = 'executed' AND p.applied_in = pg_current_xact_id()
            AND (NEW.checked_block = OLD.checked_block OR NEW.checked_block = greatest(OLD.checked_block, executed_block(p)))
            AND (p.change ->> 'threshold')::int = NEW.threshold AND (p.change ->> 'control_threshold')::int IS NOT DISTINCT FROM NEW.control_threshold);
BEGIN
    IF OLD.status = 'preparing' AND NEW.status = 'opening' THEN
        NEW.watched_from := watched_block(NEW.network);
    ELSIF OLD.opened_block IS NULL AND NEW.status = 'active' THEN
        PERFORM watched_block(NEW.network);
        NEW.opened_block := NEW.checked_block;
        fault := opening_fault(NEW.id, NEW.opened_block);
    END IF;
    fault := CASE
        WHEN fault IS NOT NULL THEN fault
        WHEN NEW.checked_block IS DISTINCT FROM OLD.checked_block AND NEW.status NOT IN ('active', 'differs') THEN 'is judged by a block and does not become a wallet'
        WHEN NEW.checked_block IS DISTINCT FROM OLD.checked_block AND NOT block_reached(NEW.network, NEW.checked_block) THEN 'is judged by a block that can not exist yet'
        WHEN NEW.threshold <> OLD.threshold AND NOT agreed THEN 'gets another quorum'
        WHEN OLD.status = NEW.status AND NOT agreed AND NOT coalesce(NEW.checked_block > OLD.checked_block, false) THEN 'changes without a reason'
        WHEN NEW.status IN ('active', 'differs') AND NOT agreed AND NOT coalesce(NEW.checked_block > coalesce(OLD.checked_block, 0), false) THEN 'is judged by no newer block'
        WHEN NEW.address IS DISTINCT FROM OLD.address AND NEW.status <> 'opening' THEN 'gets an address without being opened'
        WHEN NEW.control_threshold IS DISTINCT FROM OLD.control_threshold AND NOT agreed
            AND NOT (OLD.control_threshold IS NULL AND OLD.status = 'preparing' AND (NEW.status = 'active' OR given AND NEW.status = 'opening')) THEN
            'gets another quorum'
        WHEN NEW.status = 'opening' AND (NEW.adopted OR EXISTS (SELECT FROM multisig_owners o WHERE o.account_id = NEW.id AND o.standing = 'agreed' AND o.address IS NULL)) THEN 'can not be opened'
        WHEN given AND OLD.status = 'preparing' AND NEW.status = 'opening'
            AND (NEW.address IS DISTINCT FROM (SELECT k.address FROM multisig_opening_keys k WHERE k.account_id = NEW.id AND k.seal = 1)
                OR NEW.control_threshold IS DISTINCT FROM (SELECT least(NEW.threshold + 1, sum(o.weight)) FROM multisig_owners o WHERE o.account_id = NEW.id AND o.standing = 'agreed')) THEN
            'is not opened with its key, or with another quorum'
        WHEN given AND OLD.status = 'opening' AND NEW.status = 'active' AND NOT EXISTS (SELECT FROM multisig_handovers h WHERE h.account_id = NEW.id AND h.status = 'executed') THEN
            'was not given to its owners'
        WHEN NEW.status = 'refused' AND EXISTS (SELECT FROM multisig_handovers h WHERE h.account_id = NEW.id AND h.status = 'signed') THEN 'may still be given to its owners'
        WHEN given AND OLD.status = 'opening' AND NEW.status = 'refused' AND NOT EXISTS (SELECT FROM multisig_handovers h WHERE h.account_id = NEW.id AND h.status = 'executed')
            AND (SELECT count(*) FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = NEW.id AND p.status = 'completed') BETWEEN 1 AND 2 THEN 'is paid for and can still be given to its owners'
        WHEN OLD.status = 'preparing' AND NEW.status = 'active' AND (NOT NEW.adopted OR NEW.kind = 'tron' AND NEW.control_threshold IS NULL) THEN 'was not adopted'
        WHEN OLD.status = 'opening' AND NEW.status = 'active' AND NOT coalesce(payment IN ('completed', 'cancelled'), false) THEN 'was not opened'
        WHEN NEW.status = 'refused' AND payment NOT IN ('completed', 'cancelled') THEN 'may still be opened'
        WHEN (NEW.status = 'differs') <> (NEW.status_detail <> '') AND NEW.status <> 'refused' THEN 'does not say how it differs'
        END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'account % of several owners %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    IF current_user = 'kivuko_flows' AND NEW.status IN ('active', 'differs')
        OR current_user = 'kivuko_chain' AND (NEW.status = 'opening' OR NEW.status = 'refused' AND NOT NEW.adopted) THEN
        RAISE EXCEPTION '% does not decide that account % is %', current_user, NEW.id, NEW.status USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

-- Each step of a deposit is that of a person who asked for it, was active and had the role then; see decision 53. What the merchant
-- announced stays as it was submitted, flags are never taken away, and a claim changes hands only over the queue.
CREATE OR REPLACE FUNCTION check_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fault     text;
    submitted boolean := OLD.submitted_at IS NULL AND NEW.submitted_at IS NOT NULL;
BEGIN
    fault := CASE
        WHEN NOT NEW.flags @> OLD.flags THEN 'loses a flag'
        WHEN OLD.submitted_at IS NOT NULL AND (OLD.method, OLD.fiat_amount, OLD.phone, OLD.sender_account_name, OLD.sender_last4, OLD.sender_bank_name, OLD.sender_bank_branch)
            IS DISTINCT FROM (NEW.method, NEW.fiat_amount, NEW.phone, NEW.sender_account_name, NEW.sender_last4, NEW.sender_bank_name, NEW.sender_bank_branch)
            THEN 'is not what was submitted'
        WHEN OLD.submitted_at IS NOT NULL AND (OLD.asset, OLD.network) IS DISTINCT FROM (NEW.asset, NEW.network)
            AND NOT (OLD.status = 'info_required' AND NEW.asset = 'KES' AND OLD.received_at IS NOT NULL AND EXISTS (SELECT FROM intents i WHERE i.object_id = NEW.id
                AND i.kind = 'deposit.quote' AND i.used_at IS NOT NULL AND convert_from(i.statement, 'UTF8')::jsonb -> 'terms' ? 'take_kes')) THEN 'asks for something else'
        WHEN OLD.submitted_at IS NULL AND (OLD.method, OLD.fiat_amount, OLD.asset, OLD.network) IS DISTINCT FROM (NEW.method, NEW.fiat_amount, NEW.asset, NEW.network)
            AND NOT EXISTS (SELECT FROM intents i, LATERAL (SELECT convert_from(i.statement, 'UTF8')::jsonb -> 'terms' AS said) x WHERE i.object_id = NEW.id AND i.kind = 'deposit.edit'
                AND i.used_at IS NOT NULL AND coalesce(said ->> 'method', '') = NEW.method AND split_part(said ->> 'fiat', ' ', 1)::numeric IS NOT DISTINCT FROM NEW.fiat_amount
                AND (said ->> 'asset', said ->> 'network') IS NOT DISTINCT FROM (NEW.asset::text, NEW.network::text)) THEN 'is not what its merchant wrote'
        WHEN submitted AND NOT EXISTS (SELECT FROM intents i WHERE i.object_id = NEW.id
            AND i.kind IN ('deposit.open', 'deposit.submit') AND i.used_at IS NOT NULL) THEN 'was submitted by nobody'
        WHEN NEW.status = 'cancelled' AND OLD.status <> 'cancelled' AND NOT EXISTS (SELECT FROM intents i WHERE i.object_id = NEW.id AND i.kind = 'deposit.cancel'
            AND i.used_at IS NOT NULL) THEN 'was cancelled by nobody'
        WHEN NEW.to_wallet_id IS DISTINCT FROM OLD.to_wallet_id AND NEW.to_wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.to_wallet_id
            AND w.network = NEW.network AND w.vendor_id = NEW.merchant_id AND w.custody = 'custodial') THEN 'goes to another''s wallet'
        -- A quote has its own fees. Without one they are those in force when it is submitted, or when its merchant takes shillings.
        WHEN NEW.fx_quote_id IS NULL AND (submitted OR NEW.fee_profile_id IS DISTINCT FROM OLD.fee_profile_id AND (NEW.fee_profile_id IS NOT NULL OR NEW.status = 'confirmed')
                OR NEW.status = 'confirmed' AND OLD.asset <> NEW.asset)
            AND NEW.fee_profile_id IS DISTINCT FROM fee_profile_for('otc_deposit', NEW.merchant_id, NEW.asset, NEW.network, NEW.method, NEW.updated_at)
            THEN 'has not the closest fees in force'
        WHEN (submitted OR NEW.status IN ('confirmed', 'settling', 'credited', 'audited'))
            AND NEW.fee_amount IS DISTINCT FROM fee_of(NEW.fee_profile_id, coalesce(NEW.received_amount, NEW.quoted_fiat, NEW.fiat_amount), 'KES') THEN 'has another fee than its profile makes'
        WHEN NEW.fx_quote_id IS DISTINCT FROM OLD.fx_quote_id AND NEW.fx_quote_id IS NOT NULL AND NOT EXISTS (SELECT FROM intents i WHERE i.object_id = NEW.id
            AND i.kind IN ('deposit.open', 'deposit.quote') AND i.used_at IS NOT NULL AND convert_from(i.statement, 'UTF8')::jsonb #>> '{terms,quote_id}' = NEW.fx_quote_id::text)
            THEN 'has a quote that its merchant did not take'
        WHEN NEW.fx_quote_id IS NOT NULL AND (NEW.fx_quote_id, NEW.rate, NEW.quoted_fiat, NEW.quote_ends_at, NEW.requested_crypto, NEW.fee_profile_id)
                IS DISTINCT FROM (OLD.fx_quote_id, OLD.rate, OLD.quoted_fiat, OLD.quote_ends_at, OLD.requested_crypto, OLD.fee_profile_id)
            AND NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.fx_quote_id AND q.purpose = 'otc_deposit' AND q.vendor_id = NEW.merchant_id AND q.asset = NEW.asset
                AND q.network = NEW.network AND q.method = NEW.method AND q.rate = NEW.rate AND q.fiat_amount = NEW.quoted_fiat AND q.expires_at = NEW.quote_ends_at
                AND q.amount = NEW.requested_crypto AND q.profile_id IS NOT DISTINCT FROM NEW.fee_profile_id) THEN 'has another price than its quote'
        WHEN NEW.fx_quote_id IS NOT NULL AND (submitted OR NEW.status = 'confirmed' AND OLD.status <> 'confirmed')
            AND NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.fx_quote_id AND q.status = 'consumed' AND q.object_type = 'otc_deposit' AND q.object_id = NEW.id)
            THEN 'has a quote that was not used'
        WHEN NEW.fee_profile_id IS NULL AND NEW.fee_amount > 0 THEN 'has a fee without a profile'
        WHEN OLD.received_at IS NOT NULL AND OLD.bank_account_id IS DISTINCT FROM NEW.bank_account_id THEN 'was paid at another bank'
        WHEN OLD.received_at IS NULL AND NEW.received_at IS NOT NULL AND OLD.status NOT IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold') THEN 'takes no money'
        WHEN OLD.received_at IS NULL AND NEW.received_at IS NOT NULL AND NEW.method = 'bank' AND NEW.statement_line_id IS NULL
            AND NOT (NEW.status IN ('confirmed', 'info_required') AND NEW.confirmed_by IS NOT NULL AND NEW.agreed_by IS NOT NULL) THEN 'has money that nobody shows'
        WHEN NEW.assigned_to IS DISTINCT FROM OLD.assigned_to AND NEW.assigned_to IS NOT NULL
            AND NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.assigned_to AND u.is_active AND u.role = 'otc_officer') THEN 'is assigned to nobody who may review it'
        WHEN NEW.claimed_by IS DISTINCT FROM OLD.claimed_by AND OLD.claimed_by IS NOT NULL AND NEW.claimed_by IS NOT NULL THEN 'has a holder'
        WHEN NEW.claimed_by IS NOT NULL AND OLD.claimed_by IS NULL AND (OLD.status NOT IN ('pending', 'assigned', 'confirmed')
                OR NOT deposit_asked(NEW.id, 'claim', NEW.claimed_by, '{otc_officer}')) THEN 'was claimed by nobody'
        WHEN OLD.status = 'assigned' AND NEW.status = 'claimed' AND NEW.claimed_by IS DISTINCT FROM OLD.assigned_to THEN 'is another officer''s'
        WHEN OLD.status = 'on_hold' AND NEW.status NOT IN ('on_hold', 'rejected')
            AND (NEW.status <> OLD.held_from OR NOT deposit_asked(NEW.id, 'unhold', intent_asker(NEW.id, 'deposit.unhold'), '{admin,otc_officer}')) THEN 'was not held as ' || NEW.status
        WHEN OLD.status <> 'on_hold' AND NEW.status = 'on_hold' AND NEW.held_from <> OLD.status THEN 'was not ' || NEW.held_from
        WHEN OLD.status <> 'on_hold' AND NEW.status = 'on_hold' AND NOT deposit_asked(NEW.id, 'hold', intent_asker(NEW.id, 'deposit.hold'), '{admin,otc_officer}') THEN 'is held by nobody'
        WHEN NEW.status = 'rejected' AND OLD.status <> 'rejected'
            AND NOT deposit_asked(NEW.id, 'reject', NEW.rejected_by, CASE WHEN 'confirmed' IN (OLD.status, OLD.held_from) THEN '{admin,otc_officer,treasury}' ELSE '{admin,otc_officer}' END::text[])
            THEN 'was rejected by nobody'
        ELSE check_deposit_steps(OLD, NEW)
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'deposit % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

-- A transfer's quote is its requester's own, unused by others, and matches the transfer's terms.
CREATE OR REPLACE FUNCTION check_transfer_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.fx_quote_id IS NOT NULL AND NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.fx_quote_id AND q.purpose = 'transfer'
            AND q.status = 'consumed' AND q.object_type = 'transfer' AND q.object_id = NEW.id AND q.owner_id = NEW.requested_by
            AND q.asset = NEW.asset AND coalesce(q.network = NEW.network, true) AND q.amount = NEW.amount AND q.fee = NEW.fee
            AND q.profile_id IS NOT DISTINCT FROM NEW.fee_profile_id
            AND q.fiat_currency = NEW.fiat_currency AND q.fiat_amount = NEW.fiat_amount AND q.rate = NEW.fiat_rate) THEN
        RAISE EXCEPTION 'transfer % does not match its quote', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.fee_profile_id IS NOT NULL AND NOT fee_profile_covers(NEW.fee_profile_id, 'transfer', NEW.vendor_id, NEW.asset, NEW.network, NULL) THEN
        RAISE EXCEPTION 'transfer % has a fee profile of something else', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

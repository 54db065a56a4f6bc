-- A transfer is what its intent says: who asks, how much of what, for what fee at most, from which wallet and to whom.
CREATE OR REPLACE FUNCTION check_asked_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.intent_id, 'transfer.open', NEW.id, NEW.requested_by);
BEGIN
    IF NOT coalesce(said ->> 'network' = NEW.network
            AND split_part(said ->> 'amount', ' ', 1)::numeric = NEW.amount AND split_part(said ->> 'amount', ' ', 2) = NEW.asset
            AND coalesce(said ->> 'wallet_id', NEW.wallet_id::text) = NEW.wallet_id::text
            AND (NOT said ? 'max_fee' OR NEW.fee <= split_part(said ->> 'max_fee', ' ', 1)::numeric)
            AND said ->> 'quote_id' IS NOT DISTINCT FROM NEW.fx_quote_id::text
            AND CASE
                WHEN said ? 'recipient_address' THEN said ->> 'recipient_address' = NEW.to_address
                WHEN said ? 'recipient_wallet_id' THEN said ->> 'recipient_wallet_id' = NEW.to_wallet_id::text
                WHEN said ? 'recipient_user_id' THEN said ->> 'recipient_user_id' = NEW.recipient_id::text
                ELSE EXISTS (SELECT FROM users u WHERE u.id = NEW.recipient_id AND said ->> 'recipient_email' IS NOT DISTINCT FROM CASE WHEN said ? 'recipient_email' THEN u.email END
                        AND said ->> 'recipient_phone' IS NOT DISTINCT FROM CASE WHEN said ? 'recipient_phone' THEN u.phone_number END
                        AND said ?| '{recipient_email,recipient_phone}')
            END, false) THEN
        RAISE EXCEPTION 'transfer % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;

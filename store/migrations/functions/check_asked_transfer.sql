-- A transfer is what its intent says: who asks, how much of what, for what fee at most, from which wallet and to whom. The wallet is
-- one that the asker may spend from; where the intent leaves it open, it is the asker's own.
CREATE OR REPLACE FUNCTION check_asked_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.intent_id, 'transfer.open', NEW.id, NEW.requested_by);
BEGIN
    IF NOT coalesce(said ->> 'network' = NEW.network
            AND split_part(said ->> 'amount', ' ', 1)::numeric = NEW.amount AND split_part(said ->> 'amount', ' ', 2) = NEW.asset
            AND coalesce(said ->> 'wallet_id', NEW.wallet_id::text) = NEW.wallet_id::text
            AND EXISTS (SELECT FROM wallets w JOIN users u ON u.id = NEW.requested_by WHERE w.id = NEW.wallet_id AND (w.owner_id = u.id
                OR said ? 'wallet_id' AND (w.vendor_id = coalesce(u.vendor_id, u.id) OR w.owner_id IS NULL AND w.purpose = 'treasury' AND u.role = 'treasury')))
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

-- +goose Up
-- A payment that turns out to have been made before is not signed, whoever was paid by it. Whether its recipient was
-- cleared may have been lost together with its transaction, and no word about the recipient takes the money back.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM chain_attempts a JOIN deposit_quarantine q ON q.network = a.network AND q.tx_id = a.tx_id
            JOIN chain_deposits d ON d.network = q.network AND d.tx_id = q.tx_id AND d.event_index = q.event_index
            WHERE a.payment_id = NEW.id AND a.status = 'included' AND q.reason = 'not_our_send' AND d.status = 'final'
                AND (d.from_wallet_id, d.to_address, d.asset, d.amount) = (NEW.wallet_id, NEW.to_address, NEW.asset, NEW.amount)) THEN
        RETURN NEW;
    END IF;
    IF NOT recipient_cleared(NEW) THEN
        RAISE EXCEPTION 'the recipient of payment % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

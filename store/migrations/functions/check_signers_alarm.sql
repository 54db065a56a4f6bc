-- The signer settles an alarm about money that left one of our wallets only when the transaction is one that is stored here: it
-- can't hide what it signed for nobody.
CREATE OR REPLACE FUNCTION check_signers_alarm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'kivuko_signer' THEN
        PERFORM FROM chain_attempts WHERE network = NEW.network AND tx_id = NEW.tx_id;
        IF NOT FOUND OR NEW.reason <> 'not_our_send' THEN
            RAISE EXCEPTION 'the signer settles no alarm about transaction %, which is not stored', NEW.tx_id USING ERRCODE = '42501';
        END IF;
    END IF;
    RETURN NEW;
END $$;

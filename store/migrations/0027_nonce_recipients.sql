-- +goose Up
-- A nonce account is one that the gas wallet makes for itself. Nobody is paid by what goes into it, so nobody is to
-- be screened.
DROP TRIGGER chain_payments_screened ON chain_payments;
CREATE TRIGGER chain_payments_screened BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status = 'approved' AND NEW.status = 'signed' AND NEW.purpose NOT IN ('nonce_account', 'nonce_advance'))
    EXECUTE FUNCTION check_recipient();

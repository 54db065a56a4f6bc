-- +goose Up
-- Payouts that were made before a database was put back, and that no row of it knows.

-- Whether two officers attested, from the provider's statement, a payout that a database lost which was put back: then no
-- attempt of it existed that may have paid. Set by the trigger.
ALTER TABLE payout_attestations ADD COLUMN lost boolean NOT NULL DEFAULT false;
CREATE INDEX payout_attestations_lost_idx ON payout_attestations (object_id) WHERE lost;

-- A payout without a reservation is one that was lost: it is booked and never sent, so it asks for no float, no room and no
-- permission to send.
DROP TRIGGER payment_attempts_released ON payment_attempts;
DROP TRIGGER payment_attempts_breaker ON payment_attempts;
DROP TRIGGER payment_attempts_payee_day ON payment_attempts;
DROP TRIGGER payment_attempts_float ON payment_attempts;
CREATE TRIGGER payment_attempts_released BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.hold_id IS NOT NULL) EXECUTE FUNCTION check_released();
CREATE TRIGGER payment_attempts_breaker BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.hold_id IS NOT NULL) EXECUTE FUNCTION check_breaker();
CREATE TRIGGER payment_attempts_payee_day BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.hold_id IS NOT NULL) EXECUTE FUNCTION check_payee_day();
CREATE CONSTRAINT TRIGGER payment_attempts_float AFTER INSERT ON payment_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.hold_id IS NOT NULL) EXECUTE FUNCTION check_payout_float();
CREATE CONSTRAINT TRIGGER payment_attempts_lost AFTER INSERT ON payment_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.hold_id IS NULL) EXECUTE FUNCTION check_lost_payout();
-- What was paid already is not paid again.
CREATE TRIGGER payment_attempts_not_lost BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.hold_id IS NOT NULL) EXECUTE FUNCTION refuse_after_lost();
CREATE TRIGGER order_payouts_not_lost BEFORE UPDATE ON order_payouts FOR EACH ROW
    WHEN (OLD.status <> 'cancelled' AND NEW.status = 'cancelled') EXECUTE FUNCTION refuse_after_lost();

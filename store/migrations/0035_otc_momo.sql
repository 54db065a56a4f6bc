-- +goose Up
-- Mobile money of OTC deposits: what we prompt for, and what a merchant pays to our number under the reference of its deposit.

ALTER TABLE payment_attempts ADD COLUMN deposit_id uuid GENERATED ALWAYS AS (CASE object_type WHEN 'otc_deposit' THEN object_id END) STORED
    REFERENCES otc_deposits (id);
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_object;
ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_object CHECK (num_nonnulls(order_id, refund_id, withdrawal_id, deposit_id) = 1);
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_direction;
ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_direction
    CHECK (direction = CASE object_type WHEN 'otc_deposit' THEN 'collection' WHEN 'order' THEN direction ELSE 'payout' END);
-- Nobody is prompted for a payment by hand, and its payer may have any number.
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_phone_check;
ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_phone CHECK (phone ~ '^254[17][0-9]{8}$' OR (phone = '' AND object_type = 'otc_deposit' AND token_hash IS NULL));
CREATE TRIGGER payment_attempts_of_deposit BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'collection' AND NEW.object_type = 'otc_deposit') EXECUTE FUNCTION check_deposit_collection();
CREATE TRIGGER otc_deposits_momo BEFORE UPDATE ON otc_deposits FOR EACH ROW WHEN (NEW.method IN ('momo', 'c2b')) EXECUTE FUNCTION check_deposit_momo();
CREATE INDEX payment_attempts_deposit_idx ON payment_attempts (deposit_id) WHERE deposit_id IS NOT NULL;

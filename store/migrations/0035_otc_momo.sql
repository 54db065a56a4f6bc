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

-- What needs no officer counts for a day against what its merchant may deposit without one. The trigger sets the time.
ALTER TABLE otc_deposits
    ADD COLUMN automatic_at timestamptz,
    ADD CONSTRAINT otc_deposits_automatic CHECK (automatic_at IS NULL OR (method IN ('momo', 'c2b') AND received_at IS NOT NULL));
CREATE INDEX otc_deposits_automatic_idx ON otc_deposits (merchant_id, automatic_at) WHERE automatic_at IS NOT NULL;
CALL set_once('otc_deposits', 'received_amount, value_date, received_at, statement_line_id, bank_reference, submitted_at, credited_at, audited_by, audited_at, rejected_by, rejected_at, '
    'momo_receipt, automatic_at'); -- in the place of the list of before

-- Officers name the payment to our number that is a deposit's money although it came under another reference.
ALTER TABLE otc_deposits
    ADD COLUMN named_payment_id uuid REFERENCES c2b_payments (id),
    ADD COLUMN named_by         uuid REFERENCES users (id),
    ADD COLUMN named_second     uuid REFERENCES users (id),
    ADD CONSTRAINT otc_deposits_named CHECK (num_nonnulls(named_payment_id, named_by) IN (0, 2) AND (named_second IS NULL OR named_by IS NOT NULL AND named_second <> named_by)
        AND (named_payment_id IS NULL OR method IN ('momo', 'c2b')));
-- A payment is named for one deposit at a time. One that has ended, or got its money otherwise, lets it go.
CREATE UNIQUE INDEX otc_deposits_named_key ON otc_deposits (named_payment_id) WHERE named_payment_id IS NOT NULL AND received_at IS NULL
    AND status IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold');
-- The queue: first those whose money came, the oldest money first, then the others by their submission.
CREATE INDEX otc_deposits_queue_idx ON otc_deposits (received_at, submitted_at, id) WHERE status IN ('pending', 'assigned')
    AND (method = 'bank' OR received_at IS NOT NULL OR named_payment_id IS NOT NULL);
CREATE TRIGGER otc_deposits_name BEFORE UPDATE ON otc_deposits FOR EACH ROW WHEN (NEW.named_payment_id IS NOT NULL OR OLD.named_payment_id IS NOT NULL)
    EXECUTE FUNCTION check_named_deposit();
ALTER TABLE c2b_payments DROP CONSTRAINT c2b_payments_aside;
ALTER TABLE c2b_payments ADD CONSTRAINT c2b_payments_aside CHECK (exception_id IS NULL OR listed_at IS NOT NULL);
CREATE TRIGGER c2b_payments_named BEFORE UPDATE ON c2b_payments FOR EACH ROW WHEN (NEW.status = 'matched' AND OLD.status <> 'matched') EXECUTE FUNCTION check_named_payment();
-- A payment that is named becomes money: the statement that shows it is read by one process alone, and so is every other source that we ask.
CREATE TRIGGER c2b_payments_listed_new BEFORE INSERT ON c2b_payments FOR EACH ROW WHEN (NEW.listed_at IS NOT NULL) EXECUTE FUNCTION check_listed_payment();
CREATE TRIGGER c2b_payments_listed BEFORE UPDATE ON c2b_payments FOR EACH ROW WHEN (NEW.listed_at IS DISTINCT FROM OLD.listed_at) EXECUTE FUNCTION check_listed_payment();
CREATE TRIGGER momo_receipts_listed BEFORE INSERT ON momo_receipts FOR EACH ROW WHEN (NEW.channel <> 'confirmation') EXECUTE FUNCTION check_listed_payment();
ALTER TABLE payment_exceptions DROP CONSTRAINT payment_exceptions_matched;
CREATE CONSTRAINT TRIGGER payment_exceptions_named AFTER UPDATE ON payment_exceptions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'matched' AND OLD.status <> 'matched' AND NEW.line_id IS NULL) EXECUTE FUNCTION check_matched_payment();
ALTER TABLE intents DROP CONSTRAINT intents_kind_check;
ALTER TABLE intents ADD CONSTRAINT intents_kind_check CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create', 'deposit.draft', 'deposit.open', 'deposit.edit',
    'deposit.quote', 'deposit.submit', 'deposit.proof', 'deposit.assign', 'deposit.claim', 'deposit.release', 'deposit.request_info', 'deposit.provide_info',
    'deposit.hold', 'deposit.unhold', 'deposit.confirm', 'deposit.reject', 'deposit.settle', 'deposit.cancel', 'deposit.audit', 'deposit.match',
    'withdrawal.open', 'withdrawal.cancel', 'withdrawal.hold', 'withdrawal.unhold', 'withdrawal.execute', 'withdrawal.confirm'));

-- Two officers free a line of a bank's statement from a payout that an officer named by mistake.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule', 'inventory_allocation', 'line_freed'));

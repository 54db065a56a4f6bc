-- +goose Up
-- Refunds by bank: money of a payment exception that belongs to no order goes back to an account at a bank. Two officers agree to it, a
-- flow reserves its money, and officers pay it and confirm with the bank's reference.

ALTER TABLE refunds DROP CONSTRAINT refunds_rail_check;
ALTER TABLE refunds DROP CONSTRAINT refunds_rail;
ALTER TABLE refunds DROP CONSTRAINT refunds_sent;
ALTER TABLE refunds
    ADD COLUMN bank_name         text NOT NULL DEFAULT '' CHECK (char_length(bank_name) <= 120),
    ADD COLUMN bank_code         text NOT NULL DEFAULT '' CHECK (bank_code ~ '^[0-9A-Z]{0,20}$'),
    ADD COLUMN branch            text NOT NULL DEFAULT '' CHECK (char_length(branch) <= 120),
    ADD COLUMN swift_code        text NOT NULL DEFAULT '' CHECK (swift_code ~ '^([0-9A-Z]{8}([0-9A-Z]{3})?)?$'),
    ADD COLUMN account_name      text NOT NULL DEFAULT '' CHECK (char_length(account_name) <= 120),
    ADD COLUMN account_number    text NOT NULL DEFAULT '' CHECK (account_number ~ '^[0-9A-Z]{0,34}$'),
    ADD COLUMN payee_reason      text NOT NULL DEFAULT '' CHECK (char_length(payee_reason) <= 500), -- why it goes to another account than the money is known to come from
    ADD COLUMN change_id         uuid REFERENCES control_changes (id), -- by which two officers opened it
    ADD COLUMN failure_id        uuid REFERENCES control_changes (id), -- by which two officers ended it unpaid
    ADD COLUMN bank_hold_id      uuid REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED, -- its money at a bank of the house
    ADD COLUMN begun_at          timestamptz,                          -- when that was reserved
    ADD COLUMN statement_line_id uuid REFERENCES bank_lines (id),      -- the line that shows the payment
    ADD CONSTRAINT refunds_rail CHECK (CASE rail
        WHEN 'momo' THEN num_nulls(order_id, attempt_id, collection, phone) = 0 AND address = '' AND digest = ''
            AND num_nonnulls(deposit_id, wallet_id, network, hold_id, value, addressed_by) = 0
        WHEN 'chain' THEN num_nonnulls(attempt_id, collection, phone, paid_by) = 0 AND num_nulls(wallet_id, network, hold_id, value) = 0
            AND char_length(digest) = 64 AND num_nonnulls(order_id, exception_id) > 0 AND NOT payee_confirmed
        WHEN 'bank' THEN num_nulls(exception_id, requested_by, change_id) = 0 AND asset = 'KES' AND address = '' AND digest = '' AND NOT payee_confirmed
            AND num_nonnulls(order_id, attempt_id, collection, phone, paid_by, deposit_id, wallet_id, network, hold_id, value, addressed_by, dismissed_by) = 0
        ELSE false END),
    ADD CONSTRAINT refunds_payee CHECK (CASE rail WHEN 'bank' THEN bank_name <> '' AND account_name <> '' AND account_number <> ''
        ELSE bank_name || bank_code || branch || swift_code || account_name || account_number || payee_reason = ''
            AND num_nonnulls(change_id, failure_id, bank_hold_id, begun_at, statement_line_id) = 0 END),
    ADD CONSTRAINT refunds_at_bank CHECK (rail <> 'bank' OR (begun_at IS NULL) = (bank_hold_id IS NULL) AND (failure_id IS NOT NULL) = (status = 'failed')
        AND (statement_line_id IS NULL OR status = 'completed') AND CASE status WHEN 'pending' THEN bank_hold_id IS NULL AND receipt = '' WHEN 'processing' THEN bank_hold_id IS NOT NULL AND receipt = ''
            WHEN 'completed' THEN bank_hold_id IS NOT NULL AND receipt ~ '^[0-9A-Z]{1,64}$' WHEN 'failed' THEN receipt = '' ELSE false END),
    ADD CONSTRAINT refunds_sent CHECK (rail <> 'chain' OR address <> '' OR status IN ('pending', 'needs_review', 'completed')),
    ADD CONSTRAINT refunds_change_key UNIQUE (change_id),
    ADD CONSTRAINT refunds_line_key UNIQUE (statement_line_id);
-- One that the bank did not pay leaves its exception open, for another one.
ALTER TABLE refunds DROP CONSTRAINT refunds_exception_key;
CREATE UNIQUE INDEX refunds_exception_key ON refunds (exception_id) WHERE NOT (rail = 'bank' AND status = 'failed');
CREATE INDEX refunds_exception_idx ON refunds (exception_id) WHERE rail = 'bank';
CREATE INDEX refunds_at_bank_idx ON refunds (created_at, id) WHERE rail = 'bank' AND status IN ('pending', 'processing');
CREATE INDEX refunds_bank_receipt_idx ON refunds (receipt) WHERE rail = 'bank' AND receipt <> '';
CALL same_columns('refunds',
    'id, rail, order_id, attempt_id, collection, exception_id, asset, amount, phone, deposit_id, wallet_id, network, hold_id, value, requested_by, created_at,
     bank_name, bank_code, branch, swift_code, account_name, account_number, payee_reason, change_id');
CALL set_once('refunds', 'payee_confirmed, failure_id, bank_hold_id, begun_at, statement_line_id');
CREATE TRIGGER refunds_by_bank BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.rail = 'bank') EXECUTE FUNCTION check_bank_refund();
CREATE TRIGGER refunds_by_bank_steps BEFORE UPDATE ON refunds FOR EACH ROW WHEN (NEW.rail = 'bank') EXECUTE FUNCTION check_bank_refund_step();
CREATE TRIGGER refunds_by_bank_frozen BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (NEW.rail = 'bank' AND OLD.status = 'pending' AND NEW.status = 'processing') EXECUTE FUNCTION refuse_while_frozen();
-- Only what goes to a bank is given up before anything was sent.
CREATE TRIGGER refunds_not_given_up BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (NEW.rail <> 'bank' AND OLD.status = 'pending' AND NEW.status = 'failed') EXECUTE FUNCTION refuse_change();
CREATE CONSTRAINT TRIGGER refunds_by_bank_money AFTER INSERT OR UPDATE ON refunds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.rail = 'bank') EXECUTE FUNCTION check_bank_refund_money();
CREATE CONSTRAINT TRIGGER holds_of_bank_refunds AFTER UPDATE ON holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.object_type = 'refund') EXECUTE FUNCTION check_bank_refund_money();
CREATE CONSTRAINT TRIGGER ledger_entries_bank_refund AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.kind LIKE 'bank_refund.%') EXECUTE FUNCTION check_bank_refund_entry();
-- Shillings that belong to no order go back by bank alone, so such an exception is being refunded exactly while a refund by bank is alive.
CREATE TRIGGER payment_exceptions_not_reopened BEFORE UPDATE ON payment_exceptions FOR EACH ROW
    WHEN (OLD.status = 'refunding' AND NEW.status = 'open' AND (NEW.order_id IS NOT NULL OR NEW.asset <> 'KES')) EXECUTE FUNCTION refuse_change();
CREATE CONSTRAINT TRIGGER payment_exceptions_refunded AFTER UPDATE ON payment_exceptions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status <> OLD.status AND NEW.order_id IS NULL AND NEW.asset = 'KES') EXECUTE FUNCTION check_exception_back();

-- Officers confirm its payment as that of an order or of a withdrawal.
ALTER TABLE bank_confirmations ADD COLUMN refund_id uuid REFERENCES refunds (id);
ALTER TABLE bank_confirmations DROP CONSTRAINT bank_confirmations_object;
ALTER TABLE bank_confirmations ADD CONSTRAINT bank_confirmations_object CHECK (num_nonnulls(order_id, withdrawal_id, refund_id) = 1);
CREATE UNIQUE INDEX bank_confirmations_refund_key ON bank_confirmations (refund_id, officer_id) WHERE withdrawn_at IS NULL AND refund_id IS NOT NULL;
CALL same_columns('bank_confirmations', 'id, order_id, withdrawal_id, refund_id, officer_id, reference, paid_on, amount, note, created_at');
ALTER TABLE bank_lines DROP CONSTRAINT bank_lines_object_type;
ALTER TABLE bank_lines ADD CONSTRAINT bank_lines_object_type CHECK (object_type IN ('journal_entry', 'bank_payout', 'otc_deposit', 'otc_withdrawal', 'bank_refund'));

ALTER TABLE intents DROP CONSTRAINT intents_kind_check;
ALTER TABLE intents ADD CONSTRAINT intents_kind_check CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create', 'deposit.draft', 'deposit.open', 'deposit.edit',
    'deposit.quote', 'deposit.submit', 'deposit.proof', 'deposit.assign', 'deposit.claim', 'deposit.release', 'deposit.request_info', 'deposit.provide_info',
    'deposit.hold', 'deposit.unhold', 'deposit.confirm', 'deposit.reject', 'deposit.settle', 'deposit.cancel', 'deposit.audit', 'deposit.match',
    'withdrawal.open', 'withdrawal.cancel', 'withdrawal.hold', 'withdrawal.unhold', 'withdrawal.execute', 'withdrawal.confirm', 'refund.confirm'));
-- As before, and the flow of a refund by bank.
CREATE OR REPLACE FUNCTION intent_flow(kind text, object_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE split_part(kind, '.', 1) WHEN 'transfer' THEN 'transfer:' WHEN 'purchase' THEN 'on-ramp:' WHEN 'sale' THEN 'off-ramp:'
        WHEN 'wallet' THEN 'wallet:' WHEN 'deposit' THEN 'otc-deposit:' WHEN 'withdrawal' THEN 'otc-withdrawal:' WHEN 'refund' THEN 'bank-refund:' END || object_id
$$;

-- Two officers agree to such a refund, and that one which was not paid is over.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule', 'inventory_allocation', 'line_freed',
    'bank_refund', 'bank_refund_failure', 'otc_limit'));

INSERT INTO state_transitions (machine, from_state, to_state) VALUES ('payment_exception', 'refunding', 'open'), ('refund', 'pending', 'failed');

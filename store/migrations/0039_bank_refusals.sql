-- +goose Up
-- Two officers agree that the bank did not pay an order, and one of them alone takes back no other officer's word that it did.

ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule', 'inventory_allocation', 'line_freed',
    'bank_refund', 'bank_refund_failure', 'bank_payout_refusal', 'otc_limit', 'swap_marks', 'swap_resolution'));

CREATE CONSTRAINT TRIGGER bank_confirmations_replaced AFTER UPDATE ON bank_confirmations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_id IS NOT NULL AND OLD.withdrawn_at IS NULL AND NEW.withdrawn_at IS NOT NULL) EXECUTE FUNCTION check_word_replaced();

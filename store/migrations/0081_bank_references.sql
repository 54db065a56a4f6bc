-- A bank's reference is kept in one form, capitals without spaces, so that one payment can't be named for two orders by
-- writing it differently.
-- +goose Up
ALTER TABLE bank_confirmations ADD CONSTRAINT bank_confirmations_reference_form CHECK (reference = upper(reference) AND reference !~ ' ');
ALTER TABLE order_payouts ADD CONSTRAINT order_payouts_bank_reference_form CHECK (rail <> 'bank' OR (receipt = upper(receipt) AND receipt !~ ' '));

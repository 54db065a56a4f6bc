-- +goose Up
-- OTC withdrawals: money that merchants take out, to destinations that they saved.

CREATE TABLE otc_withdrawals (
    id                 uuid            PRIMARY KEY,
    merchant_id        uuid            NOT NULL REFERENCES users (id),
    requested_by       uuid            NOT NULL REFERENCES users (id),
    intent_id          uuid            NOT NULL REFERENCES intents (id),
    status             text            NOT NULL,
    status_detail      text            NOT NULL CHECK (char_length(status_detail) <= 60),
    held_from          text            NOT NULL DEFAULT '',

    -- What is asked for, frozen.
    method             text            NOT NULL CHECK (method IN ('momo', 'bank', 'chain')),
    source_asset       asset           NOT NULL CHECK (source_asset IN ('KES', 'USDT', 'USDC')),
    source_amount      positive_amount NOT NULL, -- all that leaves the merchant
    source_wallet_id   uuid            REFERENCES wallets (id),
    payout_asset       asset           NOT NULL CHECK (payout_asset IN ('KES', 'USDT', 'USDC')),
    payout_amount      positive_amount NOT NULL, -- all that arrives
    fee_amount         zero_or_more    NOT NULL CHECK (scale(fee_amount) <= 2), -- in shillings
    fee_profile_id     uuid            REFERENCES fee_profiles (id),
    fx_quote_id        uuid            REFERENCES fx_quotes (id),
    rate               numeric         CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    value              positive_amount NOT NULL, -- in shillings, for limits and the running sums
    destination_id     uuid            NOT NULL REFERENCES otc_destinations (id),
    digest             text            NOT NULL CHECK (char_length(digest) = 64),

    -- The money on its way.
    hold_id            uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED, -- the merchant's money
    house_hold_id      uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,          -- the shillings that buy its crypto
    bank_hold_id       uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,          -- the money at a bank of the house
    sold_at            timestamptz,

    -- Who carried it out, and how it was paid.
    executed_by        uuid            REFERENCES users (id),
    executed_at        timestamptz,
    transfer_intent_id uuid            REFERENCES intents (id), -- by which the executing officer asks for the transfer of bought crypto
    transfer_id        uuid            REFERENCES transfers (id),
    paid_by            uuid            REFERENCES payment_attempts (id),
    receipt            text            NOT NULL DEFAULT '' CHECK (char_length(receipt) <= 64), -- the operator's, or the bank's reference
    statement_line_id  uuid            REFERENCES bank_lines (id),
    refused_code       text            NOT NULL DEFAULT '' CHECK (char_length(refused_code) <= 40),
    claimed            boolean         NOT NULL DEFAULT false, -- a source claims that a refused attempt has paid, not denied yet
    reason             text            NOT NULL DEFAULT '' CHECK (char_length(reason) <= 500),
    ended_by           uuid            REFERENCES users (id),
    failure_id         uuid            REFERENCES control_changes (id), -- by which two officers ended it unpaid
    created_at         timestamptz     NOT NULL,
    updated_at         timestamptz     NOT NULL,
    completed_at       timestamptz,
    version            bigint          NOT NULL DEFAULT 1,
    CONSTRAINT otc_withdrawals_intent_key UNIQUE (intent_id),
    CONSTRAINT otc_withdrawals_quote_key UNIQUE (fx_quote_id),
    CONSTRAINT otc_withdrawals_transfer_intent_key UNIQUE (transfer_intent_id),
    CONSTRAINT otc_withdrawals_transfer_key UNIQUE (transfer_id),
    CONSTRAINT otc_withdrawals_line_key UNIQUE (statement_line_id),
    CONSTRAINT otc_withdrawals_direction CHECK (CASE
        WHEN source_asset = 'KES' AND payout_asset = 'KES' THEN method IN ('momo', 'bank') AND num_nonnulls(source_wallet_id, fx_quote_id, rate) = 0
            AND source_amount = payout_amount + fee_amount
        WHEN source_asset = 'KES' THEN method = 'chain' AND source_wallet_id IS NULL AND num_nulls(fx_quote_id, rate) = 0 AND fee_amount < source_amount
        WHEN payout_asset = 'KES' THEN method IN ('momo', 'bank') AND num_nulls(source_wallet_id, fx_quote_id, rate) = 0
        ELSE false END),
    CONSTRAINT otc_withdrawals_places CHECK (scale(source_amount) <= asset_scale(source_asset) AND scale(payout_amount) <= asset_scale(payout_asset)
        AND (method <> 'momo' OR payout_amount = trunc(payout_amount))),
    CONSTRAINT otc_withdrawals_value CHECK (value >= CASE payout_asset WHEN 'KES' THEN payout_amount ELSE source_amount END),
    CONSTRAINT otc_withdrawals_held CHECK ((status = 'on_hold') = (held_from <> '')),
    CONSTRAINT otc_withdrawals_apart CHECK (executed_by <> requested_by),
    CONSTRAINT otc_withdrawals_executed CHECK ((executed_by IS NULL) = (executed_at IS NULL)
        AND (status IN ('executing', 'confirming', 'needs_review', 'completed', 'failed')) = (executed_by IS NOT NULL)),
    CONSTRAINT otc_withdrawals_sold CHECK ((sold_at IS NULL OR source_asset <> 'KES')
        AND (source_asset = 'KES' OR sold_at IS NOT NULL OR status NOT IN ('confirming', 'completed'))),
    CONSTRAINT otc_withdrawals_house CHECK (house_hold_id IS NULL OR source_asset <> 'KES'),
    CONSTRAINT otc_withdrawals_bank CHECK (bank_hold_id IS NULL OR method = 'bank'),
    CONSTRAINT otc_withdrawals_transferred CHECK (CASE WHEN method = 'chain' AND status IN ('executing', 'confirming', 'completed') THEN transfer_intent_id IS NOT NULL
            ELSE num_nonnulls(transfer_intent_id, transfer_id) = 0 END AND (transfer_id IS NULL OR transfer_intent_id IS NOT NULL)),
    CONSTRAINT otc_withdrawals_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL) AND CASE WHEN status <> 'completed' THEN receipt = '' AND paid_by IS NULL
        WHEN method = 'momo' THEN paid_by IS NOT NULL AND receipt <> ''
        WHEN method = 'bank' THEN paid_by IS NULL AND receipt ~ '^[0-9A-Z]{1,64}$'
        ELSE paid_by IS NULL AND receipt = '' AND transfer_id IS NOT NULL END),
    CONSTRAINT otc_withdrawals_claimed CHECK (NOT claimed OR method = 'momo'),
    CONSTRAINT otc_withdrawals_ended CHECK (ended_by IS NULL OR status IN ('rejected', 'cancelled'))
);
CREATE INDEX otc_withdrawals_list_idx ON otc_withdrawals (created_at DESC, id DESC);
CREATE INDEX otc_withdrawals_merchant_idx ON otc_withdrawals (merchant_id, created_at DESC, id DESC);
CREATE INDEX otc_withdrawals_status_idx ON otc_withdrawals (status, created_at DESC, id DESC);
CREATE INDEX otc_withdrawals_open_idx ON otc_withdrawals (merchant_id) WHERE status NOT IN ('completed', 'rejected', 'cancelled', 'failed');
CREATE INDEX otc_withdrawals_destination_idx ON otc_withdrawals (destination_id);
CREATE INDEX otc_withdrawals_receipt_idx ON otc_withdrawals (receipt) WHERE receipt <> '';
CALL moves_by('otc_withdrawals', 'otc_withdrawal');
CALL never_removed('otc_withdrawals');
CALL same_columns('otc_withdrawals', 'id, merchant_id, requested_by, intent_id, method, source_asset, source_amount, source_wallet_id, payout_asset, payout_amount, fee_amount, '
    'fee_profile_id, fx_quote_id, rate, value, destination_id, digest, created_at');
CALL set_once('otc_withdrawals', 'sold_at, paid_by, receipt, statement_line_id, ended_by, failure_id, completed_at');
CREATE TRIGGER otc_withdrawals_wanted BEFORE INSERT ON otc_withdrawals FOR EACH ROW EXECUTE FUNCTION check_asked_withdrawal();
CREATE TRIGGER otc_withdrawals_people BEFORE UPDATE ON otc_withdrawals FOR EACH ROW EXECUTE FUNCTION check_withdrawal();
CREATE TRIGGER otc_withdrawals_frozen BEFORE UPDATE ON otc_withdrawals FOR EACH ROW
    WHEN (NEW.method = 'bank' AND OLD.status = 'executing' AND NEW.status = 'confirming') EXECUTE FUNCTION refuse_while_frozen();
CREATE TRIGGER otc_withdrawals_announced AFTER INSERT ON otc_withdrawals FOR EACH ROW EXECUTE FUNCTION announce_owed('withdrawal');
CREATE CONSTRAINT TRIGGER otc_withdrawals_money AFTER INSERT OR UPDATE ON otc_withdrawals DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    EXECUTE FUNCTION check_withdrawal_money();
CREATE CONSTRAINT TRIGGER holds_of_withdrawals AFTER UPDATE ON holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.object_type = 'otc_withdrawal') EXECUTE FUNCTION check_withdrawal_money();
CREATE CONSTRAINT TRIGGER ledger_entries_withdrawal AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.kind LIKE 'otc_withdrawal.%') EXECUTE FUNCTION check_withdrawal_entry();

-- What screened an address outside.
ALTER TABLE screenings ADD COLUMN withdrawal_id uuid REFERENCES otc_withdrawals (id);
ALTER TABLE screenings DROP CONSTRAINT screenings_object;
ALTER TABLE screenings ADD CONSTRAINT screenings_object CHECK (num_nonnulls(transfer_id, payment_id, deposit_id, withdrawal_id) = 1);
CREATE INDEX screenings_withdrawal_idx ON screenings (withdrawal_id, at) WHERE withdrawal_id IS NOT NULL;

-- Officers decide about it, by the values of transfers. Its destination rests at any value.
ALTER TABLE approval_tokens DROP CONSTRAINT approval_tokens_object_type_check;
ALTER TABLE approval_tokens ADD CONSTRAINT approval_tokens_object_type CHECK (object_type IN ('transfer', 'refund', 'order', 'otc_withdrawal'));
ALTER TABLE approvals DROP CONSTRAINT approvals_object_type_check;
ALTER TABLE approvals ADD CONSTRAINT approvals_object_type CHECK (object_type IN ('transfer', 'refund', 'order', 'otc_withdrawal'));
ALTER TABLE release_purposes ADD COLUMN always boolean NOT NULL DEFAULT false; -- its destination rests at any value, in our custody too
INSERT INTO release_purposes (purpose, rule, rests, always) VALUES ('withdrawal', 'transfer', '', true);
INSERT INTO release_exemptions (exempt, why) VALUES
    ('withdrawal', 'It carries out a withdrawal, whose own release has the same value and recipient, asked the officers and counts.');

-- The crypto that the house buys goes to its treasury by a payment of its own.
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_purpose;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_purpose
    CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding', 'withdrawal'));
CREATE CONSTRAINT TRIGGER chain_payments_withdrawal AFTER INSERT ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose = 'withdrawal') EXECUTE FUNCTION check_withdrawal_payment();
CREATE TRIGGER chain_payments_withdrawal_signed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose = 'withdrawal' AND OLD.status = 'approved' AND NEW.status = 'signed') EXECUTE FUNCTION check_withdrawal_payment();

-- Mobile money is paid out for it.
ALTER TABLE payment_attempts ADD COLUMN withdrawal_id uuid GENERATED ALWAYS AS (CASE object_type WHEN 'otc_withdrawal' THEN object_id END) STORED
    REFERENCES otc_withdrawals (id);
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_object;
ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_object CHECK (num_nonnulls(order_id, refund_id, withdrawal_id) = 1);
CREATE TRIGGER payment_attempts_of_withdrawal BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND NEW.object_type = 'otc_withdrawal') EXECUTE FUNCTION check_withdrawal_payout();
ALTER TABLE payout_attestations ADD COLUMN withdrawal_id uuid GENERATED ALWAYS AS (CASE object_type WHEN 'otc_withdrawal' THEN object_id END) STORED
    REFERENCES otc_withdrawals (id);
ALTER TABLE payout_attestations DROP CONSTRAINT payout_attestations_object;
ALTER TABLE payout_attestations ADD CONSTRAINT payout_attestations_object CHECK (num_nonnulls(order_id, refund_id, withdrawal_id) = 1);

-- Officers confirm its payment at a bank. A reference is that of one payment, whatever was paid.
ALTER TABLE bank_confirmations ALTER COLUMN order_id DROP NOT NULL;
ALTER TABLE bank_confirmations ADD COLUMN withdrawal_id uuid REFERENCES otc_withdrawals (id);
ALTER TABLE bank_confirmations ADD CONSTRAINT bank_confirmations_object CHECK (num_nonnulls(order_id, withdrawal_id) = 1);
CREATE UNIQUE INDEX bank_confirmations_withdrawal_key ON bank_confirmations (withdrawal_id, officer_id) WHERE withdrawn_at IS NULL AND withdrawal_id IS NOT NULL;
CALL same_columns('bank_confirmations', 'id, order_id, withdrawal_id, officer_id, reference, paid_on, amount, note, created_at');
ALTER TABLE bank_lines DROP CONSTRAINT bank_lines_object_type;
ALTER TABLE bank_lines ADD CONSTRAINT bank_lines_object_type CHECK (object_type IN ('journal_entry', 'bank_payout', 'otc_deposit', 'otc_withdrawal'));

-- A quote of the desk for a withdrawal.
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_life;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_purpose;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_deposit;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_object_type;
ALTER TABLE fx_quotes
    ADD CONSTRAINT fx_quotes_life CHECK (expires_at > created_at AND (expires_at <= rate_stale_at OR purpose IN ('otc_deposit', 'otc_withdrawal'))),
    ADD CONSTRAINT fx_quotes_purpose CHECK (purpose IN ('transfer', 'offramp', 'otc_deposit', 'otc_withdrawal')),
    ADD CONSTRAINT fx_quotes_desk CHECK (purpose NOT IN ('otc_deposit', 'otc_withdrawal')
        OR (vendor_id IS NOT NULL AND network IS NOT NULL AND method IS NOT NULL AND formula <> 'kivuko-price-1'
            AND CASE purpose WHEN 'otc_deposit' THEN side = 'buy' ELSE (side = 'buy') = (method = 'chain') END)),
    ADD CONSTRAINT fx_quotes_object_type CHECK (object_type IN ('transfer', 'order', 'otc_deposit', 'otc_withdrawal'));
CREATE CONSTRAINT TRIGGER fx_quotes_withdrawal_use AFTER UPDATE ON fx_quotes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'consumed' AND NEW.object_type = 'otc_withdrawal') EXECUTE FUNCTION check_quote_use();

-- What people ask for about withdrawals, and what two officers decide.
ALTER TABLE intents DROP CONSTRAINT intents_kind_check;
ALTER TABLE intents ADD CONSTRAINT intents_kind_check CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create', 'deposit.draft', 'deposit.open', 'deposit.edit',
    'deposit.quote', 'deposit.submit', 'deposit.proof', 'deposit.assign', 'deposit.claim', 'deposit.release', 'deposit.request_info', 'deposit.provide_info',
    'deposit.hold', 'deposit.unhold', 'deposit.confirm', 'deposit.reject', 'deposit.settle', 'deposit.cancel', 'deposit.audit',
    'withdrawal.open', 'withdrawal.cancel', 'withdrawal.hold', 'withdrawal.unhold', 'withdrawal.execute', 'withdrawal.confirm'));
-- As before, and the flow of a withdrawal.
CREATE OR REPLACE FUNCTION intent_flow(kind text, object_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE split_part(kind, '.', 1) WHEN 'transfer' THEN 'transfer:' WHEN 'purchase' THEN 'on-ramp:' WHEN 'sale' THEN 'off-ramp:'
        WHEN 'wallet' THEN 'wallet:' WHEN 'deposit' THEN 'otc-deposit:' WHEN 'withdrawal' THEN 'otc-withdrawal:' END || object_id
$$;

ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure'));

INSERT INTO state_transitions (machine, from_state, to_state)
SELECT 'otc_withdrawal', from_state, unnest(string_to_array(to_states, ' ')) FROM (VALUES
    ('', 'requested'),
    ('requested', 'pending_approval rejected cancelled on_hold'),
    ('pending_approval', 'approved rejected cancelled on_hold'),
    ('approved', 'executing pending_approval rejected cancelled on_hold'),
    ('on_hold', 'requested pending_approval rejected cancelled'),
    ('executing', 'confirming approved completed failed'),
    ('confirming', 'completed approved needs_review failed'),
    ('needs_review', 'confirming completed failed')
) AS t (from_state, to_states);

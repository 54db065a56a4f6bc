-- +goose Up
-- Swaps of stablecoins in wallets of ours, out of the treasury wallet of the network.

-- The price of a swap, promised for a minute, with all its inputs. It never changes: a swap that names it has used it.
CREATE TABLE swap_quotes (
    id                   uuid            PRIMARY KEY,
    asked_by             uuid            NOT NULL REFERENCES users (id),
    vendor_id            uuid            REFERENCES users (id),
    wallet_id            uuid            NOT NULL REFERENCES wallets (id),
    network              network         NOT NULL,
    from_asset           asset           NOT NULL CHECK (from_asset IN ('USDT', 'USDC')),
    to_asset             asset           NOT NULL CHECK (to_asset IN ('USDT', 'USDC')),
    amount_side          text            NOT NULL CHECK (amount_side IN ('from', 'to')),
    from_rate_id         uuid            NOT NULL REFERENCES fx_rates (id),
    from_bid             numeric         NOT NULL,
    from_ask             numeric         NOT NULL,
    from_rate_source     text            NOT NULL,
    from_rate_valid_from timestamptz     NOT NULL,
    from_rate_stale_at   timestamptz     NOT NULL,
    to_rate_id           uuid            NOT NULL REFERENCES fx_rates (id),
    to_bid               numeric         NOT NULL,
    to_ask               numeric         NOT NULL,
    to_rate_source       text            NOT NULL,
    to_rate_valid_from   timestamptz     NOT NULL,
    to_rate_stale_at     timestamptz     NOT NULL,
    profile_id           uuid            REFERENCES fee_profiles (id),
    profile_version      int             NOT NULL,
    fee_fixed            zero_or_more    NOT NULL,
    fee_points           int             NOT NULL,
    fee_minimum          zero_or_more    NOT NULL,
    fee_maximum          zero_or_more,
    spread_points        int             NOT NULL,
    formula              text            NOT NULL CHECK (formula = 'kivuko-swap-1'),
    rate                 numeric         NOT NULL CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    from_amount          positive_amount NOT NULL,
    to_amount            positive_amount NOT NULL,
    fee                  zero_or_more    NOT NULL, -- in the asset that is got
    hash                 text            NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
    created_at           timestamptz     NOT NULL,
    expires_at           timestamptz     NOT NULL,
    CONSTRAINT swap_quotes_pair CHECK (from_asset <> to_asset),
    CONSTRAINT swap_quotes_places CHECK (scale(from_amount) <= asset_scale(from_asset) AND scale(to_amount) <= asset_scale(to_asset) AND scale(fee) <= asset_scale(to_asset)),
    CONSTRAINT swap_quotes_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '60 seconds'
        AND expires_at <= from_rate_stale_at AND expires_at <= to_rate_stale_at)
);
CREATE INDEX swap_quotes_active_idx ON swap_quotes (asked_by, expires_at);
CALL append_only('swap_quotes');
CREATE TRIGGER swap_quotes_terms BEFORE INSERT ON swap_quotes FOR EACH ROW EXECUTE FUNCTION check_swap_quote();

CREATE TABLE swaps (
    id              uuid            PRIMARY KEY,
    intent_id       uuid            NOT NULL REFERENCES intents (id),
    quote_id        uuid            NOT NULL REFERENCES swap_quotes (id),
    requested_by    uuid            NOT NULL REFERENCES users (id),
    owner_id        uuid            REFERENCES users (id),
    vendor_id       uuid            REFERENCES users (id),
    wallet_id       uuid            NOT NULL REFERENCES wallets (id),
    house_wallet_id uuid            NOT NULL REFERENCES wallets (id),
    network         network         NOT NULL,
    from_asset      asset           NOT NULL,
    from_amount     positive_amount NOT NULL, -- all that leaves the wallet
    to_asset        asset           NOT NULL,
    to_amount       positive_amount NOT NULL, -- all that comes back to it
    fee             zero_or_more    NOT NULL, -- in the asset that is got
    fee_profile_id  uuid            REFERENCES fee_profiles (id),
    rate            numeric         NOT NULL,
    value           positive_amount NOT NULL, -- in shillings, for limits and the running sums
    digest          text            NOT NULL CHECK (char_length(digest) = 64),
    status          text            NOT NULL,
    status_detail   text            NOT NULL CHECK (char_length(status_detail) <= 60),
    hold_id         uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED, -- of what is given, in the wallet
    reservation_id  uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED, -- of what is got, in the treasury
    return_hold_id  uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,          -- of what was collected, in the treasury
    resolution_id   uuid            REFERENCES control_changes (id), -- by which two officers had it refunded, or accepted a difference
    difference      jsonb           CHECK (jsonb_typeof(difference) = 'array'),
    created_at      timestamptz     NOT NULL,
    expires_at      timestamptz     NOT NULL,
    collected_at    timestamptz,
    updated_at      timestamptz     NOT NULL,
    completed_at    timestamptz,
    version         bigint          NOT NULL DEFAULT 1,
    CONSTRAINT swaps_intent_key UNIQUE (intent_id),
    CONSTRAINT swaps_quote_key UNIQUE (quote_id),
    CONSTRAINT swaps_hold_key UNIQUE (hold_id),
    CONSTRAINT swaps_reservation_key UNIQUE (reservation_id),
    CONSTRAINT swaps_return_hold_key UNIQUE (return_hold_id),
    CONSTRAINT swaps_apart CHECK (wallet_id <> house_wallet_id AND hold_id <> reservation_id AND from_asset <> to_asset),
    CONSTRAINT swaps_life CHECK (expires_at = created_at + interval '10 minutes'),
    CONSTRAINT swaps_collected CHECK ((return_hold_id IS NULL) = (collected_at IS NULL)
        AND (collected_at IS NULL) = (status IN ('reserved', 'collecting', 'cancelled', 'expired', 'failed'))),
    CONSTRAINT swaps_completed CHECK ((status IN ('completed', 'refunded')) = (completed_at IS NOT NULL)),
    CONSTRAINT swaps_difference CHECK (difference IS NULL OR status IN ('needs_review', 'syncing', 'completed'))
);
CREATE INDEX swaps_list_idx ON swaps (created_at DESC, id DESC);
CREATE INDEX swaps_owner_idx ON swaps (owner_id, created_at DESC, id DESC);
CREATE INDEX swaps_vendor_idx ON swaps (vendor_id, created_at DESC, id DESC) WHERE vendor_id IS NOT NULL;
CREATE INDEX swaps_open_idx ON swaps (status, updated_at) WHERE status NOT IN ('completed', 'refunded', 'cancelled', 'expired', 'failed');
CALL moves_by('swaps', 'swap');
CALL never_removed('swaps');
CALL same_columns('swaps', 'id, intent_id, quote_id, requested_by, owner_id, vendor_id, wallet_id, house_wallet_id, network, from_asset, from_amount, to_asset, to_amount, fee, '
    'fee_profile_id, rate, value, digest, hold_id, reservation_id, created_at, expires_at');
CALL set_once('swaps', 'return_hold_id, resolution_id, collected_at, completed_at');
CREATE TRIGGER swaps_wanted BEFORE INSERT ON swaps FOR EACH ROW EXECUTE FUNCTION check_asked_swap();
CREATE TRIGGER swaps_steps BEFORE UPDATE ON swaps FOR EACH ROW EXECUTE FUNCTION check_swap();
CREATE TRIGGER swaps_announced AFTER INSERT ON swaps FOR EACH ROW EXECUTE FUNCTION announce_owed('swap');
CREATE CONSTRAINT TRIGGER swaps_money AFTER INSERT OR UPDATE ON swaps DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_swap_money();
CREATE CONSTRAINT TRIGGER holds_of_swaps AFTER UPDATE ON holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.object_type = 'swap') EXECUTE FUNCTION check_swap_money();

-- How much of an asset the treasury wallet of a network should have available.
CREATE TABLE swap_marks (
    id         uuid         PRIMARY KEY,
    network    network      NOT NULL,
    asset      asset        NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    low        zero_or_more NOT NULL,
    high       zero_or_more NOT NULL,
    low_since  timestamptz, -- when too little was found
    change_id  uuid         NOT NULL REFERENCES control_changes (id),
    updated_at timestamptz  NOT NULL,
    version    bigint       NOT NULL DEFAULT 1,
    CONSTRAINT swap_marks_key UNIQUE (network, asset),
    CONSTRAINT swap_marks_order CHECK (low <= high)
);
CALL never_removed('swap_marks');
CALL same_columns('swap_marks', 'id, network, asset');
CREATE TRIGGER swap_marks_agreed BEFORE INSERT OR UPDATE ON swap_marks FOR EACH ROW EXECUTE FUNCTION guard_swap_marks();

-- The payments of a swap: it has one collection, and of a payout and a refund only one is alive or done, ever.
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_purpose;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_purpose CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding',
    'withdrawal', 'fee_sweep', 'swap_collect', 'swap_payout', 'swap_refund'));
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_numbered;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_numbered CHECK (n = 1 OR purpose IN ('gas', 'nonce_account', 'order', 'refund', 'swap_payout', 'swap_refund'));
CREATE UNIQUE INDEX chain_payments_swap_key ON chain_payments (object_id) WHERE purpose IN ('swap_payout', 'swap_refund') AND status <> 'cancelled';
CREATE INDEX chain_payments_swap_idx ON chain_payments (object_id, created_at) WHERE purpose IN ('swap_collect', 'swap_payout', 'swap_refund');
CREATE CONSTRAINT TRIGGER chain_payments_swap AFTER INSERT ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose LIKE 'swap\_%') EXECUTE FUNCTION check_swap_payment();
CREATE TRIGGER chain_payments_swap_signed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose LIKE 'swap\_%' AND OLD.status = 'approved' AND NEW.status = 'signed') EXECUTE FUNCTION check_swap_payment();
CREATE CONSTRAINT TRIGGER chain_payments_swap_money AFTER UPDATE ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose LIKE 'swap\_%' AND OLD.status <> NEW.status AND NEW.status IN ('completed', 'cancelled')) EXECUTE FUNCTION check_swap_money();

-- The fee of a swap is earned in the treasury's wallet.
DROP TRIGGER ledger_entries_earned ON ledger_entries;
CREATE CONSTRAINT TRIGGER ledger_entries_earned AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind IN ('transfer.fee', 'swap.fee', 'exception.accepted', 'exception.written_off')) EXECUTE FUNCTION check_earned_fee();

-- A swap counts as value that leaves its owner. What comes back goes to the very wallet, so no destination rests.
INSERT INTO release_purposes (purpose, rule, rests) VALUES ('swap', 'transfer', 'It comes back to the wallet that it leaves.');
ALTER TABLE approval_tokens DROP CONSTRAINT approval_tokens_object_type;
ALTER TABLE approval_tokens ADD CONSTRAINT approval_tokens_object_type CHECK (object_type IN ('transfer', 'refund', 'order', 'otc_withdrawal', 'swap'));
ALTER TABLE approvals DROP CONSTRAINT approvals_object_type;
ALTER TABLE approvals ADD CONSTRAINT approvals_object_type CHECK (object_type IN ('transfer', 'refund', 'order', 'otc_withdrawal', 'swap'));

ALTER TABLE intents DROP CONSTRAINT intents_kind_check;
ALTER TABLE intents ADD CONSTRAINT intents_kind_check CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create', 'deposit.draft', 'deposit.open', 'deposit.edit',
    'deposit.quote', 'deposit.submit', 'deposit.proof', 'deposit.assign', 'deposit.claim', 'deposit.release', 'deposit.request_info', 'deposit.provide_info',
    'deposit.hold', 'deposit.unhold', 'deposit.confirm', 'deposit.reject', 'deposit.settle', 'deposit.cancel', 'deposit.audit', 'deposit.match',
    'withdrawal.open', 'withdrawal.cancel', 'withdrawal.hold', 'withdrawal.unhold', 'withdrawal.execute', 'withdrawal.confirm', 'refund.confirm', 'swap.open', 'swap.cancel'));
-- As before, and the flow of a swap.
CREATE OR REPLACE FUNCTION intent_flow(kind text, object_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE split_part(kind, '.', 1) WHEN 'transfer' THEN 'transfer:' WHEN 'purchase' THEN 'on-ramp:' WHEN 'sale' THEN 'off-ramp:'
        WHEN 'wallet' THEN 'wallet:' WHEN 'deposit' THEN 'otc-deposit:' WHEN 'withdrawal' THEN 'otc-withdrawal:' WHEN 'refund' THEN 'bank-refund:' WHEN 'swap' THEN 'swap:' END || object_id
$$;

ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule', 'inventory_allocation', 'line_freed',
    'bank_refund', 'bank_refund_failure', 'otc_limit', 'swap_marks', 'swap_resolution'));

INSERT INTO state_transitions (machine, from_state, to_state)
SELECT 'swap', from_state, unnest(string_to_array(to_states, ' ')) FROM (VALUES
    ('', 'reserved'),
    ('reserved', 'collecting cancelled expired'),
    ('collecting', 'collected failed'),
    ('collected', 'paying_out refunding'),
    ('paying_out', 'syncing refunding needs_review'),
    ('syncing', 'completed needs_review'),
    ('needs_review', 'paying_out syncing refunding completed'),
    ('refunding', 'refunded')
) AS t (from_state, to_states);

-- +goose Up
-- OTC deposits: shillings that merchants pay to the house, for shillings in their balance or for crypto of the treasury.

-- all_apart reports whether no account stands twice in a list; NULL is nobody.
CREATE FUNCTION all_apart(people uuid[]) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT count(p) = count(DISTINCT p) FROM unnest(people) p
$$;

-- deposit_reference_fits checks the form of a payment reference and its check character, as ValidOTCReference does in the code.
CREATE FUNCTION deposit_reference_fits(reference text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT reference ~ '^KVD[34679ACDEFGHJKMNPRTVWXY]{9}$'
        AND (SELECT sum(i * (strpos('34679ACDEFGHJKMNPRTVWXY', substr(reference, 3 + i, 1)) - 1)) FROM generate_series(1, 9) i) % 23 = 0
$$;

-- deposit_crypto is how much of an asset shillings buy at a rate, rounded down to the asset's places.
CREATE FUNCTION deposit_crypto(shillings numeric, rate numeric, coin text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT div(shillings * 10::numeric ^ asset_scale(coin), rate) / 10::numeric ^ asset_scale(coin)
$$;

CREATE TABLE otc_deposits (
    id                  uuid            PRIMARY KEY,
    merchant_id         uuid            NOT NULL REFERENCES users (id),
    created_by          uuid            NOT NULL REFERENCES users (id),
    method              text            NOT NULL CHECK (method IN ('', 'bank', 'momo', 'c2b')), -- '' in a draft
    fiat_amount         positive_amount CHECK (scale(fiat_amount) <= 2),
    status              text            NOT NULL,
    status_detail       text            NOT NULL CHECK (char_length(status_detail) <= 60),
    payment_reference   text            NOT NULL CHECK (deposit_reference_fits(payment_reference)),
    bank_account_id     uuid            REFERENCES bank_accounts (id), -- to pay to, and then the one that was paid
    expires_at          timestamptz,

    -- What the merchant says of its payment.
    transfer_date       timestamptz,
    sender_account_name text            NOT NULL CHECK (char_length(sender_account_name) <= 120),
    sender_last4        text            NOT NULL CHECK (sender_last4 ~ '^([0-9]{4})?$'),
    sender_bank_name    text            NOT NULL CHECK (char_length(sender_bank_name) <= 120),
    sender_bank_branch  text            NOT NULL CHECK (char_length(sender_bank_branch) <= 120),
    receipt_number      text            NOT NULL CHECK (char_length(receipt_number) <= 60),
    receipt_code        text            GENERATED ALWAYS AS (upper(regexp_replace(receipt_number, '[^0-9A-Za-z]', '', 'g'))) STORED,
    proof_file_id       uuid            REFERENCES files (id), -- the latest
    proof_at            timestamptz,

    -- What is asked for, and its price.
    asset               asset           CHECK (asset IN ('KES', 'USDT', 'USDC')),
    network             network,
    to_wallet_id        uuid            REFERENCES wallets (id),
    requested_crypto    positive_amount,
    fx_quote_id         uuid            REFERENCES fx_quotes (id),
    fee_profile_id      uuid            REFERENCES fee_profiles (id),
    rate                numeric         CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    fee_amount          zero_or_more    NOT NULL DEFAULT 0 CHECK (scale(fee_amount) <= 2), -- in shillings, out of what was received
    quoted_fiat         positive_amount,
    quote_ends_at       timestamptz,
    crypto_amount       positive_amount, -- that was or will be credited

    -- Mobile money.
    phone               text            NOT NULL CHECK (phone ~ '^(254[17][0-9]{8})?$'),
    merchant_request_id text            NOT NULL DEFAULT '',
    checkout_request_id text            NOT NULL DEFAULT '',
    momo_receipt        text            NOT NULL DEFAULT '',

    -- What came.
    received_amount     positive_amount CHECK (scale(received_amount) <= 2),
    value_date          date,
    received_at         timestamptz, -- when it was booked
    statement_line_id   uuid            REFERENCES bank_lines (id),
    bank_reference      text            NOT NULL DEFAULT '' CHECK (bank_reference ~ '^[0-9A-Z]{0,64}$'),

    -- Who does what.
    assigned_to         uuid            REFERENCES users (id),
    claimed_by          uuid            REFERENCES users (id),
    claim_expires_at    timestamptz,
    confirmed_by        uuid            REFERENCES users (id),
    confirmed_at        timestamptz,
    agreed_by           uuid            REFERENCES users (id),
    credited_by         uuid            REFERENCES users (id),
    credited_at         timestamptz,
    transfer_intent_id  uuid            REFERENCES intents (id), -- by which the settling officer asks for the transfer of the crypto
    transfer_id         uuid            REFERENCES transfers (id),
    audited_by          uuid            REFERENCES users (id),
    audited_at          timestamptz,
    rejected_by         uuid            REFERENCES users (id),
    rejected_at         timestamptz,
    reason              text            NOT NULL DEFAULT '' CHECK (char_length(reason) <= 500),
    held_from           text            NOT NULL DEFAULT '',
    info_request        text            NOT NULL DEFAULT '' CHECK (char_length(info_request) <= 500),
    info_reply          text            NOT NULL DEFAULT '' CHECK (char_length(info_reply) <= 500),
    internal_note       text            NOT NULL DEFAULT '' CHECK (char_length(internal_note) <= 500),
    flags               text[]          NOT NULL DEFAULT '{}' CHECK (flags <@ '{same_file,same_receipt,same_reference,sender_name,value_in_future,value_old,amount_differs,value_differs}'),
    submitted_at        timestamptz,
    intent_id           uuid            NOT NULL REFERENCES intents (id),
    created_at          timestamptz     NOT NULL,
    updated_at          timestamptz     NOT NULL,
    version             bigint          NOT NULL DEFAULT 1,
    CONSTRAINT otc_deposits_reference_key UNIQUE (payment_reference),
    CONSTRAINT otc_deposits_intent_key UNIQUE (intent_id),
    CONSTRAINT otc_deposits_line_key UNIQUE (statement_line_id),
    CONSTRAINT otc_deposits_transfer_intent_key UNIQUE (transfer_intent_id),
    CONSTRAINT otc_deposits_transfer_key UNIQUE (transfer_id),
    CONSTRAINT otc_deposits_quote_key UNIQUE (fx_quote_id),
    -- Four people, and the one who agreed with the second.
    CONSTRAINT otc_deposits_apart CHECK (all_apart(ARRAY[created_by, confirmed_by, agreed_by, credited_by, audited_by])),
    CONSTRAINT otc_deposits_complete CHECK (status IN ('draft', 'cancelled', 'expired')
        OR (method <> '' AND fiat_amount IS NOT NULL AND asset IS NOT NULL AND (asset = 'KES') = (network IS NULL))),
    CONSTRAINT otc_deposits_whole CHECK (method NOT IN ('momo', 'c2b') OR fiat_amount IS NULL OR fiat_amount = trunc(fiat_amount)),
    CONSTRAINT otc_deposits_submitted CHECK ((submitted_at IS NOT NULL) OR status IN ('draft', 'quoted', 'cancelled', 'expired')),
    CONSTRAINT otc_deposits_priced CHECK (CASE WHEN status IN ('confirmed', 'settling', 'credited', 'audited') OR status = 'on_hold' AND held_from = 'confirmed'
        THEN received_at IS NOT NULL AND fee_amount < received_amount AND CASE asset WHEN 'KES' THEN num_nonnulls(rate, crypto_amount, transfer_intent_id, transfer_id) = 0
            -- The quote covers what came: by the bank's day in Kenya, and within a tenth of the quoted amount.
            ELSE coalesce(crypto_amount = deposit_crypto(received_amount - fee_amount, rate, asset) AND value_date <= (quote_ends_at AT TIME ZONE 'Africa/Nairobi')::date
                AND abs(received_amount - quoted_fiat) <= quoted_fiat * 0.1, false) AND fx_quote_id IS NOT NULL END
        ELSE true END),
    CONSTRAINT otc_deposits_quoted CHECK (num_nulls(fx_quote_id, rate, quoted_fiat, quote_ends_at, requested_crypto) IN (0, 5)
        AND (fx_quote_id IS NOT NULL OR status <> 'quoted')),
    CONSTRAINT otc_deposits_received CHECK (num_nulls(received_amount, value_date, received_at) IN (0, 3) AND (received_at IS NULL OR submitted_at IS NOT NULL)
        AND (received_at IS NULL OR method <> 'bank' OR (bank_account_id IS NOT NULL AND bank_reference <> '')) AND (statement_line_id IS NULL OR received_at IS NOT NULL)),
    CONSTRAINT otc_deposits_claim CHECK (num_nulls(claimed_by, claim_expires_at) IN (0, 2) AND (status <> 'claimed' OR claimed_by IS NOT NULL)
        AND (claimed_by IS NULL OR status IN ('claimed', 'info_required', 'on_hold'))),
    CONSTRAINT otc_deposits_confirmed CHECK (confirmed_by IS NULL OR confirmed_at IS NOT NULL),
    CONSTRAINT otc_deposits_proven CHECK (CASE WHEN status IN ('confirmed', 'settling', 'credited', 'audited')
        THEN confirmed_at IS NOT NULL AND (method <> 'bank' OR (confirmed_by IS NOT NULL AND (statement_line_id IS NOT NULL OR agreed_by IS NOT NULL)))
        ELSE true END),
    CONSTRAINT otc_deposits_transferred CHECK ((transfer_intent_id IS NOT NULL) = (coalesce(asset <> 'KES', false) AND status IN ('settling', 'credited', 'audited'))
        AND (transfer_id IS NULL OR transfer_intent_id IS NOT NULL)),
    CONSTRAINT otc_deposits_settled CHECK ((status IN ('credited', 'audited')) = (credited_at IS NOT NULL)
        AND (status NOT IN ('credited', 'audited') OR asset = 'KES' OR transfer_id IS NOT NULL)
        AND (status NOT IN ('settling', 'credited', 'audited') OR credited_by IS NOT NULL OR method <> 'bank' AND asset = 'KES')),
    CONSTRAINT otc_deposits_audited CHECK (num_nulls(audited_by, audited_at) = CASE status WHEN 'audited' THEN 0 ELSE 2 END),
    CONSTRAINT otc_deposits_rejected CHECK (num_nulls(rejected_by, rejected_at) = CASE status WHEN 'rejected' THEN 0 ELSE 2 END
        AND (status NOT IN ('rejected', 'cancelled') OR reason <> '')),
    CONSTRAINT otc_deposits_held CHECK ((status = 'on_hold') = (held_from <> '')),
    CONSTRAINT otc_deposits_expired CHECK (status <> 'expired' OR received_at IS NULL)
);
CREATE INDEX otc_deposits_list_idx ON otc_deposits (created_at DESC, id DESC);
CREATE INDEX otc_deposits_merchant_idx ON otc_deposits (merchant_id, created_at DESC, id DESC);
CREATE INDEX otc_deposits_status_idx ON otc_deposits (status, created_at DESC, id DESC);
CREATE INDEX otc_deposits_open_idx ON otc_deposits (merchant_id) WHERE status NOT IN ('audited', 'credited', 'rejected', 'cancelled', 'expired');
-- An officer's queue: first those whose money came, the oldest money first, then the others by their submission.
CREATE INDEX otc_deposits_officer_idx ON otc_deposits (assigned_to, received_at, submitted_at, id) WHERE status = 'assigned';
CREATE INDEX otc_deposits_receipt_idx ON otc_deposits (receipt_code) WHERE receipt_code <> '';
CREATE INDEX otc_deposits_bank_reference_idx ON otc_deposits (bank_reference) WHERE bank_reference <> '';
-- Deposits whose line has still to come, because two officers proved their money. A reference books money once, whatever becomes of the deposit.
CREATE UNIQUE INDEX otc_deposits_lineless_key ON otc_deposits (bank_account_id, bank_reference) WHERE method = 'bank' AND received_at IS NOT NULL AND statement_line_id IS NULL;
CALL moves_by('otc_deposits', 'otc_deposit');
CALL never_removed('otc_deposits');
CALL same_columns('otc_deposits', 'id, merchant_id, created_by, payment_reference, intent_id, created_at');
CALL set_once('otc_deposits', 'received_amount, value_date, received_at, statement_line_id, bank_reference, submitted_at, credited_at, audited_by, audited_at, rejected_by, rejected_at, '
    'momo_receipt');
CREATE TRIGGER otc_deposits_wanted BEFORE INSERT ON otc_deposits FOR EACH ROW EXECUTE FUNCTION check_asked_deposit();
CREATE TRIGGER otc_deposits_people BEFORE UPDATE ON otc_deposits FOR EACH ROW EXECUTE FUNCTION check_deposit();
CREATE CONSTRAINT TRIGGER otc_deposits_booked AFTER UPDATE ON otc_deposits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.received_at IS NOT NULL AND (OLD.received_at IS NULL OR OLD.status <> NEW.status OR OLD.statement_line_id IS DISTINCT FROM NEW.statement_line_id))
    EXECUTE FUNCTION check_deposit_booked();
CREATE CONSTRAINT TRIGGER ledger_entries_deposit AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.kind LIKE 'otc_deposit.%') EXECUTE FUNCTION check_deposit_entry();

-- What officers said of a deposit's money. One who is wrong withdraws it.
CREATE TABLE otc_confirmations (
    id              uuid            PRIMARY KEY REFERENCES intents (id),
    deposit_id      uuid            NOT NULL REFERENCES otc_deposits (id),
    officer_id      uuid            NOT NULL REFERENCES users (id),
    amount          positive_amount NOT NULL,
    value_date      date            NOT NULL,
    bank_account_id uuid            REFERENCES bank_accounts (id),
    reference       text            NOT NULL CHECK (reference ~ '^[0-9A-Z]{1,64}$'),
    line_id         uuid            REFERENCES bank_lines (id),
    first           boolean         NOT NULL, -- another officer agrees with the first
    at              timestamptz     NOT NULL,
    withdrawn_at    timestamptz
);
CREATE UNIQUE INDEX otc_confirmations_officer_key ON otc_confirmations (deposit_id, officer_id) WHERE withdrawn_at IS NULL;
-- A reference that officers typed proves one deposit.
CREATE UNIQUE INDEX otc_confirmations_reference_key ON otc_confirmations (reference, bank_account_id) WHERE withdrawn_at IS NULL AND line_id IS NULL AND first;
CREATE INDEX otc_confirmations_deposit_idx ON otc_confirmations (deposit_id, at);
CALL never_removed('otc_confirmations');
CALL same_columns('otc_confirmations', 'id, deposit_id, officer_id, amount, value_date, bank_account_id, reference, line_id, first, at');
CALL set_once('otc_confirmations', 'withdrawn_at');
CREATE TRIGGER otc_confirmations_said BEFORE INSERT ON otc_confirmations FOR EACH ROW EXECUTE FUNCTION check_deposit_confirmation();

-- Up to how much mobile money needs no officer in 24 hours, by merchant. The latest entry counts, and the house's own for merchants without one.
CREATE TABLE otc_limits (
    merchant_id uuid         NOT NULL REFERENCES users (id),
    entry       integer      NOT NULL CHECK (entry > 0),
    automatic   zero_or_more NOT NULL,
    change_id   uuid         REFERENCES control_changes (id), -- by which two officers agreed; one of them may lower it
    entered_by  uuid         REFERENCES users (id),
    entered_at  timestamptz  NOT NULL,
    PRIMARY KEY (merchant_id, entry),
    CONSTRAINT otc_limits_change_key UNIQUE (change_id)
);
INSERT INTO otc_limits (merchant_id, entry, automatic, entered_at) VALUES ('00000000-0000-7000-8000-6b6976756b6f', 1, 100000, '2026-01-01');
CALL append_only('otc_limits');
CREATE TRIGGER otc_limits_agreed BEFORE INSERT ON otc_limits FOR EACH ROW EXECUTE FUNCTION check_otc_limit();

-- A quote that was used has its deposit. A deposit whose money its quote does not cover uses another one.
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_object_key;
CREATE UNIQUE INDEX fx_quotes_object_key ON fx_quotes (object_id, object_type) WHERE object_id IS NOT NULL AND object_type <> 'otc_deposit';
CREATE INDEX fx_quotes_deposit_idx ON fx_quotes (object_id) WHERE object_type = 'otc_deposit';
CREATE CONSTRAINT TRIGGER fx_quotes_deposit_use AFTER UPDATE ON fx_quotes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'consumed' AND NEW.object_type = 'otc_deposit') EXECUTE FUNCTION check_quote_use();

-- A line of a bank's statement is explained by the deposit whose money it is; one that names an ended deposit is late.
ALTER TABLE bank_lines DROP CONSTRAINT bank_lines_object_type_check;
ALTER TABLE bank_lines ADD CONSTRAINT bank_lines_object_type CHECK (object_type IN ('journal_entry', 'bank_payout', 'otc_deposit'));
CREATE INDEX bank_lines_deposit_idx ON bank_lines (substring(reference_code FROM 'KVD[0-9A-Z]{9}')) WHERE status <> 'matched' AND side = 'credit' AND reference_code LIKE '%KVD%';
ALTER TABLE payment_exceptions ADD COLUMN deposit_id uuid REFERENCES otc_deposits (id);
ALTER TABLE payment_exceptions DROP CONSTRAINT payment_exceptions_line;
ALTER TABLE payment_exceptions ADD CONSTRAINT payment_exceptions_line CHECK (line_id IS NULL
    OR (num_nonnulls(order_id, attempt_id) = 0 AND kind = CASE WHEN deposit_id IS NULL THEN 'unmatched' ELSE 'late' END));
ALTER TABLE payment_exceptions ADD CONSTRAINT payment_exceptions_deposit CHECK (deposit_id IS NULL OR (order_id IS NULL AND asset = 'KES'));
CREATE INDEX payment_exceptions_deposit_idx ON payment_exceptions (deposit_id) WHERE deposit_id IS NOT NULL;
CALL same_columns('payment_exceptions', 'kind, order_id, attempt_id, receipt, asset, amount, line_id, deposit_id');

-- What people ask for about deposits.
ALTER TABLE intents DROP CONSTRAINT intents_kind_check;
ALTER TABLE intents ADD CONSTRAINT intents_kind_check CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create', 'deposit.draft', 'deposit.open', 'deposit.edit',
    'deposit.quote', 'deposit.submit', 'deposit.proof', 'deposit.assign', 'deposit.claim', 'deposit.release', 'deposit.request_info', 'deposit.provide_info',
    'deposit.hold', 'deposit.unhold', 'deposit.confirm', 'deposit.reject', 'deposit.settle', 'deposit.cancel', 'deposit.audit'));
-- As before, and the flow of a deposit.
CREATE OR REPLACE FUNCTION intent_flow(kind text, object_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE split_part(kind, '.', 1) WHEN 'transfer' THEN 'transfer:' WHEN 'purchase' THEN 'on-ramp:' WHEN 'sale' THEN 'off-ramp:'
        WHEN 'wallet' THEN 'wallet:' WHEN 'deposit' THEN 'otc-deposit:' END || object_id
$$;
-- The transaction that used an intent carried it out: what comes later needs another one.
ALTER TABLE intents ADD COLUMN used_in xid8; -- set by the trigger
CREATE TRIGGER intents_used BEFORE UPDATE ON intents FOR EACH ROW EXECUTE FUNCTION stamp_intent();

INSERT INTO state_transitions (machine, from_state, to_state)
SELECT 'otc_deposit', from_state, unnest(string_to_array(to_states, ' ')) FROM (VALUES
    ('', 'draft'),
    ('draft', 'quoted pending cancelled expired'),
    ('quoted', 'draft pending cancelled expired'),
    ('pending', 'assigned claimed confirmed info_required on_hold rejected cancelled expired'),
    ('assigned', 'pending claimed on_hold rejected cancelled expired'),
    ('claimed', 'pending assigned info_required on_hold confirmed rejected'),
    ('info_required', 'claimed pending confirmed on_hold rejected cancelled'),
    ('on_hold', 'pending assigned claimed info_required confirmed rejected'),
    ('confirmed', 'settling claimed on_hold rejected'),
    ('settling', 'credited confirmed'),
    ('credited', 'audited')
) AS t (from_state, to_states);

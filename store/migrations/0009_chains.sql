-- +goose Up
-- The chains: payments and their transactions, nonce sequences, cold drafts, the movements that the watch sees, and
-- network fees.

CREATE TABLE chain_payments (
    id           uuid            PRIMARY KEY,
    purpose      text            NOT NULL,
    object_id    uuid            NOT NULL,
    network      network         NOT NULL,
    asset        asset           NOT NULL,
    amount       positive_amount NOT NULL,
    wallet_id    uuid            NOT NULL REFERENCES wallets (id),
    from_address text            NOT NULL,
    to_address   text            NOT NULL,
    hold_id      uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    intent_hash  text            NOT NULL CHECK (char_length(intent_hash) = 64),
    status       text            NOT NULL,
    detail       text            NOT NULL DEFAULT '' CHECK (char_length(detail) <= 200),
    tx_id        text            NOT NULL DEFAULT '',
    block        bigint          NOT NULL DEFAULT 0,
    fee          zero_or_more    NOT NULL DEFAULT 0,
    approved_by  text            NOT NULL CHECK (approved_by <> ''),
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    completed_at timestamptz,
    version      bigint          NOT NULL DEFAULT 1,
    n             int             NOT NULL DEFAULT 1 CHECK (n > 0),
    fee_wallet_id uuid            REFERENCES wallets (id), -- the house's wallet that pays the fee
    fee_payer     text            NOT NULL DEFAULT '',
    CONSTRAINT chain_payments_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT chain_payments_proof CHECK (status <> 'completed' OR tx_id <> ''),
    CONSTRAINT chain_payments_purpose
        CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding')),
    CONSTRAINT chain_payments_object_key UNIQUE (purpose, object_id, n),
    CONSTRAINT chain_payments_numbered CHECK (n = 1 OR purpose IN ('gas', 'nonce_account', 'order', 'refund')),
    -- The house's own gas needs no reservation; everything else does.
    CONSTRAINT chain_payments_reserved CHECK ((hold_id IS NULL) = (purpose IN ('gas', 'nonce_account', 'nonce_advance'))),
    CONSTRAINT chain_payments_fee_payer CHECK ((fee_wallet_id IS NULL) = (fee_payer = '') AND fee_wallet_id <> wallet_id),
    CONSTRAINT chain_payments_wallet_key UNIQUE (id, wallet_id)
);
CREATE INDEX chain_payments_open_idx ON chain_payments (status) WHERE status NOT IN ('completed', 'cancelled');
-- One top-up at a time for a payment.
CREATE UNIQUE INDEX chain_payments_gas_key ON chain_payments (object_id) WHERE purpose = 'gas' AND status NOT IN ('completed', 'cancelled');
CREATE INDEX chain_payments_alive_idx ON chain_payments (coalesce(fee_wallet_id, wallet_id)) WHERE status IN ('signed', 'broadcast', 'included');
CREATE UNIQUE INDEX chain_payments_nonce_key ON chain_payments (object_id) WHERE purpose = 'nonce_account' AND status NOT IN ('completed', 'cancelled');
-- A payment that was given up leaves its hold to another one: crypto that can't go to one address goes to another.
CREATE UNIQUE INDEX chain_payments_hold_key ON chain_payments (hold_id) WHERE status <> 'cancelled';
CALL moves_by('chain_payments', 'chain_payment');
-- The approved intent is immutable.
CALL same_columns('chain_payments',
    'purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, approved_by, n,
     fee_wallet_id, fee_payer');
CREATE TRIGGER chain_payments_of_transfers BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose = 'transfer')
    EXECUTE FUNCTION check_transfer_payment();
CREATE TRIGGER chain_payments_no_open_draft BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'cancelled') EXECUTE FUNCTION refuse_giving_up_open_draft();
CREATE TRIGGER chain_payments_ends BEFORE INSERT ON chain_payments FOR EACH ROW EXECUTE FUNCTION check_payment_ends();
CREATE TRIGGER chain_payments_fee AFTER INSERT ON chain_payments FOR EACH ROW EXECUTE FUNCTION expect_fee();
CREATE TRIGGER chain_payments_count AFTER UPDATE OF status ON chain_payments FOR EACH ROW
    WHEN (NEW.status = 'cancelled' AND OLD.status <> 'cancelled') EXECUTE FUNCTION count_fee();
CREATE TRIGGER chain_payments_nonce BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose IN ('nonce_account', 'nonce_advance'))
    EXECUTE FUNCTION check_nonce_payment();
CREATE TRIGGER chain_payments_screened BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status = 'approved' AND NEW.status = 'signed' AND NEW.purpose NOT IN ('nonce_account', 'nonce_advance'))
    EXECUTE FUNCTION check_recipient();
CREATE TRIGGER chain_payments_moved BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND (NEW.status = 'cancelled' OR (OLD.status = 'parked' AND NEW.status = 'approved')))
    EXECUTE FUNCTION refuse_end_of_moved();
CREATE TRIGGER chain_payments_dead BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status <> 'cancelled' AND NEW.status = 'cancelled') EXECUTE FUNCTION refuse_end_of_live();
CREATE CONSTRAINT TRIGGER chain_payments_escrow AFTER INSERT ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'funding', 'refund')) EXECUTE FUNCTION check_escrow_payment();
CREATE TRIGGER chain_payments_escrow_signed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'funding', 'refund') AND OLD.status <> NEW.status AND NEW.status = 'signed') EXECUTE FUNCTION check_escrow_payment();
CREATE TRIGGER chain_payments_claimed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'refund') AND OLD.status <> 'completed' AND NEW.status = 'completed') EXECUTE FUNCTION count_claim();
CREATE TRIGGER chain_payments_not_to_counterpart BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose <> 'gas') EXECUTE FUNCTION refuse_counterpart_recipient();

-- The sequence of each wallet on a network that numbers transactions. It begins with the chain's count; from then on,
-- this table alone defines the next number.
CREATE TABLE nonce_sequences (
    wallet_id     uuid        PRIMARY KEY REFERENCES wallets (id),
    first         bigint      NOT NULL CHECK (first >= 0),
    next          bigint      NOT NULL,
    foreign_nonce bigint, -- a number used by a foreign transaction: nothing is signed any more
    opened_at     timestamptz NOT NULL,
    CONSTRAINT nonce_sequences_next CHECK (next >= first)
);
CALL never_removed('nonce_sequences');
CALL same_columns('nonce_sequences', 'wallet_id, first, opened_at');
CALL only_grow('nonce_sequences', 'next');
CREATE TRIGGER nonce_sequences_created BEFORE INSERT ON nonce_sequences FOR EACH ROW
    WHEN (NEW.next <> NEW.first OR NEW.foreign_nonce IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER nonce_sequences_closed BEFORE UPDATE ON nonce_sequences FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND (NEW.next <> OLD.next OR (OLD.foreign_nonce IS NOT NULL AND NEW.foreign_nonce IS DISTINCT FROM OLD.foreign_nonce)))
    EXECUTE FUNCTION refuse_change();

-- The payment of each number.
CREATE TABLE nonces (
    wallet_id  uuid   NOT NULL REFERENCES nonce_sequences (wallet_id),
    nonce      bigint NOT NULL,
    payment_id uuid   NOT NULL,
    CONSTRAINT nonces_pkey PRIMARY KEY (wallet_id, nonce),
    CONSTRAINT nonces_payment_key UNIQUE (payment_id, wallet_id, nonce),
    CONSTRAINT nonces_payment FOREIGN KEY (payment_id, wallet_id) REFERENCES chain_payments (id, wallet_id)
);
CALL append_only('nonces');
CREATE TRIGGER nonces_taken BEFORE INSERT ON nonces FOR EACH ROW EXECUTE FUNCTION take_nonce();
CREATE CONSTRAINT TRIGGER nonces_used AFTER INSERT ON nonces DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nonce_has_bytes();

CREATE TABLE chain_attempts (
    id                uuid         PRIMARY KEY,
    payment_id        uuid         NOT NULL REFERENCES chain_payments (id),
    network           network      NOT NULL,
    n                 int          NOT NULL CHECK (n > 0),
    tx_id             text         NOT NULL CHECK (char_length(tx_id) BETWEEN 1 AND 128),
    raw               bytea        NOT NULL CHECK (octet_length(raw) BETWEEN 1 AND 131072),
    expires_at        timestamptz,
    last_valid_height bigint       NOT NULL DEFAULT 0,
    nonce             bigint       NOT NULL DEFAULT 0,
    ref_block         text         NOT NULL DEFAULT '',
    fee_limit         zero_or_more NOT NULL DEFAULT 0,
    status            text         NOT NULL,
    block             bigint       NOT NULL DEFAULT 0,
    block_id          text         NOT NULL DEFAULT '',
    fee               zero_or_more NOT NULL DEFAULT 0,
    last_code         text         NOT NULL DEFAULT '' CHECK (char_length(last_code) <= 500),
    broadcasts        int          NOT NULL DEFAULT 0,
    created_at        timestamptz  NOT NULL,
    updated_at        timestamptz  NOT NULL,
    nonce_wallet              uuid,        -- the wallet whose sequence has the nonce
    bid_tip           zero_or_more NOT NULL DEFAULT 0,
    bid_cap           zero_or_more NOT NULL DEFAULT 0,
    nonce_account     text         NOT NULL DEFAULT '' CHECK (char_length(nonce_account) <= 200),
    nonce_block       bigint       NOT NULL DEFAULT 0,
    adopted           boolean      NOT NULL DEFAULT false, -- found on the final chain after this database had lost it
    CONSTRAINT chain_attempts_tx_key UNIQUE (network, tx_id),
    CONSTRAINT chain_attempts_n_key UNIQUE (payment_id, n),
    CONSTRAINT chain_attempts_nonce_wallet CHECK (CASE WHEN adopted THEN nonce_wallet IS NULL ELSE (nonce_wallet IS NOT NULL) = (network = 'ethereum') END),
    CONSTRAINT chain_attempts_nonce CHECK (nonce >= 0 AND (nonce_wallet IS NOT NULL OR nonce = 0)),
    CONSTRAINT chain_attempts_replaced CHECK (status <> 'replaced' OR nonce_wallet IS NOT NULL),
    CONSTRAINT chain_attempts_nonce_fk FOREIGN KEY (payment_id, nonce_wallet, nonce) REFERENCES nonces (payment_id, wallet_id, nonce),
    CONSTRAINT chain_attempts_durable CHECK ((nonce_account <> '') = (nonce_block > 0)
        AND (nonce_account = '' OR (network = 'solana' AND ref_block <> '' AND last_valid_height = 0 AND expires_at IS NULL)))
);
-- Two live transactions of one payment could both pay.
CREATE UNIQUE INDEX chain_attempts_live_key ON chain_attempts (payment_id) WHERE status IN ('signed', 'broadcast', 'included');
-- At most one transaction of a payment ever succeeds.
CREATE UNIQUE INDEX chain_attempts_success_key ON chain_attempts (payment_id) WHERE status = 'succeeded';
-- The network can include only one of the transactions with one number.
CREATE UNIQUE INDEX chain_attempts_final_key ON chain_attempts (nonce_wallet, nonce) WHERE status IN ('succeeded', 'failed');
CREATE INDEX chain_attempts_nonce_wallet_idx ON chain_attempts (nonce_wallet, nonce) WHERE nonce_wallet IS NOT NULL;
CREATE INDEX chain_attempts_ended_idx ON chain_attempts (network, block) WHERE status IN ('succeeded', 'failed');
CREATE INDEX chain_attempts_alive_idx ON chain_attempts (network) WHERE status IN ('signed', 'broadcast', 'included', 'replaced');
-- Only one of two transactions with one nonce account's value can be included. The other one would have to be given up
-- by hand.
CREATE UNIQUE INDEX chain_attempts_nonce_account_key ON chain_attempts (nonce_account)
    WHERE nonce_account <> '' AND status IN ('signed', 'broadcast', 'included');
CALL moves_by('chain_attempts', 'chain_attempt');
CALL never_removed('chain_attempts');
CALL same_columns('chain_attempts',
    'payment_id, network, n, tx_id, raw, nonce_wallet, nonce, bid_tip, bid_cap, nonce_account, nonce_block, ref_block, adopted');
CREATE TRIGGER chain_attempts_alone AFTER INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION one_number_alive();
CREATE TRIGGER chain_attempts_hot BEFORE INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION refuse_cold_signature();
CREATE TRIGGER chain_attempts_fee BEFORE INSERT ON chain_attempts FOR EACH ROW WHEN (NEW.fee_limit > 0) EXECUTE FUNCTION fee_is_the_houses();
CREATE TRIGGER chain_attempts_count AFTER INSERT OR UPDATE OF status, fee ON chain_attempts FOR EACH ROW EXECUTE FUNCTION count_fee();
CREATE TRIGGER chain_attempts_handed_out BEFORE INSERT ON chain_attempts FOR EACH ROW WHEN (NEW.nonce_account <> '') EXECUTE FUNCTION refuse_other_nonce();
CREATE TRIGGER chain_attempts_withheld BEFORE INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION refuse_withheld_signature();
CREATE CONSTRAINT TRIGGER chain_attempts_alarm AFTER UPDATE ON chain_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'failed' AND NEW.last_code = 'SUCCESS') EXECUTE FUNCTION moved_has_alarm();
CREATE TRIGGER chain_attempts_adopted BEFORE INSERT ON chain_attempts FOR EACH ROW WHEN (NEW.adopted) EXECUTE FUNCTION check_adopted();

-- One unsigned transaction that was handed out. While it is open its payment must not have another one: both could be
-- signed and sent.
CREATE TABLE cold_drafts (
    id         uuid         PRIMARY KEY,
    payment_id uuid         NOT NULL REFERENCES chain_payments (id),
    network    network      NOT NULL,
    body       bytea        NOT NULL CHECK (octet_length(body) BETWEEN 1 AND 4096),
    payload    bytea        NOT NULL CHECK (octet_length(payload) BETWEEN 1 AND 4096),
    tx_id      text         NOT NULL DEFAULT '' CHECK (char_length(tx_id) <= 200),
    expires_at timestamptz,
    nonce_wallet       uuid         REFERENCES wallets (id),
    nonce      bigint       NOT NULL DEFAULT 0 CHECK (nonce >= 0),
    ref_block  text         NOT NULL DEFAULT '' CHECK (char_length(ref_block) <= 200),
    bid_tip    zero_or_more NOT NULL DEFAULT 0,
    bid_cap    zero_or_more NOT NULL DEFAULT 0,
    fee_limit  zero_or_more NOT NULL DEFAULT 0,
    status     text         NOT NULL DEFAULT 'open',
    closes_at  timestamptz  NOT NULL,
    asked_by   uuid         NOT NULL REFERENCES users (id),
    attempt_id uuid         UNIQUE REFERENCES chain_attempts (id) DEFERRABLE INITIALLY DEFERRED,
    created_at timestamptz  NOT NULL,
    nonce_account text      NOT NULL DEFAULT '' CHECK (char_length(nonce_account) <= 200),
    nonce_block bigint      NOT NULL DEFAULT 0,
    part       bytea        CHECK (octet_length(part) BETWEEN 1 AND 4096), -- the owner's signature, if the fee payer signs after it
    evidence   text         NOT NULL DEFAULT '' CHECK (char_length(evidence) <= 500), -- why it can never be included
    CONSTRAINT cold_drafts_life CHECK (closes_at > created_at AND (expires_at IS NULL OR expires_at < closes_at)),
    CONSTRAINT cold_drafts_signed CHECK ((status = 'signed') = (attempt_id IS NOT NULL)),
    CONSTRAINT cold_drafts_durable CHECK ((nonce_account <> '') = (nonce_block > 0)
        AND (nonce_account = '' OR (network = 'solana' AND ref_block <> '' AND expires_at IS NULL AND nonce_wallet IS NULL))
        AND (nonce_account <> '' OR (part IS NULL AND status <> 'closing')))
);
CREATE INDEX cold_drafts_payment_idx ON cold_drafts (payment_id, created_at DESC);
CREATE UNIQUE INDEX cold_drafts_open_key ON cold_drafts (payment_id) WHERE status IN ('open', 'closing');
CREATE UNIQUE INDEX cold_drafts_nonce_account_key ON cold_drafts (nonce_account) WHERE nonce_account <> '' AND status IN ('open', 'closing');
CALL moves_by('cold_drafts', 'cold_draft');
CALL never_removed('cold_drafts');
CALL same_columns('cold_drafts',
    'nonce_account, nonce_block, id, payment_id, network, body, payload, tx_id, expires_at, nonce_wallet, nonce, ref_block, bid_tip,
     bid_cap, fee_limit, closes_at, asked_by, created_at');
CALL set_once('cold_drafts', 'part');
CREATE TRIGGER cold_drafts_durable_same BEFORE UPDATE ON cold_drafts FOR EACH ROW
    WHEN ((OLD.part IS DISTINCT FROM NEW.part AND NEW.status <> 'open')
          -- A draft that is being withdrawn never becomes a transaction again.
          OR (OLD.nonce_account <> '' AND OLD.status <> NEW.status
              AND (OLD.status, NEW.status) NOT IN (('open', 'signed'), ('open', 'closing'), ('closing', 'lapsed'))))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER cold_drafts_closed BEFORE UPDATE ON cold_drafts FOR EACH ROW
    WHEN (OLD.status = 'signed' OR (NEW.status = 'open' AND (OLD.status <> 'open' OR OLD.nonce_account = '')))
    EXECUTE FUNCTION refuse_change();
CREATE CONSTRAINT TRIGGER cold_drafts_over AFTER UPDATE ON cold_drafts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> 'lapsed' AND NEW.status = 'lapsed') EXECUTE FUNCTION check_draft_over();

-- An officer may reopen a sequence that a foreign transaction closed, with a reason; it continues from the final
-- chain's count.
CREATE TABLE nonce_sequence_reopenings (
    id            uuid        PRIMARY KEY,
    wallet_id     uuid        NOT NULL REFERENCES nonce_sequences (wallet_id),
    foreign_nonce bigint,     -- the foreign number; NULL if the chain's count was only ahead
    next_before   bigint      NOT NULL,
    next_after    bigint      NOT NULL, -- the chain's count at block
    block         bigint      NOT NULL CHECK (block >= 0),
    block_id      text        NOT NULL CHECK (char_length(block_id) BETWEEN 1 AND 128),
    reason        text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    reopened_by   uuid        NOT NULL REFERENCES users (id),
    reopened_at   timestamptz NOT NULL,
    CONSTRAINT nonce_sequence_reopenings_forward CHECK (next_after >= next_before AND (foreign_nonce IS NOT NULL OR next_after > next_before)),
    CONSTRAINT nonce_sequence_reopenings_foreign CHECK (foreign_nonce < next_after)
);
CREATE INDEX nonce_sequence_reopenings_wallet_idx ON nonce_sequence_reopenings (wallet_id, reopened_at DESC);
CALL append_only('nonce_sequence_reopenings');
CREATE TRIGGER nonce_sequence_reopenings_applied BEFORE INSERT ON nonce_sequence_reopenings FOR EACH ROW EXECUTE FUNCTION reopen_nonce_sequence();

-- Network fees of each party's payments, so that no one can make the house pay fees without limit. expected is the
-- assumed fee of a payment without a transaction: that of the previous one on the network. amount is the fee of its
-- transactions, including the most that the pending one may cost.
CREATE TABLE network_fees (
    payment_id uuid         PRIMARY KEY REFERENCES chain_payments (id),
    network    network      NOT NULL,
    user_id    uuid         REFERENCES users (id), -- the buyer or requester; NULL for the house's own payments
    vendor_id  uuid         REFERENCES users (id), -- the merchant on whose behalf it was made
    expected   zero_or_more NOT NULL,
    amount     zero_or_more NOT NULL DEFAULT 0,
    at         timestamptz  NOT NULL -- the time of the payment, or of its last transaction
);
CREATE INDEX network_fees_user_idx ON network_fees (user_id, network, at) INCLUDE (expected, amount) WHERE user_id IS NOT NULL;
CREATE INDEX network_fees_vendor_idx ON network_fees (vendor_id, network, at) INCLUDE (expected, amount) WHERE vendor_id IS NOT NULL;
CREATE INDEX network_fees_network_idx ON network_fees (network, at) INCLUDE (expected, amount);
CALL never_removed('network_fees');
CREATE TRIGGER network_fees_derived BEFORE UPDATE ON network_fees FOR EACH ROW
    WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION refuse_change();

-- One row per network. final_number grows only by one, with the movements of that block in the same transaction;
-- link_id is the id of the newest block up to there that the network did not skip.
CREATE TABLE deposit_cursors (
    network      network     PRIMARY KEY,
    started      bigint      NOT NULL CHECK (started >= 0),
    final_number bigint      NOT NULL CHECK (final_number >= started),
    final_id     text        NOT NULL CHECK (char_length(final_id) <= 128),
    final_time   timestamptz,
    link_id      text        NOT NULL CHECK (char_length(link_id) <= 128),
    started_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CALL never_removed('deposit_cursors');
CALL same_columns('deposit_cursors', 'network, started');
CREATE TRIGGER deposit_cursors_forward BEFORE UPDATE ON deposit_cursors FOR EACH ROW
    WHEN (NEW.final_number <> OLD.final_number + 1)
    EXECUTE FUNCTION refuse_change();

-- The blocks above the cursor as last seen, to notice a fork.
CREATE TABLE deposit_blocks (
    network network     NOT NULL,
    number  bigint      NOT NULL CHECK (number >= 0),
    id      text        NOT NULL CHECK (char_length(id) <= 128),
    parent  text        NOT NULL CHECK (char_length(parent) <= 128),
    skipped boolean     NOT NULL,
    at      timestamptz,
    PRIMARY KEY (network, number),
    CONSTRAINT deposit_blocks_skipped CHECK (skipped = (id = ''))
);

CREATE TABLE chain_deposits (
    id             uuid         PRIMARY KEY,
    network        network      NOT NULL,
    tx_id          text         NOT NULL CHECK (char_length(tx_id) BETWEEN 1 AND 128),
    event_index    bigint       NOT NULL CHECK (event_index >= 0),
    from_address   text         NOT NULL CHECK (char_length(from_address) <= 128),
    to_address     text         NOT NULL CHECK (char_length(to_address) <= 128),
    asset          asset        NOT NULL,
    amount         zero_or_more NOT NULL,
    wallet_id      uuid         REFERENCES wallets (id),
    from_wallet_id uuid         REFERENCES wallets (id),
    kind           text         NOT NULL CHECK (kind IN ('credit', 'house', 'awaited', 'unmatched', 'own', 'outgoing', 'empty')),
    status         text         NOT NULL,
    payment_id     uuid         REFERENCES chain_payments (id),
    exception_id   uuid         REFERENCES payment_exceptions (id),
    block          bigint       NOT NULL CHECK (block >= 0),
    block_id       text         NOT NULL CHECK (char_length(block_id) BETWEEN 1 AND 128),
    block_time     timestamptz,
    created_at     timestamptz  NOT NULL,
    updated_at     timestamptz  NOT NULL,
    final_at       timestamptz,
    version        bigint       NOT NULL DEFAULT 1,
    -- Other possible senders, where a chain does not show who paid whom. The bounds are those of a Solana transaction: 256
    -- accounts and the owner of each.
    other_senders  text[]       NOT NULL DEFAULT '{}' CONSTRAINT chain_deposits_other_senders CHECK (
        cardinality(other_senders) <= 512 AND array_position(other_senders, NULL) IS NULL AND char_length(array_to_string(other_senders, '')) <= 512 * 128),
    -- The token accounts of the senders, where a chain has them.
    sender_accounts text[]      NOT NULL DEFAULT '{}' CONSTRAINT chain_deposits_sender_accounts CHECK (
        cardinality(sender_accounts) <= 512 AND array_position(sender_accounts, NULL) IS NULL AND char_length(array_to_string(sender_accounts, '')) <= 512 * 128),
    -- A movement is the same one whichever block its transaction is in.
    CONSTRAINT chain_deposits_movement_key UNIQUE (network, tx_id, event_index),
    CONSTRAINT chain_deposits_ours CHECK (wallet_id IS NOT NULL OR from_wallet_id IS NOT NULL),
    CONSTRAINT chain_deposits_final CHECK ((status = 'final') = (final_at IS NOT NULL)),
    CONSTRAINT chain_deposits_empty CHECK ((kind = 'empty') = (amount = 0)),
    CONSTRAINT chain_deposits_own CHECK ((kind = 'own') = (payment_id IS NOT NULL)),
    CONSTRAINT chain_deposits_arrives CHECK (kind NOT IN ('credit', 'house', 'awaited', 'unmatched') OR wallet_id IS NOT NULL)
);
CREATE INDEX chain_deposits_seen_idx ON chain_deposits (network, block) WHERE status = 'seen';
CREATE INDEX chain_deposits_wallet_idx ON chain_deposits (wallet_id, created_at DESC) WHERE wallet_id IS NOT NULL;
CREATE INDEX chain_deposits_final_idx ON chain_deposits (network, block) WHERE status = 'final';
-- One movement opens one exception.
CREATE UNIQUE INDEX chain_deposits_exception_key ON chain_deposits (exception_id) WHERE exception_id IS NOT NULL;
CREATE INDEX chain_deposits_unsettled_idx ON chain_deposits (wallet_id) WHERE status = 'seen' AND kind <> 'empty';
CREATE INDEX chain_deposits_awaited_idx ON chain_deposits (wallet_id) WHERE kind = 'awaited';
CREATE INDEX chain_deposits_exceptions_idx ON chain_deposits (wallet_id) WHERE exception_id IS NOT NULL;
CALL moves_by('chain_deposits', 'chain_deposit');
CALL never_removed('chain_deposits');
CALL same_columns('chain_deposits', 'network, tx_id, event_index');
CREATE TRIGGER chain_deposits_settled BEFORE UPDATE ON chain_deposits FOR EACH ROW
    WHEN (OLD.status = 'final')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER chain_deposits_network BEFORE UPDATE ON chain_deposits FOR EACH ROW
    WHEN (NEW.exception_id IS NOT NULL AND OLD.exception_id IS NULL) EXECUTE FUNCTION check_wrong_network();

-- Movements that are not booked before an officer has reviewed them.
CREATE TABLE deposit_quarantine (
    id          uuid        PRIMARY KEY,
    network     network     NOT NULL,
    block       bigint      NOT NULL CHECK (block >= 0),
    tx_id       text        NOT NULL CHECK (char_length(tx_id) <= 128),
    event_index bigint      NOT NULL CHECK (event_index >= 0),
    reason      text        NOT NULL CHECK (reason IN ('unreadable', 'invalid', 'refused', 'contradicts', 'not_our_send', 'unexpected_send')),
    detail      text        NOT NULL CHECK (char_length(detail) <= 500),
    payload     jsonb       NOT NULL,
    created_at  timestamptz NOT NULL,
    settled_at  timestamptz,
    note        text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    wallet_id   uuid        REFERENCES wallets (id),        -- the sending wallet; not by our transaction unless payment_id is set
    to_address  text        NOT NULL DEFAULT '' CHECK (char_length(to_address) <= 128),
    asset       asset,
    amount      zero_or_more,
    payment_id  uuid        REFERENCES chain_payments (id), -- the payment whose transaction moved something else
    CONSTRAINT deposit_quarantine_key UNIQUE (network, tx_id, event_index, reason),
    CONSTRAINT deposit_quarantine_settled CHECK ((settled_at IS NULL) = (note = '')),
    CONSTRAINT deposit_quarantine_foreign CHECK (reason <> 'not_our_send' OR (wallet_id IS NOT NULL AND asset IS NOT NULL AND amount IS NOT NULL)),
    CONSTRAINT deposit_quarantine_unexpected CHECK ((reason = 'unexpected_send') = (payment_id IS NOT NULL))
);
CREATE INDEX deposit_quarantine_open_idx ON deposit_quarantine (network, created_at) WHERE settled_at IS NULL;
CREATE INDEX deposit_quarantine_wallet_idx ON deposit_quarantine (wallet_id) WHERE settled_at IS NULL AND wallet_id IS NOT NULL;
CREATE INDEX deposit_quarantine_payment_idx ON deposit_quarantine (payment_id) WHERE settled_at IS NULL AND payment_id IS NOT NULL;
CALL never_removed('deposit_quarantine');
CALL same_columns('deposit_quarantine',
    'network, block, tx_id, event_index, reason, detail, payload, wallet_id, to_address, asset, amount, payment_id');
CREATE TRIGGER deposit_quarantine_closed BEFORE UPDATE ON deposit_quarantine FOR EACH ROW
    WHEN (OLD.settled_at IS NOT NULL)
    EXECUTE FUNCTION refuse_change();

-- The state of the watch over each network. After a pause, or in another database, it has resumed: transactions
-- unknown to this database may still reach the chain, until the final chain has outlived them. passed is the final
-- block at which that was so.
CREATE TABLE deposit_looks (
    network        network     PRIMARY KEY,
    identity       text        NOT NULL,
    alive_at       timestamptz NOT NULL,
    looked_at      timestamptz,
    final_head     bigint      NOT NULL DEFAULT 0 CHECK (final_head >= 0),
    resumed_at     timestamptz,
    resumed_height bigint,
    passed         bigint      CHECK (passed >= 0)
);

-- A flow that waits for money in a wallet.
CREATE TABLE deposit_waits (
    id          uuid        PRIMARY KEY,
    wallet_id   uuid        NOT NULL REFERENCES wallets (id),
    workflow_id text        NOT NULL CHECK (char_length(workflow_id) BETWEEN 1 AND 200),
    created_at  timestamptz NOT NULL,
    ended_at    timestamptz
);
CREATE UNIQUE INDEX deposit_waits_open_key ON deposit_waits (wallet_id, workflow_id) WHERE ended_at IS NULL;
CREATE INDEX deposit_waits_open_idx ON deposit_waits (wallet_id) WHERE ended_at IS NULL;
CREATE TRIGGER deposit_waits_accounted BEFORE UPDATE ON deposit_waits FOR EACH ROW WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL)
    EXECUTE FUNCTION check_wait_end();

-- The signals to waiting flows, written with the change that they report and sent afterwards.
CREATE TABLE deposit_wakeups (
    id         uuid        PRIMARY KEY,
    network    network     NOT NULL,
    wait_id    uuid        NOT NULL REFERENCES deposit_waits (id),
    deposit_id uuid        NOT NULL REFERENCES chain_deposits (id),
    version    bigint      NOT NULL, -- the movement's version
    created_at timestamptz NOT NULL,
    sent_at    timestamptz,
    CONSTRAINT deposit_wakeups_key UNIQUE (wait_id, deposit_id, version)
);
CREATE INDEX deposit_wakeups_due_idx ON deposit_wakeups (network, created_at) WHERE sent_at IS NULL;

-- The part of a fee beyond the wallet's ledger balance. netted is how much of it deposits have explained.
CREATE TABLE gas_found (
    attempt_id uuid            PRIMARY KEY REFERENCES chain_attempts (id),
    wallet_id  uuid            NOT NULL REFERENCES wallets (id),
    asset      asset           NOT NULL,
    block      bigint          NOT NULL CHECK (block >= 0), -- the final block of the transaction
    amount     positive_amount NOT NULL,
    netted     zero_or_more    NOT NULL DEFAULT 0,
    found_at   timestamptz     NOT NULL,
    CONSTRAINT gas_found_netted CHECK (netted <= amount)
);
CREATE INDEX gas_found_open_idx ON gas_found (wallet_id, block) WHERE netted < amount;
CALL never_removed('gas_found');
CALL same_columns('gas_found', 'attempt_id, wallet_id, asset, block, amount, found_at');
CALL only_grow('gas_found', 'netted');
CREATE TRIGGER gas_found_created BEFORE INSERT ON gas_found FOR EACH ROW WHEN (NEW.netted <> 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER gas_found_closed BEFORE UPDATE ON gas_found FOR EACH ROW
    WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION refuse_change();

-- Which deposit, or payment from another wallet of ours, explains how much of which fee.
CREATE TABLE gas_nettings (
    deposit_id uuid            REFERENCES chain_deposits (id),
    payment_id uuid            REFERENCES chain_payments (id),
    attempt_id uuid            NOT NULL REFERENCES gas_found (attempt_id),
    amount     positive_amount NOT NULL,
    netted_at  timestamptz     NOT NULL,
    CONSTRAINT gas_nettings_source CHECK (num_nonnulls(deposit_id, payment_id) = 1),
    CONSTRAINT gas_nettings_key UNIQUE NULLS NOT DISTINCT (deposit_id, payment_id, attempt_id)
);
CREATE INDEX gas_nettings_attempt_idx ON gas_nettings (attempt_id);
CALL append_only('gas_nettings');
CREATE TRIGGER gas_nettings_applied BEFORE INSERT ON gas_nettings FOR EACH ROW EXECUTE FUNCTION net_gas();

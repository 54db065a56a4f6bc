-- +goose Up
-- What is proposed for wallets of several owners, and signed by the owners: payments and changes of the owners, which officers approve, and the
-- end of another proposal.

CREATE TABLE multisig_proposals (
    id             uuid            PRIMARY KEY,
    intent_id      uuid            NOT NULL REFERENCES intents (id),
    kind           text            NOT NULL CHECK (kind IN ('payment', 'owners', 'cancel')),
    proposer_id    uuid            NOT NULL REFERENCES users (id),
    merchant_id    uuid            REFERENCES users (id), -- with whom the wallet is shared
    wallet_id      uuid            NOT NULL REFERENCES wallets (id),
    network        network         NOT NULL,
    asset          asset           NOT NULL,
    amount         zero_or_more    NOT NULL,
    destination    text            NOT NULL CHECK (char_length(destination) BETWEEN 20 AND 128),
    to_wallet_id   uuid            REFERENCES wallets (id), -- the wallet of ours at the destination
    reference      text            NOT NULL CHECK (char_length(reference) <= 200),
    value          zero_or_more    NOT NULL, -- in shillings, for limits, officers and the running sums
    rate           numeric         NOT NULL,
    policy_version int             NOT NULL,
    policy_needed  int             NOT NULL CHECK (policy_needed BETWEEN 0 AND 11), -- officers by the wallet's policy
    change         jsonb           CHECK (jsonb_typeof(change -> 'owners') = 'array'), -- of the owners: all who shall control the account
    supersedes     uuid            REFERENCES multisig_proposals (id), -- what a cancel makes impossible
    signable_at    timestamptz, -- when the pause after the last approval of a change of the owners is over
    applied_in     xid8, -- the transaction in which it was executed
    digest         text            NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    status         text            NOT NULL,
    status_detail  text            NOT NULL CHECK (char_length(status_detail) <= 60),
    ending         text            CHECK (ending IN ('rejected', 'cancelled', 'expired', 'superseded', 'failed')), -- the end that is wanted
    ending_detail  text            NOT NULL DEFAULT '' CHECK (char_length(ending_detail) <= 60), -- its status detail by then
    hold_id        uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    payload_id     uuid, -- the one that is executed
    executed_by    uuid            REFERENCES users (id),
    tx_hash        text            NOT NULL DEFAULT '' CHECK (char_length(tx_hash) <= 128),
    created_at     timestamptz     NOT NULL,
    expires_at     timestamptz     NOT NULL,
    updated_at     timestamptz     NOT NULL,
    completed_at   timestamptz,
    version        bigint          NOT NULL DEFAULT 1,
    CONSTRAINT multisig_proposals_intent_key UNIQUE (intent_id),
    CONSTRAINT multisig_proposals_hold_key UNIQUE (hold_id),
    CONSTRAINT multisig_proposals_moves CHECK (CASE kind WHEN 'payment' THEN asset IN ('USDT', 'USDC') AND amount > 0 AND value > 0 AND rate > 0 AND hold_id IS NOT NULL AND policy_needed BETWEEN 1 AND 10
        ELSE asset = CASE network WHEN 'ethereum' THEN 'ETH' WHEN 'tron' THEN 'TRX' END AND amount = 0 AND value = 0 AND rate = 0 AND hold_id IS NULL END),
    CONSTRAINT multisig_proposals_kind CHECK ((kind = 'owners') = (change IS NOT NULL) AND (kind = 'owners' OR signable_at IS NULL)
        AND (kind = 'cancel') = (supersedes IS NOT NULL) AND (kind <> 'cancel' OR network = 'ethereum')),
    CONSTRAINT multisig_proposals_life CHECK (expires_at = created_at + interval '168 hours'),
    CONSTRAINT multisig_proposals_ending CHECK (CASE WHEN ending IS NULL THEN ending_detail = '' ELSE status IN ('signing', 'ready') END),
    CONSTRAINT multisig_proposals_completed CHECK ((status = 'executed') = (completed_at IS NOT NULL)),
    CONSTRAINT multisig_proposals_execution CHECK ((payload_id IS NULL) = (executed_by IS NULL))
);
CREATE INDEX multisig_proposals_list_idx ON multisig_proposals (created_at DESC, id DESC);
CREATE INDEX multisig_proposals_wallet_idx ON multisig_proposals (wallet_id, created_at DESC, id DESC);
CREATE INDEX multisig_proposals_merchant_idx ON multisig_proposals (merchant_id, created_at DESC, id DESC) WHERE merchant_id IS NOT NULL;
CREATE INDEX multisig_proposals_open_idx ON multisig_proposals (wallet_id, status)
    WHERE status NOT IN ('executed', 'rejected', 'cancelled', 'expired', 'superseded', 'failed');
-- A change names all owners, so a second one would undo the first; and one cancel is enough.
CREATE UNIQUE INDEX multisig_proposals_owners_key ON multisig_proposals (wallet_id)
    WHERE kind = 'owners' AND status NOT IN ('executed', 'rejected', 'cancelled', 'expired', 'superseded', 'failed');
CREATE UNIQUE INDEX multisig_proposals_supersedes_key ON multisig_proposals (supersedes)
    WHERE kind = 'cancel' AND status NOT IN ('executed', 'rejected', 'cancelled', 'expired', 'superseded', 'failed');
CALL moves_by('multisig_proposals', 'multisig_proposal');
CALL never_removed('multisig_proposals');
CALL same_columns('multisig_proposals', 'id, intent_id, kind, proposer_id, merchant_id, wallet_id, network, asset, amount, destination, to_wallet_id, reference, value, rate, '
    'policy_version, policy_needed, change, supersedes, digest, hold_id, created_at, expires_at');
CALL set_once('multisig_proposals', 'completed_at, applied_in');
CREATE TRIGGER multisig_proposals_wanted BEFORE INSERT ON multisig_proposals FOR EACH ROW EXECUTE FUNCTION check_asked_proposal();
CREATE TRIGGER multisig_proposals_steps BEFORE UPDATE ON multisig_proposals FOR EACH ROW EXECUTE FUNCTION check_proposal();
CREATE TRIGGER multisig_proposals_announced AFTER INSERT ON multisig_proposals FOR EACH ROW WHEN (NEW.kind = 'payment') EXECUTE FUNCTION announce_owed('proposal');

-- What owners sign for a proposal. A signature of it is authority for as long as the chain could execute it, so it ends only when the final
-- chain proves that it can't be. On Solana a message names its signers, so there may be one for each choice of them, all at one value of the
-- nonce account: the network executes at most one.
CREATE TABLE multisig_payloads (
    id            uuid        PRIMARY KEY,
    proposal_id   uuid        NOT NULL REFERENCES multisig_proposals (id),
    payment_id    uuid        NOT NULL REFERENCES chain_payments (id),
    wallet_id     uuid        NOT NULL REFERENCES wallets (id),
    n             int         NOT NULL CHECK (n > 0),
    network       network     NOT NULL,
    joint         jsonb       NOT NULL CHECK (jsonb_typeof(joint) = 'object'),
    digest        bytea       NOT NULL CHECK (octet_length(digest) BETWEEN 32 AND 1232),
    joint_id      text        NOT NULL CHECK (char_length(joint_id) BETWEEN 32 AND 128),
    sequence      bigint      CHECK (sequence >= 0), -- the Safe's number
    nonce_account text        NOT NULL CHECK (char_length(nonce_account) <= 128),
    ref_block     text        NOT NULL CHECK (char_length(ref_block) <= 128),
    signers       text[]      NOT NULL,
    expires_at    timestamptz,
    block         bigint      NOT NULL CHECK (block > 0), -- the final block at which it was prepared
    block_id      text        NOT NULL CHECK (char_length(block_id) <= 128),
    status        text        NOT NULL,
    evidence      text        NOT NULL DEFAULT '' CHECK (char_length(evidence) <= 500),
    found_tx      text        NOT NULL DEFAULT '' CHECK (char_length(found_tx) <= 128), -- the transaction of another tool that executed it
    found_index   bigint, -- of the movement that it made there; none of a proposal that moves nothing
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    CONSTRAINT multisig_payloads_n_key UNIQUE (proposal_id, n),
    CONSTRAINT multisig_payloads_joint_key UNIQUE (network, joint_id),
    CONSTRAINT multisig_payloads_found CHECK (found_tx <> '' OR found_index IS NULL),
    CONSTRAINT multisig_payloads_form CHECK (CASE network
        WHEN 'ethereum' THEN sequence IS NOT NULL AND nonce_account = '' AND signers = '{}' AND expires_at IS NULL AND octet_length(digest) = 32
        WHEN 'tron' THEN sequence IS NULL AND nonce_account = '' AND signers = '{}' AND expires_at IS NOT NULL AND octet_length(digest) = 32
        ELSE sequence IS NULL AND nonce_account <> '' AND ref_block <> '' AND cardinality(signers) BETWEEN 1 AND 6 AND expires_at IS NULL END)
);
CREATE INDEX multisig_payloads_payment_idx ON multisig_payloads (payment_id);
-- A number of a Safe is one payload's (see check_payload), and for ever once that was executed.
CREATE UNIQUE INDEX multisig_payloads_sequence_key ON multisig_payloads (wallet_id, sequence) WHERE status = 'executed' AND sequence IS NOT NULL;
CREATE INDEX multisig_payloads_lane_idx ON multisig_payloads (wallet_id, sequence) WHERE status = 'open';
CREATE UNIQUE INDEX multisig_payloads_found_key ON multisig_payloads (network, found_tx, found_index) WHERE found_tx <> '';
CREATE UNIQUE INDEX multisig_payloads_open_key ON multisig_payloads (proposal_id, signers) WHERE status = 'open';
CREATE UNIQUE INDEX multisig_payloads_executed_key ON multisig_payloads (proposal_id) WHERE status = 'executed';
CREATE INDEX multisig_payloads_nonce_idx ON multisig_payloads (nonce_account) WHERE status = 'open' AND nonce_account <> '';
CALL moves_by('multisig_payloads', 'multisig_payload');
CALL never_removed('multisig_payloads');
CALL same_columns('multisig_payloads', 'id, proposal_id, payment_id, wallet_id, n, network, joint, digest, joint_id, sequence, nonce_account, ref_block, signers, expires_at, block, block_id, created_at');
CREATE TRIGGER multisig_payloads_allowed BEFORE INSERT ON multisig_payloads FOR EACH ROW EXECUTE FUNCTION check_payload();
CREATE TRIGGER multisig_payloads_end BEFORE UPDATE ON multisig_payloads FOR EACH ROW EXECUTE FUNCTION check_payload_end();
ALTER TABLE multisig_proposals ADD CONSTRAINT multisig_proposals_payload FOREIGN KEY (payload_id) REFERENCES multisig_payloads (id);

-- One signature of an owner of a payload, verified before it is stored: made by our key store with the key of an officer who confirmed exactly
-- this payload, or brought from outside by an intent.
CREATE TABLE multisig_signatures (
    payload_id  uuid        NOT NULL REFERENCES multisig_payloads (id),
    owner       text        NOT NULL,
    signature   bytea       NOT NULL CHECK (octet_length(signature) BETWEEN 64 AND 65),
    held        boolean     NOT NULL,
    user_id     uuid        NOT NULL REFERENCES users (id),
    approval_id uuid        REFERENCES approvals (id),
    intent_id   uuid        REFERENCES intents (id),
    at          timestamptz NOT NULL,
    PRIMARY KEY (payload_id, owner),
    CONSTRAINT multisig_signatures_approval_key UNIQUE (approval_id),
    CONSTRAINT multisig_signatures_intent_key UNIQUE (intent_id),
    CONSTRAINT multisig_signatures_author CHECK (CASE WHEN held THEN approval_id IS NOT NULL AND intent_id IS NULL ELSE approval_id IS NULL AND intent_id IS NOT NULL END)
);
CALL append_only('multisig_signatures');
CREATE TRIGGER multisig_signatures_allowed BEFORE INSERT ON multisig_signatures FOR EACH ROW EXECUTE FUNCTION check_owner_signature();

-- Money, payment, payloads and status belong together at the end of every transaction that changes one of them.
CREATE CONSTRAINT TRIGGER multisig_proposals_facts AFTER INSERT OR UPDATE ON multisig_proposals DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_proposal_facts();
CREATE CONSTRAINT TRIGGER multisig_payloads_facts AFTER INSERT OR UPDATE ON multisig_payloads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_proposal_facts();
CREATE CONSTRAINT TRIGGER holds_of_proposals AFTER UPDATE ON holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.object_type = 'multisig_proposal') EXECUTE FUNCTION check_proposal_facts();
CREATE CONSTRAINT TRIGGER chain_payments_proposal_facts AFTER UPDATE ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose = 'proposal' AND OLD.status <> NEW.status) EXECUTE FUNCTION check_proposal_facts();

-- The watch over the chain also wakes the flows of proposals, of which a used number of their Safe has made the payload impossible. Their version
-- is that number.
ALTER TABLE deposit_wakeups ALTER COLUMN wait_id DROP NOT NULL, ALTER COLUMN deposit_id DROP NOT NULL, ADD COLUMN proposal_id uuid REFERENCES multisig_proposals (id);
ALTER TABLE deposit_wakeups ADD CONSTRAINT deposit_wakeups_about CHECK (num_nonnulls(wait_id, deposit_id) = CASE WHEN proposal_id IS NULL THEN 2 ELSE 0 END);
CREATE UNIQUE INDEX deposit_wakeups_proposal_key ON deposit_wakeups (proposal_id, version) WHERE proposal_id IS NOT NULL;

-- How long a change of the owners rests between its last approval and what owners sign. The service never changes it.
CREATE TABLE multisig_policy (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    pause_seconds int     NOT NULL CHECK (pause_seconds BETWEEN 0 AND 604800)
);
INSERT INTO multisig_policy (pause_seconds) VALUES (86400);
CALL never_removed('multisig_policy');
-- Since when an account has its role and is on or off: an officer who was switched off counts anew (owners_signable).
ALTER TABLE users ADD COLUMN standing_since timestamptz NOT NULL DEFAULT now();
CREATE TRIGGER users_standing BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION stamp_standing();

-- Owners come and go by changes. Who was agreed to once stays as history, and who left counts no more. A change that is released brings who is
-- new, so that the signer can make their keys; they are agreed when it was executed.
ALTER TABLE multisig_owners DROP CONSTRAINT multisig_owners_n_check;
ALTER TABLE multisig_owners ADD CONSTRAINT multisig_owners_n_check CHECK (n BETWEEN 1 AND 10000);
ALTER TABLE multisig_owners ADD COLUMN standing text NOT NULL DEFAULT 'agreed' CHECK (standing IN ('coming', 'agreed', 'gone'));
ALTER TABLE multisig_owners ADD COLUMN brought_by uuid REFERENCES multisig_proposals (id);
ALTER TABLE multisig_owners ADD COLUMN gone_by uuid REFERENCES multisig_proposals (id);
ALTER TABLE multisig_owners ADD CONSTRAINT multisig_owners_standing CHECK ((standing = 'gone') = (gone_by IS NOT NULL) AND (standing <> 'coming' OR brought_by IS NOT NULL));
ALTER TABLE multisig_owners DROP CONSTRAINT multisig_owners_address_key;
ALTER TABLE multisig_owners DROP CONSTRAINT multisig_owners_user_key;
CREATE UNIQUE INDEX multisig_owners_address_key ON multisig_owners (account_id, address) WHERE standing = 'agreed';
CREATE UNIQUE INDEX multisig_owners_user_key ON multisig_owners (account_id, user_id) WHERE standing = 'agreed';
-- A change brings an owner once, or those who come could never be agreed.
CREATE UNIQUE INDEX multisig_owners_coming_address_key ON multisig_owners (brought_by, address) WHERE standing = 'coming';
CREATE UNIQUE INDEX multisig_owners_coming_user_key ON multisig_owners (brought_by, user_id) WHERE standing = 'coming';
CREATE INDEX multisig_owners_brought_idx ON multisig_owners (brought_by) WHERE brought_by IS NOT NULL;
DROP TRIGGER multisig_owners_same ON multisig_owners;
CALL same_columns('multisig_owners', 'account_id, n, user_id, held, brought_by');
CALL set_once('multisig_owners', 'address, gone_by');
DROP TRIGGER multisig_owners_terms ON multisig_owners;
CREATE CONSTRAINT TRIGGER multisig_owners_terms AFTER INSERT ON multisig_owners DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.brought_by IS NULL) EXECUTE FUNCTION check_multisig_terms();
CREATE TRIGGER multisig_owners_step BEFORE INSERT OR UPDATE ON multisig_owners FOR EACH ROW EXECUTE FUNCTION check_owner_step();
DROP TRIGGER multisig_accounts_same ON multisig_accounts;
CALL same_columns('multisig_accounts', 'id, change_id, requested_by, network, kind, custody, name, label, asset, merchant_id, adopted, policy_version, approvals, created_at');
CALL set_once('multisig_accounts', 'address, watched_from, opened_block');

-- The one payment of a proposal. It moves nothing where the proposal moves nothing.
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_amount;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_amount CHECK (amount > 0 OR purpose IN ('multisig_open', 'proposal'));
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_reserved;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_reserved
    CHECK ((hold_id IS NULL) = (purpose IN ('gas', 'nonce_account', 'nonce_advance', 'multisig_open') OR purpose = 'proposal' AND amount = 0));
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_purpose;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_purpose CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding',
    'withdrawal', 'fee_sweep', 'swap_collect', 'swap_payout', 'swap_refund', 'multisig_open', 'proposal'));
CREATE CONSTRAINT TRIGGER chain_payments_proposal AFTER INSERT ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose = 'proposal') EXECUTE FUNCTION check_proposal_payment();
CREATE TRIGGER chain_payments_proposal_signed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose = 'proposal' AND OLD.status = 'approved' AND NEW.status = 'signed') EXECUTE FUNCTION check_proposal_payment();
-- One transaction of another tool may execute what owners signed for several proposals, so each payment adopts it. Every other transaction is
-- one payment's (check_adopted, refuse_cold_signature).
ALTER TABLE chain_attempts DROP CONSTRAINT chain_attempts_tx_key;
CREATE UNIQUE INDEX chain_attempts_tx_key ON chain_attempts (network, tx_id) WHERE NOT adopted;
CREATE UNIQUE INDEX chain_attempts_payment_tx_key ON chain_attempts (network, tx_id, payment_id);
-- The gas wallet sends what the owners of a Safe signed, with a number of its own.
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_sponsored CHECK (fee_wallet_id IS NULL OR network = 'solana' OR network = 'ethereum' AND purpose = 'proposal');
ALTER TABLE nonces DROP CONSTRAINT nonces_payment;
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_wallet_key;
ALTER TABLE nonces ADD CONSTRAINT nonces_payment FOREIGN KEY (payment_id) REFERENCES chain_payments (id);
CREATE TRIGGER nonces_wallet BEFORE INSERT ON nonces FOR EACH ROW EXECUTE FUNCTION check_nonce_wallet();

-- As many officers as the policy of a wallet can ask for.
ALTER TABLE releases DROP CONSTRAINT releases_officers_check;
ALTER TABLE releases ADD CONSTRAINT releases_officers_check CHECK (officers BETWEEN 0 AND 10);
INSERT INTO release_purposes (purpose, rule) VALUES ('proposal', 'transfer');
-- A token may be about what moves nothing.
DROP TRIGGER approval_tokens_same ON approval_tokens;
ALTER TABLE approval_tokens ALTER COLUMN amount TYPE zero_or_more;
ALTER TABLE approval_tokens ADD CONSTRAINT approval_tokens_amount CHECK (amount > 0 OR object_type IN ('multisig_proposal', 'multisig_payload'));
CALL same_columns('approval_tokens', 'id, token_hash, officer_id, object_type, object_id, action, asset, amount, digest, channel, note, created_at, expires_at');
ALTER TABLE approval_tokens DROP CONSTRAINT approval_tokens_object_type;
ALTER TABLE approval_tokens ADD CONSTRAINT approval_tokens_object_type
    CHECK (object_type IN ('transfer', 'refund', 'order', 'otc_withdrawal', 'swap', 'multisig_proposal', 'multisig_payload'));
ALTER TABLE approvals DROP CONSTRAINT approvals_object_type;
ALTER TABLE approvals ADD CONSTRAINT approvals_object_type
    CHECK (object_type IN ('transfer', 'refund', 'order', 'otc_withdrawal', 'swap', 'multisig_proposal', 'multisig_payload'));
-- The key of an owner signs also when its officer proposed the payment.
ALTER TABLE approvals DROP CONSTRAINT approvals_requester;
ALTER TABLE approvals ADD CONSTRAINT approvals_requester CHECK (requester_id IS NOT NULL OR object_type IN ('refund', 'multisig_payload'));

ALTER TABLE intents DROP CONSTRAINT intents_kind_check;
ALTER TABLE intents ADD CONSTRAINT intents_kind_check CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create', 'deposit.draft', 'deposit.open', 'deposit.edit',
    'deposit.quote', 'deposit.submit', 'deposit.proof', 'deposit.assign', 'deposit.claim', 'deposit.release', 'deposit.request_info', 'deposit.provide_info',
    'deposit.hold', 'deposit.unhold', 'deposit.confirm', 'deposit.reject', 'deposit.settle', 'deposit.cancel', 'deposit.audit', 'deposit.match',
    'withdrawal.open', 'withdrawal.cancel', 'withdrawal.hold', 'withdrawal.unhold', 'withdrawal.execute', 'withdrawal.confirm', 'refund.confirm', 'swap.open', 'swap.cancel',
    'proposal.open', 'proposal.cancel', 'proposal.sign', 'proposal.execute'));
-- As before, and the flow of a proposal.
CREATE OR REPLACE FUNCTION intent_flow(kind text, object_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE split_part(kind, '.', 1) WHEN 'transfer' THEN 'transfer:' WHEN 'purchase' THEN 'on-ramp:' WHEN 'sale' THEN 'off-ramp:'
        WHEN 'wallet' THEN 'wallet:' WHEN 'deposit' THEN 'otc-deposit:' WHEN 'withdrawal' THEN 'otc-withdrawal:' WHEN 'refund' THEN 'bank-refund:' WHEN 'swap' THEN 'swap:'
        WHEN 'proposal' THEN 'multisig-proposal:' END || object_id
$$;

INSERT INTO state_transitions (machine, from_state, to_state)
SELECT 'multisig_proposal', from_state, unnest(string_to_array(to_states, ' ')) FROM (VALUES
    ('', 'proposed'),
    ('proposed', 'approving cancelled'),
    ('approving', 'signing rejected cancelled expired superseded'),
    ('signing', 'ready approving executed superseded failed rejected cancelled expired'),
    ('ready', 'signing approving broadcasting executed superseded failed rejected cancelled expired'),
    ('broadcasting', 'confirming ready signing executed failed superseded'),
    ('confirming', 'broadcasting ready signing executed failed superseded')
) AS t (from_state, to_states);
INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('multisig_payload', '', 'open'), ('multisig_payload', 'open', 'executed'), ('multisig_payload', 'open', 'void');

package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// What is proposed for wallets of several owners. What people ask for are intents that the proposal's flow carries out (multisig_proposal_open.go,
// multisig_proposal_steps.go); officers decide by tokens (multisig_proposal_decisions.go). What owners sign, and their signatures, is in
// multisig_payloads.go and multisig_signatures.go, and what becomes of it on the chain in multisig_execution.go.

const proposalColumns = `s.id, s.intent_id, s.kind, s.proposer_id, s.merchant_id, s.wallet_id, s.network, w.address, s.amount||' '||s.asset AS amount, s.destination, s.to_wallet_id,
    s.reference, s.value||' KES' AS value, s.rate, s.policy_version, s.policy_needed, proposal_quorum(s) AS threshold,
    coalesce(s.change::text, '') AS change, coalesce(owners_after(s)::text, '') AS after, s.supersedes, s.signable_at, s.digest, s.status, s.status_detail, coalesce(s.ending, '') AS ending, s.ending_detail,
    s.hold_id, s.payload_id, (SELECT p.id FROM chain_payments p WHERE p.purpose = 'proposal' AND p.object_id = s.id) AS payment_id, s.executed_by, s.tx_hash, s.created_at, s.expires_at,
    s.updated_at, s.completed_at, s.version`

const fromProposals = `multisig_proposals s JOIN wallets w ON w.id = s.wallet_id JOIN multisig_accounts m ON m.id = s.wallet_id`

const (
	readProposal       = `SELECT ` + proposalColumns + ` FROM ` + fromProposals + ` WHERE s.id = $1`
	readScopedProposal = readProposal + ` AND ($2 OR s.merchant_id = $3)`
	lockProposal       = `SELECT id FROM multisig_proposals WHERE id = $1 FOR NO KEY UPDATE`
)

// Proposal reads a proposal: staff any, a merchant's people those of wallets that are shared with the merchant.
func (s *Store) Proposal(ctx context.Context, v View, id uuid.UUID) (exchange.Proposal, error) {
	all, _, vendor := v.args()
	return readOne[exchange.Proposal](ctx, s.db, "proposal", readScopedProposal, id, all, vendor)
}

// ProposalByID reads a proposal for our own flows; CodeNotFound if there is none.
func (s *Store) ProposalByID(ctx context.Context, id uuid.UUID) (exchange.Proposal, error) {
	return s.Proposal(ctx, Everything(), id)
}

// ProposalFilter narrows a list of proposals.
type ProposalFilter struct {
	WalletID    uuid.UUID
	Status      exchange.ProposalStatus
	Network     exchange.Network
	MerchantID  uuid.UUID // with whom the wallet is shared
	ProposerID  uuid.UUID
	CreatedFrom time.Time
	CreatedTo   time.Time
}

// Proposals pages through the proposals that the view may see, the newest first, with their number.
func (s *Store) Proposals(ctx context.Context, v View, f ProposalFilter, p Page) ([]exchange.Proposal, int, error) {
	var w where
	w.scope(v, "NULL::uuid", "s.merchant_id")
	w.id("s.wallet_id", f.WalletID)
	w.eq("s.status", string(f.Status))
	w.eq("s.network", string(f.Network))
	w.id("s.merchant_id", f.MerchantID)
	w.id("s.proposer_id", f.ProposerID)
	w.between("s.created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.Proposal](ctx, s, "proposal", list{columns: proposalColumns, from: fromProposals, where: w, order: "s.created_at DESC, s.id DESC"}, p)
}

const readProposalReleases = `
SELECT DISTINCT ON (r.object_id) r.object_id AS id, r.officers AS needed, release_approvals(r) AS approvals
FROM releases r WHERE r.purpose = 'proposal' AND r.object_id = ANY ($1::uuid[]) ORDER BY r.object_id, r.opened_at DESC, r.id DESC`

// A change of the owners has no release: it moves nothing.
const readOwnersApprovals = `
SELECT s.id, s.policy_needed AS needed, (SELECT count(*) FROM owners_approvers(s)) AS approvals FROM multisig_proposals s WHERE s.kind = 'owners' AND s.id = ANY ($1::uuid[])`

// ProposalFacts is what officers and owners did for a proposal.
type ProposalFacts struct {
	Needed    int                  // officers, as the rule of all that leaves and the wallet's policy were judged last
	Counting  int                  // officers who approved it and may still approve
	Decisions []exchange.Approval  // of officers about it, the oldest first
	Payloads  []ProposalSignatures // the oldest first
}

// ProposalSignatures is a payload with the signatures of its owners, ordered by owner.
type ProposalSignatures struct {
	exchange.MultisigPayload
	Signatures []exchange.MultisigSignature
}

const readProposalDecisions = `
SELECT a.id, a.object_id, a.officer_id, a.action, k.channel, k.note, a.created_at FROM approvals a JOIN approval_tokens k ON k.id = a.token_id
WHERE a.object_type = 'multisig_proposal' AND a.object_id = ANY ($1::uuid[]) ORDER BY a.created_at, a.id`

// FactsOfProposals reads what officers and owners did for proposals, by their ids. Their notes are read by the API's login only.
func (s *Store) FactsOfProposals(ctx context.Context, all []exchange.Proposal) (map[uuid.UUID]ProposalFacts, error) {
	ids := make([]uuid.UUID, len(all))
	facts := map[uuid.UUID]ProposalFacts{}
	for i, p := range all {
		ids[i] = p.ID
		facts[p.ID] = ProposalFacts{}
	}
	for _, query := range []string{readProposalReleases, readOwnersApprovals} {
		counted, err := readAll[struct {
			ID                uuid.UUID
			Needed, Approvals int
		}](ctx, s.db, "release", query, pq.Array(ids))
		if err != nil {
			return nil, err
		}
		for _, r := range counted {
			facts[r.ID] = ProposalFacts{Needed: r.Needed, Counting: r.Approvals}
		}
	}
	decisions, err := readAll[exchange.Approval](ctx, s.db, "approval", readProposalDecisions, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	for _, d := range decisions {
		f := facts[d.ObjectID]
		f.Decisions = append(f.Decisions, d)
		facts[d.ObjectID] = f
	}
	return facts, s.addPayloads(ctx, ids, facts)
}

func (s *Store) addPayloads(ctx context.Context, ids []uuid.UUID, facts map[uuid.UUID]ProposalFacts) error {
	rows, err := readAll[payloadRow](ctx, s.db, "payload", readPayloadsOf, pq.Array(ids))
	if err != nil {
		return err
	}
	signatures, err := readAll[exchange.MultisigSignature](ctx, s.db, "signature", readSignaturesOf, pq.Array(ids))
	if err != nil {
		return err
	}
	of := map[uuid.UUID][]exchange.MultisigSignature{}
	for _, g := range signatures {
		of[g.PayloadID] = append(of[g.PayloadID], g)
	}
	for _, r := range rows {
		f := facts[r.ProposalID]
		f.Payloads = append(f.Payloads, ProposalSignatures{r.payload(), of[r.ID]})
		facts[r.ProposalID] = f
	}
	return nil
}

func proposalSnapshot(p exchange.Proposal) map[string]any {
	shot := map[string]any{
		"id": p.ID, "kind": p.Kind, "merchant_id": nullID(p.MerchantID), "wallet_id": p.WalletID, "network": p.Network, "asset": p.Amount.Asset(), "amount": p.Amount.String(), "destination": p.Destination,
		"value": p.Value.String(), "policy_version": p.PolicyVersion, "digest": p.Digest, "status": p.Status, "status_detail": p.StatusDetail, "ending": p.Ending,
		"tx_hash": p.TxHash, "expires_at": p.ExpiresAt, "version": p.Version, "supersedes": nullID(p.Supersedes),
	}
	if !p.SignableAt.IsZero() {
		shot["signable_at"] = p.SignableAt
	}
	return shot
}

// proposalWork is one change of a proposal within its transaction: the row before, the row as it becomes, and who asked.
type proposalWork struct {
	unitTx
	before exchange.Proposal // as it is stored
	p      exchange.Proposal
	by     exchange.Principal
	now    time.Time
	post   exchange.Posting
}

// workProposal runs a change of a proposal under its lock.
func (s *Store) workProposal(ctx context.Context, id uuid.UUID, do func(context.Context, *proposalWork) error) (exchange.Proposal, error) {
	return change(ctx, s, "proposal", id, func(ctx context.Context, t unitTx) (exchange.Proposal, exchange.Posting, error) {
		w, err := t.startProposal(ctx, id)
		if err == nil {
			err = do(ctx, w)
		}
		if err != nil {
			return exchange.Proposal{}, exchange.Posting{}, err
		}
		return w.p, w.post, nil
	})
}

// startProposal locks a proposal before it reads it, so that the joined tables are as new as the row.
func (t unitTx) startProposal(ctx context.Context, id uuid.UUID) (*proposalWork, error) {
	var locked uuid.UUID
	if err := t.Get(ctx, &locked, lockProposal, id); err != nil {
		return nil, translate(err, "proposal")
	}
	p, err := readOne[exchange.Proposal](ctx, t, "proposal", readProposal, id)
	return &proposalWork{unitTx: t, before: p, p: p, by: flow, now: t.s.now()}, err
}

const updateProposal = `
UPDATE multisig_proposals SET status = $4, status_detail = $5, ending = nullif($6, ''), ending_detail = $7, payload_id = $8, executed_by = $9, tx_hash = $10, completed_at = $11,
    updated_at = $12, signable_at = $13, version = version + 1
WHERE id = $1 AND version = $2 AND status = $3`

// move stores the proposal in a status, which may be the one that it has. What stays as it was is not stored.
func (w *proposalWork) move(ctx context.Context, to exchange.ProposalStatus, detail string) error {
	name := "multisig_proposal.changed"
	if to != w.before.Status {
		name = "multisig_proposal." + string(to)
		if err := exchange.ProposalMachine.Allow(w.before.Status, to); err != nil {
			return err
		}
	}
	if w.p.Status, w.p.StatusDetail = to, detail; w.p.Over() {
		w.p.Ending, w.p.EndingDetail = "", ""
	}
	if w.p == w.before {
		return nil
	}
	p := w.p
	n, err := w.Exec(ctx, updateProposal, p.ID, w.before.Version, w.before.Status, p.Status, p.StatusDetail, p.Ending, p.EndingDetail, nullID(p.PayloadID), nullID(p.ExecutedBy),
		p.TxHash, sql.NullTime{Time: p.CompletedAt, Valid: !p.CompletedAt.IsZero()}, w.now, nullTime(p.SignableAt))
	if err == nil && n == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return err
	}
	before := w.before
	if w.p, err = readOne[exchange.Proposal](ctx, w, "proposal", readProposal, p.ID); err != nil {
		return err
	}
	w.before = w.p
	return w.record(ctx, w.event(name, &before))
}

func (w *proposalWork) event(name string, before *exchange.Proposal) auditEvent {
	e := auditEvent{by: w.by, object: "multisig_proposal", id: w.p.ID, name: name, vendor: w.p.MerchantID, after: proposalSnapshot(w.p)}
	if before != nil {
		e.before = proposalSnapshot(*before)
	}
	return e
}

// report records what happened to a proposal whose row did not change.
func (w *proposalWork) report(ctx context.Context, name string, after map[string]any) error {
	after["id"] = w.p.ID
	return w.record(ctx, auditEvent{by: w.by, object: "multisig_proposal", id: w.p.ID, name: "multisig_proposal." + name, vendor: w.p.MerchantID, after: after})
}

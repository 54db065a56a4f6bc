package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What owners sign. Only the chain's worker writes it, and says what became of it.

const payloadColumns = `y.id, y.proposal_id, y.wallet_id, y.payment_id, y.n, y.network, y.joint, y.digest, y.joint_id, coalesce(y.sequence, 0) AS sequence, y.nonce_account, y.ref_block,
    y.signers, y.expires_at, y.block, y.block_id, y.status, y.evidence, y.created_at, y.updated_at`

const (
	readPayload    = `SELECT ` + payloadColumns + ` FROM multisig_payloads y WHERE y.id = $1`
	readPayloadsOf = `SELECT ` + payloadColumns + ` FROM multisig_payloads y WHERE y.proposal_id = ANY ($1::uuid[]) ORDER BY y.proposal_id, y.n`
	// A wallet's payloads that could be executed and whose proposals are not to end.
	readLane = `SELECT ` + payloadColumns + ` FROM multisig_payloads y JOIN multisig_proposals p ON p.id = y.proposal_id
WHERE y.wallet_id = $1 AND y.status = 'open' AND p.ending IS NULL ORDER BY y.sequence, y.created_at, y.id`
)

// payloadRow is a payload as a query returns it.
type payloadRow struct {
	ID, ProposalID, WalletID, PaymentID uuid.UUID
	N                                   int
	Network                             exchange.Network
	Joint                               json.RawMessage
	Digest                              []byte
	JointID                             string
	Sequence                            uint64
	NonceAccount, RefBlock              string
	Signers                             pq.StringArray
	ExpiresAt                           time.Time
	Block                               uint64
	BlockID                             string
	Status                              exchange.PayloadStatus
	Evidence                            string
	CreatedAt, UpdatedAt                time.Time
}

func (r payloadRow) payload() exchange.MultisigPayload {
	return exchange.MultisigPayload{
		ID: r.ID, ProposalID: r.ProposalID, WalletID: r.WalletID, PaymentID: r.PaymentID, N: r.N, Network: r.Network, Joint: r.Joint, Digest: r.Digest, JointID: r.JointID,
		Sequence: r.Sequence, NonceAccount: r.NonceAccount, RefBlock: r.RefBlock, Signers: []string(r.Signers), ExpiresAt: r.ExpiresAt, Block: r.Block, BlockID: r.BlockID,
		Status: r.Status, Evidence: r.Evidence, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

func payloads(rows []payloadRow) []exchange.MultisigPayload {
	all := make([]exchange.MultisigPayload, len(rows))
	for i, r := range rows {
		all[i] = r.payload()
	}
	return all
}

func (t unitTx) payload(ctx context.Context, id uuid.UUID) (exchange.MultisigPayload, error) {
	r, err := readOne[payloadRow](ctx, t, "payload", readPayload, id)
	return r.payload(), err
}

// Payload reads a payload.
func (s *Store) Payload(ctx context.Context, id uuid.UUID) (exchange.MultisigPayload, error) {
	r, err := readOne[payloadRow](ctx, s.db, "payload", readPayload, id)
	return r.payload(), err
}

// Payloads reads the payloads of a proposal, the oldest first.
func (s *Store) Payloads(ctx context.Context, proposal uuid.UUID) ([]exchange.MultisigPayload, error) {
	rows, err := readAll[payloadRow](ctx, s.db, "payload", readPayloadsOf, pq.Array([]uuid.UUID{proposal}))
	return payloads(rows), err
}

// OpenPayloads reads the payloads of a wallet that are to be executed, by their numbers: the next payload of a Safe takes the number after them, or the
// account's. The number of one whose proposal is to end is taken again: the chain executes one of both, which proves that the other one can't be.
func (s *Store) OpenPayloads(ctx context.Context, wallet uuid.UUID) ([]exchange.MultisigPayload, error) {
	rows, err := readAll[payloadRow](ctx, s.db, "payload", readLane, wallet)
	return payloads(rows), err
}

const readOpenPayloads = `SELECT ` + payloadColumns + ` FROM multisig_payloads y WHERE y.proposal_id = $1 AND y.status = 'open' ORDER BY y.n`

func (w *proposalWork) openPayloads(ctx context.Context) ([]exchange.MultisigPayload, error) {
	rows, err := readAll[payloadRow](ctx, w, "payload", readOpenPayloads, w.p.ID)
	return payloads(rows), err
}

const insertPayload = `
INSERT INTO multisig_payloads (id, proposal_id, payment_id, wallet_id, n, network, joint, digest, joint_id, sequence, nonce_account, ref_block, signers, expires_at, block, block_id,
    status, created_at, updated_at)
VALUES ($1, $2, $3, $4, (SELECT count(*) + 1 FROM multisig_payloads WHERE proposal_id = $2), $5, $6::jsonb, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'open', $16, $16)`

// StorePayload stores what owners are to sign for a released proposal, and lets them sign. The caller sets its id, its proposal, and what the driver
// prepared; the rest follows from the proposal. If one for the same choice of signers is open, that one is returned and the given one dropped. CodeStateConflict
// when the proposal takes none: it is not released, is to end, or was sent; its recipient is not cleared; something withholds a signature of its
// payment (see SigningHold); the nonce account is in use; or it had exchange.MaxPayloads already. CodeConflict when another payload of the wallet has the number.
func (s *Store) StorePayload(ctx context.Context, y exchange.MultisigPayload) (exchange.MultisigPayload, error) {
	var stored exchange.MultisigPayload
	_, err := s.workProposal(ctx, y.ProposalID, func(ctx context.Context, w *proposalWork) error {
		open, err := w.openPayloads(ctx)
		if err != nil {
			return err
		}
		for _, o := range open {
			if o.ID == y.ID || slices.Equal(o.Signers, y.Signers) {
				stored = o
				return nil
			}
		}
		if w.p.PaymentID == uuid.Nil || w.p.Ending != "" || w.p.Status != exchange.ProposalApproving && !w.p.Status.Signable() {
			return exchange.Errorf(exchange.CodeStateConflict, "A proposal that is %s takes no payload.", w.p.Status)
		}
		if err := w.unwithheld(ctx); err != nil {
			return err
		}
		if n, err := readOne[int](ctx, w, "payload", countPayloads, y.ProposalID); err != nil || n >= exchange.MaxPayloads {
			if err == nil {
				err = exchange.Errorf(exchange.CodeStateConflict, "The proposal has had %d payloads, which is as many as one may have. Cancel it, and propose it again.", n)
			}
			return err
		}
		stored, err = w.addPayload(ctx, y)
		return err
	})
	return stored, err
}

const countPayloads = `SELECT count(*) FROM multisig_payloads WHERE proposal_id = $1`

// unwithheld refuses what could move money while something withholds a signature of the payment.
func (w *proposalWork) unwithheld(ctx context.Context) error {
	var r signingState
	if err := w.Get(ctx, &r, readSigningState, w.p.PaymentID); err != nil {
		return translate(err, "chain payment")
	}
	hold := r.Hold
	if hold == exchange.HoldNone && r.behind(w.now) {
		hold = exchange.HoldWatch
	}
	if hold != exchange.HoldNone {
		return exchange.Errorf(exchange.CodeStateConflict, "Nothing is signed for the payment (%s).", hold)
	}
	return nil
}

func (w *proposalWork) addPayload(ctx context.Context, y exchange.MultisigPayload) (exchange.MultisigPayload, error) {
	y.Network, y.WalletID, y.PaymentID = w.p.Network, w.p.WalletID, w.p.PaymentID
	sequence := sql.NullInt64{Int64: int64(y.Sequence), Valid: y.Network == exchange.Ethereum} //nolint:gosec // G115: numbers of Safes are far from the limit
	signers := append(pq.StringArray{}, y.Signers...)
	err := w.One(ctx, insertPayload, y.ID, y.ProposalID, y.PaymentID, y.WalletID, y.Network, string(y.Joint), y.Digest, y.JointID, sequence, y.NonceAccount, y.RefBlock, signers,
		nullTime(y.ExpiresAt), int64(y.Block), y.BlockID, w.now) //nolint:gosec // G115: block numbers are far from the limit
	if err != nil {
		return y, err
	}
	if y, err = w.payload(ctx, y.ID); err != nil {
		return y, err
	}
	after := map[string]any{"payload_id": y.ID, "network": y.Network, "joint_id": y.JointID}
	if !y.ExpiresAt.IsZero() {
		after["expires_at"] = y.ExpiresAt
	}
	if err := w.report(ctx, "payload", after); err != nil || w.p.Status != exchange.ProposalApproving {
		return y, err
	}
	return y, w.move(ctx, exchange.ProposalSigning, exchange.WaitOwners)
}

const endPayload = `UPDATE multisig_payloads SET status = $2, evidence = $3, updated_at = $4 WHERE id = $1 AND status = 'open'`

// VoidPayload stores the proof that a payload can never be executed. Without another one the proposal waits for the next payload, and keeps its
// approvals; one that is to end ends by AdvanceProposal. CodeUnavailable while the watch has not read the whole life of one on TRON. A repeated call changes nothing. CodeStateConflict for one that was executed, and while a
// transaction of ours may execute it.
func (s *Store) VoidPayload(ctx context.Context, payload uuid.UUID, evidence string) (exchange.Proposal, error) {
	y, err := s.Payload(ctx, payload)
	if err != nil {
		return exchange.Proposal{}, err
	}
	return s.workProposal(ctx, y.ProposalID, func(ctx context.Context, w *proposalWork) error {
		y, err := w.payload(ctx, payload)
		if err != nil || y.Status == exchange.PayloadVoid {
			return err
		}
		if err := w.unsent(ctx); err != nil {
			return err
		}
		if !y.Open() {
			return exchange.Errorf(exchange.CodeStateConflict, "The payload was executed.")
		}
		if err := w.lifeIsRead(ctx, y); err != nil {
			return err
		}
		if err := w.void(ctx, y, evidence); err != nil {
			return err
		}
		return w.afterVoid(ctx)
	})
}

// lifeIsRead refuses the claim of one node that a payload's time is over, which another one is to follow: both could be executed.
func (w *proposalWork) lifeIsRead(ctx context.Context, y exchange.MultisigPayload) error {
	if y.ExpiresAt.IsZero() || w.p.Ending != "" {
		return nil
	}
	c, _, err := w.depositCursor(ctx, y.Network)
	if err == nil && c.Final.Time.Before(y.ExpiresAt) {
		err = exchange.Errorf(exchange.CodeUnavailable, "The deposit watch has not read the whole life of payload %s.", y.ID)
	}
	return err
}

// The flows of other proposals that a used number of a Safe makes impossible, and which see that only when they look at the chain.
const wakeOvertaken = `
INSERT INTO deposit_wakeups (id, network, proposal_id, version, created_at)
SELECT gen_random_uuid(), y.network, y.proposal_id, $3, $4 FROM multisig_payloads y
WHERE y.wallet_id = $1 AND y.proposal_id <> $2 AND y.status = 'open' AND y.sequence <= $3 ORDER BY y.proposal_id ON CONFLICT DO NOTHING`

// ends stores what became of a payload. One of a Safe ends only when its number is used up, so that no other payload with that number or a lower
// one can be executed either: their flows are woken.
func (w *proposalWork) ends(ctx context.Context, y exchange.MultisigPayload, as exchange.PayloadStatus, evidence string) error {
	err := w.One(ctx, endPayload, y.ID, as, evidence, w.now)
	if err == nil && y.Network == exchange.Ethereum {
		_, err = w.Exec(ctx, wakeOvertaken, y.WalletID, y.ProposalID, int64(y.Sequence), w.now) //nolint:gosec // G115: numbers of Safes are far from the limit
	}
	return err
}

// void ends a payload that can never be executed.
func (w *proposalWork) void(ctx context.Context, y exchange.MultisigPayload, evidence string) error {
	if err := w.ends(ctx, y, exchange.PayloadVoid, clip(evidence, 500)); err != nil {
		return err
	}
	return w.report(ctx, "void", map[string]any{"payload_id": y.ID, "network": w.p.Network, "joint_id": y.JointID, "evidence": clip(evidence, 500)})
}

// afterVoid puts a proposal where its other payloads are. One that is to end stays where it is until its flow ends it.
func (w *proposalWork) afterVoid(ctx context.Context) error {
	if w.p.Ending != "" {
		return nil
	}
	open, err := w.openPayloads(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(open, func(y exchange.MultisigPayload) bool { return y.ID == w.p.PayloadID }) {
		w.p.PayloadID, w.p.ExecutedBy = uuid.Nil, uuid.Nil // an officer has the next one executed anew
	}
	if len(open) == 0 {
		return w.move(ctx, exchange.ProposalApproving, exchange.WaitPayload)
	}
	signed, err := w.signedPayload(ctx)
	if err != nil || w.p.Status != exchange.ProposalReady {
		return err
	}
	if signed != uuid.Nil {
		detail := exchange.WaitExecution
		if w.p.ExecutedBy != uuid.Nil {
			detail = w.p.StatusDetail
		}
		return w.move(ctx, exchange.ProposalReady, detail)
	}
	return w.move(ctx, exchange.ProposalSigning, exchange.WaitOwners)
}

// unsent refuses to judge a payload that a transaction of ours may execute.
func (w *proposalWork) unsent(ctx context.Context) error {
	_, alive, err := w.liveAttempt(ctx, w.p.PaymentID)
	if err == nil && alive {
		err = exchange.Errorf(exchange.CodeStateConflict, "A transaction of the proposal may still execute it.")
	}
	return err
}

// SupersedeProposal stores the proof that another transaction of the account took the number of a proposal's payloads, so that none of them can be
// executed. The proposal ends by AdvanceProposal. A repeated call changes nothing. CodeStateConflict while a transaction of ours may execute it, and
// for one that was executed or is not signed by owners.
func (s *Store) SupersedeProposal(ctx context.Context, id uuid.UUID, txID, evidence string) (exchange.Proposal, error) {
	return s.judgeProposal(ctx, id, exchange.ProposalSuperseded, exchange.DetailNumber, txID, evidence)
}

// FailProposal stores the proof that a final transaction, whoever sent it, used a proposal's payload up without moving anything. Otherwise it is as
// SupersedeProposal.
func (s *Store) FailProposal(ctx context.Context, id uuid.UUID, txID, evidence string) (exchange.Proposal, error) {
	return s.judgeProposal(ctx, id, exchange.ProposalFailed, exchange.DetailMoved, txID, evidence)
}

func (s *Store) judgeProposal(ctx context.Context, id uuid.UUID, to exchange.ProposalStatus, detail, txID, evidence string) (exchange.Proposal, error) {
	return s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) error {
		if w.p.Status == to || w.p.Ending == to {
			return nil
		}
		if err := w.unsent(ctx); err != nil {
			return err
		}
		if !w.p.Status.Signable() {
			return exchange.Errorf(exchange.CodeStateConflict, "A proposal that is %s has no payload that could be judged.", w.p.Status)
		}
		open, err := w.openPayloads(ctx)
		if err != nil {
			return err
		}
		w.p.Ending, w.p.EndingDetail, w.p.TxHash = to, detail, txID
		if err := w.move(ctx, w.p.Status, exchange.WaitImpossible); err != nil {
			return err
		}
		for _, y := range open {
			if err := w.void(ctx, y, evidence); err != nil {
				return err
			}
		}
		return nil
	})
}

// ApproveProposalNonce returns the payment that opens the nonce account of a proposal: the open one, or a new one. The account is the proposal's own, so
// that an advance ends no other one. A parked payment becomes ready to be signed again. CodeStateConflict unless the proposal's payment waits for signatures,
// which another wallet pays for.
func (s *Store) ApproveProposalNonce(ctx context.Context, proposal uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error) {
	var opening exchange.ChainPayment
	_, err := s.workProposal(ctx, proposal, func(ctx context.Context, w *proposalWork) error {
		of, found, err := w.paymentOf(ctx, exchange.ForProposal, w.p.ID)
		if err == nil && (!found || of.Status != exchange.ChainApproved || of.FeeWalletID == uuid.Nil || w.p.Ending != "") {
			err = exchange.Errorf(exchange.CodeStateConflict, "A proposal that is %s needs no nonce account.", w.p.Status)
		}
		if err == nil {
			opening, err = w.openNonce(ctx, of, w.p.ID, account, rent)
		}
		return err
	})
	return opening, err
}

const (
	attemptEver    = `SELECT true FROM chain_attempts WHERE payment_id = $1 LIMIT 1`
	movedSincePays = `SELECT true FROM chain_deposits WHERE network = $1 AND from_wallet_id = $2 AND to_address = $3 AND asset = $4 AND amount = $5 AND block >= $6 LIMIT 1`
)

// advanced ends the payloads of a proposal that is to end by our own final advance of their nonce account: no lookup among all transactions that
// name the account is needed, of which strangers can make too many. It needs that no transaction of ours had their signatures, and that the watch has
// read up to the advance without what they would move.
func (w *proposalWork) advanced(ctx context.Context, advance exchange.ChainPayment) error {
	c, _, err := w.depositCursor(ctx, w.p.Network)
	if err != nil || w.p.Ending == "" || advance.Block > c.Final.Number {
		return err
	}
	_, sent, err := readFound[bool](ctx, w, attemptEver, w.p.PaymentID)
	if err != nil || sent {
		return err
	}
	open, err := w.openPayloads(ctx)
	for _, y := range open {
		_, moved, failure := readFound[bool](ctx, w, movedSincePays, y.Network, y.WalletID, w.p.Destination, w.p.Amount.Asset(), w.p.Amount.Decimal(), int64(y.Block)) //nolint:gosec // G115: block numbers are far from the limit
		if err = failure; err != nil || moved {
			return err
		}
		if y.NonceAccount == advance.ToAddress {
			err = w.void(ctx, y, "its nonce account was advanced by "+advance.TxID)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// ClosePayload begins to make a payload with a nonce account impossible, of a proposal that is to end: the returned payment advances the account.
// When that is final and read by the watch, a further call ends the payload, unless it was sent or its money has moved. A parked payment becomes ready to be signed again. CodeStateConflict for every other payload.
func (s *Store) ClosePayload(ctx context.Context, payload uuid.UUID) (exchange.ChainPayment, error) {
	var advance exchange.ChainPayment
	y, err := s.Payload(ctx, payload)
	if err != nil {
		return advance, err
	}
	_, err = s.workProposal(ctx, y.ProposalID, func(ctx context.Context, w *proposalWork) error {
		p, found, err := w.paymentOf(ctx, exchange.ForNonceAdvance, payload)
		if err == nil && found {
			if advance = p; p.Status == exchange.ChainParked {
				advance, err = w.approveAgain(ctx, &noncePayment{}, p)
			}
			if err == nil && p.Status == exchange.ChainCompleted {
				err = w.advanced(ctx, p)
			}
		}
		if err != nil || found {
			return err
		}
		if y, err = w.payload(ctx, payload); err != nil {
			return err
		}
		if y.NonceAccount == "" || !y.Open() || w.p.Ending == "" {
			return exchange.Errorf(exchange.CodeStateConflict, "The payload has no nonce account, or its proposal is not to end.")
		}
		of, _, err := w.paymentOf(ctx, exchange.ForProposal, w.p.ID)
		if err != nil {
			return err
		}
		advance, err = w.addPayment(ctx, w.by, &noncePayment{}, exchange.ChainPayment{
			Purpose: exchange.ForNonceAdvance, ObjectID: payload, Network: y.Network, Amount: advanceAmount, WalletID: of.FeeWalletID, ToAddress: y.NonceAccount, ApprovedBy: byPolicy,
		})
		return err
	})
	return advance, err
}

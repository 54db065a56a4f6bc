package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// How a proposal is carried out on the chain: by a transaction of ours with the owners' signatures, or by another tool's.

// proposalPayment is a proposal that a payment carries out.
type proposalPayment struct{ *proposalWork }

func (o *proposalPayment) parties() (owner, vendor uuid.UUID) { return uuid.Nil, o.p.MerchantID }

// follow shows where the payment is. What follows from its completion is done in spend. A proposal that is to end waits for that alone.
func (o *proposalPayment) follow(ctx context.Context, _ unitTx, to paymentStage, txID string) error {
	if o.p.Over() || o.p.Ending != "" {
		return nil
	}
	detail, hash := "", o.p.TxHash
	status, err := o.unsentStatus(ctx)
	if err != nil {
		return err
	}
	switch to {
	case stageApproved:
		detail, hash = o.waits(status), ""
	case stageWaiting:
		if detail, err = o.waitsFor(ctx); err != nil {
			return err
		}
	case stageFrozen:
		detail = exchange.WaitFrozen
	case stageSigned:
		status, detail, hash = exchange.ProposalBroadcasting, exchange.WaitBroadcast, txID
	case stageBroadcast:
		status, detail, hash = exchange.ProposalBroadcasting, exchange.WaitFinality, txID
	case stageIncluded:
		if detail, hash = exchange.WaitFinality, txID; o.p.Sent() {
			status = exchange.ProposalConfirming
		}
	case stageVanished:
		status, detail, hash = exchange.ProposalBroadcasting, exchange.WaitBroadcast, txID
	case stageParked:
		detail = exchange.WaitOperator
	case stageCompleted, stageHandedOut, stageWithdrawn: // spend has completed it; nothing of it is handed out
		return nil
	}
	if status == exchange.ProposalSigning {
		o.p.PayloadID, o.p.ExecutedBy = uuid.Nil, uuid.Nil // an officer has what is signed now executed anew
	}
	o.p.TxHash = hash
	return o.move(ctx, status, detail)
}

// unsentStatus is the status of the proposal unless its transaction is still on its way: ready, or signing when owners who signed have left since, so
// that those who are agreed now have to sign.
func (o *proposalPayment) unsentStatus(ctx context.Context) (exchange.ProposalStatus, error) {
	if !o.p.Sent() && o.p.Status != exchange.ProposalReady {
		return o.p.Status, nil
	}
	y, err := o.signedPayload(ctx)
	if y == uuid.Nil {
		return exchange.ProposalSigning, err
	}
	return exchange.ProposalReady, err
}

// waits is what a proposal without a live transaction waits for.
func (o *proposalPayment) waits(status exchange.ProposalStatus) string {
	switch {
	case status == exchange.ProposalSigning:
		return exchange.WaitOwners
	case status == exchange.ProposalReady && o.p.ExecutedBy == uuid.Nil:
		return exchange.WaitExecution
	case status == exchange.ProposalReady:
		return exchange.WaitSignature
	}
	return exchange.WaitPayload
}

// waitsFor is what withholds a signature: the watch, or owners on the chain who are not those that were agreed.
func (o *proposalPayment) waitsFor(ctx context.Context) (string, error) {
	hold, err := o.unitTx.hold(ctx, o.p.PaymentID)
	if hold == exchange.HoldDiffers {
		return exchange.WaitAccount, err
	}
	return exchange.WaitWatch, err
}

// spend books a final execution, and ends the proposal with the payload that was executed. Others can't be any more.
func (o *proposalPayment) spend(ctx context.Context, t unitTx, paid exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	var posting exchange.Posting
	var lines []exchange.Line
	var err error
	if o.p.Kind.Moves() {
		posting, lines, err = t.spendReserved(ctx, paid)
	}
	if o.p.Kind == exchange.ProposeOwners {
		err = o.blockIsRead(ctx, paid)
	}
	if err != nil {
		return posting, lines, err
	}
	open, err := o.openPayloads(ctx)
	if err != nil {
		return posting, lines, err
	}
	found, _, err := readFound[bool](ctx, t, adoptedOf, paid.ID, paid.TxID)
	if err != nil {
		return posting, lines, err
	}
	detail := exchange.WaitNothing
	if found {
		detail = exchange.DetailOther
	}
	for _, y := range open {
		if y.ID != o.p.PayloadID && !found {
			err = o.void(ctx, y, "another payload at its value of the nonce account was executed by "+paid.TxID)
		} else {
			err = o.ends(ctx, y, exchange.PayloadExecuted, "executed by "+paid.TxID)
		}
		if err != nil {
			return posting, lines, err
		}
	}
	o.p.TxHash, o.p.CompletedAt = paid.TxID, o.now
	if err := o.move(ctx, exchange.ProposalExecuted, detail); err != nil || o.p.Kind != exchange.ProposeOwners {
		return posting, lines, err
	}
	return posting, lines, o.agree(ctx)
}

const executionIsRead = `
SELECT EXISTS (SELECT FROM chain_attempts a JOIN deposit_cursors c ON c.network = a.network AND c.final_number >= a.block WHERE a.payment_id = $1 AND a.tx_id = $2)`

// blockIsRead refuses to change the agreed owners before the deposit watch has read the block in which the chain changed them.
func (o *proposalPayment) blockIsRead(ctx context.Context, paid exchange.ChainPayment) error {
	var read bool
	err := o.Get(ctx, &read, executionIsRead, paid.ID, paid.TxID)
	if err == nil && !read {
		err = exchange.Errorf(exchange.CodeUnavailable, "The deposit watch has not read the block of transaction %s, which changed the owners.", paid.TxID)
	}
	return err
}

const adoptedOf = `SELECT true FROM chain_attempts WHERE payment_id = $1 AND tx_id = $2 AND adopted`

// sentByOther reports whether another one sent what owners of a Safe signed, and paid for it.
func (st *step) sentByOther() bool {
	return st.tx.Adopted && st.payment.Purpose == exchange.ForProposal && st.payment.Network == exchange.Ethereum
}

// ExecuteProposal carries out an officer's intent to have a proposal executed that enough owners signed: the signer may put their signatures into a
// transaction from now on. A repeated call returns the proposal. CodeForbidden for who is no admin or treasury officer any more, CodeStateConflict when
// the proposal is not ready, or is to end. The errors of useIntent come before all others.
func (s *Store) ExecuteProposal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Proposal, error) {
	return s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) error {
		if a.IntentID == uuid.Nil {
			return exchange.Errorf(exchange.CodeNotFound, "There is no intent to execute the proposal.")
		}
		by, done, err := w.act(ctx, a, id, exchange.IntendProposalExecute)
		if err != nil || done {
			return err
		}
		if err := w.stillMay(ctx, by); err != nil {
			return err
		}
		if by.Role != exchange.RoleAdmin && by.Role != exchange.RoleTreasury {
			return exchange.Errorf(exchange.CodeForbidden, "Only admins and treasury officers can have a proposal executed.")
		}
		y, err := w.signedPayload(ctx)
		if err != nil {
			return err
		}
		if w.p.Status != exchange.ProposalReady || w.p.Ending != "" || y == uuid.Nil {
			return exchange.Errorf(exchange.CodeStateConflict, "The proposal is %s; it can be executed while it is ready, which it is when enough owners have signed.", w.p.Standing())
		}
		if !w.now.Before(w.p.ExpiresAt) {
			return exchange.Errorf(exchange.CodeStateConflict, "The time of the proposal is over, so it can't be executed.")
		}
		w.by, w.p.PayloadID, w.p.ExecutedBy = by, y, by.UserID
		return w.move(ctx, exchange.ProposalReady, exchange.WaitSignature)
	})
}

const readExecutable = `SELECT proposal_executable($1)`

// ExecutionForSigning reads what the signer needs to send a proposal's signatures: its payment, the payload with its signatures, and the sealed key of
// the gas wallet where that pays. CodeForbidden when no officer had it executed, when the wallet's owners on the chain are not those that were
// agreed, and when the recipient is now on the deny list before anything is sent.
func (s *Store) ExecutionForSigning(ctx context.Context, paymentID uuid.UUID) (exchange.ExecutionSigning, error) {
	var out exchange.ExecutionSigning
	p, err := s.ChainPayment(ctx, paymentID)
	if err != nil {
		return out, err
	}
	if p.Purpose != exchange.ForProposal {
		return out, exchange.Errorf(exchange.CodeInternal, "a payment for a %s is no execution of a proposal", p.Purpose)
	}
	var executable, denied bool
	if err := s.db.Get(ctx, &executable, readExecutable, paymentID); err != nil {
		return out, translate(err, "proposal")
	}
	if err := s.db.Get(ctx, &denied, isDeniedOutside, p.Network, p.ToAddress); err != nil {
		return out, translate(err, "denied address")
	}
	switch {
	case !executable:
		return out, exchange.Errorf(exchange.CodeForbidden, "No officer had the proposal of payment %s executed as it is now.", p.ID)
	case denied && p.Status == exchange.ChainApproved: // a signed one may need a replacement with a higher fee, to unblock its sequence
		return out, exchange.Errorf(exchange.CodeForbidden, "The recipient of payment %s is on the deny list.", p.ID)
	}
	prop, err := s.Proposal(ctx, Everything(), p.ObjectID)
	if err != nil {
		return out, err
	}
	out.Payment, out.Proposal = p, prop
	if out.Payload, err = s.Payload(ctx, prop.PayloadID); err != nil {
		return out, err
	}
	if out.Signatures, err = s.signaturesToSend(ctx, p, prop.PayloadID); err != nil {
		return out, err
	}
	if p.FeeWalletID != uuid.Nil {
		out.Gas, err = s.hotKey(ctx, p.FeeWalletID)
	}
	return out, err
}

// signaturesToSend are those of the agreed owners. What was sent before some of its signers left is sent again, with a higher fee, as it was signed:
// it may fail, and frees the number of the wallet that pays.
func (s *Store) signaturesToSend(ctx context.Context, p exchange.ChainPayment, payload uuid.UUID) ([]exchange.MultisigSignature, error) {
	var signed bool
	if err := s.db.Get(ctx, &signed, readPayloadSigned, payload); err != nil {
		return nil, translate(err, "payload")
	}
	if signed || p.Status == exchange.ChainApproved {
		return s.Signatures(ctx, payload)
	}
	return readAll[exchange.MultisigSignature](ctx, s.db, "signature", readSignaturesEver, payload)
}

const executionFound = `
SELECT ` + depositColumns + ` FROM chain_deposits WHERE network = $1 AND tx_id = $2 AND from_wallet_id = $3 AND to_address = $4 AND asset = $5 AND amount = $6 AND status = 'final'
    AND NOT EXISTS (SELECT FROM multisig_payloads y WHERE y.network = $1 AND y.found_tx = $2 AND y.found_index = event_index)
ORDER BY event_index LIMIT 1`

// AdoptExecution makes the transaction of another tool the payment's own, which executed one of its payloads on the final chain: anybody may send
// what owners signed. The watch over the chain must have seen exactly the payment's transfer in that very block, which settles what the watch
// took for an unknown movement; until then it is CodeUnavailable. The payment completes by RecordFinal, as every other. A repeated call returns the
// payment. CodeStateConflict while a transaction of ours may execute the payload, and for a payload that has ended.
func (s *Store) AdoptExecution(ctx context.Context, payload uuid.UUID, txID string, block uint64, blockID, evidence string) (exchange.ChainPayment, error) {
	return s.adopt(ctx, payload, txID, func(ctx context.Context, w *proposalWork, p exchange.ChainPayment, known []exchange.ChainAttempt) (exchange.ChainPayment, error) {
		if slices.ContainsFunc(known, func(a exchange.ChainAttempt) bool { return !a.Adopted }) { // one of another tool may execute several payloads
			return p, exchange.Errorf(exchange.CodeStateConflict, "The transaction %s is that of another payment.", txID)
		}
		if err := w.unsent(ctx); err != nil {
			return p, err
		}
		if !w.p.Kind.Moves() {
			return w.adoptUnmoved(ctx, payload, p, exchange.ChainDeposit{Network: p.Network, TxID: txID, Block: block, BlockID: blockID}, evidence)
		}
		d, found, err := readFound[exchange.ChainDeposit](ctx, w, executionFound, p.Network, txID, p.WalletID, p.ToAddress, p.Amount.Asset(), p.Amount.Decimal())
		if err != nil {
			return p, err
		}
		if !found || d.Block != block || d.BlockID != blockID {
			return p, exchange.Errorf(exchange.CodeUnavailable, "The deposit watch has not seen that transaction %s made the payment in block %d.", txID, block)
		}
		return w.adoptFound(ctx, payload, p, d, evidence)
	})
}

// adopt has a transaction become the payment's of a payload, unless it is already. take gets the payment and the transactions that are known by that id,
// under the lock of the proposal.
func (s *Store) adopt(
	ctx context.Context, payload uuid.UUID, txID string,
	take func(ctx context.Context, w *proposalWork, p exchange.ChainPayment, known []exchange.ChainAttempt) (exchange.ChainPayment, error),
) (adopted exchange.ChainPayment, err error) {
	y, err := s.Payload(ctx, payload)
	if err != nil {
		return adopted, err
	}
	_, err = s.workProposal(ctx, y.ProposalID, func(ctx context.Context, w *proposalWork) error {
		if adopted, err = readOne[exchange.ChainPayment](ctx, w, "chain payment", lockPayment, y.PaymentID); err != nil {
			return err
		}
		known, err := readAll[exchange.ChainAttempt](ctx, w, "transaction", attemptOfTx, adopted.Network, txID)
		if err != nil || slices.ContainsFunc(known, func(a exchange.ChainAttempt) bool { return a.PaymentID == adopted.ID }) {
			return err
		}
		adopted, err = take(ctx, w, adopted, known)
		return err
	})
	return adopted, err
}

// adoptUnmoved makes the transaction of another tool the payment's own, which moves nothing that the watch could see. The chain's answer about the
// payload, and for other owners who they are now, is the proof; the watch must have read that block. CodeStateConflict when it lacked signatures
// that only our key store makes: then the answer is wrong, or a key was stolen.
func (w *proposalWork) adoptUnmoved(ctx context.Context, payload uuid.UUID, p exchange.ChainPayment, d exchange.ChainDeposit, evidence string) (exchange.ChainPayment, error) {
	c, _, err := w.depositCursor(ctx, p.Network)
	if err == nil && c.Final.Number < d.Block {
		err = exchange.Errorf(exchange.CodeUnavailable, "The deposit watch has not read block %d, in which transaction %s is.", d.Block, d.TxID)
	}
	if err != nil {
		return p, err
	}
	var could bool
	if err := w.Get(ctx, &could, readCouldSign, payload); err != nil {
		return p, err
	}
	if !could {
		return p, exchange.Errorf(exchange.CodeStateConflict, "Transaction %s can't have executed what owners sign: keys that only our key store has did not sign it.", d.TxID)
	}
	return w.adoptFound(ctx, payload, p, d, evidence)
}

const readCouldSign = `SELECT others_could_sign($1)`

// AdoptFailure makes a transaction on the final chain the payment's live one that used up a payload of it and moved nothing: whoever sent it
// with the owners' signatures, the account itself paid the fee, which RecordFinal books. So it is for TRON alone, where the payload's id is that of
// the transaction. A repeated call returns the payment. CodeStateConflict for every other transaction, while one of ours may execute the payload,
// and for a payload that has ended.
func (s *Store) AdoptFailure(ctx context.Context, payload uuid.UUID, txID string, block uint64, blockID, evidence string) (exchange.ChainPayment, error) {
	return s.adopt(ctx, payload, txID, func(ctx context.Context, w *proposalWork, p exchange.ChainPayment, _ []exchange.ChainAttempt) (exchange.ChainPayment, error) {
		y, err := w.payload(ctx, payload)
		if err != nil {
			return p, err
		}
		if p.Network != exchange.Tron || y.JointID != txID || !y.Open() {
			return p, exchange.Errorf(exchange.CodeStateConflict, "The transaction %s can't be the one that used up what owners signed.", txID)
		}
		failed := exchange.ChainDeposit{Network: p.Network, TxID: txID, Block: block, BlockID: blockID} // it moved nothing
		return w.takeOver(ctx, &proposalPayment{w}, p, failed, evidence, flow)
	})
}

const findPayload = `UPDATE multisig_payloads SET found_tx = $2, found_index = $3, updated_at = $4 WHERE id = $1 AND status = 'open'`

func (w *proposalWork) adoptFound(ctx context.Context, payload uuid.UUID, p exchange.ChainPayment, d exchange.ChainDeposit, evidence string) (exchange.ChainPayment, error) {
	open, err := w.openPayloads(ctx)
	if err != nil {
		return p, err
	}
	executed := false
	for _, y := range open {
		if y.ID == payload {
			executed = true
		} else if err := w.void(ctx, y, "another payload at its value of the nonce account was executed by "+d.TxID); err != nil {
			return p, err
		}
	}
	if !executed {
		return p, exchange.Errorf(exchange.CodeStateConflict, "The payload has ended, so no transaction can have executed it.")
	}
	index := sql.NullInt64{Int64: int64(d.Index), Valid: w.p.Kind.Moves()}
	if err := w.One(ctx, findPayload, payload, d.TxID, index, w.now); err != nil {
		return p, err
	}
	return w.takeOver(ctx, &proposalPayment{w}, p, d, evidence, flow)
}

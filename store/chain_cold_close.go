package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The end of cold drafts, and the nonce accounts that they use. The triggers of cold_drafts let a draft end only with
// the reason for which its network can't include it.

// SaveColdPart stores the owner's signature of a draft that the fee payer signs after it. A repeated call is fine;
// CodeStateConflict when the draft is no longer open.
func (s *Store) SaveColdPart(ctx context.Context, draftID uuid.UUID, part []byte, by exchange.Principal) error {
	_, err := change(ctx, s, "cold draft", draftID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		object, d, err := t.draftOf(ctx, draftID)
		if err != nil {
			return struct{}{}, none, err
		}
		if d.Status != exchange.ColdOpen || d.NonceAccount == "" {
			return struct{}{}, none, exchange.Errorf(exchange.CodeStateConflict, "The transaction that was handed out is %s.", d.Status)
		}
		if len(d.Part) > 0 { // two signatures of one message by one key are equivalent
			return struct{}{}, none, nil
		}
		if err := t.One(ctx, `UPDATE cold_drafts SET part = $2 WHERE id = $1 AND status = 'open'`, d.ID, part); err != nil {
			return struct{}{}, none, err
		}
		return struct{}{}, none, t.recordDraft(ctx, object, d, by, "brought_back")
	})
	return err
}

const readDraft = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE id = $1`

// draftOf reads and locks a draft, after its payment and that payment's object.
func (t unitTx) draftOf(ctx context.Context, id uuid.UUID) (paymentObject, exchange.ColdDraft, error) {
	var r exchange.ColdDraft
	if err := t.Get(ctx, &r, readDraft, id); err != nil {
		return nil, exchange.ColdDraft{}, translate(err, "cold draft")
	}
	object, _, err := t.objectOf(ctx, r.PaymentID)
	if err != nil {
		return nil, exchange.ColdDraft{}, err
	}
	if err := t.Get(ctx, &r, readDraft+` FOR UPDATE`, id); err != nil {
		return nil, exchange.ColdDraft{}, translate(err, "cold draft")
	}
	return object, r, nil
}

func (t unitTx) recordDraft(ctx context.Context, object paymentObject, d exchange.ColdDraft, by exchange.Principal, name string) error {
	owner, vendor := object.parties()
	return t.record(ctx, auditEvent{
		by: by, object: "chain_payment", id: d.PaymentID, name: "chain_payment." + name, owner: owner, vendor: vendor,
		after: map[string]any{"id": d.PaymentID, "draft_id": d.ID, "tx_hash": d.TxID, "nonce": d.Nonce, "nonce_account": d.NonceAccount},
	})
}

// LapseColdDraft ends a draft that the evidence proves can never be included. A repeated call changes nothing. A draft
// with a nonce account ends only by the payment that advances it; see WithdrawColdDraft.
func (s *Store) LapseColdDraft(ctx context.Context, draftID uuid.UUID, evidence string, by exchange.Principal) error {
	_, err := change(ctx, s, "cold draft", draftID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		object, d, err := t.draftOf(ctx, draftID)
		if err != nil || d.Status == exchange.ColdLapsed {
			return struct{}{}, none, err
		}
		if d.Status != exchange.ColdOpen || d.NonceAccount != "" {
			return struct{}{}, none, exchange.Errorf(exchange.CodeStateConflict, "The transaction that was handed out is %s and has to be withdrawn.", d.Status)
		}
		return struct{}{}, none, t.lapse(ctx, object, d, evidence, by)
	})
	return err
}

// lapse ends a draft, and makes its payment ready for another one.
func (t unitTx) lapse(ctx context.Context, object paymentObject, d exchange.ColdDraft, evidence string, by exchange.Principal) error {
	if err := t.One(ctx, moveDraft, d.ID, exchange.ColdLapsed, nil, clip(evidence, 500)); err != nil {
		return err
	}
	if err := t.recordDraft(ctx, object, d, by, "draft_lapsed"); err != nil {
		return err
	}
	var p exchange.ChainPayment
	if err := t.Get(ctx, &p, readPayment, d.PaymentID); err != nil || p.Status != exchange.ChainApproved {
		return err
	}
	return object.follow(ctx, t, stageApproved, "")
}

// DraftSpent returns why a draft can't be included, according to the final transactions of its wallet; empty when they
// do not prove it.
func (s *Store) DraftSpent(ctx context.Context, d exchange.ColdDraft) (string, error) {
	var ids []string
	if d.NonceWallet == uuid.Nil {
		return "", nil
	}
	err := s.db.All(ctx, &ids, finalAt, d.NonceWallet, int64(d.Nonce)) //nolint:gosec // G115: nonces are far from the limit
	return spentBy(ids), translate(err, "transaction")
}

func spentBy(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "its number was used by " + ids[0]
}

// advanceAmount is what a payment that advances a nonce account pays into it: the smallest amount that moves at all,
// so that the payment can be watched and proven like every other.
var advanceAmount = money.Must(money.SOL, "0.000000001")

// WithdrawColdDraft begins to invalidate a draft with a nonce account: from now on it is not signed here, and the
// returned payment advances the account. When that payment completes, the draft has lapsed. A parked payment becomes
// ready to be signed again. CodeStateConflict when the draft is already a transaction.
func (s *Store) WithdrawColdDraft(ctx context.Context, draftID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	return change(ctx, s, "cold draft", draftID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		object, d, err := t.draftOf(ctx, draftID)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if d.NonceAccount == "" || d.Status == exchange.ColdSigned {
			return exchange.ChainPayment{}, none, exchange.Errorf(exchange.CodeStateConflict, "The transaction that was handed out is %s and can't be withdrawn.", d.Status)
		}
		if p, found, err := t.paymentOf(ctx, exchange.ForNonceAdvance, d.ID); err != nil || found {
			if err == nil && p.Status == exchange.ChainParked {
				p, err = t.approveAgain(ctx, &noncePayment{}, p)
			}
			return p, none, err
		}
		if err := t.One(ctx, moveDraft, d.ID, exchange.ColdClosing, nil, ""); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if err := t.recordDraft(ctx, object, d, by, "withdrawn"); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if err := object.follow(ctx, t, stageWithdrawn, ""); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		var of exchange.ChainPayment
		if err := t.Get(ctx, &of, readPayment, d.PaymentID); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		p, err := t.addPayment(ctx, by, &noncePayment{}, exchange.ChainPayment{
			Purpose: exchange.ForNonceAdvance, ObjectID: d.ID, Network: d.Network, Amount: advanceAmount, WalletID: of.FeeWalletID,
			ToAddress: d.NonceAccount, ApprovedBy: byPolicy,
		})
		return p, none, err
	})
}

func (t unitTx) approveAgain(ctx context.Context, object paymentObject, p exchange.ChainPayment) (exchange.ChainPayment, error) {
	again := p
	again.Status, again.Detail = exchange.ChainApproved, ""
	return t.savePayment(ctx, flow, object, p, again)
}

// ApproveNonceAccount returns the payment that opens the nonce account of a cold wallet for the payment of the given
// id: the open one, or a new one. A parked one becomes ready to be signed again.
func (s *Store) ApproveNonceAccount(ctx context.Context, paymentID uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		_, of, err := t.objectOf(ctx, paymentID)
		if err != nil {
			return of, none, err
		}
		if of.Status != exchange.ChainApproved || of.FeeWalletID == uuid.Nil {
			return of, none, exchange.Errorf(exchange.CodeStateConflict, "A payment that is %s needs no nonce account.", of.Status)
		}
		p, err := t.openNonce(ctx, of, of.WalletID, account, rent)
		return p, none, err
	})
}

// openNonce approves the payment that opens the nonce account of an object for another payment, from the wallet that pays that one's fee. The open
// one is returned, and a parked one becomes ready to be signed again.
func (t unitTx) openNonce(ctx context.Context, of exchange.ChainPayment, object uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error) {
	n := 1
	switch p, found, err := t.paymentOf(ctx, exchange.ForNonceAccount, object); {
	case err != nil:
		return p, err
	case found && p.ToAddress == account && p.Status == exchange.ChainParked:
		return t.approveAgain(ctx, &noncePayment{}, p)
	case found && p.ToAddress == account && p.Status != exchange.ChainCompleted && p.Status != exchange.ChainCancelled:
		return p, nil
	case found:
		n = p.N + 1
	}
	return t.addPayment(ctx, flow, &noncePayment{}, exchange.ChainPayment{
		Purpose: exchange.ForNonceAccount, ObjectID: object, N: n, Network: of.Network, Amount: rent, WalletID: of.FeeWalletID, ToAddress: account, ApprovedBy: byPolicy,
	})
}

// noncePayment opens or advances a nonce account.
type noncePayment struct {
	closes *exchange.ColdDraft // the draft that an advance invalidates
	object paymentObject       // the object of that draft's payment
}

// lockedAdvance finds the draft that an advance invalidates. A payload that owners of a wallet sign is voided by who reads the final chain.
func (t unitTx) lockedAdvance(ctx context.Context, id uuid.UUID) (paymentObject, error) {
	if y, found, err := readFound[payloadRow](ctx, t, readPayload, id); err != nil || found {
		if err == nil {
			_, err = t.startProposal(ctx, y.ProposalID)
		}
		return &noncePayment{}, err
	}
	object, d, err := t.draftOf(ctx, id)
	return &noncePayment{closes: &d, object: object}, err
}

// parties are empty: the house pays for it.
func (o *noncePayment) parties() (owner, vendor uuid.UUID) { return uuid.Nil, uuid.Nil }

// follow ends the draft when the final chain has advanced its nonce account.
func (o *noncePayment) follow(ctx context.Context, t unitTx, to paymentStage, txID string) error {
	if to != stageCompleted || o.closes == nil || o.closes.Status == exchange.ColdLapsed {
		return nil
	}
	return t.lapse(ctx, o.object, *o.closes, "its nonce account was advanced by "+txID, flow)
}

// spend books the amount paid into the account as a network cost.
func (o *noncePayment) spend(_ context.Context, _ unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	return exchange.Posting{}, []exchange.Line{
		exchange.Debit(exchange.House(exchange.AccNetworkFees, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}, nil
}

// ColdForCompletion reads a payment of a cold wallet, its draft with the owner's signature, and the sealed key of the
// fee-paying wallet, which signs after it. CodeStateConflict when there is no such draft; CodeForbidden when the
// recipient is now on the deny list.
func (s *Store) ColdForCompletion(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, exchange.SealedKey, error) {
	var d exchange.ColdDraft
	p, err := s.ChainPayment(ctx, paymentID)
	if err != nil {
		return p, d, exchange.SealedKey{}, err
	}
	var denied bool
	if err := s.db.Get(ctx, &denied, isDeniedOutside, p.Network, p.ToAddress); err != nil {
		return p, d, exchange.SealedKey{}, translate(err, "denied address")
	}
	if denied {
		return p, d, exchange.SealedKey{}, exchange.Errorf(exchange.CodeForbidden, "The recipient of payment %s is on the deny list.", p.ID)
	}
	drafts, err := s.ColdDrafts(ctx, paymentID)
	if err != nil {
		return p, d, exchange.SealedKey{}, err
	}
	if len(drafts) == 0 || drafts[0].Status != exchange.ColdOpen || len(drafts[0].Part) == 0 || p.FeeWalletID == uuid.Nil {
		return p, d, exchange.SealedKey{}, exchange.Errorf(exchange.CodeStateConflict, "The payment has no draft with the owner's signature to complete.")
	}
	key, err := s.hotKey(ctx, p.FeeWalletID)
	return p, drafts[0], key, err
}

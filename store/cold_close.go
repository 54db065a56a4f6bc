package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The end of what was handed out, and the nonce accounts by which transactions of cold wallets live. The triggers of
// cold_drafts let none end without the reason for which its network can't include it.

// SaveColdPart stores the owner's signature of a draft that the fee payer signs after it. The same may come again;
// CodeStateConflict when the draft is not open any more.
func (s *Store) SaveColdPart(ctx context.Context, draftID uuid.UUID, part []byte, by exchange.Principal) error {
	_, err := change(ctx, s, "cold draft", draftID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		object, d, err := t.draftOf(ctx, draftID)
		if err != nil {
			return struct{}{}, none, err
		}
		if d.Status != exchange.ColdOpen || d.NonceAccount == "" {
			return struct{}{}, none, exchange.Errorf(exchange.CodeStateConflict, "What was handed out is %s.", d.Status)
		}
		if len(d.Part) > 0 { // signatures of one message by one key are the same, or as good
			return struct{}{}, none, nil
		}
		if err := t.one(ctx, `UPDATE cold_drafts SET part = $2 WHERE id = $1 AND status = 'open'`, d.ID, part); err != nil {
			return struct{}{}, none, err
		}
		return struct{}{}, none, t.recordDraft(ctx, object, d, by, "brought_back")
	})
	return err
}

const readDraft = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE id = $1`

// draftOf reads and locks a draft, after its payment and what that is for.
func (t unitTx) draftOf(ctx context.Context, id uuid.UUID) (paymentObject, exchange.ColdDraft, error) {
	var r coldRow
	if err := t.get(ctx, &r, readDraft, id); err != nil {
		return nil, exchange.ColdDraft{}, translate(err, "cold draft")
	}
	object, _, err := t.objectOf(ctx, r.PaymentID)
	if err != nil {
		return nil, exchange.ColdDraft{}, err
	}
	if err := t.get(ctx, &r, readDraft+` FOR UPDATE`, id); err != nil {
		return nil, exchange.ColdDraft{}, translate(err, "cold draft")
	}
	d, err := r.draft()
	return object, d, err
}

func (t unitTx) recordDraft(ctx context.Context, object paymentObject, d exchange.ColdDraft, by exchange.Principal, name string) error {
	owner, vendor := object.parties()
	return t.record(ctx, fact{
		by: by, object: "chain_payment", id: d.PaymentID, name: "chain_payment." + name, owner: owner, vendor: vendor,
		after: map[string]any{"id": d.PaymentID, "draft_id": d.ID, "tx_id": d.TxID, "nonce": d.Nonce, "nonce_account": d.NonceAccount},
	})
}

// LapseColdDraft ends a draft that is proven never to be included, by the evidence. Repeated, it changes nothing.
// One that lives by a nonce account ends by the payment that advances it alone; see WithdrawColdDraft.
func (s *Store) LapseColdDraft(ctx context.Context, draftID uuid.UUID, evidence string, by exchange.Principal) error {
	_, err := change(ctx, s, "cold draft", draftID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		object, d, err := t.draftOf(ctx, draftID)
		if err != nil || d.Status == exchange.ColdLapsed {
			return struct{}{}, none, err
		}
		if d.Status != exchange.ColdOpen || d.NonceAccount != "" {
			return struct{}{}, none, exchange.Errorf(exchange.CodeStateConflict, "What was handed out is %s and has to be withdrawn.", d.Status)
		}
		return struct{}{}, none, t.lapse(ctx, object, d, evidence, by)
	})
	return err
}

// lapse ends a draft, and lets its payment wait for another one.
func (t unitTx) lapse(ctx context.Context, object paymentObject, d exchange.ColdDraft, evidence string, by exchange.Principal) error {
	if err := t.one(ctx, moveDraft, d.ID, exchange.ColdLapsed, nil, clip(evidence, 500)); err != nil {
		return err
	}
	if err := t.recordDraft(ctx, object, d, by, "draft_lapsed"); err != nil {
		return err
	}
	var p paymentRow
	if err := t.get(ctx, &p, readPayment, d.PaymentID); err != nil || p.Status != exchange.ChainApproved {
		return err
	}
	return object.follow(ctx, t, stageApproved, "")
}

// DraftSpent tells why a draft can't be included, by the final transactions of its wallet; empty when they do not
// say.
func (s *Store) DraftSpent(ctx context.Context, d exchange.ColdDraft) (string, error) {
	var ids []string
	if d.Lane == uuid.Nil {
		return "", nil
	}
	err := s.readAll(ctx, &ids, finalAt, d.Lane, int64(d.Nonce)) //nolint:gosec // G115: nonces are far from the limit
	return spentBy(ids), translate(err, "transaction")
}

func spentBy(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "its number was used by " + ids[0]
}

// advanceAmount is what a payment that advances a nonce account pays into it: the least that moves at all, so that
// the payment can be watched and proven like every other.
var advanceAmount = money.Must(money.SOL, "0.000000001")

// WithdrawColdDraft begins to make a draft impossible that lives by a nonce account: from now on nobody signs it
// here, and the payment that comes back advances the account. When that one is completed the draft has lapsed. A
// parked payment may be signed again by it. CodeStateConflict when the draft is a transaction already.
func (s *Store) WithdrawColdDraft(ctx context.Context, draftID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	return change(ctx, s, "cold draft", draftID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		object, d, err := t.draftOf(ctx, draftID)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if d.NonceAccount == "" || d.Status == exchange.ColdSigned {
			return exchange.ChainPayment{}, none, exchange.Errorf(exchange.CodeStateConflict, "What was handed out is %s and can't be withdrawn.", d.Status)
		}
		if p, found, err := t.paymentOf(ctx, exchange.ForNonceAdvance, d.ID); err != nil || found {
			if err == nil && p.Status == exchange.ChainParked {
				p, err = t.approveAgain(ctx, &noncePayment{}, p)
			}
			return p, none, err
		}
		if err := t.one(ctx, moveDraft, d.ID, exchange.ColdClosing, nil, ""); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if err := t.recordDraft(ctx, object, d, by, "withdrawn"); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if err := object.follow(ctx, t, stageWithdrawn, ""); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		var of paymentRow
		if err := t.get(ctx, &of, readPayment, d.PaymentID); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		p, err := t.addPayment(ctx, by, &noncePayment{}, exchange.ChainPayment{
			Purpose: exchange.ForNonceAdvance, ObjectID: d.ID, Network: d.Network, Amount: advanceAmount, WalletID: of.FeeWalletID.UUID,
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

// ApproveNonceAccount gives the payment that opens the nonce account of a cold wallet, by which the payment of the
// given id is to live: the one that is open, or a new one. A parked one may be signed again by it.
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
		n := 1
		switch p, found, err := t.paymentOf(ctx, exchange.ForNonceAccount, of.WalletID); {
		case err != nil:
			return p, none, err
		case found && p.ToAddress == account && p.Status == exchange.ChainParked:
			p, err = t.approveAgain(ctx, &noncePayment{}, p)
			return p, none, err
		case found && p.ToAddress == account && p.Status != exchange.ChainCompleted && p.Status != exchange.ChainCancelled:
			return p, none, nil
		case found:
			n = p.N + 1
		}
		p, err := t.addPayment(ctx, flow, &noncePayment{}, exchange.ChainPayment{
			Purpose: exchange.ForNonceAccount, ObjectID: of.WalletID, N: n, Network: of.Network, Amount: rent, WalletID: of.FeeWalletID,
			ToAddress: account, ApprovedBy: byPolicy,
		})
		return p, none, err
	})
}

// noncePayment opens or advances a nonce account.
type noncePayment struct {
	closes *exchange.ColdDraft // what an advance makes impossible
	object paymentObject       // of that one's payment
}

// lockedAdvance finds the draft that an advance makes impossible.
func (t unitTx) lockedAdvance(ctx context.Context, draftID uuid.UUID) (paymentObject, error) {
	object, d, err := t.draftOf(ctx, draftID)
	return &noncePayment{closes: &d, object: object}, err
}

// parties are nobody: the house pays for it.
func (o *noncePayment) parties() (owner, vendor uuid.UUID) { return uuid.Nil, uuid.Nil }

// follow ends the draft when its nonce account was advanced by the final chain.
func (o *noncePayment) follow(ctx context.Context, t unitTx, to paymentStage, txID string) error {
	if to != stageCompleted || o.closes == nil || o.closes.Status == exchange.ColdLapsed {
		return nil
	}
	return t.lapse(ctx, o.object, *o.closes, "its nonce account was advanced by "+txID, flow)
}

// spend books what went into the account as a cost of the network.
func (o *noncePayment) spend(_ context.Context, _ unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	return exchange.Posting{}, []exchange.Line{
		exchange.Debit(exchange.House(exchange.AccNetworkFees, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}, nil
}

// ColdForCompletion reads a payment of a cold wallet, the draft of which its owner's signature came back, and the
// sealed key of the wallet that pays the fee, which signs after it. CodeStateConflict when there is no such draft;
// CodeForbidden for a recipient who stands on the deny list by now.
func (s *Store) ColdForCompletion(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, exchange.SealedKey, error) {
	var d exchange.ColdDraft
	p, err := s.ChainPayment(ctx, paymentID)
	if err != nil {
		return p, d, exchange.SealedKey{}, err
	}
	var denied bool
	if err := s.read(ctx, &denied, isDeniedOutside, p.Network, p.ToAddress); err != nil {
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
		return p, d, exchange.SealedKey{}, exchange.Errorf(exchange.CodeStateConflict, "No signature of the wallet's owner waits to be completed.")
	}
	key, err := s.hotKey(ctx, p.FeeWalletID)
	return p, drafts[0], key, err
}

package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// leftBehind is a payment of ours that is on its way with the signature of an owner who has left since: another tool executed the change.
func (h *reserve) leftBehind(t *testing.T) (exchange.Proposal, exchange.MultisigPayload, exchange.ChainAttempt) {
	t.Helper()
	p, y := h.ready(t, usdt("10"))
	p, err := h.executes(t, p, h.two)
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.sends(t, p, y)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordBroadcast(t.Context(), a.ID, "", true); err != nil {
		t.Fatal(err)
	}
	c, z := h.signingChange(t)
	h.allSign(t, c, z)
	h.carriedOutByOthers(t, z)
	return h.is(t, p, exchange.ProposalBroadcasting, exchange.WaitFinality), y, a
}

// unsigned is the payment when its transaction has ended: those who are owners now have to sign.
func (h *reserve) unsigned(t *testing.T, p exchange.Proposal, detail string) {
	t.Helper()
	if p = h.is(t, p, exchange.ProposalSigning, detail); p.PayloadID != uuid.Nil || p.ExecutedBy != uuid.Nil {
		t.Errorf("it is still to be executed: %+v", p)
	}
}

// A transaction of ours whose signers have left since ends, and its fee is booked. Then owners sign anew.
func TestTransactionsOfOwnersWhoLeftEnd(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]bool{"in a block": true, "not seen before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
			p, _, a := h.leftBehind(t)
			if seen {
				if _, err := h.chain.RecordIncluded(ctx, a.ID, 102, "a-102"); err != nil {
					t.Fatal(err)
				}
				h.is(t, p, exchange.ProposalConfirming, exchange.WaitFinality)
			}
			for range 2 {
				if _, err := h.chain.RecordFinal(ctx, a.ID, false, 102, "a-102", money.Must(money.ETH, "0.004"), "GS026"); err != nil {
					t.Fatal(err)
				}
			}
			h.unsigned(t, p, exchange.WaitOperator)
			if paid := payment(t, h.s, p.PaymentID); paid.Status != exchange.ChainParked || !paid.Fee.Equal(money.Must(money.ETH, "0.004")) {
				t.Errorf("the payment is %s with a fee of %s", paid.Status, paid.Fee)
			}
			h.has(t, "1000", "10")
			h.readsOn(t)
			if _, err := h.flows.RetryChainPayment(ctx, p.PaymentID, h.two); err != nil {
				t.Fatal(err)
			}
			h.unsigned(t, p, exchange.WaitOwners)
			if _, err := h.flows.SignProposal(ctx, p.ID); err != nil {
				t.Fatal(err)
			}
			h.unsigned(t, p, exchange.WaitOwners) // signatures of who left don't count
			if _, err := h.cancels(t, p, h.merchant); err != nil {
				t.Fatal(err)
			}
			if _, err := h.chain.SupersedeProposal(ctx, p.ID, "0xother", "its number is 9 at block 103"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What is proven impossible, or reorganised away, leaves the payment where it belongs.
func TestTransactionsOfOwnersWhoLeftVanish(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, _, a := h.leftBehind(t)
	if _, err := h.chain.RecordIncluded(ctx, a.ID, 102, "b-102"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordVanished(ctx, a.ID); err != nil {
		t.Fatal(err)
	}
	if p = h.is(t, p, exchange.ProposalBroadcasting, exchange.WaitBroadcast); p.PayloadID == uuid.Nil {
		t.Error("what is on its way has no payload")
	}
	h.every(t, "puts back what is on its way", steps(p, `status = 'signing', status_detail = 'owners', payload_id = NULL, executed_by = NULL`))
	if _, err := h.chain.RecordExpired(ctx, a.ID, "its number was used"); err != nil {
		t.Fatal(err)
	}
	h.unsigned(t, p, exchange.WaitOwners)
	h.has(t, "1000", "10")
}

// A payment that is ready, and not sent, goes back as well when something is noted about it.
func TestReadyPaymentsOfOwnersWhoLeft(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("10"))
	p, err := h.executes(t, p, h.two)
	if err != nil {
		t.Fatal(err)
	}
	c, z := h.signingChange(t)
	h.allSign(t, c, z)
	h.carriedOutByOthers(t, z)
	if _, err := h.sends(t, p, y); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("signatures of who left are sent: %v", err)
	}
	_, err = h.signer.SaveSignedAttempt(ctx, h.transaction(t, p, y))
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := h.flows.ParkChainPayment(ctx, p.PaymentID, "refused"); err != nil {
		t.Fatal(err)
	}
	h.unsigned(t, p, exchange.WaitOperator)
}

// A transaction of ours gets a higher fee also when its signers have left: it would hold up all others of the wallet that pays.
func TestHigherFeesOfWhatOwnersWhoLeftSigned(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y, a := h.leftBehind(t)
	in, err := h.signer.ExecutionForSigning(ctx, p.PaymentID)
	if err != nil || len(in.Signatures) != 2 || in.Signatures[0].Weight != 1 || in.Signatures[1].Weight != 1 {
		t.Fatalf("the signatures of a higher fee are %+v, %v", in.Signatures, err)
	}
	other := h.transaction(t, p, y)
	if _, err := h.signer.SaveReplacement(ctx, a.ID, other); other.Nonce == a.Nonce || err == nil {
		t.Errorf("another number: %v", err)
	}
	bump := h.transaction(t, p, y)
	bump.Nonce = a.Nonce
	b, err := h.signer.SaveReplacement(ctx, a.ID, bump)
	if err != nil || b.ID != bump.ID {
		t.Fatalf("the replacement is %+v, %v", b, err)
	}
	if _, err := h.chain.RecordFinal(ctx, b.ID, false, 102, "a-102", money.Must(money.ETH, "0.004"), "GS026"); err != nil {
		t.Fatal(err)
	}
	h.unsigned(t, p, exchange.WaitOperator)
	_, err = h.signer.ExecutionForSigning(ctx, p.PaymentID)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = h.signer.SaveSignedAttempt(ctx, h.transaction(t, p, y))
	wantFault(t, err, exchange.CodeStateConflict)
}

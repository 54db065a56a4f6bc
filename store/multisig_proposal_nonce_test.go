package store_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// The nonce account of a proposal is opened once, before owners sign, and advanced only for one that is to end. The chain's worker has both
// approved, and the books have what was paid into it as a cost.
func TestTheNonceAccountOfAProposal(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Solana)
	rent, account := money.Must(money.SOL, "0.00144768"), "nonce-account-of-the-proposal"
	early := h.opened(t, usdt("10"))
	_, err := h.chain.ApproveProposalNonce(ctx, early.ID, account, rent)
	wantFault(t, err, exchange.CodeStateConflict) // officers have not approved it
	p := h.released(t, usdt("10"))
	opening := twice(t, func(a, b exchange.ChainPayment) bool { return a.ID == b.ID }, func() (exchange.ChainPayment, error) { return h.chain.ApproveProposalNonce(ctx, p.ID, account, rent) })
	if opening.Purpose != exchange.ForNonceAccount || opening.ObjectID != p.ID || opening.WalletID != h.gas.ID || opening.ToAddress != account || !opening.Amount.Equal(rent) {
		t.Fatalf("the payment is %+v", opening)
	}
	h.completes(t, opening)
	wantBooks(t, h.s)
	y := h.payloadFor(t, p)
	y.NonceAccount = account
	if y, err = h.chain.StorePayload(ctx, y); err != nil {
		t.Fatal(err)
	}
	_, err = h.chain.ClosePayload(ctx, y.ID)
	wantFault(t, err, exchange.CodeStateConflict) // it is not to end
	if _, err := h.cancels(t, p, h.boss); err != nil {
		t.Fatal(err)
	}
	_, err = h.chain.ApproveProposalNonce(ctx, p.ID, "another", rent)
	wantFault(t, err, exchange.CodeStateConflict) // it is to end
	advance := twice(t, func(a, b exchange.ChainPayment) bool { return a.ID == b.ID }, func() (exchange.ChainPayment, error) { return h.chain.ClosePayload(ctx, y.ID) })
	h.completes(t, advance)
	if open, err := h.s.Payload(ctx, y.ID); err != nil || !open.Open() {
		t.Errorf("the payload ended before the chain was asked: %+v, %v", open, err)
	}
	if _, err := h.chain.VoidPayload(ctx, y.ID, "superseded by "+advance.ID.String()); err != nil {
		t.Fatal(err)
	}
	h.readsOn(t)
	h.advanced(t, p.ID)
	h.is(t, p, exchange.ProposalCancelled, exchange.DetailByStaff)
	wantBooks(t, h.s)
}

// completes carries a payment of the gas wallet out.
func (h *reserve) completes(t *testing.T, p exchange.ChainPayment) {
	t.Helper()
	a, err := h.signer.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: storetest.NewID(t), PaymentID: p.ID, Network: p.Network, TxID: "tx-" + p.ID.String(), Raw: []byte("signed"), LastValidHeight: 500, RefBlock: "ref",
		FeeLimit: money.Must(money.SOL, "0.00001"), Status: exchange.TxSigned,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(t.Context(), a.ID, true, 101, "a-101", money.Must(money.SOL, "0.000005"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
}

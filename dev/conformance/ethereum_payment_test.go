package conformance

import (
	"testing"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ready makes an account with gas and an amount.
func (h *ethereumHarness) ready(t testing.TB, amount money.Amount) chaintest.Account {
	t.Helper()
	a := h.NewAccount(t)
	h.Fund(t, a.Address, h.Gas())
	h.Fund(t, a.Address, amount)
	return a
}

// sign prepares and signs with the given nonce, and with a higher fee than the given bid.
func (h *ethereumHarness) sign(t testing.TB, from chaintest.Account, to string, amount money.Amount, nonce uint64, bump exchange.Bid) chain.Signed {
	t.Helper()
	u, err := h.client.Prepare(t.Context(), chain.Draft{
		Transfer: chain.Transfer{From: from.Address, To: to, Amount: amount}, Nonce: nonce, Bump: bump,
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := h.client.Sign(u, from.Key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (h *ethereumHarness) broadcast(t testing.TB, signed chain.Signed, want chain.BroadcastState) {
	t.Helper()
	if r, err := h.client.Broadcast(t.Context(), signed.Raw); err != nil || r.State != want {
		t.Fatalf("%+v, %v, want %s", r, err, want)
	}
}

func (h *ethereumHarness) judge(t testing.TB, signed chain.Signed) (chain.Verdict, chain.Facts) {
	t.Helper()
	f, err := chain.Inquire(t.Context(), h.client, exchange.ChainAttempt{TxID: signed.TxID, Nonce: signed.Nonce, Bid: signed.Bid}, signed.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Judge(f), f
}

// pays carries one payment through to a final block.
func (h *ethereumHarness) pays(t testing.TB, amount money.Amount) {
	t.Helper()
	from, to := h.ready(t, amount), h.NewAccount(t)
	signed := h.sign(t, from, to.Address, amount, 0, exchange.Bid{})
	h.broadcast(t, signed, chain.BroadcastAccepted)
	h.Mine(t, 1)
	h.Finalise(t)
	v, f := h.judge(t, signed)
	if v != chain.VerdictSucceeded {
		t.Fatalf("the verdict is %s: %+v", v, f)
	}
}

package conformance

import (
	"math/rand/v2"
	"testing"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// mischievous is a node that disturbs a payment.
type mischievous interface {
	chaintest.Harness
	// payment puts an approved payment of a sealed wallet with funds into a book.
	payment(t testing.TB, amount money.Amount) (*book, *keys.PaymentSigner, chain.Transfer)
	// trouble makes one thing go wrong, or lets time pass.
	trouble(t *testing.T, random *rand.Rand)
	// calm ends all trouble.
	calm()
}

// paidOnce carries payments through whatever nodes and network do to them; the recipient is never paid twice. The
// loop does what the payment flow does: sign, broadcast the same bytes, check, and reach a verdict. Trouble takes
// half of its timeout.
func paidOnce(t *testing.T, timeout int, start func() mischievous) {
	t.Helper()
	const runs = 24
	rebuilt := 0
	for seed := range uint64(runs) {
		h := start()
		amount := money.Must(money.USDT, "10")
		b, signer, want := h.payment(t, amount)
		verdict := carryThrough(t, h, timeout, b, signer, want, rand.New(rand.NewPCG(seed, 1)))
		h.calm()
		h.Mine(t, 3)
		h.Finalise(t)
		got, err := h.Client().Balance(t.Context(), want.To, money.USDT)
		if err != nil {
			t.Fatal(err)
		}
		expected := money.Zero(money.USDT)
		if verdict == chain.VerdictSucceeded {
			expected = amount
		}
		if !got.Amount.Equal(expected) {
			t.Fatalf("seed %d ended %s after %d transactions, and the recipient holds %s", seed, verdict, len(b.attempts), got.Amount)
		}
		rebuilt += len(b.attempts) - 1
	}
	if rebuilt == 0 {
		t.Error("no run needed a second transaction: the scenario is too easy")
	}
	t.Logf("%d payments took %d further transactions", runs, rebuilt)
}

// carryThrough runs the payment's loop, with trouble between its steps, until the payment is final.
func carryThrough(t *testing.T, h mischievous, timeout int, b *book, signer *keys.PaymentSigner, want chain.Transfer, random *rand.Rand) chain.Verdict {
	t.Helper()
	for step := range timeout {
		if step < timeout/2 {
			h.trouble(t, random)
		} else {
			h.calm()
			h.Mine(t, 1)
		}
		a, err := signer.SignPayment(t.Context(), b.payment.ID)
		if err != nil {
			t.Fatal(err)
		}
		f, err := chain.Inquire(t.Context(), h.Client(), a, want)
		if err != nil {
			t.Fatal(err)
		}
		switch v := chain.Judge(f); v {
		case chain.VerdictSucceeded:
			b.conclude(exchange.TxSucceeded)
			return v
		case chain.VerdictFailed:
			b.conclude(exchange.TxFailed)
			return v
		case chain.VerdictRebuild:
			b.conclude(exchange.TxExpired)
		case chain.VerdictBroadcast:
			if _, err := h.Client().Broadcast(t.Context(), a.Raw); err != nil {
				t.Fatal(err)
			}
		case chain.VerdictWait:
			h.Mine(t, 1)
		}
	}
	t.Fatal("the payment never ended")
	return ""
}

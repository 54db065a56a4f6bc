package chaintest

import (
	"bytes"
	"testing"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// numbered returns the sequence interface of a network that has one, or skips the scenario.
func numbered(t *testing.T, s *stage) chain.Sequenced {
	t.Helper()
	c, ok := s.client.(chain.Sequenced)
	if !ok {
		t.Skip("this network has no sequence numbers")
	}
	return c
}

// signAs prepares and signs with a number and a bid to replace.
func (s *stage) signAs(t *testing.T, from Account, want chain.Transfer, nonce uint64, bump exchange.Bid) chain.Signed {
	t.Helper()
	d := s.draft(t, want)
	d.Nonce, d.Bump = nonce, bump
	u, err := s.client.Prepare(t.Context(), d)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	signed, err := s.finish(u, from)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	if signed.Nonce != nonce || signed.Bid.IsZero() {
		t.Fatalf("asked for the number %d, signed %+v", nonce, signed.Unsigned)
	}
	return signed
}

func (s *stage) nonces(t *testing.T, c chain.Sequenced, address string, latest, final uint64) {
	t.Helper()
	n, err := c.Nonces(t.Context(), address)
	if err != nil {
		t.Fatalf("nonces: %v", err)
	}
	if n.Latest != latest || n.Final != final || n.Head.Latest.ID == "" || n.Head.Final.ID == "" {
		t.Fatalf("nonces %+v, want latest %d, final %d", n, latest, final)
	}
}

// numberGap: a transaction waits for the one before it, and then both are included.
func numberGap(t *testing.T, s *stage) {
	counter := numbered(t, s)
	amount := s.token("2")
	from, to := s.sender(t, amount.Add(amount)), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	s.nonces(t, counter, from.Address, 0, 0)
	second := s.signAs(t, from, want, 1, exchange.Bid{})
	s.broadcast(t, second, chain.BroadcastAccepted)
	s.Mine(t, 2)
	s.Finalise(t)
	s.nonces(t, counter, from.Address, 0, 0)
	if l, err := s.client.Locate(t.Context(), second.TxID); err != nil || l.Stage == chain.StageIncluded || l.Stage == chain.StageFinal {
		t.Fatalf("a transaction was included before the one with the lower number: %+v, %v", l, err)
	}
	s.judge(t, second, want, chain.VerdictBroadcast)
	first := s.signAs(t, from, want, 0, exchange.Bid{})
	s.broadcast(t, first, chain.BroadcastAccepted)
	s.broadcast(t, second, chain.BroadcastAccepted, chain.BroadcastKnown)
	s.Mine(t, 2)
	s.Finalise(t)
	s.judge(t, first, want, chain.VerdictSucceeded)
	s.judge(t, second, want, chain.VerdictSucceeded)
	s.nonces(t, counter, from.Address, 2, 2)
	s.holds(t, to.Address, amount.Add(amount))
}

// replacementWins: the higher bid replaces the lower one, which is then impossible for ever.
func replacementWins(t *testing.T, s *stage) {
	counter := numbered(t, s)
	amount := s.token("2")
	from, to := s.sender(t, amount), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	original := s.signAs(t, from, want, 0, exchange.Bid{})
	s.broadcast(t, original, chain.BroadcastAccepted)
	replacement := s.signAs(t, from, want, 0, original.Bid)
	bumps(t, original, replacement)
	s.broadcast(t, replacement, chain.BroadcastAccepted)
	s.judge(t, original, want, chain.VerdictBroadcast)
	s.Mine(t, 1)
	s.nonces(t, counter, from.Address, 1, 0)
	// The block that uses the number may still be undone: the original is still possible.
	s.judge(t, original, want, chain.VerdictBroadcast)
	s.judge(t, replacement, want, chain.VerdictWait)
	s.completes(t, replacement, want)
	s.judge(t, original, want, chain.VerdictRebuild)
	s.broadcast(t, original, chain.BroadcastRejected)
	s.broadcast(t, replacement, chain.BroadcastKnown, chain.BroadcastRejected)
	s.holds(t, to.Address, amount)
}

// originalWins: the block has the lower bid, because the higher one came too late.
func originalWins(t *testing.T, s *stage) {
	numbered(t, s)
	amount := s.token("2")
	from, to := s.sender(t, amount.Add(amount)), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	original := s.signAs(t, from, want, 0, exchange.Bid{})
	replacement := s.signAs(t, from, want, 0, original.Bid)
	if original.TxID == replacement.TxID || bytes.Equal(original.Raw, replacement.Raw) {
		t.Fatal("the replacement is the original")
	}
	s.broadcast(t, original, chain.BroadcastAccepted)
	s.Mine(t, 1)
	s.broadcast(t, replacement, chain.BroadcastRejected)
	s.judge(t, replacement, want, chain.VerdictBroadcast)
	s.completes(t, original, want)
	s.judge(t, replacement, want, chain.VerdictRebuild)
	s.holds(t, to.Address, amount)
}

// foreignNumber: a foreign transaction with the same key used the number. The signed payment is impossible, and was not
// made.
func foreignNumber(t *testing.T, s *stage) {
	counter := numbered(t, s)
	amount := s.token("2")
	from, to, other := s.sender(t, amount.Add(amount)), s.NewAccount(t), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	ours := s.signAs(t, from, want, 0, exchange.Bid{})
	foreignWant := chain.Transfer{From: from.Address, To: other.Address, Amount: money.Must(s.native(), "0.001")}
	foreign := s.signAs(t, from, foreignWant, 0, exchange.Bid{})
	s.broadcast(t, foreign, chain.BroadcastAccepted)
	s.Mine(t, 1)
	s.judge(t, ours, want, chain.VerdictBroadcast)
	s.broadcast(t, ours, chain.BroadcastRejected)
	s.completes(t, foreign, foreignWant)
	s.nonces(t, counter, from.Address, 1, 1)
	s.judge(t, ours, want, chain.VerdictRebuild)
	s.holds(t, to.Address, money.Zero(amount.Asset()))
	again := s.signAs(t, from, want, 1, exchange.Bid{})
	s.broadcast(t, again, chain.BroadcastAccepted)
	s.completes(t, again, want)
	s.holds(t, to.Address, amount)
}

// reorganisedNumber: a number that was used in an undone block is free again.
func reorganisedNumber(t *testing.T, s *stage) {
	counter := numbered(t, s)
	chainOf := can[Reorganising](t, s)
	amount := s.token("2")
	from, to := s.sender(t, amount), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	original := s.signAs(t, from, want, 0, exchange.Bid{})
	replacement := s.signAs(t, from, want, 0, original.Bid)
	s.broadcast(t, original, chain.BroadcastAccepted)
	s.Mine(t, 1)
	s.nonces(t, counter, from.Address, 1, 0)
	chainOf.Reorganise(t, 1, true)
	s.nonces(t, counter, from.Address, 0, 0)
	s.broadcast(t, replacement, chain.BroadcastAccepted)
	s.completes(t, replacement, want)
	s.judge(t, original, want, chain.VerdictRebuild)
	s.holds(t, to.Address, amount)
}

// feeRace: bids rise until the ceiling, which stops them with its own reason.
func feeRace(t *testing.T, s *stage) {
	numbered(t, s)
	amount := s.token("2")
	from, to := s.sender(t, amount), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	last := s.signAs(t, from, want, 0, exchange.Bid{})
	s.broadcast(t, last, chain.BroadcastAccepted)
	const maxBids = 200
	for range maxBids {
		d := s.draft(t, want)
		d.Nonce, d.Bump = 0, last.Bid
		u, err := s.client.Prepare(t.Context(), d)
		// The sender's coins may be used up before the ceiling is reached.
		if r := chain.ReasonOf(err); r == chain.ReasonFeeTooHigh || r == chain.ReasonGas {
			s.broadcast(t, last, chain.BroadcastKnown)
			s.completes(t, last, want)
			s.holds(t, to.Address, amount)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		next, err := s.finish(u, from)
		if err != nil {
			t.Fatal(err)
		}
		bumps(t, last, next)
		s.broadcast(t, next, chain.BroadcastAccepted)
		last = next
	}
	t.Fatalf("%d bids found no ceiling: %+v", maxBids, last.Bid)
}

// bumps checks that a bid is at least an eighth above another, in both parts.
func bumps(t *testing.T, old, next chain.Signed) {
	t.Helper()
	const eighths = 8
	for _, part := range []struct {
		name      string
		old, next money.Amount
	}{{"tip", old.Bid.Tip, next.Bid.Tip}, {"cap", old.Bid.Cap, next.Bid.Cap}} {
		rise := part.next.Sub(part.old)
		times := money.Zero(rise.Asset())
		for range eighths {
			times = times.Add(rise)
		}
		if times.Cmp(part.old) < 0 {
			t.Errorf("the %s rose from %s to %s, less than an eighth", part.name, part.old, part.next)
		}
	}
	if next.Nonce != old.Nonce || next.TxID == old.TxID {
		t.Errorf("%+v does not take the place of %+v", next.Unsigned, old.Unsigned)
	}
}

package chaintest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// can returns a capability of the harness, or skips the scenario.
func can[T any](t *testing.T, s *stage) T {
	t.Helper()
	c, ok := s.Harness.(T)
	if !ok {
		t.Skipf("this harness has no %T", (*T)(nil))
	}
	return c
}

func lostAnswer(t *testing.T, s *stage) {
	faults := can[Faulty](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	faults.LoseNextAnswer(t)
	s.broadcast(t, signed, chain.BroadcastUnknown)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.broadcast(t, signed, s.again()...)
	s.completes(t, signed, want)
	s.holds(t, to.Address, amount)
}

func busyNode(t *testing.T, s *stage) {
	faults := can[Faulty](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	faults.BusyNext(t)
	s.broadcast(t, signed, chain.BroadcastUnknown)
	s.locate(t, signed, chain.StageAbsent)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	s.completes(t, signed, want)
}

func dropped(t *testing.T, s *stage) {
	faults := can[Faulty](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	faults.DropNext(t)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	s.Mine(t, 2)
	s.Finalise(t)
	s.locate(t, signed, chain.StageAbsent)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.broadcast(t, signed, chain.BroadcastAccepted, chain.BroadcastKnown)
	s.completes(t, signed, want)
	s.holds(t, to.Address, amount)
}

func expired(t *testing.T, s *stage) {
	network := can[Expiring](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	network.AdvanceTime(t, network.Life()/2)
	s.Mine(t, 1)
	s.Finalise(t)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	network.AdvanceTime(t, network.Life())
	s.Mine(t, 1)
	// The newest block has passed the life, the final one has not: another block with the transaction could still replace
	// one that is not final.
	f := s.judge(t, signed, want, chain.VerdictBroadcast)
	if chain.Outlived(f.Attempt, f.Location.Head.Final) || !chain.Outlived(f.Attempt, f.Location.Head.Latest) {
		t.Fatalf("the scenario did not come about: %+v", f.Location.Head)
	}
	s.Finalise(t)
	s.judge(t, signed, want, chain.VerdictRebuild)
	s.broadcast(t, signed, chain.BroadcastRejected)
	again, _ := s.sign(t, from, to.Address, amount)
	if again.TxID == signed.TxID {
		t.Fatal("the rebuilt transaction is the old one")
	}
	s.broadcast(t, again, chain.BroadcastAccepted)
	s.completes(t, again, want)
	s.locate(t, signed, chain.StageAbsent)
	s.holds(t, to.Address, amount)
}

func vanished(t *testing.T, s *stage) {
	reorganising := can[Reorganising](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	s.Mine(t, 2)
	first := s.locate(t, signed, chain.StageIncluded)
	reorganising.Reorganise(t, 3, true)
	s.locate(t, signed, chain.StageAbsent)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.holds(t, to.Address, money.Zero(amount.Asset()))
	s.broadcast(t, signed, chain.BroadcastAccepted, chain.BroadcastKnown)
	s.Mine(t, 1)
	second := s.locate(t, signed, chain.StageIncluded)
	if first.Block.ID == second.Block.ID {
		t.Error("the transaction is in the block that was undone")
	}
	s.completes(t, signed, want)
	s.holds(t, to.Address, amount)
}

func returned(t *testing.T, s *stage) {
	reorganising := can[Reorganising](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	s.Mine(t, 1)
	s.judge(t, signed, want, chain.VerdictWait)
	reorganising.Reorganise(t, 2, false)
	s.waits(t, signed)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.completes(t, signed, want)
	s.holds(t, to.Address, amount)
}

func failed(t *testing.T, s *stage) {
	faults := can[Faulty](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	faults.FailNext(t)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	s.Mine(t, 1)
	if l := s.locate(t, signed, chain.StageIncluded); l.OK || len(l.Transfers) > 0 {
		t.Errorf("a failed call looks like a payment: %+v", l)
	}
	s.judge(t, signed, want, chain.VerdictWait)
	s.Finalise(t)
	f := s.judge(t, signed, want, chain.VerdictFailed)
	if f.Location.Code == "" || f.Location.Code == "SUCCESS" {
		t.Errorf("the failure has the code %q", f.Location.Code)
	}
	block, err := s.client.Transfers(t.Context(), f.Location.Block.Number)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range block.Movements {
		if m.TxID == signed.TxID {
			t.Errorf("a failed call moved %+v", m)
		}
	}
	s.holds(t, to.Address, money.Zero(amount.Asset()))
	s.holds(t, from.Address, amount)
}

func insufficientFunds(t *testing.T, s *stage) {
	has, wants := s.token("1"), s.token("1.000001")
	from, to := s.sender(t, has), s.NewAccount(t)
	_, err := s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: from.Address, To: to.Address, Amount: wants}))
	wantReason(t, "a token", err, chain.ReasonFunds)
	wantMissing(t, err, s.token("0.000001"))
	coins := s.balance(t, from.Address, s.native())
	_, err = s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{
		From: from.Address, To: to.Address, Amount: coins.Add(money.Must(s.native(), "0.000001")),
	}))
	wantReason(t, "the native coin", err, chain.ReasonFunds)
	_, err = s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: s.NewAccount(t).Address, To: to.Address, Amount: money.Must(s.native(), "1")}))
	wantReason(t, "an account that the chain does not know", err, chain.ReasonFunds)
}

func wantMissing(t *testing.T, err error, want money.Amount) {
	t.Helper()
	if e, ok := errors.AsType[*chain.Error](err); !ok || (!e.Missing.IsZero() && !e.Missing.Equal(want)) {
		t.Errorf("missing %v, want %s", err, want)
	}
}

func insufficientGas(t *testing.T, s *stage) {
	amount := s.token("1")
	poor, to := s.NewAccount(t), s.NewAccount(t)
	s.Fund(t, poor.Address, amount)
	if s.sponsor != nil {
		account := s.NewAccount(t)
		s.sponsor = &account
	}
	_, err := s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: poor.Address, To: to.Address, Amount: amount}))
	wantReason(t, "a token without any coin", err, chain.ReasonGas)
	s.sponsor = nil // an account that also pays the fee can't send everything
	rich := s.sender(t, amount)
	all := s.balance(t, rich.Address, s.native())
	_, err = s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: rich.Address, To: to.Address, Amount: all}))
	wantReason(t, "all of the native coin", err, chain.ReasonGas)
}

func blockedEnds(t *testing.T, s *stage) {
	issuer := can[TokenControls](t, s)
	for _, asset := range s.Tokens() {
		amount := money.Must(asset, "1")
		from, to := s.sender(t, amount), s.NewAccount(t)
		issuer.Block(t, asset, to.Address)
		_, err := s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: from.Address, To: to.Address, Amount: amount}))
		wantReason(t, "a blocked recipient of "+string(asset), err, chain.ReasonBlocked)
		issuer.Block(t, asset, from.Address)
		_, err = s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: from.Address, To: s.NewAccount(t).Address, Amount: amount}))
		wantReason(t, "a blocked sender of "+string(asset), err, chain.ReasonBlocked)
	}
}

func pausedToken(t *testing.T, s *stage) {
	issuer := can[TokenControls](t, s)
	for _, asset := range s.Tokens() {
		amount := money.Must(asset, "1")
		from, to := s.sender(t, amount), s.NewAccount(t)
		issuer.Pause(t, asset)
		_, err := s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: from.Address, To: to.Address, Amount: amount}))
		wantReason(t, string(asset), err, chain.ReasonPaused)
	}
}

func feeOnTransfer(t *testing.T, s *stage) {
	issuer := can[TokenControls](t, s)
	staged := false
	for _, asset := range s.Tokens() {
		amount := money.Must(asset, "100")
		from, to := s.sender(t, amount), s.NewAccount(t)
		signed, want := s.sign(t, from, to.Address, amount)
		if !issuer.TakeFee(t, asset) {
			continue
		}
		staged = true
		_, err := s.client.Prepare(t.Context(), s.draft(t, want))
		wantReason(t, string(asset), err, chain.ReasonReverts)
		// A transaction from before the fee delivers too little: the payment is not completed.
		s.broadcast(t, signed, chain.BroadcastAccepted)
		s.Mine(t, 1)
		s.Finalise(t)
		f := s.judge(t, signed, want, chain.VerdictFailed)
		if len(f.Location.Transfers) != 2 || !f.Location.OK {
			t.Errorf("a transfer with a fee moved %+v", f.Location.Transfers)
		}
		uniqueMovements(t, f.Location.Transfers)
		sum := money.Zero(asset)
		for _, m := range f.Location.Transfers {
			sum = sum.Add(m.Amount)
		}
		if !sum.Equal(amount) {
			t.Errorf("the movements sum to %s, want %s", sum, amount)
		}
	}
	if !staged {
		t.Skip("no token of this harness can take a fee")
	}
}

func unknownThings(t *testing.T, s *stage) {
	amount := s.token("1")
	from, to := s.sender(t, amount), s.NewAccount(t)
	signed, _ := s.sign(t, from, to.Address, amount)
	s.locate(t, signed, chain.StageAbsent)
	for _, id := range []string{"", "zz", signed.TxID[len(signed.TxID)/2:], strings.Repeat("x", 4096)} {
		if l, err := s.client.Locate(t.Context(), id); err == nil {
			t.Errorf("located %q as %+v", id, l)
		}
	}
	head, err := s.client.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if head.Latest.Number < head.Final.Number || head.Latest.ID == "" || head.Final.ID == "" || head.Latest.Time.Before(head.Final.Time) {
		t.Errorf("head %+v", head)
	}
	_, err = s.client.Transfers(t.Context(), head.Latest.Number+1000)
	wantReason(t, "a block to come", err, chain.ReasonUnavailable)
}

func nodeRestart(t *testing.T, s *stage) {
	node := can[Restartable](t, s)
	amount := s.token("3")
	from, to := s.sender(t, amount.Add(amount)), s.NewAccount(t)
	old, oldWant := s.sign(t, from, to.Address, amount)
	s.broadcast(t, old, chain.BroadcastAccepted)
	s.completes(t, old, oldWant)
	signed, want := s.sign(t, from, to.Address, amount)
	node.Stop(t)
	_, err := s.client.Head(t.Context())
	wantReason(t, "head", err, chain.ReasonUnavailable)
	_, err = s.client.Locate(t.Context(), signed.TxID)
	wantReason(t, "locate", err, chain.ReasonUnavailable)
	_, err = s.client.Prepare(t.Context(), s.draft(t, want))
	wantReason(t, "prepare", err, chain.ReasonUnavailable)
	_, err = s.client.Balance(t.Context(), to.Address, amount.Asset())
	wantReason(t, "balance", err, chain.ReasonUnavailable)
	s.broadcast(t, signed, chain.BroadcastUnknown)
	node.Restart(t)
	s.awaitNode(t)
	s.judge(t, old, oldWant, chain.VerdictSucceeded)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	s.completes(t, signed, want)
	s.holds(t, to.Address, amount.Add(amount))
}

// awaitNode waits until the driver has found its node again.
func (s *stage) awaitNode(t *testing.T) {
	t.Helper()
	const timeout = 30 * time.Second
	for end := time.Now().Add(timeout); ; {
		_, err := s.client.Head(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the node did not come back: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

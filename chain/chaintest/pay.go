package chaintest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"kivuko/chain"
	"kivuko/exchange/money"
)

func addresses(t *testing.T, s *stage) {
	a := s.NewAccount(t)
	canonical, err := s.client.ParseAddress(a.Address)
	if err != nil || canonical != a.Address {
		t.Errorf("%s parses to %q, %v", a.Address, canonical, err)
	}
	derived, err := s.client.Address(a.Key.PublicKey())
	if err != nil || derived != a.Address {
		t.Errorf("the key of %s gives %q, %v", a.Address, derived, err)
	}
	for _, bad := range append(s.BadAddresses(), "", " "+a.Address, a.Address+" ", a.Address[5:], strings.Repeat("1", 1000)) {
		_, err := s.client.ParseAddress(bad)
		wantReason(t, "address "+bad, err, chain.ReasonAddress)
		_, err = s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: a.Address, To: bad, Amount: money.Must(s.native(), "1")}))
		wantReason(t, "recipient "+bad, err, chain.ReasonAddress)
		_, err = s.client.Balance(t.Context(), bad, s.native())
		wantReason(t, "balance of "+bad, err, chain.ReasonAddress)
	}
	_, err = s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: a.Address, To: a.Address, Amount: money.Must(s.native(), "1")}))
	wantReason(t, "to itself", err, chain.ReasonAddress)
}

func unsupportedAsset(t *testing.T, s *stage) {
	a, b := s.NewAccount(t), s.NewAccount(t)
	for _, asset := range append(s.Tokens(), s.native()) {
		if err := s.client.Supports(asset); err != nil {
			t.Errorf("%s: %v", asset, err)
		}
	}
	for _, asset := range []money.Asset{s.Unsupported(), money.KES} {
		wantReason(t, "supports", s.client.Supports(asset), chain.ReasonUnsupported)
		_, err := s.client.Prepare(t.Context(), s.draft(t, chain.Transfer{From: a.Address, To: b.Address, Amount: money.Must(asset, "1")}))
		wantReason(t, "prepare", err, chain.ReasonUnsupported)
		_, err = s.client.Balance(t.Context(), a.Address, asset)
		wantReason(t, "balance", err, chain.ReasonUnsupported)
	}
}

func balances(t *testing.T, s *stage) {
	a := s.NewAccount(t)
	for _, asset := range append(s.Tokens(), s.native()) {
		s.holds(t, a.Address, money.Zero(asset))
		first, second := money.Must(asset, "12.345678"), money.Must(asset, "0.000001")
		s.Fund(t, a.Address, first)
		s.Fund(t, a.Address, second)
		before := s.final(t)
		b, err := s.client.Balance(t.Context(), a.Address, asset)
		if err != nil {
			t.Fatal(err)
		}
		// The ledger is compared with it, so it must be of a block that can't be undone.
		if after := s.final(t); b.At.Number < before.Number || b.At.Number > after.Number || (b.At.Number == after.Number && b.At.ID != after.ID) {
			t.Errorf("%s: read at %+v; the final blocks before and after are %+v and %+v", asset, b.At, before, after)
		}
		if want := first.Add(second); !b.Amount.Equal(want) || b.At.ID == "" || b.At.Number == 0 {
			t.Errorf("%s: %s at %+v, want %s", asset, b.Amount, b.At, want)
		}
	}
}

func nativePayment(t *testing.T, s *stage) {
	amount := money.Must(s.native(), "1.5")
	from, to := s.sender(t, amount), s.NewAccount(t)
	s.Fund(t, from.Address, amount)
	s.pays(t, from, to, amount)
}

func tokenPayment(t *testing.T, s *stage) {
	for _, asset := range s.Tokens() {
		t.Run(string(asset), func(t *testing.T) {
			amount := money.Must(asset, "10.000001")
			from, to := s.sender(t, amount), s.NewAccount(t)
			s.pays(t, from, to, amount)
			s.holds(t, from.Address, money.Zero(asset))
			// A second payment to an account that now holds the token.
			s.Fund(t, from.Address, amount)
			signed, want := s.sign(t, from, to.Address, amount)
			s.broadcast(t, signed, chain.BroadcastAccepted)
			s.completes(t, signed, want)
			s.holds(t, to.Address, amount.Add(amount))
		})
	}
}

// pays follows one payment through every stage.
func (s *stage) pays(t *testing.T, from, to Account, amount money.Amount) {
	t.Helper()
	before := s.balance(t, s.payer(from), s.native())
	signed, want := s.sign(t, from, to.Address, amount)
	if len(signed.Raw) == 0 || signed.TxID == "" || signed.FeeLimit.Asset() != s.native() || !signed.FeeLimit.Positive() {
		t.Fatalf("signed: %+v", signed)
	}
	s.locate(t, signed, chain.StageAbsent)
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	if l := s.waits(t, signed); l.OK || len(l.Transfers) > 0 {
		t.Errorf("a pending transaction has results: %+v", l)
	}
	s.judge(t, signed, want, chain.VerdictBroadcast)
	s.Mine(t, 1)
	s.locate(t, signed, chain.StageIncluded)
	f := s.judge(t, signed, want, chain.VerdictWait)
	final := s.completes(t, signed, want)
	if final.Block != f.Location.Block {
		t.Errorf("included in %+v, final in %+v", f.Location.Block, final.Block)
	}
	s.holds(t, to.Address, amount)
	spent := before.Sub(s.balance(t, s.payer(from), s.native()))
	if amount.Asset() == s.native() && s.payer(from) == from.Address {
		spent = spent.Sub(amount)
	}
	if !spent.Equal(final.Fee) {
		t.Errorf("the payer lost %s %s besides the amount, the fee was %s", spent, s.native(), final.Fee)
	}
}

func guardedSigning(t *testing.T, s *stage) {
	amount := s.token("5")
	from, to, other := s.sender(t, amount), s.NewAccount(t), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	u := s.prepare(t, want)
	refused := func(what string, u chain.Unsigned, k chain.Key) {
		t.Helper()
		if signed, err := s.client.Sign(u, s.keys(u, k)...); err == nil {
			t.Errorf("%s: signed as %s", what, signed.TxID)
		}
	}
	refused("with another's key", u, other.Key)
	change := func(edit func(*chain.Unsigned)) chain.Unsigned {
		c := u
		c.Body, c.Payload = bytes.Clone(u.Body), bytes.Clone(u.Payload)
		edit(&c)
		return c
	}
	refused("another recipient", change(func(c *chain.Unsigned) { c.Transfer.To = other.Address }), from.Key)
	refused("another amount", change(func(c *chain.Unsigned) { c.Transfer.Amount = s.token("4") }), from.Key)
	refused("another sender", change(func(c *chain.Unsigned) { c.Transfer.From = other.Address }), other.Key)
	refused("another payload", change(func(c *chain.Unsigned) { c.Payload[0] ^= 1 }), from.Key)
	refused("other bytes", change(func(c *chain.Unsigned) { c.Body[len(c.Body)-1] ^= 1 }), from.Key)
	refused("no bytes", change(func(c *chain.Unsigned) { c.Body = nil }), from.Key)
	first, err := s.client.Sign(u, s.keys(u, from.Key)...)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.client.Sign(u, s.keys(u, from.Key)...)
	if err != nil || !bytes.Equal(first.Raw, second.Raw) || first.TxID != second.TxID {
		t.Errorf("signing twice gives different bytes: %v", err)
	}
}

func rebroadcast(t *testing.T, s *stage) {
	amount := s.token("3")
	from, to := s.sender(t, amount.Add(amount)), s.NewAccount(t)
	signed, want := s.sign(t, from, to.Address, amount)
	s.broadcast(t, signed, chain.BroadcastAccepted)
	for range 3 {
		s.broadcast(t, signed, chain.BroadcastKnown, chain.BroadcastAccepted)
	}
	s.Mine(t, 1)
	s.broadcast(t, signed, chain.BroadcastKnown, chain.BroadcastRejected)
	s.completes(t, signed, want)
	s.broadcast(t, signed, chain.BroadcastKnown, chain.BroadcastRejected)
	s.Mine(t, 2)
	s.holds(t, to.Address, amount)
	if _, err := s.client.Broadcast(t.Context(), []byte("no transaction")); err == nil {
		t.Error("noise was broadcast")
	}
}

func equalPayments(t *testing.T, s *stage) {
	const payments = 4
	amount := s.token("2")
	from, to := s.sender(t, money.FromUnits(amount.Asset(), amount.Units().Lsh(amount.Units(), 2))), s.NewAccount(t)
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	all := make([]chain.Unsigned, payments)
	first := s.draft(t, want)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			d := first
			if s.client.Traits().Sequenced {
				d.Nonce += uint64(i)
			}
			var err error
			if all[i], err = s.client.Prepare(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	seen := map[string]bool{}
	for _, u := range all {
		signed, err := s.client.Sign(u, s.keys(u, from.Key)...)
		if err != nil {
			t.Fatal(err)
		}
		if seen[signed.TxID] {
			t.Fatalf("two payments share the transaction %s", signed.TxID)
		}
		seen[signed.TxID] = true
		s.broadcast(t, signed, chain.BroadcastAccepted)
	}
	s.Mine(t, 1)
	s.Finalise(t)
	s.holds(t, to.Address, money.FromUnits(amount.Asset(), amount.Units().Lsh(amount.Units(), 2)))
}

func transfersOfBlock(t *testing.T, s *stage) {
	amount := s.token("7")
	from, to := s.sender(t, amount.Add(amount)), s.NewAccount(t)
	coin := money.Must(s.native(), "1.25")
	s.Fund(t, from.Address, coin)
	paid, want := s.sign(t, from, to.Address, amount)
	native, coinWant := s.sign(t, from, to.Address, coin)
	s.broadcast(t, paid, chain.BroadcastAccepted)
	s.broadcast(t, native, chain.BroadcastAccepted)
	s.Mine(t, 1)
	block := s.locate(t, paid, chain.StageIncluded).Block.Number
	for _, when := range []string{"newest", "final"} {
		got, err := s.client.Transfers(t.Context(), block)
		if err != nil {
			t.Fatal(err)
		}
		if got.Block.Number != block {
			t.Errorf("%s: asked for block %d, got %+v", when, block, got.Block)
		}
		expectMovement(t, got.Movements, paid.TxID, want)
		expectMovement(t, got.Movements, native.TxID, coinWant)
		uniqueMovements(t, got.Movements)
		s.Finalise(t)
	}
	by, ok := s.Harness.(ContractTransfers)
	if !ok {
		t.Log("this harness has no transfers by contracts or third accounts")
		return
	}
	by.TransferFrom(t, from, to.Address, amount)
	head, err := s.client.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.client.Transfers(t.Context(), head.Latest.Number)
	if err != nil {
		t.Fatal(err)
	}
	expectMovement(t, got.Movements, "", want)
}

func expectMovement(t *testing.T, all []chain.Movement, tx string, want chain.Transfer) {
	t.Helper()
	found := slices.ContainsFunc(all, func(m chain.Movement) bool {
		return (tx == "" || m.TxID == tx) && m.From == want.From && m.To == want.To && m.Amount.Equal(want.Amount)
	})
	if !found {
		t.Errorf("the movement %+v is missing in %+v", want, all)
	}
}

func uniqueMovements(t *testing.T, all []chain.Movement) {
	t.Helper()
	type key struct {
		tx    string
		index uint32
	}
	seen := map[key]bool{}
	for _, m := range all {
		k := key{m.TxID, m.Index}
		if seen[k] {
			t.Errorf("two movements have the key %+v", k)
		}
		seen[k] = true
	}
}

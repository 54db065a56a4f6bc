package chaintest

import (
	"testing"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Run runs every scenario that the harness supports.
func Run(t *testing.T, start func(testing.TB) Harness) {
	for _, s := range []struct {
		name string
		run  func(*testing.T, *stage)
	}{
		{"addresses", addresses},
		{"unsupported asset", unsupportedAsset},
		{"balances", balances},
		{"a native payment", nativePayment},
		{"a token payment", tokenPayment},
		{"signing is guarded", guardedSigning},
		{"broadcasting the same bytes again", rebroadcast},
		{"equal payments are different transactions", equalPayments},
		{"the answer to a broadcast is lost", lostAnswer},
		{"the node is busy", busyNode},
		{"the transaction is dropped", dropped},
		{"the transaction expires", expired},
		{"the block is undone and the transaction vanishes", vanished},
		{"the block is undone and the transaction returns", returned},
		{"the call fails in the block", failed},
		{"insufficient funds", insufficientFunds},
		{"insufficient gas", insufficientGas},
		{"blocked ends", blockedEnds},
		{"a paused token", pausedToken},
		{"a token that takes a fee", feeOnTransfer},
		{"transfers of a block", transfersOfBlock},
		{"unknown transactions and blocks", unknownThings},
		{"the node goes away and comes back", nodeRestart},
		{"a number before is missing", numberGap},
		{"a replacement wins", replacementWins},
		{"the original wins over its replacement", originalWins},
		{"a foreign transaction used the number", foreignNumber},
		{"a number is free again after a reorganisation", reorganisedNumber},
		{"bids rise to the ceiling", feeRace},
	} {
		t.Run(s.name, func(t *testing.T) {
			h := start(t)
			s.run(t, newStage(t, h))
		})
	}
}

// stage is a harness with the steps that scenarios share.
type stage struct {
	Harness
	client  chain.Client
	sponsor *Account          // pays the fees, if the network supports it
	next    map[string]uint64 // the next sequence numbers, by those that were signed here
}

func newStage(t *testing.T, h Harness) *stage {
	s := &stage{Harness: h, client: h.Client(), next: map[string]uint64{}}
	traits := s.client.Traits()
	if _, ok := s.client.(chain.Sequenced); ok != traits.Sequenced {
		t.Fatalf("the traits are %+v, and the driver counts sequence numbers: %t", traits, ok)
	}
	if by, ok := h.(Sponsoring); ok && traits.Sponsored {
		payer := by.Sponsor(t)
		s.sponsor = &payer
	}
	return s
}

// draft adds what a sender on the network must specify to a transfer.
func (s *stage) draft(t *testing.T, want chain.Transfer) chain.Draft {
	t.Helper()
	d := chain.Draft{Transfer: want}
	if s.sponsor != nil {
		d.FeePayer = s.sponsor.Address
	}
	if numbered, ok := s.client.(chain.Sequenced); ok {
		d.Nonce = s.next[want.From]
		if n, err := numbered.Nonces(t.Context(), want.From); err == nil {
			d.Nonce = max(d.Nonce, n.Latest)
		}
	}
	return d
}

// keys are the keys that sign a prepared transaction.
func (s *stage) keys(u chain.Unsigned, sender chain.Key) []chain.Key {
	if u.FeePayer == "" {
		return []chain.Key{sender}
	}
	return []chain.Key{sender, s.sponsor.Key}
}

// finish signs a prepared transaction and counts its number as used.
func (s *stage) finish(u chain.Unsigned, from Account) (chain.Signed, error) {
	signed, err := s.client.Sign(u, s.keys(u, from.Key)...)
	if err == nil {
		s.next[from.Address] = max(s.next[from.Address], u.Nonce+1)
	}
	return signed, err
}

// native is the coin that pays fees.
func (s *stage) native() money.Asset { return s.client.Network().NativeCoin() }

// sender is an account with gas and an amount to send.
func (s *stage) sender(t *testing.T, amount money.Amount) Account {
	t.Helper()
	a := s.NewAccount(t)
	s.Fund(t, a.Address, s.Gas())
	if amount.Asset() != s.native() {
		s.Fund(t, a.Address, amount)
	}
	return a
}

// token is a quantity of the first token.
func (s *stage) token(quantity string) money.Amount { return money.Must(s.Tokens()[0], quantity) }

func (s *stage) prepare(t *testing.T, want chain.Transfer) chain.Unsigned {
	t.Helper()
	u, err := s.client.Prepare(t.Context(), s.draft(t, want))
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	return u
}

func (s *stage) sign(t *testing.T, from Account, to string, amount money.Amount) (chain.Signed, chain.Transfer) {
	t.Helper()
	want := chain.Transfer{From: from.Address, To: to, Amount: amount}
	signed, err := s.finish(s.prepare(t, want), from)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return signed, want
}

func (s *stage) broadcast(t *testing.T, signed chain.Signed, states ...chain.BroadcastState) {
	t.Helper()
	got, err := s.client.Broadcast(t.Context(), signed.Raw)
	if err != nil {
		t.Fatalf("broadcast: %v", err)
	}
	for _, want := range states {
		if got.State == want {
			return
		}
	}
	t.Fatalf("broadcast: %+v, want one of %v", got, states)
}

func (s *stage) locate(t *testing.T, signed chain.Signed, want chain.Stage) chain.Location {
	t.Helper()
	l, err := s.client.Locate(t.Context(), signed.TxID)
	if err != nil {
		t.Fatalf("locate: %v", err)
	}
	if l.Stage != want {
		t.Fatalf("located as %s, want %s: %+v", l.Stage, want, l)
	}
	return l
}

// waits checks that a transaction is in no block. Not every node distinguishes that from an unknown transaction.
func (s *stage) waits(t *testing.T, signed chain.Signed) chain.Location {
	t.Helper()
	if _, ok := s.Harness.(Poolless); ok {
		return s.locate(t, signed, chain.StageAbsent)
	}
	return s.locate(t, signed, chain.StagePending)
}

// again are the possible responses to a repeated broadcast.
func (s *stage) again() []chain.BroadcastState {
	if _, ok := s.Harness.(Poolless); ok {
		return []chain.BroadcastState{chain.BroadcastKnown, chain.BroadcastAccepted}
	}
	return []chain.BroadcastState{chain.BroadcastKnown}
}

// payer is the account that pays the fees of a sender.
func (s *stage) payer(from Account) string {
	if s.sponsor != nil {
		return s.sponsor.Address
	}
	return from.Address
}

// attempt is what the ledger would have recorded about a signed transaction.
func attempt(signed chain.Signed) exchange.ChainAttempt {
	return exchange.ChainAttempt{
		TxID: signed.TxID, Raw: signed.Raw, ExpiresAt: signed.ExpiresAt, LastValidHeight: signed.LastValidHeight,
		Nonce: signed.Nonce, Bid: signed.Bid, Status: exchange.TxBroadcast,
	}
}

func (s *stage) judge(t *testing.T, signed chain.Signed, payment chain.Transfer, want chain.Verdict) chain.Facts {
	t.Helper()
	f, err := chain.Inquire(t.Context(), s.client, attempt(signed), payment)
	if err != nil {
		t.Fatalf("inquire: %v", err)
	}
	if got := chain.Judge(f); got != want {
		t.Fatalf("judged %s, want %s: %+v", got, want, f)
	}
	return f
}

// final is the newest final block.
func (s *stage) final(t *testing.T) chain.Block {
	t.Helper()
	h, err := s.client.Head(t.Context())
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	return h.Final
}

func (s *stage) balance(t *testing.T, address string, a money.Asset) money.Amount {
	t.Helper()
	b, err := s.client.Balance(t.Context(), address, a)
	if err != nil {
		t.Fatalf("balance: %v", err)
	}
	return b.Amount
}

func (s *stage) holds(t *testing.T, address string, want money.Amount) {
	t.Helper()
	if got := s.balance(t, address, want.Asset()); !got.Equal(want) {
		t.Errorf("%s holds %s %s, want %s", address, got, got.Asset(), want)
	}
}

func wantReason(t *testing.T, what string, err error, want chain.Reason) {
	t.Helper()
	if got := chain.ReasonOf(err); got != want {
		t.Errorf("%s: reason %q, want %q: %v", what, got, want, err)
	}
}

// completes mines, finalises and checks that the payment is exactly right.
func (s *stage) completes(t *testing.T, signed chain.Signed, payment chain.Transfer) chain.Location {
	t.Helper()
	s.Mine(t, 1)
	s.Finalise(t)
	f := s.judge(t, signed, payment, chain.VerdictSucceeded)
	l := f.Location
	if !l.OK || l.Code == "" || l.Block.ID == "" || l.Block.Parent == "" || l.Block.Number == 0 || l.Block.Time.IsZero() {
		t.Errorf("the location is incomplete: %+v", l)
	}
	if l.Fee.Asset() != s.native() || l.Fee.Sign() < 0 || l.Fee.Cmp(signed.FeeLimit) > 0 {
		t.Errorf("fee %s, limit %s", l.Fee, signed.FeeLimit)
	}
	if l.Head.Final.Number < l.Block.Number || l.Head.Latest.Number < l.Head.Final.Number {
		t.Errorf("final in block %d under the head %+v", l.Block.Number, l.Head)
	}
	return l
}

package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// counter is a driver of a network that numbers transactions.
type counter struct {
	driver
	latest  uint64
	ceiling bool // no higher bid is allowed
	drafts  []chain.Draft
	mu      sync.Mutex
}

func (c *counter) Network() exchange.Network { return exchange.Ethereum }

func (c *counter) Traits() chain.Traits { return chain.Traits{Sequenced: true} }

func (c *counter) Nonces(context.Context, string) (chain.Nonces, error) {
	return chain.Nonces{Latest: c.latest, Final: c.latest}, nil
}

func (c *counter) Balance(context.Context, string, money.Asset) (chain.Balance, error) {
	return chain.Balance{Amount: money.Must(money.ETH, "0.005")}, nil
}

func (c *counter) Prepare(_ context.Context, d chain.Draft) (chain.Unsigned, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drafts = append(c.drafts, d)
	if c.ceiling && !d.Bump.IsZero() {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonFeeTooHigh, "the ceiling")
	}
	tip, limit := money.Must(money.ETH, "0.000000001"), money.Must(money.ETH, "0.00000003")
	if !d.Bump.IsZero() {
		tip, limit = d.Bump.Tip.Add(tip), d.Bump.Cap.Add(limit)
	}
	body := fmt.Sprintf("%s>%s:%s#%d@%s", d.From, d.To, d.Amount, d.Nonce, limit)
	digest := sha256.Sum256([]byte(body))
	u := chain.Unsigned{Transfer: d.Transfer, Payload: digest[:], Body: []byte(body), Nonce: d.Nonce, Bid: exchange.Bid{Tip: tip, Cap: limit}}
	u.FeeLimit = money.Must(money.ETH, "0.002")
	if c.change != nil {
		c.change(&u)
	}
	return u, nil
}

// numberedRecords are records of a wallet on Ethereum.
func numberedRecords(t *testing.T, v *Vault) *records {
	t.Helper()
	s := approved(t, v)
	wallet := ref(exchange.Ethereum)
	sealed, err := v.Create(t.Context(), wallet)
	if err != nil {
		t.Fatal(err)
	}
	from, err := (&driver{}).Address(sealed.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	s.sealed = []Sealed{sealed}
	s.payment.Network, s.payment.WalletID, s.payment.FromAddress = exchange.Ethereum, wallet.WalletID, from
	s.payment.IntentHash = s.payment.Intent()
	return s
}

func sequencedSigner(t *testing.T, v *Vault, s PaymentStore, c chain.Client) *PaymentSigner {
	t.Helper()
	ps, err := NewPaymentSigner(PaymentSignerConfig{Store: s, Vault: v, Clients: map[exchange.Network]chain.Client{c.Network(): c}})
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// TestNoncesComeFromTheSequence signs with the number in the database, however much lower the chain's count is. It refuses
// to sign when the chain counts more: then another party has the key.
func TestNoncesComeFromTheSequence(t *testing.T) {
	v := localVault(t)
	for name, c := range map[string]struct {
		sequence *exchange.NonceSequence
		latest   uint64
		want     uint64
		reason   chain.Reason
	}{
		"a new sequence begins with the chain's count": {latest: 4, want: 4},
		"payments that no block has yet":               {sequence: &exchange.NonceSequence{Next: 9}, latest: 4, want: 9},
		"all mined":                                    {sequence: &exchange.NonceSequence{Next: 9}, latest: 9, want: 9},
		"a count ahead of the sequence":                {sequence: &exchange.NonceSequence{Next: 9}, latest: 10, reason: chain.ReasonForeign},
		"a sequence that was closed":                   {sequence: &exchange.NonceSequence{Next: 9, Foreign: true}, latest: 9, reason: chain.ReasonForeign},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := numberedRecords(t, v), &counter{latest: c.latest}
			s.sequence = c.sequence
			a, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID)
			if c.reason != "" {
				if chain.ReasonOf(err) != c.reason || d.signatures.Load() != 0 {
					t.Errorf("%v after %d signatures, want %s", err, d.signatures.Load(), c.reason)
				}
				return
			}
			if err != nil || a.Nonce != c.want || a.NonceWallet != s.payment.WalletID || a.Bid.IsZero() {
				t.Errorf("signed %+v, %v; want the number %d", a, err, c.want)
			}
		})
	}
}

// TestANumberThatWasTaken signs again with the next one, and drops the signature that was not stored.
func TestANumberThatWasTaken(t *testing.T) {
	v := localVault(t)
	s, d := numberedRecords(t, v), &counter{latest: 3}
	s.fail = []error{exchange.Errorf(exchange.CodeConflict, "taken")}
	if _, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err != nil || d.signatures.Load() != 2 || s.saved != 1 {
		t.Errorf("%v; %d signatures, %d saved", err, d.signatures.Load(), s.saved)
	}
	s, d = numberedRecords(t, v), &counter{}
	for range 2 * maxTurns {
		s.fail = append(s.fail, exchange.Errorf(exchange.CodeConflict, "taken"))
	}
	if _, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID); exchange.CodeOf(err) != exchange.CodeUnavailable || d.signatures.Load() != maxTurns {
		t.Errorf("without end: %v after %d", err, d.signatures.Load())
	}
}

// TestBump signs the same transfer with the same number and a higher bid, once for one transaction.
func TestBump(t *testing.T) {
	v := localVault(t)
	s, d := numberedRecords(t, v), &counter{latest: 5}
	ps := sequencedSigner(t, v, s, d)
	if _, err := ps.BumpPaymentFee(t.Context(), s.payment.ID, 1); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("a payment without a transaction: %v", err)
	}
	first, err := ps.SignPayment(t.Context(), s.payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.payment.Status = exchange.ChainBroadcast
	var second exchange.ChainAttempt
	for range 2 {
		if second, err = ps.BumpPaymentFee(t.Context(), s.payment.ID, first.N); err != nil {
			t.Fatal(err)
		}
	}
	if d.signatures.Load() != 2 || second.N != 2 || second.Nonce != first.Nonce || second.TxID == first.TxID || second.Bid.Cap.Cmp(first.Bid.Cap) <= 0 {
		t.Errorf("%d signatures: %+v", d.signatures.Load(), second)
	}
	if draft := d.drafts[1]; draft.Bump != first.Bid || draft.Transfer != d.drafts[0].Transfer {
		t.Errorf("drafted %+v", draft)
	}
	d.ceiling = true
	if _, err := ps.BumpPaymentFee(t.Context(), s.payment.ID, second.N); chain.ReasonOf(err) != chain.ReasonFeeTooHigh || s.live.ID != second.ID {
		t.Errorf("at the ceiling: %v", err)
	}
	d.ceiling = false
	s.payment.Amount = money.Must(money.USDT, "11")
	if _, err := ps.BumpPaymentFee(t.Context(), s.payment.ID, second.N); exchange.CodeOf(err) != exchange.CodeStateConflict || d.signatures.Load() != 2 {
		t.Errorf("a changed amount was replaced with a higher fee: %v", err)
	}
	s.live.Status = exchange.TxIncluded
	if a, err := ps.BumpPaymentFee(t.Context(), s.payment.ID, second.N); err != nil || a.ID != second.ID {
		t.Errorf("a transaction in a block was replaced with a higher fee: %+v, %v", a, err)
	}
}

// TestDriverThatChangesTheNumber must not get a signature: the number belongs to another payment.
func TestDriverThatChangesTheNumber(t *testing.T) {
	v := localVault(t)
	s := numberedRecords(t, v)
	d := &counter{driver: driver{change: func(u *chain.Unsigned) { u.Nonce++ }}}
	if _, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err == nil || d.signatures.Load() != 0 {
		t.Errorf("%v", err)
	}
}

// sponsor is a driver of a network where another account can pay the fee.
type sponsor struct {
	driver
	payer bool // requires both keys
	keys  int
}

func (d *sponsor) Traits() chain.Traits { return chain.Traits{Sponsored: d.payer} }

func (d *sponsor) Prepare(ctx context.Context, draft chain.Draft) (chain.Unsigned, error) {
	u, err := d.driver.Prepare(ctx, draft)
	u.FeePayer = draft.FeePayer
	if d.change != nil {
		d.change(&u)
	}
	return u, err
}

func (d *sponsor) Sign(u chain.Unsigned, keys ...chain.Key) (chain.Signed, error) {
	d.keys = len(keys)
	for _, k := range keys[1:] {
		if _, err := k.Sign(u.Payload); err != nil {
			return chain.Signed{}, err
		}
	}
	return d.driver.Sign(u, keys...)
}

// TestFeePayerSigns: both wallets sign a payment whose fee the house pays, and only the approved wallet pays it.
func TestFeePayerSigns(t *testing.T) {
	v := localVault(t)
	prepare := func(t *testing.T) *records {
		t.Helper()
		s := approved(t, v)
		house := ref(exchange.Tron)
		sealed, err := v.Create(t.Context(), house)
		if err != nil {
			t.Fatal(err)
		}
		payer, err := (&driver{}).Address(sealed.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		s.sealed = append(s.sealed, sealed)
		s.payment.FeeWalletID, s.payment.FeePayer = house.WalletID, payer
		s.payment.IntentHash = s.payment.Intent()
		return s
	}
	s, d := prepare(t), &sponsor{payer: true}
	if _, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err != nil || d.keys != 2 {
		t.Errorf("%v with %d keys", err, d.keys)
	}
	for name, c := range map[string]struct {
		change func(*records, *sponsor)
	}{
		"no such network":          {func(_ *records, d *sponsor) { d.payer = false }},
		"one key":                  {func(s *records, _ *sponsor) { s.sealed = s.sealed[:1] }},
		"the keys are exchanged":   {func(s *records, _ *sponsor) { s.sealed[0], s.sealed[1] = s.sealed[1], s.sealed[0] }},
		"another fee payer":        {func(s *records, _ *sponsor) { s.payment.FeePayer = s.payment.FromAddress }},
		"no fee payer any more":    {func(s *records, _ *sponsor) { s.payment.FeePayer, s.payment.FeeWalletID = "", uuid.Nil }},
		"the driver takes another": {func(_ *records, d *sponsor) { d.change = func(u *chain.Unsigned) { u.FeePayer = "thief" } }},
		"the fee wallet is another's": {func(s *records, _ *sponsor) {
			s.payment.FeeWalletID = uuid.New()
			s.payment.IntentHash = s.payment.Intent()
		}},
	} {
		s, d := prepare(t), &sponsor{payer: true}
		c.change(s, d)
		if _, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err == nil || s.saved != 0 || d.signatures.Load() != 0 {
			t.Errorf("%s was signed: %v", name, err)
		}
	}
}

// TestTurnsEnd: a wallet's payments wait for each other, but not for ever.
func TestTurnsEnd(t *testing.T) {
	turns := newTurns()
	wallet := uuid.New()
	done, err := turns.wait(t.Context(), wallet)
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.wait(cancelled, wallet); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	done()
	if _, err := turns.wait(t.Context(), wallet); err != nil {
		t.Error(err)
	}
}

// TestGasOfThePaymentsBefore: no number is used for a transaction that the wallet can't pay for after the earlier ones. No
// node would accept it, and all later ones would wait behind it.
func TestGasOfThePaymentsBefore(t *testing.T) {
	v := localVault(t)
	for name, c := range map[string]struct {
		amount  money.Amount
		reserve string
		next    uint64
		missing string
	}{
		"enough for all":          {reserve: "0.003", next: 9},
		"one coin too little":     {reserve: "0.003000000000000001", next: 9, missing: "0.000000000000000001"},
		"native coin is sent":     {amount: money.Must(money.ETH, "0.001"), reserve: "0.0025", next: 9, missing: "0.0005"},
		"nothing waits before it": {reserve: "9", next: 4},
	} {
		s, d := numberedRecords(t, v), &counter{latest: 4}
		s.sequence, s.reserve = &exchange.NonceSequence{Next: c.next}, money.Must(money.ETH, c.reserve)
		if c.amount.Asset() != "" {
			s.payment.Amount = c.amount
			s.payment.IntentHash = s.payment.Intent()
		}
		_, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID)
		refused, ok := errors.AsType[*chain.Error](err)
		if ok != (c.missing != "") || (err != nil) != ok || s.saved == 1 == ok {
			t.Errorf("%s: %v, %d saved", name, err, s.saved)
			continue
		}
		if ok && (refused.Reason != chain.ReasonGas || !refused.Missing.Equal(money.Must(money.ETH, c.missing)) || s.reservedFrom[0] != 4) {
			t.Errorf("%s: %v, missing %s from %v", name, err, refused.Missing, s.reservedFrom)
		}
	}
}

// TestFeesAreTheHousesToPay: nothing is signed whose fee could use coins of the wallet's owner, and the error has the amount
// that the house must add.
func TestFeesAreTheHousesToPay(t *testing.T) {
	v := localVault(t)
	for share, missing := range map[string]string{"0.002": "", "3": "", "0.0015": "0.0005", "0": "0.002", "-0.001": "0.003"} {
		s, d := numberedRecords(t, v), &counter{latest: 4}
		s.share = money.Must(money.ETH, share)
		_, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID)
		refused, ok := errors.AsType[*chain.Error](err)
		if ok != (missing != "") || (err != nil) != ok || s.saved == 1 == ok {
			t.Errorf("%s: %v, %d saved", share, err, s.saved)
			continue
		}
		if ok && (refused.Reason != chain.ReasonGas || !refused.Missing.Equal(money.Must(money.ETH, missing))) {
			t.Errorf("%s: %v, missing %s", share, err, refused.Missing)
		}
	}
	// A higher bid is bounded like the first one.
	s, d := numberedRecords(t, v), &counter{latest: 4}
	signer := sequencedSigner(t, v, s, d)
	a, err := signer.SignPayment(t.Context(), s.payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.payment.Status, s.share = exchange.ChainBroadcast, money.Must(money.ETH, "0.0019")
	if _, err := signer.BumpPaymentFee(t.Context(), s.payment.ID, a.N); chain.ReasonOf(err) != chain.ReasonGas || s.saved != 1 {
		t.Errorf("the replacement: %v, %d saved", err, s.saved)
	}
}

// TestOneTopUpBringsAll: what a driver calls missing counts coins of the wallet's owner, which pay no fee.
func TestOneTopUpBringsAll(t *testing.T) {
	v := localVault(t)
	trx := func(s string) money.Amount { return money.Must(money.TRX, s) }
	for name, c := range map[string]struct{ cost, share, missing, want string }{
		"the owner's coins are there": {cost: "5", share: "0", missing: "2", want: "5"},
		"the house's coins are there": {cost: "5", share: "3", missing: "2", want: "2"},
		"the house owes some":         {cost: "5", share: "-1", missing: "5", want: "6"},
		"a wallet of the house":       {cost: "5", missing: "2", want: "2"},
		"a driver that does not know": {share: "0", missing: "2", want: "2"},
	} {
		s := approved(t, v)
		short := &chain.Error{Reason: chain.ReasonGas, Detail: "no TRX", Missing: trx(c.missing)}
		if c.cost != "" {
			short.Cost = trx(c.cost)
		}
		if c.share != "" {
			s.share = trx(c.share)
		}
		_, err := signer(t, v, s, &driver{prepareErr: short}).SignPayment(t.Context(), s.payment.ID)
		refused, ok := errors.AsType[*chain.Error](err)
		if !ok || refused.Reason != chain.ReasonGas || !refused.Missing.Equal(trx(c.want)) || s.saved != 0 {
			t.Errorf("%s: %v, missing %s", name, err, refused.Missing)
		}
	}
}

// TestFeesOfTheDay signs nothing beyond the house's budget, except a replacement with a higher fee.
func TestFeesOfTheDay(t *testing.T) {
	v := localVault(t)
	for budget, refused := range map[string]bool{"0.002": false, "0.0019": true, "-1": true} {
		s, d := numberedRecords(t, v), &counter{latest: 4}
		s.budget = money.Must(money.ETH, budget)
		_, err := sequencedSigner(t, v, s, d).SignPayment(t.Context(), s.payment.ID)
		if (chain.ReasonOf(err) == chain.ReasonBudget) != refused || (err != nil) != refused || s.saved == 1 == refused {
			t.Errorf("%s: %v, %d saved", budget, err, s.saved)
		}
	}
	s, d := numberedRecords(t, v), &counter{latest: 4}
	signer := sequencedSigner(t, v, s, d)
	a, err := signer.SignPayment(t.Context(), s.payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.payment.Status, s.budget = exchange.ChainBroadcast, money.Must(money.ETH, "-1")
	if _, err := signer.BumpPaymentFee(t.Context(), s.payment.ID, a.N); err != nil || s.saved != 2 {
		t.Errorf("the replacement: %v, %d saved", err, s.saved)
	}
}

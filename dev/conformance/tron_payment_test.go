package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/chain/tron"
	node "kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// book is the signer's store, in memory, with the rules that the database enforces: one live transaction for a
// payment, and unique transaction ids.
type book struct {
	mu       sync.Mutex
	payment  exchange.ChainPayment
	sealed   []keys.Sealed
	attempts []exchange.ChainAttempt
}

func (b *book) PaymentForSigning(context.Context, uuid.UUID) (exchange.ChainPayment, []keys.Sealed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.payment, b.sealed, nil
}

// NonceSequence is not called where accounts have no nonces.
func (b *book) NonceSequence(context.Context, uuid.UUID) (exchange.NonceSequence, bool, error) {
	return exchange.NonceSequence{}, false, errors.New("no sequence")
}

// NonceReserve is not called either.
func (b *book) NonceReserve(context.Context, uuid.UUID, exchange.Network, uint64) (money.Amount, error) {
	return money.Amount{}, nil
}

// HouseGas sets no limit.
func (b *book) HouseGas(context.Context, exchange.ChainPayment) (money.Amount, bool, error) {
	return money.Amount{}, false, nil
}

// MultisigAccountByID is not called: no payment here opens an account.
func (b *book) MultisigAccountByID(context.Context, uuid.UUID) (exchange.MultisigAccount, error) {
	return exchange.MultisigAccount{}, errors.New("no account")
}

// FeesLeft sets no budget.
func (b *book) FeesLeft(context.Context, exchange.ChainPayment) (money.Amount, bool, error) {
	return money.Amount{}, false, nil
}

// SaveReplacement is not called.
func (b *book) SaveReplacement(context.Context, uuid.UUID, exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{}, errors.New("no replacement")
}

func (b *book) LiveAttempt(context.Context, uuid.UUID) (exchange.ChainAttempt, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.attempts {
		if a.Alive() {
			return a, true, nil
		}
	}
	return exchange.ChainAttempt{}, false, nil
}

func (b *book) SaveSignedAttempt(_ context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, old := range b.attempts {
		if old.Alive() {
			return old, nil
		}
		if old.TxID == a.TxID {
			return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeConflict, "transaction id exists")
		}
	}
	a.N = len(b.attempts) + 1
	b.attempts = append(b.attempts, a)
	b.payment.Status = exchange.ChainSigned
	return a, nil
}

// conclude ends the live transaction; after an expired one the payment may be signed again.
func (b *book) conclude(s exchange.ChainAttemptStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts[len(b.attempts)-1].Status = s
	if s == exchange.TxExpired {
		b.payment.Status = exchange.ChainApproved
	}
}

// payment puts an approved payment of USDT from a sealed wallet with funds into a book.
func (h *tronHarness) payment(t testing.TB, amount money.Amount) (*book, *keys.PaymentSigner, chain.Transfer) {
	t.Helper()
	vault, err := keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	wallet := keys.Ref{WalletID: uuid.New(), Network: exchange.Tron}
	sealed, err := vault.Create(t.Context(), wallet)
	if err != nil {
		t.Fatal(err)
	}
	from, err := h.client.Address(sealed.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	h.Fund(t, from, h.Gas())
	h.Fund(t, from, money.FromUnits(amount.Asset(), amount.Units().Lsh(amount.Units(), 3))) // enough to pay it eight times
	p := exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForOrder, ObjectID: uuid.New(), Network: exchange.Tron, Amount: amount,
		WalletID: wallet.WalletID, FromAddress: from, ToAddress: h.NewAccount(t).Address,
		Status: exchange.ChainApproved, ApprovedBy: "policy",
	}
	p.IntentHash = p.Intent()
	b := &book{payment: p, sealed: []keys.Sealed{sealed}}
	signer, err := keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: b, Vault: vault, Clients: map[exchange.Network]chain.Client{exchange.Tron: h.client},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, signer, chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: amount}
}

func TestTronPaymentIsMadeOnce(t *testing.T) {
	t.Parallel()
	const timeout = 200
	paidOnce(t, timeout, func() mischievous { return startTron(t, money.USDT) })
}

func (h *tronHarness) calm() { h.node.ResetFaults() }

// trouble makes one thing go wrong, or lets time pass.
func (h *tronHarness) trouble(t *testing.T, random *rand.Rand) {
	t.Helper()
	switch random.IntN(9) {
	case 0:
		h.DropNext(t)
	case 1:
		h.LoseNextAnswer(t)
	case 2:
		h.BusyNext(t)
	case 3:
		h.faults(t, node.Faults{HoldBlocks: 4})
	case 4:
		h.AdvanceTime(t, time.Duration(random.Int64N(int64(tronLife))))
		h.Mine(t, 1)
	case 5, 6:
		if h.node.Head().Number > h.node.Solid().Number+3 {
			h.Reorganise(t, 1+random.IntN(3), random.IntN(2) == 0)
		}
	case 7:
		h.Finalise(t)
	case 8:
		h.Mine(t, 1+random.IntN(3))
	}
}

func TestTronSignerRebuildsOnlyAfterExpiry(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	b, signer, want := h.payment(t, money.Must(money.USDT, "5"))
	first, err := signer.SignPayment(t.Context(), b.payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := signer.SignPayment(t.Context(), b.payment.ID); err != nil || again.TxID != first.TxID {
		t.Errorf("signed again as %s, %v", again.TxID, err)
	}
	h.AdvanceTime(t, 2*tronLife)
	h.Mine(t, 1)
	h.Finalise(t)
	f, err := chain.Inquire(t.Context(), h.client, first, want)
	if err != nil || chain.Judge(f) != chain.VerdictRebuild {
		t.Fatalf("%+v, %v", f, err)
	}
	b.conclude(exchange.TxExpired)
	second, err := signer.SignPayment(t.Context(), b.payment.ID)
	if err != nil || second.TxID == first.TxID || second.N != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
}

func TestTronActivation(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	from, to := h.NewAccount(t), h.NewAccount(t)
	amount := money.Must(money.TRX, "10")
	h.Fund(t, from.Address, amount.Add(money.Must(money.TRX, "1.099999")))
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	_, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: want})
	if e, ok := errors.AsType[*chain.Error](err); !ok || e.Reason != chain.ReasonGas || !e.Missing.Equal(money.Must(money.TRX, "0.000001")) {
		t.Fatalf("with one sun too few: %v", err)
	}
	h.Fund(t, from.Address, money.Must(money.TRX, "0.000001"))
	l := h.send(t, want, from.Key, chain.VerdictSucceeded)
	if !l.Fee.Equal(money.Must(money.TRX, "1.1")) {
		t.Errorf("activating costs %s", l.Fee)
	}
	_, err = h.client.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: to.Address, To: node.USDCAddress, Amount: money.Must(money.TRX, "1")}})
	if chain.ReasonOf(err) != chain.ReasonAddress {
		t.Errorf("TRX to a contract: %v", err)
	}
}

// send carries a payment to its end, which must be the given verdict.
func (h *tronHarness) send(t *testing.T, want chain.Transfer, key chain.Key, end chain.Verdict) chain.Location {
	t.Helper()
	u, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: want})
	if err != nil {
		t.Fatal(err)
	}
	return h.finish(t, want, u, key, end)
}

func (h *tronHarness) finish(t *testing.T, want chain.Transfer, u chain.Unsigned, key chain.Key, end chain.Verdict) chain.Location {
	t.Helper()
	signed, err := h.client.Sign(u, key)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.client.Broadcast(t.Context(), signed.Raw); err != nil || r.State != chain.BroadcastAccepted {
		t.Fatalf("%+v, %v", r, err)
	}
	h.Mine(t, 1)
	h.Finalise(t)
	f, err := chain.Inquire(t.Context(), h.client, exchange.ChainAttempt{TxID: signed.TxID, ExpiresAt: signed.ExpiresAt}, want)
	if err != nil {
		t.Fatal(err)
	}
	if v := chain.Judge(f); v != end {
		t.Fatalf("the verdict is %s, want %s: %+v", v, end, f)
	}
	return f.Location
}

// The energy price of a busy contract rises by its dynamic factor. The limit follows the simulation. When the price
// rises above the limit after signing, the transaction burns the limit and moves no tokens.
func TestTronEnergyFactor(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	from, to := h.NewAccount(t), h.NewAccount(t)
	amount := money.Must(money.USDT, "1")
	h.Fund(t, from.Address, h.Gas())
	h.Fund(t, from.Address, money.Must(money.USDT, "100"))
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: amount}
	cheap, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: want})
	if err != nil {
		t.Fatal(err)
	}
	factor := func(n int64) {
		t.Helper()
		if err := h.node.SetEnergyFactor(tronAddress(t, node.USDTAddress), n); err != nil {
			t.Fatal(err)
		}
	}
	factor(100_000)
	dear, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: want})
	if err != nil {
		t.Fatal(err)
	}
	if cheap.FeeLimit.Cmp(dear.FeeLimit) >= 0 {
		t.Errorf("the limit is %s at factor 1 and %s at factor 11", cheap.FeeLimit, dear.FeeLimit)
	}
	l := h.finish(t, want, cheap, from.Key, chain.VerdictFailed)
	if l.Code != core.Transaction_Result_OUT_OF_ENERGY.String() || l.Fee.Cmp(cheap.FeeLimit) > 0 || l.Fee.Cmp(money.Must(money.TRX, "2")) < 0 {
		t.Errorf("%s for %s of at most %s", l.Code, l.Fee, cheap.FeeLimit)
	}
	h.finish(t, want, dear, from.Key, chain.VerdictSucceeded)
}

func TestTronFeeCap(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	c := h.driverConfig()
	c.Fees = tron.FeeRule{Floor: money.Must(money.TRX, "1"), Cap: money.Must(money.TRX, "1.5")}
	capped, err := tron.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer capped.Close()
	from := h.NewAccount(t)
	h.Fund(t, from.Address, h.Gas())
	h.Fund(t, from.Address, money.Must(money.USDT, "100"))
	_, err = capped.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: from.Address, To: h.NewAccount(t).Address, Amount: money.Must(money.USDT, "1")}})
	if chain.ReasonOf(err) != chain.ReasonFeeTooHigh {
		t.Errorf("%v", err)
	}
}

// With a dead node before the live one in both lists, nothing is missed.
func TestTronFailover(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	c := h.driverConfig()
	dead := tron.Endpoint{Address: "127.0.0.1:1"}
	c.FullNodes = append([]tron.Endpoint{dead}, c.FullNodes...)
	c.SolidityNodes = append([]tron.Endpoint{dead}, c.SolidityNodes...)
	both, err := tron.New(c)
	if err != nil {
		t.Fatal(err)
	}
	h.client.Close()
	h.client = both
	from := h.NewAccount(t)
	h.Fund(t, from.Address, h.Gas())
	h.Fund(t, from.Address, money.Must(money.USDT, "100"))
	h.send(t, chain.Transfer{From: from.Address, To: h.NewAccount(t).Address, Amount: money.Must(money.USDT, "1")}, from.Key, chain.VerdictSucceeded)
}

func BenchmarkTronPayment(b *testing.B) {
	h := startTron(b, money.USDT)
	from, to := h.NewAccount(b), h.NewAccount(b)
	h.Fund(b, from.Address, money.Must(money.TRX, "1000000"))
	h.Fund(b, from.Address, money.Must(money.USDT, "1000000"))
	want := chain.Transfer{From: from.Address, To: to.Address, Amount: money.Must(money.USDT, "0.000001")}
	for b.Loop() {
		u, err := h.client.Prepare(b.Context(), chain.Draft{Transfer: want})
		if err != nil {
			b.Fatal(err)
		}
		signed, err := h.client.Sign(u, from.Key)
		if err != nil {
			b.Fatal(err)
		}
		if r, err := h.client.Broadcast(b.Context(), signed.Raw); err != nil || r.State != chain.BroadcastAccepted {
			b.Fatal(fmt.Errorf("%+v %w", r, err))
		}
	}
}

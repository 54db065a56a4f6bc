package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// driver is a chain client that builds transactions as text. Only the methods that the signer uses exist.
type driver struct {
	chain.Client
	stamps     atomic.Int64
	prepareErr error
	change     func(*chain.Unsigned)
	signatures atomic.Int64
	twice      bool
}

func (d *driver) Network() exchange.Network { return exchange.Tron }

func (d *driver) Address(public []byte) (string, error) {
	key, err := crypto.UnmarshalPubkey(public)
	if err != nil {
		return "", err
	}
	return crypto.PubkeyToAddress(*key).Hex(), nil
}

func (d *driver) Prepare(_ context.Context, draft chain.Draft) (chain.Unsigned, error) {
	t := draft.Transfer
	if d.prepareErr != nil {
		return chain.Unsigned{}, d.prepareErr
	}
	body := fmt.Sprintf("%s>%s:%s@%d", t.From, t.To, t.Amount, d.stamps.Add(1))
	digest := sha256.Sum256([]byte(body))
	u := chain.Unsigned{Transfer: t, Payload: digest[:], Body: []byte(body), ExpiresAt: time.Unix(1000, 0), Seed: draft.Seed, Owners: draft.Owners}
	if d.change != nil {
		d.change(&u)
	}
	return u, nil
}

func (d *driver) Traits() chain.Traits { return chain.Traits{} }

func (d *driver) Sign(u chain.Unsigned, keys ...chain.Key) (chain.Signed, error) {
	key := keys[0]
	signature, err := key.Sign(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	d.signatures.Add(1)
	if d.twice {
		if _, err := key.Sign(u.Payload); err != nil {
			return chain.Signed{}, err
		}
	}
	return chain.Signed{Unsigned: u, TxID: fmt.Sprintf("%x", u.Payload), Raw: append(u.Body, signature...)}, nil
}

// records is a store in memory with the rules of the real one.
type records struct {
	mu       sync.Mutex
	payment  exchange.ChainPayment
	sealed   []Sealed
	live     *exchange.ChainAttempt
	sequence *exchange.NonceSequence
	reserve  money.Amount
	budget   money.Amount // what the house has left; unlimited without an asset
	share    money.Amount // the house's share of the wallet; unlimited without an asset

	account exchange.MultisigAccount // that the payment opens

	reservedFrom []uint64
	saved        int
	fail         []error // for the next saves
	hide         bool    // LiveAttempt misses what a concurrent signer has stored
}

func (s *records) PaymentForSigning(context.Context, uuid.UUID) (exchange.ChainPayment, []Sealed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payment, s.sealed, nil
}

func (s *records) LiveAttempt(context.Context, uuid.UUID) (exchange.ChainAttempt, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil || s.hide {
		return exchange.ChainAttempt{}, false, nil
	}
	return *s.live, true, nil
}

func (s *records) SaveSignedAttempt(_ context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fail) > 0 {
		err := s.fail[0]
		s.fail = s.fail[1:]
		return exchange.ChainAttempt{}, err
	}
	if s.live == nil {
		a.N = 1
		s.live = &a
		s.saved++
	}
	return *s.live, nil
}

func (s *records) NonceSequence(context.Context, uuid.UUID) (exchange.NonceSequence, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sequence == nil {
		return exchange.NonceSequence{}, false, nil
	}
	return *s.sequence, true, nil
}

func (s *records) NonceReserve(_ context.Context, _ uuid.UUID, n exchange.Network, from uint64) (money.Amount, error) {
	s.reservedFrom = append(s.reservedFrom, from)
	if s.reserve.Asset() == "" {
		return money.Zero(n.NativeCoin()), nil
	}
	return s.reserve, nil
}

func (s *records) HouseGas(context.Context, exchange.ChainPayment) (money.Amount, bool, error) {
	return s.share, s.share.Asset() != "", nil
}

func (s *records) FeesLeft(context.Context, exchange.ChainPayment) (money.Amount, bool, error) {
	return s.budget, s.budget.Asset() != "", nil
}

func (s *records) MultisigAccountByID(context.Context, uuid.UUID) (exchange.MultisigAccount, error) {
	return s.account, nil
}

func (s *records) SaveReplacement(_ context.Context, bumps uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live.ID == bumps {
		a.N = s.live.N + 1
		s.live = &a
		s.saved++
	}
	return *s.live, nil
}

func approved(t testing.TB, v *Vault) *records {
	t.Helper()
	wallet := ref(exchange.Tron)
	sealed, err := v.Create(t.Context(), wallet)
	if err != nil {
		t.Fatal(err)
	}
	from, err := (&driver{}).Address(sealed.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	p := exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForOrder, ObjectID: uuid.New(), Network: exchange.Tron,
		Amount: money.Must(money.USDT, "10"), WalletID: wallet.WalletID, FromAddress: from, ToAddress: "recipient",
		Status: exchange.ChainApproved, ApprovedBy: "policy",
	}
	p.IntentHash = p.Intent()
	return &records{payment: p, sealed: []Sealed{sealed}}
}

func signer(t testing.TB, v *Vault, s PaymentStore, d *driver) *PaymentSigner {
	t.Helper()
	ps, err := NewPaymentSigner(PaymentSignerConfig{
		Store: s, Vault: v, Clients: map[exchange.Network]chain.Client{exchange.Tron: d},
		Ceilings: map[money.Asset]money.Amount{money.USDT: money.Must(money.USDT, "1000")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

func TestSignPaymentOnce(t *testing.T) {
	v, d := localVault(t), &driver{}
	s := approved(t, v)
	ps := signer(t, v, s, d)
	first, err := ps.SignPayment(t.Context(), s.payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	if s.saved != 1 || first.Status != exchange.TxSigned || first.PaymentID != s.payment.ID || first.TxID == "" || len(first.Raw) == 0 || first.ExpiresAt.IsZero() {
		t.Errorf("saved %d: %+v", s.saved, first)
	}
	s.payment.Status = exchange.ChainSigned
	again, err := ps.SignPayment(t.Context(), s.payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	if again.TxID != first.TxID || d.signatures.Load() != 1 {
		t.Errorf("%d signatures; second call gave %s, first %s", d.signatures.Load(), again.TxID, first.TxID)
	}
}

func TestConcurrentSignersAgree(t *testing.T) {
	v, d := localVault(t), &driver{}
	s := approved(t, v)
	s.hide = true
	ps := signer(t, v, s, d)
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			a, err := ps.SignPayment(context.Background(), s.payment.ID)
			if err != nil {
				t.Error(err)
			}
			ids[i] = a.TxID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("signers returned different transactions: %v", ids)
		}
	}
	if s.saved != 1 {
		t.Errorf("%d transactions were stored", s.saved)
	}
}

func TestSignPaymentRefuses(t *testing.T) {
	v := localVault(t)
	for name, c := range map[string]struct {
		change func(*records)
		code   exchange.Code
	}{
		"a signed payment without a transaction": {func(s *records) { s.payment.Status = exchange.ChainSigned }, exchange.CodeStateConflict},
		"a parked payment":                       {func(s *records) { s.payment.Status = exchange.ChainParked }, exchange.CodeStateConflict},
		"a cancelled payment":                    {func(s *records) { s.payment.Status = exchange.ChainCancelled }, exchange.CodeStateConflict},
		"a changed amount":                       {func(s *records) { s.payment.Amount = money.Must(money.USDT, "11") }, exchange.CodeStateConflict},
		"a changed recipient":                    {func(s *records) { s.payment.ToAddress = "thief" }, exchange.CodeStateConflict},
		"no hash":                                {func(s *records) { s.payment.IntentHash = "" }, exchange.CodeStateConflict},
		"no approver":                            {func(s *records) { s.payment.ApprovedBy = "" }, exchange.CodeStateConflict},
		"another payment":                        {func(s *records) { s.payment.ID = uuid.New() }, exchange.CodeInternal},
		"a network without a client": {func(s *records) {
			s.payment.Network = exchange.Ethereum
			s.payment.IntentHash = s.payment.Intent()
		}, exchange.CodeUnsupported},
		"a sender that is not the key's": {func(s *records) {
			s.payment.FromAddress = "somebody"
			s.payment.IntentHash = s.payment.Intent()
		}, exchange.CodeStateConflict},
		"an amount above the ceiling": {func(s *records) {
			s.payment.Amount = money.Must(money.USDT, "1000.000001")
			s.payment.IntentHash = s.payment.Intent()
		}, exchange.CodeForbidden},
		"nothing": {func(s *records) {
			s.payment.Amount = money.Zero(money.USDT)
			s.payment.IntentHash = s.payment.Intent()
		}, exchange.CodeInvalid},
		"a live transaction of another payment": {func(s *records) {
			s.live = &exchange.ChainAttempt{PaymentID: uuid.New(), TxID: "x", Raw: []byte{1}}
		}, exchange.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := approved(t, v), &driver{}
			id := s.payment.ID
			c.change(s)
			_, err := signer(t, v, s, d).SignPayment(t.Context(), id)
			if exchange.CodeOf(err) != c.code || d.signatures.Load() != 0 || s.saved != 0 {
				t.Errorf("%v; %d signatures, %d saved", err, d.signatures.Load(), s.saved)
			}
		})
	}
}

func TestWalletKeyOfAnotherWalletDoesNotSign(t *testing.T) {
	v, d := localVault(t), &driver{}
	s := approved(t, v)
	s.payment.WalletID = uuid.New()
	s.payment.IntentHash = s.payment.Intent()
	if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); !errors.Is(err, ErrOpen) || d.signatures.Load() != 0 {
		t.Errorf("%v", err)
	}
}

// A wallet's counterpart on the other network signs with the wallet's own key, which opens for the wallet alone, and with no
// other account's key.
func TestCounterpartSignsWithItsOwnKey(t *testing.T) {
	v, d := localVault(t), &driver{}
	of := ref(exchange.Ethereum)
	sealed, err := v.Create(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	s := approved(t, v)
	counterpart := func(key Sealed) {
		s.sealed = []Sealed{key}
		if s.payment.FromAddress, err = d.Address(sealed.PublicKey); err != nil {
			t.Fatal(err)
		}
		s.payment.IntentHash = s.payment.Intent()
	}
	refused := func(what string, want error) {
		t.Helper()
		if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err == nil || (want != nil && !errors.Is(err, want)) || d.signatures.Load() != 0 {
			t.Errorf("%s: %v with %d signatures", what, err, d.signatures.Load())
		}
	}
	counterpart(sealed)
	refused("a key of another network", ErrOpen)
	sealed.For = ref(exchange.Tron)
	counterpart(sealed)
	refused("a key of another wallet", ErrOpen)
	stranger, err := v.Create(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	stranger.For = of
	counterpart(stranger)
	refused("another key of the wallet", nil)
	sealed.For = of
	counterpart(sealed)
	if a, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err != nil || len(a.Raw) == 0 || d.signatures.Load() != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestDriverThatPreparesAnotherTransferIsRefused(t *testing.T) {
	v := localVault(t)
	for name, change := range map[string]func(*chain.Unsigned){
		"recipient": func(u *chain.Unsigned) { u.Transfer.To = "thief" },
		"sender":    func(u *chain.Unsigned) { u.Transfer.From = "other" },
		"amount":    func(u *chain.Unsigned) { u.Transfer.Amount = money.Must(money.USDT, "11") },
		"asset":     func(u *chain.Unsigned) { u.Transfer.Amount = money.Must(money.USDC, "10") },
	} {
		s, d := approved(t, v), &driver{change: change}
		if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err == nil || d.signatures.Load() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDriverSignsOnlyOnce(t *testing.T) {
	v := localVault(t)
	s, d := approved(t, v), &driver{twice: true}
	if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err == nil || !strings.Contains(err.Error(), "once") || s.saved != 0 {
		t.Errorf("%v", err)
	}
}

func TestTransactionIDTaken(t *testing.T) {
	v := localVault(t)
	taken := exchange.Errorf(exchange.CodeConflict, "txid exists")
	s, d := approved(t, v), &driver{}
	s.fail = []error{taken, taken}
	a, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID)
	if err != nil || d.signatures.Load() != 3 || s.saved != 1 || a.TxID != s.live.TxID {
		t.Errorf("%v; %d signatures, %d saved", err, d.signatures.Load(), s.saved)
	}
	s, d = approved(t, v), &driver{}
	for range 2 * maxPrepares {
		s.fail = append(s.fail, taken)
	}
	if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); exchange.CodeOf(err) != exchange.CodeConflict || d.signatures.Load() != maxPrepares {
		t.Errorf("without end: %v after %d", err, d.signatures.Load())
	}
}

func TestNothingComesBackUnstored(t *testing.T) {
	v := localVault(t)
	s, d := approved(t, v), &driver{}
	down := errors.New("the database went away")
	s.fail = []error{down}
	a, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID)
	if !errors.Is(err, down) || a.TxID != "" || len(a.Raw) != 0 {
		t.Errorf("%v %+v", err, a)
	}
	d.prepareErr = chain.Errorf(chain.ReasonGas, "no TRX")
	if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); chain.ReasonOf(err) != chain.ReasonGas {
		t.Errorf("the driver's reason is lost: %v", err)
	}
}

func TestNewPaymentSignerChecksItsParts(t *testing.T) {
	v, d := localVault(t), &driver{}
	clients := map[exchange.Network]chain.Client{exchange.Tron: d}
	for name, c := range map[string]PaymentSignerConfig{
		"no store":      {Vault: v, Clients: clients},
		"no vault":      {Store: &records{}, Clients: clients},
		"no network":    {Store: &records{}, Vault: v},
		"mixed network": {Store: &records{}, Vault: v, Clients: map[exchange.Network]chain.Client{exchange.Solana: d}},
		"nil client":    {Store: &records{}, Vault: v, Clients: map[exchange.Network]chain.Client{exchange.Tron: nil}},
		"ceiling":       {Store: &records{}, Vault: v, Clients: clients, Ceilings: map[money.Asset]money.Amount{money.USDT: money.Must(money.USDC, "1")}},
	} {
		if _, err := NewPaymentSigner(c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

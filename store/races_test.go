package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// atOnce runs fn n times concurrently and counts the outcomes by code.
func atOnce(n int, fn func(i int) error) map[exchange.Code]int {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	codes := map[exchange.Code]int{}
	for _, err := range errs {
		codes[exchange.CodeOf(err)]++
	}
	return codes
}

// Two processes that accept one receipt book it once. Each store has its own writer.
func TestRaceOneReceiptIsBookedOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	stores := []*store.Store{storetest.Open(t, url, store.Options{}), storetest.Open(t, url, store.Options{})}
	m := storetest.NewMarket(t, stores[0])
	o := m.Order(t, stores[0], "10")
	a := storetest.Attempt(t, stores[0], o)
	obs := storetest.Paid(t, o.Price.Fiat)
	kinds := make([]exchange.PaymentKind, 16)
	codes := atOnce(len(kinds), func(i int) error {
		out, err := stores[i%2].AcceptPayment(t.Context(), a.ID, obs, time.Time{})
		kinds[i] = out.Kind
		return err
	})
	exact := 0
	for _, k := range kinds {
		if k == exchange.PaidExact {
			exact++
		}
	}
	if exact != 1 || codes[""] != len(kinds) {
		t.Errorf("%d bookings, outcomes %v", exact, codes)
	}
	wantBalance(t, stores[0], exchange.House(exchange.AccMomoCollection, money.KES), "1295", "0")
	wantBooks(t, stores[0])
}

// A receipt claimed for two attempts belongs to the first.
func TestRaceOneReceiptForTwoOrders(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	var attempts []exchange.PaymentAttempt
	for range 4 {
		attempts = append(attempts, storetest.Attempt(t, s, m.Order(t, s, "10")))
	}
	obs := storetest.Paid(t, kes("1295"))
	codes := atOnce(len(attempts), func(i int) error {
		_, err := s.AcceptPayment(t.Context(), attempts[i].ID, obs, time.Time{})
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeConflict] != 3 {
		t.Errorf("outcomes %v", codes)
	}
	wantBalance(t, s, exchange.House(exchange.AccOrdersInFlight, money.KES), "1295", "0")
	wantBooks(t, s)
}

func TestRaceOneRequestOpensOneOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	r := exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("100")}
	codes := atOnce(16, func(int) error {
		_, err := storetest.OpenOrder(t.Context(), s, r, storetest.PrincipalOf(m.Customer))
		return err
	})
	offer, err := s.Offer(t.Context(), store.Everything(), m.Offer.ID)
	if codes[""] != 16 || err != nil || offer.Available.String() != "900.000000" {
		t.Errorf("outcomes %v, the offer has %s left, %v", codes, offer.Available, err)
	}
	wantBooks(t, s)
}

// Orders of 100 against an offer of 1000: ten succeed, in whatever order and process they come.
func TestRaceOffersAreNeverOversold(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	stores := []*store.Store{storetest.Open(t, url, store.Options{}), storetest.Open(t, url, store.Options{})}
	m := storetest.NewMarket(t, stores[0])
	codes := atOnce(24, func(i int) error {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		_, err = storetest.OpenOrder(t.Context(), stores[i%2], exchange.OrderRequest{
			ID: id, CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("100"),
		}, storetest.PrincipalOf(m.Customer))
		return err
	})
	if codes[""] != 10 || codes[exchange.CodeInsufficientOffer] != 14 {
		t.Errorf("outcomes %v", codes)
	}
	offer, err := stores[0].Offer(t.Context(), store.Everything(), m.Offer.ID)
	if err != nil || !offer.Available.IsZero() || offer.Status != exchange.OfferExhausted {
		t.Errorf("the offer is %s with %s left, %v", offer.Status, offer.Available, err)
	}
	wantBooks(t, stores[0])
}

func TestRaceOneFinalTransferIsCapturedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	tx := sign(t, s, p)
	codes := atOnce(16, func(int) error {
		_, err := s.RecordFinal(t.Context(), tx.ID, true, 7, "aa", trx("1"), "SUCCESS")
		return err
	})
	completed := atOnce(16, func(int) error { _, err := s.CompleteOrder(t.Context(), o.ID); return err })
	if codes[""] != 16 || completed[""] != 16 {
		t.Errorf("outcomes %v and %v", codes, completed)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, m.VendorWallet.ID, money.USDT), "1490", "990")
	wantBalance(t, s, exchange.Owned(exchange.AccFiatBalance, m.Vendor.ID, money.KES), "1295", "0")
	wantBooks(t, s)
}

// Cancelling and paying race: whichever wins, the money is accounted for.
func TestRaceCancelAgainstPayment(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	for i := range 8 {
		o := m.Order(t, s, "5")
		a := storetest.Attempt(t, s, o)
		obs := storetest.Paid(t, o.Price.Fiat)
		var out exchange.PaymentOutcome
		codes := atOnce(2, func(j int) error {
			var err error
			if (i+j)%2 == 0 {
				out, err = s.AcceptPayment(t.Context(), a.ID, obs, time.Time{})
				return err
			}
			_, err = s.CloseOrder(t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{})
			return err
		})
		after, err := s.Order(t.Context(), store.Everything(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		ok := (out.Kind == exchange.PaidExact && after.Status == exchange.OrderProcessing && codes[exchange.CodeStateConflict] == 1) ||
			(out.Kind == exchange.PaidLate && after.Status == exchange.OrderCancelled && codes[""] == 2)
		if !ok {
			t.Errorf("payment %s, order %s, outcomes %v", out.Kind, after.Status, codes)
		}
	}
	wantBooks(t, s)
}

func TestRaceRefreshHasOneWinner(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	u := storetest.User(t, s, exchange.RoleCustomer)
	now := time.Now().UTC().Truncate(time.Millisecond)
	first := store.Session{ID: storetest.NewID(t), FamilyID: storetest.NewID(t), UserID: u.ID, TokenHash: [32]byte{1}, Assurance: exchange.AssurancePIN, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	if err := s.CreateSession(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	codes := atOnce(100, func(i int) error {
		_, _, err := s.RotateSession(t.Context(), first, store.Session{ID: uuid.New(), TokenHash: [32]byte{2, byte(i)}})
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeUnauthenticated] != 99 {
		t.Errorf("outcomes %v", codes)
	}
	state, err := s.AuthState(t.Context(), u.ID, first.FamilyID)
	if err != nil || state.SessionLive {
		t.Errorf("the family is live after a token was used twice, %v", err)
	}
}

// A caller that gives up gets an error at once; its unit is done completely or not at all, and the same call returns
// the outcome.
func TestRaceCallersThatGiveUp(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	requests := make([]exchange.OrderRequest, 40)
	for i := range requests {
		requests[i] = exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10")}
	}
	codes := atOnce(len(requests), func(i int) error {
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
		} else {
			defer cancel()
		}
		_, err := storetest.OpenOrder(ctx, s, requests[i], storetest.PrincipalOf(m.Customer))
		cancel()
		return err
	})
	if codes[""]+codes[exchange.CodeUnavailable] != len(requests) || codes[""] < len(requests)/2 {
		t.Errorf("outcomes %v", codes)
	}
	for _, r := range requests {
		if _, err := storetest.OpenOrder(t.Context(), s, r, storetest.PrincipalOf(m.Customer)); err != nil {
			t.Fatal(err)
		}
	}
	offer, err := s.Offer(t.Context(), store.Everything(), m.Offer.ID)
	if err != nil || offer.Available.String() != "600.000000" {
		t.Errorf("the offer has %s left, %v", offer.Available, err)
	}
	wantBooks(t, s)
}

func TestRaceCloseAnswersEverybody(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, err := store.Open(t.Context(), storetest.WithRole(t, url), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wallet := storetest.NewID(t)
	storetest.Deposit(t, s, wallet, usdt("1000"))
	codes := atOnce(200, func(i int) error {
		if i == 100 {
			return s.Close()
		}
		return s.Post(context.Background(), spend(wallet, fmt.Sprintf("close:%d", i), "1"))
	})
	if codes[""]+codes[exchange.CodeUnavailable] != 200 {
		t.Errorf("outcomes %v", codes)
	}
	reader := storetest.Open(t, url, store.Options{})
	a, err := reader.Account(t.Context(), exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT))
	if left := fmt.Sprintf("%d.000000", 1000-(codes[""]-1)); err != nil || a.Posted.String() != left {
		t.Errorf("%s left after %d acknowledged postings, want %s, %v", a.Posted, codes[""]-1, left, errors.Unwrap(err))
	}
	wantBooks(t, reader)
}

// spend takes crypto out of a wallet.
func spend(wallet uuid.UUID, key, amount string) exchange.Posting {
	m := usdt(amount)
	return exchange.Posting{Entries: []exchange.Entry{{Key: key, Kind: "test.spend", Lines: []exchange.Line{
		exchange.Debit(exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT), m),
		exchange.Credit(exchange.Owned(exchange.AccCustody, wallet, money.USDT), m),
	}}}}
}

package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func usdc(s string) money.Amount { return money.Must(money.USDC, s) }

// swapDesk is a store in which a customer with 1,000 USDT swaps on TRON, out of a treasury with 500 USDC.
type swapDesk struct {
	s                *store.Store
	customer         exchange.User
	who              exchange.Principal
	wallet, treasury exchange.Wallet
	boss, one, two   exchange.Principal
}

func newSwapDesk(t *testing.T) *swapDesk {
	t.Helper()
	return swapDeskIn(t, storetest.New(t))
}

func swapDeskIn(t *testing.T, s *store.Store) *swapDesk {
	t.Helper()
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, r)) }
	b := &swapDesk{s: s, customer: storetest.User(t, s, exchange.RoleCustomer), boss: who(exchange.RoleAdmin), one: who(exchange.RoleTreasury), two: who(exchange.RoleTreasury)}
	b.who = storetest.PrincipalOf(b.customer)
	storetest.Patch(t, s, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {}, exchange.RoleVendor: {}, exchange.RoleSubvendor: {}}, Rules: rule("500000", "1000000"),
	})
	b.wallet, b.treasury = storetest.WalletOn(t, s, b.customer, exchange.Tron), storetest.TreasuryWallet(t, s, exchange.Tron)
	storetest.Deposit(t, s, b.wallet.ID, usdt("1000"))
	storetest.Deposit(t, s, b.treasury.ID, usdc("500"))
	storetest.Gas(t, s, b.wallet.ID, trx("100"))
	storetest.Gas(t, s, b.treasury.ID, trx("100"))
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(128), Ask: decimal.NewFromInt(130)})
	storetest.Rate(t, s, store.RateEntry{Base: money.USDC, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(129)})
	storetest.AgreeValuations(t, s)
	first := blockOf("a", 100)
	first.Time = time.Now()
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, first); err != nil {
		t.Fatal(err)
	}
	b.looks(t, "1 hour")
	return b
}

// looks has the watch look at the network, so and so long from now.
func (b *swapDesk) looks(t *testing.T, ahead string) {
	t.Helper()
	look(t, b.s, 100, testsBegan)
	storetest.Exec(t, b.s, `UPDATE deposit_looks SET looked_at = now() + interval '`+ahead+`'`)
}

func (b *swapDesk) asks(t *testing.T, given money.Amount) exchange.SwapQuoteRequest {
	t.Helper()
	return exchange.SwapQuoteRequest{ID: storetest.NewID(t), WalletID: b.wallet.ID, From: money.USDT, To: money.USDC, Amount: given}
}

func (b *swapDesk) quote(t *testing.T, given money.Amount) exchange.SwapQuote {
	t.Helper()
	q, err := b.s.OpenSwapQuote(t.Context(), b.asks(t, given), b.who)
	if err != nil {
		t.Fatalf("quote a swap: %v", err)
	}
	return q
}

func (b *swapDesk) open(t *testing.T, given money.Amount) exchange.Swap {
	t.Helper()
	o, err := storetest.OpenSwap(t.Context(), b.s, exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: b.quote(t, given).ID}, b.who)
	if err != nil {
		t.Fatalf("open a swap: %v", err)
	}
	return o
}

// readsOn has the watch read two more blocks, each of them three hours later than the one before.
func (b *swapDesk) readsOn(t *testing.T) {
	t.Helper()
	c, _, err := b.s.DepositCursor(t.Context(), exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		next := blockOf("a", c.Final.Number+1)
		next.Time = time.Now().Add(time.Duration(next.Number-100) * 3 * time.Hour)
		c = finalBlock(t, b.s, scanOf(next))
	}
	b.looks(t, "1 hour")
}

// is reads a swap, which must be in a status.
func (b *swapDesk) is(t *testing.T, o exchange.Swap, status exchange.SwapStatus, detail string) exchange.Swap {
	t.Helper()
	o, err := b.s.Swap(t.Context(), store.Everything(), o.ID)
	if err != nil || o.Status != status || o.StatusDetail != detail {
		t.Fatalf("the swap is %s (%s), want %s (%s); %v", o.Status, o.StatusDetail, status, detail, err)
	}
	return o
}

// wants compares what is posted and held of both assets in both wallets.
func (b *swapDesk) wants(t *testing.T, given, got, houseGiven, houseGot [2]string) {
	t.Helper()
	wantBalance(t, b.s, owed(b.wallet, money.USDT), given[0], given[1])
	wantBalance(t, b.s, owed(b.wallet, money.USDC), got[0], got[1])
	wantBalance(t, b.s, owed(b.treasury, money.USDT), houseGiven[0], houseGiven[1])
	wantBalance(t, b.s, owed(b.treasury, money.USDC), houseGot[0], houseGot[1])
	wantBooks(t, b.s)
}

// waits puts a swap into the past.
func (b *swapDesk) waits(t *testing.T, o exchange.Swap, minutes string) {
	t.Helper()
	storetest.Exec(t, b.s, `ALTER TABLE swaps DISABLE TRIGGER USER; UPDATE swaps SET created_at = created_at - interval '`+minutes+` minutes', expires_at = expires_at - interval '`+minutes+
		` minutes', collected_at = collected_at - interval '`+minutes+` minutes' WHERE id = '`+o.ID.String()+`'; ALTER TABLE swaps ENABLE TRIGGER USER`)
}

func sameSwap(a, b exchange.Swap) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version
}

// A quote has the cross of the two mids, less the spread and the fee of the closest profile, and is replayed.
func TestQuotesOfSwaps(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	profile := exchange.FeeProfile{ID: storetest.NewID(t), FeeLine: exchange.FeeLine{Scope: exchange.FeeSwap, Asset: money.USDC}, Fixed: usdc("0.1"), Minimum: usdc("0"), BasisPoints: 10, Spread: 50}
	if err := storetest.Agreed(t, b.s)(b.s.ProposeProfile(t.Context(), profile, b.boss)); err != nil {
		t.Fatal(err)
	}
	r := b.asks(t, usdt("100"))
	q := twice(t, func(a, b exchange.SwapQuote) bool { return a.ID == b.ID && a.Hash == b.Hash }, func() (exchange.SwapQuote, error) { return b.s.OpenSwapQuote(t.Context(), r, b.who) })
	if q.Price.Rate.String() != "0.995" || q.Price.From.String() != "100.000000" || q.Price.To.String() != "99.300500" || q.Price.Fee.String() != "0.199500" || q.Terms.Profile.ID != profile.ID {
		t.Errorf("priced as %+v by %+v", q.Price, q.Terms.Profile)
	}
	stored, err := b.s.SwapQuote(t.Context(), store.ViewOf(b.who, exchange.ActReadTransfers), q.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, off := stored.Replay(); len(off) != 0 {
		t.Errorf("replayed, %v differ", off)
	}
	back := b.quote(t, q.Price.To)
	if !back.Price.From.Equal(q.Price.From) || !back.Price.To.Equal(q.Price.To) || back.Terms.AmountSide() != exchange.AmountTo {
		t.Errorf("by what is got: %+v", back.Price)
	}
	if again, err := b.s.SwapQuote(t.Context(), store.Everything(), back.ID); err != nil || !again.Terms.Given.Equal(back.Terms.Given) {
		t.Errorf("read again: %+v, %v", again, err)
	}
}

// Who may not swap, what can't be swapped, and where.
func TestQuotesOfSwapsAreRefused(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	stranger := storetest.PrincipalOf(storetest.User(t, b.s, exchange.RoleCustomer))
	for name, c := range map[string]struct {
		change func(*exchange.SwapQuoteRequest)
		by     exchange.Principal
		want   exchange.Code
	}{
		"another's wallet":         {func(*exchange.SwapQuoteRequest) {}, stranger, exchange.CodeInvalid},
		"an admin":                 {func(*exchange.SwapQuoteRequest) {}, b.boss, exchange.CodeInvalid},
		"a treasury officer":       {func(*exchange.SwapQuoteRequest) {}, b.one, exchange.CodeInvalid},
		"the house's own wallet":   {func(r *exchange.SwapQuoteRequest) { r.WalletID = b.treasury.ID }, b.one, exchange.CodeInvalid},
		"more than the wallet has": {func(r *exchange.SwapQuoteRequest) { r.Amount = usdt("1000.01") }, b.who, exchange.CodeInsufficientFunds},
		"more than the house has":  {func(r *exchange.SwapQuoteRequest) { r.Amount = usdc("500.01") }, b.who, exchange.CodeInsufficientFunds},
		"shillings":                {func(r *exchange.SwapQuoteRequest) { r.To = money.KES }, b.who, exchange.CodeInvalid},
	} {
		r := b.asks(t, usdt("10"))
		c.change(&r)
		if _, err := b.s.OpenSwapQuote(t.Context(), r, c.by); exchange.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for range exchange.MaxActiveSwapQuotes {
		b.quote(t, usdt("1"))
	}
	_, err := b.s.OpenSwapQuote(t.Context(), b.asks(t, usdt("1")), b.who)
	wantFault(t, err, exchange.CodeLimitReached)
	storetest.Exec(t, b.s, `UPDATE wallets SET type = 'cold' WHERE id = $1`, b.wallet.ID)
	_, err = b.s.OpenSwapQuote(t.Context(), b.asks(t, usdt("1")), b.who)
	wantFault(t, err, exchange.CodeInvalid)
}

// USDC is not swapped on TRON unless that is switched on.
func TestUSDCOnTronIsSwitchedOn(t *testing.T) {
	t.Parallel()
	b := swapDeskIn(t, storetest.Open(t, storetest.URL(t), store.Options{Limits: store.Limits{CustomerOrders: 1}}))
	for _, c := range [][2]money.Asset{{money.USDT, money.USDC}, {money.USDC, money.USDT}} {
		r := b.asks(t, money.Must(c[0], "1"))
		r.From, r.To = c[0], c[1]
		_, err := b.s.OpenSwapQuote(t.Context(), r, b.who)
		if e, ok := err.(*exchange.Error); !ok || len(e.Fields) != 1 || e.Fields[0].Code != "unsupported_asset" { //nolint:errorlint // not wrapped
			t.Errorf("%s for %s: %v", c[0], c[1], err)
		}
	}
}

// A quote needs fresh rates that are near the values that two officers agreed.
func TestQuotesOfSwapsNeedFreshRates(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	storetest.Exec(t, b.s, `ALTER TABLE valuations DISABLE TRIGGER USER; UPDATE valuations SET agreed = agreed * 2 WHERE asset = 'USDC'; ALTER TABLE valuations ENABLE TRIGGER USER`)
	_, err := b.s.OpenSwapQuote(t.Context(), b.asks(t, usdt("1")), b.who)
	wantFault(t, err, exchange.CodeStateConflict)
	storetest.AgreeValuations(t, b.s)
	b.quote(t, usdt("1"))
	storetest.Exec(t, b.s, `ALTER TABLE fx_rates DISABLE TRIGGER USER; UPDATE fx_rates SET valid_from = valid_from - interval '1 day', created_at = created_at - interval '1 day', stale_at = stale_at - interval '1 day' WHERE base = 'USDC'; ALTER TABLE fx_rates ENABLE TRIGGER USER`)
	_, err = b.s.OpenSwapQuote(t.Context(), b.asks(t, usdt("1")), b.who)
	wantFault(t, err, exchange.CodeStateConflict)
}

// An opened swap holds both sides, and its quote is used.
func TestSwapsHoldBothSides(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	q := b.quote(t, usdt("100"))
	r := exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}
	a, err := storetest.Ask(t.Context(), b.s, exchange.IntendSwap, r.ID, r.ID, r.Terms(), b.who)
	if err != nil {
		t.Fatal(err)
	}
	o := twice(t, sameSwap, func() (exchange.Swap, error) { return b.s.OpenSwap(t.Context(), a) })
	if o.Status != exchange.SwapReserved || !o.From.Equal(q.Price.From) || !o.To.Equal(q.Price.To) || o.OwnerID != b.customer.ID || o.HouseWalletID != b.treasury.ID || o.Digest != o.Intent() {
		t.Errorf("opened as %+v", o)
	}
	b.wants(t, [2]string{"1000", "100"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "100"})
	_, err = storetest.OpenSwap(t.Context(), b.s, exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}, b.who)
	wantFault(t, err, exchange.CodeStateConflict)
	if used, err := b.s.SwapQuote(t.Context(), store.Everything(), q.ID); err != nil || used.SwapID != o.ID {
		t.Errorf("the quote is used by %s, %v", used.SwapID, err)
	}
	stranger := storetest.PrincipalOf(storetest.User(t, b.s, exchange.RoleCustomer))
	_, err = storetest.OpenSwap(t.Context(), b.s, exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: b.quote(t, usdt("1")).ID}, stranger)
	wantFault(t, err, exchange.CodeInvalid)
	for who, n := range map[exchange.Principal]int{b.who: 1, stranger: 0, b.one: 1} {
		_, total, err := b.s.Swaps(t.Context(), store.ViewOf(who, exchange.ActReadTransfers), store.SwapFilter{}, onePage)
		if err != nil || total != n {
			t.Errorf("the %s sees %d swaps, %v", who.Role, total, err)
		}
	}
	live, err := b.s.LiveRows(t.Context(), o.UpdatedAt.AddDate(0, 0, 1), exchange.LivePlace{}, 10)
	if err != nil || len(live) != 1 || live[0].Kind != exchange.LiveSwap || live[0].ObjectID != o.ID || live[0].IntentID != a.IntentID {
		t.Errorf("live are %+v, %v", live, err)
	}
}

// An expired quote opens nothing.
func TestExpiredQuotesOpenNoSwap(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	q := b.quote(t, usdt("1"))
	storetest.Exec(t, b.s, `ALTER TABLE swap_quotes DISABLE TRIGGER USER; UPDATE swap_quotes SET created_at = created_at - interval '1 minute', expires_at = expires_at - interval '1 minute';
		ALTER TABLE swap_quotes ENABLE TRIGGER USER`)
	_, err := storetest.OpenSwap(t.Context(), b.s, exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}, b.who)
	wantFault(t, err, exchange.CodeExpired)
}

// A swap counts against the limits of its owner until it moves nothing.
func TestSwapsCountAgainstLimits(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	storetest.Patch(t, b.s, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {PerDay: kes("20000")}}})
	o, q := b.open(t, usdt("100")), b.quote(t, usdt("100"))
	_, err := storetest.OpenSwap(t.Context(), b.s, exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}, b.who)
	wantFault(t, err, exchange.CodeLimitReached)
	if _, err := storetest.CancelSwap(t.Context(), b.s, o.ID, b.who); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.OpenSwap(t.Context(), b.s, exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}, b.who); err != nil {
		t.Error(err)
	}
}

// A swap ends while nothing is signed: given up by its owner, or when its time is over. All money is free.
func TestSwapsEndBeforeTheyAreSigned(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	given, late, gone := b.open(t, usdt("10")), b.open(t, usdt("20")), b.open(t, usdt("30"))
	if _, err := b.s.CollectSwap(ctx, given.ID); err != nil {
		t.Fatal(err)
	}
	twice(t, sameSwap, func() (exchange.Swap, error) { return storetest.CancelSwap(ctx, b.s, given.ID, b.who) })
	b.is(t, given, exchange.SwapCancelled, exchange.DetailBySender)
	if o, err := b.s.ExpireSwap(ctx, late.ID); err != nil || o.Status != exchange.SwapReserved {
		t.Errorf("before its time it is %s, %v", o.Status, err)
	}
	b.waits(t, late, "10")
	twice(t, sameSwap, func() (exchange.Swap, error) { return b.s.ExpireSwap(ctx, late.ID) })
	b.is(t, late, exchange.SwapExpired, exchange.DetailExpired)
	off := false
	if _, err := b.s.UpdateUser(ctx, b.customer.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	if out, err := b.s.CollectSwap(ctx, gone.ID); err != nil || out.Status != exchange.SwapCancelled || out.PaymentID != uuid.Nil {
		t.Errorf("of an account that is switched off it is %s, %v", out.Status, err)
	}
	b.wants(t, [2]string{"1000", "0"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "0"})
	if live, err := b.s.LiveRows(ctx, late.UpdatedAt.AddDate(0, 0, 1), exchange.LivePlace{}, 10); err != nil || len(live) != 0 {
		t.Errorf("live are %+v, %v", live, err)
	}
}

// openTogether opens swaps at one moment and counts those that were opened. The others are refused for a reason that is expected.
func (b *swapDesk) openTogether(t *testing.T, quotes []exchange.SwapQuote, askers []exchange.Principal, expected exchange.Code) int {
	t.Helper()
	var wg sync.WaitGroup
	var opened atomic.Int64
	start := make(chan struct{})
	for i, q := range quotes {
		r := exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}
		wg.Go(func() {
			<-start
			_, err := storetest.OpenSwap(t.Context(), b.s, r, askers[i])
			if err == nil {
				opened.Add(1)
			} else if exchange.CodeOf(err) != expected {
				t.Errorf("refused by %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(opened.Load())
}

// watchBalances looks at the accounts again and again until its result is called, which tells how often one was below zero.
func (b *swapDesk) watchBalances(t *testing.T) func() int {
	t.Helper()
	db, done, below := storetest.Owner(t, b.s), make(chan struct{}), make(chan int)
	go func() {
		var n, all int
		for {
			select {
			case <-done:
				below <- all
				return
			default:
				if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM ledger_accounts WHERE posted < held AND NOT may_go_below`).Scan(&n); err != nil {
					t.Error(err)
				}
				all += n
			}
		}
	}()
	return func() int {
		close(done)
		return <-below
	}
}

// Of 256 swaps at one moment as many are reserved as the house can pay, and no more.
func TestTheHouseIsNeverOversold(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	const swappers, each = 32, 8 // of 2.5 USDC: 200 fit into 500
	var quotes []exchange.SwapQuote
	var askers []exchange.Principal
	for range swappers {
		u := storetest.User(t, b.s, exchange.RoleCustomer)
		b.who, b.wallet = storetest.PrincipalOf(u), storetest.WalletOn(t, b.s, u, exchange.Tron)
		storetest.Deposit(t, b.s, b.wallet.ID, usdt("100"))
		for range each {
			quotes, askers = append(quotes, b.quote(t, usdc("2.5"))), append(askers, b.who)
		}
	}
	seen := b.watchBalances(t)
	opened := b.openTogether(t, quotes, askers, exchange.CodeInsufficientFunds)
	if n := seen(); opened != 200 || n > 0 {
		t.Errorf("%d opened, and %d times an account was below zero", opened, n)
	}
	wantBalance(t, b.s, owed(b.treasury, money.USDC), "500", "500")
	wantBooks(t, b.s)
}

// Of swaps that name one quote at one moment only one is opened.
func TestAQuoteIsUsedOnce(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	q := b.quote(t, usdt("10"))
	if opened := b.openTogether(t, slices.Repeat([]exchange.SwapQuote{q}, 32), slices.Repeat([]exchange.Principal{b.who}, 32), exchange.CodeStateConflict); opened != 1 {
		t.Errorf("%d opened", opened)
	}
	b.wants(t, [2]string{"1000", "10"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "10"})
}

package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// atDesk is a request for the price of crypto that a merchant buys by bank.
func atDesk(t *testing.T, m money.Amount) store.QuoteRequest {
	t.Helper()
	return store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForDeposit, Side: exchange.QuoteBuy, Amount: m, Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByBank,
	}
}

// newCounter is a bureau with a rate, agreed valuations, and fees of deposits by bank.
func newCounter(t *testing.T) (bureau, exchange.User) {
	t.Helper()
	b := newBureau(t)
	b.time.advance(time.Date(2027, 3, 5, 9, 0, 0, 0, time.UTC).Sub(b.time.now())) // a Friday
	b.rate(t, "129", "130")
	storetest.AgreeValuations(t, b.Store)
	p := lineOf(t, exchange.FeeLine{Scope: exchange.FeeDeposit, Asset: money.USDT, Method: exchange.FeeByBank}, 100)
	p.Fixed, p.Spread = kes("50"), 50
	if err := b.agreed(t, p, b.admin); err != nil {
		t.Fatal(err)
	}
	return b, storetest.User(t, b.Store, exchange.RoleVendor)
}

// At the desk a price holds until the cut-off of the next bank day, at the profile's spread, whatever its rate becomes.
func TestDeskQuotesHoldOverNight(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, merchant := newCounter(t)
	sub := storetest.Subvendor(t, b.Store, merchant)
	r := atDesk(t, kes("10000"))
	q, err := b.OpenQuote(ctx, r, storetest.PrincipalOf(sub))
	if err != nil {
		t.Fatal(err)
	}
	if q.Price.Rate.String() != "130.65" || q.Price.Crypto.String() != "75.392269" || q.Price.Fiat.String() != "10000.00" || q.Price.Fee.String() != "150.00" ||
		q.Terms.Profile.Spread != 50 || q.VendorID != merchant.ID || !q.ExpiresAt.Equal(time.Date(2027, 3, 8, 15, 0, 0, 0, time.UTC)) {
		t.Errorf("quoted %+v until %s", q.Price, q.ExpiresAt)
	}
	b.time.advance(2 * time.Hour) // the rate is stale
	if again := b.status(t, q.ID, exchange.QuoteActive); again.Canonical() != q.Canonical() || again.Terms.Given.String() != "10000.00" {
		t.Errorf("it became %s", again.Canonical())
	}
	for name, change := range map[string]func(*store.QuoteRequest){
		"/network": func(r *store.QuoteRequest) { r.Network = "" },
		"/method":  func(r *store.QuoteRequest) { r.Method = "" },
		"/method ": func(r *store.QuoteRequest) { r.Method = exchange.FeeByChain },
		"/amount":  func(r *store.QuoteRequest) { r.Amount = kes("10000.50") },
		"/side":    func(r *store.QuoteRequest) { r.Side = exchange.QuoteSell },
		"/asset":   func(r *store.QuoteRequest) { r.Asset = money.KES },
	} {
		r := atDesk(t, kes("10000"))
		change(&r)
		_, err := b.OpenQuote(ctx, r, storetest.PrincipalOf(merchant))
		if exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = b.OpenQuote(ctx, atDesk(t, kes("10000")), storetest.PrincipalOf(storetest.User(t, b.Store, exchange.RoleCustomer)))
	wantFault(t, err, exchange.CodeInvalid)
	b.time.advance(time.Date(2027, 3, 8, 15, 0, 0, 0, time.UTC).Sub(b.time.now()))
	b.status(t, q.ID, exchange.QuoteExpired)
}

// The house does not sell far below what two officers agreed a coin is worth: one enters rates alone.
func TestDeskPricesAreBoundedByAgreement(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, merchant := newCounter(t)
	db, by := storetest.Owner(t, b.Store), storetest.PrincipalOf(merchant)
	if _, err := b.OpenQuote(ctx, atDesk(t, usdt("10")), by); err != nil {
		t.Fatal(err)
	}
	copied := func(end, want string) {
		t.Helper()
		_, err := db.ExecContext(ctx, `INSERT INTO fx_quotes (id, owner_id, vendor_id, purpose, side, asset, amount, fiat_currency, rate_id, bid, ask, rate_source,
			rate_valid_from, rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum, spread_points, formula, rate, fiat_amount, fee, total, hash,
			status, created_at, expires_at, updated_at, network, method)
			SELECT gen_random_uuid(), owner_id, vendor_id, purpose, side, asset, amount, fiat_currency, rate_id, bid, ask, rate_source,
			rate_valid_from, rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum, spread_points, formula, rate, fiat_amount, fee, total, hash,
			'active', created_at, `+end+`, updated_at, network, method FROM fx_quotes LIMIT 1`)
		if sqlState(err) != want {
			t.Errorf("until %s: %v, want %q", end, err, want)
		}
	}
	copied("expires_at", "")
	copied("expires_at + interval '1 second'", "KV002")
	storetest.Exec(t, b.Store, `BEGIN; ALTER TABLE valuations DISABLE TRIGGER valuations_agreed;
		UPDATE valuations SET agreed = 174.21 WHERE asset = 'USDT';
		ALTER TABLE valuations ENABLE TRIGGER valuations_agreed; COMMIT`)
	_, err := b.OpenQuote(ctx, atDesk(t, usdt("10")), by)
	wantFault(t, err, exchange.CodeStateConflict)
	copied("expires_at", "KV006")
	if least := exchange.MinPurchaseRate(decimal.RequireFromString("174.21")); least.String() != "130.6575" {
		t.Errorf("the least is %s", least)
	}
}

// A quote that leaves out what its fee depends on would get another operation's price, so it is refused; one that names it is held
// to it.
func TestQuotesNameWhatTheirFeeDependsOn(t *testing.T) {
	t.Parallel()
	b := newBureau(t)
	b.rate(t, "129", "129")
	customer := storetest.User(t, b.Store, exchange.RoleCustomer)
	by := storetest.PrincipalOf(customer)
	b.quote(t, "10", customer)
	p := lineOf(t, exchange.FeeLine{Scope: exchange.FeeTransfer, Network: exchange.Ethereum}, 200)
	if err := b.agreed(t, p, b.admin); err != nil {
		t.Fatal(err)
	}
	r := ask(t, "10")
	_, err := b.OpenQuote(t.Context(), r, by)
	wantFault(t, err, exchange.CodeInvalid)
	for n, fee := range map[exchange.Network]string{exchange.Ethereum: "0.200000", exchange.Tron: "0.000000"} {
		r := ask(t, "10")
		r.Network = n
		q, err := b.OpenQuote(t.Context(), r, by)
		if err != nil || q.Price.Fee.String() != fee || q.Terms.Network != n {
			t.Errorf("on %s the fee is %s, %v", n, q.Price.Fee, err)
		}
	}
}

// An indication stores nothing and has the price of the quote that follows it.
func TestIndicationsPromiseNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, merchant := newCounter(t)
	by := storetest.PrincipalOf(merchant)
	r := atDesk(t, usdt("100"))
	said, err := b.IndicativePrice(ctx, r, by)
	if err != nil {
		t.Fatal(err)
	}
	if list, total, err := b.Quotes(ctx, store.Everything(), store.QuoteFilter{}, store.Page{Number: 1, Size: 9}); err != nil || total != 0 {
		t.Errorf("stored %v, %v", list, err)
	}
	q, err := b.OpenQuote(ctx, r, by)
	if err != nil || !q.Price.Fiat.Equal(said.Price.Fiat) || !q.Price.Fee.Equal(said.Price.Fee) || q.Price.Fiat.String() != "13248.00" {
		t.Errorf("said %+v, quoted %+v, %v", said.Price, q.Price, err)
	}
}

func TestQuotesAreListed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, merchant := newCounter(t)
	sub, other, customer := storetest.Subvendor(t, b.Store, merchant), storetest.User(t, b.Store, exchange.RoleVendor), storetest.User(t, b.Store, exchange.RoleCustomer)
	var all []exchange.FXQuote
	for _, u := range []exchange.User{customer, other, sub, merchant} {
		b.time.advance(time.Second)
		all = append(all, b.quote(t, "10", u))
	}
	for _, c := range []struct {
		who    exchange.User
		filter store.QuoteFilter
		want   []int
	}{
		{customer, store.QuoteFilter{}, []int{0}},
		{merchant, store.QuoteFilter{}, []int{3, 2}},
		{merchant, store.QuoteFilter{OwnerID: sub.ID}, []int{2}},
		{merchant, store.QuoteFilter{OwnerID: other.ID}, nil},
		{other, store.QuoteFilter{Status: exchange.QuoteExpired}, nil},
		{storetest.User(t, b.Store, exchange.RoleAdmin), store.QuoteFilter{Purpose: exchange.QuoteForTransfer, Status: exchange.QuoteActive}, []int{3, 2, 1, 0}},
		{storetest.User(t, b.Store, exchange.RoleAdmin), store.QuoteFilter{Purpose: exchange.QuoteForSale}, nil},
	} {
		list, total, err := b.Quotes(ctx, store.ViewOf(storetest.PrincipalOf(c.who), exchange.ActReadQuotes), c.filter, store.Page{Number: 1, Size: 9})
		var got []int
		for _, q := range list {
			got = append(got, slices.IndexFunc(all, func(o exchange.FXQuote) bool { return o.ID == q.ID }))
		}
		if err != nil || total != len(c.want) || !slices.Equal(got, c.want) {
			t.Errorf("the %s sees %v of %d, want %v, %v", c.who.Role, got, total, c.want, err)
		}
	}
	b.time.advance(exchange.QuoteLife)
	list, total, err := b.Quotes(ctx, store.Everything(), store.QuoteFilter{Status: exchange.QuoteExpired}, store.Page{Number: 1, Size: 9})
	if err != nil || total != 4 || list[0].Status != exchange.QuoteExpired {
		t.Errorf("%d are over: %+v, %v", total, list, err)
	}
}

// A stored quote of every formula that was ever used is computed again from its row, and agrees.
func TestReplayAgreesForEveryFormula(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, merchant := newCounter(t)
	b.fees(t, "0.25", 30, 70)
	for _, formula := range exchange.QuoteFormulas() {
		for name, r := range map[string]store.QuoteRequest{
			"transfer": {Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteBuy, Amount: usdt("12.345678")},
			"received": {Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Amount: usdt("12.345678")},
			"sale":     {Purpose: exchange.QuoteForSale, Side: exchange.QuoteSell, Amount: usdt("10.5")},
			"worth":    {Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Amount: kes("1500"), Asset: money.USDT, Network: exchange.Solana},
			"desk":     atDesk(t, kes("123456")),
			"bought":   atDesk(t, usdt("999.999999")),
		} {
			if formula == exchange.QuoteFormula1 && (r.Amount.Asset() == money.KES || r.Purpose == exchange.QuoteForDeposit) {
				continue // it had neither
			}
			r.ID = storetest.NewID(t)
			q, err := b.OpenQuote(ctx, r.WithFormula(formula), storetest.PrincipalOf(merchant))
			if err != nil || q.Terms.Formula != formula {
				t.Fatalf("%s by %s: %v", name, formula, err)
			}
			got, err := b.ReplayQuote(ctx, store.Everything(), q.ID, b.admin)
			if err != nil || len(got.Differs) != 0 || !got.Price.Fiat.Equal(q.Price.Fiat) || got.Quote.Fingerprint() != q.Hash {
				t.Errorf("%s by %s differs in %v, %v", name, formula, got.Differs, err)
			}
		}
	}
}

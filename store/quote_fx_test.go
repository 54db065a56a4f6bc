package store_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func ask(t *testing.T, amount string) store.QuoteRequest {
	t.Helper()
	return store.QuoteRequest{ID: storetest.NewID(t), Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Amount: usdt(amount)}
}

func (b bureau) quote(t *testing.T, amount string, by exchange.User) exchange.FXQuote {
	t.Helper()
	q, err := b.OpenQuote(t.Context(), ask(t, amount), storetest.PrincipalOf(by))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (b bureau) status(t *testing.T, id uuid.UUID, want exchange.QuoteStatus) exchange.FXQuote {
	t.Helper()
	q, err := b.Quote(t.Context(), store.Everything(), id)
	if err != nil || q.Status != want {
		t.Fatalf("the quote is %s, %v; want %s", q.Status, err, want)
	}
	return q
}

func TestQuotesFreezeTheirTerms(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	owner := storetest.User(t, b.Store, exchange.RoleCustomer)
	_, err := b.OpenQuote(ctx, ask(t, "10"), storetest.PrincipalOf(owner))
	wantFault(t, err, exchange.CodeStateConflict) // no rate
	rate := b.rate(t, "128.9", "129.1")
	r := ask(t, "10.5")
	q := twice(t, func(a, b exchange.FXQuote) bool { return a.Canonical() == b.Canonical() && a.Hash == b.Hash },
		func() (exchange.FXQuote, error) { return b.OpenQuote(ctx, r, storetest.PrincipalOf(owner)) })
	if q.Price.Fiat.String() != "1353.00" || q.Price.Rate.String() != "128.9" || !q.Price.Fee.IsZero() || q.Terms.Rate.ID != rate.ID ||
		!q.ExpiresAt.Equal(b.time.now().Add(exchange.QuoteLife)) || q.Hash != q.Fingerprint() {
		t.Errorf("quoted %+v", q)
	}
	// Later changes don't affect it.
	b.rate(t, "131", "132")
	b.fees(t, "0.25", 100, 100)
	if again := b.status(t, q.ID, exchange.QuoteActive); again.Canonical() != q.Canonical() {
		t.Errorf("it became %s", again.Canonical())
	}
	next := b.quote(t, "10.5", owner)
	if next.Price.Rate.String() != "129.69" || next.Price.Fiat.String() != "1361.00" || next.Price.Fee.String() != "0.355000" || next.Price.Total.String() != "10.855000" {
		t.Errorf("then quoted %+v", next.Price)
	}
	officer := storetest.User(t, b.Store, exchange.RoleTreasury)
	if q := b.quote(t, "10", officer); !q.Price.Fee.IsZero() || q.Terms.Profile.ID != uuid.Nil {
		t.Errorf("the house pays %s to itself", q.Price.Fee)
	}
	for name, change := range map[string]func(*store.QuoteRequest){
		"/purpose":    func(r *store.QuoteRequest) { r.Purpose = "swap" },
		"/asset":      func(r *store.QuoteRequest) { r.Amount = money.Must(money.ETH, "1") },
		"/amount":     func(r *store.QuoteRequest) { r.Amount = usdt("0") },
		"/amount ":    func(r *store.QuoteRequest) { r.Amount = usdt("0.001") },
		"/supersedes": func(r *store.QuoteRequest) { r.Supersedes = storetest.NewID(t) },
	} {
		r := ask(t, "10")
		change(&r)
		if _, err := b.OpenQuote(ctx, r, storetest.PrincipalOf(owner)); exchange.CodeOf(err) != exchange.CodeInvalid || !strings.Contains(err.Error(), strings.TrimSpace(name)+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.time.advance(58 * time.Minute)
	if q := b.quote(t, "10", owner); !q.ExpiresAt.Equal(q.Terms.Rate.StaleAt) {
		t.Errorf("it holds until %s and its rate until %s", q.ExpiresAt, q.Terms.Rate.StaleAt)
	}
	b.time.advance(2 * time.Minute)
	_, err = b.OpenQuote(ctx, ask(t, "10"), storetest.PrincipalOf(owner))
	wantFault(t, err, exchange.CodeStateConflict) // stale
}

func TestQuotesAreTheirOwners(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	b.rate(t, "129", "129")
	vendor, customer := storetest.User(t, b.Store, exchange.RoleVendor), storetest.User(t, b.Store, exchange.RoleCustomer)
	sub := storetest.Subvendor(t, b.Store, vendor)
	stranger, rival := storetest.User(t, b.Store, exchange.RoleCustomer), storetest.User(t, b.Store, exchange.RoleVendor)
	admin := storetest.User(t, b.Store, exchange.RoleAdmin)
	for _, c := range []struct {
		owner  exchange.User
		see    []exchange.User
		absent []exchange.User
	}{
		{customer, []exchange.User{customer, admin}, []exchange.User{stranger, vendor, sub}},
		{sub, []exchange.User{sub, vendor, admin}, []exchange.User{customer, rival}},
	} {
		q := b.quote(t, "10", c.owner)
		for _, u := range c.see {
			if _, err := b.Quote(ctx, store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadQuotes), q.ID); err != nil {
				t.Errorf("the %s's is not seen by the %s: %v", c.owner.Role, u.Role, err)
			}
		}
		for _, u := range c.absent {
			_, err := b.Quote(ctx, store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadQuotes), q.ID)
			wantFault(t, err, exchange.CodeNotFound)
		}
		r := ask(t, "10")
		r.ID = q.ID
		_, err := b.OpenQuote(ctx, r, storetest.PrincipalOf(stranger))
		wantFault(t, err, exchange.CodeConflict)
		r = ask(t, "10")
		r.Supersedes = q.ID
		_, err = b.OpenQuote(ctx, r, storetest.PrincipalOf(stranger))
		wantFault(t, err, exchange.CodeInvalid)
	}
}

func TestQuotesEnd(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	b.rate(t, "129", "129")
	owner := storetest.User(t, b.Store, exchange.RoleCustomer)
	old := b.quote(t, "10", owner)
	r := ask(t, "11")
	r.Supersedes = old.ID
	next := twice(t, func(a, b exchange.FXQuote) bool { return a.ID == b.ID }, func() (exchange.FXQuote, error) {
		return b.OpenQuote(ctx, r, storetest.PrincipalOf(owner))
	})
	if got := b.status(t, old.ID, exchange.QuoteSuperseded); got.SupersededBy != next.ID {
		t.Errorf("superseded by %s", got.SupersededBy)
	}
	r.ID = storetest.NewID(t)
	_, err := b.OpenQuote(ctx, r, storetest.PrincipalOf(owner))
	wantFault(t, err, exchange.CodeStateConflict)
	if n, err := b.ExpireQuotes(ctx, 10); err != nil || n != 0 {
		t.Errorf("%d expired before their time, %v", n, err)
	}
	b.time.advance(exchange.QuoteLife)
	b.status(t, next.ID, exchange.QuoteExpired) // as it reads, before it is written
	r.Supersedes = next.ID
	_, err = b.OpenQuote(ctx, r, storetest.PrincipalOf(owner))
	wantFault(t, err, exchange.CodeExpired)
	if n, err := b.ExpireQuotes(ctx, 10); err != nil || n != 1 {
		t.Errorf("%d expired, %v", n, err)
	}
	if n, err := b.ExpireQuotes(ctx, 10); err != nil || n != 0 {
		t.Errorf("%d expired again, %v", n, err)
	}
	if got := b.status(t, next.ID, exchange.QuoteExpired); got.Version != 2 {
		t.Errorf("version %d", got.Version)
	}
	if got := b.events(t, old.ID); !slices.Equal(got, []string{"fx_quote.created", "fx_quote.superseded"}) {
		t.Errorf("events of the first %v", got)
	}
	if got := b.events(t, next.ID); !slices.Equal(got, []string{"fx_quote.created", "fx_quote.expired"}) {
		t.Errorf("events of the second %v", got)
	}
}

func TestActiveQuotesAreLimited(t *testing.T) {
	t.Parallel()
	b := newBureau(t)
	b.rate(t, "129", "129")
	owner := storetest.User(t, b.Store, exchange.RoleCustomer)
	requests := make([]store.QuoteRequest, exchange.MaxActiveQuotes+6)
	for i := range requests {
		requests[i] = ask(t, "10")
	}
	codes := atOnce(len(requests), func(i int) error {
		_, err := b.OpenQuote(t.Context(), requests[i], storetest.PrincipalOf(owner))
		return err
	})
	if codes[""] != exchange.MaxActiveQuotes || codes[exchange.CodeLimitReached] != 6 {
		t.Errorf("outcomes %v", codes)
	}
	b.time.advance(exchange.QuoteLife)
	b.rate(t, "129", "129")
	b.quote(t, "10", owner) // those whose time is over count no more
}

// putBack gives a table the rows that it had in the table kept.
func putBack(t *testing.T, db *sql.DB, table string) {
	t.Helper()
	var columns string
	const written = `SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`
	if err := db.QueryRowContext(t.Context(), written, table).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	undo := `SET session_replication_role = replica; DELETE FROM ` + table + `; INSERT INTO ` + table + ` (` + columns + `) SELECT ` + columns + ` FROM kept; DROP TABLE kept; RESET session_replication_role`
	if _, err := db.ExecContext(t.Context(), undo); err != nil {
		t.Fatal(err)
	}
}

// A replay detects direct changes to the database: of the quote, of its sources, and of both together with the hash.
func TestReplayFindsTampering(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	b.rate(t, "129", "130")
	b.fees(t, "0.5", 20, 50)
	owner := storetest.User(t, b.Store, exchange.RoleCustomer)
	q := b.quote(t, "10", owner)
	replayed := func() []string {
		t.Helper()
		r, err := b.ReplayQuote(ctx, store.Everything(), q.ID, b.admin)
		if err != nil {
			t.Fatal(err)
		}
		return r.Differs
	}
	if off := replayed(); len(off) != 0 {
		t.Fatalf("as it is: %v", off)
	}
	db := storetest.Owner(t, b.Store)
	for _, table := range []string{"fx_quotes", "fx_rates", "fee_profiles"} {
		if _, err := db.ExecContext(ctx, `ALTER TABLE `+table+` DISABLE TRIGGER ALL`); err != nil {
			t.Fatal(err)
		}
	}
	forged := q
	forged.Price.Fiat = kes("1")
	for change, want := range map[string][]string{
		`fx_quotes SET fiat_amount = 1`:         {"fiat_amount", "hash"},
		`fx_quotes SET fee = 0.1, total = 10.1`: {"fee", "total_amount", "hash"},
		`fx_quotes SET rate = 1`:                {"rate", "hash"},
		`fx_quotes SET bid = 100`:               {"rate", "fiat_amount", "hash", "fx_rate"},
		`fx_quotes SET fee_points = 0`:          {"fee", "total_amount", "hash", "fee_profile"},
		`fx_quotes SET owner_id = (SELECT id FROM users WHERE role = 'admin' LIMIT 1)`: {"hash"},
		`fx_quotes SET formula = 'kivuko-price-0'`:                                     {"terms"},
		`fx_rates SET ask = 129`:                                                       {"fx_rate"},
		`fee_profiles SET fixed = 0`:                                                   {"fee_profile"},
		`fx_quotes SET fiat_amount = 1, hash = '` + forged.Fingerprint() + `'`:         {"fiat_amount", "audit"},
		`fx_quotes SET hash = repeat('0', 64)`:                                         {"hash", "audit"},
		`fx_quotes SET status = 'expired' WHERE status = 'nothing of the price'`:       nil,
	} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		table := strings.Fields(change)[0]
		if _, err := tx.ExecContext(ctx, `CREATE TABLE kept AS SELECT * FROM `+table); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE `+change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := replayed(); !slices.Equal(got, want) {
			t.Errorf("%s: differs in %v, want %v", change, got, want)
		}
		putBack(t, db, table)
	}
	log, err := b.AuditRecords(ctx, store.AuditFilter{Action: "fx_quote.replayed"}, 20)
	if err != nil || len(log) != 13 || log[0].Actor != b.admin.ActorName() {
		t.Errorf("audited %d, %v", len(log), err)
	}
}

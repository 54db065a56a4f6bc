package store_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// bureau is a store with a fixed clock, and an admin who enters rates and fees.
type bureau struct {
	*store.Store
	url   string
	time  *clock
	admin exchange.Principal
}

func newBureau(t *testing.T) bureau {
	t.Helper()
	c, url := newClock(), storetest.URL(t)
	s := storetest.Open(t, url, store.Options{Now: c.now})
	return bureau{s, url, c, storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))}
}

func (b bureau) entry(t *testing.T, bid, ask string) store.RateEntry {
	t.Helper()
	return store.RateEntry{
		ID: storetest.NewID(t), Base: money.USDT, Quote: money.KES, Bid: decimal.RequireFromString(bid), Ask: decimal.RequireFromString(ask),
		Source: exchange.RateSourceAdmin, Life: time.Hour,
	}
}

// rate enters a rate by two officers, one second after the previous one.
func (b bureau) rate(t *testing.T, bid, ask string) exchange.FXRate {
	t.Helper()
	b.time.advance(time.Second)
	return storetest.Rate(t, b.Store, b.entry(t, bid, ask))
}

// fed enters a rate of the source.
func (b bureau) fed(t *testing.T, bid, ask string) exchange.FXRate {
	t.Helper()
	b.time.advance(time.Second)
	e := b.entry(t, bid, ask)
	e.Source = "bank"
	r, err := b.EnterRate(t.Context(), e, exchange.System("rates"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fees enters a profile for transfers of USDT: fixed, with a percentage, and a spread.
func (b bureau) fees(t *testing.T, fixed string, points, spread int64) exchange.FeeProfile {
	t.Helper()
	p := exchange.ZeroProfile(exchange.FeeTransfer, money.USDT)
	p.ID, p.Fixed, p.BasisPoints, p.Spread = storetest.NewID(t), usdt(fixed), points, spread
	if err := b.agreed(t, p, b.admin); err != nil {
		t.Fatal(err)
	}
	list, _, err := b.FeeProfiles(t.Context(), store.ProfileFilter{Scope: p.Scope, Asset: p.Asset}, store.Page{Number: 1, Size: 1})
	if err != nil || list[0].ID != p.ID {
		t.Fatalf("the newest profile is %+v, %v", list, err)
	}
	return list[0]
}

// agreed enters a profile by two officers.
func (b bureau) agreed(t *testing.T, p exchange.FeeProfile, by exchange.Principal) error {
	t.Helper()
	return storetest.Agreed(t, b.Store)(b.ProposeProfile(t.Context(), p, by))
}

// agreedRate enters a rate by two officers, a second after the previous one.
func agreedRate(t *testing.T, s *store.Store, e store.RateEntry, by exchange.Principal) {
	t.Helper()
	if err := storetest.Agreed(t, s)(s.ProposeRate(t.Context(), e, by)); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.FXRates(t.Context(), store.RateFilter{Base: e.Base}, store.Page{Number: 1, Size: 1})
	if err != nil || list[0].ID != e.ID || !list[0].JumpConfirmed {
		t.Fatalf("the agreed rate is %+v, %v", list, err)
	}
}

// events are the event types of an object.
func (b bureau) events(t *testing.T, id uuid.UUID) []string {
	t.Helper()
	var types string
	err := storetest.Owner(t, b.Store).QueryRowContext(t.Context(), `SELECT coalesce(string_agg(type, ' ' ORDER BY cursor), '') FROM events WHERE object_id = $1`, id).Scan(&types)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(types)
}

func TestRatesFollowEachOther(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	b.rate(t, "128.9", "129.1")
	fed := b.fed(t, "128.9", "129.1")
	b.time.advance(time.Second)
	e := b.entry(t, "128.8", "129.1")
	first := twice(t, func(a, b exchange.FXRate) bool { return a.ID == b.ID && a.StaleAt.Equal(b.StaleAt) },
		func() (exchange.FXRate, error) { return b.EnterRate(ctx, e, b.admin) })
	if first.Replaces != fed.ID || !first.ValidFrom.Equal(b.time.now()) || !first.StaleAt.Equal(b.time.now().Add(time.Hour)) {
		t.Errorf("entered %+v", first)
	}
	same := b.entry(t, "129", "129.2")
	_, err := b.EnterRate(ctx, same, b.admin) // at the same moment
	wantFault(t, err, exchange.CodeInvalid)
	back := b.entry(t, "129", "129.2")
	back.ValidFrom = b.time.now().Add(-time.Minute)
	_, err = b.EnterRate(ctx, back, b.admin)
	wantFault(t, err, exchange.CodeInvalid)
	second := b.rate(t, "129", "129.2")
	if second.Replaces != first.ID {
		t.Errorf("the second follows %s", second.Replaces)
	}
	list, total, err := b.FXRates(ctx, store.RateFilter{Base: money.USDT}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 4 || list[0].ID != second.ID || !list[1].ReplacedAt.Equal(second.ValidFrom) || list[1].InForce(b.time.now()) || !list[0].InForce(b.time.now()) {
		t.Errorf("listed %+v, %v", list, err)
	}
	e.ID = second.ID
	e.Base = money.USDC
	_, err = b.EnterRate(ctx, e, b.admin)
	wantFault(t, err, exchange.CodeConflict)
	if got := b.events(t, second.ID); !slices.Equal(got, []string{"fx_rate.entered"}) {
		t.Errorf("events %v", got)
	}
	if log, err := b.AuditRecords(ctx, store.AuditFilter{Action: "fx_rate.entered"}, 9); err != nil || len(log) != 4 || log[1].Actor != b.admin.ActorName() {
		t.Errorf("audited %v, %v", log, err)
	}
}

// D12, B8: one person's rate is near the one that a source gave within the hour. Two officers may enter any; a source may not jump.
func TestB8RatesThatStrayTakeTwoOfficers(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	feed := b.entry(t, "129", "129")
	feed.Source = "bank"
	_, err := b.EnterRate(ctx, feed, exchange.System("rates"))
	wantFault(t, err, exchange.CodeStateConflict) // there is nothing to hold it against
	alone := func(bid, ask string, want bool) {
		t.Helper()
		b.time.advance(time.Second)
		_, err := b.EnterRate(ctx, b.entry(t, bid, ask), b.admin)
		if want != (err == nil) || err != nil && (!errors.Is(err, exchange.ErrRateStrays) || exchange.CodeOf(err) != exchange.CodeLimitReached) {
			t.Errorf("one person enters %s: %v", bid, err)
		}
	}
	alone("129", "129", false) // the first one
	b.rate(t, "129", "129")
	alone("129", "129", false) // there is no source
	b.fed(t, "130", "131")
	alone("132.6", "133.62", true) // 2 % up
	alone("132.61", "133.62", false)
	alone("133.2", "133.3", false) // nor in steps
	alone("127.4", "128.39", true)
	alone("127.4", "128.37", false)
	b.time.advance(time.Hour - 6*time.Second)
	alone("130", "131", true)
	alone("130", "131", false) // the source is silent
	far := b.entry(t, "141", "141.5")
	far.Source = "bank"
	_, err = b.EnterRate(ctx, far, exchange.System("rates"))
	wantFault(t, err, exchange.CodeInvalid)
	b.time.advance(time.Second)
	far.Source = exchange.RateSourceAdmin
	agreedRate(t, b.Store, far, b.admin)
	alone("141", "141.5", false)
	b.fed(t, "147", "148")
	_, err = storetest.Owner(t, b.Store).ExecContext(ctx, `INSERT INTO fx_rates (id, base, quote, bid, ask, source, valid_from, stale_at, replaces, jump_confirmed, created_by, created_at)
		SELECT gen_random_uuid(), base, quote, 1, 1, 'admin', valid_from + interval '1 second', stale_at + interval '1 second', id, true, (SELECT id FROM users WHERE role = 'admin' LIMIT 1),
		created_at + interval '1 second' FROM fx_rates ORDER BY valid_from DESC LIMIT 1`)
	if sqlState(err) != "KV006" {
		t.Errorf("a rate that nobody agreed: %v", err)
	}
}

// A source that moves in small steps stays near the last rate that two officers agreed, whoever writes its rates and whatever times they
// have. From the next agreed rate on it has as much room again.
func TestStepsOfTheSourceAddUp(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	b.rate(t, "100", "101")
	flows := storetest.As(t, b.Store, store.RoleFlows)
	step := func(bid, ask string, want bool) {
		t.Helper()
		b.time.advance(30 * time.Hour)
		e := b.entry(t, bid, ask)
		e.Source = "bank"
		_, err := b.EnterRate(ctx, e, exchange.System("rates"))
		if fault, _ := errors.AsType[*exchange.Error](err); want != (err == nil) || !want && (fault == nil || fault.Fields[0].Pointer != "/bid" || fault.Fields[0].Code != "drift") {
			t.Errorf("the source gives %s: %v", bid, err)
		}
		if want {
			return
		}
		_, err = flows.ExecContext(ctx, `INSERT INTO fx_rates SELECT $1::uuid, base, quote, $2, $3, 'bank', valid_from + interval '30 h',
			stale_at + interval '30 h', id, false, NULL, created_at + interval '30 h' FROM fx_rates ORDER BY valid_from DESC LIMIT 1`, e.ID, bid, ask)
		if sqlState(err) != "KV006" {
			t.Errorf("the database takes %s: %v", bid, err)
		}
	}
	step("105", "106", true)
	step("110", "111.1", true) // a tenth from what was agreed
	step("110.01", "111.1", false)
	step("110", "111.2", false)
	step("106", "107", true)
	step("101", "102", true)
	step("96", "97", true)
	step("91.5", "92.5", true)
	step("89.9", "91", false)
	b.rate(t, "90", "91")
	step("86", "87", true)
	step("82", "83", true)
	step("81", "82", true)
	step("80.9", "81.8", false)
}

// A payment counts at the higher of the rate in force and the value that two officers agreed; what came with the schema is no
// agreement.
func TestPaymentsCountAtTheHigherValue(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	counts := func(want string) {
		t.Helper()
		if got, err := b.ValueOf(ctx, usdt("100")); err != nil || got.String() != want {
			t.Errorf("100 USDT count as %s, want %s, %v", got, want, err)
		}
	}
	counts("15000.00") // there is only the value of the schema
	b.rate(t, "129", "131")
	counts("13000.00")
	storetest.AgreeValuations(t, b.Store)
	counts("15000.00")
	b.rate(t, "151", "153")
	counts("15200.00")
}

func TestRaceRatesFollowOneLine(t *testing.T) {
	t.Parallel()
	b := newBureau(t)
	b.rate(t, "129", "129")
	b.fed(t, "129", "129")
	b.time.advance(time.Minute)
	entries := make([]store.RateEntry, 8)
	for i := range entries {
		entries[i] = b.entry(t, "129", "129.5")
		entries[i].ValidFrom = b.time.now().Add(-time.Duration(i) * time.Second)
	}
	codes := atOnce(len(entries), func(i int) error {
		_, err := b.EnterRate(t.Context(), entries[i], b.admin)
		return err
	})
	if codes[""] == 0 || codes[""]+codes[exchange.CodeInvalid] != len(entries) {
		t.Errorf("outcomes %v", codes)
	}
	var forks int
	err := storetest.Owner(t, b.Store).QueryRowContext(t.Context(), `SELECT count(*) FROM fx_rates r WHERE r.replaces IS DISTINCT FROM (SELECT l.id FROM fx_rates l
		WHERE l.valid_from < r.valid_from ORDER BY l.valid_from DESC LIMIT 1)`).Scan(&forks)
	if err != nil || forks != 0 {
		t.Errorf("%d rates follow another than the one before them, %v", forks, err)
	}
}

func TestFeeProfilesHaveVersions(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	p := exchange.ZeroProfile(exchange.FeeTransfer, money.USDT)
	p.ID, p.Fixed = storetest.NewID(t), usdt("1")
	waits, err := b.ProposeProfile(ctx, p, b.admin)
	if list, _, readErr := b.FeeProfiles(ctx, store.ProfileFilter{}, store.Page{Number: 1, Size: 10}); err != nil || readErr != nil || len(list) != 0 {
		t.Fatalf("after one officer's word there are %d, %v, %v", len(list), err, readErr)
	}
	if err := storetest.Agreed(t, b.Store)(waits, nil); err != nil {
		t.Fatal(err)
	}
	later := p
	later.ID, later.Fixed, later.ValidFrom = storetest.NewID(t), usdt("2"), b.time.now().Add(time.Hour)
	if err := b.agreed(t, later, b.admin); err != nil {
		t.Fatal(err)
	}
	back := p
	back.ID, back.ValidFrom = storetest.NewID(t), b.time.now().Add(-time.Second)
	_, err = b.ProposeProfile(ctx, back, b.admin)
	wantFault(t, err, exchange.CodeInvalid)
	inForce := func(want ...int) {
		t.Helper()
		list, _, err := b.FeeProfiles(ctx, store.ProfileFilter{Scope: exchange.FeeTransfer, Asset: money.USDT}, store.Page{Number: 1, Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range list {
			if p.InForce(b.time.now()) {
				got = append(got, p.Version)
			}
		}
		if len(got) != len(want) || got[0] != want[0] {
			t.Errorf("in force are %v, want %v", got, want)
		}
	}
	inForce(1)
	b.time.advance(time.Hour)
	inForce(2)
	// A later version may overtake one that was to begin after it; that one then never applies.
	b.time.advance(time.Second)
	overtaken := p
	overtaken.ID, overtaken.ValidFrom = storetest.NewID(t), b.time.now().Add(time.Hour)
	if err := b.agreed(t, overtaken, b.admin); err != nil {
		t.Fatal(err)
	}
	b.fees(t, "3", 0, 0)
	inForce(4)
	b.time.advance(2 * time.Hour)
	inForce(4)
	colleague := storetest.PrincipalOf(storetest.User(t, b.Store, exchange.RoleTreasury))
	if codes := atOnce(6, func(int) error {
		next := p
		next.ID = uuid.New()
		c, err := b.ProposeProfile(ctx, next, b.admin)
		if err == nil {
			_, err = b.ConfirmChange(ctx, c.ID, "", colleague)
		}
		return err
	}); codes[""] != 6 {
		t.Errorf("outcomes %v", codes)
	}
	if list, total, err := b.FeeProfiles(ctx, store.ProfileFilter{}, store.Page{Number: 1, Size: 20}); err != nil || total != 10 || list[9].ID != p.ID {
		t.Errorf("%d versions, %v", total, err)
	}
}

// Rates and profiles that priced something are immutable, and prices need real ones.
func TestDatabaseGuardsPricing(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	customer := storetest.PrincipalOf(storetest.User(t, b.Store, exchange.RoleCustomer))
	b.rate(t, "129", "130")
	r := b.fed(t, "129", "130")
	b.fees(t, "0.5", 20, 50)
	q, err := b.OpenQuote(ctx, store.QuoteRequest{ID: storetest.NewID(t), Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteBuy, Amount: usdt("10")}, customer)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, b.Store)
	admin := b.admin.UserID.String()
	rates := func(bid, from, replaces, source, by string) string {
		return `INSERT INTO fx_rates SELECT gen_random_uuid(), base, quote, ` + bid + `, ` + bid + `, ` + source + `, ` + from + `, stale_at, ` + replaces +
			`, false, ` + by + `, created_at + interval '10 s' FROM fx_rates ORDER BY valid_from DESC LIMIT 1`
	}
	copied := func(columns, values string) string {
		return `INSERT INTO fx_quotes (id, owner_id, purpose, side, asset, amount, fiat_currency, rate_id, bid, ask, rate_source, rate_valid_from, rate_stale_at,
			profile_id, profile_version, fee_fixed, fee_points, fee_minimum, spread_points, formula, rate, fiat_amount, fee, total, hash, status, created_at,
			expires_at, updated_at) SELECT gen_random_uuid(), owner_id, purpose, side, asset, amount, fiat_currency, rate_id, ` + columns + ` profile_version, ` +
			values + ` formula, rate, fiat_amount, fee, total, hash, 'active', created_at, expires_at, updated_at FROM fx_quotes`
	}
	free := func(query string) string {
		query = strings.Replace(query, "rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum, spread_points, formula, rate, fiat_amount, fee, total",
			"rate_stale_at, NULL, 0, 0, 0, 0, 0, formula, ask, ceil(amount * ask), 0, amount", 1)
		if !strings.Contains(query, "NULL, 0") {
			t.Fatal(query)
		}
		return query
	}
	const terms, charges = `bid, ask, rate_source, rate_valid_from, rate_stale_at, profile_id,`, `fee_fixed, fee_points, fee_minimum, spread_points,`
	for query, want := range map[string]string{
		`UPDATE fx_rates SET bid = 1`:                          "KV002",
		`DELETE FROM fx_rates`:                                 "KV002",
		`UPDATE fee_profiles SET fixed = 0`:                    "KV002",
		`TRUNCATE fee_profiles CASCADE`:                        "KV002",
		`UPDATE fx_quotes SET fiat_amount = 1`:                 "KV002",
		`UPDATE fx_quotes SET expires_at = expires_at + '1 s'`: "KV002",
		`DELETE FROM fx_quotes`:                                "KV002",
		`UPDATE fx_quotes SET status = 'consumed', consumed_at = created_at, object_type = 'transfer', object_id = gen_random_uuid()`: "KV002",
		`UPDATE fx_quotes SET status = 'consumed', consumed_at = expires_at, object_type = 'transfer', object_id = gen_random_uuid()`: "23514",
		rates("129", "valid_from + interval '1 s'", "NULL", "source", "created_by"):                                                   "KV002",
		rates("129", "valid_from - interval '1 s'", "id", "source", "created_by"):                                                     "KV002",
		rates("136", "valid_from + interval '1 s'", "id", "source", "created_by"):                                                     "KV002",
		rates("'NaN'", "valid_from + interval '1 s'", "id", "source", "created_by"):                                                   "KV002",
		rates("129", "valid_from + interval '1 s'", "id", "'bank'", "'"+admin+"'"):                                                    "23514",
		strings.Replace(rates("129", "valid_from", "NULL", "'bank'", "NULL"), "base, quote,", "'ETH', quote,", 1):                     "KV002",
		copied(strings.Replace(terms, "bid", "bid + 1", 1), charges):                                                                  "KV002",
		copied(strings.Replace(terms, "rate_stale_at", "rate_stale_at + interval '1 s'", 1), charges):                                 "KV002",
		copied(terms, strings.Replace(charges, "fee_points", "0", 1)):                                                                 "KV002",
		copied(strings.Replace(terms, "profile_id", "NULL", 1), charges):                                                              "KV002",
		free(copied(terms, charges)): "KV002", // as if there were no fees
		strings.Replace(copied(terms, charges), "formula, rate, fiat_amount, fee, total, hash, 'active'", "formula, rate - 1, fiat_amount, fee, total, hash, 'active'", 1):           "KV002",
		strings.Replace(copied(terms, charges), "formula, rate, fiat_amount, fee, total, hash, 'active'", "formula, rate, fiat_amount - 1, fee, total, hash, 'active'", 1):           "KV002",
		strings.Replace(copied(terms, charges), "formula, rate, fiat_amount, fee, total, hash, 'active'", "formula, rate, fiat_amount, fee - 0.01, total - 0.01, hash, 'active'", 1): "KV002",
		strings.Replace(copied(terms, charges), "'active', created_at, expires_at, updated_at", "'active', rate_stale_at, rate_stale_at + interval '1 s', updated_at", 1):            "KV002",
	} {
		// The commit decides, because some guards run at the end of the transaction.
		if _, err := db.ExecContext(ctx, query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	if _, err := db.ExecContext(ctx, rates("129", "valid_from + interval '1 s'", "id", "'admin'", "'"+admin+"'")); err != nil {
		t.Errorf("a rate as it should be: %v", err)
	}
	if _, err := db.ExecContext(ctx, copied(terms, charges)); err != nil {
		t.Errorf("a quote as it should be: %v", err)
	}
	if again, err := b.Quote(ctx, store.Everything(), q.ID); err != nil || again.Canonical() != q.Canonical() || again.Hash != q.Hash || again.Terms.Rate.ID != r.ID {
		t.Errorf("reads as %+v, %v", again, err)
	}
}

// The API enters no rate of a source, and the flows none of a person: neither can hold its rate against one of its own.
func TestProcessesEnterRatesOfTheirOwnKind(t *testing.T) {
	t.Parallel()
	b := newBureau(t)
	b.rate(t, "129", "130")
	b.fed(t, "129", "130")
	enter := func(as store.Role, source, by, want string) {
		t.Helper()
		_, err := storetest.As(t, b.Store, as).ExecContext(t.Context(), `INSERT INTO fx_rates SELECT gen_random_uuid(), base, quote, bid, ask, $1::text,
			valid_from + interval '1 s', stale_at, id, false, $2::uuid, created_at + interval '1 s' FROM fx_rates ORDER BY valid_from DESC LIMIT 1`,
			source, sql.NullString{String: by, Valid: by != ""})
		if sqlState(err) != want {
			t.Errorf("%s enters a rate of %s: %v, want %q", as, source, err, want)
		}
	}
	admin := b.admin.UserID.String()
	enter(store.RoleAPI, "bank", "", "42501")
	enter(store.RoleAPI, "admin", admin, "")
	enter(store.RoleFlows, "admin", admin, "42501")
	enter(store.RoleFlows, "bank", "", "")
}

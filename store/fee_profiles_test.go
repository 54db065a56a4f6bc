package store_test

import (
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

// lineOf is a profile of a line with a percentage, by which a test tells it from others.
func lineOf(t *testing.T, l exchange.FeeLine, points int64) exchange.FeeProfile {
	t.Helper()
	p := exchange.ZeroProfile(l.Scope, l.Asset)
	p.ID, p.FeeLine, p.BasisPoints = storetest.NewID(t), l, points
	return p
}

// The closest profile in force sets the fee: the merchant's own before all others, then the one that names more.
func TestClosestFeeProfileWins(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	merchant, other := storetest.User(t, b.Store, exchange.RoleVendor), storetest.User(t, b.Store, exchange.RoleVendor)
	const deposit = exchange.FeeDeposit
	for points, l := range []exchange.FeeLine{
		1: {Scope: deposit},
		2: {Scope: deposit, Asset: money.USDT},
		3: {Scope: deposit, Asset: money.USDT, Method: exchange.FeeByBank},
		4: {Scope: deposit, MerchantID: merchant.ID},
		5: {Scope: deposit, MerchantID: merchant.ID, Network: exchange.Tron},
		6: {Scope: deposit, Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByMomo},
		7: {Scope: exchange.FeeWithdrawal},
	} {
		if points == 0 {
			continue
		}
		if err := b.agreed(t, lineOf(t, l, int64(points)), b.admin); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		op   exchange.FeeLine
		want int64
	}{
		{exchange.FeeLine{Scope: deposit, Asset: money.KES, Method: exchange.FeeByC2B}, 1},
		{exchange.FeeLine{Scope: deposit, MerchantID: other.ID, Asset: money.USDC, Network: exchange.Tron, Method: exchange.FeeByBank}, 1},
		{exchange.FeeLine{Scope: deposit, Asset: money.USDT, Network: exchange.Solana, Method: exchange.FeeByC2B}, 2},
		{exchange.FeeLine{Scope: deposit, Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByBank}, 3},
		{exchange.FeeLine{Scope: deposit, Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByMomo}, 6},
		{exchange.FeeLine{Scope: deposit, MerchantID: merchant.ID, Asset: money.USDT, Network: exchange.Solana, Method: exchange.FeeByBank}, 4},
		{exchange.FeeLine{Scope: deposit, MerchantID: merchant.ID, Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByMomo}, 5},
		{exchange.FeeLine{Scope: exchange.FeeWithdrawal, Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByMomo}, 7},
		{exchange.FeeLine{Scope: exchange.FeeSwap, Asset: money.USDT, Network: exchange.Tron}, 0},
	} {
		got, err := b.FeeProfileFor(ctx, c.op)
		if err != nil || got.BasisPoints != c.want || got.ID != uuid.Nil && !got.Covers(c.op) {
			t.Errorf("%+v costs %d, want %d, %v", c.op, got.BasisPoints, c.want, err)
		}
	}
}

// A profile that would be as close as another to some operation is refused, by the database too, until that one is retired.
func TestFeeProfilesNeverTie(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	merchant := storetest.User(t, b.Store, exchange.RoleVendor)
	usdtLine := exchange.FeeLine{Scope: exchange.FeeWithdrawal, Asset: money.USDT}
	if err := b.agreed(t, lineOf(t, usdtLine, 10), b.admin); err != nil {
		t.Fatal(err)
	}
	for _, l := range []exchange.FeeLine{
		{Scope: exchange.FeeWithdrawal, Network: exchange.Tron},
		{Scope: exchange.FeeWithdrawal, Method: exchange.FeeByMomo},
	} {
		_, err := b.ProposeProfile(ctx, lineOf(t, l, 20), b.admin)
		wantFault(t, err, exchange.CodeConflict)
	}
	for _, l := range []exchange.FeeLine{
		{Scope: exchange.FeeWithdrawal, Asset: money.USDC},
		{Scope: exchange.FeeWithdrawal, Asset: money.USDT, Network: exchange.Tron},
		{Scope: exchange.FeeWithdrawal, MerchantID: merchant.ID, Network: exchange.Tron},
		{Scope: exchange.FeeDeposit, Network: exchange.Tron},
		{Scope: exchange.FeeWithdrawal, Asset: money.KES},
	} {
		if err := b.agreed(t, lineOf(t, l, 30), b.admin); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	// Two that were proposed at the same time tie when the second is confirmed.
	first, err := b.ProposeProfile(ctx, lineOf(t, exchange.FeeLine{Scope: exchange.FeeSwap, Network: exchange.Tron}, 1), b.admin)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.ProposeProfile(ctx, lineOf(t, exchange.FeeLine{Scope: exchange.FeeSwap, Asset: money.USDC}, 2), b.admin)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, storetest.Agreed(t, b.Store)(first, nil), "")
	wantFault(t, storetest.Agreed(t, b.Store)(second, nil), exchange.CodeConflict)
	// The USDT line ends in an hour; from then on another line may take its place, not before.
	end := exchange.ZeroProfile(exchange.FeeWithdrawal, money.USDT)
	end.ID, end.Retired, end.ValidFrom = storetest.NewID(t), true, b.time.now().Add(time.Hour)
	for _, l := range []exchange.FeeLine{{Scope: exchange.FeeWithdrawal, Asset: money.USDC}, {Scope: exchange.FeeWithdrawal, Asset: money.KES}} {
		p := end
		p.ID, p.FeeLine = storetest.NewID(t), l
		if err := b.agreed(t, p, b.admin); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.agreed(t, end, b.admin); err != nil {
		t.Fatal(err)
	}
	next := lineOf(t, exchange.FeeLine{Scope: exchange.FeeWithdrawal, Method: exchange.FeeByMomo}, 40)
	_, err = b.ProposeProfile(ctx, next, b.admin)
	wantFault(t, err, exchange.CodeConflict)
	next.ValidFrom = end.ValidFrom
	if err := b.agreed(t, next, b.admin); err != nil {
		t.Fatal(err)
	}
	op := exchange.FeeLine{Scope: exchange.FeeWithdrawal, Asset: money.USDT, Network: exchange.Solana, Method: exchange.FeeByMomo}
	for range 2 {
		got, err := b.FeeProfileFor(ctx, op)
		if want := map[bool]int64{true: 10, false: 40}[b.time.now().Before(end.ValidFrom)]; err != nil || got.BasisPoints != want {
			t.Errorf("at %s it costs %d, want %d, %v", b.time.now(), got.BasisPoints, want, err)
		}
		b.time.advance(2 * time.Hour)
	}
	// The line that ended can't come back beside the one that took its place.
	_, err = b.ProposeProfile(ctx, lineOf(t, usdtLine, 10), b.admin)
	wantFault(t, err, exchange.CodeConflict)
}

// What the code might forget the database refuses: other terms than two officers agreed, a version out of turn, a method that a
// scope does not have, somebody who is no merchant, a tie.
func TestDatabaseGuardsFeeProfiles(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	db, customer := storetest.Owner(t, b.Store), storetest.User(t, b.Store, exchange.RoleCustomer)
	if err := b.agreed(t, lineOf(t, exchange.FeeLine{Scope: exchange.FeeDeposit, Asset: money.USDT}, 10), b.admin); err != nil {
		t.Fatal(err)
	}
	const insert = `INSERT INTO fee_profiles (id, scope, merchant_id, asset, network, method, version, fixed, basis_points, minimum, spread_basis_points, note, valid_from, created_by, created_at)
		SELECT gen_random_uuid(), scope, merchant_id, asset, network, method, 2, fixed, basis_points, minimum, spread_basis_points, note, valid_from, created_by, created_at FROM fee_profiles`
	for change, want := range map[string]string{
		"":                            "KV006", // nobody agreed
		"asset, network>NULL, 'tron'": "KV002", // its first version is 1
		"method, 2>'chain', 1":        "KV002",
		"merchant_id, asset, network, method, 2>'" + customer.ID.String() + "', asset, network, method, 1": "KV002",
		"fixed,>0.001,": "KV006",
	} {
		query := insert
		if from, to, ok := strings.Cut(change, ">"); ok {
			at := strings.LastIndex(query, from)
			query = query[:at] + to + query[at+len(from):]
		}
		if _, err := db.ExecContext(ctx, query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	// What two officers agreed begins when they agreed it, not earlier.
	later := lineOf(t, exchange.FeeLine{Scope: exchange.FeeDeposit, Asset: money.USDC}, 30)
	later.ValidFrom = b.time.now().Add(time.Hour)
	c, err := b.ProposeProfile(ctx, later, b.admin)
	if err != nil {
		t.Fatal(err)
	}
	second := storetest.User(t, b.Store, exchange.RoleTreasury)
	for _, from := range []struct{ moment, want string }{{"proposed_at + '1 s'", "KV006"}, {"proposed_at + '2 h'", "KV006"}, {"(change ->> 'valid_from')::timestamptz", ""}} {
		_, err := db.ExecContext(ctx, `UPDATE control_changes SET status = 'confirmed', decided_by = '`+second.ID.String()+`', decided_at = proposed_at WHERE id = '`+c.ID.String()+`';
			INSERT INTO fee_profiles (id, scope, asset, version, fixed, basis_points, minimum, spread_basis_points, note, valid_from, created_by, created_at)
			SELECT (change ->> 'id')::uuid, 'otc_deposit', 'USDC', 1, 0, 30, 0, 0, '', `+from.moment+`, proposed_by, proposed_at FROM control_changes WHERE id = '`+c.ID.String()+`'`)
		if sqlState(err) != from.want {
			t.Errorf("from %s on: %v, want %q", from.moment, err, from.want)
		}
	}
	var scopes []string
	rows, err := db.QueryContext(ctx, `SELECT scope FROM fee_scopes`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		scopes = append(scopes, s)
	}
	if rows.Err() != nil || len(scopes) != len(exchange.FeeScopes()) {
		t.Errorf("the database knows %v", scopes)
	}
	for _, s := range exchange.FeeScopes() {
		if !slices.Contains(scopes, string(s)) {
			t.Errorf("the database does not know %s", s)
		}
	}
}

// The cut-off is 18:00 in Kenya on the next bank day: after weekends, public holidays, and what two officers entered.
func TestCutoffIsOnTheNextBankDay(t *testing.T) {
	t.Parallel()
	ctx, b := t.Context(), newBureau(t)
	cutoff := func(at, want string) {
		t.Helper()
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.BankCutoff(ctx, moment)
		if err != nil || got.In(moment.Location()).Format("2006-01-02T15:04") != want {
			t.Errorf("from %s on it is %s, want %s, %v", at, got, want, err)
		}
	}
	cutoff("2027-03-01T10:00:00+03:00", "2027-03-02T18:00") // a Monday
	cutoff("2027-03-01T23:59:59+03:00", "2027-03-02T18:00")
	cutoff("2027-03-02T00:00:00+03:00", "2027-03-03T18:00")
	cutoff("2027-03-05T09:00:00+03:00", "2027-03-08T18:00") // a Friday
	cutoff("2027-03-06T09:00:00+03:00", "2027-03-08T18:00")
	cutoff("2027-03-25T09:00:00+03:00", "2027-03-30T18:00") // Thursday before Easter
	cutoff("2027-12-10T09:00:00+03:00", "2027-12-14T18:00") // Jamhuri Day is a Sunday
	cutoff("2027-12-24T09:00:00+03:00", "2027-12-28T18:00") // so is Boxing Day
	b.time.advance(time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC).Sub(b.time.now()))
	officer := storetest.PrincipalOf(storetest.User(t, b.Store, exchange.RoleTreasury))
	enter := func(day int, open bool, name string) {
		t.Helper()
		d := exchange.BankDay{Day: time.Date(2027, 3, day, 0, 0, 0, 0, time.UTC), IsOpen: open, Name: name}
		if err := storetest.Agreed(t, b.Store)(b.ProposeBankDay(ctx, d, officer)); err != nil {
			t.Fatal(err)
		}
	}
	enter(10, false, "Idd-ul-Fitr")
	cutoff("2027-03-09T09:00:00+03:00", "2027-03-11T18:00")
	enter(10, true, "The moon was not seen")
	enter(11, false, "Idd-ul-Fitr")
	cutoff("2027-03-09T09:00:00+03:00", "2027-03-10T18:00")
	cutoff("2027-03-10T09:00:00+03:00", "2027-03-12T18:00")
	list, total, err := b.BankDays(ctx, store.BankDayFilter{From: time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2027, 3, 25, 0, 0, 0, 0, time.UTC)}, store.Page{Number: 1, Size: 9})
	if err != nil || total != 2 || !list[0].IsOpen || list[0].Entry != 2 || list[1].IsOpen || list[1].Name != "Idd-ul-Fitr" {
		t.Errorf("listed %+v, %v", list, err)
	}
	_, err = b.ProposeBankDay(ctx, exchange.BankDay{Day: list[1].Day, Name: "Idd-ul-Fitr"}, officer)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = b.ProposeBankDay(ctx, exchange.BankDay{Day: time.Date(2027, 2, 28, 0, 0, 0, 0, time.UTC), Name: "Yesterday"}, officer)
	wantFault(t, err, exchange.CodeInvalid)
	db := storetest.Owner(t, b.Store)
	for query, want := range map[string]string{
		`INSERT INTO bank_days VALUES ('2027-06-02', 1, false, 'A day off', NULL, now())`: "KV006",
		`INSERT INTO bank_days VALUES ('2027-06-02', 2, false, 'A day off', NULL, now())`: "KV002",
		`UPDATE bank_days SET is_open = true`:                                             "KV002",
		`UPDATE bank_week SET is_open = true`:                                             "KV002",
	} {
		if _, err := db.ExecContext(ctx, query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

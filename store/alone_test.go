package store_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// D10: officers who decide alone refund no more together than one may alone.
func TestD10RefundsByMobileMoneyAreSummed(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	first, second := latePayment(t, s, storetest.NewMarket(t, s)), latePayment(t, s, storetest.NewMarket(t, s)) // of 1,295 shillings each
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 2000, two_above = 2000 WHERE object_type = 'refund'`)
	if _, err := s.RefundException(t.Context(), first.ID, officer(t, s)); err != nil {
		t.Fatal(err)
	}
	_, err := s.RefundException(t.Context(), second.ID, officer(t, s))
	wantFault(t, err, exchange.CodeForbidden)
	agree(t, s, second.ID, officer(t, s))
	if _, err := s.RefundException(t.Context(), second.ID, officer(t, s)); err != nil {
		t.Errorf("agreed by two: %v", err)
	}
}

// D10: officers who decide at the same moment see each other's decisions.
func TestD10RefundsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var late []exchange.PaymentException
	var by []exchange.Principal
	for range 6 {
		late, by = append(late, latePayment(t, s, storetest.NewMarket(t, s))), append(by, officer(t, s))
	}
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 2000, two_above = 2000 WHERE object_type = 'refund'`)
	codes := atOnce(len(late), func(i int) error {
		_, err := s.RefundException(t.Context(), late[i].ID, by[i])
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeForbidden] != len(late)-1 {
		t.Errorf("outcomes %v, want one refund of 1,295 shillings below 2,000 in all", codes)
	}
}

// D10: while one transaction sums what officers return from the float, another waits for it.
func TestD10DecisionsWaitForOneAnother(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	late, by := latePayment(t, s, storetest.NewMarket(t, s)), officer(t, s)
	db := storetest.Owner(t, s)
	deciding, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = deciding.Rollback() }()
	if _, err := deciding.ExecContext(t.Context(), `SELECT lock_release(jsonb_populate_record(NULL::releases, '{"purpose": "refund", "source": "momo_payout", "exempt": ""}'))`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.RefundException(t.Context(), late.ID, by)
		done <- err
	}()
	waitsFor(t, db, done)
	if err := deciding.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// decides reads what a function of the database says about a row, or about another one with the same terms.
func decides[T any](t *testing.T, s *store.Store, query string, args ...any) T {
	t.Helper()
	var said T
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), query, args...).Scan(&said); err != nil {
		t.Fatal(err)
	}
	return said
}

// D10: what one officer confirmed at the bank counts with the next payout.
func TestD10BankPayoutsAreSummed(t *testing.T) {
	t.Parallel()
	x := banking(t)
	storetest.Exec(t, x.s, `UPDATE approval_rules SET one_above = 2000, two_above = 2000 WHERE object_type = 'bank_payout'`)
	const first = `SELECT release_officers(r, now()) FROM releases r WHERE r.object_id = $1`
	const another = `SELECT release_officers(jsonb_populate_record(r, '{"id": "0192f0a0-0000-7000-8000-00000000000d", "recipient": "bank:another"}'), now()) FROM releases r WHERE r.object_id = $1`
	if n := decides[int](t, x.s, first, x.order.ID); n != 1 {
		t.Errorf("the first of 1,293 shillings needs %d", n)
	}
	if done, err := x.confirm(t, x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT1")); err != nil || !done {
		t.Fatalf("by one officer: %t, %v", done, err)
	}
	if n := decides[int](t, x.s, another, x.order.ID); n != 2 {
		t.Errorf("another of as much needs %d", n)
	}
}

// D10: what one officer attested as paid counts with the next receipt.
func TestD10ReceiptsAreSummed(t *testing.T) {
	t.Parallel()
	x := owing(t)
	a := x.unreported(t, exchange.Unknown)
	one, _ := x.officers(t)
	obs := exchange.Observation{State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Receipt: "UKL0000001"}
	if err := x.s.SettlePayout(t.Context(), exchange.OrderObject(x.order.ID), a.ID, obs, one); err != nil {
		t.Fatal(err)
	}
	if sum := decides[string](t, x.s, `SELECT trim_scale(attested_alone(gen_random_uuid()))`); sum != "1293" {
		t.Errorf("beside another object %s shillings count", sum)
	}
	if sum := decides[string](t, x.s, `SELECT trim_scale(attested_alone($1))`, x.order.ID); sum != "0" {
		t.Errorf("beside the object itself %s shillings count", sum)
	}
}

// D10: what goes back in crypto counts with the next refund to its address.
func TestD10CryptoRefundsAreSummed(t *testing.T) {
	t.Parallel()
	x := taken(t)
	x.says(t)
	x.refuses(t, true)
	r := x.opensRefund(t)
	storetest.Exec(t, x.s, `UPDATE approval_rules SET one_above = $1, two_above = $1 WHERE object_type = 'refund'`, r.Value.Decimal())
	if n := decides[int](t, x.s, `SELECT release_officers(r, now()) FROM releases r WHERE r.object_id = $1`, r.ID); n == 2 {
		t.Error("the first needs two")
	}
	const another = `SELECT release_officers(jsonb_populate_record(r, '{"id": "0192f0a0-0000-7000-8000-00000000000d"}'), now()) FROM releases r WHERE r.object_id = $1`
	if n := decides[int](t, x.s, another, r.ID); n != 2 {
		t.Errorf("another to the same address needs %d", n)
	}
}

// D12: the database itself lets nobody loosen a control alone.
func TestD12NobodyLoosensAlone(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	admin := storetest.User(t, s, exchange.RoleAdmin)
	by := storetest.PrincipalOf(admin)
	if _, err := s.Deny(t.Context(), exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: stranger, Reason: "why"}, by); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Freeze(t.Context(), storetest.NewID(t), "why", by); err != nil {
		t.Fatal(err)
	}
	who := "'" + admin.ID.String() + "'"
	for _, query := range []string{
		`UPDATE deny_list SET removed_at = now(), removed_by = ` + who,
		`INSERT INTO fee_profiles (id, scope, asset, version, fixed, basis_points, minimum, spread_basis_points, note, valid_from, created_by, created_at)
			VALUES (gen_random_uuid(), 'transfer', 'USDT', 1, 0, 0, 0, 0, '', now(), ` + who + `, now())`,
		`UPDATE freezes SET lifted_at = now(), change_id = gen_random_uuid()`,
	} {
		if _, err := storetest.Owner(t, s).ExecContext(t.Context(), query); sqlState(err) != "KV006" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

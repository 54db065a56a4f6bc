package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Two copies of one database are two databases.
func TestCopiesHaveIdentitiesOfTheirOwn(t *testing.T) {
	t.Parallel()
	identity := func() (id string) {
		if err := storetest.Owner(t, storetest.New(t)).QueryRowContext(t.Context(), `SELECT database_identity()`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	if one, two := identity(), identity(); one == two || one == "" {
		t.Errorf("both are %q", one)
	}
}

// D4: a database that was put back from a backup paid shillings again that had left since. Now it pays nothing, prompts nobody
// and moves no float until two officers, who see the operator's report beside the books, have released it.
func TestD4_NothingIsSentFromADatabaseThatWasPutBack(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	collected(t, s, "300000")
	paid, _ := underpaid(t, s)
	if _, err := completeRefund(t, s, paid.ID, payout(t, s, paid).ID, storetest.Paid(t, paid.Amount)); err != nil {
		t.Fatal(err) // the first requests released the database
	}
	owed, _ := underpaid(t, s)
	move := beginMove(t, b, "100", b.officer)
	m := storetest.NewMarket(t, s)
	order := m.Order(t, s, "10")
	storetest.PutBack(t, s)

	if got := breaker(t, s).State(); got != exchange.BreakerMoved {
		t.Errorf("the breaker is %s", got)
	}
	begin := func() error {
		_, err := s.BeginPayout(ctx, exchange.RefundObject(owed.ID), exchange.PaymentAttempt{ID: uuid.New(), Provider: operator, Reference: "REFUND"})
		return err
	}
	wantFault(t, begin(), exchange.CodeSuspended)
	a, created, err := s.BeginCollection(ctx, exchange.OrderObject(order.ID), exchange.PaymentAttempt{ID: uuid.New(), Provider: operator, CallbackToken: "t"})
	if err != nil || created || a.Status != exchange.AttemptRefused || a.ResultCode != store.PromptMoved || a.CallbackToken != "" {
		t.Errorf("a prompt is %s with %q, created %t, %v", a.Status, a.ResultCode, created, err)
	}
	claim := exchange.FloatMove{ID: move.ID, CallbackToken: "one", StatusToken: "two"}
	_, _, err = s.ClaimFloatMove(ctx, claim)
	wantFault(t, err, exchange.CodeSuspended)

	_, err = s.ProposeRelease(ctx, "a report is missing", b.officer)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := s.RecordFloatReport(ctx, report("AG_release", "1000")); err != nil {
		t.Fatal(err)
	}
	c, err := s.ProposeRelease(ctx, "compared with the portal's statement", b.officer)
	if err != nil || c.Kind != exchange.ControlDatabaseRelease {
		t.Fatalf("%+v, %v", c, err)
	}
	var shown map[string]any
	if err := json.Unmarshal(c.Change, &shown); err != nil || shown["report"] != "AG_release" || shown["utility"] != "1000" || shown["difference"] == "" ||
		shown["owed"] != 1.0 || shown["owed_amount"] != "1000" || shown["parked"] != 0.0 {
		t.Errorf("the second officer sees %v, %v", shown, err)
	}
	_, err = s.ConfirmChange(ctx, c.ID, "", b.officer)
	b.wantForbidden(err)
	wantFault(t, begin(), exchange.CodeSuspended)
	if _, err := s.ConfirmChange(ctx, c.ID, "", b.one); err != nil {
		t.Fatal(err)
	}
	if got := breaker(t, s); got.State() != exchange.BreakerClosed || got.ResumedAt().IsZero() {
		t.Errorf("the breaker is %s since %v", got.State(), got.ResumedAt())
	}
	if err := begin(); err != nil {
		t.Errorf("a payout after the release: %v", err)
	}
	if _, first, err := s.ClaimFloatMove(ctx, claim); err != nil || !first {
		t.Errorf("a movement of float after the release: %t, %v", first, err)
	}
	_, err = s.ProposeRelease(ctx, "again", b.officer)
	wantFault(t, err, exchange.CodeStateConflict)
}

// The database itself lets no release pass that two officers did not confirm.
func TestD4_NobodyReleasesAlone(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	storetest.Attempt(t, s, m.Order(t, s, "10"))
	storetest.Attempt(t, s, m.Order(t, s, "10"))
	storetest.PutBack(t, s)
	for _, query := range []string{
		`INSERT INTO database_releases (identity) VALUES (database_identity())`,
		`INSERT INTO database_releases (identity, change_id) VALUES (database_identity(), gen_random_uuid())`,
		`UPDATE database_releases SET identity = database_identity()`,
		`DELETE FROM database_releases`,
		`TRUNCATE database_releases`,
	} {
		if _, err := storetest.Owner(t, s).ExecContext(t.Context(), query); sqlState(err) == "" {
			t.Errorf("%s is taken", query)
		}
	}
}

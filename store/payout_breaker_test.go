package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/momo/daraja"
	"kivuko/store"
	"kivuko/store/pg"
	"kivuko/store/storetest"
)

// The database counts exactly the classes that the code counts, and knows all of them.
func TestClassesThatStopPayoutsAreTheDatabases(t *testing.T) {
	t.Parallel()
	for _, class := range []exchange.OutcomeClass{
		"", exchange.ClassPayee, exchange.ClassPayeeLimit, exchange.ClassFloat, exchange.ClassBusy, exchange.ClassConfig, exchange.ClassCredential,
		exchange.ClassAccount, exchange.ClassDenied, exchange.ClassDeclined, exchange.ClassPayer, exchange.ClassUnanswered,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			refund, _ := underpaid(t, s)
			a := payout(t, s, refund)
			kept, err := s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "7", Class: class})
			if err != nil {
				t.Fatal(err)
			}
			if stored, err := s.Attempt(t.Context(), a.ID); err != nil || stored.ResultClass != class || kept.ResultClass != class {
				t.Errorf("stored as %q, %v", stored.ResultClass, err)
			}
			if counted := breaker(t, s).Hits == 1; counted != class.StopsPayouts() {
				t.Errorf("the database counts it: %t, the code %t", counted, class.StopsPayouts())
			}
		})
	}
}

// The database takes no code of the operator as a class, and no officer's receipt of money that did not move.
func TestClassesAreGuarded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	refund, _ := underpaid(t, s)
	a := payout(t, s, refund)
	for constraint, set := range map[string]string{
		"payment_attempts_result_class_check": `result_class = '2040'`,
		"payment_attempts_class":              `result_class = 'attested', receipt = 'UKL0000001', moved = amount`,
	} {
		_, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE payment_attempts SET status = 'failed', `+set+`, version = version + 1 WHERE id = $1`, a.ID)
		if !pg.Broke(err, constraint) {
			t.Errorf("%s: %v", constraint, err)
		}
	}
}

const operator = "daraja"

func breaker(t *testing.T, s *store.Store) exchange.Breaker {
	t.Helper()
	b, err := s.Breaker(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// failed is a payout of a separate refund that the provider reports as failed.
func failed(t *testing.T, s *store.Store, code string) exchange.Refund {
	t.Helper()
	refund, _ := underpaid(t, s)
	a := payout(t, s, refund)
	if _, err := s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: code, Class: daraja.Classify(exchange.Payout, code)}); err != nil {
		t.Fatal(err)
	}
	return refund
}

func begin(ctx context.Context, s *store.Store, r exchange.Refund) error {
	_, err := s.BeginPayout(ctx, exchange.RefundObject(r.ID), exchange.PaymentAttempt{ID: uuid.New(), Provider: operator, Reference: "Refund"})
	return err
}

// Two refusals of our credential in a row stop every payout until an officer closes the breaker; then one payout at a
// time is tried until the provider accepts one.
func TestBreakerStopsPayouts(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	failed(t, s, "2001")
	if b := breaker(t, s); b.State() != exchange.BreakerClosed || b.Hits != 1 {
		t.Fatalf("after one refusal it is %+v", b)
	}
	failed(t, s, "2040") // the provider processed this one, so the credential is valid
	if b := breaker(t, s); b.State() != exchange.BreakerClosed {
		t.Fatalf("after a result about the payee it is %+v", b)
	}
	failed(t, s, "2001")
	failed(t, s, "TP40153")
	b := breaker(t, s)
	if b.State() != exchange.BreakerOpen || b.Code != "TP40153" || b.OpenedAt.IsZero() {
		t.Fatalf("after two in a row it is %+v", b)
	}
	first, _ := underpaid(t, s)
	second, _ := underpaid(t, s)
	wantFault(t, begin(ctx, s, first), exchange.CodeSuspended)
	if r, err := s.Refund(ctx, first.ID); err != nil || r.Status != exchange.RefundPending {
		t.Fatalf("a refund that was not sent is %s, %v", r.Status, err)
	}

	waits, err := s.ProposeBreakerClosed(ctx, operator, "a new password", officer)
	if b, readErr := s.Breaker(ctx, operator); err != nil || readErr != nil || b.State() != exchange.BreakerOpen {
		t.Fatalf("after one officer's word it is %+v, %v, %v", b, err, readErr)
	}
	_, err = s.ConfirmChange(ctx, waits.ID, "", officer)
	wantFault(t, err, exchange.CodeForbidden)
	colleague := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	if _, err := s.ConfirmChange(ctx, waits.ID, "", colleague); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Breaker(ctx, operator); err != nil || b.State() != exchange.BreakerTrial || b.ClosedBy != colleague.UserID {
		t.Errorf("closed it is %+v, %v", b, err)
	}
	_, err = s.ProposeBreakerClosed(ctx, operator, "again", officer)
	wantFault(t, err, exchange.CodeStateConflict)
	trial := payout(t, s, first)
	wantFault(t, begin(ctx, s, second), exchange.CodeSuspended) // one at a time
	if _, err := completeRefund(t, s, first.ID, trial.ID, storetest.Paid(t, first.Amount)); err != nil {
		t.Fatal(err)
	}
	if b := breaker(t, s); b.State() != exchange.BreakerClosed {
		t.Errorf("after a payout it is %+v", b)
	}
	if err := begin(ctx, s, second); err != nil {
		t.Errorf("the next payout: %v", err)
	}
}

// A single refusal of our credential stops only its own payout, and the same payout refused again counts once. A payee
// refused before later payouts succeeded is no longer evidence against the credential.
func TestBreakerStopsWhatIsProven(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	refused := func(r exchange.Refund, code string) {
		t.Helper()
		a := payout(t, s, r)
		if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: code, Class: daraja.Classify(exchange.Payout, code)}); err != nil {
			t.Fatal(err)
		}
		if _, err := failRefund(t, s, r.ID, code); err != nil {
			t.Fatal(err)
		}
	}
	hits := func(want int, when string) {
		t.Helper()
		if b := breaker(t, s); b.Hits != want || b.State() != exchange.BreakerClosed {
			t.Fatalf("%s the breaker is %+v, want %d hits", when, b, want)
		}
	}
	bad, _ := underpaid(t, s)
	refused(bad, "2001")
	refused(bad, "2001")
	hits(1, "after two refusals of one payout")
	good, _ := underpaid(t, s)
	setPhone(t, s, good, "254711111111")
	if _, err := completeRefund(t, s, good.ID, payout(t, s, good).ID, storetest.Paid(t, good.Amount)); err != nil {
		t.Fatal(err)
	}
	hits(0, "after a payout")
	refused(bad, "2001")
	hits(0, "after the payee was refused again")
	for i, phone := range []string{"254722222222", "254733333333"} {
		other, _ := underpaid(t, s)
		setPhone(t, s, other, phone)
		a := payout(t, s, other)
		if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
			t.Fatal(err)
		}
		if b := breaker(t, s); b.Hits != i+1 {
			t.Errorf("after %d payees were refused the breaker is %+v", i+1, b)
		}
	}
	if b := breaker(t, s); b.State() != exchange.BreakerOpen {
		t.Errorf("after two payees in a row it is %+v", b)
	}
}

// setPhone names another payee of a refund.
func setPhone(t *testing.T, s *store.Store, r exchange.Refund, phone string) {
	t.Helper()
	storetest.Exec(t, s, `SET session_replication_role = replica; UPDATE refunds SET phone = '`+phone+`' WHERE id = '`+r.ID.String()+`';
		UPDATE releases SET recipient = 'momo:`+phone+`' WHERE object_id = '`+r.ID.String()+`'; SET session_replication_role = origin`)
}

// One payout at a time is on trial, whatever was open before and whether or not it is ever answered.
func TestTrialIsNotHeldUp(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	silent, _ := underpaid(t, s)
	payout(t, s, silent) // nothing is ever said of it
	failed(t, s, "8006")
	failed(t, s, "8006")
	if err := storetest.Agreed(t, s)(s.ProposeBreakerClosed(ctx, operator, "unlocked", officer)); err != nil {
		t.Fatal(err)
	}
	first, _ := underpaid(t, s)
	second, _ := underpaid(t, s)
	payout(t, s, first) // although another payout is open
	wantFault(t, begin(ctx, s, second), exchange.CodeSuspended)
	storetest.Exec(t, s, `SET session_replication_role = replica; UPDATE payment_attempts SET created_at = created_at - interval '121 seconds';
		UPDATE momo_breakers SET closed_at = closed_at - interval '121 seconds'; SET session_replication_role = origin`)
	if err := begin(ctx, s, second); err != nil {
		t.Errorf("a payout that is not answered holds the next one up: %v", err)
	}
}

// A sale by mobile money is refused while payouts are suspended, one by bank is not.
func TestSalesAreRefusedWhileSuspended(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewSellers(t, s)
	failed(t, s, "2001")
	failed(t, s, "2001")
	r := exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell, Phone: "254712345678",
		ExpiresAt: time.Now().Add(exchange.OffRampLife),
	}
	for _, provider := range []string{operator, ""} {
		r.Provider = provider
		_, err := storetest.OpenOffRamp(t.Context(), s, r, storetest.By)
		wantFault(t, err, exchange.CodeSuspended)
	}
	r.Provider = "another"
	if _, err := storetest.OpenOffRamp(t.Context(), s, r, storetest.By); err != nil {
		t.Errorf("a sale that another operator pays out: %v", err)
	}
	m.RemittanceToBank(t, s)
}

// A trial that is refused opens the breaker again.
func TestBreakerOpensAgain(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	failed(t, s, "8006")
	failed(t, s, "8006")
	if err := storetest.Agreed(t, s)(s.ProposeBreakerClosed(ctx, operator, "unlocked", officer)); err != nil {
		t.Fatal(err)
	}
	failed(t, s, "8006")
	if b := breaker(t, s); b.State() != exchange.BreakerOpen {
		t.Errorf("it is %+v", b)
	}
}

// One source's report that our credential was refused for a payout counts at once and only once.
func TestCredentialIsNotedOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	refund, _ := underpaid(t, s)
	a := payout(t, s, refund)
	for _, code := range []string{"2001", "2001"} {
		if err := s.NoteCredential(ctx, a.ID, code); err != nil {
			t.Fatal(err)
		}
	}
	if b := breaker(t, s); b.Hits != 1 || b.Code != "2001" {
		t.Errorf("noted it is %+v", b)
	}
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	if b := breaker(t, s); b.Hits != 1 {
		t.Errorf("settled it is %+v", b)
	}
	if err := s.NoteCredential(ctx, a.ID, "2001"); err != nil {
		t.Fatal(err)
	}
	if b := breaker(t, s); b.Hits != 1 {
		t.Errorf("a settled payout counts again: %+v", b)
	}
}

// Only payout results open the breaker, and only an officer closes it.
func TestBreakerIsGuarded(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	customer := storetest.User(t, s, exchange.RoleCustomer)
	officer := storetest.User(t, s, exchange.RoleTreasury)
	failed(t, s, "2001")
	failed(t, s, "2001")
	for _, query := range []string{
		`UPDATE momo_breakers SET hits = 0, opened_at = NULL, closed_at = now(), closed_by = '` + officer.ID.String() + `'`,
		`UPDATE momo_breakers SET hits = 1, opened_at = NULL`,
		`UPDATE momo_breakers SET hits = 1, opened_at = NULL, closed_at = now(), closed_by = '` + customer.ID.String() + `'`,
		`UPDATE momo_breakers SET hits = 5`,
		`INSERT INTO momo_breakers (provider, hits) VALUES ('other', 0)`,
		`DELETE FROM momo_breakers`,
		`TRUNCATE momo_breakers`,
		`DELETE FROM momo_credential_hits`,
	} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query); sqlState(err) != "KV002" && sqlState(err) != "KV006" && sqlState(err) != "23514" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

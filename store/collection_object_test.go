package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// testObject is an object of the type that exists in tests only.
type testObject struct {
	s     *store.Store
	of    exchange.MomoObject
	owner exchange.User
	want  exchange.Collectable
}

func newTestObject(t *testing.T) testObject {
	t.Helper()
	s := storetest.New(t)
	storetest.Exec(t, s, store.TestTypeSchema)
	owner := storetest.User(t, s, exchange.RoleCustomer)
	of := exchange.MomoObject{Type: store.TestType, ID: storetest.NewID(t)}
	storetest.Exec(t, s, `INSERT INTO tests (id, owner_id, amount, phone, reference) VALUES ($1, $2, 500, '254712345678', 'KVTESTOBJECT')`, of.ID, owner.ID)
	want, err := s.Collectable(t.Context(), of)
	if err != nil || !want.Waits {
		t.Fatalf("wants %+v, %v", want, err)
	}
	return testObject{s, of, owner, want}
}

func (c testObject) attempt(t *testing.T) exchange.PaymentAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a, created, err := c.s.BeginCollection(t.Context(), c.of, exchange.PaymentAttempt{ID: id, Provider: "daraja", CallbackToken: "token-" + id.String(), WorkflowID: "test:x"})
	if err != nil || !created || a.Object != c.of || !a.Amount.Equal(c.want.Amount) || a.Phone != c.want.Phone || a.OrderID != uuid.Nil {
		t.Fatalf("begun %+v, %t, %v", a, created, err)
	}
	return a
}

// Whatever wants mobile money is prompted for, found by its reference and booked by the same rules: each kind of payment
// once by its receipt, with its exception where the object does not take it.
func TestMoneyIsCollectedForAnyObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pay       []string
		kind      exchange.PaymentKind
		exception exchange.ExceptionKind
		status    string
		booked    map[exchange.AccountKind]string
	}{
		"exact": {pay: []string{"500"}, kind: exchange.PaidExact, status: "paid", booked: map[exchange.AccountKind]string{exchange.AccCapital: "500"}},
		"too much": {
			pay: []string{"620"}, kind: exchange.PaidOver, exception: exchange.ExcOver, status: "paid",
			booked: map[exchange.AccountKind]string{exchange.AccCapital: "500", exchange.AccSuspense: "120"},
		},
		"a little too much": {
			pay: []string{"502"}, kind: exchange.PaidOver, exception: exchange.ExcOver, status: "paid",
			booked: map[exchange.AccountKind]string{exchange.AccCapital: "500", exchange.AccUnclaimed: "2"},
		},
		"too little": {
			pay: []string{"400"}, kind: exchange.PaidUnder, exception: exchange.ExcUnder, status: "failed",
			booked: map[exchange.AccountKind]string{exchange.AccSuspense: "400"},
		},
		"twice": {
			pay: []string{"500", "500"}, kind: exchange.PaidDuplicate, exception: exchange.ExcDuplicate, status: "paid",
			booked: map[exchange.AccountKind]string{exchange.AccCapital: "500", exchange.AccSuspense: "500"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, x := t.Context(), newTestObject(t)
			a := x.attempt(t)
			total, out := money.Must(money.KES, "0"), exchange.PaymentOutcome{}
			for _, amount := range c.pay {
				obs := storetest.Paid(t, money.Must(money.KES, amount))
				obs.Reference, obs.At = " kvtestobject ", time.Now()
				notice := obs
				notice.Source = exchange.SourceConfirmation
				if taken, err := x.s.TakeReceipt(ctx, notice); err != nil || (out.Kind == "" && taken.Waiting.Object != x.of) {
					t.Fatalf("the notice finds %+v, %v", taken.Waiting, err)
				}
				var err error
				if out, err = x.s.AcceptPayment(ctx, a.ID, storetest.Listed(t, x.s, obs), time.Time{}); err != nil {
					t.Fatal(err)
				}
				if again, err := x.s.AcceptPayment(ctx, a.ID, obs, time.Time{}); err != nil || again.Kind != exchange.PaidKnown || again.Exception.ID != out.Exception.ID {
					t.Errorf("accepted again: %+v, %v", again, err)
				}
				if p := onlyC2B(t, x.s, obs.Receipt); p.Status != exchange.C2BMatched || p.Object != x.of || p.AttemptID != a.ID {
					t.Errorf("the payment is %+v", p)
				}
				total = total.Add(obs.Amount)
			}
			if out.Kind != c.kind || out.Object.Status != c.status || out.Order.ID != uuid.Nil || out.Refund.ID != uuid.Nil || out.Exception.Kind != c.exception {
				t.Errorf("%+v", out)
			}
			if got, err := x.s.Collectable(ctx, x.of); err != nil || got.Status != c.status || got.Waits {
				t.Errorf("afterwards %+v, %v", got, err)
			}
			for account, want := range c.booked {
				wantBalance(t, x.s, exchange.House(account, money.KES), want, "0")
			}
			wantBalance(t, x.s, exchange.House(exchange.AccMomoCollection, money.KES), total.String(), "0")
			wantBooks(t, x.s)
		})
	}
}

// The owner of the object reads the events of its attempts and exceptions, and an officer keeps the money of one.
func TestCollectionBelongsToItsOwner(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), newTestObject(t)
	a := x.attempt(t)
	if err := x.s.SetCollectionDetail(ctx, x.of, exchange.WaitPayment); err != nil {
		t.Fatal(err)
	}
	if got, err := x.s.Collectable(ctx, x.of); err != nil || got.Detail != exchange.WaitPayment {
		t.Errorf("waits %+v, %v", got, err)
	}
	out, err := x.s.AcceptPayment(ctx, a.ID, storetest.Listed(t, x.s, storetest.Paid(t, money.Must(money.KES, "400"))), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	officer := storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleTreasury))
	_, err = x.s.RefundException(ctx, out.Exception.ID, officer)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := x.s.ResolveException(ctx, out.Exception.ID, exchange.ExcAccepted, "agreed with the payer", officer); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	settle(t, func() bool { // transactions of other tests hold back the end of the log
		events, err := x.s.Events(ctx, store.ViewOf(storetest.PrincipalOf(x.owner), exchange.ActReadEvents), 0, store.MaxEvents)
		if err != nil {
			t.Fatal(err)
		}
		clear(seen)
		for _, e := range events {
			seen[e.Type]++
		}
		return seen["payment_exception.accepted"] > 0
	})
	if seen["payment_attempt.created"] != 1 || seen["payment_attempt.succeeded"] != 1 || seen["payment_exception.opened"] != 1 || seen["payment_exception.accepted"] != 1 {
		t.Errorf("the owner reads %v", seen)
	}
	wantBooks(t, x.s)
}

// As it is shipped, the database knows orders and refunds, and collects only for orders.
func TestDatabaseKnowsTheTypesOfObjects(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	o := storetest.NewMarket(t, s).Order(t, s, "10")
	for name, c := range map[string]struct{ kind, direction, want string }{
		"an unknown type":           {"test", "collection", "23514"},
		"no type":                   {"", "payout", "KV006"}, // it has no release
		"a collection for a refund": {"refund", "collection", "23514"},
		"a collection for an order": {"order", "collection", ""},
	} {
		tx, err := storetest.Owner(t, s).BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
			VALUES (gen_random_uuid(), $1, $2, $3, 'daraja', 'created', 'KES', $4, $5, $6, now())`, c.direction, c.kind, o.ID, o.Price.Fiat.Decimal(), o.PaymentPhone.Digits(), o.PaymentReference)
		_ = tx.Rollback()
		if got := sqlState(err); got != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What the code never does, the database refuses.
func TestDatabaseGuardsCollectionsOfAnyObject(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), newTestObject(t)
	m := storetest.NewMarket(t, x.s)
	o, sold := m.Order(t, x.s, "10"), m.Order(t, x.s, "5")
	paid := storetest.Attempt(t, x.s, sold)
	receipt := storetest.Paid(t, sold.Price.Fiat)
	if _, err := x.s.AcceptPayment(ctx, paid.ID, receipt, time.Time{}); err != nil {
		t.Fatal(err)
	}
	attempt := func(kind string, object uuid.UUID, direction, amount, phone string) string {
		return `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
			VALUES (gen_random_uuid(), '` + direction + `', '` + kind + `', '` + object.String() + `', 'daraja', 'created', 'KES', ` + amount + `, '` + phone + `',
				coalesce((SELECT payment_reference FROM orders WHERE id = '` + object.String() + `'), 'X'), now());`
	}
	price, phone := o.Price.Fiat.String(), o.PaymentPhone.Digits()
	collect := func(named string, a exchange.PaymentAttempt, of exchange.MomoObject) string {
		return `INSERT INTO collections (receipt, attempt_id, object_type, object_id, kind, asset, amount, created_at)
			VALUES ('` + named + `', '` + a.ID.String() + `', '` + string(of.Type) + `', '` + of.ID.String() + `', 'late', 'KES', ` + a.Amount.String() + `, now())`
	}
	open := x.attempt(t)
	for name, c := range map[string]struct{ query, want string }{
		"an unknown type":                   {attempt("deposit", o.ID, "collection", price, phone), "23514"},
		"no such order":                     {attempt("order", uuid.New(), "collection", price, phone), "KV001"},
		"an order as another object":        {attempt("test", o.ID, "collection", "500", "254712345678"), "KV001"},
		"another object as an order":        {attempt("order", x.of.ID, "collection", "500", "254712345678"), "KV001"},
		"a collection for a refund":         {attempt("refund", o.ID, "collection", price, phone), "23514"},
		"a payout of no refund":             {attempt("refund", o.ID, "payout", price, phone), "KV002"},
		"more than the order wants":         {attempt("order", o.ID, "collection", price+"+ 1", phone), "KV001"},
		"another phone than the payer's":    {attempt("order", o.ID, "collection", price, "254700000001"), "KV001"},
		"for an order that is paid":         {attempt("order", sold.ID, "collection", sold.Price.Fiat.String(), sold.PaymentPhone.Digits()), "KV001"},
		"what the order wants":              {attempt("order", o.ID, "collection", price, phone), ""},
		"two open prompts of an order":      {attempt("order", o.ID, "collection", price, phone) + attempt("order", o.ID, "collection", price, phone), "23505"},
		"two open prompts of another":       {attempt("test", x.of.ID, "collection", "500", "254712345678"), "23505"},
		"a prompt that changes its order":   {`UPDATE payment_attempts SET object_id = '` + o.ID.String() + `' WHERE id = '` + paid.ID.String() + `'`, "KV002"},
		"a prompt that changes its type":    {`UPDATE payment_attempts SET object_type = 'order' WHERE id = '` + open.ID.String() + `'`, "KV002"},
		"a receipt twice":                   {collect(receipt.Receipt, paid, paid.Object), "23505"},
		"money of no successful prompt":     {collect("UKL0000009", open, x.of), "KV002"},
		"money of another's prompt":         {collect("UKL0000009", paid, x.of), "23503"},
		"money of a missing object":         {collect("UKL0000009", paid, exchange.OrderObject(uuid.New())), "23503"},
		"money that changes its object":     {`UPDATE collections SET object_id = '` + o.ID.String() + `'`, "KV002"},
		"a payment that changes its object": {`UPDATE c2b_payments SET object_id = '` + o.ID.String() + `'`, "KV002"},
		"a payment of another's prompt":     {`UPDATE c2b_payments SET status = 'unmatched', object_type = NULL`, "KV002"},
		"a payment matched without its object": {`INSERT INTO c2b_payments (id, receipt, status, asset, amount, reference, party_hash, paid_at, created_at, updated_at)
			VALUES (gen_random_uuid(), 'UKL0000008', 'unmatched', 'KES', 1, '', '', now(), now(), now());
			UPDATE c2b_payments SET status = 'matched', attempt_id = '` + open.ID.String() + `', booked_at = now() WHERE receipt = 'UKL0000008'`, "23514"},
		"a payment matched with another's prompt": {`INSERT INTO c2b_payments (id, receipt, status, asset, amount, reference, party_hash, paid_at, created_at, updated_at)
			VALUES (gen_random_uuid(), 'UKL0000008', 'unmatched', 'KES', 1, '', '', now(), now(), now());
			UPDATE c2b_payments SET status = 'matched', attempt_id = '` + open.ID.String() + `', object_type = 'order', object_id = '` + o.ID.String() + `', booked_at = now()
			WHERE receipt = 'UKL0000008'`, "23503"},
	} {
		tx, err := storetest.Owner(t, x.s).BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(ctx, c.query)
		if err == nil {
			_, err = tx.ExecContext(ctx, `SET CONSTRAINTS ALL IMMEDIATE`)
		}
		_ = tx.Rollback()
		if got := sqlState(err); got != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	_, _, err := x.s.BeginCollection(ctx, exchange.MomoObject{Type: "deposit", ID: o.ID}, exchange.PaymentAttempt{ID: storetest.NewID(t)})
	wantFault(t, err, exchange.CodeUnsupported)
	_, err = x.s.BeginPayout(ctx, x.of, exchange.PaymentAttempt{ID: storetest.NewID(t)})
	wantFault(t, err, exchange.CodeUnsupported)
}

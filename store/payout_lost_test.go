package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// lost books a payout of an object that the database does not know.
func lost(t *testing.T, x *sale, receipt string) error {
	t.Helper()
	return x.s.BookLostPayout(t.Context(), exchange.OrderObject(x.order.ID), exchange.PaymentAttempt{ID: uuid.New(), Provider: "daraja"}, receipt)
}

// D4: a sale was paid before its database was put back, and no row knows. Two officers attest it by its receipt; it is booked once,
// and nothing is sent for it after the release.
func TestD4_ALostPayoutIsBookedAndNotSent(t *testing.T) {
	t.Parallel()
	for name, books := range map[string]bool{"by resolve": true, "by the next try": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := owing(t)
			ctx, s := t.Context(), x.s
			another := payout(t, s, first(underpaid(t, s))) // the first request releases the database
			one, two := x.officers(t)
			of := exchange.OrderObject(x.order.ID)
			wantFault(t, lost(t, x, "UKL0000001"), exchange.CodeStateConflict)
			storetest.PutBack(t, s)
			_, err := x.begin(ctx, s, 1)
			wantFault(t, err, exchange.CodeSuspended)
			wantFault(t, lost(t, x, "UKL0000001"), exchange.CodeStateConflict)
			if second, err := s.ReceiptNeedsSecond(ctx, of, "UKL0000001"); err != nil || !second {
				t.Errorf("a second officer is needed: %t, %v", second, err)
			}
			c, err := s.ProposeReceipt(ctx, of, "UKL0000001", one)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.ConfirmChange(ctx, c.ID, "", one)
			wantFault(t, err, exchange.CodeForbidden)
			if _, err := s.ConfirmChange(ctx, c.ID, "", two); err != nil {
				t.Fatal(err)
			}
			_, _, err = s.OpenChainRefund(ctx, exchange.ChainRefundRequest{OrderID: x.order.ID, Reason: "refused"}, storetest.By)
			wantFault(t, err, exchange.CodeStateConflict) // it was paid
			wantFault(t, lost(t, x, "UKL0000002"), exchange.CodeStateConflict)
			for range 2 {
				if books {
					if err := lost(t, x, "UKL0000001"); err != nil {
						t.Fatal(err)
					}
				} else if a := x.begun(t, 1); a.Status != exchange.AttemptSucceeded || a.CallbackToken != "" || a.Receipt != "UKL0000001" {
					t.Errorf("the next try is %+v", a)
				}
			}
			if p := x.payout(t); p.Status != exchange.PayoutCompleted || p.Receipt != "UKL0000001" {
				t.Errorf("the payout is %s by %q", p.Status, p.Receipt)
			}
			// The receipt proves nothing else.
			_, err = s.ReceiptNeedsSecond(ctx, another.Object, "UKL0000001")
			wantFault(t, err, exchange.CodeConflict)
			wantBooks(t, s)
		})
	}
}

func first(r exchange.Refund, _ string) exchange.Refund { return r }

// The database itself takes a payout without a reservation only as the booking of what two officers attested in a put-back
// database.
func TestD4_NothingElseIsBookedAsLost(t *testing.T) {
	t.Parallel()
	x := owing(t)
	s := x.s
	payout(t, s, first(underpaid(t, s)))
	one, two := x.officers(t)
	row := func(amount, receipt string) string {
		return `BEGIN; UPDATE order_payouts SET status = 'processing' WHERE id = '` + x.order.ID.String() + `';
			UPDATE releases SET passed_at = now() WHERE object_id = '` + x.order.ID.String() + `' AND purpose = 'payout';
			INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
				SELECT '` + uuid.NewString() + `', 'payout', 'order', p.id, 'daraja', 'created', 'KES', ` + amount + `, p.phone, o.payment_reference, now()
				FROM order_payouts p JOIN orders o ON o.id = p.id WHERE p.id = '` + x.order.ID.String() + `';
			UPDATE payment_attempts SET status = 'succeeded', result_class = 'attested', receipt = '` + receipt + `', moved = amount, settled_at = now()
				WHERE object_id = '` + x.order.ID.String() + `'; COMMIT`
	}
	refusedBy := func(what, query string) {
		t.Helper()
		conn, err := storetest.Owner(t, s).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }() // nothing of it is used any more
		_, err = conn.ExecContext(t.Context(), query)
		_, _ = conn.ExecContext(t.Context(), `ROLLBACK`)
		if sqlState(err) == "" {
			t.Errorf("%s is taken, %v", what, err)
		}
	}
	refusedBy("a payout that nobody attested", row("p.amount", "UKL0000001"))
	storetest.PutBack(t, s)
	refusedBy("a payout that nobody attested, in a put-back database", row("p.amount", "UKL0000001"))
	c, err := s.ProposeReceipt(t.Context(), exchange.OrderObject(x.order.ID), "UKL0000001", one)
	if err == nil {
		_, err = s.ConfirmChange(t.Context(), c.ID, "", two)
	}
	if err != nil {
		t.Fatal(err)
	}
	refusedBy("another amount", row("p.amount - 1", "UKL0000001"))
	refusedBy("another receipt", row("p.amount", "UKL0000002"))
	if _, err := storetest.Owner(t, s).ExecContext(t.Context(), row("p.amount", "UKL0000001")); err != nil {
		t.Errorf("what they attested is refused: %v", err) // so the rows above are refused for what they say
	}
}

// released lets payouts of a put-back database be sent again.
func released(t *testing.T, s *store.Store) {
	t.Helper()
	storetest.Exec(t, s, `SET session_replication_role = replica; INSERT INTO database_releases (identity) VALUES (database_identity()); SET session_replication_role = origin`)
}

// Nothing leaves for a chain from a database that was put back, and no sale is given back, until two officers have released it: its
// payee may have been paid, and what it bought refunded.
func TestD4_NothingIsSignedNorGivenBackInADatabaseThatWasPutBack(t *testing.T) {
	t.Parallel()
	t.Run("signed", func(t *testing.T) {
		t.Parallel()
		p := newPurse(t, "100")
		f := p.goes(t, "10", elsewhere(t))
		payout(t, p.store, first(underpaid(t, p.store))) // the first request releases the database
		storetest.PutBack(t, p.store)
		wantUnsigned(t, p.store, f.PaymentID, exchange.HoldPutBack)
		released(t, p.store)
		if hold := decides[string](t, p.store, `SELECT payment_hold($1)`, f.PaymentID); hold != "" {
			t.Errorf("released it is held: %s", hold)
		}
	})
	t.Run("given back", func(t *testing.T) {
		t.Parallel()
		x := owing(t)
		payout(t, x.s, first(underpaid(t, x.s)))
		storetest.PutBack(t, x.s)
		back := func() error {
			_, _, err := x.s.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: x.order.ID, Reason: "refused"}, storetest.By)
			return err
		}
		wantFault(t, back(), exchange.CodeSuspended)
		released(t, x.s)
		if err := back(); err != nil {
			t.Error(err)
		}
	})
}

// The receipt of another payment would settle the payout in words only: it could never be booked, nor be sent.
func TestD4_ALostPayoutHasAReceiptOfItsOwn(t *testing.T) {
	t.Parallel()
	x := owing(t)
	r, _ := underpaid(t, x.s)
	a, obs := payout(t, x.s, r), storetest.Paid(t, kes("1000"))
	if _, err := completeRefund(t, x.s, r.ID, a.ID, obs); err != nil {
		t.Fatal(err)
	}
	storetest.PutBack(t, x.s)
	of := exchange.OrderObject(x.order.ID)
	_, err := x.s.ReceiptNeedsSecond(t.Context(), of, obs.Receipt)
	wantFault(t, err, exchange.CodeConflict)
	one, two := x.officers(t)
	c, err := x.s.ProposeReceipt(t.Context(), of, obs.Receipt, one)
	if err == nil {
		_, err = x.s.ConfirmChange(t.Context(), c.ID, "", two)
	}
	wantFault(t, err, exchange.CodeConflict)
	if n := decides[int](t, x.s, `SELECT count(*) FROM payout_attestations`); n != 0 {
		t.Errorf("%d attestations are stored", n)
	}
}

// What two officers attest while a try begins comes before it or after it: the try waits, and then sends nothing.
func TestD4_AnAttestationAndATryAtOneMoment(t *testing.T) {
	t.Parallel()
	t.Run("of a sale", func(t *testing.T) {
		t.Parallel()
		x := owing(t)
		payout(t, x.s, first(underpaid(t, x.s)))
		attestedAndTried(t, x, exchange.OrderObject(x.order.ID))
	})
	t.Run("of a refund", func(t *testing.T) {
		t.Parallel()
		s := storetest.New(t)
		payout(t, s, first(underpaid(t, s)))
		r, _ := underpaid(t, s)
		attestedAndTried(t, &sale{s: s}, exchange.RefundObject(r.ID))
	})
}

func attestedAndTried(t *testing.T, x *sale, of exchange.MomoObject) {
	t.Helper()
	one, two := x.officers(t)
	storetest.PutBack(t, x.s)
	c, err := x.s.ProposeReceipt(t.Context(), of, "UKL0000001", one)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := storetest.Owner(t, x.s).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing of it is left after the commit
	for _, q := range []string{          // the confirmation
		`UPDATE control_changes SET status = 'confirmed', decided_by = '` + two.UserID.String() + `', decided_at = now() WHERE id = '` + c.ID.String() + `'`,
		`INSERT INTO payout_attestations (id, object_type, object_id, receipt, note, attested_by, agreed_by, said_at)
			SELECT id, '` + string(of.Type) + `', '` + of.ID.String() + `', 'UKL0000001', change ->> 'note', proposed_by, decided_by, now() FROM control_changes WHERE id = '` + c.ID.String() + `'`,
	} {
		if _, err := tx.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	released(t, x.s)
	begun := make(chan exchange.PaymentAttempt, 1)
	go func() {
		id := storetest.NewID(t)
		a, err := x.s.BeginPayout(t.Context(), of, exchange.PaymentAttempt{ID: id, Provider: "daraja", Reference: "Refund", CallbackToken: id.String()})
		if err != nil {
			t.Errorf("the try after it: %v", err)
		}
		begun <- a
	}()
	const waits = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)`
	for !decides[bool](t, x.s, waits) {
		select {
		case a := <-begun:
			t.Fatalf("the try did not wait: it is %s", a.Status)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if a := <-begun; a.Status != exchange.AttemptSucceeded || a.Receipt != "UKL0000001" {
		t.Errorf("the try is %s by %q", a.Status, a.Receipt)
	}
	wantBooks(t, x.s)
}

// The crypto of a sale does not go back while two officers attest that its payee was paid.
func TestD4_AnAttestedSaleIsNotGivenBack(t *testing.T) {
	t.Parallel()
	x := taken(t)
	x.says(t)
	x.refuses(t, false)
	x.noCoolOff(t)
	r := x.opensRefund(t)
	one, two := x.officers(t)
	storetest.PutBack(t, x.s)
	c, err := x.s.ProposeReceipt(t.Context(), exchange.OrderObject(x.order.ID), "UKL0000001", one)
	if err == nil {
		_, err = x.s.ConfirmChange(t.Context(), c.ID, "", two)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := x.standing(t, r, exchange.RefundWaitsClaim); s.Payment.ID != uuid.Nil {
		t.Errorf("its payment is %+v", s.Payment)
	}
}

// An attestation that is confirmed after the database was released would book nothing and stop nothing. The second officer
// learns that.
func TestD4_AReleasedDatabaseLosesNothing(t *testing.T) {
	t.Parallel()
	x := owing(t)
	payout(t, x.s, first(underpaid(t, x.s)))
	one, two := x.officers(t)
	storetest.PutBack(t, x.s)
	c, err := x.s.ProposeReceipt(t.Context(), exchange.OrderObject(x.order.ID), "UKL0000001", one)
	if err != nil {
		t.Fatal(err)
	}
	released(t, x.s)
	_, err = x.s.ConfirmChange(t.Context(), c.ID, "", two)
	wantFault(t, err, exchange.CodeStateConflict)
	wantFault(t, lost(t, x, "UKL0000001"), exchange.CodeStateConflict)
	if a := x.begun(t, 1); a.Status != exchange.AttemptCreated {
		t.Errorf("the attempt is %s", a.Status)
	}
}

// A refund by mobile money that was paid before the database was put back is booked the same way.
func TestD4_ALostRefundIsBooked(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	r, _ := underpaid(t, s)
	of := exchange.RefundObject(r.ID)
	one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	storetest.PutBack(t, s)
	c, err := s.ProposeReceipt(t.Context(), of, "UKL0000001", one)
	if err == nil {
		_, err = s.ConfirmChange(t.Context(), c.ID, "", two)
	}
	if err == nil {
		err = s.BookLostPayout(t.Context(), of, exchange.PaymentAttempt{ID: uuid.New(), Provider: "daraja"}, "UKL0000001")
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Refund(t.Context(), r.ID); err != nil || r.Status != exchange.RefundCompleted || r.Receipt != "UKL0000001" {
		t.Errorf("the refund is %s by %q, %v", r.Status, r.Receipt, err)
	}
	wantBooks(t, s)
}

package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// lowerRefundLimit has refunds above 999 shillings need another officer.
func lowerRefundLimit(t *testing.T, s *store.Store) {
	t.Helper()
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 999, two_above = 99999 WHERE object_type = 'refund'`)
}

// propose proposes the only decision about an object that needs another officer.
func propose(t *testing.T, s *store.Store, object uuid.UUID, by exchange.Principal) exchange.ControlChange {
	t.Helper()
	all, err := s.RefundDecisions(t.Context(), object, by.UserID)
	if err != nil || len(all) != 1 || !all[0].Second {
		t.Fatalf("an officer may decide %+v, %v", all, err)
	}
	c := twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID }, func() (exchange.ControlChange, error) {
		return s.ProposeRefund(t.Context(), all[0], "the payer asks for it", by)
	})
	return c
}

// agree has two officers decide about a refund.
func agree(t *testing.T, s *store.Store, object uuid.UUID, one exchange.Principal) {
	t.Helper()
	c := propose(t, s, object, one)
	if _, err := s.ConfirmChange(t.Context(), c.ID, "", officer(t, s)); err != nil {
		t.Fatal(err)
	}
}

// decidedByTwo is a decision about a large refund, and what carries it out.
type decidedByTwo struct {
	s      *store.Store
	object uuid.UUID
	carry  func(exchange.Principal) error
	bypass string // the same past the code
}

// decisionsByTwo are the decisions about refunds by mobile money of 1295 or 1000 shillings, above the limit.
var decisionsByTwo = map[string]func(*testing.T) decidedByTwo{
	"an exception": func(t *testing.T) decidedByTwo {
		t.Helper()
		s := storetest.New(t)
		x := latePayment(t, s, storetest.NewMarket(t, s))
		lowerRefundLimit(t, s)
		return decidedByTwo{s, x.ID, func(by exchange.Principal) error {
			_, err := s.RefundException(t.Context(), x.ID, by)
			return err
		}, `UPDATE payment_exceptions SET status = 'refunding', version = version + 1;
			INSERT INTO refunds (id, order_id, attempt_id, collection, exception_id, asset, amount, phone, reason, status, requested_by, created_at, updated_at)
			SELECT gen_random_uuid(), x.order_id, x.attempt_id, x.receipt, x.id, x.asset, x.amount, a.phone, 'x', 'pending', (SELECT id FROM users LIMIT 1), now(), now()
			FROM payment_exceptions x JOIN payment_attempts a ON a.id = x.attempt_id`}
	},
	"an order": func(t *testing.T) decidedByTwo {
		t.Helper()
		s := storetest.New(t)
		o, _ := paid(t, s, storetest.NewMarket(t, s))
		lowerRefundLimit(t, s)
		return decidedByTwo{s, o.ID, func(by exchange.Principal) error {
			_, _, err := s.RefundOrder(t.Context(), o.ID, "nothing works", by)
			return err
		}, `INSERT INTO refunds (id, order_id, attempt_id, collection, asset, amount, phone, reason, status, created_at, updated_at)
			SELECT gen_random_uuid(), c.object_id, c.attempt_id, c.receipt, c.asset, c.amount, a.phone, 'x', 'pending', now(), now()
			FROM collections c JOIN payment_attempts a ON a.id = c.attempt_id`}
	},
	"a payee": func(t *testing.T) decidedByTwo {
		t.Helper()
		s := storetest.New(t)
		refund, receipt := underpaid(t, s)
		if err := s.SaveReceipt(t.Context(), exchange.Observation{
			State: exchange.SeenSucceeded, Receipt: receipt, Amount: kes("1000"), PhoneHash: otherPhone.Hash(), Source: exchange.SourceConfirmation, At: time.Now(),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.BeginPayout(t.Context(), exchange.RefundObject(refund.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "REFUND"}); err != nil {
			t.Fatal(err)
		}
		lowerRefundLimit(t, s)
		return decidedByTwo{s, refund.ID, func(by exchange.Principal) error {
			_, err := s.ConfirmPayee(t.Context(), refund.ID, time.Now(), by)
			return err
		}, `UPDATE refunds SET payee_confirmed = true, version = version + 1`}
	},
}

// Above the limit, two officers decide about a refund by mobile money. One alone can't, past the code neither.
func TestLargeRefundsTakeTwo(t *testing.T) {
	t.Parallel()
	for name, begin := range decisionsByTwo {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := begin(t)
			ctx, one := t.Context(), officer(t, x.s)
			wantFault(t, x.carry(one), exchange.CodeForbidden)
			c := propose(t, x.s, x.object, one)
			if _, err := storetest.Owner(t, x.s).ExecContext(ctx, x.bypass); sqlState(err) != "KV006" {
				t.Errorf("past the code: %v", err)
			}
			_, err := x.s.ConfirmChange(ctx, c.ID, "", one)
			wantFault(t, err, exchange.CodeForbidden)
			wantFault(t, x.carry(one), exchange.CodeForbidden)
			if _, err := x.s.ConfirmChange(ctx, c.ID, "", officer(t, x.s)); err != nil {
				t.Fatal(err)
			}
			if all, err := x.s.RefundDecisions(ctx, x.object, one.UserID); err != nil || len(all) != 1 || all[0].Second {
				t.Errorf("an officer may decide %+v, %v", all, err)
			}
			if err := x.carry(one); err != nil {
				t.Errorf("two agreed: %v", err)
			}
			wantBooks(t, x.s)
		})
	}
}

// A rejected decision, one that is too old, and one of an officer who was deactivated afterwards carry no refund.
func TestDecisionsAboutRefundsThatDoNotCount(t *testing.T) {
	t.Parallel()
	for name, void := range map[string]string{
		"the proposer was deactivated": `UPDATE users SET is_active = false WHERE id = (SELECT proposed_by FROM control_changes)`,
		"the second was deactivated":   `UPDATE users SET is_active = false WHERE id = (SELECT decided_by FROM control_changes)`,
		"it is too old": `ALTER TABLE control_changes DISABLE TRIGGER USER;
			UPDATE control_changes SET proposed_at = now() - interval '7 days', decided_at = now() - interval '1 day', expires_at = now() - interval '1 second';
			ALTER TABLE control_changes ENABLE TRIGGER USER`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := decisionsByTwo["an exception"](t)
			agree(t, x.s, x.object, officer(t, x.s))
			storetest.Exec(t, x.s, void)
			wantFault(t, x.carry(officer(t, x.s)), exchange.CodeForbidden)
			agree(t, x.s, x.object, officer(t, x.s)) // others may decide
			if err := x.carry(officer(t, x.s)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("rejected", func(t *testing.T) {
		t.Parallel()
		x := decisionsByTwo["an exception"](t)
		one := officer(t, x.s)
		if _, err := x.s.RejectChange(t.Context(), propose(t, x.s, x.object, one).ID, "no", officer(t, x.s)); err != nil {
			t.Fatal(err)
		}
		wantFault(t, x.carry(one), exchange.CodeForbidden)
	})
}

// A decision about money that was settled in the meantime is not confirmed.
func TestDecisionAboutASettledRefundIsNotConfirmed(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), decisionsByTwo["an exception"](t)
	one := officer(t, x.s)
	c := propose(t, x.s, x.object, one)
	if _, err := x.s.ResolveException(ctx, x.object, exchange.ExcAccepted, "kept", one); err != nil {
		t.Fatal(err)
	}
	_, err := x.s.ConfirmChange(ctx, c.ID, "", officer(t, x.s))
	wantFault(t, err, exchange.CodeStateConflict)
}

// The database refuses an attempt that does not pay a refund as it stands, as it does for an order.
func TestPayoutsOfRefundsAreGuarded(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), &sale{s: storetest.New(t)}
	underpaid(t, x.s)
	const begin = `UPDATE refunds SET status = 'processing', version = version + 1; UPDATE releases SET passed_at = now();`
	insert := func(amount, phone string) string {
		return `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
			SELECT gen_random_uuid(), 'payout', 'refund', id, 'daraja', 'created', asset, ` + amount + `, ` + phone + `, 'Refund', gen_random_uuid(), now() FROM refunds;`
	}
	for name, c := range map[string]struct{ query, want string }{
		"not under way":     {insert("amount", "phone"), "KV001"},
		"another amount":    {begin + insert("amount + 1", "phone"), "KV002"},
		"another payee":     {begin + insert("amount", "'254700000099'"), "KV002"},
		"no reserved float": {begin + insert("amount", "phone") + `SET CONSTRAINTS payment_attempts_float IMMEDIATE`, "KV002"},
		"not released":      {`UPDATE refunds SET status = 'processing', version = version + 1;` + insert("amount", "phone"), "KV006"},
		"as it stands":      {begin + insert("amount", "phone"), ""},
	} {
		if got := x.past(ctx, t, c.query); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An order whose crypto may be on its way is not offered for a refund.
func TestOrderOnItsWayIsNotOfferedForARefund(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	o, p := paid(t, s, storetest.NewMarket(t, s))
	offered := func() bool {
		t.Helper()
		all, err := s.RefundDecisions(t.Context(), o.ID, uuid.Nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 1
	}
	if !offered() {
		t.Error("an order is not offered before anything was signed")
	}
	storetest.Exec(t, s, `UPDATE chain_payments SET status = 'signed', version = version + 1 WHERE id = $1`, p.ID)
	if offered() {
		t.Error("an order is offered after its payment was signed")
	}
}

package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// lateMoney is a payment for an order that has ended.
type lateMoney struct {
	detail string // of the cancelled order; empty: cancelled by its customer
	amount string // empty: the price
	named  func(exchange.PaymentAttempt) exchange.Observation
	notice func(exchange.PaymentAttempt) string // the hash of the payer in the operator's notice; nil: there is none
	row    func(exchange.PaymentAttempt) string // the hash in a later row of the operator's list; nil: there is none
	limit  string                               // above which officers approve refunds; empty: as it is
}

// comes opens an order, ends it and accepts the payment.
func (l lateMoney) comes(t *testing.T, s *store.Store) (exchange.PaymentOutcome, exchange.Observation) {
	t.Helper()
	ctx, o := t.Context(), storetest.NewMarket(t, s).Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	detail := exchange.DetailCancelled
	if l.detail != "" {
		detail = l.detail
	}
	if _, err := s.CloseOrder(ctx, o.ID, exchange.OrderCancelled, detail, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if l.limit != "" {
		storetest.Exec(t, s, `UPDATE approval_rules SET one_above = $1 WHERE object_type = 'refund'`, l.limit)
	}
	obs := storetest.Paid(t, o.Price.Fiat)
	if l.amount != "" {
		obs.Amount = kes(l.amount)
	}
	if l.named != nil {
		n := l.named(a)
		obs.Phone, obs.PhoneHash = n.Phone, n.PhoneHash
		if n.Source != "" {
			obs.Source = n.Source
		}
	}
	if l.notice != nil {
		seen := obs
		seen.Source, seen.Phone, seen.PhoneHash, seen.At = exchange.SourceConfirmation, "", l.notice(a), time.Now()
		if err := s.SaveReceipt(ctx, seen); err != nil {
			t.Fatal(err)
		}
	}
	if l.row != nil {
		seen := obs
		seen.Source, seen.Phone, seen.PhoneHash, seen.At = exchange.SourceStatement, "", l.row(a), time.Now()
		if _, err := s.TakeReceipt(ctx, seen); err != nil {
			t.Fatal(err)
		}
	}
	if l.amount != "" && l.row == nil {
		storetest.Listed(t, s, obs)
	}
	out, err := s.AcceptPayment(ctx, a.ID, obs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Kind != exchange.PaidLate || out.Exception.Kind != exchange.ExcLate || !out.Exception.Amount.Equal(obs.Amount) || out.Order.Status != exchange.OrderCancelled {
		t.Fatalf("outcome %+v", out)
	}
	return out, obs
}

const otherPhone = exchange.Phone("254700000099")

// Money for an order that its customer cancelled goes back to the prompted phone by rule.
func TestLateMoneyIsRefundedByRule(t *testing.T) {
	t.Parallel()
	prompted := func(a exchange.PaymentAttempt) string { return a.Phone.Hash() }
	for name, l := range map[string]lateMoney{
		"no payer is named":        {},
		"the payer is named":       {named: func(a exchange.PaymentAttempt) exchange.Observation { return exchange.Observation{Phone: a.Phone} }},
		"a notice names it":        {notice: prompted},
		"a notice without a payer": {notice: func(exchange.PaymentAttempt) string { return "" }},
		"a row names it": {named: func(a exchange.PaymentAttempt) exchange.Observation {
			return exchange.Observation{PhoneHash: a.Phone.Hash(), Source: exchange.SourceStatement}
		}},
		"exactly the limit": {limit: "1295"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			out, obs := l.comes(t, s)
			r := out.Refund
			if out.Exception.Status != exchange.ExcRefunding || r.Status != exchange.RefundPending || !r.Amount.Equal(obs.Amount) ||
				r.Phone != out.Attempt.Phone || r.ExceptionID != out.Exception.ID || r.RequestedBy != uuid.Nil {
				t.Errorf("exception %+v, refund %+v", out.Exception, r)
			}
			if r.Reason != "paid after the customer had cancelled the order" {
				t.Errorf("the reason is %q", r.Reason)
			}
			wantBalance(t, s, refundsDue(), obs.Amount.String(), "0")
			known, err := s.AcceptPayment(ctx, out.Attempt.ID, obs, time.Time{})
			if err != nil || known.Kind != exchange.PaidKnown || known.Exception.ID != out.Exception.ID || known.Refund.ID != r.ID {
				t.Errorf("again %+v, %v", known, err)
			}
			officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
			_, err = s.ResolveException(ctx, out.Exception.ID, exchange.ExcAccepted, "kept", officer)
			wantFault(t, err, exchange.CodeStateConflict) // a rule has decided
			if again, err := s.RefundException(ctx, out.Exception.ID, officer); err != nil || again.ID != r.ID {
				t.Errorf("an officer opens %+v beside %s, %v", again, r.ID, err)
			}
			wantBalance(t, s, refundsDue(), obs.Amount.String(), "0")
			wantBalance(t, s, suspense(), "0", "0")
			if _, err := completeRefund(t, s, r.ID, payout(t, s, r).ID, storetest.Paid(t, r.Amount)); err != nil {
				t.Fatal(err)
			}
			wantBalance(t, s, refundsDue(), "0", "0")
			wantBooks(t, s)
		})
	}
}

// All other late money waits for an officer, whose refund then names them.
func TestLateMoneyWaitsForAnOfficer(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]lateMoney{
		"the order expired":  {detail: exchange.DetailExpired},
		"another phone paid": {named: func(exchange.PaymentAttempt) exchange.Observation { return exchange.Observation{Phone: otherPhone} }},
		"another payer's hash": {named: func(exchange.PaymentAttempt) exchange.Observation {
			return exchange.Observation{PhoneHash: otherPhone.Hash()}
		}},
		"a notice names another": {notice: func(exchange.PaymentAttempt) string { return otherPhone.Hash() }},
		"a row names another after a notice without a payer": {
			notice: func(exchange.PaymentAttempt) string { return "" }, row: func(exchange.PaymentAttempt) string { return otherPhone.Hash() },
		},
		"a notice contradicts the callback": {
			named:  func(a exchange.PaymentAttempt) exchange.Observation { return exchange.Observation{Phone: a.Phone} },
			notice: func(exchange.PaymentAttempt) string { return otherPhone.Hash() },
		},
		"a row without a payer": {named: func(exchange.PaymentAttempt) exchange.Observation {
			return exchange.Observation{Source: exchange.SourceStatement}
		}},
		"more than was asked for":       {amount: "2000"},
		"less than was asked for":       {amount: "1000"},
		"below the least payout":        {amount: "9"},
		"above the limit":               {limit: "1294.99"},
		"every refund needs an officer": {limit: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			out, obs := l.comes(t, s)
			if out.Exception.Status != exchange.ExcOpen || out.Refund.ID != uuid.Nil {
				t.Errorf("exception %+v, refund %+v", out.Exception, out.Refund)
			}
			wantBalance(t, s, suspense(), obs.Amount.String(), "0")
			wantBalance(t, s, refundsDue(), "0", "0")
			officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
			if l.limit != "" {
				_, err := s.RefundException(ctx, out.Exception.ID, officer)
				wantFault(t, err, exchange.CodeForbidden)
				agree(t, s, out.Exception.ID, officer)
			}
			if r, err := s.RefundException(ctx, out.Exception.ID, officer); err != nil || r.RequestedBy != officer.UserID || r.Phone != out.Attempt.Phone {
				t.Errorf("refund %+v, %v", r, err)
			}
			wantBooks(t, s)
		})
	}
}

// The database itself refuses a refund of late money that no rule and no officer allows.
func TestLateRefundsAreGuarded(t *testing.T) {
	t.Parallel()
	const open = `UPDATE payment_exceptions SET status = 'refunding' WHERE id = $1`
	const insert = `INSERT INTO refunds (id, order_id, attempt_id, collection, exception_id, asset, amount, phone, reason, status, requested_by, created_at, updated_at)
		SELECT gen_random_uuid(), order_id, attempt_id, receipt, id, asset, amount, $2, 'x', 'pending', $3, now(), now() FROM payment_exceptions WHERE id = $1`
	for name, c := range map[string]struct {
		money     lateMoney
		phone     exchange.Phone // empty: the prompted one
		requested bool
		state     string
	}{
		"by an officer":                          {lateMoney{detail: exchange.DetailExpired}, "", true, ""},
		"by an officer to another phone":         {lateMoney{detail: exchange.DetailExpired}, otherPhone, true, "KV002"},
		"without an officer of an expired order": {lateMoney{detail: exchange.DetailExpired}, "", false, "KV006"},
		"without an officer above the limit":     {lateMoney{limit: "1294.99"}, "", false, "KV006"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			out, _ := c.money.comes(t, s)
			phone, by := c.phone, any(nil)
			if phone == "" {
				phone = out.Attempt.Phone
			}
			if c.requested {
				by = storetest.User(t, s, exchange.RoleTreasury).ID
			}
			db := storetest.Owner(t, s)
			if _, err := db.ExecContext(ctx, open, out.Exception.ID); err != nil {
				t.Fatal(err)
			}
			_, err := db.ExecContext(ctx, insert, out.Exception.ID, phone.Digits(), by)
			if (err != nil) != (c.state != "") || (err != nil && sqlState(err) != c.state) {
				t.Errorf("the refund was answered with %v, want %q", err, c.state)
			}
		})
	}
}

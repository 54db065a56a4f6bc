package store_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// takeFloat reserves payout float for another purpose.
func (x *sale) takeFloat(t *testing.T, amount string) uuid.UUID {
	t.Helper()
	id := storetest.NewID(t)
	if err := x.s.Post(t.Context(), floatHold(id, amount)); err != nil {
		t.Fatal(err)
	}
	return id
}

func floatHold(id uuid.UUID, amount string) exchange.Posting {
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: id, Key: "elsewhere:" + id.String(), Account: exchange.House(exchange.AccMomoPayout, money.KES), Amount: kes(amount), ObjectType: "test", ObjectID: id,
	}}}}
}

func (x *sale) floatIs(t *testing.T, posted, held string) {
	t.Helper()
	a, err := x.s.Account(t.Context(), exchange.House(exchange.AccMomoPayout, money.KES))
	if err != nil || !a.Posted.Equal(kes(posted)) || !a.Held.Equal(kes(held)) {
		t.Errorf("the float is %s with %s held, want %s with %s; %v", a.Posted, a.Held, posted, held, err)
	}
}

// A payout proven after its reservation was freed has left the provider's account whatever else is reserved by then:
// it is booked at once, before and after the order was given up.
func TestLateSuccessIsBookedWithoutFloat(t *testing.T) {
	t.Parallel()
	for name, givenUp := range map[string]bool{"the order waits": false, "the order was given up": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, x := t.Context(), owing(t)
			a := x.begun(t, 1)
			x.refused(t, a)
			if givenUp {
				x.backing(t)
			}
			other := x.takeFloat(t, "1000000")
			obs := storetest.Paid(t, a.Amount)
			twice(t, samePayout, func() (exchange.OrderPayout, error) { return completeOrder(t, x.s, x.order.ID, a.ID, obs) })
			x.floatIs(t, "998684", "1000000")
			x.belowIsNoRoom(t)
			release := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: other}}}}
			if err := x.s.Post(ctx, release); err != nil {
				t.Fatal(err)
			}
			if got := x.now(t).Status == exchange.OrderCompleted; got == givenUp {
				t.Errorf("the order is %s", x.now(t).Status)
			}
			wantBooks(t, x.s)
		})
	}
}

// belowIsNoRoom expects that a float below its holds allows no new reservation, in the service and in the database,
// but accepts deposits and releases.
func (x *sale) belowIsNoRoom(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	wantFault(t, x.s.Post(ctx, floatHold(storetest.NewID(t), "1")), exchange.CodeInsufficientFunds)
	away := func(kind string) exchange.Posting {
		key := storetest.NewID(t)
		return exchange.Posting{Entries: []exchange.Entry{{Key: kind + key.String(), Kind: kind, ObjectType: "test", ObjectID: key, Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccCapital, money.KES), kes("1")), exchange.Credit(exchange.House(exchange.AccMomoPayout, money.KES), kes("1")),
		}}}}
	}
	wantFault(t, x.s.Post(ctx, away("float.taken")), exchange.CodeInsufficientFunds)
	if state := x.past(ctx, t, `WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('x', decode(repeat('00', 16), 'hex'), 'float.taken', 'test', now()) RETURNING id)
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, v.amount FROM e, (VALUES ('momo_payout:house:KES', -1), ('capital:house:KES', 1)) AS v (code, amount)
			JOIN ledger_accounts a ON a.code = v.code`); state != "23514" {
		t.Errorf("taken past the service: %s", state)
	}
	if state := x.past(ctx, t, `INSERT INTO holds (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at)
		SELECT gen_random_uuid(), 'x', id, 1, 1, 'held', 'test', gen_random_uuid(), now(), now() FROM ledger_accounts WHERE code = 'momo_payout:house:KES'`); state != "23514" {
		t.Errorf("reserved past the service: %s", state)
	}
	x.floatIs(t, "998684", "1000000")
}

// past runs a statement as the owner of the schema and returns the SQLSTATE of its refusal.
func (x *sale) past(ctx context.Context, t *testing.T, query string) string {
	t.Helper()
	tx, err := storetest.Owner(t, x.s).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(ctx, query)
	return sqlState(err)
}

package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/invariants"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
)

// judge holds the end against what the outside says. What does not fit yet may be on its way: it is looked at until it
// fits, or the time is over.
func (w *world) judge(ctx context.Context, deeds []deed, ends map[uuid.UUID]object, parked []waiting) error {
	w.tell(deeds, ends, parked)
	for _, p := range parked {
		if p.Reason == "" {
			return fmt.Errorf("%s waits for a person and does not say why", p.Flow)
		}
	}
	const settling = 3 * time.Minute
	return until(ctx, settling, func() error {
		b, err := w.books(ctx)
		if err != nil {
			return err
		}
		return errors.Join(
			invariants.Check(ctx, w.db),
			w.operatorAgrees(ctx, b, parked),
			w.nothingTwice(ctx, b),
			w.delivered(ctx, deeds, ends),
			invariants.Chains(ctx, w.store, w.nodes))
	})
}

// tell prints how everything ended.
func (w *world) tell(deeds []deed, ends map[uuid.UUID]object, parked []waiting) {
	counts := map[string]int{}
	for _, d := range deeds {
		how := ends[d.id].Status + " (" + ends[d.id].Detail + ")"
		if d.refused != nil {
			how = "refused: " + d.refused.Error()
		}
		counts[string(d.step.Kind)+" "+how]++
	}
	for _, p := range parked {
		counts["parked with "+p.Reason]++
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("  %3d  %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[5:], b[5:]) })
	w.say("How it ended:\n%s", strings.Join(lines, "\n"))
}

// operatorAgrees compares the ledger's accounts at the operator with the operator's own, to the shilling. A movement
// that is not booked yet must be known, or be with a flow that waits for a person.
func (w *world) operatorAgrees(ctx context.Context, b sandbox.Books, parked []waiting) error {
	moved := map[exchange.AccountKind]int64{}
	var errs []error
	for _, e := range b.Effects {
		kind, amount, query := exchange.AccMomoCollection, e.Amount, bookedCollection
		switch e.Direction {
		case sandbox.Collection:
		case sandbox.Payout:
			kind, amount, query = exchange.AccMomoPayout, -e.Amount-e.Charge, bookedPayout
		default:
			continue
		}
		var booked, known bool
		if err := w.db.QueryRowContext(ctx, query, e.Receipt).Scan(&booked, &known); err != nil {
			return err
		}
		switch {
		case booked:
			moved[kind] += amount
		case !known && len(parked) == 0:
			errs = append(errs, fmt.Errorf("nobody knows of the %s %s of %d", e.Direction, e.Receipt, e.Amount))
		}
	}
	for _, k := range []exchange.AccountKind{exchange.AccMomoCollection, exchange.AccMomoPayout} {
		a, err := w.store.Account(ctx, exchange.House(k, money.KES))
		if err != nil {
			return err
		}
		opening, err := w.opening(ctx, k)
		if err != nil {
			return err
		}
		if want := opening.Add(money.Must(money.KES, strconv.FormatInt(moved[k], 10))); !a.Posted.Equal(want) {
			errs = append(errs, fmt.Errorf("%s is %s by the ledger and %s by the operator", k, a.Posted, want))
		}
	}
	return errors.Join(errs...)
}

// Whether a movement at the operator is in the ledger, and whether we know of it at all.
const (
	bookedCollection = `SELECT EXISTS (SELECT FROM ledger_entries WHERE key = 'momo:' || $1), EXISTS (SELECT FROM c2b_payments WHERE receipt = $1)`
	bookedPayout     = `SELECT count(*) FILTER (WHERE status = 'succeeded') = 1, false FROM payment_attempts WHERE direction = 'payout' AND receipt = $1`
)

// opening is what an account began with.
func (w *world) opening(ctx context.Context, k exchange.AccountKind) (money.Amount, error) {
	var sum string
	err := w.db.QueryRowContext(ctx, `SELECT coalesce(sum(l.amount), 0)::text FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id
		JOIN ledger_accounts a ON a.id = l.account_id WHERE a.kind = $1 AND e.kind LIKE '%opening'`, k).Scan(&sum)
	if err != nil {
		return money.Amount{}, err
	}
	return money.Parse(money.KES, sum)
}

// nothingTwice checks by the operator's books that no prompt was on a phone twice and no order or refund was paid out
// twice, and that each receipt is in the ledger at most once.
func (w *world) nothingTwice(ctx context.Context, b sandbox.Books) error {
	var errs []error
	prompts := map[string]int{}
	for _, p := range b.Prompts {
		if prompts[p.CallbackURL]++; prompts[p.CallbackURL] > 1 {
			errs = append(errs, fmt.Errorf("one attempt prompted %s twice", p.Phone))
		}
	}
	paid := map[string][]string{}
	for _, e := range b.Effects {
		if e.Direction != sandbox.Payout {
			continue
		}
		var object string
		err := w.db.QueryRowContext(ctx, `SELECT coalesce('refund ' || refund_id, 'order ' || order_id) FROM payment_attempts WHERE direction = 'payout' AND id::text = $1`, e.Reference).Scan(&object)
		if err != nil {
			return fmt.Errorf("the payout %s of %d to %s: %w", e.Reference, e.Amount, e.Phone, err)
		}
		paid[object] = append(paid[object], e.Receipt)
	}
	for object, receipts := range paid {
		if len(receipts) > 1 {
			errs = append(errs, fmt.Errorf("%s was paid out %d times: %v", object, len(receipts), receipts))
		}
	}
	return errors.Join(errs...)
}

// delivered checks by the chains that what was completed came exactly once, and nothing else came.
func (w *world) delivered(ctx context.Context, deeds []deed, ends map[uuid.UUID]object) error {
	var errs []error
	for _, d := range deeds {
		if d.refused != nil || d.address == "" || d.step.Kind == Sale {
			continue
		}
		changes, err := d.node.Changes(ctx, d.address)
		if err != nil {
			return err
		}
		came := 0
		for _, c := range changes {
			if c.Amount.Asset() == money.USDT {
				came++
				if !c.Amount.Equal(d.amount) {
					errs = append(errs, fmt.Errorf("%s %s brought %s, not %s", d.step.Kind, d.id, c.Amount, d.amount))
				}
			}
		}
		want := 0
		if ends[d.id].Status == "completed" {
			want = 1
		}
		if came != want && ends[d.id].over() {
			errs = append(errs, fmt.Errorf("%s %s is %s and came %d times", d.step.Kind, d.id, ends[d.id].Status, came))
		}
	}
	return errors.Join(errs...)
}

package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/invariants"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// judge compares the result with the outside books. A difference may still resolve itself, so it checks until there is
// none or the time is over.
func (w *harness) judge(ctx context.Context, e ending, bank map[uuid.UUID]int64) error {
	for _, p := range e.parked {
		if !slices.Contains(workflows.Reasons(), workflows.Reason(p.Reason)) {
			return fmt.Errorf("%s is parked without a known reason: %q", p.Flow, p.Reason)
		}
	}
	const settling = 2 * time.Minute
	return until(ctx, settling, func() error { return w.claims(ctx, e, bank) })
}

// claims checks everything that must hold at the end.
func (w *harness) claims(ctx context.Context, e ending, bank map[uuid.UUID]int64) error {
	b, err := w.books(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		invariants.Check(ctx, w.db),
		w.operatorAgrees(ctx, b, e),
		w.bankAgrees(ctx, bank),
		w.nothingTwice(ctx, b),
		w.everyAction(ctx, e, b, bank),
		invariants.Chains(ctx, w.store, w.nodes))
}

// report prints how the actions ended.
func (e ending) report(out io.Writer, did, troubled map[string]int) {
	counts, parked := map[string]int{}, map[string]int{}
	for _, d := range e.actions {
		how := e.objects[d.id].Status + " (" + e.objects[d.id].Detail + ")"
		if d.refused != nil {
			how = "refused: " + d.refused.Error()
		}
		counts[string(d.step.Kind)+": "+how]++
	}
	for _, p := range e.parked {
		what := p.Reason + ", " + p.Flow
		if p.ObjectID != nil {
			for _, d := range e.actions {
				if d.id == *p.ObjectID {
					what = p.Reason + ", " + d.name()
				}
			}
		}
		parked[what]++
	}
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"How it ended:", counts}, {"The staff's actions:", did}, {"Troubles, and refused swaps:", troubled}, {"What stays parked:", parked}} {
		if len(part.counts) > 0 {
			_, _ = fmt.Fprintf(out, "%s\n%s", part.title, tally(part.counts))
		}
	}
	for _, d := range e.actions {
		if e.asked[d.id] {
			_, _ = fmt.Fprintf(out, "No source reports whether %s was paid; its flow parks half an hour after the order has expired.\n", d.name())
		}
	}
	_, _ = fmt.Fprintf(out, "%d flows wait for late money for the rest of the day.\n", e.watching)
}

// everyAction compares each action with the operator's, the bank's and the chain's records of its phone and addresses.
func (w *harness) everyAction(ctx context.Context, e ending, b sandbox.Books, bank map[uuid.UUID]int64) error {
	flows, err := w.running(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, d := range e.actions {
		if d.refused != nil {
			wrong = append(wrong, fmt.Errorf("%s was refused: %w", d.name(), d.refused))
			continue
		}
		if now, _ := w.actionOf(d.id); d.back == "" {
			d.back = now.back // it was named since
		}
		f, err := w.gather(ctx, d, e, b, bank, flows)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name(), err)
		}
		for _, sentence := range f.verdict() {
			wrong = append(wrong, errors.New(sentence))
		}
	}
	return errors.Join(wrong...)
}

// gather collects the evidence of an action.
func (w *harness) gather(ctx context.Context, d action, e ending, b sandbox.Books, bank map[uuid.UUID]int64, flows []flow) (f evidence, err error) {
	o := e.objects[d.id]
	f = evidence{action: d, status: o.Status, crypto: d.amount, watched: e.asked[d.id]}
	for _, p := range e.parked {
		id, err := (&office{harness: w}).objectOf(ctx, p)
		if err != nil {
			return f, err
		}
		if id == d.id {
			f.why = append(f.why, p.Reason)
		}
	}
	if d.address != "" && !d.step.Kind.sells() {
		if f.came, _, err = w.movedAt(ctx, d, d.address); err != nil {
			return f, err
		}
	}
	if d.step.Kind.byMomo() {
		o.Crypto = d.amount.String()
	} else if d.step.Kind == Withdrawal {
		o.Fiat, o.Crypto = o.Payout, d.amount.String()
	} else if d.step.Kind == Swap {
		f.legs, err = w.legsOf(ctx, d, o.swapped)
		return f, err
	} else if d.step.Kind == Proposal {
		f.tx = o.TxHash
		if f.held, err = w.heldFor(ctx, d.id); err != nil {
			return f, err
		}
		f.paid, err = w.paidFor(ctx, d)
		return f, err
	} else if d.step.Kind == Transfer || d.step.Kind.atDesk() {
		return f, nil // invariants.Check compares what a deposit brought with what was booked
	}
	if f.price, err = shillings(o.Fiat); err != nil {
		return f, err
	}
	if f.crypto, err = money.Parse(money.USDT, o.Crypto); err != nil {
		return f, err
	}
	if paid, there := bank[d.id]; there {
		f.atBank = []int64{paid}
	}
	if d.step.Kind.sells() {
		if f.brought, f.left, err = w.movedAt(ctx, d, d.address); err != nil {
			return f, err
		}
		if d.back != "" {
			if f.back, _, err = w.movedAt(ctx, d, d.back); err != nil {
				return f, err
			}
		}
	}
	return f, errors.Join(w.atOperator(ctx, d, b, flows, &f), w.decisions(ctx, d, &f))
}

// movedAt returns the stablecoins that came to an address, and its balance, by the chain.
func (w *harness) movedAt(ctx context.Context, d action, address string) (came, left []money.Amount, err error) {
	changes, err := d.node.Changes(ctx, address)
	for _, c := range changes {
		if c.Amount.Asset() != money.USDT && c.Amount.Asset() != money.USDC {
			continue
		}
		left = append(left, c.Amount)
		if c.Amount.Positive() {
			came = append(came, c.Amount)
		}
	}
	return came, left, err
}

// atOperator collects the entries of the action's phone in the operator's books.
func (w *harness) atOperator(ctx context.Context, d action, b sandbox.Books, flows []flow, f *evidence) error {
	for _, m := range b.Effects {
		if m.Phone != d.phone {
			continue
		}
		switch m.Direction {
		case sandbox.Payout:
			f.paidOut = append(f.paidOut, m.Amount)
		case sandbox.Collection:
			f.collected = append(f.collected, m.Amount)
			booked, _, err := w.booked(ctx, m)
			if err != nil {
				return err
			}
			if !booked {
				f.unbooked += m.Amount
			}
		}
	}
	if f.unbooked == 0 {
		return nil
	}
	for _, one := range flows {
		if !one.watches() {
			continue
		}
		id, err := (&office{harness: w}).objectOf(ctx, waiting{Flow: one.id})
		if err != nil {
			return err
		}
		f.watched = f.watched || id == d.id
	}
	return nil
}

// decisions collects Kivuko's decisions about money that fits no order, and its refunds in crypto.
func (w *harness) decisions(ctx context.Context, d action, f *evidence) error {
	var page struct {
		Exceptions []exception `json:"payment_exceptions"`
	}
	var back struct {
		Refunds []struct {
			Rail    string  `json:"rail"`
			Status  string  `json:"status"`
			Asset   string  `json:"asset"`
			Amount  string  `json:"amount"`
			Tx      *string `json:"tx_hash"`
			Receipt *string `json:"receipt"`
		} `json:"refunds"`
	}
	object := "order_id"
	if d.step.Kind.byMomo() {
		object = "otc_deposit_id"
	}
	query := fmt.Sprintf("?page_id=1&page_size=%d&%s=%s", listed, object, d.id)
	err := w.insist(ctx, stack.AdminEmail, func(ctx context.Context, c *client.Client) error {
		if err := c.Get(ctx, "/api/v1/auth/payment-exceptions"+query, &page); err != nil || d.step.Kind.byMomo() {
			return err // refunds of deposits are not of crypto
		}
		return c.Get(ctx, "/api/v1/auth/refunds"+query, &back)
	})
	if err != nil {
		return err
	}
	for _, x := range page.Exceptions {
		m, err := money.Parse(money.Asset(x.Asset), x.Amount)
		if err != nil {
			return err
		}
		switch {
		case exchange.ExceptionKind(x.Kind) == exchange.ExcPaidTwice:
			f.twice = append(f.twice, m)
		case slices.Contains([]exchange.ExceptionStatus{exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited}, exchange.ExceptionStatus(x.Status)):
			f.kept = append(f.kept, m)
		}
	}
	for _, r := range back.Refunds {
		if r.Rail != string(exchange.RefundOnChain) || r.Status != string(exchange.RefundCompleted) {
			continue
		}
		if r.Tx == nil {
			f.stands = true
			continue
		}
		m, err := money.Parse(money.Asset(r.Asset), r.Amount)
		if err != nil {
			return err
		}
		f.refunds = append(f.refunds, m)
	}
	return nil
}

// operatorAgrees compares the ledger's accounts at the operator with the operator's own, to the shilling. A movement
// that is not booked must have a row, or belong to a parked flow.
func (w *harness) operatorAgrees(ctx context.Context, b sandbox.Books, e ending) error {
	lookedFor := map[string]bool{}
	for _, d := range e.actions {
		lookedFor[d.phone] = e.asked[d.id]
	}
	moved := map[exchange.AccountKind]int64{}
	var errs []error
	for _, m := range b.Effects {
		kind, amount := exchange.AccMomoCollection, m.Amount
		switch m.Direction {
		case sandbox.Collection:
		case sandbox.Payout:
			kind, amount = exchange.AccMomoPayout, -m.Amount-m.Charge
		default:
			continue
		}
		booked, known, err := w.booked(ctx, m)
		switch {
		case err != nil:
			return err
		case booked:
			moved[kind] += amount
		case !known && len(e.parked) == 0 && !lookedFor[m.Phone]:
			errs = append(errs, fmt.Errorf("no row of Kivuko has the %s %s of %d", m.Direction, m.Receipt, m.Amount))
		}
	}
	for _, k := range []exchange.AccountKind{exchange.AccMomoCollection, exchange.AccMomoPayout} {
		errs = append(errs, w.movedSince(ctx, k, moved[k], "the operator"))
	}
	return errors.Join(errs...)
}

// bankAgrees compares the ledger's account at the bank with the bank's own books.
func (w *harness) bankAgrees(ctx context.Context, bank map[uuid.UUID]int64) error {
	var paid int64
	for _, amount := range bank {
		paid -= amount
	}
	return w.movedSince(ctx, exchange.AccBank, paid, "the bank")
}

// movedSince compares the change of the house's accounts of a kind since their opening.
func (w *harness) movedSince(ctx context.Context, k exchange.AccountKind, by int64, who string) error {
	posted, err := w.shillingsOf(ctx, `SELECT coalesce(sum(posted), 0)::text FROM ledger_accounts WHERE kind = $1`, k)
	if err != nil {
		return err
	}
	opening, err := w.shillingsOf(ctx, readOpening, k)
	if err != nil {
		return err
	}
	if want := opening.Add(money.Must(money.KES, strconv.FormatInt(by, 10))); !posted.Equal(want) {
		return fmt.Errorf("the account %s is %s by the ledger and %s by %s", k, posted, want, who)
	}
	return nil
}

// readOpening sums what journal entries and the lines of statements moved: only the openings are booked by them.
const readOpening = `SELECT coalesce(sum(l.amount), 0)::text FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id
	JOIN ledger_accounts a ON a.id = l.account_id WHERE a.kind = $1 AND (e.kind LIKE 'journal.%' OR e.kind LIKE 'bank_line.%')`

func (w *harness) shillingsOf(ctx context.Context, query string, k exchange.AccountKind) (money.Amount, error) {
	var sum string
	if err := w.db.QueryRowContext(ctx, query, k).Scan(&sum); err != nil {
		return money.Amount{}, err
	}
	return money.Parse(money.KES, sum)
}

// booked reports whether a movement at the operator is in the ledger, and whether Kivuko has a row of it.
func (w *harness) booked(ctx context.Context, e sandbox.Effect) (booked, known bool, err error) {
	query := `SELECT EXISTS (SELECT FROM ledger_entries WHERE key = 'momo:' || $1), EXISTS (SELECT FROM c2b_payments WHERE receipt = $1)`
	if e.Direction == sandbox.Payout {
		query = `SELECT count(*) FILTER (WHERE status = 'succeeded') = 1, false FROM payment_attempts WHERE direction = 'payout' AND receipt = $1`
	}
	err = w.db.QueryRowContext(ctx, query, e.Receipt).Scan(&booked, &known)
	return booked, known, err
}

// nothingTwice checks with the operator's books that no prompt was sent twice and no order or refund was paid out twice.
func (w *harness) nothingTwice(ctx context.Context, b sandbox.Books) error {
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
		err := w.db.QueryRowContext(ctx, `SELECT object_type || ' ' || object_id FROM payment_attempts WHERE direction = 'payout' AND id::text = $1`, e.Reference).Scan(&object)
		if errors.Is(err, sql.ErrNoRows) {
			errs = append(errs, fmt.Errorf("the operator paid %d to %s under the id %s, which belongs to no payout of ours", e.Amount, e.Phone, e.Reference))
			continue
		}
		if err != nil {
			return err
		}
		paid[object] = append(paid[object], e.Receipt)
	}
	for object, receipts := range paid {
		if len(receipts) > 1 {
			errs = append(errs, fmt.Errorf("%s was paid out %d times: %s", object, len(receipts), strings.Join(receipts, ", ")))
		}
	}
	return errors.Join(errs...)
}

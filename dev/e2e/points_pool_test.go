package e2e

import (
	"context"
	"fmt"
	"testing"

	"go.temporal.io/sdk/client"

	"kivuko/exchange/money"
	"kivuko/workflows"
)

const replenishEscrow = "replenish-escrow"

// replenishPool replenishes the pools now, by a new run.
func (w *harness) replenishPool(t *testing.T) { t.Helper(); w.trigger(t, replenishEscrow) }

// moreThanFree is more free addresses than there are or will be while the trial waits: those that rest until then, those that
// emptyPool has taken out of use, and those that were asked for are counted.
const moreThanFree = `
UPDATE escrow_policy SET keep_free = greatest(keep_free, (SELECT count(*) FROM escrow_addresses WHERE network = 'tron'
        AND (status IN ('free', 'disabled') OR rest_until < now() + interval '5 minutes'))
    + (SELECT count(*) FROM escrow_requests WHERE network = 'tron' AND made_at IS NULL)) + 1 WHERE network = 'tron'`

// poolReplenished requests more free addresses than there are. Sales return some that had rested, so that more may be free than the
// pool keeps.
func poolReplenished(t *testing.T, w *harness, _ *saleScenario, _ *trial, arm func()) {
	if _, err := w.db.ExecContext(t.Context(), moreThanFree); err != nil {
		t.Fatal(err)
	}
	arm()
	w.replenishPool(t)
}

// poolWasReplenished ends the open run of the dead process, which would otherwise fill the pool during the next trial.
func poolWasReplenished(t *testing.T, w *harness, _ *trial) { w.over(t, workflows.TypeReplenishEscrow) }

// poolAsWanted checks that enough addresses were made. Sales take and return some meanwhile, so there may be more; no
// wallet was made twice.
func poolAsWanted(t *testing.T, w *harness, _ *saleScenario, _ *trial) {
	err := await(t.Context(), recovery, func() error {
		var free, want int
		err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM escrow_addresses WHERE network = 'tron' AND status = 'free'),
			(SELECT keep_free FROM escrow_policy WHERE network = 'tron')`).Scan(&free, &want)
		if err == nil && free < want {
			err = fmt.Errorf("%d of %d", free, want)
		}
		return err
	})
	if err != nil {
		t.Errorf("addresses are free: %v", err)
	}
}

// emptyPool takes all free addresses of TRON out of use until fillPool. The schedule does not fill the pool meanwhile.
func (w *harness) emptyPool(t *testing.T) {
	t.Helper()
	rounds := w.temporal.ScheduleClient().GetHandle(t.Context(), replenishEscrow)
	if err := rounds.Pause(t.Context(), client.SchedulePauseOptions{Note: t.Name()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rounds.Unpause(context.WithoutCancel(t.Context()), client.ScheduleUnpauseOptions{}); err != nil {
			t.Error(err)
		}
	})
	w.over(t, workflows.TypeReplenishEscrow)
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_addresses SET status = 'disabled', reason = 'a test' WHERE network = 'tron' AND status = 'free'`); err != nil {
		t.Fatal(err)
	}
}

func (w *harness) fillPool(t *testing.T) {
	t.Helper()
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_addresses SET status = 'free', reason = '' WHERE network = 'tron' AND status = 'disabled'`); err != nil {
		t.Fatal(err)
	}
}

// poolExhausted opens a sale when no address is free: one is made for it.
func poolExhausted(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	w.emptyPool(t)
	s := sale{phone: newPhone(), back: b.back}
	in, c, n, ctx := w.saleForm(t, w.tronNode(), &s), w.amina(t), w.tronNode(), context.WithoutCancel(t.Context())
	arm()
	tr.answer = make(chan error, 1)
	go func() { // the response comes when the process is back
		o, err := place(ctx, c, in, s.key)
		tr.order = o
		if err == nil {
			err = n.Fund(ctx, o.Escrow.String, money.Must(money.USDT, soldCrypto))
		}
		tr.answer <- err
	}()
}

// poolOpen reopens the pool when the sale has its address.
func poolOpen(t *testing.T, w *harness, tr *trial) {
	w.hastenAll(t, workflows.TypeOffRamp)
	tr.answered(t)
	w.fillPool(t)
}

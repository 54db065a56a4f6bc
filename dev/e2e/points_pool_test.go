package e2e

import (
	"context"
	"fmt"
	"testing"

	"go.temporal.io/sdk/client"

	"kivuko/exchange/money"
	"kivuko/workflows"
)

const tendEscrow = "tend-escrow"

// tendPool has the pools be tended now, by a run that begins now.
func (w *world) tendPool(t *testing.T) { t.Helper(); w.trigger(t, tendEscrow) }

// poolTended asks for more free addresses than there are.
func poolTended(t *testing.T, w *world, _ *saleTale, _ *trial, arm func()) {
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_policy SET keep_free = keep_free + 1 WHERE network = 'tron'`); err != nil {
		t.Fatal(err)
	}
	arm()
	w.tendPool(t)
}

// poolWasTended ends the round that the process had in hand: it would fill the pool in the middle of the next trial.
func poolWasTended(t *testing.T, w *world, _ *trial) { w.over(t, workflows.TypeTendEscrow) }

// poolAsWanted holds that addresses were made until there were enough. Sales take and give back meanwhile, so that
// there may be more; no wallet was made twice for the same place.
func poolAsWanted(t *testing.T, w *world, _ *saleTale, _ *trial) {
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

// poolDry opens a sale when no address is free: one is made for it. Nobody else fills the pool meanwhile.
func poolDry(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	rounds := w.temporal.ScheduleClient().GetHandle(t.Context(), tendEscrow)
	if err := rounds.Pause(t.Context(), client.SchedulePauseOptions{Note: t.Name()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rounds.Unpause(context.WithoutCancel(t.Context()), client.ScheduleUnpauseOptions{}); err != nil {
			t.Error(err)
		}
	})
	w.over(t, workflows.TypeTendEscrow)
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_addresses SET status = 'disabled', reason = 'crash trial' WHERE network = 'tron' AND status = 'free'`); err != nil {
		t.Fatal(err)
	}
	s := sale{phone: newPhone(), back: b.back}
	in, c, n, ctx := w.saleForm(t, w.tronNode(), &s), w.amina(t), w.tronNode(), context.WithoutCancel(t.Context())
	arm()
	tr.told = make(chan error, 1)
	go func() { // it is answered when the process is back
		o, err := place(ctx, c, in, s.key)
		tr.order = o
		if err == nil {
			err = n.Fund(ctx, o.Escrow.String, money.Must(money.USDT, soldCrypto))
		}
		tr.told <- err
	}()
}

// poolOpen ends the drought when the sale has its address.
func poolOpen(t *testing.T, w *world, tr *trial) {
	w.hastenAll(t, workflows.TypeOffRamp)
	tr.answered(t)
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_addresses SET status = 'free', reason = '' WHERE network = 'tron' AND status = 'disabled'`); err != nil {
		t.Fatal(err)
	}
}

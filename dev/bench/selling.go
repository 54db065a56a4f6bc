package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// maxSaleEvents is the goal of one sale, with the payout of its shillings and the payment of its crypto to the vendor.
const maxSaleEvents = 80

// The numbers of measured sales. They are small, because each takes an escrow address, which then rests.
const (
	salesAlone              = 8
	salesBeside             = 20
	quickAlone, quickBeside = 2, 4
)

// saleWaits explains why a sale takes longer to open than a start call.
const saleWaits = "it waits for everything that opening a purchase waits for, and lends an escrow address in the same transaction"

// selling measures sales of crypto: the time to open one, its history events, and the rate of parallel sales from the
// deposit on the chain to the crypto with the vendor.
func (w *harness) selling(ctx context.Context, t *table) error {
	if err := w.login(ctx); err != nil {
		return err
	}
	offer, err := w.buyer(ctx)
	if err != nil {
		return err
	}
	alone, beside := salesAlone, salesBeside
	if w.Quick {
		alone, beside = quickAlone, quickBeside
	}
	if err := w.saleHistory(ctx, t, offer); err != nil {
		return err
	}
	var opened, starts []time.Duration
	for range alone {
		began := time.Now()
		s, err := w.openSale(ctx, offer)
		if err != nil {
			return err
		}
		opened = append(opened, time.Since(began))
		if err := w.settle(ctx, s); err != nil {
			return err
		}
		start, _, err := w.startEmpty(ctx)
		if err != nil {
			return err
		}
		starts = append(starts, start)
	}
	ours, bare := quantile(opened, 0.5), quantile(starts, 0.5)
	t.add(figure{
		name: "opening a sale against the start call of an empty flow: p50", why: saleWaits, ratio: ours.Seconds() / bare.Seconds(),
		note: fmt.Sprintf("%.1f ms to %.1f ms; %d times", ms(ours), ms(bare), alone),
	})
	return w.salesBeside(ctx, t, offer, beside)
}

// salesBeside plays sales in parallel, each from its opening to the crypto with the vendor.
func (w *harness) salesBeside(ctx context.Context, t *table, offer uuid.UUID, n int) error {
	began, before := time.Now(), w.measure()
	group, inner := errgroup.WithContext(ctx)
	for range n {
		group.Go(func() error {
			s, err := w.insistOnSale(inner, offer)
			if err == nil {
				err = w.settle(inner, s)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took, each := time.Since(began), summary{cpu: w.measure().since(before)}
	for process := range each.cpu {
		each.cpu[process] /= time.Duration(n)
	}
	w.say("  CPU ms per sale:%s", each.cost())
	t.add(figure{
		name: "parallel sales", unit: "a second", ratio: float64(n) / took.Seconds(),
		note: fmt.Sprintf("%d in %.1f s, from the opening to the crypto with the vendor, including two waits for finality of %s each", n, took.Seconds(), finality),
	})
	return nil
}

// insistOnSale opens a sale as an app does when every escrow address is in use: it retries until the pool has grown.
func (w *harness) insistOnSale(ctx context.Context, offer uuid.UUID) (sale, error) {
	const each, limit = time.Second, 2 * time.Minute
	for deadline := time.Now().Add(limit); ; {
		s, err := w.openSale(ctx, offer)
		problem, answered := errors.AsType[*client.Problem](err)
		if err == nil || !answered || problem.Status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(each):
		}
	}
}

// sale has the fields of a sale that the benchmark reads.
type sale struct {
	ID     uuid.UUID `json:"id"`
	Escrow struct {
		String string
	} `json:"escrow_wallet_address"`
}

// buyer returns a seeded offer that buys USDT on TRON.
func (w *harness) buyer(ctx context.Context) (uuid.UUID, error) {
	query := url.Values{"page_id": {"1"}, "page_size": {"5"}, "offer_type": {"BUY"}, "asset": {"USDT"}, "network": {"tron"}, "status": {"active"}}
	var offers []sale
	err := w.customer.Get(ctx, "/api/v1/auth/offers?"+query.Encode(), &offers)
	if err == nil && len(offers) == 0 {
		err = errors.New("no offer buys USDT on TRON")
	}
	if err != nil {
		return uuid.Nil, err
	}
	return offers[0].ID, nil
}

func (w *harness) openSale(ctx context.Context, offer uuid.UUID) (s sale, err error) {
	err = w.customer.Post(ctx, "/api/v1/auth/orders", uuid.NewString(), map[string]any{
		"order_type": "OFF_RAMP_SELL", "order_subtype": "standard_offramp", "offer_id": offer, "crypto_amount": buyUSDT,
		"payment_phone_number": fmt.Sprintf("+%d", firstPhone+w.phones.Add(1)),
	}, &s)
	return s, err
}

// settle pays a sale's address from outside and waits until its flow ends, when the vendor has the crypto.
func (w *harness) settle(ctx context.Context, s sale) error {
	in := map[string]any{"address": s.Escrow.String, "token": "USDT", "amount": "1000000", "mine": true}
	if err := post(ctx, "http://"+w.stack.Addresses.TronControl+"/fund", in); err != nil {
		return err
	}
	var result workflows.OffRampResult
	if err := w.temporal.GetWorkflow(ctx, workflows.OffRampID(s.ID), "").Get(ctx, &result); err != nil {
		return err
	}
	if result.Status != "completed" {
		return fmt.Errorf("a sale ended %s (%s)", result.Status, result.Detail)
	}
	return nil
}

// saleHistory counts the history events of a sale whose escrow address has the gas that `GasAhead` brings.
func (w *harness) saleHistory(ctx context.Context, t *table, offer uuid.UUID) error {
	s, err := w.openSale(ctx, offer)
	if err == nil {
		err = w.awaitGas(ctx, s.Escrow.String)
	}
	if err == nil {
		err = w.settle(ctx, s)
	}
	c := count{}
	if err == nil {
		err = w.countFlow(ctx, "off-ramp", workflows.OffRampID(s.ID), &c)
	}
	if err != nil {
		return err
	}
	t.add(figure{
		name: "history events of one sale", unit: "events", ratio: float64(c.events), goal: atMost(maxSaleEvents),
		note: fmt.Sprintf("%d activities and %d local ones; %d bytes", c.activities, c.local, c.bytes),
	})
	return nil
}

// awaitGas waits until an escrow address holds native coins.
func (w *harness) awaitGas(ctx context.Context, address string) error {
	const each, limit = time.Second, 3 * time.Minute // GasAhead looks each minute
	all, _, err := w.store.EscrowAddresses(ctx, store.EscrowFilter{Network: exchange.Tron}, store.Page{Number: 1, Size: store.MaxPageSize})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(a exchange.EscrowAddress) bool { return a.Address == address })
	if at < 0 {
		return fmt.Errorf("the escrow pool does not list %s", address)
	}
	account := exchange.Owned(exchange.AccCustody, all[at].ID, money.TRX)
	for deadline := time.Now().Add(limit); ; {
		held, err := w.store.Account(ctx, account)
		if err != nil || held.Posted.Positive() {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no gas came to %s within %s", address, limit)
		}
		pause(ctx, each)
	}
}

package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// EscrowStore is the pool of escrow addresses. Every method may be called again.
type EscrowStore interface {
	EscrowDemand(ctx context.Context) ([]exchange.EscrowDemand, error)
	EscrowRoom(ctx context.Context, n exchange.Network, order uuid.UUID) (exchange.EscrowDemand, error)
	// AskedOrder reads what an intent to open an order asks for.
	AskedOrder(ctx context.Context, a exchange.Asked) (exchange.OrderRequest, error)
	ReleaseEscrow(ctx context.Context, order uuid.UUID) ([]exchange.PaymentException, error)
	StaleLeases(ctx context.Context, before time.Time, most int) ([]uuid.UUID, error)
	KeptUnmoved(ctx context.Context, before time.Time, most int) ([]exchange.KeptDeposit, error)
}

// Escrow replenishes the pool of escrow addresses. It runs on the flows queue; keys are made by Wallets.
type Escrow struct{ Store EscrowStore }

// EscrowDemand takes rested addresses back into use, returns which wallets must be created, and updates the gauges of the
// pools.
func (e *Escrow) EscrowDemand(ctx context.Context) ([]exchange.EscrowDemand, error) {
	all, err := e.Store.EscrowDemand(ctx)
	for _, d := range all {
		of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"network": string(d.Network)})
		of.Gauge("kivuko_escrow_free").Update(float64(d.Free))   //nolint:forbidigo // a gauge of the SDK takes nothing else, and a count is no money
		of.Gauge("kivuko_escrow_total").Update(float64(d.Total)) //nolint:forbidigo // as above
		of.Gauge("kivuko_escrow_short").Update(float64(d.Short)) //nolint:forbidigo // as above
	}
	return all, Failure(ctx, err)
}

// Room reports whether to try again: an address is free now, or the wallets in Make must be created first.
type Room struct {
	Network      exchange.Network `json:"network"`
	MayProvision bool             `json:"may_provision"`
	Make         []uuid.UUID      `json:"make,omitempty"`
}

// EscrowRoom asks to extend an exhausted pool for the order that an intent asks for. Without a result the pool has its
// maximum size.
func (e *Escrow) EscrowRoom(ctx context.Context, in IntentInput) (Room, error) {
	r, err := e.Store.AskedOrder(ctx, in.asked(ctx))
	if err != nil {
		return Room{}, Failure(ctx, err)
	}
	network := r.Network
	if r.Seen.Network != "" {
		network = r.Seen.Network
	}
	d, err := e.Store.EscrowRoom(ctx, network, r.ID)
	return Room{Network: network, MayProvision: d.Free > 0 || len(d.Make) > 0, Make: d.Make}, Failure(ctx, err)
}

// EscrowReleased names the payment exceptions that were opened for crypto that the order did not take.
type EscrowReleased struct {
	Exceptions []uuid.UUID `json:"exceptions,omitempty"`
}

// ReleaseEscrow releases the address of an order that has ended. It fails with CodeStateConflict while the order's crypto is
// still there.
func (e *Escrow) ReleaseEscrow(ctx context.Context, in OrderInput) (EscrowReleased, error) {
	left, err := e.Store.ReleaseEscrow(ctx, in.OrderID)
	var out EscrowReleased
	for _, x := range left {
		out.Exceptions = append(out.Exceptions, x.ID)
	}
	return out, Failure(ctx, err)
}

// staleLeases is how many addresses one round handles.
const staleLeases = 50

// StaleInput names the time before which an order must have ended for its address to be stale.
type StaleInput struct {
	Before time.Time `json:"before"`
}

// StaleReleased is how many addresses were released in place of their flows, and how many still hold crypto that has to
// leave first.
type StaleReleased struct {
	Released int `json:"released,omitempty"`
	Stuck    int `json:"stuck,omitempty"`
	// Kept is the crypto that we keep there and whose move to the treasury has not begun.
	Kept []exchange.KeptDeposit `json:"kept,omitempty"`
}

// ReleaseStale releases the addresses of orders that ended long ago. A gauge counts those that still hold crypto: their flow
// is parked or gone. It also lists the crypto that we keep on addresses of the pool.
func (e *Escrow) ReleaseStale(ctx context.Context, in StaleInput) (StaleReleased, error) {
	var out StaleReleased
	stale, err := e.Store.StaleLeases(ctx, in.Before, staleLeases)
	if err != nil {
		return out, Failure(ctx, err)
	}
	for _, order := range stale {
		switch _, err := e.Store.ReleaseEscrow(ctx, order); {
		case err == nil:
			out.Released++
		case exchange.CodeOf(err) == exchange.CodeStateConflict:
			out.Stuck++
		default:
			return out, Failure(ctx, err)
		}
	}
	activity.GetMetricsHandler(ctx).Gauge("kivuko_escrow_stuck").Update(float64(out.Stuck)) //nolint:forbidigo // a gauge of the SDK takes nothing else, and a count is no money
	out.Kept, err = e.Store.KeptUnmoved(ctx, in.Before, staleLeases)
	return out, Failure(ctx, err)
}

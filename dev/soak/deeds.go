package soak

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// deed is a step that was taken: the object that it made and where its crypto goes.
type deed struct {
	step     Step
	node     demo.Node
	email    string // of who opens it
	customer string // of whom a merchant opens it for
	id       uuid.UUID
	phone    string // of nobody else
	address  string // of nobody else, where crypto goes out; of the order, where it comes in
	back     string // of nobody else, where the crypto of a sale goes back to; empty: to a wallet here
	amount   money.Amount
	refused  error // by the API, for good
}

// name is the deed for people.
func (d deed) name() string {
	return fmt.Sprintf("step %d (%s; %s on %s)", d.step.Number, d.step.what(), d.id, d.node.Network)
}

// path is where the API has the deed's object.
func (d deed) path() string {
	if d.step.Kind == Transfer {
		return "/api/v1/auth/transfers/" + d.id.String()
	}
	return "/api/v1/auth/orders/" + d.id.String()
}

// object is what the soak reads of an order or a transfer.
type object struct {
	ID     uuid.UUID `json:"id"`
	Status string    `json:"status"`
	Detail string    `json:"status_detail"`
	Fiat   string    `json:"fiat_amount"`
	Crypto string    `json:"crypto_amount"`
	Wallet string    `json:"wallet_address"`
}

// over tells whether nothing more happens to it by itself.
func (o object) over() bool {
	switch o.Status {
	case "completed", "cancelled", "failed", "rejected", "blocked":
		return true
	}
	return false
}

// do takes a step that is no trouble.
func (w *world) do(ctx context.Context, s Step) deed {
	d := deed{
		step: s, node: w.nodes[s.Network], email: demo.CustomerEmail, amount: money.FromUnits(money.USDT, big.NewInt(s.Units)),
		phone: fmt.Sprintf("2547%08d", firstPhone+s.Number),
	}
	switch {
	case s.Kind == Transfer:
		d.refused = w.transfer(ctx, &d)
	case s.Kind.buys():
		d.refused = w.purchase(ctx, &d)
	default:
		d.refused = w.sale(ctx, &d)
	}
	return d
}

// firstPhone is before the numbers of the plan's people, none of which is one of the sandbox's magic ones.
const firstPhone = 30_000_000

// misbehave asks the operator for what the plan says about the order's number.
func (w *world) misbehave(ctx context.Context, d *deed) error {
	if d.step.Operator == "" {
		return nil
	}
	return w.fault(ctx, d.step.Operator, d.step.operation(), d.phone, 1)
}

// order opens one, however often that takes.
func (w *world) order(ctx context.Context, d *deed, in map[string]any) (o object, err error) {
	if err := w.misbehave(ctx, d); err != nil {
		return o, err
	}
	key := newKey()
	err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/orders", key, in, &o)
	})
	d.id = o.ID
	w.opened(*d)
	return o, err
}

// purchase opens one for the customer itself, or as a merchant for somebody who walks in.
func (w *world) purchase(ctx context.Context, d *deed) error {
	in := map[string]any{"crypto_amount": d.amount.String()}
	var err error
	if d.step.Kind == MerchantSells {
		d.email = demo.VendorEmail
		err = w.walkIn(ctx, d)
		in["order_type"], in["order_subtype"], in["customer"] = exchange.OnRampSell, exchange.StandardOnRamp, map[string]any{"email": d.customer}
	} else {
		d.address, err = demo.Stranger(d.node.Network)
		in["payment_phone_number"], in["wallet_address"] = d.phone, d.address
	}
	if err != nil {
		return err
	}
	if in["offer_id"], err = w.offer(ctx, d, exchange.OfferSell); err != nil {
		return err
	}
	if _, err = w.order(ctx, d, in); err == nil && d.step.Odd == oddCancel {
		_ = w.cancel(ctx, *d) // who was quicker is for the flow to say
	}
	return err
}

// cancel gives an order up, as who opened it would.
func (w *world) cancel(ctx context.Context, d deed) error {
	key := newKey()
	return w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, d.path()+"/cancel", key, nil, nil)
	})
}

// sale opens a sale and brings what the plan says to the order's address. One from a wallet here needs nothing brought.
func (w *world) sale(ctx context.Context, d *deed) (err error) {
	d.email = demo.SecondEmail
	if forms[d.step.Kind].merchant {
		d.email = demo.VendorEmail
		if err := w.walkIn(ctx, d); err != nil {
			return err
		}
	}
	in, err := w.saleForm(ctx, d)
	if err != nil {
		return err
	}
	o, err := w.order(ctx, d, in)
	if err != nil {
		return err
	}
	d.address = o.Wallet
	if d.step.Odd == oddLate || d.step.Odd == oddCancel {
		_ = w.cancel(ctx, *d)
	}
	for _, m := range d.brings() {
		if err := w.bring(ctx, *d, m); err != nil {
			return err
		}
	}
	return nil
}

// What comes otherwise than agreed, in millionths.
const (
	farOver = 1_000_000_000 // above what any offer takes
	another = 1_000_000
)

// brings is what comes to the address of a sale from outside, in its order.
func (d deed) brings() []money.Amount {
	usdt := func(units int64) money.Amount { return money.FromUnits(money.USDT, big.NewInt(units)) }
	units := d.step.Units
	switch {
	case d.step.Odd == oddCancel, d.step.Inside:
		return nil
	case d.step.Odd == oddUnder:
		return []money.Amount{usdt(units - units/5)}
	case d.step.Odd == oddOver:
		return []money.Amount{usdt(units + units/5)}
	case d.step.Odd == oddFarOver:
		return []money.Amount{usdt(units + farOver)}
	case d.step.Odd == oddTwice:
		return []money.Amount{usdt(units), usdt(another)}
	case d.step.Odd == oddCoin:
		return []money.Amount{money.FromUnits(money.USDC, big.NewInt(another)), usdt(units)}
	}
	return []money.Amount{usdt(units)}
}

// bring has crypto come to the address of a sale, once.
func (w *world) bring(ctx context.Context, d deed, m money.Amount) error {
	const paying = time.Minute
	before := -1
	for deadline := time.Now().Add(paying); ; {
		now, err := w.arrived(ctx, d, m)
		if before >= 0 && now > before {
			return nil // it came, and the node's answer was lost
		}
		if err == nil && before < 0 {
			before = now
		}
		if before >= 0 {
			if err = d.node.Fund(ctx, d.address, m); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// arrived is how often exactly an amount has come to the deed's address; below zero when the node does not say.
func (w *world) arrived(ctx context.Context, d deed, m money.Amount) (int, error) {
	changes, err := d.node.Changes(ctx, d.address)
	if err != nil {
		return -1, err
	}
	came := 0
	for _, c := range changes {
		if c.Amount.Asset() == m.Asset() && c.Amount.Equal(m) {
			came++
		}
	}
	return came, nil
}

// transfer sends from the vendor's wallet.
func (w *world) transfer(ctx context.Context, d *deed) (err error) {
	d.email = demo.VendorEmail
	to := map[string]any{"email": demo.ThirdEmail}
	if !d.step.Inside {
		if d.address, err = demo.Stranger(d.node.Network); err != nil {
			return err
		}
		to = map[string]any{"address": d.address}
	}
	key := newKey()
	err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		var o object
		err := c.Post(ctx, "/api/v1/auth/transfers", key, map[string]any{
			"network": d.node.Network, "asset": money.USDT, "amount": d.amount.String(), "recipient": to,
		}, &o)
		d.id = o.ID
		return err
	})
	w.opened(*d)
	return err
}

// read is how a deed's object stands.
func (w *world) read(ctx context.Context, d deed) (o object, err error) {
	err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error { return c.Get(ctx, d.path(), &o) })
	return o, err
}

package soak

import (
	"context"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// deed is a step that was taken: the object that it made and where its crypto goes.
type deed struct {
	step    Step
	node    demo.Node
	email   string
	id      uuid.UUID
	phone   string
	address string // of nobody else, where crypto goes out; of the order, where it comes in
	amount  money.Amount
	refused error // by the API, for good
}

// object is what the soak reads of an order or a transfer.
type object struct {
	ID     uuid.UUID `json:"id"`
	Status string    `json:"status"`
	Detail string    `json:"status_detail"`
	Fiat   string    `json:"fiat_amount"`
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
	d := deed{step: s, node: w.nodes[s.Network], email: demo.CustomerEmail, amount: money.FromUnits(money.USDT, big.NewInt(s.Units)), phone: w.phone()}
	switch s.Kind {
	case Purchase:
		d.refused = w.purchase(ctx, &d)
	case Sale:
		d.refused = w.sale(ctx, &d)
	case Transfer:
		d.refused = w.transfer(ctx, &d)
	case Trouble:
	}
	return d
}

// misbehave asks the operator for what the plan says about the order's number.
func (w *world) misbehave(ctx context.Context, d *deed) error {
	if d.step.Operator == "" {
		return nil
	}
	return w.fault(ctx, d.step.Operator, operations[d.step.Kind], d.phone, 1)
}

// order opens one, however often that takes.
func (w *world) order(ctx context.Context, d *deed, in map[string]any) (o object, err error) {
	key := newKey()
	err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/orders", key, in, &o)
	})
	d.id = o.ID
	return o, err
}

func (w *world) purchase(ctx context.Context, d *deed) error {
	offer, err := w.offer(ctx, d, exchange.OfferSell)
	if err != nil {
		return err
	}
	if d.address, err = demo.Stranger(d.node.Network); err != nil {
		return err
	}
	if err := w.misbehave(ctx, d); err != nil {
		return err
	}
	_, err = w.order(ctx, d, map[string]any{
		"offer_id": offer, "crypto_amount": d.amount.String(), "payment_phone_number": d.phone, "wallet_address": d.address,
	})
	return err
}

// sale opens a sale and pays the order's address, from a wallet elsewhere or from the customer's here.
func (w *world) sale(ctx context.Context, d *deed) error {
	d.email = demo.SecondEmail
	offer, err := w.offer(ctx, d, exchange.OfferBuy)
	if err != nil {
		return err
	}
	back, err := demo.Stranger(d.node.Network)
	if err != nil {
		return err
	}
	if err := w.misbehave(ctx, d); err != nil {
		return err
	}
	o, err := w.order(ctx, d, map[string]any{
		"order_type": exchange.OffRampSell, "order_subtype": exchange.StandardOffRamp, "offer_id": offer, "crypto_amount": d.amount.String(),
		"payment_phone_number": d.phone, "refund_address": back,
	})
	if err != nil {
		return err
	}
	d.address = o.Wallet
	return w.pay(ctx, d)
}

// pay brings the crypto of a sale, once.
func (w *world) pay(ctx context.Context, d *deed) error {
	const paying = time.Minute
	for deadline := time.Now().Add(paying); ; {
		err := d.node.Fund(ctx, d.address, d.amount)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		changes, looked := d.node.Changes(ctx, d.address)
		if looked == nil && len(changes) > 0 && changes[len(changes)-1].Amount.Equal(d.amount) {
			return nil // it came, and the node's answer was lost
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
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
	return w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		var o object
		err := c.Post(ctx, "/api/v1/auth/transfers", key, map[string]any{
			"network": d.node.Network, "asset": money.USDT, "amount": d.amount.String(), "recipient": to,
		}, &o)
		d.id = o.ID
		return err
	})
}

// offer is one on the network that has so much left.
func (w *world) offer(ctx context.Context, d *deed, kind exchange.OfferType) (uuid.UUID, error) {
	query := url.Values{
		"page_id": {"1"}, "page_size": {"5"}, "offer_type": {string(kind)}, "asset": {string(money.USDT)}, "network": {string(d.node.Network)},
		"status": {"active"}, "amount": {d.amount.String()},
	}
	var all []object
	err := w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Get(ctx, "/api/v1/auth/offers?"+query.Encode(), &all)
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no %s offer on %s has %s USDT left", kind, d.node.Network, d.amount)
	}
	if err != nil {
		return uuid.Nil, err
	}
	return all[0].ID, nil
}

// read is how a deed's object stands.
func (w *world) read(ctx context.Context, d deed) (o object, err error) {
	path := "/api/v1/auth/orders/"
	if d.step.Kind == Transfer {
		path = "/api/v1/auth/transfers/"
	}
	err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error { return c.Get(ctx, path+d.id.String(), &o) })
	return o, err
}

package soak

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// action is a step that was taken, with its object and the addresses of its crypto.
type action struct {
	step     Step
	node     demo.Node
	email    string // of the user who opens it
	customer string // e-mail of the customer of a merchant's order
	id       uuid.UUID
	phone    string // used by no other action
	address  string // the recipient's, used by no other action; of a sale, the order's
	back     string // refund address of a sale, used by no other action; empty: a custodial wallet
	amount   money.Amount
	refused  error // the API's final refusal
}

// name describes the action in messages.
func (d action) name() string {
	return fmt.Sprintf("step %d (%s; %s on %s)", d.step.Number, d.step.what(), d.id, d.node.Network)
}

// path returns the API path of the action's object.
func (d action) path() string {
	switch {
	case d.step.Kind == Transfer:
		return "/api/v1/auth/transfers/" + d.id.String()
	case d.step.Kind.deposits():
		return "/api/v1/auth/otc/deposits/" + d.id.String()
	case d.step.Kind.withdraws():
		return "/api/v1/auth/otc/withdrawals/" + d.id.String()
	case d.step.Kind == Swap:
		return "/api/v1/auth/swaps/" + d.id.String()
	case d.step.Kind == Proposal:
		return proposalsPath + "/" + d.id.String()
	}
	return "/api/v1/auth/orders/" + d.id.String()
}

// object has the fields of an order, a transfer, a deposit or a withdrawal that the soak reads.
type object struct {
	ID        uuid.UUID  `json:"id"`
	Status    string     `json:"status"`
	Detail    string     `json:"status_detail"`
	Fiat      string     `json:"fiat_amount"`
	Crypto    string     `json:"crypto_amount"`
	Payout    string     `json:"payout_amount"`
	Wallet    string     `json:"wallet_address"`
	Reference string     `json:"payment_reference"`
	Line      *uuid.UUID `json:"statement_line_id"`
	Transfer  *uuid.UUID `json:"transfer_id"`
	PaymentID *uuid.UUID `json:"payment_id"`
	TxHash    string     `json:"tx_hash"`
	Ending    string     `json:"ending"`   // of a proposal
	Sequence  *uint64    `json:"sequence"` // of a proposal
	swapped
}

// over reports whether it has ended.
func (o object) over() bool {
	switch o.Status {
	case "completed", "cancelled", "failed", "rejected", "blocked", "audited", "expired", "refunded", "executed", "superseded":
		return true
	}
	return false
}

// do takes an action step.
func (w *harness) do(ctx context.Context, s Step) action {
	d := action{
		step: s, node: w.nodes[s.Network], email: demo.CustomerEmail, amount: money.FromUnits(money.USDT, big.NewInt(s.Units)),
		phone: fmt.Sprintf("2547%08d", firstPhone+s.Number),
	}
	switch {
	case s.Kind == Transfer:
		d.refused = w.transfer(ctx, &d)
	case s.Kind.buys():
		d.refused = w.purchase(ctx, &d)
	case s.Kind.deposits():
		d.refused = w.deposit(ctx, &d)
	case s.Kind.withdraws():
		d.refused = w.withdrawal(ctx, &d)
	case s.Kind == Swap:
		d.refused = w.swap(ctx, &d)
	case s.Kind == Proposal:
		d.refused = w.proposes(ctx, &d)
	default:
		d.refused = w.sale(ctx, &d)
	}
	return d
}

// firstPhone precedes the phone numbers of the plan's customers, none of which is one of the sandbox's magic numbers.
const firstPhone = 30_000_000

// misbehave sets the planned fault of the operator for the order's phone number.
func (w *harness) misbehave(ctx context.Context, d *action) error {
	if d.step.Operator == "" {
		return nil
	}
	return w.fault(ctx, d.step.Operator, d.step.operation(), d.phone, 1)
}

// order opens an order and retries until there is a response.
func (w *harness) order(ctx context.Context, d *action, in map[string]any) (o object, err error) {
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

// purchase opens a purchase as the customer, or as a merchant for a walk-in customer.
func (w *harness) purchase(ctx context.Context, d *action) error {
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
		_ = w.cancel(ctx, *d) // the flow decides whether it came in time
	}
	return err
}

// cancel cancels an order or a deposit as the user who opened it.
func (w *harness) cancel(ctx context.Context, d action) error {
	key, in := newKey(), map[string]any{}
	if d.step.Kind.deposits() {
		in["reason"] = "it can't be paid now"
	}
	return w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, d.path()+"/cancel", key, in, nil)
	})
}

// sale opens a sale and sends the planned crypto to the order's address, unless a custodial wallet pays it.
func (w *harness) sale(ctx context.Context, d *action) (err error) {
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
	if o.Wallet == "" { // a merchant sees it after the deposit
		err := w.insist(ctx, d.customer, func(ctx context.Context, c *client.Client) error { return c.Get(ctx, d.path(), &o) })
		if err != nil {
			return err
		}
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
	if slices.Contains([]Odd{oddUnder, oddOver, oddFarOver}, d.step.Odd) {
		_ = w.cancel(ctx, *d) // another amount decides nothing before the sale expires in half an hour
	}
	return nil
}

// Deviations from the order's amount, in millionths.
const (
	farOver = 1_000_000_000 // above the limit of every offer
	another = 1_000_000
)

// brings returns the deposits from outside to the address of a sale, in their order.
func (d action) brings() []money.Amount {
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

// bring sends crypto to the address of a sale, once.
func (w *harness) bring(ctx context.Context, d action, m money.Amount) error {
	const paying = time.Minute
	before := -1
	for deadline := time.Now().Add(paying); ; {
		now, err := w.arrived(ctx, d, m)
		if before >= 0 && now > before {
			return nil // it came, and the node's response was lost
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

// arrived counts the deposits of exactly an amount to the action's address; -1 when the node does not answer.
func (w *harness) arrived(ctx context.Context, d action, m money.Amount) (int, error) {
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
func (w *harness) transfer(ctx context.Context, d *action) (err error) {
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

// read returns the current state of an action's object.
func (w *harness) read(ctx context.Context, d action) (o object, err error) {
	err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error { return c.Get(ctx, d.path(), &o) })
	return o, err
}

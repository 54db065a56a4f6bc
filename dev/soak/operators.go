package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// leastPayout is what the operator pays out at the least, in shillings: below it nothing can go back.
const leastPayout = 10

// parked answers every flow that waits for a person with what its runbook says.
func (o *office) parked(ctx context.Context) error {
	all, err := o.parkedNow(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !o.due(p.Flow) {
			continue
		}
		object, err := o.objectOf(ctx, p)
		if err != nil {
			return err
		}
		if err := o.answer(ctx, p, object); err != nil {
			o.refused(err)
		}
	}
	return nil
}

// refused notes what the API says no to. An answer that does not come is asked for again in a later round.
func (o *office) refused(err error) {
	if p, said := errors.AsType[*client.Problem](err); said && p.Status < http.StatusInternalServerError {
		o.note("was refused: " + p.Error())
	}
}

// objectOf is the order or transfer to which a parked flow's commands go.
func (o *office) objectOf(ctx context.Context, p waiting) (id uuid.UUID, err error) {
	if p.ObjectID == nil {
		_, name, _ := strings.Cut(p.Flow, ":")
		if id, err = uuid.Parse(name); err != nil {
			return uuid.Nil, nil //nolint:nilerr // the flow is about a network and not about a deed
		}
	} else {
		id = *p.ObjectID
	}
	if _, known := o.deedOf(id); known {
		return id, nil
	}
	err = o.db.QueryRowContext(ctx, behind, id).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return uuid.Nil, nil
	}
	return id, err
}

// behind is the order of a payment attempt, a refund, an exception, or a payment on a chain.
const behind = `SELECT order_id FROM (
	SELECT a.id, coalesce(a.order_id, r.order_id) AS order_id FROM payment_attempts a LEFT JOIN refunds r ON r.id = a.refund_id
	UNION SELECT id, order_id FROM refunds UNION SELECT id, order_id FROM payment_exceptions
	UNION SELECT id, object_id FROM chain_payments) x WHERE x.id = $1 AND order_id IS NOT NULL LIMIT 1`

// answer does what the runbook of a reason says. What others of the office see to is left to them.
func (o *office) answer(ctx context.Context, p waiting, object uuid.UUID) error {
	d, known := o.deedOf(object)
	if !known {
		return nil
	}
	switch reason := workflows.Reason(p.Reason); {
	case slices.Contains(minded, reason):
		return nil
	case reason == workflows.ReasonRefundAddress:
		return o.whereTo(ctx, d)
	case slices.Contains(eitherWay, reason):
		if d.step.Returns {
			return o.command(ctx, d, p.Reason, "refund", "the customer does not want to wait")
		}
		return o.command(ctx, d, p.Reason, "retry", "")
	case reason == workflows.ReasonRefundPayee:
		return o.command(ctx, d, p.Reason, "refund", "the phone that was prompted is the payer's")
	case reason == workflows.ReasonMomoTwice, reason == workflows.ReasonRefundTwice:
		return o.command(ctx, d, p.Reason, "resolve", "the payee does not give it back")
	case slices.Contains(reason.Advice().Verbs, "resolve"):
		receipt, err := o.portal(ctx, d, reason == workflows.ReasonRefundClaimed)
		if err != nil {
			return err
		}
		if receipt != "" {
			return o.command(ctx, d, p.Reason, "resolve", receipt)
		}
	}
	return o.command(ctx, d, p.Reason, "retry", "")
}

// minded are the reasons that need no command: they pass, or somebody else in the office does what is needed.
var minded = []workflows.Reason{
	workflows.ReasonDepositsStalled, workflows.ReasonPayoutOverdue, workflows.ReasonBankWaiting, workflows.ReasonRefundSecond, workflows.ReasonLateMoney,
}

// eitherWay are the reasons of sales after which the staff may have it tried again, or give the crypto back.
var eitherWay = []workflows.Reason{
	workflows.ReasonBankRefused, workflows.ReasonMomoRefused, workflows.ReasonMomoPayeeLimit, workflows.ReasonMomoCredential,
}

// command tells the flow of an order or a transfer what is to be done.
func (o *office) command(ctx context.Context, d deed, why, verb, note string) error {
	in := map[string]any{}
	if note != "" {
		in["note"] = note
	}
	path := strings.TrimPrefix(d.path(), "/api/v1/auth/") + "/" + verb
	return o.says(ctx, operatorEmail, path, why+": "+verb, in)
}

// whereTo names the address to which crypto goes back: the customer does, or an operator, to whom another officer has
// to agree.
func (o *office) whereTo(ctx context.Context, d deed) error {
	address, err := o.home(d)
	if err != nil {
		return err
	}
	if d.step.Returns && d.customer != "" {
		return o.asks(ctx, d.customer, func(ctx context.Context, c *client.Client) error {
			err := c.Do(ctx, "PATCH", d.path()+"/refund-address", "", map[string]any{"refund_address": address}, nil)
			if err == nil {
				o.note("refund-address: the customer names it")
			}
			return err
		})
	}
	return o.says(ctx, operatorEmail, "orders/"+d.id.String()+"/refund", "refund-address: an operator names it",
		map[string]any{"note": "the customer named it by telephone", "address": address})
}

// home is the customer's own address, which a deed keeps once somebody asked for it.
func (o *office) home(d deed) (string, error) {
	o.world.mu.Lock()
	defer o.world.mu.Unlock()
	now := o.world.deeds[d.id]
	if now.back == "" {
		address, err := demo.Stranger(d.node.Network)
		if err != nil {
			return "", err
		}
		now.back = address
		o.world.deeds[d.id] = now
	}
	return now.back, nil
}

// portal looks a payment of a deed up in the operator's own books, as a person does in the operator's portal: one that
// Kivuko does not count yet, or any payout. It answers its receipt, or nothing.
func (o *office) portal(ctx context.Context, d deed, counted bool) (string, error) {
	b, err := o.books(ctx)
	if err != nil {
		return "", err
	}
	for _, e := range b.Effects {
		if e.Phone != d.phone || (e.Direction != sandbox.Payout && e.Direction != sandbox.Collection) {
			continue
		}
		if counted && e.Direction == sandbox.Payout {
			return e.Receipt, nil
		}
		booked, _, err := o.booked(ctx, e)
		if err != nil || !booked {
			return e.Receipt, err
		}
	}
	return "", nil
}

// exceptions decides about money that fits nothing: it goes back, or the house keeps it. What the flows themselves give
// back is not open.
func (o *office) exceptions(ctx context.Context) error {
	all, err := o.openExceptions(ctx)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.OrderID == nil || !o.due(x.ID.String()) {
			continue
		}
		d, known := o.deedOf(*x.OrderID)
		if !known || !slices.Contains([]string{"late", "duplicate", "wrong_asset"}, x.Kind) {
			continue
		}
		if err := o.settle(ctx, d, x); err != nil {
			o.refused(err)
		}
	}
	return nil
}

// openExceptions is the money about which nobody has decided.
func (o *office) openExceptions(ctx context.Context) ([]exception, error) {
	var desk struct {
		All []exception `json:"payment_exceptions"`
	}
	err := o.gets(ctx, operatorEmail, fmt.Sprintf("payment-exceptions?page_id=1&page_size=%d&status=open", listed), &desk)
	return desk.All, err
}

func (o *office) settle(ctx context.Context, d deed, x exception) error {
	path, in := "payment-exceptions/"+x.ID.String(), map[string]any{"note": "settled by the staff"}
	back := d.step.Returns
	if x.Asset == string(money.KES) {
		came, err := shillings(x.Amount)
		if err != nil {
			return err
		}
		back = came >= leastPayout // it is the payer's, and no order asks for it
	} else if back && d.back == "" { // of an order that a merchant opened, or that a wallet here was to pay
		address, err := o.home(d)
		if err != nil {
			return err
		}
		in["address"] = address
	}
	verb := "accept"
	if back {
		verb = "refund"
	}
	return o.says(ctx, operatorEmail, path+"/"+verb, x.Kind+" money: "+verb, in)
}

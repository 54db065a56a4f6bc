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

// leastPayout is the operator's smallest payout in shillings. Smaller amounts can't be refunded.
const leastPayout = 10

// parked answers every parked flow by its runbook.
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

// refused notes a refusal of the API. A later round repeats a call without a response.
func (o *office) refused(err error) {
	if p, said := errors.AsType[*client.Problem](err); said && p.Status < http.StatusInternalServerError {
		o.note("was refused: " + p.Error())
	}
}

// objectOf returns the order or transfer to which a parked flow's commands go.
func (o *office) objectOf(ctx context.Context, p waiting) (id uuid.UUID, err error) {
	if p.ObjectID == nil {
		_, name, _ := strings.Cut(p.Flow, ":")
		if id, err = uuid.Parse(name); err != nil {
			return uuid.Nil, nil //nolint:nilerr // the flow belongs to a network, not to an action
		}
	} else {
		id = *p.ObjectID
	}
	if _, known := o.actionOf(id); known {
		return id, nil
	}
	err = o.db.QueryRowContext(ctx, behind, id).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return uuid.Nil, nil
	}
	return id, err
}

// behind returns the order of a payment attempt, a refund, an exception, or a chain payment.
const behind = `SELECT order_id FROM (
	SELECT a.id, coalesce(a.order_id, r.order_id) AS order_id FROM payment_attempts a LEFT JOIN refunds r ON r.id = a.refund_id
	UNION SELECT id, order_id FROM refunds UNION SELECT id, order_id FROM payment_exceptions
	UNION SELECT id, object_id FROM chain_payments) x WHERE x.id = $1 AND order_id IS NOT NULL LIMIT 1`

// answer follows the runbook of a reason, unless another part of the office does.
func (o *office) answer(ctx context.Context, p waiting, object uuid.UUID) error {
	d, known := o.actionOf(object)
	if !known {
		return nil
	}
	switch reason := workflows.Reason(p.Reason); {
	case d.step.Kind.withdraws():
		return o.resolves(ctx, d)
	case reason == workflows.ReasonRefundSecond && (d.step.Kind == Purchase || d.step.Kind == MerchantSells): // of shillings; one in crypto is approved by itself
		return o.command(ctx, d, p.Reason, "refund", "two officers agree about the refund")
	case slices.Contains(minded, reason):
		return nil
	case d.step.Kind == Swap:
		return o.attends(ctx, d, reason)
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

// minded are the reasons that need no command here: they pass, or another part of the office acts.
var minded = []workflows.Reason{
	workflows.ReasonDepositsStalled, workflows.ReasonPayoutOverdue, workflows.ReasonBankWaiting, workflows.ReasonRefundSecond, workflows.ReasonLateMoney,
}

// eitherWay are the reasons of sales after which the staff may retry or give the crypto back.
var eitherWay = []workflows.Reason{
	workflows.ReasonBankRefused, workflows.ReasonMomoRefused, workflows.ReasonMomoPayeeLimit, workflows.ReasonMomoCredential,
}

// command sends a command to an order or a transfer.
func (o *office) command(ctx context.Context, d action, why, verb, note string) error {
	in := map[string]any{}
	if note != "" {
		in["note"] = note
	}
	path := strings.TrimPrefix(d.path(), "/api/v1/auth/") + "/" + verb
	return o.says(ctx, operatorEmail, path, why+": "+verb, in)
}

// whereTo names the refund address: as the customer, or as an operator, which another officer must approve.
func (o *office) whereTo(ctx context.Context, d action) error {
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

// home returns the customer's refund address, which stays the same after the first call.
func (o *office) home(d action) (string, error) {
	o.harness.mu.Lock()
	defer o.harness.mu.Unlock()
	now := o.harness.actions[d.id]
	if now.back == "" {
		address, err := demo.Stranger(d.node.Network)
		if err != nil {
			return "", err
		}
		now.back = address
		o.harness.actions[d.id] = now
	}
	return now.back, nil
}

// portal returns the receipt of a payment from the operator's own books, as an officer reads the operator's portal: a
// payment that Kivuko does not count yet, or any payout. It returns an empty string when there is none.
func (o *office) portal(ctx context.Context, d action, counted bool) (string, error) {
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

// exceptions decides about money that fits no order: it goes back, or the house keeps it. Exceptions that flows give
// back by themselves are not open.
func (o *office) exceptions(ctx context.Context) error {
	all, err := o.openExceptions(ctx)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.of() == nil || !o.due(x.ID.String()) {
			continue
		}
		d, known := o.actionOf(*x.of())
		if !known || !slices.Contains([]string{"late", "duplicate", "wrong_asset"}, x.Kind) {
			continue
		}
		if err := o.settle(ctx, d, x); err != nil {
			o.refused(err)
		}
	}
	return nil
}

// openExceptions returns the exceptions without a decision.
func (o *office) openExceptions(ctx context.Context) ([]exception, error) {
	var page struct {
		All []exception `json:"payment_exceptions"`
	}
	err := o.gets(ctx, operatorEmail, fmt.Sprintf("payment-exceptions?page_id=1&page_size=%d&status=open", listed), &page)
	return page.All, err
}

func (o *office) settle(ctx context.Context, d action, x exception) error {
	path, in := "payment-exceptions/"+x.ID.String(), map[string]any{"note": "settled by the staff"}
	back := d.step.Returns
	if x.Asset == string(money.KES) {
		came, err := shillings(x.Amount)
		if err != nil {
			return err
		}
		back = came >= leastPayout // no order needs it, so it goes back to the payer
	} else if back && d.back == "" { // of an order that a merchant opened, or that a custodial wallet pays
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

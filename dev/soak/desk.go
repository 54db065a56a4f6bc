package soak

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The desk: deposits and withdrawals of a merchant, whom the staff serves.

// atDesk reports whether an action of the kind is a merchant's at the desk.
func (k Kind) atDesk() bool { return k.deposits() || k.withdraws() }

func (k Kind) deposits() bool { return k == Deposit || k.byMomo() }

// byMomo reports whether the money of a deposit comes by mobile money, so that no officer has to confirm it.
func (k Kind) byMomo() bool { return k == Prompted || k == ByHand }

func (k Kind) withdraws() bool { return k == Withdrawal || k == Purchased }

// inShillings is what a deposit brings and a withdrawal of shillings takes out.
func (d action) inShillings() string {
	const unitsPerShilling = 10_000
	return strconv.FormatInt(d.step.Units/unitsPerShilling, 10)
}

// opens opens an object of the merchant's.
func (w *harness) opens(ctx context.Context, d *action, path string, in map[string]any) error {
	id, err := w.makes(ctx, path, in)
	d.id = id
	w.opened(*d)
	return err
}

// makes asks for something as the merchant, until there is an answer.
func (w *harness) makes(ctx context.Context, path string, in map[string]any) (uuid.UUID, error) {
	var made object
	key := newKey()
	err := w.insist(ctx, demo.VendorEmail, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/"+path, key, in, &made)
	})
	return made.ID, err
}

// deposit announces shillings that the merchant pays at the bank or by mobile money: to have them, or for crypto.
func (w *harness) deposit(ctx context.Context, d *action) error {
	d.email = demo.VendorEmail
	in := map[string]any{"method": exchange.OTCByBank, "requested_asset": money.KES, "fiat_amount": d.inShillings()}
	if d.step.Inside {
		in["requested_asset"], in["requested_network"] = money.USDT, d.node.Network
	}
	if d.step.Kind == Prompted {
		in["method"], in["momo_phone_number"] = exchange.OTCByMomo, d.phone
	}
	if d.step.Kind == ByHand {
		in["method"] = exchange.OTCByC2B
	}
	if err := w.opens(ctx, d, "otc/deposits", in); err != nil || d.step.Kind != ByHand {
		return err
	}
	return w.paysByHand(ctx, *d)
}

// paysByHand has the merchant pay a deposit to our number, once. The operator may reject it while we don't answer.
func (w *harness) paysByHand(ctx context.Context, d action) error {
	o, err := w.read(ctx, d)
	if err != nil {
		return err
	}
	amount, err := shillings(d.inShillings())
	if err != nil {
		return err
	}
	in := map[string]any{"phone": d.phone, "reference": o.Reference, "amount": amount}
	return until(ctx, time.Minute, func() error { return w.operator(ctx, http.MethodPost, "/control/pay", in, nil) })
}

// readList has the operator's list read, without which a payment to our number is not proven. The product does so every half an hour.
func (w *harness) readList(ctx context.Context) error {
	return w.temporal.ScheduleClient().GetHandle(ctx, "reconcile-payments").Trigger(ctx, temporal.ScheduleTriggerOptions{})
}

// withdrawal takes shillings out to a phone or a bank, sells crypto of the merchant's to a phone, or buys crypto.
func (w *harness) withdrawal(ctx context.Context, d *action) error {
	d.email = demo.VendorEmail
	to, err := w.destination(ctx, d)
	if err != nil {
		return err
	}
	in := map[string]any{"destination_id": to, "source_asset": money.KES, "payout_asset": money.KES}
	quote := map[string]any{"purpose": exchange.QuoteForWithdrawal, "asset": money.USDT, "network": d.node.Network, "amount": d.amount.String()}
	switch {
	case d.step.Kind == Purchased:
		in["payout_asset"] = money.USDT
		quote["offer_type"], quote["method"] = exchange.OfferSell, exchange.WithdrawByChain
	case d.step.Inside:
		wallet, err := w.store.DefaultWallet(ctx, w.vendor, d.node.Network)
		if err != nil {
			return err
		}
		in["source_asset"], in["source_wallet_id"] = money.USDT, wallet.ID
		quote["offer_type"], quote["method"] = exchange.OfferBuy, exchange.WithdrawByMomo
	default:
		in["payout_amount"] = d.inShillings()
	}
	if quote["method"] != nil {
		if in["fx_rate_quote_id"], err = w.makes(ctx, "pricing/quotes", quote); err != nil {
			return err
		}
	}
	return w.opens(ctx, d, "otc/withdrawals", in)
}

// destination saves and confirms where a withdrawal goes.
func (w *harness) destination(ctx context.Context, d *action) (uuid.UUID, error) {
	in := map[string]any{"kind": exchange.DestinationPhone, "phone_number": d.phone}
	switch {
	case d.step.Kind == Purchased:
		var err error
		if d.address, err = demo.Stranger(d.node.Network); err != nil {
			return uuid.Nil, err
		}
		in = map[string]any{"kind": exchange.DestinationAddress, "network": d.node.Network, "address": d.address}
	case d.step.Bank:
		in = map[string]any{"kind": exchange.DestinationBank, "bank_name": "Equity Bank", "account_name": "John Kamau", "account_number": d.phone}
	}
	id, err := w.makes(ctx, "otc/destinations", in)
	if err == nil {
		_, err = w.makes(ctx, "otc/destinations/"+id.String()+"/confirm", map[string]any{})
	}
	return id, err
}

// desk has the staff serve every merchant: it takes the next step of each deposit and each withdrawal. Who brings statements in takes no
// other step of a deposit.
func (o *office) desk(ctx context.Context) error {
	o.harness.mu.Lock()
	var all []action
	for _, d := range o.actions {
		if d.step.Kind.atDesk() {
			all = append(all, d)
		}
	}
	o.harness.mu.Unlock()
	for _, d := range all {
		if slices.Contains(o.served, d.id) || !o.due(d.id.String()) {
			continue
		}
		var now object
		if err := o.gets(ctx, operatorEmail, strings.TrimPrefix(d.path(), "/api/v1/auth/"), &now); err != nil {
			return err
		}
		if now.over() {
			o.served = append(o.served, d.id)
			continue
		}
		serve := o.review
		if d.step.Kind.withdraws() {
			serve = o.payOut
		}
		if err := serve(ctx, d, now); err != nil {
			o.refused(err)
		}
	}
	return nil
}

// review takes the next step of a deposit.
func (o *office) review(ctx context.Context, d action, now object) error {
	path := "otc/deposits/" + d.id.String()
	says := func(email, verb string, in map[string]any) error {
		if in == nil {
			in = map[string]any{}
		}
		return o.says(ctx, email, path+"/"+verb, "a deposit: "+verb, in)
	}
	switch exchange.OTCStatus(now.Status) {
	case exchange.OTCPending:
		if d.step.Kind.byMomo() {
			return nil // the operator proves it
		}
		if now.Line == nil {
			if err := o.pays(d.id, "-"+d.inShillings()); err != nil {
				return err
			}
			return o.asks(ctx, secondEmail, func(ctx context.Context, c *client.Client) error {
				return demo.PaidAtBank(ctx, c, now.Reference, d.inShillings())
			})
		}
		return says(demo.DeskEmail, "claim", nil)
	case exchange.OTCClaimed:
		return says(demo.DeskEmail, "confirm", map[string]any{"received_amount": d.inShillings(), "value_date": today(), "statement_line_id": now.Line})
	case exchange.OTCConfirmed:
		return says(officerEmail, "settle", nil)
	case exchange.OTCSettling:
		if now.Transfer == nil {
			return nil
		}
		return o.decides(ctx, secondEmail, "transfers/"+now.Transfer.String()+"/approve", "approved the transfer of a deposit")
	case exchange.OTCCredited:
		return says(operatorEmail, "audit", nil)
	default: // nothing is for the staff
	}
	return nil
}

// payOut takes the next step of a withdrawal.
func (o *office) payOut(ctx context.Context, d action, now object) error {
	path := "otc/withdrawals/" + d.id.String()
	switch exchange.WithdrawalStatus(now.Status) {
	case exchange.WithdrawalPending:
		for _, email := range []string{operatorEmail, officerEmail} {
			_ = o.decides(ctx, email, path+"/approve", "approved a withdrawal") // one may have approved it before
		}
	case exchange.WithdrawalApproved:
		return o.says(ctx, secondEmail, path+"/execute", "executed a withdrawal", map[string]any{})
	case exchange.WithdrawalConfirming:
		if !d.step.Bank {
			return nil
		}
		if err := o.pays(d.id, now.Payout); err != nil {
			return err
		}
		who := officerEmail
		if now.Detail == exchange.WaitBankSecond {
			who = operatorEmail
		}
		return o.says(ctx, who, path+"/confirm-bank-payout", "paid a withdrawal at the bank", o.bankWords(d, now.Payout))
	case exchange.WithdrawalReview:
		return o.resolves(ctx, d)
	default: // nothing is for the staff
	}
	return nil
}

// resolves decides about a withdrawal whose payout did not succeed, or whose flow waits for the staff, by the operator's portal.
func (o *office) resolves(ctx context.Context, d action) error {
	receipt, err := o.portal(ctx, d, false)
	if err != nil {
		return err
	}
	in := map[string]any{"outcome": "retry"}
	if receipt != "" {
		in = map[string]any{"outcome": "paid", "receipt": receipt}
	}
	return o.says(ctx, operatorEmail, "otc/withdrawals/"+d.id.String()+"/resolve", "resolved a withdrawal", in)
}

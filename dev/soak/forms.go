package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// form describes the request of a kind of sale.
type form struct {
	kind     exchange.OrderType
	subtype  exchange.OrderSubtype
	merchant bool // a merchant opens it for a customer
	quote    bool // a quote has its price, and the house buys
	sender   bool // it names sender and beneficiary
	funded   bool // it is always paid from a custodial wallet
	bank     bool // the shillings may go to a bank account
}

var forms = map[Kind]form{
	Sale:         {kind: exchange.OffRampSell, subtype: exchange.StandardOffRamp},
	MerchantBuys: {kind: exchange.OffRampBuy, subtype: exchange.StandardOffRamp, merchant: true},
	Remittance:   {kind: exchange.OffRampSell, subtype: exchange.RemittanceOffRamp, sender: true, bank: true},
	Custodial:    {kind: exchange.OffRampSell, subtype: exchange.CustodialRemittanceOffRamp, quote: true, sender: true, funded: true, bank: true},
	TreasurySale: {kind: exchange.OffRampSell, subtype: exchange.TreasuryOffRamp, quote: true, bank: true},
}

// saleForm returns the request for a sale.
func (w *harness) saleForm(ctx context.Context, d *action) (map[string]any, error) {
	f := forms[d.step.Kind]
	in := map[string]any{"order_type": f.kind, "order_subtype": f.subtype, "crypto_amount": d.amount.String()}
	if err := w.price(ctx, d, f, in); err != nil {
		return nil, err
	}
	if f.merchant {
		in["customer"] = map[string]any{"email": d.customer}
		return in, nil // the customer's own phone and refund address apply
	}
	if d.step.Inside {
		in["wallet_id"] = w.wallets[purse{d.email, d.node.Network}].ID
	} else {
		back, err := demo.Stranger(d.node.Network)
		if err != nil {
			return nil, err
		}
		d.back, in["refund_address"] = back, back
	}
	if f.sender {
		maps.Copy(in, map[string]any{
			"sender_name": "Jane Doe", "sender_country": senderCountry, "sender_phone": "+447700900123", "beneficiary_account_name": "John Kamau",
		})
	}
	if !d.step.Bank {
		in["payment_phone_number"] = d.phone
		return in, nil
	}
	maps.Copy(in, map[string]any{
		"payment_method": exchange.PaymentMethodBank, "beneficiary_account_name": "John Kamau", "beneficiary_bank_name": "Equity Bank",
		"beneficiary_account_number": fmt.Sprintf("%010d", d.step.Number), "beneficiary_bank_code": "68",
	})
	return in, nil
}

// price adds the sale's offer or quote to the request.
func (w *harness) price(ctx context.Context, d *action, f form, in map[string]any) error {
	if !f.quote {
		offer, err := w.offer(ctx, d, exchange.OfferBuy)
		in["offer_id"] = offer
		return err
	}
	var made object
	key, ask := newKey(), map[string]any{"purpose": "offramp", "offer_type": "BUY", "asset": money.USDT, "amount": d.amount.String()}
	err := w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/pricing/quotes", key, ask, &made)
	})
	in["fx_rate_quote_id"] = made.ID
	if !f.funded && !d.step.Inside { // otherwise the network follows from the wallet
		in["network"] = d.node.Network
	}
	return err
}

// senderCountry is the country that remittances come from.
const senderCountry = "GB"

// offer returns an offer on the network with enough left.
func (w *harness) offer(ctx context.Context, d *action, kind exchange.OfferType) (uuid.UUID, error) {
	query := url.Values{
		"page_id": {"1"}, "page_size": {"5"}, "offer_type": {string(kind)}, "asset": {string(money.USDT)}, "network": {string(d.node.Network)},
		"status": {"active"}, "amount": {d.amount.String()},
	}
	if forms[d.step.Kind].merchant || d.step.Kind == MerchantSells {
		query.Set("vendor_id", w.vendor.String())
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

// walkIn creates the customer of a merchant's order, with a wallet for the crypto. A merchant may have only one open
// order for each customer, so each order gets a new customer.
func (w *harness) walkIn(ctx context.Context, d *action) error {
	d.customer = fmt.Sprintf("walk-in-%d@kivuko.example", d.step.Number)
	var id uuid.UUID
	err := w.insist(ctx, stack.AdminEmail, func(ctx context.Context, c *client.Client) error {
		err := w.db.QueryRowContext(ctx, `SELECT id FROM users WHERE email = $1`, d.customer).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) { // or the answer was lost
			return err
		}
		// Codes are counted by the address that asks for them. People who walk in come from many, we from one.
		if _, err := w.db.ExecContext(ctx, `DELETE FROM login_failures WHERE key LIKE 'code-ip:%'`); err != nil {
			return err
		}
		id, err = w.seed.Register(ctx, c, demo.Person{Email: d.customer, Phone: "+" + d.phone, First: "Walk", Last: "In"})
		return err
	})
	if err != nil || d.step.Kind != MerchantSells {
		return err
	}
	var wallet struct {
		ID      uuid.UUID `json:"id"`
		Address string    `json:"address"`
	}
	key, in := newKey(), map[string]any{"user_id": id, "network": d.node.Network, "asset": money.USDT, "set_default": true, "label": "walk-in"}
	err = w.insist(ctx, stack.AdminEmail, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/wallets/provision", key, in, &wallet)
	})
	d.address = wallet.Address
	return err
}

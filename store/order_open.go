package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

var readOrderByID = `SELECT ` + orderColumns + ` FROM orders o WHERE o.id = $1`

// OpenOrder carries out an intent to buy: it opens a purchase against a SELL offer at the offer's rate, and reserves its
// crypto from its remainder; or one from the house at a quote, out of its inventory. A customer opens it for itself; a merchant for a
// customer, or from the house for itself. A repeated call returns the existing order. CodeInvalid names the fields that break
// the order kind's rules or the offer's bounds. CodeStateConflict: the offer is not open (those of an inactive vendor are not), or the
// quote was used. CodeInsufficientOffer: the offer has too little left. CodeInsufficientFunds: the inventory has. CodeExpired: the
// quote has expired. CodeLimitReached: the customer has the maximum of pending orders, would exceed a spending limit, or the phone
// has reached its limit of prompts. CodeRateChanged: the offer's rate is not the expected one. The errors of useIntent come before
// all others.
func (s *Store) OpenOrder(ctx context.Context, a exchange.Asked) (exchange.Order, error) {
	wanted, err := readAsked(ctx, s, a, exchange.OrderRequestOf, exchange.IntendPurchase)
	if err != nil {
		return exchange.Order{}, err
	}
	contended := wanted.OfferID
	if contended == uuid.Nil {
		contended = exchange.PlatformTreasury
	}
	return change(ctx, s, "order", contended, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		r, by, old, found, err := t.askedOrder(ctx, a, exchange.IntendPurchase)
		if err != nil || found {
			return old, none, err
		}
		k, ok := r.Kind()
		if !ok || k.OffRamp() {
			return exchange.Order{}, none, exchange.Errorf(exchange.CodeUnsupported, "Purchases of type %s %s are not supported.", r.Type, r.Subtype)
		}
		if err := r.Check(k); err != nil {
			return exchange.Order{}, none, err
		}
		d, err := t.draftPurchase(ctx, r, k)
		if err != nil {
			return exchange.Order{}, none, err
		}
		if err := t.promptable(ctx, d.order, r); err != nil {
			return exchange.Order{}, none, err
		}
		return t.insertPurchase(ctx, d, by, a.IntentID)
	})
}

// purchaseDraft is a purchase before it is opened, with the source of its price and its crypto.
type purchaseDraft struct {
	order     exchange.Order
	offer     exchange.Offer     // for kinds with an offer
	quote     exchange.FXQuote   // for kinds without one
	inventory exchange.Inventory // likewise
}

// source is the hold that the crypto is reserved from, and its account.
func (d purchaseDraft) source() (uuid.UUID, exchange.AccountRef) {
	if d.order.OfferID == uuid.Nil {
		return d.inventory.HoldID, d.inventory.Account()
	}
	return d.offer.HoldID, d.offer.FundingAccount()
}

// insertPurchase stores a purchase and reserves its crypto.
func (t unitTx) insertPurchase(ctx context.Context, d purchaseDraft, by exchange.Principal, intent uuid.UUID) (exchange.Order, exchange.Posting, error) {
	o, none := d.order, exchange.Posting{}
	var err error
	if o.HoldID, err = uuid.NewV7(); err != nil {
		return o, none, err
	}
	if o.PaymentReference, err = t.drawReference(ctx, o.ID); err != nil {
		return o, none, err
	}
	parent, account := d.source()
	p := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldSplit, Hold: orderHold(o, "order:"+o.ID.String(), account, parent, o.Price.Crypto)}}}
	if err := t.insertOrder(ctx, o, intent); err != nil {
		return o, none, err
	}
	if o.OfferID != uuid.Nil {
		_, err = t.settleOffer(ctx, d.offer, d.offer.Available.Sub(o.Price.Crypto), flow)
	} else {
		err = t.useQuote(ctx, d.quote, "order", o.ID, by)
	}
	if err != nil {
		return o, none, err
	}
	return o, p, t.record(ctx, orderRecord("order.opened", by, nil, o))
}

// promptable refuses a price outside the mobile money provider's limits per payment.
func (t unitTx) promptable(ctx context.Context, o exchange.Order, r exchange.OrderRequest) error {
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return err
	}
	pointer := "/crypto_amount"
	if r.Fiat.Positive() {
		pointer = "/fiat_amount"
	}
	return terms.AllowPrompt(o.Price.Fiat, pointer)
}

// orderHold is the reservation of an order.
func orderHold(o exchange.Order, key string, account exchange.AccountRef, parent uuid.UUID, amount money.Amount) exchange.Hold {
	return exchange.Hold{ID: o.HoldID, Key: key, Account: account, ParentID: parent, Amount: amount, ObjectType: "order", ObjectID: o.ID}
}

func tooLittle(offer exchange.Offer) error {
	return exchange.Errorf(exchange.CodeInsufficientOffer, "The offer has %s %s left.", offer.Available, offer.Asset)
}

// askedOrder uses an intent to open an order, and returns its request and the caller, or the order that it opened before.
func (t unitTx) askedOrder(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) (
	r exchange.OrderRequest, by exchange.Principal, old exchange.Order, found bool, err error,
) {
	asked, used, err := t.useIntent(ctx, a, kind)
	if err != nil {
		return r, by, old, false, err
	}
	if used {
		old, err = readOne[exchange.Order](ctx, t, "order", readOrderByID, asked.ObjectID)
		return r, by, old, true, err
	}
	r, err = exchange.OrderRequestOf(asked)
	return r, asked.By, old, false, err
}

// merchantOf is the merchant that an active user acts for.
const merchantOf = `
SELECT m.id FROM users u JOIN users m ON m.id = coalesce(u.vendor_id, u.id)
WHERE u.id = $1 AND u.is_active AND m.is_active AND u.role IN ('vendor', 'subvendor')`

// openOffer locks the offer of a request and refuses one that is not open for it.
func (t unitTx) openOffer(ctx context.Context, r exchange.OrderRequest, k exchange.OrderKind) (exchange.Offer, error) {
	offer, err := t.lockedOffer(ctx, r.OfferID)
	if err != nil {
		return offer, err
	}
	if k.VendorOpens {
		var merchants []uuid.UUID
		if err := t.All(ctx, &merchants, merchantOf, r.OpenerID); err != nil {
			return offer, err
		}
		if err := require(len(merchants) == 1 && merchants[0] == offer.VendorID, "/offer_id", "not_found", "must be the id of one of your offers"); err != nil {
			return offer, err
		}
	}
	switch {
	case offer.Type != k.Offer && k.OffRamp():
		return offer, exchange.Errorf(exchange.CodeStateConflict, "The offer sells crypto. A sale needs an offer that buys crypto.")
	case offer.Type != k.Offer:
		return offer, exchange.Errorf(exchange.CodeStateConflict, "The offer buys crypto. A purchase needs an offer that sells crypto.")
	case offer.Status == exchange.OfferExhausted:
		return offer, exchange.Errorf(exchange.CodeInsufficientOffer, "The offer is %s. Only an active offer takes orders.", offer.Status)
	case offer.Status != exchange.OfferActive:
		return offer, exchange.Errorf(exchange.CodeStateConflict, "The offer is %s. Only an active offer takes orders.", offer.Status)
	case !r.ExpectedRate.IsZero() && !r.ExpectedRate.Equal(offer.Rate):
		return offer, exchange.Errorf(exchange.CodeRateChanged, "The offer's rate is now %s KES, not %s.", offer.Rate, r.ExpectedRate)
	}
	return offer, nil
}

// draftPurchase prices and checks a request by its offer or its quote.
func (t unitTx) draftPurchase(ctx context.Context, r exchange.OrderRequest, k exchange.OrderKind) (purchaseDraft, error) {
	now := t.s.now()
	d := purchaseDraft{order: exchange.Order{
		ID: r.ID, CustomerID: r.CustomerID, Type: k.Type, Subtype: k.Subtype, OpenedBy: r.OpenerID, QuoteID: r.QuoteID,
		WalletAddress: r.WalletAddress, Status: exchange.OrderPending, StatusDetail: exchange.WaitPrompt,
		PaymentMethod: exchange.PaymentMethodMomo, PaymentPhone: exchange.Phone(r.Phone), ExpiresAt: r.ExpiresAt.UTC(),
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}}
	if r.ExpiresAt.IsZero() {
		d.order.ExpiresAt = now.Add(exchange.OrderLife)
	}
	var err error
	if k.Quote {
		err = t.buyByQuote(ctx, r, &d)
	} else {
		err = t.buyByOffer(ctx, r, k, &d)
	}
	return d, err
}

func (t unitTx) buyByOffer(ctx context.Context, r exchange.OrderRequest, k exchange.OrderKind, d *purchaseDraft) error {
	offer, err := t.openOffer(ctx, r, k)
	if err != nil {
		return err
	}
	o := &d.order
	o.VendorID, o.OfferID, o.Network, o.Asset, o.Rate, o.WalletID = offer.VendorID, offer.ID, offer.Network, offer.Asset, offer.Rate, offer.WalletID
	if o.Price, err = price(r, offer, exchange.PriceByCrypto, exchange.PriceByFiat); err != nil {
		return err
	}
	if err := t.chargeFees(ctx, o, amountPointer(r)); err != nil {
		return err
	}
	o.AskedAmount, d.offer = o.Price.Crypto, offer
	if err := t.fillCustomer(ctx, o); err != nil {
		return err
	}
	if o.Price.Crypto.Cmp(offer.Available) > 0 {
		return tooLittle(offer)
	}
	return nil
}

// price computes an order's price from an amount of crypto or of shillings, and checks it against the offer's bounds.
func price(r exchange.OrderRequest, offer exchange.Offer, byCrypto func(money.Amount, decimal.Decimal) exchange.Price,
	byFiat func(money.Amount, money.Asset, decimal.Decimal) exchange.Price,
) (exchange.Price, error) {
	pointer, p := amountPointer(r), exchange.Price{}
	switch {
	case r.Crypto.Positive() == r.Fiat.Positive():
		return p, require(false, pointer, "required", "must be above zero, and only one of crypto_amount and fiat_amount may be given")
	case r.Crypto.Positive():
		if err := require(r.Crypto.Asset() == offer.Asset, "/asset", "mismatch", "must be the offer's asset"); err != nil {
			return p, err
		}
		p = byCrypto(r.Crypto, offer.Rate)
	default:
		if err := require(r.Fiat.Asset() == money.KES && r.Fiat.Equal(r.Fiat.FloorWhole()), pointer, "precision", "must be whole shillings"); err != nil {
			return p, err
		}
		p = byFiat(r.Fiat, offer.Asset, offer.Rate)
	}
	if !p.Crypto.Positive() || !p.Vendor.Positive() || !p.Fiat.Positive() {
		return p, require(false, pointer, "range", "must be large enough to be exchanged")
	}
	return p, inBounds(p.Crypto, offer, pointer)
}

// amountPointer names the request's field with the amount.
func amountPointer(r exchange.OrderRequest) string {
	if r.Fiat.Positive() && !r.Crypto.Positive() {
		return "/fiat_amount"
	}
	return "/crypto_amount"
}

// inBounds refuses an amount outside the offer's bounds.
func inBounds(crypto money.Amount, offer exchange.Offer, pointer string) error {
	if crypto.Cmp(offer.MinOrder) < 0 {
		return require(false, pointer, "range", "is below the offer's minimum of "+offer.MinOrder.String()+" "+string(offer.Asset))
	}
	if crypto.Cmp(offer.MaxOrder) > 0 {
		return require(false, pointer, "range", "is above the offer's maximum of "+offer.MaxOrder.String()+" "+string(offer.Asset))
	}
	return nil
}

// fillCustomer checks the customer and fills in its phone number and wallet where the request has none.
func (t unitTx) fillCustomer(ctx context.Context, o *exchange.Order) error {
	if err := t.admitCustomer(ctx, o); err != nil {
		return err
	}
	if o.WalletAddress != "" {
		return t.checkDestination(ctx, o)
	}
	wallet, found, err := t.defaultWallet(ctx, o.CustomerID, o.Network)
	if err != nil {
		return err
	}
	if o.Kind().VendorOpens {
		err = require(found, "/customer", "no_wallet", "has no default wallet on this network")
	} else {
		err = require(found, "/wallet_address", "required", "must be given: there is no default wallet on this network")
	}
	o.WalletAddress = wallet.Address
	return err
}

// defaultWallet finds an owner's default wallet on a network.
func (t unitTx) defaultWallet(ctx context.Context, owner uuid.UUID, n exchange.Network) (exchange.Wallet, bool, error) {
	return readFound[exchange.Wallet](ctx, t, readDefaultWallet, owner, n)
}

// errUnprovenPhone keeps accounts that anybody can make, as many as he likes, from borrowing addresses of the escrow pool.
var errUnprovenPhone = exchange.Errorf(exchange.CodeStateConflict,
	"Prove your phone number before you sell: POST /api/v1/auth/user/me/verifications.")

// admitCustomer locks the customer of an order, fills in its phone number, and checks the order against its limits.
func (t unitTx) admitCustomer(ctx context.Context, o *exchange.Order) error {
	var r exchange.User
	if err := t.Get(ctx, &r, lockCustomer, o.CustomerID); err != nil {
		return translate(err, "customer")
	}
	k := o.Kind()
	customer := r.Role == exchange.RoleCustomer || r.Role == exchange.RoleUser
	if k.VendorOpens {
		if err := require(r.IsActive && customer, "/customer", "not_found", "must be an active customer"); err != nil {
			return err
		}
	}
	if merchant := k.Merchants && r.Role == exchange.RoleVendor; !r.IsActive || (!customer && !merchant) {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active customer can buy or sell.")
	}
	if k.OffRamp() && r.Role == exchange.RoleUser && r.PhoneProvenAt.IsZero() {
		return errUnprovenPhone
	}
	if o.PaymentPhone == "" {
		o.PaymentPhone = r.PhoneNumber
	}
	phone, err := exchange.ParsePhone(o.PaymentPhone.Digits())
	if err := require(err == nil && phone == o.PaymentPhone, "/phone_number", "format", "must be a Kenyan mobile number"); err != nil {
		return err
	}
	if err := t.underLimits(ctx, r.Role, *o); err != nil {
		return err
	}
	if err := t.orderFees(ctx, r.Role, *o); err != nil {
		return err
	}
	return t.countOrder(ctx, r.Role, *o)
}

// countOrder counts an order against its customer's limits.
func (t unitTx) countOrder(ctx context.Context, role exchange.Role, o exchange.Order) error {
	value, err := t.limitValue(ctx, o.Price)
	if err != nil {
		return err
	}
	return t.useLimit(ctx, limitUse{userID: o.CustomerID, role: role, objectType: "order", objectID: o.ID, value: value})
}

// limitValue is what an order counts against limits: its price, or the value of its crypto in a transfer, whichever is
// more. Otherwise a price below the market would be a way around the limits.
func (t unitTx) limitValue(ctx context.Context, p exchange.Price) (money.Amount, error) {
	value, _, err := t.valueOf(ctx, p.Crypto)
	if err == nil && p.Fiat.Cmp(value) > 0 {
		value = p.Fiat
	}
	return value, err
}

const readWalletPurpose = `SELECT id, owner_id IS NULL AS house FROM wallets WHERE network = $1 AND address = $2`

// checkDestination refuses the wallet that pays and the house's own wallets: bought crypto must reach a customer.
// Wallets of other customers are fine. An external address must not be on the deny list: a customer must not be asked
// to pay for crypto that can't be delivered.
func (t unitTx) checkDestination(ctx context.Context, o *exchange.Order) error {
	var ours []struct {
		ID    uuid.UUID
		House bool
	}
	if err := t.All(ctx, &ours, readWalletPurpose, o.Network, o.WalletAddress); err != nil {
		return err
	}
	if len(ours) == 0 {
		if err := t.notOnWrongNetwork(ctx, o.Network, o.WalletAddress, "/wallet_address"); err != nil {
			return err
		}
		var denied bool
		if err := t.Get(ctx, &denied, isDenied, o.Network, o.WalletAddress); err != nil {
			return err
		}
		return require(!denied, "/wallet_address", "denied", "is on the deny list")
	}
	if err := require(!ours[0].House, "/wallet_address", "own_wallet", "must not be one of the house's own wallets"); err != nil {
		return err
	}
	return require(ours[0].ID != o.WalletID, "/wallet_address", "own_wallet", "must not be the wallet that pays")
}

func (t unitTx) insertOrder(ctx context.Context, o exchange.Order, intent uuid.UUID) error {
	values, err := columnsOf(o, openedFields)
	if err != nil {
		return err
	}
	err = t.One(ctx, insertOrder, append(values, intent)...)
	if pg.Broke(err, "orders_payment_reference_key") {
		err = exchange.Wrap(exchange.CodeUnavailable, err, "Another order took the payment reference meanwhile. Try again.")
	}
	return err
}

const freeReference = `
SELECT c FROM unnest($1::text[]) WITH ORDINALITY AS draws (c, n) WHERE NOT EXISTS (SELECT FROM orders WHERE payment_reference = c) ORDER BY n LIMIT 1`

// drawReference returns a payment reference that no other order has or had: money that comes late names the reference of an
// order that has ended.
func (t unitTx) drawReference(ctx context.Context, order uuid.UUID) (string, error) {
	var free string
	err := t.Get(ctx, &free, freeReference, pq.Array(exchange.PaymentReferences(order)))
	return free, err
}

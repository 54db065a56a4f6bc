package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const insertOrder = `
INSERT INTO orders (id, customer_id, vendor_id, offer_id, order_type, order_subtype, network, asset, rate, crypto_amount, fiat_amount,
    vendor_amount, rounding_amount, wallet_id, wallet_address, status, status_detail, payment_method, payment_phone, hold_id, beneficiary,
    expires_at, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $23)`

const readOrderByID = `SELECT ` + orderColumns + ` FROM orders o WHERE o.id = $1`

// OpenOrder opens a customer's purchase against a SELL offer at the offer's rate, and reserves its
// crypto out of what the offer has left. The request's id becomes the order's: called again, it returns
// the order that is there. CodeInvalid names the fields that break the offer's bounds, CodeStateConflict
// says that the offer is not open, CodeInsufficientOffer that it has less left, CodeLimitReached that the
// customer has as many pending orders as it may have, or would go beyond a spending limit, or that the phone
// has had as many prompts, CodeRateChanged that the offer has another rate than the request expects. Offers of a deactivated vendor are not open.
func (s *Store) OpenOrder(ctx context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	return change(ctx, s, "order", r.OfferID, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		if old, found, err := t.openedBefore(ctx, r); err != nil || found {
			return old, none, err
		}
		offer, err := t.lockedOffer(ctx, r.OfferID)
		if err != nil {
			return exchange.Order{}, none, err
		}
		o, err := t.draftOrder(ctx, r, offer)
		if err != nil {
			return exchange.Order{}, none, err
		}
		if o.Price.Crypto.Cmp(offer.Available) > 0 {
			return exchange.Order{}, none, exchange.Errorf(exchange.CodeInsufficientOffer, "The offer has %s %s left.", offer.Available, offer.Asset)
		}
		if o.HoldID, err = uuid.NewV7(); err != nil {
			return exchange.Order{}, none, err
		}
		p := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldSplit, Hold: exchange.Hold{
			ID: o.HoldID, Key: "order:" + o.ID.String(), Account: offer.FundingAccount(), ParentID: offer.HoldID, Amount: o.Price.Crypto,
			ObjectType: "order", ObjectID: o.ID,
		}}}}
		if err := t.insertOrder(ctx, o); err != nil {
			return exchange.Order{}, none, err
		}
		if _, err := t.settleOffer(ctx, offer, offer.Available.Sub(o.Price.Crypto), flow); err != nil {
			return exchange.Order{}, none, err
		}
		return o, p, t.record(ctx, orderRecord("order.opened", by, nil, o))
	})
}

// openedBefore finds the order that a repeated request opened.
func (t unitTx) openedBefore(ctx context.Context, r exchange.OrderRequest) (exchange.Order, bool, error) {
	var rows []orderRow
	if err := t.all(ctx, &rows, readOrderByID, r.ID); err != nil || len(rows) == 0 {
		return exchange.Order{}, false, err
	}
	o, err := rows[0].order()
	if err == nil && (o.CustomerID != r.CustomerID || o.OfferID != r.OfferID) {
		err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another order.")
	}
	return o, true, err
}

// draftOrder prices and checks a request against its offer.
func (t unitTx) draftOrder(ctx context.Context, r exchange.OrderRequest, offer exchange.Offer) (exchange.Order, error) {
	now := t.s.now()
	o := exchange.Order{
		ID: r.ID, CustomerID: r.CustomerID, VendorID: offer.VendorID, OfferID: offer.ID, Type: exchange.OnRampBuy,
		Subtype: exchange.StandardOnRamp, Network: offer.Network, Asset: offer.Asset, Rate: offer.Rate, WalletID: offer.WalletID,
		WalletAddress: r.WalletAddress, Status: exchange.OrderPending, StatusDetail: exchange.WaitPrompt,
		PaymentMethod: exchange.PaymentMethodMomo, PaymentPhone: exchange.Phone(r.Phone), ExpiresAt: r.ExpiresAt.UTC(),
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if offer.Type != exchange.OfferSell {
		return o, exchange.Errorf(exchange.CodeStateConflict, "The offer buys crypto; a purchase needs one that sells.")
	}
	if offer.Status != exchange.OfferActive {
		code := exchange.CodeStateConflict
		if offer.Status == exchange.OfferExhausted {
			code = exchange.CodeInsufficientOffer
		}
		return o, exchange.Errorf(code, "The offer is %s.", offer.Status)
	}
	if !r.ExpectedRate.IsZero() && !r.ExpectedRate.Equal(offer.Rate) {
		return o, exchange.Errorf(exchange.CodeRateChanged, "The offer's rate is %s KES now, not %s.", offer.Rate, r.ExpectedRate)
	}
	if r.ExpiresAt.IsZero() {
		o.ExpiresAt = now.Add(exchange.OrderLife)
	}
	var err error
	if o.Price, err = price(r, offer); err != nil {
		return o, err
	}
	return o, t.fillCustomer(ctx, &o)
}

// price fixes what an order costs and checks it against the offer's bounds.
func price(r exchange.OrderRequest, offer exchange.Offer) (exchange.Price, error) {
	pointer, p := "/crypto_amount", exchange.Price{}
	switch {
	case r.Crypto.Positive() == r.Fiat.Positive():
		return p, require(false, pointer, "required", "exactly one of crypto_amount and fiat_amount must be given, above zero")
	case r.Crypto.Positive():
		if err := require(r.Crypto.Asset() == offer.Asset, "/asset", "mismatch", "must be the offer's asset"); err != nil {
			return p, err
		}
		p = exchange.PriceByCrypto(r.Crypto, offer.Rate)
	default:
		pointer = "/fiat_amount"
		if err := require(r.Fiat.Asset() == money.KES && r.Fiat.Equal(r.Fiat.FloorWhole()), pointer, "precision", "must be whole shillings"); err != nil {
			return p, err
		}
		p = exchange.PriceByFiat(r.Fiat, offer.Asset, offer.Rate)
	}
	if !p.Crypto.Positive() || !p.Vendor.Positive() {
		return p, require(false, pointer, "range", "is too small to buy anything")
	}
	if p.Crypto.Cmp(offer.MinOrder) < 0 {
		return p, require(false, pointer, "range", "is below the offer's minimum of "+offer.MinOrder.String()+" "+string(offer.Asset))
	}
	if p.Crypto.Cmp(offer.MaxOrder) > 0 {
		return p, require(false, pointer, "range", "is above the offer's maximum of "+offer.MaxOrder.String()+" "+string(offer.Asset))
	}
	return p, nil
}

// fillCustomer checks the customer and fills in its number and wallet where the request has none.
func (t unitTx) fillCustomer(ctx context.Context, o *exchange.Order) error {
	var r userRow
	if err := t.get(ctx, &r, lockCustomer, o.CustomerID); err != nil {
		return translate(err, "customer")
	}
	if !r.IsActive || (r.Role != exchange.RoleCustomer && r.Role != exchange.RoleUser) {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active customer can buy.")
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
	if err := t.countOrder(ctx, r.Role, *o); err != nil {
		return err
	}
	if o.WalletAddress != "" {
		return t.checkDestination(ctx, o)
	}
	var wallets []walletRow
	if err := t.all(ctx, &wallets, readDefaultWallet, o.CustomerID, o.Network); err != nil {
		return err
	}
	if err := require(len(wallets) == 1, "/wallet_address", "required", "must be given: there is no default wallet on this network"); err != nil {
		return err
	}
	o.WalletAddress = wallets[0].Address
	return nil
}

// countOrder counts an order against its customer's limits: what is paid for it, or what the crypto counts as when a
// transfer sends it, whichever is more. Otherwise a price below all others would be a way around the limits.
func (t unitTx) countOrder(ctx context.Context, role exchange.Role, o exchange.Order) error {
	value, _, err := t.valueOf(ctx, o.Price.Crypto)
	if err != nil {
		return err
	}
	if o.Price.Fiat.Cmp(value) > 0 {
		value = o.Price.Fiat
	}
	return t.useLimit(ctx, limitUse{userID: o.CustomerID, role: role, objectType: "order", objectID: o.ID, value: value})
}

const readWalletPurpose = `SELECT id, owner_id IS NULL AS house FROM wallets WHERE network = $1 AND address = $2`

// checkDestination refuses the wallet that pays and the house's own wallets: crypto that is bought must
// reach somebody. Wallets of other customers are fine. An address outside of our custody must not be on the
// deny list: nobody is asked to pay for what can't be delivered.
func (t unitTx) checkDestination(ctx context.Context, o *exchange.Order) error {
	var ours []struct {
		ID    uuid.UUID
		House bool
	}
	if err := t.all(ctx, &ours, readWalletPurpose, o.Network, o.WalletAddress); err != nil {
		return err
	}
	if len(ours) == 0 {
		var denied bool
		if err := t.get(ctx, &denied, isDenied, o.Network, o.WalletAddress); err != nil {
			return err
		}
		return require(!denied, "/wallet_address", "denied", "must not be an address that nobody is paid at")
	}
	if err := require(!ours[0].House, "/wallet_address", "own_wallet", "must not be one of the house's own wallets"); err != nil {
		return err
	}
	return require(ours[0].ID != o.WalletID, "/wallet_address", "own_wallet", "must not be the wallet that pays")
}

func (t unitTx) insertOrder(ctx context.Context, o exchange.Order) error {
	beneficiary, err := json.Marshal(o.Beneficiary)
	if err != nil {
		return err
	}
	return t.one(ctx, insertOrder, o.ID, o.CustomerID, o.VendorID, nullID(o.OfferID), o.Type, o.Subtype, o.Network, o.Asset, o.Rate,
		o.Price.Crypto.Decimal(), o.Price.Fiat.Decimal(), o.Price.Vendor.Decimal(), o.Price.Rounding.Decimal(), o.WalletID, o.WalletAddress,
		o.Status, o.StatusDetail, o.PaymentMethod, o.PaymentPhone.Digits(), nullID(o.HoldID), string(beneficiary), o.ExpiresAt, o.CreatedAt)
}

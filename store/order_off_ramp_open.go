package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OpenOffRamp carries out an intent to sell, which the named operator pays out. In one transaction it reserves the vendor's
// shillings, lends an escrow address, registers the sale's flow for deposits there, and reserves the crypto in the funding
// wallet, if there is one. A repeated call returns the existing order. The errors are those of OpenOrder, and CodeExpired
// when the quote has expired, CodeInsufficientFunds when the house has too little for a sale without an offer or the
// funding wallet too little crypto, and CodeEscrowExhausted when every address of the network is in use.
func (s *Store) OpenOffRamp(ctx context.Context, a exchange.Asked, operator string) (exchange.Order, error) {
	wanted, err := readAsked(ctx, s, a, exchange.OrderRequestOf, exchange.IntendSale)
	if err != nil {
		return exchange.Order{}, err
	}
	contended := wanted.OfferID
	if contended == uuid.Nil {
		contended = exchange.PlatformTreasury
	}
	return change(ctx, s, "order", contended, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		r, by, old, found, err := t.askedOrder(ctx, a, exchange.IntendSale)
		if err != nil || found {
			return old, none, err
		}
		r.Provider = operator
		k, ok := r.Kind()
		if !ok || !k.OffRamp() {
			return exchange.Order{}, none, exchange.Errorf(exchange.CodeUnsupported, "Sales of type %s %s are not supported.", r.Type, r.Subtype)
		}
		if err := r.Check(k); err != nil {
			return exchange.Order{}, none, err
		}
		if err := t.served(ctx, r.Sender.Country); err != nil {
			return exchange.Order{}, none, err
		}
		if err := t.notSuspended(ctx, r); err != nil {
			return exchange.Order{}, none, err
		}
		d, err := t.draftSale(ctx, r, k)
		if err != nil {
			return exchange.Order{}, none, err
		}
		if err := t.fitSale(ctx, &d.order, amountPointer(r)); err != nil {
			return exchange.Order{}, none, err
		}
		return t.insertSale(ctx, d, by, a.IntentID)
	})
}

const countryKnown = `SELECT $1 = '' OR EXISTS (SELECT FROM countries WHERE alpha2_code = $1 AND is_active)`

// served refuses a sender from a country that we don't serve.
func (t unitTx) served(ctx context.Context, country string) error {
	var known bool
	if err := t.Get(ctx, &known, countryKnown, country); err != nil {
		return err
	}
	return require(known, "/sender_country", "not_found", "must be the code of an active country")
}

// saleDraft is a sale before it is opened, with the source of its price.
type saleDraft struct {
	order exchange.Order
	offer exchange.Offer   // for kinds with an offer
	quote exchange.FXQuote // for kinds without an offer
}

// draftSale prices a request by its offer or its quote.
func (t unitTx) draftSale(ctx context.Context, r exchange.OrderRequest, k exchange.OrderKind) (saleDraft, error) {
	now := t.s.now()
	d := saleDraft{order: exchange.Order{
		ID: r.ID, CustomerID: r.CustomerID, Type: k.Type, Subtype: k.Subtype, OpenedBy: r.OpenerID, FundWalletID: r.FundWalletID, QuoteID: r.QuoteID,
		RefundAddress: r.RefundAddress, Status: exchange.OrderPending, StatusDetail: exchange.WaitDeposit, PaymentMethod: r.Method(),
		PaymentPhone: exchange.Phone(r.Phone), SenderName: r.Sender.Name, SenderCountry: r.Sender.Country, SenderPhone: r.Sender.Phone, Beneficiary: r.Beneficiary,
		ExpiresAt: r.ExpiresAt.UTC(), CreatedAt: now, UpdatedAt: now, Version: 1,
	}}
	if r.ExpiresAt.IsZero() {
		d.order.ExpiresAt = now.Add(exchange.OffRampLife)
	}
	var err error
	if k.Quote {
		err = t.priceByQuote(ctx, r, &d)
	} else {
		err = t.priceByOffer(ctx, r, k, &d)
	}
	d.order.AskedAmount = d.order.Price.Crypto
	return d, err
}

func (t unitTx) priceByOffer(ctx context.Context, r exchange.OrderRequest, k exchange.OrderKind, d *saleDraft) error {
	offer, err := t.openOffer(ctx, r, k)
	if err != nil {
		return err
	}
	o := &d.order
	o.VendorID, o.OfferID, o.Network, o.Asset, o.Rate, o.WalletID = offer.VendorID, offer.ID, offer.Network, offer.Asset, offer.Rate, offer.WalletID
	if o.Price, err = price(r, offer, exchange.SellByCrypto, exchange.SellByFiat); err != nil {
		return err
	}
	if err := t.chargeFees(ctx, o, amountPointer(r)); err != nil {
		return err
	}
	if o.Price.Crypto.Cmp(offer.Available) > 0 || o.Price.Vendor.Cmp(offer.Reserved) > 0 {
		return tooLittle(offer)
	}
	d.offer = offer
	return nil
}

// The house's wallet of a network that takes bought crypto; a hot one if there is one.
const houseWallet = `
SELECT ` + walletColumns + ` FROM wallets WHERE network = $1 AND owner_id IS NULL AND purpose = 'treasury' AND custody = 'custodial'
ORDER BY (type = 'hot') DESC, created_at, id LIMIT 1`

// askerOf is who asks for an order: its merchant's user, or its customer.
func askerOf(r exchange.OrderRequest) uuid.UUID {
	if r.OpenerID != uuid.Nil {
		return r.OpenerID
	}
	return r.CustomerID
}

// priceByQuote takes the price from the requester's quote. The network is the one of the funding wallet, or named in the request.
func (t unitTx) priceByQuote(ctx context.Context, r exchange.OrderRequest, d *saleDraft) error {
	q, err := t.ownQuote(ctx, r.QuoteID, askerOf(r), "/fx_rate_quote_id")
	if err != nil {
		return err
	}
	o := &d.order
	o.VendorID, o.Asset, o.Network = exchange.PlatformTreasury, r.Crypto.Asset(), r.Network
	if r.FundWalletID != uuid.Nil {
		var wallets []exchange.Wallet
		if err := t.All(ctx, &wallets, readWallet, r.FundWalletID); err != nil {
			return err
		}
		if err := require(len(wallets) == 1, "/wallet_id", "not_found", "must be the id of one of your hot custodial wallets on this network"); err != nil {
			return err
		}
		if err := require(r.Network == "" || r.Network == wallets[0].Network, "/network", "mismatch", "must be the network of the wallet"); err != nil {
			return err
		}
		o.Network = wallets[0].Network
	}
	if err := q.AdmitOrder(exchange.QuoteUse{Purpose: exchange.QuoteForSale, Amount: r.Crypto, Network: o.Network, Method: r.Method()}, t.s.now()); err != nil {
		return err
	}
	o.Rate, o.ProfileID, o.Price = q.Price.Rate, q.Terms.Profile.ID, exchange.SellByCrypto(r.Crypto, q.Price.Rate)
	if err := t.chargeQuoted(ctx, o, q); err != nil {
		return err
	}
	var house []exchange.Wallet
	if err := t.All(ctx, &house, houseWallet, o.Network); err != nil {
		return err
	}
	if len(house) == 0 {
		return exchange.Errorf(exchange.CodeStateConflict, "The house does not buy crypto on %s now.", o.Network)
	}
	o.WalletID, d.quote = house[0].ID, q
	return nil
}

// fitSale checks a priced sale against the customer, the provider's limits and the named wallets, and fills in its
// refund address.
func (t unitTx) fitSale(ctx context.Context, o *exchange.Order, pointer string) error {
	if err := t.payable(ctx, *o, pointer); err != nil {
		return err
	}
	if err := t.admitCustomer(ctx, o); err != nil {
		return err
	}
	if err := t.promisable(ctx, *o, pointer); err != nil {
		return err
	}
	if o.Kind().VendorOpens {
		// Only the customer sets the refund address; until then its own default wallet is safe.
		wallet, _, err := t.defaultWallet(ctx, o.CustomerID, o.Network)
		o.RefundAddress = wallet.Address
		return err
	}
	if o.FundWalletID != uuid.Nil {
		address, err := t.fundingWallet(ctx, *o)
		if err != nil {
			return err
		}
		if o.RefundAddress == "" {
			o.RefundAddress = address
		}
	}
	if o.RefundAddress == "" {
		return nil
	}
	return t.checkReturn(ctx, *o, o.RefundAddress)
}

const isSuspended = `SELECT EXISTS (SELECT FROM momo_breakers WHERE ($1 = '' OR provider = $1) AND opened_at IS NOT NULL) OR NOT database_released()`

// notSuspended refuses a mobile money sale while the provider of its payout refuses our credential: the payout could not
// begin. If the request names no provider, each of them counts.
func (t unitTx) notSuspended(ctx context.Context, r exchange.OrderRequest) error {
	if r.Method() != exchange.PaymentMethodMomo {
		return nil
	}
	var suspended bool
	if err := t.Get(ctx, &suspended, isSuspended, r.Provider); err != nil {
		return err
	}
	if suspended {
		return exchange.Errorf(exchange.CodeSuspended, "Payouts by mobile money are suspended. Try again later.")
	}
	return nil
}

// payable refuses an amount outside the mobile money provider's limits per payout.
func (t unitTx) payable(ctx context.Context, o exchange.Order, pointer string) error {
	if o.PaymentMethod != exchange.PaymentMethodMomo {
		return nil
	}
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return err
	}
	if o.Price.Fiat.Cmp(terms.MinPayout) < 0 || o.Price.Fiat.Cmp(terms.MaxPayout) > 0 {
		return require(false, pointer, "out_of_range", "brings "+o.Price.Fiat.String()+" KES; the mobile money provider pays out "+
			terms.MinPayout.String()+" to "+terms.MaxPayout.String()+" KES at a time")
	}
	return nil
}

// A customer's wallet, or a merchant's or one of its subvendors'.
const fundingWallet = `
SELECT address FROM wallets WHERE id = $1 AND network = $2 AND custody = 'custodial' AND type = 'hot' AND coalesce(vendor_id, owner_id) = $3`

const availableOf = `SELECT coalesce((SELECT posted - held FROM ledger_accounts WHERE code = $1), 0) >= $2`

// fundingWallet is the address of the wallet that funds a sale. The balance check here only names the field: the hold
// that is placed with the order reserves the crypto.
func (t unitTx) fundingWallet(ctx context.Context, o exchange.Order) (string, error) {
	var found []string
	if err := t.All(ctx, &found, fundingWallet, o.FundWalletID, o.Network, o.CustomerID); err != nil {
		return "", err
	}
	if err := require(len(found) == 1, "/wallet_id", "not_found", "must be the id of one of your hot custodial wallets on this network"); err != nil {
		return "", err
	}
	var enough bool
	account := exchange.Owned(exchange.AccWalletBalance, o.FundWalletID, o.Asset)
	if err := t.Get(ctx, &enough, availableOf, account.Code(), o.Price.Crypto.Decimal()); err != nil {
		return "", err
	}
	if !enough {
		e := exchange.Errorf(exchange.CodeInsufficientFunds, "The wallet has less than %s %s available.", o.Price.Crypto, o.Asset)
		e.Fields = []exchange.FieldError{{Pointer: "/wallet_id", Code: string(e.Code), Message: "has less available than the order sells"}}
		return "", e
	}
	return found[0], nil
}

// checkReturn refuses a refund address from which the seller could not recover the crypto: one of the house's wallets,
// the vendor's wallet of this sale, and an address that can't receive payments.
func (t unitTx) checkReturn(ctx context.Context, o exchange.Order, address string) error {
	var ours []struct {
		ID    uuid.UUID
		House bool
	}
	if err := t.All(ctx, &ours, readWalletPurpose, o.Network, address); err != nil {
		return err
	}
	var denied bool
	if err := t.Get(ctx, &denied, isDenied, o.Network, address); err != nil {
		return err
	}
	if err := require(!denied || len(ours) > 0, "/refund_address", "denied", "is on the deny list"); err != nil {
		return err
	}
	if len(ours) == 0 {
		return t.notOnWrongNetwork(ctx, o.Network, address, "/refund_address")
	}
	if err := require(!ours[0].House, "/refund_address", "own_wallet", "must not be one of the house's own wallets"); err != nil {
		return err
	}
	return require(ours[0].ID != o.WalletID, "/refund_address", "own_wallet", "must not be the wallet that the crypto is sold to")
}

// insertSale stores a sale with its lease, and reserves its shillings: from its offer's remainder, or from the house's
// shillings for sales without an offer. Crypto that comes from a wallet here is reserved there.
func (t unitTx) insertSale(ctx context.Context, d saleDraft, by exchange.Principal, intent uuid.UUID) (exchange.Order, exchange.Posting, error) {
	o := d.order
	escrow, err := t.lease(ctx, o.Network, o.ID, exchange.OffRampFlow(o.ID))
	if err != nil {
		return o, exchange.Posting{}, err
	}
	if o.PaymentReference, err = t.drawReference(ctx, o.ID); err != nil {
		return o, exchange.Posting{}, err
	}
	// Clients that know only wallet_address pay to the right place.
	o.WalletAddress, o.EscrowAddress, o.EscrowNetwork, o.EscrowReference = escrow.Address, escrow.Address, string(o.Network), o.PaymentReference
	if o.HoldID, err = uuid.NewV7(); err != nil {
		return o, exchange.Posting{}, err
	}
	op := exchange.HoldOp{Verb: exchange.HoldPlace, Hold: orderHold(o, "order:"+o.ID.String(), vendorShillings(o), uuid.Nil, o.Price.Vendor)}
	if o.OfferID != uuid.Nil {
		op.Verb, op.Hold.ParentID = exchange.HoldSplit, d.offer.HoldID
	}
	p := exchange.Posting{Holds: []exchange.HoldOp{op}}
	if err := t.insertOrder(ctx, o, intent); err != nil {
		return o, p, err
	}
	if o.OfferID != uuid.Nil {
		if _, err := t.settleOffer(ctx, d.offer, d.offer.After(d.offer.Reserved.Sub(o.Price.Vendor)), flow); err != nil {
			return o, p, err
		}
	} else if err := t.useQuote(ctx, d.quote, "order", o.ID, by); err != nil {
		return o, p, err
	}
	if err := t.record(ctx, orderRecord("order.opened", by, nil, o)); err != nil || o.FundWalletID == uuid.Nil {
		return o, p, err
	}
	crypto, err := t.approveFunding(ctx, o)
	if err != nil {
		return o, p, err
	}
	p.Holds = append(p.Holds, crypto)
	o, err = t.announceFunding(ctx, o)
	return o, p, err
}

// vendorShillings is the account from which the vendor of a sale pays.
func vendorShillings(o exchange.Order) exchange.AccountRef {
	return exchange.Owned(exchange.AccFiatBalance, o.VendorID, money.KES)
}

package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OpenOffRamp opens a sale: it reserves the shillings that the vendor owes for it, lends it an escrow address, and makes
// its flow wait for what comes there, all in one transaction. The request's id becomes the order's: called again, it
// returns the order that is there. The errors are those of OpenOrder; besides, CodeExpired says that the quote's time
// is over, CodeInsufficientFunds that the house has too little for a sale without an offer or the funding wallet too
// little crypto, and CodeEscrowDry that every address of the network is in use.
func (s *Store) OpenOffRamp(ctx context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	lane := r.OfferID
	if lane == uuid.Nil {
		lane = exchange.PlatformTreasury
	}
	return change(ctx, s, "order", lane, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		if old, found, err := t.openedBefore(ctx, r); err != nil || found {
			return old, none, err
		}
		k, ok := r.Kind()
		if !ok || !k.OffRamp() {
			return exchange.Order{}, none, exchange.Errorf(exchange.CodeUnsupported, "There are no sales of type %s %s.", r.Type, r.Subtype)
		}
		sender, beneficiary, err := t.takeParties(ctx, r)
		if err != nil {
			return exchange.Order{}, none, err
		}
		if err := r.Check(k, sender, beneficiary); err != nil {
			return exchange.Order{}, none, err
		}
		d, err := t.draftSale(ctx, r, k)
		if err != nil {
			return exchange.Order{}, none, err
		}
		d.order.SenderName, d.order.SenderCountry, d.order.SenderPhone, d.order.Beneficiary = sender.Name, sender.Country, sender.Phone, beneficiary
		if err := t.fitSale(ctx, &d.order, amountPointer(r)); err != nil {
			return exchange.Order{}, none, err
		}
		return t.insertSale(ctx, d, by)
	})
}

// saleDraft is a sale that is about to be opened, with what it takes its price from.
type saleDraft struct {
	order exchange.Order
	offer exchange.Offer   // of a kind with an offer
	quote exchange.FXQuote // of a kind without
}

// draftSale prices a request, by its offer or by its quote.
func (t unitTx) draftSale(ctx context.Context, r exchange.OrderRequest, k exchange.OrderKind) (saleDraft, error) {
	now := t.s.now()
	d := saleDraft{order: exchange.Order{
		ID: r.ID, CustomerID: r.CustomerID, Type: k.Type, Subtype: k.Subtype, OpenedBy: r.OpenerID, FundWalletID: r.FundWalletID, QuoteID: r.QuoteID,
		RefundAddress: r.RefundAddress, Status: exchange.OrderPending, StatusDetail: exchange.WaitDeposit, PaymentMethod: r.Method(),
		PaymentPhone: exchange.Phone(r.Phone), ExpiresAt: r.ExpiresAt.UTC(), CreatedAt: now, UpdatedAt: now, Version: 1,
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
	if o.Price.Crypto.Cmp(offer.Available) > 0 {
		return tooLittle(offer)
	}
	d.offer = offer
	return nil
}

// The house takes what it buys into its own wallet of the network, a hot one where it has one.
const houseWallet = `
SELECT ` + walletColumns + ` FROM wallets WHERE network = $1 AND owner_id IS NULL AND purpose = 'treasury' AND custody = 'custodial'
ORDER BY (type = 'hot') DESC, created_at, id LIMIT 1`

// priceByQuote takes the price that was promised to whoever asks. Which network the crypto comes by is not in a quote:
// it is that of the wallet that it comes from, or is named.
func (t unitTx) priceByQuote(ctx context.Context, r exchange.OrderRequest, d *saleDraft) error {
	asker := r.CustomerID
	if r.OpenerID != uuid.Nil {
		asker = r.OpenerID
	}
	q, err := t.ownQuote(ctx, r.QuoteID, asker, "/fx_rate_quote_id")
	if err != nil {
		return err
	}
	if err := q.AdmitSale(r.Crypto, t.s.now()); err != nil {
		return err
	}
	o := &d.order
	o.VendorID, o.Asset, o.Rate, o.Network = exchange.PlatformTreasury, r.Crypto.Asset(), q.Price.Rate, r.Network
	if o.Price = exchange.SellByCrypto(r.Crypto, q.Price.Rate); !o.Price.Fiat.Equal(q.Price.Fiat) {
		return exchange.Errorf(exchange.CodeInternal, "quote %s brings %s, its terms %s", q.ID, q.Price.Fiat, o.Price.Fiat)
	}
	if r.FundWalletID != uuid.Nil {
		var wallets []walletRow
		if err := t.all(ctx, &wallets, readWallet, r.FundWalletID); err != nil {
			return err
		}
		if err := require(len(wallets) == 1, "/wallet_id", "not_found", "is not the id of a hot custodial wallet of yours on this network"); err != nil {
			return err
		}
		if err := require(r.Network == "" || r.Network == wallets[0].Network, "/network", "mismatch", "must be the network of the wallet"); err != nil {
			return err
		}
		o.Network = wallets[0].Network
	}
	var house []walletRow
	if err := t.all(ctx, &house, houseWallet, o.Network); err != nil {
		return err
	}
	if len(house) == 0 {
		return exchange.Errorf(exchange.CodeStateConflict, "The house buys nothing on %s now.", o.Network)
	}
	o.WalletID, d.quote = house[0].ID, q
	return nil
}

// fitSale checks a priced sale against the customer, the operator's limits and the wallets that it names, and fills
// in where its crypto goes back to.
func (t unitTx) fitSale(ctx context.Context, o *exchange.Order, pointer string) error {
	if err := t.payable(ctx, *o, pointer); err != nil {
		return err
	}
	if err := t.notSuspended(ctx, *o); err != nil {
		return err
	}
	if err := t.admitCustomer(ctx, o); err != nil {
		return err
	}
	if err := t.promisable(ctx, *o, pointer); err != nil {
		return err
	}
	if o.Kind().VendorOpens {
		// Only the customer says where its crypto goes back to; until it does, its own default wallet is safe.
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

const isSuspended = `SELECT EXISTS (SELECT FROM momo_breakers WHERE provider = $1 AND opened_at IS NOT NULL)`

// notSuspended refuses a sale by mobile money while the operator refuses our credential: its payout could not begin.
func (t unitTx) notSuspended(ctx context.Context, o exchange.Order) error {
	if o.PaymentMethod != exchange.PaymentMethodMomo {
		return nil
	}
	var suspended bool
	if err := t.get(ctx, &suspended, isSuspended, exchange.ProviderDaraja); err != nil {
		return err
	}
	if suspended {
		return exchange.Errorf(exchange.CodeSuspended, "Payouts by mobile money are suspended. Ask again later.")
	}
	return nil
}

// payable refuses an amount that the mobile money operator does not pay out at a time.
func (t unitTx) payable(ctx context.Context, o exchange.Order, pointer string) error {
	if o.PaymentMethod != exchange.PaymentMethodMomo {
		return nil
	}
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return err
	}
	if o.Price.Fiat.Cmp(terms.MinPayout) < 0 || o.Price.Fiat.Cmp(terms.MaxPayout) > 0 {
		return require(false, pointer, "out_of_range", "brings "+o.Price.Fiat.String()+" KES; the mobile money operator pays out "+
			terms.MinPayout.String()+" to "+terms.MaxPayout.String()+" KES at a time")
	}
	return nil
}

// A customer's wallet, or a merchant's or one of its subvendors'.
const fundingWallet = `
SELECT address FROM wallets WHERE id = $1 AND network = $2 AND custody = 'custodial' AND type = 'hot' AND coalesce(vendor_id, owner_id) = $3`

const availableOf = `SELECT coalesce((SELECT posted - held FROM ledger_accounts WHERE code = $1), 0) >= $2`

// fundingWallet is the address of the wallet that the crypto of a sale is to come from. That it holds enough is a
// courtesy here, so that its owner hears of it at once: the payment reserves it.
func (t unitTx) fundingWallet(ctx context.Context, o exchange.Order) (string, error) {
	var found []string
	if err := t.all(ctx, &found, fundingWallet, o.FundWalletID, o.Network, o.CustomerID); err != nil {
		return "", err
	}
	if err := require(len(found) == 1, "/wallet_id", "not_found", "is not the id of a hot custodial wallet of yours on this network"); err != nil {
		return "", err
	}
	var enough bool
	account := exchange.Owned(exchange.AccWalletBalance, o.FundWalletID, o.Asset)
	if err := t.get(ctx, &enough, availableOf, account.Code(), o.Price.Crypto.Decimal()); err != nil {
		return "", err
	}
	if !enough {
		return "", exchange.Errorf(exchange.CodeInsufficientFunds, "The wallet has less than %s %s available.", o.Price.Crypto, o.Asset)
	}
	return found[0], nil
}

// checkReturn refuses an address from which crypto would not come back to its seller: one of the house's own, the
// vendor's wallet of this sale, and one that nobody is paid at.
func (t unitTx) checkReturn(ctx context.Context, o exchange.Order, address string) error {
	var ours []struct {
		ID    uuid.UUID
		House bool
	}
	if err := t.all(ctx, &ours, readWalletPurpose, o.Network, address); err != nil {
		return err
	}
	var denied bool
	if err := t.get(ctx, &denied, isDenied, o.Network, address); err != nil {
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

// insertSale stores a sale with its lease, and reserves its shillings: out of what its offer has left, or of what the
// house has for sales without one.
func (t unitTx) insertSale(ctx context.Context, d saleDraft, by exchange.Principal) (exchange.Order, exchange.Posting, error) {
	o := d.order
	escrow, err := t.lease(ctx, o.Network, o.ID, exchange.OffRampFlow(o.ID))
	if err != nil {
		return o, exchange.Posting{}, err
	}
	// A client that knows only wallet_address pays to the right place.
	o.WalletAddress, o.EscrowAddress, o.EscrowNetwork, o.EscrowReference = escrow.Address, escrow.Address, string(o.Network), o.PaymentReference()
	if o.HoldID, err = uuid.NewV7(); err != nil {
		return o, exchange.Posting{}, err
	}
	op := exchange.HoldOp{Verb: exchange.HoldPlace, Hold: orderHold(o, "order:"+o.ID.String(), vendorShillings(o), uuid.Nil, o.Price.Vendor)}
	if o.OfferID != uuid.Nil {
		op.Verb, op.Hold.ParentID = exchange.HoldSplit, d.offer.HoldID
	}
	p := exchange.Posting{Holds: []exchange.HoldOp{op}}
	if err := t.insertOrder(ctx, o); err != nil {
		return o, p, err
	}
	if o.OfferID != uuid.Nil {
		if _, err := t.settleOffer(ctx, d.offer, d.offer.After(d.offer.Reserved.Sub(o.Price.Vendor)), flow); err != nil {
			return o, p, err
		}
	} else if err := t.useQuote(ctx, d.quote, "order", o.ID, by); err != nil {
		return o, p, err
	}
	return o, p, t.record(ctx, orderRecord("order.opened", by, nil, o))
}

// vendorShillings is the account from which the vendor of a sale pays.
func vendorShillings(o exchange.Order) exchange.AccountRef {
	return exchange.Owned(exchange.AccFiatBalance, o.VendorID, money.KES)
}

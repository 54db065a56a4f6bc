package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/nyaruka/phonenumbers"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

const maxAddressText = 128

// openOrder opens an order of any kind. It reads and checks the request, starts the flow with the claim's id, and
// answers with the row that the flow stored.
func (s *server) openOrder(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	d, err := s.readOrder(c, f)
	if err != nil {
		return err
	}
	if err := f.done(); err != nil {
		return err
	}
	k, r := d.kind, d.request
	if !k.MayOpen(c.who.Role) {
		return exchange.Errorf(exchange.CodeForbidden, "A %s can't open orders of the kind %s.", c.who.Role, k.Name())
	}
	if err := r.Check(k); err != nil {
		return err
	}
	kind, open := exchange.IntendPurchase, s.Flows.OpenOrder
	if k.OffRamp() {
		kind, open = exchange.IntendSale, s.Flows.OpenOffRamp
	}
	err = s.ask(c, kind, r.ID, r.Terms(), func(intent uuid.UUID) error { return open(c.ctx, r, intent) })
	if err != nil {
		return err
	}
	order, err := s.Store.Order(c.ctx, c.view(), r.ID)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/orders/"+order.ID.String())
	return c.json(http.StatusCreated, orderWire(order, c.who))
}

var paymentMethods = []string{exchange.PaymentMethodMomo, exchange.PaymentMethodBank}

// orderDraft is a decoded request for an order.
type orderDraft struct {
	kind    exchange.OrderKind
	request exchange.OrderRequest
}

// readOrder reads the fields of all kinds of orders, so that the error for a field of another kind is specific, and not
// "unknown field".
func (s *server) readOrder(c *call, f *form) (orderDraft, error) {
	d := orderDraft{kind: readKind(f)}
	d.request = exchange.OrderRequest{
		ID: c.objectID, CustomerID: c.who.UserID, Type: d.kind.Type, Subtype: d.kind.Subtype, OfferID: f.id("offer_id", false),
		ExpectedRate: f.rate("expected_rate", false), PayoutMethod: f.oneOf("payment_method", false, paymentMethods...),
		FundWalletID: f.id("wallet_id", false), QuoteID: f.quoteID(), ExpiresAt: s.now().UTC().Add(exchange.OrderLife),
		Network: exchange.Network(f.oneOf("network", false, networkNames...)),
	}
	if d.kind.OffRamp() {
		d.request.ExpiresAt = s.now().UTC().Add(exchange.OffRampLife)
	}
	f.decimalText("crypto_amount", false)
	f.decimalText("fiat_amount", false)
	if phone := f.line("payment_phone_number", false, maxPhoneText); phone != "" {
		parsed, err := exchange.ParsePhone(phone)
		f.check("payment_phone_number", err)
		d.request.Phone = parsed.Digits()
	}
	d.request.Sender, d.request.Beneficiary = readSender(f), readBeneficiary(f)
	to, back := f.line("wallet_address", false, maxAddressText), f.line("refund_address", false, maxAddressText)
	asset := money.Asset(f.oneOf("asset", false, stablecoins...))
	if err := s.readCustomer(c, f, &d); err != nil {
		return d, err
	}
	switch {
	case f.has("crypto_amount") && f.has("fiat_amount"):
		f.fail("fiat_amount", "conflict", "must be left out when crypto_amount is given")
	case !f.has("crypto_amount") && !f.has("fiat_amount") && !d.kind.Quote:
		f.fail("crypto_amount", "required", "is required, or fiat_amount instead")
	}
	if err := s.fitTerms(c, f, &d); err != nil {
		return d, err
	}
	seen := d.request.Seen
	if asset != "" && seen.Asset != "" && asset != seen.Asset {
		f.fail("asset", "mismatch", "must be "+string(seen.Asset)+", as in the offer or the quote")
	}
	if n := d.request.Network; n != "" && seen.Network != "" && n != seen.Network {
		f.fail("network", "mismatch", "must be "+string(seen.Network)+", as in the offer or the wallet")
	}
	return d, s.readAddresses(f, &d.request, to, back)
}

// readKind finds the kind of order. For an unknown combination it records an error and returns the default kind.
func readKind(f *form) exchange.OrderKind {
	kind, subtype := f.oneOf("order_type", false, orderTypes...), f.oneOf("order_subtype", false, orderSubtypes...)
	k, ok := exchange.KindOf(exchange.OrderType(kind), exchange.OrderSubtype(subtype))
	if !ok {
		f.fail("order_subtype", "mismatch", "is not a kind of "+kind+" orders")
		k, _ = exchange.KindOf("", "")
	}
	return k
}

func readSender(f *form) exchange.Sender {
	s := exchange.Sender{
		Name: f.line("sender_name", false, exchange.MaxSenderName), Country: strings.ToUpper(f.line("sender_country", false, 2)),
		Phone: digitsOf(f.line("sender_phone", false, maxPhoneText)),
	}
	prefix := phonenumbers.GetCountryCodeForRegion(s.Country)
	if n, err := phonenumbers.Parse("+"+s.Phone, ""); err == nil && prefix != 0 {
		switch {
		case int(n.GetCountryCode()) != prefix:
			f.fail("sender_phone", "mismatch", fmt.Sprintf("must be a number of sender_country, with the prefix +%d", prefix))
		case !phonenumbers.IsPossibleNumber(n):
			f.fail("sender_phone", "format", "has too many or too few digits for a number of sender_country")
		}
	}
	return s
}

// digitsOf removes the plus sign and the usual separators from a phone number. Other characters are refused later.
func digitsOf(phone string) string {
	return strings.NewReplacer(" ", "", "-", "", "(", "", ")", "").Replace(strings.TrimPrefix(phone, "+"))
}

func readBeneficiary(f *form) exchange.Beneficiary {
	text := func(name string, limit int) string { return f.line("beneficiary_"+name, false, limit) }
	return exchange.Beneficiary{
		BankName: text("bank_name", exchange.MaxBeneficiaryText), BankCode: text("bank_code", exchange.MaxBankCode),
		BankBranch: text("bank_branch", exchange.MaxBeneficiaryText), BankAddress: text("bank_address", exchange.MaxBeneficiaryText),
		AccountName:   text("account_name", exchange.MaxBeneficiaryText),
		AccountNumber: strings.ReplaceAll(text("account_number", exchange.MaxAccountNumber+maxSpaces), " ", ""),
		SwiftCode:     strings.ToUpper(text("swift_code", maxSwiftCode)),
	}
}

const (
	maxSpaces    = 10 // that a client may write into an account number
	maxSwiftCode = 11
)

// readCustomer finds the customer of the order. A merchant names one; the error for an unknown and for an inactive customer
// is the same.
func (s *server) readCustomer(c *call, f *form, d *orderDraft) error {
	who := f.object("customer", false)
	if c.who.Role.Merchant() {
		d.request.OpenerID, d.request.CustomerID = c.who.UserID, c.who.VendorID
		if d.request.OpenerID == d.request.CustomerID && !d.kind.VendorOpens {
			d.request.OpenerID = uuid.Nil
		}
	}
	if !d.kind.VendorOpens {
		if who != nil {
			s.named(who)
			f.fail("customer", "forbidden", "must be left out of "+d.kind.Name())
		}
		return nil
	}
	d.request.CustomerID = uuid.Nil
	if who == nil {
		return nil // the rules of the kind report that it is required
	}
	find, ok := s.named(who)
	if !ok {
		return nil
	}
	u, err := find(c)
	customer := u.IsActive && (u.Role == exchange.RoleCustomer || u.Role == exchange.RoleUser) && reachable(u, who)
	if exchange.CodeOf(err) == exchange.CodeNotFound || err == nil && !customer {
		f.fail("customer", "not_found", "is not an active customer who has proven the address or number")
		return nil
	}
	d.request.CustomerID = u.ID
	return err
}

// reachable reports whether a customer has proven what a merchant names it by. By its id, it is the phone that prompts go to.
func reachable(u exchange.User, named *form) bool {
	if named.has("email") {
		return !u.EmailProvenAt.IsZero()
	}
	return !u.PhoneProvenAt.IsZero()
}

// named reads the one field that identifies a customer.
func (s *server) named(f *form) (func(*call) (exchange.User, error), bool) {
	names, given := []string{"user_id", "email", "phone_number"}, 0
	for _, name := range names {
		if f.has(name) {
			given++
		}
	}
	before := len(*f.bad)
	id, email, phone := f.id("user_id", false), f.line("email", false, exchange.MaxEmailLength), f.line("phone_number", false, maxPhoneText)
	if given != 1 {
		*f.bad = append(*f.bad, exchange.FieldError{Pointer: f.at, Code: "required", Message: "must have exactly one of " + orList(names)})
		return nil, false
	}
	var parsed exchange.Phone
	var err error
	switch {
	case email != "":
		email, err = exchange.ParseEmail(email)
		f.check("email", err)
	case phone != "":
		parsed, err = exchange.ParsePhone(phone)
		f.check("phone_number", err)
	case id == uuid.Nil && len(*f.bad) == before:
		*f.bad = append(*f.bad, exchange.FieldError{Pointer: f.at, Code: "required", Message: "must have exactly one of " + orList(names)})
	}
	return func(c *call) (exchange.User, error) {
		switch {
		case email != "":
			return s.Store.UserByEmail(c.ctx, email)
		case parsed != "":
			return s.Store.UserByPhone(c.ctx, parsed)
		}
		return s.Store.User(c.ctx, id)
	}, len(*f.bad) == before
}

// fitTerms reads what depends on the offer or the quote: the asset of the amounts, and the network of the crypto.
func (s *server) fitTerms(c *call, f *form, d *orderDraft) error {
	r := &d.request
	var err error
	switch {
	case d.kind.Quote:
		err = s.seeQuote(c, f, d.kind, r)
	case r.OfferID != uuid.Nil:
		err = s.seeOffer(c, f, r)
	}
	if err != nil {
		return err
	}
	asset := r.Seen.Asset
	if asset == "" {
		asset = money.USDT // no field names the asset; both stablecoins have the same format
	} else if r.Seen.Network != "" {
		if err := s.offered(r.Seen.Network, asset); err != nil {
			return err
		}
	}
	r.Crypto = f.optionalAmount("crypto_amount", asset)
	r.Fiat = f.optionalAmount("fiat_amount", money.KES)
	if f.has("fiat_amount") && !r.Fiat.Equal(r.Fiat.FloorWhole()) {
		f.fail("fiat_amount", "precision", "must be whole shillings, because mobile money moves no cents")
	}
	return nil
}

func (s *server) seeOffer(c *call, f *form, r *exchange.OrderRequest) error {
	// An offer that was published before and takes no orders now is refused by its state when the order opens. Only its
	// vendor may see a draft.
	offer, err := s.Store.Offer(c.ctx, store.Everything(), r.OfferID)
	if exchange.CodeOf(err) == exchange.CodeNotFound || offer.Status == exchange.OfferDraft && offer.VendorID != c.who.VendorID {
		f.fail("offer_id", "not_found", "is not the id of an open offer")
		return nil
	}
	r.Seen = exchange.SeenOffer{Network: offer.Network, Asset: offer.Asset, MerchantID: offer.VendorID}
	return err
}

// seeQuote takes the amount from the quote, and the network from the wallet that pays, from the request or, of a purchase, from the
// quote.
func (s *server) seeQuote(c *call, f *form, k exchange.OrderKind, r *exchange.OrderRequest) error {
	if r.QuoteID == uuid.Nil {
		return nil // the rules of the kind report that it is required
	}
	q, err := s.Store.Quote(c.ctx, store.ViewOf(c.who, exchange.ActReadQuotes), r.QuoteID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		f.fail("fx_rate_quote_id", "not_found", "is not the id of a quote of yours")
		return nil
	}
	if err != nil {
		return err
	}
	r.Seen = exchange.SeenOffer{Network: r.Network, Asset: q.Price.Crypto.Asset(), MerchantID: exchange.PlatformTreasury}
	if r.FundWalletID != uuid.Nil {
		wallet, err := s.Store.Wallet(c.ctx, store.ViewOf(c.who, exchange.ActReadWallets), r.FundWalletID)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			f.fail("wallet_id", "not_found", "is not the id of a hot custodial wallet of yours on this network")
			return nil
		}
		if err != nil {
			return err
		}
		r.Seen.Network = wallet.Network
	}
	if !k.OffRamp() && r.Network == "" {
		r.Network, r.Seen.Network = q.Terms.Network, q.Terms.Network
	}
	if !f.has("crypto_amount") && !f.has("fiat_amount") {
		f.values["crypto_amount"] = q.Price.Crypto.String()
	}
	return nil
}

// readAddresses checks addresses for their network, if the network is known.
func (s *server) readAddresses(f *form, r *exchange.OrderRequest, to, back string) error {
	if r.Seen.Network == "" || to == "" && back == "" {
		r.WalletAddress, r.RefundAddress = to, back // the rules of the kind refuse fields that it does not have
		return nil
	}
	check := s.Addresses[r.Seen.Network]
	if check == nil {
		return exchange.Errorf(exchange.CodeUnsupported, "Orders on the network %s are not offered yet.", r.Seen.Network)
	}
	for _, a := range []struct {
		name, text string
		into       *string
	}{{"wallet_address", to, &r.WalletAddress}, {"refund_address", back, &r.RefundAddress}} {
		if a.text == "" {
			continue
		}
		var err error
		if *a.into, err = check(a.text); err != nil {
			f.fail(a.name, "address", exchange.MessageOf(addressError(r.Seen.Network, err)))
		}
	}
	return nil
}

// addressError returns a readable error for a refused address, unless the network's check has one.
func addressError(n exchange.Network, err error) error {
	if exchange.CodeOf(err) == exchange.CodeInternal {
		return exchange.Wrap(exchange.CodeInvalid, err, "is not a valid address on the network %s", n)
	}
	return err
}

// optionalAmount reads an amount whose format decimalText has checked.
func (f *form) optionalAmount(name string, asset money.Asset) money.Amount {
	if _, ok := f.values[name].(string); !ok {
		return money.Amount{}
	}
	return f.amount(name, asset, false)
}

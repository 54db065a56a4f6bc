package exchange

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// OrderKind is the set of rules for one kind of order.
type OrderKind struct {
	Type        OrderType
	Subtype     OrderSubtype
	Offer       OfferType // the type of offer that it is opened against; empty for none
	Quote       bool      // it is priced by a quote, and the vendor is the platform's treasury
	VendorOpens bool      // a merchant opens it for a named customer
	Merchants   bool      // a merchant may open it for itself
	Custodial   bool      // only the sender's custodial wallet may fund it
	Sender      bool      // it must name the sender of the money
	Beneficiary bool      // it must name the beneficiary
	Bank        bool      // the money may go to a bank account
}

// orderKinds is the only list of the kinds of order. The table order_kinds has the same rows.
var orderKinds = []OrderKind{
	{Type: OnRampBuy, Subtype: StandardOnRamp, Offer: OfferSell},
	{Type: OnRampBuy, Subtype: TreasuryOnRamp, Quote: true, Merchants: true},
	{Type: OnRampSell, Subtype: StandardOnRamp, Offer: OfferSell, VendorOpens: true},
	{Type: OffRampSell, Subtype: StandardOffRamp, Offer: OfferBuy},
	{Type: OffRampSell, Subtype: RemittanceOffRamp, Offer: OfferBuy, Sender: true, Beneficiary: true, Bank: true},
	{Type: OffRampSell, Subtype: CustodialRemittanceOffRamp, Quote: true, Custodial: true, Sender: true, Beneficiary: true, Bank: true},
	{Type: OffRampSell, Subtype: TreasuryOffRamp, Quote: true, Merchants: true, Bank: true},
	{Type: OffRampBuy, Subtype: StandardOffRamp, Offer: OfferBuy, VendorOpens: true},
}

// OrderKinds lists the kinds in a fixed order.
func OrderKinds() []OrderKind { return append([]OrderKind(nil), orderKinds...) }

// KindOf finds a kind. An empty type means ON_RAMP_BUY and an empty subtype the type's standard one.
func KindOf(t OrderType, s OrderSubtype) (OrderKind, bool) {
	if t == "" {
		t = OnRampBuy
	}
	if s == "" {
		s = StandardOnRamp
		if t.OffRamp() {
			s = StandardOffRamp
		}
	}
	for _, k := range orderKinds {
		if k.Type == t && k.Subtype == s {
			return k, true
		}
	}
	return OrderKind{}, false
}

// OffRamp reports whether orders of the kind sell crypto for shillings.
func (k OrderKind) OffRamp() bool { return k.Type.OffRamp() }

// QuotePurpose is the purpose of the quotes that price the kind.
func (k OrderKind) QuotePurpose() QuotePurpose {
	if k.OffRamp() {
		return QuoteForSale
	}
	return QuoteForPurchase
}

// Name is the kind as messages name it.
func (k OrderKind) Name() string { return string(k.Type) + " " + string(k.Subtype) }

// MayOpen reports whether a role may open orders of the kind.
func (k OrderKind) MayOpen(r Role) bool {
	if r.Merchant() {
		return k.VendorOpens || k.Merchants
	}
	return (r == RoleCustomer || r == RoleUser) && !k.VendorOpens
}

// MayFund reports whether a custodial wallet of the customer may fund the kind. A merchant that opens an order for a
// customer can't spend from the customer's wallets.
func (k OrderKind) MayFund() bool { return k.OffRamp() && !k.VendorOpens }

// PlatformTreasury is the house's own account as a vendor. It buys the crypto of sales without an offer, and sells that of purchases without one. It has no
// login and is not listed among the merchants.
var PlatformTreasury = uuid.MustParse("00000000-0000-7000-8000-6b6976756b6f")

// Sender is who sends a remittance.
type Sender struct {
	Name    string
	Country string // ISO 3166-1 alpha-2
	Phone   string // E.164 without the plus, of any country
}

// checker collects the rules that a request breaks.
type checker struct{ bad []FieldError }

func (c *checker) rule(ok bool, pointer, code, message string) {
	if !ok {
		c.bad = append(c.bad, FieldError{pointer, code, message})
	}
}

// needs checks that a needed field is present and any other is absent.
func (c *checker) needs(needed, given bool, pointer string, k OrderKind) {
	c.rule(!needed || given, pointer, "required", "is required for "+k.Name())
	c.rule(needed || !given, pointer, "forbidden", "must be left out of "+k.Name())
}

func (c *checker) amounts(r OrderRequest, k OrderKind) {
	c.rule(!k.Quote || r.ExpectedRate.IsZero(), "/expected_rate", "forbidden", "must be left out: the quote sets the rate")
	switch {
	case k.Quote && r.Fiat.Asset() != "":
		c.rule(false, "/fiat_amount", "forbidden", "must be left out: the quote sets the price")
	case r.Crypto.Positive() == r.Fiat.Positive():
		c.rule(false, "/crypto_amount", "required", "must be above zero, and only one of crypto_amount and fiat_amount may be given")
	case r.Crypto.Positive():
		c.rule(r.Crypto.Asset().Stablecoin(), "/asset", "enum", "must be USDT or USDC")
	default:
		c.rule(r.Fiat.Asset() == money.KES && r.Fiat.Equal(r.Fiat.FloorWhole()), "/fiat_amount", "precision", "must be whole shillings")
	}
}

func (c *checker) method(r OrderRequest, k OrderKind) {
	switch r.Method() {
	case PaymentMethodMomo:
		c.rule(!k.Sender || r.Phone != "", "/payment_phone_number", "required", "is required: it is the number that is paid")
	case PaymentMethodBank:
		c.rule(k.Bank, "/payment_method", "enum", "must be momo for "+k.Name())
		c.rule(r.Phone == "", "/payment_phone_number", "forbidden", "must be left out: the money goes to a bank account")
	default:
		c.rule(false, "/payment_method", "enum", "must be momo or bank")
	}
}

var (
	countryPattern = regexp.MustCompile(`^[A-Z]{2}$`)
	digitsPattern  = regexp.MustCompile(`^[1-9][0-9]*$`)
	accountPattern = regexp.MustCompile(`^[0-9A-Za-z]+$`)
	swiftPattern   = regexp.MustCompile(`^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$`) // ISO 9362
)

func (c *checker) sender(k OrderKind, s Sender) {
	fields := []struct{ pointer, value string }{{"/sender_name", s.Name}, {"/sender_country", s.Country}, {"/sender_phone", s.Phone}}
	for _, f := range fields {
		c.needs(k.Sender, f.value != "", f.pointer, k)
	}
	if !k.Sender {
		return
	}
	c.rule(s.Name == "" || line(s.Name, MaxSenderName), "/sender_name", "format", "must be one line of at most 120 characters")
	c.rule(s.Country == "" || countryPattern.MatchString(s.Country), "/sender_country", "format", "must be the two letters of a country, such as GB")
	c.rule(s.Phone == "" || digitsPattern.MatchString(s.Phone) && len(s.Phone) >= MinSenderPhone && len(s.Phone) <= MaxSenderPhone,
		"/sender_phone", "format", "must have 7 to 15 digits, with the prefix of its country")
}

// beneficiary checks who is paid. A bank payment needs the account and the bank; mobile money needs only the name.
func (c *checker) beneficiary(r OrderRequest, k OrderKind, b Beneficiary) {
	bank := r.Method() == PaymentMethodBank && k.Bank
	c.needs(k.Beneficiary || bank, b.AccountName != "", "/beneficiary_account_name", k)
	for _, f := range []struct {
		pointer, value string
		needed         bool
	}{
		{"/beneficiary_bank_name", b.BankName, true},
		{"/beneficiary_account_number", b.AccountNumber, true},
		{"/beneficiary_bank_code", b.BankCode, false},
		{"/beneficiary_bank_branch", b.BankBranch, false},
		{"/beneficiary_bank_address", b.BankAddress, false},
		{"/beneficiary_swift_code", b.SwiftCode, false},
	} {
		c.rule(bank || f.value == "", f.pointer, "forbidden", "must be left out: the money does not go to a bank account")
		c.rule(!bank || !f.needed || f.value != "", f.pointer, "required", "is required for a payment by bank")
		c.rule(line(f.value, MaxBeneficiaryText), f.pointer, "format", "must be one line of at most 120 characters")
	}
	c.rule(line(b.AccountName, MaxBeneficiaryText), "/beneficiary_account_name", "format", "must be one line of at most 120 characters")
	if !bank {
		return
	}
	c.rule(b.AccountNumber == "" || accountPattern.MatchString(b.AccountNumber) && len(b.AccountNumber) <= MaxAccountNumber,
		"/beneficiary_account_number", "format", "must have 1 to 34 letters and digits")
	c.rule(b.BankCode != "" || b.SwiftCode != "", "/beneficiary_bank_code", "required", "is required, or beneficiary_swift_code instead")
	c.rule(b.BankCode == "" || accountPattern.MatchString(b.BankCode) && len(b.BankCode) <= MaxBankCode, "/beneficiary_bank_code", "format",
		"must have at most 20 letters and digits")
	c.rule(b.SwiftCode == "" || swiftPattern.MatchString(b.SwiftCode), "/beneficiary_swift_code", "format", "must have the 8 or 11 characters of a SWIFT code")
}

// line reports whether a text is one line of bounded length.
func line(s string, most int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

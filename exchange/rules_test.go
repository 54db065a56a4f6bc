package exchange_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func TestPhones(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0712345678": "254712345678", "+254712345678": "254712345678", "254112345678": "254112345678", "712345678": "254712345678",
		" 0712 345-678 ": "254712345678", "0612345678": "", "07123456789": "", "071234567": "", "07l2345678": "", "٠٧١٢٣٤٥٦٧٨": "", "": "",
		"++254712345678": "", "255712345678": "", "254212345678": "",
	} {
		got, err := exchange.ParsePhone(text)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got.Digits(), err, want)
		}
	}
	p := exchange.Phone("254712345678")
	for _, form := range []string{"%s", "%v", "%q", "%+v", "%#v"} {
		if out := fmt.Sprintf(form, p) + fmt.Sprintf(form, struct{ P exchange.Phone }{p}); strings.Contains(out, "4712345") {
			t.Errorf("%s prints %s", form, out)
		}
	}
	if p.Hash() != "7132104d6aae9c3fac82095a42c2817952bca48e09d98d5bf4ac08218982fb90" {
		t.Errorf("hash %s", p.Hash())
	}
}

// Every usual spelling of a number gives the stored form, whatever the separators.
func TestPhonesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nine := rapid.StringMatching(`[17][0-9]{8}`).Draw(rt, "number")
		prefix := rapid.SampledFrom([]string{"", "0", "254", "+254"}).Draw(rt, "prefix")
		text := prefix + nine[:3] + rapid.SampledFrom([]string{"", " ", "-", "  "}).Draw(rt, "gap") + nine[3:]
		p, err := exchange.ParsePhone(text)
		if err != nil || p.Digits() != "254"+nine {
			rt.Fatalf("%q is %q, %v", text, p.Digits(), err)
		}
		if again, err := exchange.ParsePhone(p.Digits()); err != nil || again != p {
			rt.Fatalf("%q again is %q, %v", p.Digits(), again.Digits(), err)
		}
	})
}

func TestPINs(t *testing.T) {
	t.Parallel()
	for _, weak := range []string{"", "123", "1234567", "12a4", "1111", "000000", "1234", "4321", "7890", "0987", "123456", "1212", "121212", "6969", "1987", "2024", "１２８３"} {
		if exchange.CheckPIN(weak) == nil {
			t.Errorf("%q passes", weak)
		}
	}
	for _, good := range []string{"7294", "83915", "730185", "1324", "3006"} {
		if err := exchange.CheckPIN(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestEmails(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Amina@Example.com": "amina@example.com", "a@b": "", "Amina <a@example.com>": "", "a b@example.com": "", "": "", "a@example.com\n": "",
		strings.Repeat("a", 250) + "@example.com": "", "o'brien+x@example.co.ke": "o'brien+x@example.co.ke", "josé@example.com": "josé@example.com",
		"ａmina@example.com": "amina@example.com", "иван@example.com": "иван@example.com", // full width is ASCII; one script is fine
		"\u0430mina@example.com": "", "amin\u200ba@example.com": "", "\u202eamina@example.com": "", "amina\u200f@example.com": "",
		"\u0441\u043e\u0441\u043e7@example.com": "", "\u0251mina@example.com": "", "\u03bf.\u03c1@example.com": "", "νίκος@example.com": "νίκος@example.com",
		"ami\u00adna@example.com": "", "amina@ex\u0430mple.com": "", "amina@example\u3002com": "",
	} {
		if got, err := exchange.ParseEmail(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Amina": "Amina", "Ng'ang'a": "Ng'ang'a", "O’Brien": "O’Brien", "José": "José", "李": "李", "محمد": "محمد", "Mary  Jane": "Mary Jane",
		"\u3164": "", "\u200b": "", "\u115f": "", "a\u202eb": "", "\u00ad": "", "\u2800": "", "...": "", "7": "", "": "", strings.Repeat("\ufdfa", 10): "",
	} {
		if got, err := exchange.ParseName(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

// In an order the payer pays whole shillings, rounded up; the merchant gets the crypto times the rate to the cent, rounded
// down; the difference is rounding, never negative and below a shilling and a cent.
func TestPricesByCrypto(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		crypto := usdtUnits(rapid.Int64Range(1, 1e12).Draw(rt, "units"))
		rate := decimal.New(rapid.Int64Range(1, 1e9).Draw(rt, "rate"), -exchange.RatePlaces)
		p := exchange.PriceByCrypto(crypto, rate)
		exact := crypto.Decimal().Mul(rate)
		switch {
		case !p.Crypto.Equal(crypto):
			rt.Fatalf("%s became %s", crypto, p.Crypto)
		case !p.Fiat.Equal(p.Fiat.FloorWhole()) || p.Fiat.Decimal().LessThan(exact) || p.Fiat.Decimal().Sub(exact).GreaterThan(decimal.NewFromInt(1)):
			rt.Fatalf("%s at %s costs %s", crypto, rate, p.Fiat)
		case p.Vendor.Decimal().GreaterThan(exact) || exact.Sub(p.Vendor.Decimal()).GreaterThanOrEqual(decimal.New(1, -2)):
			rt.Fatalf("%s at %s earns %s", crypto, rate, p.Vendor)
		case !p.Fiat.Equal(p.Vendor.Add(p.Rounding)) || p.Rounding.Sign() < 0:
			rt.Fatalf("%s = %s + %s", p.Fiat, p.Vendor, p.Rounding)
		}
	})
}

func TestPricesByFiat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		fiat := money.Must(money.KES, fmt.Sprint(rapid.Int64Range(1, 1e9).Draw(rt, "shillings")))
		rate := decimal.New(rapid.Int64Range(1e5, 1e9).Draw(rt, "rate"), -exchange.RatePlaces)
		p := exchange.PriceByFiat(fiat, money.USDT, rate)
		more := p.Crypto.Decimal().Add(decimal.New(1, -6)).Mul(rate)
		switch {
		case !p.Fiat.Equal(fiat) || !p.Fiat.Equal(p.Vendor.Add(p.Rounding)) || p.Rounding.Sign() < 0:
			rt.Fatalf("%s = %s + %s", p.Fiat, p.Vendor, p.Rounding)
		case p.Crypto.Decimal().Mul(rate).GreaterThan(fiat.Decimal()):
			rt.Fatalf("%s buys %s at %s: too much", fiat, p.Crypto, rate)
		case !more.GreaterThan(fiat.Decimal()):
			rt.Fatalf("%s buys %s at %s: too little", fiat, p.Crypto, rate)
		}
	})
}

func usdtUnits(n int64) money.Amount {
	m, err := money.New(money.USDT, decimal.New(n, -6))
	if err != nil {
		panic(err)
	}
	return m
}

// Every action is granted to a role, every role may read itself, and only staff may act on everyone's objects.
func TestPolicyIsComplete(t *testing.T) {
	t.Parallel()
	public := map[exchange.Action]bool{exchange.ActReadCatalog: true, exchange.ActListOffers: true, exchange.ActReadMachines: true}
	for _, a := range exchange.Actions() {
		granted := false
		for _, r := range exchange.Roles() {
			scope := exchange.ScopeOf(r, a)
			granted = granted || scope != exchange.ScopeNone
			if scope == exchange.ScopeAny && !r.Staff() && !public[a] {
				t.Errorf("%s may do %s to everything", r, a)
			}
			if scope == exchange.ScopeVendor && !r.Merchant() {
				t.Errorf("%s has no merchant for %s", r, a)
			}
		}
		if !granted {
			t.Errorf("no role may do %s", a)
		}
	}
	for _, r := range exchange.Roles() {
		if exchange.ScopeOf(r, exchange.ActReadSelf) != exchange.ScopeOwn {
			t.Errorf("%s can't read itself", r)
		}
	}
	if exchange.ScopeOf("stranger", exchange.ActReadSelf) != exchange.ScopeNone || exchange.ScopeOf(exchange.RoleAdmin, "everything") != exchange.ScopeNone {
		t.Error("an action outside the matrix is allowed")
	}
}

func TestEntriesBalance(t *testing.T) {
	t.Parallel()
	float, capital := exchange.House(exchange.AccMomoCollection, money.KES), exchange.House(exchange.AccCapital, money.KES)
	rapid.Check(t, func(rt *rapid.T) {
		var lines []exchange.Line
		sum := money.Zero(money.KES)
		for range rapid.IntRange(1, 5).Draw(rt, "lines") {
			m, err := money.New(money.KES, decimal.New(rapid.Int64Range(-1e6, 1e6).Filter(func(n int64) bool { return n != 0 }).Draw(rt, "cents"), -2))
			if err != nil {
				rt.Fatal(err)
			}
			lines, sum = append(lines, exchange.Line{Account: float, Amount: m}), sum.Add(m)
		}
		if sum.IsZero() {
			rt.Skip("balanced by chance")
		}
		e := exchange.Entry{Key: "k", Kind: "test", Lines: lines}
		if e.Validate() == nil {
			rt.Fatalf("%v passes", lines)
		}
		e.Lines = append(e.Lines, exchange.Line{Account: capital, Amount: sum.Neg()})
		if err := e.Validate(); err != nil {
			rt.Fatal(err)
		}
	})
	if kept := exchange.Lines(exchange.Debit(float, money.Zero(money.KES)), exchange.Credit(float, money.Must(money.KES, "1"))); len(kept) != 1 || kept[0].Amount.Sign() != -1 {
		t.Errorf("kept %v", kept)
	}
}

// The signer refuses a payment that was changed after approval.
func TestIntentCoversEverythingThatMatters(t *testing.T) {
	t.Parallel()
	p := exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForOrder, ObjectID: uuid.New(), Network: exchange.Tron, Amount: money.Must(money.USDT, "10"),
		WalletID: uuid.New(), FromAddress: "TFrom", ToAddress: "TTo", Status: exchange.ChainApproved,
	}
	seen := map[string]string{p.Intent(): "the original"}
	for name, edit := range map[string]func(*exchange.ChainPayment){
		"id": func(p *exchange.ChainPayment) { p.ID = uuid.New() }, "purpose": func(p *exchange.ChainPayment) { p.Purpose = exchange.ForRefund },
		"object": func(p *exchange.ChainPayment) { p.ObjectID = uuid.New() }, "network": func(p *exchange.ChainPayment) { p.Network = exchange.Solana },
		"amount": func(p *exchange.ChainPayment) { p.Amount = money.Must(money.USDT, "10.000001") },
		"asset":  func(p *exchange.ChainPayment) { p.Amount = money.Must(money.USDC, "10") },
		"wallet": func(p *exchange.ChainPayment) { p.WalletID = uuid.New() }, "from": func(p *exchange.ChainPayment) { p.FromAddress = "TFrom2" },
		"to": func(p *exchange.ChainPayment) { p.ToAddress = "TTo2" },
	} {
		q := p
		edit(&q)
		if other, clash := seen[q.Intent()]; clash {
			t.Errorf("another %s has the intent of %s", name, other)
		}
		seen[q.Intent()] = name
	}
	p.Status, p.Detail, p.TxID, p.Version = exchange.ChainSigned, "x", "tx", 9
	if seen[p.Intent()] != "the original" {
		t.Error("progress changed the intent")
	}
}

func TestOffers(t *testing.T) {
	t.Parallel()
	usdt := func(s string) money.Amount { return money.Must(money.USDT, s) }
	good := exchange.Offer{Type: exchange.OfferSell, Network: exchange.Tron, Asset: money.USDT, Total: usdt("100"), Rate: decimal.New(129, 0), MinOrder: usdt("5"), MaxOrder: usdt("50")}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for pointer, edit := range map[string]func(*exchange.Offer){
		"/offer_type": func(o *exchange.Offer) { o.Type = "LEND" }, "/network": func(o *exchange.Offer) { o.Network = "bitcoin" },
		"/rate": func(o *exchange.Offer) { o.Rate = decimal.Zero }, "/min_order": func(o *exchange.Offer) { o.MinOrder = usdt("0") },
		"/max_order": func(o *exchange.Offer) { o.MaxOrder = usdt("4") }, "/usdt_amount": func(o *exchange.Offer) { o.Total = usdt("4") },
		"/description": func(o *exchange.Offer) { o.Description = strings.Repeat("é", exchange.MaxOfferDescription+1) },
	} {
		o := good
		edit(&o)
		err := o.Validate()
		own, ok := errors.AsType[*exchange.Error](err)
		if !ok || own.Code != exchange.CodeInvalid || own.Fields[0].Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	for rate, fine := range map[string]bool{"0.000001": false, "0.999999": false, "1": true, "10000": true, "10000.000001": false, "1000000000": false} {
		o := good
		o.Rate = decimal.RequireFromString(rate)
		if err := o.Validate(); (err == nil) != fine {
			t.Errorf("the rate %s: %v", rate, err)
		}
	}
	for _, c := range []struct {
		status exchange.OfferStatus
		left   string
		want   exchange.OfferStatus
	}{
		{exchange.OfferActive, "5", exchange.OfferActive},
		{exchange.OfferActive, "4.999999", exchange.OfferExhausted},
		{exchange.OfferExhausted, "5", exchange.OfferActive},
		{exchange.OfferPaused, "0", exchange.OfferPaused},
		{exchange.OfferClosed, "9", exchange.OfferClosed},
	} {
		o := good
		o.Status = c.status
		if got := o.StatusFor(usdt(c.left)); got != c.want {
			t.Errorf("%s with %s left becomes %s, want %s", c.status, c.left, got, c.want)
		}
	}
}

func TestErrorsSayNothingInside(t *testing.T) {
	t.Parallel()
	secret := errors.New("password=hunter2")
	for err, want := range map[error]exchange.Code{
		nil: "", secret: exchange.CodeInternal, exchange.Wrap(exchange.CodeConflict, secret, "There is one."): exchange.CodeConflict,
		fmt.Errorf("wrapped: %w", exchange.Errorf(exchange.CodeNotFound, "No.")): exchange.CodeNotFound,
		exchange.Wrap(exchange.CodeInternal, secret, "hunter2"):                  exchange.CodeInternal,
	} {
		if exchange.CodeOf(err) != want || strings.Contains(exchange.MessageOf(err), "hunter2") {
			t.Errorf("%v has code %q and message %q", err, exchange.CodeOf(err), exchange.MessageOf(err))
		}
	}
	if exchange.Invalid() != nil {
		t.Error("no broken rules are an error")
	}
}

func TestPaymentReferenceFitsThePrompt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "id")
		seen := map[string]bool{}
		for _, ref := range exchange.PaymentReferences(uuid.UUID(b)) {
			if len(ref) != 12 || strings.ToUpper(ref) != ref || !strings.HasPrefix(ref, "KVK") || seen[ref] {
				rt.Fatalf("reference %q", ref)
			}
			seen[ref] = true
		}
	})
}

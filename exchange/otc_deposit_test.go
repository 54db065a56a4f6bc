package exchange_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// One wrong character, or two that are swapped, make a reference that is none.
func TestOTCReferencesTellTypos(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		for _, r := range exchange.OTCReferences(uuid.New()) {
			if len(r) != 12 || !exchange.ValidOTCReference(r) || seen[r] || strings.ContainsAny(r[3:], "0O1IL2Z5S8BUQ") {
				t.Fatalf("drew %s", r)
			}
			seen[r] = true
			for i := 3; i < len(r); i++ {
				for _, c := range "34679ACDEFGHJKMNPRTVWXY0B" {
					if typo := r[:i] + string(c) + r[i+1:]; typo != r && exchange.ValidOTCReference(typo) {
						t.Errorf("%s passes for %s", typo, r)
					}
				}
				for j := i + 1; j < len(r); j++ {
					b := []byte(r)
					if b[i], b[j] = b[j], b[i]; string(b) != r && exchange.ValidOTCReference(string(b)) {
						t.Errorf("%s passes for %s", b, r)
					}
				}
			}
		}
	}
	if exchange.ValidOTCReference("KVK333333333") || exchange.ValidOTCReference("KVD33333333") || exchange.ValidOTCReference("") {
		t.Error("another form passes")
	}
}

// The value date decides whether the quote holds, and the amount must be near the quoted one.
func TestQuoteHoldsByValueDateAndAmount(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	d := exchange.OTCDeposit{Asset: money.USDT, QuoteID: uuid.New(), QuotedFiat: money.Must(money.KES, "1000")}
	for _, c := range []struct {
		received string
		value    time.Time
		holds    bool
	}{
		{"1000", monday, true},
		{"1000", monday.AddDate(0, 0, -9), true},
		{"1000", monday.AddDate(0, 0, 1), false},
		{"1100", monday, true},
		{"1100.01", monday, false},
		{"900", monday, true},
		{"899.99", monday, false},
	} {
		if got := d.QuoteHolds(money.Must(money.KES, c.received), c.value, monday); got != c.holds {
			t.Errorf("%s of %s: the quote holds %t", c.received, c.value, got)
		}
	}
	d.QuoteID = uuid.Nil
	if d.QuoteHolds(d.QuotedFiat, monday, monday) {
		t.Error("without a quote one holds")
	}
	d.Asset = money.KES
	if !d.QuoteHolds(money.Must(money.KES, "1"), monday, time.Time{}) {
		t.Error("shillings need a quote")
	}
}

func TestFlagsAreOnlyAdded(t *testing.T) {
	t.Parallel()
	d := exchange.OTCDeposit{Flags: []exchange.OTCFlag{exchange.FlagAmount}}
	if added := d.AddFlags(exchange.FlagSameFile, exchange.FlagAmount); !slices.Equal(added, []exchange.OTCFlag{exchange.FlagSameFile}) {
		t.Errorf("added %v", added)
	}
	if !slices.Equal(d.Flags, []exchange.OTCFlag{exchange.FlagSameFile, exchange.FlagAmount}) {
		t.Errorf("it has %v", d.Flags)
	}
}

func TestNamesSoundAlike(t *testing.T) {
	t.Parallel()
	for names, alike := range map[[2]string]bool{
		{"", "Amina Otieno"}:                         true,
		{"OTIENO, A.", "Amina Otieno"}:               true,
		{"Otieno & Sons Ltd", "Amina Otieno"}:        true,
		{"Jane Roe", "Amina Otieno"}:                 false,
		{"A.", "A. Otieno"}:                          false,
		{"Amina", "Wanjiku Mwangi"}:                  false,
		{"\u202eAmina", "Amina"}:                     true,
		{"Акме", "Acme"}:                             false,
		{"Acme Trading", "ACME-TRADING (K) Limited"}: true,
	} {
		if got := exchange.SoundsLike(names[0], names[1]); got != alike {
			t.Errorf("%q and %q: %t", names[0], names[1], got)
		}
	}
}

// A request names every field that breaks a rule, and only those.
func TestOTCRequestsAreChecked(t *testing.T) {
	t.Parallel()
	kes := func(s string) money.Amount { return money.Must(money.KES, s) }
	full := exchange.OTCRequest{Method: exchange.OTCByBank, Fiat: kes("1000"), Asset: money.USDT, Network: exchange.Tron, SenderLast4: "1234"}
	for name, c := range map[string]struct {
		r     exchange.OTCRequest
		draft bool
		want  []string
	}{
		"complete":           {full, false, nil},
		"empty draft":        {exchange.OTCRequest{}, true, nil},
		"nothing":            {exchange.OTCRequest{}, false, []string{"/method", "/fiat_amount", "/requested_asset"}},
		"cents by phone":     {exchange.OTCRequest{Method: exchange.OTCByMomo, Fiat: kes("10.50"), Asset: money.KES}, false, []string{"/fiat_amount"}},
		"cents for crypto":   {exchange.OTCRequest{Method: exchange.OTCByBank, Fiat: kes("10.50"), Asset: money.USDT, Network: exchange.Tron}, false, []string{"/fiat_amount"}},
		"crypto nowhere":     {exchange.OTCRequest{Method: exchange.OTCByBank, Fiat: kes("1"), Asset: money.USDT}, false, []string{"/requested_network"}},
		"shillings on tron":  {exchange.OTCRequest{Method: exchange.OTCByBank, Fiat: kes("1"), Asset: money.KES, Network: exchange.Tron, QuoteID: uuid.New()}, false, []string{"/requested_network", "/fx_rate_quote_id"}},
		"phone of a bank":    {exchange.OTCRequest{Method: exchange.OTCByBank, Fiat: kes("1"), Asset: money.KES, Phone: "254700000001"}, false, []string{"/momo_phone_number"}},
		"too much of number": {exchange.OTCRequest{SenderLast4: "12345", SenderName: strings.Repeat("x", 121)}, true, []string{"/sender_account_name", "/sender_account_number_last4"}},
	} {
		var got []string
		if err := c.r.Check(c.draft); err != nil {
			e, _ := err.(*exchange.Error) //nolint:errorlint // Check returns nothing else
			for _, f := range e.Fields {
				got = append(got, f.Pointer)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What an intent states is what was asked for.
func TestOTCTermsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	r := exchange.OTCRequest{
		ID: uuid.New(), Method: exchange.OTCByBank, Fiat: money.Must(money.KES, "1000.50"), Asset: money.USDT, Network: exchange.Tron, QuoteID: uuid.New(), BankID: uuid.New(),
		TransferDate: day, SenderName: "Jane Roe", SenderLast4: "1234", SenderBank: "Bank of Examples", SenderBranch: "Nairobi", ReceiptNumber: "R1", Version: "7",
	}
	if got, err := exchange.OTCRequestOf(exchange.Intent{ObjectID: r.ID, Terms: r.Terms()}); err != nil || got.ID != r.ID || !maps.Equal(got.Terms(), r.Terms()) || len(r.Terms()) != 13 {
		t.Errorf("%+v, %v, want %+v", got, err, r)
	}
	step := exchange.OTCStep{
		OfficerID: uuid.New(), Text: "why?", Note: "odd", QuoteID: uuid.New(), TakeKES: true, FileID: uuid.New(), ReceiptNumber: "R1", TransferDate: day,
		Received: money.Must(money.KES, "1000"), ValueDate: day, LineID: uuid.New(), BankID: uuid.New(), Reference: "A 1", ReferenceAgain: "A1", TransferIntent: uuid.New(),
	}
	if got, err := exchange.OTCStepOf(exchange.Intent{Terms: step.Terms()}); err != nil || !maps.Equal(got.Terms(), step.Terms()) || len(step.Terms()) != 15 {
		t.Errorf("%+v, %v, want %+v", got, err, step)
	}
}

// What only the old method or asset of a draft has goes with it.
func TestDraftsDropWhatTheirMethodHasNot(t *testing.T) {
	t.Parallel()
	bank := uuid.MustParse("01900000-0000-7000-8000-000000000001")
	byPhone := exchange.OTCDeposit{Method: exchange.OTCByMomo, Phone: "254700000001", Asset: money.USDT, Network: exchange.Tron}
	if r := byPhone.Edited(func(r *exchange.OTCRequest) { r.Method, r.Asset = exchange.OTCByBank, money.KES }); r.Phone != "" || r.Network != "" || r.Check(true) != nil {
		t.Errorf("by bank it is %+v", r)
	}
	byBank := exchange.OTCDeposit{Method: exchange.OTCByBank, BankID: bank, Asset: money.KES}
	if r := byBank.Edited(func(r *exchange.OTCRequest) { r.Method, r.Phone = exchange.OTCByMomo, "254700000002" }); r.BankID != uuid.Nil || r.Phone != "254700000002" {
		t.Errorf("by phone it is %+v", r)
	}
	if r := byBank.Edited(func(r *exchange.OTCRequest) { r.Fiat = money.Must(money.KES, "100") }); r.BankID != bank {
		t.Errorf("edited it is %+v", r)
	}
}

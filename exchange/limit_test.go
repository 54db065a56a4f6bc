package exchange_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func shillings(s string) money.Amount { return money.Must(money.KES, s) }

func TestLimitsAdmitUpToTheirValue(t *testing.T) {
	t.Parallel()
	limits := exchange.SpendingLimits{PerTransaction: shillings("100"), PerDay: shillings("150"), PerMonth: shillings("200")}
	for _, c := range []struct {
		value, day, month string
		ok                bool
	}{
		{"100", "0", "0", true},
		{"100.01", "0", "0", false},
		{"50", "100", "100", true},
		{"50.01", "100", "100", false},
		{"50", "0", "150", true},
		{"50.01", "0", "150", false},
	} {
		err := limits.Admit(shillings(c.value), exchange.Spent{Day: shillings(c.day), Month: shillings(c.month)})
		if (err == nil) != c.ok || (err != nil && exchange.CodeOf(err) != exchange.CodeLimitReached) {
			t.Errorf("%s after %s and %s: %v", c.value, c.day, c.month, err)
		}
	}
	if err := (exchange.SpendingLimits{}).Admit(shillings("1000000000"), exchange.Spent{Day: shillings("0"), Month: shillings("0")}); err != nil {
		t.Errorf("no limit refuses: %v", err)
	}
	own := exchange.SpendingLimits{PerDay: shillings("7")}
	if got := own.Or(limits); !got.PerDay.Equal(shillings("7")) || !got.PerMonth.Equal(shillings("200")) {
		t.Errorf("own limits with the role's: %+v", got)
	}
}

// Days and months end at midnight in Kenya, three hours before UTC's.
func TestDaysAndMonthsOfLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, day, month string }{
		{"2026-11-30T20:59:59Z", "2026-11-29T21:00:00Z", "2026-10-31T21:00:00Z"},
		{"2026-11-30T21:00:00Z", "2026-11-30T21:00:00Z", "2026-11-30T21:00:00Z"},
		{"2027-01-01T00:00:00Z", "2026-12-31T21:00:00Z", "2026-12-31T21:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if day, month := exchange.DayOf(at).Format(time.RFC3339), exchange.MonthOf(at).Format(time.RFC3339); day != c.day || month != c.month {
			t.Errorf("%s lies in the day %s and the month %s", c.at, day, month)
		}
	}
}

func TestApprovalRule(t *testing.T) {
	t.Parallel()
	r := exchange.ApprovalRule{OneAbove: shillings("100"), TwoAbove: shillings("200")}
	for value, want := range map[string]int{"100": 0, "100.01": 1, "200": 1, "200.01": 2} {
		if got := r.Required(shillings(value)); got != want {
			t.Errorf("%s asks for %d officers, want %d", value, got, want)
		}
	}
	v := exchange.Valuation{Asset: money.USDT, Rate: decimal.RequireFromString("129.35")}
	if got := v.Value(money.Must(money.USDT, "0.000001")); !got.Equal(shillings("0.01")) {
		t.Errorf("the smallest amount counts as %s", got)
	}
}

// An approval covers everything that determines where the money goes.
func TestIntentOfTransfers(t *testing.T) {
	t.Parallel()
	base := exchange.Transfer{Kind: exchange.ExternalTransfer, Network: exchange.Tron, Amount: money.Must(money.USDT, "10"), FromAddress: "A", ToAddress: "B", Fee: money.Zero(money.USDT)}
	seen := map[string]string{base.Intent(): "the transfer itself"}
	for name, change := range map[string]func(*exchange.Transfer){
		"id": func(f *exchange.Transfer) { f.ID[0] = 1 }, "kind": func(f *exchange.Transfer) { f.Kind = exchange.InternalTransfer },
		"requester": func(f *exchange.Transfer) { f.RequestedBy[0] = 1 }, "network": func(f *exchange.Transfer) { f.Network = exchange.Ethereum },
		"asset":  func(f *exchange.Transfer) { f.Amount = money.Must(money.USDC, "10") },
		"amount": func(f *exchange.Transfer) { f.Amount = money.Must(money.USDT, "10.000001") },
		"wallet": func(f *exchange.Transfer) { f.WalletID[0] = 1 }, "sender": func(f *exchange.Transfer) { f.FromAddress = "C" },
		"recipient": func(f *exchange.Transfer) { f.ToAddress = "C" }, "fee": func(f *exchange.Transfer) { f.Fee = money.Must(money.USDT, "1") },
	} {
		other := base
		change(&other)
		if same, clash := seen[other.Intent()]; clash {
			t.Errorf("another %s has the digest of %s", name, same)
		}
		seen[other.Intent()] = name
	}
}

package exchange_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// drawRelease draws facts about a release.
func drawRelease(t *rapid.T) exchange.ReleaseFacts {
	amount := func(name string) money.Amount {
		return money.FromUnits(money.KES, big.NewInt(rapid.Int64Range(0, 1_000_000_00).Draw(t, name)))
	}
	one := amount("one")
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	return exchange.ReleaseFacts{
		Release: exchange.Release{
			House: rapid.Bool().Draw(t, "house"), Inside: rapid.Bool().Draw(t, "inside"), Exempt: rapid.SampledFrom([]exchange.Exemption{"", exchange.ExemptOwn}).Draw(t, "exempt"), Value: amount("value"),
		},
		Sums:     exchange.ReleaseSums{Source: amount("source"), Owner: amount("owner"), Requester: amount("requester"), Recipient: amount("recipient")},
		Rule:     exchange.ApprovalRule{OneAbove: one, TwoAbove: one.Add(amount("two"))},
		Rest:     exchange.DestinationRest{Above: amount("rest"), For: 24 * time.Hour},
		Known:    now.Add(-time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "known"))),
		Least:    rapid.IntRange(0, 2).Draw(t, "least"),
		Approved: rapid.IntRange(0, 2).Draw(t, "approved"),
		Now:      now,
	}
}

// More value, greater sums, fewer officers and a newer destination never let a release pass that would not pass otherwise.
func TestReleaseIsMonotonic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawRelease(t)
		more := money.FromUnits(money.KES, big.NewInt(rapid.Int64Range(0, 1_000_000_00).Draw(t, "more")))
		worse := f
		switch rapid.IntRange(0, 7).Draw(t, "what") {
		case 0:
			worse.Value = f.Value.Add(more)
		case 1:
			worse.Sums.Source = f.Sums.Source.Add(more)
		case 2:
			worse.Sums.Owner = f.Sums.Owner.Add(more)
		case 3:
			worse.Sums.Requester = f.Sums.Requester.Add(more)
		case 4:
			worse.Sums.Recipient = f.Sums.Recipient.Add(more)
		case 5:
			worse.Approved = rapid.IntRange(0, f.Approved).Draw(t, "fewer")
		case 6:
			worse.Known = f.Known.Add(time.Hour)
		case 7:
			worse.Least = min(f.Least+1, 2)
		}
		was, is := exchange.JudgeRelease(f), exchange.JudgeRelease(worse)
		if is.Pass && !was.Pass || is.Officers < was.Officers {
			t.Fatalf("%+v\nbecame %+v, %+v\nis %+v", f, was, worse, is)
		}
	})
}

// Whatever leaves in parts needs at the last part as many officers as it would need at once.
func TestReleaseInPartsNeedsTheSameOfficers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawRelease(t)
		part := money.FromUnits(money.KES, big.NewInt(rapid.Int64Range(0, f.Value.Units().Int64()).Draw(t, "part")))
		last := f
		last.Value = f.Value.Sub(part)
		last.Sums.Source, last.Sums.Owner = f.Sums.Source.Add(part), f.Sums.Owner.Add(part)
		last.Sums.Requester, last.Sums.Recipient = f.Sums.Requester.Add(part), f.Sums.Recipient.Add(part)
		if once, parts := exchange.JudgeRelease(f), exchange.JudgeRelease(last); parts.Officers != once.Officers || parts.Pass != once.Pass {
			t.Fatalf("at once %+v, in parts %+v", once, parts)
		}
	})
}

// The house's own money never leaves by one person, wherever it goes; what stays with its owner needs nobody.
func TestReleaseOfTheHouseAndOfOnesOwn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawRelease(t)
		v := exchange.JudgeRelease(f)
		if f.House && (v.Officers == 0 || v.Pass && f.Approved == 0) {
			t.Fatalf("the house's money leaves by one person: %+v %+v", f, v)
		}
		if f.Exempt != "" && !f.House && v.Officers != f.Least {
			t.Fatalf("an owner asks officers for its own wallet: %+v %+v", f, v)
		}
		if !v.Until.IsZero() && (v.Pass || f.Approved == 2 || f.Inside || !v.Until.After(f.Now)) {
			t.Fatalf("a rest that does not hold, or that two officers can't shorten: %+v %+v", f, v)
		}
	})
}

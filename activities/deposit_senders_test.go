package activities

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// sender is a database with deposits of several senders, and a screening service that knows each of them.
type sender struct {
	OffRampStore // for the methods that are not called here
	terms        []exchange.Counterparty
	denied       []string
	service      map[string]exchange.Verdict
	asked        []string
	last         map[uuid.UUID]exchange.Verdict // the worst of the last verdicts, by deposit
	calls        int
}

func (s *sender) ScreenTerms(context.Context, uuid.UUID) ([]exchange.Counterparty, error) {
	return s.terms, nil
}

func (s *sender) Denied(_ context.Context, _ exchange.Network, address string) (bool, error) {
	return slices.Contains(s.denied, address), nil
}

func (s *sender) RecordDepositScreening(_ context.Context, deposit uuid.UUID, said []exchange.Screening) error {
	s.calls++
	for _, v := range []exchange.Verdict{exchange.VerdictHit, exchange.VerdictUnknown, exchange.VerdictClear} {
		if slices.ContainsFunc(said, func(one exchange.Screening) bool { return one.Verdict == v }) {
			s.last[deposit] = v
			return nil
		}
	}
	return fmt.Errorf("nothing was said of deposit %s", deposit)
}

func (s *sender) Screen(_ context.Context, c exchange.Counterparty) (exchange.Screening, error) {
	s.asked = append(s.asked, c.Address)
	if v, known := s.service[c.Address]; known {
		return exchange.Screening{Screener: "service", Verdict: v}, nil
	}
	return exchange.Screening{Screener: "service", Verdict: exchange.VerdictClear}, nil
}

// screen runs the activity.
func (s *sender) screen(t *testing.T) (DepositScreened, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	o := &OffRamps{Store: s, Screener: s}
	env.RegisterActivity(o)
	var got DepositScreened
	value, err := env.ExecuteActivity(o.ScreenDeposit, OrderInput{})
	if err == nil {
		err = value.Get(&got)
	}
	return got, err
}

// The worst verdict about the possible senders of a deposit is stored last, in whatever order they come. Too many
// senders are not screened, and the verdict is unknown.
func TestTheWorstSenderCounts(t *testing.T) {
	t.Parallel()
	clean, hit, unknown := exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictUnknown
	crowd := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("T%d", i))
		}
		return all
	}
	for name, c := range map[string]struct {
		senders []string
		denied  []string
		service map[string]exchange.Verdict
		want    exchange.Verdict
		asked   int
	}{
		"all are clear":         {senders: []string{"A", "B"}, want: clean, asked: 2},
		"the first is denied":   {senders: []string{"A", "B"}, denied: []string{"A"}, want: hit, asked: 1},
		"the last is denied":    {senders: []string{"A", "B"}, denied: []string{"B"}, want: hit, asked: 1},
		"the first is a hit":    {senders: []string{"A", "B"}, service: map[string]exchange.Verdict{"A": hit}, want: hit, asked: 2},
		"one is a hit, one not": {senders: []string{"A", "B"}, service: map[string]exchange.Verdict{"A": hit, "B": unknown}, want: hit, asked: 2},
		"none is known":         {senders: []string{"A", "B"}, service: map[string]exchange.Verdict{"A": unknown}, want: unknown, asked: 2},
		"as many as are asked":  {senders: crowd(maxSenders), want: clean, asked: maxSenders},
		"too many":              {senders: crowd(maxSenders + 1), want: unknown},
	} {
		deposit := uuid.New()
		s := &sender{denied: c.denied, service: c.service, last: map[uuid.UUID]exchange.Verdict{}}
		for _, a := range c.senders {
			s.terms = append(s.terms, exchange.Counterparty{DepositID: deposit, Network: exchange.Solana, Address: a, Amount: money.Must(money.USDT, "5")})
		}
		got, err := s.screen(t)
		if err != nil || got.Verdict != c.want || s.last[deposit] != c.want || s.calls != 1 || len(s.asked) != c.asked {
			t.Errorf("%s: %q, kept as %q in %d verdicts, asked about %v, %v", name, got.Verdict, s.last[deposit], s.calls, s.asked, err)
		}
	}
}

// Each deposit has its own verdict; the worst of them is the order's verdict.
func TestDepositsKeepTheirOwnVerdicts(t *testing.T) {
	t.Parallel()
	one, two := uuid.New(), uuid.New()
	s := &sender{denied: []string{"B"}, last: map[uuid.UUID]exchange.Verdict{}, terms: []exchange.Counterparty{
		{DepositID: one, Address: "A"}, {DepositID: two, Address: "A"}, {DepositID: two, Address: "B"},
	}}
	got, err := s.screen(t)
	if err != nil || got.Verdict != exchange.VerdictHit || s.last[one] != exchange.VerdictClear || s.last[two] != exchange.VerdictHit {
		t.Errorf("%q of %v, %v", got.Verdict, s.last, err)
	}
}

// deniedSince is a bank whose payout can't begin.
type deniedSince struct{ BankStore }

func (deniedSince) BankPayout(context.Context, uuid.UUID) (exchange.BankPayout, error) {
	return exchange.BankPayout{OrderPayout: exchange.OrderPayout{Status: exchange.PayoutPending}}, nil
}

func (deniedSince) BeginBankPayout(context.Context, uuid.UUID) (exchange.OrderPayout, error) {
	return exchange.OrderPayout{}, exchange.Wrap(exchange.CodeStateConflict, exchange.ErrUncleared, "look again")
}

// A bank payment that does not begin because of its sender reports that, as a mobile money payout does.
func TestBankReportsUnclearedSenders(t *testing.T) {
	t.Parallel()
	got, err := (&Bank{Store: deniedSince{}}).LookAtBank(t.Context(), BankInput{})
	if err != nil || got.State != PayoutUncleared {
		t.Errorf("%+v, %v", got, err)
	}
}

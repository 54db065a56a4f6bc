package daraja_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
)

func floatMove(amount string) exchange.FloatMove {
	id := uuid.New()
	token := func() string { return strings.ReplaceAll(id.String()+uuid.NewString(), "-", "") }
	return exchange.FloatMove{ID: id, Amount: money.Must(money.KES, amount), CallbackToken: token(), StatusToken: token()}
}

func (w *harness) heard(m exchange.FloatMove, kind exchange.CallbackKind) []exchange.Observation {
	w.t.Helper()
	var all []exchange.Observation
	token := m.CallbackToken
	if kind == exchange.CallbackStatus {
		token = m.StatusToken
	}
	for _, p := range w.receiver.of(token, kind) {
		seen, err := w.client.ParseCallback(kind, p.body)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, seen...)
	}
	return all
}

// A movement of float leaves the working account, arrives at the utility account, and is reported in the result and in the
// answer to a query. The operator accepts it again under the same id, so nothing may be sent twice.
func TestMoveFloat(t *testing.T) {
	w := newHarness(t, nil)
	before := w.operator.Books()
	m := floatMove("25000")
	s := w.client.MoveFloat(t.Context(), m)
	if s.State != exchange.Accepted || s.Refs.ConversationID == "" || s.Refs.OriginatorConversationID == "" || s.Refs.OriginatorConversationID == m.ID.String() {
		t.Fatalf("got %+v", s)
	}
	w.settle()
	m.OriginatorID = s.Refs.OriginatorConversationID
	results := w.heard(m, exchange.CallbackResult)
	if len(results) != 1 || results[0].State != exchange.SeenSucceeded || !results[0].Amount.Equal(m.Amount) || results[0].Receipt == "" ||
		results[0].At.IsZero() || results[0].Refs.ConversationID != s.Refs.ConversationID {
		t.Fatalf("the result is %+v", results)
	}
	for _, receipt := range []string{"", results[0].Receipt} { // by the operator's id of the request, and by the receipt
		m.Receipt = receipt
		asked := w.client.QueryFloat(t.Context(), m)
		w.settle()
		answers := w.heard(m, exchange.CallbackStatus)
		last := answers[len(answers)-1]
		if asked.State != exchange.SeenPending || last.State != exchange.SeenSucceeded || last.Receipt != results[0].Receipt || !last.Amount.Equal(m.Amount) ||
			last.Ticket != asked.Ticket {
			t.Errorf("asked by %q: %+v, %+v", receipt, asked, last)
		}
	}
	after := w.operator.Books()
	if after.Working != before.Working-25000 || after.Utility != before.Utility+25000 || len(after.Moves) != 1 || len(after.Payouts) != 0 {
		t.Errorf("working %d, utility %d, moves %+v", after.Working, after.Utility, after.Moves)
	}
	if again := w.client.MoveFloat(t.Context(), m); again.State != exchange.Accepted || again.Refs.ConversationID == s.Refs.ConversationID {
		t.Errorf("again: %+v", again)
	}
	w.settle()
	if twice := w.operator.Books(); twice.Utility != before.Utility+50000 {
		t.Errorf("the utility account has %d: the sandbox took two movements for one", twice.Utility)
	}
}

// An invalid movement is refused, and one without a response is unknown.
func TestMoveFloatTroubles(t *testing.T) {
	for name, row := range map[string]struct {
		fault, amount string
		submit        exchange.SubmissionState
		result        string
		moved         int64
	}{
		"too little":       {"", "2000000", exchange.Accepted, "1", 0},
		"utility refused":  {"utility_short", "100", exchange.Accepted, "1", 0},
		"credential":       {"credential_wrong", "100", exchange.Accepted, "2001", 0},
		"connection lost":  {"payout_accepted_drop", "100", exchange.Unknown, "0", 100},
		"not entitled":     {"payout_forbidden", "100", exchange.Refused, "", 0},
		"a throttled call": {"spike_arrest", "100", exchange.Unknown, "", 0},
		"cents":            {"", "100.50", exchange.Refused, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, nil)
			if row.fault != "" {
				if err := w.operator.Set(sandbox.Fault{Behaviour: row.fault, Op: sandbox.OpFloat}); err != nil {
					t.Fatal(err)
				}
			}
			m := floatMove(row.amount)
			if s := w.client.MoveFloat(t.Context(), m); s.State != row.submit {
				t.Errorf("got %+v", s)
			}
			w.settle()
			results, code := w.heard(m, exchange.CallbackResult), ""
			if len(results) > 0 {
				code = results[0].Code
			}
			if moved := w.operator.Books().Utility - sandbox.DefaultUtilityOpening; code != row.result || moved != row.moved {
				t.Errorf("result %q, moved %d", code, moved)
			}
		})
	}
	w := newHarness(t, nil)
	if o := w.client.QueryFloat(t.Context(), floatMove("100")); o.State != exchange.SeenNoAnswer {
		t.Errorf("a movement without ids was queried: %+v", o)
	}
}

// A status query reports the charge for a payout as the operator's own books have it.
func TestPayoutCharge(t *testing.T) {
	w := newHarness(t, nil)
	a := payout(payer) // of 500 KES
	w.client.SubmitPayout(t.Context(), a)
	w.settle()
	w.client.Resolve(t.Context(), a)
	w.settle()
	answers := w.results(a, exchange.CallbackStatus)
	if len(answers) != 1 || !answers[0].Charge.Equal(money.Must(money.KES, "7")) {
		t.Fatalf("got %+v", answers)
	}
	b := w.operator.Books()
	if b.Effects[0].Charge != 7 || b.Utility != sandbox.DefaultUtilityOpening-507 {
		t.Errorf("charged %d, utility %d", b.Effects[0].Charge, b.Utility)
	}
}

// Number 79 is refused first and paid later: both results arrive, and a query reports the state of its time.
func TestPayoutPaidAfterItsFailure(t *testing.T) {
	w := newHarness(t, nil)
	a := payout(magic("79"))
	w.client.SubmitPayout(t.Context(), a)
	w.settle()
	if got := w.results(a, exchange.CallbackResult); len(got) != 1 || got[0].Code != "2040" || w.moved(sandbox.Payout) != 0 {
		t.Fatalf("before: %+v, moved %d", got, w.moved(sandbox.Payout))
	}
	w.client.Resolve(t.Context(), a)
	w.settle()
	w.release()
	got := w.results(a, exchange.CallbackResult)
	if len(got) != 2 || got[1].State != exchange.SeenSucceeded || got[1].Receipt == "" || w.moved(sandbox.Payout) != 500 {
		t.Fatalf("after: %+v, moved %d", got, w.moved(sandbox.Payout))
	}
	w.client.Resolve(t.Context(), a)
	w.settle()
	answers := w.results(a, exchange.CallbackStatus)
	if len(answers) != 2 || answers[0].State != exchange.SeenFailed || answers[1].State != exchange.SeenSucceeded {
		t.Errorf("answers: %+v", answers)
	}
}

// A number's owner is returned with masked surnames. A number without an owner is a result; no response is an error.
func TestCheckPayee(t *testing.T) {
	w := newHarness(t, nil)
	got, err := w.client.CheckPayee(t.Context(), payer)
	if err != nil || !got.Known || !strings.Contains(got.Name, "M******") || strings.HasPrefix(got.Name, "M*") {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := w.client.CheckPayee(t.Context(), magic("52")); err != nil || got.Known {
		t.Errorf("no owner: %+v, %v", got, err)
	}
	if err := w.operator.Set(sandbox.Fault{Behaviour: "empty_500", Op: sandbox.OpPayee}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.CheckPayee(t.Context(), payer); exchange.CodeOf(err) != exchange.CodeUnavailable {
		t.Errorf("an empty answer: %v", err)
	}
	if err := w.operator.Set(sandbox.Fault{Behaviour: "no_product", Op: sandbox.OpPayee, Times: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.CheckPayee(t.Context(), payer); exchange.CodeOf(err) != exchange.CodeUnavailable {
		t.Errorf("a product that is not enabled: %v", err)
	}
}

// With CheckPayees, nothing is sent to a number without an owner; without a response the payout is sent.
func TestPayeeIsCheckedBeforeAPayout(t *testing.T) {
	w := newHarness(t, func(_ *sandbox.Config, c *daraja.Config) { c.CheckPayees = true })
	if s := w.client.SubmitPayout(t.Context(), payout(magic("52"))); s.State != exchange.Refused || s.Code != "2040" || s.Transient {
		t.Errorf("nobody's: %+v", s)
	}
	if n := len(w.operator.Books().Payouts); n != 0 {
		t.Errorf("%d payouts were sent", n)
	}
	if err := w.operator.Set(sandbox.Fault{Behaviour: "drop", Op: sandbox.OpPayee}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // without a response, and with one
		if s := w.client.SubmitPayout(t.Context(), payout(payer)); s.State != exchange.Accepted {
			t.Errorf("somebody's: %+v", s)
		}
	}
}

// Two holders of one consumer key invalidate each other's tokens. Both continue, and nothing is sent twice.
func TestTwoClientsEndEachOthersTokens(t *testing.T) {
	w := newHarness(t, nil)
	config := daraja.Config{
		BaseURL: w.operator.URL(), ConsumerKey: sandbox.DefaultConsumerKey, ConsumerSecret: sandbox.DefaultConsumerSecret,
		Shortcode: sandbox.DefaultShortcode, Passkey: sandbox.DefaultPasskey, PayoutShortcode: sandbox.DefaultPayoutShortcode,
		InitiatorName: sandbox.DefaultInitiatorName, SecurityCredential: sandbox.DefaultSecurityCredential,
		CallbackBase: w.receiver.URL + "/cb", StandingToken: standing,
	}
	second, err := daraja.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		client := []*daraja.Client{w.client, second}[i%2]
		if i == 3 {
			w.operator.RevokeToken() // as another holder of the key does
		}
		if s := client.SubmitPayout(t.Context(), payout(payer)); s.State != exchange.Accepted {
			t.Fatalf("payout %d: %+v", i, s)
		}
	}
	var both sync.WaitGroup
	for i := range 6 {
		both.Go(func() {
			s := []*daraja.Client{w.client, second}[i%2].SubmitPayout(t.Context(), payout(payer))
			// A token that was invalidated twice during a request is a refusal for now: the request was not processed.
			if s.State == exchange.Unknown || (s.State == exchange.Refused && !s.Transient) {
				t.Errorf("at once: %+v", s)
			}
		})
	}
	both.Wait()
	w.settle()
	if b := w.operator.Books(); int(w.moved(sandbox.Payout)/500) != len(b.Payouts) {
		t.Errorf("moved %d in %d payouts", w.moved(sandbox.Payout), len(b.Payouts))
	}
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// newMomoHarness plays the flow of a deposit of shillings by mobile money, prompted or by hand, which payers answer by a script.
func newMomoHarness(t testing.TB, method exchange.OTCMethod, payers ...payer) *otcHarness {
	t.Helper()
	w := newOTCHarness(t)
	if w.ask.Method = method; method == exchange.OTCByMomo {
		w.ask.Phone = "254712345678"
	}
	w.operator.script = func(_ exchange.PaymentAttempt, n int) payer { return pick(payers, n, pays) }
	return w
}

// audits has the auditor close the deposit at a time.
func (w *otcHarness) audits(at time.Duration) {
	w.at(at, func() { w.step("audit", exchange.IntendOTCAudit, exchange.OTCStep{}, w.auditor) })
}

// paysByHand has the operator's notice and its statement report a payment under the deposit's reference, which wakes the flow.
func (w *otcHarness) paysByHand(amount string) {
	o := storetest.Paid(w.t, money.Must(money.KES, amount))
	o.Reference, o.At = w.row().Reference, w.env.Now()
	for _, source := range []exchange.EvidenceSource{exchange.SourceConfirmation, exchange.SourceStatement} {
		o.Source = source
		taken, err := w.store.Store.TakeReceipt(w.t.Context(), o)
		if err != nil || taken.Waiting.WorkflowID != workflows.OTCDepositID(w.ask.ID) {
			w.t.Errorf("the payment finds %+v, %v", taken.Waiting, err)
		}
	}
	if err := w.env.SignalWorkflowByID(workflows.OTCDepositID(w.ask.ID), workflows.SignalCallback, workflows.CallbackRef{}); err != nil {
		w.t.Error(err)
	}
}

func (w *otcHarness) wantCredited(amount string) {
	w.t.Helper()
	if got := w.balance(exchange.Owned(exchange.AccFiatBalance, w.market.Vendor.ID, money.KES)); !got.Equal(money.Must(money.KES, amount)) {
		w.t.Errorf("the merchant has %s, want %s", got, amount)
	}
}

// A prompt that is paid credits the shillings without an officer, also when its result gets lost or the operator is busy at first.
func TestOTCDepositByPrompt(t *testing.T) {
	t.Parallel()
	for name, payers := range map[string][]payer{
		"paid":           {pays},
		"no callback":    {{code: "0", after: 20 * time.Second, silent: true, confirms: true}},
		"busy at first":  {{refuse: "500.003.02", transient: true}, pays},
		"answer is lost": {{code: "0", after: 5 * time.Second, deaf: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMomoHarness(t, exchange.OTCByMomo, payers...)
			w.audits(12 * time.Hour)
			w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
			w.wantCredited("1500")
			if d := w.row(); d.ConfirmedBy != d.CreditedBy || d.MomoReceipt == "" || d.CheckoutRequestID == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// began is what a run of the flow did before it was terminated: it opened the deposit and sent prompts, each with its answer. The deposit
// still shows what it showed while the last one was sent.
func (w *otcHarness) began(prompts int) {
	w.t.Helper()
	s, of := w.store.Store, exchange.DepositObject(w.ask.ID)
	if _, err := storetest.OpenOTC(w.t.Context(), s, exchange.IntendOTCOpen, w.ask, w.merchant); err != nil {
		w.t.Fatal(err)
	}
	for n := 1; n <= prompts; n++ {
		a, _, err := s.BeginCollection(w.t.Context(), of, exchange.PaymentAttempt{
			ID: activities.CollectionID(w.ask.ID, n), Provider: "daraja", CallbackToken: uuid.NewString(), WorkflowID: workflows.OTCDepositID(w.ask.ID),
		})
		if err == nil {
			_, err = s.RecordSubmission(w.t.Context(), a.ID, w.operator.SubmitCollection(w.t.Context(), a))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A flow that is begun anew knows every prompt of the earlier run, sends none a second time, and repeats a refused one as that run would
// have.
func TestOTCDepositBegunAnew(t *testing.T) {
	t.Parallel()
	busy := payer{refuse: "500.003.02", transient: true}
	for name, c := range map[string]struct {
		before  int
		payers  []payer
		prompts int // the operator's
	}{
		"before the first prompt":  {0, []payer{pays}, 1},
		"after a prompt":           {1, []payer{pays}, 1},
		"after a refused prompt":   {1, []payer{busy, pays}, 1},
		"after a repeated prompt":  {2, []payer{busy, pays}, 1},
		"while the prompt is open": {2, []payer{busy, {code: "0", after: 3 * time.Minute}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMomoHarness(t, exchange.OTCByMomo, c.payers...)
			w.began(c.before)
			if d := w.row(); d.Detail != exchange.WaitPrompt {
				t.Fatalf("it waits for %s", d.Detail)
			}
			w.audits(12 * time.Hour)
			w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
			w.wantCredited("1500")
			if n := len(w.operator.submitted); n != c.prompts {
				t.Errorf("%d prompts reached the phone", n)
			}
			for id, n := range w.operator.submitted {
				if n != 1 {
					t.Errorf("prompt %s was sent %d times", id, n)
				}
			}
		})
	}
}

// A merchant that declined is not prompted again by a flow that is begun anew.
func TestOTCDepositBegunAnewAfterADecline(t *testing.T) {
	t.Parallel()
	w := newMomoHarness(t, exchange.OTCByMomo, payer{code: "1032", after: time.Millisecond}, pays)
	w.began(1)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCExpired, exchange.DetailNoMoney)
	if n := len(w.operator.submitted); n != 1 {
		t.Errorf("%d prompts reached the phone", n)
	}
}

// A prompt that the merchant declines or does not answer ends the deposit after its time; one whose outcome stays unknown parks the flow
// until an operator has found out.
func TestOTCDepositByPromptWithoutMoney(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]payer{"declined": {code: "1032", after: 5 * time.Second}, "not answered": {code: "1037", after: 70 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMomoHarness(t, exchange.OTCByMomo, p)
			w.at(10*time.Minute, func() {
				if d := w.row(); d.Status != exchange.OTCPending {
					t.Errorf("before its time it is %s", d.Status)
				}
			})
			w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCExpired, exchange.DetailNoMoney)
		})
	}
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		w := newMomoHarness(t, exchange.OTCByMomo, payer{code: "1037", after: 3 * time.Hour, silent: true})
		w.at(2*time.Hour, func() {
			if d := w.row(); d.Status != exchange.OTCPending {
				t.Errorf("the outcome is unknown, and it is %s", d.Status)
			}
		})
		w.at(4*time.Hour, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
		w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCExpired, exchange.DetailNoMoney)
	})
}

// A payment to our number under the deposit's reference credits the shillings; without one the deposit expires, and what is paid then is
// late.
func TestOTCDepositByHand(t *testing.T) {
	t.Parallel()
	w := newMomoHarness(t, exchange.OTCByC2B)
	w.at(30*time.Hour, func() { w.paysByHand("1500") })
	w.audits(40 * time.Hour)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
	w.wantCredited("1500")

	w = newMomoHarness(t, exchange.OTCByC2B)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCExpired, exchange.DetailNoMoney)
	a, err := w.store.Store.Attempt(t.Context(), activities.CollectionID(w.ask.ID, 1))
	if err != nil || a.Status != exchange.AttemptFailed {
		t.Errorf("the wait is %s, %v", a.Status, err)
	}
}

// A shilling that a stranger pays under the deposit's reference does not end it.
func TestAStrangersShillingEndsNoDeposit(t *testing.T) {
	t.Parallel()
	w := newMomoHarness(t, exchange.OTCByC2B)
	w.at(time.Hour, func() {
		o := storetest.Paid(t, money.Must(money.KES, "1"))
		o.Reference, o.At, o.PhoneHash = w.row().Reference, w.env.Now(), exchange.Phone("254799999999").Hash()
		for _, source := range []exchange.EvidenceSource{exchange.SourceConfirmation, exchange.SourceStatement} {
			o.Source = source
			if _, err := w.store.Store.TakeReceipt(t.Context(), o); err != nil {
				t.Error(err)
			}
		}
		w.env.SignalWorkflow(workflows.SignalCallback, workflows.CallbackRef{})
	})
	w.at(2*time.Hour, func() { w.paysByHand("1500") })
	w.audits(3 * time.Hour)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
	w.wantCredited("1500")
}

// Above the merchant's limit an officer confirms what the operator proves.
func TestOTCDepositByHandAboveTheLimit(t *testing.T) {
	t.Parallel()
	w := newMomoHarness(t, exchange.OTCByC2B)
	w.ask.Fiat = money.Must(money.KES, "150000")
	w.at(time.Hour, func() { w.paysByHand("150000") })
	w.at(2*time.Hour, func() { w.step("claim", exchange.IntendOTCClaim, exchange.OTCStep{}, w.desk) })
	w.at(2*time.Hour+time.Minute, func() {
		d := w.row()
		w.step("confirm", exchange.IntendOTCConfirm, exchange.OTCStep{Received: d.Received, ValueDate: d.ValueDate}, w.desk)
	})
	w.at(3*time.Hour, func() { w.step("settle", exchange.IntendOTCSettle, exchange.OTCStep{}, w.treasury) })
	w.audits(4 * time.Hour)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{"open": "", "claim": "", "confirm": "", "settle": "", "audit": ""})
	w.wantCredited("150000")
}

// depositRehearsals are the reasons of OTC deposits.
func depositRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonDepositOutcome: {onlyRetry, func(t *testing.T, c *parkedCommand) {
			w := newMomoHarness(t, exchange.OTCByMomo, payer{code: "1037", after: 50 * time.Minute, silent: true})
			w.signs.about = []string{"1500.00 KES", "/api/v1/auth/otc/deposits/" + w.ask.ID.String()}
			c.after = 10 * time.Minute
			c.await(t, w.env, w.signs, workflows.OTCDepositID(w.ask.ID), func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
			w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCExpired, exchange.DetailNoMoney)
		}},
	}
}

// A payment that an officer names while a prompt is open is the deposit's money. The watch over that prompt ends, and is not begun again.
func TestAPaymentIsNamedBesideAnOpenPrompt(t *testing.T) {
	t.Parallel()
	w := newMomoHarness(t, exchange.OTCByMomo, payer{code: "1037", after: 3 * time.Hour, silent: true})
	watches := 0
	w.env.SetOnChildWorkflowStartedListener(func(*workflow.Info, workflow.Context, converter.EncodedValues) {
		if watches++; watches == 20 {
			t.Fatal("the prompt is watched again and again")
		}
	})
	w.at(5*time.Minute, func() {
		o := storetest.Paid(t, money.Must(money.KES, "1500"))
		o.Reference, o.At, o.Phone = "MISTAKE", w.env.Now(), exchange.Phone(w.ask.Phone) // the merchant's: a stranger's goes to the queue
		for _, source := range []exchange.EvidenceSource{exchange.SourceConfirmation, exchange.SourceStatement} {
			o.Source = source
			taken, err := w.store.Store.TakeReceipt(t.Context(), o)
			if err != nil {
				t.Error(err)
			}
			if source == exchange.SourceStatement {
				w.step("match", exchange.IntendOTCMatch, exchange.OTCStep{PaymentID: taken.Payment.ID}, w.desk)
			}
		}
	})
	w.audits(12 * time.Hour)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
	w.wantCredited("1500")
	if watches > 2 {
		t.Errorf("%d watches began", watches)
	}
}

// A notice that comes once more when the deposit was audited starts a watch, which ends by itself.
func TestANoticeOfAnAuditedDeposit(t *testing.T) {
	t.Parallel()
	w := newMomoHarness(t, exchange.OTCByMomo)
	ctx, s, of := t.Context(), w.store.Store, exchange.DepositObject(w.ask.ID)
	if _, err := storetest.OpenOTC(ctx, s, exchange.IntendOTCOpen, w.ask, w.merchant); err != nil {
		t.Fatal(err)
	}
	a, _, err := s.BeginCollection(ctx, of, exchange.PaymentAttempt{
		ID: activities.CollectionID(w.ask.ID, 1), Provider: "daraja", CallbackToken: "token", WorkflowID: workflows.OTCDepositID(w.ask.ID),
	})
	if err == nil {
		_, err = s.AcceptPayment(ctx, a.ID, storetest.Paid(t, w.ask.Fiat), time.Time{})
	}
	if err == nil {
		_, err = s.CreditOTC(ctx, w.ask.ID)
	}
	if err == nil {
		_, err = storetest.StepOTC(ctx, s, exchange.IntendOTCAudit, w.ask.ID, exchange.OTCStep{}, w.auditor)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.at(time.Hour, func() { t.Fatal("the watch waits for a flow that has ended") })
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.LatePaymentID(a.ID), TaskQueue: workflows.QueueFlows})
	w.env.ExecuteWorkflow(workflows.LatePayment, workflows.LatePaymentInput{AttemptID: a.ID, Object: of})
	var r workflows.LatePaymentResult
	if err := w.env.GetWorkflowResult(&r); err != nil || r.Outcome != workflows.LateAccounted {
		t.Errorf("the watch ended with %+v, %v", r, err)
	}
}

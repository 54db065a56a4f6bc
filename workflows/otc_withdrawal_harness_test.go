package workflows_test

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// withdrawalHarness plays the flow of a withdrawal of a merchant with shillings and USDT, which one officer approves and another executes.
type withdrawalHarness struct {
	*harness
	screener                *screener
	openings                *openings
	ask                     exchange.WithdrawalRequest
	merchant                exchange.Principal
	one, two, three         exchange.Principal // treasury officers
	phone, account, address exchange.Destination
	others                  int  // withdrawals beside it, whose money is held
	lost                    bool // it was paid before the database was put back, and nothing is sent for it
}

// withdrawn is what most withdrawals here bring to a phone.
const withdrawn = "1000"

func newWithdrawalHarness(t testing.TB) *withdrawalHarness {
	t.Helper()
	w := &withdrawalHarness{harness: newStage(t, networkName), screener: &screener{}}
	s := w.store.Store
	w.start = time.Date(2025, 11, 21, 9, 0, 0, 0, time.UTC) // the database compares times with its own clock
	w.env.SetStartTime(w.start)
	if _, err := s.StartDeposits(t.Context(), networkName, exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.start}); err != nil {
		t.Fatal(err)
	}
	w.market = storetest.NewMarketOn(t, s, networkName)
	w.merchant = storetest.PrincipalOf(w.market.Vendor)
	who := func() exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)) }
	w.one, w.two, w.three = who(), who(), who()
	all := money.Must(money.KES, "100000000")
	storetest.Patch(t, s, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleVendor: {}},
		Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: all, TwoAbove: all}, exchange.ApproveBankPayout: {OneAbove: all, TwoAbove: all}},
	})
	storetest.Shillings(t, s, w.merchant.UserID, money.Must(money.KES, "100000"))
	storetest.Shillings(t, s, exchange.PlatformTreasury, money.Must(money.KES, "300000"))
	storetest.Bank(t, s, money.Must(money.KES, "100000"))
	coffer := storetest.TreasuryWallet(t, s, networkName)
	storetest.Deposit(t, s, coffer.ID, crypto("1000"))
	storetest.Gas(t, s, coffer.ID, money.Must(money.TRX, "1000"))
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(130)})
	storetest.AgreeValuations(t, s)
	w.phone = storetest.Destination(t, s, exchange.Destination{Kind: exchange.DestinationPhone, Phone: "254712345678"}, w.merchant)
	w.account = storetest.Destination(t, s, exchange.Destination{
		Kind: exchange.DestinationBank, BankName: "Bank of Examples", AccountName: "Landlord Limited", AccountNumber: "0100200300",
	}, w.merchant)
	w.address = storetest.Destination(t, s, exchange.Destination{Kind: exchange.DestinationAddress, Network: networkName, Address: stranger}, w.merchant)
	w.known(w.start.Add(-48 * time.Hour))
	w.ask = exchange.WithdrawalRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000e1"), DestinationID: w.phone.ID, Source: money.KES, Payout: money.KES, Amount: money.Must(money.KES, withdrawn),
	}
	w.signs.about = []string{"/api/v1/auth/otc/withdrawals/" + w.ask.ID.String()}
	w.registerWithdrawals()
	return w
}

// known makes all destinations as old as a time. The database confirms them at its own clock.
func (w *withdrawalHarness) known(since time.Time) {
	storetest.Exec(w.t, w.store.Store, `ALTER TABLE otc_destinations DISABLE TRIGGER USER`)
	storetest.Exec(w.t, w.store.Store, `UPDATE otc_destinations SET confirmed_at = $1`, since)
	storetest.Exec(w.t, w.store.Store, `ALTER TABLE otc_destinations ENABLE TRIGGER USER`)
}

// openings is a store that refuses to open transfers while refuse says so.
type openings struct {
	*store.Store
	refuse func() error
}

func (o *openings) OpenTransfer(ctx context.Context, a exchange.Asked) (exchange.Transfer, error) {
	if o.refuse != nil {
		if err := o.refuse(); err != nil {
			return exchange.Transfer{}, err
		}
	}
	return o.Store.OpenTransfer(ctx, a)
}

func (w *withdrawalHarness) registerWithdrawals() {
	w.env.RegisterWorkflow(workflows.OTCWithdrawal)
	w.env.RegisterWorkflow(workflows.Transfer)
	w.env.RegisterActivity(&activities.Withdrawals{Store: w.store, Screener: w.screener})
	w.openings = &openings{Store: w.store.Store}
	w.env.RegisterActivity(&activities.Transfers{Store: w.openings, Screener: w.screener})
	w.env.RegisterActivity(&activities.Approvals{Store: w.store.Store})
}

// byBank has the shillings paid at a bank.
func (w *withdrawalHarness) byBank() { w.ask.DestinationID = w.account.ID }

// quote is one of the merchant's.
func (w *withdrawalHarness) quote(side exchange.QuoteSide, given money.Amount, method string) uuid.UUID {
	q, err := w.store.OpenQuote(w.t.Context(), store.QuoteRequest{
		ID: uuid.New(), Purpose: exchange.QuoteForWithdrawal, Side: side, Amount: given, Asset: money.USDT, Network: networkName, Method: method,
	}, w.merchant)
	if err != nil {
		w.t.Fatal(err)
	}
	return q.ID
}

// sells has 10 USDT sold for shillings.
func (w *withdrawalHarness) sells() {
	w.ask.Source, w.ask.Amount, w.ask.WalletID = money.USDT, money.Amount{}, w.market.VendorWallet.ID
	w.ask.QuoteID = w.quote(exchange.QuoteSell, crypto("10"), exchange.FeeByMomo)
}

// buys has 1300 shillings exchanged for USDT.
func (w *withdrawalHarness) buys() {
	w.ask.Payout, w.ask.Amount, w.ask.DestinationID = money.USDT, money.Amount{}, w.address.ID
	w.ask.QuoteID = w.quote(exchange.QuoteBuy, money.Must(money.KES, "1300"), exchange.FeeByChain)
}

// row reads the withdrawal, which is empty when it was not opened.
func (w *withdrawalHarness) row() exchange.Withdrawal {
	o, err := w.store.Store.WithdrawalByID(w.t.Context(), w.ask.ID)
	if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		w.t.Error(err)
	}
	return o
}

// step has somebody ask for a verb, and records the answer under a name.
func (w *withdrawalHarness) step(name string, kind exchange.IntentKind, step exchange.WithdrawalStep, by exchange.Principal) {
	ref := w.intends(kind, uuid.New(), w.ask.ID, step.Terms(), by)
	w.env.UpdateWorkflow(workflows.UpdateStep, ref.IntentID.String(), w.answer(name), ref)
}

// token gives an officer the right to one decision.
func (w *withdrawalHarness) token(action exchange.ApprovalAction, by exchange.Principal) string {
	name, o, now := uuid.NewString(), w.row(), w.env.Now()
	_, err := w.store.IssueWithdrawalTicket(w.t.Context(), exchange.ApprovalTicket{
		ID: uuid.New(), OfficerID: by.UserID, ObjectType: exchange.ApproveWithdrawal, ObjectID: o.ID, Action: action, Amount: o.Payout, Digest: o.Digest,
		Channel: exchange.ChannelSignal, TokenHash: sha256.Sum256([]byte(name)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, by)
	if err != nil {
		w.t.Errorf("a token: %v", err)
	}
	return name
}

func (w *withdrawalHarness) approve(name string, by exchange.Principal) {
	w.env.UpdateWorkflow(workflows.UpdateApprove, name, w.answer(name), workflows.ApprovalRef{Token: w.token(exchange.Approve, by)})
}

// execute has an officer execute it. Crypto of the treasury leaves by the officer's transfer.
func (w *withdrawalHarness) execute(name string, by exchange.Principal) {
	var step exchange.WithdrawalStep
	if o := w.row(); o.Buys() {
		from, err := w.store.HouseWallet(w.t.Context(), networkName)
		if err != nil {
			w.t.Error(err)
		}
		r := exchange.TransferRequest{
			ID: uuid.New(), RequestedBy: by.UserID, WalletID: from.ID, Network: networkName, Amount: o.Payout, Recipient: exchange.Recipient{Address: stranger},
		}
		step.TransferIntent = w.intends(exchange.IntendTransfer, r.ID, r.ID, r.Terms(), by).IntentID
	}
	w.step(name, exchange.IntendWithdrawalExecute, step, by)
}

// executed has one officer approve it and another execute it, in the first two minutes.
func (w *withdrawalHarness) executed() {
	w.at(time.Minute, func() { w.approve("approve", w.one) })
	w.at(2*time.Minute, func() { w.execute("execute", w.two) })
}

// letGo requests it, and has two officers let it go, without its flow.
func (w *withdrawalHarness) letGo() {
	ctx, s := w.t.Context(), w.store.Store
	_, err := storetest.OpenWithdrawal(ctx, s, w.ask, w.merchant)
	if err == nil {
		_, err = s.AdvanceWithdrawal(ctx, w.ask.ID)
	}
	if err == nil {
		_, err = s.DecideWithdrawal(ctx, w.ask.ID, w.token(exchange.Approve, w.one), exchange.Approve)
	}
	if err == nil {
		_, err = storetest.StepWithdrawal(ctx, s, exchange.IntendWithdrawalExecute, w.ask.ID, exchange.WithdrawalStep{}, w.two)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// confirm has an officer say that a bank has paid it.
func (w *withdrawalHarness) confirm(name string, by exchange.Principal) {
	w.step(name, exchange.IntendWithdrawalPaid, exchange.WithdrawalStep{Reference: "FT1", PaidOn: exchange.DateOf(w.env.Now()), Amount: w.row().Payout}, by)
}

// ended has two officers end it unpaid, and the API notify the flow.
func (w *withdrawalHarness) ended() {
	c, err := w.store.ProposeWithdrawalFailure(w.t.Context(), w.ask.ID, "not in the statement", w.one)
	if err == nil {
		err = w.confirmed(c)
	}
	if err != nil {
		w.t.Error(err)
	}
	w.env.SignalWorkflow(workflows.SignalResume, nil)
}

// tell gives an operator's command about the withdrawal.
func (w *withdrawalHarness) tell(verb, note string) {
	w.notifyFlow(w.decreeWith(activities.ObjectWithdrawal, w.ask.ID, verb, note), verb)
}

// plans sets what the operator does with one payout after the other; the last one repeats.
func (w *withdrawalHarness) plans(plans ...payer) {
	w.operator.script = func(_ exchange.PaymentAttempt, n int) payer { return pick(plans, n, payer{}) }
}

// paidOut is what the operator's own book holds for the withdrawal.
func (w *withdrawalHarness) paidOut() (list []moved) {
	w.operator.mu.Lock()
	defer w.operator.mu.Unlock()
	for _, m := range w.operator.book {
		if m.attempt.Object == exchange.WithdrawalObject(w.ask.ID) {
			list = append(list, m)
		}
	}
	return list
}

// play runs the withdrawal's flow until it ends.
func (w *withdrawalHarness) play() workflows.WithdrawalResult {
	w.t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.WithdrawalID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.shows(workflows.WithdrawalAttributes(w.ask.Payout))
	w.at(0, func() { w.env.UpdateWorkflow(workflows.UpdateOpen, w.ask.ID.String(), w.answer("open")) })
	w.at(60*24*time.Hour, func() {
		w.t.Fatalf("it never ends: %s (%s), the flows were parked with %v, and answered %v", w.row().Status, w.row().Detail, w.signs.reasons, w.answers)
	})
	intent := w.intends(exchange.IntendWithdrawal, w.ask.ID, w.ask.ID, w.ask.Terms(), w.merchant).IntentID
	w.env.ExecuteWorkflow(workflows.OTCWithdrawal, workflows.WithdrawalInput{IntentID: intent})
	if !w.env.IsWorkflowCompleted() {
		w.t.Fatal("the flow did not end")
	}
	if err := w.env.GetWorkflowError(); err != nil {
		w.t.Fatalf("the flow failed: %v", err)
	}
	var r workflows.WithdrawalResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		w.t.Fatal(err)
	}
	w.sound(r)
	return r
}

// sound checks what must hold after every scenario, against the books of the operator and the network.
func (w *withdrawalHarness) sound(r workflows.WithdrawalResult) {
	w.t.Helper()
	o := w.row()
	if r.Status != o.Status || r.Status != "" && r.Detail != o.Detail {
		w.t.Errorf("the flow ended as %s (%s), the row is %s (%s)", r.Status, r.Detail, o.Status, o.Detail)
	}
	completed := o.Status == exchange.WithdrawalCompleted
	if paid := len(w.paidOut()); paid > 1 || !w.lost && (paid == 1) != (completed && o.Method == exchange.WithdrawByMomo) {
		w.t.Errorf("the operator paid %d times and the withdrawal is %s", paid, o.Status)
	}
	if sold := len(w.chain.sent(exchange.ForWithdrawal)); o.Sells() && (sold == 1) != o.Sold() || sold > 1 {
		w.t.Errorf("the crypto was sold %d times, booked: %t", sold, o.Sold())
	}
	for id, n := range w.operator.submitted {
		if n > 1 {
			w.t.Errorf("attempt %s was submitted %d times", id, n)
		}
	}
	if a, err := w.store.Account(w.t.Context(), exchange.Owned(exchange.AccFiatBalance, w.merchant.UserID, money.KES)); err != nil || w.others == 0 && !a.Held.IsZero() {
		w.t.Errorf("%s of the merchant are still held, %v", a.Held, err)
	}
}

// has checks the shillings of the merchant.
func (w *withdrawalHarness) has(shillings string) {
	w.t.Helper()
	if got := w.balance(exchange.Owned(exchange.AccFiatBalance, w.merchant.UserID, money.KES)); !got.Equal(money.Must(money.KES, shillings)) {
		w.t.Errorf("the merchant has %s KES, want %s", got, shillings)
	}
}

func (w *withdrawalHarness) wantEnd(r workflows.WithdrawalResult, status exchange.WithdrawalStatus, detail string) {
	w.t.Helper()
	if r.Status != status || r.Detail != detail || r.WithdrawalID != w.ask.ID {
		w.t.Errorf("the flow ended with %+v, want %s (%s)", r, status, detail)
	}
}

func (w *withdrawalHarness) wantAnswers(want map[string]exchange.Code) {
	w.t.Helper()
	for name, code := range want {
		err, there := w.answers[name]
		if got := exchange.CodeOf(workflows.AsExchangeError(err)); !there || got != code {
			w.t.Errorf("%s was answered with %v (answered: %t), want %q", name, err, there, code)
		}
	}
}

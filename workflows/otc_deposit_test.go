package workflows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// otcHarness plays the flow of a deposit of shillings by bank.
type otcHarness struct {
	*harness
	ask               exchange.OTCRequest
	merchant          exchange.Principal
	desk, second      exchange.Principal // OTC officers
	treasury, auditor exchange.Principal
	bank              exchange.HouseBankAccount
}

func newOTCHarness(t testing.TB) *otcHarness {
	t.Helper()
	w := &otcHarness{harness: newHarness(t)}
	s := w.store.Store
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, r)) }
	w.merchant, w.desk, w.second, w.treasury, w.auditor = storetest.PrincipalOf(w.market.Vendor), who(exchange.RoleOTCOfficer), who(exchange.RoleOTCOfficer), who(exchange.RoleTreasury), who(exchange.RoleAdmin)
	w.bank = storetest.BankAccount(t, s)
	w.ask = exchange.OTCRequest{ID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000d1"), Method: exchange.OTCByBank, Fiat: money.Must(money.KES, "1500"), Asset: money.KES}
	w.env.RegisterWorkflow(workflows.OTCDeposit)
	w.env.RegisterWorkflow(workflows.Transfer)
	w.env.RegisterActivity(&activities.OTC{Store: s})
	return w
}

// step has somebody ask for a verb, and records the answer under a name.
func (w *otcHarness) step(name string, kind exchange.IntentKind, step exchange.OTCStep, by exchange.Principal) {
	ref := w.intends(kind, uuid.New(), w.ask.ID, step.Terms(), by)
	w.env.UpdateWorkflow(workflows.UpdateStep, ref.IntentID.String(), w.answer(name), ref)
}

func (w *otcHarness) row() exchange.OTCDeposit {
	d, err := w.store.Store.OTCDepositByID(w.t.Context(), w.ask.ID)
	if err != nil {
		w.t.Error(err)
	}
	return d
}

// paid has the bank's statement show the money.
func (w *otcHarness) paid(amount string) {
	l := storetest.Line(w.t, "FT1", money.Must(money.KES, amount))
	l.ValueDate = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	l.BookedOn, l.Reference = l.ValueDate, w.row().Reference
	storetest.Statement(w.t, w.store.Store, w.bank, l)
}

func (w *otcHarness) words() exchange.OTCStep {
	d := w.row()
	return exchange.OTCStep{Received: d.Received, ValueDate: d.ValueDate, LineID: d.LineID}
}

func (w *otcHarness) start(kind exchange.IntentKind) {
	w.t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.OTCDepositID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.shows(workflows.OTCDepositAttributes())
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(workflows.UpdateOpen, w.ask.ID.String(), w.answer("open")) }, 0)
	w.env.ExecuteWorkflow(workflows.OTCDeposit, workflows.OTCDepositInput{IntentID: w.intends(kind, w.ask.ID, w.ask.ID, w.ask.Terms(), w.merchant).IntentID})
	if !w.env.IsWorkflowCompleted() {
		w.t.Fatal("the flow did not end")
	}
}

func (w *otcHarness) play(kind exchange.IntentKind) workflows.OTCDepositResult {
	w.t.Helper()
	w.start(kind)
	if err := w.env.GetWorkflowError(); err != nil {
		w.t.Fatalf("the flow failed: %v", err)
	}
	var r workflows.OTCDepositResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *otcHarness) wantEnd(r workflows.OTCDepositResult, status exchange.OTCStatus, detail string) {
	w.t.Helper()
	if r.Status != status || r.Detail != detail || r.DepositID != w.ask.ID {
		w.t.Errorf("the flow ended with %+v, want %s (%s)", r, status, detail)
	}
}

func (w *otcHarness) wantAnswers(want map[string]exchange.Code) {
	w.t.Helper()
	for name, code := range want {
		err, there := w.answers[name]
		if got := exchange.CodeOf(workflows.AsExchangeError(err)); !there || got != code {
			w.t.Errorf("%s was answered with %v (answered: %t), want %q", name, err, there, code)
		}
	}
}

// A deposit goes from its opening to its audit by people's verbs, a lease that ends meanwhile, and the bank's statement.
func TestOTCDepositIsCarriedToItsAudit(t *testing.T) {
	w := newOTCHarness(t)
	w.at(time.Hour, func() { w.paid("1500") })
	w.at(2*time.Hour, func() { w.step("claim", exchange.IntendOTCClaim, exchange.OTCStep{}, w.second) })
	w.at(2*time.Hour+time.Minute, func() { w.step("other claim", exchange.IntendOTCClaim, exchange.OTCStep{}, w.desk) })
	w.at(3*time.Hour, func() {
		if d := w.row(); d.Status != exchange.OTCPending {
			w.t.Errorf("after the lease it is %s", d.Status)
		}
		w.step("claim again", exchange.IntendOTCClaim, exchange.OTCStep{}, w.desk)
	})
	w.at(3*time.Hour+time.Minute, func() { w.step("confirm", exchange.IntendOTCConfirm, w.words(), w.desk) })
	w.at(100*time.Hour, func() { w.step("settle", exchange.IntendOTCSettle, exchange.OTCStep{}, w.treasury) })
	w.at(101*time.Hour, func() { w.step("audit by the settler", exchange.IntendOTCAudit, exchange.OTCStep{}, w.treasury) })
	w.at(102*time.Hour, func() { w.step("audit", exchange.IntendOTCAudit, exchange.OTCStep{}, w.auditor) })
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCAudited, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{
		"open": "", "claim": "", "other claim": exchange.CodeConflict, "claim again": "", "confirm": "", "settle": "", "audit by the settler": exchange.CodeForbidden, "audit": "",
	})
	if got := w.balance(exchange.Owned(exchange.AccFiatBalance, w.market.Vendor.ID, money.KES)); !got.Equal(money.Must(money.KES, "1500")) {
		t.Errorf("the merchant has %s", got)
	}
}

// Without money a deposit ends in time; with money it waits for people.
func TestOTCDepositEndsWithoutMoney(t *testing.T) {
	w := newOTCHarness(t)
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCExpired, exchange.DetailNoMoney)

	w = newOTCHarness(t)
	w.at(71*time.Hour, func() { w.paid("1500") })
	w.at(200*time.Hour, func() { w.step("reject", exchange.IntendOTCReject, exchange.OTCStep{Text: "denied"}, w.desk) })
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCRejected, exchange.DetailReturned)
}

// A draft lives from edit to edit.
func TestOTCDraftLivesFromEditToEdit(t *testing.T) {
	w := newOTCHarness(t)
	w.at(6*24*time.Hour, func() {
		r := w.ask
		ref := w.intends(exchange.IntendOTCEdit, uuid.New(), w.ask.ID, r.Terms(), w.merchant)
		w.env.UpdateWorkflow(workflows.UpdateStep, ref.IntentID.String(), w.answer("edit"), ref)
	})
	w.at(12*24*time.Hour, func() {
		if d := w.row(); d.Status != exchange.OTCDraft {
			w.t.Errorf("it is %s", d.Status)
		}
	})
	w.wantEnd(w.play(exchange.IntendOTCDraft), exchange.OTCExpired, exchange.DetailStale)
	w.wantAnswers(map[string]exchange.Code{"open": "", "edit": ""})
}

// A request that is refused opens nothing.
func TestOTCDepositRefused(t *testing.T) {
	w := newOTCHarness(t)
	w.ask.Fiat = money.Amount{}
	r := w.play(exchange.IntendOTCOpen)
	if r.Status != "" {
		t.Errorf("the flow ended with %+v", r)
	}
	w.wantAnswers(map[string]exchange.Code{"open": exchange.CodeInvalid})
}

// A run that has had too many verbs, refused ones too, goes on in another one.
func TestLongOTCDepositGoesOn(t *testing.T) {
	w := newOTCHarness(t)
	w.at(time.Hour, func() { w.step("claim", exchange.IntendOTCClaim, exchange.OTCStep{}, w.desk) })
	w.at(time.Hour+time.Minute, func() { w.step("other claim", exchange.IntendOTCClaim, exchange.OTCStep{}, w.second) })
	w.at(time.Hour+2*time.Minute, func() {
		w.env.SetContinueAsNewSuggested(true)
		w.step("one too many", exchange.IntendOTCClaim, exchange.OTCStep{}, w.second) // the server gives it to the next run
	})
	w.start(exchange.IntendOTCOpen)
	next, ok := errors.AsType[*workflow.ContinueAsNewError](w.env.GetWorkflowError())
	if !ok || next.WorkflowType.Name != workflows.TypeOTCDeposit {
		t.Fatalf("the flow ended with %v", w.env.GetWorkflowError())
	}
	w.wantAnswers(map[string]exchange.Code{"open": "", "claim": "", "other claim": exchange.CodeConflict})
}

// A settlement that waits for inventory says from where more can be brought, until the transfer is given up.
func TestOTCDepositNamesASourceOfInventory(t *testing.T) {
	w := newOTCHarness(t)
	s := w.store.Store
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(130), Life: exchange.MaxRateLife})
	storetest.AgreeValuations(t, s)
	q, err := s.OpenQuote(t.Context(), store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForDeposit, Side: exchange.QuoteBuy, Amount: money.Must(money.KES, "1300"), Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByBank,
	}, w.merchant)
	if err != nil {
		t.Fatal(err)
	}
	w.ask.Asset, w.ask.Network, w.ask.Fiat, w.ask.QuoteID = money.USDT, exchange.Tron, money.Must(money.KES, "1300"), q.ID
	coffer := storetest.TreasuryWallet(t, s, exchange.Tron)
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, exchange.ChainBlock{Number: 100, ID: "b-100"}); err != nil {
		t.Fatal(err)
	}
	reserve := storetest.MultisigWallet(t, s, exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Address: "account-" + storetest.NewID(t).String(), Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: "owner-" + storetest.NewID(t).String()}, {Address: "owner-" + storetest.NewID(t).String()}}, Policy: exchange.MultisigPolicy{Approvals: 1},
	})
	says := func(want bool) {
		t.Helper()
		details := detailsOf(t, w.env, workflows.OTCDepositID(w.ask.ID))
		if got := strings.Contains(details, `"Reserve" has 20.000000 USDT`) && strings.Contains(details, coffer.Address); got != want {
			t.Errorf("the details name a source: %t\n%s", got, details)
		}
	}
	w.at(time.Hour, func() { w.paid("1300") })
	w.at(2*time.Hour, func() { w.step("claim", exchange.IntendOTCClaim, exchange.OTCStep{}, w.desk) })
	w.at(2*time.Hour+time.Minute, func() { w.step("confirm", exchange.IntendOTCConfirm, w.words(), w.desk) })
	w.at(3*time.Hour, func() {
		d := w.row()
		r := exchange.TransferRequest{ID: uuid.New(), RequestedBy: w.treasury.UserID, WalletID: coffer.ID, Network: exchange.Tron, Amount: d.Crypto, Recipient: exchange.Recipient{WalletID: d.ToWalletID}}
		w.step("settle", exchange.IntendOTCSettle, exchange.OTCStep{TransferIntent: w.intends(exchange.IntendTransfer, r.ID, r.ID, r.Terms(), w.treasury).IntentID}, w.treasury)
	})
	w.at(3*time.Hour+30*time.Second, func() {
		says(false)
		storetest.Deposit(t, s, reserve.ID, money.Must(money.USDT, "20"))
	})
	w.at(3*time.Hour+2*time.Minute, func() { says(true) })
	w.at(40*time.Hour, func() {
		says(false)
		w.step("reject", exchange.IntendOTCReject, exchange.OTCStep{Text: "it takes too long"}, w.treasury)
	})
	w.wantEnd(w.play(exchange.IntendOTCOpen), exchange.OTCRejected, exchange.DetailReturned)
	w.wantAnswers(map[string]exchange.Code{"claim": "", "confirm": "", "settle": "", "reject": ""})
}

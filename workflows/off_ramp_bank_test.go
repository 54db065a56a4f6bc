package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// byBank has the order paid out by bank: a remittance to a beneficiary's account.
func (w *saleHarness) byBank() {
	if err := w.store.SeedCatalogs(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	storetest.Bank(w.t, w.store.Store, money.Must(money.KES, "100000"))
	storetest.Exec(w.t, w.store.Store, `UPDATE countries SET is_active = true WHERE alpha2_code = 'GB'`)
	w.request.Subtype, w.request.PayoutMethod = exchange.RemittanceOffRamp, exchange.PaymentMethodBank
	w.request.Sender = exchange.Sender{Name: "Jane Roe", Country: "GB", Phone: "447700900123"}
	w.request.Beneficiary = exchange.Beneficiary{AccountName: "Amina Otieno", BankName: "Bank of Examples", BankCode: "01", AccountNumber: "0011223344"}
}

// atBank has an officer confirm at the bank that the order was paid, with or without a notice to the flow.
func (w *saleHarness) atBank(notified bool) func() {
	return func() {
		who := storetest.User(w.t, w.store.Store, exchange.RoleTreasury)
		now := w.env.Now().In(time.FixedZone("EAT", 3*60*60))
		_, err := w.store.SaveBankConfirmation(w.t.Context(), exchange.BankConfirmation{
			ID: uuid.New(), OrderID: w.request.ID, OfficerID: who.ID, Reference: "FT25325", Amount: w.order().Price.Fiat,
			PaidOn: time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC),
		}, storetest.PrincipalOf(who))
		if err != nil {
			w.t.Errorf("confirm the payment: %v", err)
		}
		w.notice(notified)
	}
}

// declined has two officers say that the bank refused to pay the order.
func (w *saleHarness) declined() {
	c, err := w.store.ProposeBankPayoutRefusal(w.t.Context(), w.request.ID, "the account is closed", w.officer)
	if err == nil {
		_, err = w.store.ConfirmChange(w.t.Context(), c.ID, "", storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleTreasury)))
	}
	if err != nil {
		w.t.Errorf("refuse the payment: %v", err)
	}
	w.notice(true)
}

func (w *saleHarness) notice(notified bool) {
	if notified {
		id := uuid.NewString()
		w.env.UpdateWorkflow(workflows.UpdateConfirmBank, id, w.answer(id), workflows.BankConfirmRef{})
	}
}

// twoAtBank makes every payment by bank need two officers.
func (w *saleHarness) twoAtBank() {
	storetest.Patch(w.t, w.store.Store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
		exchange.ApproveBankPayout: {OneAbove: money.Must(money.KES, "1"), TwoAbove: money.Must(money.KES, "1")},
	}})
}

// bankSale is a scenario of a sale that is paid out by bank.
type bankSale struct {
	name   string
	set    func(w *saleHarness)
	status exchange.OrderStatus
	detail string
	parked []workflows.Reason
	begun  int // how often the payment was put in the treasury's queue
}

func bankSales() []bankSale {
	const min = time.Minute
	failed, back := exchange.OrderFailed, exchange.DetailRefundOpen
	return []bankSale{
		{"confirmed at once", func(w *saleHarness) { w.at(20*min, w.atBank(true)) }, sold, none, nil, 1},
		{"by two officers", func(w *saleHarness) {
			w.twoAtBank()
			w.at(20*min, w.atBank(true))
			w.at(50*min, func() {
				if w.order().StatusDetail != exchange.WaitBankSecond {
					w.answers["detail"] = errBug
				}
			})
			w.at(60*min, w.atBank(true))
		}, sold, none, nil, 1},
		{"confirmed, and the flow is not notified", func(w *saleHarness) { w.at(20*min, w.atBank(false)) }, sold, none, nil, 1},
		{"decided hours later", func(w *saleHarness) {
			w.at(9*time.Hour, w.atBank(true))
		}, sold, none, []workflows.Reason{workflows.ReasonBankWaiting}, 1},
		{"the house has too little at its bank", func(w *saleHarness) {
			bank := storetest.BankAccount(w.t, w.store.Store)
			storetest.Journal(w.t, w.store.Store, exchange.JournalEntry{Kind: exchange.JournalCapitalOut, BankID: bank.ID, Amount: money.Must(money.KES, "99990")})
			w.at(30*min, func() {
				if w.order().StatusDetail != exchange.WaitFloat {
					w.answers["detail"] = errBug
				}
			})
			w.at(40*min, func() { storetest.Bank(w.t, w.store.Store, money.Must(money.KES, "99990")) })
			w.at(90*min, w.atBank(true))
		}, sold, none, nil, 1},
		{"refused, then paid all the same", func(w *saleHarness) {
			w.at(20*min, w.declined)
			w.at(60*min, w.tell("retry"))
			w.at(90*min, w.atBank(true))
		}, sold, none, []workflows.Reason{workflows.ReasonBankRefused}, 2},
		{"refused, and given back, when another officer agrees", func(w *saleHarness) {
			w.at(20*min, w.declined)
			w.at(60*min, w.tell("refund"))
			w.at(90*min, w.agree("agree"))
		}, failed, back, []workflows.Reason{workflows.ReasonBankRefused, workflows.ReasonRefundSecond}, 1},
		{"the sender is denied since, and given back", func(w *saleHarness) {
			w.beforeCall("BankPayout", w.deny)
			w.at(60*min, w.tell("refund"))
		}, failed, back, []workflows.Reason{workflows.ReasonDepositDenied}, 0},
		{"refused, the sender is denied since and cleared, then paid", func(w *saleHarness) {
			w.at(20*min, w.declined)
			w.at(60*min, func() { w.deny(); w.tell("retry")() })
			w.at(90*min, func() { w.undeny(); w.tell("retry")() })
			w.at(120*min, w.atBank(true))
		}, sold, none, []workflows.Reason{workflows.ReasonBankRefused, workflows.ReasonDepositDenied}, 2},
		{"a look breaks off", func(w *saleHarness) {
			w.store.fault = once("BankPayout")
			w.at(20*min, w.atBank(true))
		}, sold, none, nil, 1},
	}
}

// TestSaleIsPaidByBank waits for officers, and parks when none confirms in time.
func TestSaleIsPaidByBank(t *testing.T) {
	t.Parallel()
	for _, s := range bankSales() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newSale(t)
			w.byBank()
			w.deposit(time.Minute, 1, crypto("10"))
			s.set(w)
			looks, fault := 0, w.store.fault
			w.store.fault = func(call string) error {
				if call == "BankPayout" {
					looks++
				}
				if fault != nil {
					return fault(call)
				}
				return nil
			}
			w.run(t)
			o := w.order()
			if o.Status != s.status || o.StatusDetail != s.detail || w.answers["detail"] != nil {
				t.Errorf("the order is %s (%s); what it waited for meanwhile: %v", o.Status, o.StatusDetail, w.answers["detail"])
			}
			w.sound(t)
			w.signs.were(t, workflows.OffRampID(w.request.ID), s.parked...)
			if looks > 40 || len(w.signs.payouts) > 0 {
				t.Errorf("%d looks, %d payouts by mobile money", looks, len(w.signs.payouts))
			}
			if begun := w.begunAtBank(); begun != s.begun {
				t.Errorf("the payment was put in the treasury's queue %d times, want %d", begun, s.begun)
			}
		})
	}
}

// begunAtBank counts how often money was reserved at the bank for the order.
func (w *saleHarness) begunAtBank() (n int) {
	err := storetest.Owner(w.t, w.store.Store).QueryRowContext(w.t.Context(),
		`SELECT count(*) FROM holds WHERE key LIKE 'bank_payout:' || $1 || ':%'`, w.request.ID.String()).Scan(&n)
	if err != nil {
		w.t.Error(err)
	}
	return n
}

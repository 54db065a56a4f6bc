package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// BankRefundFlows is what the API does with the flows of refunds by bank.
type BankRefundFlows interface {
	// RefundByBank starts the flow of a refund that two officers opened. A refund has at most one flow at a time.
	RefundByBank(ctx context.Context, refund uuid.UUID) error
	// ConfirmBankRefund sends it an intent of an officer who says that the bank has paid, which it carries out once.
	ConfirmBankRefund(ctx context.Context, refund, intent uuid.UUID) error
	// LookAtBankRefund has it read its row again. It is no error when the flow has ended.
	LookAtBankRefund(ctx context.Context, refund uuid.UUID) error
}

func (t temporalFlows) RefundByBank(ctx context.Context, refund uuid.UUID) error {
	return t.startRow(ctx, exchange.LiveRow{Kind: exchange.LiveBankRefund, ObjectID: refund})
}

func (t temporalFlows) ConfirmBankRefund(ctx context.Context, refund, intent uuid.UUID) error {
	return t.intend(ctx, workflows.BankRefundID(refund), workflows.UpdateStep, intent)
}

func (t temporalFlows) LookAtBankRefund(ctx context.Context, refund uuid.UUID) error {
	err := fromTemporal(t.client.SignalWorkflow(ctx, workflows.BankRefundID(refund), "", workflows.SignalResume, nil))
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return nil
	}
	return err
}

const refundsPath = "/api/v1/auth/refunds"

func (s *server) bankRefundRoutes() []route {
	verb := func(name string, action exchange.Action, handle func(*call) error) route {
		return route{method: post, path: refundsPath + "/{id}/" + name, action: action, limit: limitGeneral, key: keyRequired, timeout: flowTimeout, handle: handle}
	}
	return []route{
		verb("confirm-bank-payout", exchange.ActConfirmBank, s.confirmBankRefund),
		verb("resolve", exchange.ActOperateFlows, s.resolveBankRefund),
	}
}

var refundRails = names(exchange.RefundRails())

// wirePayee is the account at a bank that a refund goes to. Only staff see it.
type wirePayee struct {
	BankName      string  `json:"bank_name"`
	BankCode      *string `json:"bank_code"`
	Branch        *string `json:"branch"`
	SwiftCode     *string `json:"swift_code"`
	AccountName   string  `json:"account_name"`
	AccountNumber string  `json:"account_number"`
	Reason        *string `json:"payee_reason"`
}

func payeeWire(p exchange.BankPayee) *wirePayee {
	return &wirePayee{p.BankName, optText(p.BankCode), optText(p.Branch), optText(p.SwiftCode), p.AccountName, p.AccountNumber, optText(p.Reason)}
}

// payeeFields are the fields of a request that name the account of a refund by bank.
var payeeFields = []string{"bank_name", "bank_code", "branch", "swift_code", "account_name", "account_number", "payee_reason"}

// noPayee refuses an account for money that does not go back by bank.
func (f *form) noPayee() error {
	for _, name := range payeeFields {
		f.forbid(name, "the money does not go back by bank")
	}
	return f.done()
}

// goesByBank reports whether the money of an exception goes back by bank: shillings that belong to no order.
func goesByBank(x exchange.PaymentException) bool {
	return x.Amount.Asset() == money.KES && x.OrderID == uuid.Nil
}

// refundByBank proposes to send an exception's money to an account at a bank. Another officer confirms it.
func (s *server) refundByBank(c *call, f *form, x exchange.PaymentException, r exchange.BankRefundRequest) error {
	f.forbid("address", "shillings go back to an account at a bank")
	if x.Status == exchange.ExcRefunding || x.Status == exchange.ExcRefunded { // a repeated request shows it
		return c.json(http.StatusOK, exceptionWire(x))
	}
	for _, field := range []struct{ name, value string }{
		{"bank_name", r.Payee.BankName}, {"account_name", r.Payee.AccountName}, {"account_number", r.Payee.AccountNumber},
	} {
		if field.value == "" {
			f.fail(field.name, "required", "is required")
		}
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeBankRefund(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// passBankRefundOn starts the flow of a refund by bank that a second officer has confirmed, or has it read that two officers ended it. It is
// started, and finds by itself what it was not told, within minutes.
func (s *server) passBankRefundOn(c *call, change exchange.ControlChange) {
	opened := change.Kind == exchange.ControlBankRefund
	if !opened && change.Kind != exchange.ControlBankRefundFailure || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		ID       uuid.UUID `json:"id"`
		RefundID uuid.UUID `json:"refund_id"`
	}
	err := json.Unmarshal(change.Change, &about)
	switch {
	case err != nil:
	case opened:
		err = s.Flows.RefundByBank(c.ctx, about.ID)
	default:
		err = s.Flows.LookAtBankRefund(c.ctx, about.RefundID)
	}
	if err != nil {
		s.log.Warn("the flow of a refund by bank was not notified", "change", change.ID, "error", err)
	}
}

// bankRefund reads a refund that goes by bank.
func (s *server) bankRefund(c *call, id uuid.UUID) (exchange.Refund, error) {
	r, err := s.Store.Refund(c.ctx, id)
	if err != nil {
		return r, hideAbsence(err)
	}
	if r.Rail != exchange.RefundByBank {
		return r, exchange.Errorf(exchange.CodeStateConflict, "The refund is not paid by bank.")
	}
	return r, nil
}

// lacksFlow reports whether a flow was not found that a refund by bank should have, because the refund is not over: its start was lost. It may
// be started at any time.
func lacksFlow(r exchange.Refund, err error) bool {
	return exchange.CodeOf(err) == exchange.CodeNotFound && (r.Status == exchange.RefundPending || r.Status == exchange.RefundProcessing)
}

// confirmBankRefund takes an officer's word that a bank has paid a refund. The last one that the amount requires completes it; an earlier one
// answers 202.
func (s *server) confirmBankRefund(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	step := f.bankPaid()
	if err := f.done(); err != nil {
		return err
	}
	r, err := s.bankRefund(c, id)
	if err != nil {
		return err
	}
	err = s.ask(c, exchange.IntendRefundPaid, id, step.Terms(), func(intent uuid.UUID) error {
		err := s.Flows.ConfirmBankRefund(c.ctx, id, intent)
		if !lacksFlow(r, err) {
			return err
		}
		if err := s.Flows.RefundByBank(c.ctx, id); err != nil {
			return err
		}
		return s.Flows.ConfirmBankRefund(c.ctx, id, intent)
	})
	now, readErr := s.Store.Refund(c.ctx, id)
	switch {
	case exchange.CodeOf(err) == exchange.CodeNotFound && readErr == nil:
		return exchange.Errorf(exchange.CodeStateConflict, "The refund is %s, which does not allow this.", now.Status)
	case err != nil:
		return err
	case readErr != nil:
		return readErr
	case now.Status == exchange.RefundProcessing:
		c.fc.Set(fiber.HeaderLocation, refundsPath+"/"+id.String())
		return c.json(http.StatusAccepted, wirePendingChange{[]wireChange{}, []string{c.fc.Path()}})
	}
	return s.answerRefund(c, now)
}

var bankRefundOutcomes = []string{outcomeRetry, outcomeNotPaid}

// resolveBankRefund carries out what an officer found out about a refund by bank. One is enough to try again; two say that it was not paid.
func (s *server) resolveBankRefund(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	outcome := f.oneOf("outcome", true, bankRefundOutcomes...)
	note := f.line("note", outcome == outcomeNotPaid, maxNoteLength)
	if err := f.done(); err != nil {
		return err
	}
	r, err := s.bankRefund(c, id)
	if err != nil {
		return err
	}
	if outcome == outcomeNotPaid {
		proposed, err := s.Store.ProposeBankRefundFailure(c.ctx, id, note, c.who)
		if err != nil {
			return err
		}
		return answerPending(c, proposed)
	}
	if err := s.saveCommand(c, "refund", id, verbRetry, note); err != nil {
		return err
	}
	err = s.Flows.CommandFlow(c.ctx, workflows.BankRefundID(id), c.objectID)
	if lacksFlow(r, err) {
		err = s.Flows.RefundByBank(c.ctx, id) // which tries at once
	}
	switch {
	case exchange.CodeOf(err) == exchange.CodeNotFound:
		return exchange.Errorf(exchange.CodeStateConflict, "The refund is %s and its flow has ended.", r.Status)
	case err != nil:
		return err
	}
	if r, err = s.Store.Refund(c.ctx, id); err != nil {
		return err
	}
	return s.answerRefund(c, r)
}

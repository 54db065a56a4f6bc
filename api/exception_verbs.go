package api

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// settleException carries out an operator's decision in one transaction, and then notifies the flow that may wait for
// it. That flow acts on the exception's row, so a late or lost signal does no harm.
func (s *server) settleException(verdict exchange.ExceptionStatus) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		d := exchange.ExceptionDecision{ID: c.objectID, ExceptionID: id, Verdict: verdict, Reason: f.line("note", true, exchange.MaxExceptionReason)}
		if verdict == exchange.ExcCredited {
			d.WalletID, d.MerchantID = f.id("wallet_id", false), f.id("merchant_id", false)
		}
		if err := f.done(); err != nil {
			return err
		}
		x, mine, err := s.Store.DecideException(c.ctx, d, c.who)
		if exchange.CodeOf(err) == exchange.CodeLimitReached {
			proposed, err := s.Store.ProposeDecision(c.ctx, d, c.who)
			if err != nil {
				return err
			}
			return answerPending(c, proposed)
		}
		if err != nil {
			return hideAbsence(err)
		}
		if mine {
			s.notifyWatch(c, x, d.Reason)
			s.sweepKept(c, x.ID)
		}
		return c.json(http.StatusOK, exceptionWire(x))
	}
}

// notifyOfDecision notifies the flow that waits for a decision about an exception that a second officer has confirmed one.
func (s *server) notifyOfDecision(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlExceptionDecision || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		ExceptionID uuid.UUID `json:"exception_id"`
		Note        string    `json:"note"`
	}
	err := json.Unmarshal(change.Change, &about)
	if err == nil {
		var x exchange.PaymentException
		if x, err = s.Store.Exception(c.ctx, about.ExceptionID); err == nil {
			s.notifyWatch(c, x, about.Note)
			s.sweepKept(c, x.ID)
			return
		}
	}
	s.log.Warn("the flow that watches a payment was not notified of a decision", "change", change.ID, "error", err)
}

// notifyWatch ends the wait of the flow that watches the payment attempt of a settled exception.
func (s *server) notifyWatch(c *call, x exchange.PaymentException, reason string) {
	if x.AttemptID == uuid.Nil {
		return
	}
	err := s.commandWatch(c, x, verbResolve, reason)
	if code := exchange.CodeOf(err); err != nil && code != exchange.CodeNotFound && code != exchange.CodeStateConflict {
		s.log.Warn("the flow that watches a payment was not notified of a decision", "attempt", x.AttemptID, "exception", x.ID, "error", err)
	}
}

// commandWatch records a decision under the request's id, so that a retried request finds it, and passes it to the flow
// that watches the exception's payment attempt.
func (s *server) commandWatch(c *call, x exchange.PaymentException, verb, reason string) error {
	if err := s.saveCommand(c, "payment_exception", x.ID, verb, reason); err != nil {
		return err
	}
	return s.Flows.CommandLate(c.ctx, x.AttemptID, c.objectID)
}

// refundException asks the flow that watches a payment to refund it; for crypto, it starts a flow that returns the deposit.
// The flow opens the refund and completes it; nothing is booked here. A repeated request shows the refund in progress. Shillings that belong
// to no order go back by bank.
func (s *server) refundException(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	reason, to := f.line("note", true, exchange.MaxExceptionReason), f.line("address", false, maxAddressText)
	payee := f.bankAccount(f.has("bank_name") || f.has("account_name") || f.has("account_number")) // whole, if at all
	payee.Reason = f.line("payee_reason", false, exchange.MaxExceptionReason)
	if err := f.done(); err != nil {
		return err
	}
	x, err := s.Store.Exception(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	if goesByBank(x) {
		return s.refundByBank(c, f, x, exchange.BankRefundRequest{ID: c.objectID, ExceptionID: x.ID, Payee: payee, Note: reason})
	}
	if err := f.noPayee(); err != nil {
		return err
	}
	address, err := s.returnAddress(f, x, to)
	if err != nil {
		return err
	}
	if x.Amount.Asset() != money.KES {
		if err := s.returnCrypto(c, x, reason, address); err != nil {
			return err
		}
		if answered, err := s.awaitsOfficer(c, uuid.Nil, x.ID, address != ""); answered || err != nil {
			return err
		}
		if x, err = s.Store.Exception(c.ctx, id); err != nil {
			return hideAbsence(err)
		}
		return c.json(http.StatusOK, exceptionWire(x))
	}
	if x.Status != exchange.ExcRefunding && x.Status != exchange.ExcRefunded {
		terms, err := s.Store.TermsAt(c.ctx, s.now())
		if err != nil {
			return err
		}
		if err := refundable(x, terms.MinPayout); err != nil {
			return err
		}
		if _, answered, err := s.refundByTwo(c, x.ID, reason); answered || err != nil {
			return err
		}
		if err := s.askForRefund(c, x, reason); err != nil {
			return err
		}
		if x, err = s.Store.Exception(c.ctx, id); err != nil {
			return hideAbsence(err)
		}
	}
	return c.json(http.StatusOK, exceptionWire(x))
}

// refundable returns an error when the money can't be refunded. least is the smallest payout of the operator.
func refundable(x exchange.PaymentException, least money.Amount) error {
	switch {
	case x.Status != exchange.ExcOpen:
		return exchange.Errorf(exchange.CodeStateConflict, "The payment exception is already %s.", x.Status)
	case x.Kind == exchange.ExcReconciliation, x.Kind == exchange.ExcPaidTwice:
		return exchange.Errorf(exchange.CodeStateConflict, "No money was received that could be refunded.")
	case x.Amount.Cmp(least) < 0:
		return exchange.Errorf(exchange.CodeStateConflict, "The mobile money operator pays out no less than %s KES.", least)
	}
	return nil
}

// askForRefund passes the decision to the flow that watches the payment. If that flow ended without a decision, it is
// started again: it finds the money again and waits for a repeat of this request.
func (s *server) askForRefund(c *call, x exchange.PaymentException, reason string) error {
	err := s.commandWatch(c, x, verbRefund, reason)
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	used, readErr := s.Store.CommandUsed(c.ctx, c.objectID)
	if readErr != nil || used {
		return readErr // the flow applied the decision and ended
	}
	a, err := s.Store.Attempt(c.ctx, x.AttemptID)
	if err != nil {
		return err
	}
	if err := s.Flows.Callback(c.ctx, a, uuid.Nil); err != nil {
		return err
	}
	return exchange.Errorf(exchange.CodeUnavailable, "The flow that watches the payment had ended and was started again. Repeat the request soon with the same Idempotency-Key.")
}

package api

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// settleException carries a person's decision out in one transaction, and then tells the flow that may wait for
// one. That flow acts on the exception's row, so that it is enough when it hears of it later, or from somebody else.
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
			return tellWaiting(c, proposed)
		}
		if err != nil {
			return hideAbsence(err)
		}
		if mine {
			s.tellWatch(c, x, d.Reason)
			s.sweepKept(c, x.ID)
		}
		return c.json(http.StatusOK, exceptionWire(x))
	}
}

// tellOfDecision tells the flow that waits for a decision about an exception that a second person has confirmed one.
func (s *server) tellOfDecision(c *call, change exchange.ControlChange) {
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
			s.tellWatch(c, x, about.Note)
			s.sweepKept(c, x.ID)
			return
		}
	}
	s.log.Warn("the flow that watches over a payment was not told of a decision", "change", change.ID, "error", err)
}

// tellWatch ends the waiting of the flow that watches over the payment attempt of a settled exception.
func (s *server) tellWatch(c *call, x exchange.PaymentException, reason string) {
	if x.AttemptID == uuid.Nil {
		return
	}
	err := s.commandWatch(c, x, verbResolve, reason)
	if code := exchange.CodeOf(err); err != nil && code != exchange.CodeNotFound && code != exchange.CodeStateConflict {
		s.log.Warn("the flow that watches over a payment was not told of a decision", "attempt", x.AttemptID, "exception", x.ID, "error", err)
	}
}

// commandWatch records a decision under the request's id, so that a retried request finds its own, and hands it to
// the flow that watches over the exception's payment attempt.
func (s *server) commandWatch(c *call, x exchange.PaymentException, verb, reason string) error {
	if err := s.saveCommand(c, "payment_exception", x.ID, verb, reason); err != nil {
		return err
	}
	return s.Flows.CommandLate(c.ctx, x.AttemptID, c.objectID)
}

// refundException has the flow that watches over a payment give it back, or one that sends crypto back. The flow opens
// the refund and sees it paid; here nothing is booked. Asked for again, what is on its way is shown.
func (s *server) refundException(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	reason, to := f.line("note", true, exchange.MaxExceptionReason), f.line("address", false, maxAddressText)
	if err := f.done(); err != nil {
		return err
	}
	x, err := s.Store.Exception(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	address, err := s.returnAddress(f, x, to)
	if err != nil {
		return err
	}
	if x.Amount.Asset() != money.KES {
		if err := s.returnCrypto(c, x, reason, address); err != nil {
			return err
		}
		if x, err = s.Store.Exception(c.ctx, id); err != nil {
			return hideAbsence(err)
		}
		return c.json(http.StatusAccepted, exceptionWire(x))
	}
	if x.Status != exchange.ExcRefunding && x.Status != exchange.ExcRefunded {
		terms, err := s.Store.TermsAt(c.ctx, s.now())
		if err != nil {
			return err
		}
		if err := refundable(x, terms.MinPayout); err != nil {
			return err
		}
		if err := s.askForRefund(c, x, reason); err != nil {
			return err
		}
		if x, err = s.Store.Exception(c.ctx, id); err != nil {
			return hideAbsence(err)
		}
	}
	return c.json(http.StatusAccepted, exceptionWire(x))
}

// refundable says why money can't go back, where it can't. least is what the operator pays out at the least.
func refundable(x exchange.PaymentException, least money.Amount) error {
	switch {
	case x.Status != exchange.ExcOpen:
		return exchange.Errorf(exchange.CodeStateConflict, "The exception is %s already.", x.Status)
	case x.Kind == exchange.ExcReconciliation, x.Kind == exchange.ExcPaidTwice:
		return exchange.Errorf(exchange.CodeStateConflict, "No money arrived that could be given back.")
	case x.AttemptID == uuid.Nil:
		return exchange.Errorf(exchange.CodeUnsupported,
			"The payment belongs to no order, and its payer's number is not known here. Have the operator reverse it, or credit it to a merchant.")
	case x.Amount.Cmp(least) < 0:
		return exchange.Errorf(exchange.CodeStateConflict, "The operator pays out no less than %s KES.", least)
	}
	return nil
}

// askForRefund hands the decision on. A watch that is over though nobody has decided is started anew: it finds the
// money again and waits for the same request.
func (s *server) askForRefund(c *call, x exchange.PaymentException, reason string) error {
	err := s.commandWatch(c, x, verbRefund, reason)
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	used, readErr := s.Store.CommandUsed(c.ctx, c.objectID)
	if readErr != nil || used {
		return readErr // the watch obeyed and is over
	}
	a, err := s.Store.Attempt(c.ctx, x.AttemptID)
	if err != nil {
		return err
	}
	if err := s.Flows.Callback(c.ctx, a, uuid.Nil); err != nil {
		return err
	}
	return exchange.Errorf(exchange.CodeUnavailable, "The flow that watches the payment had ended and was started again. Repeat the request in a moment with the same Idempotency-Key.")
}

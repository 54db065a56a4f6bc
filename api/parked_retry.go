package api

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

// Limits of one request that retries many flows.
const (
	maxRetried    = 200
	retriedAtOnce = 8
	// retryBudget is how long flows are asked; it leaves time to answer which of them were.
	retryBudget = flowTimeout - 5*time.Second
)

// oneByOne are reasons whose flows are not retried together. A retry of refund-payout_claimed dismisses one claim, and a flow
// that is parked with one of the other two may come to that before the command arrives. The rest takes a retry only as a signal.
var oneByOne = []workflows.Reason{
	workflows.ReasonRefundClaimed, workflows.ReasonRefundSecond, workflows.ReasonRefundAddress,
	workflows.ReasonPayoutOverdue, workflows.ReasonDepositsStalled, workflows.ReasonDepositQuarantine,
}

// retriedTogether lists the reasons whose flows may be retried together.
func retriedTogether() []string {
	var all []string
	for _, r := range workflows.Reasons() {
		if slices.Contains(r.Advice().Verbs, verbRetry) && !slices.Contains(oneByOne, r) {
			all = append(all, string(r))
		}
	}
	return all
}

// Results of a retry. Unknown means that the flow did not answer in time and may have accepted it.
const (
	retryAccepted = "accepted"
	retryRefused  = "refused"
	retryUnknown  = "unknown"
)

// wireRetried is the answer of one flow.
type wireRetried struct {
	WorkflowID string     `json:"workflow_id"`
	ObjectType *string    `json:"object_type"`
	ObjectID   *uuid.UUID `json:"object_id"`
	Result     string     `json:"result"`
	Code       *string    `json:"code"`
	Detail     *string    `json:"detail"`
}

// retryParked sends a retry to each flow that is parked with a reason, the longest waiting first. Each flow gets its own command,
// whose id follows from those of the request and the flow, so that a repeated request commands no flow twice.
func (s *server) retryParked(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	filter := exchange.ParkedFilter{
		Reason: f.oneOf("reason", true, names(workflows.Reasons())...), Network: exchange.Network(f.oneOf("network", false, networkNames...)), Size: maxRetried,
	}
	if filter.Reason != "" && !slices.Contains(retriedTogether(), filter.Reason) {
		f.fail("reason", "enum", "must be a reason whose flows can be retried together; a flow that is parked with "+filter.Reason+" needs a decision of its own")
	}
	note := f.line("note", false, maxNoteLength)
	if after := f.line("after", false, maxCursor); after != "" {
		var ok bool
		if filter.After, ok = parkedPlace(after); !ok {
			f.fail("after", "format", "must be the next_after of the request before")
		}
	}
	if err := f.done(); err != nil {
		return err
	}
	flows, total, err := s.allParked(c.ctx, filter)
	if err != nil {
		return err
	}
	retried := s.retryEach(c, flows, note)
	count := map[string]int{}
	for _, r := range retried {
		count[r.Result]++
	}
	next := "" // a flow that accepts the retry may stay in the list, so the next request begins after the last one of these
	if len(flows) == maxRetried {
		next = parkedCursor(flows[len(flows)-1].Place())
	}
	return c.json(http.StatusOK, map[string]any{
		"flows": retried, "accepted": count[retryAccepted], "refused": count[retryRefused], "unknown": count[retryUnknown], "total": total,
		"has_more": next != "", "next_after": optText(next),
	})
}

// allParked reads as many flows as a filter's size, page by page.
func (s *server) allParked(ctx context.Context, f exchange.ParkedFilter) ([]exchange.ParkedFlow, int, error) {
	var all []exchange.ParkedFlow
	most := f.Size
	for {
		f.Size = min(most-len(all), maxPageSize)
		page, total, err := s.Store.ListParked(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, page...)
		if len(page) < f.Size || len(all) >= most {
			return all, total, nil
		}
		f.After = page[len(page)-1].Place()
	}
}

// retryEach asks a few flows at a time, and answers for each in the order of the list.
func (s *server) retryEach(c *call, flows []exchange.ParkedFlow, note string) []wireRetried {
	ctx, cancel := context.WithTimeout(c.ctx, retryBudget)
	defer cancel()
	out := make([]wireRetried, len(flows))
	room, all := make(chan struct{}, retriedAtOnce), sync.WaitGroup{}
	for i, p := range flows {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			out[i] = retriedWire(p, s.retryFlow(ctx, c, p, note))
		})
	}
	all.Wait()
	return out
}

func retriedWire(p exchange.ParkedFlow, refusal error) wireRetried {
	w := wireRetried{WorkflowID: p.WorkflowID, ObjectType: optText(p.ObjectType), ObjectID: optID(p.ObjectID), Result: retryAccepted}
	if refusal != nil {
		w.Result = retryRefused
		if exchange.CodeOf(refusal) == exchange.CodeUnavailable {
			w.Result = retryUnknown
		}
		w.Code, w.Detail = optText(string(exchange.CodeOf(refusal))), optText(exchange.MessageOf(refusal))
	}
	return w
}

// retryFlow records a command about a flow's object, with its audit row, and sends it to the flow.
func (s *server) retryFlow(ctx context.Context, c *call, p exchange.ParkedFlow, note string) error {
	object, id := commandObject(p)
	if id == uuid.Nil {
		return exchange.Errorf(exchange.CodeUnsupported, "The flow accepts a retry only as a signal of the Web UI.")
	}
	if ctx.Err() != nil {
		return exchange.Errorf(exchange.CodeUnavailable, "The request timed out before the command was sent to this flow. Send another request.")
	}
	command := uuid.NewSHA1(c.objectID, []byte(p.WorkflowID))
	err := s.Store.SaveCommand(ctx, exchange.OperatorCommand{
		ID: command, ObjectType: object, ObjectID: id, Verb: verbRetry, Note: note, ActorID: c.who.UserID,
	}, c.who)
	if err != nil {
		return err
	}
	if used, err := s.Store.CommandUsed(ctx, command); err != nil || used {
		return err // the flow accepted it from this request before
	}
	return s.Flows.CommandFlow(ctx, p.WorkflowID, command)
}

// commandObject returns the object of a command to a flow; a zero id for a flow that accepts none.
func commandObject(p exchange.ParkedFlow) (string, uuid.UUID) {
	if p.WithdrawalID != uuid.Nil && p.Type != workflows.TypeCryptoPayout {
		return withdrawalObject, p.WithdrawalID
	}
	switch p.Type {
	case workflows.TypeTransfer:
		return "transfer", p.ObjectID
	case workflows.TypeSwap:
		return swapObject, p.ObjectID
	case workflows.TypeOpenMultisig:
		return multisigObject, p.ObjectID
	case workflows.TypeMultisigProposal:
		return proposalObject, p.ObjectID
	case workflows.TypeBankRefund:
		return "refund", p.ObjectID
	case workflows.TypeReturnDeposit:
		return "payment_exception", p.ObjectID
	case workflows.TypeOnRamp, workflows.TypeOffRamp:
		return "order", p.ObjectID
	case workflows.TypeMomoPayout, workflows.TypeLatePayment, workflows.TypeLatePayout:
		return "order", p.OrderID
	}
	return "", uuid.Nil
}

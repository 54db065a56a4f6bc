package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ChainStore is where the progress of transactions is written.
type ChainStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	RecordBroadcast(ctx context.Context, attemptID uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error)
	RecordIncluded(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string) error
	RecordVanished(ctx context.Context, attemptID uuid.UUID) error
	RecordExpired(ctx context.Context, attemptID uuid.UUID, evidence string) error
	RecordFinal(ctx context.Context, attemptID uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error)
}

// ChainReader is the part of a network's driver that needs no key.
type ChainReader interface {
	Network() exchange.Network
	Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error)
	Locate(ctx context.Context, txID string) (chain.Location, error)
}

// Chain brings signed transactions to their end on one network.
type Chain struct {
	Store  ChainStore
	Client ChainReader
	Poll   time.Duration // between two looks; about the network's block time
}

// The ends of a delivery.
const (
	DeliveryCompleted = "completed" // final, with the expected transfer
	DeliveryFailed    = "failed"    // final, without it: the payment is parked
	DeliveryExpired   = "expired"   // proven impossible: the payment may be signed anew
)

// Delivery is how the delivery of a transaction ended.
type Delivery struct {
	End  string `json:"end"`
	TxID string `json:"tx_id,omitempty"`
	Code string `json:"code,omitempty"` // the network's own word for it
}

// DeliverPayment brings the payment's live transaction a step further and answers when it came to an
// end; until then it asks to be called again. The same bytes are offered as often as needed, and
// what may be done with them is for chain.Judge to say, from facts alone.
func (c *Chain) DeliverPayment(ctx context.Context, in PaymentInput) (Delivery, error) {
	payment, err := c.Store.ChainPayment(ctx, in.PaymentID)
	if err != nil {
		return Delivery{}, Failure(ctx, err)
	}
	attempt, alive, err := c.Store.LiveAttempt(ctx, in.PaymentID)
	if err != nil {
		return Delivery{}, Failure(ctx, err)
	}
	if !alive {
		d, err := ended(payment)
		return d, Failure(ctx, err)
	}
	d, err := c.advance(ctx, payment, attempt)
	return d, Failure(ctx, err)
}

// ended answers for a payment without a live transaction: a step that ran before came this far and
// was not heard.
func ended(p exchange.ChainPayment) (Delivery, error) {
	switch p.Status {
	case exchange.ChainCompleted:
		return Delivery{End: DeliveryCompleted, TxID: p.TxID}, nil
	case exchange.ChainParked:
		return Delivery{End: DeliveryFailed, Code: p.Detail}, nil
	case exchange.ChainApproved:
		return Delivery{End: DeliveryExpired}, nil
	case exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded, exchange.ChainCancelled: // a live transaction belongs to these, or nothing ever will
	}
	return Delivery{}, exchange.Errorf(exchange.CodeStateConflict, "The payment is %s and has no live transaction.", p.Status)
}

func (c *Chain) advance(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) (Delivery, error) {
	activity.RecordHeartbeat(ctx, string(a.Status))
	if a.Status == exchange.TxSigned {
		if err := c.offer(ctx, a); err != nil {
			return Delivery{}, err
		}
	}
	facts, err := c.look(ctx, p, a)
	if err != nil {
		return Delivery{}, err
	}
	activity.RecordHeartbeat(ctx, string(facts.Location.Stage))
	l := facts.Location
	switch chain.Judge(facts) {
	case chain.VerdictSucceeded:
		_, err := c.Store.RecordFinal(ctx, a.ID, true, l.Block.Number, l.Block.ID, l.Fee, l.Code)
		return Delivery{End: DeliveryCompleted, TxID: a.TxID, Code: l.Code}, err
	case chain.VerdictFailed:
		_, err := c.Store.RecordFinal(ctx, a.ID, false, l.Block.Number, l.Block.ID, l.Fee, l.Code)
		return Delivery{End: DeliveryFailed, TxID: a.TxID, Code: l.Code}, err
	case chain.VerdictRebuild:
		return Delivery{End: DeliveryExpired, TxID: a.TxID}, c.Store.RecordExpired(ctx, a.ID, "absent from every node after final block "+l.Head.Final.ID)
	case chain.VerdictWait:
		return Delivery{}, c.included(ctx, a, l)
	case chain.VerdictBroadcast: // offered again below
	}
	return Delivery{}, c.outside(ctx, a, l)
}

// look finds the transaction. Where it is missing after the final chain has passed its life, a second
// look makes sure that the first one did not fall between two nodes.
func (c *Chain) look(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) (chain.Facts, error) {
	facts := chain.Facts{Attempt: a, Expected: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}}
	var err error
	if facts.Location, err = c.Client.Locate(ctx, a.TxID); err != nil {
		return chain.Facts{}, err
	}
	if facts.Location.Stage != chain.StageAbsent || !chain.Outlived(a, facts.Location.Head.Final) {
		return facts, nil
	}
	again, err := c.Client.Locate(ctx, a.TxID)
	if err != nil {
		return chain.Facts{}, err
	}
	facts.AbsentTwice = again.Stage == chain.StageAbsent && chain.Outlived(a, again.Head.Final)
	facts.Location = again
	return facts, nil
}

// offer broadcasts the stored bytes and writes down what the node said. No answer is as good as any:
// the bytes may have arrived.
func (c *Chain) offer(ctx context.Context, a exchange.ChainAttempt) error {
	b, err := c.Client.Broadcast(ctx, a.Raw)
	if err != nil {
		if chainReason(err) != chain.ReasonUnavailable {
			return err
		}
		b = chain.Broadcast{State: chain.BroadcastUnknown, Code: string(chain.ReasonUnavailable)}
	}
	accepted := b.State == chain.BroadcastAccepted || b.State == chain.BroadcastKnown
	_, err = c.Store.RecordBroadcast(ctx, a.ID, b.Code, accepted)
	return err
}

func (c *Chain) included(ctx context.Context, a exchange.ChainAttempt, l chain.Location) error {
	if a.Status != exchange.TxIncluded || a.BlockID != l.Block.ID {
		if err := c.Store.RecordIncluded(ctx, a.ID, l.Block.Number, l.Block.ID); err != nil {
			return err
		}
	}
	return NotYet("The transaction is in a block that is not final yet.", c.Poll)
}

// outside handles a transaction that is in no block: it came out of one by a reorganisation, or it
// never was in one and is offered again.
func (c *Chain) outside(ctx context.Context, a exchange.ChainAttempt, l chain.Location) error {
	if a.Status == exchange.TxIncluded {
		if err := c.Store.RecordVanished(ctx, a.ID); err != nil {
			return err
		}
	}
	if l.Stage == chain.StageAbsent && a.Status != exchange.TxSigned {
		if err := c.offer(ctx, a); err != nil {
			return err
		}
	}
	return NotYet("The transaction is in no block yet.", c.Poll)
}

// chainReason finds the reason of a chain error, "" for every other error.
func chainReason(err error) chain.Reason {
	if e, ok := errors.AsType[*chain.Error](err); ok {
		return e.Reason
	}
	return ""
}

package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ChainStore stores the progress of transactions.
type ChainStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	LiveAttempts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ChainAttempt, error)
	Frozen(ctx context.Context) (bool, error)
	Sighting(ctx context.Context, n exchange.Network, txIDs []string) (exchange.TxSighting, error)
	AttemptAt(ctx context.Context, walletID uuid.UUID, nonce uint64) (exchange.ChainAttempt, bool, error)
	ApproveTopUp(ctx context.Context, paymentID uuid.UUID, amount money.Amount, limit int) (exchange.ChainPayment, error)
	RecordBroadcast(ctx context.Context, attemptID uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error)
	RecordIncluded(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string) (exchange.ChainPayment, error)
	RecordVanished(ctx context.Context, attemptID uuid.UUID) (exchange.ChainPayment, error)
	RecordExpired(ctx context.Context, attemptID uuid.UUID, evidence string) (exchange.ChainPayment, error)
	RecordFinal(ctx context.Context, attemptID uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error)
	RecordOutOfGas(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string, fee money.Amount, code string, limit int) (exchange.ChainPayment, error)
	RecordGasArrival(ctx context.Context, attemptID uuid.UUID, blockID string) error
}

// ChainReader is the part of a network's driver that needs no key. On a sequenced network it is a chain.Sequenced too.
type ChainReader interface {
	chain.Locator
	Network() exchange.Network
	Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error)
}

// Chain delivers signed transactions on one network.
type Chain struct {
	Store  ChainStore
	Client ChainReader
	Poll   time.Duration // between two checks: the network's block time
	// StuckTimeout is how long the transaction with the next nonce may wait before it is replaced with a higher fee, on a
	// sequenced network.
	StuckTimeout time.Duration
	Gas          GasPolicy
	Now          func() time.Time
	Proposals    ProposalStore // nil where no account of several owners pays
}

// maxFinalityWait bounds the wait for finality between two checks, in case the network speeds up or a reorganisation drops
// the block.
const maxFinalityWait = 5 * time.Minute

// The ends of a delivery.
const (
	DeliveryCompleted = "completed" // final, with the expected transfer
	DeliveryFailed    = "failed"    // final, without it: the payment is parked
	DeliveryExpired   = "expired"   // proven impossible, or final without having moved anything for lack of gas: the payment may be signed again
	DeliveryStuck     = "stuck"     // next in sequence for too long: replace it with a higher fee, and keep delivering it in any case
	DeliveryArrived   = "arrived"   // a top-up is in a block: the payment that needs the gas may be signed; keep delivering it in any case
)

// maxOutOfGas is how many transactions of a payment may fail for lack of gas before it is parked. Each costs at most its fee limit.
const maxOutOfGas = 3

// askEvery is how often a node is asked about a transaction that the deposit watch has not read, although it keeps up with the network: in
// one of so many checks. The watch reads movements, and so no transaction that failed, and offers none again.
const askEvery = 5

// DeliverInput names a payment to deliver.
type DeliverInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	// BumpAfter is the time from which DeliveryStuck may be returned; zero for never.
	BumpAfter time.Time `json:"bump_after,omitzero"`
	// Arrival lets DeliveryArrived be returned, once for each block that has the transaction: not for Arrived, the id of the last
	// one that was.
	Arrival bool   `json:"arrival,omitempty"`
	Arrived string `json:"arrived,omitempty"`
}

// Delivery is how the delivery of a transaction ended.
type Delivery struct {
	End  string `json:"end"`
	TxID string `json:"tx_id,omitempty"`
	N    int    `json:"n,omitempty"`    // of the attempt, when it is stuck
	Code string `json:"code,omitempty"` // the network's own code
	// BlockID is the block in which a top-up arrived.
	BlockID string `json:"block_id,omitempty"`
}

// DeliverPayment advances the payment's pending transaction and returns when it has ended; until then it returns NotYet. It
// broadcasts the same bytes as often as needed; chain.Judge decides from facts alone what may be done with them. Of several
// transactions with one nonce, the one that is included in a block counts. Nodes are asked when the deposit watch, which reads each block
// anyway, leaves something to ask.
func (c *Chain) DeliverPayment(ctx context.Context, in DeliverInput) (Delivery, error) {
	ctx, stop := heartbeat(ctx) // a check usually ends before the first heartbeat, which would cost the server a write
	defer stop()
	payment, err := c.Store.ChainPayment(ctx, in.PaymentID)
	if err != nil {
		return Delivery{}, Failure(ctx, err)
	}
	live, err := c.Store.LiveAttempts(ctx, in.PaymentID)
	if err != nil {
		return Delivery{}, Failure(ctx, err)
	}
	if payment.Purpose == exchange.ForProposal {
		d, err := c.deliverProposal(ctx, payment, leaderFirst(live), in)
		return d, Failure(ctx, err)
	}
	if len(live) == 0 {
		d, err := ended(payment)
		return d, Failure(ctx, err)
	}
	d, err := c.advance(ctx, payment, leaderFirst(live), in)
	return d, Failure(ctx, err)
}

// leaderFirst puts the transaction that is broadcast or in a block before the others with the same nonce.
func leaderFirst(live []exchange.ChainAttempt) []exchange.ChainAttempt {
	for i, a := range live {
		if a.Leads() {
			live[0], live[i] = live[i], live[0]
			break
		}
	}
	return live
}

// ended returns the delivery of a payment without a pending transaction: an earlier step ended it, but its response was
// lost.
func ended(p exchange.ChainPayment) (Delivery, error) {
	switch p.Status {
	case exchange.ChainCompleted:
		return Delivery{End: DeliveryCompleted, TxID: p.TxID}, nil
	case exchange.ChainParked:
		return Delivery{End: DeliveryFailed, Code: p.Detail}, nil
	case exchange.ChainApproved:
		return Delivery{End: DeliveryExpired}, nil
	case exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded, exchange.ChainCancelled: // these have a pending transaction, or never will
	}
	return Delivery{}, exchange.Errorf(exchange.CodeStateConflict, "The chain payment is %s and has no pending transaction.", p.Status)
}

func (c *Chain) advance(ctx context.Context, p exchange.ChainPayment, live []exchange.ChainAttempt, in DeliverInput) (Delivery, error) {
	leader := live[0]
	if leader.Status == exchange.TxSigned {
		if err := c.offerUnlessFrozen(ctx, leader); err != nil {
			return Delivery{}, err
		}
	}
	if err := c.hear(ctx, p, live, in); err != nil {
		return Delivery{}, err
	}
	var first chain.Facts // about the leader
	dead := 0
	for i, a := range live {
		facts, err := c.look(ctx, p, a)
		if err != nil {
			return Delivery{}, err
		}
		if i == 0 {
			first = facts
		}
		l := facts.Location
		switch chain.Judge(facts) {
		case chain.VerdictSucceeded:
			_, err := c.Store.RecordFinal(ctx, a.ID, true, l.Block.Number, l.Block.ID, l.Fee, l.Code)
			return Delivery{End: DeliveryCompleted, TxID: a.TxID, Code: l.Code}, err
		case chain.VerdictFailed:
			return c.failed(ctx, a, l)
		case chain.VerdictWait:
			return c.included(ctx, a, facts, in)
		case chain.VerdictRebuild:
			dead++
		case chain.VerdictBroadcast: // broadcast again below
		}
	}
	if dead == len(live) {
		_, err := c.Store.RecordExpired(ctx, leader.ID, "absent from every node after final block "+first.Location.Head.Final.ID)
		return Delivery{End: DeliveryExpired, TxID: leader.TxID}, err
	}
	return c.outside(ctx, leader, first, in)
}

// hear learns from the deposit watch whether a node has to be asked already, and returns NotYet if not. While the watch is silent or
// behind, each check asks; and so it does for a payment of nothing, whose transaction has no movement for the watch to read.
func (c *Chain) hear(ctx context.Context, p exchange.ChainPayment, live []exchange.ChainAttempt, in DeliverInput) error {
	if p.Amount.IsZero() {
		return nil
	}
	ids := make([]string, len(live))
	for i, a := range live {
		ids[i] = a.TxID
	}
	s, err := c.Store.Sighting(ctx, c.Client.Network(), ids)
	if err != nil || !s.Current || s.Settled {
		return err
	}
	i := slices.Index(ids, s.TxID)
	switch {
	case i < 0 && (live[0].Status == exchange.TxIncluded || activity.GetInfo(ctx).Attempt%askEvery == 0):
		return nil // its block was undone, or it may be lost
	case i < 0:
		return NotYet("The deposit watch has read the transaction in no block yet.", c.Poll)
	case in.Arrival && in.Arrived != s.Block.ID:
		return nil // whoever waits for the gas waits for this answer
	}
	if !live[i].In(s.Block.ID) {
		if _, err := c.Store.RecordIncluded(ctx, live[i].ID, s.Block.Number, s.Block.ID); err != nil {
			return err
		}
	}
	head := chain.Head{Final: chain.Block{Number: s.Final.Number, Time: s.Final.Time}, Latest: chain.Block{Number: s.Newest.Number, Time: s.Newest.Time}}
	if wait := c.untilFinal(chain.Location{Block: chain.Block{Number: s.Block.Number}, Head: head}); wait > 2*c.Poll {
		return NotYet("The transaction is in a block that is not final yet.", wait)
	}
	return nil // the node may know before the watch that it is final
}

// look gathers the facts about one transaction.
func (c *Chain) look(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) (chain.Facts, error) {
	return chain.Inquire(ctx, c.Client, a, chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount})
}

// offerUnlessFrozen broadcasts bytes that no node has seen yet, except in a freeze.
func (c *Chain) offerUnlessFrozen(ctx context.Context, a exchange.ChainAttempt) error {
	frozen, err := c.Store.Frozen(ctx)
	if err != nil || frozen {
		return err
	}
	return c.offer(ctx, a)
}

// offer broadcasts the stored bytes and records the node's answer. Without an answer the state is unknown: the bytes may have
// arrived.
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

// failed records a final transaction that did not make its payment. One that lacked gas moved nothing: the network undid it, as
// when a reorganisation took the top-up away after the payment was signed.
func (c *Chain) failed(ctx context.Context, a exchange.ChainAttempt, l chain.Location) (Delivery, error) {
	d := Delivery{End: DeliveryFailed, TxID: a.TxID, Code: l.Code}
	if !l.OutOfGas {
		_, err := c.Store.RecordFinal(ctx, a.ID, false, l.Block.Number, l.Block.ID, l.Fee, l.Code)
		return d, err
	}
	p, err := c.Store.RecordOutOfGas(ctx, a.ID, l.Block.Number, l.Block.ID, l.Fee, l.Code, maxOutOfGas)
	if p.Status == exchange.ChainApproved {
		d.End = DeliveryExpired
	}
	return d, err
}

// included waits for finality, for the blocks that are still missing at the network's block time. A top-up that made its transfer
// is reported before.
func (c *Chain) included(ctx context.Context, a exchange.ChainAttempt, f chain.Facts, in DeliverInput) (Delivery, error) {
	l := f.Location
	if !a.In(l.Block.ID) {
		if _, err := c.Store.RecordIncluded(ctx, a.ID, l.Block.Number, l.Block.ID); err != nil {
			return Delivery{}, err
		}
	}
	if in.Arrival && in.Arrived != l.Block.ID && f.Pays() {
		err := c.Store.RecordGasArrival(ctx, a.ID, l.Block.ID)
		return Delivery{End: DeliveryArrived, TxID: a.TxID, BlockID: l.Block.ID}, err
	}
	return Delivery{}, NotYet("The transaction is in a block that is not final yet.", c.untilFinal(l))
}

// untilFinal estimates the time to finality: one block time for each missing block.
func (c *Chain) untilFinal(l chain.Location) time.Duration {
	wait, each := c.Poll, c.blockTime(l.Head)
	for block := l.Head.Final.Number + 1; block < l.Block.Number && wait < maxFinalityWait; block++ {
		wait += each
	}
	return min(wait, max(c.Poll, maxFinalityWait))
}

// blockTime estimates the block time from the newest blocks. It is never longer than the pause between two checks, which on
// a network with short slots is several blocks.
func (c *Chain) blockTime(h chain.Head) time.Duration {
	span := h.Latest.Time.Sub(h.Final.Time)
	if h.Latest.Number <= h.Final.Number || span <= 0 {
		return max(c.Poll, time.Millisecond)
	}
	blocks := time.Duration(h.Latest.Number - h.Final.Number) //nolint:gosec // G115: blocks that are not final yet are few
	return max(min(c.Poll, span/blocks), time.Millisecond)
}

// outside handles a transaction that is in no block: a reorganisation removed it, or it was never included and is broadcast
// again.
func (c *Chain) outside(ctx context.Context, a exchange.ChainAttempt, f chain.Facts, in DeliverInput) (Delivery, error) {
	if a.Status == exchange.TxIncluded {
		if _, err := c.Store.RecordVanished(ctx, a.ID); err != nil {
			return Delivery{}, err
		}
	}
	if f.Location.Stage == chain.StageAbsent && a.Status != exchange.TxSigned && !a.Adopted {
		if err := c.offer(ctx, a); err != nil {
			return Delivery{}, err
		}
	}
	if a.NonceWallet != uuid.Nil {
		if f.Nonces.Latest < a.Nonce {
			return Delivery{}, c.behind(ctx, a, f.Nonces.Latest)
		}
		if c.stuck(a, f, in) {
			return Delivery{End: DeliveryStuck, TxID: a.TxID, N: a.N}, nil
		}
	}
	return Delivery{}, NotYet("The transaction is in no block yet.", c.Poll)
}

// stuck reports whether a transaction with the next nonce has waited too long for a block. A higher fee helps only the first
// of a sequence; those behind it wait for the first.
func (c *Chain) stuck(a exchange.ChainAttempt, f chain.Facts, in DeliverInput) bool {
	now := c.Now()
	return a.Status == exchange.TxBroadcast && f.Nonces.Latest == a.Nonce && !in.BumpAfter.IsZero() && !now.Before(in.BumpAfter) &&
		now.Sub(a.CreatedAt) >= c.StuckTimeout
}

// behind waits for a lower nonce. It also broadcasts the transaction with that nonce, of whichever payment, so that the
// sequence goes on even if that delivery has stopped. Only that delivery records the node's answer.
func (c *Chain) behind(ctx context.Context, a exchange.ChainAttempt, turn uint64) error {
	before, found, err := c.Store.AttemptAt(ctx, a.NonceWallet, turn)
	if err != nil {
		return err
	}
	frozen := false
	if found && before.Status == exchange.TxSigned {
		if frozen, err = c.Store.Frozen(ctx); err != nil {
			return err
		}
	}
	if found && !frozen {
		if _, err := c.Client.Broadcast(ctx, before.Raw); err != nil && chainReason(err) != chain.ReasonUnavailable {
			return err
		}
	}
	return NotYet("The transaction waits for one with a lower nonce.", c.Poll)
}

// chainReason returns the reason of a chain error, "" for every other error.
func chainReason(err error) chain.Reason {
	if e, ok := errors.AsType[*chain.Error](err); ok {
		return e.Reason
	}
	return ""
}

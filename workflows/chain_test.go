package workflows_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// outcome is the outcome of one signed transaction on the network.
type outcome struct {
	refused chain.Reason // it can't even be built
	trouble error        // the signer fails
	dropped bool         // accepted and never included
	reorg   bool         // its first block is undone; it is included again after another broadcast
	undone  bool         // its first block is undone, and no other one takes it
	reverts bool
	starved bool          // it fails for lack of gas
	astray  bool          // it is carried out, and moves something else
	slow    time.Duration // until its block
}

const (
	blockTime   = 3 * time.Second
	finalAfter  = 6 * time.Second
	txLife      = time.Minute
	reorgAfter  = 4 * time.Second
	networkName = exchange.Tron
	watchedTo   = 100 // the block up to which the watch has read
)

// entry is a signed transaction.
type entry struct {
	attempt  exchange.ChainAttempt
	payment  exchange.ChainPayment
	outcome  outcome
	included time.Time
	undone   bool
}

// network is a blockchain with a book of its own.
type network struct {
	mu     sync.Mutex
	on     exchange.Network
	now    func() time.Time
	script func(n int) outcome // of the n-th transaction, from 1
	fault  func(call string) error
	lost   func(call string) error
	store  signerStore
	cold   bool // the signer is refused the key
	built  int
	signed map[string]*entry // what the signer made
	txs    map[string]*entry // what was broadcast
}

// signerStore is what the signer needs of the database.
type signerStore interface {
	LiveAttempt(ctx context.Context, payment uuid.UUID) (exchange.ChainAttempt, bool, error)
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error)
}

// SignPayment is the signer: it stores what it signs before it returns it.
func (n *network) SignPayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	if a, ok, err := n.store.LiveAttempt(ctx, id); err != nil || ok {
		return a, err
	}
	p, err := n.store.ChainPayment(ctx, id)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if p.Status != exchange.ChainApproved {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeStateConflict, "the payment is %s", p.Status)
	}
	if n.cold && p.Purpose == exchange.ForTransfer {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeForbidden, "the wallet is cold")
	}
	return n.sign(ctx, p)
}

// sign makes the next transaction of a payment.
func (n *network) sign(ctx context.Context, p exchange.ChainPayment) (exchange.ChainAttempt, error) {
	a, f := n.build(p)
	if f.trouble != nil {
		return exchange.ChainAttempt{}, f.trouble
	}
	if f.refused != "" {
		return exchange.ChainAttempt{}, chain.Errorf(f.refused, "the node says so")
	}
	return n.store.SaveSignedAttempt(ctx, a)
}

// build makes the bytes of the next transaction of a payment.
func (n *network) build(p exchange.ChainPayment) (exchange.ChainAttempt, outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.built++
	f := n.script(n.built)
	txID := fmt.Sprintf("%064x", n.built)
	a := exchange.ChainAttempt{
		ID: uuid.NewSHA1(p.ID, []byte(txID)), PaymentID: p.ID, Network: n.on, TxID: txID, Raw: []byte(txID),
		FeeLimit: money.Must(n.on.NativeCoin(), "30"), ExpiresAt: n.now().Add(txLife), Status: exchange.TxSigned, CreatedAt: n.now(),
	}
	n.signed[txID] = &entry{attempt: a, payment: p, outcome: f}
	return a, f
}

// BumpPaymentFee is never called: the network has no nonces.
func (n *network) BumpPaymentFee(context.Context, uuid.UUID, int) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeInternal, "nothing can be replaced with a higher fee here")
}

func (n *network) Network() exchange.Network { return n.on }

func (n *network) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault != nil && n.fault("broadcast") != nil {
		return chain.Broadcast{}, chain.Errorf(chain.ReasonUnavailable, "no node")
	}
	e := n.txs[string(raw)]
	if e == nil {
		e = n.signed[string(raw)]
		n.txs[string(raw)] = e
	}
	if n.now().After(e.attempt.ExpiresAt) {
		return chain.Broadcast{State: chain.BroadcastRejected, Code: "TRANSACTION_EXPIRATION_ERROR"}, nil
	}
	if e.included.IsZero() && !e.outcome.dropped {
		e.included = n.now().Add(max(e.outcome.slow, blockTime))
	}
	if n.lost != nil && n.lost("broadcast") != nil {
		return chain.Broadcast{}, chain.Errorf(chain.ReasonUnavailable, "no answer")
	}
	return chain.Broadcast{State: chain.BroadcastAccepted, Code: "SUCCESS"}, nil
}

func (n *network) Locate(_ context.Context, txID string) (chain.Location, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault != nil && n.fault("locate") != nil {
		return chain.Location{}, chain.Errorf(chain.ReasonUnavailable, "no node")
	}
	now := n.now()
	final := chain.Block{Number: 100, ID: "final", Time: now.Add(-finalAfter)}
	l := chain.Location{Stage: chain.StageAbsent, Head: chain.Head{Latest: chain.Block{Time: now}, Final: final}}
	e := n.txs[txID]
	if e == nil {
		return l, nil
	}
	if (e.outcome.reorg || e.outcome.undone) && !e.undone && !e.included.IsZero() && now.Sub(e.included) >= reorgAfter {
		e.undone, e.included = true, time.Time{} // the block is gone; it must be broadcast again
		e.outcome.dropped = e.outcome.undone
	}
	if e.included.IsZero() || now.Before(e.included) {
		if !e.included.IsZero() {
			l.Stage = chain.StagePending
		}
		return l, nil
	}
	l.Stage = chain.StageIncluded
	if now.Sub(e.included) >= finalAfter {
		l.Stage = chain.StageFinal
	}
	l.Block = chain.Block{Number: 100, ID: fmt.Sprintf("block-%v-%v", txID, e.undone), Time: e.included}
	l.OK, l.Code, l.Fee = !e.outcome.reverts, "SUCCESS", money.Must(n.on.NativeCoin(), "0.01")
	if e.outcome.reverts {
		l.Code = "REVERT"
		return l, nil
	}
	if e.outcome.starved {
		l.OK, l.OutOfGas, l.Code = false, true, "OUT_OF_ENERGY"
		return l, nil
	}
	if e.outcome.astray {
		return l, nil
	}
	l.Transfers = []chain.Movement{{TxID: txID, From: e.payment.FromAddress, To: e.payment.ToAddress, Amount: e.payment.Amount}}
	return l, nil
}

// paid counts the transfers that the network holds for an order, included or final.
func (n *network) paid(order uuid.UUID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, e := range n.txs {
		if e.payment.ObjectID == order && !e.included.IsZero() && !e.outcome.reverts && !e.outcome.starved && !e.outcome.astray {
			count++
		}
	}
	return count
}

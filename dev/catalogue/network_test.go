package catalogue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// The network's intervals.
const (
	blockTime  = 3 * time.Second
	finalAfter = 6 * time.Second
	txLife     = time.Minute
	watchedTo  = 100 // the block up to which the watch has read
)

// network is a blockchain without faults, with its own record of payments. The catalogue tests the operator's failures;
// other packages test those of chains.
type network struct {
	w   *harness
	mu  sync.Mutex
	txs map[string]*carried
}

// carried is a transaction that the network accepted.
type carried struct {
	payment  exchange.ChainPayment
	included time.Time
}

func newNetwork(w *harness) *network {
	w.t.Helper()
	if _, err := w.store.StartDeposits(w.t.Context(), exchange.Tron, exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.now()}); err != nil {
		w.t.Fatal(err)
	}
	return &network{w: w, txs: map[string]*carried{}}
}

// watched is a store whose watch over the chain is up to date at every signature.
type watched struct {
	*store.Store
	chain *network
}

func (s watched) SigningHold(ctx context.Context, payment uuid.UUID) (exchange.SigningHold, error) {
	if err := s.WatchAlive(ctx, exchange.Tron); err != nil {
		return exchange.HoldWatch, err
	}
	look := exchange.WatchLook{Network: exchange.Tron, Final: exchange.ChainBlock{Number: watchedTo, ID: "start", Time: s.chain.w.now()}}
	if err := s.RecordLook(ctx, look); err != nil {
		return exchange.HoldWatch, err
	}
	return s.Store.SigningHold(ctx, payment)
}

// SignPayment is the signer: it stores the signed bytes before it returns them.
func (n *network) SignPayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	if a, alive, err := n.w.store.LiveAttempt(ctx, id); err != nil || alive {
		return a, err
	}
	p, err := n.w.store.ChainPayment(ctx, id)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if p.Status != exchange.ChainApproved {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeStateConflict, "the payment is %s", p.Status)
	}
	attempt := uuid.Must(uuid.NewV7())
	txID := fmt.Sprintf("%x%x", attempt[:], attempt[:])
	return n.w.store.SaveSignedAttempt(ctx, exchange.ChainAttempt{
		ID: attempt, PaymentID: id, Network: p.Network, TxID: txID, Raw: []byte(txID), ExpiresAt: n.w.now().Add(txLife),
		FeeLimit: money.Must(money.TRX, "30"),
	})
}

// BumpPaymentFee is never called: the network has no nonces.
func (n *network) BumpPaymentFee(context.Context, uuid.UUID, int) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeInternal, "nothing can be replaced with a higher fee here")
}

// Network implements activities.ChainReader.
func (n *network) Network() exchange.Network { return exchange.Tron }

// Broadcast includes every transaction in the next block.
func (n *network) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.txs[string(raw)] == nil {
		p, err := n.paymentOf(ctx, string(raw))
		if err != nil {
			return chain.Broadcast{}, err
		}
		n.txs[string(raw)] = &carried{payment: p, included: n.w.now().Add(blockTime)}
	}
	return chain.Broadcast{State: chain.BroadcastAccepted, Code: "SUCCESS"}, nil
}

// paymentOf returns the payment of signed bytes.
func (n *network) paymentOf(ctx context.Context, txID string) (exchange.ChainPayment, error) {
	var id uuid.UUID
	if err := n.w.db().QueryRowContext(ctx, `SELECT payment_id FROM chain_attempts WHERE tx_id = $1`, txID).Scan(&id); err != nil {
		return exchange.ChainPayment{}, err
	}
	return n.w.store.ChainPayment(ctx, id)
}

// Locate implements chain.Locator.
func (n *network) Locate(_ context.Context, txID string) (chain.Location, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.w.now()
	l := chain.Location{Stage: chain.StageAbsent, Head: chain.Head{
		Latest: chain.Block{Number: watchedTo + 2, ID: "latest", Time: now}, Final: chain.Block{Number: watchedTo, ID: "final", Time: now.Add(-finalAfter)},
	}}
	tx := n.txs[txID]
	switch {
	case tx == nil:
		return l, nil
	case now.Before(tx.included):
		l.Stage = chain.StagePending
		return l, nil
	case now.Sub(tx.included) >= finalAfter:
		l.Stage = chain.StageFinal
	default:
		l.Stage = chain.StageIncluded
	}
	l.Block = chain.Block{Number: watchedTo, ID: "block of " + txID, Time: tx.included}
	l.OK, l.Code, l.Fee = true, "SUCCESS", money.Must(money.TRX, "13")
	l.Transfers = []chain.Movement{{TxID: txID, From: tx.payment.FromAddress, To: tx.payment.ToAddress, Amount: tx.payment.Amount}}
	return l, nil
}

// paid returns the network's transactions for an object.
func (n *network) paid(object uuid.UUID) []exchange.ChainPayment {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []exchange.ChainPayment
	for _, tx := range n.txs {
		if tx.payment.ObjectID == object {
			all = append(all, tx.payment)
		}
	}
	return all
}

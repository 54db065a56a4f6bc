package workflows_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// faultyStore is the store on a database of the test's own, at the clock of the flow, with faults before and after the
// effect of each call.
type faultyStore struct {
	*store.Store
	mu        sync.Mutex
	network   exchange.Network
	now       func() time.Time
	fault     func(call string) error     // called before the effect
	lost      func(call string) error     // called after it
	hold      func() exchange.SigningHold // replaces the store's own answer unless it is nil
	reads     bool                        // the watch reads a block when it looks
	watch     func()                      // has the watch read on, as it does every few seconds
	breaker   *exchange.Breaker           // likewise
	waited    int                         // how often a payment was shown to wait for the watch
	wasParked []string                    // flows with the reasons that they were listed with
	noted     []exchange.Code             // decisions without proof
}

// around makes one call of the store, with its faults.
func (s *faultyStore) around(call string, do func() error) error {
	trouble := func(f func(string) error) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(call)
	}
	if err := trouble(s.fault); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return trouble(s.lost)
}

// result is around for a call with a result.
func result[T any](s *faultyStore, call string, do func() (T, error)) (out T, err error) {
	err = s.around(call, func() (err error) { out, err = do(); return err })
	return out, err
}

// results is around for a call with two results.
func results[A, B any](s *faultyStore, call string, do func() (A, B, error)) (a A, b B, err error) {
	err = s.around(call, func() (err error) { a, b, err = do(); return err })
	return a, b, err
}

// SigningHold has the watch over the chain look at it first, as it does every few seconds.
func (s *faultyStore) SigningHold(ctx context.Context, payment uuid.UUID) (exchange.SigningHold, error) {
	return result(s, "SigningHold", func() (exchange.SigningHold, error) {
		if err := s.WatchAlive(ctx, s.network); err != nil {
			return exchange.HoldWatch, err
		}
		if err := s.look(ctx); err != nil {
			return exchange.HoldWatch, err
		}
		if _, alive, err := s.Store.LiveAttempt(ctx, payment); err != nil || alive || s.hold == nil {
			if err != nil {
				return exchange.HoldWatch, err
			}
			return s.Store.SigningHold(ctx, payment)
		}
		return s.hold(), nil
	})
}

// Sighting knows nothing: the watch of these tests reads no block that has a transaction.
func (s *faultyStore) Sighting(context.Context, exchange.Network, []string) (exchange.TxSighting, error) {
	return exchange.TxSighting{}, nil
}

// look records a look of the watch at the chain, and the next block if the watch reads.
func (s *faultyStore) look(ctx context.Context) error {
	final := exchange.ChainBlock{Number: watchedTo, ID: "start", Time: s.now()}
	if s.reads {
		c, _, err := s.DepositCursor(ctx, s.network)
		if err != nil {
			return err
		}
		n := c.Final.Number + 1
		final = exchange.ChainBlock{Number: n, ID: fmt.Sprintf("read-%d", n), Parent: c.Final.ID, Time: s.now().Add(-finalAfter)}
		if _, err := s.RecordFinalBlock(ctx, exchange.BlockScan{Network: s.network, Block: final}); err != nil {
			return err
		}
	}
	return s.RecordLook(ctx, exchange.WatchLook{Network: s.network, Final: final})
}

func (s *faultyStore) OpenOrder(ctx context.Context, a exchange.Asked) (exchange.Order, error) {
	return result(s, "OpenOrder", func() (exchange.Order, error) { return s.Store.OpenOrder(ctx, a) })
}

func (s *faultyStore) OrderByID(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return result(s, "OrderByID", func() (exchange.Order, error) { return s.Store.OrderByID(ctx, id) })
}

func (s *faultyStore) CloseOrder(ctx context.Context, id uuid.UUID, to exchange.OrderStatus, detail string, a exchange.Asked) (exchange.Order, error) {
	return result(s, "CloseOrder", func() (exchange.Order, error) { return s.Store.CloseOrder(ctx, id, to, detail, a) })
}

func (s *faultyStore) Collectable(ctx context.Context, of exchange.MomoObject) (exchange.Collectable, error) {
	return result(s, "Collectable", func() (exchange.Collectable, error) { return s.Store.Collectable(ctx, of) })
}

func (s *faultyStore) SetCollectionDetail(ctx context.Context, of exchange.MomoObject, detail string) error {
	return s.around("SetCollectionDetail", func() error { return s.Store.SetCollectionDetail(ctx, of, detail) })
}

func (s *faultyStore) SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error {
	return s.around("SetOrderDetail", func() error { return s.Store.SetOrderDetail(ctx, id, detail) })
}

func (s *faultyStore) CompleteOrder(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return result(s, "CompleteOrder", func() (exchange.Order, error) { return s.Store.CompleteOrder(ctx, id) })
}

func (s *faultyStore) RefundOrder(ctx context.Context, id uuid.UUID, reason string, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	s.watch()
	return results(s, "RefundOrder", func() (exchange.Order, exchange.Refund, error) { return s.Store.RefundOrder(ctx, id, reason, by) })
}

func (s *faultyStore) GiveUpSwap(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Swap, error) {
	s.watch()
	return result(s, "GiveUpSwap", func() (exchange.Swap, error) { return s.Store.GiveUpSwap(ctx, id, by) })
}

func (s *faultyStore) UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error) {
	return result(s, "UseCommand", func() (exchange.OperatorCommand, error) { return s.Store.UseCommand(ctx, id, objectType, objectID) })
}

func (s *faultyStore) SealAudit(ctx context.Context) (int, error) {
	return result(s, "SealAudit", func() (int, error) { return s.Store.SealAudit(ctx) })
}

func (s *faultyStore) KeepMonths(ctx context.Context, kept int) (exchange.Months, error) {
	return result(s, "KeepMonths", func() (exchange.Months, error) { return s.Store.KeepMonths(ctx, kept) })
}

func (s *faultyStore) Prune(ctx context.Context, limit int) (exchange.Pruned, error) {
	return result(s, "Prune", func() (exchange.Pruned, error) { return s.Store.Prune(ctx, limit) })
}

func (s *faultyStore) KeepParked(ctx context.Context, p exchange.ParkedFlow) error {
	s.mu.Lock()
	s.wasParked = append(s.wasParked, p.WorkflowID+" "+p.Reason)
	s.mu.Unlock()
	return s.around("KeepParked", func() error { return s.Store.KeepParked(ctx, p) })
}

func (s *faultyStore) BeginCollection(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	return results(s, "BeginCollection", func() (exchange.PaymentAttempt, bool, error) { return s.Store.BeginCollection(ctx, of, a) })
}

func (s *faultyStore) Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	return result(s, "Attempt", func() (exchange.PaymentAttempt, error) { return s.Store.Attempt(ctx, id) })
}

func (s *faultyStore) RecordSubmission(ctx context.Context, id uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	return result(s, "RecordSubmission", func() (exchange.PaymentAttempt, error) { return s.Store.RecordSubmission(ctx, id, sub) })
}

func (s *faultyStore) RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return result(s, "RecordFailure", func() (exchange.PaymentAttempt, error) { return s.Store.RecordFailure(ctx, id, o) })
}

func (s *faultyStore) Callbacks(ctx context.Context, id uuid.UUID) ([]exchange.MomoCallback, error) {
	return result(s, "Callbacks", func() ([]exchange.MomoCallback, error) { return s.Store.Callbacks(ctx, id) })
}

func (s *faultyStore) SavePayoutQuery(ctx context.Context, id uuid.UUID, ticket string) error {
	return s.around("SavePayoutQuery", func() error { return s.Store.SavePayoutQuery(ctx, id, ticket) })
}

func (s *faultyStore) PayoutQueries(ctx context.Context, id uuid.UUID) ([]string, error) {
	return result(s, "PayoutQueries", func() ([]string, error) { return s.Store.PayoutQueries(ctx, id) })
}

func (s *faultyStore) SaveReceipt(ctx context.Context, o exchange.Observation) error {
	return s.around("SaveReceipt", func() error { return s.Store.SaveReceipt(ctx, o) })
}

func (s *faultyStore) ReceiptsFor(ctx context.Context, reference string) ([]exchange.Observation, error) {
	return result(s, "ReceiptsFor", func() ([]exchange.Observation, error) { return s.Store.ReceiptsFor(ctx, reference) })
}

func (s *faultyStore) AcceptPayment(ctx context.Context, id uuid.UUID, o exchange.Observation, now time.Time) (exchange.PaymentOutcome, error) {
	return result(s, "AcceptPayment", func() (exchange.PaymentOutcome, error) { return s.Store.AcceptPayment(ctx, id, o, now) })
}

func (s *faultyStore) ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	return result(s, "ChainPayment", func() (exchange.ChainPayment, error) { return s.Store.ChainPayment(ctx, id) })
}

func (s *faultyStore) ChainPaymentOf(ctx context.Context, purpose exchange.ChainPurpose, object uuid.UUID) (exchange.ChainPayment, error) {
	return result(s, "ChainPaymentOf", func() (exchange.ChainPayment, error) { return s.Store.ChainPaymentOf(ctx, purpose, object) })
}

func (s *faultyStore) RetryChainPayment(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	return result(s, "RetryChainPayment", func() (exchange.ChainPayment, error) { return s.Store.RetryChainPayment(ctx, id, by) })
}

func (s *faultyStore) ParkChainPayment(ctx context.Context, id uuid.UUID, detail string) (exchange.ChainPayment, error) {
	return result(s, "ParkChainPayment", func() (exchange.ChainPayment, error) { return s.Store.ParkChainPayment(ctx, id, detail) })
}

func (s *faultyStore) AwaitSignature(ctx context.Context, id uuid.UUID, hold exchange.SigningHold) error {
	s.mu.Lock()
	s.waited++
	s.mu.Unlock()
	return s.around("AwaitSignature", func() error { return s.Store.AwaitSignature(ctx, id, hold) })
}

func (s *faultyStore) LiveAttempt(ctx context.Context, payment uuid.UUID) (exchange.ChainAttempt, bool, error) {
	return results(s, "LiveAttempt", func() (exchange.ChainAttempt, bool, error) { return s.Store.LiveAttempt(ctx, payment) })
}

func (s *faultyStore) LiveAttempts(ctx context.Context, payment uuid.UUID) ([]exchange.ChainAttempt, error) {
	return result(s, "LiveAttempts", func() ([]exchange.ChainAttempt, error) { return s.Store.LiveAttempts(ctx, payment) })
}

func (s *faultyStore) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return result(s, "SaveSignedAttempt", func() (exchange.ChainAttempt, error) { return s.Store.SaveSignedAttempt(ctx, a) })
}

func (s *faultyStore) RecordBroadcast(ctx context.Context, id uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error) {
	return result(s, "RecordBroadcast", func() (exchange.ChainPayment, error) { return s.Store.RecordBroadcast(ctx, id, code, accepted) })
}

func (s *faultyStore) RecordIncluded(ctx context.Context, id uuid.UUID, block uint64, blockID string) (exchange.ChainPayment, error) {
	return result(s, "RecordIncluded", func() (exchange.ChainPayment, error) { return s.Store.RecordIncluded(ctx, id, block, blockID) })
}

func (s *faultyStore) RecordVanished(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	return result(s, "RecordVanished", func() (exchange.ChainPayment, error) { return s.Store.RecordVanished(ctx, id) })
}

func (s *faultyStore) RecordExpired(ctx context.Context, id uuid.UUID, evidence string) (exchange.ChainPayment, error) {
	return result(s, "RecordExpired", func() (exchange.ChainPayment, error) { return s.Store.RecordExpired(ctx, id, evidence) })
}

func (s *faultyStore) RecordOutOfGas(ctx context.Context, id uuid.UUID, block uint64, blockID string, fee money.Amount, code string, limit int) (exchange.ChainPayment, error) {
	return result(s, "RecordOutOfGas", func() (exchange.ChainPayment, error) {
		return s.Store.RecordOutOfGas(ctx, id, block, blockID, fee, code, limit)
	})
}

func (s *faultyStore) RecordGasArrival(ctx context.Context, id uuid.UUID, blockID string) error {
	return s.around("RecordGasArrival", func() error { return s.Store.RecordGasArrival(ctx, id, blockID) })
}

func (s *faultyStore) RecordFinal(ctx context.Context, id uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error) {
	return result(s, "RecordFinal", func() (exchange.ChainPayment, error) {
		return s.Store.RecordFinal(ctx, id, ok, block, blockID, fee, code)
	})
}

func (s *faultyStore) Payable(ctx context.Context, of exchange.MomoObject) (exchange.Payable, error) {
	return result(s, "Payable", func() (exchange.Payable, error) { return s.Store.Payable(ctx, of) })
}

func (s *faultyStore) BeginPayout(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return result(s, "BeginPayout", func() (exchange.PaymentAttempt, error) { return s.Store.BeginPayout(ctx, of, a) })
}

func (s *faultyStore) CompletePayout(ctx context.Context, of exchange.MomoObject, attempt uuid.UUID, o exchange.Observation) (exchange.Payable, error) {
	return result(s, "CompletePayout", func() (exchange.Payable, error) { return s.Store.CompletePayout(ctx, of, attempt, o) })
}

func (s *faultyStore) SettlePayout(ctx context.Context, of exchange.MomoObject, attempt uuid.UUID, o exchange.Observation, by exchange.Principal) error {
	return s.around("SettlePayout", func() error { return s.Store.SettlePayout(ctx, of, attempt, o, by) })
}

func (s *faultyStore) FailPayout(ctx context.Context, of exchange.MomoObject, code string) (exchange.Payable, error) {
	return result(s, "FailPayout", func() (exchange.Payable, error) { return s.Store.FailPayout(ctx, of, code) })
}

func (s *faultyStore) Breaker(ctx context.Context, provider string) (exchange.Breaker, error) {
	if s.breaker != nil {
		return *s.breaker, nil
	}
	return result(s, "Breaker", func() (exchange.Breaker, error) { return s.Store.Breaker(ctx, provider) })
}

func (s *faultyStore) ConfirmPayee(ctx context.Context, id uuid.UUID, written time.Time, by exchange.Principal) (exchange.Refund, error) {
	return result(s, "ConfirmPayee", func() (exchange.Refund, error) { return s.Store.ConfirmPayee(ctx, id, written, by) })
}

func (s *faultyStore) RefundException(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	return result(s, "RefundException", func() (exchange.Refund, error) { return s.Store.RefundException(ctx, id, by) })
}

func (s *faultyStore) ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) (exchange.PaymentException, error) {
	return result(s, "ResolveException", func() (exchange.PaymentException, error) { return s.Store.ResolveException(ctx, id, to, note, by) })
}

func (s *faultyStore) CreateWallet(ctx context.Context, a exchange.Asked, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	return result(s, "CreateWallet", func() (exchange.Wallet, error) { return s.Store.CreateWallet(ctx, a, address, key) })
}

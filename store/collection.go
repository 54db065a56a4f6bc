package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Collections by mobile money of any object. The object is locked first, then the attempt.

// collectionObject is a locked object that mobile money is collected for: what it wants, and what a payment of it does.
// Each type has one file that implements it, a line in collectionTypes, and its column and its guard in payment_attempts.
type collectionObject interface {
	parties() (owner, vendor uuid.UUID)
	wants() exchange.Collectable
	// wait shows what the object waits for. An object that has ended is left as it is.
	wait(ctx context.Context, t unitTx, detail string) error
	// complete takes a payment of what the object wants, or more. It returns the holds that it changes, and the account that
	// is credited with what the object wanted.
	complete(ctx context.Context, t unitTx, a exchange.PaymentAttempt, receipt string) ([]exchange.HoldOp, exchange.AccountRef, error)
	// underpaid takes a payment of less than the object wants, which goes back or waits for an officer.
	underpaid(ctx context.Context, t unitTx, receipt string) ([]exchange.HoldOp, error)
	// returns reports whether money that the object does not take goes back to its payer without an officer: a surplus, all
	// of an underpayment, late money. Such money of an attempt is refunded as that of the object's order.
	returns(kind exchange.PaymentKind) bool
	// order is the order that refunds of the object's money belong to; zero where it has none.
	order() exchange.Order
	// report adds to the outcome what the object's flow needs to know.
	report(ctx context.Context, t unitTx, out *exchange.PaymentOutcome) error
}

// collectionType reads the objects of a type. owner is the query of an object's owner by its id.
type collectionType struct {
	owner string
	read  func(ctx context.Context, s *Store, id uuid.UUID) (exchange.Collectable, error)
	lock  func(ctx context.Context, t unitTx, id uuid.UUID) (collectionObject, error)
}

var collectionTypes = map[exchange.MomoObjectType]collectionType{
	exchange.MomoOrder:   {owner: ownerOfOrder, read: readOrderCollectable, lock: lockOrderCollection},
	exchange.MomoDeposit: {owner: merchantOfDeposit, read: readDepositCollectable, lock: lockDepositCollection},
}

func collectionTypeOf(of exchange.MomoObject) (collectionType, error) {
	kind, known := collectionTypes[of.Type]
	if !known {
		return kind, exchange.Errorf(exchange.CodeUnsupported, "Mobile money is not collected for a %s.", of.Type)
	}
	return kind, nil
}

// Collectable reads what an object wants by mobile money. CodeUnsupported for an object that never wants any.
func (s *Store) Collectable(ctx context.Context, of exchange.MomoObject) (exchange.Collectable, error) {
	kind, err := collectionTypeOf(of)
	if err != nil {
		return exchange.Collectable{}, err
	}
	return kind.read(ctx, s, of.ID)
}

func (t unitTx) lockedCollectionObject(ctx context.Context, of exchange.MomoObject) (collectionObject, error) {
	kind, err := collectionTypeOf(of)
	if err != nil {
		return nil, err
	}
	return kind.lock(ctx, t, of.ID)
}

// SetCollectionDetail stores what an object waits for that mobile money is collected for. It does nothing to an object
// that has ended.
func (s *Store) SetCollectionDetail(ctx context.Context, of exchange.MomoObject, detail string) error {
	_, err := change(ctx, s, "collection", of.ID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		x, err := t.lockedCollectionObject(ctx, of)
		if err == nil {
			err = x.wait(ctx, t, detail)
		}
		return struct{}{}, exchange.Posting{}, err
	})
	return err
}

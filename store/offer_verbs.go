package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OfferPatch changes an offer; nil leaves a field as it is.
type OfferPatch struct {
	Rate        *decimal.Decimal
	MinOrder    *money.Amount
	MaxOrder    *money.Amount
	Description *string
	Total       *money.Amount // only for drafts
	IfVersions  []int64       // the expected versions; none is any
}

// moveOffer changes an offer's status under the guard of its state machine. A null hold keeps the offer's own.
const moveOffer = `
UPDATE offers SET status = $2, hold_id = coalesce($3, hold_id), updated_at = $4, version = version + 1
WHERE id = $1 AND version = $5 AND status = ANY ($6)`

func (t unitTx) moveOffer(ctx context.Context, o exchange.Offer, to exchange.OfferStatus, hold uuid.UUID) error {
	if err := exchange.OfferMachine.Allow(o.Status, to); err != nil {
		return err
	}
	return t.One(ctx, moveOffer, o.ID, to, nullID(hold), t.s.now(), o.Version, pq.Array(exchange.OfferMachine.Sources(to)))
}

// settleOffer moves an open offer to the status that fits its remainder after this transaction's posting.
func (t unitTx) settleOffer(ctx context.Context, o exchange.Offer, left money.Amount, by exchange.Principal) (exchange.Offer, error) {
	before := o
	o.Available = left
	to := o.StatusFor(left)
	if to == o.Status {
		return o, nil
	}
	if err := t.moveOffer(ctx, o, to, uuid.Nil); err != nil {
		return o, err
	}
	o.Status, o.UpdatedAt = to, t.s.now()
	o.Version++
	return o, t.record(ctx, offerRecord("offer."+string(to), by, &before, o))
}

// changeOffer locks an offer that the view may change and runs fn on it.
func (s *Store) changeOffer(ctx context.Context, v View, id uuid.UUID, fn func(context.Context, unitTx, exchange.Offer) (exchange.Offer, exchange.Posting, error)) (exchange.Offer, error) {
	staff, vendor, _ := v.offers()
	return change(ctx, s, "offer", id, func(ctx context.Context, t unitTx) (exchange.Offer, exchange.Posting, error) {
		o, err := t.lockedOfferBy(ctx, lockScopedOffer, id, staff, vendor)
		if err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		return fn(ctx, t, o)
	})
}

// offerVerb moves an offer to a status, with a posting where money is reserved or freed. An offer that already has the
// status is returned as it is.
func (s *Store) offerVerb(ctx context.Context, v View, id uuid.UUID, from []exchange.OfferStatus, to exchange.OfferStatus, name string, by exchange.Principal) (exchange.Offer, error) {
	return s.changeOffer(ctx, v, id, func(ctx context.Context, t unitTx, o exchange.Offer) (exchange.Offer, exchange.Posting, error) {
		var p exchange.Posting
		if o.Status == to {
			return o, p, nil
		}
		if !slices.Contains(from, o.Status) {
			return o, p, exchange.Errorf(exchange.CodeStateConflict, "An offer that is %s can't be %s.", o.Status, name)
		}
		if err := t.mayOpen(ctx, o, to); err != nil {
			return o, p, err
		}
		before, hold := o, uuid.Nil
		switch {
		case before.Status == exchange.OfferDraft && to == exchange.OfferActive:
			var err error
			if p, hold, err = funding(o); err != nil {
				return o, p, err
			}
			o.HoldID, o.Available = hold, o.Total
		case to == exchange.OfferClosed && o.HoldID != uuid.Nil:
			p.Holds = []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: o.HoldID}}}
			o.Available = money.Zero(o.Asset)
		}
		if err := t.moveOffer(ctx, o, to, hold); err != nil {
			return o, p, err
		}
		o.Status, o.UpdatedAt = to, t.s.now()
		o.Version++
		if err := t.record(ctx, offerRecord("offer."+name, by, &before, o)); err != nil {
			return o, p, err
		}
		o, err := t.settleOffer(ctx, o, o.Available, by)
		return o, p, err
	})
}

const referenceRate = `SELECT reference_rate($1, $2)`

// nearMarket refuses an offer whose rate is too far from the market's. The database refuses the orders of such an offer.
func (t unitTx) nearMarket(ctx context.Context, o exchange.Offer) error {
	var market decimal.Decimal
	if err := t.Get(ctx, &market, referenceRate, o.Asset, t.s.now()); err != nil {
		return err
	}
	return require(exchange.WithinCollar(o.Rate, market), "/rate", "collar", "must be within "+exchange.Percent(exchange.RateCollar)+" of the market's rate, "+market.String()+" KES")
}

// mayOpen refuses to open an offer whose rate is far from the market's, and one that sells from a cold wallet: this process
// never signs with its key, so no order could be paid.
func (t unitTx) mayOpen(ctx context.Context, o exchange.Offer, to exchange.OfferStatus) error {
	if to != exchange.OfferActive {
		return nil
	}
	if err := t.nearMarket(ctx, o); err != nil || o.Type != exchange.OfferSell {
		return err
	}
	var kind exchange.WalletType
	if err := t.Get(ctx, &kind, walletType, o.WalletID); err != nil {
		return translate(err, "wallet")
	}
	if kind != exchange.Hot {
		return exchange.Errorf(exchange.CodeStateConflict, "The offer sells from a cold wallet, which can't pay orders. Create one that sells from a hot wallet.")
	}
	return nil
}

// funding reserves what an offer promises: crypto for SELL, shillings for BUY.
func funding(o exchange.Offer) (exchange.Posting, uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return exchange.Posting{}, id, err
	}
	amount := o.Total
	if o.Type == exchange.OfferBuy {
		amount = o.Total.MulCeil(money.KES, o.Rate)
	}
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: id, Key: "offer:" + o.ID.String(), Account: o.FundingAccount(), Amount: amount, ObjectType: "offer", ObjectID: o.ID,
	}}}}, id, nil
}

// PublishOffer opens a draft and reserves what it promises; CodeInsufficientFunds when the merchant has less,
// CodeStateConflict when it sells from a cold wallet.
func (s *Store) PublishOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	return s.offerVerb(ctx, v, id, []exchange.OfferStatus{exchange.OfferDraft}, exchange.OfferActive, "published", by)
}

// PauseOffer takes an active offer off the market; its money stays reserved.
func (s *Store) PauseOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	return s.offerVerb(ctx, v, id, []exchange.OfferStatus{exchange.OfferActive}, exchange.OfferPaused, "paused", by)
}

// ResumeOffer puts a paused offer back on the market. One with less left than its minimum order becomes exhausted at
// once.
func (s *Store) ResumeOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	return s.offerVerb(ctx, v, id, []exchange.OfferStatus{exchange.OfferPaused}, exchange.OfferActive, "resumed", by)
}

// CloseOffer ends an offer and frees its remainder. Open orders keep their part. Only staff can close a suspended offer.
func (s *Store) CloseOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	from := []exchange.OfferStatus{exchange.OfferDraft, exchange.OfferActive, exchange.OfferPaused, exchange.OfferExhausted}
	if v.staff {
		from = append(from, exchange.OfferSuspended)
	}
	return s.offerVerb(ctx, v, id, from, exchange.OfferClosed, "closed", by)
}

// SuspendOffer takes an offer off the market on behalf of the house.
func (s *Store) SuspendOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	from := []exchange.OfferStatus{exchange.OfferActive, exchange.OfferPaused, exchange.OfferExhausted}
	return s.offerVerb(ctx, v, id, from, exchange.OfferSuspended, "suspended", by)
}

// UnsuspendOffer lifts a suspension: the offer is paused and its vendor resumes it.
func (s *Store) UnsuspendOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Offer, error) {
	return s.offerVerb(ctx, v, id, []exchange.OfferStatus{exchange.OfferSuspended}, exchange.OfferPaused, "unsuspended", by)
}

const patchOffer = `
UPDATE offers SET rate = $2, min_order = $3, max_order = $4, description = $5, total = $6, updated_at = $7, version = version + 1
WHERE id = $1 AND version = $8`

// PatchOffer changes an offer that is not closed or suspended. The total, and the rate of a BUY offer, determine the
// reservation, so they change only in a draft. Open orders keep their rate.
func (s *Store) PatchOffer(ctx context.Context, v View, id uuid.UUID, patch OfferPatch, by exchange.Principal) (exchange.Offer, error) {
	return s.changeOffer(ctx, v, id, func(ctx context.Context, t unitTx, o exchange.Offer) (exchange.Offer, exchange.Posting, error) {
		var none exchange.Posting
		if o.Status == exchange.OfferClosed || o.Status == exchange.OfferSuspended {
			return o, none, exchange.Errorf(exchange.CodeStateConflict, "An offer that is %s can't be changed.", o.Status)
		}
		draft := o.Status == exchange.OfferDraft
		if patch.Total != nil && !draft {
			return o, none, exchange.Errorf(exchange.CodeStateConflict, "The amount of an offer can be changed only while it is a draft.")
		}
		if patch.Rate != nil && o.Type == exchange.OfferBuy && !draft {
			return o, none, exchange.Errorf(exchange.CodeStateConflict, "The rate of a BUY offer can be changed only while it is a draft.")
		}
		before := o
		patch.apply(&o)
		if err := o.Validate(); err != nil {
			return before, none, err
		}
		if err := expect(patch.IfVersions, o.Version); err != nil {
			return before, none, err
		}
		if patch.Rate != nil {
			if err := t.nearMarket(ctx, o); err != nil {
				return before, none, err
			}
		}
		n, err := t.Exec(ctx, patchOffer, id, o.Rate, o.MinOrder.Decimal(), o.MaxOrder.Decimal(), o.Description, o.Total.Decimal(), t.s.now(), o.Version)
		if err != nil {
			return before, none, err
		}
		if n == 0 {
			return before, none, exchange.ChangedMeanwhile()
		}
		o.Version++
		o.UpdatedAt = t.s.now()
		if err := t.record(ctx, offerRecord("offer.changed", by, &before, o)); err != nil {
			return before, none, err
		}
		o, err = t.settleOffer(ctx, o, o.Available, by)
		return o, none, err
	})
}

func (p OfferPatch) apply(o *exchange.Offer) {
	if p.Rate != nil {
		o.Rate = *p.Rate
	}
	if p.MinOrder != nil {
		o.MinOrder = *p.MinOrder
	}
	if p.MaxOrder != nil {
		o.MaxOrder = *p.MaxOrder
	}
	if p.Description != nil {
		o.Description = *p.Description
	}
	if p.Total != nil {
		o.Total = *p.Total
	}
}

const deleteOffer = `UPDATE offers SET deleted_at = $2, updated_at = $2, version = version + 1 WHERE id = $1 AND status IN ('draft', 'closed')`

// DeleteOffer hides a draft or a closed offer; its rows stay because orders refer to them.
func (s *Store) DeleteOffer(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) error {
	_, err := s.changeOffer(ctx, v, id, func(ctx context.Context, t unitTx, o exchange.Offer) (exchange.Offer, exchange.Posting, error) {
		if o.Status != exchange.OfferDraft && o.Status != exchange.OfferClosed {
			return o, exchange.Posting{}, exchange.Errorf(exchange.CodeStateConflict, "An offer that is %s can't be deleted. Close it first.", o.Status)
		}
		if err := t.One(ctx, deleteOffer, id, t.s.now()); err != nil {
			return o, exchange.Posting{}, err
		}
		o.DeletedAt = t.s.now()
		o.Version++
		return o, exchange.Posting{}, t.record(ctx, offerRecord("offer.deleted", by, nil, o))
	})
	return err
}

package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const insertSwap = `
INSERT INTO swaps (id, intent_id, quote_id, requested_by, owner_id, vendor_id, wallet_id, house_wallet_id, network, from_asset, from_amount, to_asset, to_amount, fee, fee_profile_id,
    rate, value, digest, status, status_detail, hold_id, reservation_id, created_at, expires_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $23)`

// The open swaps of an owner are counted one after the other: its row is locked. The house's are counted without a lock.
const countOpenSwaps = `SELECT count(*) FROM swaps WHERE status NOT IN ('completed', 'refunded', 'cancelled', 'expired', 'failed') AND coalesce(vendor_id, owner_id) IS NOT DISTINCT FROM $1`

// OpenSwap carries out an intent to swap at the price of a quote: it stores the swap, holds what is given in the wallet and what is got in
// the treasury, and counts its value against the owner's limits. A repeated call returns the existing swap. CodeStateConflict for a quote
// that was used, CodeExpired for one whose time is over, CodeInsufficientFunds when the wallet or the treasury has too little available,
// CodeLimitReached a limit. The errors of useIntent come before all others.
func (s *Store) OpenSwap(ctx context.Context, a exchange.Asked) (exchange.Swap, error) {
	r, err := readAsked(ctx, s, a, exchange.SwapRequestOf, exchange.IntendSwap)
	if err != nil {
		return exchange.Swap{}, err
	}
	return change(ctx, s, "swap", r.ID, func(ctx context.Context, t unitTx) (exchange.Swap, exchange.Posting, error) {
		var none exchange.Posting
		asked, used, err := t.useIntent(ctx, a, exchange.IntendSwap)
		if err != nil {
			return exchange.Swap{}, none, err
		}
		if used {
			old, err := readOne[exchange.Swap](ctx, t, "swap", readSwap, asked.ObjectID)
			return old, none, err
		}
		w := &swapWork{unitTx: t, by: asked.By, now: t.s.now(), s: exchange.Swap{ID: r.ID, IntentID: asked.ID, QuoteID: r.QuoteID, RequestedBy: asked.By.UserID}}
		err = w.open(ctx, r)
		return w.s, w.post, err
	})
}

func (w *swapWork) open(ctx context.Context, r exchange.SwapRequest) error {
	if err := r.Check(); err != nil {
		return err
	}
	var asker exchange.User
	if err := w.Get(ctx, &asker, lockCustomer, w.by.UserID); err != nil {
		return translate(err, "user")
	}
	if !asker.IsActive || asker.Role != w.by.Role {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active account with the right role can do this.")
	}
	q, err := w.quoted(ctx, r.QuoteID)
	if err != nil {
		return err
	}
	from, house, err := w.swapWallets(ctx, q.WalletID, asker)
	if err != nil {
		return err
	}
	if err := require(w.unitTx.s.limits.swapped(from.Network, q.Terms.From) && w.unitTx.s.limits.swapped(from.Network, q.Terms.To), "/quote_id", "unsupported_asset",
		"is for an asset that is not swapped on "+string(from.Network)); err != nil {
		return err
	}
	o := &w.s
	o.OwnerID, o.VendorID, o.WalletID, o.HouseWalletID, o.Network = from.OwnerID, from.VendorID, from.ID, house.ID, from.Network
	o.From, o.To, o.Fee, o.Rate, o.ProfileID = q.Price.From, q.Price.To, q.Price.Fee, q.Price.Rate, q.Terms.Profile.ID
	o.Status, o.StatusDetail, o.CreatedAt, o.ExpiresAt = exchange.SwapReserved, exchange.WaitNothing, w.now, w.now.Add(exchange.SwapReservation)
	if o.Value, _, err = w.valueOf(ctx, o.From); err != nil {
		return err
	}
	o.Digest = o.Intent()
	if err := w.within(ctx, asker); err != nil {
		return err
	}
	if o.HoldID, err = w.hold("given", o.WalletID, o.From); err != nil {
		return err
	}
	if o.ReservationID, err = w.hold("reserved", o.HouseWalletID, o.To); err != nil {
		return err
	}
	return w.insert(ctx)
}

// quoted finds the requester's quote, which must not be used or expired. Another's is reported as missing. Two swaps at one moment can't
// both use it: the database has it once.
func (w *swapWork) quoted(ctx context.Context, id uuid.UUID) (exchange.SwapQuote, error) {
	row, found, err := readFound[swapQuoteRow](ctx, w, readSwapQuote, id)
	if err != nil {
		return exchange.SwapQuote{}, err
	}
	if err := require(found && row.AskedBy == w.by.UserID, "/quote_id", "not_found", "must be the id of one of your quotes"); err != nil {
		return exchange.SwapQuote{}, err
	}
	q, err := row.quote()
	if err == nil {
		err = q.Admit(w.now)
	}
	return q, err
}

// within refuses a swap above the limits of its owner: the number that is open, their value, and the network fees, which the house pays.
// The house's own money counts against none of them.
func (w *swapWork) within(ctx context.Context, asker exchange.User) error {
	o := w.s
	payer := o.Payer()
	if payer != uuid.Nil && payer != asker.ID {
		if err := w.One(ctx, lockOwner, payer); err != nil {
			return err
		}
	}
	var open int
	if err := w.Get(ctx, &open, countOpenSwaps, nullID(payer)); err != nil {
		return err
	}
	if open >= exchange.MaxOpenSwaps {
		return exchange.Errorf(exchange.CodeLimitReached, "At most %d swaps of one owner may be open.", exchange.MaxOpenSwaps)
	}
	if payer == uuid.Nil {
		return nil
	}
	var err error
	if o.VendorID != uuid.Nil {
		err = w.underFees(ctx, o.Network, feesOfMerchant, o.VendorID, w.unitTx.s.limits.MerchantFees, "your payments")
	} else {
		err = w.underFees(ctx, o.Network, feesOfUser, o.RequestedBy, w.unitTx.s.limits.fees(asker.Role), "your payments")
	}
	if err != nil {
		return err
	}
	return w.useLimit(ctx, limitUse{userID: asker.ID, role: asker.Role, objectType: "swap", objectID: o.ID, value: o.Value})
}

func (w *swapWork) insert(ctx context.Context) error {
	o := w.s
	err := w.One(ctx, insertSwap, o.ID, o.IntentID, o.QuoteID, o.RequestedBy, nullID(o.OwnerID), nullID(o.VendorID), o.WalletID, o.HouseWalletID, o.Network, o.From.Asset(), o.From.Decimal(),
		o.To.Asset(), o.To.Decimal(), o.Fee.Decimal(), nullID(o.ProfileID), o.Rate, o.Value.Decimal(), o.Digest, o.Status, o.StatusDetail, o.HoldID, o.ReservationID, o.CreatedAt, o.ExpiresAt)
	if err != nil {
		return err
	}
	if w.s, err = readOne[exchange.Swap](ctx, w, "swap", readSwap, o.ID); err != nil {
		return err
	}
	w.before = w.s
	return w.record(ctx, w.event("swap.opened", nil))
}

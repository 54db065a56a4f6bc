package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Swaps. What people ask for are intents that the swap's flow carries out (swap_open.go, swap_steps.go); its legs are chain payments
// (swap_payments.go); officers decide by tickets and by changes of the controls (swap_decisions.go).

const swapColumns = `s.id, s.intent_id, s.quote_id, s.requested_by, s.owner_id, s.vendor_id, s.wallet_id, s.network, w.address, s.house_wallet_id, h.address AS house_address,
    s.from_amount||' '||s.from_asset AS "from", s.to_amount||' '||s.to_asset AS "to", s.fee||' '||s.to_asset AS fee, s.rate, s.fee_profile_id AS profile_id, s.value||' KES' AS value,
    s.digest, s.status, s.status_detail, s.hold_id, s.reservation_id, s.return_hold_id, s.resolution_id, coalesce(s.difference::text, '') AS difference, s.created_at, s.expires_at,
    s.collected_at, s.updated_at, s.completed_at, s.version`

const fromSwaps = `swaps s JOIN wallets w ON w.id = s.wallet_id JOIN wallets h ON h.id = s.house_wallet_id`

const (
	readSwap       = `SELECT ` + swapColumns + ` FROM ` + fromSwaps + ` WHERE s.id = $1`
	readScopedSwap = readSwap + ` AND ($2 OR s.owner_id = $3 OR s.vendor_id = $4)`
	lockSwap       = `SELECT id FROM swaps WHERE id = $1 FOR NO KEY UPDATE`
)

// Swap reads a swap that the view may see.
func (s *Store) Swap(ctx context.Context, v View, id uuid.UUID) (exchange.Swap, error) {
	all, owner, vendor := v.args()
	return readOne[exchange.Swap](ctx, s.db, "swap", readScopedSwap, id, all, owner, vendor)
}

// SwapByID reads a swap for its own flow.
func (s *Store) SwapByID(ctx context.Context, id uuid.UUID) (exchange.Swap, error) {
	return s.Swap(ctx, Everything(), id)
}

// SwapFilter narrows a list of swaps.
type SwapFilter struct {
	WalletID    uuid.UUID
	Status      exchange.SwapStatus
	Network     exchange.Network
	OwnerID     uuid.UUID // of the wallet
	MerchantID  uuid.UUID // the master merchant
	CreatedFrom time.Time
	CreatedTo   time.Time
}

// Swaps pages through the swaps that the view may see, the newest first, with their number.
func (s *Store) Swaps(ctx context.Context, v View, f SwapFilter, p Page) ([]exchange.Swap, int, error) {
	var w where
	w.scope(v, "s.owner_id", "s.vendor_id")
	w.id("s.wallet_id", f.WalletID)
	w.eq("s.status", string(f.Status))
	w.eq("s.network", string(f.Network))
	w.id("s.owner_id", f.OwnerID)
	w.id("s.vendor_id", f.MerchantID)
	w.between("s.created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.Swap](ctx, s, "swap", list{columns: swapColumns, from: fromSwaps, where: w, order: "s.created_at DESC, s.id DESC"}, p)
}

const readSwapLegs = `
SELECT p.object_id AS swap_id, substr(p.purpose, 6) AS role, p.id AS payment_id, p.tx_id AS tx_hash, p.status, p.amount||' '||p.asset AS amount, p.block, p.created_at AS at,
    CASE WHEN p.status <> 'included' THEN 0 ELSE coalesce((SELECT greatest(0, greatest(c.final_number, (SELECT max(b.number) FROM deposit_blocks b WHERE b.network = c.network)) - p.block + 1)
        FROM deposit_cursors c WHERE c.network = p.network), 0) END AS confirmations
FROM chain_payments p WHERE p.purpose IN ('swap_collect', 'swap_payout', 'swap_refund') AND p.object_id = ANY ($1::uuid[]) ORDER BY p.created_at, p.id`

// SwapLegs reads the legs of swaps by their ids, each the oldest first. A leg that was given up and tried again is there more than once.
func (s *Store) SwapLegs(ctx context.Context, all []exchange.Swap) (map[uuid.UUID][]exchange.SwapLeg, error) {
	ids := make([]uuid.UUID, len(all))
	for i, o := range all {
		ids[i] = o.ID
	}
	rows, err := readAll[exchange.SwapLeg](ctx, s.db, "leg of a swap", readSwapLegs, pq.Array(ids))
	legs := map[uuid.UUID][]exchange.SwapLeg{}
	for _, l := range rows {
		legs[l.SwapID] = append(legs[l.SwapID], l)
	}
	return legs, err
}

func swapSnapshot(s exchange.Swap) map[string]any {
	return map[string]any{
		"id": s.ID, "requested_by": s.RequestedBy, "owner_id": nullID(s.OwnerID), "wallet_id": s.WalletID, "network": s.Network, "from_asset": s.From.Asset(),
		"from_amount": s.From.String(), "to_asset": s.To.Asset(), "to_amount": s.To.String(), "rate": s.Rate.String(), "fee": s.Fee.String(), "pricing_profile_id": nullID(s.ProfileID),
		"quote_id": s.QuoteID, "status": s.Status, "status_detail": s.StatusDetail, "reservation_id": s.ReservationID, "expires_at": s.ExpiresAt, "version": s.Version,
	}
}

// swapWork is one change of a swap within its transaction: the row before, the row as it becomes, and who asked.
type swapWork struct {
	unitTx
	before exchange.Swap // as it is stored
	s      exchange.Swap
	by     exchange.Principal
	now    time.Time
	post   exchange.Posting
}

// workSwap runs a change of a swap under its lock.
func (s *Store) workSwap(ctx context.Context, id uuid.UUID, do func(context.Context, *swapWork) error) (exchange.Swap, error) {
	return change(ctx, s, "swap", id, func(ctx context.Context, t unitTx) (exchange.Swap, exchange.Posting, error) {
		w, err := t.startSwap(ctx, id)
		if err == nil {
			err = do(ctx, w)
		}
		if err != nil {
			return exchange.Swap{}, exchange.Posting{}, err
		}
		return w.s, w.post, nil
	})
}

// startSwap locks a swap before it reads it, so that the joined tables are as new as the row.
func (t unitTx) startSwap(ctx context.Context, id uuid.UUID) (*swapWork, error) {
	var locked uuid.UUID
	if err := t.Get(ctx, &locked, lockSwap, id); err != nil {
		return nil, translate(err, "swap")
	}
	o, err := readOne[exchange.Swap](ctx, t, "swap", readSwap, id)
	return &swapWork{unitTx: t, before: o, s: o, by: flow, now: t.s.now()}, err
}

const updateSwap = `
UPDATE swaps SET status = $4, status_detail = $5, return_hold_id = $6, resolution_id = $7, difference = $8::jsonb, collected_at = $9, completed_at = $10, updated_at = $11, version = version + 1
WHERE id = $1 AND version = $2 AND status = $3`

// move stores the swap in a status, which may be the one that it has. What stays as it was is not stored.
func (w *swapWork) move(ctx context.Context, to exchange.SwapStatus, detail string) error {
	name := "swap.changed"
	if to != w.before.Status {
		name = "swap." + string(to)
		if err := exchange.SwapMachine.Allow(w.before.Status, to); err != nil {
			return err
		}
	}
	if w.s.Status, w.s.StatusDetail = to, detail; w.s == w.before {
		return nil
	}
	o := w.s
	n, err := w.Exec(ctx, updateSwap, o.ID, w.before.Version, w.before.Status, o.Status, o.StatusDetail, nullID(o.ReturnHoldID), nullID(o.ResolutionID),
		sql.NullString{String: o.Difference, Valid: o.Difference != ""}, nullTime(o.CollectedAt), nullTime(o.CompletedAt), w.now)
	if err == nil && n == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return err
	}
	before := w.before
	if w.s, err = readOne[exchange.Swap](ctx, w, "swap", readSwap, o.ID); err != nil {
		return err
	}
	w.before = w.s
	return w.record(ctx, w.event(name, &before))
}

func (w *swapWork) event(name string, before *exchange.Swap) auditEvent {
	e := auditEvent{by: w.by, object: "swap", id: w.s.ID, name: name, owner: w.s.OwnerID, vendor: w.s.VendorID, after: swapSnapshot(w.s)}
	if before != nil {
		e.before = swapSnapshot(*before)
	}
	return e
}

// hold adds a hold of money in a wallet for the swap, and returns its id.
func (w *swapWork) hold(what string, wallet uuid.UUID, m money.Amount) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: id, Key: "swap:" + w.s.ID.String() + ":" + what, Account: exchange.Owned(exchange.AccWalletBalance, wallet, m.Asset()), Amount: m, ObjectType: "swap", ObjectID: w.s.ID,
	}})
	return id, err
}

// free gives the money of a hold back.
func (w *swapWork) free(id uuid.UUID) {
	w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: id}})
}

package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OfferFilter narrows a list of offers; Amount keeps those whose bounds and remainder allow it.
type OfferFilter struct {
	Type     exchange.OfferType
	Asset    money.Asset
	Network  exchange.Network
	Status   exchange.OfferStatus
	VendorID uuid.UUID
	Amount   *money.Amount
	Best     bool // the best rate for the customer first: the lowest of offers that sell, the highest of those that buy
}

// The remainder of an offer is read from its hold and stored nowhere else.
const offerColumns = `o.id, o.vendor_id, o.created_by, o.offer_type AS type, o.network, o.asset, o.wallet_id, o.total||' '||o.asset AS total, NULL AS available,
	o.rate, o.min_order||' '||o.asset AS min_order, o.max_order||' '||o.asset AS max_order,
	o.status, o.description, o.hold_id, o.created_at, o.updated_at, o.deleted_at, o.version,
	CASE WHEN h.status = 'held' THEN h.amount ELSE 0 END||' '||CASE WHEN o.offer_type = 'SELL' THEN o.asset ELSE 'KES' END AS reserved`

// withRest fills in what an offer has left.
func withRest(o exchange.Offer) exchange.Offer {
	o.Available = o.After(o.Reserved)
	return o
}

const offerTables = `offers o LEFT JOIN holds h ON h.id = o.hold_id`

// availableCrypto is the remainder of an offer in its asset, as SQL; Offer.After is the same in Go.
const availableCrypto = `CASE WHEN o.offer_type = 'SELL' THEN coalesce(h.amount, 0) ELSE coalesce(h.amount, 0) / o.rate END`

func offerSnapshot(o exchange.Offer) map[string]any {
	return map[string]any{
		"id": o.ID, "vendor_id": o.VendorID, "offer_type": o.Type, "network": o.Network, "asset": o.Asset, "usdt_amount": o.Total.String(),
		"available_amount": o.Available.String(), "rate": o.Rate.String(), "min_order": o.MinOrder.String(), "max_order": o.MaxOrder.String(),
		"status": o.Status, "version": o.Version,
	}
}

const insertOffer = `
INSERT INTO offers (id, vendor_id, created_by, offer_type, network, asset, wallet_id, total, rate, min_order, max_order, status, description,
    created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'draft', $12, $13, $13)`

const vendorWallet = `
SELECT ` + walletColumns + ` FROM wallets WHERE vendor_id = $1 AND network = $2 AND custody = 'custodial'
    AND ($3::uuid IS NULL AND is_default OR id = $3) ORDER BY (owner_id = $1) DESC, created_at LIMIT 1`

// CreateOffer stores a draft. Without a wallet it uses the vendor's default one on the network. CodeInvalid for
// another owner's wallet, a missing default, or a cold wallet to sell from. A repeated call with the same id returns
// the existing offer.
func (s *Store) CreateOffer(ctx context.Context, o exchange.Offer, by exchange.Principal) (exchange.Offer, error) {
	if err := o.Validate(); err != nil {
		return exchange.Offer{}, err
	}
	return change(ctx, s, "offer", o.ID, func(ctx context.Context, t unitTx) (exchange.Offer, exchange.Posting, error) {
		old, found, err := t.maybeOffer(ctx, o.ID)
		if err != nil || found {
			if err == nil && old.VendorID != o.VendorID {
				err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another offer.")
			}
			return old, exchange.Posting{}, err
		}
		var wallets []exchange.Wallet
		if err := t.All(ctx, &wallets, vendorWallet, o.VendorID, o.Network, nullID(o.WalletID)); err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		if err := require(len(wallets) == 1 || o.WalletID == uuid.Nil, "/wallet_id", "not_found", "must be the id of a wallet of the merchant on this network"); err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		if err := require(len(wallets) == 1, "/network", "no_wallet", "needs a wallet of the merchant on this network"); err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		if err := require(o.Type != exchange.OfferSell || wallets[0].Type == exchange.Hot, "/wallet_id", "cold",
			"must be a hot wallet: a cold one can't pay orders"); err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		_, err = t.Exec(ctx, insertOffer, o.ID, o.VendorID, o.CreatedBy, o.Type, o.Network, o.Asset, wallets[0].ID, o.Total.Decimal(), o.Rate,
			o.MinOrder.Decimal(), o.MaxOrder.Decimal(), o.Description, t.s.now())
		if err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		created, err := t.offer(ctx, o.ID)
		if err != nil {
			return exchange.Offer{}, exchange.Posting{}, err
		}
		return created, exchange.Posting{}, t.record(ctx, offerRecord("offer.created", by, nil, created))
	})
}

func offerRecord(name string, by exchange.Principal, before *exchange.Offer, after exchange.Offer) auditEvent {
	f := auditEvent{by: by, object: "offer", id: after.ID, name: name, vendor: after.VendorID, after: offerSnapshot(after)}
	if before != nil {
		f.before = offerSnapshot(*before)
	}
	return f
}

const readOfferByID = `SELECT ` + offerColumns + ` FROM ` + offerTables + ` WHERE o.id = $1`

const lockOffer = `SELECT id FROM offers WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`

const lockScopedOffer = `SELECT id FROM offers WHERE id = $1 AND deleted_at IS NULL AND ($2 OR vendor_id = $3) FOR NO KEY UPDATE`

func (t unitTx) maybeOffer(ctx context.Context, id uuid.UUID) (exchange.Offer, bool, error) {
	var rows []exchange.Offer
	if err := t.All(ctx, &rows, readOfferByID, id); err != nil || len(rows) == 0 {
		return exchange.Offer{}, false, err
	}
	return withRest(rows[0]), true, nil
}

func (t unitTx) offer(ctx context.Context, id uuid.UUID) (exchange.Offer, error) {
	var r exchange.Offer
	if err := t.Get(ctx, &r, readOfferByID, id); err != nil {
		return exchange.Offer{}, translate(err, "offer")
	}
	return withRest(r), nil
}

// lockedOffer reads and locks an offer. Its hold changes only under this lock, so its remainder is fixed until the
// transaction ends.
func (t unitTx) lockedOffer(ctx context.Context, id uuid.UUID) (exchange.Offer, error) {
	return t.lockedOfferBy(ctx, lockOffer, id)
}

func (t unitTx) lockedOfferBy(ctx context.Context, query string, id uuid.UUID, scope ...any) (exchange.Offer, error) {
	var locked uuid.UUID
	if err := t.Get(ctx, &locked, query, append([]any{id}, scope...)...); err != nil {
		return exchange.Offer{}, translate(err, "offer")
	}
	return t.offer(ctx, id)
}

// Everyone sees active offers, a vendor also its own, staff all of them.
const readScopedOffer = `SELECT ` + offerColumns + ` FROM ` + offerTables + `
WHERE o.id = $1 AND o.deleted_at IS NULL AND ($2 OR o.vendor_id = $3 OR (o.status = 'active' AND $4))`

// Offer reads an offer.
func (s *Store) Offer(ctx context.Context, v View, id uuid.UUID) (exchange.Offer, error) {
	staff, vendor, public := v.offers()
	var r exchange.Offer
	if err := s.db.Get(ctx, &r, readScopedOffer, id, staff, vendor, public); err != nil {
		return exchange.Offer{}, translate(err, "offer")
	}
	return withRest(r), nil
}

// offers is the view as the arguments of readScopedOffer: all offers, a vendor's own, the active ones.
func (v View) offers() (staff bool, vendor uuid.NullUUID, public bool) {
	return v.staff && v.Scope == exchange.ScopeAny, nullID(v.VendorID), v.Scope == exchange.ScopeAny
}

// ListOffers pages through the offers, newest first, with their number.
func (s *Store) ListOffers(ctx context.Context, v View, f OfferFilter, p Page) ([]exchange.Offer, int, error) {
	var w where
	w.add(`o.deleted_at IS NULL`)
	if staff, vendor, public := v.offers(); !staff {
		w.add(`(o.vendor_id = ? OR (o.status = 'active' AND ?))`, vendor, public)
	}
	w.eq("o.offer_type", string(f.Type))
	w.eq("o.asset", string(f.Asset))
	w.eq("o.network", string(f.Network))
	w.eq("o.status", string(f.Status))
	w.id("o.vendor_id", f.VendorID)
	if f.Amount != nil {
		w.add(`o.asset = ? AND o.min_order <= ? AND o.max_order >= ? AND `+availableCrypto+` >= ?`, string(f.Amount.Asset()),
			f.Amount.Decimal(), f.Amount.Decimal(), f.Amount.Decimal())
	}
	order := "o.created_at DESC, o.id DESC"
	if f.Best {
		order = "CASE o.offer_type WHEN 'SELL' THEN o.rate ELSE -o.rate END, o.created_at, o.id"
	}
	rows, total, err := readPage[exchange.Offer](ctx, s, "offer", list{columns: offerColumns, from: offerTables, where: w, order: order}, p)
	if err != nil {
		return nil, 0, err
	}
	for i := range rows {
		rows[i] = withRest(rows[i])
	}
	return rows, total, nil
}

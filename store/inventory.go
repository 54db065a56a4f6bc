package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// allocatedInventory is an allocation of crypto as stored in a control change. A negative amount is taken back.
type allocatedInventory struct {
	WalletID uuid.UUID   `json:"wallet_id"`
	Asset    money.Asset `json:"asset"`
	Amount   string      `json:"amount"`
	Note     string      `json:"note"`
}

// A hot wallet of the treasury.
const sellingWallet = `
SELECT ` + walletColumns + ` FROM wallets WHERE id = $1 AND owner_id IS NULL AND purpose = 'treasury' AND custody = 'custodial' AND type = 'hot'`

// ProposeInventory proposes to set crypto of a treasury wallet aside for purchases without an offer. A negative amount takes some
// back. It happens when a second officer confirms the proposal: CodeInsufficientFunds then when the wallet has too little that
// is free, or the inventory too little that is left.
func (s *Store) ProposeInventory(ctx context.Context, wallet uuid.UUID, amount money.Amount, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var waits exchange.ControlChange
	if err := require(!amount.IsZero(), "/amount", "out_of_range", "must not be zero"); err != nil {
		return waits, err
	}
	err := s.inTx(ctx, "change", func(t unitTx) error {
		if _, err := t.sellingWallet(ctx, wallet); err != nil {
			return err
		}
		var err error
		waits, err = t.propose(ctx, exchange.ControlInventory, uuid.Nil, struct{}{},
			allocatedInventory{wallet, amount.Asset(), plain(amount), clip(note, maxAllocationNote)}, by)
		return err
	})
	return waits, err
}

func (t unitTx) sellingWallet(ctx context.Context, id uuid.UUID) (exchange.Wallet, error) {
	w, found, err := readFound[exchange.Wallet](ctx, t, sellingWallet, id)
	if err != nil {
		return w, err
	}
	return w, require(found, "/wallet_id", "not_found", "must be the id of a hot wallet of the treasury")
}

const inventoryColumns = `i.id, i.wallet_id, i.network, i.asset, i.hold_id, i.created_at, h.amount||' '||i.asset AS available, (h.amount + i.taken)||' '||i.asset AS allocated`

const insertInventory = `INSERT INTO inventories (id, wallet_id, network, asset, hold_id, created_at) VALUES ($1, $2, $3, $4, $5, $6)`

// Where what was taken is now is read for lists only.
const inventoryBrief = inventoryColumns + `, NULL AS reserved, NULL AS sold`

const readInventory = `SELECT ` + inventoryBrief + ` FROM inventories i JOIN holds h ON h.id = i.hold_id WHERE i.wallet_id = $1 AND i.asset = $2`

// applyInventory changes the hold of an inventory as two officers agreed. The first allocation opens it.
func (t unitTx) applyInventory(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var doc allocatedInventory
	var none exchange.Posting
	if err := json.Unmarshal(c.Change, &doc); err != nil {
		return none, err
	}
	amount, err := signedOf(doc.Asset, doc.Amount)
	if err != nil {
		return none, err
	}
	wallet, err := t.sellingWallet(ctx, doc.WalletID)
	if err != nil {
		return none, err
	}
	if err := t.audit(ctx, by, "inventory.allocated", "control_change", c.ID, nil, doc); err != nil {
		return none, err
	}
	i, open, err := readFound[exchange.Inventory](ctx, t, readInventory, wallet.ID, doc.Asset)
	if err != nil {
		return none, err
	}
	switch {
	case !amount.Positive() && !open:
		return none, exchange.Errorf(exchange.CodeInsufficientFunds, "The wallet has no inventory of %s.", doc.Asset)
	case !amount.Positive():
		return resized(exchange.HoldShrink, i, amount.Neg()), nil
	case open:
		return resized(exchange.HoldGrow, i, amount), nil
	}
	i = exchange.Inventory{ID: c.ID, WalletID: wallet.ID, Network: wallet.Network, Asset: doc.Asset, CreatedAt: t.s.now()}
	if i.HoldID, err = uuid.NewV7(); err != nil {
		return none, err
	}
	if err := t.One(ctx, insertInventory, i.ID, i.WalletID, i.Network, i.Asset, i.HoldID, i.CreatedAt); err != nil {
		return none, err
	}
	hold := exchange.Hold{ID: i.HoldID, Key: "inventory:" + i.ID.String(), Account: i.Account(), Amount: amount, ObjectType: "inventory", ObjectID: i.ID}
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: hold}}}, nil
}

func resized(verb exchange.HoldVerb, i exchange.Inventory, by money.Amount) exchange.Posting {
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: verb, Hold: exchange.Hold{ID: i.HoldID, Amount: by}}}}
}

// What is left of each inventory, and where the rest of it is.
const listInventories = `SELECT ` + inventoryColumns + `, coalesce(o.reserved, 0)||' '||i.asset AS reserved, (i.taken - coalesce(o.reserved, 0))||' '||i.asset AS sold
FROM inventories i JOIN holds h ON h.id = i.hold_id
LEFT JOIN LATERAL (SELECT sum(c.amount) AS reserved FROM holds c WHERE c.account_id = h.account_id AND c.status = 'held' AND c.parent_id = h.id) o ON true
ORDER BY i.network, i.asset, i.created_at LIMIT $1`

// maxInventories bounds their list: one for each treasury wallet and asset.
const maxInventories = 1000

// Inventories lists what the house sells without an offer.
func (s *Store) Inventories(ctx context.Context) ([]exchange.Inventory, error) {
	return readAll[exchange.Inventory](ctx, s.db, "inventory", listInventories, maxInventories)
}

// The inventory of an asset on a network that has most left. Nothing is locked: the reservation itself fails when it has too little.
const inventoryFor = `SELECT ` + inventoryBrief + ` FROM inventories i JOIN holds h ON h.id = i.hold_id
WHERE i.network = $1 AND i.asset = $2 ORDER BY h.amount DESC, i.created_at, i.id LIMIT 1`

// stocked finds the inventory for an amount; CodeInsufficientFunds when none has as much.
func (t unitTx) stocked(ctx context.Context, n exchange.Network, amount money.Amount) (exchange.Inventory, error) {
	i, found, err := readFound[exchange.Inventory](ctx, t, inventoryFor, n, amount.Asset())
	if err != nil {
		return i, err
	}
	if !found || amount.Cmp(i.Available) > 0 {
		return i, exchange.Errorf(exchange.CodeInsufficientFunds, "The house has less than %s %s to sell on %s.", amount, amount.Asset(), n)
	}
	return i, nil
}

// buyByQuote takes the price of a purchase from the requester's quote, and its crypto from the house's inventory.
func (t unitTx) buyByQuote(ctx context.Context, r exchange.OrderRequest, d *purchaseDraft) error {
	q, err := t.ownQuote(ctx, r.QuoteID, askerOf(r), "/fx_rate_quote_id")
	if err != nil {
		return err
	}
	use := exchange.QuoteUse{Purpose: exchange.QuoteForPurchase, Amount: r.Crypto, Network: r.Network, Method: r.Method()}
	if err := q.AdmitOrder(use, t.s.now()); err != nil {
		return err
	}
	o := &d.order
	o.VendorID, o.Network, o.Asset, o.Rate, o.ProfileID = exchange.PlatformTreasury, r.Network, r.Crypto.Asset(), q.Price.Rate, q.Terms.Profile.ID
	o.Price, o.AskedAmount = exchange.PriceByQuote(q.Price), q.Price.Crypto
	if err := t.chargeQuoted(ctx, o, q); err != nil {
		return err
	}
	if d.inventory, err = t.stocked(ctx, o.Network, o.Price.Crypto); err != nil {
		return err
	}
	o.WalletID, d.quote = d.inventory.WalletID, q
	return t.fillCustomer(ctx, o)
}

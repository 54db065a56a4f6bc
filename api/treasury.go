package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What the house's treasury buys and sells with.

// allocate requests shillings of the house for the platform's treasury, or the return of some of them.
func (s *server) allocate(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	amount := f.amount("amount", money.KES, true)
	direction := f.oneOf("direction", true, "in", "out")
	note := f.line("note", true, maxAllocationNote)
	if err := f.done(); err != nil {
		return err
	}
	if direction == "out" {
		amount = amount.Neg()
	}
	waits, err := s.Store.ProposeAllocation(c.ctx, amount, note, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

const maxAllocationNote = 200

// allocateInventory requests that crypto of a treasury wallet is set aside for sale, or is taken back.
func (s *server) allocateInventory(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	wallet, asset := f.id("wallet_id", true), money.Asset(f.oneOf("asset", true, stablecoins...))
	amount := f.amount("amount", asset, true)
	direction := f.oneOf("direction", true, "in", "out")
	note := f.line("note", true, maxAllocationNote)
	if err := f.done(); err != nil {
		return err
	}
	if direction == "out" {
		amount = amount.Neg()
	}
	waits, err := s.Store.ProposeInventory(c.ctx, wallet, amount, note, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// wireInventory is what the house sells without an offer, out of one wallet.
type wireInventory struct {
	ID        uuid.UUID `json:"id"`
	WalletID  uuid.UUID `json:"wallet_id"`
	Network   string    `json:"network"`
	Asset     string    `json:"asset"`
	Allocated string    `json:"allocated_amount"`
	Available string    `json:"available_amount"`
	Reserved  string    `json:"reserved_amount"`
	Sold      string    `json:"sold_amount"`
	CreatedAt timestamp `json:"created_at"`
}

func inventoryWire(i exchange.Inventory) wireInventory {
	return wireInventory{
		ID: i.ID, WalletID: i.WalletID, Network: string(i.Network), Asset: string(i.Asset), Allocated: i.Allocated.String(), Available: i.Available.String(),
		Reserved: i.Reserved.String(), Sold: i.Sold.String(), CreatedAt: stamp(i.CreatedAt),
	}
}

func (s *server) listInventory(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	all, err := s.Store.Inventories(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"inventories": each(all, inventoryWire)})
}

func (s *server) treasuryRoutes() []route {
	const auth = "/api/v1/auth"
	return []route{
		{method: post, path: auth + "/treasury/allocations", action: exchange.ActAllocate, limit: limitGeneral, key: keyRequired, handle: s.allocate},
		{method: get, path: auth + "/treasury/inventory", action: exchange.ActReadInventory, limit: limitGeneral, handle: s.listInventory},
		{method: post, path: auth + "/treasury/inventory", action: exchange.ActAllocate, limit: limitGeneral, key: keyRequired, handle: s.allocateInventory},
	}
}

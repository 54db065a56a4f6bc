package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What a treasury wallet needs to be between its marks again.
const (
	moveIn  = "in"
	moveOut = "out"
)

var swapMoves = []string{moveIn, moveOut}

// wireSwapInventory is what the treasury wallet of a network has of an asset. Without marks, low and high are null.
type wireSwapInventory struct {
	Network       string                `json:"network"`
	Asset         string                `json:"asset"`
	WalletID      uuid.UUID             `json:"wallet_id"`
	Address       string                `json:"address"`
	Posted        string                `json:"posted"`
	Held          string                `json:"held"`
	Available     string                `json:"available"`
	Low           *string               `json:"low"`
	High          *string               `json:"high"`
	LowSince      *timestamp            `json:"low_since"`
	MoveDirection *string               `json:"move_direction"`
	MoveAmount    string                `json:"move_amount"`
	Sources       []wireInventorySource `json:"sources"`
}

// wireInventorySource is a wallet of several owners from which a payment to the destination can be proposed.
type wireInventorySource struct {
	WalletID    uuid.UUID `json:"wallet_id"`
	Name        string    `json:"name"`
	Available   string    `json:"available"`
	Destination string    `json:"destination"`
}

func swapInventoryWire(i exchange.SwapInventory) wireSwapInventory {
	w := wireSwapInventory{
		Network: string(i.Network), Asset: string(i.Asset), WalletID: i.WalletID, Address: i.Address, Posted: i.Posted.String(), Held: i.Held.String(),
		Available: i.Available.String(), LowSince: optTime(i.LowSince),
	}
	if i.Marked() {
		w.Low, w.High = optAmount(i.Low), optAmount(i.High)
	}
	move := i.Move()
	switch {
	case move.Positive():
		w.MoveDirection = optText(moveIn)
	case move.Sign() < 0:
		w.MoveDirection, move = optText(moveOut), move.Neg()
	}
	w.MoveAmount = move.String()
	w.Sources = each(i.Sources, func(s exchange.InventorySource) wireInventorySource {
		return wireInventorySource{s.WalletID, s.Name, s.Available.String(), i.Address}
	})
	return w
}

func (s *server) listSwapInventory(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	all, err := s.Store.SwapInventory(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"inventory": each(all, swapInventoryWire)})
}

// proposeSwapMarks requests how much of an asset the treasury wallet of a network should have.
func (s *server) proposeSwapMarks(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	m := exchange.SwapMarks{ID: c.objectID, Network: exchange.Network(f.oneOf("network", true, networkNames...)), Asset: money.Asset(f.oneOf("asset", true, stablecoins...))}
	m.Low, m.High = f.mark("low", m.Asset), f.mark("high", m.Asset)
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeSwapMarks(c.ctx, m, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// mark reads a required amount that may be zero.
func (f *form) mark(name string, asset money.Asset) money.Amount {
	if asset == "" { // which is refused
		f.decimalText(name, true)
		return money.Amount{}
	}
	if !f.has(name) {
		f.fail(name, "required", "is required")
	}
	return f.charge(name, asset)
}

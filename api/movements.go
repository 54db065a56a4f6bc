package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireMovement is a movement on a chain into a wallet, or out of it without our transaction.
type wireMovement struct {
	ID          uuid.UUID  `json:"id"`
	WalletID    uuid.UUID  `json:"wallet_id"`
	Network     string     `json:"network"`
	TxHash      string     `json:"tx_hash"`
	Kind        string     `json:"kind"`
	Status      string     `json:"status"`
	Asset       string     `json:"asset"`
	Amount      string     `json:"amount"`
	FromAddress string     `json:"from_address"`
	ToAddress   string     `json:"to_address"`
	Block       int64      `json:"block"`
	CreatedAt   timestamp  `json:"created_at"`
	FinalAt     *timestamp `json:"final_at"`
}

func movementWire(d exchange.ChainDeposit) wireMovement {
	return wireMovement{
		ID: d.ID, WalletID: d.WalletID, Network: string(d.Network), TxHash: d.TxID, Kind: string(d.Kind), Status: string(d.Status),
		Asset: string(d.Amount.Asset()), Amount: d.Amount.String(), FromAddress: d.From, ToAddress: d.To, Block: int64(d.Block), //nolint:gosec // below 2^63
		CreatedAt: stamp(d.CreatedAt), FinalAt: optTime(d.FinalAt),
	}
}

var (
	movementKinds    = names(exchange.DepositKinds())
	movementStatuses = names(exchange.ChainDepositMachine.States())
)

// walletMovements lists movements on a chain into and out of a wallet of the caller.
func (s *server) walletMovements(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	q := c.query()
	page := q.page(anyPage)
	view := c.view()
	filter := store.ChainDepositFilter{
		WalletID: id, View: &view, Asset: money.Asset(q.oneOf("asset", assetNames()...)),
		Kind: exchange.DepositKind(q.oneOf("kind", movementKinds...)), Status: exchange.ChainDepositStatus(q.oneOf("status", movementStatuses...)),
	}
	if err := q.done(); err != nil {
		return err
	}
	if _, err := s.Store.Wallet(c.ctx, view, id); err != nil {
		return hideAbsence(err)
	}
	return listed(c, "movements", page, movementWire)(s.Store.ListChainDeposits(c.ctx, filter, page))
}

// wireSpent is the used part of limits.
type wireSpent struct {
	Day   string `json:"day"`
	Month string `json:"month"`
}

// myLimits answers with the caller's limits and their used parts.
func (s *server) myLimits(c *call) error {
	limits, err := s.Store.LimitsOf(c.ctx, c.user)
	if err != nil {
		return err
	}
	spent, err := s.Store.SpentOf(c.ctx, c.user)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{
		"own": limitWire(limits.Own), "effective": limitWire(limits.Effective), "used": wireSpent{spent.Day.String(), spent.Month.String()},
	})
}

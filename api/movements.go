package api

import (
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireMovement is a movement on a chain, in the history of a wallet of ours.
type wireMovement struct {
	ID          uuid.UUID  `json:"id"`
	WalletID    uuid.UUID  `json:"wallet_id"`
	Network     string     `json:"network"`
	TxHash      string     `json:"tx_hash"`
	Direction   string     `json:"direction"`
	Kind        string     `json:"kind"`
	Status      string     `json:"status"`
	Asset       string     `json:"asset"`
	Amount      string     `json:"amount"`
	FromAddress string     `json:"from_address"`
	ToAddress   string     `json:"to_address"`
	Purpose     *string    `json:"purpose"`
	ObjectID    *uuid.UUID `json:"object_id"`
	ExceptionID *uuid.UUID `json:"payment_exception_id"`
	Block       int64      `json:"block"`
	CreatedAt   timestamp  `json:"created_at"`
	FinalAt     *timestamp `json:"final_at"`
}

// movementOf returns how the history of a wallet shows a movement.
func movementOf(wallet uuid.UUID) func(exchange.WalletMovement) wireMovement {
	return func(m exchange.WalletMovement) wireMovement {
		return wireMovement{
			ID: m.ID, WalletID: wallet, Network: string(m.Network), TxHash: m.TxID, Direction: string(m.Direction(wallet)), Kind: string(m.Kind), Status: string(m.Status),
			Asset: string(m.Amount.Asset()), Amount: m.Amount.String(), FromAddress: m.From, ToAddress: m.To, Purpose: optText(string(m.Purpose)), ObjectID: optID(m.ObjectID),
			ExceptionID: optID(m.ExceptionID), Block: int64(m.Block), CreatedAt: stamp(m.CreatedAt), FinalAt: optTime(m.FinalAt), //nolint:gosec // below 2^63
		}
	}
}

var (
	movementDirections = names(exchange.MovementDirections())
	movementKinds      = names(exchange.DepositKinds())
	movementStatuses   = names(exchange.ChainDepositMachine.States())
)

// walletMovements lists movements on a chain into and out of a wallet of the caller.
func (s *server) walletMovements(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	q := c.query()
	page := q.page(anyPage)
	filter := store.MovementFilter{
		Direction: exchange.MovementDirection(q.oneOf("direction", movementDirections...)), Asset: money.Asset(q.oneOf("asset", assetNames()...)),
		Kind: exchange.DepositKind(q.oneOf("kind", movementKinds...)), Status: exchange.ChainDepositStatus(q.oneOf("status", movementStatuses...)),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	found, total, err := s.Store.WalletMovements(c.ctx, c.view(), id, filter, page)
	if err != nil {
		return hideAbsence(err)
	}
	return c.list("movements", each(found, movementOf(id)), page, total)
}

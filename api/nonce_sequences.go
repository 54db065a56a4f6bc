package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// wireReopening is a nonce sequence that was reopened.
type wireReopening struct {
	ID         uuid.UUID `json:"id"`
	WalletID   uuid.UUID `json:"wallet_id"`
	Foreign    *uint64   `json:"foreign_nonce"`
	Before     uint64    `json:"next_before"`
	After      uint64    `json:"next_after"`
	Block      uint64    `json:"block"`
	BlockID    string    `json:"block_id"`
	Note       string    `json:"note"`
	ReopenedBy uuid.UUID `json:"reopened_by"`
	ReopenedAt timestamp `json:"reopened_at"`
}

func reopeningWire(r exchange.NonceSequenceReopening) wireReopening {
	return wireReopening{
		ID: r.ID, WalletID: r.WalletID, Foreign: r.Foreign, Before: r.Before, After: r.After, Block: r.Block.Number, BlockID: r.Block.ID,
		Note: r.Reason, ReopenedBy: r.ReopenedBy, ReopenedAt: stamp(r.ReopenedAt),
	}
}

// reopenNonceSequence lets a wallet send again whose sequence was closed by a foreign transaction. The chain's count of
// transactions is read again for each decision.
func (s *server) reopenNonceSequence(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	note := f.line("note", true, exchange.MaxReopeningReason)
	if err := f.done(); err != nil {
		return err
	}
	w, err := s.Store.Wallet(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	count, err := s.senderCount(c.ctx, w)
	if err != nil {
		return err
	}
	done, err := s.Store.ReopenNonceSequence(c.ctx, c.objectID, w.ID, note, count, c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, reopeningWire(done))
}

func (s *server) senderCount(ctx context.Context, w exchange.Wallet) (exchange.SenderCount, error) {
	ask := s.Counts[w.Network]
	if ask == nil {
		return exchange.SenderCount{}, exchange.Errorf(exchange.CodeUnsupported, "The network %s is not enabled here.", w.Network)
	}
	ctx, cancel := context.WithTimeout(ctx, chainTimeout)
	defer cancel()
	count, err := ask(ctx, w.Address)
	if exchange.CodeOf(err) == exchange.CodeUnsupported {
		return count, err
	}
	if err != nil {
		s.log.Warn("the transactions of a wallet could not be counted", "network", w.Network, "wallet", w.ID, "cause", err)
		return count, exchange.Errorf(exchange.CodeUnavailable, "No node of the network answers; nothing was changed. Try again.")
	}
	return count, nil
}

package api

import (
	"context"

	"kivuko/exchange"
)

// reopenNonceSequence proposes to let a wallet send again whose sequence was closed by a foreign transaction; a second officer
// confirms it. The chain's count of transactions is read again for each proposal.
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
	waits, err := s.Store.ProposeReopening(c.ctx, c.objectID, w.ID, note, count, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
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

package chain

import (
	"context"

	"kivuko/exchange"
)

// Locator is the part of a Client that Inquire uses. If it is also Sequenced, it is asked for nonces.
type Locator interface {
	Locate(ctx context.Context, txID string) (Location, error)
}

// Inquire gathers the facts about a signed transaction for Judge. When the first query misses a transaction whose life is
// over, it queries again, so that a rebuild never rests on one response. On a network with sequence numbers it checks
// whether a final transaction has used the number of the missing one; for a nonce account, whether its value has changed.
// For a transaction found on the final chain neither applies: a node that misses it is behind.
func Inquire(ctx context.Context, c Locator, a exchange.ChainAttempt, want Transfer) (Facts, error) {
	f := Facts{Attempt: a, Expected: want}
	var err error
	if f.Location, err = c.Locate(ctx, a.TxID); err != nil {
		return Facts{}, err
	}
	if f.Location.Stage == StageFinal || f.Location.Stage == StageIncluded || a.Adopted {
		return f, nil
	}
	if a.NonceAccount != "" {
		durable, ok := c.(NonceReader)
		if !ok {
			return Facts{}, Errorf(ReasonProtocol, "the client can't read nonce accounts")
		}
		if f.NonceUsed, f.Nonces, err = movedOn(ctx, durable, a); err != nil {
			return Facts{}, err
		}
	} else if numbered, ok := c.(Sequenced); ok {
		n, err := numbered.Nonces(ctx, want.From)
		if err != nil {
			return Facts{}, err
		}
		f.Nonces, f.NonceUsed = n, n.Final > a.Nonce
	}
	if f.Location.Stage != StageAbsent || !impossible(f) {
		return f, nil
	}
	if f.Location, err = c.Locate(ctx, a.TxID); err != nil {
		return Facts{}, err
	}
	// A node that is behind the one that counted the numbers may miss the very transaction that used this one.
	f.AbsentTwice = f.Location.Stage == StageAbsent && f.Location.Head.Final.Number >= f.Nonces.Head.Final.Number
	return f, nil
}

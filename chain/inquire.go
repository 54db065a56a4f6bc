package chain

import (
	"context"

	"kivuko/exchange"
)

// Locator is the part of a Client that Inquire asks. One that is Sequenced too is asked for numbers.
type Locator interface {
	Locate(ctx context.Context, txID string) (Location, error)
}

// Inquire gathers the facts about a signed transaction for Judge. Where the first look misses a
// transaction whose life is over, it looks a second time, so that a rebuild never rests on one
// answer. On a network with sequence numbers it asks whether a final transaction has taken the number
// of the missing one; where a transaction lives by a nonce account, whether that has moved on. Of one that was
// found on the final chain neither is known, and a node that misses it is behind.
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
			return Facts{}, Errorf(ReasonProtocol, "the client reads no nonce accounts")
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
	// A node that knows less of the chain than the one that counted the numbers may miss the very
	// transaction that used this one.
	f.AbsentTwice = f.Location.Stage == StageAbsent && f.Location.Head.Final.Number >= f.Nonces.Head.Final.Number
	return f, nil
}

package chain

import (
	"context"

	"kivuko/exchange"
)

// Inquire gathers the facts about a signed transaction for Judge. Where the first look misses a
// transaction whose life is over, it looks a second time, so that a rebuild never rests on one
// answer. On a network with sequence numbers it asks whether a final transaction has taken the number
// of the missing one.
func Inquire(ctx context.Context, c Client, a exchange.ChainAttempt, want Transfer) (Facts, error) {
	f := Facts{Attempt: a, Expected: want}
	var err error
	if f.Location, err = c.Locate(ctx, a.TxID); err != nil {
		return Facts{}, err
	}
	if f.Location.Stage == StageFinal || f.Location.Stage == StageIncluded {
		return f, nil
	}
	if numbered, ok := c.(Sequenced); ok {
		n, err := numbered.Nonces(ctx, want.From)
		if err != nil {
			return Facts{}, err
		}
		f.NonceUsed = n.Final > a.Nonce
	}
	if f.Location.Stage != StageAbsent || !impossible(f) {
		return f, nil
	}
	if f.Location, err = c.Locate(ctx, a.TxID); err != nil {
		return Facts{}, err
	}
	f.AbsentTwice = f.Location.Stage == StageAbsent
	return f, nil
}

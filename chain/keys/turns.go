package keys

import (
	"context"

	"github.com/google/uuid"
)

// turnStripes is the most wallets that may sign at the same time in one process.
const turnStripes = 64

// turns makes the payments of one wallet sign one after the other, because each needs the next number. Signers in other
// processes do not wait for each other: the database accepts one of them, and turns only avoid wasted work.
type turns [turnStripes]chan struct{}

func newTurns() turns {
	var t turns
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	return t
}

// wait waits for a wallet's turn, and returns the function that ends it.
func (t turns) wait(ctx context.Context, walletID uuid.UUID) (func(), error) {
	stripe := t[int(walletID[len(walletID)-1])%turnStripes]
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

package keys

import (
	"context"

	"github.com/google/uuid"
)

// turnStripes is how many wallets may sign at the same time in one process at most.
const turnStripes = 64

// turns lets the payments of one wallet sign one after the other, because each needs the number after the
// one before. Signers in other processes are not waited for: the database lets one of them win, and turns
// only save the others their work.
type turns [turnStripes]chan struct{}

func newTurns() turns {
	var t turns
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	return t
}

// wait gives a wallet its turn, and what ends it.
func (t turns) wait(ctx context.Context, walletID uuid.UUID) (func(), error) {
	stripe := t[int(walletID[len(walletID)-1])%turnStripes]
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

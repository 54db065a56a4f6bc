package chain

import (
	"time"

	"kivuko/exchange"
)

// Verdict is what may be done with a signed transaction.
type Verdict string

// The verdicts.
const (
	VerdictWait      Verdict = "wait"      // in a block; only finality is missing
	VerdictBroadcast Verdict = "broadcast" // broadcast the same bytes again
	VerdictSucceeded Verdict = "succeeded" // final, with the expected transfer
	VerdictFailed    Verdict = "failed"    // final, and it did not pay
	VerdictRebuild   Verdict = "rebuild"   // proven impossible: a new transaction may be built
)

// Facts are what is known about a signed transaction when it is judged.
type Facts struct {
	Attempt  exchange.ChainAttempt
	Expected Transfer // the movement that counts as payment
	Location Location
	// NonceUsed is set when, on a network with sequence numbers, another transaction with the same number is final, so this
	// one can never be included.
	NonceUsed bool
	// Nonces are the sender's, if the network numbers transactions and this one is in no block.
	Nonces Nonces
	// AbsentTwice is set when a second query, made after the final head had passed the transaction's life, did not find it
	// either.
	AbsentTwice bool
}

// Pays reports whether the block that has the transaction, which may still be undone, has the expected transfer. One of nothing, as the
// opening of a Safe, is made when the transaction succeeded.
func (f Facts) Pays() bool { return f.Location.OK && paid(f.Expected, f.Location.Transfers) }

// Judge decides from recorded facts alone. It never gives up a transaction that is in a block. It allows a new one only when
// the final chain itself has passed the life of the old one and does not contain it. A timer of ours is no proof.
func Judge(f Facts) Verdict {
	switch f.Location.Stage {
	case StageFinal:
		if f.Pays() {
			return VerdictSucceeded
		}
		return VerdictFailed
	case StageIncluded:
		return VerdictWait
	case StageAbsent, StagePending:
		if f.Location.Stage == StageAbsent && f.AbsentTwice && impossible(f) {
			return VerdictRebuild
		}
		return VerdictBroadcast
	}
	return VerdictBroadcast
}

// Outlived reports whether the final chain has passed the life of the transaction, so that no future block can include it. A
// life in blocks is measured by block height, never by the slot number, which runs ahead of it; a final block of unknown
// height proves nothing.
func Outlived(a exchange.ChainAttempt, final Block) bool {
	switch {
	case !a.ExpiresAt.IsZero():
		return !final.Time.Before(a.ExpiresAt.Truncate(time.Millisecond))
	case a.LastValidHeight > 0:
		return final.Height > a.LastValidHeight
	}
	return false
}

func impossible(f Facts) bool { return f.NonceUsed || Outlived(f.Attempt, f.Location.Head.Final) }

// paid looks for the expected movement. The amount must match exactly: a token that takes a fee on transfers pays less than
// was promised.
func paid(want Transfer, got []Movement) bool {
	if want.Amount.Asset() != "" && want.Amount.IsZero() {
		return true
	}
	for _, m := range got {
		if m.From == want.From && m.To == want.To && m.Amount.Equal(want.Amount) {
			return true
		}
	}
	return false
}

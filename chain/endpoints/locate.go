package endpoints

import (
	"context"
	"errors"

	"kivuko/chain"
)

// ErrSeen marks the failure of a node that has seen the transaction and could not return all of it. The transaction is
// then not absent, even if other nodes miss it.
var ErrSeen = errors.New("the node has seen the transaction")

// progress orders the stages; "" is the stage without any answer.
var progress = map[chain.Stage]int{"": 0, chain.StageAbsent: 1, chain.StagePending: 2, chain.StageIncluded: 3, chain.StageFinal: 4}

// Locate asks every node for a transaction, until one has it at the stage that is enough, and returns the answer with
// the latest stage. "Absent" allows another payment to be built, so it needs more: every node that answers must miss the
// transaction, and of their answers it is the one with the lowest final block, so that the absence is true of at least
// that chain. A node that returns impossible data proves no absence.
func Locate[N Node](ctx context.Context, p *Pool[N], enough chain.Stage, look func(context.Context, N) (chain.Location, error)) (chain.Location, error) {
	best := chain.Location{}
	var failures []error
	for l, err := range All(ctx, p, look) {
		switch {
		case err != nil:
			failures = append(failures, err)
		case progress[l.Stage] >= progress[enough]:
			return l, nil
		case progress[l.Stage] > progress[best.Stage],
			l.Stage == chain.StageAbsent && best.Stage == chain.StageAbsent && l.Head.Final.Number < best.Head.Final.Number:
			best = l
		}
	}
	for _, err := range failures {
		impossible := chain.ReasonOf(err) != chain.ReasonUnavailable && best.Stage != chain.StageIncluded
		if seen := errors.Is(err, ErrSeen) && best.Stage == chain.StageAbsent; seen || impossible {
			return chain.Location{}, err
		}
	}
	if best.Stage == "" {
		return chain.Location{}, chain.Wrap(chain.ReasonUnavailable, errors.Join(failures...), "no node answered")
	}
	return best, nil
}

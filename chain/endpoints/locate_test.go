package endpoints

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kivuko/chain"
)

// TestLocate puts the answers of several nodes together. A node's answer is a stage with the number of its final block.
func TestLocate(t *testing.T) {
	t.Parallel()
	const absent, pending, included, final = chain.StageAbsent, chain.StagePending, chain.StageIncluded, chain.StageFinal
	at := func(stage chain.Stage, number uint64) chain.Location {
		return chain.Location{Stage: stage, Head: chain.Head{Final: chain.Block{Number: number}}}
	}
	impossible := chain.Errorf(chain.ReasonProtocol, "impossible")
	seen := chain.Wrap(chain.ReasonUnavailable, ErrSeen, "a part of it")
	for name, c := range map[string]struct {
		enough  chain.Stage
		answers []any // a location or an error each
		want    chain.Location
		fails   error
		asked   int
	}{
		"the latest stage":                {final, []any{at(absent, 5), at(included, 4), at(pending, 3)}, at(included, 4), nil, 3},
		"enough ends the search":          {final, []any{at(final, 5), at(absent, 1)}, at(final, 5), nil, 1},
		"included is enough":              {included, []any{at(pending, 5), at(included, 4), at(absent, 1)}, at(included, 4), nil, 2},
		"absent on the shortest chain":    {final, []any{at(absent, 5), at(absent, 3), at(absent, 4)}, at(absent, 3), nil, 3},
		"a node that is down":             {final, []any{errBroken, at(absent, 5)}, at(absent, 5), nil, 2},
		"seen is not absent":              {final, []any{at(absent, 5), seen}, chain.Location{}, ErrSeen, 2},
		"seen and pending":                {final, []any{seen, at(pending, 5)}, at(pending, 5), nil, 2},
		"impossible data and absent":      {final, []any{impossible, at(absent, 5)}, chain.Location{}, impossible, 2},
		"impossible data and pending":     {final, []any{at(pending, 5), impossible}, chain.Location{}, impossible, 2},
		"impossible data and included":    {final, []any{impossible, at(included, 5)}, at(included, 5), nil, 2},
		"impossible data and no answer":   {final, []any{errBroken, impossible}, chain.Location{}, impossible, 2},
		"no answer, and a node has seen":  {final, []any{errBroken, seen}, chain.Location{}, ErrSeen, 2},
		"no node answers, for any reason": {final, []any{errBroken, errBroken}, chain.Location{}, errBroken, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var nodes []*stub
			for i := range c.answers {
				nodes = append(nodes, &stub{name: fmt.Sprint(i)})
			}
			asked := 0
			got, err := Locate(t.Context(), New(nodes, time.Second, retry), c.enough, func(context.Context, *stub) (chain.Location, error) {
				answer := c.answers[asked]
				asked++
				if failure, failed := answer.(error); failed {
					return chain.Location{}, failure
				}
				return answer.(chain.Location), nil
			})
			if !errors.Is(err, c.fails) || (err == nil) != (c.fails == nil) || asked != c.asked {
				t.Errorf("%v after %d nodes, want %v after %d", err, asked, c.fails, c.asked)
			}
			if got.Stage != c.want.Stage || got.Head != c.want.Head {
				t.Errorf("%s at %d, want %s at %d", got.Stage, got.Head.Final.Number, c.want.Stage, c.want.Head.Final.Number)
			}
		})
	}
}

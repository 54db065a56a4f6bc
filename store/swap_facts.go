package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

const readSwapReleases = `
SELECT DISTINCT ON (r.object_id) r.object_id AS id, r.officers AS needed, release_approvals(r) AS approvals
FROM releases r WHERE r.purpose = 'swap' AND r.object_id = ANY ($1::uuid[]) ORDER BY r.object_id, r.opened_at DESC, r.id DESC`

// SwapFacts is what belongs to a swap.
type SwapFacts struct {
	Legs     []exchange.SwapLeg // the oldest first
	Needed   int                // officers, as the rule of all that leaves was judged last
	Counting int                // officers who approved it and may still approve
}

// FactsOfSwaps reads what belongs to swaps, by their ids.
func (s *Store) FactsOfSwaps(ctx context.Context, all []exchange.Swap) (map[uuid.UUID]SwapFacts, error) {
	legs, err := s.SwapLegs(ctx, all)
	if err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, len(all))
	for i, o := range all {
		ids[i] = o.ID
	}
	releases, err := readAll[struct {
		ID                uuid.UUID
		Needed, Approvals int
	}](ctx, s.db, "release", readSwapReleases, pq.Array(ids))
	facts := map[uuid.UUID]SwapFacts{}
	for _, id := range ids {
		facts[id] = SwapFacts{Legs: legs[id]}
	}
	for _, r := range releases {
		facts[r.ID] = SwapFacts{legs[r.ID], r.Needed, r.Approvals}
	}
	return facts, err
}

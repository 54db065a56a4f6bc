package store

import (
	"context"
	"database/sql"

	"github.com/lib/pq"

	"kivuko/exchange"
)

const readSighting = `
SELECT c.final_number, c.final_time, l.final_head, l.looked_at, tip.number AS tip_number, tip.at AS tip_time, d.tx_id, d.block, d.block_id,
    coalesce(d.status = 'final', false) AS settled
FROM deposit_cursors c
LEFT JOIN deposit_looks l ON l.network = c.network AND l.identity = database_identity()
LEFT JOIN LATERAL (SELECT number, at FROM deposit_blocks b WHERE b.network = c.network ORDER BY number DESC LIMIT 1) tip ON true
LEFT JOIN LATERAL (SELECT tx_id, block, block_id, status FROM chain_deposits
    WHERE network = c.network AND tx_id = ANY ($2) AND kind = 'own' AND status IN ('seen', 'final') ORDER BY status LIMIT 1) d ON true
WHERE c.network = $1`

type sightingRow struct {
	FinalNumber int64
	FinalTime   sql.NullTime
	FinalHead   sql.NullInt64
	LookedAt    sql.NullTime
	TipNumber   sql.NullInt64
	TipTime     sql.NullTime
	TxID        sql.NullString
	Block       sql.NullInt64
	BlockID     sql.NullString
	Settled     bool
}

// Sighting returns what the deposit watch has read of our transactions on a network. It is no proof: a flow learns from it when to ask
// a node.
func (s *Store) Sighting(ctx context.Context, n exchange.Network, txIDs []string) (exchange.TxSighting, error) {
	var rows []sightingRow
	if err := s.db.All(ctx, &rows, readSighting, n, pq.Array(txIDs)); err != nil || len(rows) == 0 {
		return exchange.TxSighting{}, translate(err, "deposit watch")
	}
	r := rows[0]
	t := exchange.TxSighting{
		Current: r.LookedAt.Valid && s.now().Sub(r.LookedAt.Time) <= MaxLookAge && r.FinalNumber >= r.FinalHead.Int64,
		Final:   exchange.ChainBlock{Number: height(r.FinalNumber), Time: utc(r.FinalTime)},
		TxID:    r.TxID.String, Block: exchange.ChainBlock{Number: height(r.Block.Int64), ID: r.BlockID.String}, Settled: r.Settled,
	}
	t.Newest = t.Final
	if r.TipNumber.Valid {
		t.Newest = exchange.ChainBlock{Number: height(r.TipNumber.Int64), Time: utc(r.TipTime)}
	}
	return t, nil
}

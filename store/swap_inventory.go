package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What the treasury's wallets have for swaps, and how much they should have.

const listSwapInventory = `
SELECT w.network, a.asset, w.id AS wallet_id, w.address, coalesce(l.posted, 0)||' '||a.asset AS posted, coalesce(l.held, 0)||' '||a.asset AS held,
    coalesce(l.posted - l.held, 0)||' '||a.asset AS available, m.low||' '||a.asset AS low, m.high||' '||a.asset AS high, m.low_since, NULL AS sources
FROM wallets w CROSS JOIN (VALUES ('USDC'), ('USDT')) AS a (asset)
LEFT JOIN ledger_accounts l ON l.code = 'wallet_balance:' || w.id || ':' || a.asset LEFT JOIN swap_marks m ON m.network = w.network AND m.asset = a.asset
WHERE w.id IN (SELECT swap_treasury(n) FROM unnest(ARRAY['ethereum', 'solana', 'tron']) n) ORDER BY w.network, a.asset`

// SwapInventory lists what the treasury wallet of each network has of both assets, and where more is.
func (s *Store) SwapInventory(ctx context.Context) ([]exchange.SwapInventory, error) {
	return inventory(ctx, s.db)
}

const marksColumns = `m.id, m.network, m.asset, m.low||' '||m.asset AS low, m.high||' '||m.asset AS high, m.low_since, m.change_id, m.updated_at, m.version`

const readMarks = `SELECT ` + marksColumns + ` FROM swap_marks m WHERE m.network = $1 AND m.asset = $2`

// marksTerms are marks as their control change has them.
type marksTerms struct {
	ID      uuid.UUID        `json:"id"`
	Network exchange.Network `json:"network"`
	Asset   money.Asset      `json:"asset"`
	Low     string           `json:"low"`
	High    string           `json:"high"`
}

func termsOfMarks(m exchange.SwapMarks) any {
	if m.ID == uuid.Nil {
		return struct{}{}
	}
	return marksTerms{m.ID, m.Network, m.Asset, plain(m.Low), plain(m.High)}
}

// ProposeSwapMarks proposes how much of an asset the treasury wallet of a network should have; another officer confirms it.
func (s *Store) ProposeSwapMarks(ctx context.Context, m exchange.SwapMarks, by exchange.Principal) (exchange.ControlChange, error) {
	var waits exchange.ControlChange
	if err := m.Check(); err != nil {
		return waits, err
	}
	err := s.inTx(ctx, "water marks", func(t unitTx) error {
		if _, err := t.treasuryOn(ctx, m.Network); err != nil {
			return err
		}
		now, known, err := readFound[exchange.SwapMarks](ctx, t, readMarks, m.Network, m.Asset)
		if err != nil {
			return err
		}
		next := m
		if known {
			next.ID = now.ID
		}
		waits, err = t.propose(ctx, exchange.ControlSwapMarks, uuid.Nil, termsOfMarks(now), termsOfMarks(next), by)
		return err
	})
	return waits, err
}

const saveMarks = `
INSERT INTO swap_marks (id, network, asset, low, high, change_id, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (network, asset) DO UPDATE SET low = $4, high = $5, change_id = $6, updated_at = $7, version = swap_marks.version + 1`

// applySwapMarks stores marks that two officers agreed on.
func (t unitTx) applySwapMarks(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[marksTerms](c)
	if err != nil {
		return err
	}
	before, known, err := readFound[exchange.SwapMarks](ctx, t, readMarks, terms.Network, terms.Asset)
	if err != nil {
		return err
	}
	if err := unchanged(c, termsOfMarks(before)); err != nil {
		return err
	}
	low, err := money.Parse(terms.Asset, terms.Low)
	if err != nil {
		return err
	}
	high, err := money.Parse(terms.Asset, terms.High)
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, saveMarks, terms.ID, terms.Network, terms.Asset, low.Decimal(), high.Decimal(), c.ID, t.s.now()); err != nil {
		return err
	}
	after, err := readOne[exchange.SwapMarks](ctx, t, "water marks", readMarks, terms.Network, terms.Asset)
	if err != nil {
		return err
	}
	e := auditEvent{by: by, object: "swap_marks", id: after.ID, name: "swap_marks.changed", after: marksSnapshot(after)}
	if known {
		e.before = marksSnapshot(before)
	}
	return t.record(ctx, e)
}

func marksSnapshot(m exchange.SwapMarks) map[string]any {
	return map[string]any{"id": m.ID, "network": m.Network, "asset": m.Asset, "low": m.Low.String(), "high": m.High.String(), "version": m.Version}
}

const saveLowSince = `UPDATE swap_marks SET low_since = $3, updated_at = $4, version = version + 1 WHERE network = $1 AND asset = $2 AND (low_since IS NULL) = ($3::timestamptz IS NOT NULL)`

// WatchSwapInventory compares what the treasury's wallets have with their marks, and returns those that have too little. An event tells
// of each that fell below its low mark since the last call, and of each that has enough again.
func (s *Store) WatchSwapInventory(ctx context.Context) ([]exchange.SwapInventory, error) {
	var low []exchange.SwapInventory
	err := s.inTx(ctx, "inventory", func(t unitTx) error {
		low = nil
		all, err := inventory(ctx, t)
		if err != nil {
			return err
		}
		for _, i := range all {
			if i.IsLow() {
				low = append(low, i)
			}
			if !i.Marked() || i.IsLow() == !i.LowSince.IsZero() {
				continue
			}
			if err := t.noteLow(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
	return low, err
}

func (t unitTx) noteLow(ctx context.Context, i exchange.SwapInventory) error {
	now := t.s.now()
	name, since := "swap_marks.refilled", nullTime(exchange.SwapInventory{}.LowSince)
	if i.IsLow() {
		name, since = "swap_marks.low", nullTime(now)
	}
	n, err := t.Exec(ctx, saveLowSince, i.Network, i.Asset, since, now)
	if err != nil || n == 0 { // another call was faster
		return err
	}
	m, err := readOne[exchange.SwapMarks](ctx, t, "water marks", readMarks, i.Network, i.Asset)
	if err != nil {
		return err
	}
	after := marksSnapshot(m)
	after["available"] = i.Available.String()
	if text := exchange.SourceText(i.Sources, i.Address); i.IsLow() && text != "" {
		after["more_in"] = text
	}
	return t.record(ctx, auditEvent{by: flow, object: "swap_marks", id: m.ID, name: name, after: after})
}

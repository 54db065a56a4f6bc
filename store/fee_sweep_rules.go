package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Rules by which a schedule sweeps earned fees. Two treasury officers agree to a rule; one of them switches it off.

// A rule sweeps nothing when none of the officers who agreed to it may decide any more.
const sweepRuleColumns = `f.id, f.network, f.asset, f.threshold||' '||f.asset AS threshold, f.least||' '||f.asset AS least, f.is_active, f.change_id, f.updated_at, f.version,
	NOT EXISTS (SELECT FROM control_changes c JOIN users u ON u.id IN (c.proposed_by, c.decided_by) AND u.is_active AND u.role IN ('admin', 'treasury')
		WHERE c.id = f.change_id) AS orphaned`

const readSweepRules = `SELECT ` + sweepRuleColumns + ` FROM fee_sweep_rules f ORDER BY f.network, f.asset`

const readSweepRule = `SELECT ` + sweepRuleColumns + ` FROM fee_sweep_rules f WHERE f.network = $1 AND f.asset = $2`

const readSweepRuleByID = `SELECT ` + sweepRuleColumns + ` FROM fee_sweep_rules f WHERE f.id = $1`

// FeeSweepRules lists the rules, of which there is at most one for each asset of a network.
func (s *Store) FeeSweepRules(ctx context.Context) ([]exchange.FeeSweepRule, error) {
	return readAll[exchange.FeeSweepRule](ctx, s.db, "rule of fee sweeps", readSweepRules)
}

// sweepRuleTerms are a rule as its control change has it.
type sweepRuleTerms struct {
	ID        uuid.UUID        `json:"id"`
	Network   exchange.Network `json:"network"`
	Asset     money.Asset      `json:"asset"`
	Threshold string           `json:"threshold"`
	Least     string           `json:"least"`
}

func termsOfSweepRule(r exchange.FeeSweepRule) any {
	if r.ID == uuid.Nil || !r.IsActive {
		return struct{}{}
	}
	return sweepRuleTerms{r.ID, r.Network, r.Asset, plain(r.Threshold), plain(r.Least)}
}

// ProposeFeeSweepRule proposes when the fees of an asset on a network are swept by themselves; another treasury officer confirms it.
func (s *Store) ProposeFeeSweepRule(ctx context.Context, r exchange.FeeSweepRule, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "rule of fee sweeps", func(t unitTx) error {
		if _, err := t.treasuryOn(ctx, r.Network); err != nil {
			return err
		}
		now, known, err := readFound[exchange.FeeSweepRule](ctx, t, readSweepRule, r.Network, r.Asset)
		if err != nil {
			return err
		}
		next := r
		if next.IsActive = true; known {
			next.ID = now.ID
		}
		proposed, err = t.propose(ctx, exchange.ControlFeeSweepRule, uuid.Nil, termsOfSweepRule(now), termsOfSweepRule(next), by)
		return err
	})
	return proposed, err
}

const saveSweepRule = `
INSERT INTO fee_sweep_rules (id, network, asset, threshold, least, is_active, change_id, updated_at) VALUES ($1, $2, $3, $4, $5, true, $6, $7)
ON CONFLICT (network, asset) DO UPDATE SET threshold = $4, least = $5, is_active = true, change_id = $6, updated_at = $7, version = fee_sweep_rules.version + 1`

// applyFeeSweepRule stores a rule that two officers agreed on.
func (t unitTx) applyFeeSweepRule(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[sweepRuleTerms](c)
	if err != nil {
		return err
	}
	now, known, err := readFound[exchange.FeeSweepRule](ctx, t, readSweepRule, terms.Network, terms.Asset)
	if err != nil {
		return err
	}
	if err := unchanged(c, termsOfSweepRule(now)); err != nil {
		return err
	}
	threshold, err := money.Parse(terms.Asset, terms.Threshold)
	if err != nil {
		return err
	}
	least, err := money.Parse(terms.Asset, terms.Least)
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, saveSweepRule, terms.ID, terms.Network, terms.Asset, threshold.Decimal(), least.Decimal(), c.ID, t.s.now()); err != nil {
		return err
	}
	return t.recordSweepRule(ctx, terms.ID, now, known, by)
}

func (t unitTx) recordSweepRule(ctx context.Context, id uuid.UUID, before exchange.FeeSweepRule, known bool, by exchange.Principal) error {
	after, err := readOne[exchange.FeeSweepRule](ctx, t, "rule of fee sweeps", readSweepRuleByID, id)
	if err != nil {
		return err
	}
	e := auditEvent{by: by, object: "fee_sweep_rule", id: id, name: "fee_sweep_rule.changed", after: sweepRuleSnapshot(after)}
	if known {
		e.before = sweepRuleSnapshot(before)
	}
	return t.record(ctx, e)
}

func sweepRuleSnapshot(r exchange.FeeSweepRule) map[string]any {
	return map[string]any{
		"id": r.ID, "network": r.Network, "asset": r.Asset, "threshold": r.Threshold.String(), "least": r.Least.String(), "is_active": r.IsActive, "change_id": r.ChangeID,
		"version": r.Version,
	}
}

const switchRuleOff = `UPDATE fee_sweep_rules SET is_active = false, updated_at = $2, version = version + 1 WHERE id = $1 AND is_active`

// SwitchOffFeeSweepRule ends sweeps by a rule, at once and by one officer. A repeated call changes nothing.
func (s *Store) SwitchOffFeeSweepRule(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.FeeSweepRule, error) {
	var now exchange.FeeSweepRule
	err := s.inTx(ctx, "rule of fee sweeps", func(t unitTx) error {
		before, err := readOne[exchange.FeeSweepRule](ctx, t, "rule of fee sweeps", readSweepRuleByID, id)
		if err != nil {
			return err
		}
		off, err := t.Exec(ctx, switchRuleOff, id, t.s.now())
		if err == nil && off > 0 {
			err = t.recordSweepRule(ctx, id, before, true, by)
		}
		if err != nil {
			return err
		}
		return t.Get(ctx, &now, readSweepRuleByID, id)
	})
	return now, err
}

const pendingByRule = `SELECT id FROM fee_sweeps WHERE network = $1 AND asset = $2 AND scheduled AND status = 'pending' ORDER BY id LIMIT $3`

// OpenScheduledFeeSweeps opens sweeps for one asset of a network, if its rule is in force and the fees that can be swept reach the rule's
// threshold. It returns all that rules opened and whose payment is not signed: when an answer gets lost, the next call names them again.
func (s *Store) OpenScheduledFeeSweeps(ctx context.Context, n exchange.Network, asset money.Asset) ([]uuid.UUID, error) {
	if err := s.openByRule(ctx, n, asset); err != nil {
		return nil, err
	}
	return readAll[uuid.UUID](ctx, s.db, "fee sweep", pendingByRule, n, asset, exchange.MaxFeeSweeps)
}

func (s *Store) openByRule(ctx context.Context, n exchange.Network, asset money.Asset) error {
	hint, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = change(ctx, s, "fee sweep", hint, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var posting exchange.Posting
		r, known, err := readFound[exchange.FeeSweepRule](ctx, t, readSweepRule, n, asset)
		if err != nil || !known || !r.IsActive || r.Orphaned {
			return struct{}{}, posting, err
		}
		all, total, err := t.sweepable(ctx, n, r.Least)
		if err != nil || total.Cmp(r.Threshold) < 0 {
			return struct{}{}, posting, err
		}
		for _, w := range all {
			id, err := uuid.NewV7()
			if err != nil {
				return struct{}{}, posting, err
			}
			hold, err := t.openFeeSweep(ctx, exchange.FeeSweep{ID: id, ChangeID: r.ChangeID, Scheduled: true, Network: n, WalletID: w.WalletID, Amount: w.Amount}, flow)
			if err != nil {
				return struct{}{}, posting, err
			}
			posting.Holds = append(posting.Holds, hold)
		}
		return struct{}{}, posting, nil
	})
	return err
}

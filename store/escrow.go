package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// EscrowFilter narrows a list of the escrow pool.
type EscrowFilter struct {
	Network exchange.Network
	Status  exchange.EscrowStatus
}

const escrowColumns = `a.id, a.network, w.address, a.status, coalesce(escrow_trouble(a.id), '') AS trouble, l.order_id, l.leased_at, a.rest_until, a.last_used_at,
    a.label, a.reason, NULL AS balances, a.updated_by, a.created_at, a.updated_at, a.version`

const escrowTables = `escrow_addresses a JOIN wallets w ON w.id = a.id LEFT JOIN escrow_leases l ON l.wallet_id = a.id AND l.ended_at IS NULL`

// EscrowAddresses pages through the pool, newest address first, with their number.
func (s *Store) EscrowAddresses(ctx context.Context, f EscrowFilter, p Page) ([]exchange.EscrowAddress, int, error) {
	var w where
	w.eq("a.network", string(f.Network))
	w.eq("a.status", string(f.Status))
	all, total, err := readPage[exchange.EscrowAddress](ctx, s, "escrow address", list{columns: escrowColumns, from: escrowTables, where: w, order: "a.created_at DESC, a.id DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	return all, total, s.fillBalances(ctx, all)
}

const readEscrow = `SELECT ` + escrowColumns + ` FROM ` + escrowTables + ` WHERE a.id = $1`

// EscrowAddress reads one address of the pool.
func (s *Store) EscrowAddress(ctx context.Context, id uuid.UUID) (exchange.EscrowAddress, error) {
	var a exchange.EscrowAddress
	if err := s.db.Get(ctx, &a, readEscrow, id); err != nil {
		return exchange.EscrowAddress{}, translate(err, "escrow address")
	}
	one := []exchange.EscrowAddress{a}
	err := s.fillBalances(ctx, one)
	return one[0], err
}

const custodyOfWallets = `SELECT owner_id, asset, posted FROM ledger_accounts WHERE kind = 'custody' AND owner_id = ANY ($1::uuid[])`

// fillBalances adds the ledger's balances on each address, in the order in which the networks list their assets.
func (s *Store) fillBalances(ctx context.Context, all []exchange.EscrowAddress) error {
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.ID.String()
	}
	var rows []struct {
		OwnerID uuid.UUID
		Asset   money.Asset
		Posted  decimal.Decimal
	}
	if err := s.db.All(ctx, &rows, custodyOfWallets, pq.Array(ids)); err != nil {
		return translate(err, "escrow address")
	}
	type key struct {
		wallet uuid.UUID
		asset  money.Asset
	}
	there := map[key]money.Amount{}
	for _, r := range rows {
		m, err := amountOf(r.Asset, r.Posted)
		if err != nil {
			return err
		}
		there[key{r.OwnerID, r.Asset}] = m
	}
	for i := range all {
		a := &all[i]
		for _, asset := range a.Network.WalletAssets() {
			m, ok := there[key{a.ID, asset}]
			if !ok {
				m = money.Zero(asset)
			}
			a.Balances = append(a.Balances, m)
		}
	}
	return nil
}

// EscrowPatch changes an address of the pool; nil leaves a field as it is. Reason is why it is disabled.
type EscrowPatch struct {
	Status     *exchange.EscrowStatus
	Label      *string
	Reason     *string
	IfVersions []int64 // the expected versions; none is any
}

const lockEscrow = readEscrow + ` FOR NO KEY UPDATE OF a`

const saveEscrow = `
UPDATE escrow_addresses SET status = $2, label = $3, reason = $4, updated_by = $5, updated_at = $6, version = version + 1 WHERE id = $1 AND version = $7`

// ChangeEscrow labels, disables or enables an address of the pool. CodeStateConflict when it is lent, or when it would
// be enabled before it has rested or with money on it.
func (s *Store) ChangeEscrow(ctx context.Context, id uuid.UUID, p EscrowPatch, by exchange.Principal) (exchange.EscrowAddress, error) {
	err := s.inTx(ctx, "escrow address", func(t unitTx) error {
		var before exchange.EscrowAddress
		if err := t.Get(ctx, &before, lockEscrow, id); err != nil {
			return err
		}
		if err := expect(p.IfVersions, before.Version); err != nil {
			return err
		}
		a := before
		if err := patchEscrow(&a, p, t.s.now()); err != nil {
			return err
		}
		if a.Status == before.Status && a.Label == before.Label && a.Reason == before.Reason {
			return nil
		}
		if err := t.One(ctx, saveEscrow, id, a.Status, a.Label, a.Reason, nullID(by.UserID), t.s.now(), before.Version); err != nil {
			return err
		}
		name := "escrow_address.labelled"
		if a.Status != before.Status {
			name = "escrow_address." + string(a.Status)
		}
		return t.record(ctx, auditEvent{by: by, object: "escrow_address", id: id, name: name, before: patchedSnapshot(before), after: patchedSnapshot(a)})
	})
	if err != nil {
		return exchange.EscrowAddress{}, err
	}
	return s.EscrowAddress(ctx, id)
}

func patchedSnapshot(a exchange.EscrowAddress) map[string]any {
	f := escrowSnapshot(a.ID, a.Network, a.Status, a.OrderID)
	f["label"], f["reason"] = a.Label, a.Reason
	return f
}

// patchEscrow applies a change, and explains what the database would refuse.
func patchEscrow(a *exchange.EscrowAddress, p EscrowPatch, now time.Time) error {
	if p.Label != nil {
		a.Label = *p.Label
	}
	was := a.Status
	if p.Status != nil {
		a.Status = *p.Status
	}
	if p.Reason != nil {
		a.Reason = *p.Reason
	}
	if a.Status != exchange.EscrowDisabled {
		if err := require(p.Reason == nil || *p.Reason == "", "/note", "forbidden", "must be absent unless the address is disabled"); err != nil {
			return err
		}
		a.Reason = ""
	}
	if err := require(a.Status != exchange.EscrowDisabled || a.Reason != "", "/note", "required", "must say why the address is disabled"); err != nil {
		return err
	}
	if a.Status == was {
		return nil
	}
	if err := exchange.EscrowMachine.Allow(was, a.Status); err != nil {
		return err
	}
	if a.Status != exchange.EscrowFree {
		return nil
	}
	if a.RestUntil.After(now) {
		return exchange.Errorf(exchange.CodeStateConflict, "The address rests until %s.", a.RestUntil.Format(time.RFC3339))
	}
	if a.Trouble != exchange.EscrowNoTrouble {
		return exchange.Errorf(exchange.CodeStateConflict, "The address can't be enabled: its trouble is %s.", a.Trouble)
	}
	return nil
}

const policyColumns = `network, keep_free, most, rest_seconds::bigint * 1000000000 AS rest, idle_rest_seconds::bigint * 1000000000 AS idle_rest, user_percent,
	updated_by, updated_at, version`

const readPolicies = `SELECT ` + policyColumns + ` FROM escrow_policy ORDER BY network`

const lockPolicy = `SELECT ` + policyColumns + ` FROM escrow_policy WHERE network = $1 FOR NO KEY UPDATE`

// EscrowPolicies reads the size limits of the pools and the rest time of their addresses, by network.
func (s *Store) EscrowPolicies(ctx context.Context) ([]exchange.EscrowPolicy, error) {
	return readAll[exchange.EscrowPolicy](ctx, s.db, "escrow policy", readPolicies)
}

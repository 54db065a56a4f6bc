package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Earned fees and their sweeps. A fee in crypto stays in the custody of the wallet that paid it, where the account wallet_fees counts
// it, until a payment brings it to the treasury. Two treasury officers agree to the payments of a sweep, or to the rule by which a
// schedule makes them. What is on its way is held, so that nothing is swept twice.

// canLeave are the wallets whose fees a payment can move.
const canLeave = `w.owner_id IS NOT NULL AND w.type = 'hot' AND w.custody = 'custodial'`

const feesColumns = `a.asset, coalesce(w.network, '') AS network, a.owner_id AS wallet_id, w.owner_id, a.posted||' '||a.asset AS posted, a.held||' '||a.asset AS held,
	CASE a.kind WHEN 'fees' THEN a.asset = 'KES' AND a.posted > 0 ELSE coalesce(` + canLeave + `, false) END AS sweepable, a.updated_at`

const fromFees = `ledger_accounts a LEFT JOIN wallets w ON w.id = a.owner_id AND a.kind = 'wallet_fees'`

// FeesFilter narrows a list of earned fees.
type FeesFilter struct {
	Network  exchange.Network
	Asset    money.Asset
	WalletID uuid.UUID
}

// EarnedFees pages through what the house earned and has not swept, the most first, with the number.
func (s *Store) EarnedFees(ctx context.Context, f FeesFilter, p Page) ([]exchange.EarnedFees, int, error) {
	var w where
	w.add(`a.kind IN ('fees', 'wallet_fees') AND a.posted <> 0`)
	w.eq("w.network", string(f.Network))
	w.eq("a.asset", string(f.Asset))
	w.id("w.id", f.WalletID)
	return readPage[exchange.EarnedFees](ctx, s, "earned fees", list{columns: feesColumns, from: fromFees, where: w, order: "a.posted DESC, a.id"}, p)
}

const sweepColumns = `s.id, s.change_id, s.scheduled, s.requested_by, coalesce(s.network, '') AS network, s.wallet_id, s.amount||' '||s.asset AS amount, s.value||' KES' AS value,
	s.hold_id, s.status, s.status_detail, s.tx_hash, s.created_at, s.updated_at, s.completed_at, s.version`

const readFeeSweep = `SELECT ` + sweepColumns + ` FROM fee_sweeps s WHERE s.id = $1`

const lockFeeSweep = readFeeSweep + ` FOR NO KEY UPDATE`

// FeeSweep reads a fee sweep.
func (s *Store) FeeSweep(ctx context.Context, id uuid.UUID) (exchange.FeeSweep, error) {
	return readOne[exchange.FeeSweep](ctx, s.db, "fee sweep", readFeeSweep, id)
}

// FeeSweepFilter narrows a list of fee sweeps.
type FeeSweepFilter struct {
	Status                 exchange.FeeSweepStatus
	Network                exchange.Network
	Asset                  money.Asset
	WalletID, ChangeID     uuid.UUID
	CreatedFrom, CreatedTo time.Time // inclusive and exclusive; zero is open
}

// FeeSweeps pages through the fee sweeps, the newest first, with their number.
func (s *Store) FeeSweeps(ctx context.Context, f FeeSweepFilter, p Page) ([]exchange.FeeSweep, int, error) {
	var w where
	w.eq("s.status", string(f.Status))
	w.eq("s.network", string(f.Network))
	w.eq("s.asset", string(f.Asset))
	w.id("s.wallet_id", f.WalletID)
	w.id("s.change_id", f.ChangeID)
	w.between("s.created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.FeeSweep](ctx, s, "fee sweep", list{columns: sweepColumns, from: "fee_sweeps s", where: w, order: "s.created_at DESC, s.id DESC"}, p)
}

func feeSweepSnapshot(f exchange.FeeSweep) map[string]any {
	snapshot := map[string]any{
		"id": f.ID, "change_id": f.ChangeID, "scheduled": f.Scheduled, "requested_by": nullID(f.RequestedBy), "network": nil, "asset": f.Amount.Asset(),
		"amount": f.Amount.String(), "wallet_id": nullID(f.WalletID), "value": f.Value.String(), "status": f.Status, "status_detail": f.StatusDetail, "tx_hash": f.TxHash,
		"version": f.Version,
	}
	if f.Network != "" {
		snapshot["network"] = f.Network
	}
	return snapshot
}

// FeeSweepRequest asks for a sweep of the fees in an asset: of crypto on a network those of each wallet that has at least Least, of
// shillings Amount.
type FeeSweepRequest struct {
	ID      uuid.UUID
	Network exchange.Network
	Asset   money.Asset
	Least   money.Amount
	Amount  money.Amount
}

// feeSweepTerms are the payments of a sweep as its control change has them.
type feeSweepTerms struct {
	ID       uuid.UUID        `json:"id"`
	Network  exchange.Network `json:"network,omitempty"`
	Asset    money.Asset      `json:"asset"`
	Amount   string           `json:"amount"` // of all together
	Payments []feePayment     `json:"payments,omitempty"`
}

// feePayment is what one wallet has of fees.
type feePayment struct {
	WalletID uuid.UUID `json:"wallet_id"`
	Amount   string    `json:"amount"`
}

// The wallets with the most fees first. One whose fees are on their way is left out.
const sweepableFees = `
SELECT w.id AS wallet_id, (a.posted - a.held)||' '||a.asset AS amount FROM ledger_accounts a JOIN wallets w ON w.id = a.owner_id
WHERE a.kind = 'wallet_fees' AND a.asset = $2 AND w.network = $1 AND ` + canLeave + ` AND a.posted - a.held >= $3 AND a.posted > a.held
    AND NOT EXISTS (SELECT FROM fee_sweeps s WHERE s.wallet_id = w.id AND s.asset = a.asset AND s.status IN ('pending', 'processing'))
ORDER BY a.posted - a.held DESC, w.id LIMIT $4`

// walletFees is what can be swept of a wallet.
type walletFees struct {
	WalletID uuid.UUID
	Amount   money.Amount
}

func (t unitTx) sweepable(ctx context.Context, n exchange.Network, least money.Amount) (all []walletFees, total money.Amount, err error) {
	total = money.Zero(least.Asset())
	if err := t.All(ctx, &all, sweepableFees, n, least.Asset(), least.Decimal(), exchange.MaxFeeSweeps); err != nil {
		return nil, total, err
	}
	for _, f := range all {
		total = total.Add(f.Amount)
	}
	return all, total, nil
}

// ProposeFeeSweep proposes to bring earned fees to the treasury; another treasury officer confirms exactly these payments. CodeStateConflict
// when there is nothing to sweep, CodeUnsupported on a network where the house has no treasury wallet.
func (s *Store) ProposeFeeSweep(ctx context.Context, r FeeSweepRequest, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "fee sweep", func(t unitTx) error {
		terms := feeSweepTerms{ID: r.ID, Asset: r.Asset}
		if r.Asset == money.KES {
			terms.Amount = plain(r.Amount)
			if err := t.haveEarned(ctx, r.Amount); err != nil {
				return err
			}
		} else {
			if _, err := t.treasuryOn(ctx, r.Network); err != nil {
				return err
			}
			all, total, err := t.sweepable(ctx, r.Network, r.Least)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return exchange.Errorf(exchange.CodeStateConflict, "No wallet on %s has earned fees of that much.", r.Network)
			}
			terms.Network, terms.Amount = r.Network, plain(total)
			for _, f := range all {
				terms.Payments = append(terms.Payments, feePayment{f.WalletID, plain(f.Amount)})
			}
		}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlFeeSweep, uuid.Nil, struct{}{}, terms, by)
		return err
	})
	return proposed, err
}

const earnedShillings = `SELECT coalesce((SELECT posted FROM ledger_accounts WHERE code = 'fees:house:KES'), 0)||' KES'`

// haveEarned refuses a sweep of more shillings than the house earned. The database refuses it too.
func (t unitTx) haveEarned(ctx context.Context, m money.Amount) error {
	earned, err := readOne[money.Amount](ctx, t, "earned fees", earnedShillings)
	if err == nil && earned.Cmp(m) < 0 {
		err = exchange.Errorf(exchange.CodeInsufficientFunds, "The house has earned %s KES that are not swept yet.", earned)
	}
	return err
}

// treasuryOn is the treasury wallet of a network.
func (t unitTx) treasuryOn(ctx context.Context, n exchange.Network) (exchange.Wallet, error) {
	w, found, err := readFound[exchange.Wallet](ctx, t, readTreasury, n)
	if err == nil && !found {
		err = exchange.Errorf(exchange.CodeUnsupported, "The house has no treasury wallet on %s.", n)
	}
	return w, err
}

// applyFeeSweep opens the payments that two officers agreed on, or books the shillings.
func (t unitTx) applyFeeSweep(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var posting exchange.Posting
	terms, err := termsFrom[feeSweepTerms](c)
	if err != nil {
		return posting, err
	}
	if terms.Asset == money.KES {
		amount, err := money.Parse(terms.Asset, terms.Amount)
		if err == nil {
			err = t.haveEarned(ctx, amount)
		}
		if err != nil {
			return posting, err
		}
		return t.bookFees(ctx, exchange.FeeSweep{ID: terms.ID, ChangeID: c.ID, RequestedBy: c.ProposedBy, Amount: amount}, by)
	}
	for _, p := range terms.Payments {
		amount, err := money.Parse(terms.Asset, p.Amount)
		if err != nil {
			return posting, err
		}
		hold, err := t.openFeeSweep(ctx, exchange.FeeSweep{
			ID: uuid.NewSHA1(terms.ID, p.WalletID[:]), ChangeID: c.ID, RequestedBy: c.ProposedBy, Network: terms.Network, WalletID: p.WalletID, Amount: amount,
		}, by)
		if err != nil {
			return posting, err
		}
		posting.Holds = append(posting.Holds, hold)
	}
	return posting, nil
}

const insertFeeSweep = `
INSERT INTO fee_sweeps (id, change_id, scheduled, requested_by, network, asset, amount, wallet_id, value, hold_id, status, status_detail, created_at, updated_at)
VALUES ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9, $10, 'pending', $11, $12, $12)`

func (t unitTx) insertFeeSweep(ctx context.Context, f exchange.FeeSweep, by exchange.Principal) error {
	_, err := t.Exec(ctx, insertFeeSweep, f.ID, f.ChangeID, f.Scheduled, nullID(f.RequestedBy), f.Network, f.Amount.Asset(), f.Amount.Decimal(), nullID(f.WalletID),
		f.Value.Decimal(), nullID(f.HoldID), f.StatusDetail, f.CreatedAt)
	if pg.Broke(err, "fee_sweeps_open_key") {
		err = exchange.Wrap(exchange.CodeStateConflict, err, "Fees of a wallet are on their way already. Propose the sweep again.")
	}
	if err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "fee_sweep", id: f.ID, name: "fee_sweep.opened", after: feeSweepSnapshot(f)})
}

// openFeeSweep opens the sweep of one wallet, and returns the hold of its fees.
func (t unitTx) openFeeSweep(ctx context.Context, f exchange.FeeSweep, by exchange.Principal) (exchange.HoldOp, error) {
	var none exchange.HoldOp
	var err error
	if f.Value, _, err = t.valueOf(ctx, f.Amount); err != nil {
		return none, err
	}
	if f.HoldID, err = uuid.NewV7(); err != nil {
		return none, err
	}
	f.Status, f.StatusDetail, f.Version, f.CreatedAt = exchange.FeeSweepPending, exchange.WaitSignature, 1, t.s.now()
	if err := t.insertFeeSweep(ctx, f, by); err != nil {
		return none, err
	}
	_, err = t.announce(ctx, exchange.Release{
		Purpose: exchange.ReleaseFeeSweep, ObjectID: f.ID, House: true, Source: f.WalletID.String(), RequesterID: f.RequestedBy, Recipient: "house", Inside: true,
		Exempt: exchange.ExemptOwn, Value: f.Value, OpenedAt: f.CreatedAt,
	})
	return exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: f.HoldID, Key: feeSweepKey(f.ID), Account: exchange.Owned(exchange.AccWalletFees, f.WalletID, f.Amount.Asset()), Amount: f.Amount, ObjectType: "fee_sweep",
		ObjectID: f.ID,
	}}, err
}

// feeSweepKey is the key of a sweep's hold, or of the entry that books it.
func feeSweepKey(id uuid.UUID) string { return "fee_sweep:" + id.String() }

// bookFees books shillings that the house earned to its capital. Where they lie does not change.
func (t unitTx) bookFees(ctx context.Context, f exchange.FeeSweep, by exchange.Principal) (exchange.Posting, error) {
	f.Value, f.Status, f.StatusDetail, f.Version, f.CreatedAt = f.Amount, exchange.FeeSweepPending, exchange.WaitNothing, 1, t.s.now()
	if err := t.insertFeeSweep(ctx, f, by); err != nil {
		return exchange.Posting{}, err
	}
	done := f
	done.Status = exchange.FeeSweepCompleted
	if _, err := t.saveFeeSweep(ctx, by, f, done); err != nil {
		return exchange.Posting{}, err
	}
	return exchange.Posting{Entries: []exchange.Entry{{
		Key: feeSweepKey(f.ID), Kind: "fee_sweep.booked", ObjectType: "fee_sweep", ObjectID: f.ID, Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccFees, money.KES), f.Amount), exchange.Credit(exchange.House(exchange.AccCapital, money.KES), f.Amount),
		},
	}}}, nil
}

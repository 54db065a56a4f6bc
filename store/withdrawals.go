package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Withdrawals. What people ask for are intents that the withdrawal's flow carries out in one transaction each
// (withdrawal_steps.go); officers decide by tickets (withdrawal_decisions.go). See decision 58.

const withdrawalColumns = `w.id, w.merchant_id, w.requested_by, w.intent_id, w.status, w.status_detail AS detail, w.held_from, w.method,
    w.source_amount||' '||w.source_asset AS source, w.source_wallet_id, coalesce(s.network, '') AS source_network, w.payout_amount||' '||w.payout_asset AS payout,
    w.fee_amount||' KES' AS fee, w.fee_profile_id AS profile_id, w.fx_quote_id AS quote_id, w.rate, w.value||' KES' AS value, w.destination_id, w.digest,
    w.hold_id, w.house_hold_id, w.bank_hold_id, p.id AS payment_id, coalesce(p.tx_id, f.tx_hash, '') AS tx_hash, w.sold_at, w.executed_by, w.executed_at,
    w.transfer_intent_id, w.transfer_id, w.paid_by, w.receipt, w.statement_line_id AS line_id, w.refused_code, w.claimed, w.reason, w.ended_by, w.created_at, w.updated_at,
    w.completed_at, w.version`

const fromWithdrawals = `otc_withdrawals w LEFT JOIN wallets s ON s.id = w.source_wallet_id LEFT JOIN chain_payments p ON p.purpose = 'withdrawal' AND p.object_id = w.id
    LEFT JOIN transfers f ON f.id = w.transfer_id`

const (
	readWithdrawal       = `SELECT ` + withdrawalColumns + ` FROM ` + fromWithdrawals + ` WHERE w.id = $1`
	readScopedWithdrawal = readWithdrawal + ` AND ($2 OR w.merchant_id = $3)`
	lockWithdrawal       = `SELECT id FROM otc_withdrawals WHERE id = $1 FOR NO KEY UPDATE`
	merchantOfWithdrawal = `SELECT merchant_id FROM otc_withdrawals WHERE id = $1`
)

// lockedWithdrawal locks a withdrawal before it reads it, so that the joined tables are as new as the row.
func (t unitTx) lockedWithdrawal(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error) {
	var locked uuid.UUID
	if err := t.Get(ctx, &locked, lockWithdrawal, id); err != nil {
		return exchange.Withdrawal{}, translate(err, "withdrawal")
	}
	return readOne[exchange.Withdrawal](ctx, t, "withdrawal", readWithdrawal, id)
}

// Withdrawal reads a withdrawal that the view may see.
func (s *Store) Withdrawal(ctx context.Context, v View, id uuid.UUID) (exchange.Withdrawal, error) {
	all, _, vendor := v.args()
	return readOne[exchange.Withdrawal](ctx, s.db, "withdrawal", readScopedWithdrawal, id, all, vendor)
}

// WithdrawalByID reads a withdrawal for its own flow.
func (s *Store) WithdrawalByID(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error) {
	return s.Withdrawal(ctx, Everything(), id)
}

// WithdrawalFilter narrows a list of withdrawals.
type WithdrawalFilter struct {
	MerchantID    uuid.UUID
	DestinationID uuid.UUID
	Status        exchange.WithdrawalStatus
	Method        exchange.WithdrawalMethod
	CreatedFrom   time.Time
	CreatedTo     time.Time
}

// Withdrawals pages through the withdrawals, the newest first, with their number.
func (s *Store) Withdrawals(ctx context.Context, v View, f WithdrawalFilter, p Page) ([]exchange.Withdrawal, int, error) {
	var w where
	w.scope(v, "NULL", "w.merchant_id")
	w.id("w.merchant_id", f.MerchantID)
	w.id("w.destination_id", f.DestinationID)
	w.eq("w.status", string(f.Status))
	w.eq("w.method", string(f.Method))
	w.between("w.created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.Withdrawal](ctx, s, "withdrawal", list{columns: withdrawalColumns, from: fromWithdrawals, where: w, order: "w.created_at DESC, w.id DESC"}, p)
}

// withdrawalSnapshot is a withdrawal in events and the audit log, without personal data.
func withdrawalSnapshot(w exchange.Withdrawal) map[string]any {
	var network any
	if w.SourceNetwork != "" {
		network = w.SourceNetwork
	}
	return map[string]any{
		"id": w.ID, "merchant_id": w.MerchantID, "requested_by": w.RequestedBy, "status": w.Status, "status_detail": w.Detail, "payout_method": w.Method,
		"source_asset": w.Source.Asset(), "source_amount": w.Source.String(), "source_network": network, "payout_asset": w.Payout.Asset(), "payout_amount": w.Payout.String(),
		"fee_amount": w.Fee.String(), "rate": rateText(w.Rate), "fx_rate_quote_id": nullID(w.QuoteID), "pricing_profile_id": nullID(w.ProfileID),
		"destination_id": w.DestinationID, "executed_by": nullID(w.ExecutedBy), "transfer_id": nullID(w.TransferID), "tx_hash": w.TxHash, "receipt": w.Receipt, "version": w.Version,
	}
}

// rateText is a rate, or nil where there is none.
func rateText(r decimal.Decimal) any {
	if r.IsZero() {
		return nil
	}
	return r.String()
}

const updateWithdrawal = `
UPDATE otc_withdrawals SET status = $4, status_detail = $5, held_from = $6, hold_id = $7, house_hold_id = $8, bank_hold_id = $9, sold_at = $10, executed_by = $11, executed_at = $12,
    transfer_intent_id = $13, transfer_id = $14, paid_by = $15, receipt = $16, statement_line_id = $17, refused_code = $18, claimed = $19, reason = $20, ended_by = $21,
    failure_id = $22, completed_at = $23, updated_at = $24, version = version + 1
WHERE id = $1 AND version = $2 AND status = $3`

// outWork is one change of a withdrawal within its transaction: the row before, the row as it becomes, and who asked for what.
type outWork struct {
	unitTx
	before  exchange.Withdrawal // as it is stored
	w       exchange.Withdrawal
	by      exchange.Principal
	intent  exchange.Intent // zero when an officer decided, or the flow acts by a rule
	step    exchange.WithdrawalStep
	failure uuid.UUID // the change by which two officers end it
	now     time.Time
	post    exchange.Posting
}

// workWithdrawal runs a change of a withdrawal under its lock.
func (s *Store) workWithdrawal(ctx context.Context, id uuid.UUID, do func(context.Context, *outWork) error) (exchange.Withdrawal, error) {
	return change(ctx, s, "withdrawal", id, func(ctx context.Context, t unitTx) (exchange.Withdrawal, exchange.Posting, error) {
		w, err := t.startWithdrawal(ctx, id)
		if err == nil {
			err = do(ctx, w)
		}
		if err != nil {
			return exchange.Withdrawal{}, exchange.Posting{}, err
		}
		return w.w, w.post, nil
	})
}

func (t unitTx) startWithdrawal(ctx context.Context, id uuid.UUID) (*outWork, error) {
	w, err := t.lockedWithdrawal(ctx, id)
	return t.workOn(w), err
}

// workOn begins a change of a locked withdrawal.
func (t unitTx) workOn(w exchange.Withdrawal) *outWork {
	return &outWork{unitTx: t, before: w, w: w, by: flow, now: t.s.now()}
}

// move stores the withdrawal in a status, which may be the one that it has. What stays as it was is not stored.
func (w *outWork) move(ctx context.Context, to exchange.WithdrawalStatus, detail string) error {
	name := "otc_withdrawal.changed"
	if to != w.before.Status {
		name = "otc_withdrawal." + string(to)
		if err := exchange.WithdrawalMachine.Allow(w.before.Status, to); err != nil {
			return err
		}
	}
	if w.w.Status, w.w.Detail = to, detail; w.w == w.before {
		return nil
	}
	return w.save(ctx, name)
}

// save stores the withdrawal as it becomes. The next change of the same transaction begins with it.
func (w *outWork) save(ctx context.Context, name string) error {
	o := w.w
	n, err := w.Exec(ctx, updateWithdrawal, o.ID, w.before.Version, w.before.Status, o.Status, o.Detail, o.HeldFrom, o.HoldID, nullID(o.HouseHoldID), nullID(o.BankHoldID), nullTime(o.SoldAt),
		nullID(o.ExecutedBy), nullTime(o.ExecutedAt), nullID(o.TransferIntentID), nullID(o.TransferID), nullID(o.PaidBy), o.Receipt, nullID(o.LineID), clip(o.RefusedCode, 40), o.Claimed,
		o.Reason, nullID(o.EndedBy), nullID(w.failure), nullTime(o.CompletedAt), w.now)
	if err == nil && n == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return err
	}
	before := w.before
	if w.w, err = readOne[exchange.Withdrawal](ctx, w, "withdrawal", readWithdrawal, o.ID); err != nil {
		return err
	}
	w.before = w.w
	event := w.event(name)
	event.before = withdrawalSnapshot(before)
	return w.record(ctx, event)
}

// event is an event of the withdrawal as it is, for its merchant.
func (w *outWork) event(name string) auditEvent {
	return auditEvent{by: w.by, object: "otc_withdrawal", id: w.w.ID, name: name, owner: w.w.MerchantID, vendor: w.w.MerchantID, after: withdrawalSnapshot(w.w)}
}

// book adds an entry of the ledger about the withdrawal. Lines without an amount are left out.
func (w *outWork) book(what string, lines ...exchange.Line) {
	w.post.Entries = append(w.post.Entries, exchange.Entry{
		Key: "otc_withdrawal:" + w.w.ID.String() + ":" + what, Kind: "otc_withdrawal." + what, ObjectType: "otc_withdrawal", ObjectID: w.w.ID, Lines: exchange.Lines(lines...),
	})
}

// hold adds a hold of money for the withdrawal, and returns its id.
func (w *outWork) hold(what string, account exchange.AccountRef, m money.Amount) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, err
	}
	w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: id, Key: "otc_withdrawal:" + w.w.ID.String() + ":" + what + ":" + id.String(), Account: account, Amount: m, ObjectType: "otc_withdrawal", ObjectID: w.w.ID,
	}})
	return id, nil
}

// settle uses a hold up, or frees it. One that there is not is fine.
func (w *outWork) settle(verb exchange.HoldVerb, id uuid.UUID) {
	if id != uuid.Nil {
		w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: verb, Hold: exchange.Hold{ID: id}})
	}
}

// balance is the merchant's shillings.
func (w *outWork) balance() exchange.AccountRef {
	return exchange.Owned(exchange.AccFiatBalance, w.w.MerchantID, money.KES)
}

const (
	readWithdrawalApprovals = `
SELECT a.object_id AS withdrawal_id, a.officer_id, a.action, k.note, a.created_at AS at, u.is_active AND u.role IN ('admin', 'treasury') AS counts
FROM approvals a JOIN approval_tokens k ON k.id = a.token_id JOIN users u ON u.id = a.officer_id
WHERE a.object_type = 'otc_withdrawal' AND a.object_id = ANY ($1::uuid[]) ORDER BY a.created_at, a.id`
	readWithdrawalReleases = `
SELECT DISTINCT ON (r.object_id) r.object_id AS id, r.officers AS needed, release_approvals(r) AS approvals
FROM releases r WHERE r.purpose = 'withdrawal' AND r.object_id = ANY ($1::uuid[]) ORDER BY r.object_id, r.opened_at DESC, r.id DESC`
	destinationsByID = `SELECT ` + destinationColumns + ` FROM ` + fromDestinations + ` WHERE d.id = ANY ($1::uuid[])`
)

// WithdrawalFacts is what belongs to a withdrawal.
type WithdrawalFacts struct {
	Destination   exchange.Destination
	Approvals     []exchange.WithdrawalApproval // decisions of officers, the oldest first
	Needed        int                           // officers, as the rule of all that leaves was judged last
	Counting      int                           // officers who approved it and may still approve
	Confirmations []exchange.BankConfirmation   // what officers say of its payment by bank, the oldest first
}

// FactsOfWithdrawals reads what belongs to withdrawals, by their ids.
func (s *Store) FactsOfWithdrawals(ctx context.Context, all []exchange.Withdrawal) (map[uuid.UUID]WithdrawalFacts, error) {
	ids := make([]uuid.UUID, len(all))
	for i, w := range all {
		ids[i] = w.ID
	}
	to, err := s.DestinationsOf(ctx, all)
	if err != nil {
		return nil, err
	}
	decisions, err := readAll[exchange.WithdrawalApproval](ctx, s.db, "approval", readWithdrawalApprovals, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	said, err := readAll[exchange.BankConfirmation](ctx, s.db, "confirmation", withdrawalConfirmations, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	releases, err := readAll[struct {
		ID                uuid.UUID
		Needed, Approvals int
	}](ctx, s.db, "release", readWithdrawalReleases, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	facts := map[uuid.UUID]WithdrawalFacts{}
	for _, w := range all {
		f := WithdrawalFacts{Destination: to[w.DestinationID]}
		for _, d := range decisions {
			if d.WithdrawalID == w.ID {
				f.Approvals = append(f.Approvals, d)
			}
		}
		for _, c := range said {
			if c.WithdrawalID == w.ID {
				f.Confirmations = append(f.Confirmations, c)
			}
		}
		for _, r := range releases {
			if r.ID == w.ID {
				f.Needed, f.Counting = r.Needed, r.Approvals
			}
		}
		facts[w.ID] = f
	}
	return facts, nil
}

// DestinationsOf reads the destinations of withdrawals, by their ids. They never change.
func (s *Store) DestinationsOf(ctx context.Context, all []exchange.Withdrawal) (map[uuid.UUID]exchange.Destination, error) {
	ids := make([]uuid.UUID, len(all))
	for i, w := range all {
		ids[i] = w.DestinationID
	}
	rows, err := readAll[exchange.Destination](ctx, s.db, "destination", destinationsByID, pq.Array(ids))
	byID := map[uuid.UUID]exchange.Destination{}
	for _, d := range rows {
		byID[d.ID] = d
	}
	return byID, err
}

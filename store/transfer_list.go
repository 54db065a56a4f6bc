package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// TransferFilter narrows a list of transfers; the interval is half open.
type TransferFilter struct {
	Status      exchange.TransferStatus
	Kind        exchange.TransferKind
	Network     exchange.Network
	WalletID    uuid.UUID // the sending or receiving wallet
	Asset       money.Asset
	Counterpart uuid.UUID // the sending or receiving user
	CreatedFrom time.Time
	CreatedTo   time.Time
}

const transferColumns = `f.id, f.kind, f.requested_by, f.sender_id, f.vendor_id, f.recipient_id, f.recipient_vendor_id, f.network, f.amount||' '||f.asset AS amount,
	f.wallet_id, f.wallet_type, f.from_address, f.to_wallet_id, f.to_address, f.note, f.value||' KES' AS value, f.rate, v.officers AS approvals_required, v.rests_until,
	(SELECT count(*) FROM approvals a JOIN users u ON u.id = a.officer_id WHERE a.object_type = 'transfer' AND a.object_id = f.id
		AND a.action = 'approve' AND (f.status <> 'pending_approval' OR u.is_active AND u.role IN ('admin', 'treasury'))) AS approvals,
	f.digest, f.status, f.status_detail, f.hold_id, (SELECT p.id FROM chain_payments p WHERE p.purpose = 'transfer' AND p.object_id = f.id) AS payment_id,
	f.tx_hash, f.created_at, f.updated_at, f.completed_at, f.version, f.fee||' '||f.asset AS fee, f.fee_profile_id,
	f.fee_hold_id, f.fx_quote_id AS quote_id, f.fiat_amount||' KES' AS quoted_fiat, f.fiat_rate AS quoted_rate`

// transferTables are the transfers with what the rule about all that leaves last said of them.
const transferTables = `transfers f LEFT JOIN releases v ON v.purpose = 'transfer' AND v.object_id = f.id`

// transferSnapshot is a transfer in events and audit rows, without its free-text note.
func transferSnapshot(f exchange.Transfer) map[string]any {
	return map[string]any{
		"id": f.ID, "kind": f.Kind, "requested_by": f.RequestedBy, "network": f.Network, "asset": f.Amount.Asset(), "amount": f.Amount.String(),
		"from_wallet_id": f.WalletID, "from_address": f.FromAddress, "to_wallet_id": nullID(f.ToWalletID), "to_address": f.ToAddress,
		"value": f.Value.String(), "fee": f.Fee.String(), "fx_rate_quote_id": nullID(f.QuoteID), "approvals_required": f.ApprovalsRequired,
		"status": f.Status, "status_detail": f.StatusDetail,
		"tx_hash": f.TxHash, "version": f.Version,
	}
}

func transferRecord(name string, by exchange.Principal, before *exchange.Transfer, after exchange.Transfer) auditEvent {
	f := auditEvent{by: by, object: "transfer", id: after.ID, name: name, owner: after.SenderID, vendor: after.VendorID, after: transferSnapshot(after)}
	if before != nil {
		f.before = transferSnapshot(*before)
	}
	return f
}

const readTransfer = `SELECT ` + transferColumns + ` FROM ` + transferTables + ` WHERE f.id = $1`

// Both the recipient and the sender may see a transfer.
const readScopedTransfer = `SELECT ` + transferColumns + ` FROM ` + transferTables + `
WHERE f.id = $1 AND ($2 OR f.sender_id = $3 OR f.recipient_id = $3 OR f.vendor_id = $4 OR f.recipient_vendor_id = $4)`

// Only the sender may act on a transfer.
const readSentTransfer = `SELECT ` + transferColumns + ` FROM ` + transferTables + ` WHERE f.id = $1 AND ($2 OR f.sender_id = $3 OR f.vendor_id = $4)`

// TransferByID reads a transfer for its own flow.
func (s *Store) TransferByID(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return s.Transfer(ctx, Everything(), id)
}

// Transfer reads a transfer that the view's owner sent or received.
func (s *Store) Transfer(ctx context.Context, v View, id uuid.UUID) (exchange.Transfer, error) {
	return s.oneTransfer(ctx, readScopedTransfer, v, id)
}

// SentTransfer reads a transfer that the view's owner sent, and may therefore act on.
func (s *Store) SentTransfer(ctx context.Context, v View, id uuid.UUID) (exchange.Transfer, error) {
	return s.oneTransfer(ctx, readSentTransfer, v, id)
}

func (s *Store) oneTransfer(ctx context.Context, query string, v View, id uuid.UUID) (exchange.Transfer, error) {
	all, owner, vendor := v.args()
	return readOne[exchange.Transfer](ctx, s.db, "transfer", query, id, all, owner, vendor)
}

// ListTransfers pages through the transfers that were sent or received, newest first, with their number.
func (s *Store) ListTransfers(ctx context.Context, v View, f TransferFilter, p Page) ([]exchange.Transfer, int, error) {
	var w where
	switch all, owner, vendor := v.args(); {
	case all:
	case owner.Valid:
		w.add(`(f.sender_id = ? OR f.recipient_id = ?)`, owner.UUID, owner.UUID)
	case vendor.Valid:
		w.add(`(f.vendor_id = ? OR f.recipient_vendor_id = ?)`, vendor.UUID, vendor.UUID)
	default:
		w.add(`false`)
	}
	w.eq("f.status", string(f.Status))
	w.eq("f.kind", string(f.Kind))
	w.eq("f.network", string(f.Network))
	if f.WalletID != uuid.Nil {
		w.add(`(f.wallet_id = ? OR f.to_wallet_id = ?)`, f.WalletID, f.WalletID)
	}
	w.eq("f.asset", string(f.Asset))
	if f.Counterpart != uuid.Nil {
		w.add(`(f.sender_id = ? OR f.recipient_id = ?)`, f.Counterpart, f.Counterpart)
	}
	w.between("f.created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.Transfer](ctx, s, "transfer", list{columns: transferColumns, from: transferTables, where: w, order: "f.created_at DESC, f.id DESC"}, p)
}

const lockTransfer = `SELECT id FROM transfers WHERE id = $1 FOR NO KEY UPDATE`

// lockedTransfer locks a transfer before it reads it, so that the joined tables are as new as the row.
func (t unitTx) lockedTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	var locked uuid.UUID
	if err := t.Get(ctx, &locked, lockTransfer, id); err != nil {
		return exchange.Transfer{}, translate(err, "transfer")
	}
	return readOne[exchange.Transfer](ctx, t, "transfer", readTransfer, id)
}

const saveTransfer = `
UPDATE transfers SET status = $2, status_detail = $3, tx_hash = $4, completed_at = $5, updated_at = $6, version = version + 1
WHERE id = $1 AND version = $7 AND status = ANY ($8)`

// saveTransfer stores a transfer that differs from before, with its event and audit row.
func (t unitTx) saveTransfer(ctx context.Context, name string, by exchange.Principal, before, f exchange.Transfer) (exchange.Transfer, error) {
	from := []exchange.TransferStatus{before.Status}
	if f.Status != before.Status {
		if err := exchange.TransferMachine.Allow(before.Status, f.Status); err != nil {
			return before, err
		}
		from = exchange.TransferMachine.Sources(f.Status)
	}
	f.UpdatedAt = t.s.now()
	if f.Status == exchange.TransferCompleted {
		f.CompletedAt = f.UpdatedAt
	}
	err := t.One(ctx, saveTransfer, f.ID, f.Status, f.StatusDetail, f.TxHash, nullTime(f.CompletedAt), f.UpdatedAt, before.Version, pq.Array(from))
	if err != nil {
		return before, err
	}
	f.Version++
	return f, t.record(ctx, transferRecord(name, by, &before, f))
}

// moveTransfer is saveTransfer for a new status with its detail.
func (t unitTx) moveTransfer(ctx context.Context, by exchange.Principal, before exchange.Transfer, to exchange.TransferStatus, detail string) (exchange.Transfer, error) {
	f := before
	f.Status, f.StatusDetail = to, detail
	return t.saveTransfer(ctx, "transfer."+string(to), by, before, f)
}

// SetTransferDetail stores what a transfer waits for. It does nothing to one that has ended.
func (s *Store) SetTransferDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, before exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		if before.StatusDetail == detail || before.Over() {
			return before, exchange.Posting{}, nil
		}
		f := before
		f.StatusDetail = clip(detail, 200)
		f, err := t.saveTransfer(ctx, "transfer.detail_changed", flow, before, f)
		return f, exchange.Posting{}, err
	})
}

// stepTransfer runs one step of a locked transfer as a unit.
func (s *Store) stepTransfer(ctx context.Context, id uuid.UUID,
	step func(context.Context, unitTx, exchange.Transfer) (exchange.Transfer, exchange.Posting, error),
) (exchange.Transfer, error) {
	return change(ctx, s, "transfer", id, func(ctx context.Context, t unitTx) (exchange.Transfer, exchange.Posting, error) {
		before, err := t.lockedTransfer(ctx, id)
		if err != nil {
			return before, exchange.Posting{}, err
		}
		return step(ctx, t, before)
	})
}

const readTransferTimeline = `SELECT ` + eventColumns + ` FROM events WHERE cursor IN (SELECT cursor FROM event_keys WHERE (object_type, object_id) IN (
    SELECT 'transfer', $1::uuid
    UNION ALL SELECT 'chain_payment', id FROM chain_payments WHERE purpose = 'transfer' AND object_id = $1))
ORDER BY cursor LIMIT 1000`

// TransferTimeline lists the events of a transfer and of its payment, oldest first, for its sender.
func (s *Store) TransferTimeline(ctx context.Context, v View, id uuid.UUID) ([]exchange.Event, error) {
	if _, err := s.SentTransfer(ctx, v, id); err != nil {
		return nil, err
	}
	return readAll[exchange.Event](ctx, s.db, "event", readTransferTimeline, id)
}

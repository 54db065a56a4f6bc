package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// OTC deposits. Each verb is an intent that the deposit's flow carries out in one transaction (otc_steps.go); see decision 53.

// otcColumns are the columns of a deposit d, with its proof and its wallet.
const otcColumns = `d.id, d.merchant_id, d.created_by, d.method, d.fiat_amount||' KES' AS fiat, d.status, d.status_detail AS detail, d.payment_reference AS reference,
	d.bank_account_id AS bank_id, d.expires_at, d.transfer_date, d.sender_account_name AS sender_name, d.sender_last4, d.sender_bank_name AS sender_bank,
	d.sender_bank_branch AS sender_branch, d.receipt_number, d.proof_file_id AS proof_id, coalesce(f.name, '') AS proof_name, coalesce(f.content_type, '') AS proof_type,
	coalesce(f.size_bytes, 0) AS proof_size, coalesce(encode(f.sha256, 'hex'), '') AS proof_sha256, d.proof_at,
	coalesce(d.asset, '') AS asset, coalesce(d.network, '') AS network, d.to_wallet_id, coalesce(w.address, '') AS to_address, d.requested_crypto||' '||d.asset AS requested_crypto,
	d.fx_quote_id AS quote_id, d.fee_profile_id AS profile_id, d.rate, d.fee_amount||' KES' AS fee, d.quoted_fiat||' KES' AS quoted_fiat, d.quote_ends_at,
	d.crypto_amount||' '||d.asset AS crypto, d.phone, d.merchant_request_id, d.checkout_request_id, d.momo_receipt, d.named_payment_id, d.named_by, d.named_second, d.automatic_at, d.received_amount||' KES' AS received, d.value_date,
	d.received_at, d.statement_line_id AS line_id, d.bank_reference AS bank_ref, d.assigned_to, d.claimed_by, d.claim_expires_at AS claim_ends_at, d.confirmed_by, d.confirmed_at,
	d.agreed_by, d.credited_by, d.credited_at, d.transfer_intent_id, d.transfer_id, d.audited_by, d.audited_at, d.rejected_by, d.rejected_at, d.reason, d.held_from, d.info_request, d.info_reply,
	d.internal_note, d.flags, d.submitted_at, d.intent_id, d.created_at, d.updated_at, d.version`

const fromOTC = `otc_deposits d LEFT JOIN files f ON f.id = d.proof_file_id LEFT JOIN wallets w ON w.id = d.to_wallet_id`

const (
	readOTC           = `SELECT ` + otcColumns + ` FROM ` + fromOTC + ` WHERE d.id = $1`
	readScopedOTC     = readOTC + ` AND ($2 OR d.created_by = $3 OR d.merchant_id = $4)`
	lockOTC           = `SELECT id FROM otc_deposits WHERE id = $1 FOR NO KEY UPDATE`
	merchantOfDeposit = `SELECT merchant_id FROM otc_deposits WHERE id = $1`
)

// lockedOTC locks a deposit before it reads it, so that the joined tables are as new as the row.
func (t unitTx) lockedOTC(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, error) {
	var locked uuid.UUID
	if err := t.Get(ctx, &locked, lockOTC, id); err != nil {
		return exchange.OTCDeposit{}, translate(err, "OTC deposit")
	}
	return readOne[exchange.OTCDeposit](ctx, t, "OTC deposit", readOTC, id)
}

// OTCDepositByID reads a deposit for its own flow.
func (s *Store) OTCDepositByID(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, error) {
	return s.OTCDeposit(ctx, Everything(), id)
}

// OTCDeposit reads a deposit that the view may see. What only staff may see of it is there; the API leaves it out for others.
func (s *Store) OTCDeposit(ctx context.Context, v View, id uuid.UUID) (exchange.OTCDeposit, error) {
	all, owner, vendor := v.args()
	return readOne[exchange.OTCDeposit](ctx, s.db, "OTC deposit", readScopedOTC, id, all, owner, vendor)
}

// otcField is a column of a deposit that changes, with its value.
type otcField struct {
	column string
	value  func(d *exchange.OTCDeposit) any
}

// otcFields are the columns that change, in the order of their arguments.
var otcFields = []otcField{
	{"method", func(d *exchange.OTCDeposit) any { return d.Method }},
	{"fiat_amount", func(d *exchange.OTCDeposit) any { return d.Fiat }},
	{"status", func(d *exchange.OTCDeposit) any { return d.Status }},
	{"status_detail", func(d *exchange.OTCDeposit) any { return d.Detail }},
	{"bank_account_id", func(d *exchange.OTCDeposit) any { return d.BankID }},
	{"expires_at", func(d *exchange.OTCDeposit) any { return d.ExpiresAt }},
	{"transfer_date", func(d *exchange.OTCDeposit) any { return d.TransferDate }},
	{"sender_account_name", func(d *exchange.OTCDeposit) any { return d.SenderName }},
	{"sender_last4", func(d *exchange.OTCDeposit) any { return d.SenderLast4 }},
	{"sender_bank_name", func(d *exchange.OTCDeposit) any { return d.SenderBank }},
	{"sender_bank_branch", func(d *exchange.OTCDeposit) any { return d.SenderBranch }},
	{"receipt_number", func(d *exchange.OTCDeposit) any { return d.ReceiptNumber }},
	{"proof_file_id", func(d *exchange.OTCDeposit) any { return d.ProofID }},
	{"proof_at", func(d *exchange.OTCDeposit) any { return d.ProofAt }},
	{"asset", func(d *exchange.OTCDeposit) any { return orNull(d.Asset) }},
	{"network", func(d *exchange.OTCDeposit) any { return orNull(d.Network) }},
	{"to_wallet_id", func(d *exchange.OTCDeposit) any { return d.ToWalletID }},
	{"requested_crypto", func(d *exchange.OTCDeposit) any { return d.RequestedCrypto }},
	{"fx_quote_id", func(d *exchange.OTCDeposit) any { return d.QuoteID }},
	{"fee_profile_id", func(d *exchange.OTCDeposit) any { return d.ProfileID }},
	{"rate", func(d *exchange.OTCDeposit) any { return decimal.NullDecimal{Decimal: d.Rate, Valid: !d.Rate.IsZero()} }},
	{"fee_amount", func(d *exchange.OTCDeposit) any { return d.Fee.Decimal() }},
	{"quoted_fiat", func(d *exchange.OTCDeposit) any { return d.QuotedFiat }},
	{"quote_ends_at", func(d *exchange.OTCDeposit) any { return d.QuoteEndsAt }},
	{"crypto_amount", func(d *exchange.OTCDeposit) any { return d.Crypto }},
	{"phone", func(d *exchange.OTCDeposit) any { return d.Phone.Digits() }},
	{"merchant_request_id", func(d *exchange.OTCDeposit) any { return d.MerchantRequestID }},
	{"checkout_request_id", func(d *exchange.OTCDeposit) any { return d.CheckoutRequestID }},
	{"momo_receipt", func(d *exchange.OTCDeposit) any { return d.MomoReceipt }},
	{"named_payment_id", func(d *exchange.OTCDeposit) any { return d.NamedPaymentID }},
	{"named_by", func(d *exchange.OTCDeposit) any { return d.NamedBy }},
	{"named_second", func(d *exchange.OTCDeposit) any { return d.NamedSecond }},
	{"automatic_at", func(d *exchange.OTCDeposit) any { return d.AutomaticAt }},
	{"received_amount", func(d *exchange.OTCDeposit) any { return d.Received }},
	{"value_date", func(d *exchange.OTCDeposit) any { return d.ValueDate }},
	{"received_at", func(d *exchange.OTCDeposit) any { return d.ReceivedAt }},
	{"statement_line_id", func(d *exchange.OTCDeposit) any { return d.LineID }},
	{"bank_reference", func(d *exchange.OTCDeposit) any { return d.BankRef }},
	{"assigned_to", func(d *exchange.OTCDeposit) any { return d.AssignedTo }},
	{"claimed_by", func(d *exchange.OTCDeposit) any { return d.ClaimedBy }},
	{"claim_expires_at", func(d *exchange.OTCDeposit) any { return d.ClaimEndsAt }},
	{"confirmed_by", func(d *exchange.OTCDeposit) any { return d.ConfirmedBy }},
	{"confirmed_at", func(d *exchange.OTCDeposit) any { return d.ConfirmedAt }},
	{"agreed_by", func(d *exchange.OTCDeposit) any { return d.AgreedBy }},
	{"credited_by", func(d *exchange.OTCDeposit) any { return d.CreditedBy }},
	{"credited_at", func(d *exchange.OTCDeposit) any { return d.CreditedAt }},
	{"transfer_intent_id", func(d *exchange.OTCDeposit) any { return d.TransferIntentID }},
	{"transfer_id", func(d *exchange.OTCDeposit) any { return d.TransferID }},
	{"audited_by", func(d *exchange.OTCDeposit) any { return d.AuditedBy }},
	{"audited_at", func(d *exchange.OTCDeposit) any { return d.AuditedAt }},
	{"rejected_by", func(d *exchange.OTCDeposit) any { return d.RejectedBy }},
	{"rejected_at", func(d *exchange.OTCDeposit) any { return d.RejectedAt }},
	{"reason", func(d *exchange.OTCDeposit) any { return d.Reason }},
	{"held_from", func(d *exchange.OTCDeposit) any { return d.HeldFrom }},
	{"info_request", func(d *exchange.OTCDeposit) any { return d.InfoRequest }},
	{"info_reply", func(d *exchange.OTCDeposit) any { return d.InfoReply }},
	{"internal_note", func(d *exchange.OTCDeposit) any { return d.InternalNote }},
	{"flags", func(d *exchange.OTCDeposit) any { return pq.Array(d.Flags) }},
	{"submitted_at", func(d *exchange.OTCDeposit) any { return d.SubmittedAt }},
	{"updated_at", func(d *exchange.OTCDeposit) any { return d.UpdatedAt }},
}

// orNull is a text of a domain that has no empty value.
func orNull[T ~string](v T) any {
	if v == "" {
		return nil
	}
	return string(v)
}

// otcValues are the values of the columns that change.
func otcValues(d exchange.OTCDeposit) []any {
	values := make([]any, len(otcFields))
	for i, f := range otcFields {
		switch v := f.value(&d).(type) {
		case uuid.UUID:
			values[i] = nullID(v)
		case time.Time:
			values[i] = nullTime(v)
		case money.Amount:
			values[i] = nullAmount(v)
		default:
			values[i] = v
		}
	}
	return values
}

var updateOTC, insertOTC = func() (update, insert string) {
	var sets, columns, marks []string
	for i, f := range otcFields {
		sets = append(sets, fmt.Sprintf("%s = $%d", f.column, i+4))
		columns, marks = append(columns, f.column), append(marks, fmt.Sprintf("$%d", i+1))
	}
	for i, own := range []string{"id", "merchant_id", "created_by", "payment_reference", "intent_id", "created_at"} {
		columns, marks = append(columns, own), append(marks, fmt.Sprintf("$%d", len(otcFields)+i+1))
	}
	return `UPDATE otc_deposits SET ` + strings.Join(sets, ", ") + `, version = version + 1 WHERE id = $1 AND version = $2 AND status = $3`,
		`INSERT INTO otc_deposits (` + strings.Join(columns, ", ") + `) VALUES (` + strings.Join(marks, ", ") + `)`
}()

// otcSnapshot is a deposit in events and audit rows, as its merchant may see it: without names, numbers and what only staff see.
func otcSnapshot(d exchange.OTCDeposit) map[string]any {
	amount := func(m money.Amount) any {
		if m.Asset() == "" {
			return nil
		}
		return m.String()
	}
	snapshot := map[string]any{
		"id": d.ID, "merchant_id": d.MerchantID, "method": d.Method, "fiat_amount": amount(d.Fiat), "fiat_currency": money.KES, "status": d.Status, "status_detail": d.Detail,
		"payment_reference": d.Reference, "requested_asset": d.Asset, "requested_network": d.Network, "fx_rate_quote_id": nullID(d.QuoteID), "rate": d.Rate.String(),
		"fee_amount": d.Fee.String(), "usdt_amount": amount(d.Crypto), "received_amount": amount(d.Received), "value_date": nil, "statement_line_id": nullID(d.LineID),
		"transfer_id": nullID(d.TransferID), "proof_file_id": nullID(d.ProofID), "proof_file_sha256": d.ProofSHA256, "version": d.Version,
	}
	if !d.ValueDate.IsZero() {
		snapshot["value_date"] = d.ValueDate.Format(time.DateOnly)
	}
	return snapshot
}

// otcReview is what only staff see of a deposit: who works on it, and its flags.
func otcReview(d exchange.OTCDeposit) map[string]any {
	return map[string]any{
		"id": d.ID, "assigned_to": nullID(d.AssignedTo), "claimed_by": nullID(d.ClaimedBy), "claim_expires_at": nullTime(d.ClaimEndsAt), "confirmed_by": nullID(d.ConfirmedBy),
		"agreed_by": nullID(d.AgreedBy), "credited_by": nullID(d.CreditedBy), "audited_by": nullID(d.AuditedBy), "rejected_by": nullID(d.RejectedBy), "flags": d.Flags,
		"bank_reference": d.BankRef, "internal_note": d.InternalNote, "named_payment_id": nullID(d.NamedPaymentID), "named_by": nullID(d.NamedBy),
		"named_second": nullID(d.NamedSecond),
	}
}

// OTCFilter narrows a list of deposits; the interval is half open.
type OTCFilter struct {
	Status                 exchange.OTCStatus
	Method                 exchange.OTCMethod
	Asset                  money.Asset
	Network                exchange.Network
	MerchantID             uuid.UUID
	Reference              string
	Flag                   exchange.OTCFlag // for staff only
	CreatedFrom, CreatedTo time.Time
}

// OTCDeposits pages through the deposits, newest first, with their number. One of crypto whose wallet is not stored yet shows the one
// that its merchant has now.
func (s *Store) OTCDeposits(ctx context.Context, v View, f OTCFilter, p Page) ([]exchange.OTCDeposit, int, error) {
	var w where
	w.scope(v, "d.created_by", "d.merchant_id")
	w.eq("d.status", string(f.Status))
	w.eq("d.method", string(f.Method))
	w.eq("d.asset", string(f.Asset))
	w.eq("d.network", string(f.Network))
	w.id("d.merchant_id", f.MerchantID)
	w.eq("d.payment_reference", exchange.BankReference(f.Reference))
	if f.Flag != "" {
		w.add(`? = ANY (d.flags)`, string(f.Flag))
	}
	w.between("d.created_at", f.CreatedFrom, f.CreatedTo)
	all, total, err := readPage[exchange.OTCDeposit](ctx, s, "OTC deposit", list{columns: otcColumns, from: fromOTC, where: w, order: "d.created_at DESC, d.id DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	for i, d := range all {
		if d.Sells() && d.Network != "" && d.ToWalletID == uuid.Nil && !d.Over() {
			if err := resolveOTCWallet(ctx, s.db, &all[i]); err != nil {
				return nil, 0, translate(err, "wallet")
			}
		}
	}
	return all, total, nil
}

// The wallet that the treasury credits: the master merchant's default of the network, then that of its oldest subvendor with one.
const readOTCWallet = `
SELECT w.id, w.address FROM wallets w JOIN users u ON u.id = w.owner_id
WHERE w.vendor_id = $1 AND w.network = $2 AND w.is_default AND w.custody = 'custodial' AND u.is_active
ORDER BY u.id <> $1, u.created_at, u.id LIMIT 1`

func resolveOTCWallet(ctx context.Context, from reader, d *exchange.OTCDeposit) error {
	found, ok, err := readFound[struct {
		ID      uuid.UUID
		Address string
	}](ctx, from, readOTCWallet, d.MerchantID, d.Network)
	if err == nil && ok {
		d.ToWalletID, d.ToAddress = found.ID, found.Address
	}
	return err
}

// OTCQueueFilter narrows the queue: deposits of an officer, or of nobody.
type OTCQueueFilter struct {
	AssignedTo uuid.UUID
	Method     exchange.OTCMethod
}

// MaxQueueCount is how many deposits of the queue are counted: a queue with more is long, however long.
const MaxQueueCount = 1000

// OTCQueue pages through the deposits that wait for an officer, with their number up to MaxQueueCount: those whose money is known first,
// the oldest money before newer, then the others by their submission. Mobile money waits for an officer when it came, or when one named a
// payment that another one has to name too. Two indexes have this order.
func (s *Store) OTCQueue(ctx context.Context, f OTCQueueFilter, p Page) ([]exchange.OTCDeposit, int, error) {
	var w where
	w.add(`d.status IN ('pending', 'assigned')`)
	if f.AssignedTo != uuid.Nil {
		w.add(`d.status = 'assigned' AND d.assigned_to = ?`, f.AssignedTo)
	}
	w.add(`(d.method = 'bank' OR d.received_at IS NOT NULL OR d.named_payment_id IS NOT NULL)`)
	w.eq("d.method", string(f.Method))
	const from = `otc_deposits d`
	var all []exchange.OTCDeposit
	var total int
	limit, offset := p.bounds()
	err := s.db.Planned(ctx, func(t pg.Tx) error {
		counted := append(slices.Clone(w.args), MaxQueueCount)
		if err := t.BuiltOne(ctx, &total, `SELECT count(*) FROM (SELECT FROM `+from+w.sql()+` LIMIT ?) q`, counted...); err != nil {
			return err
		}
		return t.Built(ctx, &all, `SELECT `+otcColumns+` FROM `+fromOTC+w.sql()+` ORDER BY d.received_at, d.submitted_at, d.id LIMIT ? OFFSET ?`,
			append(slices.Clone(w.args), limit, offset)...)
	})
	return all, total, translate(err, "OTC deposit")
}

const readOTCTrail = `SELECT ` + auditColumns + ` FROM audit_log a LEFT JOIN audit_seals s ON s.audit_id = a.id
WHERE a.id > $2 AND (a.object_type, a.object_id) IN (
    SELECT 'otc_deposit', $1::uuid
    UNION ALL SELECT 'file', file_id FROM file_uses WHERE object_type = 'otc_deposit' AND object_id = $1
    UNION ALL SELECT 'fx_quote', id FROM fx_quotes WHERE object_type = 'otc_deposit' AND object_id = $1
    UNION ALL SELECT 'bank_line', id FROM bank_lines WHERE object_type = 'otc_deposit' AND object_id = $1
    UNION ALL SELECT 'c2b_payment', id FROM c2b_payments WHERE object_type = 'otc_deposit' AND object_id = $1
    UNION ALL SELECT 'payment_attempt', id FROM payment_attempts WHERE object_type = 'otc_deposit' AND object_id = $1
    UNION ALL SELECT 'payment_exception', id FROM payment_exceptions WHERE deposit_id = $1
    UNION ALL SELECT 'transfer', transfer_id FROM otc_deposits WHERE id = $1 AND transfer_id IS NOT NULL)
ORDER BY a.id LIMIT $3`

// OTCTrail reads the story of a deposit from the audit log, oldest first: of itself, its files, quotes, statement line, payments,
// exceptions and transfer. It begins after a record, whose id is zero for the beginning, and has at most limit records.
func (s *Store) OTCTrail(ctx context.Context, v View, id uuid.UUID, after int64, limit int) ([]exchange.AuditRecord, error) {
	if _, err := s.OTCDeposit(ctx, v, id); err != nil {
		return nil, err
	}
	rows, err := readAll[auditRow](ctx, s.db, "audit record", readOTCTrail, id, after, limit)
	if err != nil {
		return nil, err
	}
	return convert(rows, auditRow.record)
}

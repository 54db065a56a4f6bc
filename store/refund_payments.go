package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// refundPayment is a refund that a chain payment carries out.
type refundPayment struct {
	order  exchange.Order // zero when the money belongs to no order
	refund exchange.Refund
}

func (r *refundPayment) parties() (owner, vendor uuid.UUID) {
	return r.order.CustomerID, r.order.VendorID
}

// follow ends the refund with its payment, and the exception that requested it.
func (r *refundPayment) follow(ctx context.Context, t unitTx, to paymentStage, txID string) error {
	if to != stageCompleted || r.refund.Status == exchange.RefundCompleted {
		return nil
	}
	var err error
	r.refund, err = t.finishRefund(ctx, r.order, r.refund, txID, uuid.Nil, flow)
	return err
}

// spend also frees the shillings that a sale's vendor kept reserved in case its payout had been made after all.
func (r *refundPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	posting, lines, err := t.spendReserved(ctx, p)
	if err != nil || !r.order.OffRamp() || r.refund.ExceptionID != uuid.Nil {
		return posting, lines, err
	}
	if reserved, err := t.isHeld(ctx, r.order.HoldID); err != nil || !reserved {
		return posting, lines, err
	}
	back, err := t.returnReservation(ctx, r.order)
	posting.Holds = append(posting.Holds, back.Holds...)
	return posting, lines, err
}

const holdIsHeld = `SELECT EXISTS (SELECT FROM holds WHERE id = $1 AND status = 'held')`

func (t unitTx) isHeld(ctx context.Context, hold uuid.UUID) (bool, error) {
	var held bool
	err := t.Get(ctx, &held, holdIsHeld, hold)
	return held, err
}

const refundTerms = `
SELECT nullif(refund_ready_at(f), 'infinity') AS ready_at, refund_ready_at(f) > clock_timestamp() AS cooling,
    release_officers(CASE WHEN r.id IS NULL THEN release_terms('refund', f.id) ELSE r END, clock_timestamp()) AS needed, coalesce((SELECT count(*) FROM release_voices(r)), 0) AS agreed,
    EXISTS (SELECT FROM order_payouts y WHERE y.id = f.order_id AND y.status <> 'cancelled' AND f.exception_id IS NULL) AS payable,
    f.exception_id IS NULL AND payee_attested(f.order_id) AS attested,
    EXISTS (SELECT FROM approvals a WHERE a.object_type = 'refund' AND a.object_id = f.id AND a.action = 'reject' AND a.digest = f.digest) AS refused
FROM refunds f LEFT JOIN releases r ON r.purpose = 'refund' AND r.object_id = f.id AND r.ended_at IS NULL WHERE f.id = $1`

// refundTermsRow is the unmet conditions between a refund and its payment.
type refundTermsRow struct {
	ReadyAt  sql.NullTime // null while a payout may have paid
	Cooling  bool         // by the clock of the database, which checks again
	Needed   int
	Agreed   int
	Payable  bool
	Attested bool // two officers attested that the payee was paid
	Refused  bool
}

// standing is what a refund in crypto waits for.
func (t unitTx) standing(ctx context.Context, f exchange.Refund) (exchange.RefundStanding, error) {
	out := exchange.RefundStanding{Refund: f}
	p, _, err := t.paymentOf(ctx, exchange.ForRefund, f.ID)
	if err != nil {
		return out, err
	}
	if p.Status != exchange.ChainCancelled {
		out.Payment = p
	}
	var r refundTermsRow
	if err := t.Get(ctx, &r, refundTerms, f.ID); err != nil {
		return out, err
	}
	out.Needed, out.Agreed = r.Needed, r.Agreed
	switch {
	case f.Status == exchange.RefundCompleted, f.Status == exchange.RefundProcessing:
	case f.Status == exchange.RefundNeedsReview && f.Detail == string(exchange.RefundWaitsClaim):
		out.Wait = exchange.RefundWaitsClaim
	case r.Attested:
		out.Wait = exchange.RefundWaitsClaim
	case r.Payable, !r.ReadyAt.Valid:
		out.Wait = exchange.RefundWaitsPayout
	case r.Refused:
		out.Wait = exchange.RefundWaitsRefused
	case f.Address == "":
		out.Wait = exchange.RefundWaitsAddress
	case r.Cooling:
		out.Wait, out.Until = exchange.RefundWaitsCoolOff, r.ReadyAt.Time.UTC()
	case out.Agreed < out.Needed:
		out.Wait = exchange.RefundWaitsOfficer
	}
	return out, nil
}

// ApproveRefundPayment sends the crypto of a refund when all conditions are met: it has an address, the payouts of its
// order have been refused for long enough, and as many officers approved as its value, its address and doubt about a
// payout require. Otherwise it returns what the refund waits for, and approves nothing. A repeated call returns the
// existing payment.
func (s *Store) ApproveRefundPayment(ctx context.Context, refundID uuid.UUID) (exchange.RefundStanding, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.RefundStanding, exchange.Posting, error) {
		out, err := t.approveRefund(ctx, refundID)
		return out, exchange.Posting{}, err
	})
}

func (t unitTx) approveRefund(ctx context.Context, refundID uuid.UUID) (exchange.RefundStanding, error) {
	o, f, err := t.lockedCryptoRefund(ctx, refundID)
	if err != nil {
		return exchange.RefundStanding{}, err
	}
	claimed := f.Detail == string(exchange.RefundWaitsClaim)
	if f.Address == "" && (f.Status == exchange.RefundPending || (f.Status == exchange.RefundNeedsReview && !claimed)) {
		address, err := t.saidAddress(ctx, o, f.Network) // the customer may have set it meanwhile
		if err != nil {
			return exchange.RefundStanding{}, err
		}
		if address != "" {
			if f, err = t.addressRefund(ctx, o, f, address, uuid.Nil, flow); err != nil {
				return exchange.RefundStanding{}, err
			}
		}
	}
	out, err := t.standing(ctx, f)
	if err != nil || out.Wait != exchange.RefundReady || (f.Status != exchange.RefundPending && f.Status != exchange.RefundNeedsReview) {
		return out, err
	}
	v, err := t.releaseOwed(ctx, exchange.ReleaseRefund, f.ID)
	if err != nil {
		return out, err
	}
	if !v.Pass {
		out.Wait, out.Needed = exchange.RefundWaitsOfficer, v.Officers
		return out, nil
	}
	if out.Refund, err = t.moveRefund(ctx, o, f, exchange.RefundProcessing, "", "", uuid.Nil, flow); err != nil {
		return out, err
	}
	last, _, err := t.paymentOf(ctx, exchange.ForRefund, f.ID)
	if err != nil {
		return out, err
	}
	out.Payment, err = t.addPayment(ctx, flow, &refundPayment{order: o, refund: out.Refund}, exchange.ChainPayment{
		Purpose: exchange.ForRefund, ObjectID: f.ID, N: last.N + 1, Network: f.Network, Amount: f.Amount, WalletID: f.WalletID, ToAddress: f.Address,
		HoldID: f.HoldID, ApprovedBy: byPolicy,
	})
	return out, err
}

// lockedCryptoRefund reads and locks a refund in crypto and its order.
func (t unitTx) lockedCryptoRefund(ctx context.Context, id uuid.UUID) (exchange.Order, exchange.Refund, error) {
	o, f, err := t.lockedAnyRefund(ctx, id)
	if err == nil && f.Rail != exchange.RefundOnChain {
		err = exchange.Errorf(exchange.CodeStateConflict, "The refund is not paid in crypto.")
	}
	return o, f, err
}

const saveAddress = `
UPDATE refunds SET address = $2, addressed_by = $3, digest = $4, detail = $5, updated_at = $6, version = version + 1
WHERE id = $1 AND version = $7 AND status IN ('pending', 'needs_review') RETURNING ` + refundColumns

// addressRefund sets a refund's address. Approvals for another address no longer count.
func (t unitTx) addressRefund(ctx context.Context, o exchange.Order, before exchange.Refund, address string, giver uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	f := before
	f.Address, f.AddressedBy, f.Detail = address, giver, ""
	if f.Address == before.Address && f.AddressedBy == before.AddressedBy {
		return before, nil
	}
	f.Digest = f.Intent()
	var rows []exchange.Refund
	err := t.All(ctx, &rows, saveAddress, f.ID, f.Address, nullID(f.AddressedBy), f.Digest, f.Detail, t.s.now(), before.Version)
	if err == nil && len(rows) == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	after := rows[0]
	if err := t.announceOwed(ctx, exchange.ReleaseRefund, f.ID); err != nil {
		return before, err
	}
	return after, t.record(ctx, auditEvent{
		by: by, object: "refund", id: f.ID, name: "refund.addressed", owner: o.CustomerID, vendor: o.VendorID,
		before: refundSnapshot(before, before.Detail), after: refundSnapshot(after, after.Detail),
	})
}

const readRequestOf = `
SELECT r.address, r.reason, r.requested_by, u.role FROM refund_requests r JOIN users u ON u.id = r.requested_by
WHERE r.id = $1 AND (r.order_id = (SELECT order_id FROM refunds WHERE id = $2) OR r.exception_id = (SELECT exception_id FROM refunds WHERE id = $2))`

// AddressRefund sends a refund to the address of an officer's request, when it has no address or an unusable one. A
// payment approved for the old address is given up, and the refund waits for another officer's approval.
// CodeStateConflict while something of it may still arrive, and where the customer's own address has not been tried;
// CodeInvalid for an address of the house. A repeated call with the same request changes nothing.
func (s *Store) AddressRefund(ctx context.Context, refundID, requestID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.RefundStanding, exchange.Posting, error) {
		out, err := t.giveAddress(ctx, refundID, requestID, by)
		return out, exchange.Posting{}, err
	})
}

func (t unitTx) giveAddress(ctx context.Context, refundID, requestID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error) {
	var none exchange.RefundStanding
	o, f, err := t.lockedCryptoRefund(ctx, refundID)
	if err != nil {
		return none, err
	}
	var asked requestRow
	if err := t.Get(ctx, &asked, readRequestOf, requestID, refundID); err != nil {
		return none, translate(err, "request for a refund")
	}
	if asked.Address == "" || (asked.Address == f.Address && asked.RequestedBy == f.AddressedBy) {
		return t.standing(ctx, f)
	}
	var house bool
	if err := t.Get(ctx, &house, isHouse, f.Network, asked.Address); err != nil {
		return none, err
	}
	if house {
		return none, exchange.Invalid(exchange.FieldError{Pointer: "/address", Code: "own_wallet", Message: "must not be a wallet of the house"})
	}
	switch f.Status {
	case exchange.RefundPending:
		if f.Address != "" && f.AddressedBy == uuid.Nil {
			return none, exchange.Errorf(exchange.CodeStateConflict, "The customer set a refund address that has not been tried yet.")
		}
	case exchange.RefundProcessing:
		if f, err = t.takeBackRefund(ctx, o, f, by); err != nil {
			return none, err
		}
	case exchange.RefundNeedsReview:
		if f.Detail == string(exchange.RefundWaitsClaim) {
			return none, exchange.Errorf(exchange.CodeStateConflict, "The payee may have been paid. Settle that first.")
		}
	case exchange.RefundCompleted, exchange.RefundFailed:
		return none, exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s can't get another address.", f.Status)
	}
	if f, err = t.addressRefund(ctx, o, f, asked.Address, asked.RequestedBy, by); err != nil {
		return none, err
	}
	return t.standing(ctx, f)
}

// takeBackRefund gives up the payment of a refund that has no live transaction, so that its crypto may go to another
// address.
func (t unitTx) takeBackRefund(ctx context.Context, o exchange.Order, f exchange.Refund, by exchange.Principal) (exchange.Refund, error) {
	if err := t.cancelRefundPayment(ctx, f, by); err != nil {
		return f, err
	}
	return t.reviewRefund(ctx, o, f, exchange.RefundReturned)
}

// reviewRefund parks a refund for an officer after its payment can no longer leave.
func (t unitTx) reviewRefund(ctx context.Context, o exchange.Order, f exchange.Refund, detail string) (exchange.Refund, error) {
	f, err := t.moveRefund(ctx, o, f, exchange.RefundFailed, detail, "", uuid.Nil, flow)
	if err != nil {
		return f, err
	}
	return t.moveRefund(ctx, o, f, exchange.RefundNeedsReview, detail, "", uuid.Nil, flow)
}

const claimDetail = `UPDATE refunds SET detail = 'payout_claimed', updated_at = $2, version = version + 1 WHERE id = $1 AND status = 'needs_review' AND detail <> 'payout_claimed'`

// stopCryptoRefund parks a refund for an officer because the payee of its order may have been paid, and withdraws its
// approved payment. If a transaction is already on its way the refund continues.
func (t unitTx) stopCryptoRefund(ctx context.Context, o exchange.Order, f exchange.Refund) error {
	claim := string(exchange.RefundWaitsClaim)
	var err error
	switch f.Status {
	case exchange.RefundPending:
		_, err = t.moveRefund(ctx, o, f, exchange.RefundNeedsReview, claim, "", uuid.Nil, flow)
	case exchange.RefundNeedsReview:
		_, err = t.Exec(ctx, claimDetail, f.ID, t.s.now())
	case exchange.RefundProcessing:
		err = t.cancelRefundPayment(ctx, f, flow)
		if exchange.CodeOf(err) == exchange.CodeStateConflict || errors.Is(err, exchange.ErrUnread) {
			return nil // nothing of it is signed before the payout is known to have paid nothing (refund_fault)
		}
		if err == nil {
			_, err = t.reviewRefund(ctx, o, f, claim)
		}
	case exchange.RefundCompleted, exchange.RefundFailed: // it has left
	}
	return err
}

// cancelRefundPayment makes sure that the payment approved for a refund never leaves.
func (t unitTx) cancelRefundPayment(ctx context.Context, f exchange.Refund, by exchange.Principal) error {
	p, found, err := t.paymentOf(ctx, exchange.ForRefund, f.ID)
	if err != nil || !found || p.Status == exchange.ChainCancelled {
		return err
	}
	return t.abandonPayment(ctx, p.ID, exchange.RefundReturned, by)
}

// endCryptoRefund ends the refund of an order whose payout was proven after all: the payee keeps the shillings, and
// the crypto, which stays reserved, goes to its buyer. The caller has stored the order's payout as completed, with the
// receipt. CodeStateConflict when the crypto has left, or may have. An order without a refund is left as it is.
func (t unitTx) endCryptoRefund(ctx context.Context, o exchange.Order, receipt string, by exchange.Principal) error {
	f, found, err := t.maybeRefund(ctx, readRefundOfOrder+` FOR NO KEY UPDATE`, o.ID)
	if err != nil || !found || (f.Status == exchange.RefundCompleted && f.Receipt == receipt) {
		return err
	}
	switch f.Status {
	case exchange.RefundPending:
		f, err = t.moveRefund(ctx, o, f, exchange.RefundNeedsReview, string(exchange.RefundWaitsClaim), "", uuid.Nil, by)
	case exchange.RefundProcessing:
		f, err = t.takeBackRefund(ctx, o, f, by)
	case exchange.RefundNeedsReview, exchange.RefundCompleted, exchange.RefundFailed: // unchanged; the state machine refuses illegal transitions
	}
	if err != nil {
		return err
	}
	_, err = t.moveRefund(ctx, o, f, exchange.RefundCompleted, "", receipt, uuid.Nil, by)
	return err
}

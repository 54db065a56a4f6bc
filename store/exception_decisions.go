package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// An officer's direct decision about an exception, without the flow that may wait for one. Transition, entry,
// decision, event and audit row commit together, under the lock of the exception's row: only one of two officers
// decides.

const readDecision = `SELECT id, verdict, wallet_id, merchant_id FROM exception_decisions WHERE exception_id = $1`

// decisionRow is the part of a row of exception_decisions that is compared.
type decisionRow struct {
	ID         uuid.UUID
	Verdict    exchange.ExceptionStatus
	WalletID   uuid.NullUUID
	MerchantID uuid.NullUUID
}

func (r decisionRow) says(d exchange.ExceptionDecision) bool {
	return r.Verdict == d.Verdict && r.WalletID.UUID == d.WalletID && r.MerchantID.UUID == d.MerchantID
}

const insertDecision = `
INSERT INTO exception_decisions (id, exception_id, verdict, wallet_id, merchant_id, reason, decided_by, decided_at, change_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// DecideException settles an open exception: accepted and written-off money becomes the house's (for ExcPaidTwice: its
// loss), credited money is owed to the account that the decision names. It reports whether this very decision settled
// it; one that was settled in the same way before is returned as it is.
//
// CodeStateConflict when it was settled in another way, when nothing can be credited, and while an alarm about the
// deposit's movement is open; CodeLimitReached when it is worth more than one officer may decide about, who then
// proposes the decision (ProposeDecision); CodeInvalid for an account that must not get the money.
func (s *Store) DecideException(ctx context.Context, d exchange.ExceptionDecision, by exchange.Principal) (exchange.PaymentException, bool, error) {
	if err := checkDecision(d); err != nil {
		return exchange.PaymentException{}, false, err
	}
	type outcome struct {
		x    exchange.PaymentException
		mine bool
	}
	out, err := change(ctx, s, "payment exception", d.ExceptionID, func(ctx context.Context, t unitTx) (outcome, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedException(ctx, d.ExceptionID)
		if err != nil {
			return outcome{}, none, err
		}
		if x.Status != exchange.ExcOpen {
			mine, err := t.decidedBefore(ctx, x, d)
			return outcome{x, mine}, none, err
		}
		if err := t.decidableLine(ctx, x, by.UserID); err != nil {
			return outcome{}, none, err
		}
		books, err := t.settling(ctx, x, d)
		if err != nil {
			return outcome{}, none, err
		}
		if err := t.withinOneOfficer(ctx, x); err != nil {
			return outcome{}, none, err
		}
		x, p, err := t.decide(ctx, x, decided{ExceptionDecision: d, by: by.UserID, at: by}, books)
		return outcome{x, true}, p, err
	})
	if err == nil {
		out.x, err = s.placed(ctx, out.x)
	}
	return out.x, out.mine, err
}

// decided is a decision with its officer, and the change by which a second officer confirmed it.
type decided struct {
	exchange.ExceptionDecision
	by     uuid.UUID
	at     exchange.Principal // the principal whose request applies it
	change uuid.UUID
}

// decide stores a decision and books it.
func (t unitTx) decide(ctx context.Context, x exchange.PaymentException, d decided, books settlement) (exchange.PaymentException, exchange.Posting, error) {
	var none exchange.Posting
	x, err := t.moveException(ctx, x, d.Verdict, d.Reason, d.at)
	if err != nil {
		return x, none, err
	}
	_, err = t.Exec(ctx, insertDecision, d.ID, x.ID, d.Verdict, nullID(d.WalletID), nullID(d.MerchantID), d.Reason, d.by, t.s.now(), nullID(d.change))
	if err != nil || len(books.lines) == 0 {
		return x, none, err
	}
	return x, exchange.Posting{Holds: books.holds, Entries: []exchange.Entry{{
		Key: "exception:" + x.ID.String() + ":" + string(d.Verdict), Kind: "exception." + string(d.Verdict), ObjectType: "payment_exception",
		ObjectID: x.ID, Lines: books.lines,
	}}}, nil
}

// settlement is the entries of a decision, and its hold.
type settlement struct {
	lines []exchange.Line
	holds []exchange.HoldOp
}

func checkDecision(d exchange.ExceptionDecision) error {
	switch d.Verdict {
	case exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited:
	case exchange.ExcOpen, exchange.ExcRefunding, exchange.ExcRefunded, exchange.ExcMatched:
		return exchange.Errorf(exchange.CodeStateConflict, "An exception can't be settled as %s.", d.Verdict)
	}
	return require(d.Reason != "" && len([]rune(d.Reason)) <= exchange.MaxExceptionReason, "/note", "required", "must say why, in at most 500 characters")
}

// decidedBefore reports whether this very decision settled the exception, and refuses another one.
func (t unitTx) decidedBefore(ctx context.Context, x exchange.PaymentException, d exchange.ExceptionDecision) (bool, error) {
	var rows []decisionRow
	if err := t.All(ctx, &rows, readDecision, x.ID); err != nil {
		return false, err
	}
	switch {
	case len(rows) == 1 && rows[0].says(d):
		return rows[0].ID == d.ID, nil
	case len(rows) == 0 && x.Status == d.Verdict && d.Verdict != exchange.ExcCredited:
		return false, nil // a flow or policy settled it in the same way
	}
	return false, exchange.Errorf(exchange.CodeStateConflict, "The payment exception is already %s.", x.Status)
}

// settling returns the bookings of a decision; none for a difference between a chain and the ledger, which was never
// booked.
func (t unitTx) settling(ctx context.Context, x exchange.PaymentException, d exchange.ExceptionDecision) (settlement, error) {
	var none settlement
	if x.Kind == exchange.ExcReconciliation && d.Verdict != exchange.ExcCredited {
		return none, nil
	}
	if err := t.stillOpen(ctx, x); err != nil {
		return none, err
	}
	place, err := t.placeOf(ctx, x)
	if err != nil {
		return none, err
	}
	if place.Alarm {
		return none, exchange.Errorf(exchange.CodeStateConflict,
			"An alarm about the deposit's transaction is open. Settle the alarm before you decide about the money.")
	}
	account, err := t.creditedAccount(ctx, x, d, place)
	switch {
	case err != nil:
		return none, err
	case d.Verdict != exchange.ExcCredited && place.passing() && x.Amount.Asset().Stablecoin():
		return keptOnEscrow(x, place.WalletID), nil
	case d.Verdict != exchange.ExcCredited:
		return settlement{lines: keeping(x, place)}, nil
	}
	return settlement{lines: []exchange.Line{
		exchange.Debit(exchange.House(exchange.AccSuspense, x.Amount.Asset()), x.Amount), exchange.Credit(account, x.Amount),
	}}, nil
}

// stillOpen refuses a decision about a second payout beside a refund whose crypto has not left: the payout stands
// instead of the refund, and the vendor pays. Decided as a loss, neither could be carried out any more, and the crypto
// would stay on its escrow address forever.
func (t unitTx) stillOpen(ctx context.Context, x exchange.PaymentException) error {
	if x.Kind != exchange.ExcPaidTwice || x.OrderID == uuid.Nil {
		return nil
	}
	var here bool
	if err := t.Get(ctx, &here, refundAwaitsAttestation, x.OrderID); err != nil || !here {
		return err
	}
	return exchange.Errorf(exchange.CodeStateConflict,
		"The crypto of the refund has not left. Settle the order with the payout's receipt; then nothing was paid twice.")
}

const readImporters = `
SELECT l.side, s.imported_by, f.uploaded_by FROM bank_lines l JOIN bank_statements s ON s.id = l.statement_id JOIN files f ON f.id = s.file_id WHERE l.id = $1`

// decidableLine refuses a decision about money that left a bank account, because only what it was for settles it, and one by an
// officer who uploaded or imported the bank's statement: alone nobody turns a line into somebody's money. The database refuses it too.
func (t unitTx) decidableLine(ctx context.Context, x exchange.PaymentException, by uuid.UUID) error {
	if x.LineID == uuid.Nil {
		return nil
	}
	var l struct {
		Side                   exchange.StatementSide
		ImportedBy, UploadedBy uuid.UUID
	}
	if err := t.Get(ctx, &l, readImporters, x.LineID); err != nil {
		return err
	}
	switch {
	case l.Side == exchange.SideDebit:
		return exchange.Errorf(exchange.CodeStateConflict, "The money has left the bank account. Match the statement line with what it was for, or book that.")
	case l.ImportedBy == by || l.UploadedBy == by:
		return exchange.Errorf(exchange.CodeForbidden, "You brought the bank's statement in. Another officer has to decide.")
	}
	var typed bool
	if err := t.Get(ctx, &typed, lineTyped, x.LineID, nil); err != nil || !typed {
		return err
	}
	return errTyped
}

// place is where an exception's crypto lies.
type place struct {
	WalletID uuid.UUID
	OwnerID  uuid.NullUUID
	Purpose  exchange.HousePurpose
	Type     exchange.WalletType
	Alarm    bool
}

// passing reports whether kept money moves from the place to the treasury: an escrow address has to be lent again, and
// officers can't send from a counterpart.
func (p place) passing() bool {
	return p.Purpose == exchange.HouseEscrow || (p.Purpose == exchange.HouseCounterpart && p.Type == exchange.Hot)
}

const placeOfException = `
SELECT d.wallet_id, w.owner_id, w.purpose, w.type, EXISTS (SELECT FROM deposit_quarantine q WHERE q.network = d.network AND q.tx_id = d.tx_id AND q.settled_at IS NULL) AS alarm
FROM chain_deposits d JOIN wallets w ON w.id = d.wallet_id
WHERE d.id = (SELECT deposit_of(x.receipt) FROM payment_exceptions x WHERE x.id = $1) AND d.status = 'final'`

func (t unitTx) placeOf(ctx context.Context, x exchange.PaymentException) (place, error) {
	var rows []place
	if err := t.All(ctx, &rows, placeOfException, x.ID); err != nil || len(rows) == 0 {
		return place{}, err
	}
	return rows[0], nil
}

const readVendor = `SELECT id FROM users WHERE id = $1 AND role = 'vendor' AND is_active FOR SHARE`

// creditedAccount is the account that a decision names, if it may get the money: a merchant for shillings, the owner
// of the very wallet with the money for crypto, so that the wallet's ledger stays equal to the chain.
func (t unitTx) creditedAccount(ctx context.Context, x exchange.PaymentException, d exchange.ExceptionDecision, p place) (exchange.AccountRef, error) {
	var none exchange.AccountRef
	refuse := func(pointer, code, message string) (exchange.AccountRef, error) {
		return none, exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: code, Message: message})
	}
	chain := x.Amount.Asset() != money.KES
	switch {
	case d.Verdict != exchange.ExcCredited && d.WalletID == uuid.Nil && d.MerchantID == uuid.Nil:
		return none, nil
	case d.Verdict != exchange.ExcCredited:
		return none, exchange.Errorf(exchange.CodeInternal, "a decision that credits no money names an account")
	case x.Kind == exchange.ExcReconciliation, x.Kind == exchange.ExcPaidTwice:
		return none, exchange.Errorf(exchange.CodeStateConflict, "The exception has no money to credit.")
	case chain && d.MerchantID != uuid.Nil:
		return refuse("/merchant_id", "conflict", "must be absent: crypto is credited in the wallet where it lies")
	case chain && d.WalletID == uuid.Nil:
		return refuse("/wallet_id", "required", "is required for crypto")
	case chain && (p.WalletID != d.WalletID || !p.OwnerID.Valid):
		return refuse("/wallet_id", "mismatch", "must be the wallet where the money lies, and that wallet must have an owner")
	case chain:
		return exchange.Owned(exchange.AccWalletBalance, d.WalletID, x.Amount.Asset()), nil
	case d.WalletID != uuid.Nil:
		return refuse("/wallet_id", "conflict", "must be absent: shillings are credited to a merchant")
	case d.MerchantID == uuid.Nil:
		return refuse("/merchant_id", "required", "is required for shillings; a customer has no balance of them, so refund a customer's payment")
	}
	var vendors []uuid.UUID
	if err := t.All(ctx, &vendors, readVendor, d.MerchantID); err != nil {
		return none, err
	}
	if len(vendors) == 0 {
		return refuse("/merchant_id", "not_found", "must be an active merchant")
	}
	return exchange.Owned(exchange.AccFiatBalance, d.MerchantID, money.KES), nil
}

// withinOneOfficer refuses an exception above the value from which a transfer needs an officer besides its requester. A
// difference between a chain and the ledger is never booked, so one officer may close it.
func (t unitTx) withinOneOfficer(ctx context.Context, x exchange.PaymentException) error {
	if x.Kind == exchange.ExcReconciliation {
		return nil
	}
	value := x.Amount
	if value.Asset() != money.KES {
		var err error
		if value, _, err = t.valueOf(ctx, x.Amount); err != nil {
			return err
		}
	}
	rule, err := t.approvalRule(ctx, exchange.ApproveTransfer)
	if err != nil || rule.Required(value) == 0 {
		return err
	}
	return exchange.Errorf(exchange.CodeLimitReached, "One officer may decide about at most %s %s. This counts as %s, so a second officer has to confirm it.",
		money.KES, rule.OneAbove, value)
}

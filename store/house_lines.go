package store

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// What explains the lines of banks' statements. A line is matched by rule, or by an officer. One that nothing explains is set aside
// under a payment exception: money that came in lies in suspense until it is known whose it is; money that went out is booked by
// what explains it.

// lineMatcher finds the objects of one type that explain lines. Another type of object is a line in lineMatchers, its type in the
// check of bank_lines, and its case in check_bank_line.
type lineMatcher struct {
	object string
	// match matches a line with an object that books the line's money only then; nil for one that has booked it.
	match func(s *Store, ctx context.Context, p linePair) error
	// find lists pairs of a line that is not matched and the only object that explains it. $1 is how many.
	find string
}

var lineMatchers = []lineMatcher{
	{object: exchange.LineOfDeposit, find: findDeposits, match: (*Store).matchDeposit},
	{object: exchange.LineOfDeposit, find: findLineless, match: (*Store).matchDeposit},
	{object: exchange.LineOfPayout, find: findPayouts},
	{object: exchange.LineOfWithdrawal, find: findWithdrawals},
	{object: exchange.LineOfRefund, find: findBankRefunds},
	{object: exchange.LineOfJournal, find: findJournal},
}

// A payment of an order by bank is found by the bank's reference, as an officer entered it, whether the bank's statement has it as
// its own or as ours.
const findPayouts = `
WITH paid AS (
    SELECT l.id AS line_id, p.id AS object_id, l.value_date, l.bank_account_id, p.hold_id
    FROM bank_lines l JOIN order_payouts p ON p.receipt = l.bank_reference AND ` + paidByLine + `
    UNION
    SELECT l.id, p.id, l.value_date, l.bank_account_id, p.hold_id
    FROM bank_lines l JOIN order_payouts p ON p.receipt = l.reference_code AND ` + paidByLine + `)
SELECT DISTINCT ON (f.object_id) f.line_id, f.object_id
FROM paid f JOIN holds h ON h.id = f.hold_id JOIN ledger_accounts a ON a.id = h.account_id AND a.owner_id = f.bank_account_id
WHERE NOT EXISTS (SELECT FROM bank_lines o WHERE o.object_type = 'bank_payout' AND o.object_id = f.object_id)
ORDER BY f.object_id, f.value_date, f.line_id LIMIT $1`

const paidByLine = `p.rail = 'bank' AND p.receipt <> '' AND p.status = 'completed' AND p.amount = l.amount AND p.asset = l.asset AND line_in_time(l, 'bank_payout', p.id)
        WHERE l.status <> 'matched' AND l.side = 'debit' AND ` + undecidedLine

// undecidedLine leaves out lines about which an officer has decided.
const undecidedLine = `NOT EXISTS (SELECT FROM payment_exceptions x WHERE x.line_id = l.id AND x.status NOT IN ('open', 'matched'))`

// A journal entry that names no line is found by account, side, amount and day, if there is one such entry and one such line.
const findJournal = `
SELECT min(l.id::text)::uuid AS line_id, min(j.id::text)::uuid AS object_id
FROM journal_entries j JOIN bank_lines l ON l.bank_account_id = j.bank_account_id AND l.side = journal_side(j) AND l.asset = j.asset AND l.amount = j.amount
    AND l.value_date = j.value_date AND l.status <> 'matched' AND NOT line_typed(l, NULL) AND ` + undecidedLine + `
WHERE j.line_id IS NULL AND j.bank_account_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM bank_lines o WHERE o.object_type = 'journal_entry' AND o.object_id = j.id)
GROUP BY l.bank_account_id, l.side, l.amount, l.value_date HAVING count(DISTINCT l.id) = 1 AND count(DISTINCT j.id) = 1 LIMIT $1`

// linePair is a line and what explains it.
type linePair struct {
	LineID   uuid.UUID
	ObjectID uuid.UUID
}

// Sizes of one round of matching.
const (
	lineBatch    = 100 // lines in one transaction
	asideBatches = 5   // transactions that set lines aside, after nothing explained any of them
)

// MatchLines matches lines with what explains them, sets the others aside, and compares the balances of statements that are done.
// It returns how many lines and statements it settled; 0 when nothing is left for now.
func (s *Store) MatchLines(ctx context.Context) (int, error) {
	settled := 0
	for _, m := range lineMatchers {
		var pairs []linePair
		if err := s.db.All(ctx, &pairs, m.find, lineBatch); err != nil {
			return settled, translate(err, "statement line")
		}
		for _, p := range pairs {
			err := s.matchByRule(ctx, p, m)
			switch exchange.CodeOf(err) {
			case "":
				settled++
			case exchange.CodeStateConflict, exchange.CodeConflict: // somebody else was faster
			case exchange.CodeInsufficientFunds: // its money, counted twice until now, is reserved: it is matched when the bank has enough
			default:
				return settled, err
			}
		}
	}
	if settled > 0 {
		return settled, nil // the rest is set aside when no matcher finds anything
	}
	for range asideBatches {
		n, err := s.setLinesAside(ctx)
		settled += n
		if err != nil {
			return settled, err
		}
		if n < lineBatch {
			break
		}
	}
	if settled > 0 {
		return settled, nil
	}
	return s.compareStatements(ctx)
}

func (s *Store) matchByRule(ctx context.Context, p linePair, m lineMatcher) error {
	if m.match != nil {
		return m.match(s, ctx, p)
	}
	_, err := change(ctx, s, "statement line", p.LineID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		posting, err := t.matchLine(ctx, p.LineID, m.object, p.ObjectID, flow)
		return struct{}{}, posting, err
	})
	return err
}

const lockLine = `SELECT ` + lineColumns + ` FROM bank_lines l WHERE l.id = $1 FOR NO KEY UPDATE OF l`

const saveMatch = `
UPDATE bank_lines l SET status = 'matched', object_type = $2, object_id = $3, matched_by = $4, matched_at = $5, updated_at = $5, version = version + 1
WHERE l.id = $1 AND l.version = $6 RETURNING ` + lineColumns

const lineTyped = `SELECT line_typed(l, $2) FROM bank_lines l WHERE l.id = $1`

var errTyped = exchange.Errorf(exchange.CodeStateConflict, "Officers typed the line's reference for an OTC deposit. The line is matched with that deposit.")

// deposit is the id of an object that is a deposit.
func deposit(object string, id uuid.UUID) uuid.UUID {
	if object == exchange.LineOfDeposit {
		return id
	}
	return uuid.Nil
}

// matchLine says what explains a line. Its exception, if it has one, is over, and the money of a line that came in leaves suspense:
// what explains it books the bank account itself. CodeStateConflict when the line is matched with something else, or an officer
// decided about it; CodeConflict when another line is matched with the object.
func (t unitTx) matchLine(ctx context.Context, id uuid.UUID, object string, objectID uuid.UUID, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	before, err := readOne[exchange.StatementLine](ctx, t, "statement line", lockLine, id)
	if err != nil || before.ObjectType == object && before.ObjectID == objectID {
		return none, err
	}
	switch {
	case before.Status == exchange.LineMatched:
		return none, exchange.Errorf(exchange.CodeStateConflict, "The line is matched already.")
	case before.Status == exchange.LineAside && before.ExceptionID == uuid.Nil:
		return none, exchange.Errorf(exchange.CodeStateConflict, "An officer has decided about the money of the line already.")
	}
	var typed bool
	if err := t.Get(ctx, &typed, lineTyped, id, nullID(deposit(object, objectID))); err != nil {
		return none, err
	}
	if typed {
		return none, errTyped
	}
	posting, err := t.endLineException(ctx, before, object, objectID, by)
	if err != nil {
		return none, err
	}
	var l exchange.StatementLine
	err = t.Get(ctx, &l, saveMatch, id, object, objectID, nullID(by.UserID), t.s.now(), before.Version)
	if pg.Broke(err, "bank_lines_object_key") {
		err = exchange.Wrap(exchange.CodeConflict, err, "Another line is matched with it already.")
	}
	if err != nil {
		return none, err
	}
	return posting, t.record(ctx, auditEvent{by: by, object: "bank_line", id: id, name: "bank_line.matched", before: lineSnapshot(before), after: lineSnapshot(l)})
}

func lineSnapshot(l exchange.StatementLine) map[string]any {
	snapshot := map[string]any{
		"id": l.ID, "bank_account_id": l.BankID, "statement_id": l.StatementID, "reference": l.BankReference, "side": l.Side, "amount": l.Amount.String(),
		"currency": l.Amount.Asset(), "value_date": l.ValueDate.Format(time.DateOnly), "status": l.Status, "object_type": nil, "object_id": nullID(l.ObjectID),
		"matched_by": nullID(l.MatchedBy), "version": l.Version,
	}
	if l.ObjectType != "" {
		snapshot["object_type"] = l.ObjectType
	}
	return snapshot
}

// endLineException ends the exception of a line that is explained after all.
func (t unitTx) endLineException(ctx context.Context, l exchange.StatementLine, object string, objectID uuid.UUID, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	if l.ExceptionID == uuid.Nil {
		return none, nil
	}
	x, err := t.lockedException(ctx, l.ExceptionID)
	if err != nil {
		return none, err
	}
	if x, err = t.moveException(ctx, x, exchange.ExcMatched, object+" "+objectID.String(), by); err != nil || l.Side == exchange.SideDebit {
		return none, err
	}
	return lineEntry(l, x, "matched"), nil
}

// lineEntry books the money of a line that came in: into suspense when it is set aside, and out of it when it is matched.
func lineEntry(l exchange.StatementLine, x exchange.PaymentException, what string) exchange.Posting {
	bank, suspense := exchange.Owned(exchange.AccBank, l.BankID, l.Amount.Asset()), exchange.House(exchange.AccSuspense, l.Amount.Asset())
	lines := []exchange.Line{exchange.Debit(bank, l.Amount), exchange.Credit(suspense, l.Amount)}
	if what == "matched" {
		lines = []exchange.Line{exchange.Debit(suspense, l.Amount), exchange.Credit(bank, l.Amount)}
	}
	return exchange.Posting{Entries: []exchange.Entry{{
		Key: "exception:" + x.ID.String() + ":" + what, Kind: "bank_line." + what, ObjectType: "payment_exception", ObjectID: x.ID, Lines: lines,
	}}}
}

// New lines, whether or not all of their statement is stored: it was checked before. Two processes take different ones.
const takeNewLines = `
SELECT ` + lineColumns + ` FROM bank_lines l WHERE l.status = 'new' ORDER BY l.bank_account_id, l.statement_id, l.number LIMIT $1 FOR NO KEY UPDATE OF l SKIP LOCKED`

const saveAside = `UPDATE bank_lines SET status = 'aside', updated_at = $2, version = version + 1 WHERE id = $1 AND version = $3`

// setLinesAside sets lines aside that nothing explains.
func (s *Store) setLinesAside(ctx context.Context) (int, error) {
	id, err := uuid.NewV7() // batches share no row
	if err != nil {
		return 0, err
	}
	return change(ctx, s, "statement line", id, func(ctx context.Context, t unitTx) (int, exchange.Posting, error) {
		var all exchange.Posting
		var lines []exchange.StatementLine
		if err := t.All(ctx, &lines, takeNewLines, lineBatch); err != nil {
			return 0, all, err
		}
		for _, l := range lines {
			x, err := t.openLineException(ctx, l)
			if err != nil {
				return 0, all, err
			}
			if err := t.One(ctx, saveAside, l.ID, t.s.now(), l.Version); err != nil {
				return 0, all, err
			}
			if l.Side == exchange.SideCredit {
				all.Entries = append(all.Entries, lineEntry(l, x, "aside").Entries...)
			}
		}
		return len(lines), all, nil
	})
}

// openLineException opens the exception of a line that nothing explains. One that names a deposit which takes no money is late.
func (t unitTx) openLineException(ctx context.Context, l exchange.StatementLine) (exchange.PaymentException, error) {
	x := exchange.PaymentException{Kind: exchange.ExcUnmatched, LineID: l.ID, Receipt: lineReceipt(l), Amount: l.Amount}
	deposit, err := t.lateFor(ctx, l)
	if err != nil {
		return x, err
	}
	var owner uuid.UUID
	if deposit != uuid.Nil {
		x.Kind, x.DepositID = exchange.ExcLate, deposit
		if err := t.Get(ctx, &owner, merchantOfDeposit, deposit); err != nil {
			return x, err
		}
	}
	return t.openException(ctx, owner, x)
}

// lineReceipt identifies an exception about a line: it may be set aside again after it was matched by mistake.
func lineReceipt(l exchange.StatementLine) string {
	return "bank:" + l.ID.String() + ":" + strconv.FormatInt(l.Version, 10)
}

// Statements of accounts without a new line, whichever statement had it first.
const readyStatements = `
SELECT s.id FROM bank_statements s WHERE s.status = 'matching'
    AND NOT EXISTS (SELECT FROM bank_lines l WHERE l.bank_account_id = s.bank_account_id AND l.status = 'new') ORDER BY s.created_at LIMIT $1`

// The balance does not move while it is compared.
const lockBankLedger = `
SELECT FROM ledger_accounts a JOIN bank_statements s ON a.owner_id = s.bank_account_id WHERE a.kind = 'bank' AND s.id = $1 FOR SHARE OF a`

const compareStatement = `
UPDATE bank_statements s SET status = 'compared', compared_at = $2, updated_at = $2, version = version + 1,
    ledger = bank_ledger(s.bank_account_id), unexplained = bank_unbooked(s.bank_account_id)
WHERE s.id = $1 AND s.status = 'matching'`

// compareStatements compares the closing balances of statements with the ledger when all lines of their accounts are settled.
func (s *Store) compareStatements(ctx context.Context) (int, error) {
	ids, err := readAll[uuid.UUID](ctx, s.db, "bank statement", readyStatements, lineBatch)
	compared := 0
	for _, id := range ids {
		if err != nil {
			return compared, err
		}
		if err = s.compareStatement(ctx, id); err == nil {
			compared++
		} else if exchange.CodeOf(err) == exchange.CodeStateConflict {
			err = nil // another line came
		}
	}
	return compared, err
}

// A later statement of the account says more about its balance now.
const isNewestStatement = `SELECT NOT EXISTS (SELECT FROM bank_statements o WHERE o.bank_account_id = $1 AND o.to_day > $2)`

func (s *Store) compareStatement(ctx context.Context, id uuid.UUID) error {
	var b exchange.BankStatement
	var newest bool
	err := s.inTx(ctx, "bank statement", func(t unitTx) error {
		newest = false
		if _, err := t.Exec(ctx, lockBankLedger, id); err != nil {
			return err
		}
		n, err := t.Exec(ctx, compareStatement, id, t.s.now())
		if err != nil || n == 0 {
			return err
		}
		if err := t.Get(ctx, &b, readStatement, id); err != nil {
			return err
		}
		if err := t.Get(ctx, &newest, isNewestStatement, b.BankID, b.To); err != nil {
			return err
		}
		return t.record(ctx, auditEvent{by: flow, object: "bank_statement", id: id, name: "bank_statement.compared", after: statementSnapshot(b)})
	})
	if gap := b.Gap; err == nil && newest && (!b.Difference.IsZero() || gap != nil && !gap.IsZero()) {
		s.log.ErrorContext(ctx, "ALERT a bank's balance and our books disagree, or its statements leave days out", "statement", id, "bank_account", b.BankID, "difference", b.Difference.String())
	}
	return err
}

// MatchLine says, for an officer, what explains a line. A repeated call changes nothing. CodeInvalid when the object did not move
// exactly the line's money at its bank.
func (s *Store) MatchLine(ctx context.Context, id uuid.UUID, object string, objectID uuid.UUID, by exchange.Principal) (exchange.StatementLine, error) {
	_, err := change(ctx, s, "statement line", id, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		l, err := readOne[exchange.StatementLine](ctx, t, "statement line", lockLine, id)
		if err != nil {
			return struct{}{}, exchange.Posting{}, err
		}
		var fits bool
		if err := t.Get(ctx, &fits, explains[object], id, objectID); err != nil {
			return struct{}{}, exchange.Posting{}, err
		}
		if err := require(fits || l.ObjectType == object && l.ObjectID == objectID, "/object_id", "mismatch", "must be an object that moved exactly this amount on this side of this bank account"); err != nil {
			return struct{}{}, exchange.Posting{}, err
		}
		posting, err := t.matchLine(ctx, id, object, objectID, by)
		return struct{}{}, posting, err
	})
	if err != nil {
		return exchange.StatementLine{}, err
	}
	return s.StatementLine(ctx, id)
}

// explains reports, by type, whether an object may be matched with a line by hand. The database checks the same (check_bank_line).
var explains = map[string]string{
	exchange.LineOfJournal: `SELECT EXISTS (SELECT FROM bank_lines l JOIN journal_entries j ON j.id = $2 AND j.bank_account_id = l.bank_account_id AND j.asset = l.asset
		AND j.amount = l.amount AND journal_side(j) = l.side AND coalesce(j.line_id, l.id) = l.id WHERE l.id = $1)`,
	exchange.LineOfPayout: `SELECT EXISTS (SELECT FROM bank_lines l JOIN order_payouts p ON p.id = $2 AND p.rail = 'bank' AND p.status = 'completed' AND p.asset = l.asset AND p.amount = l.amount
		JOIN holds h ON h.id = p.hold_id JOIN ledger_accounts a ON a.id = h.account_id AND a.owner_id = l.bank_account_id WHERE l.id = $1 AND l.side = 'debit'
		AND line_in_time(l, 'bank_payout', p.id))`,
	exchange.LineOfWithdrawal: `SELECT EXISTS (SELECT FROM bank_lines l JOIN otc_withdrawals w ON w.id = $2 AND w.status = 'completed' AND l.asset = 'KES' AND w.payout_amount = l.amount
		JOIN holds h ON h.id = w.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id AND a.owner_id = l.bank_account_id WHERE l.id = $1 AND l.side = 'debit'
		AND line_in_time(l, 'otc_withdrawal', w.id))`,
	exchange.LineOfRefund: `SELECT EXISTS (SELECT FROM bank_lines l JOIN refunds f ON f.id = $2 AND f.rail = 'bank' AND f.status = 'completed' AND l.asset = 'KES' AND f.amount = l.amount
		JOIN holds h ON h.id = f.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id AND a.owner_id = l.bank_account_id WHERE l.id = $1 AND l.side = 'debit'
		AND line_in_time(l, 'bank_refund', f.id))`,
}

const freeLine = `
UPDATE bank_lines l SET status = 'new', object_type = NULL, object_id = NULL, matched_by = NULL, matched_at = NULL, updated_at = $2, version = version + 1
WHERE l.object_type = 'journal_entry' AND l.object_id = $1 RETURNING ` + lineColumns

// freeLine frees the line that is matched with a journal entry which was a mistake.
func (t unitTx) freeLine(ctx context.Context, entry uuid.UUID, by exchange.Principal) error {
	l, found, err := readFound[exchange.StatementLine](ctx, t, freeLine, entry, t.s.now())
	if err != nil || !found {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "bank_line", id: l.ID, name: "bank_line.freed", after: lineSnapshot(l)})
}

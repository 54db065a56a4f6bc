package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
)

// Banks' statements. A file is checked as a whole before anything of it is stored. Then its lines are stored in batches, each line
// once whatever statements show it, so that storing may be interrupted and repeated; those that are stored count already. Matching is the work of the flows (house_lines.go).

const statementColumns = `s.id, s.bank_account_id AS bank_id, s.file_id, s.format, s.digest, s.reference, '' AS account_number, s.from_day AS "from", s.to_day AS "to",
	s.opening||' '||s.asset AS opening, s.closing||' '||s.asset AS closing, s.lines, s.fresh, s.status, s.imported_by, s.created_at, s.updated_at,
	coalesce(s.ledger, 0)||' '||s.asset AS ledger, coalesce(s.closing - s.ledger, 0)||' '||s.asset AS difference, coalesce(s.unexplained, 0)||' '||s.asset AS unexplained,
	s.compared_at, (SELECT count(*) FROM bank_lines l JOIN payment_exceptions x ON x.line_id = l.id AND x.status = 'open' WHERE l.statement_id = s.id AND l.status = 'aside') AS unmatched,
	(SELECT (s.opening - p.closing)||' '||s.asset FROM bank_statements p WHERE p.bank_account_id = s.bank_account_id AND p.to_day < s.from_day
		ORDER BY p.to_day DESC, p.created_at DESC LIMIT 1) AS gap, s.version`

const readStatement = `SELECT ` + statementColumns + ` FROM bank_statements s WHERE s.id = $1`

const readStatementByFile = `SELECT ` + statementColumns + ` FROM bank_statements s WHERE s.digest = $1`

func statementSnapshot(b exchange.BankStatement) map[string]any {
	snapshot := map[string]any{
		"id": b.ID, "bank_account_id": b.BankID, "file_id": b.FileID, "reference": b.Reference, "from_day": b.From.Format(time.DateOnly), "to_day": b.To.Format(time.DateOnly),
		"opening_balance": b.Opening.String(), "closing_balance": b.Closing.String(), "lines": b.Lines, "new_lines": b.Fresh, "status": b.Status,
		"ledger": nil, "difference": nil, "unexplained": nil, "version": b.Version,
	}
	if b.Status == exchange.StatementCompared {
		snapshot["ledger"], snapshot["difference"], snapshot["unexplained"] = b.Ledger.String(), b.Difference.String(), b.Unexplained.String()
	}
	return snapshot
}

const insertStatement = `
INSERT INTO bank_statements (id, bank_account_id, format, digest, reference, from_day, to_day, asset, opening, closing, lines, status, imported_by, created_at, updated_at, file_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'storing', $12, $13, $13, $14) ON CONFLICT (digest) DO NOTHING`

// BeginStatement writes down a statement that was checked, before its lines are stored. A file that is known returns its statement,
// whoever sent it: one that is still being stored is to be continued. CodeInvalid when it is not about the account, CodeConflict when it
// was taken for another one.
func (s *Store) BeginStatement(ctx context.Context, b exchange.BankStatement, by exchange.Principal) (exchange.BankStatement, error) {
	var known exchange.BankStatement
	err := s.inTx(ctx, "bank statement", func(t unitTx) error {
		account, ours, err := readFound[exchange.HouseBankAccount](ctx, t, readBankAccount, b.BankID)
		if err != nil {
			return err
		}
		if err := require(ours, "/bank_account_id", "not_found", "must be a bank account of the house"); err != nil {
			return err
		}
		if err := require(account.AccountNumber == b.AccountNumber, "/statement/account", "mismatch", "must be the number of the bank account, "+account.AccountNumber); err != nil {
			return err
		}
		if err := require(account.Currency == b.Opening.Asset(), "/statement/currency", "mismatch", "must be the currency of the bank account, "+string(account.Currency)); err != nil {
			return err
		}
		began, err := t.Exec(ctx, insertStatement, b.ID, b.BankID, b.Format, b.Digest, b.Reference, b.From, b.To, b.Opening.Asset(), b.Opening.Decimal(), b.Closing.Decimal(),
			b.Lines, by.UserID, t.s.now(), b.FileID)
		if err == nil && began > 0 {
			err = t.useFile(ctx, exchange.FileUse{FileID: b.FileID, ObjectType: "bank_statement", ObjectID: b.ID}, by)
		}
		if err != nil {
			return err
		}
		err = t.Get(ctx, &known, readStatementByFile, b.Digest)
		if err == nil && known.BankID != b.BankID {
			err = exchange.Errorf(exchange.CodeConflict, "The file is the statement of another bank account of the house.")
		}
		return err
	})
	return known, err
}

// StatementBatch is how many lines are stored at once.
const StatementBatch = 1000

const insertLines = `
INSERT INTO bank_lines (id, statement_id, bank_account_id, number, bank_reference, value_date, booked_on, side, copy, asset, amount, reference, reference_code, party_name,
    party_account, description, status, created_at, updated_at)
SELECT x.id, $1, $2, x.number, x.bank_reference, x.value_date, x.booked_on, x.side, x.copy, $3, x.amount, x.reference, x.code, x.party_name, x.party_account, x.description, 'new', $4, $4
FROM unnest($5::uuid[], $6::int[], $7::text[], $8::date[], $9::date[], $10::text[], $11::numeric[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::int[])
    AS x (id, number, bank_reference, value_date, booked_on, side, amount, reference, code, party_name, party_account, description, copy)
ORDER BY x.bank_reference, x.value_date, x.amount, x.side, x.copy
ON CONFLICT (bank_account_id, bank_reference, value_date, amount, side, copy) DO NOTHING`

// SaveStatementLines stores lines of a statement that is being stored. Lines that are known are left as they are.
func (s *Store) SaveStatementLines(ctx context.Context, b exchange.BankStatement, lines []exchange.StatementLine) error {
	var ids, references, valued, booked, sides, texts, codes, names, accounts, descriptions []string
	var numbers, copies []int64
	var amounts []decimal.Decimal
	for _, l := range lines {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		ids, references, sides = append(ids, id.String()), append(references, l.BankReference), append(sides, string(l.Side))
		numbers, copies = append(numbers, int64(l.Number)), append(copies, int64(l.Copy))
		valued, booked = append(valued, l.ValueDate.Format(time.DateOnly)), append(booked, l.BookedOn.Format(time.DateOnly))
		amounts, texts, codes = append(amounts, l.Amount.Decimal()), append(texts, l.Reference), append(codes, exchange.BankReference(l.Reference))
		names, accounts, descriptions = append(names, l.PartyName), append(accounts, l.PartyAccount), append(descriptions, l.Description)
	}
	_, err := s.write(ctx, "statement line", insertLines, b.ID, b.BankID, b.Opening.Asset(), s.now(), pq.Array(ids), pq.Array(numbers), pq.Array(references), pq.Array(valued),
		pq.Array(booked), pq.Array(sides), pq.Array(amounts), pq.Array(texts), pq.Array(codes), pq.Array(names), pq.Array(accounts), pq.Array(descriptions), pq.Array(copies))
	return err
}

const closeStatement = `
UPDATE bank_statements s SET status = 'matching', fresh = (SELECT count(*) FROM bank_lines l WHERE l.statement_id = s.id), updated_at = $2, version = version + 1
WHERE s.id = $1 AND s.status = 'storing'`

// CloseStatement says that all lines of a statement are stored, so that they can be matched. A repeated call returns the statement.
func (s *Store) CloseStatement(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.BankStatement, error) {
	var b exchange.BankStatement
	err := s.inTx(ctx, "bank statement", func(t unitTx) error {
		closed, err := t.Exec(ctx, closeStatement, id, t.s.now())
		if err != nil {
			return err
		}
		if err := t.Get(ctx, &b, readStatement, id); err != nil || closed == 0 {
			return err
		}
		return t.record(ctx, auditEvent{by: by, object: "bank_statement", id: id, name: "bank_statement.imported", after: statementSnapshot(b)})
	})
	return b, err
}

// BankStatement reads a bank statement.
func (s *Store) BankStatement(ctx context.Context, id uuid.UUID) (exchange.BankStatement, error) {
	return readOne[exchange.BankStatement](ctx, s.db, "bank statement", readStatement, id)
}

// StatementFilter narrows a list of bank statements.
type StatementFilter struct {
	BankID uuid.UUID
	Status exchange.StatementStatus
}

// BankStatements pages through the bank statements, the newest first, with their number.
func (s *Store) BankStatements(ctx context.Context, f StatementFilter, p Page) ([]exchange.BankStatement, int, error) {
	var w where
	w.id("s.bank_account_id", f.BankID)
	w.eq("s.status", string(f.Status))
	return readPage[exchange.BankStatement](ctx, s, "bank statement", list{columns: statementColumns, from: "bank_statements s", where: w, order: "s.created_at DESC, s.id DESC"}, p)
}

const lineColumns = `l.id, l.statement_id, l.bank_account_id AS bank_id, l.number, l.copy, l.bank_reference, l.value_date, l.booked_on, l.side, l.amount||' '||l.asset AS amount, l.reference,
	l.party_name, l.party_account, l.description, l.status, coalesce(l.object_type, '') AS object_type, l.object_id, l.matched_by, l.matched_at,
	(SELECT x.id FROM payment_exceptions x WHERE x.line_id = l.id AND x.status = 'open') AS exception_id, l.created_at, l.updated_at, l.version`

const readLine = `SELECT ` + lineColumns + ` FROM bank_lines l WHERE l.id = $1`

// StatementLine reads a line of a bank statement.
func (s *Store) StatementLine(ctx context.Context, id uuid.UUID) (exchange.StatementLine, error) {
	return readOne[exchange.StatementLine](ctx, s.db, "statement line", readLine, id)
}

// LineFilter narrows a list of statement lines: value dates from FromDay on, before ToDay.
type LineFilter struct {
	StatementID, BankID uuid.UUID
	Status              exchange.LineStatus
	Side                exchange.StatementSide
	Reference           string // either the bank's or the payer's, in the form of BankReference
	FromDay, ToDay      time.Time
}

// StatementLines pages through the lines of bank statements, the newest value date first, with their number.
func (s *Store) StatementLines(ctx context.Context, f LineFilter, p Page) ([]exchange.StatementLine, int, error) {
	var w where
	w.id("l.statement_id", f.StatementID)
	w.id("l.bank_account_id", f.BankID)
	w.eq("l.status", string(f.Status))
	w.eq("l.side", string(f.Side))
	w.between("l.value_date", f.FromDay, f.ToDay)
	if f.Reference != "" {
		w.add("(l.bank_reference = ? OR l.reference_code = ?)", f.Reference, f.Reference)
	}
	return readPage[exchange.StatementLine](ctx, s, "statement line", list{columns: lineColumns, from: "bank_lines l", where: w, order: "l.value_date DESC, l.id DESC"}, p)
}

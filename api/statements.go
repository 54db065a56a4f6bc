package api

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/bank"
	"kivuko/exchange"
	"kivuko/store"
)

func (s *server) statementRoutes() []route {
	const statements, lines = treasuryPath + "/bank-statements", treasuryPath + "/statement-lines"
	return []route{
		{method: get, path: statements, action: exchange.ActReadStatements, limit: limitGeneral, handle: s.listStatements},
		{
			method: post, path: statements, action: exchange.ActImportStatements, limit: limitGeneral, key: keyRequired,
			timeout: importTimeout, handle: s.importStatement,
		},
		{method: get, path: statements + "/{id}", action: exchange.ActReadStatements, limit: limitGeneral, handle: showOne(s.Store.BankStatement, statementWire)},
		{method: get, path: lines, action: exchange.ActReadStatements, limit: limitGeneral, handle: s.listStatementLines},
		{method: get, path: lines + "/{id}", action: exchange.ActReadStatements, limit: limitGeneral, handle: showOne(s.Store.StatementLine, statementLineWire)},
		{method: post, path: lines + "/{id}/match", action: exchange.ActMatchLines, limit: limitGeneral, key: keyOptional, handle: s.matchLine},
		{method: post, path: lines + "/{id}/free", action: exchange.ActMatchLines, limit: limitGeneral, key: keyOptional, handle: s.freeLine},
	}
}

// wireStatement is a bank's statement of an account of the house.
type wireStatement struct {
	ID           uuid.UUID  `json:"id"`
	BankID       uuid.UUID  `json:"bank_account_id"`
	FileID       uuid.UUID  `json:"file_id"`
	Format       string     `json:"format"`
	SHA256       string     `json:"sha256"`
	Reference    string     `json:"reference"`
	FromDay      string     `json:"from_day"`
	ToDay        string     `json:"to_day"`
	Currency     string     `json:"currency"`
	Opening      string     `json:"opening_balance"`
	Closing      string     `json:"closing_balance"`
	Lines        int        `json:"lines"`
	Fresh        int        `json:"new_lines"`
	Unmatched    int        `json:"unmatched_lines"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Ledger       *string    `json:"ledger_balance"`
	Difference   *string    `json:"difference"`
	Unexplained  *string    `json:"unexplained"`
	Gap          *string    `json:"gap"`
	ImportedBy   uuid.UUID  `json:"imported_by"`
	ComparedAt   *timestamp `json:"compared_at"`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
}

func statementWire(b exchange.BankStatement) wireStatement {
	w := wireStatement{
		ID: b.ID, BankID: b.BankID, FileID: b.FileID, Format: string(b.Format), SHA256: b.Digest, Reference: b.Reference, FromDay: b.From.Format(time.DateOnly), ToDay: b.To.Format(time.DateOnly),
		Currency: string(b.Opening.Asset()), Opening: b.Opening.String(), Closing: b.Closing.String(), Lines: b.Lines, Fresh: b.Fresh, Unmatched: b.Unmatched,
		Status: string(b.Status), StatusDetail: b.WaitsFor(), ImportedBy: b.ImportedBy, ComparedAt: optTime(b.ComparedAt), CreatedAt: stamp(b.CreatedAt), UpdatedAt: stamp(b.UpdatedAt),
	}
	if b.Status == exchange.StatementCompared {
		ledger, difference, unexplained := b.Ledger.String(), b.Difference.String(), b.Unexplained.String()
		w.Ledger, w.Difference, w.Unexplained = &ledger, &difference, &unexplained
	}
	if b.Gap != nil {
		gap := b.Gap.String()
		w.Gap = &gap
	}
	return w
}

var statementStatuses = names(exchange.StatementMachine.States())

func (s *server) listStatements(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.StatementFilter{BankID: q.id("bank_account_id"), Status: exchange.StatementStatus(q.oneOf("status", statementStatuses...))}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "bank_statements", page, statementWire)(s.Store.BankStatements(c.ctx, filter, page))
}

// wireStatementLine is a line of a bank's statement. Only staff see it.
type wireStatementLine struct {
	ID            uuid.UUID  `json:"id"`
	StatementID   uuid.UUID  `json:"statement_id"`
	BankID        uuid.UUID  `json:"bank_account_id"`
	Number        int        `json:"number"`
	BankReference string     `json:"bank_reference"`
	ValueDate     string     `json:"value_date"`
	BookedOn      string     `json:"booked_on"`
	Side          string     `json:"side"`
	Amount        string     `json:"amount"`
	Currency      string     `json:"currency"`
	Reference     *string    `json:"reference"`
	PartyName     *string    `json:"party_name"`
	PartyAccount  *string    `json:"party_account"`
	Description   *string    `json:"description"`
	Status        string     `json:"status"`
	StatusDetail  string     `json:"status_detail"`
	ObjectType    *string    `json:"object_type"`
	ObjectID      *uuid.UUID `json:"object_id"`
	MatchedBy     *uuid.UUID `json:"matched_by"`
	MatchedAt     *timestamp `json:"matched_at"`
	ExceptionID   *uuid.UUID `json:"payment_exception_id"`
	CreatedAt     timestamp  `json:"created_at"`
	UpdatedAt     timestamp  `json:"updated_at"`
}

func statementLineWire(l exchange.StatementLine) wireStatementLine {
	return wireStatementLine{
		ID: l.ID, StatementID: l.StatementID, BankID: l.BankID, Number: l.Number, BankReference: l.BankReference, ValueDate: l.ValueDate.Format(time.DateOnly),
		BookedOn: l.BookedOn.Format(time.DateOnly), Side: string(l.Side), Amount: l.Amount.String(), Currency: string(l.Amount.Asset()), Reference: optText(l.Reference),
		PartyName: optText(l.PartyName), PartyAccount: optText(l.PartyAccount), Description: optText(l.Description), Status: string(l.Status), StatusDetail: l.WaitsFor(),
		ObjectType: optText(l.ObjectType), ObjectID: optID(l.ObjectID), MatchedBy: optID(l.MatchedBy), MatchedAt: optTime(l.MatchedAt), ExceptionID: optID(l.ExceptionID),
		CreatedAt: stamp(l.CreatedAt), UpdatedAt: stamp(l.UpdatedAt),
	}
}

var (
	lineStatuses = names(exchange.LineMachine.States())
	lineSides    = []string{string(exchange.SideCredit), string(exchange.SideDebit)}
)

func (s *server) listStatementLines(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.LineFilter{
		StatementID: q.id("statement_id"), BankID: q.id("bank_account_id"), Status: exchange.LineStatus(q.oneOf("status", lineStatuses...)),
		Side: exchange.StatementSide(q.oneOf("side", lineSides...)), Reference: exchange.BankReference(q.text("reference", false)),
		FromDay: q.day("from_day"), ToDay: q.day("to_day"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "statement_lines", page, statementLineWire)(s.Store.StatementLines(c.ctx, filter, page))
}

// freeLine proposes that a line is no longer that of the payout which an officer named for it.
func (s *server) freeLine(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	note := f.text("note", true, exchange.MaxExceptionReason)
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeFreeLine(c.ctx, id, note, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return answerPending(c, waits)
}

// matchLine names what explains a line.
func (s *server) matchLine(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	object, objectID := f.oneOf("object_type", true, exchange.NamedLineObjects()...), f.id("object_id", true)
	if err := f.done(); err != nil {
		return err
	}
	return answer(c, http.StatusOK, statementLineWire)(s.Store.MatchLine(c.ctx, id, object, objectID, c.who))
}

// statementFormats are the formats of statements by the types of their files.
var statementFormats = map[exchange.FileType]exchange.StatementFormat{exchange.FileXML: exchange.StatementCAMT, exchange.FileCSV: exchange.StatementCSV}

// importStatement takes the statement that an uploaded file has. A file that is known, under whatever name it was uploaded again,
// gives its statement.
func (s *server) importStatement(c *call) error {
	if s.Files == nil {
		return errNoFiles
	}
	f, err := c.body()
	if err != nil {
		return err
	}
	b := exchange.BankStatement{ID: c.objectID, BankID: f.id("bank_account_id", true), FileID: f.id("file_id", true)}
	if err := f.done(); err != nil {
		return err
	}
	file, key, err := s.Store.ViewFile(c.ctx, c.view(), b.FileID, map[string]any{"by": "import"}, c.who)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return exchange.Invalid(exchange.FieldError{Pointer: "/file_id", Code: "not_found", Message: "must be a file"})
	}
	if err != nil {
		return err
	}
	if file.Purpose != exchange.FileBankStatement {
		return exchange.Invalid(exchange.FieldError{Pointer: "/file_id", Code: "purpose", Message: "must be uploaded for the purpose bank_statement"})
	}
	b.Format, b.Digest = statementFormats[file.Type], hex.EncodeToString(file.SHA256)
	open := func() (io.ReadCloser, error) {
		content, err := s.Files.Open(c.ctx, exchange.FileRef{ID: file.ID, Purpose: file.Purpose}, key, 0)
		if err != nil {
			err = s.contentFault(file.ID, err)
		}
		return content, err
	}
	if b, err = s.takeStatement(c.ctx, b, open, c.who); err != nil {
		return err
	}
	return c.json(http.StatusOK, statementWire(b))
}

// takeStatement checks a statement file as a whole, and then stores its lines; open gives the file from its beginning. What was
// interrupted is continued by another call with the same file, and a repeated one changes nothing.
func (s *server) takeStatement(ctx context.Context, b exchange.BankStatement, open func() (io.ReadCloser, error), by exchange.Principal) (exchange.BankStatement, error) {
	said, err := readStatement(open, b.Format, func(exchange.StatementLine) error { return nil })
	if err != nil {
		return b, err
	}
	said.ID, said.BankID, said.FileID, said.Digest = b.ID, b.BankID, b.FileID, b.Digest
	known, err := s.Store.BeginStatement(ctx, said, by)
	if err != nil || known.Status != exchange.StatementStoring {
		return known, err
	}
	batch := make([]exchange.StatementLine, 0, store.StatementBatch)
	save := func() error {
		err := s.Store.SaveStatementLines(ctx, known, batch)
		batch = batch[:0]
		return err
	}
	_, err = readStatement(open, b.Format, func(l exchange.StatementLine) error {
		if batch = append(batch, l); len(batch) < store.StatementBatch {
			return nil
		}
		return save()
	})
	if err == nil {
		err = save()
	}
	if err != nil {
		return known, err
	}
	return s.Store.CloseStatement(ctx, known.ID, by)
}

func readStatement(open func() (io.ReadCloser, error), format exchange.StatementFormat, take bank.Take) (exchange.BankStatement, error) {
	file, err := open()
	if err != nil {
		return exchange.BankStatement{}, err
	}
	b, err := bank.Read(file, format, take)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return b, err
}

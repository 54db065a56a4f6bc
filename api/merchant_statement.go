package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// wireMerchantStatement is the head of a merchant's statement. The movements follow it in the same object.
type wireMerchantStatement struct {
	MerchantID uuid.UUID `json:"merchant_id"`
	Currency   string    `json:"currency"`
	FromDay    string    `json:"from_day"`
	ToDay      string    `json:"to_day"`
	AsOf       timestamp `json:"as_of"`
	Opening    string    `json:"opening_balance"`
	Credits    string    `json:"credits"`
	Debits     string    `json:"debits"`
	Closing    string    `json:"closing_balance"`
	Total      int       `json:"total"`
}

func merchantStatementWire(st exchange.MerchantStatement) wireMerchantStatement {
	return wireMerchantStatement{
		MerchantID: st.MerchantID, Currency: string(st.Opening.Asset()), FromDay: st.From.Format(time.DateOnly), ToDay: st.To.Format(time.DateOnly), AsOf: stamp(st.At),
		Opening: st.Opening.String(), Credits: st.Credits.String(), Debits: st.Debits.String(), Closing: st.Closing.String(), Total: st.Movements,
	}
}

// wireStatementMovement is one change of a merchant's balance.
type wireStatementMovement struct {
	At         timestamp  `json:"at"`
	Reason     string     `json:"reason"`
	ObjectType *string    `json:"object_type"`
	ObjectID   *uuid.UUID `json:"object_id"`
	Reference  *string    `json:"reference"`
	Asset      *string    `json:"asset"`
	Crypto     *string    `json:"crypto_amount"`
	Debit      string     `json:"debit"`
	Credit     string     `json:"credit"`
	Balance    string     `json:"balance"`
}

func statementMovementWire(m exchange.StatementMovement) wireStatementMovement {
	w := wireStatementMovement{
		At: stamp(m.At), Reason: string(m.Reason), ObjectType: optText(m.ObjectType), ObjectID: optID(m.ObjectID), Reference: optText(m.Reference),
		Debit: m.Debit.String(), Credit: m.Credit.String(), Balance: m.Balance.String(),
	}
	if m.Crypto.Asset() != "" {
		w.Asset, w.Crypto = optText(string(m.Crypto.Asset())), optText(m.Crypto.String())
	}
	return w
}

const (
	formatJSON = "json"
	formatCSV  = "csv"
)

// merchantStatement answers with the movements of a merchant's shillings in a period; without one, in this month so far.
func (s *server) merchantStatement(c *call) error {
	id, err := c.pathID("merchant_id")
	if err != nil {
		return err
	}
	q := c.query()
	from, to, format := q.day("from_day"), q.day("to_day"), q.oneOf("format", formatJSON, formatCSV)
	if to.IsZero() {
		to = exchange.KenyanDay(s.now()).AddDate(0, 0, 1)
	}
	if from.IsZero() {
		last := to.AddDate(0, 0, -1)
		from = last.AddDate(0, 0, 1-last.Day())
	}
	if days := to.Sub(from) / (24 * time.Hour); days < 1 || days > exchange.MaxStatementDays {
		q.fail("to_day", "out_of_range", fmt.Sprintf("must be 1 to %d days after from_day", exchange.MaxStatementDays))
	}
	if err := q.done(); err != nil {
		return err
	}
	st, err := s.Store.MerchantStatement(c.ctx, c.view(), id, from, to)
	if err != nil {
		return hideAbsence(err)
	}
	// The movements are read after the handler has returned, while the answer is sent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), s.within(downloadTimeout))
	sent := &sentStatement{st: st, after: st.Lines.After, balance: st.Opening, cancel: cancel, form: &jsonStatement{}, more: func(after int64, balance money.Amount) ([]exchange.StatementMovement, error) {
		return s.Store.StatementMovements(ctx, st, after, balance)
	}}
	c.fc.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if format == formatCSV {
		sent.form = &csvStatement{}
		c.fc.Set(fiber.HeaderContentType, "text/csv; charset=utf-8; header=present")
		name := "statement-" + st.From.Format(time.DateOnly) + "-" + st.To.Format(time.DateOnly) + ".csv"
		c.fc.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	if err := sent.begin(); err != nil {
		cancel()
		return err
	}
	c.fc.Status(http.StatusOK).Context().SetBodyStream(sent, -1)
	return nil
}

// statementForm writes a statement in one form.
type statementForm interface {
	head(w *bytes.Buffer, st exchange.MerchantStatement) error
	movement(w *bytes.Buffer, m exchange.StatementMovement) error
	end(w *bytes.Buffer, st exchange.MerchantStatement) error
}

// sentStatement is a statement on its way. It reads the next movements when those before them are sent, so that its memory does not
// grow with the statement. When it can't go on, the connection closes before the end.
type sentStatement struct {
	st      exchange.MerchantStatement
	form    statementForm
	more    func(after int64, balance money.Amount) ([]exchange.StatementMovement, error)
	cancel  func()
	ready   bytes.Buffer
	after   int64
	balance money.Amount
	count   int
	ended   bool
}

// begin makes the head and the first movements ready, so that the caller learns of a fault before anything is sent.
func (s *sentStatement) begin() error {
	if err := s.form.head(&s.ready, s.st); err != nil {
		return err
	}
	return s.next()
}

// next makes the next movements ready, or the end. The movements lead to the closing balance, or there is no end.
func (s *sentStatement) next() error {
	found, err := s.more(s.after, s.balance)
	if err != nil {
		return err
	}
	for _, m := range found {
		if err := s.form.movement(&s.ready, m); err != nil {
			return err
		}
		s.after, s.balance = m.Line, m.Balance
	}
	if s.count += len(found); len(found) > 0 {
		return nil
	}
	if s.count != s.st.Movements || !s.balance.Equal(s.st.Closing) {
		return exchange.Errorf(exchange.CodeInternal, "the movements of a statement don't lead to its closing balance")
	}
	s.ended = true
	return s.form.end(&s.ready, s.st)
}

func (s *sentStatement) Read(b []byte) (int, error) {
	for s.ready.Len() == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	return s.ready.Read(b)
}

func (s *sentStatement) Close() error {
	s.cancel()
	return nil
}

// jsonStatement is a statement as one object.
type jsonStatement struct{ several bool }

func (*jsonStatement) head(w *bytes.Buffer, st exchange.MerchantStatement) error {
	raw, err := json.Marshal(merchantStatementWire(st))
	w.Write(bytes.TrimSuffix(raw, []byte("}")))
	w.WriteString(`,"movements":[`)
	return err
}

func (j *jsonStatement) movement(w *bytes.Buffer, m exchange.StatementMovement) error {
	if j.several {
		w.WriteByte(',')
	}
	j.several = true
	raw, err := json.Marshal(statementMovementWire(m))
	w.Write(raw)
	return err
}

func (*jsonStatement) end(w *bytes.Buffer, _ exchange.MerchantStatement) error {
	w.WriteString("]}")
	return nil
}

// csvStatement is a statement as a table (RFC 4180). Its first row has the opening balance, its last the sums and the closing balance.
type csvStatement struct{}

var statementColumns = []string{"day", "at", "reason", "object_type", "object_id", "reference", "asset", "crypto_amount", "debit", "credit", "balance"}

func csvRow(w *bytes.Buffer, cells ...string) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	_ = out.Write(cells) // Error returns it
	out.Flush()
	return out.Error()
}

func (csvStatement) head(w *bytes.Buffer, st exchange.MerchantStatement) error {
	if err := csvRow(w, statementColumns...); err != nil {
		return err
	}
	return csvRow(w, st.From.Format(time.DateOnly), "", "opening_balance", "", "", "", "", "", "", "", st.Opening.String())
}

func (csvStatement) movement(w *bytes.Buffer, m exchange.StatementMovement) error {
	object, asset, crypto := "", "", ""
	if m.ObjectID != uuid.Nil {
		object = m.ObjectID.String()
	}
	if m.Crypto.Asset() != "" {
		asset, crypto = string(m.Crypto.Asset()), m.Crypto.String()
	}
	return csvRow(w, exchange.KenyanDay(m.At).Format(time.DateOnly), string(stamp(m.At)), string(m.Reason), m.ObjectType, object, csvText(m.Reference), asset, crypto,
		m.Debit.String(), m.Credit.String(), m.Balance.String())
}

func (csvStatement) end(w *bytes.Buffer, st exchange.MerchantStatement) error {
	return csvRow(w, st.To.AddDate(0, 0, -1).Format(time.DateOnly), "", "closing_balance", "", "", "", "", "", st.Debits.String(), st.Credits.String(), st.Closing.String())
}

// csvText is a text from outside as a cell that no spreadsheet takes for a formula.
func csvText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(s)[0]) {
		return "'" + s
	}
	return s
}

package bank

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"kivuko/exchange"
)

// Bounds of an XML file. They hold for honest files by far.
const (
	longestPart  = 64 << 10 // bytes of a tag, a text or a comment
	deepestLevel = 32
	longestValue = 4 << 10 // bytes of a value that is kept
	manyMembers  = 100     // of the parties and details of an entry
)

const camtNamespace = "urn:iso:std:iso:20022:tech:xsd:camt.053.001."

// camt reads camt.053 as a stream of tags. It keeps the names of the open elements and the values of one entry.
type camt struct {
	s      *statement
	path   []string
	text   strings.Builder
	head   head
	entry  *entry
	amount struct{ text, currency, side, code, day string } // of the present balance
	begun  bool                                             // the head of the statement is complete
}

// entry is the present Ntry.
type entry struct {
	raw
	status, entryReference, detailReference string
	details                                 int
	debtor, creditor                        party
}

type party struct{ name, account string }

// readCAMT reads a CAMT.053 document.
func (s *statement) readCAMT(in io.Reader) error {
	part := &narrow{in: in, limit: longestPart}
	d := xml.NewDecoder(part)
	c := &camt{s: s}
	for {
		part.next()
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = c.token(token)
		}
		if err != nil {
			return c.fault(d, err)
		}
	}
}

// fault is the error of a file that is no XML, with its place.
func (c *camt) fault(d *xml.Decoder, err error) error {
	if e := own(err); e != nil {
		return e
	}
	syntax, broken := errors.AsType[*xml.SyntaxError](err)
	if !broken && !strings.HasPrefix(err.Error(), "xml:") {
		return err
	}
	row, _ := d.InputPos()
	what := err.Error()
	if broken {
		what = syntax.Msg
	}
	return fault("/file", "format", "row %d is no XML: %s", row, plain(what, exchange.MaxLineText))
}

func (c *camt) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.Directive:
		return fault("/file", "markup", "must have no document type")
	case xml.StartElement:
		return c.start(t)
	case xml.CharData:
		if c.text.Len()+len(t) <= longestValue {
			c.text.Write(t)
		}
	case xml.EndElement:
		return c.finish()
	}
	return nil
}

func (c *camt) start(t xml.StartElement) error {
	if len(c.path) == deepestLevel {
		return fault("/file", "format", "has more than %d levels", deepestLevel)
	}
	if len(c.path) == 0 && (t.Name.Local != "Document" || !strings.HasPrefix(t.Name.Space, camtNamespace)) {
		return fault("/file", "format", "must be a camt.053 document")
	}
	c.path = append(c.path, t.Name.Local)
	c.text.Reset()
	switch c.at() {
	case "Stmt":
		c.head, c.begun = head{}, false
	case "Stmt/Bal":
		c.amount.text, c.amount.currency, c.amount.side, c.amount.code, c.amount.day = "", "", "", "", ""
	case "Stmt/Ntry":
		c.entry = &entry{}
		return c.beginOnce()
	case "Stmt/Bal/Amt":
		c.amount.currency = attribute(t, "Ccy")
	case "Stmt/Ntry/Amt":
		c.entry.currency = attribute(t, "Ccy")
	case "Stmt/Ntry/NtryDtls/TxDtls":
		if c.entry.details++; c.entry.details > manyMembers {
			c.entry.details = manyMembers // the first ones tell enough
		}
	}
	return nil
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// at is the path of the present element below the document's body.
func (c *camt) at() string {
	const above = 2 // Document and BkToCstmrStmt
	if len(c.path) <= above || c.path[1] != "BkToCstmrStmt" {
		return ""
	}
	return strings.Join(c.path[above:], "/")
}

func (c *camt) finish() error {
	at, value := c.at(), strings.TrimSpace(c.text.String())
	c.path = c.path[:len(c.path)-1]
	c.text.Reset()
	switch {
	case at == "Stmt":
		if err := c.beginOnce(); err != nil {
			return err
		}
		return c.s.end()
	case at == "Stmt/Bal":
		return c.balance()
	case at == "Stmt/Ntry":
		return c.line()
	case c.entry != nil:
		c.entry.set(strings.TrimPrefix(at, "Stmt/Ntry/"), value)
	default:
		c.set(strings.TrimPrefix(at, "Stmt/"), value)
	}
	return nil
}

// set keeps a value of the statement's head.
func (c *camt) set(at, value string) {
	switch at {
	case "Id":
		c.head.reference = value
	case "FrToDt/FrDtTm", "FrToDt/FrDt":
		c.head.from = value
	case "FrToDt/ToDtTm", "FrToDt/ToDt":
		c.head.to = value
	case "Acct/Id/IBAN", "Acct/Id/Othr/Id":
		c.head.account = value
	case "Acct/Ccy":
		c.head.currency = value
	case "Bal/Tp/CdOrPrtry/Cd":
		c.amount.code = value
	case "Bal/Amt":
		c.amount.text = value
	case "Bal/CdtDbtInd":
		c.amount.side = value
	case "Bal/Dt/Dt", "Bal/Dt/DtTm":
		c.amount.day = value
	}
}

// balance takes over the opening or the closing balance. A statement without a range of days has those of its balances.
func (c *camt) balance() error {
	text, field := unpadded(c.amount.text), "opening_balance"
	if c.amount.side == "DBIT" && text != "" {
		text = "-" + text
	}
	switch c.amount.code {
	case "OPBD":
		c.head.opening = text
		if c.head.from == "" {
			c.head.from = c.amount.day
		}
	case "PRCD": // the closing balance of the statement before
		if c.head.opening == "" {
			c.head.opening = text
		}
	case "CLBD":
		field = "closing_balance"
		c.head.closing = text
		if c.head.to == "" {
			c.head.to = c.amount.day
		}
		if c.head.from == "" {
			c.head.from = c.amount.day
		}
	default: // of other funds, or of another moment
		return nil
	}
	if c.head.currency == "" {
		c.head.currency = c.amount.currency
	}
	switch {
	case c.amount.currency != c.head.currency:
		return fault(headAt(field), "mismatch", "must be in %s, the currency of the account", c.head.currency)
	case c.amount.side != "CRDT" && c.amount.side != "DBIT":
		return fault(headAt(field), "enum", "must be marked CRDT or DBIT")
	}
	return nil
}

// unpadded is an amount of XML, whose decimal point is always a point, without the zeros at its end that say nothing.
func unpadded(amount string) string {
	if strings.Contains(amount, ".") {
		return strings.TrimSuffix(strings.TrimRight(amount, "0"), ".")
	}
	return amount
}

// beginOnce begins the statement when its head is complete: at the first entry, or at the end of one without entries.
func (c *camt) beginOnce() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.s.begin(c.head)
}

// set keeps a value of an entry.
func (e *entry) set(at, value string) {
	switch at {
	case "NtryRef":
		e.entryReference = value
	case "AcctSvcrRef":
		e.bankReference = value
	case "Amt":
		e.amount = unpadded(value)
	case "CdtDbtInd":
		e.side = value
	case "Sts", "Sts/Cd", "Sts/Prtry":
		if value != "" {
			e.status = value
		}
	case "BookgDt/Dt", "BookgDt/DtTm":
		e.bookedOn = value
	case "ValDt/Dt", "ValDt/DtTm":
		e.valueDate = value
	case "AddtlNtryInf":
		e.describe(value)
	default:
		if detail, ok := strings.CutPrefix(at, "NtryDtls/TxDtls/"); ok && e.details == 1 {
			e.setDetail(detail, value)
		}
	}
}

// describe adds to the description, which is cut later.
func (e *entry) describe(value string) {
	if len(e.description) <= longestValue {
		e.description = strings.TrimSpace(e.description + " " + value)
	}
}

// setDetail keeps a value of the first transaction of an entry.
func (e *entry) setDetail(at, value string) {
	switch at {
	case "Refs/AcctSvcrRef":
		e.detailReference = value
	case "Refs/EndToEndId":
		if e.reference == "" && value != "NOTPROVIDED" {
			e.reference = value
		}
	case "RmtInf/Ustrd", "RmtInf/Strd/CdtrRefInf/Ref":
		e.describe(value)
	case "RltdPties/Dbtr/Nm", "RltdPties/Dbtr/Pty/Nm":
		e.debtor.name = value
	case "RltdPties/Cdtr/Nm", "RltdPties/Cdtr/Pty/Nm":
		e.creditor.name = value
	case "RltdPties/DbtrAcct/Id/IBAN", "RltdPties/DbtrAcct/Id/Othr/Id":
		e.debtor.account = value
	case "RltdPties/CdtrAcct/Id/IBAN", "RltdPties/CdtrAcct/Id/Othr/Id":
		e.creditor.account = value
	}
}

// counts reports whether a reference only numbers the entries of a file: in another file the same movement has another number.
func counts(reference string) bool {
	return len(reference) <= len("100000") && strings.Trim(reference, "0123456789") == ""
}

// line hands out an entry. Only booked ones are part of the balance. Of an entry with several transactions nobody is the party.
func (c *camt) line() error {
	e := c.entry
	c.entry = nil
	switch e.status {
	case "BOOK":
	case "":
		return fault(fmt.Sprintf("/lines/%d/status", c.s.lines+1), "required", "must say whether the entry is booked")
	default:
		return nil
	}
	if e.bankReference == "" {
		e.bankReference = e.detailReference
	}
	if e.bankReference == "" && !counts(e.entryReference) {
		e.bankReference = e.entryReference
	}
	if e.valueDate == "" {
		e.valueDate = e.bookedOn
	}
	who := party{}
	switch e.side {
	case "CRDT":
		e.side, who = string(exchange.SideCredit), e.debtor
	case "DBIT":
		e.side, who = string(exchange.SideDebit), e.creditor
	}
	e.partyName, e.partyAccount = who.name, who.account
	if e.details > 1 {
		e.reference, e.partyName, e.partyAccount = "", "", ""
	}
	return c.s.line(e.raw)
}

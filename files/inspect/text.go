package inspect

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"kivuko/exchange"
)

// statementNamespace begins the names of all versions of the bank statement (ISO 20022, camt.053).
const statementNamespace = "urn:iso:std:iso:20022:tech:xsd:camt.053."

// checkXML accepts a bank statement as CAMT.053, without a document type: that could name other files, or expand to gigabytes.
func checkXML(content io.Reader) error {
	text := &plainReader{in: bufio.NewReader(content)}
	decoder := xml.NewDecoder(text)
	decoder.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errNotPlain }
	for {
		token, err := decoder.Token()
		switch t := token.(type) {
		case xml.Directive:
			return refuse(exchange.FileRuleMarkup, "must not have a document type")
		case xml.StartElement:
			if t.Name.Local != "Document" || !strings.HasPrefix(t.Name.Space, statementNamespace) {
				return refuse(exchange.FileRuleType, "must be a bank statement as CAMT.053")
			}
			_, err := io.Copy(io.Discard, text)
			return textFault(err, "XML in UTF-8")
		}
		if err != nil {
			return textFault(err, "XML in UTF-8")
		}
	}
}

// checkText accepts text without control characters. What its columns are is for the import to say.
func checkText(content io.Reader) error {
	_, err := io.Copy(io.Discard, &plainReader{in: bufio.NewReader(content)})
	return textFault(err, "text in UTF-8")
}

var errNotPlain = errors.New("not plain text in UTF-8")

func textFault(err error, what string) error {
	_, syntax := errors.AsType[*xml.SyntaxError](err)
	if errors.Is(err, errNotPlain) || syntax || errors.Is(err, io.EOF) {
		return damaged(what)
	}
	return err
}

// plainReader passes UTF-8 on and fails at anything else, and at control characters.
type plainReader struct {
	in    *bufio.Reader
	fault error
}

func (p *plainReader) Read(b []byte) (int, error) {
	n := 0
	if p.fault != nil {
		return 0, p.fault
	}
	for n+utf8.UTFMax <= len(b) {
		r, size, err := p.in.ReadRune()
		if err != nil {
			return n, err
		}
		if r == unicode.ReplacementChar && size == 1 || unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			p.fault = errNotPlain
			return n, p.fault
		}
		n += utf8.EncodeRune(b[n:], r)
		if p.in.Buffered() == 0 {
			break
		}
	}
	return n, nil
}

package bank

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// longestRow bounds a row of a CSV, in bytes.
const longestRow = 16 << 10

// readCSV reads a file in our own format: rows of a name and a value, then the names of the columns, then the lines.
func (s *statement) readCSV(in io.Reader) error {
	part := &narrow{in: in, limit: longestRow}
	r := rows{csv.NewReader(part), part}
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	columns, err := s.csvHead(r)
	if err != nil {
		return err
	}
	for {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(row) != len(columns) {
			line, _ := r.FieldPos(0)
			return fault("/file", "columns", "row %d has %d fields, and there are %d columns", line, len(row), len(columns))
		}
		if err := s.line(csvLine(columns, row)); err != nil {
			return err
		}
	}
}

// rows are the rows of a CSV, each of which is a part of the file.
type rows struct {
	*csv.Reader
	part *narrow
}

func (r rows) next() ([]string, error) {
	r.part.next()
	row, err := r.Read()
	switch parse := (*csv.ParseError)(nil); {
	case err == nil:
	case own(err) != nil:
		return nil, own(err)
	case errors.As(err, &parse):
		return nil, fault("/file", "format", "row %d is no CSV: %s", parse.Line, parse.Err)
	default:
		return nil, err
	}
	for _, field := range row {
		if !utf8.ValidString(field) {
			line, _ := r.FieldPos(0)
			return nil, fault("/file", "encoding", "row %d is not UTF-8", line)
		}
	}
	return row, nil
}

// csvHead reads the rows before the lines, and the names of the columns.
func (s *statement) csvHead(r rows) ([]string, error) {
	var h head
	names := map[string]*string{
		"statement": &h.reference, "account": &h.account, "currency": &h.currency, "from": &h.from, "to": &h.to,
		"opening_balance": &h.opening, "closing_balance": &h.closing,
	}
	for first := true; ; first = false {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil, fault("/file", "columns", "the file has no row with the names of its columns")
		}
		if err != nil {
			return nil, err
		}
		if first {
			row[0] = strings.TrimPrefix(row[0], "\ufeff")
		}
		if to := names[row[0]]; to != nil && len(row) == 2 && *to == "" {
			*to = strings.TrimSpace(row[1])
			continue
		}
		for _, column := range row {
			if !known(column) {
				line, _ := r.FieldPos(0)
				return nil, fault("/file", "columns", "row %d has neither a name and its value nor the names of the columns: %q is none", line, plain(column, longestName))
			}
		}
		columns := slices.Clone(row)
		for _, name := range needed {
			if !slices.Contains(columns, name) {
				return nil, fault("/file", "columns", "the column %s is missing", name)
			}
		}
		if sorted := slices.Sorted(slices.Values(columns)); len(slices.Compact(sorted)) != len(columns) {
			return nil, fault("/file", "columns", "a column is named twice")
		}
		return columns, s.begin(h)
	}
}

const longestName = 40 // of a column in a message

func csvLine(columns, row []string) raw {
	var l raw
	to := map[string]*string{
		"bank_reference": &l.bankReference, "value_date": &l.valueDate, "booked_on": &l.bookedOn, "side": &l.side, "amount": &l.amount,
		"reference": &l.reference, "party_name": &l.partyName, "party_account": &l.partyAccount, "description": &l.description,
	}
	for i, name := range columns {
		*to[name] = strings.TrimSpace(row[i])
	}
	return l
}

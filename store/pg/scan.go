package pg

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Rows are scanned into structs by name: the column customer_id is the field CustomerID, and "price.fiat" is the
// field Fiat of the field Price. A db tag names another column. The columns of a query and the fields of its struct
// must be the same, so a column that was forgotten is an error and not a zero value.
//
// Besides what database/sql can scan, a field is
//   - a time: in UTC, zero for NULL;
//   - an amount of money: the text "12.50 KES", which a query makes as amount||' '||asset; a network stands for its
//     native coin; zero for NULL;
//   - a decimal: zero for NULL;
//   - a list: a PostgreSQL array;
//   - another struct or map: a JSON document.

// get scans the first row, and fails with sql.ErrNoRows without one.
func get(rows *sql.Rows, err error, dest any) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	v := reflect.ValueOf(dest).Elem()
	s, err := scannerOf(rows, v.Type())
	if err != nil {
		return err
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	v.SetZero() // an id keeps its value when it scans NULL
	if err := s.scan(rows, v); err != nil {
		return err
	}
	return rows.Close()
}

// all scans all rows into the slice that dest points to.
func all(rows *sql.Rows, err error, dest any) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	list := reflect.ValueOf(dest).Elem()
	s, err := scannerOf(rows, list.Type().Elem())
	if err != nil {
		return err
	}
	list.Set(reflect.MakeSlice(list.Type(), 0, 0))
	for rows.Next() {
		list.Set(reflect.Append(list, reflect.Zero(list.Type().Elem())))
		if err := s.scan(rows, list.Index(list.Len()-1)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// field is where a column goes: a place within a struct, and how it is read there; nil is the way of database/sql.
type field struct {
	index []int
	read  func(to reflect.Value, from any) error
}

// scanner scans the rows of one query.
type scanner struct {
	fields  []field
	ours    []*target // nil for a field that database/sql reads
	targets []any
}

// target is a field that is read in a way of ours.
type target struct {
	to   reflect.Value
	read func(reflect.Value, any) error
}

// Scan implements sql.Scanner.
func (t *target) Scan(from any) error { return t.read(t.to, from) }

func (s scanner) scan(rows *sql.Rows, row reflect.Value) error {
	for i, f := range s.fields {
		to := row
		if f.index != nil {
			to = row.FieldByIndex(f.index)
		}
		if f.read != nil {
			s.ours[i].to = to
		} else {
			s.targets[i] = to.Addr().Interface()
		}
	}
	return rows.Scan(s.targets...)
}

// matched keeps the fields by the type of the row and the names of the columns.
var matched sync.Map

type matchKey struct {
	row     reflect.Type
	columns string
}

func scannerOf(rows *sql.Rows, row reflect.Type) (scanner, error) {
	columns, err := rows.Columns()
	if err != nil {
		return scanner{}, err
	}
	key := matchKey{row, strings.Join(columns, ",")}
	known, _ := matched.Load(key)
	fields, ok := known.([]field)
	if !ok {
		if fields, err = match(row, columns); err != nil {
			return scanner{}, err
		}
		matched.Store(key, fields)
	}
	s := scanner{fields: fields, ours: make([]*target, len(columns)), targets: make([]any, len(columns))}
	for i, f := range s.fields {
		if f.read != nil {
			s.ours[i] = &target{read: f.read}
			s.targets[i] = s.ours[i]
		}
	}
	return s, nil
}

// match finds the field of each column, and fails unless all columns and all fields are matched.
func match(row reflect.Type, columns []string) ([]field, error) {
	if !composite(row) {
		if len(columns) != 1 {
			return nil, exchange.Errorf(exchange.CodeInternal, "a query for one %s has %d columns", row, len(columns))
		}
		return []field{{nil, reader(row)}}, nil
	}
	left := map[string]bool{}
	for _, c := range columns {
		if left[c] {
			return nil, exchange.Errorf(exchange.CodeInternal, "a query for %s has two columns %s", row, c)
		}
		left[c] = true
	}
	found := map[string]field{}
	missing := collect(row, nil, "", left, found)
	fields := make([]field, len(columns))
	for i, c := range columns {
		f, ok := found[c]
		if !ok {
			return nil, exchange.Errorf(exchange.CodeInternal, "the column %s has no field in %s", c, row)
		}
		fields[i] = f
	}
	if missing != "" {
		return nil, exchange.Errorf(exchange.CodeInternal, "the field %s of %s has no column", missing, row)
	}
	return fields, nil
}

// collect finds the fields of a struct and of the structs that it embeds; the outer one of two with one name counts.
// It returns the name of a field without a column.
func collect(t reflect.Type, at []int, prefix string, columns map[string]bool, found map[string]field) (missing string) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, index := f.Tag.Get("db"), append(append([]int{}, at...), i)
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && composite(f.Type):
			embedded = append(embedded, f)
			continue
		case name == "":
			name = snake(f.Name)
		}
		name = prefix + name
		switch _, taken := found[name]; {
		case taken:
		case columns[name]:
			found[name] = field{index, reader(f.Type)}
		case composite(f.Type) && within(columns, name+"."):
			if m := collect(f.Type, index, name+".", columns, found); m != "" {
				missing = m
			}
		default:
			missing = name
		}
	}
	for _, f := range embedded {
		if m := collect(f.Type, append(append([]int{}, at...), f.Index...), prefix, columns, found); m != "" {
			missing = m
		}
	}
	return missing
}

func within(columns map[string]bool, prefix string) bool {
	for c := range columns {
		if strings.HasPrefix(c, prefix) {
			return true
		}
	}
	return false
}

var (
	scannerType = reflect.TypeFor[sql.Scanner]()
	timeType    = reflect.TypeFor[time.Time]()
	amountType  = reflect.TypeFor[money.Amount]()
	decimalType = reflect.TypeFor[decimal.Decimal]()
)

// composite reports whether a type is a struct of columns, and not a value in one column.
func composite(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != timeType && t != amountType && !reflect.PointerTo(t).Implements(scannerType)
}

func readDecimal(to reflect.Value, from any) error {
	var d decimal.Decimal
	err := d.Scan(from)
	to.Set(reflect.ValueOf(d))
	return err
}

// reader is how a column is read into a field of a type; nil is the way of database/sql.
func reader(t reflect.Type) func(reflect.Value, any) error {
	switch {
	case t == timeType:
		return nullable(readTime)
	case t == amountType:
		return nullable(readAmount)
	case t == decimalType:
		return nullable(readDecimal)
	case reflect.PointerTo(t).Implements(scannerType):
		return nil
	case t.Kind() == reflect.Pointer && reader(t.Elem()) != nil:
		read := reader(t.Elem())
		return nullable(func(to reflect.Value, from any) error {
			to.Set(reflect.New(t.Elem()))
			return read(to.Elem(), from)
		})
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return nullable(readTexts)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Int64:
		return func(to reflect.Value, from any) error { return pq.Array(to.Addr().Interface()).Scan(from) }
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return nullable(readDocument)
	}
	return nil
}

// nullable makes NULL the zero value.
func nullable(read func(reflect.Value, any) error) func(reflect.Value, any) error {
	return func(to reflect.Value, from any) error {
		if from == nil {
			to.SetZero()
			return nil
		}
		return read(to, from)
	}
}

func readTime(to reflect.Value, from any) error {
	t, ok := from.(time.Time)
	if !ok {
		return fmt.Errorf("a %T is no time", from)
	}
	to.Set(reflect.ValueOf(t.UTC()))
	return nil
}

func readAmount(to reflect.Value, from any) error {
	text, err := textOf(from)
	if err != nil {
		return err
	}
	value, asset, _ := strings.Cut(text, " ")
	v, err := decimal.NewFromString(value)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored amount can't be read")
	}
	of := money.Asset(asset)
	if n := exchange.Network(asset); n.Valid() {
		of = n.NativeCoin()
	}
	m, err := money.New(of, v)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored amount of %s is not one", strings.ToValidUTF8(asset, ""))
	}
	to.Set(reflect.ValueOf(m))
	return nil
}

func readTexts(to reflect.Value, from any) error {
	var texts pq.StringArray
	if err := texts.Scan(from); err != nil {
		return err
	}
	to.Set(reflect.MakeSlice(to.Type(), len(texts), len(texts)))
	for i, text := range texts {
		to.Index(i).SetString(text)
	}
	return nil
}

func readDocument(to reflect.Value, from any) error {
	text, err := textOf(from)
	if err == nil {
		err = json.Unmarshal([]byte(text), to.Addr().Interface())
	}
	return err
}

func textOf(from any) (string, error) {
	switch from := from.(type) {
	case []byte:
		return string(from), nil
	case string:
		return from, nil
	}
	return "", fmt.Errorf("a %T is no text", from)
}

// snake is the column of a field: CustomerID is customer_id.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		starts := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

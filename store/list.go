package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/store/pg"
)

// where collects the conditions of a list. Conditions are constants of this package with ? for their arguments; no
// input of a caller ever becomes SQL.
type where struct {
	conditions []string
	args       []any
}

func (w *where) add(condition string, args ...any) {
	w.conditions, w.args = append(w.conditions, condition), append(w.args, args...)
}

// eq filters by a text unless it is empty.
func (w *where) eq(column, v string) {
	if v != "" {
		w.add(column+` = ?`, v)
	}
}

// id filters by an id unless it is zero.
func (w *where) id(column string, v uuid.UUID) {
	if v != uuid.Nil {
		w.add(column+` = ?`, v)
	}
}

// between filters by a half-open interval; a zero end is open.
func (w *where) between(column string, from, to time.Time) {
	if !from.IsZero() {
		w.add(column+` >= ?`, from)
	}
	if !to.IsZero() {
		w.add(column+` < ?`, to)
	}
}

// scope filters by what a view may see. An object without an owner or vendor column has "NULL" there.
func (w *where) scope(v View, owner, vendor string) {
	all, o, m := v.args()
	switch {
	case all:
	case o.Valid:
		w.add(owner+` = ?`, o.UUID)
	case m.Valid:
		w.add(vendor+` = ?`, m.UUID)
	default:
		w.add(`false`)
	}
}

// The payment exceptions that concern a customer, or a merchant: those of its orders, OTC deposits and withdrawals, those about crypto that came to its
// wallets or to their form on another network, and those whose money officers credited to it.
const (
	exceptionsOfCustomer = `
SELECT id FROM payment_exceptions WHERE order_id IN (SELECT id FROM orders WHERE customer_id = ? AND deleted_at IS NULL)
UNION ALL SELECT exception_id FROM chain_deposits WHERE exception_id IS NOT NULL AND wallet_id IN (SELECT id FROM wallets WHERE owner_id = ?
    UNION ALL SELECT c.id FROM wallets c JOIN wallets o ON o.id = c.counterpart_of WHERE o.owner_id = ?)
UNION ALL SELECT exception_id FROM exception_decisions WHERE wallet_id IN (SELECT id FROM wallets WHERE owner_id = ?)`
	exceptionsOfMerchant = `
SELECT id FROM payment_exceptions WHERE order_id IN (SELECT id FROM orders WHERE (vendor_id = ? OR customer_id = ?) AND deleted_at IS NULL)
UNION ALL SELECT exception_id FROM chain_deposits WHERE exception_id IS NOT NULL AND wallet_id IN (SELECT id FROM wallets WHERE vendor_id = ?
    UNION ALL SELECT c.id FROM wallets c JOIN wallets o ON o.id = c.counterpart_of WHERE o.vendor_id = ?)
UNION ALL SELECT id FROM payment_exceptions WHERE deposit_id IN (SELECT id FROM otc_deposits WHERE merchant_id = ?)
UNION ALL SELECT exception_id FROM exception_decisions WHERE merchant_id = ? OR wallet_id IN (SELECT id FROM wallets WHERE vendor_id = ?)
UNION ALL SELECT id FROM payment_exceptions WHERE attempt_id IN (SELECT a.id FROM payment_attempts a JOIN otc_withdrawals o ON o.id = a.object_id WHERE a.object_type = 'otc_withdrawal' AND o.merchant_id = ?)`
)

// concerns filters by rows that concern the view: a query of their ids for a customer, and one for a merchant. Each ? of them is its id.
func (w *where) concerns(v *View, column, ofCustomer, ofMerchant string) {
	if v == nil {
		return
	}
	all, o, m := v.args()
	mine := func(query string, id uuid.UUID) {
		w.add(column+` IN (`+query+`)`, slices.Repeat([]any{id}, strings.Count(query, "?"))...)
	}
	switch {
	case all:
	case o.Valid:
		mine(ofCustomer, o.UUID)
	case m.Valid:
		mine(ofMerchant, m.UUID)
	default:
		w.add(`false`)
	}
}

func (w *where) sql() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(w.conditions, ` AND `)
}

// list is a query for one page. All parts are constants of this package.
type list struct {
	columns, from string
	where         where
	order         string
}

// first reads the first rows of a list that is read from a place on, whose rows nobody counts.
func (s *Store) first(ctx context.Context, dest any, l list, size int) error {
	limit, _ := Page{Size: size}.bounds()
	return s.db.Planned(ctx, func(t pg.Tx) error {
		return t.Built(ctx, dest, `SELECT `+l.columns+` FROM `+l.from+l.where.sql()+` ORDER BY `+l.order+` LIMIT ?`, append(slices.Clone(l.where.args), limit)...)
	})
}

// page reads one page into dest and counts all rows of the list, both in one snapshot.
func (s *Store) page(ctx context.Context, dest any, l list, p Page) (total int, err error) {
	limit, offset := p.bounds()
	query := `SELECT ` + l.columns + ` FROM ` + l.from + l.where.sql() + ` ORDER BY ` + l.order + ` LIMIT ? OFFSET ?`
	args := append(append([]any{}, l.where.args...), limit, offset)
	err = s.db.Planned(ctx, func(t pg.Tx) error {
		if err := t.BuiltOne(ctx, &total, `SELECT count(*) FROM `+l.from+l.where.sql(), l.where.args...); err != nil {
			return err
		}
		return t.Built(ctx, dest, query, args...)
	})
	return total, err
}

// readPage reads one page of a list, and counts all its rows.
func readPage[T any](ctx context.Context, s *Store, what string, l list, p Page) ([]T, int, error) {
	var rows []T
	total, err := s.page(ctx, &rows, l, p)
	if err != nil {
		return nil, 0, translate(err, what)
	}
	return rows, total, nil
}

// reader runs constant queries: the pool, or a transaction.
type reader interface {
	Get(ctx context.Context, dest any, query string, args ...any) error
	All(ctx context.Context, dest any, query string, args ...any) error
}

// readOne reads one row. CodeNotFound, with the name of what it is, when there is none.
func readOne[T any](ctx context.Context, from reader, what, query string, args ...any) (T, error) {
	var row, none T
	if err := from.Get(ctx, &row, query, args...); err != nil {
		return none, translate(err, what)
	}
	return row, nil
}

// readAll reads all rows.
func readAll[T any](ctx context.Context, from reader, what, query string, args ...any) ([]T, error) {
	var rows []T
	if err := from.All(ctx, &rows, query, args...); err != nil {
		return nil, translate(err, what)
	}
	return rows, nil
}

// readFound reads the first row, if there is one.
func readFound[T any](ctx context.Context, from reader, query string, args ...any) (T, bool, error) {
	var rows []T
	var none T
	if err := from.All(ctx, &rows, query, args...); err != nil || len(rows) == 0 {
		return none, false, err
	}
	return rows[0], true, nil
}

// convert maps rows to objects.
func convert[R, T any](rows []R, f func(R) (T, error)) ([]T, error) {
	all := make([]T, len(rows))
	for i, r := range rows {
		var err error
		if all[i], err = f(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

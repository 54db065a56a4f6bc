package store

import (
	"context"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The order search.
//
// The query is classified first. Identifiers (ids, transaction hashes, receipts, addresses, phone numbers, e-mail
// addresses) are found by B-tree in full or by prefix, phone numbers also by their end. Names are found by the prefix
// of a name, else by a part of one of its words. Each lookup returns a bounded number of candidates, so the work does
// not grow with the table. Receipts, phone numbers and people, which many orders can share, are answered by indexes
// alone (0007_exchange.sql). A query of less than four characters matches so much that only the newest orders are
// searched. Ids are UUIDv7, so the greater one is the newer.

// Limits of the search.
const (
	MaxSearchQuery = 100 // characters
	shortQuery     = 4   // shorter queries search only the newest orders
	newestOrders   = 400
	candidates     = 200 // orders that one lookup returns
	foundUsers     = 50  // people whose orders are searched
	foundWords     = 50  // words that contain a part of a name
	minHex         = 6   // the fewest hexadecimal digits for a search by the prefix of an id or hash
)

// checkQuery refuses an invalid search text.
func checkQuery(q string, limit int) error {
	if err := require(utf8.ValidString(q) && !strings.ContainsRune(q, 0), "query/query", "characters", "must be text without control characters"); err != nil {
		return err
	}
	return require(utf8.RuneCountInString(q) <= limit, "query/query", "too_long", "must have at most 100 characters")
}

// phonePrefix converts the beginning of a number as typed to that of the stored form.
func phonePrefix(q string) string {
	d := strings.NewReplacer(" ", "", "-", "", "+", "").Replace(q)
	if strings.HasPrefix(d, "0") {
		return "254" + d[1:]
	}
	return d
}

// way is one lookup: a query for id, customer and vendor of candidates that are not deleted, as constant SQL with ?
// for arguments.
type way struct {
	sql  string
	args []any
}

// SearchOrders finds orders by id, transaction hash, receipt, phone number, address, e-mail address or name, in full
// or by prefix, newest first. The total counts only the candidates searched, so it is never more than some hundreds.
func (s *Store) SearchOrders(ctx context.Context, v View, query string, p Page) ([]exchange.Order, int, error) {
	q := strings.TrimSpace(query)
	if err := checkQuery(q, MaxSearchQuery); err != nil {
		return nil, 0, err
	}
	if err := require(q != "", "query/query", "required", "must not be empty"); err != nil {
		return nil, 0, err
	}
	_, _, seller := v.args()
	ways := recognise(q, seller.Valid)
	if utf8.RuneCountInString(q) < shortQuery {
		ways = []way{newest(v, q)}
	}
	if len(ways) == 0 {
		return nil, 0, nil
	}
	var parts []string
	var args []any
	for _, w := range ways {
		parts, args = append(parts, `(`+w.sql+`)`), append(args, w.args...)
	}
	var visible where
	if seller.Valid { // also its own sales to the house, among the few candidates
		visible.add(`(c.vendor_id = ? OR c.customer_id = ?)`, seller.UUID, seller.UUID)
	} else {
		visible.scope(v, "c.customer_id", "c.vendor_id")
	}
	limit, offset := p.bounds()
	args = append(append(args, visible.args...), limit, offset)
	found := `WITH candidates AS (SELECT DISTINCT id, customer_id, vendor_id FROM (` + strings.Join(parts, ` UNION ALL `) + `) a),
		found AS (SELECT c.id, count(*) OVER () AS total FROM candidates c` + visible.sql() + ` ORDER BY c.id DESC LIMIT ? OFFSET ?)
		SELECT ` + orderColumns + `, f.total FROM found f JOIN orders o ON o.id = f.id ORDER BY o.id DESC`
	var rows []struct {
		exchange.Order
		Total int
	}
	if err := s.db.Built(ctx, &rows, found, args...); err != nil {
		return nil, 0, translate(err, "order")
	}
	all, total := make([]exchange.Order, len(rows)), offset
	for i, r := range rows {
		all[i], total = r.Order, r.Total
	}
	if len(rows) == 0 && offset > 0 {
		_, total, err := s.SearchOrders(ctx, v, query, Page{Number: 1, Size: 1})
		return nil, total, err
	}
	return all, total, nil
}

// newest searches the newest orders of the view for anything that starts with or contains the query.
func newest(v View, q string) way {
	var w where
	w.add(`o.deleted_at IS NULL`)
	w.scope(v, "o.customer_id", "o.vendor_id")
	like := "%" + escapeLike(strings.ToLower(q)) + "%"
	phone := like
	if _, _, merchant := v.args(); merchant.Valid {
		phone = escapeLike(phonePrefix(q)) // too short for a full number, see recognise
	}
	args := append(w.args, newestOrders) //nolint:gocritic // a new slice is meant
	return way{
		sql: `SELECT n.id, n.customer_id, n.vendor_id FROM (SELECT o.id, o.customer_id, o.vendor_id, o.momo_receipt, o.tx_hash, o.payment_phone FROM orders o` + w.sql() + `
			ORDER BY o.created_at DESC, o.id DESC LIMIT ?) n
			JOIN users c ON c.id = n.customer_id JOIN users m ON m.id = n.vendor_id
			WHERE n.id::text LIKE ? OR lower(n.momo_receipt) LIKE ? OR lower(n.tx_hash) LIKE ? OR n.payment_phone LIKE ?
				OR lower(c.first_name || ' ' || c.last_name) LIKE ? OR lower(m.first_name || ' ' || m.last_name) LIKE ?`,
		args: append(args, like, like, like, phone, like, like),
	}
}

var (
	hexPattern     = regexp.MustCompile(`^(0x)?[0-9a-f]+$`)
	idPattern      = regexp.MustCompile(`^[0-9a-f-]+$`)
	hashPattern    = regexp.MustCompile(`^[0-9A-Za-z]{26,90}$`) // Solana hashes and the addresses of every network
	receiptPattern = regexp.MustCompile(`^[0-9A-Z]{4,12}$`)
	phonePattern   = regexp.MustCompile(`^\+?[0-9][0-9 -]{3,19}$`)
)

// recognise lists the lookups for a query. Merchants see customers' numbers masked, so they find them only by the full
// number: searching by parts would reveal the rest digit by digit.
func recognise(q string, merchant bool) []way {
	lower, upper := strings.ToLower(q), strings.ToUpper(q)
	var ways []way
	// add searches the orders that are not deleted.
	add := func(condition string, args ...any) {
		ways = append(ways, way{`SELECT id, customer_id, vendor_id FROM orders WHERE deleted_at IS NULL AND ` + condition, args})
	}
	if id, err := uuid.Parse(q); err == nil && len(q) == 36 {
		add(`id = ?`, id)
		return ways
	}
	if low, high, ok := idRange(lower); ok {
		add(`id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?`, low, high, candidates)
	}
	if hexPattern.MatchString(lower) && len(strings.TrimPrefix(lower, "0x")) >= minHex {
		bare := strings.TrimPrefix(lower, "0x")
		for _, prefix := range []string{bare, "0x" + bare} {
			add(`lower(tx_hash) LIKE ? AND tx_hash <> '' LIMIT ?`, escapeLike(prefix)+"%", candidates)
			add(`lower(deposit_tx_hash) LIKE ? AND deposit_tx_hash <> '' LIMIT ?`, escapeLike(prefix)+"%", candidates)
		}
	}
	if hashPattern.MatchString(q) {
		add(`wallet_address = ? LIMIT ?`, q, candidates)
		add(`lower(tx_hash) = ? AND tx_hash <> '' LIMIT ?`, lower, candidates)
	}
	if receiptPattern.MatchString(upper) {
		add(`momo_receipt LIKE ? AND momo_receipt <> '' ORDER BY momo_receipt DESC LIMIT ?`, escapeLike(upper)+"%", candidates)
	}
	if phonePattern.MatchString(q) {
		digits := phonePrefix(q)
		if merchant {
			add(`payment_phone = ? LIMIT ?`, digits, candidates)
			return ways
		}
		add(`payment_phone LIKE ? LIMIT ?`, digits+"%", candidates)
		add(`reverse(payment_phone) LIKE reverse(?) || '%' LIMIT ?`, strings.TrimPrefix(digits, "254"), candidates)
		return ways
	}
	if strings.ContainsAny(q, "0123456789") && !strings.Contains(q, "@") {
		return ways // names have no digits
	}
	return append(ways, people(lower))
}

// people searches the orders of customers and merchants by name or e-mail address: first a bounded number of people,
// then the newest orders of each.
func people(q string) way {
	var users []string
	var args []any
	add := func(condition string, values ...any) {
		users = append(users, `(SELECT id FROM users WHERE `+condition+` LIMIT ?)`)
		args = append(append(args, values...), foundUsers)
	}
	prefix, part := escapeLike(q)+"%", "%"+escapeLike(q)+"%"
	if first, last, two := strings.Cut(q, " "); strings.Contains(q, "@") {
		add(`email = ?`, q)
	} else {
		add(`lower(first_name || ' ' || last_name) LIKE ?`, prefix)
		add(`lower(last_name) LIKE ?`, prefix)
		if two { // last name before first name
			add(`lower(last_name) = ? AND lower(first_name) LIKE ?`, first, escapeLike(strings.TrimSpace(last))+"%")
		} else {
			const words = ` = ANY (ARRAY(SELECT word FROM name_words WHERE word LIKE ? LIMIT ?))`
			add(`lower(first_name)`+words, part, foundWords)
			add(`lower(last_name)`+words, part, foundWords)
		}
	}
	return way{
		`SELECT x.* FROM (SELECT id FROM (` + strings.Join(users, ` UNION `) + `) found LIMIT ?) u CROSS JOIN LATERAL (
			(SELECT o.id, o.customer_id, o.vendor_id FROM orders o WHERE o.customer_id = u.id AND o.deleted_at IS NULL ORDER BY o.created_at DESC, o.id DESC LIMIT ?)
			UNION ALL
			(SELECT o.id, o.customer_id, o.vendor_id FROM orders o WHERE o.vendor_id = u.id AND o.deleted_at IS NULL ORDER BY o.created_at DESC, o.id DESC LIMIT ?)) x LIMIT ?`,
		append(args, foundUsers, candidates, candidates, candidates),
	}
}

// idRange is the first and the last id with a prefix of hexadecimal digits, with or without hyphens.
func idRange(q string) (low, high uuid.UUID, ok bool) {
	digits := strings.ReplaceAll(q, "-", "")
	if !idPattern.MatchString(q) || len(digits) < minHex || len(digits) > 32 {
		return low, high, false
	}
	low, err := uuid.Parse(digits + strings.Repeat("0", 32-len(digits)))
	if err != nil {
		return low, high, false
	}
	high, err = uuid.Parse(digits + strings.Repeat("f", 32-len(digits)))
	return low, high, err == nil
}

package store

import (
	"context"

	"kivuko/exchange"
)

// The event log and the ledger lie in parts by months (0041_months.sql). The functions of the database make, begin and archive only
// the months whose time has come, so that who calls them can do nothing else. Each call is a transaction of its own: a month that begins was
// made before.
const (
	makeMonth     = `SELECT coalesce(to_char(make_month(), 'YYYY-MM'), '')`
	beginMonth    = `SELECT coalesce(to_char(begin_month(), 'YYYY-MM'), '')`
	archiveEvents = `SELECT coalesce(to_char(archive_events($1), 'YYYY-MM'), '')`
	readMonths    = `
SELECT (SELECT count(*) FROM months WHERE month > this_month()) AS ahead,
    NOT EXISTS (SELECT FROM months WHERE log_horizon() >= cursor_from AND log_horizon() < cursor_to)
        OR coalesce((SELECT max(id) FROM ledger_entries) >= (SELECT max(entry_to) FROM months), false) AS outside`
)

// KeepMonths makes the parts of the months ahead, begins this month, and takes months out of the event log whose events are all older than
// kept whole months; zero takes none out. A repetition does what is left. CodeUnavailable when the tables are in use for too long: nothing waits
// longer than a moment for it, and nothing is lost while months are late.
func (s *Store) KeepMonths(ctx context.Context, kept int) (exchange.Months, error) {
	var m exchange.Months
	var err, late error
	m.Made, late = s.months(ctx, makeMonth)
	if m.Begun, err = s.month(ctx, beginMonth); err == nil {
		err = late // a month whose parts are there begins even if the next ones can't be made now
	}
	if err != nil {
		return m, err
	}
	if kept > 0 {
		m.Archived, err = s.months(ctx, archiveEvents, kept)
		if m.Needed = exchange.CodeOf(err) == exchange.CodeStateConflict; m.Needed {
			err = nil
		}
	}
	if err != nil {
		return m, err
	}
	var now struct {
		Ahead   int
		Outside bool
	}
	err = s.db.Get(ctx, &now, readMonths)
	m.Ahead, m.Outside = now.Ahead, now.Outside
	return m, translate(err, "month")
}

// months repeats a function until it has nothing left to do.
func (s *Store) months(ctx context.Context, query string, args ...any) ([]string, error) {
	var all []string
	for {
		month, err := s.month(ctx, query, args...)
		if err != nil || month == "" {
			return all, err
		}
		all = append(all, month)
	}
}

// month calls a function in a transaction of its own.
func (s *Store) month(ctx context.Context, query string, args ...any) (month string, err error) {
	err = s.inTx(ctx, "month", func(t unitTx) error { return t.Get(ctx, &month, query, args...) })
	return month, err
}

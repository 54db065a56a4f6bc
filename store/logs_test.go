package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// An event that commits late under an earlier position is not skipped: the reader stops before the
// transaction that may still write one.
func TestEventsAreNeverSkipped(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	slow, err := storetest.Owner(t, s).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback() }()
	var position int64
	if err := slow.QueryRowContext(ctx, `SELECT log_position()`).Scan(&position); err != nil {
		t.Fatal(err)
	}
	u := storetest.User(t, s, exchange.RoleCustomer) // commits before the slow one
	if events, err := s.Events(ctx, store.Everything(), 0, 10); err != nil || len(events) != 0 {
		t.Fatalf("%d events while an earlier one may still come, %v", len(events), err)
	}
	_, err = slow.ExecContext(ctx, `INSERT INTO events (cursor, object_type, object_id, sequence, type, payload, at)
		VALUES ($1::bigint + 1, 'test', gen_random_uuid(), 1, 'test.late', '{}', now())`, position)
	if err != nil {
		t.Fatal(err)
	}
	if err := slow.Commit(); err != nil {
		t.Fatal(err)
	}
	events := eventsFrom(t, s, 0, 2)
	if events[0].Type != "test.late" || events[1].ObjectID != u.ID {
		t.Fatalf("events %+v", events)
	}
	rest, err := s.Events(ctx, store.Everything(), events[1].Cursor, 10)
	if err != nil || len(rest) != 0 {
		t.Errorf("%d events after the last, %v", len(rest), err)
	}
}

// eventsFrom reads events after a cursor until n are there. A transaction of any other test on the same
// server may hold the end of the log back for a moment.
func eventsFrom(t *testing.T, s *store.Store, after int64, n int) []exchange.Event {
	t.Helper()
	var all []exchange.Event
	settle(t, func() bool {
		for {
			some, err := s.Events(t.Context(), store.Everything(), after, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range some {
				if e.Cursor <= after {
					t.Fatalf("event %d after %d", e.Cursor, after)
				}
				all, after = append(all, e), e.Cursor
			}
			if len(some) == 0 {
				return len(all) >= n
			}
		}
	})
	if len(all) != n {
		t.Fatalf("%d events, want %d", len(all), n)
	}
	return all
}

// settle repeats fn until it succeeds; the limit only prevents hanging.
func settle(t *testing.T, fn func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Hour); !fn(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing came within five minutes")
		}
	}
}

// sealAll seals until n records are sealed.
func sealAll(t *testing.T, s *store.Store, n int64) exchange.AuditHead {
	t.Helper()
	var head exchange.AuditHead
	settle(t, func() bool {
		_, err := s.SealAudit(t.Context())
		if err == nil {
			head, err = s.AuditHead(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return head.N >= n
	})
	if head.N != n {
		t.Fatalf("%d records sealed, want %d", head.N, n)
	}
	return head
}

// A reader that pages while many write gets every event once, and each object's in sequence.
func TestEventsAreReadOnceWhileOthersWrite(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	const writers, each = 6, 12
	users := make([][]exchange.User, writers)
	for w := range users {
		for range each {
			n := int64(len(users[w])) + int64(w)*each
			users[w] = append(users[w], exchange.User{
				ID: storetest.NewID(t), Email: fmt.Sprintf("u%d@example.com", n), FirstName: "A", LastName: "B",
				PhoneNumber: exchange.Phone(fmt.Sprintf("2547%08d", n)), Role: exchange.RoleCustomer, IsActive: true,
			})
		}
	}
	written := make(chan map[exchange.Code]int, 1)
	go func() {
		written <- atOnce(writers, func(w int) error {
			for _, u := range users[w] {
				if _, err := s.CreateUser(t.Context(), u, exchange.Credentials{PasswordHash: "x"}, storetest.By); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	seen := map[string]bool{}
	for _, e := range eventsFrom(t, s, 0, writers*each) {
		seen[fmt.Sprintf("%s %d", e.ObjectID, e.Sequence)] = true
	}
	if codes := <-written; codes[""] != writers || len(seen) != writers*each {
		t.Errorf("%d different events, outcomes %v", len(seen), codes)
	}
}

func TestEventsCarryNoPersonalDataOrSecrets(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	o := m.Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	obs := storetest.Paid(t, kes("1000"))
	obs.Text = "paid"
	if _, err := s.AcceptPayment(t.Context(), a.ID, storetest.Listed(t, s, obs), time.Time{}); err != nil {
		t.Fatal(err)
	}
	events := eventsFrom(t, s, 0, 14)
	records, err := s.AuditRecords(t.Context(), store.AuditFilter{}, store.MaxPageSize)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range events {
		texts = append(texts, string(e.Payload))
	}
	for _, r := range records {
		texts = append(texts, string(r.Before), string(r.After))
	}
	for _, secret := range []string{m.Customer.PhoneNumber.Digits(), m.Customer.Email, m.Customer.FirstName, m.Customer.LastName, a.CallbackToken, "not a hash", "sealed"} {
		for _, text := range texts {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
	}
	timeline, err := s.OrderTimeline(t.Context(), store.Everything(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range timeline {
		types = append(types, e.Type)
		var object map[string]any
		if err := json.Unmarshal(e.Payload, &object); err != nil || object["id"] != e.ObjectID.String() {
			t.Errorf("%s has the payload %s, %v", e.Type, e.Payload, err)
		}
	}
	want := "order.opened payment_attempt.created payment_attempt.accepted payment_attempt.succeeded order.failed " +
		"payment_exception.opened payment_exception.refunding refund.pending"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("timeline\n got %s\nwant %s", got, want)
	}
}

// tamper runs statements with the guards of the tables disabled, as an intruder with the database's own rights would.
func tamper(t *testing.T, s *store.Store, statements ...string) {
	t.Helper()
	tx, err := storetest.Owner(t, s).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range append([]string{`SET LOCAL session_replication_role = replica`}, statements...) {
		if _, err := tx.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestAuditFindsTampering(t *testing.T) {
	t.Parallel()
	third := `(SELECT id FROM audit_log ORDER BY id OFFSET 2 LIMIT 1)`
	last := `(SELECT max(id) FROM audit_log)`
	for _, c := range []struct {
		name       string
		statements []string
		needsHead  bool
	}{
		{name: "an actor was changed", statements: []string{`UPDATE audit_log SET actor = 'nobody' WHERE id = ` + third}},
		{name: "a time was changed", statements: []string{`UPDATE audit_log SET at = at + interval '1 second' WHERE id = ` + third}},
		{name: "a content was changed", statements: []string{`UPDATE audit_log SET after = '{"role": "admin"}' WHERE id = ` + third}},
		{name: "a record was removed", statements: []string{`DELETE FROM audit_log WHERE id = ` + third}},
		{name: "a record and its seal were removed", statements: []string{`DELETE FROM audit_seals WHERE audit_id = ` + third, `DELETE FROM audit_log WHERE id = ` + third}},
		{name: "two records changed places", statements: []string{
			`UPDATE audit_log a SET actor = b.actor, object_id = b.object_id, after = b.after FROM audit_log b
				WHERE (a.id, b.id) IN ((` + third + `, ` + last + `), (` + last + `, ` + third + `))`,
		}},
		{name: "a record was slipped in", statements: []string{
			`INSERT INTO audit_log SELECT id - 1, at, actor, role, ip, request_id, action, object_type, object_id, before, after FROM audit_log WHERE id = ` + third,
		}},
		{name: "the last record was removed", statements: []string{`DELETE FROM audit_log WHERE id = ` + last}},
		{name: "the end was cut off", needsHead: true, statements: []string{
			`DELETE FROM audit_seals WHERE audit_id >= ` + third, `DELETE FROM audit_log WHERE id >= ` + third,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			for range 6 {
				storetest.User(t, s, exchange.RoleCustomer)
			}
			head := sealAll(t, s, 6)
			if err := s.VerifyAuditSince(ctx, head); err != nil {
				t.Fatal(err)
			}
			tamper(t, s, c.statements...)
			if err := s.VerifyAudit(ctx); (err == nil) != c.needsHead {
				t.Errorf("verify: %v", err)
			}
			if err := s.VerifyAuditSince(ctx, head); exchange.CodeOf(err) != exchange.CodeConflict {
				t.Errorf("verify since: %v", err)
			}
		})
	}
}

// Who owns the database can change a record and compute the chain anew, under the name of the right key. Without the key itself no link
// of it holds.
func TestAuditChainNeedsItsKey(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.URL(t)
	const id = "office"
	s := storetest.Open(t, url, store.Options{AuditKeys: []exchange.AuditKey{{ID: id, Secret: bytes.Repeat([]byte{1}, 32)}}})
	for range 3 {
		storetest.User(t, s, exchange.RoleCustomer)
	}
	sealAll(t, s, 3)
	if err := s.VerifyAudit(ctx); err != nil {
		t.Fatal(err)
	}
	tamper(t, s, `UPDATE audit_log SET actor = 'nobody' WHERE id = (SELECT min(id) FROM audit_log)`, `DELETE FROM audit_seals`)
	intruder := storetest.Open(t, url, store.Options{AuditKeys: []exchange.AuditKey{{ID: id, Secret: make([]byte, 32)}}})
	sealAll(t, intruder, 3)
	if err := intruder.VerifyAudit(ctx); err != nil {
		t.Fatalf("the intruder's chain is no chain: %v", err)
	}
	if err := s.VerifyAudit(ctx); exchange.CodeOf(err) != exchange.CodeConflict {
		t.Errorf("a chain that was computed without the key: %v", err)
	}
}

// Concurrent sealing by several processes makes one chain.
func TestAuditSealsWhileOthersWrite(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	codes := atOnce(24, func(i int) error {
		if i%3 == 0 {
			_, err := s.SealAudit(context.WithoutCancel(t.Context()))
			return err
		}
		storetest.User(t, s, exchange.RoleCustomer)
		return s.VerifyAudit(t.Context())
	})
	if codes[""] != 24 {
		t.Errorf("outcomes %v", codes)
	}
	if err := s.VerifyAuditSince(t.Context(), sealAll(t, s, 16)); err != nil {
		t.Error(err)
	}
}

// A dump restored into a new server continues with higher positions.
func TestLogPositionsGrowAfterARestore(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	storetest.User(t, s, exchange.RoleCustomer)
	tamper(t, s, `UPDATE events SET cursor = cursor + (1::bigint << 50)`, `UPDATE event_keys SET cursor = cursor + (1::bigint << 50)`)
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	old := eventsFrom(t, s, 0, 1)
	storetest.User(t, s, exchange.RoleCustomer)
	eventsFrom(t, s, old[0].Cursor, 1)
}

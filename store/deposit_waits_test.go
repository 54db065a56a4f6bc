package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// A waiting flow is woken when money is seen, gone and final, by the row's id, and never by dust.
func TestDepositWaits(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	began := time.Now().Add(-time.Minute)
	seenBlock(t, s, scanOf(blockOf("a", 101), moveOf("t1", stranger, w.Address, usdt("5")), moveOf("dust", stranger, w.Address, usdt("0.001"))))
	for range 2 { // money that came before the flow asked
		if _, err := s.AwaitDeposits(ctx, exchange.Tron, w.Address, "flow", began); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.AwaitDeposits(ctx, exchange.Tron, stranger, "flow", began)
	wantFault(t, err, exchange.CodeNotFound)
	woken := func(want ...string) {
		t.Helper()
		due, err := s.DueWakeups(ctx, exchange.Tron)
		if err != nil {
			t.Fatal(err)
		}
		var ids []uuid.UUID
		var got []string
		for _, u := range due {
			d, err := s.ChainDeposit(ctx, u.DepositID)
			if err != nil || u.WorkflowID != "flow" {
				t.Fatalf("%+v, %v", u, err)
			}
			ids, got = append(ids, u.ID), append(got, d.TxID)
		}
		slices.Sort(got) // wakeups of one transaction have no order among them
		slices.Sort(want)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("woken by %v, want %v", got, want)
		}
		if err := s.RecordWoken(ctx, ids); err != nil {
			t.Fatal(err)
		}
	}
	woken("t1", "dust") // a wait since the beginning gets all of it
	if err := s.DropSeenBlock(ctx, exchange.Tron, blockOf("a", 101)); err != nil {
		t.Fatal(err)
	}
	due, err := s.DueWakeups(ctx, exchange.Tron)
	if err != nil || len(due) != 2 {
		t.Fatalf("%+v, %v", due, err)
	}
	if err := s.RecordWoken(ctx, []uuid.UUID{due[0].ID, due[1].ID}); err != nil {
		t.Fatal(err)
	}
	b := scanOf(blockOf("a", 101), moveOf("t1", stranger, w.Address, usdt("5")), moveOf("dust two", stranger, w.Address, usdt("0.001")))
	seenBlock(t, s, b)
	woken("t1")
	finalBlock(t, s, b)
	woken("t1")
	if err := s.EndDepositWait(ctx, exchange.Tron, w.Address, "flow"); err != nil {
		t.Fatal(err)
	}
	finalBlock(t, s, scanOf(blockOf("a", 102), moveOf("t2", stranger, w.Address, usdt("5"))))
	woken()
}

// A final movement stays as it was, even for the owner of the tables.
func TestFinalDepositsStay(t *testing.T) {
	t.Parallel()
	s := started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	b := scanOf(blockOf("a", 101), moveOf("t1", stranger, w.Address, usdt("5")))
	b.Unreadable = []exchange.UnreadableMovement{{TxID: "odd", Detail: "31 bytes"}}
	finalBlock(t, s, b)
	db := storetest.Owner(t, s)
	for _, query := range []string{
		`UPDATE chain_deposits SET status = 'seen', final_at = NULL`, `UPDATE chain_deposits SET amount = 6`, `DELETE FROM chain_deposits`,
		`UPDATE deposit_cursors SET final_number = final_number - 1`, `UPDATE deposit_cursors SET final_number = final_number + 2`,
		`DELETE FROM deposit_cursors`, `UPDATE deposit_quarantine SET reason = 'invalid'`, `DELETE FROM deposit_quarantine`,
		`TRUNCATE chain_deposits CASCADE`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || (pe.Code != "KV001" && pe.Code != "KV002") {
			t.Errorf("%s: %v, want a refusal", query, err)
		}
	}
	_, err := db.ExecContext(t.Context(), `INSERT INTO chain_deposits SELECT gen_random_uuid(), network, tx_id, event_index, from_address, to_address, asset,
		amount, wallet_id, from_wallet_id, kind, 'seen', payment_id, exception_id, block, block_id, block_time, now(), now(), NULL, 1 FROM chain_deposits`)
	if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Constraint != "chain_deposits_movement_key" {
		t.Errorf("a second row of one movement: %v", err)
	}
}

// An undone movement is only reported as set aside.
func TestRefusedMovementsAreNotReportedToOwners(t *testing.T) {
	t.Parallel()
	s := started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	other := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	storetest.Exec(t, s, `ALTER TABLE chain_deposits ADD CONSTRAINT refused_for_this_test CHECK (status <> 'final')`)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("lost", w.Address, other.Address, usdt("5"))))
	alarmOf(t, s, exchange.QuarantineRefused)
	var events []string
	rows, err := storetest.Owner(t, s).QueryContext(t.Context(), `SELECT type FROM events WHERE object_type IN ('payment_exception', 'chain_deposit', 'deposit_quarantine')
		UNION ALL SELECT action FROM audit_log WHERE object_type IN ('payment_exception', 'chain_deposit', 'deposit_quarantine')`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			t.Fatal(err)
		}
		events = append(events, what)
	}
	if err := rows.Err(); err != nil || !slices.Equal(events, []string{"deposit_quarantine.opened", "deposit_quarantine.opened"}) {
		t.Errorf("it reports %q, %v", events, err)
	}
}

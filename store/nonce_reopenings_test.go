package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// counts is a chain's count for a sender.
func counts(latest, final uint64) exchange.SenderCount {
	return exchange.SenderCount{Latest: latest, Final: final, Block: exchange.ChainBlock{Number: 40, ID: "forty"}}
}

// A sequence closed by a foreign transaction continues from the final chain's count, once two officers agree
// and no transaction of ours is undecided.
func TestReopenNonceSequence(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	wallet := m.VendorWallet.ID
	reopen := func(latest, final uint64) error {
		return storetest.Agreed(t, s)(s.ProposeReopening(ctx, storetest.NewID(t), wallet, "put back from a backup", counts(latest, final), admin))
	}
	wantFault(t, reopen(3, 3), exchange.CodeStateConflict) // nothing was ever sent
	_, p := paid(t, s, m)
	_, q := paid(t, s, m)
	lost, alive := signNext(t, s, p), signNext(t, s, q) // 7 and 8
	wantFault(t, reopen(9, 9), exchange.CodeStateConflict)
	if _, err := s.RecordExpired(ctx, lost.ID, "the number was used"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, reopen(10, 10), exchange.CodeStateConflict) // one of ours may still be included
	if err := ends(t, s, alive, true); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]exchange.SenderCount{"not final": counts(11, 10), "behind": counts(8, 8), "before it": counts(7, 7)} {
		if _, err := s.ProposeReopening(ctx, storetest.NewID(t), wallet, "why", n, admin); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, reason := range []string{"", strings.Repeat("x", exchange.MaxReopeningReason+1)} {
		_, err := s.ProposeReopening(ctx, storetest.NewID(t), wallet, reason, counts(11, 11), admin)
		wantFault(t, err, exchange.CodeInvalid)
	}
	id := storetest.NewID(t)
	waits := twice(t, sameChange, func() (exchange.ControlChange, error) {
		return s.ProposeReopening(ctx, id, wallet, "put back from a backup", counts(11, 11), admin)
	})
	_, err := s.ConfirmChange(ctx, waits.ID, "", admin)
	wantFault(t, err, exchange.CodeForbidden)
	if sequence, _, err := s.NonceSequence(ctx, wallet); err != nil || sequence.Next != 9 || !sequence.Foreign {
		t.Errorf("one officer alone made the sequence %+v, %v", sequence, err)
	}
	if err := storetest.Agreed(t, s)(waits, nil); err != nil {
		t.Fatal(err)
	}
	wantFault(t, reopen(11, 11), exchange.CodeStateConflict) // it is open
	var audited int
	err = storetest.Owner(t, s).QueryRowContext(ctx, `SELECT count(*) FROM audit_log WHERE action = 'wallet.nonce_sequence_reopened' AND object_id = $1
		AND after->>'reason' = 'put back from a backup'`, wallet).Scan(&audited)
	if err != nil || audited != 1 {
		t.Errorf("%d audit rows, %v", audited, err)
	}
	next := signNext(t, s, p)
	if next.Nonce != 11 {
		t.Errorf("the next number is %d, want 11", next.Nonce)
	}

	// The chain's count may be ahead although no transaction of ours revealed it.
	if err := ends(t, s, next, true); err != nil {
		t.Fatal(err)
	}
	if err := reopen(15, 15); err != nil {
		t.Fatal(err)
	}
	if sequence, _, err := s.NonceSequence(ctx, wallet); err != nil || sequence.Next != 15 || sequence.Foreign {
		t.Errorf("the sequence is %+v, %v", sequence, err)
	}
	wantBooks(t, s)
}

// Only its numbers and its reopenings move a sequence.
func TestNonceSequencesMoveByReopeningsAlone(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, p := paid(t, s, m)
	_, q := paid(t, s, m)
	a := signNext(t, s, p)
	if _, err := s.RecordExpired(t.Context(), a.ID, "the number was used"); err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, s)
	insert := func(next string) string {
		return `INSERT INTO nonce_sequence_reopenings SELECT gen_random_uuid(), wallet_id, foreign_nonce, next, ` + next + `, 1, 'one', 'why', '` +
			m.Vendor.ID.String() + `', now() FROM nonce_sequences`
	}
	refused := []string{
		`UPDATE nonce_sequences SET foreign_nonce = NULL`, `UPDATE nonce_sequences SET next = 12`, `UPDATE nonce_sequences SET next = 2`, insert("next - 1"),
		strings.Replace(insert("next + 1"), "foreign_nonce, next,", "foreign_nonce, next + 1,", 1),
		strings.Replace(insert("next + 1"), "foreign_nonce, next,", "NULL, next,", 1),
		strings.Replace(insert("next + 1"), "'why'", "''", 1),
	}
	if _, err := db.ExecContext(t.Context(), insert("next + 4")); sqlState(err) != "KV006" {
		t.Errorf("reopened by nobody: %v", err)
	}
	storetest.Exec(t, s, `ALTER TABLE nonce_sequence_reopenings DISABLE TRIGGER nonce_sequence_reopenings_agreed`)
	refuse := func(query string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || (pe.Code != "KV002" && pe.Code != "23514") {
			t.Errorf("%s: %v, want a refusal", query, err)
		}
	}
	for _, query := range refused {
		refuse(query)
	}
	if _, err := db.ExecContext(t.Context(), insert("next + 4")); err != nil {
		t.Fatal(err)
	}
	refuse(`UPDATE nonce_sequence_reopenings SET reason = 'another'`)
	refuse(`DELETE FROM nonce_sequence_reopenings`)
	if b := signNext(t, s, q); b.Nonce != 12 {
		t.Errorf("the number is %d, want 12", b.Nonce)
	}
	refuse(strings.Replace(insert("next + 1"), "why", "ours is alive", 1))
}

// With two concurrent reopenings and a payment signed meanwhile, no number is assigned twice.
func TestReopenNonceSequenceAtOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, p := paid(t, s, m)
	_, q := paid(t, s, m)
	a := signNext(t, s, p)
	if _, err := s.RecordExpired(ctx, a.ID, "the number was used"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	opened := make([]error, 4)
	second := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	var waits []exchange.ControlChange
	for range opened {
		c, err := s.ProposeReopening(ctx, storetest.NewID(t), m.VendorWallet.ID, "why", counts(20, 20), admin)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, c)
	}
	for i, c := range waits {
		wg.Go(func() { _, opened[i] = s.ConfirmChange(ctx, c.ID, "", second) })
	}
	done, signed := make(chan struct{}), make(chan error)
	go func() {
		for {
			last := false
			select {
			case <-done:
				last = true
			default:
			}
			if _, err := s.SaveSignedAttempt(ctx, numbered(t, q, 20)); err == nil || last {
				signed <- err
				return
			}
		}
	}()
	wg.Wait()
	close(done)
	if err := <-signed; err != nil {
		t.Errorf("the sequence is open, and its number is refused: %v", err)
	}
	won := 0
	for _, err := range opened {
		if err == nil {
			won++
		} else {
			wantFault(t, err, exchange.CodeStateConflict)
		}
	}
	if sequence, _, err := s.NonceSequence(ctx, m.VendorWallet.ID); err != nil || won != 1 || sequence.Next != 21 {
		t.Errorf("%d opened the sequence, which is %+v, %v", won, sequence, err)
	}
}

package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func report(ticket, utility string) exchange.FloatReport {
	return exchange.FloatReport{Ticket: ticket, Code: "0", At: time.Now(), Accounts: []exchange.FloatAccount{
		{Name: exchange.FloatWorking, Current: kes("5000"), Available: kes("5000")},
		{Name: exchange.FloatUtility, Current: kes(utility), Available: kes(utility)},
	}}
}

// A report is compared with the books: between booked minus held, and booked, open payouts may or may not have left.
// The same difference twice without open payouts needs an officer.
func TestFloatReports(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	refund, _ := underpaid(t, s) // the books say 1,000,000
	a := payout(t, s, refund)    // and hold 1,013
	record := func(ticket, utility, difference string) {
		t.Helper()
		got := twice(t, func(a, b exchange.FloatCheck) bool { return a.ReceivedAt.Equal(b.ReceivedAt) }, func() (exchange.FloatCheck, error) {
			return s.RecordFloatReport(ctx, report(ticket, utility))
		})
		want := kes(difference)
		if ticket == "below" {
			want = want.Neg()
		}
		if !got.Difference.Equal(want) {
			t.Errorf("%s: the difference is %s, want %s", ticket, got.Difference, want)
		}
	}
	state := func() exchange.FloatState {
		t.Helper()
		f, err := s.FloatState(ctx, operator)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	record("not left", "1000000", "0")
	record("left", "998987", "0")
	record("below", "998900", "87")
	record("above", "1000500", "500")
	if f := state(); f.Open != 1 || f.Disagrees || len(f.Reports) != 4 || !f.Payout.Held.Equal(kes("1013")) || f.Breaker.State() != exchange.BreakerClosed ||
		!f.Terms.MaxPayout.Positive() {
		t.Errorf("%+v", f)
	}
	if _, err := completeRefund(t, s, refund.ID, a.ID, storetest.Paid(t, refund.Amount)); err != nil {
		t.Fatal(err)
	}
	record("once", "999000", "13")
	if state().Disagrees {
		t.Error("one report alone counts as a difference")
	}
	record("again", "999000", "13")
	if !state().Disagrees {
		t.Error("two reports that differ by the same are nothing")
	}
	record("right", "998987", "0")
	if state().Disagrees {
		t.Error("it is over")
	}
	_, err := s.RecordFloatReport(ctx, exchange.FloatReport{Ticket: "x", Accounts: []exchange.FloatAccount{{Name: exchange.FloatUtility, Current: kes("1")}}})
	wantFault(t, err, exchange.CodeInvalid)
}

// The difference between the provider's charge and its terms is booked once, up or down.
func TestChargesAreFixed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	for _, told := range []string{"22.40", "5", "13"} {
		refund, _ := underpaid(t, s)
		obs := storetest.Paid(t, refund.Amount)
		obs.Charge = kes(told)
		if _, err := completeRefund(t, s, refund.ID, payout(t, s, refund).ID, obs); err != nil {
			t.Fatal(err)
		}
	}
	fees := exchange.House(exchange.AccMomoFees, money.KES)
	wantBalance(t, s, fees, "39", "0")
	for _, want := range []int{2, 0} {
		if n, err := s.FixCharges(ctx); err != nil || n != want {
			t.Errorf("fixed %d, %v; want %d", n, err, want)
		}
	}
	wantBalance(t, s, fees, "40.40", "0")
	wantBooks(t, s)
}

func collected(t *testing.T, s *store.Store, amount string) {
	t.Helper()
	p := exchange.Posting{Entries: []exchange.Entry{{
		Key: "test:" + uuid.NewString(), Kind: "test", ObjectType: "test", Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), kes(amount)),
			exchange.Credit(exchange.House(exchange.AccCapital, money.KES), kes(amount)),
		},
	}}}
	if err := s.Post(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func beginMove(t *testing.T, b board, amount string, by exchange.Principal) exchange.FloatMove {
	t.Helper()
	id := storetest.NewID(t)
	return twice(t, func(a, b exchange.FloatMove) bool { return a.ID == b.ID && a.Version == b.Version }, func() (exchange.FloatMove, error) {
		m, c, err := b.store.BeginFloatMove(t.Context(), id, kes(amount), by)
		if c.ID != uuid.Nil {
			t.Fatalf("%s waits for a second officer", amount)
		}
		return m, err
	})
}

// One caller requests a movement of float, and it is booked when it is proven.
func TestFloatMove(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	collected(t, s, "300000")
	storetest.Float(t, s, kes("1000"))
	working := exchange.House(exchange.AccMomoCollection, money.KES)
	m := beginMove(t, b, "50000", b.officer)
	wantBalance(t, s, working, "300000", "50000")
	_, _, err := s.BeginFloatMove(ctx, storetest.NewID(t), kes("1"), b.one)
	wantFault(t, err, exchange.CodeConflict) // one at a time
	claimed, first, err := s.ClaimFloatMove(ctx, exchange.FloatMove{ID: m.ID, CallbackToken: "token", StatusToken: "answers"})
	if err != nil || !first || claimed.Status != exchange.FloatUnknown {
		t.Fatalf("%+v, %v, %v", claimed, first, err)
	}
	if _, again, err := s.ClaimFloatMove(ctx, exchange.FloatMove{ID: m.ID, CallbackToken: "other", StatusToken: "others"}); err != nil || again {
		t.Errorf("two callers may ask: %v", err)
	}
	for token, kind := range map[string]exchange.CallbackKind{"token": exchange.CallbackResult, "answers": exchange.CallbackStatus} {
		if got, err := s.FloatMoveByToken(ctx, kind, token); err != nil || got.ID != m.ID {
			t.Errorf("by the token of its %s: %+v, %v", kind, got, err)
		}
	}
	_, err = s.FloatMoveByToken(ctx, exchange.CallbackStatus, "token")
	wantFault(t, err, exchange.CodeNotFound) // each address has a token of its own
	for range 2 {
		if err := s.SaveFloatQuery(ctx, m.ID, "AG_9"); err != nil {
			t.Fatal(err)
		}
	}
	if tickets, err := s.FloatQueries(ctx, m.ID); err != nil || len(tickets) != 1 || tickets[0] != "AG_9" {
		t.Errorf("our queries: %v, %v", tickets, err)
	}
	sub := exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_1", OriginatorConversationID: "1-2-3"}}
	twice(t, func(a, b exchange.FloatMove) bool { return a.Version == b.Version }, func() (exchange.FloatMove, error) {
		return s.RecordFloatSubmission(ctx, m.ID, sub)
	})
	_, err = s.SettleFloatMove(ctx, m.ID, exchange.FloatCompleted, exchange.Observation{Receipt: "R1"}, "", b.officer)
	b.wantForbidden(err) // the requester can't attest the outcome
	_, err = s.SettleFloatMove(ctx, m.ID, exchange.FloatCompleted, exchange.Observation{Receipt: "R1", Amount: kes("49999")}, "", exchange.System("x"))
	wantFault(t, err, exchange.CodeConflict)
	done := twice(t, func(a, b exchange.FloatMove) bool { return a.Version == b.Version }, func() (exchange.FloatMove, error) {
		return s.SettleFloatMove(ctx, m.ID, exchange.FloatCompleted, exchange.Observation{Receipt: "R1", Amount: kes("50000")}, "", exchange.System("x"))
	})
	if done.Status != exchange.FloatCompleted || done.Receipt != "R1" {
		t.Errorf("%+v", done)
	}
	_, err = s.SettleFloatMove(ctx, m.ID, exchange.FloatFailed, exchange.Observation{}, "", b.one)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, s, working, "250000", "0")
	wantBalance(t, s, float(), "51000", "0")

	lost := beginMove(t, b, "100000", b.officer)
	_, err = s.SettleFloatMove(ctx, lost.ID, exchange.FloatFailed, exchange.Observation{}, "", b.one)
	wantFault(t, err, exchange.CodeStateConflict) // the request was not sent yet
	if _, _, err := s.ClaimFloatMove(ctx, exchange.FloatMove{ID: lost.ID, CallbackToken: "lost", StatusToken: "found"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.SettleFloatMove(ctx, lost.ID, exchange.FloatFailed, exchange.Observation{}, "in no statement", b.one)
	wantFault(t, err, exchange.CodeStateConflict) // the request may be sent still
	claimedBefore(t, s, lost.ID, exchange.FloatSending+time.Second)
	if _, err := s.SettleFloatMove(ctx, lost.ID, exchange.FloatFailed, exchange.Observation{}, "in no statement", b.one); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, working, "250000", "0")
	_, _, err = s.BeginFloatMove(ctx, storetest.NewID(t), kes("250001"), b.one)
	if exchange.CodeOf(err) != "" && exchange.CodeOf(err) != exchange.CodeInsufficientFunds {
		t.Error(err)
	}
	wantBooks(t, s)
}

func claimedBefore(t *testing.T, s *store.Store, id uuid.UUID, age time.Duration) {
	t.Helper()
	storetest.Exec(t, s, `UPDATE float_moves SET claimed_at = clock_timestamp() - make_interval(secs => $2) WHERE id = $1`, id, age.Seconds())
}

// The database ends no claimed movement as failed while its request may be sent still, by no officer's word and without
// anything that the operator said, and no process chooses the moment of the claim.
func TestFloatMoveDoesNotFailWhileItMayBeSent(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	collected(t, s, "300000")
	m := beginMove(t, b, "50000", b.officer)
	if _, _, err := s.ClaimFloatMove(ctx, exchange.FloatMove{ID: m.ID, CallbackToken: "token", StatusToken: "answers"}); err != nil {
		t.Fatal(err)
	}
	const fail = `UPDATE float_moves SET status = 'failed', settled_at = now(), updated_at = now() - interval '1 hour', settled_by = NULLIF($2, '')::uuid WHERE id = $1`
	refused := func(by string) {
		t.Helper()
		for _, role := range []store.Role{store.RoleAPI, store.RoleMomo} {
			conn := storetest.As(t, s, role)
			if _, err := conn.ExecContext(ctx, fail, m.ID, by); sqlState(err) != "KV001" {
				t.Errorf("%s ends it: %v", role, err)
			}
			if _, err := conn.ExecContext(ctx, `UPDATE float_moves SET claimed_at = now() - interval '1 hour' WHERE id = $1`, m.ID); sqlState(err) != "42501" {
				t.Errorf("%s chooses when it was claimed: %v", role, err)
			}
		}
	}
	refused("")
	claimedBefore(t, s, m.ID, exchange.FloatSending-20*time.Second)
	refused(b.one.UserID.String())
	said := exchange.MomoCallback{ID: storetest.NewID(t), Kind: exchange.CallbackResult, RemoteIP: "127.0.0.1", Body: []byte(`{}`), FloatMoveID: m.ID, ReceivedAt: time.Now()}
	if err := s.SaveCallback(ctx, said); err != nil {
		t.Fatal(err)
	}
	refused(b.one.UserID.String()) // anybody who learns the address could have said it
	if _, err := s.SettleFloatMove(ctx, m.ID, exchange.FloatFailed, exchange.Observation{}, "", exchange.System("float")); err != nil {
		t.Error("what the operator reports waits too:", err)
	}
	wantBooks(t, s)
}

// A large movement needs two officers, and the database enforces it.
func TestLargeFloatMoveTakesTwo(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	collected(t, s, "9000000")
	m, c, err := s.BeginFloatMove(ctx, storetest.NewID(t), kes("3000000"), b.officer)
	if err != nil || m.ID != uuid.Nil || c.Kind != exchange.ControlFloatMove {
		t.Fatalf("%+v, %+v, %v", m, c, err)
	}
	_, err = s.ConfirmChange(ctx, c.ID, "", b.officer)
	b.wantForbidden(err)
	if _, err := s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	begun, err := s.FloatMove(ctx, c.ID)
	if err != nil || begun.ChangeID != c.ID || begun.AskedBy != b.officer.UserID || !begun.Amount.Equal(kes("3000000")) {
		t.Fatalf("%+v, %v", begun, err)
	}
	for _, query := range []string{
		`INSERT INTO float_moves (id, asset, amount, status, hold_id, asked_by, created_at, updated_at)
			SELECT gen_random_uuid(), 'KES', 3000000, 'created', gen_random_uuid(), asked_by, now(), now() FROM float_moves`,
		`INSERT INTO float_moves (id, asset, amount, status, hold_id, change_id, asked_by, created_at, updated_at)
			SELECT gen_random_uuid(), 'KES', 3000000, 'created', gen_random_uuid(), change_id, asked_by, now(), now() FROM float_moves`,
		`UPDATE float_moves SET amount = 1`,
		`UPDATE float_moves SET status = 'completed', receipt = 'X', token_hash = decode(repeat('00', 32), 'hex'), status_token_hash = decode(repeat('01', 32), 'hex'), settled_at = now()`,
		`UPDATE float_moves SET status = 'unknown'`,
		`DELETE FROM float_moves`,
		`TRUNCATE float_moves CASCADE`,
	} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query); sqlState(err) == "" {
			t.Errorf("%s is taken", query)
		}
	}
}

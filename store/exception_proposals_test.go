package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// valuable is late money above the value that one officer may decide.
func valuable(t *testing.T, s *store.Store) (storetest.Market, exchange.PaymentException) {
	t.Helper()
	m := storetest.NewMarket(t, s)
	x := latePayment(t, s, m)
	storetest.Patch(t, s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: kes("1294"), TwoAbove: kes("2000000")}}})
	return m, x
}

// A decision above one officer's limit waits for another, and is booked once, at the confirmation.
func TestMuchMoneyIsDecidedAboutByTwo(t *testing.T) {
	t.Parallel()
	for _, verdict := range []exchange.ExceptionStatus{exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited} {
		t.Run(string(verdict), func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			m, x := valuable(t, s)
			one, two := officer(t, s), officer(t, s)
			d := decide(t, x, verdict)
			if verdict == exchange.ExcCredited {
				d.MerchantID = m.Vendor.ID
			}
			_, _, err := s.DecideException(ctx, d, one)
			wantFault(t, err, exchange.CodeLimitReached)
			waits, err := s.ProposeDecision(ctx, d, one)
			if err != nil {
				t.Fatal(err)
			}
			d.ID = storetest.NewID(t)
			if again, err := s.ProposeDecision(ctx, d, one); err != nil || again.ID != waits.ID {
				t.Errorf("proposed twice: %s and %s wait, %v", waits.ID, again.ID, err)
			}
			_, err = s.ConfirmChange(ctx, waits.ID, "", one)
			wantFault(t, err, exchange.CodeForbidden)
			wantBalance(t, s, suspense(), "1295", "0")
			for range 2 {
				if c, err := s.ConfirmChange(ctx, waits.ID, "seen", two); err != nil || c.Status != exchange.ControlConfirmed {
					t.Fatalf("the change is %s, %v", c.Status, err)
				}
			}
			if y, err := s.Exception(ctx, x.ID); err != nil || y.Status != verdict || y.Note != "because" {
				t.Errorf("the exception is %s (%s), %v", y.Status, y.Note, err)
			}
			wantBalance(t, s, suspense(), "0", "0")
			kept, merchant := "1295", "0"
			if verdict == exchange.ExcCredited {
				kept, merchant = "0", "1295"
			}
			wantBalance(t, s, fees(money.KES), kept, "0")
			wantBalance(t, s, exchange.Owned(exchange.AccFiatBalance, m.Vendor.ID, money.KES), merchant, "0")
			wantBooks(t, s)
		})
	}
}

// An operator's command to a flow to keep a large amount counts as one officer too.
func TestNoSingleCommandKeepsMuchMoney(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	_, x := valuable(t, s)
	_, err := s.ResolveException(ctx, x.ID, exchange.ExcAccepted, "keep it", officer(t, s))
	wantFault(t, err, exchange.CodeLimitReached)
	wantBalance(t, s, suspense(), "1295", "0")
}

// A change of the exception between proposal and confirmation ends the proposal.
func TestAProposalAboutSettledMoneyIsNotConfirmed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	_, x := valuable(t, s)
	one, two := officer(t, s), officer(t, s)
	first, err := s.ProposeDecision(ctx, decide(t, x, exchange.ExcAccepted), one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.ProposeDecision(ctx, decide(t, x, exchange.ExcWrittenOff), two)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RefundException(ctx, x.ID, one); err != nil {
		t.Fatal(err)
	}
	for _, c := range []exchange.ControlChange{first, second} {
		_, err := s.ConfirmChange(ctx, c.ID, "", officer(t, s))
		wantFault(t, err, exchange.CodeStateConflict)
	}
	_, err = s.ProposeDecision(ctx, decide(t, x, exchange.ExcAccepted), one)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, s, suspense(), "0", "0")
	wantBooks(t, s)
}

// The database refuses a decision about a large amount without a confirmation of this very decision.
func TestDecisionsAboutMuchMoneyAreGuarded(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	_, x := valuable(t, s)
	one, two := officer(t, s), officer(t, s)
	waits, err := s.ProposeDecision(ctx, decide(t, x, exchange.ExcAccepted), one)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, s)
	settle := `UPDATE payment_exceptions SET status = '?', note = 'x', updated_at = now(), version = version + 1 WHERE id = '` + x.ID.String() + `';`
	insert := `INSERT INTO exception_decisions (id, exception_id, verdict, reason, decided_by, decided_at, change_id)
		VALUES ('` + uuid.NewString() + `', '` + x.ID.String() + `', '?', 'because', '` + one.UserID.String() + `', now(), @);`
	confirm := `UPDATE control_changes SET status = 'confirmed', decided_by = '` + two.UserID.String() + `', decided_at = now() WHERE id = '` + waits.ID.String() + `';`
	for name, sql := range map[string]string{
		"alone":                      settle + strings.ReplaceAll(insert, "@", "NULL"),
		"by an unconfirmed proposal": settle + strings.ReplaceAll(insert, "@", "'"+waits.ID.String()+"'"),
		"under another id":           confirm + settle + strings.ReplaceAll(insert, "@", "'"+waits.ID.String()+"'"),
	} {
		_, err := db.ExecContext(ctx, strings.ReplaceAll(sql, "?", "accepted")) // several statements are one transaction
		if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Code != "KV006" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if y, err := s.Exception(ctx, x.ID); err != nil || y.Status != exchange.ExcOpen {
		t.Errorf("the exception is %s, %v", y.Status, err)
	}
}

package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// latePayment is money for an ended order, with an open exception.
func latePayment(t *testing.T, s *store.Store, m storetest.Market) exchange.PaymentException {
	t.Helper()
	o := m.Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	if _, err := s.CloseOrder(t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	out, err := s.AcceptPayment(t.Context(), a.ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	if err != nil || out.Exception.Status != exchange.ExcOpen {
		t.Fatalf("exception %+v, %v", out.Exception, err)
	}
	return out.Exception
}

func decide(t *testing.T, x exchange.PaymentException, verdict exchange.ExceptionStatus) exchange.ExceptionDecision {
	t.Helper()
	return exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: x.ID, Verdict: verdict, Reason: "because"}
}

func officer(t *testing.T, s *store.Store) exchange.Principal {
	t.Helper()
	return storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
}

// Each decision is booked once, even if it is repeated under its own or another id.
func TestDecisionsAboutShillings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verdict          exchange.ExceptionStatus
		kept, merchant   string
		creditedToVendor bool
	}{
		{exchange.ExcAccepted, "1295", "0", false},
		{exchange.ExcWrittenOff, "1295", "0", false},
		{exchange.ExcCredited, "0", "1295", true},
	} {
		t.Run(string(c.verdict), func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			m, by := storetest.NewMarket(t, s), officer(t, s)
			x := latePayment(t, s, m)
			d := decide(t, x, c.verdict)
			if c.creditedToVendor {
				d.MerchantID = m.Vendor.ID
			}
			for i := range 2 {
				done, mine, err := s.DecideException(ctx, d, by)
				if err != nil || done.Status != c.verdict || !mine || done.Note != "because" || done.Version != 2 {
					t.Errorf("try %d: %+v, mine %v, %v", i, done, mine, err)
				}
			}
			again := d
			again.ID = storetest.NewID(t)
			if _, mine, err := s.DecideException(ctx, again, officer(t, s)); err != nil || mine {
				t.Errorf("a second officer with the same decision: mine %v, %v", mine, err)
			}
			for _, other := range []exchange.ExceptionStatus{exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited} {
				o := decide(t, x, other)
				if o.MerchantID = storetest.User(t, s, exchange.RoleVendor).ID; other != exchange.ExcCredited {
					o.MerchantID = uuid.Nil
				}
				if other == c.verdict && other != exchange.ExcCredited {
					continue
				}
				_, _, err := s.DecideException(ctx, o, by)
				wantFault(t, err, exchange.CodeStateConflict)
			}
			_, err := s.RefundException(ctx, x.ID, by)
			wantFault(t, err, exchange.CodeStateConflict)
			if y, err := s.ResolveException(ctx, x.ID, exchange.ExcAccepted, "the flow asks", by); err != nil || y.Status != c.verdict {
				t.Errorf("the flow that waited gets %s, %v", y.Status, err)
			}
			wantBalance(t, s, suspense(), "0", "0")
			wantBalance(t, s, fees(money.KES), c.kept, "0")
			wantBalance(t, s, exchange.Owned(exchange.AccFiatBalance, m.Vendor.ID, money.KES), c.merchant, "0")
			if got := eventsOf(t, s, x.ID); len(got) != 2 || got[1] != "payment_exception."+string(c.verdict) {
				t.Errorf("events %v", got)
			}
			wantBooks(t, s)
		})
	}
}

func TestDecisionsThatAreRefused(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m, by := storetest.NewMarket(t, s), officer(t, s)
	x := latePayment(t, s, m)
	for name, c := range map[string]struct {
		change func(*exchange.ExceptionDecision)
		code   exchange.Code
	}{
		"without a reason":           {func(d *exchange.ExceptionDecision) { d.Reason = "" }, exchange.CodeInvalid},
		"refunded by a word":         {func(d *exchange.ExceptionDecision) { d.Verdict = exchange.ExcRefunded }, exchange.CodeStateConflict},
		"credited to no account":     {func(d *exchange.ExceptionDecision) { d.Verdict = exchange.ExcCredited }, exchange.CodeInvalid},
		"credited to a customer":     {credits(uuid.Nil, m.Customer.ID), exchange.CodeInvalid},
		"shillings in a wallet":      {credits(m.CustomerWallet.ID, uuid.Nil), exchange.CodeInvalid},
		"an exception that is not":   {func(d *exchange.ExceptionDecision) { d.ExceptionID = storetest.NewID(t) }, exchange.CodeNotFound},
		"accepted and paid somebody": {func(d *exchange.ExceptionDecision) { d.MerchantID = m.Vendor.ID }, exchange.CodeInternal},
	} {
		d := decide(t, x, exchange.ExcAccepted)
		c.change(&d)
		if _, _, err := s.DecideException(ctx, d, by); exchange.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	_, _, err := s.DecideException(ctx, decide(t, x, exchange.ExcAccepted), storetest.PrincipalOf(m.Vendor))
	wantFault(t, err, exchange.CodeForbidden)
	one := kes("1294")
	storetest.Patch(t, s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: one, TwoAbove: kes("2000000")}}})
	_, _, err = s.DecideException(ctx, decide(t, x, exchange.ExcWrittenOff), by)
	wantFault(t, err, exchange.CodeLimitReached)
	if y, err := s.Exception(ctx, x.ID); err != nil || y.Status != exchange.ExcOpen {
		t.Errorf("the exception is %s, %v", y.Status, err)
	}
	wantBalance(t, s, suspense(), "1295", "0")
	wantBooks(t, s)
}

func credits(wallet, merchant uuid.UUID) func(*exchange.ExceptionDecision) {
	return func(d *exchange.ExceptionDecision) {
		d.Verdict, d.WalletID, d.MerchantID = exchange.ExcCredited, wallet, merchant
	}
}

// Of concurrent different decisions one counts, and the money moves once.
func TestDecisionsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	x := latePayment(t, s, m)
	asks := []func(by exchange.Principal) error{}
	for _, v := range []exchange.ExceptionStatus{exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited} {
		d := decide(t, x, v)
		if v == exchange.ExcCredited {
			d.MerchantID = m.Vendor.ID
		}
		asks = append(asks, func(by exchange.Principal) error {
			_, _, err := s.DecideException(ctx, d, by)
			return err
		})
	}
	asks = append(asks, func(by exchange.Principal) error {
		_, err := s.RefundException(ctx, x.ID, by)
		return err
	})
	var wg sync.WaitGroup
	done := make([]error, len(asks))
	for i, ask := range asks {
		by := officer(t, s)
		wg.Go(func() { done[i] = ask(by) })
	}
	wg.Wait()
	passed := 0
	for i, err := range done {
		if err == nil {
			passed++
		} else if exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("officer %d: %v", i, err)
		}
	}
	if passed != 1 {
		t.Errorf("%d decisions count", passed)
	}
	wantBalance(t, s, suspense(), "0", "0")
	wantBooks(t, s)
}

// Crypto is credited in the very wallet where it lies, if that has an owner and no alarm is open.
func TestDecisionsAboutChainMoney(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	by := officer(t, s)
	from, to := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleVendor)), storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	gas := houseWallet(t, s, exchange.HouseGas)
	storetest.Deposit(t, s, from.ID, usdt("10"))
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("inside", from.Address, to.Address, usdt("3")), moveOf("lost", stranger, gas.Address, usdt("16"))))
	inside := exchange.PaymentException{ID: wantDeposit(t, s, "inside", exchange.DepositUnmatched, exchange.DepositFinal).ExceptionID}
	lost := exchange.PaymentException{ID: wantDeposit(t, s, "lost", exchange.DepositUnmatched, exchange.DepositFinal).ExceptionID}
	credit := func(x exchange.PaymentException, wallet, merchant uuid.UUID, code exchange.Code) {
		t.Helper()
		d := decide(t, x, exchange.ExcAccepted)
		credits(wallet, merchant)(&d)
		if _, _, err := s.DecideException(ctx, d, by); exchange.CodeOf(err) != code {
			t.Errorf("credited: %v, want %q", err, code)
		}
	}
	credit(inside, to.ID, uuid.Nil, exchange.CodeStateConflict) // the alarm is open
	open, err := s.OpenQuarantine(ctx, exchange.Tron)
	if err != nil || len(open) != 1 {
		t.Fatalf("%d alarms, %v", len(open), err)
	}
	storetest.Exec(t, s, `BEGIN; ALTER TABLE deposit_quarantine DISABLE TRIGGER deposit_quarantine_agreed;
		UPDATE deposit_quarantine SET settled_at = now(), note = 'looked at'; ALTER TABLE deposit_quarantine ENABLE TRIGGER deposit_quarantine_agreed; COMMIT`)
	credit(inside, from.ID, uuid.Nil, exchange.CodeInvalid)
	credit(inside, uuid.Nil, from.OwnerID, exchange.CodeInvalid)
	credit(inside, uuid.Nil, uuid.Nil, exchange.CodeInvalid)
	credit(lost, gas.ID, uuid.Nil, exchange.CodeInvalid) // it has no owner
	credit(inside, to.ID, uuid.Nil, "")
	wantBalance(t, s, owed(to, money.USDT), "3", "0")
	wantBalance(t, s, custody(to), "3", "0")
	if _, _, err := s.DecideException(ctx, decide(t, lost, exchange.ExcWrittenOff), by); err != nil {
		t.Error(err)
	}
	wantBalance(t, s, custody(gas), "16", "0") // the wallet holds the chain's balance, for every owner
	wantBalance(t, s, exchange.Owned(exchange.AccWalletFees, gas.ID, money.USDT), "16", "0")
	wantBalance(t, s, exchange.House(exchange.AccSuspense, money.USDT), "0", "0")
	wantBooks(t, s)
}

// Money that the house kept can't be refunded too, and no refund uses another exception's money.
func TestDatabaseHoldsDecisions(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m, by := storetest.NewMarket(t, s), officer(t, s)
	kept, open := latePayment(t, s, m), latePayment(t, s, m)
	if _, _, err := s.DecideException(ctx, decide(t, kept, exchange.ExcAccepted), by); err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, s)
	refund := func(order, attempt uuid.UUID, receipt string, exception any) string {
		t.Helper()
		_, err := db.ExecContext(ctx, `INSERT INTO refunds (id, order_id, attempt_id, collection, exception_id, asset, amount, phone, reason, status, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, 'KES', 1, '254712345678', 'x', 'pending', now(), now())`, storetest.NewID(t), order, attempt, receipt, exception)
		pe, _ := errors.AsType[*pq.Error](err)
		if pe == nil {
			return ""
		}
		return string(pe.Code)
	}
	if code := refund(kept.OrderID, kept.AttemptID, kept.Receipt, nil); code != "23514" {
		t.Errorf("a refund of what was kept: %q", code)
	}
	if code := refund(open.OrderID, open.AttemptID, open.Receipt, open.ID); code != "KV002" {
		t.Errorf("a refund of an exception that is not on its way back: %q", code)
	}
	if code := refund(open.OrderID, open.AttemptID, open.Receipt, kept.ID); code != "KV002" {
		t.Errorf("a refund of another exception's money: %q", code)
	}
	for query, want := range map[string]string{
		`UPDATE collections SET kept = 0`:                 "KV002",
		`UPDATE exception_decisions SET reason = 'other'`: "KV002",
		`DELETE FROM exception_decisions`:                 "KV002",
		`TRUNCATE exception_decisions`:                    "KV002",
		`UPDATE payment_exceptions SET status = 'written_off' WHERE id = '` + kept.ID.String() + `'`: "KV001",
		`INSERT INTO exception_decisions SELECT gen_random_uuid(), '` + open.ID.String() + `', 'accepted', NULL, NULL, 'x', decided_by, now()
			FROM exception_decisions`: "KV001",
		`INSERT INTO exception_decisions SELECT gen_random_uuid(), exception_id, 'accepted', NULL, NULL, 'x', decided_by, now()
			FROM exception_decisions`: "23505",
		`INSERT INTO exception_decisions SELECT gen_random_uuid(), exception_id, 'accepted', NULL, NULL, 'x', '` + m.Vendor.ID.String() + `', now()
			FROM exception_decisions`: "KV006",
	} {
		_, err := db.ExecContext(ctx, query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || string(pe.Code) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	wantBooks(t, s)
}

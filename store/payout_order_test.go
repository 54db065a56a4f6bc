package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// owing is a sale of 10 USDT whose crypto was taken and cleared: 1293 KES are owed to the customer.
func owing(t *testing.T) *sale {
	t.Helper()
	x := sold(t)
	x.owe(t)
	return x
}

// owe delivers the order's crypto, takes it, and clears its sender.
func (x *sale) owe(t *testing.T) {
	t.Helper()
	d := x.final(t, x.to("tx", x.order.Price.Crypto))
	taken, err := x.s.TakeDeposit(t.Context(), x.order.ID, d.ID)
	if err != nil || taken.Verdict != exchange.TakenExact {
		t.Fatalf("the deposit is taken as %q, %v", taken.Verdict, err)
	}
	if err := x.s.RecordDepositScreening(t.Context(), d.ID, clear1); err != nil {
		t.Fatal(err)
	}
}

// begin writes the try-th attempt to pay the order out.
func (x *sale) begin(ctx context.Context, s *store.Store, try int) (exchange.PaymentAttempt, error) {
	id := uuid.NewSHA1(x.order.ID, fmt.Appendf(nil, "try %d", try))
	return s.BeginPayout(ctx, exchange.OrderObject(x.order.ID), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", Reference: x.order.PaymentReference, CallbackToken: "token-" + id.String(), WorkflowID: exchange.OffRampFlow(x.order.ID),
	})
}

func (x *sale) begun(t *testing.T, try int) exchange.PaymentAttempt {
	t.Helper()
	a, err := x.begin(t.Context(), x.s, try)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refused makes the provider refuse an attempt, and with it the payout.
func (x *sale) refused(t *testing.T, a exchange.PaymentAttempt) {
	t.Helper()
	if _, err := x.s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
		t.Fatal(err)
	}
	if _, err := failOrder(t, x.s, x.order.ID, "2040"); err != nil {
		t.Fatal(err)
	}
}

// backing gives the order up: its crypto is to be refunded.
func (x *sale) backing(t *testing.T) exchange.Refund {
	t.Helper()
	_, r, err := x.s.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: x.order.ID, Reason: "refused"}, storetest.By)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (x *sale) payout(t *testing.T) exchange.OrderPayout {
	t.Helper()
	p, err := x.s.OrderPayout(t.Context(), x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wantFloat checks the payout float, its holds, the provider's charges, and the payees' debts.
func (x *sale) wantFloat(t *testing.T, posted, held, fees, owed string) {
	t.Helper()
	wantBalance(t, x.s, exchange.House(exchange.AccMomoPayout, money.KES), posted, held)
	wantBalance(t, x.s, exchange.House(exchange.AccMomoFees, money.KES), fees, "0")
	wantBalance(t, x.s, exchange.House(exchange.AccReceivable, money.KES), owed, "0")
	wantBooks(t, x.s)
}

func samePayout(a, b exchange.OrderPayout) bool {
	return a.OrderID == b.OrderID && a.Status == b.Status && a.Version == b.Version && a.PaidBy == b.PaidBy && a.Receipt == b.Receipt
}

// A payout is reserved with its charge, proven once, and completes its order with everything that is booked for it.
func TestOrderIsPaidOut(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	if p := x.payout(t); p.Status != exchange.PayoutPending || p.Amount.String() != "1293.00" || p.Phone != x.order.PaymentPhone || p.Rail != exchange.PayoutByMomo {
		t.Fatalf("owed is %+v", p)
	}
	x.wantFloat(t, "1000000", "0", "0", "0")
	a := x.begun(t, 1)
	if again := x.begun(t, 1); again.ID != a.ID || again.Version != a.Version {
		t.Errorf("begun again it is %+v", again)
	}
	x.wantFloat(t, "1000000", "1316", "0", "0")
	obs := storetest.Paid(t, a.Amount)
	done := twice(t, samePayout, func() (exchange.OrderPayout, error) {
		return completeOrder(t, x.s, x.order.ID, a.ID, obs)
	})
	if done.Status != exchange.PayoutCompleted || done.PaidBy != a.ID || done.Receipt != obs.Receipt || done.CompletedAt.IsZero() {
		t.Errorf("completed %+v", done)
	}
	o := x.now(t)
	if o.Status != exchange.OrderCompleted || o.MomoReceipt != obs.Receipt || o.PaymentTxnID != obs.Receipt || o.CompletedAt.IsZero() {
		t.Errorf("the order is %s with receipt %q", o.Status, o.MomoReceipt)
	}
	x.wantFloat(t, "998684", "0", "23", "0")
	wantBalance(t, x.s, exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES), "298706.45", "257416.45")
	wantBalance(t, x.s, exchange.House(exchange.AccRounding, money.KES), "0.55", "0")
	wantBalance(t, x.s, owed(x.e, money.USDT), "10", "10")
	if p, err := failOrder(t, x.s, x.order.ID, "1"); err != nil || !samePayout(p, done) {
		t.Errorf("a refusal after success: %+v, %v", p, err)
	}
	_, err := x.begin(ctx, x.s, 2)
	wantFault(t, err, exchange.CodeStateConflict)
}

// Until an attempt is definitely refused there is no other attempt and no refund.
func TestUnknownPayoutIsNeverReplaced(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	a := x.begun(t, 1)
	for _, sub := range []exchange.SubmissionState{"", exchange.Unknown, exchange.Accepted} {
		if sub != "" {
			if _, err := x.s.RecordSubmission(ctx, a.ID, exchange.Submission{State: sub}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := x.begin(ctx, x.s, 2)
		wantFault(t, err, exchange.CodeStateConflict)
		_, err = failOrder(t, x.s, x.order.ID, "2040")
		wantFault(t, err, exchange.CodeStateConflict)
		_, _, err = x.s.OpenChainRefund(ctx, exchange.ChainRefundRequest{OrderID: x.order.ID, Reason: "unknown"}, storetest.By)
		wantFault(t, err, exchange.CodeStateConflict)
		if doubted := sub != ""; x.payout(t).Doubted != doubted {
			t.Errorf("after %q the payout is doubted %t", sub, !doubted)
		}
		if sub == exchange.Unknown { // another run of the step may have sent it: a refusal is of one sending
			still, err := x.s.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Refused, Code: "not_sent", Class: exchange.ClassBusy})
			if err != nil || still.Status != exchange.AttemptUnknown {
				t.Errorf("a payout that may have been sent is %s, %v", still.Status, err)
			}
			if _, err := storetest.Owner(t, x.s).ExecContext(ctx, `UPDATE payment_attempts SET status = 'refused' WHERE id = $1`, a.ID); err == nil {
				t.Error("the database lets it be refused")
			}
		}
	}
	x.refused(t, a)
	if p := x.payout(t); p.Status != exchange.PayoutRefused || p.RefusedCode != "2040" || !p.Doubted {
		t.Errorf("refused %+v", p)
	}
	x.wantFloat(t, "1000000", "0", "0", "0")
	second := x.begun(t, 2)
	if _, err := completeOrder(t, x.s, x.order.ID, second.ID, storetest.Paid(t, second.Amount)); err != nil {
		t.Fatal(err)
	}
	x.wantFloat(t, "998684", "0", "23", "0")
}

// Reports of another amount are no proof, and nothing is booked without a receipt.
func TestPayoutOfAnotherAmountIsNotBooked(t *testing.T) {
	t.Parallel()
	x := owing(t)
	a := x.begun(t, 1)
	_, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, kes("1292")))
	wantFault(t, err, exchange.CodeConflict)
	_, err = completeOrder(t, x.s, x.order.ID, a.ID, exchange.Observation{State: exchange.SeenSucceeded})
	wantFault(t, err, exchange.CodeInvalid)
	other := owing(t)
	_, err = completeOrder(t, x.s, x.order.ID, other.begun(t, 1).ID, storetest.Paid(t, a.Amount))
	wantFault(t, err, exchange.CodeNotFound)
	if p := x.payout(t); p.Status != exchange.PayoutProcessing {
		t.Errorf("the payout is %s", p.Status)
	}
	x.wantFloat(t, "1000000", "1316", "0", "0")
}

// A float that is too small changes nothing, and the same attempt begins when it is replenished.
func TestPayoutWaitsForFloat(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	take := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: storetest.NewID(t), Key: "elsewhere", Account: exchange.House(exchange.AccMomoPayout, money.KES), Amount: kes("998685"), ObjectType: "test", ObjectID: x.order.ID,
	}}}}
	if err := x.s.Post(ctx, take); err != nil {
		t.Fatal(err)
	}
	_, err := x.begin(ctx, x.s, 1)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	if p := x.payout(t); p.Status != exchange.PayoutPending {
		t.Errorf("the payout is %s", p.Status)
	}
	storetest.Float(t, x.s, kes("1"))
	x.begun(t, 1)
	x.wantFloat(t, "1000001", "1000001", "0", "0")
}

// A late success of a refused attempt pays the order while it still waits. If another attempt is already under way,
// its float is freed when it fails, and the payee owes the money when it pays too.
func TestLateSuccessPaysAnOrderThatWaits(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"nothing since": false, "another attempt fails": true, "another attempt pays": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, x := t.Context(), owing(t)
			first := x.begun(t, 1)
			x.refused(t, first)
			var other exchange.PaymentAttempt
			if second {
				other = x.begun(t, 2)
			}
			p, err := completeOrder(t, x.s, x.order.ID, first.ID, storetest.Paid(t, first.Amount))
			if err != nil || p.Status != exchange.PayoutCompleted || p.PaidBy != first.ID {
				t.Fatalf("completed %+v, %v", p, err)
			}
			switch name {
			case "nothing since":
				x.wantFloat(t, "998684", "0", "23", "0")
			case "another attempt fails":
				x.refused(t, other)
				x.wantFloat(t, "998684", "0", "23", "0")
			case "another attempt pays":
				obs := storetest.Paid(t, other.Amount)
				twice(t, samePayout, func() (exchange.OrderPayout, error) { return completeOrder(t, x.s, x.order.ID, other.ID, obs) })
				x.wantFloat(t, "997368", "0", "46", "1293")
				e, found, err := x.s.PaidTwiceBy(ctx, other.ID)
				if err != nil || !found || e.Status != exchange.ExcOpen || e.Receipt != obs.Receipt || !e.Amount.Equal(other.Amount) {
					t.Errorf("the exception is %+v, %t, %v", e, found, err)
				}
			}
			if o := x.now(t); o.Status != exchange.OrderCompleted {
				t.Errorf("the order is %s", o.Status)
			}
		})
	}
}

// A success after the refund was opened stops the refund. The payout can stand instead, at the vendor's cost; then the
// crypto is the vendor's.
func TestLateSuccessStopsTheRefund(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	a := x.begun(t, 1)
	x.refused(t, a)
	r := x.backing(t)
	x.wantVendor(t, "258710")
	_, err := x.s.KeepOrderPayout(ctx, x.order.ID, storetest.By)
	wantFault(t, err, exchange.CodeStateConflict) // nothing is proven
	obs := storetest.Paid(t, a.Amount)
	twice(t, samePayout, func() (exchange.OrderPayout, error) { return completeOrder(t, x.s, x.order.ID, a.ID, obs) })
	x.wantFloat(t, "998684", "0", "23", "1293")
	if r, err = x.s.Refund(ctx, r.ID); err != nil || r.Status != exchange.RefundNeedsReview || r.Detail != string(exchange.RefundWaitsClaim) {
		t.Fatalf("the refund is %s (%s), %v", r.Status, r.Detail, err)
	}
	if here, err := x.s.CryptoIsHere(ctx, x.order.ID); err != nil || !here {
		t.Errorf("the crypto is here: %t, %v", here, err)
	}
	x.cannotBeDecided(t, a)
	kept := twice(t, samePayout, func() (exchange.OrderPayout, error) { return x.s.KeepOrderPayout(ctx, x.order.ID, storetest.By) })
	if kept.Status != exchange.PayoutCompleted || kept.Receipt != obs.Receipt || kept.PaidBy != a.ID {
		t.Errorf("kept %+v", kept)
	}
	x.wantFloat(t, "998684", "0", "23", "0")
	wantBalance(t, x.s, exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES), "298706.45", "257416.45")
	wantBalance(t, x.s, exchange.House(exchange.AccRounding, money.KES), "0.55", "0")
	wantBalance(t, x.s, owed(x.e, money.USDT), "10", "10")
	if r, err = x.s.Refund(ctx, r.ID); err != nil || r.Status != exchange.RefundCompleted || r.Receipt != obs.Receipt {
		t.Errorf("the refund is %s, %v", r.Status, err)
	}
	if e, _, err := x.s.PaidTwiceBy(ctx, a.ID); err != nil || e.Status != exchange.ExcAccepted {
		t.Errorf("the exception is %s, %v", e.Status, err)
	}
	if here, err := x.s.CryptoIsHere(ctx, x.order.ID); err != nil || here {
		t.Errorf("the crypto is to go back still: %t, %v", here, err)
	}
}

// cannotBeDecided expects that a payout can't be written off while its crypto is still here: the crypto would stay
// forever.
func (x *sale) cannotBeDecided(t *testing.T, a exchange.PaymentAttempt) {
	t.Helper()
	ctx := t.Context()
	e, _, err := x.s.PaidTwiceBy(ctx, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.s.ResolveException(ctx, e.ID, exchange.ExcAccepted, "a loss", storetest.By)
	wantFault(t, err, exchange.CodeStateConflict)
	d := exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: e.ID, Verdict: exchange.ExcWrittenOff, Reason: "a loss"}
	by := storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleAdmin))
	_, _, err = x.s.DecideException(ctx, d, by)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = x.s.ProposeDecision(ctx, d, by)
	wantFault(t, err, exchange.CodeStateConflict)
}

// D15: the vendor can't spend the shillings of a sale whose payout may still prove true. They stay reserved until the
// crypto has gone back for good; a signed refund that no block takes is not enough. The database refuses to free them.
func TestD15_ShillingsStayWhileThePayoutMayProveTrue(t *testing.T) {
	t.Parallel()
	for name, signed := range map[string]bool{"before the refund is signed": false, "after the signed refund expired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, x := t.Context(), owing(t)
			x.noCoolOff(t)
			x.says(t)
			a := x.begun(t, 1)
			x.refused(t, a)
			r := x.backing(t)
			if signed {
				p := x.standing(t, r, exchange.RefundReady).Payment
				clears(t, x.s, p)
				storetest.Gas(t, x.s, p.WalletID, trx("2"))
				if _, err := x.s.RecordExpired(ctx, sign(t, x.s, p).ID, "too old"); err != nil {
					t.Fatal(err)
				}
			}
			wantOffer(t, x.s, x.m.Offer.ID, "257416.45", "1990.000000")
			take := func(amount string) error {
				return x.s.Post(ctx, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
					ID: storetest.NewID(t), Key: "elsewhere:" + amount, Account: exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES), Amount: kes(amount), ObjectType: "test", ObjectID: x.order.ID,
				}}}})
			}
			if err := take("41290"); err != nil { // all that is free
				t.Fatal(err)
			}
			wantFault(t, take("0.01"), exchange.CodeInsufficientFunds)
			x.wantReserved(t, "status = 'released'", "status = 'captured'", "amount = 0", "amount = amount - 0.01", "status = 'released', amount = 0")
			if _, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, a.Amount)); err != nil {
				t.Fatal(err)
			}
			if _, err := x.s.KeepOrderPayout(ctx, x.order.ID, storetest.By); err != nil {
				t.Error(err)
			}
			wantBalance(t, x.s, exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES), "298706.45", "298706.45")
			wantBooks(t, x.s)
		})
	}
}

// wantReserved expects that nobody frees the shillings of a sale by any of these changes, not even the processes that write
// holds.
func (x *sale) wantReserved(t *testing.T, changes ...string) {
	t.Helper()
	for _, role := range []store.Role{store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner} {
		conn := storetest.As(t, x.s, role)
		for _, change := range changes {
			if _, err := conn.ExecContext(t.Context(), "UPDATE holds SET "+change+" WHERE id = $1", x.order.HoldID); sqlState(err) != "KV002" {
				t.Errorf("%s frees the shillings by %s: %v", role, change, err)
			}
		}
	}
}

// The shillings of a sale are freed only when it has ended: a payout of freed ones would be at nobody's cost.
func TestShillingsStayWhileTheSaleGoesOn(t *testing.T) {
	t.Parallel()
	changes := []string{"status = 'released'", "status = 'captured'", "amount = 0"}
	x := sold(t)
	x.wantReserved(t, changes...)
	x = owing(t)
	x.wantReserved(t, changes...)
	x.begun(t, 1)
	x.wantReserved(t, changes...)
}

// A sale that fails before a payout was begun frees its shillings at once.
func TestShillingsOfAnUnbegunPayoutAreFree(t *testing.T) {
	t.Parallel()
	x := owing(t)
	x.backing(t)
	wantOffer(t, x.s, x.m.Offer.ID, "258710.00", "2000.000000")
	wantBooks(t, x.s)
}

// A claim suffices to keep the crypto here, and to require a second officer from then on.
func TestClaimStopsTheRefund(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	x.refused(t, x.begun(t, 1))
	r := x.backing(t)
	if x.payout(t).Doubted {
		t.Fatal("the payout is doubted from the beginning")
	}
	for range 2 {
		if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
			t.Fatal(err)
		}
	}
	r, err := x.s.Refund(ctx, r.ID)
	if err != nil || r.Status != exchange.RefundNeedsReview || !x.payout(t).Doubted {
		t.Errorf("the refund is %s, %v", r.Status, err)
	}
	wantBooks(t, x.s)
}

// While a refused payout is claimed to have been made, no other one begins: the payee would be paid twice.
func TestClaimStopsOtherPayouts(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	x.refused(t, x.begun(t, 1))
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	_, err := x.begin(ctx, x.s, 2)
	wantFault(t, err, exchange.CodeStateConflict)
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), false); err != nil {
		t.Fatal(err)
	}
	x.begun(t, 2)
	if !x.payout(t).Doubted {
		t.Error("what was claimed once is doubted no more")
	}
	wantBooks(t, x.s)
}

// Two workers that do the same concurrently do it once.
func TestRacePayoutsOfOneOrder(t *testing.T) {
	t.Parallel()
	x := owing(t)
	codes := atOnce(16, func(i int) error {
		_, err := x.begin(t.Context(), x.s, 1+i%2)
		return err
	})
	if codes[""] != 8 || codes[exchange.CodeStateConflict] != 8 {
		t.Errorf("attempts begun: %v", codes)
	}
	x.wantFloat(t, "1000000", "1316", "0", "0")
	all, err := x.s.Payouts(t.Context(), x.order.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d attempts, %v", len(all), err)
	}
	obs := storetest.Paid(t, all[0].Amount)
	codes = atOnce(16, func(int) error {
		_, err := completeOrder(t, x.s, x.order.ID, all[0].ID, obs)
		return err
	})
	if codes[""] != 16 {
		t.Errorf("completed: %v", codes)
	}
	x.wantFloat(t, "998684", "0", "23", "0")
}

// A proof and the refund race: the customer never gets both without an exception for an officer.
func TestRacePayoutAgainstRefund(t *testing.T) {
	t.Parallel()
	for range 6 {
		x := owing(t)
		a := x.begun(t, 1)
		x.refused(t, a)
		obs := storetest.Paid(t, a.Amount)
		var r exchange.Refund
		codes := atOnce(2, func(i int) (err error) {
			if i == 0 {
				_, err := completeOrder(t, x.s, x.order.ID, a.ID, obs)
				return err
			}
			_, r, err = x.s.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: x.order.ID, Reason: "refused"}, storetest.By)
			return err
		})
		_, double, err := x.s.PaidTwiceBy(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		paid := x.now(t).Status == exchange.OrderCompleted && !double && r.ID == uuid.Nil
		late := x.now(t).Status == exchange.OrderFailed && double && r.ID != uuid.Nil
		if codes[""] != 2 || (!paid && !late) {
			t.Errorf("the order is %s, owed back %t by refund %s, outcomes %v", x.now(t).Status, double, r.ID, codes)
		}
		wantBooks(t, x.s)
	}
}

// The database refuses invalid rows.
func TestForbiddenRowsOfPayouts(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	other := owing(t)
	id := x.order.ID.String()
	attempt := func(order, phone, amount, hold string) string {
		return `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
			SELECT gen_random_uuid(), 'payout', 'order', '` + order + `', 'daraja', 'created', 'KES', ` + amount + `, ` + phone + `,
				(SELECT payment_reference FROM orders o WHERE o.id = order_payouts.id), ` + hold + `, now() FROM order_payouts WHERE id = '` + id + `'`
	}
	try := func(s *store.Store, want, query string) {
		t.Helper()
		db := storetest.Owner(t, s)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(ctx, query)
		if err == nil {
			_, err = tx.ExecContext(ctx, `SET CONSTRAINTS ALL IMMEDIATE`)
		}
		if got := sqlState(err); got != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	try(x.s, "KV001", attempt(id, "phone", "amount", "gen_random_uuid()")) // it is not under way
	try(x.s, "KV001", `UPDATE order_payouts SET status = 'completed', receipt = 'R', completed_at = now()`)
	try(x.s, "KV001", `UPDATE order_payouts SET status = 'cancelled'`) // its order goes on
	try(x.s, "KV001", `UPDATE orders SET status = 'failed' WHERE id = '`+id+`'`)
	try(x.s, "KV002", `UPDATE order_payouts SET amount = 1294`)
	try(x.s, "KV002", `UPDATE order_payouts SET phone = '254700000001'`)
	try(x.s, "KV002", `DELETE FROM order_payouts`)
	a := x.begun(t, 1)
	try(x.s, "KV001", attempt(id, "'254700000001'", "amount", "gen_random_uuid()"))
	try(x.s, "KV001", attempt(id, "phone", "1294", "gen_random_uuid()"))
	try(x.s, "KV006", attempt(id, "phone", "amount", "NULL"))
	const released = `ALTER TABLE payment_attempts DISABLE TRIGGER payment_attempts_value_released;`
	try(x.s, "23505", released+attempt(id, "phone", "amount", "(SELECT hold_id FROM payment_attempts WHERE id = '"+a.ID.String()+"')")) // one is open
	try(x.s, "KV001", `UPDATE order_payouts SET status = 'refused', refused_code = '1'`)
	try(x.s, "KV002", `UPDATE order_payouts SET status = 'completed', receipt = 'R', completed_at = now()`)
	try(x.s, "KV002", `UPDATE order_payouts SET status = 'completed', receipt = 'R', completed_at = now(), paid_by = '`+a.ID.String()+`'`)
	try(x.s, "KV001", `UPDATE orders SET status = 'completed', completed_at = now() WHERE id = '`+id+`'`)
	if _, err := x.s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
		t.Fatal(err)
	}
	try(x.s, "KV002", released+attempt(id, "phone", "amount", "(SELECT id FROM holds WHERE key LIKE 'offer:%' LIMIT 1)")) // not the float
	try(x.s, "KV002", released+attempt(id, "phone", "amount", "NULL"))
	x.refused(t, a)
	try(x.s, "KV001", attempt(id, "phone", "amount", "gen_random_uuid()"))
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	try(x.s, "KV002", `UPDATE order_payouts SET doubted = false`)
	paid := other.begun(t, 1)
	if _, err := completeOrder(t, other.s, other.order.ID, paid.ID, storetest.Paid(t, paid.Amount)); err != nil {
		t.Fatal(err)
	}
	try(other.s, "KV002", `UPDATE order_payouts SET receipt = 'ANOTHER'`)
	try(other.s, "KV001", `UPDATE order_payouts SET status = 'refused'`)
}

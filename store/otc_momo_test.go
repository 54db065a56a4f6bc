package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo"
	"kivuko/store"
	"kivuko/store/storetest"
)

// byMomo submits a deposit of shillings by mobile money.
func (d otcDesk) byMomo(t *testing.T, method exchange.OTCMethod, amount string) exchange.OTCDeposit {
	t.Helper()
	r := d.shillings(t, amount)
	r.Method = method
	o, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, r, d.by)
	if err != nil {
		t.Fatalf("open a deposit: %v", err)
	}
	return o
}

// awaited begins what collects a deposit's money: a prompt, or the wait for a payment by hand.
func (d otcDesk) awaited(t *testing.T, o exchange.OTCDeposit) exchange.PaymentAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a, created, err := d.momo.BeginCollection(t.Context(), exchange.DepositObject(o.ID), exchange.PaymentAttempt{ID: id, Provider: "daraja", CallbackToken: "token-" + id.String(), WorkflowID: "otc-deposit:x"})
	if err != nil || !created {
		t.Fatalf("begin the collection: %t, %v", created, err)
	}
	return a
}

// arrives has the operator's notice and its statement report a payment, and books it for the attempt that waits for it.
func (d otcDesk) arrives(t *testing.T, a exchange.PaymentAttempt, amount string) exchange.PaymentOutcome {
	t.Helper()
	obs := d.reported(t, a.Reference, amount)
	out, err := d.momo.AcceptPayment(t.Context(), a.ID, obs, time.Time{})
	if err != nil {
		t.Fatalf("accept %s: %v", amount, err)
	}
	return out
}

// reported is a payment to our number by the merchant that the operator's notice and its statement report.
func (d otcDesk) reported(t *testing.T, reference, amount string) exchange.Observation {
	t.Helper()
	return d.reportedOf(t, d.merchant.PhoneNumber, reference, amount)
}

func (d otcDesk) reportedOf(t *testing.T, payer exchange.Phone, reference, amount string) exchange.Observation {
	t.Helper()
	obs := storetest.Paid(t, kes(amount))
	obs.Phone, obs.Reference, obs.At, obs.Source = payer, reference, time.UnixMilli(d.clock.Load()), exchange.SourceStatement
	for _, source := range []exchange.EvidenceSource{exchange.SourceConfirmation, exchange.SourceStatement} {
		o := obs
		o.Source = source
		if _, err := d.momo.TakeReceipt(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return obs
}

func (d otcDesk) credit(t *testing.T, id uuid.UUID) exchange.OTCDeposit {
	t.Helper()
	o, err := d.s.CreditOTC(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Shillings by mobile money within the automatic limit are credited without an officer, whatever amount comes, and audited by one.
func TestMobileMoneyIsCreditedWithinTheLimit(t *testing.T) {
	t.Parallel()
	for _, method := range []exchange.OTCMethod{exchange.OTCByMomo, exchange.OTCByC2B} {
		for name, came := range map[string]string{"exact": "1500", "more": "1720", "less": "900"} {
			t.Run(string(method)+" "+name, func(t *testing.T) {
				t.Parallel()
				d := newOTC(t)
				o := d.byMomo(t, method, "1500")
				a := d.awaited(t, o)
				if byHand := method == exchange.OTCByC2B; a.Reference != o.Reference || (a.Status == exchange.AttemptAccepted) != byHand || (a.CallbackToken == "") != byHand {
					t.Fatalf("begun as %+v", a)
				}
				if out := d.arrives(t, a, came); out.Kind != exchange.PaidExact || out.Exception.ID != uuid.Nil || out.Object.Waits {
					t.Fatalf("%+v", out)
				}
				o = d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)
				if o.ConfirmedBy != uuid.Nil || !o.Received.Equal(kes(came)) || !o.ValueDate.Equal(d.today()) || slices.Contains(o.Flags, exchange.FlagAmount) != (came != "1500") {
					t.Fatalf("received %+v", o)
				}
				d.credit(t, o.ID)
				d.credit(t, o.ID)
				d.want(t, o.ID, exchange.OTCCredited, exchange.WaitAudit)
				wantBalance(t, d.s, balanceOf(d), came, "0")
				wantBalance(t, d.s, flying(), "0", "0")
				wantBalance(t, d.s, exchange.House(exchange.AccMomoCollection, money.KES), came, "0")
				d.do(t, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.boss)
				wantBooks(t, d.s)
			})
		}
	}
}

// Above the limit an officer confirms what the operator proves, another settles it, and the flow credits nothing by itself.
func TestMobileMoneyAboveTheLimitTakesOfficers(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.byMomo(t, exchange.OTCByC2B, "150000")
	d.arrives(t, d.awaited(t, o), "150000")
	o = d.want(t, o.ID, exchange.OTCPending, exchange.WaitReview)
	d.credit(t, o.ID)
	if queue, _, err := d.s.OTCQueue(t.Context(), store.OTCQueueFilter{}, store.Page{Number: 1, Size: 10}); err != nil || len(queue) != 1 {
		t.Fatalf("%d in the queue, %v", len(queue), err)
	}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	said := exchange.OTCStep{Received: o.Received, ValueDate: o.ValueDate}
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCConfirm, o.ID, exchange.OTCStep{Received: kes("150001"), ValueDate: o.ValueDate}, d.one)
	d.do(t, exchange.IntendOTCConfirm, o.ID, said, d.one)
	d.credit(t, o.ID)
	d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)
	d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	d.do(t, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.boss)
	wantBalance(t, d.s, balanceOf(d), "150000", "0")
	wantBooks(t, d.s)
}

// A deposit does not end while its money may be on its way: a prompt has not ended, or a source reports a payment. What comes after
// its end is late, for an officer.
func TestMobileMoneyEndsByProof(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), newOTC(t)
	lapse := func(o exchange.OTCDeposit, want exchange.OTCStatus) {
		t.Helper()
		if got, err := d.s.LapseOTC(ctx, o.ID); err != nil || got.Status != want {
			t.Fatalf("after its time the deposit is %s, %v, want %s", got.Status, err, want)
		}
	}
	prompted, awaited := d.byMomo(t, exchange.OTCByMomo, "500"), d.byMomo(t, exchange.OTCByC2B, "700")
	a, b := d.awaited(t, prompted), d.awaited(t, awaited)
	d.wait(exchange.OTCPromptLife)
	lapse(prompted, exchange.OTCPending)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCCancel, prompted.ID, exchange.OTCStep{Text: "given up"}, d.by)
	if _, err := d.momo.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "1032", Soft: true}); err != nil {
		t.Fatal(err)
	}
	lapse(prompted, exchange.OTCExpired)

	d.wait(exchange.OTCMoneyLife - exchange.OTCPromptLife - time.Hour)
	notice := d.reported(t, awaited.Reference, "700")
	d.wait(time.Hour)
	lapse(awaited, exchange.OTCPending)
	d.wait(50 * time.Hour)
	lapse(awaited, exchange.OTCExpired)
	if err := d.momo.StopAwaiting(ctx, exchange.DepositObject(awaited.ID)); err != nil {
		t.Fatal(err)
	}
	for _, late := range []struct {
		of  exchange.OTCDeposit
		a   exchange.PaymentAttempt
		obs exchange.Observation
	}{{prompted, a, d.reported(t, prompted.Reference, "500")}, {awaited, b, notice}} {
		out, err := d.momo.AcceptPayment(ctx, late.a.ID, late.obs, time.Time{})
		if err != nil || out.Kind != exchange.PaidLate || out.Exception.Kind != exchange.ExcLate || out.Exception.DepositID != late.of.ID || out.Exception.Rail() != exchange.RailMomo {
			t.Errorf("late money is %+v, %v", out, err)
		}
		d.want(t, late.of.ID, exchange.OTCExpired, exchange.DetailNoMoney)
	}
	wantBalance(t, d.s, exchange.House(exchange.AccSuspense, money.KES), "1200", "0")
	wantBooks(t, d.s)
}

// A second payment under a reference is late money of its deposit, and that of a rejected deposit is an exception of the rail by which it
// came.
func TestMobileMoneyTwiceOrRejected(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), newOTC(t)
	o := d.byMomo(t, exchange.OTCByC2B, "150000")
	d.arrives(t, d.awaited(t, o), "150000")
	again := d.reported(t, o.Reference, "150000")
	ids, err := d.momo.StrayPayments(ctx, time.Time{}, 10)
	if err != nil || len(ids) != 1 {
		t.Fatalf("%d stray payments, %v", len(ids), err)
	}
	p, err := d.momo.OpenUnmatched(ctx, ids[0])
	if err != nil || p.Receipt != again.Receipt {
		t.Fatalf("%+v, %v", p, err)
	}
	d.do(t, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "not ours"}, d.one)
	all, _, err := d.s.ListExceptions(ctx, store.ExceptionFilter{DepositID: o.ID}, store.Page{Number: 1, Size: 10})
	if err != nil || len(all) != 2 {
		t.Fatalf("%d exceptions, %v", len(all), err)
	}
	for _, x := range all {
		if x.DepositID != o.ID || x.Rail() != exchange.RailMomo || !x.Amount.Equal(kes("150000")) {
			t.Errorf("%+v", x)
		}
	}
	wantBooks(t, d.s)
}

// The database refuses prompts and bookings that no deposit wants.
func TestMobileMoneyOfDepositsIsGuarded(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), newOTC(t)
	bank, hand := d.open(t, "500"), d.byMomo(t, exchange.OTCByC2B, "150000")
	a := d.awaited(t, hand)
	d.arrives(t, a, "150000")
	late := d.byMomo(t, exchange.OTCByC2B, "700")
	d.reported(t, late.Reference, "700")
	for name, c := range map[string]struct {
		as    store.Role
		query string
		args  []any
	}{
		"a prompt for a bank deposit": {store.RoleMomo, `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
			VALUES (gen_random_uuid(), 'collection', 'otc_deposit', $1, 'x', 'created', 'KES', 500, '254712345678', $2, now())`, []any{bank.ID, bank.Reference}},
		"a payout": {store.RoleMomo, `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
			VALUES (gen_random_uuid(), 'payout', 'otc_deposit', $1, 'x', 'created', 'KES', 700, '254712345678', $2, now())`, []any{late.ID, late.Reference}},
		"money that was not paid to our number": {store.RoleFlows, `UPDATE otc_deposits SET received_amount = 700, value_date = current_date, received_at = now(), momo_receipt = 'NOTHING1', version = version + 1
			WHERE id = $1`, []any{late.ID}},
		"another's payment": {store.RoleFlows, `UPDATE otc_deposits d SET received_amount = h.received_amount, value_date = h.value_date, received_at = now(), momo_receipt = h.momo_receipt, version = d.version + 1
			FROM otc_deposits h WHERE d.id = $1 AND h.id = $2`, []any{late.ID, hand.ID}},
		"a confirmation above the limit": {store.RoleFlows, `UPDATE otc_deposits SET status = 'confirmed', confirmed_at = now(), version = version + 1 WHERE id = $1`, []any{hand.ID}},
		"an end while money may come":    {store.RoleFlows, `UPDATE otc_deposits SET status = 'expired', updated_at = now(), version = version + 1 WHERE id = $1`, []any{late.ID}},
	} {
		if _, err := storetest.As(t, d.s, c.as).ExecContext(ctx, c.query, c.args...); err == nil {
			t.Errorf("the database took %s", name)
		}
	}
	d.want(t, late.ID, exchange.OTCPending, exchange.WaitMoney)
}

// stray is a payment to our number under a reference that nothing has, which the operator's statement lists.
func (d otcDesk) stray(t *testing.T, reference, amount string) exchange.C2BPayment {
	t.Helper()
	return onlyC2B(t, d.s, d.reported(t, reference, amount).Receipt)
}

// aside sets a stray payment aside.
func (d otcDesk) aside(t *testing.T, p exchange.C2BPayment) exchange.C2BPayment {
	t.Helper()
	p, err := d.momo.OpenUnmatched(t.Context(), p.ID)
	if err != nil || p.ExceptionID == uuid.Nil {
		t.Fatalf("set aside: %+v, %v", p, err)
	}
	return p
}

// takes has the mobile money worker book what officers named.
func (d otcDesk) takes(t *testing.T, id uuid.UUID) exchange.OTCDeposit {
	t.Helper()
	o, err := d.momo.TakeNamed(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func naming(p exchange.C2BPayment) exchange.OTCStep { return exchange.OTCStep{PaymentID: p.ID} }

// A payment with a mistake in its reference is named by an officer, whether it was set aside before or not. It is booked once, and who
// named it does not close the deposit.
func TestAnOfficerNamesThePayment(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]bool{"as it came": false, "set aside": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newOTC(t)
			o := d.byMomo(t, exchange.OTCByC2B, "1500")
			d.awaited(t, o)
			p := d.stray(t, o.Reference[:11]+"?", "1480")
			if set {
				p = d.aside(t, p)
			}
			d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCMatch, o.ID, naming(p), d.treasury)
			d.do(t, exchange.IntendOTCMatch, o.ID, naming(p), d.boss)
			d.takes(t, o.ID)
			d.takes(t, o.ID)
			o = d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)
			if !o.Received.Equal(kes("1480")) || o.MomoReceipt != p.Receipt || o.NamedBy != d.boss.UserID {
				t.Fatalf("named %+v", o)
			}
			if p = onlyC2B(t, d.s, p.Receipt); p.Status != exchange.C2BMatched || p.Object != exchange.DepositObject(o.ID) || p.NamedFor != uuid.Nil {
				t.Errorf("the payment is %+v", p)
			}
			if set {
				all, _, err := d.s.ListExceptions(t.Context(), store.ExceptionFilter{}, store.Page{Number: 1, Size: 10})
				if err != nil || len(all) != 1 || all[0].Status != exchange.ExcMatched {
					t.Errorf("%+v, %v", all, err)
				}
			}
			d.credit(t, o.ID)
			wantBalance(t, d.s, balanceOf(d), "1480", "0")
			wantBalance(t, d.s, exchange.House(exchange.AccSuspense, money.KES), "0", "0")
			wantBalance(t, d.s, flying(), "0", "0")
			d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.boss)
			d.do(t, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.treasury)
			wantBooks(t, d.s)
		})
	}
}

// Above the limit two officers name the same payment, and a third confirms the deposit.
func TestTwoOfficersNameAPaymentAboveTheLimit(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.byMomo(t, exchange.OTCByC2B, "150000")
	d.awaited(t, o)
	p, other := d.stray(t, "HOUSE", "150000"), d.stray(t, "HUOSE", "150000")
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(other), d.one)
	d.takes(t, o.ID)
	o = d.want(t, o.ID, exchange.OTCPending, exchange.WaitSecond)
	if got := onlyC2B(t, d.s, other.Receipt); got.Status != exchange.C2BUnmatched || got.NamedFor != o.ID {
		t.Errorf("the payment is %+v", got)
	}
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(other), d.one) // the same officer is no second one
	d.takes(t, o.ID)
	d.want(t, o.ID, exchange.OTCPending, exchange.WaitSecond)
	rival := d.byMomo(t, exchange.OTCByC2B, "150000")
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCMatch, rival.ID, naming(other), d.two)
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(p), d.two) // says otherwise, which is a first word
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(p), d.one)
	d.takes(t, o.ID)
	o = d.want(t, o.ID, exchange.OTCPending, exchange.WaitReview)
	if o.NamedBy != d.two.UserID || o.NamedSecond != d.one.UserID || o.MomoReceipt != p.Receipt {
		t.Fatalf("named %+v", o)
	}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCConfirm, o.ID, exchange.OTCStep{Received: o.Received, ValueDate: o.ValueDate}, d.one)
	d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	wantBalance(t, d.s, balanceOf(d), "150000", "0")
	wantBooks(t, d.s)
}

// A deposit whose payment one officer named is in the queue of those who may name it a second time, also while it is assigned, until it has
// its money, ends, or its payment turns out to be another's.
func TestANamedPaymentWaitsInTheQueue(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	queue := func(f store.OTCQueueFilter, want ...exchange.OTCDeposit) {
		t.Helper()
		all, total, err := d.s.OTCQueue(t.Context(), f, store.Page{Number: 1, Size: 10})
		if err != nil || total != len(want) || len(all) != len(want) {
			t.Fatalf("%d of %d in the queue, %v; want %d", len(all), total, err, len(want))
		}
		for i, o := range all {
			if o.ID != want[i].ID || o.Detail != exchange.WaitSecond || o.NamedBy != d.one.UserID {
				t.Errorf("the queue shows %+v", o)
			}
		}
	}
	o, next := d.byMomo(t, exchange.OTCByC2B, "150000"), d.byMomo(t, exchange.OTCByC2B, "170000")
	d.awaited(t, o)
	d.awaited(t, next)
	queue(store.OTCQueueFilter{})
	p, q := d.stray(t, "HOUSE", "150000"), d.stray(t, "HUOSE", "170000")
	d.do(t, exchange.IntendOTCMatch, next.ID, naming(q), d.one)
	queue(store.OTCQueueFilter{Method: exchange.OTCByC2B}, next)
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(p), d.one)
	queue(store.OTCQueueFilter{}, o, next)
	d.do(t, exchange.IntendOTCAssign, next.ID, exchange.OTCStep{OfficerID: d.two.UserID}, d.boss)
	d.takes(t, next.ID)
	queue(store.OTCQueueFilter{AssignedTo: d.two.UserID}, next)
	d.do(t, exchange.IntendOTCReject, next.ID, exchange.OTCStep{Text: "entered twice"}, d.one)
	queue(store.OTCQueueFilter{}, o)
	storetest.Exec(t, d.s, `UPDATE c2b_payments SET disputed = true WHERE id = $1`, p.ID)
	d.takes(t, o.ID)
	queue(store.OTCQueueFilter{})
	d.want(t, o.ID, exchange.OTCPending, exchange.WaitMoney)
}

// A deposit that ended before its second officer said so leaves the payment to another one.
func TestAnEndedDepositLetsItsNamedPaymentGo(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o, next := d.byMomo(t, exchange.OTCByC2B, "150000"), d.byMomo(t, exchange.OTCByC2B, "150000")
	d.awaited(t, o)
	d.awaited(t, next)
	p := d.stray(t, "HOUSE", "150000")
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(p), d.one)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCMatch, next.ID, naming(p), d.two)
	d.do(t, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "entered twice"}, d.one)
	if got := onlyC2B(t, d.s, p.Receipt); got.NamedFor != uuid.Nil {
		t.Errorf("the payment is %+v", got)
	}
	d.do(t, exchange.IntendOTCMatch, next.ID, naming(p), d.one)
	d.do(t, exchange.IntendOTCMatch, next.ID, naming(p), d.two)
	d.takes(t, next.ID)
	if next = d.want(t, next.ID, exchange.OTCPending, exchange.WaitReview); next.MomoReceipt != p.Receipt {
		t.Errorf("the deposit is %+v", next)
	}
	wantBooks(t, d.s)
}

// Two officers who name one payment for two deposits at the same moment don't both succeed.
func TestAPaymentIsNamedForOneDeposit(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), newOTC(t)
	deposits := []exchange.OTCDeposit{d.byMomo(t, exchange.OTCByC2B, "150000"), d.byMomo(t, exchange.OTCByC2B, "150000")}
	p := d.stray(t, "HOUSE", "150000")
	stores := []*store.Store{d.s, storetest.Open(t, d.dsn, store.Options{})}
	// Both begin while the payment is locked, so that neither sees what the other one writes.
	tx, err := storetest.Owner(t, d.s).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SELECT FROM c2b_payments WHERE id = $1 FOR UPDATE`, p.ID); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer func() { _ = tx.Commit() }()
		for decides[int](t, d.s, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) < 2 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if codes := atOnce(2, func(i int) error {
		_, err := storetest.StepOTC(ctx, stores[i], exchange.IntendOTCMatch, deposits[i].ID, naming(p), []exchange.Principal{d.one, d.two}[i])
		return err
	}); codes[""] != 1 || codes[exchange.CodeConflict] != 1 {
		t.Errorf("outcomes %v", codes)
	}
	if n := decides[int](t, d.s, `SELECT count(*) FROM otc_deposits WHERE named_payment_id IS NOT NULL`); n != 1 {
		t.Errorf("the payment is named for %d deposits", n)
	}
}

// What is matched, decided otherwise, disputed, not listed, awaited elsewhere, or of a deposit that takes no money is refused.
func TestPaymentsThatAreNoDepositsMoney(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), newOTC(t)
	o := d.byMomo(t, exchange.OTCByC2B, "700")
	a := d.awaited(t, o)
	refused := func(p exchange.C2BPayment) {
		t.Helper()
		d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCMatch, o.ID, naming(p), d.one)
	}
	done := d.byMomo(t, exchange.OTCByC2B, "900")
	d.arrives(t, d.awaited(t, done), "900")
	matched, _, err := d.s.ListC2B(ctx, store.C2BFilter{Object: exchange.DepositObject(done.ID)}, store.Page{Number: 1, Size: 10})
	if err != nil || len(matched) != 1 {
		t.Fatalf("%d payments, %v", len(matched), err)
	}
	refused(matched[0])
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCMatch, done.ID, naming(d.stray(t, "ELSE", "900")), d.one)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCMatch, d.open(t, "700").ID, naming(d.stray(t, "BANK", "700")), d.one)

	decided := d.aside(t, d.stray(t, "DECIDED", "700"))
	if _, _, err := d.s.DecideException(ctx, exchange.ExceptionDecision{
		ID: storetest.NewID(t), ExceptionID: decided.ExceptionID, Verdict: exchange.ExcCredited, MerchantID: d.merchant.ID, Reason: "its own",
	}, d.treasury); err != nil {
		t.Fatal(err)
	}
	refused(decided)

	noticed := storetest.Paid(t, kes("700"))
	noticed.Reference, noticed.At, noticed.Source = "NOTICED", time.UnixMilli(d.clock.Load()), exchange.SourceConfirmation
	taken, err := d.momo.TakeReceipt(ctx, noticed)
	if err != nil {
		t.Fatal(err)
	}
	refused(taken.Payment)
	other := d.stray(t, "DISPUTE", "700")
	storetest.Exec(t, d.s, `UPDATE c2b_payments SET disputed = true WHERE id = $1`, other.ID)
	refused(other)
	waits := d.byMomo(t, exchange.OTCByC2B, "300")
	d.awaited(t, waits)
	refused(d.stray(t, waits.Reference, "300"))

	// Officers decide otherwise between the word and the booking.
	late := d.aside(t, d.stray(t, "LATE", "700"))
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(late), d.one)
	if _, _, err := d.s.DecideException(ctx, exchange.ExceptionDecision{
		ID: storetest.NewID(t), ExceptionID: late.ExceptionID, Verdict: exchange.ExcCredited, MerchantID: d.merchant.ID, Reason: "its own",
	}, d.treasury); err != nil {
		t.Fatal(err)
	}
	if o = d.takes(t, o.ID); o.HasMoney() || o.NamedPaymentID != uuid.Nil {
		t.Errorf("taken %+v", o)
	}
	for name, query := range map[string]string{
		"a payment that nobody named":       `UPDATE c2b_payments SET status = 'matched', object_type = 'otc_deposit', object_id = $1, attempt_id = $2, booked_at = now() WHERE id = $3`,
		"a payment that is another's money": `UPDATE payment_exceptions SET status = 'matched', version = version + 1 WHERE id = (SELECT exception_id FROM c2b_payments WHERE id = $3) AND $1::uuid <> $2::uuid`,
	} {
		p := d.aside(t, d.stray(t, "GUARD", "700"))
		if _, err := storetest.As(t, d.s, store.RoleMomo).ExecContext(ctx, query, o.ID, a.ID, p.ID); err == nil {
			t.Errorf("the database took %s", name)
		}
	}
	if _, err := storetest.As(t, d.s, store.RoleFlows).ExecContext(ctx, `UPDATE otc_deposits SET named_payment_id = $2, named_by = $3, version = version + 1 WHERE id = $1`,
		o.ID, d.aside(t, d.stray(t, "GUARD2", "700")).ID, d.two.UserID); err == nil {
		t.Error("the database took a name that nobody said")
	}
	d.do(t, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "over"}, d.one)
	refused(d.stray(t, "AFTER", "700"))
	wantBooks(t, d.s)
}

// The login of the API takes notices in, and can't say of one that the operator's statement lists it.
func TestTheAPIReadsNoStatement(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	noticed := storetest.Paid(t, kes("700"))
	noticed.Reference, noticed.Source = "NOTICED", exchange.SourceConfirmation
	taken, err := s.TakeReceipt(t.Context(), noticed)
	if err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"a payment becomes listed": `UPDATE c2b_payments SET listed_at = now() WHERE id = $1`,
		"another one is listed": `INSERT INTO c2b_payments SELECT (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(), 'receipt', 'INVENTED', 'listed_at', now()))).*
			FROM c2b_payments p WHERE id = $1`,
		"a row of a statement": `INSERT INTO momo_receipts SELECT (jsonb_populate_record(r, '{"channel": "statement"}')).* FROM momo_receipts r JOIN c2b_payments p ON p.receipt = r.receipt WHERE p.id = $1`,
	} {
		if _, err := storetest.As(t, s, store.RoleAPI).ExecContext(t.Context(), query, taken.Payment.ID); sqlState(err) != "42501" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// older moves what needed no officer into the past. The limit is counted by the database's clock, which no test moves.
func (d otcDesk) older(t *testing.T, by string) {
	t.Helper()
	storetest.Exec(t, d.s, `BEGIN; ALTER TABLE otc_deposits DISABLE TRIGGER USER; UPDATE otc_deposits SET automatic_at = automatic_at - interval '`+by+`'; ALTER TABLE otc_deposits ENABLE TRIGGER USER; COMMIT`)
}

// What needs no officer is limited for 24 hours, however a merchant splits it. Beyond that deposits go to the queue, and two officers name a
// payment.
func TestTheAutomaticLimitIsOfADay(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	comes := func(method exchange.OTCMethod, amount string, want exchange.OTCStatus) exchange.OTCDeposit {
		t.Helper()
		o := d.byMomo(t, method, amount)
		d.arrives(t, d.awaited(t, o), amount)
		if o = d.read(t, o.ID); o.Status != want || o.AutomaticAt.IsZero() != (want == exchange.OTCPending) {
			t.Fatalf("%s KES are %s (%s), without an officer at %v", amount, o.Status, o.Detail, o.AutomaticAt)
		}
		return o
	}
	comes(exchange.OTCByMomo, "60000", exchange.OTCConfirmed)
	comes(exchange.OTCByC2B, "40001", exchange.OTCPending)
	d.credit(t, comes(exchange.OTCByC2B, "39000", exchange.OTCConfirmed).ID)
	d.wait(25 * time.Hour) // of the process, which moves no limit
	over := comes(exchange.OTCByC2B, "1001", exchange.OTCPending)
	named := d.byMomo(t, exchange.OTCByC2B, "1001")
	d.awaited(t, named)
	p := d.stray(t, "HOUSE", "1001")
	d.do(t, exchange.IntendOTCMatch, named.ID, naming(p), d.one)
	d.takes(t, named.ID)
	d.want(t, named.ID, exchange.OTCPending, exchange.WaitSecond)
	for _, role := range []store.Role{store.RoleMomo, store.RoleFlows} {
		for what, set := range map[string]string{"confirmed": `status = 'confirmed', confirmed_at = now()`, "let through": `automatic_at = now() - interval '2 days'`} {
			_, err := storetest.As(t, d.s, role).ExecContext(t.Context(), `UPDATE otc_deposits SET `+set+`, version = version + 1 WHERE id = $1`, over.ID)
			if sqlState(err) != "KV001" {
				t.Errorf("%s by %s: %v", what, role, err)
			}
		}
	}
	if _, err := storetest.As(t, d.s, store.RoleMomo).ExecContext(t.Context(), `UPDATE c2b_payments SET status = 'matched', object_type = 'otc_deposit', object_id = $1, booked_at = now(),
		attempt_id = (SELECT id FROM payment_attempts WHERE deposit_id = $1) WHERE id = $2`, named.ID, p.ID); sqlState(err) != "KV006" {
		t.Errorf("named by one officer: %v", err)
	}
	comes(exchange.OTCByC2B, "1000", exchange.OTCConfirmed)
	other := d
	other.merchant = storetest.User(t, d.s, exchange.RoleVendor)
	other.by = storetest.PrincipalOf(other.merchant)
	o := other.byMomo(t, exchange.OTCByC2B, "100000")
	other.arrives(t, other.awaited(t, o), "100000")
	other.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)

	d.older(t, "25 hours")
	comes(exchange.OTCByC2B, "90000", exchange.OTCConfirmed)
	d.do(t, exchange.IntendOTCMatch, named.ID, naming(p), d.two) // there is room for it by now
	d.takes(t, named.ID)
	d.want(t, named.ID, exchange.OTCConfirmed, exchange.WaitSettle)
	wantBooks(t, d.s)
}

// Two officers raise the limit of a merchant, or the house's for all without an own one; one admin lowers it, which counts at once.
func TestTheAutomaticLimitOfAMerchant(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	admin, kes := storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleAdmin)), func(v string) money.Amount { return money.Must(money.KES, v) }
	comes := func(amount string, want exchange.OTCStatus) {
		t.Helper()
		o := d.byMomo(t, exchange.OTCByC2B, amount)
		d.arrives(t, d.awaited(t, o), amount)
		if o = d.read(t, o.ID); o.Status != want {
			t.Fatalf("%s KES are %s (%s)", amount, o.Status, o.Detail)
		}
	}
	set := func(merchant uuid.UUID, to string) error {
		t.Helper()
		waits, err := d.s.SetOTCLimit(t.Context(), merchant, kes(to), admin)
		if err == nil && waits.ID != uuid.Nil {
			err = storetest.Agreed(t, d.s)(waits, nil)
		}
		return err
	}
	for of, to := range map[uuid.UUID]string{d.merchant.ID: "200000", exchange.PlatformTreasury: "120000"} {
		if err := set(of, to); err != nil {
			t.Fatal(err)
		}
	}
	comes("150000", exchange.OTCConfirmed)
	comes("60000", exchange.OTCPending)
	if err := set(d.merchant.ID, "200000.00"); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("the same limit: %v", err)
	}
	if err := set(admin.UserID, "1"); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("of an admin: %v", err)
	}
	sub := storetest.Subvendor(t, d.s, d.merchant)
	if err := set(sub.ID, "1"); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("of a subvendor, which would count for nothing: %v", err)
	}
	waits, err := d.s.SetOTCLimit(t.Context(), d.merchant.ID, kes("300000"), admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := set(d.merchant.ID, "150000"); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Agreed(t, d.s)(waits, nil); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("agreed after it was lowered: %v", err)
	}
	comes("10000", exchange.OTCPending)
	all, total, err := d.s.OTCLimits(t.Context(), store.Page{Number: 1, Size: 9})
	if err != nil || total != 2 || all[0].MerchantID != exchange.PlatformTreasury || !all[0].Automatic.Equal(kes("120000")) || all[0].ChangeID == uuid.Nil ||
		all[1].MerchantID != d.merchant.ID || !all[1].Automatic.Equal(kes("150000")) || all[1].ChangeID != uuid.Nil || all[1].EnteredBy != admin.UserID {
		t.Errorf("listed %+v, %v", all, err)
	}
	entry := func(merchant uuid.UUID, n int, to string, by uuid.UUID) string {
		return fmt.Sprintf(`INSERT INTO otc_limits (merchant_id, entry, automatic, entered_by, entered_at) VALUES ('%s', %d, %s, '%s', now())`, merchant, n, to, by)
	}
	api := storetest.As(t, d.s, store.RoleAPI)
	for name, c := range map[string]struct{ query, want string }{
		"higher, by one":         {entry(d.merchant.ID, 3, "150001", admin.UserID), "KV006"},
		"the house's, by one":    {entry(exchange.PlatformTreasury, 3, "120001", admin.UserID), "KV006"},
		"of a new one, by one":   {entry(storetest.User(t, d.s, exchange.RoleVendor).ID, 1, "120001", admin.UserID), "KV006"},
		"not the next one":       {entry(d.merchant.ID, 4, "1", admin.UserID), "KV002"},
		"by a treasury officer":  {entry(d.merchant.ID, 3, "1", storetest.User(t, d.s, exchange.RoleTreasury).ID), "KV006"},
		"by the merchant itself": {entry(d.merchant.ID, 3, "1", d.merchant.ID), "KV006"},
		"of an officer":          {entry(admin.UserID, 1, "1", admin.UserID), "KV002"},
		"of a subvendor":         {entry(sub.ID, 1, "1", admin.UserID), "KV002"},
		"another one":            {`UPDATE otc_limits SET automatic = 1e9`, "42501"},
	} {
		if _, err := api.ExecContext(t.Context(), c.query); sqlState(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Payments that come at once don't take the same room.
func TestTheAutomaticLimitIsTakenOnce(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	attempts, paid := make([]exchange.PaymentAttempt, 8), make([]exchange.Observation, 8)
	for i := range attempts {
		attempts[i] = d.awaited(t, d.byMomo(t, exchange.OTCByC2B, "30000"))
		paid[i] = d.reported(t, attempts[i].Reference, "30000")
	}
	stores := []*store.Store{d.s, d.momo}
	if codes := atOnce(8, func(i int) error {
		_, err := stores[i%2].AcceptPayment(t.Context(), attempts[i].ID, paid[i], time.Time{})
		return err
	}); codes[""] != 8 {
		t.Errorf("outcomes %v", codes)
	}
	if n := decides[int](t, d.s, `SELECT count(*) FROM otc_deposits WHERE status = 'confirmed'`); n != 3 {
		t.Errorf("%d deposits of 30000 KES needed no officer", n)
	}
	wantBooks(t, d.s)
}

// A payment that an officer named, and that came from none of the merchant's phones, is flagged and confirmed by an officer of the queue.
func TestAStrangersPaymentNeedsAnOfficer(t *testing.T) {
	t.Parallel()
	for name, payer := range map[string]exchange.Phone{"of somebody": storetest.NewPhone(), "of nobody": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newOTC(t)
			o := d.byMomo(t, exchange.OTCByC2B, "1500")
			d.awaited(t, o)
			p := onlyC2B(t, d.s, d.reportedOf(t, payer, "HOUSE", "1500").Receipt)
			d.do(t, exchange.IntendOTCMatch, o.ID, naming(p), d.two)
			d.takes(t, o.ID)
			if o = d.want(t, o.ID, exchange.OTCPending, exchange.WaitReview); !slices.Contains(o.Flags, exchange.FlagSender) || o.MomoReceipt != p.Receipt {
				t.Errorf("the deposit is %+v", o)
			}
			// Before its money is booked the database refuses it too.
			storetest.Exec(t, d.s, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE otc_deposits SET received_at = NULL, received_amount = NULL, value_date = NULL, momo_receipt = '';`+
				`COMMIT`)
			const books = `UPDATE otc_deposits SET received_at = now(), received_amount = 1500, value_date = $2, momo_receipt = $3, automatic_at = $4, version = version + 1 WHERE id = $1`
			momo := storetest.As(t, d.s, store.RoleMomo)
			if _, err := momo.ExecContext(t.Context(), books, o.ID, o.ValueDate, p.Receipt, time.Now()); sqlState(err) != "KV001" {
				t.Errorf("without an officer: %v", err)
			}
			if _, err := momo.ExecContext(t.Context(), books, o.ID, o.ValueDate, p.Receipt, nil); err != nil {
				t.Fatal(err)
			}
			d.credit(t, o.ID)
			d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
			d.do(t, exchange.IntendOTCConfirm, o.ID, exchange.OTCStep{Received: o.Received, ValueDate: o.ValueDate}, d.one)
			d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
			wantBalance(t, d.s, balanceOf(d), "1500", "0")
			wantBooks(t, d.s)
		})
	}
}

// The value date is the day in Kenya on which the operator's statement says that the money was paid, whatever a notice said before and
// whenever it is booked.
func TestTheValueDateIsTheStatements(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 3, 4, 21, 0, 0, 0, time.UTC) // in Nairobi
	third, fourth, fifth := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		notice, statement time.Time // zero for none
		want              time.Time
	}{
		"paid before midnight":      {midnight.Add(-time.Minute), midnight.Add(-time.Minute), fourth},
		"paid after midnight":       {midnight.Add(time.Minute), midnight.Add(time.Minute), fifth},
		"the notice is too early":   {midnight.Add(-30 * time.Hour), midnight.Add(time.Minute), fifth},
		"the notice is too late":    {midnight.Add(time.Minute), midnight.Add(-time.Minute), fourth},
		"the notice has no time":    {time.Time{}, midnight.Add(-time.Minute), fourth},
		"no row of the statement":   {midnight.Add(-30 * time.Hour), time.Time{}, third},
		"the statement comes alone": {time.Time{}, midnight.Add(-30 * time.Hour), third},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newOTC(t)
			d.clock.Store(midnight.Add(10 * time.Minute).UnixMilli())
			o := d.byMomo(t, exchange.OTCByC2B, "1500")
			a := d.awaited(t, o)
			paid := storetest.Paid(t, kes("1500"))
			paid.Reference = o.Reference
			take := func(source exchange.EvidenceSource, at time.Time) {
				t.Helper()
				paid.Source, paid.At = source, at
				if _, err := d.momo.TakeReceipt(t.Context(), paid); err != nil {
					t.Fatal(err)
				}
			}
			if name != "the statement comes alone" {
				take(exchange.SourceConfirmation, c.notice)
			}
			if !c.statement.IsZero() {
				take(exchange.SourceStatement, c.statement)
			}
			if _, err := d.momo.AcceptPayment(t.Context(), a.ID, paid, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if o = d.read(t, o.ID); !o.HasMoney() || !o.ValueDate.Equal(c.want) {
				t.Errorf("the value date is %s, want %s", o.ValueDate, c.want)
			}
		})
	}
}

// The login of the API takes notices in, and writes no row of a source that we ask: beside a notice one would prove a payment.
func TestTheAPIReportsNoticesAlone(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), newOTC(t)
	o := d.byMomo(t, exchange.OTCByC2B, "1500")
	a := d.awaited(t, o)
	for _, channel := range []exchange.EvidenceSource{exchange.SourceConfirmation, exchange.SourceQuery, exchange.SourceCallback, exchange.SourceStatement} {
		_, err := storetest.As(t, d.s, store.RoleAPI).ExecContext(ctx, `INSERT INTO momo_receipts (receipt, channel, asset, amount, reference, party_hash, paid_at, received_at)
			VALUES ('FORGED0001', $1, 'KES', 1500, $2, '', now(), now())`, channel, o.Reference)
		if (err == nil) != (channel == exchange.SourceConfirmation) {
			t.Errorf("the API reports by the channel %s: %v", channel, err)
		}
	}
	rows, err := d.momo.ReceiptsFor(ctx, o.Reference)
	if err != nil {
		t.Fatal(err)
	}
	v := momo.Judge(momo.Evidence{Attempt: a, Receipts: rows, Now: time.UnixMilli(d.clock.Load())})
	if v.State != momo.Paid {
		return
	}
	t.Errorf("what the API wrote proves %+v", v.Receipts)
	if _, err := d.momo.AcceptPayment(ctx, a.ID, v.Receipts[0], time.Time{}); err != nil {
		t.Fatal(err)
	}
	d.credit(t, o.ID)
	wantBalance(t, d.s, balanceOf(d), "0", "0")
}

// A payment under somebody else's reference is theirs, also when nothing waits for it: no officer makes it another merchant's money.
func TestPaymentsOfOthersAreNotNamed(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.byMomo(t, exchange.OTCByC2B, "700")
	d.awaited(t, o)
	other := d
	other.merchant = storetest.User(t, d.s, exchange.RoleVendor)
	other.by = storetest.PrincipalOf(other.merchant)
	theirs := other.byMomo(t, exchange.OTCByC2B, "700")
	order := storetest.NewMarket(t, d.s).Order(t, d.s, "5")
	for _, reference := range []string{theirs.Reference, order.PaymentReference} {
		d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCMatch, o.ID, naming(d.stray(t, reference, "700")), d.one)
	}
	d.do(t, exchange.IntendOTCMatch, o.ID, naming(d.stray(t, d.byMomo(t, exchange.OTCByC2B, "700").Reference, "700")), d.one)
	d.takes(t, o.ID)
	d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)
}

// A merchant whose account has no number pays to our number like any other, and names the one that is prompted.
func TestMobileMoneyOfAMerchantWithoutANumber(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	storetest.Exec(t, d.s, `UPDATE users SET phone_proven_at = NULL WHERE id = $1`, d.merchant.ID)
	storetest.Exec(t, d.s, `UPDATE users SET phone_number = NULL WHERE id = $1`, d.merchant.ID)
	o := d.byMomo(t, exchange.OTCByC2B, "700")
	d.arrives(t, d.awaited(t, o), "700")
	d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)
	r := d.shillings(t, "700")
	r.Method = exchange.OTCByMomo
	if _, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, r, d.by); blames(err) != "/momo_phone_number required" {
		t.Errorf("a prompt to no number: %v", err)
	}
}

// What the operator would refuse is refused when the deposit is submitted.
func TestPromptsOfDepositsAreWithinTheOperatorsLimits(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	r := d.shillings(t, "250001")
	r.Method = exchange.OTCByMomo
	if _, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, r, d.by); blames(err) != "/fiat_amount out_of_range" {
		t.Errorf("a prompt beyond the operator's limit: %v", err)
	}
}

package store_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// beginRefund begins the payout of a refund by mobile money.
func beginRefund(t *testing.T, s *store.Store, r exchange.Refund) error {
	t.Helper()
	_, err := s.BeginPayout(t.Context(), exchange.RefundObject(r.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "REFUND"})
	return err
}

// D16: a refund that one officer could open needs another when more leaves before it is paid. Nothing is begun until then.
func TestD16RefundsAreJudgedWhenTheyLeave(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	early, other := latePayment(t, s, storetest.NewMarket(t, s)), latePayment(t, s, storetest.NewMarket(t, s)) // of 1,295 shillings each
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 2000, two_above = 20000 WHERE object_type = 'refund'`)
	first, err := s.RefundException(t.Context(), early.ID, officer(t, s))
	if err != nil {
		t.Fatal(err)
	}
	agree(t, s, other.ID, officer(t, s))
	second, err := s.RefundException(t.Context(), other.ID, officer(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := beginRefund(t, s, first); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Fatalf("beside another refund the first is begun: %v", err)
	}
	if err := beginRefund(t, s, second); err != nil {
		t.Errorf("two agreed about the second: %v", err)
	}
	if n := decides[int](t, s, `SELECT count(*) FROM payment_attempts WHERE direction = 'payout'`); n != 1 {
		t.Errorf("%d payouts began", n)
	}
	agree(t, s, first.ID, officer(t, s))
	if _, err := s.ConfirmPayee(t.Context(), first.ID, time.Now(), officer(t, s)); err != nil {
		t.Errorf("the decision of two is carried out: %v", err)
	}
	if err := beginRefund(t, s, first); err != nil {
		t.Errorf("two agreed about the first: %v", err)
	}
	wantBooks(t, s)
}

const counted = `SELECT coalesce(sum(value), 0)::text FROM releases WHERE counts_until > now() AND exempt = ''`

// What an officer asked for today counts before a refund is opened as it does in its release, so the officer learns at once that
// another one has to agree.
func TestARequestersSumCountsBeforeTheRefund(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	x := latePayment(t, s, storetest.NewMarket(t, s))
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 2000, two_above = 200000 WHERE object_type = 'refund'`)
	busy := officer(t, s)
	storetest.Exec(t, s, `SET session_replication_role = replica;
		INSERT INTO releases (id, purpose, object_id, house, source, requester_id, recipient, inside, exempt, value, opened_at, passed_at, counts_until)
			VALUES (gen_random_uuid(), 'transfer', gen_random_uuid(), true, 'some-wallet', '`+busy.UserID.String()+`', 'tron:Txyz', false, '', 100000, now(), now(), now() + interval '23 hours');
		SET session_replication_role = origin`)
	for _, c := range []struct {
		who    exchange.Principal
		second bool
	}{{busy, true}, {officer(t, s), false}} {
		all, err := s.RefundDecisions(t.Context(), x.ID, c.who.UserID)
		if err != nil || len(all) != 1 || all[0].Second != c.second {
			t.Errorf("another officer is needed, want %t: %+v, %v", c.second, all, err)
		}
		if _, err := s.RefundException(t.Context(), x.ID, c.who); (err != nil) != c.second {
			t.Errorf("another officer is needed, want %t; the refund: %v", c.second, err)
		}
	}
}

// A release that takes another's place stays in the sums while what the first one let leave may have left.
func TestReleasesDoNotLeaveTheSumsInTwoSteps(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	x := latePayment(t, s, storetest.NewMarket(t, s)) // of 1,295 shillings
	r, err := s.RefundException(t.Context(), x.ID, officer(t, s))
	if err != nil {
		t.Fatal(err)
	}
	payout(t, s, r)
	const ends = `UPDATE releases SET ended_at = now() WHERE purpose = 'refund' AND ended_at IS NULL;`
	storetest.Exec(t, s, `BEGIN;`+ends+`INSERT INTO releases (id, purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at)
		SELECT gen_random_uuid(), purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, now() FROM releases WHERE purpose = 'refund'; COMMIT`)
	if state := (&sale{s: s}).past(t.Context(), t, ends+`SET CONSTRAINTS ALL IMMEDIATE`); state != "KV001" {
		t.Errorf("the second step: %q", state)
	}
	if sum := decides[string](t, s, counted); sum != "1295" {
		t.Errorf("%s counts", sum)
	}
}

// A try that was refused proves true after the refund had to be judged anew: it counts for a day.
func TestALateProofCountsInTheSums(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	x := latePayment(t, s, storetest.NewMarket(t, s))
	r, err := s.RefundException(ctx, x.ID, officer(t, s))
	if err != nil {
		t.Fatal(err)
	}
	a := payout(t, s, r)
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	if _, err := failRefund(t, s, r.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ConfirmPayee(ctx, r.ID, time.Now().Add(time.Minute), officer(t, s)); err != nil {
		t.Fatal(err)
	}
	if _, err := completeRefund(t, s, r.ID, a.ID, storetest.Paid(t, kes("1295"))); err != nil {
		t.Fatal(err)
	}
	if sum := decides[string](t, s, counted); sum != "1295" {
		t.Errorf("%s counts", sum)
	}
	if ends := decides[bool](t, s, `SELECT bool_and(counts_until < now() + interval '25 hours') FROM releases`); !ends {
		t.Error("it counts for ever")
	}
}

// D16: the next try of a refund is judged anew, by what left since the first.
func TestD16EachTryOfARefundIsJudged(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	x := latePayment(t, s, storetest.NewMarket(t, s))
	r, err := s.RefundException(ctx, x.ID, officer(t, s))
	if err != nil {
		t.Fatal(err)
	}
	a := payout(t, s, r)
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	if _, err := failRefund(t, s, r.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	lowerRefundLimit(t, s)
	if err := beginRefund(t, s, r); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("the next try is begun by what passed for the first: %v", err)
	}
	agree(t, s, r.ID, officer(t, s))
	if err := beginRefund(t, s, r); err != nil {
		t.Errorf("two agreed: %v", err)
	}
	if n := decides[int](t, s, `SELECT count(*) FROM releases WHERE purpose = 'refund' AND ended_at IS NULL`); n != 1 {
		t.Errorf("the refund has %d open releases", n)
	}
}

// What goes back by rule to who paid it asks nobody, and nobody waits for it. Once a source names another payer, it counts.
func TestSurplusGoesBackByRule(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 10, two_above = 10 WHERE object_type = 'refund'`)
	for range 2 {
		r, _ := underpaid(t, s)
		if err := beginRefund(t, s, r); err != nil {
			t.Errorf("back to who paid: %v", err)
		}
	}
	if sum := decides[string](t, s, `SELECT coalesce(sum(value), 0)::text FROM releases WHERE exempt = ''`); sum != "0" {
		t.Errorf("%s shillings count", sum)
	}
	x := decisionsByTwo["a payee"](t)
	if sum := decides[string](t, x.s, `SELECT trim_scale(sum(value)) FROM releases WHERE exempt = '' AND ended_at IS NULL`); sum != "1000" {
		t.Errorf("after another payer was named %s shillings count", sum)
	}
}

// The database itself begins no payout that has not passed in the same transaction, whatever it pays.
func TestPayoutsBeginOnlyReleased(t *testing.T) {
	t.Parallel()
	x := owing(t)
	const begin = `UPDATE order_payouts SET status = 'processing', version = version + 1;`
	const insert = `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
		SELECT gen_random_uuid(), 'payout', 'order', id, 'daraja', 'created', asset, amount, phone,
			(SELECT payment_reference FROM orders o WHERE o.id = order_payouts.id), gen_random_uuid(), now() FROM order_payouts`
	if state := x.past(t.Context(), t, begin+insert); state != "KV006" {
		t.Errorf("not released: %s", state)
	}
	if state := x.past(t.Context(), t, `UPDATE releases SET passed_in = pg_current_xact_id();`+begin+insert); state != "KV006" {
		t.Errorf("with a forged transaction: %s", state)
	}
	if state := x.past(t.Context(), t, `UPDATE releases SET passed_at = now();`+begin+insert); state != "" {
		t.Errorf("released: %s", state)
	}
	storetest.Exec(t, x.s, `UPDATE releases SET passed_at = now()`)
	if state := x.past(t.Context(), t, begin+insert); state != "KV006" {
		t.Errorf("released before: %s", state)
	}
}

// The code and the database have the same purposes and exemptions, and each exemption has its reason.
func TestExemptionsHaveReasons(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if n := decides[int](t, s, `SELECT count(*) FROM release_purposes WHERE purpose NOT IN ($1, $2, $3, $4, $5, $6, $7, $8)`,
		exchange.ReleaseTransfer, exchange.ReleaseFunding, exchange.ReleaseRefund, exchange.ReleasePayout, exchange.ReleaseWithdrawal, exchange.ReleaseFeeSweep,
		exchange.ReleaseSwap, exchange.ReleaseProposal); n != 0 {
		t.Errorf("the code lacks %d purposes", n)
	}
	if n := decides[int](t, s, `SELECT count(*) FROM release_exemptions WHERE exempt IN ('', $1, $2, $3, $4) AND char_length(why) > 10`,
		exchange.ExemptOwn, exchange.ExemptSurplus, exchange.ExemptSale, exchange.ExemptWithdrawal); n != 5 {
		t.Errorf("%d exemptions have a reason", n)
	}
}

// D16: above the second value a refund by mobile money takes two officers besides the one who requests it, as one in crypto. Of two
// who agreed, none is who requests it.
func TestD16LargestRefundsTakeThree(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	x := latePayment(t, s, storetest.NewMarket(t, s))
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 500, two_above = 1000 WHERE object_type = 'refund'`)
	one := officer(t, s)
	agree(t, s, x.ID, one)
	_, err := s.RefundException(t.Context(), x.ID, one)
	wantFault(t, err, exchange.CodeForbidden)
	r, err := s.RefundException(t.Context(), x.ID, officer(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := beginRefund(t, s, r); err != nil {
		t.Error(err)
	}
}

// A transfer never needs fewer officers than its sender was told when it was opened.
func TestNeverFewerThanAtOpening(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	p.without(t, "15000", "30000") // a unit counts as 150 shillings
	first := p.goes(t, "120", elsewhere(t))
	second := p.goes(t, "120", elsewhere(t))
	if first.ApprovalsRequired != 1 || second.ApprovalsRequired != 2 {
		t.Fatalf("they need %d and %d", first.ApprovalsRequired, second.ApprovalsRequired)
	}
	if _, err := storetest.CancelTransfer(t.Context(), p.store, first.ID, storetest.PrincipalOf(p.sender)); err != nil {
		t.Fatal(err)
	}
	if second = p.approve(t, second, p.officers[0]); second.Status != exchange.TransferPending || second.ApprovalsRequired != 2 {
		t.Errorf("after one approval the second is %s and needs %d", second.Status, second.ApprovalsRequired)
	}
	_, err := storetest.Owner(t, p.store).ExecContext(t.Context(), `UPDATE releases SET officers = 0, passed_at = now() WHERE object_id = $1`, second.ID)
	if sqlState(err) != "KV006" {
		t.Errorf("past the code: %v", err)
	}
}

// D16: a refund in crypto whose payment was approved is judged again when it is signed.
func TestD16CryptoRefundsAreJudgedAtTheSignature(t *testing.T) {
	t.Parallel()
	x := taken(t)
	x.says(t)
	x.refuses(t, false)
	x.noCoolOff(t)
	r := x.opensRefund(t)
	s, err := x.s.ApproveRefundPayment(t.Context(), r.ID)
	if err != nil || s.Wait != exchange.RefundReady || s.Needed != 0 {
		t.Fatalf("it stands at %+v, %v", s, err)
	}
	const fault = `SELECT refund_fault(p) FROM chain_payments p WHERE p.purpose = 'refund'`
	if said := decides[string](t, x.s, fault); said != "" {
		t.Errorf("before: %q", said)
	}
	storetest.Exec(t, x.s, `UPDATE approval_rules SET one_above = 100, two_above = 100000 WHERE object_type = 'refund'`)
	if said := decides[string](t, x.s, fault); said != "too few officers approved" {
		t.Errorf("afterwards: %q", said)
	}
}

// A release leaves the sums only when nothing of its object is on its way.
func TestReleaseEndsOnlyWithItsObject(t *testing.T) {
	t.Parallel()
	const end = `UPDATE releases SET ended_at = now() WHERE purpose = 'payout'; SET CONSTRAINTS ALL IMMEDIATE`
	x := owing(t)
	a := x.begun(t, 1)
	if state := x.past(t.Context(), t, end); state != "KV001" {
		t.Errorf("while a payout is made: %q", state)
	}
	if _, err := x.s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
		t.Fatal(err)
	}
	if state := x.past(t.Context(), t, end); state != "" {
		t.Errorf("after its refusal: %q", state)
	}
	y := banking(t)
	if state := y.past(t.Context(), t, end); state != "KV001" {
		t.Errorf("while the bank pays: %q", state)
	}
}

// A release passes only while its object has the terms that it was written with.
func TestReleaseKeepsItsTerms(t *testing.T) {
	t.Parallel()
	x := &sale{s: storetest.New(t)}
	underpaid(t, x.s)
	if state := x.past(t.Context(), t, `UPDATE releases SET passed_at = now()`); state != "" {
		t.Errorf("as it is: %q", state)
	}
	storetest.Exec(t, x.s, `SET session_replication_role = replica; UPDATE refunds SET payee_confirmed = true; SET session_replication_role = origin`)
	if state := x.past(t.Context(), t, `UPDATE releases SET passed_at = now()`); state != "KV002" {
		t.Errorf("to a payee whom an officer chose: %q", state)
	}
}

package store_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

var byFlow = exchange.System("flow")

const (
	homeOfCoins  = "Thome0000000000000000000000000000000"
	otherAddress = "Tother000000000000000000000000000000"
)

// refuses makes a payout of the order definitely refused; unsure, after its outcome was unknown for a while.
func (x *sale) refuses(t *testing.T, unsure bool) {
	t.Helper()
	ctx, a := t.Context(), x.tries(t)
	if unsure {
		if _, err := x.s.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Unknown}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
		t.Fatal(err)
	}
	if _, err := failOrder(t, x.s, x.order.ID, "2040"); err != nil {
		t.Fatal(err)
	}
}

// unpaid is a sale with a refused payout and an open refund, which may be sent at once.
func unpaid(t *testing.T, unsure bool) (*sale, exchange.Refund) {
	t.Helper()
	x := taken(t)
	x.noCoolOff(t)
	x.refuses(t, unsure)
	return x, x.opensRefund(t)
}

func (x *sale) opensRefund(t *testing.T) exchange.Refund {
	t.Helper()
	r := twice(t, sameRefund, func() (exchange.Refund, error) {
		_, r, err := x.s.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: x.order.ID, Reason: "payout_refused"}, byFlow)
		return r, err
	})
	x.order = x.now(t)
	return r
}

func (x *sale) noCoolOff(t *testing.T) {
	storetest.Exec(t, x.s, `UPDATE refund_policy SET cool_off_seconds = 0`)
}

// says makes the customer set its refund address.
func (x *sale) says(t *testing.T) {
	t.Helper()
	by := storetest.PrincipalOf(x.m.Customer)
	if _, err := x.s.SetRefundAddress(t.Context(), store.Everything(), x.order.ID, homeOfCoins, nil, by); err != nil {
		t.Fatal(err)
	}
}

func (x *sale) standing(t *testing.T, r exchange.Refund, want exchange.RefundWait) exchange.RefundStanding {
	t.Helper()
	s, err := x.s.ApproveRefundPayment(t.Context(), r.ID)
	if err != nil || s.Wait != want {
		t.Fatalf("the refund waits for %q, want %q; it is %+v, %v", s.Wait, want, s.Refund, err)
	}
	return s
}

// asks stores an officer's request.
func (x *sale) asks(t *testing.T, who exchange.User, exception uuid.UUID, address string) uuid.UUID {
	t.Helper()
	r := exchange.RefundRequest{ID: storetest.NewID(t), ExceptionID: exception, Address: address, Reason: "the customer wrote"}
	if exception == uuid.Nil {
		r.OrderID = x.order.ID
	}
	for range 2 {
		if err := x.s.SaveRefundRequest(t.Context(), r, storetest.PrincipalOf(who)); err != nil {
			t.Fatal(err)
		}
	}
	return r.ID
}

func (x *sale) ticket(t *testing.T, r exchange.Refund, officer exchange.User, action exchange.ApprovalAction) (string, error) {
	t.Helper()
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	token, now := hex.EncodeToString(b), time.Now().UTC().Truncate(time.Millisecond)
	_, err := x.s.IssueRefundTicket(t.Context(), exchange.ApprovalTicket{
		ID: storetest.NewID(t), OfficerID: officer.ID, ObjectType: exchange.ApproveRefund, ObjectID: r.ID, Action: action, Amount: r.Amount,
		Digest: r.Digest, Channel: exchange.ChannelAPI, TokenHash: sha256.Sum256([]byte(token)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, storetest.PrincipalOf(officer))
	return token, err
}

// agrees makes an officer approve a refund with its present terms.
func (x *sale) agrees(t *testing.T, r exchange.Refund, officer exchange.User) {
	t.Helper()
	token, err := x.ticket(t, r, officer, exchange.Approve)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err = x.s.DecideRefund(t.Context(), r.ID, token, exchange.Approve); err != nil {
			t.Fatal(err)
		}
	}
}

func agent(t *testing.T, s *store.Store) exchange.User {
	return storetest.User(t, s, exchange.RoleTreasury)
}

// An order with a refused payout fails, the crypto goes to the customer's refund address, in one payment, and then its
// vendor gets its shillings back.
func TestRefusedSaleGoesBack(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	x.says(t)
	x.refuses(t, false)
	r := x.opensRefund(t)
	wantOrder(t, x.order, exchange.OrderFailed, exchange.DetailRefundOpen, "deposit")
	if r.Rail != exchange.RefundOnChain || r.Address != homeOfCoins || !r.Amount.Equal(usdt("10")) || r.WalletID != x.e.ID || r.AddressedBy != uuid.Nil {
		t.Fatalf("the refund is %+v", r)
	}
	x.wantMoney(t, "10", "0", "10", "10")
	wantOffer(t, x.s, x.m.Offer.ID, "257416.45", "1990.000000")
	if s := x.standing(t, r, exchange.RefundWaitsCoolOff); s.Until.Before(time.Now()) || s.Until.After(time.Now().Add(exchange.RefundCoolOff)) {
		t.Errorf("it cools off until %s", s.Until)
	}
	x.noCoolOff(t)
	s := x.standing(t, r, exchange.RefundReady)
	again := x.standing(t, r, exchange.RefundReady)
	if p := s.Payment; p.Purpose != exchange.ForRefund || p.ToAddress != homeOfCoins || p.WalletID != x.e.ID || !samePayment(p, again.Payment) {
		t.Fatalf("the payments are %+v and %+v", s.Payment, again.Payment)
	}
	_, err := x.s.ApproveSweep(ctx, x.order.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	clears(t, x.s, s.Payment)
	x.carriedOut(t, s.Payment)
	done, err := x.s.Refund(ctx, r.ID)
	if err != nil || done.Status != exchange.RefundCompleted || done.Receipt == "" {
		t.Errorf("the refund is %+v, %v", done, err)
	}
	x.wantMoney(t, "0", "0", "0", "0")
	wantOffer(t, x.s, x.m.Offer.ID, "258710.00", "2000.000000")
	if _, err := x.s.ReleaseEscrow(ctx, x.order.ID); err != nil {
		t.Errorf("the address is not given back: %v", err)
	}
	claims, err := x.s.EscrowClaims(ctx, x.order.ID)
	if err != nil || len(claims) != 1 || !claims[0].Refunded.Equal(usdt("10")) || !claims[0].Taken.IsZero() {
		t.Errorf("the claim is %+v, %v", claims, err)
	}
}

func clears(t *testing.T, s *store.Store, p exchange.ChainPayment) {
	t.Helper()
	if err := s.RecordRecipient(t.Context(), p.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}}); err != nil {
		t.Fatal(err)
	}
}

// While an attempt may have paid, no refund is opened; one proven later stops the refund.
func TestNoRefundBesideAPayout(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	x.noCoolOff(t)
	x.says(t)
	open := func() error {
		_, _, err := x.s.OpenChainRefund(ctx, exchange.ChainRefundRequest{OrderID: x.order.ID}, byFlow)
		return err
	}
	a := x.tries(t)
	wantFault(t, open(), exchange.CodeStateConflict)
	if _, err := x.s.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Unknown}); err != nil {
		t.Fatal(err)
	}
	wantFault(t, open(), exchange.CodeStateConflict)
	if _, err := x.s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
		t.Fatal(err)
	}
	wantFault(t, open(), exchange.CodeStateConflict)
	if _, err := failOrder(t, x.s, x.order.ID, "2040"); err != nil {
		t.Fatal(err)
	}
	r := x.opensRefund(t)
	x.standing(t, r, exchange.RefundWaitsOfficer)
	x.agrees(t, r, agent(t, x.s))
	p := x.standing(t, r, exchange.RefundReady).Payment
	clears(t, x.s, p)
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, x.order.Price.Fiat)); err != nil {
		t.Fatal(err)
	}
	id := storetest.NewID(t)
	_, err := x.s.SaveSignedAttempt(ctx, exchange.ChainAttempt{ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), FeeLimit: trx("5")})
	wantFault(t, err, exchange.CodeStateConflict)
	x.standing(t, r, exchange.RefundWaitsClaim)
	for range 2 {
		if s, err := x.s.DismissClaim(ctx, r.ID, byFlow); err != nil || s.Wait != exchange.RefundWaitsPayout {
			t.Fatalf("a refund beside a payout that was made waits for %q, %v", s.Wait, err)
		}
	}
	x.wantMoney(t, "10", "0", "10", "10")
}

// An order completed by a late success gets no refund, and its flow receives that state: with only a conflict, it
// would retry the refund forever and never sweep the crypto to the vendor.
func TestRefundOfAPaidOrder(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	a := x.tries(t)
	if _, err := x.s.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Refused, Code: "2040", Class: exchange.ClassPayee}); err != nil {
		t.Fatal(err)
	}
	if _, err := failOrder(t, x.s, x.order.ID, "2040"); err != nil {
		t.Fatal(err)
	}
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, x.order.Price.Fiat)); err != nil {
		t.Fatal(err)
	}
	o, r, err := x.s.OpenChainRefund(ctx, exchange.ChainRefundRequest{OrderID: x.order.ID}, byFlow)
	if err != nil || o.Status != exchange.OrderCompleted || r.ID != uuid.Nil {
		t.Errorf("the order is %s with refund %s, %v", o.Status, r.ID, err)
	}
	x.wantMoney(t, "10", "0", "10", "10")
}

// An unproven claim stops a refund until an officer dismisses it; a refund that is on its way can't be stopped.
func TestClaimStopsARefund(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, r := unpaid(t, false)
	x.says(t)
	sent := x.standing(t, r, exchange.RefundReady)
	first := sent.Payment
	r = sent.Refund
	for range 2 {
		if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
			t.Fatal(err)
		}
	}
	x.standing(t, r, exchange.RefundWaitsClaim)
	if p, err := x.s.ChainPayment(ctx, first.ID); err != nil || p.Status != exchange.ChainCancelled {
		t.Errorf("the payment is %s, %v", p.Status, err)
	}
	alone := agent(t, x.s)
	if s, err := x.s.DismissClaim(ctx, r.ID, storetest.PrincipalOf(alone)); err != nil || s.Wait != exchange.RefundWaitsOfficer {
		t.Fatalf("it waits for %q, %v", s.Wait, err)
	}
	// The check for late results repeats the dismissed claim.
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	_, err := x.ticket(t, r, alone, exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
	// A claim after a denial is a new one.
	for _, claimed := range []bool{false, true} {
		if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), claimed); err != nil {
			t.Fatal(err)
		}
	}
	x.standing(t, r, exchange.RefundWaitsClaim)
	if s, err := x.s.DismissClaim(ctx, r.ID, storetest.PrincipalOf(alone)); err != nil || s.Wait != exchange.RefundWaitsOfficer {
		t.Fatalf("it waits for %q, %v", s.Wait, err)
	}
	x.agrees(t, r, agent(t, x.s))
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	second := x.standing(t, r, exchange.RefundReady).Payment
	clears(t, x.s, second)
	tx := sign(t, x.s, second)
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	if s := x.standing(t, r, exchange.RefundReady); s.Refund.Status != exchange.RefundProcessing {
		t.Errorf("a refund that is on its way is %s", s.Refund.Status)
	}
	storetest.Gas(t, x.s, second.WalletID, trx("2"))
	if _, err := x.s.RecordFinal(ctx, tx.ID, true, 200, "a-200", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	x.wantMoney(t, "0", "0", "0", "0")
}

// An address that the customer sets while a claim stops the refund does not affect the claim, and is used when that is
// dismissed.
func TestAddressOfAClaimedRefund(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, r := unpaid(t, false)
	if err := x.s.DoubtPayout(ctx, exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	x.says(t)
	if s := x.standing(t, r, exchange.RefundWaitsClaim); s.Refund.Address != "" {
		t.Errorf("it goes to %s", s.Refund.Address)
	}
	if _, err := x.s.DismissClaim(ctx, r.ID, storetest.PrincipalOf(agent(t, x.s))); err != nil {
		t.Fatal(err)
	}
	r = x.standing(t, r, exchange.RefundWaitsOfficer).Refund
	if r.Address != homeOfCoins || r.AddressedBy != uuid.Nil {
		t.Errorf("it goes to %q, which %s named", r.Address, r.AddressedBy)
	}
	x.agrees(t, r, agent(t, x.s))
	x.standing(t, r, exchange.RefundReady)
}

// An officer's address needs another officer's approval, for every requester; the customer's own needs none.
func TestRefundWithoutAnAddressWaitsForTwo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, r := unpaid(t, false)
	x.standing(t, r, exchange.RefundWaitsAddress)
	one, two := agent(t, x.s), agent(t, x.s)
	house := x.asks(t, one, uuid.Nil, x.e.Address)
	_, err := x.s.AddressRefund(ctx, r.ID, house, storetest.PrincipalOf(one))
	wantFault(t, err, exchange.CodeInvalid)
	_, err = x.s.AddressRefund(ctx, r.ID, uuid.New(), storetest.PrincipalOf(one))
	wantFault(t, err, exchange.CodeNotFound)
	asked := x.asks(t, one, uuid.Nil, otherAddress)
	for range 2 {
		s, err := x.s.AddressRefund(ctx, r.ID, asked, storetest.PrincipalOf(one))
		if err != nil || s.Wait != exchange.RefundWaitsOfficer || s.Needed != 1 || s.Refund.Address != otherAddress || s.Refund.AddressedBy != one.ID {
			t.Fatalf("it stands at %+v, %v", s, err)
		}
		r = s.Refund
	}
	x.standing(t, r, exchange.RefundWaitsOfficer)
	_, err = x.ticket(t, r, one, exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = x.ticket(t, r, storetest.User(t, x.s, exchange.RoleOTCOfficer), exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
	x.agrees(t, r, two)
	_, err = x.ticket(t, r, two, exchange.Approve)
	wantFault(t, err, exchange.CodeConflict)
	p := x.standing(t, r, exchange.RefundReady).Payment
	if p.ToAddress != otherAddress {
		t.Fatalf("the payment is %+v", p)
	}
	// An address that the customer sets now is too late, and changes nothing.
	x.says(t)
	if again := x.standing(t, r, exchange.RefundReady); again.Payment.ToAddress != otherAddress {
		t.Errorf("it goes to %s", again.Payment.ToAddress)
	}
	clears(t, x.s, p)
	x.carriedOut(t, p)
	x.wantMoney(t, "0", "0", "0", "0")
}

// The customer may set it after the order has failed. No officer overrides it before it was tried.
func TestCustomerSetsTheRefundAddressInTheEnd(t *testing.T) {
	t.Parallel()
	x, r := unpaid(t, false)
	x.standing(t, r, exchange.RefundWaitsAddress)
	x.says(t)
	one := agent(t, x.s)
	s := x.standing(t, r, exchange.RefundReady)
	if s.Payment.ToAddress != homeOfCoins || s.Refund.AddressedBy != uuid.Nil {
		t.Fatalf("it goes to %+v", s.Payment)
	}
	y := taken(t)
	y.says(t)
	y.refuses(t, false)
	held := y.opensRefund(t)
	_, err := y.s.AddressRefund(t.Context(), held.ID, y.asks(t, agent(t, y.s), uuid.Nil, otherAddress), storetest.PrincipalOf(one))
	wantFault(t, err, exchange.CodeStateConflict)
}

// A refund whose address can't be paid goes to another one when two officers agree; the payment approved for the first
// address is given up for good.
func TestRefundGoesToAnotherAddress(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	x.noCoolOff(t)
	x.says(t)
	x.refuses(t, false)
	r := x.opensRefund(t)
	first := x.standing(t, r, exchange.RefundReady).Payment
	one, two := agent(t, x.s), agent(t, x.s)
	asked := x.asks(t, one, uuid.Nil, otherAddress)
	clears(t, x.s, first)
	tx := sign(t, x.s, first)
	_, err := x.s.AddressRefund(ctx, r.ID, asked, storetest.PrincipalOf(one))
	wantFault(t, err, exchange.CodeStateConflict) // it may still arrive
	if _, err := x.s.RecordExpired(ctx, tx.ID, "too old"); err != nil {
		t.Fatal(err)
	}
	s, err := x.s.AddressRefund(ctx, r.ID, asked, storetest.PrincipalOf(one))
	if err != nil || s.Refund.Status != exchange.RefundNeedsReview || s.Wait != exchange.RefundWaitsOfficer {
		t.Fatalf("it stands at %+v, %v", s, err)
	}
	if p, err := x.s.ChainPayment(ctx, first.ID); err != nil || p.Status != exchange.ChainCancelled {
		t.Errorf("the first payment is %+v, %v", p, err)
	}
	x.agrees(t, s.Refund, two)
	second := x.standing(t, r, exchange.RefundReady).Payment
	if second.ToAddress != otherAddress || second.HoldID != first.HoldID || second.N != 2 {
		t.Fatalf("the second payment is %+v", second)
	}
	clears(t, x.s, second)
	x.carriedOut(t, second)
	x.wantMoney(t, "0", "0", "0", "0")
}

// One officer's refusal stops a refund with its present terms until it gets another address.
func TestRefusedRefundWaitsForAnotherAddress(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, r := unpaid(t, true)
	x.says(t)
	r = x.standing(t, r, exchange.RefundWaitsOfficer).Refund
	one, two, three := agent(t, x.s), agent(t, x.s), agent(t, x.s)
	token, err := x.ticket(t, r, one, exchange.Reject)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.s.DecideRefund(ctx, r.ID, token, exchange.Approve)
	wantFault(t, err, exchange.CodeNotFound)
	if s, err := x.s.DecideRefund(ctx, r.ID, token, exchange.Reject); err != nil || s.Wait != exchange.RefundWaitsRefused || s.Refund.Status != exchange.RefundNeedsReview {
		t.Fatalf("it stands at %+v, %v", s, err)
	}
	x.agrees(t, r, two)
	x.standing(t, r, exchange.RefundWaitsRefused)
	s, err := x.s.AddressRefund(ctx, r.ID, x.asks(t, two, uuid.Nil, otherAddress), storetest.PrincipalOf(two))
	if err != nil || s.Wait != exchange.RefundWaitsOfficer || s.Agreed != 0 {
		t.Fatalf("it stands at %+v, %v", s, err)
	}
	x.agrees(t, s.Refund, three)
	x.standing(t, r, exchange.RefundReady)
}

// A deposit for an ended order is refunded to an address that two officers agree on; it has none before.
func TestStrayDepositGoesBack(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	if _, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	d := x.final(t, x.to("late", usdt("7")))
	exception := d.ExceptionID
	x.wantMoney(t, "7", "7", "0", "0")
	one, two := agent(t, x.s), agent(t, x.s)
	asked := x.asks(t, one, exception, otherAddress)
	r := twice(t, sameRefund, func() (exchange.Refund, error) {
		_, r, err := x.s.OpenChainRefund(ctx, exchange.ChainRefundRequest{ExceptionID: exception, RequestID: asked}, storetest.PrincipalOf(one))
		return r, err
	})
	x.wantMoney(t, "7", "0", "7", "7")
	if r.RequestedBy != one.ID || r.AddressedBy != one.ID || r.Address != otherAddress || r.DepositID != d.ID {
		t.Fatalf("the refund is %+v", r)
	}
	x.standing(t, r, exchange.RefundWaitsOfficer)
	_, err := x.ticket(t, r, one, exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
	x.agrees(t, r, two)
	p := x.standing(t, r, exchange.RefundReady).Payment
	clears(t, x.s, p)
	x.carriedOut(t, p)
	x.wantMoney(t, "0", "0", "0", "0")
	if got, err := x.s.Exception(ctx, exception); err != nil || got.Status != exchange.ExcRefunded {
		t.Errorf("the exception is %+v, %v", got, err)
	}
	_, _, err = x.s.DecideException(ctx, exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: exception, Verdict: exchange.ExcAccepted, Reason: "why"}, storetest.PrincipalOf(one))
	wantFault(t, err, exchange.CodeStateConflict)
}

// A deposit that the offer does not allow is refunded by the refund that TakeDeposit opened.
func TestUnfitDepositIsSentBack(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	x.says(t)
	got := x.take(t, x.final(t, x.to("tx", usdt("4.9"))), exchange.TakenMismatch)
	x.screened(t, x.row(t, "tx"), exchange.VerdictClear)
	p := x.standing(t, got.Refund, exchange.RefundReady).Payment
	clears(t, x.s, p)
	x.carriedOut(t, p)
	x.wantMoney(t, "0", "0", "0", "0")
	if e, err := x.s.Exception(ctx, got.Exception.ID); err != nil || e.Status != exchange.ExcRefunded {
		t.Errorf("the exception is %+v, %v", e, err)
	}
	if _, err := x.s.ReleaseEscrow(ctx, x.order.ID); err != nil {
		t.Errorf("the address is not given back: %v", err)
	}
}

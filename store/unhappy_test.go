package store_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func refundsDue() exchange.AccountRef { return exchange.House(exchange.AccRefundsDue, money.KES) }
func suspense() exchange.AccountRef   { return exchange.House(exchange.AccSuspense, money.KES) }

func TestPaymentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, amount                 string
		prepare                      func(*testing.T, *store.Store, storetest.Market, exchange.Order)
		kind                         exchange.PaymentKind
		order                        exchange.OrderStatus
		exception                    exchange.ExceptionKind
		state                        exchange.ExceptionStatus
		refund, inFlight, due, aside string
		left                         string // of the offer
		kept                         string // unclaimed
	}{
		{
			name: "over", amount: "1305", kind: exchange.PaidOver, order: exchange.OrderProcessing, exception: exchange.ExcOver,
			state: exchange.ExcRefunding, refund: "10", inFlight: "1295", due: "10", aside: "0", left: "990",
		},
		{
			name: "over by too little to be sent back", amount: "1304", kind: exchange.PaidOver, order: exchange.OrderProcessing,
			exception: exchange.ExcOver, state: exchange.ExcAccepted, inFlight: "1295", due: "0", aside: "0", kept: "9", left: "990",
		},
		{
			name: "too little of anything", amount: "9", kind: exchange.PaidUnder, order: exchange.OrderFailed,
			exception: exchange.ExcUnder, state: exchange.ExcAccepted, inFlight: "0", due: "0", aside: "0", kept: "9", left: "1000",
		},
		{
			name: "under", amount: "1000", kind: exchange.PaidUnder, order: exchange.OrderFailed, exception: exchange.ExcUnder,
			state: exchange.ExcRefunding, refund: "1000", inFlight: "0", due: "1000", aside: "0", left: "1000",
		},
		{
			name: "late", amount: "1295", kind: exchange.PaidLate, order: exchange.OrderCancelled, exception: exchange.ExcLate,
			state: exchange.ExcOpen, inFlight: "0", due: "0", aside: "1295", left: "1000",
			prepare: func(t *testing.T, s *store.Store, _ storetest.Market, o exchange.Order) {
				t.Helper()
				if _, err := s.CloseOrder(t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			name: "duplicate", amount: "1295", kind: exchange.PaidDuplicate, order: exchange.OrderProcessing, exception: exchange.ExcDuplicate,
			state: exchange.ExcOpen, inFlight: "1295", due: "0", aside: "1295", left: "990",
			prepare: func(t *testing.T, s *store.Store, _ storetest.Market, o exchange.Order) {
				t.Helper()
				a, _, err := s.OpenAttempt(t.Context(), o.ID)
				if err == nil {
					_, err = s.AcceptPayment(t.Context(), a.ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			m := storetest.NewMarket(t, s)
			o := m.Order(t, s, "10")
			a := storetest.Attempt(t, s, o)
			if c.prepare != nil {
				c.prepare(t, s, m, o)
			}
			obs := storetest.Listed(t, s, storetest.Paid(t, kes(c.amount)))
			out, err := s.AcceptPayment(t.Context(), a.ID, obs, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if out.Kind != c.kind || out.Order.Status != c.order || out.Exception.Kind != c.exception || out.Exception.Status != c.state {
				t.Errorf("%s: order %s, exception %s %s", out.Kind, out.Order.Status, out.Exception.Kind, out.Exception.Status)
			}
			if c.refund != "" && (!out.Refund.Amount.Equal(kes(c.refund)) || out.Refund.Status != exchange.RefundPending) {
				t.Errorf("refund %+v", out.Refund)
			}
			known, err := s.AcceptPayment(t.Context(), a.ID, obs, time.Time{})
			if err != nil || known.Kind != exchange.PaidKnown || known.Exception.ID != out.Exception.ID || known.Refund.ID != out.Refund.ID {
				t.Errorf("again %+v, %v", known, err)
			}
			wantBalance(t, s, exchange.House(exchange.AccOrdersInFlight, money.KES), c.inFlight, "0")
			wantBalance(t, s, refundsDue(), c.due, "0")
			wantBalance(t, s, suspense(), c.aside, "0")
			wantBalance(t, s, exchange.House(exchange.AccUnclaimed, money.KES), cmp.Or(c.kept, "0"), "0")
			if c.refund == "" && out.Refund.ID != uuid.Nil {
				t.Errorf("refund %+v", out.Refund)
			}
			offer, err := s.Offer(t.Context(), store.Everything(), m.Offer.ID)
			if err != nil || !offer.Available.Equal(usdt(c.left)) {
				t.Errorf("the offer has %s left, %v", offer.Available, err)
			}
			wantBooks(t, s)
		})
	}
}

// payout begins a refund's payout.
func payout(t *testing.T, s *store.Store, r exchange.Refund) exchange.PaymentAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a := exchange.PaymentAttempt{ID: id, Provider: "daraja", Reference: "REFUND", CallbackToken: id.String(), WorkflowID: "refund:" + r.ID.String()}
	begun, err := s.BeginPayout(t.Context(), exchange.RefundObject(r.ID), a)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.BeginPayout(t.Context(), exchange.RefundObject(r.ID), a)
	if err != nil || again.ID != begun.ID || again.Version != begun.Version {
		t.Fatalf("begun again %+v, %v", again, err)
	}
	return begun
}

// The address of a payment never changes: an officer gives the shillings back to the phone that paid, and nothing of the
// payment can be signed any more.
func TestRefundOfAnOrderToAnInvalidAddress(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	if _, err := s.ParkChainPayment(ctx, p.ID, "invalid_address"); err != nil {
		t.Fatal(err)
	}
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	refund := twice(t, sameRefund, func() (exchange.Refund, error) {
		_, r, err := s.RefundOrder(ctx, o.ID, "the address burns coins", officer)
		return r, err
	})
	if refund.Phone != o.PaymentPhone || !refund.Amount.Equal(o.Price.Fiat) {
		t.Errorf("%s goes back to %s, want %s to %s", refund.Amount, refund.Phone, o.Price.Fiat, o.PaymentPhone)
	}
	_, err := s.RetryChainPayment(ctx, p.ID, officer)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, m.VendorWallet.ID, money.USDT), "1500", "1000") // the offer's
	wantBalance(t, s, refundsDue(), "1295", "0")
	wantBooks(t, s)
}

func TestRefundOfAnOrderThatCanNotBeDelivered(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	tx := sign(t, s, p)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	_, _, err := s.RefundOrder(ctx, o.ID, "nothing works", officer)
	wantFault(t, err, exchange.CodeStateConflict) // the transaction may still arrive
	if _, err := s.RecordFinal(ctx, tx.ID, false, 9, "bb", trx("2"), "OUT_OF_ENERGY"); err != nil {
		t.Fatal(err)
	}
	parked := twice(t, samePayment, func() (exchange.ChainPayment, error) {
		return s.RecordFinal(ctx, tx.ID, false, 9, "bb", trx("2"), "OUT_OF_ENERGY")
	})
	if parked.Status != exchange.ChainParked || parked.Detail != "OUT_OF_ENERGY" {
		t.Errorf("parked %+v", parked)
	}
	outlived(t, s)
	refund := twice(t, sameRefund, func() (exchange.Refund, error) {
		_, r, err := s.RefundOrder(ctx, o.ID, "nothing works", officer)
		return r, err
	})
	after, err := s.Order(ctx, store.Everything(), o.ID)
	if err != nil || after.Status != exchange.OrderFailed || after.StatusDetail != exchange.DetailRefundOpen {
		t.Errorf("order %s %s, %v", after.Status, after.StatusDetail, err)
	}
	_, err = s.RetryChainPayment(ctx, p.ID, officer)
	wantFault(t, err, exchange.CodeStateConflict) // cancelled for good
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, m.VendorWallet.ID, money.USDT), "1500", "1000")
	wantBalance(t, s, exchange.House(exchange.AccNetworkFees, money.TRX), "2", "0")
	wantBalance(t, s, refundsDue(), "1295", "0")

	first := payout(t, s, refund)
	wantBalance(t, s, exchange.House(exchange.AccMomoPayout, money.KES), "1000000", "1318") // with the provider's charge of 23
	_, err = failRefund(t, s, refund.ID, "refused")
	wantFault(t, err, exchange.CodeStateConflict) // the payout may still move money
	if _, err := s.RecordFailure(ctx, first.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	twice(t, sameRefund, func() (exchange.Refund, error) { return failRefund(t, s, refund.ID, "refused") })
	wantBalance(t, s, exchange.House(exchange.AccMomoPayout, money.KES), "1000000", "0")

	second := payout(t, s, refund)
	obs := storetest.Paid(t, kes("1295"))
	done := twice(t, sameRefund, func() (exchange.Refund, error) { return completeRefund(t, s, refund.ID, second.ID, obs) })
	if done.Status != exchange.RefundCompleted || done.Receipt != obs.Receipt {
		t.Errorf("completed %+v", done)
	}
	wantBalance(t, s, exchange.House(exchange.AccMomoPayout, money.KES), "998682", "0")
	wantBalance(t, s, exchange.House(exchange.AccMomoFees, money.KES), "23", "0")
	wantBalance(t, s, refundsDue(), "0", "0")
	wantBooks(t, s)
}

func TestRefundWaitsForFloat(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	book := exchange.Posting{Entries: []exchange.Entry{{Key: "drain", Kind: "test.drain", Lines: []exchange.Line{
		exchange.Credit(exchange.House(exchange.AccMomoPayout, money.KES), kes("999999")), exchange.Debit(exchange.House(exchange.AccCapital, money.KES), kes("999999")),
	}}}}
	if err := s.Post(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	o := m.Order(t, s, "10")
	out, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, o).ID, storetest.Listed(t, s, storetest.Paid(t, kes("1000"))), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.BeginPayout(t.Context(), exchange.RefundObject(out.Refund.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "REFUND"})
	wantFault(t, err, exchange.CodeInsufficientFunds)
	r, err := s.Refund(t.Context(), out.Refund.ID)
	if err != nil || r.Status != exchange.RefundPending {
		t.Errorf("the refund is %s, %v", r.Status, err)
	}
	wantBooks(t, s)
}

func TestExceptionsEndOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	duplicate := func() exchange.PaymentException {
		o := m.Order(t, s, "10")
		a := storetest.Attempt(t, s, o)
		for range 2 {
			out, err := s.AcceptPayment(ctx, a.ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if out.Exception.ID != uuid.Nil {
				return out.Exception
			}
		}
		t.Fatal("no exception")
		return exchange.PaymentException{}
	}
	x := duplicate()
	r := twice(t, sameRefund, func() (exchange.Refund, error) { return s.RefundException(ctx, x.ID, admin) })
	_, err := s.ResolveException(ctx, x.ID, exchange.ExcWrittenOff, "too late", admin)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := completeRefund(t, s, r.ID, payout(t, s, r).ID, storetest.Paid(t, r.Amount)); err != nil {
		t.Fatal(err)
	}
	if x, err = s.Exception(ctx, x.ID); err != nil || x.Status != exchange.ExcRefunded {
		t.Errorf("the exception is %s, %v", x.Status, err)
	}
	x = duplicate()
	_, err = s.ResolveException(ctx, x.ID, exchange.ExcWrittenOff, "", admin)
	wantFault(t, err, exchange.CodeInvalid)
	_, err = s.ResolveException(ctx, x.ID, exchange.ExcCredited, "to whom?", admin)
	wantFault(t, err, exchange.CodeUnsupported)
	twice(t, func(a, b exchange.PaymentException) bool { return a.Version == b.Version }, func() (exchange.PaymentException, error) {
		return s.ResolveException(ctx, x.ID, exchange.ExcWrittenOff, "the payer is gone", admin)
	})
	_, err = s.RefundException(ctx, x.ID, admin)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, s, suspense(), "0", "0")
	wantBalance(t, s, exchange.House(exchange.AccFees, money.KES), "1295", "0")
	all, total, err := s.ListExceptions(ctx, store.ExceptionFilter{Kind: exchange.ExcDuplicate}, store.Page{Number: 1, Size: 1})
	if err != nil || total != 2 || len(all) != 1 || all[0].ID != x.ID {
		t.Errorf("%d of %d exceptions, %v", len(all), total, err)
	}
	wantBooks(t, s)
}

func TestTransactionsThatVanishExpireAndComeBack(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	status := func(want exchange.OrderStatus) {
		t.Helper()
		got, err := s.Order(ctx, store.Everything(), o.ID)
		if err != nil || got.Status != want {
			t.Fatalf("the order is %s, want %s, %v", got.Status, want, err)
		}
	}
	tx := sign(t, s, p)
	status(exchange.OrderProcessing)
	if _, err := s.RecordBroadcast(ctx, tx.ID, "SERVER_BUSY", false); err != nil {
		t.Fatal(err)
	}
	status(exchange.OrderProcessing)
	for range 2 {
		if _, err := s.RecordBroadcast(ctx, tx.ID, "SUCCESS", true); err != nil {
			t.Fatal(err)
		}
	}
	status(exchange.OrderConfirming)
	twice(t, samePayment, func() (exchange.ChainPayment, error) { return s.RecordIncluded(ctx, tx.ID, 5, "aa") })
	twice(t, samePayment, func() (exchange.ChainPayment, error) { return s.RecordVanished(ctx, tx.ID) })
	status(exchange.OrderProcessing)
	_, err := s.ParkChainPayment(ctx, p.ID, "no_energy")
	wantFault(t, err, exchange.CodeStateConflict) // it may still be included
	twice(t, samePayment, func() (exchange.ChainPayment, error) { return s.RecordIncluded(ctx, tx.ID, 6, "ab") })
	status(exchange.OrderConfirming)
	twice(t, samePayment, func() (exchange.ChainPayment, error) {
		return s.RecordExpired(ctx, tx.ID, "expired before solid block 99")
	})
	status(exchange.OrderProcessing)
	_, err = s.RecordIncluded(ctx, tx.ID, 7, "ac")
	wantFault(t, err, exchange.CodeStateConflict) // what was proven impossible can't happen
	_, err = s.RecordFinal(ctx, tx.ID, true, 7, "ac", trx("1"), "SUCCESS")
	wantFault(t, err, exchange.CodeStateConflict)
	if _, alive, err := s.LiveAttempt(ctx, p.ID); err != nil || alive {
		t.Errorf("an expired transaction is alive, %v", err)
	}
	twice(t, samePayment, func() (exchange.ChainPayment, error) { return s.ParkChainPayment(ctx, p.ID, "no_energy") })
	twice(t, samePayment, func() (exchange.ChainPayment, error) { return s.RetryChainPayment(ctx, p.ID, exchange.System("test")) })
	second := sign(t, s, p)
	if second.N != 2 {
		t.Errorf("the second transaction has number %d", second.N)
	}
	_, err = s.SaveSignedAttempt(ctx, exchange.ChainAttempt{ID: storetest.NewID(t), PaymentID: p.ID, Network: p.Network, TxID: tx.TxID, Raw: []byte("x")})
	if err != nil {
		t.Errorf("a live transaction must come back, got %v", err)
	}
	if _, err := s.RecordFinal(ctx, second.ID, true, 8, "ad", money.Zero(money.TRX), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompleteOrder(ctx, o.ID); err != nil {
		t.Fatal(err)
	}
	wantBooks(t, s)
}

// The chain took a fee from coins unknown to the books: the fee is booked all the same.
func TestUnknownGasIsFound(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	_, p := paid(t, s, m)
	if _, err := s.RecordFinal(t.Context(), sign(t, s, p).ID, true, 8, "ad", trx("1200.5"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.TRX), "0", "0")
	wantBalance(t, s, exchange.House(exchange.AccSuspense, money.TRX), "200.5", "0")
	wantBalance(t, s, exchange.House(exchange.AccNetworkFees, money.TRX), "1200.5", "0")
	wantBooks(t, s)
}

func TestAttemptsKeepWhatIsCertain(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o := m.Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	again, created, err := s.BeginCollection(ctx, exchange.OrderObject(o.ID), exchange.PaymentAttempt{ID: a.ID})
	if err != nil || created || again.ID != a.ID || again.CallbackToken != "" {
		t.Errorf("begun again: created %t, %v", created, err)
	}
	_, _, err = s.BeginCollection(ctx, exchange.OrderObject(o.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja"})
	wantFault(t, err, exchange.CodeConflict) // one open attempt
	found, err := s.AttemptByToken(ctx, exchange.CallbackResult, a.CallbackToken)
	if err != nil || found.ID != a.ID {
		t.Errorf("by token %s, %v", found.ID, err)
	}
	_, err = s.AttemptByToken(ctx, exchange.CallbackResult, a.CallbackToken+"x")
	wantFault(t, err, exchange.CodeNotFound)
	_, err = s.AttemptByToken(ctx, exchange.CallbackStatus, a.CallbackToken)
	wantFault(t, err, exchange.CodeNotFound) // answers come to another address
	failed, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true, Code: "1037", Class: exchange.ClassUnanswered})
	if err != nil || failed.Status != exchange.AttemptFailed || !failed.Soft {
		t.Errorf("failed %+v, %v", failed, err)
	}
	failed, err = s.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_1"}})
	if err != nil || failed.Status != exchange.AttemptFailed || failed.ConversationID != "AG_1" {
		t.Errorf("an answer that a result overtook: %+v, %v", failed, err)
	}
	out, err := s.AcceptPayment(ctx, a.ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	if err != nil || out.Attempt.Status != exchange.AttemptSucceeded {
		t.Fatalf("a late success: %+v, %v", out.Attempt, err)
	}
	kept, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "1", Class: exchange.ClassFloat})
	if err != nil || kept.Status != exchange.AttemptSucceeded || kept.Receipt != out.Attempt.Receipt {
		t.Errorf("after success %+v, %v", kept, err)
	}
	_, err = s.AcceptPayment(ctx, a.ID, exchange.Observation{State: exchange.SeenSucceeded, Receipt: "SFL1234567"}, time.Time{})
	wantFault(t, err, exchange.CodeInvalid) // no amount, no booking
}

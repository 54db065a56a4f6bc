package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// decides carries out a word of somebody's about what the sale shows.
func (x *sale) decides(t *testing.T, kind exchange.IntentKind, o exchange.Order, by exchange.Principal) (exchange.DepositTaken, error) {
	t.Helper()
	word := exchange.DepositWord{DepositID: o.Other.ID, Digest: o.OtherDigest()}
	asked, err := storetest.Ask(t.Context(), x.s, kind, storetest.NewID(t), x.order.ID, word.Terms(), by)
	if err != nil {
		t.Fatal(err)
	}
	first, err := x.s.DecideDeposit(t.Context(), x.order.ID, asked)
	if err != nil {
		return first, err
	}
	again, err := x.s.DecideDeposit(t.Context(), x.order.ID, asked)
	if err != nil || again.Verdict != exchange.TakenKnown || !sameOrder(first.Order, again.Order) || first.Refund.ID != again.Refund.ID {
		t.Fatalf("decided again it is %+v, want %+v; %v", again, first, err)
	}
	return first, nil
}

func (x *sale) seller() exchange.Principal { return storetest.PrincipalOf(x.m.Customer) }

// waits expects that a deposit decides nothing yet, however often it is applied.
func (x *sale) waits(t *testing.T, d exchange.ChainDeposit) {
	t.Helper()
	first := twice(t, func(a, b exchange.DepositTaken) bool { return a.Verdict == b.Verdict && sameOrder(a.Order, b.Order) }, func() (exchange.DepositTaken, error) {
		return x.s.TakeDeposit(t.Context(), x.order.ID, d.ID)
	})
	if first.Verdict != exchange.TakenWaits {
		t.Fatalf("the deposit is taken as %s", first.Verdict)
	}
}

// otherCame is a sale of 10 USDT to which another amount came.
func otherCame(t *testing.T, amount string) (*sale, exchange.ChainDeposit) {
	t.Helper()
	x := sold(t)
	d := x.final(t, x.to("tx", usdt(amount)))
	x.waits(t, d)
	return x, d
}

// D6: another amount waited half an hour for the sale's expiry, whatever its seller wanted. The sale shows what came and what
// it would bring, and the seller says whether to be paid for it.
func TestD6_TheSellerIsPaidForAnotherAmount(t *testing.T) {
	t.Parallel()
	x, d := otherCame(t, "9.5")
	o := x.now(t)
	if o.StatusDetail != exchange.WaitOtherAmount || o.Other.ID != d.ID || o.Other.TxID != "tx" || !o.Other.Amount.Equal(usdt("9.5")) || o.OtherPrice().Fiat.String() != "1228.00" {
		t.Fatalf("the sale waits for %s and shows %+v, for %s", o.StatusDetail, o.Other, o.OtherPrice().Fiat)
	}
	taken, err := x.decides(t, exchange.IntendSaleAccept, o, x.seller())
	if err != nil || taken.Verdict != exchange.TakenRepriced {
		t.Fatalf("it is taken as %q, %v", taken.Verdict, err)
	}
	wantOrder(t, taken.Order, exchange.OrderProcessing, exchange.WaitScreening, "tx")
	if p := x.payout(t); p.Amount.String() != "1228.00" {
		t.Errorf("%s is owed", p.Amount)
	}
	wantOffer(t, x.s, x.m.Offer.ID, "257481.13", "1990.500019")
	x.wantMoney(t, "9.5", "0", "9.5", "9.5")
}

// The seller may also have it back at once.
func TestD6_TheSellerHasAnotherAmountBack(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"9.5", "10.5"} {
		x, d := otherCame(t, amount)
		x.says(t)
		taken, err := x.decides(t, exchange.IntendSaleReturn, x.now(t), x.seller())
		if err != nil || taken.Verdict != exchange.TakenMismatch || taken.Refund.DepositID != d.ID || taken.Refund.Address != homeOfCoins || taken.Exception.Status != exchange.ExcRefunding {
			t.Fatalf("%s: it is taken as %+v, %v", amount, taken, err)
		}
		wantOrder(t, taken.Order, exchange.OrderFailed, exchange.DetailMismatch, "tx")
		wantOffer(t, x.s, x.m.Offer.ID, "258710.00", "2000.000000")
		x.wantMoney(t, amount, "0", amount, amount)
	}
}

// Nobody makes a sale expired by writing a later time: the clock of the database counts.
func TestD6_ClaimsDoNotChooseTheirTime(t *testing.T) {
	t.Parallel()
	x, d := otherCame(t, "9.5")
	state := x.past(t.Context(), t, `INSERT INTO escrow_claims (id, order_id, deposit_id, wallet_id, kind, asset, amount, hold_id, created_at)
		VALUES (gen_random_uuid(), '`+x.order.ID.String()+`', '`+d.ID.String()+`', '`+x.e.ID.String()+`', 'repriced', 'USDT', 9.5, gen_random_uuid(), now() + interval '2 hours')`)
	if state != "KV002" {
		t.Errorf("a claim of the future: %q", state)
	}
}

// What goes back is screened like what is paid out: coins of senders whom nobody has accepted leave by an officer's decision,
// whoever asked for their return.
func TestReturnedCryptoIsScreened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said   []exchange.Verdict
		denied bool
		wait   exchange.RefundWait
	}{
		"not screened":       {wait: exchange.RefundWaitsOfficer},
		"accepted":           {said: []exchange.Verdict{exchange.VerdictClear}, wait: exchange.RefundReady},
		"unknown":            {said: []exchange.Verdict{exchange.VerdictUnknown}, wait: exchange.RefundWaitsOfficer},
		"refused":            {said: []exchange.Verdict{exchange.VerdictHit}, wait: exchange.RefundWaitsOfficer},
		"accepted, then bad": {said: []exchange.Verdict{exchange.VerdictClear}, denied: true, wait: exchange.RefundWaitsOfficer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, d := otherCame(t, "9.5")
			x.says(t)
			taken, err := x.decides(t, exchange.IntendSaleReturn, x.now(t), x.seller())
			if err != nil {
				t.Fatal(err)
			}
			terms, err := x.s.ScreenTerms(t.Context(), x.order.ID)
			if err != nil || len(terms) != 1 || terms[0].DepositID != d.ID || terms[0].Address != d.From {
				t.Fatalf("%+v is to be screened, %v", terms, err)
			}
			if c.said != nil {
				x.screened(t, d, c.said...)
			}
			if c.denied {
				storetest.Exec(t, x.s, `INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES (gen_random_uuid(), 'tron', '`+d.From+`', 'test', '`+x.m.Vendor.ID.String()+`', now())`)
			}
			s := x.standing(t, taken.Refund, c.wait)
			if officers := map[exchange.RefundWait]int{exchange.RefundWaitsOfficer: 1}[c.wait]; s.Needed != officers || (s.Payment.ID == uuid.Nil) != (officers > 0) {
				t.Errorf("it needs %d officers and the payment %s", s.Needed, s.Payment.ID)
			}
		})
	}
}

// A word counts only from the seller, about what is here, and while the amount that was asked for is not on its way. What can't
// be priced stays, and the sale waits on.
func TestD6_WordsThatDoNotCount(t *testing.T) {
	t.Parallel()
	decide := func(t *testing.T, x *sale, o exchange.Order, by exchange.Principal, want exchange.Code) {
		t.Helper()
		for _, kind := range []exchange.IntentKind{exchange.IntendSaleAccept, exchange.IntendSaleReturn} {
			before := x.now(t)
			_, err := x.decides(t, kind, o, by)
			wantFault(t, err, want)
			if now := x.now(t); now.Status != before.Status || now.Version != before.Version {
				t.Errorf("after %s the sale is %s, version %d", kind, now.Status, now.Version)
			}
		}
	}
	t.Run("of others", func(t *testing.T) {
		t.Parallel()
		x, _ := otherCame(t, "9.5")
		for _, who := range []exchange.User{x.m.Vendor, storetest.Subvendor(t, x.s, x.m.Vendor), storetest.User(t, x.s, exchange.RoleCustomer), storetest.User(t, x.s, exchange.RoleAdmin)} {
			decide(t, x, x.now(t), storetest.PrincipalOf(who), exchange.CodeForbidden)
		}
	})
	t.Run("about something else", func(t *testing.T) {
		t.Parallel()
		x, _ := otherCame(t, "9.5")
		seen := x.now(t)
		stale := seen
		stale.Other.Amount = usdt("9.6")
		decide(t, x, stale, x.seller(), exchange.CodeStateConflict)
		greater := x.final(t, x.to("tx2", usdt("9.7")))
		x.waits(t, greater)
		decide(t, x, seen, x.seller(), exchange.CodeStateConflict)
		x.waits(t, x.final(t, x.to("dust", usdt("0.01"))))
		if o := x.now(t); o.Other.ID != greater.ID {
			t.Errorf("the sale shows %+v", o.Other)
		}
	})
	t.Run("beside the right amount", func(t *testing.T) {
		t.Parallel()
		x, _ := otherCame(t, "9.5")
		x.seen(t, x.to("exact", usdt("10")))
		decide(t, x, x.now(t), x.seller(), exchange.CodeStateConflict)
		if _, err := x.s.SeeDeposit(t.Context(), x.order.ID, x.row(t, "exact").ID); err != nil {
			t.Fatal(err)
		}
		decide(t, x, x.now(t), x.seller(), exchange.CodeStateConflict)
		x.gone(t)
		if o, err := x.s.LoseDeposit(t.Context(), x.order.ID, x.row(t, "exact").ID); err != nil || o.StatusDetail != exchange.WaitOtherAmount {
			t.Errorf("when the right amount has vanished, the sale waits for %s, %v", o.StatusDetail, err)
		}
	})
	t.Run("that can't be carried out", func(t *testing.T) {
		t.Parallel()
		x, _ := otherCame(t, "4") // less than the offer's smallest order
		o := x.now(t)
		_, err := x.decides(t, exchange.IntendSaleAccept, o, x.seller())
		wantFault(t, err, exchange.CodeStateConflict)
		if now := x.now(t); now.Status != exchange.OrderPending || now.Version != o.Version {
			t.Errorf("the sale is %s", now.Status)
		}
		x.take(t, x.final(t, x.to("exact", usdt("10"))), exchange.TakenExact)
	})
}

// The database takes no other amount before the sale expires, unless the seller decided so about that very deposit.
func TestD6_TheDatabaseTakesNoOtherAmountWithoutTheSeller(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for kind, right := range map[string]exchange.IntentKind{"repriced": exchange.IntendSaleAccept, "under": exchange.IntendSaleReturn} {
		x, d := otherCame(t, "9.5")
		wrong := map[exchange.IntentKind]exchange.IntentKind{exchange.IntendSaleAccept: exchange.IntendSaleReturn, exchange.IntendSaleReturn: exchange.IntendSaleAccept}[right]
		refused := func() bool {
			_, err := storetest.Owner(t, x.s).ExecContext(ctx, `INSERT INTO escrow_claims (id, deposit_id, order_id, wallet_id, kind, asset, amount, hold_id, exception_id, created_at)
				VALUES (gen_random_uuid(), $1, $2, $3, $4, 'USDT', 9.5, gen_random_uuid(), CASE $4 WHEN 'under' THEN gen_random_uuid() END, now())`, d.ID, x.order.ID, x.e.ID, kind)
			return err != nil && strings.Contains(err.Error(), "did not decide")
		}
		if !refused() {
			t.Errorf("%s is taken without a word", kind)
		}
		for _, word := range []struct {
			what    string
			kind    exchange.IntentKind
			deposit uuid.UUID
			by      exchange.Principal
			refused bool
		}{
			{"another word", wrong, d.ID, x.seller(), true},
			{"a word about another deposit", right, storetest.NewID(t), x.seller(), true},
			{"the vendor's word", right, d.ID, storetest.PrincipalOf(x.m.Vendor), true},
			{"the seller's word", right, d.ID, x.seller(), false},
		} {
			asked, err := storetest.Ask(ctx, x.s, word.kind, storetest.NewID(t), x.order.ID, exchange.DepositWord{DepositID: word.deposit}.Terms(), word.by)
			if err == nil {
				_, err = x.s.UseIntent(ctx, asked, word.kind)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := refused(); got != word.refused {
				t.Errorf("%s by %s is refused: %t", kind, word.what, got)
			}
		}
	}
}

package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// The other possible senders of the deposits that stranger appears to send.
const (
	decoy     = "Tdecoy00000000000000000000000000000"
	bystander = "Tbystander0000000000000000000000000"
)

// deny puts an address on the deny list.
func (x *sale) deny(t *testing.T, address string) exchange.DeniedAddress {
	t.Helper()
	by := storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleAdmin))
	d, err := x.s.Deny(t.Context(), exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: address, Reason: "test"}, by)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// screened records one result about all possible senders of a deposit.
func (x *sale) screened(t *testing.T, d exchange.ChainDeposit, said ...exchange.Verdict) {
	t.Helper()
	var all []exchange.Screening
	for _, v := range said {
		all = append(all, exchange.Screening{Screener: "test", Verdict: v})
	}
	if err := x.s.RecordDepositScreening(t.Context(), d.ID, all); err != nil {
		t.Fatal(err)
	}
}

// wantAsked expects the senders to screen, in order.
func (x *sale) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	terms, err := x.s.ScreenTerms(t.Context(), x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range terms {
		got = append(got, c.Address)
		if c.Network != exchange.Tron || !c.Amount.Equal(x.order.Price.Crypto) || c.DepositID != terms[0].DepositID {
			t.Errorf("asked about %+v", c)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("asked about %v, want %v", got, want)
	}
}

// Where a chain does not show who paid whom, every possible sender is stored with the deposit, as its last block lists
// them, and nothing is paid out before all of them are cleared. Wallets of ours need no screening.
func TestAllSendersAreScreened(t *testing.T) {
	t.Parallel()
	x := sold(t)
	m := x.to("tx", x.order.Price.Crypto)
	m.Others = []string{bystander}
	x.seen(t, m)
	if d := x.row(t, "tx"); !slices.Equal(d.Others, m.Others) {
		t.Errorf("besides the sender it seems to be from %v", d.Others)
	}
	x.gone(t)
	m.Others = []string{x.m.CustomerWallet.Address, decoy}
	d := x.final(t, m)
	if !slices.Equal(d.Others, m.Others) {
		t.Errorf("besides the sender it is from %v", d.Others)
	}
	x.take(t, d, exchange.TakenExact)
	x.wantAsked(t, stranger, decoy)
	x.screened(t, d, exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictClear)
	x.wantAsked(t, stranger, decoy)
	if _, err := x.begin(t.Context(), x.s, 1); err == nil {
		t.Error("the order is paid out, with a hit against a possible sender of its crypto")
	}
	x.screened(t, d, exchange.VerdictClear, exchange.VerdictClear)
	x.wantAsked(t)
	x.begun(t, 1)
}

// A wallet of ours as the apparent sender does not exempt the others from screening.
func TestOthersBehindAWalletOfOurs(t *testing.T) {
	t.Parallel()
	x := sold(t)
	m := moveOf("tx", stranger, x.e.Address, x.order.Price.Crypto)
	d := x.final(t, m)
	x.take(t, d, exchange.TakenExact)
	storetest.Exec(t, x.s, `ALTER TABLE chain_deposits DISABLE TRIGGER USER`)
	storetest.Exec(t, x.s, `UPDATE chain_deposits SET from_address = '`+x.m.CustomerWallet.Address+`', other_senders = '{`+decoy+`}'`)
	x.wantAsked(t, decoy)
	storetest.Exec(t, x.s, `UPDATE chain_deposits SET other_senders = '{}'`)
	x.wantAsked(t)
	x.begun(t, 1)
}

// More senders than a transaction can have, and invalid addresses, are set aside.
func TestSendersHaveLimits(t *testing.T) {
	t.Parallel()
	x := sold(t)
	many, long := x.to("many", x.order.Price.Crypto), x.to("long", x.order.Price.Crypto)
	many.Others = slices.Repeat([]string{decoy}, 513)
	long.Others = []string{strings.Repeat("T", 129)}
	most := x.to("most", x.order.Price.Crypto)
	most.Others = slices.Repeat([]string{decoy}, 512)
	x.final(t, most, many, long)
	set, err := x.s.OpenQuarantine(t.Context(), exchange.Tron)
	if err != nil || len(set) != 2 || set[0].Reason != exchange.QuarantineInvalid || set[1].Reason != exchange.QuarantineInvalid {
		t.Errorf("set aside: %+v, %v", set, err)
	}
}

// Each begin of a payout notices a possible sender who was put on the deny list after the screening, and then changes
// nothing. The crypto can be refunded.
func TestDeniedAfterTheScreening(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	m := x.to("tx", x.order.Price.Crypto)
	m.Others = []string{decoy}
	d := x.final(t, m)
	x.take(t, d, exchange.TakenExact)
	x.screened(t, d, exchange.VerdictClear)
	by := storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleAdmin))
	for try, address := range []string{stranger, decoy} {
		before := x.payout(t)
		line := x.deny(t, address)
		_, err := x.begin(ctx, x.s, try)
		wantFault(t, err, exchange.CodeStateConflict)
		if p := x.payout(t); !errors.Is(err, exchange.ErrUncleared) || p.Status != before.Status || p.Version != before.Version {
			t.Errorf("try %d, with %s denied: %v; the payout is %s", try, address, err, p.Status)
		}
		x.wantAsked(t, stranger, decoy)
		if err := storetest.Agreed(t, x.s)(x.s.ProposeUndeny(ctx, line.ID, by)); err != nil {
			t.Fatal(err)
		}
		x.refused(t, x.begun(t, try)) // the next try begins with a payout that was refused
	}
	x.deny(t, decoy)
	if _, err := x.begin(ctx, x.s, 2); !errors.Is(err, exchange.ErrUncleared) {
		t.Errorf("the third try: %v", err)
	}
	x.screened(t, d, exchange.VerdictHit)
	x.opensRefund(t)
}

// The database refuses it too.
func TestDatabaseLooksAtTheDenyListAgain(t *testing.T) {
	t.Parallel()
	x := owing(t)
	x.refused(t, x.begun(t, 1))
	x.deny(t, stranger)
	err := exec(t, x, `UPDATE order_payouts SET status = 'processing', version = version + 1`)
	if err == nil || !strings.Contains(err.Error(), "not cleared by a screening") {
		t.Errorf("the payout of a denied sender's crypto begins: %v", err)
	}
}

// The same applies to a bank payout.
func TestDeniedBeforeThePaymentByBank(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), banking(t)
	x.unpaid(t)
	x.deny(t, stranger)
	if _, err := x.s.BeginBankPayout(ctx, x.order.ID); !errors.Is(err, exchange.ErrUncleared) || x.payout(t).Status != exchange.PayoutRefused {
		t.Errorf("%v; the payout is %s", err, x.payout(t).Status)
	}
}

// The deny list may name the token account that the money left instead of its owner. It is screened like a sender, also when it
// comes to the list after a clear screening.
func TestDeniedTokenAccountOfASender(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"before the screening": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			m := x.to("tx", x.order.Price.Crypto)
			m.Accounts = []string{bystander}
			x.seen(t, m)
			m.Accounts = []string{decoy}
			d := x.final(t, m)
			if !slices.Equal(d.Accounts, m.Accounts) {
				t.Errorf("it left the accounts %v", d.Accounts)
			}
			x.take(t, d, exchange.TakenExact)
			x.wantAsked(t, stranger)
			if !before {
				x.screened(t, d, exchange.VerdictClear)
				x.wantAsked(t)
			}
			x.deny(t, decoy)
			x.wantAsked(t, stranger, decoy)
			if _, err := x.begin(t.Context(), x.s, 1); err == nil {
				t.Error("the order is paid out, with a denied account of its crypto's sender")
			}
		})
	}
}

package store_test

import (
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// The others who may have sent what stranger seems to have sent.
const (
	decoy     = "Tdecoy00000000000000000000000000000"
	bystander = "Tbystander0000000000000000000000000"
)

// screened records one word about all who may have sent a deposit.
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

// wantAsked expects who is to be asked about, in order.
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

// Where a chain does not tell who paid whom, everybody who may have sent a deposit is kept with it, as its last block says,
// and nobody is paid before there is a clear word about all of them. Wallets of ours need none.
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
		t.Error("the order is paid out, with a hit against one who may have sent its crypto")
	}
	x.screened(t, d, exchange.VerdictClear, exchange.VerdictClear)
	x.wantAsked(t)
	x.begun(t, 1)
}

// A wallet of ours that seems to have sent a deposit is no reason to ask about nobody else.
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

// More senders than a transaction can have, and addresses that are none, are set aside.
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

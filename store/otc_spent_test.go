package store_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// typed is what officers say of money that no line shows.
func (d otcDesk) typed(amount, reference string) exchange.OTCStep {
	return exchange.OTCStep{Received: kes(amount), ValueDate: d.today(), Reference: reference, ReferenceAgain: reference}
}

// agreed is a deposit whose money two officers typed.
func (d otcDesk) agreed(t *testing.T, amount, reference string) exchange.OTCDeposit {
	t.Helper()
	o := d.open(t, amount)
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCConfirm, o.ID, d.typed(amount, reference), d.one)
	return d.do(t, exchange.IntendOTCConfirm, o.ID, d.typed(amount, reference), d.two)
}

// A reference that was typed is spent, whatever becomes of its deposit: its money is booked.
func TestATypedReferenceIsSpentOnce(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.agreed(t, "900", "FT1")
	d.do(t, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "a court's order"}, d.treasury)
	wantBalance(t, d.s, suspense(), "900", "0")
	again := d.open(t, "900")
	d.do(t, exchange.IntendOTCClaim, again.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCConfirm, again.ID, d.typed("900", "FT1"), d.one)
	// Its line is the first deposit's, although it names the second one.
	d.shown(t, d.paid("FT1", again.Reference, "900"))
	if l := d.line(t, "FT1"); l.ObjectID != o.ID {
		t.Errorf("the line is %+v", l)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "900", "0")
	wantBooks(t, d.s)
}

// Money of a line about which an officer decided is not typed once more, and no officer decides about money that two have typed.
func TestALineIsSpentOnce(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	ctx := t.Context()
	d.shown(t, d.paid("FT1", "no reference", "900"))
	credit := func(l exchange.StatementLine) error {
		_, _, err := d.s.DecideException(ctx, exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: l.ExceptionID, Verdict: exchange.ExcCredited, MerchantID: d.merchant.ID, Reason: "theirs"}, d.boss)
		return err
	}
	l := d.line(t, "FT1")
	if err := credit(l); err != nil {
		t.Fatal(err)
	}
	o := d.open(t, "900")
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCConfirm, o.ID, d.typed("900", "FT1"), d.one)

	d.shown(t, d.paid("FT2", "no reference", "800"))
	o = d.agreed(t, "800", "FT2")
	if err := credit(d.line(t, "FT2")); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("money that is a deposit's is credited to somebody: %v", err)
	}
	if _, err := d.s.MatchLines(ctx); err != nil {
		t.Fatal(err)
	}
	if l := d.line(t, "FT2"); l.ObjectID != o.ID {
		t.Errorf("the line is %+v", l)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "1700", "0")
	wantBooks(t, d.s)
}

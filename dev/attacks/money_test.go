package attacks

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
)

// D3: officers looked at one transfer at a time, so that any sum left in parts. Now what leaves within a day counts together.
func TestD3_ManySmallTransfers(t *testing.T) {
	w := openBeside(t)
	vendor := w.As(t, simba)
	to := []string{testbed.NewAddress(t), testbed.NewAddress(t)}
	first := testbed.Send(t, vendor, "900", map[string]any{"address": to[0]}) // worth 135,000 shillings; one officer above 200,000
	testbed.Arrives(t, vendor, first.ID, "completed")
	second := testbed.Send(t, vendor, "900", map[string]any{"address": to[1]})
	now := testbed.Arrives(t, w.Officer(t), second.ID, "pending_approval")
	if now.Required != 1 {
		t.Errorf("the second transfer needs %d officers", now.Required)
	}
	w.got(t, to[0], "900")
	w.got(t, to[1], "0")
	if err := testbed.Approve(t, w.Officer(t), now); err != nil {
		t.Fatal(err)
	}
	testbed.Arrives(t, vendor, second.ID, "completed")
	w.got(t, to[1], "900")
}

// D6: anybody who knew a sale's address ended it with a cent, or repriced and paid it with another amount, and the seller's crypto
// became an exception. Now what does not fit waits while the sale may still be paid, and the buyer learns the address afterwards.
func TestD6_OthersMoneyDecidesNothing(t *testing.T) {
	w := openBeside(t)
	seller, phone := w.Amina(t), testbed.NewPhone()
	o := w.sells(t, seller, phone)
	if seen := w.order(t, w.As(t, demo.VendorEmail), o.ID); seen.Escrow.String != "" || seen.WalletAddress == o.Escrow.String {
		t.Errorf("the buyer sees the address before anything came to it: %+v", seen)
	}
	w.pays(t, o, "0.01")
	w.pays(t, o, "7")
	testbed.Eventually(t, "both are final", func() error {
		if n := w.count(t, `SELECT count(*) FROM chain_deposits WHERE to_address = $1 AND status = 'final'`, o.Escrow.String); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if now := w.order(t, seller, o.ID); now.Status != "pending" || now.CryptoAmount != o.CryptoAmount || now.FiatAmount != o.FiatAmount {
		t.Errorf("others' money made %s of %s for KES %s into %s of %s for KES %s", o, o.CryptoAmount, o.FiatAmount, now, now.CryptoAmount, now.FiatAmount)
	}
	w.paidTo(t, phone)
	w.pays(t, o, sold)
	w.completes(t, seller, o.ID)
	w.paidTo(t, phone, paid)
}

// D8: what officers were asked about left under another name: a subvendor's offer at a shilling, and sales out of a custodial wallet.
// Now an offer stays near the market, and a sale from a wallet counts with all else that leaves.
func TestD8_AroundTheOfficers(t *testing.T) { //nolint:tparallel // the parts follow each other
	w := openBeside(t)
	t.Run("an offer at a shilling", func(t *testing.T) {
		accomplice := w.As(t, "nairobi@kivuko.example")
		in := map[string]any{
			"offer_type": "SELL", "asset": "USDT", "network": "tron", "usdt_amount": "500", "rate": "1", "min_order": "1", "max_order": "500", "description": "a gift",
		}
		var offer struct {
			ID uuid.UUID `json:"id"`
		}
		err := accomplice.Post(t.Context(), auth+"/offers", testbed.Key(), in, &offer)
		if err == nil {
			err = accomplice.Post(t.Context(), auth+"/offers/"+offer.ID.String()+"/publish", testbed.Key(), nil, nil)
		}
		refused(t, "an offer at a shilling", err, http.StatusUnprocessableEntity, "/rate")
	})
	t.Run("sales out of a wallet", func(t *testing.T) {
		seller, wallet := w.As(t, demo.SecondEmail), w.WalletOf(t, demo.SecondEmail, exchange.Tron)
		if err := w.chain().Fund(t.Context(), wallet.Address, money.Must(money.USDT, "1800")); err != nil {
			t.Fatal(err)
		}
		if err := demo.Booked(t.Context(), w.Store, wallet, money.Must(money.USDT, "1800")); err != nil {
			t.Fatal(err)
		}
		in := w.saleOf(t, simba, testbed.NewPhone())
		delete(in, "refund_address")
		in["wallet_id"], in["crypto_amount"] = wallet.ID, "900" // worth 135,000 shillings; one officer above 200,000
		first, err := testbed.Place(t.Context(), seller, in, testbed.Key())
		if err != nil {
			t.Fatal(err)
		}
		second, err := testbed.Place(t.Context(), seller, in, testbed.Key())
		if err != nil {
			t.Fatal(err)
		}
		w.completes(t, seller, first.ID)
		w.until(t, seller, second.ID, "waiting for an officer", func(o testbed.Order) bool { return o.StatusDetail == "approval" })
		if left, err := demo.Held(t.Context(), w.Store, wallet, money.USDT); err != nil || left.Cmp(money.Must(money.USDT, "900")) < 0 {
			t.Errorf("%s are left of 1,800 that one sale of 900 took from: %v", left, err)
		}
	})
}

// D9: switching an account off stopped nothing that was under way. Now it stops each irreversible step.
func TestD9_SwitchedOffUnderWay(t *testing.T) {
	w := openBeside(t)
	phone := testbed.NewPhone()
	email := phone + "@suspects.example"
	id, err := w.Seed().Register(t.Context(), w.Admin(t), demo.Person{Email: email, Phone: "+" + phone, First: "Mtuhumiwa", Last: "Fulani", Role: "customer"})
	if err != nil {
		t.Fatal(err)
	}
	suspect := w.login(t, email)
	o := w.sells(t, suspect, phone)
	active := func(is bool) {
		t.Helper()
		if err := w.Admin(t).Do(t.Context(), http.MethodPatch, auth+"/users/"+id.String(), "", map[string]any{"is_active": is}, nil); err != nil {
			t.Fatal(err)
		}
	}
	active(false)
	w.pays(t, o, sold)
	w.parked(t, o.ID, "momo-inactive_account")
	w.paidTo(t, phone)
	active(true)
	if err := testbed.Insist(t.Context(), w.Officer(t), orders+o.ID.String()+"/retry", testbed.Key(), map[string]any{"note": "the suspicion was wrong"}, nil); err != nil {
		t.Fatal(err)
	}
	w.completes(t, w.login(t, email), o.ID)
	w.paidTo(t, phone, paid)
}

// H5 and B2: a forged result and a forged notice, posted by somebody who read both tokens in an access log, completed a purchase
// that nobody paid. Now one of two sources is one that we ask.
func TestH5_TwoForgedNotices(t *testing.T) {
	w := openBeside(t)
	phone, to := testbed.NewPhone(), testbed.NewAddress(t)
	w.Fault(t, "never", "prompt", phone)
	o := w.buys(t, w.Amina(t), phone, to)
	w.forge(t, o, 0)
	if now := w.order(t, w.Amina(t), o.ID); now.Over() || now.Status != "pending" {
		t.Errorf("two forged notices made the order %s", now)
	}
	// An honest purchase beside it goes from its beginning to its end meanwhile.
	honest := testbed.NewAddress(t)
	w.completes(t, w.Amina(t), w.buys(t, w.Amina(t), testbed.NewPhone(), honest).ID)
	w.got(t, honest, "5")
	if now := w.order(t, w.Amina(t), o.ID); now.Status != "pending" {
		t.Errorf("the forged order is %s", now)
	}
	w.got(t, to, "0")
	w.paidTo(t, phone)
}

// D11: a forged surplus over a payment that was made left as a refund, because the query vouched for a row of any amount. Now it
// stands behind exactly what was asked.
func TestD11_AForgedSurplus(t *testing.T) {
	w := open(t) // it reads the statement, which others set payments aside by
	phone, to := testbed.NewPhone(), testbed.NewAddress(t)
	w.Fault(t, "all_lost", "prompt", phone)
	o := w.buys(t, w.Amina(t), phone, to)
	w.forge(t, o, 200_000)
	w.Trigger(t, testbed.Statement)
	w.completes(t, w.Amina(t), o.ID)
	w.got(t, to, "5")
	w.paidTo(t, phone)
	if n := w.count(t, `SELECT count(*) FROM refunds WHERE order_id = $1`, o.ID); n != 0 {
		t.Errorf("%d refunds were opened for a forged surplus", n)
	}
}

// forge posts a result and a notice of an order's prompt, over the price and a surplus, and waits until both are stored.
func (w *harness) forge(t *testing.T, o testbed.Order, surplus int64) {
	t.Helper()
	p := w.prompt(t, o)
	for address, said := range map[string]any{
		p.CallbackURL: sandbox.ForgedResult(p, p.Amount+surplus),
		w.variable("MOMO_CALLBACK_URL") + "/" + w.variable("MOMO_STANDING_TOKEN") + "/confirmation": sandbox.ForgedNotice(p, p.Amount+surplus),
	} {
		if err := testbed.Call(t.Context(), http.MethodPost, address, said, nil); err != nil {
			t.Fatal(err)
		}
	}
	testbed.Eventually(t, "both notices are stored", func() error {
		if n := w.count(t, `SELECT count(*) FROM momo_callbacks WHERE position(convert_to($1, 'UTF8') in body) > 0`, sandbox.ForgedReceipt(p)); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// D13: "agreed by two" was filled by a migration, at 165 shillings where the market stood at 129. Now it is empty until two agree.
func TestD13_NobodyAgreed(t *testing.T) {
	w := openBeside(t)
	if n := w.count(t, `SELECT count(*) FROM valuations WHERE agreed IS NOT NULL`); n != 0 {
		t.Errorf("%d values are agreed, and no two officers were asked", n)
	}
}

package attacks

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// houseSends has an officer send USDT out of the house's treasury.
func (w *harness) houseSends(t *testing.T, officer *client.Client, usdt string, to map[string]any) testbed.Transfer {
	t.Helper()
	var treasury uuid.UUID
	if err := w.DB.QueryRowContext(t.Context(), `SELECT id FROM wallets WHERE purpose = 'treasury' AND network = 'tron'`).Scan(&treasury); err != nil {
		t.Fatal(err)
	}
	var f testbed.Transfer
	in := map[string]any{"network": "tron", "asset": "USDT", "amount": usdt, "recipient": to, "from_wallet_id": treasury}
	if err := officer.Post(t.Context(), auth+"/transfers", testbed.Key(), in, &f); err != nil {
		t.Fatal(err)
	}
	return testbed.Arrives(t, officer, f.ID, "pending_approval")
}

// H1: transfers within our custody asked nobody at any value, so that one officer emptied the house's treasury into an account of
// its own. Now the house's money always needs another person.
func TestH1_OneOfficerEmptiesTheTreasury(t *testing.T) {
	w := openBeside(t)
	thief, colleague := w.Officer(t), w.As(t, testbed.SecondOfficer)
	wallet := w.WalletOf(t, demo.ThirdEmail, exchange.Tron).Address
	had := w.came(t, wallet)
	inside := map[string]any{"email": demo.ThirdEmail}
	for _, usdt := range []string{"9000", "1"} {
		f := w.houseSends(t, thief, usdt, inside)
		if err := testbed.Approve(t, thief, f); err == nil {
			t.Errorf("who asks for %s USDT of the house's approves it", usdt)
		}
		if usdt == "9000" {
			if err := colleague.Post(t.Context(), auth+"/transfers/"+f.ID.String()+"/reject", testbed.Key(), map[string]any{"digest": f.Digest, "note": "nobody asked for it"}, nil); err != nil {
				t.Fatal(err)
			}
			testbed.Arrives(t, colleague, f.ID, "rejected")
			continue
		}
		w.got(t, wallet, had.String())
		if err := testbed.Approve(t, colleague, f); err != nil {
			t.Fatal(err)
		}
		testbed.Arrives(t, colleague, f.ID, "completed")
	}
	w.got(t, wallet, had.Add(money.Must(money.USDT, "1")).String())
}

// H2 and D7: approvals through the API needed neither a proof nor the digest of what was seen: whoever had an officer's token
// approved what stood there. Now both are demanded at each door.
func TestH2_ApprovalsWithoutAProof(t *testing.T) {
	w := openBeside(t)
	to := testbed.NewAddress(t)
	f, other := w.houseSends(t, w.Officer(t), "1.25", map[string]any{"address": to}), w.houseSends(t, w.Officer(t), "1.75", map[string]any{"address": to})
	stolen := w.login(t, testbed.SecondOfficer).Unproven() // a token of a login by password
	approve := auth + "/transfers/" + f.ID.String() + "/approve"
	refused(t, "an approval without a passkey", stolen.Post(t.Context(), approve, testbed.Key(), map[string]any{"digest": f.Digest}, nil), http.StatusForbidden, "step_up_required")
	officer := w.As(t, testbed.SecondOfficer)
	refused(t, "an approval without a digest", officer.Post(t.Context(), approve, testbed.Key(), map[string]any{}, nil), http.StatusUnprocessableEntity, "/digest")
	if err := officer.Post(t.Context(), approve, testbed.Key(), map[string]any{"digest": other.Digest}, nil); err == nil {
		t.Error("the digest of another transfer approved it")
	}
	if now := testbed.Arrives(t, officer, f.ID, "pending_approval"); now.Given != 0 {
		t.Errorf("%d approvals were counted", now.Given)
	}
	w.got(t, to, "0")
	if err := testbed.Approve(t, officer, f); err != nil {
		t.Fatal(err)
	}
	testbed.Arrives(t, officer, f.ID, "completed")
	w.got(t, to, "1.25")
	if err := officer.Post(t.Context(), auth+"/transfers/"+other.ID.String()+"/reject", testbed.Key(), map[string]any{"digest": other.Digest, "note": "no more"}, nil); err != nil {
		t.Error(err)
	}
}

// D7: the second officer read one address, the first named another, and the approval without a digest took today's: the crypto
// went where the second officer never agreed to. Now the digest of what was seen does not fit what is there.
func TestD7_TheAddressThatNobodyApproved(t *testing.T) {
	w := openBeside(t)
	first, second, phone := w.Officer(t), w.As(t, testbed.SecondOfficer), testbed.NewPhone()
	w.Fault(t, "unregistered", "payout", phone)
	in := w.saleOf(t, demo.VendorEmail, phone)
	delete(in, "refund_address")
	o, err := testbed.Place(t.Context(), w.Amina(t), in, testbed.Key())
	if err != nil {
		t.Fatal(err)
	}
	w.pays(t, o, sold)
	w.parked(t, o.ID, "refund-address")
	seen, another := testbed.NewAddress(t), testbed.NewAddress(t)
	name := func(address string) {
		t.Helper()
		in := map[string]any{"note": "the customer wrote to us", "address": address}
		if err := testbed.Insist(t.Context(), first, orders+o.ID.String()+"/refund", testbed.Key(), in, nil); err != nil {
			t.Fatal(err)
		}
	}
	name(seen)
	w.parked(t, o.ID, "refund-second")
	var refund uuid.UUID
	if err := w.DB.QueryRowContext(t.Context(), `SELECT id FROM refunds WHERE order_id = $1`, o.ID).Scan(&refund); err != nil {
		t.Fatal(err)
	}
	approve := auth + "/refunds/" + refund.String() + "/approve"
	asSeen := testbed.Seen(t, second, approve)
	name(another)
	testbed.Eventually(t, "the other address", func() error {
		var now string
		if err := w.DB.QueryRowContext(t.Context(), `SELECT address FROM refunds WHERE id = $1`, refund).Scan(&now); err != nil {
			return err
		}
		if now != another {
			return fmt.Errorf("it is still %s", now)
		}
		return nil
	})
	refused(t, "an approval without a digest", second.Post(t.Context(), approve, testbed.Key(), map[string]any{}, nil), http.StatusUnprocessableEntity, "/digest")
	if err := second.Post(t.Context(), approve, testbed.Key(), asSeen, nil); err == nil {
		t.Error("the approval of one address counted for another")
	}
	w.got(t, another, "0")
	if err := testbed.Insist(t.Context(), second, approve, testbed.Key(), testbed.Seen(t, second, approve), nil); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, "the crypto goes back", func() error {
		if came := w.came(t, another); came.IsZero() {
			return fmt.Errorf("it has not come")
		}
		return nil
	})
	w.got(t, another, sold)
	w.got(t, seen, "0")
	w.paidTo(t, phone)
}

// D10: one officer gave money back as often as it liked, each time below the value from which a second one is asked. Now what one
// gave back alone within a day counts with the next.
func TestD10_RefundsByOneInParts(t *testing.T) {
	w := open(t) // the value is everybody's
	refunds := func(value string) map[string]any {
		return map[string]any{"approvals": map[string]any{"refund": map[string]any{"one_above": value, "two_above": "2000000"}}}
	}
	w.HouseLimits(t, refunds("1000"))
	defer w.HouseLimits(t, refunds("200000"))
	const late = 647 // 5 USDT at 129.355
	officer := w.Officer(t)
	give := func(phone string) testbed.Waits { // what a payer paid after the order had ended
		t.Helper()
		w.Fault(t, "late_success_1032", "prompt", phone)
		o := w.until(t, w.Amina(t), w.buys(t, w.Amina(t), phone, testbed.NewAddress(t)).ID, "over", testbed.Order.Over)
		w.Release(t)
		var exception uuid.UUID
		testbed.Eventually(t, "the payment is set aside", func() error {
			return w.DB.QueryRowContext(t.Context(), `SELECT id FROM payment_exceptions WHERE order_id = $1 AND status = 'open'`, o.ID).Scan(&exception)
		})
		var waits testbed.Waits
		err := testbed.Insist(t.Context(), officer, auth+"/payment-exceptions/"+exception.String()+"/refund", testbed.Key(), map[string]any{"note": "it came too late"}, &waits)
		if err != nil {
			t.Fatal(err)
		}
		return waits
	}
	back := func(phone string) {
		t.Helper()
		testbed.Eventually(t, "the money goes back", func() error {
			if n := len(testbed.PaidOut(w.Books(t), phone)); n == 0 {
				return fmt.Errorf("it has not")
			}
			return nil
		})
		w.paidTo(t, phone, late)
	}
	one, two := testbed.NewPhone(), testbed.NewPhone()
	if waits := give(one); len(waits.Changes) != 0 {
		t.Errorf("the first refund waits for %+v", waits)
	}
	back(one)
	waits := give(two)
	if len(waits.Changes) != 1 {
		t.Fatalf("the second refund waits for %+v", waits)
	}
	confirm := auth + "/approvals/changes/" + waits.Changes[0].ID.String() + "/confirm"
	if err := officer.Post(t.Context(), confirm, testbed.Key(), map[string]any{"digest": waits.Changes[0].Digest}, nil); err == nil {
		t.Error("who asked for the second refund confirmed it")
	}
	w.paidTo(t, two)
	if err := testbed.Insist(t.Context(), w.As(t, testbed.SecondOfficer), confirm, testbed.Key(), map[string]any{"digest": waits.Changes[0].Digest}, nil); err != nil {
		t.Fatal(err)
	}
	back(two)
}

// D12: one admin took an address off the deny list, and paid it. Now a second officer has to agree.
func TestD12_OneAdminLoosens(t *testing.T) {
	w := openBeside(t)
	admin, vendor, to := w.Admin(t), w.As(t, demo.VendorEmail), testbed.NewAddress(t)
	var denied struct {
		ID uuid.UUID `json:"id"`
	}
	if err := admin.Post(t.Context(), auth+"/deny-list", testbed.Key(), map[string]any{"network": "tron", "address": to, "note": "court order 7"}, &denied); err != nil {
		t.Fatal(err)
	}
	var waits testbed.Waits
	if err := admin.Do(t.Context(), http.MethodDelete, auth+"/deny-list/"+denied.ID.String(), "", nil, &waits); err != nil || len(waits.Changes) != 1 {
		t.Fatalf("the removal waits for %+v, %v", waits, err)
	}
	f := testbed.Send(t, vendor, "1", map[string]any{"address": to})
	testbed.Arrives(t, vendor, f.ID, "blocked")
	confirm := auth + "/approvals/changes/" + waits.Changes[0].ID.String() + "/confirm"
	if err := admin.Post(t.Context(), confirm, testbed.Key(), map[string]any{"digest": waits.Changes[0].Digest}, nil); err == nil {
		t.Error("who asked for the removal confirmed it")
	}
	w.got(t, to, "0")
	w.Agree(t, waits)
	f = testbed.Send(t, vendor, "1.5", map[string]any{"address": to})
	testbed.Arrives(t, vendor, f.ID, "completed")
	w.got(t, to, "1.5")
}

// B8: one admin moved the price by five steps of 4.8 %, and a fixed fee of 986 was in force at once. Now a rate of one person is near
// the source's, and without a source takes two; a second officer agrees to fees, and a transfer names the highest that its sender
// pays.
func TestB8_OneAdminMovesPricesAndFees(t *testing.T) {
	w := openBeside(t)
	admin := w.Admin(t)
	for _, mid := range []string{"129", "129.1", "135.1"} {
		var waits testbed.Waits
		if err := admin.Post(t.Context(), auth+"/pricing/fx-rates", testbed.Key(), map[string]any{"base": "USDC", "mid": mid}, &waits); err != nil {
			t.Fatal(err)
		}
		if len(waits.Changes) != 1 {
			t.Errorf("one admin entered %s", mid)
		}
	}
	var entered int
	if err := w.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM fx_rates WHERE base = 'USDC'`).Scan(&entered); err != nil || entered != 0 {
		t.Errorf("%d rates are in force, %v", entered, err)
	}

	var fee testbed.Waits
	err := admin.Post(t.Context(), auth+"/pricing/profiles", testbed.Key(), map[string]any{"scope": "transfer", "asset": "USDT", "fixed": "986", "basis_points": 0}, &fee)
	if err != nil || len(fee.Changes) != 1 {
		t.Fatalf("the fee waits for %+v, %v", fee, err)
	}
	to, sender := testbed.NewAddress(t), w.As(t, demo.VendorEmail)
	var f testbed.Transfer
	body := map[string]any{"network": "tron", "asset": "USDT", "amount": "2", "max_fee": "0", "recipient": map[string]any{"address": to}}
	if err := sender.Post(t.Context(), auth+"/transfers", testbed.Key(), body, &f); err != nil {
		t.Fatalf("a transfer that pays no fee: %v", err)
	}
	testbed.Arrives(t, sender, f.ID, "completed")
	w.got(t, to, "2")
	reject := auth + "/approvals/changes/" + fee.Changes[0].ID.String() + "/reject"
	if err := w.Officer(t).Post(t.Context(), reject, testbed.Key(), map[string]any{"digest": fee.Changes[0].Digest, "note": "far too much"}, nil); err != nil {
		t.Error(err)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

const otcPath = "/api/v1/auth/otc/deposits"

// otcDeposit is an OTC deposit as its readers see it.
type otcDeposit struct {
	ID        uuid.UUID  `json:"id"`
	Status    string     `json:"status"`
	Detail    string     `json:"status_detail"`
	Reference string     `json:"payment_reference"`
	Line      *uuid.UUID `json:"statement_line_id"`
	Crypto    *string    `json:"usdt_amount"`
	Transfer  *uuid.UUID `json:"transfer_id"`
	Proof     *string    `json:"proof_url"`
	Receipt   *string    `json:"momo_receipt_number"`
	Value     *string    `json:"value_date"`
	PayTo     *struct {
		Reference string `json:"payment_reference"`
	} `json:"pay_to"`
}

// TestDepositsAtTheDesk has a merchant pay by bank, for shillings and for crypto, have a deposit rejected, and give a draft up. Four people carry each deposit
// to its end.
func TestDepositsAtTheDesk(t *testing.T) {
	w := openBeside(t)
	w.rate(t)
	t.Run("shillings", func(t *testing.T) { depositedShillings(t, w) })
	t.Run("crypto", func(t *testing.T) { depositedForCrypto(t, w) })
	t.Run("rejected", func(t *testing.T) { rejectedDeposit(t, w) })
	t.Run("given up", func(t *testing.T) { givenUpDraft(t, w) })
	w.invariants(t)
	w.booksAgree(t)
}

// payIntoDesk opens a deposit of the vendor's, by bank unless another method is named, with a draft or at once.
func (w *harness) payIntoDesk(t *testing.T, path string, in map[string]any) (d otcDeposit) {
	t.Helper()
	if in["method"] == nil {
		in["method"] = "bank"
	}
	if err := insist(t.Context(), w.as(t, demo.VendorEmail), path, uuid.NewString(), in, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// at carries out a verb on a deposit.
func (w *harness) at(t *testing.T, c *client.Client, d otcDeposit, verb string, in map[string]any) (now otcDeposit) {
	t.Helper()
	if in == nil {
		in = map[string]any{}
	}
	if err := insist(t.Context(), c, otcPath+"/"+d.ID.String()+"/"+verb, uuid.NewString(), in, &now); err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
	return now
}

// depositIs waits until a deposit is as wanted.
func (w *harness) depositIs(t *testing.T, id uuid.UUID, what string, is func(otcDeposit) bool) (d otcDeposit) {
	t.Helper()
	eventually(t, "the deposit "+what, func() error {
		if err := w.as(t, demo.DeskEmail).Get(t.Context(), otcPath+"/"+id.String(), &d); err != nil {
			return err
		}
		if !is(d) {
			return fmt.Errorf("it is %s (%s)", d.Status, d.Detail)
		}
		return nil
	})
	return d
}

// shows brings in a bank's statement with one payment of shillings, by an officer who takes no other part in deposits.
func (w *harness) shows(t *testing.T, d otcDeposit, shillings string) {
	t.Helper()
	if err := demo.PaidAtBank(t.Context(), w.as(t, demo.SecondTreasuryEmail), d.Reference, shillings); err != nil {
		t.Fatal(err)
	}
	w.trigger(t, testbed.Matching)
}

// reviewed has the officer claim a deposit and confirm it by the line that a statement shows.
func (w *harness) reviewed(t *testing.T, d otcDeposit, shillings string) otcDeposit {
	t.Helper()
	officer := w.as(t, demo.DeskEmail)
	w.shows(t, d, shillings)
	d = w.depositIs(t, d.ID, "has its line", func(d otcDeposit) bool { return d.Line != nil })
	w.at(t, officer, d, "claim", nil)
	return w.at(t, officer, d, "confirm", map[string]any{
		"received_amount": shillings, "value_date": time.Now().In(nairobi).Format(time.DateOnly), "statement_line_id": d.Line,
	})
}

// depositedShillings goes from a draft with a proof to the audit.
func depositedShillings(t *testing.T, w *harness) otcDeposit {
	vendor := w.as(t, demo.VendorEmail)
	d := w.payIntoDesk(t, otcPath+"/draft", map[string]any{"requested_asset": "KES", "fiat_amount": "2500"})
	d = w.at(t, vendor, d, "submit", nil)
	if d.PayTo == nil || d.PayTo.Reference != d.Reference || d.Status != "pending" {
		t.Fatalf("submitted %+v", d)
	}
	if err := vendor.Upload(t.Context(), otcPath+"/"+d.ID.String()+"/proof", "", "slip.png", redSlip(t), &d); err != nil {
		t.Fatal(err)
	}
	if d.Proof == nil || !strings.HasPrefix(*d.Proof, "/otc-deposits-proof/"+d.ID.String()) {
		t.Errorf("the proof is at %v", d.Proof)
	}
	w.at(t, w.as(t, demo.DeskEmail), d, "claim", nil)
	w.at(t, w.as(t, demo.DeskEmail), d, "request-info", map[string]any{"info_request": "Which account paid?"})
	w.at(t, vendor, d, "provide-info", map[string]any{"info_reply": "Our own"})
	w.at(t, w.as(t, demo.DeskEmail), d, "release", nil)
	if d = w.reviewed(t, d, "2500"); d.Status != "confirmed" {
		t.Fatalf("confirmed %+v", d)
	}
	if d = w.at(t, w.operator(t), d, "settle", nil); d.Status != "credited" {
		t.Errorf("settled %+v", d)
	}
	if lines := w.lines(t, "otc_deposit:"+d.ID.String()+":settled"); !equalAmounts(lines, map[string]string{"orders_in_flight": "2500.00", "fiat_balance": "2500.00"}) {
		t.Errorf("it is booked as %v", lines)
	}
	return w.at(t, w.admin(t), d, "audit", nil)
}

// depositedForCrypto has the treasury send the crypto, which another officer approves.
func depositedForCrypto(t *testing.T, w *harness) otcDeposit {
	n := w.tronNode()
	d := w.payIntoDesk(t, otcPath, map[string]any{"requested_asset": "USDT", "requested_network": n.Network, "fiat_amount": "1300"})
	if d = w.reviewed(t, d, "1300"); d.Status != "confirmed" || d.Crypto == nil {
		t.Fatalf("confirmed %+v", d)
	}
	w.at(t, w.operator(t), d, "settle", nil)
	return w.at(t, w.admin(t), w.sold(t, d), "audit", nil)
}

// sold has another officer approve the transfer of a deposit's crypto, and waits until it has come, once.
func (w *harness) sold(t *testing.T, d otcDeposit) otcDeposit {
	t.Helper()
	n := w.tronNode()
	d = w.depositIs(t, d.ID, "has its transfer", func(d otcDeposit) bool { return d.Transfer != nil })
	path := "/api/v1/auth/transfers/" + d.Transfer.String()
	eventually(t, "the transfer is approved", func() error {
		return w.as(t, secondOfficer).Decide(t.Context(), path+"/approve", uuid.NewString(), nil, nil)
	})
	d = w.depositIs(t, d.ID, "is credited", func(d otcDeposit) bool { return d.Status == "credited" })
	var f sent
	if err := w.operator(t).Get(t.Context(), path, &f); err != nil {
		t.Fatal(err)
	}
	cameOnce(t, n, w.walletOf(t, demo.VendorEmail, n.Network).Address, f.TxHash, money.Must(money.USDT, *d.Crypto))
	return d
}

// givenUpDraft is a draft that its merchant edits and gives up.
func givenUpDraft(t *testing.T, w *harness) otcDeposit {
	vendor := w.as(t, demo.VendorEmail)
	d := w.payIntoDesk(t, otcPath+"/draft", map[string]any{"requested_asset": "KES"})
	if err := vendor.Do(t.Context(), "PATCH", otcPath+"/"+d.ID.String()+"/draft", "", map[string]any{"fiat_amount": "10"}, &d); err != nil {
		t.Fatal(err)
	}
	if d = w.at(t, vendor, d, "cancel", map[string]any{"reason": "paid otherwise"}); d.Status != "cancelled" {
		t.Errorf("given up %+v", d)
	}
	return d
}

// rejectedDeposit is one whose money never came, which the officer who claimed it rejects.
func rejectedDeposit(t *testing.T, w *harness) otcDeposit {
	d := w.payIntoDesk(t, otcPath, map[string]any{"requested_asset": "KES", "fiat_amount": "75"})
	officer := w.as(t, demo.DeskEmail)
	w.at(t, officer, d, "claim", nil)
	if d = w.at(t, officer, d, "reject", map[string]any{"rejection_reason": "nothing came"}); d.Status != "rejected" {
		t.Errorf("rejected %+v", d)
	}
	return d
}

// deposited records deposits at the desk.
func (r *recorder) deposited(t *testing.T) {
	w := r.harness
	w.rate(t)
	for name, play := range map[string]func(*testing.T, *harness) otcDeposit{
		"otc_deposit_shillings": depositedShillings, "otc_deposit_crypto": depositedForCrypto, "otc_deposit_rejected": rejectedDeposit,
		"otc_deposit_given_up": givenUpDraft, "otc_deposit_prompted": promptedDeposit, "otc_deposit_by_hand": depositByHand,
	} {
		if r.file(name) == "" {
			continue
		}
		r.keep(t, workflows.OTCDepositID(play(t, w).ID), name)
	}
}

package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// banking is a sale of 10 USDT whose payout of 1293 KES by bank is in the treasury's queue.
func banking(t *testing.T) *sale {
	t.Helper()
	ctx, s := t.Context(), started(t)
	m := storetest.NewSellers(t, s)
	o := m.RemittanceToBank(t, s)
	l, err := s.EscrowLease(ctx, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Wallet(ctx, store.Everything(), l.WalletID)
	if err != nil {
		t.Fatal(err)
	}
	x := &sale{s: s, m: m, order: o, e: w, block: 100}
	x.owe(t)
	twice(t, samePayout, func() (exchange.OrderPayout, error) { return s.BeginBankPayout(ctx, o.ID) })
	return x
}

// word is an officer's confirmation that the bank has paid on the day of the order.
func (x *sale) word(t *testing.T, officer exchange.User, reference string) exchange.BankConfirmation {
	t.Helper()
	y, m, d := x.order.CreatedAt.In(time.FixedZone("EAT", 3*60*60)).Date()
	return exchange.BankConfirmation{
		ID: storetest.NewID(t), OrderID: x.order.ID, OfficerID: officer.ID, Reference: reference, PaidOn: time.Date(y, m, d, 0, 0, 0, 0, time.UTC), Amount: kes("1293"),
	}
}

func (x *sale) confirm(t *testing.T, c exchange.BankConfirmation) (bool, error) {
	t.Helper()
	return x.s.SaveBankConfirmation(t.Context(), c, exchange.Principal{UserID: c.OfficerID, Role: exchange.RoleTreasury, RequestID: "test"})
}

func (x *sale) wantBank(t *testing.T, posted, held string) {
	t.Helper()
	wantBalance(t, x.s, storetest.BankAccount(t, x.s).Ledger(), posted, held)
	wantBooks(t, x.s)
}

// alone makes one officer insufficient for the payouts of these tests.
func (x *sale) alone(t *testing.T) {
	t.Helper()
	storetest.Exec(t, x.s, `UPDATE approval_rules SET one_above = 1000, two_above = 1000 WHERE object_type = 'bank_payout'`)
}

func (x *sale) bankPayout(t *testing.T, status exchange.PayoutStatus, detail string, words int) exchange.BankPayout {
	t.Helper()
	b, err := x.s.BankPayout(t.Context(), x.order.ID)
	if err != nil || b.Status != status || b.WaitsFor() != detail || len(b.Confirmations) != words {
		t.Fatalf("the payment by bank is %s (%s) with %d confirmations, want %s (%s) with %d; %v", b.Status, b.WaitsFor(), len(b.Confirmations), status, detail, words, err)
	}
	list, total, err := x.s.BankPayouts(t.Context(), status, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || len(list) != 1 || list[0].OrderID != x.order.ID || list[0].Order.Beneficiary.AccountNumber != "0011223344" {
		t.Errorf("the list of %s has %d: %+v, %v", status, total, list, err)
	}
	return b
}

// Below the limit one officer's confirmation completes the order, out of the house's money at its bank.
func TestOneOfficerPaysByBank(t *testing.T) {
	t.Parallel()
	x := banking(t)
	x.wantBank(t, "300000", "1293")
	if b := x.bankPayout(t, exchange.PayoutProcessing, exchange.WaitBank, 0); b.SecondNeeded || b.Amount.String() != "1293.00" || b.BankID != storetest.BankAccount(t, x.s).ID {
		t.Errorf("to be paid is %+v", b)
	}
	c := x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT26325XYZ")
	for range 2 {
		if done, err := x.confirm(t, c); err != nil || !done {
			t.Fatalf("confirmed: %t, %v", done, err)
		}
	}
	x.bankPayout(t, exchange.PayoutCompleted, exchange.WaitNothing, 1)
	o := x.now(t)
	if o.Status != exchange.OrderCompleted || o.PaymentTxnID != "FT26325XYZ" || o.MomoReceipt != "" {
		t.Errorf("the order is %s with %q", o.Status, o.PaymentTxnID)
	}
	x.wantBank(t, "298707", "0")
	wantBalance(t, x.s, exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES), "298706.45", "257416.45")
	wantBalance(t, x.s, exchange.House(exchange.AccRounding, money.KES), "0.55", "0")
	_, err := x.confirm(t, x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT26325XYZ"))
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = x.s.ProposeBankPayoutRefusal(t.Context(), x.order.ID, "no", storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleTreasury)))
	wantFault(t, err, exchange.CodeStateConflict)
}

// Above it two officers have to confirm the same payment. The officer who was wrong confirms again.
func TestTwoOfficersPayByBank(t *testing.T) {
	t.Parallel()
	x := banking(t)
	x.alone(t)
	one, two := storetest.User(t, x.s, exchange.RoleTreasury), storetest.User(t, x.s, exchange.RoleAdmin)
	if done, err := x.confirm(t, x.word(t, one, "TYPO")); err != nil || done {
		t.Fatalf("by one officer: %t, %v", done, err)
	}
	if b := x.bankPayout(t, exchange.PayoutProcessing, exchange.WaitBankSecond, 1); !b.SecondNeeded {
		t.Error("no second officer is needed")
	}
	if o := x.now(t); o.StatusDetail != exchange.WaitBankSecond {
		t.Errorf("the order waits for %s", o.StatusDetail)
	}
	_, err := x.confirm(t, x.word(t, one, "TYPO"))
	wantFault(t, err, exchange.CodeConflict)
	_, err = x.confirm(t, x.word(t, two, "FT1"))
	wantFault(t, err, exchange.CodeConflict)
	_, err = x.s.ProposeBankPayoutRefusal(t.Context(), x.order.ID, "not mine", storetest.PrincipalOf(two))
	wantFault(t, err, exchange.CodeConflict)
	if done, err := x.confirm(t, x.word(t, one, "FT1")); err != nil || done {
		t.Fatalf("the same officer again: %t, %v", done, err)
	}
	x.bankPayout(t, exchange.PayoutProcessing, exchange.WaitBankSecond, 1)
	// Who writes it in another way names the same payment.
	if done, err := x.confirm(t, x.word(t, two, "ft - 1")); err != nil || !done {
		t.Fatalf("by two officers: %t, %v", done, err)
	}
	if b := x.bankPayout(t, exchange.PayoutCompleted, exchange.WaitNothing, 2); b.Receipt != "FT1" {
		t.Errorf("the reference of the payment is %q", b.Receipt)
	}
	x.wantBank(t, "298707", "0")
}

// One payment of the bank completes one order, however its reference is written.
func TestOneBankPaymentPaysOneOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewSellers(t, s)
	officer := storetest.User(t, s, exchange.RoleTreasury)
	var sales [2]*sale
	for i := range sales {
		sales[i] = &sale{s: s, m: m, order: storetest.TakeCrypto(t, s, m.RemittanceToBank(t, s))}
		if _, err := s.BeginBankPayout(t.Context(), sales[i].order.ID); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := sales[0].confirm(t, sales[0].word(t, officer, "FT26325-ABC-1")); err != nil || !done {
		t.Fatalf("confirmed: %t, %v", done, err)
	}
	for _, same := range []string{"FT26325-ABC-1", "FT26325ABC1", "ft26325 abc 1", "FT26325/ABC.1"} {
		_, err := sales[1].confirm(t, sales[1].word(t, officer, same))
		wantFault(t, err, exchange.CodeConflict)
	}
}

// A confirmation that contradicts the order, or of an unauthorised user, is refused.
func TestBankConfirmationsThatDontFit(t *testing.T) {
	t.Parallel()
	x := banking(t)
	officer := storetest.User(t, x.s, exchange.RoleTreasury)
	good := x.word(t, officer, "FT1")
	for name, bad := range map[string]func(*exchange.BankConfirmation){
		"/amount":  func(c *exchange.BankConfirmation) { c.Amount = kes("1292") },
		"/paid_on": func(c *exchange.BankConfirmation) { c.PaidOn = c.PaidOn.AddDate(0, 0, 2) },
	} {
		c := good
		bad(&c)
		if _, err := x.confirm(t, c); exchange.CodeOf(err) != exchange.CodeInvalid || fieldOf(err) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	early := good
	early.PaidOn = early.PaidOn.AddDate(0, 0, -2)
	if _, err := x.confirm(t, early); fieldOf(err) != "/paid_on" {
		t.Errorf("before the order was there: %v", err)
	}
	for _, stranger := range []exchange.User{x.m.Customer, x.m.Vendor, storetest.User(t, x.s, exchange.RoleOTCOfficer)} {
		c := good
		c.OfficerID = stranger.ID
		_, err := x.confirm(t, c)
		wantFault(t, err, exchange.CodeForbidden)
	}
	if _, err := x.confirm(t, good); err != nil {
		t.Fatal(err)
	}
	good.Reference = "FT2"
	_, err := x.confirm(t, good)
	wantFault(t, err, exchange.CodeConflict)
	momo := owing(t)
	c := good
	c.ID, c.OrderID, c.OfficerID = storetest.NewID(t), momo.order.ID, storetest.User(t, momo.s, exchange.RoleTreasury).ID
	_, err = momo.confirm(t, c)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = momo.s.BeginBankPayout(t.Context(), momo.order.ID)
	wantFault(t, err, exchange.CodeStateConflict)
}

// A house with too little at its bank pays nothing, and stores nothing.
func TestBankPayoutWaitsForMoney(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), banking(t)
	x.unpaid(t)
	take := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: storetest.NewID(t), Key: "elsewhere", Account: storetest.BankAccount(t, x.s).Ledger(), Amount: kes("299000"), ObjectType: "test", ObjectID: x.order.ID,
	}}}}
	if err := x.s.Post(ctx, take); err != nil {
		t.Fatal(err)
	}
	_, err := x.s.BeginBankPayout(ctx, x.order.ID)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	if p := x.payout(t); p.Status != exchange.PayoutRefused {
		t.Errorf("the payout is %s", p.Status)
	}
}

// Concurrent confirmations complete the order once.
func TestRaceOfficersAtTheBank(t *testing.T) {
	t.Parallel()
	x := banking(t)
	x.alone(t)
	words := make([]exchange.BankConfirmation, 4)
	for i := range words {
		words[i] = x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT1")
	}
	codes := atOnce(len(words), func(i int) error {
		_, err := x.confirm(t, words[i])
		return err
	})
	if codes[""] != 2 || codes[exchange.CodeStateConflict] != 2 {
		t.Errorf("outcomes %v", codes)
	}
	x.bankPayout(t, exchange.PayoutCompleted, exchange.WaitNothing, 2)
	x.wantBank(t, "298707", "0")
}

// The guards of the tables enforce the same as the code.
func TestForbiddenRowsOfBankPayouts(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), banking(t)
	x.alone(t)
	one, two, otc := storetest.User(t, x.s, exchange.RoleTreasury), storetest.User(t, x.s, exchange.RoleTreasury), storetest.User(t, x.s, exchange.RoleOTCOfficer)
	word := func(officer uuid.UUID, reference, amount string) string {
		return `INSERT INTO bank_confirmations (id, order_id, officer_id, reference, paid_on, amount, note, created_at) VALUES (gen_random_uuid(), '` +
			x.order.ID.String() + `', '` + officer.String() + `', '` + reference + `', current_date, ` + amount + `, '', now() + interval '1 day')`
	}
	db := storetest.Owner(t, x.s)
	for _, reference := range []string{"ft1", "FT 1", "FT-1", "FT/1", "F\u00c91", ""} {
		if _, err := db.ExecContext(ctx, word(one.ID, reference, "1293")); sqlState(err) != "23514" {
			t.Errorf("the reference %q is kept as it is: %v", reference, err)
		}
	}
	if _, err := x.confirm(t, x.word(t, one, "ft 1")); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		word(otc.ID, "FT1", "1293"):                       "KV006",
		word(x.m.Customer.ID, "FT1", "1293"):              "KV006",
		word(two.ID, "FT1", "1292"):                       "KV002",
		word(two.ID, "FT2", "1293"):                       "KV002",
		word(one.ID, "FT1", "1293"):                       "23505",
		`UPDATE bank_confirmations SET reference = 'FT3'`: "KV002",
		`DELETE FROM bank_confirmations`:                  "KV002",
		`UPDATE order_payouts SET status = 'completed', receipt = 'FT1', completed_at = now()`:                 "KV006",
		`UPDATE order_payouts SET status = 'refused', refused_code = 'bank'`:                                   "KV001",
		`UPDATE holds SET status = 'released' WHERE id = (SELECT hold_id FROM order_payouts)`:                  "KV002",
		`UPDATE approval_rules SET one_above = 300000 WHERE object_type = 'bank_payout'`:                       "KV006",
		`INSERT INTO approval_rules (object_type, one_above, two_above, updated_at) VALUES ('x', 1, 1, now())`: "23514",
	} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tx.ExecContext(ctx, query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

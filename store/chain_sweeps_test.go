package store_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// taken is a sale whose deposit of 10 USDT is final and taken: the payout of 1293 KES is next.
func taken(t *testing.T) *sale {
	t.Helper()
	x := sold(t)
	d := x.final(t, x.to("deposit", usdt("10")))
	x.order = x.take(t, d, exchange.TakenExact).Order
	if err := x.s.RecordDepositScreening(t.Context(), d.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}}); err != nil {
		t.Fatal(err)
	}
	return x
}

// tries begins a payout of the order.
func (x *sale) tries(t *testing.T) exchange.PaymentAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a, err := x.s.BeginPayout(t.Context(), exchange.OrderObject(x.order.ID), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", Reference: x.order.PaymentReference, CallbackToken: "token-" + id.String(), WorkflowID: "off-ramp:" + x.order.ID.String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// paysOut completes the order by a proven payout.
func (x *sale) paysOut(t *testing.T) {
	t.Helper()
	a := x.tries(t)
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, x.order.Price.Fiat)); err != nil {
		t.Fatal(err)
	}
}

// live lists the kinds of flows that the order still needs.
func (x *sale) live(t *testing.T) (kinds []exchange.LiveKind) {
	t.Helper()
	rows, err := x.s.LiveRows(t.Context(), time.Now().Add(time.Hour), exchange.LivePlace{}, store.MaxPageSize)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.OrderID == x.order.ID {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}

// app is a database connection with the service's own role.
func (x *sale) app(t *testing.T) *sql.Conn {
	t.Helper()
	return storetest.As(t, x.s, "kivuko_tests")
}

// carriedOut signs a payment and makes it final, with a fee of one TRX.
func (x *sale) carriedOut(t *testing.T, p exchange.ChainPayment) exchange.ChainPayment {
	t.Helper()
	storetest.Gas(t, x.s, p.WalletID, trx("2"))
	tx := sign(t, x.s, p)
	done, err := x.s.RecordFinal(t.Context(), tx.ID, true, 200, "a-200", trx("1"), "SUCCESS")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := x.s.RecordFinal(t.Context(), tx.ID, true, 200, "a-200", trx("1"), "SUCCESS"); err != nil || !samePayment(done, again) {
		t.Fatalf("recorded again: %+v, %v", again, err)
	}
	return done
}

// The crypto of a paid-out order goes to the vendor's wallet, once, and the escrow address is then empty.
func TestSweepBringsTheCryptoToTheVendor(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	_, err := x.s.ApproveSweep(ctx, x.order.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	x.paysOut(t)
	p := twice(t, samePayment, func() (exchange.ChainPayment, error) { return x.s.ApproveSweep(ctx, x.order.ID) })
	if p.Purpose != exchange.ForSweep || p.WalletID != x.e.ID || p.ToAddress != x.m.VendorWallet.Address || !p.Amount.Equal(usdt("10")) {
		t.Fatalf("the sweep is %+v", p)
	}
	x.wantMoney(t, "10", "0", "10", "10")
	if _, err := x.s.ReleaseEscrow(ctx, x.order.ID); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("the address was given back with the crypto on it: %v", err)
	}
	before, err := x.s.Account(ctx, owed(x.m.VendorWallet, money.USDT))
	if err != nil {
		t.Fatal(err)
	}
	if kinds := x.live(t); !slices.Equal(kinds, []exchange.LiveKind{exchange.LiveSale}) {
		t.Errorf("of a completed order whose crypto is still on its way, live are %v: nothing would start its flow again", kinds)
	}
	x.carriedOut(t, p)
	x.wantMoney(t, "0", "0", "0", "0")
	wantBalance(t, x.s, owed(x.m.VendorWallet, money.USDT), before.Posted.Add(usdt("10")).String(), before.Held.String())
	wantBalance(t, x.s, custody(x.m.VendorWallet), before.Posted.Add(usdt("10")).String(), "0")
	claims, err := x.s.EscrowClaims(ctx, x.order.ID)
	if err != nil || len(claims) != 1 || !claims[0].Taken.Equal(usdt("10")) || !claims[0].Refunded.IsZero() {
		t.Errorf("the claim is %+v, %v", claims, err)
	}
	if _, err := x.s.ReleaseEscrow(ctx, x.order.ID); err != nil {
		t.Errorf("the address is not given back: %v", err)
	}
	if kinds := x.live(t); len(kinds) != 0 {
		t.Errorf("after the address was given back, live are %v", kinds)
	}
	if fees := feesOf(t, x.s, x.m.Customer.ID); fees != "1" {
		t.Errorf("the sweep counts %s TRX at the customer, want 1", fees)
	}
}

func feesOf(t *testing.T, s *store.Store, user uuid.UUID) string {
	t.Helper()
	var sum string
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT trim_scale(sum(amount)) FROM network_fees WHERE user_id = $1`, user).Scan(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// The escrow wallet gets its gas like every other one, counted for the order's parties.
func TestSweepIsGivenGas(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	gas := houseWallet(t, x.s, exchange.HouseGas)
	storetest.Gas(t, x.s, gas.ID, trx("100"))
	x.paysOut(t)
	p, err := x.s.ApproveSweep(ctx, x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	top, err := x.s.ApproveTopUp(ctx, p.ID, trx("10"), 3)
	if err != nil {
		t.Fatal(err)
	}
	if top.ToAddress != x.e.Address || top.WalletID != gas.ID {
		t.Fatalf("the gas is %+v", top)
	}
	if _, err := x.s.RecordFinal(ctx, sign(t, x.s, top).ID, true, 150, "a-150", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	done, err := x.s.RecordFinal(ctx, sign(t, x.s, p).ID, true, 151, "a-151", trx("3"), "SUCCESS")
	if err != nil || done.Status != exchange.ChainCompleted {
		t.Fatalf("the sweep is %+v, %v", done, err)
	}
	wantBalance(t, x.s, exchange.Owned(exchange.AccCustody, x.e.ID, money.TRX), "7", "0")
	wantBalance(t, x.s, exchange.Owned(exchange.AccCustody, gas.ID, money.TRX), "89", "0")
	if fees := feesOf(t, x.s, x.m.Customer.ID); fees != "4" {
		t.Errorf("gas and sweep count %s TRX at the customer, want 4", fees)
	}
	wantBooks(t, x.s)
}

// The service's own role can't write a payment from an escrow wallet that does not match the order, nor a second one
// beside it.
func TestDatabaseGuardsSweeps(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	const row = `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, status, approved_by, created_at, updated_at)
		SELECT gen_random_uuid(), $1::text, $2::uuid, 'tron', $3::text, $4::numeric, e.id, e.address, $5::text, c.hold_id, repeat('0', 64), 'approved', 'test', now(), now()
		FROM escrow_claims c JOIN wallets e ON e.id = c.wallet_id WHERE c.order_id = '`
	insert := func(purpose string, object uuid.UUID, asset, amount, to string) error {
		_, err := x.app(t).ExecContext(ctx, row+x.order.ID.String()+`'`, purpose, object, asset, amount, to)
		return err
	}
	vendor := x.m.VendorWallet.Address
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "chain payment ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("before the payout", insert("sweep", x.order.ID, "USDT", "10", vendor))
	x.tries(t)
	refused("while the payout is under way", insert("sweep", x.order.ID, "USDT", "10", vendor))
	y := taken(t)
	y.paysOut(t)
	x = y
	vendor = x.m.VendorWallet.Address
	refused("to a stranger", insert("sweep", x.order.ID, "USDT", "10", stranger))
	refused("to the customer", insert("sweep", x.order.ID, "USDT", "10", x.m.CustomerWallet.Address))
	refused("another amount", insert("sweep", x.order.ID, "USDT", "9", vendor))
	refused("another asset", insert("sweep", x.order.ID, "USDC", "10", vendor))
	refused("of no order", insert("sweep", uuid.New(), "USDT", "10", vendor))
	refused("back, of no refund", insert("refund", x.order.ID, "USDT", "10", stranger))
	refused("as a purchase", insert("order", x.order.ID, "USDT", "10", x.e.Address))
	refused("as its funding", insert("funding", x.order.ID, "USDT", "10", x.e.Address))
	if err := insert("sweep", x.order.ID, "USDT", "10", vendor); err != nil {
		t.Fatalf("as it should be: %v", err)
	}
	if err := insert("sweep", x.order.ID, "USDT", "10", vendor); err == nil {
		t.Error("a second one was taken")
	}
	if err := insert("refund", x.order.ID, "USDT", "10", stranger); err == nil || !strings.Contains(err.Error(), "chain_payments_hold_key") {
		t.Errorf("another payment of the same hold: %v", err)
	}
}

// The conditions at a sweep's approval must still hold when it is signed.
func TestSweepIsNotSignedWithoutItsHold(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	x.paysOut(t)
	p, err := x.s.ApproveSweep(ctx, x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, x.s, `UPDATE holds SET status = 'released' WHERE id = '`+p.HoldID.String()+`'`)
	id := storetest.NewID(t)
	_, err = x.s.SaveSignedAttempt(ctx, exchange.ChainAttempt{ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), FeeLimit: trx("5")})
	wantFault(t, err, exchange.CodeStateConflict)
}

// Money on an escrow address that the house keeps goes to its treasury, so that the address is empty again.
func TestKeptCryptoGoesToTheTreasury(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	x.paysOut(t)
	p, err := x.s.ApproveSweep(ctx, x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	x.carriedOut(t, p)
	d := x.final(t, x.to("again", usdt("7")))
	more := x.take(t, d, exchange.TakenDuplicate).Exception
	who := storetest.PrincipalOf(agent(t, x.s))
	if p, err := x.s.ApproveKeptSweep(ctx, more.ID); err != nil || p.ID != uuid.Nil {
		t.Fatalf("an undecided exception is %+v, %v", p, err)
	}
	decision := exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: more.ID, Verdict: exchange.ExcWrittenOff, Reason: "nobody answers"}
	for range 2 {
		if got, mine, err := x.s.DecideException(ctx, decision, who); err != nil || !mine || got.Status != exchange.ExcWrittenOff {
			t.Fatalf("the exception is %+v (%t), %v", got, mine, err)
		}
	}
	x.wantMoney(t, "7", "0", "7", "7")
	if n, found, err := x.s.KeptOnEscrow(ctx, more.ID); err != nil || !found || n != exchange.Tron {
		t.Errorf("it lies on %s (%t), %v", n, found, err)
	}
	unmoved := func(want ...exchange.KeptDeposit) {
		t.Helper()
		got, err := x.s.KeptUnmoved(ctx, time.Now().Add(time.Hour), 10)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("on its way to nowhere is %v, want %v, %v", got, want, err)
		}
	}
	unmoved(exchange.KeptDeposit{ExceptionID: more.ID, Network: exchange.Tron})
	if early, err := x.s.KeptUnmoved(ctx, time.Now().Add(-time.Hour), 10); err != nil || len(early) != 0 {
		t.Errorf("kept an hour ago is %v, %v", early, err)
	}
	_, err = x.s.ApproveKeptSweep(ctx, more.ID)
	wantFault(t, err, exchange.CodeUnsupported) // there is no treasury yet
	treasury := storetest.TreasuryWallet(t, x.s, exchange.Tron)
	kept := twice(t, samePayment, func() (exchange.ChainPayment, error) { return x.s.ApproveKeptSweep(ctx, more.ID) })
	if kept.ToAddress != treasury.Address || kept.WalletID != x.e.ID || !kept.Amount.Equal(usdt("7")) {
		t.Fatalf("the payment is %+v", kept)
	}
	_, _, err = x.s.OpenChainRefund(ctx, exchange.ChainRefundRequest{ExceptionID: more.ID}, who)
	wantFault(t, err, exchange.CodeStateConflict)
	unmoved(exchange.KeptDeposit{ExceptionID: more.ID, Network: exchange.Tron}) // its flow may be gone
	x.carriedOut(t, kept)
	unmoved()
	x.wantMoney(t, "0", "0", "0", "0")
	wantBalance(t, x.s, owed(treasury, money.USDT), "7", "0")
	wantBalance(t, x.s, custody(treasury), "7", "0")
	if _, found, err := x.s.KeptOnEscrow(ctx, more.ID); err != nil || found {
		t.Errorf("it lies there still: %t, %v", found, err)
	}
	if _, err := x.s.ReleaseEscrow(ctx, x.order.ID); err != nil {
		t.Errorf("the address is not given back: %v", err)
	}
	claims, err := x.s.EscrowClaims(ctx, x.order.ID)
	if err != nil || len(claims) != 2 || !claims[1].Kept.Equal(usdt("7")) {
		t.Errorf("the claims are %+v, %v", claims, err)
	}
}

package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The service's own role can't open a refund twice, beside a payout, to the house or to an unset address.
func TestDatabaseGuardsChainRefunds(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), taken(t)
	x.says(t)
	db := x.app(t)
	const refund = `INSERT INTO refunds (id, rail, order_id, asset, amount, reason, status, wallet_id, network, address, hold_id, value, digest, deposit_id, created_at, updated_at)
		SELECT gen_random_uuid(), 'chain', c.order_id, c.asset, %AMOUNT%, 'why', 'pending', %WALLET%, 'tron', %ADDRESS%, %HOLD%, 1500, repeat('0', 64), c.deposit_id, now(), now()
		FROM escrow_claims c WHERE c.order_id = '`
	promise := func(amount, wallet, address, hold string) error {
		q := strings.NewReplacer("%AMOUNT%", amount, "%WALLET%", wallet, "%ADDRESS%", address, "%HOLD%", hold).Replace(refund)
		_, err := db.ExecContext(ctx, q+x.order.ID.String()+`'`)
		return err
	}
	vendor := "'" + x.m.VendorWallet.ID.String() + "'"
	if err := promise("c.amount", "c.wallet_id", "'"+homeOfCoins+"'", "c.hold_id"); sqlState(err) != "KV002" {
		t.Errorf("beside a payout: %v", err)
	}
	x.refuses(t, true)
	r := x.opensRefund(t)
	for what, err := range map[string]error{
		"a second time":      promise("c.amount", "c.wallet_id", "'"+homeOfCoins+"'", "c.hold_id"),
		"more":               promise("c.amount + 1", "c.wallet_id", "'"+homeOfCoins+"'", "c.hold_id"),
		"from elsewhere":     promise("c.amount", vendor, "'"+homeOfCoins+"'", "c.hold_id"),
		"to somebody else":   promise("c.amount", "c.wallet_id", "'"+stranger+"'", "c.hold_id"),
		"to the house":       promise("c.amount", "c.wallet_id", "'"+x.e.Address+"'", "c.hold_id"),
		"with another hold":  promise("c.amount", "c.wallet_id", "'"+homeOfCoins+"'", "gen_random_uuid()"),
		"without its hold":   promise("c.amount", "c.wallet_id", "'"+homeOfCoins+"'", "NULL"),
		"with a momo payout": exec(t, x, `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at) SELECT gen_random_uuid(), 'payout', 'refund', id, 'daraja', 'created', 'KES', 1, '254712345678', 'X', now() FROM refunds WHERE id = '`+r.ID.String()+`'`),
	} {
		if err == nil {
			t.Errorf("a refund %s was taken", what)
		}
	}
	for _, change := range []string{
		`amount = amount - 1`, `address = '` + stranger + `'`, `address = '` + stranger + `', digest = repeat('1', 64)`, `hold_id = gen_random_uuid()`, `requested_by = (SELECT id FROM users LIMIT 1)`,
		`rail = 'momo'`, `wallet_id = ` + vendor, `order_id = NULL`, `value = 0`, `address = '` + stranger + `', digest = repeat('1', 64), addressed_by = '` + x.m.Customer.ID.String() + `'`,
	} {
		if err := exec(t, x, `UPDATE refunds SET `+change+` WHERE id = '`+r.ID.String()+`'`); err == nil {
			t.Errorf("%s was taken", change)
		}
	}
}

// sendRefund is the statement that adds a refund's payment, up to the refund's id.
const sendRefund = `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, status, approved_by, created_at, updated_at)
	SELECT gen_random_uuid(), 'refund', f.id, f.network, f.asset, f.amount, f.wallet_id, w.address, f.address, f.hold_id, repeat('0', 64), 'approved', 'test', now(), now()
	FROM refunds f JOIN wallets w ON w.id = f.wallet_id WHERE f.id = '`

// sends carries out a refund as the service's own role does, in one transaction.
func (x *sale) sends(t *testing.T, r exchange.Refund) error {
	t.Helper()
	tx, err := x.app(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if _, err := tx.ExecContext(t.Context(), `UPDATE refunds SET status = 'processing' WHERE id = $1`, r.ID); err != nil {
		return err
	}
	if _, err := tx.ExecContext(t.Context(), sendRefund+r.ID.String()+`'`); err != nil {
		return err
	}
	return tx.Commit()
}

// The service's own role can't send a refund that the rules don't allow yet.
func TestDatabaseGuardsTheSendingOfRefunds(t *testing.T) {
	t.Parallel()
	x := taken(t)
	x.says(t)
	x.refuses(t, true)
	r := x.opensRefund(t)
	wantRefusal := func(because string) {
		t.Helper()
		if err := x.sends(t, r); err == nil || !strings.Contains(err.Error(), because) {
			t.Errorf("got %v, want a refusal because %q", err, because)
		}
	}
	wantRefusal("a payout of its order may have paid")
	x.noCoolOff(t)
	wantRefusal("too few officers approved")
	if err := exec(t, x, `INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, action, digest, created_at)
		SELECT gen_random_uuid(), gen_random_uuid(), 'refund', id, (SELECT id FROM users LIMIT 1), 'approve', digest, now() FROM refunds WHERE id = '`+r.ID.String()+`'`); err == nil {
		t.Error("an approval without a token was taken")
	}
	x.agrees(t, r, agent(t, x.s))
	if err := exec(t, x, sendRefund+r.ID.String()+`'`); err == nil {
		t.Error("a refund that is pending was sent")
	}
	if err := exec(t, x, `UPDATE refunds SET status = 'completed', completed_at = now(), receipt = 'tx' WHERE id = '`+r.ID.String()+`'`); err == nil {
		t.Error("a refund was completed without a payment")
	}
	if err := x.sends(t, r); err != nil {
		t.Errorf("as it should be: %v", err)
	}
}

// exec runs a statement as the service's own role.
func exec(t *testing.T, x *sale, query string) error {
	t.Helper()
	_, err := x.app(t).ExecContext(t.Context(), query)
	return err
}

// The database requires the same approvals as the code for a refund's value.
func TestOfficersByTheValueOfARefund(t *testing.T) {
	t.Parallel()
	rule := exchange.ApprovalRule{OneAbove: kes("200000"), TwoAbove: kes("2000000")}
	giver := uuid.New()
	for _, c := range []struct {
		value     string
		addressed bool
		doubted   bool
		exception bool
		want      int
	}{
		{value: "200000", want: 0},
		{value: "200000.01", want: 1},
		{value: "2000000.01", want: 2},
		{value: "10", addressed: true, want: 1},
		{value: "10", doubted: true, want: 1},
		{value: "10", doubted: true, exception: true, want: 0},
		{value: "3000000", addressed: true, doubted: true, want: 2},
	} {
		r := exchange.Refund{Value: money.Must(money.KES, c.value)}
		if c.addressed {
			r.AddressedBy = giver
		}
		if c.exception {
			r.ExceptionID = giver
		}
		if got := exchange.CryptoRefundApprovals(r, c.doubted, rule); got != c.want {
			t.Errorf("%+v needs %d, want %d", c, got, c.want)
		}
	}
}

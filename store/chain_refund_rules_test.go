package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
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
func (x *sale) sends(t *testing.T, r exchange.Refund, released bool) error {
	t.Helper()
	tx, err := x.app(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if released {
		if _, err := tx.ExecContext(t.Context(), `UPDATE releases SET passed_at = now() WHERE object_id = $1`, r.ID); err != nil {
			return err
		}
	}
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
	wantRefusal := func(because string, released bool) {
		t.Helper()
		if err := x.sends(t, r, released); err == nil || !strings.Contains(err.Error(), because) {
			t.Errorf("got %v, want a refusal because %q", err, because)
		}
	}
	wantRefusal("a payout of its order may have paid", false)
	x.noCoolOff(t)
	wantRefusal("it is not released", false)
	wantRefusal("lacks officers", true)
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
	if err := x.sends(t, r, true); err != nil {
		t.Errorf("as it should be: %v", err)
	}
}

// exec runs a statement as the service's own role.
func exec(t *testing.T, x *sale, query string) error {
	t.Helper()
	_, err := x.app(t).ExecContext(t.Context(), query)
	return err
}

// How many officers a refund in crypto needs: by its value, and one at least after a payout that may have paid, or to an address
// that an officer named.
func TestOfficersByTheValueOfARefund(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ doubted, addressed bool }{{}, {doubted: true}, {addressed: true}} {
		x := taken(t)
		if !c.addressed {
			x.says(t)
		}
		x.refuses(t, c.doubted)
		r := x.opensRefund(t)
		if c.addressed {
			one := agent(t, x.s)
			if _, err := x.s.AddressRefund(t.Context(), r.ID, x.asks(t, one, uuid.Nil, homeOfCoins), storetest.PrincipalOf(one)); err != nil {
				t.Fatal(err)
			}
		}
		for value, want := range map[string]int{"10": 0, "200000": 0, "200000.01": 1, "2000000": 1, "2000000.01": 2} {
			const needed = `SELECT release_officers(jsonb_populate_record(r, jsonb_build_object('value', $2::numeric, 'at_opening', 0)), now()) FROM releases r WHERE r.object_id = $1 AND r.ended_at IS NULL`
			if c.doubted || c.addressed {
				want = max(want, 1)
			}
			if n := decides[int](t, x.s, needed, r.ID, value); n != want {
				t.Errorf("%s shillings, %+v: %d officers, want %d", value, c, n, want)
			}
		}
	}
}

package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// copied inserts a copy of a row with an intent that asks for the same, and with changes of the copy. No other guard than the one
// that compares the two is on.
func copied(t *testing.T, s *store.Store, table string, of uuid.UUID, change string) error {
	t.Helper()
	id := storetest.NewID(t)
	return copiedBy(t, s, table, of, id, storetest.CopyIntent(t, s, table, of, id), change)
}

// copiedBy is copied by an intent that was used.
func copiedBy(t *testing.T, s *store.Store, table string, of, id, intent uuid.UUID, change string) error {
	t.Helper()
	tx, err := storetest.Owner(t, s).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing is to stay
	for _, query := range []string{`ALTER TABLE %s DISABLE TRIGGER USER`, `ALTER TABLE %[1]s ENABLE TRIGGER %[1]s_wanted`} {
		if _, err := tx.ExecContext(t.Context(), fmt.Sprintf(query, table)); err != nil {
			t.Fatal(err)
		}
	}
	var columns string
	if err := tx.QueryRowContext(t.Context(), `SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER'`, table).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM (
		SELECT (jsonb_populate_record(o, '{"id": "%[3]s", "intent_id": "%[4]s"}'::jsonb || '%[5]s')).* FROM %[1]s o WHERE id = '%[6]s') copy`,
		table, columns, id, intent, change, of))
	return err
}

// wantAsked checks that a copy is taken as it is, and refused with each of the changes.
func wantAsked(t *testing.T, s *store.Store, table string, of uuid.UUID, same string, changes map[string]string) {
	t.Helper()
	if err := copied(t, s, table, of, same); err != nil {
		t.Errorf("%s: what was asked for is refused: %v", table, err)
	}
	for what, change := range changes {
		err := copied(t, s, table, of, same[:len(same)-1]+", "+change+"}")
		if sqlState(err) != "KV002" || !strings.Contains(err.Error(), "asked for") {
			t.Errorf("%s with %s: %v", table, what, err)
		}
	}
}

// The database opens no purchase that differs from what was asked for.
func TestPurchasesAreWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m, other := storetest.NewMarket(t, s), storetest.NewMarket(t, s)
	r := request(t, m, m.Customer, "")
	r.ExpectedRate = m.Offer.Rate
	o, err := storetest.OpenOrder(t.Context(), s, r, storetest.PrincipalOf(m.Customer))
	if err != nil {
		t.Fatal(err)
	}
	wantAsked(t, s, "orders", o.ID, `{"hold_id": null, "payment_reference": "KVK000000001"}`, map[string]string{
		"more crypto":      `"crypto_amount": 11`,
		"another coin":     `"asset": "USDC"`,
		"another rate":     `"rate": 1`,
		"another customer": fmt.Sprintf(`"customer_id": "%s"`, other.Customer.ID),
		"another asker":    fmt.Sprintf(`"opened_by": "%s"`, other.Vendor.ID),
		"another offer":    fmt.Sprintf(`"offer_id": "%s"`, other.Offer.ID),
		"another type":     `"order_type": "OFF_RAMP_SELL"`,
		"another subtype":  `"order_subtype": "treasury_offramp"`,
		"another phone":    `"payment_phone": "254799999999"`,
		"a sender":         `"sender_name": "Somebody"`,
		"another address":  `"wallet_address": "TOutsideAddressOfAThief00000000001"`,
	})
}

// The database opens no sale that differs from what was asked for.
func TestSalesAreWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewSellers(t, s)
	r := saleOf(t, m)
	r.Phone = "254711111111"
	r.RefundAddress = "TRefundAddressOfTheSeller000000001"
	o, err := storetest.OpenOffRamp(t.Context(), s, r, storetest.PrincipalOf(m.Customer))
	if err != nil {
		t.Fatal(err)
	}
	wantAsked(t, s, "orders", o.ID, `{"hold_id": null, "payment_reference": "KVK000000001"}`, map[string]string{
		"less crypto":            `"crypto_amount": 1`,
		"another phone":          `"payment_phone": "254799999999"`,
		"another refund address": `"refund_address": "TOutsideAddressOfAThief00000000001"`,
		"a wallet that pays":     fmt.Sprintf(`"fund_wallet_id": "%s"`, m.CustomerWallet.ID),
		"somebody to pay":        `"beneficiary": {"AccountName": "Somebody"}`,
	})
}

// Where an intent leaves open who is paid, the database pays only the customer: its number, and its own wallets.
func TestSalesPayTheCustomerWhereNothingElseWasAskedFor(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewSellers(t, s)
	stranger := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	o := m.Sale(t, s, "10")
	wantAsked(t, s, "orders", o.ID, fmt.Sprintf(`{"hold_id": null, "payment_reference": "KVK000000001", "refund_address": "%s"}`, m.CustomerWallet.Address), nil)
	wantAsked(t, s, "orders", o.ID, `{"hold_id": null, "payment_reference": "KVK000000001", "refund_address": ""}`, map[string]string{
		"another phone":            `"payment_phone": "254799999999"`,
		"a stranger's wallet":      fmt.Sprintf(`"refund_address": "%s"`, stranger.Address),
		"an address from outside":  `"refund_address": "TOutsideAddressOfAThief00000000001"`,
		"a payout by bank":         `"payment_method": "bank"`,
		"the terms of a bank sale": `"payment_method": "bank", "beneficiary": {"AccountName": "A Thief", "AccountNumber": "666"}`,
	})
}

// Whoever changes, between the intent and the order, one thing about the people of a remittance is refused: the digest of the
// intent covers them all.
func TestABankSalePaysOnlyWhomItsIntentNames(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	o := storetest.NewSellers(t, s).RemittanceToBank(t, s)
	intent, err := s.Intent(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]string{
		"nobody to pay":               `"beneficiary": {}`,
		"another sender":              `"sender_name": "A Thief"`,
		"another country":             `"sender_country": "KE"`,
		"another phone of the sender": `"sender_phone": "447700900999"`,
		"a payout to a phone":         `"payment_method": "momo"`,
		"another phone":               `"payment_phone": "254799999999"`,
		"no remittance":               `"order_subtype": "standard_offramp"`,
	}
	stated := string(intent.Statement())
	payee := reflect.ValueOf(&o.Beneficiary).Elem()
	for i := range payee.NumField() {
		name, was := payee.Type().Field(i).Name, payee.Field(i).String()
		if was != "" && !strings.Contains(stated, `"`+was+`"`) {
			t.Errorf("the intent does not state the payee's %s", name)
		}
		payee.Field(i).SetString("666")
		changed, err := json.Marshal(o.Beneficiary)
		if err != nil {
			t.Fatal(err)
		}
		changes["another "+name] = `"beneficiary": ` + string(changed)
		payee.Field(i).SetString(was)
	}
	right, err := json.Marshal(o.Beneficiary)
	if err != nil {
		t.Fatal(err)
	}
	// The names of members are read in any case, and the last one counts.
	changes["a second number"] = `"beneficiary": ` + strings.Replace(string(right), "}", `, "accountnumber": "666"}`, 1)
	wantAsked(t, s, "orders", o.ID, `{"hold_id": null, "payment_reference": "KVK000000001"}`, changes)
}

// The database opens no transfer that differs from what was asked for, and none from a wallet that is not the asker's to spend
// from, even if the intent names it.
func TestTransfersAreWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f := p.open(t, "10", exchange.Recipient{Address: outside})
	same := fmt.Sprintf(`{"hold_id": "%s"}`, uuid.New())
	theirs := fmt.Sprintf(`"wallet_id": "%s", "from_address": "%s", "sender_id": "%s"`, p.theirs.ID, p.theirs.Address, p.other.ID)
	wantAsked(t, p.store, "transfers", f.ID, same, map[string]string{
		"more crypto":         `"amount": 11`,
		"another recipient":   `"to_address": "TOutsideAddressOfAThief00000000001"`,
		"another asker":       fmt.Sprintf(`"requested_by": "%s"`, p.other.ID),
		"a stranger's wallet": theirs,
	})
	r := p.request(t, "10", exchange.Recipient{Address: outside})
	r.WalletID = p.theirs.ID
	a, err := storetest.Ask(t.Context(), p.store, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), storetest.PrincipalOf(p.sender))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, p.store, `UPDATE intents SET used_at = created_at, used_by = $2 WHERE id = $1`, a.IntentID, a.Flow)
	if err := copiedBy(t, p.store, "transfers", f.ID, r.ID, a.IntentID, same[:len(same)-1]+", "+theirs+"}"); sqlState(err) != "KV002" {
		t.Errorf("a stranger's wallet is spent from, because the intent names it: %v", err)
	}
}

// The database makes no wallet that differs from what was asked for.
func TestWalletsAreWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	u, other := storetest.User(t, s, exchange.RoleCustomer), storetest.User(t, s, exchange.RoleCustomer)
	w := storetest.Wallet(t, s, u)
	wantAsked(t, s, "wallets", w.ID, `{"address": "TAnotherAddress0000000000000000001", "is_default": false}`, map[string]string{
		"another owner":   fmt.Sprintf(`"owner_id": "%s"`, other.ID),
		"another maker":   fmt.Sprintf(`"created_by": "%s"`, other.ID),
		"another network": `"network": "ethereum"`,
		"a cold key":      `"type": "cold"`,
		"no intent":       `"intent_id": null`,
	})
}

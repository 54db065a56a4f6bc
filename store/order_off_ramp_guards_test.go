package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// The agreed terms of a sale are immutable, even for the owner of the tables.
func TestSalesStayAsAgreed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	o := m.Sale(t, s, "10")
	other := m.Sale(t, s, "20")
	db := storetest.Owner(t, s)
	if _, err := db.ExecContext(ctx, `UPDATE orders SET refund_address = 'TFirst0000000000000000000000000000' WHERE id = $1`, o.ID); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{
		`customer_id = vendor_id`, `order_subtype = 'remittance_offramp'`, `rate = rate + 1`, `asset = 'USDC'`, `asked_amount = 1`,
		`wallet_id = '` + m.CustomerWallet.ID.String() + `'`, `wallet_address = 'TElsewhere00000000000000000000000'`,
		`payment_phone = '254700000001'`, `payment_method = 'bank'`, `opened_by = customer_id`, `fund_wallet_id = '` + m.CustomerWallet.ID.String() + `'`,
		`sender_name = 'Somebody'`, `beneficiary = '{"AccountName": "Somebody"}'`, `escrow_address = 'TElsewhere00000000000000000000000'`,
		`escrow_reference = 'KVK'`, `crypto_amount = 9, fiat_amount = 1164, vendor_amount = 1164.19, rounding_amount = -0.19`,
		`hold_id = '` + other.HoldID.String() + `'`, `refund_address = 'TSecond000000000000000000000000000'`, `refund_address = ''`,
		`status = 'confirming', crypto_amount = 9, fiat_amount = 1164, vendor_amount = 1164.19, rounding_amount = -0.19`,
	} {
		_, err := db.ExecContext(ctx, `UPDATE orders SET `+set+` WHERE id = $1`, o.ID)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Code != "KV002" {
			t.Errorf("%s: %v, want KV002", set, err)
		}
	}
	for _, query := range []string{`DELETE FROM orders`, `UPDATE order_kinds SET bank = true`, `UPDATE users SET is_active = true WHERE email LIKE '%platform.invalid'`} {
		_, err := db.ExecContext(ctx, query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Code != "KV002" {
			t.Errorf("%s: %v, want KV002", query, err)
		}
	}
	if _, err := db.ExecContext(ctx, `UPDATE orders SET status = 'completed', completed_at = now() WHERE id = $1`, o.ID); err == nil {
		t.Error("a sale that waits for its crypto became completed")
	}
	wantBooks(t, s)
}

// No sale of an unknown or inconsistent kind can be stored.
func TestSalesOfNoKindAreNotWritten(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	o := m.Sale(t, s, "10")
	db := storetest.Owner(t, s)
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"no kind":                {map[string]any{"order_subtype": "standard_onramp"}, "has an unknown kind"},
		"an offer of none":       {map[string]any{"order_subtype": "treasury_offramp"}, "an offer or a vendor beside the house"},
		"no offer":               {map[string]any{"offer_id": nil}, "does not match its offer"},
		"another vendor":         {map[string]any{"vendor_id": m.Customer.ID}, "does not match its offer"},
		"another network":        {map[string]any{"network": "ethereum"}, "does not match its offer"},
		"another asset":          {map[string]any{"asset": "USDC"}, "does not match its offer"},
		"another wallet":         {map[string]any{"wallet_id": m.CustomerWallet.ID}, "does not match its offer"},
		"the house as vendor":    {map[string]any{"order_subtype": "treasury_offramp", "offer_id": nil, "vendor_id": exchange.PlatformTreasury}, "a quote, opener or source that"},
		"without an opener":      {map[string]any{"order_type": "OFF_RAMP_BUY"}, "a quote, opener or source that"},
		"a quote":                {map[string]any{"quote_id": storetest.NewID(t)}, "a quote, opener or source that"},
		"by bank":                {map[string]any{"payment_method": "bank"}, "can not be paid by bank"},
		"a sender":               {map[string]any{"sender_name": "Somebody"}, "names a sender that"},
		"no sender":              {map[string]any{"order_subtype": "remittance_offramp"}, "names a sender that"},
		"half a sender":          {map[string]any{"order_subtype": "remittance_offramp", "sender_name": "Jane", "sender_country": "GB"}, "names a sender that"},
		"no address":             {map[string]any{"escrow_address": ""}, "an address or a price that"},
		"two addresses":          {map[string]any{"wallet_address": m.CustomerWallet.Address}, "an address or a price that"},
		"rounded up":             {map[string]any{"fiat_amount": 1294, "rounding_amount": 0.45}, "an address or a price that"},
		"rounded down twice":     {map[string]any{"fiat_amount": 1292, "rounding_amount": -1.55}, "an address or a price that"},
		"no reservation":         {map[string]any{"hold_id": nil}, "an address or a price that"},
		"a stranger's wallet":    {map[string]any{"fund_wallet_id": m.VendorWallet.ID}, "not its customer's"},
		"another's reservation":  {map[string]any{"hold_id": m.Offer.HoldID}, "borrowed"},
		"created processing":     {map[string]any{"status": "processing"}, "can not go from"},
		"the same address twice": {map[string]any{}, "orders_hold_key"},
	} {
		id := storetest.NewID(t)
		c.change["payment_reference"] = "KVK000000001"
		c.change["id"], c.change["intent_id"] = id, storetest.CopyIntent(t, s, "orders", o.ID, id)
		change, err := json.Marshal(c.change)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(ctx, `INSERT INTO orders SELECT (jsonb_populate_record(NULL::orders, to_jsonb(o) || $2::jsonb)).* FROM orders o WHERE o.id = $1`, o.ID, string(change))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	wantBooks(t, s)
}

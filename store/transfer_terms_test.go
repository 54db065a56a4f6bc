package store_test

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// The database refuses transfers with wrong terms.
func TestDatabaseGuardsTermsOfTransfers(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "100000")
	f := p.open(t, "10", exchange.Recipient{Address: outside})
	columns := []string{
		"id", "kind", "requested_by", "sender_id", "vendor_id", "recipient_id", "recipient_vendor_id", "network", "asset", "amount", "wallet_id", "wallet_type",
		"from_address", "to_wallet_id", "to_address", "note", "value", "rate", "digest", "status", "status_detail", "hold_id",
		"created_at", "updated_at", "intent_id",
	}
	insert := func(change map[string]string) error {
		values := make([]string, len(columns))
		for i, c := range columns {
			if values[i] = c; change[c] != "" {
				values[i] = change[c]
			}
		}
		newID := storetest.NewID(t)
		values[len(columns)-1] = "'" + storetest.CopyIntent(t, p.store, "transfers", f.ID, newID).String() + "'::uuid"
		tx, err := storetest.Owner(t, p.store).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // nothing is to stay
		_, err = tx.ExecContext(t.Context(), `INSERT INTO transfers (`+strings.Join(columns, ", ")+`)
			SELECT `+strings.Replace(strings.Join(values, ", "), "id", "'"+newID.String()+"'::uuid", 1)+` FROM transfers WHERE id = '`+f.ID.String()+`'`)
		return err
	}
	fresh := func(more ...string) map[string]string {
		m := map[string]string{"hold_id": "'" + storetest.NewID(t).String() + "'::uuid"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	theirs := "'" + p.theirs.ID.String() + "'::uuid"
	for name, change := range map[string]map[string]string{
		"a value below what it is worth":          fresh("value", "1"),
		"at a rate that nobody pays":              fresh("rate", "1", "value", "10"),
		"another's wallet":                        fresh("wallet_id", theirs),
		"another's wallet and address":            fresh("wallet_id", theirs, "from_address", "'"+p.theirs.Address+"'"),
		"a cold wallet that is hot":               fresh("wallet_type", "'cold'"),
		"internal, to an address that isn't ours": fresh("kind", "'internal'", "to_wallet_id", theirs),
	} {
		if err := insert(change); sqlState(err) != "KV002" || !strings.Contains(err.Error(), "transfer ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := insert(fresh()); err != nil {
		t.Errorf("as it should be: %v", err)
	}
}

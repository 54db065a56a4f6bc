package store_test

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// TestTheDatabaseKnowsEveryNetwork names what a new network lacks in the database.
func TestTheDatabaseKnowsEveryNetwork(t *testing.T) {
	t.Parallel()
	db := storetest.Owner(t, storetest.New(t))
	var coins string
	if err := db.QueryRowContext(t.Context(), `SELECT prosrc FROM pg_proc WHERE oid = 'gas_share'::regproc`).Scan(&coins); err != nil {
		t.Fatal(err)
	}
	for _, n := range exchange.Networks() {
		var policy bool
		err := db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM escrow_policy WHERE network = $1::text::network)`, string(n)).Scan(&policy)
		if err != nil {
			t.Errorf("the domain network does not have %s: %v", n, err)
		} else if !policy {
			t.Errorf("%s has no row in escrow_policy", n)
		}
		if !strings.Contains(coins, "('"+string(n)+"', '"+string(n.NativeCoin())+"')") {
			t.Errorf("gas_share does not name the coin of %s", n)
		}
	}
}

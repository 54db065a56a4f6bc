package activities_test

import (
	"slices"
	"testing"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Every possible sender of a deposit and the accounts that the money left are stored with it, from the driver's report to the row.
func TestDepositsKeepAllSenders(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	d := &activities.Deposits{Client: net, Store: s}
	if _, err := follow(t, d); err != nil {
		t.Fatal(err)
	}
	m := net.move(w, "1")
	m.Others, m.Accounts = []string{"Ta", "Tb"}, []string{"Tc"}
	net.mine(m)
	net.final = 1
	if _, err := follow(t, d); err != nil {
		t.Fatal(err)
	}
	all, _, err := s.ListChainDeposits(t.Context(), store.ChainDepositFilter{TxID: m.TxID}, store.Page{Number: 1, Size: 10})
	if err != nil || len(all) != 1 || !slices.Equal(all[0].Others, m.Others) || !slices.Equal(all[0].Accounts, m.Accounts) {
		t.Errorf("%+v, %v", all, err)
	}
}

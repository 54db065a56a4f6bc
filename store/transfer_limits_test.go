package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// The house pays the network fee of every transfer, however small and also between wallets of one owner, which uses
// none of the spending limits. So transfers are counted, over all processes, and those of a merchant and its
// subvendors together.
func TestRaceTransfersOfADayAreLimited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits store.Limits
		role   exchange.Role
		room   int
	}{
		"a customer": {store.Limits{CustomerTransfers: 3}, exchange.RoleCustomer, 3},
		"a user":     {store.Limits{CustomerTransfers: 3, UserTransfers: 2}, exchange.RoleUser, 2},
		"a merchant": {store.Limits{MerchantTransfers: 3}, exchange.RoleVendor, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			o := store.Options{Limits: c.limits, Now: newClock().now} // one day
			one := storetest.Open(t, url, o)
			stores := []*store.Store{one, storetest.Open(t, url, o)}
			owner := storetest.User(t, one, c.role)
			from, second := storetest.Wallet(t, one, owner), storetest.Wallet(t, one, owner)
			storetest.Deposit(t, one, from.ID, usdt("1"))
			people := []exchange.User{owner}
			if c.role == exchange.RoleVendor {
				people = append(people, storetest.Subvendor(t, one, owner), storetest.Subvendor(t, one, owner))
			}
			requests := make([]exchange.TransferRequest, 12)
			for i := range requests {
				requests[i] = exchange.TransferRequest{
					ID: storetest.NewID(t), RequestedBy: people[i%len(people)].ID, WalletID: from.ID, Network: exchange.Tron,
					Amount: usdt("0.000001"), Recipient: exchange.Recipient{WalletID: second.ID},
				}
			}
			open := func(i int) error {
				_, err := storetest.OpenTransfer(t.Context(), stores[i%2], requests[i], storetest.PrincipalOf(people[i%len(people)]))
				return err
			}
			codes := atOnce(len(requests), open)
			if codes[""] != c.room || codes[exchange.CodeLimitReached] != len(requests)-c.room {
				t.Errorf("outcomes %v, want %d transfers and refusals", codes, c.room)
			}
			// A transfer that was never sent makes room again; a repeated request takes none.
			list, _, err := one.ListTransfers(t.Context(), store.Everything(), store.TransferFilter{}, store.Page{Number: 1, Size: 10})
			if err != nil || len(list) == 0 {
				t.Fatalf("%d transfers, %v", len(list), err)
			}
			if _, err := storetest.CancelTransfer(t.Context(), one, list[0].ID, storetest.PrincipalOf(owner)); err != nil {
				t.Fatal(err)
			}
			requests[0].ID = uuid.Must(uuid.NewV7())
			if err := open(0); err != nil {
				t.Errorf("after one was cancelled: %v", err)
			}
			if err := open(0); err != nil {
				t.Errorf("asked for again: %v", err)
			}
			requests[0].ID = uuid.Must(uuid.NewV7())
			wantFault(t, open(0), exchange.CodeLimitReached)
			wantTransfers(t, one)
		})
	}
}

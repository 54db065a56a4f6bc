package exchange

import (
	"fmt"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// InventorySource is a wallet of several owners that the house alone pays from, with what can be brought from it to the treasury's wallet of
// its network by a payment that is proposed.
type InventorySource struct {
	Network   Network
	Asset     money.Asset
	WalletID  uuid.UUID
	Name      string
	Available money.Amount
}

// SourcesOf are those of an asset on a network, in their order.
func SourcesOf(all []InventorySource, n Network, asset money.Asset) []InventorySource {
	var of []InventorySource
	for _, s := range all {
		if s.Network == n && s.Asset == asset {
			of = append(of, s)
		}
	}
	return of
}

// SourceText says in words where more can be brought from to an address of the treasury; it is empty where there is no more.
func SourceText(all []InventorySource, address string) string {
	if len(all) == 0 {
		return ""
	}
	more := ""
	if n := len(all) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more such wallets have some)", n)
	}
	return fmt.Sprintf("the wallet of several owners %q has %s %s available%s: propose a payment from it to %s", all[0].Name, all[0].Available, all[0].Asset, more, address)
}

package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// CreateWallet makes a custodial wallet: its key is born in the signer of its network and leaves it
// only sealed. The API starts the flow and waits for its result; a refusal fails it with the exchange
// code as its type.
func CreateWallet(ctx workflow.Context, r exchange.WalletRequest) (WalletCreated, error) {
	made, err := step(ctx, signer(r.Network), "Make the wallet", wallets.MakeWallet, r)
	if err != nil {
		return WalletCreated{}, passOn(err)
	}
	return WalletCreated{WalletID: made.WalletID, Address: made.Address}, nil
}

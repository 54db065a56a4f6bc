package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// CreateWallet makes a custodial wallet: the signer of its network creates the key, which leaves the signer only sealed.
// The API starts the flow and waits for its result; a refusal fails the flow with the exchange code as its type.
func CreateWallet(ctx workflow.Context, r exchange.WalletRequest) (WalletCreated, error) {
	made, err := step(ctx, signer(r.Network), "Create the wallet", wallets.MakeWallet, r)
	if err != nil {
		return WalletCreated{}, passOn(err)
	}
	return WalletCreated{WalletID: made.WalletID, Address: made.Address}, nil
}

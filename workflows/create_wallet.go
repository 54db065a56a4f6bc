package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// CreateWallet makes the custodial wallet that an intent asks for: the signer of its network creates the key, which leaves the
// signer only sealed. The API starts the flow and waits for its result; a refusal fails the flow with the exchange code as
// its type.
func CreateWallet(ctx workflow.Context, input CreateWalletInput) (WalletCreated, error) {
	in := activities.IntentInput{IntentID: input.IntentID}
	asked, err := step(ctx, local, "Read what was asked for", intents.ReadWalletIntent, in)
	if err != nil && passing(err) {
		asked, err = step(ctx, database, "Read what was asked for", intents.ReadWalletIntent, in)
	}
	if err != nil {
		return WalletCreated{}, passOn(err)
	}
	made, err := step(ctx, signer(asked.Network), "Create the wallet", wallets.MakeWallet, in)
	if err != nil {
		return WalletCreated{}, passOn(err)
	}
	return WalletCreated{WalletID: made.WalletID, Address: made.Address}, nil
}

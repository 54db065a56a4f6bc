package conformance

import (
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	node "kivuko/dev/nodes/tron"
	"kivuko/exchange/money"
)

// stakes signs a transaction that the node built, and makes a block of it.
func (h *tronHarness) stakes(t *testing.T, key chain.Key, built *api.TransactionExtention, err error) {
	t.Helper()
	if err != nil || built.GetResult().GetCode() != api.Return_SUCCESS {
		t.Fatalf("built %s, %v", built.GetResult().GetMessage(), err)
	}
	tx := proto.CloneOf(built.GetTransaction())
	tx.Ret = nil
	id := node.TransactionID(tx)
	made, err := key.Sign(id[:])
	if err != nil {
		t.Fatal(err)
	}
	tx.Signature = [][]byte{made}
	if answer, err := h.wallet.BroadcastTransaction(t.Context(), tx); err != nil || !answer.GetResult() {
		t.Fatalf("%s, %v", answer.GetMessage(), err)
	}
	h.Mine(t, 1)
}

// A wallet to which energy is delegated needs no TRX of the house: the driver says what its resources pay, and the network burns nothing.
func TestTronDelegatedEnergyPaysTheFee(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	from, lender, to := h.NewAccount(t), h.NewAccount(t), h.NewAccount(t)
	h.Fund(t, from.Address, money.Must(money.TRX, "0.000001")) // it activates the account
	h.Fund(t, from.Address, money.Must(money.USDT, "10"))
	h.Fund(t, lender.Address, money.Must(money.TRX, "100000"))
	draft := chain.Draft{Transfer: chain.Transfer{From: from.Address, To: to.Address, Amount: money.Must(money.USDT, "5")}}
	if _, err := h.client.Prepare(t.Context(), draft); chain.ReasonOf(err) != chain.ReasonGas {
		t.Fatalf("without energy: %v", err)
	}
	owner, receiver := tronAddress(t, lender.Address), tronAddress(t, from.Address)
	const staked = 90_000_000_000 // sun
	built, err := h.wallet.FreezeBalanceV2(t.Context(), &core.FreezeBalanceV2Contract{OwnerAddress: owner[:], FrozenBalance: staked, Resource: core.ResourceCode_ENERGY})
	h.stakes(t, lender.Key, built, err)
	built, err = h.wallet.DelegateResource(t.Context(), &core.DelegateResourceContract{
		OwnerAddress: owner[:], ReceiverAddress: receiver[:], Balance: staked, Resource: core.ResourceCode_ENERGY,
	})
	h.stakes(t, lender.Key, built, err)
	u, err := h.client.Prepare(t.Context(), draft)
	if err != nil || u.Staked.Cmp(u.FeeLimit) < 0 || !u.FeeLimit.Positive() {
		t.Fatalf("of a fee of up to %s the delegated energy pays %s, %v", u.FeeLimit, u.Staked, err)
	}
	signed, err := h.client.Sign(u, from.Key)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := h.client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != chain.BroadcastAccepted {
		t.Fatalf("broadcast %+v, %v", b, err)
	}
	h.Mine(t, 1)
	h.Finalise(t)
	at, err := h.client.Locate(t.Context(), signed.TxID)
	if err != nil || !at.OK || !at.Fee.IsZero() {
		t.Errorf("it cost %s: %+v, %v", at.Fee, at, err)
	}
}

package conformance

import (
	"slices"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	lookup "github.com/gagliardetto/solana-go/programs/address-lookup-table"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"

	"kivuko/chain"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange/money"
)

// table makes an address lookup table, whose addresses can be used in the next block.
func (h *solanaHarness) table(t testing.TB, owner sdk.PrivateKey, addresses ...sdk.PublicKey) sdk.PublicKey {
	t.Helper()
	create, table, err := lookup.NewCreateLookupTableInstruction(owner.PublicKey(), owner.PublicKey(), h.node.Head().Slot)
	if err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	h.send(t, []sdk.PrivateKey{owner}, create.Build(), lookup.NewExtendLookupTableInstruction(table, owner.PublicKey(), owner.PublicKey(), addresses).Build())
	h.Mine(t, 1)
	return table
}

// sendLoading sends a transaction of version 0 that loads what it can from a table, and makes its block.
func (h *solanaHarness) sendLoading(t testing.TB, payer sdk.PrivateKey, table sdk.PublicKey, has []sdk.PublicKey, all ...sdk.Instruction) (*sdk.Transaction, uint64) {
	t.Helper()
	tx, err := sdk.NewTransaction(all, h.blockhash(t), sdk.TransactionPayer(payer.PublicKey()),
		sdk.TransactionAddressTables(map[sdk.PublicKey]sdk.PublicKeySlice{table: has}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Sign(func(sdk.PublicKey) *sdk.PrivateKey { return &payer }); err != nil {
		t.Fatal(err)
	}
	if _, err := h.rpc.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed}); err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	return tx, h.node.Head().Slot
}

// TestSolanaDepositsOfLoadedAccounts pays accounts of ours that another's transaction loads from a lookup table, as wallets and
// exchanges do. The balances of a block are told apart by the places of accounts, of which the loaded ones follow the
// message's own: those that may be written, then the others. Every payment must be found at its account and at its place.
func TestSolanaDepositsOfLoadedAccounts(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	payer, ours, theirs := h.Sponsor(t), h.NewAccount(t), h.NewAccount(t)
	key := sdk.PrivateKey(payer.Key.(ed25519Key).PrivateKey)
	wallet, other, mint := solanaKey(t, ours.Address), solanaKey(t, theirs.Address), solanaKey(t, solananode.USDTAddress)
	h.Fund(t, payer.Address, money.Must(money.USDT, "100"))
	h.Fund(t, ours.Address, money.Must(money.USDT, "1"))
	h.Fund(t, theirs.Address, money.Must(money.USDT, "1"))
	h.Fund(t, theirs.Address, money.Must(money.SOL, "1"))
	source, dest, beside := solanaATA(t, key.PublicKey(), mint), solanaATA(t, wallet, mint), solanaATA(t, other, mint)
	// The mint, which is read only, stands first in the table, and what is paid last in reverse.
	has := []sdk.PublicKey{mint, beside, other, dest, wallet}
	table := h.table(t, key, has...)
	pay := func(units uint64, to sdk.PublicKey) sdk.Instruction {
		return token.NewTransferCheckedInstruction(units, uint8(money.USDT.Scale()), source, mint, to, key.PublicKey(), nil).Build()
	}
	tx, slot := h.sendLoading(t, key, table, has,
		pay(7_000_000, dest), system.NewTransferInstruction(2_000_000_000, key.PublicKey(), wallet).Build(),
		pay(5_000_000, beside), system.NewTransferInstruction(3_000_000_000, key.PublicKey(), other).Build())
	id := tx.Signatures[0].String()

	static := uint32(len(tx.Message.AccountKeys))
	loaded := tx.Message.AddressTableLookups[0]
	place := func(of sdk.PublicKey) uint32 {
		at := slices.Index(loaded.WritableIndexes, uint8(slices.Index(has, of)))
		if at < 0 {
			t.Fatalf("%s is not loaded, to be written: %v", of, loaded)
		}
		return static + uint32(at)
	}
	const nativeIndex = 1 << 20 // as the driver numbers movements of SOL
	want := []chain.Movement{
		{Index: place(dest), From: payer.Address, To: ours.Address, Amount: money.Must(money.USDT, "7")},
		{Index: place(beside), From: payer.Address, To: theirs.Address, Amount: money.Must(money.USDT, "5")},
		{Index: nativeIndex + place(wallet), From: payer.Address, To: ours.Address, Amount: money.Must(money.SOL, "2")},
		{Index: nativeIndex + place(other), From: payer.Address, To: theirs.Address, Amount: money.Must(money.SOL, "3")},
	}
	check := func(what string, got []chain.Movement) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d movements, want %d: %+v", what, len(got), len(want), got)
		}
		for _, w := range want {
			if !slices.ContainsFunc(got, func(m chain.Movement) bool {
				return m.TxID == id && m.Index == w.Index && m.From == w.From && m.To == w.To && m.Amount.Equal(w.Amount)
			}) {
				t.Errorf("%s: no %+v in %+v", what, w, got)
			}
		}
	}
	for _, final := range []bool{false, true} {
		if final {
			h.Finalise(t)
		}
		block, err := h.client.Transfers(t.Context(), slot)
		if err != nil || len(block.Unreadable) != 0 {
			t.Fatalf("%v, unreadable %+v", err, block.Unreadable)
		}
		check("the block", block.Movements)
		found, err := h.client.Locate(t.Context(), id)
		if err != nil || !found.OK || (found.Stage == chain.StageFinal) != final {
			t.Fatalf("%+v, %v", found, err)
		}
		check("the transaction", found.Transfers)
	}
	for _, has := range []money.Amount{money.Must(money.USDT, "8"), money.Must(money.SOL, "2")} {
		got, err := h.client.Balance(t.Context(), ours.Address, has.Asset())
		if err != nil || !got.Amount.Equal(has) {
			t.Errorf("our account has %v, want %s: %v", got.Amount, has, err)
		}
	}
}

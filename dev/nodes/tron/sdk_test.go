package tron

import (
	"bytes"
	"context"
	"math/big"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/client"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// ok fails the test on an error and returns the value.
func ok[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestSDKReadsTheChain(t *testing.T) {
	b, ctx := newBench(t), context.Background()
	ab := b.funded(5_000_000, "alice", "bob")
	info := b.mined(b.transferToken(ab[0], ab[1], USDTAddress, 1), ab[0])
	id := Hash(info.Id).String()
	if got := ok[*core.TransactionInfo](t)(b.sdk.GetTransactionInfoByIDCtx(ctx, id)); got.Fee != info.Fee {
		t.Errorf("receipt %v", got)
	}
	if _, err := b.sdk.GetTransactionInfoByIDCtx(ctx, Hash{9}.String()); err == nil {
		t.Error("an unknown transaction has a receipt")
	}
	if _, err := b.sdk.GetAccountCtx(ctx, newActor("nobody").String()); err == nil {
		t.Error("an address that was never used has an account")
	}
	now, err := b.sdk.GetNowBlockCtx(ctx)
	if err != nil || now.BlockHeader.RawData.Number != b.Head().Number {
		t.Errorf("%v %v", now, err)
	}
	byNumber, err := b.sdk.GetBlockByNumCtx(ctx, info.BlockNumber)
	if err != nil || !bytes.Equal(byNumber.Transactions[0].Txid, info.Id) {
		t.Errorf("%v %v", byNumber, err)
	}
	receipts, err := b.sdk.GetBlockInfoByNumCtx(ctx, info.BlockNumber)
	if err != nil || !bytes.Equal(receipts.TransactionInfo[0].Id, info.Id) {
		t.Errorf("%v %v", receipts, err)
	}
	blocks, err := b.sdk.GetBlockByLimitNextCtx(ctx, 0, b.Head().Number+1)
	if err != nil || int64(len(blocks.Block)) != b.Head().Number+1 {
		t.Errorf("%d blocks, %v", len(blocks.GetBlock()), err)
	}
	energy, err1 := b.sdk.GetEnergyPricesCtx(ctx)
	bandwidth, err2 := b.sdk.GetBandwidthPricesCtx(ctx)
	memo, err3 := b.sdk.GetMemoFeeCtx(ctx)
	if err1 != nil || err2 != nil || err3 != nil || energy.Prices != "0:100" || bandwidth.Prices != "0:1000" || memo.Prices != "0:1000000" {
		t.Errorf("prices %v %v %v", energy, bandwidth, memo)
	}
	if n, err := b.sdk.GetNodeInfoCtx(ctx); err != nil || n.Block == "" {
		t.Errorf("%v %v", n, err)
	}
}

func TestSDKMovesTRXAndTokens(t *testing.T) {
	b, ctx := newBench(t), context.Background()
	alice, bob := b.funded(50_000_000, "alice")[0], newActor("bob")
	info := b.mined(b.built(b.sdk.TransferCtx(ctx, alice.String(), bob.String(), 5*trx)), alice)
	if info.Fee != activationFee+createAccountFee {
		t.Errorf("fee %d", info.Fee)
	}
	if x := ok[*core.Account](t)(b.sdk.GetAccountCtx(ctx, bob.String())); x.Balance != 5*trx {
		t.Errorf("bob has %d", x.Balance)
	}
	name, err1 := b.sdk.TRC20GetNameCtx(ctx, USDTAddress)
	symbol, err2 := b.sdk.TRC20GetSymbolCtx(ctx, USDTAddress)
	decimals, err3 := b.sdk.TRC20GetDecimalsCtx(ctx, USDTAddress)
	if err1 != nil || err2 != nil || err3 != nil || name != "Tether USD" || symbol != "USDT" || decimals.Int64() != 6 {
		t.Errorf("%q %q %v", name, symbol, decimals)
	}
	estimate, err := b.sdk.TRC20SendCtx(ctx, alice.String(), bob.String(), USDTAddress, big.NewInt(7), 0, client.WithEstimate())
	if err != nil {
		t.Fatal(err)
	}
	data := calldata("transfer(address,uint256)", addressWord(bob.addr), number(7))
	e, err := b.sdk.EstimateEnergyWithDataCtx(ctx, alice.String(), USDTAddress, data, 0, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	paid := b.mined(b.built(b.sdk.TRC20SendCtx(ctx, alice.String(), bob.String(), USDTAddress, big.NewInt(7), feeCap)), alice)
	if total := paid.Receipt.EnergyUsageTotal; total != estimate.EnergyUsed || total != e.EnergyRequired {
		t.Errorf("used %d energy, simulated %d, estimated %d", total, estimate.EnergyUsed, e.EnergyRequired)
	}
	if got := ok[*big.Int](t)(b.sdk.TRC20ContractBalanceCtx(ctx, bob.String(), USDTAddress)); got.Int64() != 7 {
		t.Errorf("bob has %s", got)
	}
	if abi := ok[*core.SmartContract_ABI](t)(b.sdk.GetContractABICtx(ctx, USDTAddress)); len(abi.Entrys) < 20 {
		t.Errorf("the ABI has %d entries", len(abi.Entrys))
	}
	if _, err := b.sdk.EstimateEnergyWithDataCtx(ctx, newActor("poor").String(), USDTAddress, data, 0, "", 0); err == nil {
		t.Error("an estimate of a revert succeeds")
	}
}

func TestSDKRefusalsCarryTheirCode(t *testing.T) {
	b, ctx := newBench(t), context.Background()
	ab := b.funded(0, "alice", "bob")
	tx := b.signed(b.transferTRX(ab[0], ab[1], 5), ab[0])
	if r, err := b.sdk.BroadcastCtx(ctx, tx); err != nil || !r.Result {
		t.Fatalf("%v %v", r, err)
	}
	r, err := b.sdk.BroadcastCtx(ctx, tx)
	if err == nil || r.GetCode().String() != "DUP_TRANSACTION_ERROR" {
		t.Errorf("a duplicate: %v %v", r, err)
	}
}

func TestSDKStakesDelegatesAndSharesControl(t *testing.T) {
	b, ctx := newBench(t), context.Background()
	ab := b.funded(0, "alice", "bob")
	alice, bob := ab[0], ab[1]
	b.mined(b.built(b.sdk.FreezeBalanceV2Ctx(ctx, alice.String(), core.ResourceCode_ENERGY, 100*trx)), alice)
	b.mined(b.built(b.sdk.DelegateResourceCtx(ctx, alice.String(), bob.String(), core.ResourceCode_ENERGY, 40*trx, false, 0)), alice)
	if r, err := b.sdk.GetAccountResourceCtx(ctx, bob.String()); err != nil || r.EnergyLimit != 400 {
		t.Errorf("%v %v", r, err)
	}
	keys := map[string]int64{alice.String(): 1, bob.String(): 1}
	update := b.built(b.sdk.UpdateAccountPermissionCtx(ctx, alice.String(),
		map[string]any{"threshold": int64(2), "keys": keys}, nil,
		[]map[string]any{{"name": "both", "threshold": int64(2), "keys": keys, "operations": map[string]bool{"TransferContract": true}}}))
	b.mined(update, alice)
	tx := under(b.built(b.sdk.TransferCtx(ctx, alice.String(), bob.String(), 5)), 2)
	w, err := b.sdk.GetTransactionSignWeightCtx(ctx, b.signed(cloneTransaction(tx), bob))
	if err != nil || w.CurrentWeight != 1 || w.Permission.Threshold != 2 || !bytes.Equal(w.ApprovedList[0], address.Address(bob.addr[:])) {
		t.Errorf("%v %v", w, err)
	}
	if info := b.mined(tx, alice, bob); info.Result != core.TransactionInfo_SUCESS {
		t.Errorf("%v", info)
	}
}

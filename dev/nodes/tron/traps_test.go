package tron

import (
	"bytes"
	"context"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// The traps of TRON that a custody service must not fall into. Each test pins
// that the node sets the trap as the real network does.

// deployProbe deploys contracts/Probe.sol and returns the receipt.
func (b *bench) deployProbe(owner actor) *core.TransactionInfo {
	b.t.Helper()
	raw, err := os.ReadFile("contracts/Probe.json")
	if err != nil {
		b.t.Fatal(err)
	}
	a, code, err := readArtefact(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	tx := b.built(b.wallet.DeployContract(context.Background(), &core.CreateSmartContract{
		OwnerAddress: owner.addr[:], NewContract: &core.SmartContract{
			OriginAddress: owner.addr[:], Name: "Probe", Abi: a.message(), Bytecode: code,
			ConsumeUserResourcePercent: 100, OriginEnergyLimit: 10_000_000,
		},
	}))
	tx.RawData.FeeLimit = feeCap
	info := b.mined(tx, owner)
	if info.Receipt.Result != core.Transaction_Result_SUCCESS {
		b.t.Fatalf("deploy: %s %s", info.Receipt.Result, info.ResMessage)
	}
	return info
}

func contractOf(info *core.TransactionInfo) string {
	a, _ := addressOf(info.ContractAddress)
	return a.String()
}

func TestTrapTransferAnswersFalseThoughItSucceeded(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	for _, c := range []struct {
		token string
		word  byte
	}{{USDTAddress, 0}, {USDCAddress, 1}} {
		if c.token == USDCAddress {
			b.must(b.FundToken(mustAddress(USDCAddress), alice.addr, big.NewInt(5_000_000)))
			b.block()
		}
		info := b.mined(b.transferToken(alice, bob, c.token, 2_000_000), alice)
		if info.Receipt.Result != core.Transaction_Result_SUCCESS || info.ContractResult[0][31] != c.word || b.tokenBalance(c.token, bob.addr) != 2_000_000 {
			t.Errorf("%s: result %s, word %x, balance %d", c.token, info.Receipt.Result, info.ContractResult[0], b.tokenBalance(c.token, bob.addr))
		}
	}
}

func TestTrapDirtyAddressWordIsAcceptedByOldCompilersOnly(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	b.must(b.FundToken(mustAddress(USDCAddress), alice.addr, big.NewInt(5_000_000)))
	b.block()
	data := calldata("transfer(address,uint256)", bob.addr[1:], number(7))
	copy(data[4:16], bytes.Repeat([]byte{0x41}, 12))
	if info := b.mined(b.trigger(alice, USDTAddress, data), alice); info.Receipt.Result != core.Transaction_Result_SUCCESS || b.tokenBalance(USDTAddress, bob.addr) != 7 {
		t.Errorf("USDT: %s", info.Receipt.Result)
	}
	if info := b.mined(b.trigger(alice, USDCAddress, data), alice); info.Receipt.Result != core.Transaction_Result_REVERT {
		t.Errorf("USDC: %s", info.Receipt.Result)
	}
}

func TestTrapLogAddressHasTwentyBytes(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	info := b.mined(b.transferToken(alice, bob, USDTAddress, 1), alice)
	token := mustAddress(USDTAddress)
	if l := info.Log[0]; !bytes.Equal(l.Address, token[1:]) || !bytes.Equal(info.ContractAddress, token[:]) || len(l.Topics) != 3 || len(l.Topics[1]) != 32 {
		t.Errorf("log address %x, contract address %x, %d topics", l.Address, info.ContractAddress, len(l.Topics))
	}
}

func TestTrapNotFoundIsAnEmptyMessage(t *testing.T) {
	b := newBench(t)
	ctx, nobody, id := context.Background(), newActor("nobody"), bytes.Repeat([]byte{9}, 32)
	account, err1 := b.wallet.GetAccount(ctx, &core.Account{Address: nobody.addr[:]})
	tx, err2 := b.wallet.GetTransactionById(ctx, &api.BytesMessage{Value: id})
	info, err3 := b.solid.GetTransactionInfoById(ctx, &api.BytesMessage{Value: id})
	future, err4 := b.wallet.GetBlockByNum2(ctx, &api.NumberMessage{Num: 1 << 40})
	contract, err5 := b.wallet.GetContract(ctx, &api.BytesMessage{Value: nobody.addr[:]})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(account.Address) > 0 || tx.RawData != nil || len(info.Id) > 0 || future.BlockHeader != nil || len(contract.Bytecode) > 0 {
		t.Error("something was found")
	}
}

func TestTrapConstantRevertLooksLikeSuccess(t *testing.T) {
	b := newBench(t)
	poor := newActor("poor")
	x := b.constant(poor, USDTAddress, calldata("transfer(address,uint256)", addressWord(newActor("x").addr), number(1)))
	if !x.Result.Result || x.Result.Code != api.Return_SUCCESS {
		t.Fatalf("result %v %s", x.Result.Result, x.Result.Code)
	}
	if string(x.Result.Message) != "REVERT opcode executed" || x.Transaction.Ret[0].Ret != core.Transaction_Result_FAILED {
		t.Errorf("message %q ret %s", x.Result.Message, x.Transaction.Ret[0].Ret)
	}
	e, err := b.wallet.EstimateEnergy(context.Background(), &core.TriggerSmartContract{
		OwnerAddress: poor.addr[:], ContractAddress: x.Transaction.RawData.Contract[0].GetParameter().GetValue()[:0],
	})
	if err != nil || e.Result.Code == api.Return_SUCCESS {
		t.Errorf("an estimate without a contract: %v %v", e, err)
	}
}

func TestTrapSDKBalanceIsZeroWithoutErrorWhenTheCallReverts(t *testing.T) {
	b := newBench(t)
	owner := b.funded(0, "owner")[0]
	probe := contractOf(b.deployProbe(owner))
	got, err := b.sdk.TRC20ContractBalanceCtx(context.Background(), owner.String(), probe)
	if err != nil || got == nil || got.Sign() != 0 {
		t.Errorf("balance %v, error %v: the SDK changed, a caller may rely on the error now", got, err)
	}
}

func TestTrapSDKDropsTheSignOfAnAmount(t *testing.T) {
	b := newBench(t)
	alice := b.funded(5_000_000, "alice")[0]
	x, err := b.sdk.TRC20SendCtx(context.Background(), alice.String(), newActor("bob").String(), USDTAddress, big.NewInt(-5), feeCap)
	if err != nil {
		t.Fatalf("the SDK refuses a negative amount now: %v", err)
	}
	in, err := decode(x.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	if data := in.message.(*core.TriggerSmartContract).Data; data[len(data)-1] != 5 {
		t.Errorf("-5 became %x", data)
	}
}

func TestTrapSDKPermissionUpdateHasNoFixedBytes(t *testing.T) {
	b := newBench(t)
	alice := b.funded(0, "alice")[0]
	keys := map[string]int64{alice.String(): 1, newActor("b").String(): 1, newActor("c").String(): 1}
	owner := map[string]any{"threshold": int64(1), "keys": keys}
	actives := []map[string]any{{"name": "a", "threshold": int64(1), "keys": keys, "operations": map[string]bool{"TransferContract": true}}}
	seen := map[string]bool{}
	for range 60 {
		x, err := b.sdk.UpdateAccountPermissionCtx(context.Background(), alice.String(), owner, nil, actives)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(x.Transaction.RawData.Contract[0].Parameter.Value)] = true
	}
	if len(seen) < 2 {
		t.Error("one request always gives the same bytes: the SDK sorts its keys now")
	}
	defer func() {
		if recover() == nil {
			t.Error("an int threshold no longer panics")
		}
	}()
	_, _ = b.sdk.UpdateAccountPermissionCtx(context.Background(), alice.String(), map[string]any{"threshold": 1, "keys": keys}, nil, nil)
}

func TestTrapEqualPaymentsAreOneTransaction(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	first := b.transferTRX(ab[0], ab[1], 5)
	second := cloneTransaction(first) // as two workers in the same millisecond would build it
	b.send(first, ab[0])
	b.refused(second, api.Return_DUP_TRANSACTION_ERROR, "Dup transaction.", ab[0])
	b.block()
	if got := b.balance(ab[1].addr); got != someTRX+5 {
		t.Errorf("bob has %d, paid more than once or not at all", got)
	}
	third := cloneTransaction(first)
	third.Signature = nil
	third.RawData.Timestamp++
	b.send(third, ab[0])
	b.block()
	if got := b.balance(ab[1].addr); got != someTRX+10 {
		t.Errorf("bob has %d after a payment with a timestamp of its own", got)
	}
}

func TestTrapDuplicateIsAnsweredWhilePendingAndWhenMined(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	tx := b.transferTRX(ab[0], ab[1], 5)
	b.send(tx, ab[0])
	b.refused(tx, api.Return_DUP_TRANSACTION_ERROR, "Dup transaction.")
	b.block()
	b.refused(tx, api.Return_DUP_TRANSACTION_ERROR, "Dup transaction.")
}

func TestTrapExpiredAnswerDoesNotMeanNotMined(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	tx := b.transferTRX(ab[0], ab[1], 5)
	id := b.send(tx, ab[0])
	b.block()
	if err := b.AdvanceTime(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	b.block()
	b.refused(tx, api.Return_TRANSACTION_EXPIRATION_ERROR, "Transaction expired")
	if info := b.receipt(id); info.Result != core.TransactionInfo_SUCESS {
		t.Errorf("result %s", info.Result)
	}
}

func TestTrapReadableIsNotMined(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	id := b.send(b.transferTRX(ab[0], ab[1], 5), ab[0])
	tx, err := b.wallet.GetTransactionById(context.Background(), &api.BytesMessage{Value: id[:]})
	if err != nil || tx.RawData == nil || tx.Ret[0].ContractRet != core.Transaction_Result_SUCCESS {
		t.Errorf("a full node shows what waits: %v %v", tx, err)
	}
	if b.balance(ab[1].addr) != someTRX+5 {
		t.Error("a full node's balances include what waits")
	}
	if info := b.lookup(id); len(info.Id) != 0 {
		t.Error("there is a receipt before a block")
	}
}

func TestTrapTokenTransferDoesNotActivate(t *testing.T) {
	b := newBench(t)
	alice, deposit := b.funded(5_000_000, "alice")[0], newActor("deposit")
	b.mined(b.transferToken(alice, deposit, USDTAddress, 3_000_000), alice)
	x, err := b.wallet.GetAccount(context.Background(), &core.Account{Address: deposit.addr[:]})
	if err != nil || len(x.Address) != 0 {
		t.Fatalf("the deposit address was activated: %v %v", x, err)
	}
	sweep := b.transferToken(deposit, alice, USDTAddress, 3_000_000)
	b.refused(sweep, api.Return_CONTRACT_VALIDATE_ERROR, "account ["+deposit.String()+"] does not exist", deposit)
	info := b.mined(b.transferTRX(alice, deposit, 50*trx), alice)
	if info.Fee != activationFee+createAccountFee {
		t.Errorf("activation cost %d sun, want 1.1 TRX", info.Fee)
	}
	if r := b.mined(b.transferToken(deposit, alice, USDTAddress, 3_000_000), deposit); r.Receipt.Result != core.Transaction_Result_SUCCESS {
		t.Errorf("sweep after activation: %s", r.Receipt.Result)
	}
}

func TestTrapIncludedIsNotPaid(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	before := b.balance(alice.addr)
	info := b.mined(b.transferToken(alice, bob, USDTAddress, 6_000_000), alice)
	if info.Result != core.TransactionInfo_FAILED || info.Receipt.Result != core.Transaction_Result_REVERT || len(info.Log) != 0 ||
		string(info.ResMessage) != "REVERT opcode executed" {
		t.Errorf("%s %s %q, %d logs", info.Result, info.Receipt.Result, info.ResMessage, len(info.Log))
	}
	if b.tokenBalance(USDTAddress, bob.addr) != 0 || b.balance(alice.addr) != before-info.Fee || info.Fee <= 0 {
		t.Errorf("fee %d, bob got %d", info.Fee, b.tokenBalance(USDTAddress, bob.addr))
	}
	tx, err := b.wallet.GetTransactionById(context.Background(), &api.BytesMessage{Value: info.Id})
	if err != nil || tx.Ret[0].ContractRet != core.Transaction_Result_REVERT {
		t.Errorf("contractRet %v %v", tx.Ret, err)
	}
}

func TestTrapFeeLimitTooLowBurnsItAll(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	tx := b.transferToken(alice, bob, USDTAddress, 1_000_000)
	tx.RawData.FeeLimit = trx
	info := b.mined(tx, alice)
	r := info.Receipt
	if r.Result != core.Transaction_Result_OUT_OF_ENERGY || r.EnergyFee != trx || r.EnergyUsageTotal != trx/energyFee || b.tokenBalance(USDTAddress, bob.addr) != 0 {
		t.Errorf("%s, %d energy for %d sun", r.Result, r.EnergyUsageTotal, r.EnergyFee)
	}
	if !strings.HasPrefix(string(info.ResMessage), "Not enough energy for '") {
		t.Errorf("message %q", info.ResMessage)
	}
}

func TestTrapFeeLimitCapsStakedEnergyToo(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	b.must(b.FundTRX(alice.addr, 100_000*trx))
	b.block()
	b.mined(b.built(b.wallet.FreezeBalanceV2(context.Background(), &core.FreezeBalanceV2Contract{
		OwnerAddress: alice.addr[:], FrozenBalance: 50_000 * trx, Resource: core.ResourceCode_ENERGY,
	})), alice)
	tx := b.transferToken(alice, bob, USDTAddress, 1_000_000)
	tx.RawData.FeeLimit = trx // 10,000 energy, with 500,000 staked
	if r := b.mined(tx, alice).Receipt; r.Result != core.Transaction_Result_OUT_OF_ENERGY || r.EnergyFee != 0 || r.EnergyUsage != trx/energyFee {
		t.Errorf("%s: %d staked energy and %d sun used", r.Result, r.EnergyUsage, r.EnergyFee)
	}
	if r := b.mined(b.transferToken(alice, bob, USDTAddress, 1_000_000), alice).Receipt; r.Result != core.Transaction_Result_SUCCESS || r.EnergyFee != 0 {
		t.Errorf("%s, %d sun with enough of both", r.Result, r.EnergyFee)
	}
}

func TestTrapFeeOnTransferLeavesTwoLogs(t *testing.T) {
	b := newBench(t)
	alice, bob, owner := b.funded(5_000_000, "alice")[0], newActor("bob"), genesisActor()
	b.mined(b.trigger(owner, USDTAddress, calldata("setParams(uint256,uint256)", number(10), number(1))), owner)
	info := b.mined(b.transferToken(alice, bob, USDTAddress, 2_000_000), alice)
	if len(info.Log) != 2 {
		t.Fatalf("%d logs", len(info.Log))
	}
	arrived, fee := new(big.Int).SetBytes(info.Log[0].Data).Int64(), new(big.Int).SetBytes(info.Log[1].Data).Int64()
	if arrived != 1_998_000 || fee != 2_000 || wordAddress(info.Log[1].Topics[2]) != owner.addr || b.tokenBalance(USDTAddress, bob.addr) != arrived {
		t.Errorf("arrived %d, fee %d", arrived, fee)
	}
}

func TestTrapBlackListStopsTheSenderNotTheRecipient(t *testing.T) {
	b := newBench(t)
	ab, owner := b.funded(5_000_000, "alice", "bob"), genesisActor()
	alice, bob := ab[0], ab[1]
	b.mined(b.trigger(owner, USDTAddress, calldata("addBlackList(address)", bob.addr[1:])), owner)
	if r := b.mined(b.transferToken(bob, alice, USDTAddress, 1), bob).Receipt; r.Result != core.Transaction_Result_REVERT {
		t.Errorf("a black-listed sender: %s", r.Result)
	}
	if r := b.mined(b.transferToken(alice, bob, USDTAddress, 1), alice).Receipt; r.Result != core.Transaction_Result_SUCCESS {
		t.Errorf("a black-listed recipient: %s", r.Result)
	}
	info := b.mined(b.trigger(owner, USDTAddress, calldata("destroyBlackFunds(address)", bob.addr[1:])), owner)
	want := crypto.Keccak256([]byte("DestroyedBlackFunds(address,uint256)"))
	if !bytes.Equal(info.Log[0].Topics[0], want) || len(info.Log) != 1 || b.tokenBalance(USDTAddress, bob.addr) != 0 {
		t.Errorf("destroyed funds: %d logs, balance %d", len(info.Log), b.tokenBalance(USDTAddress, bob.addr))
	}
}

func TestTrapPauseAndDeprecationStopTransfers(t *testing.T) {
	b := newBench(t)
	alice, owner := b.funded(5_000_000, "alice")[0], genesisActor()
	b.mined(b.trigger(owner, USDTAddress, calldata("pause()")), owner)
	if r := b.mined(b.transferToken(alice, owner, USDTAddress, 1), alice).Receipt; r.Result != core.Transaction_Result_REVERT {
		t.Errorf("paused: %s", r.Result)
	}
	b.mined(b.trigger(owner, USDTAddress, calldata("unpause()")), owner)
	usdc := mustAddress(USDCAddress)
	b.mined(b.trigger(owner, USDTAddress, calldata("deprecate(address)", usdc[1:])), owner)
	if r := b.mined(b.transferToken(alice, owner, USDTAddress, 1), alice).Receipt; r.Result != core.Transaction_Result_REVERT {
		t.Errorf("forwarded to a contract without transferByLegacy: %s", r.Result)
	}
	if got := b.tokenBalance(USDTAddress, owner.addr); got != genesisTokens {
		t.Errorf("a deprecated token's balance is its successor's, got %d", got)
	}
}

func TestTrapMemoCostsOneTRX(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	tx := b.transferTRX(ab[0], ab[1], 5)
	tx.RawData.Data = []byte("order 42")
	if info := b.mined(tx, ab[0]); info.Fee != memoFee {
		t.Errorf("fee %d, want %d", info.Fee, memoFee)
	}
}

package tron

import (
	"context"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

func (b *bench) resources(of actor) *api.AccountResourceMessage {
	b.t.Helper()
	r, err := b.wallet.GetAccountResource(context.Background(), &core.Account{Address: of.addr[:]})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) freeze(who actor, sun int64, r core.ResourceCode) {
	b.t.Helper()
	b.mined(b.built(b.wallet.FreezeBalanceV2(context.Background(),
		&core.FreezeBalanceV2Contract{OwnerAddress: who.addr[:], FrozenBalance: sun, Resource: r})), who)
}

func TestBandwidthIsFreeThenBurnsTRXThenRecovers(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	var burnt *core.TransactionInfo
	for i := range int64(5) {
		info := b.mined(b.transferTRX(ab[0], ab[1], i+1), ab[0])
		if info.Receipt.NetFee == 0 && info.Receipt.NetUsage == 0 {
			t.Fatal("bandwidth for nothing")
		}
		if info.Receipt.NetFee > 0 {
			burnt = info
			break
		}
	}
	if burnt == nil || burnt.Fee != burnt.Receipt.NetFee || burnt.Fee%bandwidthFee != 0 || burnt.Fee < 200*bandwidthFee {
		t.Fatalf("600 free bytes never ran out: %v", burnt)
	}
	used := b.resources(ab[0]).FreeNetUsed
	if err := b.AdvanceTime(12*time.Hour + time.Second); err != nil {
		t.Fatal(err)
	}
	b.block()
	if half := b.resources(ab[0]).FreeNetUsed; half < used/2-3 || half > used/2+2 {
		t.Errorf("used %d, after half a day %d", used, half)
	}
	if err := b.AdvanceTime(12*time.Hour + time.Second); err != nil {
		t.Fatal(err)
	}
	b.block()
	if left := b.resources(ab[0]).FreeNetUsed; left != 0 {
		t.Errorf("after a day still %d used", left)
	}
}

func TestRecoveryIsLinearAndRoundsUp(t *testing.T) {
	for _, c := range []struct{ used, elapsed, want int64 }{
		{600, 0, 600},
		{600, millisPerDay / 2, 300},
		{601, millisPerDay / 2, 301},
		{1, millisPerDay - 1, 1},
		{600, millisPerDay, 0},
		{600, -5, 600},
		{1 << 60, millisPerDay / 4, 3 << 58},
	} {
		if got := recovered(c.used, 1_000, 1_000+c.elapsed); got != c.want {
			t.Errorf("%d used, after %d ms %d, want %d", c.used, c.elapsed, got, c.want)
		}
	}
}

func TestAccountCreationCosts(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(0, "alice")[0], newActor("bob")
	info := b.mined(b.built(b.wallet.CreateAccount2(context.Background(),
		&core.AccountCreateContract{OwnerAddress: alice.addr[:], AccountAddress: bob.addr[:]})), alice)
	if info.Fee != activationFee+createAccountFee || info.Receipt.NetFee != createAccountFee {
		t.Errorf("fee %d, of it %d for bandwidth", info.Fee, info.Receipt.NetFee)
	}
	x, err := b.wallet.CreateAccount2(context.Background(), &core.AccountCreateContract{OwnerAddress: alice.addr[:], AccountAddress: bob.addr[:]})
	if err != nil || string(x.Result.Message) != "Contract validate error : Account has existed" {
		t.Errorf("%v %v", x, err)
	}
}

func TestTransferIsValidated(t *testing.T) {
	b := newBench(t)
	alice := b.funded(0, "alice")[0]
	usdt := mustAddress(USDTAddress)
	for _, c := range []struct {
		name, text string
		m          *core.TransferContract
	}{
		{"self", "Cannot transfer TRX to yourself.", &core.TransferContract{OwnerAddress: alice.addr[:], ToAddress: alice.addr[:], Amount: 1}},
		{"zero", "Amount must be greater than 0.", &core.TransferContract{OwnerAddress: alice.addr[:], ToAddress: usdt[:], Amount: 0}},
		{"contract", "Cannot transfer TRX to a smartContract.", &core.TransferContract{OwnerAddress: alice.addr[:], ToAddress: usdt[:], Amount: 1}},
		{"too much", "Validate TransferContract error, balance is not sufficient.", &core.TransferContract{OwnerAddress: alice.addr[:], ToAddress: keysOf(newActor("n"))[0].Address, Amount: someTRX}},
		{"bad address", "Invalid toAddress!", &core.TransferContract{OwnerAddress: alice.addr[:], ToAddress: []byte{1}, Amount: 1}},
		{"no owner", "Validate TransferContract error, no OwnerAccount.", &core.TransferContract{OwnerAddress: keysOf(newActor("n"))[0].Address, ToAddress: alice.addr[:], Amount: 1}},
	} {
		x, err := b.wallet.CreateTransaction2(context.Background(), c.m)
		if err != nil || x.Result.Code != api.Return_CONTRACT_VALIDATE_ERROR || string(x.Result.Message) != "Contract validate error : "+c.text {
			t.Errorf("%s: %q %v", c.name, x.GetResult().GetMessage(), err)
		}
	}
}

func TestStakedEnergyPaysAndRecovers(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	b.must(b.FundTRX(alice.addr, 10_000*trx))
	b.block()
	b.freeze(alice, 2_000*trx, core.ResourceCode_ENERGY) // 20,000 energy
	info := b.mined(b.transferToken(alice, bob, USDTAddress, 1), alice)
	r := info.Receipt
	if r.EnergyUsage != 20_000 || r.EnergyFee != (r.EnergyUsageTotal-20_000)*energyFee {
		t.Errorf("of %d energy, %d staked and %d sun", r.EnergyUsageTotal, r.EnergyUsage, r.EnergyFee)
	}
	if got := b.resources(alice); got.EnergyLimit != 20_000 || got.EnergyUsed != 20_000 {
		t.Errorf("resources %d of %d", got.EnergyUsed, got.EnergyLimit)
	}
	if err := b.AdvanceTime(24*time.Hour + time.Second); err != nil {
		t.Fatal(err)
	}
	b.block()
	if got := b.resources(alice).EnergyUsed; got != 0 {
		t.Errorf("a day later %d used", got)
	}
}

func TestDelegatedEnergyLetsAPoorAccountSweep(t *testing.T) {
	b := newBench(t)
	ad, ctx := b.funded(5_000_000, "alice", "deposit"), context.Background()
	alice, deposit := ad[0], ad[1]
	b.must(b.FundTRX(alice.addr, 10_000*trx))
	b.block()
	b.freeze(alice, 5_000*trx, core.ResourceCode_ENERGY)
	lend := &core.DelegateResourceContract{OwnerAddress: alice.addr[:], ReceiverAddress: deposit.addr[:], Balance: 4_000 * trx, Resource: core.ResourceCode_ENERGY}
	b.mined(b.built(b.wallet.DelegateResource(ctx, lend)), alice)
	if got := b.resources(deposit).EnergyLimit; got != 40_000 {
		t.Fatalf("deposit may use %d energy", got)
	}
	if r := b.mined(b.transferToken(deposit, alice, USDTAddress, 5_000_000), deposit).Receipt; r.EnergyFee != 0 || r.EnergyUsage != r.EnergyUsageTotal {
		t.Errorf("the sweep burnt %d sun", r.EnergyFee)
	}
	list, err := b.wallet.GetDelegatedResourceV2(ctx, &api.DelegatedResourceMessage{FromAddress: alice.addr[:], ToAddress: deposit.addr[:]})
	if err != nil || len(list.DelegatedResource) != 1 || list.DelegatedResource[0].FrozenBalanceForEnergy != 4_000*trx {
		t.Errorf("%v %v", list, err)
	}
	back := &core.UnDelegateResourceContract{OwnerAddress: alice.addr[:], ReceiverAddress: deposit.addr[:], Balance: 4_000 * trx, Resource: core.ResourceCode_ENERGY}
	b.mined(b.built(b.wallet.UnDelegateResource(ctx, back)), alice)
	if b.resources(deposit).EnergyLimit != 0 || b.resources(alice).EnergyLimit != 50_000 || b.resources(alice).EnergyUsed == 0 {
		t.Errorf("after taking it back: deposit %v, alice %v", b.resources(deposit), b.resources(alice))
	}
	x, err := b.wallet.UnDelegateResource(ctx, back)
	if err != nil || string(x.Result.Message) != "Contract validate error : delegated Resource does not exist" {
		t.Errorf("twice: %v %v", x, err)
	}
}

func TestLockedDelegationStaysUntilItsTime(t *testing.T) {
	b := newBench(t)
	ab, ctx := b.funded(0, "alice", "bob"), context.Background()
	b.freeze(ab[0], 500*trx, core.ResourceCode_BANDWIDTH)
	lend := &core.DelegateResourceContract{
		OwnerAddress: ab[0].addr[:], ReceiverAddress: ab[1].addr[:], Balance: 100 * trx,
		Resource: core.ResourceCode_BANDWIDTH, Lock: true, LockPeriod: 1200, // an hour
	}
	b.mined(b.built(b.wallet.DelegateResource(ctx, lend)), ab[0])
	back := &core.UnDelegateResourceContract{OwnerAddress: ab[0].addr[:], ReceiverAddress: ab[1].addr[:], Balance: 100 * trx}
	x, err := b.wallet.UnDelegateResource(ctx, back)
	if err != nil || string(x.Result.Message) != "Contract validate error : insufficient delegatedFrozenBalance(BANDWIDTH), request=100000000, unlock_balance=0" {
		t.Fatalf("%v %v", x, err)
	}
	if err := b.AdvanceTime(61 * time.Minute); err != nil {
		t.Fatal(err)
	}
	b.block()
	b.mined(b.built(b.wallet.UnDelegateResource(ctx, back)), ab[0])
	if got := b.resources(ab[1]).NetLimit; got != 0 {
		t.Errorf("bob still has %d", got)
	}
}

func TestUnstakingTakesFourteenDays(t *testing.T) {
	b := newBench(t)
	alice, ctx := b.funded(0, "alice")[0], context.Background()
	b.freeze(alice, 100*trx, core.ResourceCode_ENERGY)
	b.mined(b.built(b.wallet.UnfreezeBalanceV2(ctx, &core.UnfreezeBalanceV2Contract{
		OwnerAddress: alice.addr[:], UnfreezeBalance: 60 * trx, Resource: core.ResourceCode_ENERGY,
	})), alice)
	withdraw := &core.WithdrawExpireUnfreezeContract{OwnerAddress: alice.addr[:]}
	if x, err := b.wallet.WithdrawExpireUnfreeze(ctx, withdraw); err != nil || x.Result.Code != api.Return_CONTRACT_VALIDATE_ERROR {
		t.Fatalf("%v %v", x, err)
	}
	if err := b.AdvanceTime(14*24*time.Hour + time.Second); err != nil {
		t.Fatal(err)
	}
	b.block()
	before := b.balance(alice.addr)
	info := b.mined(b.built(b.wallet.WithdrawExpireUnfreeze(ctx, withdraw)), alice)
	if info.WithdrawExpireAmount != 60*trx || b.balance(alice.addr) != before+60*trx-info.Fee {
		t.Errorf("withdrew %d", info.WithdrawExpireAmount)
	}
}

func TestContractOwnerSharesTheEnergy(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "owner", "caller")
	owner, caller := ab[0], ab[1]
	probe := contractOf(b.deployProbe(owner))
	b.freeze(owner, 500*trx, core.ResourceCode_ENERGY)
	b.chain.mu.Lock()
	at := stateKey{space: spaceContract, address: mustAddress(probe)}
	shared := &core.SmartContract{
		OriginAddress: owner.addr[:], ContractAddress: at.address[:], ConsumeUserResourcePercent: 40, OriginEnergyLimit: 3_000,
	}
	b.chain.state.revert(0)
	b.chain.state.write(at, shared)
	b.chain.mu.Unlock()
	r := b.mined(b.trigger(caller, probe, calldata("bump()")), caller).Receipt
	if r.OriginEnergyUsage != 3_000 || r.EnergyFee != (r.EnergyUsageTotal-3_000)*energyFee {
		t.Errorf("of %d energy the owner gave %d, the caller paid %d sun", r.EnergyUsageTotal, r.OriginEnergyUsage, r.EnergyFee)
	}
}

func TestMachineFailures(t *testing.T) {
	b := newBench(t)
	owner := b.funded(0, "owner")[0]
	probe := contractOf(b.deployProbe(owner))
	for _, c := range []struct {
		call   string
		result core.Transaction_ResultContractResult
		burns  bool
	}{
		{"exhaust()", core.Transaction_Result_OUT_OF_ENERGY, true},
		{"refuse()", core.Transaction_Result_REVERT, false},
		{"invalid()", core.Transaction_Result_ILLEGAL_OPERATION, true},
		{"bump()", core.Transaction_Result_SUCCESS, false},
	} {
		tx := b.trigger(owner, probe, calldata(c.call))
		tx.RawData.FeeLimit = 10 * trx
		info := b.mined(tx, owner)
		if info.Receipt.Result != c.result || (info.Receipt.EnergyFee == 10*trx) != c.burns {
			t.Errorf("%s: %s for %d sun: %s", c.call, info.Receipt.Result, info.Receipt.EnergyFee, info.ResMessage)
		}
	}
	x := b.constant(owner, probe, calldata("counter()"))
	if x.ConstantResult[0][31] != 1 {
		t.Errorf("counter is %x: a failed call left its mark", x.ConstantResult[0])
	}
	if x := b.constant(owner, probe, calldata("exhaust()")); x.Result.Code != api.Return_CONTRACT_EXE_ERROR {
		t.Errorf("an endless constant call: %s %s", x.Result.Code, x.Result.Message)
	}
}

func TestCallValueMovesTRX(t *testing.T) {
	b := newBench(t)
	owner, heir := b.funded(0, "owner")[0], newActor("heir")
	probe := contractOf(b.deployProbe(owner))
	at := mustAddress(probe)
	tx := b.built(b.wallet.TriggerContract(context.Background(), &core.TriggerSmartContract{
		OwnerAddress: owner.addr[:], ContractAddress: at[:], Data: calldata("bump()"), CallValue: 30 * trx,
	}))
	tx.RawData.FeeLimit = feeCap
	b.mined(tx, owner)
	if got := b.balance(at); got != 30*trx {
		t.Fatalf("the contract holds %d sun", got)
	}
	info := b.mined(b.trigger(owner, probe, calldata("pay(address,uint256)", addressWord(heir.addr), number(20*trx))), owner)
	if info.Receipt.Result != core.Transaction_Result_SUCCESS || b.balance(heir.addr) != 20*trx || b.balance(at) != 10*trx {
		t.Errorf("%s: heir has %d", info.Receipt.Result, b.balance(heir.addr))
	}
	info = b.mined(b.trigger(owner, probe, calldata("pay(address,uint256)", addressWord(heir.addr), number(11*trx))), owner)
	if info.Receipt.Result == core.Transaction_Result_SUCCESS || b.balance(heir.addr) != 20*trx {
		t.Errorf("paid more than it held: %s", info.Receipt.Result)
	}
}

func TestChainIDOpcodeIsTheGenesisBlocks(t *testing.T) {
	b := newBench(t)
	owner := b.funded(0, "owner")[0]
	x := b.constant(owner, contractOf(b.deployProbe(owner)), calldata("chain()"))
	first, err := b.wallet.GetBlockByNum2(context.Background(), &api.NumberMessage{Num: 0})
	if err != nil {
		t.Fatal(err)
	}
	if got := x.ConstantResult[0][28:32]; string(got) != string(first.Blockid[28:]) {
		t.Errorf("chain id %x, genesis %x", got, first.Blockid)
	}
}

func TestContractsMakeContracts(t *testing.T) {
	b := newBench(t)
	owner := b.funded(0, "owner")[0]
	info := b.mined(b.trigger(owner, contractOf(b.deployProbe(owner)), calldata("spawn()")), owner)
	if info.Receipt.Result != core.Transaction_Result_SUCCESS {
		t.Fatalf("%s %s", info.Receipt.Result, info.ResMessage)
	}
	x := b.constant(owner, wordAddress(info.ContractResult[0]).String(), calldata("answer()"))
	if len(x.ConstantResult) != 1 || x.ConstantResult[0][31] != 42 {
		t.Errorf("the child answers %s %q %x", x.Result.Code, x.Result.Message, x.ConstantResult)
	}
}

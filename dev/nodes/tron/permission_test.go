package tron

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// transferAndTrigger are the operations of a treasury's active permission:
// TransferContract (1) and TriggerSmartContract (31).
var transferAndTrigger = operations(0x02, 0x00, 0x00, 0x80)

func keysOf(actors ...actor) (out []*core.Key) {
	for _, a := range actors {
		out = append(out, &core.Key{Address: bytes.Clone(a.addr[:]), Weight: 1})
	}
	slices.SortFunc(out, func(a, b *core.Key) int { return bytes.Compare(a.Address, b.Address) })
	return out
}

// twoOfThree is an update that gives owner and one active permission to 2 of 3.
func twoOfThree(of actor, keys ...actor) *core.AccountPermissionUpdateContract {
	return &core.AccountPermissionUpdateContract{
		OwnerAddress: of.addr[:],
		Owner:        &core.Permission{Type: core.Permission_Owner, PermissionName: "owner", Threshold: 2, Keys: keysOf(keys...)},
		Actives: []*core.Permission{{
			Type: core.Permission_Active, Id: 2, PermissionName: "treasury", Threshold: 2,
			Operations: transferAndTrigger, Keys: keysOf(keys...),
		}},
	}
}

func (b *bench) update(m *core.AccountPermissionUpdateContract) *core.Transaction {
	b.t.Helper()
	return b.built(b.wallet.AccountPermissionUpdate(context.Background(), m))
}

// treasury is an account of alice's that 2 of alice, bob and carol control.
func (b *bench) treasury() (alice, bob, carol actor) {
	b.t.Helper()
	abc := b.funded(50_000_000, "alice", "bob", "carol")
	info := b.mined(b.update(twoOfThree(abc[0], abc...)), abc[0])
	if info.Fee < permissionUpdateFee {
		b.t.Fatalf("the update cost %d sun", info.Fee)
	}
	return abc[0], abc[1], abc[2]
}

func under(tx *core.Transaction, permission int32) *core.Transaction {
	tx.RawData.Contract[0].PermissionId = permission
	return tx
}

func TestTwoOfThreeMovesTokens(t *testing.T) {
	b := newBench(t)
	alice, bob, carol := b.treasury()
	dave := newActor("dave")
	info := b.mined(under(b.transferToken(alice, dave, USDTAddress, 7_000_000), 2), bob, carol)
	if info.Receipt.Result != core.Transaction_Result_SUCCESS || b.tokenBalance(USDTAddress, dave.addr) != 7_000_000 {
		t.Fatalf("%s", info.Receipt.Result)
	}
	if extra := info.Fee - info.Receipt.EnergyFee - info.Receipt.NetFee; extra != multiSignFee {
		t.Errorf("two signatures cost %d sun besides, want %d", extra, multiSignFee)
	}
}

func TestSignaturesAreWeighed(t *testing.T) {
	b := newBench(t)
	alice, bob, carol := b.treasury()
	dave := newActor("dave")
	fresh := func() *core.Transaction { return under(b.transferTRX(alice, dave, 5), 2) }
	b.refused(fresh(), api.Return_SIGERROR, "Validate signature error: sig error", bob)
	b.refused(fresh(), api.Return_SIGERROR, "it is not contained of permission.", bob, dave)
	b.refused(fresh(), api.Return_SIGERROR, bob.String()+" has signed twice!", bob, bob)
	b.refused(fresh(), api.Return_SIGERROR, "Signature count is 4 more than key counts of permission : 3", alice, bob, carol, bob)
	b.refused(fresh(), api.Return_SIGERROR, "miss sig or contract")
	b.refused(under(fresh(), 3), api.Return_SIGERROR, "permission isn't exit", bob, carol)
	b.refused(b.transferTRX(alice, dave, 5), api.Return_SIGERROR, "sig error", alice) // alone, as the owner it was
}

func TestOperationsBoundAPermission(t *testing.T) {
	b := newBench(t)
	alice, bob, carol := b.treasury()
	tx := under(b.built(b.wallet.FreezeBalanceV2(context.Background(), &core.FreezeBalanceV2Contract{
		OwnerAddress: alice.addr[:], FrozenBalance: 2 * trx, Resource: core.ResourceCode_ENERGY,
	})), 2)
	b.refused(tx, api.Return_SIGERROR, "Permission denied", bob, carol)
	b.refused(under(b.update(twoOfThree(alice, bob, carol, alice)), 2), api.Return_SIGERROR, "Permission denied", bob, carol)
}

func TestTronwebRecoveryIDIsAccepted(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	tx := b.signed(b.transferTRX(ab[0], ab[1], 5), ab[0])
	tx.Signature[0][64] += 27
	b.send(tx)
}

func TestSignWeightAndApprovedList(t *testing.T) {
	b := newBench(t)
	alice, bob, carol := b.treasury()
	dave, ctx := newActor("dave"), context.Background()
	tx := under(b.transferTRX(alice, dave, 5), 2)
	for _, c := range []struct {
		by     []actor
		code   api.TransactionSignWeight_ResultResponseCode
		weight int64
		text   string
	}{
		{nil, api.TransactionSignWeight_Result_NOT_ENOUGH_PERMISSION, 0, ""},
		{[]actor{bob}, api.TransactionSignWeight_Result_NOT_ENOUGH_PERMISSION, 1, ""},
		{[]actor{bob, carol}, api.TransactionSignWeight_Result_ENOUGH_PERMISSION, 2, ""},
		{[]actor{bob, dave}, api.TransactionSignWeight_Result_PERMISSION_ERROR, 0, "is not contained of permission."},
		{[]actor{bob, bob}, api.TransactionSignWeight_Result_PERMISSION_ERROR, 0, "has signed twice!"},
	} {
		signed := b.signed(cloneTransaction(tx), c.by...)
		w, err := b.wallet.GetTransactionSignWeight(ctx, signed)
		if err != nil {
			t.Fatal(err)
		}
		if w.Result.Code != c.code || w.CurrentWeight != c.weight || !strings.Contains(w.Result.Message, c.text) {
			t.Errorf("%d signatures: %s weight %d %q", len(c.by), w.Result.Code, w.CurrentWeight, w.Result.Message)
		}
		l, err := b.wallet.GetTransactionApprovedList(ctx, signed)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.ApprovedList) != len(c.by) || (len(c.by) > 0 && !bytes.Equal(l.ApprovedList[0], c.by[0].addr[:])) {
			t.Errorf("approved list %x", l.ApprovedList)
		}
	}
	short := cloneTransaction(tx)
	short.Signature = [][]byte{{1, 2, 3}}
	if w, _ := b.wallet.GetTransactionSignWeight(ctx, short); w.Result.Code != api.TransactionSignWeight_Result_SIGNATURE_FORMAT_ERROR {
		t.Errorf("a short signature: %s", w.Result.Code)
	}
}

func TestPermissionUpdateClosesTheBlockForItsAccount(t *testing.T) {
	b := newBench(t)
	abc := b.funded(0, "alice", "bob", "carol")
	alice := abc[0]
	keep := twoOfThree(alice, abc...)
	keep.Owner.Threshold, keep.Actives[0].Threshold = 1, 1
	keep.Actives[0].Operations = defaultOperations
	update := b.send(b.update(keep), alice)
	later := b.send(b.transferTRX(alice, abc[1], 5), alice)
	first := b.block()
	second := b.block()
	if b.receipt(update).BlockNumber != first.Number || b.receipt(later).BlockNumber != second.Number {
		t.Errorf("update in %d, transfer in %d", b.receipt(update).BlockNumber, b.receipt(later).BlockNumber)
	}
}

func TestTransactionSignedBeforeAPermissionUpdateFallsOut(t *testing.T) {
	b := newBench(t)
	abc := b.funded(0, "alice", "bob", "carol")
	b.send(b.update(twoOfThree(abc[0], abc...)), abc[0])
	// Valid when sent, no longer valid once the update is in a block before it.
	tx := b.transferTRX(abc[0], abc[1], 5)
	b.refused(tx, api.Return_SIGERROR, "sig error", abc[0])
	b.block()
	if got := b.balance(abc[1].addr); got != someTRX {
		t.Errorf("bob has %d", got)
	}
}

func TestPermissionUpdateIsValidated(t *testing.T) {
	b := newBench(t)
	abc := b.funded(0, "alice", "bob", "carol")
	alice := abc[0]
	for _, c := range []struct {
		name, text string
		change     func(*core.AccountPermissionUpdateContract)
	}{
		{"no owner", "owner permission is missed", func(m *core.AccountPermissionUpdateContract) { m.Owner = nil }},
		{"witness", "account isn't witness can't set witness permission", func(m *core.AccountPermissionUpdateContract) { m.Witness = m.Owner }},
		{"no active", "active permission is missed", func(m *core.AccountPermissionUpdateContract) { m.Actives = nil }},
		{"nine actives", "active permission is too many", func(m *core.AccountPermissionUpdateContract) {
			m.Actives = slices.Repeat(m.Actives, 9)
		}},
		{"no keys", "key's count should be greater than 0", func(m *core.AccountPermissionUpdateContract) { m.Owner.Keys = nil }},
		{"six keys", "number of keys in permission should not be greater than 5", func(m *core.AccountPermissionUpdateContract) {
			m.Owner.Keys = slices.Repeat(m.Owner.Keys, 2)
		}},
		{"key twice", "address should be distinct in permission Owner", func(m *core.AccountPermissionUpdateContract) { m.Owner.Keys[0] = m.Owner.Keys[1] }},
		{"weight", "key's weight should be greater than 0", func(m *core.AccountPermissionUpdateContract) { m.Owner.Keys[0].Weight = 0 }},
		{"threshold", "permission's threshold should be greater than 0", func(m *core.AccountPermissionUpdateContract) { m.Owner.Threshold = 0 }},
		{"sum", "sum of all key's weight should not be less than threshold in permission Owner", func(m *core.AccountPermissionUpdateContract) { m.Owner.Threshold = 4 }},
		{"name", "permission's name is too long", func(m *core.AccountPermissionUpdateContract) { m.Owner.PermissionName = strings.Repeat("x", 33) }},
		{"long name in another script", "permission's name is too long", func(m *core.AccountPermissionUpdateContract) { m.Owner.PermissionName = strings.Repeat("財", 33) }},
		{"long name of pairs", "permission's name is too long", func(m *core.AccountPermissionUpdateContract) {
			m.Owner.PermissionName = strings.Repeat("\U0001F512", 17)
		}},
		{"owner operations", "Owner permission needn't operations", func(m *core.AccountPermissionUpdateContract) { m.Owner.Operations = defaultOperations }},
		{"short operations", "operations size must 32", func(m *core.AccountPermissionUpdateContract) { m.Actives[0].Operations = []byte{2} }},
		{"unknown operation", "7 isn't a validate ContractType", func(m *core.AccountPermissionUpdateContract) { m.Actives[0].Operations = operations(0x80) }},
		{"bad key", "key is not a validate address", func(m *core.AccountPermissionUpdateContract) { m.Owner.Keys[0].Address = []byte{1} }},
	} {
		m := proto.Clone(twoOfThree(alice, abc...)).(*core.AccountPermissionUpdateContract)
		c.change(m)
		x, err := b.wallet.AccountPermissionUpdate(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		if x.Result.Code != api.Return_CONTRACT_VALIDATE_ERROR || string(x.Result.Message) != "Contract validate error : "+c.text {
			t.Errorf("%s: %s %q", c.name, x.Result.Code, x.Result.Message)
		}
	}
	// java-tron counts characters of 16 bits, not bytes: 32 of them need 96 bytes here.
	named := twoOfThree(alice, abc...)
	named.Owner.PermissionName, named.Actives[0].PermissionName = strings.Repeat("財", 32), strings.Repeat("\U0001F512", 16)
	b.update(named)
	poor := newActor("poor")
	b.must(b.FundTRX(poor.addr, 50*trx))
	b.block()
	b.refused(b.update(twoOfThree(poor, abc...)), api.Return_CONTRACT_EXE_ERROR, "insufficient balance, balance: ", poor)
}

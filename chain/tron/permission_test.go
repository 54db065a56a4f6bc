package tron

import (
	"strings"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// shared is an account whose payments need two of three owners, and whose changes need all of them.
func shared(t testing.TB, owners []chain.Owner) *core.Account {
	t.Helper()
	owner := &core.Permission{Type: core.Permission_Owner, PermissionName: "owner"}
	active := &core.Permission{Type: core.Permission_Active, Id: 2, PermissionName: "payments", Operations: payments}
	if err := setKeys(owner, chain.Quorum{Owners: owners, Threshold: 3}); err != nil {
		t.Fatal(err)
	}
	if err := setKeys(active, chain.Quorum{Owners: owners, Threshold: 2}); err != nil {
		t.Fatal(err)
	}
	return &core.Account{
		Address: mustParse(t, alice).full(), Balance: 1e9, OwnerPermission: owner, ActivePermission: []*core.Permission{active},
	}
}

func TestQuorumRules(t *testing.T) {
	_, owners := people(t, offline(t), 3)
	q, err := quorumOf(shared(t, owners))
	if err != nil || q.Threshold != 2 || q.Permission != 2 || len(q.Owners) != 3 || q.Control == nil || q.Control.Threshold != 3 {
		t.Fatalf("%+v, %v", q, err)
	}
	bits := func(kinds ...core.Transaction_Contract_ContractType) []byte { return operations(kinds...) }
	const transfer, trigger = core.Transaction_Contract_TransferContract, core.Transaction_Contract_TriggerSmartContract
	for name, c := range map[string]struct {
		text string // empty: accepted
		edit func(*core.Account)
	}{
		"the same owners for both": {"", func(a *core.Account) { a.OwnerPermission.Threshold = 2 }},
		"keys in another order":    {"", func(a *core.Account) { k := a.ActivePermission[0].Keys; k[0], k[2] = k[2], k[0] }},
		"weights": {"", func(a *core.Account) {
			a.ActivePermission[0].Keys[0].Weight, a.OwnerPermission.Keys[0].Weight, a.OwnerPermission.Threshold = 2, 2, 3
		}},
		"another number":       {"", func(a *core.Account) { a.ActivePermission[0].Id = 4 }},
		"never activated":      {"never activated", func(a *core.Account) { a.Address = nil }},
		"a contract":           {"is a contract", func(a *core.Account) { a.Type = core.AccountType_Contract }},
		"a witness":            {"witness permission", func(a *core.Account) { a.WitnessPermission = a.OwnerPermission }},
		"a producer":           {"witness permission", func(a *core.Account) { a.IsWitness = true }},
		"an ordinary account":  {"one owner", func(a *core.Account) { a.OwnerPermission = nil }},
		"no active permission": {"0 active permissions", func(a *core.Account) { a.ActivePermission = nil }},
		"two that move money": {"2 active permissions may move money", func(a *core.Account) {
			a.ActivePermission = append(a.ActivePermission, a.ActivePermission[0])
		}},
		"another that moves none": {"2 active permissions; it must have one", func(a *core.Account) {
			other := proto.CloneOf(a.ActivePermission[0])
			other.Operations = bits(core.Transaction_Contract_VoteWitnessContract)
			a.ActivePermission = append(a.ActivePermission, other)
		}},
		"one that changes permissions": {"operation 46", func(a *core.Account) {
			a.ActivePermission[0].Operations = bits(transfer, trigger, core.Transaction_Contract_AccountPermissionUpdateContract)
		}},
		"one that does more": {"has the operations", func(a *core.Account) {
			a.ActivePermission[0].Operations = bits(transfer, trigger, core.Transaction_Contract_FreezeBalanceV2Contract)
		}},
		"one that does less": {"has the operations", func(a *core.Account) { a.ActivePermission[0].Operations = bits(transfer) }},
		"short operations":   {"has the operations", func(a *core.Account) { a.ActivePermission[0].Operations = []byte{2} }},
		"an owner number":    {"the number 0", func(a *core.Account) { a.ActivePermission[0].Id = 0 }},
		"six keys": {"1 to 5", func(a *core.Account) {
			a.ActivePermission[0].Keys = append(a.ActivePermission[0].Keys, a.OwnerPermission.Keys...)
		}},
		"a key twice": {"named twice", func(a *core.Account) { k := a.ActivePermission[0].Keys; k[0] = k[1] }},
		"one key": {"one key alone", func(a *core.Account) {
			a.ActivePermission[0].Keys, a.ActivePermission[0].Threshold = a.ActivePermission[0].Keys[:1], 1
		}},
		"weights that don't reach": {"sum up to 3", func(a *core.Account) { a.ActivePermission[0].Threshold = 4 }},
		"no threshold":             {"wants a weight of 0", func(a *core.Account) { a.ActivePermission[0].Threshold = 0 }},
		"a threshold without end":  {"wants a weight of", func(a *core.Account) { a.OwnerPermission.Threshold = 1 << 40 }},
		"a negative weight":        {"the weight -1", func(a *core.Account) { a.ActivePermission[0].Keys[0].Weight = -1 }},
		"a key that is none":       {"the key 01", func(a *core.Account) { a.ActivePermission[0].Keys[0].Address = []byte{1} }},
		"control that wants less": {"want a weight of 3, which is less than the 4 of payments", func(a *core.Account) {
			for _, k := range a.ActivePermission[0].Keys {
				k.Weight = 2
			}
			a.ActivePermission[0].Threshold = 4
		}},
		"control of a heavy key": {"need 1 keys", func(a *core.Account) {
			a.OwnerPermission.Keys[0].Weight, a.OwnerPermission.Threshold = 7, 5
		}},
	} {
		account := proto.CloneOf(shared(t, owners))
		c.edit(account)
		q, err := quorumOf(account)
		if c.text == "" {
			if err != nil || len(q.Owners) != 3 {
				t.Errorf("%s: %+v, %v", name, q, err)
			}
			continue
		}
		if chain.ReasonOf(err) != chain.ReasonForeign || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}

// Quorum compares the newest block with the newest final one.
func TestQuorumThatMoves(t *testing.T) {
	_, owners := people(t, offline(t), 3)
	now, before := shared(t, owners), shared(t, owners)
	before.OwnerPermission.Threshold = 2
	ordinary := &core.Account{Address: now.GetAddress()}
	for name, q := range map[string]struct {
		full, solid *stub
		moving      bool
		reason      chain.Reason
	}{
		"at rest":                {&stub{head: 9, account: now}, &stub{head: 5, account: now}, false, ""},
		"other owners":           {&stub{head: 9, account: now}, &stub{head: 5, account: before}, true, ""},
		"it was ordinary":        {&stub{head: 9, account: now}, &stub{head: 5, account: ordinary}, true, ""},
		"it becomes ordinary":    {&stub{head: 9, account: ordinary}, &stub{head: 5, account: now}, true, ""},
		"it never had owners":    {&stub{head: 9, account: ordinary}, &stub{head: 5, account: ordinary}, false, chain.ReasonForeign},
		"a full node far behind": {&stub{head: 4, account: now}, &stub{head: 5, account: now}, false, chain.ReasonUnavailable},
		"no node":                {&stub{down: true}, &stub{head: 5, account: now}, false, chain.ReasonUnavailable},
	} {
		got, err := stubbed(t, []*stub{q.full}, []*stub{q.solid}).Quorum(t.Context(), alice)
		if chain.ReasonOf(err) != q.reason || got.Moving != q.moving {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err == nil && (got.Head.Latest.Number != 9 || got.Head.Final.Number != 5 || got.Control.Threshold != 3) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := offline(t).Quorum(t.Context(), "x"); chain.ReasonOf(err) != chain.ReasonAddress {
		t.Errorf("%v", err)
	}
}

// An ordinary payment is refused when the sender's own key does not suffice.
func TestPrepareNeedsTheOwnKey(t *testing.T) {
	_, owners := people(t, offline(t), 3)
	own := &core.Key{Address: mustParse(t, alice).full(), Weight: 2}
	other := &core.Key{Address: mustParse(t, owners[0].Address).full(), Weight: 1}
	params := &core.ChainParameters{ChainParameter: []*core.ChainParameters_ChainParameter{
		{Key: "getEnergyFee", Value: 100},
		{Key: "getTransactionFee", Value: 1000},
		{Key: "getCreateNewAccountFeeInSystemContract", Value: 1_000_000},
		{Key: "getCreateAccountFee", Value: 100_000},
		{Key: "getMultiSignFee", Value: 1_000_000},
		{Key: "getUpdateAccountPermissionFee", Value: 100_000_000},
	}}
	for name, q := range map[string]struct {
		permission *core.Permission
		text       string
	}{
		"the default":           {nil, ""},
		"its own key":           {&core.Permission{Threshold: 1, Keys: []*core.Key{own}}, ""},
		"its own and another":   {&core.Permission{Threshold: 2, Keys: []*core.Key{other, own}}, ""},
		"its own weighs less":   {&core.Permission{Threshold: 3, Keys: []*core.Key{own, other}}, "can't sign for it alone"},
		"another key":           {&core.Permission{Threshold: 1, Keys: []*core.Key{other}}, "names other keys"},
		"of several owners":     {shared(t, owners).OwnerPermission, "names other keys"},
		"a key that is garbage": {&core.Permission{Threshold: 1, Keys: []*core.Key{{Address: []byte{1}, Weight: 9}}}, "names other keys"},
	} {
		node := &stub{head: 5, params: params, account: &core.Account{Address: own.Address, Balance: 1e9, OwnerPermission: q.permission}}
		want := chain.Transfer{From: alice, To: bob, Amount: money.Must(money.TRX, "1")}
		_, err := stubbed(t, []*stub{node}, []*stub{{head: 4}}).Prepare(t.Context(), chain.Draft{Transfer: want})
		if q.text == "" && err != nil || q.text != "" && (chain.ReasonOf(err) != chain.ReasonForeign || !strings.Contains(err.Error(), q.text)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOrdinaryAccountsThatGetOwners(t *testing.T) {
	_, owners := people(t, offline(t), 3)
	own := mustParse(t, alice)
	key := func() []*core.Key { return []*core.Key{{Address: own.full(), Weight: 1}} }
	ordinary := func() *core.Account {
		return &core.Account{
			Address: own.full(), OwnerPermission: &core.Permission{Threshold: 1, Keys: key()},
			ActivePermission: []*core.Permission{{Type: core.Permission_Active, Id: 2, Threshold: 1, Keys: key()}},
		}
	}
	for name, q := range map[string]struct {
		good bool
		edit func(*core.Account)
	}{
		"as it is activated": {true, func(*core.Account) {}},
		"before permissions": {true, func(a *core.Account) { a.OwnerPermission, a.ActivePermission = nil, nil }},
		"a heavy own key":    {true, func(a *core.Account) { a.OwnerPermission.Keys[0].Weight = 5 }},
		"another owner":      {false, func(a *core.Account) { a.OwnerPermission.Keys = shared(t, owners).OwnerPermission.Keys }},
		"another owner beside": {false, func(a *core.Account) {
			a.OwnerPermission.Keys = append(key(), shared(t, owners).OwnerPermission.Keys...)
		}},
		"an active of another key": {false, func(a *core.Account) { a.ActivePermission = shared(t, owners).ActivePermission }},
		"a second active":          {false, func(a *core.Account) { a.ActivePermission = append(a.ActivePermission, a.ActivePermission[0]) }},
		"a producer":               {false, func(a *core.Account) { a.IsWitness = true }},
	} {
		account := ordinary()
		q.edit(account)
		got, err := alone(account, own)
		if q.good && (err != nil || !same(got, chain.Quorum{Owners: []chain.Owner{{Address: alice, Weight: 1}}, Threshold: 1})) ||
			!q.good && chain.ReasonOf(err) != chain.ReasonForeign {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

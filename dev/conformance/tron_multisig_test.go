package conformance

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/client"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	node "kivuko/dev/nodes/tron"
	"kivuko/exchange/money"
)

func TestTronMultisig(t *testing.T) {
	t.Parallel()
	chaintest.RunMultisig(t, func(t testing.TB) chaintest.MultisigHarness { return startTronCommittee(t) })
}

// startTronCommittee is a node whose USDT costs what the main network's does.
func startTronCommittee(t testing.TB) *tronHarness {
	t.Helper()
	h := startTron(t, money.USDT, money.USDC)
	if err := h.node.SetEnergyFactor(tronAddress(t, node.USDTAddress), node.DefaultUSDTEnergyFactor); err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	h.Finalise(t)
	return h
}

func (h *tronHarness) Rules() chaintest.JointRules {
	return chaintest.JointRules{Native: true, Expires: true}
}

// Payer is none: the account pays.
func (h *tronHarness) Payer(testing.TB) chaintest.Account { return chaintest.Account{} }

func (h *tronHarness) Complete(_ testing.TB, d chain.JointDraft, _ chaintest.Account) chain.JointDraft {
	return d
}

func (h *tronHarness) Change(owners []chaintest.Account, threshold uint32) *chain.OwnersChange {
	return &chain.OwnersChange{Owners: weighted(owners), Threshold: threshold}
}

// weighted are owners with weights, or all with 1.
func weighted(owners []chaintest.Account, weights ...uint32) []chain.Owner {
	out := make([]chain.Owner, len(owners))
	for i, o := range owners {
		out[i] = chain.Owner{Address: o.Address, Weight: 1}
		if i < len(weights) {
			out[i].Weight = weights[i]
		}
	}
	return out
}

func (h *tronHarness) NewMultisig(t testing.TB, owners []chaintest.Account, threshold uint32) string {
	t.Helper()
	q := chain.OwnersChange{Owners: weighted(owners), Threshold: threshold}
	return h.shared(t, permission(t, core.Permission_Owner, "owner", q), permission(t, core.Permission_Active, "active", q)).Address
}

// paymentOperations are transfers of TRX and calls of contracts.
var paymentOperations = append([]byte{2, 0, 0, 0x80}, make([]byte, 28)...)

func permission(t testing.TB, kind core.Permission_PermissionType, name string, q chain.OwnersChange) *core.Permission {
	t.Helper()
	p := &core.Permission{Type: kind, PermissionName: name, Threshold: int64(q.Threshold)}
	if kind == core.Permission_Active {
		p.Operations = paymentOperations
	}
	for _, o := range q.Owners {
		a := tronAddress(t, o.Address)
		p.Keys = append(p.Keys, &core.Key{Address: a[:], Weight: int64(o.Weight)})
	}
	return p
}

// shared makes an account and gives it permissions, without the driver.
func (h *tronHarness) shared(t testing.TB, owner *core.Permission, actives ...*core.Permission) chaintest.Account {
	t.Helper()
	a := h.NewAccount(t)
	h.Fund(t, a.Address, money.Must(money.TRX, "1000"))
	h.update(t, a.Address, owner, actives, a.Key)
	h.Finalise(t)
	return a
}

// update changes the permissions of an account with another tool than the driver: what the node builds is signed and sent.
func (h *tronHarness) update(t testing.TB, account string, owner *core.Permission, actives []*core.Permission, keys ...chain.Key) {
	t.Helper()
	a := tronAddress(t, account)
	built, err := h.wallet.AccountPermissionUpdate(t.Context(), &core.AccountPermissionUpdateContract{OwnerAddress: a[:], Owner: owner, Actives: actives})
	if err != nil || built.GetResult().GetCode() != api.Return_SUCCESS {
		t.Fatalf("%v %s", err, built.GetResult().GetMessage())
	}
	tx := proto.CloneOf(built.GetTransaction())
	tx.Ret = nil
	h.sendElsewhere(t, tx, keys...)
}

// sendElsewhere signs, broadcasts and mines a transaction without the driver.
func (h *tronHarness) sendElsewhere(t testing.TB, tx *core.Transaction, keys ...chain.Key) string {
	t.Helper()
	id := node.TransactionID(tx)
	for _, k := range keys {
		made, err := k.Sign(id[:])
		if err != nil {
			t.Fatal(err)
		}
		tx.Signature = append(tx.Signature, made)
	}
	answer, err := h.wallet.BroadcastTransaction(t.Context(), tx)
	if err != nil || !answer.GetResult() {
		t.Fatalf("%v %s", err, answer.GetMessage())
	}
	h.Mine(t, 1)
	info, err := h.wallet.GetTransactionInfoById(t.Context(), &api.BytesMessage{Value: id[:]})
	if err != nil || info.GetResult() != core.TransactionInfo_SUCESS || len(info.GetId()) == 0 {
		t.Fatalf("%v %v", err, info)
	}
	return id.String()
}

func (h *tronHarness) ExecuteElsewhere(t testing.TB, j chain.Joint, signatures []chain.OwnerSignature) string {
	t.Helper()
	tx := transactionOf(t, j.Body)
	for _, s := range signatures {
		tx.Signature = append(tx.Signature, s.Signature)
	}
	return h.sendElsewhere(t, tx)
}

func transactionOf(t testing.TB, body []byte) *core.Transaction {
	t.Helper()
	tx := &core.Transaction{RawData: &core.TransactionRaw{}}
	if err := proto.Unmarshal(body, tx.GetRawData()); err != nil {
		t.Fatal(err)
	}
	return tx
}

func (h *tronHarness) ForeignAccounts(t testing.TB) map[string]string {
	t.Helper()
	people := h.people(t, 3)
	q := chain.OwnersChange{Owners: weighted(people), Threshold: 2}
	owner := func(threshold uint32) *core.Permission {
		return permission(t, core.Permission_Owner, "owner", chain.OwnersChange{Owners: q.Owners, Threshold: threshold})
	}
	active := func() *core.Permission { return permission(t, core.Permission_Active, "active", q) }
	powerful, alone := active(), active()
	powerful.Operations = append([]byte{2, 0, 0, 0x80, 0, 0x40}, make([]byte, 26)...) // bit 46
	alone.Keys, alone.Threshold = alone.Keys[:1], 1
	return map[string]string{
		"an active permission that may change permissions":     h.shared(t, owner(2), powerful).Address,
		"two active permissions":                               h.shared(t, owner(2), active(), active()).Address,
		"an owner permission with less than the active":        h.shared(t, owner(1), active()).Address,
		"an active permission of one key":                      h.shared(t, owner(2), alone).Address,
		"the default active permission, which may do anything": h.sharedByDefault(t, owner(2)),
		"a contract": node.USDTAddress,
	}
}

// sharedByDefault is an account whose owner permission needs several, and whose active one is as every account begins.
func (h *tronHarness) sharedByDefault(t testing.TB, owner *core.Permission) string {
	t.Helper()
	a := h.NewAccount(t)
	h.Fund(t, a.Address, money.Must(money.TRX, "1000"))
	before := h.account(t, a.Address)
	h.update(t, a.Address, owner, before.GetActivePermission(), a.Key)
	h.Finalise(t)
	return a.Address
}

func (h *tronHarness) account(t testing.TB, address string) *core.Account {
	t.Helper()
	a := tronAddress(t, address)
	x, err := h.wallet.GetAccount(t.Context(), &core.Account{Address: a[:]})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// people are new keys, ordered by address.
func (h *tronHarness) people(t testing.TB, n int) (all []chaintest.Account) {
	t.Helper()
	for range n {
		all = append(all, h.NewAccount(t))
	}
	slices.SortFunc(all, func(a, b chaintest.Account) int { return strings.Compare(a.Address, b.Address) })
	return all
}

// committee is an account of several owners, which holds USDT and TRX.
type tronCommittee struct {
	*tronHarness
	people  []chaintest.Account
	account string
}

func newTronCommittee(t *testing.T) *tronCommittee {
	t.Helper()
	h := startTronCommittee(t)
	c := &tronCommittee{tronHarness: h, people: h.people(t, 3)}
	c.account = h.NewMultisig(t, c.people, 2)
	h.Fund(t, c.account, money.Must(money.USDT, "100"))
	return c
}

func (c *tronCommittee) quorum(t *testing.T) chain.Quorum {
	t.Helper()
	q, err := c.client.Quorum(t.Context(), c.account)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// propose prepares a payment to a new account.
func (c *tronCommittee) propose(t *testing.T, amount money.Amount) chain.Joint {
	t.Helper()
	j, err := c.client.PrepareJoint(t.Context(), chain.JointDraft{
		Account: c.account, Quorum: c.quorum(t), Transfer: &chain.Transfer{From: c.account, To: c.NewAccount(t).Address, Amount: amount},
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (c *tronCommittee) sign(t *testing.T, j chain.Joint, owners ...chaintest.Account) (all []chain.OwnerSignature) {
	t.Helper()
	for _, o := range owners {
		made, err := o.Key.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.client.Signature(j, made)
		if err != nil || s.Owner != o.Address {
			t.Fatalf("%+v, %v", s, err)
		}
		all = append(all, s)
	}
	return all
}

// execute carries a joint transaction out and returns its final outcome.
func (c *tronCommittee) execute(t *testing.T, j chain.Joint, signatures []chain.OwnerSignature) chain.JointOutcome {
	t.Helper()
	x, err := c.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.client.SignExecution(x)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.client.Broadcast(t.Context(), signed.Raw); err != nil || r.State != chain.BroadcastAccepted {
		t.Fatalf("%+v, %v", r, err)
	}
	c.Mine(t, 1)
	return c.ends(t, j)
}

func (c *tronCommittee) ends(t *testing.T, j chain.Joint) chain.JointOutcome {
	t.Helper()
	c.Finalise(t)
	o, err := c.client.Outcome(t.Context(), j)
	if err != nil || o.State != chain.JointExecuted {
		t.Fatalf("%+v, %v", o, err)
	}
	return o
}

// An ordinary account of ours becomes one of several owners by a transaction that its own key signs. Then that key pays
// nothing more, and the owners do.
func TestTronAccountGetsOwners(t *testing.T) {
	t.Parallel()
	h := startTronCommittee(t)
	own := h.NewAccount(t)
	c := &tronCommittee{tronHarness: h, people: h.people(t, 3), account: own.Address}
	h.Fund(t, own.Address, money.Must(money.USDT, "100"))
	draft := chain.JointDraft{
		Account: own.Address, Quorum: chain.Quorum{Owners: []chain.Owner{{Address: own.Address, Weight: 1}}, Threshold: 1},
		Owners: &chain.OwnersChange{
			Owners: weighted(c.people), Threshold: 2, Control: &chain.OwnersChange{Owners: weighted(c.people), Threshold: 3},
		},
		Life: time.Hour,
	}
	_, err := h.client.PrepareJoint(t.Context(), draft)
	if chain.ReasonOf(err) != chain.ReasonGas {
		t.Errorf("an account that was never activated: %v", err)
	}
	h.Fund(t, own.Address, money.Must(money.TRX, "99.999999"))
	_, err = h.client.PrepareJoint(t.Context(), draft)
	if e, ok := errors.AsType[*chain.Error](err); !ok || e.Reason != chain.ReasonGas || !e.Missing.Equal(money.Must(money.TRX, "0.000001")) {
		t.Fatalf("with one sun too few: %v", err)
	}
	h.Fund(t, own.Address, money.Must(money.TRX, "30.000001"))
	lost := draft
	lost.Owners = &chain.OwnersChange{Owners: append(weighted(c.people), chain.Owner{Address: node.USDTAddress, Weight: 1}), Threshold: 2}
	if _, err := h.client.PrepareJoint(t.Context(), lost); chain.ReasonOf(err) != chain.ReasonAddress {
		t.Errorf("a contract as owner: %v", err)
	}
	j, err := h.client.PrepareJoint(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	if o := c.execute(t, j, c.sign(t, j, own)); !o.Location.Fee.Equal(money.Must(money.TRX, "100")) {
		t.Errorf("one key's change costs %s", o.Location.Fee) // the free bandwidth covers the bytes
	}
	q := c.quorum(t)
	if q.Threshold != 2 || q.Control == nil || q.Control.Threshold != 3 || q.Permission != 2 || q.Moving || !slices.Equal(q.Owners, weighted(c.people)) {
		t.Errorf("%+v", q)
	}
	pays := chain.Transfer{From: own.Address, To: h.NewAccount(t).Address, Amount: money.Must(money.USDT, "1")}
	if _, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: pays}); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("the former key pays alone: %v", err)
	}
	paid := c.propose(t, money.Must(money.USDT, "7"))
	// The USDT transfer to a new account costs 129,000 energy at the main network's factor, and two signatures a TRX more.
	o := c.execute(t, paid, c.sign(t, paid, c.people[0], c.people[2]))
	if fee := o.Location.Fee; fee.Cmp(money.Must(money.TRX, "13.8")) < 0 || fee.Cmp(money.Must(money.TRX, "14.5")) > 0 || fee.Cmp(paid.FeeLimit) > 0 {
		t.Errorf("the payment costs %s, at most %s", fee, paid.FeeLimit)
	}
}

// The owners change by the higher quorum alone.
func TestTronOwnersChange(t *testing.T) {
	t.Parallel()
	h := startTronCommittee(t)
	c := &tronCommittee{tronHarness: h, people: h.people(t, 3)}
	payments, control := chain.OwnersChange{Owners: weighted(c.people), Threshold: 2}, chain.OwnersChange{Owners: weighted(c.people), Threshold: 3}
	c.account = h.shared(t, permission(t, core.Permission_Owner, "owner", control), permission(t, core.Permission_Active, "active", payments)).Address
	next := h.people(t, 2)
	j, err := h.client.PrepareJoint(t.Context(), chain.JointDraft{
		Account: c.account, Quorum: c.quorum(t), Owners: &chain.OwnersChange{Owners: weighted(append(next, c.people[1])), Threshold: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.PrepareExecution(t.Context(), j, c.sign(t, j, c.people[:2]...), chain.ExecutionDraft{}); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("two of three for the owner permission: %v", err)
	}
	if o := c.execute(t, j, c.sign(t, j, c.people...)); o.Location.Fee.Cmp(money.Must(money.TRX, "101")) < 0 {
		t.Errorf("three keys' change costs %s", o.Location.Fee)
	}
	if q := c.quorum(t); q.Control != nil || q.Threshold != 2 || len(q.Owners) != 3 {
		t.Errorf("%+v", q)
	}
}

// Of owners with the weights 2, 1 and 1, the heavy one pays alone, and as little as possible is attached.
func TestTronWeights(t *testing.T) {
	t.Parallel()
	h := startTronCommittee(t)
	c := &tronCommittee{tronHarness: h, people: h.people(t, 3)}
	q := chain.OwnersChange{Owners: weighted(c.people, 2, 1, 1), Threshold: 2}
	control := chain.OwnersChange{Owners: weighted(c.people), Threshold: 2}
	c.account = h.shared(t, permission(t, core.Permission_Owner, "owner", control), permission(t, core.Permission_Active, "active", q)).Address
	heavy, light, other := c.people[0], c.people[1], c.people[2]
	one := func(signers ...chaintest.Account) *core.Transaction {
		t.Helper()
		j := c.propose(t, money.Must(money.TRX, "5"))
		o := c.execute(t, j, c.sign(t, j, signers...))
		id, err := hex.DecodeString(o.TxID)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := h.wallet.GetTransactionById(t.Context(), &api.BytesMessage{Value: id})
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	if tx := one(light, heavy, other); len(tx.GetSignature()) != 1 {
		t.Errorf("with the heavy owner, %d signatures are sent", len(tx.GetSignature()))
	}
	if tx := one(light, other); len(tx.GetSignature()) != 2 {
		t.Errorf("without, %d signatures are sent", len(tx.GetSignature()))
	}
	j := c.propose(t, money.Must(money.TRX, "5"))
	if _, err := h.client.PrepareExecution(t.Context(), j, c.sign(t, j, light), chain.ExecutionDraft{}); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("a light owner alone: %v", err)
	}
}

// Another tool changes the permissions while the owners sign.
func TestTronPermissionsChangeMeanwhile(t *testing.T) {
	t.Parallel()
	c := newTronCommittee(t)
	j := c.propose(t, money.Must(money.USDT, "5"))
	two := c.sign(t, j, c.people[:2]...)
	set := func(threshold uint32, keep ...chaintest.Account) {
		t.Helper()
		q := chain.OwnersChange{Owners: weighted(keep), Threshold: threshold}
		c.update(t, c.account, permission(t, core.Permission_Owner, "owner", chain.OwnersChange{Owners: weighted(c.people), Threshold: 3}),
			[]*core.Permission{permission(t, core.Permission_Active, "active", q)}, c.people[0].Key, c.people[1].Key, c.people[2].Key)
	}
	refused := func(text string) {
		t.Helper()
		_, err := c.client.PrepareExecution(t.Context(), j, two, chain.ExecutionDraft{})
		if chain.ReasonOf(err) != chain.ReasonForeign || !strings.Contains(err.Error(), text) {
			t.Errorf("%v", err)
		}
	}
	set(3, c.people...)
	refused("3 is wanted now")
	set(2, c.people[1:]...)
	refused("no owner any more")
	if _, err := c.client.PrepareJoint(t.Context(), j.JointDraft); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("prepared for owners of before: %v", err)
	}
	powerful := permission(t, core.Permission_Active, "active", chain.OwnersChange{Owners: weighted(c.people), Threshold: 2})
	powerful.Operations = append([]byte{2, 0, 0, 0x80, 0, 0x40}, make([]byte, 26)...)
	c.update(t, c.account, permission(t, core.Permission_Owner, "owner", chain.OwnersChange{Owners: weighted(c.people), Threshold: 3}),
		[]*core.Permission{powerful}, c.people[0].Key, c.people[1].Key, c.people[2].Key)
	refused("operation 46")
	set(2, c.people...)
	c.execute(t, j, two)
}

// An execution that lacks energy is ReasonGas with what is missing, and a top-up repairs it. One that outgrew the fee limit
// that was signed is refused, because no TRX helps.
func TestTronExecutionLacksEnergy(t *testing.T) {
	t.Parallel()
	c := newTronCommittee(t)
	j := c.propose(t, money.Must(money.USDT, "5"))
	signatures := c.sign(t, j, c.people[:2]...)
	drain := c.propose(t, money.Must(money.TRX, "880")) // of 1000, of which the permissions cost 100
	c.execute(t, drain, c.sign(t, drain, c.people[1:]...))
	_, err := c.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{})
	short, ok := errors.AsType[*chain.Error](err)
	if !ok || short.Reason != chain.ReasonGas || !short.Missing.Positive() || !short.Cost.Positive() {
		t.Fatalf("%v", err)
	}
	token := tronAddress(t, node.USDTAddress)
	c.Fund(t, c.account, short.Missing.Add(money.Must(money.TRX, "30")))
	if err := c.node.SetEnergyFactor(token, 70_000); err != nil {
		t.Fatal(err)
	}
	c.Mine(t, 1)
	_, err = c.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{})
	if chain.ReasonOf(err) != chain.ReasonFeeTooHigh {
		t.Errorf("beyond the signed limit: %v", err)
	}
	if err := c.node.SetEnergyFactor(token, node.DefaultUSDTEnergyFactor); err != nil {
		t.Fatal(err)
	}
	c.Mine(t, 1)
	c.execute(t, j, signatures)
}

// While an execution waits for a block, no other is prepared: the node counts what it pays as gone.
func TestTronExecutionWaits(t *testing.T) {
	t.Parallel()
	c := newTronCommittee(t)
	j := c.propose(t, money.Must(money.USDT, "60"))
	signatures := c.sign(t, j, c.people[:2]...)
	x, err := c.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.client.SignExecution(x)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.client.Broadcast(t.Context(), signed.Raw); err != nil || r.State != chain.BroadcastAccepted {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := c.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{}); chain.ReasonOf(err) != chain.ReasonUnavailable {
		t.Errorf("%v", err)
	}
	c.Mine(t, 1)
	c.ends(t, j)
	if _, err := c.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{}); chain.ReasonOf(err) != chain.ReasonReverts {
		t.Errorf("%v", err)
	}
}

// gotron is a client that others wrote.
func (h *tronHarness) gotron(t *testing.T) *client.GrpcClient {
	t.Helper()
	sdk := client.NewGrpcClient(h.node.GRPCAddr())
	if err := sdk.Start(grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sdk.Stop)
	return sdk
}

// With gotron-sdk: it makes the permissions, weighs our signatures as we do, sends what our owners signed, and what it built
// is executed by us.
func TestTronMultisigWithGotron(t *testing.T) {
	t.Parallel()
	h := startTronCommittee(t)
	own := h.NewAccount(t)
	c := &tronCommittee{tronHarness: h, people: h.people(t, 3), account: own.Address}
	h.Fund(t, own.Address, money.Must(money.TRX, "1000"))
	h.Fund(t, own.Address, money.Must(money.USDT, "100"))
	sdk, keys := h.gotron(t), map[string]int64{}
	for _, p := range c.people {
		keys[p.Address] = 1
	}
	built, err := sdk.UpdateAccountPermissionCtx(t.Context(), own.Address, map[string]any{"threshold": int64(2), "keys": keys}, nil, []map[string]any{{
		"name": "theirs", "threshold": int64(2), "keys": keys, "operations": map[string]bool{"TransferContract": true, "TriggerSmartContract": true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tx := proto.CloneOf(built.GetTransaction())
	tx.Ret = nil
	h.sendElsewhere(t, tx, own.Key)
	h.Finalise(t)

	ours := c.propose(t, money.Must(money.USDT, "5"))
	sent := transactionOf(t, ours.Body)
	for i, s := range c.sign(t, ours, c.people[:2]...) {
		sent.Signature = append(sent.Signature, s.Signature)
		w, err := sdk.GetTransactionSignWeightCtx(t.Context(), sent)
		if err != nil || w.GetCurrentWeight() != int64(i+1) {
			t.Fatalf("%v, %v", w, err)
		}
	}
	if r, err := sdk.BroadcastCtx(t.Context(), sent); err != nil || !r.GetResult() {
		t.Fatalf("%v, %v", r, err)
	}
	c.Mine(t, 1)
	c.ends(t, ours)

	theirs, err := sdk.TransferCtx(t.Context(), c.account, h.NewAccount(t).Address, 5_000_000)
	if err != nil {
		t.Fatal(err)
	}
	theirs.GetTransaction().GetRawData().GetContract()[0].PermissionId = 2
	j := c.imported(t, theirs.GetTransaction().GetRawData())
	c.execute(t, j, c.sign(t, j, c.people[1:]...))
}

// imported is a transfer of TRX that another tool built, as a joint transaction.
func (c *tronCommittee) imported(t *testing.T, raw *core.TransactionRaw) chain.Joint {
	t.Helper()
	m := &core.TransferContract{}
	if err := raw.GetContract()[0].GetParameter().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return c.taken(t, raw, chain.JointDraft{Account: c.account, Quorum: c.quorum(t), Transfer: &chain.Transfer{
		From: c.account, To: node.Address(m.GetToAddress()).String(), Amount: money.FromUnits(money.TRX, big.NewInt(m.GetAmount())),
	}})
}

// taken is what another tool built, as the joint transaction of a draft.
func (c *tronCommittee) taken(t *testing.T, raw *core.TransactionRaw, d chain.JointDraft) chain.Joint {
	t.Helper()
	id := node.TransactionID(&core.Transaction{RawData: raw})
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.client.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := chain.Joint{
		JointDraft: d, Digest: id[:], Body: body, ID: id.String(), ExpiresAt: time.UnixMilli(raw.GetExpiration()).UTC(),
		RefBlock: hex.EncodeToString(append(bytes.Clone(raw.GetRefBlockBytes()), raw.GetRefBlockHash()...)), Block: h.Final,
	}
	if err := c.client.CheckJoint(j); err != nil {
		t.Fatal(err)
	}
	return j
}

// tronweb runs a command of tronweb, of which `make conformance` has the exact version.
func (h *tronHarness) tronweb(t *testing.T, command string, given, answer any) {
	t.Helper()
	in, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "tronweb.mjs"), os.Getenv("KIVUKO_TRONWEB"), "http://"+h.node.HTTPAddr(), command)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tronweb %s: %v\n%s", command, err, said.String())
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("tronweb %s: %v\n%s", command, err, out)
	}
}

func hexKey(a chaintest.Account) string {
	return hex.EncodeToString(crypto.FromECDSA(a.Key.(secp256k1Key).PrivateKey))
}

// With tronweb: its signatures are executed by us, ours are sent by it, what it built is executed by us, and it makes the
// bytes of a change of owners that we make.
func TestTronMultisigWithTronweb(t *testing.T) {
	t.Parallel()
	if os.Getenv("KIVUKO_TRONWEB") == "" {
		t.Skip("tronweb is run by `make conformance`, which fetches it")
	}
	c := newTronCommittee(t)
	// One owner signs with tronweb, one with us; we execute.
	j := c.propose(t, money.Must(money.USDT, "5"))
	c.execute(t, j, append(c.sign(t, j, c.people[2]), c.byTronweb(t, j, "TriggerSmartContract", 2, c.people[0])...))

	// Our owners sign; tronweb sends.
	j = c.propose(t, money.Must(money.TRX, "5"))
	c.sentByTronweb(t, j, "TransferContract", c.sign(t, j, c.people[:2]...))

	// tronweb builds; our owners sign, and we execute.
	var built tronwebSigned
	c.tronweb(t, "build", map[string]any{"from": c.account, "to": c.NewAccount(t).Address, "amount": 5_000_000, "permission": 2}, &built)
	body, err := hex.DecodeString(built.Raw)
	if err != nil {
		t.Fatal(err)
	}
	imported := c.imported(t, transactionOf(t, body).GetRawData())
	if imported.ID != built.ID {
		t.Errorf("tronweb's id is %s, ours %s", built.ID, imported.ID)
	}
	c.execute(t, imported, c.sign(t, imported, c.people[1:]...))
	c.changesLikeTronweb(t)
}

// changesLikeTronweb compares a change of owners with tronweb's, but for the envelope.
func (c *tronCommittee) changesLikeTronweb(t *testing.T) {
	t.Helper()
	change := &chain.OwnersChange{Owners: weighted(c.people, 2, 1, 1), Threshold: 2, Control: &chain.OwnersChange{Owners: weighted(c.people), Threshold: 3}}
	contract := func(j chain.Joint) *core.Transaction_Contract {
		return transactionOf(t, j.Body).GetRawData().GetContract()[0]
	}
	got, want := contract(c.prepareOwners(t, change)), contract(c.builtByTronweb(t, change))
	if !bytes.Equal(got.GetParameter().GetValue(), want.GetParameter().GetValue()) {
		t.Errorf("our change is\n%v\ntronweb's\n%v", got, want)
	}
}

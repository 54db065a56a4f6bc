package conformance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/keys"
	node "kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// givenBook is a store with one account that begins with a key of a vault.
type givenBook struct {
	in  exchange.HandoverSigning
	all []exchange.MultisigHandover
}

func (b *givenBook) HandoverForSigning(context.Context, uuid.UUID) (exchange.HandoverSigning, error) {
	return b.in, nil
}

func (b *givenBook) StoreHandover(_ context.Context, h exchange.MultisigHandover) (exchange.MultisigHandover, error) {
	h.Status, h.N = exchange.HandoverSigned, len(b.all)+1
	b.all, b.in.Last = append(b.all, h), h
	return h, nil
}

// begun is an account that begins with a key, for some owners, and the signer that gives it to them.
func (h *tronHarness) begun(t *testing.T, people []chaintest.Account, threshold int) (*givenBook, *keys.PaymentSigner) {
	t.Helper()
	vault, err := keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	b, id := &givenBook{}, uuid.New()
	address, key, err := keys.Maker{Vault: vault, Networks: map[exchange.Network]keys.Addresser{exchange.Tron: h.client}}.CreateOpeningKey(t.Context(), id, exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	a := exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{ID: id, Network: exchange.Tron, Address: address, Threshold: threshold},
		Kind:            exchange.MultisigTron, Status: exchange.MultisigOpening, OpeningAddress: address,
	}
	for i, p := range people {
		a.Owners = append(a.Owners, exchange.MultisigOwner{N: i + 1, Address: p.Address, Weight: 1})
	}
	a.ControlThreshold = a.Controlling()
	b.in = exchange.HandoverSigning{Account: a, Key: key}
	signer, err := keys.NewPaymentSigner(keys.PaymentSignerConfig{Store: &book{}, Vault: vault, Clients: map[exchange.Network]chain.Client{exchange.Tron: h.client}, Handovers: b})
	if err != nil {
		t.Fatal(err)
	}
	return b, signer
}

func (h *tronHarness) givingCost(t *testing.T, b *givenBook) money.Amount {
	t.Helper()
	_, q := chain.OpeningOf(b.in.Account)
	cost, err := h.client.GivingCost(t.Context(), b.in.Account.Address, q)
	if err != nil {
		t.Fatal(err)
	}
	return cost
}

// outcome is what became of the last transaction of an account.
func (h *tronHarness) outcome(t *testing.T, b *givenBook) chain.JointState {
	t.Helper()
	j, err := chain.DecodeJoint(b.in.Last.Joint)
	if err != nil {
		t.Fatal(err)
	}
	o, err := h.client.Outcome(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return o.State
}

// An account begins with a key of the vault, gets just what it costs, and is given to its owners by a transaction that is signed again only after the
// one before can't be executed. Then the key can do nothing, and the owners can.
func TestTronAccountIsGivenToItsOwners(t *testing.T) {
	t.Parallel()
	h := startTronCommittee(t)
	people := h.people(t, 3)
	b, signer := h.begun(t, people, 2)
	address, id := b.in.Account.Address, b.in.Account.ID
	_, _, err := signer.SignHandover(t.Context(), id)
	if chain.ReasonOf(err) != chain.ReasonGas {
		t.Errorf("before it is paid for: %v", err)
	}
	cost := h.givingCost(t, b)
	if cost.Cmp(money.Must(money.TRX, "100.4")) < 0 || cost.Cmp(money.Must(money.TRX, "101")) > 0 {
		t.Errorf("it costs %s", cost)
	}
	h.Fund(t, address, cost)
	h.Finalise(t)
	first, _, err := signer.SignHandover(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := signer.SignHandover(t.Context(), id); err != nil || again.TxID != first.TxID || len(b.all) != 1 {
		t.Errorf("it is signed twice: %+v, %v", b.all, err)
	}
	h.AdvanceTime(t, 2*chain.GivingLife)
	h.Mine(t, 1)
	h.Finalise(t)
	if state := h.outcome(t, b); state != chain.JointExpired {
		t.Fatalf("the first one is %s", state)
	}
	if answer, err := h.client.Broadcast(t.Context(), first.Raw); err != nil || answer.State != chain.BroadcastRejected {
		t.Errorf("an expired one is sent: %+v, %v", answer, err)
	}
	b.in.Last.Status = exchange.HandoverExpired
	second, _, err := signer.SignHandover(t.Context(), id)
	if err != nil || second.TxID == first.TxID {
		t.Fatalf("%+v, %v", second, err)
	}
	for range 2 { // sent twice, executed once
		if _, err := h.client.Broadcast(t.Context(), second.Raw); err != nil {
			t.Fatal(err)
		}
	}
	h.Mine(t, 1)
	if state := h.outcome(t, b); state != chain.JointIncluded {
		t.Errorf("in a block it is %s", state)
	}
	h.Finalise(t)
	if state := h.outcome(t, b); state != chain.JointExecuted {
		t.Fatalf("it is %s", state)
	}
	q, err := h.client.Quorum(t.Context(), address)
	if difference := b.in.Account.Difference(q.Read(b.in.Account)); err != nil || difference != "" {
		t.Errorf("the account on the chain differs: %s, %v", difference, err)
	}
	b.in.Last.Status = exchange.HandoverExpired // as if it were not known
	if out, _, err := signer.SignHandover(t.Context(), id); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("its first key still signs: %+v, %v", out, err)
	}
	c := &tronCommittee{tronHarness: h, people: people, account: address}
	h.Fund(t, address, money.Must(money.TRX, "40"))
	h.Fund(t, address, money.Must(money.USDT, "10"))
	j := c.propose(t, money.Must(money.USDT, "10"))
	c.execute(t, j, c.sign(t, j, people[0], people[2]))
}

// With all weights for payments, changes need no more. Owners to whom no account can be given are refused before anything is paid.
func TestTronAccountIsGivenToOwnersWhoCanHaveIt(t *testing.T) {
	t.Parallel()
	h := startTronCommittee(t)
	people := h.people(t, 2)
	b, signer := h.begun(t, people, 2)
	h.Fund(t, b.in.Account.Address, h.givingCost(t, b))
	h.Finalise(t)
	given, _, err := signer.SignHandover(t.Context(), b.in.Account.ID)
	if err == nil {
		_, err = h.client.Broadcast(t.Context(), given.Raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	h.Finalise(t)
	q, err := h.client.Quorum(t.Context(), b.in.Account.Address)
	if difference := b.in.Account.Difference(q.Read(b.in.Account)); err != nil || difference != "" || b.in.Account.ControlThreshold != 2 {
		t.Errorf("the account on the chain differs: %s, %v", difference, err)
	}
	_, good := chain.OpeningOf(b.in.Account)
	for name, bad := range map[string]chain.Owner{"a contract": {Address: node.USDTAddress, Weight: 1}, "a stranger's form": {Address: "0xabc", Weight: 1}} {
		owners := append(slices.Clone(good.Owners), bad)
		q := chain.OwnersChange{Owners: owners, Threshold: 2, Control: &chain.OwnersChange{Owners: owners, Threshold: 3}}
		if _, err := h.client.GivingCost(t.Context(), h.NewAccount(t).Address, q); err == nil {
			t.Errorf("it can be given to %s", name)
		}
	}
	if os.Getenv("KIVUKO_TRONWEB") == "" {
		return // tronweb is run by `make conformance`, which fetches it
	}
	var read tronwebPermissions
	h.tronweb(t, "permissions", map[string]any{"account": b.in.Account.Address}, &read)
	if read.Owner.Threshold != 2 || len(read.Owner.Keys) != 2 || len(read.Actives) != 1 || read.Actives[0].ID != 2 || read.Actives[0].Threshold != 2 || read.Witness ||
		read.Actives[0].Operations != "0200008000000000000000000000000000000000000000000000000000000000" {
		t.Errorf("tronweb reads %+v", read)
	}
}

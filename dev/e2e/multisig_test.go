package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// multisigPath is the API's path of accounts of several owners.
const multisigPath = "/api/v1/auth/multisig/accounts"

// shared is an account of several owners as the API shows it.
type shared struct {
	ID        uuid.UUID        `json:"id"`
	Network   exchange.Network `json:"network"`
	Address   string           `json:"address"`
	Threshold int              `json:"threshold"`
	Status    string           `json:"status"`
	Detail    string           `json:"status_detail"`
	PaymentID uuid.UUID        `json:"payment_id"`
	Owners    []struct {
		Address string `json:"address"`
		Held    bool   `json:"held"`
	} `json:"owners"`
}

// owner is an owner of a request: an outsider, or an officer whose key is made in our key store.
func owner(p outsider) map[string]any {
	return map[string]any{"address": p.address, "label": "outside"}
}

func (w *harness) officerOwner(t *testing.T, email string) map[string]any {
	t.Helper()
	u, err := w.store.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"user_id": u.ID, "label": "ours"}
}

// asksForShared has an officer ask for a wallet of several owners: for one that exists at the address, unless that is empty. It returns
// what waits for another officer.
func (w *harness) asksForShared(t *testing.T, n exchange.Network, custody exchange.MultisigCustody, address string, threshold int, owners ...map[string]any) testbed.Waits {
	t.Helper()
	return w.asksForTreasury(t, n, reserve(1), custody, address, threshold, owners...)
}

// reserve is the part of a request that says whose the wallet is, and how many officers approve a payment.
func reserve(approvals int) map[string]any {
	return map[string]any{"name": "Reserve " + newSeed(), "policy": map[string]any{"approvals": approvals}}
}

func (w *harness) asksForTreasury(
	t *testing.T, n exchange.Network, treasury map[string]any, custody exchange.MultisigCustody, address string, threshold int, owners ...map[string]any,
) testbed.Waits {
	t.Helper()
	multisig := map[string]any{"threshold": threshold, "owners": owners}
	if address != "" {
		multisig["address"] = address
	}
	in := map[string]any{"network": n, "asset": "USDT", "label": "shared", "custody": custody, "multisig": multisig, "treasury": treasury}
	path := "/api/v1/auth/wallets/provision"
	if n != exchange.Solana {
		path, in["owner_type"] = "/api/v1/auth/wallets/owner", "treasury"
	}
	var waits testbed.Waits
	if err := insist(t.Context(), w.as(t, secondOfficer), path, testbed.Key(), in, &waits); err != nil {
		t.Fatal(err)
	}
	if len(waits.Changes) != 1 {
		t.Fatalf("%d changes wait for another officer", len(waits.Changes))
	}
	return waits
}

// agreesToShared has another officer agree, and returns the account.
func (w *harness) agreesToShared(t *testing.T, waits testbed.Waits) uuid.UUID {
	t.Helper()
	w.testbed.Agree(t, waits)
	var id uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM multisig_accounts WHERE change_id = $1`, waits.Changes[0].ID).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// shares has two officers bring in a wallet of several owners.
func (w *harness) shares(t *testing.T, n exchange.Network, custody exchange.MultisigCustody, address string, threshold int, owners ...map[string]any) uuid.UUID {
	t.Helper()
	return w.agreesToShared(t, w.asksForShared(t, n, custody, address, threshold, owners...))
}

func (w *harness) readShared(t *testing.T, id uuid.UUID) (s shared, err error) {
	t.Helper()
	err = w.operator(t).Get(t.Context(), multisigPath+"/"+id.String(), &s)
	return s, err
}

// sharedIs waits until an account has a status.
func (w *harness) sharedIs(t *testing.T, id uuid.UUID, status exchange.MultisigStatus) shared {
	t.Helper()
	var s shared
	err := await(t.Context(), recovery, func() (err error) {
		if s, err = w.readShared(t, id); err == nil && s.Status != string(status) {
			err = fmt.Errorf("it is %s (%s)", s.Status, s.Detail)
		}
		return err
	})
	if err != nil {
		t.Fatalf("account %s of several owners should be %s: %v", id, status, err)
	}
	return s
}

// isShared checks that an active account is a wallet that the chain's owners control as they should, and that what comes to it is booked.
func (w *harness) isShared(t *testing.T, o *outsiders, s shared) {
	t.Helper()
	q, err := o.Quorum(t.Context(), s.Address)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, one := range s.Owners {
		want = append(want, one.Address)
	}
	slices.Sort(want)
	var got []string
	for _, one := range q.Owners {
		got = append(got, one.Address)
	}
	slices.SortFunc(got, cmp.Compare[string])
	if !slices.Equal(got, want) || int(q.Threshold) != s.Threshold {
		t.Errorf("%d of %v control %s, not %d of %v", q.Threshold, got, s.Address, s.Threshold, want)
	}
	var read struct{ Custody, Address string }
	if err := w.operator(t).Get(t.Context(), "/api/v1/auth/wallet/id/"+s.ID.String(), &read); err != nil || read.Custody != "multisig" || read.Address != s.Address {
		t.Errorf("the wallet is %+v: %v", read, err)
	}
	wallet, err := w.store.Wallet(t.Context(), store.Everything(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	m := money.Must(money.USDT, "12.5")
	if err := o.node.Fund(t.Context(), s.Address, m); err != nil {
		t.Fatal(err)
	}
	if err := demo.Booked(t.Context(), w.store, wallet, m); err != nil {
		t.Error(err)
	}
}

// openedOnce checks that an account was opened by one payment, or by none of ours.
func (w *harness) openedOnce(t *testing.T, s shared, payments int) {
	t.Helper()
	var completed, alive int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status NOT IN ('completed', 'cancelled'))
		FROM chain_payments WHERE purpose = 'multisig_open' AND object_id = $1`, s.ID).Scan(&completed, &alive)
	if err != nil || completed != payments || alive != 0 {
		t.Errorf("account %s was opened by %d payments, not %d, and %d are not over: %v", s.ID, completed, payments, alive, err)
	}
}

// TestMultisigWallets brings in accounts of people who use other tools, and opens some: owners with keys of their own and officers whose
// keys are in our key store. Each becomes a wallet only when the chain has the agreed owners.
func TestMultisigWallets(t *testing.T) {
	w := openBeside(t)
	t.Run("all", func(t *testing.T) {
		for _, n := range w.seed().Nodes() {
			t.Run(string(n.Network), func(t *testing.T) {
				t.Parallel()
				o := w.outsidersOn(t, n)
				t.Run("an account of outsiders is adopted", func(t *testing.T) { w.adopts(t, o) })
				t.Run("another threshold is refused", func(t *testing.T) { w.refusesOther(t, o) })
				t.Run("an account is opened", func(t *testing.T) { w.opens(t, o) })
				t.Run("an account of officers is opened", func(t *testing.T) { w.opensForOfficers(t, o) })
				if n.Network == exchange.Ethereum {
					t.Run("its owners are changed by another tool", func(t *testing.T) { w.notices(t, o) })
				}
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

func (w *harness) adopts(t *testing.T, o *outsiders) {
	people := o.people(t, 3)
	address := o.opens(t, newSeed(), quorumOf(people, 2))
	id := w.shares(t, o.Network(), exchange.MultisigSelf, address, 2, owner(people[0]), owner(people[1]), owner(people[2]))
	s := w.sharedIs(t, id, exchange.MultisigActive)
	if s.Address != address {
		t.Errorf("%s was adopted, not %s", s.Address, address)
	}
	w.isShared(t, o, s)
	w.openedOnce(t, s, 0)
}

func (w *harness) refusesOther(t *testing.T, o *outsiders) {
	people := o.people(t, 3)
	address := o.opens(t, newSeed(), quorumOf(people, 2))
	id := w.shares(t, o.Network(), exchange.MultisigSelf, address, 3, owner(people[0]), owner(people[1]), owner(people[2]))
	s := w.sharedIs(t, id, exchange.MultisigRefused)
	if !strings.Contains(s.Detail, "the threshold is 2, not 3") {
		t.Errorf("it was refused because %q", s.Detail)
	}
	if _, err := w.store.Wallet(t.Context(), store.Everything(), id); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a refused account is a wallet: %v", err)
	}
}

func (w *harness) opens(t *testing.T, o *outsiders) {
	people := o.people(t, 2)
	id := w.shares(t, o.Network(), exchange.MultisigSelf, "", 2, owner(people[0]), w.officerOwner(t, demo.TreasuryEmail), owner(people[1]))
	s := w.sharedIs(t, id, exchange.MultisigActive)
	w.onTron(t, o, s)
	w.isShared(t, o, s)
	w.openedOnce(t, s, 1)
}

// onTron has more to say about an account that we made there: one transaction of its first key gave it to its owners, whose changes need one more
// than their payments, and what came to it before is in the books.
func (w *harness) onTron(t *testing.T, o *outsiders, s shared) {
	t.Helper()
	if o.Network() != exchange.Tron {
		return
	}
	q, err := o.Quorum(t.Context(), s.Address)
	if err != nil || q.Control == nil || int(q.Control.Threshold) != s.Threshold+1 || !slices.Equal(q.Control.Owners, q.Owners) || q.Permission != 2 {
		t.Errorf("it is controlled by %+v, %v", q, err)
	}
	var executed, others int
	err = w.db.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE status = 'executed'), count(*) FILTER (WHERE status = 'signed') FROM multisig_handovers WHERE account_id = $1`, s.ID).Scan(&executed, &others)
	if err != nil || executed != 1 || others != 0 {
		t.Errorf("%d transactions gave it to its owners, %d may: %v", executed, others, err)
	}
}

func (w *harness) opensForOfficers(t *testing.T, o *outsiders) {
	id := w.shares(t, o.Network(), exchange.MultisigProvider, "", 2, w.officerOwner(t, demo.TreasuryEmail), w.officerOwner(t, secondOfficer))
	s := w.sharedIs(t, id, exchange.MultisigActive)
	for _, one := range s.Owners {
		if !one.Held || one.Address == "" {
			t.Errorf("an officer's key is not ours: %+v", one)
		}
	}
	w.isShared(t, o, s)
	w.openedOnce(t, s, 1)
}

// notices sees that owners of an account changed it with another tool, and changed it back.
func (w *harness) notices(t *testing.T, o *outsiders) {
	people := o.people(t, 3)
	address := o.opens(t, newSeed(), quorumOf(people, 2))
	s := w.sharedIs(t, w.shares(t, o.Network(), exchange.MultisigSelf, address, 2, owner(people[0]), owner(people[1]), owner(people[2])), exchange.MultisigActive)
	o.changes(t, address, quorumOf(people, 3), people[:2]...)
	s = w.compared(t, s.ID, exchange.MultisigDiffers)
	if !strings.Contains(s.Detail, "the threshold is 3, not 2") {
		t.Errorf("it differs because %q", s.Detail)
	}
	o.changes(t, address, quorumOf(people, 2), people...)
	w.compared(t, s.ID, exchange.MultisigActive)
}

// compared has the reconciliation look at accounts until one has a status.
func (w *harness) compared(t *testing.T, id uuid.UUID, status exchange.MultisigStatus) (s shared) {
	t.Helper()
	eventually(t, "the reconciliation finds that account "+id.String()+" is "+string(status), func() (err error) {
		w.trigger(t, "reconcile")
		if s, err = w.readShared(t, id); err == nil && s.Status != string(status) {
			err = fmt.Errorf("it is %s (%s)", s.Status, s.Detail)
		}
		return err
	})
	return s
}

// failsToOpen asks for an account on Solana whose opening fails on the chain, so that its flow is parked.
func (w *harness) failsToOpen(t *testing.T) shared {
	t.Helper()
	n := w.solana()
	people := w.outsidersOn(t, n).people(t, 2)
	waits := w.asksForShared(t, n.Network, exchange.MultisigSelf, "", 2, owner(people[0]), w.officerOwner(t, demo.TreasuryEmail), owner(people[1]))
	post(t, n, "/faults", map[string]any{"fail_next": 1})
	id := w.agreesToShared(t, waits)
	w.parkedWith(t, workflows.OpenMultisigID(id), workflows.ReasonPayoutFailed)
	post(t, n, "/reset", nil)
	return w.sharedIs(t, id, exchange.MultisigOpening)
}

func (w *harness) solana() demo.Node {
	return demo.Node{Network: exchange.Solana, Control: "http://" + w.stack.Addresses.SolanaControl}
}

// operates sends an operator's command about an account.
func (w *harness) operates(ctx context.Context, t *testing.T, id uuid.UUID, verb string) {
	t.Helper()
	if err := insist(ctx, w.operator(t), ofShared(id, verb), testbed.Key(), map[string]any{"note": "it failed on the chain"}, nil); err != nil {
		t.Fatal(err)
	}
}

func ofShared(id uuid.UUID, verb string) string { return multisigPath + "/" + id.String() + "/" + verb }

// TestMultisigOpenedBefore: anyone can make the Safe that we are about to make, for the same owners. It becomes our wallet all the same, and
// our payment is given up.
func TestMultisigOpenedBefore(t *testing.T) {
	w := open(t)
	n := w.ethereum()
	heal(t, n)
	o := w.outsidersOn(t, n)
	people, stranger := o.people(t, 1), o.person(t, "1")
	waits := w.asksForShared(t, n.Network, exchange.MultisigSelf, "", 2, owner(people[0]), w.officerOwner(t, demo.TreasuryEmail))
	post(t, n, "/pause", nil)
	id := w.agreesToShared(t, waits)
	s := w.offeredToOpen(t, id)
	q := chain.OwnersChange{Threshold: 2}
	for _, one := range s.Owners {
		q.Owners = append(q.Owners, chain.Owner{Address: one.Address, Weight: 1})
	}
	if s.Address != "" {
		t.Errorf("the address %s is shown before it is a wallet", s.Address)
	}
	signed, err := o.opening(t, stranger, id.String(), q, true)
	if err == nil {
		_, err = o.Broadcast(t.Context(), signed.Raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	post(t, n, "/resume", nil)
	o.sends(t, signed, nil)
	s = w.sharedIs(t, id, exchange.MultisigActive)
	w.isShared(t, o, s)
	w.openedOnce(t, s, 0)
	w.invariants(t)
	w.booksAgree(t)
}

// offeredToOpen waits until the transaction that opens an account was sent to a node.
func (w *harness) offeredToOpen(t *testing.T, id uuid.UUID) shared {
	t.Helper()
	eventually(t, "the account's opening is broadcast", func() error {
		var status string
		err := w.db.QueryRowContext(t.Context(), `SELECT status FROM chain_payments WHERE purpose = 'multisig_open' AND object_id = $1`, id).Scan(&status)
		if err == nil && status != string(exchange.ChainBroadcast) {
			err = fmt.Errorf("it is %s", status)
		}
		return err
	})
	s, err := w.readShared(t, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

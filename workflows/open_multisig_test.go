package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// councilHarness is a harness with an account of several owners to which two officers agreed.
type councilHarness struct {
	*harness
	request exchange.MultisigRequest
	council *council
}

// council is the part of the network that has accounts of several owners. It has one as soon as the payment that opens it is
// carried out, or when another transaction opened it; an adopted one is always there.
type council struct {
	chain.Client
	w       *councilHarness
	other   bool                               // another transaction opened the account
	answers func(q *chain.Quorum, n int) error // changes the n-th look at the account
	looks   int
	keys    int

	unopened error // why an account can't be opened
}

// newCouncil is a harness in which two officers agreed to the account on a network; to one that exists if it has an address.
func newCouncil(t testing.TB, n exchange.Network, address string) *councilHarness {
	t.Helper()
	w := &councilHarness{harness: newHarnessOn(t, n)}
	w.council = &council{w: w}
	s := w.store.Store
	storetest.Gas(t, s, storetest.GasWallet(t, s, n).ID, money.Must(n.NativeCoin(), "5"))
	one, two := storetest.User(t, s, exchange.RoleTreasury), storetest.User(t, s, exchange.RoleTreasury)
	w.request = exchange.MultisigRequest{
		ID: uuid.New(), Network: n, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Address: address, Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: "TOwnerAnnaAnnaAnnaAnnaAnna", Label: "Anna"}, {Address: "TOwnerBobBobBobBobBobBob", Label: "Bob"}, {UserID: two.ID, Label: "ours"}},
		Policy: exchange.MultisigPolicy{Approvals: 1},
	}
	if address != "" {
		w.request.Owners[2] = exchange.MultisigOwner{Address: "TOwnerCaraCaraCaraCaraCara", Label: "Cara"}
	}
	c, err := s.ProposeMultisigWallet(t.Context(), w.request, storetest.PrincipalOf(one))
	if err == nil {
		_, err = s.ConfirmChange(t.Context(), c.ID, "", storetest.PrincipalOf(two))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.signs.order = nil
	w.signs.about = []string{"/api/v1/auth/multisig/accounts/" + w.request.ID.String()}
	w.env.RegisterWorkflow(workflows.OpenMultisig)
	w.env.RegisterActivity(&activities.MultisigRows{Store: w.store})
	w.env.RegisterActivity(&activities.MultisigKeys{Store: w.store, Keys: w.council})
	w.env.RegisterActivity(&activities.Multisigs{Store: w.store, Client: w.council, Poll: time.Nanosecond})
	return w
}

func (c *council) Network() exchange.Network { return c.w.request.Network }

func (c *council) Head(context.Context) (chain.Head, error) {
	return chain.Head{Final: chain.Block{Number: 1000, ID: "final"}}, nil
}

// Quorum is the agreed one, as soon as the account is there.
func (c *council) Quorum(ctx context.Context, address string) (chain.Quorum, error) {
	a, err := c.w.store.Store.MultisigAccountByID(ctx, c.w.request.ID)
	if err != nil {
		return chain.Quorum{}, err
	}
	q := chain.Quorum{Threshold: uint32(a.Threshold), Head: chain.Head{Final: chain.Block{Number: 1000, ID: "final"}}}
	for _, o := range a.Owners {
		q.Owners = append(q.Owners, chain.Owner{Address: o.Address, Weight: uint32(o.Weight)})
	}
	slices.SortFunc(q.Owners, func(x, y chain.Owner) int { return strings.Compare(x.Address, y.Address) })
	c.looks++
	if c.answers != nil {
		if err := c.answers(&q, c.looks); err != nil {
			return chain.Quorum{}, err
		}
	}
	if address != a.Address || !a.Adopted && !c.other && len(c.w.chain.sent(exchange.ForMultisigOpen)) == 0 {
		return chain.Quorum{}, chain.Errorf(chain.ReasonForeign, "%s does not exist", address)
	}
	return q, nil
}

func (c *council) Supports(money.Asset) error { return nil }

func (c *council) Balances(_ context.Context, of []chain.Holding) ([]chain.Balance, error) {
	var all []chain.Balance
	for _, h := range of {
		all = append(all, chain.Balance{Amount: money.Zero(h.Asset), At: chain.Block{Number: 1000, ID: "final"}})
	}
	return all, nil
}

func (c *council) MultisigAccount(authority, seed string, q chain.OwnersChange) (string, error) {
	parts := []string{authority, seed}
	for _, o := range q.Owners {
		parts = append(parts, o.Address)
	}
	return "M" + uuid.NewSHA1(uuid.Nil, []byte(strings.Join(parts, "/"))).String(), nil
}

func (c *council) MultisigRent(context.Context) (money.Amount, error) {
	return money.Must(money.SOL, "0.00336168"), c.unopened
}

func (c *council) CreateOwnerKey(_ context.Context, account uuid.UUID, _ exchange.Network, _ int) (string, exchange.SealedKey, error) {
	c.keys++
	id := uuid.NewString()
	return "TKey" + id, exchange.SealedKey{WalletID: account, Ciphertext: []byte("sealed " + id), MasterKey: "test", PublicKey: []byte(id), Algorithm: "ed25519"}, nil
}

// orders gives an operator's command about the account.
func (w *councilHarness) orders(verb string) {
	w.notifyFlow(w.decreeWith(activities.ObjectMultisig, w.request.ID, verb, "why"), verb)
}

func (w *councilHarness) row() exchange.MultisigAccount {
	a, err := w.store.Store.MultisigAccountByID(w.t.Context(), w.request.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// play runs the flow to its end, and checks that there is a wallet just when its outcome says so, opened once and paid once.
func (w *councilHarness) play(t *testing.T) exchange.MultisigStatus {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.OpenMultisigID(w.request.ID), TaskQueue: workflows.QueueFlows})
	w.at(30*24*time.Hour, func() { t.Fatalf("it never ends; it was parked with %v", w.signs.reasons) })
	w.shows(workflows.OpenMultisigAttributes(w.request.Network))
	w.env.ExecuteWorkflow(workflows.OpenMultisig, workflows.OpenMultisigInput{})
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	var r workflows.OpenMultisigResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	a := w.row()
	if a.Status != r.Status || a.StatusDetail != r.Detail {
		t.Errorf("the flow ended as %+v, the account is %s (%s)", r, a.Status, a.StatusDetail)
	}
	wallet, err := w.store.Wallet(t.Context(), store.Everything(), a.ID)
	if is := a.Status == exchange.MultisigActive; is != (err == nil) || is && (wallet.Address != a.Address || wallet.Custody != exchange.Multisig) {
		t.Errorf("it is %s, and the wallet is %+v, %v", a.Status, wallet, err)
	}
	w.paidOnce(t, a)
	return a.Status
}

// paidOnce checks that the account was opened by one payment of the gas wallet at most, which is in the books.
func (w *councilHarness) paidOnce(t *testing.T, a exchange.MultisigAccount) {
	t.Helper()
	all := w.chain.sent(exchange.ForMultisigOpen)
	if len(all) > 1 || a.Adopted && len(all) > 0 || a.Status == exchange.MultisigActive && !a.Adopted && !w.council.other && len(all) != 1 {
		t.Errorf("it is %s and was opened %d times", a.Status, len(all))
	}
	for _, p := range all {
		if p.ToAddress != a.Address || p.Amount.String() != "0.003361680" {
			t.Errorf("it was opened by %s to %s", p.Amount, p.ToAddress)
		}
		got, want := w.balance(exchange.Owned(exchange.AccCustody, p.WalletID, money.SOL)), money.Must(money.SOL, "4.99663832") // less the rent
		for range w.chain.txs {
			want = want.Sub(money.Must(money.SOL, "0.01")) // a fee
		}
		if !got.Equal(want) {
			t.Errorf("the gas wallet has %s, want %s", got, want)
		}
	}
}

func TestOpenMultisig(t *testing.T) {
	t.Parallel()
	const active, refused = exchange.MultisigActive, exchange.MultisigRefused
	adopted := "TAccountAccountAccountAccount"
	unread := chain.Errorf(chain.ReasonUnavailable, "no node")
	for _, c := range []struct {
		name   string
		adopts string
		events func(w *councilHarness)
		ends   exchange.MultisigStatus
		says   string
		parked []workflows.Reason
	}{
		{name: "opened", ends: active},
		{name: "adopted", adopts: adopted, ends: active},
		{name: "adopted with another threshold", adopts: adopted, ends: refused, says: "threshold", events: func(w *councilHarness) {
			w.council.answers = func(q *chain.Quorum, _ int) error { q.Threshold = 1; return nil }
		}},
		{name: "adopted with a module", adopts: adopted, ends: refused, says: "module", events: func(w *councilHarness) {
			w.council.answers = func(*chain.Quorum, int) error { return chain.Errorf(chain.ReasonForeign, "the module X can act") }
		}},
		{name: "adopted while its owners change", adopts: adopted, ends: active, events: func(w *councilHarness) {
			w.council.answers = func(q *chain.Quorum, n int) error { q.Moving = n < 4; return nil }
		}},
		{name: "answers get lost", ends: active, events: func(w *councilHarness) {
			calls := map[string]int{"StoreOwnerKey": 1, "OpenMultisig": 2, "SaveSignedAttempt": 1, "RecordFinal": 1, "ActivateMultisig": 1, "MultisigAccountByID": 3}
			w.store.lost = func(call string) error {
				if calls[call] > 0 {
					calls[call]--
					return errAway
				}
				return nil
			}
		}},
		{name: "the database is away at each step", ends: active, events: func(w *councilHarness) {
			calls := map[string]int{"StoreOwnerKey": 2, "OpenMultisig": 2, "ActivateMultisig": 2, "MultisigAccountByID": 5}
			w.store.fault = func(call string) error {
				if calls[call] > 0 {
					calls[call]--
					return errAway
				}
				return nil
			}
		}},
		{name: "the node that is asked lags behind", ends: active, events: func(w *councilHarness) {
			w.council.answers = func(_ *chain.Quorum, n int) error {
				if n < 5 {
					return chain.Errorf(chain.ReasonForeign, "it has no code")
				}
				return nil
			}
		}},
		{name: "the block is undone", ends: active, events: func(w *councilHarness) { w.chain.script = func(int) outcome { return outcome{reorg: true} } }},
		{name: "it fails on the chain, then it does not", ends: active, parked: []workflows.Reason{workflows.ReasonPayoutFailed}, events: func(w *councilHarness) {
			w.chain.script = func(n int) outcome { return outcome{reverts: n == 1} }
			w.at(2*time.Hour, func() { w.orders(activities.VerbRetry) })
		}},
		{name: "it fails on the chain, given up", ends: refused, says: "given up", parked: []workflows.Reason{workflows.ReasonPayoutFailed}, events: func(w *councilHarness) {
			w.chain.script = func(int) outcome { return outcome{reverts: true} }
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "another transaction opened it", ends: active, events: func(w *councilHarness) {
			w.council.other = true
			w.chain.script = func(int) outcome { return outcome{reverts: true} }
		}},
		{name: "another transaction opens it while it is parked", ends: active, parked: []workflows.Reason{workflows.ReasonPayoutFailed}, events: func(w *councilHarness) {
			w.chain.script = func(n int) outcome {
				if n == 1 {
					return outcome{reverts: true}
				}
				return outcome{refused: chain.ReasonReverts}
			}
			w.at(2*time.Hour, func() { w.council.other = true; w.orders(activities.VerbRetry) })
		}},
		{name: "the signer refuses, given up", ends: refused, says: "given up", parked: []workflows.Reason{workflows.ReasonPayoutSigning}, events: func(w *councilHarness) {
			w.chain.script = func(int) outcome { return outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")} }
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "its network is away for an hour", adopts: adopted, ends: active, parked: []workflows.Reason{workflows.ReasonMultisigUnverified}, events: func(w *councilHarness) {
			w.council.answers = func(*chain.Quorum, int) error {
				if w.env.Now().Sub(w.start) < time.Hour {
					return unread
				}
				return nil
			}
			w.at(2*time.Hour, func() { w.orders(activities.VerbRetry) })
		}},
		{name: "its rent can't be computed, then it can", ends: active, parked: []workflows.Reason{workflows.ReasonMultisigUnopened}, events: func(w *councilHarness) {
			w.council.unopened = chain.Errorf(chain.ReasonUnsupported, "an owner has no key")
			w.at(2*time.Hour, func() { w.council.unopened = nil; w.orders(activities.VerbRetry) })
		}},
		{name: "it can never be opened, given up", ends: refused, says: "given up", parked: []workflows.Reason{workflows.ReasonMultisigUnopened}, events: func(w *councilHarness) {
			w.council.unopened = chain.Errorf(chain.ReasonUnsupported, "an owner has no key")
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "an opened account is another one, given up", ends: refused, says: "given up", parked: []workflows.Reason{workflows.ReasonMultisigUnverified}, events: func(w *councilHarness) {
			w.council.answers = func(q *chain.Quorum, _ int) error { q.Threshold = 1; return nil }
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "it is frozen for a while", ends: active, events: func(w *councilHarness) { w.frozen(func() {}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := exchange.Solana
			if c.adopts != "" {
				n = exchange.Tron
			}
			w := newCouncil(t, n, c.adopts)
			if c.events != nil {
				c.events(w)
			}
			if got := w.play(t); got != c.ends {
				t.Errorf("it ended as %s, want %s", got, c.ends)
			}
			if a := w.row(); !strings.Contains(a.StatusDetail, c.says) || c.says == "" && a.StatusDetail != "" {
				t.Errorf("it says %q, want %q", a.StatusDetail, c.says)
			}
			w.signs.were(t, workflows.OpenMultisigID(w.request.ID), c.parked...)
		})
	}
}

// councilRehearsals are the reasons that only accounts of several owners have.
func councilRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonMultisigUnopened: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			w := newCouncil(t, exchange.Solana, "")
			w.council.unopened = chain.Errorf(chain.ReasonUnsupported, "an owner has no key")
			c.mend = func() { w.council.unopened = nil }
			w.rehearses(t, c)
		}},
		workflows.ReasonMultisigUnverified: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			w := newCouncil(t, exchange.Tron, "TAccountAccountAccountAccount")
			away := true
			w.council.answers = func(*chain.Quorum, int) error {
				if away {
					return chain.Errorf(chain.ReasonUnavailable, "no node")
				}
				return nil
			}
			c.mend = func() { away = false }
			w.rehearses(t, c)
		}},
	}
}

// rehearses plays a flow that is parked, which an operator's command ends.
func (w *councilHarness) rehearses(t *testing.T, c *parkedCommand) {
	t.Helper()
	c.await(t, w.env, w.signs, workflows.OpenMultisigID(w.request.ID), func() { w.orders(c.verb) })
	want := exchange.MultisigRefused
	if c.verb == activities.VerbRetry {
		want = exchange.MultisigActive
	}
	if got := w.play(t); got != want {
		t.Errorf("it ended as %s, want %s", got, want)
	}
}

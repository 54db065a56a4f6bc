package workflows_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"
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
	chain.Multisig
	w       *councilHarness
	other   bool                               // another transaction opened the account
	answers func(q *chain.Quorum, n int) error // changes the n-th look at the account
	looks   int
	keys    int

	unopened error // why an account can't be opened

	outcome func(n int) chain.JointState // of the n-th look at what gives an account on TRON to its owners; nil: it is executed at the second
	refuses func(n int) error            // why the n-th try to sign that fails
	costs   string                       // what it costs; the account has what was paid to it
	tries   int
	judged  int
}

// newCouncil is a harness in which two officers agreed to the account on a network; to one that exists if it has an address.
func newCouncil(t testing.TB, n exchange.Network, address string) *councilHarness {
	t.Helper()
	w := &councilHarness{harness: newHarnessOn(t, n)}
	w.council = &council{w: w}
	s := w.store.Store
	coins := "5"
	if n == exchange.Tron {
		coins = "1000"
	}
	storetest.Gas(t, s, storetest.GasWallet(t, s, n).ID, money.Must(n.NativeCoin(), coins))
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
	w.env.RegisterActivity(&activities.MultisigHandovers{Signer: w.council})
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
	if a.Given() {
		q.Control = &chain.Quorum{Owners: q.Owners, Threshold: uint32(a.Controlling())}
	}
	c.looks++
	if c.answers != nil {
		if err := c.answers(&q, c.looks); err != nil {
			return chain.Quorum{}, err
		}
	}
	if address != a.Address || !a.Adopted && !c.other && len(c.w.chain.sent(exchange.ForMultisigOpen)) == 0 || a.Given() && c.handover().Status != exchange.HandoverExecuted {
		return chain.Quorum{}, chain.Errorf(chain.ReasonForeign, "%s does not exist", address)
	}
	return q, nil
}

func (c *council) Supports(money.Asset) error { return nil }

// Balances are what payments brought to an account that is not given to its owners yet, and nothing after that.
func (c *council) Balances(_ context.Context, of []chain.Holding) ([]chain.Balance, error) {
	var all []chain.Balance
	for _, h := range of {
		b := chain.Balance{Amount: money.Zero(h.Asset), At: chain.Block{Number: 1000, ID: "final"}}
		if h.Asset == money.TRX && c.w.row().Status == exchange.MultisigOpening && c.handover().Status != exchange.HandoverExecuted {
			for _, p := range c.w.chain.sent(exchange.ForMultisigOpen) {
				b.Amount = b.Amount.Add(p.Amount)
			}
		}
		all = append(all, b)
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

func (c *council) CreateOpeningKey(_ context.Context, account uuid.UUID, _ exchange.Network) (string, exchange.SealedKey, error) {
	c.keys++
	id := uuid.NewString()
	return "TBegun" + id, exchange.SealedKey{WalletID: account, Ciphertext: []byte("sealed " + id), MasterKey: "test", PublicKey: []byte(id), Algorithm: "secp256k1"}, nil
}

func (c *council) GivingCost(context.Context, string, chain.OwnersChange) (money.Amount, error) {
	return money.Must(money.TRX, cmp.Or(c.costs, "101")), c.unopened
}

func (c *council) handover() exchange.MultisigHandover {
	h, _, err := c.w.store.Store.Handover(c.w.t.Context(), c.w.request.ID)
	if err != nil {
		c.w.t.Error(err)
	}
	return h
}

// SignHandover signs as the signer does: what may be executed is not signed again.
func (c *council) SignHandover(ctx context.Context, account uuid.UUID) (exchange.MultisigHandover, exchange.SigningHold, error) {
	c.tries++
	if c.refuses != nil {
		if err := c.refuses(c.tries); err != nil {
			return exchange.MultisigHandover{}, "", err
		}
	}
	a, err := c.w.store.Store.MultisigAccountByID(ctx, account)
	if err != nil {
		return exchange.MultisigHandover{}, "", err
	}
	if frozen, err := c.w.store.Frozen(ctx); err != nil || frozen {
		return exchange.MultisigHandover{}, exchange.HoldFrozen, err
	}
	h, err := c.w.store.StoreHandover(ctx, storetest.Handover(c.w.t, a, c.w.start.Add(-time.Hour), byte(c.tries)))
	return h, "", err
}

func (c *council) Outcome(_ context.Context, j chain.Joint, _ ...string) (chain.JointOutcome, error) {
	c.judged++
	o := chain.JointOutcome{State: chain.JointOpen, TxID: j.ID}
	if c.outcome != nil {
		o.State = c.outcome(c.judged)
	} else if c.judged > 1 {
		o.State = chain.JointExecuted
	}
	return o, nil
}

func (c *council) Broadcast(context.Context, []byte) (chain.Broadcast, error) {
	return chain.Broadcast{State: chain.BroadcastAccepted}, nil
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
	if a.Given() {
		w.givenOnce(t, a, all)
		return
	}
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

// givenOnce checks that an account on TRON is a wallet only when one transaction gave it to its owners, after payments that sufficed.
func (w *councilHarness) givenOnce(t *testing.T, a exchange.MultisigAccount, all []exchange.ChainPayment) {
	t.Helper()
	if h := w.council.handover(); (h.Status == exchange.HandoverExecuted) != (a.Status == exchange.MultisigActive) || h.Status == exchange.HandoverSigned {
		t.Errorf("it is %s, and what gives it to its owners is %s", a.Status, h.Status)
	}
	sum := money.Zero(money.TRX)
	for _, p := range all {
		if sum = sum.Add(p.Amount); p.ToAddress != a.OpeningAddress {
			t.Errorf("%s was paid to %s", p.Amount, p.ToAddress)
		}
	}
	if want := money.Must(money.TRX, cmp.Or(w.council.costs, "101")); a.Status == exchange.MultisigActive && !sum.Equal(want) {
		t.Errorf("it was paid %s, and costs %s", sum, want)
	}
}

// TestOpenMultisigOnTron plays the ways in which an account on TRON gets its owners.
func TestOpenMultisigOnTron(t *testing.T) {
	t.Parallel()
	const active, refused = exchange.MultisigActive, exchange.MultisigRefused
	lost := func(calls map[string]int) func(string) error {
		return func(call string) error {
			if calls[call] > 0 {
				calls[call]--
				return errAway
			}
			return nil
		}
	}
	script := func(all ...chain.JointState) func(int) chain.JointState {
		return func(n int) chain.JointState { return all[min(n, len(all))-1] }
	}
	short := chain.Errorf(chain.ReasonGas, "it has too little")
	for _, c := range []struct {
		name   string
		events func(w *councilHarness)
		ends   exchange.MultisigStatus
		signed int // how many transactions
		paid   int // how many payments
		parked []workflows.Reason
	}{
		{name: "given", ends: active, signed: 1, paid: 1},
		{name: "answers get lost", ends: active, signed: 1, paid: 1, events: func(w *councilHarness) {
			w.store.lost = lost(map[string]int{"StoreOwnerKey": 1, "StoreOpeningKey": 2, "OpenMultisig": 1, "StoreHandover": 2, "EndHandover": 2, "ActivateMultisig": 1})
		}},
		{name: "the database is away at each step", ends: active, signed: 1, paid: 1, events: func(w *councilHarness) {
			w.store.fault = lost(map[string]int{"StoreOpeningKey": 2, "StoreHandover": 2, "EndHandover": 2, "ActivateMultisig": 1})
		}},
		{name: "it expires twice", ends: active, signed: 3, paid: 1, events: func(w *councilHarness) {
			w.council.outcome = script(chain.JointOpen, chain.JointExpired, chain.JointExpired, chain.JointIncluded, chain.JointOpen, chain.JointExecuted)
		}},
		{name: "it expires for long, and is paid for, so not given up", ends: active, signed: 21, paid: 1, parked: []workflows.Reason{workflows.ReasonMultisigUngiven, workflows.ReasonMultisigUngiven}, events: func(w *councilHarness) {
			w.council.outcome = script(chain.JointExpired)
			w.at(20*time.Hour, func() { w.orders(activities.VerbRefund) })
			w.at(40*time.Hour, func() { w.council.outcome = nil; w.orders(activities.VerbRetry) })
		}},
		{name: "the signer refuses, then it does not", ends: active, signed: 1, paid: 1, parked: []workflows.Reason{workflows.ReasonMultisigUngiven}, events: func(w *councilHarness) {
			w.council.refuses = func(n int) error {
				if n == 1 {
					return exchange.Errorf(exchange.CodeStateConflict, "no")
				}
				return nil
			}
			w.at(2*time.Hour, func() { w.orders(activities.VerbRetry) })
		}},
		{name: "the fee rises after the payment", ends: active, signed: 1, paid: 2, events: func(w *councilHarness) {
			w.council.refuses = func(int) error {
				if len(w.chain.sent(exchange.ForMultisigOpen)) == 1 {
					w.council.costs = "151"
					return short
				}
				return nil
			}
		}},
		{name: "the signer's node is behind", ends: active, signed: 1, paid: 1, events: func(w *councilHarness) {
			w.council.refuses = func(n int) error {
				if n < 4 {
					return short
				}
				return nil
			}
		}},
		{name: "the fee rises again and again, given up", ends: refused, paid: exchange.MostFundings, parked: []workflows.Reason{workflows.ReasonMultisigUngiven}, events: func(w *councilHarness) {
			w.council.refuses = func(int) error {
				w.council.costs = strconv.Itoa(101 + 10*len(w.chain.sent(exchange.ForMultisigOpen)))
				return short
			}
			w.at(20*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "an owner can't have it, given up", ends: refused, parked: []workflows.Reason{workflows.ReasonMultisigUnopened}, events: func(w *councilHarness) {
			w.council.unopened = chain.Errorf(chain.ReasonAddress, "an owner is a contract")
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "it is frozen for a while", ends: active, signed: 1, paid: 1, events: func(w *councilHarness) { w.frozen(func() {}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCouncil(t, exchange.Tron, "")
			if c.events != nil {
				c.events(w)
			}
			if got := w.play(t); got != c.ends {
				t.Errorf("it ended as %s, want %s", got, c.ends)
			}
			if h, paid := w.council.handover(), w.chain.sent(exchange.ForMultisigOpen); h.N != c.signed || len(paid) != c.paid {
				t.Errorf("%d transactions were signed and %d payments made, want %d and %d", h.N, len(paid), c.signed, c.paid)
			}
			w.signs.were(t, workflows.OpenMultisigID(w.request.ID), c.parked...)
		})
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
		workflows.ReasonMultisigUngiven: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			w := newCouncil(t, exchange.Tron, "")
			broken := true
			w.council.refuses = func(int) error { // what it costs rises with each payment, until it may be given up
				if broken {
					w.council.costs = strconv.Itoa(101 + 10*len(w.chain.sent(exchange.ForMultisigOpen)))
					return chain.Errorf(chain.ReasonGas, "it has too little")
				}
				return nil
			}
			c.mend = func() { // the price falls to what was paid
				broken, w.council.costs = false, strconv.Itoa(101+10*(len(w.chain.sent(exchange.ForMultisigOpen))-1))
			}
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

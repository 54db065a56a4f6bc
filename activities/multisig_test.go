package activities_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// council is a network with accounts of several owners, and their rows. It answers each look at an account with the next of looks, and
// then with the last one again.
type council struct {
	n        exchange.Network
	accounts []exchange.MultisigAccount
	looks    map[uuid.UUID][]look
	looked   int
	detail   string // why an account was refused
	checked  []exchange.MultisigQuorum
	balances []money.Amount    // with which it was activated
	holds    func(n int) holds // answers the n-th question for balances; none: 5 of each asset at block 90
	asked    int
	allowed  []chain.Allowance
	unstored uuid.UUID      // of the account that can't be stored
	keys     map[int]string // the owners' addresses by their numbers
	failing  error          // of the next key that is to be stored
	handover exchange.MultisigHandover
	outcome  chain.JointState // of the handover
	sent     int              // how often it was broadcast
	frozen   bool
	paidAt   uint64 // the block of the payment that opens the account
}

// holds is what an account holds of each asset at a final block.
type holds struct {
	units int64
	block uint64
}

// look is an answer about an account.
type look struct {
	q   chain.Quorum
	err error
}

const agreedThreshold = 2

// newCouncil is a network with one account, which two of its three owners control.
func newCouncil(n exchange.Network, adopted bool) *council {
	a := exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{ID: uuid.New(), Network: n, Address: "account", Threshold: agreedThreshold},
		Kind:            exchange.MultisigKindOn(n), Adopted: adopted, Status: exchange.MultisigOpening,
	}
	if !adopted {
		a.Address = "paid by/" + a.ID.String() + "/anna/bob/cara"
	}
	if adopted {
		a.Status = exchange.MultisigPreparing
	}
	for i, address := range []string{"anna", "bob", "cara"} {
		a.Owners = append(a.Owners, exchange.MultisigOwner{N: i + 1, Address: address, Weight: 1})
	}
	return &council{n: n, accounts: []exchange.MultisigAccount{a}, looks: map[uuid.UUID][]look{}, keys: map[int]string{}}
}

func (c *council) id() uuid.UUID { return c.accounts[0].ID }

// sees has the network answer looks at the first account.
func (c *council) sees(all ...look) *council {
	c.looks[c.id()] = all
	return c
}

// agreed is the quorum of the account as it was agreed, with a change.
func agreed(change func(*chain.Quorum)) look {
	q := chain.Quorum{Threshold: agreedThreshold, Head: chain.Head{Final: chain.Block{Number: 90, ID: "final"}, Latest: chain.Block{Number: 100, ID: "latest"}}}
	for _, address := range []string{"anna", "bob", "cara"} {
		q.Owners = append(q.Owners, chain.Owner{Address: address, Weight: 1})
	}
	if change != nil {
		change(&q)
	}
	return look{q: q}
}

func failing(r chain.Reason, detail string) look { return look{err: chain.Errorf(r, "%s", detail)} }

func (c *council) Network() exchange.Network { return c.n }

func (c *council) Head(context.Context) (chain.Head, error) {
	return chain.Head{Final: chain.Block{Number: 80, ID: "read before"}}, nil
}

func (c *council) Quorum(_ context.Context, address string) (chain.Quorum, error) {
	c.looked++
	for _, a := range c.accounts {
		if a.Address != address || len(c.looks[a.ID]) == 0 {
			continue
		}
		now := c.looks[a.ID][0]
		if len(c.looks[a.ID]) > 1 {
			c.looks[a.ID] = c.looks[a.ID][1:]
		}
		return now.q, now.err
	}
	return agreed(nil).q, nil
}

func (c *council) at(id uuid.UUID) *exchange.MultisigAccount {
	return &c.accounts[slices.IndexFunc(c.accounts, func(a exchange.MultisigAccount) bool { return a.ID == id })]
}

func (c *council) MultisigAccountByID(_ context.Context, id uuid.UUID) (exchange.MultisigAccount, error) {
	return *c.at(id), nil
}

func (c *council) ProposalByID(_ context.Context, id uuid.UUID) (exchange.Proposal, error) {
	return exchange.Proposal{ID: id, WalletID: c.accounts[0].ID, Network: c.accounts[0].Network}, nil
}

// ComingOwners are those of the first account, as if a change had brought them.
func (c *council) ComingOwners(context.Context, uuid.UUID) ([]exchange.MultisigOwner, error) {
	return c.accounts[0].Owners, nil
}

func (c *council) GasWallet(context.Context, exchange.Network) (exchange.Wallet, error) {
	return exchange.Wallet{Address: "gas"}, nil
}

func (c *council) ChainPayment(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return exchange.ChainPayment{FromAddress: "paid by", Block: c.paidAt}, nil
}

func (c *council) Supports(a money.Asset) error {
	if a == money.USDC {
		return errors.New("it is off")
	}
	return nil
}

func (c *council) Balances(_ context.Context, of []chain.Holding) ([]chain.Balance, error) {
	c.asked++
	now := holds{5, 90}
	if c.holds != nil {
		now = c.holds(c.asked)
	}
	var all []chain.Balance
	for _, h := range of {
		all = append(all, chain.Balance{Amount: money.FromUnits(h.Asset, big.NewInt(now.units)), At: chain.Block{Number: now.block}})
	}
	return all, nil
}

func (c *council) Allowances(context.Context, string) ([]chain.Allowance, error) {
	return c.allowed, nil
}

func (c *council) RefuseMultisig(_ context.Context, id uuid.UUID, detail string) (exchange.MultisigAccount, error) {
	c.detail, c.at(id).Status = detail, exchange.MultisigRefused
	return *c.at(id), nil
}

func (c *council) ActivateMultisig(_ context.Context, id uuid.UUID, q exchange.MultisigQuorum, balances []money.Amount) (exchange.MultisigAccount, error) {
	c.at(id).Status, c.checked, c.balances = exchange.MultisigActive, append(c.checked, q), balances
	return *c.at(id), nil
}

func (c *council) CheckedMultisig(_ context.Context, id uuid.UUID, q exchange.MultisigQuorum) (exchange.MultisigAccount, error) {
	a := c.at(id)
	if id == c.unstored {
		return *a, exchange.Errorf(exchange.CodeInternal, "the row refuses it")
	}
	c.checked = append(c.checked, q)
	if a.Status = exchange.MultisigActive; a.Difference(q) != "" {
		a.Status = exchange.MultisigDiffers
	}
	return *a, nil
}

func (c *council) ActiveMultisigs(context.Context, exchange.Network) ([]exchange.MultisigAccount, error) {
	return slices.Clone(c.accounts), nil
}

// CreateOwnerKey makes another key with each call.
func (c *council) CreateOwnerKey(_ context.Context, account uuid.UUID, _ exchange.Network, _ int) (string, exchange.SealedKey, error) {
	return uuid.NewString(), exchange.SealedKey{WalletID: account}, nil
}

// CreateOpeningKey makes another key with each call.
func (c *council) CreateOpeningKey(_ context.Context, account uuid.UUID, _ exchange.Network) (string, exchange.SealedKey, error) {
	return uuid.NewString(), exchange.SealedKey{WalletID: account}, nil
}

func (c *council) StoreOpeningKey(_ context.Context, id uuid.UUID, address string, _ exchange.SealedKey) (exchange.MultisigAccount, error) {
	if err := c.failing; err != nil {
		c.failing = nil
		return exchange.MultisigAccount{}, err
	}
	if c.at(id).OpeningAddress == "" {
		c.at(id).OpeningAddress = address
	}
	return *c.at(id), nil
}

func (c *council) Handover(context.Context, uuid.UUID) (exchange.MultisigHandover, bool, error) {
	return c.handover, c.handover.ID != uuid.Nil, nil
}

func (c *council) EndHandover(_ context.Context, h exchange.MultisigHandover, end exchange.HandoverStatus, evidence string) error {
	if h.ID != c.handover.ID || evidence == "" {
		return exchange.Errorf(exchange.CodeInternal, "another one ends")
	}
	c.handover.Status = end
	return nil
}

func (c *council) Frozen(context.Context) (bool, error) { return c.frozen, nil }

func (c *council) StoreOwnerKey(_ context.Context, id uuid.UUID, n int, address string, _ exchange.SealedKey) (exchange.MultisigOwner, error) {
	if err := c.failing; err != nil {
		c.failing = nil
		return exchange.MultisigOwner{}, err
	}
	if c.keys[n] == "" {
		c.keys[n] = address
	}
	c.at(id).Owners[n-1].Address = c.keys[n]
	return c.at(id).Owners[n-1], nil
}

// MultisigAccount says what an account's address is made of.
func (c *council) MultisigAccount(authority, seed string, q chain.OwnersChange) (string, error) {
	parts := []string{authority, seed}
	for _, o := range q.Owners {
		parts = append(parts, o.Address)
	}
	return strings.Join(parts, "/"), nil
}

func (c *council) MultisigRent(context.Context) (money.Amount, error) {
	return money.Must(money.SOL, "0.003"), nil
}

// opening is a council whose network opens accounts.
type opening struct {
	chain.Client
	*council
}

// giving is one whose network has accounts that begin with a key of ours.
type giving struct {
	chain.Multisig
	*council
}

func (g giving) Network() exchange.Network { return g.n }

func (g giving) Head(ctx context.Context) (chain.Head, error) { return g.council.Head(ctx) }

func (g giving) Supports(a money.Asset) error { return g.council.Supports(a) }

func (g giving) Quorum(ctx context.Context, a string) (chain.Quorum, error) {
	return g.council.Quorum(ctx, a)
}

func (g giving) Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error) {
	return g.council.Balances(ctx, of)
}

func (g giving) GivingCost(_ context.Context, account string, q chain.OwnersChange) (money.Amount, error) {
	if account != "begun" || len(q.Owners) != 3 || q.Threshold != 2 || q.Control.Threshold != 3 {
		return money.Amount{}, fmt.Errorf("%s is given to %+v", account, q)
	}
	return money.Must(money.TRX, "101"), nil
}

func (g giving) Outcome(_ context.Context, j chain.Joint, _ ...string) (chain.JointOutcome, error) {
	if j.ID != "tx" {
		return chain.JointOutcome{}, errors.New("another one is looked for")
	}
	return chain.JointOutcome{State: g.outcome, TxID: j.ID}, nil
}

func (g giving) Broadcast(_ context.Context, raw []byte) (chain.Broadcast, error) {
	if string(raw) == "signed" {
		g.sent++
	}
	return chain.Broadcast{State: chain.BroadcastRejected}, nil
}

func (o opening) Network() exchange.Network { return o.n }

func (o opening) Head(ctx context.Context) (chain.Head, error) { return o.council.Head(ctx) }

func (o opening) Supports(a money.Asset) error { return o.council.Supports(a) }

func (o opening) Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error) {
	return o.council.Balances(ctx, of)
}

func (c *council) activities() *activities.Multisigs {
	return &activities.Multisigs{Store: c, Client: opening{council: c}, Poll: 1}
}

// verify runs one try of VerifyMultisig.
func (c *council) verify(t *testing.T, paid bool) (activities.MultisigState, error) {
	t.Helper()
	return c.verifies(t, c.activities(), paid)
}

func (c *council) verifies(t *testing.T, m *activities.Multisigs, paid bool) (activities.MultisigState, error) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(m)
	out, err := env.ExecuteActivity(m.VerifyMultisig, activities.VerifyMultisigInput{AccountID: c.id(), Paid: paid})
	var state activities.MultisigState
	if err == nil {
		err = out.Get(&state)
	}
	return state, err
}

func TestVerifyMultisig(t *testing.T) {
	t.Parallel()
	absent := failing(chain.ReasonForeign, "it has no code")
	less := agreed(func(q *chain.Quorum) { q.Threshold = 1 })
	moving := agreed(func(q *chain.Quorum) { q.Moving = true })
	for _, c := range []struct {
		name          string
		adopted, paid bool
		looks         []look
		ends          exchange.MultisigStatus // "" while it fails
		fails         string                  // the type of the failure
		says          string                  // of the refusal or the failure
	}{
		{name: "an adopted account as agreed", adopted: true, looks: []look{agreed(nil)}, ends: exchange.MultisigActive},
		{name: "an opened account as agreed", paid: true, looks: []look{agreed(nil)}, ends: exchange.MultisigActive},
		{name: "an adopted account with another threshold", adopted: true, looks: []look{less}, ends: exchange.MultisigRefused, says: "threshold"},
		{name: "an adopted account that breaks a rule", adopted: true, looks: []look{failing(chain.ReasonForeign, "the module X can act")}, ends: exchange.MultisigRefused, says: "the module X can act"},
		{name: "an adopted account at no address", adopted: true, looks: []look{failing(chain.ReasonAddress, "the checksum is wrong")}, ends: exchange.MultisigRefused, says: "checksum"},
		{name: "one node lags behind", adopted: true, looks: []look{absent, agreed(nil)}, fails: activities.TypePending, says: "changing"},
		{name: "one node is ahead of the truth", adopted: true, looks: []look{agreed(nil), absent}, fails: activities.TypePending, says: "changing"},
		{name: "it changes while its money is counted", adopted: true, looks: []look{agreed(nil), agreed(nil), less}, fails: activities.TypePending, says: "changing"},
		{name: "its owners are changing", adopted: true, looks: []look{moving}, fails: activities.TypePending},
		{name: "the network is away", adopted: true, looks: []look{failing(chain.ReasonUnavailable, "no node")}, fails: string(chain.ReasonUnavailable)},
		{name: "a paid account is not there yet", paid: true, looks: []look{absent}, fails: activities.TypePending, says: "it has no code"},
		{name: "an account that is not paid is not there", looks: []look{absent}, fails: string(exchange.CodeStateConflict), says: "it has no code"},
		{name: "an opened account with another threshold", paid: true, looks: []look{less}, fails: string(exchange.CodeStateConflict), says: "threshold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCouncil(exchange.Ethereum, c.adopted).sees(c.looks...)
			state, err := w.verify(t, c.paid)
			if state.Status != c.ends || (err != nil) != (c.fails != "") {
				t.Fatalf("it is %q, %v", state.Status, err)
			}
			said := w.detail
			if err != nil {
				said = err.Error()
				if e, ok := errors.AsType[*temporal.ApplicationError](err); !ok || e.Type() != c.fails {
					t.Errorf("it failed with %v, want %s", err, c.fails)
				}
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("it says %q, want %q", said, c.says)
			}
			if c.ends == exchange.MultisigActive && (len(w.checked) != 1 || w.checked[0].Block != 90 || w.checked[0].BlockID != "final" || w.checked[0].Address != w.accounts[0].Address) {
				t.Errorf("it is active by %+v", w.checked)
			}
			if c.fails == "" {
				w.looked = 0
				if again, err := w.verify(t, c.paid); err != nil || again.Status != c.ends || w.looked != 0 {
					t.Errorf("repeated after %d looks: %s, %v", w.looked, again.Status, err)
				}
			}
		})
	}
}

// What an account holds is read before and after its quorum, so that it is what the account held at the quorum's block.
func TestActivatedWithItsBalances(t *testing.T) {
	t.Parallel()
	at := func(all ...holds) func(int) holds { return func(n int) holds { return all[min(n, len(all))-1] } }
	for _, c := range []struct {
		name    string
		network exchange.Network
		holds   func(int) holds
		want    string // "" while it is asked again
	}{
		{"at one block", exchange.Ethereum, at(holds{7, 90}), "[0.000000 0.000000000000000007 0.000007]"},
		{"at the blocks around", exchange.Ethereum, at(holds{7, 88}, holds{7, 93}), "[0.000000 0.000000000000000007 0.000007]"},
		{"the coin stays in one of Solana", exchange.Solana, at(holds{7, 90}), "[0.000000 0.000007]"},
		{"something came meanwhile", exchange.Ethereum, at(holds{7, 90}, holds{8, 90}), ""},
		{"the first one is from later", exchange.Ethereum, at(holds{7, 91}), ""},
		{"the second one is from earlier", exchange.Ethereum, at(holds{7, 89}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCouncil(c.network, true)
			w.holds = c.holds
			state, err := w.verify(t, false)
			if c.want == "" {
				if e, ok := errors.AsType[*temporal.ApplicationError](err); !ok || e.Type() != activities.TypePending || w.accounts[0].Status != exchange.MultisigPreparing {
					t.Errorf("it is %s, %v", state.Status, err)
				}
				return
			}
			if got := fmt.Sprint(w.balances); err != nil || got != c.want {
				t.Errorf("it is %s with %s, want %s; %v", state.Status, got, c.want, err)
			}
		})
	}
}

// An account that others opened is refused while another address may take what it has. What owners allow later, they sign.
func TestAllowancesAreRefused(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Ethereum, true)
	w.allowed = []chain.Allowance{{Asset: money.USDT, Spender: "mallory", Right: "allowance"}}
	state, err := w.verify(t, false)
	if err != nil || state.Status != exchange.MultisigRefused || w.detail != "mallory has a right to its USDT (allowance) without its owners" {
		t.Errorf("it is %s (%s), %v", state.Status, w.detail, err)
	}
	w = newCouncil(exchange.Ethereum, false)
	w.allowed = []chain.Allowance{{Asset: money.USDT, Spender: "mallory"}}
	if state, err := w.verify(t, true); err != nil || state.Status != exchange.MultisigActive {
		t.Errorf("an account that we opened is %s, %v", state.Status, err)
	}
}

// The flow alone says where an account was opened. One at another address than follows from its owners and its payer is none of ours.
func TestOpenedAtAnotherAddress(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Ethereum, false)
	w.accounts[0].Address = "mallory's"
	if state, err := w.verify(t, true); err == nil || !strings.Contains(err.Error(), "not mallory's") || w.looked != 0 {
		t.Errorf("it is %s, %v", state.Status, err)
	}
}

// On TRON another permission changes the owners. Only owners of payments may have a part in it, with the same weight.
func TestControlOfTron(t *testing.T) {
	t.Parallel()
	three := agreed(nil).q.Owners
	for _, c := range []struct {
		name    string
		control *chain.Quorum
		want    int
		refused string
	}{
		{"the same permission", nil, 2, ""},
		{"more of the same owners", &chain.Quorum{Owners: three, Threshold: 3}, 3, ""},
		{"some of the owners", &chain.Quorum{Owners: three[:2], Threshold: 2}, 2, ""},
		{"another key", &chain.Quorum{Owners: append(three[:2:2], chain.Owner{Address: "dora", Weight: 1}), Threshold: 3}, 0, "dora"},
		{"another weight", &chain.Quorum{Owners: append(three[:2:2], chain.Owner{Address: "cara", Weight: 2}), Threshold: 3}, 0, "cara"},
		{"a lower threshold", &chain.Quorum{Owners: three, Threshold: 1}, 0, "change the owners"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCouncil(exchange.Tron, true).sees(agreed(func(q *chain.Quorum) { q.Control = c.control }))
			state, err := w.verify(t, false)
			if err != nil {
				t.Fatal(err)
			}
			if c.refused != "" {
				if state.Status != exchange.MultisigRefused || !strings.Contains(w.detail, c.refused) {
					t.Errorf("it is %s: %q", state.Status, w.detail)
				}
				return
			}
			if state.Status != exchange.MultisigActive || w.checked[0].ControlThreshold != c.want {
				t.Errorf("it is %s (%q), by %+v", state.Status, w.detail, w.checked)
			}
		})
	}
}

// CheckMultisigs marks accounts whose owners are others at a second look too, and leaves alone those that it can't read.
func TestCheckMultisigs(t *testing.T) {
	t.Parallel()
	less := agreed(func(q *chain.Quorum) { q.Threshold = 1 })
	for _, c := range []struct {
		name   string
		before exchange.MultisigStatus
		looks  []look
		after  exchange.MultisigStatus
		want   activities.MultisigsChecked
	}{
		{"as agreed", exchange.MultisigActive, []look{agreed(nil)}, exchange.MultisigActive, activities.MultisigsChecked{Checked: 1}},
		{"another threshold", exchange.MultisigActive, []look{less}, exchange.MultisigDiffers, activities.MultisigsChecked{Checked: 1, Differs: 1}},
		{"one node is wrong", exchange.MultisigActive, []look{less, agreed(nil)}, exchange.MultisigActive, activities.MultisigsChecked{Checked: 1}},
		{"a module", exchange.MultisigActive, []look{failing(chain.ReasonForeign, "the module X")}, exchange.MultisigDiffers, activities.MultisigsChecked{Checked: 1, Differs: 1}},
		{"as agreed again", exchange.MultisigDiffers, []look{agreed(nil)}, exchange.MultisigActive, activities.MultisigsChecked{Checked: 1}},
		{"unreadable", exchange.MultisigDiffers, []look{failing(chain.ReasonUnavailable, "no node")}, exchange.MultisigDiffers, activities.MultisigsChecked{Differs: 1, Unread: 1}},
		{"changing", exchange.MultisigActive, []look{agreed(func(q *chain.Quorum) { q.Moving = true })}, exchange.MultisigActive, activities.MultisigsChecked{Unread: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCouncil(exchange.Ethereum, true).sees(c.looks...)
			w.accounts[0].Status = c.before
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			m := w.activities()
			env.RegisterActivity(m)
			value, err := env.ExecuteActivity(m.CheckMultisigs)
			if err != nil {
				t.Fatal(err)
			}
			var out activities.MultisigsChecked
			if err := value.Get(&out); err != nil || out != c.want || w.accounts[0].Status != c.after {
				t.Errorf("%+v, and the account is %s; %v", out, w.accounts[0].Status, err)
			}
			for _, q := range w.checked {
				if q.Foreign != "" && (q.Block != 80 || q.BlockID != "read before") {
					t.Errorf("a quorum without owners is of block %d", q.Block)
				}
			}
		})
	}
}

// One account that can't be compared keeps no other one from being looked at. That an older block changes nothing is the store's rule.
func TestCheckMultisigsGoesOn(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Ethereum, true)
	w.accounts = append(w.accounts, newCouncil(exchange.Ethereum, true).accounts[0])
	for i := range w.accounts {
		w.accounts[i].Status = exchange.MultisigActive
	}
	w.unstored = w.id()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	m := w.activities()
	env.RegisterActivity(m)
	value, err := env.ExecuteActivity(m.CheckMultisigs)
	if err != nil {
		t.Fatal(err)
	}
	var out activities.MultisigsChecked
	if err := value.Get(&out); err != nil || out != (activities.MultisigsChecked{Checked: 1, Unread: 1}) || len(w.checked) != 1 {
		t.Errorf("%+v, %d were compared; %v", out, len(w.checked), err)
	}
}

// The place of an account follows from the gas wallet, the account's id and its owners. A network on which none can be opened says so.
func TestPlaceMultisig(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Solana, false)
	place, err := w.activities().PlaceMultisig(t.Context(), activities.MultisigInput{AccountID: w.id()})
	if want := "gas/" + w.id().String() + "/anna/bob/cara"; err != nil || place.Address != want || place.Rent.String() != "0.003000000" {
		t.Errorf("%+v, %v", place, err)
	}
	tron := &activities.Multisigs{Store: w, Client: w.closed()}
	if _, err := tron.PlaceMultisig(t.Context(), activities.MultisigInput{AccountID: w.id()}); err == nil || !strings.Contains(err.Error(), "can be opened") {
		t.Errorf("an account is opened where none can be: %v", err)
	}
}

// closed is a client that opens no accounts.
func (c *council) closed() activities.MultisigReader { return onlyReading{c} }

type onlyReading struct{ c *council }

func (r onlyReading) Network() exchange.Network                    { return exchange.Tron }
func (r onlyReading) Head(ctx context.Context) (chain.Head, error) { return r.c.Head(ctx) }
func (r onlyReading) Supports(a money.Asset) error                 { return r.c.Supports(a) }
func (r onlyReading) Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error) {
	return r.c.Balances(ctx, of)
}

func (r onlyReading) Quorum(ctx context.Context, a string) (chain.Quorum, error) {
	return r.c.Quorum(ctx, a)
}

// Each owner whose key we hold gets one key, also when the step dies between them and is repeated.
func TestMakeOwnerKeys(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Solana, false)
	owners := w.accounts[0].Owners
	for i := range owners[:2] {
		owners[i].Held, owners[i].Address = true, ""
	}
	m := &activities.MultisigKeys{Keys: w, Store: w}
	in := activities.MultisigInput{AccountID: w.id()}
	if err := m.MakeOwnerKeys(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	first := owners[0].Address
	if first == "" || owners[1].Address == "" || owners[1].Address == first || owners[2].Address != "cara" {
		t.Fatalf("the owners are %+v", owners)
	}
	owners[1].Address, w.failing = "", exchange.Errorf(exchange.CodeUnavailable, "the database is away") // died before the second
	delete(w.keys, 2)
	if err := m.MakeOwnerKeys(t.Context(), in); err == nil {
		t.Error("a key that can't be stored is no failure")
	}
	if err := m.MakeOwnerKeys(t.Context(), in); err != nil || owners[0].Address != first || owners[1].Address == "" {
		t.Errorf("repeated: %+v, %v", owners, err)
	}
}

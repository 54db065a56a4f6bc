package exchange_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// owners are n owners outside of Kivuko.
func owners(n int) []exchange.MultisigOwner {
	all := make([]exchange.MultisigOwner, n)
	for i := range all {
		all[i].Address = fmt.Sprintf("0xOwner%033d", i)
	}
	return all
}

func asked(n exchange.Network, change ...func(*exchange.MultisigRequest)) exchange.MultisigRequest {
	r := exchange.MultisigRequest{
		ID: uuid.New(), Network: n, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Threshold: 2, Owners: owners(3),
		Policy: exchange.MultisigPolicy{Approvals: 1},
	}
	for _, f := range change {
		f(&r)
	}
	return r.Complete()
}

func TestMultisigRequestsAreChecked(t *testing.T) {
	t.Parallel()
	at := func(r *exchange.MultisigRequest) { r.Address = "0xAccount000000000000000000000000000000000" }
	provider := func(r *exchange.MultisigRequest) {
		r.Custody = exchange.MultisigProvider
		for i := range r.Owners {
			r.Owners[i] = exchange.MultisigOwner{UserID: uuid.New()}
		}
	}
	for name, c := range map[string]struct {
		r    exchange.MultisigRequest
		want string // the pointers at fault
	}{
		"a new Safe":            {asked(exchange.Ethereum), ""},
		"one that exists":       {asked(exchange.Ethereum, at), ""},
		"with an officer's key": {asked(exchange.Solana, func(r *exchange.MultisigRequest) { r.Owners[1] = exchange.MultisigOwner{UserID: uuid.New()} }), ""},
		"of officers' keys":     {asked(exchange.Ethereum, provider), ""},
		"weights on TRON":       {asked(exchange.Tron, at, func(r *exchange.MultisigRequest) { r.Owners[0].Weight, r.Threshold = 3, 5 }), ""},
		"with rules": {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) {
			r.Policy.Rules = []exchange.MultisigRule{{shillings("1000"), 2}, {shillings("5000"), 4}}
		}), ""},
		"no name":                              {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Name = "" }), "/treasury/name"},
		"a long name":                          {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Name = strings.Repeat("é", 201) }), "/treasury/name"},
		"blanks":                               {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Label = " x" }), "/label"},
		"a coin":                               {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Asset = money.ETH }), "/asset"},
		"another custody":                      {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Custody = "both" }), "/custody"},
		"a new one on TRON":                    {asked(exchange.Tron), ""},
		"officers' keys are new":               {asked(exchange.Ethereum, provider, at), "/multisig/address"},
		"an owner's address, provider":         {asked(exchange.Ethereum, provider, func(r *exchange.MultisigRequest) { r.Owners[0].Address = "0xA" }), "/multisig/owners/0/address"},
		"no officer, provider":                 {asked(exchange.Ethereum, provider, func(r *exchange.MultisigRequest) { r.Owners[2].UserID = uuid.Nil }), "/multisig/owners/2/user_id"},
		"no address, existing":                 {asked(exchange.Ethereum, at, func(r *exchange.MultisigRequest) { r.Owners[1] = exchange.MultisigOwner{UserID: uuid.New()} }), "/multisig/owners/1/address"},
		"neither":                              {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners[1].Address = "" }), "/multisig/owners/1/address"},
		"both":                                 {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners[1].UserID = uuid.New() }), "/multisig/owners/1/address"},
		"a weight on Ethereum":                 {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners[1].Weight = 2; r.Threshold = 3 }), "/multisig/owners/1/weight"},
		"a weight below one":                   {asked(exchange.Tron, at, func(r *exchange.MultisigRequest) { r.Owners[1].Weight = -1 }), "/multisig/owners/1/weight /multisig/threshold"},
		"one owner":                            {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners = r.Owners[:1]; r.Threshold = 1 }), "/multisig/owners /multisig/threshold"},
		"too many on TRON":                     {asked(exchange.Tron, at, func(r *exchange.MultisigRequest) { r.Owners = owners(6) }), "/multisig/owners"},
		"too many":                             {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners = owners(21) }), "/multisig/owners"},
		"the same address, other case":         {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners[1].Address = strings.ToUpper(r.Owners[0].Address) }), "/multisig/owners/1/address"},
		"its own address":                      {asked(exchange.Ethereum, at, func(r *exchange.MultisigRequest) { r.Owners[1].Address = r.Address }), "/multisig/owners/1/address"},
		"the same officer":                     {asked(exchange.Ethereum, provider, func(r *exchange.MultisigRequest) { r.Owners[1].UserID = r.Owners[0].UserID }), "/multisig/owners/1/user_id"},
		"not to be reached":                    {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Threshold = 4 }), "/multisig/threshold"},
		"more than a transaction has room for": {asked(exchange.Solana, func(r *exchange.MultisigRequest) { r.Owners, r.Threshold = owners(9), 7 }), "/multisig/threshold"},
		"no owner is needed":                   {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Threshold = 0 }), "/multisig/threshold"},
		"one alone suffices":                   {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Threshold = 1 }), "/multisig/threshold"},
		"one alone has the weight":             {asked(exchange.Tron, at, func(r *exchange.MultisigRequest) { r.Owners[2].Weight = 2 }), "/multisig/threshold"},
		"no approval":                          {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Policy.Approvals = 0 }), "/treasury/policy/approvals"},
		"too many approvals":                   {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Policy.Approvals = 11 }), "/treasury/policy/approvals"},
		"a rule that asks no more":             {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Policy.Rules = []exchange.MultisigRule{{shillings("1"), 1}} }), "/treasury/policy/value_rules/0/approvals"},
		"rules out of order": {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) {
			r.Policy.Rules = []exchange.MultisigRule{{shillings("5"), 2}, {shillings("5"), 3}}
		}), "/treasury/policy/value_rules/1/above"},
		"a rule in USDT": {asked(exchange.Ethereum, func(r *exchange.MultisigRequest) {
			r.Policy.Rules = []exchange.MultisigRule{{money.Must(money.USDT, "5"), 2}}
		}), "/treasury/policy/value_rules/0/above"},
	} {
		if got := strings.Join(pointers(c.r.Check()), " "); got != c.want {
			t.Errorf("%s: at fault are %q, want %q", name, got, c.want)
		}
	}
}

func pointers(err error) []string {
	var all []string
	if e, ok := errors.AsType[*exchange.Error](err); ok {
		for _, f := range e.Fields {
			all = append(all, f.Pointer)
		}
	}
	return all
}

// An account agrees with the chain only when everything that decides who pays is what was agreed, and the first difference is named.
func TestMultisigDifferences(t *testing.T) {
	t.Parallel()
	const first, second = "0xAaaa000000000000000000000000000000000001", "0xAaaa000000000000000000000000000000000002"
	agreed := exchange.MultisigAccount{MultisigRequest: exchange.MultisigRequest{
		Network: exchange.Ethereum, Address: "0xCccc000000000000000000000000000000000003", Threshold: 2,
		Owners: []exchange.MultisigOwner{{N: 1, Address: first, Weight: 1, Label: "x"}, {N: 2, Address: second, Weight: 1, UserID: uuid.New(), Held: true}},
	}, Kind: exchange.MultisigSafe}
	same := exchange.MultisigQuorum{Address: strings.ToLower(agreed.Address), Threshold: 2, Owners: []exchange.MultisigOwner{{Address: second, Weight: 1}, {Address: strings.ToLower(first), Weight: 1}}}
	for name, c := range map[string]struct {
		change func(*exchange.MultisigQuorum)
		want   string
	}{
		"the same":        {func(*exchange.MultisigQuorum) {}, ""},
		"another account": {func(q *exchange.MultisigQuorum) { q.Address = first }, "the account is"},
		"another owner":   {func(q *exchange.MultisigQuorum) { q.Owners[0].Address = agreed.Address }, "was not agreed"},
		"one more": {func(q *exchange.MultisigQuorum) {
			q.Owners = append(q.Owners, exchange.MultisigOwner{Address: agreed.Address, Weight: 1})
		}, "was not agreed"},
		"one less":          {func(q *exchange.MultisigQuorum) { q.Owners = q.Owners[:1] }, first + " is no owner"},
		"an owner twice":    {func(q *exchange.MultisigQuorum) { q.Owners = append(q.Owners, q.Owners[0]) }, "was not agreed"},
		"another weight":    {func(q *exchange.MultisigQuorum) { q.Owners[0].Weight = 2 }, "weight 2, not 1"},
		"a lower threshold": {func(q *exchange.MultisigQuorum) { q.Threshold = 1 }, "threshold is 1, not 2"},
	} {
		q := same
		q.Owners = slices.Clone(same.Owners)
		c.change(&q)
		if got := agreed.Difference(q); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	tron, q := agreed, same
	tron.Network, tron.Kind, q.Address = exchange.Tron, exchange.MultisigTron, agreed.Address
	q.Owners = agreed.Owners
	for known, c := range map[int]map[int]string{0: {1: "can change the owners", 2: "", 3: ""}, 3: {2: "changes of the owners need", 3: "", 4: "changes of the owners need"}} {
		tron.ControlThreshold = known
		for control, want := range c {
			q.ControlThreshold = control
			if got := tron.Difference(q); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("control %d where %d is known: %q, want %q", control, known, got, want)
			}
		}
	}
}

func TestMultisigPoliciesCountOfficers(t *testing.T) {
	t.Parallel()
	p := exchange.MultisigPolicy{Approvals: 1, Rules: []exchange.MultisigRule{{shillings("100"), 2}, {shillings("500"), 4}}}
	for value, want := range map[string]int{"0": 1, "100": 1, "100.01": 2, "500": 2, "501": 4, "9999999": 4} {
		if got := p.Needed(shillings(value)); got != want {
			t.Errorf("%s shillings need %d, want %d", value, got, want)
		}
	}
}

// Changes of the owners of an account that we make on TRON need one more than payments, or all.
func TestControllingOnTron(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		weights         []int
		threshold, want int
	}{{[]int{1, 1, 1}, 2, 3}, {[]int{1, 1}, 2, 2}, {[]int{2, 2, 2}, 3, 4}, {[]int{1000, 127, 128}, 1128, 1129}} {
		a := exchange.MultisigAccount{MultisigRequest: exchange.MultisigRequest{Threshold: c.threshold}, Kind: exchange.MultisigTron}
		for _, w := range c.weights {
			a.Owners = append(a.Owners, exchange.MultisigOwner{Weight: w})
		}
		if got := a.Controlling(); got != c.want || !a.Given() {
			t.Errorf("%v with %d for payments need %d, want %d", c.weights, c.threshold, got, c.want)
		}
	}
}

package api

import (
	"fmt"
	"strings"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// multisigCustody are the custodies of wallets of several owners.
var multisigCustody = []string{string(exchange.MultisigSelf), string(exchange.MultisigProvider)}

// multisigKinds are the kinds of accounts of several owners.
var multisigKinds = []string{string(exchange.MultisigSafe), string(exchange.MultisigTron), string(exchange.MultisigSPL)}

// askedKinds are the kinds that a request may name. It may name the custody instead: the kind follows from the network.
var askedKinds = append(multisigKinds[:len(multisigKinds):len(multisigKinds)], string(exchange.MultisigProvider))

const (
	mostOwners    = 20                             // of any kind
	mostThreshold = 5 * exchange.MaxMultisigWeight // the weights of all owners on TRON together
)

// readMultisig reads the parts of a request for a treasury wallet of several owners: treasury, custody and multisig. What they have to
// be together is the rule of exchange.MultisigRequest.
func (s *server) readMultisig(f *form, wallet exchange.WalletRequest) exchange.MultisigRequest {
	r := exchange.MultisigRequest{
		ID: wallet.ID, Network: wallet.Network, Asset: wallet.Asset, Label: wallet.Label,
		Custody: exchange.MultisigCustody(f.oneOf("custody", true, multisigCustody...)),
	}
	if t := f.object("treasury", true); t != nil {
		r.Name, r.MerchantID = t.line("name", true, exchange.MaxMultisigName), t.id("merchant_id", false)
		if p := t.object("policy", true); p != nil {
			r.Policy = p.multisigPolicy()
		}
	}
	if m := f.object("multisig", true); m != nil {
		s.readQuorum(m, &r)
	}
	if wallet.Default {
		f.fail("set_default", "conflict", "must be left out: only wallets of users are defaults")
	}
	return r
}

// multisigPolicy reads how many officers approve what leaves a wallet.
func (f *form) multisigPolicy() exchange.MultisigPolicy {
	p := exchange.MultisigPolicy{Approvals: f.number("approvals", true, exchange.MaxMultisigApprovals)}
	for _, rule := range f.objects("value_rules", false, "rules", exchange.MaxMultisigRules) {
		p.Rules = append(p.Rules, exchange.MultisigRule{
			Above: rule.amount("above", money.KES, true), Approvals: rule.number("approvals", true, exchange.MaxMultisigApprovals),
		})
	}
	return p
}

// readQuorum reads who owns an account, and how many of them sign.
func (s *server) readQuorum(f *form, r *exchange.MultisigRequest) {
	kind := exchange.MultisigKindOn(r.Network)
	asked, provider := f.oneOf("kind", false, askedKinds...), r.Custody == exchange.MultisigProvider
	if asked != "" && kind != "" && asked != string(kind) && (!provider || asked != string(exchange.MultisigProvider)) {
		f.fail("kind", "conflict", fmt.Sprintf("must be %s, the kind on %s, or provider when custody is provider", kind, r.Network))
	}
	// A contract may be adopted, and does not sign.
	r.Address = f.addressOn(r.Network, s.AnyAddresses)
	r.Threshold = f.number("threshold", true, mostThreshold)
	most := kind.MaxOwners()
	if most == 0 { // the network is refused elsewhere
		most = mostOwners
	}
	for _, in := range f.objects("owners", true, "owners", most) {
		o := exchange.MultisigOwner{
			Address: in.addressOn(r.Network, s.Addresses), UserID: in.id("user_id", false), Label: in.line("label", true, exchange.MaxMultisigName),
		}
		if r.Network != exchange.Tron && r.Network != "" { // what is no network is refused elsewhere
			in.forbid("weight", "only owners on tron have weights")
		} else {
			o.Weight = in.number("weight", false, exchange.MaxMultisigWeight)
		}
		r.Owners = append(r.Owners, o)
	}
}

// addressOn reads an optional address on a network, in its canonical form.
func (f *form) addressOn(n exchange.Network, checks map[exchange.Network]func(string) (string, error)) string {
	text := f.line("address", false, maxAddressText)
	check := checks[n]
	if check == nil || text == "" { // a network that is off is refused elsewhere
		if given, _ := f.values["address"].(string); f.has("address") && strings.TrimSpace(given) == "" {
			f.fail("address", "required", "must not be empty")
		}
		return text
	}
	address, err := check(text)
	if err != nil {
		f.fail("address", "address", exchange.MessageOf(addressError(n, err)))
	}
	return address
}

// number reads a whole number from 1; zero when absent or invalid.
func (f *form) number(name string, required bool, most int) int {
	if n := f.integer(name, required, 1, most); n != nil {
		return *n
	}
	return 0
}

// proposeMultisig proposes a treasury wallet of several owners, which another officer confirms. It counts as the house's own, and
// whoever names the owners could name their own keys alone.
func (s *server) proposeMultisig(c *call, r exchange.MultisigRequest) error {
	const action = exchange.ActProposeMultisig
	if exchange.ScopeOf(c.who.Role, action) == exchange.ScopeNone {
		return exchange.Errorf(exchange.CodeForbidden, "The role %s may not create treasury wallets.", c.who.Role)
	}
	if err := s.proven(c, exchange.NeedsOf(c.who.Role, action)); err != nil {
		return err
	}
	if err := s.canHold(r.Network, r.Asset); err != nil {
		return err
	}
	waits, err := s.Store.ProposeMultisigWallet(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

package exchange

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// Complete returns the request with what follows from it: the numbers of the owners, the weight 1 where none was given, and which keys we
// make. The key of an owner without an address is ours.
func (r MultisigRequest) Complete() MultisigRequest {
	owners := make([]MultisigOwner, len(r.Owners))
	for i, o := range r.Owners {
		if o.N, o.Held = i+1, o.Address == ""; o.Weight == 0 {
			o.Weight = 1
		}
		owners[i] = o
	}
	r.Owners, r.Policy.Version = owners, 1
	return r
}

// Check checks a completed request on its own. CodeInvalid lists every field at fault.
func (r MultisigRequest) Check() error {
	c := checker{}
	c.rule(r.ID != uuid.Nil, "/id", "required", "is required")
	c.rule(r.Network.Valid(), "/network", "enum", "must be a network")
	c.rule(r.Asset.Stablecoin(), "/asset", "enum", "must be USDT or USDC")
	c.name(r.Name, "/treasury/name", 1)
	c.name(r.Label, "/label", 0)
	c.rule(r.Custody == MultisigSelf || r.Custody == MultisigProvider, "/custody", "enum", "must be self or provider")
	if len(c.bad) > 0 {
		return Invalid(c.bad...)
	}
	c.place(r)
	c.owners(r)
	c.policy(r.Policy)
	return Invalid(c.bad...)
}

func (c *checker) name(s, pointer string, least int) {
	n := utf8.RuneCountInString(s)
	c.rule(n >= least && n <= MaxMultisigName && strings.TrimSpace(s) == s, pointer, "length",
		fmt.Sprintf("must have %d to %d characters, without blanks around them", least, MaxMultisigName))
}

// place checks whether an account is adopted where it may be, and opened where it can be.
func (c *checker) place(r MultisigRequest) {
	c.rule(r.Custody != MultisigProvider || r.Address == "", "/multisig/address", "forbidden", "must be left out: an account of officers' keys in our key store is opened by us")
	c.rule(utf8.RuneCountInString(r.Address) <= 128, "/multisig/address", "length", "must be an address of the network")
}

// owners checks who controls the account. None of them can alone, or it would protect nothing.
func (c *checker) owners(r MultisigRequest) {
	kind := MultisigKindOn(r.Network)
	c.rule(len(r.Owners) >= 2 && len(r.Owners) <= kind.MaxOwners(), "/multisig/owners", "length", fmt.Sprintf("must have 2 to %d owners", kind.MaxOwners()))
	if len(r.Owners) > kind.MaxOwners() {
		return
	}
	addresses, users, heaviest := map[string]bool{}, map[uuid.UUID]bool{}, 0
	for i, o := range r.Owners {
		at := fmt.Sprintf("/multisig/owners/%d", i)
		c.owner(r, o, at)
		address := r.Network.Compared(o.Address)
		c.rule(address == "" || !addresses[address] && address != r.Network.Compared(r.Address), at+"/address", "repeated", "must be another address than those of the other owners and of the account")
		c.rule(o.UserID == uuid.Nil || !users[o.UserID], at+"/user_id", "repeated", "must be another officer than those of the other owners")
		addresses[address], users[o.UserID], heaviest = true, true, max(heaviest, o.Weight)
	}
	most := r.Sum()
	if kind != MultisigTron {
		most = min(most, kind.MaxThreshold())
	}
	c.rule(r.Threshold >= 1 && r.Threshold <= most, "/multisig/threshold", "out_of_range", fmt.Sprintf("must be a number from 1 to %d, which the owners can reach together", most))
	c.rule(r.Threshold < 1 || heaviest < r.Threshold, "/multisig/threshold", "out_of_range", "must be more than one owner has alone")
}

func (c *checker) owner(r MultisigRequest, o MultisigOwner, at string) {
	switch {
	case r.Custody == MultisigProvider:
		c.rule(o.Address == "", at+"/address", "forbidden", "must be left out: the key is made in our key store")
		c.rule(o.UserID != uuid.Nil, at+"/user_id", "required", "is required: the officer who signs with the key")
	case r.Address != "":
		c.rule(o.Address != "", at+"/address", "required", "is required: the account exists already")
	default:
		c.rule((o.Address == "") != (o.UserID == uuid.Nil), at+"/address", "required", "is required, or a user_id, and not both: an officer's key is made in our key store")
	}
	c.rule(utf8.RuneCountInString(o.Address) <= 128, at+"/address", "length", "must be an address of the network")
	c.rule(r.Network == Tron && o.Weight >= 1 && o.Weight <= MaxMultisigWeight || o.Weight == 1, at+"/weight", "out_of_range",
		fmt.Sprintf("must be a number from 1 to %d on TRON, and left out elsewhere", MaxMultisigWeight))
	c.name(o.Label, at+"/label", 0)
}

// policy checks that larger payments need more officers.
func (c *checker) policy(p MultisigPolicy) {
	c.rule(p.Approvals >= 1 && p.Approvals <= MaxMultisigApprovals, "/treasury/policy/approvals", "out_of_range", fmt.Sprintf("must be a number from 1 to %d", MaxMultisigApprovals))
	c.rule(len(p.Rules) <= MaxMultisigRules, "/treasury/policy/value_rules", "length", fmt.Sprintf("must have at most %d rules", MaxMultisigRules))
	before := MultisigRule{Above: money.Zero(money.KES), Approvals: p.Approvals}
	for i, rule := range p.Rules {
		at := fmt.Sprintf("/treasury/policy/value_rules/%d", i)
		c.rule(rule.Above.Asset() == money.KES && rule.Above.Cmp(before.Above) > 0, at+"/above", "out_of_range", "must be shillings, above zero and above the value of the rule before")
		c.rule(rule.Approvals > before.Approvals && rule.Approvals <= MaxMultisigApprovals, at+"/approvals", "out_of_range",
			fmt.Sprintf("must be more than without the rule, and at most %d", MaxMultisigApprovals))
		if rule.Above.Asset() != money.KES {
			return
		}
		before = rule
	}
}

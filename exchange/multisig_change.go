package exchange

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// OwnersChange is the quorum that an account of several owners shall have: all its owners, not only those who come. An owner with an address
// and a user stays, with the key that our key store has; one with a user alone gets a new key there; one with an address alone is outside.
type OwnersChange struct {
	Owners           []MultisigOwner // address, user, weight and label; the others follow
	Threshold        int
	ControlThreshold int // of further changes, on TRON; zero elsewhere
}

// ownersDoc is the stored form.
type ownersDoc struct {
	Owners           []ownerDoc `json:"owners"`
	Threshold        int        `json:"threshold"`
	ControlThreshold int        `json:"control_threshold,omitempty"`
}

type ownerDoc struct {
	N       int       `json:"n,omitempty"`
	Address string    `json:"address,omitempty"`
	UserID  uuid.UUID `json:"user_id,omitzero"`
	Weight  int       `json:"weight"`
	Label   string    `json:"label,omitempty"`
	Held    bool      `json:"held,omitempty"`
}

// Encode is the form in which a change is stored and stated; empty for none.
func (c OwnersChange) Encode() string {
	if len(c.Owners) == 0 {
		return ""
	}
	d := ownersDoc{Threshold: c.Threshold, ControlThreshold: c.ControlThreshold}
	for _, o := range c.Owners {
		d.Owners = append(d.Owners, ownerDoc{Address: o.Address, UserID: o.UserID, Weight: o.Weight, Label: o.Label})
	}
	text, err := json.Marshal(d)
	if err != nil { // it has texts and numbers only
		return ""
	}
	return string(text)
}

// OwnersChangeOf reads a stored change; of an empty text there is none.
func OwnersChangeOf(text string) (OwnersChange, error) {
	var d ownersDoc
	if text == "" {
		return OwnersChange{}, nil
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return OwnersChange{}, Wrap(CodeInternal, err, "a change of owners can't be read")
	}
	c := OwnersChange{Threshold: d.Threshold, ControlThreshold: d.ControlThreshold}
	for _, o := range d.Owners {
		c.Owners = append(c.Owners, MultisigOwner(o))
	}
	return c, nil
}

func changeTerm(name string, v *OwnersChange) term {
	return term{name, func() string { return v.Encode() }, func(s string) (err error) { *v, err = OwnersChangeOf(s); return err }}
}

// Text is what a digest of the change covers: one line for each owner, in their order. The database computes the same (owners_text).
func (c OwnersChange) Text() string {
	if len(c.Owners) == 0 {
		return ""
	}
	lines := []string{fmt.Sprintf("%d|%d", c.Threshold, c.ControlThreshold)}
	for _, o := range c.Owners {
		lines = append(lines, fmt.Sprintf("%s|%s|%d|%s", o.Address, textOf(o.UserID), o.Weight, hex.EncodeToString([]byte(o.Label))))
	}
	return strings.Join(lines, "\n")
}

// Resolved reports whether each owner has an address.
func (c OwnersChange) Resolved() bool {
	return !slices.ContainsFunc(c.Owners, func(o MultisigOwner) bool { return o.Address == "" })
}

// Resolved reports whether what the owners sign is the change that was asked for, with the addresses of keys that were made since.
func (p Proposal) Resolved() bool {
	asked, err := OwnersChangeOf(p.Change)
	if err != nil {
		return false
	}
	after, err := OwnersChangeOf(p.After)
	if err != nil {
		return false
	}
	return asked.Threshold == after.Threshold && asked.ControlThreshold == after.ControlThreshold && slices.EqualFunc(asked.Owners, after.Owners, func(a, b MultisigOwner) bool {
		return a.UserID == b.UserID && a.Weight == b.Weight && (a.Address == b.Address || a.Address == "" && a.UserID != uuid.Nil)
	})
}

// Complete returns a change with what follows from the account: the weight 1 where none was given, the officer of an owner who stays, and the address
// of one whose key is in our key store.
func (c OwnersChange) Complete(a MultisigAccount) OwnersChange {
	owners := make([]MultisigOwner, len(c.Owners))
	for i, o := range c.Owners {
		o = MultisigOwner{Address: o.Address, UserID: o.UserID, Weight: o.Weight, Label: o.Label}
		if o.Weight == 0 {
			o.Weight = 1
		}
		for _, now := range a.Owners {
			switch {
			case now.Held && o.Address == "" && o.UserID == now.UserID:
				o.Address = now.Address
			case o.UserID == uuid.Nil && a.Network.Compared(o.Address) == a.Network.Compared(now.Address):
				o.UserID = now.UserID
			}
		}
		owners[i] = o
	}
	c.Owners = owners
	return c
}

// Check checks a completed change of an account. CodeInvalid lists every field at fault, CodeUnsupported says that the owners of an account of
// the Token program never change.
func (c OwnersChange) Check(a MultisigAccount) error {
	if a.Kind == MultisigSPL {
		return Errorf(CodeUnsupported, "The owners of an account of the Token program on Solana can't be changed. Make a new wallet and move the money there.")
	}
	k := checker{}
	k.rule(len(c.Owners) >= 2 && len(c.Owners) <= a.Kind.MaxOwners(), "/owners", "length", fmt.Sprintf("must have 2 to %d owners", a.Kind.MaxOwners()))
	if len(k.bad) > 0 {
		return Invalid(k.bad...)
	}
	addresses, users, heaviest, sum := map[string]bool{}, map[uuid.UUID]bool{}, 0, 0
	for i, o := range c.Owners {
		at := fmt.Sprintf("/owners/%d", i)
		k.comes(a, o, at)
		address := a.Network.Compared(o.Address)
		k.rule(address == "" || !addresses[address] && address != a.Network.Compared(a.Address), at+"/address", "repeated", "must be another address than those of the other owners and of the account")
		k.rule(o.UserID == uuid.Nil || !users[o.UserID], at+"/user_id", "repeated", "must be another officer than those of the other owners")
		addresses[address], users[o.UserID], heaviest, sum = true, true, max(heaviest, o.Weight), sum+o.Weight
	}
	k.rule(c.Threshold >= 1 && c.Threshold <= sum, "/threshold", "out_of_range", fmt.Sprintf("must be a number from 1 to %d, which the owners can reach together", sum))
	k.rule(c.Threshold < 1 || heaviest < c.Threshold, "/threshold", "out_of_range", "must be more than one owner has alone")
	if a.Kind == MultisigTron {
		k.rule(c.ControlThreshold >= c.Threshold && c.ControlThreshold <= sum, "/control_threshold", "out_of_range", fmt.Sprintf("must be a number from the threshold to %d, which the owners can reach together", sum))
	} else {
		k.rule(c.ControlThreshold == 0, "/control_threshold", "forbidden", "must be left out: only accounts on TRON have one")
	}
	k.rule(len(k.bad) > 0 || !c.same(a), "/owners", "unchanged", "must be others than the account has, or with other weights or thresholds")
	return Invalid(k.bad...)
}

// comes checks one owner.
func (c *checker) comes(a MultisigAccount, o MultisigOwner, at string) {
	now := slices.IndexFunc(a.Owners, func(n MultisigOwner) bool {
		return o.Address != "" && a.Network.Compared(n.Address) == a.Network.Compared(o.Address)
	})
	stays := now >= 0 && a.Owners[now].UserID == o.UserID
	switch {
	case o.Address != "" && o.UserID != uuid.Nil:
		c.rule(stays, at+"/user_id", "mismatch", "must be left out, or be the officer who is agreed as the owner of this address")
	case a.Custody == MultisigProvider:
		c.rule(o.UserID != uuid.Nil, at+"/user_id", "required", "is required: all owners are officers whose keys are in our key store")
	default:
		c.rule(o.Address != "" || o.UserID != uuid.Nil, at+"/address", "required", "is required, or a user_id, for whom a key is made in our key store")
	}
	c.rule(utf8.RuneCountInString(o.Address) <= 128, at+"/address", "length", "must be an address of the network")
	c.rule(a.Network == Tron && o.Weight >= 1 && o.Weight <= MaxMultisigWeight || o.Weight == 1, at+"/weight", "out_of_range",
		fmt.Sprintf("must be a number from 1 to %d on TRON, and left out elsewhere", MaxMultisigWeight))
	c.name(o.Label, at+"/label", 0)
}

// same reports whether the account has these owners and thresholds already.
func (c OwnersChange) same(a MultisigAccount) bool {
	return c.Resolved() && a.Difference(MultisigQuorum{Address: a.Address, Owners: c.Owners, Threshold: c.Threshold, ControlThreshold: c.ControlThreshold}) == ""
}

// SameQuorum reports whether two changes give an account the same owners, weights and thresholds, in whatever order.
func (c OwnersChange) SameQuorum(o OwnersChange) bool {
	sorted := func(owners []MultisigOwner) []MultisigOwner {
		var plain []MultisigOwner
		for _, w := range owners {
			plain = append(plain, MultisigOwner{Address: w.Address, Weight: w.Weight})
		}
		slices.SortFunc(plain, func(a, b MultisigOwner) int { return strings.Compare(a.Address, b.Address) })
		return plain
	}
	return c.Threshold == o.Threshold && max(c.ControlThreshold, c.Threshold) == max(o.ControlThreshold, o.Threshold) && slices.Equal(sorted(c.Owners), sorted(o.Owners))
}

// Fits reports whether the quorum that was read is exactly that of a change whose owners have addresses.
func (c OwnersChange) Fits(a MultisigAccount, q MultisigQuorum) bool {
	a.Owners, a.Threshold, a.ControlThreshold = c.Owners, c.Threshold, c.ControlThreshold
	return c.Resolved() && len(c.Owners) > 0 && a.Difference(q) == ""
}

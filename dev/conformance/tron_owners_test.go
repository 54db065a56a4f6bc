package conformance

import (
	"encoding/hex"
	"os"
	"slices"
	"testing"

	"kivuko/chain"
	"kivuko/chain/chaintest"
)

// tronwebKey is a key of a permission as tronweb shows it, and tronwebPermission the permission.
type tronwebKey struct {
	Address string `json:"address"`
	Weight  uint32 `json:"weight"`
}

type tronwebPermission struct {
	ID         int          `json:"id"`
	Threshold  uint32       `json:"threshold"`
	Keys       []tronwebKey `json:"keys"`
	Operations string       `json:"operations"`
}

// tronwebPermissions are those of an account.
type tronwebPermissions struct {
	Owner   tronwebPermission   `json:"owner"`
	Actives []tronwebPermission `json:"actives"`
	Witness bool                `json:"witness"`
}

// tronwebSigned is what tronweb built or signed.
type tronwebSigned struct {
	ID         string   `json:"id"`
	Raw        string   `json:"raw"`
	Signatures []string `json:"signatures"`
}

const updateContract = "AccountPermissionUpdateContract"

// shown checks that a permission has just these owners and the threshold.
func (h *tronHarness) shown(t *testing.T, name string, p tronwebPermission, want chain.OwnersChange) {
	t.Helper()
	if p.Threshold != want.Threshold || len(p.Keys) != len(want.Owners) {
		t.Errorf("tronweb shows the permission %s as %+v, want %+v", name, p, want)
		return
	}
	for _, o := range want.Owners {
		if !slices.Contains(p.Keys, tronwebKey{tronAddress(t, o.Address).Hex(), o.Weight}) {
			t.Errorf("in the permission %s tronweb shows %+v, and not %+v", name, p.Keys, o)
		}
	}
}

// showsOwners checks that tronweb shows what a change of the owners leaves, and that payments are all that the active permission is for.
func (c *tronCommittee) showsOwners(t *testing.T, want *chain.OwnersChange) {
	t.Helper()
	var is tronwebPermissions
	c.tronweb(t, "permissions", map[string]any{"account": c.account}, &is)
	if len(is.Actives) != 1 || is.Actives[0].ID != 2 || is.Actives[0].Operations != hex.EncodeToString(paymentOperations) || is.Witness {
		t.Fatalf("tronweb shows %+v", is)
	}
	control := want.Control
	if control == nil {
		control = want
	}
	c.shown(t, "owner", is.Owner, *control)
	c.shown(t, "active", is.Actives[0], *want)
}

// byTronweb has tronweb sign a joint transaction for owners, with a permission.
func (c *tronCommittee) byTronweb(t *testing.T, j chain.Joint, kind string, permission int, owners ...chaintest.Account) (all []chain.OwnerSignature) {
	t.Helper()
	var keys []string
	for _, o := range owners {
		keys = append(keys, hexKey(o))
	}
	var theirs tronwebSigned
	c.tronweb(t, "sign", map[string]any{"type": kind, "raw": hex.EncodeToString(j.Body), "keys": keys, "permission": permission}, &theirs)
	if theirs.ID != j.ID || len(theirs.Signatures) != len(owners) {
		t.Fatalf("tronweb signs %+v, the driver prepared %s", theirs, j.ID)
	}
	for i, text := range theirs.Signatures {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		one, err := c.client.Signature(j, raw)
		if err != nil || one.Owner != owners[i].Address {
			t.Fatalf("tronweb's signature of %s is that of %+v, %v", owners[i].Address, one, err)
		}
		all = append(all, one)
	}
	return all
}

// sentByTronweb has tronweb send a joint transaction with signatures, and waits until it is final.
func (c *tronCommittee) sentByTronweb(t *testing.T, j chain.Joint, kind string, signatures []chain.OwnerSignature) {
	t.Helper()
	var texts []string
	for _, s := range signatures {
		texts = append(texts, hex.EncodeToString(s.Signature))
	}
	var sent struct{ Result bool }
	c.tronweb(t, "send", map[string]any{"type": kind, "raw": hex.EncodeToString(j.Body), "signatures": texts}, &sent)
	if !sent.Result {
		t.Fatal("tronweb could not send it")
	}
	c.Mine(t, 1)
	c.ends(t, j)
}

func (c *tronCommittee) prepareOwners(t *testing.T, change *chain.OwnersChange) chain.Joint {
	t.Helper()
	j, err := c.client.PrepareJoint(t.Context(), chain.JointDraft{Account: c.account, Quorum: c.quorum(t), Owners: change})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Changes of the owners with tronweb: of one that we prepare one owner signs with tronweb and one with us, and tronweb sends it and shows the new
// permissions. Of the next one the owners sign with tronweb alone, and we execute it. One that tronweb builds our owners sign, and we execute.
func TestTronOwnersChangeWithTronweb(t *testing.T) {
	t.Parallel()
	if os.Getenv("KIVUKO_TRONWEB") == "" {
		t.Skip("tronweb is run by `make conformance`, which fetches it")
	}
	c := newTronCommittee(t)
	first := &chain.OwnersChange{Owners: weighted(c.people, 2, 1, 1), Threshold: 2, Control: &chain.OwnersChange{Owners: weighted(c.people), Threshold: 3}}
	j := c.prepareOwners(t, first)
	c.sentByTronweb(t, j, updateContract, append(c.byTronweb(t, j, updateContract, 0, c.people[0]), c.sign(t, j, c.people[2])...))
	c.showsOwners(t, first)

	comes := append(c.people[:2:2], c.NewAccount(t))
	second := &chain.OwnersChange{Owners: weighted(comes), Threshold: 2}
	j = c.prepareOwners(t, second)
	c.execute(t, j, c.byTronweb(t, j, updateContract, 0, c.people...))
	c.showsOwners(t, second)

	third := &chain.OwnersChange{Owners: weighted(c.people), Threshold: 2, Control: &chain.OwnersChange{Owners: weighted(c.people), Threshold: 3}}
	j = c.builtByTronweb(t, third)
	c.execute(t, j, c.sign(t, j, comes[1:]...))
	c.showsOwners(t, third)
}

// builtByTronweb is a change of the owners that tronweb builds, as a joint transaction.
func (c *tronCommittee) builtByTronweb(t *testing.T, change *chain.OwnersChange) chain.Joint {
	t.Helper()
	keys := func(q chain.OwnersChange) (all []map[string]any) {
		for _, o := range q.Owners {
			all = append(all, map[string]any{"address": tronAddress(t, o.Address).Hex(), "weight": o.Weight})
		}
		return all
	}
	var theirs tronwebSigned
	c.tronweb(t, "update", map[string]any{
		"from":  c.account,
		"owner": map[string]any{"type": 0, "id": 0, "permission_name": "owner", "threshold": change.Control.Threshold, "keys": keys(*change.Control)},
		"actives": []any{map[string]any{
			"type": 2, "id": 2, "permission_name": "payments", "threshold": change.Threshold, "keys": keys(*change), "operations": hex.EncodeToString(paymentOperations),
		}},
	}, &theirs)
	body, err := hex.DecodeString(theirs.Raw)
	if err != nil {
		t.Fatal(err)
	}
	j := c.taken(t, transactionOf(t, body).GetRawData(), chain.JointDraft{Account: c.account, Quorum: c.quorum(t), Owners: change})
	if j.ID != theirs.ID {
		t.Errorf("tronweb's id is %s, ours %s", theirs.ID, j.ID)
	}
	return j
}

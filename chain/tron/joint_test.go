package tron

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// people are keys, ordered by address.
func people(t testing.TB, c *Client, n int) (keys []testKey, owners []chain.Owner) {
	t.Helper()
	for i := range n {
		keys = append(keys, testKey{bytes.Repeat([]byte{byte(i + 1)}, 32)})
	}
	address := func(k testKey) string {
		a, err := c.Address(k.PublicKey())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	slices.SortFunc(keys, func(a, b testKey) int { return strings.Compare(address(a), address(b)) })
	for _, k := range keys {
		owners = append(owners, chain.Owner{Address: address(k), Weight: 1})
	}
	return keys, owners
}

// twoOf is a quorum of two.
func twoOf(owners []chain.Owner) chain.Quorum {
	return chain.Quorum{Owners: owners, Threshold: 2, Permission: 2}
}

// joint builds a joint transaction without a network call.
func joint(t testing.TB, c *Client, d chain.JointDraft) chain.Joint {
	t.Helper()
	p, err := c.plan(d)
	if err != nil {
		t.Fatal(err)
	}
	block := chain.Block{Number: 1, ID: strings.Repeat("ab", hashLength), Time: stubNow}
	raw, err := c.envelope(block, block, jointLife)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.set(raw, p); err != nil {
		t.Fatal(err)
	}
	return jointOf(t, d, raw)
}

func jointOf(t testing.TB, d chain.JointDraft, raw *core.TransactionRaw) chain.Joint {
	t.Helper()
	u, err := unsigned(chain.Transfer{}, raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Joint{JointDraft: d, Digest: u.Payload, Body: u.Body, ID: hex.EncodeToString(u.Payload), ExpiresAt: u.ExpiresAt, RefBlock: u.RefBlock}
}

// payment is a joint transaction that pays USDT, of 2 of 3 owners.
func payment(t testing.TB, c *Client) (chain.Joint, []testKey) {
	t.Helper()
	keys, owners := people(t, c, 3)
	return joint(t, c, chain.JointDraft{
		Account: alice, Transfer: &chain.Transfer{From: alice, To: bob, Amount: money.Must(money.USDT, "5")}, Quorum: twoOf(owners),
	}), keys
}

func signs(t testing.TB, c *Client, j chain.Joint, keys ...testKey) (all []chain.OwnerSignature) {
	t.Helper()
	for _, k := range keys {
		made, err := k.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Signature(j, made)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// The published transactions of several signers are rebuilt from their parts, their signatures are of their owners, and the
// executed bytes are theirs.
func TestJointVectors(t *testing.T) {
	c := offline(t)
	seen := 0
	for _, v := range vectors(t, "transaction") {
		if v.PermissionID == 0 || len(v.Signers) == 0 {
			continue
		}
		seen++
		var transfer struct {
			To     string `json:"to_hex"`
			Amount int64
		}
		if err := json.Unmarshal(v.Transfer, &transfer); err != nil {
			t.Fatal(err)
		}
		from, _ := fromFull(unhex(t, v.OwnerHex))
		to, _ := fromFull(unhex(t, transfer.To))
		// The permission is published with one of the transactions, the other is under the same.
		owners := []chain.Owner{{Address: "TKwhcDup8L2PH5r6hxp5CQvQzZqJLmKvZP", Weight: 1}, {Address: "TNhXo1GbRNCuorvYu5JFWN3m2NYr9QQpVR", Weight: 1}}
		raw := &core.TransactionRaw{}
		if err := proto.Unmarshal(unhex(t, v.RawDataHex), raw); err != nil {
			t.Fatal(err)
		}
		q := twoOf(owners)
		q.Permission = v.PermissionID
		j := jointOf(t, chain.JointDraft{
			Account: from.String(), Transfer: &chain.Transfer{From: from.String(), To: to.String(), Amount: sunOf(transfer.Amount)}, Quorum: q,
		}, raw)
		if err := c.CheckJoint(j); err != nil || j.ID != v.TxID {
			t.Errorf("%s: %s, %v", v.ID, j.ID, err)
		}
		var all []chain.OwnerSignature
		for i, s := range v.Signatures {
			got, err := c.Signature(j, unhex(t, s))
			if err != nil || got.Owner != v.Signers[i] {
				t.Fatalf("%s: %+v, %v", v.ID, got, err)
			}
			all = append(all, got)
		}
		signed, err := c.SignExecution(chain.Execution{Unsigned: chain.Unsigned{Transfer: *j.Transfer, Body: j.Body, Payload: j.Digest, ExpiresAt: j.ExpiresAt, RefBlock: j.RefBlock}, Joint: j, Signatures: all})
		if enough := len(all) == 2; (err == nil) != enough || enough && signed.TxID != v.TxID {
			t.Errorf("%s: executed with %d signatures as %s, %v", v.ID, len(all), signed.TxID, err)
		}
	}
	if seen < 2 {
		t.Errorf("%d vectors of several signers", seen)
	}
}

func TestSignatureForms(t *testing.T) {
	c := offline(t)
	j, keys := payment(t, c)
	good := signs(t, c, j, keys[0])[0]
	edit := func(do func([]byte)) []byte {
		s := bytes.Clone(good.Signature)
		do(s)
		return s
	}
	mirror := func(s []byte) { // the other signature that is valid for the same digest and key
		order := crypto.S256().Params().N
		new(big.Int).Sub(order, new(big.Int).SetBytes(s[32:64])).FillBytes(s[32:64])
		s[64] ^= 1
	}
	for name, s := range map[string][]byte{
		"as it is": good.Signature, "v of a wallet": edit(func(s []byte) { s[64] += 27 }),
		"a high s": edit(mirror), "a high s and v of a wallet": edit(func(s []byte) { mirror(s); s[64] += 27 }),
	} {
		if got, err := c.Signature(j, s); err != nil || got.Owner != good.Owner || !bytes.Equal(got.Signature, good.Signature) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	stranger, err := testKey{bytes.Repeat([]byte{9}, 32)}.Sign(j.Digest)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := keys[0].Sign(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]struct {
		signature []byte
		text      string
	}{
		"nothing":                           {nil, "0 bytes"},
		"too short":                         {good.Signature[:64], "64 bytes"},
		"too long":                          {append(bytes.Clone(good.Signature), 0), "66 bytes"},
		"an impossible v":                   {edit(func(s []byte) { s[64] = 2 }), "impossible"},
		"an impossible v of a wallet":       {edit(func(s []byte) { s[64] = 29 }), "impossible"},
		"r is zero":                         {edit(func(s []byte) { clear(s[:32]) }), "impossible"},
		"s is zero":                         {edit(func(s []byte) { clear(s[32:64]) }), "impossible"},
		"s is the order":                    {edit(func(s []byte) { crypto.S256().Params().N.FillBytes(s[32:64]) }), "impossible"},
		"a stranger's":                      {stranger, "no owner"},
		"an owner's of another transaction": {elsewhere, "no owner"},
		"another recovery value":            {edit(func(s []byte) { s[64] ^= 1 }), "no owner"},
	} {
		if got, err := c.Signature(j, q.signature); chain.ReasonOf(err) != chain.ReasonForeign || !strings.Contains(err.Error(), q.text) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A joint transaction says what its parts say, to the last byte.
func TestCheckJoint(t *testing.T) {
	c := offline(t)
	j, keys := payment(t, c)
	if err := c.CheckJoint(j); err != nil {
		t.Fatal(err)
	}
	_, owners := people(t, c, 4)
	change := joint(t, c, chain.JointDraft{Account: alice, Owners: &chain.OwnersChange{Owners: owners, Threshold: 3}, Quorum: j.Quorum})
	if err := c.CheckJoint(change); err != nil {
		t.Fatal(err)
	}
	bytesEdit := func(do func(*core.TransactionRaw)) func(*chain.Joint) {
		return func(j *chain.Joint) {
			raw := &core.TransactionRaw{}
			if err := proto.Unmarshal(j.Body, raw); err != nil {
				t.Fatal(err)
			}
			do(raw)
			*j = jointOf(t, j.JointDraft, raw)
		}
	}
	for name, edit := range map[string]func(*chain.Joint){
		"another amount":                  func(j *chain.Joint) { j.Transfer.Amount = money.Must(money.USDT, "5.000001") },
		"another recipient":               func(j *chain.Joint) { j.Transfer.To = usdcLike },
		"another account":                 func(j *chain.Joint) { j.Account, j.Transfer.From = bob, bob },
		"another token":                   func(j *chain.Joint) { j.Transfer.Amount = money.Must(money.TRX, "5") },
		"another permission in the parts": func(j *chain.Joint) { j.Quorum.Permission = 3 },
		"other owners, too few":           func(j *chain.Joint) { j.Quorum.Owners = j.Quorum.Owners[:1] },
		"another digest":                  func(j *chain.Joint) { j.Digest = bytes.Repeat([]byte{1}, 32) },
		"a short digest":                  func(j *chain.Joint) { j.Digest = j.Digest[:31] },
		"another id":                      func(j *chain.Joint) { j.ID = strings.Repeat("0", 64) },
		"another expiry":                  func(j *chain.Joint) { j.ExpiresAt = j.ExpiresAt.Add(time.Millisecond) },
		"another block":                   func(j *chain.Joint) { j.RefBlock = "00" },
		"no bytes":                        func(j *chain.Joint) { j.Body = nil },
		"other bytes":                     func(j *chain.Joint) { j.Body = append(bytes.Clone(j.Body), 0) },
		"a memo":                          bytesEdit(func(r *core.TransactionRaw) { r.Data = []byte("x") }),
		"an authority":                    bytesEdit(func(r *core.TransactionRaw) { r.Auths = []*core.Authority{{PermissionName: []byte("x")}} }),
		"a script":                        bytesEdit(func(r *core.TransactionRaw) { r.Scripts = []byte("x") }),
		"a second contract":               bytesEdit(func(r *core.TransactionRaw) { r.Contract = append(r.Contract, r.Contract[0]) }),
		"another permission in the bytes": bytesEdit(func(r *core.TransactionRaw) { r.Contract[0].PermissionId = 0 }),
		"a fee that is not shown":         bytesEdit(func(r *core.TransactionRaw) { r.FeeLimit = 5_000_000 }),
		"a fee without bounds":            bytesEdit(func(r *core.TransactionRaw) { r.FeeLimit = 1e12 }),
	} {
		changed := j
		pays := *j.Transfer
		changed.Transfer = &pays
		edit(&changed)
		if err := c.CheckJoint(changed); err == nil {
			t.Errorf("%s: taken", name)
		}
		made, err := keys[0].Sign(changed.Digest)
		if err != nil {
			continue // a digest of another length
		}
		if _, err := c.Signature(changed, made); err == nil {
			t.Errorf("%s: a signature is taken", name)
		}
	}
	dear := j
	bytesEdit(func(r *core.TransactionRaw) { r.FeeLimit = 5_000_000 })(&dear)
	if dear.FeeLimit = money.Must(money.TRX, "5.4"); c.CheckJoint(dear) != nil {
		t.Errorf("a fee limit that is shown: %v", c.CheckJoint(dear))
	}
	changed := change
	changed.Owners = &chain.OwnersChange{Owners: owners, Threshold: 2}
	if err := c.CheckJoint(changed); err == nil {
		t.Error("a change to another threshold is taken")
	}
}

// usdcLike is an address that is none of the others.
const usdcLike = "TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8"

func TestDraftsThatAreRefused(t *testing.T) {
	c := offline(t)
	_, owners := people(t, c, 6)
	pays := &chain.Transfer{From: alice, To: bob, Amount: money.Must(money.USDT, "5")}
	change := func(threshold uint32, owners ...chain.Owner) *chain.OwnersChange {
		return &chain.OwnersChange{Owners: owners, Threshold: threshold}
	}
	quorum := twoOf(owners[:3])
	for name, q := range map[string]struct {
		draft  chain.JointDraft
		reason chain.Reason
		text   string
	}{
		"a cancellation":       {chain.JointDraft{Account: alice, Quorum: quorum}, chain.ReasonUnsupported, "can't be cancelled"},
		"both":                 {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, Owners: change(2, owners[:3]...)}, chain.ReasonUnsupported, "either"},
		"a fee payer":          {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, FeePayer: bob}, chain.ReasonUnsupported, "fee payer"},
		"a number":             {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, Sequence: 1}, chain.ReasonUnsupported, "numbers"},
		"named signers":        {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, Signers: []string{bob}}, chain.ReasonUnsupported, "any owners"},
		"a nonce account":      {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, NonceAccount: bob}, chain.ReasonUnsupported, "nonce"},
		"a bad account":        {chain.JointDraft{Account: "x", Quorum: quorum, Transfer: pays}, chain.ReasonAddress, "account"},
		"another's money":      {chain.JointDraft{Account: bob, Quorum: quorum, Transfer: pays}, chain.ReasonAddress, "sender"},
		"a short life":         {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, Life: time.Second}, chain.ReasonUnsupported, "lives"},
		"more than a day":      {chain.JointDraft{Account: alice, Quorum: quorum, Transfer: pays, Life: 24*time.Hour + 1}, chain.ReasonUnsupported, "lives"},
		"the owner permission": {chain.JointDraft{Account: alice, Quorum: chain.Quorum{Owners: owners[:3], Threshold: 2}, Transfer: pays}, chain.ReasonForeign, "permission 0"},
		"no owners":            {chain.JointDraft{Account: alice, Quorum: chain.Quorum{Permission: 2}, Transfer: pays}, chain.ReasonForeign, "there are 0"},
		"one key alone":        {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(1, owners[0])}, chain.ReasonUnsupported, "one key alone"},
		"six owners":           {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(2, owners...)}, chain.ReasonUnsupported, "1 to 5"},
		"one twice":            {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(2, owners[0], owners[1], owners[0])}, chain.ReasonUnsupported, "named twice"},
		"a threshold too high": {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(3, owners[:2]...)}, chain.ReasonUnsupported, "sum up to 2"},
		"no threshold":         {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(0, owners[:2]...)}, chain.ReasonUnsupported, "threshold is 0"},
		"no weight":            {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(1, owners[0], chain.Owner{Address: owners[1].Address})}, chain.ReasonUnsupported, "no weight"},
		"an owner without key": {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(1, owners[0], chain.Owner{Address: accountID{}.String(), Weight: 1})}, chain.ReasonUnsupported, "no key"},
		"a bad owner":          {chain.JointDraft{Account: alice, Quorum: quorum, Owners: change(1, owners[0], chain.Owner{Address: "x", Weight: 1})}, chain.ReasonUnsupported, `"x"`},
		"weaker control": {chain.JointDraft{Account: alice, Quorum: quorum, Owners: &chain.OwnersChange{
			Owners: owners[:3], Threshold: 2, Control: change(1, owners[:3]...),
		}}, chain.ReasonUnsupported, "less than the 2"},
		"control of one heavy key": {chain.JointDraft{Account: alice, Quorum: quorum, Owners: &chain.OwnersChange{
			Owners: owners[:3], Threshold: 2, Control: change(5, chain.Owner{Address: owners[0].Address, Weight: 9}),
		}}, chain.ReasonUnsupported, "need 1 keys"},
	} {
		_, err := c.PrepareJoint(t.Context(), q.draft)
		if chain.ReasonOf(err) != q.reason || !strings.Contains(err.Error(), q.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPaymentsOpenNoAccount(t *testing.T) {
	d := chain.Draft{Transfer: chain.Transfer{From: alice, To: bob, Amount: money.Must(money.TRX, "1")}, Owners: &chain.OwnersChange{}}
	if _, err := offline(t).Prepare(t.Context(), d); chain.ReasonOf(err) != chain.ReasonUnsupported {
		t.Errorf("%v", err)
	}
}

// A change has one encoding, whatever the order in which the owners are given.
func TestOwnersAreOrdered(t *testing.T) {
	c := offline(t)
	_, owners := people(t, c, 3)
	build := func(order ...int) []byte {
		var list []chain.Owner
		for _, i := range order {
			list = append(list, owners[i])
		}
		raw := &core.TransactionRaw{}
		p, err := c.plan(chain.JointDraft{Account: alice, Owners: &chain.OwnersChange{
			Owners: list, Threshold: 2, Control: &chain.OwnersChange{Owners: list, Threshold: 3},
		}, Quorum: chain.Quorum{Owners: []chain.Owner{{Address: alice, Weight: 1}}, Threshold: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.set(raw, p); err != nil {
			t.Fatal(err)
		}
		body, err := deterministic.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		m := &core.AccountPermissionUpdateContract{}
		if err := raw.GetContract()[0].GetParameter().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		if m.GetOwner().GetThreshold() != 3 || len(m.GetActives()) != 1 || m.GetActives()[0].GetThreshold() != 2 || raw.GetContract()[0].GetPermissionId() != 0 ||
			hex.EncodeToString(m.GetActives()[0].GetOperations()) != "02000080"+strings.Repeat("00", 28) {
			t.Errorf("%v", m)
		}
		return body
	}
	first := build(0, 1, 2)
	if !bytes.Equal(first, build(2, 0, 1)) || !bytes.Equal(first, build(1, 2, 0)) {
		t.Error("the same owners in another order are other bytes")
	}
}

func TestEnoughSignatures(t *testing.T) {
	c := offline(t)
	j, keys := payment(t, c)
	all := signs(t, c, j, keys...)
	weights := func(w ...uint32) chain.Quorum {
		q := twoOf(slices.Clone(j.Quorum.Owners))
		for i := range w {
			q.Owners[i].Weight = w[i]
		}
		return q
	}
	pick := func(which ...int) (some []chain.OwnerSignature) {
		for _, i := range which {
			some = append(some, all[i])
		}
		return some
	}
	raised := weights(1, 1, 1)
	raised.Threshold = 3
	left := weights(1, 1)
	left.Owners = left.Owners[:2]
	renumbered := weights(1, 1, 1)
	renumbered.Permission = 3
	for name, q := range map[string]struct {
		then, now chain.Quorum
		signed    []chain.OwnerSignature
		want      []int // nil: refused
		text      string
	}{
		"two of three":                   {weights(1, 1, 1), weights(1, 1, 1), pick(2, 0), []int{0, 2}, ""},
		"one too many":                   {weights(1, 1, 1), weights(1, 1, 1), pick(2, 1, 0), []int{0, 1}, ""},
		"one":                            {weights(1, 1, 1), weights(1, 1, 1), pick(1), nil, "weight of 1"},
		"none":                           {weights(1, 1, 1), weights(1, 1, 1), nil, nil, "weight of 0"},
		"the heavy one alone":            {weights(1, 2, 1), weights(1, 2, 1), pick(0, 1, 2), []int{1}, ""},
		"the light ones":                 {weights(1, 2, 1), weights(1, 2, 1), pick(2, 0), []int{0, 2}, ""},
		"a threshold that was raised":    {weights(1, 1, 1), raised, pick(0, 1), nil, "3 is wanted now"},
		"enough for the raised one":      {weights(1, 1, 1), raised, pick(0, 1, 2), []int{0, 1, 2}, ""},
		"a threshold that was lowered":   {raised, weights(1, 1, 1), pick(0, 1), nil, "3 when it was approved"},
		"an owner who is none any more":  {weights(1, 1, 1), left, pick(0, 1, 2), nil, "no owner any more"},
		"a permission of another number": {weights(1, 1, 1), renumbered, pick(0, 1), nil, "permission 3"},
	} {
		p := plan{in: intent{permission: 2}, pays: true, signers: q.then}
		got, err := p.enough(q.now, q.signed)
		if q.want == nil {
			if chain.ReasonOf(err) != chain.ReasonForeign || !strings.Contains(err.Error(), q.text) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		if want := pick(q.want...); err != nil || !slices.EqualFunc(got, want, func(a, b chain.OwnerSignature) bool { return a.Owner == b.Owner }) {
			t.Errorf("%s: %d signatures, %v", name, len(got), err)
		}
	}
}

// The owners change by those of the owner permission, now and when it was approved, whoever makes payments.
func TestChangesAreSignedByControl(t *testing.T) {
	c := offline(t)
	keys, owners := people(t, c, 4)
	q := twoOf(owners[:2])
	q.Control = &chain.Quorum{Owners: owners[1:], Threshold: 2}
	j := joint(t, c, chain.JointDraft{Account: alice, Owners: &chain.OwnersChange{Owners: owners[:2], Threshold: 2}, Quorum: q})
	all := signs(t, c, j, keys[1:]...)
	made, err := keys[0].Sign(j.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Signature(j, made); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("an owner for payments signs a change: %v", err)
	}
	p, _, err := c.checked(j)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.enough(q, all[:2]); err != nil || len(got) != 2 {
		t.Errorf("%d signatures, %v", len(got), err)
	}
	raised := q
	raised.Control = &chain.Quorum{Owners: owners[1:], Threshold: 3}
	if _, err := p.enough(raised, all[:2]); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("control that was raised: %v", err)
	}
	if got, err := p.enough(raised, all); err != nil || len(got) != 3 {
		t.Errorf("%d signatures, %v", len(got), err)
	}
}

func TestSignExecutionTakesTheOwnersAlone(t *testing.T) {
	c := offline(t)
	j, keys := payment(t, c)
	all := signs(t, c, j, keys[:2]...)
	good := chain.Execution{Unsigned: chain.Unsigned{Transfer: *j.Transfer, Body: j.Body, Payload: j.Digest, ExpiresAt: j.ExpiresAt, RefBlock: j.RefBlock}, Joint: j, Signatures: all}
	signed, err := c.SignExecution(good)
	if err != nil || signed.TxID != j.ID {
		t.Fatalf("%s, %v", signed.TxID, err)
	}
	tx, err := decodeSigned(signed.Raw)
	if err != nil || len(tx.GetSignature()) != 2 || sha256.Sum256(j.Body) != [32]byte(j.Digest) {
		t.Fatalf("%v, %v", tx, err)
	}
	again, err := c.SignExecution(good)
	if err != nil || !bytes.Equal(again.Raw, signed.Raw) {
		t.Errorf("made twice, it has other bytes: %v", err)
	}
	if _, err := c.SignExecution(good, keys[0]); err == nil {
		t.Error("a key was taken")
	}
	other, _ := payment(t, c)
	for name, edit := range map[string]func(*chain.Execution){
		"too few signatures":        func(x *chain.Execution) { x.Signatures = x.Signatures[:1] },
		"one of them twice":         func(x *chain.Execution) { x.Signatures = []chain.OwnerSignature{all[0], all[0]} },
		"one under another name":    func(x *chain.Execution) { x.Signatures[0].Owner = all[1].Owner },
		"other bytes":               func(x *chain.Execution) { x.Body = other.Body },
		"another's bytes and hash":  func(x *chain.Execution) { x.Body, x.Payload = other.Body, other.Digest },
		"another payload":           func(x *chain.Execution) { x.Payload = other.Digest },
		"another payment":           func(x *chain.Execution) { x.Transfer.To = x.Transfer.From },
		"another reference block":   func(x *chain.Execution) { x.RefBlock += "00" },
		"another expiry":            func(x *chain.Execution) { x.ExpiresAt = x.ExpiresAt.Add(time.Hour) },
		"another joint transaction": func(x *chain.Execution) { x.Joint = other },
		"another amount": func(x *chain.Execution) {
			x.Joint.Transfer = &chain.Transfer{From: alice, To: bob, Amount: money.Must(money.USDT, "6")}
		},
	} {
		x := good
		x.Signatures = slices.Clone(all)
		edit(&x)
		if signed, err := c.SignExecution(x); err == nil {
			t.Errorf("%s: made %s", name, signed.TxID)
		}
	}
}

func TestJointCosts(t *testing.T) {
	p := prices{multiSign: 1_000_000}
	if p.signing(1) != 0 || p.signing(2) != 1_000_000 || p.signing(5) != 1_000_000 {
		t.Errorf("%d, %d, %d", p.signing(1), p.signing(2), p.signing(5))
	}
	c := offline(t)
	j, keys := payment(t, c)
	_, raw, err := c.checked(j)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := finish(chain.Unsigned{Payload: j.Digest}, raw, signs(t, c, j, keys[0])[0].Signature, signs(t, c, j, keys[1])[0].Signature)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bandwidthOf(raw, 2), int64(len(signed.Raw)+resultAllowance); got != want {
		t.Errorf("two signatures need %d bytes, want %d", got, want)
	}
	price := prices{energy: 100}
	for _, q := range []struct {
		energy, has, want int64
		reason            chain.Reason
	}{
		{64_285, 0, 8_999_900, ""}, {64_285, 6_428_500, 6_428_500, ""}, {64_286, 6_428_500, 0, chain.ReasonFeeTooHigh}, {10, 9_000_000, 9_000_000, ""},
	} {
		if got, err := c.feeLimit(price, q.energy, q.has); got != q.want || chain.ReasonOf(err) != q.reason {
			t.Errorf("%+v: %d, %v", q, got, err)
		}
	}
	weighted := chain.Quorum{Owners: []chain.Owner{{Weight: 2}, {Weight: 1}, {Weight: 1}}, Threshold: 2}
	if fewest(weighted) != 1 || most(weighted) != 2 {
		t.Errorf("2+1+1 needs %d to %d signatures", fewest(weighted), most(weighted))
	}
}

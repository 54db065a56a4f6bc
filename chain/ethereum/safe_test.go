package ethereum

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// safeAt is the account of these tests.
var safeAt = common.HexToAddress("0x5afe000000000000000000000000000000005afE")

// proposal is a payment out of safeAt with two of three owners, as PrepareJoint makes it.
func proposal(t *testing.T, c *Client, amount money.Amount) (chain.Joint, []testKey) {
	t.Helper()
	keys := []testKey{newKey(t), newKey(t), newKey(t)}
	d := chain.JointDraft{
		Account: safeAt.Hex(), Sequence: 7, Quorum: quorumOf(2, keys...),
		Transfer: &chain.Transfer{From: safeAt.Hex(), To: bob.Hex(), Amount: amount},
	}
	return jointOf(t, c, d), keys
}

func jointOf(t *testing.T, c *Client, d chain.JointDraft) chain.Joint {
	t.Helper()
	tx, err := c.jointTx(safeAt, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.joint(safeAt, d, tx)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func quorumOf(threshold uint32, keys ...testKey) chain.Quorum {
	s := safeState{threshold: threshold}
	for _, k := range keys {
		s.owners = append(s.owners, k.address())
	}
	return s.quorum()
}

func sign(t *testing.T, k testKey, digest []byte) []byte {
	t.Helper()
	signature, err := k.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func TestSafeSignatures(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t))
	j, keys := proposal(t, c, money.Must(money.USDT, "5"))
	with := func(signature []byte, v byte) []byte { return append(bytes.Clone(signature[:64]), v) }
	typed, message := sign(t, keys[0], j.Digest), sign(t, keys[0], accounts.TextHash(j.Digest))
	owner := keys[0].address().Hex()
	for what, given := range map[string]struct {
		signature []byte
		canonical byte
	}{
		"of our key store":  {typed, 27 + typed[64]},
		"of typed data":     {with(typed, 27+typed[64]), 27 + typed[64]},
		"of a message":      {with(message, 31+message[64]), 31 + message[64]},
		"in canonical form": {with(typed, 27+typed[64]), 27 + typed[64]},
	} {
		got, err := c.Signature(j, given.signature)
		if err != nil || got.Owner != owner || !bytes.Equal(got.Signature, with(given.signature, given.canonical)) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(typed[32:64]))
	high := append(append(bytes.Clone(typed[:32]), common.BigToHash(s).Bytes()...), 28-typed[64])
	padded := append(common.LeftPadBytes(keys[0].address().Bytes(), 32), common.LeftPadBytes([]byte{65}, 32)...)
	for _, bad := range map[string]struct {
		signature []byte
		says      string
	}{
		"a high s":                            {high, "high half"},
		"a contract's signature":              {append(bytes.Clone(padded), 0), "contract's signature"},
		"a contract's signature with content": {append(append(bytes.Clone(padded), 0), make([]byte, 64)...), "129 bytes"},
		"an approval on the chain":            {append(bytes.Clone(padded), 1), "approval on the chain"},
		"an unknown kind":                     {with(typed, 29), "the last byte"},
		"another kind":                        {with(typed, 31+typed[64]), "no owner"},
		"a stranger's":                        {sign(t, newKey(t), j.Digest), "no owner"},
		"of another digest":                   {sign(t, keys[0], crypto.Keccak256(nil)), "no owner"},
		"nothing":                             {nil, "0 bytes"},
	} {
		_, err := c.Signature(j, bad.signature)
		wantReason(t, err, chain.ReasonForeign, bad.says)
	}
	j.Digest = crypto.Keccak256(nil)
	if _, err := c.Signature(j, sign(t, keys[0], j.Digest)); err == nil {
		t.Error("a signature of a joint transaction with another digest was accepted")
	}
}

func TestSignaturesAreJoinedByOwner(t *testing.T) {
	t.Parallel()
	low, high := chain.OwnerSignature{Owner: "0x0F00000000000000000000000000000000000000", Signature: []byte{1}}, chain.OwnerSignature{Owner: "0xa000000000000000000000000000000000000000", Signature: []byte{2}}
	if got := joined([]chain.OwnerSignature{high, low}); !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("joined in the order %v", got)
	}
}

// TestEnoughSignatures: the contract would refuse these too; here the error says why.
func TestEnoughSignatures(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t))
	j, keys := proposal(t, c, money.Must(money.USDT, "5"))
	var all []chain.OwnerSignature
	for _, k := range keys {
		one, err := c.Signature(j, sign(t, k, j.Digest))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := c.verified(j, all); err != nil {
		t.Error(err)
	}
	wantReason(t, c.verified(j, []chain.OwnerSignature{all[0], all[1], all[0]}), chain.ReasonForeign, "signed twice")
	wantReason(t, c.verified(j, []chain.OwnerSignature{{Owner: all[1].Owner, Signature: all[0].Signature}}), chain.ReasonForeign, "under the name")
	now := safeState{owners: []common.Address{keys[0].address(), keys[2].address(), bob}, threshold: 2, nonce: 7}
	got, err := now.accepted(safeAt, 7, all)
	if err != nil || len(got) != 2 || slices.ContainsFunc(got, func(s chain.OwnerSignature) bool { return s.Owner == all[1].Owner }) {
		t.Errorf("of the signatures of one former and two present owners, %+v are used: %v", got, err)
	}
	_, err = now.accepted(safeAt, 7, all[:2])
	wantReason(t, err, chain.ReasonForeign, "1 of 2 are of present owners")
	_, err = now.accepted(safeAt, 8, all)
	wantReason(t, err, chain.ReasonReverts, "waits")
	_, err = now.accepted(safeAt, 6, all)
	wantReason(t, err, chain.ReasonForeign, "is used")
}

// TestTypedData checks what an owner's tool gets.
func TestTypedData(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t))
	j, _ := proposal(t, c, money.Must(money.USDT, "5"))
	var typed struct {
		PrimaryType string
		Domain      map[string]string
		Message     map[string]string
		Types       map[string][]map[string]string
	}
	if err := json.Unmarshal(j.Body, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.PrimaryType != "SafeTx" || len(typed.Types["SafeTx"]) != 10 || len(typed.Types["EIP712Domain"]) != 2 {
		t.Errorf("%s", j.Body)
	}
	want := map[string]string{"chainId": hexutil.EncodeUint64(stubChain), "verifyingContract": safeAt.Hex()}
	if fmt.Sprint(typed.Domain) != fmt.Sprint(want) { // an empty name would make another domain in some tools
		t.Errorf("the domain is %v, want %v", typed.Domain, want)
	}
	none := common.Address{}.Hex()
	want = map[string]string{
		"to": usdtContract.Hex(), "value": "0", "data": hexutil.Encode(transferCall(bob, money.Must(money.USDT, "5"))), "operation": "0",
		"safeTxGas": "0", "baseGas": "0", "gasPrice": "0", "gasToken": none, "refundReceiver": none, "nonce": "7",
	}
	if fmt.Sprint(typed.Message) != fmt.Sprint(want) {
		t.Errorf("the message is %v, want %v", typed.Message, want)
	}
}

func TestCheckJointRefuses(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t))
	good, keys := proposal(t, c, money.Must(money.ETH, "1"))
	if err := c.CheckJoint(good); err != nil {
		t.Fatal(err)
	}
	hostile := func(edit func(*safeTx)) func(*chain.Joint) {
		return func(j *chain.Joint) {
			tx, err := c.jointTx(safeAt, j.JointDraft, nil)
			if err != nil {
				t.Fatal(err)
			}
			edit(&tx)
			*j, err = c.joint(safeAt, j.JointDraft, tx)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, edit := range map[string]func(*chain.Joint){
		"a delegatecall":      hostile(func(t *safeTx) { t.operation = operationDelegateCall }),
		"a gas amount":        hostile(func(t *safeTx) { t.safeTxGas = big.NewInt(1) }),
		"a refund":            hostile(func(t *safeTx) { t.gasPrice = big.NewInt(1) }),
		"a base fee":          hostile(func(t *safeTx) { t.baseGas = big.NewInt(1) }),
		"a token for refunds": hostile(func(t *safeTx) { t.gasToken = usdcContract }),
		"a refund's receiver": hostile(func(t *safeTx) { t.refundReceiver = alice }),
		"additional calldata": hostile(func(t *safeTx) { t.data = []byte{1} }),
		"another chain": func(j *chain.Joint) {
			body, hash, err := safeCall(bob, big.NewInt(1e18), nil, 7).encode(big.NewInt(1), safeAt)
			if err != nil {
				t.Fatal(err)
			}
			j.Body, j.Digest, j.ID = body, hash.Bytes(), hash.Hex()
		},
		"bytes of another":       func(j *chain.Joint) { j.Body = append(bytes.Clone(j.Body), ' ') },
		"an expiry":              func(j *chain.Joint) { j.ExpiresAt = j.ExpiresAt.AddDate(1, 0, 0) },
		"a fee of the account":   func(j *chain.Joint) { j.FeeLimit = money.Must(money.ETH, "1") },
		"a permission":           func(j *chain.Joint) { j.Quorum.Permission = 2 },
		"a life":                 func(j *chain.Joint) { j.Life = 1 },
		"two purposes":           func(j *chain.Joint) { j.Owners = &chain.OwnersChange{Owners: j.Quorum.Owners, Threshold: 1} },
		"an owner twice":         func(j *chain.Joint) { j.Quorum.Owners = append(j.Quorum.Owners, j.Quorum.Owners[0]) },
		"an owner who counts 2":  func(j *chain.Joint) { j.Quorum.Owners[0].Weight = 2 },
		"the account as owner":   func(j *chain.Joint) { j.Quorum.Owners[0].Address = safeAt.Hex() },
		"a threshold of nothing": func(j *chain.Joint) { j.Quorum.Threshold = 0 },
		"a threshold above all":  func(j *chain.Joint) { j.Quorum.Threshold = 4 },
		"an address in one case": func(j *chain.Joint) {
			j.Account, j.Transfer.From = strings.ToLower(j.Account), strings.ToLower(j.Account)
		},
	} {
		j := good
		transfer := *good.Transfer
		j.Transfer, j.Quorum = &transfer, quorumOf(2, keys...)
		edit(&j)
		if err := c.CheckJoint(j); err == nil {
			t.Errorf("%s: it passed", what)
		}
	}
}

// ownersOfContract is OwnerManager's list as the contract keeps it, with its own rules.
type ownersOfContract struct {
	next      map[common.Address]common.Address
	count     int
	threshold uint32
}

func (o *ownersOfContract) list() []common.Address {
	var all []common.Address
	for a := o.next[sentinel]; a != sentinel; a = o.next[a] {
		all = append(all, a)
	}
	return all
}

func (o *ownersOfContract) change(threshold uint32) error {
	if threshold < 1 || int(threshold) > o.count {
		return fmt.Errorf("GS201: threshold %d of %d", threshold, o.count)
	}
	o.threshold = threshold
	return nil
}

// apply carries out one call.
func (o *ownersOfContract) apply(data []byte) error {
	argument := func(i int) common.Address { return common.BytesToAddress(data[4+32*i : 36+32*i]) }
	number := func(i int) uint32 { return uint32(new(big.Int).SetBytes(data[4+32*i : 36+32*i]).Uint64()) }
	none := common.Address{}
	switch {
	case bytes.HasPrefix(data, selector(swapSignature)):
		before, old, fresh := argument(0), argument(1), argument(2)
		if o.next[before] != old || o.next[fresh] != none {
			return fmt.Errorf("GS205: %s is not before %s, or %s is an owner", before, old, fresh)
		}
		o.next[fresh], o.next[before] = o.next[old], fresh
		delete(o.next, old)
		return nil
	case bytes.HasPrefix(data, selector(addSignature)):
		if o.next[argument(0)] != none {
			return fmt.Errorf("GS204: %s is an owner", argument(0))
		}
		o.next[argument(0)], o.next[sentinel] = o.next[sentinel], argument(0)
		o.count++
		return o.change(number(1))
	case bytes.HasPrefix(data, selector(removeSignature)):
		before, old := argument(0), argument(1)
		if o.next[before] != old || o.count-1 < int(number(2)) {
			return fmt.Errorf("GS205: %s is not before %s, or too few remain", before, old)
		}
		o.next[before] = o.next[old]
		delete(o.next, old)
		o.count--
		return o.change(number(2))
	case bytes.HasPrefix(data, selector(thresholdSignature)):
		return o.change(number(0))
	}
	return fmt.Errorf("unknown call %x", data)
}

// Any change of owners and threshold is taken by the contract, leaves exactly the owners that were asked for, and passes
// CheckJoint; with a step left out, or another owner, it does not pass.
func TestOwnersChange(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t))
	rapid.Check(t, func(r *rapid.T) {
		pool := make([]common.Address, maxSafeOwners+5)
		for i := range pool {
			pool[i] = common.BytesToAddress(crypto.Keccak256([]byte{byte(i)}))
		}
		some := func(label string) ([]common.Address, uint32) {
			all := rapid.Permutation(pool).Draw(r, label)[:rapid.IntRange(1, maxSafeOwners).Draw(r, label+" count")]
			return all, uint32(rapid.IntRange(1, len(all)).Draw(r, label+" threshold"))
		}
		from := safeState{}
		from.owners, from.threshold = some("from")
		to := safeState{}
		to.owners, to.threshold = some("to")
		d := chain.JointDraft{Account: safeAt.Hex(), Quorum: from.quorum(), Owners: &chain.OwnersChange{Owners: to.quorum().Owners, Threshold: to.threshold}}
		steps, err := ownerSteps(d.Quorum, *d.Owners)
		if sameQuorum(from.quorum(), to.quorum()) {
			if err == nil {
				r.Fatal("no change is a change")
			}
			return
		}
		if err != nil {
			r.Fatal(err)
		}
		previous, err := places(steps, from.owners)
		if err != nil {
			r.Fatal(err)
		}
		contract := ownersOfContract{next: map[common.Address]common.Address{sentinel: sentinel}, count: len(from.owners), threshold: from.threshold}
		before := sentinel
		for _, o := range from.owners {
			contract.next[before], contract.next[o], before = o, sentinel, o
		}
		for i, s := range steps {
			if err := contract.apply(s.calldata(previous[i])); err != nil {
				r.Fatalf("step %d of %+v: %v", i, steps, err)
			}
		}
		if got := (safeState{owners: contract.list(), threshold: contract.threshold}); !sameQuorum(got.quorum(), to.quorum()) {
			r.Fatalf("the contract has %+v, want %+v", got, to)
		}
		j, err := c.joint(safeAt, d, ownersTx(safeAt, steps, previous, 0))
		if err != nil {
			r.Fatal(err)
		}
		if err := c.CheckJoint(j); err != nil {
			r.Fatal(err)
		}
		hostile := slices.Clone(steps)
		if at := rapid.IntRange(0, len(steps)-1).Draw(r, "hostile"); rapid.Bool().Draw(r, "leave out") && len(steps) > 1 {
			hostile = slices.Delete(hostile, at, at+1)
			previous = slices.Delete(slices.Clone(previous), at, at+1)
		} else {
			hostile[at].new, hostile[at].threshold = safeSingleton.address, 1
		}
		bad, err := c.joint(safeAt, d, ownersTx(safeAt, hostile, previous, 0))
		if err != nil {
			r.Fatal(err)
		}
		if err := c.CheckJoint(bad); err == nil && bad.ID != j.ID {
			r.Fatalf("%+v passed for %+v", hostile, steps)
		}
	})
}

func TestExecutionIsReadBack(t *testing.T) {
	t.Parallel()
	tx := safeTx{
		to: bob, value: big.NewInt(5), data: []byte{1, 2, 3}, operation: 1, safeTxGas: big.NewInt(6), baseGas: big.NewInt(7),
		gasPrice: big.NewInt(8), gasToken: alice, refundReceiver: bob,
	}
	calldata := tx.execution(make([]byte, 65))
	got, ok := readExecution(calldata)
	if !ok || got.content() != tx.content() {
		t.Errorf("%+v, %t", got, ok)
	}
	for i := range calldata {
		for _, bad := range [][]byte{calldata[:i], append(bytes.Clone(calldata), make([]byte, i+1)...)} {
			if _, ok := readExecution(bad); ok {
				t.Fatalf("%d bytes of %d are read", len(bad), len(calldata))
			}
		}
		changed := bytes.Clone(calldata)
		changed[i] ^= 0x80
		// The last 128 bytes are the signatures, with their length.
		if got, ok := readExecution(changed); ok && got.content() == tx.content() && i < len(calldata)-4*wordLength {
			t.Fatalf("byte %d changes nothing", i)
		}
	}
}

package solana

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// sharedData is the content of an account of several owners.
func sharedData(threshold byte, owners ...sdk.PublicKey) []byte {
	data := make([]byte, multisigSize)
	data[multisigRequired], data[multisigOwners], data[multisigState] = threshold, byte(len(owners)), multisigReady
	for i, o := range owners {
		copy(data[ownersAt+i*keyLength:], o[:])
	}
	return data
}

func sharedAccount(data []byte) map[string]any {
	return accountJSON(3_361_680, sdk.TokenProgramID, data)
}

// names makes so many owners.
func names(n int) []sdk.PublicKey {
	var all []sdk.PublicKey
	for i := range n {
		all = append(all, named(fmt.Sprint("owner ", i)).key())
	}
	return all
}

// committee is a stub network with an account of 100 USDT whose owners are n, of whom m sign, and the draft of a payment.
func committee(t testing.TB, m, n int) (*stub, *Client, chain.JointDraft) {
	t.Helper()
	s, c, d := vault(t)
	account := named("treasury").key()
	owners := names(n)
	s.accounts[account.String()] = sharedAccount(sharedData(byte(m), owners...))
	s.accounts[ataOf(t, account, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), account, 100_000_000, 1)
	q, err := c.Quorum(t.Context(), account.String())
	if err != nil {
		t.Fatal(err)
	}
	j := chain.JointDraft{
		Account: account.String(), Quorum: q, Transfer: &chain.Transfer{From: account.String(), To: named("bob").address(), Amount: money.Must(money.USDT, "10")},
		FeePayer: d.FeePayer, NonceAccount: d.NonceAccount,
	}
	for _, o := range owners[:m] {
		j.Signers = append(j.Signers, o.String())
	}
	return s, c, j
}

func jointIn(t testing.TB, c *Client, d chain.JointDraft) chain.Joint {
	t.Helper()
	j, err := c.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// signedByAll has all named signers sign.
func signedByAll(t testing.TB, c *Client, j chain.Joint) []chain.OwnerSignature {
	t.Helper()
	var all []chain.OwnerSignature
	for i := range maxOwners {
		k := named(fmt.Sprint("owner ", i))
		if !slices.Contains(j.Signers, k.address()) {
			continue
		}
		raw, err := k.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		one, err := c.Signature(j, raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// Each rule of an account of several owners is named when it is broken.
func TestQuorumNamesTheRule(t *testing.T) {
	t.Parallel()
	owners := names(3)
	edited := func(edit func([]byte)) map[string]any {
		data := sharedData(2, owners...)
		edit(data)
		return sharedAccount(data)
	}
	for name, q := range map[string]struct {
		account map[string]any
		rule    string
	}{
		"no account":         {nil, "does not exist"},
		"a wallet":           {walletAccount(5), "controlled by one key"},
		"of Token-2022":      {accountJSON(1, sdk.Token2022ProgramID, sharedData(2, owners...)), "not to the Token program"},
		"a token account":    {holdingAccount(sdk.MustPublicKeyFromBase58(usdt), owners[0], 1, 1), "has 165 bytes"},
		"a mint":             {mintAccount(6, sdk.TokenProgramID), "has 82 bytes"},
		"a byte more":        {sharedAccount(append(sharedData(2, owners...), 0)), "has 356 bytes"},
		"not initialised":    {edited(func(b []byte) { b[multisigState] = 0 }), "is not initialised"},
		"another state":      {edited(func(b []byte) { b[multisigState] = 2 }), "is not initialised"},
		"no owners":          {edited(func(b []byte) { b[multisigOwners] = 0 }), "has 0 owners"},
		"twelve owners":      {edited(func(b []byte) { b[multisigOwners] = 12 }), "has 12 owners"},
		"none must sign":     {edited(func(b []byte) { b[multisigRequired] = 0 }), "needs 0 of 3"},
		"four of three":      {edited(func(b []byte) { b[multisigRequired] = 4 }), "needs 4 of 3"},
		"seven of eleven":    {sharedAccount(sharedData(7, names(11)...)), "room for 6"},
		"an owner twice":     {sharedAccount(sharedData(2, owners[0], owners[1], owners[0])), "twice"},
		"an owner off curve": {sharedAccount(sharedData(2, owners[0], ataOf(t, owners[0], usdt))), "without a key"},
		"an empty owner":     {sharedAccount(sharedData(2, owners[0], sdk.PublicKey{})), "without a key"},
	} {
		s := newStub()
		key := named("treasury").address()
		s.accounts[key] = q.account
		_, err := stubbed(t, s).Quorum(t.Context(), key)
		wantReason(t, name, err, chain.ReasonForeign)
		if err != nil && !strings.Contains(err.Error(), q.rule) {
			t.Errorf("%s: %q is missing in: %v", name, q.rule, err)
		}
	}
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	for _, q := range []struct{ m, n int }{{1, 1}, {2, 3}, {6, 11}} {
		_, _, d := committee(t, q.m, q.n)
		if int(d.Quorum.Threshold) != q.m || len(d.Quorum.Owners) != q.n || d.Quorum.Moving || d.Quorum.Head.Final.Number != 1068 || d.Quorum.Head.Latest.Number != 1100 {
			t.Errorf("%d of %d: %+v", q.m, q.n, d.Quorum)
		}
		if !slices.IsSortedFunc(d.Quorum.Owners, func(a, b chain.Owner) int { return strings.Compare(a.Address, b.Address) }) {
			t.Errorf("the owners are not in order: %+v", d.Quorum.Owners)
		}
	}
}

func TestPrepareJointRefuses(t *testing.T) {
	t.Parallel()
	type edit = func(*stub, *chain.JointDraft)
	change := func(f func(*chain.JointDraft)) edit { return func(_ *stub, d *chain.JointDraft) { f(d) } }
	for name, q := range map[string]struct {
		edit edit
		want chain.Reason
	}{
		"owners":              {change(func(d *chain.JointDraft) { d.Owners = &chain.OwnersChange{} }), chain.ReasonUnsupported},
		"nothing":             {change(func(d *chain.JointDraft) { d.Transfer = nil }), chain.ReasonUnsupported},
		"SOL":                 {change(func(d *chain.JointDraft) { d.Transfer.Amount = money.Must(money.SOL, "1") }), chain.ReasonUnsupported},
		"a number":            {change(func(d *chain.JointDraft) { d.Sequence = 1 }), chain.ReasonUnsupported},
		"no fee payer":        {change(func(d *chain.JointDraft) { d.FeePayer = "" }), chain.ReasonUnsupported},
		"no nonce account":    {change(func(d *chain.JointDraft) { d.NonceAccount = "" }), chain.ReasonUnsupported},
		"another sender":      {change(func(d *chain.JointDraft) { d.Transfer.From = named("alice").address() }), chain.ReasonAddress},
		"an owner pays":       {change(func(d *chain.JointDraft) { d.FeePayer = d.Quorum.Owners[0].Address }), chain.ReasonUnsupported},
		"a signer less":       {change(func(d *chain.JointDraft) { d.Signers = d.Signers[:1] }), chain.ReasonUnsupported},
		"a signer more":       {change(func(d *chain.JointDraft) { d.Signers = append(d.Signers, names(3)[2].String()) }), chain.ReasonUnsupported},
		"no signers":          {change(func(d *chain.JointDraft) { d.Signers = nil }), chain.ReasonUnsupported},
		"a signer twice":      {change(func(d *chain.JointDraft) { d.Signers = []string{d.Signers[0], d.Signers[0]} }), chain.ReasonForeign},
		"another signer":      {change(func(d *chain.JointDraft) { d.Signers[0] = named("mallory").address() }), chain.ReasonForeign},
		"a weight":            {change(func(d *chain.JointDraft) { d.Quorum.Owners[0].Weight = 2 }), chain.ReasonForeign},
		"another threshold":   {change(func(d *chain.JointDraft) { d.Quorum.Threshold = 1; d.Signers = d.Signers[:1] }), chain.ReasonForeign},
		"a permission":        {change(func(d *chain.JointDraft) { d.Quorum.Permission = 2 }), chain.ReasonUnsupported},
		"the account is gone": {func(s *stub, d *chain.JointDraft) { delete(s.accounts, d.Account) }, chain.ReasonForeign},
		"other owners": {func(s *stub, d *chain.JointDraft) {
			s.accounts[d.Account] = sharedAccount(sharedData(2, names(4)[1:]...))
		}, chain.ReasonForeign},
		"another nonce's authority": {func(s *stub, d *chain.JointDraft) {
			s.accounts[d.NonceAccount] = nonceAccountOf(1, names(1)[0], hashAt(5))
		}, chain.ReasonReverts},
		"too little": {func(s *stub, d *chain.JointDraft) {
			account := sdk.MustPublicKeyFromBase58(d.Account)
			s.accounts[ataOf(t, account, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), account, 9_999_999, 1)
		}, chain.ReasonFunds},
		"frozen": {func(s *stub, d *chain.JointDraft) {
			account := sdk.MustPublicKeyFromBase58(d.Account)
			s.accounts[ataOf(t, account, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), account, 50_000_000, 2)
		}, chain.ReasonBlocked},
		"a poor fee payer": {func(s *stub, d *chain.JointDraft) { s.accounts[d.FeePayer] = walletAccount(1_000_000) }, chain.ReasonGas},
	} {
		s, c, d := committee(t, 2, 3)
		d.Quorum.Owners = slices.Clone(d.Quorum.Owners)
		q.edit(s, &d)
		_, err := c.PrepareJoint(t.Context(), d)
		wantReason(t, name, err, q.want)
	}
}

// Where all owners must sign, they need not be named. The order in which signers are named changes nothing.
func TestJointSigners(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 3, 3)
	first := jointIn(t, c, d)
	reversed := d
	reversed.Signers = slices.Clone(d.Signers)
	slices.Reverse(reversed.Signers)
	unnamed := d
	unnamed.Signers = nil
	for _, other := range []chain.JointDraft{reversed, unnamed} {
		if second := jointIn(t, c, other); !slices.Equal(first.Signers, second.Signers) || !slices.IsSorted(first.Signers) || len(first.Signers) != 3 {
			t.Errorf("signers %v and %v", first.Signers, second.Signers)
		}
	}
	m, err := readMessage(first.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := m.Signers().ToBase58()
	if len(got) != 4 || got[0] != d.FeePayer || !slices.Equal(slices.Sorted(slices.Values(got[1:])), first.Signers) {
		t.Errorf("the message is signed by %v", got)
	}
	transfer := m.Instructions[len(m.Instructions)-1]
	accounts, err := transfer.ResolveInstructionAccounts(m)
	if err != nil {
		t.Fatal(err)
	}
	if a := accounts[3]; a.PublicKey.String() != d.Account || a.IsSigner || a.IsWritable {
		t.Errorf("the account itself is %+v", a)
	}
	for i, a := range accounts[4:] {
		if a.PublicKey.String() != first.Signers[i] || !a.IsSigner || a.IsWritable {
			t.Errorf("a signer is %+v", a)
		}
	}
}

// Every byte of a joint transaction matters, except for the memo and the budget within its bounds, and these change its id.
func TestCheckJointRefuses(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	for name, edit := range map[string]func(*chain.Joint){
		"another payer":         func(j *chain.Joint) { j.FeePayer = named("mallory").address() },
		"another nonce account": func(j *chain.Joint) { j.NonceAccount = named("mallory").address() },
		"another value":         func(j *chain.Joint) { j.RefBlock = hashAt(6) },
		"no block":              func(j *chain.Joint) { j.Block = chain.Block{} },
		"another signer":        func(j *chain.Joint) { j.Signers = []string{j.Signers[0], names(3)[2].String()} },
		"an expiry":             func(j *chain.Joint) { j.ExpiresAt = stubNow },
		"a fee of the account":  func(j *chain.Joint) { j.FeeLimit = lamports(1) },
		"another id":            func(j *chain.Joint) { j.ID = jointID(nil) },
		"another digest":        func(j *chain.Joint) { j.Digest = flipped(j.Digest, 200) },
		"another threshold":     func(j *chain.Joint) { j.Quorum.Threshold = 3 },
		"owners as well":        func(j *chain.Joint) { j.Owners = &chain.OwnersChange{} },
	} {
		bad := j
		edit(&bad)
		if err := c.CheckJoint(bad); err == nil {
			t.Errorf("%s: it passed", name)
		}
	}
	for i := range j.Body {
		bad := j
		bad.Body = flipped(j.Body, i)
		bad.Digest = bad.Body
		if err := c.CheckJoint(bad); err == nil {
			t.Errorf("byte %d: it passed", i)
		}
		bad.ID = jointID(bad.Body)
		if err := c.CheckJoint(bad); err == nil {
			in, err := c.jointOf(j.JointDraft)
			if err != nil {
				t.Fatal(err)
			}
			if _, good, err := reads(c.unsigned(j), in); err != nil || !sameMeaning(c, bad.Body, good) {
				t.Errorf("byte %d: it passed under its own id (%v)", i, err)
			}
		}
	}
}

// Six signers fit into a transaction, and seven do not, whatever the account says.
func TestSixSignersFit(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, maxSigners, maxOwners)
	j := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), j, signedByAll(t, c, j), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignExecution(x, named("payer"))
	if err != nil || len(signed.Raw) > maxTransactionBytes {
		t.Errorf("%d bytes, %v", len(signed.Raw), err)
	}
	in, err := c.jointOf(d)
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := reads(c.unsigned(j), in)
	if err != nil {
		t.Fatal(err)
	}
	more := *p.joint
	more.signers = append(slices.Clone(more.signers), names(maxOwners)[maxSigners])
	p.joint = &more
	if _, err := p.message(); err == nil {
		t.Error("seven signers fit")
	}
}

func TestPrepareExecutionRefuses(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]struct {
		edit func(*stub, chain.JointDraft)
		want chain.Reason
	}{
		"another value of the nonce": {func(s *stub, d chain.JointDraft) {
			s.accounts[d.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(6))
		}, chain.ReasonReverts},
		"another authority": {func(s *stub, d chain.JointDraft) {
			s.accounts[d.NonceAccount] = nonceAccountOf(1, named("mallory").key(), hashAt(5))
		}, chain.ReasonReverts},
		"no nonce account": {func(s *stub, d chain.JointDraft) { delete(s.accounts, d.NonceAccount) }, chain.ReasonReverts},
		"other owners": {func(s *stub, d chain.JointDraft) {
			s.accounts[d.Account] = sharedAccount(sharedData(3, names(3)...))
		}, chain.ReasonForeign},
		"a failing simulation": {func(s *stub, _ chain.JointDraft) {
			s.answers["simulateTransaction"] = at(1100, map[string]any{"err": map[string]any{"InstructionError": []any{5, map[string]any{"Custom": 17}}}, "unitsConsumed": 1})
		}, chain.ReasonBlocked},
		"a poor fee payer": {func(s *stub, d chain.JointDraft) { s.accounts[d.FeePayer] = walletAccount(1_000_000) }, chain.ReasonGas},
		"a high fee":       {func(s *stub, _ chain.JointDraft) { s.answers["getFeeForMessage"] = at(1100, 20_000_000) }, chain.ReasonFeeTooHigh},
	} {
		s, c, d := committee(t, 2, 3)
		j := jointIn(t, c, d)
		all := signedByAll(t, c, j)
		s.set(func() { q.edit(s, d) })
		_, err := c.PrepareExecution(t.Context(), j, all, chain.ExecutionDraft{})
		wantReason(t, name, err, q.want)
	}
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	for name, x := range map[string]chain.ExecutionDraft{"another payer": {Payer: named("mallory").address()}, "a number": {Nonce: 1}} {
		_, err := c.PrepareExecution(t.Context(), j, signedByAll(t, c, j), x)
		wantReason(t, name, err, chain.ReasonUnsupported)
	}
}

// Exactly the named owners sign, each once and under its own name.
func TestSignaturesOfAnExecution(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	all := signedByAll(t, c, j)
	third := named("owner 2")
	raw, err := third.Sign(j.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Signature(j, raw); err == nil || !strings.Contains(err.Error(), "not one of the 2") {
		t.Errorf("an owner who is not named: %v", err)
	}
	for name, q := range map[string]struct {
		given []chain.OwnerSignature
		why   string
	}{
		"none":                 {nil, "0 of 2 are there"},
		"one":                  {all[:1], "1 of 2 are there"},
		"one twice":            {[]chain.OwnerSignature{all[0], all[0]}, "signed twice"},
		"one twice and all":    {append(slices.Clone(all), all[0]), "signed twice"},
		"under another's name": {[]chain.OwnerSignature{all[0], {Owner: all[0].Owner, Signature: all[1].Signature}}, "is given as one of"},
		"of one not named":     {append(slices.Clone(all), chain.OwnerSignature{Owner: third.address(), Signature: raw}), "not one of the 2"},
	} {
		_, err := c.PrepareExecution(t.Context(), j, q.given, chain.ExecutionDraft{})
		wantReason(t, name, err, chain.ReasonForeign)
		if err != nil && !strings.Contains(err.Error(), q.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	slices.Reverse(all)
	if _, err := c.PrepareExecution(t.Context(), j, all, chain.ExecutionDraft{Payer: d.FeePayer}); err != nil {
		t.Errorf("in another order: %v", err)
	}
}

// silentKey fails the test when it is asked to sign.
type silentKey struct {
	testKey
	t    *testing.T
	name string
}

func (k silentKey) Sign(m []byte) ([]byte, error) {
	k.t.Errorf("%s: the key was used", k.name)
	return k.testKey.Sign(m)
}

// Whatever is not the joint transaction is refused before the key is used.
func TestSignExecutionRefuses(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), j, signedByAll(t, c, j), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	other := jointIn(t, c, d)
	for name, edit := range map[string]func(*chain.Execution){
		"another recipient":     func(x *chain.Execution) { x.Transfer.To = named("mallory").address() },
		"another amount":        func(x *chain.Execution) { x.Transfer.Amount = money.Must(money.USDT, "11") },
		"another payer":         func(x *chain.Execution) { x.FeePayer = named("mallory").address() },
		"another message":       func(x *chain.Execution) { x.Body, x.Payload = other.Body, other.Body },
		"another payload":       func(x *chain.Execution) { x.Payload = other.Body },
		"another block":         func(x *chain.Execution) { x.NonceBlock++ },
		"another value":         func(x *chain.Execution) { x.RefBlock = hashAt(6) },
		"another nonce account": func(x *chain.Execution) { x.NonceAccount = named("mallory").address() },
		"an end of life":        func(x *chain.Execution) { x.LastValidHeight = 5 },
		"a low limit":           func(x *chain.Execution) { x.FeeLimit = lamports(10_000) },
		"a high limit":          func(x *chain.Execution) { x.FeeLimit = money.Must(money.SOL, "0.02") },
		"another joint one":     func(x *chain.Execution) { x.Joint = other },
		"a signature less":      func(x *chain.Execution) { x.Signatures = x.Signatures[:1] },
	} {
		bad := x
		edit(&bad)
		if signed, err := c.SignExecution(bad, silentKey{named("payer"), t, name}); err == nil {
			t.Errorf("%s: signed as %s", name, signed.TxID)
		}
	}
	if _, err := c.SignExecution(x, silentKey{named("alice"), t, "another key"}); err == nil {
		t.Error("signed by another key")
	}
	if _, err := c.SignExecution(x, silentKey{named("payer"), t, "two keys"}, named("payer")); err == nil {
		t.Error("signed by two keys")
	}
	if _, err := c.SignExecution(x, brokenKey{named("payer")}); err == nil {
		t.Error("a signature that does not verify was accepted")
	}
	if _, err := c.SignExecution(x, named("payer")); err != nil {
		t.Error(err)
	}
}

// A message that can't be changed while its owners sign has room for what changes meanwhile: its bid and its computation.
func TestJointIsAmple(t *testing.T) {
	t.Parallel()
	s, c, d := committee(t, 2, 3)
	side, holder := named("side").key(), named("holder").key()
	s.accounts[side.String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), holder, 1, 1)
	s.answers["simulateTransaction"] = at(1100, map[string]any{"err": nil, "unitsConsumed": 1_500})
	d.Transfer.To = side.String()
	j := jointIn(t, c, d)
	in, err := c.jointOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, p, err := reads(c.unsigned(j), in); err != nil || p.create || p.limit != createUnits || p.price != c.config.Fees.PriceCeiling {
		t.Errorf("%+v, %v", p, err)
	}
}

// smallOrder signs as no honest tool does, with the neutral element of the curve for R. Go's standard library accepts that.
func smallOrder(t testing.TB, k testKey, message []byte) []byte {
	t.Helper()
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	number := func(b []byte) *big.Int {
		b = slices.Clone(b)
		slices.Reverse(b) // little-endian
		return new(big.Int).SetBytes(b)
	}
	secret := sha512.Sum512(k.Seed())
	secret[0] &= 248
	secret[31] = secret[31]&127 | 64
	signature := make([]byte, sdk.SignatureLength)
	signature[0] = 1
	challenge := sha512.Sum512(slices.Concat(signature[:32], k.PublicKey(), message))
	s := new(big.Int).Mul(number(challenge[:]), number(secret[:32]))
	s.Mod(s, order).FillBytes(signature[32:])
	slices.Reverse(signature[32:])
	if !ed25519.Verify(k.PublicKey(), message, signature) {
		t.Fatal("the standard library refuses it too")
	}
	return signature
}

// The network drops a transaction with such a signature without a word, so the proposal would never be executed.
func TestSignatureIsAsStrictAsTheNetwork(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	_, err := c.Signature(j, smallOrder(t, named("owner 0"), j.Digest))
	wantReason(t, "a point of a small order", err, chain.ReasonForeign)
}

// inHistory puts a transaction into a stub's chain, as the newest of its nonce account.
func (s *stub) inHistory(id string, slot uint64, failure any, memo string, raw []byte) {
	list, _ := s.answers["getSignaturesForAddress"].([]any)
	s.answers["getSignaturesForAddress"] = append([]any{map[string]any{"signature": id, "slot": slot, "err": failure, "memo": memo}}, list...)
	s.transactions[id] = raw
}

// used is a stub network on which the nonce of a signed joint transaction has another value, and its signed execution.
func used(t *testing.T) (*stub, *Client, chain.Joint, chain.Signed) {
	t.Helper()
	s, c, d := committee(t, 2, 3)
	s.transactions = map[string][]byte{}
	j := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), j, signedByAll(t, c, j), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignExecution(x, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	s.set(func() {
		s.accounts[d.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(6))
		s.answers["getSignaturesForAddress"] = []any{}
	})
	return s, c, j, signed
}

// advancedBy is a transaction of the fee payer that advances the nonce account.
func advancedBy(t *testing.T, s *stub, c *Client, j chain.Joint) chain.Signed {
	t.Helper()
	u, err := c.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: j.FeePayer, To: j.NonceAccount, Amount: lamports(1)}, Step: chain.NonceAdvance})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.Sign(u, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A node that keeps too little history, or has none of the transactions that changed the nonce, proves nothing.
func TestOutcomeNeedsHistory(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	_, err := c.Outcome(t.Context(), j)
	wantReason(t, "no history", err, chain.ReasonUnavailable)
	advance := advancedBy(t, s, c, j)
	s.set(func() {
		s.inHistory(advance.TxID, 1110, map[string]any{"InstructionError": []any{0, "x"}}, "", advance.Raw)
	})
	_, err = c.Outcome(t.Context(), j)
	wantReason(t, "an advance that failed", err, chain.ReasonUnavailable)
	s.set(func() {
		s.answers["getSignaturesForAddress"] = []any{}
		s.inHistory(advance.TxID, 1110, nil, "", advance.Raw)
		s.answers["getFirstAvailableBlock"] = j.Block.Number + 1
	})
	_, err = c.Outcome(t.Context(), j)
	wantReason(t, "a short history", err, chain.ReasonUnavailable)
	s.set(func() { s.answers["getFirstAvailableBlock"] = 0 })
	earlier := advancedBy(t, s, c, j) // it made the value that was signed
	s.set(func() {
		s.answers["getSignaturesForAddress"] = []any{}
		s.inHistory(earlier.TxID, j.Block.Number-1, nil, "", earlier.Raw)
		s.inHistory(advance.TxID, 1110, nil, "", advance.Raw)
	})
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != advance.TxID {
		t.Errorf("%+v, %v", o, err)
	}
	s.set(func() { s.inHistory(signed.TxID, 1109, nil, "", flipped(signed.Raw, 80)) })
	if o, err := c.Outcome(t.Context(), j); err == nil {
		t.Errorf("bytes of another signature: %+v", o)
	}
}

// That another transaction took the place is true only if no node has the message itself.
func TestOutcomeAsksEveryNode(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	advance := advancedBy(t, s, c, j)
	other := newStub()
	other.accounts, other.transactions = s.accounts, map[string][]byte{}
	other.answers["getSignaturesForAddress"] = []any{}
	both := stubbed(t, s, other)
	s.set(func() { s.inHistory(advance.TxID, 1120, nil, "", advance.Raw) })
	other.set(func() { other.inHistory(signed.TxID, 1110, nil, "", signed.Raw) })
	// The stubs' transactions move nothing, so this one can't have been executed rightly.
	if o, err := both.Outcome(t.Context(), j); o.TxID != signed.TxID || chain.ReasonOf(err) != chain.ReasonProtocol {
		t.Errorf("a node has it, and it is %+v, %v", o, err)
	}
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded {
		t.Errorf("by one node: %+v, %v", o, err)
	}
	other.set(func() { other.answers["getSignaturesForAddress"] = &rpcError{Code: -32005, Message: "Node is behind"} })
	if o, err := both.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded {
		t.Errorf("while another is behind: %+v, %v", o, err)
	}
	other.set(func() {
		other.answers["getSignaturesForAddress"] = []any{}
		other.inHistory(signed.TxID, 1110, nil, "", []byte("nonsense"))
	})
	if o, err := both.Outcome(t.Context(), j); err == nil {
		t.Errorf("while another talks nonsense: %+v", o)
	}
}

// A transaction that named the same value and failed used it all the same.
func TestOutcomeByAFailure(t *testing.T) {
	t.Parallel()
	s, c, j, _ := used(t)
	s.set(func() { s.accounts[j.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(5)) })
	d := j.JointDraft
	d.Signers = []string{named("owner 0").address(), named("owner 2").address()}
	rival := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), rival, signedByAll(t, c, rival), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignExecution(x, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.accounts[j.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(6)) })
	advance := advancedBy(t, s, c, j)
	s.set(func() {
		s.inHistory(signed.TxID, 1110, map[string]any{"InstructionError": []any{5, map[string]any{"Custom": 1}}}, "", signed.Raw)
		s.inHistory(advance.TxID, 1115, nil, "", advance.Raw)
	})
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != signed.TxID {
		t.Errorf("%+v, %v", o, err)
	}
}

// Strangers who name the nonce account can't hide a transaction that has the message's memo, and make no outcome of their own.
func TestOutcomeAmongMany(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	stranger := advancedBy(t, s, c, j)
	tx, err := sdk.TransactionFromBytes(stranger.Raw)
	if err != nil {
		t.Fatal(err)
	}
	tx.Message.Instructions = tx.Message.Instructions[:1] // it advances nothing
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	list := []any{}
	for i := range maxInspected + 1 {
		id := sdk.Signature{byte(i), byte(i >> 8), 1}
		tx.Signatures = []sdk.Signature{id}
		one := append(append([]byte{1}, id[:]...), raw[1+sdk.SignatureLength:]...)
		list = append(list, map[string]any{"signature": id.String(), "slot": 1115, "err": nil, "memo": nil})
		s.transactions[id.String()] = one
	}
	newer := sdk.Signature{9, 9, 9}
	s.transactions[newer.String()] = []byte{0x81, 1, 2}
	s.set(func() { s.answers["getSignaturesForAddress"] = slices.Clone(list) })
	_, err = c.Outcome(t.Context(), j)
	wantReason(t, "strangers", err, chain.ReasonUnavailable)
	in, err := c.jointOf(j.JointDraft)
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := reads(c.unsigned(j), in)
	if err != nil {
		t.Fatal(err)
	}
	s.set(func() {
		s.answers["getSignaturesForAddress"] = append([]any{map[string]any{"signature": newer.String(), "slot": 1115, "memo": ""}}, list[:5]...)
		s.inHistory(stranger.TxID, 1110, nil, "", stranger.Raw)
	})
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != stranger.TxID {
		t.Errorf("%+v, %v", o, err)
	}
	use := nonceUse{}
	s.set(func() {
		s.answers["getSignaturesForAddress"] = slices.Clone(list)
		s.inHistory(signed.TxID, 1110, nil, "[32] "+hex.EncodeToString(p.unique[:]), signed.Raw)
	})
	if use, err = usedBy(t.Context(), c.nodes.Nodes()[0], j, p, finalized, 0); err != nil || !use.ours || use.id != signed.TxID {
		t.Errorf("%+v, %v", use, err)
	}
}

// A lower ceiling of the configuration makes no joint transaction undecidable, and ends the signing of dear ones.
func TestOutcomeWithoutTheFee(t *testing.T) {
	t.Parallel()
	s, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	cheap := stubbed(t, s)
	cheap.config.Fees.PriceCeiling = 5
	wantReason(t, "a check", cheap.CheckJoint(j), chain.ReasonFeeTooHigh)
	if o, err := cheap.Outcome(t.Context(), j); err != nil || o.State != chain.JointOpen {
		t.Errorf("%+v, %v", o, err)
	}
}

func openingDraft(t testing.TB, c *Client, owners int, threshold uint32) chain.Draft {
	t.Helper()
	q := chain.OwnersChange{Threshold: threshold}
	for _, o := range names(owners) {
		q.Owners = append(q.Owners, chain.Owner{Address: o.String(), Weight: 1})
	}
	address, err := c.MultisigAccount(named("payer").address(), "wallet 7", q)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Draft{Transfer: chain.Transfer{From: named("payer").address(), To: address, Amount: lamports(3_361_680)}, Seed: "wallet 7", Owners: &q}
}

// The address is the network's own derivation, on the curve, and belongs to these owners, this seed and this authority.
func TestMultisigAccount(t *testing.T) {
	t.Parallel()
	s, _ := harness(t)
	c := stubbed(t, s)
	d := openingDraft(t, c, 3, 2)
	for i := range 20 { // half of all derivations are off the curve
		address, err := c.MultisigAccount(d.From, fmt.Sprint("wallet ", i), *d.Owners)
		if err == nil {
			_, err = c.ParseAddress(address)
		}
		if err != nil {
			t.Errorf("wallets would refuse the address of wallet %d: %v", i, err)
		}
	}
	reversed := chain.OwnersChange{Owners: slices.Clone(d.Owners.Owners), Threshold: 2}
	slices.Reverse(reversed.Owners)
	if again, err := c.MultisigAccount(d.From, d.Seed, reversed); err != nil || again != d.To {
		t.Errorf("in another order they have %s (%v)", again, err)
	}
	for name, f := range map[string]func() (string, error){
		"another seed":      func() (string, error) { return c.MultisigAccount(d.From, "wallet 8", *d.Owners) },
		"another authority": func() (string, error) { return c.MultisigAccount(named("alice").address(), d.Seed, *d.Owners) },
		"another threshold": func() (string, error) {
			return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Owners: d.Owners.Owners, Threshold: 3})
		},
		"an owner less": func() (string, error) {
			return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Owners: d.Owners.Owners[1:], Threshold: 2})
		},
	} {
		if other, err := f(); err != nil || other == d.To {
			t.Errorf("%s: %s, %v", name, other, err)
		}
	}
	for name, f := range map[string]func() (string, error){
		"no seed":         func() (string, error) { return c.MultisigAccount(d.From, "", *d.Owners) },
		"no authority":    func() (string, error) { return c.MultisigAccount("", d.Seed, *d.Owners) },
		"seven of eleven": func() (string, error) { return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Threshold: 7}) },
		"a second quorum": func() (string, error) {
			return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Owners: d.Owners.Owners, Threshold: 2, Control: &reversed})
		},
	} {
		if address, err := f(); err == nil {
			t.Errorf("%s: %s", name, address)
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	s, _ := harness(t)
	c := stubbed(t, s)
	s.answers["simulateTransaction"] = at(1100, map[string]any{"err": nil, "unitsConsumed": 45_000})
	d := openingDraft(t, c, maxOwners, maxSigners)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if want := lamports(10_040 + 2*(tokenAccountSize+128)*6960); !u.FeeLimit.Equal(want) || u.Owners == nil {
		t.Errorf("it may cost %s, want %s", u.FeeLimit, want)
	}
	signed, err := c.Sign(u, named("payer"))
	if err != nil || len(signed.Raw) > maxTransactionBytes {
		t.Fatalf("%d bytes, %v", len(signed.Raw), err)
	}
	m, err := readMessage(u.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, in := range m.Instructions {
		if program, err := m.Program(in.ProgramIDIndex); err == nil && program == sdk.TokenProgramID {
			found++
			if !bytes.Equal(in.Data, []byte{token.Instruction_InitializeMultisig2, maxSigners}) || len(in.Accounts) != 1+maxOwners {
				t.Errorf("it is initialised by %x with %d accounts", in.Data, len(in.Accounts))
			}
		}
	}
	if found != 1 {
		t.Errorf("it is initialised %d times", found)
	}
	for name, edit := range map[string]func(*chain.Unsigned){
		"as a payment":      func(u *chain.Unsigned) { u.Owners, u.Seed = nil, "" },
		"another seed":      func(u *chain.Unsigned) { u.Seed = "wallet 8" },
		"another account":   func(u *chain.Unsigned) { u.Transfer.To = named("bob").address() },
		"another amount":    func(u *chain.Unsigned) { u.Transfer.Amount = lamports(2) },
		"another threshold": func(u *chain.Unsigned) { u.Owners = &chain.OwnersChange{Owners: u.Owners.Owners, Threshold: 1} },
		"a fee payer":       func(u *chain.Unsigned) { u.FeePayer = named("bob").address() },
		"a step":            func(u *chain.Unsigned) { u.Step = chain.NonceOpen },
	} {
		bad := u
		edit(&bad)
		if _, err := c.Sign(bad, named("payer")); err == nil {
			t.Errorf("signed %s", name)
		}
	}
	for name, q := range map[string]struct {
		edit func(*stub, *chain.Draft)
		want chain.Reason
	}{
		"twice":   {func(s *stub, d *chain.Draft) { s.accounts[d.To] = sharedAccount(sharedData(2, names(3)...)) }, chain.ReasonReverts},
		"in USDT": {func(_ *stub, d *chain.Draft) { d.Amount = money.Must(money.USDT, "1") }, chain.ReasonUnsupported},
		"for others": {func(_ *stub, d *chain.Draft) {
			d.Owners = &chain.OwnersChange{Owners: d.Owners.Owners[1:], Threshold: 2}
		}, chain.ReasonAddress},
		"by a poor one":  {func(s *stub, d *chain.Draft) { s.accounts[d.From] = walletAccount(5_000_000) }, chain.ReasonGas},
		"with a nonce":   {func(_ *stub, d *chain.Draft) { d.NonceAccount = named("bob").address() }, chain.ReasonUnsupported},
		"for no owners":  {func(_ *stub, d *chain.Draft) { d.Owners = &chain.OwnersChange{} }, chain.ReasonUnsupported},
		"with a sponsor": {func(_ *stub, d *chain.Draft) { d.FeePayer = named("bob").address() }, chain.ReasonUnsupported},
	} {
		s, _ := harness(t)
		d := d
		q.edit(s, &d)
		_, err := stubbed(t, s).Prepare(t.Context(), d)
		wantReason(t, "opened "+name, err, q.want)
	}
}

// Tokens may be paid to an account of several owners, whatever its rules, but never to one that anyone may still initialise.
func TestPreparePaysSeveralOwners(t *testing.T) {
	t.Parallel()
	keyless := ataOf(t, named("bob").key(), usdc) // an address off the curve
	for _, to := range []sdk.PublicKey{named("treasury").key(), keyless} {
		for name, q := range map[string]struct {
			data   []byte
			amount money.Amount
			want   chain.Reason
		}{
			"two of three":    {sharedData(2, names(3)...), money.Must(money.USDT, "1"), ""},
			"eleven":          {sharedData(11, names(11)...), money.Must(money.USDT, "1"), ""},
			"SOL":             {sharedData(2, names(3)...), money.Must(money.SOL, "0.1"), chain.ReasonAddress},
			"not initialised": {make([]byte, multisigSize), money.Must(money.USDT, "1"), chain.ReasonAddress},
		} {
			s, d := harness(t)
			s.accounts[to.String()] = sharedAccount(q.data)
			d.To, d.Amount = to.String(), q.amount
			_, err := stubbed(t, s).Prepare(t.Context(), d)
			wantReason(t, name+" at "+to.String(), err, q.want)
		}
	}
	s, d := harness(t)
	d.To = keyless.String()
	for _, amount := range []string{"USDT", "SOL"} {
		d.Amount = money.Must(money.Asset(amount), "0.5")
		_, err := stubbed(t, s).Prepare(t.Context(), d)
		wantReason(t, amount+" to an address without a key", err, chain.ReasonAddress)
	}
	_, err := stubbed(t, s).Balance(t.Context(), keyless.String(), money.USDT)
	wantReason(t, "the balance of an address without a key", err, chain.ReasonAddress)
}

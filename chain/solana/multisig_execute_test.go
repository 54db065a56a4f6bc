package solana

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

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

// An execution can be stored before it is signed.
func TestSignExecutionAfterStorage(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), j, signedByAll(t, c, j), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	var stored chain.Execution
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	want, err := c.SignExecution(x, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.SignExecution(stored, named("payer")); err != nil || got.TxID != want.TxID {
		t.Errorf("signed as %q, want %q: %v", got.TxID, want.TxID, err)
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

// The network silently drops a transaction with such a signature, so the proposal would never be executed.
func TestSignatureIsAsStrictAsTheNetwork(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	_, err := c.Signature(j, smallOrder(t, named("owner 0"), j.Digest))
	wantReason(t, "a point of a small order", err, chain.ReasonForeign)
}

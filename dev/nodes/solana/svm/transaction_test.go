package svm

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

func TestDecodeGivesBackTheSameBytes(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	for _, v0 := range []bool{false, true} {
		wire := c.sign(payer, c.block.LastBlockhash, v0, pay(payer, c.key("to"), 1_000_000))
		tx, err := Decode(wire)
		require.NoError(t, err)
		require.Equal(t, wire, tx.Wire())
		require.True(t, tx.SignaturesValid())
		require.Equal(t, payer, tx.Keys()[0])
	}
}

func TestDecodeRefuses(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	good := c.sign(payer, c.block.LastBlockhash, false, pay(payer, c.key("to"), 1))
	v0 := c.sign(payer, c.block.LastBlockhash, true, pay(payer, c.key("to"), 1))
	const countAt, headerAt = 0, 1 + 64
	two := c.sign(payer, c.block.LastBlockhash, false, system(pack(assign, payer), signs(c.payer("other"))))
	const secondEnds = 1 + 2*64 // where its message begins
	changed := func(wire []byte, at int, b byte) []byte {
		wire = bytes.Clone(wire)
		wire[at] = b
		return wire
	}
	var many []solana.Instruction
	for range maxInstructions + 1 {
		many = append(many, instruction(solana.MemoProgramID, nil))
	}
	table := changed(v0, len(v0)-1, 1) // one lookup table
	table = append(table, make([]byte, 32)...)
	table = append(table, 0, 0)
	for name, test := range map[string]struct {
		wire []byte
		says string
	}{
		"nothing":             {nil, "failed to deserialize"},
		"trailing bytes":      {append(bytes.Clone(good), 0), "trailing or non-canonical"},
		"a byte missing":      {good[:len(good)-1], "failed to deserialize"},
		"too large":           {make([]byte, PacketSize+1), "too large"},
		"version 1":           {changed(v0, headerAt, 0x81), "failed to deserialize"},
		"no signature":        {changed(good, countAt, 0), ""},
		"more signers":        {changed(two, secondEnds, 3), "not enough signatures"},
		"no writable signer":  {changed(good, headerAt+1, 1), "no writable signer"},
		"too many read-only":  {changed(good, headerAt+2, 9), "header references more accounts"},
		"no account of table": {table, "loads no accounts"},
		"65 instructions":     {c.sign(payer, c.block.LastBlockhash, false, many...), "65 instructions"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(test.wire)
			require.ErrorContains(t, err, test.says)
		})
	}
}

func TestSignaturesOfOthersAreNotValid(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	wire := c.sign(payer, c.block.LastBlockhash, false, pay(payer, c.key("to"), 1_000_000))
	wire[5] ^= 1
	tx, err := Decode(wire)
	require.NoError(t, err)
	require.False(t, tx.SignaturesValid())
	r := c.machine.Execute(tx, c.block, c)
	require.Equal(t, Rejected, r.Outcome)
	require.Equal(t, SignatureFailure, r.Err.Kind)
	require.Empty(t, r.Changed)
	r = c.machine.Simulate(tx, c.block, c, Simulation{})
	require.Equal(t, Succeeded, r.Outcome, "a simulation need not verify")
	r = c.machine.Simulate(tx, c.block, c, Simulation{VerifySignatures: true})
	require.Equal(t, SignatureFailure, r.Err.Kind)
}

// smallOrder replaces a transaction's signature by one with the neutral element of the curve for R, which Go's standard
// library accepts.
func smallOrder(t testing.TB, key solana.PrivateKey, wire []byte) []byte {
	t.Helper()
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	number := func(b []byte) *big.Int {
		b = slices.Clone(b)
		slices.Reverse(b) // little-endian
		return new(big.Int).SetBytes(b)
	}
	public, message := key.PublicKey(), wire[1+solana.SignatureLength:]
	secret := sha512.Sum512(key[:ed25519.SeedSize])
	secret[0] &= 248
	secret[31] = secret[31]&127 | 64
	signature := make([]byte, solana.SignatureLength)
	signature[0] = 1
	challenge := sha512.Sum512(slices.Concat(signature[:32], public[:], message))
	s := new(big.Int).Mul(number(challenge[:]), number(secret[:32]))
	s.Mod(s, order).FillBytes(signature[32:])
	slices.Reverse(signature[32:])
	require.True(t, ed25519.Verify(public[:], message, signature))
	return slices.Concat([]byte{1}, signature, message)
}

func TestSignaturesOfASmallOrderAreNotValid(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	wire := c.sign(payer, c.block.LastBlockhash, false, pay(payer, c.key("to"), 1_000_000))
	tx, err := Decode(smallOrder(t, c.keys[payer], wire))
	require.NoError(t, err)
	require.False(t, tx.SignaturesValid())
}

func TestConformanceSignatures(t *testing.T) {
	p := newPair(t)
	payer := p.payer("payer")
	p.advance()
	wire := p.sign(payer, p.block.LastBlockhash, false, pay(payer, p.key("to"), 1_000_000))
	r := p.both("a point of a small order", smallOrder(t, p.keys[payer], wire))
	require.Equal(t, SignatureFailure, r.Err.Kind)
	require.Zero(t, p.differences)
}

func TestSysvarsAndCalledProgramsAreNotWritten(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	wire := c.sign(payer, c.block.LastBlockhash, false,
		system(pack(transfer, uint64(1)), signsWrite(payer), writes(solana.SysVarRentPubkey), writes(solana.SystemProgramID)))
	tx, err := Decode(wire)
	require.NoError(t, err)
	for i, key := range tx.Keys() {
		require.Equal(t, key == payer, tx.IsWritable(i), key.String())
	}
	r := c.execute(wire)
	require.JSONEq(t, `{"InstructionError":[0,"ReadonlyLamportChange"]}`, marshal(t, r.Err))
}

func TestACalledProgramIsNotWritable(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	list := []solana.Instruction{
		instruction(solana.MemoProgramID, nil, writes(solana.MemoProgramID), writes(solana.TokenProgramID)),
	}
	tx, err := Decode(c.sign(payer, c.block.LastBlockhash, false, list...))
	require.NoError(t, err)
	for i, key := range tx.Keys() {
		require.Equal(t, key != solana.MemoProgramID, tx.IsWritable(i), key.String())
	}
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// publishedVectors are transactions that others signed, some of them on mainnet.
func publishedVectors(t testing.TB) []string {
	t.Helper()
	dir := os.Getenv("KIVUKO_FIXTURES")
	if dir == "" {
		t.Skip("the published vectors are not here: KIVUKO_FIXTURES names the folder above them, see the Makefile")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "solana", "vectors.json"))
	require.NoError(t, err)
	var file struct {
		Vectors []struct {
			Transaction string `json:"expected_tx_base64"`
		} `json:"vectors"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	var transactions []string
	for _, v := range file.Vectors {
		if v.Transaction != "" {
			transactions = append(transactions, v.Transaction)
		}
	}
	return transactions
}

func TestPublishedTransactionsDecodeAndVerify(t *testing.T) {
	all := publishedVectors(t)
	require.NotEmpty(t, all)
	for _, text := range all {
		wire, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		tx, err := Decode(wire)
		require.NoError(t, err)
		require.True(t, tx.SignaturesValid(), tx.ID().String())
	}
}

func FuzzDecode(f *testing.F) {
	c := newChain(f, nil)
	payer := c.payer("payer")
	for _, v0 := range []bool{false, true} {
		f.Add(c.sign(payer, c.block.LastBlockhash, v0, pay(payer, c.key("to"), 1_000_000)))
		f.Add(c.sign(payer, c.block.LastBlockhash, v0, nonceOpen(payer, c.key("nonce"), payer)...))
		f.Add(c.sign(payer, sha256.Sum256(nil), v0, instruction(computeBudgetProgram, []byte{2, 1, 0, 0, 0})))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		tx, err := Decode(wire)
		if err != nil {
			return
		}
		require.Equal(t, wire, tx.Wire())
		// Whatever decodes must execute to some result, its signatures aside.
		r := c.machine.Simulate(tx, c.block, c, Simulation{ReplaceBlockhash: true})
		require.Equal(t, r.Err == nil, r.Outcome == Succeeded)
		if r.Outcome == Rejected {
			require.Empty(t, r.Changed)
			return
		}
		checkSums(t, tx, r)
	})
}

// checkSums checks that lamports neither come to be nor vanish, but for the fee.
func checkSums(t testing.TB, tx *Transaction, r Result) {
	t.Helper()
	var before, after uint64
	for i := range tx.Keys() {
		before += r.PreBalances[i]
		after += r.PostBalances[i]
	}
	require.Equal(t, before-r.Fee, after)
}

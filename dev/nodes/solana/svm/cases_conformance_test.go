package svm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

// associate makes the account of an owner for a mint, and returns the instruction
// that opens it.
func associate(t testing.TB, payer, owner, mint, program solana.PublicKey) (solana.PublicKey, solana.Instruction) {
	t.Helper()
	account, _, err := solana.FindAssociatedTokenAddressWithProgram(owner, mint, program)
	require.NoError(t, err)
	return account, instruction(solana.SPLAssociatedTokenAccountProgramID, []byte{1},
		signsWrite(payer), writes(account), read(owner), read(mint), read(solana.SystemProgramID), read(program))
}

// feeMint makes a mint of Token-2022 that keeps 1% of every transfer, at most 5,000.
func feeMint(payer, mint, authority solana.PublicKey) []solana.Instruction {
	const size = 165 + 1 + 4 + 108 // an account, its kind, and the extension with its header
	return []solana.Instruction{
		open(payer, mint, solana.Token2022ProgramID, size),
		instruction(solana.Token2022ProgramID, pack(byte(26), byte(0), byte(1), authority, byte(1), authority, uint16(100), uint64(5000)), writes(mint)),
		instruction(solana.Token2022ProgramID, pack(byte(20), byte(6), authority, byte(0)), writes(mint)),
	}
}

// TestConformanceToken2022 walks through what the driver must recognise: a fee that
// the recipient doesn't get, and a recipient that wants a memo.
func TestConformanceToken2022(t *testing.T) {
	p := newPair(t)
	payer, alice, bob := p.payer("payer"), p.payer("alice"), p.payer("bob")
	mint := p.key("mint")
	const program = "Token-2022"
	id := solana.Token2022ProgramID
	p.expect("mint with a fee", "null", payer, feeMint(payer, mint, alice)...)
	from, openFrom := associate(t, payer, alice, mint, id)
	to, openTo := associate(t, payer, bob, mint, id)
	p.expect("associated accounts", "null", payer, openFrom, openTo)
	p.expect("the same again", "null", payer, openTo)
	p.expect("mint", "null", payer, instruction(id, pack(byte(7), uint64(1_000_000)), writes(mint), writes(from), signs(alice)))
	send := func(amount uint64) solana.Instruction {
		return instruction(id, pack(byte(12), amount, byte(6)), writes(from), read(mint), writes(to), signs(alice))
	}
	r := p.expect("transfer", "null", payer, send(100_000))
	require.Equal(t, map[solana.PublicKey]uint64{alice: 900_000, bob: 99_000}, byOwner(r.PostTokens), program)
	p.expect("plain transfer", `{"InstructionError":[0,{"Custom":31}]}`, payer,
		instruction(id, pack(byte(3), uint64(1000)), writes(from), writes(to), signs(alice)))
	p.expect("room for the demand of a memo", "null", payer,
		instruction(id, []byte{29, 8, 0}, writes(to), signsWrite(payer), read(solana.SystemProgramID), signs(bob)))
	p.expect("demand of a memo", "null", payer, instruction(id, []byte{30, 0}, writes(to), signs(bob)))
	p.expect("without a memo", `{"InstructionError":[0,{"Custom":36}]}`, payer, send(1000))
	p.expect("with a memo", "null", payer, instruction(solana.MemoProgramID, []byte("invoice 7")), send(1000))
	require.Zero(t, p.differences)
}

func byOwner(balances []TokenBalance) map[solana.PublicKey]uint64 {
	amounts := map[solana.PublicKey]uint64{}
	for _, b := range balances {
		amounts[b.Owner] = b.Amount
	}
	return amounts
}

// TestConformanceBatch has two transfers in one instruction, which leave neither
// inner instructions nor logs: only the balances tell of them.
func TestConformanceBatch(t *testing.T) {
	p := newPair(t)
	payer, alice, bob := p.payer("payer"), p.payer("alice"), p.payer("bob")
	mint, id := p.key("mint"), solana.TokenProgramID
	from, openFrom := associate(t, payer, alice, mint, id)
	to, openTo := associate(t, payer, bob, mint, id)
	p.expect("mint", "null", payer, open(payer, mint, id, mintSize), instruction(id, pack(byte(20), byte(6), alice, byte(0)), writes(mint)))
	p.expect("accounts", "null", payer, openFrom, openTo)
	p.expect("mint to", "null", payer, instruction(id, pack(byte(7), uint64(1000)), writes(mint), writes(from), signs(alice)))
	one := pack(byte(12), uint64(30), byte(6))
	one = pack(byte(4), byte(len(one)), one)
	r := p.expect("batch", "null", payer, instruction(id, pack(byte(255), one, one),
		writes(from), read(mint), writes(to), signs(alice), writes(from), read(mint), writes(to), signs(alice)))
	require.Empty(t, r.Inner)
	require.Equal(t, map[solana.PublicKey]uint64{alice: 940, bob: 60}, byOwner(r.PostTokens))
	require.Zero(t, p.differences)
}

// TestConformanceLimits goes to the edges that random transactions seldom reach.
func TestConformanceLimits(t *testing.T) {
	p := newPair(t)
	payer, mint, id := p.payer("payer"), p.key("mint"), solana.TokenProgramID
	p.expect("mint", "null", payer, open(payer, mint, id, mintSize), instruction(id, pack(byte(20), byte(6), payer, byte(0)), writes(mint)))
	memo := func(text string) solana.Instruction { return instruction(solana.MemoProgramID, []byte(text)) }
	for _, memos := range []int{56, 57, 58, 59, 60, 62, 63} { // opening an account makes four invocations
		owner := p.key(fmt.Sprint("owner ", memos))
		_, openAccount := associate(t, payer, owner, mint, id)
		var list []solana.Instruction
		for range memos {
			list = append(list, memo("m"))
		}
		p.advance()
		p.both(fmt.Sprint(memos, " memos"), p.sign(payer, p.block.LastBlockhash, false, append(list, openAccount)...))
	}
	logs := []solana.Instruction{memo(string(bytes.Repeat([]byte("x"), 900)))}
	p.expect("long log", "null", payer, logs...)
	var many []solana.Instruction
	for range 40 {
		many = append(many, memo("0123456789"))
	}
	p.expect("many logs", "null", payer, many...)
	p.expect("price beyond 64 bits", `"InsufficientFundsForFee"`, payer,
		instruction(computeBudgetProgram, pack(byte(setComputeUnitPrice), ^uint64(0))), instruction(computeBudgetProgram, pack(byte(setComputeUnitLimit), 1_400_000)))
	p.expect("all but the least", "null", payer, pay(payer, p.key("new"), MinimumBalance(0)))
	p.expect("less than the least", `{"InsufficientFundsForRent":{"account_index":1}}`, payer, pay(payer, p.key("newer"), MinimumBalance(0)-1))
	p.expect("empty the payer to less", `{"InsufficientFundsForRent":{"account_index":0}}`, payer,
		pay(payer, p.key("new"), p.accounts[payer].Lamports-lamportsPerSignature-1))
	nonce := p.key("nonce")
	p.expect("nonce", "null", payer, nonceOpen(payer, nonce, payer)...)
	p.expect("nonce of another payer", "null", payer, nonceAdvance(nonce, payer))
	p.expect("a nonce account pays", `"InsufficientFundsForFee"`, nonce, memo("pays"))
	p.expect("a nonce account gets lamports", "null", payer, pay(payer, nonce, 2*lamportsPerSignature))
	p.expect("a nonce account pays", "null", nonce, memo("pays"))
	require.Zero(t, p.differences)
}

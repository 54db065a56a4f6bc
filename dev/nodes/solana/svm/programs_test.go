package svm

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/solana/programs"
)

// tokenChain is a chain on which alice has a million of a mint with six decimals.
func tokenChain(t testing.TB, program solana.PublicKey) (c *chain, payer, alice, mint, from solana.PublicKey) {
	t.Helper()
	c = newChain(t, cachedPrograms(t))
	payer, alice, mint = c.payer("payer"), c.key("alice"), c.key("mint")
	from, openFrom := associate(t, payer, alice, mint, program)
	r := c.send(payer, open(payer, mint, program, mintSize),
		instruction(program, pack(byte(20), byte(6), alice, byte(1), alice), writes(mint)), openFrom,
		instruction(program, pack(byte(7), uint64(1_000_000)), writes(mint), writes(from), signs(alice)))
	require.Nil(t, r.Err, r.Logs)
	return c, payer, alice, mint, from
}

func TestTokensMoveByTheRealProgram(t *testing.T) {
	for name, program := range map[string]solana.PublicKey{"token": solana.TokenProgramID, "token-2022": solana.Token2022ProgramID} {
		t.Run(name, func(t *testing.T) {
			c, payer, alice, mint, from := tokenChain(t, program)
			bob := c.key("bob")
			to, openTo := associate(t, payer, bob, mint, program)
			move := func(amount uint64, by solana.PublicKey) solana.Instruction {
				return instruction(program, pack(byte(12), amount, byte(6)), writes(from), read(mint), writes(to), signs(by))
			}
			r := c.send(payer, openTo, move(400_000, alice))
			require.Nil(t, r.Err, r.Logs)
			require.Equal(t, map[solana.PublicKey]uint64{alice: 600_000, bob: 400_000}, byOwner(r.PostTokens))
			require.Equal(t, map[solana.PublicKey]uint64{alice: 1_000_000}, byOwner(r.PreTokens), "an account that is opened has no entry before")
			require.EqualValues(t, 6, r.PostTokens[0].Decimals)
			require.Equal(t, program, r.PostTokens[0].Program)
			require.Len(t, r.Inner, 1)
			require.Zero(t, r.Inner[0].Index)
			require.Equal(t, program, c.accounts[to].Owner)

			r = c.send(payer, move(600_001, alice))
			require.JSONEq(t, `{"InstructionError":[0,{"Custom":1}]}`, marshal(t, r.Err))
			r = c.send(payer, move(1, bob))
			require.JSONEq(t, `{"InstructionError":[0,{"Custom":4}]}`, marshal(t, r.Err))

			freeze := instruction(program, []byte{10}, writes(to), read(mint), signs(alice))
			require.Nil(t, c.send(payer, freeze).Err)
			r = c.send(payer, move(1, alice))
			require.JSONEq(t, `{"InstructionError":[0,{"Custom":17}]}`, marshal(t, r.Err))
		})
	}
}

func TestProgramsSignForTheirAddressesAlone(t *testing.T) {
	c, payer, _, mint, _ := tokenChain(t, solana.TokenProgramID)
	_, openTo := associate(t, payer, c.key("bob"), mint, solana.TokenProgramID)
	wrong := openTo.Accounts()
	wrong[1].PublicKey = c.key("not the associated address")
	data, err := openTo.Data()
	require.NoError(t, err)
	r := c.send(payer, instruction(openTo.ProgramID(), data, wrong...))
	require.JSONEq(t, `{"InstructionError":[0,"InvalidSeeds"]}`, marshal(t, r.Err))
}

func TestMultisigNeedsItsSigners(t *testing.T) {
	c, payer, alice, mint, from := tokenChain(t, solana.TokenProgramID)
	multisig := c.key("multisig")
	members := []solana.PublicKey{c.key("one"), c.key("two"), c.key("three")}
	r := c.send(payer, open(payer, multisig, solana.TokenProgramID, tokenMultisigSize),
		instruction(solana.TokenProgramID, []byte{19, 2}, writes(multisig), read(members[0]), read(members[1]), read(members[2])),
		instruction(solana.TokenProgramID, pack(byte(6), byte(2), byte(1), multisig), writes(from), signs(alice)))
	require.Nil(t, r.Err, r.Logs)
	burn := func(signers ...solana.PublicKey) solana.Instruction {
		accounts := []*solana.AccountMeta{writes(from), writes(mint), read(multisig)}
		for _, s := range signers {
			accounts = append(accounts, signs(s))
		}
		return instruction(solana.TokenProgramID, pack(byte(8), uint64(1)), accounts...)
	}
	r = c.send(payer, burn(members[0]))
	require.JSONEq(t, `{"InstructionError":[0,"MissingRequiredSignature"]}`, marshal(t, r.Err))
	r = c.send(payer, burn(members[0], members[0]))
	require.JSONEq(t, `{"InstructionError":[0,"MissingRequiredSignature"]}`, marshal(t, r.Err), "one person is not two")
	require.Nil(t, c.send(payer, burn(members[2], members[0])).Err)
}

func TestToken2022TakesItsFeeAndWantsItsMemo(t *testing.T) {
	c := newChain(t, cachedPrograms(t))
	payer, alice, bob, mint := c.payer("payer"), c.key("alice"), c.key("bob"), c.key("mint")
	id := solana.Token2022ProgramID
	from, openFrom := associate(t, payer, alice, mint, id)
	to, openTo := associate(t, payer, bob, mint, id)
	require.Nil(t, c.send(payer, feeMint(payer, mint, alice)...).Err)
	r := c.send(payer, openFrom, openTo, instruction(id, pack(byte(7), uint64(1_000_000)), writes(mint), writes(from), signs(alice)))
	require.Nil(t, r.Err, r.Logs)
	move := instruction(id, pack(byte(12), uint64(100_000), byte(6)), writes(from), read(mint), writes(to), signs(alice))
	r = c.send(payer, move)
	require.Equal(t, map[solana.PublicKey]uint64{alice: 900_000, bob: 99_000}, byOwner(r.PostTokens))
	r = c.send(payer, instruction(id, []byte{29, 8, 0}, writes(to), signsWrite(payer), read(solana.SystemProgramID), signs(bob)),
		instruction(id, []byte{30, 0}, writes(to), signs(bob)))
	require.Nil(t, r.Err, r.Logs)
	c.skip(1)
	r = c.send(payer, move)
	require.JSONEq(t, `{"InstructionError":[0,{"Custom":36}]}`, marshal(t, r.Err))
	require.Nil(t, c.send(payer, instruction(solana.MemoProgramID, []byte("invoice 7")), move).Err)
}

func TestMemoLogsItsTextAndRefusesOther(t *testing.T) {
	c := newChain(t, cachedPrograms(t))
	payer := c.payer("payer")
	r := c.send(payer, instruction(solana.MemoProgramID, []byte("order:7"), signs(payer)))
	require.Nil(t, r.Err)
	require.Contains(t, r.Logs, "Program log: order:7")
	r = c.send(payer, instruction(solana.MemoProgramID, []byte{0xff}))
	require.JSONEq(t, `{"InstructionError":[0,"ProgramFailedToComplete"]}`, marshal(t, r.Err))
	require.Equal(t, "Program "+solana.MemoProgramID.String()+" failed: invalid utf-8 sequence of 1 bytes from index 0: [255]", r.Logs[len(r.Logs)-1])
}

func TestGenesisHasTheProgramsAsClustersHaveThem(t *testing.T) {
	set := cachedPrograms(t)
	m, err := New(set)
	require.NoError(t, err)
	genesis := m.Genesis()
	for _, p := range set {
		a := genesis[p.Address]
		require.True(t, a.Executable)
		require.Equal(t, MinimumBalance(len(a.Data)), a.Lamports)
		if p.Upgradeable {
			holder := genesis[solana.PublicKey(a.Data[4:])]
			require.Equal(t, p.ELF, holder.Data[45:])
		}
	}
}

func TestNewRefusesByteCodeThatItCannotRun(t *testing.T) {
	_, err := New(programs.Set{{Name: "broken", ELF: []byte("\x7fELF")}})
	require.ErrorContains(t, err, "load the program broken")
}

func BenchmarkTransferChecked(b *testing.B) {
	c, payer, alice, mint, from := tokenChain(b, solana.TokenProgramID)
	to, openTo := associate(b, payer, c.key("bob"), mint, solana.TokenProgramID)
	require.Nil(b, c.send(payer, openTo).Err)
	tx, err := Decode(c.sign(payer, c.block.LastBlockhash, false,
		instruction(solana.TokenProgramID, pack(byte(12), uint64(1), byte(6)), writes(from), read(mint), writes(to), signs(alice))))
	require.NoError(b, err)
	for b.Loop() {
		if r := c.machine.Simulate(tx, c.block, c, Simulation{}); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}

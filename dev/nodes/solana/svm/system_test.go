package svm

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

func TestSystemRefuses(t *testing.T) {
	c := newChain(t, nil)
	payer, key, used := c.payer("payer"), c.key("new"), c.payer("used")
	for name, test := range map[string]struct {
		list solana.Instruction
		err  string
	}{
		"no data":               {system(nil), `"InvalidInstructionData"`},
		"unknown instruction":   {system(pack(99)), `"InvalidInstructionData"`},
		"half an amount":        {system(pack(transfer, 5), signsWrite(payer), writes(key)), `"InvalidInstructionData"`},
		"one account":           {system(pack(transfer, uint64(5)), signsWrite(payer)), `"MissingAccount"`},
		"not signed":            {system(pack(transfer, uint64(5)), writes(used), writes(payer)), `"MissingRequiredSignature"`},
		"more than it has":      {pay(payer, key, lamportsOfPlenty+1), `{"Custom":1}`},
		"recipient read-only":   {system(pack(transfer, uint64(5)), signsWrite(payer), read(key)), `"ReadonlyLamportChange"`},
		"account in use":        {open(payer, used, solana.MemoProgramID, 0), `{"Custom":0}`},
		"account too large":     {system(pack(allocate, uint64(maxAccountData+1)), signsWrite(key)), `{"Custom":3}`},
		"account not signed":    {system(pack(allocate, uint64(1)), writes(key)), `"MissingRequiredSignature"`},
		"assign not signed":     {system(pack(assign, solana.MemoProgramID), writes(used)), `"MissingRequiredSignature"`},
		"seed too long":         {system(pack(assignWithSeed, payer, uint64(33), make([]byte, 33), payer), writes(key), signs(payer)), `{"Custom":0}`},
		"seed beyond the data":  {system(pack(assignWithSeed, payer, ^uint64(0), payer), writes(key), signs(payer)), `"InvalidInstructionData"`},
		"seed not of text":      {system(pack(assignWithSeed, payer, uint64(1), []byte{0xff}, payer), writes(key), signs(payer)), `"InvalidInstructionData"`},
		"prefunded, one short":  {system(pack(createPrefunded, uint64(5), uint64(1), payer), signsWrite(key)), `"MissingAccount"`},
		"prefunded, not signed": {system(pack(createPrefunded, uint64(0), uint64(1), payer), writes(key)), `"MissingRequiredSignature"`},
		"seed of another":       {system(pack(assignWithSeed, payer, uint64(1), "s", payer), writes(key), signs(payer)), `{"Custom":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			r := c.send(payer, test.list)
			require.JSONEq(t, `{"InstructionError":[0,`+test.err+`]}`, marshal(t, r.Err))
			require.Equal(t, Failed, r.Outcome)
			c.skip(1)
		})
	}
}

func TestSystemOpensAccounts(t *testing.T) {
	c := newChain(t, nil)
	payer, key := c.payer("payer"), c.key("new")
	require.Equal(t, Succeeded, c.send(payer, open(payer, key, solana.MemoProgramID, 7)).Outcome)
	require.Equal(t, Account{Lamports: MinimumBalance(7), Data: make([]byte, 7), Owner: solana.MemoProgramID, RentEpoch: ^uint64(0)}, c.accounts[key])
	r := c.send(payer, pay(key, payer, 1))
	require.JSONEq(t, `{"InstructionError":[0,"InvalidArgument"]}`, marshal(t, r.Err), "an account with data can't send")
}

func TestSystemOpensAccountsWithSeeds(t *testing.T) {
	c := newChain(t, nil)
	payer, base := c.payer("payer"), c.key("base")
	address, err := withSeed(base, "vault", solana.SystemProgramID)
	require.NoError(t, err)
	known, err := solana.CreateWithSeed(base, "vault", solana.SystemProgramID)
	require.NoError(t, err)
	require.Equal(t, known, address)
	text := pack(uint64(5), "vault")
	r := c.send(payer, system(pack(createAccountWithSeed, base, text, 2*MinimumBalance(0), uint64(0), solana.SystemProgramID),
		signsWrite(payer), writes(address), signs(base)))
	require.Nil(t, r.Err)
	r = c.send(payer, system(pack(transferWithSeed, MinimumBalance(0), text, solana.SystemProgramID), writes(address), signs(base), writes(payer)))
	require.Nil(t, r.Err)
	require.Equal(t, MinimumBalance(0), c.accounts[address].Lamports)
	r = c.send(payer, system(pack(transferWithSeed, MinimumBalance(0), text, solana.SystemProgramID), writes(address), read(base), writes(payer)))
	require.JSONEq(t, `{"InstructionError":[0,"MissingRequiredSignature"]}`, marshal(t, r.Err))
}

func TestAccountsGrowByALimitedAmount(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	grow := func(name string, size int) solana.Instruction {
		return system(pack(allocate, uint64(size)), signsWrite(c.key(name)))
	}
	r := c.send(payer, grow("a", maxAccountData), grow("b", maxAccountData), grow("c", 1))
	require.JSONEq(t, `{"InstructionError":[2,"MaxAccountsDataAllocationsExceeded"]}`, marshal(t, r.Err))
}

// An account is opened where there are lamports already, with and without more of them.
func TestSystemOpensPrefundedAccounts(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	for name, more := range map[string]uint64{"nothing more": 0, "more": 5} {
		key := c.key(name)
		require.Equal(t, Succeeded, c.send(payer, pay(payer, key, MinimumBalance(7))).Outcome)
		c.skip(1)
		accounts := []*solana.AccountMeta{signsWrite(key)}
		if more > 0 {
			accounts = append(accounts, signsWrite(payer))
		}
		require.Equal(t, Succeeded, c.send(payer, system(pack(createPrefunded, more, uint64(7), solana.MemoProgramID), accounts...)).Outcome)
		require.Equal(t, Account{Lamports: MinimumBalance(7) + more, Data: make([]byte, 7), Owner: solana.MemoProgramID, RentEpoch: ^uint64(0)}, c.accounts[key])
		c.skip(1)
	}
}

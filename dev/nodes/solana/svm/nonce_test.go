package svm

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

// nonceChain is a chain with a nonce account of an authority.
func nonceChain(t *testing.T) (c *chain, payer, authority, nonce solana.PublicKey) {
	t.Helper()
	c = newChain(t, nil)
	payer, authority, nonce = c.payer("payer"), c.payer("authority"), c.key("nonce")
	require.Nil(t, c.send(payer, nonceOpen(payer, nonce, authority)...).Err)
	c.skip(1)
	return c, payer, authority, nonce
}

func (c *chain) nonce(key solana.PublicKey) solana.Hash { return nonceValue(c.accounts[key].Data) }

func TestNonceTransactionNeverGetsTooOld(t *testing.T) {
	c, payer, authority, nonce := nonceChain(t)
	first := c.nonce(nonce)
	wire := c.sign(payer, first, false, nonceAdvance(nonce, authority), pay(payer, c.key("to"), 1_000_000))
	c.skip(10 * MaxAge)
	r := c.execute(wire)
	require.Equal(t, Succeeded, r.Outcome)
	require.True(t, r.NonceAdvanced)
	require.Equal(t, DurableNonce(c.block.LastBlockhash), c.nonce(nonce))
	require.EqualValues(t, 10_000, r.Fee)

	c.seen = map[solana.Signature]bool{} // even a chain that forgot it doesn't run it again
	c.skip(1)
	r = c.execute(wire)
	require.Equal(t, Rejected, r.Outcome)
	require.Equal(t, BlockhashNotFound, r.Err.Kind)
}

func TestFailedNonceTransactionUsesItUp(t *testing.T) {
	c, payer, authority, nonce := nonceChain(t)
	wire := c.sign(payer, c.nonce(nonce), false, nonceAdvance(nonce, authority), pay(payer, c.key("to"), lamportsOfPlenty))
	r := c.execute(wire)
	require.Equal(t, Failed, r.Outcome)
	require.JSONEq(t, `{"InstructionError":[1,{"Custom":1}]}`, marshal(t, r.Err))
	require.True(t, r.NonceAdvanced)
	require.Equal(t, DurableNonce(c.block.LastBlockhash), c.nonce(nonce))
	require.Len(t, r.Changed, 2)
	require.Equal(t, MinimumBalance(nonceSize), c.accounts[nonce].Lamports)
	c.skip(1)
	require.Equal(t, Rejected, c.execute(wire).Outcome)
}

func TestNonceThatPaysItsOwnFee(t *testing.T) {
	c, payer, _, _ := nonceChain(t)
	nonce := c.key("rich nonce")
	require.Nil(t, c.send(payer, append(nonceOpen(payer, nonce, nonce), pay(payer, nonce, 20_000))...).Err)
	c.skip(1)
	r := c.execute(c.sign(nonce, c.nonce(nonce), false, nonceAdvance(nonce, nonce), pay(payer, c.key("to"), lamportsOfPlenty)))
	require.Equal(t, Failed, r.Outcome)
	require.Equal(t, MinimumBalance(nonceSize)+20_000-r.Fee, c.accounts[nonce].Lamports)
	require.Equal(t, DurableNonce(c.block.LastBlockhash), c.nonce(nonce))
}

func TestNonceRefuses(t *testing.T) {
	c, payer, authority, nonce := nonceChain(t)
	hashes, rent := read(solana.SysVarRecentBlockHashesPubkey), read(solana.SysVarRentPubkey)
	withdraw := func(lamports uint64, by solana.PublicKey) solana.Instruction {
		return system(pack(withdrawNonceAccount, lamports), writes(nonce), writes(payer), hashes, rent, signs(by))
	}
	for name, test := range map[string]struct {
		list []solana.Instruction
		err  string
	}{
		"another authority":   {[]solana.Instruction{nonceAdvance(nonce, payer)}, `[0,"MissingRequiredSignature"]`},
		"twice in a block":    {[]solana.Instruction{nonceAdvance(nonce, authority), nonceAdvance(nonce, authority)}, `[1,{"Custom":7}]`},
		"no nonce account":    {[]solana.Instruction{nonceAdvance(payer, authority)}, `[0,"InvalidAccountData"]`},
		"initialised again":   {[]solana.Instruction{system(pack(initializeNonceAccount, payer), writes(nonce), hashes, rent)}, `[0,"InvalidAccountData"]`},
		"authorised by other": {[]solana.Instruction{system(pack(authorizeNonceAccount, payer), writes(nonce), signs(payer))}, `[0,"MissingRequiredSignature"]`},
		"withdrawn by other":  {[]solana.Instruction{withdraw(MinimumBalance(nonceSize), payer)}, `[0,"MissingRequiredSignature"]`},
		"withdrawn in part":   {[]solana.Instruction{withdraw(1, authority)}, `[0,"InsufficientFunds"]`},
		"withdrawn too much":  {[]solana.Instruction{withdraw(^uint64(0), authority)}, `[0,"InsufficientFunds"]`},
		"another sysvar":      {[]solana.Instruction{system(pack(advanceNonceAccount), writes(nonce), rent, signs(authority))}, `[0,"InvalidArgument"]`},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			r := c.send(payer, test.list...)
			require.JSONEq(t, `{"InstructionError":`+test.err+`}`, marshal(t, r.Err))
			c.skip(1)
		})
	}
	require.Nil(t, c.send(payer, withdraw(MinimumBalance(nonceSize), authority)).Err)
	require.NotContains(t, c.accounts, nonce)
}

func TestNonceOfAnotherOrUnsignedIsNoNonce(t *testing.T) {
	c, payer, authority, nonce := nonceChain(t)
	value := c.nonce(nonce)
	for name, wire := range map[string][]byte{
		"not the first instruction": c.sign(payer, value, false, pay(payer, payer, 1), nonceAdvance(nonce, authority)),
		"authority that is another": c.sign(payer, value, false, nonceAdvance(nonce, payer)),
		"nonce that is another":     c.sign(payer, solana.Hash{9}, false, nonceAdvance(nonce, authority)),
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			require.Equal(t, BlockhashNotFound, c.execute(wire).Err.Kind)
		})
	}
}

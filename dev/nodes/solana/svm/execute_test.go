package svm

import (
	"math"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

func TestTransferPaysTheFee(t *testing.T) {
	c := newChain(t, nil)
	payer, to := c.payer("payer"), c.key("to")
	r := c.send(payer, pay(payer, to, 5_000_000))
	require.Equal(t, Succeeded, r.Outcome)
	require.Nil(t, r.Err)
	require.EqualValues(t, 5000, r.Fee)
	require.EqualValues(t, 150, r.Units)
	require.EqualValues(t, lamportsOfPlenty-5_005_000, c.accounts[payer].Lamports)
	require.EqualValues(t, 5_000_000, c.accounts[to].Lamports)
	require.Equal(t, []uint64{lamportsOfPlenty, 0, 1}, r.PreBalances)
	require.Equal(t, []string{
		"Program 11111111111111111111111111111111 invoke [1]",
		"Program 11111111111111111111111111111111 success",
	}, r.Logs)
}

func TestFailedTransactionPaysTheFeeAndNothingElse(t *testing.T) {
	c := newChain(t, nil)
	payer, to := c.payer("payer"), c.key("to")
	r := c.send(payer, pay(payer, to, 5_000_000), pay(payer, to, lamportsOfPlenty))
	require.Equal(t, Failed, r.Outcome)
	require.JSONEq(t, `{"InstructionError":[1,{"Custom":1}]}`, marshal(t, r.Err))
	require.Equal(t, "Error processing Instruction 1: custom program error: 0x1", r.Err.Error())
	require.EqualValues(t, lamportsOfPlenty-5000, c.accounts[payer].Lamports)
	require.NotContains(t, c.accounts, to)
	require.Len(t, r.Changed, 1)
	checkFailureLeavesNoTrace(t, r, payer)
}

func checkFailureLeavesNoTrace(t *testing.T, r Result, payer solana.PublicKey) {
	t.Helper()
	require.Contains(t, r.Changed, payer)
	for i, before := range r.PreBalances {
		if i == 0 {
			before -= r.Fee
		}
		require.Equal(t, before, r.PostBalances[i])
	}
}

func TestRejectedTransactionsChangeNothing(t *testing.T) {
	c := newChain(t, nil)
	payer, to := c.payer("payer"), c.key("to")
	old := c.block.LastBlockhash
	poor := c.key("poor")
	c.accounts[poor] = Account{Lamports: MinimumBalance(0) + 5000}
	owned := c.key("owned")
	c.accounts[owned] = Account{Lamports: lamportsOfPlenty, Owner: solana.MemoProgramID}
	c.skip(MaxAge)
	require.Equal(t, Succeeded, c.execute(c.sign(payer, old, false, pay(payer, to, 2_000_000))).Outcome, "150 blocks are not too old")
	c.skip(1)
	same := c.sign(payer, c.block.LastBlockhash, false, pay(payer, to, 1))
	require.Equal(t, Succeeded, c.execute(same).Outcome)
	budget := func(data ...byte) solana.Instruction { return instruction(computeBudgetProgram, data) }
	for name, test := range map[string]struct {
		wire []byte
		err  string
	}{
		"too old":             {c.sign(payer, old, false, pay(payer, to, 1)), `"BlockhashNotFound"`},
		"executed before":     {same, `"AlreadyProcessed"`},
		"unknown payer":       {c.sign(c.key("nobody"), c.block.LastBlockhash, false, pay(payer, to, 1)), `"AccountNotFound"`},
		"fee not affordable":  {c.sign(poor, c.block.LastBlockhash, false, budget(3, 0, 0, 0, 0, 0, 1, 0, 0)), `"InsufficientFundsForFee"`},
		"payer left too poor": {c.sign(poor, c.block.LastBlockhash, false, pay(payer, to, 1)), `{"InsufficientFundsForRent":{"account_index":0}}`},
		"payer of a program":  {c.sign(owned, c.block.LastBlockhash, false, pay(payer, to, 1)), `"InvalidAccountForFee"`},
		"budget twice":        {c.sign(payer, c.block.LastBlockhash, false, budget(2, 1, 0, 0, 0), budget(2, 1, 0, 0, 0)), `{"DuplicateInstruction":1}`},
		"budget unknown":      {c.sign(payer, c.block.LastBlockhash, false, budget(9)), `{"InstructionError":[0,"InvalidInstructionData"]}`},
		"heap too large":      {c.sign(payer, c.block.LastBlockhash, false, budget(1, 0, 4, 4, 0)), `{"InstructionError":[0,"InvalidInstructionData"]}`},
		"no accounts to load": {c.sign(payer, c.block.LastBlockhash, false, budget(4, 0, 0, 0, 0)), `"InvalidLoadedAccountsDataSizeLimit"`},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := Decode(test.wire)
			require.NoError(t, err)
			r := c.machine.Execute(tx, c.block, c)
			require.JSONEq(t, test.err, marshal(t, r.Err))
			require.Equal(t, Rejected, r.Outcome)
			require.Empty(t, r.Changed)
			require.Empty(t, r.Logs)
		})
	}
}

func TestTransactionsThatCannotBeLoadedPayTheFee(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	small := instruction(computeBudgetProgram, []byte{4, 100, 0, 0, 0})
	for want, list := range map[string][]solana.Instruction{
		`"ProgramAccountNotFound"`:            {instruction(c.key("nobody"), nil)},
		`"InvalidProgramForExecution"`:        {instruction(c.payer("somebody"), nil)},
		`"MaxLoadedAccountsDataSizeExceeded"`: {small, pay(payer, payer, 1)},
	} {
		before := c.accounts[payer].Lamports
		r := c.send(payer, list...)
		require.JSONEq(t, want, marshal(t, r.Err))
		require.Equal(t, Failed, r.Outcome)
		require.Equal(t, before-5000, c.accounts[payer].Lamports)
		require.Empty(t, r.Logs)
		c.skip(1)
	}
}

func TestFee(t *testing.T) {
	for name, test := range map[string]struct {
		b    budget
		keys int
		want uint64
	}{
		"no bid":           {budget{units: 200_000}, 1, 5000},
		"three signatures": {budget{units: 200_000}, 3, 15_000},
		"rounded up":       {budget{units: 1, price: 1}, 1, 5001},
		"exact":            {budget{units: 60_000, price: 1_000_000}, 1, 65_000},
		"beyond 64 bits":   {budget{units: maxUnits, price: math.MaxUint64}, 1, math.MaxUint64},
		"at the end":       {budget{units: 1_000_000, price: math.MaxUint64}, 1, math.MaxUint64},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.b.fee(test.keys)) })
	}
}

func TestNoAccountMayEndBelowTheMinimum(t *testing.T) {
	c := newChain(t, nil)
	payer, to := c.payer("payer"), c.key("to")
	require.EqualValues(t, 890_880, MinimumBalance(0))
	require.EqualValues(t, 2_039_280, MinimumBalance(165))
	r := c.send(payer, pay(payer, to, MinimumBalance(0)-1))
	require.JSONEq(t, `{"InsufficientFundsForRent":{"account_index":1}}`, marshal(t, r.Err))
	require.Equal(t, Failed, r.Outcome)
	r = c.send(payer, pay(payer, to, MinimumBalance(0)))
	require.Equal(t, Succeeded, r.Outcome)
	r = c.send(payer, pay(to, payer, MinimumBalance(0)))
	require.Equal(t, Succeeded, r.Outcome, "an account may be emptied")
	require.NotContains(t, c.accounts, to)
}

func TestUnitsRunOut(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	r := c.send(payer, instruction(computeBudgetProgram, []byte{2, 0x2b, 1, 0, 0}), pay(payer, payer, 1), pay(payer, payer, 1)) // 299 units
	require.JSONEq(t, `{"InstructionError":[1,"ComputationalBudgetExceeded"]}`, marshal(t, r.Err))
	require.EqualValues(t, 299, r.Units)
}

func TestSimulationReplacesTheBlockhash(t *testing.T) {
	c := newChain(t, nil)
	payer := c.payer("payer")
	tx, err := Decode(c.sign(payer, solana.Hash{1}, false, pay(payer, payer, 1)))
	require.NoError(t, err)
	require.Equal(t, BlockhashNotFound, c.machine.Simulate(tx, c.block, c, Simulation{}).Err.Kind)
	r := c.machine.Simulate(tx, c.block, c, Simulation{ReplaceBlockhash: true})
	require.Equal(t, Succeeded, r.Outcome)
	require.Len(t, r.Touched, len(tx.Keys()))
	require.Equal(t, solana.Hash{1}, tx.Message.RecentBlockhash, "the transaction stays as it was")
	require.EqualValues(t, lamportsOfPlenty, c.accounts[payer].Lamports)
}

func TestStateIsNeverChangedInPlace(t *testing.T) {
	c := newChain(t, nil)
	payer, nonce := c.payer("payer"), c.key("nonce")
	require.Equal(t, Succeeded, c.send(payer, nonceOpen(payer, nonce, payer)...).Outcome)
	kept := c.accounts[nonce]
	was := string(kept.Data)
	c.skip(1)
	require.Equal(t, Succeeded, c.send(payer, nonceAdvance(nonce, payer)).Outcome)
	require.Equal(t, was, string(kept.Data))
	require.NotEqual(t, was, string(c.accounts[nonce].Data))
}

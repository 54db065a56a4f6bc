package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// joint is an account that some of its owners control, with what pays for its transactions.
type jointAccount struct {
	*sharedHarness
	owners  []chaintest.Account
	payer   chaintest.Account
	address string
}

// newJointAccount opens an account of so many owners with 30 USDT.
func newJointAccount(t *testing.T, owners, threshold int) *jointAccount {
	t.Helper()
	a := &jointAccount{sharedHarness: &sharedHarness{solanaHarness: startSolana(t, solanaPrograms(t))}}
	for range owners {
		a.owners = append(a.owners, a.NewAccount(t))
	}
	a.address, a.payer = a.NewMultisig(t, a.owners, uint32(threshold)), a.Payer(t)
	a.Fund(t, a.address, money.Must(money.USDT, "30"))
	return a
}

// draft is a payment that the first owners sign.
func (a *jointAccount) draft(t *testing.T, to, amount string, signers ...chaintest.Account) chain.JointDraft {
	t.Helper()
	q, err := a.client.Quorum(t.Context(), a.address)
	if err != nil {
		t.Fatal(err)
	}
	d := chain.JointDraft{Account: a.address, Quorum: q, Transfer: &chain.Transfer{From: a.address, To: to, Amount: money.Must(money.USDT, amount)}}
	for _, s := range signers {
		d.Signers = append(d.Signers, s.Address)
	}
	return a.Complete(t, d, a.payer)
}

func (a *jointAccount) prepare(t *testing.T, d chain.JointDraft) chain.Joint {
	t.Helper()
	j, err := a.client.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (a *jointAccount) signatures(t *testing.T, j chain.Joint, signers ...chaintest.Account) []chain.OwnerSignature {
	t.Helper()
	var all []chain.OwnerSignature
	for _, s := range signers {
		raw, err := s.Key.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		one, err := a.client.Signature(j, raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func (a *jointAccount) execution(t *testing.T, j chain.Joint, signatures []chain.OwnerSignature) chain.Signed {
	t.Helper()
	x, err := a.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{Payer: a.payer.Address})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := a.client.SignExecution(x, a.payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (a *jointAccount) outcome(t *testing.T, j chain.Joint, want chain.JointState, id string) {
	t.Helper()
	o, err := a.client.Outcome(t.Context(), j)
	if err != nil || o.State != want || o.TxID != id {
		t.Fatalf("the outcome is %+v, %v; want %s by %q", o, err, want, id)
	}
}

// judge is what the ledger finds about an execution that it recorded.
func (a *jointAccount) judge(t *testing.T, signed chain.Signed) chain.Verdict {
	t.Helper()
	f, err := chain.Inquire(t.Context(), a.client, exchange.ChainAttempt{
		TxID: signed.TxID, RefBlock: signed.RefBlock, NonceAccount: signed.NonceAccount, NonceBlock: signed.NonceBlock,
	}, signed.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Judge(f)
}

// advance ends everything that was signed with the nonce's value.
func (a *jointAccount) advance(t *testing.T) chain.Signed {
	t.Helper()
	return a.run(t, chain.Draft{
		Transfer: chain.Transfer{From: a.payer.Address, To: a.nonces[a.payer.Address], Amount: money.Must(money.SOL, "0.000000001")}, Step: chain.NonceAdvance,
	}, a.payer.Key)
}

func (a *jointAccount) has(t *testing.T, address, want string) {
	t.Helper()
	if b, err := a.client.Balance(t.Context(), address, money.USDT); err != nil || !b.Amount.Equal(money.Must(money.USDT, want)) {
		t.Errorf("%s has %s, want %s (%v)", address, b.Amount, want, err)
	}
}

// A payment waits for days while its owners sign, and is cancelled by the fee payer alone. What was signed is worth nothing
// from then on, even if an execution was signed before.
func TestSolanaJointIsCancelled(t *testing.T) {
	t.Parallel()
	a := newJointAccount(t, 3, 2)
	to := a.NewAccount(t)
	j := a.prepare(t, a.draft(t, to.Address, "10", a.owners[:2]...))
	for range 4 {
		a.Mine(t, 100)
	}
	a.Finalise(t)
	all := a.signatures(t, j, a.owners[:2]...)
	signed := a.execution(t, j, all)
	a.outcome(t, j, chain.JointOpen, "")
	cancelled := a.advance(t)
	a.outcome(t, j, chain.JointSuperseded, cancelled.TxID)
	if _, err := a.client.PrepareExecution(t.Context(), j, all, chain.ExecutionDraft{}); chain.ReasonOf(err) != chain.ReasonReverts {
		t.Errorf("executed after it was cancelled: %v", err)
	}
	if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 3)
	a.Finalise(t)
	if got := a.judge(t, signed); got != chain.VerdictRebuild {
		t.Errorf("the verdict is %s after the nonce changed", got)
	}
	a.has(t, to.Address, "0")
	a.has(t, a.address, "30")
	again := a.prepare(t, a.draft(t, to.Address, "10", a.owners[1:]...)) // by the new value
	executed := a.execution(t, again, a.signatures(t, again, a.owners[1:]...))
	if _, err := a.client.Broadcast(t.Context(), executed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.Finalise(t)
	a.outcome(t, again, chain.JointExecuted, executed.TxID)
	a.outcome(t, j, chain.JointSuperseded, cancelled.TxID)
	a.has(t, to.Address, "10")
}

// Any m of n owners can sign one proposal: each choice is a message of its own, and they exclude each other.
func TestSolanaJointOfAnyOwners(t *testing.T) {
	t.Parallel()
	a := newJointAccount(t, 3, 2)
	to := a.NewAccount(t)
	var choices []chain.Joint
	var executions []chain.Signed
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		signers := []chaintest.Account{a.owners[pair[0]], a.owners[pair[1]]}
		j := a.prepare(t, a.draft(t, to.Address, "10", signers...))
		choices, executions = append(choices, j), append(executions, a.execution(t, j, a.signatures(t, j, signers...)))
	}
	for _, signed := range executions {
		if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
			t.Fatal(err)
		}
	}
	a.Mine(t, 3)
	a.Finalise(t)
	a.has(t, to.Address, "10")
	a.has(t, a.address, "20")
	paid := 0
	for i, j := range choices {
		o, err := a.client.Outcome(t.Context(), j)
		switch {
		case err == nil && o.State == chain.JointExecuted && o.TxID == executions[i].TxID:
			paid++
		case err != nil || o.State != chain.JointSuperseded:
			t.Errorf("the outcome is %+v, %v", o, err)
		}
	}
	if paid != 1 {
		t.Errorf("%d of them were executed", paid)
	}
}

// Eleven owners, of whom six sign, are the most that a transaction has room for.
func TestSolanaJointOfElevenOwners(t *testing.T) {
	t.Parallel()
	a := newJointAccount(t, 11, 6)
	to := a.NewAccount(t)
	signers := []chaintest.Account{a.owners[10], a.owners[0], a.owners[7], a.owners[3], a.owners[5], a.owners[8]}
	j := a.prepare(t, a.draft(t, to.Address, "30", signers...))
	signed := a.execution(t, j, a.signatures(t, j, signers...))
	if size := len(signed.Raw); size > 1232 || size < 1232-97 {
		t.Errorf("the transaction has %d bytes", size)
	}
	if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.Finalise(t)
	a.outcome(t, j, chain.JointExecuted, signed.TxID)
	a.has(t, to.Address, "30")
	a.has(t, a.address, "0")
}

// What others do with the nonce account's address does not hide what became of a transaction.
func TestSolanaJointAmongStrangers(t *testing.T) {
	t.Parallel()
	a := newJointAccount(t, 2, 2)
	to := a.NewAccount(t)
	j := a.prepare(t, a.draft(t, to.Address, "10"))
	stranger := a.Sponsor(t)
	key := sdk.PrivateKey(stranger.Key.(ed25519Key).PrivateKey)
	name := func(memo string) {
		t.Helper()
		a.send(t, []sdk.PrivateKey{key},
			sdk.NewInstruction(sdk.MemoProgramID, nil, []byte(memo)),
			system.NewTransferInstruction(1, key.PublicKey(), solanaKey(t, j.NonceAccount)).Build())
	}
	for i := range 5 {
		name(fmt.Sprint("before ", i))
	}
	a.outcome(t, j, chain.JointOpen, "")
	signed := a.execution(t, j, a.signatures(t, j, a.owners...))
	if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.outcome(t, j, chain.JointIncluded, signed.TxID)
	for i := range 5 {
		name(fmt.Sprint("after ", i))
	}
	a.Finalise(t)
	a.outcome(t, j, chain.JointExecuted, signed.TxID)
}

// An account is opened although someone sent SOL to its address and opened its token account before. It can be opened once,
// and only for the owners to whom its address leads.
func TestSolanaOpensForTheseOwners(t *testing.T) {
	t.Parallel()
	h := &sharedHarness{solanaHarness: startSolana(t, solanaPrograms(t))}
	by, owners := h.Sponsor(t), []chaintest.Account{h.NewAccount(t), h.NewAccount(t)}
	d := h.openingOf(t, by, owners, 2)
	h.Fund(t, d.To, money.Must(money.SOL, "0.001"))
	h.Fund(t, d.To, money.Must(money.USDC, "3"))
	signed := h.offer(t, d, by.Key)
	if q, err := h.client.Quorum(t.Context(), d.To); err != nil || !q.Moving {
		t.Errorf("before its block is final: %+v, %v", q, err)
	}
	h.Finalise(t)
	if got := h.verdict(t, signed); got != chain.VerdictSucceeded {
		t.Fatalf("the verdict is %s", got)
	}
	if l, err := h.client.Locate(t.Context(), signed.TxID); err != nil || l.Fee.Cmp(signed.FeeLimit) > 0 {
		t.Errorf("it cost %s, at most %s (%v)", l.Fee, signed.FeeLimit, err)
	}
	q, err := h.client.Quorum(t.Context(), d.To)
	if err != nil || q.Moving || q.Threshold != 2 || len(q.Owners) != 2 {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := h.client.Prepare(t.Context(), d); chain.ReasonOf(err) != chain.ReasonReverts {
		t.Errorf("opened twice: %v", err)
	}
	if b, err := h.client.Balance(t.Context(), d.To, money.USDC); err != nil || !b.Amount.Equal(money.Must(money.USDC, "3")) {
		t.Errorf("it holds %s (%v)", b.Amount, err)
	}
}

// offCurve opens an account of several owners at an address without a key, as others may.
func offCurve(t *testing.T, h *sharedHarness, owners []chaintest.Account) string {
	t.Helper()
	by := h.Sponsor(t)
	key := sdk.PrivateKey(by.Key.(ed25519Key).PrivateKey)
	for i := range 64 {
		seed := fmt.Sprint("seed ", i)
		address, err := sdk.CreateWithSeed(key.PublicKey(), seed, sdk.TokenProgramID)
		if err != nil {
			t.Fatal(err)
		}
		if address.IsOnCurve() {
			continue
		}
		var keys []sdk.PublicKey
		for _, o := range owners {
			keys = append(keys, solanaKey(t, o.Address))
		}
		h.send(t, []sdk.PrivateKey{key},
			system.NewCreateAccountWithSeedInstruction(key.PublicKey(), seed, 10_000_000, 355, sdk.TokenProgramID, key.PublicKey(), address, key.PublicKey()).Build(),
			token.NewInitializeMultisig2Instruction(2, address, keys).Build())
		h.Finalise(t)
		return address.String()
	}
	t.Fatal("every seed leads to the curve")
	return ""
}

// Tokens are paid to an account of several owners as to a wallet, whether its address has a key or not, and its owners can pay
// them on. SOL is refused, and so is an account that is not initialised.
func TestSolanaPaysSeveralOwners(t *testing.T) {
	t.Parallel()
	a := newJointAccount(t, 3, 2)
	from, bare := a.NewAccount(t), a.raw(t, 355)
	a.Fund(t, from.Address, money.Must(money.USDT, "100"))
	a.Fund(t, from.Address, money.Must(money.SOL, "1"))
	keyless := offCurve(t, a.sharedHarness, a.owners)
	draft := func(to string, amount money.Amount) chain.Draft {
		return chain.Draft{Transfer: chain.Transfer{From: from.Address, To: to, Amount: amount}, FeePayer: a.payer.Address}
	}
	for _, to := range []string{a.address, keyless} {
		signed := a.sign(t, from, a.payer, to, money.Must(money.USDT, "7"))
		if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
			t.Fatal(err)
		}
		a.Mine(t, 1)
		a.Finalise(t)
		if got := a.verdict(t, signed); got != chain.VerdictSucceeded {
			t.Fatalf("to %s: %s", to, got)
		}
		l, err := a.client.Locate(t.Context(), signed.TxID)
		if err != nil {
			t.Fatal(err)
		}
		b, err := a.client.Transfers(t.Context(), l.Block.Number)
		if err != nil || !slices.ContainsFunc(b.Movements, func(m chain.Movement) bool {
			return m.From == from.Address && m.To == to && m.Amount.Equal(money.Must(money.USDT, "7"))
		}) {
			t.Errorf("the deposit is not among %+v, %v", b.Movements, err)
		}
		if _, err := a.client.Prepare(t.Context(), draft(to, money.Must(money.SOL, "0.1"))); chain.ReasonOf(err) != chain.ReasonAddress {
			t.Errorf("SOL to %s: %v", to, err)
		}
	}
	a.has(t, a.address, "37")
	a.has(t, keyless, "7")
	if _, err := a.client.Prepare(t.Context(), draft(bare, money.Must(money.USDT, "1"))); chain.ReasonOf(err) != chain.ReasonAddress {
		t.Errorf("to an account that is not initialised: %v", err)
	}
	holder := solanaATA(t, solanaKey(t, from.Address), solanaKey(t, solananode.USDTAddress)).String()
	if _, err := a.client.Prepare(t.Context(), draft(holder, money.Must(money.USDT, "1"))); chain.ReasonOf(err) != chain.ReasonAddress {
		t.Errorf("to a token account without a key: %v", err)
	}
	if _, err := a.client.Balance(t.Context(), holder, money.USDT); chain.ReasonOf(err) != chain.ReasonAddress {
		t.Errorf("the balance of a token account without a key: %v", err)
	}
	a.address = keyless
	j := a.prepare(t, a.draft(t, from.Address, "7", a.owners[1:]...))
	signed := a.execution(t, j, a.signatures(t, j, a.owners[1:]...))
	if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.Finalise(t)
	a.outcome(t, j, chain.JointExecuted, signed.TxID)
	a.has(t, keyless, "0")
}

// The owners of an account on Solana never change: all its tokens go to another one.
func TestSolanaOwnersMoveToAnotherAccount(t *testing.T) {
	t.Parallel()
	a := newJointAccount(t, 3, 2)
	d := a.draft(t, a.payer.Address, "1", a.owners[:2]...)
	d.Transfer, d.Owners = nil, &chain.OwnersChange{Owners: ownersOf(a.owners[:2]), Threshold: 2}
	if _, err := a.client.PrepareJoint(t.Context(), d); chain.ReasonOf(err) != chain.ReasonUnsupported || !strings.Contains(err.Error(), "Open another account") {
		t.Errorf("a change of owners: %v", err)
	}
	owners := []chaintest.Account{a.owners[1], a.owners[2], a.NewAccount(t)}
	next := a.NewMultisig(t, owners, 3)
	j := a.prepare(t, a.draft(t, next, "30", a.owners[:2]...))
	signed := a.execution(t, j, a.signatures(t, j, a.owners[:2]...))
	if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.Finalise(t)
	a.outcome(t, j, chain.JointExecuted, signed.TxID)
	a.has(t, next, "30")
}

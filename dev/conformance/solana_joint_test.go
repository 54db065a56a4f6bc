package conformance

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/solana"
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

// jointPeer runs @solana/web3.js and @solana/spl-token on one request, in a process without a network.
func jointPeer(t *testing.T) func(request, response any) {
	t.Helper()
	if os.Getenv("KIVUKO_PEERS") == "" {
		t.Skip("the clients from npm are run by `make conformance`, which sets KIVUKO_PEERS=1")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix", dir,
		"@solana/web3.js@1.98.4", "@solana/spl-token@0.4.15").CombinedOutput(); err != nil {
		t.Skipf("npm can't fetch the clients: %v\n%s", err, out)
	}
	return func(request, response any) {
		t.Helper()
		in, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "node", "testdata/solana_joint.mjs", dir)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		if err == nil {
			err = json.Unmarshal(out, response)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func secretOf(a chaintest.Account) []byte { return a.Key.(ed25519Key).PrivateKey }

// TestSolanaJointWithWeb3 shares the work with the clients that wallets are built of. They read our message as the payment that
// it is, sign it, and put our signatures into a transaction. We read an account that they open, and carry out what they signed.
// A payment that they make with the nonce's value takes the place of ours.
func TestSolanaJointWithWeb3(t *testing.T) {
	t.Parallel()
	ask := jointPeer(t)
	a := newJointAccount(t, 3, 2)
	to := a.NewAccount(t)
	type read struct {
		Signatures         map[string][]byte
		Owner, Destination string
		Amount             string
		Signers            []string
		Nonce, Authority   string
		Transaction        []byte
		Address            string
	}
	first := a.prepare(t, a.draft(t, to.Address, "10", a.owners[:2]...))
	var theirs read
	ask(map[string]any{"op": "sign", "message": first.Body, "keys": [][]byte{secretOf(a.owners[0]), secretOf(a.owners[1])}}, &theirs)
	if theirs.Owner != a.address || theirs.Amount != "10000000" || !slices.Equal(theirs.Signers, first.Signers) ||
		theirs.Nonce != first.NonceAccount || theirs.Authority != a.payer.Address ||
		theirs.Destination != solanaATA(t, solanaKey(t, to.Address), solanaKey(t, solananode.USDTAddress)).String() {
		t.Errorf("they read %+v", theirs)
	}
	var all []chain.OwnerSignature
	for owner, raw := range theirs.Signatures {
		one, err := a.client.Signature(first, raw)
		if err != nil || one.Owner != owner {
			t.Fatalf("their signature of %s is read as %+v, %v", owner, one, err)
		}
		all = append(all, one)
	}
	signed := a.execution(t, first, all)
	if _, err := a.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.Finalise(t)
	a.outcome(t, first, chain.JointExecuted, signed.TxID)

	second := a.prepare(t, a.draft(t, to.Address, "5", a.owners[1:]...))
	given := map[string][]byte{}
	for _, s := range a.signatures(t, second, a.owners[1:]...) {
		given[s.Owner] = s.Signature
	}
	var whole read
	ask(map[string]any{"op": "complete", "message": second.Body, "signatures": given, "keys": [][]byte{secretOf(a.payer)}}, &whole)
	tx, err := sdk.TransactionFromBytes(whole.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Broadcast(t.Context(), whole.Transaction); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.Finalise(t)
	a.outcome(t, second, chain.JointExecuted, tx.Signatures[0].String())
	a.has(t, to.Address, "15")
	a.webPaysFirst(t, ask, to)
}

// webPaysFirst has them open an account of their own and pay out of it with the nonce's value, before our payment.
func (a *jointAccount) webPaysFirst(t *testing.T, ask func(request, response any), to chaintest.Account) {
	t.Helper()
	var made struct {
		Address     string
		Transaction []byte
	}
	latest := a.blockhash(t)
	ask(map[string]any{
		"op": "open", "blockhash": latest, "keys": [][]byte{secretOf(a.payer)}, "threshold": 2,
		"owners": []string{a.owners[0].Address, a.owners[1].Address, a.owners[2].Address},
	}, &made)
	if _, err := a.client.Broadcast(t.Context(), made.Transaction); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	q, err := a.client.Quorum(t.Context(), made.Address)
	if err != nil || !q.Moving || len(q.Owners) != 3 || q.Threshold != 2 {
		t.Errorf("the account that they opened: %+v, %v", q, err)
	}
	a.Finalise(t)
	if q, err = a.client.Quorum(t.Context(), made.Address); err != nil || q.Moving {
		t.Errorf("the account that they opened: %+v, %v", q, err)
	}
	a.address = made.Address
	a.Fund(t, a.address, money.Must(money.USDT, "20"))
	ours := a.prepare(t, a.draft(t, to.Address, "8", a.owners[:2]...))
	mint := solanaKey(t, solananode.USDTAddress)
	ask(map[string]any{
		"op": "pay", "nonce": ours.NonceAccount, "value": ours.RefBlock, "multisig": a.address, "amount": 6_000_000, "mint": mint.String(),
		"source": solanaATA(t, solanaKey(t, a.address), mint).String(), "destination": solanaATA(t, solanaKey(t, to.Address), mint).String(),
		"keys": [][]byte{secretOf(a.payer), secretOf(a.owners[0]), secretOf(a.owners[2])},
	}, &made)
	tx, err := sdk.TransactionFromBytes(made.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Broadcast(t.Context(), made.Transaction); err != nil {
		t.Fatal(err)
	}
	a.Mine(t, 1)
	a.outcome(t, ours, chain.JointOpen, "")
	a.Finalise(t)
	a.outcome(t, ours, chain.JointSuperseded, tx.Signatures[0].String())
	a.has(t, to.Address, "21")
	a.has(t, a.address, "14")
}

// TestSolanaJointOnLitesvm has an independent virtual machine open an account of several owners at an address that was funded
// before, execute what two of three owners signed, and refuse what two others signed with the same value of the nonce.
func TestSolanaJointOnLitesvm(t *testing.T) {
	t.Parallel()
	peer, url := startLitesvm(t)
	client, err := solana.New(solana.Config{
		Nodes: []solana.Endpoint{{URL: url}}, Genesis: solananode.GenesisHash().String(), Tokens: solanaMints, MaxHeadAge: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a := &jointAccount{sharedHarness: &sharedHarness{solanaHarness: &solanaHarness{client: client}}}
	a.payer = a.NewAccount(t)
	for range 3 {
		a.owners = append(a.owners, a.NewAccount(t))
	}
	to := a.NewAccount(t)
	const sol, rent = 1_000_000_000, 2_039_280
	mints := []sdk.PublicKey{solanaKey(t, solananode.USDTAddress), solanaKey(t, solananode.USDCAddress)}
	for _, mint := range mints {
		data := make([]byte, 82)
		data[44], data[45] = 6, 1
		peer.set(t, mint, rent, sdk.TokenProgramID, data)
	}
	peer.set(t, solanaKey(t, a.payer.Address), sol, sdk.SystemProgramID, nil)
	opening := a.openingOf(t, a.payer, a.owners, 2)
	peer.set(t, solanaKey(t, opening.To), rent, sdk.SystemProgramID, nil)
	offer := func(what string, signed chain.Signed, want chain.BroadcastState, verdict chain.Verdict) {
		t.Helper()
		if b, err := client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != want {
			t.Errorf("%s: %+v, %v", what, b, err)
		}
		if got := a.judge(t, signed); got != verdict {
			t.Errorf("%s: the verdict is %s, want %s", what, got, verdict)
		}
		peer.next(t)
	}
	alone := func(d chain.Draft) chain.Signed {
		t.Helper()
		u, err := client.Prepare(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := client.Sign(u, a.payer.Key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	offer("opening", alone(opening), chain.BroadcastKnown, chain.VerdictSucceeded)
	nonce, err := client.NonceAccount(a.payer.Address, nonceSeed)
	if err != nil {
		t.Fatal(err)
	}
	nonceRent, err := client.NonceRent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offer("a nonce", alone(chain.Draft{Transfer: chain.Transfer{From: a.payer.Address, To: nonce, Amount: nonceRent}, Step: chain.NonceOpen, Seed: nonceSeed}),
		chain.BroadcastKnown, chain.VerdictSucceeded)
	a.address, a.nonces = opening.To, map[string]string{a.payer.Address: nonce}
	held, owner := make([]byte, 165), solanaKey(t, a.address)
	copy(held, mints[0][:])
	copy(held[32:], owner[:])
	binary.LittleEndian.PutUint64(held[64:], 30_000_000)
	held[108] = 1
	peer.set(t, solanaATA(t, owner, mints[0]), rent, sdk.TokenProgramID, held)
	j := a.prepare(t, a.draft(t, to.Address, "10", a.owners[1:]...))
	signed := a.execution(t, j, a.signatures(t, j, a.owners[1:]...))
	other := a.prepare(t, a.draft(t, to.Address, "10", a.owners[:2]...))
	rival := a.execution(t, other, a.signatures(t, other, a.owners[:2]...))
	peer.next(t)
	offer("a payment", signed, chain.BroadcastKnown, chain.VerdictSucceeded)
	offer("the same by other owners", rival, chain.BroadcastRejected, chain.VerdictRebuild)
	a.has(t, to.Address, "10")
	a.has(t, a.address, "20")
}

package conformance

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/solana"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange/money"
)

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

func secretKeyOf(a chaintest.Account) []byte { return a.Key.(ed25519Key).PrivateKey }

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
	ask(map[string]any{"op": "sign", "message": first.Body, "keys": [][]byte{secretKeyOf(a.owners[0]), secretKeyOf(a.owners[1])}}, &theirs)
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
	ask(map[string]any{"op": "complete", "message": second.Body, "signatures": given, "keys": [][]byte{secretKeyOf(a.payer)}}, &whole)
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
		"op": "open", "blockhash": latest, "keys": [][]byte{secretKeyOf(a.payer)}, "threshold": 2,
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
		"keys": [][]byte{secretKeyOf(a.payer), secretKeyOf(a.owners[0]), secretKeyOf(a.owners[2])},
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

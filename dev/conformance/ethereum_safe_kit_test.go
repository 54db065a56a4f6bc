package conformance

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	ethnode "kivuko/dev/nodes/ethereum"
	"kivuko/exchange/money"
)

// safeKit is Safe's own library on a development node. `make conformance` fetches it.
type safeKit struct {
	*safeHarness
	modules string
	owners  []chaintest.Account
	account string
}

func startSafeKit(t *testing.T) *safeKit {
	t.Helper()
	modules := os.Getenv("KIVUKO_SAFE_KIT")
	if modules == "" {
		t.Skip("Safe's own library is run by `make conformance`, which fetches it")
	}
	k := &safeKit{safeHarness: startSafes(t), modules: modules}
	for range 3 {
		k.owners = append(k.owners, k.NewAccount(t))
	}
	k.account = k.NewMultisig(t, k.owners, 2)
	return k
}

// ask runs a command of testdata/safe.cjs.
func (k *safeKit) ask(t *testing.T, command string, fields map[string]any, answer any) {
	t.Helper()
	names := map[string]string{
		"Safe": "safeSingletonAddress", "SafeProxyFactory": "safeProxyFactoryAddress", "CompatibilityFallbackHandler": "fallbackHandlerAddress",
		"MultiSend": "multiSendAddress", "MultiSendCallOnly": "multiSendCallOnlyAddress", "SignMessageLib": "signMessageLibAddress",
		"CreateCall": "createCallAddress", "SimulateTxAccessor": "simulateTxAccessorAddress",
	}
	contracts := map[string]string{}
	for _, c := range k.config.Contracts {
		if name, ok := names[c.Name]; ok {
			contracts[name] = c.Address.Hex()
		}
	}
	request := map[string]any{"command": command, "rpc": "http://" + k.node.RPCAddr(), "chain": ethnode.ChainID, "contracts": contracts}
	if fields["predicted"] == nil {
		request["safe"] = k.account
	}
	for name, value := range fields {
		request[name] = value
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var refused strings.Builder
	cmd := exec.CommandContext(ctx, "node", filepath.Join("testdata", "safe.cjs"), k.modules, string(text))
	cmd.Stderr = &refused
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, refused.String())
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%s: %v in %s", command, err, out)
	}
}

func secretOf(a chaintest.Account) string {
	return hexutil.Encode(crypto.FromECDSA(a.Key.(secp256k1Key).PrivateKey))
}

// content is a joint transaction's typed data, and its call as the library takes it.
func content(t *testing.T, j chain.Joint) (typed json.RawMessage, call map[string]any) {
	t.Helper()
	var body struct {
		Message struct{ To, Value, Data, Operation string }
	}
	if err := json.Unmarshal(j.Body, &body); err != nil {
		t.Fatal(err)
	}
	m := body.Message
	return j.Body, map[string]any{"to": m.To, "value": m.Value, "data": m.Data, "operation": map[string]int{"0": 0, "1": 1}[m.Operation]}
}

// draft is a draft at the next number.
func (k *safeKit) draft(t *testing.T) chain.JointDraft {
	t.Helper()
	q, err := k.client.Quorum(t.Context(), k.account)
	if err != nil {
		t.Fatal(err)
	}
	return chain.JointDraft{Account: k.account, Quorum: q, Sequence: q.Sequence}
}

func (k *safeKit) prepare(t *testing.T, d chain.JointDraft) chain.Joint {
	t.Helper()
	j, err := k.client.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (k *safeKit) outcome(t *testing.T, j chain.Joint, want chain.JointState) chain.JointOutcome {
	t.Helper()
	o, err := k.client.Outcome(t.Context(), j)
	if err != nil || o.State != want {
		t.Fatalf("the outcome is %+v, %v, want %s", o, err, want)
	}
	return o
}

// carriesOut executes a joint transaction by the driver.
func (k *safeKit) carriesOut(t *testing.T, j chain.Joint, signatures []chain.OwnerSignature) {
	t.Helper()
	payer := k.Payer(t)
	x, err := k.client.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{Payer: payer.Address})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := k.client.SignExecution(x, payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	k.broadcast(t, signed, chain.BroadcastAccepted)
	k.Mine(t, 1)
	k.Finalise(t)
	k.outcome(t, j, chain.JointExecuted)
}

// shows checks that Safe's library shows just these owners, and the threshold.
func (k *safeKit) shows(t *testing.T, want *chain.OwnersChange) {
	t.Helper()
	var is struct {
		Owners    []string
		Threshold uint32
	}
	k.ask(t, "read", nil, &is)
	var owners []string
	for _, o := range want.Owners {
		owners = append(owners, o.Address)
	}
	slices.Sort(owners)
	slices.Sort(is.Owners)
	if is.Threshold != want.Threshold || !slices.Equal(is.Owners, owners) {
		t.Errorf("Safe's library shows %+v, want %d of %v", is, want.Threshold, owners)
	}
}

// drafts are a payment of a token, one of ether, changes of the owners and of the threshold, and a cancellation.
func (k *safeKit) drafts(t *testing.T) map[string]func(*chain.JointDraft) {
	t.Helper()
	pays := func(amount money.Amount) func(*chain.JointDraft) {
		return func(d *chain.JointDraft) {
			k.Fund(t, k.account, amount)
			d.Transfer = &chain.Transfer{From: k.account, To: k.NewAccount(t).Address, Amount: amount}
		}
	}
	return map[string]func(*chain.JointDraft){
		"a token": pays(money.Must(money.USDT, "5")), "ether": pays(money.Must(money.ETH, "0.5")), "a cancellation": func(*chain.JointDraft) {},
		"one owner":         func(d *chain.JointDraft) { d.Owners = k.Change(append(k.owners[:2:2], k.NewAccount(t)), 2) },
		"an owner more":     func(d *chain.JointDraft) { d.Owners = k.Change(append(k.owners[:3:3], k.NewAccount(t)), 3) },
		"an owner less":     func(d *chain.JointDraft) { d.Owners = k.Change(k.owners[1:], 1) },
		"another threshold": func(d *chain.JointDraft) { d.Owners = k.Change(k.owners, 3) },
		"all owners": func(d *chain.JointDraft) {
			d.Owners = k.Change([]chaintest.Account{k.NewAccount(t), k.NewAccount(t)}, 1)
		},
	}
}

// TestConformanceEthereumSafeKitSigns has owners sign with Safe's library and with ethers what this driver prepares, and
// executes it by the driver.
func TestConformanceEthereumSafeKitSigns(t *testing.T) {
	t.Parallel()
	k := startSafeKit(t)
	var is struct {
		Owners    []string
		Threshold uint32
		Nonce     uint64
		Version   string
		Modules   []string
	}
	k.ask(t, "read", nil, &is)
	if len(is.Owners) != 3 || is.Threshold != 2 || is.Version != "1.4.1" || len(is.Modules) != 0 {
		t.Errorf("Safe's library reads %+v", is)
	}
	for what, edit := range k.drafts(t) {
		d := k.draft(t)
		edit(&d)
		j := k.prepare(t, d)
		typed, call := content(t, j)
		var signatures []chain.OwnerSignature
		for i, o := range k.owners[:2] {
			var signed struct {
				Hash       string
				Signatures map[string]string
			}
			k.ask(t, "sign", map[string]any{"key": secretOf(o), "nonce": j.Sequence, "transaction": call, "typed": typed}, &signed)
			if signed.Hash != j.ID || len(signed.Signatures) != 3 {
				t.Fatalf("%s: Safe's library signs %+v, the driver prepared %s", what, signed, j.ID)
			}
			for way, text := range signed.Signatures {
				one, err := k.client.Signature(j, common.FromHex(text))
				if err != nil || one.Owner != o.Address {
					t.Errorf("%s: a signature by %s of %s: %+v, %v", what, way, o.Address, one, err)
				}
				if way == []string{"ethers", "eth_sign"}[i] {
					signatures = append(signatures, one)
				}
			}
		}
		k.carriesOut(t, j, signatures)
		if d.Owners != nil {
			k.shows(t, d.Owners)
			k.account = k.NewMultisig(t, k.owners, 2) // the owners of the next draft
		}
	}
}

// TestConformanceEthereumSafeKitExecutes has Safe's library, and ethers, execute what this driver prepared and its owners signed.
func TestConformanceEthereumSafeKitExecutes(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"protocol-kit", "ethers"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			k := startSafeKit(t)
			for what, edit := range k.drafts(t) {
				d := k.draft(t)
				edit(&d)
				k.executedBy(t, by, what, k.prepare(t, d))
			}
		})
	}
}

// executedBy has a tool execute a joint transaction that two owners sign.
func (k *safeKit) executedBy(t *testing.T, by, what string, j chain.Joint) {
	t.Helper()
	_, call := content(t, j)
	signatures := map[string]string{}
	for _, o := range k.owners[1:] {
		raw, err := o.Key.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		one, err := k.client.Signature(j, raw)
		if err != nil {
			t.Fatal(err)
		}
		signatures[one.Owner] = hexutil.Encode(one.Signature)
	}
	var executed struct{ Hash string }
	k.ask(t, "execute", map[string]any{"by": by, "key": secretOf(k.Payer(t)), "nonce": j.Sequence, "transaction": call, "signatures": signatures}, &executed)
	k.Mine(t, 1)
	k.outcome(t, j, chain.JointIncluded)
	k.Finalise(t)
	if o := k.outcome(t, j, chain.JointExecuted); o.TxID != executed.Hash {
		t.Errorf("%s: executed by %s, the outcome says %s", what, executed.Hash, o.TxID)
	}
	if j.Owners != nil {
		k.shows(t, j.Owners)
		k.account = k.NewMultisig(t, k.owners, 2) // the owners of the next draft
	}
}

// libraryChange is a change of the owners as Safe's library makes it, by its own methods; nil owners are its rejection of what has the next number.
type libraryChange struct {
	steps  [][]any
	owners *chain.OwnersChange
}

func (k *safeKit) libraryChanges(t *testing.T) map[string]libraryChange {
	t.Helper()
	type fields map[string]any
	first, second, third, next := k.owners[0], k.owners[1], k.owners[2], k.NewAccount(t)
	swap := []any{"createSwapOwnerTx", fields{"oldOwnerAddress": second.Address, "newOwnerAddress": next.Address}}
	threshold := []any{"createChangeThresholdTx", 3}
	swapped := []chaintest.Account{first, next, third}
	return map[string]libraryChange{
		"an owner comes": {
			[][]any{{"createAddOwnerTx", fields{"ownerAddress": next.Address, "threshold": 3}}}, k.Change([]chaintest.Account{first, second, third, next}, 3),
		},
		"an owner goes": {
			[][]any{{"createRemoveOwnerTx", fields{"ownerAddress": second.Address, "threshold": 1}}}, k.Change([]chaintest.Account{first, third}, 1),
		},
		"an owner is replaced":    {[][]any{swap}, k.Change(swapped, 2)},
		"the threshold is higher": {[][]any{threshold}, k.Change(k.owners, 3)},
		"both in one batch":       {[][]any{swap, threshold}, k.Change(swapped, 3)},
		"a rejection":             {[][]any{{"createRejectionTransaction", 0}}, nil},
	}
}

// TestConformanceEthereumSafeKitChanges compares what Safe's library prepares by its own methods with what this driver does: changes of the owners and
// a rejection. An owner signs the library's with the library, another one with a key of ours, and the driver executes it. What else had the number is
// superseded.
func TestConformanceEthereumSafeKitChanges(t *testing.T) {
	t.Parallel()
	k := startSafeKit(t)
	for what, c := range k.libraryChanges(t) {
		d, paid := k.draft(t), k.draft(t)
		k.drafts(t)["a token"](&paid)
		payment := k.prepare(t, paid)
		var theirs struct {
			Hash, Signature string
			Nonce           uint64
			Call            struct {
				To, Value, Data string
				Operation       int
			}
		}
		k.ask(t, "prepare", map[string]any{"key": secretOf(k.owners[0]), "steps": c.steps}, &theirs)
		d.Owners = c.owners
		j := k.prepare(t, d)
		_, ours := content(t, j)
		call := map[string]any{"to": theirs.Call.To, "value": theirs.Call.Value, "data": theirs.Call.Data, "operation": theirs.Call.Operation}
		if theirs.Hash != j.ID || theirs.Nonce != j.Sequence || !maps.Equal(call, ours) {
			t.Fatalf("%s: Safe's library prepares %+v, the driver %s: %v", what, theirs, j.ID, ours)
		}
		raw, err := k.owners[2].Key.Sign(common.FromHex(theirs.Hash))
		if err != nil {
			t.Fatal(err)
		}
		var signatures []chain.OwnerSignature
		for i, text := range [][]byte{common.FromHex(theirs.Signature), raw} {
			one, err := k.client.Signature(j, text)
			if err != nil || one.Owner != k.owners[2*i].Address {
				t.Fatalf("%s: the signature of %s is that of %+v, %v", what, k.owners[2*i].Address, one, err)
			}
			signatures = append(signatures, one)
		}
		k.carriesOut(t, j, signatures)
		k.outcome(t, payment, chain.JointSuperseded)
		if c.owners != nil {
			k.shows(t, c.owners)
			k.account = k.NewMultisig(t, k.owners, 2)
		}
	}
}

// TestConformanceEthereumSafeKitMakes adopts an account that Safe's library makes.
func TestConformanceEthereumSafeKitMakes(t *testing.T) {
	t.Parallel()
	k := startSafeKit(t)
	var owners []string
	for _, o := range k.owners {
		owners = append(owners, o.Address)
	}
	maker := k.Payer(t)
	var made struct{ Address, To, Data string }
	k.ask(t, "deploy", map[string]any{
		"key":       secretOf(maker),
		"predicted": map[string]any{"safeAccountConfig": map[string]any{"owners": owners, "threshold": 3}, "safeDeploymentConfig": map[string]any{"saltNonce": "7", "safeVersion": "1.4.1"}},
	}, &made)
	k.mined(t, maker, common.HexToAddress(made.To), nil, common.FromHex(made.Data))
	k.Finalise(t)
	q, err := k.client.Quorum(t.Context(), made.Address)
	if err != nil || q.Threshold != 3 || len(q.Owners) != 3 {
		t.Fatalf("the quorum is %+v, %v", q, err)
	}
	for _, o := range q.Owners {
		if !slices.Contains(owners, o.Address) {
			t.Errorf("%s is no owner", o.Address)
		}
	}
}

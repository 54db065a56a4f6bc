package conformance

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	ethnode "kivuko/dev/nodes/ethereum"
	"kivuko/exchange/money"
)

// safeOf is a Safe of one owner, who carries out transactions without the driver.
func (h *safeHarness) safeOf(t testing.TB, owner chaintest.Account) common.Address {
	t.Helper()
	return common.HexToAddress(h.NewMultisig(t, []chaintest.Account{owner}, 1))
}

// runs carries out a transaction of a Safe of one owner, who sends it and needs no other signature (Safe.checkNSignatures).
func (h *safeHarness) runs(t testing.TB, owner chaintest.Account, account, to common.Address, value money.Amount, operation uint8) string {
	t.Helper()
	none, zero := common.Address{}, new(big.Int)
	signature := append(append(common.LeftPadBytes(common.FromHex(owner.Address), 32), make([]byte, 32)...), 1)
	return h.mined(t, owner, account, nil, safePack(t, "execTransaction", to, value.Units(), []byte(nil), operation, zero, zero, zero, none, none, signature)).TxHash.Hex()
}

// listed are the movements of ether that the driver lists in the newest block.
func (h *safeHarness) listed(t testing.TB) []chain.Movement {
	t.Helper()
	b, err := h.client.Transfers(t.Context(), h.node.Head().Number)
	if err != nil || len(b.Unreadable) > 0 {
		t.Fatalf("%+v, %v", b, err)
	}
	return slices.DeleteFunc(b.Movements, func(m chain.Movement) bool { return m.Amount.Asset() != money.ETH })
}

// TestEthereumSafeEther: ether that Safes move is listed once, and only what is proven to have moved.
func TestEthereumSafeEther(t *testing.T) {
	t.Parallel()
	h := startSafes(t)
	coin, nothing := money.Must(money.ETH, "0.25"), money.Zero(money.ETH)
	owner, wallet := h.Payer(t), h.NewAccount(t)
	h.Fund(t, owner.Address, money.Must(money.ETH, "1"))
	from, to := h.safeOf(t, owner), h.safeOf(t, h.Payer(t))
	h.Fund(t, from.Hex(), money.Must(money.ETH, "2"))
	received := crypto.Keccak256Hash([]byte("SafeReceived(address,uint256)"))
	sender, value := common.BytesToHash(from.Bytes()), common.BigToHash(coin.Units())
	invents := h.program(t, []byte{opPush32}, value[:], []byte{opPush0, opMstore, opPush32}, sender[:], []byte{opPush32}, received[:], []byte{opPush1, 32, opPush0, opLog2})

	expect := func(what, tx string, want ...chain.Transfer) {
		t.Helper()
		got := h.listed(t)
		if len(got) != len(want) {
			t.Errorf("%s: %d movements of ether are listed, want %d: %+v", what, len(got), len(want), got)
			return
		}
		for i, m := range got {
			if m.TxID != tx || m.From != want[i].From || m.To != want[i].To || !m.Amount.Equal(want[i].Amount) {
				t.Errorf("%s: %+v is listed, want %+v", what, m, want[i])
			}
		}
	}
	paid := func(from common.Address, to string) chain.Transfer {
		return chain.Transfer{From: from.Hex(), To: to, Amount: coin}
	}
	expect("a Safe pays a wallet", h.runs(t, owner, from, common.HexToAddress(wallet.Address), coin, 0), paid(from, wallet.Address))
	expect("a Safe pays a Safe", h.runs(t, owner, from, to, coin, 0), paid(from, to.Hex()))
	plain := h.mined(t, owner, to, coin.Units(), nil).TxHash.Hex()
	expect("a wallet pays a Safe", plain, chain.Transfer{From: owner.Address, To: to.Hex(), Amount: coin})
	expect("a contract invents a payment to itself", h.mined(t, owner, invents, nil, nil).TxHash.Hex())
	expect("a Safe runs code that invents a payment", h.runs(t, owner, from, invents, nothing, 1))
	expect("a Safe calls itself without ether", h.runs(t, owner, from, from, nothing, 0))
	expect("a Safe pays itself", h.runs(t, owner, from, from, coin, 0))
	made := h.strange(t, h.contract(t, "Safe"), setupWith(t, owner, invents, h.contract(t, "CompatibilityFallbackHandler")))
	if got := h.listed(t); len(got) != 0 {
		t.Errorf("the setup of %s invents a payment: %+v", made, got)
	}
	bare := common.HexToAddress(h.strange(t, h.contract(t, "Safe"), nil))
	expect("a proxy is set up with code that invents a payment", h.mined(t, owner, bare, nil, setupWith(t, owner, invents, common.Address{})).TxHash.Hex())
	singleton := common.BytesToHash(h.contract(t, "Safe").Bytes())
	poses := h.program(t, []byte{opPush32}, singleton[:], []byte{opPush0, opSstore, opPush32}, value[:], []byte{opPush0, opMstore, opPush32}, sender[:],
		[]byte{opPush32}, received[:], []byte{opPush1, 32, opPush0, opLog2})
	for range 2 { // the second time it has a Safe's singleton in its storage
		expect("a contract poses as a Safe", h.mined(t, owner, poses, nil, nil).TxHash.Hex())
	}
	// The fees are all that its owner paid besides; the Safes hold what the list says.
	h.Finalise(t)
	for account, want := range map[string]string{from.Hex(): "1.5", to.Hex(): "0.5", wallet.Address: "0.25"} {
		if b, err := h.client.Balance(t.Context(), account, money.ETH); err != nil || !b.Amount.Equal(money.Must(money.ETH, want)) {
			t.Errorf("%s holds %s, want %s: %v", account, b.Amount, want, err)
		}
	}
}

// TestEthereumSafeL2: an account of the other singleton of the version, which has events of its own, is as good.
func TestEthereumSafeL2(t *testing.T) {
	t.Parallel()
	h := startSafes(t)
	owner, wallet, coin := h.Payer(t), h.NewAccount(t), money.Must(money.ETH, "0.25")
	account := h.strange(t, h.contract(t, "SafeL2"), setupWith(t, owner, common.Address{}, common.Address{}))
	h.Fund(t, account, coin)
	if q, err := h.client.Quorum(t.Context(), account); err != nil || len(q.Owners) != 1 || q.Owners[0].Address != owner.Address {
		t.Errorf("the quorum is %+v, %v", q, err)
	}
	tx := h.runs(t, owner, common.HexToAddress(account), common.HexToAddress(wallet.Address), coin, 0)
	if got := h.listed(t); len(got) != 1 || got[0].TxID != tx || got[0].From != account || got[0].To != wallet.Address || !got[0].Amount.Equal(coin) {
		t.Errorf("listed %+v", got)
	}
}

// TestEthereumSafeApprovals: an owner who approves a hash on the chain, which any owner can at any time, does not make the
// account unusable.
func TestEthereumSafeApprovals(t *testing.T) {
	t.Parallel()
	h := startSafes(t)
	owners := []chaintest.Account{h.Payer(t), h.Payer(t)}
	account := h.NewMultisig(t, owners, 2)
	for i, o := range owners {
		h.mined(t, o, common.HexToAddress(account), nil, safePack(t, "approveHash", [32]byte{byte(i + 1)}))
		h.Finalise(t)
		if q, err := h.client.Quorum(t.Context(), account); err != nil || len(q.Owners) != 2 {
			t.Errorf("after %d approvals: %+v, %v", i+1, q, err)
		}
	}
}

// TestEthereumAllowances: what an account allowed another address is known until it is taken back, whoever its owners are since.
func TestEthereumAllowances(t *testing.T) {
	t.Parallel()
	h := startSafes(t)
	owner, mallory := h.Payer(t), h.NewAccount(t)
	account := h.safeOf(t, owner)
	none, zero := common.Address{}, new(big.Int)
	signature := append(append(common.LeftPadBytes(common.FromHex(owner.Address), 32), make([]byte, 32)...), 1)
	for _, c := range []struct{ allowed, left int64 }{{0, 0}, {5, 1}, {0, 0}} {
		approve := append(crypto.Keccak256([]byte("approve(address,uint256)"))[:4], common.LeftPadBytes(common.FromHex(mallory.Address), 32)...)
		approve = append(approve, common.BigToHash(big.NewInt(c.allowed)).Bytes()...)
		h.mined(t, owner, account, nil, safePack(t, "execTransaction", ethnode.USDTAddress(), zero, approve, uint8(0), zero, zero, zero, none, none, signature))
		h.Finalise(t)
		got, err := h.client.Allowances(t.Context(), account.Hex())
		if err != nil || int64(len(got)) != c.left || c.left > 0 && (got[0].Spender != mallory.Address || got[0].Asset != money.USDT) {
			t.Errorf("with %d allowed: %+v, %v", c.allowed, got, err)
		}
	}
}

// TestEthereumSafeQueue: a joint transaction with a later number waits; the error says for what.
func TestEthereumSafeQueue(t *testing.T) {
	t.Parallel()
	h := startSafes(t)
	owner, payer, amount := h.NewAccount(t), h.Payer(t), money.Must(money.USDC, "1")
	account := h.NewMultisig(t, []chaintest.Account{owner}, 1)
	h.Fund(t, account, amount.Add(amount))
	q, err := h.client.Quorum(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	execute := func(j chain.Joint, before chain.Signed) (chain.Signed, error) {
		raw, err := owner.Key.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := h.client.Signature(j, raw)
		if err != nil {
			t.Fatal(err)
		}
		n, err := h.client.Nonces(t.Context(), payer.Address)
		if err != nil {
			t.Fatal(err)
		}
		x, err := h.client.PrepareExecution(t.Context(), j, []chain.OwnerSignature{signature}, chain.ExecutionDraft{Payer: payer.Address, Nonce: n.Latest, Bump: before.Bid, Limit: before.FeeLimit})
		if err != nil {
			return chain.Signed{}, err
		}
		return h.client.SignExecution(x, payer.Key)
	}
	var joints []chain.Joint
	for i := range 2 {
		j, err := h.client.PrepareJoint(t.Context(), chain.JointDraft{
			Account: account, Quorum: q, Sequence: q.Sequence + uint64(i), Transfer: &chain.Transfer{From: account, To: h.NewAccount(t).Address, Amount: amount},
		})
		if err != nil {
			t.Fatal(err)
		}
		joints = append(joints, j)
	}
	if _, err := execute(joints[1], chain.Signed{}); chain.ReasonOf(err) != chain.ReasonReverts || !strings.Contains(err.Error(), "waits") {
		t.Errorf("the second number first: %v", err)
	}
	first, err := execute(joints[0], chain.Signed{})
	if err != nil {
		t.Fatal(err)
	}
	h.broadcast(t, first, chain.BroadcastAccepted)
	dearer, err := execute(joints[0], first) // the same execution, with a higher bid
	if err != nil {
		t.Fatal(err)
	}
	h.broadcast(t, dearer, chain.BroadcastAccepted)
	h.Mine(t, 1)
	second, err := execute(joints[1], chain.Signed{})
	if err != nil {
		t.Fatal(err)
	}
	h.broadcast(t, second, chain.BroadcastAccepted)
	h.Mine(t, 1)
	h.Finalise(t)
	for i, want := range []chain.Signed{dearer, second} {
		if o, err := h.client.Outcome(t.Context(), joints[i]); err != nil || o.State != chain.JointExecuted || o.TxID != want.TxID {
			t.Errorf("number %d: %+v, %v", i, o, err)
		}
	}
	if _, err := execute(joints[0], chain.Signed{}); chain.ReasonOf(err) != chain.ReasonForeign {
		t.Errorf("a used number: %v", err)
	}
}

// TestEthereumSafeOpening: an account is made once, by whoever comes first, and only as drafted.
func TestEthereumSafeOpening(t *testing.T) {
	t.Parallel()
	h := startSafes(t)
	payer, stranger := h.Payer(t), h.Payer(t)
	q := quorumOf([]chaintest.Account{h.NewAccount(t), h.NewAccount(t)}, 2)
	address, err := h.client.MultisigAccount(payer.Address, "seed", q)
	if err != nil {
		t.Fatal(err)
	}
	draft := func(by chaintest.Account) chain.Draft {
		return chain.Draft{Transfer: chain.Transfer{From: by.Address, To: address, Amount: money.Zero(money.ETH)}, Seed: "seed", Owners: &q}
	}
	u, err := h.client.Prepare(t.Context(), draft(payer))
	if err != nil {
		t.Fatal(err)
	}
	for what, edit := range map[string]func(*chain.Unsigned){
		"another threshold": func(u *chain.Unsigned) { u.Owners = &chain.OwnersChange{Owners: q.Owners, Threshold: 1} },
		"an owner less":     func(u *chain.Unsigned) { u.Owners = &chain.OwnersChange{Owners: q.Owners[:1], Threshold: 1} },
		"another seed":      func(u *chain.Unsigned) { u.Seed = "other" },
		"another account":   func(u *chain.Unsigned) { u.Transfer.To = stranger.Address },
		"an amount":         func(u *chain.Unsigned) { u.Transfer.Amount = money.Must(money.ETH, "1") },
		"a payment":         func(u *chain.Unsigned) { u.Owners = nil },
	} {
		changed := u
		edit(&changed)
		if signed, err := h.client.Sign(changed, payer.Key); err == nil {
			t.Errorf("%s: it was signed as %s", what, signed.TxID)
		}
	}
	ours, err := h.client.Sign(u, payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	first, err := h.client.Prepare(t.Context(), draft(stranger))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := h.client.Sign(first, stranger.Key)
	if err != nil {
		t.Fatal(err)
	}
	h.broadcast(t, theirs, chain.BroadcastAccepted)
	h.Mine(t, 1)
	h.broadcast(t, ours, chain.BroadcastAccepted)
	h.Mine(t, 1)
	h.Finalise(t)
	if l, err := h.client.Locate(t.Context(), ours.TxID); err != nil || l.OK || l.Stage != chain.StageFinal {
		t.Errorf("the second transaction: %+v, %v", l, err)
	}
	if got, err := h.client.Quorum(t.Context(), address); err != nil || got.Threshold != 2 || len(got.Owners) != 2 {
		t.Errorf("the account has the quorum %+v, %v", got, err)
	}
	if _, err := h.client.Prepare(t.Context(), draft(payer)); chain.ReasonOf(err) != chain.ReasonReverts || !strings.Contains(err.Error(), "there already") {
		t.Errorf("the account is made again: %v", err)
	}
}

// TestEthereumWithoutSafe: on a chain without the contracts the errors say so.
func TestEthereumWithoutSafe(t *testing.T) {
	t.Parallel()
	h := &safeHarness{ethereumHarness: startEthereumWith(t, ethnode.Config{})}
	payer := h.Payer(t)
	q := quorumOf([]chaintest.Account{payer}, 1)
	address, err := h.client.MultisigAccount(payer.Address, "seed", q)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.client.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: payer.Address, To: address, Amount: money.Zero(money.ETH)}, Seed: "seed", Owners: &q})
	if chain.ReasonOf(err) != chain.ReasonForeign || !strings.Contains(err.Error(), "SafeProxyFactory") {
		t.Errorf("an account on a chain without Safe: %v", err)
	}
}

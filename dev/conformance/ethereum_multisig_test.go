package conformance

import (
	"bytes"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	ethnode "kivuko/dev/nodes/ethereum"
	safecode "kivuko/dev/nodes/ethereum/safe"
	"kivuko/dev/nodes/ethereum/safe/safetest"
	"kivuko/exchange/money"
)

func TestEthereumMultisig(t *testing.T) {
	t.Parallel()
	chaintest.RunMultisig(t, func(t testing.TB) chaintest.MultisigHarness { return startSafes(t) })
}

// safeHarness is a development node with the contracts of Safe.
type safeHarness struct {
	*ethereumHarness
	made int
}

func startSafes(t testing.TB) *safeHarness {
	t.Helper()
	return &safeHarness{ethereumHarness: startEthereumWith(t, ethnode.Config{Contracts: safetest.Set(t)})}
}

func (h *safeHarness) Rules() chaintest.JointRules {
	return chaintest.JointRules{Numbered: true, Exclusive: true, Native: true, Reverting: true}
}

// quorumOf are owners with one signature each.
func quorumOf(owners []chaintest.Account, threshold uint32) chain.OwnersChange {
	q := chain.OwnersChange{Threshold: threshold}
	for _, o := range owners {
		q.Owners = append(q.Owners, chain.Owner{Address: o.Address, Weight: 1})
	}
	return q
}

// open makes a Safe by the driver.
func (h *safeHarness) open(t testing.TB, owners []chaintest.Account, threshold uint32, seed string) string {
	t.Helper()
	payer, q := h.Payer(t), quorumOf(owners, threshold)
	address, err := h.client.MultisigAccount(payer.Address, seed, q)
	if err != nil {
		t.Fatal(err)
	}
	u, err := h.client.Prepare(t.Context(), chain.Draft{
		Transfer: chain.Transfer{From: payer.Address, To: address, Amount: money.Zero(money.ETH)}, Seed: seed, Owners: &q,
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := h.client.Sign(u, payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	h.broadcast(t, signed, chain.BroadcastAccepted)
	h.Mine(t, 1)
	h.Finalise(t)
	return address
}

func (h *safeHarness) NewMultisig(t testing.TB, owners []chaintest.Account, threshold uint32) string {
	t.Helper()
	h.made++
	return h.open(t, owners, threshold, big.NewInt(int64(h.made)).String())
}

func (h *safeHarness) Payer(t testing.TB) chaintest.Account {
	t.Helper()
	payer := h.NewAccount(t)
	h.Fund(t, payer.Address, h.Gas())
	return payer
}

func (h *safeHarness) Complete(_ testing.TB, d chain.JointDraft, _ chaintest.Account) chain.JointDraft {
	return d
}

func (h *safeHarness) Change(owners []chaintest.Account, threshold uint32) *chain.OwnersChange {
	q := quorumOf(owners, threshold)
	return &q
}

// safeABI is the part of Safe 1.4.1's interface that strangers use here.
const safeABI = `[
{"type":"function","name":"setup","inputs":[{"name":"_owners","type":"address[]"},{"name":"_threshold","type":"uint256"},{"name":"to","type":"address"},{"name":"data","type":"bytes"},
 {"name":"fallbackHandler","type":"address"},{"name":"paymentToken","type":"address"},{"name":"payment","type":"uint256"},{"name":"paymentReceiver","type":"address"}]},
{"type":"function","name":"createProxyWithNonce","inputs":[{"name":"_singleton","type":"address"},{"name":"initializer","type":"bytes"},{"name":"saltNonce","type":"uint256"}]},
{"type":"function","name":"approveHash","inputs":[{"name":"hashToApprove","type":"bytes32"}]},
{"type":"function","name":"execTransaction","inputs":[{"name":"to","type":"address"},{"name":"value","type":"uint256"},{"name":"data","type":"bytes"},{"name":"operation","type":"uint8"},
 {"name":"safeTxGas","type":"uint256"},{"name":"baseGas","type":"uint256"},{"name":"gasPrice","type":"uint256"},{"name":"gasToken","type":"address"},
 {"name":"refundReceiver","type":"address"},{"name":"signatures","type":"bytes"}]}
]`

// safePack is a call, encoded by go-ethereum's own encoder.
func safePack(t testing.TB, method string, arguments ...any) []byte {
	t.Helper()
	parsed, err := abi.JSON(strings.NewReader(safeABI))
	if err != nil {
		t.Fatal(err)
	}
	data, err := parsed.Pack(method, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// contract is the address of one of Safe's contracts.
func (h *safeHarness) contract(t testing.TB, name string) common.Address {
	t.Helper()
	for _, c := range h.config.Contracts {
		if c.Name == name {
			return c.Address
		}
	}
	t.Fatalf("there is no contract %s", name)
	return common.Address{}
}

// mined sends a transaction without the driver, which must succeed.
func (h *safeHarness) mined(t testing.TB, from chaintest.Account, to common.Address, value *big.Int, data []byte) *types.Receipt {
	t.Helper()
	id := sendEthereum(t, h.rpc, ethnode.ChainID, from.Key, common.HexToAddress(from.Address), &types.DynamicFeeTx{Gas: 1_500_000, To: &to, Value: value, Data: data})
	h.Mine(t, 1)
	r, err := h.rpc.TransactionReceipt(t.Context(), id)
	if err != nil || r.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// strange makes an account by Safe's factory that the driver would not make. It returns its address.
func (h *safeHarness) strange(t testing.TB, singleton common.Address, setup []byte) string {
	t.Helper()
	h.made++
	r := h.mined(t, h.Payer(t), h.contract(t, "SafeProxyFactory"), nil, safePack(t, "createProxyWithNonce", singleton, setup, big.NewInt(int64(1_000_000+h.made))))
	created := r.Logs[len(r.Logs)-1]
	return common.BytesToAddress(created.Topics[1].Bytes()).Hex()
}

// The instructions of the machine that the contracts below are made of.
const (
	opMstore, opSstore, opPush0, opPush1, opPush32, opDup1, opCodecopy, opLog2, opLog3, opReturn = 0x52, 0x55, 0x5f, 0x60, 0x7f, 0x80, 0x39, 0xa2, 0xa3, 0xf3
)

// program puts a contract with this code on the chain.
func (h *safeHarness) program(t testing.TB, parts ...[]byte) common.Address {
	t.Helper()
	code := bytes.Join(parts, nil)
	creation := append([]byte{opPush1, byte(len(code)), opDup1, opPush1, 9, opPush0, opCodecopy, opPush0, opReturn}, code...)
	h.mined(t, h.Payer(t), safecode.Factory, nil, append(make([]byte, 32), creation...))
	return crypto.CreateAddress2(safecode.Factory, common.Hash{}, crypto.Keccak256(creation))
}

// writer is a contract that writes one value into the storage of whoever runs its code.
func (h *safeHarness) writer(t testing.TB, slot, value common.Hash) common.Address {
	t.Helper()
	return h.program(t, []byte{opPush32}, value[:], []byte{opPush32}, slot[:], []byte{opSstore})
}

// setupWith is a setup of one owner that runs a contract's code and names a fallback handler.
func setupWith(t testing.TB, owner chaintest.Account, runs, handler common.Address) []byte {
	t.Helper()
	none := common.Address{}
	return safePack(t, "setup", []common.Address{common.HexToAddress(owner.Address)}, big.NewInt(1), runs, []byte{}, handler, none, new(big.Int), none)
}

func mapEntry(key common.Address, slot int64) common.Hash {
	return crypto.Keccak256Hash(common.LeftPadBytes(key.Bytes(), 32), common.BigToHash(big.NewInt(slot)).Bytes())
}

// approved makes an account whose setup runs code that writes an approval of its owner, and makes the event of one.
func (h *safeHarness) approved(t testing.TB, singleton, handler common.Address) string {
	t.Helper()
	owner, hash := h.NewAccount(t), common.HexToHash("0xab")
	topic := crypto.Keccak256Hash([]byte("ApproveHash(bytes32,address)"))
	who, value := common.BytesToHash(common.HexToAddress(owner.Address).Bytes()), common.BigToHash(big.NewInt(1))
	place := crypto.Keccak256Hash(hash[:], mapEntry(common.HexToAddress(owner.Address), 8).Bytes())
	code := h.program(t, []byte{opPush32}, value[:], []byte{opPush32}, place[:], []byte{opSstore, opPush32}, who[:],
		[]byte{opPush32}, hash[:], []byte{opPush32}, topic[:], []byte{opPush0, opPush0, opLog3})
	return h.strange(t, singleton, setupWith(t, owner, code, handler))
}

func (h *safeHarness) ForeignAccounts(t testing.TB) map[string]string {
	t.Helper()
	singleton, handler := h.contract(t, "Safe"), h.contract(t, "CompatibilityFallbackHandler")
	sentinel, evil := common.BigToAddress(big.NewInt(1)), common.HexToAddress(newEthereumAccount(t).Address)
	writes := func(slot common.Hash, value common.Address) string {
		return h.strange(t, singleton, setupWith(t, h.NewAccount(t), h.writer(t, slot, common.BytesToHash(value.Bytes())), handler))
	}
	all := map[string]string{
		"a token":                       ethnode.USDTAddress().Hex(),
		"the singleton itself":          singleton.Hex(),
		"a proxy of another contract":   h.strange(t, handler, nil),
		"a proxy that was never set up": h.strange(t, singleton, nil),
		"a foreign fallback handler":    h.strange(t, singleton, setupWith(t, h.NewAccount(t), common.Address{}, ethnode.USDTAddress())),
		"a module":                      writes(mapEntry(sentinel, 1), evil),
		"a module that is not listed":   writes(mapEntry(evil, 1), sentinel),
		"an owner that is not listed":   writes(mapEntry(evil, 2), sentinel),
		"a guard":                       writes(crypto.Keccak256Hash([]byte("guard_manager.guard.address")), evil),
		"an approval that is invented":  h.approved(t, singleton, handler),
	}
	h.Finalise(t)
	return all
}

// ExecuteElsewhere executes with the signatures in the order of their owners.
func (h *safeHarness) ExecuteElsewhere(t testing.TB, j chain.Joint, signatures []chain.OwnerSignature) string {
	t.Helper()
	to, value, data := common.HexToAddress(j.Transfer.To), j.Transfer.Amount.Units(), []byte{}
	if token, ok := ethereumContracts[j.Transfer.Amount.Asset()]; ok {
		data = ethnode.Calldata("transfer(address,uint256)", to.Bytes(), value.Bytes())
		to, value = token, new(big.Int)
	}
	var all []byte
	for i, s := range signatures {
		if i > 0 && bytes.Compare(common.FromHex(signatures[i-1].Owner), common.FromHex(s.Owner)) > 0 {
			all = append(bytes.Clone(s.Signature), all...) // there are two
			continue
		}
		all = append(all, s.Signature...)
	}
	none, zero := common.Address{}, new(big.Int)
	return h.mined(t, h.Payer(t), common.HexToAddress(j.Account), nil,
		safePack(t, "execTransaction", to, value, data, uint8(0), zero, zero, zero, none, none, all)).TxHash.Hex()
}

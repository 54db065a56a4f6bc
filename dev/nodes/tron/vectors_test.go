package tron

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	sdkaddress "github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/mnemonic"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

type headerVector struct {
	Number         int64  `json:"number"`
	Timestamp      int64  `json:"timestamp"`
	TxTrieRoot     string `json:"tx_trie_root"`
	ParentHash     string `json:"parent_hash"`
	WitnessAddress string `json:"witness_address"`
	Version        int32  `json:"version"`
}

type permissionVector struct {
	ID         int32
	Name       string
	Threshold  int64
	Operations string
	Keys       []struct {
		Address string
		Weight  int64
	}
}

type vector struct {
	Kind, ID, TxID, Base58, Hex, Mnemonic, Type, Owner, Signature, BlockID string
	PrivateKey                                                             string `json:"private_key"`
	RawDataHex                                                             string `json:"raw_data_hex"`
	Signatures                                                             []string
	Signers                                                                []string
	OwnerHex                                                               string `json:"owner_hex"`
	PermissionID                                                           int32  `json:"permission_id"`
	Permission                                                             *permissionVector
	TRC20                                                                  *struct {
		ContractHex string `json:"contract_hex"`
		ToHex       string `json:"to_hex"`
		Contract    string
		To          string
		Amount      string
	}
	Transfer *struct {
		ToHex     string `json:"to_hex"`
		To        string
		Amount    json.Number
		FromHex20 string `json:"from_hex20"`
		ToHex20   string `json:"to_hex20"`
	}
	BlockHeader      *headerVector `json:"block_header"`
	Raw              *headerVector
	WitnessSignature string `json:"witness_signature"`
	Timestamp        int64
	Expiration       int64
	TriggerHex       string `json:"trigger_hex"`
	From             string `json:"from_"`
	To               string
	Amount           string
	AddressByte11    string `json:"abi_address_byte_11"`
	ContractResult   string `json:"contractResult"`
	Fee              int64
	EnergyTotal      int64 `json:"energy_usage_total"`
	EnergyFee        int64 `json:"energy_fee"`
	Result           string
	Note             string
}

// loadVectors reads transactions of public networks, which are not ours to copy.
func loadVectors(t *testing.T) []vector {
	t.Helper()
	dir := os.Getenv("KIVUKO_FIXTURES")
	if dir == "" {
		t.Skip("the published vectors are not here: KIVUKO_FIXTURES names the folder above them, see the Makefile")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "tron", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	return f.Vectors
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (h *headerVector) message(t *testing.T) *core.BlockHeaderRaw {
	return &core.BlockHeaderRaw{
		Number: h.Number, Timestamp: h.Timestamp, TxTrieRoot: unhex(t, h.TxTrieRoot), ParentHash: unhex(t, h.ParentHash),
		WitnessAddress: unhex(t, h.WitnessAddress), Version: h.Version,
	}
}

func TestPublicVectors(t *testing.T) {
	kinds := map[string]func(*testing.T, vector){
		"transaction": checkTransactionVector, "sign": checkSignVector, "block_header": checkHeaderVector,
		"address": checkAddressVector, "trigger_decode": checkTriggerVector, "receipt": checkReceiptVector,
	}
	for _, v := range loadVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			check := kinds[v.Kind]
			if check == nil {
				t.Fatalf("no check for vectors of kind %q", v.Kind)
			}
			check(t, v)
		})
	}
}

func checkTransactionVector(t *testing.T, v vector) {
	raw := &core.TransactionRaw{}
	if err := proto.Unmarshal(unhex(t, v.RawDataHex), raw); err != nil {
		t.Fatal(err)
	}
	tx := &core.Transaction{RawData: raw}
	for _, s := range v.Signatures {
		tx.Signature = append(tx.Signature, unhex(t, s))
	}
	in, err := decode(tx)
	if err != nil {
		t.Fatal(err)
	}
	if in.id.String() != v.TxID || hex.EncodeToString(encode(raw)) != v.RawDataHex || in.owner.Hex() != v.OwnerHex {
		t.Errorf("id %s owner %s or the bytes differ", in.id, in.owner.Hex())
	}
	checkSigners(t, v, in)
	switch m := in.message.(type) {
	case *core.TriggerSmartContract:
		to, amount := wordAddress(m.Data[4:36]), new(big.Int).SetBytes(m.Data[36:68])
		if to.Hex() != v.TRC20.ToHex || amount.String() != v.TRC20.Amount || hex.EncodeToString(m.ContractAddress) != v.TRC20.ContractHex {
			t.Errorf("TRC-20 transfer of %s to %s", amount, to.Hex())
		}
	case *core.TransferContract:
		if hex.EncodeToString(m.ToAddress) != v.Transfer.ToHex || big.NewInt(m.Amount).String() != v.Transfer.Amount.String() {
			t.Errorf("transfer of %d to %x", m.Amount, m.ToAddress)
		}
	default:
		t.Errorf("contract is a %T", m)
	}
}

// checkSigners recovers who signed and, where the permission is documented, puts
// the transaction through the node's own weighing.
func checkSigners(t *testing.T, v vector, in *incoming) {
	for i, s := range in.tx.Signature {
		a, err := Recover(in.id, s)
		if err != nil {
			t.Fatal(err)
		}
		want := v.OwnerHex
		if len(v.Signers) > 0 {
			want = mustAddress(v.Signers[i]).Hex()
		}
		if a.Hex() != want {
			t.Errorf("signature %d recovers %s, want %s", i, a.Hex(), want)
		}
	}
	if v.Permission == nil {
		return
	}
	p := &core.Permission{Type: core.Permission_Active, Id: v.Permission.ID, Threshold: v.Permission.Threshold, Operations: unhex(t, v.Permission.Operations)}
	for _, k := range v.Permission.Keys {
		a := mustAddress(k.Address)
		p.Keys = append(p.Keys, &core.Key{Address: a[:], Weight: k.Weight})
	}
	st := newState()
	st.createAccount(in.owner, core.AccountType_Normal, 0)
	st.edit(in.owner, func(x *core.Account) { x.ActivePermission = []*core.Permission{p} })
	if err := st.checkSignatures(in.tx, in.id, in.owner); err != nil {
		t.Errorf("the documented permission refuses its own transaction: %v", err)
	}
	in.tx.Signature = in.tx.Signature[:1]
	if err := st.checkSignatures(in.tx, in.id, in.owner); err == nil {
		t.Error("one of two signatures suffices")
	}
}

func checkSignVector(t *testing.T, v vector) {
	key := mustKey(v.PrivateKey)
	owner := AddressOfKey(key)
	if owner.String() != v.Owner {
		t.Fatalf("owner %s, want %s", owner, v.Owner)
	}
	id := BlockID(v.BlockHeader.message(t))
	raw := &core.TransactionRaw{RefBlockBytes: id[6:8], RefBlockHash: id[8:16], Timestamp: v.Timestamp, Expiration: v.Expiration}
	var message proto.Message
	kind := core.Transaction_Contract_TransferContract
	if v.Transfer != nil {
		to := mustAddress(v.Transfer.To)
		amount, err := v.Transfer.Amount.Int64()
		if err != nil {
			t.Fatal(err)
		}
		message = &core.TransferContract{OwnerAddress: owner[:], ToAddress: to[:], Amount: amount}
	} else {
		kind = core.Transaction_Contract_TriggerSmartContract
		to, contract := mustAddress(v.TRC20.To), mustAddress(v.TRC20.Contract)
		amount, _ := new(big.Int).SetString(v.TRC20.Amount, 10)
		data := calldata("transfer(address,uint256)", to[1:], amount.Bytes())
		if v.AddressByte11 != "" {
			data[4+11] = unhex(t, v.AddressByte11)[0]
		}
		message = &core.TriggerSmartContract{OwnerAddress: owner[:], ContractAddress: contract[:], Data: data}
	}
	parameter, err := anypb.New(message)
	if err != nil {
		t.Fatal(err)
	}
	raw.Contract = []*core.Transaction_Contract{{Type: kind, Parameter: parameter}}
	tx := &core.Transaction{RawData: raw}
	if err := Sign(tx, key); err != nil {
		t.Fatal(err)
	}
	if got := TransactionID(tx).String(); got != v.TxID {
		t.Errorf("id %s, want %s", got, v.TxID)
	}
	if got := hex.EncodeToString(tx.Signature[0]); got != v.Signature {
		t.Errorf("signature %s, want %s", got, v.Signature)
	}
}

func checkHeaderVector(t *testing.T, v vector) {
	raw := v.Raw.message(t)
	if got := BlockID(raw).String(); got != v.BlockID {
		t.Errorf("block id %s, want %s", got, v.BlockID)
	}
	signer, err := Recover(Hash(headerDigest(raw)), unhex(t, v.WitnessSignature))
	if err != nil {
		t.Fatal(err)
	}
	// A representative may sign with a key of its own; the vector then names it.
	if signer.Hex() != v.Raw.WitnessAddress && !strings.Contains(v.Note, signer.String()) {
		t.Errorf("block is signed by %s, witness is %s", signer.Hex(), v.Raw.WitnessAddress)
	}
}

func checkAddressVector(t *testing.T, v vector) {
	var got Address
	switch {
	case v.Mnemonic != "":
		key, _ := mnemonic.FromSeedAndPassphrase(v.Mnemonic, "", 0)
		got, _ = addressOf(sdkaddress.BTCECPrivkeyToAddress(key))
	case v.PrivateKey != "":
		got = AddressOfKey(mustKey(v.PrivateKey))
	default:
		got = mustAddress(v.Hex)
		if back := mustAddress(v.Base58); back != got {
			t.Errorf("base58 and hexadecimal name different addresses")
		}
	}
	if got.String() != v.Base58 {
		t.Errorf("address %s, want %s", got, v.Base58)
	}
}

func checkTriggerVector(t *testing.T, v vector) {
	var m core.TriggerSmartContract
	if err := proto.Unmarshal(unhex(t, v.TriggerHex), &m); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(m.Data[4:16], make([]byte, 12)) {
		t.Fatal("the vector's address word is not dirty")
	}
	from, _ := addressOf(m.OwnerAddress)
	to, amount := wordAddress(m.Data[4:36]), new(big.Int).SetBytes(m.Data[36:68])
	if from.String() != v.From || to.String() != v.To || amount.String() != v.Amount {
		t.Errorf("decoded %s from %s to %s", amount, from, to)
	}
	// The same calldata, on this chain's USDT.
	b := newBench(t)
	holder := b.funded(20_000_000, "holder")[0]
	info := b.mined(b.trigger(holder, USDTAddress, m.Data), holder)
	if info.Receipt.Result != core.Transaction_Result_SUCCESS || wordAddress(info.Log[0].Topics[2]) != to {
		t.Errorf("the chain's USDT ends it in %s %q", info.Receipt.Result, info.ResMessage)
	}
}

// checkReceiptVector compares a main network receipt of 2020 with what this
// chain's USDT gives for the same payment.
func checkReceiptVector(t *testing.T, v vector) {
	b := newBench(t)
	holder := b.funded(20_000_000, "holder")[0]
	to := addressOfVM([20]byte(unhex(t, v.Transfer.ToHex20)))
	b.must(b.FundToken(mustAddress(USDTAddress), to, big.NewInt(1))) // the recipient held USDT before
	amount, _ := new(big.Int).SetString(v.Transfer.Amount.String(), 10)
	info := b.mined(b.trigger(holder, USDTAddress, calldata("transfer(address,uint256)", to[1:], amount.Bytes())), holder)
	r := info.Receipt
	if r.Result.String() != v.Result || hex.EncodeToString(info.ContractResult[0]) != v.ContractResult {
		t.Errorf("result %s, contract result %x", r.Result, info.ContractResult[0])
	}
	if r.EnergyUsageTotal < v.EnergyTotal*98/100 || r.EnergyUsageTotal > v.EnergyTotal*102/100 {
		t.Errorf("energy %d, want %d within 2 %%", r.EnergyUsageTotal, v.EnergyTotal)
	}
	// In 2020 a unit of energy cost 10 sun.
	if v.EnergyFee != v.EnergyTotal*10 || r.EnergyFee != r.EnergyUsageTotal*energyFee {
		t.Errorf("energy fee %d for %d energy", r.EnergyFee, r.EnergyUsageTotal)
	}
}

func TestContractAddressIsDerivedFromTransaction(t *testing.T) {
	b := newBench(t)
	owner := b.funded(0, "owner")[0]
	info := b.deployProbe(owner)
	want := crypto.Keccak256(info.Id, owner.addr[:])[12:]
	if !bytes.Equal(info.ContractAddress[1:], want) || info.ContractAddress[0] != addressPrefix {
		t.Errorf("contract at %x, want 41%x", info.ContractAddress, want)
	}
}

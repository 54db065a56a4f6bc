package tron

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// vector is one entry of the public material: signed transactions of mainnet and of other wallets' tests, block headers,
// addresses, receipts.
type vector struct {
	Kind, ID, TxID, Owner, Base58, Hex, To, Result, Signature string

	Sender       string        `json:"from_"`
	RawDataHex   string        `json:"raw_data_hex"`
	OwnerHex     string        `json:"owner_hex"`
	TriggerHex   string        `json:"trigger_hex"`
	PrivateKey   string        `json:"private_key"`
	BlockID      string        `json:"blockID"`
	AddressByte  string        `json:"abi_address_byte_11"`
	PermissionID int32         `json:"permission_id"`
	Reference    *headerVector `json:"block_header"`
	Header       *headerVector `json:"raw"`
	Transfer     json.RawMessage

	Fee, Timestamp, Expiration int64
	Signatures, Signers        []string

	TRC20 *struct {
		ContractHex string `json:"contract_hex"`
		ToHex       string `json:"to_hex"`
		Amount      string
	}
}

type headerVector struct {
	Number         int64
	Timestamp      int64
	TxTrieRoot     string `json:"tx_trie_root"`
	ParentHash     string `json:"parent_hash"`
	WitnessAddress string `json:"witness_address"`
	Version        int32
}

// vectors reads the fixtures, which are beside the repository and not in it.
func vectors(t *testing.T, kind string) []vector {
	t.Helper()
	path := fixture(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	var out []vector
	for _, v := range file.Vectors {
		if v.Kind == kind {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no vectors of kind %s", kind)
	}
	return out
}

// fixture is the file of published vectors, which we may not copy.
func fixture(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KIVUKO_FIXTURES")
	if dir == "" {
		t.Skip("the published vectors are not here: KIVUKO_FIXTURES names the folder above them, see the Makefile")
	}
	return filepath.Join(dir, "tron/vectors.json")
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func offline(t testing.TB) *Client {
	t.Helper()
	c, err := New(Config{
		FullNodes: []Endpoint{{Address: "127.0.0.1:1"}}, SolidityNodes: []Endpoint{{Address: "127.0.0.1:1"}},
		Tokens: map[money.Asset]string{money.USDT: "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
		Now:    func() time.Time { return time.UnixMilli(1_800_000_000_000) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTransactionVectors(t *testing.T) {
	for _, v := range vectors(t, "transaction") {
		t.Run(v.ID, func(t *testing.T) {
			raw := &core.TransactionRaw{}
			if err := proto.Unmarshal(unhex(t, v.RawDataHex), raw); err != nil {
				t.Fatal(err)
			}
			id, err := txID(raw)
			if err != nil || id != v.TxID {
				t.Errorf("id %s, want %s (%v)", id, v.TxID, err)
			}
			owner, ok := fromFull(unhex(t, v.OwnerHex))
			if !ok {
				t.Fatal("owner")
			}
			for i, s := range v.Signatures {
				signer, err := recoverSigner(sha256.Sum256(unhex(t, v.RawDataHex)), unhex(t, s))
				if err != nil {
					t.Fatal(err)
				}
				want := owner.String()
				if len(v.Signers) > 0 {
					want = v.Signers[i]
				}
				if signer.String() != want {
					t.Errorf("signature %d is of %s, want %s", i, signer, want)
				}
			}
			if len(v.Signatures) == 1 && v.PermissionID == 0 {
				signed := &core.Transaction{RawData: raw, Signature: [][]byte{unhex(t, v.Signatures[0])}}
				encoded, err := deterministic.Marshal(signed)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := decodeSigned(encoded); err != nil {
					t.Errorf("a transaction of the network is refused: %v", err)
				}
			}
			rebuild(t, v, raw)
		})
	}
}

// rebuild makes a token transfer from its parts and must get the same bytes, unless its wallet wrote a dirty address word,
// which we read but never write.
func rebuild(t *testing.T, v vector, raw *core.TransactionRaw) {
	t.Helper()
	if v.TRC20 == nil {
		return
	}
	to, _ := fromFull(unhex(t, v.TRC20.ToHex))
	from, _ := fromFull(unhex(t, v.OwnerHex))
	token, _ := fromFull(unhex(t, v.TRC20.ContractHex))
	trigger := &core.TriggerSmartContract{}
	if err := raw.GetContract()[0].GetParameter().UnmarshalTo(trigger); err != nil {
		t.Fatal(err)
	}
	word := trigger.GetData()[4:36]
	if got, ok := fromWord(word); !ok || got != to {
		t.Errorf("the address word holds %s, want %s", got, to)
	}
	if !bytes.Equal(word[:12], make([]byte, 12)) {
		return
	}
	units, ok := new(big.Int).SetString(v.TRC20.Amount, 10)
	if !ok {
		t.Fatal("amount")
	}
	again := proto.CloneOf(raw)
	again.Contract = nil
	c := &Client{contracts: map[money.Asset]accountID{money.USDT: token}}
	if err := c.setTokenTransfer(again, intent{from: from, to: to, amount: money.FromUnits(money.USDT, units)}); err != nil {
		t.Fatal(err)
	}
	if id, err := txID(again); err != nil || id != v.TxID {
		t.Errorf("rebuilt as %s, want %s (%v)", id, v.TxID, err)
	}
}

func TestDirtyAddressWord(t *testing.T) {
	for _, v := range vectors(t, "trigger_decode") {
		trigger := &core.TriggerSmartContract{}
		if err := proto.Unmarshal(unhex(t, v.TriggerHex), trigger); err != nil {
			t.Fatal(err)
		}
		if to, ok := fromWord(trigger.GetData()[4:36]); !ok || to.String() != v.To {
			t.Errorf("recipient %s, want %s", to, v.To)
		}
		if from, ok := fromFull(trigger.GetOwnerAddress()); !ok || from.String() != v.Sender {
			t.Errorf("sender %s, want %s", from, v.Sender)
		}
	}
}

func TestBlockHeaderVectors(t *testing.T) {
	for _, v := range vectors(t, "block_header") {
		h := headerMessage(t, v.Header)
		body, err := deterministic.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if got := blockHash(body, h.GetNumber()); hex.EncodeToString(got) != v.BlockID {
			t.Errorf("block id %x, want %s", got, v.BlockID)
		}
	}
}

func headerMessage(t *testing.T, h *headerVector) *core.BlockHeaderRaw {
	t.Helper()
	return &core.BlockHeaderRaw{
		Number: h.Number, Timestamp: h.Timestamp, TxTrieRoot: unhex(t, h.TxTrieRoot), ParentHash: unhex(t, h.ParentHash),
		WitnessAddress: unhex(t, h.WitnessAddress), Version: h.Version,
	}
}

// blockHash is a block's id: the hash of its header with the number in front.
func blockHash(body []byte, number int64) []byte {
	digest := sha256.Sum256(body)
	for i := range 8 {
		digest[i] = byte(number >> (8 * (7 - i)))
	}
	return digest[:]
}

// testKey is a private key of a test.
type testKey struct{ secret []byte }

func (k testKey) PublicKey() []byte {
	key, err := crypto.ToECDSA(k.secret)
	if err != nil {
		panic(err)
	}
	return crypto.FromECDSAPub(&key.PublicKey)
}

func (k testKey) Sign(digest []byte) ([]byte, error) {
	key, err := crypto.ToECDSA(k.secret)
	if err != nil {
		return nil, err
	}
	return crypto.Sign(digest, key)
}

// The driver's own code builds and signs the transfer vector of Trust Wallet's core, from the block header to the last byte
// of the signature.
func TestWalletCoreTransfer(t *testing.T) {
	for _, v := range vectors(t, "sign") {
		if v.AddressByte != "" {
			continue // this one has a dirty address word, which we never write
		}
		c := offline(t)
		key := testKey{unhex(t, v.PrivateKey)}
		if holder, err := c.Address(key.PublicKey()); err != nil || holder != v.Owner {
			t.Fatalf("the key gives %s, want %s (%v)", holder, v.Owner, err)
		}
		h := headerMessage(t, v.Reference)
		body, err := deterministic.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		block := chain.Block{
			Number: uint64(h.GetNumber()), ID: hex.EncodeToString(blockHash(body, h.GetNumber())), Time: time.UnixMilli(v.Timestamp),
		}
		raw, err := c.envelope(block, block, DefaultTransactionLife)
		if err != nil {
			t.Fatal(err)
		}
		raw.Timestamp, raw.Expiration = v.Timestamp, v.Expiration
		var transfer struct {
			To     string
			Amount int64
		}
		if err := json.Unmarshal(v.Transfer, &transfer); err != nil {
			t.Fatal(err)
		}
		want := chain.Transfer{From: v.Owner, To: transfer.To, Amount: sunOf(transfer.Amount)}
		in, err := c.intent(want)
		if err != nil {
			t.Fatal(err)
		}
		message := &core.TransferContract{OwnerAddress: in.from.full(), ToAddress: in.to.full(), Amount: transfer.Amount}
		if err := setContract(raw, core.Transaction_Contract_TransferContract, message); err != nil {
			t.Fatal(err)
		}
		u, err := unsigned(want, raw, 0)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := c.Sign(u, key)
		if err != nil {
			t.Fatal(err)
		}
		if signed.TxID != v.TxID {
			t.Errorf("id %s, want %s", signed.TxID, v.TxID)
		}
		if !bytes.Contains(signed.Raw, unhex(t, v.Signature)) {
			t.Errorf("the signature %s is not in %x", v.Signature, signed.Raw)
		}
	}
}

func TestAddressVectors(t *testing.T) {
	c := offline(t)
	for _, v := range vectors(t, "address") {
		if got, err := ParseAddress(v.Base58); err != nil || got != v.Base58 {
			t.Errorf("%s: %s, %v", v.ID, got, err)
		}
		if v.Hex != "" {
			if id, err := parse(v.Base58); err != nil || hex.EncodeToString(id.full()) != v.Hex {
				t.Errorf("%s: %x, want %s", v.ID, id.full(), v.Hex)
			}
		}
		if v.PrivateKey != "" {
			if got, err := c.Address(testKey{unhex(t, v.PrivateKey)}.PublicKey()); err != nil || got != v.Base58 {
				t.Errorf("%s: %s, %v", v.ID, got, err)
			}
		}
	}
}

// A transfer of mainnet's USDT that returned 32 zero bytes, which mean "false", has succeeded.
func TestReceiptWithFalseReturn(t *testing.T) {
	for _, v := range vectors(t, "receipt") {
		var transfer struct {
			From   string `json:"from_hex20"`
			To     string `json:"to_hex20"`
			Amount string
		}
		if err := json.Unmarshal(v.Transfer, &transfer); err != nil {
			t.Fatal(err)
		}
		c := offline(t)
		token := c.contracts[money.USDT]
		units, err := money.Parse(money.USDT, "0.010000")
		if err != nil {
			t.Fatal(err)
		}
		dirty := bytes.Repeat([]byte{0x41}, 12)
		info := &core.TransactionInfo{
			Fee: v.Fee, ContractResult: [][]byte{make([]byte, 32)},
			Receipt: &core.ResourceReceipt{Result: core.Transaction_Result_SUCCESS},
			Log: []*core.TransactionInfo_Log{{
				Address: token[:], Data: units.Units().FillBytes(make([]byte, 32)),
				Topics: [][]byte{
					transferTopic(), append(bytes.Clone(dirty), unhex(t, transfer.From)...), append(bytes.Clone(dirty), unhex(t, transfer.To)...),
				},
			}},
		}
		if ok, code := verdict(&core.Transaction{}, info); !ok || code != v.Result {
			t.Errorf("verdict %v %s, want %s", ok, code, v.Result)
		}
		moved, err := c.movements(v.TxID, &core.TransactionRaw{}, info)
		if err != nil || len(moved) != 1 {
			t.Fatalf("movements %+v, %v", moved, err)
		}
		m := moved[0]
		if m.From != accountID(unhex(t, transfer.From)).String() || m.To != accountID(unhex(t, transfer.To)).String() || m.Amount.Units().String() != transfer.Amount {
			t.Errorf("movement %+v", m)
		}
		if feeOf(info).Units().Int64() != v.Fee {
			t.Errorf("fee %s", feeOf(info))
		}
	}
}

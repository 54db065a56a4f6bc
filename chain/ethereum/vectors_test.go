package ethereum

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	base58 "github.com/fbsobreira/gotron-sdk/pkg/common"

	"kivuko/exchange/money"
)

// vector is one entry of the public material: transactions of other wallets' tests, hashes of public chains, examples of the
// standards.
type vector struct {
	ID, Kind string
	Input    map[string]any
	Expect   map[string]any
}

func vectors(t *testing.T) []vector {
	t.Helper()
	content, err := os.ReadFile(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file.Vectors
}

// fixture is the file of published vectors, which we may not copy.
func fixture(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KIVUKO_FIXTURES")
	if dir == "" {
		t.Skip("the published vectors are not here: KIVUKO_FIXTURES names the folder above them, see the Makefile")
	}
	return filepath.Join(dir, "ethereum/vectors.json")
}

func TestVectors(t *testing.T) {
	t.Parallel()
	checks := map[string]func(*testing.T, vector){
		"eip1559-sign": checkSigned, "eip1559-erc20-transfer": checkSigned, "legacy-sign": checkLegacy, "erc20-calldata": checkCalldata,
		"safe-tx-hash": checkSafe, "eip712-sign": checkMail, "create2": checkCreate2, "bip32": checkBIP32, "bip44-eth": checkBIP44,
	}
	all := vectors(t)
	const published = 18
	if len(all) < published {
		t.Fatalf("%d vectors, there were %d", len(all), published)
	}
	for _, v := range all {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			check := checks[v.Kind]
			if check == nil {
				t.Fatalf("no check for vectors of kind %s", v.Kind)
			}
			check(t, v)
		})
	}
}

func text(m map[string]any, field string) string { s, _ := m[field].(string); return s }

// bigOf reads a number that is JSON's, hexadecimal or decimal text.
func bigOf(t *testing.T, v any) *big.Int {
	t.Helper()
	switch x := v.(type) {
	case json.Number:
		return bigOf(t, x.String())
	case string:
		n, ok := new(big.Int).SetString(x, 0)
		if !ok {
			t.Fatalf("%q is no number", x)
		}
		return n
	}
	return new(big.Int)
}

func same(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if want != "" && !strings.EqualFold(hexutil.Encode(got), want) {
		t.Errorf("%s\n got %x\nwant %s", what, got, want)
	}
}

// calldata encodes a transfer, and an approval, which this package never makes.
func calldata(t *testing.T, m map[string]any) []byte {
	t.Helper()
	to, n := common.HexToAddress(text(m, "to")), bigOf(t, m["amount"])
	if text(m, "method") == "transfer" {
		return transferCall(to, money.FromUnits(money.USDT, n))
	}
	return bytes.Join([][]byte{selector("approve(address,uint256)"), common.LeftPadBytes(to.Bytes(), wordLength), common.BigToHash(n).Bytes()}, nil)
}

func checkSigned(t *testing.T, v vector) {
	in := v.Input
	e := envelope{
		ChainID: bigOf(t, in["chainId"]), Nonce: bigOf(t, in["nonce"]).Uint64(), GasTipCap: bigOf(t, in["maxPriorityFeePerGas"]),
		GasFeeCap: bigOf(t, in["maxFeePerGas"]), Gas: bigOf(t, in["gasLimit"]).Uint64(), To: common.HexToAddress(text(in, "to")),
		Value: bigOf(t, in["value"]), Data: common.FromHex(text(in, "data")),
	}
	if m, ok := in["erc20"].(map[string]any); ok {
		e.Data = calldata(t, m)
	}
	list, err := json.Marshal(in["accessList"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(list, &e.AccessList); err != nil {
		t.Fatal(err)
	}
	body, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "unsigned", body, text(v.Expect, "unsigned"))
	if again, err := decode(body); err != nil || again.Nonce != e.Nonce || again.To != e.To || !bytes.Equal(again.Data, e.Data) {
		t.Errorf("decoded as %+v, %v", again, err)
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text(in, "privateKey"), "0x"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := crypto.Sign(crypto.Keccak256(body), key)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := e.transaction(signature)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "signed", raw, text(v.Expect, "signed"))
	same(t, "id", tx.Hash().Bytes(), text(v.Expect, "hash"))
	if got, err := decodeSigned(raw); err != nil || got.Hash() != tx.Hash() {
		t.Errorf("the signed bytes are read as %v, %v", got, err)
	}
}

// checkLegacy: the example of EIP-155 is of an older type, which we never send.
func checkLegacy(t *testing.T, v vector) {
	to := common.HexToAddress(text(v.Input, "to"))
	signer := types.NewEIP155Signer(bigOf(t, v.Input["chainId"]))
	tx := types.NewTx(&types.LegacyTx{
		Nonce: bigOf(t, v.Input["nonce"]).Uint64(), GasPrice: bigOf(t, v.Input["gasPrice"]), Gas: bigOf(t, v.Input["gasLimit"]).Uint64(),
		To: &to, Value: bigOf(t, v.Input["value"]),
	})
	same(t, "digest", signer.Hash(tx).Bytes(), text(v.Expect, "signingHash"))
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text(v.Input, "privateKey"), "0x"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := types.SignTx(tx, signer, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := signed.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "signed", raw, text(v.Expect, "signed"))
	if _, err := decodeSigned(raw); err == nil {
		t.Error("a transaction of another type was accepted")
	}
}

func checkCalldata(t *testing.T, v vector) {
	same(t, "calldata", calldata(t, v.Input), text(v.Expect, "data"))
}

// hashed is the Keccak-256 of words, as EIP-712 hashes a structure.
func hashed(words ...[]byte) []byte {
	var all []byte
	for _, w := range words {
		all = append(all, common.LeftPadBytes(w, wordLength)...)
	}
	return crypto.Keccak256(all)
}

func typed(domain, content []byte) []byte {
	return crypto.Keccak256([]byte{0x19, 0x01}, domain, content)
}

func checkSafe(t *testing.T, v vector) {
	in := v.Input
	address := func(field string) common.Address { return common.HexToAddress(text(in, field)) }
	tx := safeTx{
		to: address("to"), value: bigOf(t, in["value"]), data: common.FromHex(text(in, "data")), operation: uint8(bigOf(t, in["operation"]).Uint64()),
		safeTxGas: bigOf(t, in["safeTxGas"]), baseGas: bigOf(t, in["baseGas"]), gasPrice: bigOf(t, in["gasPrice"]),
		gasToken: address("gasToken"), refundReceiver: address("refundReceiver"), nonce: bigOf(t, in["nonce"]).Uint64(),
	}
	chainID := bigOf(t, in["chainId"])
	same(t, "domain", safeDomain(chainID, address("safe")).Bytes(), text(v.Expect, "domainHash"))
	same(t, "message", tx.content().Bytes(), text(v.Expect, "messageHash"))
	same(t, "safeTxHash", tx.hash(chainID, address("safe")).Bytes(), text(v.Expect, "safeTxHash"))
	// The library of wallets' typed data must come to the same hash.
	_, hash, err := tx.encode(chainID, address("safe"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "safeTxHash of the typed data", hash.Bytes(), text(v.Expect, "safeTxHash"))
}

func checkMail(t *testing.T, v vector) {
	data, _ := v.Input["typedData"].(map[string]any)
	d, _ := data["domain"].(map[string]any)
	m, _ := data["message"].(map[string]any)
	person := func(field string) []byte {
		p, _ := m[field].(map[string]any)
		return hashed(crypto.Keccak256([]byte("Person(string name,address wallet)")), crypto.Keccak256([]byte(text(p, "name"))), common.FromHex(text(p, "wallet")))
	}
	domain := hashed(crypto.Keccak256([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")),
		crypto.Keccak256([]byte(text(d, "name"))), crypto.Keccak256([]byte(text(d, "version"))), bigOf(t, d["chainId"]).Bytes(), common.FromHex(text(d, "verifyingContract")))
	content := hashed(crypto.Keccak256([]byte("Mail(Person from,Person to,string contents)Person(string name,address wallet)")),
		person("from"), person("to"), crypto.Keccak256([]byte(text(m, "contents"))))
	same(t, "domain", domain, text(v.Expect, "domainSeparator"))
	same(t, "content", content, text(v.Expect, "structHash"))
	digest := typed(domain, content)
	same(t, "digest", digest, text(v.Expect, "digest"))
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text(v.Input, "privateKey"), "0x"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := crypto.Sign(digest, key)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "r", signature[:32], text(v.Expect, "r"))
	same(t, "s", signature[32:64], text(v.Expect, "s"))
	same(t, "signer", crypto.PubkeyToAddress(key.PublicKey).Bytes(), text(v.Expect, "signer"))
}

func checkCreate2(t *testing.T, v vector) {
	got := crypto.CreateAddress2(common.HexToAddress(text(v.Input, "address")), common.HexToHash(text(v.Input, "salt")), crypto.Keccak256(common.FromHex(text(v.Input, "initCode"))))
	if got.Hex() != text(v.Expect, "address") {
		t.Errorf("got %s", got)
	}
}

// derive follows a path of BIP-32 from a seed and returns the private key and the chain code at its end.
func derive(t *testing.T, seed []byte, path string) (key, code []byte) {
	t.Helper()
	split := func(message, salt []byte) ([]byte, []byte) {
		h := hmac.New(sha512.New, salt)
		h.Write(message)
		out := h.Sum(nil)
		return out[:32], out[32:]
	}
	key, code = split(seed, []byte("Bitcoin seed"))
	for _, step := range strings.Split(path, "/")[1:] {
		plain, hard := strings.CutSuffix(step, "'")
		n, err := strconv.ParseUint(plain, 10, 31)
		if err != nil {
			t.Fatal(err)
		}
		message := append([]byte{0}, key...)
		if hard {
			n |= 1 << 31
		} else {
			k, err := crypto.ToECDSA(key)
			if err != nil {
				t.Fatal(err)
			}
			message = crypto.CompressPubkey(&k.PublicKey)
		}
		left, right := split(binary.BigEndian.AppendUint32(message, uint32(n)), code)
		sum := new(big.Int).Add(new(big.Int).SetBytes(left), new(big.Int).SetBytes(key))
		key, code = common.BigToHash(sum.Mod(sum, crypto.S256().Params().N)).Bytes(), right
	}
	return key, code
}

func checkBIP32(t *testing.T, v vector) {
	key, code := derive(t, common.FromHex(text(v.Input, "seed")), text(v.Input, "path"))
	raw, err := base58.Decode(text(v.Expect, "xprv"))
	if err != nil {
		t.Fatal(err)
	}
	// version 4, depth 1, parent 4, child 4, chain code 32, zero 1, key 32, checksum 4
	if !bytes.Equal(raw[13:45], code) || !bytes.Equal(raw[46:78], key) {
		t.Errorf("derived %x with %x", key, code)
	}
}

func checkBIP44(t *testing.T, v vector) {
	const rounds, length = 2048, 64 // BIP-39
	seed, err := pbkdf2.Key(sha512.New, text(v.Input, "mnemonic"), []byte("mnemonic"), rounds, length)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := v.Expect["addresses"].([]any)
	for i, address := range want {
		digits, _ := derive(t, seed, "m/44'/60'/0'/0/"+strconv.Itoa(i))
		key, err := crypto.ToECDSA(digits)
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{}
		got, err := c.Address(crypto.FromECDSAPub(&key.PublicKey))
		if err != nil || got != address {
			t.Errorf("account %d is %s, %v, want %v", i, got, err, address)
		}
		if parsed, err := c.ParseAddress(strings.ToLower(got)); err != nil || parsed != got {
			t.Errorf("%s is read as %s, %v", strings.ToLower(got), parsed, err)
		}
	}
	if len(want) == 0 {
		t.Error("no addresses")
	}
}

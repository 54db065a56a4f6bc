package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
)

// coldHarness is a cold machine with a key, and a payload for it.
type coldHarness struct {
	process process
	out     *bytes.Buffer
	file    map[string]any
	sealer  *keys.ColdSealer
}

func newColdHarness(t *testing.T) *coldHarness {
	t.Helper()
	dir := t.TempDir()
	w := &coldHarness{out: &bytes.Buffer{}}
	config, err := load(t, ethereumEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	config.Keys.Cold = filepath.Join(dir, "cold.json")
	config.Ethereum.RPC, config.Tron.FullNodes = nil, nil // the machine has no network
	w.process = process{config, slog.New(slog.DiscardHandler), w.out}
	if err := runColdKey(t.Context(), w.process, []string{"-out", config.Keys.Cold}); err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(dir, "public.json")
	if err := os.WriteFile(public, w.out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	w.out.Reset()
	if w.sealer, err = keys.ReadColdSealer(public); err != nil {
		t.Fatal(err)
	}
	w.payload(t, config)
	return w
}

// payload is a payment of one ether, as the service hands it out.
func (w *coldHarness) payload(t *testing.T, c Config) {
	t.Helper()
	wallet := uuid.New()
	sealed, err := w.sealer.Create(t.Context(), keys.Ref{WalletID: wallet, Network: exchange.Ethereum})
	if err != nil {
		t.Fatal(err)
	}
	from, to := common.BytesToAddress(crypto.Keccak256(sealed.PublicKey[1:])[12:]), common.HexToAddress("0x00000000000000000000000000000000c0ffee01")
	chainID := new(big.Int).SetUint64(c.Ethereum.ChainID)
	fields, err := rlp.EncodeToBytes([]any{chainID, uint64(7), big.NewInt(1e9), big.NewInt(30e9), uint64(21_000), to, big.NewInt(1e18), []byte{}, types.AccessList{}})
	if err != nil {
		t.Fatal(err)
	}
	fields = append([]byte{types.DynamicFeeTxType}, fields...)
	w.file = map[string]any{
		"transfer_id": uuid.New(), "wallet_id": wallet, "network": "ethereum", "asset": "ETH", "amount": "1", "from_address": from.Hex(), "to_address": to.Hex(),
		"fee_limit": "0.00063", "nonce": 7, "bid_tip": "0.000000001", "bid_cap": "0.00000003", "ref_block": "", "expires_at": nil,
		"body": hex.EncodeToString(append(from.Bytes(), fields...)), "payload": hex.EncodeToString(crypto.Keccak256(fields)),
		"sealed_key": map[string]any{
			"ciphertext": hex.EncodeToString(sealed.Ciphertext), "master_key": sealed.MasterKey, "public_key": hex.EncodeToString(sealed.PublicKey), "algorithm": sealed.Algorithm,
		},
	}
}

func (w *coldHarness) sign(t *testing.T, change func(map[string]any)) (string, error) {
	t.Helper()
	file := map[string]any{}
	for k, v := range w.file {
		file[k] = v
	}
	change(file)
	content, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "draft.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w.out.Reset()
	err = runColdSign(t.Context(), w.process, []string{"-draft", path, "-yes"})
	return strings.TrimSpace(w.out.String()), err
}

func TestColdSigning(t *testing.T) {
	w := newColdHarness(t)
	text, err := w.sign(t, func(map[string]any) {})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	client, err := w.process.config.offline(exchange.Ethereum)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	content, err := json.Marshal(w.file)
	if err != nil {
		t.Fatal(err)
	}
	var f coldFile
	if err := json.Unmarshal(content, &f); err != nil {
		t.Fatal(err)
	}
	u, _, err := f.parse()
	if err != nil {
		t.Fatal(err)
	}
	if signed, err := client.(chain.Offline).TakeSigned(u, raw); err != nil || signed.Nonce != 7 {
		t.Errorf("the service would not accept it: %v", err)
	}
	for name, change := range map[string]func(map[string]any){
		"another recipient": func(f map[string]any) { f["to_address"] = "0x00000000000000000000000000000000000000bB" },
		"another amount":    func(f map[string]any) { f["amount"] = "2" },
		"another payload":   func(f map[string]any) { f["payload"] = strings.Repeat("00", 32) },
		"another wallet":    func(f map[string]any) { f["wallet_id"] = uuid.New() },
		"another network":   func(f map[string]any) { f["network"] = "solana" },
		"a smaller fee":     func(f map[string]any) { f["fee_limit"] = "0.0001" },
		"no key":            func(f map[string]any) { f["sealed_key"] = nil },
		"no body":           func(f map[string]any) { f["body"] = "" },
	} {
		if text, err := w.sign(t, change); err == nil || text != "" {
			t.Errorf("%s: signed %s", name, text)
		}
	}
}

// Nothing is signed without a yes, and the values shown are those that the bytes are verified against.
func TestColdSigningAsks(t *testing.T) {
	t.Parallel()
	f := coldFile{Network: exchange.Tron, Asset: "USDT", From: "TFrom", To: "TTo"}
	for answer, want := range map[string]bool{"yes\n": true, "yes": true, "no\n": false, "\n": false, "": false, "Yes please\n": false} {
		var shown bytes.Buffer
		if err := confirm(strings.NewReader(answer), &shown, f, chain.Unsigned{}); (err == nil) != want {
			t.Errorf("%q: %v", answer, err)
		}
		if !strings.Contains(shown.String(), "TFrom") || !strings.Contains(shown.String(), "TTo") {
			t.Errorf("shown %s", shown.String())
		}
	}
}

// A signer that could decrypt cold keys does not start.
func TestASignerWithTheColdKeyIsRefused(t *testing.T) {
	env := ethereumEnvironment()
	env["COLD_KEY"] = "cold.json"
	config, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if err := config.check("signer-ethereum"); err == nil || !strings.Contains(err.Error(), "KIVUKO_COLD_KEY") {
		t.Errorf("%v", err)
	}
}

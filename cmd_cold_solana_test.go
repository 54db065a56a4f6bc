package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
)

// solanaPayload is a payment of one SOL with a nonce account, as the service hands it out. Its message is built by hand:
// the header, the accounts, the account's value, and five instructions.
func (w *coldHarness) solanaPayload(t *testing.T) {
	t.Helper()
	w.process.config.Solana.USDT, w.process.config.Solana.RPC = "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB", nil
	wallet := uuid.New()
	sealed, err := w.sealer.Create(t.Context(), keys.Ref{WalletID: wallet, Network: exchange.Solana})
	if err != nil {
		t.Fatal(err)
	}
	key := func() sdk.PublicKey {
		k, err := sdk.NewRandomPrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		return k.PublicKey()
	}
	payer, from, nonce, to, value := key(), sdk.PublicKey(sealed.PublicKey), key(), key(), key()
	message := []byte{2, 0, 4, 8}
	for _, k := range []sdk.PublicKey{payer, from, nonce, to, sdk.SysVarRecentBlockHashesPubkey, sdk.SystemProgramID, sdk.ComputeBudget, sdk.MemoProgramID, value} {
		message = append(message, k[:]...)
	}
	instruction := func(program byte, accounts, data []byte) {
		message = append(append(message, program, byte(len(accounts))), accounts...)
		message = append(append(message, byte(len(data))), data...)
	}
	message = append(message, 5)
	instruction(5, []byte{2, 4, 0}, []byte{4, 0, 0, 0})
	instruction(6, nil, binary.LittleEndian.AppendUint32([]byte{2}, 40_000))
	instruction(6, nil, binary.LittleEndian.AppendUint64([]byte{3}, 1_000))
	instruction(7, nil, []byte(hex.EncodeToString(bytes.Repeat([]byte{7}, 16))))
	instruction(5, []byte{1, 3}, binary.LittleEndian.AppendUint64([]byte{2, 0, 0, 0}, 1_000_000_000))
	w.file = map[string]any{
		"transfer_id": uuid.New(), "wallet_id": wallet, "network": "solana", "asset": "SOL", "amount": "1", "from_address": from.String(), "to_address": to.String(),
		"fee_payer": payer.String(), "fee_limit": "0.00002", "nonce": 0, "bid_tip": nil, "bid_cap": nil, "ref_block": sdk.Hash(value).String(), "expires_at": nil,
		"nonce_account": nonce.String(), "nonce_block": 9, "body": hex.EncodeToString(message), "payload": hex.EncodeToString(message),
		"sealed_key": map[string]any{
			"ciphertext": hex.EncodeToString(sealed.Ciphertext), "master_key": sealed.MasterKey, "public_key": hex.EncodeToString(sealed.PublicKey), "algorithm": sealed.Algorithm,
		},
	}
}

// On Solana the owner signs first, and the transaction is invalid until the fee payer has signed too.
func TestColdSigningOnSolana(t *testing.T) {
	w := newColdHarness(t)
	w.solanaPayload(t)
	text, err := w.sign(t, func(map[string]any) {})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	client, err := w.process.config.offline(exchange.Solana)
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
	if part, err := client.(chain.Durable).TakePart(u, raw); err != nil || len(part) != sdk.SignatureLength {
		t.Errorf("the service would not accept it: %v", err)
	}
	if tx, err := sdk.TransactionFromBytes(raw); err != nil || !tx.Signatures[0].IsZero() || tx.VerifySignatures() == nil {
		t.Errorf("it is a whole transaction: %v", err)
	}
	for name, change := range map[string]func(map[string]any){
		"another recipient":     func(f map[string]any) { f["to_address"] = f["fee_payer"] },
		"another amount":        func(f map[string]any) { f["amount"] = "2" },
		"another fee payer":     func(f map[string]any) { f["fee_payer"] = f["to_address"] },
		"no fee payer":          func(f map[string]any) { f["fee_payer"] = "" },
		"another nonce account": func(f map[string]any) { f["nonce_account"] = f["to_address"] },
		"no nonce account":      func(f map[string]any) { f["nonce_account"] = "" },
		"another value":         func(f map[string]any) { f["ref_block"] = f["to_address"] },
		"a smaller fee":         func(f map[string]any) { f["fee_limit"] = "0.000001" },
		"another wallet":        func(f map[string]any) { f["wallet_id"] = uuid.New() },
		"another network":       func(f map[string]any) { f["network"] = "tron" },
	} {
		if text, err := w.sign(t, change); err == nil || text != "" {
			t.Errorf("%s: signed %s", name, text)
		}
	}
	var shown bytes.Buffer
	if err := confirm(strings.NewReader("yes"), &shown, f, u); err != nil || !strings.Contains(shown.String(), u.FeePayer) {
		t.Errorf("shown %s, %v", shown.String(), err)
	}
}

package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// makeColdKey makes the cold key as its keeper would, and gives the signers its public half.
func (w *harness) makeColdKey(ctx context.Context, dir, product string) error {
	w.coldKey = filepath.Join(dir, "cold.json")
	public := filepath.Join(dir, "cold-public.json")
	if _, err := os.Stat(public); err != nil { // it may exist from an earlier run on the same state directory
		cmd := exec.CommandContext(ctx, product, "cold-key", "-out", w.coldKey)
		cmd.Env = []string{"KIVUKO_MODE=local"}
		half, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("cold-key: %w", err)
		}
		if err := os.WriteFile(public, half, 0o644); err != nil {
			return err
		}
	}
	w.stack.SetEnvironment("COLD_PUBLIC_KEY", public)
	return nil
}

// coldSign signs a payload with the product's binary, as on a machine that has only the deployment's token addresses
// and its cold key.
func (w *harness) coldSign(t *testing.T, payload []byte) (string, error) {
	t.Helper()
	draft := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(draft, payload, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), w.stack.Product, "cold-sign", "-draft", draft, "-yes")
	cmd.Env = append(slices.DeleteFunc(w.stack.ProductEnvironment(stack.ProcessAPI), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		tokens := strings.HasSuffix(name, "_USDT") || strings.HasSuffix(name, "_USDC") || strings.HasSuffix(name, "_USDC_ENABLED")
		return !tokens && name != "KIVUKO_MODE" && name != "KIVUKO_ETHEREUM_CHAIN_ID"
	}), "KIVUKO_COLD_KEY="+w.coldKey)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// fundedWallet provisions a wallet of one of the seed's accounts and funds it.
func (w *harness) fundedWallet(t *testing.T, n exchange.Network, email string, kind exchange.WalletType, all ...money.Amount) exchange.Wallet {
	t.Helper()
	admin, err := w.adminLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := w.store.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	in := map[string]any{"user_id": u.ID, "network": n, "asset": "USDT", "wallet_type": kind}
	if err := insist(t.Context(), admin, "/api/v1/auth/wallets/provision", uuid.NewString(), in, &made); err != nil {
		t.Fatal(err)
	}
	wallet, err := w.store.Wallet(t.Context(), store.Everything(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(w.seed().Nodes(), func(node demo.Node) bool { return node.Network == n })
	for _, m := range all {
		if err := w.seed().Nodes()[at].Fund(t.Context(), wallet.Address, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range all {
		if err := demo.Booked(t.Context(), w.store, wallet, m); err != nil {
			t.Fatal(err)
		}
	}
	return wallet
}

// coldWallet returns a cold wallet with money to send and coins for the fee.
func (w *harness) coldWallet(t *testing.T, n exchange.Network) exchange.Wallet {
	t.Helper()
	brings := []money.Amount{money.Must(money.USDT, "20")}
	switch n {
	case exchange.Ethereum:
		brings = append(brings, money.Must(money.ETH, "0.5"))
	case exchange.Tron:
		brings = append(brings, money.Must(money.TRX, "500"))
	case exchange.Solana: // the house pays its fees
	}
	return w.fundedWallet(t, n, demo.SecondEmail, exchange.Cold, brings...)
}

// ofTransfer returns the path of a transfer's command.
func ofTransfer(id uuid.UUID, verb string) string {
	return "/api/v1/auth/transfers/" + id.String() + "/" + verb
}

// cold opens the trial's transfer out of a cold wallet.
func (w *harness) cold(t *testing.T, tr *trial, wallet uuid.UUID) {
	t.Helper()
	w.sendFor(t, tr, w.as(t, demo.SecondEmail), money.Must(money.USDT, small), wallet)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
}

// handOut has an officer request the payload to sign.
func (w *harness) handOut(t *testing.T, tr *trial) {
	t.Helper()
	if err := insist(t.Context(), w.operator(t), ofTransfer(tr.transfer.ID, "payload"), uuid.NewString(), nil, &tr.payload); err != nil {
		t.Fatal(err)
	}
}

// bring signs the payload and has an officer return it, in the background.
func (w *harness) bring(t *testing.T, tr *trial, arm func()) {
	t.Helper()
	signed, err := w.coldSign(t, tr.payload)
	if err != nil {
		t.Fatal(err)
	}
	arm()
	tr.verb(t, w.operator(t), "signed-transaction", map[string]any{"signed_transaction": signed})
}

// coldAsked kills a process while it hands out a payload.
func coldAsked(t *testing.T, w *harness, tr *trial, arm func()) {
	w.cold(t, tr, w.coldWallet(t, tr.node(w).Network).ID)
	arm()
	tr.background(t, w.operator(t), ofTransfer(tr.transfer.ID, "payload"), uuid.NewString(), nil, &tr.payload)
}

// signElsewhere signs the payload and returns the signed transaction.
func signElsewhere(t *testing.T, w *harness, tr *trial) {
	w.bring(t, tr, func() {})
	tr.answered(t)
	var drafts int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM cold_drafts d JOIN chain_payments p ON p.id = d.payment_id
		WHERE p.purpose = 'transfer' AND p.object_id = $1`, tr.transfer.ID).Scan(&drafts)
	if err != nil || drafts != 1 {
		t.Errorf("%d transactions were handed out: %v", drafts, err)
	}
}

// coldBrought kills a process while it accepts the signed transaction.
func coldBrought(t *testing.T, w *harness, tr *trial, arm func()) {
	w.cold(t, tr, w.coldWallet(t, tr.node(w).Network).ID)
	w.handOut(t, tr)
	w.bring(t, tr, arm)
}

// coldWithdrawn has the sender cancel a transfer whose payload was handed out and may still be signed.
func coldWithdrawn(t *testing.T, w *harness, tr *trial, arm func()) {
	w.cold(t, tr, w.coldWallet(t, tr.node(w).Network).ID)
	w.handOut(t, tr)
	arm()
	tr.verb(t, w.as(t, demo.SecondEmail), "cancel", nil)
}

// coldOvertaken has the sender cancel a transfer whose payload was handed out, after another transfer used its nonce.
func coldOvertaken(t *testing.T, w *harness, tr *trial, arm func()) {
	wallet := w.coldWallet(t, tr.node(w).Network).ID
	other := &trial{scenario: tr.scenario}
	w.cold(t, tr, wallet)
	w.handOut(t, tr)
	w.cold(t, other, wallet)
	w.handOut(t, other)
	w.bring(t, other, func() {})
	other.answered(t)
	w.transferIs(t, other, "completed")
	arm()
	tr.verb(t, w.as(t, demo.SecondEmail), "cancel", nil)
}

// TestColdWallets sends from wallets whose keys no process of the service can open: the API hands out the payload,
// the binary signs it with the cold key alone, the API accepts the signed transaction, and the money arrives once.
// Both the binary and the API refuse what was changed on the way, and name it.
func TestColdWallets(t *testing.T) {
	w := openBeside(t)
	t.Run("all", func(t *testing.T) {
		for _, n := range w.seed().Nodes() {
			if n.Network == exchange.Solana {
				continue // the house signs there too; see solanaTrials
			}
			t.Run(string(n.Network), func(t *testing.T) {
				t.Parallel()
				w.sendCold(t, n)
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

func (w *harness) sendCold(t *testing.T, n demo.Node) {
	wallet := w.coldWallet(t, n.Network)
	to, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	owner, officer := w.as(t, demo.SecondEmail), w.operator(t)
	var f sent
	in := map[string]any{
		"network": n.Network, "asset": "USDT", "amount": "4.5", "recipient": map[string]any{"address": to}, "from_wallet_id": wallet.ID,
	}
	if err := insist(t.Context(), owner, "/api/v1/auth/transfers", uuid.NewString(), in, &f); err != nil {
		t.Fatal(err)
	}
	w.parked(t, workflows.TransferID(f.ID))
	if err := owner.Post(t.Context(), ofTransfer(f.ID, "payload"), uuid.NewString(), nil, nil); !is(err, http.StatusForbidden) {
		t.Errorf("the response to the owner's request for the payload: %v", err)
	}
	var payload json.RawMessage
	if err := insist(t.Context(), officer, ofTransfer(f.ID, "payload"), uuid.NewString(), nil, &payload); err != nil {
		t.Fatal(err)
	}
	w.refusesToSign(t, n, payload)
	signed, err := w.coldSign(t, payload)
	if err != nil {
		t.Fatal(err)
	}
	w.refusesToTake(t, officer, f, signed)
	take := map[string]any{"signed_transaction": signed}
	for range 2 { // the second submission changes nothing
		if err := insist(t.Context(), officer, ofTransfer(f.ID, "signed-transaction"), uuid.NewString(), take, nil); err != nil && !is(err, http.StatusConflict) {
			t.Fatal(err)
		}
	}
	done := w.arrives(t, owner, f.ID, "completed")
	cameOnce(t, n, to, done.TxHash, money.Must(money.USDT, "4.5"))
	if changes, err := n.Changes(t.Context(), to); err != nil || len(changes) != 1 {
		t.Errorf("the money arrived as %+v: %v", changes, err)
	}
	w.signedNowhereElse(t, f, signed)
}

// refusesToSign changes the fields that the officer at the cold machine reads, but not the bytes.
func (w *harness) refusesToSign(t *testing.T, n demo.Node, payload []byte) {
	t.Helper()
	other, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"amount": "0.45", "to_address": other, "asset": "USDC"} {
		var changed map[string]any
		if err := json.Unmarshal(payload, &changed); err != nil {
			t.Fatal(err)
		}
		if changed[field] == nil || changed[field] == value {
			t.Fatalf("%s of the payload is %v", field, changed[field])
		}
		changed[field] = value
		text, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		if signed, err := w.coldSign(t, text); err == nil || signed != "" {
			t.Errorf("a payload with another %s was signed: %s", field, signed)
		}
	}
}

// refusesToTake submits transactions that differ from the payload.
func (w *harness) refusesToTake(t *testing.T, officer *client.Client, f sent, signed string) {
	t.Helper()
	raw, err := hex.DecodeString(signed)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.Clone(raw)
	last[len(last)-1] ^= 1
	middle := bytes.Clone(raw)
	middle[len(middle)/2] ^= 1
	for what, text := range map[string]string{
		"whose signature was changed": hex.EncodeToString(last), "that was changed": hex.EncodeToString(middle),
		"that was cut off": signed[:len(signed)-2], "that is none": "not hexadecimal",
	} {
		err := officer.Post(t.Context(), ofTransfer(f.ID, "signed-transaction"), uuid.NewString(), map[string]any{"signed_transaction": text}, nil)
		p, ok := errors.AsType[*client.Problem](err)
		if !ok || p.Status != http.StatusUnprocessableEntity || len(p.Errors) == 0 || p.Errors[0].Pointer != "/signed_transaction" {
			t.Errorf("the response to a transaction %s: %v", what, err)
		}
	}
	w.arrives(t, officer, f.ID, "queued")
}

// signedNowhereElse checks that the stored transaction is the submitted one, and that there is no other.
func (w *harness) signedNowhereElse(t *testing.T, f sent, signed string) {
	t.Helper()
	var stored string
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*), min(encode(a.raw, 'hex')) FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
		WHERE p.purpose = 'transfer' AND p.object_id = $1`, f.ID).Scan(&n, &stored)
	if err != nil || n != 1 || stored != signed {
		t.Errorf("%d transactions are stored, %s of what came back as %s: %v", n, stored, signed, err)
	}
}

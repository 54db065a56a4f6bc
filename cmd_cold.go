package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// maxDraftFile is the maximum size of a payload file.
const maxDraftFile = 64 << 10

// runColdKey makes the cold key and prints its public half.
func runColdKey(_ context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("cold-key", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says what is wrong
	out := flags.String("out", "", "the new file for the private half")
	if err := flags.Parse(args); err != nil || *out == "" {
		return errors.Join(errors.New("cold-key: -out must name the new file for the private half"), err)
	}
	public, err := keys.CreateColdKey(*out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, string(public))
	return err
}

// coldFile is the payload of POST /transfers/{id}/payload.
type coldFile struct {
	TransferID uuid.UUID        `json:"transfer_id"`
	WalletID   uuid.UUID        `json:"wallet_id"`
	Network    exchange.Network `json:"network"`
	Asset      money.Asset      `json:"asset"`
	Amount     string           `json:"amount"`
	From       string           `json:"from_address"`
	To         string           `json:"to_address"`
	FeePayer   string           `json:"fee_payer"`
	FeeLimit   string           `json:"fee_limit"`
	Nonce      uint64           `json:"nonce"`
	BidTip     *string          `json:"bid_tip"`
	BidCap     *string          `json:"bid_cap"`
	RefBlock   string           `json:"ref_block"`
	NonceAcct  string           `json:"nonce_account"`
	NonceBlock uint64           `json:"nonce_block"`
	Body       string           `json:"body"`
	Payload    string           `json:"payload"`
	ExpiresAt  *time.Time       `json:"expires_at"`
	SealedKey  *struct {
		Ciphertext string         `json:"ciphertext"`
		MasterKey  string         `json:"master_key"`
		PublicKey  string         `json:"public_key"`
		Algorithm  keys.Algorithm `json:"algorithm"`
	} `json:"sealed_key"`
}

// runColdSign signs one transaction with the cold key and prints it. It uses no network and no database: the encrypted
// key is in the payload, and the driver verifies that the bytes do what is shown.
func runColdSign(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("cold-sign", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says what is wrong
	path := flags.String("draft", "", "the payload")
	yes := flags.Bool("yes", false, "sign without asking")
	if err := flags.Parse(args); err != nil || *path == "" {
		return errors.Join(errors.New("cold-sign: -draft must name the file with the payload"), err)
	}
	if p.config.Keys.Cold == "" {
		return errors.New("configuration: KIVUKO_COLD_KEY must be set")
	}
	if err := keys.HardenProcess(); err != nil {
		return fmt.Errorf("cold-sign: %w", err)
	}
	f, err := readColdFile(*path)
	if err != nil {
		return fmt.Errorf("cold-sign: %w", err)
	}
	u, sealed, err := f.parse()
	if err != nil {
		return fmt.Errorf("cold-sign: %w", err)
	}
	client, err := p.config.offline(f.Network)
	if err != nil {
		return fmt.Errorf("cold-sign: %w", err)
	}
	defer client.Close()
	vault, err := keys.OpenColdVault(p.config.Keys.Cold)
	if err != nil {
		return err
	}
	if !*yes {
		if err := confirm(os.Stdin, os.Stderr, f, u); err != nil {
			return err
		}
	}
	return coldSign(ctx, p.out, vault, client, f, u, sealed)
}

func coldSign(ctx context.Context, out io.Writer, vault *keys.ColdVault, client chain.Client, f coldFile, u chain.Unsigned, sealed keys.Sealed) error {
	return vault.Use(ctx, sealed, keys.Ref{WalletID: f.WalletID, Network: f.Network}, func(key chain.Key) error {
		raw, err := signAlone(client, u, key)
		if err != nil {
			return fmt.Errorf("cold-sign: %w", err)
		}
		_, err = fmt.Fprintln(out, hex.EncodeToString(raw))
		return err
	})
}

// signAlone signs as the owner. When another account pays the fee, the result is not a valid transaction until that
// account has signed too.
func signAlone(client chain.Client, u chain.Unsigned, key chain.Key) ([]byte, error) {
	if u.FeePayer != "" {
		durable, ok := client.(chain.Durable)
		if !ok {
			return nil, fmt.Errorf("fee_payer: must be empty, because only the sender pays fees on %s", client.Network())
		}
		return durable.SignPart(u, key)
	}
	signed, err := client.Sign(u, key)
	return signed.Raw, err
}

func readColdFile(path string) (coldFile, error) {
	var f coldFile
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return f, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDraftFile+1))
	if err != nil {
		return f, err
	}
	if len(content) > maxDraftFile {
		return f, fmt.Errorf("the payload is larger than %d bytes", maxDraftFile)
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return f, fmt.Errorf("the file does not contain a payload: %w", err)
	}
	return f, nil
}

// parse reads the transaction and the sealed key.
func (f coldFile) parse() (chain.Unsigned, keys.Sealed, error) {
	var u chain.Unsigned
	var sealed keys.Sealed
	if !f.Network.Valid() || !f.Asset.Valid() {
		return u, sealed, errors.New("network and asset: must be a network and an asset of Kivuko")
	}
	if f.SealedKey == nil {
		return u, sealed, errors.New("sealed_key: the wallet has no key that the cold machine can decrypt")
	}
	var problems []error
	decimal := func(name string, asset money.Asset, text string) money.Amount {
		m, err := money.Parse(asset, text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		return m
	}
	binary := func(name, text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) == 0 {
			problems = append(problems, fmt.Errorf("%s: must be hexadecimal digits", name))
		}
		return b
	}
	native := f.Network.NativeCoin()
	u = chain.Unsigned{
		Transfer: chain.Transfer{From: f.From, To: f.To, Amount: decimal("amount", f.Asset, f.Amount)}, Body: binary("body", f.Body),
		Payload: binary("payload", f.Payload), Nonce: f.Nonce, RefBlock: f.RefBlock, FeePayer: f.FeePayer,
		NonceAccount: f.NonceAcct, NonceBlock: f.NonceBlock, FeeLimit: decimal("fee_limit", native, f.FeeLimit),
	}
	if f.ExpiresAt != nil {
		u.ExpiresAt = f.ExpiresAt.UTC()
	}
	if f.BidTip != nil && f.BidCap != nil {
		u.Bid = exchange.Bid{Tip: decimal("bid_tip", native, *f.BidTip), Cap: decimal("bid_cap", native, *f.BidCap)}
	}
	sealed = keys.Sealed{
		Ciphertext: binary("sealed_key.ciphertext", f.SealedKey.Ciphertext), MasterKey: f.SealedKey.MasterKey,
		PublicKey: binary("sealed_key.public_key", f.SealedKey.PublicKey), Algorithm: f.SealedKey.Algorithm,
	}
	return u, sealed, errors.Join(problems...)
}

// confirm shows what would be signed and asks for a yes.
func confirm(in io.Reader, out io.Writer, f coldFile, u chain.Unsigned) error {
	expires := "never"
	switch {
	case !u.ExpiresAt.IsZero():
		expires = u.ExpiresAt.Format(time.RFC3339)
	case u.NonceAccount != "":
		expires = "it is withdrawn by " + u.FeePayer
	}
	_, err := fmt.Fprintf(out, "Transfer %s on %s\n  sends  %s %s\n  from   %s\n  to     %s\n  fee    at most %s %s\n  until  %s\nSign it? Type yes: ",
		f.TransferID, f.Network, u.Transfer.Amount, f.Asset, f.From, f.To, u.FeeLimit, f.Network.NativeCoin(), expires)
	if err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return errors.Join(errors.New("cold-sign: nothing was signed"), err)
	}
	return nil
}

// nowhere is the address of the nodes, which the cold machine can't reach.
const nowhere = "127.0.0.1:1"

// offline creates a network's driver without nodes. It needs the token addresses and ceilings of the deployment, with
// which the driver verifies the transaction.
func (c Config) offline(n exchange.Network) (driver, error) {
	c.Solana.RPC = []string{"http://" + nowhere}
	c.Tron.FullNodes, c.Tron.SolidityNodes, c.Ethereum.RPC = []string{nowhere}, []string{nowhere}, []string{"http://" + nowhere}
	var problems need
	c.network(n).check(&problems)
	for _, v := range c.variables() {
		problems.rule(v.network != string(n) || !v.neededBy(workflows.QueueSigner(n)) || !v.empty(), v.name+" must be set")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return c.network(n).open()
}

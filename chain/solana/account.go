package solana

import (
	"context"
	"encoding/base64"
	"fmt"

	bin "github.com/gagliardetto/binary"
	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Sizes of accounts of the classic Token program (spl-token state.rs).
const (
	mintSize         = 82
	tokenAccountSize = 165
	multisigSize     = 355
)

// account is the state of one address. The zero account is one that does not exist.
type account struct {
	exists     bool
	lamports   uint64
	owner      sdk.PublicKey // the program that owns it
	executable bool
	data       []byte
}

// accountAnswer is an account in a node's response, in base64.
type accountAnswer struct {
	Lamports   uint64    `json:"lamports"`
	Owner      string    `json:"owner"`
	Executable bool      `json:"executable"`
	Data       [2]string `json:"data"`
}

// snapshot is the state of several accounts in one slot.
type snapshot struct {
	slot     uint64
	accounts map[sdk.PublicKey]account
}

// contextAnswer wraps a response about the state of one slot.
type contextAnswer[T any] struct {
	Context struct {
		Slot uint64 `json:"slot"`
	} `json:"context"`
	Value T `json:"value"`
}

// readAccounts reads all accounts in one request, from a state that is not older than minSlot.
func readAccounts(ctx context.Context, n *node, commitment string, minSlot uint64, keys ...sdk.PublicKey) (snapshot, error) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	answer, err := call[contextAnswer[[]*accountAnswer]](ctx, n, "getMultipleAccounts", names,
		options{"encoding": "base64", "commitment": commitment, "minContextSlot": minSlot})
	if err != nil {
		return snapshot{}, err
	}
	if len(answer.Value) != len(keys) {
		return snapshot{}, chain.Errorf(chain.ReasonProtocol, "asked for %d accounts, got %d", len(keys), len(answer.Value))
	}
	if answer.Context.Slot < minSlot {
		return snapshot{}, chain.Errorf(chain.ReasonUnavailable, "the node has accounts of slot %d, at least %d is needed", answer.Context.Slot, minSlot)
	}
	s := snapshot{slot: answer.Context.Slot, accounts: make(map[sdk.PublicKey]account, len(keys))}
	for i, key := range keys {
		if s.accounts[key], err = answer.Value[i].read(); err != nil {
			return snapshot{}, chain.Wrap(chain.ReasonProtocol, err, "account %s is in a form that was not requested", key)
		}
	}
	return s, nil
}

// read decodes an account; null is an account that does not exist.
func (a *accountAnswer) read() (account, error) {
	if a == nil {
		return account{}, nil
	}
	owner, err := readKey(a.Owner)
	if err != nil {
		return account{}, fmt.Errorf("its owner %w", err)
	}
	if a.Data[1] != "base64" {
		return account{}, fmt.Errorf("its data is %q", quote(a.Data[1]))
	}
	data, err := base64.StdEncoding.DecodeString(a.Data[0])
	return account{exists: true, lamports: a.Lamports, owner: owner, executable: a.Executable, data: data}, err
}

// wallet reports whether only a key controls the account, or could once it exists.
func (a account) wallet() bool {
	return !a.exists || (a.owner == sdk.SystemProgramID && len(a.data) == 0 && !a.executable)
}

// token reads a token account of the classic Token program; false for everything else.
func (a account) token() (token.Account, bool) {
	var t token.Account
	if !a.exists || a.owner != sdk.TokenProgramID || len(a.data) != tokenAccountSize {
		return t, false
	}
	if err := bin.NewBinDecoder(a.data).Decode(&t); err != nil {
		return t, false
	}
	return t, t.State == token.Initialized || t.State == token.Frozen
}

// checkMint checks that the mint belongs to the classic Token program and has the decimal places of the asset. Mints of
// Token-2022 are refused, whatever their name: they may take fees, run code or be paused.
func checkMint(asset money.Asset, mint sdk.PublicKey, a account) error {
	refuse := func(why string) error {
		return chain.Errorf(chain.ReasonUnsupported, "%s can't be used on Solana: %s %s", string(asset), mint, why)
	}
	switch {
	case !a.exists:
		return refuse("does not exist on this cluster")
	case a.owner == sdk.Token2022ProgramID:
		return refuse("is a mint of Token-2022, whose tokens may take fees or refuse transfers")
	case a.owner != sdk.TokenProgramID || len(a.data) != mintSize:
		return refuse("is not a mint of the Token program")
	}
	var m token.Mint
	if err := bin.NewBinDecoder(a.data).Decode(&m); err != nil || !m.IsInitialized {
		return refuse("is not an initialised mint")
	}
	if int32(m.Decimals) != asset.Scale() {
		return refuse("has another number of decimal places")
	}
	return nil
}

// held is what a wallet's associated token account holds for the wallet: nothing when the account does not exist, has
// another mint, or was given to another owner.
func held(a account, wallet, mint sdk.PublicKey) (token.Account, bool) {
	t, ok := a.token()
	return t, ok && t.Mint == mint && t.Owner == wallet
}

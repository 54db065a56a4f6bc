package solana

import (
	"bytes"
	"context"
	"encoding/binary"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"kivuko/chain"
	"kivuko/exchange/money"
)

var _ chain.Durable = (*Client)(nil)

// The content of a nonce account of the System program (nonce state.rs, bincode): a version, a state, the authority, the
// value, and the fee for a signature at the time.
const (
	nonceSize        = 80
	nonceCurrent     = 1 // the version that transactions can use; version 0 was made from a plain blockhash
	nonceInitialized = 1
	nonceStateAt     = 4
	nonceAuthorityAt = 8
	nonceValueAt     = 40
	nonceFeeAt       = 72
)

// nonceState is the state of a nonce account in a slot.
type nonceState struct {
	slot      uint64
	authority sdk.PublicKey
	value     sdk.Hash
}

// nonce reads an initialised nonce account; false for everything else.
func (a account) nonce() (nonceState, bool) {
	if !a.exists || a.owner != sdk.SystemProgramID || len(a.data) != nonceSize ||
		binary.LittleEndian.Uint32(a.data) != nonceCurrent || binary.LittleEndian.Uint32(a.data[nonceStateAt:]) != nonceInitialized {
		return nonceState{}, false
	}
	return nonceState{authority: sdk.PublicKey(a.data[nonceAuthorityAt:nonceValueAt]), value: sdk.Hash(a.data[nonceValueAt:nonceFeeAt])}, true
}

// advance is the instruction that gives a nonce account a new value.
func advance(account, authority sdk.PublicKey) sdk.Instruction {
	return system.NewAdvanceNonceAccountInstruction(account, sdk.SysVarRecentBlockHashesPubkey, authority).Build()
}

// stepInstructions are the plan's operations on the account that it pays. The account is set up in steps, because the
// single instruction for it fails when someone has already sent lamports to the address.
func (p plan) stepInstructions() []sdk.Instruction {
	if p.opens != nil {
		return p.openInstructions()
	}
	switch p.step {
	case chain.NonceOpen:
		return []sdk.Instruction{
			system.NewAllocateWithSeedInstruction(p.from, p.seed, nonceSize, sdk.SystemProgramID, p.to, p.from).Build(),
			system.NewInitializeNonceAccountInstruction(p.from, p.to, sdk.SysVarRecentBlockHashesPubkey, sdk.SysVarRentPubkey).Build(),
		}
	case chain.NonceAdvance:
		return []sdk.Instruction{advance(p.to, p.from)}
	}
	return nil
}

// routeStep refuses a step when the account is missing, or already there.
func (p *plan) routeStep(s snapshot) error {
	state, used := s.accounts[p.to].nonce()
	switch {
	case p.step == chain.NonceOpen && !s.accounts[p.to].wallet():
		return chain.Errorf(chain.ReasonReverts, "the nonce account %s already exists", p.to)
	case p.step == chain.NonceAdvance && (!used || state.authority != p.from):
		return chain.Errorf(chain.ReasonReverts, "%s is not a nonce account of %s", p.to, p.from)
	}
	return nil
}

// intentOf checks what a transaction must do, including its step.
func (c *Client) intentOf(u chain.Unsigned) (intent, error) {
	if u.Owners != nil {
		return c.openingOf(u)
	}
	if u.Step == "" {
		return c.intent(u.Transfer, u.FeePayer)
	}
	in := intent{amount: u.Transfer.Amount, step: u.Step, seed: u.Seed}
	var err error
	if in.from, err = c.wallet(u.Transfer.From); err != nil {
		return in, chain.Errorf(chain.ReasonAddress, "the authority's %s", err)
	}
	if in.to, err = readKey(u.Transfer.To); err != nil {
		return in, chain.Errorf(chain.ReasonAddress, "the nonce account's address %s", err)
	}
	in.payer = in.from
	n := u.Transfer.Amount.Units()
	if u.FeePayer != "" || u.Transfer.Amount.Asset() != money.SOL || n.Sign() <= 0 || n.BitLen() > maxAmountBits {
		return in, chain.Errorf(chain.ReasonUnsupported, "a nonce account is paid for in SOL, by its authority")
	}
	in.units = n.Uint64()
	switch derived, err := sdk.CreateWithSeed(in.from, u.Seed, sdk.SystemProgramID); {
	case u.Step == chain.NonceAdvance && u.Seed == "":
		return in, nil
	case u.Step != chain.NonceOpen || u.Seed == "" || err != nil || derived != in.to:
		return in, chain.Errorf(chain.ReasonAddress, "%s is not the nonce account that %s opens under that seed", in.to, in.from)
	}
	return in, nil
}

// nonceOf is the nonce account of a prepared transaction, zero for none.
func nonceOf(u chain.Unsigned, in intent) (sdk.PublicKey, error) {
	if u.NonceAccount == "" {
		return sdk.PublicKey{}, nil
	}
	key, err := readKey(u.NonceAccount)
	if err != nil || in.payer == in.from || in.step != "" {
		return key, chain.Errorf(chain.ReasonProtocol, "the prepared bytes can't use the nonce account %q", quote(u.NonceAccount))
	}
	return key, nil
}

// outlive makes the plan use a nonce account, with its final value.
func (p *plan) outlive(ctx context.Context, n *node, account string) (nonceState, error) {
	var err error
	if p.nonce, err = readKey(account); err != nil {
		return nonceState{}, chain.Errorf(chain.ReasonAddress, "the nonce account's address %s", err)
	}
	state, found, err := readNonce(ctx, n, finalized, p.nonce, 0)
	if err != nil {
		return state, err
	}
	if !found || state.authority != p.payer {
		return state, chain.Errorf(chain.ReasonReverts, "%s is not a nonce account of the fee payer %s", p.nonce, p.payer)
	}
	p.blockhash = state.value
	return state, nil
}

// readNonce reads a nonce account by the chain of a commitment; false when it does not exist yet.
func readNonce(ctx context.Context, n *node, commitment string, key sdk.PublicKey, since uint64) (nonceState, bool, error) {
	s, err := readAccounts(ctx, n, commitment, since, key)
	if err != nil {
		return nonceState{}, false, err
	}
	a := s.accounts[key]
	state, used := a.nonce()
	if !used && !a.wallet() {
		return state, false, chain.Errorf(chain.ReasonForeign, "%s is not a nonce account", key)
	}
	state.slot = s.slot
	return state, used, nil
}

// NonceAccount implements chain.Durable. The address depends only on authority and seed, so that it can be found again
// without a record.
func (c *Client) NonceAccount(authority, seed string) (string, error) {
	base, err := c.wallet(authority)
	if err != nil {
		return "", chain.Errorf(chain.ReasonAddress, "the authority's %s", err)
	}
	if seed == "" {
		return "", chain.Errorf(chain.ReasonAddress, "a nonce account needs a seed")
	}
	key, err := sdk.CreateWithSeed(base, seed, sdk.SystemProgramID)
	if err != nil {
		return "", chain.Wrap(chain.ReasonAddress, err, "no nonce account can be derived from %s", base)
	}
	return key.String(), nil
}

// DurableNonce implements chain.Durable.
func (c *Client) DurableNonce(ctx context.Context, account string, since uint64) (chain.DurableNonce, error) {
	key, err := readKey(account)
	if err != nil {
		return chain.DurableNonce{}, chain.Errorf(chain.ReasonAddress, "the nonce account's address %s", err)
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.DurableNonce, error) {
		state, found, err := readNonce(ctx, n, finalized, key, since)
		out := chain.DurableNonce{Head: chain.Head{Final: chain.Block{Number: state.slot}}}
		if found {
			out.Value, out.Authority = state.value.String(), state.authority.String()
		}
		return out, err
	})
}

// NonceRent implements chain.Durable.
func (c *Client) NonceRent(ctx context.Context) (money.Amount, error) {
	rent, err := ask(ctx, c.nodes, func(ctx context.Context, n *node) (uint64, error) { return rentOf(ctx, n, nonceSize) })
	return lamports(rent), err
}

// advanceData is the whole content of an instruction that advances a nonce account.
var advanceData = []byte{byte(system.Instruction_AdvanceNonceAccount), 0, 0, 0}

// advances reports whether a message uses a nonce account: its first instruction advances one.
func advances(m *sdk.Message) bool {
	if len(m.Instructions) == 0 {
		return false
	}
	first := m.Instructions[0]
	program, err := m.Program(first.ProgramIDIndex)
	return err == nil && program == sdk.SystemProgramID && bytes.Equal(first.Data, advanceData)
}

// SignPart implements chain.Durable. The fee payer's signature is zero, as other tools of the network leave it.
func (c *Client) SignPart(u chain.Unsigned, sender chain.Key) ([]byte, error) {
	in, m, err := c.parted(u)
	if err != nil {
		return nil, err
	}
	if err := owns(sender, in.from, "sender"); err != nil {
		return nil, err
	}
	made, err := sender.Sign(u.Payload)
	if err != nil {
		return nil, err
	}
	if len(made) != sdk.SignatureLength || !in.from.Verify(u.Payload, sdk.Signature(made)) {
		return nil, chain.Errorf(chain.ReasonProtocol, "a signature is not of %s", in.from)
	}
	signatures := make([]sdk.Signature, len(m.Signers()))
	signatures[1] = sdk.Signature(made)
	return wire(signatures, u.Body), nil
}

// TakePart implements chain.Durable.
func (c *Client) TakePart(u chain.Unsigned, raw []byte) ([]byte, error) {
	in, m, err := c.parted(u)
	if err != nil {
		return nil, err
	}
	signers := len(m.Signers())
	front := 1 + signers*sdk.SignatureLength
	if len(raw) <= front || len(raw) > maxTransactionBytes || int(raw[0]) != signers {
		return nil, chain.Errorf(chain.ReasonProtocol, "the bytes are not a transaction with %d signatures", signers)
	}
	if !bytes.Equal(raw[front:], u.Body) {
		return nil, chain.Errorf(chain.ReasonForeign, "the transaction is not the one that was handed out")
	}
	payer, sender := sdk.Signature(raw[1:1+sdk.SignatureLength]), sdk.Signature(raw[1+sdk.SignatureLength:front])
	if !payer.IsZero() {
		return nil, chain.Errorf(chain.ReasonProtocol, "the fee payer's signature must be empty: it is added here")
	}
	if !in.from.Verify(u.Payload, sender) {
		return nil, chain.Errorf(chain.ReasonProtocol, "the signature is not of %s", in.from)
	}
	return sender[:], nil
}

// Complete implements chain.Durable.
func (c *Client) Complete(u chain.Unsigned, part []byte, payer chain.Key) (chain.Signed, error) {
	in, _, err := c.parted(u)
	if err != nil {
		return chain.Signed{}, err
	}
	return c.Sign(u, chain.Presigned(in.from[:], part), payer)
}

// parted checks a transaction that is signed in two places.
func (c *Client) parted(u chain.Unsigned) (intent, *sdk.Message, error) {
	in, err := c.intentOf(u)
	if err != nil {
		return in, nil, err
	}
	m, err := c.says(u, in)
	if err != nil {
		return in, nil, err
	}
	if u.NonceAccount == "" || len(m.Signers()) != 2 {
		return in, nil, chain.Errorf(chain.ReasonProtocol, "only a transaction with a nonce account is signed in parts")
	}
	return in, m, nil
}

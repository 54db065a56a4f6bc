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

// What the System program keeps in a nonce account (nonce state.rs, bincode): a version, a state, the authority,
// the value, and the fee for a signature at the time.
const (
	nonceSize        = 80
	nonceCurrent     = 1 // the version that a transaction can live by; version 0 was made of a plain blockhash
	nonceInitialized = 1
	nonceStateAt     = 4
	nonceAuthorityAt = 8
	nonceValueAt     = 40
	nonceFeeAt       = 72
)

// nonceState is what a nonce account said in a slot.
type nonceState struct {
	slot      uint64
	authority sdk.PublicKey
	value     sdk.Hash
}

// nonce reads a nonce account that is in use; false for everything else.
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

// stepInstructions are what a plan does with the nonce account that it pays. The account is set up in parts
// instead of at once, because the instruction that does it at once refuses an address to which somebody has sent
// lamports before.
func (p plan) stepInstructions() []sdk.Instruction {
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

// routeStep refuses a step for which the account is not there, or is there already.
func (p *plan) routeStep(s snapshot) error {
	state, used := s.accounts[p.to].nonce()
	switch {
	case p.step == chain.NonceOpen && !s.accounts[p.to].wallet():
		return chain.Errorf(chain.ReasonReverts, "the nonce account %s is there already", p.to)
	case p.step == chain.NonceAdvance && (!used || state.authority != p.from):
		return chain.Errorf(chain.ReasonReverts, "%s is no nonce account of %s", p.to, p.from)
	}
	return nil
}

// intentOf checks what a transaction is to do, with its step.
func (c *Client) intentOf(u chain.Unsigned) (intent, error) {
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
		return in, chain.Errorf(chain.ReasonUnsupported, "a nonce account is paid for in SOL, by who rules it")
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

// nonceOf is the nonce account by which a transaction is said to live, zero for none.
func nonceOf(u chain.Unsigned, in intent) (sdk.PublicKey, error) {
	if u.NonceAccount == "" {
		return sdk.PublicKey{}, nil
	}
	key, err := readKey(u.NonceAccount)
	if err != nil || in.payer == in.from || in.step != "" {
		return key, chain.Errorf(chain.ReasonProtocol, "the prepared bytes can't live by the nonce account %q", quote(u.NonceAccount))
	}
	return key, nil
}

// outlive makes the plan live by a nonce account, by its final value.
func (p *plan) outlive(ctx context.Context, n *node, account string) (nonceState, error) {
	var err error
	if p.nonce, err = readKey(account); err != nil {
		return nonceState{}, chain.Errorf(chain.ReasonAddress, "the nonce account's address %s", err)
	}
	state, found, err := readNonce(ctx, n, p.nonce, 0)
	if err != nil {
		return state, err
	}
	if !found || state.authority != p.payer {
		return state, chain.Errorf(chain.ReasonReverts, "%s is no nonce account of the fee payer %s", p.nonce, p.payer)
	}
	p.blockhash = state.value
	return state, nil
}

// readNonce reads a nonce account by the final chain; false where nothing of the kind is there yet.
func readNonce(ctx context.Context, n *node, key sdk.PublicKey, since uint64) (nonceState, bool, error) {
	s, err := readAccounts(ctx, n, finalized, since, key)
	if err != nil {
		return nonceState{}, false, err
	}
	a := s.accounts[key]
	state, used := a.nonce()
	if !used && !a.wallet() {
		return state, false, chain.Errorf(chain.ReasonForeign, "what is at %s is no nonce account", key)
	}
	state.slot = s.slot
	return state, used, nil
}

// NonceAccount implements chain.Durable. The address depends on nothing but authority and seed, so that it can
// be found again without having been written down.
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
		state, found, err := readNonce(ctx, n, key, since)
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

// advances tells whether a message lives by a nonce account: its first instruction advances one.
func advances(m *sdk.Message) bool {
	if len(m.Instructions) == 0 {
		return false
	}
	first := m.Instructions[0]
	program, err := m.Program(first.ProgramIDIndex)
	return err == nil && program == sdk.SystemProgramID && bytes.Equal(first.Data, []byte{byte(system.Instruction_AdvanceNonceAccount), 0, 0, 0})
}

// SignPart implements chain.Durable. The place of the fee payer's signature holds zeros, as every tool of the
// network leaves it.
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
		return nil, chain.Errorf(chain.ReasonProtocol, "the bytes are no transaction with %d signatures", signers)
	}
	if !bytes.Equal(raw[front:], u.Body) {
		return nil, chain.Errorf(chain.ReasonForeign, "the transaction is not the one that was handed out")
	}
	payer, sender := sdk.Signature(raw[1:1+sdk.SignatureLength]), sdk.Signature(raw[1+sdk.SignatureLength:front])
	if !payer.IsZero() {
		return nil, chain.Errorf(chain.ReasonProtocol, "the transaction has a signature in the place of the fee payer's, who signs here")
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

// parted checks a transaction that two sign at different places.
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
		return in, nil, chain.Errorf(chain.ReasonProtocol, "only a transaction that lives by a nonce account is signed in parts")
	}
	return in, m, nil
}

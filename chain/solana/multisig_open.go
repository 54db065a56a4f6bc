package solana

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	sdk "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/exchange/money"
)

var _ chain.Opener = (*Client)(nil)

// opening is what a transaction opens at its recipient: an account of several owners, and its token accounts, which some
// wallets don't create when they pay.
type opening struct {
	quorum
	mints []sdk.PublicKey
}

// multisigAddress derives the address of the account that an authority opens with a seed for a quorum, and the seed by which
// the network derives it, which commits to all three. The address is on the curve, although no key is known for it, because
// many wallets refuse to pay any other.
func multisigAddress(authority sdk.PublicKey, seed string, q quorum) (sdk.PublicKey, string, error) {
	content := append([]byte(seed), q.threshold)
	for _, owner := range q.owners {
		content = append(content, owner[:]...)
	}
	for try := range byte(255) {
		digest := sha256.Sum256(append(content, try))
		text := hex.EncodeToString(digest[:sdk.MaxSeedLength/2])
		key, err := sdk.CreateWithSeed(authority, text, sdk.TokenProgramID)
		if err != nil || key.IsOnCurve() {
			return key, text, err
		}
	}
	return sdk.PublicKey{}, "", chain.Errorf(chain.ReasonAddress, "no address can be derived from %s", authority)
}

// opening checks what an account is opened with, and by whom.
func (c *Client) opening(authority, seed string, o chain.OwnersChange) (intent, error) {
	base, err := c.wallet(authority)
	if err != nil {
		return intent{}, chain.Errorf(chain.ReasonAddress, "the authority's %s", err)
	}
	if seed == "" {
		return intent{}, chain.Errorf(chain.ReasonAddress, "an account of several owners needs a seed")
	}
	if o.Control != nil {
		return intent{}, chain.Errorf(chain.ReasonUnsupported, "an account of several owners has no second quorum on Solana")
	}
	q, err := quorumFrom(o.Owners, o.Threshold)
	if err != nil {
		return intent{}, chain.Errorf(chain.ReasonUnsupported, "the account can't be opened, because it %s", err)
	}
	in := intent{from: base, payer: base, opens: &opening{quorum: q}}
	in.to, in.seed, err = multisigAddress(base, seed, q)
	return in, err
}

// MultisigAccount implements chain.Opener.
func (c *Client) MultisigAccount(authority, seed string, o chain.OwnersChange) (string, error) {
	in, err := c.opening(authority, seed, o)
	if err != nil {
		return "", err
	}
	return in.to.String(), nil
}

// MultisigRent implements chain.Opener.
func (c *Client) MultisigRent(ctx context.Context) (money.Amount, error) {
	rent, err := ask(ctx, c.nodes, func(ctx context.Context, n *node) (uint64, error) { return rentOf(ctx, n, multisigSize) })
	return lamports(rent), err
}

// openingOf checks a transaction that opens an account.
func (c *Client) openingOf(u chain.Unsigned) (intent, error) {
	in, err := c.opening(u.Transfer.From, u.Seed, *u.Owners)
	if err != nil {
		return in, err
	}
	if u.Transfer.To != in.to.String() {
		return in, chain.Errorf(chain.ReasonAddress, "%q is not the account that %s opens for these owners under that seed", quote(u.Transfer.To), in.from)
	}
	n := u.Transfer.Amount.Units()
	if u.FeePayer != "" || u.Step != "" || u.Transfer.Amount.Asset() != money.SOL || n.Sign() <= 0 || n.BitLen() > maxAmountBits {
		return in, chain.Errorf(chain.ReasonUnsupported, "an account of several owners is paid for in SOL, by its authority")
	}
	in.amount, in.units = u.Transfer.Amount, n.Uint64()
	for _, asset := range money.Assets() {
		if mint, ours := c.mints[asset]; ours {
			in.opens.mints = append(in.opens.mints, mint)
		}
	}
	return in, nil
}

// openInstructions open the account after its rent was paid to it.
func (p plan) openInstructions() []sdk.Instruction {
	all := []sdk.Instruction{
		system.NewAllocateWithSeedInstruction(p.from, p.seed, multisigSize, sdk.TokenProgramID, p.to, p.from).Build(),
		token.NewInitializeMultisig2Instruction(p.opens.threshold, p.to, p.opens.owners).Build(),
	}
	for _, mint := range p.opens.mints {
		all = append(all, ata.NewCreateIdempotentInstruction(p.from, p.to, mint).Build())
	}
	return all
}

// routeOpening refuses to open an account where there is one.
func (p *plan) routeOpening(s snapshot) error {
	if !s.accounts[p.to].wallet() {
		return chain.Errorf(chain.ReasonReverts, "the account %s already exists", p.to)
	}
	return nil
}

package solana

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
)

// An account of several owners is one of the Token program's (spl-token state.rs Multisig). It holds nothing itself: it owns
// token accounts, as a wallet does, and moves their tokens when m of its n owners sign one transaction. It can't own SOL that
// could be moved again, and it is never changed after it was opened.
var _ chain.Multisig = (*Client)(nil)

const (
	maxOwners = token.MAX_SIGNERS
	// maxSigners is how many owners can sign a payment: with one more, it could have more than maxTransactionBytes. It is a
	// majority of maxOwners.
	maxSigners = 6
	// The content of such an account.
	ownersAt         = 3
	multisigReady    = 1
	multisigRequired = 0
	multisigOwners   = 1
	multisigState    = 2
)

// quorum is who controls an account: as many of its owners, who are in the order of their addresses, as the threshold.
type quorum struct {
	threshold uint8
	owners    []sdk.PublicKey
}

// multisig reads an account of several owners of the classic Token program; false for everything else. One that is not
// initialised has no owners yet: whoever initialises it names them.
func (a account) multisig() (quorum, bool) {
	if !a.exists || a.owner != sdk.TokenProgramID || len(a.data) != multisigSize || a.data[multisigState] != multisigReady {
		return quorum{}, false
	}
	q := quorum{threshold: a.data[multisigRequired]}
	for i := range min(int(a.data[multisigOwners]), maxOwners) {
		at := ownersAt + i*keyLength
		q.owners = append(q.owners, sdk.PublicKey(a.data[at:at+keyLength]))
	}
	if int(a.data[multisigOwners]) != len(q.owners) {
		return quorum{}, false
	}
	sortByAddress(q.owners)
	return q, true
}

func sortByAddress(keys []sdk.PublicKey) {
	slices.SortFunc(keys, func(a, b sdk.PublicKey) int { return strings.Compare(a.String(), b.String()) })
}

// shared reads an account of several owners that this driver can use, or names the rule that it breaks.
func (a account) shared() (quorum, error) {
	q, ok := a.multisig()
	switch {
	case ok:
		return q, q.check()
	case !a.exists:
		return q, errors.New("does not exist")
	case a.owner == sdk.SystemProgramID:
		return q, errors.New("is controlled by one key")
	case a.owner != sdk.TokenProgramID:
		return q, fmt.Errorf("belongs to program %s, not to the Token program of USDT and USDC", a.owner)
	case len(a.data) != multisigSize:
		return q, fmt.Errorf("has %d bytes, an account of several owners has %d", len(a.data), multisigSize)
	case a.data[multisigState] != multisigReady:
		return q, errors.New("is not initialised")
	}
	return q, fmt.Errorf("has %d owners, at most %d are possible", a.data[multisigOwners], maxOwners)
}

// check refuses a quorum with which money could be lost or stay.
func (q quorum) check() error {
	n := len(q.owners)
	switch {
	case n < 1 || n > maxOwners:
		return fmt.Errorf("has %d owners, it must have 1 to %d", n, maxOwners)
	case q.threshold < 1 || int(q.threshold) > n:
		return fmt.Errorf("needs %d of %d signatures", q.threshold, n)
	case q.threshold > maxSigners:
		return fmt.Errorf("needs %d signatures, a transaction has room for %d", q.threshold, maxSigners)
	}
	for i, owner := range q.owners {
		if i > 0 && owner == q.owners[i-1] {
			return fmt.Errorf("names the owner %s twice, whose one signature would count twice", owner)
		}
		if _, err := parse(owner.String()); err != nil {
			return fmt.Errorf("has the owner %s, an address without a key that could sign", owner)
		}
	}
	return nil
}

func (q quorum) equal(other quorum) bool {
	return q.threshold == other.threshold && slices.Equal(q.owners, other.owners)
}

// quorumFrom reads a quorum that a caller names. Nothing of it may be what the network does not have.
func quorumFrom(owners []chain.Owner, threshold uint32) (quorum, error) {
	if threshold > maxOwners || len(owners) > maxOwners {
		return quorum{}, fmt.Errorf("needs %d of %d signatures, at most %d owners are possible", threshold, len(owners), maxOwners)
	}
	q := quorum{threshold: uint8(threshold)}
	for _, o := range owners {
		key, err := parse(o.Address)
		if err != nil {
			return q, fmt.Errorf("has an owner whose %w", err)
		}
		if o.Weight != 1 {
			return q, fmt.Errorf("gives the owner %s the weight %d, and there are no weights", key, o.Weight)
		}
		q.owners = append(q.owners, key)
	}
	sortByAddress(q.owners)
	return q, q.check()
}

func (q quorum) public() chain.Quorum {
	out := chain.Quorum{Threshold: uint32(q.threshold)}
	for _, owner := range q.owners {
		out.Owners = append(out.Owners, chain.Owner{Address: owner.String(), Weight: 1})
	}
	return out
}

// Quorum implements chain.Multisig. It can only differ between the two blocks while the account is being opened.
func (c *Client) Quorum(ctx context.Context, address string) (chain.Quorum, error) {
	key, err := c.holder(address)
	if err != nil {
		return chain.Quorum{}, chain.Errorf(chain.ReasonAddress, "the %s", err)
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.Quorum, error) {
		head, err := readHead(ctx, n)
		if err != nil {
			return chain.Quorum{}, err
		}
		final, err := readAccounts(ctx, n, finalized, head.Final.Number, key)
		if err != nil {
			return chain.Quorum{}, err
		}
		latest, err := readAccounts(ctx, n, confirmed, head.Latest.Number, key)
		if err != nil {
			return chain.Quorum{}, err
		}
		before, finalErr := final.quorum(key)
		now, latestErr := latest.quorum(key)
		q, err := chain.Joined(before.public(), finalErr, now.public(), latestErr)
		if err != nil {
			return chain.Quorum{}, err
		}
		q.Head, q.Moving = head, q.Moving || !before.equal(now)
		return q, nil
	})
}

// quorum is that of an account of several owners; ReasonForeign names the rule that it breaks.
func (s snapshot) quorum(key sdk.PublicKey) (quorum, error) {
	q, err := s.accounts[key].shared()
	if err != nil {
		err = chain.Errorf(chain.ReasonForeign, "the account %s %s", key, err)
	}
	return q, err
}

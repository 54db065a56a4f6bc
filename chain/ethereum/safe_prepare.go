package ethereum

import (
	"bytes"
	"context"
	"encoding/json"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"kivuko/chain"
	"kivuko/exchange/money"
)

var _ chain.Multisig = (*Client)(nil)

// PrepareJoint builds a SafeTx: a payment, a change of the owners, or, with neither, an empty call of the account to itself,
// which uses up the number and so cancels what else has it.
//
// A Safe's signatures never expire, and a SafeTx whose execution fails stays open (safeTx): one that shall not be executed any
// more is cancelled, or remains a risk.
func (c *Client) PrepareJoint(ctx context.Context, d chain.JointDraft) (chain.Joint, error) {
	account, err := c.checkDraft(d)
	if err != nil {
		return chain.Joint{}, err
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.Joint, error) {
		final, err := readHeader(ctx, conn, tagFinal)
		if err != nil {
			return chain.Joint{}, err
		}
		latest, err := c.newest(ctx, conn)
		if err != nil {
			return chain.Joint{}, err
		}
		s, err := readSafe(ctx, conn, account, latest.block())
		if err != nil {
			return chain.Joint{}, err
		}
		if !sameQuorum(s.quorum(), d.Quorum) {
			return chain.Joint{}, chain.Errorf(chain.ReasonForeign,
				"the owners of %s are no longer those of the draft: %d of %v sign now", account, s.threshold, s.owners)
		}
		if d.Sequence < s.nonce {
			return chain.Joint{}, usedNumber(account, d.Sequence, s.nonce)
		}
		t, err := c.feasible(ctx, conn, account, d, s, latest.block())
		if err != nil {
			return chain.Joint{}, err
		}
		j, err := c.joint(account, d, t)
		j.Block = final.block()
		return j, err
	})
}

func usedNumber(account common.Address, number, next uint64) error {
	return chain.Errorf(chain.ReasonForeign, "the number %d of %s is used, the next is %d", number, account, next)
}

// feasible is the SafeTx of a draft, if the account could carry it out at a block.
func (c *Client) feasible(
	ctx context.Context, conn *rpc.Client, account common.Address, d chain.JointDraft, s safeState, b chain.Block,
) (safeTx, error) {
	if d.Owners != nil {
		if err := deployed(ctx, conn, b, safeMultiSend); err != nil {
			return safeTx{}, err
		}
		steps, err := ownerSteps(d.Quorum, *d.Owners)
		if err != nil {
			return safeTx{}, err
		}
		previous, err := places(steps, s.owners)
		return ownersTx(account, steps, previous, d.Sequence), err
	}
	t, err := c.jointTx(account, d, nil)
	if err != nil || d.Transfer == nil {
		return t, err
	}
	in, err := c.intent(*d.Transfer)
	if err != nil {
		return t, err
	}
	return t, c.payable(ctx, conn, in, b)
}

// payable refuses a payment that a contract account can't make.
func (c *Client) payable(ctx context.Context, conn *rpc.Client, in intent, b chain.Block) error {
	coins, err := c.holding(ctx, conn, money.ETH, in.from, b)
	if err != nil {
		return err
	}
	m := c.message(in)
	if err := c.affordable(ctx, conn, in, m, coins, b); err != nil || in.amount.Asset() != money.ETH {
		return err
	}
	_, refused, err := call(ctx, conn, m, b)
	if refused != "" {
		return chain.Errorf(chain.ReasonReverts, "%s refuses the transfer: %s", in.to, refused)
	}
	return err
}

// checkDraft refuses a draft that no Safe can carry out, without a network, and returns its account.
func (c *Client) checkDraft(d chain.JointDraft) (common.Address, error) {
	account, err := parse(d.Account)
	switch {
	case err != nil:
		return account, chain.Errorf(chain.ReasonAddress, "the account %s", err)
	case d.Account != account.Hex():
		return account, chain.Errorf(chain.ReasonAddress, "the account %s is not in its canonical form", quote(d.Account))
	case d.FeePayer != "" || d.NonceAccount != "" || d.Life != 0 || len(d.Signers) > 0 || d.Quorum.Permission != 0 || d.Quorum.Control != nil:
		return account, chain.Errorf(chain.ReasonUnsupported,
			"a Safe has no fee payer, nonce account, permissions, limited life or named signers")
	case d.Transfer != nil && d.Owners != nil:
		return account, chain.Errorf(chain.ReasonUnsupported, "a joint transaction pays or changes the owners, not both")
	case d.Transfer != nil && d.Transfer.From != d.Account:
		return account, chain.Errorf(chain.ReasonAddress, "the sender %s is not the account %s", quote(d.Transfer.From), d.Account)
	}
	if err := checkOwners(account, d.Quorum.Owners, d.Quorum.Threshold); err != nil {
		return account, err
	}
	if d.Owners == nil {
		return account, nil
	}
	if d.Owners.Control != nil {
		return account, chain.Errorf(chain.ReasonUnsupported, "a Safe has one threshold for payments and for changes of its owners")
	}
	return account, checkOwners(account, d.Owners.Owners, d.Owners.Threshold)
}

// jointTx is the SafeTx of a draft. previous are the owners before those that a change of the owners removes, see placesIn.
func (c *Client) jointTx(account common.Address, d chain.JointDraft, previous []common.Address) (safeTx, error) {
	switch {
	case d.Owners != nil:
		steps, err := ownerSteps(d.Quorum, *d.Owners)
		return ownersTx(account, steps, previous, d.Sequence), err
	case d.Transfer == nil:
		return safeCall(account, new(big.Int), nil, d.Sequence), nil
	}
	in, err := c.intent(*d.Transfer)
	if err != nil {
		return safeTx{}, err
	}
	m := c.message(in)
	return safeCall(m.To, m.value(), m.Input, d.Sequence), nil
}

// joint is what the owners of an account sign.
func (c *Client) joint(account common.Address, d chain.JointDraft, t safeTx) (chain.Joint, error) {
	body, hash, err := t.encode(c.chainID(), account)
	if err != nil {
		return chain.Joint{}, err
	}
	// The account pays no fee: who sends the execution does.
	return chain.Joint{JointDraft: d, Digest: hash.Bytes(), Body: body, ID: hash.Hex(), FeeLimit: money.Zero(money.ETH)}, nil
}

// CheckJoint builds the SafeTx anew from the draft.
func (c *Client) CheckJoint(j chain.Joint) error {
	_, _, err := c.rebuilt(j)
	return err
}

// rebuilt is the SafeTx of a joint transaction, which must be just what its draft says.
func (c *Client) rebuilt(j chain.Joint) (account common.Address, t safeTx, err error) {
	if account, err = c.checkDraft(j.JointDraft); err != nil {
		return account, t, err
	}
	var previous []common.Address
	if j.Owners != nil {
		if previous, err = previousIn(account, j); err != nil {
			return account, t, err
		}
	}
	if t, err = c.jointTx(account, j.JointDraft, previous); err != nil {
		return account, t, err
	}
	want, err := c.joint(account, j.JointDraft, t)
	if err != nil {
		return account, t, err
	}
	for _, rule := range []struct {
		ok   bool
		what string
	}{
		{bytes.Equal(j.Body, want.Body), "account, recipient, amount, token, owners, number or another field"},
		{bytes.Equal(j.Digest, want.Digest), "the digest"},
		{j.ID == want.ID, "the id"},
		{j.ExpiresAt.IsZero() && j.RefBlock == "" && j.FeeLimit.Equal(want.FeeLimit), "expiry, reference block or fee limit"},
	} {
		if !rule.ok {
			return account, t, chain.Errorf(chain.ReasonProtocol, "the joint transaction differs from its draft: %s", rule.what)
		}
	}
	return account, t, nil
}

// previousIn reads what placesIn needs out of the typed data.
func previousIn(account common.Address, j chain.Joint) ([]common.Address, error) {
	steps, err := ownerSteps(j.Quorum, *j.Owners)
	if err != nil {
		return nil, err
	}
	var typed apitypes.TypedData
	if err := json.Unmarshal(j.Body, &typed); err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the joint transaction is no typed data")
	}
	text, _ := typed.Message["data"].(string)
	data, err := hexutil.Decode(text)
	if err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the joint transaction has no calldata")
	}
	previous, ok := placesIn(account, steps, data)
	if !ok || slices.Contains(previous, account) {
		return nil, chain.Errorf(chain.ReasonProtocol, "the joint transaction does not change the owners as its draft says")
	}
	return previous, nil
}

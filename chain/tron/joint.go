package tron

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange/money"
)

var _ chain.Multisig = (*Client)(nil)

// The life of a joint transaction. java-tron accepts an expiry of at most 24 hours after its newest block
// (Constant.MAXIMUM_TIME_UNTIL_EXPIRATION); half an hour less lets a node that is behind take it at once.
const (
	jointLife    = 23*time.Hour + 30*time.Minute
	maxJointLife = 24 * time.Hour
)

// Quorum implements chain.Multisig. The owners are those of the newest block, while it has any. TRON has no account that is made for several
// owners: any account can get an active permission that payments need.
func (c *Client) Quorum(ctx context.Context, address string) (chain.Quorum, error) {
	id, err := parse(address)
	if err != nil {
		return chain.Quorum{}, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	final, err := ask(ctx, c.solid, func(ctx context.Context, n *node) (holder, error) { return readHolder(ctx, n.solidity, id) })
	if err != nil {
		return chain.Quorum{}, err
	}
	latest, err := ask(ctx, c.full, func(ctx context.Context, n *node) (holder, error) {
		h, err := readHolder(ctx, n.wallet, id)
		if err == nil && h.at.Number < final.at.Number {
			err = chain.Errorf(chain.ReasonUnavailable, "the node's newest block is %d, and %d is final", h.at.Number, final.at.Number)
		}
		if err == nil {
			err = endpoints.Fresh(h.at, c.config.Now(), c.config.MaxHeadAge)
		}
		return h, err
	})
	if err != nil {
		return chain.Quorum{}, err
	}
	before, finalErr := quorumOf(final.account)
	now, latestErr := quorumOf(latest.account)
	q, err := chain.Joined(before, finalErr, now, latestErr)
	if err != nil {
		return chain.Quorum{}, err
	}
	if latestErr == nil {
		now.Moving = !stoodIn(final.account, now)
		q = now
	}
	q.Head = chain.Head{Latest: latest.at, Final: final.at}
	return q, nil
}

// stoodIn reports whether an account had a quorum.
func stoodIn(account *core.Account, q chain.Quorum) bool {
	before, err := quorumOf(account)
	return err == nil && same(before, q)
}

// holder is an account at a block, or at one that came while it was read.
type holder struct {
	account *core.Account
	at      chain.Block
}

// accountSource is the common part of Wallet and WalletSolidity for reading accounts.
type accountSource interface {
	blockSource
	GetAccount(ctx context.Context, in *core.Account, opts ...grpc.CallOption) (*core.Account, error)
}

func readHolder(ctx context.Context, s accountSource, id accountID) (holder, error) {
	at, err := newest(ctx, s)
	if err != nil {
		return holder{}, err
	}
	account, err := s.GetAccount(ctx, &core.Account{Address: id.full()})
	return holder{account: account, at: at}, err
}

// plan is what a joint transaction does: a payment, or other owners. In an intent without an amount, only who
// authorises it counts.
type plan struct {
	in      intent
	pays    bool
	owners  chain.Quorum // after a change of the owners
	signers chain.Quorum // those who sign it, as approved
}

// plan checks the parts of a joint transaction, without a network.
func (c *Client) plan(d chain.JointDraft) (plan, error) {
	if d.FeePayer != "" || d.NonceAccount != "" || d.Sequence != 0 || len(d.Signers) > 0 {
		return plan{}, chain.Errorf(chain.ReasonUnsupported, "TRON has no fee payer, no nonce accounts, no sequence numbers, and any owners may sign")
	}
	account, err := parse(d.Account)
	if err != nil {
		return plan{}, chain.Errorf(chain.ReasonAddress, "the account %s", err)
	}
	switch {
	case d.Transfer != nil && d.Owners != nil:
		return plan{}, chain.Errorf(chain.ReasonUnsupported, "a transaction on TRON either pays or changes the owners")
	case d.Transfer != nil:
		return c.planPayment(d)
	case d.Owners != nil:
		return planOwners(d, account)
	}
	return plan{}, chain.Errorf(chain.ReasonUnsupported, "a joint transaction on TRON can't be cancelled: it ends when it expires")
}

func (c *Client) planPayment(d chain.JointDraft) (plan, error) {
	if d.Transfer.From != d.Account {
		return plan{}, chain.Errorf(chain.ReasonAddress, "the sender is %q, the account of the owners %s", d.Transfer.From, d.Account)
	}
	if d.Quorum.Permission < firstActive {
		return plan{}, chain.Errorf(chain.ReasonForeign, "permission %d is not one for payments", d.Quorum.Permission)
	}
	if err := checkQuorum(d.Quorum); err != nil {
		return plan{}, chain.Errorf(chain.ReasonForeign, "%s", err)
	}
	in, err := c.intent(*d.Transfer)
	in.permission, in.signatures = d.Quorum.Permission, most(d.Quorum)
	return plan{in: in, pays: true, signers: d.Quorum}, err
}

func planOwners(d chain.JointDraft, account accountID) (plan, error) {
	p := plan{owners: after(*d.Owners), signers: controlling(d.Quorum)}
	if err := checkQuorum(p.owners); err != nil {
		return plan{}, chain.Errorf(chain.ReasonUnsupported, "%s can't get these owners: %s", d.Account, err)
	}
	if err := checkOwners(p.signers); err != nil {
		return plan{}, chain.Errorf(chain.ReasonForeign, "the owners who sign the change: %s", err)
	}
	p.in = intent{from: account, permission: ownerPermission, signatures: most(p.signers)}
	return p, nil
}

// standing reads who controls the account now: its owners or, before it gets several, its own key.
func (p plan) standing(account *core.Account) (chain.Quorum, error) {
	if !p.pays {
		if q, err := alone(account, p.in.from); err == nil {
			return q, nil
		}
	}
	return quorumOf(account)
}

// set sets the contract of the joint transaction.
func (c *Client) set(raw *core.TransactionRaw, p plan) error {
	if p.pays {
		return c.setTransfer(raw, p.in)
	}
	return setOwners(raw, p.in.from, p.owners)
}

// PrepareJoint implements chain.Multisig. A change of the owners is signed under the owner permission; the one key of an
// ordinary account signs the change that gives it several owners. Its quorum is that key, with weight and threshold 1.
func (c *Client) PrepareJoint(ctx context.Context, d chain.JointDraft) (chain.Joint, error) {
	life := jointLife
	if d.Life != 0 {
		life = d.Life
	}
	if life < minTransactionLife || life > maxJointLife {
		return chain.Joint{}, chain.Errorf(chain.ReasonUnsupported, "a joint transaction on TRON lives between %s and %s", minTransactionLife, maxJointLife)
	}
	p, err := c.plan(d)
	if err != nil {
		return chain.Joint{}, err
	}
	return build(ctx, c, p.in.from, func(ctx context.Context, b basis) (chain.Joint, error) {
		now, err := p.standing(b.sender)
		if err != nil {
			return chain.Joint{}, err
		}
		if !same(now, d.Quorum) {
			return chain.Joint{}, chain.Errorf(chain.ReasonForeign, "the owners of %s are not those for whom the transaction was approved", d.Account)
		}
		raw, err := c.envelope(b.final, b.latest, life)
		if err != nil {
			return chain.Joint{}, err
		}
		u, err := c.prepareJoint(ctx, b, d, p, raw)
		if err != nil {
			return chain.Joint{}, err
		}
		return chain.Joint{
			JointDraft: d, Digest: u.Payload, Body: u.Body, ID: hex.EncodeToString(u.Payload),
			ExpiresAt: u.ExpiresAt, RefBlock: u.RefBlock, Block: b.final, FeeLimit: u.FeeLimit,
		}, nil
	})
}

// prepareJoint adds what the transaction does to an envelope, and refuses what could not succeed now.
func (c *Client) prepareJoint(ctx context.Context, b basis, d chain.JointDraft, p plan, raw *core.TransactionRaw) (chain.Unsigned, error) {
	if p.pays {
		return c.prepareTransfer(ctx, b, *d.Transfer, p.in, raw)
	}
	return p.prepareOwners(ctx, b, raw)
}

// prepareOwners adds a change of the owners to an envelope.
func (p plan) prepareOwners(ctx context.Context, b basis, raw *core.TransactionRaw) (chain.Unsigned, error) {
	if err := setOwners(raw, p.in.from, p.owners); err != nil {
		return chain.Unsigned{}, err
	}
	if err := p.haveKeys(ctx, b.wallet); err != nil {
		return chain.Unsigned{}, err
	}
	price, err := readPrices(ctx, b.wallet)
	if err != nil {
		return chain.Unsigned{}, err
	}
	r, err := readResources(ctx, b.wallet, b.sender)
	if err != nil {
		return chain.Unsigned{}, err
	}
	size, fee := bandwidthOf(raw, p.in.signatures), price.permission+price.signing(p.in.signatures)
	need, limit := fee+bandwidthCost(price, r, size), fee+size*price.bandwidth
	if r.balance < need || !r.activated {
		return chain.Unsigned{}, shortOfGas(p.in.from, need, r.balance, limit)
	}
	return unsigned(chain.Transfer{}, raw, limit)
}

// haveKeys refuses contracts as owners: they can't sign, and an account that needs them is lost.
func (p plan) haveKeys(ctx context.Context, w api.WalletClient) error {
	for _, o := range append(controlling(p.owners).Owners, p.owners.Owners...) {
		id, err := parse(o.Address)
		if err != nil {
			return chain.Errorf(chain.ReasonAddress, "the owner %q %s", o.Address, err)
		}
		account, err := w.GetAccount(ctx, &core.Account{Address: id.full()})
		if err != nil {
			return err
		}
		if account.GetType() == core.AccountType_Contract {
			return chain.Errorf(chain.ReasonAddress, "the owner %s is a contract, which has no key", o.Address)
		}
	}
	return nil
}

// CheckJoint implements chain.Multisig.
func (c *Client) CheckJoint(j chain.Joint) error {
	_, _, err := c.checked(j)
	return err
}

// checked rebuilds a joint transaction from its parts.
func (c *Client) checked(j chain.Joint) (plan, *core.TransactionRaw, error) {
	p, err := c.plan(j.JointDraft)
	if err != nil {
		return plan{}, nil, err
	}
	raw, err := c.says(j.Body, func(r *core.TransactionRaw) error { return c.set(r, p) })
	if err != nil {
		return plan{}, nil, err
	}
	u, err := unsigned(chain.Transfer{}, raw, 0)
	if err != nil {
		return plan{}, nil, err
	}
	limit := sunOf(raw.GetFeeLimit())
	switch {
	case limit.Positive() && (j.FeeLimit.Asset() != money.TRX || j.FeeLimit.Cmp(limit) < 0):
		err = chain.Errorf(chain.ReasonProtocol, "the bytes allow a fee of %s TRX, which is more than the prepared one", limit)
	case !bytes.Equal(u.Payload, j.Digest) || hex.EncodeToString(u.Payload) != j.ID:
		err = chain.Errorf(chain.ReasonProtocol, "the digest and the id are not the hash of the bytes")
	case !u.ExpiresAt.Equal(j.ExpiresAt) || u.RefBlock != j.RefBlock:
		err = chain.Errorf(chain.ReasonProtocol, "the bytes expire at a time, or refer to a block, other than the prepared one")
	}
	return p, raw, err
}

// Signature implements chain.Multisig.
func (c *Client) Signature(j chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	p, _, err := c.checked(j)
	if err != nil {
		return chain.OwnerSignature{}, err
	}
	return p.signature(j, signature)
}

// signature checks the signature of an owner who may sign. Its canonical form has a low s and the recovery value 0 or 1;
// nodes take the other forms too.
func (p plan) signature(j chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	if len(signature) != signatureLength {
		return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "a signature has %d bytes, it must have %d", len(signature), signatureLength)
	}
	v := signature[signatureLength-1]
	if v >= 27 { // as some wallets write it
		v -= 27
	}
	r, s := new(big.Int).SetBytes(signature[:wordLength]), new(big.Int).SetBytes(signature[wordLength:2*wordLength])
	if !crypto.ValidateSignatureValues(v, r, s, false) {
		return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "the values of the signature are impossible")
	}
	order := crypto.S256().Params().N
	if mirrored := new(big.Int).Sub(order, s); s.Cmp(mirrored) > 0 { // of the two that are valid, the low one is canonical
		s, v = mirrored, v^1
	}
	canonical := append(bytes.Clone(signature[:wordLength]), append(s.FillBytes(make([]byte, wordLength)), v)...)
	signer, err := recoverSigner([sha256.Size]byte(j.Digest), canonical)
	if err != nil {
		return chain.OwnerSignature{}, chain.Wrap(chain.ReasonForeign, err, "the signature can't be recovered")
	}
	for _, o := range p.signers.Owners {
		if o.Address == signer.String() {
			return chain.OwnerSignature{Owner: o.Address, Signature: canonical}, nil
		}
	}
	return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "the signature is of %s, which is no owner; or it is of another transaction", signer)
}

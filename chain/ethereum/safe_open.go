package ethereum

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

var _ chain.Opener = (*Client)(nil)

// MultisigAccount is the address of the Safe that the factory makes for a seed and a quorum. It does not depend on the authority,
// who only sends the transaction: another sender's transaction with the same seed and quorum can only make the same account.
func (c *Client) MultisigAccount(_, seed string, q chain.OwnersChange) (string, error) {
	address, _, err := opening(seed, q)
	if err != nil {
		return "", err
	}
	return address.Hex(), nil
}

// MultisigRent is zero.
func (c *Client) MultisigRent(context.Context) (money.Amount, error) {
	return money.Zero(money.ETH), nil
}

// opening is the address of a Safe and the factory's call that makes it (Safe.setup; SafeProxyFactory.createProxyWithNonce and
// deployProxy; EIP-1014).
func opening(seed string, q chain.OwnersChange) (common.Address, []byte, error) {
	if seed == "" || q.Control != nil {
		return common.Address{}, nil, chain.Errorf(chain.ReasonUnsupported,
			"a Safe is made with a seed, and has one threshold for payments and for changes of its owners")
	}
	if err := checkOwners(common.Address{}, q.Owners, q.Threshold); err != nil {
		return common.Address{}, nil, err
	}
	owners, err := addressesOf(q.Owners)
	if err != nil {
		return common.Address{}, nil, err
	}
	zero := static(make([]byte, wordLength))
	setup := encodeCall("setup(address[],uint256,address,bytes,address,address,uint256,address)",
		addressesArgument(owners), static(numberWord(big.NewInt(int64(q.Threshold)))), zero, bytesArgument(nil),
		static(addressWord(safeHandler.address)), zero, zero, zero)
	salt := crypto.Keccak256([]byte(seed))
	address := crypto.CreateAddress2(safeFactory.address, crypto.Keccak256Hash(crypto.Keccak256(setup), salt), safeProxyCreation.Bytes())
	return address, encodeCall("createProxyWithNonce(address,bytes,uint256)",
		static(addressWord(safeSingleton.address)), bytesArgument(setup), static(salt)), nil
}

// openingCall is the call that opens an account.
func (c *Client) openingCall(t chain.Transfer, seed string, q chain.OwnersChange) (message, error) {
	from, err := parse(t.From)
	if err != nil {
		return message{}, chain.Errorf(chain.ReasonAddress, "the sender %s", err)
	}
	address, input, err := opening(seed, q)
	if err != nil {
		return message{}, err
	}
	if t.To != address.Hex() || t.From != from.Hex() || !t.Amount.Equal(money.Zero(money.ETH)) {
		return message{}, chain.Errorf(chain.ReasonProtocol,
			"the Safe of these owners and this seed is %s, and is made without ether, not %s with %s", address, quote(t.To), t.Amount)
	}
	return message{From: from, To: safeFactory.address, Input: input}, nil
}

// prepareOpening builds the transaction that makes a Safe, if it is not there yet. Quorum reads one that is.
func (c *Client) prepareOpening(ctx context.Context, d chain.Draft) (chain.Unsigned, error) {
	m, err := c.openingCall(d.Transfer, d.Seed, *d.Owners)
	if err != nil {
		return chain.Unsigned{}, err
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.Unsigned, error) {
		latest, err := c.newest(ctx, conn)
		if err != nil {
			return chain.Unsigned{}, err
		}
		if err := deployed(ctx, conn, latest.block(), safeFactory, safeSingleton, safeHandler); err != nil {
			return chain.Unsigned{}, err
		}
		result, refused, err := call(ctx, conn, m, latest.block())
		if err != nil {
			return chain.Unsigned{}, err
		}
		if refused != "" || common.BytesToAddress(result).Hex() != d.To {
			return chain.Unsigned{}, chain.Errorf(chain.ReasonReverts,
				"the Safe %s can't be made, perhaps because it is there already: the factory returns %x %s", d.To, result, refused)
		}
		u, err := c.offerCall(ctx, conn, m, chain.ExecutionDraft{Nonce: d.Nonce, Bump: d.Bump}, latest)
		u.Transfer, u.Seed, u.Owners = d.Transfer, d.Seed, d.Owners
		return u, err
	})
}

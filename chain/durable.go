package chain

import (
	"context"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Durable is a client of a network whose transactions live for about a minute, unless they use a nonce account: then they
// live until that account's value changes. The fee payer is the account's authority and signs too. So the owner's signature
// alone, made outside of the service, can't be sent, and the fee payer alone can make the transaction impossible.
type Durable interface {
	Client
	// NonceAccount is the address of the account that an authority opens with a seed of at most 32 bytes.
	NonceAccount(authority, seed string) (string, error)
	// DurableNonce reads the value of an account by the final chain, from a state not older than the block since.
	// ReasonForeign when the address has something other than a nonce account.
	DurableNonce(ctx context.Context, account string, since uint64) (DurableNonce, error)
	// NonceRent is what a nonce account must hold.
	NonceRent(ctx context.Context) (money.Amount, error)
	// SignPart signs a prepared transaction with the sender's key alone. The result is not a complete transaction.
	SignPart(u Unsigned, sender Key) ([]byte, error)
	// TakePart extracts the sender's signature from a prepared transaction that SignPart, or another tool, signed.
	// ReasonForeign for any other transaction.
	TakePart(u Unsigned, raw []byte) ([]byte, error)
	// Complete adds the fee payer's signature to the sender's.
	Complete(u Unsigned, part []byte, payer Key) (Signed, error)
}

// DurableNonce is the final state of a nonce account.
type DurableNonce struct {
	Value     string // empty when there is no such account
	Authority string // the key that may advance it
	Head      Head   // Final is the number of the final block at which it was read
}

// NonceStep is an operation of an authority on a nonce account, besides paying into it.
type NonceStep string

// The steps.
const (
	NonceOpen    NonceStep = "open"    // sets the account up
	NonceAdvance NonceStep = "advance" // gives it a new value, which invalidates everything signed with the old one
)

// NonceReader is the part of Durable that Inquire uses.
type NonceReader interface {
	DurableNonce(ctx context.Context, account string, since uint64) (DurableNonce, error)
}

// movedOn reports whether the nonce account of a transaction has a new value. Then the transaction is either final itself,
// succeeded or failed, or impossible: an old value never returns.
func movedOn(ctx context.Context, c NonceReader, a exchange.ChainAttempt) (bool, Nonces, error) {
	n, err := c.DurableNonce(ctx, a.NonceAccount, a.NonceBlock)
	if err != nil {
		return false, Nonces{}, err
	}
	if n.Value == "" {
		return false, Nonces{}, Errorf(ReasonForeign, "the nonce account %s is gone", a.NonceAccount)
	}
	return n.Value != a.RefBlock, Nonces{Head: n.Head}, nil
}

package chain

import (
	"context"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Durable is a client of a network whose transactions live for about a minute, unless they are made to live by
// a nonce account: then until that account's value moves on. The account is ruled by whoever pays the fee, who
// signs too. What its owner signed away from the service is therefore worth nothing to anybody before the fee
// payer signed as well, and can be made impossible by the fee payer alone.
type Durable interface {
	Client
	// NonceAccount is the address of the account that an authority opens under a seed of at most 32 bytes.
	NonceAccount(authority, seed string) (string, error)
	// DurableNonce reads the value of an account by the final chain, from a state not older than the block
	// since. ReasonForeign when what is there is no nonce account.
	DurableNonce(ctx context.Context, account string, since uint64) (DurableNonce, error)
	// NonceRent is what a nonce account must hold.
	NonceRent(ctx context.Context) (money.Amount, error)
	// SignPart signs a prepared transaction with the sender's key alone. What it gives is no transaction yet.
	SignPart(u Unsigned, sender Key) ([]byte, error)
	// TakePart reads the sender's signature out of what SignPart, or another tool, made of a prepared
	// transaction. ReasonForeign for any other transaction.
	TakePart(u Unsigned, raw []byte) ([]byte, error)
	// Complete adds the fee payer's signature to the sender's.
	Complete(u Unsigned, part []byte, payer Key) (Signed, error)
}

// DurableNonce is the final state of a nonce account.
type DurableNonce struct {
	Value     string // empty when there is no such account
	Authority string // who advances it
	Head      Head   // Final is the number of the final block by which it is told
}

// NonceStep is something that an authority does with a nonce account, besides paying into it.
type NonceStep string

// The steps.
const (
	NonceOpen    NonceStep = "open"    // sets the account up
	NonceAdvance NonceStep = "advance" // gives it a new value, which kills all that was signed with the old one
)

// NonceReader is the part of Durable that Inquire asks.
type NonceReader interface {
	DurableNonce(ctx context.Context, account string, since uint64) (DurableNonce, error)
}

// movedOn asks whether the nonce account of a transaction has moved past it. By then the transaction is final
// itself, carried out or failed, or it can never be: a value does not come back.
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

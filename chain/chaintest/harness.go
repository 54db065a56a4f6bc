// Package chaintest is the test suite that every driver of package chain must pass against a node.
//
// The scenarios are those in which a nearly correct driver loses money: lost responses, vanished transactions, undone
// blocks, equal payments, tokens that refuse. Run takes a function that starts a node; every scenario has its own node.
package chaintest

import (
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Account is a key pair for tests.
type Account struct {
	Address string
	Key     chain.Key
}

// Harness is a new node with a driver for it. Its methods fail the test themselves.
type Harness interface {
	// Client is the driver under test.
	Client() chain.Client
	// Tokens are the assets besides the native coin that the driver supports here.
	Tokens() []money.Asset
	// Unsupported is an asset that it does not support.
	Unsupported() money.Asset
	// NewAccount makes a key that the chain has never seen.
	NewAccount(t testing.TB) Account
	// Fund sends to an address and returns when it is final.
	Fund(t testing.TB, address string, amount money.Amount)
	// Gas is enough of the native coin for a few transfers.
	Gas() money.Amount
	// Mine makes blocks.
	Mine(t testing.TB, blocks int)
	// Finalise makes blocks until the current newest block is final.
	Finalise(t testing.TB)
	// BadAddresses are texts that must be refused.
	BadAddresses() []string
}

// Expiring is a network whose transactions expire.
type Expiring interface {
	// Life is how long a transaction that is prepared now can be included.
	Life() time.Duration
	// AdvanceTime moves the network's clock.
	AdvanceTime(t testing.TB, d time.Duration)
}

// Faulty is a node that can be made to misbehave.
type Faulty interface {
	// LoseNextAnswer makes the next broadcast arrive and loses its response.
	LoseNextAnswer(t testing.TB)
	// DropNext makes the node accept the next broadcast and forget it.
	DropNext(t testing.TB)
	// FailNext makes the next contract call fail in its block.
	FailNext(t testing.TB)
	// BusyNext makes the node refuse the next broadcast as busy.
	BusyNext(t testing.TB)
}

// Reorganising is a chain whose newest blocks can be undone.
type Reorganising interface {
	// Reorganise replaces the newest blocks by others. Their transactions become pending again, or vanish.
	Reorganise(t testing.TB, depth int, vanish bool)
}

// TokenControls are the powers of a token's issuer.
type TokenControls interface {
	Block(t testing.TB, token money.Asset, address string)
	Pause(t testing.TB, token money.Asset)
	// TakeFee makes the token keep a part of each transfer. It returns false for a token that can't.
	TakeFee(t testing.TB, token money.Asset) bool
}

// ContractTransfers are movements without a transaction of the owner.
type ContractTransfers interface {
	// TransferFrom moves an owner's tokens by the transaction of another account that has an allowance, and returns when it
	// is in the newest block.
	TransferFrom(t testing.TB, owner Account, to string, amount money.Amount)
}

// Restartable is a node that can stop and start again.
type Restartable interface {
	Stop(t testing.TB)
	Restart(t testing.TB)
}

// Poolless is a network whose nodes report nothing about a transaction before it is in a block: a pending one is absent, and
// can be broadcast any number of times.
type Poolless interface{ Poolless() }

// Sponsoring is a network on which an account of ours pays the fees of other senders.
type Sponsoring interface {
	// Sponsor is that account, with enough of the native coin.
	Sponsor(t testing.TB) Account
}

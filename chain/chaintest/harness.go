// Package chaintest is the suite that every driver of package chain must pass against a node.
//
// The scenarios are those in which money is lost by a driver that is nearly right: answers that
// never come, transactions that vanish, blocks that are undone, equal payments, tokens that refuse.
// Run is given a way to start a node; every scenario has a node of its own.
package chaintest

import (
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Account is a key pair of a test.
type Account struct {
	Address string
	Key     chain.Key
}

// Harness is a fresh node with a driver for it. Its methods fail the test themselves.
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
	// Finalise makes blocks until the newest of now is final.
	Finalise(t testing.TB)
	// BadAddresses are texts that must be refused.
	BadAddresses() []string
}

// Expiring is a network whose transactions have an end of life.
type Expiring interface {
	// Life is how long a transaction that is prepared now may be included.
	Life() time.Duration
	// AdvanceTime moves the network's clock.
	AdvanceTime(t testing.TB, d time.Duration)
}

// Faulty is a node that misbehaves on demand.
type Faulty interface {
	// LoseNextAnswer lets the next broadcast arrive and its answer get lost.
	LoseNextAnswer(t testing.TB)
	// DropNext lets the node accept the next broadcast and forget it.
	DropNext(t testing.TB)
	// FailNext lets the next contract call be included and fail.
	FailNext(t testing.TB)
	// BusyNext lets the node refuse the next broadcast without judging it.
	BusyNext(t testing.TB)
}

// Reorganising is a chain whose newest blocks can be undone.
type Reorganising interface {
	// Reorganise replaces the newest blocks by others. Their transactions go back to waiting, or
	// vanish.
	Reorganise(t testing.TB, depth int, vanish bool)
}

// TokenControls are what the issuer of a token can do.
type TokenControls interface {
	Block(t testing.TB, token money.Asset, address string)
	Pause(t testing.TB, token money.Asset)
	// TakeFee lets the token keep a part of each transfer. It reports false for one that can't.
	TakeFee(t testing.TB, token money.Asset) bool
}

// ContractTransfers are movements that no transaction of the owner makes.
type ContractTransfers interface {
	// TransferFrom moves tokens of an owner by the transaction of another account that was allowed
	// to, and returns when it is in the newest block.
	TransferFrom(t testing.TB, owner Account, to string, amount money.Amount)
}

// Restartable is a node that can go away and come back.
type Restartable interface {
	Stop(t testing.TB)
	Restart(t testing.TB)
}

// Poolless is a network whose nodes tell nothing of a transaction before it is in a block: they call
// one that waits absent, and take it as often as it is offered.
type Poolless interface{ Poolless() }

// Sponsoring is a network on which an account of ours pays the fees of other senders.
type Sponsoring interface {
	// Sponsor is that account, with enough of the native coin.
	Sponsor(t testing.TB) Account
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Limits of waiting for a deposit.
const (
	depositTimeout = 3 * time.Minute // about three times TRON's time to finality
	depositPoll    = 500 * time.Millisecond
)

// Watched waits until the product watches a network for deposits. Coins that are sent before are not seen: reading
// begins with the blocks that become final after the first start.
func Watched(ctx context.Context, db *store.Store, n exchange.Network) error {
	return patiently(ctx, "the watch over deposits on "+string(n), func() (bool, error) {
		_, found, err := db.DepositCursor(ctx, n)
		return found, err
	})
}

// Held returns a wallet's balance in the ledger.
func Held(ctx context.Context, db *store.Store, w exchange.Wallet, a money.Asset) (money.Amount, error) {
	account, err := db.Account(ctx, exchange.Owned(exchange.AccCustody, w.ID, a))
	return account.Posted, err
}

// Booked waits until a wallet's balance in the ledger is at least least, as a final deposit makes it.
func Booked(ctx context.Context, db *store.Store, w exchange.Wallet, least money.Amount) error {
	what := fmt.Sprintf("the deposit of %s %s to %s", least, least.Asset(), w.Address)
	return patiently(ctx, what, func() (bool, error) {
		held, err := Held(ctx, db, w, least.Asset())
		return err == nil && held.Cmp(least) >= 0, err
	})
}

// patiently polls look until it returns true.
func patiently(ctx context.Context, what string, look func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, depositTimeout)
	defer cancel()
	for {
		done, err := look()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w", what, ctx.Err()), err)
		case <-time.After(depositPoll):
		}
	}
}

// ForFees gives a wallet's native coins to the house, because only the house's coins pay network fees: tests and benchmarks whose payments
// should need no gas from the house do so. Nothing else books it. They are debited to the wallet's owner, to whom a deposit from outside
// is owed.
func ForFees(ctx context.Context, db *store.Store, w exchange.Wallet) error {
	coin := w.Network.NativeCoin()
	owner := exchange.Owned(exchange.AccWalletBalance, w.ID, coin)
	owed, err := db.Account(ctx, owner)
	if err != nil || !owed.Available().Positive() {
		return err
	}
	m := owed.Available()
	return db.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
		Key: "test:fees:" + uuid.NewString(), Kind: "test.fees", ObjectType: "wallet", ObjectID: w.ID,
		Lines: []exchange.Line{exchange.Debit(owner, m), exchange.Credit(exchange.House(exchange.AccCapital, coin), m)},
	}}})
}

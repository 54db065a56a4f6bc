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
	depositPatience = 3 * time.Minute // about three times the way to finality at TRON's own block time
	depositPoll     = 500 * time.Millisecond
)

// Watched waits until the product watches a network for deposits. Coins that are sent before are not seen:
// reading begins with what becomes final after the first start.
func Watched(ctx context.Context, db *store.Store, n exchange.Network) error {
	return patiently(ctx, "the watch over deposits on "+string(n), func() (bool, error) {
		_, found, err := db.DepositCursor(ctx, n)
		return found, err
	})
}

// Held is what the ledger says that a wallet holds.
func Held(ctx context.Context, db *store.Store, w exchange.Wallet, a money.Asset) (money.Amount, error) {
	account, err := db.Account(ctx, exchange.Owned(exchange.AccCustody, w.ID, a))
	return account.Posted, err
}

// Booked waits until the ledger says that a wallet holds an amount at least, which a deposit of it leads to
// when it is final.
func Booked(ctx context.Context, db *store.Store, w exchange.Wallet, least money.Amount) error {
	what := fmt.Sprintf("the deposit of %s %s to %s", least, least.Asset(), w.Address)
	return patiently(ctx, what, func() (bool, error) {
		held, err := Held(ctx, db, w, least.Asset())
		return err == nil && held.Cmp(least) >= 0, err
	})
}

// patiently looks until something is so.
func patiently(ctx context.Context, what string, look func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, depositPatience)
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

// ForFees makes the native coins in a wallet the house's, of which alone the network's fees are paid. The
// wallet's owner, to whom a deposit from outside is owed, gives them up.
func ForFees(ctx context.Context, db *store.Store, w exchange.Wallet) error {
	coin := w.Network.NativeCoin()
	owner := exchange.Owned(exchange.AccWalletBalance, w.ID, coin)
	owed, err := db.Account(ctx, owner)
	if err != nil || !owed.Available().Positive() {
		return err
	}
	m := owed.Available()
	return db.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
		Key: "seed:fees:" + uuid.NewString(), Kind: "seed.fees", ObjectType: "wallet", ObjectID: w.ID,
		Lines: []exchange.Line{exchange.Debit(owner, m), exchange.Credit(exchange.House(exchange.AccCapital, coin), m)},
	}}})
}

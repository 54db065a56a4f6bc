package activities

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// SwapSyncStore is the database interface of SwapSync.
type SwapSyncStore interface {
	cursorStore
	SwapByID(ctx context.Context, id uuid.UUID) (exchange.Swap, error)
	CompareReadings(ctx context.Context, n exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error)
	SyncSwap(ctx context.Context, id uuid.UUID, read []exchange.SwapBalance) (exchange.Swap, error)
}

// BalancesReader is the part of a network's driver that reads what addresses hold at one final block.
type BalancesReader interface {
	Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error)
}

// SwapSync compares the wallets of swaps with the ledger. It runs on the chain queue of the swaps' network.
type SwapSync struct {
	Store  SwapSyncStore
	Client BalancesReader
	Poll   time.Duration // between two checks of the deposit watch's progress; about the block time
	// WatchTimeout is how long a comparison waits for the deposit watch to reach the block at which it read.
	WatchTimeout time.Duration
}

// SyncSwapInput names a swap to compare. Differed is the block at which a comparison before this one found a difference; zero for none.
type SyncSwapInput struct {
	SwapID   uuid.UUID `json:"swap_id"`
	Differed uint64    `json:"differed,omitempty"`
}

// SyncedSwap is the swap after a comparison. Differed is what the next comparison is told.
type SyncedSwap struct {
	SwapState
	Differed uint64 `json:"differed,omitempty"`
}

// SyncSwap compares chain and ledger for a swap whose second leg is final: both assets of both wallets at one final block. The swap stays
// as it is while they can't be compared, because the deposit watch is behind or a movement of another payment is neither in the ledger nor
// proven. A difference counts when a later block has one too, so that one wrong or lagging node raises no alarm.
func (c *SwapSync) SyncSwap(ctx context.Context, in SyncSwapInput) (SyncedSwap, error) {
	s, err := c.Store.SwapByID(ctx, in.SwapID)
	if err != nil {
		return SyncedSwap{}, Failure(ctx, err)
	}
	read, err := c.balancesOf(ctx, s)
	if err != nil {
		return SyncedSwap{}, Failure(ctx, err)
	}
	block := read[0].Block.Number
	switch differs := slices.ContainsFunc(read, exchange.Comparison.Differs); {
	case slices.ContainsFunc(read, func(b exchange.Comparison) bool { return b.Deferred }):
		return SyncedSwap{swapState(s), in.Differed}, nil
	case differs && (in.Differed == 0 || block <= in.Differed):
		return SyncedSwap{swapState(s), cmp.Or(in.Differed, block)}, nil
	}
	balances := make([]exchange.SwapBalance, len(read))
	for i, b := range read {
		balances[i] = exchange.SwapBalance{WalletID: b.WalletID, Asset: b.Amount.Asset(), Ledger: b.Ledger.String(), Chain: b.Amount.String(), Block: b.Block.Number}
	}
	s, err = c.Store.SyncSwap(ctx, s.ID, balances)
	return SyncedSwap{swapState(s), in.Differed}, Failure(ctx, err)
}

// balancesOf reads both assets of both wallets of a swap at one final block, and compares them with the ledger at that block.
func (c *SwapSync) balancesOf(ctx context.Context, s exchange.Swap) ([]exchange.Comparison, error) {
	var of []chain.Holding
	var wallets []uuid.UUID
	for _, a := range []money.Asset{s.From.Asset(), s.To.Asset()} {
		of = append(of, chain.Holding{Address: s.Address, Asset: a}, chain.Holding{Address: s.HouseAddress, Asset: a})
		wallets = append(wallets, s.WalletID, s.HouseWalletID)
	}
	all, err := c.Client.Balances(ctx, of)
	if err != nil {
		return nil, err
	}
	readings := make([]exchange.WalletReading, len(all))
	for i, b := range all {
		readings[i] = exchange.WalletReading{WalletID: wallets[i], ChainBalance: exchange.ChainBalance{Amount: b.Amount, Block: blockOf(b.At)}}
	}
	if err := awaitWatch(ctx, c.Store, s.Network, all[0].At.Number, c.Poll, c.WatchTimeout); err != nil {
		return nil, err
	}
	return c.Store.CompareReadings(ctx, s.Network, readings)
}

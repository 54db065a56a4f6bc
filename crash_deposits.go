//go:build crash

package main

import (
	"context"

	"kivuko/activities"
	"kivuko/exchange"
)

type crashDeposits struct {
	activities.DepositStore
	crash
}

func (s crashDeposits) RecordFinalBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error) {
	return around(s.crash, "RecordFinalBlock", func() (exchange.DepositCursor, error) { return s.DepositStore.RecordFinalBlock(ctx, b) })
}

func (s crashDeposits) RecordSeenBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error) {
	return around(s.crash, "RecordSeenBlock", func() (exchange.DepositCursor, error) { return s.DepositStore.RecordSeenBlock(ctx, b) })
}

func (s crashDeposits) DropSeenBlock(ctx context.Context, n exchange.Network, b exchange.ChainBlock) error {
	return step(s.crash, "DropSeenBlock", func() error { return s.DepositStore.DropSeenBlock(ctx, n, b) })
}

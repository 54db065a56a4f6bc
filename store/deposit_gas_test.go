package store_test

import (
	"context"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// Gas from the house to a sending wallet is an ordinary payment of ours: its completion books both ends, whichever of
// completion and watch is first, and creates no liability.
func TestTopUpsAreBookedByTheirCompletion(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(t *testing.T, completion, watch func(context.Context) error){
		"watch first": oneByOne(false), "completion first": oneByOne(true), "at once": sideBySide,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), started(t)
			m := storetest.NewMarket(t, s)
			gas := houseWallet(t, s, exchange.HouseGas)
			storetest.Gas(t, s, gas.ID, trx("100"))
			_, p := paid(t, s, m)
			top, err := s.ApproveTopUp(ctx, p.ID, trx("5"), 3)
			if err != nil {
				t.Fatal(err)
			}
			tx := sign(t, s, top)
			b := scanOf(blockOf("a", 101), moveOf(tx.TxID, gas.Address, m.VendorWallet.Address, trx("5")))
			seenBlock(t, s, b)
			order(t, func(ctx context.Context) error {
				_, err := s.RecordFinal(ctx, tx.ID, true, 101, "a-101", trx("1"), "SUCCESS")
				return err
			}, func(ctx context.Context) error {
				_, err := s.RecordFinalBlock(ctx, b)
				return err
			})
			wantDeposit(t, s, tx.TxID, exchange.DepositOwn, exchange.DepositFinal)
			wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.TRX), "1005", "0")
			wantBalance(t, s, exchange.Owned(exchange.AccCustody, gas.ID, money.TRX), "94", "0")
			wantBalance(t, s, owed(m.VendorWallet, money.TRX), "0", "0")
			if open, err := s.OpenQuarantine(ctx, exchange.Tron); err != nil || len(open) != 0 {
				t.Errorf("alarms: %+v, %v", open, err)
			}
			wantBooks(t, s)
		})
	}
}

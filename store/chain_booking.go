package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// complete books what the payment moved and the network's fee.
func (st *step) complete(ctx context.Context, fee, total money.Amount) error {
	err := st.pay(ctx, exchange.ChainCompleted, func(p *exchange.ChainPayment) {
		p.Detail, p.TxID, p.Block, p.Fee = "", st.tx.TxID, st.tx.Block, total
	})
	if err != nil {
		return err
	}
	posting, lines, err := st.object.spend(ctx, st.t, st.payment)
	if err != nil {
		return err
	}
	st.posting.Holds = append(st.posting.Holds, posting.Holds...)
	st.posting.Entries = append(st.posting.Entries, posting.Entries...)
	if len(lines) > 0 || fee.Positive() { // another tool may have paid for what moves nothing
		if err := st.bookFee(ctx, "chain_payment:"+st.payment.ID.String()+":completed", "chain_payment.completed", fee, lines); err != nil {
			return err
		}
	}
	if g, ok := st.object.(*gasPayment); ok {
		explained, err := g.net(ctx, st.t, st.payment)
		if err != nil {
			return err
		}
		st.posting.Entries = append(st.posting.Entries, explained...)
	}
	return st.follow(ctx, stageCompleted)
}

const lockCustody = `SELECT posted - held FROM ledger_accounts WHERE code = $1 FOR NO KEY UPDATE`

// bookFee books the network's fee from the wallet that pays for gas, in one entry with lines. The fee was paid, so it
// can't be refused: if the books show too little in that wallet, unknown coins arrived there and are booked to
// suspense first. What brought them takes that back when it is booked (see explain).
func (st *step) bookFee(ctx context.Context, key, kind string, fee money.Amount, lines []exchange.Line) error {
	p := st.payment
	gas := exchange.Owned(exchange.AccCustody, p.FeeCustody(), fee.Asset())
	wallets := []uuid.UUID{gas.Owner}
	for _, l := range lines {
		if l.Account.Kind == exchange.AccCustody && l.Account.Asset == fee.Asset() {
			wallets = append(wallets, l.Account.Owner)
		}
	}
	if err := st.t.lockGas(ctx, wallets...); err != nil {
		return err
	}
	lines = append(lines, exchange.Debit(exchange.House(exchange.AccNetworkFees, fee.Asset()), fee), exchange.Credit(gas, fee))
	left := money.Zero(fee.Asset()) // what the lines take from the gas wallet's custody, below zero
	for _, l := range lines {
		if l.Account == gas {
			left = left.Add(l.Amount)
		}
	}
	var free []decimal.Decimal
	if err := st.t.All(ctx, &free, lockCustody, gas.Code()); err != nil {
		return err
	}
	if len(free) == 1 {
		known, err := amountOf(fee.Asset(), free[0])
		if err != nil {
			return err
		}
		left = left.Add(known)
	}
	if short := left.Neg(); short.Positive() {
		found, err := st.find(ctx, gas.Owner, short)
		if err != nil {
			return err
		}
		st.posting.Entries = append(st.posting.Entries, found)
	}
	st.posting.Entries = append(st.posting.Entries, exchange.Entry{
		Key: key, Kind: kind, ObjectType: "chain_payment", ObjectID: p.ID, Lines: exchange.Lines(lines...),
	})
	return nil
}

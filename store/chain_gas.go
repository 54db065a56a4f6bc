package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The hot wallet of the house that pays for gas on a network; the oldest, if there are several.
const readGasWallet = `SELECT ` + walletColumns + ` FROM wallets
WHERE owner_id IS NULL AND purpose = 'gas' AND network = $1 AND type = 'hot' AND custody = 'custodial' ORDER BY created_at, id LIMIT 1`

// GasWallet reads the wallet of the house that pays the fees of a network; CodeNotFound when there is none.
func (s *Store) GasWallet(ctx context.Context, n exchange.Network) (exchange.Wallet, error) {
	return readOne[exchange.Wallet](ctx, s.db, "gas wallet", readGasWallet, n)
}

func (t unitTx) gasWallet(ctx context.Context, n exchange.Network) (exchange.Wallet, bool, error) {
	return readFound[exchange.Wallet](ctx, t, readGasWallet, n)
}

// sponsor makes the house's gas wallet pay the fee of a payment. The gas wallet's own payments pay their own fees, as
// do all payments where there is no gas wallet.
func (t unitTx) sponsor(ctx context.Context, p *exchange.ChainPayment) error {
	w, found, err := t.gasWallet(ctx, p.Network)
	if err != nil || !found || w.ID == p.WalletID {
		return err
	}
	p.FeeWalletID, p.FeePayer = w.ID, w.Address
	return nil
}

// gasPayment is gas for another payment, or for a wallet ahead of need.
type gasPayment struct {
	wallet  uuid.UUID             // that gets the gas
	payment exchange.ChainPayment // that needs it; none ahead of need
}

// lockedGas finds the payment that needs the gas, whose object is locked first, as everywhere. Or the wallet that gets it ahead of need, of
// which nothing changes before the gas is there.
func (t unitTx) lockedGas(ctx context.Context, id uuid.UUID) (paymentObject, error) {
	if _, ahead, err := readFound[exchange.Wallet](ctx, t, readWallet, id); err != nil || ahead {
		return &gasPayment{wallet: id}, err
	}
	_, p, err := t.objectOf(ctx, id)
	return &gasPayment{wallet: p.WalletID, payment: p}, err
}

// parties are empty: the house pays for gas.
func (g *gasPayment) parties() (owner, vendor uuid.UUID) { return uuid.Nil, uuid.Nil }

// follow does nothing: the payment that needs gas stays approved until it can be signed.
func (g *gasPayment) follow(context.Context, unitTx, paymentStage, string) error { return nil }

// spend moves native coin from the gas wallet to the sending wallet. Both are in our custody and the coin stays the
// house's, so no liability changes.
func (g *gasPayment) spend(_ context.Context, _ unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	return exchange.Posting{}, []exchange.Line{
		exchange.Debit(exchange.Owned(exchange.AccCustody, g.wallet, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}, nil
}

const insertArrival = `
INSERT INTO gas_arrivals (attempt_id, block, block_id, seen_at)
SELECT id, block, block_id, $3 FROM chain_attempts WHERE id = $1 AND status = 'included' AND block_id = $2 ON CONFLICT DO NOTHING`

// RecordGasArrival stores that the block with the given id has a top-up's transaction, with the transfer that it should make. As
// long as the transaction is in that block, the house's coins in the receiving wallet include the top-up, although nothing is
// booked before the block is final. It does nothing if the transaction has left the block, and may be called again.
func (s *Store) RecordGasArrival(ctx context.Context, attemptID uuid.UUID, blockID string) error {
	return s.inTx(ctx, "gas", func(t unitTx) error {
		_, err := t.Exec(ctx, insertArrival, attemptID, blockID, t.s.now())
		return err
	})
}

const lastTopUp = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.purpose = 'gas' AND p.object_id = $1 ORDER BY p.n DESC LIMIT 1`

// ApproveTopUp returns the payment that brings gas to the sending wallet of an approved payment: the open one, or a
// new one of the amount. A parked one becomes ready to be signed again, as when an officer retries the payment. The open one may be one
// ahead of need, whose object is the wallet: it is on its way already. One that is not signed yet makes way.
// CodeInsufficientFunds when the payment has had as many top-ups as the limit allows, CodeUnsupported where the
// network has no gas wallet or the payment can have no top-up.
func (s *Store) ApproveTopUp(ctx context.Context, paymentID uuid.UUID, amount money.Amount, limit int) (exchange.ChainPayment, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		p, err := t.topUp(ctx, paymentID, amount, limit)
		return p, exchange.Posting{}, err
	})
}

func (t unitTx) topUp(ctx context.Context, paymentID uuid.UUID, amount money.Amount, limit int) (exchange.ChainPayment, error) {
	var none exchange.ChainPayment
	_, p, err := t.objectOf(ctx, paymentID)
	if err != nil {
		return none, err
	}
	gas := &gasPayment{wallet: p.WalletID, payment: p}
	var rows []exchange.ChainPayment
	if err := t.All(ctx, &rows, lastTopUp, paymentID); err != nil {
		return none, err
	}
	n := 1
	if len(rows) == 1 {
		last := rows[0]
		switch last.Status {
		case exchange.ChainApproved, exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded:
			return last, nil
		case exchange.ChainParked:
			again := last
			again.Status, again.Detail = exchange.ChainApproved, ""
			return t.savePayment(ctx, flow, gas, last, again)
		case exchange.ChainCompleted, exchange.ChainCancelled:
		}
		n = last.N + 1
	}
	return t.newTopUp(ctx, gas, amount, n, limit)
}

func (t unitTx) newTopUp(ctx context.Context, gas *gasPayment, amount money.Amount, n, limit int) (exchange.ChainPayment, error) {
	p := gas.payment
	if p.Status != exchange.ChainApproved {
		return p, exchange.Errorf(exchange.CodeStateConflict, "A payment that is %s needs no gas.", p.Status)
	}
	if amount.Asset() != p.Network.NativeCoin() || !amount.Positive() {
		return p, exchange.Errorf(exchange.CodeInternal, "%s %s is not the gas coin of %s", amount, amount.Asset(), p.Network)
	}
	if n > limit {
		return p, exchange.Errorf(exchange.CodeInsufficientFunds, "The payment has had %d gas top-ups and needs more gas.", n-1)
	}
	w, found, err := t.gasWallet(ctx, p.Network)
	if err != nil {
		return p, err
	}
	if !found || p.Purpose == exchange.ForGas || p.Network.Sponsored() || w.ID == p.WalletID {
		return p, exchange.Errorf(exchange.CodeUnsupported, "The house has no wallet that can send gas to the payment.")
	}
	if ahead, under, err := t.makeWay(ctx, p.WalletID); err != nil || under {
		return ahead, err
	}
	return t.addPayment(ctx, flow, gas, exchange.ChainPayment{
		Purpose: exchange.ForGas, ObjectID: p.ID, N: n, Network: p.Network, Amount: amount, WalletID: w.ID, ToAddress: p.FromAddress,
		ApprovedBy: byPolicy,
	})
}

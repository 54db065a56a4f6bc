package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// priceTransfer fixes what a transfer costs its sender beside the amount. One that is opened with a quote
// uses it up and takes its fee and shillings over; any other is charged by the profile in force. The house
// pays no fee to itself.
func (t unitTx) priceTransfer(ctx context.Context, f *exchange.Transfer, r exchange.TransferRequest, role exchange.Role, by exchange.Principal) error {
	f.Fee = money.Zero(f.Amount.Asset())
	var profile exchange.FeeProfile
	if r.QuoteID == uuid.Nil {
		var err error
		if profile, err = t.feesFor(ctx, exchange.FeeTransfer, f.Amount.Asset(), role); err != nil {
			return err
		}
		f.Fee = profile.Fee(f.Amount)
	} else {
		q, err := t.ownQuote(ctx, r.QuoteID, r.RequestedBy, "/fx_rate_quote_id")
		if err != nil {
			return err
		}
		if err := q.Admit(exchange.QuoteForTransfer, f.Amount, t.s.now()); err != nil {
			return err
		}
		if err := t.useQuote(ctx, q, "transfer", f.ID, by); err != nil {
			return err
		}
		profile, f.Fee = q.Terms.Profile, q.Price.Fee
		f.QuoteID, f.QuotedFiat, f.QuotedRate = q.ID, q.Price.Fiat, q.Price.Rate
	}
	f.FeeProfileID = profile.ID
	if !f.Fee.Positive() {
		return nil
	}
	var err error
	f.FeeHoldID, err = uuid.NewV7()
	return err
}

// feeHold reserves a transfer's fee beside its amount.
func feeHold(f exchange.Transfer) []exchange.HoldOp {
	if f.FeeHoldID == uuid.Nil {
		return nil
	}
	return []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: f.FeeHoldID, Key: feeKey(f), Account: exchange.Owned(exchange.AccWalletBalance, f.WalletID, f.Amount.Asset()),
		Amount: f.Fee, ObjectType: "transfer", ObjectID: f.ID,
	}}}
}

// feeKey names the fee of a transfer in the books, as a hold and as an entry.
func feeKey(f exchange.Transfer) string { return "transfer:" + f.ID.String() + ":fee" }

// takeFee books the fee of a completed transfer. The crypto stays at the sender's address and is the house's.
func takeFee(f exchange.Transfer) exchange.Posting {
	if f.FeeHoldID == uuid.Nil {
		return exchange.Posting{}
	}
	return exchange.Posting{
		Holds: []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: f.FeeHoldID}}},
		Entries: []exchange.Entry{{
			Key: feeKey(f), Kind: "transfer.fee", ObjectType: "transfer", ObjectID: f.ID,
			Lines: []exchange.Line{
				exchange.Debit(exchange.Owned(exchange.AccWalletBalance, f.WalletID, f.Fee.Asset()), f.Fee),
				exchange.Credit(exchange.House(exchange.AccFees, f.Fee.Asset()), f.Fee),
			},
		}},
	}
}

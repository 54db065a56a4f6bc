package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// priceTransfer fixes a transfer's fee. A transfer with a quote uses the quote up and takes over its fee and
// shillings; others use the current profile. The house pays itself no fee.
func (t unitTx) priceTransfer(ctx context.Context, f *exchange.Transfer, r exchange.TransferRequest, role exchange.Role, by exchange.Principal) error {
	f.Fee = money.Zero(f.Amount.Asset())
	var profile exchange.FeeProfile
	if r.QuoteID == uuid.Nil {
		var err error
		if profile, err = t.feesFor(ctx, transferLine(*f), role, f.CreatedAt); err != nil {
			return err
		}
		f.Fee = profile.Fee(f.Amount)
	} else {
		q, err := t.ownQuote(ctx, r.QuoteID, r.RequestedBy, "/fx_rate_quote_id")
		if err != nil {
			return err
		}
		if err := q.Admit(exchange.QuoteUse{Purpose: exchange.QuoteForTransfer, Amount: f.Amount, Network: f.Network}, t.s.now()); err != nil {
			return err
		}
		if err := t.useQuote(ctx, q, "transfer", f.ID, by); err != nil {
			return err
		}
		profile, f.Fee = q.Terms.Profile, q.Price.Fee
		f.QuoteID, f.QuotedFiat, f.QuotedRate = q.ID, q.Price.Fiat, q.Price.Rate
	}
	f.FeeProfileID = profile.ID
	if r.MaxFee != nil && f.Fee.Cmp(*r.MaxFee) > 0 {
		return exchange.Errorf(exchange.CodeRateChanged, "The fee is %s %s, more than max_fee.", f.Fee, f.Fee.Asset())
	}
	if !f.Fee.Positive() {
		return nil
	}
	var err error
	f.FeeHoldID, err = uuid.NewV7()
	return err
}

// transferLine is what a fee profile for a transfer covers.
func transferLine(f exchange.Transfer) exchange.FeeLine {
	return exchange.FeeLine{Scope: exchange.FeeTransfer, MerchantID: f.VendorID, Asset: f.Amount.Asset(), Network: f.Network}
}

// feeHold reserves a transfer's fee besides its amount.
func feeHold(f exchange.Transfer) []exchange.HoldOp {
	if f.FeeHoldID == uuid.Nil {
		return nil
	}
	return []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: f.FeeHoldID, Key: feeKey(f), Account: exchange.Owned(exchange.AccWalletBalance, f.WalletID, f.Amount.Asset()),
		Amount: f.Fee, ObjectType: "transfer", ObjectID: f.ID,
	}}}
}

// feeKey is the key of a transfer's fee, as a hold and as an entry.
func feeKey(f exchange.Transfer) string { return "transfer:" + f.ID.String() + ":fee" }

// takeFee books the fee of a completed transfer. The crypto becomes the house's and stays at the sender's
// address until it is swept.
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
				exchange.Credit(exchange.Owned(exchange.AccWalletFees, f.WalletID, f.Fee.Asset()), f.Fee),
			},
		}},
	}
}

package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const insertWithdrawal = `
INSERT INTO otc_withdrawals (id, merchant_id, requested_by, intent_id, status, status_detail, method, source_asset, source_amount, source_wallet_id, payout_asset, payout_amount,
    fee_amount, fee_profile_id, fx_quote_id, rate, value, destination_id, digest, hold_id, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $21)`

// The open withdrawals of a merchant are counted one after the other: its row is locked.
const countOpenWithdrawals = `SELECT count(*) FROM otc_withdrawals WHERE merchant_id = $1 AND status NOT IN ('completed', 'rejected', 'cancelled', 'failed')`

// OpenWithdrawal carries out an intent to withdraw: it stores the withdrawal, holds its money, uses its quote up and counts its value
// against the merchant's limits. A repeated call returns the existing withdrawal. CodeInvalid names the wrong field,
// CodeInsufficientFunds a balance or a wallet with too little available, CodeLimitReached a limit; CodeStateConflict and CodeExpired a
// quote that can't be used. The errors of useIntent come before all others.
func (s *Store) OpenWithdrawal(ctx context.Context, a exchange.Asked) (exchange.Withdrawal, error) {
	r, err := readAsked(ctx, s, a, exchange.WithdrawalRequestOf, exchange.IntendWithdrawal)
	if err != nil {
		return exchange.Withdrawal{}, err
	}
	return change(ctx, s, "withdrawal", r.ID, func(ctx context.Context, t unitTx) (exchange.Withdrawal, exchange.Posting, error) {
		var none exchange.Posting
		asked, used, err := t.useIntent(ctx, a, exchange.IntendWithdrawal)
		if err != nil {
			return exchange.Withdrawal{}, none, err
		}
		if used {
			old, err := readOne[exchange.Withdrawal](ctx, t, "withdrawal", readWithdrawal, asked.ObjectID)
			return old, none, err
		}
		w := t.workOn(exchange.Withdrawal{
			ID: r.ID, MerchantID: asked.By.VendorID, RequestedBy: asked.By.UserID, IntentID: asked.ID, Status: exchange.WithdrawalRequested, Detail: exchange.WaitScreening,
			DestinationID: r.DestinationID, Fee: money.Zero(money.KES), CreatedAt: t.s.now(),
		})
		w.by, w.intent = asked.By, asked
		err = w.open(ctx, r)
		return w.w, w.post, err
	})
}

func (w *outWork) open(ctx context.Context, r exchange.WithdrawalRequest) error {
	if !w.by.Role.Merchant() {
		return exchange.Errorf(exchange.CodeForbidden, "Only a merchant can withdraw.")
	}
	if err := r.Check(); err != nil {
		return err
	}
	if err := w.stillMay(ctx, w.by); err != nil {
		return err
	}
	if err := w.One(ctx, lockOwner, w.w.MerchantID); err != nil {
		return err
	}
	if err := w.below(ctx, exchange.MaxOpenWithdrawals, countOpenWithdrawals, w.w.MerchantID, "open withdrawals of one merchant"); err != nil {
		return err
	}
	to, err := w.destination(ctx, r)
	if err != nil {
		return err
	}
	quote, err := w.price(ctx, r, to)
	if err != nil {
		return err
	}
	w.w.Digest = w.w.Intent(to.Recipient())
	if err := w.useLimit(ctx, limitUse{userID: w.by.UserID, role: w.by.Role, objectType: "otc_withdrawal", objectID: w.w.ID, value: w.w.Value}); err != nil {
		return err
	}
	from, where := w.balance(), "your balance"
	if w.w.Sells() {
		from, where = exchange.Owned(exchange.AccWalletBalance, w.w.SourceWalletID, w.w.Source.Asset()), "the wallet"
	}
	if w.w.HoldID, err = w.hold("requested", from, w.w.Source); err != nil {
		if exchange.CodeOf(translate(err, "")) == exchange.CodeInsufficientFunds {
			return exchange.Wrap(exchange.CodeInsufficientFunds, err, "The withdrawal takes %s %s, and %s has less available.", w.w.Source.Asset(), w.w.Source, where)
		}
		return err
	}
	if quote.ID != uuid.Nil {
		if err := w.useQuote(ctx, quote, "otc_withdrawal", w.w.ID, w.by); err != nil {
			return err
		}
	}
	return w.insert(ctx)
}

func (w *outWork) insert(ctx context.Context) error {
	o := w.w
	err := w.One(ctx, insertWithdrawal, o.ID, o.MerchantID, o.RequestedBy, o.IntentID, o.Status, o.Detail, o.Method, o.Source.Asset(), o.Source.Decimal(), nullID(o.SourceWalletID),
		o.Payout.Asset(), o.Payout.Decimal(), o.Fee.Decimal(), nullID(o.ProfileID), nullID(o.QuoteID), decimal.NullDecimal{Decimal: o.Rate, Valid: !o.Rate.IsZero()}, o.Value.Decimal(),
		o.DestinationID, o.Digest, o.HoldID, w.now)
	if err != nil {
		return err
	}
	if w.w, err = readOne[exchange.Withdrawal](ctx, w, "withdrawal", readWithdrawal, o.ID); err != nil {
		return err
	}
	w.before = w.w
	return w.record(ctx, w.event("otc_withdrawal.requested"))
}

// methodTo is how money reaches each kind of destination.
var methodTo = map[exchange.DestinationKind]exchange.WithdrawalMethod{
	exchange.DestinationPhone: exchange.WithdrawByMomo, exchange.DestinationBank: exchange.WithdrawByBank, exchange.DestinationAddress: exchange.WithdrawByChain,
}

// destination finds where the money goes: a destination of the merchant that it confirmed, of a kind that takes what arrives.
func (w *outWork) destination(ctx context.Context, r exchange.WithdrawalRequest) (exchange.Destination, error) {
	d, found, err := readFound[exchange.Destination](ctx, w, readDestination, r.DestinationID)
	if err != nil {
		return d, err
	}
	if err := require(found && d.MerchantID == w.w.MerchantID, "/destination_id", "not_found", "must be the id of one of your saved destinations"); err != nil {
		return d, err
	}
	if d.Status != exchange.DestinationConfirmed {
		return d, exchange.Errorf(exchange.CodeStateConflict, "The destination is %s. Withdrawals go to confirmed destinations.", d.Status)
	}
	w.w.Method = methodTo[d.Kind]
	return d, require(r.Payout.Stablecoin() == (d.Kind == exchange.DestinationAddress), "/destination_id", "mismatch", "must be an address for crypto, and a phone or a bank account for shillings")
}

// price fixes what leaves and what arrives, and returns the quote that it rests on; a zero one for shillings.
func (w *outWork) price(ctx context.Context, r exchange.WithdrawalRequest, to exchange.Destination) (exchange.FXQuote, error) {
	if r.QuoteID == uuid.Nil {
		return exchange.FXQuote{}, w.priceShillings(ctx, r)
	}
	network := to.Network
	if r.Source.Stablecoin() {
		wallet, err := w.sellingWallet(ctx, r.WalletID)
		if err != nil {
			return exchange.FXQuote{}, err
		}
		w.w.SourceWalletID, w.w.SourceNetwork, network = wallet.ID, wallet.Network, wallet.Network
	}
	q, err := w.quoted(ctx, r, network)
	if err != nil {
		return q, err
	}
	w.w.QuoteID, w.w.ProfileID, w.w.Rate, w.w.Fee = q.ID, q.Terms.Profile.ID, q.Price.Rate, q.Price.Fee
	w.w.Source, w.w.Payout = q.Price.Fiat, q.Price.Crypto
	if r.Source.Stablecoin() {
		w.w.Source, w.w.Payout = q.Price.Crypto, q.Price.Fiat
		if err := w.payable(ctx); err != nil {
			return q, err
		}
	}
	counted, _, err := w.valueOf(ctx, q.Price.Crypto)
	if w.w.Value = q.Price.Fiat; err == nil && counted.Cmp(w.w.Value) > 0 {
		w.w.Value = counted
	}
	return q, err
}

// quoted finds the quote that the merchant names: one of the merchant's, for this direction, network and method.
func (w *outWork) quoted(ctx context.Context, r exchange.WithdrawalRequest, network exchange.Network) (exchange.FXQuote, error) {
	found, known, err := readFound[quoteRow](ctx, w, lockQuote, r.QuoteID)
	if err != nil {
		return exchange.FXQuote{}, err
	}
	const pointer = "/fx_rate_quote_id"
	if err := require(known && found.VendorID.UUID == w.w.MerchantID, pointer, "not_found", "must be the id of one of your quotes"); err != nil {
		return exchange.FXQuote{}, err
	}
	q, err := found.quote()
	if err != nil {
		return q, err
	}
	coin, side := r.Payout, exchange.QuoteBuy
	if r.Source.Stablecoin() {
		coin, side = r.Source, exchange.QuoteSell
	}
	if err := require(q.Terms.Purpose != exchange.QuoteForWithdrawal || q.Terms.Side == side && q.Price.Crypto.Asset() == coin, pointer, "mismatch",
		"must be a quote to "+string(side)+" "+string(coin)); err != nil {
		return q, err
	}
	return q, q.Admit(exchange.QuoteUse{Purpose: exchange.QuoteForWithdrawal, Amount: q.Price.Crypto, Network: network, Method: string(w.w.Method)}, w.now)
}

// priceShillings prices shillings that stay shillings: the fee comes on top of what arrives.
func (w *outWork) priceShillings(ctx context.Context, r exchange.WithdrawalRequest) error {
	line := exchange.FeeLine{Scope: exchange.FeeWithdrawal, MerchantID: w.w.MerchantID, Asset: money.KES, Method: string(w.w.Method)}
	profile, err := w.feesFor(ctx, line, w.by.Role, w.now)
	if err != nil {
		return err
	}
	w.w.Payout, w.w.ProfileID, w.w.Fee = r.Amount, profile.ID, profile.Fee(r.Amount)
	w.w.Source, w.w.Value = w.w.Payout.Add(w.w.Fee), w.w.Payout
	return w.payable(ctx)
}

// payable refuses shillings that the rail can't pay.
func (w *outWork) payable(ctx context.Context) error {
	if w.w.Method != exchange.WithdrawByMomo {
		return nil
	}
	pointer := "/payout_amount"
	if w.w.Sells() {
		pointer = "/fx_rate_quote_id"
	}
	if err := require(w.w.Payout.Equal(w.w.Payout.FloorWhole()), pointer, "precision", "must be whole shillings for mobile money"); err != nil {
		return err
	}
	terms, err := w.termsAt(ctx, w.now)
	if err != nil {
		return err
	}
	return require(w.w.Payout.Cmp(terms.MinPayout) >= 0 && w.w.Payout.Cmp(terms.MaxPayout) <= 0, pointer, "out_of_range",
		"must bring between "+terms.MinPayout.String()+" and "+terms.MaxPayout.String()+" KES for mobile money")
}

// sellingWallet is the wallet whose crypto is sold: a hot one of the merchant in our custody.
func (w *outWork) sellingWallet(ctx context.Context, id uuid.UUID) (exchange.Wallet, error) {
	from, found, err := readFound[exchange.Wallet](ctx, w, readWallet, id)
	if err != nil {
		return from, err
	}
	const pointer = "/source_wallet_id"
	if err := require(found && from.VendorID == w.w.MerchantID, pointer, "not_found", "must be the id of one of your wallets"); err != nil {
		return from, err
	}
	return from, require(from.Custody == exchange.Custodial && from.Type == exchange.Hot, pointer, "unsupported", "must be a hot wallet in our custody")
}

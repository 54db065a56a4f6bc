package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// till is a desk that sells crypto: with a rate, agreed valuations, a merchant with a wallet, and a treasury's wallet of 1000 USDT.
type till struct {
	otcDesk
	wallet exchange.Wallet // the merchant's
	coffer exchange.Wallet // of the treasury
}

func newTill(t *testing.T) till {
	t.Helper()
	return newTillAt(t, time.Now())
}

func newTillAt(t *testing.T, now time.Time) till {
	t.Helper()
	v := till{otcDesk: newOTC(t)}
	v.clock.Store(now.UnixMilli())
	v.enterRate(t)
	storetest.AgreeValuations(t, v.s)
	v.wallet = storetest.Wallet(t, v.s, v.merchant)
	v.coffer = storetest.TreasuryWallet(t, v.s, exchange.Tron)
	storetest.Deposit(t, v.s, v.coffer.ID, money.Must(money.USDT, "1000"))
	storetest.Gas(t, v.s, v.coffer.ID, trx("100"))
	if _, err := v.s.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v till) enterRate(t *testing.T) {
	t.Helper()
	storetest.Rate(t, v.s, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(130), Life: exchange.MaxRateLife})
}

func (v till) coins(t *testing.T, amount string) exchange.OTCRequest {
	t.Helper()
	r := v.shillings(t, amount)
	r.Asset, r.Network = money.USDT, exchange.Tron
	return r
}

// bought is a submitted deposit for USDT.
func (v till) bought(t *testing.T, amount string) exchange.OTCDeposit {
	t.Helper()
	o, err := storetest.OpenOTC(t.Context(), v.s, exchange.IntendOTCOpen, v.coins(t, amount), v.by)
	if err != nil {
		t.Fatalf("open a deposit for USDT: %v", err)
	}
	return o
}

// proven is one whose money a line shows and an officer confirms.
func (v till) proven(t *testing.T, o exchange.OTCDeposit, amount string, value time.Time) exchange.OTCDeposit {
	t.Helper()
	ref := "B" + o.Reference
	l := v.paid(ref, o.Reference, amount)
	l.ValueDate, l.BookedOn = value, value
	v.shown(t, l)
	v.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, v.one)
	return v.do(t, exchange.IntendOTCConfirm, o.ID, words(v.line(t, ref)), v.one)
}

// settles has a treasury officer settle a deposit in crypto, and opens the transfer if there is room.
func (v till) settles(t *testing.T, o exchange.OTCDeposit, by exchange.Principal) (exchange.OTCDeposit, exchange.Asked) {
	t.Helper()
	id := storetest.NewID(t)
	r := exchange.TransferRequest{ID: id, RequestedBy: by.UserID, WalletID: v.coffer.ID, Network: exchange.Tron, Amount: o.Crypto, Recipient: exchange.Recipient{WalletID: o.ToWalletID}}
	a, err := storetest.Ask(t.Context(), v.s, exchange.IntendTransfer, storetest.NewID(t), id, r.Terms(), by)
	if err != nil {
		t.Fatal(err)
	}
	return v.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{TransferIntent: a.IntentID}, by), a
}

// A merchant buys crypto: by a draft with a quote, or at once, for its own default wallet.
func TestDepositsForCryptoArePriced(t *testing.T) {
	t.Parallel()
	v := newTill(t)
	ctx := t.Context()
	o := v.bought(t, "13000")
	if o.Status != exchange.OTCPending || !o.Rate.Equal(decimal.NewFromInt(130)) || !o.Crypto.Equal(money.Must(money.USDT, "100")) || o.ToWalletID != v.wallet.ID || o.ToAddress != v.wallet.Address || !o.QuoteEndsAt.After(o.CreatedAt) {
		t.Fatalf("opened %+v", o)
	}
	if q, err := v.s.Quote(ctx, store.Everything(), o.QuoteID); err != nil || q.Status != exchange.QuoteConsumed || q.ObjectID != o.ID {
		t.Errorf("its quote is %+v, %v", q, err)
	}
	r := v.coins(t, "2600")
	draft, err := storetest.OpenOTC(ctx, v.s, exchange.IntendOTCDraft, r, v.by)
	if err != nil {
		t.Fatal(err)
	}
	v.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCSubmit, draft.ID, exchange.OTCStep{}, v.by)
	q, err := v.s.OpenQuote(ctx, store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForDeposit, Side: exchange.QuoteBuy, Amount: kes("2600"), Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByBank,
	}, v.by)
	if err != nil {
		t.Fatal(err)
	}
	v.refuse(t, exchange.CodeInvalid, exchange.IntendOTCQuote, draft.ID, exchange.OTCStep{QuoteID: storetest.NewID(t)}, v.by)
	v.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCQuote, draft.ID, exchange.OTCStep{QuoteID: o.QuoteID}, v.by)
	if draft = v.do(t, exchange.IntendOTCQuote, draft.ID, exchange.OTCStep{QuoteID: q.ID}, v.by); draft.Status != exchange.OTCQuoted || draft.QuoteID != q.ID {
		t.Fatalf("quoted %+v", draft)
	}
	if draft = v.do(t, exchange.IntendOTCSubmit, draft.ID, exchange.OTCStep{}, v.by); draft.Status != exchange.OTCPending || !draft.Crypto.Equal(money.Must(money.USDT, "20")) {
		t.Fatalf("submitted %+v", draft)
	}

	// A quote that ends before the submission leaves a draft.
	late, err := storetest.OpenOTC(ctx, v.s, exchange.IntendOTCDraft, v.coins(t, "2600"), v.by)
	if err != nil {
		t.Fatal(err)
	}
	late = v.do(t, exchange.IntendOTCQuote, late.ID, exchange.OTCStep{}, v.by)
	v.wait(late.QuoteEndsAt.Sub(time.UnixMilli(v.clock.Load())))
	v.refuse(t, exchange.CodeExpired, exchange.IntendOTCSubmit, late.ID, exchange.OTCStep{}, v.by)
	if late, err = v.s.LapseOTC(ctx, late.ID); err != nil || late.Status != exchange.OTCDraft || late.QuoteID != uuid.Nil || late.Detail != exchange.DetailQuoteEnd {
		t.Errorf("lapsed %+v, %v", late, err)
	}
}

// The value date decides whether the quote holds, whenever an officer looks: Monday's money is in time, Tuesday's is not.
func TestTheValueDateDecidesAboutTheQuote(t *testing.T) {
	t.Parallel()
	v := newTillAt(t, time.Date(2027, 3, 5, 9, 0, 0, 0, time.UTC)) // a Friday at noon in Kenya
	friday := v.today()
	early, late := v.bought(t, "13000"), v.bought(t, "13000")
	v.wait(6 * 24 * time.Hour) // to the Thursday after
	if got, err := v.s.LapseOTC(t.Context(), early.ID); err != nil || got.Status != exchange.OTCPending {
		t.Fatalf("it ends before its quote's money can be on a statement: %+v, %v", got, err)
	}
	early = v.proven(t, early, "13000", friday.AddDate(0, 0, 3))
	if early.Status != exchange.OTCConfirmed || !early.Crypto.Equal(money.Must(money.USDT, "100")) {
		t.Errorf("Monday's money: %+v", early)
	}
	late = v.proven(t, late, "13000", friday.AddDate(0, 0, 4))
	if late.Status != exchange.OTCInfo || late.Detail != exchange.WaitRequote || late.ConfirmedBy != v.one.UserID {
		t.Fatalf("Tuesday's money: %+v", late)
	}
	v.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCAnswer, late.ID, exchange.OTCStep{Text: "please"}, v.by)
	late = v.do(t, exchange.IntendOTCQuote, late.ID, exchange.OTCStep{}, v.by)
	if late.Status != exchange.OTCConfirmed || late.ConfirmedBy != v.one.UserID || !late.Crypto.Equal(money.Must(money.USDT, "100")) {
		t.Errorf("with another quote: %+v", late)
	}
	wantBooks(t, v.s)
}

// Another amount within the bounds is priced at the quote's rate. Beyond them the merchant takes another quote, shillings, or its money back.
func TestAnotherAmountForCrypto(t *testing.T) {
	t.Parallel()
	v := newTill(t)
	near := v.bought(t, "13000")
	if near = v.proven(t, near, "13650.50", v.today()); near.Status != exchange.OTCConfirmed || !near.Crypto.Equal(money.Must(money.USDT, "105.003846")) {
		t.Errorf("near the quote: %+v", near)
	}
	far := v.bought(t, "13000")
	if far = v.proven(t, far, "26000", v.today()); far.Status != exchange.OTCInfo || far.Detail != exchange.WaitRequote {
		t.Fatalf("far from the quote: %+v", far)
	}
	far = v.do(t, exchange.IntendOTCQuote, far.ID, exchange.OTCStep{TakeKES: true}, v.by)
	if far.Status != exchange.OTCConfirmed || far.Asset != money.KES || far.QuoteID != uuid.Nil || far.Crypto.Asset() != "" {
		t.Fatalf("shillings: %+v", far)
	}
	v.do(t, exchange.IntendOTCSettle, far.ID, exchange.OTCStep{}, v.treasury)
	wantBalance(t, v.s, balanceOf(v.otcDesk), "26000", "0")
	back := v.bought(t, "13000")
	back = v.proven(t, back, "130", v.today())
	v.do(t, exchange.IntendOTCCancel, back.ID, exchange.OTCStep{Text: "too little"}, v.by)
	wantBalance(t, v.s, suspense(), "130", "0")
	wantBooks(t, v.s)
}

// Crypto is transferred by the officer who settles; the deposit is credited when that is final, and the treasury has the shillings.
func TestCryptoIsTransferredAtTheSettlement(t *testing.T) {
	t.Parallel()
	v := newTill(t)
	ctx := t.Context()
	o := v.proven(t, v.bought(t, "13000"), "13000", v.today())
	v.refuse(t, exchange.CodeNotFound, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, v.treasury)
	other := exchange.TransferRequest{ID: storetest.NewID(t), WalletID: v.coffer.ID, Network: exchange.Tron, Amount: money.Must(money.USDT, "101"), Recipient: exchange.Recipient{WalletID: o.ToWalletID}}
	wrong, err := storetest.Ask(ctx, v.s, exchange.IntendTransfer, storetest.NewID(t), other.ID, other.Terms(), v.treasury)
	if err != nil {
		t.Fatal(err)
	}
	v.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{TransferIntent: wrong.IntentID}, v.treasury)
	o, a := v.settles(t, o, v.treasury)
	if o.Status != exchange.OTCSettling || o.Detail != exchange.WaitTransfer {
		t.Fatalf("settling %+v", o)
	}
	f, err := v.s.OpenTransfer(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if o, s, err := v.s.FollowOTCTransfer(ctx, o.ID); err != nil || o.TransferID != f.ID || o.Status != exchange.OTCSettling || !s.Opened || s.ID != f.ID {
		t.Fatalf("followed %+v, %+v, %v", o, s, err)
	}
	// A transfer that is cancelled gives the deposit back, and another one pays it.
	if _, err := storetest.CancelTransfer(ctx, v.s, f.ID, v.treasury); err != nil {
		t.Fatal(err)
	}
	o, _, err = v.s.FollowOTCTransfer(ctx, o.ID)
	if err != nil || o.Status != exchange.OTCConfirmed || o.Detail != exchange.DetailUnpaid || o.CreditedBy != uuid.Nil {
		t.Fatalf("after the cancellation %+v, %v", o, err)
	}
	o, a = v.settles(t, o, v.other)
	if f, err = v.s.OpenTransfer(ctx, a); err != nil {
		t.Fatal(err)
	}
	v.pays(t, f)
	o, _, err = v.s.FollowOTCTransfer(ctx, o.ID)
	if err != nil || o.Status != exchange.OTCCredited || o.TransferID != f.ID || o.CreditedBy != v.other.UserID {
		t.Fatalf("after the transfer %+v, %v", o, err)
	}
	wantBalance(t, v.s, exchange.Owned(exchange.AccWalletBalance, v.wallet.ID, money.USDT), "100", "0")
	wantBalance(t, v.s, exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES), "13000", "0")
	wantBalance(t, v.s, flying(), "0", "0")
	v.do(t, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, v.boss)
	wantBooks(t, v.s)
}

// While the treasury has too little nothing is opened; a day later the officer's wish has lapsed, and never opens.
func TestTheTreasuryHasTooLittle(t *testing.T) {
	t.Parallel()
	v := newTill(t)
	ctx := t.Context()
	o := v.proven(t, v.bought(t, "1300000"), "1300000", v.today())
	o, a := v.settles(t, o, v.treasury)
	o, s, err := v.s.FollowOTCTransfer(ctx, o.ID)
	if err != nil || !s.Short || s.Opened || o.Detail != exchange.WaitInventory || s.Source != "" {
		t.Fatalf("followed %+v, %+v, %v", o, s, err)
	}
	withReserve(t, v.s, "9001")
	if _, s, err = v.s.FollowOTCTransfer(ctx, o.ID); err != nil || !s.Short || s.Source != `the wallet of several owners "Reserve" has 9001.000000 USDT available: propose a payment from it to `+v.coffer.Address {
		t.Errorf("with a source it is %+v, %v", s, err)
	}
	if _, err := v.s.OpenTransfer(ctx, a); exchange.CodeOf(err) != exchange.CodeInsufficientFunds {
		t.Errorf("opened: %v", err)
	}
	v.wait(exchange.IntentLife)
	if o, _, err = v.s.FollowOTCTransfer(ctx, o.ID); err != nil || o.Status != exchange.OTCConfirmed {
		t.Fatalf("a day later %+v, %v", o, err)
	}
	storetest.Deposit(t, v.s, v.coffer.ID, money.Must(money.USDT, "9001"))
	if _, err := v.s.OpenTransfer(ctx, a); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("a refused wish opens: %v", err)
	}
	o, _ = v.settles(t, o, v.treasury)
	if o, err = v.s.RefuseOTCTransfer(ctx, o.ID, exchange.CodeLimitReached); err != nil || o.Status != exchange.OTCConfirmed {
		t.Errorf("refused %+v, %v", o, err)
	}
	wantBooks(t, v.s)
}

// pays has a transfer of the house approved by another officer, and carried out on the network.
func (v till) pays(t *testing.T, f exchange.Transfer) {
	t.Helper()
	p := purse{store: v.s, wallet: v.coffer}
	f, err := v.s.AdvanceTransfer(t.Context(), f.ID)
	if err != nil || f.Status != exchange.TransferPending {
		t.Fatalf("the transfer is %s, %v", f.Status, err)
	}
	p.carry(t, p.approve(t, f, storetest.User(t, v.s, exchange.RoleTreasury)))
}

package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// sold brings the crypto of an executed withdrawal to the treasury.
func (c *outlet) sold(t *testing.T, w exchange.Withdrawal) exchange.Withdrawal {
	t.Helper()
	c.final(t, c.selling(t, w))
	return c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitPayout)
}

// selling is the payment that brings the crypto of an executed withdrawal to the treasury.
func (c *outlet) selling(t *testing.T, w exchange.Withdrawal) exchange.ChainPayment {
	t.Helper()
	for range 2 {
		if _, err := c.s.SellWithdrawal(t.Context(), w.ID); err != nil {
			t.Fatalf("sell: %v", err)
		}
	}
	p, err := c.s.ChainPaymentOf(t.Context(), exchange.ForWithdrawal, w.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Crypto is sold to the house first: at the frozen rate, for shillings that were held, when it is final at the treasury. Then its shillings leave
// like any others.
func TestCryptoIsWithdrawnAsShillings(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.fees(t)
	w := c.executed(t, c.sells(t, "10", c.phone))
	c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitShillings)
	wantBalance(t, c.s, exchange.Owned(exchange.AccWalletBalance, c.wallet.ID, money.USDT), "1000", "10")
	p := c.selling(t, w)
	if p.ToAddress != c.coffer.Address || p.WalletID != c.wallet.ID || !p.Amount.Equal(usdt("10")) {
		t.Errorf("the payment is %+v", p)
	}
	c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitCollection)
	c.wantTreasury(t, "300000", "1290")
	if _, err := c.begin(t.Context(), w); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("the payout began before the sale: %v", err)
	}
	c.final(t, p)
	w = c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitPayout)
	c.wantTreasury(t, "298710", "0")
	c.wantShillings(t, "101240", "1240")
	wantBalance(t, c.s, exchange.Owned(exchange.AccWalletBalance, c.wallet.ID, money.USDT), "990", "0")
	wantBalance(t, c.s, exchange.Owned(exchange.AccWalletBalance, c.coffer.ID, money.USDT), "1010", "0")
	wantBalance(t, c.s, exchange.House(exchange.AccFees, money.KES), "50", "0")
	w = c.paid(t, w, c.begun(t, w))
	c.wantShillings(t, "100000", "0")
	if w.TxHash == "" || w.SoldAt.IsZero() || w.Receipt == "" {
		t.Errorf("completed %+v", w)
	}
	wantLastMovements(t, c.s, w.MerchantID, "otc_sale - 10.000000 1240.00 0.00", "otc_withdrawal "+w.Receipt+" - 0.00 1240.00")
}

// While the treasury has too few shillings nothing is signed. Two officers give the sale up until a transaction may move the crypto.
func TestSalesOfWithdrawalsAreGivenUpByTwo(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	storetest.Journal(t, c.s, exchange.JournalEntry{Kind: exchange.JournalCapitalOut, BankID: c.bank.ID, Amount: kes("1")}) // the house's money at banks is another one
	big := c.executed(t, c.sells(t, "1000", c.phone))
	for range 2 {
		w := c.executed(t, c.asks(t, "50000", c.phone)) // others
		c.paid(t, w, c.begun(t, w))
	}
	end := func(w exchange.Withdrawal) error {
		return storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), w.ID, "the merchant asks", c.one))
	}
	p := c.selling(t, big)
	c.wantTreasury(t, "300000", "129000")
	if err := end(big); err != nil {
		t.Fatal(err)
	}
	c.is(t, big, exchange.WithdrawalFailed, exchange.DetailReleased)
	if p, err := c.s.ChainPayment(t.Context(), p.ID); err != nil || p.Status != exchange.ChainCancelled {
		t.Errorf("the payment is %s, %v", p.Status, err)
	}
	c.wantTreasury(t, "300000", "0")
	wantBalance(t, c.s, exchange.Owned(exchange.AccWalletBalance, c.wallet.ID, money.USDT), "1000", "0")

	storetest.Patch(t, c.s, store.LimitPatch{Rules: rule("50000000", "50000000")})
	signed := c.executed(t, c.sells(t, "10", c.phone))
	sign(t, c.s, c.selling(t, signed))
	wantFault(t, end(signed), exchange.CodeStateConflict)
	c.is(t, signed, exchange.WithdrawalExecuting, exchange.WaitCollection)
}

// Shillings of crypto that was sold stay in the balance when nobody can be paid: the crypto does not travel back.
func TestSoldCryptoStaysAsShillings(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.sold(t, c.executed(t, c.sells(t, "10", c.phone)))
	c.refused(t, w, c.begun(t, w), exchange.ClassPayee)
	c.is(t, w, exchange.WithdrawalReview, exchange.WaitOperator)
	for range 2 {
		if _, err := c.s.FailWithdrawal(t.Context(), w.ID); err != nil {
			t.Fatal(err)
		}
	}
	c.is(t, w, exchange.WithdrawalFailed, exchange.DetailKept)
	c.wantShillings(t, "101290", "0")
}

// buying is an executed withdrawal that buys crypto, with the intent of the transfer that its officer asked for.
func (c *outlet) buying(t *testing.T, shillings string) (exchange.Withdrawal, exchange.Asked) {
	t.Helper()
	w := c.approved(t, c.buys(t, shillings))
	_, a := c.carries(t, w.Payout, c.one)
	return c.do(t, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{TransferIntent: a.IntentID}, c.one), a
}

// carries is the transfer by which an officer sends crypto to the withdrawal's address.
func (c *outlet) carries(t *testing.T, amount money.Amount, by exchange.Principal) (exchange.TransferRequest, exchange.Asked) {
	t.Helper()
	r := exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: by.UserID, WalletID: c.coffer.ID, Network: exchange.Tron, Amount: amount, Recipient: exchange.Recipient{Address: c.chain.Address},
	}
	a, err := storetest.Ask(t.Context(), c.s, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		t.Fatal(err)
	}
	return r, a
}

func (c *outlet) follow(t *testing.T, w exchange.Withdrawal) (exchange.Withdrawal, exchange.OTCTransfer) {
	t.Helper()
	w, out, err := c.s.FollowWithdrawalTransfer(t.Context(), w.ID)
	if err != nil {
		t.Fatal(err)
	}
	return w, out
}

// Crypto leaves by the transfer of the officer who executes. The withdrawal's officers approved it, so it asks no others; the merchant's shillings
// become the house's when it is final.
func TestShillingsAreWithdrawnAsCrypto(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.fees(t)
	storetest.Patch(t, c.s, store.LimitPatch{Rules: rule("100", "100000")})
	w := c.open(t, c.buys(t, "1350"))
	if w.Payout.String() != "10.000000" || w.Fee.String() != "50.00" || w.Method != exchange.WithdrawByChain {
		t.Fatalf("requested %+v", w)
	}
	c.is(t, c.advance(t, w).Withdrawal, exchange.WithdrawalPending, exchange.WaitApproval)
	c.approve(t, w, c.two)
	c.refuse(t, exchange.CodeInvalid, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one) // by no transfer
	_, less := c.carries(t, usdt("9"), c.one)
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{TransferIntent: less.IntentID}, c.one)
	_, others := c.carries(t, w.Payout, c.two)
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{TransferIntent: others.IntentID}, c.one)
	r, a := c.carries(t, w.Payout, c.one)
	c.refuse(t, exchange.CodeForbidden, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{TransferIntent: a.IntentID}, c.boss) // an admin sends no crypto
	w = c.do(t, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{TransferIntent: a.IntentID}, c.one)
	if _, out := c.follow(t, w); out.ID != r.ID || out.Opened || out.Short {
		t.Fatalf("the transfer is %+v", out)
	}
	f, err := c.s.OpenTransfer(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if w, out := c.follow(t, w); !out.Opened || w.TransferID != f.ID || w.Status != exchange.WithdrawalConfirming {
		t.Fatalf("opened it is %+v with %+v", w, out)
	}
	c.carried(t, f)
	for range 2 {
		w, _ = c.follow(t, w)
	}
	c.is(t, w, exchange.WithdrawalCompleted, exchange.WaitNothing)
	c.wantShillings(t, "98650", "0")
	c.wantTreasury(t, "301300", "0")
	wantBalance(t, c.s, exchange.House(exchange.AccFees, money.KES), "50", "0")
	wantBalance(t, c.s, exchange.Owned(exchange.AccWalletBalance, c.coffer.ID, money.USDT), "990", "0")
	wantLastMovements(t, c.s, w.MerchantID, "otc_withdrawal - 10.000000 0.00 1350.00")
}

// While the treasury has too little nothing is opened, and what is waited for says where more is.
func TestWithdrawnCryptoWaitsForInventory(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	storetest.Inventory(t, c.s, c.coffer.ID, usdt("995"))
	w, _ := c.buying(t, "1300")
	w, out := c.follow(t, w)
	c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitInventory)
	if !out.Short || out.Opened || out.Source != "" {
		t.Errorf("without a source it is %+v", out)
	}
	withReserve(t, c.s, "20")
	if _, out = c.follow(t, w); !out.Short || out.Source != `the wallet of several owners "Reserve" has 20.000000 USDT available: propose a payment from it to `+c.coffer.Address {
		t.Errorf("with a source it is %+v", out)
	}
	storetest.Deposit(t, c.s, c.coffer.ID, usdt("20"))
	if w, out = c.follow(t, w); out.Short || out.Source != "" {
		t.Errorf("with enough it is %+v", out)
	}
	c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitTransfer)
}

// carried brings a transfer to its end, without another officer.
func (c *outlet) carried(t *testing.T, f exchange.Transfer) {
	t.Helper()
	f, err := c.s.AdvanceTransfer(t.Context(), f.ID)
	if err == nil && f.Status == exchange.TransferScreening {
		f, err = c.s.RecordScreening(t.Context(), f.ID, clear1)
	}
	if err == nil && f.Status == exchange.TransferQueued {
		f, err = c.s.SignTransfer(t.Context(), f.ID)
	}
	if err != nil || f.Status != exchange.TransferSigning {
		t.Fatalf("the transfer is %s, of %d officers, %v", f.Status, f.ApprovalsRequired, err)
	}
	p, err := c.s.ChainPaymentOf(t.Context(), exchange.ForTransfer, f.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.final(t, p)
}

// A transfer that moved nothing, or never opens, gives the withdrawal to whoever executes it anew. While it may still pay nothing does.
func TestWithdrawalsAreExecutedAnew(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w, a := c.buying(t, "1300")
	if w, err := c.s.RefuseWithdrawalTransfer(t.Context(), w.ID, exchange.CodeLimitReached); err != nil || w.Status != exchange.WithdrawalApproved || w.ExecutedBy != uuid.Nil {
		t.Fatalf("refused it is %+v, %v", w, err)
	}
	_, err := c.s.OpenTransfer(t.Context(), a)
	wantFault(t, err, exchange.CodeStateConflict)

	_, again := c.carries(t, w.Payout, c.two)
	w = c.do(t, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{TransferIntent: again.IntentID}, c.two)
	f, err := c.s.OpenTransfer(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.s.RefuseWithdrawalTransfer(t.Context(), w.ID, exchange.CodeInternal); err != nil || got.Status != exchange.WithdrawalExecuting {
		t.Fatalf("a transfer that is open was refused: %+v, %v", got, err)
	}
	c.follow(t, w)
	wantFault(t, storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), w.ID, "why", c.one)), exchange.CodeStateConflict)
	cancel, err := storetest.Ask(t.Context(), c.s, exchange.IntendTransferCancel, storetest.NewID(t), f.ID, nil, c.two)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.s.CancelTransfer(t.Context(), f.ID, cancel); err != nil {
		t.Fatal(err)
	}
	if w, _ = c.follow(t, w); w.Status != exchange.WithdrawalApproved || w.TransferID != uuid.Nil {
		t.Errorf("without its transfer it is %+v", w)
	}
	c.wantShillings(t, "100000", "1300")
	c.do(t, exchange.IntendWithdrawalCancel, w, exchange.WithdrawalStep{}, c.agent)
	c.wantShillings(t, "100000", "0")
}

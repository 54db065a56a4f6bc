package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// outlet is a desk at which a merchant with 100,000 shillings and 1,000 USDT withdraws: two admins and two treasury officers, money at the
// operator and at a bank, and a treasury with shillings and USDT.
type outlet struct {
	merchants

	boss, chief, one, two exchange.Principal
	coffer                exchange.Wallet // of the treasury
	bank                  exchange.HouseBankAccount
	phone, account, chain exchange.Destination
	attempts              int
}

func newOutlet(t *testing.T) *outlet {
	t.Helper()
	return outletOf(t, newMerchantsIn(t, started(t)))
}

func outletOf(t *testing.T, m merchants) *outlet {
	t.Helper()
	s := m.s
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, r)) }
	c := &outlet{merchants: m, boss: who(exchange.RoleAdmin), chief: who(exchange.RoleAdmin), one: who(exchange.RoleTreasury), two: who(exchange.RoleTreasury)}
	storetest.Patch(t, s, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleVendor: {}, exchange.RoleSubvendor: {}}, Rules: rule("500000", "1000000"),
	})
	c.coffer = storetest.TreasuryWallet(t, s, exchange.Tron)
	storetest.Deposit(t, s, c.coffer.ID, usdt("1000"))
	storetest.Gas(t, s, c.coffer.ID, trx("100"))
	storetest.Deposit(t, s, m.wallet.ID, usdt("1000"))
	storetest.Gas(t, s, m.wallet.ID, trx("100"))
	storetest.Shillings(t, s, m.master.UserID, kes("100000"))
	storetest.Shillings(t, s, exchange.PlatformTreasury, kes("300000"))
	storetest.Float(t, s, kes("200000"))
	c.bank = storetest.Bank(t, s, kes("400000"))
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(130)})
	storetest.AgreeValuations(t, s)
	c.phone = storetest.Destination(t, s, m.phone(t, storetest.NewPhone()), m.master)
	c.account = storetest.Destination(t, s, m.bank(t, "0100200300"), m.master)
	c.chain = storetest.Destination(t, s, m.address(t, elsewhere(t).Address), m.master)
	return c
}

// asks requests a withdrawal of shillings.
func (c *outlet) asks(t *testing.T, amount string, to exchange.Destination) exchange.WithdrawalRequest {
	t.Helper()
	return exchange.WithdrawalRequest{ID: storetest.NewID(t), DestinationID: to.ID, Source: money.KES, Payout: money.KES, Amount: kes(amount)}
}

// quote is one of the merchant's for a withdrawal.
func (c *outlet) quote(t *testing.T, side exchange.QuoteSide, given money.Amount, method string) exchange.FXQuote {
	t.Helper()
	q, err := c.s.OpenQuote(t.Context(), store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForWithdrawal, Side: side, Amount: given, Asset: money.USDT, Network: exchange.Tron, Method: method,
	}, c.agent)
	if err != nil {
		t.Fatalf("open a quote: %v", err)
	}
	return q
}

// sells requests shillings for USDT.
func (c *outlet) sells(t *testing.T, crypto string, to exchange.Destination) exchange.WithdrawalRequest {
	t.Helper()
	method := exchange.FeeByMomo
	if to.Kind == exchange.DestinationBank {
		method = exchange.FeeByBank
	}
	q := c.quote(t, exchange.QuoteSell, usdt(crypto), method)
	return exchange.WithdrawalRequest{ID: storetest.NewID(t), DestinationID: to.ID, Source: money.USDT, Payout: money.KES, WalletID: c.wallet.ID, QuoteID: q.ID}
}

// buys requests USDT for shillings.
func (c *outlet) buys(t *testing.T, shillings string) exchange.WithdrawalRequest {
	t.Helper()
	q := c.quote(t, exchange.QuoteBuy, kes(shillings), exchange.FeeByChain)
	return exchange.WithdrawalRequest{ID: storetest.NewID(t), DestinationID: c.chain.ID, Source: money.KES, Payout: money.USDT, QuoteID: q.ID}
}

func (c *outlet) open(t *testing.T, r exchange.WithdrawalRequest) exchange.Withdrawal {
	t.Helper()
	w, err := storetest.OpenWithdrawal(t.Context(), c.s, r, c.agent)
	if err != nil {
		t.Fatalf("open a withdrawal: %v", err)
	}
	return w
}

func (c *outlet) do(t *testing.T, kind exchange.IntentKind, w exchange.Withdrawal, step exchange.WithdrawalStep, by exchange.Principal) exchange.Withdrawal {
	t.Helper()
	w, err := storetest.StepWithdrawal(t.Context(), c.s, kind, w.ID, step, by)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return w
}

func (c *outlet) refuse(t *testing.T, code exchange.Code, kind exchange.IntentKind, w exchange.Withdrawal, step exchange.WithdrawalStep, by exchange.Principal) {
	t.Helper()
	_, err := storetest.StepWithdrawal(t.Context(), c.s, kind, w.ID, step, by)
	if exchange.CodeOf(err) != code {
		t.Fatalf("%s by %s: %v, want %s", kind, by.Role, err, code)
	}
}

// advance brings a withdrawal on, and clears its address if it has to be screened.
func (c *outlet) advance(t *testing.T, w exchange.Withdrawal) exchange.WithdrawalStanding {
	t.Helper()
	out, err := c.s.AdvanceWithdrawal(t.Context(), w.ID)
	if err == nil && out.Withdrawal.Status == exchange.WithdrawalRequested {
		out, err = c.s.RecordWithdrawalScreening(t.Context(), w.ID, clear1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *outlet) approve(t *testing.T, w exchange.Withdrawal, by exchange.Principal) exchange.WithdrawalStanding {
	t.Helper()
	out, err := storetest.DecideWithdrawal(t.Context(), c.s, w, exchange.Approve, by)
	if err != nil {
		t.Fatalf("approve: %v", err)
	}
	return out
}

// approved is a withdrawal that an admin approved.
func (c *outlet) approved(t *testing.T, r exchange.WithdrawalRequest) exchange.Withdrawal {
	t.Helper()
	w := c.open(t, r)
	c.advance(t, w)
	out := c.approve(t, w, c.boss)
	if out.Withdrawal.Status != exchange.WithdrawalApproved {
		t.Fatalf("approved by one it is %s (%s), of %d officers", out.Withdrawal.Status, out.Withdrawal.Detail, out.Needed)
	}
	return out.Withdrawal
}

func (c *outlet) executed(t *testing.T, r exchange.WithdrawalRequest) exchange.Withdrawal {
	t.Helper()
	return c.do(t, exchange.IntendWithdrawalExecute, c.approved(t, r), exchange.WithdrawalStep{}, c.one)
}

func (c *outlet) now(t *testing.T, w exchange.Withdrawal) exchange.Withdrawal {
	t.Helper()
	w, err := c.s.WithdrawalByID(t.Context(), w.ID)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (c *outlet) is(t *testing.T, w exchange.Withdrawal, status exchange.WithdrawalStatus, detail string) exchange.Withdrawal {
	t.Helper()
	if w = c.now(t, w); w.Status != status || w.Detail != detail {
		t.Fatalf("the withdrawal is %s (%s), want %s (%s)", w.Status, w.Detail, status, detail)
	}
	return w
}

// begin writes the next attempt to pay a withdrawal by mobile money.
func (c *outlet) begin(ctx context.Context, w exchange.Withdrawal) (exchange.PaymentAttempt, error) {
	c.attempts++
	id := uuid.NewSHA1(w.ID, []byte{byte(c.attempts)})
	return c.s.BeginPayout(ctx, exchange.WithdrawalObject(w.ID), exchange.PaymentAttempt{ID: id, Provider: "daraja", CallbackToken: "token-" + id.String(), WorkflowID: "momo-payout:" + w.ID.String()})
}

func (c *outlet) begun(t *testing.T, w exchange.Withdrawal) exchange.PaymentAttempt {
	t.Helper()
	a, err := c.begin(t.Context(), w)
	if err != nil {
		t.Fatalf("begin the payout: %v", err)
	}
	return a
}

func (c *outlet) paid(t *testing.T, w exchange.Withdrawal, a exchange.PaymentAttempt) exchange.Withdrawal {
	t.Helper()
	twice(t, func(a, b exchange.Payable) bool { return a.Receipt == b.Receipt && a.Paid && b.Paid }, func() (exchange.Payable, error) {
		return c.s.CompletePayout(t.Context(), exchange.WithdrawalObject(w.ID), a.ID, exchange.Observation{State: exchange.SeenSucceeded, Amount: a.Amount, Receipt: "R" + a.ID.String()[:8]})
	})
	return c.is(t, w, exchange.WithdrawalCompleted, exchange.WaitNothing)
}

// refused makes the operator refuse an attempt.
func (c *outlet) refused(t *testing.T, w exchange.Withdrawal, a exchange.PaymentAttempt, class exchange.OutcomeClass) {
	t.Helper()
	if _, err := c.s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: class}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.s.FailPayout(t.Context(), exchange.WithdrawalObject(w.ID), "2040"); err != nil {
		t.Fatal(err)
	}
}

// final carries a chain payment out.
func (c *outlet) final(t *testing.T, p exchange.ChainPayment) {
	t.Helper()
	tx := sign(t, c.s, p)
	for range 2 {
		if _, err := c.s.RecordFinal(t.Context(), tx.ID, true, 200, "a-200", trx("1"), "SUCCESS"); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *outlet) wantShillings(t *testing.T, posted, held string) {
	t.Helper()
	wantBalance(t, c.s, exchange.Owned(exchange.AccFiatBalance, c.master.UserID, money.KES), posted, held)
	wantBooks(t, c.s)
}

func (c *outlet) wantTreasury(t *testing.T, posted, held string) {
	t.Helper()
	wantBalance(t, c.s, exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES), posted, held)
}

// fees enters a fee of withdrawals: 50 shillings.
func (c *outlet) fees(t *testing.T) {
	t.Helper()
	profile := exchange.FeeProfile{ID: storetest.NewID(t), FeeLine: exchange.FeeLine{Scope: exchange.FeeWithdrawal}, Fixed: kes("50"), Minimum: kes("0")}
	if err := storetest.Agreed(t, c.s)(c.s.ProposeProfile(t.Context(), profile, c.boss)); err != nil {
		t.Fatal(err)
	}
}

// Shillings of a balance go to a phone: held at the request, approved by one officer, executed by another, and booked when the operator has
// proven it.
func TestShillingsAreWithdrawnToAPhone(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.fees(t)
	r := c.asks(t, "1000", c.phone)
	w := c.open(t, r)
	if again := c.open(t, r); again.ID != w.ID || again.Version != w.Version || w.Status != exchange.WithdrawalRequested || w.Source.String() != "1050.00" || w.Fee.String() != "50.00" || w.Method != exchange.WithdrawByMomo {
		t.Fatalf("requested %+v, and again %+v", w, again)
	}
	c.wantShillings(t, "100000", "1050")
	if out := c.advance(t, w); out.Withdrawal.Status != exchange.WithdrawalPending || out.Withdrawal.Detail != exchange.WaitApproval || out.Needed != 1 {
		t.Fatalf("it waits for %+v", out)
	}
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
	c.approve(t, w, c.boss)
	c.is(t, w, exchange.WithdrawalApproved, exchange.WaitExecution)
	w = c.do(t, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
	if w.Status != exchange.WithdrawalExecuting || w.ExecutedBy != c.one.UserID {
		t.Fatalf("executed %+v", w)
	}
	a := c.begun(t, w)
	c.is(t, w, exchange.WithdrawalConfirming, exchange.WaitPayout)
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalCancel, w, exchange.WithdrawalStep{}, c.agent)
	w = c.paid(t, w, a)
	if w.Receipt == "" || w.PaidBy != a.ID || w.CompletedAt.IsZero() {
		t.Errorf("completed %+v", w)
	}
	c.wantShillings(t, "98950", "0")
	wantBalance(t, c.s, exchange.House(exchange.AccFees, money.KES), "50", "0")
}

// Requester, approver and executor are three people, and officers decide once, about exactly what they saw.
func TestWithdrawalsTakeThreePeople(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.open(t, c.asks(t, "1000", c.phone))
	c.advance(t, w)
	decide := func(w exchange.Withdrawal, by exchange.Principal) error {
		_, err := storetest.DecideWithdrawal(t.Context(), c.s, w, exchange.Approve, by)
		return err
	}
	for _, by := range []exchange.Principal{c.agent, c.master, storetest.PrincipalOf(storetest.User(t, c.s, exchange.RoleOTCOfficer))} {
		wantFault(t, decide(w, by), exchange.CodeForbidden)
	}
	other := w
	other.Digest = other.Intent("momo:254700000000")
	wantFault(t, decide(other, c.boss), exchange.CodeInvalid)
	if err := decide(w, c.one); err != nil {
		t.Fatal(err)
	}
	wantFault(t, decide(w, c.one), exchange.CodeConflict)
	c.refuse(t, exchange.CodeForbidden, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
	c.refuse(t, exchange.CodeForbidden, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.agent)
	c.do(t, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.boss)
	wantFault(t, decide(w, c.boss), exchange.CodeForbidden)
	wantFault(t, decide(w, c.two), exchange.CodeStateConflict)

	rejected := c.open(t, c.asks(t, "2000", c.phone))
	c.advance(t, rejected)
	if out, err := storetest.DecideWithdrawal(t.Context(), c.s, rejected, exchange.Reject, c.two); err != nil || out.Withdrawal.Status != exchange.WithdrawalRejected || out.Withdrawal.EndedBy != c.two.UserID {
		t.Fatalf("rejected %+v, %v", out, err)
	}
	c.wantShillings(t, "100000", "1000")
}

// The values and sums of all that leaves decide how many officers approve; an officer who is switched off doesn't count.
func TestWithdrawalsCountInTheRunningSums(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	storetest.Patch(t, c.s, store.LimitPatch{Rules: rule("1000", "5000")})
	small := c.open(t, c.asks(t, "800", c.phone))
	if out := c.advance(t, small); out.Needed != 1 {
		t.Errorf("a small one needs %d", out.Needed)
	}
	w := c.open(t, c.asks(t, "4500", c.phone))
	if out := c.advance(t, w); out.Needed != 2 {
		t.Errorf("with what else leaves it needs %d", out.Needed)
	}
	if out := c.approve(t, w, c.boss); out.Withdrawal.Status != exchange.WithdrawalPending || out.Withdrawal.Detail != exchange.WaitSecond {
		t.Errorf("approved by one it is %s (%s)", out.Withdrawal.Status, out.Withdrawal.Detail)
	}
	c.approve(t, w, c.chief)
	c.is(t, w, exchange.WithdrawalApproved, exchange.WaitExecution)
	storetest.Exec(t, c.s, `UPDATE users SET is_active = false WHERE id = $1`, c.chief.UserID)
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
	if out := c.advance(t, w); out.Withdrawal.Status != exchange.WithdrawalPending || out.Approvals != 1 {
		t.Errorf("without the officer it is %+v", out)
	}
	c.approve(t, w, c.two)
	c.do(t, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
}

// What left meanwhile asks for another officer when the payout is to begin, who approves it where it is.
func TestPayoutsOfWithdrawalsAreJudgedWhenTheyBegin(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	storetest.Patch(t, c.s, store.LimitPatch{Rules: rule("1000", "5000")})
	w := c.executed(t, c.asks(t, "3000", c.phone))
	c.advance(t, c.open(t, c.asks(t, "4000", c.phone)))
	_, err := c.begin(t.Context(), w)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := c.s.SetWithdrawalDetail(t.Context(), w.ID, exchange.WaitSecond); err != nil {
		t.Fatal(err)
	}
	if out := c.approve(t, w, c.chief); out.Withdrawal.Status != exchange.WithdrawalExecuting || out.Approvals != 2 || !out.Ready() {
		t.Errorf("approved where it is: %+v", out)
	}
	c.refused(t, w, c.begun(t, w), exchange.ClassAccount)

	// So is the next try of one that was refused.
	storetest.Exec(t, c.s, `UPDATE users SET is_active = false WHERE id = $1`, c.chief.UserID)
	_, err = c.begin(t.Context(), w)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := c.s.SetWithdrawalDetail(t.Context(), w.ID, exchange.WaitSecond); err != nil {
		t.Fatal(err)
	}
	if waiting, err := c.s.PendingWithdrawals(t.Context(), c.two.UserID); err != nil || len(waiting) != 2 || waiting[0].ID != w.ID {
		t.Errorf("an officer may decide about %+v, %v", waiting, err)
	}
	_, err = storetest.DecideWithdrawal(t.Context(), c.s, w, exchange.Reject, c.two)
	wantFault(t, err, exchange.CodeStateConflict)
	if out := c.approve(t, w, c.two); out.Withdrawal.Status != exchange.WithdrawalReview || out.Approvals != 2 || !out.Ready() {
		t.Errorf("approved after the refusal: %+v", out)
	}
	c.paid(t, w, c.begun(t, w))
}

// A destination that was confirmed just now rests at any value; two officers shorten it for a withdrawal.
func TestWithdrawalsToNewDestinationsRest(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	fresh := c.confirm(t, c.add(t, c.merchants.phone(t, storetest.NewPhone()), c.agent))
	w := c.open(t, c.asks(t, "10", fresh))
	c.advance(t, w)
	if out := c.approve(t, w, c.boss); out.Withdrawal.Status != exchange.WithdrawalPending || out.Withdrawal.Detail != exchange.WaitRest || out.RestsUntil.IsZero() {
		t.Fatalf("approved by one it is %+v", out)
	}
	c.approve(t, w, c.chief)
	c.is(t, w, exchange.WithdrawalApproved, exchange.WaitExecution)
	// One that was removed takes nothing, however many approved.
	if _, err := c.remove(t, fresh, c.agent); err != nil {
		t.Fatal(err)
	}
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
	rested := c.open(t, c.asks(t, "10", c.phone))
	c.advance(t, rested)
	if out := c.approve(t, rested, c.boss); out.Withdrawal.Status != exchange.WithdrawalApproved {
		t.Errorf("to a rested one it is %+v", out)
	}
	unconfirmed := c.add(t, c.merchants.phone(t, storetest.NewPhone()), c.agent)
	_, err := storetest.OpenWithdrawal(t.Context(), c.s, c.asks(t, "10", unconfirmed), c.agent)
	wantFault(t, err, exchange.CodeStateConflict)
}

// A merchant cancels until it is executed; an officer stops it and lets it go on; nobody's decision cancels it after a week.
func TestWithdrawalsEndBeforeTheirExecution(t *testing.T) {
	t.Parallel()
	at := time.Now()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return at }})
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	c := outletOf(t, newMerchantsIn(t, s))
	w := c.approved(t, c.asks(t, "1000", c.phone))
	desk := storetest.PrincipalOf(storetest.User(t, c.s, exchange.RoleOTCOfficer))
	c.refuse(t, exchange.CodeInvalid, exchange.IntendWithdrawalHold, w, exchange.WithdrawalStep{}, desk)
	c.do(t, exchange.IntendWithdrawalHold, w, exchange.WithdrawalStep{Text: "call the merchant"}, desk)
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalExecute, w, exchange.WithdrawalStep{}, c.one)
	c.refuse(t, exchange.CodeForbidden, exchange.IntendWithdrawalUnhold, w, exchange.WithdrawalStep{}, desk)
	c.do(t, exchange.IntendWithdrawalUnhold, w, exchange.WithdrawalStep{}, c.two)
	if out := c.advance(t, w); out.Withdrawal.Status != exchange.WithdrawalApproved {
		t.Errorf("let go on it is %s", out.Withdrawal.Status)
	}
	c.refuse(t, exchange.CodeNotFound, exchange.IntendWithdrawalCancel, w, exchange.WithdrawalStep{}, c.rival)
	if w = c.do(t, exchange.IntendWithdrawalCancel, w, exchange.WithdrawalStep{}, c.master); w.Status != exchange.WithdrawalCancelled || w.EndedBy != c.master.UserID {
		t.Errorf("cancelled %+v", w)
	}
	late := c.approved(t, c.asks(t, "1000", c.phone))
	at = at.Add(exchange.WithdrawalLife)
	storetest.Exec(t, c.s, `ALTER TABLE otc_withdrawals DISABLE TRIGGER USER`)
	storetest.Exec(t, c.s, `UPDATE otc_withdrawals SET created_at = created_at - interval '8 days'`) // the database measures by its own clock
	storetest.Exec(t, c.s, `ALTER TABLE otc_withdrawals ENABLE TRIGGER USER`)
	if out, err := c.s.AdvanceWithdrawal(t.Context(), late.ID); err != nil || out.Withdrawal.Status != exchange.WithdrawalCancelled || out.Withdrawal.Detail != exchange.DetailUnexecuted {
		t.Errorf("after a week it is %+v, %v", out.Withdrawal, err)
	}
	c.wantShillings(t, "100000", "0")
}

// What a withdrawal names must be the merchant's own, and fit together.
func TestWithdrawalsAreChecked(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	try := func(r exchange.WithdrawalRequest, code exchange.Code) {
		t.Helper()
		r.ID = storetest.NewID(t)
		_, err := storetest.OpenWithdrawal(t.Context(), c.s, r, c.agent)
		if exchange.CodeOf(err) != code {
			t.Errorf("%+v: %v, want %s", r, err, code)
		}
	}
	good := c.asks(t, "10", c.phone)
	change := func(f func(*exchange.WithdrawalRequest)) exchange.WithdrawalRequest {
		r := good
		f(&r)
		return r
	}
	try(change(func(r *exchange.WithdrawalRequest) { r.Source, r.Payout = money.USDT, money.USDC }), exchange.CodeInvalid)
	try(change(func(r *exchange.WithdrawalRequest) { r.DestinationID = c.chain.ID }), exchange.CodeInvalid)
	try(change(func(r *exchange.WithdrawalRequest) { r.DestinationID = storetest.NewID(t) }), exchange.CodeInvalid)
	try(change(func(r *exchange.WithdrawalRequest) { r.Amount = kes("10.50") }), exchange.CodeInvalid)
	try(change(func(r *exchange.WithdrawalRequest) { r.Amount = kes("100000.01"); r.DestinationID = c.account.ID }), exchange.CodeInsufficientFunds)
	try(change(func(r *exchange.WithdrawalRequest) { r.QuoteID = storetest.NewID(t) }), exchange.CodeInvalid)
	other := storetest.Destination(t, c.s, exchange.Destination{Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}, c.rival)
	try(change(func(r *exchange.WithdrawalRequest) { r.DestinationID = other.ID }), exchange.CodeInvalid)
	sell := c.sells(t, "10", c.phone)
	try(func() exchange.WithdrawalRequest { r := sell; r.WalletID = uuid.Nil; return r }(), exchange.CodeInvalid)
	try(func() exchange.WithdrawalRequest { r := sell; r.WalletID = c.coffer.ID; return r }(), exchange.CodeInvalid)
	try(func() exchange.WithdrawalRequest { r := sell; r.DestinationID = c.account.ID; return r }(), exchange.CodeInvalid) // its quote is for mobile money
	try(func() exchange.WithdrawalRequest { r := sell; r.QuoteID = c.buys(t, "1300").QuoteID; return r }(), exchange.CodeInvalid)
	w := c.open(t, sell)
	try(sell, exchange.CodeStateConflict) // its quote is used up
	if w.Source.String() != "10.000000" || w.Payout.String() != "1290.00" || !w.Rate.Equal(decimal.NewFromInt(129)) {
		t.Errorf("sells %+v", w)
	}
}

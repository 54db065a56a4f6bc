package workflows_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

func usdc(s string) money.Amount { return money.Must(money.USDC, s) }

// swapHarness plays the flow of a customer's swap of 100 USDT for USDC, out of a treasury with 500.
type swapHarness struct {
	*harness
	who              exchange.Principal
	wallet, treasury exchange.Wallet
	one, two         exchange.Principal // treasury officers
	ask              exchange.SwapRequest
	lies             money.Amount // what the chain has of the asset less than the ledger, in the customer's wallet
	block            uint64
}

func newSwapHarness(t testing.TB) *swapHarness {
	t.Helper()
	w := &swapHarness{harness: newStage(t, networkName)}
	s := w.store.Store
	w.start = time.Now().UTC().Truncate(time.Second) // the database compares times with its own clock
	w.env.SetStartTime(w.start)
	if _, err := s.StartDeposits(t.Context(), networkName, exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.start}); err != nil {
		t.Fatal(err)
	}
	customer := storetest.User(t, s, exchange.RoleCustomer)
	w.who, w.wallet, w.treasury = storetest.PrincipalOf(customer), storetest.WalletOn(t, s, customer, networkName), storetest.TreasuryWallet(t, s, networkName)
	w.one, w.two = storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	w.rule("1000000")
	storetest.Deposit(t, s, w.wallet.ID, crypto("1000"))
	storetest.Deposit(t, s, w.treasury.ID, usdc("500"))
	for _, id := range []uuid.UUID{w.wallet.ID, w.treasury.ID} {
		storetest.Gas(t, s, id, money.Must(money.TRX, "1000"))
	}
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(128), Ask: decimal.NewFromInt(130)})
	storetest.Rate(t, s, store.RateEntry{Base: money.USDC, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(129)})
	storetest.AgreeValuations(t, s)
	q, err := s.OpenSwapQuote(t.Context(), exchange.SwapQuoteRequest{
		ID: uuid.New(), WalletID: w.wallet.ID, From: money.USDT, To: money.USDC, Amount: crypto("100"),
	}, w.who)
	if err != nil {
		t.Fatal(err)
	}
	w.ask = exchange.SwapRequest{ID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000f1"), QuoteID: q.ID}
	w.signs.about = []string{"/api/v1/auth/swaps/" + w.ask.ID.String()}
	w.env.RegisterWorkflow(workflows.Swap)
	w.env.RegisterActivity(&activities.Swaps{Store: w.store})
	w.env.RegisterActivity(&activities.SwapSync{Store: w.store, Client: w, Poll: time.Millisecond})
	return w
}

// rule has one officer approve what is worth more than that many shillings.
func (w *swapHarness) rule(above string) {
	all, free := money.Must(money.KES, "100000000"), money.Must(money.KES, above)
	storetest.Patch(w.t, w.store.Store, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {}},
		Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: free, TwoAbove: all}},
	})
}

// watchReads has the watch read one more block, which is later than all that was signed.
func (w *swapHarness) watchReads() {
	w.block++
	storetest.Exec(w.t, w.store.Store, fmt.Sprintf(`ALTER TABLE deposit_cursors DISABLE TRIGGER USER; UPDATE deposit_cursors SET final_number = %[1]d, final_time = now() + interval '90 days';
		ALTER TABLE deposit_cursors ENABLE TRIGGER USER; INSERT INTO deposit_looks (network, identity, alive_at, looked_at, final_head)
		VALUES ('tron', database_identity(), now(), now() + interval '90 days', %[1]d) ON CONFLICT (network) DO UPDATE SET looked_at = now() + interval '90 days'`, watchedTo+w.block))
}

// Balances is the chain, which has what the ledger has, but for a lie. Each reading is of a later block, which the watch has read.
func (w *swapHarness) Balances(_ context.Context, of []chain.Holding) ([]chain.Balance, error) {
	var all []chain.Balance
	w.watchReads()
	for _, h := range of {
		id := w.wallet.ID
		if h.Address == w.treasury.Address {
			id = w.treasury.ID
		}
		has := w.balance(exchange.Owned(exchange.AccCustody, id, h.Asset))
		if id == w.wallet.ID && h.Asset == w.lies.Asset() {
			has = has.Sub(w.lies)
		}
		all = append(all, chain.Balance{Amount: has, At: chain.Block{Number: watchedTo + w.block, ID: "final", Time: w.start}})
	}
	return all, nil
}

func (w *swapHarness) row() exchange.Swap {
	o, err := w.store.SwapByID(w.t.Context(), w.ask.ID)
	if err != nil {
		w.t.Error(err)
	}
	return o
}

// passes lets time pass for the database, whose clock does not follow the flow's, and has the watch read on.
func (w *swapHarness) passes() {
	w.watchReads()
	storetest.Exec(w.t, w.store.Store, `ALTER TABLE swaps DISABLE TRIGGER USER; UPDATE swaps SET created_at = created_at - interval '1 hour', expires_at = expires_at - interval '1 hour',
		collected_at = collected_at - interval '1 hour' WHERE id = '`+w.ask.ID.String()+`'; ALTER TABLE swaps ENABLE TRIGGER USER`)
}

// decides has an officer decide.
func (w *swapHarness) decides(action exchange.ApprovalAction, by exchange.Principal) {
	w.decidesThen(action, by, func() {})
}

// decidesThen has an officer decide, and does something when that was answered.
func (w *swapHarness) decidesThen(action exchange.ApprovalAction, by exchange.Principal, then func()) {
	name, o, now := uuid.NewString(), w.row(), w.env.Now()
	_, err := w.store.IssueSwapTicket(w.t.Context(), exchange.ApprovalTicket{
		ID: uuid.New(), OfficerID: by.UserID, ObjectType: exchange.ApproveSwap, ObjectID: o.ID, Action: action, Amount: o.From, Digest: o.Digest,
		Channel: exchange.ChannelAPI, Note: "seen", TokenHash: sha256.Sum256([]byte(name)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, by)
	if err != nil {
		w.t.Errorf("a token: %v", err)
	}
	update := workflows.UpdateApprove
	if action == exchange.Reject {
		update = workflows.UpdateReject
	}
	w.env.UpdateWorkflow(update, name, w.answerThen("decision", then), workflows.ApprovalRef{Token: name})
}

// orders gives an operator's command about the swap.
func (w *swapHarness) orders(verb string) {
	w.notifyFlow(w.decreeWith(activities.ObjectSwap, w.ask.ID, verb, "why"), verb)
}

// resolves has two officers resolve the swap, and its flow look.
func (w *swapHarness) resolves(outcome exchange.SwapOutcome) {
	w.watchReads()
	c, err := w.store.ProposeSwapResolution(w.t.Context(), w.ask.ID, outcome, "looked at it", w.one)
	if err == nil {
		_, err = w.store.ConfirmChange(w.t.Context(), c.ID, "", w.two)
	}
	if err != nil {
		w.t.Error(err)
	}
	w.env.SignalWorkflow(workflows.SignalResume, nil)
}

// answers has the n-th transaction that is built, from 1, end so.
func (w *swapHarness) outcomes(all ...outcome) {
	w.chain.script = func(n int) outcome {
		if n > len(all) {
			return outcome{}
		}
		return all[n-1]
	}
}

// play runs the flow, which must end so after it was parked with these reasons.
func (w *swapHarness) play(t *testing.T, ends exchange.SwapStatus, detail string, parked ...workflows.Reason) {
	t.Helper()
	w.ends(t, ends, detail)
	w.signs.changed(t, workflows.SwapID(w.ask.ID), parked...)
}

// ends runs the flow, which must end so, and checks that both wallets have what that says and that nothing is held.
func (w *swapHarness) ends(t *testing.T, ends exchange.SwapStatus, detail string) {
	t.Helper()
	id := w.intends(exchange.IntendSwap, w.ask.ID, w.ask.ID, w.ask.Terms(), w.who).IntentID
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.SwapID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.at(30*24*time.Hour, func() { t.Fatalf("it never ends; it was parked with %v", w.signs.reasons) })
	q, err := w.store.SwapQuote(t.Context(), store.Everything(), w.ask.QuoteID)
	if err != nil {
		t.Fatal(err)
	}
	w.shows(workflows.SwapAttributes(q))
	w.env.ExecuteWorkflow(workflows.Swap, workflows.SwapInput{IntentID: id})
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	var r workflows.SwapResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	if o := w.row(); r.Status != ends || r.Detail != detail || o.Status != ends || o.StatusDetail != detail {
		t.Errorf("the flow ended as %s (%s), the swap is %s (%s), want %s (%s)", r.Status, r.Detail, o.Status, o.StatusDetail, ends, detail)
	}
	w.wantMoney(t, ends == exchange.SwapCompleted, ends == exchange.SwapRefunded)
}

func (w *swapHarness) wantMoney(t *testing.T, done, back bool) {
	t.Helper()
	given, got := "0", "0"
	if done {
		given, got = "100", "100"
	}
	for wallet, want := range map[uuid.UUID][2]money.Amount{
		w.wallet.ID:   {crypto("1000").Sub(crypto(given)), usdc(got)},
		w.treasury.ID: {crypto(given), usdc("500").Sub(usdc(got))},
	} {
		for _, m := range want {
			a, err := w.store.Account(t.Context(), exchange.Owned(exchange.AccWalletBalance, wallet, m.Asset()))
			if err != nil || !a.Posted.Equal(m) || a.Held.Positive() {
				t.Errorf("wallet %s has %s %s, of which %s are held, want %s; %v", wallet, a.Posted, m.Asset(), a.Held, m, err)
			}
		}
	}
	for purpose, want := range map[exchange.ChainPurpose]bool{exchange.ForSwapCollect: done || back, exchange.ForSwapPayout: done, exchange.ForSwapRefund: back} {
		paid := slices.DeleteFunc(w.chain.sent(purpose), func(p exchange.ChainPayment) bool { return p.ObjectID != w.ask.ID })
		if len(paid) > 1 || (len(paid) == 1) != want {
			t.Errorf("%s was paid %d times, want %t", purpose, len(paid), want)
		}
	}
}

func TestSwap(t *testing.T) {
	t.Parallel()
	const completed, refunded = exchange.SwapCompleted, exchange.SwapRefunded
	retry, refund := activities.VerbRetry, activities.VerbRefund
	blocked := outcome{refused: chain.ReasonBlocked}
	for _, c := range []struct {
		name   string
		people func(w *swapHarness)
		ends   exchange.SwapStatus
		detail string
		parked []workflows.Reason
	}{
		{"both legs", func(*swapHarness) {}, completed, exchange.WaitNothing, nil},
		{"a leg in a block that is undone", func(w *swapHarness) { w.outcomes(outcome{reorg: true}, outcome{reorg: true}) }, completed, exchange.WaitNothing, nil},
		{"a payout whose block is undone for good", func(w *swapHarness) { w.outcomes(outcome{}, outcome{undone: true}) }, completed, exchange.WaitNothing, nil},
		{"legs that are dropped", func(w *swapHarness) { w.outcomes(outcome{dropped: true}, outcome{}, outcome{dropped: true}) }, completed, exchange.WaitNothing, nil},
		{"an officer approves", func(w *swapHarness) {
			w.rule("1000")
			w.at(time.Minute, func() { w.decides(exchange.Approve, w.one) })
		}, completed, exchange.WaitNothing, nil},
		{"an officer approves while the flow asks for officers", func(w *swapHarness) {
			w.rule("1000")
			asked := false
			w.store.lost = func(call string) error {
				if call == "CollectSwap" && !asked {
					asked = true
					answered := make(chan struct{})
					w.decidesThen(exchange.Approve, w.one, func() { close(answered) })
					<-answered
				}
				return nil
			}
			w.at(9*time.Minute, w.passes)
		}, completed, exchange.WaitNothing, nil},
		{"an officer rejects", func(w *swapHarness) {
			w.rule("1000")
			w.at(time.Minute, func() { w.decides(exchange.Reject, w.one) })
		}, exchange.SwapCancelled, exchange.DetailRejected, nil},
		{"the owner cancels", func(w *swapHarness) {
			w.rule("1000")
			w.at(time.Minute, func() {
				ref := w.intends(exchange.IntendSwapCancel, uuid.New(), w.ask.ID, nil, w.who)
				w.env.UpdateWorkflow(workflows.UpdateCancel, "cancel", w.answer("cancel"), ref)
			})
		}, exchange.SwapCancelled, exchange.DetailBySender, nil},
		{"no officer decides in time", func(w *swapHarness) {
			w.rule("1000")
			w.at(9*time.Minute, w.passes)
		}, exchange.SwapExpired, exchange.DetailExpired, nil},
		{"the collection can't be signed in time", func(w *swapHarness) {
			w.outcomes(blocked)
			w.at(9*time.Minute, w.passes)
		}, exchange.SwapExpired, exchange.DetailExpired, []workflows.Reason{workflows.ReasonPayoutBlocked}},
		{"the collection is signed when an officer has it tried again", func(w *swapHarness) {
			w.outcomes(blocked)
			w.at(time.Minute, func() { w.orders(retry) })
		}, completed, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutBlocked}},
		{"the collection fails, and is given up", func(w *swapHarness) {
			w.outcomes(outcome{reverts: true})
			w.at(time.Hour, func() { w.orders(refund) })
		}, exchange.SwapFailed, exchange.DetailGivenUp, []workflows.Reason{workflows.ReasonPayoutFailed}},
		{"the collection fails, and is tried again", func(w *swapHarness) {
			w.outcomes(outcome{reverts: true})
			w.at(time.Hour, func() {
				w.watchReads()
				w.orders(retry)
			})
		}, completed, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutFailed}},
		{"frozen USDC", func(w *swapHarness) {
			w.outcomes(outcome{}, blocked)
			w.at(29*time.Minute, w.passes)
		}, refunded, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutBlocked}},
		{"USDC that is not frozen any more", func(w *swapHarness) {
			w.outcomes(outcome{}, blocked)
			w.at(20*time.Minute, func() { w.orders(retry) })
		}, completed, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutBlocked}},
		{"a payout that fails", func(w *swapHarness) {
			w.outcomes(outcome{}, outcome{reverts: true})
			w.at(29*time.Minute, w.passes)
		}, refunded, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutFailed}},
		{"a refund that fails at first", func(w *swapHarness) {
			w.outcomes(outcome{}, blocked, outcome{reverts: true})
			w.at(29*time.Minute, w.passes)
			w.at(time.Hour, func() { w.orders(retry) })
		}, refunded, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutBlocked, workflows.ReasonPayoutFailed}},
		{"a payout that is on its way when its time is over", func(w *swapHarness) {
			w.outcomes(outcome{}, outcome{slow: 2 * time.Hour})
			w.at(29*time.Minute, w.passes)
		}, completed, exchange.WaitNothing, nil},
		{"a payout that moved something else, and is refunded by two", func(w *swapHarness) {
			w.outcomes(outcome{}, outcome{astray: true})
			w.at(29*time.Minute, w.passes)
			w.at(time.Hour, w.settles)
			w.at(time.Hour+time.Second, func() { w.resolves(exchange.SwapRefund) })
		}, refunded, exchange.WaitNothing, []workflows.Reason{workflows.ReasonPayoutUnexpected, workflows.ReasonSwapStuck}},
		{"balances that differ for a while", func(w *swapHarness) {
			w.lies = usdc("1")
			w.at(15*time.Minute, func() { w.lies = money.Amount{} })
		}, completed, exchange.WaitNothing, []workflows.Reason{workflows.ReasonSwapDiffers}},
		{"a difference that two officers accept", func(w *swapHarness) {
			w.lies = crypto("1")
			w.at(2*time.Hour, func() { w.resolves(exchange.SwapAccept) })
		}, completed, exchange.DetailAccepted, []workflows.Reason{workflows.ReasonSwapDiffers}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newSwapHarness(t)
			c.people(w)
			w.play(t, c.ends, c.detail, c.parked...)
			for key, err := range w.answers {
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
}

package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Only who may proposes, within the rules, and what a wallet has.
func TestRefusedProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	other := storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleVendor))
	sub := storetest.User(t, h.s, exchange.RoleCustomer)
	pool := storetest.EscrowPool(t, h.s, exchange.Ethereum, 1)[0]
	for name, c := range map[string]struct {
		by   exchange.Principal
		edit func(*exchange.ProposalRequest)
		code exchange.Code
	}{
		"another merchant":           {other, nil, exchange.CodeInvalid},
		"a customer":                 {storetest.PrincipalOf(sub), nil, exchange.CodeInvalid},
		"more than there is":         {h.merchant, func(r *exchange.ProposalRequest) { r.Amount = usdt("1000.01") }, exchange.CodeInsufficientFunds},
		"nothing":                    {h.merchant, func(r *exchange.ProposalRequest) { r.Amount = usdt("0") }, exchange.CodeInvalid},
		"another asset":              {h.merchant, func(r *exchange.ProposalRequest) { r.Amount = money.Must(money.ETH, "1") }, exchange.CodeInvalid},
		"a wallet with one key":      {h.merchant, func(r *exchange.ProposalRequest) { r.WalletID = h.gas.ID }, exchange.CodeInvalid},
		"to itself":                  {h.merchant, func(r *exchange.ProposalRequest) { r.Destination = h.wallet.Address }, exchange.CodeInvalid},
		"to an escrow address":       {h.one, func(r *exchange.ProposalRequest) { r.Destination = pool.Address }, exchange.CodeInvalid},
		"of a merchant to the house": {h.merchant, func(r *exchange.ProposalRequest) { r.Destination = h.gas.Address }, exchange.CodeInvalid},
		"nowhere":                    {h.merchant, func(r *exchange.ProposalRequest) { r.Destination = "" }, exchange.CodeInvalid},
	} {
		r := h.asks(t, usdt("10"))
		if c.edit != nil {
			c.edit(&r)
		}
		if _, err := h.propose(t, r, c.by); exchange.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	for _, by := range []exchange.Principal{h.merchant, h.one, h.boss} {
		r := h.asks(t, usdt("1"))
		a, err := storetest.Ask(ctx, h.api, exchange.IntendProposal, r.ID, r.ID, r.Terms(), by)
		if err != nil {
			t.Fatal(err)
		}
		twice(t, sameProposal, func() (exchange.Proposal, error) { return h.flows.OpenProposal(ctx, a) })
	}
	h.has(t, "1000", "3")
	for v, want := range map[store.View]int{
		store.Everything(): 3, {Scope: exchange.ScopeVendor, VendorID: h.merchant.UserID}: 3, {Scope: exchange.ScopeVendor, VendorID: other.UserID}: 0, {Scope: exchange.ScopeOwn, UserID: h.merchant.UserID}: 0,
	} {
		all, n, err := h.api.Proposals(ctx, v, store.ProposalFilter{WalletID: h.wallet.ID}, store.Page{Size: 10})
		if err != nil || n != want || len(all) != want {
			t.Errorf("%+v sees %d of %d, %v; want %d", v, len(all), n, err, want)
		}
	}
	storetest.Exec(t, h.s, `ALTER TABLE multisig_accounts DISABLE TRIGGER USER; UPDATE multisig_accounts SET status = 'differs', status_detail = 'another owner'; ALTER TABLE multisig_accounts ENABLE TRIGGER USER`)
	_, err := h.propose(t, h.asks(t, usdt("1")), h.one)
	wantFault(t, err, exchange.CodeStateConflict)
}

// At most fifty proposals of a wallet are open, also of two that come at once.
func TestOpenProposalsAreCounted(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Tron)
	for range exchange.MaxOpenProposals - 1 {
		if _, err := h.propose(t, h.asks(t, usdt("1")), h.one); err != nil {
			t.Fatal(err)
		}
	}
	var opened, refused atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		r := h.asks(t, usdt("1"))
		all.Go(func() {
			switch _, err := h.propose(t, r, h.one); exchange.CodeOf(err) {
			case "":
				opened.Add(1)
			case exchange.CodeLimitReached:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	if all.Wait(); opened.Load() != 1 || refused.Load() != 2 {
		t.Errorf("%d were opened and %d refused", opened.Load(), refused.Load())
	}
	h.has(t, "1000", "50")
	newest, _, err := h.api.Proposals(t.Context(), store.Everything(), store.ProposalFilter{WalletID: h.wallet.ID}, store.Page{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.propose(t, h.asks(t, usdt("1")), h.boss) // whoever asks
	wantFault(t, err, exchange.CodeLimitReached)
	if _, err := h.cancels(t, newest[0], h.one); err != nil { // one that has ended does not count
		t.Fatal(err)
	}
	if _, err := h.propose(t, h.asks(t, usdt("1")), h.boss); err != nil {
		t.Error(err)
	}
}

// The wallet's policy asks for more officers than the rule of all that leaves, by the value; the proposer is none of them.
func TestOfficersOfProposals(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Tron)
	for amount, want := range map[string]int{"10": 1, "66": 1, "67": 2, "333": 2, "334": 3} { // at 150 shillings
		p, err := h.propose(t, h.asks(t, usdt(amount)), h.one)
		if err != nil {
			t.Fatal(err)
		}
		if out := h.advanced(t, p.ID); out.PolicyNeeded != want || out.Needed != want {
			t.Errorf("%s USDT need %d officers by the policy and %d in all, want %d", amount, out.PolicyNeeded, out.Needed, want)
		}
		if _, err := h.cancels(t, p, h.one); err != nil {
			t.Fatal(err)
		}
	}
	r := h.asks(t, usdt("334"))
	p, err := h.propose(t, r, h.one)
	if err != nil {
		t.Fatal(err)
	}
	p = h.advanced(t, p.ID).Proposal
	_, err = h.decides(t, p, exchange.Approve, h.one)
	wantFault(t, err, exchange.CodeForbidden) // the proposer
	_, err = h.decides(t, p, exchange.Approve, h.merchant)
	wantFault(t, err, exchange.CodeForbidden) // no officer
	token, err := storetest.ProposalTicket(t.Context(), h.api, p, exchange.Approve, h.two)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.flows.DecideProposal(t.Context(), p.ID, exchange.Reject, token)
	wantFault(t, err, exchange.CodeNotFound) // another action
	for range 2 {
		if out, err := h.flows.DecideProposal(t.Context(), p.ID, exchange.Approve, token); err != nil || out.Approvals != 1 {
			t.Errorf("one approval, repeated: %+v, %v", out, err)
		}
	}
	_, err = h.decides(t, p, exchange.Approve, h.two)
	wantFault(t, err, exchange.CodeConflict)
	if out, err := h.decides(t, p, exchange.Approve, h.three); err != nil || out.PaymentID != uuid.Nil || out.Approvals != 2 {
		t.Errorf("two of three: %+v, %v", out, err)
	}
	storetest.Exec(t, h.s, `UPDATE users SET is_active = false WHERE id = $1`, h.three.UserID)
	if out, err := h.decides(t, p, exchange.Approve, h.boss); err != nil || out.PaymentID != uuid.Nil || out.Approvals != 2 {
		t.Errorf("the third, while the second is switched off: %+v, %v", out, err)
	}
}

// One officer's rejection leaves the others, an admin's ends the proposal, and so does one too many.
func TestRejectedProposals(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Tron)
	p := h.opened(t, usdt("10"))
	if out, err := h.decides(t, p, exchange.Reject, h.one); err != nil || out.Status != exchange.ProposalApproving {
		t.Fatalf("one rejection: %+v, %v", out, err)
	}
	out, err := h.decides(t, p, exchange.Reject, h.boss)
	if err != nil || out.Status != exchange.ProposalRejected || out.StatusDetail != exchange.DetailRejected {
		t.Fatalf("an admin's rejection: %+v, %v", out, err)
	}
	_, err = h.decides(t, p, exchange.Approve, h.two)
	wantFault(t, err, exchange.CodeStateConflict)
	many := h.opened(t, usdt("334")) // three of boss, one, two, three and who agreed to the wallet
	for _, by := range []exchange.Principal{h.one, h.two, h.three} {
		if out, err = h.decides(t, many, exchange.Reject, by); err != nil {
			t.Fatal(err)
		}
		if by == h.one && out.Status != exchange.ProposalApproving {
			t.Errorf("after one rejection: %+v", out)
		}
		if out.Over() {
			break
		}
	}
	h.is(t, many, exchange.ProposalApproving, exchange.WaitApproval) // the seeding of the wallet left more admins
	storetest.Exec(t, h.s, `UPDATE users SET is_active = false WHERE role IN ('admin', 'treasury') AND id NOT IN ($1, $2, $3, $4)`, h.boss.UserID, h.one.UserID, h.two.UserID, h.three.UserID)
	again := h.opened(t, usdt("334"))
	for i, by := range []exchange.Principal{h.one, h.two} {
		if out, err = h.decides(t, again, exchange.Reject, by); err != nil || out.Over() != (i == 1) {
			t.Fatalf("rejection %d of four officers where three are needed: %+v, %v", i+1, out, err)
		}
	}
	h.has(t, "1000", "334")
	doubted := h.opened(t, usdt("10")) // one rejects it, and the other one that is needed approves it
	if _, err := h.decides(t, doubted, exchange.Reject, h.one); err != nil {
		t.Fatal(err)
	}
	token, err := storetest.ProposalTicket(t.Context(), h.api, doubted, exchange.Approve, h.two)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out, err = h.flows.DecideProposal(t.Context(), doubted.ID, exchange.Approve, token); err != nil || out.PaymentID == uuid.Nil {
			t.Errorf("approved after a rejection: %+v, %v", out, err)
		}
	}
}

// Before there is a payload a proposal ends at once, by its proposer, an officer, or its time.
func TestProposalsEndWithoutPayload(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	mine, released, late, gone, hit := h.opened(t, usdt("10")), h.released(t, usdt("10")), h.opened(t, usdt("10")), h.opened(t, usdt("10")), h.released(t, usdt("10"))
	other := storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleVendor))
	_, err := h.cancels(t, mine, other)
	wantFault(t, err, exchange.CodeForbidden)
	got, err := h.cancels(t, mine, h.merchant)
	if err != nil || got.Status != exchange.ProposalCancelled || got.StatusDetail != exchange.DetailBySender {
		t.Errorf("by the proposer: %+v, %v", got, err)
	}
	if got, err = h.cancels(t, released, h.one); err != nil || got.Status != exchange.ProposalCancelled || got.StatusDetail != exchange.DetailByStaff {
		t.Errorf("by an officer: %+v, %v", got, err)
	}
	if paid, err := h.s.ChainPayment(ctx, released.PaymentID); err != nil || paid.Status != exchange.ChainCancelled {
		t.Errorf("its payment is %+v, %v", paid, err)
	}
	if got, err = h.flows.LapseProposal(ctx, late.ID); err != nil || got.Over() {
		t.Errorf("in time: %+v, %v", got, err)
	}
	h.ages(t, late)
	twice(t, sameProposal, func() (exchange.Proposal, error) { return h.flows.LapseProposal(ctx, late.ID) })
	h.is(t, late, exchange.ProposalExpired, exchange.DetailExpired)
	storetest.Exec(t, h.s, `UPDATE users SET is_active = false WHERE id = $1`, h.merchant.UserID)
	if out := h.advanced(t, gone.ID); out.Status != exchange.ProposalCancelled || out.StatusDetail != exchange.DetailInactive {
		t.Errorf("of an account that is switched off: %+v", out)
	}
	storetest.Exec(t, h.s, `UPDATE users SET is_active = true WHERE id = $1`, h.merchant.UserID)
	if err := h.signer.RecordRecipient(ctx, hit.PaymentID, []exchange.Screening{{Screener: "other", Verdict: exchange.VerdictHit}}); err != nil {
		t.Fatal(err)
	}
	if out := h.advanced(t, hit.ID); out.Status != exchange.ProposalRejected || out.StatusDetail != exchange.DetailHit {
		t.Errorf("to a recipient who is not accepted: %+v", out)
	}
	h.has(t, "1000", "0")
}

// ages ends the time of a proposal, a second ago.
func (h *reserve) ages(t *testing.T, p exchange.Proposal) {
	t.Helper()
	storetest.Exec(t, h.s, `ALTER TABLE multisig_proposals DISABLE TRIGGER USER; UPDATE multisig_proposals SET created_at = now() - interval '168 hours 1 second', expires_at = now() - interval '1 second'
		WHERE id = '`+p.ID.String()+`'; ALTER TABLE multisig_proposals ENABLE TRIGGER USER`)
}

// With a payload, whose signatures are authority, a proposal ends only when that is proven impossible; until then it takes nothing more.
func TestProposalsEndWithPayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*testing.T, *reserve, exchange.Proposal) error
		status exchange.ProposalStatus
		detail string
	}{
		"cancelled": {func(t *testing.T, h *reserve, p exchange.Proposal) error {
			_, err := h.cancels(t, p, h.merchant)
			return err
		}, exchange.ProposalCancelled, exchange.DetailBySender},
		"rejected": {func(t *testing.T, h *reserve, p exchange.Proposal) error {
			_, err := h.decides(t, p, exchange.Reject, storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleAdmin)))
			return err
		}, exchange.ProposalRejected, exchange.DetailRejected},
		"expired": {func(t *testing.T, h *reserve, p exchange.Proposal) error {
			h.ages(t, p)
			_, err := h.flows.LapseProposal(t.Context(), p.ID)
			return err
		}, exchange.ProposalExpired, exchange.DetailExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
			p, y := h.ready(t, usdt("100"))
			if err := c.end(t, h, p); err != nil {
				t.Fatal(err)
			}
			p = h.is(t, p, exchange.ProposalReady, exchange.WaitImpossible)
			if p.Ending != c.status {
				t.Errorf("it is to be %s", p.Ending)
			}
			h.has(t, "1000", "100")
			_, err := h.executes(t, p, h.one)
			wantFault(t, err, exchange.CodeStateConflict)
			err = h.confirms(t, p, y, h.two)
			wantFault(t, err, exchange.CodeStateConflict)
			if out := h.advanced(t, p.ID); out.Over() {
				t.Errorf("it ended while its payload could be executed: %+v", out)
			}
			for range 2 {
				if _, err := h.chain.VoidPayload(ctx, y.ID, "the Safe's number is 4 at block 130"); err != nil {
					t.Fatal(err)
				}
			}
			_, err = h.flows.AdvanceProposal(ctx, p.ID)
			wantFault(t, err, exchange.CodeUnavailable) // it is what one node says
			h.has(t, "1000", "100")
			h.readsOn(t)
			for range 2 {
				h.advanced(t, p.ID)
			}
			h.is(t, p, c.status, c.detail)
			h.has(t, "1000", "0")
		})
	}
}

// A payload that lapses leaves the approvals: the next one is signed anew, with signatures of its own.
func TestLapsedPayloads(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Tron)
	p, y := h.signing(t, usdt("100"))
	if _, err := h.brings(t, y, h.account.Owners[0], h.merchant); err != nil {
		t.Fatal(err)
	}
	_, err := h.chain.VoidPayload(ctx, y.ID, "one node says so")
	wantFault(t, err, exchange.CodeUnavailable) // the next payload and this one could both be executed
	h.every(t, "ends a payload by what one node says", `UPDATE multisig_payloads SET status = 'void', evidence = 'it says so' WHERE id = `+quotedID(y.ID))
	h.readsOn(t)
	if _, err := h.chain.VoidPayload(ctx, y.ID, "the final chain is after its end"); err != nil {
		t.Fatal(err)
	}
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	_, err = h.brings(t, y, h.account.Owners[1], h.merchant)
	wantFault(t, err, exchange.CodeStateConflict)
	if out := h.advanced(t, p.ID); out.PaymentID != p.PaymentID || out.Approvals != 2 {
		t.Errorf("the approvals are %+v", out)
	}
	next, err := h.chain.StorePayload(ctx, h.payloadFor(t, p))
	if err != nil || next.N != 2 {
		t.Fatalf("the next payload is %+v, %v", next, err)
	}
	if _, err := h.brings(t, next, h.account.Owners[1], h.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := h.flows.SignProposal(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalSigning, exchange.WaitOwners) // one signature of each
	if _, err := h.brings(t, next, h.account.Owners[2], h.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := h.flows.SignProposal(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalReady, exchange.WaitExecution)
	h.has(t, "1000", "100")
}

// A payload ends when it is stored that it does, whatever the worker says: the money is freed when the watch has read on from then.
func TestPayloadsDoNotEndEarlier(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	voids := `UPDATE multisig_payloads SET status = 'void', evidence = 'it says so', updated_at = now() - interval '1 year' WHERE id = ` + quotedID(y.ID)
	if err := h.together(t, store.RoleChain, voids); err != nil {
		t.Fatal(err)
	}
	_, err := h.flows.AdvanceProposal(t.Context(), p.ID)
	wantFault(t, err, exchange.CodeUnavailable)
	h.has(t, "1000", "100")
}

// One node's answer that a payload on TRON is too old frees nothing before the watch has read its whole life: another node may still take it.
func TestMoneyIsFreeWhenTheWatchHasReadOn(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Tron)
	p, y := h.ready(t, usdt("100"))
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.VoidPayload(ctx, y.ID, "expired"); err != nil {
		t.Fatal(err)
	}
	reads := func(n uint64, at time.Time) {
		t.Helper()
		b := scanOf(blockOf("a", n))
		b.Network, b.Block.Time = h.n, at
		finalBlock(t, h.s, b)
	}
	for n, at := range []time.Time{y.ExpiresAt.Add(-time.Minute), y.ExpiresAt.Add(-time.Second)} {
		reads(uint64(101+n), at)
		_, err := h.flows.AdvanceProposal(ctx, p.ID)
		wantFault(t, err, exchange.CodeUnavailable)
		h.every(t, "frees its money", append(freed(p), steps(p, `status = 'cancelled', ending = NULL, ending_detail = ''`))...)
		h.has(t, "1000", "100")
	}
	reads(103, y.ExpiresAt)
	h.advanced(t, p.ID)
	h.is(t, p, exchange.ProposalCancelled, exchange.DetailBySender)
	h.has(t, "1000", "0")
}

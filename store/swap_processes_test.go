package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// swapProcesses are the processes that have a part in swaps, each with its own login.
type swapProcesses struct {
	*swapDesk
	api, flows, chain, signer *store.Store
}

func newSwapProcesses(t *testing.T) *swapProcesses {
	t.Helper()
	url := storetest.URL(t)
	b := swapDeskIn(t, storetest.Open(t, url, store.Options{}))
	as := func(r store.Role) *store.Store { return storetest.OpenAs(t, url, r, store.Options{}) }
	return &swapProcesses{b, as(store.RoleAPI), as(store.RoleFlows), as(store.RoleChain), as(store.RoleSigner)}
}

func done(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// asked is a swap for which the API stored quote and intent, and that the flows opened.
func (p *swapProcesses) asked(t *testing.T, given money.Amount) exchange.Swap {
	t.Helper()
	q, err := p.api.OpenSwapQuote(t.Context(), p.asks(t, given), p.who)
	done(t, "the API quotes", err)
	r := exchange.SwapRequest{ID: storetest.NewID(t), QuoteID: q.ID}
	a, err := storetest.Ask(t.Context(), p.api, exchange.IntendSwap, r.ID, r.ID, r.Terms(), p.who)
	done(t, "the API asks", err)
	o, err := p.flows.OpenSwap(t.Context(), a)
	done(t, "the flows open", err)
	return o
}

// signed has the signer sign a leg, and the chain's worker send it.
func (p *swapProcesses) signed(t *testing.T, payment uuid.UUID) exchange.ChainAttempt {
	t.Helper()
	tx := sign(t, p.signer, p.payment(t, payment))
	_, err := p.chain.RecordBroadcast(t.Context(), tx.ID, "SUCCESS", true)
	done(t, "the chain's worker sends", err)
	_, err = p.chain.RecordIncluded(t.Context(), tx.ID, 199, "a-199")
	done(t, "the chain's worker sees it in a block", err)
	return tx
}

func (p *swapProcesses) carried(t *testing.T, payment uuid.UUID) {
	t.Helper()
	_, err := p.chain.RecordFinal(t.Context(), p.signed(t, payment).ID, true, 200, "a-200", trx("1"), "SUCCESS")
	done(t, "the chain's worker sees it final", err)
}

func (p *swapProcesses) isCollected(t *testing.T, given money.Amount) exchange.Swap {
	t.Helper()
	o := p.asked(t, given)
	out, err := p.flows.CollectSwap(t.Context(), o.ID)
	done(t, "the flows collect", err)
	p.carried(t, out.PaymentID)
	return p.is(t, o, exchange.SwapCollected, exchange.WaitPayout)
}

// resolved has two officers resolve a swap through the API.
func (p *swapProcesses) resolved(t *testing.T, o exchange.Swap, outcome exchange.SwapOutcome) {
	t.Helper()
	c, err := p.api.ProposeSwapResolution(t.Context(), o.ID, outcome, "compared", p.one)
	done(t, "an officer proposes", err)
	_, err = p.api.ConfirmChange(t.Context(), c.ID, "", p.two)
	done(t, "another confirms", err)
}

// Each process has the rights for its part: an approved swap is paid, and officers accept its difference.
func TestEachProcessDoesItsPartOfASwap(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newSwapProcesses(t)
	storetest.Patch(t, p.s, store.LimitPatch{Rules: rule("100", "1000000")})
	o := p.asked(t, usdt("100"))
	_, err := p.flows.CollectSwap(ctx, o.ID)
	done(t, "the flows wait for an officer", err)
	token, err := storetest.SwapTicket(ctx, p.api, o, exchange.Approve, p.one)
	done(t, "the API gives a ticket", err)
	out, err := p.flows.DecideSwap(ctx, o.ID, token, exchange.Approve)
	done(t, "the flows count it", err)
	p.carried(t, out.PaymentID)
	out, err = p.flows.PayOutSwap(ctx, o.ID)
	done(t, "the flows pay out", err)
	p.carried(t, out.PaymentID)
	_, err = p.chain.SyncSwap(ctx, o.ID, p.read("4.5"))
	done(t, "the chain's worker compares", err)
	p.resolved(t, o, exchange.SwapAccept)
	p.is(t, o, exchange.SwapCompleted, exchange.DetailAccepted)
	p.wants(t, [2]string{"900", "0"}, [2]string{"100", "0"}, [2]string{"100", "0"}, [2]string{"400", "0"})
}

// Each process has the rights for its part of a swap that goes back: by a rule, or because officers decided so.
func TestEachProcessDoesItsPartOfARefundedSwap(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newSwapProcesses(t)
	byRule, byTwo := p.isCollected(t, usdt("10")), p.isCollected(t, usdt("20"))
	p.waits(t, byRule, "31")
	out, err := p.flows.PayOutSwap(ctx, byTwo.ID)
	done(t, "the flows pay out", err)
	tx := p.signed(t, out.PaymentID)
	_, err = p.chain.RecordVanished(ctx, tx.ID)
	done(t, "the chain's worker misses the block", err)
	_, err = p.chain.RecordExpired(ctx, tx.ID, "absent")
	done(t, "the chain's worker proves it impossible", err)
	_, err = p.flows.StallSwap(ctx, byTwo.ID)
	done(t, "the flows ask officers", err)
	p.resolved(t, byTwo, exchange.SwapRefund)
	for _, o := range []exchange.Swap{byRule, byTwo} {
		out, err := p.flows.RefundSwap(ctx, o.ID)
		done(t, "the flows refund", err)
		p.carried(t, out.PaymentID)
		p.is(t, o, exchange.SwapRefunded, exchange.WaitNothing)
	}
	p.wants(t, [2]string{"1000", "0"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "0"})
}

// Each process has the rights for its part of swaps that end before they move, or are tried again, and of the water marks.
func TestEachProcessDoesItsPartOfOtherSwaps(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newSwapProcesses(t)
	given, late, failed, again := p.asked(t, usdt("10")), p.asked(t, usdt("10")), p.asked(t, usdt("10")), p.isCollected(t, usdt("10"))
	a, err := storetest.Ask(ctx, p.api, exchange.IntendSwapCancel, storetest.NewID(t), given.ID, nil, p.who)
	done(t, "the API asks to cancel", err)
	_, err = p.flows.CancelSwap(ctx, given.ID, a)
	done(t, "the flows cancel", err)
	p.waits(t, late, "11")
	_, err = p.flows.ExpireSwap(ctx, late.ID)
	done(t, "the flows expire", err)
	out, err := p.flows.CollectSwap(ctx, failed.ID)
	done(t, "the flows collect", err)
	_, err = p.chain.RecordFinal(ctx, p.signed(t, out.PaymentID).ID, false, 200, "a-200", trx("1"), "REVERT")
	done(t, "the chain's worker sees it fail", err)
	outlived(t, p.s)
	_, err = p.flows.GiveUpSwap(ctx, failed.ID, p.boss)
	done(t, "the flows give up", err)
	out, err = p.flows.PayOutSwap(ctx, again.ID)
	done(t, "the flows pay out", err)
	_, err = p.chain.ParkChainPayment(ctx, out.PaymentID, "no energy")
	done(t, "the chain's worker parks", err)
	_, err = p.flows.StallSwap(ctx, again.ID)
	done(t, "the flows ask officers", err)
	_, err = p.flows.RetrySwapPayout(ctx, again.ID, p.one)
	done(t, "the flows try again", err)
	p.carried(t, out.PaymentID)
	_, err = p.chain.SyncSwap(ctx, again.ID, p.read("5"))
	done(t, "the chain's worker compares", err)
	p.wants(t, [2]string{"990", "0"}, [2]string{"10", "0"}, [2]string{"10", "0"}, [2]string{"490", "0"})
	c, err := p.api.ProposeSwapMarks(ctx, exchange.SwapMarks{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDC, Low: usdc("600"), High: usdc("700")}, p.one)
	done(t, "an officer proposes marks", err)
	_, err = p.api.ConfirmChange(ctx, c.ID, "", p.two)
	done(t, "another confirms them", err)
	low, err := p.flows.WatchSwapInventory(ctx)
	if done(t, "the flows look", err); len(low) != 1 {
		t.Errorf("low are %+v", low)
	}
}

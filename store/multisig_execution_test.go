package store_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// found has the watch book a final block in which another tool executed a proposal.
func (h *reserve) found(t *testing.T, p exchange.Proposal, tx string, m money.Amount) {
	t.Helper()
	c, _, err := h.s.DepositCursor(t.Context(), h.n)
	if err != nil {
		t.Fatal(err)
	}
	b := scanOf(blockOf("a", c.Final.Number+1), moveOf(tx, h.wallet.Address, p.Destination, m))
	b.Network = h.n
	finalBlock(t, h.s, b)
}

// Anybody may send what owners signed. What the watch has seen becomes the payment, and the sender of a Safe's transaction paid for it.
func TestExecutionsByOthers(t *testing.T) {
	t.Parallel()
	for _, n := range []exchange.Network{exchange.Ethereum, exchange.Tron} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			ctx, h := t.Context(), newReserve(t, n)
			p, y := h.signing(t, usdt("100"))
			tx := "0xother"
			if n == exchange.Tron {
				tx = y.JointID
			}
			_, err := h.chain.AdoptExecution(ctx, y.ID, tx, 101, "a-101", "the Safe's event")
			wantFault(t, err, exchange.CodeUnavailable) // the watch has not seen it
			h.found(t, p, tx, usdt("100"))
			if hold, err := h.s.SigningHold(ctx, p.PaymentID); err != nil || hold != exchange.HoldSentBefore {
				t.Errorf("before it is adopted the hold is %q, %v", hold, err)
			}
			_, err = h.chain.AdoptExecution(ctx, y.ID, tx, 101, "b-101", "the Safe's event")
			wantFault(t, err, exchange.CodeUnavailable) // another block
			paid := twice(t, func(a, b exchange.ChainPayment) bool { return a.ID == b.ID && a.Status == b.Status }, func() (exchange.ChainPayment, error) {
				return h.chain.AdoptExecution(ctx, y.ID, tx, 101, "a-101", "the Safe's event")
			})
			if paid.Status != exchange.ChainIncluded {
				t.Fatalf("the payment is %+v", paid)
			}
			live, _, err := h.s.LiveAttempt(ctx, p.PaymentID)
			if err != nil {
				t.Fatal(err)
			}
			before, err := h.s.Account(ctx, exchange.Owned(exchange.AccCustody, h.gas.ID, n.NativeCoin()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.chain.RecordFinal(ctx, live.ID, true, 101, "a-101", money.Must(n.NativeCoin(), "0.005"), "SUCCESS"); err != nil {
				t.Fatal(err)
			}
			if p = h.is(t, p, exchange.ProposalExecuted, exchange.DetailOther); p.TxHash != tx || p.ExecutedBy != uuid.Nil {
				t.Errorf("executed: %+v", p)
			}
			after, err := h.s.Account(ctx, exchange.Owned(exchange.AccCustody, h.gas.ID, n.NativeCoin()))
			if err != nil || !after.Posted.Equal(before.Posted) {
				t.Errorf("the gas wallet paid from %s to %s, %v", before.Posted, after.Posted, err)
			}
			if open, err := h.s.OpenQuarantine(ctx, n); err != nil || len(open) != 0 {
				t.Errorf("alarms are left: %+v, %v", open, err)
			}
			h.has(t, "900", "0")
		})
	}
}

// What owners signed may be executed also when it is to end: then it is executed.
func TestExecutionsOfWhatIsToEnd(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	h.found(t, p, "0xother", usdt("100"))
	if _, err := h.chain.AdoptExecution(ctx, y.ID, "0xother", 101, "a-101", "the Safe's event"); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalReady, exchange.WaitImpossible)
	live, _, err := h.s.LiveAttempt(ctx, p.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(ctx, live.ID, true, 101, "a-101", money.Zero(money.ETH), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if p = h.is(t, p, exchange.ProposalExecuted, exchange.DetailOther); p.Ending != "" {
		t.Errorf("it is executed and to be %s", p.Ending)
	}
	h.has(t, "900", "0")
}

// A number of a Safe is one payload's, also of several proposals at once.
func TestNumbersOfPayloads(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	var all sync.WaitGroup
	var stored, taken atomic.Int32
	var prepared []exchange.MultisigPayload
	for range 4 {
		prepared = append(prepared, h.payloadFor(t, h.released(t, usdt("10"))))
	}
	for _, y := range prepared {
		all.Go(func() {
			switch _, err := h.chain.StorePayload(t.Context(), y); exchange.CodeOf(err) {
			case "":
				stored.Add(1)
			case exchange.CodeConflict:
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	if all.Wait(); stored.Load() != 1 || taken.Load() != 3 {
		t.Errorf("%d payloads have one number, and %d were refused", stored.Load(), taken.Load())
	}
}

// One transaction of another tool may execute what was signed for several proposals, of the same terms too. Each takes its own movement over, and
// what it moved besides stays an alarm.
func TestOneTransactionExecutesSeveralProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	q, z := h.signing(t, usdt("100"))
	var all []exchange.ChainMovement
	for i, m := range []string{"100", "7", "100"} {
		move := moveOf("0xbulk", h.wallet.Address, faraway, usdt(m))
		move.Index = uint32(i)
		all = append(all, move)
	}
	b := scanOf(blockOf("a", 101), all...)
	b.Network = h.n
	finalBlock(t, h.s, b)
	for i, payload := range []exchange.MultisigPayload{y, z} {
		twice(t, func(a, b exchange.ChainPayment) bool { return a.ID == b.ID && a.Status == b.Status }, func() (exchange.ChainPayment, error) {
			return h.chain.AdoptExecution(ctx, payload.ID, "0xbulk", 101, "a-101", "the Safe's event")
		})
		if open, err := h.s.OpenQuarantine(ctx, h.n); err != nil || len(open) != 2-i {
			t.Errorf("after %d executions the alarms are %+v, %v", i+1, open, err)
		}
	}
	for _, x := range []exchange.Proposal{p, q} {
		live, _, err := h.s.LiveAttempt(ctx, x.PaymentID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.chain.RecordFinal(ctx, live.ID, true, 101, "a-101", money.Zero(money.ETH), "SUCCESS"); err != nil {
			t.Fatal(err)
		}
		h.is(t, x, exchange.ProposalExecuted, exchange.DetailOther)
	}
	h.has(t, "800", "0")
}

// Officers can't hide what owners executed by a note, and what they noted before is taken over after all.
func TestAlarmsAboutProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	h.found(t, p, "0xother", usdt("100"))
	open, err := h.s.OpenQuarantine(ctx, h.n)
	if err != nil || len(open) != 1 {
		t.Fatalf("the alarms are %+v, %v", open, err)
	}
	c, err := h.api.ProposeSettlement(ctx, open[0].ID, uuid.Nil, "it is known", h.one)
	if err == nil {
		_, err = h.api.ConfirmChange(ctx, c.ID, "", h.boss)
	}
	wantFault(t, err, exchange.CodeStateConflict)
	storetest.Exec(t, h.s, `ALTER TABLE deposit_quarantine DISABLE TRIGGER USER; UPDATE deposit_quarantine SET settled_at = now(), note = 'it is known'; ALTER TABLE deposit_quarantine ENABLE TRIGGER USER`)
	if paid, err := h.chain.AdoptExecution(ctx, y.ID, "0xother", 101, "a-101", "the Safe's event"); err != nil || paid.Status != exchange.ChainIncluded {
		t.Errorf("adopted after a note: %+v, %v", paid, err)
	}
}

// The number of a proposal that is to end is the next one's, so that it stops nothing: the chain executes one of both.
func TestNumbersOfEndingProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	q := h.released(t, usdt("10"))
	next := h.payloadFor(t, q)
	next.Sequence = y.Sequence
	_, err := h.chain.StorePayload(ctx, next)
	wantFault(t, err, exchange.CodeConflict)
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	if open, err := h.chain.OpenPayloads(ctx, h.wallet.ID); err != nil || len(open) != 0 {
		t.Errorf("to be executed are %+v, %v", open, err)
	}
	if next, err = h.chain.StorePayload(ctx, next); err != nil {
		t.Fatal(err)
	}
	q = h.signed(t, q, next)
	if q, err = h.executes(t, q, h.two); err != nil {
		t.Fatal(err)
	}
	a, err := h.sends(t, q, next)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(ctx, a.ID, true, 101, "a-101", money.Must(money.ETH, "0.004"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.VoidPayload(ctx, y.ID, "its number was used by "+a.TxID); err != nil {
		t.Fatal(err)
	}
	h.readsOn(t)
	h.advanced(t, p.ID)
	h.is(t, p, exchange.ProposalCancelled, exchange.DetailBySender)
	h.has(t, "990", "0")
}

// Whoever had a payload executed that lapsed has not had the next one executed.
func TestNextPayloadsAreExecutedAnew(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Tron)
	p, y := h.ready(t, usdt("100"))
	if _, err := h.executes(t, p, h.two); err != nil {
		t.Fatal(err)
	}
	h.every(t, "takes an execution back", `UPDATE multisig_proposals SET payload_id = NULL, executed_by = NULL WHERE id = `+quotedID(p.ID))
	h.readsOn(t)
	got, err := h.chain.VoidPayload(ctx, y.ID, "expired")
	if err != nil || got.Status != exchange.ProposalApproving || got.PayloadID != uuid.Nil || got.ExecutedBy != uuid.Nil {
		t.Fatalf("without its payload: %+v, %v", got, err)
	}
	next, err := h.chain.StorePayload(ctx, h.payloadFor(t, p))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range h.account.Owners[:2] {
		if _, err := h.brings(t, next, o, h.merchant); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.flows.SignProposal(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	p = h.is(t, p, exchange.ProposalReady, exchange.WaitExecution)
	_, err = h.sends(t, p, next)
	wantFault(t, err, exchange.CodeForbidden)
	if p, err = h.executes(t, p, h.one); err != nil || p.PayloadID != next.ID {
		t.Fatalf("executed anew: %+v, %v", p, err)
	}
	if _, err := h.sends(t, p, next); err != nil {
		t.Fatal(err)
	}
}

// After its time a proposal takes no signature, no execution and no first transaction, also before its flow has ended it.
func TestOldProposalsMoveNothing(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	signing, y := h.signing(t, usdt("10"))
	ready, _ := h.ready(t, usdt("20"))
	executed, z := h.ready(t, usdt("30"))
	executed, err := h.executes(t, executed, h.two)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []exchange.Proposal{signing, ready, executed} {
		h.ages(t, p)
	}
	_, err = h.brings(t, y, h.account.Owners[0], h.merchant)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.executes(t, ready, h.one)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.sends(t, executed, z)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = h.signer.SaveSignedAttempt(ctx, h.transaction(t, executed, z))
	wantFault(t, err, exchange.CodeStateConflict)
}

// A movement of another amount is not the payment, whatever a worker says.
func TestOtherMovementsAreNoExecutions(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	h.found(t, p, "0xother", usdt("99"))
	_, err := h.chain.AdoptExecution(ctx, y.ID, "0xother", 101, "a-101", "it says so")
	wantFault(t, err, exchange.CodeUnavailable)
	h.is(t, p, exchange.ProposalSigning, exchange.WaitOwners)
}

// When another transaction took the number, or the payload's own moved nothing, the proposal ends and its money is free; not while ours may pay.
func TestSupersededAndFailedProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	waiting := h.opened(t, usdt("10"))
	_, err := h.chain.SupersedeProposal(ctx, waiting.ID, "0xother", "no payload")
	wantFault(t, err, exchange.CodeStateConflict)
	p, y := h.signing(t, usdt("100"))
	twice(t, sameProposal, func() (exchange.Proposal, error) {
		return h.chain.SupersedeProposal(ctx, p.ID, "0xother", "its number is 4 at block 130")
	})
	if p = h.is(t, p, exchange.ProposalSigning, exchange.WaitImpossible); p.TxHash != "0xother" {
		t.Errorf("superseded by %q", p.TxHash)
	}
	_, err = h.brings(t, y, h.account.Owners[0], h.merchant)
	wantFault(t, err, exchange.CodeStateConflict)
	h.readsOn(t)
	h.advanced(t, p.ID)
	h.is(t, p, exchange.ProposalSuperseded, exchange.DetailNumber)
	h.has(t, "1000", "10")

	p, y = h.ready(t, usdt("100"))
	if p, err = h.executes(t, p, h.two); err != nil {
		t.Fatal(err)
	}
	a, err := h.sends(t, p, y)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.chain.SupersedeProposal(ctx, p.ID, "0xother", "ours is alive")
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.chain.VoidPayload(ctx, y.ID, "ours is alive")
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.cancels(t, p, h.boss)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := h.chain.RecordFinal(ctx, a.ID, false, 103, "a-103", money.Must(money.ETH, "0.004"), "0"); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalReady, exchange.WaitOperator)
	if _, err := h.chain.FailProposal(ctx, p.ID, a.TxID, "it reverted and used the number"); err != nil {
		t.Fatal(err)
	}
	_, err = h.flows.AdvanceProposal(ctx, p.ID) // the watch has not read the block yet
	wantFault(t, err, exchange.CodeUnavailable)
	h.readsOn(t)
	h.advanced(t, p.ID)
	h.is(t, p, exchange.ProposalFailed, exchange.DetailMoved)
	h.has(t, "1000", "10")
}

// readsOn has the watch read two more blocks.
func (h *reserve) readsOn(t *testing.T) {
	t.Helper()
	c, _, err := h.s.DepositCursor(t.Context(), h.n)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b := scanOf(blockOf("a", c.Final.Number+1))
		b.Network, b.Block.Time = h.n, c.Final.Time.Add(3*60*60*1e9)
		c = finalBlock(t, h.s, b)
	}
	h.looks(t)
}

// A transaction of ours that failed leaves the payload, which is executed again.
func TestExecutionsAreTriedAgain(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	p, err := h.executes(t, p, h.two)
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.sends(t, p, y)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.signer.SaveSignedAttempt(ctx, h.transaction(t, p, y)); err != nil || again.ID != a.ID {
		t.Errorf("another transaction beside the live one: %+v, %v", again, err)
	}
	bump := h.transaction(t, p, y)
	bump.Nonce = a.Nonce
	b, err := h.signer.SaveReplacement(ctx, a.ID, bump)
	if err != nil || b.ID != bump.ID {
		t.Fatalf("the replacement is %+v, %v", b, err)
	}
	if _, err := h.chain.RecordFinal(ctx, b.ID, false, 101, "a-101", money.Must(money.ETH, "0.004"), "0"); err != nil {
		t.Fatal(err)
	}
	h.readsOn(t)
	if _, err := h.flows.RetryChainPayment(ctx, p.PaymentID, h.two); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalReady, exchange.WaitSignature)
	if a, err = h.sends(t, p, y); err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(ctx, a.ID, true, 103, "a-103", money.Must(money.ETH, "0.004"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalExecuted, exchange.WaitNothing)
	h.has(t, "900", "0")
}

// Of payloads for several choices of signers at one value of the nonce account one is executed, and the others end with it. What is to end is made
// impossible by advancing that account.
func TestPayloadsOfSeveralChoices(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Solana)
	p, y := h.signing(t, usdt("100"))
	other := h.payloadFor(t, p)
	other.Signers = []string{h.account.Owners[0].Address, h.account.Owners[2].Address}
	second, err := h.chain.StorePayload(ctx, other)
	if err != nil || second.N != 2 {
		t.Fatalf("another choice: %+v, %v", second, err)
	}
	moved := h.payloadFor(t, p)
	moved.Signers, moved.RefBlock = []string{h.account.Owners[1].Address, h.account.Owners[2].Address}, "value-2"
	_, err = h.chain.StorePayload(ctx, moved)
	wantFault(t, err, exchange.CodeStateConflict) // another value
	next := h.released(t, usdt("10"))
	_, err = h.chain.StorePayload(ctx, h.payloadFor(t, next))
	wantFault(t, err, exchange.CodeStateConflict) // the nonce account is in use
	_, err = h.confirms(t, p, y, h.two)
	wantFault(t, err, exchange.CodeForbidden) // the first choice has no signature of this owner
	if _, err := h.brings(t, second, h.account.Owners[0], h.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := h.confirms(t, p, second, h.two); err != nil {
		t.Fatal(err)
	}
	if _, err := h.flows.SignProposal(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	p, err = h.executes(t, p, h.one)
	if err != nil || p.PayloadID != second.ID {
		t.Fatalf("executed: %+v, %v", p, err)
	}
	a, err := h.sends(t, p, second)
	if err != nil {
		t.Fatal(err)
	}
	h.every(t, "voids the other choice of what is sent", `UPDATE multisig_payloads SET status = 'void', evidence = 'x', updated_at = now() WHERE id = `+quotedID(y.ID))
	if _, err := h.chain.RecordFinal(ctx, a.ID, true, 101, "a-101", money.Must(money.SOL, "0.00001"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalExecuted, exchange.WaitNothing)
	all, err := h.s.Payloads(ctx, p.ID)
	if err != nil || len(all) != 2 || all[0].Status != exchange.PayloadVoid || all[1].Status != exchange.PayloadExecuted {
		t.Errorf("the payloads are %+v, %v", all, err)
	}

	y, err = h.chain.StorePayload(ctx, h.payloadFor(t, next))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.chain.ClosePayload(ctx, y.ID)
	wantFault(t, err, exchange.CodeStateConflict) // it is not to end
	if _, err := h.cancels(t, next, h.merchant); err != nil {
		t.Fatal(err)
	}
	advance := twice(t, func(a, b exchange.ChainPayment) bool { return a.ID == b.ID }, func() (exchange.ChainPayment, error) { return h.chain.ClosePayload(ctx, y.ID) })
	if advance.Purpose != exchange.ForNonceAdvance || advance.ToAddress != y.NonceAccount || advance.WalletID != h.gas.ID {
		t.Errorf("the advance is %+v", advance)
	}
	tx := exchange.ChainAttempt{ID: storetest.NewID(t), PaymentID: advance.ID, Network: h.n, TxID: "advance", Raw: []byte("signed"), LastValidHeight: 200, FeeLimit: money.Must(money.SOL, "0.00001")}
	if tx, err = h.signer.SaveSignedAttempt(ctx, tx); err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(ctx, tx.ID, true, 102, "a-102", money.Must(money.SOL, "0.00001"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	for _, status := range []exchange.PayloadStatus{exchange.PayloadOpen, exchange.PayloadVoid} { // when the watch has read the advance
		if _, err := h.chain.ClosePayload(ctx, y.ID); err != nil {
			t.Fatal(err)
		}
		if got, err := h.s.Payload(ctx, y.ID); err != nil || got.Status != status {
			t.Fatalf("the payload is %+v, %v; want it %s", got, err, status)
		}
		h.readsOn(t)
	}
	h.advanced(t, next.ID)
	h.is(t, next, exchange.ProposalCancelled, exchange.DetailBySender)
	h.has(t, "900", "0")
}

// Nothing that could move money is signed while payments are frozen, or the wallet's owners are not those that were agreed.
func TestWithheldProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p := h.released(t, usdt("100"))
	differ := func(status, detail string) {
		storetest.Exec(t, h.s, `ALTER TABLE multisig_accounts DISABLE TRIGGER USER; UPDATE multisig_accounts SET status = '`+status+`', status_detail = '`+detail+`'; ALTER TABLE multisig_accounts ENABLE TRIGGER USER`)
	}
	differ("differs", "another owner")
	if hold, err := h.s.SigningHold(ctx, p.PaymentID); err != nil || hold != exchange.HoldDiffers {
		t.Errorf("the hold is %q, %v", hold, err)
	}
	if err := h.flows.AwaitSignature(ctx, p.PaymentID, exchange.HoldDiffers); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalApproving, exchange.WaitAccount)
	_, err := h.chain.StorePayload(ctx, h.payloadFor(t, p))
	wantFault(t, err, exchange.CodeStateConflict)
	differ("active", "")
	y, err := h.chain.StorePayload(ctx, h.payloadFor(t, p))
	if err != nil {
		t.Fatal(err)
	}
	token, err := storetest.PayloadTicket(ctx, h.api, y, p.Amount, h.one)
	if err != nil {
		t.Fatal(err)
	}
	owner := twice(t, func(a, b exchange.MultisigOwner) bool { return a == b }, func() (exchange.MultisigOwner, error) { return h.flows.ConfirmPayload(ctx, y.ID, token) })
	freeze, err := h.api.Freeze(ctx, storetest.NewID(t), "a test", h.one)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.keySigns(t, y, owner)
	wantFault(t, err, exchange.CodeStateConflict)
	storetest.Exec(t, h.s, `ALTER TABLE freezes DISABLE TRIGGER USER; DELETE FROM freezes WHERE id = '`+freeze.ID.String()+`'; ALTER TABLE freezes ENABLE TRIGGER USER`)
	differ("differs", "another owner")
	_, err = h.keySigns(t, y, owner)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.brings(t, y, h.account.Owners[0], h.merchant)
	wantFault(t, err, exchange.CodeStateConflict)
	differ("active", "")
	twice(t, func(a, b exchange.MultisigSignature) bool { return a.Owner == b.Owner && a.At.Equal(b.At) }, func() (exchange.MultisigSignature, error) { return h.keySigns(t, y, owner) })
	if _, err := h.brings(t, y, h.account.Owners[0], h.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := h.flows.SignProposal(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	if p, err = h.executes(t, p, h.one); err != nil {
		t.Fatal(err)
	}
	differ("differs", "another owner")
	_, err = h.sends(t, p, y)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = h.signer.SaveSignedAttempt(ctx, h.transaction(t, p, y))
	wantFault(t, err, exchange.CodeStateConflict)
	differ("active", "")
	if _, err := h.sends(t, p, y); err != nil {
		t.Fatal(err)
	}
}

// A signature is of an owner of that very payload, by who may bring it, and nothing leaves without the officer of the key.
func TestRefusedSignatures(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	outside, held, second := h.account.Owners[0], h.account.Owners[1], h.account.Owners[2]
	_, err := h.keySigns(t, y, held)
	wantFault(t, err, exchange.CodeForbidden) // nobody confirmed it
	_, err = h.brings(t, y, held, h.merchant)
	wantFault(t, err, exchange.CodeForbidden) // its key is ours
	_, err = h.brings(t, y, exchange.MultisigOwner{Address: "owner-somebody"}, h.merchant)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = h.confirms(t, p, y, h.three)
	wantFault(t, err, exchange.CodeForbidden) // no owner
	_, err = storetest.PayloadTicket(ctx, h.api, y, usdt("99"), h.one)
	wantFault(t, err, exchange.CodeInvalid) // another amount
	again, err := h.flows.SignProposal(ctx, p.ID)
	if err != nil || again.Status != exchange.ProposalSigning {
		t.Errorf("without signatures: %+v, %v", again, err)
	}
	_, err = h.executes(t, p, h.one)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.sends(t, p, y)
	wantFault(t, err, exchange.CodeForbidden)

	token, err := storetest.PayloadTicket(ctx, h.api, y, p.Amount, h.one)
	if err != nil {
		t.Fatal(err)
	}
	q, z := h.signing(t, usdt("50"))
	_, err = h.flows.ConfirmPayload(ctx, z.ID, token)
	wantFault(t, err, exchange.CodeNotFound) // a token for another payload
	if _, err := h.flows.ConfirmPayload(ctx, y.ID, token); err != nil {
		t.Fatal(err)
	}
	_, err = h.keySigns(t, z, held)
	wantFault(t, err, exchange.CodeForbidden) // confirmed for another payload
	_, err = h.keySigns(t, y, second)
	wantFault(t, err, exchange.CodeForbidden) // confirmed by another officer
	if _, err := h.keySigns(t, y, held); err != nil {
		t.Fatal(err)
	}
	a, err := storetest.AskProposal(ctx, h.api, exchange.IntendProposalSign, q.ID, exchange.OutsideSignature{PayloadID: y.ID, Signature: []byte("x")}.Terms(), h.merchant)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.chain.StoreSignature(ctx, exchange.MultisigSignature{PayloadID: z.ID, Owner: outside.Address, Signature: make([]byte, 65)}, a)
	wantFault(t, err, exchange.CodeInvalid) // brought for another payload
	if _, err := h.brings(t, y, outside, h.merchant); err != nil {
		t.Fatal(err)
	}
	got, err := h.brings(t, y, outside, h.one)
	if err != nil || got.UserID != h.merchant.UserID {
		t.Errorf("the first signature stays: %+v, %v", got, err)
	}
	facts, err := h.api.FactsOfProposals(ctx, []exchange.Proposal{p, q})
	if f := facts[p.ID]; err != nil || f.Needed != 2 || f.Counting != 2 || len(f.Decisions) != 2 || len(f.Payloads) != 1 || len(f.Payloads[0].Signatures) != 2 {
		t.Errorf("the facts are %+v, %v", f, err)
	}
	_, err = h.executes(t, p, h.merchant)
	wantFault(t, err, exchange.CodeForbidden) // no officer
}

// Of decisions at the same moment each counts once, and the payment is approved once.
func TestProposalsDecidedAtOnce(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p := h.opened(t, usdt("100"))
	var all sync.WaitGroup
	for _, by := range []exchange.Principal{h.boss, h.one, h.two, h.three} {
		token, err := storetest.ProposalTicket(t.Context(), h.api, p, exchange.Approve, by)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			all.Go(func() {
				if _, err := h.flows.DecideProposal(t.Context(), p.ID, exchange.Approve, token); err != nil && exchange.CodeOf(err) != exchange.CodeStateConflict {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	h.cleared(t, p)
	var stored sync.Map
	for range 4 {
		y := h.payloadFor(t, p)
		all.Go(func() {
			got, err := h.chain.StorePayload(t.Context(), y)
			if stored.Store(got.ID, true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := 0
	stored.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d payloads are open", n)
	}
}

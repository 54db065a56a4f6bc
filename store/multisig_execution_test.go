package store_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

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
	p, err := h.executes(t, p, h.two)
	if err != nil {
		t.Fatal(err)
	}
	h.every(t, "takes an execution back", `UPDATE multisig_proposals SET payload_id = NULL, executed_by = NULL WHERE id = `+quotedID(p.ID))
	h.readsOn(t)
	got, err := h.chain.VoidPayload(ctx, y.ID, "expired")
	if err != nil || got.Status != exchange.ProposalApproving || got.PayloadID != uuid.Nil || got.ExecutedBy != uuid.Nil || got.Version != p.Version+1 {
		t.Fatalf("without its payload: %+v, %v", got, err)
	}
	for range 2 { // what its flow does meanwhile changes nothing, so that it wakes no one
		_, err := h.chain.VoidPayload(ctx, y.ID, "expired")
		if err == nil {
			_, err = h.flows.SignProposal(ctx, p.ID)
		}
		if err == nil {
			_, err = h.flows.LapseProposal(ctx, p.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		if same := h.advanced(t, p.ID); same.Version != got.Version {
			t.Fatalf("it changed from version %d to %d without a reason", got.Version, same.Version)
		}
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

// After its time a proposal takes no payload, no signature, no execution and no first transaction, also before its flow has ended it.
func TestOldProposalsMoveNothing(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	released := h.released(t, usdt("5"))
	signing, y := h.signing(t, usdt("10"))
	ready, _ := h.ready(t, usdt("20"))
	executed, z := h.ready(t, usdt("30"))
	executed, err := h.executes(t, executed, h.two)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []exchange.Proposal{released, signing, ready, executed} {
		h.ages(t, p)
	}
	_, err = h.chain.StorePayload(ctx, h.payloadFor(t, released))
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.brings(t, y, h.account.Owners[0], h.merchant)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.executes(t, ready, h.one)
	if wantFault(t, err, exchange.CodeStateConflict); !strings.Contains(exchange.MessageOf(err), "time of the proposal is over") {
		t.Errorf("an old proposal is not executed because of %q", exchange.MessageOf(err))
	}
	_, err = h.sends(t, executed, z)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = h.signer.SaveSignedAttempt(ctx, h.transaction(t, executed, z))
	wantFault(t, err, exchange.CodeStateConflict)
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
	err = h.confirms(t, p, y, h.two)
	wantFault(t, err, exchange.CodeForbidden) // the first choice has no signature of this owner
	if _, err := h.brings(t, second, h.account.Owners[0], h.merchant); err != nil {
		t.Fatal(err)
	}
	if err := h.confirms(t, p, second, h.two); err != nil {
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

// A transaction of ours that was sent gets a higher fee also when the proposal could not be executed any more: it would hold up all others of the
// wallet that pays. It is the same execution with the same number, and there is none after its end.
func TestHigherFeesOfExecutions(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	bump := func(a exchange.ChainAttempt) exchange.ChainAttempt {
		b := h.transaction(t, p, y)
		b.Nonce = a.Nonce
		return b
	}
	_, err := h.signer.SaveReplacement(ctx, storetest.NewID(t), bump(exchange.ChainAttempt{}))
	wantFault(t, err, exchange.CodeStateConflict) // nothing was sent
	if p, err = h.executes(t, p, h.two); err != nil {
		t.Fatal(err)
	}
	a, err := h.sends(t, p, y)
	if err != nil {
		t.Fatal(err)
	}
	h.ages(t, p)
	if _, err := h.api.Freeze(ctx, storetest.NewID(t), "a test", h.one); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, h.s, `INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES (gen_random_uuid(), 'ethereum', $1, 'a test', $2, now())`, faraway, h.boss.UserID)
	storetest.Exec(t, h.s, `ALTER TABLE multisig_accounts DISABLE TRIGGER USER; UPDATE multisig_accounts SET status = 'differs', status_detail = 'another owner'; ALTER TABLE multisig_accounts ENABLE TRIGGER USER`)
	if _, err := h.signer.ExecutionForSigning(ctx, p.PaymentID); err != nil {
		t.Fatalf("a higher fee is refused: %v", err)
	}
	other := bump(a)
	other.Nonce++
	_, err = h.signer.SaveReplacement(ctx, a.ID, other)
	wantFault(t, err, exchange.CodeInternal) // another number
	b := bump(a)
	if got, err := h.signer.SaveReplacement(ctx, a.ID, b); err != nil || got.ID != b.ID {
		t.Fatalf("the replacement is %+v, %v", got, err)
	}
	if got, err := h.signer.SaveReplacement(ctx, a.ID, bump(a)); err != nil || got.ID != b.ID {
		t.Errorf("a second replacement of the same transaction: %+v, %v", got, err)
	}
	// Another transaction took the Safe's number, so ours moved nothing.
	if _, err := h.chain.RecordFinal(ctx, b.ID, false, 101, "a-101", money.Must(money.ETH, "0.004"), "0"); err != nil {
		t.Fatal(err)
	}
	_, err = h.signer.SaveReplacement(ctx, b.ID, bump(a))
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.signer.ExecutionForSigning(ctx, p.PaymentID)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := h.chain.SupersedeProposal(ctx, p.ID, "0xother", "its number is 4 at block 130"); err != nil {
		t.Fatal(err)
	}
	_, err = h.signer.ExecutionForSigning(ctx, p.PaymentID)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = h.signer.SaveSignedAttempt(ctx, h.transaction(t, p, y))
	wantFault(t, err, exchange.CodeStateConflict)
}

// On TRON the account pays also for what fails, whoever sent it with the owners' signatures. That transaction is the payment's by then, its fee is in
// the books, and it can't complete the payment.
func TestFailuresByOthers(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Tron)
	p, y := h.ready(t, usdt("100"))
	has := func() money.Amount {
		a, err := h.s.Account(ctx, exchange.Owned(exchange.AccCustody, h.wallet.ID, money.TRX))
		if err != nil {
			t.Fatal(err)
		}
		return a.Posted
	}
	before := has()
	_, err := h.chain.AdoptFailure(ctx, y.ID, "another", 101, "a-101", "failed")
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = h.flows.AdoptFailure(ctx, y.ID, y.JointID, 101, "a-101", "failed")
	if err == nil {
		t.Error("a process that reads no chain adopted a failure")
	}
	paid := twice(t, func(a, b exchange.ChainPayment) bool {
		return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version
	}, func() (exchange.ChainPayment, error) {
		return h.chain.AdoptFailure(ctx, y.ID, y.JointID, 101, "a-101", "failed by "+y.JointID)
	})
	if paid.Status != exchange.ChainIncluded || paid.TxID != y.JointID {
		t.Fatalf("the payment is %+v", paid)
	}
	_, err = h.chain.FailProposal(ctx, p.ID, y.JointID, "its fee is not booked")
	wantFault(t, err, exchange.CodeStateConflict)
	live, _, err := h.s.LiveAttempt(ctx, p.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(ctx, live.ID, true, 101, "a-101", trx("7"), "SUCCESS"); err == nil {
		t.Fatal("what moved nothing completed the payment")
	}
	if _, err := h.chain.RecordFinal(ctx, live.ID, false, 101, "a-101", trx("7"), "OUT_OF_ENERGY"); err != nil {
		t.Fatal(err)
	}
	if after := has(); !after.Add(trx("7")).Equal(before) {
		t.Errorf("the account had %s TRX and has %s after a fee of 7", before, after)
	}
	if again, err := h.chain.AdoptFailure(ctx, y.ID, y.JointID, 101, "a-101", "failed"); err != nil || again.Status != exchange.ChainParked {
		t.Errorf("adopted again: %s, %v", again.Status, err)
	}
	for range 2 { // the first answer was lost
		if _, err := h.chain.FailProposal(ctx, p.ID, y.JointID, "failed by "+y.JointID); err != nil {
			t.Fatal(err)
		}
	}
	h.readsOn(t)
	h.advanced(t, p.ID)
	if _, err := h.chain.FailProposal(ctx, p.ID, y.JointID, "failed by "+y.JointID); err != nil {
		t.Errorf("failed again, when it has ended: %v", err)
	}
	if p = h.is(t, p, exchange.ProposalFailed, exchange.DetailMoved); p.TxHash != y.JointID {
		t.Errorf("it failed by %q", p.TxHash)
	}
	h.has(t, "1000", "0")
}

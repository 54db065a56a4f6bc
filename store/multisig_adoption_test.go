package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
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
		t.Fatalf("adopted after a note: %+v, %v", paid, err)
	}
	live, _, err := h.s.LiveAttempt(ctx, p.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.RecordFinal(ctx, live.ID, true, 101, "a-101", money.Zero(money.ETH), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalExecuted, exchange.DetailOther)
	h.has(t, "900", "0")
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

// A movement executes one proposal, also where several pay the same. Which one it was is stored only with its payment, and only of what the watch
// has seen.
func TestMovementsExecuteOneProposalEach(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	_, z := h.signing(t, usdt("100"))
	h.found(t, p, "0xother", usdt("100"))
	if _, err := h.chain.AdoptExecution(ctx, y.ID, "0xother", 101, "a-101", "the Safe's event"); err != nil {
		t.Fatal(err)
	}
	_, err := h.chain.AdoptExecution(ctx, z.ID, "0xother", 101, "a-101", "the Safe's event")
	wantFault(t, err, exchange.CodeUnavailable)
	takes := func(tx, index string) string {
		return `UPDATE multisig_payloads SET found_tx = '` + tx + `', found_index = ` + index + `, updated_at = now() WHERE id = ` + quotedID(z.ID)
	}
	h.every(t, "takes the movement of another proposal over", takes("0xother", "0"))
	h.found(t, p, "0xmore", usdt("99"))
	h.refusedFor(t, store.RoleChain, "no movement that the watch has seen", takes("0xmore", "0")) // of another amount
	h.refusedFor(t, store.RoleChain, "no movement that the watch has seen", takes("0xmore", "7"))
	h.found(t, p, "0xsame", usdt("100"))
	h.refusedFor(t, store.RoleChain, "not its payment's", takes("0xsame", "0")) // without the payment
	adopts := `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, adopted, status, created_at, updated_at) VALUES (gen_random_uuid(), ` +
		quotedID(z.PaymentID) + `, 'ethereum', 1, '0xother', 'x', true, 'signed', now(), now())`
	h.refusedFor(t, store.RoleChain, "was not found on the final chain", adopts) // the payment without the payload
	h.refusedFor(t, store.RoleChain, "multisig_payloads_found_key", takes("0xother", "0"), adopts)
}

// A transaction is one payment's, unless another tool sent it and it executed several proposals.
func TestTransactionsAreOfOnePayment(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	q, z := h.ready(t, usdt("50"))
	r, x := h.ready(t, usdt("25"))
	p, err := h.executes(t, p, h.two)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := h.sends(t, p, y)
	if err != nil {
		t.Fatal(err)
	}
	h.found(t, q, ours.TxID, usdt("50"))
	_, err = h.chain.AdoptExecution(ctx, z.ID, ours.TxID, 101, "a-101", "it says so")
	wantFault(t, err, exchange.CodeStateConflict)
	h.found(t, q, "0xbulk", usdt("50"))
	if _, err := h.chain.AdoptExecution(ctx, z.ID, "0xbulk", 102, "a-102", "the Safe's event"); err != nil {
		t.Fatal(err)
	}
	if r, err = h.executes(t, r, h.two); err != nil {
		t.Fatal(err)
	}
	again := h.transaction(t, r, x)
	again.TxID = "0xbulk"
	_, err = h.signer.SaveSignedAttempt(ctx, again)
	wantFault(t, err, exchange.CodeConflict)
	// Another payment than a proposal's does not take part in it, whatever two officers say.
	storetest.Exec(t, h.s, `SET session_replication_role = replica; UPDATE chain_payments SET purpose = 'transfer', fee_wallet_id = NULL, fee_payer = '' WHERE id = '`+
		r.PaymentID.String()+`'; SET session_replication_role = origin`)
	_, err = storetest.Owner(t, h.s).ExecContext(ctx, `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, adopted, status, created_at, updated_at)
		VALUES (gen_random_uuid(), $1, 'ethereum', 1, '0xbulk', 'x', true, 'signed', now(), now())`, r.PaymentID)
	if sqlState(err) != "23505" {
		t.Errorf("another payment takes the transaction over: %v", err)
	}
}

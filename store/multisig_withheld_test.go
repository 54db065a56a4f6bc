package store_test

import (
	"sync"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

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
	wantFault(t, err, exchange.CodeForbidden) // no officer confirmed it
	_, err = h.brings(t, y, held, h.merchant)
	wantFault(t, err, exchange.CodeForbidden) // its key is ours
	_, err = h.brings(t, y, exchange.MultisigOwner{Address: "owner-stranger"}, h.merchant)
	wantFault(t, err, exchange.CodeForbidden)
	err = h.confirms(t, p, y, h.three)
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

// What an officer confirmed may be withheld: then the officer confirms it again, and the first confirmation counts.
func TestOfficersConfirmUntilTheirKeyHasSigned(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("10"))
	confirmed := func() (owner exchange.MultisigOwner) {
		token, err := storetest.PayloadTicket(ctx, h.api, y, p.Amount, h.one)
		for range 2 {
			if err == nil {
				owner, err = h.flows.ConfirmPayload(ctx, y.ID, token)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return owner
	}
	first := confirmed() // and then something withholds the signature
	if waits, err := h.api.PendingPayloads(ctx, h.one.UserID); err != nil || len(waits) != 1 {
		t.Errorf("after the confirmation %d payloads wait for the officer, %v", len(waits), err)
	}
	if second := confirmed(); second != first {
		t.Errorf("confirmed for %+v, and then for %+v", first, second)
	}
	if _, err := h.keySigns(t, y, first); err != nil {
		t.Fatal(err)
	}
	if waits, err := h.api.PendingPayloads(ctx, h.one.UserID); err != nil || len(waits) != 0 {
		t.Errorf("after the signature %d payloads wait for the officer, %v", len(waits), err)
	}
	_, err := storetest.PayloadTicket(ctx, h.api, y, p.Amount, h.one)
	wantFault(t, err, exchange.CodeConflict)
}

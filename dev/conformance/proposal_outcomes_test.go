package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// A stranger sends what the owners signed while our transaction with it is stored and not sent. The money leaves once, the stranger's
// transaction becomes the payment's, and ours still uses its number of the gas wallet.
func TestAnExecutionIsFrontRun(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		s.Fund(t, s.book.account.Address, proposal.Amount) // a second execution would have what to pay with
		l := s.ready(t, proposal)
		ours := s.executed(t, proposal)
		theirs := s.MultisigHarness.(chaintest.Elsewhere).ExecuteElsewhere(t, s.joint(t, l), s.ownersSigned(l))
		for range 3 {
			if _, err := s.step(t, proposal.PaymentID); !pending(err) {
				t.Fatalf("ended before it is final: %v", err)
			}
		}
		d := s.delivers(t, proposal.PaymentID)
		if d.End != activities.DeliveryCompleted || d.TxID != theirs {
			t.Errorf("it ended %+v, want %s", d, theirs)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
		if s.gas == "" {
			return // the transaction on TRON is the same, whoever sends it
		}
		if ours == theirs || s.book.attempts[0].Status != exchange.TxFailed {
			t.Errorf("our transaction %s is %s", ours, s.book.attempts[0].Status)
		}
		next := s.proposes(t, "1") // the gas wallet's numbers go on
		s.ready(t, next)
		s.executed(t, next)
		if d := s.delivers(t, next.PaymentID); d.End != activities.DeliveryCompleted {
			t.Errorf("the next one ended %+v", d)
		}
		s.paid(t, next, next.Amount, exchange.ProposalExecuted)
	}, exchange.Ethereum, exchange.Tron)
}

// The owners outside execute what they signed with a tool of their own, and nothing of ours was sent.
func TestAnExecutionByOtherToolsIsFound(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		l := s.prepares(t, proposal)
		s.look(t, proposal, chain.JointOpen)
		tx := s.elsewhere(t, s.joint(t, l))
		if out := s.look(t, proposal, chain.JointExecuted); out.TxID != tx {
			t.Errorf("executed by %s, want %s", out.TxID, tx)
		}
		s.look(t, proposal, activities.LookSent)
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryCompleted || d.TxID != tx {
			t.Errorf("it ended %+v, want %s", d, tx)
		}
		if out, err := s.executes(t, proposal); err == nil && !out.Completed {
			t.Errorf("executed again: %+v", out)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
	}, exchange.Ethereum, exchange.Tron)
}

// Another tool uses the number of a Safe for something else, before and after our transaction was made.
func TestANumberIsTakenByAnotherTool(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		for _, sent := range []bool{false, true} {
			proposal := s.proposes(t, "2")
			l := s.ready(t, proposal)
			if sent {
				s.executed(t, proposal)
			}
			d := s.joint(t, l).JointDraft
			d.Transfer = nil
			rival, err := s.client.PrepareJoint(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			tx := s.elsewhere(t, rival)
			if sent {
				if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliverySuperseded || d.TxID != tx {
					t.Errorf("it ended %+v, want superseded by %s", d, tx)
				}
				if again, err := s.step(t, proposal.PaymentID); err != nil || again.End != activities.DeliverySuperseded {
					t.Errorf("looked at again it ended %+v, %v", again, err)
				}
			} else {
				if out, err := s.executes(t, proposal); err != nil || out.Parked == "" {
					t.Errorf("executed with a number that is used: %+v, %v", out, err)
				}
				if out := s.look(t, proposal, chain.JointSuperseded); out.TxID != tx {
					t.Errorf("superseded by %s, want %s", out.TxID, tx)
				}
			}
			s.paid(t, proposal, none(), exchange.ProposalSuperseded)
		}
	}, exchange.Ethereum)
}

// An owner who has signed is removed before the execution: nothing is sent, and the payload stays what it is.
func TestAnOwnerIsRemovedBeforeTheExecution(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		owners := []chaintest.Account{s.outside[0], s.outside[1], s.NewAccount(t)} // without the officer
		q, err := s.client.Quorum(t.Context(), s.book.account.Address)
		if err != nil {
			t.Fatal(err)
		}
		change, err := s.client.PrepareJoint(t.Context(), chain.JointDraft{
			Account: s.book.account.Address, Quorum: q, Sequence: q.Sequence, Owners: s.MultisigHarness.(chaintest.OwnersChanging).Change(owners, 2),
		})
		if err != nil {
			t.Fatal(err)
		}
		first := s.proposes(t, "1") // has the number that the change takes
		s.ready(t, first)
		proposal := s.proposes(t, "2")
		s.ready(t, proposal)
		s.elsewhere(t, change)
		out, err := s.executes(t, proposal)
		if err != nil || out.Parked != string(chain.ReasonForeign) || out.TxID != "" {
			t.Errorf("executed: %+v, %v", out, err)
		}
		if p := s.book.payments[proposal.PaymentID]; p.Status != exchange.ChainApproved {
			t.Errorf("the payment is %s", p.Status)
		}
		s.look(t, proposal, chain.JointOpen)
		next := s.proposes(t, "1")
		a := s.payloads()
		if out, err := does[activities.PreparedPayload](t, a, a.PreparePayload, activities.PayloadInput{ProposalID: next.ID}); err == nil {
			t.Errorf("a payload was prepared for other owners than were agreed: %+v", out)
		}
		s.paid(t, proposal, none(), exchange.ProposalApproving)
	}, exchange.Ethereum, exchange.Tron)
}

// The owners lower the threshold on the chain. The signer keeps to the one that two officers agreed to.
func TestAThresholdIsLoweredBeforeTheExecution(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		q, err := s.client.Quorum(t.Context(), s.book.account.Address)
		if err != nil {
			t.Fatal(err)
		}
		owners := append(slices.Clone(s.outside), chaintest.Account{Address: s.officer})
		change, err := s.client.PrepareJoint(t.Context(), chain.JointDraft{
			Account: s.book.account.Address, Quorum: q, Sequence: q.Sequence, Owners: s.MultisigHarness.(chaintest.OwnersChanging).Change(owners, 1),
		})
		if err != nil {
			t.Fatal(err)
		}
		s.prepares(t, s.proposes(t, "1")) // has the number that the change takes
		proposal := s.proposes(t, "2")
		s.signsOutside(t, s.prepares(t, proposal), s.outside[0])
		s.elsewhere(t, change)
		if out, err := s.executes(t, proposal); err == nil && out.TxID != "" {
			t.Errorf("one owner signed, and it was executed: %+v", out)
		}
		s.paid(t, proposal, none(), exchange.ProposalApproving)
	}, exchange.Ethereum)
}

// What was signed on TRON expires: then it is void, and another payload is signed. Before the final chain proves it, no second payload is
// signed, whatever the rows say.
func TestAPayloadExpires(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		s.Fund(t, s.book.account.Address, proposal.Amount)
		old := s.ready(t, proposal)
		s.MultisigHarness.(*tronHarness).AdvanceTime(t, 25*time.Hour)
		s.Mine(t, 1)
		s.look(t, proposal, chain.JointOpen) // another block may take the place of the newest
		s.book.payloads[0].Status = exchange.PayloadVoid
		second := s.prepares(t, proposal)
		s.confirms(second)
		if one, err := s.signer.SignPayload(t.Context(), second.ID, s.officer); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Fatalf("two payloads could both be executed, and it was signed: %+v, %v", one, err)
		}
		s.Finalise(t)
		s.book.payloads = s.book.payloads[:1]
		s.book.payloads[0].Status = exchange.PayloadOpen
		s.look(t, proposal, chain.JointExpired)
		if l := s.book.payloads[0]; l.Status != exchange.PayloadVoid {
			t.Fatalf("the expired payload is %s", l.Status)
		}
		if out, err := s.brings(t, old, signedBy(t, s.outside[1], old.Digest)); err == nil {
			t.Errorf("a signature of an expired payload: %+v", out)
		}
		if out, err := s.executes(t, proposal); err == nil && out.Parked == "" {
			t.Errorf("an expired payload was executed: %+v", out)
		}
		if l := s.ready(t, proposal); l.ID == old.ID || l.JointID == old.JointID {
			t.Fatalf("the second payload is the first: %+v", l)
		}
		tx := s.executed(t, proposal)
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryCompleted || d.TxID != tx {
			t.Errorf("it ended %+v", d)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
	}, exchange.Tron)
}

// Our transaction on TRON expires before a block has it.
func TestAnExecutionExpires(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		s.ready(t, proposal)
		s.executed(t, proposal)
		s.MultisigHarness.(*tronHarness).AdvanceTime(t, 25*time.Hour)
		s.Mine(t, 1)
		s.Finalise(t)
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryExpired {
			t.Errorf("it ended %+v", d)
		}
		if p, l := s.book.payments[proposal.PaymentID], s.book.payloads[0]; p.Status != exchange.ChainApproved || l.Status != exchange.PayloadVoid {
			t.Errorf("the payment is %s, and the payload %s", p.Status, l.Status)
		}
		s.paid(t, proposal, none(), exchange.ProposalApproving)
	}, exchange.Tron)
}

// The token refuses in the block. On a Safe what was signed stays open and is executed again; elsewhere it is over.
func TestAnExecutionFails(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		s.ready(t, proposal)
		s.executed(t, proposal)
		s.MultisigHarness.(chaintest.TokenControls).Pause(t, money.USDT)
		d := s.delivers(t, proposal.PaymentID)
		want, status, payload := activities.DeliveryFailed, exchange.ChainParked, exchange.PayloadVoid
		if s.Rules().Reverting {
			want, status, payload = activities.DeliveryExpired, exchange.ChainApproved, exchange.PayloadOpen
		}
		if p, l := s.book.payments[proposal.PaymentID], s.book.payloads[0]; d.End != want || p.Status != status || l.Status != payload {
			t.Errorf("it ended %+v, the payment is %s, and the payload %s", d, p.Status, l.Status)
		}
		if !s.Rules().Reverting {
			if again, err := s.step(t, proposal.PaymentID); err != nil || again.End != activities.DeliveryFailed {
				t.Errorf("looked at again it ended %+v, %v", again, err)
			}
			s.paid(t, proposal, none(), exchange.ProposalFailed)
			return
		}
		if out, err := s.executes(t, proposal); err != nil || out.Parked == "" {
			t.Errorf("executed while the token is paused: %+v, %v", out, err)
		}
		s.paid(t, proposal, none(), exchange.ProposalApproving)
	})
}

// On Solana each choice of owners is another payload. The network executes one of them, whichever is sent.
func TestOtherOwnersSignInstead(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		s.Fund(t, s.book.account.Address, proposal.Amount)
		first := s.prepares(t, proposal) // for the two outside
		s.signsOutside(t, first, s.outside[0])
		second := s.prepares(t, proposal, s.outside[1].Address, s.officer)
		if first.ID == second.ID || first.RefBlock != second.RefBlock || first.NonceAccount != second.NonceAccount {
			t.Fatalf("%+v and %+v", first, second)
		}
		if out, err := s.brings(t, second, signedBy(t, s.outside[0], second.Digest)); err == nil {
			t.Errorf("an owner whom the message does not name: %+v", out)
		}
		s.signsOutside(t, second, s.outside[1])
		s.signsHeld(t, second)
		tx := s.executed(t, proposal)
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryCompleted || d.TxID != tx {
			t.Errorf("it ended %+v, want %s", d, tx)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
		// The first could be signed by all that it names, and is executed never.
		one, err := s.client.Signature(s.joint(t, first), signedBy(t, s.outside[1], first.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if x, err := s.client.PrepareExecution(t.Context(), s.joint(t, first), append(s.ownersSigned(first), one), chain.ExecutionDraft{Payer: s.gas}); err == nil {
			t.Errorf("executed twice: %+v", x.Unsigned)
		}
	}, exchange.Solana)
}

// A proposal that is to end has its nonce account advanced: only then what was signed is worth nothing. The signer makes no signature
// over a message with another nonce account, which no such advance would end.
func TestAProposalIsGivenUp(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		other, proposal := s.proposes(t, "1"), s.proposes(t, "2")
		foreign, l := s.prepares(t, other), s.prepares(t, proposal, s.outside[0].Address, s.officer)
		s.signsOutside(t, l, s.outside[0])
		d := s.joint(t, l).JointDraft
		d.NonceAccount = foreign.NonceAccount
		j, err := s.client.PrepareJoint(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		text, err := j.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s.confirms(l)
		s.signsNot(t, "another nonce account", l.ID, func() {
			row := &s.book.payloads[1]
			row.Joint, row.Digest, row.JointID, row.NonceAccount, row.RefBlock = text, j.Digest, j.ID, j.NonceAccount, j.RefBlock
		})
		s.signsHeld(t, l)
		ending := s.book.proposals[proposal.ID]
		ending.Ending = exchange.ProposalCancelled
		s.book.proposals[proposal.ID] = ending
		advance := s.look(t, proposal, chain.JointOpen).NoncePaymentID
		if advance == uuid.Nil {
			t.Fatal("nothing ends what was signed")
		}
		if again := s.look(t, proposal, chain.JointOpen).NoncePaymentID; again != advance {
			t.Errorf("a second payment ends it: %s and %s", again, advance)
		}
		s.completes(t, advance)
		s.look(t, proposal, chain.JointSuperseded)
		if got := s.book.payloads[1]; got.Status != exchange.PayloadVoid {
			t.Errorf("the payload is %s", got.Status)
		}
		if p := s.book.proposals[proposal.ID]; p.Ending != exchange.ProposalCancelled {
			t.Errorf("the proposal that was to be cancelled is to be %s", p.Ending)
		}
		if x, err := s.client.PrepareExecution(t.Context(), s.joint(t, l), s.ownersSigned(l), chain.ExecutionDraft{Payer: s.gas}); err == nil {
			t.Errorf("it can be executed still: %+v", x.Unsigned)
		}
		s.look(t, other, chain.JointOpen) // an advance ends one proposal
	}, exchange.Solana)
}

// An execution that waits too long is replaced by one with a higher fee, of the gas wallet, with the same number and the same signatures.
func TestAnExecutionGetsAHigherFee(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		s.ready(t, proposal)
		first := s.executed(t, proposal)
		if _, err := s.step(t, proposal.PaymentID); !pending(err) {
			t.Fatal(err)
		}
		s.clock = func() time.Time { return time.Now().Add(time.Hour) }
		d, err := s.step(t, proposal.PaymentID)
		if err != nil || d.End != activities.DeliveryStuck {
			t.Fatalf("%+v, %v", d, err)
		}
		a := s.signing()
		in := activities.BumpInput{PaymentID: proposal.PaymentID, N: d.N}
		for range 2 {
			out, err := does[activities.Bump](t, a, a.BumpPaymentFee, in)
			if err != nil || out.TxID == "" || out.TxID == first || out.N != 2 {
				t.Fatalf("%+v, %v", out, err)
			}
		}
		s.clock = time.Now
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryCompleted || d.TxID == first {
			t.Errorf("it ended %+v, the first was %s", d, first)
		}
		if n, m := s.book.attempts[0], s.book.attempts[1]; n.Nonce != m.Nonce || n.NonceWallet != s.gasID || m.NonceWallet != s.gasID {
			t.Errorf("the numbers are %d of %s and %d of %s", n.Nonce, n.NonceWallet, m.Nonce, m.NonceWallet)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
	}, exchange.Ethereum)
}

// Proposals of one Safe get numbers one after the other. One whose number is not the next waits, and nothing is sent for it.
func TestProposalsOfOneSafeWaitInLine(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		first, second := s.proposes(t, "1"), s.proposes(t, "2")
		a, b := s.ready(t, first), s.ready(t, second)
		if b.Sequence != a.Sequence+1 {
			t.Fatalf("the numbers are %d and %d", a.Sequence, b.Sequence)
		}
		if out, err := s.executes(t, second); err != nil || out.Parked == "" {
			t.Fatalf("the second went first: %+v, %v", out, err)
		}
		for _, p := range []exchange.Proposal{first, second} {
			s.executed(t, p)
			if d := s.delivers(t, p.PaymentID); d.End != activities.DeliveryCompleted {
				t.Errorf("it ended %+v", d)
			}
			s.paid(t, p, p.Amount, exchange.ProposalExecuted)
		}
	}, exchange.Ethereum)
}

// Nothing is prepared, signed or sent in a freeze.
func TestNothingIsSignedInAFreeze(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		l := s.prepares(t, proposal, s.outside[0].Address, s.officer)
		s.signsOutside(t, l, s.outside[0])
		s.confirms(l)
		s.book.hold = exchange.HoldFrozen
		next := s.proposes(t, "1")
		prepares, signs := s.payloads(), &activities.MultisigSigning{Signer: s.signer, Store: s.book}
		if out, err := does[activities.PreparedPayload](t, prepares, prepares.PreparePayload, activities.PayloadInput{ProposalID: next.ID}); err != nil || out.Waits == "" {
			t.Errorf("prepared: %+v, %v", out, err)
		}
		in := activities.SignPayloadInput{PayloadID: l.ID, Owner: s.officer}
		if out, err := does[activities.OwnerSigned](t, signs, signs.SignPayload, in); err != nil || out.Waits == "" || len(s.book.signatures) != 1 {
			t.Errorf("signed: %+v, %v", out, err)
		}
		s.book.hold = exchange.HoldSentBefore
		if out, err := does[activities.OwnerSigned](t, signs, signs.SignPayload, in); err == nil {
			t.Errorf("signed after money left the wallet unaccounted: %+v", out)
		}
		s.book.hold = exchange.HoldNone
		s.signsHeld(t, l)
		s.book.hold = exchange.HoldFrozen
		if out, err := s.executes(t, proposal); err != nil || out.Waits == "" || out.TxID != "" {
			t.Errorf("executed: %+v, %v", out, err)
		}
		s.book.hold = exchange.HoldNone
		s.executed(t, proposal)
		s.book.hold = exchange.HoldFrozen
		if _, err := s.step(t, proposal.PaymentID); !pending(err) {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(s.book.attempts, func(a exchange.ChainAttempt) bool { return a.PaymentID == proposal.PaymentID }); s.book.attempts[i].Status != exchange.TxSigned {
			t.Errorf("sent in a freeze: %s", s.book.attempts[i].Status)
		}
	})
}

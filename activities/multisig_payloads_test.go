package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// agreement is a proposal with payloads, and the network that they are for.
type agreement struct {
	activities.PayloadStore
	chain.Client
	n        exchange.Network
	account  exchange.MultisigAccount
	proposal exchange.Proposal
	payment  exchange.ChainPayment
	payloads []exchange.MultisigPayload
	outcomes map[string]chain.JointOutcome // by the joint transaction's id
	silent   map[string]error
	refuses  error // the next payload
	prepared int
	advance  exchange.ChainPayment // of the nonce account
	proves   bool                  // the advance, when it is final
	closed   int
	adopted  string // the transaction that failed and was adopted
	failed   string // the transaction by which the proposal failed
	hold     exchange.SigningHold
	owners   *look // whom the chain shows; nil for those of newCouncil
}

// newAgreement is an approved payment of an account with so many open payloads.
func newAgreement(t *testing.T, n exchange.Network, open int) *agreement {
	t.Helper()
	council := newCouncil(n, true)
	a := &agreement{n: n, account: council.accounts[0], outcomes: map[string]chain.JointOutcome{}, silent: map[string]error{}}
	a.account.Status = exchange.MultisigActive
	a.payment = exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForProposal, ObjectID: uuid.New(), Network: n, Amount: money.Must(money.USDT, "100"), WalletID: a.account.ID,
		FromAddress: a.account.Address, ToAddress: "payee", ApprovedBy: "officers", Status: exchange.ChainApproved,
	}
	if n == exchange.Solana {
		a.payment.FeePayer, a.payment.FeeWalletID = "gas", uuid.New()
	}
	a.payment.IntentHash = a.payment.Intent()
	a.proposal = exchange.Proposal{ID: a.payment.ObjectID, PaymentID: a.payment.ID, WalletID: a.account.ID, Network: n, Status: exchange.ProposalSigning}
	for i := range open {
		j := chain.Joint{JointDraft: chain.JointDraft{Account: a.account.Address}, ID: string(rune('a' + i))}
		text, err := j.Encode()
		if err != nil {
			t.Fatal(err)
		}
		y := exchange.MultisigPayload{ID: uuid.New(), ProposalID: a.proposal.ID, PaymentID: a.payment.ID, Network: n, Joint: text, JointID: j.ID, Status: exchange.PayloadOpen}
		if n == exchange.Solana {
			y.NonceAccount = "nonce account"
		}
		a.payloads = append(a.payloads, y)
	}
	return a
}

func (a *agreement) activities() *activities.MultisigPayloads {
	return &activities.MultisigPayloads{Store: a, Client: a, Poll: time.Nanosecond}
}

func (a *agreement) Network() exchange.Network { return a.n }

func (a *agreement) Traits() chain.Traits { return chain.Traits{Sponsored: a.n == exchange.Solana} }

func (a *agreement) ProposalByID(context.Context, uuid.UUID) (exchange.Proposal, error) {
	return a.proposal, nil
}

func (a *agreement) ChainPayment(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return a.payment, nil
}

func (a *agreement) LiveAttempts(context.Context, uuid.UUID) ([]exchange.ChainAttempt, error) {
	if a.payment.Status != exchange.ChainIncluded {
		return nil, nil
	}
	return []exchange.ChainAttempt{{TxID: a.payment.TxID, Status: exchange.TxIncluded}}, nil
}

func (a *agreement) SigningHold(context.Context, uuid.UUID) (exchange.SigningHold, error) {
	return a.hold, nil
}

func (a *agreement) MultisigAccountByID(context.Context, uuid.UUID) (exchange.MultisigAccount, error) {
	return a.account, nil
}

func (a *agreement) Payloads(context.Context, uuid.UUID) ([]exchange.MultisigPayload, error) {
	return a.payloads, nil
}

func (a *agreement) Payload(_ context.Context, id uuid.UUID) (exchange.MultisigPayload, error) {
	for _, y := range a.payloads {
		if y.ID == id {
			return y, nil
		}
	}
	return exchange.MultisigPayload{}, exchange.Errorf(exchange.CodeNotFound, "no payload")
}

func (a *agreement) end(to exchange.PayloadStatus) {
	for i := range a.payloads {
		a.payloads[i].Status = to
	}
}

// ClosePayload ends the payloads when the advance is final and proves that.
func (a *agreement) ClosePayload(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	if a.closed++; a.closed == 1 && a.advance.ID == uuid.Nil {
		a.advance = exchange.ChainPayment{ID: uuid.New(), Purpose: exchange.ForNonceAdvance, Status: exchange.ChainApproved}
	}
	if a.advance.Status == exchange.ChainCompleted && a.proves {
		a.end(exchange.PayloadVoid)
	}
	return a.advance, nil
}

func (a *agreement) AdoptExecution(_ context.Context, _ uuid.UUID, tx string, _ uint64, _, _ string) (exchange.ChainPayment, error) {
	a.payment.Status, a.payment.TxID = exchange.ChainIncluded, tx
	return a.payment, nil
}

// AdoptFailure changes no payment that has had the transaction.
func (a *agreement) AdoptFailure(_ context.Context, _ uuid.UUID, tx string, _ uint64, _, _ string) (exchange.ChainPayment, error) {
	if a.adopted == "" {
		a.adopted, a.payment.Status, a.payment.TxID = tx, exchange.ChainIncluded, tx
	}
	return a.payment, nil
}

func (a *agreement) FailProposal(_ context.Context, _ uuid.UUID, tx, _ string) (exchange.Proposal, error) {
	a.failed = tx
	a.end(exchange.PayloadVoid)
	return a.proposal, nil
}

func (a *agreement) VoidPayload(context.Context, uuid.UUID, string) (exchange.Proposal, error) {
	a.end(exchange.PayloadVoid)
	return a.proposal, nil
}

func (a *agreement) StorePayload(_ context.Context, y exchange.MultisigPayload) (exchange.MultisigPayload, error) {
	a.payloads = append(a.payloads, y)
	return y, nil
}

func (a *agreement) Quorum(context.Context, string) (chain.Quorum, error) {
	if a.owners != nil {
		return a.owners.q, a.owners.err
	}
	return agreed(nil).q, nil
}

func (a *agreement) PrepareJoint(_ context.Context, d chain.JointDraft) (chain.Joint, error) {
	if err := a.refuses; err != nil {
		a.refuses = nil
		return chain.Joint{}, err
	}
	a.prepared++
	return chain.Joint{JointDraft: d, ID: "prepared", Digest: make([]byte, 32)}, nil
}

func (a *agreement) CheckJoint(chain.Joint) error { return nil }

func (a *agreement) Signature(chain.Joint, []byte) (chain.OwnerSignature, error) {
	return chain.OwnerSignature{}, errors.New("none is brought here")
}

func (a *agreement) PrepareExecution(context.Context, chain.Joint, []chain.OwnerSignature, chain.ExecutionDraft) (chain.Execution, error) {
	return chain.Execution{}, errors.New("none is sent here")
}

func (a *agreement) SignExecution(chain.Execution, ...chain.Key) (chain.Signed, error) {
	return chain.Signed{}, errors.New("none is sent here")
}

func (a *agreement) Outcome(_ context.Context, j chain.Joint, _ ...string) (chain.JointOutcome, error) {
	return a.outcomes[j.ID], a.silent[j.ID]
}

// look runs one try of LookAtPayload.
func (a *agreement) look(t *testing.T) (activities.ProposalLook, error) {
	t.Helper()
	return tried[activities.ProposalLook](t, a.activities(), a.activities().LookAtPayload, activities.PayloadInput{ProposalID: a.proposal.ID})
}

// tried runs one try of an activity.
func tried[T any](t *testing.T, of, activity, in any) (out T, err error) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(of)
	v, err := env.ExecuteActivity(activity, in)
	if err == nil {
		err = v.Get(&out)
	}
	return out, err
}

// The nonce account of a proposal that is to end is advanced also while strangers' transactions hide what became of it, and the final advance ends it.
// What stays undecided after that is a failure that operators see.
func TestNonceAdvancesWithoutAnOutcome(t *testing.T) {
	t.Parallel()
	hidden := chain.Errorf(chain.ReasonUnavailable, "more than 200 transactions name the nonce account")
	for _, c := range []struct {
		name     string
		outcomes map[string]chain.JointState
		ending   exchange.ProposalStatus
		state    string
		closes   bool
		fails    bool
	}{
		{"to end, and open", map[string]chain.JointState{"a": chain.JointOpen, "b": chain.JointOpen}, exchange.ProposalCancelled, "open", true, false},
		{"to end, and hidden", nil, exchange.ProposalCancelled, "", true, false},
		{"to end, and one is hidden", map[string]chain.JointState{"a": chain.JointOpen}, exchange.ProposalCancelled, "", true, false},
		{"to end, and one was executed", map[string]chain.JointState{"b": chain.JointExecuted}, exchange.ProposalCancelled, "executed", false, false},
		{"to end, and in a block", map[string]chain.JointState{"a": chain.JointOpen, "b": chain.JointIncluded}, exchange.ProposalCancelled, "included", false, false},
		{"not to end, and hidden", nil, "", "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAgreement(t, exchange.Solana, 2)
			a.proposal.Ending = c.ending
			for _, y := range a.payloads {
				if state, said := c.outcomes[y.JointID]; said {
					a.outcomes[y.JointID] = chain.JointOutcome{State: state, TxID: "tx"}
				} else {
					a.silent[y.JointID] = hidden
				}
			}
			l, err := a.look(t)
			if (err != nil) != c.fails || l.State != c.state || (a.closed > 0) != c.closes || l.NoncePaymentID != a.advance.ID {
				t.Fatalf("the look is %+v, %v; closed %d times", l, err, a.closed)
			}
			if len(c.outcomes) > 0 || !c.closes {
				return
			}
			a.advance.Status = exchange.ChainCompleted
			if _, err := a.look(t); err == nil {
				t.Error("what the advance does not prove is no failure")
			}
			a.proves = true
			if l, err := a.look(t); err != nil || l != (activities.ProposalLook{}) || a.payloads[0].Open() {
				t.Errorf("after the advance the look is %+v, %v", l, err)
			}
		})
	}
}

// On TRON the account pays for a transaction that fails, whoever sent it: it becomes the payment's, whose delivery books its fee, before the proposal
// fails by it.
func TestFailureByAnotherIsAdopted(t *testing.T) {
	t.Parallel()
	a := newAgreement(t, exchange.Tron, 1)
	a.outcomes["a"] = chain.JointOutcome{State: chain.JointFailed, TxID: "a", Location: chain.Location{Block: chain.Block{Number: 7, ID: "seven"}}}
	l, err := a.look(t)
	if err != nil || l.State != activities.LookSent || a.adopted != "a" || a.failed != "" {
		t.Fatalf("the look is %+v, %v; adopted %q, failed by %q", l, err, a.adopted, a.failed)
	}
	if l, err = a.look(t); err != nil || l.State != activities.LookSent || a.failed != "" {
		t.Errorf("while its delivery books the fee the look is %+v, %v; failed by %q", l, err, a.failed)
	}
	a.payment.Status = exchange.ChainParked // its fee is booked
	if l, err = a.look(t); err != nil || l.State != string(chain.JointFailed) || a.failed != "a" {
		t.Errorf("then the look is %+v, %v; failed by %q", l, err, a.failed)
	}

	a = newAgreement(t, exchange.Solana, 1) // our gas wallet pays, and only we can have sent it
	a.outcomes["a"] = chain.JointOutcome{State: chain.JointFailed, TxID: "tx"}
	if _, err := a.look(t); err != nil || a.adopted != "" || a.failed != "tx" {
		t.Errorf("on Solana %q was adopted, failed by %q; %v", a.adopted, a.failed, err)
	}
}

// What an account lacks for the fee is said where the account pays it, so that it is brought. Elsewhere it is the gas wallet's, and a refusal.
func TestPayloadNeedsGas(t *testing.T) {
	t.Parallel()
	prepare := func(a *agreement) (activities.PreparedPayload, error) {
		return tried[activities.PreparedPayload](t, a.activities(), a.activities().PreparePayload, activities.PayloadInput{ProposalID: a.proposal.ID})
	}
	a := newAgreement(t, exchange.Tron, 0)
	a.refuses = &chain.Error{Reason: chain.ReasonGas, Detail: "too little", Missing: money.Must(money.TRX, "20")}
	if out, err := prepare(a); err != nil || out.Gas == nil || out.Gas.Missing != "20.000000" || out.Refused != "" {
		t.Errorf("an account that pays itself: %+v, %v", out, err)
	}
	if out, err := prepare(a); err != nil || out.PayloadID == uuid.Nil || a.prepared != 1 {
		t.Errorf("with gas: %+v, %v", out, err)
	}
	if out, err := prepare(a); err != nil || out.PayloadID != a.payloads[0].ID || a.prepared != 1 {
		t.Errorf("prepared again: %+v, %v", out, err)
	}
	a = newAgreement(t, exchange.Tron, 0)
	a.hold = exchange.HoldFrozen
	if out, err := prepare(a); err != nil || out.Waits != string(exchange.HoldFrozen) || a.prepared != 0 {
		t.Errorf("frozen: %+v, %v", out, err)
	}
	a = newAgreement(t, exchange.Tron, 0)
	a.refuses = chain.Errorf(chain.ReasonReverts, "it would fail")
	if out, err := prepare(a); err != nil || out.Refused != string(chain.ReasonReverts) || out.Detail == "" || out.Gas != nil {
		t.Errorf("refused: %+v, %v", out, err)
	}
}

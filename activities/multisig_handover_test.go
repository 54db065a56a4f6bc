package activities_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// begun is an account on TRON that begins with a key of ours, and what gives it to its owners, of which the network says a state.
func begun(state chain.JointState) (*council, *activities.Multisigs) {
	w := newCouncil(exchange.Tron, false)
	w.accounts[0].Address, w.accounts[0].OpeningAddress, w.outcome = "begun", "begun", state
	w.handover = exchange.MultisigHandover{ID: uuid.New(), AccountID: w.id(), TxID: "tx", Joint: []byte(`{"id": "tx"}`), Raw: []byte("signed"), Status: exchange.HandoverSigned}
	return w, &activities.Multisigs{Store: w, Client: giving{council: w}, Poll: 1}
}

func TestDeliverHandover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		state  chain.JointState
		change func(*council)
		given  bool
		ends   exchange.HandoverStatus
		fails  string
		sent   int
	}{
		{"executed", chain.JointExecuted, nil, true, exchange.HandoverExecuted, "", 0},
		{"expired", chain.JointExpired, nil, false, exchange.HandoverExpired, "", 0},
		{"in no block, though every node refuses it", chain.JointOpen, nil, false, exchange.HandoverSigned, activities.TypePending, 1},
		{"in a block that is not final", chain.JointIncluded, nil, false, exchange.HandoverSigned, activities.TypePending, 0},
		{"in a freeze", chain.JointOpen, func(w *council) { w.frozen = true }, false, exchange.HandoverSigned, activities.TypePending, 0},
		{"it did not do what it says", chain.JointFailed, nil, false, exchange.HandoverSigned, string(exchange.CodeStateConflict), 0},
		{"executed before", chain.JointOpen, func(w *council) { w.handover.Status = exchange.HandoverExecuted }, true, exchange.HandoverExecuted, "", 0},
		{"expired before", chain.JointOpen, func(w *council) { w.handover.Status = exchange.HandoverExpired }, false, exchange.HandoverExpired, "", 0},
	} {
		w, m := begun(c.state)
		if c.change != nil {
			c.change(w)
		}
		out, err := m.DeliverHandover(t.Context(), activities.MultisigInput{AccountID: w.id()})
		if e, _ := errors.AsType[*temporal.ApplicationError](err); (err != nil) != (c.fails != "") || err != nil && e.Type() != c.fails {
			t.Errorf("%s: %v, want %q", c.name, err, c.fails)
		}
		if out.Executed != c.given || w.handover.Status != c.ends || w.sent != c.sent {
			t.Errorf("%s: %+v, it is %s and was sent %d times", c.name, out, w.handover.Status, w.sent)
		}
	}
}

// The place of an account that begins with a key is the key's, and what it lacks is what its owners cost, less what a final block says that it has.
func TestPlaceOfABegunAccount(t *testing.T) {
	t.Parallel()
	w, m := begun("")
	in := activities.MultisigInput{AccountID: w.id()}
	if place, err := m.PlaceMultisig(t.Context(), in); err != nil || place.Address != "begun" || !place.Rent.Equal(money.Must(money.TRX, "101")) {
		t.Errorf("%+v, %v", place, err)
	}
	for units, want := range map[int64]string{0: "101.000000", 1: "100.999999", 101_000_000: "0.000000", 200_000_000: "0.000000"} {
		w.holds = func(int) holds { return holds{units, 90} }
		if lack, err := m.ReadLack(t.Context(), in); err != nil || lack.Missing.String() != want {
			t.Errorf("with %d it lacks %s, %v", units, lack.Missing, err)
		}
	}
	w.paidAt = 91
	if lack, err := m.ReadLack(t.Context(), in); err == nil {
		t.Errorf("before its payment it lacks %s", lack.Missing)
	}
	w.accounts[0].Address = "mallory's"
	if _, err := m.PlaceMultisig(t.Context(), in); err == nil {
		t.Error("it is placed elsewhere")
	}
	if state, err := w.verifies(t, m, true); err == nil || !strings.Contains(err.Error(), "mallory's") || w.looked != 0 {
		t.Errorf("it is %s, %v", state.Status, err)
	}
}

// refusing signs nothing, for a reason.
type refusing struct {
	err  error
	hold exchange.SigningHold
}

func (r refusing) SignHandover(context.Context, uuid.UUID) (exchange.MultisigHandover, exchange.SigningHold, error) {
	return exchange.MultisigHandover{}, r.hold, r.err
}

func TestSignHandoverSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by    refusing
		want  activities.SignedHandover
		fails bool
	}{
		"a freeze":       {refusing{hold: exchange.HoldFrozen}, activities.SignedHandover{Waits: string(exchange.HoldFrozen)}, false},
		"coins":          {refusing{err: chain.Errorf(chain.ReasonGas, "too little")}, activities.SignedHandover{Lacks: true}, false},
		"another reason": {refusing{err: chain.Errorf(chain.ReasonForeign, "others own it")}, activities.SignedHandover{}, true},
	} {
		out, err := (&activities.MultisigHandovers{Signer: c.by}).SignHandover(t.Context(), activities.MultisigInput{AccountID: uuid.New()})
		if (err != nil) != c.fails || out != c.want {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// An account on TRON gets one key to begin with, also when the step dies and is repeated; accounts elsewhere, and those that are adopted, get none.
func TestMakeOpeningKey(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Tron, false)
	m, in := &activities.MultisigKeys{Keys: w, Store: w}, activities.MultisigInput{AccountID: w.id()}
	w.failing = exchange.Errorf(exchange.CodeUnavailable, "the database is away")
	if err := m.MakeOwnerKeys(t.Context(), in); err == nil {
		t.Error("a key that can't be stored is no failure")
	}
	if err := m.MakeOwnerKeys(t.Context(), in); err != nil || w.accounts[0].OpeningAddress == "" {
		t.Fatalf("it begins with %q, %v", w.accounts[0].OpeningAddress, err)
	}
	first := w.accounts[0].OpeningAddress
	if err := m.MakeOwnerKeys(t.Context(), in); err != nil || w.accounts[0].OpeningAddress != first {
		t.Errorf("it begins with %s, then with %s: %v", first, w.accounts[0].OpeningAddress, err)
	}
	for _, other := range []*council{newCouncil(exchange.Tron, true), newCouncil(exchange.Solana, false)} {
		err := (&activities.MultisigKeys{Keys: other, Store: other}).MakeOwnerKeys(t.Context(), activities.MultisigInput{AccountID: other.id()})
		if err != nil || other.accounts[0].OpeningAddress != "" {
			t.Errorf("one on %s begins with %q: %v", other.n, other.accounts[0].OpeningAddress, err)
		}
	}
}

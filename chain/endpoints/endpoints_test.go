package endpoints

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kivuko/chain"
)

// stub is a node that responds with its name, or fails.
type stub struct {
	name   string
	down   error // of every query
	alien  error // of the proof
	proofs int
}

func (s *stub) String() string { return "node " + s.name }

func (s *stub) Prove(context.Context) error {
	s.proofs++
	return s.alien
}

var errBroken = errors.New("broken")

func name(_ context.Context, s *stub) (string, error) { return s.name, s.down }

const retry = time.Minute

func TestFailedNodesAreAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &stub{name: "a", down: errBroken}, &stub{name: "b"}
		p := New([]*stub{a, b}, time.Second, retry)
		expect := func(want string) {
			t.Helper()
			if got, err := Ask(t.Context(), p, name); err != nil || got != want {
				t.Fatalf("%q answered, %v; want %q", got, err, want)
			}
		}
		expect("b")
		a.down = nil
		expect("b") // a is not queried again at once
		time.Sleep(retry + time.Second)
		expect("a")
		if a.proofs != 2 || b.proofs != 1 {
			t.Errorf("%d and %d proofs: a failed once and must prove itself again, b not", a.proofs, b.proofs)
		}
		a.down, b.down = errBroken, errBroken
		_, err := Ask(t.Context(), p, name)
		if chain.ReasonOf(err) != chain.ReasonUnavailable || !strings.Contains(err.Error(), "node b") || !errors.Is(err, errBroken) {
			t.Errorf("no node responds: %v", err)
		}
	})
}

func TestNodesOfAnotherNetworkAreNotAsked(t *testing.T) {
	a, b := &stub{name: "a", alien: chain.Errorf(chain.ReasonUnavailable, "of another network")}, &stub{name: "b"}
	p := New([]*stub{a, b}, time.Second, retry)
	var asked []string
	for range 2 {
		_, err := Ask(t.Context(), p, func(_ context.Context, s *stub) (string, error) {
			asked = append(asked, s.name)
			return "", nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(asked, []string{"b", "b"}) {
		t.Errorf("asked %v", asked)
	}
}

func TestRefusalIsAnAnswer(t *testing.T) {
	refusal := chain.Errorf(chain.ReasonProtocol, "nonsense")
	a, b := &stub{name: "a", down: refusal}, &stub{name: "b"}
	p := New([]*stub{a, b}, time.Second, retry)
	for range 2 { // and is no fault of the node
		if _, err := Ask(t.Context(), p, name); !errors.Is(err, refusal) {
			t.Errorf("%v, want the refusal", err)
		}
	}
	if a.proofs != 1 {
		t.Errorf("proven %d times", a.proofs)
	}
}

func TestANodeThatIsUnableIsNotDown(t *testing.T) {
	unable := chain.Wrap(chain.ReasonUnavailable, ErrUnable, "no history")
	a, b := &stub{name: "a", down: unable}, &stub{name: "b"}
	p := New([]*stub{a, b}, time.Second, retry)
	if got, err := Ask(t.Context(), p, name); err != nil || got != "b" {
		t.Errorf("%q answered, %v; want b", got, err)
	}
	a.down = nil
	if got, err := Ask(t.Context(), p, name); err != nil || got != "a" || a.proofs != 1 {
		t.Errorf("%q answered another query, %v, after %d proofs; want a", got, err, a.proofs)
	}
}

func TestQuestionsHaveAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New([]*stub{{name: "a"}, {name: "b"}}, time.Second, retry)
		hang := func(ctx context.Context, _ *stub) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		began := time.Now()
		if _, err := Ask(t.Context(), p, hang); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		// A caller who gives up is not a failure of the node.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fresh := New([]*stub{{name: "c"}}, time.Second, retry)
		if _, err := Ask(ctx, fresh, hang); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if fresh.members[0].downUntil.Load() != 0 {
			t.Error("the node counts as down")
		}
	})
}

func TestBestAnswerToAnOffer(t *testing.T) {
	states := map[string]chain.BroadcastState{"a": chain.BroadcastRejected, "c": chain.BroadcastKnown, "d": chain.BroadcastAccepted}
	offer := func(_ context.Context, s *stub) (chain.Broadcast, error) {
		return chain.Broadcast{State: states[s.name]}, s.down
	}
	for _, c := range []struct {
		nodes string
		want  chain.BroadcastState
	}{
		{"a", chain.BroadcastRejected},
		{"ab", chain.BroadcastUnknown}, // b may have accepted it
		{"cab", chain.BroadcastKnown},
		{"bdac", chain.BroadcastAccepted},
	} {
		var nodes []*stub
		for _, n := range strings.Split(c.nodes, "") {
			s := &stub{name: n}
			if n == "b" {
				s.down = errBroken
			}
			nodes = append(nodes, s)
		}
		got := Offer(t.Context(), New(nodes, time.Second, retry), offer)
		if got.State != c.want || (got.State == chain.BroadcastUnknown) != (got.Code == CodeNoAnswer) {
			t.Errorf("%s: %+v, want %s", c.nodes, got, c.want)
		}
	}
}

package daraja_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
)

// TestTokenInvalidation: another holder of the credentials invalidates our token; the next call renews it.
func TestTokenInvalidation(t *testing.T) {
	for _, stringly := range []bool{false, true} {
		w := newHarness(t, func(s *sandbox.Config, _ *daraja.Config) { s.StringExpiry = stringly })
		for range 3 {
			a := payout(payer)
			if s := w.client.SubmitPayout(t.Context(), a); s.State != exchange.Accepted {
				t.Fatalf("got %+v", s)
			}
			w.operator.RevokeToken()
		}
		w.settle()
		if w.moved(sandbox.Payout) != 1500 {
			t.Errorf("moved %d", w.moved(sandbox.Payout))
		}
	}
}

// TestTwoHolders: two clients with one key invalidate each other's tokens; every prompt is made once or refused.
func TestTwoHolders(t *testing.T) {
	w := newHarness(t, nil)
	other := newHarness(t, nil) // only for its receiver
	cfg := daraja.Config{
		BaseURL: w.operator.URL(), ConsumerKey: sandbox.DefaultConsumerKey, ConsumerSecret: sandbox.DefaultConsumerSecret,
		Shortcode: sandbox.DefaultShortcode, Passkey: sandbox.DefaultPasskey, CallbackBase: other.receiver.URL + "/cb",
	}
	second, err := daraja.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var accepted sync.Map
	var group sync.WaitGroup
	for i := range 40 {
		client := w.client
		if i%2 == 1 {
			client = second
		}
		group.Go(func() {
			a := collection(exchange.Phone(fmt.Sprintf("2547123456%02d", i)))
			switch s := client.SubmitCollection(t.Context(), a); s.State {
			case exchange.Accepted:
				accepted.Store(s.Refs.CheckoutRequestID, true)
			case exchange.Refused:
				if !s.Transient {
					t.Errorf("got %+v", s)
				}
			default:
				t.Errorf("got %+v", s)
			}
		})
	}
	group.Wait()
	w.settle()
	prompts := w.operator.Books().Prompts
	for _, p := range prompts {
		if _, known := accepted.Load(p.CheckoutRequestID); !known {
			t.Errorf("a prompt was made without an acknowledgement: %+v", p)
		}
		accepted.Delete(p.CheckoutRequestID)
	}
	accepted.Range(func(id, _ any) bool {
		t.Errorf("a prompt was acknowledged and not made: %v", id)
		return true
	})
}

// TestConcurrency: many payouts at once, each submitted twice at the same moment, pay once each.
func TestConcurrency(t *testing.T) {
	w := newHarness(t, nil)
	var group sync.WaitGroup
	for i := range 25 {
		a := payout(exchange.Phone(fmt.Sprintf("2547123456%02d", i)))
		for range 2 {
			group.Go(func() {
				if s := w.client.SubmitPayout(t.Context(), a); s.State != exchange.Accepted {
					t.Errorf("got %+v", s)
				}
			})
		}
	}
	group.Wait()
	w.settle()
	if w.moved(sandbox.Payout) != 25*500 {
		t.Errorf("moved %d", w.moved(sandbox.Payout))
	}
}

// TestGatewayFaults: no fault of the gateway at any endpoint counts as a success or moves money.
func TestGatewayFaults(t *testing.T) {
	for _, b := range sandbox.Behaviours() {
		if b.Magic != "" || !slices.Contains(b.Ops, sandbox.OpPrompt) {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			w := newHarness(t, nil)
			a := collection(payer)
			w.collect(&a)
			w.settle()
			a.CheckoutRequestID = w.operator.Books().Prompts[0].CheckoutRequestID
			before := len(w.operator.Books().Effects)
			set := func(op string) {
				t.Helper()
				if err := w.operator.Set(sandbox.Fault{Behaviour: b.Name, Op: op, Times: 2}); err != nil {
					t.Fatal(err)
				}
			}
			now := time.Now()
			for op, call := range map[string]func() bool{
				sandbox.OpPrompt: func() bool {
					return w.client.SubmitCollection(t.Context(), collection(payer)).State == exchange.Accepted
				},
				sandbox.OpPayout:   func() bool { return w.client.SubmitPayout(t.Context(), payout(payer)).State == exchange.Accepted },
				sandbox.OpQuery:    func() bool { return w.client.Resolve(t.Context(), a).State != exchange.SeenNoAnswer },
				sandbox.OpStatus:   func() bool { return w.client.Resolve(t.Context(), payout(payer)).State != exchange.SeenNoAnswer },
				sandbox.OpBalance:  func() bool { _, err := w.client.Balance(t.Context()); return err == nil },
				sandbox.OpRegister: func() bool { return w.client.RegisterC2B(t.Context()) == nil },
				sandbox.OpReversal: func() bool {
					return w.client.Reverse(t.Context(), payout(payer), w.operator.Books().Effects[0].Receipt, a.Amount).State == exchange.Accepted
				},
				sandbox.OpPull: func() bool {
					_, _, _, err := w.client.Pull(t.Context(), now.Add(-time.Hour), now, 0)
					return err == nil
				},
			} {
				set(op)
				if call() {
					t.Errorf("%s counts as a success", op)
				}
				w.operator.Reset()
			}
			w.settle()
			if effects := w.operator.Books().Effects; len(effects) != before {
				t.Errorf("money moved: %+v", effects[before:])
			}
		})
	}
}

// TestReceiverIsDown: the operator does not repeat a callback that was not received.
func TestReceiverIsDown(t *testing.T) {
	w := newHarness(t, nil)
	w.receiver.status = http.StatusInternalServerError
	a := collection(payer)
	w.collect(&a)
	w.release()
	if got := len(w.results(a, exchange.CallbackResult)); got != 1 {
		t.Errorf("%d deliveries, want 1", got)
	}
}

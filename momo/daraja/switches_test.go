package daraja_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
)

// TestPromptCodes: each result code arrives by callback and by query with the outcome of the catalogue.
func TestPromptCodes(t *testing.T) {
	w := newHarness(t, nil)
	for digits, row := range map[string]struct {
		code      string
		state     exchange.ObservationState
		soft, our bool
	}{
		"01": {code: "1", state: exchange.SeenFailed},
		"02": {code: "2", state: exchange.SeenFailed},
		"03": {code: "3", state: exchange.SeenFailed},
		"04": {code: "4", state: exchange.SeenFailed},
		"08": {code: "8", state: exchange.SeenFailed, our: true},
		"10": {code: "2001", state: exchange.SeenFailed},
		"11": {code: "1019", state: exchange.SeenFailed, soft: true},
		"12": {code: "1032", state: exchange.SeenFailed, soft: true},
		"13": {code: "1037", state: exchange.SeenFailed, soft: true},
		"14": {code: "17", state: exchange.SeenFailed},
		"15": {code: "26", state: exchange.SeenFailed},
		"16": {code: "1001", state: exchange.SeenFailed},
		"17": {code: "1025", state: exchange.SeenFailed},
		"18": {code: "9999", state: exchange.SeenFailed},
		"19": {code: "2028", state: exchange.SeenFailed, our: true},
		"20": {code: "SFC_IC0003", state: exchange.SeenFailed, our: true},
		"21": {code: "8006", state: exchange.SeenFailed},
		"22": {code: "7461", state: exchange.SeenUnknown},
	} {
		t.Run(digits, func(t *testing.T) {
			a := collection(magic(digits))
			if s := w.collect(&a); s.State != exchange.Accepted {
				t.Fatalf("got %+v", s)
			}
			w.settle()
			for channel, o := range map[string]exchange.Observation{"callback": w.result(a), "query": w.client.Resolve(t.Context(), a)} {
				if o.Code != row.code || o.State != row.state || o.Soft != row.soft || o.Config != row.our || o.Receipt != "" {
					t.Errorf("%s: got %+v", channel, o)
				}
			}
		})
	}
	if effects := w.operator.Books().Effects; len(effects) != 0 {
		t.Errorf("money moved: %+v", effects)
	}
}

// TestPromptRefusals: nothing is queued, and the operator's books confirm it.
func TestPromptRefusals(t *testing.T) {
	w := newHarness(t, nil)
	for digits, want := range map[string]exchange.Submission{
		"80": {State: exchange.Refused, Transient: true},
		"81": {State: exchange.Refused, Config: true},
		"82": {State: exchange.Refused, Config: true},
		"83": {State: exchange.Refused, Transient: true},
		"84": {State: exchange.Refused},
		"85": {State: exchange.Refused, Transient: true},
		"86": {State: exchange.Unknown}, // looks like 24, where money moves
	} {
		a := collection(magic(digits))
		s := w.collect(&a)
		if s.State != want.State || s.Transient != want.Transient || s.Config != want.Config {
			t.Errorf("%s: got %+v", digits, s)
		}
	}
	if b := w.operator.Books(); len(b.Prompts) != 0 || len(b.Effects) != 0 {
		t.Errorf("got %+v", b)
	}
}

// TestAcceptedButLost: the caller has no response, yet the payer pays. Only the callback's address connects them.
func TestAcceptedButLost(t *testing.T) {
	for _, digits := range []string{"24", "47", "48", "49"} {
		t.Run(digits, func(t *testing.T) {
			w := newHarness(t, nil)
			a := collection(magic(digits))
			if s := w.collect(&a); s.State != exchange.Unknown || s.Refs != (exchange.Refs{}) || s.Cause == nil {
				t.Fatalf("got %+v", s)
			}
			w.settle()
			seen := w.result(a)
			if seen.State != exchange.SeenSucceeded || seen.Refs.CheckoutRequestID == "" {
				t.Errorf("got %+v", seen)
			}
			if w.moved(sandbox.Collection) != 100 {
				t.Errorf("moved %d", w.moved(sandbox.Collection))
			}
			if o := w.client.Resolve(t.Context(), a); o.State != exchange.SeenNoAnswer {
				t.Errorf("asked without an id: got %+v", o)
			}
		})
	}
}

// TestEverythingLost: connection, callback and confirmation are lost; the statement still has the payment.
func TestEverythingLost(t *testing.T) {
	w := newHarness(t, nil)
	if err := w.client.RegisterPull(t.Context(), payer); err != nil {
		t.Fatal(err)
	}
	a, b := collection(magic("23")), collection(magic("94"))
	w.collect(&a)
	w.collect(&b)
	w.settle()
	if got := append(w.results(a, exchange.CallbackResult), w.results(b, exchange.CallbackResult)...); len(got) != 0 {
		t.Fatalf("got %+v", got)
	}
	now := time.Now()
	rows, next, more, err := w.client.Pull(t.Context(), now.Add(-time.Hour), now.Add(time.Minute), 0)
	if err != nil || len(rows) != 2 || next != 2 || !more {
		t.Fatalf("got %+v, %d, %v, %v", rows, next, more, err)
	}
	for i, effect := range w.operator.Books().Effects {
		if r := rows[i]; r.Receipt != effect.Receipt || r.Reference != a.Reference || !r.Amount.Equal(a.Amount) ||
			r.Source != exchange.SourceStatement || r.State != exchange.SeenSucceeded || r.Phone.Digits() != effect.Phone ||
			!r.At.Equal(effect.Time.Truncate(time.Second)) {
			t.Errorf("got %+v, want %+v", r, effect)
		}
	}
	if rows, _, more, err := w.client.Pull(t.Context(), now.Add(-time.Hour), now.Add(time.Minute), next); err != nil || len(rows) != 0 || more {
		t.Errorf("next page: got %+v, %v, %v", rows, more, err)
	}
}

func TestPullPages(t *testing.T) {
	w := newHarness(t, func(s *sandbox.Config, _ *daraja.Config) { s.DailyLimit = -1 })
	for range 230 {
		if _, err := w.operator.Pay(payer.Digits(), "ABC", 1); err != nil {
			t.Fatal(err)
		}
	}
	now, seen := time.Now(), map[string]bool{}
	for offset, more := 0, true; more; {
		var rows []exchange.Observation
		var err error
		if rows, offset, more, err = w.client.Pull(t.Context(), now.Add(-47*time.Hour), now.Add(time.Minute), offset); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			seen[r.Receipt] = true
		}
	}
	if len(seen) != 230 {
		t.Errorf("got %d rows, want 230", len(seen))
	}
	for name, call := range map[string]func() error{
		"too far back": func() error { _, _, _, err := w.client.Pull(t.Context(), now.Add(-49*time.Hour), now, 0); return err },
		"backwards":    func() error { _, _, _, err := w.client.Pull(t.Context(), now, now.Add(-time.Hour), 0); return err },
		"offset":       func() error { _, _, _, err := w.client.Pull(t.Context(), now.Add(-time.Hour), now, -1); return err },
	} {
		if err := call(); exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestCallbackFaults: which callbacks arrive, how often, and what they report, when the payer paid.
func TestCallbackFaults(t *testing.T) {
	for _, row := range []struct {
		digits  string
		arrive  int // before the late ones
		later   int // in all, after the late ones
		amount  string
		moved   int64
		receipt bool
	}{
		{"00", 1, 1, "100", 100, true},
		{"30", 0, 0, "", 100, false},
		{"31", 2, 2, "100", 100, true},
		{"32", 0, 1, "100", 100, true},
		{"36", 1, 1, "99", 99, true},
		{"37", 1, 1, "101", 101, true},
		{"38", 1, 1, "100", 100, true},
		{"39", 1, 1, "0", 100, false},
		{"40", 1, 1, "100", 100, true},
		{"41", 1, 1, "100", 100, true},
		{"26", 1, 1, "100", 100, false},
		{"27", 1, 1, "100", 100, true},
	} {
		t.Run(row.digits, func(t *testing.T) {
			w := newHarness(t, nil)
			a := collection(magic(row.digits))
			s := w.collect(&a)
			if s.State != exchange.Accepted {
				t.Fatalf("got %+v", s)
			}
			w.settle()
			if got := len(w.results(a, exchange.CallbackResult)); got != row.arrive {
				t.Errorf("%d callbacks, want %d", got, row.arrive)
			}
			w.release()
			seen := w.results(a, exchange.CallbackResult)
			if len(seen) != row.later {
				t.Errorf("%d callbacks in all, want %d", len(seen), row.later)
			}
			if w.moved(sandbox.Collection) != row.moved {
				t.Errorf("moved %d, want %d", w.moved(sandbox.Collection), row.moved)
			}
			for _, o := range seen {
				if o.State != exchange.SeenSucceeded || (o.Receipt != "") != row.receipt || o.Amount.FloorWhole().Decimal().String() != row.amount {
					t.Errorf("got %+v", o)
				}
				if (o.Refs == s.Refs) == (row.digits == "41") {
					t.Errorf("refs: got %+v, want those of %+v", o.Refs, s.Refs)
				}
			}
			if row.digits == "27" && w.receiver.of(a.CallbackToken, exchange.CallbackResult)[0].from == "127.0.0.1" {
				t.Error("the callback came from the operator's own address")
			}
		})
	}
}

// TestCallbackBeforeAck: the attempt's result arrives before its submission returns.
func TestCallbackBeforeAck(t *testing.T) {
	w := newHarness(t, nil)
	a, b := collection(magic("38")), payout(magic("67"))
	w.collect(&a)
	w.client.SubmitPayout(t.Context(), b)
	if w.result(a).State != exchange.SeenSucceeded || w.result(b).State != exchange.SeenSucceeded {
		t.Error("the result came after the acknowledgement")
	}
}

// TestLateSuccess: a soft failure, and then a payment after all.
func TestLateSuccess(t *testing.T) {
	for digits, code := range map[string]string{"33": "1037", "34": "1032", "35": "1019"} {
		w := newHarness(t, nil)
		a := collection(magic(digits))
		w.collect(&a)
		w.settle()
		if o := w.result(a); o.State != exchange.SeenFailed || !o.Soft || o.Code != code || w.moved(sandbox.Collection) != 0 {
			t.Errorf("%s: got %+v", digits, o)
		}
		if o := w.client.Resolve(t.Context(), a); o.State != exchange.SeenFailed || !o.Soft {
			t.Errorf("%s: query: got %+v", digits, o)
		}
		w.release()
		seen := w.results(a, exchange.CallbackResult)
		if len(seen) != 2 || seen[1].State != exchange.SeenSucceeded || w.moved(sandbox.Collection) != 100 {
			t.Errorf("%s: got %+v", digits, seen)
		}
		if o := w.client.Resolve(t.Context(), a); o.State != exchange.SeenSucceeded {
			t.Errorf("%s: query: got %+v", digits, o)
		}
	}
}

// TestQueryFaults: the payer paid; the query reports something else.
func TestQueryFaults(t *testing.T) {
	for digits, want := range map[string]exchange.ObservationState{
		"42": exchange.SeenFailed, "43": exchange.SeenPending, "44": exchange.SeenNoAnswer,
		"45": exchange.SeenNoAnswer, "46": exchange.SeenNoAnswer,
	} {
		w := newHarness(t, nil)
		a := collection(magic(digits))
		w.collect(&a)
		w.settle()
		if o := w.client.Resolve(t.Context(), a); o.State != want || w.result(a).State != exchange.SeenSucceeded {
			t.Errorf("%s: got %+v", digits, o)
		}
	}
	w := newHarness(t, nil)
	a := collection(magic("25"))
	w.collect(&a)
	w.settle()
	if o := w.client.Resolve(t.Context(), a); o.State != exchange.SeenPending {
		t.Errorf("an open prompt: got %+v", o)
	}
	a.CheckoutRequestID = "ws_CO_unheard_of"
	if o := w.client.Resolve(t.Context(), a); o.State != exchange.SeenNoAnswer {
		t.Errorf("an unknown prompt: got %+v", o)
	}
}

// TestConfirmations: registration is valid once; numbers come in three forms; a payer may pay without a prompt.
func TestConfirmations(t *testing.T) {
	w := newHarness(t, nil)
	for range 2 {
		if err := w.client.RegisterC2B(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for digits, check := range map[string]func(exchange.Phone, exchange.Observation) bool{
		"90": func(_ exchange.Phone, o exchange.Observation) bool { return o.Phone == "" && o.PhoneHash == "" },
		"91": func(p exchange.Phone, o exchange.Observation) bool { return o.Phone == "" && o.PhoneHash == p.Hash() },
		"92": func(p exchange.Phone, o exchange.Observation) bool { return o.Phone == p && o.PhoneHash == "" },
	} {
		receipt, err := w.operator.Pay(magic(digits).Digits(), " inv 7 ", 250)
		if err != nil {
			t.Fatal(err)
		}
		posts := w.receiver.of(standing, exchange.CallbackConfirmation)
		seen, err := w.client.ParseCallback(exchange.CallbackConfirmation, posts[len(posts)-1].body)
		if err != nil || seen[0].Receipt != receipt || seen[0].Reference != "inv 7" || !check(magic(digits), seen[0]) {
			t.Errorf("%s: got %+v, %v", digits, seen, err)
		}
	}
	validations := w.receiver.of(standing, exchange.CallbackValidation)
	seen, err := w.client.ParseCallback(exchange.CallbackValidation, validations[0].body)
	if err != nil || seen[0].State != exchange.SeenPending || seen[0].Receipt != "" {
		t.Errorf("validation: got %+v, %v", seen, err)
	}
	before := len(w.receiver.of(standing, exchange.CallbackConfirmation))
	if _, err := w.operator.Pay(magic("93").Digits(), "x", 250); err != nil || len(w.receiver.of(standing, exchange.CallbackConfirmation)) != before {
		t.Errorf("a lost confirmation arrived; %v", err)
	}
}

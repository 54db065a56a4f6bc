package daraja_test

import (
	"slices"
	"testing"

	"kivuko/exchange"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
)

// TestPayoutCodes: each result code of a payout has the outcome of the catalogue, and no money moves.
func TestPayoutCodes(t *testing.T) {
	w := newHarness(t, nil)
	for digits, row := range map[string]struct {
		code      string
		state     exchange.ObservationState
		soft, our bool
	}{
		"51": {"1", exchange.SeenFailed, false, true},
		"52": {"2040", exchange.SeenFailed, false, false},
		"53": {"SFC_IC0003", exchange.SeenFailed, false, false},
		"54": {"4", exchange.SeenFailed, false, false},
		"58": {"8", exchange.SeenFailed, false, false},
		"65": {"2001", exchange.SeenFailed, false, true},
		"66": {"TP40153", exchange.SeenFailed, false, true},
		"76": {"11", exchange.SeenFailed, false, true},
		"77": {"26", exchange.SeenFailed, true, false},
		"22": {"7461", exchange.SeenUnknown, false, false},
	} {
		a := payout(magic(digits))
		if s := w.client.SubmitPayout(t.Context(), a); s.State != exchange.Accepted {
			t.Fatalf("%s: got %+v", digits, s)
		}
		w.settle()
		o := w.result(a)
		if o.Code != row.code || o.State != row.state || o.Soft != row.soft || o.Config != row.our || o.Receipt != "" {
			t.Errorf("%s: got %+v", digits, o)
		}
		w.client.Resolve(t.Context(), a)
		w.settle()
		if status := w.results(a, exchange.CallbackStatus); len(status) != 1 || status[0].State != exchange.SeenFailed {
			t.Errorf("%s: status: got %+v", digits, status)
		}
	}
	if w.moved(sandbox.Payout) != 0 {
		t.Errorf("moved %d", w.moved(sandbox.Payout))
	}
}

// TestPayoutFaults: how a submission ends, what arrives, what a status query returns, and what really moved.
func TestPayoutFaults(t *testing.T) {
	const (
		ok       = exchange.SeenSucceeded
		bad      = exchange.SeenFailed
		open     = exchange.SeenPending
		noAnswer = exchange.SeenNoAnswer
		silent   = exchange.ObservationState("")
	)
	for _, row := range []struct {
		digits   string
		submit   exchange.SubmissionState
		timeouts int
		results  int
		status   exchange.ObservationState
		moved    int64
	}{
		{"50", exchange.Accepted, 0, 1, ok, 500},
		{"55", exchange.Accepted, 0, 0, ok, 500},
		{"56", exchange.Accepted, 0, 2, ok, 500},
		{"57", exchange.Accepted, 0, 1, ok, 500},
		{"59", exchange.Accepted, 1, 1, ok, 500},
		{"60", exchange.Unknown, 0, 1, ok, 500},
		{"61", exchange.Unknown, 0, 1, ok, 500},
		{"62", exchange.Refused, 0, 0, noAnswer, 0},
		{"63", exchange.Unknown, 0, 0, noAnswer, 0},
		{"64", exchange.Unknown, 0, 0, ok, 500},
		{"67", exchange.Accepted, 0, 1, ok, 500},
		{"68", exchange.Accepted, 0, 1, bad, 500},
		{"69", exchange.Accepted, 0, 1, silent, 500},
		{"70", exchange.Unknown, 0, 0, noAnswer, 0},
		{"71", exchange.Accepted, 1, 1, bad, 0},
		{"72", exchange.Accepted, 0, 1, open, 500},
		{"73", exchange.Accepted, 0, 1, ok, 500},
		{"74", exchange.Accepted, 1, 0, ok, 500},
		{"75", exchange.Accepted, 0, 0, open, 0},
		{"78", exchange.Accepted, 0, 0, bad, 0},
	} {
		t.Run(row.digits, func(t *testing.T) {
			w := newHarness(t, nil)
			a := payout(magic(row.digits))
			if s := w.client.SubmitPayout(t.Context(), a); s.State != row.submit {
				t.Fatalf("got %+v", s)
			}
			w.settle()
			if row.timeouts > 0 && w.moved(sandbox.Payout) != 0 {
				t.Error("money moved before the queue's timeout")
			}
			w.release()
			timeouts := w.results(a, exchange.CallbackTimeout)
			if len(timeouts) != row.timeouts || slices.ContainsFunc(timeouts, func(o exchange.Observation) bool { return o.State != exchange.SeenUnknown }) {
				t.Errorf("timeouts: got %+v", timeouts)
			}
			if got := w.results(a, exchange.CallbackResult); len(got) != row.results {
				t.Errorf("%d results, want %d", len(got), row.results)
			}
			w.client.Resolve(t.Context(), a)
			w.settle()
			var status exchange.ObservationState
			for _, o := range w.results(a, exchange.CallbackStatus) {
				status = o.State
				if row.digits == "73" && o.Amount.Equal(a.Amount) {
					t.Error("the status query returns the right amount")
				}
			}
			if status != row.status {
				t.Errorf("status %q, want %q", status, row.status)
			}
			if w.moved(sandbox.Payout) != row.moved {
				t.Errorf("moved %d, want %d", w.moved(sandbox.Payout), row.moved)
			}
		})
	}
}

// TestSubmittingAgain: whatever the outcome of a payout's first submission, repeating it pays once.
func TestSubmittingAgain(t *testing.T) {
	for _, digits := range []string{"50", "55", "59", "60", "61", "64", "67", "74"} {
		w := newHarness(t, nil)
		a := payout(magic(digits))
		for range 5 {
			w.client.SubmitPayout(t.Context(), a)
			w.release()
		}
		if w.moved(sandbox.Payout) != 500 {
			t.Errorf("%s: moved %d", digits, w.moved(sandbox.Payout))
		}
	}
}

// TestPayoutWithoutToken: a payout read back from the database is sent again under its id; the result identifies it.
func TestPayoutWithoutToken(t *testing.T) {
	w := newHarness(t, nil)
	a := payout(payer)
	a.CallbackToken = ""
	if s := w.client.SubmitPayout(t.Context(), a); s.State != exchange.Accepted {
		t.Fatalf("got %+v", s)
	}
	w.settle()
	a.CallbackToken = standing
	if o := w.result(a); o.State != exchange.SeenSucceeded || o.Refs.OriginatorConversationID != a.ID.String() {
		t.Errorf("got %+v", o)
	}
	in := collection(payer)
	in.CallbackToken = ""
	if s := w.client.SubmitCollection(t.Context(), in); s.State != exchange.Refused || s.Code != "invalid" {
		t.Errorf("a prompt without an address of its own: got %+v", s)
	}
}

func TestStatusByReceiptAndBothKeys(t *testing.T) {
	for _, key := range []daraja.StatusKey{daraja.OriginalConversationID, daraja.OriginatorConversationID} {
		w := newHarness(t, func(_ *sandbox.Config, c *daraja.Config) { c.StatusKey = key })
		out, in := payout(payer), collection(payer)
		w.client.SubmitPayout(t.Context(), out)
		w.collect(&in)
		w.settle()
		in.Receipt = w.result(in).Receipt
		for _, a := range []exchange.PaymentAttempt{out, in} {
			ticket := w.client.QueryStatus(t.Context(), a).Ticket
			w.settle()
			got := w.results(a, exchange.CallbackStatus)
			if len(got) != 1 || got[0].State != exchange.SeenSucceeded || got[0].Ticket != ticket || !got[0].Amount.Equal(a.Amount) || got[0].Phone != payer {
				t.Errorf("%s of a %s: got %+v", key, a.Direction, got)
			}
		}
		// An attempt read back from the database has no token; the answer goes to the standing address.
		out.StatusToken, out.Receipt = "", w.result(out).Receipt
		if o := w.client.Resolve(t.Context(), out); o.State != exchange.SeenPending {
			t.Errorf("got %+v", o)
		}
		w.settle()
		if got := w.receiver.of(standing, exchange.CallbackStatus); len(got) != 1 {
			t.Errorf("got %d answers", len(got))
		}
	}
}

func TestReversal(t *testing.T) {
	w := newHarness(t, nil)
	a := collection(payer)
	w.collect(&a)
	w.settle()
	receipt := w.result(a).Receipt
	for i, want := range []struct {
		receipt, code string
		state         exchange.ObservationState
		moved         int64
	}{
		{"NOSUCHONE1", "R000002", exchange.SeenFailed, 0},
		{receipt, "0", exchange.SeenSucceeded, 100},
		{receipt, "R000001", exchange.SeenSucceeded, 100},
	} {
		back := payout(payer)
		if s := w.client.Reverse(t.Context(), back, want.receipt, a.Amount); s.State != exchange.Accepted || s.Refs.ConversationID == "" {
			t.Fatalf("%d: got %+v", i, s)
		}
		w.settle()
		got := w.results(back, exchange.CallbackReversal)
		if len(got) != 1 || got[0].Code != want.code || got[0].State != want.state || w.moved(sandbox.Reversal) != want.moved {
			t.Errorf("%d: got %+v, moved %d", i, got, w.moved(sandbox.Reversal))
		}
		if want.code == "0" && (got[0].Reference != receipt || got[0].Receipt == "" || !got[0].Amount.Equal(a.Amount) || got[0].Phone != payer) {
			t.Errorf("%d: got %+v", i, got[0])
		}
	}
}

func TestBalance(t *testing.T) {
	w := newHarness(t, nil)
	w.client.SubmitPayout(t.Context(), payout(payer))
	w.settle()
	ticket, err := w.client.Balance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	report, err := w.client.ParseBalance(w.receiver.of(standing, exchange.CallbackBalance)[0].body)
	if err != nil || report.Ticket != ticket || report.Code != "0" || len(report.Accounts) != 5 || report.At.IsZero() {
		t.Fatalf("got %+v, %v", report, err)
	}
	if got, want := report.Accounts[2].Available.Decimal().IntPart(), w.operator.Books().Utility; got != want || want != sandbox.DefaultUtilityOpening-500-7 {
		t.Errorf("utility: got %d, want %d", got, want)
	}
}

// TestCertificate: a password encrypted for the operator's certificate is accepted; a wrong one is our configuration error.
func TestCertificate(t *testing.T) {
	for password, want := range map[string]exchange.ObservationState{
		sandbox.DefaultInitiatorPassword: exchange.SeenSucceeded, "wrong": exchange.SeenFailed,
	} {
		operator, err := sandbox.New(sandbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		certificate := operator.CertificatePEM()
		if err := operator.Close(); err != nil {
			t.Fatal(err)
		}
		w := newHarness(t, func(_ *sandbox.Config, c *daraja.Config) {
			c.SecurityCredential, c.InitiatorPassword, c.CertificatePEM = "", password, certificate
		})
		a := payout(payer)
		w.client.SubmitPayout(t.Context(), a)
		w.settle()
		if o := w.result(a); o.State != want || o.Config != (want == exchange.SeenFailed) {
			t.Errorf("%s: got %+v", password, o)
		}
	}
}

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBooksSurvive kills the sandbox at several points and starts another one on its books.
func TestBooksSurvive(t *testing.T) {
	in, dir := newInbox(t), t.TempDir()
	first := open(t, Config{Dir: dir, LateDelay: -1})
	ask(t, first, promptPath, promptFor(first, in, phone, 100))
	ask(t, first, payoutPath, payoutFor(first, in, "one", phone, 50))
	ask(t, first, promptPath, promptFor(first, in, magicPrefix+"33", 70)) // 1037, later paid
	ask(t, first, payoutPath, payoutFor(first, in, "two", magicPrefix+"59", 60))
	first.rest(t)
	before := first.Books()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	tear(t, dir)

	second := open(t, Config{Dir: dir, LateDelay: -1})
	second.rest(t)
	after := second.Books()
	if asJSON(before.Effects) != asJSON(after.Effects) || asJSON(before.Wallets) != asJSON(after.Wallets) ||
		before.Working != after.Working || before.Utility != after.Utility || asJSON(before.Prompts) != asJSON(after.Prompts) {
		t.Errorf("got  %s\nwant %s", asJSON(after), asJSON(before))
	}
	if got := in.count("/prompt"); got != 2 {
		t.Errorf("%d callbacks of prompts, want 2: the restart sent some again", got)
	}
	second.Release() // open prompts are resumed
	second.rest(t)
	b := second.Books()
	if len(b.Effects) != 4 || in.count("/prompt") != 3 || in.count("/payout") != 2 || in.count("/timeout") != 1 {
		t.Errorf("effects %s, callbacks %v", asJSON(b.Effects), in.got)
	}
	if status, answer := ask(t, second, payoutPath, payoutFor(second, in, "one", phone, 50)); status != 500 || answer["errorCode"] != "500.002.1001" {
		t.Errorf("a payout from before the restart is accepted again: %d %v", status, answer)
	}
	b = second.Books()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	third := open(t, Config{Dir: dir, LateDelay: -1})
	third.rest(t)
	if got := third.Books(); asJSON(got.Effects) != asJSON(b.Effects) {
		t.Errorf("after the incomplete line: got %s\nwant %s", asJSON(got.Effects), asJSON(b.Effects))
	}
	certificate, err := os.ReadFile(filepath.Join(dir, CertificateName))
	if err != nil || string(certificate) != first.CertificatePEM() || second.CertificatePEM() != first.CertificatePEM() {
		t.Error("the certificate changed")
	}
}

// tear leaves an incomplete line at the end of the books, as a crash does.
func tear(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"effect":{"seq":99,"direction":"collection","amount":1`)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestBrokenBooks: a broken line before the last one was written by something else.
func TestBrokenBooks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalName), []byte("{\"of\":\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := New(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "line 1") {
		_ = s.Close()
		t.Errorf("got %v", err)
	}
}

// TestJournalFailure: when the books can't be written nothing is acknowledged.
func TestJournalFailure(t *testing.T) {
	in := newInbox(t)
	s := open(t, Config{Dir: t.TempDir()})
	s.mu.Lock()
	_ = s.ledger.journal.Close()
	s.mu.Unlock()
	if status, answer := ask(t, s, promptPath, promptFor(s, in, phone, 5)); status == 200 {
		t.Errorf("got %v", answer)
	}
	if status, answer := ask(t, s, payoutPath, payoutFor(s, in, "id", phone, 50)); status == 200 {
		t.Errorf("got %v", answer)
	}
	if _, err := s.Pay(phone, "x", 5); err == nil {
		t.Error("a payment outside the books")
	}
	if b := s.Books(); len(b.Effects)+len(b.Prompts)+len(b.Payouts) != 0 {
		t.Errorf("got %+v", b)
	}
}

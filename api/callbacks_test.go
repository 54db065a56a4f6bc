package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

const noticeBody = `{"Body":{"stkCallback":{"CheckoutRequestID":"ws_CO_1","ResultCode":0}}}`

func callbackPath(token string) string { return "/api/v1/callbacks/momo/" + token + "/result" }

// attempt writes an attempt that waits for its callback.
func (m market) attempt() exchange.PaymentAttempt {
	m.t.Helper()
	o := m.order(m.customer, m.offer.ID)
	a, created, err := m.store.BeginCollection(m.t.Context(), exchange.OrderObject(o.ID), exchange.PaymentAttempt{
		ID: newID(), Provider: "daraja", CallbackToken: strings.ReplaceAll(uuid.NewString(), "-", ""), WorkflowID: "on-ramp:" + o.ID.String(),
	})
	if err != nil || !created {
		m.t.Fatalf("attempt: %v, %v", created, err)
	}
	return a
}

func (e *env) accepted(r *reply) {
	e.t.Helper()
	if r.want(http.StatusOK); string(r.body) != `{"ResultCode":"0","ResultDesc":"Accepted"}` {
		e.t.Fatalf("answers %s", r.body)
	}
}

func TestCallbackIsStoredAndWakesTheFlow(t *testing.T) {
	m := openMarket(t)
	m.flows.woken = make(chan uuid.UUID, 1)
	a := m.attempt()
	m.accepted(m.do(post, callbackPath(a.CallbackToken), noticeBody, header("Content-Type", "text/xml"), from("203.0.113.5")))
	woken := <-m.flows.woken
	stored, err := m.store.Callbacks(t.Context(), a.ID)
	if err != nil || len(stored) != 1 || stored[0].ID != woken || string(stored[0].Body) != noticeBody || stored[0].RemoteIP != "203.0.113.5" || stored[0].Kind != exchange.CallbackResult {
		t.Errorf("stored %+v, %v", stored, err)
	}
	// A notice to an unknown address gets the same answer and wakes no flow.
	before := m.flows.count()
	m.accepted(m.do(post, callbackPath(strings.Repeat("a", 32)), noticeBody))
	if m.flows.count() != before {
		t.Error("a stranger's notice woke a flow")
	}
	m.do(post, "/api/v1/callbacks/momo/"+a.CallbackToken+"/rumour", noticeBody).refused(exchange.CodeNotFound)
	m.do(post, callbackPath("short"), noticeBody).refused(exchange.CodeNotFound)
	m.do(post, callbackPath(a.CallbackToken), strings.Repeat("x", callbackBody+1)).refused(exchange.CodeTooLarge)
	m.accepted(m.do(post, callbackPath(a.CallbackToken), strings.Repeat("x", callbackBody)))
	<-m.flows.woken
	if strings.Contains(m.logs.String(), a.CallbackToken) || strings.Contains(m.logs.String(), "ws_CO_1") {
		t.Error("the log holds the token or the notice")
	}
}

func TestCallbackFromElsewhereIsKeptAndReported(t *testing.T) {
	m := openMarket(t, func(d *Deps) { d.Config.CallbackSources = []netip.Prefix{netip.MustParsePrefix("196.201.214.0/24")} })
	m.flows.woken = make(chan uuid.UUID, 2)
	a := m.attempt()
	m.accepted(m.do(post, callbackPath(a.CallbackToken), noticeBody, from("196.201.214.7")))
	<-m.flows.woken
	if strings.Contains(m.logs.String(), "ALERT") {
		t.Error("an alert for the operator's own address")
	}
	m.accepted(m.do(post, callbackPath(a.CallbackToken), noticeBody, from("203.0.113.5")))
	<-m.flows.woken
	if !strings.Contains(m.logs.String(), "ALERT") {
		t.Error("no alert for a stranger's address")
	}
	stored, err := m.store.Callbacks(t.Context(), a.ID)
	if err != nil || len(stored) != 2 || stored[0].OffRange || !stored[1].OffRange {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

// TestCallbacksOutliveTheDatabase stops the database, and starts it again.
func TestCallbacksOutliveTheDatabase(t *testing.T) {
	dsn := storetest.URL(t)
	st := storetest.Open(t, dsn, store.Options{})
	dir := t.TempDir()
	e := startOn(t, st, func(d *Deps) { d.Config.SpoolDir = dir })
	m := market{env: e, vendor: e.person(exchange.RoleVendor), customer: e.person(exchange.RoleCustomer)}
	m.wallet = e.wallet(m.vendor)
	m.offer = e.offer(m.vendor, m.wallet)
	a := m.attempt()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	m.accepted(m.do(post, callbackPath(a.CallbackToken), noticeBody))
	m.accepted(m.do(post, callbackPath(strings.Repeat("b", 32)), noticeBody))
	files, _ := filepath.Glob(filepath.Join(dir, "*"+spoolSuffix))
	if len(files) != 2 {
		t.Fatalf("%d notices on disk", len(files))
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a notice on disk is %v, %v", info.Mode(), err)
	}
	e.do(get, "/readyz", nil).want(http.StatusServiceUnavailable)

	back := storetest.Open(t, dsn, store.Options{})
	flows := &fakeFlows{store: back, woken: make(chan uuid.UUID, 1)}
	inbox, err := NewInbox(Deps{Config: Config{SpoolDir: dir}, Store: back, Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0"+spoolSuffix), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { inbox.Run(ctx, time.Hour); close(done) }()
	woken := <-flows.woken
	cancel()
	<-done
	n, err := inbox.Drain(t.Context())
	if left, listErr := inbox.spool.names(); err != nil || listErr != nil || len(left) != 0 {
		t.Errorf("drained %d, %v, %v wait, %v", n, err, left, listErr)
	}
	stored, err := back.Callbacks(t.Context(), a.ID)
	if err != nil || len(stored) != 1 || stored[0].ID != woken || string(stored[0].Body) != noticeBody {
		t.Errorf("stored %+v, %v", stored, err)
	}
	if damaged, _ := filepath.Glob(filepath.Join(dir, "*.damaged")); len(damaged) != 1 {
		t.Error("the damaged file is gone")
	}
}

func TestCallbackThatCanBeKeptNowhere(t *testing.T) {
	st := storetest.New(t)
	dir := filepath.Join(t.TempDir(), "spool")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e := startOn(t, st, func(d *Deps) { d.Config.SpoolDir = dir })
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	e.do(post, callbackPath(strings.Repeat("c", 32)), noticeBody).refused(exchange.CodeUnavailable)
}

func TestNoiseIsBounded(t *testing.T) {
	e := start(t, func(d *Deps) { d.Config.Rates.Unknown = Rate{Max: 2, Per: time.Hour} })
	for range 4 {
		e.accepted(e.do(post, callbackPath(strings.Repeat("d", 32)), noticeBody))
	}
	var stored int
	row := storetest.Owner(t, e.store).QueryRowContext(t.Context(), "SELECT count(*) FROM momo_callbacks")
	if err := row.Scan(&stored); err != nil || stored != 2 {
		t.Errorf("%d unknown notices are stored, %v", stored, err)
	}
}

// Notices at the standing address are stored whole, and not counted as noise.
func TestStandingNoticesAreRecognised(t *testing.T) {
	token := strings.Repeat("5", 64)
	e := start(t, func(d *Deps) { d.Config.StandingToken, d.Config.Rates.Unknown = token, Rate{Max: 1, Per: time.Hour} })
	long := strings.Repeat("x", unknownBody+1)
	for range 3 {
		e.accepted(e.do(post, "/api/v1/callbacks/momo/"+token+"/confirmation", long))
		e.accepted(e.do(post, "/api/v1/callbacks/momo/"+strings.Repeat("6", 64)+"/confirmation", long))
	}
	var standing, whole, others int
	row := storetest.Owner(t, e.store).QueryRowContext(t.Context(),
		`SELECT count(*) FILTER (WHERE standing), count(*) FILTER (WHERE octet_length(body) = $1), count(*) FILTER (WHERE NOT standing) FROM momo_callbacks`, len(long))
	if err := row.Scan(&standing, &whole, &others); err != nil || standing != 3 || whole != 3 || others != 1 {
		t.Errorf("%d standing notices, %d whole ones, %d unknown ones, %v", standing, whole, others, err)
	}
}

// TestTheSpoolIsBounded fills the spool: unknown senders may use half of it.
func TestTheSpoolIsBounded(t *testing.T) {
	for name, full := range map[string]struct {
		files int
		bytes int64
	}{"by files": {files: maxSpooled}, "by bytes": {bytes: maxSpooledBytes}} {
		t.Run(name, func(t *testing.T) {
			s, err := newSpool(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			pretend := func(part int) {
				s.files, s.bytes, s.measured = full.files/part, full.bytes/int64(part), time.Now().Add(time.Hour)
			}
			keep := func(stranger bool) error {
				return s.keep(notice{ID: newID(), Token: "t", Kind: exchange.CallbackResult, Body: []byte("{}"), OffRange: stranger})
			}
			pretend(strangersShare)
			if err := keep(true); !errors.Is(err, errSpoolFull) {
				t.Errorf("a stranger's notice in a spool that is half full: %v", err)
			}
			if err := keep(false); err != nil {
				t.Errorf("the operator's notice in a spool that is half full: %v", err)
			}
			pretend(1)
			if err := keep(false); !errors.Is(err, errSpoolFull) {
				t.Errorf("a notice in a full spool: %v", err)
			}
			s.measured = time.Time{}
			if files, bytes := s.waiting(); files != 1 || bytes < 50 {
				t.Errorf("%d files of %d bytes wait, want one", files, bytes)
			}
		})
	}
}

func TestFullSpoolIsReportedAndCounted(t *testing.T) {
	st := storetest.New(t)
	e := startOn(t, st)
	e.server.inbox.spool.files, e.server.inbox.spool.measured = maxSpooled, time.Now().Add(time.Hour)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	e.do(post, callbackPath(strings.Repeat("c", 32)), noticeBody).refused(exchange.CodeUnavailable)
	if !strings.Contains(e.logs.String(), "ALERT callback refused: the spool is full") {
		t.Error("no alert")
	}
	if text := string(e.do(get, "/metrics", nil).body); !strings.Contains(text, `kivuko_momo_callbacks_total{outcome="spool_full"} 1`) {
		t.Errorf("not counted:\n%s", text)
	}
}

package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

var standingToken = strings.Repeat("5", 64)

// readNotice reads "receipt amount reference", as the operator's protocol reads its own notices.
func readNotice(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error) {
	var receipt, amount, reference string
	if n, _ := fmt.Sscan(string(body), &receipt, &amount, &reference); n != 3 || kind != exchange.CallbackConfirmation {
		return nil, errors.New("unreadable")
	}
	m, err := money.Parse(money.KES, amount)
	return []exchange.Observation{{
		State: exchange.SeenSucceeded, Source: exchange.SourceConfirmation, Receipt: receipt, Amount: m, Reference: reference,
		Phone: "254712345678", At: time.Now(),
	}}, err
}

func withNotices(d *Deps) { d.Config.StandingToken, d.Notices = standingToken, readNotice }

func (e *env) confirm(body string, options ...option) {
	e.t.Helper()
	e.accepted(e.do(post, "/api/v1/callbacks/momo/"+standingToken+"/confirmation", body, options...))
	e.server.wakers.wait.Wait()
}

func TestANoticeIsNotedAndWakesWhatWaits(t *testing.T) {
	m := openMarket(t, withNotices, func(d *Deps) { d.Config.CallbackSources = []netip.Prefix{netip.MustParsePrefix("196.201.214.0/24")} })
	m.flows.woken = make(chan uuid.UUID, 4)
	a, receipt := m.attempt(), storetest.Receipt(t)
	staff := m.person(exchange.RoleOTCOfficer).auth()
	const list = "/api/v1/auth/otc/c2b/payments"

	// A notice from another address is stored but not trusted.
	m.confirm(receipt+" 1 "+a.Reference, from("203.0.113.5"))
	m.do(get, list, nil, staff).want(200)
	if n := m.do(get, list, nil, staff).object()["total"]; n != 0.0 {
		t.Errorf("%v payments from elsewhere are noted", n)
	}
	operator := from("196.201.214.7")
	m.confirm(receipt+" "+a.Amount.String()+" "+strings.ToLower(a.Reference), operator)
	<-m.flows.woken
	m.confirm(receipt+" "+a.Amount.String()+" "+a.Reference, operator)
	<-m.flows.woken
	m.confirm(storetest.Receipt(t)+" 70 RENT", operator)
	m.confirm("nonsense", operator)
	if len(m.flows.woken) != 0 {
		t.Error("an unmatched payment woke a flow")
	}
	if n := m.do(get, list+"?status=unmatched", nil, staff).object()["total"]; n != 2.0 {
		t.Errorf("%v payments are listed", n)
	}
	got := m.do(get, list+"?receipt="+receipt+"&min_amount="+a.Amount.String()+"&phone_hash="+exchange.Phone("254712345678").Hash(), nil, staff).want(200)
	for _, want := range []string{`"channels":["confirmation"]`, `"status":"unmatched"`, `"status_detail":"statement"`, `"reference":"` + a.Reference + `"`, `"disputed":false`} {
		if !strings.Contains(string(got.body), want) {
			t.Errorf("the answer lacks %s: %s", want, got.body)
		}
	}
	// Another amount with the same receipt raises an alert.
	m.confirm(receipt+" 1 "+a.Reference, operator)
	if n := m.do(get, list+"?disputed=true", nil, staff).object()["total"]; n != 1.0 || !strings.Contains(m.logs.String(), "ALERT two channels contradict") {
		t.Errorf("%v payments are disputed", n)
	}
	if strings.Contains(m.logs.String(), "254712345678") || strings.Contains(m.logs.String(), standingToken) {
		t.Error("the log holds the payer's number or the token")
	}
	for _, bad := range []string{
		"status=paid", "phone_hash=254712345678", "min_amount=-1", "min_amount=5&max_amount=4", "listed=maybe", "order_id=1",
		"paid_from=2026-01-02T00:00:00Z&paid_to=2026-01-01T00:00:00Z", "page_size=0",
	} {
		m.do(get, list+"?"+bad, nil, staff).refused(exchange.CodeInvalid)
	}
}

// A notice that waited on disk is recorded when the database is back.
func TestANoticeFromDiskIsNoted(t *testing.T) {
	m := openMarket(t, withNotices)
	m.flows.woken = make(chan uuid.UUID, 1)
	a, receipt := m.attempt(), storetest.Receipt(t)
	n := notice{
		ID: newID(), Token: standingToken, Kind: exchange.CallbackConfirmation, Standing: true, ReceivedAt: time.Now(),
		Body: []byte(receipt + " " + a.Amount.String() + " " + a.Reference),
	}
	if err := m.server.inbox.spool.keep(n); err != nil {
		t.Fatal(err)
	}
	if drained, err := m.server.inbox.Drain(t.Context()); err != nil || drained != 1 {
		t.Fatalf("%d drained, %v", drained, err)
	}
	if woken := <-m.flows.woken; woken != n.ID {
		t.Errorf("woken by %s", woken)
	}
	all, total, err := m.store.ListC2B(t.Context(), store.C2BFilter{Receipt: receipt}, store.Page{Number: 1, Size: 1})
	if err != nil || total != 1 || all[0].NotifiedAt.IsZero() || all[0].Reference != a.Reference {
		t.Errorf("noted %+v, %v", all, err)
	}
}

// A validation request of the operator is accepted, unless the configuration accepts only payments that something waits
// for.
func TestPaymentsAreLetIn(t *testing.T) {
	ask := func(m market, reference, amount string) string {
		m.t.Helper()
		return string(m.do(post, "/api/v1/callbacks/momo/"+standingToken+"/validation", amount+" "+reference).want(http.StatusOK).body)
	}
	const yes = `{"ResultCode":"0","ResultDesc":"Accepted"}`
	questions := func(d *Deps) {
		d.Notices = func(_ exchange.CallbackKind, body []byte) ([]exchange.Observation, error) {
			amount, reference, _ := strings.Cut(string(body), " ")
			m, err := money.Parse(money.KES, amount)
			return []exchange.Observation{{State: exchange.SeenPending, Amount: m, Reference: reference}}, err
		}
	}
	open := openMarket(t, withNotices, questions)
	if got := ask(open, "RENT", "5.00"); got != yes {
		t.Errorf("by default answers %s", got)
	}
	strict := openMarket(t, withNotices, questions, func(d *Deps) { d.Config.RejectUnknown = true })
	a := strict.attempt()
	for _, c := range []struct{ reference, amount, want string }{
		{a.Reference, a.Amount.String(), "0"},
		{strings.ToLower(a.Reference), a.Amount.String(), "0"},
		{a.Reference, "1.00", "C2B00013"},
		{"RENT", a.Amount.String(), "C2B00012"},
		{"", a.Amount.String(), "C2B00012"},
	} {
		if got := ask(strict, c.reference, c.amount); !strings.Contains(got, `"ResultCode":"`+c.want+`"`) && (c.want != "0" || got != yes) {
			t.Errorf("%q of %s: %s, want %s", c.reference, c.amount, got, c.want)
		}
	}
	if got := string(strict.do(post, "/api/v1/callbacks/momo/"+standingToken+"/validation", `{}`).want(http.StatusOK).body); got != yes {
		t.Errorf("what can't be read is answered with %s", got)
	}
}

// stray is a payment to our number that nothing waits for.
func (e *env) stray() uuid.UUID {
	o := storetest.Paid(e.t, money.Must(money.KES, "500"))
	o.Reference, o.At, o.Source = "STRAY", time.Now(), exchange.SourceStatement
	taken, err := e.store.TakeReceipt(e.t.Context(), o)
	if err != nil {
		e.t.Fatal(err)
	}
	return taken.Payment.ID
}

// An officer names the deposit that a payment with a mistaken reference is for; above the limit another one has to name the same.
func TestPaymentsAreMatchedWithDeposits(t *testing.T) {
	d := newDesk(t)
	const path = "/api/v1/auth/otc/c2b/payments"
	deposit := func(amount string) string {
		o := d.do(post, otcPath, map[string]any{"method": "c2b", "requested_asset": "KES", "fiat_amount": amount}, d.merchant.auth(), freshKey()).want(http.StatusCreated)
		id := uuid.MustParse(o.text("id"))
		if _, _, err := d.store.BeginCollection(t.Context(), exchange.DepositObject(id), exchange.PaymentAttempt{ID: newID(), Provider: "daraja", WorkflowID: "otc-deposit:" + id.String()}); err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	paid := func(reference, amount string) string {
		o := storetest.Paid(t, money.Must(money.KES, amount))
		o.Reference, o.At, o.Source = reference, time.Now(), exchange.SourceStatement
		taken, err := d.store.TakeReceipt(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return taken.Payment.ID.String()
	}
	match := func(who person, payment, deposit string) *reply {
		return d.do(post, path+"/"+payment+"/match", map[string]any{"otc_deposit_id": deposit}, who.auth(), freshKey())
	}
	small, large := deposit("1500"), deposit("150000")
	p, q := paid("KVD?", "1500"), paid("KVD??", "150000")
	match(d.officer, p, newID().String()).blames("/otc_deposit_id not_found")
	match(d.officer, newID().String(), small).refused(exchange.CodeNotFound)
	if got := match(d.officer, p, small).want(http.StatusOK).object(); got["status"] != "matched" || got["otc_deposit_id"] != small || got["order_id"] != nil {
		t.Errorf("matched %v", got)
	}
	match(d.second, p, large).refused(exchange.CodeStateConflict)
	if got := match(d.officer, q, large).want(http.StatusOK).object(); got["status"] != "unmatched" || got["status_detail"] != "second_approval" || got["otc_deposit_id"] != large {
		t.Errorf("named once %v", got)
	}
	queue := d.do(get, otcPath+"/queue/pending-bank", nil, d.second.auth()).want(http.StatusOK).object()["deposits"].([]any)
	if len(queue) != 2 || queue[1].(map[string]any)["id"] != large || queue[1].(map[string]any)["status_detail"] != "second_approval" {
		t.Errorf("the second officer's queue is %v", queue)
	}
	if got := match(d.boss, q, large).want(http.StatusOK).object(); got["status"] != "matched" {
		t.Errorf("named twice %v", got)
	}
	list := d.do(get, path+"?otc_deposit_id="+large, nil, d.treasury.auth()).want(http.StatusOK).object()
	if list["total"] != 1.0 {
		t.Errorf("listed %v", list)
	}
	if o := d.do(get, otcPath+"/"+large, nil, d.officer.auth()).want(http.StatusOK).object(); o["status"] != "pending" || o["status_detail"] != "review" || o["received_amount"] != "150000.00" {
		t.Errorf("the deposit is %v", o)
	}
}

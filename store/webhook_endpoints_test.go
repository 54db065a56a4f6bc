package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// hooks is a store with a manual clock.
type hooks struct {
	t   *testing.T
	s   *store.Store
	mu  sync.Mutex
	now time.Time
}

func newHooks(t *testing.T) *hooks {
	h := &hooks{t: t, now: time.Now()}
	h.s = storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.now
	}})
	return h
}

func (h *hooks) wait(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func hookView(u exchange.User) store.View {
	return store.ViewOf(storetest.PrincipalOf(u), exchange.ActWriteWebhooks)
}

func hookKey(t *testing.T, endpoint uuid.UUID) exchange.WebhookKey {
	return exchange.WebhookKey{ID: storetest.NewID(t), EndpointID: endpoint, Sealed: []byte(strings.Repeat("s", 40)), MasterKey: "k"}
}

func (h *hooks) endpoint(u exchange.User, types ...string) exchange.WebhookEndpoint {
	h.t.Helper()
	id := storetest.NewID(h.t)
	e, err := h.s.CreateWebhook(h.t.Context(), hookView(u), exchange.WebhookEndpoint{ID: id, URL: "https://hooks.example/" + id.String() + "?token=hidden", EventTypes: types},
		hookKey(h.t, id), storetest.PrincipalOf(u))
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// relay relays the log until an endpoint has n deliveries; other tests on the server may hold its end back.
func (h *hooks) relay(endpoint uuid.UUID, n int) []exchange.WebhookDelivery {
	h.t.Helper()
	var all []exchange.WebhookDelivery
	settle(h.t, func() bool {
		if _, err := h.s.RelayEvents(h.t.Context(), 2); err != nil {
			h.t.Fatal(err)
		}
		all = h.deliveries(endpoint)
		return len(all) >= n
	})
	if len(all) != n {
		h.t.Fatalf("%d deliveries, want %d", len(all), n)
	}
	return all
}

// deliveries are an endpoint's, in the order of the log.
func (h *hooks) deliveries(endpoint uuid.UUID) []exchange.WebhookDelivery {
	h.t.Helper()
	all, _, err := h.s.WebhookDeliveries(h.t.Context(), store.Everything(), store.DeliveryFilter{EndpointID: endpoint}, store.Page{Number: 1, Size: store.MaxPageSize})
	if err != nil {
		h.t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b exchange.WebhookDelivery) int { return int(a.Event.Cursor - b.Event.Cursor) })
	return all
}

func (h *hooks) claim(endpoint uuid.UUID) []exchange.WebhookDelivery {
	h.t.Helper()
	c, err := h.s.ClaimWebhooks(h.t.Context(), endpoint, 20, time.Minute)
	if err != nil {
		h.t.Fatal(err)
	}
	return c.Deliveries
}

func (h *hooks) record(d exchange.WebhookDelivery, status int) {
	h.t.Helper()
	r := exchange.WebhookResult{DeliveryID: d.ID, Attempt: d.Attempts, Status: status, Gone: status == 410}
	if status != 200 {
		r.Error = exchange.WebhookErrStatus
	}
	if err := h.s.RecordWebhook(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
}

// endpointNow reads an endpoint as staff sees it.
func (h *hooks) endpointNow(id uuid.UUID) exchange.WebhookEndpoint {
	h.t.Helper()
	all, _, err := h.s.Webhooks(h.t.Context(), store.Everything(), "", store.Page{Number: 1, Size: store.MaxPageSize})
	i := slices.IndexFunc(all, func(e exchange.WebhookEndpoint) bool { return e.ID == id })
	if err != nil || i < 0 {
		h.t.Fatalf("no endpoint, %v", err)
	}
	return all[i]
}

// test creates an event for an endpoint.
func (h *hooks) test(u exchange.User, e exchange.WebhookEndpoint) {
	h.t.Helper()
	if _, err := h.s.TestWebhook(h.t.Context(), hookView(u), e.ID, storetest.PrincipalOf(u)); err != nil {
		h.t.Fatal(err)
	}
}

// Each endpoint gets the events that its party may read and its filter passes, in the log's order, once, with any
// number of relays.
func TestEventsGoToWhomTheyConcern(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	m := storetest.NewMarket(t, h.s)
	rival, admin := storetest.User(t, h.s, exchange.RoleVendor), storetest.User(t, h.s, exchange.RoleAdmin)
	const own = "webhook_endpoint.created" // the event of its own making
	customers, vendors := h.endpoint(m.Customer), h.endpoint(m.Vendor, "order.*", "webhook_endpoint.updated")
	rivals, house := h.endpoint(rival), h.endpoint(admin, "order.opened")
	o := m.Order(t, h.s, "10")
	codes := atOnce(4, func(int) error {
		for range 12 {
			if _, err := h.s.RelayEvents(t.Context(), 3); err != nil {
				return err
			}
		}
		return nil
	})
	if codes[""] != 4 {
		t.Fatalf("outcomes %v", codes)
	}
	h.relay(vendors.ID, 1)
	for _, c := range []struct {
		name  string
		id    uuid.UUID
		wants string
	}{{"customer", customers.ID, own + " order.opened"}, {"vendor", vendors.ID, "order.opened"}, {"rival", rivals.ID, own}, {"house", house.ID, "order.opened"}} {
		var got []string
		for _, d := range h.deliveries(c.id) {
			got = append(got, d.Event.Type)
			if d.Event.Type == "order.opened" && (d.Event.ObjectID != o.ID || d.ID.Version() != 7) {
				t.Errorf("%s: %+v", c.name, d)
			}
		}
		if strings.Join(got, " ") != c.wants {
			t.Errorf("%s gets %q, want %q", c.name, got, c.wants)
		}
	}
	for _, e := range eventsFrom(t, h.s, 0, len(eventsFromAll(t, h.s))) {
		if strings.Contains(string(e.Payload), "hidden") {
			t.Errorf("the address is in an event: %s", e.Payload)
		}
	}
	if _, err := h.s.PatchWebhook(t.Context(), hookView(rival), vendors.ID, store.WebhookPatch{}, storetest.PrincipalOf(rival)); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a rival changes it: %v", err)
	}
	if _, err := h.s.ReplayWebhook(t.Context(), hookView(rival), h.deliveries(vendors.ID)[0].ID, storetest.PrincipalOf(rival)); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a rival replays it: %v", err)
	}
}

func eventsFromAll(t *testing.T, s *store.Store) []exchange.Event {
	t.Helper()
	events, err := s.Events(t.Context(), store.Everything(), 0, store.MaxEvents)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// A test event goes only to its own endpoint, whatever the filter.
func TestATestGoesToItsEndpointAlone(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	u := storetest.User(t, h.s, exchange.RoleVendor)
	one, other := h.endpoint(u, "order.*"), h.endpoint(u, "webhook_endpoint.*")
	h.test(u, one)
	if d := h.relay(one.ID, 1); d[0].Event.Type != exchange.WebhookTest {
		t.Errorf("got %s", d[0].Event.Type)
	}
	for _, d := range h.deliveries(other.ID) {
		if d.Event.Type == exchange.WebhookTest {
			t.Error("another endpoint got the test")
		}
	}
}

// An attempt belongs to one worker until its lease ends, and that worker's later results don't count. The events of
// one object are delivered in order.
func TestAttemptsAreClaimedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	u := storetest.User(t, h.s, exchange.RoleCustomer)
	e := h.endpoint(u, "order.*")
	h.test(u, e)
	h.test(u, e)
	h.relay(e.ID, 2)
	var mu sync.Mutex
	var claimed []exchange.WebhookDelivery
	atOnce(6, func(int) error {
		c, err := h.s.ClaimWebhooks(t.Context(), e.ID, 20, time.Minute)
		mu.Lock()
		defer mu.Unlock()
		claimed = append(claimed, c.Deliveries...)
		return err
	})
	all := h.deliveries(e.ID)
	if len(claimed) != 1 || claimed[0].ID != all[0].ID || claimed[0].Attempts != 1 {
		t.Fatalf("claimed %+v", claimed)
	}
	next, err := h.s.NextWebhook(t.Context(), e.ID)
	if err != nil || !next.After(h.now) {
		t.Errorf("next at %s, %v: the lease is not over", next, err)
	}
	h.wait(61 * time.Second)
	again := h.claim(e.ID)
	if len(again) != 1 || again[0].Attempts != 2 {
		t.Fatalf("after the lease %+v", again)
	}
	h.record(claimed[0], 500) // too late
	if d := h.deliveries(e.ID)[0]; d.LastError != "" || d.Status != exchange.WebhookPending {
		t.Errorf("a late result counted: %+v", d)
	}
	h.record(again[0], 200)
	if second := h.claim(e.ID); len(second) != 1 || second[0].ID != all[1].ID {
		t.Errorf("then %+v", second)
	}
}

// Attempts are made for three days with growing pauses; then the delivery fails, the object's next one is due, and
// after five days of only failures the endpoint is disabled. A replay begins again under the same id.
func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	u := storetest.User(t, h.s, exchange.RoleCustomer)
	e := h.endpoint(u, "order.*")
	h.test(u, e)
	h.test(u, e)
	first := h.relay(e.ID, 2)[0]
	begun := h.now
	fails := func() (n int) {
		for {
			c := h.claim(e.ID)
			if len(c) == 0 {
				return n
			}
			n++
			h.record(c[0], 503)
			next, err := h.s.NextWebhook(t.Context(), e.ID)
			if err != nil || next.IsZero() {
				return n
			}
			if c[0].ID == first.ID && n == exchange.WebhookAttempts {
				return n
			}
			h.wait(next.Sub(h.now))
		}
	}
	if n := fails(); n != exchange.WebhookAttempts || h.now.Sub(begun) < 72*time.Hour || h.now.Sub(begun) > 84*time.Hour {
		t.Errorf("%d attempts in %s", n, h.now.Sub(begun))
	}
	if d := h.deliveries(e.ID)[0]; d.Status != exchange.WebhookFailed || d.StatusDetail != exchange.WebhookExhausted || d.LastStatus != 503 {
		t.Errorf("ended %+v", d)
	}
	if _, err := h.s.ReplayWebhook(t.Context(), hookView(u), first.ID, storetest.PrincipalOf(u)); err != nil {
		t.Fatal(err)
	}
	replayed := h.claim(e.ID)
	if len(replayed) != 2 || replayed[0].ID != first.ID || replayed[0].Event.Cursor != first.Event.Cursor || replayed[0].Tries != 1 || replayed[0].Attempts != exchange.WebhookAttempts+1 {
		t.Fatalf("replayed %+v", replayed)
	}
	h.record(replayed[0], 503)
	h.record(replayed[1], 503)
	h.wait(exchange.WebhookDisableAfter)
	late := h.claim(e.ID)
	h.record(late[0], 503)
	after := h.endpointNow(e.ID)
	if after.Status != exchange.WebhookDisabled || after.StatusDetail != exchange.WebhookFailing {
		t.Errorf("the endpoint is %+v", after)
	}
	for _, d := range h.deliveries(e.ID) {
		if d.Status != exchange.WebhookFailed || d.StatusDetail != exchange.WebhookEndpointDisabled {
			t.Errorf("left %+v", d)
		}
	}
	types := map[string]int{}
	settle(t, func() bool {
		clear(types)
		for _, ev := range eventsFromAll(t, h.s) {
			types[ev.Type]++
		}
		return types["webhook_endpoint.disabled"] == 1
	})
	if _, err := h.s.ReplayWebhook(t.Context(), hookView(u), first.ID, storetest.PrincipalOf(u)); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("replayed to a disabled endpoint: %v", err)
	}
}

// A success ends an endpoint's failing period; 410 disables it at once, and so does the deactivation of its creator.
func TestEndpointsAreDisabled(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	u := storetest.User(t, h.s, exchange.RoleCustomer)
	e := h.endpoint(u, "order.*")
	h.test(u, e)
	h.relay(e.ID, 1)
	h.record(h.claim(e.ID)[0], 500)
	if h.endpointNow(e.ID).FailingSince.IsZero() {
		t.Error("it does not show that it fails")
	}
	h.wait(time.Minute)
	h.record(h.claim(e.ID)[0], 200)
	if !h.endpointNow(e.ID).FailingSince.IsZero() {
		t.Error("it shows that it fails after it took one")
	}
	h.test(u, e)
	h.relay(e.ID, 2)
	h.record(h.claim(e.ID)[0], 410)
	if got := h.endpointNow(e.ID); got.StatusDetail != exchange.WebhookGone {
		t.Errorf("after 410: %+v", got)
	}
	other := h.endpoint(u, "order.*")
	h.test(u, other)
	h.relay(other.ID, 1)
	inactive := false
	if _, err := h.s.UpdateUser(t.Context(), u.ID, store.UserPatch{IsActive: &inactive}, storetest.By); err != nil {
		t.Fatal(err)
	}
	if c := h.claim(other.ID); len(c) != 0 || h.endpointNow(other.ID).StatusDetail != exchange.WebhookOwnerInactive {
		t.Errorf("claimed %+v of a deactivated creator", c)
	}
}

// Both keys sign during the overlap, never more than two, and an ended one does not.
func TestKeysOverlap(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	u := storetest.User(t, h.s, exchange.RoleVendor)
	e := h.endpoint(u)
	rotate := func() []exchange.WebhookKey {
		h.wait(time.Second)
		k := hookKey(t, e.ID)
		got, err := h.s.RotateWebhookKey(t.Context(), hookView(u), e.ID, k, storetest.PrincipalOf(u))
		if err != nil || got.Keys[0].ID != k.ID {
			t.Fatalf("keys %+v, %v", got.Keys, err)
		}
		return got.Keys
	}
	for range 3 {
		if keys := rotate(); len(keys) != 2 || !keys[0].ExpiresAt.IsZero() || keys[1].ExpiresAt.IsZero() {
			t.Errorf("keys %+v", keys)
		}
	}
	h.wait(exchange.WebhookOverlap)
	if keys := h.endpointNow(e.ID).Keys; len(keys) != 1 {
		t.Errorf("after the overlap %+v", keys)
	}
}

// Events from before an endpoint's creation, or while it is disabled, are not sent to it; deletion ends waiting
// deliveries. Old deliveries are pruned, and not created again.
func TestDeliveriesHaveTheirTime(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	u := storetest.User(t, h.s, exchange.RoleCustomer)
	e := h.endpoint(u, "order.*")
	h.test(u, e)
	h.relay(e.ID, 1)
	due, err := h.s.WebhooksToWake(t.Context(), 10)
	if err != nil || len(due[e.ID]) != 1 {
		t.Fatalf("to wake %v, %v", due, err)
	}
	if err := h.s.WebhooksWoken(t.Context(), due[e.ID]); err != nil {
		t.Fatal(err)
	}
	if again, err := h.s.WebhooksToWake(t.Context(), 10); err != nil || len(again) != 0 {
		t.Errorf("to wake again %v, %v", again, err)
	}
	h.wait(3 * time.Minute)
	if late, err := h.s.WebhooksToWake(t.Context(), 10); err != nil || len(late[e.ID]) != 1 {
		t.Errorf("overdue deliveries are not woken: %v, %v", late, err)
	}
	h.record(h.claim(e.ID)[0], 200)
	h.wait(exchange.WebhookDeliveriesKept + time.Hour)
	if n, err := h.s.PruneWebhooks(t.Context(), 100); err != nil || n != 1 {
		t.Fatalf("pruned %d, %v", n, err)
	}
	h.test(u, e)
	h.relay(e.ID, 1)
	if err := h.s.DeleteWebhook(t.Context(), hookView(u), e.ID, storetest.PrincipalOf(u)); err != nil {
		t.Fatal(err)
	}
	if d := h.deliveries(e.ID); d[0].StatusDetail != exchange.WebhookEndpointDeleted || len(h.claim(e.ID)) != 0 {
		t.Errorf("after the end %+v", d)
	}
	if next, err := h.s.NextWebhook(t.Context(), e.ID); err != nil || !next.IsZero() {
		t.Errorf("next %s, %v", next, err)
	}
}

// A vendor sees its customer's refund, but not its address; the customer sees all of it.
func TestVendorsDoNotSeeWhereRefundsGo(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	m := storetest.NewMarket(t, h.s)
	vendors, customers := h.endpoint(m.Vendor, "refund.*"), h.endpoint(m.Customer, "refund.*")
	storetest.Exec(t, h.s, `INSERT INTO events (cursor, object_type, object_id, sequence, type, owner_id, vendor_id, payload, at)
		SELECT max(cursor) + 1, 'refund', $1::uuid, 1, 'refund.pending', $2, $3, ('{"id": "' || $1::uuid || '", "rail": "chain", "order_id": null, "exception_id": null,
			"amount": "1.000000", "currency": "USDT", "status": "pending", "detail": "", "receipt": "", "network": "tron", "address": "where-it-goes", "version": 1}')::jsonb, now() FROM events`, storetest.NewID(t), m.Customer.ID, m.Vendor.ID)
	for _, c := range []struct {
		endpoint uuid.UUID
		shown    bool
	}{{vendors.ID, false}, {customers.ID, true}} {
		h.relay(c.endpoint, 1)
		got := h.claim(c.endpoint)
		if len(got) != 1 || strings.Contains(string(got[0].Event.Payload), "where-it-goes") != c.shown || !strings.Contains(string(got[0].Event.Payload), "pending") {
			t.Errorf("visible to %v: %+v", c.shown, got)
		}
	}
}

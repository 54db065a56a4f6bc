package api

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// harness has one account of each role, two of each merchant, and their objects.
type harness struct {
	*env
	people map[exchange.Role]person
	rival  person // another vendor
	other  person // another customer
	wallet map[uuid.UUID]exchange.Wallet
	offer  exchange.Offer              // the vendor's
	theirs exchange.Offer              // the rival's
	buys   exchange.Offer              // the vendor's that buys
	sales  map[uuid.UUID]uuid.UUID     // of each seller, one
	stuck  uuid.UUID                   // a purchase whose crypto can't be sent
	proofs map[uuid.UUID]uuid.UUID     // of OTC deposits
	swaps  map[uuid.UUID]exchange.Swap // of each owner, one
}

func newHarness(t *testing.T) *harness {
	w := &harness{env: start(t), people: map[exchange.Role]person{}, wallet: map[uuid.UUID]exchange.Wallet{}, sales: map[uuid.UUID]uuid.UUID{}, proofs: map[uuid.UUID]uuid.UUID{}, swaps: map[uuid.UUID]exchange.Swap{}}
	for _, r := range exchange.Roles() {
		if r != exchange.RoleSubvendor {
			w.people[r] = w.person(r)
		}
	}
	vendor := w.people[exchange.RoleVendor]
	w.people[exchange.RoleSubvendor] = w.person(exchange.RoleSubvendor, vendor.ID)
	w.rival, w.other = w.person(exchange.RoleVendor), w.person(exchange.RoleCustomer)
	for _, p := range []person{vendor, w.rival, w.other, w.people[exchange.RoleCustomer], w.people[exchange.RoleUser], w.people[exchange.RoleSubvendor]} {
		w.wallet[p.ID] = w.env.wallet(p)
	}
	w.offer, w.theirs = w.env.offer(vendor, w.wallet[vendor.ID]), w.env.offer(w.rival, w.wallet[w.rival.ID])
	w.buys = w.env.buys(vendor)
	return w
}

// scene is the objects of one cell of the matrix: the caller's own, or those of another account.
type scene struct {
	w   *harness
	who person
	own bool
}

// merchantOf is the vendor of the scene's objects.
func (s scene) merchant() person {
	if s.own {
		return s.w.people[exchange.RoleVendor]
	}
	return s.w.rival
}

func (s scene) customer() person {
	switch {
	case !s.own:
		return s.w.other
	case s.who.Role == exchange.RoleCustomer || s.who.Role == exchange.RoleUser:
		return s.who
	}
	return s.w.people[exchange.RoleCustomer]
}

func (s scene) offerID(draft bool) uuid.UUID {
	if draft {
		return s.w.draft(s.merchant(), s.w.wallet[s.merchant().ID]).ID
	}
	if s.own {
		return s.w.offer.ID
	}
	return s.w.theirs.ID
}

func (s scene) orderID() uuid.UUID { return s.w.order(s.customer(), s.offerID(false)).ID }

// paid is a payment for an order of the caller's side, or of another account.
func (s scene) paid(amount string, late bool) exchange.PaymentOutcome {
	out := s.w.pays(s.customer(), s.offerID(false), amount, late)
	if late {
		s.w.watch(out.Exception.AttemptID)
	}
	return out
}

// cancelled is an order that the caller's side or another account opened: a merchant can't cancel those of customers.
func (s scene) cancelled() uuid.UUID {
	if s.own && s.who.Role.Merchant() {
		return s.w.asked(s.merchant(), s.w.person(exchange.RoleCustomer), s.offerID(false)).ID
	}
	return s.orderID()
}

// prompted is a purchase that the caller's side pays. Merchants buy from the house.
func (s scene) prompted() uuid.UUID {
	if s.own && s.who.Role.Merchant() {
		return s.w.boughtFromHouse(s.merchant()).ID
	}
	return s.orderID()
}

// saleID is a sale of the caller's side, or of another account. Merchants sell to the house.
func (s scene) saleID() uuid.UUID {
	seller, sell := s.customer(), func(p person) exchange.Order { return s.w.sale(p, s.w.buys.ID) }
	if s.who.Role.Merchant() {
		seller, sell = s.merchant(), s.w.soldToHouse
	}
	if s.w.sales[seller.ID] == uuid.Nil { // each borrows an escrow address, so one serves several routes
		s.w.sales[seller.ID] = sell(seller).ID
	}
	return s.w.sales[seller.ID]
}

func (s scene) walletID() uuid.UUID {
	if s.who.Role == exchange.RoleCustomer || s.who.Role == exchange.RoleUser {
		return s.w.wallet[s.customer().ID].ID
	}
	return s.w.wallet[s.merchant().ID].ID
}

// transferID is a transfer that the caller's side sends, or one between other accounts.
func (s scene) transferID() uuid.UUID {
	sender := s.customer()
	if s.who.Role.Merchant() {
		sender = s.merchant()
	}
	return s.w.transfer(sender, s.w.wallet[sender.ID]).ID
}

// quoteID is a quote of the caller's side, or of another account.
func (s scene) quoteID() uuid.UUID {
	owner := s.customer()
	if s.who.Role.Merchant() {
		owner = s.merchant()
	}
	return s.w.quote(owner, "2").ID
}

// multisigID is an account of several owners that is shared with the scene's merchant.
func (s scene) multisigID() uuid.UUID { return s.w.multisig(s.merchant().ID).ID }

// proposalID is a payment from a wallet of several owners that is shared with the scene's merchant, who proposed it.
func (s scene) proposalID() uuid.UUID { return s.w.proposal(s.merchant()).ID }

// cell is a valid request to a route, so that only the caller's rights decide the response.
type cell struct {
	id     func(scene) uuid.UUID // what stands for the path's parameter; nil where there is none
	body   func(scene) any
	shared bool // everybody's objects: there is no foreign one
}

func fixed(body any) func(scene) any { return func(scene) any { return body } }

// cells covers the routes with an object; those that are absent have none in their path.
func cells() map[string]cell {
	order := func(s scene) uuid.UUID { return s.orderID() }
	published := func(s scene) uuid.UUID { return s.offerID(false) }
	draft := func(s scene) uuid.UUID { return s.offerID(true) }
	wallet := func(s scene) uuid.UUID { return s.walletID() }
	merchant := func(s scene) uuid.UUID { return s.merchant().ID }
	account := func(s scene) uuid.UUID { return s.w.other.ID }
	transfer := func(s scene) uuid.UUID { return s.transferID() }
	quote := func(s scene) uuid.UUID { return s.quoteID() }
	note := fixed(map[string]any{"note": "because"})
	decided := fixed(map[string]any{"note": "because", "digest": strings.Repeat("0", 64)})
	proposed := func(s scene) uuid.UUID { return s.proposalID() }
	misfit := func(s scene) uuid.UUID { return s.w.misfit().Exception.ID }
	const auth = "/api/v1/auth/"
	all := map[string]cell{
		"GET " + auth + "orders/{id}": {id: order}, "GET " + auth + "orders/{id}/timeline": {id: order},
		"POST " + auth + "orders/{id}/cancel": {id: func(s scene) uuid.UUID { return s.cancelled() }}, "POST " + auth + "orders/{id}/retry-payment": {id: func(s scene) uuid.UUID { return s.prompted() }},
		"PATCH " + auth + "orders/{id}/refund-address": {id: func(s scene) uuid.UUID { return s.saleID() }, body: fixed(map[string]any{"refund_address": goodAddress})},
		"POST " + auth + "orders/{id}/accept-deposit":  {id: func(s scene) uuid.UUID { return s.saleID() }, body: fixed(map[string]any{"digest": strings.Repeat("0", 64)})},
		"POST " + auth + "orders/{id}/return-deposit":  {id: func(s scene) uuid.UUID { return s.saleID() }, body: fixed(map[string]any{"digest": strings.Repeat("0", 64)})},
		"POST " + auth + "orders/{id}/retry":           {id: order}, "POST " + auth + "orders/{id}/refund": {id: order, body: note},
		"POST " + auth + "orders/{id}/resolve":            {id: order, body: note},
		"GET " + auth + "payment-exceptions/{id}":         {id: func(s scene) uuid.UUID { return s.paid("259", true).Exception.ID }},
		"GET " + auth + "refunds/{id}":                    {id: func(s scene) uuid.UUID { return s.paid("100", false).Refund.ID }},
		"GET " + auth + "reconciliation/runs/{id}/items":  {id: func(s scene) uuid.UUID { return s.w.comparedRun() }, shared: true},
		"GET " + auth + "approvals/changes/{id}":          {id: func(s scene) uuid.UUID { return s.w.change() }, shared: true},
		"POST " + auth + "approvals/changes/{id}/confirm": {id: func(s scene) uuid.UUID { return s.w.change() }, shared: true},
		"POST " + auth + "approvals/changes/{id}/reject":  {id: func(s scene) uuid.UUID { return s.w.change() }, shared: true, body: note},
		"DELETE " + auth + "deny-list/{id}":               {id: func(s scene) uuid.UUID { return s.w.denied() }, shared: true},
		"GET " + auth + "transfers/{id}":                  {id: transfer}, "GET " + auth + "transfers/{id}/timeline": {id: transfer},
		"POST " + auth + "transfers/{id}/cancel": {id: transfer}, "POST " + auth + "transfers/{id}/approve": {id: transfer, body: decided},
		"POST " + auth + "transfers/{id}/reject": {id: transfer, body: decided}, "POST " + auth + "transfers/{id}/retry": {id: transfer},
		"POST " + auth + "transfers/{id}/refund":             {id: transfer, body: note},
		"POST " + auth + "transfers/{id}/payload":            {id: transfer},
		"POST " + auth + "transfers/{id}/signed-transaction": {id: transfer, body: fixed(map[string]any{"signed_transaction": "0a"})},
		"GET " + auth + "pricing/quotes/{id}":                {id: quote},
		"POST " + auth + "pricing/quotes/{id}/replay":        {id: quote},
		"GET " + auth + "offers/{id}":                        {id: published, shared: true},
		"PATCH " + auth + "offers/{id}":                      {id: draft, body: fixed(map[string]any{"rate": "130"})},
		"DELETE " + auth + "offers/{id}":                     {id: draft},
		"GET " + auth + "wallet/id/{id}":                     {id: wallet}, "GET " + auth + "wallet/id/{id}/balances": {id: wallet},
		"GET " + auth + "wallet/id/{id}/movements":              {id: wallet},
		"POST " + auth + "wallet/id/{id}/reopen-nonce-sequence": {id: wallet, body: fixed(map[string]any{"note": "why"})},
		"PUT " + auth + "wallet/id/{id}/set-default-network":    {id: wallet}, "PUT " + auth + "wallet/id/{id}/set-default": {id: wallet},
		"GET " + auth + "momo/float/moves/{id}":                     {id: func(s scene) uuid.UUID { return s.w.movedFloat() }, shared: true},
		"POST " + auth + "momo/float/moves/{id}/settle":             {id: func(s scene) uuid.UUID { return s.w.movedFloat() }, shared: true},
		"GET " + auth + "treasury/fee-sweeps/{id}":                  {id: func(s scene) uuid.UUID { return s.w.sweep() }, shared: true},
		"POST " + auth + "treasury/fee-sweeps/{id}/retry":           {id: func(s scene) uuid.UUID { return s.w.sweep() }, shared: true},
		"POST " + auth + "treasury/fee-sweeps/{id}/refund":          {id: func(s scene) uuid.UUID { return s.w.sweep() }, shared: true, body: fixed(map[string]any{"note": "not worth it"})},
		"POST " + auth + "treasury/fee-sweep-rules/{id}/switch-off": {id: func(s scene) uuid.UUID { return s.w.sweepRule() }, shared: true},
		"GET " + auth + "multisig/accounts/{id}":                    {id: func(s scene) uuid.UUID { return s.multisigID() }},
		"POST " + auth + "multisig/accounts/{id}/retry":             {id: func(s scene) uuid.UUID { return s.multisigID() }, shared: true},
		"POST " + auth + "multisig/accounts/{id}/refund":            {id: func(s scene) uuid.UUID { return s.multisigID() }, shared: true, body: note},
		"GET " + auth + "multisig/proposals/{id}":                   {id: proposed},
		"GET " + auth + "multisig/proposals/{id}/payload":           {id: proposed},
		"POST " + auth + "multisig/proposals/{id}/approve":          {id: proposed, body: decided},
		"POST " + auth + "multisig/proposals/{id}/reject":           {id: proposed, body: decided},
		"POST " + auth + "multisig/proposals/{id}/confirm":          {id: proposed, body: fixed(map[string]any{"payload_id": newID(), "signature": "00"})},
		"POST " + auth + "multisig/proposals/{id}/cancel":           {id: proposed},
		"POST " + auth + "multisig/proposals/{id}/execute":          {id: proposed},
		"POST " + auth + "multisig/proposals/{id}/retry":            {id: proposed},
		"POST " + auth + "treasury/fee-sweeps":                      {body: fixed(map[string]any{"asset": "KES", "amount": "1"})},
		"POST " + auth + "treasury/fee-sweep-rules":                 {body: fixed(map[string]any{"network": "tron", "asset": "USDT", "threshold": "5", "least": "1"})},
		"GET " + auth + "escrow-wallets/{id}":                       {id: func(s scene) uuid.UUID { return s.w.escrow() }, shared: true},
		"PATCH " + auth + "escrow-wallets/{id}":                     {id: func(s scene) uuid.UUID { return s.w.escrow() }, shared: true, body: fixed(map[string]any{"label": "shelf"})},
		"GET " + auth + "merchants/{merchant_id}":                   {id: merchant},
		"GET " + auth + "merchants/{merchant_id}/statement":         {id: merchant},
		"POST " + auth + "merchants/{merchant_id}/subvendors": {id: merchant, body: func(scene) any {
			n := people.Add(1)
			return invited("1" + strings.Repeat("0", 4) + string(rune('0'+n/100%10)) + string(rune('0'+n/10%10)) + string(rune('0'+n%10)))
		}},
		"GET " + auth + "webhook-endpoints/{id}":                {id: func(s scene) uuid.UUID { return s.webhookID() }},
		"PATCH " + auth + "webhook-endpoints/{id}":              {id: func(s scene) uuid.UUID { return s.webhookID() }, body: fixed(map[string]any{"description": "till"})},
		"DELETE " + auth + "webhook-endpoints/{id}":             {id: func(s scene) uuid.UUID { return s.webhookID() }},
		"POST " + auth + "webhook-endpoints/{id}/rotate-secret": {id: func(s scene) uuid.UUID { return s.webhookID() }},
		"POST " + auth + "webhook-endpoints/{id}/test":          {id: func(s scene) uuid.UUID { return s.webhookID() }},
		"POST " + auth + "webhook-deliveries/{id}/replay":       {id: func(s scene) uuid.UUID { return s.deliveryID() }},
		"GET " + auth + "users/{id}":                            {id: account, shared: true},
		"PATCH " + auth + "users/{id}":                          {id: account, shared: true, body: fixed(map[string]any{"verified": true})},
		"DELETE " + auth + "sessions/{id}": {id: func(s scene) uuid.UUID {
			if s.own {
				return s.w.session(s.who.User).session
			}
			return s.w.session(s.w.other.User).session
		}},
		"DELETE " + auth + "passkeys/{id}": {id: func(s scene) uuid.UUID {
			if s.own {
				return s.w.passkey(s.who.User)
			}
			return s.w.passkey(s.w.other.User)
		}},
		"POST " + auth + "user/me/verifications/{id}/confirm": {id: func(s scene) uuid.UUID {
			if s.own {
				return s.w.verification(s.who.User)
			}
			return s.w.verification(s.w.other.User)
		}, body: fixed(map[string]any{"code": "000000"})},
		"DELETE " + auth + "invitations/{id}": {id: func(s scene) uuid.UUID { return s.w.invitation(s.merchant()) }},
		"PUT " + auth + "user/me/password":    {body: fixed(map[string]any{"password": "not it", "new_password": "four unrelated words, long"})},
		"PUT " + auth + "user/id/{id}/pin": {id: func(s scene) uuid.UUID {
			if s.own {
				return s.who.ID
			}
			return s.w.other.ID
		}, body: fixed(map[string]any{"pin": "73915", "password": testPassword})},
	}
	maps.Copy(all, bankCells())
	maps.Copy(all, bankRefundCells())
	maps.Copy(all, attestationCells())
	maps.Copy(all, addressCells())
	maps.Copy(all, fileCells())
	maps.Copy(all, houseCells())
	maps.Copy(all, statementCells())
	maps.Copy(all, destinationCells())
	maps.Copy(all, otcCells())
	maps.Copy(all, withdrawalCells())
	maps.Copy(all, swapCells())
	for _, verb := range []string{"accept", "write-off", "credit", "refund"} {
		body := map[string]any{"note": "because"}
		all["POST "+auth+"payment-exceptions/{id}/"+verb] = cell{id: misfit, shared: true, body: fixed(body)}
	}
	var deal uuid.UUID
	oneSale := func(s scene) uuid.UUID { // of another account; one is enough, as nothing comes of the decisions
		if deal == uuid.Nil {
			deal = s.w.sale(s.w.other, s.w.buys.ID).ID
		}
		return deal
	}
	for _, verb := range []string{"approve", "reject"} {
		all["POST "+auth+"refunds/{id}/"+verb] = cell{id: func(s scene) uuid.UUID { return s.w.owedBack() }, shared: true, body: decided}
		all["POST "+auth+"orders/{id}/"+verb] = cell{id: oneSale, shared: true, body: decided}
	}
	for _, verb := range []string{"publish", "pause", "resume", "close", "suspend", "unsuspend"} {
		all["POST "+auth+"offers/{id}/"+verb] = cell{id: draft}
	}
	return all
}

// passkey is a new one of an account.
func (w *harness) passkey(u exchange.User) uuid.UUID {
	w.t.Helper()
	id := newID()
	p := exchange.Passkey{ID: id, UserID: u.ID, CredentialID: id[:], PublicKey: make([]byte, 32), AAGUID: make([]byte, 16), Transports: []string{}, Name: "key"}
	if err := w.store.AddPasskey(w.t.Context(), p, principalOf(person{User: u})); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// verification is a code that went to an account's number.
func (w *harness) verification(u exchange.User) uuid.UUID {
	w.t.Helper()
	v := exchange.Verification{ID: newID(), Purpose: exchange.VerifyContact, Channel: exchange.BySMS, Contact: newID().String(), UserID: u.ID}
	if err := w.store.AddVerification(w.t.Context(), v, [32]byte{1}); err != nil {
		w.t.Fatal(err)
	}
	return v.ID
}

// invitation is one of a merchant's subvendor.
func (w *harness) invitation(merchant person) uuid.UUID {
	w.t.Helper()
	id := newID()
	i := exchange.Invitation{
		ID: id, UserID: newID(), Role: exchange.RoleSubvendor, VendorID: merchant.ID, Email: id.String() + "@example.com", PhoneNumber: storetest.NewPhone(),
		FirstName: "Amina", LastName: "Otieno",
	}
	m := w.server.seal(uuid.Nil, invitationLetter("link"), exchange.ByEmail, i.Email, "invitation:"+id.String())
	if _, err := w.store.Invite(w.t.Context(), i, sha256.Sum256(id[:]), m, principalOf(merchant)); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// change is one that an account outside the harness proposed.
func (w *harness) change() uuid.UUID {
	w.t.Helper()
	limits := exchange.SpendingLimits{PerTransaction: money.Must(money.KES, strconv.Itoa(400_000+int(people.Load())))} // each time higher
	u, err := w.store.UpdateUser(w.t.Context(), w.other.ID, store.UserPatch{Limits: &limits}, principalOf(w.env.person(exchange.RoleAdmin)))
	if err != nil || len(u.Waits) != 1 {
		w.t.Fatalf("%d changes wait, %v", len(u.Waits), err)
	}
	return u.Waits[0].ID
}

// comparedRun is a comparison that has ended.
func (w *harness) comparedRun() uuid.UUID {
	return w.reconcile(w.wallet[w.other.ID]).ID
}

// misfit is a late payment without a decision.
func (w *harness) misfit() exchange.PaymentOutcome {
	out := w.pays(w.other, w.theirs.ID, "259", true)
	w.watch(out.Exception.AttemptID)
	return out
}

// owedBack is the refund of a payment of too little.
func (w *harness) owedBack() uuid.UUID {
	return w.pays(w.other, w.theirs.ID, "100", false).Refund.ID
}

// TestPolicyHoldsOnEveryRoute calls every route for every role, with objects of the caller and of another account,
// and without a token. The expectation comes only from the policy.
func TestPolicyHoldsOnEveryRoute(t *testing.T) {
	w := newHarness(t)
	w.fund(w.wallet[w.people[exchange.RoleVendor].ID], "1000000")
	catalog, walked := cells(), 0
	for _, r := range bareRoutes() {
		if r.public {
			continue
		}
		name := r.method + " " + r.path
		c := catalog[name]
		if strings.Contains(r.path, "_id}") || strings.Contains(r.path, "{id}") && !strings.Contains(r.path, "countries") && !strings.Contains(r.path, "fiat-currencies") {
			if c.id == nil {
				t.Fatalf("%s has an object and no line in the matrix", name)
			}
		}
		w.ask(r, c, scene{w: w, who: person{}}).refused(exchange.CodeUnauthenticated)
		for _, role := range exchange.Roles() {
			walked += w.walk(t, r, c, w.people[role])
		}
	}
	if walked < 7*len(exchange.Actions()) {
		t.Errorf("only %d cells were walked", walked)
	}
}

func (w *harness) walk(t *testing.T, r route, c cell, who person) int {
	t.Helper()
	scope, cellsWalked := exchange.ScopeOf(who.Role, r.action), 0
	for _, own := range []bool{true, false} {
		if !own && c.id == nil {
			continue
		}
		got := w.ask(r, c, scene{w: w, who: who, own: own})
		what := string(who.Role) + " " + r.method + " " + r.path
		cellsWalked++
		switch {
		case scope == exchange.ScopeNone:
			if got.status != http.StatusForbidden {
				t.Errorf("%s, own %v: %d, want 403: %s", what, own, got.status, got.body)
			}
		case !own && !c.shared && scope != exchange.ScopeAny:
			absent := w.send(r, c, scene{w: w, who: who}, newID())
			if got.status != http.StatusNotFound || !bytes.Equal(anonymous(got), anonymous(absent)) {
				t.Errorf("%s: foreign answers %d %s, absent %d %s", what, got.status, got.body, absent.status, absent.body)
			}
		case got.status == http.StatusForbidden || got.status == http.StatusUnauthorized || (c.id != nil && got.status == http.StatusNotFound) || got.status >= 500 && got.status != 501:
			t.Errorf("%s, own %v: %d, though the policy allows it: %s", what, own, got.status, got.body)
		}
	}
	return cellsWalked
}

func (w *harness) ask(r route, c cell, s scene) *reply {
	w.t.Helper()
	id := newID()
	if c.id != nil && s.who.token != "" {
		id = c.id(s)
	}
	return w.send(r, c, s, id)
}

func (w *harness) send(r route, c cell, s scene, id uuid.UUID) *reply {
	w.t.Helper()
	path := strings.ReplaceAll(r.path, "{role}", "user")
	if file, proven := w.proofs[id]; proven {
		path = strings.ReplaceAll(path, "{file}", file.String())
	}
	path = pathParameter.ReplaceAllString(path, id.String())
	var body any
	if c.body != nil {
		body = c.body(s)
	} else if r.method == post || r.method == patch {
		body = "{}"
	}
	options := []option{withKey(newID().String())}
	// Sessions that a call ended are opened again, so that the cells are independent.
	if s.who.token != "" {
		fresh := w.session(s.who.User)
		if r.method == del && strings.Contains(r.path, "/passkeys/") { // only a passkey removes one
			w.provePasskey(fresh.User, fresh.session)
		}
		options = append(options, fresh.auth())
	}
	return w.do(r.method, path, body, options...)
}

// TestListsHoldNoForeignRow requests each list as a new account without objects.
func TestListsHoldNoForeignRow(t *testing.T) {
	w := newHarness(t)
	w.order(w.people[exchange.RoleCustomer], w.offer.ID)
	w.transfer(w.people[exchange.RoleCustomer], w.wallet[w.people[exchange.RoleCustomer].ID])
	w.swap(w.people[exchange.RoleCustomer], w.wallet[w.people[exchange.RoleCustomer].ID])
	draft := w.draft(w.people[exchange.RoleVendor], w.wallet[w.people[exchange.RoleVendor].ID])
	for _, role := range []exchange.Role{exchange.RoleCustomer, exchange.RoleUser, exchange.RoleVendor} {
		stranger := w.person(role)
		for _, path := range []string{"orders", "wallets", "transfers", "swaps"} {
			if list := w.do(get, "/api/v1/auth/"+path, nil, stranger.auth()).want(200).object(); list["total"] != 0.0 {
				t.Errorf("a new %s lists %v %s", role, list["total"], path)
			}
		}
		events := w.do(get, "/api/v1/auth/events?page_size=100", nil, stranger.auth()).want(200).object()
		for _, ev := range events["events"].([]any) {
			if id := ev.(map[string]any)["object_id"]; id != stranger.ID.String() && ev.(map[string]any)["object_type"] != "offer" {
				t.Errorf("a new %s reads the event %v", role, ev)
			}
		}
		offers := w.do(get, "/api/v1/auth/offers?page_id=1&page_size=10", nil, stranger.auth()).want(200)
		if strings.Contains(string(offers.body), draft.ID.String()) {
			t.Errorf("a new %s lists another account's draft", role)
		}
	}
}

func TestWalletsForOwners(t *testing.T) {
	w := newHarness(t)
	vendor, sub, admin := w.people[exchange.RoleVendor], w.people[exchange.RoleSubvendor], w.people[exchange.RoleAdmin]
	customer, treasury := w.people[exchange.RoleCustomer], w.people[exchange.RoleTreasury]
	const path = "/api/v1/auth/wallets/owner"
	base := func(kind string, more map[string]any) map[string]any {
		body := map[string]any{"owner_type": kind, "network": "tron", "asset": "USDT"}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	user := func(p person) map[string]any { return map[string]any{"user_id": p.ID} }
	merchant := func(p person) map[string]any { return map[string]any{"merchant": map[string]any{"vendor_id": p.ID}} }
	subOf := func(p person) map[string]any {
		return map[string]any{"sub_merchant": map[string]any{"subvendor_id": p.ID}}
	}
	made := func(p person, body map[string]any, owner person, kind string) {
		t.Helper()
		r := w.do(post, path, body, p.auth()).want(http.StatusCreated)
		if r.text("owner_id") != owner.ID.String() || r.text("owner_type") != kind || r.text("custody") != "custodial" || r.text("wallet_type") != "hot" {
			t.Errorf("made %s", r.body)
		}
	}
	made(customer, base("customer", user(customer)), customer, "customer")
	made(admin, base("customer", user(customer)), customer, "customer")
	made(admin, base("customer", user(vendor)), vendor, "merchant")
	made(admin, base("customer", user(sub)), sub, "sub_merchant")
	w.do(post, path, base("customer", user(treasury)), admin.auth()).blames("/user_id not_found")
	made(vendor, base("merchant", merchant(vendor)), vendor, "merchant")
	made(vendor, base("sub_merchant", subOf(sub)), sub, "sub_merchant")
	made(admin, base("merchant", merchant(w.rival)), w.rival, "merchant")
	w.do(post, path, base("customer", user(w.other)), customer.auth()).blames("/user_id not_found")
	w.do(post, path, base("customer", user(customer)), vendor.auth()).refused(exchange.CodeForbidden)
	w.do(post, path, base("merchant", merchant(vendor)), customer.auth()).refused(exchange.CodeForbidden)
	w.do(post, path, base("merchant", merchant(w.rival)), vendor.auth()).blames("/merchant/vendor_id not_found")
	w.do(post, path, base("customer", nil), customer.auth()).blames("/user_id required")
	w.do(post, path, base("merchant", nil), vendor.auth()).blames("/merchant required")
	w.do(post, path, base("customer", map[string]any{"user_id": customer.ID, "merchant": map[string]any{"vendor_id": vendor.ID}}), customer.auth()).
		blames("/merchant conflict")
	w.do(post, path, adoptedOnTron(), treasury.auth()).want(http.StatusAccepted)
	w.do(post, path, adoptedOnTron(), vendor.auth()).refused(exchange.CodeForbidden)
	w.do(post, path, base("treasury", nil), treasury.auth()).blames("/custody required", "/treasury required", "/multisig required")
	ether := base("customer", user(customer))
	ether["network"] = "ethereum"
	w.do(post, path, ether, customer.auth()).refused(exchange.CodeUnsupported)
	ether["network"] = "solana"
	w.do(post, path, ether, customer.auth()).blames("/network enum")
	gas := w.do(post, "/api/v1/auth/wallets/provision", map[string]any{"network": "tron", "asset": "USDT", "purpose": "gas"}, admin.auth()).want(http.StatusCreated)
	if gas.text("purpose") != "gas" || gas.object()["owner_id"] != nil {
		t.Errorf("provisioned %s", gas.body)
	}
}

func TestWalletsAndTheirDefault(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	body := map[string]any{"network": "tron", "asset": "USDT", "label": "savings"}
	one := e.do(post, "/api/v1/auth/wallets", body, p.auth(), withKey("w")).want(http.StatusCreated)
	if again := e.do(post, "/api/v1/auth/wallets", body, p.auth(), withKey("w")).want(http.StatusCreated); again.text("id") != one.text("id") {
		t.Error("one key made two wallets")
	}
	two := e.do(post, "/api/v1/auth/wallets", body, p.auth(), withKey("v")).want(http.StatusCreated)
	if one.object()["is_default"] != true || two.object()["is_default"] != false {
		t.Errorf("defaults: %s %s", one.body, two.body)
	}
	for _, verb := range []string{"set-default-network", "set-default"} {
		if got := e.do(put, "/api/v1/auth/wallet/id/"+two.text("id")+"/"+verb, nil, p.auth()).want(200); got.object()["is_default"] != true {
			t.Errorf("%s: %s", verb, got.body)
		}
	}
	if got := e.do(get, "/api/v1/auth/wallet/id/"+one.text("id"), nil, p.auth()).want(200); got.object()["is_default"] != false {
		t.Error("two defaults")
	}
	id, _ := parseID(two.text("id"))
	e.fund(exchange.Wallet{ID: id}, "12.5")
	balances := e.do(get, "/api/v1/auth/wallet/id/"+two.text("id")+"/balances", nil, p.auth()).want(200).object()["balances"].([]any)
	got := map[string]any{}
	for _, b := range balances {
		got[b.(map[string]any)["asset"].(string)] = b.(map[string]any)["available"]
	}
	if got["USDT"] != "12.500000" || got["USDC"] != "0.000000" || got["TRX"] != "0.000000" {
		t.Errorf("balances %v", got)
	}
}

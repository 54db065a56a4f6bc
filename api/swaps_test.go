package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

const marksPath = swapsPath + "/inventory/marks"

func usdt(s string) money.Amount { return money.Must(money.USDT, s) }
func usdc(s string) money.Amount { return money.Must(money.USDC, s) }

// swapRates enters rates of both stablecoins where there is none: 129 for USDT and USDC alike.
func (e *env) swapRates() {
	e.t.Helper()
	for _, a := range []money.Asset{money.USDT, money.USDC} {
		_, total, err := e.store.FXRates(e.t.Context(), store.RateFilter{Base: a}, store.Page{Number: 1, Size: 1})
		if err != nil {
			e.t.Fatal(err)
		}
		if total == 0 {
			storetest.Rate(e.t, e.store, store.RateEntry{Base: a, Bid: decimal.RequireFromString("128.9"), Ask: decimal.RequireFromString("129.1")})
		}
	}
	storetest.AgreeValuations(e.t, e.store)
}

// swapQuote is a quote of 2 USDT for USDC in a wallet, which gets them, as the house gets the USDC.
func (e *env) swapQuote(owner person, in exchange.Wallet) exchange.SwapQuote {
	e.t.Helper()
	e.house()
	e.swapRates()
	coffer, err := e.store.HouseWallet(e.t.Context(), exchange.Tron)
	if err != nil {
		e.t.Fatal(err)
	}
	storetest.Deposit(e.t, e.store, coffer.ID, usdc("2"))
	e.fund(in, "2")
	q, err := e.store.OpenSwapQuote(e.t.Context(), exchange.SwapQuoteRequest{ID: newID(), WalletID: in.ID, From: money.USDT, To: money.USDC, Amount: usdt("2")}, principalOf(owner))
	if err != nil {
		e.t.Fatalf("quote a swap: %v", err)
	}
	return q
}

// swap opens a swap of 2 USDT in a wallet.
func (e *env) swap(owner person, in exchange.Wallet) exchange.Swap {
	e.t.Helper()
	o, err := storetest.OpenSwap(e.t.Context(), e.store, exchange.SwapRequest{ID: newID(), QuoteID: e.swapQuote(owner, in).ID}, principalOf(owner))
	if err != nil {
		e.t.Fatalf("swap: %v", err)
	}
	return o
}

// swapped is a swap of the caller's side, or of another account. One serves several routes.
func (s scene) swapped() exchange.Swap {
	owner := s.customer()
	if s.who.Role.Merchant() {
		owner = s.merchant()
	}
	if s.w.swaps[owner.ID].ID == uuid.Nil {
		s.w.swaps[owner.ID] = s.w.swap(owner, s.w.wallet[owner.ID])
	}
	return s.w.swaps[owner.ID]
}

func swapCells() map[string]cell {
	of := func(s scene) uuid.UUID { return s.swapped().ID }
	quote := func(s scene) uuid.UUID { return s.swapped().QuoteID }
	decided := fixed(map[string]any{"note": "because", "digest": strings.Repeat("0", 64)})
	return map[string]cell{
		"GET " + swapQuotesPath + "/{id}":         {id: quote},
		"POST " + swapQuotesPath + "/{id}/replay": {id: quote},
		"GET " + swapsPath + "/{id}":              {id: of},
		"POST " + swapsPath + "/{id}/cancel":      {id: of},
		"POST " + swapsPath + "/{id}/approve":     {id: of, body: decided},
		"POST " + swapsPath + "/{id}/reject":      {id: of, body: decided},
		"POST " + swapsPath + "/{id}/retry":       {id: of},
		"POST " + swapsPath + "/{id}/refund":      {id: of, body: fixed(map[string]any{"note": "because"})},
		"POST " + swapsPath + "/{id}/resolve":     {id: of, body: fixed(map[string]any{"outcome": "retry_payout"})},
	}
}

// swappers are who takes part in swaps: a customer and a merchant with 1,000 USDT each, and officers of a treasury with 500 USDC.
type swappers struct {
	*env
	customer, stranger, master, agent, boss, treasury, second, desk person
	wallet, shared, coffer                                          exchange.Wallet
}

func newSwappers(t *testing.T) swappers {
	t.Helper()
	e := start(t)
	w := swappers{env: e, customer: e.person(exchange.RoleCustomer), stranger: e.person(exchange.RoleCustomer), master: e.person(exchange.RoleVendor), boss: e.person(exchange.RoleAdmin)}
	w.agent, w.treasury, w.second, w.desk = e.person(exchange.RoleSubvendor, w.master.ID), e.person(exchange.RoleTreasury), e.person(exchange.RoleTreasury), e.person(exchange.RoleOTCOfficer)
	storetest.Patch(t, e.store, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {}, exchange.RoleVendor: {}, exchange.RoleSubvendor: {}},
		Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: money.Must(money.KES, "50000"), TwoAbove: money.Must(money.KES, "100000")}},
	})
	w.wallet, w.shared, w.coffer = e.wallet(w.customer), e.wallet(w.master), storetest.TreasuryWallet(t, e.store, exchange.Tron)
	e.fund(w.wallet, "1000")
	e.fund(w.shared, "1000")
	storetest.Deposit(t, e.store, w.coffer.ID, usdc("500"))
	for _, in := range []exchange.Wallet{w.wallet, w.shared, w.coffer} {
		storetest.Gas(t, e.store, in.ID, money.Must(money.TRX, "100"))
	}
	e.swapRates()
	return w
}

// quotes asks for a price for 100 USDT in the customer's wallet, with changes; nil leaves a field out.
func (w swappers) quotes(by person, change map[string]any, options ...option) *reply {
	w.t.Helper()
	body := map[string]any{"wallet_id": w.wallet.ID, "from_asset": "USDT", "to_asset": "USDC", "amount": "100"}
	for k, v := range change {
		if body[k] = v; v == nil {
			delete(body, k)
		}
	}
	return w.do(post, swapsPath+"/quote", body, append(options, by.auth())...)
}

func (w swappers) asks(by person, quote any) *reply {
	w.t.Helper()
	return w.do(post, swapsPath, map[string]any{"quote_id": quote}, by.auth(), freshKey())
}

// opens is the path of a swap of an amount of USDT in the customer's wallet.
func (w swappers) opens(amount string) string {
	w.t.Helper()
	q := w.quotes(w.customer, map[string]any{"amount": amount}).want(http.StatusCreated)
	return w.asks(w.customer, q.text("id")).want(http.StatusCreated).header.Get("Location")
}

func (w swappers) verb(path, verb string, body map[string]any, by person) *reply {
	w.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	return w.do(post, path+"/"+verb, body, by.auth(), freshKey())
}

func (w swappers) sees(path string, by person) map[string]any {
	w.t.Helper()
	return w.do(get, path, nil, by.auth()).want(http.StatusOK).object()
}

// is checks the state of a swap.
func (w swappers) is(path, status, detail string) {
	w.t.Helper()
	if o := w.sees(path, w.boss); o["status"] != status || o["status_detail"] != detail {
		w.t.Fatalf("the swap is %v (%v), want %s (%s)", o["status"], o["status_detail"], status, detail)
	}
}

func swapOf(path string) uuid.UUID { return uuid.MustParse(path[len(swapsPath)+1:]) }

// signs has a payment of a swap signed.
func (w swappers) signs(path string, role exchange.SwapLegRole) exchange.ChainAttempt {
	w.t.Helper()
	p, err := w.store.ChainPaymentOf(w.t.Context(), role.Purpose(), swapOf(path))
	if err != nil {
		w.t.Fatal(err)
	}
	id := newID()
	a, err := w.store.SaveSignedAttempt(w.t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: strings.Repeat(strings.ReplaceAll(id.String(), "-", ""), 2), Raw: []byte("signed"),
		ExpiresAt: time.Now().Add(time.Hour), FeeLimit: money.Must(money.TRX, "50"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// settles has a payment of a swap signed and made final.
func (w swappers) settles(path string, role exchange.SwapLegRole) {
	w.t.Helper()
	if _, err := w.store.RecordFinal(w.t.Context(), w.signs(path, role).ID, true, 200, "a-200", money.Must(money.TRX, "1"), "SUCCESS"); err != nil {
		w.t.Fatal(err)
	}
}

// watched has the deposit watch know the chain up to now.
func (w swappers) watched() error {
	now := exchange.ChainBlock{Number: 200, ID: "b-200", Time: time.Now()}
	_, err := w.store.StartDeposits(w.t.Context(), exchange.Tron, now)
	if err == nil {
		err = w.store.WatchAlive(w.t.Context(), exchange.Tron)
	}
	if err == nil {
		err = w.store.RecordLook(w.t.Context(), exchange.WatchLook{Network: exchange.Tron, Final: now, Life: time.Minute})
	}
	return err
}

// stuck is a swap whose payout stands still.
func (w swappers) stuck(amount string) string {
	w.t.Helper()
	if err := w.watched(); err != nil { // before anything is signed
		w.t.Fatal(err)
	}
	path := w.opens(amount)
	w.settles(path, exchange.LegCollect)
	out, err := w.store.PayOutSwap(w.t.Context(), swapOf(path))
	if err == nil {
		_, err = w.store.ParkChainPayment(w.t.Context(), out.PaymentID, "no energy")
	}
	if err == nil {
		_, err = w.store.StallSwap(w.t.Context(), swapOf(path))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.is(path, "needs_review", "payout_stuck")
	return path
}

// differing is a swap after whose payout the chain has another balance than the ledger.
func (w swappers) differing(amount string) string {
	w.t.Helper()
	path := w.opens(amount)
	w.settles(path, exchange.LegCollect)
	if _, err := w.store.PayOutSwap(w.t.Context(), swapOf(path)); err != nil {
		w.t.Fatal(err)
	}
	w.settles(path, exchange.LegPayout)
	var read []exchange.SwapBalance
	for _, in := range []exchange.Wallet{w.wallet, w.coffer} {
		for _, a := range []money.Asset{money.USDT, money.USDC} {
			read = append(read, exchange.SwapBalance{WalletID: in.ID, Asset: a, Ledger: "5", Chain: "5", Block: 300})
		}
	}
	read[1].Chain = "4.5"
	if _, err := w.store.SyncSwap(w.t.Context(), swapOf(path), read); err != nil {
		w.t.Fatal(err)
	}
	w.is(path, "needs_review", "balances_differ")
	return path
}

// A request for a price says what is wrong with it.
func TestQuotesOfSwapsNameWhatIsWrong(t *testing.T) {
	w := newSwappers(t)
	w.do(post, swapsPath+"/quote", map[string]any{}, w.customer.auth()).
		blames("/wallet_id required", "/from_asset required", "/to_asset required", "/amount required")
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"a wallet that is no id":    {map[string]any{"wallet_id": "mine"}, "/wallet_id format"},
		"no wallet":                 {map[string]any{"wallet_id": newID()}, "/wallet_id not_found"},
		"another's wallet":          {map[string]any{"wallet_id": w.shared.ID}, "/wallet_id not_found"},
		"the house's wallet":        {map[string]any{"wallet_id": w.coffer.ID}, "/wallet_id not_found"},
		"shillings given":           {map[string]any{"from_asset": "KES"}, "/from_asset enum"},
		"shillings got":             {map[string]any{"to_asset": "KES"}, "/to_asset enum"},
		"the same asset":            {map[string]any{"to_asset": "USDT"}, "/to_asset mismatch"},
		"nothing":                   {map[string]any{"amount": "0"}, "/amount out_of_range"},
		"too little":                {map[string]any{"amount": "-1"}, "/amount format"},
		"too many places":           {map[string]any{"amount": "1.0000001"}, "/amount precision"},
		"a number":                  {map[string]any{"amount": 1}, "/amount type"},
		"a side that is none":       {map[string]any{"amount_side": "fiat"}, "/amount_side enum"},
		"a field that is not known": {map[string]any{"network": "tron"}, "/network unknown_field"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := w
			inner.env = &env{t: t, store: w.store, server: w.server, flows: w.flows, base: w.base, client: w.client, logs: w.logs}
			inner.quotes(w.customer, c.change).blames(c.want)
		})
	}
	w.quotes(w.treasury, map[string]any{"wallet_id": w.coffer.ID}).blames("/wallet_id own_wallet")
	w.quotes(w.treasury, nil).blames("/wallet_id not_found")
	w.quotes(w.customer, map[string]any{"amount": "1000.000001"}).refused(exchange.CodeInsufficientFunds)
	w.quotes(w.customer, map[string]any{"amount": "500.000001", "amount_side": "to"}).refused(exchange.CodeInsufficientFunds) // of the inventory
	for _, who := range []person{w.boss, w.desk} {
		w.quotes(who, nil).refused(exchange.CodeForbidden)
	}
	storetest.Exec(t, w.store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, w.wallet.ID)
	w.quotes(w.customer, nil).blames("/wallet_id unsupported")
}

// A quote has the price by either amount, is read by its owner's side, and is replayed by officers.
func TestSwapsAreQuoted(t *testing.T) {
	w := newSwappers(t)
	profile := map[string]any{"scope": "swap", "asset": "USDC", "fixed": "0.1", "basis_points": 10, "spread_basis_points": 50}
	w.agree(w.do(post, profilesPath, profile, w.boss.auth()).want(http.StatusAccepted), w.treasury)
	key := freshKey()
	first := w.quotes(w.customer, nil, key).want(http.StatusCreated)
	q, path := first.object(), first.header.Get("Location")
	if path != swapQuotesPath+"/"+first.text("id") || q["rate"] != "0.995" || q["from_amount"] != "100.000000" || q["to_amount"] != "99.300500" || q["fee_amount"] != "0.199500" ||
		q["amount_side"] != "from" || q["status"] != "active" || q["formula"] != "kivuko-swap-1" || q["pricing_profile_id"] == nil || q["fee_profile_id"] != q["pricing_profile_id"] || q["swap_id"] != nil {
		t.Errorf("quoted %v", q)
	}
	if rate := q["to_fx_rate"].(map[string]any); rate["bid"] != "128.9" || rate["ask"] != "129.1" || rate["id"] == q["from_fx_rate"].(map[string]any)["id"] {
		t.Errorf("by the rate %v", rate)
	}
	if again := w.quotes(w.customer, nil, key).want(http.StatusCreated).object(); again["id"] != q["id"] {
		t.Error("the same request made two quotes")
	}
	if back := w.quotes(w.customer, map[string]any{"amount": "99.3005", "amount_side": "to"}).want(http.StatusCreated).object(); back["from_amount"] != "100.000000" || back["amount_side"] != "to" {
		t.Errorf("by what is got: %v", back)
	}
	w.quotes(w.customer, map[string]any{"amount": "0.1"}).blames("/amount out_of_range") // no more than the fee
	w.do(get, path, nil, w.stranger.auth()).refused(exchange.CodeNotFound)
	for _, who := range []person{w.customer, w.boss, w.desk, w.treasury} {
		if seen := w.sees(path, who); seen["hash"] != q["hash"] {
			t.Errorf("a %s sees %v", who.Role, seen)
		}
	}
	theirs := w.quotes(w.master, map[string]any{"wallet_id": w.shared.ID}).want(http.StatusCreated).header.Get("Location")
	if seen := w.sees(theirs, w.agent); seen["owner_id"] != w.master.ID.String() {
		t.Errorf("a subvendor sees %v", seen)
	}
	for _, who := range []person{w.customer, w.desk} {
		w.verb(path, "replay", nil, who).refused(exchange.CodeForbidden)
	}
	w.verb(swapQuotesPath+"/"+newID().String(), "replay", nil, w.boss).refused(exchange.CodeNotFound)
	if got := w.verb(path, "replay", nil, w.boss).want(http.StatusOK).object(); got["agrees"] != true || len(got["differs"].([]any)) != 0 || got["hash"] != q["hash"] ||
		got["recomputed"].(map[string]any)["to_amount"] != "99.300500" {
		t.Errorf("replayed as it is: %v", got)
	}
	storetest.Exec(t, w.store, `ALTER TABLE swap_quotes DISABLE TRIGGER ALL`)
	storetest.Exec(t, w.store, `UPDATE swap_quotes SET to_amount = 99, to_ask = to_ask + 1`)
	got := w.verb(path, "replay", nil, w.treasury).want(http.StatusOK).object()
	if want := []any{"rate", "to_amount", "fee", "hash", "fx_rate"}; got["agrees"] != false || !slices.Equal(got["differs"].([]any), want) {
		t.Errorf("tampered with: %v, want %v", got, want)
	}
	storetest.Exec(t, w.store, `ALTER TABLE swap_quotes DROP CONSTRAINT swap_quotes_formula_check`)
	storetest.Exec(t, w.store, `UPDATE swap_quotes SET formula = 'unknown'`)
	if got := w.verb(path, "replay", nil, w.boss).want(http.StatusOK).object(); got["recomputed"] != nil {
		t.Errorf("without a formula: %v", got)
	}
	if n := w.rowsOf("swap_quote.replayed"); n != 3 {
		t.Errorf("%d replays are in the audit log", n)
	}
}

// rowsOf counts the rows of the audit log about an action.
func (e *env) rowsOf(action string) int {
	e.t.Helper()
	var n int
	if err := storetest.Owner(e.t, e.store).QueryRow(`SELECT count(*) FROM audit_log WHERE action = $1`, action).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

// A swap is opened once with a quote of one's own that is active, and both sides are held.
func TestSwapsAreOpenedAtAQuote(t *testing.T) {
	w := newSwappers(t)
	quoted := func(by person, change map[string]any) string {
		return w.quotes(by, change).want(http.StatusCreated).text("id")
	}
	w.do(post, swapsPath, map[string]any{}, w.customer.auth(), freshKey()).blames("/quote_id required")
	w.do(post, swapsPath, map[string]any{"quote_id": "x", "wallet_id": w.wallet.ID}, w.customer.auth(), freshKey()).blames("/quote_id format", "/wallet_id unknown_field")
	w.do(post, swapsPath, map[string]any{"quote_id": newID()}, w.customer.auth()).refused(exchange.CodeIdempotencyRequired)
	w.asks(w.customer, newID()).blames("/quote_id not_found")
	id := quoted(w.customer, nil)
	for _, who := range []person{w.stranger, w.treasury} {
		w.asks(who, id).blames("/quote_id not_found")
	}
	w.asks(w.agent, quoted(w.master, map[string]any{"wallet_id": w.shared.ID})).blames("/quote_id not_found") // a colleague's
	for _, who := range []person{w.boss, w.desk} {
		w.asks(who, id).refused(exchange.CodeForbidden)
	}
	body, key := map[string]any{"quote_id": id}, freshKey()
	opened := w.do(post, swapsPath, body, w.customer.auth(), key).want(http.StatusCreated)
	path, o := opened.header.Get("Location"), opened.object()
	if path != swapsPath+"/"+opened.text("id") || o["status"] != "reserved" || o["status_detail"] != "signature" || o["quote_id"] != id || o["from_amount"] != "100.000000" ||
		o["to_amount"] != "100.000000" || o["owner_id"] != w.customer.ID.String() || o["merchant_id"] != nil || o["approval_digest"] != nil || o["difference"] != nil || o["completed_at"] != nil {
		t.Errorf("opened %v", o)
	}
	if legs := o["legs"].([]any); len(legs) != 1 || legs[0].(map[string]any)["role"] != "collect" || legs[0].(map[string]any)["tx_hash"] != nil || legs[0].(map[string]any)["confirmations"] != 0.0 {
		t.Errorf("its legs are %v", legs)
	}
	if again := w.do(post, swapsPath, body, w.customer.auth(), key).want(http.StatusCreated); again.text("id") != opened.text("id") {
		t.Error("one request opened two swaps")
	}
	if !slices.Contains(w.flows.calls, "swap "+opened.text("id")+" by quote "+id) {
		t.Errorf("flows were called: %v", w.flows.calls)
	}
	w.asks(w.customer, id).refused(exchange.CodeStateConflict)
	if used := w.sees(swapQuotesPath+"/"+id, w.customer); used["status"] != "consumed" || used["swap_id"] != opened.text("id") {
		t.Errorf("used, the quote is %v", used)
	}
	late := quoted(w.customer, nil)
	storetest.Exec(t, w.store, `ALTER TABLE swap_quotes DISABLE TRIGGER USER; UPDATE swap_quotes SET created_at = created_at - interval '2 minutes', expires_at = expires_at - interval '2 minutes' WHERE id = '`+
		late+`'; ALTER TABLE swap_quotes ENABLE TRIGGER USER`)
	w.asks(w.customer, late).refused(exchange.CodeExpired)
	big, rest := quoted(w.customer, map[string]any{"amount": "300"}), quoted(w.customer, map[string]any{"amount": "300"})
	w.asks(w.customer, big).want(http.StatusCreated)
	w.asks(w.customer, rest).refused(exchange.CodeInsufficientFunds) // the treasury has 100 left
	var open int
	if err := storetest.Owner(t, w.store).QueryRow(`SELECT count(*) FROM intents WHERE kind = 'swap.open' AND used_at IS NULL AND refused_at IS NULL`).Scan(&open); err != nil || open != 0 {
		t.Errorf("%d refused swaps may still be opened, %v", open, err)
	}
}

// Swaps are listed by what narrows them, for those who may see them.
func TestSwapsAreListed(t *testing.T) {
	w := newSwappers(t)
	one, two := w.opens("10"), w.opens("20")
	theirs := w.asks(w.agent, w.quotes(w.agent, map[string]any{"wallet_id": w.shared.ID}).want(http.StatusCreated).text("id")).want(http.StatusCreated).object()
	if theirs["merchant_id"] != w.master.ID.String() || theirs["requested_by"] != w.agent.ID.String() {
		t.Errorf("a subvendor opened %v", theirs)
	}
	w.verb(one, "cancel", nil, w.customer).want(http.StatusOK)
	day := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for query, want := range map[string]map[*person]float64{
		"":                                     {&w.customer: 2, &w.stranger: 0, &w.master: 1, &w.agent: 1, &w.boss: 3, &w.desk: 3, &w.treasury: 3},
		"?status=cancelled&network=tron":       {&w.customer: 1, &w.master: 0, &w.boss: 1},
		"?network=solana":                      {&w.boss: 0},
		"?wallet_id=" + w.shared.ID.String():   {&w.customer: 0, &w.master: 1, &w.boss: 1},
		"?owner_id=" + w.customer.ID.String():  {&w.master: 0, &w.boss: 2},
		"?merchant_id=" + w.master.ID.String(): {&w.customer: 0, &w.boss: 1},
		"?created_to=" + day:                   {&w.boss: 3},
		"?created_from=" + day:                 {&w.boss: 0},
	} {
		for who, total := range want {
			list := w.sees(swapsPath+query, *who)
			if list["total"] != total || float64(len(list["swaps"].([]any))) != total {
				t.Errorf("%s of a %s lists %v, want %v", query, who.Role, list["total"], total)
			}
		}
	}
	page := w.sees(swapsPath+"?page_id=1&page_size=1", w.customer)["swaps"].([]any)
	if len(page) != 1 || page[0].(map[string]any)["id"] != swapOf(two).String() {
		t.Errorf("the newest is %v", page)
	}
	w.do(get, swapsPath+"?status=open&network=base&wallet_id=x&owner_id=x&merchant_id=x&created_from=x&created_to=x", nil, w.boss.auth()).
		blames("query/wallet_id format", "query/status enum", "query/network enum", "query/owner_id format", "query/merchant_id format", "query/created_from format", "query/created_to format")
	w.do(get, one, nil, w.stranger.auth()).refused(exchange.CodeNotFound)
	w.do(get, swapsPath+"/"+newID().String(), nil, w.boss.auth()).refused(exchange.CodeNotFound)
}

// What is worth more than may leave a wallet alone waits for officers, none of whom requested it.
func TestOfficersDecideAboutSwaps(t *testing.T) {
	w := newSwappers(t)
	path := w.opens("400") // 51,600 shillings
	w.is(path, "reserved", "approval")
	o := w.sees(path, w.boss)
	if o["approvals_required"] != 1.0 || o["approvals_given"] != 0.0 || len(o["legs"].([]any)) != 0 || len(o["approval_digest"].(string)) != 64 {
		t.Errorf("officers see %v", o)
	}
	for _, who := range []person{w.customer, w.master, w.desk} {
		w.verb(path, "approve", nil, who).refused(exchange.CodeForbidden)
		w.verb(path, "reject", map[string]any{"note": "no"}, who).refused(exchange.CodeForbidden)
	}
	w.verb(path, "approve", map[string]any{"digest": ""}, w.boss).blames("/digest required")
	w.verb(path, "reject", nil, w.boss).blames("/note required")
	w.verb(path, "approve", map[string]any{"digest": strings.Repeat("0", 64)}, w.boss).blames("/digest mismatch")
	waits := func(who person) []any {
		return w.do(get, "/api/v1/auth/approvals/pending", nil, who.auth()).want(http.StatusOK).object()["swaps"].([]any)
	}
	pending := waits(w.treasury)
	if len(pending) != 1 || pending[0].(map[string]any)["workflow_id"] != workflows.SwapID(swapOf(path)) || pending[0].(map[string]any)["digest"] != o["approval_digest"] ||
		pending[0].(map[string]any)["amount"] != "400.000000" || pending[0].(map[string]any)["to_asset"] != "USDC" {
		t.Errorf("what waits is %v", pending)
	}
	about := map[string]any{"object_type": "swap", "object_id": o["id"], "action": "approve", "amount": "400", "digest": o["approval_digest"]}
	token := w.do(post, "/api/v1/auth/approvals/tokens", about, w.treasury.auth()).want(http.StatusCreated).object()
	if token["asset"] != "USDT" || token["signal"] != workflows.SignalApprove || token["workflow_id"] != workflows.SwapID(swapOf(path)) {
		t.Errorf("the token is %v", token)
	}
	about["object_id"] = newID()
	w.do(post, "/api/v1/auth/approvals/tokens", about, w.treasury.auth()).blames("/object_id not_found")
	if got := w.verb(path, "approve", map[string]any{"note": "known"}, w.treasury).want(http.StatusOK).object(); got["status_detail"] != "signature" || got["approvals_given"] != 1.0 || len(got["legs"].([]any)) != 1 {
		t.Errorf("approved %v", got)
	}
	w.verb(path, "reject", map[string]any{"note": "too late"}, w.boss).refused(exchange.CodeStateConflict)
	if left := waits(w.treasury); len(left) != 0 {
		t.Errorf("what waits is %v", left)
	}
	next := w.opens("95") // together with the one before
	w.is(next, "reserved", "approval")
	if got := w.verb(next, "reject", map[string]any{"note": "not theirs"}, w.boss).want(http.StatusOK).object(); got["status"] != "cancelled" || got["status_detail"] != "rejected_by_officer" {
		t.Errorf("rejected %v", got)
	}
}

// The house's own swap is not decided by the officer who opened it.
func TestRequestersDontDecideAboutTheirSwaps(t *testing.T) {
	w := newSwappers(t)
	purse := storetest.TreasuryWallet(t, w.store, exchange.Tron)
	w.fund(purse, "450")
	q := w.quotes(w.treasury, map[string]any{"wallet_id": purse.ID, "amount": "400"}).want(http.StatusCreated).text("id")
	opened := w.asks(w.treasury, q).want(http.StatusCreated)
	path := opened.header.Get("Location")
	if o := opened.object(); o["owner_id"] != nil || o["merchant_id"] != nil || o["requested_by"] != w.treasury.ID.String() {
		t.Errorf("opened %v", o)
	}
	storetest.Exec(t, w.store, `ALTER TABLE swaps DISABLE TRIGGER USER`)
	storetest.Exec(t, w.store, `UPDATE swaps SET status_detail = 'approval'`)
	w.verb(path, "approve", nil, w.treasury).refused(exchange.CodeForbidden)
	w.verb(path, "reject", map[string]any{"note": "mine"}, w.treasury).refused(exchange.CodeForbidden)
	if left := w.do(get, "/api/v1/auth/approvals/pending", nil, w.treasury.auth()).want(http.StatusOK).object()["swaps"].([]any); len(left) != 0 {
		t.Errorf("its requester is asked to decide: %v", left)
	}
}

// A swap is given up by its owner's side or by staff, until a transaction is signed.
func TestSwapsAreCancelled(t *testing.T) {
	w := newSwappers(t)
	path := w.opens("10")
	w.verb(path, "cancel", nil, w.stranger).refused(exchange.CodeNotFound)
	w.verb(path, "cancel", nil, w.master).refused(exchange.CodeNotFound)
	w.verb(path, "cancel", nil, w.desk).refused(exchange.CodeForbidden)
	w.verb(path, "cancel", map[string]any{"note": "no"}, w.customer).blames("/note unknown_field")
	if o := w.verb(path, "cancel", nil, w.customer).want(http.StatusOK).object(); o["status"] != "cancelled" || o["status_detail"] != "cancelled_by_sender" {
		t.Errorf("cancelled %v", o)
	}
	w.verb(path, "cancel", nil, w.customer).want(http.StatusOK)
	byStaff := w.opens("10")
	if o := w.verb(byStaff, "cancel", nil, w.treasury).want(http.StatusOK).object(); o["status"] != "cancelled" || o["status_detail"] != "cancelled_by_operator" {
		t.Errorf("cancelled by an officer %v", o)
	}
	w.flows.ended = append(w.flows.ended, workflows.SwapID(swapOf(byStaff)))
	w.verb(byStaff, "cancel", nil, w.treasury).refused(exchange.CodeStateConflict)
	signed := w.opens("10")
	w.signs(signed, exchange.LegCollect)
	w.verb(signed, "cancel", nil, w.customer).refused(exchange.CodeStateConflict)
	w.verb(signed, "cancel", nil, w.boss).refused(exchange.CodeStateConflict)
	w.is(signed, "collecting", "broadcast")
	if leg := w.sees(signed, w.customer)["legs"].([]any)[0].(map[string]any); leg["status"] != "signed" || leg["tx_hash"] == nil || leg["asset"] != "USDT" || leg["amount"] != "10.000000" {
		t.Errorf("its leg is %v", leg)
	}
}

// A leg that is in a block and not final shows how many blocks there are since.
func TestLegsShowTheirConfirmations(t *testing.T) {
	w := newSwappers(t)
	path := w.opens("10")
	a := w.signs(path, exchange.LegCollect)
	if _, err := w.store.StartDeposits(t.Context(), exchange.Tron, exchange.ChainBlock{Number: 195, ID: "b-195", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.RecordIncluded(t.Context(), a.ID, 191, "b-191"); err != nil {
		t.Fatal(err)
	}
	if leg := w.sees(path, w.customer)["legs"].([]any)[0].(map[string]any); leg["status"] != "included" || leg["confirmations"] != 5.0 {
		t.Errorf("in a block the leg is %v", leg)
	}
	if _, err := w.store.RecordFinal(t.Context(), a.ID, true, 191, "b-191", money.Must(money.TRX, "1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if leg := w.sees(path, w.customer)["legs"].([]any)[0].(map[string]any); leg["status"] != "completed" || leg["confirmations"] != 0.0 {
		t.Errorf("final the leg is %v", leg)
	}
}

// Operators retry a parked swap or give it up, by a command that its flow reads.
func TestOperatorsOfSwaps(t *testing.T) {
	w := newSwappers(t)
	path := w.opens("10")
	for _, who := range []person{w.customer, w.desk} {
		w.verb(path, "retry", nil, who).refused(exchange.CodeForbidden)
		w.verb(path, "refund", map[string]any{"note": "why"}, who).refused(exchange.CodeForbidden)
	}
	w.verb(path, "refund", nil, w.boss).blames("/note required")
	w.verb(path, "retry", map[string]any{"why": "x"}, w.boss).blames("/why unknown_field")
	w.verb(swapsPath+"/"+newID().String(), "retry", nil, w.boss).refused(exchange.CodeNotFound)
	if o := w.verb(path, "retry", map[string]any{"note": "the node is back"}, w.boss).want(http.StatusAccepted).object(); o["retry"] != "requested" || o["status"] != "reserved" {
		t.Errorf("retried %v", o)
	}
	if o := w.verb(path, "refund", map[string]any{"note": "no energy"}, w.treasury).want(http.StatusOK).object(); o["id"] != swapOf(path).String() {
		t.Errorf("given up %v", o)
	}
	var used []string
	rows, err := storetest.Owner(t, w.store).Query(`SELECT verb || ' ' || note || ' ' || (used_at IS NOT NULL) FROM operator_commands WHERE object_type = 'swap' ORDER BY created_at`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		used = append(used, line)
	}
	if want := []string{"retry the node is back true", "refund no energy true"}; rows.Err() != nil || !slices.Equal(used, want) {
		t.Errorf("commands are %v, want %v", used, want)
	}
	if n := w.rowsOf("swap.retry") + w.rowsOf("swap.refund"); n != 2 {
		t.Errorf("%d commands are in the audit log", n)
	}
	w.flows.ended = append(w.flows.ended, workflows.SwapID(swapOf(path)))
	w.verb(path, "retry", nil, w.boss).refused(exchange.CodeStateConflict)
}

// One officer has a payout tried again; that a swap goes back, or that a difference stays, two agree on, and its flow looks again then.
func TestSwapsThatNeedAReviewAreResolved(t *testing.T) {
	w := newSwappers(t)
	path := w.stuck("10")
	w.verb(path, "resolve", nil, w.boss).blames("/outcome required")
	w.verb(path, "resolve", map[string]any{"outcome": "paid"}, w.boss).blames("/outcome enum")
	for _, outcome := range []string{"refund", "accept_difference"} {
		w.verb(path, "resolve", map[string]any{"outcome": outcome}, w.boss).blames("/note required")
		w.verb(path, "resolve", map[string]any{"outcome": outcome, "note": strings.Repeat("x", 501)}, w.boss).blames("/note too_long")
		w.verb(swapsPath+"/"+newID().String(), "resolve", map[string]any{"outcome": outcome, "note": "why"}, w.boss).refused(exchange.CodeNotFound)
	}
	for _, who := range []person{w.customer, w.desk} {
		w.verb(path, "resolve", map[string]any{"outcome": "retry_payout"}, who).refused(exchange.CodeForbidden)
	}
	w.verb(path, "resolve", map[string]any{"outcome": "accept_difference", "note": "why"}, w.boss).refused(exchange.CodeStateConflict)
	w.flows.reset()
	w.verb(path, "resolve", map[string]any{"outcome": "retry_payout"}, w.boss).want(http.StatusOK)
	if want := "command flow " + workflows.SwapID(swapOf(path)); !slices.Contains(w.flows.calls, want) {
		t.Errorf("flows were told: %v, want %s", w.flows.calls, want)
	}
	decide := func(path, outcome, status, detail string) {
		t.Helper()
		before := w.sees(path, w.boss)
		waits := w.verb(path, "resolve", map[string]any{"outcome": outcome, "note": "looked at the chain"}, w.treasury)
		if about := waiting(waits); about["kind"] != "swap_resolution" || about["change"].(map[string]any)["swap_id"] != swapOf(path).String() || about["was"].(map[string]any)["status"] != "needs_review" {
			t.Errorf("what waits is %v", about)
		}
		if now := w.sees(path, w.boss); now["status"] != before["status"] || now["version"] != before["version"] {
			t.Errorf("one officer made it %v", now)
		}
		w.flows.reset()
		w.confirmedBy(w.treasury, waits).refused(exchange.CodeForbidden)
		w.is(path, "needs_review", before["status_detail"].(string))
		if len(w.flows.calls) != 0 {
			t.Errorf("before a second officer, flows were told: %v", w.flows.calls)
		}
		w.confirmedBy(w.second, waits).want(http.StatusOK)
		w.is(path, status, detail)
		if want := "look at " + swapOf(path).String(); !slices.Contains(w.flows.calls, want) {
			t.Errorf("flows were told: %v, want %s", w.flows.calls, want)
		}
	}
	decide(path, "refund", "refunding", "signature")
	w.verb(path, "resolve", map[string]any{"outcome": "refund", "note": "again"}, w.boss).refused(exchange.CodeStateConflict)
	path = w.differing("20")
	w.verb(path, "resolve", map[string]any{"outcome": "refund", "note": "it is paid"}, w.boss).refused(exchange.CodeStateConflict)
	if off := w.sees(path, w.desk)["difference"].([]any); len(off) != 1 || off[0].(map[string]any)["ledger"] != "5" || off[0].(map[string]any)["chain"] != "4.5" {
		t.Errorf("the difference is %v", off)
	}
	if seen := w.sees(path, w.customer); seen["difference"] != nil || seen["approval_digest"] != nil {
		t.Errorf("the owner sees %v", seen)
	}
	decide(path, "accept_difference", "completed", "difference_accepted")
	done := w.sees(path, w.customer)
	if legs := done["legs"].([]any); done["completed_at"] == nil || len(legs) != 2 || legs[1].(map[string]any)["role"] != "payout" || legs[1].(map[string]any)["status"] != "completed" {
		t.Errorf("completed %v", done)
	}
}

// Officers see what the treasury's wallets have and what to move; two agree on the marks.
func TestInventoryOfSwapsHasMarks(t *testing.T) {
	w := newSwappers(t)
	const path = swapsPath + "/inventory"
	mark := func(by person, change map[string]any) *reply {
		body := map[string]any{"network": "tron", "asset": "USDC", "low": "600", "high": "1000"}
		for k, v := range change {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return w.do(post, marksPath, body, by.auth(), freshKey())
	}
	found := func(asset string) map[string]any {
		t.Helper()
		all := w.sees(path, w.treasury)["inventory"].([]any)
		i := slices.IndexFunc(all, func(v any) bool { return v.(map[string]any)["asset"] == asset })
		if len(all) != 2 || i < 0 {
			t.Fatalf("the inventory is %v", all)
		}
		return all[i].(map[string]any)
	}
	for _, who := range []person{w.customer, w.master, w.desk} {
		w.do(get, path, nil, who.auth()).refused(exchange.CodeForbidden)
		mark(who, nil).refused(exchange.CodeForbidden)
	}
	w.do(post, marksPath, map[string]any{}, w.boss.auth(), freshKey()).blames("/network required", "/asset required", "/low required", "/high required")
	mark(w.boss, map[string]any{"network": "base", "asset": "KES"}).blames("/network enum", "/asset enum")
	mark(w.boss, map[string]any{"low": "-1", "high": "0.0000001"}).blames("/low format", "/high precision")
	mark(w.boss, map[string]any{"low": "1001"}).blames("/high out_of_range")
	mark(w.boss, map[string]any{"network": "solana"}).refused(exchange.CodeUnsupported) // the house has no wallet there
	w.do(post, marksPath, map[string]any{"network": "tron", "asset": "USDC", "low": "0", "high": "0"}, w.boss.auth()).refused(exchange.CodeIdempotencyRequired)
	w.opens("100")
	if i := found("USDC"); i["posted"] != "500.000000" || i["held"] != "100.000000" || i["available"] != "400.000000" || i["low"] != nil || i["move_direction"] != nil || i["move_amount"] != "0.000000" ||
		i["wallet_id"] != w.coffer.ID.String() || i["network"] != "tron" {
		t.Errorf("without marks there is %v", i)
	}
	waits := mark(w.treasury, nil)
	if about := waiting(waits); about["kind"] != "swap_marks" || about["change"].(map[string]any)["low"] != "600" {
		t.Errorf("what waits is %v", about)
	}
	w.confirmedBy(w.treasury, waits).refused(exchange.CodeForbidden)
	if i := found("USDC"); i["low"] != nil {
		t.Errorf("one officer set marks: %v", i)
	}
	w.confirmedBy(w.boss, waits).want(http.StatusOK)
	if _, err := w.store.WatchSwapInventory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := found("USDC"); i["low"] != "600.000000" || i["high"] != "1000.000000" || i["low_since"] == nil || i["move_direction"] != "in" || i["move_amount"] != "600.000000" {
		t.Errorf("too little is %v", i)
	}
	w.confirmedBy(w.second, mark(w.boss, map[string]any{"low": "0", "high": "150"})).want(http.StatusOK)
	if i := found("USDC"); i["move_direction"] != "out" || i["move_amount"] != "250.000000" {
		t.Errorf("too much is %v", i)
	}
	if i := found("USDT"); i["low"] != nil || i["posted"] != "0.000000" || len(i["sources"].([]any)) != 0 {
		t.Errorf("of the other asset there is %v", i)
	}
	w.env.watched(exchange.Tron)
	a := storetest.MultisigWallet(t, w.store, exchange.MultisigRequest{
		ID: newID(), Network: exchange.Tron, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Address: "account-" + newID().String(), Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: "owner-" + newID().String()}, {Address: "owner-" + newID().String()}}, Policy: exchange.MultisigPolicy{Approvals: 1},
	})
	storetest.Deposit(t, w.store, a.ID, usdt("75"))
	if all := found("USDT")["sources"].([]any); len(all) != 1 || !maps.Equal(all[0].(map[string]any), map[string]any{
		"wallet_id": a.ID.String(), "name": "Reserve", "available": "75.000000", "destination": w.coffer.Address,
	}) {
		t.Errorf("it can be brought from %v", all)
	}
}

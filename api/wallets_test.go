package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/chain/ethereum"
	"kivuko/chain/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// everywhere turns all three networks on, with USDC off on TRON.
func everywhere(d *Deps) {
	d.Addresses[exchange.Ethereum], d.Addresses[exchange.Solana] = ethereum.ParseAddress, solana.ParseAddress
	d.Refuses = func(n exchange.Network, a money.Asset) string {
		if n == exchange.Tron && a == money.USDC {
			return "its issuer has stopped it there"
		}
		return ""
	}
}

const (
	walletsPath   = "/api/v1/auth/wallets"
	provisionPath = walletsPath + "/provision"
)

// Every owner gets wallets on ethereum and tron, hot and cold; on solana an admin provisions them, for every owner.
func TestWalletsOnEveryNetwork(t *testing.T) {
	e := start(t, everywhere)
	vendor, admin := e.person(exchange.RoleVendor), e.person(exchange.RoleAdmin)
	sub := e.person(exchange.RoleSubvendor, vendor.ID)
	user, customer := e.person(exchange.RoleUser), e.person(exchange.RoleCustomer)
	for _, network := range []string{"ethereum", "tron"} {
		for _, kind := range []string{"hot", "cold"} {
			for _, owner := range []struct {
				who  person
				kind string
				more map[string]any
			}{
				{user, "customer", map[string]any{"user_id": user.ID}},
				{customer, "customer", map[string]any{"user_id": customer.ID}},
				{vendor, "merchant", map[string]any{"merchant": map[string]any{"vendor_id": vendor.ID}}},
				{sub, "sub_merchant", map[string]any{"sub_merchant": map[string]any{"subvendor_id": sub.ID}}},
			} {
				body := map[string]any{"owner_type": owner.kind, "network": network, "asset": "USDT", "wallet_type": kind}
				for k, v := range owner.more {
					body[k] = v
				}
				r := e.do(post, walletsPath+"/owner", body, owner.who.auth()).want(http.StatusCreated)
				if r.text("network") != network || r.text("wallet_type") != kind || r.text("owner_id") != owner.who.ID.String() || r.object()["is_default"] != (kind == "hot") {
					t.Errorf("%s %s for %s: %s", kind, network, owner.kind, r.body)
				}
			}
		}
	}
	for _, p := range []person{user, customer, vendor, sub} {
		e.do(post, walletsPath, map[string]any{"network": "solana", "asset": "USDC"}, p.auth()).blames("/network enum")
		body := map[string]any{"network": "solana", "asset": "USDC", "user_id": p.ID}
		e.do(post, provisionPath, body, p.auth()).refused(exchange.CodeForbidden)
		if r := e.do(post, provisionPath, body, admin.auth()).want(http.StatusCreated); r.text("network") != "solana" || r.text("owner_id") != p.ID.String() {
			t.Errorf("provisioned %s", r.body)
		}
	}
	for _, officer := range []person{admin, e.person(exchange.RoleTreasury), e.person(exchange.RoleOTCOfficer)} {
		e.do(post, provisionPath, map[string]any{"network": "tron", "asset": "USDT", "user_id": officer.ID}, admin.auth()).blames("/user_id not_found")
		e.do(post, walletsPath+"/owner", map[string]any{"owner_type": "customer", "network": "tron", "asset": "USDT", "user_id": officer.ID}, admin.auth()).blames("/user_id not_found")
	}
	for _, network := range networkNames {
		for _, purpose := range housePurposes {
			r := e.do(post, provisionPath, map[string]any{"network": network, "asset": "USDT", "purpose": purpose}, admin.auth()).want(http.StatusCreated)
			if r.text("purpose") != purpose || r.text("network") != network || r.object()["owner_id"] != nil {
				t.Errorf("provisioned %s", r.body)
			}
		}
	}

	// The merchant's page has the wallets of all networks, its own and its subvendors'.
	m := e.do(get, "/api/v1/auth/merchants/"+vendor.ID.String(), nil, vendor.auth()).want(http.StatusOK).object()
	counts := func(list any) map[string]int {
		on := map[string]int{}
		for _, w := range list.([]any) {
			on[w.(map[string]any)["network"].(string)]++
		}
		return on
	}
	subs := m["subvendors"].([]any)
	if len(subs) != 1 {
		t.Fatalf("%d subvendors", len(subs))
	}
	for who, list := range map[string]any{"vendor": m["wallets"], "subvendor": subs[0].(map[string]any)["wallets"]} {
		if on := counts(list); on["ethereum"] != 2 || on["tron"] != 2 || on["solana"] != 1 {
			t.Errorf("the %s's wallets: %v", who, on)
		}
	}
}

// An owner has one default on each network, and changing one leaves the others.
func TestDefaultsAreOfANetwork(t *testing.T) {
	e := start(t, everywhere)
	p, admin := e.person(exchange.RoleCustomer), e.person(exchange.RoleAdmin)
	second := map[string]string{}
	for _, network := range networkNames {
		for range 2 {
			r := e.do(post, provisionPath, map[string]any{"network": network, "asset": "USDT", "user_id": p.ID}, admin.auth()).want(http.StatusCreated)
			second[network] = r.text("id")
		}
	}
	defaults := func() map[string]string {
		on := map[string]string{}
		for _, w := range e.do(get, walletsPath+"?page_size=100", nil, p.auth()).want(http.StatusOK).object()["wallets"].([]any) {
			w := w.(map[string]any)
			if w["is_default"] == true {
				if on[w["network"].(string)] != "" {
					t.Errorf("two defaults on %s", w["network"])
				}
				on[w["network"].(string)] = w["id"].(string)
			}
		}
		return on
	}
	for i, network := range networkNames {
		before := defaults()
		verb := []string{"set-default-network", "set-default"}[i%2]
		e.do(put, "/api/v1/auth/wallet/id/"+second[network]+"/"+verb, nil, p.auth()).want(http.StatusOK)
		after := defaults()
		for _, n := range networkNames {
			if want := map[bool]string{true: second[n], false: before[n]}[n == network]; after[n] != want {
				t.Errorf("after %s on %s the default on %s is %s, want %s", verb, network, n, after[n], want)
			}
		}
	}
}

// An asset that its issuer has stopped is refused by name in every operation.
func TestStoppedAssetsAreRefused(t *testing.T) {
	m := openMarket(t, everywhere)
	admin := m.person(exchange.RoleAdmin)
	usdc := func(more map[string]any) map[string]any {
		body := map[string]any{"network": "tron", "asset": "USDC"}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	offer := usdc(map[string]any{"offer_type": "SELL", "usdt_amount": "100", "rate": "129.5", "min_order": "5", "max_order": "50", "wallet_id": m.wallet.ID})
	transfer := usdc(map[string]any{"amount": "1", "recipient": map[string]any{"address": goodAddress}})
	for name, r := range map[string]*reply{
		"wallet":    m.do(post, walletsPath, usdc(nil), m.vendor.auth()),
		"provision": m.do(post, provisionPath, usdc(map[string]any{"purpose": "gas"}), admin.auth()),
		"offer":     m.do(post, "/api/v1/auth/offers", offer, m.vendor.auth(), withKey("offer")),
		"transfer":  m.do(post, transfersPath, transfer, m.customer.auth(), withKey("transfer")),
	} {
		r.blames("/asset unsupported_asset")
		if !strings.Contains(string(r.body), "can't be USDC on tron: its issuer has stopped it there") {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	usdt := usdc(map[string]any{"asset": "USDT"})
	m.do(post, walletsPath, usdt, m.vendor.auth()).want(http.StatusCreated)
	m.do(post, walletsPath, map[string]any{"network": "ethereum", "asset": "USDC"}, m.vendor.auth()).want(http.StatusCreated)
	// An offer from before the issuer stopped takes no orders.
	m.server.Refuses = func(exchange.Network, money.Asset) string { return "its issuer has stopped it there" }
	m.do(post, "/api/v1/auth/orders", m.request(nil), m.customer.auth(), withKey("order")).blames("/asset unsupported_asset")
}

// Balances always show the ledger, even when the chain can't be read, and the chain's balance with its block.
func TestBalancesSideBySide(t *testing.T) {
	block := exchange.ChainBlock{Number: 77, ID: "block-77", Time: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	tron := func(_ context.Context, _ string, a money.Asset) (exchange.ChainBalance, error) {
		if a == money.TRX {
			return exchange.ChainBalance{}, errors.New("node 10.0.0.7 refused the connection")
		}
		return exchange.ChainBalance{Amount: money.Must(a, "12.25"), Block: block}, nil
	}
	e := start(t, everywhere, func(d *Deps) {
		d.Balances = map[exchange.Network]func(context.Context, string, money.Asset) (exchange.ChainBalance, error){exchange.Tron: tron}
	})
	p, admin := e.person(exchange.RoleCustomer), e.person(exchange.RoleAdmin)
	balances := func(network string) map[string]map[string]any {
		t.Helper()
		w := e.do(post, provisionPath, map[string]any{"network": network, "asset": "USDT", "user_id": p.ID}, admin.auth()).want(http.StatusCreated)
		id, err := uuid.Parse(w.text("id"))
		if err != nil {
			t.Fatal(err)
		}
		e.fund(exchange.Wallet{ID: id}, "12.5")
		of := map[string]map[string]any{}
		for _, b := range e.do(get, "/api/v1/auth/wallet/id/"+w.text("id")+"/balances", nil, p.auth()).want(http.StatusOK).object()["balances"].([]any) {
			b := b.(map[string]any)
			if b["chain"].(map[string]any)["status"] != "read" && (b["chain"].(map[string]any)["amount"] != nil || b["chain"].(map[string]any)["block"] != nil) {
				t.Errorf("an amount that was not read: %v", b)
			}
			of[b["asset"].(string)] = b
		}
		return of
	}
	on := balances("tron")
	chain := on["USDT"]["chain"].(map[string]any)
	at, _ := chain["block"].(map[string]any)
	if on["USDT"]["posted"] != "12.500000" || on["USDT"]["custody"] != "12.500000" || chain["status"] != "read" || chain["amount"] != "12.250000" ||
		at["number"] != 77.0 || at["id"] != "block-77" || at["time"] != "2026-11-21T09:00:00.000Z" {
		t.Errorf("USDT: %v", on["USDT"])
	}
	if got := on["TRX"]["chain"].(map[string]any); got["status"] != "unavailable" || strings.Contains(got["detail"].(string), "10.0.0.7") || on["TRX"]["posted"] != "0.000000" {
		t.Errorf("TRX: %v", on["TRX"])
	}
	if got := on["USDC"]["chain"].(map[string]any); got["status"] != "unsupported" || got["detail"] != "its issuer has stopped it there" {
		t.Errorf("USDC: %v", on["USDC"])
	}
	if off := balances("ethereum"); off["ETH"]["chain"].(map[string]any)["status"] != "unsupported" || off["USDT"]["available"] != "12.500000" {
		t.Errorf("a network that is off: %v", off)
	}
	for range maxChainReads { // everybody's reads together are bounded
		e.server.reads <- struct{}{}
	}
	if busy := balances("tron"); busy["USDT"]["chain"].(map[string]any)["status"] != "unavailable" || busy["USDT"]["posted"] != "12.500000" {
		t.Errorf("while too many are read: %v", busy)
	}
}

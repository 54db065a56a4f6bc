package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// arrive puts an amount of USDT on a sale's escrow address, for good, and applies it as the sale's flow does.
func (e *env) arrive(o exchange.Order, amount string) {
	e.t.Helper()
	ctx := e.t.Context()
	block := func(n uint64) exchange.ChainBlock {
		return exchange.ChainBlock{Number: n, ID: fmt.Sprintf("b%d", n), Parent: fmt.Sprintf("b%d", n-1), Time: time.Now().UTC()}
	}
	at, err := e.store.StartDeposits(ctx, exchange.Tron, block(100))
	if err != nil {
		e.t.Fatal(err)
	}
	next := block(at.Final.Number + 1)
	next.Parent = at.Final.ID
	moved := exchange.ChainMovement{TxID: "tx" + next.ID, From: "Tstranger0000000000000000000000000", To: o.EscrowAddress, Amount: money.Must(money.USDT, amount)}
	if _, err := e.store.RecordFinalBlock(ctx, exchange.BlockScan{Network: exchange.Tron, Block: next, Movements: []exchange.ChainMovement{moved}}); err != nil {
		e.t.Fatal(err)
	}
	found, err := e.store.OffRampDeposits(ctx, o.ID)
	if err != nil || len(found) == 0 {
		e.t.Fatalf("%d deposits came, %v", len(found), err)
	}
	for _, d := range found {
		if _, err := e.store.TakeDeposit(ctx, o.ID, d); err != nil {
			e.t.Fatal(err)
		}
	}
}

// The seller of a sale sees what came of another amount and what it would bring, and says whether to be paid for it.
func TestSellersDecideAboutAnotherAmount(t *testing.T) {
	c := openCounter(t)
	decide := func(o exchange.Order, verb, digest string, who person) *reply {
		return c.do(post, ordersPath+"/"+o.ID.String()+"/"+verb, map[string]any{"digest": digest}, who.auth(), freshKey())
	}
	shown := func(o exchange.Order, who person) map[string]any {
		t.Helper()
		other, _ := c.do(get, ordersPath+"/"+o.ID.String(), nil, who.auth()).want(http.StatusOK).object()["other_deposit"].(map[string]any)
		return other
	}
	o := c.env.sale(c.customer, c.buys.ID)
	decide(o, "accept-deposit", "x", c.customer).refused(exchange.CodeStateConflict)
	if other := shown(o, c.customer); other != nil {
		t.Errorf("before anything came, the sale shows %v", other)
	}
	c.env.arrive(o, "9.5")
	other := shown(o, c.customer)
	digest, _ := other["digest"].(string)
	if other["crypto_amount"] != "9.500000" || other["fiat_amount"] != "1228.00" || len(digest) != digestLength || other["tx_hash"] == "" {
		t.Fatalf("the sale shows %v", other)
	}
	if other := shown(o, c.vendor); other != nil {
		t.Errorf("the vendor sees %v", other)
	}
	decide(o, "accept-deposit", digest, c.vendor).refused(exchange.CodeForbidden)
	decide(o, "accept-deposit", digest, c.person(exchange.RoleCustomer)).refused(exchange.CodeNotFound)
	c.do(post, ordersPath+"/"+o.ID.String()+"/accept-deposit", map[string]any{}, c.customer.auth(), freshKey()).blames("/digest required")
	c.do(post, ordersPath+"/"+o.ID.String()+"/accept-deposit", map[string]any{"digest": digest}, c.customer.auth()).refused(exchange.CodeIdempotencyRequired)
	c.env.arrive(o, "9.7")
	decide(o, "accept-deposit", digest, c.customer).refused(exchange.CodeStateConflict) // something else is here by now
	got := decide(o, "accept-deposit", shown(o, c.customer)["digest"].(string), c.customer).want(http.StatusOK).object()
	if got["status"] != "processing" || got["crypto_amount"] != "9.700000" || got["other_deposit"] != nil {
		t.Errorf("accepted it is %v", got)
	}
	back := c.env.sale(c.customer, c.buys.ID)
	c.env.arrive(back, "4")
	digest = shown(back, c.customer)["digest"].(string)
	decide(back, "accept-deposit", digest, c.customer).refused(exchange.CodeStateConflict) // less than the offer's smallest order
	if got := decide(back, "return-deposit", digest, c.customer).want(http.StatusOK).object(); got["status"] != "failed" || got["status_detail"] != "deposit_mismatch" {
		t.Errorf("returned it is %v", got)
	}
}

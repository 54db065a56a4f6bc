package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange/money"
)

const inventoryPath = "/api/v1/auth/treasury/inventory"

// TestPurchaseFromTheHouse sets crypto of the treasury aside, as two officers agree, and sells some of it at a quote.
func TestPurchaseFromTheHouse(t *testing.T) {
	w := openBeside(t)
	n := w.tronNode()
	w.rate(t)
	w.letSend(t)
	w.allocateInventory(t, n, "20")
	o := w.boughtFromHouse(t, n)
	if lines := w.lines(t, "order:"+o.ID.String()+":completed"); len(lines) < 2 {
		t.Errorf("it is booked as %v", lines)
	}
	var left struct {
		Inventories []struct {
			Network   string          `json:"network"`
			Allocated decimal.Decimal `json:"allocated_amount"`
			Available decimal.Decimal `json:"available_amount"`
			Reserved  decimal.Decimal `json:"reserved_amount"`
			Sold      decimal.Decimal `json:"sold_amount"`
		} `json:"inventories"`
	}
	if err := w.operator(t).Get(t.Context(), inventoryPath, &left); err != nil || len(left.Inventories) != 1 {
		t.Fatalf("the inventories are %+v, %v", left, err)
	}
	i := left.Inventories[0] // which a purchase in the middle of a crash shares
	if i.Network != string(n.Network) || i.Sold.LessThan(decimal.NewFromInt(5)) || !i.Available.Add(i.Reserved).Add(i.Sold).Equal(i.Allocated) {
		t.Errorf("the inventory is %+v", i)
	}
	w.invariants(t)
	w.booksAgree(t)
}

// allocateInventory has two officers set USDT of the treasury aside for sale.
func (w *harness) allocateInventory(t *testing.T, n demo.Node, amount string) {
	t.Helper()
	w.inventoryMoves(t, n, amount, "in")
}

// inventoryMoves has two officers set USDT of the treasury aside for sale, or take it back.
func (w *harness) inventoryMoves(t *testing.T, n demo.Node, amount, direction string) {
	t.Helper()
	coffer, err := w.store.HouseWallet(t.Context(), n.Network)
	if err != nil {
		t.Fatal(err)
	}
	var waits testbed.Waits
	in := map[string]any{"wallet_id": coffer.ID, "asset": "USDT", "amount": amount, "direction": direction, "note": "to sell"}
	if err := insist(t.Context(), w.admin(t), inventoryPath, uuid.NewString(), in, &waits); err != nil {
		t.Fatal(err)
	}
	w.testbed.Agree(t, waits)
}

// houseForm is a request to buy five USDT from the house.
func (w *harness) houseForm(t *testing.T, n demo.Node, to string) map[string]any {
	t.Helper()
	var quote struct {
		ID uuid.UUID `json:"id"`
	}
	in := map[string]any{"purpose": "onramp", "offer_type": "SELL", "asset": "USDT", "amount": "5", "network": n.Network}
	if err := w.amina(t).Post(t.Context(), "/api/v1/auth/pricing/quotes", uuid.NewString(), in, &quote); err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"order_type": "ON_RAMP_BUY", "order_subtype": "treasury_onramp", "fx_rate_quote_id": quote.ID, "wallet_address": to, "payment_phone_number": "+" + newPhone(),
	}
}

// boughtFromHouse buys from the house, to a stranger's address, and checks that it came.
func (w *harness) boughtFromHouse(t *testing.T, n demo.Node) order {
	t.Helper()
	to, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	form := w.houseForm(t, n, to)
	o, err := place(t.Context(), w.amina(t), form, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := place(t.Context(), w.amina(t), form, uuid.NewString()); !is(err, http.StatusConflict) {
		t.Errorf("a quote is used twice: %v", err)
	}
	o = w.ends(t, o.ID, "completed", "")
	cameOnce(t, n, to, o.TxHash.String, money.Must(money.USDT, "5"))
	return o
}

// houseScenario is a purchase from the house that is opened while the process dies: between the commit that uses up its quote and takes
// its crypto from the inventory, and the answer.
type houseScenario struct{}

func (houseScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	n := w.tronNode()
	w.rate(t)
	w.allocateInventory(t, n, "10")
	form := w.houseForm(t, n, newAddress(t))
	arm()
	var err error
	if tr.order, err = place(t.Context(), w.amina(t), form, uuid.NewString()); err != nil {
		t.Fatal(err)
	}
}

func (houseScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	o := w.untilFor(t, tr.order.ID, "over", recovery, order.Over)
	if o.Status != "completed" {
		t.Fatalf("it ended %s", o)
	}
	if effects := collected(w.books(t), o.ID); len(effects) != 1 {
		t.Errorf("it was collected %d times: %+v", len(effects), effects)
	}
	cameOnce(t, w.tronNode(), o.WalletAddress, o.TxHash.String, money.Must(money.USDT, "5"))
	var taken string
	err := w.db.QueryRowContext(t.Context(), `SELECT sum(amount) FROM holds WHERE object_type = 'order' AND object_id = $1 AND status = 'captured'`, o.ID).Scan(&taken)
	if err != nil || !strings.HasPrefix(taken, "5.") && taken != "5" {
		t.Errorf("%s was taken from the inventory: %v", taken, err)
	}
}

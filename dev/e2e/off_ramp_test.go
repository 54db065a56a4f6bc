package e2e

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// The usual sale, and what the seed's buyers pay for it: 10 at 128.755, less the cents.
const (
	soldCrypto = "10"
	soldFiat   = 1287
)

// sale is one order that a test opens, of crypto against shillings.
type sale struct {
	crypto string // empty: soldCrypto
	phone  string // empty: a fresh one
	back   string // the refund address; empty: a stranger's
	key    string // of idempotency; empty: a fresh one
}

// sell opens an order as a customer does who holds crypto elsewhere.
func (w *harness) sell(t *testing.T, n demo.Node, s sale) order {
	t.Helper()
	o, err := place(t.Context(), w.amina(t), w.saleForm(t, n, &s), s.key)
	if err != nil {
		t.Fatal(err)
	}
	if o.Status != "pending" || o.StatusDetail != exchange.WaitDeposit || o.Escrow.String == "" || o.WalletAddress != o.Escrow.String {
		t.Fatalf("a new sale is %+v", o)
	}
	return o
}

// saleForm returns the request body for a sale, and fills in the sale's empty fields.
func (w *harness) saleForm(t *testing.T, n demo.Node, s *sale) map[string]any {
	t.Helper()
	if s.crypto == "" {
		s.crypto = soldCrypto
	}
	if s.phone == "" {
		s.phone = newPhone()
	}
	if s.key == "" {
		s.key = uuid.NewString()
	}
	if s.back == "" {
		var err error
		if s.back, err = stranger(n.Network); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]any{
		"order_type": "OFF_RAMP_SELL", "order_subtype": "standard_offramp", "offer_id": w.buyerOn(t, n.Network), "crypto_amount": s.crypto,
		"payment_phone_number": "+" + s.phone, "refund_address": s.back,
	}
}

// payIn sends crypto to an order's escrow address from a wallet outside our custody.
func (w *harness) payIn(t *testing.T, n demo.Node, o order, amount string) {
	t.Helper()
	if err := n.Fund(t.Context(), o.Escrow.String, money.Must(money.USDT, amount)); err != nil {
		t.Fatal(err)
	}
}

// decides has the seller accept or return the other amount that came, by an operation on the order.
func (w *harness) decides(t *testing.T, id uuid.UUID, verb string) {
	t.Helper()
	o := w.until(t, id, "asking for the seller's word", func(o order) bool { return o.Other != nil })
	w.sendCommand(t, w.amina(t), id, verb, map[string]any{"digest": o.Other.Digest})
}

// soldOnce waits for the end of a sale to the vendor and of all that follows it, and compares it with the operator's
// books and the chain.
func (w *harness) soldOnce(t *testing.T, n demo.Node, o order, crypto string, shillings int64) order {
	t.Helper()
	return w.soldTo(t, n, o, crypto, shillings, w.walletOf(t, demo.VendorEmail, n.Network).Address)
}

// soldTo compares a sale with the operator's books and the chain: the payee got the shillings once, the buyer got the
// crypto once, and no hold or balance is left.
func (w *harness) soldTo(t *testing.T, n demo.Node, o order, crypto string, shillings int64, to string) order {
	t.Helper()
	o = w.untilFor(t, o.ID, "over", recovery, order.Over)
	if o.Status != "completed" || o.FiatAmount != fmt.Sprintf("%d.00", shillings) {
		t.Fatalf("the sale ended %s for KES %s", o, o.FiatAmount)
	}
	w.saleOver(t, o)
	paid := w.paidFor(t, o)
	if len(paid) != 1 || paid[0].Amount != shillings || paid[0].Receipt != o.Receipt.String || paid[0].Phone != o.Phone.String {
		t.Errorf("sale %s of KES %d names receipt %q, the operator's books say %+v", o.ID, shillings, o.Receipt.String, paid)
	}
	cameOnce(t, n, to, w.sentFor(t, "sweep", o.ID), money.Must(money.USDT, crypto))
	w.leftNothing(t, n, o)
	return o
}

// paidFor returns the payouts that the operator made for all payout attempts of an order.
func (w *harness) paidFor(t *testing.T, o order) []sandbox.Effect {
	t.Helper()
	var asked []string
	err := w.db.QueryRowContext(t.Context(), `SELECT coalesce(array_agg(id::text), '{}') FROM payment_attempts WHERE order_id = $1 AND direction = 'payout'`, o.ID).
		Scan(pq.Array(&asked))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(w.books(t).Effects, func(e sandbox.Effect) bool {
		return e.Direction != sandbox.Payout || !slices.Contains(asked, e.Reference)
	})
}

// saleOver waits until the flow of a sale has ended: it gives the escrow address back last.
func (w *harness) saleOver(t *testing.T, o order) {
	t.Helper()
	err := await(t.Context(), recovery, func() error {
		var held, lent int
		err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM holds WHERE object_id = $1 AND status = 'held' AND amount > 0),
			(SELECT count(*) FROM escrow_leases WHERE order_id = $1 AND ended_at IS NULL)`, o.ID).Scan(&held, &lent)
		if err == nil && (held != 0 || lent != 0) {
			err = fmt.Errorf("%d holds and %d addresses are its own", held, lent)
		}
		return err
	})
	if err != nil {
		t.Fatalf("sale %s: %v", o.ID, err)
	}
	w.history(t, workflows.OffRampID(o.ID))
}

// leftNothing checks on the chain that a sale's address is empty.
func (w *harness) leftNothing(t *testing.T, n demo.Node, o order) {
	t.Helper()
	eventually(t, "nothing is left at "+o.Escrow.String, func() error {
		holds, err := n.Holds(t.Context(), o.Escrow.String)
		if err == nil && holds[money.USDT].Positive() {
			err = fmt.Errorf("there is %s", holds[money.USDT])
		}
		return err
	})
}

// cryptoRefund waits until a sale has failed and all its crypto has gone back, once, and checks that no shillings
// were paid out.
func (w *harness) cryptoRefund(t *testing.T, n demo.Node, o order, detail, back, crypto string) {
	t.Helper()
	o = w.untilFor(t, o.ID, "over", recovery, order.Over)
	if o.Status != "failed" || o.StatusDetail != detail {
		t.Fatalf("the sale ended %s, not failed/%s", o, detail)
	}
	w.saleOver(t, o)
	var refund uuid.UUID
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM refunds WHERE order_id = $1 AND rail = 'chain' AND status = 'completed'`, o.ID).Scan(&refund)
	if err != nil {
		t.Fatalf("the refund of %s: %v", o.ID, err)
	}
	cameOnce(t, n, back, w.sentFor(t, "refund", refund), money.Must(money.USDT, crypto))
	w.leftNothing(t, n, o)
	if paid := w.paidFor(t, o); len(paid) != 0 {
		t.Errorf("sale %s failed, and its payee got %+v", o.ID, paid)
	}
}

// saleStory is a scenario of a sale.
type saleStory struct {
	name string
	play func(*testing.T, *harness, demo.Node)
}

// saleStories are the scenarios that leave the chain as it is; saleTricks are those that stop it.
func saleStories(n exchange.Network) []saleStory {
	stories := []saleStory{
		{"crypto is sold", sold},
		{"less comes than was named", soldLess},
		{"more comes than was named", soldMore},
		{"much more comes than the buyer takes", soldTooMuch},
		{"the payee can't be paid", unpayablePayee},
		{"it comes when the order is cancelled", soldLate},
	}
	if n == exchange.Ethereum {
		stories = append(stories, saleStory{"another coin comes", otherCoin})
	}
	return stories
}

func saleTricks() []saleStory {
	return []saleStory{{"a reorganisation takes the deposit away", soldAgain}, {"it comes twice", soldTwice}}
}

// TestSales runs the sale scenarios on every network. The chains are independent, so their scenarios run in parallel;
// those that stop a chain come last.
func TestSales(t *testing.T) {
	w := open(t)
	t.Run("all", func(t *testing.T) {
		w.eachNetwork(t, func(t *testing.T, n demo.Node) {
			t.Parallel()
			t.Run("side by side", func(t *testing.T) {
				for _, story := range saleStories(n.Network) {
					t.Run(story.name, func(t *testing.T) {
						t.Parallel()
						story.play(t, w, n)
					})
				}
			})
			for _, story := range saleTricks() {
				t.Run(story.name, func(t *testing.T) { story.play(t, w, n) })
			}
		})
	})
	w.invariants(t)
	w.booksAgree(t)
}

// sold is a sale that goes well, with its bookings.
func sold(t *testing.T, w *harness, n demo.Node) {
	o := w.sell(t, n, sale{})
	w.payIn(t, n, o, soldCrypto)
	o = w.soldOnce(t, n, o, soldCrypto, soldFiat)
	if o.CryptoAmount != "10.000000" || o.Rate != "128.755" || o.Deposit.String == "" || !o.CompletedAt.Valid {
		t.Errorf("a sale that went well is %+v", o)
	}
	for key, lines := range map[string]map[string]string{
		"order:" + o.ID.String() + ":completed": {"fiat_balance": "1287.55", "momo_payout": "-1287", "rounding": "0.55"},
	} {
		if got := w.lines(t, key); !equalAmounts(got, lines) {
			t.Errorf("%s is booked as %v, not %v", key, got, lines)
		}
	}
}

// lines returns the amounts of an entry by kind of account: signed for accounts that grow by debits, absolute for the
// others.
func (w *harness) lines(t *testing.T, key string) map[string]string {
	t.Helper()
	rows, err := w.db.QueryContext(t.Context(), `SELECT a.kind, CASE WHEN a.debit_normal OR l.amount > 0 THEN l.amount ELSE -l.amount END
		FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id JOIN ledger_accounts a ON a.id = l.account_id WHERE e.key = $1`, key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]string{}
	for rows.Next() {
		var kind, amount string
		if err := rows.Scan(&kind, &amount); err != nil {
			t.Fatal(err)
		}
		all[kind] = amount
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// equalAmounts compares amounts in shillings by value, not by spelling.
func equalAmounts(got, want map[string]string) bool {
	if len(got) != len(want) {
		return false
	}
	for kind, text := range want {
		a, read := new(big.Rat).SetString(got[kind])
		if b, _ := new(big.Rat).SetString(text); !read || a.Cmp(b) != 0 {
			return false
		}
	}
	return true
}

// soldLess and soldMore deliver another amount than was ordered; by the seller's word, or when the sale expires, it is sold at
// the agreed rate.
func soldLess(t *testing.T, w *harness, n demo.Node) {
	o := w.sell(t, n, sale{})
	w.payIn(t, n, o, "9.5")
	w.decides(t, o.ID, "accept-deposit")
	w.soldOnce(t, n, o, "9.5", 1223) // 9.5 at 128.755 are 1223.1725
}

func soldMore(t *testing.T, w *harness, n demo.Node) {
	o := w.sellShortly(t, n, sale{})
	w.payIn(t, n, o, "10.5")
	w.soldOnce(t, n, o, "10.5", 1351) // 1351.9275
}

// soldTooMuch brings more than the offer's maximum for one order. The order fails, because neither side agreed to a
// part of the amount.
func soldTooMuch(t *testing.T, w *harness, n demo.Node) {
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	o := w.sellShortly(t, n, sale{back: back})
	w.payIn(t, n, o, "1200")
	w.cryptoRefund(t, n, o, exchange.DetailMismatch, back, "1200")
	w.exception(t, o.ID, "over", "refunded", "1200.000000")
}

// unpayablePayee has no account at the operator.
func unpayablePayee(t *testing.T, w *harness, n demo.Node) {
	phone := newPhone()
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	w.fault(t, "unregistered", "payout", phone)
	o := w.sell(t, n, sale{phone: phone, back: back})
	w.payIn(t, n, o, soldCrypto)
	w.cryptoRefund(t, n, o, exchange.DetailRefundOpen, back, soldCrypto)
}

// soldAgain removes the deposit's block in a reorganisation. The deposit then arrives again.
func soldAgain(t *testing.T, w *harness, n demo.Node) {
	heal(t, n)
	o := w.sell(t, n, sale{})
	post(t, n, "/pause", nil)
	w.payIn(t, n, o, soldCrypto)
	depth := 1
	if n.Network == exchange.Solana { // the product reads confirmed blocks only; the next blocks confirm it
		post(t, n, "/produce", map[string]any{"blocks": 2})
		depth = 3
	}
	w.until(t, o.ID, "seen", func(o order) bool { return o.Status == "confirming" && o.Deposit.String != "" })
	post(t, n, "/reorganise", map[string]any{"blocks": depth, "drop": true})
	post(t, n, "/resume", nil)
	w.until(t, o.ID, "waiting for the crypto again", func(o order) bool { return o.Status == "pending" && o.Deposit.String == "" })
	if paid := w.paidFor(t, o); len(paid) != 0 {
		t.Fatalf("without the crypto, the operator paid %+v", paid)
	}
	w.payIn(t, n, o, soldCrypto)
	w.soldOnce(t, n, o, soldCrypto, soldFiat)
}

// soldLate brings the crypto after its order was cancelled: an operator sends it back.
func soldLate(t *testing.T, w *harness, n demo.Node) {
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	o := w.sell(t, n, sale{back: back})
	w.sendCommand(t, w.amina(t), o.ID, "cancel", nil)
	w.ends(t, o.ID, "cancelled", "cancelled_by_customer")
	w.payIn(t, n, o, "4")
	w.exception(t, o.ID, "late", "open", "4.000000")
	w.sendBack(t, n, o, "late", back, "4")
}

// soldTwice brings the crypto twice in a row: the first deposit is paid for, the second waits for an operator.
func soldTwice(t *testing.T, w *harness, n demo.Node) {
	heal(t, n)
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	o := w.sell(t, n, sale{back: back})
	post(t, n, "/pause", nil)
	w.payIn(t, n, o, soldCrypto)
	w.payIn(t, n, o, "3")
	post(t, n, "/resume", nil)
	o = w.untilFor(t, o.ID, "over", recovery, order.Over)
	w.exception(t, o.ID, "duplicate", "open", "3.000000")
	w.sendBack(t, n, o, "duplicate", back, "3")
	w.soldOnce(t, n, o, soldCrypto, soldFiat)
}

// sendBack has an operator send an exception's crypto back to the order's refund address.
func (w *harness) sendBack(t *testing.T, n demo.Node, o order, kind, back, crypto string) {
	t.Helper()
	var id uuid.UUID
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM payment_exceptions WHERE order_id = $1 AND kind = $2`, o.ID, kind).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/auth/payment-exceptions/" + id.String() + "/refund"
	if err := insist(t.Context(), w.operator(t), path, uuid.NewString(), map[string]any{"note": "it belongs to nobody here"}, nil); err != nil {
		t.Fatal(err)
	}
	m := money.Must(money.USDT, crypto)
	w.exception(t, o.ID, kind, "refunded", m.String())
	var refund uuid.UUID
	err = w.db.QueryRowContext(t.Context(), `SELECT id FROM refunds WHERE exception_id = $1 AND status = 'completed'`, id).Scan(&refund)
	if err != nil {
		t.Fatal(err)
	}
	cameOnce(t, n, back, w.sentFor(t, "refund", refund), m)
}

// unsold has a sale expire to which nothing came.
func (w *harness) unsold(t *testing.T, n demo.Node) order {
	t.Helper()
	o := w.ends(t, w.startShortly(t, n, sale{crypto: "5"}), "cancelled", "expired")
	w.saleOver(t, o)
	return o
}

// sellShortly is sell with a sale that expires soon.
func (w *harness) sellShortly(t *testing.T, n demo.Node, s sale) order {
	t.Helper()
	return w.until(t, w.startShortly(t, n, s), "waiting for its crypto", func(o order) bool { return o.StatusDetail == exchange.WaitDeposit && o.Escrow.String != "" })
}

// startShortly starts the sale's flow as the API does. Its time is shorter than the API's, but long enough to open the
// order: an order that has already expired is refused.
func (w *harness) startShortly(t *testing.T, n demo.Node, s sale) uuid.UUID {
	t.Helper()
	w.saleForm(t, n, &s)
	id := uuid.Must(uuid.NewV7())
	request := exchange.OrderRequest{
		ID: id, CustomerID: w.customer, OfferID: w.buyerOn(t, n.Network), Crypto: money.Must(money.USDT, s.crypto), Phone: s.phone,
		ExpiresAt: time.Now().UTC().Add(30 * time.Second), Type: exchange.OffRampSell, Subtype: exchange.StandardOffRamp, Network: n.Network, RefundAddress: s.back,
	}
	by := exchange.Principal{UserID: w.customer, Role: exchange.RoleCustomer}
	_, err := storetest.Ask(t.Context(), w.store, exchange.IntendSale, id, id, request.Terms(), by)
	if err == nil {
		_, err = w.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: workflows.OffRampID(id), TaskQueue: workflows.QueueFlows},
			workflows.TypeOffRamp, workflows.OffRampInput{IntentID: id})
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// otherCoin brings USDC for an order of USDT: it is set aside, and the order still waits.
func otherCoin(t *testing.T, w *harness, n demo.Node) {
	o := w.sell(t, n, sale{})
	if err := n.Fund(t.Context(), o.Escrow.String, money.Must(money.USDC, "6")); err != nil {
		t.Fatal(err)
	}
	w.exception(t, o.ID, "wrong_asset", "open", "6.000000")
	if now, err := w.read(t, o.ID); err != nil || now.Status != "pending" {
		t.Fatalf("the sale is %s: %v", now, err)
	}
	w.payIn(t, n, o, soldCrypto)
	o = w.untilFor(t, o.ID, "over", recovery, order.Over)
	if o.Status != "completed" {
		t.Errorf("the sale ended %s", o)
	}
}

package e2e

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// saleKind is a kind of sale other than the standard one.
type saleKind struct {
	name string
	on   exchange.Network
	// form returns who opens it, and the request body.
	form func(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any)
	// funded is set when it is paid from a wallet in our custody, so that no deposit is needed.
	funded bool
	// treasury is set when the house buys.
	treasury bool
}

// TestKindsOfSales makes every kind of sale except the ones paid by bank, each on one network: TestSales covers on
// all networks what the kinds have in common.
func TestKindsOfSales(t *testing.T) {
	w := openBeside(t)
	w.rate(t)
	w.letSend(t)
	t.Run("all", func(t *testing.T) {
		for _, k := range []saleKind{
			{name: "a merchant buys from a customer", on: exchange.Tron, form: boughtByVendor},
			{name: "a remittance", on: exchange.Ethereum, form: remitted},
			{name: "from a wallet here", on: exchange.Solana, form: fundedHere, funded: true},
			{name: "to the treasury", on: exchange.Tron, form: toTreasury, treasury: true},
			{name: "a remittance from a wallet here", on: exchange.Ethereum, form: custodialRemitted, funded: true, treasury: true},
		} {
			n, runs := w.nodeOf(k.on)
			if !runs {
				t.Logf("%s: left out, because the stack runs no %s node", k.name, k.on)
				continue
			}
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				k.play(t, w, n)
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

func (k saleKind) play(t *testing.T, w *harness, n demo.Node) order {
	t.Helper()
	c, in := k.form(t, w, n)
	o, err := place(t.Context(), c, in, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	if !k.funded {
		if o, err = w.read(t, o.ID); err != nil { // a merchant sees the address after the deposit
			t.Fatal(err)
		}
		w.payIn(t, n, o, soldCrypto)
	}
	to := w.walletOf(t, demo.VendorEmail, n.Network).Address
	if k.treasury {
		to = w.treasuryOn(t, n.Network)
	}
	return w.soldTo(t, n, o, soldCrypto, soldFiat, to)
}

// TestMerchantSells has a merchant open a purchase for a customer, who gets the prompt and the crypto.
func TestMerchantSells(t *testing.T) {
	w := openBeside(t)
	vendor, n := w.as(t, demo.VendorEmail), w.tronNode()
	in := map[string]any{
		"order_type": "ON_RAMP_SELL", "order_subtype": "standard_onramp", "offer_id": w.offer, "crypto_amount": "5",
		"customer": map[string]any{"email": demo.CustomerEmail},
	}
	o, err := place(t.Context(), vendor, in, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	o = w.ends(t, o.ID, "completed", "")
	customer := w.walletOf(t, demo.CustomerEmail, n.Network)
	if o.WalletAddress != customer.Address {
		t.Errorf("the crypto went to %s, not to the customer's wallet", o.WalletAddress)
	}
	cameOnce(t, n, customer.Address, o.TxHash.String, money.Must(money.USDT, "5"))
	if got := collected(w.books(t), o.ID); len(got) != 1 {
		t.Errorf("the operator collected %d times: %+v", len(got), got)
	}
}

// nodeOf returns the node of a network, and whether it runs.
func (w *harness) nodeOf(n exchange.Network) (demo.Node, bool) {
	for _, one := range w.seed().Nodes() {
		if one.Network == n {
			return one, true
		}
	}
	return demo.Node{}, false
}

// letSend opens the country from which the scenarios' senders send.
func (w *harness) letSend(t *testing.T) {
	t.Helper()
	var id uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM countries WHERE alpha2_code = 'GB'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"is_active": true}
	if err := w.admin(t).Do(t.Context(), http.MethodPatch, "/api/v1/auth/countries/"+id.String(), "", in, nil); err != nil {
		t.Fatal(err)
	}
}

// rate enters the value of USDT.
func (w *harness) rate(t *testing.T) {
	t.Helper()
	in := map[string]any{"base": "USDT", "quote": "KES", "mid": "128.755"}
	var waits testbed.Waits
	if err := w.admin(t).Post(t.Context(), "/api/v1/auth/pricing/fx-rates", uuid.NewString(), in, &waits); err != nil {
		t.Fatal(err)
	}
	w.testbed.Agree(t, waits)
	// The house buys only at rates near its valuation. A valuation below the first one needs a second approval.
	w.houseLimits(t, map[string]any{"valuations": map[string]any{"USDT": "149"}})
}

// quote locks the rate of a sale.
func (w *harness) quote(t *testing.T) uuid.UUID {
	t.Helper()
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	in := map[string]any{"purpose": "offramp", "offer_type": "BUY", "asset": "USDT", "amount": soldCrypto}
	if err := w.amina(t).Post(t.Context(), "/api/v1/auth/pricing/quotes", uuid.NewString(), in, &made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// treasuryOn returns the address of the house's treasury on a network.
func (w *harness) treasuryOn(t *testing.T, n exchange.Network) (address string) {
	t.Helper()
	err := w.db.QueryRowContext(t.Context(), `SELECT address FROM wallets WHERE purpose = 'treasury' AND network = $1`, n).Scan(&address)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func boughtByVendor(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any) {
	t.Helper()
	return w.as(t, demo.VendorEmail), map[string]any{
		"order_type": "OFF_RAMP_BUY", "order_subtype": "standard_offramp", "offer_id": w.buyerOn(t, n.Network), "crypto_amount": soldCrypto,
		"customer": map[string]any{"email": demo.CustomerEmail},
	}
}

// parties adds the sender and the recipient of a remittance to a request body.
func parties(in map[string]any) map[string]any {
	for name, text := range map[string]string{
		"sender_name": "Jane Doe", "sender_country": "GB", "sender_phone": "+447700900123", "beneficiary_account_name": "John Kamau",
	} {
		in[name] = text
	}
	return in
}

func remitted(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any) {
	t.Helper()
	in := w.saleForm(t, n, &sale{})
	in["order_subtype"] = "remittance_offramp"
	return w.amina(t), parties(in)
}

// walletWith returns a wallet of the customer with enough to sell, and coins for the fee.
func (w *harness) walletWith(t *testing.T, n demo.Node) uuid.UUID {
	t.Helper()
	brings := []money.Amount{money.Must(money.USDT, "15")}
	switch n.Network {
	case exchange.Ethereum:
		brings = append(brings, money.Must(money.ETH, "0.5"))
	case exchange.Tron:
		brings = append(brings, money.Must(money.TRX, "200"))
	case exchange.Solana: // the house pays its fees
	}
	return w.fundedWallet(t, n.Network, demo.CustomerEmail, exchange.Hot, brings...).ID
}

func fundedHere(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any) {
	t.Helper()
	in := w.saleForm(t, n, &sale{})
	in["wallet_id"] = w.walletWith(t, n)
	delete(in, "refund_address")
	return w.amina(t), in
}

func toTreasury(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any) {
	t.Helper()
	in := w.saleForm(t, n, &sale{})
	delete(in, "offer_id")
	in["order_subtype"], in["fx_rate_quote_id"], in["network"] = "treasury_offramp", w.quote(t), n.Network
	return w.amina(t), in
}

func custodialRemitted(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any) {
	t.Helper()
	_, in := fundedHere(t, w, n)
	delete(in, "offer_id")
	in["order_subtype"], in["fx_rate_quote_id"] = "custodial_remittance_offramp", w.quote(t)
	return w.amina(t), parties(in)
}

package catalogue

import (
	"database/sql"
	"slices"
	"strconv"

	"kivuko/dev/invariants"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/store/storetest"
)

// The seeded balances.
const (
	seededFloat  = "1000000"
	seededCrypto = "1500"
	// seededShillings is the balance of the vendor who buys crypto.
	seededShillings = "300000"
)

// db reads tables directly, as their owner.
func (w *harness) db() *sql.DB {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.owner == nil {
		w.owner = storetest.Owner(w.t, w.store)
	}
	return w.owner
}

// books checks what must hold after every case: the ledger is sound and balances, it agrees with the operator's books to
// the shilling and with the chain to the unit, every payment to our number is booked once, every payout belongs to one
// attempt, and no flow is parked.
func (w *harness) books() {
	w.t.Helper()
	if err := invariants.Check(w.t.Context(), w.db()); err != nil {
		w.t.Error(err)
	}
	b := w.operator.Books()
	w.collectedAndPaidOut(b)
	w.oneOfEach(b)
	w.delivered()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	for flow, calls := range w.signs.calling {
		if calls {
			w.t.Errorf("%s is still parked, with %v", flow, w.signs.reasons[flow])
		}
	}
}

// collectedAndPaidOut compares the ledger's two accounts at the operator with the operator's own.
func (w *harness) collectedAndPaidOut(b sandbox.Books) {
	w.t.Helper()
	in, out := int64(0), int64(0)
	for _, e := range b.Effects {
		switch e.Direction {
		case sandbox.Collection:
			in += e.Amount
		case sandbox.Payout:
			out += e.Amount + e.Charge
		}
	}
	float := money.Must(money.KES, seededFloat).Sub(shillings(out))
	w.holds(exchange.House(exchange.AccMomoCollection, money.KES), shillings(in))
	w.holds(exchange.House(exchange.AccMomoPayout, money.KES), float)
	if b.Working != sandbox.DefaultWorkingOpening+in || b.Utility != sandbox.DefaultUtilityOpening-out {
		w.t.Errorf("the operator's accounts hold %d and %d after collecting %d and paying out %d", b.Working, b.Utility, in, out)
	}
}

func shillings(n int64) money.Amount { return money.Must(money.KES, strconv.FormatInt(n, 10)) }

// holds checks the balance of an account.
func (w *harness) holds(account exchange.AccountRef, want money.Amount) {
	w.t.Helper()
	a, err := w.store.Account(w.t.Context(), account)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		a.Posted, err = money.Zero(want.Asset()), nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if !a.Posted.Equal(want) {
		w.t.Errorf("%s holds %s, want %s", account.Kind, a.Posted, want)
	}
}

// oneOfEach checks that each movement at the operator is in the ledger once, under its receipt, and that the operator
// got no attempt twice.
func (w *harness) oneOfEach(b sandbox.Books) {
	w.t.Helper()
	var addresses []string
	for _, p := range b.Prompts {
		if slices.Contains(addresses, p.CallbackURL) {
			w.t.Errorf("two prompts of one attempt were on the phone %s", p.Phone)
		}
		addresses = append(addresses, p.CallbackURL)
	}
	for _, e := range b.Effects {
		var query string
		switch e.Direction {
		case sandbox.Collection:
			query = `SELECT count(*) FROM ledger_entries WHERE key = 'momo:' || $1`
		case sandbox.Payout:
			query = `SELECT count(*) FROM payment_attempts WHERE direction = 'payout' AND status = 'succeeded' AND receipt = $1`
		default:
			continue
		}
		var n int
		if err := w.db().QueryRowContext(w.t.Context(), query, e.Receipt).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		if n != 1 {
			w.t.Errorf("the %s %s of %d shillings is booked %d times", e.Direction, e.Receipt, e.Amount, n)
		}
	}
}

// delivered compares orders with the chain: bought crypto was delivered once, and sold crypto went to the vendor once,
// or back to the seller.
func (w *harness) delivered() {
	w.t.Helper()
	orders, _, err := w.store.ListOrders(w.t.Context(), store.Everything(), store.OrderFilter{}, store.Page{Number: 1, Size: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	vendor := money.Zero(money.USDT)
	if !w.selling {
		vendor = money.Must(money.USDT, seededCrypto)
	}
	shillings := money.Must(money.KES, seededShillings)
	for _, o := range orders {
		paid, want := w.chain.paid(o.ID), 0
		if o.Status == exchange.OrderCompleted {
			want = 1
		}
		if len(paid) != want {
			w.t.Errorf("order %s is %s, and the chain paid %d times", o.ID, o.Status, len(paid))
		}
		for _, p := range paid {
			if !w.selling {
				vendor = vendor.Sub(p.Amount)
				continue
			}
			vendor, shillings = vendor.Add(p.Amount), shillings.Sub(o.Price.Vendor)
			if p.ToAddress != w.market.VendorWallet.Address || !p.Amount.Equal(o.Price.Crypto) {
				w.t.Errorf("%s of order %s went to %s", p.Amount, o.ID, p.ToAddress)
			}
		}
	}
	w.holds(exchange.Owned(exchange.AccCustody, w.market.VendorWallet.ID, money.USDT), vendor)
	if w.selling {
		w.holds(exchange.Owned(exchange.AccFiatBalance, w.market.Vendor.ID, money.KES), shillings)
	}
}

// is checks how an order ended.
func (w *harness) is(o exchange.Order, status exchange.OrderStatus, detail string) {
	w.t.Helper()
	if o.Status != status || o.StatusDetail != detail {
		w.t.Errorf("the order is %s (%s), want %s (%s)", o.Status, o.StatusDetail, status, detail)
	}
}

// completed checks an order that was paid once, with the receipt of the operator's books.
func (w *harness) completed(o exchange.Order) {
	w.t.Helper()
	w.is(o, exchange.OrderCompleted, exchange.WaitNothing)
	effects := w.effects(sandbox.Collection)
	if len(effects) != 1 || effects[0].Receipt != o.MomoReceipt || effects[0].Amount != price {
		w.t.Errorf("the operator collected %+v, the order names %s", effects, o.MomoReceipt)
	}
}

// effects returns the operator's movements in a direction, in their order.
func (w *harness) effects(direction string) []sandbox.Effect {
	return slices.DeleteFunc(w.operator.Books().Effects, func(e sandbox.Effect) bool { return e.Direction != direction })
}

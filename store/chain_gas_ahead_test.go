package store_test

import (
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// stocked is a market whose vendor has no coins for fees, and a gas wallet with 1000 TRX.
type stocked struct {
	s   *store.Store
	m   storetest.Market
	gas exchange.Wallet
}

func newStocked(t *testing.T) stocked {
	t.Helper()
	return stockedWith(t, started(t))
}

func stockedWith(t *testing.T, s *store.Store) stocked {
	t.Helper()
	x := stocked{s: s}
	x.gas = houseWallet(t, x.s, exchange.HouseGas)
	storetest.Gas(t, x.s, x.gas.ID, trx("1000"))
	x.m = x.market(t)
	return x
}

// market is another vendor without coins for fees.
func (x stocked) market(t *testing.T) storetest.Market {
	t.Helper()
	return storetest.NewMarketWith(t, x.s, exchange.Tron, func(owner exchange.User) exchange.Wallet { return storetest.Wallet(t, x.s, owner) })
}

// brings approves a top-up, or is told why not.
func (x stocked) brings(t *testing.T, w uuid.UUID, amount string, want exchange.GasRefusal) exchange.ChainPayment {
	t.Helper()
	p, refused, err := x.s.ApproveGasAhead(t.Context(), w, trx(amount))
	if err != nil || refused != want {
		t.Errorf("%s TRX ahead of need: refused %q, %v, want %q", amount, refused, err, want)
	}
	return p
}

// arrived signs a top-up and makes it final.
func (x stocked) arrived(t *testing.T, p exchange.ChainPayment) {
	t.Helper()
	a, err := signFor(t, x.s, p, "1")
	if err == nil {
		_, err = x.s.RecordFinal(t.Context(), a.ID, true, 101, "a-101", trx("0.3"), "SUCCESS")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// low lists the wallets with less than 20 TRX, or with less than 10 where they have a customer's coins.
func (x stocked) low(t *testing.T) (looked int, all []exchange.LowWallet) {
	t.Helper()
	below := map[exchange.GasKind]money.Amount{exchange.GasForVendor: trx("20"), exchange.GasForEscrow: trx("20"), exchange.GasForCoins: trx("10")}
	looked, all, err := x.s.GasLow(t.Context(), exchange.Tron, below, 100)
	if err != nil {
		t.Fatal(err)
	}
	return looked, all
}

// A wallet that will soon pay gets gas of the house, by a payment like every other. Its next payment is signed without a top-up of its own,
// and the wallet is low again only when its gas is used.
func TestGasAheadOfNeed(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), newStocked(t)
	w := x.m.VendorWallet
	if looked, low := x.low(t); looked != 1 || len(low) != 1 || !low[0].Share.IsZero() ||
		low[0] != (exchange.LowWallet{ID: w.ID, Address: w.Address, Kind: exchange.GasForVendor, Asset: money.USDT, Share: low[0].Share}) {
		t.Fatalf("of %d wallets are low: %+v", looked, low)
	}
	p := x.brings(t, w.ID, "37", "")
	if p.Purpose != exchange.ForGas || p.ObjectID != w.ID || p.WalletID != x.gas.ID || p.ToAddress != w.Address || p.Status != exchange.ChainApproved || p.N != 1 {
		t.Fatalf("approved %+v", p)
	}
	x.brings(t, w.ID, "37", exchange.GasUnderWay)
	if looked, low := x.low(t); looked != 1 || len(low) != 0 {
		t.Errorf("while gas is on its way, of %d wallets are low: %+v", looked, low)
	}
	a, err := signFor(t, x.s, p, "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.RecordIncluded(ctx, a.ID, 101, "a-101"); err != nil {
		t.Fatal(err)
	}
	if err := x.s.RecordGasArrival(ctx, a.ID, "a-101"); err != nil {
		t.Fatal(err)
	}
	_, order := paid(t, x.s, x.m)
	wantShare(t, x.s, order, "37")
	b, err := signFor(t, x.s, order, "18")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.RecordFinal(ctx, a.ID, true, 101, "a-101", trx("0.3"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.RecordFinal(ctx, b.ID, true, 102, "a-102", trx("13"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if _, low := x.low(t); len(low) != 0 {
		t.Errorf("with 24 TRX are low: %+v", low)
	}
	wantBalance(t, x.s, exchange.Owned(exchange.AccCustody, w.ID, money.TRX), "24", "0")
	wantBalance(t, x.s, exchange.Owned(exchange.AccCustody, x.gas.ID, money.TRX), "962.7", "0")
	if again := x.brings(t, w.ID, "1", ""); again.N != 2 {
		t.Errorf("the second top-up is number %d", again.N)
	}
	wantBooks(t, x.s)
}

// aheadRefusals are the bounds of gas ahead of need: what is done before, and the refusal of 37 TRX for the vendor's wallet.
var aheadRefusals = map[exchange.GasRefusal]map[string]func(*testing.T, stocked){
	exchange.GasNotEligible: {
		"the offer is paused": func(t *testing.T, x stocked) {
			by := storetest.PrincipalOf(x.m.Vendor)
			if _, err := x.s.PauseOffer(t.Context(), store.ViewOf(by, exchange.ActWriteOffers), x.m.Offer.ID, by); err != nil {
				t.Fatal(err)
			}
		},
		"the owner is switched off": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `UPDATE users SET is_active = false WHERE id = $1`, x.m.Vendor.ID)
		},
		"the wallet is cold": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `UPDATE wallets SET type = 'cold' WHERE id = $1`, x.m.VendorWallet.ID)
		},
		"something was sent without us": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `INSERT INTO deposit_quarantine (id, network, block, tx_id, event_index, reason, detail, payload, created_at, wallet_id, asset, amount)
				VALUES ($1, 'tron', 90, 'theft', 0, 'not_our_send', 'why', '{}', now(), $2, 'USDT', 1)`, storetest.NewID(t), x.m.VendorWallet.ID)
		},
		"its network is not in the policy": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `ALTER TABLE gas_policy DISABLE TRIGGER gas_policy_kept`)
			storetest.Exec(t, x.s, `DELETE FROM gas_policy`)
		},
	},
	exchange.GasFrozen: {"outgoing payments are frozen": func(t *testing.T, x stocked) {
		freeze(t, x.s, storetest.User(t, x.s, exchange.RoleTreasury))
	}},
	exchange.GasPutBack: {"the database was put back": func(t *testing.T, x stocked) {
		paid(t, x.s, x.m) // the first request of an empty database releases it
		storetest.PutBack(t, x.s)
	}},
	exchange.GasUnderWay: {"a payment asked for gas": func(t *testing.T, x stocked) {
		_, p := paid(t, x.s, x.m)
		if _, err := x.s.ApproveTopUp(t.Context(), p.ID, trx("10"), 3); err != nil {
			t.Fatal(err)
		}
	}},
	exchange.GasWalletCap: {"the house has some there": func(t *testing.T, x stocked) {
		storetest.Gas(t, x.s, x.m.VendorWallet.ID, trx("38.000001"))
	}},
	exchange.GasWalletDay: {"it had its top-ups": func(t *testing.T, x stocked) {
		storetest.Exec(t, x.s, `UPDATE gas_policy SET wallet_day = 2`)
		for range 2 {
			x.arrived(t, x.brings(t, x.m.VendorWallet.ID, "1", ""))
		}
	}},
	exchange.GasDayBudget: {"others had theirs": func(t *testing.T, x stocked) {
		storetest.Exec(t, x.s, `UPDATE gas_policy SET day_budget = 73.999999 WHERE network = 'tron'`)
		x.arrived(t, x.brings(t, x.market(t).VendorWallet.ID, "37", ""))
	}},
	exchange.GasReserve: {
		"the gas wallet has just its reserve": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `UPDATE gas_policy SET reserve = 963.000001 WHERE network = 'tron'`)
		},
		"another top-up is not booked yet": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `UPDATE gas_policy SET reserve = 930 WHERE network = 'tron'`)
			x.brings(t, x.market(t).VendorWallet.ID, "34", "")
		},
		"a payment may lack gas": func(t *testing.T, x stocked) {
			storetest.Exec(t, x.s, `UPDATE gas_policy SET reserve = 940 WHERE network = 'tron'`)
			paid(t, x.s, x.market(t))
		},
	},
	exchange.GasFeeBudget: {"half of the fees of the day are spent": func(t *testing.T, x stocked) {
		_, p := paid(t, x.s, x.m)
		storetest.Exec(t, x.s, `ALTER TABLE network_fees DISABLE TRIGGER network_fees_derived`)
		storetest.Exec(t, x.s, `UPDATE network_fees SET amount = 500000, at = now() WHERE payment_id = $1`, p.ID)
	}},
}

// Each bound refuses a top-up ahead of need, and the database refuses it to whoever writes the row without asking.
func TestGasAheadHasBounds(t *testing.T) {
	t.Parallel()
	for want, ways := range aheadRefusals {
		for name, before := range ways {
			t.Run(string(want)+"/"+name, func(t *testing.T) {
				t.Parallel()
				x := newStocked(t)
				before(t, x)
				x.brings(t, x.m.VendorWallet.ID, "37", want)
				err := pump(t, x, x.m.VendorWallet, "37")
				if want == exchange.GasFeeBudget { // a worker's own setting, which the signer checks too
					return
				}
				if sqlState(err) != "KV001" || !strings.Contains(err.Error(), string(want)) {
					t.Errorf("the row was written: %v", err)
				}
			})
		}
	}
}

// pump writes a top-up of a wallet with the rights of the chain workers.
func pump(t *testing.T, x stocked, w exchange.Wallet, amount string) error {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return pumpAs(t, storetest.As(t, x.s, store.RoleChain), id, x.gas, w, amount)
}

func pumpAs(t *testing.T, c *sql.Conn, id uuid.UUID, from, to exchange.Wallet, amount string) error {
	t.Helper()
	_, err := c.ExecContext(t.Context(), `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, intent_hash,
		status, approved_by, created_at, updated_at) VALUES ($1, 'gas', $2, 99, 'tron', 'TRX', $3, $4, $5, $6, $7, 'approved', 'policy', '2020-01-01', '2020-01-01')`,
		id, to.ID, amount, from.ID, from.Address, to.Address, strings.Repeat("0", 64))
	return err
}

// Who holds the login of the chain workers brings no more to a wallet than the policy allows, changes neither the policy nor the counts, and
// names no time of its own.
func TestChainWorkersPumpNoGas(t *testing.T) {
	t.Parallel()
	x := newStocked(t)
	chain := storetest.As(t, x.s, store.RoleChain)
	for _, q := range []string{
		`UPDATE gas_policy SET most = 1000000`, `DELETE FROM gas_policy`, `DELETE FROM gas_ahead`, `UPDATE gas_ahead SET at = '2020-01-01'`,
		`INSERT INTO gas_ahead (payment_id, wallet_id, network, amount, at) SELECT id, wallet_id, network, amount, now() FROM chain_payments`,
	} {
		if _, err := chain.ExecContext(t.Context(), q); sqlState(err) != "42501" {
			t.Errorf("%s: %v", q, err)
		}
	}
	if err := pump(t, x, x.m.CustomerWallet, "1"); sqlState(err) != "KV001" {
		t.Errorf("gas was brought to a wallet that needs none: %v", err)
	}
	if err := pumpAs(t, chain, storetest.NewID(t), x.m.VendorWallet, x.m.CustomerWallet, "1"); sqlState(err) != "KV002" {
		t.Errorf("a vendor brings gas: %v", err)
	}
	if err := pump(t, x, x.m.VendorWallet, "37"); err != nil {
		t.Fatal(err)
	}
	var fresh bool
	err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT at > now() - interval '1 hour' FROM gas_ahead WHERE wallet_id = $1`, x.m.VendorWallet.ID).Scan(&fresh)
	if err != nil || !fresh {
		t.Errorf("a top-up is counted at its worker's time: %v", err)
	}
	if err := pump(t, x, x.m.VendorWallet, "1"); sqlState(err) != "KV001" {
		t.Errorf("two top-ups of a wallet are open: %v", err)
	}
}

// Addresses that are lent, or are lent next, get gas. Customers' wallets get some when enough coins came to them from outside.
func TestWalletsThatGetGasAhead(t *testing.T) {
	t.Parallel()
	x := newStocked(t)
	sellers := storetest.NewSellers(t, x.s)
	storetest.Exec(t, x.s, `UPDATE gas_policy SET free = 2`)
	lent := sellers.Sale(t, x.s, "20")
	some, dust := storetest.Wallet(t, x.s, storetest.User(t, x.s, exchange.RoleCustomer)), storetest.Wallet(t, x.s, storetest.User(t, x.s, exchange.RoleCustomer))
	inside := storetest.Wallet(t, x.s, storetest.User(t, x.s, exchange.RoleCustomer))
	storetest.Deposit(t, x.s, inside.ID, usdt("500"))
	finalBlock(t, x.s, scanOf(blockOf("a", 101), moveOf("some", stranger, some.Address, usdt("10")), moveOf("dust", stranger, dust.Address, usdt("9.999999"))))
	storetest.Gas(t, x.s, some.ID, trx("9"))
	kinds := map[uuid.UUID]exchange.GasKind{}
	looked, low := x.low(t)
	escrow := 0
	for _, w := range low {
		if kinds[w.ID] = w.Kind; w.Kind == exchange.GasForEscrow {
			escrow++
			x.brings(t, w.ID, "18", "")
		}
	}
	if looked != 5 || escrow != 3 || kinds[x.m.VendorWallet.ID] != exchange.GasForVendor || kinds[some.ID] != exchange.GasForCoins {
		t.Errorf("of %d wallets are low: %v", looked, kinds)
	}
	var at uuid.UUID
	if err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT wallet_id FROM escrow_leases WHERE order_id = $1`, lent.ID).Scan(&at); err != nil || kinds[at] == "" {
		t.Errorf("the address that is lent gets none: %v", err)
	}
	x.brings(t, some.ID, "21.000001", exchange.GasWalletCap) // a customer's wallet has a lower one than a vendor's
	x.brings(t, some.ID, "21", "")
	x.brings(t, dust.ID, "1", exchange.GasNotEligible)
	x.brings(t, inside.ID, "1", exchange.GasNotEligible)
	if n := slices.IndexFunc(low, func(w exchange.LowWallet) bool { return w.ID == some.ID }); n >= 0 && !low[n].Share.Equal(trx("9")) {
		t.Errorf("the house has %s in the wallet", low[n].Share)
	}
}

// As many of the addresses that are lent next get gas as were lent in the last three minutes on their network, within the policy's bounds,
// which the database keeps whoever asks.
func TestGasFollowsTheSales(t *testing.T) {
	t.Parallel()
	x := newStocked(t)
	sellers := storetest.NewSellers(t, x.s)
	storetest.EscrowPool(t, x.s, exchange.Tron, 8)
	storetest.Exec(t, x.s, `UPDATE gas_policy SET free = 1, free_most = 3`)
	sales := 0
	next := func() (next []exchange.LowWallet) {
		t.Helper()
		_, low := x.low(t)
		for _, w := range low {
			if w.Kind == exchange.GasForEscrow {
				next = append(next, w)
			}
		}
		var lent int // they get gas too
		err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT count(*) FROM escrow_leases WHERE ended_at IS NULL`).Scan(&lent)
		if err != nil || lent != sales || lent > len(next) {
			t.Fatalf("%d are lent and %d low after %d sales: %v", lent, len(next), sales, err)
		}
		return slices.DeleteFunc(next, func(w exchange.LowWallet) bool {
			var is bool
			err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM escrow_leases WHERE wallet_id = $1)`, w.ID).Scan(&is)
			return err == nil && is
		})
	}
	for _, want := range []int{1, 1, 2, 3, 3} {
		if got := next(); len(got) != want {
			t.Errorf("after %d sales %d of the next addresses get gas, want %d", sales, len(got), want)
		}
		sellers.Sale(t, x.s, "20")
		sales++
	}
	all := next()
	var elsewhere int
	if err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT escrow_ahead('ethereum')`).Scan(&elsewhere); err != nil || elsewhere != 1 {
		t.Errorf("sales on TRON count as %d on Ethereum: %v", elsewhere, err)
	}
	ago := func(interval string) {
		storetest.Exec(t, x.s, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE escrow_leases SET leased_at = now() - interval '`+interval+`'; COMMIT`)
	}
	if ago("2 minutes"); len(next()) != 3 {
		t.Error("the sales of the last minutes do not count")
	}
	ago("181 seconds")
	left := next()
	if len(left) != 1 {
		t.Fatalf("long after the last sale %d of the next addresses get gas", len(left))
	}
	for _, w := range all {
		want := exchange.GasNotEligible
		if w.ID == left[0].ID {
			want = ""
		}
		x.brings(t, w.ID, "18", want)
	}
	if _, err := storetest.Owner(t, x.s).ExecContext(t.Context(), `UPDATE gas_policy SET free_most = 0`); sqlState(err) != "23514" {
		t.Errorf("the most is less than the least: %v", err)
	}
}

// Of top-ups that are approved at once, a wallet gets one, and all wallets together no more than the budget.
func TestGasAheadAtOnce(t *testing.T) {
	t.Parallel()
	x := newStocked(t)
	storetest.Exec(t, x.s, `UPDATE gas_policy SET day_budget = 80 WHERE network = 'tron'`)
	wallets := []uuid.UUID{x.m.VendorWallet.ID, x.market(t).VendorWallet.ID, x.market(t).VendorWallet.ID}
	var mu sync.Mutex
	got := map[exchange.GasRefusal]int{}
	var wg sync.WaitGroup
	for _, w := range slices.Concat(wallets, wallets, wallets) {
		wg.Go(func() {
			_, refused, err := x.s.ApproveGasAhead(t.Context(), w, trx("37"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[refused]++
		})
	}
	wg.Wait()
	if got[""] != 2 || got[exchange.GasUnderWay]+got[exchange.GasDayBudget] != 7 {
		t.Errorf("approved and refused: %v", got)
	}
}

// A payment that asks for gas waits for what is on its way. What is not signed yet makes way.
func TestPaymentsAskBesideGasAhead(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), newStocked(t)
	_, p := paid(t, x.s, x.m)
	first := x.brings(t, x.m.VendorWallet.ID, "37", "")
	asked, err := x.s.ApproveTopUp(ctx, p.ID, trx("10"), 3)
	if err != nil || asked.ObjectID != p.ID {
		t.Fatalf("approved %+v, %v", asked, err)
	}
	if first, err = x.s.ChainPayment(ctx, first.ID); err != nil || first.Status != exchange.ChainCancelled {
		t.Errorf("the top-up ahead of need is %s, %v", first.Status, err)
	}
	x.arrived(t, asked)

	second := x.brings(t, x.m.VendorWallet.ID, "37", "")
	a, err := signFor(t, x.s, second, "1")
	if err != nil {
		t.Fatal(err)
	}
	waits, err := x.s.ApproveTopUp(ctx, p.ID, trx("10"), 3)
	if err != nil || waits.ID != second.ID {
		t.Errorf("approved %+v, %v beside one that is signed", waits, err)
	}
	if _, err := x.s.RecordIncluded(ctx, a.ID, 102, "a-102"); err != nil {
		t.Fatal(err)
	}
	if waits, err = x.s.ApproveTopUp(ctx, p.ID, trx("10"), 3); err != nil || waits.ID != second.ID {
		t.Errorf("approved %+v, %v beside one that may have failed in its block", waits, err)
	}
	if err := x.s.RecordGasArrival(ctx, a.ID, "a-102"); err != nil {
		t.Fatal(err)
	}
	if again, err := x.s.ApproveTopUp(ctx, p.ID, trx("10"), 3); err != nil || again.ObjectID != p.ID || again.N != 2 {
		t.Errorf("approved %+v, %v", again, err)
	}
}

// A top-up whose flow never began is taken up by the next run, and one that parked after a while, unless it is not needed any more or
// failed on the chain.
func TestGasAheadIsTakenUp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var later time.Duration
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return time.Now().Add(later) }})
	if _, err := s.StartDeposits(ctx, exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	x := stockedWith(t, s)
	open := func(after time.Duration) (ids []uuid.UUID) {
		later = after
		defer func() { later = 0 }()
		all, err := s.OpenGasAhead(ctx, exchange.Tron, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			ids = append(ids, p.ID)
		}
		return ids
	}
	revived := func(id uuid.UUID, want bool, status exchange.ChainPaymentStatus) {
		t.Helper()
		ready, err := x.s.ReviveGasAhead(ctx, id)
		p, readErr := x.s.ChainPayment(ctx, id)
		if err != nil || readErr != nil || ready != want || p.Status != status {
			t.Errorf("ready %t, %s: %v, %v; want %t and %s", ready, p.Status, err, readErr, want, status)
		}
	}
	p := x.brings(t, x.m.VendorWallet.ID, "30", "")
	if got := open(0); !slices.Equal(got, []uuid.UUID{p.ID}) {
		t.Errorf("open are %v", got)
	}
	revived(p.ID, true, exchange.ChainApproved)
	if _, err := x.s.ParkChainPayment(ctx, p.ID, "insufficient_funds"); err != nil {
		t.Fatal(err)
	}
	if got := open(0); len(got) != 0 {
		t.Errorf("what parked just now is open: %v", got)
	}
	if got := open(11 * time.Minute); !slices.Equal(got, []uuid.UUID{p.ID}) {
		t.Errorf("later are open: %v", got)
	}
	revived(p.ID, true, exchange.ChainApproved)
	a, err := signFor(t, x.s, p, "1")
	if err != nil {
		t.Fatal(err)
	}
	revived(p.ID, false, exchange.ChainSigned)
	if got := open(time.Hour); len(got) != 0 {
		t.Errorf("what is signed is open: %v", got)
	}
	if _, err := x.s.RecordFinal(ctx, a.ID, false, 101, "a-101", trx("0.3"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	finalBlock(t, x.s, scanOf(blockOf("a", 101)))
	lookedAgain(t, x.s, p, exchange.HoldNone)
	revived(p.ID, false, exchange.ChainCancelled)

	q := x.brings(t, x.m.VendorWallet.ID, "30", "")
	storetest.Exec(t, x.s, `UPDATE users SET is_active = false WHERE id = $1`, x.m.Vendor.ID)
	wantHold(t, x.s, q, exchange.HoldInactive)
	revived(q.ID, false, exchange.ChainCancelled)
}

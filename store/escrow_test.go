package store_test

import (
	"fmt"
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

// pool is a market of sellers whose store has a clock, and whose deposits on TRON are watched.
type pool struct {
	store  *store.Store
	url    string
	clock  *clock
	market storetest.Market
	block  uint64
}

func newPool(t *testing.T) *pool {
	t.Helper()
	p := &pool{url: storetest.URL(t), clock: newClock(), block: 100}
	p.store = storetest.Open(t, p.url, store.Options{Now: p.clock.now})
	if _, err := p.store.StartDeposits(t.Context(), exchange.Tron, blockOf("a", p.block)); err != nil {
		t.Fatal(err)
	}
	p.market = storetest.NewSellers(t, p.store)
	return p
}

// at is the next block, at a time of the store's clock.
func (p *pool) at(since time.Duration, moved ...exchange.ChainMovement) exchange.BlockScan {
	b := blockOf("a", p.block+1)
	b.Time = p.clock.now().Add(-since).UTC()
	return scanOf(b, moved...)
}

// final reads the next block as final.
func (p *pool) final(t *testing.T, since time.Duration, moved ...exchange.ChainMovement) {
	t.Helper()
	finalBlock(t, p.store, p.at(since, moved...))
	p.block++
}

func (p *pool) cancel(t *testing.T, o exchange.Order) {
	t.Helper()
	if _, err := p.store.CloseOffRamp(t.Context(), o.ID, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
}

func (p *pool) sell(t *testing.T) (exchange.Order, error) {
	t.Helper()
	return storetest.OpenOffRamp(t.Context(), p.store, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: p.market.Customer.ID, OfferID: p.market.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell,
	}, storetest.PrincipalOf(p.market.Customer))
}

// addresses are all addresses of the pool with a status.
func (p *pool) addresses(t *testing.T, s exchange.EscrowStatus) []exchange.EscrowAddress {
	t.Helper()
	all, total, err := p.store.EscrowAddresses(t.Context(), store.EscrowFilter{Network: exchange.Tron, Status: s}, store.Page{Number: 1, Size: 100})
	if err != nil || total != len(all) {
		t.Fatalf("%d of %d addresses, %v", len(all), total, err)
	}
	return all
}

func (p *pool) escrowOf(t *testing.T, o exchange.Order) exchange.EscrowAddress {
	t.Helper()
	l, err := p.store.EscrowLease(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.store.EscrowAddress(t.Context(), l.WalletID)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Several processes lend each free address to one order, and refuse further orders with an explanation.
func TestOrdersRaceForEscrowAddresses(t *testing.T) {
	t.Parallel()
	const orders, addresses, processes = 20, 5, 4
	url := storetest.URL(t)
	var services []*store.Store
	var markets []storetest.Market
	for range processes {
		s := storetest.Open(t, url, store.Options{})
		m := storetest.Market{Vendor: storetest.User(t, s, exchange.RoleVendor), Customer: storetest.User(t, s, exchange.RoleCustomer)}
		storetest.WalletOn(t, s, m.Vendor, exchange.Tron)
		storetest.Shillings(t, s, m.Vendor.ID, kes("300000"))
		m.Offer = storetest.BuyOffer(t, s, m.Vendor, exchange.Tron, "2000")
		services, markets = append(services, s), append(markets, m)
	}
	storetest.EscrowPool(t, services[0], exchange.Tron, addresses)
	var wg sync.WaitGroup
	var mu sync.Mutex
	lent, refused := map[string]int{}, 0
	for i := range orders {
		s, m, id := services[i%processes], markets[i%processes], storetest.NewID(t)
		wg.Go(func() {
			o, err := storetest.OpenOffRamp(t.Context(), s, exchange.OrderRequest{
				ID: id, CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell,
			}, storetest.PrincipalOf(m.Customer))
			mu.Lock()
			defer mu.Unlock()
			switch exchange.CodeOf(err) {
			case "":
				lent[o.EscrowAddress]++
			case exchange.CodeEscrowExhausted:
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for address, n := range lent {
		if n != 1 {
			t.Errorf("%s was lent %d times", address, n)
		}
	}
	if len(lent) != addresses || refused != orders-addresses {
		t.Errorf("%d addresses were lent and %d orders refused, want %d and %d", len(lent), refused, addresses, orders-addresses)
	}
	wantBooks(t, services[0])
}

// An order that is opened again keeps its address, and its flow waits once.
func TestLeaseIsTheSameAgain(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	o := p.market.Sale(t, p.store, "10")
	again, err := storetest.OpenOffRamp(t.Context(), p.store, exchange.OrderRequest{
		ID: o.ID, CustomerID: p.market.Customer.ID, OfferID: p.market.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell,
	}, storetest.PrincipalOf(p.market.Customer))
	if err != nil || again.EscrowAddress != o.EscrowAddress {
		t.Errorf("opened again it has %s, %v, before %s", again.EscrowAddress, err, o.EscrowAddress)
	}
	leased := p.addresses(t, exchange.EscrowLeased)
	if len(leased) != 1 || leased[0].OrderID != o.ID || leased[0].Address != o.EscrowAddress || leased[0].LeasedAt.IsZero() {
		t.Errorf("leased are %+v", leased)
	}
	var waits int
	err = storetest.Owner(t, p.store).QueryRowContext(t.Context(), `SELECT count(*) FROM deposit_waits WHERE workflow_id = $1 AND ended_at IS NULL`,
		exchange.OffRampFlow(o.ID)).Scan(&waits)
	if err != nil || waits != 1 {
		t.Errorf("the flow waits %d times, %v", waits, err)
	}
}

// An address is lent again when it has rested, not before, and then without waiting for the replenishing flow.
func TestEscrowAddressesRest(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for range 4 {
		p.cancel(t, p.market.Sale(t, p.store, "10"))
	}
	_, err := p.sell(t)
	wantFault(t, err, exchange.CodeEscrowExhausted)
	resting := p.addresses(t, exchange.EscrowResting)
	const rest = 6 * time.Hour // they saw no money
	if len(resting) != 4 || !resting[0].RestUntil.Equal(p.clock.now().Add(rest)) {
		t.Fatalf("resting are %+v", resting)
	}
	p.clock.advance(rest - time.Second)
	_, err = p.sell(t)
	wantFault(t, err, exchange.CodeEscrowExhausted)
	p.clock.advance(time.Second)
	o, err := p.sell(t)
	if err != nil {
		t.Fatal(err)
	}
	a := p.escrowOf(t, o)
	if got := fmt.Sprint(eventsOf(t, p.store, a.ID)); got != "[wallet.created escrow_address.leased escrow_address.resting escrow_address.free escrow_address.leased]" {
		t.Errorf("the events of the address are %s", got)
	}
	if demand, err := p.store.EscrowDemand(t.Context()); err != nil || len(demand) != 1 || demand[0].Free != 3 || demand[0].Total != 4 {
		t.Errorf("the pool lacks %+v, %v", demand, err)
	}
	if free := p.addresses(t, exchange.EscrowFree); len(free) != 3 {
		t.Errorf("free are %+v", free)
	}
}

// Money that no flow waits for any more is assigned to the order that last borrowed the address, whether the address
// rests or is free again, and prevents lending it.
func TestLateMoneyFindsItsOrder(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	o := p.market.Sale(t, p.store, "10")
	p.cancel(t, o)
	p.clock.advance(8 * 24 * time.Hour)
	if _, err := p.store.EscrowDemand(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.final(t, 0, moveOf("late", stranger, o.EscrowAddress, usdt("10")))
	d := wantDeposit(t, p.store, "late", exchange.DepositUnmatched, exchange.DepositFinal)
	x, err := p.store.Exception(t.Context(), d.ExceptionID)
	if err != nil || x.Kind != exchange.ExcLate || x.OrderID != o.ID || !x.Amount.Equal(usdt("10")) || x.Receipt != "tron:late:0" {
		t.Errorf("the exception is %+v, %v", x, err)
	}
	wantBalance(t, p.store, exchange.House(exchange.AccSuspense, money.USDT), "10", "0")
	a := p.escrowOf(t, o)
	if a.Status != exchange.EscrowFree || a.Trouble != exchange.EscrowMoney || !a.Balances[slices.Index(exchange.Tron.WalletAssets(), money.USDT)].Equal(usdt("10")) {
		t.Errorf("the address is %+v", a)
	}
	for range 3 {
		if other := p.market.Sale(t, p.store, "10"); other.EscrowAddress == o.EscrowAddress {
			t.Fatal("an address with money on it was lent")
		}
	}
	_, err = p.sell(t)
	wantFault(t, err, exchange.CodeEscrowExhausted)
	wantBooks(t, p.store)
}

// Money paid before an address was lent is not for its present order, even if it is read only now.
func TestMoneyFromBeforeTheLeaseIsNotTheOrders(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	first := p.market.Sale(t, p.store, "10")
	p.cancel(t, first)
	for range 3 {
		p.market.Sale(t, p.store, "10")
	}
	p.clock.advance(8 * 24 * time.Hour)
	second, err := p.sell(t)
	if err != nil || second.EscrowAddress != first.EscrowAddress {
		t.Fatalf("the second order has %s, %v, the first %s", second.EscrowAddress, err, first.EscrowAddress)
	}
	p.final(t, time.Hour, moveOf("old", stranger, second.EscrowAddress, usdt("10")))
	d := wantDeposit(t, p.store, "old", exchange.DepositUnmatched, exchange.DepositFinal)
	x, err := p.store.Exception(t.Context(), d.ExceptionID)
	if err != nil || x.Kind != exchange.ExcLate || x.OrderID != first.ID {
		t.Errorf("the exception is %+v, %v, want one of order %s", x, err, first.ID)
	}
	if due, err := p.store.DueWakeups(t.Context(), exchange.Tron); err != nil || len(due) != 0 {
		t.Errorf("woken are %+v, %v", due, err)
	}
	p.final(t, 0, moveOf("new", stranger, second.EscrowAddress, usdt("10")))
	wantDeposit(t, p.store, "new", exchange.DepositAwaited, exchange.DepositFinal)
	due, err := p.store.DueWakeups(t.Context(), exchange.Tron)
	if err != nil || len(due) != 1 || due[0].WorkflowID != exchange.OffRampFlow(second.ID) {
		t.Errorf("woken are %+v, %v", due, err)
	}
}

// Before an order returns its address, every unclaimed deposit becomes a payment exception.
func TestWhatIsLeftBecomesAnException(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	o := p.market.Sale(t, p.store, "10")
	_, err := p.store.ReleaseEscrow(ctx, o.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	usdc := money.Must(money.USDC, "10")
	p.final(t, 0, moveOf("usdc", stranger, o.EscrowAddress, usdc), moveOf("trx", stranger, o.EscrowAddress, trx("3")))
	p.cancel(t, o)
	claims, err := p.store.EscrowClaims(ctx, o.ID)
	if err != nil || len(claims) != 2 {
		t.Fatalf("claimed are %+v, %v", claims, err)
	}
	for _, c := range claims {
		x, err := p.store.Exception(ctx, c.ExceptionID)
		if err != nil || c.Kind != exchange.ClaimWrongAsset || c.HoldID != uuid.Nil || x.Kind != exchange.ExcWrongAsset || x.OrderID != o.ID || !x.Amount.Equal(c.Amount) {
			t.Errorf("the claim is %+v, its exception %+v, %v", c, x, err)
		}
	}
	if left, err := p.store.ReleaseEscrow(ctx, o.ID); err != nil || len(left) != 0 {
		t.Errorf("released again it leaves %+v, %v", left, err)
	}
	if a := p.escrowOf(t, o); a.Status != exchange.EscrowResting {
		t.Errorf("the address is %+v", a)
	}
	p.final(t, 0, moveOf("more", stranger, o.EscrowAddress, usdc))
	wantDeposit(t, p.store, "more", exchange.DepositUnmatched, exchange.DepositFinal)
	p.clock.advance(30 * 24 * time.Hour)
	if _, err := p.store.EscrowDemand(ctx); err != nil {
		t.Fatal(err)
	}
	if a := p.escrowOf(t, o); a.Status != exchange.EscrowResting || a.Trouble != exchange.EscrowMoney {
		t.Errorf("an address with money on it is %+v", a)
	}
	wantBooks(t, p.store)
}

// An address with an incoming movement is not lent, whatever the movement's outcome.
func TestSeenMoneyKeepsAnAddressFromBeingLent(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for range 3 {
		p.market.Sale(t, p.store, "10")
	}
	last := p.addresses(t, exchange.EscrowFree)[0]
	seen := p.at(0, moveOf("coming", stranger, last.Address, usdt("1")))
	seenBlock(t, p.store, seen)
	_, err := p.sell(t)
	wantFault(t, err, exchange.CodeEscrowExhausted)
	if err := p.store.DropSeenBlock(t.Context(), exchange.Tron, seen.Block); err != nil {
		t.Fatal(err)
	}
	if o, err := p.sell(t); err != nil || o.EscrowAddress != last.Address {
		t.Errorf("lent %s, %v, want %s", o.EscrowAddress, err, last.Address)
	}
}

// A transfer to an address of the pool would pay no order.
func TestTransfersDoNotReachEscrow(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	p := newPurseIn(t, storetest.Open(t, url, store.Options{}), "100")
	escrow := storetest.EscrowPool(t, p.store, exchange.Tron, 1)[0]
	officer := storetest.PrincipalOf(p.officers[0])
	treasury := storetest.TreasuryWallet(t, p.store, exchange.Tron)
	for says, r := range map[string]exchange.TransferRequest{
		"house's own wallets": p.request(t, "5", exchange.Recipient{Address: escrow.Address}),
		"escrow address": {
			ID: storetest.NewID(t), RequestedBy: officer.UserID, WalletID: treasury.ID, Network: exchange.Tron, Amount: usdt("5"),
			Recipient: exchange.Recipient{WalletID: escrow.ID},
		},
	} {
		_, err := storetest.OpenTransfer(t.Context(), p.store, r, officer)
		wantFault(t, err, exchange.CodeInvalid)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the refusal is %q, want it to mention %s", err, says)
		}
	}
	f := p.open(t, "5", exchange.Recipient{WalletID: p.theirs.ID})
	_, err := storetest.DB(t, storetest.WithRole(t, url)).ExecContext(t.Context(), `INSERT INTO transfers
		SELECT (jsonb_populate_record(f, jsonb_build_object('id', gen_random_uuid(), 'to_address', $2::text))).* FROM transfers f WHERE id = $1`, f.ID, escrow.Address)
	if sqlState(err) != "KV002" || !strings.Contains(err.Error(), "escrow pool") {
		t.Errorf("by SQL: %v, want KV002 that speaks of the escrow pool", err)
	}
}

package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// make creates wallets of the pool under the requested ids, as the signer does.
func (p *pool) make(t *testing.T, ids ...uuid.UUID) {
	t.Helper()
	for _, id := range ids {
		_, err := storetest.CreateWallet(t.Context(), p.store, exchange.EscrowWallet(id, exchange.Tron), "Tescrow-"+id.String(),
			exchange.SealedKey{WalletID: id, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (p *pool) policy(t *testing.T, keep, most int) {
	t.Helper()
	if _, err := p.store.ChangeEscrowPolicy(t.Context(), exchange.Tron, store.EscrowPolicyPatch{KeepFree: &keep, Most: &most}, storetest.By); err != nil {
		t.Fatal(err)
	}
}

func (p *pool) demand(t *testing.T) exchange.EscrowDemand {
	t.Helper()
	all, err := p.store.EscrowDemand(t.Context())
	if err != nil || len(all) != 1 || all[0].Network != exchange.Tron {
		t.Fatalf("the pools lack %+v, %v", all, err)
	}
	return all[0]
}

// A pool is filled up to its policy's reserve by wallets that are requested once, even with repeated calls and crashes
// before they are created.
func TestPoolIsFilled(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.policy(t, 7, 9)
	first := p.demand(t)
	if first.Free != 4 || first.Total != 4 || len(first.Make) != 3 || first.Short != 0 {
		t.Fatalf("four of seven are free, and the pool lacks %+v", first)
	}
	if again := p.demand(t); !slices.Equal(again.Make, first.Make) {
		t.Errorf("asked again it lacks %v, before %v", again.Make, first.Make)
	}
	p.make(t, first.Make[0])
	if rest := p.demand(t); !slices.Equal(rest.Make, first.Make[1:]) || rest.Free != 5 {
		t.Errorf("with one made it lacks %+v", rest)
	}
	p.make(t, first.Make...)
	if full := p.demand(t); len(full.Make) != 0 || full.Free != 7 {
		t.Errorf("a full pool lacks %+v", full)
	}
	for range 4 {
		p.market.Sale(t, p.store, "10")
	}
	if most := p.demand(t); len(most.Make) != 2 || most.Short != 2 || most.Total != 7 {
		t.Errorf("of four that are wanted two may be made, and the pool lacks %+v", most)
	}
	p.policy(t, 7, 1000)
	if limited := p.demand(t); len(limited.Make) != 4 {
		t.Errorf("the pool lacks %+v", limited)
	}
}

// One round requests no more wallets than one round creates.
func TestPoolGrowsInSteps(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.policy(t, 500, 500)
	if d := p.demand(t); len(d.Make) != 10 {
		t.Errorf("one round makes %d", len(d.Make))
	}
	var asked int
	if err := storetest.Owner(t, p.store).QueryRowContext(t.Context(), `SELECT count(*) FROM escrow_requests`).Scan(&asked); err != nil || asked != 10 {
		t.Errorf("%d wallets were asked for, %v", asked, err)
	}
}

// An order that finds no address gets one created for it, the same one when it asks again, until the pool is full.
func TestOrderMakesRoom(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	p.policy(t, 0, 5)
	room := func(order uuid.UUID) exchange.EscrowDemand {
		t.Helper()
		d, err := p.store.EscrowRoom(ctx, exchange.Tron, order)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first, second := storetest.NewID(t), storetest.NewID(t)
	if d := room(first); d.Free != 4 || len(d.Make) != 0 {
		t.Errorf("with free addresses there is to make %+v", d)
	}
	for range 4 {
		p.market.Sale(t, p.store, "10")
	}
	d := room(first)
	if again := room(first); len(d.Make) != 1 || !slices.Equal(again.Make, d.Make) {
		t.Fatalf("to make is %+v, and asked again %+v", d, again)
	}
	if full := room(second); full.Free != 0 || len(full.Make) != 0 || full.Short != 1 {
		t.Errorf("a pool at its limit makes %+v", full)
	}
	p.make(t, d.Make...)
	if made := room(first); len(made.Make) != 0 || made.Free != 1 {
		t.Errorf("when it is made there is to make %+v", made)
	}
	if _, err := p.sell(t); err != nil {
		t.Error(err)
	}
	p.policy(t, 0, 100)
	had := map[uuid.UUID]bool{d.Make[0]: true}
	for range 2 { // each time another order borrows what was made
		next := room(first)
		if len(next.Make) != 1 || had[next.Make[0]] {
			t.Fatalf("when it was borrowed there is to make %+v", next)
		}
		had[next.Make[0]] = true
		p.make(t, next.Make...)
		if _, err := p.sell(t); err != nil {
			t.Fatal(err)
		}
	}
	if over := room(first); len(over.Make) != 0 || over.Free != 0 {
		t.Errorf("an order that had its share makes %+v", over)
	}
	p.policy(t, 0, 7)
	err := commit(ctx, p.service(t), `INSERT INTO escrow_requests (id, network, created_at) VALUES (gen_random_uuid(), 'tron', now())`)
	if sqlState(err) != "KV002" {
		t.Errorf("extended beyond its limit by SQL: %v", err)
	}
}

// A repeated request of an admin for more addresses counts once, and is limited.
func TestAdminsExtendThePool(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	p.policy(t, 0, 6)
	wish := storetest.NewID(t)
	for range 2 {
		d, err := p.store.ProvisionEscrow(ctx, wish, exchange.Tron, 2, storetest.By)
		if err != nil || len(d.Make) != 2 {
			t.Fatalf("the wish makes %+v, %v", d, err)
		}
	}
	_, err := p.store.ProvisionEscrow(ctx, storetest.NewID(t), exchange.Tron, 1, storetest.By)
	wantFault(t, err, exchange.CodeLimitReached)
	_, err = p.store.ProvisionEscrow(ctx, storetest.NewID(t), exchange.Tron, exchange.MaxEscrowBatch+1, storetest.By)
	wantFault(t, err, exchange.CodeInvalid)
	if d := p.demand(t); len(d.Make) != 2 {
		t.Errorf("the pool lacks %+v", d)
	}
}

// An admin disables and enables an address with a reason, but never a lent one.
func TestAddressesAreDisabled(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	admin := storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleAdmin))
	off, on, label, why := exchange.EscrowDisabled, exchange.EscrowFree, "shelf", "its key was shown"
	o := p.market.Sale(t, p.store, "10")
	leased := p.escrowOf(t, o)
	_, err := p.store.ChangeEscrow(ctx, leased.ID, store.EscrowPatch{Status: &off, Reason: &why}, admin)
	wantFault(t, err, exchange.CodeStateConflict)
	free := p.addresses(t, exchange.EscrowFree)[0]
	_, err = p.store.ChangeEscrow(ctx, free.ID, store.EscrowPatch{Status: &off}, admin)
	wantFault(t, err, exchange.CodeInvalid)
	_, err = p.store.ChangeEscrow(ctx, free.ID, store.EscrowPatch{Reason: &why}, admin)
	wantFault(t, err, exchange.CodeInvalid)
	_, err = p.store.ChangeEscrow(ctx, p.market.VendorWallet.ID, store.EscrowPatch{Label: &label}, admin)
	wantFault(t, err, exchange.CodeNotFound)
	a, err := p.store.ChangeEscrow(ctx, free.ID, store.EscrowPatch{Status: &off, Reason: &why, Label: &label}, admin)
	if err != nil || a.Status != exchange.EscrowDisabled || a.Reason != why || a.Label != label || a.UpdatedBy != admin.UserID {
		t.Fatalf("disabled it is %+v, %v", a, err)
	}
	for range 2 {
		if other := p.market.Sale(t, p.store, "10"); other.EscrowAddress == free.Address {
			t.Error("a disabled address was lent")
		}
	}
	p.final(t, 0, moveOf("stray", stranger, free.Address, usdt("1")))
	_, err = p.store.ChangeEscrow(ctx, free.ID, store.EscrowPatch{Status: &on}, admin)
	wantFault(t, err, exchange.CodeStateConflict) // there is money on it
	p.cancel(t, o)
	if a, err = p.store.ChangeEscrow(ctx, leased.ID, store.EscrowPatch{Status: &off, Reason: &why}, admin); err != nil || a.Status != exchange.EscrowDisabled {
		t.Fatalf("a resting one is %+v, %v", a, err)
	}
	_, err = p.store.ChangeEscrow(ctx, leased.ID, store.EscrowPatch{Status: &on}, admin)
	wantFault(t, err, exchange.CodeStateConflict) // it has not rested
	p.clock.advance(8 * 24 * time.Hour)
	if a, err = p.store.ChangeEscrow(ctx, leased.ID, store.EscrowPatch{Status: &on}, admin); err != nil || a.Status != exchange.EscrowFree || a.Reason != "" {
		t.Errorf("after its rest it is %+v, %v", a, err)
	}
}

// A policy is changed within its bounds, and resting addresses keep their rest time.
func TestEscrowPolicies(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	p.cancel(t, p.market.Sale(t, p.store, "10"))
	rest, one := exchange.MinEscrowRest, storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleAdmin))
	changed, err := p.store.ChangeEscrowPolicy(ctx, exchange.Tron, store.EscrowPolicyPatch{Rest: &rest}, one)
	if err := storetest.Agreed(t, p.store)(changed.Waits, err); err != nil {
		t.Fatalf("changed to %+v, %v", changed, err)
	}
	p.cancel(t, p.market.Sale(t, p.store, "10"))
	var until []time.Time
	for _, a := range p.addresses(t, exchange.EscrowResting) {
		until = append(until, a.RestUntil)
	}
	slices.SortFunc(until, time.Time.Compare)
	if now := p.clock.now(); len(until) != 2 || !until[0].Equal(now.Add(rest)) || !until[1].Equal(now.Add(6*time.Hour)) {
		t.Errorf("they rest until %v", until)
	}
	short, keep, none, far := time.Minute, 501, 0, exchange.MaxEscrowRest+time.Second
	for _, bad := range []store.EscrowPolicyPatch{{Rest: &short}, {Rest: &far}, {KeepFree: &keep}, {Most: &none}, {IdleRest: &short}, {UserPercent: &none}} {
		_, err := p.store.ChangeEscrowPolicy(ctx, exchange.Tron, bad, storetest.By)
		wantFault(t, err, exchange.CodeInvalid)
	}
	all, err := p.store.EscrowPolicies(ctx)
	if err != nil || len(all) != 3 || all[2].Network != exchange.Tron || all[2].Rest != rest || all[2].KeepFree != 20 || all[2].Most != 500 {
		t.Errorf("the policies are %+v, %v", all, err)
	}
}

// An address that was not returned long after its order's end is found.
func TestStaleLeases(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	o, open := p.market.Sale(t, p.store, "10"), p.market.Sale(t, p.store, "10")
	p.final(t, 0, moveOf("usdc", stranger, o.EscrowAddress, money.Must(money.USDC, "1")))
	storetest.Exec(t, p.store, `ALTER TABLE orders DISABLE TRIGGER USER`)
	storetest.Exec(t, p.store, `UPDATE orders SET status = 'cancelled' WHERE id = $1`, o.ID)
	storetest.Exec(t, p.store, `ALTER TABLE orders ENABLE TRIGGER USER`)
	before := func(d time.Duration) []uuid.UUID {
		t.Helper()
		stale, err := p.store.StaleLeases(ctx, p.clock.now().Add(d), 10)
		if err != nil {
			t.Fatal(err)
		}
		return stale
	}
	if stale := before(0); len(stale) != 0 {
		t.Errorf("stale at once are %v", stale)
	}
	if stale := before(time.Second); !slices.Equal(stale, []uuid.UUID{o.ID}) {
		t.Errorf("stale are %v, want %s and not %s", stale, o.ID, open.ID)
	}
	left, err := p.store.ReleaseEscrow(ctx, o.ID)
	if err != nil || len(left) != 1 || left[0].Kind != exchange.ExcWrongAsset {
		t.Errorf("released it leaves %+v, %v", left, err)
	}
	if stale := before(time.Second); len(stale) != 0 {
		t.Errorf("released it is stale: %v", stale)
	}
}

// Any trouble of a free address is reported as a code, and prevents lending until it is settled.
func TestTroubleKeepsAddressesFromBeingLent(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPool(t)
	officer := storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleTreasury))
	free := p.addresses(t, exchange.EscrowFree)
	p.final(t, 0, moveOf("coins", stranger, free[0].Address, usdt("1")), moveOf("gas", stranger, free[1].Address, trx("1")))
	seenBlock(t, p.store, p.at(0, moveOf("coming", stranger, free[2].Address, usdt("1"))))
	alarm := storetest.NewID(t)
	storetest.Exec(t, p.store, `INSERT INTO deposit_quarantine (id, network, block, tx_id, event_index, reason, detail, payload, created_at)
		VALUES ($1, 'tron', 1, 'odd', 0, 'refused', 'x', jsonb_build_object('from', 'x', 'to', $2::text), now())`, alarm, free[3].Address)
	trouble := func(i int) exchange.EscrowTrouble {
		t.Helper()
		a, err := p.store.EscrowAddress(ctx, free[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		return a.Trouble
	}
	for i, want := range []exchange.EscrowTrouble{exchange.EscrowMoney, exchange.EscrowException, exchange.EscrowSeen, exchange.EscrowQuarantine} {
		if got := trouble(i); got != want {
			t.Errorf("the trouble with address %d is %q, want %q", i, got, want)
		}
	}
	_, err := p.sell(t)
	wantFault(t, err, exchange.CodeEscrowExhausted)
	if err := storetest.Agreed(t, p.store)(p.store.ProposeSettlement(ctx, alarm, uuid.Nil, "a test", officer)); err != nil {
		t.Fatal(err)
	}
	if o, err := p.sell(t); err != nil || o.EscrowAddress != free[3].Address {
		t.Errorf("lent %s, %v, want %s", o.EscrowAddress, err, free[3].Address)
	}
	storetest.Exec(t, p.store, `UPDATE payment_exceptions SET status = 'accepted', note = 'x' WHERE id = $1`, deposits(t, p.store, "gas")[0].ExceptionID)
	if got := trouble(1); got != exchange.EscrowNoTrouble {
		t.Errorf("the trouble with a settled address is %q", got)
	}
}

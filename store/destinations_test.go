package store_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// merchants are two merchants, of which the first has a subvendor.
type merchants struct {
	s                     *store.Store
	master, agent, rival  exchange.Principal
	admin, officer        exchange.Principal
	wallet                exchange.Wallet // of the first merchant
	masterUser, agentUser exchange.User
}

func newMerchants(t *testing.T) merchants {
	t.Helper()
	return newMerchantsIn(t, storetest.New(t))
}

func newMerchantsIn(t *testing.T, s *store.Store) merchants {
	t.Helper()
	m := merchants{s: s, masterUser: storetest.User(t, s, exchange.RoleVendor)}
	m.agentUser = storetest.Subvendor(t, s, m.masterUser)
	m.master, m.agent = storetest.PrincipalOf(m.masterUser), storetest.PrincipalOf(m.agentUser)
	m.rival = storetest.PrincipalOf(storetest.User(t, s, exchange.RoleVendor))
	m.admin, m.officer = storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	m.wallet = storetest.Wallet(t, s, m.masterUser)
	return m
}

func (m merchants) phone(t *testing.T, number exchange.Phone) exchange.Destination {
	return exchange.Destination{ID: storetest.NewID(t), MerchantID: m.master.UserID, Kind: exchange.DestinationPhone, Phone: number}
}

func (m merchants) bank(t *testing.T, number string) exchange.Destination {
	return exchange.Destination{ID: storetest.NewID(t), MerchantID: m.master.UserID, Kind: exchange.DestinationBank, Label: "supplier", BankName: "Bank of Examples", AccountName: "Supplier Limited", AccountNumber: number}
}

func (m merchants) address(t *testing.T, address string) exchange.Destination {
	return exchange.Destination{ID: storetest.NewID(t), MerchantID: m.master.UserID, Kind: exchange.DestinationAddress, Network: exchange.Tron, Address: address}
}

func (m merchants) add(t *testing.T, d exchange.Destination, by exchange.Principal) exchange.Destination {
	t.Helper()
	added, err := m.s.AddDestination(t.Context(), d, by)
	if err != nil {
		t.Fatalf("add a destination: %v", err)
	}
	return added
}

func viewOf(p exchange.Principal) store.View { return store.ViewOf(p, exchange.ActReadDestinations) }

func (m merchants) remove(t *testing.T, d exchange.Destination, by exchange.Principal) (exchange.Destination, error) {
	t.Helper()
	return m.s.RemoveDestination(t.Context(), store.ViewOf(by, exchange.ActRemoveDestinations), d.ID, by)
}

func (m merchants) confirm(t *testing.T, d exchange.Destination) exchange.Destination {
	t.Helper()
	confirmed, err := m.s.ConfirmDestination(t.Context(), viewOf(m.master), d.ID, m.master)
	if err != nil {
		t.Fatalf("confirm a destination: %v", err)
	}
	return confirmed
}

// A subvendor saves a destination, and the master merchant alone confirms it. It rests for a day from then on.
func TestDestinationsAreConfirmedByTheMasterMerchant(t *testing.T) {
	t.Parallel()
	m := newMerchants(t)
	d := m.add(t, m.bank(t, "0100200300"), m.agent)
	if d.Status != exchange.DestinationUnconfirmed || !d.RestsUntil.IsZero() || d.CreatedBy != m.agent.UserID || d.WaitsFor(time.Now()) != exchange.WaitConfirmation {
		t.Fatalf("saved %+v", d)
	}
	if again, err := m.s.AddDestination(t.Context(), d, m.agent); err != nil || again != d {
		t.Errorf("saved again %+v, %v", again, err)
	}
	_, err := m.s.AddDestination(t.Context(), m.bank(t, "0100200300"), m.master)
	wantFault(t, err, exchange.CodeConflict)
	for _, by := range []exchange.Principal{m.agent, m.admin, m.officer} {
		_, err := m.s.ConfirmDestination(t.Context(), viewOf(by), d.ID, by)
		wantFault(t, err, exchange.CodeForbidden)
	}
	_, err = m.s.ConfirmDestination(t.Context(), viewOf(m.rival), d.ID, m.rival)
	wantFault(t, err, exchange.CodeNotFound)
	before := time.Now()
	d = m.confirm(t, d)
	if d.Status != exchange.DestinationConfirmed || d.ConfirmedBy != m.master.UserID || d.ConfirmedAt.Before(before.Add(-time.Minute)) || !d.RestsUntil.Equal(d.ConfirmedAt.Add(24*time.Hour)) {
		t.Errorf("confirmed %+v", d)
	}
	if d.WaitsFor(time.Now()) != exchange.WaitRest || d.WaitsFor(d.RestsUntil) != exchange.WaitNothing {
		t.Errorf("it waits for %s, and then for %s", d.WaitsFor(time.Now()), d.WaitsFor(d.RestsUntil))
	}
	if again := m.confirm(t, d); again != d {
		t.Errorf("confirmed again %+v", again)
	}
}

// A removed destination stays removed; the same one saved anew has to be confirmed and rests anew.
func TestRemovedDestinationsRestAnew(t *testing.T) {
	t.Parallel()
	m := newMerchants(t)
	number := storetest.NewPhone()
	d := m.confirm(t, m.add(t, m.phone(t, number), m.master))
	for _, by := range []exchange.Principal{m.rival, m.officer} { // staff may not, but for admins
		_, err := m.remove(t, d, by)
		wantFault(t, err, exchange.CodeNotFound)
	}
	for range 2 {
		var err error
		if d, err = m.remove(t, d, m.agent); err != nil || d.Status != exchange.DestinationRemoved || d.RemovedBy != m.agent.UserID {
			t.Fatalf("removed %+v, %v", d, err)
		}
	}
	_, err := m.s.ConfirmDestination(t.Context(), viewOf(m.master), d.ID, m.master)
	wantFault(t, err, exchange.CodeStateConflict)
	again := m.add(t, m.phone(t, number), m.agent)
	if again.Status != exchange.DestinationUnconfirmed || again.ID == d.ID {
		t.Errorf("saved anew %+v", again)
	}
	if _, err := m.remove(t, again, m.admin); err != nil {
		t.Errorf("an admin removes it for the merchant: %v", err)
	}
	list := func(f store.DestinationFilter, by exchange.Principal) int {
		_, total, err := m.s.Destinations(t.Context(), viewOf(by), f, store.Page{Number: 1, Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		return total
	}
	if list(store.DestinationFilter{}, m.master) != 0 || list(store.DestinationFilter{Status: exchange.DestinationRemoved}, m.agent) != 2 ||
		list(store.DestinationFilter{Status: exchange.DestinationRemoved}, m.rival) != 0 || list(store.DestinationFilter{Status: exchange.DestinationRemoved, MerchantID: m.master.UserID, Kind: exchange.DestinationPhone}, m.admin) != 2 {
		t.Error("the lists differ")
	}
}

// The house's own addresses are nobody's destination; wallets of others in our custody may be.
func TestDestinationsAreNotTheHouses(t *testing.T) {
	t.Parallel()
	m := newMerchants(t)
	house := storetest.TreasuryWallet(t, m.s, exchange.Tron)
	_, err := m.s.AddDestination(t.Context(), m.address(t, house.Address), m.master)
	wantFault(t, err, exchange.CodeInvalid)
	if d := m.add(t, m.address(t, m.wallet.Address), m.agent); d.Recipient() != "tron:"+m.wallet.Address {
		t.Errorf("saved %+v", d)
	}
}

// A merchant has at most so many destinations; removed ones don't count.
func TestDestinationsHaveALimit(t *testing.T) {
	t.Parallel()
	m := newMerchants(t)
	storetest.Exec(t, m.s, `INSERT INTO otc_destinations (id, merchant_id, kind, label, phone, status, created_by, created_at, updated_at)
		SELECT gen_random_uuid(), $1, 'phone', '', '2547' || lpad(n::text, 8, '0'), 'unconfirmed', $1, now(), now() FROM generate_series(1, $2) n`,
		m.master.UserID, exchange.MaxDestinations)
	_, err := m.s.AddDestination(t.Context(), m.phone(t, storetest.NewPhone()), m.agent)
	wantFault(t, err, exchange.CodeLimitReached)
	all, _, err := m.s.Destinations(t.Context(), viewOf(m.master), store.DestinationFilter{}, store.Page{Number: 1, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.remove(t, all[0], m.master); err != nil {
		t.Fatal(err)
	}
	m.add(t, m.phone(t, storetest.NewPhone()), m.agent)
}

// The database itself lets nobody confirm a destination but its master merchant, at no other time than now, and changes none.
func TestDestinationsAreGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	m := newMerchants(t)
	saved, confirmed := m.add(t, m.phone(t, storetest.NewPhone()), m.agent), m.confirm(t, m.add(t, m.bank(t, "77"), m.master))
	const confirm = `UPDATE otc_destinations SET status = 'confirmed', confirmed_by = $2, confirmed_at = now() - interval '2 days' WHERE id = $1`
	const save = `INSERT INTO otc_destinations (id, merchant_id, kind, label, phone, status, created_by, created_at, updated_at) VALUES ($1, $2, 'phone', '', '254799999999', 'unconfirmed', $3, now(), now())`
	for name, try := range map[string]struct {
		query string
		args  []any
		state string
	}{
		"confirmed by a subvendor":         {confirm, []any{saved.ID, m.agent.UserID}, "KV002"},
		"confirmed by an admin":            {confirm, []any{saved.ID, m.admin.UserID}, "KV002"},
		"confirmed by another merchant":    {confirm, []any{saved.ID, m.rival.UserID}, "KV002"},
		"saved for another merchant":       {save, []any{storetest.NewID(t), m.rival.UserID, m.agent.UserID}, "KV002"},
		"saved by an officer":              {save, []any{storetest.NewID(t), m.master.UserID, m.officer.UserID}, "KV002"},
		"another number":                   {`UPDATE otc_destinations SET phone = '254799999999' WHERE id = $1`, []any{saved.ID}, "KV002"},
		"another merchant":                 {`UPDATE otc_destinations SET merchant_id = $2 WHERE id = $1`, []any{saved.ID, m.rival.UserID}, "KV002"},
		"confirmed at another time":        {`UPDATE otc_destinations SET confirmed_at = now() - interval '2 days' WHERE id = $1`, []any{confirmed.ID}, "KV002"},
		"unconfirmed again":                {`UPDATE otc_destinations SET status = 'unconfirmed' WHERE id = $1`, []any{confirmed.ID}, "KV001"},
		"removed by an officer":            {`UPDATE otc_destinations SET status = 'removed', removed_at = now(), removed_by = $2 WHERE id = $1`, []any{saved.ID, m.officer.UserID}, "KV002"},
		"deleted":                          {`DELETE FROM otc_destinations WHERE id = $1`, []any{saved.ID}, "KV002"},
		"an address of the house":          {`INSERT INTO otc_destinations (id, merchant_id, kind, label, network, address, status, created_by, created_at, updated_at) VALUES ($1, $2, 'address', '', 'tron', $3, 'unconfirmed', $2, now(), now())`, []any{storetest.NewID(t), m.master.UserID, storetest.TreasuryWallet(t, m.s, exchange.Tron).Address}, "KV002"},
		"a phone with an account":          {`INSERT INTO otc_destinations (id, merchant_id, kind, label, phone, account_number, status, created_by, created_at, updated_at) VALUES ($1, $2, 'phone', '', '254799999999', '1', 'unconfirmed', $2, now(), now())`, []any{storetest.NewID(t), m.master.UserID}, "23514"},
		"confirmed before it was saved so": {`INSERT INTO otc_destinations (id, merchant_id, kind, label, phone, status, created_by, confirmed_by, confirmed_at, created_at, updated_at) VALUES ($1, $2, 'phone', '', '254799999999', 'confirmed', $2, $2, now() - interval '2 days', now(), now())`, []any{storetest.NewID(t), m.master.UserID}, "KV001"},
	} {
		if _, err := storetest.Owner(t, m.s).ExecContext(t.Context(), try.query, try.args...); sqlState(err) != try.state {
			t.Errorf("%s: %v, want %s", name, err, try.state)
		}
	}
	if _, err := storetest.Owner(t, m.s).ExecContext(t.Context(), confirm, saved.ID, m.master.UserID); err != nil {
		t.Fatal(err)
	}
	if d, err := m.s.Destination(t.Context(), viewOf(m.master), saved.ID); err != nil || time.Since(d.ConfirmedAt) > time.Hour {
		t.Errorf("a moment of two days ago is stored as %s, %v", d.ConfirmedAt, err)
	}
	storetest.Exec(t, m.s, `UPDATE users SET is_active = false WHERE id = $1`, m.master.UserID)
	other := exchange.Destination{ID: storetest.NewID(t), MerchantID: m.master.UserID, Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}
	other = m.add(t, other, m.agent)
	_, err := m.s.ConfirmDestination(t.Context(), viewOf(m.master), other.ID, m.master)
	wantFault(t, err, exchange.CodeStateConflict)
}

// A transfer counts a destination's rest from its confirmation, where no release went there before. One that was removed is not
// known, and neither is that of another merchant.
func TestConfirmedDestinationsAreKnownToTransfers(t *testing.T) {
	t.Parallel()
	m := newMerchants(t)
	storetest.Exec(t, m.s, `UPDATE release_policy SET rest_seconds = 86400, rest_above = 1000`)
	storetest.Deposit(t, m.s, m.wallet.ID, usdt("1000"))
	p := purse{store: m.s, sender: m.masterUser, wallet: m.wallet}
	p.without(t, "150000", "300000")
	saved := func(by exchange.Principal) (exchange.Destination, exchange.Recipient) {
		to := elsewhere(t)
		d := m.address(t, to.Address)
		d.MerchantID = by.UserID
		d = m.add(t, d, by)
		d, err := m.s.ConfirmDestination(t.Context(), viewOf(by), d.ID, by)
		if err != nil {
			t.Fatal(err)
		}
		return d, to
	}
	_, rested := saved(m.master)
	_, anothers := saved(m.rival)
	gone, removed := saved(m.master)
	if _, err := m.remove(t, gone, m.master); err != nil {
		t.Fatal(err)
	}
	unconfirmed := elsewhere(t)
	m.add(t, m.address(t, unconfirmed.Address), m.master)
	storetest.Rested(t, m.s)
	_, young := saved(m.master)
	for name, try := range map[string]struct {
		to   exchange.Recipient
		want exchange.TransferStatus
	}{
		"rested": {rested, exchange.TransferQueued}, "young": {young, exchange.TransferPending}, "another merchant's": {anothers, exchange.TransferPending},
		"removed": {removed, exchange.TransferPending}, "unconfirmed": {unconfirmed, exchange.TransferPending}, "never saved": {elsewhere(t), exchange.TransferPending},
	} {
		f := p.goes(t, "10", try.to)
		if f.Status != try.want || (f.Status == exchange.TransferPending) != (f.StatusDetail == exchange.WaitRest) {
			t.Errorf("to a destination that is %s: %s (%s)", name, f.Status, f.StatusDetail)
		}
	}
}

package store_test

import (
	"sync"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Requests at the same moment can't all find room under one limit, whichever process they come to.
func TestLimitsHoldAgainstParallelRequests(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	p := newPurseIn(t, storetest.Open(t, url, store.Options{}), "1000")
	others := []*store.Store{p.store, storetest.Open(t, url, store.Options{}), storetest.Open(t, url, store.Options{})}
	storetest.Patch(t, p.store, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{
		exchange.RoleCustomer: {PerTransaction: kes("1500"), PerDay: kes("4500"), PerMonth: kes("6000")},
	}})
	const tries = 12
	results := make([]error, tries)
	var wg sync.WaitGroup
	for i := range tries {
		r := p.request(t, "10", exchange.Recipient{Address: outside}) // 1500 KES each at the first valuation
		wg.Go(func() {
			_, results[i] = others[i%len(others)].OpenTransfer(t.Context(), r, storetest.PrincipalOf(p.sender))
		})
	}
	wg.Wait()
	opened := 0
	for _, err := range results {
		if err == nil {
			opened++
			continue
		}
		wantFault(t, err, exchange.CodeLimitReached)
	}
	if opened != 3 {
		t.Errorf("%d of %d were opened, the day has room for 3", opened, tries)
	}
	wantBalance(t, p.store, p.balance(), "1000", "30")
	_, err := p.store.OpenTransfer(t.Context(), p.request(t, "10.01", exchange.Recipient{Address: outside}), storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeLimitReached)
	// What moves nothing counts nothing, and one's own wallets are no spending.
	list, _, err := p.store.ListTransfers(t.Context(), store.Everything(), store.TransferFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.store.CancelTransfer(t.Context(), list[0].ID, exchange.DetailByPerson, storetest.PrincipalOf(p.sender)); err != nil {
		t.Fatal(err)
	}
	p.open(t, "10", exchange.Recipient{Address: outside})
	second := storetest.Wallet(t, p.store, p.sender)
	p.open(t, "500", exchange.Recipient{WalletID: second.ID})
	wantTransfers(t, p.store)
}

// An admin's own limit for a user replaces the role's, field by field.
func TestLimitsOfOneUser(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	admin := storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleAdmin))
	set := func(l exchange.SpendingLimits) {
		t.Helper()
		if _, err := p.store.UpdateUser(t.Context(), p.sender.ID, store.UserPatch{Limits: &l}, admin); err != nil {
			t.Fatal(err)
		}
	}
	try := func(amount string) exchange.Code {
		t.Helper()
		_, err := p.store.OpenTransfer(t.Context(), p.request(t, amount, exchange.Recipient{Address: outside}), storetest.PrincipalOf(p.sender))
		return exchange.CodeOf(err)
	}
	set(exchange.SpendingLimits{PerTransaction: kes("150")})
	if got := try("1.000001"); got != exchange.CodeLimitReached {
		t.Errorf("above the user's limit: %q", got)
	}
	if got := try("1"); got != "" {
		t.Errorf("at the user's limit: %q", got)
	}
	l, err := p.store.LimitsOf(t.Context(), p.sender)
	if err != nil || l.Own.PerTransaction.String() != "150.00" || l.Own.PerDay.Asset() != "" || l.Effective.PerDay.String() != "500000.00" {
		t.Errorf("limits %+v, %v", l, err)
	}
	set(exchange.SpendingLimits{})
	if got := try("2"); got != "" {
		t.Errorf("back at the role's limit: %q", got)
	}
}

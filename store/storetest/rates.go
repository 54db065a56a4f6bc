package storetest

import (
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Rate enters a rate in shillings that two officers agree, at the store's time.
func Rate(t testing.TB, s *store.Store, e store.RateEntry) exchange.FXRate {
	t.Helper()
	if e.Quote, e.Source = money.KES, exchange.RateSourceAdmin; e.Life == 0 {
		e.Life = exchange.DefaultRateLife
	}
	e.ID = NewID(t)
	if err := Agreed(t, s)(s.ProposeRate(t.Context(), e, PrincipalOf(User(t, s, exchange.RoleAdmin)))); err != nil {
		t.Fatalf("seed a rate: %v", err)
	}
	list, _, err := s.FXRates(t.Context(), store.RateFilter{Base: e.Base}, store.Page{Number: 1, Size: 1})
	if err != nil || list[0].ID != e.ID {
		t.Fatalf("the newest rate is %+v, %v", list, err)
	}
	return list[0]
}

package store_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A sale reserves exactly what its vendor owes, and shows an address of the pool that is its own.
func TestSalesReserveTheirShillings(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	o := m.Sale(t, s, "10")
	if got := o.Price; got.Fiat.String() != "1293.00" || got.Vendor.String() != "1293.55" || got.Rounding.String() != "-0.55" {
		t.Errorf("10 USDT bring %s, cost the vendor %s, rounding %s", got.Fiat, got.Vendor, got.Rounding)
	}
	if o.EscrowAddress == "" || o.WalletAddress != o.EscrowAddress || o.EscrowNetwork != "tron" || o.EscrowReference != o.PaymentReference() {
		t.Errorf("escrow %q %q %q, wallet %q", o.EscrowAddress, o.EscrowNetwork, o.EscrowReference, o.WalletAddress)
	}
	if o.Status != exchange.OrderPending || o.StatusDetail != exchange.WaitDeposit || o.PaymentPhone != m.Customer.PhoneNumber {
		t.Errorf("the sale is %s %s, to be paid to %s", o.Status, o.StatusDetail, o.PaymentPhone)
	}
	stored, err := s.Order(ctx, store.Everything(), o.ID)
	if err != nil || stored.AskedAmount.String() != "10.000000" || stored.EscrowAddress != o.EscrowAddress {
		t.Errorf("stored %+v, %v", stored, err)
	}
	offer, err := s.Offer(ctx, store.Everything(), m.Offer.ID)
	if err != nil || offer.Reserved.String() != "257416.45" || offer.Available.String() != "1990.000000" {
		t.Errorf("the offer has %s for %s left, %v", offer.Reserved, offer.Available, err)
	}
	other := m.Sale(t, s, "10")
	if other.EscrowAddress == o.EscrowAddress {
		t.Error("two sales share an address")
	}
	wantBooks(t, s)
}

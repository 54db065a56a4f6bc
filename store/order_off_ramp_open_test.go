package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A sale reserves exactly the vendor's debt, and shows an address of the pool that is its own.
func TestSalesReserveTheirShillings(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	o := m.Sale(t, s, "10")
	if got := o.Price; got.Fiat.String() != "1293.00" || got.Vendor.String() != "1293.55" || got.Rounding.String() != "-0.55" {
		t.Errorf("10 USDT bring %s, cost the vendor %s, rounding %s", got.Fiat, got.Vendor, got.Rounding)
	}
	if o.EscrowAddress == "" || o.WalletAddress != o.EscrowAddress || o.EscrowNetwork != "tron" || o.EscrowReference != o.PaymentReference {
		t.Errorf("escrow %q %q %q, wallet %q", o.EscrowAddress, o.EscrowNetwork, o.EscrowReference, o.WalletAddress)
	}
	if o.Status != exchange.OrderPending || o.StatusDetail != exchange.WaitDeposit || o.PaymentPhone != m.Customer.PhoneNumber {
		t.Errorf("the sale is %s %s, to be paid to %s", o.Status, o.StatusDetail, o.PaymentPhone)
	}
	stored, err := s.Order(ctx, store.Everything(), o.ID)
	if err != nil || stored.AskedAmount.String() != "10.000000" || stored.EscrowAddress != o.EscrowAddress {
		t.Errorf("stored %+v, %v", stored, err)
	}
	wantOffer(t, s, m.Offer.ID, "257416.45", "1990.000000")
	wantBalance(t, s, exchange.Owned(exchange.AccFiatBalance, m.Vendor.ID, "KES"), "300000", "258710")
	if other := m.Sale(t, s, "10"); other.EscrowAddress == o.EscrowAddress {
		t.Error("two sales share an address")
	}
	wantBooks(t, s)
}

func wantOffer(t *testing.T, s *store.Store, id uuid.UUID, reserved, available string) {
	t.Helper()
	offer, err := s.Offer(t.Context(), store.Everything(), id)
	if err != nil || offer.Reserved.String() != reserved || offer.Available.String() != available {
		t.Errorf("the offer has %s for %s left, want %s for %s; %v", offer.Reserved, offer.Available, reserved, available, err)
	}
}

// With an amount in shillings the seller gets exactly that, for the least crypto.
func TestSalesByShillings(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewSellers(t, s)
	r := saleOf(t, m)
	r.Crypto, r.Fiat = money.Amount{}, kes("1300")
	o, err := storetest.OpenOffRamp(t.Context(), s, r, storetest.PrincipalOf(m.Customer))
	if err != nil || o.Price.Fiat.String() != "1300.00" || o.Price.Crypto.String() != "10.049863" {
		t.Errorf("%s KES for %s, %v", o.Price.Fiat, o.Price.Crypto, err)
	}
}

func saleOf(t *testing.T, m storetest.Market) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell,
	}
}

// The same request is the same sale; the id of one can't be used for another.
func TestSalesOpenOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	r := saleOf(t, m)
	twice(t, sameOrder, func() (exchange.Order, error) {
		return storetest.OpenOffRamp(ctx, s, r, storetest.PrincipalOf(m.Customer))
	})
	wantOffer(t, s, m.Offer.ID, "257416.45", "1990.000000")
	r.CustomerID = storetest.User(t, s, exchange.RoleCustomer).ID
	_, err := storetest.OpenOffRamp(ctx, s, r, storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeConflict)
}

// blames is the field that an error names, with its rule.
func blames(err error) string {
	e, ok := errors.AsType[*exchange.Error](err)
	if !ok || len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Pointer + " " + e.Fields[0].Code
}

// Every invalid field of a sale request is named in the refusal, and nothing is stored.
func TestSalesAreRefused(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	gas := storetest.GasWallet(t, s, exchange.Tron)
	other := storetest.User(t, s, exchange.RoleCustomer)
	foreign := storetest.Wallet(t, s, other)
	selling := storetest.NewMarket(t, s)
	elsewhere := storetest.WalletOn(t, s, m.Customer, exchange.Ethereum)
	storetest.Exec(t, s, `INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES (gen_random_uuid(), 'tron', 'TDeniedAddress000000000000', 'test', $1, now())`, m.Vendor.ID)
	for name, c := range map[string]struct {
		change func(*exchange.OrderRequest)
		code   exchange.Code
		blame  string
	}{
		"a purchase":             {func(r *exchange.OrderRequest) { r.Type = exchange.OnRampBuy }, exchange.CodeUnsupported, ""},
		"no such kind":           {func(r *exchange.OrderRequest) { r.Subtype = exchange.StandardOnRamp }, exchange.CodeUnsupported, ""},
		"no amount":              {func(r *exchange.OrderRequest) { r.Crypto = usdt("0") }, "", "/crypto_amount required"},
		"both amounts":           {func(r *exchange.OrderRequest) { r.Fiat = kes("1300") }, "", "/crypto_amount required"},
		"cents":                  {func(r *exchange.OrderRequest) { r.Crypto, r.Fiat = money.Amount{}, kes("1300.50") }, "", "/fiat_amount precision"},
		"another asset":          {func(r *exchange.OrderRequest) { r.Crypto = money.Must(money.USDC, "10") }, "", "/asset mismatch"},
		"below the minimum":      {func(r *exchange.OrderRequest) { r.Crypto = usdt("4.999999") }, "", "/crypto_amount range"},
		"above the maximum":      {func(r *exchange.OrderRequest) { r.Crypto = usdt("500.000001") }, "", "/crypto_amount range"},
		"another rate":           {func(r *exchange.OrderRequest) { r.ExpectedRate = decimal.RequireFromString("130") }, exchange.CodeRateChanged, ""},
		"no offer":               {func(r *exchange.OrderRequest) { r.OfferID = uuid.Nil }, "", "/offer_id required"},
		"an absent offer":        {func(r *exchange.OrderRequest) { r.OfferID = storetest.NewID(t) }, exchange.CodeNotFound, ""},
		"a selling offer":        {func(r *exchange.OrderRequest) { r.OfferID = selling.Offer.ID }, exchange.CodeStateConflict, ""},
		"a wallet address":       {func(r *exchange.OrderRequest) { r.WalletAddress = m.CustomerWallet.Address }, "", "/wallet_address forbidden"},
		"a quote":                {func(r *exchange.OrderRequest) { r.QuoteID = storetest.NewID(t) }, "", "/fx_rate_quote_id forbidden"},
		"a bank":                 {func(r *exchange.OrderRequest) { r.PayoutMethod = "bank" }, "", "/payment_method enum"},
		"by pigeon":              {func(r *exchange.OrderRequest) { r.PayoutMethod = "pigeon" }, "", "/payment_method enum"},
		"a foreign phone":        {func(r *exchange.OrderRequest) { r.Phone = "4915112345678" }, "", "/phone_number format"},
		"a house's wallet":       {func(r *exchange.OrderRequest) { r.RefundAddress = gas.Address }, "", "/refund_address own_wallet"},
		"the vendor's wallet":    {func(r *exchange.OrderRequest) { r.RefundAddress = m.VendorWallet.Address }, "", "/refund_address own_wallet"},
		"a denied address":       {func(r *exchange.OrderRequest) { r.RefundAddress = "TDeniedAddress000000000000" }, "", "/refund_address denied"},
		"funds of a stranger":    {func(r *exchange.OrderRequest) { r.FundWalletID = foreign.ID }, "", "/wallet_id not_found"},
		"funds on another chain": {func(r *exchange.OrderRequest) { r.FundWalletID = elsewhere.ID }, "", "/wallet_id not_found"},
		"an empty wallet":        {func(r *exchange.OrderRequest) { r.FundWalletID = m.CustomerWallet.ID }, exchange.CodeInsufficientFunds, "/wallet_id insufficient_funds"},
		"a sender":               {func(r *exchange.OrderRequest) { r.Sender.Name = "Jane Roe" }, "", "/sender_name forbidden"},
		"somebody to pay":        {func(r *exchange.OrderRequest) { r.Beneficiary.AccountName = "Amina Otieno" }, "", "/beneficiary_account_name forbidden"},
		"an absent customer":     {func(r *exchange.OrderRequest) { r.CustomerID = storetest.NewID(t) }, exchange.CodeConflict, ""},
		"a vendor":               {func(r *exchange.OrderRequest) { r.CustomerID = m.Vendor.ID }, exchange.CodeForbidden, ""},
	} {
		r := saleOf(t, m)
		c.change(&r)
		_, err := storetest.OpenOffRamp(ctx, s, r, storetest.PrincipalOf(m.Customer))
		if c.code == "" {
			c.code = exchange.CodeInvalid
		}
		if exchange.CodeOf(err) != c.code || blames(err) != c.blame {
			t.Errorf("%s: %v, want %s %q", name, err, c.code, c.blame)
		}
	}
	wantOffer(t, s, m.Offer.ID, "258710.00", "2000.000000")
	for table, where := range map[string]string{"orders": "true", "escrow_leases": "true", "deposit_waits": "true", "limit_uses": "true", "holds": "object_type = 'order'"} {
		var n int
		if err := storetest.Owner(t, s).QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE `+where).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows are left in %s, %v", n, table, err)
		}
	}
	wantBooks(t, s)
}

// Sales are limited by the offer, the vendor, the provider, the pool and the customer's limits.
func TestSalesHaveLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits store.Limits
		check  func(*testing.T, *store.Store, storetest.Market)
	}{
		"the operator":          {store.Limits{}, operatorLimits},
		"the pool":              {store.Limits{}, poolIsLimited},
		"the offer":             {store.Limits{}, offerIsLimited},
		"the vendor":            {store.Limits{}, vendorMustBeActive},
		"the customer":          {store.Limits{CustomerOrders: 2}, customerHasFewOrders},
		"addresses of the pool": {store.Limits{CustomerOrders: 1}, customerTakesFewAddresses},
		"returned sales":        {store.Limits{CustomerOrders: 1}, customerReturnsFewSales},
		"its day":               {store.Limits{}, customerHasItsDay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, storetest.URL(t), store.Options{Limits: c.limits})
			c.check(t, s, storetest.NewSellers(t, s))
		})
	}
}

// opens asks for a sale in the customer's name.
func opens(t *testing.T, s *store.Store, m storetest.Market, r exchange.OrderRequest) error {
	t.Helper()
	_, err := storetest.OpenOffRamp(t.Context(), s, r, storetest.PrincipalOf(m.Customer))
	return err
}

func operatorLimits(t *testing.T, s *store.Store, m storetest.Market) {
	storetest.Exec(t, s, `ALTER TABLE momo_terms DISABLE TRIGGER USER; INSERT INTO momo_terms (id, valid_from, min_prompt, max_prompt, min_payout, max_payout, payee_day, tariff, entered_at)
		VALUES (gen_random_uuid(), now() - interval '1 minute', 1, 250000, 1000, 20000, 500000, '[{"up_to": "250000", "charge": "13"}]', now() - interval '2 minutes')`)
	asks := func(crypto string) error {
		r := saleOf(t, m)
		r.Crypto = usdt(crypto)
		return opens(t, s, m, r)
	}
	if err := asks("7"); blames(err) != "/crypto_amount out_of_range" {
		t.Errorf("too little: %v", err)
	}
	if err := asks("200"); blames(err) != "/crypto_amount out_of_range" {
		t.Errorf("too much: %v", err)
	}
	if err := asks("10"); err != nil {
		t.Error(err)
	}
}

func poolIsLimited(t *testing.T, s *store.Store, m storetest.Market) {
	for range 4 {
		m.Sale(t, s, "10")
	}
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeEscrowExhausted)
	wantBooks(t, s)
}

func offerIsLimited(t *testing.T, s *store.Store, m storetest.Market) {
	m.Offer = storetest.BuyOffer(t, s, m.Vendor, exchange.Tron, "12")
	r := saleOf(t, m)
	r.Crypto = usdt("12.000001")
	wantFault(t, opens(t, s, m, r), exchange.CodeInsufficientOffer)
	m.Sale(t, s, "10")
	offer, err := s.Offer(t.Context(), store.Everything(), m.Offer.ID)
	if err != nil || offer.Status != exchange.OfferExhausted {
		t.Errorf("the offer is %s, %v", offer.Status, err)
	}
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeInsufficientOffer)
}

func vendorMustBeActive(t *testing.T, s *store.Store, m storetest.Market) {
	off := false
	if _, err := s.UpdateUser(t.Context(), m.Vendor.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeStateConflict)
}

func customerHasFewOrders(t *testing.T, s *store.Store, m storetest.Market) {
	m.Sale(t, s, "10")
	last := m.Sale(t, s, "10")
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeLimitReached)
	if _, err := s.CloseOffRamp(t.Context(), last.ID, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if err := opens(t, s, m, saleOf(t, m)); err != nil {
		t.Errorf("after one was cancelled: %v", err)
	}
}

func customerTakesFewAddresses(t *testing.T, s *store.Store, m storetest.Market) {
	storetest.EscrowPool(t, s, exchange.Tron, 4)
	for range 5 {
		o := m.Sale(t, s, "10")
		if _, err := s.CloseOffRamp(t.Context(), o.ID, exchange.DetailCancelled, exchange.Asked{}); err != nil {
			t.Fatal(err)
		}
	}
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeLimitReached)
	m.Customer = storetest.User(t, s, exchange.RoleCustomer)
	if err := opens(t, s, m, saleOf(t, m)); err != nil {
		t.Errorf("another customer: %v", err)
	}
}

// A sale whose crypto its seller has returned costs its address and the network's fees like an unpaid one, and more.
func customerReturnsFewSales(t *testing.T, s *store.Store, m storetest.Market) {
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	storetest.EscrowPool(t, s, exchange.Tron, 4)
	var block uint64 = 100
	for range 5 {
		x := soldIn(t, s, m)
		x.block = block
		x.waits(t, x.final(t, x.to(x.order.ID.String(), usdt("9.5"))))
		x.says(t)
		if _, err := x.decides(t, exchange.IntendSaleReturn, x.now(t), x.seller()); err != nil {
			t.Fatal(err)
		}
		block = x.block
	}
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeLimitReached)
}

func customerHasItsDay(t *testing.T, s *store.Store, m storetest.Market) {
	storetest.Exec(t, s, `UPDATE role_limits SET per_day = 2000 WHERE role = 'customer'`)
	o := m.Sale(t, s, "10")
	wantFault(t, opens(t, s, m, saleOf(t, m)), exchange.CodeLimitReached)
	if _, err := s.CloseOffRamp(t.Context(), o.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if err := opens(t, s, m, saleOf(t, m)); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}

// Of two concurrent sales one gets an offer's last shillings, and nothing is promised twice.
func TestLastShillingsOfAnOffer(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	storetest.EscrowPool(t, s, exchange.Tron, 8)
	m.Offer = storetest.BuyOffer(t, s, m.Vendor, exchange.Tron, "35")
	const tries = 8
	var wg sync.WaitGroup
	errs := make([]error, tries)
	for i := range tries {
		r := saleOf(t, m)
		r.CustomerID = storetest.User(t, s, exchange.RoleCustomer).ID
		wg.Go(func() { _, errs[i] = storetest.OpenOffRamp(ctx, s, r, exchange.System("test")) })
	}
	wg.Wait()
	opened := 0
	for _, err := range errs {
		switch exchange.CodeOf(err) {
		case "":
			opened++
		case exchange.CodeInsufficientOffer:
		default:
			t.Errorf("refused with %v", err)
		}
	}
	if opened != 3 {
		t.Errorf("%d sales of 10 USDT were opened against 35", opened)
	}
	wantOffer(t, s, m.Offer.ID, "646.78", "5.000038")
	wantBooks(t, s)
}

// An unpaid sale releases its reservation, and its address rests.
func TestUnpaidSalesAreClosed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	o := m.Sale(t, s, "10")
	closed := twice(t, sameOrder, func() (exchange.Order, error) {
		return s.CloseOffRamp(ctx, o.ID, exchange.DetailExpired, exchange.Asked{})
	})
	if closed.Status != exchange.OrderCancelled || closed.StatusDetail != exchange.DetailExpired {
		t.Errorf("it is %s %s", closed.Status, closed.StatusDetail)
	}
	wantOffer(t, s, m.Offer.ID, "258710.00", "2000.000000")
	lease, err := s.EscrowLease(ctx, o.ID)
	if err != nil || lease.EndedAt.IsZero() || !lease.RestUntil.After(lease.EndedAt) {
		t.Errorf("the lease %+v, %v", lease, err)
	}
	bought := storetest.NewMarket(t, s).Order(t, s, "10")
	_, err = s.CloseOffRamp(ctx, bought.ID, exchange.DetailExpired, exchange.Asked{})
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = s.CloseOffRamp(ctx, storetest.NewID(t), exchange.DetailExpired, exchange.Asked{})
	wantFault(t, err, exchange.CodeNotFound)
	wantBooks(t, s)
}

// An offer that a sale exhausted is active again when the sale is closed.
func TestClosedSalesReviveTheirOffer(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	m.Offer = storetest.BuyOffer(t, s, m.Vendor, exchange.Tron, "12")
	o := m.Sale(t, s, "10")
	status := func() exchange.OfferStatus {
		t.Helper()
		offer, err := s.Offer(ctx, store.Everything(), m.Offer.ID)
		if err != nil {
			t.Fatal(err)
		}
		return offer.Status
	}
	if got := status(); got != exchange.OfferExhausted {
		t.Errorf("with a sale it is %s", got)
	}
	if _, err := s.CloseOffRamp(ctx, o.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != exchange.OfferActive {
		t.Errorf("without it it is %s", got)
	}
}

// The seller sets the refund address once.
func TestRefundAddressIsSetOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	o := m.Sale(t, s, "10")
	by := storetest.PrincipalOf(m.Customer)
	view := store.ViewOf(by, exchange.ActCancelOrders)
	gas := storetest.GasWallet(t, s, exchange.Tron)
	_, err := s.SetRefundAddress(ctx, view, o.ID, gas.Address, nil, by)
	if blames(err) != "/refund_address own_wallet" {
		t.Errorf("the house's wallet: %v", err)
	}
	stranger := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleCustomer))
	_, err = s.SetRefundAddress(ctx, store.ViewOf(stranger, exchange.ActCancelOrders), o.ID, m.CustomerWallet.Address, nil, stranger)
	wantFault(t, err, exchange.CodeNotFound)
	said := twice(t, sameOrder, func() (exchange.Order, error) {
		return s.SetRefundAddress(ctx, view, o.ID, m.CustomerWallet.Address, nil, by)
	})
	if said.RefundAddress != m.CustomerWallet.Address {
		t.Errorf("it is %q", said.RefundAddress)
	}
	_, err = s.SetRefundAddress(ctx, view, o.ID, "TAnotherAddressOfTheSame000000000", nil, by)
	wantFault(t, err, exchange.CodeStateConflict)
	bought := storetest.NewMarket(t, s)
	_, err = s.SetRefundAddress(ctx, store.Everything(), bought.Order(t, s, "10").ID, m.CustomerWallet.Address, nil, by)
	wantFault(t, err, exchange.CodeStateConflict)
}

// A remittance has the sender and the beneficiary that its intent names, from a country that we serve, and no event or audit
// row names them.
func TestRemittancesNameTheirParties(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	by := storetest.PrincipalOf(m.Customer)
	if err := s.SeedCatalogs(ctx); err != nil {
		t.Fatal(err)
	}
	remittance := func(country string) exchange.OrderRequest {
		r := saleOf(t, m)
		r.Subtype, r.Phone = exchange.RemittanceOffRamp, "254712345678"
		r.Sender = exchange.Sender{Name: "Jane Roe", Country: country, Phone: "447700900123"}
		r.Beneficiary = exchange.Beneficiary{AccountName: "Amina Otieno"}
		return r
	}
	for _, inactive := range []string{"XX", "GB"} {
		if _, err := storetest.OpenOffRamp(ctx, s, remittance(inactive), by); blames(err) != "/sender_country not_found" {
			t.Errorf("a country that we don't serve: %v", err)
		}
	}
	storetest.Exec(t, s, `UPDATE countries SET is_active = true WHERE alpha2_code = 'GB'`)
	r := remittance("GB")
	o := twice(t, sameOrder, func() (exchange.Order, error) { return storetest.OpenOffRamp(ctx, s, r, by) })
	stored, err := s.Order(ctx, store.Everything(), o.ID)
	if err != nil || stored.SenderName != "Jane Roe" || stored.SenderCountry != "GB" || stored.SenderPhone != "447700900123" ||
		stored.Beneficiary != r.Beneficiary || stored.PaymentPhone != "254712345678" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	for _, secret := range []string{"Jane Roe", "447700900123", "Amina Otieno", "254712345678"} {
		var found int
		if err := storetest.Owner(t, s).QueryRowContext(ctx, `SELECT (SELECT count(*) FROM events WHERE payload::text LIKE '%' || $1 || '%')
			+ (SELECT count(*) FROM audit_log a WHERE a::text LIKE '%' || $1 || '%')`, secret).Scan(&found); err != nil || found != 0 {
			t.Errorf("%d events or audit rows contain %q, %v", found, secret, err)
		}
	}
}

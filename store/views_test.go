package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Another owner's object is missing: by id, in lists, in the search, in timelines and in events.
func TestViewsHideWhatBelongsToOthers(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	mine, other := storetest.NewMarket(t, s), storetest.NewMarket(t, s)
	o, _ := paid(t, s, mine)
	admin := storetest.User(t, s, exchange.RoleAdmin)
	sub := storetest.Subvendor(t, s, mine.Vendor)
	page := store.Page{Number: 1, Size: 50}
	settle(t, func() bool { // what a stranger does not see below is hidden, not late
		events, err := s.Events(ctx, store.Everything(), 0, store.MaxEvents)
		return err == nil && slices.ContainsFunc(events, func(e exchange.Event) bool { return e.Type == "order.processing" })
	})
	for _, c := range []struct {
		who  string
		user exchange.User
		sees bool
	}{
		{"its customer", mine.Customer, true},
		{"its vendor", mine.Vendor, true},
		{"its vendor's subvendor", sub, true},
		{"an admin", admin, true},
		{"another customer", other.Customer, false},
		{"another vendor", other.Vendor, false},
	} {
		p := storetest.PrincipalOf(c.user)
		v := store.ViewOf(p, exchange.ActReadOrders)
		want := exchange.CodeNotFound
		n := 0
		if c.sees {
			want, n = "", 1
		}
		_, err := s.Order(ctx, v, o.ID)
		if exchange.CodeOf(err) != want {
			t.Errorf("%s reads the order: %v", c.who, err)
		}
		if _, err := s.OrderTimeline(ctx, v, o.ID); exchange.CodeOf(err) != want {
			t.Errorf("%s reads the timeline: %v", c.who, err)
		}
		list, total, err := s.ListOrders(ctx, v, store.OrderFilter{}, page)
		if err != nil || len(list) != n || total != n {
			t.Errorf("%s lists %d of %d orders, %v", c.who, len(list), total, err)
		}
		for _, q := range []string{o.ID.String(), o.MomoReceipt, o.PaymentPhone.Digits(), "Otieno", "ami", o.ID.String()[:13]} {
			if found, _, err := s.SearchOrders(ctx, v, q, page); err != nil || len(found) != n {
				t.Errorf("%s finds %d orders for %q, %v", c.who, len(found), q, err)
			}
		}
		sees := func() bool {
			events, err := s.Events(ctx, store.ViewOf(p, exchange.ActReadEvents), 0, store.MaxEvents)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(events, func(e exchange.Event) bool { return e.ObjectID == o.ID })
		}
		if c.sees {
			settle(t, sees)
		} else if sees() {
			t.Errorf("%s sees the order's events", c.who)
		}
	}
	if _, err := s.Order(ctx, store.View{}, o.ID); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("an empty view reads the order: %v", err)
	}
}

func TestViewsOfOffersWalletsAndMerchants(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	mine, other := storetest.NewMarket(t, s), storetest.NewMarket(t, s)
	own := storetest.PrincipalOf(mine.Vendor)
	paused, err := s.PauseOffer(ctx, store.ViewOf(own, exchange.ActWriteOffers), mine.Offer.ID, own)
	if err != nil {
		t.Fatal(err)
	}
	page := store.Page{Number: 1, Size: 10}
	for _, c := range []struct {
		who    string
		user   exchange.User
		offers int
	}{
		{"its vendor", mine.Vendor, 2},
		{"another vendor", other.Vendor, 1},
		{"a customer", mine.Customer, 1},
		{"an admin", storetest.User(t, s, exchange.RoleAdmin), 2},
	} {
		v := store.ViewOf(storetest.PrincipalOf(c.user), exchange.ActListOffers)
		if all, total, err := s.ListOffers(ctx, v, store.OfferFilter{}, page); err != nil || len(all) != c.offers || total != c.offers {
			t.Errorf("%s lists %d of %d offers, %v", c.who, len(all), total, err)
		}
		_, err := s.Offer(ctx, v, paused.ID)
		if (err == nil) != (c.offers == 2) {
			t.Errorf("%s reads the paused offer: %v", c.who, err)
		}
	}
	stranger := storetest.PrincipalOf(other.Vendor)
	_, err = s.ResumeOffer(ctx, store.ViewOf(stranger, exchange.ActWriteOffers), paused.ID, stranger)
	wantFault(t, err, exchange.CodeNotFound)
	_, err = s.Wallet(ctx, store.ViewOf(stranger, exchange.ActReadWallets), mine.VendorWallet.ID)
	wantFault(t, err, exchange.CodeNotFound)
	_, err = s.SetDefaultWallet(ctx, store.ViewOf(stranger, exchange.ActReadWallets), mine.VendorWallet.ID, stranger)
	wantFault(t, err, exchange.CodeNotFound)
	_, err = s.Merchant(ctx, store.ViewOf(stranger, exchange.ActReadMerchants), mine.Vendor.ID)
	wantFault(t, err, exchange.CodeNotFound)
	m, err := s.Merchant(ctx, store.ViewOf(own, exchange.ActReadMerchants), mine.Vendor.ID)
	if err != nil || len(m.Wallets) != 1 || m.Wallets[0].ID != mine.VendorWallet.ID {
		t.Errorf("merchant %+v, %v", m, err)
	}
	if all, total, err := s.ListMerchants(ctx, store.ViewOf(own, exchange.ActReadMerchants), page); err != nil || total != 1 || all[0].ID != mine.Vendor.ID {
		t.Errorf("%d merchants, %v", total, err)
	}
}

func TestOffersOpenCloseAndKeepTheirPromise(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	by := storetest.PrincipalOf(m.Vendor)
	v := store.ViewOf(by, exchange.ActWriteOffers)
	balance := exchange.Owned(exchange.AccWalletBalance, m.VendorWallet.ID, m.Offer.Asset)
	second := m.Offer
	second.ID, second.WalletID = storetest.NewID(t), uuid.Nil
	created, err := s.CreateOffer(ctx, second, by)
	if err != nil || created.Status != exchange.OfferDraft || !created.Available.IsZero() || created.WalletID != m.VendorWallet.ID {
		t.Fatalf("created %+v, %v", created, err)
	}
	_, err = s.PublishOffer(ctx, v, created.ID, by)
	wantFault(t, err, exchange.CodeInsufficientFunds) // 500 are free
	total := usdt("500")
	if _, err := s.PatchOffer(ctx, v, created.ID, store.OfferPatch{Total: &total}, by); err != nil {
		t.Fatal(err)
	}
	twice(t, sameOffer, func() (exchange.Offer, error) { return s.PublishOffer(ctx, v, created.ID, by) })
	wantBalance(t, s, balance, "1500", "1500")
	_, err = s.PatchOffer(ctx, v, created.ID, store.OfferPatch{Total: &total}, by)
	wantFault(t, err, exchange.CodeStateConflict)
	wantFault(t, s.DeleteOffer(ctx, v, created.ID, by), exchange.CodeStateConflict)

	o, err := storetest.OpenOrder(ctx, s, exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: created.ID, Crypto: usdt("497")}, by)
	if err != nil {
		t.Fatal(err)
	}
	exhausted, err := s.Offer(ctx, store.Everything(), created.ID)
	if err != nil || exhausted.Status != exchange.OfferExhausted || exhausted.Available.String() != "3.000000" {
		t.Errorf("exhausted %+v, %v", exhausted, err)
	}
	_, err = storetest.OpenOrder(ctx, s, exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: created.ID, Crypto: usdt("5")}, by)
	wantFault(t, err, exchange.CodeInsufficientOffer)
	if _, err := s.CloseOrder(ctx, o.ID, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Offer(ctx, store.Everything(), created.ID)
	if err != nil || again.Status != exchange.OfferActive || !again.Available.Equal(total) {
		t.Errorf("after the order was cancelled %+v, %v", again, err)
	}
	// An order keeps its part of an offer that closes, and returns it to the merchant.
	o, err = storetest.OpenOrder(ctx, s, exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: created.ID, Fiat: kes("1000")}, by)
	if err != nil || o.Price.Crypto.String() != "7.722007" {
		t.Fatalf("bought %s, %v", o.Price.Crypto, err)
	}
	twice(t, sameOffer, func() (exchange.Offer, error) { return s.CloseOffer(ctx, v, created.ID, by) })
	wantBalance(t, s, balance, "1500", "1007.722007")
	if _, err := s.CloseOrder(ctx, o.ID, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, balance, "1500", "1000")
	if err := s.DeleteOffer(ctx, v, created.ID, by); err != nil {
		t.Fatal(err)
	}
	_, err = s.Offer(ctx, store.Everything(), created.ID)
	wantFault(t, err, exchange.CodeNotFound)
	wantBooks(t, s)
}

func sameOffer(a, b exchange.Offer) bool {
	return a.Version == b.Version && a.Status == b.Status && a.Available.Equal(b.Available)
}

// Staff suspend an offer, which its merchant can't close then, and end that.
func TestOffersAreSuspended(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	by, admin := storetest.PrincipalOf(m.Vendor), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	v, staff := store.ViewOf(by, exchange.ActWriteOffers), store.ViewOf(admin, exchange.ActSuspendOffers)
	twice(t, sameOffer, func() (exchange.Offer, error) { return s.SuspendOffer(ctx, staff, m.Offer.ID, admin) })
	_, err := s.CloseOffer(ctx, v, m.Offer.ID, by)
	wantFault(t, err, exchange.CodeStateConflict)
	twice(t, sameOffer, func() (exchange.Offer, error) { return s.UnsuspendOffer(ctx, staff, m.Offer.ID, admin) })
	resumed, err := s.ResumeOffer(ctx, v, m.Offer.ID, by)
	if err != nil || resumed.Status != exchange.OfferActive {
		t.Errorf("resumed %+v, %v", resumed, err)
	}
	wantBooks(t, s)
}

func TestOrdersAreCheckedAgainstTheirOffer(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	vendor, poor := storetest.PrincipalOf(m.Vendor), storetest.User(t, s, exchange.RoleUser)
	for _, c := range []struct {
		name    string
		edit    func(*exchange.OrderRequest)
		code    exchange.Code
		pointer string
	}{
		{"nothing asked", func(*exchange.OrderRequest) {}, exchange.CodeInvalid, "/crypto_amount"},
		{"both asked", func(r *exchange.OrderRequest) { r.Crypto, r.Fiat = usdt("10"), kes("1000") }, exchange.CodeInvalid, "/crypto_amount"},
		{"too little", func(r *exchange.OrderRequest) { r.Crypto = usdt("4.999999") }, exchange.CodeInvalid, "/crypto_amount"},
		{"too much", func(r *exchange.OrderRequest) { r.Crypto = usdt("500.000001") }, exchange.CodeInvalid, "/crypto_amount"},
		{"too few shillings", func(r *exchange.OrderRequest) { r.Fiat = kes("1") }, exchange.CodeInvalid, "/fiat_amount"},
		{"cents", func(r *exchange.OrderRequest) { r.Fiat = kes("1000.50") }, exchange.CodeInvalid, "/fiat_amount"},
		{"a strange number", func(r *exchange.OrderRequest) { r.Crypto, r.Phone = usdt("10"), "0712345678" }, exchange.CodeInvalid, "/phone_number"},
		{"no wallet", func(r *exchange.OrderRequest) { r.Crypto, r.CustomerID = usdt("10"), poor.ID }, exchange.CodeInvalid, "/wallet_address"},
		{"a merchant", func(r *exchange.OrderRequest) { r.Crypto, r.CustomerID = usdt("10"), m.Vendor.ID }, exchange.CodeForbidden, ""},
		{"no offer", func(r *exchange.OrderRequest) { r.Crypto, r.OfferID = usdt("10"), uuid.New() }, exchange.CodeNotFound, ""},
	} {
		r := exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID}
		c.edit(&r)
		_, err := storetest.OpenOrder(t.Context(), s, r, vendor)
		wantFault(t, err, c.code)
		if c.pointer != "" && fieldOf(err) != c.pointer {
			t.Errorf("%s: %v names %s, want %s", c.name, err, fieldOf(err), c.pointer)
		}
	}
	_, err := s.PauseOffer(t.Context(), store.ViewOf(vendor, exchange.ActWriteOffers), m.Offer.ID, vendor)
	if err != nil {
		t.Fatal(err)
	}
	_, err = storetest.OpenOrder(t.Context(), s, exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10")}, vendor)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBooks(t, s)
}

func TestOrderDetailsAndLists(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	var all []exchange.Order
	for range 3 {
		all = append(all, m.Order(t, s, "5"))
	}
	for range 2 {
		if err := s.SetOrderDetail(ctx, all[0].ID, exchange.WaitPayment); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Order(ctx, store.Everything(), all[0].ID)
	if err != nil || got.StatusDetail != exchange.WaitPayment || got.Version != 2 {
		t.Errorf("order %+v, %v", got, err)
	}
	list, total, err := s.ListOrders(ctx, store.Everything(), store.OrderFilter{Status: exchange.OrderPending, OfferID: m.Offer.ID, CreatedFrom: time.Now().Add(-time.Hour)},
		store.Page{Number: 2, Size: 2})
	if err != nil || total != 3 || len(list) != 1 || list[0].ID != all[0].ID {
		t.Errorf("%d of %d orders, %v", len(list), total, err)
	}
	if list, _, err := s.ListOrders(ctx, store.Everything(), store.OrderFilter{}, store.Page{Number: 1 << 40, Size: 100}); err != nil || len(list) != 0 {
		t.Errorf("a page beyond all has %d orders, %v", len(list), err)
	}
	wantFault(t, s.SetOrderDetail(ctx, uuid.New(), "x"), exchange.CodeNotFound)
}

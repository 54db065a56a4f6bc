package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// charged enters fees of orders of USDT: fixed shillings and a percentage.
func charged(t *testing.T, s *store.Store, l exchange.FeeLine, fixed string, points int64) exchange.FeeProfile {
	t.Helper()
	l.Asset = money.USDT
	p := lineOf(t, l, points)
	p.Fixed = kes(fixed)
	if err := storetest.Agreed(t, s)(s.ProposeProfile(t.Context(), p, storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin)))); err != nil {
		t.Fatal(err)
	}
	return p
}

// The fee of a purchase is inside of what the customer pays, is frozen when it is opened, and is the house's when the crypto arrived.
func TestFeesOfPurchases(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	charged(t, s, exchange.FeeLine{Scope: exchange.FeePurchase}, "100", 0)
	fees := charged(t, s, exchange.FeeLine{Scope: exchange.FeePurchase, MerchantID: m.Vendor.ID, Method: exchange.FeeByMomo}, "5", 150)
	o, err := storetest.OpenOrder(ctx, s, exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10.123456")},
		storetest.PrincipalOf(m.Customer))
	if err != nil {
		t.Fatal(err)
	}
	// 1.5 % of 1311 are 19.665.
	if o.Price.Fiat.String() != "1311.00" || o.Price.Fee.String() != "24.67" || o.Price.Vendor.String() != "1286.31" || o.ProfileID != fees.ID {
		t.Fatalf("opened at %+v by %s", o.Price, o.ProfileID)
	}
	charged(t, s, exchange.FeeLine{Scope: exchange.FeePurchase, MerchantID: m.Vendor.ID, Method: exchange.FeeByMomo}, "500", 0)
	out, err := s.AcceptPayment(ctx, storetest.Attempt(t, s, o).ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if o = out.Order; !o.NetworkFee.IsZero() {
		t.Errorf("before it is sent the networks took %s", o.NetworkFee)
	}
	if _, err := s.RecordFinal(ctx, sign(t, s, out.ChainPayment).ID, true, 9, "bb", trx("13.5"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if o, err = s.CompleteOrder(ctx, o.ID); err != nil || o.Price.Fee.String() != "24.67" || o.ProfileID != fees.ID {
		t.Fatalf("completed %+v, %v", o.Price, err)
	}
	if o, err = s.Order(ctx, store.Everything(), o.ID); err != nil || !o.NetworkFee.Equal(trx("13.5")) {
		t.Errorf("the networks took %s, %v", o.NetworkFee, err)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccFiatBalance, m.Vendor.ID, money.KES), "1286.31", "0")
	wantBalance(t, s, exchange.House(exchange.AccFees, money.KES), "24.67", "0")
	wantBalance(t, s, exchange.House(exchange.AccRounding, money.KES), "0.02", "0")
	wantBalance(t, s, exchange.House(exchange.AccOrdersInFlight, money.KES), "0", "0")
	wantBooks(t, s)
	charged(t, s, exchange.FeeLine{Scope: exchange.FeePurchase, MerchantID: m.Vendor.ID, Method: exchange.FeeByMomo}, "5000", 0)
	_, err = storetest.OpenOrder(ctx, s, exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10")},
		storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeInvalid) // the fee would leave nothing
}

// The vendor of a sale owes the fee besides the shillings of the seller; in a sale to the house the seller gets less by it.
func TestFeesOfSales(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		house                              bool
		fiat, fee, vendor, rounding, moved string
		lessFiat, lessFee, lessVendor      string
	}{
		// 10 USDT are worth 1293.55; one per cent is 12.9355.
		"to a vendor":  {false, "1293.00", "17.94", "1311.49", "0.55", "-1311.49", "1228.00", "17.29", "1246.16"},
		"to the house": {true, "1275.00", "17.94", "1293.55", "0.61", "-1293.55", "1211.00", "17.29", "1228.87"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := func() *sale {
				x := taxedSale(t, c.house)
				p := x.order.Price
				if p.Fiat.String() != c.fiat || p.Fee.String() != c.fee || p.Vendor.String() != c.vendor || x.order.ProfileID == uuid.Nil {
					t.Fatalf("opened at %+v", p)
				}
				return x
			}
			x := open()
			before, err := x.s.Account(t.Context(), vendorOf(x))
			if err != nil {
				t.Fatal(err)
			}
			d := x.final(t, x.to("tx", usdt("10")))
			x.order = x.take(t, d, exchange.TakenExact).Order
			if err := x.s.RecordDepositScreening(t.Context(), d.ID, []exchange.Screening{{Screener: "test", Verdict: exchange.VerdictClear}}); err != nil {
				t.Fatal(err)
			}
			x.paysOut(t)
			after, err := x.s.Account(t.Context(), vendorOf(x))
			if err != nil || after.Posted.Sub(before.Posted).String() != c.moved {
				t.Errorf("the vendor had %s and has %s, %v", before.Posted, after.Posted, err)
			}
			wantBalance(t, x.s, exchange.House(exchange.AccFees, money.KES), c.fee, "0")
			wantBalance(t, x.s, exchange.House(exchange.AccRounding, money.KES), c.rounding, "0")
			wantBooks(t, x.s)
			// Less crypto is priced anew, by the fees that were frozen.
			less := open()
			charged(t, less.s, exchange.FeeLine{Scope: exchange.FeeSale}, "500", 0)
			got := less.take(t, less.final(t, less.to("tx", usdt("9.5"))), exchange.TakenRepriced).Order
			if p := got.Price; p.Fiat.String() != c.lessFiat || p.Fee.String() != c.lessFee || p.Vendor.String() != c.lessVendor {
				t.Errorf("9.5 USDT are sold at %+v", p)
			}
			wantBooks(t, less.s)
		})
	}
}

func vendorOf(x *sale) exchange.AccountRef {
	return exchange.Owned(exchange.AccFiatBalance, x.order.VendorID, money.KES)
}

// taxedSale is a sale of 10 USDT with a fee of one per cent and five shillings.
func taxedSale(t *testing.T, house bool) *sale {
	t.Helper()
	s := started(t)
	charged(t, s, exchange.FeeLine{Scope: exchange.FeeSale}, "5", 100)
	if house {
		x, _ := treasurySaleIn(t, s)
		return x
	}
	return soldIn(t, s, storetest.NewSellers(t, s))
}

// The database computes fees as the code does, and accepts no other fee and no other part of the vendor.
func TestDatabaseGuardsFeesOfOrders(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	fees := charged(t, s, exchange.FeeLine{Scope: exchange.FeePurchase}, "5", 150)
	if err := storetest.Agreed(t, s)(s.ProposeProfile(ctx, func() exchange.FeeProfile {
		p := lineOf(t, exchange.FeeLine{Scope: exchange.FeeDeposit}, 33)
		p.Minimum, p.Maximum = kes("10"), kes("99.99")
		fees = p
		return p
	}(), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin)))); err != nil {
		t.Fatal(err)
	}
	for _, amount := range []string{"0", "0.01", "100", "3030.30", "3030.31", "12345.67", "1000000"} {
		var got string
		if err := storetest.Owner(t, s).QueryRowContext(ctx, `SELECT fee_of($1, $2, 'KES')`, fees.ID, amount).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := fees.Fee(kes(amount)); !want.Decimal().Equal(decimal.RequireFromString(got)) {
			t.Errorf("of %s the database takes %s, the code %s", amount, got, want)
		}
	}
	o := m.Order(t, s, "10")
	db := storetest.Owner(t, s)
	for change, want := range map[string]string{
		`fee_amount = 0, vendor_amount = 1295`:                           "KV002",
		`pricing_profile_id = NULL`:                                      "KV002",
		`fee_amount = fee_amount + 1, vendor_amount = vendor_amount - 1`: "KV002",
	} {
		if _, err := db.ExecContext(ctx, `UPDATE orders SET `+change+` WHERE id = $1`, o.ID); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	conn, err := db.Conn(ctx) // of the table that only it sees
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for columns, want := range map[[2]string]string{
		{"fee_amount", "0"}:                                  "KV002",
		{"fee_amount, vendor_amount", "0, 1295"}:             "KV002",
		{"pricing_profile_id", "'" + fees.ID.String() + "'"}: "KV002",
		{"fee_amount, pricing_profile_id", "0, NULL"}:        "KV002", // and the vendor's part is less
	} {
		_, err := conn.ExecContext(ctx, `CREATE TEMP TABLE copied AS SELECT * FROM orders WHERE id = $1`, o.ID)
		if err == nil {
			_, err = conn.ExecContext(ctx, `UPDATE copied SET id = gen_random_uuid(), (`+columns[0]+`) = ROW(`+columns[1]+`)`)
		}
		if err == nil {
			_, err = conn.ExecContext(ctx, `INSERT INTO orders SELECT * FROM copied`)
		}
		if sqlState(err) != want {
			t.Errorf("%v: %v, want %s", columns, err, want)
		}
		if _, err := conn.ExecContext(ctx, `DROP TABLE copied`); err != nil {
			t.Fatal(err)
		}
	}
}

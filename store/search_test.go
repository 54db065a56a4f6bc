package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func TestSearchRecognisesWhatIsAsked(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	const phone, otherPhone = "254711222333", "254700000000" // three digits of the one are not in the other
	storetest.Exec(t, s, `UPDATE users SET phone_number = $2, phone_proven_at = now() WHERE id = $1`, m.Customer.ID, phone)
	o, p := paid(t, s, m)
	tx := sign(t, s, p)
	if _, err := s.RecordBroadcast(ctx, tx.ID, "SUCCESS", true); err != nil {
		t.Fatal(err)
	}
	noise := storetest.NewMarket(t, s) // other names, numbers and addresses
	storetest.Exec(t, s, `UPDATE users SET first_name = 'Wanjiru', last_name = 'O''Brien_Kamau%' WHERE id = ANY (ARRAY[$1, $2]::uuid[])`,
		noise.Customer.ID, noise.Vendor.ID)
	storetest.Exec(t, s, `UPDATE users SET phone_number = $2, phone_proven_at = now() WHERE id = $1`, noise.Customer.ID, otherPhone)
	other, err := storetest.OpenOrder(ctx, s, exchange.OrderRequest{
		ID: uuid.MustParse("0aaaaaaa-aaaa-7aaa-aaaa-aaaaaaaaaaaa"), CustomerID: noise.Customer.ID, OfferID: noise.Offer.ID, Crypto: money.Must(money.USDT, "6"),
	}, storetest.PrincipalOf(noise.Customer))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, query string
		want        *exchange.Order
	}{
		{"id", o.ID.String(), &o},
		{"id in capitals", strings.ToUpper(o.ID.String()), &o},
		{"receipt", o.MomoReceipt, &o},
		{"receipt in small letters", strings.ToLower(o.MomoReceipt), &o},
		{"beginning of a receipt", o.MomoReceipt[:8], &o},
		{"hash", tx.TxID, &o},
		{"hash with 0x", "0x" + tx.TxID, &o},
		{"beginning of a hash", tx.TxID[:20], &o},
		{"phone as stored", phone, &o},
		{"phone as written", "0" + phone[3:6] + " " + phone[6:9] + "-" + phone[9:], &o},
		{"phone with plus", "+" + phone, &o},
		{"end of a phone", phone[4:], &o},
		{"address", m.CustomerWallet.Address, &o},
		{"e-mail", strings.ToUpper(m.Customer.Email), &o},
		{"first name", "amina", &o},
		{"full name", "Amina Otieno", &o},
		{"name the other way round", "otieno ami", &o},
		{"part of a name", "tien", &o},
		{"three letters", "ami", &o},
		{"three digits of a phone", phone[9:], &o},
		{"another name", "WANJIRU", &other},
		{"an apostrophe", "o'brien", &other},
		{"a percent sign means itself", "kamau%", &other},
		{"an underscore means itself", "brien_kam", &other},
		{"a wildcard finds nothing", "%%%%", nil},
		{"an underscore is no wildcard", "am_na", nil},
		{"a backslash", `\\\\`, nil},
		{"nothing like it", "zzqqxxkk", nil},
		{"an injection", "'; DROP TABLE orders; --", nil},
	} {
		got, total, err := s.SearchOrders(ctx, store.Everything(), c.query, store.Page{Number: 1, Size: 10})
		switch {
		case err != nil:
			t.Errorf("%s %q: %v", c.what, c.query, err)
		case c.want == nil && (len(got) != 0 || total != 0):
			t.Errorf("%s %q finds %d of %d", c.what, c.query, len(got), total)
		case c.want != nil && (len(got) != 1 || total != 1 || got[0].ID != c.want.ID):
			t.Errorf("%s %q finds %d of %d", c.what, c.query, len(got), total)
		}
	}
	for _, bad := range []string{"", "   ", "a\x00b", "\xff\xfe", strings.Repeat("x", store.MaxSearchQuery+1)} {
		_, _, err := s.SearchOrders(ctx, store.Everything(), bad, store.Page{Number: 1, Size: 10})
		wantFault(t, err, exchange.CodeInvalid)
		if fieldOf(err) != "query/query" {
			t.Errorf("%q: %v names %q", bad, err, fieldOf(err))
		}
	}
}

func TestSearchPagesNewestFirst(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	m := storetest.NewMarket(t, s)
	var orders []exchange.Order
	for range 5 {
		c.advance(time.Second)
		orders = append(orders, m.Order(t, s, "5"))
	}
	v := store.ViewOf(storetest.PrincipalOf(m.Customer), exchange.ActReadOrders)
	for _, q := range []string{"Amina", "ami"} {
		page, total, err := s.SearchOrders(t.Context(), v, q, store.Page{Number: 2, Size: 2})
		if err != nil || total != 5 || len(page) != 2 || page[0].ID != orders[2].ID || page[1].ID != orders[1].ID {
			t.Errorf("%q: %d of %d, %v", q, len(page), total, err)
		}
		if page, total, err := s.SearchOrders(t.Context(), v, q, store.Page{Number: 9, Size: 2}); err != nil || total != 5 || len(page) != 0 {
			t.Errorf("%q beyond the end: %d of %d, %v", q, len(page), total, err)
		}
	}
}

// A merchant sees masked phone numbers, and can't learn the rest by searching: only full numbers are found.
func TestMerchantsFindWholeNumbersOnly(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o := m.Order(t, s, "10")
	phone := m.Customer.PhoneNumber.Digits()
	v := store.ViewOf(storetest.PrincipalOf(m.Vendor), exchange.ActReadOrders)
	for query, found := range map[string]bool{
		phone: true, "+" + phone: true, "0" + phone[3:]: true,
		phone[:11]: false, phone[4:]: false, phone[5:]: false,
	} {
		got, total, err := s.SearchOrders(ctx, v, query, store.Page{Number: 1, Size: 10})
		if err != nil || (total == 1) != found || (found && got[0].ID != o.ID) {
			t.Errorf("%q finds %d, %v", query, total, err)
		}
	}
}

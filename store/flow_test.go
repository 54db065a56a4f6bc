package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func kes(s string) money.Amount  { return money.Must(money.KES, s) }
func usdt(s string) money.Amount { return money.Must(money.USDT, s) }
func trx(s string) money.Amount  { return money.Must(money.TRX, s) }

// twice runs a method of the store two times and expects the same result: every method may be repeated.
func twice[T any](t *testing.T, same func(a, b T) bool, f func() (T, error)) T {
	t.Helper()
	first, err := f()
	if err != nil {
		t.Fatal(err)
	}
	second, err := f()
	if err != nil {
		t.Fatalf("repeated: %v", err)
	}
	if !same(first, second) {
		t.Fatalf("repeated:\n got %+v\nwant %+v", second, first)
	}
	return first
}

func wantFault(t *testing.T, err error, code exchange.Code) {
	t.Helper()
	if exchange.CodeOf(err) != code {
		t.Fatalf("got %v, want code %q", err, code)
	}
}

func wantBalance(t *testing.T, s *store.Store, ref exchange.AccountRef, posted, held string) {
	t.Helper()
	a, err := s.Account(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Posted.Equal(money.Must(ref.Asset, posted)) || !a.Held.Equal(money.Must(ref.Asset, held)) {
		t.Errorf("%s has %s posted and %s held, want %s and %s", ref.Code(), a.Posted, a.Held, posted, held)
	}
}

// wantBooks checks the invariants of the books.
func wantBooks(t *testing.T, s *store.Store) {
	t.Helper()
	for _, c := range []struct{ what, query string }{
		{"entries that are off", `SELECT count(*) FROM (SELECT l.entry_id, a.asset FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id
			GROUP BY 1, 2 HAVING sum(l.amount) <> 0) x`},
		{"balances that differ from their lines", `SELECT count(*) FROM ledger_accounts a WHERE posted <> coalesce((SELECT sum(CASE WHEN a.debit_normal
			THEN l.amount ELSE -l.amount END) FROM ledger_lines l WHERE l.account_id = a.id), 0)`},
		{"reservations that differ from their holds", `SELECT count(*) FROM ledger_accounts a WHERE held <> coalesce((SELECT sum(h.amount) FROM holds h
			WHERE h.account_id = a.id AND h.status = 'held'), 0)`},
		{"accounts below zero", `SELECT count(*) FROM ledger_accounts WHERE NOT may_go_below AND posted < held`},
		{"gaps in the events of an object", `SELECT count(*) FROM (SELECT max(sequence) - count(*) AS gap FROM events GROUP BY object_type, object_id) x WHERE gap <> 0`},
		{"ended orders that still reserve money", `SELECT count(*) FROM orders o JOIN holds h ON h.id = o.hold_id WHERE h.status = 'held'
			AND o.status IN ('completed', 'cancelled', 'failed') AND NOT EXISTS (SELECT FROM refunds r JOIN payment_attempts a ON a.object_id = o.id AND a.direction = 'payout'
			WHERE r.order_id = o.id AND r.exception_id IS NULL AND r.status <> 'completed')`},
		{"refunds beyond their collection", `SELECT count(*) FROM collections c WHERE refunded > amount OR refunded <> coalesce((SELECT sum(amount) FROM refunds
			WHERE collection = c.receipt), 0)`},
	} {
		var n int
		if err := storetest.Owner(t, s).QueryRowContext(t.Context(), c.query).Scan(&n); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if n != 0 {
			t.Errorf("%d %s", n, c.what)
		}
	}
}

func sameOrder(a, b exchange.Order) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version && a.StatusDetail == b.StatusDetail
}

func samePayment(a, b exchange.ChainPayment) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version
}

func sameRefund(a, b exchange.Refund) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version && a.Receipt == b.Receipt
}

// sign stores a transaction for a payment.
func sign(t *testing.T, s *store.Store, p exchange.ChainPayment) exchange.ChainAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a, err := s.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func txID(id uuid.UUID) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 64)
	for range 4 {
		for _, c := range id {
			if len(b) < 64 {
				b = append(b, digits[c>>4], digits[c&15])
			}
		}
	}
	return string(b)
}

// paid opens and pays an order of 10 USDT for 1295 shillings.
func paid(t *testing.T, s *store.Store, m storetest.Market) (exchange.Order, exchange.ChainPayment) {
	t.Helper()
	o := m.Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	out, err := s.AcceptPayment(t.Context(), a.ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Order, out.ChainPayment
}

func TestOnRampFromOfferToCompletion(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	balance := exchange.Owned(exchange.AccWalletBalance, m.VendorWallet.ID, money.USDT)
	wantBalance(t, s, balance, "1500", "1000")

	request := exchange.OrderRequest{ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10.123456")}
	order := twice(t, sameOrder, func() (exchange.Order, error) {
		return storetest.OpenOrder(ctx, s, request, storetest.PrincipalOf(m.Customer))
	})
	if order.Price.Fiat.String() != "1311.00" || order.Price.Vendor.String() != "1310.98" || order.WalletAddress != m.CustomerWallet.Address {
		t.Errorf("opened %+v", order)
	}
	offer, err := s.Offer(ctx, store.Everything(), m.Offer.ID)
	if err != nil || offer.Available.String() != "989.876544" {
		t.Errorf("the offer has %s left, %v", offer.Available, err)
	}
	wantBalance(t, s, balance, "1500", "1000")

	a := storetest.Attempt(t, s, order)
	obs := storetest.Paid(t, order.Price.Fiat)
	first, err := s.AcceptPayment(ctx, a.ID, obs, time.Time{})
	if err != nil || first.Kind != exchange.PaidExact || first.Order.Status != exchange.OrderProcessing {
		t.Fatalf("accepted %+v, %v", first, err)
	}
	again, err := s.AcceptPayment(ctx, a.ID, obs, time.Time{})
	if err != nil || again.Kind != exchange.PaidKnown || !samePayment(again.ChainPayment, first.ChainPayment) || !sameOrder(again.Order, first.Order) {
		t.Fatalf("accepted again %+v, %v", again, err)
	}
	p := first.ChainPayment
	if p.IntentHash != p.Intent() || p.FromAddress != m.VendorWallet.Address || p.ToAddress != m.CustomerWallet.Address {
		t.Errorf("approved %+v", p)
	}
	wantBalance(t, s, exchange.House(exchange.AccOrdersInFlight, money.KES), "1311", "0")

	_, err = s.CompleteOrder(ctx, order.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	tx := sign(t, s, p)
	if other := sign(t, s, p); other.ID != tx.ID {
		t.Errorf("a second transaction was signed while the first is alive")
	}
	if _, err := s.RecordBroadcast(ctx, tx.ID, "SUCCESS", true); err != nil {
		t.Fatal(err)
	}
	twice(t, samePayment, func() (exchange.ChainPayment, error) { return s.RecordIncluded(ctx, tx.ID, 100, "aa") })
	twice(t, samePayment, func() (exchange.ChainPayment, error) {
		return s.RecordFinal(ctx, tx.ID, true, 100, "aa", trx("13.5"), "SUCCESS")
	})
	done := twice(t, sameOrder, func() (exchange.Order, error) { return s.CompleteOrder(ctx, order.ID) })
	if done.Status != exchange.OrderCompleted || done.TxHash != tx.TxID || done.CompletedAt.IsZero() || done.MomoReceipt != obs.Receipt {
		t.Errorf("completed %+v", done)
	}
	wantBalance(t, s, balance, "1489.876544", "989.876544")
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.USDT), "1489.876544", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, m.CustomerWallet.ID, money.USDT), "10.123456", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.CustomerWallet.ID, money.USDT), "10.123456", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.TRX), "986.5", "0")
	wantBalance(t, s, exchange.House(exchange.AccNetworkFees, money.TRX), "13.5", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccFiatBalance, m.Vendor.ID, money.KES), "1310.98", "0")
	wantBalance(t, s, exchange.House(exchange.AccRounding, money.KES), "0.02", "0")
	wantBalance(t, s, exchange.House(exchange.AccOrdersInFlight, money.KES), "0", "0")
	wantBalance(t, s, exchange.House(exchange.AccMomoCollection, money.KES), "1311", "0")
	wantBooks(t, s)
}

// TestOrdersToWalletsOfOurs: bought crypto must reach a customer, so neither the paying wallet nor one of the house's
// is a destination, and payments to external addresses leave our books.
func TestOrdersToWalletsOfOurs(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	id := storetest.NewID(t)
	house, err := storetest.CreateWallet(ctx, s, exchange.WalletRequest{
		ID: id, OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas, Network: exchange.Tron, Asset: money.USDT, Type: exchange.Hot,
	}, "Thouse0000000000000000000000000000", exchange.SealedKey{WalletID: id, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"})
	if err != nil {
		t.Fatal(err)
	}
	open := func(address string) error {
		_, err := storetest.OpenOrder(ctx, s, exchange.OrderRequest{
			ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), WalletAddress: address,
		}, storetest.PrincipalOf(m.Customer))
		return err
	}
	for name, address := range map[string]string{"the paying wallet": m.VendorWallet.Address, "the house's gas wallet": house.Address} {
		if err := open(address); exchange.CodeOf(err) != exchange.CodeInvalid || fieldOf(err) != "/wallet_address" {
			t.Errorf("%s as destination: %v", name, err)
		}
	}
	for _, address := range []string{m.CustomerWallet.Address, "Toutside00000000000000000000000000"} {
		if err := open(address); err != nil {
			t.Errorf("%s as destination: %v", address, err)
		}
	}
}

// Buying crypto does not bypass the deny list: a listed address is refused before any payment, and one listed since is
// not signed for. A signed transaction can still be replaced with a higher fee.
func TestOrdersToDeniedAddresses(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	const early, late = "Tdenied000000000000000000000000000", "Tlater0000000000000000000000000000"
	deny := func(address string) {
		t.Helper()
		admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
		d := exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: address, Reason: "court order"}
		if _, err := s.Deny(ctx, d, admin); err != nil {
			t.Fatal(err)
		}
	}
	open := func(address string) (exchange.Order, error) {
		return storetest.OpenOrder(ctx, s, exchange.OrderRequest{
			ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), WalletAddress: address,
		}, storetest.PrincipalOf(m.Customer))
	}
	pay := func(address string) exchange.ChainPayment {
		t.Helper()
		o, err := open(address)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.AcceptPayment(ctx, storetest.Attempt(t, s, o).ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return out.ChainPayment
	}
	deny(early)
	if _, err := open(early); exchange.CodeOf(err) != exchange.CodeInvalid || fieldOf(err) != "/wallet_address" {
		t.Errorf("a denied address as destination: %v", err)
	}
	signed, waiting, inside := pay(late), pay(late), pay(m.CustomerWallet.Address)
	if err := s.RecordRecipient(ctx, signed.ID, clear1); err != nil {
		t.Fatal(err)
	}
	sign(t, s, signed)
	deny(late)
	deny(m.CustomerWallet.Address)
	_, _, err := s.PaymentForSigning(ctx, waiting.ID)
	wantFault(t, err, exchange.CodeForbidden)
	for name, p := range map[string]exchange.ChainPayment{"signed before": signed, "within our custody": inside} {
		if _, _, err := s.PaymentForSigning(ctx, p.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, _, err := s.RefundOrder(ctx, waiting.ObjectID, "its recipient was denied", storetest.By)
	if err != nil || o.Status != exchange.OrderFailed {
		t.Errorf("the order is %s, %v; want its price given back", o.Status, err)
	}
	wantBooks(t, s)
}

// A reverted transaction may be retried. One that was carried out without making the payment may have moved the money
// all the same.
func TestOnlyWhatMovedNothingIsTriedAgain(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]exchange.Code{"REVERT": "", "SUCCESS": exchange.CodeStateConflict} {
		s := storetest.New(t)
		_, p := paid(t, s, storetest.NewMarket(t, s))
		tx := sign(t, s, p)
		if _, err := s.RecordFinal(t.Context(), tx.ID, false, 7, "block", trx("1"), code); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RetryChainPayment(t.Context(), p.ID, storetest.By); exchange.CodeOf(err) != want {
			t.Errorf("after %s: %v", code, err)
		}
	}
}

// fieldOf is the pointer of the first field that an error names.
func fieldOf(err error) string {
	own, ok := errors.AsType[*exchange.Error](err)
	if !ok || len(own.Fields) == 0 {
		return ""
	}
	return own.Fields[0].Pointer
}

package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// AgreeValuations sets each coin's agreed value to its valuation, bypassing the guard, so that the house buys. A fresh
// database has no agreed values.
func AgreeValuations(t testing.TB, s *store.Store) {
	t.Helper()
	Exec(t, s, `BEGIN; ALTER TABLE valuations DISABLE TRIGGER valuations_agreed; UPDATE valuations SET agreed = rate;
		ALTER TABLE valuations ENABLE TRIGGER valuations_agreed; COMMIT`)
}

// By is the principal of seeded objects.
var By = exchange.System("test")

// NewID returns a new id.
func NewID(t testing.TB) uuid.UUID {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// User adds an active user of a role, with a unique address and number. For a subvendor use Subvendor.
func User(t testing.TB, s *store.Store, role exchange.Role) exchange.User {
	t.Helper()
	return addUser(t, s, exchange.User{Role: role})
}

// Subvendor adds a user that acts for a vendor.
func Subvendor(t testing.TB, s *store.Store, vendor exchange.User) exchange.User {
	t.Helper()
	return addUser(t, s, exchange.User{Role: exchange.RoleSubvendor, VendorID: vendor.ID})
}

// NewPhone returns a number that it has not returned before, so that no two users share one.
func NewPhone() exchange.Phone {
	return exchange.Phone(fmt.Sprintf("2547%d", 10_000_000+phones.Add(1)))
}

var phones atomic.Int64

func addUser(t testing.TB, s *store.Store, u exchange.User) exchange.User {
	t.Helper()
	u.ID = NewID(t)
	u.Email = u.ID.String() + "@example.com"
	u.PhoneNumber = NewPhone()
	u.FirstName, u.LastName, u.IsActive = "Amina", "Otieno", true
	u, err := AddUser(t, s, u, exchange.Credentials{PasswordHash: "not a hash"})
	if err != nil {
		t.Fatalf("seed a %s: %v", u.Role, err)
	}
	return u
}

// AddUser stores an active user of any role, whose address and number are proven. Staff need a second officer's
// confirmation (see Store.CreateUser); here the owner of the schema bypasses that guard, so that a test creates only the users
// that it is about.
func AddUser(t testing.TB, s *store.Store, u exchange.User, c exchange.Credentials) (exchange.User, error) {
	t.Helper()
	role := u.Role
	if role.Staff() {
		u.Role = exchange.RoleUser
	}
	u.EmailProvenAt, u.PhoneProvenAt = provenAt, provenAt
	u, err := s.CreateUser(t.Context(), u, c, By)
	if err != nil || !role.Staff() {
		return u, err
	}
	// The id is no external input, and several statements take no arguments.
	Exec(t, s, fmt.Sprintf(`BEGIN; ALTER TABLE users DISABLE TRIGGER users_staff_active; UPDATE users SET role = '%s' WHERE id = '%s';
		ALTER TABLE users ENABLE TRIGGER users_staff_active; COMMIT`, role, u.ID))
	u.Role = role
	return u, nil
}

// provenAt is when the addresses and numbers of seeded users were proven.
var provenAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Patch changes the house's limits with the confirmation of two admins, whom it creates if needed.
func Patch(t testing.TB, s *store.Store, p store.LimitPatch) {
	t.Helper()
	one := PrincipalOf(User(t, s, exchange.RoleAdmin))
	change, err := s.PatchLimits(t.Context(), p, one)
	if err == nil && change.ID != uuid.Nil {
		_, err = s.ConfirmChange(t.Context(), change.ID, "", PrincipalOf(User(t, s, exchange.RoleAdmin)))
	}
	if err != nil {
		t.Fatalf("change limits: %v", err)
	}
}

// PrincipalOf is the principal of a user, as in the API.
func PrincipalOf(u exchange.User) exchange.Principal {
	by := exchange.AssurancePassword
	if u.Role.Staff() {
		by = exchange.AssurancePasskey
	}
	return exchange.Principal{UserID: u.ID, Role: u.Role, VendorID: exchange.VendorOf(u), RequestID: "test", Assurance: by, SteppedUpAt: time.Now().UTC(), SteppedUpBy: by}
}

// Wallet adds a user's hot wallet on TRON, with an address that exists on no chain.
func Wallet(t testing.TB, s *store.Store, owner exchange.User) exchange.Wallet {
	t.Helper()
	return WalletOn(t, s, owner, exchange.Tron)
}

// WalletOn is Wallet on any network.
func WalletOn(t testing.TB, s *store.Store, owner exchange.User, n exchange.Network) exchange.Wallet {
	t.Helper()
	ownerType := exchange.OwnerCustomer
	switch owner.Role {
	case exchange.RoleVendor:
		ownerType = exchange.OwnerMerchant
	case exchange.RoleSubvendor:
		ownerType = exchange.OwnerSubMerchant
	case exchange.RoleCustomer, exchange.RoleUser, exchange.RoleAdmin, exchange.RoleOTCOfficer, exchange.RoleTreasury:
	}
	return addWallet(t, s, exchange.WalletRequest{
		OwnerType: ownerType, OwnerID: owner.ID, VendorID: exchange.VendorOf(owner), Network: n, Asset: money.USDT, Type: exchange.Hot,
		CreatedBy: owner.ID,
	})
}

// GasWallet adds the house's gas wallet of a network.
func GasWallet(t testing.TB, s *store.Store, n exchange.Network) exchange.Wallet {
	t.Helper()
	return addWallet(t, s, exchange.WalletRequest{
		OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas, Network: n, Asset: money.USDT, Type: exchange.Hot,
	})
}

func addWallet(t testing.TB, s *store.Store, r exchange.WalletRequest) exchange.Wallet {
	t.Helper()
	r.ID = NewID(t)
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	w, err := CreateWallet(t.Context(), s, r, "T"+hex.EncodeToString(b)+"x",
		exchange.SealedKey{WalletID: r.ID, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"})
	if err != nil {
		t.Fatalf("seed a wallet: %v", err)
	}
	return w
}

// Deposit books crypto into a wallet, in custody and owed to its owner.
func Deposit(t testing.TB, s *store.Store, wallet uuid.UUID, m money.Amount) {
	t.Helper()
	book(t, s, "deposit", exchange.Debit(exchange.Owned(exchange.AccCustody, wallet, m.Asset()), m),
		exchange.Credit(exchange.Owned(exchange.AccWalletBalance, wallet, m.Asset()), m))
}

// Gas books the house's coins for network fees into a wallet.
func Gas(t testing.TB, s *store.Store, wallet uuid.UUID, m money.Amount) {
	t.Helper()
	book(t, s, "gas", exchange.Debit(exchange.Owned(exchange.AccCustody, wallet, m.Asset()), m), exchange.Credit(exchange.House(exchange.AccCapital, m.Asset()), m))
}

// Float books shillings into the payout float.
func Float(t testing.TB, s *store.Store, m money.Amount) {
	t.Helper()
	book(t, s, "float", exchange.Debit(exchange.House(exchange.AccMomoPayout, m.Asset()), m), exchange.Credit(exchange.House(exchange.AccCapital, m.Asset()), m))
}

func book(t testing.TB, s *store.Store, kind string, lines ...exchange.Line) {
	t.Helper()
	err := s.Post(t.Context(), exchange.Posting{Entries: []exchange.Entry{{Key: "seed:" + NewID(t).String(), Kind: "seed." + kind, Lines: lines}}})
	if err != nil {
		t.Fatalf("seed %s: %v", kind, err)
	}
}

// Market is a vendor with a funded offer and a customer who can buy from it.
type Market struct {
	Vendor, Customer             exchange.User
	VendorWallet, CustomerWallet exchange.Wallet
	Offer                        exchange.Offer
}

// NewMarket seeds an active SELL offer of 1000 USDT on TRON at 129.50 KES, for orders of 5 to 500 USDT,
// with gas and payout float. The vendor's wallet holds 1500 USDT.
func NewMarket(t testing.TB, s *store.Store) Market {
	t.Helper()
	return NewMarketOn(t, s, exchange.Tron)
}

// NewMarketOn is NewMarket on any network.
func NewMarketOn(t testing.TB, s *store.Store, n exchange.Network) Market {
	t.Helper()
	m := NewMarketWith(t, s, n, func(owner exchange.User) exchange.Wallet { return WalletOn(t, s, owner, n) })
	Gas(t, s, m.VendorWallet.ID, money.Must(n.NativeCoin(), "1000"))
	return m
}

// NewMarketWith is NewMarketOn with wallets that the caller creates, and without gas.
func NewMarketWith(t testing.TB, s *store.Store, n exchange.Network, wallet func(exchange.User) exchange.Wallet) Market {
	t.Helper()
	m := Market{Vendor: User(t, s, exchange.RoleVendor), Customer: User(t, s, exchange.RoleCustomer)}
	m.VendorWallet, m.CustomerWallet = wallet(m.Vendor), wallet(m.Customer)
	Deposit(t, s, m.VendorWallet.ID, money.Must(money.USDT, "1500"))
	Float(t, s, money.Must(money.KES, "1000000"))
	by := PrincipalOf(m.Vendor)
	view := store.ViewOf(by, exchange.ActWriteOffers)
	offer, err := s.CreateOffer(t.Context(), exchange.Offer{
		ID: NewID(t), VendorID: m.Vendor.ID, CreatedBy: m.Vendor.ID, Type: exchange.OfferSell, Network: n, Asset: money.USDT,
		Total: money.Must(money.USDT, "1000"), Rate: decimal.RequireFromString("129.50"), MinOrder: money.Must(money.USDT, "5"),
		MaxOrder: money.Must(money.USDT, "500"),
	}, by)
	if err == nil {
		m.Offer, err = s.PublishOffer(t.Context(), view, offer.ID, by)
	}
	if err != nil {
		t.Fatalf("seed an offer: %v", err)
	}
	return m
}

// Order opens an order of crypto against the market's offer.
func (m Market) Order(t testing.TB, s *store.Store, crypto string) exchange.Order {
	t.Helper()
	o, err := OpenOrder(t.Context(), s, exchange.OrderRequest{
		ID: NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: money.Must(money.USDT, crypto),
	}, PrincipalOf(m.Customer))
	if err != nil {
		t.Fatalf("seed an order: %v", err)
	}
	return o
}

// Attempt begins a collection for an order, with a token, accepted by the provider.
func Attempt(t testing.TB, s *store.Store, o exchange.Order) exchange.PaymentAttempt {
	t.Helper()
	id := NewID(t)
	a, _, err := s.BeginCollection(t.Context(), exchange.OrderObject(o.ID), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", CallbackToken: "token-" + id.String(), WorkflowID: "on-ramp:" + o.ID.String(),
	})
	if err == nil {
		_, err = s.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{
			MerchantRequestID: "mr-" + id.String(), CheckoutRequestID: "ws_CO_" + id.String(),
		}})
	}
	if err != nil {
		t.Fatalf("seed a payment attempt: %v", err)
	}
	return a
}

// Paid is the observation of a payment with a fresh receipt.
func Paid(t testing.TB, m money.Amount) exchange.Observation {
	t.Helper()
	return exchange.Observation{State: exchange.SeenSucceeded, Code: "0", Receipt: Receipt(t), Amount: m, Source: exchange.SourceCallback}
}

// Listed stores a payment as a row of the provider's statement, without which none of another amount than was asked for counts.
func Listed(t testing.TB, s *store.Store, o exchange.Observation) exchange.Observation {
	t.Helper()
	row := o
	row.Source = exchange.SourceStatement
	if err := s.SaveReceipt(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	return o
}

// Receipt returns a receipt number in the provider's format: ten capital letters and digits.
func Receipt(t testing.TB) string {
	t.Helper()
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return strings.ToUpper(hex.EncodeToString(b))
}

// Agreed confirms what was proposed, as another officer. It takes the result of a proposal.
func Agreed(t testing.TB, s *store.Store) func(exchange.ControlChange, error) error {
	t.Helper()
	return func(c exchange.ControlChange, err error) error {
		t.Helper()
		if err != nil {
			return err
		}
		_, err = s.ConfirmChange(t.Context(), c.ID, "", PrincipalOf(User(t, s, exchange.RoleTreasury)))
		return err
	}
}

// Rested makes all destinations two days older. Rests are measured by the database's clock, which no test moves.
func Rested(t testing.TB, s *store.Store) {
	t.Helper()
	Exec(t, s, `ALTER TABLE releases DISABLE TRIGGER USER`)
	Exec(t, s, `UPDATE releases SET opened_at = opened_at - interval '2 days'`)
	Exec(t, s, `ALTER TABLE releases ENABLE TRIGGER USER`)
	Exec(t, s, `ALTER TABLE otc_destinations DISABLE TRIGGER USER`)
	Exec(t, s, `UPDATE otc_destinations SET confirmed_at = confirmed_at - interval '2 days'`)
	Exec(t, s, `ALTER TABLE otc_destinations ENABLE TRIGGER USER`)
}

// Earned books crypto into a wallet as a fee that the house earned there.
func Earned(t testing.TB, s *store.Store, wallet uuid.UUID, m money.Amount) {
	t.Helper()
	Deposit(t, s, wallet, m)
	if err := Earn(t.Context(), Owner(t, s), wallet, m); err != nil {
		t.Fatalf("seed a fee: %v", err)
	}
}

// The triggers take only a fee that a transfer paid, or what officers kept.
const earn = `BEGIN; SET LOCAL session_replication_role = replica;
INSERT INTO ledger_accounts (code, kind, owner_id, asset, debit_normal, may_go_below) VALUES ('wallet_fees:%[1]s:%[2]s', 'wallet_fees', '%[1]s', '%[2]s', false, false) ON CONFLICT DO NOTHING;
WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('seed:' || gen_random_uuid(), decode(repeat('00', 16), 'hex'), 'seed.fee', '', now()) RETURNING id)
INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.kind WHEN 'wallet_fees' THEN -%[3]s ELSE %[3]s END FROM e, ledger_accounts a
WHERE a.code IN ('wallet_fees:%[1]s:%[2]s', 'wallet_balance:%[1]s:%[2]s');
UPDATE ledger_accounts SET posted = posted + CASE kind WHEN 'wallet_fees' THEN %[3]s ELSE -%[3]s END WHERE code IN ('wallet_fees:%[1]s:%[2]s', 'wallet_balance:%[1]s:%[2]s');
COMMIT`

// Earn turns crypto of a wallet's owner into a fee that the house earned there, past the triggers: db logs in as the owner of the schema.
func Earn(ctx context.Context, db *sql.DB, wallet uuid.UUID, m money.Amount) error {
	_, err := db.ExecContext(ctx, fmt.Sprintf(earn, wallet, m.Asset(), m))
	return err
}

// EarnedShillings books shillings that the house earned.
func EarnedShillings(t testing.TB, s *store.Store, m money.Amount) {
	t.Helper()
	book(t, s, "fee", exchange.Debit(exchange.House(exchange.AccMomoCollection, m.Asset()), m), exchange.Credit(exchange.House(exchange.AccFees, m.Asset()), m))
}

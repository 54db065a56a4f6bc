package exchange_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// anID draws an id, or none.
func anID(t *rapid.T, name string) uuid.UUID {
	b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name)
	if b[0]%3 == 0 {
		return uuid.Nil
	}
	return uuid.UUID(b)
}

func aMoment(t *rapid.T, name string) time.Time {
	ms := rapid.Int64Range(0, 4_000_000_000_000).Draw(t, name)
	if ms%3 == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func anAmount(t *rapid.T, name string) money.Amount {
	asset := rapid.SampledFrom([]money.Asset{"", money.USDT, money.USDC, money.KES}).Draw(t, name+" asset")
	if asset == "" {
		return money.Amount{}
	}
	m, err := money.New(asset, decimal.New(rapid.Int64Range(0, 1_000_000_000_000).Draw(t, name), -asset.Scale()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func aTransfer(t *rapid.T) exchange.TransferRequest {
	return exchange.TransferRequest{
		ID: anID(t, "id"), RequestedBy: anID(t, "by"), WalletID: anID(t, "wallet"), Network: exchange.Network(rapid.SampledFrom([]string{"tron", "ethereum", ""}).Draw(t, "network")),
		Amount: anAmount(t, "amount"), Note: rapid.String().Draw(t, "note"), QuoteID: anID(t, "quote"),
		Recipient: exchange.Recipient{
			UserID: anID(t, "user"), WalletID: anID(t, "their wallet"), Email: rapid.String().Draw(t, "email"), Phone: rapid.String().Draw(t, "phone"),
			Address: rapid.String().Draw(t, "address"),
		},
	}
}

func anOrder(t *rapid.T) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: anID(t, "id"), CustomerID: anID(t, "customer"), OpenerID: anID(t, "opener"), OfferID: anID(t, "offer"), QuoteID: anID(t, "quote"),
		Crypto: anAmount(t, "crypto"), Fiat: anAmount(t, "fiat"), WalletAddress: rapid.String().Draw(t, "to"), RefundAddress: rapid.String().Draw(t, "back"),
		Phone: rapid.String().Draw(t, "phone"), ExpiresAt: aMoment(t, "until"), ExpectedRate: decimal.New(rapid.Int64Range(1, 1_000_000).Draw(t, "rate"), -3),
		Type: exchange.OrderType(rapid.String().Draw(t, "type")), Subtype: exchange.OrderSubtype(rapid.String().Draw(t, "subtype")),
		FundWalletID: anID(t, "fund"), PayoutMethod: rapid.String().Draw(t, "method"),
		Network: exchange.Network(rapid.String().Draw(t, "network")),
		Seen:    exchange.SeenOffer{Network: exchange.Tron, Asset: money.USDT, MerchantID: anID(t, "merchant")},
		Sender:  exchange.Sender{Name: rapid.String().Draw(t, "sender"), Country: rapid.String().Draw(t, "country"), Phone: rapid.String().Draw(t, "their phone")},
		Beneficiary: exchange.Beneficiary{
			AccountName: rapid.String().Draw(t, "payee"), AccountNumber: rapid.String().Draw(t, "account"), BankName: rapid.String().Draw(t, "bank"),
			BankCode: rapid.String().Draw(t, "code"), BankBranch: rapid.String().Draw(t, "branch"), BankAddress: rapid.String().Draw(t, "of the bank"),
			SwiftCode: rapid.String().Draw(t, "swift"),
		},
	}
}

func aWallet(t *rapid.T) exchange.WalletRequest {
	return exchange.WalletRequest{
		ID: anID(t, "id"), CreatedBy: anID(t, "by"), OwnerType: exchange.OwnerCustomer, OwnerID: anID(t, "owner"), VendorID: anID(t, "vendor"),
		Purpose: exchange.HousePurpose(rapid.SampledFrom([]string{"", "gas"}).Draw(t, "purpose")), Network: exchange.Solana, Asset: money.USDC,
		Type: exchange.Cold, Label: rapid.String().Draw(t, "label"), Default: rapid.Bool().Draw(t, "default"),
	}
}

func anIntent(t *rapid.T, kind exchange.IntentKind, object, by uuid.UUID, terms exchange.Terms) exchange.Intent {
	return exchange.Intent{
		ID: anID(t, "intent"), Kind: kind, ObjectID: object, Terms: terms, CreatedAt: aMoment(t, "created"), ExpiresAt: aMoment(t, "expires"),
		By: exchange.Principal{
			UserID: by, Role: exchange.RoleVendor, VendorID: anID(t, "acts for"), SessionID: anID(t, "session"), IP: rapid.String().Draw(t, "ip"),
			RequestID: rapid.String().Draw(t, "request"), Assurance: exchange.AssurancePIN, SteppedUpAt: aMoment(t, "stepped up"), SteppedUpBy: exchange.AssurancePIN,
		},
	}
}

// Whatever is asked for is read back from the statement as it was asked, and only the canonical statement is read.
func TestIntentsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		transfer, order, wallet := aTransfer(rt), anOrder(rt), aWallet(rt)
		asker := order.CustomerID
		if order.OpenerID != uuid.Nil {
			asker = order.OpenerID
		}
		signed := exchange.SignedOffline{Raw: rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(rt, "raw")}
		same(rt, anIntent(rt, exchange.IntendTransfer, transfer.ID, transfer.RequestedBy, transfer.Terms()), exchange.TransferRequestOf, transfer)
		same(rt, anIntent(rt, exchange.IntendSale, order.ID, asker, order.Terms()), exchange.OrderRequestOf, order)
		same(rt, anIntent(rt, exchange.IntendWallet, wallet.ID, wallet.CreatedBy, wallet.Terms()), exchange.WalletRequestOf, wallet)
		same(rt, anIntent(rt, exchange.IntendColdImport, uuid.New(), uuid.New(), signed.Terms()), exchange.SignedOfflineOf, signed)
	})
}

func same[R interface{ Terms() exchange.Terms }](t *rapid.T, i exchange.Intent, read func(exchange.Intent) (R, error), asked R) {
	statement := i.Statement()
	if !json.Valid(statement) {
		t.Fatalf("no JSON: %s", statement)
	}
	parsed, err := exchange.ParseIntent(statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if string(parsed.Statement()) != string(statement) || parsed.Digest() != i.Digest() {
		t.Fatalf("read again:\n got %s\nwant %s", parsed.Statement(), statement)
	}
	got, err := read(parsed)
	// Numbers are compared as they are written: 9.820 is 9.82.
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", asked) || !maps.Equal(got.Terms(), asked.Terms()) {
		t.Fatalf("read again (%v):\n got %+v\nwant %+v", err, got, asked)
	}
	loose := strings.Replace(string(statement), ",", ", ", 1)
	if _, err := exchange.ParseIntent([]byte(loose)); err == nil {
		t.Fatalf("a statement with a space between its members is read: %s", loose)
	}
}

// Whoever changes one term changes the digest.
func TestEveryTermIsInTheDigest(t *testing.T) {
	t.Parallel()
	base := exchange.TransferRequest{ID: uuid.New(), RequestedBy: uuid.New(), Network: exchange.Tron, Amount: money.Must(money.USDT, "10"), Recipient: exchange.Recipient{Address: "a"}}
	digest := func(i exchange.Intent) [sha256.Size]byte { return i.Digest() }
	i := exchange.Intent{ID: uuid.New(), Kind: exchange.IntendTransfer, ObjectID: base.ID, By: exchange.Principal{UserID: base.RequestedBy}, Terms: base.Terms()}
	seen := map[[sha256.Size]byte]string{digest(i): "nothing"}
	for what, change := range map[string]func(*exchange.Intent, *exchange.TransferRequest){
		"id": func(i *exchange.Intent, _ *exchange.TransferRequest) { i.ID = uuid.New() }, "kind": func(i *exchange.Intent, _ *exchange.TransferRequest) { i.Kind = exchange.IntendSale },
		"object":    func(i *exchange.Intent, _ *exchange.TransferRequest) { i.ObjectID = uuid.New() },
		"user":      func(i *exchange.Intent, _ *exchange.TransferRequest) { i.By.UserID = uuid.New() },
		"role":      func(i *exchange.Intent, _ *exchange.TransferRequest) { i.By.Role = exchange.RoleAdmin },
		"session":   func(i *exchange.Intent, _ *exchange.TransferRequest) { i.By.SessionID = uuid.New() },
		"assurance": func(i *exchange.Intent, _ *exchange.TransferRequest) { i.By.Assurance = exchange.AssurancePasskey },
		"proof":     func(i *exchange.Intent, _ *exchange.TransferRequest) { i.By.SteppedUpBy = exchange.AssurancePIN },
		"step-up":   func(i *exchange.Intent, _ *exchange.TransferRequest) { i.By.SteppedUpAt = time.UnixMilli(5) },
		"created":   func(i *exchange.Intent, _ *exchange.TransferRequest) { i.CreatedAt = time.UnixMilli(7) },
		"expires":   func(i *exchange.Intent, _ *exchange.TransferRequest) { i.ExpiresAt = time.UnixMilli(7) },
		"amount":    func(_ *exchange.Intent, r *exchange.TransferRequest) { r.Amount = money.Must(money.USDT, "11") },
		"asset":     func(_ *exchange.Intent, r *exchange.TransferRequest) { r.Amount = money.Must(money.USDC, "10") },
		"network":   func(_ *exchange.Intent, r *exchange.TransferRequest) { r.Network = exchange.Ethereum },
		"address":   func(_ *exchange.Intent, r *exchange.TransferRequest) { r.Recipient.Address = "b" },
		"email":     func(_ *exchange.Intent, r *exchange.TransferRequest) { r.Recipient = exchange.Recipient{Email: "a"} },
		"note":      func(_ *exchange.Intent, r *exchange.TransferRequest) { r.Note = "n" },
		"wallet":    func(_ *exchange.Intent, r *exchange.TransferRequest) { r.WalletID = uuid.New() },
		"quote":     func(_ *exchange.Intent, r *exchange.TransferRequest) { r.QuoteID = uuid.New() },
	} {
		j, r := i, base
		change(&j, &r)
		j.Terms = r.Terms()
		if other, found := seen[digest(j)]; found {
			t.Errorf("a change of %s has the digest of a change of %s", what, other)
		}
		seen[digest(j)] = what
	}
}

// The canonical form and the digest are promises to whoever signs intents: this one was computed apart from the code.
func TestAStatementHasItsKnownDigest(t *testing.T) {
	t.Parallel()
	i := exchange.Intent{
		ID: uuid.MustParse("00000000-0000-7000-8000-000000000001"), Kind: exchange.IntendTransferCancel, ObjectID: uuid.MustParse("00000000-0000-7000-8000-000000000002"),
		By:        exchange.Principal{UserID: uuid.MustParse("00000000-0000-7000-8000-000000000003"), IP: "192.0.2.1", Assurance: exchange.AssurancePassword},
		CreatedAt: time.UnixMilli(1_700_000_000_123), Terms: exchange.Terms{"note": "a\"\\\n\u0001\u2028é"},
	}
	const statement = `{"by":{"assurance":"password","ip":"192.0.2.1","user_id":"00000000-0000-7000-8000-000000000003"},"created_at":"2023-11-14T22:13:20.123Z",` +
		`"id":"00000000-0000-7000-8000-000000000001","kind":"transfer.cancel","object_id":"00000000-0000-7000-8000-000000000002","terms":{"note":"a\"\\\n\u0001` + "\u2028é" + `"}}`
	if string(i.Statement()) != statement {
		t.Errorf("got  %s\nwant %s", i.Statement(), statement)
	}
	digest := sha256.Sum256([]byte("kivuko intent v1\x00" + statement))
	if got := i.Digest(); got != digest {
		t.Errorf("the digest is %s, want %s", hex.EncodeToString(got[:]), hex.EncodeToString(digest[:]))
	}
}

// A term that a request does not have is refused, and so is an order for another caller than the one who asked.
func TestTermsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	i := exchange.Intent{Kind: exchange.IntendTransfer, Terms: exchange.Terms{"amount": "10 USDT", "unheard_of": "x"}}
	if _, err := exchange.TransferRequestOf(i); err == nil {
		t.Error("an unknown term is read over")
	}
	for _, bad := range []string{"10", "10 XYZ", "-10 USDT", "1e3 USDT", "10.0000001 USDT", " 10 USDT"} {
		if _, err := exchange.TransferRequestOf(exchange.Intent{Terms: exchange.Terms{"amount": bad}}); err == nil {
			t.Errorf("the amount %q is read", bad)
		}
	}
	r := exchange.OrderRequest{CustomerID: uuid.New()}
	if _, err := exchange.OrderRequestOf(exchange.Intent{By: exchange.Principal{UserID: uuid.New()}, Terms: r.Terms()}); err == nil {
		t.Error("an order is opened for another caller")
	}
}

// A field that is added to a request must be a term, or else the flow would not learn of it. The exceptions stand elsewhere in
// the intent, or are no part of what is asked.
func TestEveryFieldOfARequestIsATerm(t *testing.T) {
	t.Parallel()
	elsewhere := []string{"TransferRequest.ID", "TransferRequest.RequestedBy", "OrderRequest.ID", "OrderRequest.Provider", "WalletRequest.ID", "WalletRequest.CreatedBy"}
	var transfer exchange.TransferRequest
	var order exchange.OrderRequest
	var wallet exchange.WalletRequest
	for _, r := range []struct {
		request any
		terms   func() exchange.Terms
	}{{&transfer, func() exchange.Terms { return transfer.Terms() }}, {&order, func() exchange.Terms { return order.Terms() }}, {&wallet, func() exchange.Terms { return wallet.Terms() }}} {
		v := reflect.ValueOf(r.request).Elem()
		leaves(t, v.Type().Name(), v, func(path string, leaf reflect.Value) {
			fill(t, path, leaf)
			if is := len(r.terms()) == 1; is == slices.Contains(elsewhere, path) {
				t.Errorf("%s is a term: %t", path, is)
			}
			leaf.SetZero()
		})
	}
}

// leaves visits the fields of a struct and of the plain structs in it.
func leaves(t *testing.T, path string, v reflect.Value, visit func(string, reflect.Value)) {
	t.Helper()
	for i := range v.NumField() {
		f, name := v.Field(i), path+"."+v.Type().Field(i).Name
		switch f.Interface().(type) {
		case exchange.Recipient, exchange.SeenOffer, exchange.Sender, exchange.Beneficiary:
			leaves(t, name, f, visit)
		default:
			visit(name, f)
		}
	}
}

// fill gives a field a value.
func fill(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case uuid.UUID:
		v.Set(reflect.ValueOf(uuid.New()))
	case money.Amount:
		v.Set(reflect.ValueOf(money.Must(money.USDT, "1")))
	case *money.Amount:
		none := money.Zero(money.USDT)
		v.Set(reflect.ValueOf(&none))
	case decimal.Decimal:
		v.Set(reflect.ValueOf(decimal.NewFromInt(3)))
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(1)))
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("%s has a kind of field that intents can't write yet", path)
		}
	}
}

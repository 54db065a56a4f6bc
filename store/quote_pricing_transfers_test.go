package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// pricedSender is a bureau with a customer who sends.
type pricedSender struct {
	bureau
	purse
}

func newPricedSender(t *testing.T, balance string) pricedSender {
	t.Helper()
	b := newBureau(t)
	return pricedSender{b, newPurseIn(t, b.Store, balance)}
}

// send opens a transfer to the other customer, or to an external address.
func (k pricedSender) send(t *testing.T, amount string, quote uuid.UUID, away bool) (exchange.Transfer, error) {
	t.Helper()
	to := exchange.Recipient{UserID: k.other.ID}
	if away {
		to = exchange.Recipient{Address: outside}
	}
	r := k.request(t, amount, to)
	r.QuoteID = quote
	return storetest.OpenTransfer(t.Context(), k.Store, r, storetest.PrincipalOf(k.sender))
}

func (k pricedSender) sent(t *testing.T, amount string, quote uuid.UUID, away bool) exchange.Transfer {
	t.Helper()
	f, err := k.send(t, amount, quote, away)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func fees(a money.Asset) exchange.AccountRef { return exchange.House(exchange.AccFees, a) }

// An amount's value follows the newest rate while it is fresh, and the valuation otherwise.
func TestValuationsFollowTheRate(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	value := func(want, rate string) {
		t.Helper()
		if f := k.sent(t, "1.5", uuid.Nil, true); f.Value.String() != want || f.Rate.String() != rate {
			t.Errorf("counts as %s at %s, want %s at %s", f.Value, f.Rate, want, rate)
		}
	}
	value("225.00", "150")
	k.rate(t, "128.9", "129.1")
	value("193.50", "129")
	k.rate(t, "128.900001", "129.1")
	value("193.51", "129.000001") // the middle, and the shillings, rounded up
	k.time.advance(time.Hour)
	value("225.00", "150") // stale
	k.rate(t, "128.9", "129.1")
	k.time.advance(time.Second)
	agreedRate(t, k.Store, k.entry(t, "90", "91"), k.admin)
	value("168.75", "112.5") // a rate alone does not open the limits
	storetest.Exec(t, k.Store, `DELETE FROM valuations`)
	value("135.75", "90.5")
	k.time.advance(time.Hour)
	_, err := k.send(t, "1", uuid.Nil, true)
	wantFault(t, err, exchange.CodeStateConflict)
	wantTransfers(t, k.Store)
}

func TestTransfersUseQuotesOnce(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	ctx := t.Context()
	k.rate(t, "128.9", "129.1")
	k.fees(t, "0.25", 100, 100)
	q := k.quote(t, "10", k.sender)
	k.fees(t, "5", 0, 0) // what was promised counts
	r := k.request(t, "10", exchange.Recipient{UserID: k.other.ID})
	r.QuoteID = q.ID
	f := twice(t, sameTransfer, func() (exchange.Transfer, error) {
		return storetest.OpenTransfer(ctx, k.Store, r, storetest.PrincipalOf(k.sender))
	})
	if f.QuoteID != q.ID || !f.QuotedFiat.Equal(q.Price.Fiat) || !f.QuotedRate.Equal(q.Price.Rate) || f.Fee.String() != "0.350000" || f.FeeProfileID != q.Terms.Profile.ID {
		t.Errorf("opened %+v", f)
	}
	// Officers and limits go by this value, never by the quote.
	if f.Value.String() != "1290.00" || f.Rate.String() != "129" {
		t.Errorf("counts as %s at %s", f.Value, f.Rate)
	}
	wantBalance(t, k.Store, k.balance(), "100", "10.35")
	used := k.status(t, q.ID, exchange.QuoteConsumed)
	if used.ObjectType != "transfer" || used.ObjectID != f.ID || used.ConsumedAt.IsZero() {
		t.Errorf("consumed by %s %s", used.ObjectType, used.ObjectID)
	}
	_, err := k.send(t, "10", q.ID, false)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := storetest.CancelTransfer(ctx, k.Store, f.ID, storetest.PrincipalOf(k.sender)); err != nil {
		t.Fatal(err)
	}
	_, err = k.send(t, "10", q.ID, false) // also after the transfer came to nothing
	wantFault(t, err, exchange.CodeStateConflict)
	// Without a quote the highest version that has begun applies.
	later := exchange.ZeroProfile(exchange.FeeTransfer, money.USDT)
	later.ID, later.Fixed, later.ValidFrom = storetest.NewID(t), usdt("9"), k.time.now().Add(time.Hour)
	if err := k.agreed(t, later, k.admin); err != nil {
		t.Fatal(err)
	}
	if f := k.sent(t, "1", uuid.Nil, false); f.Fee.String() != "5.000000" {
		t.Errorf("charged %s", f.Fee)
	}
	wantTransfers(t, k.Store)
}

func TestRaceQuotesAreUsedOnce(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	k.rate(t, "129", "129")
	second := storetest.Open(t, k.url, store.Options{Now: k.time.now})
	stores := []*store.Store{k.Store, second}
	q := k.quote(t, "1", k.sender)
	requests := make([]exchange.TransferRequest, 10)
	for i := range requests {
		requests[i] = k.request(t, "1", exchange.Recipient{UserID: k.other.ID})
		requests[i].QuoteID = q.ID
	}
	codes := atOnce(len(requests), func(i int) error {
		_, err := storetest.OpenTransfer(t.Context(), stores[i%2], requests[i], storetest.PrincipalOf(k.sender))
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeStateConflict] != len(requests)-1 {
		t.Errorf("outcomes %v", codes)
	}
	wantBalance(t, k.Store, k.balance(), "100", "1")
	wantTransfers(t, k.Store)
}

// A transfer that is refused leaves its quote as it was.
func TestRefusedTransfersUseNoQuote(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "10.2")
	k.rate(t, "129", "129")
	k.fees(t, "0.25", 0, 0)
	q := k.quote(t, "10", k.sender)
	_, err := k.send(t, "10", q.ID, true)
	wantFault(t, err, exchange.CodeInsufficientFunds) // for the fee
	k.status(t, q.ID, exchange.QuoteActive)
	_, err = k.send(t, "9", q.ID, true)
	wantFault(t, err, exchange.CodeInvalid)
	foreign := k.quote(t, "1", k.other)
	_, err = k.send(t, "1", foreign.ID, true)
	wantFault(t, err, exchange.CodeInvalid)
	_, err = k.send(t, "1", storetest.NewID(t), true)
	wantFault(t, err, exchange.CodeInvalid)
	if _, err := k.PatchLimits(t.Context(), store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{
		exchange.RoleCustomer: {PerTransaction: kes("1"), PerDay: kes("1"), PerMonth: kes("1")},
	}}, exchange.System("test")); err != nil {
		t.Fatal(err)
	}
	small := k.quote(t, "1", k.sender)
	_, err = k.send(t, "1", small.ID, true)
	wantFault(t, err, exchange.CodeLimitReached)
	k.status(t, small.ID, exchange.QuoteActive)
	k.time.advance(exchange.QuoteLife)
	_, err = k.send(t, "10", q.ID, true)
	wantFault(t, err, exchange.CodeExpired)
	if n, err := k.ExpireQuotes(t.Context(), 100); err != nil || n != 3 {
		t.Errorf("%d expired, %v", n, err)
	}
	_, err = k.send(t, "10", q.ID, true)
	wantFault(t, err, exchange.CodeExpired)
	wantBalance(t, k.Store, k.balance(), "10.2", "0")
	wantTransfers(t, k.Store)
}

// A fee is held with the amount and taken once, when the transfer completes, as a separate posting. The crypto stays
// where it is.
func TestFeesAreTakenAtCompletion(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	p := k.fees(t, "0.25", 100, 0)
	f := k.sent(t, "40", uuid.Nil, false)
	if f.Fee.String() != "0.650000" || f.FeeProfileID != p.ID || f.Digest != f.Intent() {
		t.Errorf("opened %+v", f)
	}
	wantBalance(t, k.Store, k.balance(), "100", "40.65")
	f = twice(t, sameTransfer, func() (exchange.Transfer, error) { return k.AdvanceTransfer(t.Context(), f.ID) })
	k.carry(t, f)
	wantBalance(t, k.Store, k.balance(), "59.35", "0")
	wantBalance(t, k.Store, walletFees(k.wallet), "0.65", "0")
	wantBalance(t, k.Store, exchange.Owned(exchange.AccCustody, k.wallet.ID, money.USDT), "60", "0")
	wantBalance(t, k.Store, exchange.Owned(exchange.AccWalletBalance, k.theirs.ID, money.USDT), "40", "0")
	entries, err := k.ListEntries(t.Context(), store.EntryFilter{ObjectID: f.ID}, 10)
	if err != nil || len(entries) != 1 || entries[0].Entry.Kind != "transfer.fee" {
		t.Errorf("entries %+v, %v", entries, err)
	}
	wantTransfers(t, k.Store)
}

// When a transfer ends without moving anything, its fee is freed.
func TestFeesOfTransfersThatEndAreFree(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	k.fees(t, "0.25", 0, 0)
	ctx, by := t.Context(), storetest.PrincipalOf(k.officers[0])
	giveUp := func(f exchange.Transfer) (exchange.Transfer, error) { return k.GiveUpTransfer(ctx, f.ID, by) }
	for name, c := range map[string]struct {
		away bool
		way  func(exchange.Transfer) (exchange.Transfer, error)
		end  func(exchange.Transfer) (exchange.Transfer, error)
	}{
		"cancelled": {end: func(f exchange.Transfer) (exchange.Transfer, error) {
			return storetest.CancelTransfer(ctx, k.Store, f.ID, storetest.PrincipalOf(k.sender))
		}},
		"given up": {way: func(f exchange.Transfer) (exchange.Transfer, error) { return k.AdvanceTransfer(ctx, f.ID) }, end: giveUp},
		"blocked and released": {away: true, way: func(f exchange.Transfer) (exchange.Transfer, error) {
			if _, err := k.AdvanceTransfer(ctx, f.ID); err != nil {
				return f, err
			}
			return k.RecordScreening(ctx, f.ID, []exchange.Screening{{Screener: "x", Verdict: exchange.VerdictHit}})
		}, end: giveUp},
	} {
		t.Log(name)
		f := k.sent(t, "1", uuid.Nil, c.away)
		if c.way != nil {
			if _, err := c.way(f); err != nil {
				t.Fatal(err)
			}
		}
		wantBalance(t, k.Store, k.balance(), "100", "1.25")
		twice(t, sameTransfer, func() (exchange.Transfer, error) { return c.end(f) })
		wantBalance(t, k.Store, k.balance(), "100", "0")
	}
	wantTransfers(t, k.Store)
}

// The house's own transfers have no fee, and without a profile no transfer has one.
func TestWhoPaysNoFee(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	if f := k.sent(t, "1", uuid.Nil, false); !f.Fee.IsZero() || f.FeeHoldID != uuid.Nil || f.FeeProfileID != uuid.Nil {
		t.Errorf("charged %s without a profile", f.Fee)
	}
	k.fees(t, "0.25", 0, 0)
	treasury := houseWallet(t, k.Store, exchange.HouseTreasury)
	storetest.Deposit(t, k.Store, treasury.ID, usdt("5"))
	r := k.request(t, "1", exchange.Recipient{UserID: k.other.ID})
	r.RequestedBy, r.WalletID = k.officers[0].ID, treasury.ID
	if f, err := storetest.OpenTransfer(t.Context(), k.Store, r, storetest.PrincipalOf(k.officers[0])); err != nil || !f.Fee.IsZero() {
		t.Errorf("the house pays %s, %v", f.Fee, err)
	}
}

// The database refuses to complete a transfer without taking its fee, or to end it otherwise while the fee is held.
func TestDatabaseGuardsFeesOfTransfers(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	ctx := t.Context()
	k.rate(t, "129", "129")
	k.fees(t, "0.25", 0, 0)
	f := k.sent(t, "1", uuid.Nil, false)
	db := storetest.Owner(t, k.Store)
	id := "'" + f.ID.String() + "'"
	for query, want := range map[string]string{
		`UPDATE transfers SET fee = 0.2 WHERE id = ` + id:                       "KV002",
		`UPDATE transfers SET fee_hold_id = gen_random_uuid() WHERE id = ` + id: "KV002",
		`UPDATE transfers SET fx_quote_id = gen_random_uuid() WHERE id = ` + id: "KV002",
		`UPDATE transfers SET status = 'cancelled' WHERE id = ` + id:            "KV001", // the hold stays
		`ALTER TABLE transfers DISABLE TRIGGER transfers_way; ALTER TABLE transfers DISABLE TRIGGER transfers_moves;
			UPDATE transfers SET status = 'completed', tx_hash = 'x', completed_at = now() WHERE id = ` + id: "KV001", // not taken
		`ALTER TABLE transfers DISABLE TRIGGER transfers_way; ALTER TABLE transfers DISABLE TRIGGER transfers_moves;
			UPDATE holds SET status = 'captured' WHERE id = '` + f.FeeHoldID.String() + `';
			UPDATE transfers SET status = 'completed', tx_hash = 'x', completed_at = now() WHERE id = ` + id: "KV001", // not booked
	} {
		if _, err := db.ExecContext(ctx, query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	// A transfer can't use another one's quote, nor other terms than its quote's.
	q := k.quote(t, "1", k.sender)
	const columns = `kind, requested_by, sender_id, vendor_id, recipient_id, recipient_vendor_id, network, asset, amount, wallet_id, wallet_type, from_address,
		to_wallet_id, to_address, note, value, rate, digest, status, status_detail, created_at, updated_at, intent_id`
	insert := func(fee, profile, hold, fiat string) string {
		return `INSERT INTO transfers (id, hold_id, fee, fee_profile_id, fee_hold_id, fx_quote_id, fiat_currency, fiat_amount, fiat_rate, ` + columns + `)
			SELECT gen_random_uuid(), gen_random_uuid(), ` + fee + `, ` + profile + `, ` + hold + `, ` + fiat + `, ` + columns + ` FROM transfers WHERE id = ` + id
	}
	for query, want := range map[string]string{
		insert("0.25", "fee_profile_id", "gen_random_uuid()", "'"+q.ID.String()+"', 'KES', 129, 129"): "KV002", // not consumed
		insert("0", "NULL", "NULL", "'"+q.ID.String()+"', 'KES', 129, NULL"):                          "KV002",
		insert("0.25", "fee_profile_id", "gen_random_uuid()", "NULL, 'KES', 129, 129"):                "23514",
		insert("0.25", "NULL", "gen_random_uuid()", "NULL, NULL, NULL, NULL"):                         "KV002",
		insert("0.25", "fee_profile_id", "NULL", "NULL, NULL, NULL, NULL"):                            "23514",
		insert("0.0000001", "fee_profile_id", "gen_random_uuid()", "NULL, NULL, NULL, NULL"):          "KV002",
	} {
		if _, err := db.ExecContext(ctx, query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	wantTransfers(t, k.Store)
}

// A transfer without a quote has the fee of the closest fees in force, neither more nor less: the database refuses another one.
func TestDatabaseKnowsTheFeesOfTransfers(t *testing.T) {
	t.Parallel()
	k := newPricedSender(t, "100")
	k.rate(t, "129", "129")
	old := k.fees(t, "1", 0, 0)
	k.time.advance(time.Second)
	p := k.fees(t, "0.5", 20, 0)
	if f := k.sent(t, "10", uuid.Nil, true); f.Fee.String() != "0.520000" || f.FeeProfileID != p.ID {
		t.Fatalf("the fee is %s by %s", f.Fee, f.FeeProfileID)
	}
	db := storetest.Owner(t, k.Store)
	for change, want := range map[string]string{
		`{}`:                                 "23505", // it is there already
		`{"fee": 0.52}`:                      "23505",
		`{"fee": 0.53}`:                      "KV002",
		`{"fee": 0.51}`:                      "KV002",
		`{"fee": 0, "fee_profile_id": null}`: "KV002",
		`{"fee": 1, "fee_profile_id": "` + old.ID.String() + `"}`: "KV002",
	} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO transfers SELECT (jsonb_populate_record(f, $1)).* FROM transfers f`, change)
		if sqlState(err) != want {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}

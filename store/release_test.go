package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// without lifts the limits of customers, so that only the rule about all that leaves counts.
func (p purse) without(t *testing.T, one, two string) {
	t.Helper()
	storetest.Patch(t, p.store, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {}, exchange.RoleVendor: {}, exchange.RoleSubvendor: {}},
		Rules: rule(one, two),
	})
}

// goes opens a transfer and takes it as far as it goes without officers.
func (p purse) goes(t *testing.T, amount string, to exchange.Recipient) exchange.Transfer {
	t.Helper()
	f, err := p.tries(t, p.request(t, amount, to))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (p purse) tries(t *testing.T, r exchange.TransferRequest) (exchange.Transfer, error) {
	t.Helper()
	r.WalletID = p.wallet.ID
	f, err := storetest.OpenTransfer(t.Context(), p.store, r, storetest.PrincipalOf(p.sender))
	if err == nil {
		f, err = p.store.AdvanceTransfer(t.Context(), f.ID)
	}
	if err == nil && f.Status == exchange.TransferScreening {
		f, err = p.store.RecordScreening(t.Context(), f.ID, clear1)
	}
	return f, err
}

// elsewhere is another address outside of our custody on every call.
func elsewhere(t *testing.T) exchange.Recipient {
	t.Helper()
	return exchange.Recipient{Address: "T" + storetest.NewID(t).String()[3:35]}
}

// approve counts an officer's approval.
func (p purse) approve(t *testing.T, f exchange.Transfer, officer exchange.User) exchange.Transfer {
	t.Helper()
	f, err := p.store.Decide(t.Context(), f.ID, p.mustTicket(t, f, officer, exchange.Approve), exchange.Approve)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// D3: a hundred transfers below the officers' value, outside and inside, to many recipients, leave no more than one that
// needs no officer.
func TestD3ManySmallTransfersAskOfficers(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(*testing.T, purse) exchange.Recipient{
		"outside": func(t *testing.T, _ purse) exchange.Recipient { return elsewhere(t) },
		"inside": func(t *testing.T, p purse) exchange.Recipient {
			return exchange.Recipient{WalletID: storetest.Wallet(t, p.store, storetest.User(t, p.store, exchange.RoleCustomer)).ID}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, "1000")
			p.without(t, "15000", "30000") // a unit counts as 150 shillings
			left, two := 0, 0
			for range 25 {
				f := p.goes(t, "10", to(t, p))
				switch {
				case f.Status == exchange.TransferQueued:
					left++
				case f.Status != exchange.TransferPending:
					t.Fatalf("the transfer is %s", f.Status)
				case f.ApprovalsRequired == 2:
					two++
				}
			}
			if left != 10 || two != 5 {
				t.Errorf("%d transfers left without an officer and %d wait for two, want 10 and 5", left, two)
			}
			wantTransfers(t, p.store)
		})
	}
}

// D3: transfers at the same moment don't overlook each other, and one that moves nothing is not counted any more.
func TestD3TransfersAtTheSameMoment(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	p.without(t, "15000", "30000")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var left []exchange.Transfer
	for range 8 {
		r := p.request(t, "40", elsewhere(t))
		wg.Go(func() {
			f, err := p.tries(t, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if f.Status == exchange.TransferQueued {
				left = append(left, f)
			}
		})
	}
	wg.Wait()
	if len(left) > 2 {
		t.Errorf("%d transfers of 6,000 shillings left together below 15,000", len(left))
	}
	wantTransfers(t, p.store)
}

// D3: what is announced between the judgement of a transfer and its release is judged with it, and is no refusal.
func TestD3TransfersAnnouncedMeanwhileCount(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), storetest.URL(t)
	p := newPurseIn(t, storetest.Open(t, dsn, store.Options{}), "1000")
	process := storetest.Open(t, dsn, store.Options{}) // another one, whose writes wait for none of the first's
	p.without(t, "15000", "30000")
	f, err := storetest.OpenTransfer(ctx, p.store, p.request(t, "40", elsewhere(t)), storetest.PrincipalOf(p.sender))
	if err == nil {
		f, err = p.store.AdvanceTransfer(ctx, f.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, p.store)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SELECT FROM approval_rules WHERE object_type = 'transfer' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	judged := make(chan error, 1)
	go func() {
		var err error
		f, err = p.store.RecordScreening(ctx, f.ID, clear1)
		judged <- err
	}()
	waitsFor(t, db, judged)
	if _, err := storetest.OpenTransfer(ctx, process, p.request(t, "90", elsewhere(t)), storetest.PrincipalOf(p.sender)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-judged; err != nil || f.Status != exchange.TransferPending || f.ApprovalsRequired != 1 {
		t.Errorf("beside one that was announced meanwhile it is %s and needs %d, %v", f.Status, f.ApprovalsRequired, err)
	}
	wantTransfers(t, p.store)
}

// D3: a transfer counts from its opening, so that of two that are judged at the same moment at least one sees the other.
func TestD3OpenedTransfersCount(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	p.without(t, "15000", "30000")
	var opened []exchange.Transfer
	for range 2 {
		f, err := storetest.OpenTransfer(t.Context(), p.store, p.request(t, "90", elsewhere(t)), storetest.PrincipalOf(p.sender))
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, f)
	}
	for _, f := range opened {
		_, err := p.store.AdvanceTransfer(t.Context(), f.ID)
		if err == nil {
			f, err = p.store.RecordScreening(t.Context(), f.ID, clear1)
		}
		if err != nil || f.Status != exchange.TransferPending || f.ApprovalsRequired != 1 {
			t.Errorf("beside another of 13,500 shillings one is %s and needs %d, %v", f.Status, f.ApprovalsRequired, err)
		}
	}
	wantTransfers(t, p.store)
}

// D16: what a waiting transfer needs follows what else leaves, and is not what it was at opening.
func TestD16OfficersAreNotFrozenAtOpening(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	p.without(t, "15000", "30000")
	first := p.goes(t, "120", elsewhere(t))
	if first.Status != exchange.TransferPending || first.ApprovalsRequired != 1 {
		t.Fatalf("the first is %s and needs %d", first.Status, first.ApprovalsRequired)
	}
	second := p.goes(t, "120", elsewhere(t))
	if first = p.approve(t, first, p.officers[0]); first.Status != exchange.TransferPending || first.ApprovalsRequired != 2 {
		t.Errorf("after one approval the first is %s and needs %d; want two, because the second leaves too", first.Status, first.ApprovalsRequired)
	}
	if _, err := storetest.CancelTransfer(t.Context(), p.store, second.ID, storetest.PrincipalOf(p.sender)); err != nil {
		t.Fatal(err)
	}
	if f, err := p.store.AdvanceTransfer(t.Context(), first.ID); err != nil || f.Status != exchange.TransferQueued {
		t.Errorf("the second moves nothing, and the first is %s, %v", f.Status, err)
	}
	wantTransfers(t, p.store)
}

// D3: a merchant's subvendors can't split what they send between them, nor a sender between the recipient's wallets.
func TestD3SubvendorsShareTheSums(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	merchant := storetest.User(t, s, exchange.RoleVendor)
	p := purse{store: s, sender: storetest.Subvendor(t, s, merchant), wallet: storetest.Wallet(t, s, merchant)}
	storetest.Deposit(t, s, p.wallet.ID, usdt("1000"))
	other := purse{store: s, sender: storetest.Subvendor(t, s, merchant), wallet: storetest.Wallet(t, s, merchant)}
	storetest.Deposit(t, s, other.wallet.ID, usdt("1000"))
	p.without(t, "15000", "30000")
	if f := p.goes(t, "60", elsewhere(t)); f.Status != exchange.TransferQueued {
		t.Fatalf("the first is %s", f.Status)
	}
	if f := other.goes(t, "60", elsewhere(t)); f.Status != exchange.TransferPending || f.ApprovalsRequired != 1 {
		t.Errorf("the second, by another subvendor from another wallet, is %s and needs %d", f.Status, f.ApprovalsRequired)
	}
	q := newPurseIn(t, s, "1000")
	again := storetest.Wallet(t, s, q.other)
	if f := q.goes(t, "60", exchange.Recipient{WalletID: q.theirs.ID}); f.Status != exchange.TransferQueued {
		t.Fatalf("to one wallet: %s", f.Status)
	}
	third := newPurseIn(t, s, "1000")
	if f := third.goes(t, "60", exchange.Recipient{WalletID: again.ID}); f.ApprovalsRequired != 1 {
		t.Errorf("to the recipient's other wallet, by another sender: %s, needs %d", f.Status, f.ApprovalsRequired)
	}
}

// H1: one officer moves nothing of the house's, wherever it goes and however little it is.
func TestH1TheHouseAlwaysAsksAnotherPerson(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	treasury := storetest.TreasuryWallet(t, s, exchange.Tron)
	storetest.Deposit(t, s, treasury.ID, usdt("100000"))
	p := newPurseIn(t, s, "1")
	house := purse{store: s, sender: p.officers[0], wallet: treasury, officers: p.officers}
	for name, to := range map[string]exchange.Recipient{
		"to a customer": {WalletID: p.wallet.ID}, "to an outsider": elsewhere(t), "to the house itself": {WalletID: storetest.TreasuryWallet(t, s, exchange.Tron).ID},
	} {
		f := house.goes(t, "1", to)
		if f.Status != exchange.TransferPending || f.ApprovalsRequired != 1 {
			t.Fatalf("%s: %s, needs %d", name, f.Status, f.ApprovalsRequired)
		}
		_, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE releases SET officers = 0, passed_at = now() WHERE object_id = $1`, f.ID)
		if sqlState(err) != "KV006" {
			t.Errorf("%s: released by hand: %v", name, err)
		}
		if _, err := house.ticket(t, f, p.officers[0], exchange.Approve); exchange.CodeOf(err) != exchange.CodeForbidden {
			t.Errorf("%s: the requester approves: %v", name, err)
		}
		if f = house.approve(t, f, p.officers[1]); f.Status != exchange.TransferQueued {
			t.Errorf("%s: approved by another officer, it is %s", name, f.Status)
		}
	}
	if f := house.goes(t, "20000", exchange.Recipient{WalletID: p.wallet.ID}); f.ApprovalsRequired != 2 {
		t.Errorf("a large one needs %d", f.ApprovalsRequired)
	}
	wantTransfers(t, s)
}

// The database itself lets no release pass with fewer officers than the sums need, and queues nothing that has not passed.
func TestReleasesPassOnlyByTheRule(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	p.without(t, "15000", "30000")
	first := p.goes(t, "90", elsewhere(t))
	f := p.goes(t, "90", elsewhere(t))
	if first.Status != exchange.TransferQueued || f.Status != exchange.TransferPending {
		t.Fatalf("the first is %s, the second %s", first.Status, f.Status)
	}
	id, before := "'"+f.ID.String()+"'", "'"+first.ID.String()+"'"
	for query, want := range map[string]string{
		`UPDATE releases SET officers = 0, passed_at = now() + interval '2 days' WHERE object_id = ` + id: "KV006",
		`UPDATE releases SET officers = 0, passed_at = now() - interval '2 days' WHERE object_id = ` + id: "KV006",
		`UPDATE releases SET ended_at = now() WHERE object_id = ` + before:                                "KV001",
		`UPDATE releases SET ended_at = now() WHERE object_id = ` + id:                                    "KV001",
		`UPDATE releases SET officers = 0, passed_at = now() WHERE object_id = ` + id:                     "KV006",
		`UPDATE releases SET officers = 1, passed_at = now() WHERE object_id = ` + id:                     "KV006",
		`UPDATE transfers SET status = 'queued' WHERE id = ` + id:                                         "KV001",
		`UPDATE transfers SET status = 'cancelled' WHERE id = ` + id:                                      "KV001",
		`DELETE FROM releases`: "KV002",
		`INSERT INTO releases (id, purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at)
			SELECT gen_random_uuid(), purpose, gen_random_uuid(), house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at FROM releases LIMIT 1`: "KV002",
	} {
		if _, err := storetest.Owner(t, p.store).ExecContext(t.Context(), query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

// A destination that its owner named just now rests before more than a value goes there; two officers shorten that.
func TestNewDestinationRests(t *testing.T) {
	t.Parallel()
	at := time.Now()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return at }})
	storetest.Exec(t, s, `UPDATE release_policy SET rest_seconds = 86400, rest_above = 1000`)
	p := newPurseIn(t, s, "1000")
	p.without(t, "15000", "300000")
	to := elsewhere(t)
	if f := p.goes(t, "6", to); f.Status != exchange.TransferQueued {
		t.Fatalf("little to a new destination is %s (%s)", f.Status, f.StatusDetail)
	}
	f := p.goes(t, "1", to)
	if f.Status != exchange.TransferPending || f.StatusDetail != exchange.WaitRest || !f.RestsUntil.Equal(f.CreatedAt.Add(24*time.Hour)) {
		t.Fatalf("more to it is %s (%s) until %s", f.Status, f.StatusDetail, f.RestsUntil)
	}
	if f = p.approve(t, p.approve(t, f, p.officers[0]), p.officers[1]); f.Status != exchange.TransferQueued {
		t.Errorf("two officers approved it, and it is %s (%s)", f.Status, f.StatusDetail)
	}
	f = p.goes(t, "2", to)
	_, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE releases SET officers = 0, passed_at = now() + interval '2 days' WHERE object_id = $1`, f.ID)
	if sqlState(err) != "KV006" {
		t.Errorf("a clock that is two days fast shortens the rest: %v", err)
	}
	storetest.Rested(t, s)
	at = at.Add(25 * time.Hour)
	if f, err := s.AdvanceTransfer(t.Context(), f.ID); err != nil || f.Status != exchange.TransferQueued {
		t.Errorf("the destination has rested, and the transfer is %s (%s), %v", f.Status, f.StatusDetail, err)
	}
	if f := p.goes(t, "1", exchange.Recipient{WalletID: p.theirs.ID}); f.Status != exchange.TransferQueued {
		t.Errorf("to a known wallet: %s (%s)", f.Status, f.StatusDetail)
	}
	wantTransfers(t, s)
}

// B8: a fee above the one that the requester accepts refuses the transfer.
func TestB8TransferNamesItsHighestFee(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	admin := storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleAdmin))
	profile := exchange.FeeProfile{ID: storetest.NewID(t), FeeLine: exchange.FeeLine{Scope: exchange.FeeTransfer, Asset: money.USDT}, Fixed: usdt("0.5"), Minimum: usdt("0")}
	err := storetest.Agreed(t, p.store)(p.store.ProposeProfile(t.Context(), profile, admin))
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[string]exchange.Code{"0": exchange.CodeRateChanged, "0.49": exchange.CodeRateChanged, "0.5": ""} {
		r := p.request(t, "1", exchange.Recipient{WalletID: p.theirs.ID})
		fee := usdt(most)
		r.MaxFee = &fee
		if _, err := storetest.OpenTransfer(t.Context(), p.store, r, storetest.PrincipalOf(p.sender)); exchange.CodeOf(err) != want {
			t.Errorf("max_fee %s: %v", most, err)
		}
	}
}

// D9: an account that is switched off stops what it sends before anything is signed.
func TestD9SwitchedOffBeforeTheSignature(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f := p.goes(t, "10", elsewhere(t))
	if f.Status != exchange.TransferQueued {
		t.Fatalf("the transfer is %s", f.Status)
	}
	p.switched(t, p.sender, false)
	wantUnsigned(t, p.store, f.PaymentID, exchange.HoldInactive)
	p.switched(t, p.sender, true)
	p.carry(t, f)
}

// A release is as old as its object, or else its destination would seem to have rested.
func TestReleasesAreAsOldAsTheirObjects(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f := p.goes(t, "10", elsewhere(t))
	storetest.Exec(t, p.store, `ALTER TABLE releases DISABLE TRIGGER USER`)
	storetest.Exec(t, p.store, `CREATE TABLE older AS SELECT * FROM releases`)
	storetest.Exec(t, p.store, `DELETE FROM releases`)
	storetest.Exec(t, p.store, `ALTER TABLE releases ENABLE TRIGGER USER`)
	storetest.Exec(t, p.store, `UPDATE older SET opened_at = opened_at - interval '2 days', passed_at = NULL`)
	if _, err := storetest.Owner(t, p.store).ExecContext(t.Context(), `INSERT INTO releases TABLE older`); sqlState(err) != "KV002" {
		t.Errorf("the release of transfer %s, two days older: %v", f.ID, err)
	}
	storetest.Exec(t, p.store, `UPDATE older SET opened_at = opened_at + interval '2 days'`)
	storetest.Exec(t, p.store, `INSERT INTO releases TABLE older`)
}

func (p purse) switched(t *testing.T, u exchange.User, on bool) {
	t.Helper()
	if _, err := p.store.UpdateUser(t.Context(), u.ID, store.UserPatch{IsActive: &on}, storetest.By); err != nil {
		t.Fatal(err)
	}
}

// wantUnsigned checks that a payment is held for a reason, and that the database refuses its signature.
func wantUnsigned(t *testing.T, s *store.Store, payment uuid.UUID, why exchange.SigningHold) {
	t.Helper()
	if hold, err := s.SigningHold(t.Context(), payment); err != nil || hold != why {
		t.Errorf("the payment is held for %q, %v; want %q", hold, err, why)
	}
	id := storetest.NewID(t)
	_, err := s.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: payment, Network: exchange.Tron, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	if exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("signed though it is held for %q: %v", why, err)
	}
}

// D8: an offer far from the market, by which a subvendor could give its merchant's crypto or shillings away, is neither
// opened nor taken.
func TestD8OffersStayNearTheMarket(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	by := storetest.PrincipalOf(m.Vendor)
	v := store.ViewOf(by, exchange.ActWriteOffers)
	for _, rate := range []string{"1", "119.9", "180.1", "9999"} { // the valuation is 150
		r := decimal.RequireFromString(rate)
		_, err := s.PatchOffer(t.Context(), v, m.Offer.ID, store.OfferPatch{Rate: &r}, by)
		if exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("a rate of %s: %v", rate, err)
		}
	}
	storetest.Exec(t, s, `UPDATE offers SET rate = 1 WHERE id = $1`, m.Offer.ID)
	_, err := storetest.OpenOrder(t.Context(), s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), WalletAddress: outside,
	}, storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeStateConflict)
}

// H8: accounts that anybody may open use up no more than their share of the escrow pool, and an address that saw no money
// rests shortly.
func TestH8UnverifiedAccountsDontExhaustThePool(t *testing.T) {
	t.Parallel()
	s := started(t)
	m := storetest.NewSellers(t, s) // four addresses
	storetest.Exec(t, s, `UPDATE escrow_policy SET most = 8, keep_free = 0`)
	sell := func(u exchange.User) (exchange.Order, error) {
		return storetest.OpenOffRamp(t.Context(), s, exchange.OrderRequest{
			ID: storetest.NewID(t), CustomerID: u.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell,
		}, storetest.PrincipalOf(u))
	}
	var last exchange.Order
	for range 2 { // a quarter of eight
		var err error
		if last, err = sell(storetest.User(t, s, exchange.RoleUser)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := sell(storetest.User(t, s, exchange.RoleUser))
	wantFault(t, err, exchange.CodeLimitReached)
	if _, err := sell(m.Customer); err != nil {
		t.Errorf("a verified customer's sale: %v", err)
	}
	if _, err := s.CloseOffRamp(t.Context(), last.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	_, err = sell(storetest.User(t, s, exchange.RoleUser)) // its address rests, and counts
	wantFault(t, err, exchange.CodeLimitReached)
	l, err := s.EscrowLease(t.Context(), last.ID)
	if rest := l.RestUntil.Sub(l.EndedAt); err != nil || rest != 6*time.Hour {
		t.Errorf("an address that saw nothing rests for %s, %v", rest, err)
	}
	x := sold(t)
	x.final(t, x.to("dust", usdt("0.000001")))
	if _, err := x.s.CloseOffRamp(t.Context(), x.order.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if l, err := x.s.EscrowLease(t.Context(), x.order.ID); err != nil || l.RestUntil.Sub(l.EndedAt) != 7*24*time.Hour {
		t.Errorf("an address that saw dust rests for %s, %v", l.RestUntil.Sub(l.EndedAt), err)
	}
}

// A release that claims to have passed long ago still counts for a day.
func TestReleasesCountFromWhenTheyAreWritten(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	p.without(t, "15000", "30000")
	f, err := storetest.OpenTransfer(t.Context(), p.store, p.request(t, "90", elsewhere(t)), storetest.PrincipalOf(p.sender))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, p.store, `UPDATE releases SET passed_at = now() - interval '30 days' WHERE object_id = $1`, f.ID)
	if f := p.goes(t, "90", elsewhere(t)); f.Status != exchange.TransferPending || f.ApprovalsRequired != 1 {
		t.Errorf("beside it a transfer is %s and needs %d", f.Status, f.ApprovalsRequired)
	}
}

// The database itself lets nothing large go to a destination that has not rested.
func TestReleasesRestInTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	storetest.Exec(t, p.store, `UPDATE release_policy SET rest_seconds = 86400, rest_above = 1000`)
	p.without(t, "15000", "30000")
	f := p.goes(t, "10", elsewhere(t))
	_, err := storetest.Owner(t, p.store).ExecContext(t.Context(), `UPDATE releases SET rests_until = NULL, passed_at = now() WHERE object_id = $1`, f.ID)
	if f.StatusDetail != exchange.WaitRest || sqlState(err) != "KV006" {
		t.Errorf("the transfer is %s (%s); released by hand: %v", f.Status, f.StatusDetail, err)
	}
}

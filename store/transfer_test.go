package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// outside is an address outside of our custody.
const outside = "TOutsideAddressOfAStranger00000001"

// purse is a customer with money and two officers.
type purse struct {
	store    *store.Store
	sender   exchange.User
	other    exchange.User
	wallet   exchange.Wallet
	theirs   exchange.Wallet
	officers []exchange.User
}

func newPurse(t *testing.T, balance string) purse {
	t.Helper()
	return newPurseIn(t, storetest.New(t), balance)
}

func newPurseIn(t *testing.T, s *store.Store, balance string) purse {
	t.Helper()
	p := purse{store: s, sender: storetest.User(t, s, exchange.RoleCustomer), other: storetest.User(t, s, exchange.RoleCustomer)}
	p.wallet, p.theirs = storetest.Wallet(t, s, p.sender), storetest.Wallet(t, s, p.other)
	storetest.Deposit(t, s, p.wallet.ID, usdt(balance))
	storetest.Gas(t, s, p.wallet.ID, trx("1000"))
	for range 3 {
		p.officers = append(p.officers, storetest.User(t, s, exchange.RoleTreasury))
	}
	return p
}

func (p purse) balance() exchange.AccountRef {
	return exchange.Owned(exchange.AccWalletBalance, p.wallet.ID, money.USDT)
}

func (p purse) request(t *testing.T, amount string, to exchange.Recipient) exchange.TransferRequest {
	t.Helper()
	return exchange.TransferRequest{ID: storetest.NewID(t), RequestedBy: p.sender.ID, Network: exchange.Tron, Amount: usdt(amount), Recipient: to, Note: "rent"}
}

func (p purse) open(t *testing.T, amount string, to exchange.Recipient) exchange.Transfer {
	t.Helper()
	f, err := storetest.OpenTransfer(t.Context(), p.store, p.request(t, amount, to), storetest.PrincipalOf(p.sender))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rule requires officers for every external transfer, two above a value, and lifts the limits of customers.
func (p purse) rule(t *testing.T, two string) {
	t.Helper()
	storetest.Patch(t, p.store, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {}},
		Rules: rule("0", two),
	})
}

var clear1 = []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}}

// pending opens an external transfer that waits for officers.
func (p purse) pending(t *testing.T, amount string) exchange.Transfer {
	t.Helper()
	f := p.open(t, amount, exchange.Recipient{Address: outside})
	if _, err := p.store.AdvanceTransfer(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	f, err := p.store.RecordScreening(t.Context(), f.ID, clear1)
	if err != nil {
		t.Fatal(err)
	}
	if f.Status != exchange.TransferPending {
		t.Fatalf("the transfer is %s", f.Status)
	}
	return f
}

func sameTransfer(a, b exchange.Transfer) bool {
	return a.ID == b.ID && a.Status == b.Status && a.StatusDetail == b.StatusDetail && a.Version == b.Version && a.PaymentID == b.PaymentID
}

// wantTransfers checks the invariants of transfers besides the books.
func wantTransfers(t *testing.T, s *store.Store) {
	t.Helper()
	wantBooks(t, s)
	for _, c := range []struct{ what, query string }{
		{"transfers that ended and still reserve money", `SELECT count(*) FROM transfers f JOIN holds h ON h.id = f.hold_id WHERE h.status = 'held'
			AND f.status IN ('completed', 'cancelled', 'rejected', 'failed')`},
		{"transfers under way without their money", `SELECT count(*) FROM transfers f JOIN holds h ON h.id = f.hold_id WHERE h.status <> 'held'
			AND f.status NOT IN ('completed', 'cancelled', 'rejected', 'failed', 'blocked')`},
		{"payments of transfers that were not approved", `SELECT count(*) FROM transfers f JOIN chain_payments p ON p.purpose = 'transfer' AND p.object_id = f.id
			JOIN releases r ON r.purpose = 'transfer' AND r.object_id = f.id WHERE r.passed_at IS NULL OR r.officers > (SELECT count(*) FROM approvals a WHERE a.object_id = f.id AND a.action = 'approve')`},
		{"transfers that moved nothing and count against limits", `SELECT count(*) FROM transfers f JOIN limit_uses u ON u.object_id = f.id
			WHERE u.released_at IS NULL AND f.status IN ('cancelled', 'rejected', 'failed')`},
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

// carry signs, sends and finishes the payment of a transfer.
func (p purse) carry(t *testing.T, f exchange.Transfer) {
	t.Helper()
	ctx, s := t.Context(), p.store
	f = twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.SignTransfer(ctx, f.ID) })
	is := func(status exchange.TransferStatus, detail string) {
		t.Helper()
		now, err := s.Transfer(ctx, store.Everything(), f.ID)
		if err != nil || now.Status != status || now.StatusDetail != detail {
			t.Fatalf("the transfer is %s (%s), %v; want %s (%s)", now.Status, now.StatusDetail, err, status, detail)
		}
		f = now
	}
	is(exchange.TransferSigning, exchange.WaitSignature)
	payment, err := s.ChainPayment(ctx, f.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	a := sign(t, s, payment)
	is(exchange.TransferBroadcasting, exchange.WaitBroadcast)
	steps := []func() (exchange.ChainPayment, error){
		func() (exchange.ChainPayment, error) { return s.RecordBroadcast(ctx, a.ID, "SUCCESS", true) },
		func() (exchange.ChainPayment, error) { return s.RecordIncluded(ctx, a.ID, 7, "block") },
		func() (exchange.ChainPayment, error) { return s.RecordVanished(ctx, a.ID) },
		func() (exchange.ChainPayment, error) { return s.RecordIncluded(ctx, a.ID, 8, "other") },
	}
	for i, want := range []exchange.TransferStatus{exchange.TransferConfirming, exchange.TransferConfirming, exchange.TransferBroadcasting, exchange.TransferConfirming} {
		if _, err := steps[i](); err != nil {
			t.Fatal(err)
		}
		if now, err := s.Transfer(ctx, store.Everything(), f.ID); err != nil || now.Status != want {
			t.Fatalf("after step %d the transfer is %s, %v; want %s", i, now.Status, err, want)
		}
	}
	twice(t, samePayment, func() (exchange.ChainPayment, error) {
		return s.RecordFinal(ctx, a.ID, true, 8, "other", trx("3"), "SUCCESS")
	})
	is(exchange.TransferCompleted, exchange.WaitNothing)
	if f.TxHash != a.TxID || f.CompletedAt.IsZero() {
		t.Errorf("completed without proof: %+v", f)
	}
}

func TestInternalTransferFromHoldToArrival(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	ctx, s := t.Context(), p.store
	r := p.request(t, "40", exchange.Recipient{Email: p.other.Email})
	f := twice(t, sameTransfer, func() (exchange.Transfer, error) {
		return storetest.OpenTransfer(ctx, s, r, storetest.PrincipalOf(p.sender))
	})
	if f.Kind != exchange.InternalTransfer || f.ToAddress != p.theirs.Address || f.RecipientID != p.other.ID || f.ApprovalsRequired != 0 {
		t.Errorf("opened %+v", f)
	}
	wantBalance(t, s, p.balance(), "100", "40")
	f = twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.AdvanceTransfer(ctx, f.ID) })
	payment, err := s.ChainPayment(ctx, f.PaymentID)
	if err != nil || payment.ApprovedBy != "policy" || payment.ToAddress != p.theirs.Address {
		t.Fatalf("payment %+v, %v", payment, err)
	}
	p.carry(t, f)
	wantBalance(t, s, p.balance(), "60", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, p.theirs.ID, money.USDT), "40", "0")
	_, err = storetest.CancelTransfer(ctx, s, f.ID, storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeStateConflict)
	wantTransfers(t, s)
}

// Every custodial recipient is found by any of its names, and an address of ours is never paid as an external one.
func TestRecipientsOfTransfers(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	for name, to := range map[string]exchange.Recipient{
		"user": {UserID: p.other.ID}, "e-mail": {Email: p.other.Email}, "phone": {Phone: p.other.PhoneNumber.Digits()},
		"wallet": {WalletID: p.theirs.ID}, "address": {Address: p.theirs.Address},
	} {
		if f := p.open(t, "1", to); f.Kind != exchange.InternalTransfer || f.ToWalletID != p.theirs.ID {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := p.open(t, "1", exchange.Recipient{Address: outside}); f.Kind != exchange.ExternalTransfer || f.ToWalletID != uuid.Nil {
		t.Errorf("a stranger: %+v", f)
	}
	homeless := storetest.User(t, p.store, exchange.RoleCustomer)
	gone := storetest.User(t, p.store, exchange.RoleCustomer)
	storetest.Wallet(t, p.store, gone)
	off := false
	if _, err := p.store.UpdateUser(t.Context(), gone.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]exchange.Recipient{
		"nobody": {UserID: storetest.NewID(t)}, "no wallet": {UserID: homeless.ID}, "deactivated": {UserID: gone.ID},
		"oneself": {WalletID: p.wallet.ID}, "no such wallet": {WalletID: storetest.NewID(t)}, "nothing": {},
	} {
		_, err := storetest.OpenTransfer(t.Context(), p.store, p.request(t, "1", to), storetest.PrincipalOf(p.sender))
		if exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := p.request(t, "1", exchange.Recipient{Address: outside})
	r.WalletID = p.theirs.ID
	_, err := storetest.OpenTransfer(t.Context(), p.store, r, storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeInvalid)
	_, err = storetest.OpenTransfer(t.Context(), p.store, p.request(t, "100", exchange.Recipient{Address: outside}), storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeInsufficientFunds)
	wantTransfers(t, p.store)
}

// An officer can send money of the house's treasury to any recipient and to the house itself, when another one approves.
func TestTreasurySendsWhatCame(t *testing.T) {
	t.Parallel()
	s := started(t)
	treasury, second := houseWallet(t, s, exchange.HouseTreasury), houseWallet(t, s, exchange.HouseTreasury)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("in", stranger, treasury.Address, usdt("50"))))
	storetest.Gas(t, s, treasury.ID, trx("100"))
	p := purse{store: s, sender: storetest.User(t, s, exchange.RoleTreasury), wallet: treasury}
	another := storetest.User(t, s, exchange.RoleTreasury)
	send := func(amount string, to exchange.Recipient) exchange.Transfer {
		t.Helper()
		r := p.request(t, amount, to)
		r.WalletID = treasury.ID
		f, err := storetest.OpenTransfer(t.Context(), s, r, storetest.PrincipalOf(p.sender))
		if err == nil {
			f, err = s.AdvanceTransfer(t.Context(), f.ID)
		}
		if err == nil && f.Kind == exchange.ExternalTransfer {
			f, err = s.RecordScreening(t.Context(), f.ID, clear1)
		}
		if err != nil || f.Status != exchange.TransferPending {
			t.Fatalf("the transfer is %s, %v", f.Status, err)
		}
		if f = p.approve(t, f, another); f.Status != exchange.TransferQueued {
			t.Fatalf("the approved transfer is %s", f.Status)
		}
		return f
	}
	p.carry(t, send("20", exchange.Recipient{Address: outside}))
	p.carry(t, send("10", exchange.Recipient{WalletID: second.ID}))
	wantBalance(t, s, p.balance(), "20", "0")
	wantBalance(t, s, custody(treasury), "20", "0")
	wantBalance(t, s, custody(second), "10", "0")
	wantTransfers(t, s)
}

// A treasury officer sends only from the house's treasury.
func TestStaffCantSpendWalletsOfUsers(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	for _, role := range []exchange.Role{exchange.RoleTreasury, exchange.RoleAdmin, exchange.RoleOTCOfficer, exchange.RoleVendor} {
		r := p.request(t, "1", exchange.Recipient{Address: outside})
		u := storetest.User(t, p.store, role)
		r.RequestedBy, r.WalletID = u.ID, p.wallet.ID
		_, err := storetest.OpenTransfer(t.Context(), p.store, r, storetest.PrincipalOf(u))
		if exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("a %s spends a customer's wallet: %v", role, err)
		}
	}
}

func TestScreeningDecidesWhoIsPaid(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	ctx, s := t.Context(), p.store
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	begin := func() exchange.Transfer {
		t.Helper()
		f := p.open(t, "10", exchange.Recipient{Address: outside})
		f = twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.AdvanceTransfer(ctx, f.ID) })
		if f.Status != exchange.TransferScreening {
			t.Fatalf("the transfer is %s", f.Status)
		}
		return f
	}
	unknown := begin()
	said := []exchange.Screening{{Screener: "service", Verdict: exchange.VerdictUnknown}, clear1[0]}
	if f, err := s.RecordScreening(ctx, unknown.ID, said); err != nil || f.Status != exchange.TransferScreening {
		t.Fatalf("unknown: %s, %v", f.Status, err)
	}
	if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE transfers SET status = 'queued' WHERE id = $1`, unknown.ID); sqlState(err) != "KV001" {
		t.Errorf("an unscreened transfer was queued: %v", err)
	}
	hit := begin()
	said = []exchange.Screening{{Screener: "service", Verdict: exchange.VerdictHit, Reference: "case 7"}, clear1[0]}
	hit = twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.RecordScreening(ctx, hit.ID, said) })
	if hit.Status != exchange.TransferBlocked || hit.StatusDetail != exchange.DetailHeld {
		t.Fatalf("a hit: %s (%s)", hit.Status, hit.StatusDetail)
	}
	_, err := storetest.CancelTransfer(ctx, s, hit.ID, storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, s, p.balance(), "100", "20")
	// The deny list is checked again when the transfer is queued.
	late := begin()
	line := twice(t, func(a, b exchange.DeniedAddress) bool { return a == b }, func() (exchange.DeniedAddress, error) {
		return s.Deny(ctx, exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: outside, Reason: "court order"}, admin)
	})
	if f, err := s.RecordScreening(ctx, late.ID, clear1); err != nil || f.Status != exchange.TransferBlocked {
		t.Fatalf("denied meanwhile: %s, %v", f.Status, err)
	}
	f := twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.GiveUpTransfer(ctx, late.ID, admin) })
	if f.Status != exchange.TransferBlocked || f.StatusDetail != exchange.DetailReleased {
		t.Errorf("released: %s (%s)", f.Status, f.StatusDetail)
	}
	wantBalance(t, s, p.balance(), "100", "20")
	if list, n, err := s.DenyList(ctx, exchange.Tron, store.Page{Number: 1, Size: 10}); err != nil || n != 1 || list[0] != line {
		t.Errorf("denied %v, %v", list, err)
	}
	waits, err := s.ProposeUndeny(ctx, line.ID, admin)
	if err != nil {
		t.Fatal(err)
	}
	if denied, err := s.Denied(ctx, exchange.Tron, outside); err != nil || !denied {
		t.Errorf("one officer's word took the address off the list, %v", err)
	}
	if err := storetest.Agreed(t, s)(waits, nil); err != nil {
		t.Fatal(err)
	}
	_, err = s.ProposeUndeny(ctx, line.ID, admin)
	wantFault(t, err, exchange.CodeNotFound)
	if denied, err := s.Denied(ctx, exchange.Tron, outside); err != nil || denied {
		t.Errorf("still denied: %v", err)
	}
	if f, err := s.RecordScreening(ctx, begin().ID, clear1); err != nil || f.Status != exchange.TransferQueued {
		t.Errorf("clear: %s, %v", f.Status, err)
	}
	wantTransfers(t, s)
}

// A transfer can be given up until it is signed; afterwards an operator gives up one whose transaction is proven to be
// impossible.
func TestGivingTransfersUp(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	ctx, s := t.Context(), p.store
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	queued := func() exchange.Transfer {
		t.Helper()
		f, err := s.AdvanceTransfer(ctx, p.open(t, "10", exchange.Recipient{UserID: p.other.ID}).ID)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := queued()
	f = twice(t, sameTransfer, func() (exchange.Transfer, error) {
		return storetest.CancelTransfer(ctx, s, f.ID, storetest.PrincipalOf(p.sender))
	})
	if payment, err := s.ChainPayment(ctx, f.PaymentID); err != nil || payment.Status != exchange.ChainCancelled {
		t.Errorf("the payment of a cancelled transfer is %s, %v", payment.Status, err)
	}
	_, err := s.SaveSignedAttempt(ctx, exchange.ChainAttempt{ID: storetest.NewID(t), PaymentID: f.PaymentID, TxID: "x", Raw: []byte("x"), ExpiresAt: time.Now().Add(time.Hour)})
	wantFault(t, err, exchange.CodeStateConflict)

	signed := queued()
	if _, err := s.SignTransfer(ctx, signed.ID); err != nil {
		t.Fatal(err)
	}
	payment, err := s.ChainPayment(ctx, signed.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	a := sign(t, s, payment)
	_, err = storetest.CancelTransfer(ctx, s, signed.ID, storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = s.GiveUpTransfer(ctx, signed.ID, admin)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := s.RecordFinal(ctx, a.ID, false, 9, "block", trx("2"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	outlived(t, s)
	gone := twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.GiveUpTransfer(ctx, signed.ID, admin) })
	if gone.Status != exchange.TransferFailed {
		t.Errorf("given up: %s", gone.Status)
	}
	wantBalance(t, s, p.balance(), "100", "0")
	wantTransfers(t, s)
}

// A cancellation concurrent with signing: either the money is free and nothing was signed, or the transfer continues.
func TestCancelMeetsSignature(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	for range 8 {
		f, err := p.store.AdvanceTransfer(t.Context(), p.open(t, "1", exchange.Recipient{UserID: p.other.ID}).ID)
		if err == nil {
			f, err = p.store.SignTransfer(t.Context(), f.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		id := storetest.NewID(t)
		var cancelled, signed error
		var wg sync.WaitGroup
		wg.Go(func() {
			_, cancelled = storetest.CancelTransfer(t.Context(), p.store, f.ID, storetest.PrincipalOf(p.sender))
		})
		wg.Go(func() {
			_, signed = p.store.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
				ID: id, PaymentID: f.PaymentID, Network: exchange.Tron, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour),
			})
		})
		wg.Wait()
		if (cancelled == nil) == (signed == nil) {
			t.Fatalf("cancelled: %v, signed: %v", cancelled, signed)
		}
	}
	wantTransfers(t, p.store)
}

// A cold wallet's transfer is never handed to the signer.
func TestColdWalletsWait(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	storetest.Exec(t, p.store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, p.wallet.ID)
	f, err := p.store.AdvanceTransfer(t.Context(), p.open(t, "1", exchange.Recipient{UserID: p.other.ID}).ID)
	if err != nil || f.Status != exchange.TransferQueued || f.StatusDetail != exchange.WaitExternal {
		t.Fatalf("%s (%s), %v", f.Status, f.StatusDetail, err)
	}
	_, err = p.store.SignTransfer(t.Context(), f.ID)
	wantFault(t, err, exchange.CodeStateConflict)
}

// The agreed terms of a transfer are immutable, even for the owner of the tables.
func TestTransfersStayAsAgreed(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "100000")
	f := p.pending(t, "10")
	if _, err := p.store.Decide(t.Context(), f.ID, p.mustTicket(t, f, p.officers[0], exchange.Approve), exchange.Approve); err != nil {
		t.Fatal(err)
	}
	p.mustTicket(t, p.pending(t, "5"), p.officers[0], exchange.Approve)
	admin := storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleAdmin))
	if _, err := p.store.Deny(t.Context(), exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: outside, Reason: "court order"}, admin); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`UPDATE transfers SET amount = amount + 1`,
		`UPDATE transfers SET to_address = 'TAnotherAddressOfSomebodyElse00000'`,
		`UPDATE releases SET value = 1`,
		`UPDATE releases SET officers = 0 WHERE passed_at IS NOT NULL`,
		`UPDATE transfers SET requested_by = '` + p.other.ID.String() + `'`,
		`DELETE FROM transfers`,
		`UPDATE approvals SET officer_id = '` + p.officers[2].ID.String() + `'`,
		`DELETE FROM approvals`,
		`UPDATE approval_tokens SET amount = 1`,
		`UPDATE approval_tokens SET expires_at = expires_at + interval '1 minute'`,
		`UPDATE approval_tokens SET used_at = NULL WHERE used_at IS NOT NULL`,
		`UPDATE screenings SET verdict = 'hit'`,
		`UPDATE limit_uses SET value = 1`,
		`DELETE FROM deny_list`,
		`UPDATE deny_list SET address = 'TAnotherAddressOfSomebodyElse00000'`,
	} {
		_, err := storetest.Owner(t, p.store).ExecContext(t.Context(), query)
		if sqlState(err) != "KV002" {
			t.Errorf("%s: %v, want KV002", query, err)
		}
	}
}

// The recipient sees the transfer but can't act on it; others see nothing.
func TestViewsOfTransfers(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f := p.open(t, "1", exchange.Recipient{UserID: p.other.ID})
	stranger := storetest.User(t, p.store, exchange.RoleCustomer)
	for _, c := range []struct {
		who       exchange.User
		see, acts bool
	}{{p.sender, true, true}, {p.other, true, false}, {stranger, false, false}, {p.officers[0], true, true}} {
		v := store.ViewOf(storetest.PrincipalOf(c.who), exchange.ActReadTransfers)
		_, seen := p.store.Transfer(t.Context(), v, f.ID)
		_, acted := p.store.SentTransfer(t.Context(), v, f.ID)
		_, n, err := p.store.ListTransfers(t.Context(), v, store.TransferFilter{}, store.Page{Number: 1, Size: 10})
		if (seen == nil) != c.see || (acted == nil) != c.acts || (n == 1) != c.see || err != nil {
			t.Errorf("%s: sees %v, acts %v, lists %d, %v", c.who.Role, seen, acted, n, err)
		}
	}
}

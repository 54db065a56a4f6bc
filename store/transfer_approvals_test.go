package store_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// ticket issues a token to an officer.
func (p purse) ticket(t *testing.T, f exchange.Transfer, officer exchange.User, action exchange.ApprovalAction) (string, error) {
	t.Helper()
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	token := hex.EncodeToString(b)
	now := time.Now().UTC().Truncate(time.Millisecond)
	_, err := p.store.IssueTicket(t.Context(), exchange.ApprovalTicket{
		ID: storetest.NewID(t), OfficerID: officer.ID, ObjectType: exchange.ApproveTransfer, ObjectID: f.ID, Action: action, Amount: f.Amount,
		Digest: f.Digest, Channel: exchange.ChannelSignal, TokenHash: sha256.Sum256([]byte(token)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, storetest.PrincipalOf(officer))
	return token, err
}

func (p purse) mustTicket(t *testing.T, f exchange.Transfer, officer exchange.User, action exchange.ApprovalAction) string {
	t.Helper()
	token, err := p.ticket(t, f, officer, action)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func sqlState(err error) string {
	if pe, ok := errors.AsType[*pq.Error](err); ok {
		return string(pe.Code)
	}
	return ""
}

func TestApprovalsOfTwoOfficers(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "1000")
	ctx, s := t.Context(), p.store
	f := p.pending(t, "10")
	if f.ApprovalsRequired != 2 {
		t.Fatalf("%d approvals required", f.ApprovalsRequired)
	}
	if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE transfers SET status = 'queued' WHERE id = $1`, f.ID); sqlState(err) != "KV001" {
		t.Errorf("an unapproved transfer was queued: %v", err)
	}
	first := p.mustTicket(t, f, p.officers[0], exchange.Approve)
	same := p.mustTicket(t, f, p.officers[0], exchange.Approve)
	got := twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.Decide(ctx, f.ID, first, exchange.Approve) })
	if got.Status != exchange.TransferPending || got.Approvals != 1 || got.StatusDetail != exchange.WaitSecond {
		t.Fatalf("after one approval: %+v", got)
	}
	_, err := s.Decide(ctx, f.ID, same, exchange.Approve)
	wantFault(t, err, exchange.CodeConflict)
	_, err = p.ticket(t, f, p.officers[0], exchange.Approve)
	wantFault(t, err, exchange.CodeConflict)
	if list, n, err := s.PendingApprovals(ctx, p.officers[0].ID, store.Page{Number: 1, Size: 10}); err != nil || n != 0 || len(list) != 0 {
		t.Errorf("who has decided is asked again: %d, %v", n, err)
	}
	if _, n, err := s.PendingApprovals(ctx, p.officers[1].ID, store.Page{Number: 1, Size: 10}); err != nil || n != 1 {
		t.Errorf("another officer is asked about %d, %v", n, err)
	}
	got, err = s.Decide(ctx, f.ID, p.mustTicket(t, f, p.officers[1], exchange.Approve), exchange.Approve)
	if err != nil || got.Status != exchange.TransferQueued {
		t.Fatalf("after two approvals: %s, %v", got.Status, err)
	}
	payment, err := s.ChainPayment(ctx, got.PaymentID)
	if err != nil || payment.ApprovedBy != "user:"+p.officers[0].ID.String()+",user:"+p.officers[1].ID.String() {
		t.Errorf("approved by %q, %v", payment.ApprovedBy, err)
	}
	p.carry(t, got)
	wantBalance(t, s, p.balance(), "90", "0")
	wantTransfers(t, s)
}

// The requester's account may be deactivated between request and approval; its money then stays where it is.
func TestApprovalOfADeactivatedAccount(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "100000")
	f := p.pending(t, "10")
	off := false
	if _, err := p.store.UpdateUser(t.Context(), p.sender.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	token := p.mustTicket(t, f, p.officers[0], exchange.Approve)
	got := twice(t, sameTransfer, func() (exchange.Transfer, error) { return p.store.Decide(t.Context(), f.ID, token, exchange.Approve) })
	if got.Status != exchange.TransferCancelled || got.StatusDetail != exchange.DetailInactive || got.PaymentID != uuid.Nil {
		t.Errorf("approved for a deactivated account: %s (%s)", got.Status, got.StatusDetail)
	}
	wantBalance(t, p.store, p.balance(), "100", "0")
	wantTransfers(t, p.store)
}

// A subvendor's request is not carried out once its merchant, whose money it is, is deactivated.
func TestApprovalForADeactivatedMerchant(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "0.1")
	p.rule(t, "100000")
	merchant := storetest.User(t, p.store, exchange.RoleVendor)
	p.wallet, p.sender = storetest.Wallet(t, p.store, merchant), storetest.Subvendor(t, p.store, merchant)
	storetest.Deposit(t, p.store, p.wallet.ID, usdt("100"))
	r := p.request(t, "10", exchange.Recipient{Address: outside})
	r.WalletID = p.wallet.ID
	f, err := storetest.OpenTransfer(t.Context(), p.store, r, storetest.PrincipalOf(p.sender))
	if err == nil {
		_, err = p.store.AdvanceTransfer(t.Context(), f.ID)
	}
	if err == nil {
		f, err = p.store.RecordScreening(t.Context(), f.ID, clear1)
	}
	if err != nil || f.Status != exchange.TransferPending {
		t.Fatalf("the transfer is %s, %v", f.Status, err)
	}
	off := false
	if _, err := p.store.UpdateUser(t.Context(), merchant.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	got, err := p.store.Decide(t.Context(), f.ID, p.mustTicket(t, f, p.officers[0], exchange.Approve), exchange.Approve)
	if err != nil || got.Status != exchange.TransferCancelled || got.StatusDetail != exchange.DetailInactive || got.PaymentID != uuid.Nil {
		t.Errorf("approved for a deactivated merchant: %s (%s), %v", got.Status, got.StatusDetail, err)
	}
	wantTransfers(t, p.store)
}

// Concurrent decisions of officers are counted one by one, and one token counts once.
func TestApprovalsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "1000")
	f := p.pending(t, "10")
	one, two := p.mustTicket(t, f, p.officers[0], exchange.Approve), p.mustTicket(t, f, p.officers[1], exchange.Approve)
	no := p.mustTicket(t, f, p.officers[2], exchange.Reject)
	var wg sync.WaitGroup
	for range 4 {
		for _, token := range []string{one, two} {
			wg.Go(func() { _, _ = p.store.Decide(t.Context(), f.ID, token, exchange.Approve) })
		}
	}
	wg.Go(func() { _, _ = p.store.Decide(t.Context(), f.ID, no, exchange.Reject) })
	wg.Go(func() {
		_, _ = storetest.CancelTransfer(t.Context(), p.store, f.ID, storetest.PrincipalOf(p.sender))
	})
	wg.Wait()
	var n, payments int
	query := `SELECT (SELECT count(*) FROM approvals WHERE object_id = $1), (SELECT count(*) FROM chain_payments WHERE object_id = $1 AND status <> 'cancelled')`
	if err := storetest.Owner(t, p.store).QueryRowContext(t.Context(), query, f.ID).Scan(&n, &payments); err != nil {
		t.Fatal(err)
	}
	now, err := p.store.Transfer(t.Context(), store.Everything(), f.ID)
	if err != nil || n > 3 || payments > 1 {
		t.Errorf("%d decisions, %d payments, %v", n, payments, err)
	}
	if (payments == 1) != (now.Status == exchange.TransferQueued) {
		t.Errorf("the transfer is %s with %d payments", now.Status, payments)
	}
	wantTransfers(t, p.store)
}

func TestWhoMayNotDecide(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "100000")
	ctx, s := t.Context(), p.store
	f, other := p.pending(t, "10"), p.pending(t, "11")
	admin, officer := storetest.User(t, s, exchange.RoleAdmin), p.officers[0]
	for _, role := range []exchange.Role{exchange.RoleCustomer, exchange.RoleVendor, exchange.RoleOTCOfficer} {
		_, err := p.ticket(t, f, storetest.User(t, s, role), exchange.Approve)
		wantFault(t, err, exchange.CodeForbidden)
	}
	wrong := f
	wrong.Digest = other.Digest
	_, err := p.ticket(t, wrong, officer, exchange.Approve)
	wantFault(t, err, exchange.CodeInvalid)
	wrong = f
	wrong.Amount = usdt("9")
	_, err = p.ticket(t, wrong, officer, exchange.Approve)
	wantFault(t, err, exchange.CodeInvalid)

	token := p.mustTicket(t, f, officer, exchange.Approve)
	for name, try := range map[string]func() error{
		"another object": func() error { _, err := s.Decide(ctx, other.ID, token, exchange.Approve); return err },
		"another action": func() error { _, err := s.Decide(ctx, f.ID, token, exchange.Reject); return err },
		"no token":       func() error { _, err := s.Decide(ctx, f.ID, "", exchange.Approve); return err },
		"a made up one":  func() error { _, err := s.Decide(ctx, f.ID, "0123456789abcdef", exchange.Approve); return err },
	} {
		if err := try(); exchange.CodeOf(err) != exchange.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An officer who loses the right to approve loses it at once, also for existing tokens.
	off := false
	if _, err := s.UpdateUser(ctx, officer.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	_, err = s.Decide(ctx, f.ID, token, exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)

	late := p.mustTicket(t, f, admin, exchange.Approve)
	storetest.Exec(t, s, `ALTER TABLE approval_tokens DISABLE TRIGGER USER`)
	storetest.Exec(t, s, `UPDATE approval_tokens SET created_at = created_at - interval '6 minutes', expires_at = expires_at - interval '6 minutes' WHERE officer_id = $1`, admin.ID)
	storetest.Exec(t, s, `ALTER TABLE approval_tokens ENABLE TRIGGER USER`)
	_, err = s.Decide(ctx, f.ID, late, exchange.Approve)
	wantFault(t, err, exchange.CodeExpired)

	no := p.mustTicket(t, f, p.officers[1], exchange.Reject)
	got := twice(t, sameTransfer, func() (exchange.Transfer, error) { return s.Decide(ctx, f.ID, no, exchange.Reject) })
	if got.Status != exchange.TransferRejected {
		t.Errorf("rejected: %s", got.Status)
	}
	var named int
	err = storetest.Owner(t, s).QueryRowContext(ctx, `SELECT count(*) FROM audit_log WHERE object_id = $1 AND action = 'transfer.rejected' AND after::text LIKE '%approval_id%'`, f.ID).Scan(&named)
	if err != nil || named != 1 {
		t.Errorf("the audit log names the decision %d times, %v", named, err)
	}
	_, err = p.ticket(t, f, p.officers[2], exchange.Approve)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, s, p.balance(), "100", "11")
	wantTransfers(t, s)
}

// A requester never decides about the own transfer, not even by bypassing the code.
func TestRequesterNeverApproves(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "100000")
	ctx, s, officer := t.Context(), p.store, p.officers[0]
	house, err := storetest.CreateWallet(ctx, s, exchange.WalletRequest{
		ID: storetest.NewID(t), OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseTreasury, Network: exchange.Tron, Asset: money.USDT, Type: exchange.Hot,
	}, "TTreasuryOfTheHouse000000000000001", exchange.SealedKey{Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Deposit(t, s, house.ID, usdt("50"))
	r := exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: officer.ID, WalletID: house.ID, Network: exchange.Tron, Amount: usdt("5"),
		Recipient: exchange.Recipient{Address: outside},
	}
	f, err := storetest.OpenTransfer(ctx, s, r, storetest.PrincipalOf(officer))
	if err == nil {
		_, err = s.AdvanceTransfer(ctx, f.ID)
	}
	if err == nil {
		f, err = s.RecordScreening(ctx, f.ID, clear1)
	}
	if err != nil || f.Status != exchange.TransferPending {
		t.Fatalf("%s, %v", f.Status, err)
	}
	_, err = p.ticket(t, f, officer, exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
	if _, n, err := s.PendingApprovals(ctx, officer.ID, store.Page{Number: 1, Size: 10}); err != nil || n != 0 {
		t.Errorf("the requester is asked to approve: %d, %v", n, err)
	}
	// The database refuses it too: as the requester, and with a false requester.
	token := p.mustTicket(t, f, p.officers[1], exchange.Approve)
	hash := sha256.Sum256([]byte(token))
	db := storetest.Owner(t, s)
	for name, insert := range map[string]struct{ query, state string }{
		"the requester":   {`INSERT INTO approvals SELECT gen_random_uuid(), id, 'transfer', object_id, $2, $2, 'approve', digest, now() FROM approval_tokens WHERE token_hash = $1`, "23514"},
		"an unused token": {`INSERT INTO approvals SELECT gen_random_uuid(), id, 'transfer', object_id, officer_id, $2, 'approve', digest, now() FROM approval_tokens WHERE token_hash = $1`, "KV004"},
	} {
		_, err := db.ExecContext(ctx, insert.query, hash[:], officer.ID)
		if got := sqlState(err); got != "KV004" && got != insert.state {
			t.Errorf("%s approves: %v", name, err)
		}
	}
	wantTransfers(t, s)
}

// An approval by an officer who may no longer approve does not count.
func TestApprovalsOfOfficersWhoLeft(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	p.rule(t, "1000")
	ctx, s := t.Context(), p.store
	f := p.pending(t, "10")
	approve := func(officer exchange.User) exchange.Transfer {
		t.Helper()
		got, err := s.Decide(ctx, f.ID, p.mustTicket(t, f, officer, exchange.Approve), exchange.Approve)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	approve(p.officers[0])
	off := false
	if _, err := s.UpdateUser(ctx, p.officers[0].ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	if got := approve(p.officers[1]); got.Status != exchange.TransferPending || got.Approvals != 1 {
		t.Fatalf("after an officer left: %s with %d approvals", got.Status, got.Approvals)
	}
	// The database counts in the same way.
	if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE transfers SET status = 'queued' WHERE id = $1`, f.ID); sqlState(err) != "KV001" {
		t.Errorf("queued with the approval of a deactivated officer: %v", err)
	}
	got := approve(p.officers[2])
	if got.Status != exchange.TransferQueued {
		t.Errorf("after two who are here: %s", got.Status)
	}
	payment, err := s.ChainPayment(ctx, got.PaymentID)
	if err != nil || payment.ApprovedBy != "user:"+p.officers[1].ID.String()+",user:"+p.officers[2].ID.String() {
		t.Errorf("approved by %q, %v", payment.ApprovedBy, err)
	}
	wantTransfers(t, s)
}

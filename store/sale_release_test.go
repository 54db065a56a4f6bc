package store_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// seller sells from a wallet in our custody, of which officers may have to approve 1,500 shillings.
type seller struct {
	purse

	m  storetest.Market
	by exchange.Principal
}

func sellsFromWallet(t *testing.T, one, two string) seller {
	t.Helper()
	s := started(t)
	m := storetest.NewSellers(t, s)
	storetest.Deposit(t, s, m.CustomerWallet.ID, usdt("100"))
	storetest.Gas(t, s, m.CustomerWallet.ID, trx("60"))
	x := seller{purse{store: s, sender: m.Customer, wallet: m.CustomerWallet}, m, storetest.PrincipalOf(m.Customer)}
	x.without(t, one, two)
	return x
}

// sells opens a sale of 10 units, which count as 1,500 shillings.
func (x seller) sells(t *testing.T) exchange.Order {
	t.Helper()
	o, err := storetest.OpenOffRamp(t.Context(), x.store, fromWallet(t, x.m), x.by)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// decides has an officer decide about a sale with the digest of the list of what waits.
func (x seller) decides(t *testing.T, o exchange.Order, officer exchange.User, action exchange.ApprovalAction) (exchange.SaleRelease, error) {
	t.Helper()
	return x.decidesAs(t, o, officer, action, o.FundingIntent())
}

func (x seller) decidesAs(t *testing.T, o exchange.Order, officer exchange.User, action exchange.ApprovalAction, digest string) (exchange.SaleRelease, error) {
	t.Helper()
	id := storetest.NewID(t)
	k := exchange.ApprovalTicket{
		ID: id, OfficerID: officer.ID, ObjectType: exchange.ApproveSale, ObjectID: o.ID, Action: action, Amount: o.Price.Crypto, Digest: digest,
		Channel: exchange.ChannelAPI, Note: "n", TokenHash: sha256.Sum256([]byte(id.String())), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}
	if err := x.store.IssueSaleTicket(t.Context(), k, storetest.PrincipalOf(officer)); err != nil {
		return exchange.SaleRelease{}, err
	}
	return x.store.DecideSale(t.Context(), o.ID, id.String(), action)
}

func (x seller) admin(t *testing.T) exchange.User {
	t.Helper()
	return storetest.User(t, x.store, exchange.RoleTreasury)
}

// signed is what the database says to a signature of the crypto that leaves the wallet.
func (x seller) signed(t *testing.T, o exchange.Order) string {
	t.Helper()
	return decides[string](t, x.store, `SELECT funding_fault(jsonb_populate_record(p, '{"status": "signed"}')) FROM chain_payments p WHERE p.purpose = 'funding' AND p.object_id = $1`, o.ID)
}

// D8: a sale from a wallet in our custody counts like a transfer to the payee of its shillings: beside what else leaves it waits
// for officers, with its crypto held. Nothing is signed before enough of them approved exactly its terms.
func TestD8SalesFromAWalletWaitForOfficers(t *testing.T) {
	t.Parallel()
	x := sellsFromWallet(t, "3500", "30000")
	first := x.sells(t)
	if first.StatusDetail != exchange.WaitDeposit || x.signed(t, first) != "" {
		t.Fatalf("the first sale waits for %s", first.StatusDetail)
	}
	if f := x.goes(t, "10", elsewhere(t)); f.Status != exchange.TransferQueued {
		t.Fatalf("a transfer beside the sale is %s", f.Status)
	}
	o := x.sells(t)
	if o.Status != exchange.OrderPending || o.StatusDetail != exchange.WaitApproval || x.signed(t, o) != "it is not released" {
		t.Fatalf("the second sale is %s (%s), a signature is %q", o.Status, o.StatusDetail, x.signed(t, o))
	}
	officer := x.admin(t)
	list, err := x.store.PendingSales(t.Context(), officer.ID)
	if err != nil || len(list) != 1 || list[0].Order.ID != o.ID || list[0].Digest != o.FundingIntent() || list[0].Needed != 1 {
		t.Errorf("an officer may decide %+v, %v", list, err)
	}
	if r, err := x.store.ReleaseSale(t.Context(), o.ID); err != nil || r.Passed || r.Needed != 1 {
		t.Errorf("without an officer: %+v, %v", r, err)
	}
	_, err = storetest.Owner(t, x.store).ExecContext(t.Context(), `UPDATE releases SET officers = 0, passed_at = now() WHERE object_id = $1`, o.ID)
	if sqlState(err) != "KV006" {
		t.Errorf("past the code: %v", err)
	}
	_, err = storetest.Owner(t, x.store).ExecContext(t.Context(), `UPDATE chain_payments SET status = 'signed', version = version + 1 WHERE purpose = 'funding' AND object_id = $1`, o.ID)
	if err == nil || !strings.Contains(err.Error(), "it is not released") {
		t.Errorf("its payment is signed: %v", err)
	}
	_, err = x.decidesAs(t, o, officer, exchange.Approve, first.FundingIntent())
	wantFault(t, err, exchange.CodeInvalid)
	_, err = x.decides(t, o, x.m.Customer, exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
	r, err := x.decides(t, o, officer, exchange.Approve)
	if err != nil || !r.Passed || r.Order.StatusDetail != exchange.WaitDeposit || x.signed(t, o) != "" {
		t.Errorf("approved: %+v, %v, a signature is %q", r, err, x.signed(t, o))
	}
	if again, err := x.store.ReleaseSale(t.Context(), o.ID); err != nil || !again.Passed {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	_, err = x.decides(t, o, x.admin(t), exchange.Approve)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBooks(t, x.store)
}

// A large sale takes two officers, and one who is switched off does not count.
func TestLargeSalesTakeTwoOfficers(t *testing.T) {
	t.Parallel()
	x := sellsFromWallet(t, "100", "1000")
	o := x.sells(t)
	one := x.admin(t)
	r, err := x.decides(t, o, one, exchange.Approve)
	if err != nil || r.Passed || r.Needed != 2 || r.Approvals != 1 || r.Order.StatusDetail != exchange.WaitSecond {
		t.Fatalf("after one: %+v, %v", r, err)
	}
	_, err = x.decides(t, o, one, exchange.Approve)
	wantFault(t, err, exchange.CodeConflict)
	storetest.Exec(t, x.store, `UPDATE users SET is_active = false WHERE id = $1`, one.ID)
	if r, err = x.decides(t, o, x.admin(t), exchange.Approve); err != nil || r.Passed {
		t.Errorf("one of the two is switched off: %+v, %v", r, err)
	}
	if r, err = x.decides(t, o, x.admin(t), exchange.Approve); err != nil || !r.Passed {
		t.Errorf("two approved: %+v, %v", r, err)
	}
}

// One refusal frees the crypto in the wallet and what it counted, and no approval helps any more.
func TestRefusedSaleFreesItsCrypto(t *testing.T) {
	t.Parallel()
	x := sellsFromWallet(t, "100", "10000")
	o := x.sells(t)
	wantBalance(t, x.store, exchange.Owned(exchange.AccWalletBalance, x.wallet.ID, o.Asset), "100", "10")
	r, err := x.decides(t, o, x.admin(t), exchange.Reject)
	if err != nil || !r.GivenUp || r.Passed {
		t.Fatalf("rejected: %+v, %v", r, err)
	}
	wantBalance(t, x.store, exchange.Owned(exchange.AccWalletBalance, x.wallet.ID, o.Asset), "100", "0")
	_, err = x.decides(t, o, x.admin(t), exchange.Approve)
	wantFault(t, err, exchange.CodeStateConflict)
	if r, err = x.store.ReleaseSale(t.Context(), o.ID); err != nil || !r.GivenUp {
		t.Errorf("repeated: %+v, %v", r, err)
	}
	done, err := x.store.CloseOffRamp(t.Context(), o.ID, exchange.DetailRejected, exchange.Asked{})
	if err != nil || done.Status != exchange.OrderCancelled || done.StatusDetail != exchange.DetailRejected {
		t.Errorf("closed: %+v, %v", done, err)
	}
	if sum := decides[string](t, x.store, `SELECT coalesce(sum(value), 0)::text FROM releases WHERE counts_until > now()`); sum != "0" {
		t.Errorf("%s shillings count still", sum)
	}
	wantBooks(t, x.store)
}

// An approval of a sale fits only a sale that waits, and is never anybody's who takes part.
func TestApprovalsOfSalesAreGuarded(t *testing.T) {
	t.Parallel()
	x := sellsFromWallet(t, "100000", "200000")
	o := x.sells(t) // it waits for nobody
	_, err := x.decides(t, o, x.admin(t), exchange.Approve)
	wantFault(t, err, exchange.CodeStateConflict)
	officer := x.admin(t)
	const forged = `
		INSERT INTO approval_tokens (id, token_hash, officer_id, object_type, object_id, action, asset, amount, digest, channel, note, created_at, expires_at, used_at)
			SELECT '0192f0a0-0000-7000-8000-00000000000a', sha256('x'), $1, 'order', r.object_id, 'approve', 'USDT', 10, r.digest, 'api', '', now(), now() + interval '1 minute', now()
			FROM releases r WHERE r.object_id = $2`
	storetest.Exec(t, x.store, forged, officer.ID, o.ID)
	_, err = storetest.Owner(t, x.store).ExecContext(t.Context(), `
		INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at)
			SELECT gen_random_uuid(), '0192f0a0-0000-7000-8000-00000000000a', 'order', r.object_id, $1, r.requester_id, 'approve', r.digest, now()
			FROM releases r WHERE r.object_id = $2`, officer.ID, o.ID)
	if sqlState(err) != "KV004" {
		t.Errorf("an approval of a sale that waits for nobody: %v", err)
	}
}

// A refusal that is counted past the code stops the release, whatever others approve.
func TestRefusalStopsTheReleaseInTheDatabase(t *testing.T) {
	t.Parallel()
	x := sellsFromWallet(t, "100", "10000")
	o, no := x.sells(t), x.admin(t)
	storetest.Exec(t, x.store, `
		INSERT INTO approval_tokens (id, token_hash, officer_id, object_type, object_id, action, asset, amount, digest, channel, note, created_at, expires_at, used_at)
			SELECT '0192f0a0-0000-7000-8000-00000000000b', sha256('x'), $1, 'order', r.object_id, 'reject', 'USDT', 10, r.digest, 'api', 'no', now(), now() + interval '1 minute', now()
			FROM releases r WHERE r.object_id = $2`, no.ID, o.ID)
	storetest.Exec(t, x.store, `
		INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at)
			SELECT gen_random_uuid(), '0192f0a0-0000-7000-8000-00000000000b', 'order', r.object_id, $1, r.requester_id, 'reject', r.digest, now()
			FROM releases r WHERE r.object_id = $2`, no.ID, o.ID)
	_, err := x.decides(t, o, x.admin(t), exchange.Approve)
	wantFault(t, err, exchange.CodeForbidden)
}

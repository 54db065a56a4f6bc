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

// adopting is an account that exists at an address and is no wallet yet.
func (h *shared) adopting(t *testing.T, n exchange.Network) exchange.MultisigAccount {
	t.Helper()
	return h.agreed(t, h.asks(t, n, existing(t)))
}

func (h *shared) activates(t *testing.T, a exchange.MultisigAccount, block uint64, some ...money.Amount) (exchange.MultisigAccount, error) {
	t.Helper()
	return h.chain.ActivateMultisig(t.Context(), a.ID, quorumOf(a, block), holds(a.Network, some...))
}

// What an account has when it becomes a wallet is the house's, in the books, in the reserves and in the comparison with the chain.
func TestWhatAnAdoptedAccountHasIsBooked(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a := h.adopting(t, exchange.Tron)
	twice(t, sameMultisig, func() (exchange.MultisigAccount, error) { return h.activates(t, a, 103, usdt("30"), trx("4")) })
	w := exchange.Wallet{ID: a.ID, Network: exchange.Tron}
	wantBalance(t, h.s, custody(w), "30", "0")
	wantBalance(t, h.s, owed(w, money.USDT), "30", "0")
	wantBalance(t, h.s, exchange.Owned(exchange.AccCustody, a.ID, money.TRX), "4", "0")
	wantBalance(t, h.s, exchange.House(exchange.AccCapital, money.TRX), "4", "0")
	for _, r := range reservesOf(t, h.s) {
		if r.Asset == money.USDT && (!r.Owed.IsZero() || !r.Equity.Equal(usdt("30")) || !r.Custody.Equal(usdt("30"))) {
			t.Errorf("the reserves are %+v", r)
		}
	}
	for n := uint64(101); n <= 103; n++ {
		finalBlock(t, h.chain, scanOf(blockOf("a", n)))
	}
	for block, had := range map[uint64]string{103: "30", 102: "0"} {
		if got := compare(t, h.s, readingAt(w, block, usdt(had))); got[0].Differs() || got[0].Deferred {
			t.Errorf("compared at %d: %+v", block, got)
		}
	}
	wantBooks(t, h.s)
	b := h.adopting(t, exchange.Solana)
	for what, balances := range map[string][]money.Amount{
		"without one":       {usdt("1")},
		"with one twice":    {usdt("1"), usdc("1"), usdc("1")},
		"with coins":        {usdt("1"), usdc("1"), money.Must(money.SOL, "1")},
		"with another coin": {usdt("1"), usdc("1"), trx("1")},
		"below zero":        {usdt("1").Neg(), usdc("1")},
	} {
		if _, err := h.chain.ActivateMultisig(t.Context(), b.ID, quorumOf(b, 103), balances); exchange.CodeOf(err) != exchange.CodeInternal {
			t.Errorf("balances %s: %v", what, err)
		}
	}
}

// Whatever the deposit watch has read, each movement is in the opening balance or booked by the watch.
func TestEachMovementOfAnAdoptedAccountIsBookedOnce(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	treasury := storetest.TreasuryWallet(t, h.s, exchange.Tron)
	behind, ahead := h.adopting(t, exchange.Tron), h.adopting(t, exchange.Tron)
	if _, err := h.activates(t, behind, 102, usdt("30")); err != nil {
		t.Fatal(err)
	}
	finalBlock(t, h.chain, scanOf(blockOf("a", 101), moveOf("had", stranger, behind.Address, usdt("20"))))
	finalBlock(t, h.chain, scanOf(blockOf("a", 102), moveOf("had too", treasury.Address, behind.Address, usdt("10"))))
	seenBlock(t, h.chain, scanOf(blockOf("a", 103), moveOf("new", stranger, behind.Address, usdt("1"))))
	finalBlock(t, h.chain, scanOf(blockOf("a", 103), moveOf("new", stranger, behind.Address, usdt("1")), moveOf("early", stranger, ahead.Address, usdt("7"))))
	finalBlock(t, h.chain, scanOf(blockOf("a", 104), moveOf("other", stranger, treasury.Address, usdt("2"))))
	wantDeposit(t, h.s, "new", exchange.DepositHouse, exchange.DepositFinal)
	wantDeposit(t, h.s, "had too", exchange.DepositOutgoing, exchange.DepositFinal)
	wantBalance(t, h.s, custody(exchange.Wallet{ID: behind.ID}), "31", "0")
	if all := deposits(t, h.s, "had"); len(all) != 0 {
		t.Errorf("the watch knows %+v", all)
	}
	_, err := h.activates(t, ahead, 102)
	wantFault(t, err, exchange.CodeUnavailable)
	if _, err := h.activates(t, ahead, 103, usdt("7")); err != nil { // nothing moved since, though the watch is further
		t.Fatal(err)
	}
	finalBlock(t, h.chain, scanOf(blockOf("a", 105), moveOf("later", stranger, ahead.Address, usdt("3"))))
	wantBalance(t, h.s, custody(exchange.Wallet{ID: ahead.ID}), "10", "0")
	late := h.adopting(t, exchange.Tron)
	for _, block := range []uint64{104, 9000} { // before it was watched, and before it can exist
		_, err := h.activates(t, late, block)
		wantFault(t, err, exchange.CodeUnavailable)
	}
	if _, err := h.activates(t, late, 105); err != nil {
		t.Fatal(err)
	}
	h.every(t, "books what was there", `INSERT INTO chain_deposits (id, network, tx_id, event_index, from_address, to_address, asset, amount, wallet_id, kind, status, block, block_id, created_at,
		updated_at, final_at) VALUES (gen_random_uuid(), 'tron', 'again', 0, 'x', `+quoted(behind.Address)+`, 'USDT', 20, `+quotedID(behind.ID)+`, 'house', 'seen', 102, 'b', now(), now(), NULL)`,
		`UPDATE chain_deposits SET status = 'final', final_at = now(), version = version + 1 WHERE tx_id = 'again'`)
	h.every(t, "forgets what moved", `DELETE FROM multisig_moves`)
	wantBooks(t, h.s)
}

// A payment of ours that went to an account before it was a wallet is in its opening balance, and one that went there later is booked when it is
// final, whichever ends first.
func TestPaymentsToAnAdoptedAccountAreBookedOnce(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a := h.adopting(t, exchange.Tron)
	before, after := h.transferTo(t, a.Address), h.transferTo(t, a.Address)
	final := func(tx exchange.ChainAttempt, block uint64) {
		if _, err := h.chain.RecordFinal(t.Context(), tx.ID, true, block, "b", trx("0.1"), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.activates(t, a, 103, usdt("20")); err != nil {
		t.Fatal(err)
	}
	final(before, 103)
	final(after, 104)
	wantBalance(t, h.s, custody(exchange.Wallet{ID: a.ID}), "40", "0")
	b := h.adopting(t, exchange.Tron)
	final(h.transferTo(t, b.Address), 105)
	_, err := h.activates(t, b, 104)
	wantFault(t, err, exchange.CodeUnavailable)
	if _, err := h.activates(t, b, 105, usdt("20")); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, h.s, custody(exchange.Wallet{ID: b.ID}), "20", "0")
	wantBooks(t, h.s)
}

// transferTo is the signed transaction of a transfer of 20 USDT of a new customer to an address.
func (h *shared) transferTo(t *testing.T, address string) exchange.ChainAttempt {
	t.Helper()
	p := newPurseIn(t, h.s, "100")
	f, err := p.tries(t, p.request(t, "20", exchange.Recipient{Address: address}))
	if err != nil || f.Status != exchange.TransferQueued {
		t.Fatalf("the transfer is %+v, %v", f, err)
	}
	if _, err := h.s.SignTransfer(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	return sign(t, h.s, payment(t, h.s, f.PaymentID))
}

// paying is a purse of the house with 5,000 USDT.
func (h *shared) paying(t *testing.T) purse {
	t.Helper()
	p := purse{store: h.s, sender: storetest.User(t, h.s, exchange.RoleTreasury), wallet: storetest.TreasuryWallet(t, h.s, exchange.Tron), officers: []exchange.User{
		storetest.User(t, h.s, exchange.RoleTreasury), storetest.User(t, h.s, exchange.RoleTreasury),
	}}
	storetest.Deposit(t, h.s, p.wallet.ID, usdt("5000"))
	storetest.Gas(t, h.s, p.wallet.ID, trx("1000"))
	return p
}

// What goes to an account of several owners leaves the house as far as the rule about all that leaves is concerned: it rests there for the first
// time, needs officers by its value, and counts.
func TestWhatGoesToSeveralOwnersIsReleasedAsWhatLeaves(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a, p := h.active(t, exchange.Tron), h.paying(t)
	storetest.Patch(t, h.s, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleTreasury: {PerTransaction: kes("300000")}}, Rules: rule("1000", "30000"),
	})
	f := p.goes(t, "1400", exchange.Recipient{WalletID: a.ID}) // a unit counts as 150 shillings
	if f.Kind != exchange.InternalTransfer || f.Status != exchange.TransferPending || f.ApprovalsRequired != 2 || f.RestsUntil.IsZero() {
		t.Errorf("a transfer waits as %+v", f)
	}
	_, err := p.tries(t, p.request(t, "2100", exchange.Recipient{WalletID: a.ID}))
	wantFault(t, err, exchange.CodeLimitReached)
	p.approve(t, f, p.officers[0])
	if f = p.approve(t, f, p.officers[1]); f.Status != exchange.TransferQueued {
		t.Errorf("the approved transfer is %+v", f)
	}
	own := p.goes(t, "1400", exchange.Recipient{WalletID: storetest.TreasuryWallet(t, h.s, exchange.Tron).ID})
	if own.ApprovalsRequired != 1 || !own.RestsUntil.IsZero() {
		t.Errorf("a transfer to the house's own wallet waits as %+v", own)
	}
	h.every(t, "calls it the house's own", `UPDATE releases SET exempt = 'own', inside = true WHERE object_id = `+quotedID(f.ID))
	wantTransfers(t, h.s)
}

// Nothing of ours goes to an account whose owners are others than were agreed, whether it is asked for, queued or signed.
func TestNothingGoesToOtherOwners(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a, p := h.active(t, exchange.Tron), h.paying(t)
	queued, waiting := p.goes(t, "1", exchange.Recipient{WalletID: a.ID}), p.goes(t, "1", exchange.Recipient{Address: a.Address})
	queued = p.approve(t, queued, p.officers[0])
	q := quorumOf(a, 101)
	q.Threshold = 1
	if _, err := h.chain.CheckedMultisig(t.Context(), a.ID, q); err != nil {
		t.Fatal(err)
	}
	if _, err := p.tries(t, p.request(t, "1", exchange.Recipient{WalletID: a.ID})); fieldOf(err) != "/recipient/wallet_id" {
		t.Errorf("a transfer is opened: %v", err)
	}
	if waiting = p.approve(t, waiting, p.officers[0]); waiting.Status != exchange.TransferBlocked || waiting.PaymentID != uuid.Nil {
		t.Errorf("an approved transfer is %+v", waiting)
	}
	err := h.together(t, store.RoleFlows, `INSERT INTO chain_payments SELECT (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(), 'n', 2))).* FROM chain_payments p WHERE p.id = `+
		quotedID(queued.PaymentID))
	if !refused(err) || !strings.Contains(err.Error(), "other owners than were agreed") {
		t.Errorf("a payment is approved: %v", err)
	}
	if _, err := h.s.SignTransfer(t.Context(), queued.ID); err != nil {
		t.Fatal(err)
	}
	id := storetest.NewID(t)
	_, err = h.signer.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: queued.PaymentID, Network: exchange.Tron, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := h.chain.CheckedMultisig(t.Context(), a.ID, quorumOf(a, 102)); err != nil {
		t.Fatal(err)
	}
	sign(t, h.s, payment(t, h.s, queued.PaymentID))
}

// What lies in an account whose owners are others than were agreed is in no report of the reserves.
func TestWhatOtherOwnersHoldIsNoReserve(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a, b := h.adopting(t, exchange.Tron), h.adopting(t, exchange.Tron)
	for _, x := range []exchange.MultisigAccount{a, b} {
		if _, err := h.activates(t, x, 100, usdt("30"), trx("4")); err != nil {
			t.Fatal(err)
		}
	}
	q := quorumOf(a, 101)
	q.Threshold = 1
	if _, err := h.chain.CheckedMultisig(t.Context(), a.ID, q); err != nil {
		t.Fatal(err)
	}
	for _, r := range reservesOf(t, h.s) {
		want := map[money.Asset]money.Amount{money.USDT: usdt("30"), money.TRX: trx("4")}[r.Asset]
		if want.Positive() && (!r.Owed.IsZero() || !r.Equity.Equal(want) || !r.Custody.Equal(want)) {
			t.Errorf("the reserves are %+v", r)
		}
	}
}

// An address that is ours, that is denied, or that we pay as another's is none of an account of ours, neither when it is asked for nor when it is
// confirmed.
func TestAddressesOfAccountsAreNobodyElses(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	merchant := storetest.User(t, h.s, exchange.RoleVendor)
	own := storetest.Wallet(t, h.s, storetest.User(t, h.s, exchange.RoleCustomer))
	for pointer, change := range map[string]func(*exchange.MultisigRequest){
		"/multisig/owners/1/address": func(r *exchange.MultisigRequest) { r.Owners[1].Address = own.Address },
		"/multisig/address":          func(r *exchange.MultisigRequest) { h.denies(t, r.Address) },
		"/multisig/address ":         func(r *exchange.MultisigRequest) { h.transferTo(t, r.Address) },
		"/multisig/owners/0/address": func(r *exchange.MultisigRequest) { h.denies(t, r.Owners[0].Address) },
		"/multisig/address  ": func(r *exchange.MultisigRequest) {
			storetest.Destination(t, h.s, exchange.Destination{ID: storetest.NewID(t), MerchantID: merchant.ID, Kind: exchange.DestinationAddress, Label: "x", Network: exchange.Tron, Address: r.Address},
				storetest.PrincipalOf(merchant))
		},
	} {
		later := h.asks(t, exchange.Tron, existing(t))
		c := h.proposes(t, later)
		now := h.asks(t, exchange.Tron, existing(t))
		change(&now)
		if _, err := h.api.ProposeMultisigWallet(ctx, now, h.one); fieldOf(err) != strings.TrimSpace(pointer) {
			t.Errorf("%s: %v", pointer, err)
		}
		if change(&later); later.Owners[1].Address == own.Address {
			continue // what was proposed has another owner
		}
		_, err := h.api.ConfirmChange(ctx, c.ID, "", h.two)
		wantFault(t, err, exchange.CodeStateConflict)
	}
}

// denies puts an address on the deny list.
func (h *shared) denies(t *testing.T, address string) {
	t.Helper()
	storetest.Exec(t, h.s, `INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES (gen_random_uuid(), 'tron', $1, 'x', $2, now())`, address, h.one.UserID)
}

// A destination that a merchant saved before its address was ours stays one outside of our custody: withdrawals there keep their terms.
func TestDestinationsStayOutside(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.open(t, c.buys(t, "3000"))
	terms := `SELECT coalesce(recipient, '') || ' ' || inside FROM release_terms('withdrawal', $1)`
	read := func() (s string) {
		if err := storetest.Owner(t, c.s).QueryRowContext(t.Context(), terms, w.ID).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := read()
	h := &shared{s: c.s, api: c.s, flows: c.s, chain: c.s, signer: c.s, one: c.one, two: c.boss}
	a := h.adopting(t, exchange.Tron)
	storetest.Exec(t, c.s, `BEGIN; ALTER TABLE multisig_accounts DISABLE TRIGGER USER; UPDATE multisig_accounts SET address = '`+c.chain.Address+`' WHERE id = '`+a.ID.String()+`'; 
		ALTER TABLE multisig_accounts ENABLE TRIGGER USER; COMMIT`)
	if _, err := h.activates(t, h.account(t, a.ID), 100); err != nil {
		t.Fatal(err)
	}
	if after := read(); after != before {
		t.Errorf("it was to leave for %s, and now for %s", before, after)
	}
}

package store_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// shared is a house with gas wallets and two officers, whose processes have logins of their own.
type shared struct {
	s, api, flows, chain, signer *store.Store
	one, two                     exchange.Principal
	gas                          map[exchange.Network]exchange.Wallet
	logins                       map[store.Role]*sql.Conn
}

func newShared(t *testing.T) *shared {
	t.Helper()
	url := storetest.URL(t)
	as := func(r store.Role) *store.Store { return storetest.OpenAs(t, url, r, store.Options{}) }
	h := &shared{
		s: storetest.Open(t, url, store.Options{}), api: as(store.RoleAPI), flows: as(store.RoleFlows), chain: as(store.RoleChain), signer: as(store.RoleSigner),
		gas: map[exchange.Network]exchange.Wallet{}, logins: map[store.Role]*sql.Conn{},
	}
	h.one, h.two = storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleAdmin))
	for _, n := range []exchange.Network{exchange.Ethereum, exchange.Solana} {
		h.gas[n] = storetest.GasWallet(t, h.s, n)
		storetest.Gas(t, h.s, h.gas[n].ID, money.Must(n.NativeCoin(), "5"))
	}
	for _, n := range exchange.Networks() {
		if _, err := h.chain.StartDeposits(t.Context(), n, blockOf("a", 100)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// place is an address that exists on no chain.
func placeOf(t *testing.T) string {
	t.Helper()
	return "Shared-" + storetest.NewID(t).String()
}

// asks is a request for a new account of two owners outside and the first officer.
func (h *shared) asks(t *testing.T, n exchange.Network, change ...func(*exchange.MultisigRequest)) exchange.MultisigRequest {
	t.Helper()
	r := exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: n, Asset: money.USDT, Name: "Reserve", Label: "cold", Custody: exchange.MultisigSelf, Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: placeOf(t), Label: "A"}, {Address: placeOf(t)}, {UserID: h.one.UserID}},
		Policy: exchange.MultisigPolicy{Approvals: 1, Rules: []exchange.MultisigRule{{Above: kes("1000.5"), Approvals: 2}, {Above: kes("50000"), Approvals: 3}}},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// existing asks for an account that is on the chain already.
func existing(t *testing.T) func(*exchange.MultisigRequest) {
	return func(r *exchange.MultisigRequest) { r.Address, r.Owners[2].Address = placeOf(t), placeOf(t) }
}

func (h *shared) proposes(t *testing.T, r exchange.MultisigRequest) exchange.ControlChange {
	t.Helper()
	c, err := h.api.ProposeMultisigWallet(t.Context(), r, h.one)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h *shared) account(t *testing.T, id uuid.UUID) exchange.MultisigAccount {
	t.Helper()
	a, err := h.api.MultisigAccount(t.Context(), store.Everything(), id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// agreed is an account that two officers agreed to.
func (h *shared) agreed(t *testing.T, r exchange.MultisigRequest) exchange.MultisigAccount {
	t.Helper()
	if _, err := h.api.ConfirmChange(t.Context(), h.proposes(t, r).ID, "", h.two); err != nil {
		t.Fatal(err)
	}
	return h.account(t, r.ID)
}

// keyed is an account whose owners all have addresses.
func (h *shared) keyed(t *testing.T, a exchange.MultisigAccount) exchange.MultisigAccount {
	t.Helper()
	for _, o := range a.Owners {
		if o.Held {
			if _, err := h.signer.StoreOwnerKey(t.Context(), a.ID, o.N, placeOf(t), sealedFor(a.ID)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h.account(t, a.ID)
}

func rentOf(n exchange.Network) money.Amount {
	if n == exchange.Solana {
		return money.Must(money.SOL, "0.003361680")
	}
	return money.Zero(money.ETH)
}

// opening is an account on Solana whose opening payment is approved.
func (h *shared) opening(t *testing.T) exchange.MultisigAccount {
	t.Helper()
	a := h.keyed(t, h.agreed(t, h.asks(t, exchange.Solana)))
	a, err := h.flows.OpenMultisig(t.Context(), a.ID, placeOf(t), rentOf(exchange.Solana))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signs stores a transaction of an opening payment.
func (h *shared) signs(t *testing.T, a exchange.MultisigAccount) exchange.ChainAttempt {
	t.Helper()
	p := payment(t, h.s, a.PaymentID)
	if a.Network == exchange.Ethereum {
		return signNext(t, h.signer, p)
	}
	id := storetest.NewID(t)
	signed, err := h.signer.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("x"), RefBlock: "b", LastValidHeight: 100})
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func payment(t *testing.T, s *store.Store, id uuid.UUID) exchange.ChainPayment {
	t.Helper()
	p, err := s.ChainPayment(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// quorumOf is what the chain says when it has what was agreed.
func quorumOf(a exchange.MultisigAccount, block uint64) exchange.MultisigQuorum {
	q := exchange.MultisigQuorum{Address: a.Address, Threshold: a.Threshold, Block: block, BlockID: "b"}
	for _, o := range a.Owners {
		q.Owners = append(q.Owners, exchange.MultisigOwner{Address: o.Address, Weight: o.Weight})
	}
	if a.Network == exchange.Tron {
		q.ControlThreshold = a.Threshold + 1
	}
	return q
}

// holds is what an account has: nothing of each asset that it can move, but for some.
func holds(n exchange.Network, some ...money.Amount) []money.Amount {
	w := exchange.Wallet{Network: n, Custody: exchange.Multisig}
	for _, asset := range n.WalletAssets() {
		if w.Moves(asset) && !slices.ContainsFunc(some, func(m money.Amount) bool { return m.Asset() == asset }) {
			some = append(some, money.Zero(asset))
		}
	}
	return some
}

// active is an adopted account that is a wallet.
func (h *shared) active(t *testing.T, n exchange.Network, change ...func(*exchange.MultisigRequest)) exchange.MultisigAccount {
	t.Helper()
	a := h.agreed(t, h.asks(t, n, append([]func(*exchange.MultisigRequest){existing(t)}, change...)...))
	a, err := h.chain.ActivateMultisig(t.Context(), a.ID, quorumOf(a, 100), holds(n))
	if err != nil || a.Status != exchange.MultisigActive {
		t.Fatalf("it is %+v, %v", a, err)
	}
	return a
}

func sameMultisig(a, b exchange.MultisigAccount) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version && a.PaymentID == b.PaymentID && a.Address == b.Address
}

// Two officers agree to a new account, the signer makes the officer's key, a payment of the house opens it, and it is a wallet when the final
// chain has it as agreed. Every process does its part with its own login.
func TestAnAccountOfSeveralOwnersIsOpened(t *testing.T) {
	t.Parallel()
	for n, spent := range map[exchange.Network]string{exchange.Ethereum: "0.001", exchange.Solana: "0.00436168"} {
		h := newShared(t)
		ctx := t.Context()
		r := h.asks(t, n)
		a := h.agreed(t, r)
		if a.Status != exchange.MultisigPreparing || a.Address != "" || a.Adopted || len(a.Owners) != 3 || !a.Owners[2].Held || a.Owners[2].Address != "" || a.Owners[0].Label != "A" ||
			!a.Policy.Rules[1].Above.Equal(kes("50000")) || !a.Policy.Rules[0].Above.Equal(kes("1000.5")) || a.Policy.Needed(kes("50001")) != 3 || a.RequestedBy != h.one.UserID {
			t.Fatalf("agreed: %+v", a)
		}
		_, err := h.flows.OpenMultisig(ctx, a.ID, placeOf(t), rentOf(n))
		wantFault(t, err, exchange.CodeStateConflict)
		made := twice(t, func(a, b exchange.MultisigOwner) bool { return a == b }, func() (exchange.MultisigOwner, error) {
			return h.signer.StoreOwnerKey(ctx, a.ID, 3, placeOf(t), sealedFor(a.ID))
		})
		_, err = h.signer.StoreOwnerKey(ctx, a.ID, 1, placeOf(t), sealedFor(a.ID))
		wantFault(t, err, exchange.CodeStateConflict)
		if key, err := h.signer.OwnerKey(ctx, a.ID, 3); err != nil || key.WalletID != a.ID || key.Purpose != exchange.OwnerKeyPurpose(3) || key.Network != n {
			t.Fatalf("the key is %+v, %v", key, err)
		}
		address := placeOf(t)
		a = twice(t, sameMultisig, func() (exchange.MultisigAccount, error) { return h.flows.OpenMultisig(ctx, a.ID, address, rentOf(n)) })
		p := payment(t, h.s, a.PaymentID)
		if a.Owners[2].Address != made.Address || p.Purpose != exchange.ForMultisigOpen || p.ToAddress != address || p.WalletID != h.gas[n].ID || !p.Amount.Equal(rentOf(n)) || p.HoldID != uuid.Nil {
			t.Fatalf("opened by %+v", p)
		}
		_, err = h.chain.RefuseMultisig(ctx, a.ID, "x")
		wantFault(t, err, exchange.CodeStateConflict)
		tx := h.signs(t, a)
		_, err = h.chain.ActivateMultisig(ctx, a.ID, quorumOf(a, 107), holds(n))
		wantFault(t, err, exchange.CodeStateConflict)
		if _, err := h.chain.RecordFinal(ctx, tx.ID, true, 109, "nine", money.Must(n.NativeCoin(), "0.001"), ""); err != nil {
			t.Fatal(err)
		}
		other := quorumOf(a, 109)
		other.Threshold = 1
		_, err = h.chain.ActivateMultisig(ctx, a.ID, other, holds(n))
		wantFault(t, err, exchange.CodeStateConflict)
		_, err = h.chain.ActivateMultisig(ctx, a.ID, quorumOf(a, 108), holds(n)) // before its payment
		wantFault(t, err, exchange.CodeUnavailable)
		a = twice(t, sameMultisig, func() (exchange.MultisigAccount, error) {
			return h.chain.ActivateMultisig(ctx, a.ID, quorumOf(a, 109), holds(n))
		})
		w, err := h.api.Wallet(ctx, store.Everything(), a.ID)
		if err != nil || a.Status != exchange.MultisigActive || w.Purpose != exchange.HouseMultisig || w.Custody != exchange.Multisig || w.Type != exchange.Cold || w.OwnerID != uuid.Nil ||
			w.Address != address || w.Label != r.Label || w.OwnerType != exchange.OwnerTreasury || w.IsDefault {
			t.Errorf("the wallet is %+v, %v", w, err)
		}
		wantBalance(t, h.s, exchange.Owned(exchange.AccCustody, h.gas[n].ID, n.NativeCoin()), money.Must(n.NativeCoin(), "5").Sub(money.Must(n.NativeCoin(), spent)).String(), "0")
		wantBalance(t, h.s, exchange.House(exchange.AccNetworkFees, n.NativeCoin()), spent, "0")
		if got := eventsOf(t, h.s, a.ID); !slices.Equal(got, []string{"multisig_account.preparing", "multisig_account.opening", "wallet.created", "multisig_account.active"}) {
			t.Errorf("events: %v", got)
		}
		wantBooks(t, h.s)
	}
}

// An adopted account is a wallet when the final chain has the agreed owners and threshold, and refused with the difference otherwise.
func TestAnAccountOfSeveralOwnersIsAdopted(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.active(t, exchange.Tron)
	if a.ControlThreshold != 3 || a.CheckedBlock != 100 || a.CheckedAt.IsZero() || !a.Adopted {
		t.Errorf("it is %+v", a)
	}
	strange := h.agreed(t, h.asks(t, exchange.Ethereum, existing(t)))
	q := quorumOf(strange, 100)
	q.Owners[1].Address = placeOf(t)
	refused := twice(t, sameMultisig, func() (exchange.MultisigAccount, error) {
		return h.chain.ActivateMultisig(ctx, strange.ID, q, holds(exchange.Ethereum))
	})
	if refused.Status != exchange.MultisigRefused || !strings.Contains(refused.StatusDetail, q.Owners[1].Address) {
		t.Errorf("it is %+v", refused)
	}
	_, err := h.api.Wallet(ctx, store.Everything(), strange.ID)
	wantFault(t, err, exchange.CodeNotFound)
	missing := h.agreed(t, h.asks(t, exchange.Ethereum, existing(t)))
	long := strings.Repeat("x", 500)
	refused = twice(t, sameMultisig, func() (exchange.MultisigAccount, error) { return h.chain.RefuseMultisig(ctx, missing.ID, long) })
	if refused.Status != exchange.MultisigRefused || len(refused.StatusDetail) != 300 {
		t.Errorf("it is %+v", refused)
	}
	_, err = h.flows.OpenMultisig(ctx, missing.ID, placeOf(t), rentOf(exchange.Ethereum))
	if got := h.account(t, missing.ID); err != nil || got.Status != exchange.MultisigRefused || got.PaymentID != uuid.Nil {
		t.Errorf("a refused one is opened: %+v, %v", got, err)
	}
	again := h.asks(t, exchange.Ethereum, existing(t))
	again.Address = missing.Address // a refused account may be asked for again
	h.agreed(t, again)
}

// The owners of a wallet are read again and again. When they are others, it differs until they are the agreed ones again; an older block than
// the last one says nothing, nor one that can't exist yet.
func TestOwnersOfAWalletAreReadAgain(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a := h.active(t, exchange.Ethereum)
	tries := func(block uint64, threshold int) (exchange.MultisigAccount, error) {
		q := quorumOf(a, block)
		q.Threshold = threshold
		return h.chain.CheckedMultisig(t.Context(), a.ID, q)
	}
	read := func(block uint64, threshold int) exchange.MultisigAccount {
		out, err := tries(block, threshold)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, step := range []struct {
		block     uint64
		threshold int
		want      exchange.MultisigStatus
		checked   uint64
	}{
		{100, 1, exchange.MultisigActive, 100},
		{101, 2, exchange.MultisigActive, 101},
		{102, 1, exchange.MultisigDiffers, 102},
		{102, 2, exchange.MultisigDiffers, 102},
		{103, 3, exchange.MultisigDiffers, 103},
		{104, 2, exchange.MultisigActive, 104},
	} {
		if got := read(step.block, step.threshold); got.Status != step.want || got.CheckedBlock != step.checked || (got.StatusDetail != "") != (step.want == exchange.MultisigDiffers) {
			t.Errorf("at block %d with %d: %+v", step.block, step.threshold, got)
		}
	}
	if got := eventsOf(t, h.s, a.ID); !slices.Equal(got[3:], []string{"multisig_account.differs", "multisig_account.differs", "multisig_account.active"}) {
		t.Errorf("events: %v", got)
	}
	for _, block := range []uint64{103, 2000, 1 << 60} {
		_, err := tries(block, 1)
		wantFault(t, err, exchange.CodeUnavailable)
	}
	read(105, 1)
	other := h.agreed(t, h.asks(t, exchange.Ethereum, existing(t)))
	all, err := h.chain.ActiveMultisigs(t.Context(), exchange.Ethereum)
	if err != nil || len(all) != 1 || all[0].ID != a.ID || all[0].Status != exchange.MultisigDiffers {
		t.Errorf("to be read are %+v, %v", all, err)
	}
	_, err = h.chain.CheckedMultisig(t.Context(), other.ID, quorumOf(other, 200))
	wantFault(t, err, exchange.CodeStateConflict)
}

// An operator gives up an account that can't be opened, unless a transaction may still open it.
func TestOpeningIsGivenUp(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.opening(t)
	given := twice(t, sameMultisig, func() (exchange.MultisigAccount, error) { return h.flows.GiveUpMultisig(ctx, a.ID, h.one) })
	if p := payment(t, h.s, a.PaymentID); given.Status != exchange.MultisigRefused || p.Status != exchange.ChainCancelled {
		t.Errorf("it is %+v, its payment %+v", given, p)
	}
	alive := h.opening(t)
	h.signs(t, alive)
	_, err := h.flows.GiveUpMultisig(ctx, alive.ID, h.one)
	wantFault(t, err, exchange.CodeStateConflict)
	early := h.agreed(t, h.asks(t, exchange.Ethereum))
	if out, err := h.flows.GiveUpMultisig(ctx, early.ID, h.one); err != nil || out.Status != exchange.MultisigRefused {
		t.Errorf("it is %+v, %v", out, err)
	}
	_, err = h.flows.GiveUpMultisig(ctx, h.active(t, exchange.Ethereum).ID, h.one)
	wantFault(t, err, exchange.CodeStateConflict)
	live, err := h.flows.LiveRows(ctx, time.Now().Add(time.Hour), exchange.LivePlace{}, 10)
	if err != nil || len(live) != 1 || live[0].Kind != exchange.LiveMultisig || live[0].ObjectID != alive.ID {
		t.Errorf("to be carried on are %+v, %v", live, err)
	}
}

// A request is refused for what is stored, and again when it is confirmed. The proposer can't confirm it.
func TestRequestsForAccountsAreChecked(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx, customer := t.Context(), storetest.User(t, h.s, exchange.RoleCustomer)
	taken := h.active(t, exchange.Ethereum)
	for pointer, change := range map[string]func(*exchange.MultisigRequest){
		"/treasury/merchant_id":      func(r *exchange.MultisigRequest) { r.MerchantID = customer.ID },
		"/multisig/owners/2/user_id": func(r *exchange.MultisigRequest) { r.Owners[2].UserID = customer.ID },
		"/multisig/address":          func(r *exchange.MultisigRequest) { existing(t)(r); r.Address = h.gas[exchange.Ethereum].Address },
		"/treasury/policy/approvals": func(r *exchange.MultisigRequest) { r.Policy.Approvals = 0 },
		"/multisig/owners/0/address": func(r *exchange.MultisigRequest) { r.Owners[0].UserID = h.two.UserID },
		"/multisig/owners/1/user_id": func(r *exchange.MultisigRequest) { r.Owners[1] = exchange.MultisigOwner{UserID: uuid.New()} },
		"/multisig/address ":         func(r *exchange.MultisigRequest) { existing(t)(r); r.Address = taken.Address },
		"/treasury/merchant_id ": func(r *exchange.MultisigRequest) {
			r.MerchantID = storetest.Subvendor(t, h.s, storetest.User(t, h.s, exchange.RoleVendor)).ID
		},
	} {
		if _, err := h.api.ProposeMultisigWallet(ctx, h.asks(t, exchange.Ethereum, change), h.one); fieldOf(err) != strings.TrimSpace(pointer) {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	_, err := h.api.ProposeMultisigWallet(ctx, h.asks(t, exchange.Ethereum), storetest.PrincipalOf(customer))
	wantFault(t, err, exchange.CodeForbidden)
	c := h.proposes(t, h.asks(t, exchange.Ethereum))
	_, err = h.api.ConfirmChange(ctx, c.ID, "", h.one)
	wantFault(t, err, exchange.CodeForbidden)
	off := false
	leaving := storetest.User(t, h.s, exchange.RoleAdmin)
	c = h.proposes(t, h.asks(t, exchange.Ethereum, func(r *exchange.MultisigRequest) { r.Owners[2].UserID = leaving.ID }))
	if _, err := h.s.UpdateUser(ctx, leaving.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	_, err = h.api.ConfirmChange(ctx, c.ID, "", h.two)
	wantFault(t, err, exchange.CodeStateConflict)
	one, two := h.asks(t, exchange.Ethereum, existing(t)), h.asks(t, exchange.Ethereum, existing(t))
	two.Address = one.Address
	first, second := h.proposes(t, one), h.proposes(t, two)
	if _, err := h.api.ConfirmChange(ctx, first.ID, "", h.two); err != nil {
		t.Fatal(err)
	}
	_, err = h.api.ConfirmChange(ctx, second.ID, "", h.two)
	wantFault(t, err, exchange.CodeStateConflict)
}

// A merchant and its people read the accounts and wallets that are shared with the merchant; other merchants and customers don't.
func TestSharedWalletsAreReadByTheirMerchant(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx, vendor := t.Context(), storetest.User(t, h.s, exchange.RoleVendor)
	a := h.active(t, exchange.Ethereum, func(r *exchange.MultisigRequest) { r.MerchantID = vendor.ID })
	h.active(t, exchange.Ethereum)
	reads := func(u exchange.User) (bool, int, bool, int) {
		v := store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadWallets)
		_, wallet := h.api.Wallet(ctx, v, a.ID)
		_, wallets, err := h.api.ListWallets(ctx, v, store.WalletFilter{Purpose: exchange.HouseMultisig}, onePage)
		_, account := h.api.MultisigAccount(ctx, v, a.ID)
		_, accounts, other := h.api.MultisigAccounts(ctx, v, store.MultisigFilter{}, onePage)
		if err != nil || other != nil {
			t.Fatal(err, other)
		}
		return wallet == nil, wallets, account == nil, accounts
	}
	for _, c := range []struct {
		who  exchange.User
		sees bool
		all  int
	}{
		{vendor, true, 1},
		{storetest.Subvendor(t, h.s, vendor), true, 1},
		{storetest.User(t, h.s, exchange.RoleVendor), false, 0},
		{storetest.User(t, h.s, exchange.RoleCustomer), false, 0},
		{storetest.User(t, h.s, exchange.RoleTreasury), true, 2},
	} {
		if wallet, wallets, account, accounts := reads(c.who); wallet != c.sees || wallets != c.all || account != c.sees || accounts != c.all {
			t.Errorf("a %s reads the wallet %t, %d wallets, the account %t, %d accounts", c.who.Role, wallet, wallets, account, accounts)
		}
	}
	if _, err := h.api.SetDefaultWallet(ctx, store.ViewOf(storetest.PrincipalOf(vendor), exchange.ActReadWallets), a.ID, h.one); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a merchant changes it: %v", err)
	}
}

// What comes to a wallet of several owners is the house's, is compared with the chain, and counts as its reserves. The other network's form of
// its address is not ours.
func TestMoneyOfSeveralOwnersIsTheHouses(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.active(t, exchange.Tron, func(r *exchange.MultisigRequest) { r.Address = spellings[0].tron })
	finalBlock(t, h.chain, scanOf(blockOf("a", 101), moveOf("in", stranger, a.Address, usdt("30")), moveOf("coin", stranger, a.Address, trx("4"))))
	wantDeposit(t, h.s, "in", exchange.DepositHouse, exchange.DepositFinal)
	wantDeposit(t, h.s, "coin", exchange.DepositHouse, exchange.DepositFinal)
	w := exchange.Wallet{ID: a.ID}
	wantBalance(t, h.s, custody(w), "30", "0")
	wantBalance(t, h.s, owed(w, money.USDT), "30", "0")
	all, err := h.chain.WalletsAfter(ctx, exchange.Tron, uuid.Nil, 10)
	if err != nil || len(all) != 1 || all[0].ID != a.ID {
		t.Errorf("compared are %+v, %v", all, err)
	}
	for on, differs := range map[string]bool{"30": false, "31": true} {
		if got := compare(t, h.s, readingAt(all[0], 101, usdt(on))); got[0].Differs() != differs {
			t.Errorf("compared with %s: %+v", on, got)
		}
	}
	for _, r := range reservesOf(t, h.s) {
		if r.Asset == money.USDT && (!r.Owed.IsZero() || !r.Equity.Equal(usdt("30")) || !r.Custody.Equal(usdt("30"))) {
			t.Errorf("the reserves are %+v", r)
		}
	}
	finalBlock(t, h.chain, exchange.BlockScan{Network: exchange.Ethereum, Block: blockOf("a", 101), Movements: []exchange.ChainMovement{moveOf("lost", "stranger", spellings[0].ethereum, usdt("5"))}})
	if _, n, err := h.api.ListWallets(ctx, store.Everything(), store.WalletFilter{Purpose: exchange.HouseCounterpart}, onePage); err != nil || n != 0 {
		t.Errorf("%d counterparts, %v", n, err)
	}
	finalBlock(t, h.chain, scanOf(blockOf("a", 102), moveOf("out", a.Address, stranger, usdt("1"))))
	wantDeposit(t, h.s, "out", exchange.DepositOutgoing, exchange.DepositFinal)
	wantBooks(t, h.s)
}

func reservesOf(t *testing.T, s *store.Store) []exchange.ReserveLine {
	t.Helper()
	lines, err := s.WriteReserves(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

package store_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// tronPlace is an address that could exist on TRON.
func tronPlace(t *testing.T) string {
	t.Helper()
	id := storetest.NewID(t)
	return address.Address(append([]byte{0x41, id[0], id[1], id[2], id[3]}, id[:]...)).String()
}

// paidOnTron is an account on TRON that begins with a key of ours, and is paid for at block 105.
func (h *shared) paidOnTron(t *testing.T) exchange.MultisigAccount {
	t.Helper()
	a := h.openingOnTron(t)
	h.final(t, a, 105)
	return h.account(t, a.ID)
}

func (h *shared) keyedOnTron(t *testing.T, change ...func(*exchange.MultisigRequest)) exchange.MultisigAccount {
	t.Helper()
	if _, found := h.gas[exchange.Tron]; !found {
		h.gas[exchange.Tron] = storetest.GasWallet(t, h.s, exchange.Tron)
		storetest.Gas(t, h.s, h.gas[exchange.Tron].ID, trx("5000"))
	}
	places := func(r *exchange.MultisigRequest) {
		r.Owners[0].Address, r.Owners[1].Address = tronPlace(t), tronPlace(t)
	}
	a := h.agreed(t, h.asks(t, exchange.Tron, append([]func(*exchange.MultisigRequest){places}, change...)...))
	for _, o := range a.Owners {
		if o.Held {
			if _, err := h.signer.StoreOwnerKey(t.Context(), a.ID, o.N, tronPlace(t), sealedFor(a.ID)); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, err := h.signer.StoreOpeningKey(t.Context(), a.ID, tronPlace(t), sealedFor(a.ID))
	if err != nil {
		t.Fatal(err)
	}
	return h.account(t, a.ID)
}

func (h *shared) openingOnTron(t *testing.T, change ...func(*exchange.MultisigRequest)) exchange.MultisigAccount {
	t.Helper()
	a := h.keyedOnTron(t, change...)
	a, err := h.flows.OpenMultisig(t.Context(), a.ID, a.OpeningAddress, trx("101"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// final carries out the payment that opens an account.
func (h *shared) final(t *testing.T, a exchange.MultisigAccount, block uint64) {
	t.Helper()
	tx := sign(t, h.signer, payment(t, h.s, a.PaymentID))
	if _, err := h.chain.RecordFinal(t.Context(), tx.ID, true, block, "b", trx("1.1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
}

// gives stores what gives an account to its owners.
func (h *shared) gives(t *testing.T, a exchange.MultisigAccount, expires time.Time, number byte) exchange.MultisigHandover {
	t.Helper()
	out, err := h.signer.StoreHandover(t.Context(), storetest.Handover(t, a, expires, number))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameHandover(a, b exchange.MultisigHandover) bool {
	return a.ID == b.ID && a.N == b.N && a.Status == b.Status
}

// chainTime is the time of a block of the tests' chain.
func chainTime(block uint64) time.Time { return blockOf("a", block).Time }

// An account on TRON begins with a key of the signer, is paid for, given to its owners once, and is a wallet then. Every process does its part with
// its own login.
func TestAnAccountOnTronIsGivenToItsOwners(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.keyedOnTron(t)
	if a.Address != "" || a.OpeningAddress == "" || a.ControlThreshold != 0 || !a.Given() {
		t.Fatalf("it is %+v", a)
	}
	again, err := h.signer.StoreOpeningKey(ctx, a.ID, tronPlace(t), sealedFor(a.ID))
	if err != nil || again.OpeningAddress != a.OpeningAddress {
		t.Errorf("its key is that of %s, then of %s: %v", a.OpeningAddress, again.OpeningAddress, err)
	}
	a = twice(t, sameMultisig, func() (exchange.MultisigAccount, error) {
		return h.flows.OpenMultisig(ctx, a.ID, a.OpeningAddress, trx("101"))
	})
	if p := payment(t, h.s, a.PaymentID); a.ControlThreshold != 3 || p.ToAddress != a.OpeningAddress || p.WalletID != h.gas[exchange.Tron].ID || !p.Amount.Equal(trx("101")) {
		t.Fatalf("%+v is opened by %+v", a, p)
	}
	_, err = h.signer.StoreHandover(ctx, storetest.Handover(t, a, chainTime(110), 1))
	wantFault(t, err, exchange.CodeStateConflict) // it is not paid for
	h.final(t, a, 105)
	expired := twice(t, sameHandover, func() (exchange.MultisigHandover, error) {
		return h.signer.StoreHandover(ctx, storetest.Handover(t, a, chainTime(110), 1))
	})
	_, err = h.flows.GiveUpMultisig(ctx, a.ID, h.one)
	wantFault(t, err, exchange.CodeStateConflict)
	wantFault(t, h.chain.EndHandover(ctx, expired, exchange.HandoverExpired, "absent"), exchange.CodeUnavailable)
	finalBlock(t, h.chain, scanOf(blockOf("a", 101), moveOf("to it", h.gas[exchange.Tron].Address, a.Address, trx("101"))))
	for n := uint64(102); n <= 110; n++ {
		finalBlock(t, h.chain, scanOf(blockOf("a", n)))
	}
	twice(t, func(_, _ struct{}) bool { return true }, func() (struct{}, error) {
		return struct{}{}, h.chain.EndHandover(ctx, expired, exchange.HandoverExpired, "absent")
	})
	h2 := h.gives(t, a, chainTime(130), 2)
	wantFault(t, h.chain.EndHandover(ctx, expired, exchange.HandoverExecuted, "too late"), exchange.CodeStateConflict)
	_, err = h.chain.ActivateMultisig(ctx, a.ID, quorumOf(a, 120), holds(exchange.Tron))
	wantFault(t, err, exchange.CodeStateConflict) // it is not known that its key can do nothing
	if err := h.chain.EndHandover(ctx, h2, exchange.HandoverExecuted, "in block 119"); err != nil {
		t.Fatal(err)
	}
	if kept, err := h.signer.StoreHandover(ctx, storetest.Handover(t, a, chainTime(140), 3)); err != nil || kept.ID != h2.ID || kept.N != 2 || kept.Status != exchange.HandoverExecuted {
		t.Errorf("a third one is stored: %+v, %v", kept, err)
	}
	other := quorumOf(a, 120)
	other.ControlThreshold = 2
	_, err = h.chain.ActivateMultisig(ctx, a.ID, other, holds(exchange.Tron))
	wantFault(t, err, exchange.CodeStateConflict)
	a = twice(t, sameMultisig, func() (exchange.MultisigAccount, error) {
		return h.chain.ActivateMultisig(ctx, a.ID, quorumOf(a, 120), holds(exchange.Tron, trx("0.7"), usdt("5")))
	})
	if w, err := h.api.Wallet(ctx, store.Everything(), a.ID); err != nil || w.Custody != exchange.Multisig || w.Address != a.OpeningAddress {
		t.Errorf("the wallet is %+v, %v", w, err)
	}
	wantBalance(t, h.s, exchange.House(exchange.AccNetworkFees, money.TRX), "102.1", "0")
	wantBalance(t, h.s, custody(exchange.Wallet{ID: a.ID}), "5", "0") // what others sent before
	wantBooks(t, h.s)
}

// The bytes that the database makes are those of the network's library, for weights that take more than a byte too.
func TestTheDatabaseMakesWhatGivesAnAccountToItsOwners(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	db := storetest.As(t, h.s, store.RoleChain)
	for name, change := range map[string]func(*exchange.MultisigRequest){
		"equal weights": func(*exchange.MultisigRequest) {},
		"all of them":   func(r *exchange.MultisigRequest) { r.Threshold = 3 },
		"large weights": func(r *exchange.MultisigRequest) {
			r.Owners[0].Weight, r.Owners[1].Weight, r.Owners[2].Weight, r.Threshold = 1000, 127, 128, 1128
		},
	} {
		a := h.openingOnTron(t, change)
		var made []byte
		if err := db.QueryRowContext(t.Context(), `SELECT tron_handover($1)`, a.ID).Scan(&made); err != nil {
			t.Fatal(err)
		}
		if want := librarysGiving(t, a); !bytes.Equal(made, want) || !bytes.Equal(storetest.Giving(a), want) {
			t.Errorf("%s: the database makes\n%x, and the library\n%x", name, made, want)
		}
	}
}

// librarysGiving is the contract of a transaction as the network's library encodes it.
func librarysGiving(t *testing.T, a exchange.MultisigAccount) []byte {
	t.Helper()
	full := func(text string) []byte {
		out, err := address.Base58ToAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	owners := slices.SortedFunc(slices.Values(a.Owners), func(x, y exchange.MultisigOwner) int { return strings.Compare(x.Address, y.Address) })
	owner := &core.Permission{Type: core.Permission_Owner, PermissionName: "owner", Threshold: int64(min(a.Threshold+1, a.Sum()))}
	active := &core.Permission{Type: core.Permission_Active, Id: 2, PermissionName: "payments", Threshold: int64(a.Threshold), Operations: append([]byte{2, 0, 0, 0x80}, make([]byte, 28)...)}
	for _, o := range owners {
		key := &core.Key{Address: full(o.Address), Weight: int64(o.Weight)}
		owner.Keys, active.Keys = append(owner.Keys, key), append(active.Keys, key)
	}
	parameter, err := anypb.New(&core.AccountPermissionUpdateContract{OwnerAddress: full(a.Address), Owner: owner, Actives: []*core.Permission{active}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(&core.TransactionRaw{
		Contract: []*core.Transaction_Contract{{Type: core.Transaction_Contract_AccountPermissionUpdateContract, Parameter: parameter}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// storesHandover stores a transaction with the login of a process.
func storesHandover(h exchange.MultisigHandover, n int) string {
	bytes := func(b []byte) string { return `'\x` + hex.EncodeToString(b) + `'` }
	return fmt.Sprintf(`INSERT INTO multisig_handovers (id, account_id, n, tx_id, joint, body, raw, expires_at, status, created_at, updated_at) VALUES (gen_random_uuid(), '%s', %d, '%s', '%s', %s, %s, '%s', 'signed', now(), now())`,
		h.AccountID, n, h.TxID, h.Joint, bytes(h.Body), bytes(h.Raw), h.ExpiresAt.Format(time.RFC3339Nano))
}

// The key with which an account begins signs nothing but what was agreed, and no login but the signer's stores what it signed.
func TestTheDatabaseRefusesOtherHandovers(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a, elsewhere, unpaid := h.paidOnTron(t), h.paidOnTron(t), h.openingOnTron(t)
	good := storetest.Handover(t, a, chainTime(120), 1)
	h.allBut(t, store.RoleSigner, "stores one", storesHandover(good, 1))
	h.every(t, "stores one of an account that is not paid for", storesHandover(storetest.Handover(t, unpaid, chainTime(120), 1), 1))
	h.every(t, "stores a second one", storesHandover(good, 2))
	for what, change := range map[string]func(*exchange.MultisigAccount){
		"another owner": func(a *exchange.MultisigAccount) { a.Owners[0].Address = tronPlace(t) },
		"an owner less": func(a *exchange.MultisigAccount) { a.Owners = a.Owners[:2] },
		"an owner more": func(a *exchange.MultisigAccount) {
			a.Owners = append(a.Owners, exchange.MultisigOwner{Address: tronPlace(t), Weight: 1})
		},
		"another weight":          func(a *exchange.MultisigAccount) { a.Owners[1].Weight = 2 },
		"another threshold":       func(a *exchange.MultisigAccount) { a.Threshold = 1 },
		"less for changes":        func(a *exchange.MultisigAccount) { a.ControlThreshold = 2 },
		"another account":         func(a *exchange.MultisigAccount) { a.Address = elsewhere.Address },
		"the owners of another":   func(a *exchange.MultisigAccount) { a.Owners = elsewhere.Owners },
		"its own key as an owner": func(a *exchange.MultisigAccount) { a.Owners[2].Address = a.Address },
	} {
		said := a
		said.Owners = slices.Clone(a.Owners)
		change(&said)
		h.every(t, "gives it with "+what, storesHandover(storetest.Handover(t, said, chainTime(120), 1), 1))
	}
	for what, change := range map[string]func(*exchange.MultisigHandover){
		"another id":          func(h *exchange.MultisigHandover) { h.TxID = strings.Repeat("0", 64) },
		"another expiry":      func(h *exchange.MultisigHandover) { h.ExpiresAt = h.ExpiresAt.Add(time.Second) },
		"another joint":       func(h *exchange.MultisigHandover) { h.Joint = []byte(`{"id": "` + h.TxID + `", "body": "AAAA"}`) },
		"other bytes to send": func(h *exchange.MultisigHandover) { h.Raw[40] ^= 1 },
		"a second signature":  func(h *exchange.MultisigHandover) { h.Raw = append(h.Raw, h.Raw[len(h.Raw)-67:]...) },
		"a memo": func(h *exchange.MultisigHandover) {
			*h = resealed(t, a, slices.Insert(h.Body, len(h.Body)-7, 0x52, 1, 'x'))
		},
		"a fee limit": func(h *exchange.MultisigHandover) { *h = resealed(t, a, append(slices.Clone(h.Body), 0x90, 0x01, 1)) },
		"a second contract": func(h *exchange.MultisigHandover) {
			*h = resealed(t, a, slices.Insert(slices.Clone(h.Body), len(h.Body)-7, storetest.Giving(a)...))
		},
		"something else": func(h *exchange.MultisigHandover) { *h = resealed(t, a, []byte("a transfer of all that it has")) },
	} {
		said := storetest.Handover(t, a, chainTime(120), 1)
		change(&said)
		h.every(t, "gives it with "+what, storesHandover(said, 1))
	}
	if err := h.together(t, store.RoleSigner, storesHandover(good, 1)); err != nil {
		t.Fatalf("the signer does not store it: %v", err)
	}
	h.every(t, "stores one beside it", storesHandover(storetest.Handover(t, a, chainTime(121), 2), 2))
	ends := func(how string) string {
		return `UPDATE multisig_handovers SET status = '` + how + `', evidence = 'x' WHERE account_id = ` + quotedID(a.ID)
	}
	h.every(t, "calls it expired while a block may have it", ends("expired"))
	h.every(t, "ends it without evidence", `UPDATE multisig_handovers SET status = 'executed' WHERE account_id = `+quotedID(a.ID))
	for _, change := range []string{`raw = 'x'`, `body = 'x'`, `n = 7`, `tx_id = repeat('1', 64)`, `expires_at = now()`, `joint = '{}'`, `account_id = gen_random_uuid()`} {
		h.every(t, "changes it: "+change, `UPDATE multisig_handovers SET `+change)
	}
	h.every(t, "removes it", `DELETE FROM multisig_handovers`)
	h.allBut(t, store.RoleChain, "says that it is executed", ends("executed"))
	if err := h.together(t, store.RoleChain, ends("executed")); err != nil {
		t.Errorf("the chain's worker does not say that it is executed: %v", err)
	}
	h.every(t, "calls it expired after that", ends("expired"))
	h.every(t, "stores one after that", storesHandover(storetest.Handover(t, a, chainTime(121), 2), 2))
	if _, err := h.api.Freeze(t.Context(), uuid.New(), "a test", h.one); err != nil {
		t.Fatal(err)
	}
	h.every(t, "stores one in a freeze", storesHandover(storetest.Handover(t, elsewhere, chainTime(120), 1), 1))
}

// resealed is a transaction of an account with another body.
func resealed(t *testing.T, a exchange.MultisigAccount, body []byte) exchange.MultisigHandover {
	t.Helper()
	return storetest.HandoverOf(a.ID, body, chainTime(120))
}

// The key with which an account begins is the signer's alone. An account is opened at its address and nowhere else.
func TestOpeningKeysAreTheSigners(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	keyed := h.keyedOnTron(t)
	fresh, safe, adopting := h.agreed(t, h.asks(t, exchange.Tron)), h.agreed(t, h.asks(t, exchange.Ethereum)), h.adopting(t, exchange.Tron)
	h.allBut(t, store.RoleSigner, "reads keys", `SELECT ciphertext FROM multisig_opening_keys`)
	key := func(a exchange.MultisigAccount, seal, address, public string) string {
		return `INSERT INTO multisig_opening_keys VALUES (` + quotedID(a.ID) + `, ` + seal + `, ` + address + `, 'sealed', 'another', ` + public + `, 'secp256k1')`
	}
	same := quoted(keyed.OpeningAddress)
	h.allBut(t, store.RoleSigner, "makes a key", key(fresh, "1", "'Shared-another-address'", `'public'`))
	h.every(t, "makes a key for a Safe", key(safe, "1", "'Shared-another-address'", `'public'`))
	h.every(t, "makes a key for one that is adopted", key(adopting, "1", "'Shared-another-address'", `'public'`))
	h.every(t, "makes a second key", key(keyed, "1", same, `'public'`))
	h.every(t, "replaces a key", key(keyed, "2", same, `'other'`))
	h.every(t, "replaces its address", key(keyed, "2", "'Shared-another-address'", `'public'`))
	h.every(t, "leaves a seal out", key(keyed, "3", same, `'public'`))
	h.every(t, "changes a key", `UPDATE multisig_opening_keys SET ciphertext = 'x'`)
	h.every(t, "removes a key", `DELETE FROM multisig_opening_keys`)
	if err := h.together(t, store.RoleSigner, key(keyed, "2", same, `'public'`)); err != nil {
		t.Errorf("a key is not sealed anew: %v", err)
	}
	opens := func(address, control string) []string {
		return []string{movesMultisig(keyed.ID, `status = 'opening', address = `+address+`, control_threshold = `+control), copyOpening + quotedID(keyed.ID) + `, 1, 'tron', 'TRX', 101, ` +
			quotedID(h.gas[exchange.Tron].ID) + `, ` + quoted(h.gas[exchange.Tron].Address) + `, ` + address + `, NULL, '', NULL, repeat('0', 64), 'approved', 'policy', now(), now()`}
	}
	h.every(t, "opens it elsewhere", opens("'Shared-another-address'", "3")...)
	h.every(t, "opens it with less for changes", opens(same, "2")...)
	h.every(t, "opens it with more for changes", opens(same, "4")...)
	h.allBut(t, store.RoleFlows, "opens it", opens(same, "3")...)
	if err := h.together(t, store.RoleFlows, opens(same, "3")...); err != nil {
		t.Errorf("the flows don't open it: %v", err)
	}
	adopted := h.active(t, exchange.Tron)
	h.every(t, "gives one that is a wallet away", storesHandover(storetest.Handover(t, adopted, chainTime(120), 1), 1))
}

// An account whose payment did not suffice gets another one, but not again and again, and none beside what gives it to its owners.
func TestAnAccountOnTronGetsWhatItLacks(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.openingOnTron(t)
	if same, err := h.flows.FundMultisig(ctx, a.ID, trx("7")); err != nil || same.PaymentID != a.PaymentID {
		t.Errorf("it gets another payment beside its first: %+v, %v", same, err)
	}
	for n := 1; n < exchange.MostFundings; n++ {
		h.final(t, a, uint64(104+n))
		a = twice(t, sameMultisig, func() (exchange.MultisigAccount, error) { return h.flows.FundMultisig(ctx, a.ID, trx("7")) })
		if p := payment(t, h.s, a.PaymentID); p.N != n+1 || !p.Amount.Equal(trx("7")) || p.ToAddress != a.Address || p.WalletID != h.gas[exchange.Tron].ID {
			t.Errorf("it gets %+v", p)
		}
		_, err := h.signer.StoreHandover(ctx, storetest.Handover(t, a, chainTime(120), 1))
		wantFault(t, err, exchange.CodeStateConflict) // before the payment is final
	}
	h.final(t, a, 110)
	_, err := h.flows.FundMultisig(ctx, a.ID, trx("7"))
	wantFault(t, err, exchange.CodeStateConflict)
	more := func(a exchange.MultisigAccount, n int, amount string) string {
		return copyOpening + quotedID(a.ID) + fmt.Sprintf(`, %d, 'tron', 'TRX', `, n) + amount + `, ` + quotedID(h.gas[exchange.Tron].ID) + `, ` + quoted(h.gas[exchange.Tron].Address) + `, ` + quoted(a.Address) +
			`, NULL, '', NULL, repeat('0', 64), 'approved', 'policy', now(), now()`
	}
	h.every(t, "pays a fourth time", more(a, 4, "7"))
	b := h.paidOnTron(t)
	h.every(t, "pays more than it can need", more(b, 2, "250.000001"))
	h.every(t, "leaves a payment out", more(b, 3, "7"))
	h.allBut(t, store.RoleFlows, "pays a second time", more(b, 2, "7"))
	h.gives(t, b, chainTime(120), 1)
	h.every(t, "pays beside what gives it to its owners", more(b, 2, "7"))
	_, err = h.flows.FundMultisig(ctx, h.active(t, exchange.Tron).ID, trx("7"))
	wantFault(t, err, exchange.CodeStateConflict)
}

// What was paid for is not given up: it would leave the coins where no one can use them. It is when no further payment can bring what it lacks. Then its key
// signs nothing any more.
func TestAnAccountOnTronIsGivenUp(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.paidOnTron(t)
	gives := `UPDATE multisig_accounts SET status = 'refused', status_detail = 'given up', version = version + 1 WHERE id = ` + quotedID(a.ID)
	for n := 1; n < exchange.MostFundings; n++ {
		_, err := h.flows.GiveUpMultisig(ctx, a.ID, h.one)
		wantFault(t, err, exchange.CodeStateConflict)
		if err == nil || !strings.Contains(err.Error(), "TRX at its address for good") {
			t.Errorf("giving it up is refused by %v", err)
		}
		h.every(t, "gives up what is paid for", gives)
		if a, err = h.flows.FundMultisig(ctx, a.ID, trx("7")); err != nil {
			t.Fatal(err)
		}
		_, err = h.flows.GiveUpMultisig(ctx, a.ID, h.one)
		wantFault(t, err, exchange.CodeStateConflict)
		h.final(t, a, uint64(105+n))
	}
	given := twice(t, sameMultisig, func() (exchange.MultisigAccount, error) { return h.flows.GiveUpMultisig(ctx, a.ID, h.one) })
	if given.Status != exchange.MultisigRefused {
		t.Errorf("it is %+v", given)
	}
	_, err := h.signer.StoreHandover(ctx, storetest.Handover(t, a, chainTime(120), 1))
	wantFault(t, err, exchange.CodeStateConflict)
}

// An account is opened for, and given to, the owners who are agreed: neither to those who come, nor to those who left.
func TestAnAccountOnTronIsGivenToAgreedOwners(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	ctx := t.Context()
	a := h.keyedOnTron(t, func(r *exchange.MultisigRequest) { r.Threshold = 3 })
	storetest.Exec(t, h.s, `BEGIN; SET LOCAL session_replication_role = replica;
		INSERT INTO multisig_owners (account_id, n, address, user_id, weight, label, held, standing, brought_by, gone_by) VALUES
			(`+quotedID(a.ID)+`, 8, NULL, `+quotedID(h.one.UserID)+`, 1, '', true, 'coming', gen_random_uuid(), NULL),
			(`+quotedID(a.ID)+`, 9, `+quoted(tronPlace(t))+`, NULL, 1, '', false, 'gone', NULL, gen_random_uuid()); COMMIT`)
	a, err := h.flows.OpenMultisig(ctx, a.ID, a.OpeningAddress, trx("101"))
	if err != nil {
		t.Fatalf("it is not opened beside who comes: %v", err)
	}
	h.final(t, a, 105)
	h.gives(t, a, chainTime(120), 1)
}

// The key with which an account begins is sealed under new master keys as all others.
func TestOpeningKeysAreSealedAnew(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	a := h.keyedOnTron(t)
	all, err := h.signer.KeysOfOtherMasters(t.Context(), exchange.Tron, "new", exchange.SealedKey{}, 100)
	i := slices.IndexFunc(all, func(k exchange.SealedKey) bool { return k.WalletID == a.ID && k.Purpose == exchange.OpeningKeyPurpose })
	if err != nil || i < 0 {
		t.Fatalf("the keys are %+v, %v", all, err)
	}
	k := all[i]
	k.MasterKey, k.Ciphertext = "new", []byte("sealed anew")
	for range 2 {
		if err := h.signer.SealKeyAnew(t.Context(), k, h.one); err != nil {
			t.Fatal(err)
		}
	}
	in, err := h.signer.HandoverForSigning(t.Context(), a.ID)
	if err != nil || in.Key.MasterKey != "new" || string(in.Key.Ciphertext) != "sealed anew" || in.Key.Purpose != exchange.OpeningKeyPurpose || in.Account.OpeningAddress != a.OpeningAddress {
		t.Errorf("the signer reads %+v, %v", in, err)
	}
}

package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// every tries statements with every login, each of which must be refused.
func (h *shared) every(t *testing.T, what string, statements ...string) {
	t.Helper()
	h.allBut(t, "", what, statements...)
}

// allBut tries statements with every login but one, whose part it is.
func (h *shared) allBut(t *testing.T, role store.Role, what string, statements ...string) {
	t.Helper()
	for _, r := range loginsOfSwaps {
		if r == role {
			continue
		}
		if err := h.together(t, r, statements...); !refused(err) {
			t.Errorf("%s: %s: %v", r, what, err)
		}
	}
}

// together runs statements in one transaction with a login of a process, over one connection of it.
func (h *shared) together(t *testing.T, role store.Role, statements ...string) error {
	t.Helper()
	if h.logins[role] == nil {
		h.logins[role] = storetest.As(t, h.s, role)
	}
	tx, err := h.logins[role].BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range statements {
		if _, err := tx.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func movesMultisig(id uuid.UUID, more string) string {
	return `UPDATE multisig_accounts SET version = version + 1, updated_at = now(), ` + more + ` WHERE id = ` + quotedID(id)
}

const insertAccount = `INSERT INTO multisig_accounts (id, change_id, requested_by, network, kind, custody, name, label, asset, merchant_id, adopted, address, threshold, approvals, status,
	created_at, updated_at) SELECT `

// insertAgreed stores an account with the fields of a change, some of which are others.
func insertAgreed(change uuid.UUID, other map[string]string) string {
	fields := `id, change_id, requested_by, network, kind, custody, name, label, asset, merchant_id, adopted, address, threshold, approvals`
	said := map[string]string{
		"id": `(change ->> 'id')::uuid`, "change_id": `id`, "requested_by": `proposed_by`, "merchant_id": `(change ->> 'merchant_id')::uuid`, "adopted": `change ? 'address'`,
		"threshold": `(change ->> 'quorum')::int`, "kind": `change ->> 'account_kind'`, "approvals": `(change -> 'policy' ->> 'approvals')::int`,
	}
	out := insertAccount
	for _, f := range strings.Split(fields, ", ") {
		switch {
		case other[f] != "":
			out += other[f] + ", "
		case said[f] != "":
			out += said[f] + ", "
		default:
			out += `change ->> ` + quoted(f) + `, `
		}
	}
	return out + `'preparing', now(), now() FROM control_changes WHERE id = ` + quotedID(change)
}

const insertOwners = `INSERT INTO multisig_owners (account_id, n, address, user_id, weight, label, held) SELECT (c.change ->> 'id')::uuid, (o ->> 'n')::int, o ->> 'address',
	(o ->> 'user_id')::uuid, (o ->> 'weight')::int, o ->> 'label', (o ->> 'held')::boolean FROM control_changes c, jsonb_array_elements(c.change -> 'owners') o WHERE c.id = `

const insertRules = `INSERT INTO multisig_rules (account_id, version, above, approvals) SELECT (c.change ->> 'id')::uuid, 1, (r ->> 'above')::numeric, (r ->> 'approvals')::int
	FROM control_changes c, jsonb_array_elements(c.change -> 'policy' -> 'value_rules') r WHERE c.id = `

func (h *shared) confirming(change uuid.UUID) string {
	return `UPDATE control_changes SET status = 'confirmed', decided_by = ` + quotedID(h.two.UserID) + `, decided_at = now() WHERE id = ` + quotedID(change)
}

// No login stores an account that a second officer did not confirm, or another one than was confirmed, or other owners or rules.
func TestTheDatabaseRefusesAccountsNobodyAgreedTo(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	alone := h.proposes(t, h.asks(t, exchange.Ethereum)).ID
	agreed := []string{insertAgreed(alone, nil), insertOwners + quotedID(alone), insertRules + quotedID(alone)}
	h.every(t, "stores one without a second officer", agreed...)
	if err := h.together(t, store.RoleAPI, h.confirming(alone)); err != nil {
		t.Fatal(err)
	}
	h.every(t, "stores one after its confirmation", agreed...)
	old := h.agreed(t, h.asks(t, exchange.Ethereum))
	h.every(t, "stores one by an older change", insertAgreed(old.ChangeID, map[string]string{"id": "gen_random_uuid()"}))
	c := h.proposes(t, h.asks(t, exchange.Ethereum, func(r *exchange.MultisigRequest) { r.MerchantID = storetest.User(t, h.s, exchange.RoleVendor).ID })).ID
	all := func(other map[string]string, more ...string) []string {
		return append([]string{h.confirming(c), insertAgreed(c, other), insertOwners + quotedID(c), insertRules + quotedID(c)}, more...)
	}
	for field, other := range map[string]string{
		"id": `gen_random_uuid()`, "requested_by": quotedID(h.two.UserID), "network": `'solana'`, "kind": `'spl'`, "custody": `'provider'`, "name": `'x'`, "label": `'x'`, "asset": `'USDC'`,
		"merchant_id": `NULL::uuid`, "adopted": `true`, "address": `'0x0000000000000000000000000000000000000000'`, "threshold": `1`, "approvals": `2`,
	} {
		h.every(t, "stores another "+field, all(map[string]string{field: other})...)
	}
	h.every(t, "stores one without owners", h.confirming(c), insertAgreed(c, nil), insertRules+quotedID(c))
	h.every(t, "stores one without rules", h.confirming(c), insertAgreed(c, nil), insertOwners+quotedID(c))
	id := `(SELECT (change ->> 'id')::uuid FROM control_changes WHERE id = ` + quotedID(c) + `)`
	h.every(t, "adds an owner", all(nil, `INSERT INTO multisig_owners VALUES (`+id+`, 4, 'Shared-another-address', NULL, 1, '', false)`)...)
	h.every(t, "adds a rule", all(nil, `INSERT INTO multisig_rules VALUES (`+id+`, 1, 7, 5)`)...)
	h.every(t, "adds a version of the rules", all(nil, `INSERT INTO multisig_rules VALUES (`+id+`, 2, 7, 5)`)...)
	h.every(t, "names the address of an owner whose key we make", h.confirming(c), insertAgreed(c, nil), strings.Replace(insertOwners, `o ->> 'address'`,
		`coalesce(o ->> 'address', 'Shared-another-address')`, 1)+quotedID(c), insertRules+quotedID(c))
	h.allBut(t, store.RoleAPI, "stores what is confirmed", all(nil)...)
	if err := h.together(t, store.RoleAPI, all(nil)...); err != nil {
		t.Errorf("the API does not store what was confirmed: %v", err)
	}
	h.every(t, "adds an owner later", `INSERT INTO multisig_owners VALUES (`+quotedID(old.ID)+`, 4, 'Shared-another-address', NULL, 1, '', false)`)
	h.every(t, "adds a rule later", `INSERT INTO multisig_rules VALUES (`+quotedID(old.ID)+`, 1, 7, 5)`)
	for _, change := range []string{`weight = 2`, `held = false`, `user_id = NULL`, `label = 'x'`, `n = 9`, `account_id = gen_random_uuid()`} {
		h.every(t, "changes an owner", `UPDATE multisig_owners SET `+change+` `)
	}
	h.every(t, "removes an owner", `DELETE FROM multisig_owners`)
	h.every(t, "changes a rule", `UPDATE multisig_rules SET approvals = 1`)
	h.every(t, "removes a rule", `DELETE FROM multisig_rules`)
	h.every(t, "removes an account", `DELETE FROM multisig_accounts`)
	for _, change := range []string{`threshold = 1`, `approvals = 1`, `merchant_id = requested_by`, `name = 'x'`, `policy_version = 2`, `adopted = true`, `change_id = gen_random_uuid()`, `label = 'x'`, `status_detail = 'x'`} {
		h.every(t, "changes an account: "+change, movesMultisig(old.ID, change))
	}
}

// No login moves an account but the one that learned why, and only when there is reason to.
func TestTheDatabaseRefusesOtherStepsOfAccounts(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	fresh, adopting, opening, active := h.agreed(t, h.asks(t, exchange.Solana)), h.agreed(t, h.asks(t, exchange.Tron, existing(t))), h.opening(t), h.active(t, exchange.Ethereum)
	keyed := h.keyed(t, h.agreed(t, h.asks(t, exchange.Solana)))
	const checked = `status = 'active', checked_block = 200, checked_at = now()`
	wallet := func(a exchange.MultisigAccount, address string) string {
		return `INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, created_by, created_at, updated_at) SELECT id, 'treasury', 'multisig', network, ` +
			address + `, asset, 'cold', 'multisig', label, false, requested_by, now(), now() FROM multisig_accounts WHERE id = ` + quotedID(a.ID)
	}
	h.every(t, "opens one whose key is not made", movesMultisig(fresh.ID, `status = 'opening', address = 'Shared-another-address'`))
	h.every(t, "opens one without a payment", movesMultisig(keyed.ID, `status = 'opening', address = 'Shared-another-address'`))
	h.every(t, "names its address early", movesMultisig(keyed.ID, `address = 'Shared-another-address'`))
	h.every(t, "opens an adopted one", movesMultisig(adopting.ID, `status = 'opening'`))
	h.every(t, "activates one that is not opened", wallet(keyed, `'Shared-another-address'`), movesMultisig(keyed.ID, checked+`, address = 'Shared-another-address'`))
	h.every(t, "activates one whose payment is not final", wallet(opening, `address`), movesMultisig(opening.ID, checked))
	h.every(t, "refuses one that may be opened", movesMultisig(opening.ID, `status = 'refused'`))
	h.every(t, "changes its address", movesMultisig(opening.ID, `status = 'active', checked_block = 200, checked_at = now(), address = 'Shared-another-address'`))
	h.every(t, "activates one without a wallet", movesMultisig(adopting.ID, checked+`, control_threshold = 3`))
	h.every(t, "activates one without its quorum of changes", wallet(adopting, `address`), movesMultisig(adopting.ID, checked))
	h.every(t, "activates one at no block", wallet(adopting, `address`), movesMultisig(adopting.ID, `status = 'active', control_threshold = 3`))
	h.every(t, "makes a wallet of another address", wallet(adopting, `'Shared-another-address'`), movesMultisig(adopting.ID, checked+`, control_threshold = 3`))
	h.every(t, "makes a wallet of none", wallet(adopting, `address`))
	h.allBut(t, store.RoleChain, "activates an adopted one", wallet(adopting, `address`), movesMultisig(adopting.ID, checked+`, control_threshold = 3`))
	h.allBut(t, store.RoleFlows, "gives one up", movesMultisig(fresh.ID, `status = 'refused'`))
	h.allBut(t, store.RoleChain, "says that it differs", movesMultisig(active.ID, `status = 'differs', status_detail = 'x', checked_block = 200, checked_at = now()`))
	h.every(t, "says so at an old block", movesMultisig(active.ID, `status = 'differs', status_detail = 'x'`))
	h.every(t, "says so at an older block", movesMultisig(active.ID, `status = 'differs', status_detail = 'x', checked_block = 50`))
	h.every(t, "does not say how", movesMultisig(active.ID, `status = 'differs', checked_block = 200, checked_at = now()`))
	h.every(t, "says so at a block that can't exist yet", movesMultisig(active.ID, `status = 'differs', status_detail = 'x', checked_block = 5000, checked_at = now()`))
	h.every(t, "reads it at a block that can't exist yet", movesMultisig(active.ID, `checked_block = 1 << 30, checked_at = now()`))
	h.every(t, "reads it while it is opened", movesMultisig(opening.ID, `checked_block = 150, checked_at = now()`))
	h.every(t, "refuses it at a block", movesMultisig(adopting.ID, `status = 'refused', checked_block = 150, checked_at = now()`))
	h.every(t, "moves its opening balance", movesMultisig(active.ID, `opened_block = 150`))
	h.every(t, "begins to watch it later", movesMultisig(adopting.ID, `watched_from = 150`))
	h.every(t, "ends a wallet", movesMultisig(active.ID, `status = 'refused'`))
	h.every(t, "forgets the check", movesMultisig(active.ID, `checked_block = NULL, checked_at = NULL`))
	if _, err := h.chain.CheckedMultisig(t.Context(), active.ID, exchange.MultisigQuorum{Address: active.Address, Block: 300}); err != nil {
		t.Fatal(err)
	}
	h.allBut(t, store.RoleChain, "says that it does not differ", movesMultisig(active.ID, `status = 'active', status_detail = '', checked_block = 400, checked_at = now()`))
}

// The keys of owners are the signer's alone, which neither replaces nor adds any but for whom it was agreed.
func TestOwnersKeysAreTheSigners(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	fresh := h.agreed(t, h.asks(t, exchange.Ethereum))
	keyed := h.keyed(t, h.agreed(t, h.asks(t, exchange.Ethereum)))
	h.allBut(t, store.RoleSigner, "reads keys", `SELECT ciphertext FROM multisig_owner_keys`)
	key := func(a exchange.MultisigAccount, n, seal, public string) string {
		return `INSERT INTO multisig_owner_keys VALUES (` + quotedID(a.ID) + `, ` + n + `, ` + seal + `, 'sealed', 'another', ` + public + `, 'secp256k1')`
	}
	address := func(a exchange.MultisigAccount, n string) string {
		return `UPDATE multisig_owners SET address = 'Shared-another-address' WHERE account_id = ` + quotedID(a.ID) + ` AND n = ` + n
	}
	h.allBut(t, store.RoleSigner, "makes a key", key(fresh, "3", "1", `'public'`), address(fresh, "3"))
	h.every(t, "names an address without a key", address(fresh, "3"))
	h.every(t, "makes a key of an owner outside", key(fresh, "1", "1", `'public'`))
	h.every(t, "makes a second key", key(keyed, "3", "1", `'public'`))
	h.every(t, "replaces a key", key(keyed, "3", "2", `'other'`))
	h.every(t, "changes the address of a key", key(keyed, "3", "2", `'public'`), address(keyed, "3"))
	h.every(t, "leaves a seal out", key(keyed, "3", "3", `'public'`))
	h.every(t, "changes a key", `UPDATE multisig_owner_keys SET ciphertext = 'x'`)
	h.every(t, "removes a key", `DELETE FROM multisig_owner_keys`)
	opening := h.opening(t)
	h.every(t, "makes a key while it is opened", key(opening, "1", "1", `'public'`))
	active := h.active(t, exchange.Ethereum)
	h.every(t, "gives a shared wallet a key", `INSERT INTO wallet_keys (wallet_id, ciphertext, master_key, public_key, algorithm) VALUES (`+quotedID(active.ID)+`, 'x', 'x', 'x', 'secp256k1')`)
}

const copyOpening = `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, fee_wallet_id, fee_payer, hold_id, intent_hash, status,
	approved_by, created_at, updated_at) SELECT gen_random_uuid(), 'multisig_open', `

// The payment that opens an account is the only one without a hold that goes outside of our custody, so it can't be another one.
func TestTheDatabaseRefusesOtherOpeningPayments(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	treasury := storetest.TreasuryWallet(t, h.s, exchange.Solana)
	storetest.Gas(t, h.s, treasury.ID, money.Must(money.SOL, "5"))
	type sent struct {
		object, n, network, asset, amount string
		from                              exchange.Wallet
		to                                string
	}
	for n, coin := range map[exchange.Network]string{exchange.Solana: "SOL", exchange.Ethereum: "ETH"} {
		a := h.keyed(t, h.agreed(t, h.asks(t, n)))
		amount := plainRent(n)
		good := sent{quotedID(a.ID), "1", quoted(string(n)), quoted(coin), amount, h.gas[n], "'Shared-another-address'"}
		for what, change := range map[string]func(*sent){
			"more than it needs": func(p *sent) { p.amount = "0.0100001" },
			"to another":         func(p *sent) { p.to = "'Shared-a-third-address'" },
			"for another":        func(p *sent) { p.object = "gen_random_uuid()" },
			"another asset":      func(p *sent) { p.asset = "'USDT'" },
			"a second one":       func(p *sent) { p.n = "2" },
			"from the treasury":  func(p *sent) { p.from, p.network, p.asset, p.amount = treasury, "'solana'", "'SOL'", "0.001" },
			"nothing on Solana, something on Ethereum": func(p *sent) {
				p.amount = map[exchange.Network]string{exchange.Solana: "0", exchange.Ethereum: "0.000001"}[n]
			},
		} {
			p := good
			change(&p)
			h.every(t, string(n)+": "+what, movesMultisig(a.ID, `status = 'opening', address = 'Shared-another-address'`), copyOpening+
				p.object+`, `+p.n+`, `+p.network+`, `+p.asset+`, `+p.amount+`, `+quotedID(p.from.ID)+`, `+quoted(p.from.Address)+`, `+p.to+`, NULL, '', NULL, repeat('0', 64), 'approved', 'policy', now(), now()`)
		}
		opens := copyOpening + good.object + `, 1, ` + good.network + `, ` + good.asset + `, ` + amount + `, ` + quotedID(good.from.ID) + `, ` + quoted(good.from.Address) + `, ` + good.to +
			`, NULL, '', NULL, repeat('0', 64), 'approved', 'policy', now(), now()`
		h.every(t, "pays before it is opened", opens)
		h.allBut(t, store.RoleFlows, "opens it", movesMultisig(a.ID, `status = 'opening', address = 'Shared-another-address'`), opens)
		if err := h.together(t, store.RoleFlows, movesMultisig(a.ID, `status = 'opening', address = 'Shared-another-address'`), opens); err != nil {
			t.Errorf("the flows don't open it: %v", err)
		}
	}
	adopted, gas := h.agreed(t, h.asks(t, exchange.Ethereum, existing(t))), h.gas[exchange.Ethereum]
	h.every(t, "pays for one that is adopted", copyOpening+quotedID(adopted.ID)+`, 1, 'ethereum', 'ETH', 0, `+quotedID(gas.ID)+`, `+quoted(gas.Address)+`, `+quoted(adopted.Address)+
		`, NULL, '', NULL, repeat('0', 64), 'approved', 'policy', now(), now()`)
	h.every(t, "moves nothing for another purpose", `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, intent_hash, status, approved_by,
		created_at, updated_at) SELECT gen_random_uuid(), 'gas', gen_random_uuid(), 'ethereum', 'ETH', 0, `+quotedID(h.gas[exchange.Ethereum].ID)+`, `+quoted(h.gas[exchange.Ethereum].Address)+
		`, 'Shared-another-address', repeat('0', 64), 'approved', 'policy', now(), now()`)
}

func plainRent(n exchange.Network) string { return rentOf(n).Decimal().String() }

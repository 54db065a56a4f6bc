package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Each role has exactly the rights that the table in the code says, on every table of the schema, column by column, and no other
// role has any.
func TestRolesHaveTheirRights(t *testing.T) {
	t.Parallel()
	db := storetest.Owner(t, storetest.New(t))
	rows, err := db.QueryContext(t.Context(), `
SELECT t.relname, r.rolname, a.attname, p.verb
FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    CROSS JOIN pg_roles r CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (verb)
WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p', 'v') AND t.relname <> 'goose_db_version'
    AND r.rolname LIKE 'kivuko\_%' AND r.rolname NOT LIKE 'kivuko\_test%'
    AND CASE p.verb WHEN 'DELETE' THEN has_table_privilege(r.oid, t.oid, p.verb) ELSE has_column_privilege(r.oid, t.oid, a.attnum, p.verb) END`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	has := map[string]bool{}
	for rows.Next() {
		var table, role, column, verb string
		if err := rows.Scan(&table, &role, &column, &verb); err != nil {
			t.Fatal(err)
		}
		has[strings.Join([]string{role, verb, table, column}, " ")] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	columns := map[string][]string{}
	all, err := db.QueryContext(t.Context(), `SELECT t.relname, a.attname FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p', 'v') AND t.relname <> 'goose_db_version'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	for all.Next() {
		var table, column string
		if err := all.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		columns[table] = append(columns[table], column)
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, g := range store.GrantedRights() {
		if columns[g.Table] == nil {
			t.Errorf("the table of rights has %s, the schema does not", g.Table)
		}
		delete(columns, "")
		for _, c := range columns[g.Table] {
			if g.Columns == nil || slices.Contains(g.Columns, c) != g.Except {
				want[strings.Join([]string{string(g.Role), g.Verb, g.Table, c}, " ")] = true
			}
		}
	}
	for right := range want {
		if !has[right] {
			t.Errorf("missing: %s", right)
		}
	}
	for right := range has {
		if !want[right] {
			t.Errorf("too much: %s", right)
		}
	}
	parts := texts(t, db, `SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'`) // no login has a right in one of them
	listed := map[string]bool{}
	for _, g := range store.GrantedRights() {
		listed[g.Table] = true
	}
	for table := range columns {
		if !listed[table] && !slices.Contains(parts, table) {
			t.Errorf("%s is not in the table of rights", table)
		}
	}
}

// C1: one role of the database wrote every row that authorises something, in all processes alike. Now a process that was taken over
// can't write what lets it do more: each of these was possible for each of them.
func TestC1_AProcessWritesNoAuthorityOfOthers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for query, may := range map[string][]store.Role{
		`INSERT INTO approvals DEFAULT VALUES`:                     {store.RoleFlows},
		`INSERT INTO approval_tokens DEFAULT VALUES`:               {store.RoleAPI},
		`INSERT INTO control_changes DEFAULT VALUES`:               {store.RoleAPI},
		`INSERT INTO operator_commands DEFAULT VALUES`:             {store.RoleAPI},
		`UPDATE users SET role = 'admin'`:                          {store.RoleAPI},
		`UPDATE users SET password_hash = ''`:                      {store.RoleAPI},
		`SELECT password_hash FROM users`:                          {store.RoleAPI},
		`INSERT INTO sessions DEFAULT VALUES`:                      {store.RoleAPI},
		`SELECT token_hash FROM sessions`:                          {store.RoleAPI, store.RoleCodec},
		`UPDATE role_limits SET per_day = NULL`:                    {store.RoleAPI},
		`UPDATE approval_rules SET one_above = 1000000`:            {store.RoleAPI},
		`UPDATE deny_list SET removed_at = now()`:                  {store.RoleAPI},
		`INSERT INTO payment_attempts DEFAULT VALUES`:              {store.RoleMomo},
		`UPDATE payment_attempts SET status = 'succeeded'`:         {store.RoleMomo},
		`INSERT INTO collections DEFAULT VALUES`:                   {store.RoleMomo},
		`UPDATE chain_deposits SET status = 'final'`:               {store.RoleAPI, store.RoleFlows, store.RoleChain},
		`INSERT INTO chain_deposits DEFAULT VALUES`:                {store.RoleChain},
		`INSERT INTO wallets DEFAULT VALUES`:                       {store.RoleSigner},
		`INSERT INTO wallet_keys DEFAULT VALUES`:                   {store.RoleSigner},
		`INSERT INTO chain_attempts DEFAULT VALUES`:                {store.RoleFlows, store.RoleChain, store.RoleSigner},
		`INSERT INTO chain_payments DEFAULT VALUES`:                {store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner},
		`INSERT INTO transfers DEFAULT VALUES`:                     {store.RoleFlows},
		`INSERT INTO orders DEFAULT VALUES`:                        {store.RoleFlows},
		`INSERT INTO database_releases (identity) VALUES ('here')`: {store.RoleAPI},
		`UPDATE ledger_accounts SET posted = 1`:                    nil,
		`DELETE FROM audit_log`:                                    nil,
		`UPDATE events SET type = ''`:                              nil,
		`SELECT sealed FROM webhook_keys`:                          {store.RoleAPI, store.RoleFlows, store.RoleWebhooks},
	} {
		for _, role := range store.Roles() {
			_, err := storetest.As(t, s, role).ExecContext(t.Context(), query)
			const denied = "42501"
			if allowed := sqlState(err) != denied; allowed != slices.Contains(may, role) {
				t.Errorf("%s: %s, allowed %t: %v", role, query, allowed, err)
			}
		}
	}
}

// C1: a payment on a chain is approved for what its process knows: the mobile money worker for an order that was paid, the chain
// worker and the signer for what a transaction needs.
func TestC1_PaymentsAreApprovedByWhoKnows(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, purpose := range []string{"order", "refund", "transfer", "gas", "nonce_account", "nonce_advance", "sweep", "funding"} {
		for role, may := range map[store.Role][]string{
			store.RoleAPI: {"order"}, store.RoleMomo: {"order"}, store.RoleSigner: {"gas"}, store.RoleChain: {"gas", "nonce_account", "nonce_advance"},
		} {
			_, err := storetest.As(t, s, role).ExecContext(t.Context(), `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address,
				intent_hash, status, approved_by, created_at, updated_at) VALUES (gen_random_uuid(), $1, gen_random_uuid(), 1, 'tron', 'USDT', 1, gen_random_uuid(), 'x', 'y', '', 'approved', '', now(), now())`, purpose)
			refused := err != nil && strings.Contains(err.Error(), "approves no payment")
			if refused == slices.Contains(may, purpose) {
				t.Errorf("%s, purpose %s: %v", role, purpose, err)
			}
		}
	}
}

// C1: the signer, taken over, takes money from a wallet and hides the alarm. It settles only one about a transaction that is stored.
func TestC1_TheSignerHidesNoAlarm(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	wallet := storetest.NewMarket(t, s).VendorWallet
	storetest.Exec(t, s, `INSERT INTO deposit_quarantine (id, network, block, tx_id, event_index, reason, detail, payload, created_at, wallet_id, asset, amount)
		VALUES (gen_random_uuid(), 'tron', 1, 'stolen', 0, 'not_our_send', 'why', '{}', now(), $1, 'USDT', 1)`, wallet.ID)
	const settle = `UPDATE deposit_quarantine SET settled_at = now(), note = 'nothing to see'`
	if _, err := storetest.As(t, s, store.RoleSigner).ExecContext(t.Context(), settle); err == nil || !strings.Contains(err.Error(), "settles no alarm") {
		t.Errorf("the signer settled an alarm: %v", err)
	}
	for _, role := range []store.Role{store.RoleAPI, store.RoleFlows, store.RoleChain} {
		if _, err := storetest.As(t, s, role).ExecContext(t.Context(), settle); sqlState(err) != "KV006" {
			t.Errorf("%s settled an alarm without officers: %v", role, err)
		}
	}
	alarms, err := s.OpenQuarantine(t.Context(), exchange.Tron)
	if err != nil || len(alarms) != 1 {
		t.Fatalf("the alarms are %+v, %v", alarms, err)
	}
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	if err := storetest.Agreed(t, s)(s.ProposeSettlement(t.Context(), alarms[0].ID, uuid.Nil, "a key was stolen", admin)); err != nil {
		t.Errorf("two officers settle it: %v", err)
	}
}

// C1: the API, taken over, moves no transfer and no transaction by itself, although it writes down what two officers found.
func TestC1_TheAPIMovesOnlyWhatOfficersFound(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f := p.goes(t, "10", elsewhere(t))
	payment, err := p.store.ChainPayment(t.Context(), f.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	sign(t, p.store, payment)
	for _, query := range []string{
		`UPDATE transfers SET status = 'cancelled'`, `UPDATE transfers SET status_detail = 'none'`, `UPDATE chain_attempts SET status = 'failed'`,
		`INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, adopted, status, created_at, updated_at)
			SELECT gen_random_uuid(), payment_id, network, n + 1, 'mine', 'x', false, 'signed', now(), now() FROM chain_attempts`,
	} {
		_, err := storetest.As(t, p.store, store.RoleAPI).ExecContext(t.Context(), query)
		if err == nil || !strings.Contains(err.Error(), "kivuko_api changes no") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

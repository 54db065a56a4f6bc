package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Role is the role of the database with which a kind of process logs in. It limits what a process can do that was taken over:
// none can write what lets it do more.
type Role string

// The roles. RoleMigrate owns the schema; the others own nothing, and so can't change the triggers that guard them.
const (
	RoleAPI      Role = "kivuko_api"
	RoleFlows    Role = "kivuko_flows"
	RoleMomo     Role = "kivuko_momo"
	RoleChain    Role = "kivuko_chain"
	RoleSigner   Role = "kivuko_signer"
	RoleWebhooks Role = "kivuko_webhooks"
	RoleCodec    Role = "kivuko_codec"
	RoleMigrate  Role = "kivuko_migrate"
)

// Roles lists the roles of the processes that serve, in the order of the columns of rightsTable.
func Roles() []Role {
	return []Role{RoleAPI, RoleFlows, RoleMomo, RoleChain, RoleSigner, RoleWebhooks, RoleCodec}
}

// rightsTable is what each role may do with each table: r read it, p read all but its secrets, i insert, u update (updatable names
// the columns, where not all), d delete, l only lock rows (by the right to update lockable, which a trigger or nobody minds). A
// table that is not listed is closed. Triggers work with the rights of who fires them, unless they write a balance, a position of
// a log or a number: those work with the owner's.
//
// Secrets are read only where they are used: sessions by the API and the codec, keys of webhooks by their worker, keys of wallets
// by the signer; the API reads which keys exist. What authorises something is written by the process that learns it: decisions,
// commands and releases by the API, approvals by the flows that checked a ticket, proofs of payments by the mobile money worker,
// deposits by the chain worker. The API moves transfers, transactions and drafts only for a payment that two officers found on
// the chain (check_adopter).
const rightsTable = `
table                       api   flows  momo  chain  signer  webhooks  codec
state_transitions           r     r      r     r      r       r         -
schema_code                 r     r      r     r      r       r         r
users                       riu   pl     pl    pl     pl      p         p
name_words                  ri    r      r     r      r       -         -
session_families            riud  rdl    -     -      -       -         r
sessions                    riud  -      -     -      -       -         r
login_failures              riud  rdl    -     -      -       -         -
devices                     riu   -      -     -      -       -         -
verifications               riud  pdl    -     -      -       -         -
passkeys                    riu   -      -     -      -       -         -
challenges                  rid   pdl    -     -      -       -         -
invitations                 riu   -      -     -      -       -         -
messages                    riud  pdl    -     -      -       -         -
idempotency_keys            riud  rdl    -     -      -       -         -
intents                     riu   rud    r     ru     ru      -         -
fiat_currencies             riud  r      r     r      r       -         -
countries                   riud  r      r     r      r       -         -
catalog_removals            riud  r      r     r      r       -         -
ledger_accounts             riu   riu    riu   riu    riu     -         -
ledger_entries              ri    ri     ri    ri     ri      -         -
ledger_lines                ri    ri     ri    ri     ri      -         -
ledger_keys                 r     r      r     r      r       -         -
holds                       riu   riu    riu   riu    riu     -         -
log_clock                   r     r      r     r      r       r         -
events                      ri    ri     ri    ri     ri      ri        -
event_keys                  r     r      r     r      r       r         -
months                      r     r      r     r      r       r         -
audit_log                   ri    ri     ri    ri     ri      ri        -
audit_seals                 r     ri     r     r      r       -         -
webhook_endpoints           riu   rl     r     r      r       ru        -
webhook_keys                riud  rdl    -     -      -       r         -
webhook_deliveries          ru    riud   r     r      r       riu       -
webhook_relay               r     ru     r     r      r       rl        -
control_changes             riu   r      r     r      r       -         -
bank_accounts               riu   r      r     r      r       -         -
journal_entries             ri    r      r     r      r       -         -
fee_sweep_rules             riu   rl     r     rl     rl      -         -
fee_sweeps                  riu   riu    r     ru     ru      -         -
bank_statements             riu   ru     r     r      r       -         -
bank_lines                  riu   ru     r     r      r       -         -
otc_destinations            riu   rl     r     r      r       -         -
otc_deposits                r     riu    ru    r      -       -         -
otc_confirmations           r     riu    r     -      -       -         -
otc_limits                  ri    r      r     -      -       -         -
otc_withdrawals             ru    riu    ru    ru     ru      -         -
swap_quotes                 ri    r      r     r      r       -         -
swaps                       ru    riu    r     ru     ru      -         -
swap_marks                  riu   ru     r     r      r       -         -
valuations                  riu   r      r     r      r       -         -
role_limits                 riu   r      r     r      r       -         -
user_limits                 riu   r      r     r      r       -         -
limit_uses                  ru    riu    ru    ru     r       -         -
approval_rules              riu   rl     rl    rl     rl      -         -
approval_tokens             ri    ru     -     -      -       -         -
approvals                   r     ri     r     r      r       -         -
fx_rates                    ri    ri     r     r      r       -         -
fee_scopes                  r     r      r     r      r       -         -
bank_week                   r     r      r     r      r       -         -
bank_days                   ri    r      r     r      r       -         -
fee_profiles                ri    r      r     r      r       -         -
fx_quotes                   riu   ru     r     r      r       -         -
wallets                     ru    rl     rl    ril    riu     -         -
wallet_keys                 r     -      -     -      ri      -         -
multisig_accounts           ri    ru     r     ru     rl      -         -
multisig_owners             ri    ri     r     ru     ru      -         -
multisig_policy             r     r      r     r      r       -         -
multisig_owner_keys         -     -      -     -      ri      -         -
multisig_opening_keys       p      p     -     p      ri      -         -
multisig_handovers          r      r     -     ru     ri      -         -
multisig_rules              ri    r      r     r      r       -         -
multisig_moves              r     r      r     ri     r       -         -
multisig_proposals          r     riu   r      ru     ru      -         -
multisig_payloads           r     r     r      riu    r       -         -
multisig_signatures         r     r     r      ri     ri      -         -
offers                      riu   ru     ru    ru     rl      -         -
order_kinds                 r     r      r     r      r       -         -
orders                      ru    riu    ru    ru     ru      r         -
inventories                 ri    r      r     r      r       -         -
operator_commands           ri    ru     ru    r      r       -         -
payment_attempts            rl    rl     riu   rl     rl      r         -
momo_receipts               ri    r      ri    r      r       -         -
collections                 ru    ru     riu   rl     rl      -         -
payment_exceptions          riu   riu    riu   riu    rl      -         -
exception_decisions         ri    r      r     r      r       -         -
c2b_payments                riu   rl     riu   rl     rl      -         -
c2b_quarantine              r     r      ri    r      r       -         -
momo_terms                  ri    r      r     r      r       -         -
payout_charges              r     r      riu   r      r       -         -
float_reports               r     r      ri    r      r       -         -
float_moves                 riu   r      ru    r      r       -         -
momo_callbacks              ri    r      r     r      r       -         -
payout_queries              r     r      ri    r      r       -         -
database_releases           ri    r      r     r      r       -         -
float_queries               r     r      ri    r      r       -         -
momo_breakers               ru    r      r     r      r       -         -
parked_flows                r     riud   r     r      r       -         -
momo_credential_hits        r     r      ri    r      r       -         -
chain_payments              riu   riu    riu   riu    riu     -         -
nonce_sequences             rl    r      r     riu    riu     -         -
nonces                      r     r      r     ri     ri      -         -
chain_attempts              riu   riu    r     riu    riu     -         -
cold_drafts                 ru    ru     r     riu    ru      -         -
nonce_sequence_reopenings   ri    r      r     r      r       -         -
network_fees                r     r      r     r      r       -         -
deposit_cursors             r     r      r     riu    r       -         -
deposit_blocks              r     r      r     rid    r       -         -
chain_deposits              ru    ru     rl    riu    rl      -         -
deposit_quarantine          ru    ru     r     riu    ru      -         -
deposit_looks               r     r      r     riu    r       -         -
deposit_waits               r     riu    r     r      r       -         -
deposit_wakeups             r     riu    r     riu    r       -         -
gas_found                   r     ri     r     ri     r       -         -
gas_nettings                r     ri     r     ri     r       -         -
gas_arrivals                r     r      r     ri     r       -         -
gas_policy                  r     r      r     r      r       -         -
gas_ahead                   r     r      r     r      r       -         -
escrow_policy               ru    rl     r     r      r       -         -
escrow_addresses            ru    ru     r     r      r       -         -
escrow_leases               rl    riu    rl    rl     rl      -         -
escrow_claims               ru    riu    ru    riu    rl      -         -
escrow_requests             ri    ri     r     r      r       -         -
order_payouts               riu   riu    riu   ril    rl      -         -
bank_confirmations          riu   riu    rl    rl     rl      -         -
payout_attestations         ri    r      r     r      r       -         -
refund_policy               r     r      r     r      r       -         -
refunds                     riu   riu    riu   ru     ru      -         -
refund_requests             ri    r      r     r      r       -         -
transfers                   ru    riu    rl    ru     ru      r         -
screenings                  r     ri     r     r      ri      -         -
deny_list                   riu   r      r     r      r       -         -
freezes                     riu   r      r     r      r       -         -
release_policy              ru    r      r     r      r       -         -
release_purposes            r     r      r     r      r       -         -
release_exemptions          r     r      r     r      r       -         -
releases                    riu   riu    riu   ri     r       -         -
reconciliation_runs         r     riu    r     riu    r       -         -
reconciliation_totals       r     riu    r     riu    r       -         -
reconciliation_differences  ru    riu    rl    riu    rl      -         -
reconciliation_items        r     ri     r     ri     r       -         -
reserve_reports             r     ri     r     ri     r       -         -
file_retention              r     r      -     -      -       -         -
files                       ri    ru     r     -      -       -         -
file_keys                   ri    pd     -     -      -       -         -
file_uses                   ri    ri     -     -      -       -         -
`

// updatable are the columns of a table that may be updated, where not all may. The others follow from triggers, or never change.
var updatable = map[string]string{
	"intents":            "used_at, used_by, refused_at, refusal",
	"ledger_accounts":    "touched",
	"holds":              "amount, status, updated_at",
	"bank_accounts":      "account_name, bank_code, bank_name, branch, is_active, swift_code, updated_at, version",
	"bank_statements":    "compared_at, fresh, ledger, status, unexplained, updated_at, version",
	"otc_confirmations":  "withdrawn_at",
	"bank_lines":         "matched_at, matched_by, object_id, object_type, status, updated_at, version",
	"otc_destinations":   "confirmed_at, confirmed_by, removed_at, removed_by, status, updated_at, version",
	"fee_sweeps":         "completed_at, status, status_detail, tx_hash, updated_at, version",
	"fee_sweep_rules":    "change_id, is_active, least, threshold, updated_at, version",
	"multisig_accounts":  "address, checked_at, checked_block, control_threshold, status, status_detail, threshold, updated_at, version",
	"multisig_owners":    "address, gone_by, label, standing, weight",
	"multisig_handovers": "evidence, status, updated_at",
	"multisig_proposals": "completed_at, ending, ending_detail, executed_by, payload_id, signable_at, status, status_detail, tx_hash, updated_at, version",
	"multisig_payloads":  "evidence, found_index, found_tx, status, updated_at",
	"webhook_keys":       "expires_at",
	"webhook_relay":      "cursor",
	"fx_quotes":          "consumed_at, object_id, object_type, status, superseded_by, updated_at, version",
	"collections":        "kept, refunded",
	"c2b_payments":       "attempt_id, booked_at, disputed, exception_id, listed_at, object_id, object_type, party_hash, reference, status, notified_at, updated_at",
	"payout_charges":     "fixed_at, reported",
	"float_moves":        "code, conversation_id, note, originator_id, receipt, settled_at, settled_by, status, status_token_hash, token_hash, updated_at, version",
	"momo_breakers":      "closed_at, closed_by, closings, hits, note, opened_at, trial",
	"nonce_sequences":    "foreign_nonce",
	"cold_drafts":        "attempt_id, evidence, part, status",
	"deposit_quarantine": "note, settled_at",
	"escrow_policy":      "idle_rest_seconds, keep_free, most, rest_seconds, updated_at, updated_by, user_percent, version",
	"escrow_addresses":   "label, reason, status, updated_at, updated_by, version",
	"escrow_leases":      "ended_at",
	"escrow_claims":      "kept, refunded, taken",
	"order_payouts":      "claimed, completed_at, doubted, hold_id, paid_by, receipt, refused_code, status, updated_at, version",
	"bank_confirmations": "withdrawn_at",
	"otc_withdrawals": "bank_hold_id, claimed, completed_at, ended_by, executed_at, executed_by, failure_id, held_from, hold_id, house_hold_id, paid_by, reason, receipt, " +
		"refused_code, sold_at, statement_line_id, status, status_detail, transfer_id, transfer_intent_id, updated_at, version",
	"swaps":         "collected_at, completed_at, difference, resolution_id, return_hold_id, status, status_detail, updated_at, version",
	"swap_marks":    "change_id, high, low, low_since, updated_at, version",
	"devices":       "origin, user_agent, seen_at, forgotten_at",
	"verifications": "guesses, used_at",
	"passkeys":      "synced, sign_count, used_at, removed_at, reason",
	"invitations":   "accepted_at, withdrawn_at",
	"messages":      "sealed, status, attempts, next_at, ended_at",
	"freezes":       "change_id, lifted_at",
	"releases":      "ended_at, officers, passed_at, rests_until",
	"files":         "deleted_at, name, purged_at",
}

// insertable are the columns that may be inserted, where not all may.
var insertable = map[string]string{
	"database_releases": "identity, change_id", "momo_credential_hits": "attempt_id, code",
	"ledger_entries": "key, digest, kind, object_type, object_id, at", "ledger_lines": "entry_id, account_id, amount", // ids are the months'
}

// lockable is a harmless column of a table: PostgreSQL locks a row only for who may update something in it.
var lockable = map[string]string{
	"users":                      "updated_at",
	"session_families":           "created_at",
	"login_failures":             "updated_at",
	"verifications":              "guesses",
	"challenges":                 "created_at",
	"messages":                   "next_at",
	"idempotency_keys":           "created_at",
	"webhook_endpoints":          "updated_at",
	"webhook_keys":               "expires_at",
	"webhook_relay":              "cursor",
	"approval_rules":             "updated_at",
	"fee_sweep_rules":            "updated_at",
	"wallets":                    "updated_at",
	"multisig_accounts":          "updated_at",
	"offers":                     "updated_at",
	"payment_attempts":           "created_at",
	"collections":                "created_at",
	"payment_exceptions":         "updated_at",
	"c2b_payments":               "updated_at",
	"nonce_sequences":            "foreign_nonce",
	"chain_deposits":             "updated_at",
	"escrow_policy":              "updated_at",
	"escrow_leases":              "leased_at",
	"escrow_claims":              "created_at",
	"order_payouts":              "updated_at",
	"bank_confirmations":         "created_at",
	"otc_destinations":           "updated_at",
	"transfers":                  "updated_at",
	"reconciliation_differences": "updated_at",
}

// callable are the functions that work with the owner's rights and are no triggers, and who calls them; all others may be called by
// everybody. They make, begin and archive only the months whose time has come.
var callable = map[string]Role{"make_month()": RoleFlows, "begin_month()": RoleFlows, "archive_events(int)": RoleFlows}

// secrets are the columns that p leaves out.
var secrets = map[string][]string{
	"users": {"password_hash", "pin_hash"}, "verifications": {"code_hash"}, "challenges": {"terms"}, "messages": {"sealed"}, "file_keys": {"ciphertext"},
	"multisig_opening_keys": {"ciphertext"},
}

// tableRights is a row of rightsTable: the letters by role.
type tableRights struct {
	table   string
	letters map[Role]string
}

// rights returns the rows of the table of rights.
func rights() []tableRights {
	var all []tableRights
	for i, line := range strings.Split(strings.TrimSpace(rightsTable), "\n") {
		cells := strings.Fields(line)
		if i == 0 { // the heads of the columns
			continue
		}
		row := tableRights{table: cells[0], letters: map[Role]string{}}
		for n, role := range Roles() {
			row.letters[role] = strings.Trim(cells[n+1], "-")
		}
		all = append(all, row)
	}
	return all
}

// privileges are the privileges of letters on a table, as GRANT names them.
func privileges(table, letters string) []string {
	some := func(verb string, columns map[string]string) string {
		if c := columns[table]; c != "" {
			return verb + " (" + c + ")"
		}
		return verb
	}
	var all []string
	for _, letter := range letters {
		switch letter {
		case 'r':
			all = append(all, "SELECT")
		case 'p':
			all = append(all, "SELECT (%s)") // filled in with the columns of the database
		case 'i':
			all = append(all, some("INSERT", insertable))
		case 'u':
			all = append(all, some("UPDATE", updatable))
		case 'd':
			all = append(all, "DELETE")
		case 'l':
			all = append(all, "UPDATE ("+lockable[table]+")")
		}
	}
	return all
}

// makeRole creates a role that can't log in yet, unless it exists; an administrator gives it a password, or makes it before the
// first migration. If the migrating role may not create roles, the migration changes no right of a missing one, and the next
// migration after its creation grants them.
const makeRole = `
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '%[1]s') THEN
        BEGIN
            CREATE ROLE %[1]s NOLOGIN;
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role %[1]s is absent and may not be created';
            WHEN duplicate_object OR unique_violation THEN
                NULL; -- another database of this server was migrated at the same time
        END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = '%[1]s') THEN
        EXECUTE 'GRANT USAGE ON SCHEMA ' || here || ' TO %[1]s';
        FOR g IN SELECT oid::regclass AS name FROM pg_class -- the schema may contain other applications' tables
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') AND pg_has_role(relowner, 'USAGE')
        LOOP
            EXECUTE 'REVOKE ALL ON ' || g.name || ' FROM %[1]s';
        END LOOP;
%[2]s    END IF;
`

// grants is the statement that gives each role exactly its rights. Every migration runs it.
func grants() string {
	var all strings.Builder
	all.WriteString("DO $$\nDECLARE\n    here text := quote_ident(current_schema());\n    g    record;\nBEGIN")
	for _, function := range slices.Sorted(maps.Keys(callable)) {
		_, _ = fmt.Fprintf(&all, "\n    REVOKE ALL ON FUNCTION %s FROM PUBLIC;", function)
	}
	for _, role := range Roles() {
		var own strings.Builder
		for _, row := range rights() {
			for _, privilege := range privileges(row.table, row.letters[role]) {
				if strings.Contains(privilege, "%s") {
					_, _ = fmt.Fprintf(&own, "        EXECUTE (SELECT 'GRANT SELECT (' || string_agg(quote_ident(attname), ', ') || ') ON %[1]s TO %[2]s' FROM pg_attribute\n"+
						"            WHERE attrelid = '%[1]s'::regclass AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('%[3]s'));\n",
						row.table, role, strings.Join(secrets[row.table], "', '"))
					continue
				}
				_, _ = fmt.Fprintf(&own, "        GRANT %s ON %s TO %s;\n", privilege, row.table, role)
			}
		}
		for _, function := range slices.Sorted(maps.Keys(callable)) {
			if callable[function] == role {
				_, _ = fmt.Fprintf(&own, "        GRANT EXECUTE ON FUNCTION %s TO %s;\n", function, role)
			}
		}
		_, _ = fmt.Fprintf(&all, makeRole, role, own.String())
	}
	all.WriteString("END $$;\n")
	return all.String()
}

// Granted is one privilege of a role: on all columns of a table, on some, or on all but some.
type Granted struct {
	Role        Role
	Verb, Table string
	Columns     []string // nil: all
	Except      bool     // all but the columns
}

// GrantedRights lists every privilege of the table of rights, for tests that compare it with the database.
func GrantedRights() []Granted {
	list := func(columns string) []string {
		if columns == "" {
			return nil
		}
		return strings.Split(columns, ", ")
	}
	var all []Granted
	for _, row := range rights() {
		for role, letters := range row.letters {
			for _, letter := range letters {
				g := Granted{Role: role, Table: row.table}
				switch letter {
				case 'r':
					g.Verb = "SELECT"
				case 'p':
					g.Verb, g.Columns, g.Except = "SELECT", secrets[row.table], true
				case 'i':
					g.Verb, g.Columns = "INSERT", list(insertable[row.table])
				case 'u':
					g.Verb, g.Columns = "UPDATE", list(updatable[row.table])
				case 'd':
					g.Verb = "DELETE"
				case 'l':
					g.Verb, g.Columns = "UPDATE", list(lockable[row.table])
				}
				all = append(all, g)
			}
		}
	}
	return all
}

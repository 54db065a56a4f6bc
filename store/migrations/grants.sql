-- The complete rights of the service's role on each table, rewritten at every migration. A table that is not listed is
-- closed to it. Log in with a role that is a member of kivuko_app and sets it (role=kivuko_app in the database URL).
-- It can't change or remove immutable rows or write a balance: triggers do that with the owner's rights. If the
-- migrating role may not create roles, an administrator creates kivuko_app first; without it this file changes
-- nothing, and the next migration after its creation grants the rights.
DO $$
DECLARE
    here text := quote_ident(current_schema());
    g    record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        BEGIN
            CREATE ROLE kivuko_app NOLOGIN;
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role kivuko_app is absent and may not be created';
                RETURN;
            WHEN duplicate_object OR unique_violation THEN
                NULL; -- another database of this server was migrated at the same time
        END;
    END IF;
    EXECUTE 'GRANT USAGE ON SCHEMA ' || here || ' TO kivuko_app';
    FOR g IN SELECT oid::regclass AS name FROM pg_class -- the schema may contain other applications' tables
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') AND pg_has_role(relowner, 'USAGE')
    LOOP
        EXECUTE 'REVOKE ALL ON ' || g.name || ' FROM kivuko_app';
    END LOOP;
    FOR g IN SELECT * FROM (VALUES
        -- table                        kivuko_app
        ('state_transitions',          'SELECT'),
        ('schema_code',                'SELECT'),
        ('users',                      'SELECT, INSERT, UPDATE'),
        ('name_words',                 'SELECT, INSERT'),
        ('session_families',           'SELECT, INSERT, UPDATE, DELETE'),
        ('sessions',                   'SELECT, INSERT, UPDATE, DELETE'),
        ('login_failures',             'SELECT, INSERT, UPDATE, DELETE'),
        ('idempotency_keys',           'SELECT, INSERT, UPDATE, DELETE'),
        ('fiat_currencies',            'SELECT, INSERT, UPDATE, DELETE'),
        ('countries',                  'SELECT, INSERT, UPDATE, DELETE'),
        ('catalog_removals',           'SELECT, INSERT, UPDATE, DELETE'),
        ('ledger_accounts',            'SELECT, INSERT, UPDATE (touched)'), -- to lock rows
        ('ledger_entries',             'SELECT, INSERT'),
        ('ledger_lines',               'SELECT, INSERT'),
        ('holds',                      'SELECT, INSERT, UPDATE (amount, status, updated_at)'),
        ('log_clock',                  'SELECT'),
        ('events',                     'SELECT, INSERT'),
        ('audit_log',                  'SELECT, INSERT'),
        ('audit_seals',                'SELECT, INSERT'),
        ('webhook_endpoints',          'SELECT, INSERT, UPDATE'),
        ('webhook_keys',               'SELECT, INSERT, UPDATE (expires_at), DELETE'),
        ('webhook_deliveries',         'SELECT, INSERT, UPDATE, DELETE'),
        ('webhook_relay',              'SELECT, UPDATE (cursor)'),
        ('control_changes',            'SELECT, INSERT, UPDATE'),
        ('valuations',                 'SELECT, INSERT, UPDATE'),
        ('role_limits',                'SELECT, INSERT, UPDATE'),
        ('user_limits',                'SELECT, INSERT, UPDATE'),
        ('limit_uses',                 'SELECT, INSERT, UPDATE'),
        ('approval_rules',             'SELECT, INSERT, UPDATE'),
        ('approval_tokens',            'SELECT, INSERT, UPDATE'),
        ('approvals',                  'SELECT, INSERT'),
        ('fx_rates',                   'SELECT, INSERT'),
        ('fee_profiles',               'SELECT, INSERT'),
        ('fx_quotes',                  'SELECT, INSERT, UPDATE (consumed_at, object_id, object_type, status, superseded_by,
                                        updated_at, version)'),
        ('wallets',                    'SELECT, INSERT, UPDATE'),
        ('wallet_keys',                'SELECT, INSERT'),
        ('offers',                     'SELECT, INSERT, UPDATE'),
        ('order_kinds',                'SELECT'),
        ('order_parties',              'SELECT, INSERT, UPDATE (created_at), DELETE'), -- to lock rows; they never change
        ('orders',                     'SELECT, INSERT, UPDATE'),
        ('operator_commands',          'SELECT, INSERT, UPDATE'),
        ('payment_attempts',           'SELECT, INSERT, UPDATE'),
        ('momo_receipts',              'SELECT, INSERT'),
        ('collections',                'SELECT, INSERT, UPDATE (kept, refunded)'),
        ('payment_exceptions',         'SELECT, INSERT, UPDATE'),
        ('exception_decisions',        'SELECT, INSERT'),
        ('c2b_payments',               'SELECT, INSERT, UPDATE (attempt_id, booked_at, disputed, exception_id, listed_at,
                                        object_id, object_type, party_hash, reference, status, notified_at, updated_at)'),
        ('c2b_quarantine',             'SELECT, INSERT'),
        ('momo_terms',                 'SELECT, INSERT'),
        ('payout_charges',             'SELECT, INSERT, UPDATE (fixed_at, reported)'),
        ('float_reports',              'SELECT, INSERT'),
        ('float_moves',                'SELECT, INSERT, UPDATE (code, conversation_id, note, originator_id, receipt,
                                        settled_at, settled_by, status, token_hash, updated_at, version)'),
        ('momo_callbacks',             'SELECT, INSERT'),
        ('payout_queries',             'SELECT, INSERT'),
        ('momo_breakers',              'SELECT, UPDATE (closed_at, closed_by, closings, hits, note, opened_at, trial)'),
        ('parked_flows',               'SELECT, INSERT, UPDATE, DELETE'),
        ('momo_credential_hits',       'SELECT, INSERT (attempt_id, code)'),
        ('chain_payments',             'SELECT, INSERT, UPDATE'),
        ('nonce_sequences',                'SELECT, INSERT, UPDATE (foreign_nonce)'),
        ('nonces',                     'SELECT, INSERT'),
        ('chain_attempts',             'SELECT, INSERT, UPDATE'),
        ('cold_drafts',                'SELECT, INSERT, UPDATE (attempt_id, evidence, part, status)'),
        ('nonce_sequence_reopenings',            'SELECT, INSERT'),
        ('network_fees',               'SELECT'),
        ('deposit_cursors',            'SELECT, INSERT, UPDATE'),
        ('deposit_blocks',             'SELECT, INSERT, DELETE'),
        ('chain_deposits',             'SELECT, INSERT, UPDATE'),
        ('deposit_quarantine',         'SELECT, INSERT, UPDATE (note, settled_at)'),
        ('deposit_looks',              'SELECT, INSERT, UPDATE'),
        ('deposit_waits',              'SELECT, INSERT, UPDATE'),
        ('deposit_wakeups',            'SELECT, INSERT, UPDATE'),
        ('gas_found',                  'SELECT, INSERT'),
        ('gas_nettings',               'SELECT, INSERT'),
        ('escrow_policy',              'SELECT, UPDATE (keep_free, most, rest_seconds, updated_at, updated_by, version)'),
        ('escrow_addresses',           'SELECT, UPDATE (label, reason, status, updated_at, updated_by, version)'),
        ('escrow_leases',              'SELECT, INSERT, UPDATE (ended_at)'),
        ('escrow_claims',              'SELECT, INSERT, UPDATE (kept, refunded, taken)'),
        ('escrow_requests',              'SELECT, INSERT'),
        ('order_payouts',              'SELECT, INSERT, UPDATE (claimed, completed_at, doubted, hold_id, paid_by, receipt,
                                        refused_code, status, updated_at, version)'),
        ('bank_confirmations',         'SELECT, INSERT, UPDATE (withdrawn_at)'),
        ('payout_attestations',               'SELECT, INSERT'),
        ('refund_policy',              'SELECT'),
        ('refunds',                    'SELECT, INSERT, UPDATE'),
        ('refund_requests',            'SELECT, INSERT'),
        ('transfers',                  'SELECT, INSERT, UPDATE'),
        ('screenings',                 'SELECT, INSERT'),
        ('deny_list',                  'SELECT, INSERT, UPDATE'),
        ('reconciliation_runs',        'SELECT, INSERT, UPDATE'),
        ('reconciliation_totals',      'SELECT, INSERT, UPDATE'),
        ('reconciliation_differences', 'SELECT, INSERT, UPDATE'),
        ('reconciliation_items',       'SELECT, INSERT'),
        ('reserve_reports',            'SELECT, INSERT')
        ) AS matrix (name, app)
    LOOP
        EXECUTE format('GRANT %s ON %I TO kivuko_app', g.app, g.name);
    END LOOP;
END $$;

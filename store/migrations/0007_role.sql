-- +goose Up
-- The role of the running service. It can't change or remove what is written once, nor write a
-- balance: triggers do that with the owner's rights. Log in with a role that is a member of it and
-- sets it (role=kivuko_app in the database URL). Where the migrating role may not create roles, an
-- administrator creates it first; without the role this file changes nothing.
-- +goose StatementBegin
DO $$
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
    EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kivuko_app';
    GRANT SELECT, INSERT, UPDATE ON users, session_families, sessions, login_failures, idempotency_keys, wallets, offers, orders,
        payment_attempts, payment_exceptions, refunds, chain_payments, chain_attempts, operator_commands TO kivuko_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON countries, fiat_currencies, catalog_removals TO kivuko_app;
    GRANT DELETE ON login_failures, idempotency_keys, session_families, sessions TO kivuko_app;
    GRANT SELECT, INSERT ON events, audit_log, audit_seals, ledger_entries, ledger_lines, momo_callbacks, momo_receipts,
        wallet_keys, name_words TO kivuko_app;
    GRANT SELECT, INSERT, UPDATE (touched) ON ledger_accounts TO kivuko_app;
    GRANT SELECT, INSERT, UPDATE (amount, status, updated_at) ON holds TO kivuko_app;
    GRANT SELECT, INSERT, UPDATE (refunded) ON collections TO kivuko_app;
    GRANT SELECT ON state_transitions, log_clock TO kivuko_app;
END $$;
-- +goose StatementEnd

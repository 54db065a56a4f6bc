-- +goose Up
-- The statements of the house's banks, and what explains their lines.

-- A bank's statement of an account of the house. A file is one statement, however often it is sent.
CREATE TABLE bank_statements (
    id              uuid        PRIMARY KEY,
    bank_account_id uuid        NOT NULL REFERENCES bank_accounts (id),
    format          text        NOT NULL CHECK (format IN ('camt053', 'csv')),
    digest          text        NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'), -- the SHA-256 of the file
    reference       text        NOT NULL CHECK (char_length(reference) BETWEEN 1 AND 64),
    from_day        date        NOT NULL,
    to_day          date        NOT NULL,
    asset           asset       NOT NULL,
    opening         amount      NOT NULL,
    closing         amount      NOT NULL,
    lines           int         NOT NULL CHECK (lines BETWEEN 0 AND 100000), -- in the file
    fresh           int         NOT NULL DEFAULT 0 CHECK (fresh BETWEEN 0 AND lines), -- that no earlier statement had
    status          text        NOT NULL,
    imported_by     uuid        NOT NULL REFERENCES users (id),
    ledger          amount, -- what the ledger had when the balance was compared
    unexplained     amount, -- by how much lines that were not explained then and are not booked change the balance
    compared_at     timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    version         bigint      NOT NULL DEFAULT 1,
    CONSTRAINT bank_statements_file_key UNIQUE (digest), -- also where two banks gave their accounts the same number
    CONSTRAINT bank_statements_account_key UNIQUE (id, bank_account_id),
    CONSTRAINT bank_statements_days CHECK (to_day >= from_day),
    CONSTRAINT bank_statements_compared CHECK (num_nonnulls(ledger, unexplained, compared_at) = CASE status WHEN 'compared' THEN 3 ELSE 0 END)
);
CREATE INDEX bank_statements_list_idx ON bank_statements (created_at DESC, id DESC);
CREATE INDEX bank_statements_days_idx ON bank_statements (bank_account_id, to_day, closing);
CREATE INDEX bank_statements_open_idx ON bank_statements (created_at) WHERE status <> 'compared';
CALL moves_by('bank_statements', 'bank_statement');
CALL never_removed('bank_statements');
CALL same_columns('bank_statements',
    'id, bank_account_id, format, digest, reference, from_day, to_day, asset, opening, closing, lines, imported_by, created_at');
CALL set_once('bank_statements', 'ledger, unexplained, compared_at');
CREATE TRIGGER bank_statements_compared BEFORE UPDATE ON bank_statements FOR EACH ROW WHEN (NEW.status = 'compared')
    EXECUTE FUNCTION check_statement_compared();

-- A movement that a bank booked, once whatever statements show it.
CREATE TABLE bank_lines (
    id              uuid            PRIMARY KEY,
    statement_id    uuid            NOT NULL, -- the first that had it
    bank_account_id uuid            NOT NULL,
    number          int             NOT NULL CHECK (number > 0), -- in that statement's file
    bank_reference  text            NOT NULL CHECK (bank_reference ~ '^[0-9A-Z]{1,64}$'),
    value_date      date            NOT NULL,
    booked_on       date            NOT NULL,
    side            text            NOT NULL CHECK (side IN ('credit', 'debit')),
    copy            int             NOT NULL CHECK (copy > 0), -- which one it is of those in the file that are the same
    asset           asset           NOT NULL,
    amount          positive_amount NOT NULL,
    reference       text            NOT NULL CHECK (char_length(reference) <= 140),
    reference_code  text            NOT NULL CHECK (reference_code ~ '^[0-9A-Z]*$'), -- its letters and digits
    party_name      text            NOT NULL CHECK (char_length(party_name) <= 140),
    party_account   text            NOT NULL CHECK (char_length(party_account) <= 34),
    description     text            NOT NULL CHECK (char_length(description) <= 500),
    status          text            NOT NULL,
    object_type     text            CHECK (object_type IN ('journal_entry', 'bank_payout')),
    object_id       uuid,
    matched_by      uuid            REFERENCES users (id), -- NULL for a match by rule
    matched_at      timestamptz,
    created_at      timestamptz     NOT NULL,
    updated_at      timestamptz     NOT NULL,
    version         bigint          NOT NULL DEFAULT 1,
    CONSTRAINT bank_lines_statement_fkey FOREIGN KEY (statement_id, bank_account_id) REFERENCES bank_statements (id, bank_account_id),
    CONSTRAINT bank_lines_key UNIQUE (bank_account_id, bank_reference, value_date, amount, side, copy),
    CONSTRAINT bank_lines_match CHECK (num_nonnulls(object_type, object_id, matched_at) = CASE status WHEN 'matched' THEN 3 ELSE 0 END),
    CONSTRAINT bank_lines_officer CHECK (matched_by IS NULL OR status = 'matched')
);
CREATE UNIQUE INDEX bank_lines_object_key ON bank_lines (object_id, object_type) WHERE object_id IS NOT NULL;
CREATE INDEX bank_lines_statement_idx ON bank_lines (statement_id, number);
CREATE INDEX bank_lines_list_idx ON bank_lines (value_date DESC, id DESC);
CREATE INDEX bank_lines_new_idx ON bank_lines (bank_account_id, statement_id, number) WHERE status = 'new';
CREATE INDEX bank_lines_aside_idx ON bank_lines (statement_id) WHERE status = 'aside';
CREATE INDEX bank_lines_unbooked_idx ON bank_lines (bank_account_id) WHERE status = 'aside' AND side = 'debit';
CREATE INDEX bank_lines_unmatched_idx ON bank_lines (bank_account_id, side, amount, value_date) WHERE status <> 'matched';
CREATE INDEX bank_lines_reference_idx ON bank_lines (bank_reference) WHERE status <> 'matched';
CREATE INDEX bank_lines_code_idx ON bank_lines (reference_code) WHERE status <> 'matched' AND reference_code <> '';
CALL moves_by('bank_lines', 'bank_line');
CALL never_removed('bank_lines');
CALL same_columns('bank_lines', 'id, statement_id, bank_account_id, number, bank_reference, value_date, booked_on, side, copy, asset, amount, reference, reference_code, '
    'party_name, party_account, description, created_at');
CREATE TRIGGER bank_lines_stored AFTER INSERT ON bank_lines REFERENCING NEW TABLE AS new_lines
    FOR EACH STATEMENT EXECUTE FUNCTION check_stored_lines();
CREATE TRIGGER bank_lines_said BEFORE UPDATE ON bank_lines FOR EACH ROW
    WHEN ((OLD.object_type, OLD.object_id, OLD.matched_by, OLD.matched_at) IS DISTINCT FROM (NEW.object_type, NEW.object_id, NEW.matched_by, NEW.matched_at))
    EXECUTE FUNCTION guard_line_match();
CREATE CONSTRAINT TRIGGER bank_lines_explained AFTER UPDATE ON bank_lines DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR OLD.object_id IS DISTINCT FROM NEW.object_id) EXECUTE FUNCTION check_bank_line();

-- A line that nothing explains has a payment exception. Money that came in lies in suspense until then.
ALTER TABLE payment_exceptions ADD COLUMN line_id uuid REFERENCES bank_lines (id);
ALTER TABLE payment_exceptions ADD CONSTRAINT payment_exceptions_line CHECK (line_id IS NULL
    OR (kind = 'unmatched' AND num_nonnulls(order_id, attempt_id) = 0));
ALTER TABLE payment_exceptions ADD CONSTRAINT payment_exceptions_matched CHECK (status <> 'matched' OR line_id IS NOT NULL);
CREATE UNIQUE INDEX payment_exceptions_line_key ON payment_exceptions (line_id) WHERE status <> 'matched' AND line_id IS NOT NULL;
CREATE INDEX payment_exceptions_line_idx ON payment_exceptions (line_id) WHERE line_id IS NOT NULL;
CALL same_columns('payment_exceptions', 'kind, order_id, attempt_id, receipt, asset, amount, line_id');
CREATE CONSTRAINT TRIGGER payment_exceptions_banked AFTER INSERT OR UPDATE ON payment_exceptions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.line_id IS NOT NULL) EXECUTE FUNCTION check_line_exception();
CREATE CONSTRAINT TRIGGER ledger_entries_line AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.kind LIKE 'bank_line.%') EXECUTE FUNCTION check_line_entry();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('bank_statement', '', 'storing'), ('bank_statement', 'storing', 'matching'), ('bank_statement', 'matching', 'compared'),
    ('bank_line', '', 'new'), ('bank_line', 'new', 'matched'), ('bank_line', 'new', 'aside'), ('bank_line', 'aside', 'matched'), ('bank_line', 'matched', 'new'),
    ('payment_exception', 'open', 'matched');

-- A journal entry may name the line that shows it; without one, and without a file, a note says what proves it.
ALTER TABLE journal_entries ADD COLUMN line_id uuid REFERENCES bank_lines (id);
ALTER TABLE journal_entries ADD CONSTRAINT journal_entries_line CHECK (line_id IS NULL OR bank_account_id IS NOT NULL);
ALTER TABLE journal_entries DROP CONSTRAINT journal_entries_note_check;
ALTER TABLE journal_entries ADD CONSTRAINT journal_entries_note CHECK (char_length(note) BETWEEN CASE WHEN line_id IS NULL AND file_id IS NULL THEN 1 ELSE 0 END AND 500);

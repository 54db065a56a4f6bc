-- +goose Up
-- A statement is what its file says. The file is kept as long as those of its purpose that are used.
ALTER TABLE bank_statements ADD COLUMN file_id uuid NOT NULL REFERENCES files (id);
CALL same_columns('bank_statements',
    'id, bank_account_id, file_id, format, digest, reference, from_day, to_day, asset, opening, closing, lines, imported_by, created_at');
CREATE CONSTRAINT TRIGGER bank_statements_filed AFTER INSERT ON bank_statements DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_statement_file();

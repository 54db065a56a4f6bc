-- +goose Up
-- Files that people upload. Their bytes are encrypted in an object store, under their ids; the rows say what they are.

-- How long files are kept, by purpose: those that an object uses, after they were uploaded, and those that none uses. The law on
-- money laundering asks for seven years.
CREATE TABLE file_retention (
    purpose     text     PRIMARY KEY CHECK (purpose IN ('otc_proof', 'bank_statement', 'exception_evidence')),
    kept        interval NOT NULL CHECK (kept >= interval '7 years'),
    unused_kept interval NOT NULL CHECK (unused_kept BETWEEN interval '1 day' AND interval '90 days')
);
INSERT INTO file_retention (purpose, kept, unused_kept) VALUES
    ('otc_proof', interval '7 years', interval '14 days'),
    ('bank_statement', interval '7 years', interval '14 days'),
    ('exception_evidence', interval '7 years', interval '14 days');
CALL never_removed('file_retention');

-- The row of a deleted file stays, without its name: its digest still shows that the same file comes again. A PDF that was made from a picture names
-- the picture; both have the digest of the picture as their source.
CREATE TABLE files (
    id            uuid        PRIMARY KEY,
    purpose       text        NOT NULL REFERENCES file_retention (purpose),
    owner_id      uuid        REFERENCES users (id), -- a merchant; NULL for the house
    uploaded_by   uuid        NOT NULL REFERENCES users (id),
    name          text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 120 AND name !~ '[/\\[:cntrl:]]'),
    content_type  text        NOT NULL CHECK (content_type IN ('application/pdf', 'image/png', 'image/jpeg', 'application/xml', 'text/csv')),
    size_bytes    bigint      NOT NULL,
    sha256        bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    source_sha256 bytea       NOT NULL CHECK (octet_length(source_sha256) = 32),
    pages         int         CHECK (pages BETWEEN 1 AND 50),
    original_id   uuid        REFERENCES files (id),
    created_at    timestamptz NOT NULL,
    deleted_at    timestamptz, -- its retention ended; from then on nobody sees it
    purged_at     timestamptz, -- its bytes and its key are gone
    CONSTRAINT files_original_key UNIQUE (original_id),
    CONSTRAINT files_size CHECK (size_bytes BETWEEN 1 AND CASE WHEN purpose = 'bank_statement' THEN 128 ELSE 10 END * 1048576),
    CONSTRAINT files_house CHECK (owner_id IS NULL OR purpose = 'otc_proof'),
    CONSTRAINT files_pages CHECK ((pages IS NOT NULL) = (content_type = 'application/pdf')),
    CONSTRAINT files_kind CHECK ((purpose = 'bank_statement') = (content_type IN ('application/xml', 'text/csv'))),
    CONSTRAINT files_source CHECK (CASE WHEN original_id IS NULL THEN sha256 = source_sha256 ELSE content_type = 'application/pdf' END),
    CONSTRAINT files_forgotten CHECK (deleted_at IS NULL OR name = 'deleted'), -- names tell of people
    CONSTRAINT files_end CHECK (purged_at IS NULL OR coalesce(purged_at >= deleted_at, false))
);
CREATE INDEX files_source_idx ON files (source_sha256);
CREATE INDEX files_owner_idx ON files (owner_id, created_at) WHERE owner_id IS NOT NULL;
CREATE INDEX files_uploaded_idx ON files (uploaded_by, created_at);
CREATE INDEX files_age_idx ON files (created_at) WHERE deleted_at IS NULL;
CREATE INDEX files_deleted_idx ON files (deleted_at) WHERE deleted_at IS NOT NULL AND purged_at IS NULL;
CALL never_removed('files');
CALL same_columns('files', 'id, purpose, owner_id, uploaded_by, content_type, size_bytes, sha256, source_sha256, pages, original_id, created_at');
CALL refuse_when('files', '_renamed', 'UPDATE', 'OLD.name <> NEW.name AND NEW.deleted_at IS NULL');
CALL set_once('files', 'deleted_at, purged_at');
CREATE TRIGGER files_uploaded BEFORE INSERT ON files FOR EACH ROW EXECUTE FUNCTION check_file();
CREATE CONSTRAINT TRIGGER files_whole AFTER INSERT ON files DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_file_whole();
CREATE TRIGGER files_ended BEFORE UPDATE ON files FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION check_file_end();

-- The keys of the bytes, each encrypted by a master key. The highest seal of a file counts. They go when the bytes do.
CREATE TABLE file_keys (
    file_id    uuid    NOT NULL REFERENCES files (id),
    seal       integer NOT NULL DEFAULT 1 CHECK (seal >= 1),
    ciphertext bytea   NOT NULL CHECK (octet_length(ciphertext) BETWEEN 1 AND 4096),
    master_key text    NOT NULL,
    PRIMARY KEY (file_id, seal)
);
CALL refuse_when('file_keys', '_immutable', 'UPDATE');
CALL refuse_when('file_keys', '_kept_all', 'TRUNCATE');
CREATE INDEX wallet_keys_master_idx ON wallet_keys (master_key);
CREATE TRIGGER file_keys_sealed BEFORE INSERT ON file_keys FOR EACH ROW EXECUTE FUNCTION check_file_seal();
CREATE TRIGGER file_keys_kept BEFORE DELETE ON file_keys FOR EACH ROW EXECUTE FUNCTION check_file_purged();

-- What uses a file. One that is used is kept for its purpose's time.
CREATE TABLE file_uses (
    file_id     uuid        NOT NULL REFERENCES files (id),
    object_type text        NOT NULL CHECK (char_length(object_type) BETWEEN 1 AND 60),
    object_id   uuid        NOT NULL,
    used_by     uuid        NOT NULL REFERENCES users (id),
    used_at     timestamptz NOT NULL,
    PRIMARY KEY (file_id, object_type, object_id)
);
CREATE INDEX file_uses_object_idx ON file_uses (object_type, object_id);
CALL append_only('file_uses');
CREATE TRIGGER file_uses_live BEFORE INSERT ON file_uses FOR EACH ROW EXECUTE FUNCTION check_file_use();

-- +goose Up
-- A payment is signed as soon as the top-up that brings its gas is in a block, and not only when that block is final.

-- Top-ups that were seen in a block, with the transfer that they should make. A block may be undone: only the one that its
-- transaction is in now counts. Only the process that reads the chain says so.
CREATE TABLE gas_arrivals (
    attempt_id uuid        NOT NULL REFERENCES chain_attempts (id),
    block      bigint      NOT NULL CHECK (block > 0),
    block_id   text        NOT NULL CHECK (char_length(block_id) BETWEEN 1 AND 128),
    seen_at    timestamptz NOT NULL,
    PRIMARY KEY (attempt_id, block_id)
);
CALL append_only('gas_arrivals');
CREATE TRIGGER gas_arrivals_included BEFORE INSERT ON gas_arrivals FOR EACH ROW EXECUTE FUNCTION check_gas_arrival();

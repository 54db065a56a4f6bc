-- +goose Up
-- What was sent to the operator in a time is counted every half hour, to see whether its callbacks arrive at all.
CREATE INDEX payment_attempts_submitted_idx ON payment_attempts (submitted_at) WHERE submitted_at IS NOT NULL;

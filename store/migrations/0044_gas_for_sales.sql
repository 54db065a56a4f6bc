-- +goose Up
-- Of the escrow addresses that are lent next, as many get gas ahead of need as sales take (escrow_ahead): gas_policy.free is the least of
-- them, free_most the most. 60 are three runs of a worker's usual limit.
ALTER TABLE gas_policy ADD COLUMN free_most int NOT NULL DEFAULT 60;
ALTER TABLE gas_policy ALTER COLUMN free_most DROP DEFAULT, ADD CONSTRAINT gas_policy_free_most CHECK (free_most BETWEEN free AND 1000);
CREATE INDEX escrow_leases_lent_idx ON escrow_leases (leased_at);

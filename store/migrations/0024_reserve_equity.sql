-- +goose Up
-- The house's own, beside what it owes to others.
ALTER TABLE reserve_reports ADD COLUMN equity amount NOT NULL DEFAULT 0;

-- +goose Up
-- What customers and merchants read of their own: the history of a wallet has what left it, not only what came.
CREATE INDEX chain_deposits_from_wallet_idx ON chain_deposits (from_wallet_id, created_at DESC) WHERE from_wallet_id IS NOT NULL;
-- A merchant reads the payment exceptions whose money was credited to it.
CREATE INDEX exception_decisions_merchant_idx ON exception_decisions (merchant_id) WHERE merchant_id IS NOT NULL;
CREATE INDEX exception_decisions_wallet_idx ON exception_decisions (wallet_id) WHERE wallet_id IS NOT NULL;

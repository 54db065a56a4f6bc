-- +goose Up
-- Each sale borrows an escrow address, which then rests for days though nothing came. How many somebody lets go unpaid is
-- counted whenever another one is opened.
CREATE INDEX orders_unpaid_idx ON orders (customer_id, created_at) WHERE order_type = 'OFF_RAMP_SELL' AND status IN ('pending', 'cancelled');
CREATE INDEX orders_unpaid_vendor_idx ON orders (vendor_id, created_at) WHERE order_type = 'OFF_RAMP_BUY' AND status IN ('pending', 'cancelled');

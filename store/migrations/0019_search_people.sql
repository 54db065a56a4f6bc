-- +goose Up
-- The orders of the people whom a name finds are looked up without a visit to the orders, too (see 0014).
DROP INDEX orders_customer_idx, orders_vendor_idx;
CREATE INDEX orders_customer_idx ON orders (customer_id, created_at DESC, id DESC) INCLUDE (vendor_id) WHERE deleted_at IS NULL;
CREATE INDEX orders_vendor_idx ON orders (vendor_id, created_at DESC, id DESC) INCLUDE (customer_id) WHERE deleted_at IS NULL;

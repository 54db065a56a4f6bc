-- +goose Up
-- Identifiers that many orders can share the beginning or end of are looked up without a visit to the
-- orders themselves: at ten million orders most of those visits would read the disk. What decides who
-- may see an order, and which is newer (ids are UUIDv7), is in the index.
DROP INDEX orders_receipt_idx, orders_phone_idx, orders_phone_end_idx;
CREATE INDEX orders_receipt_idx ON orders (momo_receipt text_pattern_ops) INCLUDE (id, customer_id, vendor_id) WHERE momo_receipt <> '' AND deleted_at IS NULL;
CREATE INDEX orders_phone_idx ON orders (payment_phone text_pattern_ops) INCLUDE (id, customer_id, vendor_id) WHERE deleted_at IS NULL;
CREATE INDEX orders_phone_end_idx ON orders (reverse(payment_phone) text_pattern_ops) INCLUDE (id, customer_id, vendor_id) WHERE deleted_at IS NULL;

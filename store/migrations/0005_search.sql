-- +goose Up
-- Indexes of the order search. What a query is, is recognised first; identifiers are found by B-tree
-- in their exact form or by their beginning, phone numbers by their end as well. Trigrams serve only
-- the parts of names, over the distinct words that names are made of, whose number grows far more
-- slowly than the orders.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

CREATE INDEX orders_receipt_idx ON orders (momo_receipt text_pattern_ops) WHERE momo_receipt <> '';
CREATE INDEX orders_tx_hash_idx ON orders (lower(tx_hash) text_pattern_ops) WHERE tx_hash <> '';
CREATE INDEX orders_deposit_tx_idx ON orders (lower(deposit_tx_hash) text_pattern_ops) WHERE deposit_tx_hash <> '';
CREATE INDEX orders_phone_idx ON orders (payment_phone text_pattern_ops);
CREATE INDEX orders_phone_end_idx ON orders (reverse(payment_phone) text_pattern_ops);
CREATE INDEX orders_address_idx ON orders (wallet_address);

CREATE INDEX users_first_name_idx ON users (lower(first_name) text_pattern_ops);
CREATE INDEX users_last_name_idx ON users (lower(last_name) text_pattern_ops);
CREATE INDEX users_full_name_idx ON users (lower(first_name || ' ' || last_name) text_pattern_ops);
CREATE INDEX users_email_idx ON users (email text_pattern_ops);
CREATE INDEX users_phone_idx ON users (phone_number text_pattern_ops);

CREATE TABLE name_words (word text PRIMARY KEY);
CREATE INDEX name_words_trgm_idx ON name_words USING gin (word gin_trgm_ops);

-- +goose StatementBegin
CREATE FUNCTION learn_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO name_words SELECT DISTINCT lower(w) FROM (SELECT first_name AS w FROM named UNION SELECT last_name FROM named) n
        ORDER BY 1 ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER users_named AFTER INSERT ON users REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION learn_names();
CREATE TRIGGER users_renamed AFTER UPDATE ON users REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION learn_names();

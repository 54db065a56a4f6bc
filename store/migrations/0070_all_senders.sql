-- +goose Up
-- A deposit has several senders where its chain does not tell who paid whom. All of them are screened, and the deny list is
-- looked at again when the payout begins.

-- The bounds are those of a transaction of Solana: 256 accounts and the owner of each.
ALTER TABLE chain_deposits ADD COLUMN other_senders text[] NOT NULL DEFAULT '{}' CONSTRAINT chain_deposits_other_senders CHECK (
    cardinality(other_senders) <= 512 AND array_position(other_senders, NULL) IS NULL AND char_length(array_to_string(other_senders, '')) <= 512 * 128);

-- outside_senders are all who may have sent a deposit, without wallets in our own custody, which need no word.
CREATE FUNCTION outside_senders(d chain_deposits) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT DISTINCT a FROM unnest(d.from_address || d.other_senders) a
    WHERE NOT EXISTS (SELECT FROM wallets w WHERE w.network = d.network AND w.address = a)
$$;

-- deposit_cleared tells whether the last word about who sent a deposit is that it may be taken, and none of them has come on
-- the deny list since.
CREATE OR REPLACE FUNCTION deposit_cleared(d chain_deposits) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM outside_senders(d))
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.deposit_id = d.id ORDER BY s.at DESC, s.id DESC LIMIT 1), false)
            AND NOT EXISTS (SELECT FROM outside_senders(d) a JOIN deny_list l ON l.network = d.network AND l.address = a WHERE l.removed_at IS NULL)
$$;

-- Each attempt is looked at, not the first one alone.
DROP TRIGGER order_payouts_screened ON order_payouts;
CREATE TRIGGER order_payouts_screened BEFORE UPDATE ON order_payouts FOR EACH ROW WHEN (OLD.status <> 'processing' AND NEW.status = 'processing')
    EXECUTE FUNCTION check_sold_crypto();

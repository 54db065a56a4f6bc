-- +goose Up
-- Gas ahead of need: wallets that will soon pay are kept above the fee of their next payment, by payments of purpose gas whose object is
-- the wallet itself.

-- The bounds of what may be brought ahead of need, whatever a process asks for. No process changes them: the settings of a worker can
-- only be narrower. Amounts are in the network's coin, least in stablecoins. A network without a row gets nothing ahead of need.
CREATE TABLE gas_policy (
    network     network         PRIMARY KEY CHECK (network IN ('ethereum', 'tron')),
    vendor_most positive_amount NOT NULL, -- the most that the house may have in a wallet with an active offer after a top-up
    most        positive_amount NOT NULL, -- the same in every other wallet
    least       positive_amount NOT NULL, -- of a customer's coins, so that a speck of dust makes the house fill no wallet
    free        int             NOT NULL CHECK (free BETWEEN 0 AND 1000), -- how many of the escrow addresses that are lent next
    wallet_day  int             NOT NULL CHECK (wallet_day > 0), -- top-ups of one wallet within 24 hours
    day_budget  positive_amount NOT NULL, -- of all wallets within 24 hours
    reserve     positive_amount NOT NULL, -- what stays in the gas wallet for payments that lack gas
    CONSTRAINT gas_policy_most CHECK (most <= vendor_most)
);
INSERT INTO gas_policy (network, vendor_most, most, least, free, wallet_day, day_budget, reserve) VALUES
    ('ethereum', 0.1, 0.03, 50, 5, 24, 2, 0.1),
    ('tron', 75, 30, 10, 5, 24, 5000, 200);
CALL never_removed('gas_policy');

-- Each top-up ahead of need with the time of the database: its payment's row has that of a worker. A trigger writes it.
CREATE TABLE gas_ahead (
    payment_id uuid            PRIMARY KEY REFERENCES chain_payments (id),
    wallet_id  uuid            NOT NULL REFERENCES wallets (id),
    network    network         NOT NULL,
    amount     positive_amount NOT NULL,
    at         timestamptz     NOT NULL
);
CREATE INDEX gas_ahead_wallet_idx ON gas_ahead (wallet_id, at);
CREATE INDEX gas_ahead_network_idx ON gas_ahead (network, at) INCLUDE (amount);
CALL append_only('gas_ahead');

CREATE TRIGGER chain_payments_gas BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose = 'gas') EXECUTE FUNCTION check_gas();
CREATE TRIGGER chain_payments_gas_ahead AFTER INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose = 'gas') EXECUTE FUNCTION count_gas_ahead();
CREATE INDEX chain_payments_gas_to_idx ON chain_payments (network, to_address) WHERE purpose = 'gas' AND status NOT IN ('completed', 'cancelled');

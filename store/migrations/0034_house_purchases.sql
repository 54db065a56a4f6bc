-- +goose Up
-- Purchases from the house at a quote, out of the crypto that its treasury set aside for them.

-- What two officers may set aside.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule', 'inventory_allocation'));
CREATE INDEX control_changes_inventory_idx ON control_changes ((change ->> 'wallet_id'), (change ->> 'asset'))
    WHERE kind = 'inventory_allocation' AND status = 'confirmed';

-- Crypto of a treasury wallet that the house sells. What is left of it is the amount of its hold, of which orders split theirs.
CREATE TABLE inventories (
    id         uuid         PRIMARY KEY,
    wallet_id  uuid         NOT NULL REFERENCES wallets (id),
    network    network      NOT NULL,
    asset      asset        NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    hold_id    uuid         NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    taken      zero_or_more NOT NULL DEFAULT 0, -- what orders hold of it or delivered, counted by a trigger
    created_at timestamptz  NOT NULL,
    CONSTRAINT inventories_wallet_key UNIQUE (wallet_id, asset),
    CONSTRAINT inventories_hold_key UNIQUE (hold_id)
);
CREATE INDEX inventories_sold_idx ON inventories (network, asset);
CALL never_removed('inventories');
CALL same_columns('inventories', 'id, wallet_id, network, asset, hold_id, created_at');
CREATE TRIGGER inventories_agreed BEFORE INSERT ON inventories FOR EACH ROW EXECUTE FUNCTION check_new_inventory();
CREATE TRIGGER inventories_counted BEFORE UPDATE ON inventories FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();
CREATE CONSTRAINT TRIGGER inventories_whole AFTER INSERT OR UPDATE ON inventories DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_inventory();

CALL same_columns('holds', 'account_id, key, id, placed, parent_id, object_type, object_id');
CREATE TRIGGER holds_taken AFTER INSERT ON holds FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION count_inventory();
CREATE TRIGGER holds_given_back AFTER UPDATE ON holds FOR EACH ROW
    WHEN (NEW.parent_id IS NOT NULL AND (NEW.status = 'released' OR NEW.amount <> OLD.amount)) EXECUTE FUNCTION count_inventory();
CREATE CONSTRAINT TRIGGER holds_of_inventory AFTER INSERT OR UPDATE ON holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.object_type = 'inventory') EXECUTE FUNCTION check_inventory();
CREATE CONSTRAINT TRIGGER holds_of_inventory_parts AFTER INSERT OR UPDATE ON holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION check_inventory_part();

-- The kind of order.
DROP TRIGGER order_kinds_same ON order_kinds;
INSERT INTO order_kinds (order_type, order_subtype, offer, quoted, vendor_opens, custodial, parties, bank) VALUES
    ('ON_RAMP_BUY', 'treasury_onramp', '', true, false, false, false, false);
CREATE TRIGGER order_kinds_same BEFORE INSERT OR UPDATE OR DELETE ON order_kinds FOR EACH ROW EXECUTE FUNCTION refuse_change();
ALTER TABLE orders DROP CONSTRAINT orders_order_subtype_check;
ALTER TABLE orders ADD CONSTRAINT orders_order_subtype_check CHECK (order_subtype IN ('standard_onramp', 'standard_offramp', 'remittance_offramp',
    'custodial_remittance_offramp', 'treasury_offramp', 'treasury_onramp'));
CREATE CONSTRAINT TRIGGER orders_from_inventory AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type LIKE 'ON\_RAMP%' AND NEW.quote_id IS NOT NULL) EXECUTE FUNCTION check_house_purchase();

-- What is delivered is reserved for its order, when it is approved and when it is signed.
CREATE TRIGGER chain_payments_order_reserved BEFORE INSERT ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose = 'order') EXECUTE FUNCTION check_order_reserved();
CREATE TRIGGER chain_payments_order_signed BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose = 'order' AND OLD.status = 'approved' AND NEW.status = 'signed') EXECUTE FUNCTION check_order_reserved();

-- The last rate that two officers agreed, near which a source's rates stay: the house sells by them without an officer.
CREATE INDEX fx_rates_agreed_idx ON fx_rates (base, quote, valid_from DESC) WHERE jump_confirmed;

-- The quotes of such orders are for one network, on which the house has what it sells.
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_purpose;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_purpose_object;
ALTER TABLE fx_quotes
    ADD CONSTRAINT fx_quotes_purpose CHECK (purpose IN ('transfer', 'onramp', 'offramp', 'otc_deposit', 'otc_withdrawal')),
    ADD CONSTRAINT fx_quotes_purchase CHECK (purpose <> 'onramp' OR (side = 'buy' AND network IS NOT NULL AND formula <> 'kivuko-price-1')),
    ADD CONSTRAINT fx_quotes_purpose_object CHECK (object_type = CASE WHEN purpose IN ('onramp', 'offramp') THEN 'order' ELSE purpose END);
CREATE CONSTRAINT TRIGGER fx_quotes_order_use AFTER UPDATE ON fx_quotes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'consumed' AND NEW.object_type = 'order') EXECUTE FUNCTION check_quote_use();

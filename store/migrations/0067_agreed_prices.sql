-- +goose Up
-- What the house pays for crypto is bounded by what two persons agreed that it is worth. A rate is one person's entry,
-- and so is a higher valuation, because it tightens every limit; by either alone somebody could sell one coin to the
-- house for all of its shillings.

ALTER TABLE valuations ADD COLUMN agreed numeric CHECK (agreed > 0);
UPDATE valuations SET agreed = rate;

-- +goose StatementBegin
CREATE FUNCTION fill_agreed_valuation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.agreed := CASE WHEN TG_OP = 'UPDATE' THEN OLD.agreed END;
    IF EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND (c.change -> 'valuations' ->> NEW.asset)::numeric = NEW.rate) THEN
        NEW.agreed := NEW.rate;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER valuations_agreed BEFORE INSERT OR UPDATE ON valuations FOR EACH ROW EXECUTE FUNCTION fill_agreed_valuation();

-- +goose StatementBegin
CREATE FUNCTION check_sale_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM valuations v WHERE v.asset = NEW.asset AND NEW.rate <= v.agreed * 1.1) THEN
        RAISE EXCEPTION 'quote % pays more than two persons agreed to', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER fx_quotes_sale_price BEFORE INSERT ON fx_quotes FOR EACH ROW WHEN (NEW.purpose = 'offramp') EXECUTE FUNCTION check_sale_price();

-- The house's price for crypto is bounded by the value that two officers agreed. A rate is one officer's entry, and so
-- is a higher valuation, because it tightens every limit; with either alone one coin could be sold to the house for
-- all of its shillings, or all of its coins be bought for one shilling.
CREATE OR REPLACE FUNCTION check_sale_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM valuations v WHERE v.asset = NEW.asset
            AND CASE NEW.side WHEN 'sell' THEN NEW.rate <= v.agreed * 1.1 ELSE NEW.rate >= v.agreed * 0.75 END) THEN
        RAISE EXCEPTION 'quote % has a price that is too far from the value that two officers agreed', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;

-- The market's rate of a stablecoin in shillings at a moment: the middle of the newest rate while that is fresh, otherwise the
-- house's valuation.
CREATE OR REPLACE FUNCTION reference_rate(coin text, moment timestamptz) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce((SELECT CASE WHEN r.stale_at > moment THEN (r.bid + r.ask) / 2 END FROM fx_rates r
            WHERE r.base = coin AND r.quote = 'KES' ORDER BY r.valid_from DESC LIMIT 1),
        (SELECT v.rate FROM valuations v WHERE v.asset = coin));
END $$;

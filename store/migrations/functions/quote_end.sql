-- Until when a quote that is made at a moment may hold: to the cut-off of the next bank day at the desk, otherwise for five minutes.
CREATE OR REPLACE FUNCTION quote_end(of_purpose text, moment timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN of_purpose IN ('otc_deposit', 'otc_withdrawal') THEN bank_cutoff(moment) ELSE moment + interval '5 minutes' END
$$;

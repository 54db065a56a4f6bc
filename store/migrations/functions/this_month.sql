-- The month that it is where the house is.
CREATE OR REPLACE FUNCTION this_month() RETURNS date LANGUAGE sql STABLE AS $$
    SELECT date_trunc('month', now() AT TIME ZONE 'Africa/Nairobi')::date
$$;

-- Reports whether an exception about shillings of no order is being refunded, or was, exactly when a refund by bank is on its way, or was paid.
CREATE OR REPLACE FUNCTION exception_goes_back(exception uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN x.status IN ('refunding', 'refunded') THEN x.status END IS NOT DISTINCT FROM
        (SELECT CASE f.status WHEN 'completed' THEN 'refunded' ELSE 'refunding' END FROM refunds f WHERE f.exception_id = x.id AND f.status <> 'failed')
    FROM payment_exceptions x WHERE x.id = exception
$$;

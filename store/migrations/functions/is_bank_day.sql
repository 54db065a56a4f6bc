-- Whether banks in Kenya settle on a day: by its latest entry, otherwise by its day of the week.
CREATE OR REPLACE FUNCTION is_bank_day(on_day date) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT d.is_open FROM bank_days d WHERE d.day = on_day ORDER BY d.entry DESC LIMIT 1),
        (SELECT w.is_open FROM bank_week w WHERE w.weekday = extract(dow FROM on_day)))
$$;

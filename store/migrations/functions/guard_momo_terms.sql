-- New terms need two officers, and do not apply to payouts that began before they were entered.
CREATE OR REPLACE FUNCTION guard_momo_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.valid_from < NEW.entered_at OR NOT EXISTS (SELECT FROM control_changes c
            WHERE c.id = NEW.change_id AND c.applied_in = pg_current_xact_id() AND c.kind = 'momo_terms'
                AND NEW.entered_at = c.decided_at AND (c.change ->> 'valid_from')::timestamptz = NEW.valid_from
                AND (c.change ->> 'min_prompt')::numeric = NEW.min_prompt AND (c.change ->> 'max_prompt')::numeric = NEW.max_prompt
                AND (c.change ->> 'min_payout')::numeric = NEW.min_payout AND (c.change ->> 'max_payout')::numeric = NEW.max_payout
                AND (c.change ->> 'payee_day')::numeric = NEW.payee_day AND c.change -> 'tariff' = NEW.tariff) THEN
        RAISE EXCEPTION 'no second officer confirmed the terms of the provider from %', NEW.valid_from USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;

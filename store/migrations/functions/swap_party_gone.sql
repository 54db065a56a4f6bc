-- Reports whether a party of a swap is switched off: nothing of it is collected then.
CREATE OR REPLACE FUNCTION swap_party_gone(s swaps) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM users u WHERE u.id IN (s.requested_by, s.owner_id, s.vendor_id) AND NOT u.is_active);
END $$;

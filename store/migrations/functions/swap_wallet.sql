-- Reports whether somebody may swap in a wallet: an active customer in the own one, a merchant's people in the merchant's, a treasury
-- officer in one of the treasury. It is a hot one in our custody. The person is locked, so that an account that is being switched off at
-- this moment does not count.
CREATE OR REPLACE FUNCTION swap_wallet(wallet uuid, person uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users u WHERE u.id = person AND u.is_active FOR SHARE;
    RETURN FOUND AND EXISTS (SELECT FROM wallets w JOIN users u ON u.id = person WHERE w.id = wallet AND w.custody = 'custodial' AND w.type = 'hot'
        AND CASE u.role WHEN 'customer' THEN w.owner_id = u.id AND w.vendor_id IS NULL WHEN 'user' THEN w.owner_id = u.id AND w.vendor_id IS NULL WHEN 'vendor' THEN w.vendor_id = u.id
            WHEN 'subvendor' THEN w.vendor_id = u.vendor_id WHEN 'treasury' THEN w.owner_id IS NULL AND w.purpose = 'treasury' ELSE false END);
END $$;

-- A process approves payments only for what it knows: the mobile money worker, and the API for officers who corrected an address,
-- for orders; the signer and the chain worker for what a transaction of theirs needs. The flows approve the rest.
CREATE OR REPLACE FUNCTION check_payment_author() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.purpose <> ALL (CASE current_user
            WHEN 'kivuko_api' THEN ARRAY['order']
            WHEN 'kivuko_momo' THEN ARRAY['order']
            WHEN 'kivuko_signer' THEN ARRAY['gas']
            WHEN 'kivuko_chain' THEN ARRAY['gas', 'nonce_account', 'nonce_advance']
            ELSE ARRAY[NEW.purpose] END) THEN
        RAISE EXCEPTION '% approves no payment for a %', current_user, NEW.purpose USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

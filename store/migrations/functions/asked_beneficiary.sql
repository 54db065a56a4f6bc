-- Who is paid by a sale's intent, in the form of orders.beneficiary without its empty members.
CREATE OR REPLACE FUNCTION asked_beneficiary(said jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'AccountName', said ->> 'beneficiary_account_name', 'AccountNumber', said ->> 'beneficiary_account_number',
        'BankName', said ->> 'beneficiary_bank_name', 'BankCode', said ->> 'beneficiary_bank_code', 'BankBranch', said ->> 'beneficiary_bank_branch',
        'BankAddress', said ->> 'beneficiary_bank_address', 'SwiftCode', said ->> 'beneficiary_swift_code'))
$$;

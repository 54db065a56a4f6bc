-- What gives an account on TRON to the owners to whom two officers agreed, as part of a transaction (AccountPermissionUpdateContract): the owner
-- permission with the quorum for changes of the owners, and the active permission 2 with the quorum for payments, which allows transfers (bit 1)
-- and calls of contracts (bit 31) and nothing else. It names no witness. The owners are ordered by address.
CREATE OR REPLACE FUNCTION tron_handover(account uuid) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    a      multisig_accounts;
    owners bytea;
    owner  bytea;
    active bytea;
BEGIN
    SELECT * INTO a FROM multisig_accounts WHERE id = account;
    SELECT string_agg(tron_part('\x3a', tron_part('\x0a', tron_address(o.address)) || '\x10' || tron_number(o.weight)), '' ORDER BY o.address COLLATE "C")
        INTO owners FROM multisig_owners o WHERE o.account_id = account AND o.standing = 'agreed';
    owner := '\x1a056f776e657220' || tron_number(a.control_threshold) || owners;
    active := '\x080210021a087061796d656e747320' || tron_number(a.threshold) || tron_part('\x32', '\x02000080' || decode(repeat('00', 28), 'hex')) || owners;
    RETURN tron_part('\x5a', '\x082e' || tron_part('\x12', tron_part('\x0a', 'type.googleapis.com/protocol.AccountPermissionUpdateContract'::bytea)
        || tron_part('\x12', tron_part('\x0a', tron_address(a.address)) || tron_part('\x12', owner) || tron_part('\x22', active))));
END $$;

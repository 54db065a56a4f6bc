-- The key with which an account on TRON begins signs one thing: the change that gives the account to exactly the owners to whom two officers agreed.
-- It is signed for an account that is being opened and paid for, when no earlier one can be executed, and not in a freeze. Its bytes are made
-- here again and compared, so that whatever the driver or the signer does, no other transaction of this key is stored, or sent.
CREATE OR REPLACE FUNCTION check_handover() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    a     multisig_accounts;
    says  bytea;
    fault text;
BEGIN
    SELECT * INTO a FROM multisig_accounts WHERE id = NEW.account_id FOR NO KEY UPDATE;
    fault := CASE
        WHEN a.kind IS DISTINCT FROM 'tron' OR a.adopted OR a.status <> 'opening' THEN 'is of an account that is not being opened'
        WHEN (SELECT p.status FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = a.id ORDER BY p.n DESC LIMIT 1) IS DISTINCT FROM 'completed' THEN
            'is of an account that is not paid for'
        WHEN NEW.n <> (SELECT count(*) + 1 FROM multisig_handovers h WHERE h.account_id = a.id)
            OR EXISTS (SELECT FROM multisig_handovers h WHERE h.account_id = a.id AND h.status <> 'expired') THEN 'comes beside another one'
        WHEN frozen() OR put_back() THEN 'is withheld'
        END;
    IF fault IS NULL THEN
        -- after the reference to a block, of 14 bytes: when it expires, and what it does
        says := '\x40' || tron_number(round(extract(epoch FROM NEW.expires_at) * 1000)::bigint) || tron_handover(a.id);
        fault := CASE
            WHEN substr(NEW.body, 1, 2) <> '\x0a02' OR substr(NEW.body, 5, 2) <> '\x2208' OR substr(NEW.body, 15, octet_length(says)) <> says
                OR substr(NEW.body, 15 + octet_length(says), 1) <> '\x70' OR octet_length(NEW.body) <> 14 + octet_length(says) + 7 THEN 'says something else than was agreed'
            WHEN substr(NEW.raw, 1, octet_length(NEW.raw) - 65) <> '\x0a' || tron_number(octet_length(NEW.body)) || NEW.body || '\x1241' THEN 'is sent with other bytes'
            WHEN NEW.tx_id <> encode(sha256(NEW.body), 'hex') OR decode(NEW.joint ->> 'body', 'base64') IS DISTINCT FROM NEW.body OR NEW.joint ->> 'id' IS DISTINCT FROM NEW.tx_id THEN
                'has the id of another one'
            END;
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'the transaction % that gives account % to its owners %', NEW.tx_id, NEW.account_id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;

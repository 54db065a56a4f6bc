-- +goose Up
-- Money on the wrong network. An Ethereum and a TRON address are two spellings of the same 20 bytes of one key, so that
-- what is sent on one network to the other one's spelling of an address of ours lies where our key signs, and where
-- nobody looked. Every wallet knows its twin, and what comes there gets a wallet of its own.

-- tron_address spells an account, 20 bytes, as TRON does: base58 of a prefix, the account and four bytes of a checksum.
-- +goose StatementBegin
CREATE FUNCTION tron_address(account bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    digits CONSTANT text := '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
    raw    bytea := '\x41'::bytea || account;
    number numeric := 0;
    spelt  text := '';
BEGIN
    IF length(account) <> 20 THEN
        RETURN NULL;
    END IF;
    raw := raw || substr(sha256(sha256(raw)), 1, 4);
    FOR i IN 0 .. 24 LOOP
        number := number * 256 + get_byte(raw, i);
    END LOOP;
    WHILE number > 0 LOOP
        spelt := substr(digits, mod(number, 58)::int + 1, 1) || spelt;
        number := div(number, 58);
    END LOOP;
    RETURN spelt;
END $$;
-- +goose StatementEnd

-- tron_account is the account of a TRON address; NULL for a text that is none. It and twin_address name where their
-- helpers are, because a backup is restored without a search path.
-- +goose StatementBegin
CREATE FUNCTION tron_account(address text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    digits  CONSTANT text := '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
    raw     bytea := decode(repeat('00', 25), 'hex');
    number  numeric := 0;
    account bytea;
BEGIN
    IF address COLLATE "C" !~ '^T[1-9A-HJ-NP-Za-km-z]{33}$' THEN
        RETURN NULL;
    END IF;
    FOR i IN 1 .. 34 LOOP
        number := number * 58 + strpos(digits, substr(address, i, 1)) - 1;
    END LOOP;
    FOR i IN REVERSE 24 .. 0 LOOP
        raw := set_byte(raw, i, mod(number, 256)::int);
        number := div(number, 256);
    END LOOP;
    account := substr(raw, 2, 20);
    IF number <> 0 OR tron_address(account) COLLATE "C" <> address THEN
        RETURN NULL; -- it has a mistyped character
    END IF;
    RETURN account;
END $$;
-- +goose StatementEnd

-- hex_address spells an Ethereum address as it is compared: the case of its letters is a checksum and no more.
CREATE FUNCTION hex_address(address text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT lower(address COLLATE "C") $$;

-- twin_address is the other network's spelling of an address, that of Ethereum in small letters. NULL where a network's
-- keys are of another kind, as Solana's are.
CREATE FUNCTION twin_address(network text, address text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
    SELECT CASE
        WHEN network = 'tron' THEN '0x' || encode(tron_account(address), 'hex')
        WHEN network = 'ethereum' AND hex_address(address) ~ '^0x[0-9a-f]{40}$' THEN tron_address(decode(substr(hex_address(address), 3), 'hex'))
    END
$$;

-- A wallet with the purpose twin is the other network's side of another wallet's key. It is made when money came there.
ALTER TABLE wallets
    ADD COLUMN twin text GENERATED ALWAYS AS (twin_address(network, address)) STORED,
    ADD COLUMN twin_of uuid REFERENCES wallets (id),
    DROP CONSTRAINT wallets_purpose_check,
    ADD CONSTRAINT wallets_purpose_check CHECK (purpose IN ('', 'treasury', 'gas', 'escrow', 'twin')),
    ADD CONSTRAINT wallets_twin CHECK ((twin_of IS NOT NULL) = (purpose = 'twin')),
    ADD CONSTRAINT wallets_twin_of_key UNIQUE (twin_of);
-- One key is one wallet: with a wallet of its own on each network, what is meant for one of them would be the other's.
CREATE UNIQUE INDEX wallets_account_key ON wallets ((CASE WHEN network = 'ethereum' THEN hex_address(address) ELSE twin END)) WHERE purpose <> 'twin';
CREATE UNIQUE INDEX wallets_twin_key ON wallets (twin) WHERE purpose <> 'twin';

DROP TRIGGER wallets_same ON wallets;
CREATE TRIGGER wallets_same BEFORE UPDATE ON wallets FOR EACH ROW
    WHEN ((OLD.owner_type, OLD.owner_id, OLD.vendor_id, OLD.purpose, OLD.network, OLD.address, OLD.custody, OLD.twin_of)
          IS DISTINCT FROM
          (NEW.owner_type, NEW.owner_id, NEW.vendor_id, NEW.purpose, NEW.network, NEW.address, NEW.custody, NEW.twin_of))
    EXECUTE FUNCTION refuse_change();

-- check_twin holds a twin to the wallet whose key it has.
-- +goose StatementBegin
CREATE FUNCTION check_twin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM wallets w WHERE w.id = NEW.twin_of AND w.purpose <> 'twin' AND w.network <> NEW.network AND w.type = NEW.type AND w.custody = NEW.custody
        AND w.twin = CASE WHEN NEW.network = 'ethereum' THEN hex_address(NEW.address) ELSE NEW.address END;
    IF NOT FOUND OR NEW.owner_type <> 'treasury' THEN
        RAISE EXCEPTION 'wallet % is no twin of wallet %', NEW.id, NEW.twin_of USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER wallets_twin_true BEFORE INSERT ON wallets FOR EACH ROW WHEN (NEW.twin_of IS NOT NULL) EXECUTE FUNCTION check_twin();

-- A twin signs with the key of the wallet that it is of, which is sealed once.
-- +goose StatementBegin
CREATE FUNCTION refuse_twin_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets WHERE id = NEW.wallet_id AND purpose = 'twin') THEN
        RAISE EXCEPTION 'wallet % has the key of its twin', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER wallet_keys_no_twin BEFORE INSERT ON wallet_keys FOR EACH ROW EXECUTE FUNCTION refuse_twin_key();

-- is_twin tells whether an address is the wrong network's spelling of an address of ours. Nobody is paid there.
CREATE FUNCTION is_twin(network text, address text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM wallets w WHERE w.purpose <> 'twin' AND w.network <> $1
        AND w.twin = CASE WHEN $1 = 'ethereum' THEN hex_address($2) ELSE $2 END)
$$;

-- A payment of ours to a twin would be seen as ours and be owed to nobody. Gas goes there, for what is sent back.
-- +goose StatementBegin
CREATE FUNCTION refuse_twin_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF is_twin(NEW.network, NEW.to_address) THEN
        RAISE EXCEPTION 'payment or transfer % goes to an address of ours on the wrong network', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_not_to_twin BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose <> 'gas') EXECUTE FUNCTION refuse_twin_recipient();
CREATE TRIGGER transfers_not_to_twin BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION refuse_twin_recipient();

-- What the house keeps of what came to a twin goes to the treasury of its network, as from an escrow address.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION kept_sweep_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x payment_exceptions;
BEGIN
    SELECT * INTO x FROM payment_exceptions WHERE id = p.object_id FOR SHARE;
    IF x.status IS NULL OR x.status NOT IN ('accepted', 'written_off') OR x.asset <> p.asset OR x.amount <> p.amount OR NOT reserved_for(p, 'payment_exception', x.id) THEN
        RETURN 'it is no money that the house keeps';
    END IF;
    IF NOT EXISTS (SELECT FROM chain_deposits d JOIN wallets w ON w.id = d.wallet_id WHERE d.id = deposit_of(x.receipt) AND d.status = 'final'
            AND d.wallet_id = p.wallet_id AND d.asset = p.asset AND d.amount = p.amount AND w.owner_id IS NULL AND w.purpose IN ('escrow', 'twin')) THEN
        RETURN 'it does not leave the address where the money lies';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address AND w.owner_id IS NULL AND w.purpose = 'treasury') THEN
        RETURN 'it does not go to the treasury';
    END IF;
    RETURN '';
END $$;
-- +goose StatementEnd

-- What came to a twin is told as what it is, and nothing else is.
-- +goose StatementBegin
CREATE FUNCTION check_wrong_network() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM payment_exceptions x JOIN wallets w ON w.id = NEW.wallet_id WHERE x.id = NEW.exception_id
        AND (x.kind = 'wrong_network') = (w.purpose = 'twin') AND (x.kind <> 'wrong_network' OR x.receipt = NEW.network || ':' || NEW.tx_id || ':' || NEW.event_index);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'exception % is not what movement % is', NEW.exception_id, NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_deposits_network BEFORE UPDATE ON chain_deposits FOR EACH ROW
    WHEN (NEW.exception_id IS NOT NULL AND OLD.exception_id IS NULL) EXECUTE FUNCTION check_wrong_network();

package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// WalletFilter narrows a list of wallets.
type WalletFilter struct {
	OwnerID uuid.UUID
	Network exchange.Network
	Purpose exchange.HousePurpose
	Asset   money.Asset
	Type    exchange.WalletType
	Default *bool
}

const walletColumns = `id, owner_type, owner_id, vendor_id, purpose, network, address, asset, type, custody, label, is_default, counterpart_of, created_by, created_at, updated_at`

func walletSnapshot(w exchange.Wallet) map[string]any {
	return map[string]any{
		"id": w.ID, "owner_type": w.OwnerType, "owner_id": w.OwnerID, "purpose": w.Purpose, "network": w.Network, "address": w.Address,
		"asset": w.Asset, "type": w.Type, "custody": w.Custody, "is_default": w.IsDefault, "counterpart_of": nullID(w.CounterpartOf),
	}
}

const readWallet = `SELECT ` + walletColumns + ` FROM wallets WHERE id = $1`

const hasDefault = `SELECT EXISTS (SELECT FROM wallets WHERE owner_id = $1 AND network = $2 AND is_default)`

const clearDefault = `UPDATE wallets SET is_default = false, updated_at = $3 WHERE owner_id = $1 AND network = $2 AND is_default`

const insertWallet = `
INSERT INTO wallets (id, owner_type, owner_id, vendor_id, purpose, network, address, asset, type, custody, label, is_default, created_by, created_at, updated_at, intent_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15) RETURNING ` + walletColumns

const insertKey = `INSERT INTO wallet_keys (wallet_id, ciphertext, master_key, public_key, algorithm) VALUES ($1, $2, $3, $4, $5)`

// lockOwner serialises changes of one owner's wallets, so that two can't both become the default.
const lockOwner = `SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE`

// CreateWallet carries out an intent to create a custodial wallet, with its sealed key. A repeated call returns the
// existing wallet, whatever address and key it passes: the first key counts. CodeLimitReached when the owner has the
// maximum of wallets. The first wallet of an owner on a network becomes its default; a later one does if the request
// says so. The errors of useIntent come before all others.
func (s *Store) CreateWallet(ctx context.Context, a exchange.Asked, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	var created exchange.Wallet
	err := s.inTx(ctx, "wallet", func(t unitTx) error {
		asked, used, err := t.useIntent(ctx, a, exchange.IntendWallet)
		if err != nil {
			return err
		}
		if used {
			created, err = readOne[exchange.Wallet](ctx, t, "wallet", readWallet, asked.ObjectID)
			return err
		}
		r, err := exchange.WalletRequestOf(asked)
		if err != nil {
			return err
		}
		created, err = t.addWallet(ctx, r, asked.ID, address, key)
		return err
	})
	return created, err
}

const readEscrowRequest = `SELECT network FROM escrow_requests WHERE id = $1`

// CreateEscrowWallet stores the wallet that a request for the pool of escrow addresses asks for, with its sealed key. The
// request's id is the wallet's. A repeated call returns the existing wallet.
func (s *Store) CreateEscrowWallet(ctx context.Context, request uuid.UUID, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	var created exchange.Wallet
	err := s.inTx(ctx, "wallet", func(t unitTx) error {
		var rows []exchange.Wallet
		if err := t.All(ctx, &rows, readWallet, request); err != nil {
			return err
		}
		if len(rows) == 1 {
			created = rows[0]
			return nil
		}
		var n exchange.Network
		if err := t.Get(ctx, &n, readEscrowRequest, request); err != nil {
			return translate(err, "request for an escrow address")
		}
		var err error
		created, err = t.addWallet(ctx, exchange.EscrowWallet(request, n), uuid.Nil, address, key)
		return err
	})
	return created, err
}

// EscrowRequestNetwork is the network of a request for the pool; CodeNotFound when there is none.
func (s *Store) EscrowRequestNetwork(ctx context.Context, request uuid.UUID) (exchange.Network, error) {
	return readOne[exchange.Network](ctx, s.db, "request for an escrow address", readEscrowRequest, request)
}

func (t unitTx) addWallet(ctx context.Context, r exchange.WalletRequest, intent uuid.UUID, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	now, isDefault := t.s.now(), r.Default
	if r.OwnerID != uuid.Nil {
		if err := t.One(ctx, lockOwner, r.OwnerID); err != nil {
			return exchange.Wallet{}, err
		}
		if err := t.below(ctx, MaxWalletsPerOwner, countWallets, r.OwnerID, "wallets of one owner"); err != nil {
			return exchange.Wallet{}, err
		}
		var has bool
		if err := t.Get(ctx, &has, hasDefault, r.OwnerID, r.Network); err != nil {
			return exchange.Wallet{}, err
		}
		if isDefault = isDefault || !has; isDefault && has {
			if _, err := t.Exec(ctx, clearDefault, r.OwnerID, r.Network, now); err != nil {
				return exchange.Wallet{}, err
			}
		}
	}
	var w exchange.Wallet
	err := t.Get(ctx, &w, insertWallet, r.ID, r.OwnerType, nullID(r.OwnerID), nullID(r.VendorID), r.Purpose, r.Network, address, r.Asset, r.Type,
		exchange.Custodial, r.Label, isDefault, nullID(r.CreatedBy), now, nullID(intent))
	if err != nil {
		return exchange.Wallet{}, err
	}
	if _, err := t.Exec(ctx, insertKey, r.ID, key.Ciphertext, key.MasterKey, key.PublicKey, key.Algorithm); err != nil {
		return exchange.Wallet{}, err
	}
	by := exchange.System("wallets")
	by.UserID = r.CreatedBy
	return w, t.record(ctx, auditEvent{by: by, object: "wallet", id: w.ID, name: "wallet.created", owner: w.OwnerID, vendor: w.VendorID, after: walletSnapshot(w)})
}

const readScopedWallet = `SELECT ` + walletColumns + ` FROM wallets WHERE id = $1 AND ($2 OR owner_id = $3 OR vendor_id = $4)`

const readVisibleWallet = `SELECT ` + walletColumns + ` FROM wallets WHERE id = $1 AND ($2 OR owner_id = $3 OR vendor_id = $4
    OR id IN (SELECT m.id FROM multisig_accounts m WHERE m.merchant_id = $4))`

// Wallet reads a wallet. A merchant's people also read those of the treasury that are shared with the merchant.
func (s *Store) Wallet(ctx context.Context, v View, id uuid.UUID) (exchange.Wallet, error) {
	all, owner, vendor := v.args()
	return readOne[exchange.Wallet](ctx, s.db, "wallet", readVisibleWallet, id, all, owner, vendor)
}

// ListWallets pages through the wallets that the view may see (see Wallet), newest first, with their number.
func (s *Store) ListWallets(ctx context.Context, v View, f WalletFilter, p Page) ([]exchange.Wallet, int, error) {
	var w where
	if _, _, vendor := v.args(); vendor.Valid {
		w.add(`(vendor_id = ? OR id = ANY (ARRAY(SELECT m.id FROM multisig_accounts m WHERE m.merchant_id = ?)))`, vendor, vendor)
	} else {
		w.scope(v, "owner_id", "vendor_id")
	}
	w.id("owner_id", f.OwnerID)
	w.eq("network", string(f.Network))
	w.eq("purpose", string(f.Purpose))
	w.eq("asset", string(f.Asset))
	w.eq("type", string(f.Type))
	if f.Default != nil {
		w.add(`is_default = ?`, *f.Default)
	}
	return readPage[exchange.Wallet](ctx, s, "wallet", list{columns: walletColumns, from: "wallets", where: w, order: "created_at DESC, id DESC"}, p)
}

const readDefaultWallet = `SELECT ` + walletColumns + ` FROM wallets WHERE owner_id = $1 AND network = $2 AND is_default`

// DefaultWallet reads an owner's default wallet on a network; CodeNotFound when it has none there.
func (s *Store) DefaultWallet(ctx context.Context, ownerID uuid.UUID, network exchange.Network) (exchange.Wallet, error) {
	return readOne[exchange.Wallet](ctx, s.db, "wallet", readDefaultWallet, ownerID, network)
}

// HouseWallet reads the wallet of the house's treasury that takes and pays crypto on a network; CodeNotFound when there is none.
func (s *Store) HouseWallet(ctx context.Context, n exchange.Network) (exchange.Wallet, error) {
	return readOne[exchange.Wallet](ctx, s.db, "wallet", houseWallet, n)
}

const setDefault = `UPDATE wallets SET is_default = true, updated_at = $2 WHERE id = $1 RETURNING ` + walletColumns

// SetDefaultWallet makes a wallet the default of its owner on its network.
func (s *Store) SetDefaultWallet(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Wallet, error) {
	all, owner, vendor := v.args()
	var changed exchange.Wallet
	err := s.inTx(ctx, "wallet", func(t unitTx) error {
		var r exchange.Wallet
		if err := t.Get(ctx, &r, readScopedWallet, id, all, owner, vendor); err != nil {
			return err
		}
		if r.OwnerID == uuid.Nil {
			return exchange.Errorf(exchange.CodeStateConflict, "A wallet of the house has no owner, so it can't be a default wallet.")
		}
		if err := t.One(ctx, lockOwner, r.OwnerID); err != nil {
			return err
		}
		if err := t.Get(ctx, &r, readScopedWallet, id, all, owner, vendor); err != nil {
			return err
		}
		before := r
		if changed = before; before.IsDefault {
			return nil
		}
		if _, err := t.Exec(ctx, clearDefault, before.OwnerID, before.Network, t.s.now()); err != nil {
			return err
		}
		if err := t.Get(ctx, &r, setDefault, id, t.s.now()); err != nil {
			return err
		}
		changed = r
		return t.record(ctx, auditEvent{
			by: by, object: "wallet", id: id, name: "wallet.default_changed", owner: changed.OwnerID, vendor: changed.VendorID,
			before: walletSnapshot(before), after: walletSnapshot(changed),
		})
	})
	return changed, err
}

// WalletBalances reads what the house owes the owner of a wallet by the ledger, per asset that its network can hold.
func (s *Store) WalletBalances(ctx context.Context, walletID uuid.UUID) ([]exchange.Account, error) {
	return s.walletAccounts(ctx, exchange.AccWalletBalance, walletID)
}

// WalletCustody reads what is at the address of a wallet by the ledger, per asset that its network can hold. It equals
// the chain's balance at a block up to which everything is booked.
func (s *Store) WalletCustody(ctx context.Context, walletID uuid.UUID) ([]exchange.Account, error) {
	return s.walletAccounts(ctx, exchange.AccCustody, walletID)
}

func (s *Store) walletAccounts(ctx context.Context, kind exchange.AccountKind, walletID uuid.UUID) ([]exchange.Account, error) {
	w, err := s.Wallet(ctx, Everything(), walletID)
	if err != nil {
		return nil, err
	}
	var all []exchange.Account
	for _, asset := range w.Network.WalletAssets() {
		a, err := s.Account(ctx, exchange.Owned(kind, walletID, asset))
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

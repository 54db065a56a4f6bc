package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// OwnerType is the kind of owner that a wallet is created for.
type OwnerType string

// The owner types of the wallet creation request.
const (
	OwnerCustomer    OwnerType = "customer"
	OwnerTreasury    OwnerType = "treasury"
	OwnerMerchant    OwnerType = "merchant"
	OwnerSubMerchant OwnerType = "sub_merchant"
)

// Valid reports whether t is a known owner type.
func (t OwnerType) Valid() bool {
	return t == OwnerCustomer || t == OwnerTreasury || t == OwnerMerchant || t == OwnerSubMerchant
}

// WalletType is whether the service signs with a wallet's key.
type WalletType string

// The signer worker uses a hot wallet's key. A cold wallet is signed for elsewhere.
const (
	Hot  WalletType = "hot"
	Cold WalletType = "cold"
)

// Valid reports whether t is a known wallet type.
func (t WalletType) Valid() bool { return t == Hot || t == Cold }

// Custody is who holds the key.
type Custody string

// The key of a custodial wallet is in our key store. A multisig wallet has no key, but owners with theirs.
const (
	Custodial Custody = "custodial"
	Multisig  Custody = "multisig"
)

// HousePurpose is what a wallet of the house is for; empty for other wallets.
type HousePurpose string

// The purposes of house wallets.
const (
	HouseTreasury HousePurpose = "treasury" // the hot treasury wallet of a network
	HouseGas      HousePurpose = "gas"      // pays the network's fees
	HouseEscrow   HousePurpose = "escrow"   // an address of the escrow pool
	// HouseCounterpart is the account of a wallet's key on the other network: Ethereum and TRON write the same account in
	// two ways. It is made when money arrives there unexpectedly.
	HouseCounterpart HousePurpose = "counterpart"
	// HouseMultisig is an account of several owners. No key of it is ours alone, and nothing leaves it but what its owners sign.
	HouseMultisig HousePurpose = "multisig"
)

// Wallet is one address on one network, with its owner. Its key is sealed in a separate row.
type Wallet struct {
	ID            uuid.UUID
	OwnerType     OwnerType
	OwnerID       uuid.UUID // the owning user; zero for the house
	VendorID      uuid.UUID // the master merchant behind the owner, for merchants and sub-merchants
	Purpose       HousePurpose
	Network       Network
	Address       string
	Asset         money.Asset // the primary stablecoin, a label only
	Type          WalletType
	Custody       Custody
	Label         string
	IsDefault     bool      // the owner's default on its network
	CounterpartOf uuid.UUID // the wallet with the same key, for the purpose HouseCounterpart; zero for others
	CreatedBy     uuid.UUID
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Moves reports whether an asset in the wallet can be moved. What can't be is no money of anyone: the coins of an account of several owners on
// Solana are what opening it cost.
func (w Wallet) Moves(a money.Asset) bool {
	return w.Custody != Multisig || a != w.Network.NativeCoin() || MultisigKindOn(w.Network).SpendsCoin()
}

// SealedKey is a wallet's private key as sealed by the key store.
type SealedKey struct {
	WalletID   uuid.UUID
	Purpose    string  // empty for a wallet's key; see OwnerKeyPurpose
	Network    Network // of the wallet; empty when the key is new
	Ciphertext []byte
	MasterKey  string // the address of the key that sealed it
	PublicKey  []byte
	Algorithm  string // "secp256k1" or "ed25519"
}

// MasterKeyUse is how many keys of wallets a master key seals.
type MasterKeyUse struct {
	MasterKey string
	Keys      int
}

// WalletRequest requests one wallet row for a resolved owner.
type WalletRequest struct {
	ID        uuid.UUID    `json:"id"`
	OwnerType OwnerType    `json:"owner_type"`
	OwnerID   uuid.UUID    `json:"owner_id"`
	VendorID  uuid.UUID    `json:"vendor_id"`
	Purpose   HousePurpose `json:"purpose,omitempty"`
	Network   Network      `json:"network"`
	Asset     money.Asset  `json:"asset"`
	Type      WalletType   `json:"type"`
	Label     string       `json:"label,omitempty"`
	Default   bool         `json:"default"`
	CreatedBy uuid.UUID    `json:"created_by"`
}

package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// OwnerType says for whom a wallet is created.
type OwnerType string

// The owner types of the wallet creation request.
const (
	OwnerCustomer    OwnerType = "customer"
	OwnerTreasury    OwnerType = "treasury"
	OwnerMerchant    OwnerType = "merchant"
	OwnerSubMerchant OwnerType = "sub_merchant"
)

// Valid tells whether t is a known owner type.
func (t OwnerType) Valid() bool {
	return t == OwnerCustomer || t == OwnerTreasury || t == OwnerMerchant || t == OwnerSubMerchant
}

// WalletType tells a wallet that signs by itself from one that never does.
type WalletType string

// A hot wallet's key is used by the signer worker. A cold wallet never signs there.
const (
	Hot  WalletType = "hot"
	Cold WalletType = "cold"
)

// Valid tells whether t is a known wallet type.
func (t WalletType) Valid() bool { return t == Hot || t == Cold }

// Custody says who holds the key.
type Custody string

// Custodial keys are in our key store; multisig treasury wallets come with a later flow.
const (
	Custodial Custody = "custodial"
	Multisig  Custody = "multisig"
)

// HousePurpose says what a wallet of the house itself is for; empty for everybody else's.
type HousePurpose string

// The purposes of house wallets.
const (
	HouseTreasury HousePurpose = "treasury" // the hot treasury wallet of a network
	HouseGas      HousePurpose = "gas"      // pays the network's fees
	HouseEscrow   HousePurpose = "escrow"   // an address of the escrow pool
	// HouseTwin is the other network's side of a wallet's key: Ethereum and TRON spell the same account in two ways.
	// It is made when money came there, which nobody had asked for.
	HouseTwin HousePurpose = "twin"
)

// Wallet is one address on one network and who owns it. Its key is sealed in a row of its own.
type Wallet struct {
	ID        uuid.UUID
	OwnerType OwnerType
	OwnerID   uuid.UUID // the user whose wallet it is; zero for the house
	VendorID  uuid.UUID // the master merchant behind the owner, for merchants and sub-merchants
	Purpose   HousePurpose
	Network   Network
	Address   string
	Asset     money.Asset // the primary stablecoin, a label only
	Type      WalletType
	Custody   Custody
	Label     string
	IsDefault bool      // the owner's default on its network
	TwinOf    uuid.UUID // whose key a wallet with the purpose HouseTwin has; zero for all others
	CreatedBy uuid.UUID
	CreatedAt time.Time
	UpdatedAt time.Time
}

// SealedKey is a wallet's private key as the key store sealed it.
type SealedKey struct {
	WalletID   uuid.UUID
	Network    Network // of the wallet that it was sealed for; empty when the key is new
	Ciphertext []byte
	MasterKey  string // the address of the key that sealed it
	PublicKey  []byte
	Algorithm  string // "secp256k1" or "ed25519"
}

// WalletRequest asks for one wallet row for a resolved owner.
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

package exchange

import "github.com/google/uuid"

// Merchant is a master vendor with its wallets and subvendors.
type Merchant struct {
	User       User
	Wallets    []Wallet
	Subvendors []Subvendor
	FiatKES    Account
}

// Subvendor is a user that acts for a master vendor, with its wallets.
type Subvendor struct {
	User    User
	Wallets []Wallet
}

// VendorOf returns the master merchant behind a user: itself for a vendor, its vendor for a subvendor, zero for others.
func VendorOf(u User) uuid.UUID {
	if u.Role == RoleVendor {
		return u.ID
	}
	return u.VendorID // zero for all roles but subvendors
}

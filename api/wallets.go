package api

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireWallet is a wallet record.
type wireWallet struct {
	ID         uuid.UUID  `json:"id"`
	OwnerType  string     `json:"owner_type"`
	OwnerID    *uuid.UUID `json:"owner_id"`
	VendorID   *uuid.UUID `json:"vendor_id"`
	Purpose    *string    `json:"purpose"`
	Network    string     `json:"network"`
	Address    string     `json:"address"`
	Asset      string     `json:"asset"`
	WalletType string     `json:"wallet_type"`
	Custody    string     `json:"custody"`
	Label      *string    `json:"label"`
	IsDefault  bool       `json:"is_default"`
	CreatedAt  timestamp  `json:"created_at"`
	UpdatedAt  timestamp  `json:"updated_at"`
}

func walletWire(w exchange.Wallet) wireWallet {
	return wireWallet{
		ID: w.ID, OwnerType: string(w.OwnerType), OwnerID: optID(w.OwnerID), VendorID: optID(w.VendorID),
		Purpose: optText(string(w.Purpose)), Network: string(w.Network), Address: w.Address, Asset: string(w.Asset),
		WalletType: string(w.Type), Custody: string(w.Custody), Label: optText(w.Label), IsDefault: w.IsDefault,
		CreatedAt: stamp(w.CreatedAt), UpdatedAt: stamp(w.UpdatedAt),
	}
}

var (
	walletTypes   = []string{"hot", "cold"}
	ownerTypes    = []string{"customer", "treasury", "merchant", "sub_merchant"}
	housePurposes = []string{"treasury", "gas", "escrow"}
	// listedPurposes are the purposes of existing house wallets. The system creates a counterpart wallet when money arrives there, and
	// two officers agree to one of several owners.
	listedPurposes = append([]string{"counterpart", string(exchange.HouseMultisig)}, housePurposes...)
	// walletNetworks are the networks on which the interface description allows users to create wallets. Solana wallets are
	// provisioned by an admin.
	walletNetworks = []string{"ethereum", "tron"}
)

// readWallet reads the fields that are common to all operations that create a wallet.
func (c *call) readWallet(f *form, networks []string) exchange.WalletRequest {
	r := exchange.WalletRequest{
		ID: c.objectID, CreatedBy: c.who.UserID, Type: exchange.Hot,
		Network: exchange.Network(f.oneOf("network", true, networks...)), Asset: money.Asset(f.oneOf("asset", true, stablecoins...)),
		Label: f.line("label", false, maxLabelLength),
	}
	if t := f.oneOf("wallet_type", false, walletTypes...); t != "" {
		r.Type = exchange.WalletType(t)
	}
	if set := f.boolean("set_default", false); set != nil {
		r.Default = *set
	}
	return r
}

// createWallet creates a custodial wallet for the caller, or for any user when the caller is an admin.
func (s *server) createWallet(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := c.readWallet(f, walletNetworks)
	owner := f.id("user_id", c.who.Role.Staff())
	if err := f.done(); err != nil {
		return err
	}
	if owner == uuid.Nil {
		owner = c.who.UserID
	}
	if c.who.Role != exchange.RoleAdmin && owner != c.who.UserID {
		return exchange.Errorf(exchange.CodeForbidden, "Only an admin may create wallets for other users here; merchants use /wallets/owner.")
	}
	u, err := s.owner(c, owner, "/user_id")
	if err != nil {
		return err
	}
	return s.makeWallet(c, own(r, u))
}

// owner returns the user who will own the wallet.
func (s *server) owner(c *call, id uuid.UUID, pointer string) (exchange.User, error) {
	u, err := s.Store.User(c.ctx, id)
	if exchange.CodeOf(err) == exchange.CodeNotFound || (err == nil && u.Role.Staff()) {
		return u, exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: "not_found", Message: "is not the id of a user who can own a wallet"})
	}
	return u, err
}

// own sets the owner of a request.
func own(r exchange.WalletRequest, u exchange.User) exchange.WalletRequest {
	r.OwnerID, r.VendorID = u.ID, exchange.VendorOf(u)
	switch u.Role {
	case exchange.RoleVendor:
		r.OwnerType = exchange.OwnerMerchant
	case exchange.RoleSubvendor:
		r.OwnerType = exchange.OwnerSubMerchant
	default:
		r.OwnerType = exchange.OwnerCustomer
	}
	return r
}

// ownerForm is the wallet creation request of the interface description.
type ownerForm struct {
	request                     exchange.WalletRequest
	kind                        exchange.OwnerType
	user, merchant, subMerchant uuid.UUID
	multisig                    exchange.MultisigRequest
}

// createOwnerWallet creates a wallet for an owner of any type.
func (s *server) createOwnerWallet(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	in := s.readOwnerForm(c, f)
	if err := f.done(); err != nil {
		return err
	}
	if in.kind == exchange.OwnerTreasury {
		return s.proposeMultisig(c, in.multisig)
	}
	u, err := s.resolveOwner(c, in)
	if err != nil {
		return err
	}
	return s.makeWallet(c, own(in.request, u))
}

func (s *server) readOwnerForm(c *call, f *form) ownerForm {
	in := ownerForm{kind: exchange.OwnerType(f.oneOf("owner_type", true, ownerTypes...))}
	in.request = c.readWallet(f, walletNetworks)
	in.user = f.id("user_id", in.kind == exchange.OwnerCustomer)
	if m := f.object("merchant", in.kind == exchange.OwnerMerchant); m != nil {
		in.merchant = m.id("vendor_id", true)
	}
	if m := f.object("sub_merchant", in.kind == exchange.OwnerSubMerchant); m != nil {
		in.subMerchant = m.id("subvendor_id", true)
	}
	if in.kind == exchange.OwnerTreasury {
		in.multisig = s.readMultisig(f, in.request)
	}
	for _, part := range ownerParts {
		if _, given := f.take(part.name, false); given && in.kind != "" && in.kind != part.kind {
			f.fail(part.name, "conflict", "must be left out unless owner_type is "+string(part.kind))
		}
	}
	return in
}

// ownerParts maps the parts of the request to owner types.
var ownerParts = []struct {
	name string
	kind exchange.OwnerType
}{
	{"user_id", exchange.OwnerCustomer},
	{"merchant", exchange.OwnerMerchant},
	{"sub_merchant", exchange.OwnerSubMerchant},
	{"treasury", exchange.OwnerTreasury},
	{"custody", exchange.OwnerTreasury},
	{"multisig", exchange.OwnerTreasury},
}

// resolveOwner finds the owner and checks the rules of the interface description: a customer may create wallets for itself,
// a merchant for itself and its sub-merchants, an admin for any user.
func (s *server) resolveOwner(c *call, in ownerForm) (exchange.User, error) {
	pointer, id, role := "/user_id", in.user, c.who.Role
	allowed := role == exchange.RoleCustomer || role == exchange.RoleUser
	admin := role == exchange.RoleAdmin
	fits := func(u exchange.User) bool {
		return u.Role == exchange.RoleCustomer || u.Role == exchange.RoleUser || admin && !u.Role.Staff()
	}
	mine := func(u exchange.User) bool { return u.ID == c.who.UserID }
	switch in.kind {
	case exchange.OwnerMerchant:
		pointer, id, allowed = "/merchant/vendor_id", in.merchant, role.Merchant()
		fits = func(u exchange.User) bool { return u.Role == exchange.RoleVendor }
		mine = func(u exchange.User) bool { return u.ID == c.who.VendorID }
	case exchange.OwnerSubMerchant:
		pointer, id, allowed = "/sub_merchant/subvendor_id", in.subMerchant, role.Merchant()
		fits = func(u exchange.User) bool { return u.Role == exchange.RoleSubvendor }
		mine = func(u exchange.User) bool { return u.VendorID == c.who.VendorID }
	case exchange.OwnerCustomer, exchange.OwnerTreasury:
	}
	if !allowed && !admin {
		return exchange.User{}, exchange.Errorf(exchange.CodeForbidden, "The role %s may not create wallets with owner_type %s.", role, in.kind)
	}
	u, err := s.Store.User(c.ctx, id)
	if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		return u, err
	}
	// The answer is the same for an unknown user and for one that the caller may not act for.
	if err != nil || !fits(u) || (!admin && !mine(u)) {
		return u, exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: "not_found", Message: "is not the id of an owner of this type whom you may act for"})
	}
	return u, nil
}

// provisionWallet lets an admin create wallets of the house, and any wallet for a user, and an officer propose a wallet of several
// owners. Only this operation creates wallets on Solana.
func (s *server) provisionWallet(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := c.readWallet(f, networkNames)
	r.Purpose = exchange.HousePurpose(f.oneOf("purpose", false, housePurposes...))
	user := f.id("user_id", false)
	shared := f.has("multisig") || f.has("treasury") || f.has("custody")
	var multisig exchange.MultisigRequest
	if shared {
		multisig = s.readMultisig(f, r)
		f.forbid("purpose", "a wallet of several owners is the treasury's")
		f.forbid("user_id", "a wallet of several owners is the treasury's")
	}
	switch {
	case shared:
	case f.has("purpose") && f.has("user_id"):
		f.fail("user_id", "conflict", "must be left out when purpose is given: the wallet is the house's own")
	case !f.has("purpose") && !f.has("user_id"):
		f.fail("user_id", "required", "is required, or purpose or multisig instead")
	}
	if err := f.done(); err != nil {
		return err
	}
	if shared {
		return s.proposeMultisig(c, multisig)
	}
	if c.who.Role != exchange.RoleAdmin {
		return exchange.Errorf(exchange.CodeForbidden, "The role %s may provision wallets of several owners only.", c.who.Role)
	}
	if user == uuid.Nil {
		r.OwnerType = exchange.OwnerTreasury
		return s.makeWallet(c, r)
	}
	u, err := s.owner(c, user, "/user_id")
	if err != nil {
		return err
	}
	return s.makeWallet(c, own(r, u))
}

// canHold refuses a wallet on a network that is off here, or for an asset that is not offered there.
func (s *server) canHold(n exchange.Network, a money.Asset) error {
	if s.Addresses[n] == nil {
		return exchange.Errorf(exchange.CodeUnsupported, "The network %s is not enabled here, so no wallet can be created on it.", n)
	}
	return s.offered(n, a)
}

// makeWallet has the signer create the key and answers with the stored wallet.
func (s *server) makeWallet(c *call, r exchange.WalletRequest) error {
	if err := s.canHold(r.Network, r.Asset); err != nil {
		return err
	}
	err := s.ask(c, exchange.IntendWallet, r.ID, r.Terms(), func(intent uuid.UUID) error { return s.Flows.CreateWallet(c.ctx, r.ID, intent) })
	if err != nil {
		return err
	}
	w, err := s.Store.Wallet(c.ctx, store.Everything(), r.ID)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/wallet/id/"+w.ID.String())
	return c.json(http.StatusCreated, walletWire(w))
}

func (s *server) listWallets(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.WalletFilter{
		OwnerID: q.id("owner_id"), Network: exchange.Network(q.oneOf("network", networkNames...)),
		Purpose: exchange.HousePurpose(q.oneOf("purpose", listedPurposes...)), Asset: money.Asset(q.oneOf("asset", stablecoins...)),
		Type: exchange.WalletType(q.oneOf("wallet_type", walletTypes...)), Default: q.yesNo("is_default"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "wallets", page, walletWire)(s.Store.ListWallets(c.ctx, c.view(), filter, page))
}

func (s *server) getWallet(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, walletWire)(s.Store.Wallet(c.ctx, c.view(), id))
}

// setDefaultWallet makes a wallet its owner's default on the wallet's network. The legacy operation does the same,
// because a wallet has one network.
func (s *server) setDefaultWallet(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, walletWire)(s.Store.SetDefaultWallet(c.ctx, c.view(), id, c.who))
}

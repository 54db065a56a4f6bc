package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
)

const insertTransfer = `
INSERT INTO transfers (id, kind, requested_by, sender_id, vendor_id, recipient_id, recipient_vendor_id, network, asset, amount, wallet_id, wallet_type,
    from_address, to_wallet_id, to_address, note, value, rate, digest, status, status_detail, hold_id, created_at, updated_at,
    fee, fee_profile_id, fee_hold_id, fx_quote_id, fiat_currency, fiat_amount, fiat_rate, intent_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $23, $24, $25, $26, $27, $28, $29, $30, $31)`

// OpenTransfer carries out an intent to transfer: it stores the transfer, holds its amount and counts its value against
// the requester's limits, all in the transaction that uses the intent. A repeated call returns the existing transfer.
// CodeInvalid names the wrong field, CodeLimitReached a limit, CodeInsufficientFunds a wallet with too little available. A
// quote is used up in the same transaction: CodeStateConflict for one that was used or replaced, CodeExpired for an
// expired one. The errors of useIntent come before all others.
func (s *Store) OpenTransfer(ctx context.Context, a exchange.Asked) (exchange.Transfer, error) {
	r, err := readAsked(ctx, s, a, exchange.TransferRequestOf, exchange.IntendTransfer)
	if err != nil {
		return exchange.Transfer{}, err
	}
	return change(ctx, s, "transfer", r.RequestedBy, func(ctx context.Context, t unitTx) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		asked, used, err := t.useIntent(ctx, a, exchange.IntendTransfer)
		if err != nil {
			return exchange.Transfer{}, none, err
		}
		if used {
			old, err := readOne[exchange.Transfer](ctx, t, "transfer", readTransfer, asked.ObjectID)
			return old, none, err
		}
		return t.openTransfer(ctx, asked, r)
	})
}

func (t unitTx) openTransfer(ctx context.Context, asked exchange.Intent, r exchange.TransferRequest) (exchange.Transfer, exchange.Posting, error) {
	var none exchange.Posting
	by := asked.By
	var asker exchange.User
	if err := t.Get(ctx, &asker, lockCustomer, r.RequestedBy); err != nil {
		return exchange.Transfer{}, none, translate(err, "user")
	}
	f, err := t.draftTransfer(ctx, r, asker)
	if err != nil {
		return f, none, err
	}
	if err := t.priceTransfer(ctx, &f, r, asker.Role, by); err != nil {
		return f, none, err
	}
	f.Digest = f.Intent()
	if f.HoldID, err = uuid.NewV7(); err != nil {
		return f, none, err
	}
	if err := t.underTransfers(ctx, f, asker.Role); err != nil {
		return f, none, err
	}
	if err := t.transferFees(ctx, asker.Role, f); err != nil {
		return f, none, err
	}
	if err := t.insertTransfer(ctx, f, asked.ID); err != nil {
		return f, none, err
	}
	shared, err := t.toShared(ctx, f)
	if err != nil {
		return f, none, err
	}
	if err := t.countTransfer(ctx, f, shared, asker.Role); err != nil {
		return f, none, err
	}
	leaves, err := t.transferRelease(ctx, f, shared, asked.ID)
	if err != nil {
		return f, none, err
	}
	v, err := t.announce(ctx, leaves)
	if err != nil {
		return f, none, err
	}
	f.ApprovalsRequired, f.RestsUntil = v.Officers, v.Until
	p := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: f.HoldID, Key: "transfer:" + f.ID.String(), Account: exchange.Owned(exchange.AccWalletBalance, f.WalletID, f.Amount.Asset()),
		Amount: f.Amount, ObjectType: "transfer", ObjectID: f.ID,
	}}}}
	p.Holds = append(p.Holds, feeHold(f)...)
	return f, p, t.record(ctx, transferRecord("transfer.created", by, nil, f))
}

// Transfers of a merchant and its subvendors are counted together. Those that were never sent cost nothing.
const countSent = `
SELECT count(*) FROM transfers WHERE created_at >= $1 AND status NOT IN ('cancelled', 'rejected', 'blocked')
    AND CASE WHEN $2::uuid IS NOT NULL THEN vendor_id = $2 WHEN $3::uuid IS NOT NULL THEN sender_id = $3 ELSE sender_id IS NULL END`

// underTransfers refuses a transfer above the daily number of its requester, whatever its value: the house pays each
// network fee. The requester is locked, and so is the merchant of a subvendor, so that two concurrent transfers can't
// both be the last. The house's own transfers are counted without a lock.
func (t unitTx) underTransfers(ctx context.Context, f exchange.Transfer, role exchange.Role) error {
	if f.VendorID != uuid.Nil && f.VendorID != f.RequestedBy {
		var merchant exchange.User
		if err := t.Get(ctx, &merchant, lockCustomer, f.VendorID); err != nil {
			return translate(err, "merchant")
		}
	}
	var sent int
	if err := t.Get(ctx, &sent, countSent, exchange.DayOf(t.s.now()), nullID(f.VendorID), nullID(f.SenderID)); err != nil {
		return err
	}
	if most := t.s.limits.transfers(role); sent >= most {
		return exchange.Errorf(exchange.CodeLimitReached, "At most %d transfers may be sent per day.", most)
	}
	return nil
}

const isShared = `SELECT EXISTS (SELECT FROM wallets WHERE id = $1 AND purpose = 'multisig')`

// toShared reports whether a transfer goes to an account of several owners.
func (t unitTx) toShared(ctx context.Context, f exchange.Transfer) (shared bool, err error) {
	if f.Kind == exchange.InternalTransfer && f.RecipientID == uuid.Nil {
		err = t.Get(ctx, &shared, isShared, f.ToWalletID)
	}
	return shared, err
}

// countTransfer counts a transfer against the limits. Transfers between wallets that a user has alone don't count.
func (t unitTx) countTransfer(ctx context.Context, f exchange.Transfer, shared bool, role exchange.Role) error {
	if f.Kind == exchange.InternalTransfer && f.SenderID == f.RecipientID && !shared {
		return nil
	}
	return t.useLimit(ctx, limitUse{userID: f.RequestedBy, role: role, objectType: "transfer", objectID: f.ID, value: f.Value})
}

// draftTransfer checks a request and fills in derived fields.
func (t unitTx) draftTransfer(ctx context.Context, r exchange.TransferRequest, asker exchange.User) (exchange.Transfer, error) {
	now := t.s.now()
	f := exchange.Transfer{
		ID: r.ID, RequestedBy: r.RequestedBy, Network: r.Network, Amount: r.Amount, Note: clip(r.Note, exchange.MaxTransferNote),
		Status: exchange.TransferCreated, StatusDetail: exchange.WaitNothing, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if !asker.IsActive {
		return f, exchange.Errorf(exchange.CodeForbidden, "Only an active account can send.")
	}
	if err := require(r.Amount.Asset().Stablecoin(), "/asset", "enum", "must be USDT or USDC"); err != nil {
		return f, err
	}
	if err := require(r.Amount.Positive(), "/amount", "out_of_range", "must be above zero"); err != nil {
		return f, err
	}
	from, err := t.sendingWallet(ctx, r, asker)
	if err != nil {
		return f, err
	}
	f.WalletID, f.WalletType, f.FromAddress = from.ID, from.Type, from.Address
	f.SenderID, f.VendorID = from.OwnerID, from.VendorID
	if err := t.fillRecipient(ctx, &f, r, asker); err != nil {
		return f, err
	}
	if f.Value, f.Rate, err = t.valueOf(ctx, f.Amount); err != nil {
		return f, err
	}
	return f, nil
}

// sendingWallet finds the paying wallet: one of the requester's own, of its merchant, or for treasury officers one of
// the house's treasury. Another owner's wallet is reported as missing.
func (t unitTx) sendingWallet(ctx context.Context, r exchange.TransferRequest, asker exchange.User) (exchange.Wallet, error) {
	var found []exchange.Wallet
	var err error
	if r.WalletID == uuid.Nil {
		err = t.All(ctx, &found, readDefaultWallet, r.RequestedBy, r.Network)
	} else {
		err = t.All(ctx, &found, readWallet, r.WalletID)
	}
	if err != nil {
		return exchange.Wallet{}, err
	}
	const pointer = "/from_wallet_id"
	if r.WalletID == uuid.Nil && len(found) == 0 {
		return exchange.Wallet{}, require(false, pointer, "required", "must be given: there is no default wallet on this network")
	}
	if len(found) == 0 || !maySpend(asker, found[0]) {
		return exchange.Wallet{}, require(false, pointer, "not_found", "must be the id of one of your wallets")
	}
	w := found[0]
	if err := require(w.Network == r.Network, pointer, "mismatch", "must be a wallet on the network of the transfer"); err != nil {
		return w, err
	}
	return w, require(w.Custody == exchange.Custodial, pointer, "unsupported", "must be a custodial wallet; multisig wallets pay by proposals")
}

func maySpend(asker exchange.User, w exchange.Wallet) bool {
	switch asker.Role {
	case exchange.RoleCustomer, exchange.RoleUser:
		return w.OwnerID != uuid.Nil && w.OwnerID == asker.ID
	case exchange.RoleVendor:
		return w.VendorID != uuid.Nil && w.VendorID == asker.ID
	case exchange.RoleSubvendor:
		return w.VendorID != uuid.Nil && w.VendorID == asker.VendorID
	case exchange.RoleTreasury:
		return w.OwnerID == uuid.Nil && w.Purpose == exchange.HouseTreasury
	case exchange.RoleAdmin, exchange.RoleOTCOfficer:
	}
	return false
}

const readWalletByAddress = `SELECT ` + walletColumns + ` FROM wallets WHERE network = $1 AND address = $2`

// fillRecipient determines where the money goes. A recipient with a wallet in our custody is paid there, even if only
// its address was given.
func (t unitTx) fillRecipient(ctx context.Context, f *exchange.Transfer, r exchange.TransferRequest, asker exchange.User) error {
	to, pointer, err := t.receivingWallet(ctx, r)
	if err != nil {
		return err
	}
	if to == nil {
		f.Kind, f.ToAddress = exchange.ExternalTransfer, r.Recipient.Address
		return nil
	}
	if err := require(to.OwnerID != uuid.Nil || asker.Role == exchange.RoleTreasury, pointer, "own_wallet", "must not be one of the house's own wallets"); err != nil {
		return err
	}
	// A payment there would be seen as ours, be owed to no owner, and fund no order.
	if err := require(to.Purpose != exchange.HouseCounterpart, pointer, "own_wallet", "must not be the address of a wallet of ours on another network"); err != nil {
		return err
	}
	if err := require(to.Purpose != exchange.HouseEscrow, pointer, "own_wallet", "must not be an escrow address; set wallet_id on the order to fund it"); err != nil {
		return err
	}
	if err := require(to.ID != f.WalletID, pointer, "own_wallet", "must not be the wallet that pays"); err != nil {
		return err
	}
	if to.Purpose == exchange.HouseMultisig {
		differs := exchange.FieldError{Pointer: pointer, Code: "owners_differ", Message: "must not be a wallet whose owners on the chain are others than were agreed"}
		if err := t.requireRow(ctx, isActiveMultisig, true, differs, to.ID); err != nil {
			return err
		}
	}
	f.Kind, f.ToWalletID, f.ToAddress = exchange.InternalTransfer, to.ID, to.Address
	f.RecipientID, f.RecipientVendorID = to.OwnerID, to.VendorID
	return nil
}

// receivingWallet finds the wallet of a recipient, nil for an address that is not ours, and the pointer of the field
// that named it.
func (t unitTx) receivingWallet(ctx context.Context, r exchange.TransferRequest) (*exchange.Wallet, string, error) {
	var found []exchange.Wallet
	switch to := r.Recipient; {
	case to.Address != "":
		const pointer = "/recipient/address"
		if err := t.All(ctx, &found, readWalletByAddress, r.Network, to.Address); err != nil {
			return nil, pointer, err
		}
		if len(found) == 0 {
			return nil, pointer, t.notOnWrongNetwork(ctx, r.Network, to.Address, pointer)
		}
		return &found[0], pointer, nil
	case to.WalletID != uuid.Nil:
		const pointer = "/recipient/wallet_id"
		if err := t.All(ctx, &found, readWallet, to.WalletID); err != nil {
			return nil, pointer, err
		}
		if len(found) == 0 || found[0].Network != r.Network {
			return nil, pointer, require(false, pointer, "not_found", "must be the id of a wallet on this network")
		}
		return &found[0], pointer, nil
	case to.UserID != uuid.Nil:
		return t.walletOfUser(ctx, "/recipient/user_id", readUser, to.UserID, r.Network)
	case to.Email != "":
		return t.walletOfUser(ctx, "/recipient/email", readUserByEmail, to.Email, r.Network)
	case to.Phone != "":
		return t.walletOfUser(ctx, "/recipient/phone_number", readUserByPhone, to.Phone, r.Network)
	}
	return nil, "", require(false, "/recipient", "required", "must name a recipient")
}

// walletOfUser finds the default wallet of a user. An unknown user, a deactivated account and a user without a wallet
// get the same error, so that requesters can't probe accounts.
func (t unitTx) walletOfUser(ctx context.Context, pointer, query string, key any, n exchange.Network) (*exchange.Wallet, string, error) {
	var people []exchange.User
	if err := t.All(ctx, &people, query, key); err != nil {
		return nil, pointer, err
	}
	absent := require(false, pointer, "not_found", "must be a user who has a wallet on this network, and has proven the address or number")
	if len(people) == 0 || !people[0].IsActive || !provenBy(people[0], query) {
		return nil, pointer, absent
	}
	var found []exchange.Wallet
	if err := t.All(ctx, &found, readDefaultWallet, people[0].ID, n); err != nil {
		return nil, pointer, err
	}
	if len(found) == 0 {
		return nil, pointer, absent
	}
	return &found[0], pointer, nil
}

// provenBy reports whether a user has proven what a query found it by. Who only claims an address or a number is paid
// nothing that is meant for its owner.
func provenBy(u exchange.User, query string) bool {
	switch query {
	case readUserByEmail:
		return !u.EmailProvenAt.IsZero()
	case readUserByPhone:
		return !u.PhoneProvenAt.IsZero()
	}
	return true
}

func (t unitTx) insertTransfer(ctx context.Context, f exchange.Transfer, intent uuid.UUID) error {
	return t.One(ctx, insertTransfer, f.ID, f.Kind, f.RequestedBy, nullID(f.SenderID), nullID(f.VendorID), nullID(f.RecipientID),
		nullID(f.RecipientVendorID), f.Network, f.Amount.Asset(), f.Amount.Decimal(), f.WalletID, f.WalletType, f.FromAddress, nullID(f.ToWalletID),
		f.ToAddress, f.Note, f.Value.Decimal(), f.Rate, f.Digest, f.Status, f.StatusDetail, f.HoldID, f.CreatedAt,
		f.Fee.Decimal(), nullID(f.FeeProfileID), nullID(f.FeeHoldID), nullID(f.QuoteID), sql.NullString{String: string(f.QuotedFiat.Asset()), Valid: f.QuoteID != uuid.Nil},
		nullAmount(f.QuotedFiat), decimal.NullDecimal{Decimal: f.QuotedRate, Valid: f.QuoteID != uuid.Nil}, intent)
}

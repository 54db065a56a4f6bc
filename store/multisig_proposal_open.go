package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const insertProposal = `
INSERT INTO multisig_proposals (id, intent_id, kind, proposer_id, merchant_id, wallet_id, network, asset, amount, destination, to_wallet_id, reference, value, rate, policy_version,
    policy_needed, digest, status, status_detail, hold_id, created_at, expires_at, change, supersedes, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, nullif($23, '')::jsonb, $24, $21)`

const countOpenProposals = `SELECT count(*) FROM multisig_proposals
WHERE wallet_id = $1 AND status NOT IN ('executed', 'rejected', 'cancelled', 'expired', 'superseded', 'failed')`

// OpenProposal carries out an intent to propose something for a wallet of several owners: it stores the proposal, holds the amount of a payment, and counts its
// value against the proposer's limits. A repeated call returns the existing proposal. CodeInvalid names the wrong field, CodeLimitReached a
// limit, CodeInsufficientFunds a wallet with too little available, CodeStateConflict one whose owners on the chain are not those that were
// agreed. The errors of useIntent come before all others.
func (s *Store) OpenProposal(ctx context.Context, a exchange.Asked) (exchange.Proposal, error) {
	r, err := readAsked(ctx, s, a, exchange.ProposalRequestOf, exchange.IntendProposal)
	if err != nil {
		return exchange.Proposal{}, err
	}
	return change(ctx, s, "proposal", r.ID, func(ctx context.Context, t unitTx) (exchange.Proposal, exchange.Posting, error) {
		var none exchange.Posting
		asked, used, err := t.useIntent(ctx, a, exchange.IntendProposal)
		if err != nil {
			return exchange.Proposal{}, none, err
		}
		if used {
			old, err := readOne[exchange.Proposal](ctx, t, "proposal", readProposal, asked.ObjectID)
			return old, none, err
		}
		w := &proposalWork{unitTx: t, by: asked.By, now: t.s.now(), p: exchange.Proposal{
			ID: r.ID, IntentID: asked.ID, Kind: r.Is(), ProposerID: asked.By.UserID, WalletID: r.WalletID, Amount: r.Amount, Destination: r.Destination, Reference: r.Reference,
			Change: r.Change.Encode(), Supersedes: r.Supersedes,
		}}
		err = w.open(ctx, r)
		return w.p, w.post, err
	})
}

func (w *proposalWork) open(ctx context.Context, r exchange.ProposalRequest) error {
	if err := r.Check(); err != nil {
		return err
	}
	var asker exchange.User
	if err := w.Get(ctx, &asker, lockCustomer, w.by.UserID); err != nil {
		return translate(err, "user")
	}
	if !asker.IsActive || asker.Role != w.by.Role {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active account with the right role can do this.")
	}
	account, err := w.proposable(ctx, r.WalletID, asker)
	if err != nil {
		return err
	}
	p := &w.p
	p.MerchantID, p.Network, p.Address, p.Threshold = account.MerchantID, account.Network, account.Address, account.Threshold
	if !p.Kind.Moves() {
		return w.openUnmoved(ctx, r, account, asker)
	}
	if err := w.destination(ctx, asker); err != nil {
		return err
	}
	if p.Value, p.Rate, err = w.valueOf(ctx, p.Amount); err != nil {
		return err
	}
	p.PolicyVersion, p.PolicyNeeded = account.Policy.Version, account.Policy.Needed(p.Value)
	w.begin()
	if err := w.within(ctx, asker); err != nil {
		return err
	}
	if p.HoldID, err = uuid.NewV7(); err != nil {
		return err
	}
	w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: p.HoldID, Key: "multisig_proposal:" + p.ID.String(), Account: exchange.Owned(exchange.AccWalletBalance, p.WalletID, p.Amount.Asset()), Amount: p.Amount,
		ObjectType: "multisig_proposal", ObjectID: p.ID,
	}})
	return w.insert(ctx)
}

// proposable finds and locks the account that a payment is proposed from: any for officers, and for a vendor those that are shared with it.
// Another one is reported as missing.
func (w *proposalWork) proposable(ctx context.Context, id uuid.UUID, asker exchange.User) (exchange.MultisigAccount, error) {
	account, err := w.lockedMultisig(ctx, id)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		account, err = exchange.MultisigAccount{}, nil
	}
	if err != nil {
		return account, err
	}
	officer := asker.Role == exchange.RoleAdmin || asker.Role == exchange.RoleTreasury
	vendor := asker.Role == exchange.RoleVendor && account.MerchantID == asker.ID
	wallet := account.Status == exchange.MultisigActive || account.Status == exchange.MultisigDiffers
	if err := require(wallet && (officer || vendor), "/wallet_id", "not_found", "must be the id of a wallet of several owners from which you may propose payments"); err != nil {
		return account, err
	}
	if account.Status == exchange.MultisigDiffers {
		return account, exchange.Errorf(exchange.CodeStateConflict, "The owners of the wallet on the chain are not those that were agreed, so nothing may leave it: %s", account.StatusDetail)
	}
	return account, nil
}

// destination finds out whether the money stays in our custody, and refuses an address where it would be lost or miscounted.
func (w *proposalWork) destination(ctx context.Context, asker exchange.User) error {
	const pointer = "/destination"
	p := &w.p
	if err := require(p.Destination != p.Address, pointer, "own_wallet", "must not be the wallet that pays"); err != nil {
		return err
	}
	to, found, err := readFound[exchange.Wallet](ctx, w, readWalletByAddress, p.Network, p.Destination)
	if err != nil {
		return err
	}
	if !found {
		return w.notOnWrongNetwork(ctx, p.Network, p.Destination, pointer)
	}
	if err := require(to.Purpose != exchange.HouseCounterpart && to.Purpose != exchange.HouseEscrow, pointer, "own_wallet", "must not be an address where nothing is expected"); err != nil {
		return err
	}
	p.ToWalletID = to.ID
	return require(to.OwnerID != uuid.Nil || asker.Role != exchange.RoleVendor, pointer, "own_wallet", "must not be one of the house's own wallets")
}

// within refuses a proposal above the number of open ones of its wallet, or above the limits of its proposer: their value, and for a vendor the
// network fees, which the house pays.
func (w *proposalWork) within(ctx context.Context, asker exchange.User) error {
	p := w.p
	var open int
	if err := w.Get(ctx, &open, countOpenProposals, p.WalletID); err != nil {
		return err
	}
	if open >= exchange.MaxOpenProposals {
		return exchange.Errorf(exchange.CodeLimitReached, "At most %d proposals of one wallet may be open.", exchange.MaxOpenProposals)
	}
	if asker.Role == exchange.RoleVendor {
		if err := w.underFees(ctx, p.Network, feesOfMerchant, asker.ID, w.unitTx.s.limits.MerchantFees, "your payments"); err != nil {
			return err
		}
	}
	if !p.Kind.Moves() {
		return nil
	}
	return w.useLimit(ctx, limitUse{userID: asker.ID, role: asker.Role, objectType: "multisig_proposal", objectID: p.ID, value: p.Value})
}

func (w *proposalWork) insert(ctx context.Context) error {
	p := w.p
	err := w.One(ctx, insertProposal, p.ID, p.IntentID, p.Kind, p.ProposerID, nullID(p.MerchantID), p.WalletID, p.Network, p.Amount.Asset(), p.Amount.Decimal(), p.Destination,
		nullID(p.ToWalletID), p.Reference, p.Value.Decimal(), p.Rate, p.PolicyVersion, p.PolicyNeeded, p.Digest, p.Status, p.StatusDetail, nullID(p.HoldID), p.CreatedAt, p.ExpiresAt, p.Change,
		nullID(p.Supersedes))
	if err != nil {
		return err
	}
	if w.p, err = readOne[exchange.Proposal](ctx, w, "proposal", readProposal, p.ID); err != nil {
		return err
	}
	w.before = w.p
	return w.record(ctx, w.event("multisig_proposal.proposed", nil))
}

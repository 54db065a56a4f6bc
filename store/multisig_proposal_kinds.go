package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Proposals that move nothing: other owners of the wallet, which officers approve and which then rest, and the end of another proposal, which
// its owners alone decide by signing something else at its number.

// begin gives a new proposal its digest, its status and its time.
func (w *proposalWork) begin() {
	p := &w.p
	p.Digest, p.Status, p.StatusDetail = p.Intent(), exchange.ProposalProposed, exchange.WaitNothing
	p.CreatedAt, p.ExpiresAt = w.now, w.now.Add(exchange.ProposalLife)
}

const readOwnersNeeded = `SELECT owners_needed($1, $2, $3)`

// openUnmoved stores a proposal that moves nothing. Its payment is of nothing, from the account to itself.
func (w *proposalWork) openUnmoved(ctx context.Context, r exchange.ProposalRequest, account exchange.MultisigAccount, asker exchange.User) error {
	p := &w.p
	p.Amount, p.Value = money.Zero(p.Network.NativeCoin()), money.Zero(money.KES)
	p.Destination, p.ToWalletID, p.PolicyVersion = p.Address, p.WalletID, account.Policy.Version
	if p.Kind == exchange.ProposeOwners {
		if err := w.mayChange(ctx, r.Change, account); err != nil {
			return err
		}
		if err := w.Get(ctx, &p.PolicyNeeded, readOwnersNeeded, p.WalletID, p.PolicyVersion, p.ProposerID); err != nil {
			return err
		}
	} else if err := w.mayCancel(ctx, r.Supersedes, asker); err != nil {
		return err
	}
	w.begin()
	if err := w.within(ctx, asker); err != nil {
		return err
	}
	err := w.insert(ctx)
	if pg.Broke(err, "multisig_proposals_owners_key") || pg.Broke(err, "multisig_proposals_supersedes_key") {
		err = exchange.Wrap(exchange.CodeStateConflict, err, "Another proposal of this kind is open, which has to end first.")
	}
	return err
}

// mayChange checks a change of the owners against the account and what is stored: no address is ours already or denied, but those of owners who stay.
func (w *proposalWork) mayChange(ctx context.Context, c exchange.OwnersChange, a exchange.MultisigAccount) error {
	if err := c.Check(a); err != nil {
		return err
	}
	for i, o := range c.Owners {
		if err := w.freeAddress(ctx, fmt.Sprintf("/owners/%d/address", i), a.Network, o.Address); err != nil {
			return err
		}
		if o.UserID == uuid.Nil || o.Address != "" {
			continue
		}
		fault := exchange.FieldError{Pointer: fmt.Sprintf("/owners/%d/user_id", i), Code: "not_found", Message: "must be an active admin or treasury officer"}
		if err := w.requireRow(ctx, isActiveOfficer, true, fault, o.UserID); err != nil {
			return err
		}
	}
	return nil
}

const readCancelled = `
SELECT EXISTS (SELECT FROM multisig_proposals s JOIN multisig_payloads y ON y.proposal_id = s.id AND y.status = 'open'
    WHERE s.id = $1 AND s.wallet_id = $2 AND s.kind <> 'cancel' AND s.status IN ('signing', 'ready') AND ($3 OR s.proposer_id = $4))`

// mayCancel checks what a cancel makes impossible: something of the same Safe that owners may sign, or have signed.
func (w *proposalWork) mayCancel(ctx context.Context, id uuid.UUID, asker exchange.User) error {
	if w.p.Network != exchange.Ethereum {
		return exchange.Errorf(exchange.CodeUnsupported, "What owners signed on %s can't be made impossible by another transaction: it ends when its time is over, or when its proposal is cancelled.", w.p.Network)
	}
	officer := asker.Role == exchange.RoleAdmin || asker.Role == exchange.RoleTreasury
	fault := exchange.FieldError{Pointer: "/supersedes", Code: "not_found", Message: "must be a proposal of the wallet that waits for signatures or has them, is no cancel, and that you may cancel"}
	return w.requireRow(ctx, readCancelled, true, fault, id, w.p.WalletID, officer, asker.ID)
}

const readPointless = `
SELECT s.kind = 'cancel' AND s.status IN ('proposed', 'approving') AND NOT EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = s.supersedes AND y.status = 'open')
FROM multisig_proposals s WHERE s.id = $1`

// pointless reports whether what a cancel was to make impossible has ended before there was something to sign.
func (w *proposalWork) pointless(ctx context.Context) (is bool, err error) {
	err = w.Get(ctx, &is, readPointless, w.p.ID)
	return is, err
}

const readStanding = `
SELECT s.policy_needed AS needed, ARRAY(SELECT v FROM owners_approvers(s) v ORDER BY v)::text[] AS approvers, owners_approved(s) AS enough, owners_signable(s) AS signable, proposal_released(s.id) AS released
FROM multisig_proposals s WHERE s.id = $1`

type unmovedStanding struct {
	Needed    int
	Approvers pq.StringArray
	Enough    bool
	Signable  time.Time // when the pause is over by what is known of the officers now
	Released  bool
}

func (w *proposalWork) unmoved(ctx context.Context) (unmovedStanding, error) {
	s, err := readOne[unmovedStanding](ctx, w, "proposal", readStanding, w.p.ID)
	if w.p.Kind == exchange.ProposeCancel {
		s.Needed, s.Enough = 0, true
	}
	return s, err
}

func (w *proposalWork) standing(ctx context.Context) (exchange.ProposalStanding, error) {
	s, err := w.unmoved(ctx)
	return exchange.ProposalStanding{Proposal: w.p, Needed: s.Needed, Approvals: len(s.Approvers), PaymentID: w.p.PaymentID}, err
}

// approveUnmoved begins the pause of a change of the owners when enough officers approved it, or ends it when they don't any more. After it, and
// for a cancel at once, the payment is approved, so that its payload can be prepared.
func (w *proposalWork) approveUnmoved(ctx context.Context) (exchange.ProposalStanding, error) {
	s, err := w.unmoved(ctx)
	if err != nil {
		return exchange.ProposalStanding{}, err
	}
	detail := exchange.WaitApproval
	switch {
	case w.p.PaymentID != uuid.Nil:
		detail = w.p.StatusDetail
	case s.Enough && s.Released:
		detail, err = exchange.WaitPayload, w.release(ctx)
	case s.Enough && w.p.Kind == exchange.ProposeOwners:
		detail = exchange.WaitPause
		if w.p.SignableAt.IsZero() {
			w.p.SignableAt = w.now // the database adds the pause
		} else {
			w.p.SignableAt = s.Signable // later when an officer was switched off and on again
		}
	case len(s.Approvers) > 0:
		detail = exchange.WaitSecond
	}
	if !s.Enough && w.p.PaymentID == uuid.Nil {
		w.p.SignableAt = time.Time{}
	}
	if err == nil {
		err = w.move(ctx, exchange.ProposalApproving, detail)
	}
	if err == nil && w.p.PaymentID == uuid.Nil {
		w.p, err = readOne[exchange.Proposal](ctx, w, "proposal", readProposal, w.p.ID)
	}
	return exchange.ProposalStanding{Proposal: w.p, Needed: s.Needed, Approvals: len(s.Approvers), PaymentID: w.p.PaymentID}, err
}

// Owners who are new, and did not come yet. The key of one who is an officer is made by the signer.
const bringOwners = `
INSERT INTO multisig_owners (account_id, n, address, user_id, weight, label, held, standing, brought_by)
SELECT s.wallet_id, (SELECT max(n) FROM multisig_owners WHERE account_id = s.wallet_id) + row_number() OVER (ORDER BY i), o ->> 'address', (o ->> 'user_id')::uuid, (o ->> 'weight')::int,
    coalesce(o ->> 'label', ''), o ? 'user_id', 'coming', s.id
FROM multisig_proposals s, jsonb_array_elements(s.change -> 'owners') WITH ORDINALITY AS x (o, i)
WHERE s.id = $1 AND NOT EXISTS (SELECT FROM multisig_owners b WHERE b.brought_by = s.id AND (b.address = o ->> 'address' OR b.user_id = (o ->> 'user_id')::uuid))
    AND NOT EXISTS (SELECT FROM multisig_owners a WHERE a.account_id = s.wallet_id AND a.standing = 'agreed' AND a.address = o ->> 'address')`

// release approves the payment of a proposal that moves nothing, and brings the owners who are new.
func (w *proposalWork) release(ctx context.Context) error {
	by := byPolicy
	if w.p.Kind == exchange.ProposeOwners {
		if _, err := w.Exec(ctx, bringOwners, w.p.ID); err != nil {
			return err
		}
		by = byOfficers
	}
	return w.pay(ctx, by)
}

const readComing = `SELECT n, coalesce(address, '') AS address, user_id, weight, label, held FROM multisig_owners WHERE brought_by = $1 AND standing = 'coming' ORDER BY n`

// ComingOwners are the owners whom a released change of the owners brings, until it was executed.
func (s *Store) ComingOwners(ctx context.Context, proposal uuid.UUID) ([]exchange.MultisigOwner, error) {
	return readAll[exchange.MultisigOwner](ctx, s.db, "owner of an account", readComing, proposal)
}

const (
	dropOwners = `
UPDATE multisig_owners SET standing = 'gone', gone_by = $1 WHERE account_id = $2 AND standing = 'agreed'
    AND address NOT IN (SELECT o ->> 'address' FROM multisig_proposals s, jsonb_array_elements(owners_after(s) -> 'owners') o WHERE s.id = $1)`
	takeOwners  = `UPDATE multisig_owners SET standing = 'agreed' WHERE brought_by = $1 AND standing = 'coming'`
	weighOwners = `
UPDATE multisig_owners c SET weight = (o ->> 'weight')::int, label = coalesce(o ->> 'label', '')
FROM multisig_proposals s, jsonb_array_elements(owners_after(s) -> 'owners') o WHERE s.id = $1 AND c.account_id = s.wallet_id AND c.standing = 'agreed' AND c.address = o ->> 'address'
    AND (c.weight, c.label) IS DISTINCT FROM ((o ->> 'weight')::int, coalesce(o ->> 'label', ''))`
	// A node that is behind the execution knows the earlier owners, so what it says is older than this. A block that can't exist yet hides nothing.
	agreeToQuorum = `
UPDATE multisig_accounts a SET threshold = $2, control_threshold = nullif($3, 0), updated_at = $4, version = a.version + 1,
    checked_block = CASE WHEN block_reached(a.network, executed_block(s)) THEN greatest(a.checked_block, executed_block(s)) ELSE a.checked_block END
FROM multisig_proposals s WHERE a.id = $1 AND s.id = $5`
)

// agree makes the owners of an executed change those that are agreed. Who left stays as history.
func (w *proposalWork) agree(ctx context.Context) error {
	before, err := w.lockedMultisig(ctx, w.p.WalletID)
	if err != nil {
		return err
	}
	change, err := exchange.OwnersChangeOf(w.p.After)
	if err != nil {
		return err
	}
	if _, err := w.Exec(ctx, dropOwners, w.p.ID, w.p.WalletID); err != nil {
		return err
	}
	for _, query := range []string{takeOwners, weighOwners} {
		if _, err := w.Exec(ctx, query, w.p.ID); err != nil {
			return err
		}
	}
	if err := w.One(ctx, agreeToQuorum, w.p.WalletID, change.Threshold, change.ControlThreshold, w.now, w.p.ID); err != nil {
		return err
	}
	after, err := w.multisig(ctx, w.p.WalletID)
	if err != nil {
		return err
	}
	return w.record(ctx, auditEvent{
		by: watching, object: "multisig_account", id: after.ID, name: "multisig_account." + string(after.Status), before: multisigSnapshot(before), after: multisigSnapshot(after),
	})
}

const readChanging = `SELECT ` + proposalColumns + ` FROM ` + fromProposals + ` WHERE s.wallet_id = $1 AND s.kind = 'owners' AND s.status IN ('signing', 'ready', 'broadcasting', 'confirming')`

// changedByUs reports whether the quorum that was read is the one of a change that officers approved and owners sign: its execution is not recorded yet.
func (t unitTx) changedByUs(ctx context.Context, a exchange.MultisigAccount, q exchange.MultisigQuorum) (bool, error) {
	p, found, err := readFound[exchange.Proposal](ctx, t, readChanging, a.ID)
	if err != nil || !found {
		return false, err
	}
	change, err := exchange.OwnersChangeOf(p.After)
	return err == nil && change.Fits(a, q), err
}

package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// How an account of several owners becomes a wallet, and stays one.

// multisigPayment opens an account. The account follows it only where the final chain is read, so the payment alone moves nothing.
type multisigPayment struct{}

// parties are none: the house pays for its own account.
func (multisigPayment) parties() (owner, vendor uuid.UUID) { return uuid.Nil, uuid.Nil }

func (multisigPayment) follow(context.Context, unitTx, paymentStage, string) error { return nil }

// spend books what the account must hold as a network cost.
func (multisigPayment) spend(_ context.Context, _ unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	if p.Amount.Sign() == 0 {
		return exchange.Posting{}, nil, nil
	}
	return exchange.Posting{}, []exchange.Line{
		exchange.Debit(exchange.House(exchange.AccNetworkFees, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}, nil
}

const saveMultisig = `
UPDATE multisig_accounts SET address = nullif($2, ''), control_threshold = nullif($3, 0), status = $4, status_detail = $5, checked_block = nullif($6, 0), checked_at = $7,
    updated_at = $8, version = version + 1
WHERE id = $1 AND version = $9 AND status = ANY ($10)`

// saveMultisig stores an account that differs from before, with an event if its status changed.
func (t unitTx) saveMultisig(ctx context.Context, by exchange.Principal, before, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
	from := []exchange.MultisigStatus{before.Status}
	if a.Status != before.Status {
		if err := exchange.MultisigMachine.Allow(before.Status, a.Status); err != nil {
			return before, err
		}
		from = exchange.MultisigMachine.Sources(a.Status)
	}
	a.UpdatedAt, a.StatusDetail = t.s.now(), clip(a.StatusDetail, maxMultisigDetail)
	err := t.One(ctx, saveMultisig, a.ID, a.Address, a.ControlThreshold, a.Status, a.StatusDetail, int64(a.CheckedBlock), nullTime(a.CheckedAt), a.UpdatedAt, //nolint:gosec // G115: block numbers are far from the limit
		before.Version, pq.Array(from))
	if err != nil {
		return before, err
	}
	a.Version++
	if a.Status == before.Status && a.StatusDetail == before.StatusDetail {
		return a, nil
	}
	return a, t.record(ctx, auditEvent{
		by: by, object: "multisig_account", id: a.ID, name: "multisig_account." + string(a.Status), before: multisigSnapshot(before), after: multisigSnapshot(a),
	})
}

const maxMultisigDetail = 300

// OpenMultisig approves the payment that opens a new account at the address that was computed for it, with what the account must hold. A
// repeated call returns the account with its payment. CodeStateConflict while the key of an owner is not made, and for an adopted account.
func (s *Store) OpenMultisig(ctx context.Context, account uuid.UUID, address string, rent money.Amount) (exchange.MultisigAccount, error) {
	return s.moveMultisig(ctx, account, func(ctx context.Context, t unitTx, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
		if a.Status != exchange.MultisigPreparing {
			return a, nil
		}
		if a.Adopted || slices.ContainsFunc(a.Owners, func(o exchange.MultisigOwner) bool { return o.Address == "" }) {
			return a, exchange.Errorf(exchange.CodeStateConflict, "The account is adopted, or the key of an owner is not made yet.")
		}
		gas, found, err := t.gasWallet(ctx, a.Network)
		if err == nil && !found {
			err = exchange.Errorf(exchange.CodeUnsupported, "The house has no gas wallet on %s that opens an account.", a.Network)
		}
		if err != nil {
			return a, err
		}
		opening := a
		opening.Status, opening.Address = exchange.MultisigOpening, address
		if a.Given() {
			opening.ControlThreshold = a.Controlling()
		}
		if opening, err = t.saveMultisig(ctx, flow, a, opening); err != nil {
			return a, err
		}
		p, err := t.addPayment(ctx, flow, multisigPayment{}, exchange.ChainPayment{
			Purpose: exchange.ForMultisigOpen, ObjectID: a.ID, Network: a.Network, Amount: rent, WalletID: gas.ID, ToAddress: address, ApprovedBy: byPolicy,
		})
		opening.PaymentID = p.ID
		return opening, err
	})
}

// moveMultisig runs a change of a locked account.
func (s *Store) moveMultisig(ctx context.Context, account uuid.UUID,
	fn func(context.Context, unitTx, exchange.MultisigAccount) (exchange.MultisigAccount, error),
) (exchange.MultisigAccount, error) {
	var moved exchange.MultisigAccount
	err := s.inTx(ctx, "account of several owners", func(t unitTx) error {
		a, err := t.lockedMultisig(ctx, account)
		if err == nil {
			moved, err = fn(ctx, t, a)
		}
		return err
	})
	return moved, err
}

// RefuseMultisig ends an account that was to be adopted and is another one on the final chain than was agreed; the detail says how. A repeated
// call changes nothing. CodeStateConflict for every other account.
func (s *Store) RefuseMultisig(ctx context.Context, account uuid.UUID, detail string) (exchange.MultisigAccount, error) {
	return s.moveMultisig(ctx, account, func(ctx context.Context, t unitTx, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
		if a.Status == exchange.MultisigRefused {
			return a, nil
		}
		if !a.Adopted {
			return a, exchange.Errorf(exchange.CodeStateConflict, "Only an account that is adopted can be refused.")
		}
		refused := a
		refused.Status, refused.StatusDetail = exchange.MultisigRefused, detail
		return t.saveMultisig(ctx, watching, a, refused)
	})
}

// GiveUpMultisig ends an account that could not be opened, by an operator's decision, and gives up its payment. CodeStateConflict while a
// transaction may still open it, once it is a wallet, and for one on TRON that is paid for and can still be given to its owners. A repeated call
// changes nothing.
func (s *Store) GiveUpMultisig(ctx context.Context, account uuid.UUID, by exchange.Principal) (exchange.MultisigAccount, error) {
	return s.moveMultisig(ctx, account, func(ctx context.Context, t unitTx, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
		if a.Status == exchange.MultisigRefused {
			return a, nil
		}
		if a.Status != exchange.MultisigOpening && a.Status != exchange.MultisigPreparing {
			return a, exchange.Errorf(exchange.CodeStateConflict, "An account that is %s can't be given up.", a.Status)
		}
		p, found, err := t.paymentOf(ctx, exchange.ForMultisigOpen, a.ID)
		if err == nil && found && a.Given() {
			err = t.leavesNothing(ctx, a, p)
		}
		if err == nil && found && p.Status != exchange.ChainCancelled && p.Status != exchange.ChainCompleted {
			err = t.abandonPayment(ctx, p.ID, "given up", by)
		}
		if err != nil {
			return a, err
		}
		ended := a
		ended.Status, ended.StatusDetail = exchange.MultisigRefused, "given up"
		return t.saveMultisig(ctx, by, a, ended)
	})
}

const readPaidFor = `
SELECT coalesce(sum(p.amount), 0) FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = $1 AND p.status = 'completed'
    AND NOT EXISTS (SELECT FROM multisig_handovers h WHERE h.account_id = $1 AND h.status = 'executed')`

// leavesNothing refuses to give up an account on TRON to which coins were paid: its first key signs nothing but its handover, so that they would stay
// at its address for good. When no further payment can follow, they do. The last payment is given.
func (t unitTx) leavesNothing(ctx context.Context, a exchange.MultisigAccount, last exchange.ChainPayment) error {
	var paid decimal.Decimal
	err := t.Get(ctx, &paid, readPaidFor, a.ID)
	if err != nil || paid.IsZero() || last.N >= exchange.MostFundings && last.Status == exchange.ChainCompleted {
		return err
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The account is paid for: given up it would leave %s TRX at its address for good. Send retry to have it given to its owners.", paid.StringFixed(6))
}

// ActivateMultisig makes an account a wallet, if what the chain says about it at a final block is what was agreed. The balances are what the
// account had at that block, of every asset that the wallet can move; they are booked as the house's, and the deposit watch books what moves
// after that block. It refuses an adopted account that is another one. A repeated call changes nothing. CodeUnavailable when the block is not
// one at which the account can begin: it has to be read again at a newer one. CodeStateConflict while the account is not opened, or when an
// opened one is another one: its payment is completed only with the agreed owners.
func (s *Store) ActivateMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum, balances []money.Amount) (exchange.MultisigAccount, error) {
	return change(ctx, s, "account of several owners", account, func(ctx context.Context, t unitTx) (exchange.MultisigAccount, exchange.Posting, error) {
		var booked exchange.Posting
		a, err := t.multisig(ctx, account)
		if err == nil {
			err = t.lockDeposits(ctx, a.Network) // before the account, as the watch does
		}
		if err == nil {
			a, err = t.lockedMultisig(ctx, account)
		}
		if err != nil || a.Status != exchange.MultisigPreparing && a.Status != exchange.MultisigOpening {
			return a, booked, err
		}
		if a.Status == exchange.MultisigPreparing && !a.Adopted {
			return a, booked, exchange.Errorf(exchange.CodeStateConflict, "The account is not opened yet.")
		}
		if difference := a.Difference(q); difference != "" {
			a, err = t.another(ctx, a, difference)
			return a, booked, err
		}
		if booked, err = openingBalance(a, balances); err != nil {
			return a, booked, err
		}
		a, err = t.activate(ctx, a, q)
		return a, booked, err
	})
}

// another refuses an adopted account that is another one than was agreed.
func (t unitTx) another(ctx context.Context, a exchange.MultisigAccount, difference string) (exchange.MultisigAccount, error) {
	if a.Status == exchange.MultisigOpening {
		return a, exchange.Errorf(exchange.CodeStateConflict, "The account on the chain is another one than was agreed: %s.", difference)
	}
	refused := a
	refused.Status, refused.StatusDetail = exchange.MultisigRefused, difference
	return t.saveMultisig(ctx, watching, a, refused)
}

func (t unitTx) activate(ctx context.Context, a exchange.MultisigAccount, q exchange.MultisigQuorum) (exchange.MultisigAccount, error) {
	if _, err := t.Exec(ctx, lockOpeningAlone, a.ID); err != nil {
		return a, err
	}
	if err := t.mayOpenAt(ctx, a, q.Block); err != nil {
		return a, err
	}
	next := a
	next.Status, next.StatusDetail, next.CheckedBlock, next.CheckedAt = exchange.MultisigActive, "", q.Block, t.s.now()
	if a.Kind == exchange.MultisigTron {
		next.ControlThreshold = q.ControlThreshold
	}
	if err := t.openedBefore(ctx, a.ID); err != nil {
		return a, err
	}
	if err := t.addMultisigWallet(ctx, next); err != nil {
		return a, err
	}
	return t.saveMultisig(ctx, watching, a, next)
}

const (
	readOpeningFault = `SELECT coalesce(opening_fault($1, $2), '')`
	readReached      = `SELECT block_reached($1, $2)`
)

// mayOpenAt refuses a block for which it is not known that all that moved in the account later will be booked.
func (t unitTx) mayOpenAt(ctx context.Context, a exchange.MultisigAccount, block uint64) error {
	var fault string
	if err := t.Get(ctx, &fault, readOpeningFault, a.ID, blockNumber(block)); err != nil {
		return err
	}
	if fault != "" {
		return exchange.Errorf(exchange.CodeUnavailable, "The account %s; it is read again at a newer block.", fault)
	}
	return t.mustExist(ctx, a.Network, block)
}

// mustExist refuses a final block that can't exist yet by what the deposit watch has read.
func (t unitTx) mustExist(ctx context.Context, n exchange.Network, block uint64) error {
	var reached bool
	if err := t.Get(ctx, &reached, readReached, n, blockNumber(block)); err != nil {
		return err
	}
	if !reached {
		return exchange.Errorf(exchange.CodeUnavailable, "The final block %d is far beyond what the deposit watch of %s has read.", block, n)
	}
	return nil
}

// openingBalance books what an account has when it becomes a wallet, as deposits of the house are booked.
func openingBalance(a exchange.MultisigAccount, balances []money.Amount) (exchange.Posting, error) {
	var booked exchange.Posting
	w := exchange.Wallet{ID: a.ID, Network: a.Network, Custody: exchange.Multisig}
	read := map[money.Asset]money.Amount{}
	for _, m := range balances {
		if _, again := read[m.Asset()]; again || m.Sign() < 0 {
			return booked, exchange.Errorf(exchange.CodeInternal, "the account %s has two balances of %s, or one below zero", a.ID, m.Asset())
		}
		read[m.Asset()] = m
	}
	var lines []exchange.Line
	for _, asset := range a.Network.WalletAssets() {
		m, found := read[asset]
		switch {
		case found != w.Moves(asset):
			return booked, exchange.Errorf(exchange.CodeInternal, "the balance of the account %s in %s is missing, or can't be moved", a.ID, asset)
		case found && m.Positive():
			lines = append(lines, exchange.Debit(exchange.Owned(exchange.AccCustody, a.ID, asset), m), exchange.Credit(ownedByHouse(a.ID, asset), m))
		}
		delete(read, asset)
	}
	if len(read) > 0 {
		return booked, exchange.Errorf(exchange.CodeInternal, "the account %s has a balance of an asset that %s has not", a.ID, a.Network)
	}
	if len(lines) > 0 {
		booked.Entries = []exchange.Entry{{
			Key: "multisig_account:" + a.ID.String() + ":opening", Kind: "multisig_account.opening", ObjectType: "multisig_account", ObjectID: a.ID, Lines: lines,
		}}
	}
	return booked, nil
}

// openedBefore gives up the payment of an account that another transaction opened, for the same owners: anyone may make a Safe.
func (t unitTx) openedBefore(ctx context.Context, account uuid.UUID) error {
	p, found, err := t.paymentOf(ctx, exchange.ForMultisigOpen, account)
	if err != nil || !found || p.Status == exchange.ChainCompleted || p.Status == exchange.ChainCancelled {
		return err
	}
	return t.abandonPayment(ctx, p.ID, "opened before", watching)
}

const insertMultisigWallet = `
INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, created_by, created_at, updated_at)
VALUES ($1, 'treasury', 'multisig', $2, $3, $4, 'cold', 'multisig', $5, false, $6, $7, $7) RETURNING ` + walletColumns

func (t unitTx) addMultisigWallet(ctx context.Context, a exchange.MultisigAccount) error {
	var w exchange.Wallet
	if err := t.Get(ctx, &w, insertMultisigWallet, a.ID, a.Network, a.Address, a.Asset, a.Label, a.RequestedBy, t.s.now()); err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: watching, object: "wallet", id: w.ID, name: "wallet.created", vendor: a.MerchantID, after: walletSnapshot(w)})
}

// CheckedMultisig stores what the chain says about a wallet of several owners at a final block: whether its owners are those that were agreed.
// The block that it was read at last changes nothing. CodeUnavailable for an older one, whose node is behind, and for one that can't exist yet.
func (s *Store) CheckedMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum) (exchange.MultisigAccount, error) {
	return s.moveMultisig(ctx, account, func(ctx context.Context, t unitTx, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
		if a.Status != exchange.MultisigActive && a.Status != exchange.MultisigDiffers {
			return a, exchange.Errorf(exchange.CodeStateConflict, "An account that is %s is no wallet.", a.Status)
		}
		switch {
		case q.Block == a.CheckedBlock:
			return a, nil
		case q.Block < a.CheckedBlock:
			return a, exchange.Errorf(exchange.CodeUnavailable, "The owners were read at block %d, and before at block %d: the node is behind.", q.Block, a.CheckedBlock)
		}
		if err := t.mustExist(ctx, a.Network, q.Block); err != nil {
			return a, err
		}
		next := a
		next.CheckedBlock, next.CheckedAt, next.Status = q.Block, t.s.now(), exchange.MultisigActive
		if next.StatusDetail = a.Difference(q); next.StatusDetail != "" {
			next.Status = exchange.MultisigDiffers
			ours, err := t.changedByUs(ctx, a, q)
			if err == nil && ours {
				err = exchange.Errorf(exchange.CodeUnavailable, "The owners are those of a change that was approved and signed; its execution is not recorded yet.")
			}
			if err != nil {
				return a, err
			}
		}
		return t.saveMultisig(ctx, watching, a, next)
	})
}

package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// Where merchants let their money be sent.

const destinationColumns = `d.id, d.merchant_id, d.kind, d.label, d.phone, d.bank_name, d.bank_code, d.branch, d.swift_code, d.account_name, d.account_number,
    coalesce(d.network, '') AS network, d.address, d.status, d.created_by, d.confirmed_by, d.confirmed_at,
    d.confirmed_at + make_interval(secs => p.rest_seconds) AS rests_until, d.removed_by, d.removed_at, d.created_at, d.updated_at, d.version`

const fromDestinations = `otc_destinations d CROSS JOIN release_policy p`

const readDestination = `SELECT ` + destinationColumns + ` FROM ` + fromDestinations + ` WHERE d.id = $1`

const readScopedDestination = readDestination + ` AND ($2 OR d.merchant_id = $3)`

// destinationSnapshot is a destination in events and the audit log. Whom it names is personal data, and never changes.
func destinationSnapshot(d exchange.Destination) map[string]any {
	var network any
	if d.Network != "" {
		network = d.Network
	}
	return map[string]any{
		"id": d.ID, "merchant_id": d.MerchantID, "kind": d.Kind, "network": network, "status": d.Status, "created_by": d.CreatedBy,
		"confirmed_by": nullID(d.ConfirmedBy), "removed_by": nullID(d.RemovedBy), "version": d.Version,
	}
}

// DestinationFilter narrows a list of destinations.
type DestinationFilter struct {
	MerchantID uuid.UUID
	Kind       exchange.DestinationKind
	Status     exchange.DestinationStatus // empty: all that are not removed
}

// Destinations pages through the saved destinations, the newest first, with their number.
func (s *Store) Destinations(ctx context.Context, v View, f DestinationFilter, p Page) ([]exchange.Destination, int, error) {
	var w where
	w.scope(v, "NULL", "d.merchant_id")
	w.id("d.merchant_id", f.MerchantID)
	w.eq("d.kind", string(f.Kind))
	w.eq("d.status", string(f.Status))
	if f.Status == "" {
		w.add(`d.status <> 'removed'`)
	}
	return readPage[exchange.Destination](ctx, s, "destination", list{columns: destinationColumns, from: fromDestinations, where: w, order: "d.created_at DESC, d.id DESC"}, p)
}

// Destination reads a saved destination.
func (s *Store) Destination(ctx context.Context, v View, id uuid.UUID) (exchange.Destination, error) {
	all, _, vendor := v.args()
	return readOne[exchange.Destination](ctx, s.db, "destination", readScopedDestination, id, all, vendor)
}

const insertDestination = `
INSERT INTO otc_destinations (id, merchant_id, kind, label, phone, bank_name, bank_code, branch, swift_code, account_name, account_number, network, address,
    status, created_by, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, nullif($12, ''), $13, $14, $15, $16, $16) ON CONFLICT (id) DO NOTHING`

const countDestinations = `SELECT count(*) FROM otc_destinations WHERE merchant_id = $1 AND status <> 'removed'`

// AddDestination saves a destination of a merchant and tells it so. A repeated call returns the first one's. CodeConflict when the
// merchant has it already, CodeLimitReached when it has too many, CodeInvalid for an address of the house's own.
func (s *Store) AddDestination(ctx context.Context, d exchange.Destination, by exchange.Principal, letters ...exchange.Message) (exchange.Destination, error) {
	var added exchange.Destination
	err := s.inTx(ctx, "destination", func(t unitTx) error {
		if err := t.One(ctx, lockOwner, d.MerchantID); err != nil { // a merchant's destinations are counted one after the other
			return err
		}
		known, found, err := readFound[exchange.Destination](ctx, t, readDestination, d.ID)
		if added = known; err != nil || found {
			return err
		}
		if err := t.below(ctx, exchange.MaxDestinations, countDestinations, d.MerchantID, "saved destinations of one merchant"); err != nil {
			return err
		}
		if err := t.mayBePaid(ctx, d); err != nil {
			return err
		}
		err = t.One(ctx, insertDestination, d.ID, d.MerchantID, d.Kind, d.Label, d.Phone, d.BankName, d.BankCode, d.Branch, d.SwiftCode, d.AccountName, d.AccountNumber,
			string(d.Network), d.Address, exchange.DestinationUnconfirmed, by.UserID, t.s.now())
		if pg.Broke(err, "otc_destinations_live_key") {
			return exchange.Wrap(exchange.CodeConflict, err, "This destination is saved already.")
		}
		if err != nil {
			return err
		}
		added, err = t.destinationChanged(ctx, "otc_destination.unconfirmed", nil, d.ID, by, letters)
		return err
	})
	return added, err
}

// mayBePaid refuses the address of a wallet of the house.
func (t unitTx) mayBePaid(ctx context.Context, d exchange.Destination) error {
	if d.Kind != exchange.DestinationAddress {
		return nil
	}
	var found []exchange.Wallet
	if err := t.All(ctx, &found, readWalletByAddress, d.Network, d.Address); err != nil {
		return err
	}
	if len(found) == 0 {
		return t.notOnWrongNetwork(ctx, d.Network, d.Address, "/address")
	}
	return require(found[0].OwnerID != uuid.Nil, "/address", "own_wallet", "must not be one of the house's own wallets")
}

// destinationChanged writes down what became of a destination, tells its merchant, and returns it as it is now.
func (t unitTx) destinationChanged(ctx context.Context, event string, before *exchange.Destination, id uuid.UUID, by exchange.Principal, letters []exchange.Message) (exchange.Destination, error) {
	now, err := readOne[exchange.Destination](ctx, t, "destination", readDestination, id)
	if err != nil {
		return now, err
	}
	if err := t.addMessages(ctx, letters); err != nil {
		return now, err
	}
	noted := auditEvent{by: by, object: "otc_destination", id: id, name: event, owner: now.MerchantID, vendor: now.MerchantID, after: destinationSnapshot(now)}
	if before != nil {
		noted.before = destinationSnapshot(*before)
	}
	return now, t.record(ctx, noted)
}

const lockDestination = readDestination + ` AND ($2 OR d.merchant_id = $3) FOR NO KEY UPDATE OF d`

const confirmDestination = `
UPDATE otc_destinations SET status = 'confirmed', confirmed_by = $2, confirmed_at = now(), updated_at = $3, version = version + 1 WHERE id = $1`

// ConfirmDestination lets money go to a destination once it has rested; the merchant is told. Only the master merchant itself may:
// CodeForbidden otherwise. A repeated call returns the destination as it is. CodeStateConflict for one that was removed.
func (s *Store) ConfirmDestination(ctx context.Context, v View, id uuid.UUID, by exchange.Principal, letters ...exchange.Message) (exchange.Destination, error) {
	return s.moveDestination(ctx, v, id, exchange.DestinationConfirmed, by, letters, func(d exchange.Destination) error {
		if d.MerchantID != by.UserID {
			return exchange.Errorf(exchange.CodeForbidden, "Only the master merchant itself can confirm a destination.")
		}
		return nil
	})
}

const removeDestination = `
UPDATE otc_destinations SET status = 'removed', removed_by = $2, removed_at = $3, updated_at = $3, version = version + 1 WHERE id = $1`

// RemoveDestination ends a destination: nothing more goes there. A repeated call is fine.
func (s *Store) RemoveDestination(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.Destination, error) {
	return s.moveDestination(ctx, v, id, exchange.DestinationRemoved, by, nil, nil)
}

var moveDestinationTo = map[exchange.DestinationStatus]string{
	exchange.DestinationConfirmed: confirmDestination, exchange.DestinationRemoved: removeDestination,
}

// moveDestination changes the status of a destination, unless it has it already.
func (s *Store) moveDestination(
	ctx context.Context, v View, id uuid.UUID, to exchange.DestinationStatus, by exchange.Principal, letters []exchange.Message, check func(exchange.Destination) error,
) (exchange.Destination, error) {
	all, _, vendor := v.args()
	var now exchange.Destination
	err := s.inTx(ctx, "destination", func(t unitTx) error {
		before, err := readOne[exchange.Destination](ctx, t, "destination", lockDestination, id, all, vendor)
		if now = before; err != nil || before.Status == to {
			return err
		}
		if err := exchange.DestinationMachine.Allow(before.Status, to); err != nil {
			return err
		}
		if check != nil {
			if err := check(before); err != nil {
				return err
			}
		}
		if err := t.One(ctx, moveDestinationTo[to], id, by.UserID, t.s.now()); err != nil {
			return err
		}
		now, err = t.destinationChanged(ctx, "otc_destination."+string(to), &before, id, by, letters)
		return err
	})
	return now, err
}

package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// ControlFilter narrows a list of control changes.
type ControlFilter struct {
	Status    exchange.ControlStatus
	SubjectID uuid.UUID
}

const controlColumns = `c.id, c.kind, c.subject_id, c.was, c.change, c.proposed_by, c.proposed_at, c.expires_at, c.status, c.decided_by, c.decided_at, c.note`

func controlSnapshot(c exchange.ControlChange) map[string]any {
	return map[string]any{
		"id": c.ID, "kind": c.Kind, "subject_id": nullID(c.SubjectID), "was": withoutPayee(c.Kind, c.Was), "change": withoutPayee(c.Kind, c.Change), "proposed_by": c.ProposedBy,
		"expires_at": c.ExpiresAt, "status": c.Status, "decided_by": nullID(c.DecidedBy), "note": c.Note,
	}
}

// withoutPayee leaves out of the terms of a payment by bank who is paid: events and the audit log keep no account at a bank, which is personal
// data. Officers read it in the change, whose digest they agree to.
func withoutPayee(kind exchange.ControlKind, terms json.RawMessage) any {
	var fields map[string]any
	if kind != exchange.ControlBankRefund && kind != exchange.ControlBankRefundFailure && kind != exchange.ControlBankPayoutRefusal || json.Unmarshal(terms, &fields) != nil {
		return terms
	}
	for _, name := range []string{"account_name", "account_number", "sender_account", "sender_name", "payee_reason", "note"} {
		delete(fields, name)
	}
	return fields
}

const insertControl = `
INSERT INTO control_changes (id, kind, subject_id, was, change, proposed_by, proposed_at, expires_at, status)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending') RETURNING id, kind, subject_id, was, change, proposed_by, proposed_at, expires_at, status,
    decided_by, decided_at, note`

const samePending = `SELECT ` + controlColumns + ` FROM control_changes c
WHERE c.status = 'pending' AND c.expires_at > $1 AND c.kind = $2 AND c.subject_id IS NOT DISTINCT FROM $3 AND c.proposed_by = $4
    AND c.was = $5::jsonb AND c.change = $6::jsonb LIMIT 1`

const countPending = `SELECT count(*) FROM control_changes WHERE status = 'pending' AND expires_at > $1`

// propose stores a loosening of the controls that a second officer has to confirm. An identical proposal by the same
// officer returns the waiting one. CodeForbidden when no officer proposes it; CodeLimitReached when too many wait.
func (t unitTx) propose(ctx context.Context, kind exchange.ControlKind, subject uuid.UUID, was, change any, by exchange.Principal) (exchange.ControlChange, error) {
	var none exchange.ControlChange
	if by.UserID == uuid.Nil {
		return none, exchange.Errorf(exchange.CodeForbidden, "Only an admin or a treasury officer can propose a change that needs a second officer.")
	}
	before, err := document(was)
	if err != nil {
		return none, err
	}
	after, err := document(change)
	if err != nil {
		return none, err
	}
	now := t.s.now()
	var known []exchange.ControlChange
	if err := t.All(ctx, &known, samePending, now, kind, nullID(subject), by.UserID, before, after); err != nil {
		return none, err
	}
	if len(known) > 0 {
		return known[0], nil
	}
	var waiting int
	if err := t.Get(ctx, &waiting, countPending, now); err != nil {
		return none, err
	}
	if waiting >= exchange.MaxPendingControlChanges {
		return none, exchange.Errorf(exchange.CodeLimitReached, "At most %d changes may wait for confirmation. Confirm or reject some.", exchange.MaxPendingControlChanges)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return none, err
	}
	var c exchange.ControlChange
	if err := t.Get(ctx, &c, insertControl, id, kind, nullID(subject), before, after, by.UserID, now, now.Add(exchange.ControlChangeLife)); err != nil {
		return none, err
	}
	return c, t.record(ctx, auditEvent{by: by, object: "control_change", id: id, name: "control_change.proposed", after: controlSnapshot(c)})
}

const lockControl = `SELECT ` + controlColumns + ` FROM control_changes c WHERE c.id = $1 FOR UPDATE`

const decideControl = `UPDATE control_changes SET status = $2, decided_by = $3, decided_at = $4, note = $5 WHERE id = $1 AND status = 'pending'`

// ConfirmChange applies a proposed change in the transaction that records its confirmation. A repeated call by the
// same officer returns the change as it is. CodeForbidden for an officer who proposed it, benefits from it or may not
// decide; CodeExpired when its time is over; CodeStateConflict when it was decided, or when the value that it replaces
// has changed: it would then have another effect than the officer saw.
func (s *Store) ConfirmChange(ctx context.Context, id uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.decideChange(ctx, id, exchange.ControlConfirmed, note, by)
}

// RejectChange ends a proposed change without effect. Its proposer may withdraw it in the same way.
func (s *Store) RejectChange(ctx context.Context, id uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.decideChange(ctx, id, exchange.ControlRejected, note, by)
}

func (s *Store) decideChange(ctx context.Context, id uuid.UUID, to exchange.ControlStatus, note string, by exchange.Principal) (exchange.ControlChange, error) {
	return change(ctx, s, "change", id, func(ctx context.Context, t unitTx) (exchange.ControlChange, exchange.Posting, error) {
		var none exchange.Posting
		var before exchange.ControlChange
		if err := t.Get(ctx, &before, lockControl, id); err != nil {
			return exchange.ControlChange{}, none, err
		}
		if before.Status == to && before.DecidedBy == by.UserID {
			return before, none, nil
		}
		if before.Status != exchange.ControlPending {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The change was already %s.", before.Status)
		}
		if err := t.mayDecideChange(ctx, before, to, by.UserID); err != nil {
			return before, none, err
		}
		c := before
		c.Status, c.DecidedBy, c.DecidedAt, c.Note = to, by.UserID, t.s.now(), clip(note, maxControlNote)
		if err := t.One(ctx, decideControl, id, to, by.UserID, c.DecidedAt, c.Note); err != nil {
			return before, none, err
		}
		var p exchange.Posting
		if to == exchange.ControlConfirmed {
			var err error
			if p, err = t.apply(ctx, c, by); err != nil {
				return before, none, err
			}
		}
		return c, p, t.record(ctx, auditEvent{by: by, object: "control_change", id: id, name: "control_change." + string(to), before: controlSnapshot(before), after: controlSnapshot(c)})
	})
}

const maxControlNote = 500

// mayDecideChange refuses a decision by an officer who may not take it. The triggers of the table refuse it too.
func (t unitTx) mayDecideChange(ctx context.Context, c exchange.ControlChange, to exchange.ControlStatus, decider uuid.UUID) error {
	var u exchange.User
	if err := t.Get(ctx, &u, readUser, decider); err != nil {
		return translate(err, "user")
	}
	if !u.IsActive || exchange.ScopeOf(u.Role, exchange.ActConfirmChanges) != exchange.ScopeAny {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active admin or treasury officer can decide about changes that need a second officer.")
	}
	if to == exchange.ControlRejected {
		return nil
	}
	if !c.Kind.ConfirmedBy(u.Role) {
		return exchange.Errorf(exchange.CodeForbidden, "Only another treasury officer can confirm the change.")
	}
	if c.ProposedBy == decider {
		return exchange.Errorf(exchange.CodeForbidden, "The proposer of a change can't confirm it.")
	}
	if c.SubjectID == decider || gainsBy(c, u.Role) {
		return exchange.Errorf(exchange.CodeForbidden, "An officer whose own limits a change raises can't confirm it.")
	}
	if !t.s.now().Before(c.ExpiresAt) {
		return exchange.Errorf(exchange.CodeExpired, "The time for confirming the change is over. Propose it again.")
	}
	var proposer exchange.User
	if err := t.Get(ctx, &proposer, readUser, c.ProposedBy); err != nil {
		return translate(err, "user")
	}
	if !proposer.IsActive {
		return exchange.Errorf(exchange.CodeStateConflict, "The proposer of the change was deactivated. Another officer has to propose it.")
	}
	return nil
}

// gainsBy reports whether a change is about the limits of a role.
func gainsBy(c exchange.ControlChange, role exchange.Role) bool {
	var terms struct {
		Roles map[exchange.Role]json.RawMessage `json:"roles"`
	}
	return json.Unmarshal(c.Change, &terms) != nil || len(terms.Roles[role]) > 0
}

const readControl = `SELECT ` + controlColumns + ` FROM control_changes c WHERE c.id = $1`

// ControlChange reads a control change.
func (s *Store) ControlChange(ctx context.Context, id uuid.UUID) (exchange.ControlChange, error) {
	return readOne[exchange.ControlChange](ctx, s.db, "change", readControl, id)
}

// ControlChanges pages through the control changes, newest first, with their number.
func (s *Store) ControlChanges(ctx context.Context, f ControlFilter, p Page) ([]exchange.ControlChange, int, error) {
	var w where
	w.eq("c.status", string(f.Status))
	w.id("c.subject_id", f.SubjectID)
	return readPage[exchange.ControlChange](ctx, s, "change", list{columns: controlColumns, from: "control_changes c", where: w, order: "c.proposed_at DESC, c.id DESC"}, p)
}

const readWaiting = `SELECT ` + controlColumns + ` FROM control_changes c JOIN users p ON p.id = c.proposed_by JOIN users d ON d.id = $1
WHERE c.status = 'pending' AND c.expires_at > $2 AND c.proposed_by <> $1 AND c.subject_id IS DISTINCT FROM $1 AND p.is_active
    AND NOT coalesce(c.change -> 'roles' ? d.role, false) AND (c.kind NOT IN ('journal_entry', 'fee_sweep', 'fee_sweep_rule') OR d.role = 'treasury') ORDER BY c.proposed_at, c.id LIMIT $3`

// ChangesFor lists every change that an officer may confirm, oldest first.
func (s *Store) ChangesFor(ctx context.Context, officer uuid.UUID) ([]exchange.ControlChange, error) {
	return readAll[exchange.ControlChange](ctx, s.db, "change", readWaiting, officer, s.now(), exchange.MaxPendingControlChanges)
}

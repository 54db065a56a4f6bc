package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Lines that an officer matched with a payout by mistake. One officer proposes to free such a line, another confirms it, and the line is
// new again: what explains it is found, or it is set aside. The payout stays as it is: other witnesses prove it.

// freedLine is a proposal to free a line, and matchedLine what it is matched with.
type (
	freedLine struct {
		LineID uuid.UUID `json:"line_id"`
		Note   string    `json:"note"`
	}
	matchedLine struct {
		LineID     uuid.UUID `json:"line_id"`
		ObjectType string    `json:"object_type"`
		ObjectID   uuid.UUID `json:"object_id"`
		MatchedBy  uuid.UUID `json:"matched_by"`
		Amount     string    `json:"amount"`
		ValueDate  string    `json:"value_date"`
	}
)

func matchOf(l exchange.StatementLine) matchedLine {
	return matchedLine{l.ID, l.ObjectType, l.ObjectID, l.MatchedBy, l.Amount.String(), l.ValueDate.Format("2006-01-02")}
}

const lineProves = `SELECT EXISTS (SELECT FROM otc_withdrawals WHERE statement_line_id = $1) OR EXISTS (SELECT FROM refunds WHERE statement_line_id = $1)`

// freeable locks a line that two officers may free. CodeStateConflict for one that no officer named for a payout, or that proves one.
func (t unitTx) freeable(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.StatementLine, error) {
	l, err := readOne[exchange.StatementLine](ctx, t, "statement line", lockLine, id)
	if err != nil {
		return l, err
	}
	payouts := []string{exchange.LineOfPayout, exchange.LineOfWithdrawal, exchange.LineOfRefund}
	if l.Status != exchange.LineMatched || l.MatchedBy == uuid.Nil || !slices.Contains(payouts, l.ObjectType) {
		return l, exchange.Errorf(exchange.CodeStateConflict, "No officer named a payout for the line. A journal entry is corrected; a line that was found by its reference is right.")
	}
	var proves bool
	if err := t.Get(ctx, &proves, lineProves, id); err != nil {
		return l, err
	}
	if proves {
		return l, exchange.Errorf(exchange.CodeStateConflict, "The line is a witness of its payout.")
	}
	return l, t.notImporter(ctx, id, by.UserID)
}

// ProposeFreeLine proposes that a line is no longer that of the payout which an officer named for it. CodeStateConflict where it is not
// matched so, CodeForbidden for who brought its statement in.
func (s *Store) ProposeFreeLine(ctx context.Context, id uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "statement line", func(t unitTx) error {
		l, err := t.freeable(ctx, id, by)
		if err == nil {
			proposed, err = t.propose(ctx, exchange.ControlLineFreed, uuid.Nil, matchOf(l), freedLine{id, note}, by)
		}
		return err
	})
	return proposed, err
}

const freeNamedLine = `
UPDATE bank_lines l SET status = 'new', object_type = NULL, object_id = NULL, matched_by = NULL, matched_at = NULL, updated_at = $2, version = version + 1
WHERE l.id = $1 AND l.version = $3 RETURNING ` + lineColumns

// applyLineFreed frees a line that two officers say is not its payout's.
func (t unitTx) applyLineFreed(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[freedLine](c)
	if err != nil {
		return err
	}
	before, err := t.freeable(ctx, terms.LineID, by)
	if err != nil {
		return err
	}
	if err := unchanged(c, matchOf(before)); err != nil {
		return err
	}
	l, err := readOne[exchange.StatementLine](ctx, t, "statement line", freeNamedLine, before.ID, t.s.now(), before.Version)
	if err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "bank_line", id: l.ID, name: "bank_line.freed", before: lineSnapshot(before), after: lineSnapshot(l)})
}

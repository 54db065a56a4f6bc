package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

const moveColumns = `id, amount||' '||asset AS amount, '' AS callback_token, '' AS status_token, status, hold_id, change_id, asked_by, conversation_id, originator_id, code, receipt, note, settled_by,
	created_at, updated_at, claimed_at, settled_at, version`

func moveSnapshot(m exchange.FloatMove) map[string]any {
	return map[string]any{
		"id": m.ID, "amount": m.Amount.String(), "currency": m.Amount.Asset(), "status": m.Status, "asked_by": m.AskedBy, "code": m.Code,
		"receipt": m.Receipt, "settled_by": nullID(m.SettledBy), "version": m.Version,
	}
}

// moveDoc is a movement of float as stored in a control change.
type moveDoc struct {
	Amount string `json:"amount"`
}

// BeginFloatMove stores a movement of float and reserves the money in the working account, before the request to the
// provider. Above the value from which a transfer needs an officer it waits for a second officer instead: the change's
// id is then not zero, and its confirmation begins the movement. CodeConflict while another movement may still move
// money, CodeInsufficientFunds when the working account holds less by the books. A repeated call with the same id
// returns the movement as it is.
func (s *Store) BeginFloatMove(ctx context.Context, id uuid.UUID, amount money.Amount, by exchange.Principal) (exchange.FloatMove, exchange.ControlChange, error) {
	agreed, err := s.ApprovalRules(ctx)
	if err != nil {
		return exchange.FloatMove{}, exchange.ControlChange{}, err
	}
	if amount.Asset() != money.KES || !amount.Positive() || !amount.Equal(amount.FloorWhole()) {
		return exchange.FloatMove{}, exchange.ControlChange{}, exchange.Invalid(exchange.FieldError{
			Pointer: "/amount", Code: "precision", Message: "must be a whole number of shillings above zero",
		})
	}
	if amount.Cmp(agreed[exchange.ApproveTransfer].OneAbove) > 0 {
		var waits exchange.ControlChange
		err := s.inTx(ctx, "change", func(t unitTx) error {
			waits, err = t.propose(ctx, exchange.ControlFloatMove, uuid.Nil, struct{}{}, moveDoc{plain(amount)}, by)
			return err
		})
		return exchange.FloatMove{}, waits, err
	}
	m, err := change(ctx, s, "movement of float", id, func(ctx context.Context, t unitTx) (exchange.FloatMove, exchange.Posting, error) {
		return t.beginFloatMove(ctx, exchange.FloatMove{ID: id, Amount: amount, AskedBy: by.UserID}, by)
	})
	return m, exchange.ControlChange{}, err
}

const insertMove = `
INSERT INTO float_moves (id, asset, amount, status, hold_id, change_id, asked_by, created_at, updated_at)
VALUES ($1, $2, $3, 'created', $4, $5, $6, $7, $7) RETURNING ` + moveColumns

const readMove = `SELECT ` + moveColumns + ` FROM float_moves WHERE id = $1`

func (t unitTx) beginFloatMove(ctx context.Context, m exchange.FloatMove, by exchange.Principal) (exchange.FloatMove, exchange.Posting, error) {
	var none exchange.Posting
	var known []exchange.FloatMove
	if err := t.All(ctx, &known, readMove, m.ID); err != nil {
		return m, none, err
	}
	if len(known) > 0 {
		old := known[0]
		var err error
		if !old.Amount.Equal(m.Amount) {
			err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another movement of float.")
		}
		return old, none, err
	}
	hold, err := uuid.NewV7()
	if err != nil {
		return m, none, err
	}
	var created exchange.FloatMove
	err = t.Get(ctx, &created, insertMove, m.ID, m.Amount.Asset(), m.Amount.Decimal(), hold, nullID(m.ChangeID), m.AskedBy, t.s.now())
	if pg.Broke(err, "float_moves_open_key") {
		err = exchange.Wrap(exchange.CodeConflict, err, "Another movement of float may still move money.")
	}
	if err != nil {
		return m, none, err
	}
	return created, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: hold, Key: "float_move:" + m.ID.String(), Account: exchange.House(exchange.AccMomoCollection, m.Amount.Asset()), Amount: m.Amount,
		ObjectType: "float_move", ObjectID: m.ID,
	}}}}, t.record(ctx, auditEvent{by: by, object: "float_move", id: m.ID, name: "float_move.created", after: moveSnapshot(created)})
}

// applyFloatMove begins a movement that a second officer confirmed. Its id is the change's.
func (t unitTx) applyFloatMove(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var doc moveDoc
	if err := json.Unmarshal(c.Change, &doc); err != nil {
		return exchange.Posting{}, err
	}
	amount, err := money.Parse(money.KES, doc.Amount)
	if err != nil {
		return exchange.Posting{}, err
	}
	_, p, err := t.beginFloatMove(ctx, exchange.FloatMove{ID: c.ID, Amount: amount, ChangeID: c.ID, AskedBy: c.ProposedBy}, by)
	return p, err
}

// FloatMove reads a movement of float.
func (s *Store) FloatMove(ctx context.Context, id uuid.UUID) (exchange.FloatMove, error) {
	return readOne[exchange.FloatMove](ctx, s.db, "movement of float", readMove, id)
}

const readOpenMoves = `SELECT ` + moveColumns + ` FROM float_moves WHERE status IN ('created', 'unknown', 'accepted') ORDER BY created_at`

func (s *Store) openFloatMoves(ctx context.Context) ([]exchange.FloatMove, error) {
	return readAll[exchange.FloatMove](ctx, s.db, "movement of float", readOpenMoves)
}

// OpenFloatMoves lists the movements of float that may still move money: at most one.
func (s *Store) OpenFloatMoves(ctx context.Context) ([]uuid.UUID, error) {
	all, err := s.openFloatMoves(ctx)
	ids := make([]uuid.UUID, len(all))
	for i, m := range all {
		ids[i] = m.ID
	}
	return ids, err
}

// ListFloatMoves pages through the movements of float, the newest first, with their number.
func (s *Store) ListFloatMoves(ctx context.Context, p Page) ([]exchange.FloatMove, int, error) {
	return readPage[exchange.FloatMove](ctx, s, "movement of float", list{columns: moveColumns, from: "float_moves", order: "created_at DESC, id DESC"}, p)
}

const lockMove = readMove + ` FOR NO KEY UPDATE`

const saveMove = `
UPDATE float_moves SET status = $2, conversation_id = $3, originator_id = $4, code = $5, receipt = $6, note = $7, settled_by = $8, settled_at = $9,
    updated_at = $10, version = version + 1, token_hash = coalesce($13, token_hash), status_token_hash = coalesce($14, status_token_hash)
WHERE id = $1 AND version = $11 AND status = ANY ($12)`

// moveFloat locks a movement, applies fn and stores the result. A completed one is booked; the reservation of a
// refused or failed one ends.
func (s *Store) moveFloat(ctx context.Context, id uuid.UUID, by exchange.Principal, fn func(exchange.FloatMove, time.Time) (exchange.FloatMove, error)) (exchange.FloatMove, error) {
	return change(ctx, s, "movement of float", id, func(ctx context.Context, t unitTx) (exchange.FloatMove, exchange.Posting, error) {
		var none exchange.Posting
		var before exchange.FloatMove
		if err := t.Get(ctx, &before, lockMove, id); err != nil {
			return exchange.FloatMove{}, none, err
		}
		m, err := fn(before, t.s.now())
		if err != nil || m == before {
			return before, none, err
		}
		from := []exchange.FloatMoveStatus{before.Status}
		if m.Status != before.Status {
			if err := exchange.FloatMoveMachine.Allow(before.Status, m.Status); err != nil {
				return before, none, err
			}
			from = exchange.FloatMoveMachine.Sources(m.Status)
		}
		if !m.Open() {
			m.SettledAt = t.s.now()
		}
		m.UpdatedAt = t.s.now()
		if err := t.One(ctx, saveMove, id, m.Status, m.ConversationID, m.OriginatorID, m.Code, m.Receipt, clip(m.Note, maxControlNote), nullID(m.SettledBy),
			nullTime(m.SettledAt), m.UpdatedAt, before.Version, pq.Array(from), tokenHash(m.CallbackToken), tokenHash(m.StatusToken)); err != nil {
			return before, none, err
		}
		m.Version++
		return m, moved(m), t.record(ctx, auditEvent{by: by, object: "float_move", id: id, name: "float_move." + string(m.Status), before: moveSnapshot(before), after: moveSnapshot(m)})
	})
}

// moved is the posting for a movement's state.
func moved(m exchange.FloatMove) exchange.Posting {
	hold := exchange.Hold{ID: m.HoldID}
	switch m.Status {
	case exchange.FloatCompleted:
		return exchange.Posting{
			Holds: []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: hold}},
			Entries: []exchange.Entry{{
				Key: "float_move:" + m.ID.String(), Kind: "float.moved", ObjectType: "float_move", ObjectID: m.ID,
				Lines: []exchange.Line{
					exchange.Debit(exchange.House(exchange.AccMomoPayout, m.Amount.Asset()), m.Amount),
					exchange.Credit(exchange.House(exchange.AccMomoCollection, m.Amount.Asset()), m.Amount),
				},
			}},
		}
	case exchange.FloatRefused, exchange.FloatFailed:
		return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: hold}}}
	case exchange.FloatCreated, exchange.FloatUnknown, exchange.FloatAccepted:
	}
	return exchange.Posting{}
}

// ClaimFloatMove lets one caller send the request for a movement, and stores the hashes of the tokens of its callbacks.
// From then on the outcome is unknown, even if the caller crashes. It reports whether this call may send the request.
func (s *Store) ClaimFloatMove(ctx context.Context, addressed exchange.FloatMove) (exchange.FloatMove, bool, error) {
	claimed := false
	m, err := s.moveFloat(ctx, addressed.ID, flow, func(m exchange.FloatMove, _ time.Time) (exchange.FloatMove, error) {
		if claimed = m.Status == exchange.FloatCreated; claimed {
			m.Status, m.CallbackToken, m.StatusToken = exchange.FloatUnknown, addressed.CallbackToken, addressed.StatusToken
		}
		return m, nil
	})
	if err != nil { // the writer may still be at it, so claimed is not to be read
		return m, false, err
	}
	return m, claimed, nil
}

// RecordFloatSubmission stores the provider's response to the request. A result that arrived earlier stays.
func (s *Store) RecordFloatSubmission(ctx context.Context, id uuid.UUID, sub exchange.Submission) (exchange.FloatMove, error) {
	return s.moveFloat(ctx, id, flow, func(m exchange.FloatMove, _ time.Time) (exchange.FloatMove, error) {
		if m.Status != exchange.FloatUnknown {
			return m, nil
		}
		if m.ConversationID == "" {
			m.ConversationID, m.OriginatorID = sub.Refs.ConversationID, sub.Refs.OriginatorConversationID
		}
		switch sub.State {
		case exchange.Accepted:
			m.Status = exchange.FloatAccepted
		case exchange.Refused:
			m.Status, m.Code = exchange.FloatRefused, clip(sub.Code, maxFloatCode)
		case exchange.Unknown:
			m.Code = clip(sub.Code, maxFloatCode)
		}
		return m, nil
	})
}

const maxFloatCode = 40

// SettleFloatMove books the outcome of a movement: completed with its receipt, or failed. A repeated call with the
// same outcome returns the movement as it is; CodeStateConflict when another outcome is booked, the request was not sent yet,
// or it may be sent still and an officer declares that it failed.
func (s *Store) SettleFloatMove(ctx context.Context, id uuid.UUID, to exchange.FloatMoveStatus, o exchange.Observation, note string, by exchange.Principal) (exchange.FloatMove, error) {
	if to == exchange.FloatCompleted && o.Receipt == "" {
		return exchange.FloatMove{}, exchange.Errorf(exchange.CodeInvalid, "A completed movement of float needs its receipt.")
	}
	return s.moveFloat(ctx, id, by, func(m exchange.FloatMove, now time.Time) (exchange.FloatMove, error) {
		if m.Status == to && m.Receipt == o.Receipt {
			return m, nil
		}
		if by.UserID != uuid.Nil && by.UserID == m.AskedBy {
			return m, exchange.Errorf(exchange.CodeForbidden, "The requester of a movement of float can't settle it.")
		}
		if sent := m.ClaimedAt.Add(exchange.FloatSending); by.UserID != uuid.Nil && to == exchange.FloatFailed && m.Status == exchange.FloatUnknown && now.Before(sent) {
			return m, exchange.Errorf(exchange.CodeStateConflict, "The request for the movement may still be sent until %s. Look again at the operator's portal after that.", sent.UTC().Format(time.RFC3339))
		}
		if o.Amount.Positive() && !o.Amount.Equal(m.Amount) {
			return m, exchange.Errorf(exchange.CodeConflict, "The mobile money operator moved another amount than requested.")
		}
		m.Status, m.Receipt, m.Code, m.Note, m.SettledBy = to, o.Receipt, clip(o.Code, maxFloatCode), note, by.UserID
		return m, nil
	})
}

const (
	readMoveByToken       = `SELECT ` + moveColumns + ` FROM float_moves WHERE token_hash = $1`
	readMoveByStatusToken = `SELECT ` + moveColumns + ` FROM float_moves WHERE status_token_hash = $1`
)

// FloatMoveByToken reads the movement that has a callback address of that kind with the token.
func (s *Store) FloatMoveByToken(ctx context.Context, kind exchange.CallbackKind, token string) (exchange.FloatMove, error) {
	query := readMoveByToken
	if kind == exchange.CallbackStatus {
		query = readMoveByStatusToken
	}
	return readOne[exchange.FloatMove](ctx, s.db, "movement of float", query, tokenHash(token))
}

const insertFloatQuery = `INSERT INTO float_queries (move_id, ticket, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// SaveFloatQuery stores the provider's id of a query about a movement, by which its answer is known. A repeated call changes
// nothing.
func (s *Store) SaveFloatQuery(ctx context.Context, id uuid.UUID, ticket string) error {
	_, err := s.write(ctx, "query about a movement of float", insertFloatQuery, id, ticket, s.now())
	return err
}

// FloatQueries lists the provider's ids of our queries about a movement.
func (s *Store) FloatQueries(ctx context.Context, id uuid.UUID) ([]string, error) {
	return readAll[string](ctx, s.db, "query about a movement of float", `SELECT ticket FROM float_queries WHERE move_id = $1`, id)
}

const readFloatCallbacks = `SELECT ` + callbackColumns + ` FROM momo_callbacks WHERE float_move_id = $1 ORDER BY received_at, id LIMIT $2`

// FloatCallbacks lists the provider's callbacks about a movement, oldest first.
func (s *Store) FloatCallbacks(ctx context.Context, id uuid.UUID) ([]exchange.MomoCallback, error) {
	return readAll[exchange.MomoCallback](ctx, s.db, "callback", readFloatCallbacks, id, maxCallbacksRead)
}

package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// partiesKept is how long the parties of an unopened order are kept: longer than clients retry.
const partiesKept = time.Hour

// senderFields is how a sender is stored.
type senderFields struct {
	Name    string `json:"name"`
	Country string `json:"country"`
	Phone   string `json:"phone"`
}

const insertParties = `
INSERT INTO order_parties (id, owner_id, sender, beneficiary, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING`

const countryKnown = `SELECT EXISTS (SELECT FROM countries WHERE alpha2_code = $1 AND is_active)`

// SaveParties keeps the sender and the beneficiary of a remittance until the order with the same id takes them over. A
// repeated call for an id changes nothing. CodeInvalid for an unknown country of the sender.
func (s *Store) SaveParties(ctx context.Context, id uuid.UUID, sender exchange.Sender, b exchange.Beneficiary, by exchange.Principal) error {
	one, err := json.Marshal(senderFields(sender))
	if err != nil {
		return err
	}
	other, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return s.inTx(ctx, "parties", func(t unitTx) error {
		if sender.Country != "" {
			var known bool
			if err := t.Get(ctx, &known, countryKnown, sender.Country); err != nil {
				return err
			}
			if err := require(known, "/sender_country", "not_found", "must be the code of an active country"); err != nil {
				return err
			}
		}
		_, err := t.Exec(ctx, insertParties, id, by.UserID, string(one), string(other), t.s.now())
		return err
	})
}

const takeParties = `DELETE FROM order_parties WHERE id = $1 AND owner_id = $2 RETURNING sender, beneficiary`

// takeParties moves the parties of a request into the row of the order that is being opened. It finds only those of
// the same requester.
func (t unitTx) takeParties(ctx context.Context, r exchange.OrderRequest) (exchange.Sender, exchange.Beneficiary, error) {
	if !r.HasParties {
		return exchange.Sender{}, exchange.Beneficiary{}, nil
	}
	asker := r.CustomerID
	if r.OpenerID != uuid.Nil {
		asker = r.OpenerID
	}
	var rows []struct{ Sender, Beneficiary []byte }
	if err := t.All(ctx, &rows, takeParties, r.ID, asker); err != nil {
		return exchange.Sender{}, exchange.Beneficiary{}, err
	}
	if len(rows) == 0 {
		return exchange.Sender{}, exchange.Beneficiary{}, exchange.Errorf(exchange.CodeExpired,
			"The sender and the beneficiary are no longer stored. Repeat the request with another Idempotency-Key.")
	}
	var sender senderFields
	if err := json.Unmarshal(rows[0].Sender, &sender); err != nil {
		return exchange.Sender{}, exchange.Beneficiary{}, exchange.Wrap(exchange.CodeInternal, err, "a stored sender can't be read")
	}
	var b exchange.Beneficiary
	if err := json.Unmarshal(rows[0].Beneficiary, &b); err != nil {
		return exchange.Sender{}, exchange.Beneficiary{}, exchange.Wrap(exchange.CodeInternal, err, "a stored beneficiary can't be read")
	}
	return exchange.Sender(sender), b, nil
}

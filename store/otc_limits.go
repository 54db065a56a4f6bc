package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// How much mobile money of a merchant needs no officer in 24 hours. One admin may lower it; two officers raise it.

const otcLimitColumns = `l.merchant_id, l.entry, l.automatic||' KES' AS automatic, l.change_id, l.entered_by, l.entered_at`

// OTCLimits pages through the limits that count: the house's first, then those of merchants with an own one, and their number.
func (s *Store) OTCLimits(ctx context.Context, p Page) ([]exchange.OTCLimit, int, error) {
	var w where
	w.add(`NOT EXISTS (SELECT FROM otc_limits n WHERE n.merchant_id = l.merchant_id AND n.entry > l.entry)`)
	return readPage[exchange.OTCLimit](ctx, s, "limit", list{
		columns: otcLimitColumns, from: "otc_limits l", where: w, order: "l.merchant_id <> platform_treasury(), l.merchant_id",
	}, p)
}

// otcLimitTerms is a limit that two officers agree on, or the one before it.
type otcLimitTerms struct {
	MerchantID uuid.UUID `json:"merchant_id"`
	Automatic  string    `json:"automatic"`
}

// SetOTCLimit lowers a merchant's automatic limit, or proposes to raise it. CodeInvalid for a user that is no vendor, whose limit counts
// for its subvendors, CodeStateConflict when the limit is already so.
func (s *Store) SetOTCLimit(ctx context.Context, merchant uuid.UUID, to money.Amount, by exchange.Principal) (exchange.ControlChange, error) {
	var waits exchange.ControlChange
	err := s.inTx(ctx, "limit", func(t unitTx) error {
		was, err := t.lockedOTCLimit(ctx, merchant)
		if err != nil {
			return err
		}
		switch to.Cmp(was) {
		case 0:
			return exchange.Errorf(exchange.CodeStateConflict, "The limit is %s already.", was)
		case 1:
			waits, err = t.propose(ctx, exchange.ControlOTCLimit, uuid.Nil, otcLimitTerms{merchant, was.String()}, otcLimitTerms{merchant, to.String()}, by)
			return err
		}
		return t.enterOTCLimit(ctx, exchange.OTCLimit{MerchantID: merchant, Automatic: to}, was, by)
	})
	return waits, err
}

// lockedOTCLimit locks a merchant and returns the limit that counts for it.
func (t unitTx) lockedOTCLimit(ctx context.Context, merchant uuid.UUID) (money.Amount, error) {
	var u exchange.User
	if err := t.Get(ctx, &u, lockUser, merchant); err != nil {
		return money.Amount{}, translate(err, "user")
	}
	// The deposits of subvendors are their vendor's, and so is the limit.
	if err := require(u.Role == exchange.RoleVendor, "/merchant_id", "role", "must be a vendor"); err != nil {
		return money.Amount{}, err
	}
	return readOne[money.Amount](ctx, t, "limit", readAutomatic, merchant)
}

// applyOTCLimit stores a limit that two officers agreed.
func (t unitTx) applyOTCLimit(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[otcLimitTerms](c)
	if err != nil {
		return err
	}
	was, err := t.lockedOTCLimit(ctx, terms.MerchantID)
	if err == nil {
		err = unchanged(c, otcLimitTerms{terms.MerchantID, was.String()})
	}
	if err != nil {
		return err
	}
	to, err := money.Parse(money.KES, terms.Automatic)
	if err != nil {
		return err
	}
	return t.enterOTCLimit(ctx, exchange.OTCLimit{MerchantID: terms.MerchantID, Automatic: to, ChangeID: c.ID}, was, by)
}

const insertOTCLimit = `
INSERT INTO otc_limits (merchant_id, entry, automatic, change_id, entered_by, entered_at)
SELECT $1, coalesce(max(o.entry), 0) + 1, $2, $3, $4, $5 FROM otc_limits o WHERE o.merchant_id = $1`

func (t unitTx) enterOTCLimit(ctx context.Context, l exchange.OTCLimit, was money.Amount, by exchange.Principal) error {
	if err := t.One(ctx, insertOTCLimit, l.MerchantID, nullAmount(l.Automatic), nullID(l.ChangeID), by.UserID, t.s.now()); err != nil {
		return err
	}
	before := map[string]any{"automatic": was.String()}
	after := map[string]any{"id": l.MerchantID, "merchant_id": l.MerchantID, "automatic": l.Automatic.String()}
	return t.record(ctx, auditEvent{by: by, object: "otc_limit", id: l.MerchantID, name: "otc_limit.entered", before: before, after: after})
}

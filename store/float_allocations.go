package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// allocationDoc is an allocation as stored in a control change. A negative amount is taken back.
type allocationDoc struct {
	Amount string `json:"amount"`
	Note   string `json:"note"`
}

const maxAllocationNote = 200

// ProposeAllocation proposes to move the house's own shillings to the platform's treasury, which buys the crypto of
// sales without an offer. A negative amount takes shillings back. They move when a second officer confirms the
// proposal.
func (s *Store) ProposeAllocation(ctx context.Context, amount money.Amount, note string, by exchange.Principal) (exchange.ControlChange, error) {
	if amount.Asset() != money.KES || amount.IsZero() {
		return exchange.ControlChange{}, exchange.Invalid(exchange.FieldError{Pointer: "/amount", Code: "out_of_range", Message: "must not be zero"})
	}
	var waits exchange.ControlChange
	err := s.inTx(ctx, "change", func(t unitTx) error {
		var err error
		waits, err = t.propose(ctx, exchange.ControlTreasuryAllocation, uuid.Nil, struct{}{},
			allocationDoc{plain(amount), clip(note, maxAllocationNote)}, by)
		return err
	})
	return waits, err
}

// treasuryShillings is the vendor account of the platform's treasury.
func treasuryShillings() exchange.AccountRef {
	return exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES)
}

// applyAllocation books a confirmed allocation. Shillings reserved for orders can't be taken back.
func (t unitTx) applyAllocation(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var doc allocationDoc
	if err := json.Unmarshal(c.Change, &doc); err != nil {
		return exchange.Posting{}, err
	}
	amount, err := signed(doc.Amount)
	if err != nil {
		return exchange.Posting{}, err
	}
	if err := t.audit(ctx, by, "treasury.allocated", "control_change", c.ID, nil, doc); err != nil {
		return exchange.Posting{}, err
	}
	return exchange.Posting{Entries: []exchange.Entry{{
		Key: "treasury.allocated:" + c.ID.String(), Kind: "treasury.allocated", ObjectType: "control_change", ObjectID: c.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccCapital, money.KES), amount),
			exchange.Credit(treasuryShillings(), amount),
		},
	}}}, nil
}

// signed parses an amount of shillings that may be negative.
func signed(s string) (money.Amount, error) { return signedOf(money.KES, s) }

// signedOf parses an amount that may be negative.
func signedOf(asset money.Asset, s string) (money.Amount, error) {
	if len(s) > 0 && s[0] == '-' {
		m, err := money.Parse(asset, s[1:])
		return m.Neg(), err
	}
	return money.Parse(asset, s)
}

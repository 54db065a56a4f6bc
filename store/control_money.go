package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Changes that let more money pass, or other money, and therefore need two officers: an address leaves the deny list, the
// house's fees change, a rate strays from the market, the breaker of payouts is closed, a movement in the quarantine is
// settled, the numbers of a wallet continue after an unknown transaction (store/nonce_reopenings.go). Each is proposed, and applied in the transaction in which a second officer confirms it (see store/control_changes.go).

// termsFrom reads the terms of a proposed change.
func termsFrom[T any](c exchange.ControlChange) (T, error) {
	var terms T
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return terms, exchange.Wrap(exchange.CodeInternal, err, "a stored change can't be read")
	}
	return terms, nil
}

// undenyTerms names an entry of the deny list that is to be removed.
type undenyTerms struct {
	DeniedID uuid.UUID `json:"denied_id"`
}

func deniedSnapshot(d exchange.DeniedAddress) map[string]any {
	return map[string]any{"id": d.ID, "network": d.Network, "address": d.Address, "reason": d.Reason}
}

const readDeniedByID = `SELECT ` + deniedColumns + ` FROM deny_list WHERE id = $1 AND removed_at IS NULL`

// ProposeUndeny proposes to take an entry off the deny list; CodeNotFound when it is not on it.
func (s *Store) ProposeUndeny(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "denied address", func(t unitTx) error {
		var d exchange.DeniedAddress
		if err := t.Get(ctx, &d, readDeniedByID, id); err != nil {
			return err
		}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlDenyRemoval, uuid.Nil, deniedSnapshot(d), undenyTerms{id}, by)
		return err
	})
	return proposed, err
}

const removeDenied = `
UPDATE deny_list SET removed_by = $2, removed_at = $3 WHERE id = $1 AND removed_at IS NULL RETURNING ` + deniedColumns

func (t unitTx) applyUndeny(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[undenyTerms](c)
	if err != nil {
		return err
	}
	var d exchange.DeniedAddress
	if err := translate(t.Get(ctx, &d, removeDenied, terms.DeniedID, by.UserID, t.s.now()), "denied address"); err != nil {
		return err
	}
	return t.audit(ctx, by, "deny_list.removed", "denied_address", d.ID, deniedSnapshot(d), nil)
}

// rateTerms is a rate that strays from the last one that a source gave or two officers agreed, or that last one.
type rateTerms struct {
	ID          uuid.UUID       `json:"id"`
	Base        money.Asset     `json:"base"`
	Quote       money.Asset     `json:"quote"`
	Bid         decimal.Decimal `json:"bid"`
	Ask         decimal.Decimal `json:"ask"`
	LifeSeconds int64           `json:"stale_after_seconds"`
}

// ProposeRate proposes a rate of an admin that strays too far for one person (ErrRateStrays). It begins when it is confirmed.
func (s *Store) ProposeRate(ctx context.Context, e RateEntry, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "rate", func(t unitTx) error {
		var found []exchange.FXRate
		if err := t.All(ctx, &found, lastRate, e.Base, e.Quote); err != nil {
			return err
		}
		var last rateTerms
		if len(found) > 0 {
			r := found[0]
			last = rateTerms{r.ID, r.Base, r.Quote, r.Bid, r.Ask, int64(r.StaleAt.Sub(r.ValidFrom) / time.Second)}
		}
		var err error
		terms := rateTerms{e.ID, e.Base, e.Quote, e.Bid, e.Ask, int64(e.Life / time.Second)}
		proposed, err = t.propose(ctx, exchange.ControlFXRate, uuid.Nil, last, terms, by)
		return err
	})
	return proposed, err
}

// applyRate stores a rate that two officers agreed.
func (t unitTx) applyRate(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[rateTerms](c)
	if err != nil {
		return err
	}
	_, err = t.enterRate(ctx, RateEntry{
		ID: terms.ID, Base: terms.Base, Quote: terms.Quote, Bid: terms.Bid, Ask: terms.Ask, Source: exchange.RateSourceAdmin,
		Life: time.Duration(terms.LifeSeconds) * time.Second, agreed: c.ProposedBy,
	}, by)
	return err
}

// closeTerms is the proposed closing of a breaker.
type closeTerms struct {
	Provider string `json:"provider"`
	Note     string `json:"note"`
}

// ProposeBreakerClosed proposes to let payouts go again. CodeStateConflict when the breaker is not open.
func (s *Store) ProposeBreakerClosed(ctx context.Context, provider, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "breaker", func(t unitTx) error {
		b, err := t.openBreaker(ctx, provider)
		if err != nil {
			return err
		}
		proposed, err = t.propose(ctx, exchange.ControlBreakerClosed, uuid.Nil, breakerSnapshot(b), closeTerms{provider, clip(note, maxBreakerNote)}, by)
		return err
	})
	return proposed, err
}

func (t unitTx) applyBreakerClosed(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[closeTerms](c)
	if err != nil {
		return err
	}
	return t.closeBreaker(ctx, terms.Provider, terms.Note, by)
}

// settleTerms is what officers found out about a quarantined movement: PaymentID is the payment that it was.
type settleTerms struct {
	QuarantineID uuid.UUID  `json:"quarantine_id"`
	PaymentID    *uuid.UUID `json:"payment_id"`
	Note         string     `json:"note"`
}

const unsettled = `SELECT network, tx_id, reason, detail FROM deposit_quarantine WHERE id = $1 AND settled_at IS NULL`

// ProposeSettlement proposes to settle a quarantined movement, as a payment of ours whose transaction this database lost if
// one is named (see adopt). CodeNotFound when it does not wait.
func (s *Store) ProposeSettlement(ctx context.Context, id, payment uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= maxSettlementNote, "/note", "required", "must say why, in at most 400 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "quarantined movement", func(t unitTx) error {
		var q struct {
			Network      exchange.Network
			TxID, Detail string
			Reason       exchange.QuarantineReason
		}
		if err := t.Get(ctx, &q, unsettled, id); err != nil {
			return err
		}
		was := map[string]any{"network": q.Network, "tx_hash": q.TxID, "reason": q.Reason, "detail": q.Detail}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlQuarantine, uuid.Nil, was, settleTerms{id, pointerTo(payment), note}, by)
		return err
	})
	return proposed, err
}

const maxSettlementNote = 400

const mayBeProposal = `SELECT coalesce((SELECT reason = 'not_our_send' AND may_be_proposal(q) FROM deposit_quarantine q WHERE q.id = $1), false)`

func (t unitTx) applySettlement(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[settleTerms](c)
	if err != nil {
		return err
	}
	if terms.PaymentID != nil {
		_, err = t.adopt(ctx, terms.QuarantineID, *terms.PaymentID, terms.Note, by)
		return err
	}
	var proposal bool
	if err := t.Get(ctx, &proposal, mayBeProposal, terms.QuarantineID); err != nil {
		return err
	}
	if proposal {
		return exchange.Errorf(exchange.CodeStateConflict, "The movement may be what the owners of the wallet signed for a proposal. It is settled when that has taken it over, or has ended.")
	}
	if err := t.One(ctx, settleQuarantine, terms.QuarantineID, t.s.now(), terms.Note); err != nil {
		return err
	}
	return t.record(ctx, auditEvent{
		by: by, object: "deposit_quarantine", id: terms.QuarantineID, name: "deposit_quarantine.settled", after: map[string]any{"id": terms.QuarantineID, "note": terms.Note},
	})
}

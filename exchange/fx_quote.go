package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// QuoteStatus is the state of an FX quote.
type QuoteStatus string

// The states of an FX quote. Whatever became of it, it can be read for ever.
const (
	QuoteActive     QuoteStatus = "active"     // one object may be opened with it
	QuoteConsumed   QuoteStatus = "consumed"   // one was
	QuoteExpired    QuoteStatus = "expired"    // its time passed unused
	QuoteSuperseded QuoteStatus = "superseded" // its owner asked for another in its place
)

// ByOwner causes what the owner of an object asks for.
const ByOwner = "owner"

// QuoteMachine governs FX quotes.
var QuoteMachine = Machine[QuoteStatus]{
	Name: "fx_quote", Initial: QuoteActive,
	Transitions: []Transition[QuoteStatus]{
		{QuoteActive, QuoteConsumed, ByOwner, "an object is opened with it in the same transaction, before its time is over"},
		{QuoteActive, QuoteExpired, ByFlow, "its time is over"},
		{QuoteActive, QuoteSuperseded, ByOwner, "another one is asked for in its place"},
	},
	Final: []QuoteStatus{QuoteConsumed, QuoteExpired, QuoteSuperseded},
}

// QuotePurpose is what a quote may be used for.
type QuotePurpose string

// QuoteForTransfer is the purpose of quotes that transfers are opened with. Another one is added together
// with the flow that takes its quotes.
const QuoteForTransfer QuotePurpose = "transfer"

// Scope is the scope whose fee profile prices the purpose.
func (p QuotePurpose) Scope() FeeScope { return FeeScope(p) }

// OfferType is the kind of offer that a price of this side compares with, seen from the house as from a merchant: what
// the owner sells, the house buys.
func (s QuoteSide) OfferType() OfferType {
	if s == QuoteBuy {
		return OfferSell
	}
	return OfferBuy
}

// QuoteSide is which way the priced amount goes between its owner and the house.
type QuoteSide string

// The sides. Whoever buys pays the shillings, whoever sells gets them.
const (
	QuoteBuy  QuoteSide = "buy"  // the shillings that buy the amount: ask plus spread, rounded up to a whole one
	QuoteSell QuoteSide = "sell" // the shillings that the amount brings: bid less spread, rounded down to a whole one
)

// Limits of quotes.
const (
	QuoteLife       = 5 * time.Minute // unless the rate is stale before
	MaxActiveQuotes = 20              // of one owner at a time
)

// QuoteFormula names how a quote was computed. Another way of computing gets another name, and Price goes
// on knowing the old one, because quotes are replayed for ever.
const QuoteFormula = "kivuko-price-1"

// QuoteTerms are all inputs of a quote, frozen.
type QuoteTerms struct {
	Purpose QuotePurpose
	Side    QuoteSide
	Amount  money.Amount // of a crypto asset
	Rate    FXRate       // which and what it said; of it only what prices counts
	Profile FeeProfile
	Formula string
}

// QuotePrice is what follows from the terms.
type QuotePrice struct {
	Rate  decimal.Decimal // in the currency per unit, with the spread, rounded against the owner to FXRatePlaces
	Fiat  money.Amount    // whole shillings
	Fee   money.Amount    // in the asset, charged on top of the amount
	Total money.Amount    // amount and fee
}

// Price computes a quote from its terms alone. CodeInvalid names the field that makes it impossible.
func (t QuoteTerms) Price() (QuotePrice, error) {
	if t.Formula != QuoteFormula {
		return QuotePrice{}, Errorf(CodeInternal, "there is no formula %q", t.Formula)
	}
	if t.Rate.Base != t.Amount.Asset() || t.Profile.Asset != t.Amount.Asset() || t.Rate.Quote != money.KES {
		return QuotePrice{}, Errorf(CodeInternal, "an amount of %s can't be priced by a rate of %s and fees in %s", t.Amount.Asset(), t.Rate.Base, t.Profile.Asset)
	}
	var p QuotePrice
	switch t.Side {
	case QuoteBuy:
		p.Rate = t.Rate.Ask.Mul(decimal.New(basisPoints+t.Profile.Spread, -4)).RoundCeil(FXRatePlaces)
		p.Fiat = t.Amount.MulCeil(money.KES, p.Rate).CeilWhole()
	case QuoteSell:
		p.Rate = t.Rate.Bid.Mul(decimal.New(basisPoints-t.Profile.Spread, -4)).RoundFloor(FXRatePlaces)
		p.Fiat = t.Amount.MulFloor(money.KES, p.Rate).FloorWhole()
	default:
		return p, Errorf(CodeInternal, "there is no side %q", t.Side)
	}
	if !p.Fiat.Positive() {
		return p, Invalid(FieldError{Pointer: "/amount", Code: "out_of_range", Message: "is worth less than one shilling"})
	}
	p.Fee = t.Profile.Fee(t.Amount)
	p.Total = t.Amount.Add(p.Fee)
	return p, nil
}

// Rounding says in words how the formula rounds.
func (t QuoteTerms) Rounding() string {
	if t.Side == QuoteBuy {
		return "payer_up_to_whole_shillings"
	}
	return "payee_down_to_whole_shillings"
}

// FXQuote is a price that was promised to one owner for a while, with everything it was computed from.
type FXQuote struct {
	ID           uuid.UUID
	OwnerID      uuid.UUID
	VendorID     uuid.UUID // the master merchant that the owner acts for
	Terms        QuoteTerms
	Price        QuotePrice
	Hash         string // of terms and price, in hexadecimal; see Fingerprint
	Status       QuoteStatus
	CreatedAt    time.Time
	ExpiresAt    time.Time
	ConsumedAt   time.Time
	ObjectType   string // what it was consumed by
	ObjectID     uuid.UUID
	SupersededBy uuid.UUID
	UpdatedAt    time.Time
	Version      int64
}

// Over tells whether the time of the quote is over.
func (q FXQuote) Over(at time.Time) bool { return !at.Before(q.ExpiresAt) }

// Canonical is the encoding of a quote that its hash is made of: one line for each fact in a fixed order,
// decimals without trailing zeros, amounts with all places of their asset, times in UTC with milliseconds.
func (q FXQuote) Canonical() string {
	const moment = "2006-01-02T15:04:05.000Z"
	t, p := q.Terms, q.Price
	maximum := ""
	if t.Profile.Maximum.Asset() != "" {
		maximum = t.Profile.Maximum.String()
	}
	var b strings.Builder
	b.WriteString("kivuko fx quote v1\n")
	for _, line := range [][2]string{
		{"id", q.ID.String()},
		{"owner", q.OwnerID.String()},
		{"purpose", string(t.Purpose)},
		{"side", string(t.Side)},
		{"asset", string(t.Amount.Asset())},
		{"amount", t.Amount.String()},
		{"currency", string(t.Rate.Quote)},
		{"rate.id", t.Rate.ID.String()},
		{"rate.bid", t.Rate.Bid.String()},
		{"rate.ask", t.Rate.Ask.String()},
		{"rate.source", t.Rate.Source},
		{"rate.valid_from", t.Rate.ValidFrom.UTC().Format(moment)},
		{"rate.stale_at", t.Rate.StaleAt.UTC().Format(moment)},
		{"profile.id", t.Profile.ID.String()},
		{"profile.version", fmt.Sprint(t.Profile.Version)},
		{"profile.fixed", t.Profile.Fixed.String()},
		{"profile.basis_points", fmt.Sprint(t.Profile.BasisPoints)},
		{"profile.minimum", t.Profile.Minimum.String()},
		{"profile.maximum", maximum},
		{"profile.spread", fmt.Sprint(t.Profile.Spread)},
		{"formula", t.Formula},
		{"rounding", t.Rounding()},
		{"price.rate", p.Rate.String()},
		{"price.fiat", p.Fiat.String()},
		{"price.fee", p.Fee.String()},
		{"price.total", p.Total.String()},
		{"created_at", q.CreatedAt.UTC().Format(moment)},
		{"expires_at", q.ExpiresAt.UTC().Format(moment)},
	} {
		b.WriteString(line[0] + "=" + line[1] + "\n")
	}
	return b.String()
}

// Fingerprint is the SHA-256 of the canonical encoding, in hexadecimal.
func (q FXQuote) Fingerprint() string {
	sum := sha256.Sum256([]byte(q.Canonical()))
	return hex.EncodeToString(sum[:])
}

// Replay computes the quote anew from its frozen terms and names what does not agree with what is stored:
// "rate", "fiat_amount", "fee", "total_amount" or "hash". An empty list is agreement.
func (q FXQuote) Replay() (QuotePrice, []string) {
	p, err := q.Terms.Price()
	if err != nil {
		return p, []string{"terms"}
	}
	var off []string
	for _, c := range []struct {
		name  string
		agree bool
	}{
		{"rate", p.Rate.Equal(q.Price.Rate)},
		{"fiat_amount", p.Fiat.Equal(q.Price.Fiat)},
		{"fee", p.Fee.Equal(q.Price.Fee)},
		{"total_amount", p.Total.Equal(q.Price.Total)},
		{"hash", q.Fingerprint() == q.Hash},
	} {
		if !c.agree {
			off = append(off, c.name)
		}
	}
	return p, off
}

// Admit refuses a quote for an object that is about to be opened with it: one of another purpose, asset or
// amount with CodeInvalid, one that was used or replaced with CodeStateConflict, one whose time is over
// with CodeExpired. Whose it is, is the caller's to look at.
func (q FXQuote) Admit(purpose QuotePurpose, amount money.Amount, now time.Time) error {
	fault := func(pointer, message string) error {
		return Invalid(FieldError{Pointer: pointer, Code: "mismatch", Message: message})
	}
	switch {
	case q.Terms.Purpose != purpose:
		return fault("/fx_rate_quote_id", fmt.Sprintf("is a quote for a %s", q.Terms.Purpose))
	case q.Terms.Amount.Asset() != amount.Asset():
		return fault("/asset", fmt.Sprintf("must be %s, as in the quote", q.Terms.Amount.Asset()))
	case !q.Terms.Amount.Equal(amount):
		return fault("/amount", fmt.Sprintf("must be %s, as in the quote", q.Terms.Amount))
	case q.Status == QuoteExpired, q.Status == QuoteActive && q.Over(now):
		return Errorf(CodeExpired, "The time of the quote in fx_rate_quote_id is over. Ask for another one.")
	case q.Status != QuoteActive:
		return Errorf(CodeStateConflict, "The quote in fx_rate_quote_id is %s; a quote is used once.", q.Status)
	}
	return nil
}

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

// The states of an FX quote. A quote stays readable for ever.
const (
	QuoteActive     QuoteStatus = "active"     // can be used to open one object
	QuoteConsumed   QuoteStatus = "consumed"   // was used
	QuoteExpired    QuoteStatus = "expired"    // its time passed unused
	QuoteSuperseded QuoteStatus = "superseded" // its owner requested another in its place
)

// ByOwner marks transitions that the object's owner causes.
const ByOwner = "owner"

// QuoteMachine governs FX quotes.
var QuoteMachine = Machine[QuoteStatus]{
	Name: "fx_quote", Initial: QuoteActive,
	Transitions: []Transition[QuoteStatus]{
		{QuoteActive, QuoteConsumed, ByOwner, "an object is opened with it in the same transaction, before it expires"},
		{QuoteActive, QuoteExpired, ByFlow, "its time is over"},
		{QuoteActive, QuoteSuperseded, ByOwner, "the owner requests another in its place"},
	},
	Final: []QuoteStatus{QuoteConsumed, QuoteExpired, QuoteSuperseded},
}

// QuotePurpose is what a quote may be used for.
type QuotePurpose string

// QuoteForTransfer is the purpose of quotes that transfers are opened with. Add a new purpose together with the flow that
// accepts its quotes.
const QuoteForTransfer QuotePurpose = "transfer"

// Scope returns the scope whose fee profile prices the purpose.
func (p QuotePurpose) Scope() FeeScope { return FeeScope(p) }

// OfferType is the offer type that competes with a price of this side. Offers are named from the vendor's point of view,
// quotes from the owner's: what the owner buys, a vendor sells.
func (s QuoteSide) OfferType() OfferType {
	if s == QuoteBuy {
		return OfferSell
	}
	return OfferBuy
}

// QuoteSide is whether the quote's owner buys or sells the priced amount.
type QuoteSide string

// The sides. The buyer pays the shillings, the seller gets them.
const (
	QuoteBuy  QuoteSide = "buy"  // the shillings that buy the amount: ask plus spread, rounded up to whole shillings
	QuoteSell QuoteSide = "sell" // the shillings that the amount brings: bid less spread, rounded down to whole shillings
)

// Limits of quotes.
const (
	QuoteLife       = 5 * time.Minute // or until the rate is stale, if that is earlier
	MaxActiveQuotes = 20              // of one owner at a time
)

// QuoteFormula names the method of computing a quote. A new method needs a new name, and Price must keep supporting the old
// one, because stored quotes are replayed for ever.
const QuoteFormula = "kivuko-price-1"

// QuoteTerms are all inputs of a quote, frozen.
type QuoteTerms struct {
	Purpose QuotePurpose
	Side    QuoteSide
	Amount  money.Amount // of a crypto asset
	Rate    FXRate       // the rate's id and values; only what affects the price
	Profile FeeProfile
	Formula string
}

// QuotePrice is the result of the terms.
type QuotePrice struct {
	Rate  decimal.Decimal // in the currency per unit, with the spread, rounded to FXRatePlaces against the owner
	Fiat  money.Amount    // whole shillings
	Fee   money.Amount    // in the asset, charged on top of the amount
	Total money.Amount    // amount and fee
}

// Price computes a quote from its terms alone. CodeInvalid names the field that makes a price impossible.
func (t QuoteTerms) Price() (QuotePrice, error) {
	if t.Formula != QuoteFormula {
		return QuotePrice{}, Errorf(CodeInternal, "there is no formula %q", t.Formula)
	}
	if t.Rate.Base != t.Amount.Asset() || t.Profile.Currency() != t.Amount.Asset() || t.Rate.Quote != money.KES {
		return QuotePrice{}, Errorf(CodeInternal, "an amount of %s can't be priced by a rate of %s and fees in %s", t.Amount.Asset(), t.Rate.Base, t.Profile.Currency())
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
		return p, Invalid(FieldError{Pointer: "/amount", Code: "out_of_range", Message: "must be worth at least one shilling"})
	}
	p.Fee = t.Profile.Fee(t.Amount)
	p.Total = t.Amount.Add(p.Fee)
	return p, nil
}

// Rounding names how the formula rounds.
func (t QuoteTerms) Rounding() string {
	if t.Side == QuoteBuy {
		return "payer_up_to_whole_shillings"
	}
	return "payee_down_to_whole_shillings"
}

// FXQuote is a price that is promised to one owner until it expires, with all its inputs.
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
	ObjectType   string // what used it
	ObjectID     uuid.UUID
	SupersededBy uuid.UUID
	UpdatedAt    time.Time
	Version      int64
}

// Over reports whether the quote has expired.
func (q FXQuote) Over(at time.Time) bool { return !at.Before(q.ExpiresAt) }

// Canonical is the encoding of a quote that its hash is made of: one line for each fact in a fixed order, decimals without
// trailing zeros, amounts with all places of their asset, times in UTC with milliseconds.
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

// Replay recomputes the quote from its frozen terms and lists what differs from the stored result: "rate", "fiat_amount",
// "fee", "total_amount" or "hash". An empty list means that they agree.
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

// Admit checks a quote before an object is opened with it. Another purpose, asset or amount is CodeInvalid, a quote that was
// used or replaced is CodeStateConflict, and an expired one is CodeExpired. The caller checks the owner.
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
		return Errorf(CodeExpired, "The quote in fx_rate_quote_id has expired. Request another one.")
	case q.Status != QuoteActive:
		return Errorf(CodeStateConflict, "The quote in fx_rate_quote_id is %s; a quote is used once.", q.Status)
	}
	return nil
}

package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

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

// The purposes. Add a new one together with the flow that accepts its quotes.
const (
	QuoteForTransfer QuotePurpose = "transfer"
	QuoteForPurchase QuotePurpose = "onramp"      // purchases without an offer
	QuoteForSale     QuotePurpose = "offramp"     // sales without an offer
	QuoteForDeposit  QuotePurpose = "otc_deposit" // the treasury sells crypto to a merchant
	// The treasury buys crypto from a merchant, or sells it, out of its balance.
	QuoteForWithdrawal QuotePurpose = "otc_withdrawal"
)

// QuotePurposes lists the purposes.
func QuotePurposes() []QuotePurpose {
	return []QuotePurpose{QuoteForTransfer, QuoteForPurchase, QuoteForSale, QuoteForDeposit, QuoteForWithdrawal}
}

// Valid reports whether p is a known purpose.
func (p QuotePurpose) Valid() bool { return slices.Contains(QuotePurposes(), p) }

// Locked reports whether the quote holds over night, until the cut-off of the next bank day. The profile's spread is then the price
// of the lock.
func (p QuotePurpose) Locked() bool { return p.AtDesk() }

// AtDesk reports whether only merchants have quotes of the purpose, each for one network and one way in which the money moves.
func (p QuotePurpose) AtDesk() bool { return p == QuoteForDeposit || p == QuoteForWithdrawal }

// ObjectType is the type of the objects that are opened with quotes of the purpose.
func (p QuotePurpose) ObjectType() string {
	if p == QuoteForPurchase || p == QuoteForSale {
		return "order"
	}
	return string(p)
}

// AmountSide is which of the two amounts of a quote its owner named.
type AmountSide string

// The sides of the amount.
const (
	AmountCrypto AmountSide = "crypto"
	AmountFiat   AmountSide = "fiat"
)

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
	QuoteLife       = 5 * time.Minute // or until the rate is stale, if that is earlier; see Locked
	MaxActiveQuotes = 20              // of one owner at a time
)

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
// trailing zeros, amounts with all places of their asset, times in UTC with milliseconds. The first formula has the first encoding.
func (q FXQuote) Canonical() string {
	const moment = "2006-01-02T15:04:05.000Z"
	t, p := q.Terms, q.Price
	maximum := ""
	if t.Profile.Maximum.Asset() != "" {
		maximum = t.Profile.Maximum.String()
	}
	head, more := "kivuko fx quote v1\n", [][2]string{}
	if t.Formula != QuoteFormula1 {
		head, more = "kivuko fx quote v2\n", [][2]string{
			{"vendor", q.VendorID.String()},
			{"network", string(t.Network)},
			{"method", t.Method},
			{"given", t.Given.String() + " " + string(t.Given.Asset())},
			{"fee.currency", string(p.Fee.Asset())},
		}
	}
	var b strings.Builder
	b.WriteString(head)
	for _, line := range append([][2]string{
		{"id", q.ID.String()},
		{"owner", q.OwnerID.String()},
		{"purpose", string(t.Purpose)},
		{"side", string(t.Side)},
		{"asset", string(p.Crypto.Asset())},
		{"amount", p.Crypto.String()},
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
	}, more...) {
		b.WriteString(line[0] + "=" + line[1] + "\n")
	}
	return b.String()
}

// Fingerprint is the SHA-256 of the canonical encoding, in hexadecimal.
func (q FXQuote) Fingerprint() string {
	sum := sha256.Sum256([]byte(q.Canonical()))
	return hex.EncodeToString(sum[:])
}

// Replay recomputes the quote from its frozen terms and lists what differs from the stored result: "rate", "amount", "fiat_amount",
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
		{"amount", p.Crypto.Equal(q.Price.Crypto)},
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

// QuoteUse is what an object is opened for with a quote.
type QuoteUse struct {
	Purpose QuotePurpose
	Amount  money.Amount // of crypto
	Network Network
	Method  string
}

// Admit checks a quote before an object is opened with it. Another purpose, asset, amount, network or method is CodeInvalid, a quote
// that was used or replaced is CodeStateConflict, and an expired one is CodeExpired. The caller checks the owner.
func (q FXQuote) Admit(use QuoteUse, now time.Time) error {
	fault := func(pointer, message string) error {
		return Invalid(FieldError{Pointer: pointer, Code: "mismatch", Message: message})
	}
	switch {
	case q.Terms.Purpose != use.Purpose:
		return fault("/fx_rate_quote_id", fmt.Sprintf("is a quote for a %s", q.Terms.Purpose))
	case q.Price.Crypto.Asset() != use.Amount.Asset():
		return fault("/asset", fmt.Sprintf("must be %s, as in the quote", q.Price.Crypto.Asset()))
	case !q.Price.Crypto.Equal(use.Amount):
		return fault("/amount", fmt.Sprintf("must be %s, as in the quote", q.Price.Crypto))
	case q.Terms.Network != "" && q.Terms.Network != use.Network:
		return fault("/network", fmt.Sprintf("must be %s, as in the quote", q.Terms.Network))
	case q.Terms.Method != "" && q.Terms.Method != use.Method:
		return fault("/payment_method", fmt.Sprintf("must be %s, as in the quote", q.Terms.Method))
	case q.Status == QuoteExpired, q.Status == QuoteActive && q.Over(now):
		return Errorf(CodeExpired, "The quote in fx_rate_quote_id has expired. Request another one.")
	case q.Status != QuoteActive:
		return Errorf(CodeStateConflict, "The quote in fx_rate_quote_id is %s; a quote is used once.", q.Status)
	}
	return nil
}

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

// SwapFormula1 is the method of computing the price of a swap. A new method gets a new name, and the old ones stay, because stored
// quotes are replayed for ever.
const SwapFormula1 = "kivuko-swap-1"

// The sides of the amount of a swap's quote.
const (
	AmountFrom AmountSide = "from" // all that leaves the wallet
	AmountTo   AmountSide = "to"   // all that comes back to it
)

// Limits of quotes for swaps.
const (
	SwapQuoteLife       = 60 * time.Second // or until one of the rates is stale, if that is earlier
	MaxActiveSwapQuotes = 20               // of one owner at a time that are not used
)

// SwapTerms are all inputs of the price of a swap, frozen.
type SwapTerms struct {
	From, To         money.Asset
	Network          Network
	Given            money.Amount // of one of the two assets
	FromRate, ToRate FXRate       // in shillings; the rates' ids and values
	Profile          FeeProfile   // with amounts in the asset that is got
	Formula          string
}

// AmountSide is which amount was given.
func (t SwapTerms) AmountSide() AmountSide {
	if t.Given.Asset() == t.From {
		return AmountFrom
	}
	return AmountTo
}

// SwapPrice is the result of the terms.
type SwapPrice struct {
	Rate decimal.Decimal // of what is got for one that is given, with the spread, rounded down to FXRatePlaces
	From money.Amount    // all that leaves the wallet
	To   money.Amount    // all that comes back, after the fee
	Fee  money.Amount    // of the house, in the asset that is got
}

// cross is what one unit of the given asset brings: the quotient of the two mids, less the spread.
func (t SwapTerms) cross() decimal.Decimal {
	// Both are twice the mid, which cancels out.
	from, to := t.FromRate.Bid.Add(t.FromRate.Ask), t.ToRate.Bid.Add(t.ToRate.Ask)
	rate, _ := from.Mul(decimal.NewFromInt(basisPoints-t.Profile.Spread)).QuoRem(to.Mul(decimal.NewFromInt(basisPoints)), FXRatePlaces)
	return rate
}

// Price computes the price from the terms alone. What is left by rounding is the house's. CodeInvalid names the field that makes a
// price impossible.
func (t SwapTerms) Price() (SwapPrice, error) {
	p := SwapPrice{}
	given := t.Given.Asset()
	switch {
	case t.Formula != SwapFormula1:
		return p, Errorf(CodeInternal, "there is no formula %q for swaps", t.Formula)
	case t.From == t.To || given != t.From && given != t.To || t.FromRate.Base != t.From || t.ToRate.Base != t.To || t.FromRate.Quote != t.ToRate.Quote || t.Profile.Currency() != t.To:
		return p, Errorf(CodeInternal, "%s for %s can't be priced by rates of %s and %s and fees in %s", t.From, t.To, t.FromRate.Base, t.ToRate.Base, t.Profile.Currency())
	}
	if p.Rate = t.cross(); !p.Rate.IsPositive() {
		return p, Errorf(CodeInternal, "%s is worth nothing in %s", t.From, t.To)
	}
	if t.AmountSide() == AmountFrom {
		p.From = t.Given
		gross := p.From.MulFloor(t.To, p.Rate)
		if p.Fee, p.To = t.Profile.Fee(gross), money.Zero(t.To); gross.Cmp(p.Fee) > 0 {
			p.To = gross.Sub(p.Fee)
		}
	} else {
		p.To = t.Given
		gross := t.Profile.Gross(p.To, false)
		p.Fee, p.From = t.Profile.Fee(gross), gross.DivCeil(t.From, p.Rate)
	}
	if !p.From.Positive() || !p.To.Positive() {
		return p, Invalid(FieldError{Pointer: "/amount", Code: "out_of_range", Message: "must bring more than the fee"})
	}
	return p, nil
}

// SwapQuote is the price of a swap in one wallet, promised to its owner until it expires, with all its inputs. It is used once: a swap
// names it. It never changes, and stays readable for ever.
type SwapQuote struct {
	ID        uuid.UUID
	AskedBy   uuid.UUID
	VendorID  uuid.UUID // the master merchant that acts; zero for others
	WalletID  uuid.UUID // in which the swap takes place
	Terms     SwapTerms
	Price     SwapPrice
	Hash      string // of terms and price, in hexadecimal; see Fingerprint
	CreatedAt time.Time
	ExpiresAt time.Time
	SwapID    uuid.UUID // that was opened with it
}

// Over reports whether the quote has expired.
func (q SwapQuote) Over(at time.Time) bool { return !at.Before(q.ExpiresAt) }

// Status is the state of the quote at a moment, as of other quotes.
func (q SwapQuote) Status(at time.Time) QuoteStatus {
	switch {
	case q.SwapID != uuid.Nil:
		return QuoteConsumed
	case q.Over(at):
		return QuoteExpired
	}
	return QuoteActive
}

// WaitsFor returns what the quote waits for, as one of QuoteDetails.
func (q SwapQuote) WaitsFor(at time.Time) string {
	if q.Status(at) == QuoteActive {
		return WaitUse
	}
	return WaitNothing
}

// Admit refuses a quote with which no swap can be opened: CodeStateConflict for one that was used, CodeExpired for one whose time is
// over.
func (q SwapQuote) Admit(at time.Time) error {
	switch q.Status(at) {
	case QuoteConsumed:
		return Errorf(CodeStateConflict, "The quote in quote_id is consumed; a quote is used once.")
	case QuoteExpired:
		return Errorf(CodeExpired, "The quote in quote_id has expired. Request another one.")
	case QuoteActive, QuoteSuperseded:
	}
	return nil
}

// Canonical is the encoding of a quote that its hash is made of, in the form of FXQuote.Canonical.
func (q SwapQuote) Canonical() string {
	t, p := q.Terms, q.Price
	maximum := ""
	if t.Profile.Maximum.Asset() != "" {
		maximum = t.Profile.Maximum.String()
	}
	lines := [][2]string{
		{"id", q.ID.String()},
		{"asked_by", q.AskedBy.String()},
		{"vendor", q.VendorID.String()},
		{"wallet", q.WalletID.String()},
		{"network", string(t.Network)},
		{"from", string(t.From)},
		{"to", string(t.To)},
		{"given", amountText(t.Given)},
	}
	for _, r := range []struct {
		name string
		rate FXRate
	}{{"from_rate", t.FromRate}, {"to_rate", t.ToRate}} {
		lines = append(
			lines, [2]string{r.name + ".id", r.rate.ID.String()}, [2]string{r.name + ".bid", r.rate.Bid.String()}, [2]string{r.name + ".ask", r.rate.Ask.String()},
			[2]string{r.name + ".source", r.rate.Source}, [2]string{r.name + ".valid_from", momentText(r.rate.ValidFrom)}, [2]string{r.name + ".stale_at", momentText(r.rate.StaleAt)},
		)
	}
	lines = append(lines, [][2]string{
		{"profile.id", t.Profile.ID.String()},
		{"profile.version", fmt.Sprint(t.Profile.Version)},
		{"profile.fixed", t.Profile.Fixed.String()},
		{"profile.basis_points", fmt.Sprint(t.Profile.BasisPoints)},
		{"profile.minimum", t.Profile.Minimum.String()},
		{"profile.maximum", maximum},
		{"profile.spread", fmt.Sprint(t.Profile.Spread)},
		{"formula", t.Formula},
		{"price.rate", p.Rate.String()},
		{"price.from", p.From.String()},
		{"price.to", p.To.String()},
		{"price.fee", p.Fee.String()},
		{"created_at", momentText(q.CreatedAt)},
		{"expires_at", momentText(q.ExpiresAt)},
	}...)
	var b strings.Builder
	b.WriteString("kivuko swap quote v1\n")
	for _, line := range lines {
		b.WriteString(line[0] + "=" + line[1] + "\n")
	}
	return b.String()
}

// Fingerprint is the SHA-256 of the canonical encoding, in hexadecimal.
func (q SwapQuote) Fingerprint() string {
	sum := sha256.Sum256([]byte(q.Canonical()))
	return hex.EncodeToString(sum[:])
}

// Replay recomputes the quote from its frozen terms and lists what differs from the stored result: "terms", "rate", "from_amount",
// "to_amount", "fee" or "hash". An empty list means that they agree.
func (q SwapQuote) Replay() (SwapPrice, []string) {
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
		{"from_amount", p.From.Equal(q.Price.From)},
		{"to_amount", p.To.Equal(q.Price.To)},
		{"fee", p.Fee.Equal(q.Price.Fee)},
		{"hash", q.Fingerprint() == q.Hash},
	} {
		if !c.agree {
			off = append(off, c.name)
		}
	}
	return p, off
}

package activities

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// RateSource names what crypto costs. CodeUnavailable when there is no answer.
type RateSource interface {
	Rates(ctx context.Context) (SourcedRates, error)
}

// SourcedRates are what a source said: rates with both sides and their moment, and how many lines were none.
type SourcedRates struct {
	Rates  []exchange.FXRate
	Broken int
}

// RateStore keeps rates. EnterSourcedRate refuses with CodeInvalid a rate that jumps, is stale or is not newer
// than the last one, which stays in force then.
type RateStore interface {
	EnterSourcedRate(ctx context.Context, r exchange.FXRate) error
}

// Rates brings rates from a source into the books. Source is nil where an admin enters them all.
type Rates struct {
	Store  RateStore
	Source RateSource
	Name   string        // of the source, in the books
	Life   time.Duration // from a rate's moment until nothing is priced by it
}

// PulledRates is what came of one look at the source.
type PulledRates struct {
	Entered int `json:"entered"`
	Known   int `json:"known"`   // no newer than the last
	Refused int `json:"refused"` // broken, stale, or too far from the last
}

// PullRates enters what the source says and has not said before. A rate that is refused leaves the last one as
// it is, and is logged and counted for a person to look at. Twice it enters nothing twice: the database takes
// no rate that is not newer than the last.
func (a *Rates) PullRates(ctx context.Context) (PulledRates, error) {
	var out PulledRates
	if a.Source == nil {
		return out, nil
	}
	said, err := a.Source.Rates(ctx)
	if err != nil {
		return out, Failure(ctx, err)
	}
	log := activity.GetLogger(ctx)
	if out.Refused = said.Broken; said.Broken > 0 {
		log.Warn("the source of rates said what is no rate", "source", a.Name, "lines", said.Broken)
	}
	for _, r := range said.Rates {
		r.Source, r.StaleAt = a.Name, r.ValidFrom.Add(a.Life)
		err := a.Store.EnterSourcedRate(ctx, r)
		switch e, _ := errors.AsType[*exchange.Error](err); {
		case err == nil:
			out.Entered++
		case e != nil && len(e.Fields) == 1 && e.Fields[0].Code == exchange.RateNotNewer:
			out.Known++
		case e != nil && (e.Code == exchange.CodeInvalid || e.Code == exchange.CodeStateConflict):
			out.Refused++
			log.Warn("a rate of the source was refused; the last one stays", "source", a.Name, "base", r.Base, "cause", e.Error())
		default:
			return out, Failure(ctx, err)
		}
	}
	of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"source": a.Name})
	of.Counter("kivuko_rates_entered").Inc(int64(out.Entered))
	of.Counter("kivuko_rates_refused").Inc(int64(out.Refused))
	return out, nil
}

// HTTPRates asks a service. It sends one GET and expects 200 with
//
//	{"rates": [{"base": "USDT", "quote": "KES", "bid": "128.90", "ask": "129.10", "at": "2026-01-31T12:00:00Z"}]}
//
// with decimals as strings. Everything else, a redirect too, is no answer; a line that is no rate is counted
// and left out.
type HTTPRates struct {
	url    string
	token  string
	client *http.Client
}

// Limits of a question to a source of rates.
const (
	ratesTimeout   = 10 * time.Second
	maxRatesAnswer = 64 << 10
	maxRatesLines  = 50
)

// NewHTTPRates makes a source of a service's address, which must be an absolute http or https URL without a
// user. The token, if any, is sent as a bearer token.
func NewHTTPRates(address, token string) (*HTTPRates, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, errors.New("the address of the source of rates must be an http or https URL")
	}
	return &HTTPRates{url: address, token: token, client: &http.Client{
		Timeout:       ratesTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

type rateLine struct {
	Base  money.Asset `json:"base"`
	Quote money.Asset `json:"quote"`
	Bid   string      `json:"bid"`
	Ask   string      `json:"ask"`
	At    time.Time   `json:"at"`
}

// Rates asks once.
func (s *HTTPRates) Rates(ctx context.Context) (SourcedRates, error) {
	silent := func(err error) (SourcedRates, error) {
		return SourcedRates{}, exchange.Wrap(exchange.CodeUnavailable, err, "The source of rates gave no answer.")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return silent(err)
	}
	r.Header.Set("Accept", "application/json")
	raw, err := ask(s.client, r, s.token, maxRatesAnswer)
	if err != nil {
		return silent(err)
	}
	var said struct {
		Rates []json.RawMessage `json:"rates"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return silent(err)
	}
	if len(said.Rates) == 0 || len(said.Rates) > maxRatesLines {
		return silent(errors.New("the answer has no rates, or too many"))
	}
	var out SourcedRates
	for _, text := range said.Rates {
		rate, ok := readRate(text)
		if !ok {
			out.Broken++
			continue
		}
		out.Rates = append(out.Rates, rate)
	}
	return out, nil
}

// readRate reads a line. Numbers are refused where decimals are texts: they would have been floats somewhere.
func readRate(text json.RawMessage) (exchange.FXRate, bool) {
	var l rateLine
	if err := json.Unmarshal(text, &l); err != nil {
		return exchange.FXRate{}, false
	}
	bid, err := money.ParseDecimal(l.Bid, exchange.FXRatePlaces)
	if err != nil {
		return exchange.FXRate{}, false
	}
	ask, err := money.ParseDecimal(l.Ask, exchange.FXRatePlaces)
	return exchange.FXRate{Base: l.Base, Quote: l.Quote, Bid: bid, Ask: ask, ValidFrom: l.At}, err == nil && !l.At.IsZero()
}

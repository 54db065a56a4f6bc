package service

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// maxRates is how many rates an answer may have.
const maxRates = 50

// Rates reads rates from a service. It sends one GET and expects 200 with
//
//	{"rates": [{"base": "USDT", "quote": "KES", "bid": "128.90", "ask": "129.10", "at": "2026-01-31T12:00:00Z"}]}
//
// with decimals as strings. Every other response, also a redirect, is no answer. Invalid lines are counted and left out.
type Rates struct{ endpoint }

// NewRates returns the service at an address, see newEndpoint.
func NewRates(address, token string) (*Rates, error) {
	e, err := newEndpoint("rate source", address, token)
	return &Rates{e}, err
}

type rateLine struct {
	Base  money.Asset `json:"base"`
	Quote money.Asset `json:"quote"`
	Bid   string      `json:"bid"`
	Ask   string      `json:"ask"`
	At    time.Time   `json:"at"`
}

// Rates sends one request. CodeUnavailable when there is no valid answer.
func (s *Rates) Rates(ctx context.Context) (exchange.SourcedRates, error) {
	lines, err := s.lines(ctx)
	if err != nil {
		return exchange.SourcedRates{}, exchange.Wrap(exchange.CodeUnavailable, err, "The rate source gave no valid answer.")
	}
	var out exchange.SourcedRates
	for _, text := range lines {
		rate, ok := readRate(text)
		if !ok {
			out.Broken++
			continue
		}
		out.Rates = append(out.Rates, rate)
	}
	return out, nil
}

func (s *Rates) lines(ctx context.Context) ([]json.RawMessage, error) {
	raw, err := s.ask(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Rates []json.RawMessage `json:"rates"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if len(answer.Rates) == 0 || len(answer.Rates) > maxRates {
		return nil, errors.New("the answer has no rates, or too many")
	}
	return answer.Rates, nil
}

// readRate reads a line. Decimals must be strings, because JSON numbers may have been floats somewhere.
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

package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"kivuko/exchange"
)

// Screening asks a screening service. It sends one POST with
//
//	{"reference": transfer, payment or deposit id, "network": "tron", "address": "T…", "asset": "USDT", "amount": "10.000000"}
//
// and expects 200 with {"verdict": "clear" | "hit" | "unknown", "reference": the service's own id of its answer}. Every other
// response, also a redirect, is no answer.
type Screening struct{ endpoint }

// NewScreening returns the service at an address, see newEndpoint.
func NewScreening(address, token string) (*Screening, error) {
	e, err := newEndpoint("screening service", address, token)
	return &Screening{e}, err
}

type screenQuestion struct {
	Reference string `json:"reference"`
	Network   string `json:"network"`
	Address   string `json:"address"`
	Asset     string `json:"asset"`
	Amount    string `json:"amount"`
}

type screenAnswer struct {
	Verdict   exchange.Verdict `json:"verdict"`
	Reference string           `json:"reference"`
}

// Screen screens a counterparty. CodeUnavailable when there is no valid answer.
func (s *Screening) Screen(ctx context.Context, c exchange.Counterparty) (exchange.Screening, error) {
	answer, err := s.screen(ctx, c)
	if err != nil {
		return exchange.Screening{}, exchange.Wrap(exchange.CodeUnavailable, err, "The screening service gave no valid answer.")
	}
	return exchange.Screening{Screener: s.host, Verdict: answer.Verdict, Reference: answer.Reference}, nil
}

func (s *Screening) screen(ctx context.Context, c exchange.Counterparty) (screenAnswer, error) {
	var answer screenAnswer
	body, err := json.Marshal(screenQuestion{c.Reference().String(), string(c.Network), c.Address, string(c.Amount.Asset()), c.Amount.String()})
	if err != nil {
		return answer, err
	}
	raw, err := s.ask(ctx, http.MethodPost, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return answer, err
	}
	switch answer.Verdict {
	case exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictUnknown:
		return answer, nil
	}
	return answer, errors.New("the answer has no verdict")
}

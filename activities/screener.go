package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"kivuko/exchange"
)

// HTTPScreener asks a screening service. It sends one POST with
//
//	{"reference": transfer, payment or deposit id, "network": "tron", "address": "T…", "asset": "USDT", "amount": "10.000000"}
//
// and expects 200 with {"verdict": "clear" | "hit" | "unknown", "reference": the service's own name for its
// answer}. Everything else, a redirect too, is no answer.
type HTTPScreener struct {
	name   string
	url    string
	token  string
	client *http.Client
}

// Limits of a question to a screening service.
const (
	screenTimeout   = 10 * time.Second
	maxScreenAnswer = 64 << 10
)

// NewHTTPScreener makes a screener of a service's address, which must be an absolute http or https URL
// without a user. The token, if any, is sent as a bearer token.
func NewHTTPScreener(address, token string) (*HTTPScreener, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, errors.New("the address of the screening service must be an http or https URL")
	}
	return &HTTPScreener{name: u.Host, url: address, token: token, client: &http.Client{
		Timeout:       screenTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
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

// Screen asks about a counterparty. CodeUnavailable when there is no answer.
func (s *HTTPScreener) Screen(ctx context.Context, c exchange.Counterparty) (exchange.Screening, error) {
	silent := func(err error) (exchange.Screening, error) {
		return exchange.Screening{}, exchange.Wrap(exchange.CodeUnavailable, err, "The screening service gave no answer.")
	}
	body, err := json.Marshal(screenQuestion{c.Reference().String(), string(c.Network), c.Address, string(c.Amount.Asset()), c.Amount.String()})
	if err != nil {
		return silent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return silent(err)
	}
	r.Header.Set("Content-Type", "application/json")
	raw, err := ask(s.client, r, s.token, maxScreenAnswer)
	if err != nil {
		return silent(err)
	}
	var said screenAnswer
	if err := json.Unmarshal(raw, &said); err != nil {
		return silent(err)
	}
	switch said.Verdict {
	case exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictUnknown:
		return exchange.Screening{Screener: s.name, Verdict: said.Verdict, Reference: said.Reference}, nil
	}
	return silent(errors.New("the answer has no verdict"))
}

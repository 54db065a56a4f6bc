// Package africastalking sends messages by SMS through Africa's Talking, a carrier with connections to Kenya's mobile
// networks (https://developers.africastalking.com/docs/sms/sending/bulk).
package africastalking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kivuko/notify"
)

// The addresses of the service.
const (
	Live    = "https://api.africastalking.com"
	Sandbox = "https://api.sandbox.africastalking.com"
)

const (
	path        = "/version1/messaging"
	sendTimeout = 20 * time.Second
	maxAnswer   = 64 << 10
)

// Config is an account.
type Config struct {
	BaseURL  string // Live, unless another is named
	Username string
	APIKey   string
	Sender   string // the registered sender id; empty: the account's default
}

// Sender sends SMS.
type Sender struct {
	config Config
	http   *http.Client
}

// New returns a sender of an account.
func New(c Config) *Sender {
	return &Sender{c, &http.Client{
		Timeout: sendTimeout,
		// A redirect would carry the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is what the service says about a message.
type answer struct {
	SMSMessageData struct {
		Recipients []struct {
			StatusCode int `json:"statusCode"`
		} `json:"Recipients"`
	} `json:"SMSMessageData"`
}

// Send gives a message to the service.
func (s *Sender) Send(ctx context.Context, m notify.Message) error {
	form := url.Values{"username": {s.config.Username}, "to": {"+" + m.To}, "message": {m.Text}}
	if s.config.Sender != "" {
		form.Set("from", s.config.Sender)
	}
	base := s.config.BaseURL
	if base == "" {
		base = Live
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(base, "/")+path, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the address of the SMS service is none")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("apiKey", s.config.APIKey)
	got, err := s.http.Do(r)
	if err != nil {
		return errors.New("the SMS service can't be reached")
	}
	defer func() { _ = got.Body.Close() }() // everything of worth was read before
	if got.StatusCode != http.StatusCreated && got.StatusCode != http.StatusOK {
		return fmt.Errorf("the SMS service answered %d", got.StatusCode)
	}
	var a answer
	if err := json.NewDecoder(io.LimitReader(got.Body, maxAnswer)).Decode(&a); err != nil || len(a.SMSMessageData.Recipients) != 1 {
		// Without a recipient the service took no message: the sender id or the account is wrong.
		return errors.New("the SMS service took no message")
	}
	return judge(a.SMSMessageData.Recipients[0].StatusCode)
}

// The service's codes of one recipient.
const (
	codeProcessed         = 100
	codeSent              = 101
	codeQueued            = 102
	codeInvalidNumber     = 403
	codeUnsupportedNumber = 404
	codeBlocked           = 406 // the recipient has opted out
	codeDoNotDisturb      = 409
)

func judge(code int) error {
	switch code {
	case codeProcessed, codeSent, codeQueued:
		return nil
	case codeInvalidNumber, codeUnsupportedNumber, codeBlocked, codeDoNotDisturb:
		return fmt.Errorf("%w: the SMS service's code is %d", notify.ErrRefused, code)
	}
	return fmt.Errorf("the SMS service's code is %d", code) // our balance, its gateway, a risk hold: a later attempt may pass
}

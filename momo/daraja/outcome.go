package daraja

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"kivuko/exchange"
)

// verdict is what an error of the gateway means for the request.
type verdict int

const (
	verdictUnknown   verdict = iota // the operator may have the request
	verdictRefused                  // nothing was queued, and trying again changes nothing
	verdictLater                    // nothing was queued; trying later may work
	verdictConfig                   // nothing was queued, because of our configuration: alarm
	verdictThrottled                // nothing was queued, because our quota is used up: later, and alarm
	verdictToken                    // the access token was refused before the request was read
	verdictDone                     // the requested object already exists
)

// gatewayRule is one row of the catalogue of error envelopes. A row applies to its endpoints (to all when it has none) and
// to messages that contain its text, in any case. The first matching row counts; without one the outcome is unknown.
type gatewayRule struct {
	codes   []string
	at      []endpoint
	message string
	verdict verdict
	class   exchange.OutcomeClass // of the refusal
}

// Throttling happens before a prompt reaches the payment system, so there it is a refusal. For payouts even that is unknown:
// the attempt is sent again under the same id, or its status is queried.
var gatewayRules = []gatewayRule{
	// Portal, error tables of Express, C2B and B2C; production note: HTTP 404 carries token errors too.
	{codes: []string{"400.003.01", "401.002.01", "401.003.01", "404.001.03", "404.001.04"}, verdict: verdictToken, class: exchange.ClassCredential},
	// Production note: a token that is older than a product of the application fails with 401 until it is renewed. When a
	// new one fails too, the product is not enabled.
	{codes: []string{"401"}, verdict: verdictToken, class: exchange.ClassCredential},
	// Portal, "Bad Request - Invalid <Field>". A payer's number is the payer's error; the rest is ours.
	{codes: []string{"400.002.02"}, message: "Invalid PhoneNumber", verdict: verdictRefused, class: exchange.ClassConfig},
	{codes: []string{"400.002.02"}, message: "Invalid PartyA", at: []endpoint{endpointPrompt}, verdict: verdictRefused, class: exchange.ClassConfig},
	{codes: []string{"400.002.02"}, message: "Invalid PartyB", at: []endpoint{endpointPayout}, verdict: verdictRefused, class: exchange.ClassConfig},
	{codes: []string{"400.002.02", "400.002.05", "400.003.02"}, verdict: verdictConfig, class: exchange.ClassConfig},
	// Production: not entitled to the product, or our address is not on the shortcode's list.
	{codes: []string{"403.002.1001"}, verdict: verdictConfig, class: exchange.ClassCredential},
	// Portal: resource not found, method not allowed.
	{codes: []string{"404.001.01", "404.002.01", "404.003.01", "405.001"}, verdict: verdictConfig, class: exchange.ClassConfig},
	// Portal, Express: five messages under one code. A query with this code has no result, like the unknown of the last row.
	{codes: []string{"500.001.1001"}, at: []endpoint{endpointPrompt}, message: "Merchant does not exist", verdict: verdictConfig, class: exchange.ClassConfig},
	{codes: []string{"500.001.1001"}, at: []endpoint{endpointPrompt}, message: "Wrong credentials", verdict: verdictConfig, class: exchange.ClassConfig},
	{codes: []string{"500.001.1001"}, at: []endpoint{endpointPrompt}, message: "Unable to lock subscriber", verdict: verdictLater, class: exchange.ClassBusy},
	// Portal, B2C: an earlier submission of the same attempt arrived. The same code with "System internal error."
	// (gathuku/laravel_mpesa#21) means nothing.
	{codes: []string{"500.002.1001"}, at: []endpoint{endpointPayout}, message: "Duplicate OriginatorConversationID", verdict: verdictDone},
	// Production: addresses are registered once; this is the response to a second registration.
	{codes: []string{"500.003.1001"}, at: []endpoint{endpointRegister}, message: "already registered", verdict: verdictDone},
	{codes: []string{"500.003.1001"}, at: []endpoint{endpointRegister}, message: "Duplicate notification info", verdict: verdictDone},
	// Portal: spike arrest or busy, quota, maintenance.
	{codes: []string{"500.003.02", "00.002.1001"}, at: promptAndQuestions, verdict: verdictLater, class: exchange.ClassBusy},
	{codes: []string{"500.003.03"}, at: promptAndQuestions, verdict: verdictThrottled, class: exchange.ClassBusy},
}

// promptAndQuestions are the endpoints that do not move our own money.
var promptAndQuestions = []endpoint{
	endpointPrompt, endpointPromptQuery, endpointStatus, endpointBalance, endpointRegister,
	endpointPullRegister, endpointPull, endpointPayee,
}

// ruleFor finds the row for an error envelope; without one the verdict is unknown.
func ruleFor(at endpoint, code, message string) gatewayRule {
	message = strings.ToLower(message)
	for _, rule := range gatewayRules {
		if slices.Contains(rule.codes, code) &&
			(len(rule.at) == 0 || slices.Contains(rule.at, at)) &&
			strings.Contains(message, strings.ToLower(rule.message)) {
			return rule
		}
	}
	return gatewayRule{}
}

// turnsTokenDown reports whether a response refuses only the token. A bare 401 does too: gateways send it without a body.
func turnsTokenDown(r reply) bool {
	e := r.envelope()
	if e.ErrorCode == "" {
		return r.status == http.StatusUnauthorized
	}
	return ruleFor("", e.ErrorCode.text(), e.ErrorMessage.text()).verdict == verdictToken
}

// ackCode is the code of an acknowledgement: the request was queued.
const ackCode = "0"

// submission classifies the outcome of a request for money that was not acknowledged.
func (c *Client) submission(at endpoint, r reply, err error) exchange.Submission {
	if err != nil {
		return c.unanswered(err)
	}
	e := r.envelope()
	code, text := cut(e.ErrorCode.text(), maxCode), c.redact(e.ErrorMessage.text())
	rule := ruleFor(at, code, e.ErrorMessage.text())
	refused := exchange.Submission{State: exchange.Refused, Code: code, Class: rule.class, Text: text}
	if code == "" && r.status == http.StatusUnauthorized {
		refused.Code, refused.Class, refused.Transient, refused.Config = "401", exchange.ClassCredential, true, true
		return refused
	}
	switch rule.verdict {
	case verdictRefused:
	case verdictLater:
		refused.Transient = true
	case verdictConfig:
		refused.Config = true
	case verdictThrottled, verdictToken:
		refused.Transient, refused.Config = true, true
	case verdictDone:
		return exchange.Submission{State: exchange.Accepted, Code: code, Text: text}
	case verdictUnknown:
		if code == "" {
			code, text = cut(e.ResponseCode.text(), maxCode), c.redact(e.ResponseDescription.text())
		}
		return exchange.Submission{
			State: exchange.Unknown, Code: code, Text: text,
			Cause: fmt.Errorf("%s: status %d with a response that is not in the catalogue (code %q)", at, r.status, code),
		}
	}
	return refused
}

// unanswered classifies a request without a response. One that was certainly not sent is refused for now; any other is
// unknown.
func (c *Client) unanswered(err error) exchange.Submission {
	s := exchange.Submission{State: exchange.Unknown, Text: c.redact(err.Error()), Cause: err}
	token, isToken := errors.AsType[*tokenError](err)
	local, isLocal := errors.AsType[*notSentError](err)
	switch {
	case isToken:
		s.State, s.Code, s.Class, s.Transient, s.Config = exchange.Refused, "token", exchange.ClassBusy, true, token.config
		if token.config { // the consumer key is refused, not the connection
			s.Code, s.Class = "token_refused", exchange.ClassCredential
		}
	case isLocal:
		s.State, s.Code, s.Class, s.Transient, s.Config = exchange.Refused, "not_sent", exchange.ClassBusy, !local.config, local.config
	}
	return s
}

// codeInvalid is the code of a request that was not sent because it breaks a rule of the operator.
const codeInvalid = "invalid"

// invalid refuses a request before sending it. The text names the field and the rule.
func invalid(format string, args ...any) exchange.Submission {
	return exchange.Submission{State: exchange.Refused, Code: codeInvalid, Class: exchange.ClassConfig, Text: fmt.Sprintf(format, args...)}
}

// noAnswer is the observation of a source that could not be reached.
func (c *Client) noAnswer(at endpoint, r reply, err error) exchange.Observation {
	s := c.submission(at, r, err)
	return exchange.Observation{
		State: exchange.SeenNoAnswer, Source: exchange.SourceQuery,
		Code: s.Code, Text: s.Text, Config: s.Config, Transient: s.State == exchange.Refused && s.Transient,
	}
}

package daraja

import (
	"context"
	"fmt"

	"kivuko/exchange"
)

// promptQuery asks for the outcome of a prompt (portal, Express Query). The response is immediate and has neither amount nor
// receipt.
type promptQuery struct {
	BusinessShortCode int64  `json:"BusinessShortCode"`
	Password          string `json:"Password"`
	Timestamp         string `json:"Timestamp"`
	CheckoutRequestID string `json:"CheckoutRequestID"`
}

type promptQueryAnswer struct {
	ErrorCode         flexString `json:"errorCode"`
	MerchantRequestID flexString `json:"MerchantRequestID"`
	CheckoutRequestID flexString `json:"CheckoutRequestID"`
	ResultCode        flexString `json:"ResultCode"`
	ResultDesc        flexString `json:"ResultDesc"`
}

// Resolve asks the operator for the outcome of an attempt.
//
// For a collection the response is immediate, without amount and receipt. Without a CheckoutRequestID no query is possible,
// and the result is NoAnswer with code "invalid". The operator's 500.001.1001 is NoAnswer too: it was seen for pending,
// finished and unknown prompts alike.
//
// For a payout the response comes later: the observation is pending with a Ticket, and the result arrives at the attempt's
// address of kind "status" (or at the standing token's, if the attempt's token is gone).
func (c *Client) Resolve(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation {
	if a.Direction != exchange.Collection {
		return c.QueryStatus(ctx, a)
	}
	if a.CheckoutRequestID == "" {
		return unasked("checkout request id: not known, so no query is possible")
	}
	password, stamp := c.password()
	r, err := c.post(ctx, endpointPromptQuery, promptQuery{
		BusinessShortCode: c.shortcode,
		Password:          password,
		Timestamp:         stamp,
		CheckoutRequestID: a.CheckoutRequestID,
	})
	var answer promptQueryAnswer
	if err != nil || decode(r.body, &answer) != nil || answer.ErrorCode != "" || answer.ResultCode == "" {
		return c.noAnswer(endpointPromptQuery, r, err)
	}
	if answer.CheckoutRequestID.text() != a.CheckoutRequestID {
		return unasked("the response is about another checkout request id")
	}
	o := exchange.Observation{
		Source: exchange.SourceQuery,
		Code:   answer.ResultCode.text(),
		Text:   c.redact(answer.ResultDesc.text()),
		Refs: exchange.Refs{
			MerchantRequestID: answer.MerchantRequestID.text(),
			CheckoutRequestID: answer.CheckoutRequestID.text(),
		},
	}
	resultOf(promptResults, o.Code).apply(&o)
	return tidy(o)
}

// statusQuery asks for the outcome of a transaction (portal, Transaction Status): by receipt, or by our id under the key of
// Config.StatusKey.
type statusQuery struct {
	Initiator                string `json:"Initiator"`
	SecurityCredential       string `json:"SecurityCredential"`
	CommandID                string `json:"CommandID"`
	TransactionID            string `json:"TransactionID,omitempty"`
	OriginalConversationID   string `json:"OriginalConversationID,omitempty"`
	OriginatorConversationID string `json:"OriginatorConversationID,omitempty"`
	PartyA                   string `json:"PartyA"`
	IdentifierType           string `json:"IdentifierType"`
	ResultURL                string `json:"ResultURL"`
	QueueTimeOutURL          string `json:"QueueTimeOutURL"`
	Remarks                  string `json:"Remarks"`
	Occasion                 string `json:"Occasion"`
}

// QueryStatus asks for all details of a transaction, amount and parties included: of a payout by its id, of anything else by
// its receipt. The result comes later, as for payouts in Resolve.
func (c *Client) QueryStatus(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation {
	if err := c.initiatorKnown(); err != nil {
		o := unasked("%v", err)
		o.Config = true
		return o
	}
	callback, err := c.address(c.token(a.StatusToken), exchange.CallbackStatus)
	if err != nil {
		return unasked("%v", err)
	}
	q := statusQuery{
		Initiator:          c.cfg.InitiatorName,
		SecurityCredential: c.credential,
		CommandID:          "TransactionStatusQuery",
		PartyA:             c.cfg.Shortcode,
		IdentifierType:     "4", // a shortcode
		ResultURL:          callback,
		QueueTimeOutURL:    callback,
		Remarks:            "Status",
		Occasion:           "Status",
	}
	if a.Direction == exchange.Payout {
		q.PartyA = c.cfg.PayoutShortcode
	}
	switch {
	case a.Receipt != "" && !validReceipt(a.Receipt):
		return unasked("receipt: must have 1 to %d printable characters without spaces", maxReceipt)
	case a.Receipt != "":
		q.TransactionID = a.Receipt
	case a.Direction != exchange.Payout:
		return unasked("receipt: not known, and a collection can't be queried by an id of ours")
	case c.cfg.StatusKey == OriginatorConversationID:
		q.OriginatorConversationID = a.ID.String()
	default:
		q.OriginalConversationID = a.ID.String()
	}
	return c.askStatus(ctx, q)
}

// askStatus sends a status query. Its ticket is the operator's id of the query.
func (c *Client) askStatus(ctx context.Context, q statusQuery) exchange.Observation {
	r, err := c.post(ctx, endpointStatus, q)
	s := c.acknowledged(endpointStatus, r, err)
	if s.State != exchange.Accepted || s.Refs.ConversationID == "" {
		return c.noAnswer(endpointStatus, r, err)
	}
	return exchange.Observation{
		State: exchange.SeenPending, Source: exchange.SourceQuery, Ticket: s.Refs.ConversationID,
	}
}

// unasked is the result when no query could be sent.
func unasked(format string, args ...any) exchange.Observation {
	return exchange.Observation{
		State: exchange.SeenNoAnswer, Source: exchange.SourceQuery, Code: codeInvalid, Text: fmt.Sprintf(format, args...),
	}
}

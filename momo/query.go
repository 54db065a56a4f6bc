package momo

import (
	"context"
	"fmt"

	"kivuko/exchange"
)

// promptQuery asks what became of a prompt (portal, Express Query). The answer comes at once and tells
// neither amount nor receipt.
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

// Resolve asks the operator what became of an attempt.
//
// A collection is answered at once, without amount and receipt; where its CheckoutRequestID was never
// learnt there is nothing to ask by, and the answer is NoAnswer with code "invalid". The operator's
// 500.001.1001 is NoAnswer too: it was seen for pending, finished and unheard-of prompts alike.
//
// A payout is answered later: the observation is pending with a Ticket, and what was learnt arrives at
// the attempt's address of kind "status" (or the standing token's, where the attempt's token is gone).
func (c *Client) Resolve(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation {
	if a.Direction != exchange.Collection {
		return c.QueryStatus(ctx, a)
	}
	if a.CheckoutRequestID == "" {
		return unasked("checkout request id: not known, so there is nothing to ask by")
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
		return c.unheard(endpointPromptQuery, r, err)
	}
	if answer.CheckoutRequestID.text() != a.CheckoutRequestID {
		return unasked("the answer is about another checkout request id")
	}
	o := exchange.Observation{
		Witness: exchange.WitnessQuery,
		Code:    answer.ResultCode.text(),
		Text:    c.redact(answer.ResultDesc.text()),
		Refs: exchange.Refs{
			MerchantRequestID: answer.MerchantRequestID.text(),
			CheckoutRequestID: answer.CheckoutRequestID.text(),
		},
	}
	resultOf(promptResults, o.Code).apply(&o)
	return tidy(o)
}

// statusQuery asks what became of a transaction (portal, Transaction Status): by receipt, or by our id under
// the key that Config.StatusKey names.
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

// QueryStatus asks for the full account of a transaction, amount and parties included: of a payout by its
// id, of anything that has a receipt by that. The answer comes later, as Resolve says of payouts.
func (c *Client) QueryStatus(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation {
	if err := c.initiatorKnown(); err != nil {
		o := unasked("%v", err)
		o.Config = true
		return o
	}
	callback, err := c.address(c.token(a), exchange.CallbackStatus)
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
		return unasked("receipt: not known, and a collection can't be asked for by an id of ours")
	case c.cfg.StatusKey == OriginatorConversationID:
		q.OriginatorConversationID = a.ID.String()
	default:
		q.OriginalConversationID = a.ID.String()
	}
	return c.askStatus(ctx, q)
}

// askStatus puts a status question. Its ticket is the operator's name of the question.
func (c *Client) askStatus(ctx context.Context, q statusQuery) exchange.Observation {
	r, err := c.post(ctx, endpointStatus, q)
	s := c.acknowledged(endpointStatus, r, err)
	if s.State != exchange.Accepted || s.Refs.ConversationID == "" {
		return c.unheard(endpointStatus, r, err)
	}
	return exchange.Observation{
		State: exchange.SeenPending, Witness: exchange.WitnessQuery, Ticket: s.Refs.ConversationID,
	}
}

// unasked is a question that could not be put.
func unasked(format string, args ...any) exchange.Observation {
	return exchange.Observation{
		State: exchange.SeenNoAnswer, Witness: exchange.WitnessQuery, Code: codeInvalid, Text: fmt.Sprintf(format, args...),
	}
}

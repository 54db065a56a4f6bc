package daraja

import (
	"context"
	"strconv"
	"strings"

	"kivuko/exchange"
)

// topUpRequest moves money from our paybill's working account to the utility account of the payout shortcode (portal, B2C
// Account Top Up). The operator accepts no id of ours: two requests are two movements.
type topUpRequest struct {
	Initiator              string `json:"Initiator"`
	SecurityCredential     string `json:"SecurityCredential"`
	CommandID              string `json:"CommandID"`
	SenderIdentifierType   string `json:"SenderIdentifierType"`
	RecieverIdentifierType string `json:"RecieverIdentifierType"` // spelt so on the wire
	Amount                 string `json:"Amount"`
	PartyA                 string `json:"PartyA"`
	PartyB                 string `json:"PartyB"`
	AccountReference       string `json:"AccountReference"`
	Remarks                string `json:"Remarks"`
	QueueTimeOutURL        string `json:"QueueTimeOutURL"`
	ResultURL              string `json:"ResultURL"`
}

// MoveFloat moves shillings from the working account to the utility account, which payouts leave from. The operator has no
// idempotency for it: submit a movement once and query an unknown outcome (QueryFloat); never submit it again. The result
// arrives at the movement's own address of kind "result". The API can't move the money back.
func (c *Client) MoveFloat(ctx context.Context, m exchange.FloatMove) exchange.Submission {
	if err := c.payoutsOffered(); err != nil {
		return exchange.Submission{State: exchange.Refused, Code: codeInvalid, Class: exchange.ClassConfig, Text: err.Error(), Config: true}
	}
	shillings, err := wholeShillings(m.Amount)
	if err != nil {
		return invalid("%v", err)
	}
	result, err := c.address(m.CallbackToken, exchange.CallbackResult)
	if err != nil {
		return invalid("%v", err)
	}
	timeout, err := c.address(m.CallbackToken, exchange.CallbackTimeout)
	if err != nil {
		return invalid("%v", err)
	}
	r, err := c.post(ctx, endpointFloat, topUpRequest{
		Initiator:              c.cfg.InitiatorName,
		SecurityCredential:     c.credential,
		CommandID:              "BusinessPayToBulk",
		SenderIdentifierType:   "4", // a shortcode
		RecieverIdentifierType: "4",
		Amount:                 strconv.FormatInt(shillings, 10),
		PartyA:                 c.cfg.Shortcode,
		PartyB:                 c.cfg.PayoutShortcode,
		AccountReference:       strings.ReplaceAll(m.ID.String(), "-", "")[:maxReference],
		Remarks:                "Float",
		QueueTimeOutURL:        timeout,
		ResultURL:              result,
	})
	return c.acknowledged(endpointFloat, r, err)
}

// QueryFloat asks for all details of a movement of float: by its receipt, or by the id that the operator gave to the
// request. The result arrives at the movement's address of kind "status". A movement can't be queried when both its
// acknowledgement and its result were lost.
func (c *Client) QueryFloat(ctx context.Context, m exchange.FloatMove) exchange.Observation {
	if err := c.initiatorKnown(); err != nil {
		o := unasked("%v", err)
		o.Config = true
		return o
	}
	callback, err := c.address(m.StatusToken, exchange.CallbackStatus)
	if err != nil {
		return unasked("%v", err)
	}
	q := statusQuery{
		Initiator: c.cfg.InitiatorName, SecurityCredential: c.credential, CommandID: "TransactionStatusQuery",
		PartyA: c.cfg.Shortcode, IdentifierType: "4", ResultURL: callback, QueueTimeOutURL: callback, Remarks: "Status", Occasion: "Status",
	}
	switch {
	case m.Receipt != "" && validReceipt(m.Receipt):
		q.TransactionID = m.Receipt
	case m.OriginatorID == "":
		return unasked("originator conversation id: not known, so no query is possible")
	case c.cfg.StatusKey == OriginatorConversationID:
		q.OriginatorConversationID = m.OriginatorID
	default:
		q.OriginalConversationID = m.OriginatorID
	}
	return c.askStatus(ctx, q)
}

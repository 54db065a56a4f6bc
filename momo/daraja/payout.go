package daraja

import (
	"context"
	"errors"
	"strconv"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// payoutRequest requests a payment to a person (portal, B2C v3). Version 1 has no id of ours and so no idempotency; Kivuko
// never falls back to it.
type payoutRequest struct {
	OriginatorConversationID string `json:"OriginatorConversationID"`
	InitiatorName            string `json:"InitiatorName"`
	SecurityCredential       string `json:"SecurityCredential"`
	CommandID                string `json:"CommandID"`
	Amount                   int64  `json:"Amount"`
	PartyA                   string `json:"PartyA"`
	PartyB                   string `json:"PartyB"`
	Remarks                  string `json:"Remarks"`
	QueueTimeOutURL          string `json:"QueueTimeOutURL"`
	ResultURL                string `json:"ResultURL"`
	Occasion                 string `json:"Occassion"` //nolint:misspell // It is spelt so on the wire.
}

// conversationAck acknowledges a request whose result comes later.
type conversationAck struct {
	ConversationID           flexString `json:"ConversationID"`
	OriginatorConversationID flexString `json:"OriginatorConversationID"`
	ResponseCode             flexString `json:"ResponseCode"`
}

// payoutRemark describes our payouts in the operator's records; 2 to 100 characters are required.
const payoutRemark = "Payout"

// SubmitPayout sends money to a person. The attempt's id is the operator's idempotency key, so the same attempt may be
// submitted again after an unknown outcome. An attempt that the operator already has is Accepted with code 500.002.1001 and
// without a ConversationID; query its status then.
//
// An attempt that was read back from the database has no token. Its result then arrives at the standing token's address,
// where the OriginatorConversationID identifies it. An attempt that breaks a rule is refused with code "invalid" and not
// sent.
func (c *Client) SubmitPayout(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	if err := c.payoutsOffered(); err != nil {
		return exchange.Submission{State: exchange.Refused, Code: codeInvalid, Class: exchange.ClassConfig, Text: err.Error(), Config: true}
	}
	limits := c.Capabilities()
	amount, err := checkAttempt(a, exchange.Payout, limits.MinPayout, limits.MaxPayout)
	if err != nil {
		return invalid("%v", err)
	}
	result, err := c.address(c.token(a.CallbackToken), exchange.CallbackResult)
	if err != nil {
		return invalid("%v", err)
	}
	timeout, err := c.address(c.token(a.CallbackToken), exchange.CallbackTimeout)
	if err != nil {
		return invalid("%v", err)
	}
	if len(a.Reference) > maxReference || !printable(a.Reference) {
		return invalid("reference: must have at most %d printable ASCII characters", maxReference)
	}
	if c.cfg.CheckPayees {
		if payee, err := c.CheckPayee(ctx, a.Phone); err == nil && !payee.Known {
			return exchange.Submission{State: exchange.Refused, Code: codeUnregistered, Class: exchange.ClassPayee, Text: "the operator reports that the number is not registered"}
		}
	}
	r, err := c.post(ctx, endpointPayout, payoutRequest{
		OriginatorConversationID: a.ID.String(),
		InitiatorName:            c.cfg.InitiatorName,
		SecurityCredential:       c.credential,
		CommandID:                "BusinessPayment",
		Amount:                   amount,
		PartyA:                   c.cfg.PayoutShortcode,
		PartyB:                   a.Phone.Digits(),
		Remarks:                  payoutRemark,
		QueueTimeOutURL:          timeout,
		ResultURL:                result,
		Occasion:                 a.Reference,
	})
	s := c.acknowledged(endpointPayout, r, err)
	if id := s.Refs.OriginatorConversationID; id != "" && id != a.ID.String() {
		// A gateway that gave the payout an id of its own ignored our idempotency key. The payout may be under way, so it is
		// neither accepted under our id nor refused.
		s.State = exchange.Unknown
		s.Cause = errors.New("the acknowledgement names another originator conversation id than ours")
	}
	return s
}

// acknowledged reads the acknowledgement of a request whose result comes later.
func (c *Client) acknowledged(at endpoint, r reply, err error) exchange.Submission {
	var ack conversationAck
	if err == nil && decode(r.body, &ack) == nil && ack.ResponseCode.text() == ackCode && ack.ConversationID != "" {
		return exchange.Submission{State: exchange.Accepted, Refs: tidyRefs(exchange.Refs{
			ConversationID:           ack.ConversationID.text(),
			OriginatorConversationID: ack.OriginatorConversationID.text(),
		})}
	}
	return c.submission(at, r, err)
}

// codeUnregistered is the operator's code for a payee that is not registered (portal, B2C).
const codeUnregistered = "2040"

func (c *Client) payoutsOffered() error {
	if c.cfg.PayoutShortcode == "" {
		return errors.New("payouts: not offered, because no payout shortcode is configured")
	}
	return nil
}

// reversalRequest reverses a collection (portal, Reversal). Payouts can't be reversed.
type reversalRequest struct {
	Initiator              string `json:"Initiator"`
	SecurityCredential     string `json:"SecurityCredential"`
	CommandID              string `json:"CommandID"`
	TransactionID          string `json:"TransactionID"`
	Amount                 string `json:"Amount"`
	ReceiverParty          string `json:"ReceiverParty"`
	RecieverIdentifierType string `json:"RecieverIdentifierType"` // spelt so on the wire
	ResultURL              string `json:"ResultURL"`
	QueueTimeOutURL        string `json:"QueueTimeOutURL"`
	Remarks                string `json:"Remarks"`
	Occasion               string `json:"Occasion"`
}

// Reverse returns the collection with that receipt to its payer. The attempt a is the one that returns the money: its id and
// token belong to the reversal, and the outcome arrives at its address of kind "reversal" (the standing token's if it has
// none). It is safe to call twice: a collection is reversed once, and the second result has code R000001.
func (c *Client) Reverse(ctx context.Context, a exchange.PaymentAttempt, receipt string, amount money.Amount) exchange.Submission {
	if err := c.initiatorKnown(); err != nil {
		return exchange.Submission{State: exchange.Refused, Code: codeInvalid, Class: exchange.ClassConfig, Text: err.Error(), Config: true}
	}
	shillings, err := wholeShillings(amount)
	if err != nil {
		return invalid("%v", err)
	}
	if !validReceipt(receipt) {
		return invalid("receipt: must have 1 to %d printable characters without spaces", maxReceipt)
	}
	callback, err := c.address(c.token(a.CallbackToken), exchange.CallbackReversal)
	if err != nil {
		return invalid("%v", err)
	}
	r, err := c.post(ctx, endpointReversal, reversalRequest{
		Initiator:              c.cfg.InitiatorName,
		SecurityCredential:     c.credential,
		CommandID:              "TransactionReversal",
		TransactionID:          receipt,
		Amount:                 strconv.FormatInt(shillings, 10),
		ReceiverParty:          c.cfg.Shortcode,
		RecieverIdentifierType: "11",
		ResultURL:              callback,
		QueueTimeOutURL:        callback,
		Remarks:                "Reversal",
		Occasion:               "Reversal",
	})
	return c.acknowledged(endpointReversal, r, err)
}

func (c *Client) initiatorKnown() error {
	if c.cfg.InitiatorName == "" {
		return errors.New("initiator: not configured")
	}
	return nil
}

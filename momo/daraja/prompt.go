package daraja

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The kinds of prompt.
const (
	payBill  = "CustomerPayBillOnline"
	buyGoods = "CustomerBuyGoodsOnline"
)

// promptRequest requests a prompt on the payer's phone (portal, M-Pesa Express). Numbers are sent as JSON numbers: strings
// are reported to cause silent timeouts.
type promptRequest struct {
	BusinessShortCode int64       `json:"BusinessShortCode"`
	Password          string      `json:"Password"`
	Timestamp         string      `json:"Timestamp"`
	TransactionType   string      `json:"TransactionType"`
	Amount            int64       `json:"Amount"`
	PartyA            json.Number `json:"PartyA"`
	PartyB            int64       `json:"PartyB"`
	PhoneNumber       json.Number `json:"PhoneNumber"`
	CallBackURL       string      `json:"CallBackURL"`
	AccountReference  string      `json:"AccountReference"`
	TransactionDesc   string      `json:"TransactionDesc"`
}

// promptAck acknowledges a prompt. ResponseCode 0 means queued, not paid.
type promptAck struct {
	MerchantRequestID flexString `json:"MerchantRequestID"`
	CheckoutRequestID flexString `json:"CheckoutRequestID"`
	ResponseCode      flexString `json:"ResponseCode"`
}

// SubmitCollection sends a prompt to the payer's phone. Call it at most once per attempt: the operator has no idempotency
// here, and an unknown outcome may be a prompt on the phone. An attempt that breaks a rule is refused with code "invalid"
// and not sent.
func (c *Client) SubmitCollection(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	limits := c.Capabilities()
	amount, err := checkAttempt(a, exchange.Collection, limits.MinCollection, limits.MaxCollection)
	if err != nil {
		return invalid("%v", err)
	}
	if a.Reference == "" || len(a.Reference) > maxReference || !printable(a.Reference) {
		return invalid("reference: must have 1 to %d printable ASCII characters", maxReference)
	}
	callback, err := c.address(a.CallbackToken, exchange.CallbackResult)
	if err != nil {
		return invalid("%v", err)
	}
	kind := payBill
	if c.cfg.Till != "" {
		kind = buyGoods
	}
	password, stamp := c.password()
	r, err := c.post(ctx, endpointPrompt, promptRequest{
		BusinessShortCode: c.shortcode,
		Password:          password,
		Timestamp:         stamp,
		TransactionType:   kind,
		Amount:            amount,
		PartyA:            json.Number(a.Phone.Digits()),
		PartyB:            c.receiver,
		PhoneNumber:       json.Number(a.Phone.Digits()),
		CallBackURL:       callback,
		AccountReference:  a.Reference,
		TransactionDesc:   c.cfg.Description,
	})
	var ack promptAck
	if err == nil && decode(r.body, &ack) == nil && ack.ResponseCode.text() == ackCode && ack.CheckoutRequestID != "" {
		return exchange.Submission{State: exchange.Accepted, Refs: tidyRefs(exchange.Refs{
			MerchantRequestID: ack.MerchantRequestID.text(),
			CheckoutRequestID: ack.CheckoutRequestID.text(),
		})}
	}
	return c.submission(endpointPrompt, r, err)
}

// password proves knowledge of the passkey: shortcode, passkey and timestamp in base64 (portal). The timestamp must be
// exactly the request's.
func (c *Client) password() (password, stamp string) {
	stamp = c.cfg.Clock().In(eat).Format(layoutStamp)
	return base64.StdEncoding.EncodeToString([]byte(c.cfg.Shortcode + c.cfg.Passkey + stamp)), stamp
}

// checkAttempt checks what prompts and payouts have in common and returns the whole shillings.
func checkAttempt(a exchange.PaymentAttempt, want exchange.PaymentDirection, least, most money.Amount) (int64, error) {
	switch {
	case a.ID == [16]byte{}:
		return 0, errors.New("id: must not be empty")
	case a.Direction != want:
		return 0, fmt.Errorf("direction: must be %q", want)
	}
	if p, err := exchange.ParsePhone(a.Phone.Digits()); err != nil || p != a.Phone {
		return 0, errors.New("phone: must be 254 and nine digits")
	}
	shillings, err := wholeShillings(a.Amount)
	if err != nil {
		return 0, err
	}
	if a.Amount.Cmp(least) < 0 || a.Amount.Cmp(most) > 0 {
		return 0, fmt.Errorf("amount: must be from %s to %s KES", least.FloorWhole(), most.FloorWhole())
	}
	return shillings, nil
}

func wholeShillings(a money.Amount) (int64, error) {
	if a.Asset() != money.KES {
		return 0, errors.New("amount: must be in KES")
	}
	if !a.Positive() || !a.Equal(a.FloorWhole()) {
		return 0, errors.New("amount: must be whole shillings, without cents")
	}
	units := a.Decimal().BigInt()
	if !units.IsInt64() {
		return 0, errors.New("amount: has too many digits")
	}
	return units.Int64(), nil
}

package daraja

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kivuko/exchange"
)

// registerRequest tells the operator where to report payments to our number (portal, C2B v2).
type registerRequest struct {
	ShortCode       string `json:"ShortCode"`
	ResponseType    string `json:"ResponseType"`
	ConfirmationURL string `json:"ConfirmationURL"`
	ValidationURL   string `json:"ValidationURL"`
}

// RegisterC2B gives the operator the addresses for payments that payers start themselves. The operator accepts such a
// payment ("Completed") when the validation address does not respond in time, because an unmatched payment is better than a
// lost one. In production the registration is valid once and is changed only on the portal; registering again is no error.
func (c *Client) RegisterC2B(ctx context.Context) error {
	confirmationURL, err := c.address(c.cfg.StandingToken, exchange.CallbackConfirmation)
	if err != nil {
		return exchange.Errorf(exchange.CodeInvalid, "StandingToken: %v", err)
	}
	validationURL, err := c.address(c.cfg.StandingToken, exchange.CallbackValidation)
	if err != nil {
		return exchange.Errorf(exchange.CodeInvalid, "StandingToken: %v", err)
	}
	r, err := c.post(ctx, endpointRegister, registerRequest{
		ShortCode: c.cfg.Shortcode, ResponseType: "Completed",
		ConfirmationURL: confirmationURL, ValidationURL: validationURL,
	})
	if err == nil {
		if e := r.envelope(); e.ErrorCode == "" && e.ResponseCode.text() == ackCode {
			return nil
		}
	}
	return c.asError(endpointRegister, c.submission(endpointRegister, r, err))
}

// asError turns the outcome of a request that moves no money into an error: nil when it was accepted, Unavailable when
// trying again may help, Internal when our configuration is wrong.
func (c *Client) asError(at endpoint, s exchange.Submission) error {
	if s.State == exchange.Accepted {
		return nil
	}
	code := exchange.CodeInternal
	if s.Transient || s.State == exchange.Unknown {
		code = exchange.CodeUnavailable
	}
	return exchange.Wrap(code, s.Cause, "The mobile money operator did not accept %s (code %q: %s).", at, s.Code, s.Text)
}

// Codes of the statement service: registered or found, and already registered or nothing found.
const (
	pullDone    = "1000"
	pullAlready = "1001"
)

// RegisterPull enables the statement of our shortcode, once (portal, Pull Transactions). The nominated number is one of our
// telephones. Registering again is no error.
func (c *Client) RegisterPull(ctx context.Context, nominated exchange.Phone) error {
	callback, err := c.address(c.cfg.StandingToken, exchange.CallbackConfirmation)
	if err != nil {
		return exchange.Errorf(exchange.CodeInvalid, "StandingToken: %v", err)
	}
	if p, err := exchange.ParsePhone(nominated.Digits()); err != nil || p != nominated {
		return exchange.Errorf(exchange.CodeInvalid, "nominated number: must be 254 and nine digits")
	}
	r, err := c.post(ctx, endpointPullRegister, map[string]string{
		"ShortCode": c.cfg.Shortcode, "RequestType": "Pull",
		"NominatedNumber": nominated.Digits(), "CallBackURL": callback,
	})
	// The portal writes ResponseStatus; in production the key had a space in it.
	var answer struct {
		Status       flexString `json:"ResponseStatus"`
		SpacedStatus flexString `json:"Response Status"`
	}
	if err == nil && decode(r.body, &answer) == nil {
		switch answer.Status.text() + answer.SpacedStatus.text() {
		case pullDone, pullAlready:
			return nil
		}
	}
	return c.asError(endpointPullRegister, c.submission(endpointPullRegister, r, err))
}

// PullWindow is how far back the statement reaches (portal).
const PullWindow = 48 * time.Hour

// pullAnswer is a page of the statement. In production its rows are nested twice; both forms are supported.
type pullAnswer struct {
	ResponseCode flexString                    `json:"ResponseCode"`
	Response     oneOrMany[oneOrMany[pullRow]] `json:"Response"`
}

type pullRow struct {
	TransactionID   flexString `json:"transactionId"`
	Date            flexString `json:"trxDate"`
	MSISDN          flexString `json:"msisdn"`
	TransactionType flexString `json:"transactiontype"`
	BillReference   flexString `json:"billreference"`
	Amount          flexString `json:"amount"`
}

// Pull reads one page of the statement of payments to our number within a time window, starting with row offset. It returns
// the observations, the offset of the next page, and whether there may be one; stop when more is false. The statement has
// only collections of the last PullWindow. The error is CodeInvalid for an invalid window, Unavailable when trying again may
// help, Internal when our configuration is wrong.
func (c *Client) Pull(ctx context.Context, from, to time.Time, offset int) ([]exchange.Observation, int, bool, error) {
	switch {
	case offset < 0:
		return nil, 0, false, exchange.Errorf(exchange.CodeInvalid, "offset: must not be negative")
	case !from.Before(to):
		return nil, 0, false, exchange.Errorf(exchange.CodeInvalid, "from: must be before to")
	case from.Before(c.cfg.Clock().Add(-PullWindow)):
		return nil, 0, false, exchange.Errorf(exchange.CodeInvalid, "from: must be within the last %s", PullWindow)
	}
	r, err := c.post(ctx, endpointPull, map[string]string{
		"ShortCode":   c.cfg.Shortcode,
		"StartDate":   from.In(eat).Format(layoutStatement),
		"EndDate":     to.In(eat).Format(layoutStatement),
		"OffSetValue": strconv.Itoa(offset),
	})
	var page pullAnswer
	if err != nil || decode(r.body, &page) != nil || (page.ResponseCode.text() != pullDone && page.ResponseCode.text() != pullAlready) {
		return nil, 0, false, c.asError(endpointPull, c.submission(endpointPull, r, err))
	}
	var seen []exchange.Observation
	rows := 0
	for _, group := range page.Response {
		for _, row := range group {
			rows++
			if row == (pullRow{}) {
				continue // empty pages have had an empty row
			}
			seen = append(seen, row.observation())
		}
	}
	return seen, offset + rows, rows > 0, nil
}

// observation reads a row. A row that is not a payment to our number, or has no receipt, stays unknown.
func (row pullRow) observation() exchange.Observation {
	o := exchange.Observation{
		State:     exchange.SeenUnknown,
		Source:    exchange.SourceStatement,
		Code:      redact(row.TransactionType.text()),
		Receipt:   row.TransactionID.text(),
		Amount:    parseAmount(row.Amount.text()),
		Phone:     parsePhone(row.MSISDN.text()),
		PhoneHash: parsePhoneHash(row.MSISDN.text()),
		Reference: row.BillReference.text(),
		At:        parseTime(row.Date.text()),
	}
	if strings.HasPrefix(strings.ToLower(o.Code), "c2b") && validReceipt(o.Receipt) {
		o.State = exchange.SeenSucceeded
	}
	return tidy(o)
}

// Balance requests the balances of our accounts. The ticket is the id of the request; the result arrives at the standing
// token's address of kind "balance" and is read by ParseBalance.
func (c *Client) Balance(ctx context.Context) (ticket string, err error) {
	if err := c.initiatorKnown(); err != nil {
		return "", exchange.Errorf(exchange.CodeInvalid, "%v", err)
	}
	callback, err := c.address(c.cfg.StandingToken, exchange.CallbackBalance)
	if err != nil {
		return "", exchange.Errorf(exchange.CodeInvalid, "StandingToken: %v", err)
	}
	shortcode := c.cfg.PayoutShortcode
	if shortcode == "" {
		shortcode = c.cfg.Shortcode
	}
	r, err := c.post(ctx, endpointBalance, map[string]string{
		"Initiator": c.cfg.InitiatorName, "SecurityCredential": c.credential, "CommandID": "AccountBalance",
		"PartyA": shortcode, "IdentifierType": "4", "Remarks": "Balance",
		"QueueTimeOutURL": callback, "ResultURL": callback,
	})
	s := c.acknowledged(endpointBalance, r, err)
	if err := c.asError(endpointBalance, s); err != nil {
		return "", err
	}
	if s.Refs.ConversationID == "" {
		return "", fmt.Errorf("%s: the acknowledgement has no conversation id", endpointBalance)
	}
	return s.Refs.ConversationID, nil
}

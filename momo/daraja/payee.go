package daraja

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"kivuko/exchange"
)

// payeeRequest asks for the owner of a number before money is sent to it (portal, B2C Hakikisha). The gateway refuses it
// unless the operator has enabled the service for us.
type payeeRequest struct {
	Header struct {
		RequestID string `json:"requestID"`
		Timestamp string `json:"timestamp"` // seconds since 1970
	} `json:"header"`
	Body struct {
		MSISDN    string `json:"msisdn"`
		Shortcode string `json:"shortcode"`
	} `json:"body"`
}

type payeeAnswer struct {
	Header struct {
		Status flexString `json:"status"`
	} `json:"header"`
	Body struct {
		FirstName  flexString `json:"firstName"`
		MiddleName flexString `json:"middleName"`
		LastName   flexString `json:"lastName"`
		Message    flexString `json:"message"`
	} `json:"body"`
}

// maxPayeeName bounds each of the three names.
const maxPayeeName = 60

// CheckPayee asks the operator for the owner of a number: the first name in full, the others masked by the operator. The
// response is immediate. A number without an owner is a result (Known is false). The error is CodeUnavailable when trying
// again may help, CodeInternal when our configuration is wrong. Payouts may go on without a result: the operator refuses
// those to a number without an owner.
func (c *Client) CheckPayee(ctx context.Context, p exchange.Phone) (exchange.PayeeCheck, error) {
	if parsed, err := exchange.ParsePhone(p.Digits()); err != nil || parsed != p {
		return exchange.PayeeCheck{}, exchange.Errorf(exchange.CodeInvalid, "phone: must be 254 and nine digits")
	}
	if err := c.payoutsOffered(); err != nil {
		return exchange.PayeeCheck{}, exchange.Errorf(exchange.CodeInternal, "%v", err)
	}
	var q payeeRequest
	q.Header.RequestID, q.Header.Timestamp = rand.Text(), strconv.FormatInt(c.cfg.Clock().Unix(), 10)
	q.Body.MSISDN, q.Body.Shortcode = p.Digits(), c.cfg.PayoutShortcode
	r, err := c.post(ctx, endpointPayee, q)
	var answer payeeAnswer
	if err == nil && decode(r.body, &answer) == nil {
		switch {
		case answer.Header.Status.text() == "200" && answer.Body.FirstName != "":
			return exchange.PayeeCheck{Known: true, Name: payeeName(answer)}, nil
		case answer.Header.Status.text() == "400" && unregistered(answer.Body.Message.text()):
			return exchange.PayeeCheck{}, nil
		}
	}
	if err := c.asError(endpointPayee, c.submission(endpointPayee, r, err)); err != nil {
		return exchange.PayeeCheck{}, err
	}
	return exchange.PayeeCheck{}, exchange.Errorf(exchange.CodeUnavailable, "The operator's response about the payee can't be read.")
}

func payeeName(a payeeAnswer) string {
	var names []string
	for _, n := range []flexString{a.Body.FirstName, a.Body.MiddleName, a.Body.LastName} {
		if s := cut(n.text(), maxPayeeName); s != "" {
			names = append(names, s)
		}
	}
	return strings.Join(names, " ")
}

// unregistered recognises the operator's message for a number without an owner. Its code is that of any bad request.
func unregistered(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "not exist") || strings.Contains(message, "invalid phone")
}

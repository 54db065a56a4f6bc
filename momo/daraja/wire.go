package daraja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// eat is East Africa Time, UTC+3 without daylight saving. All the operator's times are in it, without a zone.
var eat = time.FixedZone("EAT", 3*60*60)

// The layouts of the operator's times.
const (
	layoutStamp     = "20060102150405"      // prompts, confirmations, transaction status
	layoutDotted    = "02.01.2006 15:04:05" // payout results
	layoutStatement = "2006-01-02 15:04:05" // the statement's window and rows
)

// flexString reads fields that the operator writes sometimes as a string and sometimes as a number: result codes,
// expires_in, telephone numbers, amounts. A number keeps its original digits.
type flexString string

// UnmarshalJSON accepts a string, a number, a boolean or null (which is empty).
func (f *flexString) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null":
		*f = ""
		return nil
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*f = flexString(s)
		return nil
	case b[0] == '{' || b[0] == '[':
		return errors.New("must be a string or a number")
	}
	*f = flexString(b)
	return nil
}

// text returns the value in a form that can be stored: valid UTF-8 without control characters or surrounding blanks.
func (f flexString) text() string { return clean(string(f)) }

// clean removes what a database can't store (NUL above all) and what breaks a log line. Payers type references freely, and
// anyone can post to our callback addresses.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSpace(s)
}

// cut returns the first n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// Limits of an observation's texts, above anything seen so far.
const (
	maxCode        = 40
	maxBillRef     = 64 // the portal's limit is 20
	maxProviderRef = 128
)

// tidy limits the external texts in an observation. It drops an invalid receipt.
func tidy(o exchange.Observation) exchange.Observation {
	o.Code = cut(o.Code, maxCode)
	o.Reference = cut(o.Reference, maxBillRef)
	o.Ticket = cut(o.Ticket, maxProviderRef)
	o.Refs = tidyRefs(o.Refs)
	if !validReceipt(o.Receipt) {
		o.Receipt = ""
	}
	return o
}

func tidyRefs(r exchange.Refs) exchange.Refs {
	return exchange.Refs{
		MerchantRequestID:        cut(r.MerchantRequestID, maxProviderRef),
		CheckoutRequestID:        cut(r.CheckoutRequestID, maxProviderRef),
		ConversationID:           cut(r.ConversationID, maxProviderRef),
		OriginatorConversationID: cut(r.OriginatorConversationID, maxProviderRef),
	}
}

// maxReceipt bounds a receipt of the operator, which has ten characters today.
const maxReceipt = 20

// validReceipt accepts more than was seen so far (upper-case letters and digits), so that payments with a new form of
// receipt are not lost.
func validReceipt(s string) bool {
	for _, r := range []byte(s) {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxReceipt
}

// oneOrMany reads a list that the operator writes as a bare object when it has a single element.
type oneOrMany[T any] []T

// UnmarshalJSON accepts an array, a single element, or null and "" (which are empty).
func (l *oneOrMany[T]) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || string(b) == "null" || string(b) == `""` {
		*l = nil
		return nil
	}
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]T)(l))
	}
	var one T
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*l = []T{one}
	return nil
}

// decode reads exactly one JSON value. Its targets have no interfaces and no floats, so that telephone numbers and amounts
// keep their digits. The error quotes nothing of the body.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return errors.New("is not the JSON that was expected")
	}
	return nil
}

// parseTime reads a time of the operator as UTC. An unreadable time is zero, because no decision about money depends on it.
func parseTime(s string) time.Time {
	s = strings.TrimSpace(s)
	for _, layout := range []string{layoutStamp, layoutDotted, layoutStatement} {
		if t, err := time.ParseInLocation(layout, s, eat); err == nil {
			return t.UTC()
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC()
	}
	return time.Time{}
}

// parseAmount reads shillings as the operator writes them: 1, 1.0, "5.00". An unreadable or negative amount has no asset, so
// it never equals an expected one.
func parseAmount(s string) money.Amount {
	whole, fraction, _ := strings.Cut(strings.TrimSpace(s), ".")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	a, err := money.Parse(money.KES, whole)
	if err != nil {
		return money.Amount{}
	}
	return a
}

// parseCharge reads the operator's charge: "Fee For B2C Payment|KES|22.40", or several with semicolons between. An
// unreadable charge has no asset.
func parseCharge(s string) money.Amount {
	sum := money.Amount{}
	for part := range strings.SplitSeq(strings.Trim(s, "; "), ";") {
		fields := strings.Split(part, "|")
		if len(fields) != 3 || strings.TrimSpace(fields[1]) != string(money.KES) {
			return money.Amount{}
		}
		charge := parseAmount(fields[2])
		switch {
		case charge.Asset() == "":
			return money.Amount{}
		case sum.Asset() == "":
			sum = charge
		default:
			sum = sum.Add(charge)
		}
	}
	return sum
}

// parseBalance reads an account's balance. It may be negative. Old samples have stray decimals, which are cut off and never
// rounded up.
func parseBalance(s string) (money.Amount, error) {
	digits, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(fraction) > int(money.KES.Scale()) {
		fraction = fraction[:money.KES.Scale()]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	a, err := money.Parse(money.KES, whole)
	if err != nil {
		return money.Amount{}, fmt.Errorf("balance %w", err)
	}
	if negative {
		a = a.Neg()
	}
	return a, nil
}

// parsePhone reads a number in the operator's own form, not a masked or hashed one.
func parsePhone(s string) exchange.Phone {
	p, err := exchange.ParsePhone(s)
	if err != nil {
		return ""
	}
	return p
}

// parsePhoneHash reads the SHA-256 that newer confirmations contain instead of the number.
func parsePhoneHash(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if !isHex64(s) {
		return ""
	}
	return s
}

func isHex64(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// partyPhone reads the number out of "254705912645 - NAME" and ignores the name.
func partyPhone(s string) exchange.Phone {
	number, _, _ := strings.Cut(s, " - ")
	return parsePhone(number)
}

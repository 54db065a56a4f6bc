package exchange

import (
	"time"

	"kivuko/exchange/money"
)

// FloatAccount is one of our accounts at a mobile money operator. Collections are credited to the
// working account; payouts leave the utility account. Available is what can be paid out.
type FloatAccount struct {
	Name      string       `json:"name"`
	Current   money.Amount `json:"current"`
	Available money.Amount `json:"available"`
	Reserved  money.Amount `json:"reserved"`
	Uncleared money.Amount `json:"uncleared"`
}

// FloatReport is the operator's answer to a question for our balances. Ticket names the question; a
// Code other than "0" says why there are no accounts in it.
type FloatReport struct {
	Ticket   string         `json:"ticket"`
	Code     string         `json:"code"`
	Text     string         `json:"text,omitempty"`
	Accounts []FloatAccount `json:"accounts,omitempty"`
	At       time.Time      `json:"at,omitzero"` // the operator's time, in UTC
}

package api

import (
	"net/http"

	"kivuko/exchange"
)

// wireSpent is the used part of limits.
type wireSpent struct {
	Day   string `json:"day"`
	Month string `json:"month"`
}

func spentWire(s exchange.Spent) wireSpent { return wireSpent{s.Day.String(), s.Month.String()} }

// wireOwnLimits is a caller's limits with what is used of each.
type wireOwnLimits struct {
	Own       limitsWire         `json:"own"`
	Effective limitsWire         `json:"effective"`
	Used      wireSpent          `json:"used"`
	Available limitsWire         `json:"available"`
	Merchant  *wireMerchantShare `json:"merchant"`
	Counts    []wireCount        `json:"counts"`
	Fees      []wireFees         `json:"network_fees"`
}

// wireMerchantShare is the limits that a subvendor shares with its merchant.
type wireMerchantShare struct {
	Effective limitsWire `json:"effective"`
	Used      wireSpent  `json:"used"`
}

// wireCount is a limit on the number of something.
type wireCount struct {
	Name string `json:"name"`
	Used int    `json:"used"`
	Most int    `json:"most"`
}

// wireFees is the limit on the fees of a network.
type wireFees struct {
	Network string `json:"network"`
	Asset   string `json:"asset"`
	Used    string `json:"used"`
	Most    string `json:"most"`
}

// myLimits answers with the caller's limits and what is used of each.
func (s *server) myLimits(c *call) error {
	o, err := s.Store.OwnLimits(c.ctx, c.user)
	if err != nil {
		return err
	}
	w := wireOwnLimits{
		Own: limitWire(o.Own), Effective: limitWire(o.Effective), Used: spentWire(o.Used), Available: limitWire(o.Left),
		Counts: each(o.Counts, func(l exchange.CountedLimit) wireCount { return wireCount{string(l.Name), l.Used, l.Most} }),
		Fees: each(o.Fees, func(f exchange.CountedFees) wireFees {
			return wireFees{string(f.Network), string(f.Most.Asset()), f.Used.String(), f.Most.String()}
		}),
	}
	if o.Merchant != nil {
		w.Merchant = &wireMerchantShare{limitWire(o.Merchant.Effective), spentWire(o.Merchant.Used)}
	}
	return c.json(http.StatusOK, w)
}

package main

import (
	"encoding/hex"
	"strings"
)

// MomoConfig is the mobile money operator's account of this deployment.
type MomoConfig struct {
	// The mobile money operator.
	Provider string `env:"PROVIDER" envDefault:"daraja" for:"api flows momo momo-register"`
	// The address of the operator's API. If the API process has it, `/readyz` shows whether it can be reached.
	BaseURL string `env:"BASE_URL" for:"api momo momo-register" need:"momo momo-register" production:"https"`
	// The key of our application at the operator.
	ConsumerKey string `env:"CONSUMER_KEY" for:"momo momo-register" need:"momo momo-register" secret:"true"`
	// The secret of our application at the operator.
	ConsumerSecret string `env:"CONSUMER_SECRET" for:"momo momo-register" need:"momo momo-register" secret:"true"`
	// The short code that customers pay to.
	Shortcode string `env:"SHORTCODE" for:"momo momo-register" need:"momo momo-register"`
	// The passkey that signs prompts of that short code.
	Passkey string `env:"PASSKEY" for:"momo momo-register" need:"momo momo-register" secret:"true"`
	// The short code that payouts and refunds are paid from.
	PayoutShortcode string `env:"PAYOUT_SHORTCODE" for:"momo" need:"momo"`
	// The operator's user that makes payouts.
	Initiator string `env:"INITIATOR" for:"momo" need:"momo"`
	// The initiator's password, encrypted for the operator.
	SecurityCredential string `env:"SECURITY_CREDENTIAL" for:"momo" need:"momo" secret:"true"`
	// 64 hexadecimal digits that the callback addresses of payouts are derived from. It must not change while payouts are open.
	CallbackKey HexKey `env:"CALLBACK_KEY" for:"momo" need:"momo" secret:"true"`
	// 64 hexadecimal digits in small letters: the token in the address of notices that belong to no single attempt. The API and
	// the queue `momo` need the same value. Without it neither notices of payments nor our balances arrive.
	StandingToken string `env:"STANDING_TOKEN" for:"api momo momo-register" need:"momo-register" production:"required" secret:"true"`
	// The address to which the operator sends its results.
	CallbackURL string `env:"CALLBACK_URL" envDefault:"http://127.0.0.1:8080/api/v1/callbacks/momo" for:"momo momo-register" need:"momo momo-register" production:"https"`
	// The operator is the sandbox, which moves no money.
	Development bool `env:"DEVELOPMENT" for:"momo momo-register" production:"off"`
	// Ask the operator for the name of a number's owner before a payout. The operator has to enable the product first.
	Hakikisha bool `env:"HAKIKISHA" for:"momo"`
	// Reject payments to our number that no order waits for. By default all are accepted, and an unmatched one becomes a payment
	// exception.
	RejectUnknown bool `env:"REJECT_UNKNOWN" for:"api"`
}

// checkStandingToken checks the token of the addresses that belong to no attempt. The workers give it to the operator and
// the API recognises notices by it, so both must have it.
func (c Config) checkStandingToken(n *need) {
	token := c.Momo.StandingToken
	_, err := hex.DecodeString(token)
	n.rule(token == "" || (err == nil && len(token) == 64 && token == strings.ToLower(token)), "KIVUKO_MOMO_STANDING_TOKEN must be 64 hexadecimal digits in small letters")
	n.rule(c.Mode != Production || token != hex.EncodeToString(developmentKeys()["standing"]), "KIVUKO_MOMO_STANDING_TOKEN is a development key")
}

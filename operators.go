package main

import (
	"fmt"
	"strings"

	"kivuko/momo"
	"kivuko/momo/daraja"
)

// operator is a mobile money operator that this build knows.
type operator struct {
	name    string // on payments and on their breaker
	notices momo.Notices
	// open makes the client, for the processes that know the operator's secrets. It does not call the operator.
	open func(MomoConfig) (momo.Operator, error)
}

// operators is the table of mobile money operators. A deployment works with one of them. Each driver is a folder of momo/.
var operators = []operator{
	{daraja.Name, daraja.Notices{}, openDaraja},
}

// operator returns the deployment's mobile money operator.
func (c Config) operator() (operator, error) {
	var names []string
	for _, o := range operators {
		if o.name == c.Momo.Provider {
			return o, nil
		}
		names = append(names, o.name)
	}
	return operator{}, fmt.Errorf("KIVUKO_MOMO_PROVIDER must be one of: %s", strings.Join(names, ", "))
}

// openOperator makes the client of the deployment's operator.
func (c Config) openOperator() (momo.Operator, error) {
	o, err := c.operator()
	if err != nil {
		return nil, err
	}
	return o.open(c.Momo)
}

// openDaraja makes a client of Daraja.
func openDaraja(m MomoConfig) (momo.Operator, error) {
	client, err := daraja.New(daraja.Config{
		BaseURL: m.BaseURL, ConsumerKey: m.ConsumerKey, ConsumerSecret: m.ConsumerSecret, Shortcode: m.Shortcode,
		Passkey: m.Passkey, PayoutShortcode: m.PayoutShortcode, InitiatorName: m.Initiator,
		SecurityCredential: m.SecurityCredential, CallbackBase: m.CallbackURL, StandingToken: m.StandingToken,
		CheckPayees: m.Hakikisha,
	})
	if err != nil {
		return nil, err // not the typed nil
	}
	return client, nil
}

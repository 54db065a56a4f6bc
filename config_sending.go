package main

import (
	"fmt"
	"time"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// SendingConfig is how payments are sent on every network.
type SendingConfig struct {
	// How long the transaction with the next nonce may wait for a block before its fee is raised.
	StuckTimeout time.Duration `env:"STUCK_TIMEOUT" envDefault:"2m" for:"chain"`
	// The minimum amount of a top-up for a sender without native coin. More than a payment costs lets the next ones go without a
	// top-up, and stays in each wallet. A coin that is in neither list gets no top-ups.
	TopUpFloors map[string]string `env:"TOP_UP_FLOORS" envDefault:"ETH:0.004,TRX:1" for:"chain"`
	// The maximum amount of one top-up.
	TopUpCaps map[string]string `env:"TOP_UP_CAPS" envDefault:"ETH:0.05,TRX:300" for:"chain"`
	// How many top-ups one payment may have.
	TopUpLimit int `env:"TOP_UP_LIMIT" envDefault:"3" for:"chain"`
}

// checkSending refuses limits with which no money or unlimited fees could be sent.
func (c Config) checkSending(n *need) {
	n.rule(c.Sending.StuckTimeout > 0, "KIVUKO_SENDING_STUCK_TIMEOUT must be above zero")
	n.rule(c.Sending.TopUpLimit > 0, "KIVUKO_SENDING_TOP_UP_LIMIT must be above zero")
	for _, net := range exchange.Networks() {
		if _, err := c.gas(net); err != nil {
			n.problems = append(n.problems, err.Error())
		}
	}
}

// gas returns what the house's gas wallet of a network may send.
func (c Config) gas(n exchange.Network) (activities.GasPolicy, error) {
	native := n.NativeCoin()
	policy := activities.GasPolicy{Limit: c.Sending.TopUpLimit}
	for _, side := range []struct {
		variable string
		list     map[string]string
		to       *money.Amount
	}{
		{"KIVUKO_SENDING_TOP_UP_FLOORS", c.Sending.TopUpFloors, &policy.Floor},
		{"KIVUKO_SENDING_TOP_UP_CAPS", c.Sending.TopUpCaps, &policy.Cap},
	} {
		text, ok := side.list[string(native)]
		if !ok {
			continue
		}
		amount, err := money.Parse(native, text)
		if err != nil || !amount.Positive() {
			return policy, fmt.Errorf("%s: the amount of %s must be a decimal above zero", side.variable, native)
		}
		*side.to = amount
	}
	if (policy.Floor.Asset() == "") != (policy.Cap.Asset() == "") {
		return policy, fmt.Errorf("KIVUKO_SENDING_TOP_UP_FLOORS and KIVUKO_SENDING_TOP_UP_CAPS must both name %s, or neither", native)
	}
	if policy.Cap.Asset() != "" && policy.Floor.Cmp(policy.Cap) > 0 {
		return policy, fmt.Errorf("KIVUKO_SENDING_TOP_UP_CAPS: the cap of %s must not be below its floor", native)
	}
	return policy, nil
}

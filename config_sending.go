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
	// How many top-ups one run of `GasAhead` makes on a network, of wallets that will soon pay. The database has bounds of its own
	// (`gas_policy`). With 0 none are made: each payment that lacks gas gets a top-up of its own.
	AheadLimit int `env:"AHEAD_LIMIT" envDefault:"20" for:"chain"`
	// For how many payments the gas of a wallet with an active offer suffices. That of every other wallet suffices for one.
	AheadPayments int `env:"AHEAD_PAYMENTS" envDefault:"2" for:"chain"`
	// The minimum amount of a top-up ahead of need.
	AheadFloors map[string]string `env:"AHEAD_FLOORS" envDefault:"ETH:0.0005,TRX:0.5" for:"chain"`
	// The maximum amount of a top-up ahead of need. A wallet whose next payment costs more gets none.
	AheadCaps map[string]string `env:"AHEAD_CAPS" envDefault:"ETH:0.05,TRX:75" for:"chain"`
}

// checkSending refuses limits with which no money or unlimited fees could be sent.
func (c Config) checkSending(n *need) {
	n.rule(c.Sending.StuckTimeout > 0, "KIVUKO_SENDING_STUCK_TIMEOUT must be above zero")
	n.rule(c.Sending.TopUpLimit > 0, "KIVUKO_SENDING_TOP_UP_LIMIT must be above zero")
	n.rule(c.Sending.AheadLimit >= 0 && c.Sending.AheadLimit <= maxAheadLimit, fmt.Sprintf("KIVUKO_SENDING_AHEAD_LIMIT must be between 0 and %d", maxAheadLimit))
	n.rule(c.Sending.AheadPayments > 0 && c.Sending.AheadPayments <= maxAheadPayments,
		fmt.Sprintf("KIVUKO_SENDING_AHEAD_PAYMENTS must be between 1 and %d", maxAheadPayments))
	for _, net := range exchange.Networks() {
		_, err := c.gas(net)
		if err == nil {
			_, err = c.gasAhead(net)
		}
		if err != nil {
			n.problems = append(n.problems, err.Error())
		}
	}
}

// Bounds of gas ahead of need: a run has a minute, and what is not used stays in each wallet.
const (
	maxAheadLimit    = 100
	maxAheadPayments = 10
)

// gas returns what the house's gas wallet of a network may send.
func (c Config) gas(n exchange.Network) (activities.GasPolicy, error) {
	floor, most, err := between(n, "KIVUKO_SENDING_TOP_UP", c.Sending.TopUpFloors, c.Sending.TopUpCaps)
	return activities.GasPolicy{Limit: c.Sending.TopUpLimit, Floor: floor, Cap: most}, err
}

// gasAhead returns what it may send before it is needed. A network whose coin is in neither list gets nothing ahead of need.
func (c Config) gasAhead(n exchange.Network) (activities.GasAheadPolicy, error) {
	floor, most, err := between(n, "KIVUKO_SENDING_AHEAD", c.Sending.AheadFloors, c.Sending.AheadCaps)
	p := activities.GasAheadPolicy{Floor: floor, Cap: most, Payments: c.Sending.AheadPayments, Limit: c.Sending.AheadLimit, Floats: n == exchange.Ethereum}
	if most.Asset() == "" {
		p.Limit = 0
	}
	return p, err
}

// between reads the least and the most of a top-up from the lists of two variables; empty amounts where the network's coin is in neither.
func between(n exchange.Network, variables string, floors, caps map[string]string) (floor, most money.Amount, err error) {
	native := n.NativeCoin()
	for _, side := range []struct {
		variable string
		list     map[string]string
		to       *money.Amount
	}{
		{variables + "_FLOORS", floors, &floor},
		{variables + "_CAPS", caps, &most},
	} {
		text, ok := side.list[string(native)]
		if !ok {
			continue
		}
		amount, err := money.Parse(native, text)
		if err != nil || !amount.Positive() {
			return floor, most, fmt.Errorf("%s: the amount of %s must be a decimal above zero", side.variable, native)
		}
		*side.to = amount
	}
	if (floor.Asset() == "") != (most.Asset() == "") {
		return floor, most, fmt.Errorf("%s_FLOORS and %s_CAPS must both name %s, or neither", variables, variables, native)
	}
	if most.Asset() != "" && floor.Cmp(most) > 0 {
		return floor, most, fmt.Errorf("%s_CAPS: the cap of %s must not be below its floor", variables, native)
	}
	return floor, most, nil
}

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/worker"
)

// driver is a network's client with its connections.
type driver interface {
	chain.Multisig
	Close()
}

// network is one chain as this deployment serves it.
type network struct {
	name exchange.Network
	// on is set when the deployment configures the network. One that is off has no worker, no
	// addresses and no health.
	on bool
	// variable is the one that turns the network on.
	variable string
	// check reports the rules that its configuration breaks, in addition to those of the tags.
	check func(n *need)
	// open creates the driver. Only workers use it, and only for their queues.
	open func() (driver, error)
	// address checks an address that is to be paid, anyAddress one that is only named; for the API, without a network call.
	address, anyAddress func(string) (string, error)
	// node is host and port of its first node, for the health page.
	node string
	// blockTime is the network's, or the shorter one of a test's chain.
	blockTime time.Duration
	// life and lifeBlocks are for how long the network may include a signed transaction, by time or by height; zero
	// where transactions have nonces.
	life       time.Duration
	lifeBlocks uint64
	// tokens are the addresses of the stablecoins that are configured.
	tokens map[money.Asset]string
	// stopped has the reason why a configured token is not offered.
	stopped map[money.Asset]string
}

// networks is the table of the chains that this build knows. Each has its variables, its construction and its entry in
// its own file: network_<name>.go.
func (c Config) networks() []network {
	return []network{
		c.tronNetwork(),
		c.ethereumNetwork(),
		c.solanaNetwork(),
	}
}

// stablecoins are the addresses of a network's tokens, none where the network is off.
func stablecoins(on bool, usdt, usdc string) map[money.Asset]string {
	if !on {
		return nil
	}
	t := map[money.Asset]string{money.USDT: usdt}
	if usdc != "" {
		t[money.USDC] = usdc
	}
	return t
}

// wallets checks addresses with parse, and refuses the contracts and mints of tokens: users copy them from an explorer by
// mistake, and money sent there is lost.
func wallets(parse func(string) (string, error), tokens map[money.Asset]string) func(string) (string, error) {
	return func(s string) (string, error) {
		canonical, err := parse(s)
		if err != nil {
			return "", err
		}
		for asset, address := range tokens {
			if token, err := parse(address); err == nil && token == canonical {
				return "", chain.Errorf(chain.ReasonAddress, "is the contract of %s itself; money sent there is lost", string(asset))
			}
		}
		return canonical, nil
	}
}

// network returns an entry of the table; a network that the build does not know is off.
func (c Config) network(name exchange.Network) network {
	for _, n := range c.networks() {
		if n.name == name {
			return n
		}
	}
	return network{name: name, check: func(n *need) { n.rule(false, fmt.Sprintf("this build has no driver for %s", name)) }}
}

// checkNetwork reports what a worker of one of the network's queues lacks.
func (c Config) checkNetwork(n *need, queue string) {
	_, name, _ := strings.Cut(queue, "-")
	net := c.network(exchange.Network(name))
	if !net.on && net.variable != "" {
		n.rule(false, fmt.Sprintf("queue %s: the network %s is off here; %s turns it on", queue, name, net.variable))
	}
	net.check(n)
}

// drivers opens each network once for all queues of a process.
type drivers struct {
	config Config
	open   map[exchange.Network]driver
}

func (d drivers) of(name exchange.Network) (driver, error) {
	if c := d.open[name]; c != nil {
		return c, nil
	}
	n := d.config.network(name)
	if !n.on {
		return nil, fmt.Errorf("the network %s is off here; %s turns it on", name, n.variable)
	}
	c, err := n.open()
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", name, err)
	}
	d.open[name] = c
	return c, nil
}

func (d drivers) close() {
	for _, c := range d.open {
		c.Close()
	}
}

// chain creates the activities that use a network's nodes.
func (p parts) chain(name exchange.Network) ([]any, error) {
	c, err := p.drivers.of(name)
	if err != nil {
		return nil, err
	}
	gas, err := p.config.gas(name)
	if err != nil {
		return nil, err
	}
	ahead, err := p.config.gasAhead(name)
	if err != nil {
		return nil, err
	}
	estimator, _ := c.(activities.GasEstimator) // none where the gas wallet pays the fees
	watch, err := p.watch(name, c)
	if err != nil {
		return nil, err
	}
	poll := p.config.network(name).blockTime
	return []any{
		&activities.Chain{Store: p.db, Client: c, Poll: poll, StuckTimeout: p.config.Sending.StuckTimeout, Gas: gas, Now: time.Now, Proposals: p.db},
		watch,
		&activities.GasAhead{Store: p.db, Network: name, Client: estimator, Policy: ahead},
		&activities.Comparing{Store: p.db, Client: c, Poll: poll, WatchTimeout: activities.DefaultWatchTimeout},
		&activities.SwapSync{Store: p.db, Client: c, Poll: poll, WatchTimeout: activities.DefaultWatchTimeout},
		&activities.Cold{Store: p.db, Client: c, Now: time.Now},
		&activities.Multisigs{Store: p.db, Client: c, Poll: poll},
		&activities.MultisigPayloads{Store: p.db, Client: c, Poll: poll},
	}, nil
}

// watch creates the activities that watch the deposits on a network.
func (p parts) watch(name exchange.Network, c chain.Client) (*activities.Deposits, error) {
	least, err := p.config.Deposits.minimum()
	if err != nil {
		return nil, err
	}
	net := p.config.network(name)
	if p.config.Mode == Local {
		net.life, net.lifeBlocks = 0, 0 // a developer's machine sleeps, and its chains stop with it
	}
	return &activities.Deposits{
		Store: p.db, Client: c, Poll: net.blockTime, Stretch: activities.DefaultStretch,
		From: p.config.Deposits.From[string(name)], Minimum: least, Life: net.life, LifeBlocks: net.lifeBlocks,
	}, nil
}

// signer creates the activities that make keys and signatures. Each network's signer has its own vault, so that the signer
// of one network can't decrypt the keys of another.
func (p parts) signer(name exchange.Network) ([]any, error) {
	c, err := p.drivers.of(name)
	if err != nil {
		return nil, err
	}
	vault, err := p.config.vault()
	if err != nil {
		return nil, err
	}
	ceilings, err := p.config.ceilings()
	if err != nil {
		return nil, err
	}
	signer, err := keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: worker.SigningRows{Store: p.db}, Vault: vault, Clients: map[exchange.Network]chain.Client{name: c},
		Ceilings: ceilings, Cold: worker.SigningRows{Store: p.db}, Joint: p.db, Handovers: p.db,
	})
	if err != nil {
		return nil, err
	}
	screener, err := p.config.screener()
	if err != nil {
		return nil, err
	}
	maker := keys.Maker{Vault: vault, Networks: map[exchange.Network]keys.Addresser{name: c}}
	wallets := &activities.Wallets{Keys: maker, Store: p.db}
	if p.config.Keys.ColdPublic != "" {
		sealer, err := keys.ReadColdSealer(p.config.Keys.ColdPublic)
		if err != nil {
			return nil, fmt.Errorf("KIVUKO_COLD_PUBLIC_KEY: %w", err)
		}
		wallets.ColdKeys = keys.Maker{Vault: sealer, Networks: maker.Networks}
	}
	recipients := &activities.Recipients{Store: p.db, Screener: screener, Holders: c}
	return []any{
		&activities.Signing{Signer: signer, Store: p.db, Cold: signer, Recipients: recipients},
		wallets, &activities.MultisigKeys{Keys: maker, Store: p.db}, &activities.MultisigHandovers{Signer: signer},
		&activities.MultisigSigning{Signer: signer, Store: p.db, Recipients: recipients},
	}, nil
}

// addresses are the address checks of the networks that are on: of what is to be paid, and of all others.
func (c Config) addresses() (payable, all map[exchange.Network]func(string) (string, error)) {
	payable, all = map[exchange.Network]func(string) (string, error){}, map[exchange.Network]func(string) (string, error){}
	for _, n := range c.networks() {
		if n.on {
			payable[n.name], all[n.name] = forPeople(n.address), forPeople(n.anyAddress)
		}
	}
	return payable, all
}

// forPeople replaces the error of parse with a readable one.
func forPeople(parse func(string) (string, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		address, err := parse(s)
		if e, ok := errors.AsType[*chain.Error](err); ok {
			return "", exchange.Wrap(exchange.CodeInvalid, err, "%s", e.Detail)
		}
		return address, err
	}
}

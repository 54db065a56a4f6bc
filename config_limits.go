package main

import (
	"fmt"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// LimitsConfig bounds what customers may open or send; workers enforce the limits.
type LimitsConfig struct {
	// Pending orders that a verified customer may have at a time. A customer may open five times as many sales within a day that
	// get no deposit, and a merchant ten times as many for its customers: each keeps an escrow address until that has rested.
	CustomerOrders int `env:"CUSTOMER_ORDERS" envDefault:"10" for:"workers"`
	// The same for a `user`, whose identity is not verified. It must not be above the customers' limit.
	UserOrders int `env:"USER_ORDERS" envDefault:"3" for:"workers"`
	// Prompts to one phone within the window, from all customers together.
	PromptsPerPhone int `env:"PROMPTS_PER_PHONE" envDefault:"12" for:"workers"`
	// The window in which prompts are counted.
	PromptWindow time.Duration `env:"PROMPT_WINDOW" envDefault:"1h" for:"workers"`
	// Transfers that a verified customer may send in a day of Kenya, whatever their value.
	CustomerTransfers int `env:"CUSTOMER_TRANSFERS" envDefault:"50" for:"workers"`
	// The same for a `user`. It must not be above the customers' limit.
	UserTransfers int `env:"USER_TRANSFERS" envDefault:"10" for:"workers"`
	// The same for a merchant with all its subvendors, and for the house.
	MerchantTransfers int `env:"MERCHANT_TRANSFERS" envDefault:"1000" for:"workers"`
	// The maximum of network fees in a day of Kenya for the orders and transfers of a `user`, for each network in its coin. Every
	// coin must be named, here and below.
	UserFees map[string]string `env:"USER_FEES" envDefault:"ETH:0.03,TRX:300,SOL:0.05" for:"workers"`
	// The same for a verified customer.
	CustomerFees map[string]string `env:"CUSTOMER_FEES" envDefault:"ETH:0.15,TRX:1500,SOL:0.25" for:"workers"`
	// The same for a merchant with all its subvendors, orders against its offers included.
	MerchantFees map[string]string `env:"MERCHANT_FEES" envDefault:"ETH:5,TRX:50000,SOL:10" for:"workers"`
	// The maximum of network fees in a day for everything that is sent. Above it payments park with `payout-fee_budget`.
	HouseFees map[string]string `env:"HOUSE_FEES" envDefault:"ETH:20,TRX:200000,SOL:50" for:"workers"`
}

func (c Config) checkLimits(n *need) {
	c.checkFees(n)
	l := c.Limits
	for name, v := range map[string]int{
		"CUSTOMER_ORDERS": l.CustomerOrders, "USER_ORDERS": l.UserOrders, "PROMPTS_PER_PHONE": l.PromptsPerPhone,
		"CUSTOMER_TRANSFERS": l.CustomerTransfers, "USER_TRANSFERS": l.UserTransfers, "MERCHANT_TRANSFERS": l.MerchantTransfers,
	} {
		n.rule(v > 0, "KIVUKO_LIMIT_"+name+" must be above zero")
	}
	n.rule(l.PromptWindow > 0, "KIVUKO_LIMIT_PROMPT_WINDOW must be above zero")
	n.rule(l.UserTransfers <= l.CustomerTransfers,
		"KIVUKO_LIMIT_USER_TRANSFERS must not be above KIVUKO_LIMIT_CUSTOMER_TRANSFERS: their identity is not verified")
	n.rule(l.UserOrders <= l.CustomerOrders, "KIVUKO_LIMIT_USER_ORDERS must not be above KIVUKO_LIMIT_CUSTOMER_ORDERS: their identity is not verified")
}

// fees reads a limit of each network's fees. Each coin must be named, so that none is unlimited by mistake.
func fees(variable string, list map[string]string) (map[money.Asset]money.Amount, error) {
	all := map[money.Asset]money.Amount{}
	for _, n := range exchange.Networks() {
		coin := n.NativeCoin()
		m, err := money.Parse(coin, list[string(coin)])
		if err != nil || !m.Positive() {
			return nil, fmt.Errorf("KIVUKO_LIMIT_%s must name an amount above zero of %s", variable, coin)
		}
		all[coin] = m
	}
	if len(list) > len(all) {
		return nil, fmt.Errorf("KIVUKO_LIMIT_%s names a coin that no network takes fees in", variable)
	}
	return all, nil
}

func (c Config) checkFees(n *need) {
	for variable, list := range map[string]map[string]string{
		"USER_FEES": c.Limits.UserFees, "CUSTOMER_FEES": c.Limits.CustomerFees, "MERCHANT_FEES": c.Limits.MerchantFees, "HOUSE_FEES": c.Limits.HouseFees,
	} {
		if _, err := fees(variable, list); err != nil {
			n.problems = append(n.problems, err.Error())
		}
	}
}

// mustFees returns the fees of a checked configuration.
func mustFees(list map[string]string) map[money.Asset]money.Amount {
	all, _ := fees("", list)
	return all
}

func (c Config) limits() store.Limits {
	return store.Limits{
		CustomerOrders: c.Limits.CustomerOrders, UserOrders: c.Limits.UserOrders,
		PromptsPerPhone: c.Limits.PromptsPerPhone, PromptWindow: c.Limits.PromptWindow,
		CustomerTransfers: c.Limits.CustomerTransfers, UserTransfers: c.Limits.UserTransfers, MerchantTransfers: c.Limits.MerchantTransfers,
		UserFees: mustFees(c.Limits.UserFees), CustomerFees: mustFees(c.Limits.CustomerFees),
		MerchantFees: mustFees(c.Limits.MerchantFees), HouseFees: mustFees(c.Limits.HouseFees), SwapUSDCOnTron: c.Tron.USDCEnabled,
	}
}

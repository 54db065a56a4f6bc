package main

import (
	"fmt"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// LimitsConfig bounds what customers may ask for at a time; workers hold the limits.
type LimitsConfig struct {
	CustomerOrders  int           `env:"CUSTOMER_ORDERS" envDefault:"10"`   // pending orders of a verified customer
	UserOrders      int           `env:"USER_ORDERS" envDefault:"3"`        // pending orders of one that is not verified
	PromptsPerPhone int           `env:"PROMPTS_PER_PHONE" envDefault:"12"` // prompts to one phone within the window
	PromptWindow    time.Duration `env:"PROMPT_WINDOW" envDefault:"1h"`

	CustomerTransfers int `env:"CUSTOMER_TRANSFERS" envDefault:"50"`   // transfers of a verified customer in a day
	UserTransfers     int `env:"USER_TRANSFERS" envDefault:"10"`       // of one that is not verified
	MerchantTransfers int `env:"MERCHANT_TRANSFERS" envDefault:"1000"` // of a merchant with its subvendors

	// What networks may take in a day, each in its coin ("ETH:0.03,TRX:300,SOL:0.05").
	UserFees     map[string]string `env:"USER_FEES" envDefault:"ETH:0.03,TRX:300,SOL:0.05"`
	CustomerFees map[string]string `env:"CUSTOMER_FEES" envDefault:"ETH:0.15,TRX:1500,SOL:0.25"`
	MerchantFees map[string]string `env:"MERCHANT_FEES" envDefault:"ETH:5,TRX:50000,SOL:10"`
	HouseFees    map[string]string `env:"HOUSE_FEES" envDefault:"ETH:20,TRX:200000,SOL:50"`
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
		"KIVUKO_LIMIT_USER_TRANSFERS must not be above KIVUKO_LIMIT_CUSTOMER_TRANSFERS: nobody has verified who they are")
	n.rule(l.UserOrders <= l.CustomerOrders, "KIVUKO_LIMIT_USER_ORDERS must not be above KIVUKO_LIMIT_CUSTOMER_ORDERS: nobody has verified who they are")
}

// fees reads a limit of each network's fees. Each coin must be named: what is forgotten is not free.
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

// mustFees is for a configuration that was checked.
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
		MerchantFees: mustFees(c.Limits.MerchantFees), HouseFees: mustFees(c.Limits.HouseFees),
	}
}

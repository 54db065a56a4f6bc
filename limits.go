package main

import (
	"time"

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
	MerchantTransfers int `env:"MERCHANT_TRANSFERS" envDefault:"1000"` // of a merchant with its sub-vendors
}

func (c Config) checkLimits(n *need) {
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

func (c Config) limits() store.Limits {
	return store.Limits{
		CustomerOrders: c.Limits.CustomerOrders, UserOrders: c.Limits.UserOrders,
		PromptsPerPhone: c.Limits.PromptsPerPhone, PromptWindow: c.Limits.PromptWindow,
		CustomerTransfers: c.Limits.CustomerTransfers, UserTransfers: c.Limits.UserTransfers, MerchantTransfers: c.Limits.MerchantTransfers,
	}
}

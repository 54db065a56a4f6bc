package main

import (
	"strings"
	"testing"

	"kivuko/exchange/money"
)

func TestDepositsConfig(t *testing.T) {
	c, err := load(t, map[string]string{"DEPOSITS_FROM": "tron:1,ethereum:23000000"})
	if err != nil || c.Deposits.From["tron"] != 1 || c.Deposits.From["ethereum"] != 23_000_000 {
		t.Fatalf("%+v, %v", c.Deposits, err)
	}
	least, err := c.Deposits.minimum()
	if err != nil || !least[money.USDT].Equal(money.Must(money.USDT, "0.01")) || len(least) != 5 {
		t.Errorf("%v, %v", least, err)
	}
	for _, bad := range []string{"USDT:x", "XYZ:1", "KES:1", "USDT:0.0000001", "USDT:-1"} {
		c.Deposits.Minimum = map[string]string{}
		name, amount, _ := strings.Cut(bad, ":")
		c.Deposits.Minimum[name] = amount
		if _, err := c.Deposits.minimum(); err == nil || !strings.Contains(err.Error(), "KIVUKO_DEPOSITS_MINIMUM") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

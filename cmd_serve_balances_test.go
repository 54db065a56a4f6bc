package main

import (
	"errors"
	"strings"
	"testing"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// USDC is off on TRON unless the configuration enables it, even if its contract is configured.
func TestRefusedAssets(t *testing.T) {
	nodes := []string{"node:50051"}
	tron := func(usdc string, enabled bool) Config {
		return Config{Tron: TronConfig{FullNodes: nodes, USDT: "T1", USDC: usdc, USDCEnabled: enabled}}
	}
	for name, c := range map[string]struct {
		config  Config
		network exchange.Network
		asset   money.Asset
		says    string
	}{
		"off by default":              {tron("T2", false), exchange.Tron, money.USDC, "its issuer has stopped it"},
		"off without a contract":      {tron("", false), exchange.Tron, money.USDC, "its issuer has stopped it"},
		"on":                          {tron("T2", true), exchange.Tron, money.USDC, ""},
		"on without a contract":       {tron("", true), exchange.Tron, money.USDC, "not configured"},
		"USDT":                        {tron("", false), exchange.Tron, money.USDT, ""},
		"the native coin":             {tron("", false), exchange.Tron, money.TRX, ""},
		"a network that is off":       {tron("", false), exchange.Ethereum, money.USDC, ""},
		"Ethereum":                    {Config{Ethereum: EthereumConfig{RPC: nodes, USDT: "0x1", USDC: "0x2"}}, exchange.Ethereum, money.USDC, ""},
		"Ethereum without a contract": {Config{Ethereum: EthereumConfig{RPC: nodes, USDT: "0x1"}}, exchange.Ethereum, money.USDC, "not configured"},
		"no contract at all":          {Config{Ethereum: EthereumConfig{RPC: nodes}}, exchange.Ethereum, money.USDC, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.config.refuses(c.network, c.asset)
			if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
				t.Errorf("says %q, want %q", got, c.says)
			}
		})
	}
}

// By default the variable is not set, and production refuses USDC on TRON.
func TestUSDCOnTronIsOffByDefault(t *testing.T) {
	t.Setenv("KIVUKO_MODE", "production")
	t.Setenv("KIVUKO_TRON_GRPC", "node:50051")
	t.Setenv("KIVUKO_TRON_USDC", "TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8")
	for _, c := range []struct {
		value   string
		refused bool
	}{{"", true}, {"true", false}} {
		if c.value != "" {
			t.Setenv("KIVUKO_TRON_USDC_ENABLED", c.value)
		}
		config, err := loadConfig()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.refuses(exchange.Tron, money.USDC); (got != "") != c.refused {
			t.Errorf("with %q: %q", c.value, got)
		}
	}
}

// Only networks that are on are read.
func TestBalancesAreReadOfNetworksThatAreOn(t *testing.T) {
	b := newBalances(Config{Tron: TronConfig{FullNodes: []string{"127.0.0.1:1"}, SolidityNodes: []string{"127.0.0.1:1"}, USDT: "bad"}})
	defer b.close()
	all := b.readers()
	if len(all) != 1 || all[exchange.Tron] == nil {
		t.Fatalf("%d networks can be asked", len(all))
	}
	if _, err := all[exchange.Tron](t.Context(), "T", money.USDT); err == nil {
		t.Error("a driver with a bad contract was opened")
	}
}

// checked is a driver that only checks what owners sign.
type checked struct {
	chain.Multisig
	refuses error
}

func (c checked) CheckJoint(chain.Joint) error { return c.refuses }

// What owners sign is shown only as the driver reads it out of bytes that it has built again.
func TestWhatOwnersSignIsChecked(t *testing.T) {
	paid := &chain.Transfer{From: "account", To: "recipient", Amount: money.Must(money.USDT, "5")}
	j := chain.Joint{JointDraft: chain.JointDraft{Account: "account", Transfer: paid}, Digest: []byte("digest"), Body: []byte("body"), ID: "id", FeeLimit: money.Must(money.TRX, "30")}
	stored, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v, err := jointView(checked{}, stored)
	if err != nil || v.Account != "account" || v.To != "recipient" || v.Amount.String() != "5.000000" || string(v.Body) != "body" || string(v.Digest) != "digest" || v.ID != "id" || v.FeeLimit.String() != "30.000000" {
		t.Errorf("owners sign %+v, %v", v, err)
	}
	refusal := errors.New("the bytes say something else")
	if _, err := jointView(checked{refuses: refusal}, stored); !errors.Is(err, refusal) {
		t.Errorf("bytes that the driver refuses are shown: %v", err)
	}
	if _, err := jointView(checked{}, []byte(`{"account": "account", "more": 1}`)); err == nil {
		t.Error("a part that the driver does not know is shown as nothing")
	}
	j.Transfer = nil
	if stored, err = j.Encode(); err != nil {
		t.Fatal(err)
	}
	if v, err = jointView(checked{}, stored); err != nil || v.Kind != exchange.ProposeCancel || v.To != "account" || !v.Amount.IsZero() {
		t.Errorf("what moves nothing is shown as %+v, %v", v, err)
	}
	j.Owners = &chain.OwnersChange{Owners: []chain.Owner{{Address: "anna", Weight: 2}}, Threshold: 2}
	if stored, err = j.Encode(); err != nil {
		t.Fatal(err)
	}
	if v, err = jointView(checked{}, stored); err != nil || v.Kind != exchange.ProposeOwners || !v.Owners.SameQuorum(j.Owners.Agreed()) || !v.Amount.IsZero() {
		t.Errorf("other owners are shown as %+v, %v", v, err)
	}
}

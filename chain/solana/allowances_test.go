package solana

import (
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// The token accounts of an account may have a delegate, another owner or a close authority, whom its owners don't know of.
func TestAllowances(t *testing.T) {
	t.Parallel()
	account, mallory, mint := named("treasury").key(), named("mallory").key(), sdk.MustPublicKeyFromBase58(usdt)
	const delegateAt, closeAt = 72, 129
	option := func(at int, who sdk.PublicKey) func([]byte) {
		return func(data []byte) {
			data[at] = 1
			copy(data[at+4:], who[:])
		}
	}
	for name, c := range map[string]struct {
		owner sdk.PublicKey
		edit  func([]byte)
		right string
	}{
		"none":                       {account, func([]byte) {}, ""},
		"a delegate":                 {account, option(delegateAt, mallory), "delegate"},
		"a close authority":          {account, option(closeAt, mallory), "close authority"},
		"itself as close authority":  {account, option(closeAt, account), ""},
		"the account was given away": {mallory, func([]byte) {}, "owner"},
	} {
		s := newStub()
		data := holdingData(mint, c.owner, 5, 1)
		c.edit(data)
		s.accounts[ataOf(t, account, usdt).String()] = accountJSON(2_039_280, sdk.TokenProgramID, data)
		got, err := stubbed(t, s).Allowances(t.Context(), account.String())
		if err != nil || len(got) != min(len(c.right), 1) {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if want := (chain.Allowance{Asset: money.USDT, Spender: mallory.String(), Right: c.right}); c.right != "" && got[0] != want {
			t.Errorf("%s: %+v, want %+v", name, got[0], want)
		}
	}
}

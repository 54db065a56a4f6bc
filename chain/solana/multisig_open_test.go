package solana

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/exchange/money"
)

func openingDraft(t testing.TB, c *Client, owners int, threshold uint32) chain.Draft {
	t.Helper()
	q := chain.OwnersChange{Threshold: threshold}
	for _, o := range names(owners) {
		q.Owners = append(q.Owners, chain.Owner{Address: o.String(), Weight: 1})
	}
	address, err := c.MultisigAccount(named("payer").address(), "wallet 7", q)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Draft{Transfer: chain.Transfer{From: named("payer").address(), To: address, Amount: lamports(3_361_680)}, Seed: "wallet 7", Owners: &q}
}

// The address is the network's own derivation, on the curve, and belongs to these owners, this seed and this authority.
func TestMultisigAccount(t *testing.T) {
	t.Parallel()
	s, _ := harness(t)
	c := stubbed(t, s)
	d := openingDraft(t, c, 3, 2)
	for i := range 20 { // half of all derivations are off the curve
		address, err := c.MultisigAccount(d.From, fmt.Sprint("wallet ", i), *d.Owners)
		if err == nil {
			_, err = c.ParseAddress(address)
		}
		if err != nil {
			t.Errorf("wallets would refuse the address of wallet %d: %v", i, err)
		}
	}
	reversed := chain.OwnersChange{Owners: slices.Clone(d.Owners.Owners), Threshold: 2}
	slices.Reverse(reversed.Owners)
	if again, err := c.MultisigAccount(d.From, d.Seed, reversed); err != nil || again != d.To {
		t.Errorf("in another order they have %s (%v)", again, err)
	}
	for name, f := range map[string]func() (string, error){
		"another seed":      func() (string, error) { return c.MultisigAccount(d.From, "wallet 8", *d.Owners) },
		"another authority": func() (string, error) { return c.MultisigAccount(named("alice").address(), d.Seed, *d.Owners) },
		"another threshold": func() (string, error) {
			return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Owners: d.Owners.Owners, Threshold: 3})
		},
		"an owner less": func() (string, error) {
			return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Owners: d.Owners.Owners[1:], Threshold: 2})
		},
	} {
		if other, err := f(); err != nil || other == d.To {
			t.Errorf("%s: %s, %v", name, other, err)
		}
	}
	for name, f := range map[string]func() (string, error){
		"no seed":         func() (string, error) { return c.MultisigAccount(d.From, "", *d.Owners) },
		"no authority":    func() (string, error) { return c.MultisigAccount("", d.Seed, *d.Owners) },
		"seven of eleven": func() (string, error) { return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Threshold: 7}) },
		"a second quorum": func() (string, error) {
			return c.MultisigAccount(d.From, d.Seed, chain.OwnersChange{Owners: d.Owners.Owners, Threshold: 2, Control: &reversed})
		},
	} {
		if address, err := f(); err == nil {
			t.Errorf("%s: %s", name, address)
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	s, _ := harness(t)
	c := stubbed(t, s)
	s.answers["simulateTransaction"] = at(1100, map[string]any{"err": nil, "unitsConsumed": 45_000})
	d := openingDraft(t, c, maxOwners, maxSigners)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if want := lamports(10_040 + 2*(tokenAccountSize+128)*6960); !u.FeeLimit.Equal(want) || u.Owners == nil {
		t.Errorf("it may cost %s, want %s", u.FeeLimit, want)
	}
	signed, err := c.Sign(u, named("payer"))
	if err != nil || len(signed.Raw) > maxTransactionBytes {
		t.Fatalf("%d bytes, %v", len(signed.Raw), err)
	}
	m, err := readMessage(u.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, in := range m.Instructions {
		if program, err := m.Program(in.ProgramIDIndex); err == nil && program == sdk.TokenProgramID {
			found++
			if !bytes.Equal(in.Data, []byte{token.Instruction_InitializeMultisig2, maxSigners}) || len(in.Accounts) != 1+maxOwners {
				t.Errorf("it is initialised by %x with %d accounts", in.Data, len(in.Accounts))
			}
		}
	}
	if found != 1 {
		t.Errorf("it is initialised %d times", found)
	}
	for name, edit := range map[string]func(*chain.Unsigned){
		"as a payment":      func(u *chain.Unsigned) { u.Owners, u.Seed = nil, "" },
		"another seed":      func(u *chain.Unsigned) { u.Seed = "wallet 8" },
		"another account":   func(u *chain.Unsigned) { u.Transfer.To = named("bob").address() },
		"another amount":    func(u *chain.Unsigned) { u.Transfer.Amount = lamports(2) },
		"another threshold": func(u *chain.Unsigned) { u.Owners = &chain.OwnersChange{Owners: u.Owners.Owners, Threshold: 1} },
		"a fee payer":       func(u *chain.Unsigned) { u.FeePayer = named("bob").address() },
		"a step":            func(u *chain.Unsigned) { u.Step = chain.NonceOpen },
	} {
		bad := u
		edit(&bad)
		if _, err := c.Sign(bad, named("payer")); err == nil {
			t.Errorf("signed %s", name)
		}
	}
	for name, q := range map[string]struct {
		edit func(*stub, *chain.Draft)
		want chain.Reason
	}{
		"twice":   {func(s *stub, d *chain.Draft) { s.accounts[d.To] = sharedAccount(sharedData(2, names(3)...)) }, chain.ReasonReverts},
		"in USDT": {func(_ *stub, d *chain.Draft) { d.Amount = money.Must(money.USDT, "1") }, chain.ReasonUnsupported},
		"for others": {func(_ *stub, d *chain.Draft) {
			d.Owners = &chain.OwnersChange{Owners: d.Owners.Owners[1:], Threshold: 2}
		}, chain.ReasonAddress},
		"by a poor one":  {func(s *stub, d *chain.Draft) { s.accounts[d.From] = walletAccount(5_000_000) }, chain.ReasonGas},
		"with a nonce":   {func(_ *stub, d *chain.Draft) { d.NonceAccount = named("bob").address() }, chain.ReasonUnsupported},
		"for no owners":  {func(_ *stub, d *chain.Draft) { d.Owners = &chain.OwnersChange{} }, chain.ReasonUnsupported},
		"with a sponsor": {func(_ *stub, d *chain.Draft) { d.FeePayer = named("bob").address() }, chain.ReasonUnsupported},
	} {
		s, _ := harness(t)
		d := d
		q.edit(s, &d)
		_, err := stubbed(t, s).Prepare(t.Context(), d)
		wantReason(t, "opened "+name, err, q.want)
	}
}

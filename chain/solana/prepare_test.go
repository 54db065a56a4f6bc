package solana

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

func TestPrepareToken(t *testing.T) {
	s, d := harness(t)
	c := stubbed(t, s)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	rent := uint64(165+128) * 6960
	if u.LastValidHeight != 1000+blockhashLife || u.RefBlock != hashAt(1100) || !u.ExpiresAt.IsZero() || u.FeePayer != d.FeePayer ||
		!u.FeeLimit.Equal(lamports(10_040+rent)) {
		t.Errorf("prepared %+v", u)
	}
	m, err := readMessage(u.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Signers().ToBase58(); len(got) != 2 || got[0] != d.FeePayer || got[1] != d.From {
		t.Errorf("signers %v", got)
	}
	in, err := c.intent(d.Transfer, d.FeePayer)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planOf(in, sdk.PublicKey{}, m)
	if err != nil || !p.create || p.limit != createUnits || p.price != c.config.Fees.PriceFloor {
		t.Errorf("planned %+v (%v)", p, err)
	}
	sameInstructions(t, m, p.instructions())
	// The recipient's account exists, but its rent may still be needed in the block.
	bob := named("bob").key()
	s.set(func() {
		s.accounts[ataOf(t, bob, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), bob, 1, 1)
		s.accounts[d.FeePayer] = walletAccount(10_040 + 890_880)
	})
	again, err := c.Prepare(t.Context(), d)
	if err != nil || !again.FeeLimit.Equal(u.FeeLimit) {
		t.Errorf("limit %s (%v)", again.FeeLimit, err)
	}
	if bytes.Equal(again.Body, u.Body) {
		t.Error("two equal payments are one transaction")
	}
}

func TestPrepareSigns(t *testing.T) {
	alice, payer := named("alice"), named("payer")
	for name, edit := range map[string]func(*chain.Draft){
		"a token, sponsored":           func(*chain.Draft) {},
		"a token":                      func(d *chain.Draft) { d.FeePayer = "" },
		"a token, sponsored by itself": func(d *chain.Draft) { d.FeePayer = d.From },
		"SOL, sponsored":               func(d *chain.Draft) { d.Amount = money.Must(money.SOL, "0.5") },
		"SOL":                          func(d *chain.Draft) { d.Amount, d.FeePayer = money.Must(money.SOL, "0.5"), "" },
		"to the sponsor":               func(d *chain.Draft) { d.To = d.FeePayer },
	} {
		t.Run(name, func(t *testing.T) {
			s, d := harness(t)
			edit(&d)
			c := stubbed(t, s)
			u, err := c.Prepare(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			keys := []chain.Key{alice}
			switch u.FeePayer {
			case "":
			case d.From:
				keys = append(keys, alice)
			default:
				keys = append(keys, payer)
			}
			if u.FeePayer != d.FeePayer {
				t.Errorf("the fee payer is %q, asked for %q", u.FeePayer, d.FeePayer)
			}
			signed, err := c.Sign(u, keys...)
			if err != nil {
				t.Fatal(err)
			}
			tx, err := sdk.TransactionFromBytes(signed.Raw)
			if err != nil {
				t.Fatal(err)
			}
			first := keys[len(keys)-1].PublicKey()
			if signed.TxID != tx.Signatures[0].String() || !sdk.PublicKey(first).Verify(u.Body, tx.Signatures[0]) {
				t.Error("the id is not the fee payer's signature")
			}
			if _, err := c.Sign(u, keys[0], keys[0], keys[0]); err == nil {
				t.Error("signed by three keys")
			}
			if len(keys) == 2 && u.FeePayer != d.From {
				if _, err := c.Sign(u, keys[1], keys[0]); err == nil {
					t.Error("signed with the keys swapped")
				}
				if _, err := c.Sign(u, keys[0]); err == nil {
					t.Error("signed without the fee payer")
				}
			}
		})
	}
}

// brokenKey signs other bytes than it was given.
type brokenKey struct{ testKey }

func (k brokenKey) Sign(m []byte) ([]byte, error) { return k.testKey.Sign(append(bytes.Clone(m), 0)) }

func TestSignRefuses(t *testing.T) {
	s, d := harness(t)
	c := stubbed(t, s)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.intent(d.Transfer, d.FeePayer)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMessage(u.Body)
	if err != nil {
		t.Fatal(err)
	}
	good, err := planOf(in, sdk.PublicKey{}, m)
	if err != nil {
		t.Fatal(err)
	}
	rebuilt := func(edit func(*plan)) func(*chain.Unsigned) {
		return func(u *chain.Unsigned) {
			p := good
			edit(&p)
			body, err := p.message()
			if err != nil {
				t.Fatal(err)
			}
			u.Body, u.Payload, u.RefBlock = body, body, p.blockhash.String()
		}
	}
	mallory := named("mallory").key()
	for name, edit := range map[string]func(*chain.Unsigned){
		"another destination": rebuilt(func(p *plan) { p.dest = ataOf(t, mallory, usdt) }),
		"another recipient":   rebuilt(func(p *plan) { p.to, p.dest = mallory, ataOf(t, mallory, usdt) }),
		"paid directly":       rebuilt(func(p *plan) { p.create = false }),
		"another source":      rebuilt(func(p *plan) { p.source = ataOf(t, mallory, usdt) }),
		"another amount":      rebuilt(func(p *plan) { p.units++ }),
		"other places":        rebuilt(func(p *plan) { p.decimals++ }),
		"another mint":        rebuilt(func(p *plan) { p.mint = sdk.MustPublicKeyFromBase58(usdc) }),
		"another fee payer":   rebuilt(func(p *plan) { p.payer = mallory }),
		"a high price":        rebuilt(func(p *plan) { p.price = c.config.Fees.PriceCeiling + 1 }),
		"much computation":    rebuilt(func(p *plan) { p.limit = maxUnits + 1 }),
		"SOL instead":         rebuilt(func(p *plan) { p.token = false }),
		"a fee over its limit": func(u *chain.Unsigned) {
			rebuilt(func(p *plan) { p.price, p.limit = c.config.Fees.PriceCeiling, maxUnits })(u)
			u.FeeLimit = lamports(10_000)
		},
		"a limit over the cap":   func(u *chain.Unsigned) { u.FeeLimit = money.Must(money.SOL, "0.02") },
		"another blockhash":      func(u *chain.Unsigned) { u.RefBlock = hashAt(7) },
		"no end of life":         func(u *chain.Unsigned) { u.LastValidHeight = 0 },
		"bytes after the end":    func(u *chain.Unsigned) { u.Body = append(bytes.Clone(u.Body), 0); u.Payload = u.Body },
		"another payload":        func(u *chain.Unsigned) { u.Payload = flipped(u.Payload, 9) },
		"no bytes":               func(u *chain.Unsigned) { u.Body, u.Payload = nil, nil },
		"a sender who pays":      func(u *chain.Unsigned) { u.FeePayer = "" },
		"another recipient said": func(u *chain.Unsigned) { u.Transfer.To = mallory.String() },
	} {
		bad := u
		edit(&bad)
		if signed, err := c.Sign(bad, named("alice"), named("payer")); err == nil {
			t.Errorf("%s: signed as %s", name, signed.TxID)
		}
	}
	for i := range u.Body {
		bad := u
		bad.Body = flipped(u.Body, i)
		bad.Payload = bad.Body
		if signed, err := c.Sign(bad, named("alice"), named("payer")); err == nil && !sameMeaning(c, bad.Body, good) {
			t.Errorf("byte %d changed: signed as %s", i, signed.TxID)
		}
	}
	if _, err := c.Sign(u, brokenKey{named("alice")}, named("payer")); err == nil {
		t.Error("a signature that does not verify was accepted")
	}
}

// sameMeaning reports whether a message differs from a plan only in the allowed parts: memo and computation within their
// bounds.
func sameMeaning(c *Client, body []byte, good plan) bool {
	m, err := readMessage(body)
	if err != nil {
		return false
	}
	p, err := planOf(good.intent, good.nonce, m)
	if err != nil || p.limit > maxUnits || p.price > c.config.Fees.PriceCeiling {
		return false
	}
	p.unique, p.limit, p.price = good.unique, good.limit, good.price
	return p == good
}

func TestPrepareRefuses(t *testing.T) {
	alice, bob, payer, mallory := named("alice").key(), named("bob").key(), named("payer").key(), named("mallory").key()
	tether, circle := sdk.MustPublicKeyFromBase58(usdt), sdk.MustPublicKeyFromBase58(usdc)
	account := func(key sdk.PublicKey, a map[string]any) func(*stub, *chain.Draft) {
		return func(s *stub, _ *chain.Draft) { s.accounts[key.String()] = a }
	}
	failing := func(failure string) func(*stub, *chain.Draft) {
		return func(s *stub, _ *chain.Draft) {
			s.answers["simulateTransaction"] = at(1100, map[string]any{"err": json.RawMessage(failure), "unitsConsumed": 1})
		}
	}
	native := func(amount string, sponsored bool) func(*stub, *chain.Draft) {
		return func(_ *stub, d *chain.Draft) {
			if d.Amount = money.Must(money.SOL, amount); !sponsored {
				d.FeePayer = ""
			}
		}
	}
	for name, q := range map[string]struct {
		edit func(*stub, *chain.Draft)
		want chain.Reason
	}{
		"a sequence number":            {func(_ *stub, d *chain.Draft) { d.Nonce = 1 }, chain.ReasonUnsupported},
		"an unknown asset":             {func(_ *stub, d *chain.Draft) { d.Amount = money.Must(money.TRX, "1") }, chain.ReasonUnsupported},
		"to the sender":                {func(_ *stub, d *chain.Draft) { d.To = d.From }, chain.ReasonAddress},
		"to the mint":                  {func(_ *stub, d *chain.Draft) { d.To = usdt }, chain.ReasonAddress},
		"to a token account off curve": {func(_ *stub, d *chain.Draft) { d.To = ataOf(t, bob, usdt).String() }, chain.ReasonAddress},
		"a mint of Token-2022":         {account(tether, mintAccount(6, sdk.Token2022ProgramID)), chain.ReasonUnsupported},
		"a mint with nine places":      {account(tether, mintAccount(9, sdk.TokenProgramID)), chain.ReasonUnsupported},
		"a mint that is not there":     {account(tether, nil), chain.ReasonUnsupported},
		"a wallet as mint":             {account(tether, walletAccount(5)), chain.ReasonUnsupported},
		"no token account":             {account(ataOf(t, alice, usdt), nil), chain.ReasonFunds},
		"too little":                   {account(ataOf(t, alice, usdt), holdingAccount(tether, alice, 9_999_999, 1)), chain.ReasonFunds},
		"handed away by the sender":    {account(ataOf(t, alice, usdt), holdingAccount(tether, mallory, 50_000_000, 1)), chain.ReasonFunds},
		"frozen sender":                {account(ataOf(t, alice, usdt), holdingAccount(tether, alice, 50_000_000, 2)), chain.ReasonBlocked},
		"frozen recipient":             {account(ataOf(t, bob, usdt), holdingAccount(tether, bob, 0, 2)), chain.ReasonBlocked},
		"handed away by the recipient": {account(ataOf(t, bob, usdt), holdingAccount(tether, mallory, 0, 1)), chain.ReasonAddress},
		"to a program's account":       {account(bob, accountJSON(1, sdk.StakeProgramID, make([]byte, 200))), chain.ReasonAddress},
		"to a nonce account":           {account(bob, accountJSON(1, sdk.SystemProgramID, make([]byte, 80))), chain.ReasonAddress},
		"to another token's account":   {account(bob, holdingAccount(circle, mallory, 0, 1)), chain.ReasonAddress},
		"to a frozen token account":    {account(bob, holdingAccount(tether, mallory, 0, 2)), chain.ReasonBlocked},
		"to an account of Token-2022":  {account(bob, accountJSON(1, sdk.Token2022ProgramID, make([]byte, 165))), chain.ReasonAddress},
		"a payer without SOL":          {account(payer, nil), chain.ReasonGas},
		"a payer without the rent":     {account(payer, walletAccount(2_000_000)), chain.ReasonGas},
		"a payer left with too little": {account(payer, walletAccount(2_039_280+10_040+1)), chain.ReasonGas},
		"a payer that is no wallet":    {account(payer, accountJSON(1<<40, sdk.StakeProgramID, make([]byte, 200))), chain.ReasonAddress},
		"more SOL than there is":       {native("1.1", true), chain.ReasonFunds},
		"all SOL and a fee":            {native("1", false), chain.ReasonGas},
		"SOL that leaves too little":   {native("0.9995", true), chain.ReasonFunds},
		"SOL that keeps too little":    {native("0.9995", false), chain.ReasonGas},
		"too little SOL to exist":      {native("0.000001", true), chain.ReasonReverts},
		"a simulation that fails":      {failing(`{"InstructionError":[4,{"Custom":99}]}`), chain.ReasonReverts},
		"a simulation on ice":          {failing(`{"InstructionError":[4,{"Custom":17}]}`), chain.ReasonBlocked},
		"a simulation without funds":   {failing(`{"InstructionError":[4,{"Custom":1}]}`), chain.ReasonFunds},
		"a simulation without gas":     {failing(`"InsufficientFundsForFee"`), chain.ReasonGas},
		"a simulation on a late node":  {failing(`"BlockhashNotFound"`), chain.ReasonUnavailable},
		"much computation": {func(s *stub, _ *chain.Draft) {
			s.answers["simulateTransaction"] = at(1100, map[string]any{"unitsConsumed": maxUnits + 1})
		}, chain.ReasonFeeTooHigh},
		"a high fee":      {func(s *stub, _ *chain.Draft) { s.answers["getFeeForMessage"] = at(1100, 20_000_000) }, chain.ReasonFeeTooHigh},
		"no fee":          {func(s *stub, _ *chain.Draft) { s.answers["getFeeForMessage"] = at(1100, nil) }, chain.ReasonUnavailable},
		"impossible rent": {func(s *stub, _ *chain.Draft) { s.answers["getMinimumBalanceForRentExemption"] = uint64(1) << 60 }, chain.ReasonProtocol},
		"a node that is behind": {func(s *stub, _ *chain.Draft) {
			s.blocks[1100] = map[string]any{"blockTime": stubNow.Add(-time.Hour).Unix()}
		}, chain.ReasonUnavailable},
		"a life without end": {func(s *stub, _ *chain.Draft) {
			s.answers["getLatestBlockhash"] = at(1100, map[string]any{"blockhash": hashAt(1100), "lastValidBlockHeight": 1 << 40})
		}, chain.ReasonProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := harness(t)
			c := stubbed(t, s)
			if _, err := c.Prepare(t.Context(), d); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			q.edit(s, &d)
			_, err := c.Prepare(t.Context(), d)
			wantReason(t, "prepare", err, q.want)
		})
	}
}

// A node that reports too short a life, or a block other than that of its answer, would cause a second payment. It is
// skipped for another node.
func TestAReferenceFitsItsBlock(t *testing.T) {
	const height = 1000
	for name, q := range map[string]struct {
		slot      uint64
		hash      string
		lastValid uint64
		block     map[string]any
		ok        bool
	}{
		"as it is":            {slot: 1100, hash: hashAt(1100), lastValid: height + blockhashLife, ok: true},
		"a longer rule":       {slot: 1100, hash: hashAt(1100), lastValid: height + 2*blockhashLife, ok: true},
		"a short life":        {slot: 1100, hash: hashAt(1100), lastValid: height + blockhashLife - 1},
		"a life that is over": {slot: 1100, hash: hashAt(1100), lastValid: 3},
		"an older block":      {slot: 1100, hash: hashAt(1090), lastValid: height + blockhashLife},
		"another slot":        {slot: 1099, hash: hashAt(1100), lastValid: height + blockhashLife},
		"a fork":              {slot: 1100, hash: hashAt(1100), lastValid: height + blockhashLife, block: map[string]any{"blockhash": hashAt(7)}},
		"a lower height":      {slot: 1100, hash: hashAt(1100), lastValid: height - 10 + blockhashLife},
	} {
		s, d := harness(t)
		s.answers["getLatestBlockhash"] = at(q.slot, map[string]any{"blockhash": q.hash, "lastValidBlockHeight": q.lastValid})
		s.blocks[q.slot] = q.block
		u, err := stubbed(t, s).Prepare(t.Context(), d)
		if q.ok && (err != nil || u.LastValidHeight != q.lastValid) {
			t.Errorf("%s: until height %d (%v)", name, u.LastValidHeight, err)
		}
		if !q.ok {
			wantReason(t, name, err, chain.ReasonUnavailable)
			honest, _ := harness(t)
			if u, err = stubbed(t, s, honest).Prepare(t.Context(), d); err != nil || u.LastValidHeight != height+blockhashLife {
				t.Errorf("%s beside an honest node: until height %d (%v)", name, u.LastValidHeight, err)
			}
		}
	}
}

// Answers from a state older than the blockhash say nothing about the transaction.
func TestAnswersAreNotOlderThanTheBlockhash(t *testing.T) {
	for method, value := range map[string]any{
		"getMultipleAccounts": []any{nil}, "getFeeForMessage": 10_040, "simulateTransaction": map[string]any{"err": nil, "unitsConsumed": 1},
	} {
		s, d := harness(t)
		s.answers[method] = at(1099, value)
		if method == "getMultipleAccounts" {
			s.answers[method] = at(1099, []any{nil, nil, nil, nil, nil, nil})
		}
		_, err := stubbed(t, s).Prepare(t.Context(), d)
		wantReason(t, method, err, chain.ReasonUnavailable)
	}
}

func TestHeightsAreNoSlots(t *testing.T) {
	s, d := harness(t)
	u, err := stubbed(t, s).Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	final := chain.Block{Number: 1 << 30, Height: u.LastValidHeight}
	if chain.Outlived(exchange.ChainAttempt{LastValidHeight: u.LastValidHeight}, final) {
		t.Error("a slot was used as a height")
	}
}

func TestPrepareMissing(t *testing.T) {
	s, d := harness(t)
	d.Amount = money.Must(money.USDT, "100.5")
	_, err := stubbed(t, s).Prepare(t.Context(), d)
	if e, ok := errors.AsType[*chain.Error](err); !ok || !e.Missing.Equal(money.Must(money.USDT, "0.5")) {
		t.Errorf("missing %v", err)
	}
}

func TestPreparePaysTokenAccountDirectly(t *testing.T) {
	s, d := harness(t)
	mallory := named("mallory").key()
	s.accounts[d.To] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), mallory, 5, 1)
	c := stubbed(t, s)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if !u.FeeLimit.Equal(lamports(10_040)) {
		t.Errorf("rent is in the limit %s", u.FeeLimit)
	}
	if _, err := c.Sign(u, named("alice"), named("payer")); err != nil {
		t.Error(err)
	}
	d.Amount = money.Must(money.SOL, "0.1")
	_, err = c.Prepare(t.Context(), d)
	wantReason(t, "SOL to a token account", err, chain.ReasonAddress)
}

func TestPrices(t *testing.T) {
	for name, q := range map[string]struct {
		recent []uint64
		want   uint64
	}{
		"quiet":  {nil, 1_000},
		"normal": {[]uint64{9_000, 0, 2_000, 3_000, 5_000}, 5_000},
		"busy":   {[]uint64{9_000_000, 8_000_000}, 1_000_000},
	} {
		s := newStub()
		list := []any{}
		for _, p := range q.recent {
			list = append(list, map[string]any{"slot": 1, "prioritizationFee": p})
		}
		s.answers["getRecentPrioritizationFees"] = list
		c := stubbed(t, s)
		if got, err := c.priceFor(t.Context(), c.nodes.Nodes()[0], named("alice").key()); err != nil || got != q.want {
			t.Errorf("%s: %d (%v)", name, got, err)
		}
	}
	if got := mostFee(2, 40_000, 1_001).Uint64(); got != 10_041 {
		t.Errorf("the price is not rounded up: %d", got)
	}
}

func TestFailover(t *testing.T) {
	sick, well := newStub(), newStub()
	c := stubbed(t, sick, well)
	sick.set(func() { sick.status = http.StatusTooManyRequests })
	if _, err := c.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := len(sick.asked)
	if _, err := c.Head(t.Context()); err != nil || len(sick.asked) != asked {
		t.Errorf("the failed node was queried first again (%v)", err)
	}
	well.set(func() { well.status = http.StatusBadGateway })
	_, err := c.Head(t.Context())
	wantReason(t, "both down", err, chain.ReasonUnavailable)
	if bytes.Contains([]byte(err.Error()), []byte("secret")) {
		t.Errorf("the key of the provider is in %v", err)
	}
}

func TestOtherCluster(t *testing.T) {
	s := newStub()
	s.answers["getGenesisHash"] = GenesisDevnet
	c := stubbed(t, s)
	_, err := c.Balance(t.Context(), named("alice").address(), money.SOL)
	wantReason(t, "a node of another cluster", err, chain.ReasonUnavailable)
	if s.count("getMultipleAccounts") != 0 {
		t.Error("a node of another cluster was queried")
	}
}

func TestUnreachableNodeKeepsItsKey(t *testing.T) {
	c, err := New(Config{Nodes: []Endpoint{{URL: "http://127.0.0.1:1/v1/secret?key=secret"}}, Genesis: GenesisMainnet})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Head(t.Context())
	wantReason(t, "unreachable", err, chain.ReasonUnavailable)
	if bytes.Contains([]byte(err.Error()), []byte("secret")) {
		t.Errorf("the key of the provider is in %v", err)
	}
}

// A payment in a token reaches a wallet's associated token account, or the owner of a token account with an address of its own.
func TestHoldersOfARecipient(t *testing.T) {
	s := newStub()
	c := stubbed(t, s)
	mint, bob, owner, direct := sdk.MustPublicKeyFromBase58(usdt), named("bob"), named("owner"), named("direct")
	s.accounts[direct.address()] = holdingAccount(mint, owner.key(), 5, 1)
	for name, q := range map[string]struct {
		to    testKey
		asset money.Asset
		want  []string
	}{
		"a wallet":                   {bob, money.USDT, []string{bob.address(), ataOf(t, bob.key(), usdt).String()}},
		"a token account":            {direct, money.USDT, []string{direct.address(), owner.address()}},
		"the native coin":            {bob, money.SOL, []string{bob.address()}},
		"a wallet and another token": {bob, money.USDC, []string{bob.address(), ataOf(t, bob.key(), usdc).String()}},
	} {
		if got, err := c.Holders(t.Context(), q.to.address(), q.asset); err != nil || !slices.Equal(got, q.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, q.want)
		}
	}
	s.set(func() { s.answers["getMultipleAccounts"] = at(1100, []any{}) })
	if got, err := c.Holders(t.Context(), bob.address(), money.USDT); err == nil {
		t.Errorf("without an answer: %v", got)
	}
}

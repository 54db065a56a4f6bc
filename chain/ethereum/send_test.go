package ethereum

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

func gweiOf(n string) money.Amount {
	return money.Must(money.ETH, n).DivFloor(money.ETH, money.Must(money.ETH, "1000000000").Decimal())
}

func TestBids(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t)) // tips of 0.1 to 10 gwei, at most 300 in all
	for _, v := range []struct {
		name               string
		baseFee, suggested string
		bumpTip, bumpCap   string
		tip, cap           string
		refused            bool
	}{
		{name: "the market", baseFee: "20", suggested: "1.5", tip: "1.5", cap: "41.5"},
		{name: "the floor of tips", baseFee: "1", suggested: "0.000000001", tip: "0.1", cap: "2.1"},
		{name: "the ceiling of tips", baseFee: "1", suggested: "5000", tip: "10", cap: "12"},
		{name: "less room below the ceiling", baseFee: "200", suggested: "1", tip: "1", cap: "300"},
		{name: "no room at all", baseFee: "299", suggested: "1", tip: "1", cap: "300"},
		{name: "above the ceiling", baseFee: "299.5", suggested: "1", refused: true},
		{name: "an eighth more than the bid before", baseFee: "1", suggested: "1", bumpTip: "2", bumpCap: "40", tip: "2.25", cap: "45"},
		{name: "the market where it rose more", baseFee: "40", suggested: "3", bumpTip: "2", bumpCap: "40", tip: "3", cap: "83"},
		{name: "an eighth is rounded up", baseFee: "1", suggested: "1", bumpTip: "1.000000001", bumpCap: "40.000000001", tip: "1.125000002", cap: "45.000000002"},
		{name: "the cap can't rise by an eighth", baseFee: "1", suggested: "1", bumpTip: "1", bumpCap: "280", refused: true},
		{name: "the tip can't rise by an eighth", baseFee: "1", suggested: "1", bumpTip: "9", bumpCap: "20", refused: true},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			var bump exchange.Bid
			if v.bumpTip != "" {
				bump = exchange.Bid{Tip: gweiOf(v.bumpTip), Cap: gweiOf(v.bumpCap)}
			}
			s := newStub(t)
			s.set("eth_maxPriorityFeePerGas", fixed((*hexutil.Big)(wei(gweiOf(v.suggested)))))
			base := wei(gweiOf(v.baseFee))
			conn, err := driver(t, s).nodes.Nodes()[0].client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			market, err := c.market(t.Context(), conn, base)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.decide(market, base, bump)
			if v.refused {
				wantReason(t, err, chain.ReasonFeeTooHigh, "at most")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p := got.public(); !p.Tip.Equal(gweiOf(v.tip)) || !p.Cap.Equal(gweiOf(v.cap)) {
				t.Errorf("bids %s and %s, want %s and %s gwei", p.Tip, p.Cap, v.tip, v.cap)
			}
		})
	}
	if _, err := c.decide(bid{new(big.Int), new(big.Int)}, new(big.Int), exchange.Bid{Tip: money.Must(money.TRX, "1"), Cap: money.Must(money.TRX, "1")}); chain.ReasonOf(err) != chain.ReasonUnsupported {
		t.Errorf("a bid in TRX: %v", err)
	}
}

// paying is a stub on which alice can pay bob.
func paying(t *testing.T) *stub {
	t.Helper()
	s := newStub(t)
	s.set("eth_getBalance", fixed((*hexutil.Big)(big.NewInt(1e18))))
	s.set("eth_getCode", fixed(hexutil.Bytes{}))
	s.set("eth_maxPriorityFeePerGas", fixed((*hexutil.Big)(big.NewInt(1e9))))
	s.set("eth_estimateGas", fixed(hexutil.Uint64(60_000)))
	s.set("eth_call", s.token(map[string][]byte{"balanceOf(address)": common.BigToHash(big.NewInt(1e12)).Bytes(), "transfer(address,uint256)": {}}))
	return s
}

// token is a contract with only these functions.
func (*stub) token(functions map[string][]byte) answer {
	return func(params []json.RawMessage) (any, *rpcError) {
		var m message
		if err := json.Unmarshal(params[0], &m); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		for signature, result := range functions {
			if bytes.HasPrefix(m.Input, selector(signature)) {
				return hexutil.Bytes(result), nil
			}
		}
		return nil, &rpcError{3, "execution reverted"}
	}
}

// codeOf is a chain on which one account has code.
func codeOf(account common.Address, code hexutil.Bytes) answer {
	return func(params []json.RawMessage) (any, *rpcError) {
		var of common.Address
		if err := json.Unmarshal(params[0], &of); err != nil {
			return nil, &rpcError{Message: err.Error()}
		}
		if of != account {
			return hexutil.Bytes{}, nil
		}
		return code, nil
	}
}

func word(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }

func TestPreparing(t *testing.T) {
	t.Parallel()
	usdt, coin := money.Must(money.USDT, "100"), money.Must(money.ETH, "0.5")
	balance := map[string][]byte{"balanceOf(address)": word(1e12)}
	with := func(s *stub, more map[string][]byte) answer {
		all := map[string][]byte{"transfer(address,uint256)": {}}
		for k, v := range balance {
			all[k] = v
		}
		for k, v := range more {
			all[k] = v
		}
		return s.token(all)
	}
	for _, c := range []struct {
		name   string
		amount money.Amount
		stage  func(*stub)
		want   chain.Reason
		says   string
	}{
		{"a node without simulations", usdt, func(*stub) {}, "", ""},
		{"a node that says so in another way", usdt, func(s *stub) { s.set("eth_simulateV1", fails(-32004, "method not supported")) }, "", ""},
		{"ether", coin, func(*stub) {}, "", ""},
		{"the fee switch of a node without simulations", usdt, func(s *stub) {
			s.set("eth_call", with(s, map[string][]byte{"basisPointsRate()": word(10), "maximumFee()": word(1e6)}))
		}, chain.ReasonReverts, "takes a fee"},
		{"a fee switch at nothing", usdt, func(s *stub) {
			s.set("eth_call", with(s, map[string][]byte{"basisPointsRate()": word(10), "maximumFee()": word(0)}))
		}, "", ""},
		{"a deprecated token", usdt, func(s *stub) { s.set("eth_call", with(s, map[string][]byte{"deprecated()": word(1)})) }, chain.ReasonPaused, "deprecated()"},
		{"a paused token", usdt, func(s *stub) { s.set("eth_call", with(s, map[string][]byte{"paused()": word(1)})) }, chain.ReasonPaused, "paused()"},
		{"a blocked end", usdt, func(s *stub) {
			s.set("eth_call", with(s, map[string][]byte{"isBlackListed(address)": word(1)}))
		}, chain.ReasonBlocked, "block list"},
		{"a transfer that answers false", usdt, func(s *stub) {
			s.set("eth_call", with(s, map[string][]byte{"transfer(address,uint256)": word(0)}))
		}, chain.ReasonReverts, "not true"},
		{"a transfer that answers true", usdt, func(s *stub) {
			s.set("eth_call", with(s, map[string][]byte{"transfer(address,uint256)": word(1)}))
		}, "", ""},
		{"no contract at the address", usdt, func(s *stub) { s.set("eth_call", fixed(hexutil.Bytes{})) }, chain.ReasonProtocol, "does not return balances"},
		{"a node that can't call", usdt, func(s *stub) { s.set("eth_call", fails(-32000, "missing trie node")) }, chain.ReasonUnavailable, "missing trie node"},
		{"an estimate that fails", usdt, func(s *stub) {
			s.set("eth_estimateGas", fails(3, "execution reverted: no"))
		}, chain.ReasonReverts, "execution reverted: no"},
		{"an estimate that is absurd", usdt, func(s *stub) { s.set("eth_estimateGas", fixed(hexutil.Uint64(2_000_000))) }, chain.ReasonFeeTooHigh, "2000000 gas"},
		{"a contract that refuses ether", coin, func(s *stub) {
			s.set("eth_getCode", codeOf(bob, hexutil.Bytes{0xfe}))
			s.set("eth_estimateGas", fails(-32000, "invalid opcode: INVALID"))
		}, chain.ReasonReverts, "invalid opcode"},
		{"a contract that takes ether", coin, func(s *stub) { s.set("eth_getCode", codeOf(bob, hexutil.Bytes{0x00})) }, "", ""},
		{"a sender that is a contract", coin, func(s *stub) { s.set("eth_getCode", codeOf(alice, hexutil.Bytes{0x60})) }, chain.ReasonAddress, "is a contract"},
		{"a sender of a token that is a contract", usdt, func(s *stub) { s.set("eth_getCode", codeOf(alice, hexutil.Bytes{0xef, 0x00})) }, chain.ReasonAddress, "is a contract"},
		{"a sender that delegated its key (EIP-7702)", coin, func(s *stub) {
			s.set("eth_getCode", codeOf(alice, append(hexutil.Bytes{0xef, 0x01, 0x00}, bob.Bytes()...)))
		}, "", ""},
		{"a fee above the ceiling", usdt, func(s *stub) {
			s.set("eth_maxPriorityFeePerGas", fixed((*hexutil.Big)(big.NewInt(1e9))))
			s.set("eth_estimateGas", fixed(hexutil.Uint64(900_000)))
			b := blockAt(100)
			b["baseFeePerGas"] = (*hexutil.Big)(big.NewInt(100e9))
			s.set("eth_getBlockByNumber", fixed(b))
		}, chain.ReasonFeeTooHigh, "could cost"},
		{"no coin for the fee", usdt, func(s *stub) { s.set("eth_getBalance", fixed((*hexutil.Big)(big.NewInt(1)))) }, chain.ReasonGas, "needs"},
		{"a block without a base fee", usdt, func(s *stub) {
			b := blockAt(100)
			delete(b, "baseFeePerGas")
			s.set("eth_getBlockByNumber", fixed(b))
		}, chain.ReasonProtocol, "no base fee"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := paying(t)
			c.stage(s)
			u, err := driver(t, s).Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: c.amount}, Nonce: 9})
			if c.want != "" {
				wantReason(t, err, c.want, c.says)
				return
			}
			if err != nil || u.Nonce != 9 || u.Bid.IsZero() || !u.FeeLimit.Positive() || u.RefBlock != hashAt(100).Hex() {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
}

// A simulation with events overrides all other sources.
func TestSimulationsMustShowTheMovement(t *testing.T) {
	t.Parallel()
	simulation := func(status uint64, result []byte, logs ...*types.Log) answer {
		call := map[string]any{"status": hexutil.Uint64(status), "returnData": hexutil.Bytes(result), "gasUsed": "0x1", "logs": logs}
		if status == 0 {
			call["error"] = map[string]any{"code": 3, "message": "execution reverted: frozen"}
		}
		return fixed([]any{map[string]any{"calls": []any{call}}})
	}
	const amount = 100_000_000
	for name, c := range map[string]struct {
		answer answer
		want   chain.Reason
		says   string
	}{
		"the movement":          {simulation(1, nil, transferLog(usdtContract, alice, bob, amount)), "", ""},
		"less":                  {simulation(1, nil, transferLog(usdtContract, alice, bob, amount-1), transferLog(usdtContract, alice, usdcContract, 1)), chain.ReasonReverts, "takes a fee"},
		"nothing":               {simulation(1, nil), chain.ReasonReverts, "takes a fee"},
		"another token's event": {simulation(1, nil, transferLog(usdcContract, alice, bob, amount)), chain.ReasonReverts, "takes a fee"},
		"false":                 {simulation(1, word(0), transferLog(usdtContract, alice, bob, amount)), chain.ReasonReverts, "not true"},
		"a revert":              {simulation(0, nil), chain.ReasonReverts, "frozen"},
		"no calls":              {fixed([]any{}), chain.ReasonProtocol, "gave 0 blocks"},
		"a node in trouble":     {fails(-32000, "header not found"), chain.ReasonUnavailable, "header not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := paying(t)
			s.set("eth_simulateV1", c.answer)
			_, err := driver(t, s).Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: money.Must(money.USDT, "100")}})
			wantReason(t, err, c.want, c.says)
		})
	}
}

func TestIntentsAreCheckedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	s := paying(t)
	c := driver(t, s)
	one := money.Must(money.USDT, "1")
	for name, d := range map[string]chain.Draft{
		"nobody":           {Transfer: chain.Transfer{From: alice.Hex(), To: common.Address{}.Hex(), Amount: one}},
		"the token itself": {Transfer: chain.Transfer{From: alice.Hex(), To: usdtContract.Hex(), Amount: one}},
		"another token":    {Transfer: chain.Transfer{From: alice.Hex(), To: usdcContract.Hex(), Amount: one}},
		"itself":           {Transfer: chain.Transfer{From: alice.Hex(), To: strings.ToLower(alice.Hex()), Amount: one}},
		"nothing":          {Transfer: chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: money.Zero(money.USDT)}},
		"less":             {Transfer: chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: one.Neg()}},
		"a fee payer":      {Transfer: chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: one}, FeePayer: bob.Hex()},
	} {
		if u, err := c.Prepare(t.Context(), d); err == nil {
			t.Errorf("%s was prepared: %+v", name, u)
		}
	}
	if s.called("eth_chainId") > 0 {
		t.Error("the node was asked")
	}
}

// prepared is a transaction of a fresh key on a stub.
func prepared(t *testing.T, c *Client, k testKey, amount money.Amount) chain.Unsigned {
	t.Helper()
	u, err := c.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: k.address().Hex(), To: bob.Hex(), Amount: amount}, Nonce: 3})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSigningIsGuarded(t *testing.T) {
	t.Parallel()
	c, k := driver(t, paying(t)), newKey(t)
	u := prepared(t, c, k, money.Must(money.USDT, "100"))
	signed, err := c.Sign(u, k)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Sign(u, k); err != nil || !bytes.Equal(again.Raw, signed.Raw) {
		t.Errorf("signing twice gives different bytes: %v", err)
	}
	// rebuild changes the fields and makes payload and body match them, as an attacker would.
	rebuild := func(edit func(*envelope)) chain.Unsigned {
		t.Helper()
		e, err := decode(u.Body[common.AddressLength:])
		if err != nil {
			t.Fatal(err)
		}
		edit(&e)
		fields, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		out := u
		out.Body, out.Payload = append(k.address().Bytes(), fields...), crypto.Keccak256(fields)
		return out
	}
	for name, bad := range map[string]chain.Unsigned{
		"another chain":     rebuild(func(e *envelope) { e.ChainID = big.NewInt(1) }),
		"another number":    rebuild(func(e *envelope) { e.Nonce++ }),
		"another tip":       rebuild(func(e *envelope) { e.GasTipCap = new(big.Int).Add(e.GasTipCap, big.NewInt(1)) }),
		"another cap":       rebuild(func(e *envelope) { e.GasFeeCap = new(big.Int).Add(e.GasFeeCap, big.NewInt(1)) }),
		"more gas":          rebuild(func(e *envelope) { e.Gas++ }),
		"another contract":  rebuild(func(e *envelope) { e.To = usdcContract }),
		"ether besides":     rebuild(func(e *envelope) { e.Value = big.NewInt(1) }),
		"another call":      rebuild(func(e *envelope) { e.Data = append(bytes.Clone(e.Data), 0) }),
		"another recipient": rebuild(func(e *envelope) { e.Data = transferCall(alice, u.Transfer.Amount) }),
		"an access list":    rebuild(func(e *envelope) { e.AccessList = types.AccessList{{Address: bob}} }),
		"no body":           {Transfer: u.Transfer, Payload: u.Payload},
	} {
		if got, err := c.Sign(bad, k); err == nil {
			t.Errorf("%s: signed as %s", name, got.TxID)
		}
	}
	dear := rebuild(func(e *envelope) { e.Gas = 900_000_000 })
	e, err := decode(dear.Body[common.AddressLength:])
	if err != nil {
		t.Fatal(err)
	}
	dear.FeeLimit = eth(new(big.Int).Mul(new(big.Int).SetUint64(e.Gas), e.GasFeeCap))
	if _, err := c.Sign(dear, k); err == nil || !strings.Contains(err.Error(), "ceiling") {
		t.Errorf("a fee above the ceiling: %v", err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"short":  func(s []byte) []byte { return s[:64] },
		"high s": func(s []byte) []byte { return highS(s) },
		"v of a legacy wallet": func(s []byte) []byte {
			s[64] += 27
			return s
		},
		"another digest's": func([]byte) []byte {
			out, _ := crypto.Sign(crypto.Keccak256([]byte("x")), k.PrivateKey)
			return out
		},
	} {
		crooked := k
		crooked.change = change
		if got, err := c.Sign(u, crooked); err == nil {
			t.Errorf("a %s signature: signed as %s", name, got.TxID)
		}
	}
	if _, err := c.Sign(u, k, k); err == nil {
		t.Error("two keys signed")
	}
}

// highS turns a signature into the other valid one for the same bytes.
func highS(s []byte) []byte {
	n := crypto.S256().Params().N
	out := bytes.Clone(s)
	copy(out[32:64], common.BigToHash(new(big.Int).Sub(n, new(big.Int).SetBytes(s[32:64]))).Bytes())
	out[64] ^= 1
	return out
}

// Responses of go-ethereum and anvil, as recorded from both.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"already known":                           "known ALREADY_KNOWN",
		"transaction already imported":            "known ALREADY_KNOWN",
		"AlreadyKnown":                            "known ALREADY_KNOWN",
		"nonce too low: next nonce 1, tx nonce 0": "rejected NONCE_TOO_LOW",
		"nonce too low":                           "rejected NONCE_TOO_LOW",
		"OldNonce":                                "rejected NONCE_TOO_LOW",
		"replacement transaction underpriced":     "rejected UNDERPRICED",
		"transaction underpriced: tip needed 1, tip permitted 0": "rejected UNDERPRICED",
		"insufficient funds for gas * price + value":             "rejected INSUFFICIENT_FUNDS",
		"intrinsic gas too low: gas 20000":                       "rejected GAS_TOO_LOW",
		"tx fee (1.26 ether) exceeds the configured cap":         "rejected FEE_CAP",
		"max fee per gas less than block base fee":               "rejected FEE_BELOW_BASE",
		"invalid chain id for signer: have 1 want 2":             "rejected INVALID_CHAIN",
		"unknown transaction type":                               "unknown -32000",
		"txpool is full":                                         "unknown -32000",
		"limit exceeded":                                         "unknown -32000",
	} {
		got := readRefusal(&rpcError{-32000, text})
		if s := fmt.Sprintf("%s %s", got.State, got.Code); s != want || got.Text != text {
			t.Errorf("%q is read as %s, want %s", text, s, want)
		}
	}
}

func TestBroadcastsGoToEveryNode(t *testing.T) {
	t.Parallel()
	first, second := paying(t), paying(t)
	c, k := driver(t, first, second), newKey(t)
	signed, err := c.Sign(prepared(t, c, k, money.Must(money.ETH, "0.1")), k)
	if err != nil {
		t.Fatal(err)
	}
	id := common.HexToHash(signed.TxID)
	send := func(a, b answer, want chain.BroadcastState) {
		t.Helper()
		first.set("eth_sendRawTransaction", a)
		second.set("eth_sendRawTransaction", b)
		got, err := c.Broadcast(t.Context(), signed.Raw)
		if err != nil || got.State != want {
			t.Errorf("%+v, %v, want %s", got, err, want)
		}
	}
	send(fixed(id), fails(-32000, "nonce too low"), chain.BroadcastAccepted)
	send(fails(-32000, "nonce too low"), fixed(id), chain.BroadcastAccepted)
	send(fails(-32000, "nonce too low"), fails(-32000, "already known"), chain.BroadcastKnown)
	send(fails(-32005, "limit exceeded"), fails(-32000, "nonce too low"), chain.BroadcastUnknown)
	send(fails(-32003, "nonce too low"), fails(-32000, "underpriced"), chain.BroadcastRejected)
	send(fixed(common.Hash{1}), fails(-32000, "underpriced"), chain.BroadcastUnknown)
	if first.called("eth_sendRawTransaction") != 6 || second.called("eth_sendRawTransaction") != 6 {
		t.Errorf("asked %d and %d times", first.called("eth_sendRawTransaction"), second.called("eth_sendRawTransaction"))
	}
	first.fail(http.StatusBadGateway)
	second.fail(http.StatusTooManyRequests)
	if got, err := c.Broadcast(t.Context(), signed.Raw); err != nil || got.State != chain.BroadcastUnknown || got.Code != "NO_ANSWER" {
		t.Errorf("%+v, %v", got, err)
	}
	other, err := New(Config{ChainID: 1, Nodes: []Endpoint{{URL: first.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Broadcast(t.Context(), signed.Raw); err == nil {
		t.Error("bytes of another chain were sent")
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := Config{ChainID: 1, Nodes: []Endpoint{{URL: "https://node.example"}}}
	for want, edit := range map[string]func(*Config){
		"ChainID":           func(c *Config) { c.ChainID = 0 },
		"Nodes: between":    func(c *Config) { c.Nodes = nil },
		"Nodes: an address": func(c *Config) { c.Nodes = []Endpoint{{URL: "ipc:/geth"}} },
		"not a token":       func(c *Config) { c.Tokens = map[money.Asset]string{money.ETH: usdtContract.Hex()} },
		"Tokens[USDT]":      func(c *Config) { c.Tokens = map[money.Asset]string{money.USDT: "0x0"} },
		"the same address": func(c *Config) {
			c.Tokens = map[money.Asset]string{money.USDT: usdtContract.Hex(), money.USDC: strings.ToLower(usdtContract.Hex())}
		},
		"in ETH":           func(c *Config) { c.Fees.Most = money.Must(money.TRX, "1") },
		"TipFloor <=":      func(c *Config) { c.Fees.TipFloor = money.Must(money.ETH, "1") },
		"Fees.Margin":      func(c *Config) { c.Fees.Margin = money.Must(money.ETH, "0.5").Decimal() },
		"must not be nega": func(c *Config) { c.RetryAfter = -1 },
	} {
		c := good
		edit(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
	cheap := good
	cheap.Fees.CapCeiling = gweiOf("0.05")
	if _, err := New(cheap); err != nil {
		t.Errorf("a ceiling below the default tips: %v", err)
	}
}

// Providers put keys into addresses: none of our texts may contain one.
func TestEndpointsPrintNoKey(t *testing.T) {
	t.Parallel()
	e := Endpoint{URL: "https://user:secret@node.example/v3/secret?key=secret"}
	plainText, err := e.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(e), fmt.Sprintf("%+v %#v %s", e, e, e), string(plainText), slog.AnyValue(e).Resolve().String()} {
		if strings.Contains(s, "secret") {
			t.Errorf("printed as %s", s)
		}
	}
	s := newStub(t)
	s.fail(http.StatusBadGateway)
	c, err := New(Config{ChainID: 1, Nodes: []Endpoint{{URL: s.URL + "/v3/secret"}, {URL: "https://127.0.0.1:1/v3/secret"}, {URL: "ws://127.0.0.1:1/v3/secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Head(t.Context())
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), "secret") {
			t.Errorf("printed as %v", cause)
		}
	}
	_, err = c.Locate(t.Context(), someID)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("printed as %v", err)
	}
}

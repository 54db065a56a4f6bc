package tron

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/shopspring/decimal"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// prepared is an unsigned TRX transfer, made without a network call.
func prepared(t testing.TB, c *Client, from string) chain.Unsigned {
	t.Helper()
	want := chain.Transfer{From: from, To: bob, Amount: money.Must(money.TRX, "1")}
	in, err := c.intent(want)
	if err != nil {
		t.Fatal(err)
	}
	block := chain.Block{Number: 1, ID: strings.Repeat("ab", hashLength), Time: stubNow}
	raw, err := c.envelope(block, block, DefaultTransactionLife)
	if err != nil {
		t.Fatal(err)
	}
	message := &core.TransferContract{OwnerAddress: in.from.full(), ToAddress: in.to.full(), Amount: want.Amount.Units().Int64()}
	if err := setContract(raw, core.Transaction_Contract_TransferContract, message); err != nil {
		t.Fatal(err)
	}
	u, err := unsigned(want, raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNextNodeIsAskedAndTheFailedOneLater(t *testing.T) {
	first, second := &stub{head: 10, down: true}, &stub{head: 20}
	c := stubbed(t, []*stub{first, second}, []*stub{{head: 5}})
	for range 3 {
		h, err := c.Head(t.Context())
		if err != nil || h.Latest.Number != 20 {
			t.Fatalf("%+v, %v", h, err)
		}
	}
	if first.questions() != 2 { // a read is sent again when a node is unavailable
		t.Errorf("the failed node was queried %d times", first.questions())
	}
	second.set(func() { second.down = true })
	first.set(func() { first.down = false })
	if h, err := c.Head(t.Context()); err != nil || h.Latest.Number != 10 {
		t.Errorf("%+v, %v", h, err)
	}
	first.set(func() { first.down = true })
	if _, err := c.Head(t.Context()); chain.ReasonOf(err) != chain.ReasonUnavailable {
		t.Errorf("%v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Head(cancelled); err == nil {
		t.Error("a cancelled question was answered")
	}
}

func TestAPIKeyIsSent(t *testing.T) {
	s := &stub{head: 3}
	e := serve(t, s)
	e.APIKey = "the-key"
	c, err := New(Config{FullNodes: []Endpoint{e}, SolidityNodes: []Endpoint{e}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Head(t.Context()); err != nil || s.key != "the-key" {
		t.Errorf("key %q, %v", s.key, err)
	}
}

func TestLocateAbsence(t *testing.T) {
	find := offline(t)
	id, _, tx := signedFixture(t, find)
	included := func(head int64) *stub {
		s := &stub{head: head}
		s.tx = proto.CloneOf(tx)
		s.tx.Ret = []*core.Transaction_Result{{ContractRet: core.Transaction_Result_SUCCESS}}
		s.info = &core.TransactionInfo{Id: idBytes(t, id), BlockNumber: 7, Receipt: &core.ResourceReceipt{}}
		return s
	}
	for name, q := range map[string]struct {
		full, solid []*stub
		stage       chain.Stage
		final       uint64
		reason      chain.Reason
	}{
		"no node has it: the lowest final head counts":    {[]*stub{{head: 50}}, []*stub{{head: 40}, {head: 30}}, chain.StageAbsent, 30, ""},
		"the second solidity node has it":                 {[]*stub{{head: 50}}, []*stub{{head: 30}, included(40)}, chain.StageFinal, 40, ""},
		"the second full node has it":                     {[]*stub{{head: 50}, included(50)}, []*stub{{head: 30}}, chain.StageIncluded, 30, ""},
		"it waits in the second full node":                {[]*stub{{head: 50}, {head: 50, pending: tx}}, []*stub{{head: 30}}, chain.StagePending, 30, ""},
		"in a block counts for more than waiting":         {[]*stub{{head: 50, pending: tx}, included(50)}, []*stub{{head: 30}}, chain.StageIncluded, 30, ""},
		"a solidity node is down":                         {[]*stub{{head: 50}}, []*stub{{down: true}, {head: 30}}, chain.StageAbsent, 30, ""},
		"all solidity nodes are down":                     {[]*stub{{head: 50}}, []*stub{{down: true}}, "", 0, chain.ReasonUnavailable},
		"all full nodes are down":                         {[]*stub{{down: true}, {down: true}}, []*stub{{head: 30}}, "", 0, chain.ReasonUnavailable},
		"a receipt without its transaction":               {[]*stub{{head: 50, info: &core.TransactionInfo{Id: idBytes(t, id), BlockNumber: 7}}}, []*stub{{head: 30}}, "", 0, chain.ReasonUnavailable},
		"a receipt without its transaction at the second": {[]*stub{{head: 50}, {head: 50, info: &core.TransactionInfo{Id: idBytes(t, id), BlockNumber: 7}}}, []*stub{{head: 30}}, "", 0, chain.ReasonUnavailable},
		"a full node that keeps no receipts":              {[]*stub{{head: 50}, {head: 50, tx: tx}}, []*stub{{head: 30}}, chain.StagePending, 30, ""},
		"a solidity node that keeps no receipts":          {[]*stub{{head: 50}}, []*stub{{head: 30}, {head: 30, tx: tx}}, "", 0, chain.ReasonUnavailable},
		"another transaction than asked for": {[]*stub{{head: 50}}, []*stub{{head: 30}, {
			head: 30, tx: &core.Transaction{RawData: &core.TransactionRaw{Timestamp: 1}}, info: &core.TransactionInfo{Id: idBytes(t, id), BlockNumber: 7},
		}}, "", 0, chain.ReasonProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			c := stubbed(t, q.full, q.solid)
			l, err := c.Locate(t.Context(), id)
			if chain.ReasonOf(err) != q.reason || l.Stage != q.stage {
				t.Fatalf("%+v, %v", l, err)
			}
			if err == nil && l.Head.Final.Number != q.final {
				t.Errorf("final head %d, want %d", l.Head.Final.Number, q.final)
			}
			if l.Stage == chain.StageFinal || l.Stage == chain.StageIncluded {
				if !l.OK || l.Code != "SUCCESS" || len(l.Transfers) != 1 || l.Block.Number != 7 || l.Transfers[0].TxID != id {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

func TestRevertedBalanceIsNotZero(t *testing.T) {
	s := &stub{head: 3}
	c := stubbed(t, []*stub{{head: 3}}, []*stub{s})
	failed := success(make([]byte, 32))
	failed.Transaction.Ret[0].Ret = core.Transaction_Result_FAILED
	messaged := success(make([]byte, 32))
	messaged.Result.Message = []byte("REVERT opcode executed")
	none := success(nil)
	none.ConstantResult = nil
	for name, answer := range map[string]*api.TransactionExtention{
		"only the result says failed":    failed,
		"only the message shows it":      messaged,
		"execution error":                {Result: &api.Return{Code: api.Return_CONTRACT_EXE_ERROR, Message: []byte("boom")}},
		"no contract there":              {Result: &api.Return{Code: api.Return_CONTRACT_VALIDATE_ERROR, Message: []byte("no contract")}},
		"a short word":                   success([]byte{1}),
		"no word":                        none,
		"an impossible amount":           success(bytes.Repeat([]byte{0xff}, 32)),
		"an empty message of a balancer": {},
		"constant calls are off":         {Result: &api.Return{Code: api.Return_CONTRACT_VALIDATE_ERROR, Message: []byte("this node does not support constant")}},
	} {
		s.set(func() { s.constant = func(*core.TriggerSmartContract) *api.TransactionExtention { return answer } })
		if b, err := c.Balance(t.Context(), alice, money.USDT); err == nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
	s.set(func() {
		s.constant = func(*core.TriggerSmartContract) *api.TransactionExtention {
			return success(money.Must(money.USDT, "12.5").Units().FillBytes(make([]byte, 32)))
		}
	})
	if b, err := c.Balance(t.Context(), alice, money.USDT); err != nil || !b.Amount.Equal(money.Must(money.USDT, "12.5")) || b.At.Number != 3 {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestTransfersNeedEveryReceipt(t *testing.T) {
	c := offline(t)
	id, _, tx := signedFixture(t, c)
	block := func() *api.BlockExtention {
		b := (&stub{}).headBlock(7)
		good := proto.CloneOf(tx)
		good.Ret = []*core.Transaction_Result{{ContractRet: core.Transaction_Result_SUCCESS}}
		b.Transactions = []*api.TransactionExtention{{Transaction: good, Txid: idBytes(t, id)}}
		return b
	}
	info := &core.TransactionInfo{Id: idBytes(t, id), BlockNumber: 7, Receipt: &core.ResourceReceipt{}}
	elsewhere := proto.CloneOf(info)
	elsewhere.BlockNumber = 8
	for name, q := range map[string]struct {
		node   *stub
		reason chain.Reason
	}{
		"complete":                     {&stub{head: 9, block: block(), infos: &api.TransactionInfoList{TransactionInfo: []*core.TransactionInfo{info}}}, ""},
		"a node without receipts":      {&stub{head: 9, block: block()}, chain.ReasonUnavailable},
		"a receipt of another block":   {&stub{head: 9, block: block(), infos: &api.TransactionInfoList{TransactionInfo: []*core.TransactionInfo{elsewhere}}}, chain.ReasonUnavailable},
		"a node without the block":     {&stub{head: 9}, chain.ReasonUnavailable},
		"another block than asked for": {&stub{head: 9, block: (&stub{}).headBlock(6)}, chain.ReasonProtocol},
	} {
		got, err := stubbed(t, []*stub{q.node}, []*stub{q.node}).Transfers(t.Context(), 7)
		if chain.ReasonOf(err) != q.reason || (err == nil && len(got.Movements) != 1) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestFeeLimit(t *testing.T) {
	c := offline(t)
	for _, q := range []struct {
		energy, price int64
		want          string
		reason        chain.Reason
	}{
		{0, 100, "1", ""},             // the floor
		{14_393, 100, "2.015020", ""}, // times 1.4, and no more: what is not burnt stays in the wallet
		{64_285, 100, "8.999900", ""},
		{130_285, 420, "76.607580", ""},                // at 2023's price, times 1.4
		{130_285, 548, "99.954652", ""},                // just below the cap
		{130_285, 549, "", chain.ReasonFeeTooHigh},     // just above
		{1 << 62, 1 << 40, "", chain.ReasonFeeTooHigh}, // no overflow
		{-1, 100, "", chain.ReasonProtocol},
	} {
		got, err := c.energyLimit(prices{energy: q.price}, q.energy)
		if chain.ReasonOf(err) != q.reason || (err == nil && sunOf(got).Cmp(money.Must(money.TRX, q.want)) != 0) {
			t.Errorf("%d energy at %d: %d, %v; want %s", q.energy, q.price, got, err, q.want)
		}
	}
}

func TestStakedEnergyIsNotBurnt(t *testing.T) {
	c := offline(t)
	p := prices{energy: 100, bandwidth: 1000, activation: 1_000_000, newAccount: 100_000}
	if got := c.energyBurn(p, resources{energy: 10_000}, 10_000, 30_000_000); got != 4_000*100 {
		t.Errorf("burns %d", got)
	}
	if got := c.energyBurn(p, resources{energy: 14_000}, 10_000, 30_000_000); got != 0 {
		t.Errorf("burns %d", got)
	}
	for _, q := range []struct {
		staked, free, bytes, cost, activation int64
	}{
		{0, 600, 345, 0, 1_100_000}, {0, 344, 345, 345_000, 1_100_000}, {345, 0, 345, 0, 1_000_000}, {200, 200, 345, 345_000, 1_100_000},
	} {
		r := resources{stakedBandwidth: q.staked, freeBandwidth: q.free}
		if cost, activation := bandwidthCost(p, r, q.bytes), activationCost(p, r, q.bytes); cost != q.cost || activation != q.activation {
			t.Errorf("%+v: %d and %d", q, cost, activation)
		}
	}
}

func TestPrepareRefusesAStaleOrUnresponsiveNode(t *testing.T) {
	want := chain.Transfer{From: alice, To: bob, Amount: money.Must(money.TRX, "1")}
	complete := &core.ChainParameters{ChainParameter: []*core.ChainParameters_ChainParameter{
		{Key: "getEnergyFee", Value: 100},
		{Key: "getTransactionFee", Value: 1000},
		{Key: "getCreateNewAccountFeeInSystemContract", Value: 1_000_000},
		{Key: "getCreateAccountFee", Value: 100_000},
		{Key: "getMultiSignFee", Value: 1_000_000},
		{Key: "getUpdateAccountPermissionFee", Value: 100_000_000},
	}}
	partial := &core.ChainParameters{ChainParameter: complete.ChainParameter[1:]}
	free := &core.ChainParameters{ChainParameter: append([]*core.ChainParameters_ChainParameter{{Key: "getEnergyFee"}}, complete.ChainParameter[1:]...)}
	rich := &core.Account{Address: mustParse(t, alice).full(), Balance: 1e9}
	for name, q := range map[string]struct {
		node   *stub
		reason chain.Reason
	}{
		"good":                  {&stub{head: 5, params: complete, account: rich}, ""},
		"behind":                {&stub{head: 5, params: complete, account: rich, lag: time.Hour}, chain.ReasonUnavailable},
		"ahead":                 {&stub{head: 5, params: complete, account: rich, lag: -time.Hour}, chain.ReasonUnavailable},
		"without prices":        {&stub{head: 5, account: rich}, chain.ReasonUnavailable},
		"with a price too few":  {&stub{head: 5, params: partial, account: rich}, chain.ReasonUnavailable},
		"with energy for free":  {&stub{head: 5, params: free, account: rich}, chain.ReasonProtocol},
		"without the account":   {&stub{head: 5, params: complete}, chain.ReasonFunds},
		"recipient is contract": {&stub{head: 5, params: complete, account: &core.Account{Address: []byte{1}, Type: core.AccountType_Contract}}, chain.ReasonAddress},
	} {
		u, err := stubbed(t, []*stub{q.node}, []*stub{{head: 4, lag: time.Minute}}).Prepare(t.Context(), chain.Draft{Transfer: want})
		if chain.ReasonOf(err) != q.reason {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !u.ExpiresAt.Equal(stubNow.Add(DefaultTransactionLife)) {
			t.Errorf("%s: expires at %s", name, u.ExpiresAt)
		}
	}
}

func mustParse(t testing.TB, s string) accountID {
	t.Helper()
	id, err := parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestPrepareRefusesSenselessRecipients(t *testing.T) {
	c := offline(t)
	for name, q := range map[string]struct {
		to     string
		amount money.Amount
		reason chain.Reason
	}{
		"nobody":              {accountID{}.String(), money.Must(money.USDT, "1"), chain.ReasonAddress},
		"the token itself":    {usdt, money.Must(money.USDT, "1"), chain.ReasonAddress},
		"the token, in TRX":   {usdt, money.Must(money.TRX, "1"), chain.ReasonAddress},
		"nothing":             {bob, money.Zero(money.USDT), chain.ReasonUnsupported},
		"less than nothing":   {bob, money.Must(money.USDT, "1").Neg(), chain.ReasonUnsupported},
		"more than 64 bits":   {bob, money.Must(money.USDT, "9999999999999.000000"), chain.ReasonUnsupported},
		"USDC while off":      {bob, money.Must(money.USDC, "1"), chain.ReasonUnsupported},
		"a coin of elsewhere": {bob, money.Must(money.ETH, "1"), chain.ReasonUnsupported},
		"no amount":           {bob, money.Amount{}, chain.ReasonUnsupported},
	} {
		if _, err := c.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: alice, To: q.to, Amount: q.amount}}); chain.ReasonOf(err) != q.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Supports(money.USDC); err == nil || !strings.Contains(err.Error(), "issuer stopped") {
		t.Errorf("USDC: %v", err)
	}
}

func TestStampsAreUnique(t *testing.T) {
	c := offline(t)
	seen := make(chan int64, 1000)
	for range 10 {
		go func() {
			for range 100 {
				seen <- c.stamp()
			}
		}()
	}
	all := map[int64]bool{}
	for range 1000 {
		all[<-seen] = true
	}
	if len(all) != 1000 {
		t.Errorf("%d different timestamps of 1000", len(all))
	}
}

func TestSignRefusesHiddenExtras(t *testing.T) {
	c := offline(t)
	key := testKey{unhex(t, "2d8f68944bdbfbc0769542fba8fc2d2a3de67393334471624364c7006da2aa54")}
	from, err := c.Address(key.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*core.TransactionRaw){
		"a memo":               func(r *core.TransactionRaw) { r.Data = []byte("memo") },
		"a second contract":    func(r *core.TransactionRaw) { r.Contract = append(r.Contract, r.Contract[0]) },
		"another permission":   func(r *core.TransactionRaw) { r.Contract[0].PermissionId = 2 },
		"a fee without bounds": func(r *core.TransactionRaw) { r.FeeLimit = 1e12 },
		"a provider":           func(r *core.TransactionRaw) { r.Contract[0].Provider = []byte("x") },
		"another kind":         func(r *core.TransactionRaw) { r.Contract[0].Type = core.Transaction_Contract_TriggerSmartContract },
	} {
		u := prepared(t, c, from)
		raw := &core.TransactionRaw{}
		if err := proto.Unmarshal(u.Body, raw); err != nil {
			t.Fatal(err)
		}
		edit(raw)
		changed, err := unsigned(u.Transfer, raw, 0)
		if err != nil {
			t.Fatal(err)
		}
		counted := &countingKey{testKey: key}
		if signed, err := c.Sign(changed, counted); err == nil || counted.signatures > 0 {
			t.Errorf("%s: signed %s", name, hex.EncodeToString(signed.Raw))
		}
	}
}

// countingKey counts its signatures.
type countingKey struct {
	testKey
	signatures int
}

func (k *countingKey) Sign(digest []byte) ([]byte, error) {
	k.signatures++
	return k.testKey.Sign(digest)
}

// A key never signs bytes that don't match the transfer: even a discarded signature exists.
func TestSignChecksBeforeTheKeySigns(t *testing.T) {
	c := offline(t)
	key := testKey{unhex(t, "2d8f68944bdbfbc0769542fba8fc2d2a3de67393334471624364c7006da2aa54")}
	from, err := c.Address(key.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*chain.Unsigned){
		"another payload": func(u *chain.Unsigned) { u.Payload = make([]byte, 32) },
		"another expiry":  func(u *chain.Unsigned) { u.ExpiresAt = u.ExpiresAt.Add(time.Millisecond) },
		"other bytes":     func(u *chain.Unsigned) { u.Body = []byte("x") },
	} {
		u := prepared(t, c, from)
		edit(&u)
		counted := &countingKey{testKey: key}
		if _, err := c.Sign(u, counted); err == nil || counted.signatures > 0 {
			t.Errorf("%s: %d signatures, %v", name, counted.signatures, err)
		}
	}
	counted := &countingKey{testKey: key}
	if _, err := c.Sign(prepared(t, c, alice), counted); chain.ReasonOf(err) != chain.ReasonAddress || counted.signatures > 0 {
		t.Errorf("the sender is not the key's: %d signatures, %v", counted.signatures, err)
	}
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	good := Config{FullNodes: []Endpoint{{Address: "a:1"}}, SolidityNodes: []Endpoint{{Address: "a:1"}}}
	for name, edit := range map[string]func(*Config){
		"no full node":          func(c *Config) { c.FullNodes = nil },
		"no solidity node":      func(c *Config) { c.SolidityNodes = nil },
		"too many nodes":        func(c *Config) { c.FullNodes = make([]Endpoint, maxNodes+1) },
		"an empty address":      func(c *Config) { c.FullNodes = []Endpoint{{}} },
		"a short life":          func(c *Config) { c.TransactionLife = time.Second },
		"a life over a day":     func(c *Config) { c.TransactionLife = 24 * time.Hour },
		"a negative timeout":    func(c *Config) { c.CallTimeout = -1 },
		"a margin below one":    func(c *Config) { c.Fees.Margin = decimal.RequireFromString("0.9") },
		"a cap below the floor": func(c *Config) { c.Fees.Cap = money.Must(money.TRX, "0.5") },
		"a cap in USDT":         func(c *Config) { c.Fees.Cap = money.Must(money.USDT, "100") },
		"a bad contract":        func(c *Config) { c.Tokens = map[money.Asset]string{money.USDT: "x"} },
		"a currency as token":   func(c *Config) { c.Tokens = map[money.Asset]string{money.KES: usdt} },
		"one contract twice":    func(c *Config) { c.Tokens = map[money.Asset]string{money.USDT: usdt, money.USDC: usdt} },
	} {
		c := good
		edit(&c)
		if client, err := New(c); err == nil {
			client.Close()
			t.Errorf("%s was accepted", name)
		}
	}
	client, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}

package ethereum

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"kivuko/chain"
	"kivuko/exchange/money"
)

const someID = "0x00000000000000000000000000000000000000000000000000000000000000aa"

func wantReason(t *testing.T, err error, want chain.Reason, says string) {
	t.Helper()
	if chain.ReasonOf(err) != want || (err != nil && !strings.Contains(err.Error(), says)) {
		t.Errorf("got %v, want %s with %q", err, want, says)
	}
}

func TestANodeOfAnotherChainIsNeverUsed(t *testing.T) {
	t.Parallel()
	wrong, right := newStub(t), newStub(t)
	wrong.set("eth_chainId", fixed(hexutil.Uint64(1)))
	wrong.heads(5000, 4000)
	c := driver(t, wrong, right)
	head, err := c.Head(t.Context())
	if err != nil || head.Latest.Number != 100 {
		t.Errorf("%+v, %v", head, err)
	}
	if l, err := c.Locate(t.Context(), someID); err != nil || l.Stage != chain.StageAbsent || l.Head.Final.Number != 90 {
		t.Errorf("%+v, %v", l, err)
	}
	if wrong.called("eth_getBlockByNumber")+wrong.called("eth_getTransactionByHash") > 0 {
		t.Errorf("the node of another chain was queried: %v", wrong.calls)
	}
	_, err = driver(t, wrong).Head(t.Context())
	wantReason(t, err, chain.ReasonUnavailable, "on the chain 1 and not on 31337")
}

func TestFailingNodesAreAskedLast(t *testing.T) {
	t.Parallel()
	bad, good := newStub(t), newStub(t)
	bad.fail(http.StatusTooManyRequests)
	c := driver(t, bad, good)
	for range 3 {
		if _, err := c.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := bad.called("eth_chainId"); n != 1 {
		t.Errorf("the failing node was asked %d times before the other", n)
	}
	good.fail(http.StatusInternalServerError)
	bad.fail(0)
	if _, err := c.Head(t.Context()); err != nil {
		t.Errorf("the first node is healthy again: %v", err)
	}
	bad.fail(http.StatusBadGateway)
	_, err := c.Head(t.Context())
	wantReason(t, err, chain.ReasonUnavailable, "HTTP status")
}

// A provider that redirects its clients, or never ends its response, counts as not responding.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	target := newStub(t)
	moved := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		spaces := bytes.Repeat([]byte{' '}, 1<<20)
		for range maxAnswerBytes>>20 + 8 {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	for _, s := range []*httptest.Server{moved, endless} {
		_, err := driver(t, &stub{URL: s.URL}).Head(t.Context())
		wantReason(t, err, chain.ReasonUnavailable, "node http://127.0.0.1")
	}
	if target.called("eth_chainId") > 0 {
		t.Error("a redirection was followed")
	}
}

func TestAbsenceTakesEveryNode(t *testing.T) {
	t.Parallel()
	ahead, behind := newStub(t), newStub(t)
	ahead.heads(100, 90)
	behind.heads(80, 70)
	c := driver(t, ahead, behind)
	if l, err := c.Locate(t.Context(), someID); err != nil || l.Stage != chain.StageAbsent || l.Head.Final.Number != 70 {
		t.Errorf("missed by both: %+v, %v; want the lower final block", l, err)
	}
	behind.set("eth_getTransactionByHash", fixed(transaction{Hash: common.HexToHash(someID)}))
	if l, err := c.Locate(t.Context(), someID); err != nil || l.Stage != chain.StagePending {
		t.Errorf("known to one: %+v, %v", l, err)
	}
	behind.mine(transaction{Hash: common.HexToHash(someID), From: alice, To: &bob}, receiptOf(common.HexToHash(someID), 75, 1))
	if l, err := c.Locate(t.Context(), someID); err != nil || l.Stage != chain.StageIncluded || l.Block.Number != 75 {
		t.Errorf("included at one: %+v, %v", l, err)
	}
	behind.fail(http.StatusInternalServerError)
	if l, err := c.Locate(t.Context(), someID); err != nil || l.Stage != chain.StageAbsent || l.Head.Final.Number != 90 {
		t.Errorf("missed by the one that answers: %+v, %v", l, err)
	}
	ahead.fail(http.StatusInternalServerError)
	_, err := c.Locate(t.Context(), someID)
	wantReason(t, err, chain.ReasonUnavailable, "no node answered")
}

// A node may still have the receipt of an undone block, or only a part of a transaction.
func TestHalfAnAnswerIsNoAnswer(t *testing.T) {
	t.Parallel()
	id := common.HexToHash(someID)
	known := transaction{Hash: id, From: alice, To: &bob}
	number := hexutil.Uint64(95)
	for name, c := range map[string]struct {
		stage func(*stub)
		want  chain.Reason
	}{
		"a receipt of a block that is not at its height": {func(s *stub) {
			r := receiptOf(id, 95, 1)
			r.BlockHash = common.HexToHash("0xdead")
			s.mine(known, r)
		}, chain.ReasonUnavailable},
		"a receipt without its transaction": {func(s *stub) {
			s.set("eth_getTransactionReceipt", fixed(receiptOf(id, 95, 1)))
		}, chain.ReasonUnavailable},
		"a transaction in a block without its receipt": {func(s *stub) {
			in := known
			in.BlockNumber = &number
			s.set("eth_getTransactionByHash", fixed(in))
		}, chain.ReasonUnavailable},
		"another transaction's receipt": {func(s *stub) {
			s.mine(known, receiptOf(common.HexToHash("0xbb"), 95, 1))
		}, chain.ReasonProtocol},
		"a receipt of a block that does not exist": {func(s *stub) { s.mine(known, receiptOf(id, 500, 1)) }, chain.ReasonUnavailable},
		"a final block above the newest":           {func(s *stub) { s.heads(80, 90) }, chain.ReasonUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			c.stage(s)
			l, err := driver(t, s).Locate(t.Context(), someID)
			if chain.ReasonOf(err) != c.want {
				t.Errorf("%+v, %v, want %s", l, err, c.want)
			}
		})
	}
}

// A node that returns impossible data about a transaction prevents the proof that it is absent.
func TestAbsenceIsNotProvenAgainstAnOddNode(t *testing.T) {
	t.Parallel()
	odd, plain := newStub(t), newStub(t)
	odd.mine(transaction{Hash: common.HexToHash(someID), From: alice, To: &bob}, receiptOf(common.HexToHash("0xbb"), 95, 1))
	_, err := driver(t, odd, plain).Locate(t.Context(), someID)
	wantReason(t, err, chain.ReasonProtocol, "asked for transaction")
}

func TestLocationsAreRead(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	id := common.HexToHash(someID)
	paid := transferLog(usdtContract, alice, bob, 5_000_000)
	s.mine(transaction{Hash: id, From: alice, To: &usdtContract}, receiptOf(id, 90, 1, paid))
	l, err := driver(t, s).Locate(t.Context(), someID)
	if err != nil {
		t.Fatal(err)
	}
	if l.Stage != chain.StageFinal || !l.OK || l.Code != "SUCCESS" || !l.Fee.Equal(money.Must(money.ETH, "0.0001")) || len(l.Transfers) != 1 {
		t.Errorf("%+v", l)
	}
	s.mine(transaction{Hash: id, From: alice, To: &usdtContract}, receiptOf(id, 91, 0, paid))
	if l, err = driver(t, s).Locate(t.Context(), someID); err != nil || l.Stage != chain.StageIncluded || l.OK || l.Code != "REVERTED" || len(l.Transfers) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestTransfersOfABlock(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	ids := make([]common.Hash, 5)
	txs := make([]transaction, len(ids))
	for i := range ids {
		ids[i] = common.BigToHash(big.NewInt(int64(i + 1)))
		txs[i] = transaction{Hash: ids[i], From: alice, To: &bob, Value: (*hexutil.Big)(big.NewInt(0))}
	}
	txs[1].Value = (*hexutil.Big)(big.NewInt(1e18))
	txs[2].Value = (*hexutil.Big)(big.NewInt(1e18))
	nft := transferLog(usdtContract, alice, bob, 1)
	nft.Topics = append(nft.Topics, common.Hash{1})
	odd := transferLog(usdtContract, alice, bob, 1)
	odd.Data = append(odd.Data, 0)
	dirty := transferLog(usdcContract, alice, bob, 3)
	dirty.Topics[2][0] = 0xff
	receipts := types.Receipts{
		receiptOf(ids[0], 95, 1, transferLog(bob, alice, bob, 9), nft, transferLog(usdtContract, alice, bob, 0), transferLog(usdtContract, alice, bob, 7), dirty),
		receiptOf(ids[1], 95, 1),
		receiptOf(ids[2], 95, 0, transferLog(usdtContract, alice, bob, 7)),
		receiptOf(ids[3], 95, 1, odd),
		receiptOf(ids[4], 95, 1, transferLog(usdcContract, bob, alice, 2)),
	}
	s.fill(txs, receipts)
	got, err := driver(t, s).Transfers(t.Context(), 95)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range got.Movements {
		lines = append(lines, fmt.Sprintf("%s %d %s %s", m.TxID[64:], m.Index, m.Amount.Asset(), m.Amount))
	}
	want := "01 3 USDT 0.000007; 01 4 USDC 0.000003; 02 1048576 ETH 1.000000000000000000; 05 0 USDC 0.000002"
	if strings.Join(lines, "; ") != want || got.Block.Number != 95 || got.Block.Parent == "" {
		t.Errorf("got %s, want %s", strings.Join(lines, "; "), want)
	}
	if m := got.Movements[1]; m.To != bob.Hex() || m.From != alice.Hex() {
		t.Errorf("an address with a dirty word is %s", m.To)
	}
	if len(got.Unreadable) != 1 || got.Unreadable[0].TxID != ids[3].Hex() {
		t.Errorf("unreadable: %+v", got.Unreadable)
	}
}

// A provider that leaves out data must never look like a block without deposits.
func TestReceiptsMustBeWhole(t *testing.T) {
	t.Parallel()
	id := common.HexToHash(someID)
	txs := []transaction{{Hash: id, From: alice, To: &usdtContract}}
	whole := types.Receipts{receiptOf(id, 95, 1, transferLog(usdtContract, alice, bob, 7))}
	for name, answer := range map[string]answer{
		"no event":          fixed(types.Receipts{receiptOf(id, 95, 1)}),
		"no receipt":        fixed(types.Receipts{}),
		"another amount":    fixed(types.Receipts{receiptOf(id, 95, 1, transferLog(usdtContract, alice, bob, 8))}),
		"nothing":           fixed(nil),
		"another's receipt": fixed(types.Receipts{receiptOf(common.HexToHash("0xbb"), 95, 1, transferLog(usdtContract, alice, bob, 7))}),
		"not offered":       fails(-32601, "no such method"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.fill(txs, whole)
			s.set("eth_getBlockReceipts", answer)
			got, err := driver(t, s).Transfers(t.Context(), 95)
			if chain.ReasonOf(err) != chain.ReasonUnavailable {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestNonces(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	counts := map[common.Hash]uint64{hashAt(100): 7, hashAt(90): 5}
	s.set("eth_getTransactionCount", func(params []json.RawMessage) (any, *rpcError) {
		var at struct{ BlockHash common.Hash }
		if err := json.Unmarshal(params[1], &at); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		return hexutil.Uint64(counts[at.BlockHash]), nil
	})
	c := driver(t, s)
	n, err := c.Nonces(t.Context(), alice.Hex())
	if err != nil || n.Latest != 7 || n.Final != 5 || n.Head.Latest.Number != 100 || n.Head.Final.Number != 90 {
		t.Errorf("%+v, %v", n, err)
	}
	counts[hashAt(100)] = 4
	_, err = c.Nonces(t.Context(), alice.Hex())
	wantReason(t, err, chain.ReasonProtocol, "has sent 5 transactions by block 90 and 4 by block 100")
	_, err = c.Nonces(t.Context(), "nobody")
	wantReason(t, err, chain.ReasonAddress, "must start with 0x")
}

func TestAStaleNodeIsNotUsed(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	c := driver(t, s)
	c.config.Now = func() time.Time { return time.Now().Add(time.Hour) }
	_, err := c.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: money.Must(money.USDT, "1")}})
	wantReason(t, err, chain.ReasonUnavailable, "behind")
}

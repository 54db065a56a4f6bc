package ethereum

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	maxBatch        = 1_000
	maxBatchAnswer  = 32 << 20
	maxRequestBytes = 8 << 20
	maxLogs         = 1_000 // addresses or topics of one filter, as public nodes have it
)

// exposed are the namespaces that a public node serves. The others (debug, admin, miner) would let a
// client do what no provider allows.
var exposed = map[string]bool{"eth": true, "net": true, "web3": true, "txpool": true}

// rawSender is the part of go-ethereum's API that takes signed transactions.
type rawSender interface {
	SendRawTransaction(ctx context.Context, input hexutil.Bytes) (common.Hash, error)
}

// serveAPIs registers go-ethereum's own API, and on top of it the one method that the fault switches
// stand before: of two methods of one name the later one is served.
func (n *Node) serveAPIs() error {
	n.rpc = rpc.NewServer()
	n.rpc.SetBatchLimits(maxBatch, maxBatchAnswer)
	n.rpc.SetHTTPBodyLimit(maxRequestBytes)
	apis := append(n.eth.APIs(),
		rpc.API{Namespace: "eth", Service: filters.NewFilterAPI(filters.NewFilterSystem(n.eth.APIBackend, filters.Config{LogQueryLimit: maxLogs}))},
		rpc.API{Namespace: "web3", Service: &web3API{}},
	)
	for _, api := range apis {
		if !exposed[api.Namespace] || api.Authenticated {
			continue
		}
		if s, ok := api.Service.(rawSender); ok {
			n.send = s
		}
		if err := n.rpc.RegisterName(api.Namespace, api.Service); err != nil {
			return err
		}
	}
	if n.send == nil {
		return errors.New("go-ethereum's API has no eth_sendRawTransaction")
	}
	return n.rpc.RegisterName("eth", &sendAPI{n})
}

// web3API says what this is.
type web3API struct{}

// ClientVersion is web3_clientVersion.
func (*web3API) ClientVersion() string { return "kivuko-dev/go-ethereum" }

// Sha3 is web3_sha3: Keccak-256, for historical reasons under that name.
func (*web3API) Sha3(input hexutil.Bytes) hexutil.Bytes { return crypto.Keccak256(input) }

// lostKey marks a request whose answer is to get lost, with a *bool.
type lostKey struct{}

// rpcHandler serves HTTP and WebSocket on one port. A lost answer ends the connection without a byte,
// as a proxy that dies does.
func (n *Node) rpcHandler() http.Handler {
	socket := n.rpc.WebsocketHandler(nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			socket.ServeHTTP(w, r)
			return
		}
		lost := new(bool)
		r = r.WithContext(context.WithValue(r.Context(), lostKey{}, lost))
		n.rpc.ServeHTTP(&losable{w, lost}, r)
		if *lost {
			panic(http.ErrAbortHandler)
		}
	})
}

// losable is an answer that is thrown away once it is lost.
type losable struct {
	http.ResponseWriter
	lost *bool
}

// Write passes bytes on unless the answer is lost.
func (l *losable) Write(b []byte) (int, error) {
	if *l.lost {
		return len(b), nil
	}
	return l.ResponseWriter.Write(b)
}

// errLost is what a WebSocket gets, which can't lose a single answer.
var errLost = errors.New("the connection was lost after the request was sent")

// busyError is what providers answer to a client that asks too much (EIP-1474).
type busyError struct{}

func (busyError) Error() string { return "limit exceeded" }

// ErrorCode is the JSON-RPC code.
func (busyError) ErrorCode() int { return -32005 }

// sendAPI takes transactions from clients, faults included.
type sendAPI struct{ node *Node }

// SendRawTransaction is eth_sendRawTransaction.
func (s *sendAPI) SendRawTransaction(ctx context.Context, input hexutil.Bytes) (common.Hash, error) {
	id, err := s.take(ctx, input)
	if delay := s.node.CurrentFaults().AnswerDelay; delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return common.Hash{}, ctx.Err()
		case <-timer.C:
		}
	}
	if err != nil || !s.node.faults.lose() {
		return id, err
	}
	lost, ok := ctx.Value(lostKey{}).(*bool)
	if !ok {
		return common.Hash{}, errLost
	}
	*lost = true
	return id, nil
}

// take pools a transaction, or does what a fault switch says in its place.
func (s *sendAPI) take(ctx context.Context, input hexutil.Bytes) (common.Hash, error) {
	n := s.node
	if n.faults.busy() {
		return common.Hash{}, busyError{}
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(input); err != nil {
		n.log.Info("broadcast refused", "reason", err)
		return common.Hash{}, err
	}
	if !n.knows(tx.Hash()) && n.faults.drop() {
		n.log.Info("transaction dropped on purpose", "tx", tx.Hash())
		return tx.Hash(), nil
	}
	id, err := n.pool(ctx, tx, input)
	if err != nil {
		n.log.Info("broadcast refused", "tx", tx.Hash(), "reason", err)
		return id, err
	}
	if tx.To() != nil && tokens()[*tx.To()] != "" && n.faults.fail() {
		n.sealing.Lock()
		n.doomed[id] = *tx.To()
		n.sealing.Unlock()
	}
	return id, nil
}

// pool adds a transaction to the pool, and returns when the pool has decided whether it can go into the next block.
//
// go-ethereum's own API leaves that to the background. There the decision may meet a reset of the pool, which takes an
// account's next number from the chain and not from its waiting transactions: then all but the first of these stay out of
// every block until the account sends another one. Resets happen under sealing. What the pool does not take is left to
// go-ethereum's API, which has the checks and the errors.
func (n *Node) pool(ctx context.Context, tx *types.Transaction, input hexutil.Bytes) (common.Hash, error) {
	if tx.Protected() && feeOf(tx).Cmp(maxFee) <= 0 {
		n.sealing.Lock()
		err := n.eth.TxPool().Add([]*types.Transaction{tx}, true)[0]
		n.sealing.Unlock()
		if err == nil {
			return tx.Hash(), nil
		}
	}
	return n.send.SendRawTransaction(ctx, input)
}

// maxFee is the most that go-ethereum's API lets a transaction cost, in wei.
var maxFee = big.NewInt(params.Ether)

// feeOf is the most that a transaction may cost, in wei.
func feeOf(tx *types.Transaction) *big.Int {
	return new(big.Int).Mul(tx.GasPrice(), new(big.Int).SetUint64(tx.Gas()))
}

// knows reports whether a transaction waits or is in a block.
func (n *Node) knows(id common.Hash) bool {
	if n.eth.TxPool().Has(id) {
		return true
	}
	tx, _ := n.eth.BlockChain().GetCanonicalTransaction(id)
	return tx != nil
}

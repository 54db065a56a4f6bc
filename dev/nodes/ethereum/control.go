package ethereum

import (
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

// Faults are the switches a test turns to make the node misbehave in ways real nodes do. The counters
// run down as broadcasts come in, or for HoldBlocks as blocks are made. The zero value is a node that
// behaves. The node's own transactions are never affected.
type Faults struct {
	// AnswerDelay is how long each broadcast waits for its answer; the transaction is pooled before.
	AnswerDelay time.Duration `json:"answer_delay_ns"`
	// HoldBlocks next blocks are empty, however much waits.
	HoldBlocks int `json:"hold_blocks"`
	// DropNext transactions are accepted and forgotten.
	DropNext int `json:"drop_next"`
	// BusyNext broadcasts are refused as over the limit, and not pooled.
	BusyNext int `json:"busy_next"`
	// LoseNext broadcasts are pooled, and the connection then ends without an answer.
	LoseNext int `json:"lose_next"`
	// FailNext calls of a token are mined and fail.
	FailNext int `json:"fail_next"`
}

const (
	maxAnswerDelay = 10 * time.Minute
	maxFaultCount  = 1_000_000
)

func (f *Faults) validate() error {
	for _, c := range []struct {
		field string
		n     int
	}{
		{"hold_blocks", f.HoldBlocks},
		{"drop_next", f.DropNext},
		{"busy_next", f.BusyNext},
		{"lose_next", f.LoseNext},
		{"fail_next", f.FailNext},
	} {
		if c.n < 0 || c.n > maxFaultCount {
			return fmt.Errorf("%s: want 0 to %d", c.field, maxFaultCount)
		}
	}
	if f.AnswerDelay < 0 || f.AnswerDelay > maxAnswerDelay {
		return fmt.Errorf("answer_delay_ns: want 0 to %s", maxAnswerDelay)
	}
	return nil
}

type faultSwitches struct {
	mu sync.Mutex
	Faults
}

// use runs one counter down and reports whether it was above zero.
func (f *faultSwitches) use(counter *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *counter == 0 {
		return false
	}
	*counter--
	return true
}

func (f *faultSwitches) holdBlock() bool { return f.use(&f.HoldBlocks) }
func (f *faultSwitches) drop() bool      { return f.use(&f.DropNext) }
func (f *faultSwitches) busy() bool      { return f.use(&f.BusyNext) }
func (f *faultSwitches) lose() bool      { return f.use(&f.LoseNext) }
func (f *faultSwitches) fail() bool      { return f.use(&f.FailNext) }

// SetFaults replaces all fault switches.
func (n *Node) SetFaults(f Faults) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("ethereum: %w", err)
	}
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	n.faults.Faults = f
	return nil
}

// CurrentFaults returns the switches as they stand, counters run down.
func (n *Node) CurrentFaults() Faults {
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	return n.faults.Faults
}

// ResetFaults makes the node behave again: all switches off, blocks made.
func (n *Node) ResetFaults() {
	_ = n.SetFaults(Faults{}) // the zero value is valid
	n.sealing.Lock()
	clear(n.doomed)
	n.sealing.Unlock()
	n.Resume()
}

// SetBlockInterval changes the time between blocks while there is work; zero stops making them.
func (n *Node) SetBlockInterval(d time.Duration) error {
	if err := checkInterval(d); err != nil {
		return fmt.Errorf("ethereum: block interval: %w", err)
	}
	n.idle.Store(max(n.idle.Load(), int64(d)))
	n.rhythm.SetInterval(d)
	return nil
}

// Pause stops the making of blocks by time; MineBlock still works.
func (n *Node) Pause() { n.rhythm.Pause() }

// Resume undoes Pause.
func (n *Node) Resume() { n.rhythm.Resume() }

// Fund sends wei from the faucet, and fails where the recipient refuses them.
func (n *Node) Fund(to common.Address, wei *big.Int) (common.Hash, error) {
	if wei == nil || wei.Sign() <= 0 || wei.BitLen() > maxWeiBits {
		return common.Hash{}, errors.New("ethereum: fund: the amount must be positive and below the faucet's")
	}
	gas, err := n.gasOf(to, wei)
	if err != nil {
		return common.Hash{}, fmt.Errorf("ethereum: fund: %s refuses the payment: %w", to, err)
	}
	return n.pay(&types.DynamicFeeTx{Gas: gas, To: &to, Value: wei})
}

// gasOf is what a payment of the faucet takes. A contract, such as a Safe, may take more than a wallet, or refuse.
func (n *Node) gasOf(to common.Address, wei *big.Int) (uint64, error) {
	state, err := n.eth.BlockChain().State()
	if err != nil || state.GetCodeSize(to) == 0 {
		return params.TxGas, err
	}
	client := rpc.DialInProc(n.rpc)
	defer client.Close()
	var estimate hexutil.Uint64
	err = client.Call(&estimate, "eth_estimateGas", map[string]any{"from": FaucetAddress(), "to": to, "value": (*hexutil.Big)(wei)})
	return uint64(estimate) + callGas, err
}

// maxWeiBits keeps a request within what the faucet could ever hold.
const maxWeiBits = 89

// FundToken sends units of a token from the faucet.
func (n *Node) FundToken(token, to common.Address, units *big.Int) (common.Hash, error) {
	if tokens()[token] == "" || units == nil || units.Sign() <= 0 || units.BitLen() > 256 {
		return common.Hash{}, errors.New("ethereum: fund token: want one of the chain's tokens and a positive amount")
	}
	return n.pay(&types.DynamicFeeTx{Gas: callGas, To: &token, Data: Calldata("transfer(address,uint256)", to.Bytes(), units.Bytes())})
}

// pay pools a transaction of the faucet, past the fault switches.
func (n *Node) pay(tx *types.DynamicFeeTx) (common.Hash, error) {
	n.sealing.Lock()
	defer n.sealing.Unlock()
	if err := n.eth.TxPool().Sync(); err != nil {
		return common.Hash{}, err
	}
	tx.Nonce = n.eth.TxPool().PoolNonce(FaucetAddress())
	signed, err := n.sign(key(FaucetKey), tx)
	if err != nil {
		return common.Hash{}, err
	}
	// In step with the pool: the next payment reads its number there.
	if err := errors.Join(n.eth.TxPool().Add([]*types.Transaction{signed}, true)...); err != nil {
		return common.Hash{}, fmt.Errorf("ethereum: fund: %w", err)
	}
	return signed.Hash(), nil
}

// tokens names the chain's tokens by contract.
func tokens() map[common.Address]string {
	return map[common.Address]string{USDTAddress(): "USDT", USDCAddress(): "USDC"}
}

// Issue calls a token as its issuer, in a block of its own, and fails where the call does.
func (n *Node) Issue(token common.Address, signature string, args ...[]byte) error {
	n.sealing.Lock()
	defer n.sealing.Unlock()
	nonce, err := n.issuerNonce()
	if err != nil {
		return err
	}
	tx, err := n.sign(key(IssuerKey), &types.DynamicFeeTx{Nonce: nonce, Gas: callGas, To: &token, Data: Calldata(signature, args...)})
	if err != nil {
		return err
	}
	block, err := n.seal(n.head(), content{exact: []*types.Transaction{tx}})
	if err != nil {
		return fmt.Errorf("ethereum: %s: %w", signature, err)
	}
	receipts := n.eth.BlockChain().GetReceiptsByHash(block.Hash())
	if len(receipts) != 1 || receipts[0].Status != types.ReceiptStatusSuccessful {
		return fmt.Errorf("ethereum: %s failed", signature)
	}
	return nil
}

// SetBlocked puts an address on a token's block list, or takes it off.
func (n *Node) SetBlocked(token, address common.Address, blocked bool) error {
	signature := map[bool]map[string]string{
		true:  {"USDT": "addBlackList(address)", "USDC": "blacklist(address)"},
		false: {"USDT": "removeBlackList(address)", "USDC": "unBlacklist(address)"},
	}[blocked][tokens()[token]]
	if signature == "" {
		return errors.New("ethereum: block: want one of the chain's tokens")
	}
	return n.Issue(token, signature, address.Bytes())
}

// SetTokenPaused stops or restarts a token.
func (n *Node) SetTokenPaused(token common.Address, paused bool) error {
	if tokens()[token] == "" {
		return errors.New("ethereum: pause a token: want one of the chain's tokens")
	}
	if paused {
		return n.Issue(token, "pause()")
	}
	return n.Issue(token, "unpause()")
}

// SetTokenFee turns USDT's fee on transfers on or off: in hundredths of a per cent, below 20, and at
// most so many whole USDT, below 50.
func (n *Node) SetTokenFee(basisPoints, atMost uint64) error {
	return n.Issue(USDTAddress(), "setParams(uint256,uint256)",
		new(big.Int).SetUint64(basisPoints).Bytes(), new(big.Int).SetUint64(atMost).Bytes())
}

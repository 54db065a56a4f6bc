package ethereum

import (
	"bytes"
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange/money"
)

// intent is a transfer whose parts were checked.
type intent struct {
	from, to common.Address
	amount   money.Amount
}

// Prepare builds an unsigned transaction with the draft's number. It refuses one that could not succeed now, with a reason
// that an officer can act on. Later changes of the chain show in receipts. All reads are at one block.
func (c *Client) Prepare(ctx context.Context, d chain.Draft) (chain.Unsigned, error) {
	if d.FeePayer != "" {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonUnsupported, "on Ethereum the sender pays the fee")
	}
	if d.Owners != nil {
		return c.prepareOpening(ctx, d)
	}
	in, err := c.intent(d.Transfer)
	if err != nil {
		return chain.Unsigned{}, err
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.Unsigned, error) {
		latest, err := c.newest(ctx, conn)
		if err != nil {
			return chain.Unsigned{}, err
		}
		return c.prepare(ctx, conn, d, in, latest)
	})
}

// newest reads the newest block, which must be fresh enough to prepare on.
func (c *Client) newest(ctx context.Context, conn *rpc.Client) (header, error) {
	latest, err := readHeader(ctx, conn, tagLatest)
	if err != nil {
		return header{}, err
	}
	if err := endpoints.Fresh(latest.block(), c.config.Now(), c.config.MaxHeadAge); err != nil {
		return header{}, err
	}
	if latest.BaseFee == nil {
		return header{}, chain.Errorf(chain.ReasonProtocol, "block %d has no base fee", uint64(latest.Number))
	}
	return latest, nil
}

func (c *Client) prepare(ctx context.Context, conn *rpc.Client, d chain.Draft, in intent, latest header) (chain.Unsigned, error) {
	m, block := c.message(in), latest.block()
	if err := sends(ctx, conn, in.from, block); err != nil {
		return chain.Unsigned{}, err
	}
	coins, err := c.holding(ctx, conn, money.ETH, in.from, block)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if err := c.affordable(ctx, conn, in, m, coins, block); err != nil {
		return chain.Unsigned{}, err
	}
	gas, err := c.gas(ctx, conn, in, m, block)
	if err != nil {
		return chain.Unsigned{}, err
	}
	u, err := c.offer(ctx, conn, m, gas, coins, chain.ExecutionDraft{Nonce: d.Nonce, Bump: d.Bump}, latest)
	u.Transfer = d.Transfer
	return u, err
}

// delegation is the prefix of the code of an account whose key has delegated it to a contract (EIP-7702). The key still signs
// its transactions.
var delegation = []byte{0xef, 0x01, 0x00}

// sends refuses a sender whose transactions no key can sign (EIP-3607): a contract, such as a Safe.
func sends(ctx context.Context, conn *rpc.Client, from common.Address, b chain.Block) error {
	var code hexutil.Bytes
	if err := conn.CallContext(ctx, &code, "eth_getCode", from, at(b)); err != nil {
		return err
	}
	if len(code) > 0 && !bytes.HasPrefix(code, delegation) {
		return chain.Errorf(chain.ReasonAddress, "the sender %s is a contract, for which no key can sign a transaction", from)
	}
	return nil
}

// offer makes the transaction of a call, with a number and a bid, and refuses one that its sender, who has so many coins,
// can't pay.
func (c *Client) offer(
	ctx context.Context, conn *rpc.Client, m message, gas uint64, coins money.Amount, d chain.ExecutionDraft, latest header,
) (chain.Unsigned, error) {
	baseFee := (*big.Int)(latest.BaseFee)
	market, err := c.market(ctx, conn, baseFee)
	if err != nil {
		return chain.Unsigned{}, err
	}
	b, err := c.decide(market, baseFee, d.Bump)
	if err != nil {
		return chain.Unsigned{}, err
	}
	cost, err := c.costs(gas, b)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if need := cost.Add(eth(m.value())); coins.Cmp(need) < 0 {
		lacks := short(chain.ReasonGas, m.From, need, coins)
		lacks.Cost = cost
		return chain.Unsigned{}, lacks
	}
	e := envelope{
		ChainID: c.chainID(), Nonce: d.Nonce, GasTipCap: b.tip, GasFeeCap: b.cap, Gas: gas,
		To: m.To, Value: m.value(), Data: m.Input,
	}
	fields, err := e.encode()
	if err != nil {
		return chain.Unsigned{}, err
	}
	return chain.Unsigned{
		Payload: crypto.Keccak256(fields), Body: append(m.From.Bytes(), fields...), Nonce: d.Nonce, RefBlock: latest.Hash.Hex(),
		Bid: b.public(), FeeLimit: cost,
	}, nil
}

// intent checks a transfer before any network call.
func (c *Client) intent(t chain.Transfer) (intent, error) {
	in := intent{amount: t.Amount}
	var err error
	if in.from, err = parse(t.From); err != nil {
		return in, chain.Errorf(chain.ReasonAddress, "the sender %s", err)
	}
	if in.to, err = parse(t.To); err != nil {
		return in, chain.Errorf(chain.ReasonAddress, "the recipient %s", err)
	}
	if err := c.Supports(t.Amount.Asset()); err != nil {
		return in, err
	}
	n := t.Amount.Units()
	switch {
	case in.from == in.to:
		return in, chain.Errorf(chain.ReasonAddress, "sender and recipient are the same account")
	case burns(in.to):
		return in, chain.Errorf(chain.ReasonAddress, "the recipient %s", errAddressBurns)
	case n.Sign() <= 0 || n.BitLen() > maxAmountBits(t.Amount.Asset()):
		return in, chain.Errorf(chain.ReasonUnsupported, "an amount of %s can't be sent", t.Amount)
	}
	if asset, token := c.assets[in.to]; token {
		return in, chain.Errorf(chain.ReasonAddress, "the recipient is the %s contract itself; money sent there is lost", asset)
	}
	return in, nil
}

// message is the call that carries out a transfer.
func (c *Client) message(in intent) message {
	if contract, token := c.contracts[in.amount.Asset()]; token {
		return message{From: in.from, To: contract, Input: transferCall(in.to, in.amount)}
	}
	return message{From: in.from, To: in.to, Value: (*hexutil.Big)(in.amount.Units())}
}

// affordable refuses what the sender can't pay or the token would not carry out.
func (c *Client) affordable(ctx context.Context, conn *rpc.Client, in intent, m message, coins money.Amount, b chain.Block) error {
	asset := in.amount.Asset()
	if asset == money.ETH {
		if coins.Cmp(in.amount) < 0 {
			return short(chain.ReasonFunds, in.from, in.amount, coins)
		}
		return nil
	}
	if err := refusesTransfers(ctx, conn, asset, m.To, in.from, in.to, b); err != nil {
		return err
	}
	held, err := tokenBalance(ctx, conn, asset, m.To, in.from, b)
	if err != nil {
		return err
	}
	if held.Cmp(in.amount) < 0 {
		return short(chain.ReasonFunds, in.from, in.amount, held)
	}
	return c.simulate(ctx, conn, m, in, b)
}

// gas is the gas limit of the transaction. Ether to an account without code takes a fixed amount; everything else is
// estimated with the real sender and recipient, and refused if the estimate fails.
func (c *Client) gas(ctx context.Context, conn *rpc.Client, in intent, m message, b chain.Block) (uint64, error) {
	if in.amount.Asset() == money.ETH {
		var code hexutil.Bytes
		if err := conn.CallContext(ctx, &code, "eth_getCode", in.to, at(b)); err != nil {
			return 0, err
		}
		if len(code) == 0 {
			return plainGas, nil
		}
	}
	return c.estimate(ctx, conn, m, b)
}

// estimate is the gas limit of a call.
func (c *Client) estimate(ctx context.Context, conn *rpc.Client, m message, b chain.Block) (uint64, error) {
	var estimate hexutil.Uint64
	err := conn.CallContext(ctx, &estimate, "eth_estimateGas", m, at(b))
	if text, yes := reverted(err); yes {
		return 0, chain.Errorf(chain.ReasonReverts, "%s refuses the transfer: %s", m.To, text)
	}
	if err != nil {
		return 0, err
	}
	return c.withMargin(uint64(estimate))
}

// short is the error for a balance that is too low, with the missing amount.
func short(r chain.Reason, holder common.Address, need, has money.Amount) *chain.Error {
	e := chain.Errorf(r, "%s needs %s %s and has %s", holder, need, need.Asset(), has)
	e.Missing = need.Sub(has)
	return e
}

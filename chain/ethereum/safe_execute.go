package ethereum

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// PrepareExecution builds the payer's transaction that carries out a SafeTx. Of the signatures, as many as are needed are used.
// Its transfer is what the payer itself sends to the account: nothing. What became of the SafeTx is known by Outcome.
//
// One that replaces an earlier bid must be made whatever became of the SafeTx meanwhile: its number of the payer blocks all that follow until
// some transaction uses it. Its gas is that of the first.
func (c *Client) PrepareExecution(
	ctx context.Context, j chain.Joint, signatures []chain.OwnerSignature, d chain.ExecutionDraft,
) (chain.Execution, error) {
	account, t, err := c.rebuilt(j)
	if err != nil {
		return chain.Execution{}, err
	}
	if err := c.verified(j, signatures); err != nil {
		return chain.Execution{}, err
	}
	payer, err := parse(d.Payer)
	if err != nil {
		return chain.Execution{}, chain.Errorf(chain.ReasonAddress, "the payer %s", err)
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.Execution, error) {
		latest, err := c.newest(ctx, conn)
		if err != nil {
			return chain.Execution{}, err
		}
		if !d.Bump.IsZero() {
			return c.outbid(ctx, conn, message{From: payer, To: account}, j, signatures, d, latest)
		}
		s, err := readSafe(ctx, conn, account, latest.block())
		if err != nil {
			return chain.Execution{}, err
		}
		enough, err := s.accepted(account, j.Sequence, signatures)
		if err != nil {
			return chain.Execution{}, err
		}
		m := message{From: payer, To: account, Input: t.execution(joined(enough))}
		if err := c.executes(ctx, conn, m, j, latest.block()); err != nil {
			return chain.Execution{}, err
		}
		u, err := c.offerCall(ctx, conn, m, d, latest)
		u.Transfer = executionTransfer(m)
		return chain.Execution{Unsigned: u, Joint: j, Signatures: enough}, err
	})
}

// outbid makes the call of an execution again with a higher bid and the gas that it had. It asks for no consent of the account: an execution
// that another one has made impossible fails, costs its fee, and frees the payer's number.
func (c *Client) outbid(
	ctx context.Context, conn *rpc.Client, m message, j chain.Joint, signatures []chain.OwnerSignature, d chain.ExecutionDraft, latest header,
) (chain.Execution, error) {
	enough, err := ordered(j.Quorum.Threshold, signatures)
	if err != nil {
		return chain.Execution{}, err
	}
	if d.Limit.Asset() != money.ETH || d.Bump.Cap.Asset() != money.ETH || !d.Bump.Cap.Positive() {
		return chain.Execution{}, chain.Errorf(chain.ReasonProtocol, "a replacement of an execution needs the fee limit and the bid of the one before")
	}
	gas := new(big.Int).Quo(d.Limit.Units(), d.Bump.Cap.Units())
	if gas.Sign() <= 0 || !gas.IsUint64() {
		return chain.Execution{}, chain.Errorf(chain.ReasonProtocol, "the fee limit %s ETH and the bid %s ETH are of no execution", d.Limit, d.Bump.Cap)
	}
	_, t, err := c.rebuilt(j)
	if err != nil {
		return chain.Execution{}, err
	}
	m.Input = t.execution(joined(enough))
	coins, err := c.holding(ctx, conn, money.ETH, m.From, latest.block())
	if err != nil {
		return chain.Execution{}, err
	}
	u, err := c.offer(ctx, conn, m, gas.Uint64(), coins, d, latest)
	u.Transfer = executionTransfer(m)
	return chain.Execution{Unsigned: u, Joint: j, Signatures: enough}, err
}

// ordered are as many signatures as a Safe wants, in the order in which it wants them.
func ordered(threshold uint32, signatures []chain.OwnerSignature) ([]chain.OwnerSignature, error) {
	if len(signatures) < int(threshold) {
		return nil, chain.Errorf(chain.ReasonForeign, "the signatures of %d owners are needed, and %d are there", threshold, len(signatures))
	}
	sorted := slices.SortedFunc(slices.Values(signatures), func(a, b chain.OwnerSignature) int {
		return common.HexToAddress(a.Owner).Cmp(common.HexToAddress(b.Owner))
	})
	return sorted[:threshold], nil
}

// accepted are as many of the signatures as the account needs now.
func (s safeState) accepted(account common.Address, number uint64, signatures []chain.OwnerSignature) ([]chain.OwnerSignature, error) {
	switch {
	case number < s.nonce:
		return nil, usedNumber(account, number, s.nonce)
	case number > s.nonce:
		return nil, chain.Errorf(chain.ReasonReverts, "the number %d of %s waits: the next to be executed is %d", number, account, s.nonce)
	}
	enough := slices.DeleteFunc(slices.Clone(signatures), func(one chain.OwnerSignature) bool {
		return !slices.Contains(s.owners, common.HexToAddress(one.Owner))
	})
	if len(enough) < int(s.threshold) {
		return nil, chain.Errorf(chain.ReasonForeign,
			"%s needs the signatures of %d owners, and %d of %d are of present owners", account, s.threshold, len(enough), len(signatures))
	}
	return ordered(s.threshold, enough)
}

// executes refuses an execution that would fail now: the payment that it makes, and then the whole in a simulation, which must
// return true.
func (c *Client) executes(ctx context.Context, conn *rpc.Client, m message, j chain.Joint, b chain.Block) error {
	if j.Transfer != nil {
		in, err := c.intent(*j.Transfer)
		if err != nil {
			return err
		}
		if err := c.payable(ctx, conn, in, b); err != nil {
			return err
		}
	}
	result, refused, err := call(ctx, conn, m, b)
	if err != nil {
		return err
	}
	if refused != "" {
		return chain.Errorf(chain.ReasonReverts, "%s would not carry it out: %s", m.To, explained(refused))
	}
	if len(result) != wordLength || new(big.Int).SetBytes(result).Cmp(big.NewInt(1)) != 0 {
		return chain.Errorf(chain.ReasonReverts, "%s would not carry it out: it returns %x", m.To, result[:min(len(result), wordLength)])
	}
	return nil
}

// safeErrors are the codes with which a Safe refuses (safe-global/safe-smart-account v1.4.1, docs/error_codes.md), as far as
// an execution can meet them.
var safeErrors = []struct{ code, meaning string }{
	{"GS001", "the account was never set up"},
	{"GS010", "there is too little gas for it"},
	{"GS011", "the refund in ether failed"},
	{"GS012", "the refund in a token failed"},
	{"GS013", "what it does would fail"},
	{"GS020", "there are too few signatures"},
	{"GS021", "a contract's signature is malformed"},
	{"GS022", "a contract's signature is malformed"},
	{"GS023", "a contract's signature is malformed"},
	{"GS024", "a contract refuses its signature"},
	{"GS025", "a hash is not approved"},
	{"GS026", "a signature is not an owner's, or of another transaction, or another number"},
}

// explained adds the meaning of a Safe's error code to a node's text.
func explained(text string) string {
	for _, e := range safeErrors {
		if strings.Contains(text, e.code) {
			return fmt.Sprintf("%s (%s)", e.meaning, text)
		}
	}
	return text
}

// offerCall makes the transaction of a call that carries no ether.
func (c *Client) offerCall(
	ctx context.Context, conn *rpc.Client, m message, d chain.ExecutionDraft, latest header,
) (chain.Unsigned, error) {
	block := latest.block()
	if err := sends(ctx, conn, m.From, block); err != nil {
		return chain.Unsigned{}, err
	}
	coins, err := c.holding(ctx, conn, money.ETH, m.From, block)
	if err != nil {
		return chain.Unsigned{}, err
	}
	gas, err := c.estimate(ctx, conn, m, block)
	if err != nil {
		return chain.Unsigned{}, err
	}
	return c.offer(ctx, conn, m, gas, coins, d, latest)
}

// executionTransfer is what an execution itself moves between its payer and the account: nothing.
func executionTransfer(m message) chain.Transfer {
	return chain.Transfer{From: m.From.Hex(), To: m.To.Hex(), Amount: money.Zero(money.ETH)}
}

// SignExecution signs with the payer's key. The call is built anew from the joint transaction and the signatures, and must be
// that of the prepared bytes.
func (c *Client) SignExecution(x chain.Execution, payer ...chain.Key) (chain.Signed, error) {
	account, t, err := c.rebuilt(x.Joint)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(x.Signatures) == 0 || len(payer) != 1 || x.FeePayer != "" {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol,
			"an execution has signatures of owners, of whom there are %d, and one payer, not %d", len(x.Signatures), len(payer))
	}
	if err := c.verified(x.Joint, x.Signatures); err != nil {
		return chain.Signed{}, err
	}
	from, err := parse(x.Transfer.From)
	if err != nil {
		return chain.Signed{}, chain.Errorf(chain.ReasonAddress, "the payer %s", err)
	}
	m := message{From: from, To: account, Input: t.execution(joined(x.Signatures))}
	if own := executionTransfer(m); x.Transfer.From != own.From || x.Transfer.To != own.To || !x.Transfer.Amount.Equal(own.Amount) {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the transaction itself must move nothing, from its payer to %s", account)
	}
	return c.signCall(x.Unsigned, m, payer[0])
}

package solana

import (
	"context"
	"crypto/rand"
	"fmt"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange/money"
)

// intent is a transfer whose parts were checked.
type intent struct {
	from, to, payer sdk.PublicKey
	amount          money.Amount
	units           uint64
	token           bool
	mint            sdk.PublicKey
	decimals        uint8
	step            chain.NonceStep // its operation on the nonce account that it pays, if any
	seed            string
	joint           *joint   // set when from is an account of several owners
	opens           *opening // set when it opens such an account at to
}

// maxAmountBits keeps amounts within the signed 64 bits that a database holds.
const maxAmountBits = 63

// intent checks a transfer before any network call.
func (c *Client) intent(t chain.Transfer, payer string) (intent, error) {
	from, err := c.wallet(t.From)
	if err != nil {
		return intent{}, chain.Errorf(chain.ReasonAddress, "the sender's %s", err)
	}
	return c.intentFrom(from, t, payer)
}

// intentFrom is intent for a sender whose address was checked. Tokens may be paid to an address without a key, if the account
// there turns out to have several owners.
func (c *Client) intentFrom(from sdk.PublicKey, t chain.Transfer, payer string) (intent, error) {
	in := intent{from: from, payer: from, amount: t.Amount}
	in.mint, in.token = c.mints[t.Amount.Asset()]
	recipient := c.wallet
	if in.token {
		recipient = c.holder
	}
	var err error
	if in.to, err = recipient(t.To); err != nil {
		return in, chain.Errorf(chain.ReasonAddress, "the recipient's %s", err)
	}
	if payer != "" {
		if in.payer, err = c.wallet(payer); err != nil {
			return in, chain.Errorf(chain.ReasonAddress, "the fee payer's %s", err)
		}
	}
	if err := c.Supports(t.Amount.Asset()); err != nil {
		return in, err
	}
	n := t.Amount.Units()
	switch {
	case in.from == in.to:
		return in, chain.Errorf(chain.ReasonAddress, "sender and recipient are the same account")
	case n.Sign() <= 0 || n.BitLen() > maxAmountBits:
		return in, chain.Errorf(chain.ReasonUnsupported, "an amount of %s can't be sent", t.Amount)
	}
	in.units = n.Uint64()
	if in.token {
		in.decimals = uint8(t.Amount.Asset().Scale())
	}
	return in, nil
}

// signatures is how many keys sign.
func (in intent) signatures() int {
	switch {
	case in.joint != nil:
		return 1 + len(in.joint.signers)
	case in.payer == in.from:
		return 1
	}
	return 2
}

// Prepare builds an unsigned transaction. It refuses one that could not succeed now, with a reason that an officer can act
// on. Later changes of the chain show in receipts.
//
// A recipient is a wallet or, for tokens, an account of several owners, whose associated token account the fee payer creates
// if needed, or a token account of that mint with a key of its own, which is paid directly.
func (c *Client) Prepare(ctx context.Context, d chain.Draft) (chain.Unsigned, error) {
	if d.Nonce != 0 || !d.Bump.IsZero() {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonUnsupported, "Solana has no sequence numbers and no bids")
	}
	in, err := c.intentOf(chain.Unsigned{Transfer: d.Transfer, FeePayer: d.FeePayer, Step: d.Step, Seed: d.Seed, Owners: d.Owners})
	if err != nil {
		return chain.Unsigned{}, err
	}
	if d.NonceAccount != "" && (d.FeePayer == "" || in.payer == in.from || in.step != "") {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonUnsupported, "a transaction with a nonce account needs a fee payer other than its sender")
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.Unsigned, error) {
		return c.prepareAt(ctx, n, d, in)
	})
}

// prepareAt prepares with the facts of one node.
func (c *Client) prepareAt(ctx context.Context, n *node, d chain.Draft, in intent) (chain.Unsigned, error) {
	p := plan{intent: in, limit: maxUnits}
	if _, err := rand.Read(p.unique[:]); err != nil {
		return chain.Unsigned{}, fmt.Errorf("solana: no randomness: %w", err)
	}
	ref, err := c.reference(ctx, n)
	if err != nil {
		return chain.Unsigned{}, err
	}
	p.blockhash = ref.hash
	var durable nonceState
	if d.NonceAccount != "" {
		if durable, err = p.outlive(ctx, n, d.NonceAccount); err != nil {
			return chain.Unsigned{}, err
		}
		ref.lastValid = 0 // it has no end in time
	}
	s, err := readEnds(ctx, n, in, ref.slot)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if err := p.route(s); err != nil {
		return chain.Unsigned{}, err
	}
	r, err := readRents(ctx, n)
	if err != nil {
		return chain.Unsigned{}, err
	}
	// Without a price the simulation costs only its signatures. A payer that can't pay these is refused here; the price is
	// checked with the finished message.
	if err := p.covered(s, r, mostFee(p.signatures(), 0, 0).Uint64()); err != nil {
		return chain.Unsigned{}, err
	}
	used, err := simulate(ctx, n, p, ref.slot)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if p.limit, err = unitsFor(used, p.create || p.joint != nil); err != nil {
		return chain.Unsigned{}, err
	}
	if p.joint != nil {
		p.price = c.config.Fees.PriceCeiling // several sign over days, and it can't be raised when the message is sent
	} else if p.price, err = c.priceFor(ctx, n, p.written()...); err != nil {
		return chain.Unsigned{}, err
	}
	body, err := p.message()
	if err != nil {
		return chain.Unsigned{}, err
	}
	limit, err := c.feeLimit(ctx, n, p, s, r, body, ref.slot)
	if err != nil {
		return chain.Unsigned{}, err
	}
	return chain.Unsigned{
		Transfer: d.Transfer, FeePayer: d.FeePayer, Payload: body, Body: body, LastValidHeight: ref.lastValid, RefBlock: p.blockhash.String(),
		NonceAccount: d.NonceAccount, NonceBlock: durable.slot, Step: d.Step, Seed: d.Seed, Owners: d.Owners, FeeLimit: limit,
	}, nil
}

// feeLimit is the highest cost of the message. It includes the rent even if the recipient's account exists now, because its
// owner may close it before the block.
func (c *Client) feeLimit(ctx context.Context, n *node, p plan, s snapshot, r rents, body []byte, minSlot uint64) (money.Amount, error) {
	fee, err := feeOf(ctx, n, body, minSlot)
	if err != nil {
		return money.Amount{}, err
	}
	most := fee + p.accountsRent(r)
	if err := c.withinCap(lamports(most)); err != nil {
		return money.Amount{}, err
	}
	return lamports(most), p.covered(s, r, fee)
}

// reference is the block that limits a transaction's life.
type reference struct {
	slot      uint64
	hash      sdk.Hash
	lastValid uint64
}

const (
	// blockhashLife is the number of blocks for which a blockhash can be used (clock lib.rs MAX_PROCESSING_AGE).
	blockhashLife = 150
	// maxLife bounds a node's answer about it: a transaction that never expires could never be replaced.
	maxLife = 10 * blockhashLife
)

// reference reads the newest confirmed blockhash. The node's answer must be consistent: the hash is that of the block in the
// answer's slot, and its life counts from that block's height. With an older hash, one of a fork, or a lower height, a
// payment would be built again while the first one can still be included. All other queries for the transaction are of that
// slot or a later one.
func (c *Client) reference(ctx context.Context, n *node) (reference, error) {
	answer, err := call[contextAnswer[struct {
		Blockhash string `json:"blockhash"`
		LastValid uint64 `json:"lastValidBlockHeight"`
	}]](ctx, n, "getLatestBlockhash", options{"commitment": confirmed})
	if err != nil {
		return reference{}, err
	}
	at, err := headerAt(ctx, n, answer.Context.Slot, confirmed)
	for range headReads - 1 {
		if rpcCode(err) != codeBlockNotAvailable {
			break
		}
		at, err = headerAt(ctx, n, answer.Context.Slot, confirmed)
	}
	if err != nil {
		return reference{}, err
	}
	if err := endpoints.Fresh(at, c.config.Now(), c.config.MaxHeadAge); err != nil {
		return reference{}, err
	}
	hash, err := readHash(answer.Value.Blockhash)
	if err != nil || answer.Value.LastValid > at.Height+maxLife {
		return reference{}, chain.Errorf(chain.ReasonProtocol, "at height %d the blockhash is %q, to be used until height %d",
			at.Height, quote(answer.Value.Blockhash), answer.Value.LastValid)
	}
	// Machines behind one address may differ for a moment, so another node, or a later query, may succeed.
	if hash.String() != at.ID || answer.Value.LastValid < at.Height+blockhashLife {
		return reference{}, chain.Errorf(chain.ReasonUnavailable, "node %s contradicts itself: by slot %d the blockhash is %s until height %d, and the block there is %s at height %d",
			n.endpoint, answer.Context.Slot, hash, answer.Value.LastValid, at.ID, at.Height)
	}
	return reference{slot: at.Number, hash: hash, lastValid: answer.Value.LastValid}, nil
}

// rents are the least balances of accounts.
type rents struct{ wallet, tokenAccount uint64 }

func readRents(ctx context.Context, n *node) (rents, error) {
	var r rents
	var err error
	if r.wallet, err = rentOf(ctx, n, 0); err != nil {
		return r, err
	}
	r.tokenAccount, err = rentOf(ctx, n, tokenAccountSize)
	return r, err
}

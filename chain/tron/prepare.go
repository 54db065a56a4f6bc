package tron

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/fbsobreira/gotron-sdk/pkg/standards/trc20enc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange/money"
)

// intent is a transfer whose parts were checked, and how it is authorised.
type intent struct {
	from, to   accountID
	amount     money.Amount
	permission int32 // the number of the sender's permission that it is signed under; zero is the owner permission
	signatures int
}

// basis is what a transaction is built on: a full node, its newest block, the newest final block, and the sender's account
// at that node.
type basis struct {
	wallet        api.WalletClient
	sender        *core.Account
	latest, final chain.Block
}

// Prepare builds an unsigned transaction. It refuses one that could not succeed now, with a reason that an officer can act
// on. Later changes of the chain show in receipts.
func (c *Client) Prepare(ctx context.Context, d chain.Draft) (chain.Unsigned, error) {
	if d.FeePayer != "" || d.Nonce != 0 || !d.Bump.IsZero() || d.Owners != nil {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonUnsupported, "TRON has no fee payer, no sequence numbers, no bids, and no account that a payment opens")
	}
	life := c.config.TransactionLife
	if d.Life != 0 {
		life = d.Life
	}
	if life < minTransactionLife || life > maxTransactionLife {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonUnsupported, "a transaction on TRON lives between %s and %s", minTransactionLife, maxTransactionLife)
	}
	t := d.Transfer
	in, err := c.intent(t)
	if err != nil {
		return chain.Unsigned{}, err
	}
	return build(ctx, c, in.from, func(ctx context.Context, b basis) (chain.Unsigned, error) {
		if err := signsAlone(b.sender, in.from); err != nil {
			return chain.Unsigned{}, err
		}
		raw, err := c.envelope(b.final, b.latest, life)
		if err != nil {
			return chain.Unsigned{}, err
		}
		return c.prepareTransfer(ctx, b, t, in, raw)
	})
}

// build makes something at a full node that is not behind.
func build[T any](ctx context.Context, c *Client, sender accountID, do func(context.Context, basis) (T, error)) (T, error) {
	var none T
	final, err := ask(ctx, c.solid, func(ctx context.Context, n *node) (chain.Block, error) { return newest(ctx, n.solidity) })
	if err != nil {
		return none, err
	}
	return ask(ctx, c.full, func(ctx context.Context, n *node) (T, error) {
		latest, err := newest(ctx, n.wallet)
		if err != nil {
			return none, err
		}
		if err := endpoints.Fresh(latest, c.config.Now(), c.config.MaxHeadAge); err != nil {
			return none, err
		}
		account, err := n.wallet.GetAccount(ctx, &core.Account{Address: sender.full()})
		if err != nil {
			return none, err
		}
		return do(ctx, basis{wallet: n.wallet, sender: account, latest: latest, final: final})
	})
}

// intent checks a transfer before any network call.
func (c *Client) intent(t chain.Transfer) (intent, error) {
	in := intent{amount: t.Amount, signatures: 1}
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
	units := t.Amount.Units()
	switch {
	case in.from == in.to:
		return in, chain.Errorf(chain.ReasonAddress, "sender and recipient are the same account")
	case burns(in.to):
		return in, chain.Errorf(chain.ReasonAddress, "the recipient %s", errAddressBurns)
	case units.Sign() <= 0 || units.BitLen() > maxTransferBits:
		return in, chain.Errorf(chain.ReasonUnsupported, "an amount of %s can't be sent", t.Amount)
	}
	if asset, token := c.assets[in.to]; token {
		return in, chain.Errorf(chain.ReasonAddress, "the recipient is the %s contract itself; money sent there is lost", asset)
	}
	return in, nil
}

// maxTransferBits keeps amounts within TRON's signed 64-bit sun.
const maxTransferBits = 62

// envelope is raw_data without the contract. The reference block is a final one, which no reorganisation can make invalid;
// java-tron accepts it within 65,536 blocks (Manager.validateTapos). The expiry counts from the newest block, because the
// network compares it with block times.
func (c *Client) envelope(final, latest chain.Block, life time.Duration) (*core.TransactionRaw, error) {
	id, err := hex.DecodeString(final.ID)
	if err != nil || len(id) != hashLength {
		return nil, chain.Errorf(chain.ReasonProtocol, "block %d has the id %q", final.Number, final.ID)
	}
	number := binary.BigEndian.AppendUint64(nil, final.Number)
	return &core.TransactionRaw{
		RefBlockBytes: number[6:8],
		RefBlockHash:  id[8:16],
		Expiration:    latest.Time.Add(life).UnixMilli(),
		Timestamp:     c.stamp(),
	}, nil
}

// prepareTransfer adds a payment to an envelope, and refuses one that could not succeed now. An envelope that already has a
// fee limit keeps it.
func (c *Client) prepareTransfer(ctx context.Context, b basis, t chain.Transfer, in intent, raw *core.TransactionRaw) (chain.Unsigned, error) {
	if err := c.setTransfer(raw, in); err != nil {
		return chain.Unsigned{}, err
	}
	if in.amount.Asset() == money.TRX {
		return prepareNative(ctx, b, t, in, raw)
	}
	return c.prepareToken(ctx, b, t, in, raw)
}

// prepareNative completes a transfer of TRX.
func prepareNative(ctx context.Context, b basis, t chain.Transfer, in intent, raw *core.TransactionRaw) (chain.Unsigned, error) {
	recipient, err := b.wallet.GetAccount(ctx, &core.Account{Address: in.to.full()})
	if err != nil {
		return chain.Unsigned{}, err
	}
	if recipient.GetType() == core.AccountType_Contract {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonAddress, "the recipient is a contract, and TRON has no plain transfer of TRX to contracts")
	}
	p, err := readPrices(ctx, b.wallet)
	if err != nil {
		return chain.Unsigned{}, err
	}
	r, err := readResources(ctx, b.wallet, b.sender)
	if err != nil {
		return chain.Unsigned{}, err
	}
	sun, size := in.amount.Units().Int64(), bandwidthOf(raw, in.signatures)
	fee, most := bandwidthCost(p, r, size), size*p.bandwidth
	if len(recipient.GetAddress()) == 0 {
		fee = activationCost(p, r, size)
		most = p.activation + p.newAccount
	}
	fee, most = fee+p.signing(in.signatures), most+p.signing(in.signatures)
	if r.balance < sun {
		return chain.Unsigned{}, short(chain.ReasonFunds, in.from, in.amount, sunOf(r.balance))
	}
	if r.balance < sun+fee {
		return chain.Unsigned{}, shortOfGas(in.from, sun+fee, r.balance, most)
	}
	return unsigned(t, raw, most)
}

// prepareToken completes a transfer of a token, after simulating it from the real sender to the real recipient: a recipient
// without the token costs twice as much.
func (c *Client) prepareToken(ctx context.Context, b basis, t chain.Transfer, in intent, raw *core.TransactionRaw) (chain.Unsigned, error) {
	asset, w := in.amount.Asset(), b.wallet
	contract := c.contracts[asset]
	if err := refusesTransfers(ctx, w, asset, contract, in.from, in.to); err != nil {
		return chain.Unsigned{}, err
	}
	held, err := tokenBalance(ctx, w, asset, contract, in.from)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if held.Cmp(in.amount) < 0 {
		return chain.Unsigned{}, short(chain.ReasonFunds, in.from, in.amount, held)
	}
	data, err := transferCall(in.to, in.amount)
	if err != nil {
		return chain.Unsigned{}, err
	}
	out, err := c.simulate(ctx, w, contract, in, data)
	if err != nil {
		return chain.Unsigned{}, err
	}
	p, err := readPrices(ctx, w)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if raw.FeeLimit, err = c.feeLimit(p, out.energy, raw.GetFeeLimit()); err != nil {
		return chain.Unsigned{}, err
	}
	r, err := readResources(ctx, w, b.sender)
	if err != nil {
		return chain.Unsigned{}, err
	}
	size, signing := bandwidthOf(raw, in.signatures), p.signing(in.signatures)
	need := c.energyBurn(p, r, out.energy, raw.GetFeeLimit()) + bandwidthCost(p, r, size) + signing
	most := raw.GetFeeLimit() + size*p.bandwidth + signing
	if r.balance < need || !r.activated {
		return chain.Unsigned{}, shortOfGas(in.from, need, r.balance, most)
	}
	return unsigned(t, raw, most)
}

// simulate runs the real call. Success is not enough: if the node returns the events, they must contain the exact movement,
// because a token that takes a fee delivers less than was promised.
func (c *Client) simulate(ctx context.Context, w api.WalletClient, contract accountID, in intent, data []byte) (outcome, error) {
	out, err := call(ctx, w, in.from, contract, data)
	if err != nil {
		return out, err
	}
	if out.reverted != "" {
		return out, chain.Errorf(chain.ReasonReverts, "the %s contract refuses the transfer: %s", in.amount.Asset(), out.reverted)
	}
	if len(out.logs) == 0 {
		return out, nil // an older node that does not return the events of a simulation
	}
	moved, err := c.tokenMovements("", out.logs)
	if err != nil {
		return out, err
	}
	for _, m := range moved {
		if m.From == in.from.String() && m.To == in.to.String() && m.Amount.Equal(in.amount) {
			return out, nil
		}
	}
	return out, chain.Errorf(chain.ReasonReverts, "the %s contract would not deliver exactly %s to the recipient: it takes a fee on transfers",
		in.amount.Asset(), in.amount)
}

// short is the error for a balance that is too low, with the missing amount.
func short(r chain.Reason, holder accountID, need, has money.Amount) *chain.Error {
	e := chain.Errorf(r, "%s needs %s %s and has %s", holder, need, need.Asset(), has)
	e.Missing = need.Sub(has)
	return e
}

// shortOfGas is the error for a balance that does not cover a fee of at most most, in sun.
func shortOfGas(holder accountID, need, has, most int64) *chain.Error {
	e := short(chain.ReasonGas, holder, sunOf(need), sunOf(has))
	e.Cost = sunOf(most)
	return e
}

// transferCall is the calldata of transfer(address,uint256), with a clean address word.
func transferCall(to accountID, amount money.Amount) ([]byte, error) {
	data, err := trc20enc.EncodeTransferCall(address.Address(to.full()), amount.Units())
	if err != nil {
		return nil, chain.Wrap(chain.ReasonUnsupported, err, "the amount can't be encoded")
	}
	return hex.DecodeString(data)
}

// setTransfer sets the contract that pays.
func (c *Client) setTransfer(raw *core.TransactionRaw, in intent) error {
	var err error
	if in.amount.Asset() == money.TRX {
		err = setContract(raw, core.Transaction_Contract_TransferContract,
			&core.TransferContract{OwnerAddress: in.from.full(), ToAddress: in.to.full(), Amount: in.amount.Units().Int64()})
	} else {
		err = c.setTokenTransfer(raw, in)
	}
	if err != nil {
		return err
	}
	raw.Contract[0].PermissionId = in.permission
	return nil
}

func (c *Client) setTokenTransfer(raw *core.TransactionRaw, in intent) error {
	data, err := transferCall(in.to, in.amount)
	if err != nil {
		return err
	}
	return setContract(raw, core.Transaction_Contract_TriggerSmartContract, &core.TriggerSmartContract{
		OwnerAddress: in.from.full(), ContractAddress: c.contracts[in.amount.Asset()].full(), Data: data,
	})
}

// setContract sets the only contract of a transaction.
func setContract(raw *core.TransactionRaw, kind core.Transaction_Contract_ContractType, message proto.Message) error {
	parameter := &anypb.Any{}
	if err := anypb.MarshalFrom(parameter, message, deterministic); err != nil {
		return chain.Wrap(chain.ReasonProtocol, err, "the contract can't be encoded")
	}
	raw.Contract = []*core.Transaction_Contract{{Type: kind, Parameter: parameter}}
	return nil
}

// deterministic makes equal messages equal bytes, because the transaction id depends on them.
var deterministic = proto.MarshalOptions{Deterministic: true}

// unsigned finishes a transaction. Its id is the SHA-256 of raw_data, which is also what is signed.
func unsigned(t chain.Transfer, raw *core.TransactionRaw, mostSun int64) (chain.Unsigned, error) {
	body, err := deterministic.Marshal(raw)
	if err != nil {
		return chain.Unsigned{}, chain.Wrap(chain.ReasonProtocol, err, "the transaction can't be encoded")
	}
	digest := sha256.Sum256(body)
	return chain.Unsigned{
		Transfer:  t,
		Payload:   digest[:],
		Body:      body,
		ExpiresAt: time.UnixMilli(raw.GetExpiration()).UTC(),
		RefBlock:  hex.EncodeToString(bytes.Join([][]byte{raw.GetRefBlockBytes(), raw.GetRefBlockHash()}, nil)),
		FeeLimit:  sunOf(mostSun),
	}, nil
}

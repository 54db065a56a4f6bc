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

// intent is a transfer whose parts were checked.
type intent struct {
	from, to accountID
	amount   money.Amount
}

// Prepare builds an unsigned transaction. It refuses one that could not succeed now, with a reason that an officer can act
// on. Later changes of the chain show in receipts.
func (c *Client) Prepare(ctx context.Context, d chain.Draft) (chain.Unsigned, error) {
	if d.FeePayer != "" || d.Nonce != 0 || !d.Bump.IsZero() {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonUnsupported, "TRON has no fee payer, no sequence numbers and no bids")
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
	final, err := ask(ctx, c.solid, func(ctx context.Context, n *node) (chain.Block, error) { return newest(ctx, n.solidity) })
	if err != nil {
		return chain.Unsigned{}, err
	}
	return ask(ctx, c.full, func(ctx context.Context, n *node) (chain.Unsigned, error) {
		latest, err := newest(ctx, n.wallet)
		if err != nil {
			return chain.Unsigned{}, err
		}
		if err := endpoints.Fresh(latest, c.config.Now(), c.config.MaxHeadAge); err != nil {
			return chain.Unsigned{}, err
		}
		raw, err := c.envelope(final, latest)
		if err != nil {
			return chain.Unsigned{}, err
		}
		raw.Expiration = latest.Time.Add(life).UnixMilli()
		if in.amount.Asset() == money.TRX {
			return c.prepareNative(ctx, n.wallet, t, in, raw)
		}
		return c.prepareToken(ctx, n.wallet, t, in, raw)
	})
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
func (c *Client) envelope(final, latest chain.Block) (*core.TransactionRaw, error) {
	id, err := hex.DecodeString(final.ID)
	if err != nil || len(id) != hashLength {
		return nil, chain.Errorf(chain.ReasonProtocol, "block %d has the id %q", final.Number, final.ID)
	}
	number := binary.BigEndian.AppendUint64(nil, final.Number)
	return &core.TransactionRaw{
		RefBlockBytes: number[6:8],
		RefBlockHash:  id[8:16],
		Expiration:    latest.Time.Add(c.config.TransactionLife).UnixMilli(),
		Timestamp:     c.stamp(),
	}, nil
}

// prepareNative builds a transfer of TRX.
func (c *Client) prepareNative(ctx context.Context, w api.WalletClient, t chain.Transfer, in intent, raw *core.TransactionRaw) (chain.Unsigned, error) {
	recipient, err := w.GetAccount(ctx, &core.Account{Address: in.to.full()})
	if err != nil {
		return chain.Unsigned{}, err
	}
	if recipient.GetType() == core.AccountType_Contract {
		return chain.Unsigned{}, chain.Errorf(chain.ReasonAddress, "the recipient is a contract, and TRON has no plain transfer of TRX to contracts")
	}
	sun := in.amount.Units().Int64()
	message := &core.TransferContract{OwnerAddress: in.from.full(), ToAddress: in.to.full(), Amount: sun}
	if err := setContract(raw, core.Transaction_Contract_TransferContract, message); err != nil {
		return chain.Unsigned{}, err
	}
	p, err := readPrices(ctx, w)
	if err != nil {
		return chain.Unsigned{}, err
	}
	r, err := readResources(ctx, w, in.from)
	if err != nil {
		return chain.Unsigned{}, err
	}
	size := bandwidthOf(raw)
	fee, most := bandwidthCost(p, r, size), size*p.bandwidth
	if len(recipient.GetAddress()) == 0 {
		fee = activationCost(p, r, size)
		most = p.activation + p.newAccount
	}
	if r.balance < sun {
		return chain.Unsigned{}, short(chain.ReasonFunds, in.from, in.amount, sunOf(r.balance))
	}
	if r.balance < sun+fee {
		return chain.Unsigned{}, shortOfGas(in.from, sun+fee, r.balance, most)
	}
	return unsigned(t, raw, most)
}

// prepareToken builds a transfer of a token, after simulating it from the real sender to the real recipient: a recipient
// without the token costs twice as much.
func (c *Client) prepareToken(ctx context.Context, w api.WalletClient, t chain.Transfer, in intent, raw *core.TransactionRaw) (chain.Unsigned, error) {
	asset := in.amount.Asset()
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
	if raw.FeeLimit, err = c.energyLimit(p, out.energy); err != nil {
		return chain.Unsigned{}, err
	}
	message := &core.TriggerSmartContract{OwnerAddress: in.from.full(), ContractAddress: contract.full(), Data: data}
	if err := setContract(raw, core.Transaction_Contract_TriggerSmartContract, message); err != nil {
		return chain.Unsigned{}, err
	}
	r, err := readResources(ctx, w, in.from)
	if err != nil {
		return chain.Unsigned{}, err
	}
	size := bandwidthOf(raw)
	need, most := c.energyBurn(p, r, out.energy, raw.GetFeeLimit())+bandwidthCost(p, r, size), raw.GetFeeLimit()+size*p.bandwidth
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

package keys

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Signer is the only way to a signature: by the id of a payment that was approved.
type Signer interface {
	// SignPayment gives the payment's live transaction, making it first if there is none. Calling it
	// again is harmless. What comes back is stored.
	SignPayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
	// OutbidPayment makes a transaction that takes the place of the payment's leading one: the same
	// number and transfer, a higher bid. n is the number of the attempt to outbid; when another leads
	// already, that one comes back and nothing is signed. What comes back is stored.
	OutbidPayment(ctx context.Context, paymentID uuid.UUID, n int) (exchange.ChainAttempt, error)
}

// PaymentStore is what the signer needs of the database.
type PaymentStore interface {
	// PaymentForSigning reads a payment and the sealed keys that sign it: the sending wallet's, and
	// after it the fee wallet's where the payment has one.
	PaymentForSigning(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, []Sealed, error)
	// NonceLane reads a wallet's sequence; false when nothing was sent from the wallet yet.
	NonceLane(ctx context.Context, walletID uuid.UUID) (exchange.NonceLane, bool, error)
	// LaneReserve is the most native coin that a wallet's unmined transactions may still cost, which are
	// those with the number from and above: their fees and what they send.
	LaneReserve(ctx context.Context, walletID uuid.UUID, n exchange.Network, from uint64) (money.Amount, error)
	// HouseGas is what the house has in the wallet that pays the payment's fee, in the native coin; false
	// where every coin in it may be used.
	HouseGas(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error)
	// FeesLeft is what the house may still spend today on the fees of the payment's network; false where
	// there is no budget.
	FeesLeft(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error)
	// LiveAttempt reads the payment's leading transaction that may still move money, if there is one.
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	// SaveSignedAttempt stores a signed transaction, numbers it, and moves the payment to signed. If
	// the payment has a live one already, that one is returned and nothing is stored. It fails with
	// CodeConflict when the transaction id exists already, its number was taken by another payment, or
	// its fee may be above what the house has in the wallet by now.
	SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error)
	// SaveReplacement stores a signed transaction that outbids the leading one of the given id, and
	// gives back the one that leads then.
	SaveReplacement(ctx context.Context, outbids uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error)
}

// Bounds of how often a transaction is prepared again, because its id or its number was taken.
const (
	maxPrepares = 5
	maxTurns    = 20 // where payments of one wallet stand in line for numbers
)

var _ Signer = (*PaymentSigner)(nil)

// PaymentSigner signs approved payments. It trusts no caller and no row: it recomputes the hash that
// was approved, derives the sender from the key, and applies ceilings of its own.
type PaymentSigner struct {
	store    PaymentStore
	vault    *Vault
	clients  map[exchange.Network]chain.Client
	ceilings map[money.Asset]money.Amount
	now      func() time.Time
	turns    turns
	cold     ColdStore
}

// PaymentSignerConfig is what a PaymentSigner is made of.
type PaymentSignerConfig struct {
	Store   PaymentStore
	Vault   *Vault
	Clients map[exchange.Network]chain.Client
	// Ceilings bound a single payment of an asset, whoever approved it. An asset without one is not
	// bounded here.
	Ceilings map[money.Asset]money.Amount
	Now      func() time.Time // time.Now when nil
	// Cold is where transactions are that the owner of a cold wallet signed elsewhere; nil where none is completed.
	Cold ColdStore
}

// NewPaymentSigner checks its parts.
func NewPaymentSigner(c PaymentSignerConfig) (*PaymentSigner, error) {
	if c.Store == nil || c.Vault == nil || len(c.Clients) == 0 {
		return nil, errors.New("keys: a payment signer needs a store, a vault and at least one network")
	}
	for n, client := range c.Clients {
		if client == nil || client.Network() != n {
			return nil, fmt.Errorf("keys: the client for %s is of another network", n)
		}
	}
	for asset, limit := range c.Ceilings {
		if limit.Asset() != asset || !limit.Positive() {
			return nil, fmt.Errorf("keys: the ceiling for %s must be a positive amount of it", asset)
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &PaymentSigner{store: c.Store, vault: c.Vault, clients: c.Clients, ceilings: c.Ceilings, now: c.Now, turns: newTurns(), cold: c.Cold}, nil
}

// SignPayment implements Signer. While a transaction of the payment is alive no other is signed, and
// nothing signed leaves before it is stored. Dying between signing and storing loses a signature
// that nobody has seen. Of two signers at work on one payment, the store lets one win, and both
// return that one's transaction.
func (s *PaymentSigner) SignPayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error) {
	live, ok, err := s.store.LiveAttempt(ctx, paymentID)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if ok {
		return live, mine(live, paymentID)
	}
	order, err := s.order(ctx, paymentID, exchange.ChainApproved)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	tries := maxPrepares
	if order.client.Traits().Sequenced {
		tries = maxTurns
		done, err := s.turns.wait(ctx, order.payment.WalletID)
		if err != nil {
			return exchange.ChainAttempt{}, err
		}
		defer done()
	}
	for range tries {
		stored, err := s.signAndSave(ctx, order)
		if exchange.CodeOf(err) == exchange.CodeConflict {
			continue // another payment has this very transaction, which would pay only once, or took its number
		}
		if err != nil {
			return exchange.ChainAttempt{}, err
		}
		return stored, mine(stored, paymentID)
	}
	if order.client.Traits().Sequenced {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeUnavailable, "Other payments of the wallet took every number; try again.")
	}
	return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeConflict, "No transaction of its own could be built for the payment.")
}

func (s *PaymentSigner) signAndSave(ctx context.Context, o order) (exchange.ChainAttempt, error) {
	draft, unmined, err := s.draft(ctx, o)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	unsigned, err := s.prepare(ctx, o, draft)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if err := s.withinBudget(ctx, o, unsigned); err != nil {
		return exchange.ChainAttempt{}, err
	}
	if err := s.housePays(ctx, o, unsigned); err != nil {
		return exchange.ChainAttempt{}, err
	}
	if draft.Nonce > unmined {
		if err := s.afford(ctx, o, unsigned, unmined); err != nil {
			return exchange.ChainAttempt{}, err
		}
	}
	signed, err := s.sign(ctx, o, unsigned)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	return s.store.SaveSignedAttempt(ctx, s.attempt(o, signed))
}

// OutbidPayment implements Signer.
func (s *PaymentSigner) OutbidPayment(ctx context.Context, paymentID uuid.UUID, n int) (exchange.ChainAttempt, error) {
	live, ok, err := s.store.LiveAttempt(ctx, paymentID)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if !ok {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeStateConflict, "keys: payment %s has no transaction to outbid", paymentID)
	}
	if err := mine(live, paymentID); err != nil || live.N != n || live.Status == exchange.TxIncluded {
		return live, err
	}
	order, err := s.order(ctx, paymentID, exchange.ChainSigned, exchange.ChainBroadcast)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if !order.client.Traits().Sequenced {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeInternal, "keys: a transaction on %s can't be outbid", order.payment.Network)
	}
	draft := order.draft()
	draft.Nonce, draft.Outbid = live.Nonce, live.Bid
	unsigned, err := s.prepare(ctx, order, draft)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if err := s.housePays(ctx, order, unsigned); err != nil {
		return exchange.ChainAttempt{}, err
	}
	signed, err := s.sign(ctx, order, unsigned)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	stored, err := s.store.SaveReplacement(ctx, live.ID, s.attempt(order, signed))
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	return stored, mine(stored, paymentID)
}

// mine refuses a transaction of another payment, whoever mixed them up.
func mine(a exchange.ChainAttempt, paymentID uuid.UUID) error {
	if a.PaymentID != paymentID || len(a.Raw) == 0 || a.TxID == "" {
		return exchange.Errorf(exchange.CodeInternal, "keys: the stored transaction does not belong to payment %s", paymentID)
	}
	return nil
}

// order is a payment that may be signed, with what signs it.
type order struct {
	payment exchange.ChainPayment
	sealed  []Sealed
	client  chain.Client
}

// order reads a payment and refuses one that was not approved exactly as it stands.
func (s *PaymentSigner) order(ctx context.Context, id uuid.UUID, states ...exchange.ChainPaymentStatus) (order, error) {
	p, sealed, err := s.store.PaymentForSigning(ctx, id)
	if err != nil {
		return order{}, err
	}
	o, err := s.approved(p, id, states...)
	if err != nil {
		return order{}, err
	}
	o.sealed = sealed
	holders := []string{p.FromAddress}
	if p.FeePayer != "" {
		if !o.client.Traits().Sponsored || p.FeeWalletID == uuid.Nil {
			return order{}, refuse(id, exchange.CodeUnsupported, "nobody else can pay its fee")
		}
		holders = append(holders, p.FeePayer)
	}
	if len(sealed) != len(holders) {
		return order{}, refuse(id, exchange.CodeInternal, "it needs %d keys and has %d", len(holders), len(sealed))
	}
	for i, want := range holders {
		if err := holds(o.client, id, sealed[i], want); err != nil {
			return order{}, err
		}
	}
	return o, nil
}

func refuse(id uuid.UUID, code exchange.Code, format string, args ...any) error {
	return exchange.Errorf(code, "keys: payment %s is not signed: %s", id, fmt.Sprintf(format, args...))
}

// holds makes sure that a sealed key is of an address.
func holds(client chain.Client, id uuid.UUID, key Sealed, want string) error {
	holder, err := client.Address(key.PublicKey)
	if err == nil && holder != want {
		err = refuse(id, exchange.CodeStateConflict, "the wallet's key is of another address")
	}
	return err
}

// approved checks a payment against its approval, whoever read it.
func (s *PaymentSigner) approved(p exchange.ChainPayment, id uuid.UUID, states ...exchange.ChainPaymentStatus) (order, error) {
	if p.ID != id {
		return order{}, refuse(id, exchange.CodeInternal, "the store gave another one")
	}
	if !slices.Contains(states, p.Status) {
		return order{}, refuse(id, exchange.CodeStateConflict, "its status is %s, not %s", p.Status, states[0])
	}
	if p.ApprovedBy == "" {
		return order{}, refuse(id, exchange.CodeStateConflict, "nobody approved it")
	}
	if subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1 {
		return order{}, refuse(id, exchange.CodeStateConflict, "it is not what was approved")
	}
	client, ok := s.clients[p.Network]
	if !ok {
		return order{}, refuse(id, exchange.CodeUnsupported, "this signer has no network %s", p.Network)
	}
	if !p.Amount.Positive() {
		return order{}, refuse(id, exchange.CodeInvalid, "its amount is not positive")
	}
	if limit, bounded := s.ceilings[p.Amount.Asset()]; bounded && p.Amount.Cmp(limit) > 0 {
		return order{}, refuse(id, exchange.CodeForbidden, "%s %s is above the signer's ceiling of %s", p.Amount, p.Amount.Asset(), limit)
	}
	return order{payment: p, client: client}, nil
}

// draft is the approved transfer. It is made from the approved row alone.
func (o order) draft() chain.Draft {
	p := o.payment
	d := chain.Draft{Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, FeePayer: p.FeePayer}
	switch p.Purpose {
	case exchange.ForNonceAccount:
		d.Step, d.Seed = chain.NonceOpen, exchange.NonceSeed(p.ObjectID)
	case exchange.ForNonceAdvance:
		d.Step = chain.NonceAdvance
	case exchange.ForOrder, exchange.ForRefund, exchange.ForTransfer, exchange.ForGas, exchange.ForSweep, exchange.ForFunding: // plain transfers
	}
	return d
}

// draft adds the number that the payment may have. The lane of the database gives it; the chain's count
// begins a lane, and must never be ahead of one: then somebody else sends with the key. The second answer
// is that count: the number of the first transaction that no block has yet.
func (s *PaymentSigner) draft(ctx context.Context, o order) (chain.Draft, uint64, error) {
	d := o.draft()
	if !o.client.Traits().Sequenced {
		return d, 0, nil
	}
	counter, ok := o.client.(chain.Sequenced)
	if !ok {
		return d, 0, exchange.Errorf(exchange.CodeInternal, "keys: the client for %s counts no transactions", o.payment.Network)
	}
	// The count comes before the lane: every transaction of ours that it counts is then in the lane.
	counted, err := counter.Nonces(ctx, o.payment.FromAddress)
	if err != nil {
		return d, 0, err
	}
	lane, open, err := s.store.NonceLane(ctx, o.payment.WalletID)
	if err != nil {
		return d, 0, err
	}
	if lane.Foreign {
		return d, 0, chain.Errorf(chain.ReasonForeign, "a number of wallet %s was used by a transaction that is not ours", o.payment.WalletID)
	}
	if open && counted.Latest > lane.Next {
		return d, 0, chain.Errorf(chain.ReasonForeign, "the chain counts %d transactions of wallet %s, and we signed %d", counted.Latest, o.payment.WalletID, lane.Next)
	}
	d.Nonce = counted.Latest
	if open {
		d.Nonce = lane.Next
	}
	return d, counted.Latest, nil
}

// prepare builds the transaction of a draft, which must still say what the draft says.
func (s *PaymentSigner) prepare(ctx context.Context, o order, d chain.Draft) (chain.Unsigned, error) {
	u, err := o.client.Prepare(ctx, d)
	if err != nil {
		return u, err
	}
	got := u.Transfer
	if got.From != d.From || got.To != d.To || !got.Amount.Equal(d.Amount) || u.FeePayer != d.FeePayer || u.Nonce != d.Nonce ||
		u.Step != d.Step || u.Seed != d.Seed {
		return u, exchange.Errorf(exchange.CodeInternal, "keys: the driver prepared another transfer for payment %s", o.payment.ID)
	}
	return u, nil
}

// afford refuses a transaction for which the wallet has no native coin left when those before it in the
// lane are paid for. No node would take it then, and with its number it would hold up all that follow.
func (s *PaymentSigner) afford(ctx context.Context, o order, u chain.Unsigned, unmined uint64) error {
	native := o.payment.Network.NativeCoin()
	need, err := s.store.LaneReserve(ctx, o.payment.WalletID, o.payment.Network, unmined)
	if err != nil {
		return err
	}
	need = need.Add(u.FeeLimit)
	if u.Transfer.Amount.Asset() == native {
		need = need.Add(u.Transfer.Amount)
	}
	has, err := o.client.Balance(ctx, o.payment.FromAddress, native)
	if err != nil {
		return err
	}
	if missing := need.Sub(has.Amount); missing.Positive() {
		refused := chain.Errorf(chain.ReasonGas, "the payments before it leave %s %s too little for the fee", missing, native)
		refused.Missing = missing
		return refused
	}
	return nil
}

// withinBudget refuses a transaction whose fee would overdraw what the house spends on fees in a day. One that
// outbids another is not held against it: the payments behind it would wait too.
func (s *PaymentSigner) withinBudget(ctx context.Context, o order, u chain.Unsigned) error {
	if u.FeeLimit.Asset() == "" {
		return nil // the network takes nothing
	}
	left, bounded, err := s.store.FeesLeft(ctx, o.payment)
	if err != nil || !bounded || u.FeeLimit.Cmp(left) <= 0 {
		return err
	}
	return chain.Errorf(chain.ReasonBudget, "the fee may be %s %s, and the budget of the day has %s left", u.FeeLimit, u.FeeLimit.Asset(), left)
}

// housePays refuses a transaction whose fee could reach into coins that belong to the wallet's owner.
func (s *PaymentSigner) housePays(ctx context.Context, o order, u chain.Unsigned) error {
	if u.FeeLimit.Asset() == "" {
		return nil // the network takes nothing
	}
	share, bounded, err := s.store.HouseGas(ctx, o.payment)
	if err != nil || !bounded {
		return err
	}
	if missing := u.FeeLimit.Sub(share); missing.Positive() {
		refused := chain.Errorf(chain.ReasonGas, "the fee may be %s %s, and the house has %s in the wallet", u.FeeLimit, u.FeeLimit.Asset(), share)
		refused.Missing = missing
		return refused
	}
	return nil
}

// sign signs a prepared transaction once.
func (s *PaymentSigner) sign(ctx context.Context, o order, unsigned chain.Unsigned) (chain.Signed, error) {
	p := o.payment
	var signed chain.Signed
	// Each key checks that its signature recovers to its public key, which is the address's, and
	// withholds it otherwise.
	err := s.vault.Use(ctx, o.sealed[0], o.sealed[0].ref(p.WalletID, p.Network), func(sender chain.Key) error {
		if len(o.sealed) == 1 {
			var signErr error
			signed, signErr = o.client.Sign(unsigned, &onceKey{Key: sender})
			return signErr
		}
		return s.vault.Use(ctx, o.sealed[1], Ref{WalletID: p.FeeWalletID, Network: p.Network}, func(payer chain.Key) error {
			var signErr error
			signed, signErr = o.client.Sign(unsigned, &onceKey{Key: sender}, &onceKey{Key: payer})
			return signErr
		})
	})
	return signed, err
}

// onceKey lets a driver sign one time.
type onceKey struct {
	chain.Key
	used bool
}

// Sign passes the first request on.
func (k *onceKey) Sign(payload []byte) ([]byte, error) {
	if k.used {
		return nil, errors.New("keys: a payment is signed once")
	}
	k.used = true
	return k.Key.Sign(payload)
}

// attempt is the row of a signed transaction. The store numbers it.
func (s *PaymentSigner) attempt(o order, signed chain.Signed) exchange.ChainAttempt {
	now := s.now().UTC()
	lane := uuid.Nil
	if o.client.Traits().Sequenced {
		lane = o.payment.WalletID
	}
	return exchange.ChainAttempt{
		ID:              uuid.Must(uuid.NewV7()),
		PaymentID:       o.payment.ID,
		Network:         o.payment.Network,
		Lane:            lane,
		TxID:            signed.TxID,
		Raw:             signed.Raw,
		ExpiresAt:       signed.ExpiresAt,
		LastValidHeight: signed.LastValidHeight,
		Nonce:           signed.Nonce,
		RefBlock:        signed.RefBlock,
		NonceAccount:    signed.NonceAccount,
		NonceBlock:      signed.NonceBlock,
		Bid:             signed.Bid,
		FeeLimit:        signed.FeeLimit,
		Status:          exchange.TxSigned,
		CreatedAt:       now,
		UpdatedAt:       now,
	}
}

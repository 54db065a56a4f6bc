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

// Signer is the only way to a signature: by the id of an approved payment.
type Signer interface {
	// SignPayment returns the payment's live transaction, and makes it first if there is none. It is safe to call again. The
	// returned transaction is stored.
	SignPayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
	// BumpPaymentFee makes a transaction that replaces the payment's leading one: same number and transfer, higher bid. n is
	// the number of the attempt to replace; when another one already leads, that one is returned and nothing is signed. The
	// returned transaction is stored.
	BumpPaymentFee(ctx context.Context, paymentID uuid.UUID, n int) (exchange.ChainAttempt, error)
}

// PaymentStore is the part of the database that the signer needs.
type PaymentStore interface {
	// PaymentForSigning reads a payment and the sealed keys that sign it: the sending wallet's, then the fee wallet's if
	// there is one.
	PaymentForSigning(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, []Sealed, error)
	// NonceSequence reads a wallet's sequence; false when nothing was sent from the wallet yet.
	NonceSequence(ctx context.Context, walletID uuid.UUID) (exchange.NonceSequence, bool, error)
	// NonceReserve is the most native coin that a wallet's unmined transactions with the number from and above may still
	// cost: their fees and what they send.
	NonceReserve(ctx context.Context, walletID uuid.UUID, n exchange.Network, from uint64) (money.Amount, error)
	// HouseGas is what the house owns in the wallet that pays the payment's fee, in the native coin; false when every coin
	// in it may be used.
	HouseGas(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error)
	// FeesLeft is what the house may still spend today on the fees of the payment's network; false without a budget.
	FeesLeft(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error)
	// LiveAttempt returns the payment's leading transaction that may still move money, if there is one.
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	// SaveSignedAttempt stores a signed transaction, numbers it, and moves the payment to signed. If the payment already has
	// a live one, that one is returned and nothing is stored. It fails with CodeConflict when the transaction id exists,
	// another payment took its number, or its fee may now exceed what the house has in the wallet.
	SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error)
	// SaveReplacement stores a signed transaction that replaces the leading one of the given id with a higher fee, and
	// returns the one that leads afterwards.
	SaveReplacement(ctx context.Context, bumps uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error)
	// MultisigAccountByID reads an account of several owners that a payment opens.
	MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error)
}

// Bounds of how often a transaction is prepared again because its id or its number was taken.
const (
	maxPrepares = 5
	maxTurns    = 20 // when payments of one wallet compete for numbers
)

var _ Signer = (*PaymentSigner)(nil)

// PaymentSigner signs approved payments. It trusts no caller and no row: it recomputes the approved hash, derives the sender
// from the key, and applies its own ceilings.
type PaymentSigner struct {
	store    PaymentStore
	vault    *Vault
	clients  map[exchange.Network]chain.Client
	ceilings map[money.Asset]money.Amount
	now      func() time.Time
	turns    turns
	cold     ColdStore
	joint    JointStore

	handovers HandoverStore
}

// PaymentSignerConfig configures a PaymentSigner.
type PaymentSignerConfig struct {
	Store   PaymentStore
	Vault   *Vault
	Clients map[exchange.Network]chain.Client
	// Ceilings bound a single payment of an asset, regardless of its approval. An asset without one is not bounded here.
	Ceilings map[money.Asset]money.Amount
	Now      func() time.Time // time.Now when nil
	// Cold stores transactions that the owner of a cold wallet signed elsewhere; nil when this signer completes none.
	Cold ColdStore
	// Joint stores what several owners sign; nil when this signer has no part in it.
	Joint JointStore
	// Handovers stores what gives accounts to their owners; nil when this signer gives none.
	Handovers HandoverStore
}

// NewPaymentSigner checks the configuration.
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
	return &PaymentSigner{store: c.Store, vault: c.Vault, clients: c.Clients, ceilings: c.Ceilings, now: c.Now, turns: newTurns(), cold: c.Cold, joint: c.Joint, handovers: c.Handovers}, nil
}

// SignPayment implements Signer. While a transaction of the payment is alive no other is signed, and a signature is stored
// before it leaves the process. A crash between signing and storing loses only an unsent signature. When two signers work on
// one payment, the store accepts one transaction, and both return it.
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
		wallet, _ := order.sender()
		done, err := s.turns.wait(ctx, wallet)
		if err != nil {
			return exchange.ChainAttempt{}, err
		}
		defer done()
	}
	for range tries {
		stored, err := s.signAndSave(ctx, order)
		if exchange.CodeOf(err) == exchange.CodeConflict {
			continue // another payment has the same transaction, which would pay only once, or took its number
		}
		if err != nil {
			return exchange.ChainAttempt{}, err
		}
		return stored, mine(stored, paymentID)
	}
	if order.client.Traits().Sequenced {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeUnavailable, "Other payments of the wallet took every nonce that was tried. Try again.")
	}
	return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeConflict, "No unique transaction could be built for the payment.")
}

func (s *PaymentSigner) signAndSave(ctx context.Context, o order) (exchange.ChainAttempt, error) {
	draft, unmined, err := s.draft(ctx, o)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	unsigned, err := s.prepare(ctx, o, draft)
	if err != nil {
		return exchange.ChainAttempt{}, s.wholeNeed(ctx, o, err)
	}
	if err := s.withinBudget(ctx, o, unsigned.Unsigned); err != nil {
		return exchange.ChainAttempt{}, err
	}
	if err := s.housePays(ctx, o, unsigned.Unsigned); err != nil {
		return exchange.ChainAttempt{}, err
	}
	if draft.Nonce > unmined {
		if err := s.afford(ctx, o, unsigned.Unsigned, unmined); err != nil {
			return exchange.ChainAttempt{}, err
		}
	}
	signed, err := s.sign(ctx, o, unsigned)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	return s.store.SaveSignedAttempt(ctx, s.attempt(o, signed))
}

// BumpPaymentFee implements Signer.
func (s *PaymentSigner) BumpPaymentFee(ctx context.Context, paymentID uuid.UUID, n int) (exchange.ChainAttempt, error) {
	live, ok, err := s.store.LiveAttempt(ctx, paymentID)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if !ok {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeStateConflict, "keys: payment %s has no transaction to replace", paymentID)
	}
	if err := mine(live, paymentID); err != nil || live.N != n || live.Status == exchange.TxIncluded {
		return live, err
	}
	order, err := s.order(ctx, paymentID, exchange.ChainSigned, exchange.ChainBroadcast)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if !order.client.Traits().Sequenced {
		return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeInternal, "keys: a transaction on %s can't be replaced with a higher fee", order.payment.Network)
	}
	draft := order.draft()
	draft.Nonce, draft.Bump, order.limit = live.Nonce, live.Bid, live.FeeLimit
	unsigned, err := s.prepare(ctx, order, draft)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if err := s.housePays(ctx, order, unsigned.Unsigned); err != nil {
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

// mine refuses a stored transaction of another payment.
func mine(a exchange.ChainAttempt, paymentID uuid.UUID) error {
	if a.PaymentID != paymentID || len(a.Raw) == 0 || a.TxID == "" {
		return exchange.Errorf(exchange.CodeInternal, "keys: the stored transaction does not belong to payment %s", paymentID)
	}
	return nil
}

// order is a payment that may be signed, with what is needed to sign it.
type order struct {
	payment exchange.ChainPayment
	sealed  []Sealed
	client  chain.Client
	opens   *exchange.MultisigAccount // that the payment opens; nil for none
	limit   money.Amount              // of the fee of the transaction that a higher bid replaces
	joint   *joint                    // what several owners signed, and sealed is the key of who pays for it; nil for a payment of one key
}

// sender is whose numbers the transaction uses: of the wallet that pays for an execution, else of the wallet that the money leaves.
func (o order) sender() (wallet uuid.UUID, address string) {
	if o.joint != nil {
		return o.payment.FeeWalletID, o.payment.FeePayer
	}
	return o.payment.WalletID, o.payment.FromAddress
}

// order reads a payment and refuses one that differs from its approval.
func (s *PaymentSigner) order(ctx context.Context, id uuid.UUID, states ...exchange.ChainPaymentStatus) (order, error) {
	p, sealed, err := s.store.PaymentForSigning(ctx, id)
	if err != nil {
		return order{}, err
	}
	if p.Purpose == exchange.ForProposal {
		return s.execution(ctx, id, states...)
	}
	o, err := s.approved(p, id, states...)
	if err != nil {
		return order{}, err
	}
	o.sealed = sealed
	if p.Purpose == exchange.ForMultisigOpen {
		if o.opens, err = s.opening(ctx, p); err != nil {
			return order{}, err
		}
	}
	holders := []string{p.FromAddress}
	if p.FeePayer != "" {
		if !o.client.Traits().Sponsored || p.FeeWalletID == uuid.Nil {
			return order{}, refuse(id, exchange.CodeUnsupported, "its network has no separate fee payer")
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

// opening reads the account that a payment opens. Its owners come from its own rows, and the driver refuses them unless they lead to the
// address that was approved.
func (s *PaymentSigner) opening(ctx context.Context, p exchange.ChainPayment) (*exchange.MultisigAccount, error) {
	a, err := s.store.MultisigAccountByID(ctx, p.ObjectID)
	if err != nil {
		return nil, err
	}
	if a.ID != p.ObjectID || a.Network != p.Network || a.Adopted || a.Status != exchange.MultisigOpening || a.Address != p.ToAddress {
		return nil, refuse(p.ID, exchange.CodeStateConflict, "the account %s (%s, %s) is not one that it opens", a.ID, a.Address, a.Status)
	}
	return &a, nil
}

func refuse(id uuid.UUID, code exchange.Code, format string, args ...any) error {
	return exchange.Errorf(code, "keys: payment %s is not signed: %s", id, fmt.Sprintf(format, args...))
}

// holds checks that a sealed key belongs to an address.
func holds(client chain.Client, id uuid.UUID, key Sealed, want string) error {
	holder, err := client.Address(key.PublicKey)
	if err == nil && holder != want {
		err = refuse(id, exchange.CodeStateConflict, "the wallet's key is of another address")
	}
	return err
}

// approved checks a payment against its approval.
func (s *PaymentSigner) approved(p exchange.ChainPayment, id uuid.UUID, states ...exchange.ChainPaymentStatus) (order, error) {
	if p.ID != id {
		return order{}, refuse(id, exchange.CodeInternal, "the store gave another one")
	}
	if !slices.Contains(states, p.Status) {
		return order{}, refuse(id, exchange.CodeStateConflict, "its status is %s, not %s", p.Status, states[0])
	}
	if p.ApprovedBy == "" {
		return order{}, refuse(id, exchange.CodeStateConflict, "it is not approved")
	}
	if subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1 {
		return order{}, refuse(id, exchange.CodeStateConflict, "it differs from its approval")
	}
	client, ok := s.clients[p.Network]
	if !ok {
		return order{}, refuse(id, exchange.CodeUnsupported, "this signer has no network %s", p.Network)
	}
	free := p.Purpose == exchange.ForMultisigOpen || p.Purpose == exchange.ForProposal // a Safe is opened without ether; not every proposal moves something
	if p.Amount.Sign() < 0 || p.Amount.IsZero() && !free {
		return order{}, refuse(id, exchange.CodeInvalid, "its amount is not positive")
	}
	if limit, bounded := s.ceilings[p.Amount.Asset()]; bounded && p.Amount.Cmp(limit) > 0 {
		return order{}, refuse(id, exchange.CodeForbidden, "%s %s is above the signer's ceiling of %s", p.Amount, p.Amount.Asset(), limit)
	}
	return order{payment: p, client: client}, nil
}

// draft is the approved transfer, made only from the approved row.
func (o order) draft() chain.Draft {
	p := o.payment
	d := chain.Draft{Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, FeePayer: p.FeePayer}
	switch p.Purpose {
	case exchange.ForNonceAccount:
		d.Step, d.Seed = chain.NonceOpen, exchange.NonceSeed(p.ObjectID)
	case exchange.ForNonceAdvance:
		d.Step = chain.NonceAdvance
	case exchange.ForMultisigOpen:
		if _, gives := o.client.(chain.Giver); gives {
			break // it pays for what the account's own key does
		}
		seed, owners := chain.OpeningOf(*o.opens)
		d.Seed, d.Owners = seed, &owners
	case exchange.ForOrder, exchange.ForRefund, exchange.ForTransfer, exchange.ForGas, exchange.ForSweep, exchange.ForFunding, exchange.ForWithdrawal, exchange.ForFeeSweep,
		exchange.ForSwapCollect, exchange.ForSwapPayout, exchange.ForSwapRefund: // plain transfers
	case exchange.ForProposal: // only its number is used: the owners signed the rest
	}
	return d
}

// draft adds the payment's number. It comes from the sequence in the database. The chain's count starts a sequence and must
// never be ahead of it: then another party sends with the key. The second result is that count: the number of the first
// transaction that is not in a block yet.
func (s *PaymentSigner) draft(ctx context.Context, o order) (chain.Draft, uint64, error) {
	d := o.draft()
	if !o.client.Traits().Sequenced {
		return d, 0, nil
	}
	counter, ok := o.client.(chain.Sequenced)
	if !ok {
		return d, 0, exchange.Errorf(exchange.CodeInternal, "keys: the client for %s counts no transactions", o.payment.Network)
	}
	wallet, address := o.sender()
	// Count before reading the sequence: then every counted transaction of ours is in the sequence.
	counted, err := counter.Nonces(ctx, address)
	if err != nil {
		return d, 0, err
	}
	sequence, open, err := s.store.NonceSequence(ctx, wallet)
	if err != nil {
		return d, 0, err
	}
	if sequence.Foreign {
		return d, 0, chain.Errorf(chain.ReasonForeign, "a number of wallet %s was used by a transaction that is not ours", wallet)
	}
	if open && counted.Latest > sequence.Next {
		return d, 0, chain.Errorf(chain.ReasonForeign, "the chain counts %d transactions of wallet %s, and we signed %d", counted.Latest, wallet, sequence.Next)
	}
	d.Nonce = counted.Latest
	if open {
		d.Nonce = sequence.Next
	}
	return d, counted.Latest, nil
}

// prepare builds the transaction of a draft and checks that the driver did not change it. One that a single key signs is an execution
// without a joint transaction.
func (s *PaymentSigner) prepare(ctx context.Context, o order, d chain.Draft) (chain.Execution, error) {
	if o.joint != nil {
		return s.prepareExecution(ctx, o, d)
	}
	u, err := o.client.Prepare(ctx, d)
	if err != nil {
		return chain.Execution{}, err
	}
	got := u.Transfer
	if got.From != d.From || got.To != d.To || !got.Amount.Equal(d.Amount) || u.FeePayer != d.FeePayer || u.Nonce != d.Nonce ||
		u.Step != d.Step || u.Seed != d.Seed || !u.Owners.Equal(d.Owners) {
		return chain.Execution{}, exchange.Errorf(exchange.CodeInternal, "keys: the driver prepared another transfer for payment %s", o.payment.ID)
	}
	return chain.Execution{Unsigned: u}, nil
}

// sign signs a prepared transaction once.
func (s *PaymentSigner) sign(ctx context.Context, o order, x chain.Execution) (chain.Signed, error) {
	if o.joint != nil {
		return s.signExecution(ctx, o, x)
	}
	p, unsigned := o.payment, x.Unsigned
	var signed chain.Signed
	// Each key verifies that its signature recovers to its public key, and so to the address, and withholds it otherwise.
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

// onceKey lets a driver sign once.
type onceKey struct {
	chain.Key
	used bool
}

// Sign passes on the first request.
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
	sequence := uuid.Nil
	if o.client.Traits().Sequenced {
		sequence, _ = o.sender()
	}
	return exchange.ChainAttempt{
		ID:              uuid.Must(uuid.NewV7()),
		PaymentID:       o.payment.ID,
		Network:         o.payment.Network,
		NonceWallet:     sequence,
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

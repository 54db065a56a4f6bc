package keys

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
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
}

// PaymentStore is what the signer needs of the database.
type PaymentStore interface {
	// PaymentForSigning reads a payment and the sealed key of its sending wallet.
	PaymentForSigning(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, Sealed, error)
	// LiveAttempt reads the payment's transaction that may still move money, if there is one.
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	// SaveSignedAttempt stores a signed transaction, numbers it, and moves the payment to signed. If
	// the payment has a live one already, that one is returned and nothing is stored. It fails with
	// CodeConflict when the transaction id exists already.
	SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error)
}

// maxPrepares bounds how often a transaction is prepared again because its id was taken.
const maxPrepares = 5

var _ Signer = (*PaymentSigner)(nil)

// PaymentSigner signs approved payments. It trusts no caller and no row: it recomputes the hash that
// was approved, derives the sender from the key, and applies ceilings of its own.
type PaymentSigner struct {
	store    PaymentStore
	vault    *Vault
	clients  map[exchange.Network]chain.Client
	ceilings map[money.Asset]money.Amount
	now      func() time.Time
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
	return &PaymentSigner{store: c.Store, vault: c.Vault, clients: c.Clients, ceilings: c.Ceilings, now: c.Now}, nil
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
	payment, sealed, err := s.store.PaymentForSigning(ctx, paymentID)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	client, err := s.check(paymentID, payment, sealed)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	for range maxPrepares {
		signed, err := s.sign(ctx, client, payment, sealed)
		if err != nil {
			return exchange.ChainAttempt{}, err
		}
		stored, err := s.store.SaveSignedAttempt(ctx, s.attempt(payment, signed))
		if exchange.CodeOf(err) == exchange.CodeConflict {
			continue // another payment has this very transaction: on a chain without sequence numbers it would pay only once
		}
		if err != nil {
			return exchange.ChainAttempt{}, err
		}
		return stored, mine(stored, paymentID)
	}
	return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeConflict, "No transaction of its own could be built for the payment.")
}

// mine refuses a transaction of another payment, whoever mixed them up.
func mine(a exchange.ChainAttempt, paymentID uuid.UUID) error {
	if a.PaymentID != paymentID || len(a.Raw) == 0 || a.TxID == "" {
		return exchange.Errorf(exchange.CodeInternal, "keys: the stored transaction does not belong to payment %s", paymentID)
	}
	return nil
}

// check refuses a payment that was not approved exactly as it stands.
func (s *PaymentSigner) check(id uuid.UUID, p exchange.ChainPayment, sealed Sealed) (chain.Client, error) {
	refuse := func(code exchange.Code, format string, args ...any) error {
		return exchange.Errorf(code, "keys: payment %s is not signed: %s", id, fmt.Sprintf(format, args...))
	}
	if p.ID != id {
		return nil, refuse(exchange.CodeInternal, "the store gave another one")
	}
	if p.Status != exchange.ChainApproved {
		return nil, refuse(exchange.CodeStateConflict, "its status is %s, not %s", p.Status, exchange.ChainApproved)
	}
	if p.ApprovedBy == "" {
		return nil, refuse(exchange.CodeStateConflict, "nobody approved it")
	}
	if subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1 {
		return nil, refuse(exchange.CodeStateConflict, "it is not what was approved")
	}
	client, ok := s.clients[p.Network]
	if !ok {
		return nil, refuse(exchange.CodeUnsupported, "this signer has no network %s", p.Network)
	}
	if !p.Amount.Positive() {
		return nil, refuse(exchange.CodeInvalid, "its amount is not positive")
	}
	if limit, bounded := s.ceilings[p.Amount.Asset()]; bounded && p.Amount.Cmp(limit) > 0 {
		return nil, refuse(exchange.CodeForbidden, "%s %s is above the signer's ceiling of %s", p.Amount, p.Amount.Asset(), limit)
	}
	holder, err := client.Address(sealed.PublicKey)
	if err != nil {
		return nil, err
	}
	if holder != p.FromAddress {
		return nil, refuse(exchange.CodeStateConflict, "the wallet's key is of another address")
	}
	return client, nil
}

// sign prepares the payment and signs it once. The transfer that is signed is made from the approved
// row here, and what the driver prepared must still say the same.
func (s *PaymentSigner) sign(ctx context.Context, client chain.Client, p exchange.ChainPayment, sealed Sealed) (chain.Signed, error) {
	want := chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}
	unsigned, err := client.Prepare(ctx, chain.Draft{Transfer: want})
	if err != nil {
		return chain.Signed{}, err
	}
	if unsigned.Transfer.From != want.From || unsigned.Transfer.To != want.To || !unsigned.Transfer.Amount.Equal(want.Amount) {
		return chain.Signed{}, exchange.Errorf(exchange.CodeInternal, "keys: the driver prepared another transfer for payment %s", p.ID)
	}
	var signed chain.Signed
	err = s.vault.Use(ctx, sealed, Ref{WalletID: p.WalletID, Network: p.Network}, func(k chain.Key) error {
		var signErr error
		// The key checks that its signature recovers to its public key, which is the sender's, and
		// withholds it otherwise.
		signed, signErr = client.Sign(unsigned, &onceKey{Key: k})
		return signErr
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
func (s *PaymentSigner) attempt(p exchange.ChainPayment, signed chain.Signed) exchange.ChainAttempt {
	now := s.now().UTC()
	return exchange.ChainAttempt{
		ID:              uuid.Must(uuid.NewV7()),
		PaymentID:       p.ID,
		Network:         p.Network,
		TxID:            signed.TxID,
		Raw:             signed.Raw,
		ExpiresAt:       signed.ExpiresAt,
		LastValidHeight: signed.LastValidHeight,
		Nonce:           signed.Nonce,
		RefBlock:        signed.RefBlock,
		FeeLimit:        signed.FeeLimit,
		Status:          exchange.TxSigned,
		CreatedAt:       now,
		UpdatedAt:       now,
	}
}

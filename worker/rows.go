package worker

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/store"
)

// Rows is the store as activities and the signer ask for it: without the answers that they have no
// use for, and with their own words for outcomes.
type Rows struct{ *store.Store }

var (
	_ activities.OrderStore       = Rows{}
	_ activities.AttemptStore     = Rows{}
	_ activities.RefundStore      = Rows{}
	_ activities.PayoutStore      = Rows{}
	_ activities.BankStore        = Rows{}
	_ activities.StatementStore   = Rows{}
	_ activities.FloatStore       = Rows{}
	_ activities.ChainStore       = Rows{}
	_ activities.SigningStore     = Rows{}
	_ activities.RecipientStore   = Rows{}
	_ activities.WalletStore      = Rows{}
	_ activities.DepositStore     = Rows{}
	_ activities.DepositWaitStore = Rows{}
	_ keys.PaymentStore           = SigningRows{}
	_ keys.ColdStore              = SigningRows{}
	_ activities.ColdStore        = Rows{}

	_ activities.TransferStore = Rows{}
	_ activities.ApprovalStore = Rows{}

	_ activities.EscrowStore      = Rows{}
	_ activities.ChainRefundStore = Rows{}
	_ activities.SweepStore       = Rows{}
	_ activities.OffRampStore     = Rows{}
	_ activities.RelayStore       = Rows{}
	_ activities.WebhookStore     = Rows{}

	_ activities.ReconciliationStore = Rows{}
	_ activities.ComparingStore      = Rows{}
)

// OrderByID reads an order for its own flow.
func (r Rows) OrderByID(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return r.Store.Order(ctx, store.Everything(), id)
}

// TransferByID reads a transfer for its own flow.
func (r Rows) TransferByID(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return r.Store.Transfer(ctx, store.Everything(), id)
}

// AcceptPayment books a proven payment.
func (r Rows) AcceptPayment(ctx context.Context, id uuid.UUID, o exchange.Observation, now time.Time) (activities.PaymentOutcome, error) {
	p, err := r.Store.AcceptPayment(ctx, id, o, now)
	return activities.PaymentOutcome{
		Order: p.Order, Attempt: p.Attempt, ChainPayment: p.ChainPayment, Exception: p.Exception, Refund: p.Refund,
		Kind: string(p.Kind),
	}, err
}

// RecordIncluded notes the block of a transaction.
func (r Rows) RecordIncluded(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string) error {
	_, err := r.Store.RecordIncluded(ctx, attemptID, block, blockID)
	return err
}

// RecordVanished notes that a transaction's block was reorganised away.
func (r Rows) RecordVanished(ctx context.Context, attemptID uuid.UUID) error {
	_, err := r.Store.RecordVanished(ctx, attemptID)
	return err
}

// RecordExpired notes that a transaction is proven impossible.
func (r Rows) RecordExpired(ctx context.Context, attemptID uuid.UUID, evidence string) error {
	_, err := r.Store.RecordExpired(ctx, attemptID, evidence)
	return err
}

// ParkChainPayment stops a payment until a person decides.
func (r Rows) ParkChainPayment(ctx context.Context, id uuid.UUID, detail string) error {
	_, err := r.Store.ParkChainPayment(ctx, id, detail)
	return err
}

// RetryChainPayment lets a parked payment be signed anew.
func (r Rows) RetryChainPayment(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	_, err := r.Store.RetryChainPayment(ctx, id, by)
	return err
}

// CompleteRefund books a refund that is proven to be paid.
func (r Rows) CompleteRefund(ctx context.Context, refundID, attemptID uuid.UUID, o exchange.Observation) error {
	_, err := r.Store.CompleteRefund(ctx, refundID, attemptID, o)
	return err
}

// ConfirmPayee writes that a person confirmed who gets a refund.
func (r Rows) ConfirmPayee(ctx context.Context, refundID uuid.UUID, by exchange.Principal) error {
	_, err := r.Store.ConfirmPayee(ctx, refundID, by)
	return err
}

// FailRefund notes that a refund's payout was definitely refused.
func (r Rows) FailRefund(ctx context.Context, refundID uuid.UUID, detail string) error {
	_, err := r.Store.FailRefund(ctx, refundID, detail)
	return err
}

// ResolveRefund completes a refund that a person paid by other means.
func (r Rows) ResolveRefund(ctx context.Context, refundID uuid.UUID, reference string, by exchange.Principal) error {
	_, err := r.Store.ResolveRefund(ctx, refundID, reference, by)
	return err
}

// ResolveException closes a payment exception by a person's decision.
func (r Rows) ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) error {
	_, err := r.Store.ResolveException(ctx, id, to, note, by)
	return err
}

// EnterSourcedRate stores a rate of the configured source.
func (r Rows) EnterSourcedRate(ctx context.Context, rate exchange.FXRate) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = r.EnterRate(ctx, store.RateEntry{
		ID: id, Base: rate.Base, Quote: rate.Quote, Bid: rate.Bid, Ask: rate.Ask, Source: rate.Source, ValidFrom: rate.ValidFrom,
		Life: rate.StaleAt.Sub(rate.ValidFrom),
	}, exchange.System("rates"))
	return err
}

// Prune deletes rows that have outlived their use, and writes down which quotes have.
func (r Rows) Prune(ctx context.Context, limit int) (activities.Pruned, error) {
	p, err := r.Store.Prune(ctx, limit)
	out := activities.Pruned{Sessions: p.Sessions, LoginFailures: p.LoginFailures, IdempotencyKeys: p.IdempotencyKeys, Parties: p.Parties}
	if err == nil {
		out.ExpiredQuotes, err = r.ExpireQuotes(ctx, limit)
	}
	if err == nil {
		out.WebhookDeliveries, err = r.PruneWebhooks(ctx, limit)
	}
	return out, err
}

// SigningRows is the store as the signer asks for it.
type SigningRows struct{ *store.Store }

// PaymentForSigning reads a payment and the sealed keys that sign it.
func (r SigningRows) PaymentForSigning(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, []keys.Sealed, error) {
	p, stored, err := r.Store.PaymentForSigning(ctx, id)
	sealed := make([]keys.Sealed, len(stored))
	for i, k := range stored {
		sealed[i] = keys.Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm)}
		if k.Network != p.Network { // the wallet is the twin of the one that the key was sealed for
			sealed[i].For = keys.Ref{WalletID: k.WalletID, Network: k.Network}
		}
	}
	return p, sealed, err
}

// ColdForCompletion reads what a cold wallet's owner signed, and the sealed key that signs it after that.
func (r SigningRows) ColdForCompletion(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, keys.Sealed, error) {
	p, d, k, err := r.Store.ColdForCompletion(ctx, id)
	return p, d, keys.Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm)}, err
}

// KeySealer makes a key and seals it: keys.Vault for hot wallets, keys.ColdSealer for cold ones.
type KeySealer interface {
	Create(ctx context.Context, ref keys.Ref) (keys.Sealed, error)
}

// KeyMaker makes wallet keys in a vault. It is the only place where keys come into being.
type KeyMaker struct {
	Vault    KeySealer
	Networks map[exchange.Network]AddressMaker
}

// AddressMaker is the part of a network's driver that turns public keys into addresses.
type AddressMaker interface {
	Address(publicKey []byte) (string, error)
}

// CreateKey makes and seals the key of a new wallet.
func (m KeyMaker) CreateKey(ctx context.Context, walletID uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	network := m.Networks[n]
	if network == nil {
		return "", exchange.SealedKey{}, exchange.Errorf(exchange.CodeUnsupported, "Wallets on %s are not offered here.", n)
	}
	sealed, err := m.Vault.Create(ctx, keys.Ref{WalletID: walletID, Network: n})
	if err != nil {
		return "", exchange.SealedKey{}, err
	}
	address, err := network.Address(sealed.PublicKey)
	if err != nil {
		return "", exchange.SealedKey{}, err
	}
	return address, exchange.SealedKey{
		WalletID: walletID, Ciphertext: sealed.Ciphertext, MasterKey: sealed.MasterKey, PublicKey: sealed.PublicKey,
		Algorithm: string(sealed.Algorithm),
	}, nil
}

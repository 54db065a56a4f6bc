package activities

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// RecipientStore knows who gets a payment and keeps what was said of them.
type RecipientStore interface {
	SigningTerms(ctx context.Context, paymentID uuid.UUID) (exchange.SigningTerms, error)
	RecordRecipient(ctx context.Context, paymentID uuid.UUID, said []exchange.Screening) error
}

// Recipients looks at who is paid just before a payment is signed. Transfers were screened on their own way; of
// every other payment that leaves our custody this is where. Screener is nil where the deny list is all there
// is.
type Recipients struct {
	Store    RecipientStore
	Screener Screener
}

// The words with which a payment is parked because of its ends.
const (
	RecipientDenied  = "recipient_denied"
	RecipientUnknown = "recipient_unknown"
	SenderCold       = "cold_wallet"
)

// screenTries is how often a screener that gives no answer is asked before a person is told.
const screenTries = 3

// obstacle is the word to park a payment with, or empty when it may be signed. What is signed already may have to be
// signed again for the same place in a block, and is not looked at.
func (r *Recipients) obstacle(ctx context.Context, paymentID uuid.UUID) (string, error) {
	terms, err := r.Store.SigningTerms(ctx, paymentID)
	if err != nil || terms.Payment.Status != exchange.ChainApproved {
		return "", err
	}
	transfer := terms.Payment.Purpose == exchange.ForTransfer
	switch {
	case terms.Payment.Purpose == exchange.ForNonceAccount, terms.Payment.Purpose == exchange.ForNonceAdvance:
		return "", nil // an account that the gas wallet makes for itself
	case terms.Cold && transfer: // it waits for a transaction that is signed elsewhere
		return "", nil
	case terms.Cold:
		return SenderCold, nil
	case !terms.External, terms.Cleared && !terms.Denied:
		return "", nil
	}
	said := []exchange.Screening{{Screener: denyList, Verdict: exchange.VerdictClear}}
	if terms.Denied {
		said[0].Verdict = exchange.VerdictHit
	} else if r.Screener != nil {
		answer, err := askScreener(ctx, r.Screener, payee(terms.Payment), triesOf(ctx))
		if err != nil {
			return "", err
		}
		said = append(said, answer)
	}
	if err := r.Store.RecordRecipient(ctx, paymentID, said); err != nil {
		return "", err
	}
	switch said[len(said)-1].Verdict {
	case exchange.VerdictClear:
		return "", nil
	case exchange.VerdictHit:
		return RecipientDenied, nil
	case exchange.VerdictUnknown:
	}
	return RecipientUnknown, nil
}

// askScreener asks a screener. Silence fails the call, which is made again, and is an unknown verdict after a few
// calls: the step is tried for as long as it fails, and nobody would see what it waits for.
func askScreener(ctx context.Context, screener Screener, c exchange.Counterparty, tries int32) (exchange.Screening, error) {
	answer, err := screener.Screen(ctx, c)
	if err == nil || tries < screenTries {
		return answer, err
	}
	return exchange.Screening{Screener: noAnswer, Verdict: exchange.VerdictUnknown}, nil
}

// payee is who gets a payment.
func payee(p exchange.ChainPayment) exchange.Counterparty {
	return exchange.Counterparty{PaymentID: p.ID, Network: p.Network, Address: p.ToAddress, Amount: p.Amount}
}

// triesOf is how often the activity was begun, this time included.
func triesOf(ctx context.Context) int32 {
	if !activity.IsActivity(ctx) {
		return 1
	}
	return activity.GetInfo(ctx).Attempt
}

// noAnswer is the name under which silence is kept.
const noAnswer = "no_answer"

package activities

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// RecipientStore reads the recipient of a payment and stores the screening results.
type RecipientStore interface {
	SigningTerms(ctx context.Context, paymentID uuid.UUID) (exchange.SigningTerms, error)
	RecordRecipient(ctx context.Context, paymentID uuid.UUID, said []exchange.Screening) error
}

// Recipients screens the recipient just before a payment is signed. Transfers are screened by their own flow; every other
// payment that leaves our custody is screened here. Screener is nil if only the deny list is used.
type Recipients struct {
	Store    RecipientStore
	Screener Screener
}

// The codes with which a payment is parked because of its recipient or sender.
const (
	RecipientDenied  = "recipient_denied"
	RecipientUnknown = "recipient_unknown"
	SenderCold       = "cold_wallet"
)

// screenTries is how often a screener without an answer is asked before the payment is parked.
const screenTries = 3

// obstacle returns the code to park a payment with, or "" when it may be signed. A signed payment is not screened again,
// because it may need a replacement with a higher fee.
func (r *Recipients) obstacle(ctx context.Context, paymentID uuid.UUID) (string, error) {
	terms, err := r.Store.SigningTerms(ctx, paymentID)
	if err != nil || terms.Payment.Status != exchange.ChainApproved {
		return "", err
	}
	transfer := terms.Payment.Purpose == exchange.ForTransfer
	switch {
	case terms.Payment.Purpose == exchange.ForNonceAccount, terms.Payment.Purpose == exchange.ForNonceAdvance:
		return "", nil // the gas wallet's own account
	case terms.Cold && transfer: // it waits for a transaction that is signed offline
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

// askScreener asks a screener. Without an answer the call fails and is retried; after a few tries the verdict is unknown, so
// that the flow parks instead of retrying unseen.
func askScreener(ctx context.Context, screener Screener, c exchange.Counterparty, tries int32) (exchange.Screening, error) {
	answer, err := screener.Screen(ctx, c)
	if err == nil || tries < screenTries {
		return answer, err
	}
	return exchange.Screening{Screener: noAnswer, Verdict: exchange.VerdictUnknown}, nil
}

// payee returns the recipient of a payment.
func payee(p exchange.ChainPayment) exchange.Counterparty {
	return exchange.Counterparty{PaymentID: p.ID, Network: p.Network, Address: p.ToAddress, Amount: p.Amount}
}

// triesOf returns the number of the activity's attempt, 1 for the first.
func triesOf(ctx context.Context) int32 {
	if !activity.IsActivity(ctx) {
		return 1
	}
	return activity.GetInfo(ctx).Attempt
}

// noAnswer is the screener name for a missing answer.
const noAnswer = "no_answer"

package activities

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// RecipientStore reads the recipient of a payment and stores the screening results.
type RecipientStore interface {
	SigningTerms(ctx context.Context, paymentID uuid.UUID) (exchange.SigningTerms, error)
	Denied(ctx context.Context, n exchange.Network, address string) (bool, error)
	RecordRecipient(ctx context.Context, paymentID uuid.UUID, said []exchange.Screening) error
}

// HolderReader names all accounts to which a payment to an address belongs. Drivers of chains implement it.
type HolderReader interface {
	Holders(ctx context.Context, address string, a money.Asset) ([]string, error)
}

// Recipients screens the recipient just before a payment is signed. Transfers are screened by their own flow; every other
// payment that leaves our custody is screened here, transfers by the deny list once more. Screener is nil if only the deny list
// is used. Without Holders only the address itself is looked up in the deny list.
type Recipients struct {
	Store    RecipientStore
	Screener Screener
	Holders  HolderReader
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
	case terms.Payment.Purpose == exchange.ForNonceAccount, terms.Payment.Purpose == exchange.ForNonceAdvance, terms.Payment.Purpose == exchange.ForMultisigOpen:
		return "", nil // an account of the house
	case terms.Cold && transfer: // it waits for a transaction that is signed offline
		return "", nil
	case terms.Cold && terms.Payment.Purpose != exchange.ForProposal: // its owners sign that
		return SenderCold, nil
	}
	denied, err := r.denied(ctx, terms)
	if err != nil || !terms.External || terms.Cleared && !denied {
		return "", err
	}
	said := []exchange.Screening{{Screener: denyList, Verdict: exchange.VerdictClear}}
	if denied {
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

// denied reports whether a recipient outside our custody is on the deny list, by any account to which the payment belongs.
func (r *Recipients) denied(ctx context.Context, terms exchange.SigningTerms) (bool, error) {
	if terms.Denied || !terms.External || r.Holders == nil {
		return terms.Denied && terms.External, nil
	}
	p := terms.Payment
	names, err := r.Holders.Holders(ctx, p.ToAddress, p.Amount.Asset())
	for _, name := range names {
		if found, err := r.Store.Denied(ctx, p.Network, name); err != nil || found {
			return found, err
		}
	}
	return false, err
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

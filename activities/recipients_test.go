package activities

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// recipient is the store of one payment, and what is written about its recipient.
type recipient struct {
	SigningStore // for the methods that are not called here
	terms        exchange.SigningTerms
	said         []exchange.Screening
	parked       string
	signed       int
	answer       exchange.Screening
	silent       error
	holders      []string // of the recipient's coins, besides its address
	listed       string   // on the deny list
	asked        []exchange.Counterparty
}

func (r *recipient) SigningTerms(context.Context, uuid.UUID) (exchange.SigningTerms, error) {
	return r.terms, nil
}

func (r *recipient) Holders(_ context.Context, address string, _ money.Asset) ([]string, error) {
	return append([]string{address}, r.holders...), nil
}

func (r *recipient) Denied(_ context.Context, n exchange.Network, address string) (bool, error) {
	return n == r.terms.Payment.Network && address == r.listed, nil
}

func (r *recipient) RecordRecipient(_ context.Context, _ uuid.UUID, said []exchange.Screening) error {
	r.said = append(r.said, said...)
	return nil
}

func (r *recipient) ChainPayment(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return r.terms.Payment, nil
}

func (r *recipient) ParkChainPayment(_ context.Context, _ uuid.UUID, reason string) (exchange.ChainPayment, error) {
	r.parked = reason
	return exchange.ChainPayment{}, nil
}

func (r *recipient) SigningHold(context.Context, uuid.UUID) (exchange.SigningHold, error) {
	return exchange.HoldNone, nil
}

func (r *recipient) SignPayment(context.Context, uuid.UUID) (exchange.ChainAttempt, error) {
	r.signed++
	return exchange.ChainAttempt{TxID: "tx"}, nil
}

func (r *recipient) CompletePayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	return r.SignPayment(ctx, id)
}

func (r *recipient) BumpPaymentFee(context.Context, uuid.UUID, int) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{}, nil
}

func (r *recipient) Screen(_ context.Context, c exchange.Counterparty) (exchange.Screening, error) {
	r.asked = append(r.asked, c)
	return r.answer, r.silent
}

func payTo(purpose exchange.ChainPurpose, status exchange.ChainPaymentStatus) exchange.ChainPayment {
	return exchange.ChainPayment{
		ID: uuid.New(), Purpose: purpose, Status: status, Network: exchange.Tron, ToAddress: "TStranger", Amount: money.Must(money.USDT, "5"),
	}
}

// Every recipient outside our custody is screened before anything is signed, and no other recipient.
func TestRecipientsAreLookedAtBeforeSigning(t *testing.T) {
	t.Parallel()
	order, transfer := payTo(exchange.ForOrder, exchange.ChainApproved), payTo(exchange.ForTransfer, exchange.ChainApproved)
	clear, hit, unknown := exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictUnknown
	for name, c := range map[string]struct {
		terms   exchange.SigningTerms
		verdict exchange.Verdict // of the service; empty: it must not be called
		said    []exchange.Verdict
		parked  string
	}{
		"in our custody":          {terms: exchange.SigningTerms{Payment: order, Cleared: true}},
		"cleared before":          {terms: exchange.SigningTerms{Payment: order, External: true, Cleared: true}},
		"signed already":          {terms: exchange.SigningTerms{Payment: payTo(exchange.ForOrder, exchange.ChainSigned), External: true, Denied: true}},
		"clear":                   {terms: exchange.SigningTerms{Payment: order, External: true}, verdict: clear, said: []exchange.Verdict{clear, clear}},
		"hit":                     {terms: exchange.SigningTerms{Payment: order, External: true}, verdict: hit, said: []exchange.Verdict{clear, hit}, parked: "recipient_denied"},
		"unknown":                 {terms: exchange.SigningTerms{Payment: order, External: true}, verdict: unknown, said: []exchange.Verdict{clear, unknown}, parked: "recipient_unknown"},
		"denied":                  {terms: exchange.SigningTerms{Payment: order, External: true, Denied: true}, said: []exchange.Verdict{hit}, parked: "recipient_denied"},
		"denied since":            {terms: exchange.SigningTerms{Payment: transfer, External: true, Cleared: true, Denied: true}, said: []exchange.Verdict{hit}, parked: "recipient_denied"},
		"out of a cold wallet":    {terms: exchange.SigningTerms{Payment: order, External: true, Cold: true}, parked: "cold_wallet"},
		"a cold wallet's own way": {terms: exchange.SigningTerms{Payment: transfer, External: true, Cold: true, Cleared: true}},
	} {
		r := &recipient{terms: c.terms, answer: exchange.Screening{Screener: "service", Verdict: c.verdict}}
		s := &Signing{Signer: r, Store: r, Recipients: &Recipients{Store: r, Screener: r}}
		got, err := s.SignPayment(t.Context(), SignInput{PaymentID: c.terms.Payment.ID})
		var said []exchange.Verdict
		for _, v := range r.said {
			said = append(said, v.Verdict)
		}
		if err != nil || got.Parked != c.parked || r.parked != c.parked || (r.signed == 0) != (c.parked != "") || !slices.Equal(said, c.said) {
			t.Errorf("%s: parked %q and %q, signed %d times, verdicts %v, %v", name, got.Parked, r.parked, r.signed, said, err)
		}
		if (len(r.asked) == 1) != (c.verdict != "") {
			t.Errorf("%s: the service was called %d times", name, len(r.asked))
		}
		if len(r.asked) == 1 && (r.asked[0].Address != "TStranger" || r.asked[0].Reference() != c.terms.Payment.ID) {
			t.Errorf("%s: asked about %+v", name, r.asked[0])
		}
	}
}

// Without a screening service only the deny list is used. A service without a response is asked again; after some
// tries the verdict is unknown, so that the flow parks.
func TestMissingVerdictsOfAScreenerAreSeen(t *testing.T) {
	t.Parallel()
	alone := &recipient{terms: exchange.SigningTerms{Payment: payTo(exchange.ForOrder, exchange.ChainApproved), External: true}}
	s := &Signing{Signer: alone, Store: alone, Recipients: &Recipients{Store: alone}}
	if got, err := s.SignPayment(t.Context(), SignInput{}); err != nil || got.Parked != "" || alone.signed != 1 || len(alone.said) != 1 {
		t.Errorf("by the deny list alone: %+v, %v", got, err)
	}
	r := &recipient{terms: alone.terms, silent: exchange.Errorf(exchange.CodeUnavailable, "no answer")}
	s = &Signing{Signer: r, Store: r, Recipients: &Recipients{Store: r, Screener: r}}
	if got, err := s.SignPayment(t.Context(), SignInput{}); err == nil || r.signed != 0 || len(r.said) != 0 {
		t.Errorf("after the first missing response: %+v, %v", got, err)
	}
	for tries, want := range map[int32]exchange.Verdict{screenTries - 1: "", screenTries: exchange.VerdictUnknown} {
		said, err := askScreener(t.Context(), r, payee(r.terms.Payment), tries)
		if said.Verdict != want || (err == nil) != (want != "") {
			t.Errorf("after %d times: %q, %v", tries, said.Verdict, err)
		}
	}
}

// The deny list may name another account than the recipient's address: the one that holds its coins, or that one's owner. Nothing
// is signed for it, also when the address was cleared before, and no transaction of a cold wallet is completed.
func TestRecipientIsDeniedByEveryHolder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed  string
		cleared bool
		parked  string
	}{
		"the holder":                    {"Holder", false, RecipientDenied},
		"the holder, after a clearance": {"Holder", true, RecipientDenied},
		"another account":               {"Other", true, ""},
	} {
		terms := exchange.SigningTerms{Payment: payTo(exchange.ForTransfer, exchange.ChainApproved), External: true, Cleared: c.cleared}
		r := &recipient{terms: terms, holders: []string{"Holder"}, listed: c.listed}
		s := &Signing{Signer: r, Store: r, Cold: r, Recipients: &Recipients{Store: r, Holders: r}}
		if got, err := s.SignPayment(t.Context(), SignInput{}); err != nil || got.Parked != c.parked || (r.signed == 0) != (c.parked != "") {
			t.Errorf("%s: parked %q, signed %d times, %v", name, got.Parked, r.signed, err)
		}
		r.signed, r.terms.Cold = 0, true
		if _, err := s.CompleteColdPayment(t.Context(), SignInput{}); (err != nil) != (c.parked != "") || (r.signed == 0) != (c.parked != "") {
			t.Errorf("%s: completed %d times, %v", name, r.signed, err)
		}
	}
	house := exchange.SigningTerms{Payment: payTo(exchange.ForTransfer, exchange.ChainApproved), Cleared: true}
	r := &recipient{terms: house, listed: "TStranger"}
	s := &Signing{Signer: r, Store: r, Recipients: &Recipients{Store: r, Holders: r}}
	if got, err := s.SignPayment(t.Context(), SignInput{}); err != nil || got.Parked != "" {
		t.Errorf("in our custody: %+v, %v", got, err)
	}
}

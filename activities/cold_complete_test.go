package activities

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// cosigner is the signer that completes what a cold wallet's owner signed, and the rows that may hold it.
type cosigner struct {
	SigningStore
	hold   exchange.SigningHold
	err    error
	signed int
}

func (c *cosigner) SigningHold(context.Context, uuid.UUID) (exchange.SigningHold, error) {
	return c.hold, nil
}

func (c *cosigner) CompletePayment(context.Context, uuid.UUID) (exchange.ChainAttempt, error) {
	c.signed++
	return exchange.ChainAttempt{TxID: "done"}, c.err
}

// A hold that stops the signatures of hot wallets also stops the fee payer's signature of a cold wallet's transaction.
func TestCompletingIsHeldUp(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]struct {
		hold   exchange.SigningHold
		err    error
		want   exchange.Code
		signed int
	}{
		"nothing":              {signed: 1},
		"the watch":            {hold: exchange.HoldWatch, want: exchange.CodeUnavailable},
		"something that left":  {hold: exchange.HoldForeign, want: exchange.CodeStateConflict},
		"something unexpected": {hold: exchange.HoldUnexpected, want: exchange.CodeStateConflict},
		"a foreign nonce":      {err: chain.Errorf(chain.ReasonForeign, "another account"), want: exchange.CodeStateConflict, signed: 1},
	} {
		c := &cosigner{hold: q.hold, err: q.err}
		out, err := (&Signing{Store: c, Cold: c}).CompleteColdPayment(t.Context(), SignInput{PaymentID: uuid.New()})
		if code := exchange.CodeOf(AsExchangeError(err)); code != q.want || c.signed != q.signed || (err == nil) != (out.TxID == "done") {
			t.Errorf("%s: %q (%v), signed %d times, %+v", name, code, err, c.signed, out)
		}
	}
	_, err := (&Signing{Store: &cosigner{}}).CompleteColdPayment(t.Context(), SignInput{})
	if exchange.CodeOf(AsExchangeError(err)) != exchange.CodeUnsupported {
		t.Errorf("%v", err)
	}
}

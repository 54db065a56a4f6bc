package activities

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/temporal"

	"kivuko/chain"
	"kivuko/exchange"
)

func TestFailuresKeepTheirMeaning(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		kind  string
		final bool
	}{
		"refusal":     {exchange.Errorf(exchange.CodeInsufficientOffer, "less left"), "insufficient_offer", true},
		"away":        {exchange.Errorf(exchange.CodeUnavailable, "away"), "unavailable", false},
		"surprise":    {exchange.Errorf(exchange.CodeInternal, "a bug"), "internal", false},
		"unknown":     {errors.New("what?"), "internal", false},
		"node away":   {chain.Errorf(chain.ReasonUnavailable, "no node"), "unavailable", false},
		"blocked":     {chain.Errorf(chain.ReasonBlocked, "on the list"), "blocked", true},
		"out of time": {context.DeadlineExceeded, "unavailable", false},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := errors.AsType[*temporal.ApplicationError](Failure(t.Context(), c.err))
			if !ok || e.Type() != c.kind || e.NonRetryable() != c.final {
				t.Errorf("became %v", e)
			}
		})
	}
	if Failure(t.Context(), nil) != nil {
		t.Error("nil must stay nil")
	}
}

func TestErrorsComeBackAsTheyWere(t *testing.T) {
	was := exchange.Invalid(exchange.FieldError{Pointer: "/fiat_amount", Code: "range", Message: "too small"})
	back, ok := errors.AsType[*exchange.Error](AsExchangeError(Failure(t.Context(), was)))
	if !ok || back.Code != exchange.CodeInvalid || len(back.Fields) != 1 || back.Fields[0].Pointer != "/fiat_amount" {
		t.Errorf("came back as %+v", back)
	}
	for name, err := range map[string]error{
		"a bug":          Failure(t.Context(), errors.New("secret detail")),
		"a chain reason": Failure(t.Context(), chain.Errorf(chain.ReasonBlocked, "x")),
	} {
		if got := AsExchangeError(err); exchange.CodeOf(got) != exchange.CodeInternal || exchange.MessageOf(got) == "x" {
			t.Errorf("%s came back as %v", name, got)
		}
	}
	if got := exchange.CodeOf(AsExchangeError(context.DeadlineExceeded)); got != exchange.CodeUnavailable {
		t.Errorf("a lapsed wait came back as %s", got)
	}
}

func TestPollsRaiseNoAlarm(t *testing.T) {
	e, ok := errors.AsType[*temporal.ApplicationError](NotYet("not final", 3e9))
	if !ok || e.NonRetryable() || e.NextRetryDelay() != 3e9 || e.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Errorf("a poll became %+v", e)
	}
}

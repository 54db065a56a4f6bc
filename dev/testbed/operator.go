package testbed

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// Books returns the mobile money operator's own books.
func (s *Testbed) Books(t *testing.T) sandbox.Books {
	t.Helper()
	var b sandbox.Books
	if err := Call(t.Context(), http.MethodGet, s.Momo()+"/control/books", nil, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Fault makes the mobile money operator show a behaviour once, for one phone.
func (s *Testbed) Fault(t *testing.T, behaviour, op, phone string) {
	t.Helper()
	in := sandbox.Fault{Behaviour: behaviour, Op: op, Phone: phone, Times: 1}
	if err := Call(t.Context(), http.MethodPost, s.Momo()+"/control/faults", in, nil); err != nil {
		t.Fatal(err)
	}
}

// Release lets the mobile money operator finish what it delayed.
func (s *Testbed) Release(t *testing.T) {
	t.Helper()
	if err := Call(t.Context(), http.MethodPost, s.Momo()+"/control/release", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// reference returns the reference that the payer of an order reads on the prompt, as long as no other order had it.
func reference(id uuid.UUID) string { return exchange.PaymentReferences(id)[0] }

// Collected returns the operator's effects of an order's prompts.
func Collected(b sandbox.Books, id uuid.UUID) []sandbox.Effect {
	return slices.DeleteFunc(slices.Clone(b.Effects), func(e sandbox.Effect) bool {
		return e.Direction != sandbox.Collection || e.Reference != reference(id)
	})
}

// Prompted returns the prompts that the operator accepted for an order.
func Prompted(b sandbox.Books, id uuid.UUID) []sandbox.Prompt {
	return slices.DeleteFunc(slices.Clone(b.Prompts), func(p sandbox.Prompt) bool { return p.Reference != reference(id) })
}

// PaidOut returns the payouts that reached a phone.
func PaidOut(b sandbox.Books, phone string) []sandbox.Effect {
	return slices.DeleteFunc(slices.Clone(b.Effects), func(e sandbox.Effect) bool {
		return e.Direction != sandbox.Payout || e.Phone != phone
	})
}

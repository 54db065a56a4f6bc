package activities_test

import (
	"testing"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store/storetest"
)

// Each owner who comes by a change and whose key we hold gets one key, also when the step is repeated.
func TestMakeComingKeys(t *testing.T) {
	t.Parallel()
	w := newCouncil(exchange.Ethereum, false)
	owners := w.accounts[0].Owners
	owners[0].Held, owners[0].Address = true, ""
	m := &activities.MultisigKeys{Keys: w, Store: w}
	in := activities.ProposalInput{ProposalID: storetest.NewID(t)}
	var first string
	for range 2 {
		if err := m.MakeComingKeys(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = owners[0].Address
		}
	}
	if first == "" || owners[0].Address != first || owners[1].Address != "bob" {
		t.Errorf("the owners are %+v", owners)
	}
}

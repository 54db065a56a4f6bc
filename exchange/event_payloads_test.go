package exchange_test

import (
	"testing"

	"kivuko/exchange"
)

// Each type of event has a payload, and each of its fields a kind and a meaning.
func TestEveryEventHasAPayload(t *testing.T) {
	for _, e := range exchange.EventTypes() {
		fields := exchange.EventPayload(e)
		if len(fields) == 0 {
			t.Errorf("%s has no fields", e.Type)
		}
		last := ""
		for _, f := range fields {
			if f.Value == "" || f.Means == "" || f.Name <= last {
				t.Errorf("%s: the field %q is not described, or is listed twice", e.Type, f.Name)
			}
			if f.Name == "tx_id" || f.Name == "fee_profile_id" {
				t.Errorf("%s: the field %q has another name in the API", e.Type, f.Name)
			}
			if last = f.Name; f.Name == "status" && len(f.Words) < 2 {
				t.Errorf("%s has the statuses %v", e.Type, f.Words)
			}
		}
	}
}

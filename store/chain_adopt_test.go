package store_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// What was screened before it was sent may be lost together with the transaction, and who was paid may be on the
// deny list by now: that the payment was made can be said all the same.
func TestSendsToStrangersAreAdopted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, said := range map[string][]exchange.Screening{
		"never screened": nil,
		"refused since":  {{Screener: "deny_list", Verdict: exchange.VerdictHit}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t)
			p := buyTo(t, s, storetest.NewMarket(t, s), outside)
			if len(said) > 0 {
				if err := s.RecordRecipient(ctx, p.ID, said); err != nil {
					t.Fatal(err)
				}
			}
			finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("lost", p.FromAddress, p.ToAddress, p.Amount)))
			if _, err := s.AdoptSend(ctx, alarmOf(t, s, exchange.QuarantineOutgoing).ID, p.ID, "compared", storetest.By); err != nil {
				t.Fatal(err)
			}
			live, found, err := s.LiveAttempt(ctx, p.ID)
			if err != nil || !found {
				t.Fatalf("no transaction: %v", err)
			}
			done, err := s.RecordFinal(ctx, live.ID, true, 101, "a-101", trx("1"), "SUCCESS")
			if err != nil || done.Status != exchange.ChainCompleted {
				t.Errorf("the payment is %+v, %v", done, err)
			}
			wantBooks(t, s)
		})
	}
}

package workflows_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/workflows"
)

// way is what a sample of a flow must show: texts that its history contains for no other reason.
type way struct {
	flow  string
	shows []string
}

// ways are the samples of the outcomes of a sale, of its payout and of its crypto, and of sweeps of fees, by the names of their files.
func ways() map[string]way {
	sale := func(shows ...string) way { return way{workflows.TypeOffRamp, shows} }
	parked := func(r workflows.Reason) string { return `"` + string(r) + `"` }
	return map[string]way{
		"off_ramp_paid":                 sale(`"outcome":"exact"`, "Approve the sweep"),
		"off_ramp_repriced":             sale(`"outcome":"repriced"`),
		"off_ramp_mismatch":             sale(`"outcome":"mismatch"`),
		"off_ramp_reorganised":          sale(`"outcome":"lost"`),
		"off_ramp_cancelled":            sale(`"detail":"cancelled_by_customer"`),
		"off_ramp_expired":              sale(`"detail":"expired"`),
		"off_ramp_by_vendor":            sale("OFF_RAMP_BUY"),
		"off_ramp_treasury":             sale(`"merchant_id":"` + exchange.PlatformTreasury.String() + `"`),
		"off_ramp_custodial":            sale("Find the payment from the customer's wallet", "Create an escrow wallet"),
		"off_ramp_bank":                 sale("Check the bank payment", `"detail":"bank_second"`),
		"off_ramp_bank_refused":         sale(parked(workflows.ReasonBankRefused), "Open the refund"),
		"off_ramp_bank_again":           sale(parked(workflows.ReasonBankRefused), `"again":true`),
		"off_ramp_refused_refunded":     sale("Open the refund", "Approve the refund payment"),
		"off_ramp_addressed":            sale(parked(workflows.ReasonRefundAddress), workflows.SignalRefundAddress),
		"off_ramp_addressed_by_officer": sale(parked(workflows.ReasonRefundAddress), parked(workflows.ReasonRefundSecond), "Set the refund's address"),
		"off_ramp_payout_kept":          sale(parked(workflows.ReasonRefundClaimed), "Keep the payout instead of the refund", "Approve the sweep"),
		"off_ramp_float":                sale("Check whether there is enough float"),
		"off_ramp_resolved":             sale(`"verb":"resolve"`, "Approve the sweep"),
		"momo_payout_unknown":           {workflows.TypeMomoPayout, []string{parked(workflows.ReasonMomoUnknown), "Settle the payout"}},
		"late_payout_repeated":          {workflows.TypeLatePayout, []string{`"outcome":"accounted"`}},
		"late_payout_kept":              {workflows.TypeLatePayout, []string{`"elsewhere":true`, `"outcome":"accounted"`}},
		"late_payout_twice":             {workflows.TypeLatePayout, []string{parked(workflows.ReasonMomoTwice), `"outcome":"resolved"`}},
		"return_deposit":                {workflows.TypeReturnDeposit, []string{"Approve the refund payment"}},
		"crypto_payout_sweep":           {workflows.TypeCryptoPayout, []string{`"completed":true`}},
		"crypto_payout_refund":          {workflows.TypeCryptoPayout, []string{`"refund_id"`, `"completed":true`}},
		"bank_refund":                   {workflows.TypeBankRefund, []string{"Keep what the officer says of the payment", `"status":"completed"`}},
		"bank_refund_refused":           {workflows.TypeBankRefund, []string{`"status":"failed"`}},
		"fee_sweep":                     {workflows.TypeFeeSweep, []string{`"status":"completed"`}},
		"fee_sweep_retried":             {workflows.TypeFeeSweep, []string{`"verb":"retry"`, `"status":"completed"`}},
		"fee_sweep_given_up":            {workflows.TypeFeeSweep, []string{"Leave the fees where they are", `"status":"cancelled"`}},
		"open_multisig":                 {workflows.TypeOpenMultisig, []string{"Make the owners' keys", `"status":"active"`}},
		"open_multisig_adopted":         {workflows.TypeOpenMultisig, []string{`"adopted":true`, `"status":"active"`}},
		"open_multisig_refused":         {workflows.TypeOpenMultisig, []string{`"adopted":true`, `"status":"refused"`}},
		"open_multisig_retried":         {workflows.TypeOpenMultisig, []string{`"verb":"retry"`, `"status":"active"`}},
		"open_multisig_given_up":        {workflows.TypeOpenMultisig, []string{"Give the account up", `"status":"refused"`}},
		"multisig_proposal_ethereum":    {workflows.TypeMultisigProposal, []string{"Sign with the officer's key", `"status":"executed"`}},
		"multisig_proposal_tron":        {workflows.TypeMultisigProposal, []string{"Check and store the signature of an owner", `"status":"executed"`}},
		"multisig_proposal_solana":      {workflows.TypeMultisigProposal, []string{"Prepare what other owners sign", `"status":"executed"`}},
		"multisig_proposal_elsewhere":   {workflows.TypeMultisigProposal, []string{`"detail":"executed_by_other"`}},
		"multisig_proposal_rejected":    {workflows.TypeMultisigProposal, []string{`"status":"rejected"`}},
		"multisig_proposal_cancelled":   {workflows.TypeMultisigProposal, []string{`"ending":"cancelled"`, `"status":"cancelled"`}},
		"sweep_fees":                    {workflows.TypeSweepFees, []string{`"opened":1`}},
	}
}

// TestEveryWayOfASaleHasASample makes sure that the next build can continue every sale and sweep under way: each path that one
// can take is among the histories that TestRecordedHistoriesReplay replays.
func TestEveryWayOfASaleHasASample(t *testing.T) {
	recorded := map[string]sample{}
	for _, f := range samples(t) {
		recorded[strings.TrimSuffix(filepath.Base(f), ".json")] = readSample(t, f)
	}
	for name, want := range ways() {
		s, found := recorded[name]
		if !found {
			t.Errorf("no history %s is recorded: run the end-to-end tests with KIVUKO_RECORD=1", name)
			continue
		}
		if s.flow != want.flow {
			t.Errorf("%s is of the flow %s, not %s", name, s.flow, want.flow)
		}
		for _, words := range want.shows {
			if !strings.Contains(s.text, words) {
				t.Errorf("%s does not show %s", name, words)
			}
		}
	}
}

package workflows_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

var update = flag.Bool("update", false, "write generated pages anew, and payload samples: those only for shapes that no release has")

func id(n byte) uuid.UUID { return uuid.UUID{0: 1, 1: 0x92, 6: 0x70, 8: 0x80, 15: n} }

func swapOf(at time.Time) activities.SwapState {
	return activities.SwapState{
		SwapID: id(20), Status: exchange.SwapReserved, Detail: exchange.WaitApproval, PaymentID: id(6), Approvals: 1, Required: 2, Expires: at, PayoutDue: at, Version: 3,
	}
}

func pointer[T any](v T) *T { return &v }

// payloads is one full sample of every type that crosses Temporal, by file name.
func payloads() map[string]any {
	at := time.Date(2026, 11, 21, 9, 15, 0, 0, time.UTC)
	behalf := activities.Behalf{IntentID: id(9), CommandID: id(8)}
	proof := activities.Proof{CommandID: id(9), Object: activities.ObjectRef{Type: activities.ObjectOrder, ID: id(1)}, Verb: activities.VerbRefund}
	state := activities.OrderState{OrderID: id(1), Status: exchange.OrderProcessing, Detail: exchange.WaitSignature}
	return map[string]any{
		"opened":                 &workflows.Opened{OrderID: id(1)},
		"ack":                    &workflows.Ack{Status: exchange.OrderCancelled, Detail: exchange.DetailCancelled},
		"behalf":                 &behalf,
		"intent_ref":             &workflows.IntentRef{IntentID: id(9)},
		"intent_input":           &activities.IntentInput{IntentID: id(9)},
		"intent_check":           &activities.IntentCheck{IntentID: id(9), Kind: exchange.IntendPrompt},
		"wallet_asked":           &activities.WalletAsked{Network: exchange.Tron},
		"callback_ref":           &workflows.CallbackRef{CallbackID: id(4), AttemptID: id(5)},
		"command_ref":            &workflows.CommandRef{CommandID: id(9)},
		"on_ramp_input":          &workflows.OnRampInput{IntentID: id(9)},
		"on_ramp_result":         &workflows.OnRampResult{OrderID: id(1), Status: exchange.OrderCompleted, Detail: exchange.WaitNothing},
		"crypto_payout_input":    &workflows.CryptoPayoutInput{PaymentID: id(6), OrderID: id(1), Network: exchange.Tron},
		"crypto_payout_proposal": &workflows.CryptoPayoutInput{PaymentID: id(6), ProposalID: id(1), Network: exchange.Tron, Watched: true},
		"crypto_payout_waits":    &workflows.CryptoPayoutResult{Waits: "frozen"},
		"crypto_payout_result":   &workflows.CryptoPayoutResult{Completed: true, Reason: "payout-failed", TxID: "ab"},
		"momo_payout_input":      &workflows.MomoPayoutInput{Object: exchange.RefundObject(id(7)), OrderID: id(1), Try: 2, Home: "off-ramp:x"},
		"momo_payout_result":     &workflows.MomoPayoutResult{Completed: true, Reason: "momo-refused", Refused: true, Class: exchange.ClassPayee, Code: "2040", AttemptID: id(5), Try: 2},
		"submit_payout_input":    &activities.SubmitPayoutInput{Object: exchange.OrderObject(id(1)), Try: 2, Home: "off-ramp:x", Until: at},
		"check_payout_input":     &activities.CheckPayoutInput{AttemptID: id(5), Ask: true, Questions: 3},
		"payout_step":            &activities.PayoutStep{AttemptID: id(5), Try: 2, State: activities.PayoutRefused, Code: "2040", Class: exchange.ClassPayee, Asked: true},
		"settle_payout_input":    &activities.SettlePayoutInput{Object: exchange.OrderObject(id(1)), AttemptID: id(5), Proof: proof},
		"keep_payout_input":      &activities.KeepPayoutInput{OrderID: id(1), Proof: proof},
		"late_payout_step":       &activities.LatePayoutStep{State: activities.PayoutPaid, Exception: id(14), Undecided: true, Elsewhere: true},
		"bank_input":             &activities.BankInput{OrderID: id(1), Again: true},
		"bank_step":              &activities.BankStep{State: activities.BankWaitsSecond},
		"crypto_payout_refund":   &workflows.CryptoPayoutInput{PaymentID: id(6), OrderID: id(1), Network: exchange.Tron, RefundID: id(7), ExceptionID: id(14)},
		"crypto_payout_gas":      &workflows.CryptoPayoutInput{PaymentID: id(6), OrderID: id(1), Network: exchange.Tron, GasFor: id(14)},
		"return_deposit_input":   &workflows.ReturnDepositInput{RequestID: id(9)},
		"return_deposit_result":  &workflows.ReturnDepositResult{RefundID: id(7), Outcome: workflows.OutcomeReturned},
		"refund_opened_ack":      &workflows.RefundOpenedAck{RefundID: id(7)},
		"refund_ack":             &workflows.RefundAck{Status: exchange.RefundPending, Wait: exchange.RefundWaitsOfficer, Needed: 2, Agreed: 1},
		"open_chain_refund_input": &activities.OpenChainRefundInput{
			OrderID: id(1), ExceptionID: id(14), RequestID: id(9), Proof: proof, Reason: "payout_refused",
		},
		"chain_refund_input": &activities.ChainRefundInput{RefundID: id(7)},
		"chain_refund_state": &activities.ChainRefundState{
			Status: exchange.RefundPending, Wait: exchange.RefundWaitsCoolOff, Until: at, Needed: 2, Agreed: 1, PaymentID: id(6), Network: exchange.Tron, Version: 3,
		},
		"address_refund_input":          &activities.AddressRefundInput{RefundID: id(7), Proof: proof},
		"decide_refund_input":           &activities.DecideRefundInput{RefundID: id(7), Action: exchange.Approve, Token: "token"},
		"refused_refund_decision_input": &activities.RefusedRefundDecisionInput{RefundID: id(7), Action: exchange.Approve, Channel: exchange.ChannelSignal, Code: exchange.CodeExpired},
		"payment_approved":              &activities.PaymentApproved{PaymentID: id(6), Network: exchange.Tron},
		"sale_release_state": &activities.SaleReleaseState{
			OrderState: state, Passed: true, GivenUp: true, RestsUntil: at, Needed: 2, Agreed: 1,
		},
		"decide_sale_input":           &activities.DecideSaleInput{OrderID: id(1), Action: exchange.Approve, Token: "token"},
		"refused_sale_decision_input": &activities.RefusedSaleDecisionInput{OrderID: id(1), Action: exchange.Approve, Channel: exchange.ChannelSignal, Code: exchange.CodeExpired},
		"cancel_funding_input":        &activities.CancelFundingInput{OrderID: id(1), Behalf: behalf},
		"late_payment_input":          &workflows.LatePaymentInput{AttemptID: id(5), OrderID: id(1)},
		"late_payment_result":         &workflows.LatePaymentResult{Outcome: workflows.LateClean},
		"create_wallet_input":         &workflows.CreateWalletInput{IntentID: id(9)},
		"escrow_wallet_input":         &activities.EscrowWalletInput{RequestID: id(31)},
		"wallet_created":              &workflows.WalletCreated{WalletID: id(10), Address: "TAddress"},
		"deposit_watch_input":         &workflows.DepositWatchInput{Network: exchange.Tron, Status: workflows.WatchStalled, Reason: workflows.ReasonDepositsStalled, Lag: 7},
		"deposit_ref":                 &workflows.DepositRef{DepositID: id(12)},
		"follow_input":                &activities.FollowInput{Network: exchange.Tron},
		"followed": &activities.Followed{
			Final: 5, FinalTime: at, Seen: 9, HeadFinal: 6, HeadLatest: 10, Quarantined: 1,
			Wakeups: []exchange.DepositWakeup{{ID: id(13), WorkflowID: "off-ramp:x", DepositID: id(12)}},
		},
		"reconcile_network_input": &workflows.ReconcileNetworkInput{Network: exchange.Tron, RunID: id(30)},
		"reconcile_started":       &workflows.ReconcileStarted{Started: []exchange.Network{exchange.Tron}, Running: []exchange.Network{exchange.Solana}},
		"reconciliation_input":    &activities.ReconciliationInput{RunID: id(30), Network: exchange.Tron, Failed: true, Detail: "unavailable"},
		"reconciliation_begun":    &activities.ReconciliationBegun{RunID: id(30)},
		"reconciled":              &activities.Reconciled{Status: exchange.ReconciliationCompleted, Compared: 9, Deferred: 2, Differences: 1, Standing: 3},
		"compare_input":           &activities.CompareInput{RunID: id(30), Network: exchange.Tron},
		"compared":                &activities.Compared{More: true, Differences: 1},
		"reserves_input":          &activities.ReservesInput{Day: at},
		"reserves_written":        &activities.ReservesWritten{Lines: 6, Short: []money.Asset{money.USDT}},
		"await_input":             &activities.AwaitInput{Network: exchange.Tron, Address: "TAddress", WorkflowID: "off-ramp:x", Since: at},
		"deposit_input":           &activities.DepositInput{DepositID: id(12)},
		"deposit_state": &activities.DepositState{
			DepositID: id(12), Network: exchange.Tron, TxID: "ab", WalletID: id(10), Asset: money.USDT, Amount: money.Must(money.USDT, "10"),
			Kind: exchange.DepositAwaited, Status: exchange.DepositFinal, Block: 5,
		},
		"woken_input":               &activities.WokenInput{IDs: []uuid.UUID{id(13)}},
		"opened_order":              &activities.OpenedOrder{OrderState: state, Type: exchange.OnRampBuy, Network: exchange.Tron, Asset: money.USDT, MerchantID: id(11), Crypto: money.Must(money.USDT, "10"), Fiat: money.Must(money.KES, "1294"), ExpiresAt: at},
		"close_order_input":         &activities.CloseOrderInput{OrderID: id(1), To: exchange.OrderCancelled, Detail: exchange.DetailExpired, Behalf: behalf},
		"mark_order_input":          &activities.MarkOrderInput{OrderID: id(1), Detail: exchange.WaitOutcome},
		"confirm_payee_input":       &activities.ConfirmPayeeInput{RefundID: id(7), Proof: proof},
		"fee_sweep_state":           &activities.FeeSweepState{Status: exchange.FeeSweepProcessing, PaymentID: id(6), Network: exchange.Tron, Amount: money.Must(money.USDT, "3")},
		"fee_sweep_input":           &activities.FeeSweepInput{SweepID: id(32)},
		"give_up_fee_sweep_input":   &activities.GiveUpFeeSweepInput{SweepID: id(32), Proof: proof},
		"fee_sweep_result":          &workflows.FeeSweepResult{Status: exchange.FeeSweepCompleted},
		"proposal_flow_input":       &workflows.ProposalInput{IntentID: id(9)},
		"proposal_result":           &workflows.ProposalResult{ProposalID: id(34), Status: exchange.ProposalCancelled, Detail: exchange.DetailBySender},
		"proposal_ack":              &workflows.ProposalAck{Status: exchange.ProposalSigning, Detail: exchange.WaitOwners},
		"payload_confirmation":      &workflows.PayloadConfirmation{PayloadID: id(35), Token: "token"},
		"proposal_input":            &activities.ProposalInput{ProposalID: id(34)},
		"proposal_step_input":       &activities.ProposalStepInput{ProposalID: id(34), IntentID: id(9)},
		"decide_proposal_input":     &activities.DecideProposalInput{ProposalID: id(34), Action: exchange.Approve, Token: "token"},
		"confirm_payload_input":     &activities.ConfirmPayloadInput{PayloadID: id(35), Token: "token"},
		"sign_payload_input":        &activities.SignPayloadInput{PayloadID: id(35), Owner: "TAddress"},
		"refused_proposal_decision": &activities.RefusedProposalDecisionInput{ProposalID: id(34), PayloadID: id(35), Action: exchange.Approve, Channel: exchange.ChannelSignal, Code: exchange.CodeExpired},
		"cleared_recipient":         &activities.ClearedRecipient{Obstacle: activities.RecipientUnknown},
		"payload_input":             &activities.PayloadInput{ProposalID: id(34), Signers: []string{"A", "B"}},
		"prepared_payload":          &activities.PreparedPayload{PayloadID: id(35), NoncePaymentID: id(6), Waits: "watch", Refused: "insufficient_funds", Detail: "too little", Gas: &activities.NeedGas{Missing: "20"}},
		"outside_signature_input":   &activities.OutsideSignatureInput{ProposalID: id(34), Behalf: behalf},
		"owner_signed":              &activities.OwnerSigned{PayloadID: id(35), Owner: "TAddress", Waits: "frozen"},
		"proposal_look":             &activities.ProposalLook{State: activities.LookSent, TxID: "ab", NoncePaymentID: id(6)},
		"opened_proposal": &activities.OpenedProposal{
			ProposalState: activities.ProposalState{
				ProposalID: id(34), Status: exchange.ProposalReady, Detail: exchange.WaitExecution, Ending: exchange.ProposalCancelled, PaymentID: id(6), Executes: true,
				Approvals: 1, Required: 2, Expires: at, Version: 4,
			},
			Kind: exchange.ProposePayment, Network: exchange.Solana, Amount: money.Must(money.USDT, "100"), WalletID: id(10), MerchantID: id(11), Choices: [][]string{{"A", "B"}},
		},
		"open_multisig_input":       &workflows.OpenMultisigInput{},
		"open_multisig_result":      &workflows.OpenMultisigResult{Status: exchange.MultisigRefused, Detail: "the threshold is 1, not 2"},
		"multisig_input":            &activities.MultisigInput{AccountID: id(33)},
		"multisig_state":            &activities.MultisigState{Status: exchange.MultisigOpening, Detail: "signing", Network: exchange.Solana, Adopted: true, PaymentID: id(6)},
		"multisig_place":            &activities.MultisigPlace{Address: "Address", Rent: money.Must(money.SOL, "0.00336168")},
		"approve_opening_input":     &activities.OpenMultisigInput{AccountID: id(33), Place: activities.MultisigPlace{Address: "Address", Rent: money.Must(money.SOL, "0.00336168")}},
		"verify_multisig_input":     &activities.VerifyMultisigInput{AccountID: id(33), Paid: true},
		"give_up_multisig_input":    &activities.GiveUpMultisigInput{AccountID: id(33), Proof: proof},
		"multisigs_checked":         &activities.MultisigsChecked{Checked: 3, Differs: 1, Unread: 1},
		"bank_refund_state":         &activities.BankRefundState{Status: exchange.RefundPending, Detail: "funds", Amount: money.Must(money.KES, "300"), State: activities.PayoutFloatShort, Version: 2},
		"bank_refund_input":         &activities.BankRefundInput{RefundID: id(7)},
		"mark_bank_refund_input":    &activities.MarkBankRefundInput{RefundID: id(7), Detail: "funds"},
		"confirm_bank_refund_input": &activities.ConfirmBankRefundInput{RefundID: id(7), IntentID: id(31)},
		"bank_refund_result":        &workflows.BankRefundResult{Status: exchange.RefundCompleted},
		"bank_refund_ack":           &workflows.BankRefundAck{Status: exchange.RefundProcessing, Detail: "bank_second"},
		"fees_to_sweep":             &activities.SweptFees{Network: exchange.Tron, Asset: money.USDT},
		"open_sweeps":               &activities.OpenSweeps{Sweeps: []uuid.UUID{id(32)}},
		"fees_swept":                &workflows.FeesSwept{Begun: 2, Failed: 1},
		"sweep_files_input":         &workflows.SweepFilesInput{From: "otc_proof/x"},
		"swept_files":               &workflows.SweptFiles{Ended: 1, Purged: 2, Removed: 3},
		"ended_files":               &activities.EndedFiles{Ended: 1, Purged: 2, More: true},
		"sweep_objects_input":       &activities.SweepObjectsInput{From: "otc_proof/x"},
		"swept_objects":             &activities.SweptObjects{Next: "otc_proof/y", Removed: 4},
		"pruned":                    &activities.Pruned{Pruned: exchange.Pruned{Sessions: 1, LoginFailures: 2, IdempotencyKeys: 3}, More: true},
		"statement_input":           &activities.StatementInput{From: at, To: at, Offset: 100},
		"statement_page": &activities.StatementPage{
			Lines: 4, Found: 1, Disputed: 1, Quarantined: 1, Next: 104, More: true,
			Waiting: []activities.StatementWaiting{{AttemptID: id(5), OrderID: id(1), Home: "on-ramp:x"}},
		},
		"set_aside":           &activities.SetAside{Payments: 1, More: true},
		"payments_reconciled": &workflows.PaymentsReconciled{Lines: 4, Found: 1, Disputed: 1, Quarantined: 1, Woken: 1, SetAside: 1, Absent: 1, Whole: true},
		"pulled_rates":        &activities.PulledRates{Entered: 1, Known: 2, Refused: 3},
		"pruned_quotes":       &activities.Pruned{Pruned: exchange.Pruned{Sessions: 1, ExpiredQuotes: 4}},
		"order_input":         &activities.OrderInput{OrderID: id(1)},
		"order_state":         &state,
		"list_parked_input":   &activities.ListParkedInput{WorkflowID: "on-ramp:x", RunID: "r", Type: "OnRamp", ObjectType: "order", ObjectID: id(1), Reason: "late-money", Network: exchange.Tron, Since: at},
		"parked_object":       &activities.ParkedObject{OrderID: id(1), ExceptionID: id(14), RefundID: id(7), TransferID: id(15), FeeSweepID: id(32), MultisigID: id(33), ProposalID: id(34), CustomerID: id(2), Amount: money.Must(money.KES, "1250")},
		"prove_input":         &activities.ProveInput{CommandID: id(9), Objects: []activities.ObjectRef{{Type: activities.ObjectOrder, ID: id(1)}}},
		"proof":               &proof,
		"refund_order_input":  &activities.RefundOrderInput{OrderID: id(1), Proof: proof},
		"refund_opened":       &activities.RefundOpened{OrderState: state, RefundID: id(7)},
		"retry_payout_input":  &activities.RetryPayoutInput{PaymentID: id(6), Proof: proof},
		"prompt_input":        &activities.PromptInput{OrderID: id(1), N: 1, Home: "on-ramp:x", Until: at},
		"submitted":           &activities.Submitted{AttemptID: id(5), State: exchange.Refused, Code: "1", Transient: true, Config: true},
		"confirm_input":       &activities.ConfirmInput{AttemptID: id(5), Thorough: true, Attestation: proof},
		"confirmed": &activities.Confirmed{
			AttemptID: id(5), State: activities.PaymentPaid, Soft: true, Code: "0", Order: state, Kind: "over", PaymentID: id(6), RefundID: id(7),
			Exception: id(12), Undecided: true, Owed: true,
		},
		"payment_input":          &activities.DeliverInput{PaymentID: id(6)}, // of signing and delivery, as older builds wrote it
		"sign_input":             &activities.SignInput{PaymentID: id(6), ReportGas: true, GasReason: activities.GasLimit},
		"signed_payment":         &activities.SignedPayment{AttemptID: id(13), TxID: "ab", Completed: true, Parked: "blocked"},
		"needs_gas":              &activities.SignedPayment{Gas: &activities.NeedGas{Missing: "1.5"}},
		"bump_input":             &activities.BumpInput{PaymentID: id(6), N: 2},
		"bump":                   &activities.Bump{TxID: "cd", N: 3, Kept: "fee_too_high", Over: true},
		"deliver_input":          &activities.DeliverInput{PaymentID: id(6), BumpAfter: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)},
		"delivery":               &activities.Delivery{End: activities.DeliveryCompleted, TxID: "ab", Code: "SUCCESS"},
		"deliver_gas_input":      &activities.DeliverInput{PaymentID: id(6), Arrival: true, Arrived: "0a"},
		"swap_flow_input":        &workflows.SwapInput{IntentID: id(9)},
		"swap_result":            &workflows.SwapResult{SwapID: id(20), Status: exchange.SwapCompleted, Detail: exchange.WaitNothing},
		"swap_ack":               &workflows.SwapAck{Status: exchange.SwapCancelled, Detail: exchange.DetailBySender},
		"swap_input":             &activities.SwapInput{SwapID: id(20)},
		"opened_swap":            &activities.OpenedSwap{SwapState: swapOf(at), Network: exchange.Tron, From: money.Must(money.USDT, "1"), To: money.Must(money.USDC, "2"), MerchantID: id(3)},
		"sync_swap_input":        &activities.SyncSwapInput{SwapID: id(20), Differed: 7},
		"synced_swap":            &activities.SyncedSwap{SwapState: swapOf(at), Differed: 7},
		"swap_state":             pointer(swapOf(at)),
		"cancel_swap_input":      &activities.CancelSwapInput{SwapID: id(20), IntentID: id(9)},
		"decide_swap_input":      &activities.DecideSwapInput{SwapID: id(20), Action: exchange.Approve, Token: "t"},
		"refused_swap_decision":  &activities.RefusedSwapDecisionInput{SwapID: id(20), Action: exchange.Approve, Channel: exchange.ChannelAPI, Code: exchange.CodeForbidden},
		"swap_command_input":     &activities.SwapCommandInput{SwapID: id(20), Proof: proof},
		"inventory_watched":      &activities.InventoryWatched{Low: []activities.InventoryLow{{Network: exchange.Tron, Asset: money.USDC}}},
		"crypto_payout_swap":     &workflows.CryptoPayoutInput{PaymentID: id(6), Network: exchange.Tron, SwapID: id(20)},
		"gas_arrived":            &activities.Delivery{End: activities.DeliveryArrived, TxID: "ab", BlockID: "0b"},
		"stuck":                  &activities.Delivery{End: activities.DeliveryStuck, TxID: "ab", N: 2},
		"top_up_input":           &activities.TopUpInput{PaymentID: id(6), Missing: "1.5"},
		"top_up":                 &activities.TopUp{PaymentID: id(15), Refused: activities.GasAboveCap},
		"exception_input":        &activities.ExceptionInput{ExceptionID: id(12), Proof: proof},
		"sealed":                 &activities.Sealed{Rows: 3},
		"transfer_input":         &workflows.TransferInput{IntentID: id(9)},
		"transfer_result":        &workflows.TransferResult{TransferID: id(20), Status: exchange.TransferCompleted, Detail: exchange.WaitNothing},
		"transfer_opened":        &workflows.TransferOpened{TransferID: id(20)},
		"transfer_ack":           &workflows.TransferAck{Status: exchange.TransferCancelled, Detail: exchange.DetailBySender},
		"approval_ref":           &workflows.ApprovalRef{Token: "token"},
		"crypto_payout_transfer": &workflows.CryptoPayoutInput{PaymentID: id(6), TransferID: id(20), Network: exchange.Tron},
		"opened_transfer": &activities.OpenedTransfer{
			TransferState: transferStateSample(), Kind: exchange.ExternalTransfer, Network: exchange.Tron, Amount: money.Must(money.USDT, "10"),
			WalletType: exchange.Cold, MerchantID: id(11),
		},
		"transfer_named":         &activities.TransferInput{TransferID: id(20)},
		"mark_transfer_input":    &activities.MarkTransferInput{TransferID: id(20), Detail: exchange.WaitOperator},
		"cancel_transfer_input":  &activities.CancelTransferInput{TransferID: id(20), IntentID: id(9)},
		"give_up_transfer_input": &activities.GiveUpTransferInput{TransferID: id(20), Proof: proof},
		"cold_input":             &activities.ColdInput{PaymentID: id(6), Behalf: behalf},
		"cold_draft":             &activities.ColdDraft{DraftID: id(24)},
		"decide_input":           &activities.DecideInput{TransferID: id(20), Action: exchange.Approve, Token: "token"},
		"off_ramp_input":         &workflows.OffRampInput{IntentID: id(9)},
		"off_ramp_result":        &workflows.OffRampResult{OrderID: id(1), Status: exchange.OrderCompleted, Detail: exchange.WaitNothing},
		"opened_off_ramp": &activities.OpenedOffRamp{
			OpenedOrder: activities.OpenedOrder{
				OrderState: state, Type: exchange.OffRampSell, Network: exchange.Tron, Asset: money.USDT, MerchantID: id(11),
				Crypto: money.Must(money.USDT, "10"), Fiat: money.Must(money.KES, "1293"), ExpiresAt: at,
			},
			Escrow: "TEscrow", Method: exchange.PaymentMethodMomo, FundFromID: id(10),
		},
		"close_off_ramp_input": &activities.CloseOffRampInput{OrderID: id(1), Detail: exchange.DetailExpired, Behalf: behalf},
		"decide_deposit_input": &activities.DecideDepositInput{OrderID: id(1), Behalf: activities.Behalf{IntentID: id(9)}},
		"apply_deposit_input":  &activities.ApplyDepositInput{OrderID: id(1), DepositID: id(12)},
		"deposit_applied": &activities.DepositApplied{
			Outcome: string(exchange.TakenMismatch), OrderState: state, Crypto: money.Must(money.USDT, "10"), Fiat: money.Must(money.KES, "1293"),
			RefundID: id(7), ExceptionID: id(12),
		},
		"found_deposits":         &activities.FoundDeposits{IDs: []uuid.UUID{id(12)}},
		"deposit_screened":       &activities.DepositScreened{Verdict: exchange.VerdictHit},
		"bank_confirm_ref":       &workflows.BankConfirmRef{ConfirmationID: id(16)},
		"escrow_demand":          &exchange.EscrowDemand{Network: exchange.Tron, Free: 3, Total: 9, Most: 10, Short: 1, Make: []uuid.UUID{id(31)}},
		"escrow_room":            &activities.Room{Network: exchange.Tron, MayProvision: true, Make: []uuid.UUID{id(31)}},
		"escrow_released":        &activities.EscrowReleased{Exceptions: []uuid.UUID{id(12)}},
		"escrow_stale_input":     &activities.StaleInput{Before: at},
		"escrow_stale":           &activities.StaleReleased{Released: 2, Stuck: 1},
		"escrow_replenished":     &workflows.EscrowReplenished{Made: 1, Failed: []exchange.Network{exchange.Ethereum}, Short: []exchange.Network{exchange.Tron}, Released: 2, Stuck: 1},
		"refused_decision_input": &activities.RefusedDecisionInput{TransferID: id(20), Action: exchange.Reject, Channel: exchange.ChannelSignal, Code: exchange.CodeNotFound},
	}
}

func transferStateSample() activities.TransferState {
	return activities.TransferState{
		TransferID: id(20), Status: exchange.TransferPending, Detail: exchange.WaitSecond, PaymentID: id(6), Approvals: 1, Required: 2, Version: 4,
	}
}

// TestPayloadsKeepTheirShape reads the samples of every shape that was ever written into a history into today's types
// and writes them again: nothing may be lost, renamed or refused.
func TestPayloadsKeepTheirShape(t *testing.T) {
	for name, value := range payloads() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "payloads", name+".json")
			if *update {
				raw, err := json.MarshalIndent(value, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sameShape(t, want, value)
		})
	}
}

func sameShape(t *testing.T, want []byte, sample any) {
	t.Helper()
	into := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
	d := json.NewDecoder(bytes.NewReader(want))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("the released sample can no longer be read: %v", err)
	}
	got, err := json.MarshalIndent(into, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != string(got) {
		t.Errorf("the released sample comes back as\n%s\nwant\n%s", got, want)
	}
}

func TestPayloadSamplesAreComplete(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "payloads", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	known := payloads()
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); known[name] == nil {
			t.Errorf("the sample %s belongs to no type", name)
		}
	}
}

// countEvents counts the events of a recorded history.
func countEvents(t *testing.T, raw []byte) int {
	t.Helper()
	var h struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatal(err)
	}
	return len(h.Events)
}

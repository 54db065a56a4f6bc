package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// fakeFlows does in one step what flows do in many: it writes through the store. fail makes the next
// calls fail, and calls records the calls.
type fakeFlows struct {
	store *store.Store
	mu    sync.Mutex
	fail  error
	calls []string
	woken chan uuid.UUID // callbacks, when set
	takes bool           // a failing Command has taken the command up all the same
	// watches are the flows that accept commands, by payment attempt; all others have ended.
	watches map[uuid.UUID]error
	// ended are the ids of flows that CommandFlow and ConfirmBankRefund do not find.
	ended []string
}

func (f *fakeFlows) called(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, what)
	return f.fail
}

func (f *fakeFlows) failWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// reset forgets the calls so far.
func (f *fakeFlows) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

func (f *fakeFlows) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func (f *fakeFlows) OpenOrder(ctx context.Context, r exchange.OrderRequest, intent uuid.UUID) error {
	if err := f.called("open " + r.ID.String()); err != nil {
		return err
	}
	_, err := f.store.OpenOrder(ctx, exchange.Asked{IntentID: intent, Flow: workflows.OnRampID(r.ID)})
	return err
}

func (f *fakeFlows) MoveFloat(_ context.Context, move uuid.UUID) error {
	return f.called("move float " + move.String())
}

func (f *fakeFlows) SweepFee(_ context.Context, sweep uuid.UUID, _ exchange.Network) error {
	return f.called("sweep fee " + sweep.String())
}

func (f *fakeFlows) OpenMultisig(_ context.Context, account uuid.UUID, _ exchange.Network) error {
	return f.called("open multisig " + account.String())
}

func (f *fakeFlows) OpenProposal(ctx context.Context, r exchange.ProposalRequest, _ exchange.MultisigAccount, intent uuid.UUID) error {
	if err := f.called("propose " + r.ID.String()); err != nil {
		return err
	}
	if _, err := f.store.OpenProposal(ctx, exchange.Asked{IntentID: intent, Flow: workflows.MultisigProposalID(r.ID)}); err != nil {
		return err
	}
	_, err := f.store.AdvanceProposal(ctx, r.ID)
	return err
}

func (f *fakeFlows) StepProposal(ctx context.Context, proposal, intent uuid.UUID, verb exchange.IntentKind) error {
	if err := f.called(string(verb) + " " + proposal.String()); err != nil {
		return err
	}
	flow := workflows.MultisigProposalID(proposal)
	if slices.Contains(f.ended, flow) {
		return exchange.Errorf(exchange.CodeNotFound, "The flow has ended.")
	}
	a := exchange.Asked{IntentID: intent, Flow: flow}
	switch verb { //nolint:exhaustive // every other intent brings a signature
	case exchange.IntendProposalCancel:
		_, err := f.store.CancelProposal(ctx, proposal, a)
		return err
	case exchange.IntendProposalExecute:
		_, err := f.store.ExecuteProposal(ctx, proposal, a)
		return err
	}
	asked, err := f.store.Intent(ctx, intent)
	if err != nil {
		return err
	}
	brought, err := exchange.OutsideSignatureOf(asked)
	if err != nil {
		return err
	}
	owner := strings.TrimRight(string(brought.Signature), "\x00") // a signature that names its owner, in place of one that proves it
	if !strings.HasPrefix(owner, "0x") {
		return exchange.Invalid(exchange.FieldError{Pointer: "/signature", Code: "wrong", Message: "must be the signature of an owner"})
	}
	g := exchange.MultisigSignature{PayloadID: brought.PayloadID, Owner: owner, Signature: brought.Signature}
	if _, err = f.store.StoreSignature(ctx, g, a); err != nil {
		return err
	}
	_, err = f.store.SignProposal(ctx, proposal)
	return err
}

// signatureOf has the length of a signature, and names its owner.
func signatureOf(owner string) []byte {
	raw := make([]byte, 65)
	copy(raw, owner)
	return raw
}

func (f *fakeFlows) DecideProposal(ctx context.Context, proposal, _ uuid.UUID, action exchange.ApprovalAction, token string) error {
	refusal := f.called("decide " + proposal.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.DecideProposal(ctx, proposal, action, token)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) ConfirmPayload(ctx context.Context, proposal, payload, _ uuid.UUID, token string) error {
	if err := f.called("confirm " + payload.String()); err != nil {
		return err
	}
	owner, err := f.store.ConfirmPayload(ctx, payload, token)
	if err != nil {
		return err
	}
	k, err := f.store.OwnerKeyForSigning(ctx, payload, owner.Address)
	if err != nil {
		return err
	}
	g := exchange.MultisigSignature{PayloadID: payload, Owner: owner.Address, Signature: signatureOf(owner.Address), Held: true, UserID: k.UserID, ApprovalID: k.Approval}
	if _, err = f.store.StoreSignature(ctx, g, exchange.Asked{}); err != nil {
		return err
	}
	_, err = f.store.SignProposal(ctx, proposal)
	return err
}

func (f *fakeFlows) RefundByBank(ctx context.Context, refund uuid.UUID) error {
	if err := f.called("refund by bank " + refund.String()); err != nil {
		return err
	}
	f.ended = slices.DeleteFunc(f.ended, func(id string) bool { return id == workflows.BankRefundID(refund) })
	_, err := f.store.BeginBankRefund(ctx, refund)
	return err
}

func (f *fakeFlows) ConfirmBankRefund(ctx context.Context, refund, intent uuid.UUID) error {
	if err := f.called("confirm refund " + refund.String()); err != nil {
		return err
	}
	if slices.Contains(f.ended, workflows.BankRefundID(refund)) {
		return exchange.Errorf(exchange.CodeNotFound, "The flow has ended.")
	}
	_, err := f.store.ConfirmBankRefund(ctx, refund, exchange.Asked{IntentID: intent, Flow: workflows.BankRefundID(refund)})
	return err
}

func (f *fakeFlows) LookAtBankRefund(_ context.Context, refund uuid.UUID) error {
	return f.called("look at refund " + refund.String())
}

func (f *fakeFlows) WakeForFloat(_ context.Context, w exchange.FloatWaiter) error {
	return f.called("wake for float " + cmp.Or(w.WorkflowID, w.OrderID.String()))
}

func (f *fakeFlows) CancelOrder(ctx context.Context, order, intent uuid.UUID) error {
	if err := f.called("cancel " + order.String()); err != nil {
		return err
	}
	_, err := f.store.CloseOrder(ctx, order, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{IntentID: intent, Flow: workflows.OnRampID(order)})
	return err
}

func (f *fakeFlows) OpenOffRamp(ctx context.Context, r exchange.OrderRequest, intent uuid.UUID) error {
	if err := f.called("open off-ramp " + r.ID.String()); err != nil {
		return err
	}
	_, err := f.store.OpenOffRamp(ctx, exchange.Asked{IntentID: intent, Flow: workflows.OffRampID(r.ID)}, "daraja")
	return err
}

func (f *fakeFlows) CancelOffRamp(ctx context.Context, order, intent uuid.UUID) error {
	if err := f.called("cancel off-ramp " + order.String()); err != nil {
		return err
	}
	_, err := f.store.CloseOffRamp(ctx, order, exchange.DetailCancelled, exchange.Asked{IntentID: intent, Flow: workflows.OffRampID(order)})
	return err
}

func (f *fakeFlows) AcceptOther(ctx context.Context, order, intent uuid.UUID) error {
	return f.decideDeposit(ctx, "accept deposit ", order, intent)
}

func (f *fakeFlows) ReturnOther(ctx context.Context, order, intent uuid.UUID) error {
	return f.decideDeposit(ctx, "return deposit ", order, intent)
}

func (f *fakeFlows) decideDeposit(ctx context.Context, what string, order, intent uuid.UUID) error {
	if err := f.called(what + order.String()); err != nil {
		return err
	}
	_, err := f.store.DecideDeposit(ctx, order, exchange.Asked{IntentID: intent, Flow: workflows.OffRampID(order)})
	return err
}

func (f *fakeFlows) RefundAddressSet(_ context.Context, order uuid.UUID) error {
	return f.called("refund address " + order.String())
}

func (f *fakeFlows) ConfirmBank(_ context.Context, order, _ uuid.UUID) error {
	return f.called("bank " + order.String())
}

func (f *fakeFlows) CommandOffRamp(ctx context.Context, order, command uuid.UUID) error {
	refusal := f.called("command off-ramp " + order.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.UseCommand(ctx, command, "order", order)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) RetryPayment(ctx context.Context, order, intent uuid.UUID) error {
	if err := f.called("retry-payment " + order.String()); err != nil {
		return err
	}
	if _, err := f.store.UseIntent(ctx, exchange.Asked{IntentID: intent, Flow: workflows.OnRampID(order)}, exchange.IntendPrompt); err != nil {
		return err
	}
	return f.store.SetOrderDetail(ctx, order, exchange.WaitPrompt)
}

func (f *fakeFlows) Command(ctx context.Context, order, command uuid.UUID) error {
	refusal := f.called("command " + order.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.UseCommand(ctx, command, "order", order)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) CommandLate(_ context.Context, attempt, _ uuid.UUID) error {
	_ = f.called("late command " + attempt.String()) // other flows than the order's
	f.mu.Lock()
	defer f.mu.Unlock()
	if answer, watched := f.watches[attempt]; watched {
		return answer
	}
	return exchange.Errorf(exchange.CodeNotFound, "The flow has ended.")
}

func (f *fakeFlows) Callback(_ context.Context, a exchange.PaymentAttempt, callback uuid.UUID) error {
	err := f.called("callback " + a.ID.String())
	if f.woken != nil {
		f.woken <- callback
	}
	return err
}

func (f *fakeFlows) OpenTransfer(ctx context.Context, r exchange.TransferRequest, intent uuid.UUID) error {
	if err := f.called("transfer " + r.ID.String()); err != nil {
		return err
	}
	t, err := f.store.OpenTransfer(ctx, exchange.Asked{IntentID: intent, Flow: workflows.TransferID(r.ID)})
	if err != nil {
		return err
	}
	if t, err = f.store.AdvanceTransfer(ctx, t.ID); err != nil || t.Status != exchange.TransferScreening {
		return err
	}
	_, err = f.store.RecordScreening(ctx, t.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}})
	return err
}

func (f *fakeFlows) OpenOTC(ctx context.Context, r exchange.OTCRequest, intent uuid.UUID) error {
	if err := f.called("deposit " + r.ID.String()); err != nil {
		return err
	}
	_, err := f.store.OpenOTC(ctx, exchange.Asked{IntentID: intent, Flow: workflows.OTCDepositID(r.ID)})
	return err
}

// shows checks that a step is shown in the timeline as what was asked for.
func (f *fakeFlows) shows(ctx context.Context, intent uuid.UUID, verb exchange.IntentKind) error {
	i, err := f.store.Intent(ctx, intent)
	if err == nil && i.Kind != verb {
		err = fmt.Errorf("a %s is shown as %s", i.Kind, verb)
	}
	return err
}

func (f *fakeFlows) StepOTC(ctx context.Context, deposit, intent uuid.UUID, verb exchange.IntentKind) error {
	if err := cmp.Or(f.called("step "+deposit.String()), f.shows(ctx, intent, verb)); err != nil {
		return err
	}
	d, err := f.store.StepOTC(ctx, deposit, exchange.Asked{IntentID: intent, Flow: workflows.OTCDepositID(deposit)})
	if err == nil && d.NamedPaymentID != uuid.Nil {
		_, err = f.store.TakeNamed(ctx, deposit)
	}
	return err
}

func (f *fakeFlows) OpenWithdrawal(ctx context.Context, r exchange.WithdrawalRequest, intent uuid.UUID) error {
	if err := f.called("withdrawal " + r.ID.String()); err != nil {
		return err
	}
	w, err := f.store.OpenWithdrawal(ctx, exchange.Asked{IntentID: intent, Flow: workflows.WithdrawalID(r.ID)})
	if err != nil {
		return err
	}
	s, err := f.store.AdvanceWithdrawal(ctx, w.ID)
	if err == nil && s.Withdrawal.Status == exchange.WithdrawalRequested {
		_, err = f.store.RecordWithdrawalScreening(ctx, w.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}})
	}
	return err
}

func (f *fakeFlows) StepWithdrawal(ctx context.Context, withdrawal, intent uuid.UUID, verb exchange.IntentKind) error {
	if err := cmp.Or(f.called("step "+withdrawal.String()), f.shows(ctx, intent, verb)); err != nil {
		return err
	}
	_, err := f.store.StepWithdrawal(ctx, withdrawal, exchange.Asked{IntentID: intent, Flow: workflows.WithdrawalID(withdrawal)})
	return err
}

func (f *fakeFlows) DecideWithdrawal(ctx context.Context, withdrawal, _ uuid.UUID, action exchange.ApprovalAction, token string) error {
	refusal := f.called("decide " + withdrawal.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.DecideWithdrawal(ctx, withdrawal, token, action)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) LookAtWithdrawal(_ context.Context, withdrawal uuid.UUID) error {
	return f.called("look at " + withdrawal.String())
}

func (f *fakeFlows) OpenSwap(ctx context.Context, swap, intent uuid.UUID, from exchange.SwapQuote) error {
	if err := f.called("swap " + swap.String() + " by quote " + from.ID.String()); err != nil {
		return err
	}
	if _, err := f.store.OpenSwap(ctx, exchange.Asked{IntentID: intent, Flow: workflows.SwapID(swap)}); err != nil {
		return err
	}
	_, err := f.store.CollectSwap(ctx, swap)
	return err
}

func (f *fakeFlows) CancelSwap(ctx context.Context, swap, intent uuid.UUID) error {
	if err := f.called("cancel swap " + swap.String()); err != nil {
		return err
	}
	if slices.Contains(f.ended, workflows.SwapID(swap)) {
		return exchange.Errorf(exchange.CodeNotFound, "The flow has ended.")
	}
	_, err := f.store.CancelSwap(ctx, swap, exchange.Asked{IntentID: intent, Flow: workflows.SwapID(swap)})
	return err
}

func (f *fakeFlows) DecideSwap(ctx context.Context, swap, _ uuid.UUID, action exchange.ApprovalAction, token string) error {
	refusal := f.called("decide " + swap.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.DecideSwap(ctx, swap, token, action)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) BringGas(context.Context) error { return f.called("bring gas") }

func (f *fakeFlows) LookAtSwap(_ context.Context, swap uuid.UUID) error {
	return f.called("look at " + swap.String())
}

func (f *fakeFlows) CancelTransfer(ctx context.Context, transfer, intent uuid.UUID) error {
	if err := f.called("cancel transfer " + transfer.String()); err != nil {
		return err
	}
	_, err := f.store.CancelTransfer(ctx, transfer, exchange.Asked{IntentID: intent, Flow: workflows.TransferID(transfer)})
	return err
}

func (f *fakeFlows) DecideTransfer(ctx context.Context, transfer, _ uuid.UUID, action exchange.ApprovalAction, token string) error {
	refusal := f.called("decide " + transfer.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.Decide(ctx, transfer, token, action)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) CommandFlow(ctx context.Context, flow string, command uuid.UUID) error {
	if err := f.called("command flow " + flow); err != nil {
		return err
	}
	object, name, _ := strings.Cut(flow, ":")
	if slices.Contains(f.ended, flow) {
		return exchange.Errorf(exchange.CodeNotFound, "The flow has ended.")
	}
	if object == "refund" {
		return nil // the command is about the order, which the id does not name
	}
	switch object = strings.ReplaceAll(object, "-", "_"); object {
	case "transfer", "otc_withdrawal", "fee_sweep", "swap":
	case "bank_refund":
		object = "refund"
	case "multisig":
		object = multisigObject
	case proposalObject:
	default:
		object = "order"
	}
	_, err := f.store.UseCommand(ctx, command, object, uuid.MustParse(name))
	return err
}

func (f *fakeFlows) CommandTransfer(ctx context.Context, transfer, command uuid.UUID) error {
	if err := f.called("command transfer " + transfer.String()); err != nil {
		return err
	}
	_, err := f.store.UseCommand(ctx, command, "transfer", transfer)
	return err
}

func (f *fakeFlows) HandOutTransfer(ctx context.Context, transfer, intent uuid.UUID) error {
	if err := f.called("hand out " + transfer.String()); err != nil {
		return err
	}
	asked, err := f.store.UseIntent(ctx, exchange.Asked{IntentID: intent, Flow: workflows.TransferID(transfer)}, exchange.IntendColdPayload)
	if err != nil {
		return err
	}
	p, err := f.store.ChainPaymentOf(ctx, exchange.ForTransfer, transfer)
	if err != nil {
		return err
	}
	_, err = f.store.SaveColdDraft(ctx, exchange.ColdDraft{
		ID: intent, PaymentID: p.ID, Network: p.Network, Body: []byte("body"), Payload: []byte("payload"), TxID: "ab", FeeLimit: money.Must(money.TRX, "30"),
		ExpiresAt: p.CreatedAt.Add(time.Hour), ClosesAt: p.CreatedAt.Add(2 * time.Hour), AskedBy: asked.By.UserID,
	}, asked.By)
	return err
}

func (f *fakeFlows) ImportTransfer(ctx context.Context, transfer, intent uuid.UUID) error {
	if err := f.called("import " + transfer.String()); err != nil {
		return err
	}
	asked, err := f.store.UseIntent(ctx, exchange.Asked{IntentID: intent, Flow: workflows.TransferID(transfer)}, exchange.IntendColdImport)
	if err != nil {
		return err
	}
	signed, err := exchange.SignedOfflineOf(asked)
	if err != nil {
		return err
	}
	p, err := f.store.ChainPaymentOf(ctx, exchange.ForTransfer, transfer)
	if err != nil {
		return err
	}
	drafts, err := f.store.ColdDrafts(ctx, p.ID)
	if err != nil || len(drafts) == 0 || string(signed.Raw) != "signed" {
		return cmp.Or(err, exchange.Invalid(exchange.FieldError{Pointer: "/signed_transaction", Code: "transaction", Message: "is not what was handed out"}))
	}
	_, err = f.store.SaveColdAttempt(ctx, drafts[0].ID, exchange.ChainAttempt{
		ID: uuid.New(), PaymentID: p.ID, Network: p.Network, TxID: drafts[0].TxID, Raw: signed.Raw, ExpiresAt: drafts[0].ExpiresAt, FeeLimit: drafts[0].FeeLimit,
	}, asked.By)
	return err
}

func (f *fakeFlows) CreateWallet(ctx context.Context, wallet, intent uuid.UUID) error {
	if err := f.called("wallet " + wallet.String()); err != nil {
		return err
	}
	_, err := f.store.CreateWallet(ctx, exchange.Asked{IntentID: intent, Flow: workflows.WalletID(wallet)}, fakeAddress(wallet), exchange.SealedKey{
		WalletID: wallet, Ciphertext: []byte("sealed"), MasterKey: "local:test", PublicKey: make([]byte, 33), Algorithm: "secp256k1",
	})
	return err
}

// fakeAddress returns a unique text that looks like an address; nothing is sent to it.
func fakeAddress(id uuid.UUID) string {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	out := []byte("T")
	for i := range 33 {
		out = append(out, alphabet[(int(id[i%16])*(i/16+3)+i)%len(alphabet)])
	}
	return string(out)
}

func (f *fakeFlows) ReturnDeposit(ctx context.Context, exception, request uuid.UUID, n exchange.Network) error {
	if err := f.called("return " + exception.String() + " on " + string(n)); err != nil {
		return err
	}
	_, _, err := f.store.OpenChainRefund(ctx, exchange.ChainRefundRequest{ExceptionID: exception, RequestID: request}, exchange.System("flow"))
	return err
}

func (f *fakeFlows) KeepDeposit(ctx context.Context, exception uuid.UUID, n exchange.Network) error {
	if err := f.called("keep " + exception.String() + " on " + string(n)); err != nil {
		return err
	}
	_, err := f.store.ApproveKeptSweep(ctx, exception)
	return err
}

func (f *fakeFlows) CommandReturn(ctx context.Context, exception, command uuid.UUID) error {
	refusal := f.called("command return " + exception.String())
	if refusal != nil && !f.takes {
		return refusal
	}
	_, err := f.store.UseCommand(ctx, command, "payment_exception", exception)
	return cmp.Or(refusal, err)
}

func (f *fakeFlows) DecideRefund(ctx context.Context, order, exception, _ uuid.UUID, action exchange.ApprovalAction, token string) error {
	if err := f.called("decide refund of order " + order.String() + ", exception " + exception.String()); err != nil {
		return err
	}
	filter := store.RefundFilter{OrderID: order, ExceptionID: exception}
	list, _, err := f.store.ListRefunds(ctx, filter, store.Page{Number: 1, Size: 1})
	if err == nil && len(list) == 1 {
		_, err = f.store.DecideRefund(ctx, list[0].ID, token, action)
	}
	if err == nil && len(list) == 0 {
		_, err = f.store.DecideSale(ctx, order, token, action)
	}
	return err
}

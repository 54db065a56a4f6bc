package api

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

const withdrawalsPath = "/api/v1/auth/otc/withdrawals"

func (s *server) withdrawalRoutes() []route {
	const one = withdrawalsPath + "/{id}"
	verb := func(name string, action exchange.Action, handle func(*call) error) route {
		return route{method: post, path: one + "/" + name, action: action, limit: limitGeneral, key: keyRequired, timeout: flowTimeout, handle: handle}
	}
	return []route{
		{method: get, path: withdrawalsPath, action: exchange.ActReadWithdrawals, limit: limitGeneral, handle: s.listWithdrawals},
		{method: post, path: withdrawalsPath, action: exchange.ActWriteWithdrawals, limit: limitOrderCreate, key: keyRequired, timeout: flowTimeout, handle: s.openWithdrawal},
		{method: get, path: one, action: exchange.ActReadWithdrawals, limit: limitGeneral, handle: withdrawals.get(s)},
		verb("cancel", exchange.ActWriteWithdrawals, s.stepWithdrawal(exchange.IntendWithdrawalCancel, "reason")),
		verb("hold", exchange.ActHoldWithdrawals, s.stepWithdrawal(exchange.IntendWithdrawalHold, "reason")),
		verb("unhold", exchange.ActExecuteWithdrawals, s.stepWithdrawal(exchange.IntendWithdrawalUnhold, "note")),
		verb("approve", exchange.ActApprove, s.decideWithdrawal(exchange.Approve)),
		verb("reject", exchange.ActApprove, s.decideWithdrawal(exchange.Reject)),
		verb("execute", exchange.ActExecuteWithdrawals, s.executeWithdrawal),
		verb("confirm-bank-payout", exchange.ActConfirmBank, s.confirmWithdrawal),
		verb("resolve", exchange.ActOperateFlows, s.resolveWithdrawal),
	}
}

var (
	withdrawalStatuses = names(exchange.WithdrawalMachine.States())
	withdrawalMethods  = names(exchange.WithdrawalMethods())
	withdrawalOutcomes = []string{outcomeRetry, outcomePaid, outcomeNotPaid}
)

// openWithdrawal requests a withdrawal of the caller's merchant.
func (s *server) openWithdrawal(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := exchange.WithdrawalRequest{
		ID: c.objectID, DestinationID: f.id("destination_id", true), Source: money.Asset(f.oneOf("source_asset", true, feeAssets...)),
		Payout: money.Asset(f.oneOf("payout_asset", true, feeAssets...)), WalletID: f.id("source_wallet_id", false), QuoteID: f.id("fx_rate_quote_id", false),
	}
	if f.has("payout_amount") {
		r.Amount = f.amount("payout_amount", money.KES, true)
	}
	if err := f.done(); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	err = s.ask(c, exchange.IntendWithdrawal, r.ID, r.Terms(), func(intent uuid.UUID) error { return s.Flows.OpenWithdrawal(c.ctx, r, intent) })
	if err != nil {
		return err
	}
	return withdrawals.opened(s, c, r.ID)
}

func (s *server) listWithdrawals(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.WithdrawalFilter{
		MerchantID: q.id("merchant_id"), DestinationID: q.id("destination_id"), Status: exchange.WithdrawalStatus(q.oneOf("status", withdrawalStatuses...)),
		Method: exchange.WithdrawalMethod(q.oneOf("payout_method", withdrawalMethods...)), CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return withdrawals.page(s, c, page)(s.Store.Withdrawals(c.ctx, c.view(), filter, page))
}

// stepWithdrawal carries out a verb on a withdrawal, of which the body says no more than why.
func (s *server) stepWithdrawal(kind exchange.IntentKind, why string) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		step := exchange.WithdrawalStep{Text: f.text(why, kind == exchange.IntendWithdrawalHold, exchange.MaxWithdrawalText)}
		if err := f.done(); err != nil {
			return err
		}
		if _, err := s.Store.Withdrawal(c.ctx, c.view(), id); err != nil {
			return hideAbsence(err)
		}
		if err := s.sendWithdrawal(c, kind, id, step); err != nil {
			return err
		}
		return withdrawals.answer(s, c, id)
	}
}

// sendWithdrawal has the withdrawal's flow carry out a verb. Where the flow has ended, the state of the withdrawal says why it does not.
func (s *server) sendWithdrawal(c *call, kind exchange.IntentKind, id uuid.UUID, step exchange.WithdrawalStep) error {
	err := s.ask(c, kind, id, step.Terms(), func(intent uuid.UUID) error { return s.Flows.StepWithdrawal(c.ctx, id, intent, kind) })
	return withdrawals.ended(s, c, id, err)
}

// decideWithdrawal takes an officer's decision. The flow's handler also takes those from the Web UI.
func (s *server) decideWithdrawal(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		w, err := s.Store.Withdrawal(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		k, token := s.ownTicket(c, exchange.ApproveWithdrawal, w.ID, action, note)
		k.Amount, k.Digest = w.Payout, digest
		if _, err = s.Store.IssueWithdrawalTicket(c.ctx, k, c.who); err != nil {
			return err
		}
		if err := s.unlessCounted(c, s.Flows.DecideWithdrawal(c.ctx, w.ID, c.objectID, action, token)); err != nil {
			return withdrawals.ended(s, c, w.ID, err)
		}
		return withdrawals.answer(s, c, w.ID)
	}
}

// executeWithdrawal lets an approved withdrawal leave. Crypto leaves by a transfer of the executing officer, out of the treasury's wallet.
func (s *server) executeWithdrawal(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	step := exchange.WithdrawalStep{Text: f.text("note", false, exchange.MaxWithdrawalText)}
	if err := f.done(); err != nil {
		return err
	}
	w, err := s.Store.Withdrawal(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	if w.Buys() && w.Status == exchange.WithdrawalApproved && c.who.Role == exchange.RoleTreasury {
		if step.TransferIntent, err = s.intendWithdrawalTransfer(c, w); err != nil {
			return err
		}
	}
	if err := s.forget(c, step.TransferIntent, s.sendWithdrawal(c, exchange.IntendWithdrawalExecute, id, step)); err != nil {
		return err
	}
	return withdrawals.answer(s, c, id)
}

// intendWithdrawalTransfer writes down the transfer of a withdrawal's crypto, which is the executing officer's. The withdrawal's flow opens
// it. Its ids follow from the request's, so that a repeated request asks for no other one.
func (s *server) intendWithdrawalTransfer(c *call, w exchange.Withdrawal) (uuid.UUID, error) {
	to, err := s.Store.DestinationsOf(c.ctx, []exchange.Withdrawal{w})
	if err != nil {
		return uuid.Nil, err
	}
	d := to[w.DestinationID]
	from, err := s.Store.HouseWallet(c.ctx, d.Network)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return uuid.Nil, exchange.Errorf(exchange.CodeStateConflict, "The treasury has no wallet on the network %s.", d.Network)
	}
	if err != nil {
		return uuid.Nil, err
	}
	r := exchange.TransferRequest{
		ID: uuid.NewSHA1(c.objectID, []byte("otc transfer")), RequestedBy: c.who.UserID, WalletID: from.ID, Network: d.Network, Amount: w.Payout,
		Recipient: exchange.Recipient{Address: d.Address},
	}
	i, err := s.Store.SaveIntent(c.ctx, exchange.Intent{
		ID: uuid.NewSHA1(c.objectID, []byte("otc transfer intent")), Kind: exchange.IntendTransfer, ObjectID: r.ID, By: c.who, Terms: r.Terms(),
	})
	return i.ID, err
}

// confirmWithdrawal takes an officer's word that a bank has paid a withdrawal. The last one that the amount requires completes it; an
// earlier one answers 202.
func (s *server) confirmWithdrawal(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	step := f.bankPaid()
	if err := f.done(); err != nil {
		return err
	}
	if _, err := s.Store.Withdrawal(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	if err := s.sendWithdrawal(c, exchange.IntendWithdrawalPaid, id, step); err != nil {
		return err
	}
	w, err := withdrawals.now(s, c, id)
	if err != nil {
		return err
	}
	if w.Status == string(exchange.WithdrawalConfirming) {
		c.fc.Set(fiber.HeaderLocation, withdrawalsPath+"/"+id.String())
		return c.json(http.StatusAccepted, wirePendingChange{[]wireChange{}, []string{c.fc.Path()}})
	}
	return c.json(http.StatusOK, w)
}

// bankPaid reads what an officer says of a payment by bank.
func (f *form) bankPaid() exchange.WithdrawalStep {
	step := exchange.WithdrawalStep{
		Reference: f.line("reference", true, exchange.MaxBankReference), PaidOn: f.date("paid_on"), Amount: f.amount("amount", money.KES, true),
		Text: f.line("note", false, exchange.MaxBankNote), LineID: f.id("statement_line_id", false),
	}
	if step.Reference != "" && !bankReference.MatchString(step.Reference) {
		f.fail("reference", "format", "must be printable ASCII characters, with at least one letter or digit")
	}
	return step
}

// How officers resolve a withdrawal.
const (
	outcomeRetry   = "retry"
	outcomePaid    = "paid"
	outcomeNotPaid = "not_paid"
)

// resolveWithdrawal carries out what an officer found out about a withdrawal that can't go on. One is enough to try again; what happened to
// its money two say.
func (s *server) resolveWithdrawal(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	outcome := f.oneOf("outcome", true, withdrawalOutcomes...)
	note, receipt := f.line("note", outcome == outcomeNotPaid, maxNoteLength), f.line("receipt", outcome == outcomePaid, exchange.MaxBankReference)
	if receipt != "" && outcome != outcomePaid {
		f.fail("receipt", "forbidden", "must be left out unless outcome is paid")
	}
	if receipt != "" && exchange.ReceiptIn(receipt) == "" {
		f.fail("receipt", "receipt", "must be the receipt of the payment")
	}
	if err := f.done(); err != nil {
		return err
	}
	w, err := s.Store.Withdrawal(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	switch outcome {
	case outcomePaid:
		return s.resolvePaid(c, w, exchange.ReceiptIn(receipt))
	case outcomeNotPaid:
		return s.resolveUnpaid(c, w, note)
	}
	if err := s.saveCommand(c, withdrawalObject, w.ID, verbRetry, note); err != nil {
		return err
	}
	if err := s.commandWithdrawal(c.ctx, c, w.ID, c.objectID); err != nil {
		return err
	}
	return withdrawals.answer(s, c, w.ID)
}

// resolvePaid takes the receipt of a payout by mobile money. Two officers attest it; one that is attested or booked already goes to the flow.
func (s *server) resolvePaid(c *call, w exchange.Withdrawal, receipt string) error {
	switch w.Method {
	case exchange.WithdrawByBank:
		return exchange.Errorf(exchange.CodeStateConflict, "A withdrawal by bank is confirmed with the bank's reference (confirm-bank-payout).")
	case exchange.WithdrawByChain:
		return exchange.Errorf(exchange.CodeStateConflict, "A withdrawal in crypto is paid when its transfer is.")
	case exchange.WithdrawByMomo:
	}
	of := exchange.WithdrawalObject(w.ID)
	second, err := s.Store.ReceiptNeedsSecond(c.ctx, of, receipt)
	if err != nil {
		return err
	}
	if second {
		proposed, err := s.Store.ProposeReceipt(c.ctx, of, receipt, c.who)
		if err != nil {
			return err
		}
		return answerPending(c, proposed)
	}
	if err := s.saveCommand(c, withdrawalObject, w.ID, verbResolve, receipt); err != nil {
		return err
	}
	if err := s.commandWithdrawal(c.ctx, c, w.ID, c.objectID); err != nil {
		return err
	}
	return withdrawals.answer(s, c, w.ID)
}

// resolveUnpaid proposes that a payout whose outcome is unknown, or that a source claims, was not made; or else to end the withdrawal.
func (s *server) resolveUnpaid(c *call, w exchange.Withdrawal, note string) error {
	propose := func() (exchange.ControlChange, error) {
		return s.Store.ProposeWithdrawalFailure(c.ctx, w.ID, note, c.who)
	}
	if w.Method == exchange.WithdrawByMomo && (w.Claimed || w.Status == exchange.WithdrawalConfirming) {
		propose = func() (exchange.ControlChange, error) {
			return s.Store.ProposeUnpaid(c.ctx, exchange.WithdrawalObject(w.ID), note, c.who)
		}
	}
	proposed, err := propose()
	if err != nil {
		return err
	}
	return answerPending(c, proposed)
}

// withdrawalObject is the object of commands about a withdrawal.
const withdrawalObject = "otc_withdrawal"

// commandWithdrawal sends an operator's decision to the flow of a withdrawal, or else to those that check late notices about its payouts.
// Without one that accepts it, it returns the most specific refusal.
func (s *server) commandWithdrawal(ctx context.Context, c *call, id, command uuid.UUID) error {
	flows, err := s.flowsOfWithdrawal(ctx, id)
	if err != nil {
		return err
	}
	var refusal error
	for _, flow := range flows {
		err := s.Flows.CommandFlow(ctx, flow, command)
		switch exchange.CodeOf(err) {
		case exchange.CodeNotFound: // it has ended
			if refusal == nil {
				refusal = err
			}
		case exchange.CodeStateConflict:
			refusal = err
		default:
			return err
		}
	}
	if err := s.unused(c, command, refusal); err != nil {
		return err
	}
	return withdrawals.ended(s, c, id, refusal)
}

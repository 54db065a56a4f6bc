package api

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/workflows"
)

const swapsPath = "/api/v1/auth/swaps"

func (s *server) swapRoutes() []route {
	const one, inventory = swapsPath + "/{id}", swapsPath + "/inventory"
	verb := func(name string, action exchange.Action, handle func(*call) error) route {
		return route{method: post, path: one + "/" + name, action: action, limit: limitGeneral, key: keyRequired, timeout: flowTimeout, handle: handle}
	}
	return []route{
		{method: post, path: swapsPath + "/quote", action: exchange.ActQuoteSwaps, limit: limitGeneral, key: keyOptional, handle: s.quoteSwap},
		{method: get, path: swapQuotesPath + "/{id}", action: exchange.ActReadSwaps, limit: limitGeneral, handle: s.getSwapQuote},
		{method: post, path: swapQuotesPath + "/{id}/replay", action: exchange.ActReadPricing, limit: limitGeneral, key: keyOptional, handle: s.replaySwapQuote},
		{method: get, path: inventory, action: exchange.ActReadInventory, limit: limitGeneral, handle: s.listSwapInventory},
		{method: post, path: inventory + "/marks", action: exchange.ActWriteSwapMarks, limit: limitGeneral, key: keyRequired, handle: s.proposeSwapMarks},
		{method: get, path: swapsPath, action: exchange.ActReadSwaps, limit: limitGeneral, handle: s.listSwaps},
		{method: post, path: swapsPath, action: exchange.ActOpenSwaps, limit: limitOrderCreate, key: keyRequired, timeout: flowTimeout, handle: s.openSwap},
		{method: get, path: one, action: exchange.ActReadSwaps, limit: limitGeneral, handle: swaps.get(s)},
		{method: post, path: one + "/cancel", action: exchange.ActCancelSwaps, limit: limitGeneral, key: keyOptional, timeout: flowTimeout, handle: s.cancelSwap},
		verb("approve", exchange.ActApprove, s.decideSwap(exchange.Approve)),
		verb("reject", exchange.ActApprove, s.decideSwap(exchange.Reject)),
		verb(verbRetry, exchange.ActOperateFlows, s.operateSwap(verbRetry)),
		verb(verbRefund, exchange.ActOperateFlows, s.operateSwap(verbRefund)),
		verb(verbResolve, exchange.ActOperateFlows, s.resolveSwap),
	}
}

var (
	swapStatuses = names(exchange.SwapMachine.States())
	swapOutcomes = names(exchange.SwapOutcomes())
)

// swapObject is the object of commands about a swap.
const swapObject = "swap"

// openSwap opens a swap at the price of one of the caller's quotes.
func (s *server) openSwap(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := exchange.SwapRequest{ID: c.objectID, QuoteID: f.id("quote_id", true)}
	if err := f.done(); err != nil {
		return err
	}
	q, err := s.Store.SwapQuote(c.ctx, store.ViewOf(c.who, exchange.ActReadSwaps), r.QuoteID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return exchange.Invalid(exchange.FieldError{Pointer: "/quote_id", Code: "not_found", Message: "must be the id of one of your quotes"})
	}
	if err != nil {
		return err
	}
	err = s.ask(c, exchange.IntendSwap, r.ID, r.Terms(), func(intent uuid.UUID) error { return s.Flows.OpenSwap(c.ctx, r.ID, intent, q) })
	if err != nil {
		return err
	}
	return swaps.opened(s, c, r.ID)
}

func (s *server) listSwaps(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.SwapFilter{
		WalletID: q.id("wallet_id"), Status: exchange.SwapStatus(q.oneOf("status", swapStatuses...)), Network: exchange.Network(q.oneOf("network", networkNames...)),
		OwnerID: q.id("owner_id"), MerchantID: q.id("merchant_id"), CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return swaps.page(s, c, page)(s.Store.Swaps(c.ctx, c.view(), filter, page))
}

func (s *server) cancelSwap(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if _, err := s.Store.Swap(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	err = s.ask(c, exchange.IntendSwapCancel, id, nil, func(intent uuid.UUID) error { return s.Flows.CancelSwap(c.ctx, id, intent) })
	if err != nil {
		return swaps.ended(s, c, id, err)
	}
	return swaps.answer(s, c, id)
}

// decideSwap takes an officer's decision. The flow's handler also takes those from the Web UI.
func (s *server) decideSwap(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		o, err := s.Store.Swap(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		k, token := s.ownTicket(c, exchange.ApproveSwap, o.ID, action, note)
		k.Amount, k.Digest = o.From, digest
		if _, err = s.Store.IssueSwapTicket(c.ctx, k, c.who); err != nil {
			return err
		}
		if err := s.unlessCounted(c, s.Flows.DecideSwap(c.ctx, o.ID, c.objectID, action, token)); err != nil {
			return swaps.ended(s, c, o.ID, err)
		}
		return swaps.answer(s, c, o.ID)
	}
}

// commandSwap records an operator's decision about a swap and sends its id to the flow, which acts only on the row.
func (s *server) commandSwap(c *call, id uuid.UUID, verb, note string) error {
	if _, err := s.Store.Swap(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	if err := s.saveCommand(c, swapObject, id, verb, note); err != nil {
		return err
	}
	return swaps.ended(s, c, id, s.Flows.CommandFlow(c.ctx, workflows.SwapID(id), c.objectID))
}

// operateSwap takes an operator's decision about a swap that is parked: it is retried, or given up while its first leg moved nothing.
func (s *server) operateSwap(verb string) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note := f.line("note", verb != verbRetry, maxNoteLength)
		if err := f.done(); err != nil {
			return err
		}
		if err := s.commandSwap(c, id, verb, note); err != nil {
			return err
		}
		w, err := swaps.now(s, c, id)
		if err != nil {
			return err
		}
		if verb != verbRetry {
			return c.json(http.StatusOK, w)
		}
		w.Retry = retryRequested
		return c.json(http.StatusAccepted, w)
	}
}

// resolveSwap carries out what an officer found out about a swap that needs a review. One is enough to pay out again; whether its money
// goes back, or a difference is accepted, two say.
func (s *server) resolveSwap(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	outcome := exchange.SwapOutcome(f.oneOf("outcome", true, swapOutcomes...))
	note := f.line("note", outcome != "" && !outcome.ByOne(), exchange.MaxSwapText)
	if err := f.done(); err != nil {
		return err
	}
	if !outcome.ByOne() {
		if _, err := s.Store.Swap(c.ctx, c.view(), id); err != nil {
			return hideAbsence(err)
		}
		waits, err := s.Store.ProposeSwapResolution(c.ctx, id, outcome, note, c.who)
		if err != nil {
			return err
		}
		return answerPending(c, waits)
	}
	if err := s.commandSwap(c, id, verbRetry, note); err != nil {
		return err
	}
	return swaps.answer(s, c, id)
}

// passResolutionOn has the flow of a swap that two officers resolved read its row. It finds by itself what it was not told.
func (s *server) passResolutionOn(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlSwapResolution || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		SwapID uuid.UUID `json:"swap_id"`
	}
	err := json.Unmarshal(change.Change, &about)
	if err == nil {
		err = s.Flows.LookAtSwap(c.ctx, about.SwapID)
	}
	if err != nil {
		s.log.Warn("a swap's flow was not notified of its resolution", "change", change.ID, "swap", about.SwapID, "error", err)
	}
}

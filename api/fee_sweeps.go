package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// FeeFlows is what the API does with the flows that bring earned fees to the treasury.
type FeeFlows interface {
	// SweepFee starts the flow of a stored sweep. A sweep has at most one flow at a time.
	SweepFee(ctx context.Context, sweep uuid.UUID, n exchange.Network) error
}

func (t temporalFlows) SweepFee(ctx context.Context, sweep uuid.UUID, n exchange.Network) error {
	return t.startRow(ctx, exchange.LiveRow{Kind: exchange.LiveFeeSweep, ObjectID: sweep, Network: n})
}

const (
	feesPath       = treasuryPath + "/fees"
	feeSweepsPath  = treasuryPath + "/fee-sweeps"
	sweepRulesPath = treasuryPath + "/fee-sweep-rules"
)

func (s *server) feeRoutes() []route {
	operate := func(verb string) route {
		return route{
			method: post, path: feeSweepsPath + "/{id}/" + verb, action: exchange.ActOperateFlows, limit: limitGeneral, key: keyRequired, timeout: flowTimeout,
			handle: s.operateFeeSweep(verb),
		}
	}
	return []route{
		{method: get, path: feesPath, action: exchange.ActReadFees, limit: limitGeneral, handle: s.listFees},
		{method: get, path: feeSweepsPath, action: exchange.ActReadFees, limit: limitGeneral, handle: s.listFeeSweeps},
		{method: post, path: feeSweepsPath, action: exchange.ActSweepFees, limit: limitGeneral, key: keyRequired, handle: s.proposeFeeSweep},
		{method: get, path: feeSweepsPath + "/{id}", action: exchange.ActReadFees, limit: limitGeneral, handle: showOne(s.Store.FeeSweep, feeSweepWire)},
		operate(verbRetry), operate(verbRefund),
		{method: get, path: sweepRulesPath, action: exchange.ActReadFees, limit: limitGeneral, handle: s.listSweepRules},
		{method: post, path: sweepRulesPath, action: exchange.ActSweepFees, limit: limitGeneral, key: keyRequired, handle: s.proposeSweepRule},
		{method: post, path: sweepRulesPath + "/{id}/switch-off", action: exchange.ActSweepFees, limit: limitGeneral, key: keyOptional, handle: s.switchOffSweepRule},
	}
}

// wireEarned is what the house earned in one asset and has not swept, in one wallet or in the house's own account.
type wireEarned struct {
	Asset     string     `json:"asset"`
	Network   *string    `json:"network"`
	WalletID  *uuid.UUID `json:"wallet_id"`
	OwnerID   *uuid.UUID `json:"owner_id"`
	Amount    string     `json:"amount"`
	Held      string     `json:"held"`
	Available string     `json:"available"`
	Sweepable bool       `json:"sweepable"`
	UpdatedAt timestamp  `json:"updated_at"`
}

func earnedWire(e exchange.EarnedFees) wireEarned {
	return wireEarned{
		Asset: string(e.Asset), Network: optText(string(e.Network)), WalletID: optID(e.WalletID), OwnerID: optID(e.OwnerID), Amount: e.Posted.String(), Held: e.Held.String(),
		Available: e.Posted.Sub(e.Held).String(), Sweepable: e.Sweepable, UpdatedAt: stamp(e.UpdatedAt),
	}
}

func (s *server) listFees(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.FeesFilter{
		Network: exchange.Network(q.oneOf("network", networkNames...)), Asset: money.Asset(q.oneOf("asset", assetNames()...)), WalletID: q.id("wallet_id"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "fees", page, earnedWire)(s.Store.EarnedFees(c.ctx, filter, page))
}

// wireFeeSweep is a sweep of earned fees.
type wireFeeSweep struct {
	ID           uuid.UUID  `json:"id"`
	ChangeID     uuid.UUID  `json:"change_id"`
	Scheduled    bool       `json:"scheduled"`
	RequestedBy  *uuid.UUID `json:"requested_by"`
	Network      *string    `json:"network"`
	Asset        string     `json:"asset"`
	Amount       string     `json:"amount"`
	WalletID     *uuid.UUID `json:"wallet_id"`
	Value        string     `json:"fiat_amount"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	TxHash       *string    `json:"tx_hash"`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
	CompletedAt  *timestamp `json:"completed_at"`
	Retry        string     `json:"retry,omitempty"`
}

func feeSweepWire(f exchange.FeeSweep) wireFeeSweep {
	return wireFeeSweep{
		ID: f.ID, ChangeID: f.ChangeID, Scheduled: f.Scheduled, RequestedBy: optID(f.RequestedBy), Network: optText(string(f.Network)), Asset: string(f.Amount.Asset()),
		Amount: f.Amount.String(), WalletID: optID(f.WalletID), Value: f.Value.String(), Status: string(f.Status), StatusDetail: f.StatusDetail, TxHash: optText(f.TxHash),
		CreatedAt: stamp(f.CreatedAt), UpdatedAt: stamp(f.UpdatedAt), CompletedAt: optTime(f.CompletedAt),
	}
}

var feeSweepStatuses = names(exchange.FeeSweepMachine.States())

func (s *server) listFeeSweeps(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.FeeSweepFilter{
		Status: exchange.FeeSweepStatus(q.oneOf("status", feeSweepStatuses...)), Network: exchange.Network(q.oneOf("network", networkNames...)),
		Asset: money.Asset(q.oneOf("asset", assetNames()...)), WalletID: q.id("wallet_id"), ChangeID: q.id("change_id"),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "fee_sweeps", page, feeSweepWire)(s.Store.FeeSweeps(c.ctx, filter, page))
}

var sweptAssets = append([]string{string(money.KES)}, stablecoins...)

// proposeFeeSweep proposes a sweep, which another treasury officer confirms: of crypto what wallets on a network have, of shillings
// an amount.
func (s *server) proposeFeeSweep(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := store.FeeSweepRequest{ID: c.objectID, Asset: money.Asset(f.oneOf("asset", true, sweptAssets...))}
	if shillings := r.Asset == money.KES; shillings {
		r.Amount = f.amount("amount", r.Asset, true)
		f.forbid("network", "shillings are in no wallet")
		f.forbid("least", "shillings are in no wallet")
	} else {
		r.Network, r.Least = exchange.Network(f.oneOf("network", true, networkNames...)), f.amount("least", r.Asset, true)
		f.forbid("amount", "all is swept that the wallets have")
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeFeeSweep(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// forbid refuses a field that a request of this kind must not have.
func (f *form) forbid(name, why string) {
	if _, given := f.take(name, false); given {
		f.fail(name, "forbidden", "must be left out: "+why)
	}
}

// startFeeSweeps starts the flows of the sweeps that a second officer has confirmed.
func (s *server) startFeeSweeps(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlFeeSweep || change.Status != exchange.ControlConfirmed {
		return
	}
	filter := store.FeeSweepFilter{ChangeID: change.ID, Status: exchange.FeeSweepPending}
	all, _, err := s.Store.FeeSweeps(c.ctx, filter, store.Page{Number: 1, Size: exchange.MaxFeeSweeps})
	for _, f := range all {
		if err == nil {
			err = s.Flows.SweepFee(c.ctx, f.ID, f.Network)
		}
	}
	if err != nil {
		s.log.Warn("the flows of fee sweeps were not all started; they are within minutes", "change", change.ID, "error", err)
	}
}

// operateFeeSweep sends an operator's decision to the flow of a sweep: to try again, or to leave the fees where they are.
func (s *server) operateFeeSweep(verb string) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note := f.line("note", verb != verbRetry, maxNoteLength)
		if err := f.done(); err != nil {
			return err
		}
		if _, err := s.Store.FeeSweep(c.ctx, id); err != nil {
			return hideAbsence(err)
		}
		if err := s.commandRow(c, "fee_sweep", id, verb, note, workflows.FeeSweepID(id), "fee sweep"); err != nil {
			return err
		}
		now, err := s.Store.FeeSweep(c.ctx, id)
		if err != nil {
			return err
		}
		w := feeSweepWire(now)
		if verb != verbRetry {
			return c.json(http.StatusOK, w)
		}
		w.Retry = retryRequested
		return c.json(http.StatusAccepted, w)
	}
}

// wireSweepRule is when fees are swept by themselves.
type wireSweepRule struct {
	ID        uuid.UUID `json:"id"`
	Network   string    `json:"network"`
	Asset     string    `json:"asset"`
	Threshold string    `json:"threshold"`
	Least     string    `json:"least"`
	IsActive  bool      `json:"is_active"`
	Orphaned  bool      `json:"orphaned"`
	ChangeID  uuid.UUID `json:"change_id"`
	UpdatedAt timestamp `json:"updated_at"`
}

func sweepRuleWire(r exchange.FeeSweepRule) wireSweepRule {
	return wireSweepRule{r.ID, string(r.Network), string(r.Asset), r.Threshold.String(), r.Least.String(), r.IsActive, r.Orphaned, r.ChangeID, stamp(r.UpdatedAt)}
}

func (s *server) listSweepRules(c *call) error {
	rules, err := s.Store.FeeSweepRules(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"fee_sweep_rules": each(rules, sweepRuleWire)})
}

// proposeSweepRule proposes when the fees of an asset on a network are swept by themselves, in place of an earlier rule.
func (s *server) proposeSweepRule(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := exchange.FeeSweepRule{ID: c.objectID, Network: exchange.Network(f.oneOf("network", true, networkNames...)), Asset: money.Asset(f.oneOf("asset", true, stablecoins...))}
	r.Threshold, r.Least = f.amount("threshold", r.Asset, true), f.amount("least", r.Asset, true)
	if r.Threshold.Positive() && r.Least.Positive() && r.Least.Cmp(r.Threshold) > 0 {
		f.fail("least", "out_of_range", "must not be above threshold")
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeFeeSweepRule(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

func (s *server) switchOffSweepRule(c *call) error {
	id, err := c.pathID("id")
	if err == nil {
		err = c.noBody()
	}
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, sweepRuleWire)(s.Store.SwitchOffFeeSweepRule(c.ctx, id, c.who))
}

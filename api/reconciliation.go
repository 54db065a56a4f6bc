package api

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

var (
	differenceStatuses     = []string{"open", "closed"}
	reconciliationStatuses = []string{"running", "completed", "failed"}
	cryptoNames            = []string{"USDT", "USDC", "TRX", "ETH", "SOL"}
)

// comparedWire compares the ledger with the chain at one block. Difference is the chain's amount minus the ledger's.
type comparedWire struct {
	WalletID     uuid.UUID  `json:"wallet_id"`
	Network      string     `json:"network"`
	Asset        string     `json:"asset"`
	Ledger       string     `json:"ledger"`
	Chain        string     `json:"chain"`
	Difference   string     `json:"difference"`
	FeesInFlight string     `json:"fees_in_flight"`
	Block        *wireBlock `json:"block"`
}

func comparedOf(n exchange.Network, c exchange.Comparison) comparedWire {
	return comparedWire{
		WalletID: c.WalletID, Network: string(n), Asset: string(c.Amount.Asset()), Ledger: c.Ledger.String(), Chain: c.Amount.String(),
		Difference: c.Difference().String(), FeesInFlight: c.Fees.String(), Block: blockWire(c.Block),
	}
}

// wireDifference is a difference, from the first run that found it until a run that no longer finds it.
type wireDifference struct {
	ID           uuid.UUID  `json:"id"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	ExceptionID  uuid.UUID  `json:"payment_exception_id"`
	FirstRunID   uuid.UUID  `json:"first_run_id"`
	LastRunID    uuid.UUID  `json:"last_run_id"`
	Runs         int        `json:"runs"`
	OpenedAt     timestamp  `json:"opened_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
	ClosedAt     *timestamp `json:"closed_at"`
	comparedWire
}

func differenceWire(d exchange.ReconciliationDifference) wireDifference {
	waits := exchange.WaitNothing
	if d.Status == exchange.DifferenceOpen {
		waits = exchange.WaitOperator
	}
	return wireDifference{
		ID: d.ID, Status: string(d.Status), StatusDetail: waits, ExceptionID: d.ExceptionID, FirstRunID: d.FirstRun, LastRunID: d.LastRun,
		Runs: d.Runs, OpenedAt: stamp(d.OpenedAt), UpdatedAt: stamp(d.UpdatedAt), ClosedAt: optTime(d.ClosedAt),
		comparedWire: comparedOf(d.Network, d.Latest),
	}
}

// listDifferences lists open and past differences between the ledger and the chains.
func (s *server) listDifferences(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.DifferenceFilter{
		Network: exchange.Network(q.oneOf("network", networkNames...)), Status: exchange.DifferenceStatus(q.oneOf("status", differenceStatuses...)),
		Asset: money.Asset(q.oneOf("asset", cryptoNames...)), WalletID: q.id("wallet_id"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "differences", page, differenceWire)(s.Store.ListDifferences(c.ctx, filter, page))
}

// wireReconciliation is one comparison of a network's wallets with the ledger.
type wireReconciliation struct {
	ID           uuid.UUID  `json:"id"`
	Network      string     `json:"network"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Compared     int        `json:"compared"`
	Deferred     int        `json:"deferred"`
	Differences  int        `json:"differences"`
	StartedAt    timestamp  `json:"started_at"`
	FinishedAt   *timestamp `json:"finished_at"`
}

// reconciliationDetails are what a run waits for, or why it failed.
var reconciliationDetails = []string{exchange.WaitNothing, "chain", store.Superseded, "failed"}

func reconciliationWire(r exchange.Reconciliation) wireReconciliation {
	detail := exchange.WaitNothing
	switch {
	case r.Status == exchange.ReconciliationRunning:
		detail = "chain"
	case r.Detail == store.Superseded:
		detail = store.Superseded
	case r.Detail != "":
		detail = "failed" // the flow's history has the cause
	}
	return wireReconciliation{
		ID: r.ID, Network: string(r.Network), Status: string(r.Status), StatusDetail: detail, Compared: r.Compared, Deferred: r.Deferred,
		Differences: r.Differences, StartedAt: stamp(r.StartedAt), FinishedAt: optTime(r.FinishedAt),
	}
}

func (s *server) listReconciliations(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.ReconciliationFilter{
		Network: exchange.Network(q.oneOf("network", networkNames...)), Status: exchange.ReconciliationStatus(q.oneOf("status", reconciliationStatuses...)),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "runs", page, reconciliationWire)(s.Store.ListReconciliations(c.ctx, filter, page))
}

// wireFound is a difference as one run found it.
type wireFound struct {
	DifferenceID uuid.UUID `json:"difference_id"`
	comparedWire
}

func (s *server) reconciliationItems(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	all, total, err := s.Store.ListReconciliationItems(c.ctx, id, page)
	if err != nil {
		return hideAbsence(err)
	}
	return c.list("items", each(all, func(i exchange.ReconciliationItem) wireFound {
		return wireFound{i.DifferenceID, comparedOf(i.Network, i.Comparison)}
	}), page, total)
}

// wireReserve is a line of a daily report.
type wireReserve struct {
	Day         string     `json:"day"`
	Asset       string     `json:"asset"`
	Liabilities string     `json:"liabilities"`
	Equity      string     `json:"equity"`
	Custody     string     `json:"custody"`
	Discrepancy string     `json:"discrepancy"`
	Float       string     `json:"float"`
	Reserves    string     `json:"reserves"`
	Surplus     string     `json:"surplus"`
	ComparedAt  *timestamp `json:"compared_at"`
	CreatedAt   timestamp  `json:"created_at"`
}

func reserveWire(l exchange.ReserveLine) wireReserve {
	return wireReserve{
		Day: l.Day.Format(time.DateOnly), Asset: string(l.Asset), Liabilities: l.Owed.String(), Equity: l.Equity.String(), Custody: l.Custody.String(),
		Discrepancy: l.Discrepancy.String(), Float: l.Float.String(), Reserves: l.Reserves().String(), Surplus: l.Surplus().String(),
		ComparedAt: optTime(l.ComparedAt), CreatedAt: stamp(l.CreatedAt),
	}
}

// listReserves reads the daily reports from from_day on, before to_day.
func (s *server) listReserves(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	asset := money.Asset(q.oneOf("asset", assetNames()...))
	from, to := q.day("from_day"), q.day("to_day")
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "reserves", page, reserveWire)(s.Store.ListReserves(c.ctx, asset, from, to, page))
}

// day reads a date.
func (q *query) day(name string) time.Time {
	text, ok := q.take(name, false)
	if !ok {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < 2000 {
		q.fail(name, "format", "must be a date such as 2026-11-21")
	}
	return day
}

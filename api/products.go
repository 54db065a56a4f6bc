package api

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// product is a kind of rows that people ask for, see and decide about: R, with what other tables say about each, F, and as the API shows it, W.
type product[R, F, W any] struct {
	name  string // of one row, in errors
	list  string // in answers
	path  string
	read  func(s *store.Store, ctx context.Context, v store.View, id uuid.UUID) (R, error)
	facts func(s *store.Store, ctx context.Context, rows []R) (map[uuid.UUID]F, error)
	wire  func(row R, facts F, reader exchange.Principal) W
	state func(R) rowState
}

// rowState names a row and its state.
type rowState struct {
	id             uuid.UUID
	status, detail string
}

var (
	swaps = product[exchange.Swap, store.SwapFacts, wireSwap]{
		name: "swap", list: "swaps", path: swapsPath, read: (*store.Store).Swap, facts: (*store.Store).FactsOfSwaps, wire: swapWire,
		state: func(o exchange.Swap) rowState { return rowState{o.ID, string(o.Status), o.StatusDetail} },
	}
	withdrawals = product[exchange.Withdrawal, store.WithdrawalFacts, wireWithdrawal]{
		name: "withdrawal", list: "withdrawals", path: withdrawalsPath, read: (*store.Store).Withdrawal, facts: (*store.Store).FactsOfWithdrawals, wire: withdrawalWire,
		state: func(o exchange.Withdrawal) rowState { return rowState{o.ID, string(o.Status), o.Detail} },
	}
	proposals = product[exchange.Proposal, store.ProposalFacts, wireProposal]{
		name: "proposal", list: "multisig_proposals", path: proposalsPath, read: (*store.Store).Proposal, facts: (*store.Store).FactsOfProposals, wire: proposalWire,
		state: func(o exchange.Proposal) rowState { return rowState{o.ID, string(o.Status), o.StatusDetail} },
	}
)

// find reads a row that the caller may see, with its facts.
func (p product[R, F, W]) find(s *server, c *call, id uuid.UUID) (row R, facts F, err error) {
	if row, err = p.read(s.Store, c.ctx, c.view(), id); err != nil {
		return row, facts, hideAbsence(err)
	}
	all, err := p.facts(s.Store, c.ctx, []R{row})
	return row, all[id], err
}

// now is a row that the caller may see, as it is now.
func (p product[R, F, W]) now(s *server, c *call, id uuid.UUID) (shown W, err error) {
	row, facts, err := p.find(s, c, id)
	if err == nil {
		shown = p.wire(row, facts, c.who)
	}
	return shown, err
}

// answer answers with a row as it is now.
func (p product[R, F, W]) answer(s *server, c *call, id uuid.UUID) error {
	w, err := p.now(s, c, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, w)
}

// opened answers with a row that was asked for just now.
func (p product[R, F, W]) opened(s *server, c *call, id uuid.UUID) error {
	w, err := p.now(s, c, id)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, p.path+"/"+id.String())
	return c.json(http.StatusCreated, w)
}

// get answers with the row of the path's id.
func (p product[R, F, W]) get(s *server) func(*call) error {
	return func(c *call) error {
		id, err := c.pathID("id")
		if err != nil {
			return err
		}
		return p.answer(s, c, id)
	}
}

// page returns a function that answers with a page of rows that was read.
func (p product[R, F, W]) page(s *server, c *call, page store.Page) func([]R, int, error) error {
	return func(rows []R, total int, err error) error {
		if err != nil {
			return err
		}
		facts, err := p.facts(s.Store, c.ctx, rows)
		if err != nil {
			return err
		}
		return c.list(p.list, each(rows, func(row R) W { return p.wire(row, facts[p.state(row).id], c.who) }), page, total)
	}
}

// ended replaces the error of a flow that has ended with one that names the row's state.
func (p product[R, F, W]) ended(s *server, c *call, id uuid.UUID, err error) error {
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	row, readErr := p.read(s.Store, c.ctx, c.view(), id)
	if readErr != nil {
		return hideAbsence(readErr)
	}
	now := p.state(row)
	return exchange.Errorf(exchange.CodeStateConflict, "The %s is %s (%s) and its flow has ended; it can't be changed any more.", p.name, now.status, now.detail)
}

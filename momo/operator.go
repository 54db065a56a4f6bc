package momo

import (
	"context"
	"time"

	"kivuko/exchange"
)

// Operator is a mobile money provider, for the processes that know its secrets. It classifies and decides nothing, and sends
// each request once: all other retries are the caller's.
type Operator interface {
	Notices
	Capabilities() exchange.Capabilities
	// SubmitCollection prompts a payer, SubmitPayout pays a payee. An unknown outcome is a state, not an error.
	SubmitCollection(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission
	SubmitPayout(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission
	// Resolve asks for the outcome of an attempt. Where the answer comes later as a callback, it returns a pending
	// observation with a ticket.
	Resolve(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation
	// Pull reads a page of the list of payments to our number.
	Pull(ctx context.Context, from, to time.Time, offset int) (seen []exchange.Observation, next int, more bool, err error)
	// Balance asks for our balances. The answer comes as a callback, which ParseBalance reads.
	Balance(ctx context.Context) (ticket string, err error)
	ParseBalance(body []byte) (exchange.FloatReport, error)
	// MoveFloat moves our own money to where payouts leave from, and QueryFloat asks for its outcome.
	MoveFloat(ctx context.Context, m exchange.FloatMove) exchange.Submission
	QueryFloat(ctx context.Context, m exchange.FloatMove) exchange.Observation
	// RegisterC2B tells the operator where to report payments to our number, RegisterPull opens its list of them.
	RegisterC2B(ctx context.Context) error
	RegisterPull(ctx context.Context, nominated exchange.Phone) error
}

// Notices is what a process without the operator's secrets knows of its protocol: how to read what the operator posts, and
// how to answer it.
type Notices interface {
	ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)
	Answer(a Answer) []byte
}

// Answer is an answer to a notice.
type Answer int

// The answers. All but Accept reject a payment that the operator asks about beforehand.
const (
	Accept         Answer = iota
	UnknownAccount        // nothing waits for a payment with its reference
	WrongAmount           // what waits for it expects another amount
)

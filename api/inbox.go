package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// drainTimeout is for taking one notice that waited on disk.
const drainTimeout = 30 * time.Second

// ReadNotice reads what the operator posted to an address of a kind.
type ReadNotice func(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)

// Inbox takes the operator's callbacks, as they come and from the spool: it finds their addressees, stores them, records
// the payments that they report and wakes the flows that wait for them.
type Inbox struct {
	spool   *spool
	store   *store.Store
	flows   Flows
	notices ReadNotice // nil: only the operator's statement is read
	log     *slog.Logger
}

// notice is what the operator posted to an address of ours. The spool keeps it as JSON.
type notice struct {
	ID         uuid.UUID             `json:"id"`
	Token      string                `json:"token"`
	Kind       exchange.CallbackKind `json:"kind"`
	RemoteIP   string                `json:"remote_ip"`
	OffRange   bool                  `json:"off_range,omitempty"`
	Standing   bool                  `json:"standing,omitempty"`
	Body       []byte                `json:"body"`
	ReceivedAt time.Time             `json:"received_at"`
}

// callback is the notice as it is stored. Only the beginning of an unknown notice is kept, because anybody can
// send those and stored notices are never deleted.
func (n notice) callback(of addressee) exchange.MomoCallback {
	if of.unassigned() && !n.Standing && len(n.Body) > unknownBody {
		n.Body = n.Body[:unknownBody]
	}
	return exchange.MomoCallback{
		ID: n.ID, AttemptID: of.attempt.ID, FloatMoveID: of.move, Kind: n.Kind, RemoteIP: n.RemoteIP, OffRange: n.OffRange,
		Standing: n.Standing && of.unassigned(), Body: n.Body, ReceivedAt: n.ReceivedAt,
	}
}

// addressee is the owner of the address that a notice came to: a payment attempt, a movement of float, or none.
type addressee struct {
	attempt exchange.PaymentAttempt
	move    uuid.UUID
}

func (a addressee) unassigned() bool { return a.attempt.ID == uuid.Nil && a.move == uuid.Nil }

// NewInbox opens the spool's directory, which must exist and be writable.
func NewInbox(d Deps) (*Inbox, error) {
	log := d.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	kept, err := newSpool(d.Config.SpoolDir, log)
	if err != nil {
		return nil, err
	}
	return &Inbox{spool: kept, store: d.Store, flows: d.Flows, notices: d.Notices, log: log}, nil
}

// Run drains the spool periodically until the context ends.
func (b *Inbox) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := b.Drain(ctx); err != nil && ctx.Err() == nil {
			files, bytes := b.spool.waiting()
			b.log.Warn("callbacks still wait on disk", "waiting", files, "bytes", bytes, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Drain takes the callbacks that wait on disk. It stops at the first callback that the database does not accept. A
// callback that is drained twice is stored once, by its id.
func (b *Inbox) Drain(ctx context.Context) (int, error) {
	return b.spool.drain(ctx, func(ctx context.Context, n notice) error {
		ctx, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		of, err := b.match(ctx, n)
		if err != nil {
			return err
		}
		if err := b.store.SaveCallback(ctx, n.callback(of)); err != nil {
			return err
		}
		b.act(ctx, n, of)
		return nil
	})
}

// match returns the addressee of a notice. For an unknown token it returns the zero addressee and no error.
func (b *Inbox) match(ctx context.Context, n notice) (addressee, error) {
	attempt, err := b.store.AttemptByToken(ctx, n.Kind, n.Token)
	if err == nil || exchange.CodeOf(err) != exchange.CodeNotFound {
		return addressee{attempt: attempt}, err
	}
	if n.Standing {
		return addressee{}, nil
	}
	move, err := b.store.FloatMoveByToken(ctx, n.Kind, n.Token)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return addressee{}, nil
	}
	return addressee{move: move.ID}, err
}

// act does what a stored notice asks for. Notices of movements of float ask for nothing: their flow polls.
func (b *Inbox) act(ctx context.Context, n notice, of addressee) {
	switch {
	case of.attempt.ID != uuid.Nil:
		b.wake(ctx, of.attempt, n.ID)
	case b.takes(n):
		b.note(ctx, n)
	}
}

// wake notifies the flow. A flow that misses the signal queries the mobile money operator by itself, only later.
func (b *Inbox) wake(ctx context.Context, attempt exchange.PaymentAttempt, callback uuid.UUID) {
	if err := b.flows.Callback(ctx, attempt, callback); err != nil {
		b.log.Error("flow not woken by a callback", "callback_id", callback, "attempt_id", attempt.ID, "error", err)
	}
}

// takes reports whether a notice reports a payment to our number and is trusted enough to record the payment. A notice from
// outside the operator's addresses is only stored: the operator's statement lists the payment if it exists.
func (b *Inbox) takes(n notice) bool {
	return b.notices != nil && n.Standing && !n.OffRange && n.Kind == exchange.CallbackConfirmation
}

// note stores a payment to our number that a notice reports, and wakes the flow that waits for it. Nothing is lost when it
// fails: the notice is stored, and the operator's statement, which is read every half hour, lists the payment too.
func (b *Inbox) note(ctx context.Context, n notice) {
	seen, err := b.notices(n.Kind, n.Body)
	if err != nil {
		b.log.Warn("ALERT a notice of a payment can't be read", "callback_id", n.ID, "error", err)
		return
	}
	for _, o := range seen {
		taken, err := b.store.TakeReceipt(ctx, o)
		if err != nil {
			b.log.Error("a payment that the operator reported was not recorded; the operator's statement will list it again", "callback_id", n.ID, "error", err)
			continue
		}
		if taken.Payment.Disputed {
			b.log.Error("ALERT two channels contradict each other about a payment", "payment_id", taken.Payment.ID)
		}
		if taken.Waiting.ID != uuid.Nil {
			b.wake(ctx, taken.Waiting, n.ID)
		}
	}
}

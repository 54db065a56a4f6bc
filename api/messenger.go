package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kivuko/exchange"
	"kivuko/notify"
	"kivuko/store"
)

// Messenger sends stored messages through the carriers. Several processes may run one: each message is given to one of
// them at a time.
type Messenger struct {
	store   *store.Store
	peppers []Key
	senders map[exchange.MessageChannel]notify.Sender
	log     *slog.Logger
	ended   *prometheus.CounterVec
}

// messageBatch is how many messages are claimed at a time.
const messageBatch = 20

// NewMessenger returns a messenger over carriers. Messages of a channel without a carrier wait until they expire.
func NewMessenger(d Deps, senders map[exchange.MessageChannel]notify.Sender) (*Messenger, error) {
	m := &Messenger{
		store: d.Store, peppers: d.Config.Peppers, senders: senders, log: d.Logger,
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kivuko_messages_total", Help: "Messages to people that ended, by channel and result (sent, refused, expired).",
		}, []string{"channel", "result"}),
	}
	return m, d.Metrics.Register(m.ended)
}

// Run sends messages until ctx ends.
func (m *Messenger) Run(ctx context.Context, pause time.Duration) {
	for {
		n, err := m.Send(ctx)
		if err != nil && ctx.Err() == nil {
			m.log.Warn("messages can't be sent; they are tried again", "error", err)
		}
		if n == messageBatch && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Send sends the messages that are due, at most a batch, and returns how many it claimed.
func (m *Messenger) Send(ctx context.Context) (int, error) {
	all, err := m.store.ClaimMessages(ctx, messageBatch)
	for _, next := range all {
		err = errors.Join(err, m.deliver(ctx, next))
	}
	return len(all), err
}

func (m *Messenger) deliver(ctx context.Context, next exchange.Message) error {
	if !time.Now().Before(next.ExpiresAt) {
		return m.end(ctx, next, "expired")
	}
	carrier := m.senders[next.Channel]
	if carrier == nil {
		return nil
	}
	text, err := openMessage(m.peppers, next)
	if err != nil {
		return errors.Join(err, m.end(ctx, next, "refused"))
	}
	err = carrier.Send(ctx, text)
	switch {
	case err == nil:
		return m.end(ctx, next, "sent")
	case errors.Is(err, notify.ErrRefused):
		m.log.Warn("a message was refused", "message", next.ID, "kind", next.Kind, "error", err)
		return m.end(ctx, next, "refused")
	}
	return err
}

func (m *Messenger) end(ctx context.Context, next exchange.Message, result string) error {
	m.ended.WithLabelValues(string(next.Channel), result).Inc()
	return m.store.EndMessage(ctx, next.ID, result == "sent")
}

package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

type asker struct{}

// watched opens a store that records its commits by caller.
func watched(t *testing.T) (*store.Store, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var notes []string
	s := storetest.Open(t, storetest.URL(t), store.Options{Commits: func(ctx context.Context) func(bool) {
		who := ctx.Value(asker{})
		return func(committed bool) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, fmt.Sprint(who, " ", committed))
		}
	}})
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { notes = nil }()
		return slices.Clone(notes)
	}
}

// Every kind of write calls the observers before and after its commit, with the caller's context. A change that
// changes nothing is not observed.
func TestCommitsAreWatched(t *testing.T) {
	s, notes := watched(t)
	user := storetest.User(t, s, exchange.RoleTreasury)
	command := exchange.OperatorCommand{ID: uuid.New(), ObjectType: "order", ObjectID: uuid.New(), Verb: "retry", ActorID: user.ID}
	post := exchange.Posting{Entries: []exchange.Entry{{
		Key: "test:watched", Kind: "test", ObjectType: "test", Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), money.Must(money.KES, "1")),
			exchange.Credit(exchange.House(exchange.AccCapital, money.KES), money.Must(money.KES, "1")),
		},
	}}}
	for name, change := range map[string]func(context.Context) error{
		"transaction": func(ctx context.Context) error {
			return s.SaveCommand(ctx, command, storetest.PrincipalOf(user))
		},
		"statement": func(ctx context.Context) error {
			return s.SaveCallback(ctx, exchange.MomoCallback{ID: uuid.New(), Kind: exchange.CallbackConfirmation, Standing: true, RemoteIP: "127.0.0.1", Body: []byte("{}"), ReceivedAt: user.CreatedAt})
		},
		"writer": func(ctx context.Context) error { return s.Post(ctx, post) },
	} {
		notes()
		if err := change(context.WithValue(t.Context(), asker{}, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := notes(), []string{name + " false", name + " true"}; !slices.Equal(got, want) {
			t.Errorf("%s: watched was %v, not %v", name, got, want)
		}
	}
	if _, err := s.UseCommand(t.Context(), uuid.New(), "order", command.ObjectID); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Error(err)
	}
	if got := notes(); len(got) != 0 {
		t.Errorf("nothing was written, and watched was %v", got)
	}
}

// Where commits are observed, PostgreSQL refuses writes outside of a transaction.
func TestUnwatchedWritesAreRefused(t *testing.T) {
	s, _ := watched(t)
	if err := s.WriteUnwatched(t.Context()); exchange.CodeOf(err) == "" {
		t.Error("an unobservable write was accepted")
	}
	if err := storetest.New(t).WriteUnwatched(t.Context()); err != nil {
		t.Error(err)
	}
}

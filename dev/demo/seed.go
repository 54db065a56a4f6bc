package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// World is the running stack as the demo needs it. A network whose control is empty does not run.
type World struct {
	API             string // http://host:port
	TronControl     string // http://host:port of the development node's control
	EthereumControl string
	SolanaControl   string
	Momo            string // http://host:port of the mobile money sandbox
	DatabaseURL     string
	AdminEmail      string
	AdminPass       string
	Say             func(format string, args ...any)
}

// caller is an app that goes on where a part of the stack was killed.
func (w World) caller() *client.Client { return client.New(w.API).WithRetries() }

// Nodes are the networks that run.
func (w World) Nodes() []Node {
	var all []Node
	for _, n := range []Node{{exchange.Tron, w.TronControl}, {exchange.Ethereum, w.EthereumControl}, {exchange.Solana, w.SolanaControl}} {
		if n.Control != "" {
			all = append(all, n)
		}
	}
	return all
}

// node finds a network that runs.
func (w World) node(n exchange.Network) (Node, bool) {
	for _, one := range w.Nodes() {
		if one.Network == n {
			return one, true
		}
	}
	return Node{}, false
}

// The house's money at the operator, in shillings: what the sandbox's accounts begin with.
const (
	payoutFloat = "50000000"
	collected   = "1000000"
)

// seeder is one run of Seed.
type seeder struct {
	World
	admin *client.Client
	store *store.Store
	ids   map[string]uuid.UUID // of users, by e-mail
	// vendors are logged in once for all networks, because logins are counted.
	vendors map[string]*client.Client
}

type account struct {
	ID uuid.UUID `json:"id"`
}

// Seed makes what is missing of the demo's accounts, wallets, balances and offers. Running it again
// changes nothing; running it on the data of a stack with fewer networks adds the others.
func Seed(ctx context.Context, w World) error {
	admin, err := w.caller().Login(ctx, w.AdminEmail, w.AdminPass)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, w.DatabaseURL, store.Options{MaxConns: 4})
	if err != nil {
		return err
	}
	s := &seeder{World: w, admin: admin, store: db, ids: map[string]uuid.UUID{}, vendors: map[string]*client.Client{}}
	return errors.Join(s.run(ctx), db.Close())
}

func (s *seeder) run(ctx context.Context) error {
	if err := s.people(ctx); err != nil {
		return err
	}
	if err := s.float(ctx); err != nil {
		return err
	}
	if err := s.logIn(ctx); err != nil {
		return err
	}
	if err := s.shillings(ctx); err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	for _, n := range s.Nodes() {
		group.Go(func() error {
			if err := s.network(inner, n); err != nil {
				return fmt.Errorf("%s: %w", n.Network, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *seeder) logIn(ctx context.Context) (err error) {
	for _, p := range People() {
		if p.Role != "vendor" {
			continue
		}
		if s.vendors[p.Email], err = s.caller().Login(ctx, p.Email, Password); err != nil {
			return err
		}
	}
	return nil
}

func (s *seeder) people(ctx context.Context) error {
	for _, p := range People() {
		in := map[string]any{
			"email": p.Email, "phone_number": p.Phone, "first_name": p.First, "last_name": p.Last,
			"password": Password, "role": p.Role,
		}
		if p.Vendor != "" {
			in["vendor_id"] = s.ids[p.Vendor]
		}
		var made account
		err := s.admin.Post(ctx, "/api/v1/auth/users", "", in, &made)
		if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusConflict {
			known, err := s.store.UserByEmail(ctx, p.Email)
			if err != nil {
				return err
			}
			s.ids[p.Email] = known.ID
			continue
		}
		if err != nil {
			return fmt.Errorf("account %s: %w", p.Email, err)
		}
		s.ids[p.Email] = made.ID
	}
	return s.letIn(ctx)
}

// letIn has the first treasury officer confirm the officers whom the admin made. The first one itself needed
// nobody: there was none.
func (s *seeder) letIn(ctx context.Context) error {
	for _, p := range People() {
		if p.Role != "treasury" || p.Email == TreasuryEmail {
			continue
		}
		if err := s.Confirm(ctx, s.ids[p.Email]); err != nil {
			return fmt.Errorf("officer %s: %w", p.Email, err)
		}
	}
	return nil
}

// change is something that waits for a second person.
type change struct {
	ID        uuid.UUID  `json:"id"`
	SubjectID *uuid.UUID `json:"subject_id"`
}

// Confirm has the first treasury officer agree to what the admin proposed about a user, and without a user to
// what it proposed about the house's limits.
func (w World) Confirm(ctx context.Context, about uuid.UUID) error {
	officer, err := w.caller().Login(ctx, TreasuryEmail, Password)
	if err != nil {
		return err
	}
	var waiting struct {
		Changes []change `json:"changes"`
	}
	if err := officer.Get(ctx, "/api/v1/auth/approvals/pending", &waiting); err != nil {
		return err
	}
	for _, c := range waiting.Changes {
		if (c.SubjectID == nil) != (about == uuid.Nil) || (c.SubjectID != nil && *c.SubjectID != about) {
			continue
		}
		if err := officer.Post(ctx, "/api/v1/auth/approvals/changes/"+c.ID.String()+"/confirm", "confirm-"+c.ID.String(), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// LiftCustomers takes the spending limits of customers away, by two persons: measurements and long tests let one
// customer do what a whole country does.
func (w World) LiftCustomers(ctx context.Context) error {
	admin, err := w.caller().Login(ctx, w.AdminEmail, w.AdminPass)
	if err != nil {
		return err
	}
	in := map[string]any{"roles": map[string]any{"customer": map[string]any{}}}
	if err := admin.Do(ctx, http.MethodPatch, "/api/v1/auth/limits", "", in, nil); err != nil {
		return err
	}
	return w.Confirm(ctx, uuid.Nil)
}

// float books the house's money at the operator, from which sales and refunds are paid and to which purchases add.
func (s *seeder) float(ctx context.Context) error {
	for kind, text := range map[exchange.AccountKind]string{exchange.AccMomoPayout: payoutFloat, exchange.AccMomoCollection: collected} {
		kes := money.Must(money.KES, text)
		err := s.store.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
			Key: "opening:" + string(kind), Kind: "float.opening", ObjectType: "house", ObjectID: uuid.Nil,
			Lines: exchange.Lines(
				exchange.Debit(exchange.House(kind, money.KES), kes),
				exchange.Credit(exchange.House(exchange.AccCapital, money.KES), kes)),
		}}})
		if err != nil {
			return err
		}
	}
	return nil
}

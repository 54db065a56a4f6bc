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

// Stack has the addresses of the running stack that the demo needs. A network with an empty control does not run.
type Stack struct {
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

// caller returns a client that retries while a part of the stack is down.
func (w Stack) caller() *client.Client { return client.New(w.API).WithRetries() }

// Nodes returns the nodes of the running networks.
func (w Stack) Nodes() []Node {
	var all []Node
	for _, n := range []Node{{exchange.Tron, w.TronControl}, {exchange.Ethereum, w.EthereumControl}, {exchange.Solana, w.SolanaControl}} {
		if n.Control != "" {
			all = append(all, n)
		}
	}
	return all
}

// node returns a network's node and reports whether it runs.
func (w Stack) node(n exchange.Network) (Node, bool) {
	for _, one := range w.Nodes() {
		if one.Network == n {
			return one, true
		}
	}
	return Node{}, false
}

// The house's money at the operator, in shillings. The sandbox's accounts open with the same amounts.
const (
	payoutFloat = "50000000"
	collected   = "1000000"
)

// seeder is one run of Seed.
type seeder struct {
	Stack
	admin *client.Client
	store *store.Store
	ids   map[string]uuid.UUID // of users, by e-mail
	// vendors are logged in once for all networks, because the API limits logins.
	vendors map[string]*client.Client
}

type account struct {
	ID uuid.UUID `json:"id"`
}

// Seed creates the missing accounts, wallets, balances and offers of the demo. Running it again changes nothing;
// running it on the data of a stack with fewer networks adds the others.
func Seed(ctx context.Context, w Stack) error {
	admin, err := w.caller().Login(ctx, w.AdminEmail, w.AdminPass)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, w.DatabaseURL, store.Options{MaxConns: 4})
	if err != nil {
		return err
	}
	s := &seeder{Stack: w, admin: admin, store: db, ids: map[string]uuid.UUID{}, vendors: map[string]*client.Client{}}
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
		err := s.admin.Post(ctx, "/api/v1/auth/users", "", in, nil)
		if problem, ok := errors.AsType[*client.Problem](err); err != nil && (!ok || problem.Status != http.StatusConflict) {
			return fmt.Errorf("account %s: %w", p.Email, err)
		}
		known, err := s.store.UserByEmail(ctx, p.Email)
		if err != nil {
			return err
		}
		s.ids[p.Email] = known.ID
	}
	return s.letIn(ctx)
}

// letIn has the first treasury officer confirm the other officers that the admin created. The first one needs no
// confirmation.
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

// change is a change that waits for a second officer.
type change struct {
	ID        uuid.UUID  `json:"id"`
	SubjectID *uuid.UUID `json:"subject_id"`
}

// Confirm has the first treasury officer confirm the admin's proposal about a user, or with uuid.Nil the one about
// the house's limits.
func (w Stack) Confirm(ctx context.Context, about uuid.UUID) error {
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

// LiftCustomers removes the customers' spending limits, with two officers: in benchmarks and long tests one customer
// makes the orders of many.
func (w Stack) LiftCustomers(ctx context.Context) error {
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
			Key: "opening:" + string(kind), Kind: "float.opening",
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

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/store"
)

// Stack has the addresses of the running stack that the demo needs. A network with an empty control does not run.
type Stack struct {
	API             string // http://host:port
	TronControl     string // http://host:port of the development node's control
	EthereumControl string
	SolanaControl   string
	TronGRPC        string // host:port of the node, for tools of others
	NoSafe          bool   // Ethereum has no accounts of several owners
	Momo            string // http://host:port of the mobile money sandbox
	Messages        string // http://host:port of the page of messages
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

// seeder is one run of Seed.
type seeder struct {
	Stack
	admin *client.Client
	store *store.Store
	ids   map[string]uuid.UUID // of users, by e-mail
	// vendors are logged in once for all networks, because the API limits logins.
	vendors  map[string]*client.Client
	officers [2]*client.Client // of the treasury
	// paid closes when the vendors have their shillings, which offers to buy reserve.
	paid chan struct{}
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
	s := &seeder{Stack: w, admin: admin, store: db, ids: map[string]uuid.UUID{}, vendors: map[string]*client.Client{}, paid: make(chan struct{})}
	return errors.Join(s.run(ctx), db.Close())
}

func (s *seeder) run(ctx context.Context) error {
	if err := s.people(ctx); err != nil {
		return err
	}
	if err := s.logIn(ctx); err != nil {
		return err
	}
	if err := s.house(ctx); err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := s.shillings(inner)
		if err == nil {
			close(s.paid)
		}
		return err
	})
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
	for i, email := range []string{TreasuryEmail, SecondTreasuryEmail} {
		if s.officers[i], err = s.caller().Login(ctx, email, Password); err != nil {
			return err
		}
	}
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

// people makes the missing accounts: customers register and prove their numbers and addresses, everybody else is invited.
func (s *seeder) people(ctx context.Context) error {
	for _, p := range People() {
		known, err := s.store.UserByEmail(ctx, p.Email)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			if p.Role == "customer" {
				_, err = s.Register(ctx, s.admin, p)
			} else {
				err = s.invite(ctx, p)
			}
			if err == nil {
				known, err = s.store.UserByEmail(ctx, p.Email)
			}
		}
		if err != nil {
			return fmt.Errorf("account %s: %w", p.Email, err)
		}
		s.ids[p.Email] = known.ID
		if !known.IsActive { // the first officer needs no second one
			if err := s.Confirm(ctx, known.ID); err != nil {
				return fmt.Errorf("officer %s: %w", p.Email, err)
			}
		}
	}
	return nil
}

// Register registers a customer, who proves number and address by codes, and whom the admin verifies.
func (w Stack) Register(ctx context.Context, admin *client.Client, p Person) (uuid.UUID, error) {
	in := map[string]any{"email": p.Email, "phone_number": p.Phone, "first_name": p.First, "last_name": p.Last, "password": Password}
	for field, to := range map[string]string{"phone_number": p.Phone, "email": p.Email} {
		var sent struct {
			ID uuid.UUID `json:"id"`
		}
		if err := w.caller().Post(ctx, "/api/v1/users/verifications", "", map[string]any{field: to}, &sent); err != nil {
			return uuid.Nil, err
		}
		text, err := w.message(ctx, strings.TrimPrefix(to, "+"), code)
		if err != nil {
			return uuid.Nil, err
		}
		in[strings.TrimSuffix(field, "_number")+"_verification"] = map[string]any{"id": sent.ID, "code": text}
	}
	var made account
	if err := w.caller().Post(ctx, "/api/v1/users/register", "", in, &made); err != nil {
		return uuid.Nil, err
	}
	return made.ID, admin.Do(ctx, http.MethodPatch, "/api/v1/auth/users/"+made.ID.String(), "", map[string]any{"verified": true}, nil)
}

// invite invites a person, who accepts by the link.
func (s *seeder) invite(ctx context.Context, p Person) error {
	in := map[string]any{"email": p.Email, "phone_number": p.Phone, "first_name": p.First, "last_name": p.Last, "role": p.Role}
	if p.Vendor != "" {
		in["vendor_id"] = s.ids[p.Vendor]
	}
	if err := s.admin.Post(ctx, "/api/v1/auth/invitations", "", in, nil); err != nil {
		return err
	}
	token, err := s.message(ctx, p.Email, link)
	if err != nil {
		return err
	}
	return s.caller().Accept(ctx, token, Password)
}

// change is a change that waits for a second officer.
type change struct {
	ID        uuid.UUID  `json:"id"`
	SubjectID *uuid.UUID `json:"subject_id"`
	Digest    string     `json:"digest"`
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
		if err := officer.Post(ctx, "/api/v1/auth/approvals/changes/"+c.ID.String()+"/confirm", "confirm-"+c.ID.String(), map[string]any{"digest": c.Digest}, nil); err != nil {
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

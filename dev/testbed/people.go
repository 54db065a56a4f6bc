package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/messages"
	"kivuko/dev/stack"
)

// SecondOfficer is the e-mail address of a treasury officer other than demo.TreasuryEmail.
const SecondOfficer = "otieno@kivuko.example"

// loginLife is well below the lifetime of an access token.
const loginLife = 8 * time.Minute

// people logs in as the accounts of the seed, again and again in a long run.
type people struct {
	mu     sync.Mutex
	logins map[string]*client.Client
	since  map[string]time.Time
}

// Login returns a client with the login of an account, a new one when the last is old.
func (s *Testbed) Login(ctx context.Context, email, password string) (*client.Client, error) {
	p := &s.people
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.logins[email]; c != nil && time.Since(p.since[email]) < loginLife {
		return c, nil
	}
	c, err := client.New(s.API()).Login(ctx, email, password)
	if err != nil {
		return nil, err
	}
	if p.logins == nil {
		p.logins, p.since = map[string]*client.Client{}, map[string]time.Time{}
	}
	p.logins[email], p.since[email] = c, time.Now()
	return c, nil
}

// As returns a client with the login of an account of the demo, or of the first admin. The API may be down for a moment.
func (s *Testbed) As(t *testing.T, email string) *client.Client {
	t.Helper()
	password := demo.Password
	if email == stack.AdminEmail {
		password = stack.AdminPassword
	}
	var c *client.Client
	Eventually(t, "login of "+email, func() (err error) {
		c, err = s.Login(t.Context(), email, password)
		return err
	})
	return c
}

// Admin is the first admin.
func (s *Testbed) Admin(t *testing.T) *client.Client {
	t.Helper()
	return s.As(t, stack.AdminEmail)
}

// Officer is a treasury officer.
func (s *Testbed) Officer(t *testing.T) *client.Client {
	t.Helper()
	return s.As(t, demo.TreasuryEmail)
}

// Amina is a customer.
func (s *Testbed) Amina(t *testing.T) *client.Client { t.Helper(); return s.As(t, demo.CustomerEmail) }

// Inbox returns what a pattern finds in the newest message to somebody in which it finds something.
func (s *Testbed) Inbox(t *testing.T, to, pattern string) string {
	t.Helper()
	find := regexp.MustCompile(pattern)
	var found string
	Eventually(t, "a message to "+to, func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Messages()+"/messages?to="+url.QueryEscape(to), nil)
		if err != nil {
			return err
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = got.Body.Close() }() // everything of worth was read before
		var all []messages.Message
		if err := json.NewDecoder(got.Body).Decode(&all); err != nil {
			return err
		}
		for _, m := range all {
			if found = find.FindString(m.Text); found != "" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// Agree has the second officer confirm what waits for one in the answer to a request, and returns how many that were.
func (s *Testbed) Agree(t *testing.T, waits Waits) int {
	t.Helper()
	for _, c := range waits.Changes {
		path := "/api/v1/auth/approvals/changes/" + c.ID.String() + "/confirm"
		if err := Insist(t.Context(), s.Officer(t), path, Key(), map[string]any{"digest": c.Digest}, nil); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", c.Kind, err))
		}
	}
	return len(waits.Changes)
}

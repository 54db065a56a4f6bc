package store_test

import (
	"net/url"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// asRole makes a login role with the given attributes and grants, and opens a store as it.
func asRole(t *testing.T, dsn, attributes string, grants ...string) *store.Store {
	t.Helper()
	const password = "only for this test"
	owner := storetest.DB(t, dsn)
	name := "kivuko_test_login_" + strings.ToLower(storetest.Receipt(t))
	for _, statement := range append([]string{"CREATE ROLE " + name + " LOGIN PASSWORD '" + password + "' " + attributes}, grants...) {
		if _, err := owner.ExecContext(t.Context(), strings.ReplaceAll(statement, "ROLE_NAME", name)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	t.Cleanup(func() {
		for _, statement := range []string{"REASSIGN OWNED BY ROLE_NAME TO CURRENT_USER", "DROP OWNED BY ROLE_NAME", "DROP ROLE ROLE_NAME"} {
			if _, err := owner.Exec(strings.ReplaceAll(statement, "ROLE_NAME", name)); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	s, err := store.Open(t.Context(), u.String(), store.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Not parallel: roles belong to the whole server, and other tests would wait for their rows.
func TestRestrictedRolesAreReported(t *testing.T) {
	const member = "IN ROLE kivuko_app"
	for name, c := range map[string]struct {
		attributes string
		grants     []string
		says       string
	}{
		"a member of kivuko_app":    {member, nil, ""},
		"one that may create":       {member, []string{"GRANT CREATE ON SCHEMA public TO ROLE_NAME"}, "may create"},
		"one that administers":      {member + " CREATEROLE", nil, "administers"},
		"one that owns a table":     {member, []string{"GRANT CREATE ON SCHEMA public TO ROLE_NAME", "ALTER TABLE orders OWNER TO ROLE_NAME", "REVOKE CREATE ON SCHEMA public FROM ROLE_NAME"}, "owns the tables"},
		"one that owns by a detour": {member, []string{"GRANT CREATE ON SCHEMA public TO kivuko_app", "ALTER TABLE orders OWNER TO kivuko_app", "REVOKE CREATE ON SCHEMA public FROM kivuko_app"}, "owns the tables"},
	} {
		t.Run(name, func(t *testing.T) {
			err := asRole(t, storetest.URL(t), c.attributes, c.grants...).Restricted(t.Context())
			if c.says == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if exchange.CodeOf(err) != exchange.CodeForbidden || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
	// A session that set the role could reset it to the one that logged in.
	if err := storetest.New(t).Restricted(t.Context()); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("an administrator that set the role: %v", err)
	}
}

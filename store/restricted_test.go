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
	const member = "IN ROLE kivuko_flows"
	for name, c := range map[string]struct {
		attributes string
		grants     []string
		says       string
	}{
		"another login":             {member, nil, "is not kivuko_flows"},
		"one of two processes":      {member + ", kivuko_momo", nil, "has the rights of kivuko_momo"},
		"one that may create":       {member, []string{"GRANT CREATE ON SCHEMA public TO ROLE_NAME"}, "may create"},
		"one that administers":      {member + " CREATEROLE", nil, "administers"},
		"one that owns a table":     {member, []string{"GRANT CREATE ON SCHEMA public TO ROLE_NAME", "ALTER TABLE orders OWNER TO ROLE_NAME", "REVOKE CREATE ON SCHEMA public FROM ROLE_NAME"}, "owns the tables"},
		"one that owns by a detour": {member, []string{"GRANT CREATE ON SCHEMA public TO kivuko_flows", "ALTER TABLE orders OWNER TO kivuko_flows", "REVOKE CREATE ON SCHEMA public FROM kivuko_flows"}, "owns the tables"},
	} {
		t.Run(name, func(t *testing.T) {
			err := asRole(t, storetest.URL(t), c.attributes, c.grants...).Restricted(t.Context(), store.RoleFlows)
			if exchange.CodeOf(err) != exchange.CodeForbidden || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
	// A session that set the role could reset it to the one that logged in.
	if err := storetest.New(t).Restricted(t.Context(), store.RoleFlows); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("an administrator that set the role: %v", err)
	}
}

// The role of a process is accepted for that process alone.
func TestEachProcessHasItsRole(t *testing.T) {
	const password = "only for this test"
	dsn := storetest.URL(t)
	owner := storetest.DB(t, dsn)
	if _, err := owner.ExecContext(t.Context(), `ALTER ROLE kivuko_codec LOGIN PASSWORD '`+password+`'`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(`ALTER ROLE kivuko_codec NOLOGIN PASSWORD NULL`); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(string(store.RoleCodec), password)
	s, err := store.Open(t.Context(), u.String(), store.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Restricted(t.Context(), store.RoleCodec); err != nil {
		t.Errorf("refused: %v", err)
	}
	if err := s.Restricted(t.Context(), store.RoleAPI); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("as another process: %v", err)
	}
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Errorf("it can't check the schema: %v", err)
	}
}

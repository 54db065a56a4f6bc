package storetest

import "testing"

// The databases of processes that ended are dropped, those of others stay.
func TestAbandonedDatabasesAreDropped(t *testing.T) {
	t.Parallel()
	s, err := serverAt(t.Context(), serverURL(t))
	if err != nil {
		t.Fatal(err)
	}
	alive, gone := newKey(), newKey()
	holder, err := s.admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close() }()
	if _, err := holder.ExecContext(t.Context(), `SELECT pg_advisory_lock($1, $2)`, templateLock, alive); err != nil {
		t.Fatal(err)
	}
	for _, key := range []int32{alive, gone} {
		if _, err := s.admin.ExecContext(t.Context(), `CREATE DATABASE `+nameOf(key, 1)); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _, _ = s.admin.Exec(`DROP DATABASE ` + nameOf(alive, 1)) }()
	if err := s.dropAbandoned(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[int32]bool{alive: true, gone: false} {
		var there bool
		if err := s.admin.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, nameOf(key, 1)).Scan(&there); err != nil || there != want {
			t.Errorf("the database of a process is there: %t, want %t (%v)", there, want, err)
		}
	}
}

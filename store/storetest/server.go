package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"fmt"
	"net/url"
	"sync"

	"kivuko/store"
	"kivuko/store/pg"
)

// server is a PostgreSQL server as this process uses it.
type server struct {
	url      string
	template string
	admin    *sql.DB
	key      int32     // of the lock that this process holds while it lives, and in the names of its databases
	alive    *sql.Conn // holds the lock

	mu      sync.Mutex
	made    int
	free    []*clone
	schema  string // schemaPrint of a fresh clone
	restore string // what makes a used one fresh
}

var servers struct {
	sync.Mutex
	known map[string]*server // by URL
}

// take returns an unused database.
func take(ctx context.Context, dsn string) (*clone, error) {
	s, err := serverAt(ctx, dsn)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		c := s.free[n-1]
		s.free = s.free[:n-1]
		return c, nil
	}
	return s.clone(ctx)
}

func (s *server) put(c *clone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
}

// clone copies the template.
func (s *server) clone(ctx context.Context) (*clone, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hanging)
	defer cancel()
	s.made++
	c := &clone{name: nameOf(s.key, s.made), server: s, kept: map[string][]session{}}
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	u.Path = "/" + c.name
	c.dsn = u.String()
	if _, err := s.admin.ExecContext(ctx, `CREATE DATABASE `+c.name+` TEMPLATE `+s.template+` STRATEGY file_copy`); err != nil {
		return nil, err
	}
	db, err := pg.Connect(named(u))
	if err != nil {
		return nil, err
	}
	if c.admin, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	if s.restore == "" {
		if err := c.admin.QueryRowContext(ctx, schemaPrint).Scan(&s.schema); err != nil {
			return nil, err
		}
		if s.restore, err = restoring(ctx, c.admin); err != nil {
			return nil, err
		}
	}
	clones.Store(c.name, c)
	return c, nil
}

// serverAt makes the template unless this or another test binary has made it.
func serverAt(ctx context.Context, dsn string) (*server, error) {
	servers.Lock()
	defer servers.Unlock()
	if s, ok := servers.known[dsn]; ok {
		return s, nil
	}
	hash, err := store.SchemaHash()
	if err != nil {
		return nil, err
	}
	s := &server{url: dsn, template: "kivuko_template_" + hash, key: newKey()}
	ctx = context.WithoutCancel(ctx) // of the first test
	if err := ensureTemplate(dsn, s.template); err != nil {
		return nil, err
	}
	if s.admin, err = pg.Connect(dsn); err != nil {
		return nil, err
	}
	if s.alive, err = s.admin.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err := s.alive.ExecContext(ctx, `SELECT pg_advisory_lock($1, $2)`, templateLock, s.key); err != nil {
		return nil, err
	}
	if err := s.dropAbandoned(ctx); err != nil {
		return nil, err
	}
	if servers.known == nil {
		servers.known = map[string]*server{}
	}
	servers.known[dsn] = s
	return s, nil
}

const namePrefix = "kivuko_test_"

func nameOf(key int32, n int) string { return fmt.Sprintf("%s%d_%d", namePrefix, key, n) }

func newKey() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return int32(binary.BigEndian.Uint32(b[:]) >> 1)
}

// dropAbandoned drops the databases of processes that have ended. Nothing else does so: a process can't know its last test.
// Another process that does the same at this moment is waited for.
func (s *server) dropAbandoned(ctx context.Context) (err error) {
	if _, err := s.alive.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return err
	}
	defer func() {
		_, uerr := s.alive.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, templateLock)
		err = first(err, uerr)
	}()
	names, err := pairs(ctx, s.alive, `SELECT datname, split_part(datname, '_', 3) FROM pg_database WHERE datname ~ '^`+namePrefix+`[0-9]+_[0-9]+$'`)
	if err != nil {
		return err
	}
	for _, n := range names {
		var gone bool
		if n[1] == fmt.Sprint(s.key) {
			continue // its lock is ours, which this session gets again
		}
		if err := s.alive.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1, $2::int)`, templateLock, n[1]).Scan(&gone); err != nil {
			return err
		}
		if !gone {
			continue
		}
		if _, err := s.alive.ExecContext(ctx, `DROP DATABASE IF EXISTS `+n[0]+` WITH (FORCE)`); err != nil {
			return err
		}
		if _, err := s.alive.ExecContext(ctx, `SELECT pg_advisory_unlock($1, $2::int)`, templateLock, n[1]); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/workflows"
)

// sslVerifyFull is libpq's mode that checks the server's certificate and its name. With a weaker mode, a
// man in the middle can read and write the ledger.
const sslVerifyFull = "verify-full"

func (c Config) checkDatabase(n *need) {
	if c.Mode != Production || c.DatabaseURL == "" {
		return
	}
	u, err := url.Parse(c.DatabaseURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		n.rule(false, "KIVUKO_DATABASE_URL must be a postgres:// URL in production, so that its sslmode can be checked")
		return
	}
	modes := u.Query()["sslmode"]
	verified := len(modes) == 1 && modes[0] == sslVerifyFull
	n.rule(verified || onThisMachine(u), "KIVUKO_DATABASE_URL must say sslmode=verify-full: in production PostgreSQL is reached over verified TLS unless it is on this machine")
}

// onThisMachine reports whether a database URL names only loopback addresses or a local socket.
func onThisMachine(u *url.URL) bool {
	hosts := u.Query()["host"] // the driver takes the host from here too
	if u.Host != "" || len(hosts) == 0 {
		hosts = append(hosts, u.Hostname())
	}
	for _, list := range hosts {
		for _, h := range strings.Split(list, ",") {
			ip := net.ParseIP(h)
			if h != "localhost" && !path.IsAbs(h) && (ip == nil || !ip.IsLoopback()) {
				return false
			}
		}
	}
	return !u.Query().Has("hostaddr") && !u.Query().Has("service")
}

// openStore opens the database for a process that serves. Its schema must be that of this build, and in production it must log in
// with its own role, which must not be able to change the schema or the guards in it.
func openStore(ctx context.Context, p process, role store.Role, o store.Options) (*store.Store, error) {
	o.Logger = p.log
	db, err := store.Open(ctx, p.config.DatabaseURL, o)
	if err != nil {
		return nil, err
	}
	err = db.CheckSchema(ctx)
	if err == nil && p.config.Mode == Production {
		err = restricted(ctx, db, role)
	}
	if err != nil {
		closing(p, db)
		return nil, err
	}
	return db, nil
}

func restricted(ctx context.Context, db *store.Store, role store.Role) error {
	err := db.Restricted(ctx, role)
	if exchange.CodeOf(err) == exchange.CodeForbidden {
		err = fmt.Errorf("KIVUKO_DATABASE_URL must log in as %s: in production each process has only its own rights, and can't change its own guards. %s",
			role, exchange.MessageOf(err))
	}
	return err
}

// roleOfQueues is the role of a worker, by its queues. Those of one worker must have one role.
func roleOfQueues(queues []string) (store.Role, error) {
	var role store.Role
	for _, q := range queues {
		kind, _ := kindOf(q)
		of := map[string]store.Role{
			workflows.QueueFlows: store.RoleFlows, workflows.QueueMomo: store.RoleMomo, workflows.QueueWebhooks: store.RoleWebhooks,
			"chain": store.RoleChain, "signer": store.RoleSigner,
		}[kind]
		if role != "" && of != role {
			return "", fmt.Errorf("the queues %s have different roles in the database: start a worker for each", strings.Join(queues, ", "))
		}
		role = of
	}
	return role, nil
}

package store

import (
	"context"
	"strings"

	"github.com/lib/pq"

	"kivuko/exchange"
)

// A session may reset its role to the one that logged in, so both are checked.
const readPowers = `
SELECT u.name,
    r.rolsuper OR r.rolcreaterole OR r.rolbypassrls AS administers,
    has_schema_privilege(u.name, current_schema(), 'CREATE') OR has_database_privilege(u.name, current_database(), 'CREATE') AS creates,
    EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND pg_has_role(u.name, c.relowner, 'MEMBER')) AS owns,
    ARRAY(SELECT o.rolname FROM pg_roles o WHERE o.rolname = ANY ($1) AND o.rolname <> $2 AND pg_has_role(u.name, o.oid, 'MEMBER'))::text[] AS others
FROM (SELECT DISTINCT unnest(ARRAY[session_user, current_user]) AS name) u JOIN pg_roles r ON r.rolname = u.name ORDER BY u.name`

// Restricted checks that the connection's role is the one of its process, and can change neither the schema nor its guards: it
// must be no superuser, must not create objects, must own no table and be no member of another process's role, neither as the
// login role nor as the role that it set. CodeForbidden names the role and its excess rights.
func (s *Store) Restricted(ctx context.Context, role Role) error {
	var all []string
	for _, r := range append(Roles(), RoleMigrate) {
		all = append(all, string(r))
	}
	var roles []struct {
		Name                       string
		Administers, Creates, Owns bool
		Others                     []string
	}
	if err := s.db.All(ctx, &roles, readPowers, pq.Array(all), string(role)); err != nil {
		return translate(err, "role")
	}
	for _, r := range roles {
		var powers []string
		if r.Administers {
			powers = append(powers, "administers roles")
		}
		if r.Creates {
			powers = append(powers, "may create in the schema or the database")
		}
		if r.Owns {
			powers = append(powers, "owns the tables")
		}
		if len(r.Others) > 0 {
			powers = append(powers, "has the rights of "+strings.Join(r.Others, " and "))
		}
		if r.Name != string(role) {
			powers = append(powers, "is not "+string(role))
		}
		if len(powers) > 0 {
			return exchange.Errorf(exchange.CodeForbidden, "The database role %s %s.", r.Name, strings.Join(powers, ", "))
		}
	}
	return nil
}

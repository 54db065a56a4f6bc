package temporal

import (
	"context"
	"fmt"
	"net/url"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/tools/common/schema"
	sqltool "go.temporal.io/server/tools/sql"
)

// The plugin that uses pgx: measured a quarter faster for the server's own tables
// than the one that uses lib/pq.
const plugin = "postgres12_pgx"

// DefaultDatabase is the name of the server's database; that of the visibility
// store has the suffix visibilitySuffix.
const DefaultDatabase = "kivuko_temporal"

const visibilitySuffix = "_visibility"

// database is one of the server's two databases and its schema.
type database struct {
	name   string
	schema string // path in the schema files that the server embeds
	conns  int    // connections kept for it
}

func databases(name string) (main, visibility database) {
	const mainConns, visibilityConns = 20, 8
	return database{name: name, schema: "postgresql/v12/temporal", conns: mainConns},
		database{name: name + visibilitySuffix, schema: "postgresql/v12/visibility", conns: visibilityConns}
}

// sqlConfig describes the connection to a database on the server that dsn names.
func sqlConfig(dsn string, db database) (*config.SQL, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		// The error of url.Parse quotes its input with the password.
		return nil, fmt.Errorf("the PostgreSQL URL cannot be parsed")
	}
	if u.Host == "" || u.User == nil {
		return nil, fmt.Errorf("the PostgreSQL URL must name a host and a user")
	}
	password, _ := u.User.Password()
	attributes := map[string]string{}
	if mode := u.Query().Get("sslmode"); mode != "" {
		attributes["sslmode"] = mode
	}
	return &config.SQL{
		PluginName:        plugin,
		DatabaseName:      db.name,
		ConnectAddr:       u.Host,
		ConnectProtocol:   "tcp",
		User:              u.User.Username(),
		Password:          password,
		ConnectAttributes: attributes,
		MaxConns:          db.conns,
		MaxIdleConns:      db.conns,
	}, nil
}

// migrate creates the database when it is missing and brings its schema to the
// version of this server. On a current database it changes nothing.
func migrate(ctx context.Context, dsn string, db database, logger log.Logger) error {
	const maintenanceDatabase = "postgres"
	if err := withConnection(dsn, database{name: maintenanceDatabase, conns: 1}, logger, func(c *sqltool.Connection) error {
		return c.CreateDatabase(db.name)
	}); err != nil {
		return fmt.Errorf("create database %s: %w", db.name, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := withConnection(dsn, db, logger, func(c *sqltool.Connection) error {
		// Only a new database is set up; one with a schema version keeps it.
		setup := &schema.SetupConfig{InitialVersion: "0.0"}
		if _, err := c.ReadSchemaVersion(); err != nil {
			if err := schema.NewSetupSchemaTask(c, setup, logger).Run(); err != nil {
				return err
			}
		}
		return schema.NewUpdateSchemaTask(c, &schema.UpdateConfig{SchemaName: db.schema}, logger).Run()
	})
	if err != nil {
		return fmt.Errorf("schema of %s: %w", db.name, err)
	}
	return nil
}

func withConnection(dsn string, db database, logger log.Logger, use func(*sqltool.Connection) error) error {
	cfg, err := sqlConfig(dsn, db)
	if err != nil {
		return err
	}
	c, err := sqltool.NewConnection(cfg, logger)
	if err != nil {
		return err
	}
	defer c.Close()
	return use(c)
}

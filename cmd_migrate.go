package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"kivuko/api"
	"kivuko/exchange"
	"kivuko/store"
	"kivuko/worker"
)

// applyTimeout bounds the reconciliation of Temporal.
const applyTimeout = 2 * time.Minute

// runMigrate updates the database, fills the catalogs and creates the first admin.
func runMigrate(ctx context.Context, p process, _ []string) error {
	if err := p.config.check("migrate"); err != nil {
		return err
	}
	if err := store.Migrate(ctx, p.config.DatabaseURL); err != nil {
		return err
	}
	db, err := store.Open(ctx, p.config.DatabaseURL, store.Options{Logger: p.log})
	if err != nil {
		return err
	}
	defer closing(p, db)
	if err := db.SeedCatalogs(ctx); err != nil {
		return err
	}
	return firstAdmin(ctx, p, db)
}

// firstAdmin creates the configured admin if there is no admin. Admins create later ones.
func firstAdmin(ctx context.Context, p process, db *store.Store) error {
	a := p.config.Admin
	if a.Email == "" {
		return nil
	}
	created, err := api.EnsureAdmin(ctx, db, namedKeys(p.config.API.Peppers)[0], api.FirstAdmin{
		Email: a.Email, PhoneNumber: a.Phone, FirstName: "First", LastName: "Admin", Password: a.Password,
	})
	if created {
		p.log.Info("created the first admin")
	}
	return err
}

// runApply reconciles Temporal with temporal.yaml.
func runApply(ctx context.Context, p process, _ []string) error {
	if err := p.config.check("apply"); err != nil {
		return err
	}
	temporalConfig, err := worker.ParseTemporalConfig(temporalYAML)
	if err != nil {
		return err
	}
	if p.config.Temporal.Namespace != "" {
		temporalConfig.Namespace = p.config.Temporal.Namespace
	}
	temporal, err := dialTemporal(p, nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return worker.Apply(ctx, temporal, temporalConfig, p.log)
}

// runAuditVerify recomputes the whole hash chain of the audit log, and looks for the head that was kept outside the database. Rows
// that are not sealed yet are sealed first, unless the head is missing.
func runAuditVerify(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("audit-verify", flag.ContinueOnError)
	file := flags.String("head", p.config.Audit.Head, "file with the head of the log, as the worker of the flows keeps it")
	if err := p.prepare(flags, args); err != nil {
		return err
	}
	var kept exchange.AuditHead
	if *file != "" {
		var err error
		if kept, err = headFile(*file).Kept(); err != nil {
			return err
		}
	}
	db, err := store.Open(ctx, p.config.DatabaseURL, store.Options{Logger: p.log, AuditKeys: p.config.auditKeys()})
	if err != nil {
		return err
	}
	defer closing(p, db)
	if err := db.HasAuditHead(ctx, kept); err != nil {
		return err
	}
	sealed, sealErr := db.SealAudit(ctx)
	if err := errors.Join(sealErr, db.VerifyAuditSince(ctx, kept)); err != nil {
		return err
	}
	head, err := db.AuditHead(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "the audit log is unbroken (%d rows sealed now); its head is %d %s, by the key %s\n", sealed, head.N, head.Hash, head.Key)
	return err
}

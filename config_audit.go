package main

import (
	"kivuko/activities"
	"kivuko/exchange"
)

// AuditConfig is what holds the audit log from outside the database.
type AuditConfig struct {
	// `id:` and 64 hexadecimal digits, several for rotation. The first computes the chain of the audit log, all of them verify it. Keep
	// each one for ever. Nobody who writes to the database may have one.
	Keys Keyring `env:"KEYS" for:"flows audit-verify" need:"flows audit-verify" secret:"true"`
	// The file in which the worker of the flows keeps the newest link of that chain, and `audit-verify` looks for it. It must outlive
	// the process and be no part of the database's volume. If empty, the link is only logged.
	Head string `env:"HEAD" for:"flows audit-verify" production:"required"`
}

func (c Config) auditKeys() []exchange.AuditKey {
	var keys []exchange.AuditKey
	for _, k := range c.Audit.Keys {
		keys = append(keys, exchange.AuditKey{ID: k.ID, Secret: k.Key})
	}
	return keys
}

// auditHeads keeps the head of the audit log; nil where it is only logged.
func (c Config) auditHeads() activities.AuditHeads {
	if c.Audit.Head == "" {
		return nil
	}
	return headFile(c.Audit.Head)
}

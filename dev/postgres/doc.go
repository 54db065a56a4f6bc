// Package postgres runs a separate PostgreSQL server for development and tests:
// it finds or installs the server's programs, keeps one cluster in a directory of
// the project, and starts, restarts, crashes and stops it.
//
// The server listens on loopback with a generated password (SCRAM-SHA-256), and
// without a password on a Unix socket inside its own 0700 directory.
package postgres

// Package postgres runs a PostgreSQL server of our own for development and tests:
// it finds or installs the server's programs, keeps one cluster in a directory of
// the project, and starts, restarts, crashes and stops it.
//
// The server listens on loopback with a generated password (SCRAM-SHA-256) and on
// a Unix socket inside its own 0700 directory without one.
package postgres

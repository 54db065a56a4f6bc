// Package temporal runs the real Temporal server and its Web UI inside a process
// of ours, kept in PostgreSQL, for development and end-to-end tests.
//
// The namespace and the search attributes are not its business: `kivuko apply`
// makes those, here as anywhere.
package temporal

// Package temporal runs the real Temporal server and its Web UI inside our own
// process, with PostgreSQL, for development and end-to-end tests.
//
// `kivuko apply` makes the namespace and the search attributes, as in production.
package temporal

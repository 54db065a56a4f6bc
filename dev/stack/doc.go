// Package stack runs all of Kivuko on one machine without containers: database,
// Temporal, the networks, the mobile money sandbox, and the product's own
// processes, started in order and restarted when they die, until Down stops them.
package stack

// Package stack is the whole of Kivuko on one machine without containers: database,
// Temporal, the networks, the mobile money sandbox, and the product's own
// processes, started in order and kept alive until they are told to stop.
package stack

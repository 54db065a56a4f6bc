// Package devnode holds what the development nodes of all networks share: their command, the HTTP plumbing of
// their fault switches, the counters behind these, the clock that tests move, and the rhythm of blocks.
package devnode

//go:build !crash

package main

import "kivuko/worker"

// crashPoints leaves the parts alone. The build with the tag crash, which crash tests use, puts points
// around every side effect at which the process can kill itself.
func crashPoints(parts worker.Parts) worker.Parts { return parts }

// Package bench measures Kivuko against the floor that it stands on: the same Temporal server without
// Kivuko, plain SQL, and bare HTTP. Figures are ratios within one run, because only those mean something
// on another machine; the two sides take turns, so that a busy machine slows both.
//
// The whole local stack runs as `make run` starts it: real PostgreSQL with fsync, the Temporal server with
// 16 shards and one partition for each task queue, the product's own processes, the development TRON node
// and the mobile money sandbox. Three things differ. Blocks come every 20 ms and not every 3 s, so that
// waiting for finality does not hide the work. Payers answer at once. And the rates of the task queues and
// of the API, which protect the operator and the service, are lifted.
package bench

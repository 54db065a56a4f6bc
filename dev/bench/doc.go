// Package bench measures Kivuko against a floor: the same Temporal server without Kivuko, plain SQL, and
// bare HTTP. Figures are ratios within one run, because only those can be compared between machines; the
// two sides take turns, so that a busy machine slows both.
//
// The whole local stack runs as `make run` starts it: real PostgreSQL with fsync, the Temporal server with
// 16 shards and one partition for each task queue, the product's own processes, the development TRON node
// and the mobile money sandbox. Three things differ. Blocks come every 20 ms instead of every 3 s, so that
// waiting for finality does not hide the work. Payers answer at once. The rate limits of the task queues and
// of the API are lifted.
//
// Networks that no part measures do not run, and parts that need only the database run before anything else
// is started.
//
// The answers to sixteen clients at once are measured on a second stack with the blocks and the payers of `make run`.
//
// The floor of an on-ramp is a bare flow of the same shape: two local and four regular activities on as
// many queues, a start by update, a signal, a timer and a child, the last activity tried twice, payloads of
// about the same size under the same encryption, and no work in any activity. A second floor without child,
// update and separate queues shows the cost of the shape.
//
// The floor of a transfer up to broadcast is the driver of the same network preparing, signing with a key in
// memory and broadcasting, to the same development node, in turns. Ours also reads the approved row and the
// sealed keys, stores the signed bytes before it sends them and the node's answer afterwards: two commits that
// wait for the disk. The watch's reading of deposits, from the node into the ledger, is measured against the
// driver reading the same blocks without storing them.
//
// A sale of crypto has no floor of the same shape. Measured are the time to open one, its history events with and
// without its children, each against a goal, and the rate of parallel sales from the deposit on the chain to the crypto
// with the vendor. On the database alone, opening a sale is measured with a large escrow pool against a small one, and
// taking its crypto against opening it.
//
// Both the on-ramp and its floor wait for finality: each asks for a retry after 460 ms, which the server's timers, coarse
// below a second, extend to up to a second. The second floor sleeps the 460 ms within its activity. With few flows in
// flight, compare the latencies and the processor time rather than the rates.
package bench

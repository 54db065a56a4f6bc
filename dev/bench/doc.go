// Package bench measures Kivuko against the floor that it stands on: the same Temporal server without
// Kivuko, plain SQL, and bare HTTP. Figures are ratios within one run, because only those mean something
// on another machine; the two sides take turns, so that a busy machine slows both.
//
// The whole local stack runs as `make run` starts it: real PostgreSQL with fsync, the Temporal server with
// 16 shards and one partition for each task queue, the product's own processes, the development TRON node
// and the mobile money sandbox. Three things differ. Blocks come every 20 ms and not every 3 s, so that
// waiting for finality does not hide the work. Payers answer at once. And the rates of the task queues and
// of the API, which protect the operator and the service, are lifted.
//
// Networks that a part does not measure do not run, and parts that want the database alone run before anything
// else is up.
//
// The floor of an on-ramp is a bare flow of the same shape: two local and four regular activities on as
// many queues, a start by update, a signal, a timer and a child, the last activity tried twice, payloads of
// about the same size under the same encryption, and nothing done in any of them. A second floor without
// child, update and queues of its own shows what the shape costs.
//
// The floor of a transfer up to broadcast is the driver of the same network preparing, signing with a key in
// memory and broadcasting, to the same development node, in turns. Ours also reads the approved row and the
// sealed keys, stores the signed bytes before they leave and the node's answer after it: two commits that wait
// for the disk. Deposits are read by the watch, from the node into the ledger, against the driver reading the
// same blocks and keeping nothing.
//
// A sale of crypto has no floor of the same shape: what is measured is how long it takes to open, the events that it
// writes into histories by itself and with its children, against a goal for each, and how many go side by side from the
// deposit on the chain to the crypto with the vendor. Beside that, on the database alone, what opening one costs with a
// large escrow pool against a small one, and what taking its crypto costs against opening it.
//
// Both the on-ramp and its floor wait for finality: each asks to be tried again after 460 ms, which the server's
// timers, coarse below a second, make up to a second. The second floor sleeps the 460 ms within its activity. With few
// flows in flight the rates therefore say little; the latencies and the processor time do.
package bench

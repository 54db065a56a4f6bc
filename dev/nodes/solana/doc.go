// Package solana is a Solana development node in one process: the JSON-RPC and the
// websocket of Agave's RPC nodes, as far as a custody backend uses them, over a
// chain that executes real transactions with the token programs that the main
// network runs (package svm).
//
// # What is real
//
// Transactions are wire bytes with ed25519 signatures, of the legacy format or of
// version 0. They are checked for their block hash's age of at most 150 blocks or
// for a durable nonce, for having been executed before, and for their fee, and
// executed in the block of a slot. A slot may be skipped; block heights then differ
// from slots. A transaction is processed in the newest block, confirmed when
// ConfirmDepth blocks stand on it and finalized when FinalDepth do. Reads see the
// state of the commitment that they ask for, whose default is finalized, and
// preflights do too. Refusals have Agave's codes and texts. A transaction of version
// 0 may load accounts from address lookup tables, whose program is the real one; its
// accounts, their balances and what names them go by the message's keys, then the
// loaded ones that it may write, then the others.
//
// # What a caller must expect
//
// sendTransaction returns before the transaction is executed, and a transaction that
// is rejected afterwards is dropped silently, as on a cluster. After a change of
// forks, processed and even confirmed transactions can be missing and the block
// height can be lower; finalized blocks stay. A request for a skipped slot gets "not
// available" until a later one is final. Websocket messages can get lost: a client
// that reads too slowly is disconnected.
//
// # State
//
// An account has a version for each block that wrote it, kept until no read or
// change of forks can need it. With a data directory, every block with all effects
// of its transactions, and every change of forks, is appended to one file and read
// back at start (record.go), without executing anything again. Pending transactions
// are lost, as on a real node. All blocks are kept in memory; a day of empty ones
// takes some 20 MB in memory and in the file.
//
// # What is missing
//
// Votes, stake, leaders, shreds and the rest of consensus: only this node makes
// blocks, first come, first served. The encoding base64+zstd, blockSubscribe and
// transactions of version 1. A fault switch (Faults) puts the node behind, like a
// slow node of a provider's pool.
//
// # Tools
//
// `make conformance` drives a fresh node with @solana/web3.js, @solana/spl-token and
// @solana/kit (js/e2e.mjs), which npm takes into a temporary directory.
// The control endpoint (control_http.go) funds accounts, makes blocks, reorganises
// and turns the fault switches of Faults.
//
// The keys are public. The node listens on loopback only and must never hold
// anything of value.
package solana

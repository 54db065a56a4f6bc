// Package ethereum is an Ethereum development node in one process: go-ethereum's
// own node, whose blocks are ordered by a beacon of ours.
//
// # What is real
//
// The execution layer is go-ethereum itself: its pool, its virtual machine, its
// rules of replacement and of fees, its JSON-RPC over HTTP and WebSocket (one
// loopback port serves both). The beacon uses the engine API as a consensus client
// does. It says which block is safe and which is final; a final block is never
// undone. The rules are those of the main network up to and including Osaka.
//
// # Tokens
//
// USDT and USDC are written for this chain (contracts/) after the behaviour of the
// main network's: USDT returns nothing, has a fee switch, and checks its block list
// at the sender alone; USDC checks both ends and knows permit. They are stand-ins:
// what a transfer costs in gas differs by a few per cent.
//
// # Blocks
//
// A block is made each interval while transactions wait or have lately been mined,
// so that they become final, and seldom otherwise, so that an idle chain does not
// fill the disk. Block times are a second apart at least, as the protocol asks:
// many blocks made at once push the chain's clock ahead of the wall's.
//
// # State
//
// With a data directory the chain survives a killed process: the state is kept by
// the hash scheme without pruning, and each block is written through to the disk
// before the next one. Transactions that only wait are lost, as on a real node.
//
// # Trouble
//
// The control endpoint (control_http.go) delays and loses answers, refuses and
// forgets transactions, lets calls fail in their block, holds blocks back, raises
// the base fee, reorganises, and turns the tokens' own switches.
//
// The keys are public. The node listens on loopback only and must never hold
// anything of value.
package ethereum

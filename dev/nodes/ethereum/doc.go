// Package ethereum is an Ethereum development node in one process: go-ethereum's
// own node, with our own beacon that orders the blocks.
//
// # What is real
//
// The execution layer is go-ethereum itself: its pool, its virtual machine, its
// rules of replacement and of fees, its JSON-RPC over HTTP and WebSocket (one
// loopback port serves both). The beacon uses the engine API as a consensus client
// does. It sets the safe and the final block; a final block is never
// undone. The rules are those of the main network up to and including Osaka.
//
// # Tokens
//
// USDT and USDC are written for this chain (contracts/) after the behaviour of the
// main network's: USDT returns nothing, has a fee switch, and checks its block list
// only for the sender; USDC checks both ends and supports permit. They are
// substitutes: the gas of a transfer differs by a few per cent.
//
// # Accounts of several owners
//
// The contracts of Safe 1.4.1 (package safe) are the real ones, at the addresses of
// the main network. The factory that makes them is in the genesis block; they follow
// in a block of their own when the node is started with them.
//
// # Blocks
//
// A block is made each interval while transactions wait or have lately been mined,
// so that they become final, and rarely otherwise, so that an idle chain does not
// fill the disk. Block times are at least a second apart, as the protocol requires:
// many blocks made at once put the chain's clock ahead of the real one.
//
// # State
//
// With a data directory the chain survives a killed process: the state uses the hash
// scheme without pruning, and each block is written to the disk before the next one.
// Pending transactions are lost, as on a real node.
//
// # Faults
//
// The control endpoint (control_http.go) delays and loses responses, refuses and
// drops transactions, makes calls fail in their block, holds blocks back, raises
// the base fee, reorganises, and sets the tokens' own switches.
//
// The keys are public. The node listens on loopback only and must never hold
// anything of value.
package ethereum

// Package tron is a TRON development node in one process: gotron-sdk's Wallet
// and WalletSolidity gRPC services, the HTTP API that tronweb uses and TronGrid's
// lists of events, over a chain that checks transactions as java-tron does.
//
// # What is real
//
// Transactions are TRON's protobufs. The node recovers secp256k1 signers, weighs
// them under the account's permissions and their operations, checks the
// reference block and the expiration, refuses duplicates, and charges bandwidth,
// energy, activation, memo, multi-signature and permission-update fees at the
// main network's prices. Contracts run on go-ethereum's virtual machine, metered
// with the energy table of TRON's; fee_limit caps the total, staked energy
// included. 27 witnesses sign blocks in turn. A block is solid when 19 of them
// have confirmed it, which is 18 blocks behind the head. Refusals have
// java-tron's codes and texts, including its misspellings.
//
// # What a caller must expect
//
// As on java-tron, a full node's answers about accounts, contracts and single
// transactions include the pool. Only GetTransactionInfoById shows inclusion, and
// only the WalletSolidity service shows finality. A missing object is an empty
// message. A rebroadcast is checked in java-tron's order: a mined transaction
// whose expiration has passed gets "Transaction expired", not "Dup transaction.".
//
// # State
//
// The state is one map with an undo journal (state.go). A block keeps the values
// that it replaced until it is solid; reorganisations, reads of the solidified
// state and refused transactions use them. With a data directory, every block and
// reorganisation is appended to one file and replayed at start (blockfile.go).
// Pending transactions are lost, as on a real node. The file is written without
// fsync: it survives a crash of the process, and a crash of the machine costs at
// most the newest blocks.
//
// # What is missing
//
// Peers and voting, TRC-10, votes, the market, shielded transfers. CREATE inside
// a contract makes Ethereum's addresses, precompiles from 0x0a on are absent,
// and a callee's own energy allowance is not enforced. Resources recover
// linearly over 24 hours instead of java-tron's merged windows; staked TRX gives
// a fixed amount of energy; a contract's dynamic energy factor moves only when
// set: a node from the command line begins with the main network's for USDT, one
// in a program with none. Internal transactions are not recorded, as on a
// java-tron node with default settings. All blocks are kept in memory.
//
// # Tools
//
// contracts/ holds the Solidity sources of the genesis tokens and their compiled
// form; `make -C contracts verify` recompiles and compares. `make conformance`
// drives a fresh node with tronweb (js/e2e.mjs). Both take their npm packages
// into a temporary directory. The control endpoint (control_http.go) funds accounts,
// makes blocks, reorganises and turns the fault switches of Faults.
//
// The keys are public. The node listens on loopback only and must never hold
// anything of value.
package tron

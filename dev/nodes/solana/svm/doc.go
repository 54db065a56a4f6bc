// Package svm executes Solana transactions as a cluster's bank does: fees, rent,
// block hashes and durable nonces, the System and ComputeBudget programs, and, on
// an interpreter of their byte code, the token programs that clusters run.
//
// # What is real
//
// Transactions are decoded from their wire bytes and their signatures verified.
// Every instruction runs under the rules of the runtime: the rights to debit an
// account, change its data or assign it, privileges across program invocations,
// program-derived addresses, compute units, the limits of logs and of
// invocations. A failed transaction pays its fee and advances its nonce. Errors
// have the forms of Agave's RPC. All of this is compared with litesvm, which is
// Agave's own virtual machine, transaction by transaction (conformance_test.go).
//
// # What is missing
//
// Transactions of version 1 are refused. The only built-in
// programs are System and ComputeBudget: stake, vote, the loaders and the
// signature precompiles are missing, and a transaction that calls one is rejected
// with ProgramAccountNotFound. Programs can't be deployed. The sysvars are Clock,
// Rent, RecentBlockhashes and SlotHashes. Token-2022's confidential transfers need a system
// call that is missing. Byte code must be SBPF version 0.
package svm

// Package programs gives the development node the programs that Solana's
// clusters run: SPL Token (since May 2026 its rewrite "p-token"), Associated
// Token Account, Memo, Token-2022 and Address Lookup Table, as the byte code that
// was deployed.
//
// None of it is part of this repository. The byte code is taken from a pinned
// package of the npm registry that npm itself is set up to use, found by its
// hash, and kept in a cache directory of the user.
package programs

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/gagliardetto/solana-go"
)

// Program is one deployed program.
type Program struct {
	// Name is what people call it, in lower case: "token", "memo".
	Name string
	// Address is where clusters have it.
	Address solana.PublicKey
	// Upgradeable tells that the program was deployed so that it can be replaced.
	Upgradeable bool
	// ELF is its byte code, an SBPF v0 shared object.
	ELF []byte
}

// Set is the programs that a machine can run beside those it has built in. The
// empty set is valid: such a machine knows System and ComputeBudget alone.
type Set []Program

// pin says which byte code we mean.
type pin struct {
	name        string
	address     solana.PublicKey
	upgradeable bool
	size        int
	sha256      string
}

// pins are the programs inside litesvm 1.5.0, the mainnet versions of August 2026.
func pins() []pin {
	return []pin{
		{"token", solana.TokenProgramID, true, 100_312, "53e587eee80c786bcfba1450397d92179a0f01def776d19fb4ddf690d64431cc"},
		{"associated-token-account", solana.SPLAssociatedTokenAccountProgramID, false, 105_032, "6804554e69fd3a58caa191dc4a58f4c67223d30ca28ab8987f39fc18d2f7374d"},
		{"memo", solana.MemoProgramID, false, 2_304, "0c92063c6838d9ad8af50aaefea9a166b5bb41a2bfa2bc6327d7db320849bc78"},
		{"address-lookup-table", solana.AddressLookupTableProgramID, true, 170_144, "e264e1537c5ee1252aae1fa476c25000b641357bc6af4efab65f314160a99570"},
		{"token-2022", solana.Token2022ProgramID, true, 615_936, "495e9d7680dd555cb126a6a8e5464af5be9b01f02f2cd70634352722d22e3cad"},
	}
}

func (p pin) matches(code []byte) bool {
	sum := sha256.Sum256(code)
	return len(code) == p.size && hex.EncodeToString(sum[:]) == p.sha256
}

package svm

import (
	"github.com/gagliardetto/solana-go"
)

// Where the token programs keep what a token account holds. An account of
// Token-2022 with extensions is longer, and a byte after the common part tells
// what it is.
const (
	tokenAccountSize  = 165
	tokenOwnerAt      = 32
	tokenAmountAt     = 64
	tokenStateAt      = 108
	tokenKindAt       = 165
	tokenKindAccount  = 2
	tokenMultisigSize = 355
	mintSize          = 82
	mintDecimalsAt    = 44
)

// tokenBalances are the balances of those accounts that hold tokens. mintOf finds
// the account of a mint, for its decimals.
func (x *execution) tokenBalances(accounts []Account, mintOf func(solana.PublicKey) Account) []TokenBalance {
	var balances []TokenBalance
	for i, a := range accounts {
		if !isTokenAccount(a) {
			continue
		}
		b := TokenBalance{
			AccountIndex: i, Program: a.Owner,
			Mint:   solana.PublicKey(a.Data[:tokenOwnerAt]),
			Owner:  solana.PublicKey(a.Data[tokenOwnerAt:tokenAmountAt]),
			Amount: le.Uint64(a.Data[tokenAmountAt:]),
		}
		mint := mintOf(b.Mint)
		if mint.Owner != a.Owner || len(mint.Data) < mintSize {
			continue
		}
		b.Decimals = mint.Data[mintDecimalsAt]
		balances = append(balances, b)
	}
	return balances
}

func isTokenAccount(a Account) bool {
	if a.Owner != solana.TokenProgramID && a.Owner != solana.Token2022ProgramID {
		return false
	}
	if len(a.Data) < tokenAccountSize || len(a.Data) == tokenMultisigSize || a.Data[tokenStateAt] == 0 {
		return false
	}
	return len(a.Data) == tokenAccountSize || a.Owner == solana.Token2022ProgramID && a.Data[tokenKindAt] == tokenKindAccount
}

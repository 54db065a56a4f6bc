package solana

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// Addresses that every chain of this node has. The keys are public.
const (
	// GenesisAddress holds the SOL and the tokens that funding takes from. It may
	// mint and freeze both tokens.
	GenesisAddress = "GtgWQNXLHN8d8SNLrD8k3npix2VRAxp5E28g2Gc2T63b"
	// USDTAddress and USDCAddress are mints of SPL Token with 6 decimals.
	USDTAddress = "FzwkBBv7WdXgq67nCDKsBfF73WatDs13enT7qQYKXmLA"
	USDCAddress = "GoepPSa9iwhQkUzjebUkEzvvFM1HHLi5yF2fTN62JaJw"
	// FeeMintAddress is a mint of Token-2022 that keeps 1 % of each transfer.
	FeeMintAddress = "H1epHVCGQqrgi2sDH8U9oH3aiKKxnDGUDrbFAB8q69us"
	// MemoOwnerAddress has an associated account of the fee mint that takes
	// transfers with a memo alone.
	MemoOwnerAddress = "2vi3tHEjio7XBo1WLnWouhDaCsPWxrTTDQWRbF51fDLY"
)

const (
	tokenDecimals = 6
	// genesisLamports is 500 million SOL, about the main network's supply.
	genesisLamports = 500_000_000 * solana.LAMPORTS_PER_SOL
	// genesisUnits is a trillion of each token.
	genesisUnits = 1_000_000_000_000_000_000
	// The fee mint's fee: 100 basis points, without a limit.
	feeBasisPoints = 100
	// identityText names this genesis state. A change of it makes another chain.
	identityText = "kivuko solana development genesis 1"
)

// genesisTime dates the genesis block.
func genesisTime() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// GenesisHash identifies this node's chain. It is the same on every
// machine and for every data directory.
func GenesisHash() solana.Hash { return sha256.Sum256([]byte(identityText)) }

// developmentKey derives a key that is not secret.
func developmentKey(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte("kivuko solana development " + name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

// GenesisKey is the key of GenesisAddress.
func GenesisKey() solana.PrivateKey { return developmentKey("genesis") }

func mustKey(text string) solana.PublicKey { return solana.MustPublicKeyFromBase58(text) }

// Layouts of SPL Token and Token-2022 (solana-program/token, interface/src/state.rs;
// solana-program/token-2022, interface/src/extension).
const (
	mintBytes     = 82
	accountBytes  = 165
	multisigBytes = 355

	mintSupplyAt, mintDecimalsAt, mintInitializedAt, mintFreezeAt           = 36, 44, 45, 46
	accountOwnerAt, accountAmountAt, accountDelegateAt, accountStateAt      = 32, 64, 72, 108
	accountNativeAt, accountDelegatedAt, accountCloseAt, extensionsAt       = 109, 121, 129, 166
	typeMint, typeAccount                                              byte = 1, 2
	stateInitialized, stateFrozen                                      byte = 1, 2

	extensionTransferFeeConfig, extensionTransferFeeAmount = 1, 2
	extensionImmutableOwner, extensionMemoTransfer         = 7, 8
)

// genesisAccounts is the state of the genesis block beside the programs.
func genesisAccounts() map[solana.PublicKey]svm.Account {
	genesis := mustKey(GenesisAddress)
	out := map[solana.PublicKey]svm.Account{
		genesis:                   {Lamports: genesisLamports},
		mustKey(MemoOwnerAddress): {Lamports: solana.LAMPORTS_PER_SOL},
	}
	exempt := func(address, program solana.PublicKey, data []byte) {
		out[address] = svm.Account{Lamports: svm.MinimumBalance(len(data)), Data: data, Owner: program}
	}
	for _, text := range []string{USDTAddress, USDCAddress} {
		mint := mustKey(text)
		exempt(mint, solana.TokenProgramID, mintData(genesis, genesisUnits))
		exempt(associated(genesis, mint, solana.TokenProgramID), solana.TokenProgramID,
			tokenAccountData(mint, genesis, genesisUnits))
	}
	mint := mustKey(FeeMintAddress)
	exempt(mint, solana.Token2022ProgramID, feeMintData(genesis))
	exempt(associated(genesis, mint, solana.Token2022ProgramID), solana.Token2022ProgramID,
		extended(tokenAccountData(mint, genesis, genesisUnits), typeAccount,
			extension{extensionImmutableOwner, nil}, extension{extensionTransferFeeAmount, make([]byte, 8)}))
	memo := mustKey(MemoOwnerAddress)
	exempt(associated(memo, mint, solana.Token2022ProgramID), solana.Token2022ProgramID,
		extended(tokenAccountData(mint, memo, 0), typeAccount,
			extension{extensionImmutableOwner, nil}, extension{extensionTransferFeeAmount, make([]byte, 8)},
			extension{extensionMemoTransfer, []byte{1}}))
	for address, account := range out {
		account.RentEpoch = math.MaxUint64
		out[address] = account
	}
	return out
}

// associated is the address of the associated token account.
func associated(owner, mint, program solana.PublicKey) solana.PublicKey {
	address, _, err := solana.FindProgramAddress(
		[][]byte{owner[:], program[:], mint[:]}, solana.SPLAssociatedTokenAccountProgramID)
	if err != nil {
		panic(err) // one in 2^255 owners has none
	}
	return address
}

func mintData(authority solana.PublicKey, supply uint64) []byte {
	data := make([]byte, mintBytes)
	copy(data, someKey(authority))
	binary.LittleEndian.PutUint64(data[mintSupplyAt:], supply)
	data[mintDecimalsAt], data[mintInitializedAt] = tokenDecimals, 1
	copy(data[mintFreezeAt:], someKey(authority))
	return data
}

// someKey is a COption<Pubkey> that is there.
func someKey(key solana.PublicKey) []byte { return append([]byte{1, 0, 0, 0}, key[:]...) }

func tokenAccountData(mint, owner solana.PublicKey, units uint64) []byte {
	data := make([]byte, accountBytes)
	copy(data, mint[:])
	copy(data[accountOwnerAt:], owner[:])
	binary.LittleEndian.PutUint64(data[accountAmountAt:], units)
	data[accountStateAt] = stateInitialized
	return data
}

// extension is one entry of the list that follows a mint or account of Token-2022.
type extension struct {
	kind uint16
	data []byte
}

// extended adds extensions to the base of a mint or account.
func extended(base []byte, kind byte, list ...extension) []byte {
	data := append(append([]byte{}, base...), make([]byte, accountBytes-len(base))...)
	data = append(data, kind)
	for _, e := range list {
		data = binary.LittleEndian.AppendUint16(data, e.kind)
		data = binary.LittleEndian.AppendUint16(data, uint16(len(e.data)))
		data = append(data, e.data...)
	}
	return data
}

// feeMintData is a mint with TransferFeeConfig: two authorities, what is withheld,
// and the fee of before and of now, each with its first epoch, limit and points.
func feeMintData(authority solana.PublicKey) []byte {
	config := append(append([]byte{}, authority[:]...), authority[:]...)
	config = binary.LittleEndian.AppendUint64(config, 0)
	for range 2 {
		config = binary.LittleEndian.AppendUint64(config, 0)
		config = binary.LittleEndian.AppendUint64(config, math.MaxUint64)
		config = binary.LittleEndian.AppendUint16(config, feeBasisPoints)
	}
	return extended(mintData(authority, genesisUnits), typeMint, extension{extensionTransferFeeConfig, config})
}

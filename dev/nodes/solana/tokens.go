package solana

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// tokenAccount is an account of SPL Token or Token-2022.
type tokenAccount struct {
	program, mint, owner solana.PublicKey
	amount, delegated    uint64
	delegate, close      *solana.PublicKey
	frozen, native       bool
	reserve              uint64 // lamports that a native account can't give away
	extensions           []extension
}

// tokenMint is a mint of either program.
type tokenMint struct {
	program           solana.PublicKey
	authority, freeze *solana.PublicKey
	supply            uint64
	decimals          uint8
	extensions        []extension
}

func isTokenProgram(program solana.PublicKey) bool {
	return program == solana.TokenProgramID || program == solana.Token2022ProgramID
}

// layout reports whether data is of the base size, or of Token-2022's extended form
// of a kind.
func layout(a svm.Account, base int, kind byte) bool {
	if !isTokenProgram(a.Owner) {
		return false
	}
	size := len(a.Data)
	return size == base || a.Owner == solana.Token2022ProgramID && size > accountBytes && size != multisigBytes && a.Data[accountBytes] == kind
}

func readTokenAccount(a svm.Account) (tokenAccount, bool) {
	d := a.Data
	if !layout(a, accountBytes, typeAccount) || d[accountStateAt] == 0 {
		return tokenAccount{}, false
	}
	t := tokenAccount{
		program: a.Owner, mint: solana.PublicKey(d[:32]), owner: solana.PublicKey(d[accountOwnerAt:accountAmountAt]),
		amount: binary.LittleEndian.Uint64(d[accountAmountAt:]), delegated: binary.LittleEndian.Uint64(d[accountDelegatedAt:]),
		delegate: readOptionKey(d[accountDelegateAt:]), close: readOptionKey(d[accountCloseAt:]),
		frozen: d[accountStateAt] == stateFrozen, native: binary.LittleEndian.Uint32(d[accountNativeAt:]) == 1,
		extensions: readExtensions(d),
	}
	if t.native {
		t.reserve = binary.LittleEndian.Uint64(d[accountNativeAt+4:])
	}
	return t, true
}

func readMint(a svm.Account) (tokenMint, bool) {
	d := a.Data
	if !layout(a, mintBytes, typeMint) || d[mintInitializedAt] == 0 {
		return tokenMint{}, false
	}
	return tokenMint{
		program: a.Owner, authority: readOptionKey(d), freeze: readOptionKey(d[mintFreezeAt:]),
		supply: binary.LittleEndian.Uint64(d[mintSupplyAt:]), decimals: d[mintDecimalsAt], extensions: readExtensions(d),
	}, true
}

// readOptionKey reads a COption<Pubkey>.
func readOptionKey(d []byte) *solana.PublicKey {
	if binary.LittleEndian.Uint32(d) == 0 {
		return nil
	}
	key := solana.PublicKey(d[4:36])
	return &key
}

func readExtensions(d []byte) (out []extension) {
	for at := extensionsAt; at+4 <= len(d); {
		kind, size := binary.LittleEndian.Uint16(d[at:]), int(binary.LittleEndian.Uint16(d[at+2:]))
		at += 4
		if kind == 0 || at+size > len(d) {
			break
		}
		out = append(out, extension{kind, d[at : at+size]})
		at += size
	}
	return out
}

// describeExtension is the jsonParsed form of those extensions that this node's
// own accounts have.
func describeExtension(e extension) object {
	u64 := binary.LittleEndian.Uint64
	switch {
	case e.kind == extensionTransferFeeConfig && len(e.data) == 108:
		fee := func(d []byte) object {
			return object{"epoch": u64(d), "maximumFee": u64(d[8:]), "transferFeeBasisPoints": binary.LittleEndian.Uint16(d[16:])}
		}
		return object{"extension": "transferFeeConfig", "state": object{
			"transferFeeConfigAuthority": solana.PublicKey(e.data[:32]), "withdrawWithheldAuthority": solana.PublicKey(e.data[32:64]),
			"withheldAmount": u64(e.data[64:]), "olderTransferFee": fee(e.data[72:]), "newerTransferFee": fee(e.data[90:]),
		}}
	case e.kind == extensionTransferFeeAmount && len(e.data) == 8:
		return object{"extension": "transferFeeAmount", "state": object{"withheldAmount": u64(e.data)}}
	case e.kind == extensionImmutableOwner:
		return object{"extension": "immutableOwner"}
	case e.kind == extensionMemoTransfer && len(e.data) == 1:
		return object{"extension": "memoTransfer", "state": object{"requireIncomingTransferMemos": e.data[0] == 1}}
	}
	return object{"extension": "unparseableExtension"}
}

func describeExtensions(list []extension) []object {
	out := []object{}
	for _, e := range list {
		out = append(out, describeExtension(e))
	}
	return out
}

// units writes an amount as the RPC does: as a text, as a number for show, and as
// a decimal without trailing zeros.
func units(amount uint64, decimals uint8) object {
	text := strconv.FormatUint(amount, 10)
	decimal := text
	if n := int(decimals); n > 0 {
		decimal = strings.Repeat("0", max(0, n+1-len(text))) + text
		decimal = decimal[:len(decimal)-n] + "." + decimal[len(decimal)-n:]
		decimal = strings.TrimRight(strings.TrimRight(decimal, "0"), ".")
	}
	return object{
		"amount": text, "decimals": decimals, "uiAmountString": decimal,
		"uiAmount": float64(amount) / math.Pow10(int(decimals)),
	}
}

// tokenBalances are those of a transaction. As with Agave, whose store does not
// tell a zero from nothing, uiAmount is null for 0.
func tokenBalances(list []svm.TokenBalance) []object {
	out := []object{}
	for _, b := range list {
		amount := units(b.Amount, b.Decimals)
		if b.Amount == 0 {
			amount["uiAmount"] = nil
		}
		out = append(out, object{
			"accountIndex": b.AccountIndex, "mint": b.Mint, "owner": b.Owner, "programId": b.Program, "uiTokenAmount": amount,
		})
	}
	return out
}

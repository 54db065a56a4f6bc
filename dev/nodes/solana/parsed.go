package solana

import (
	"strings"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"
)

// parser reads one instruction for jsonParsed.
type parser struct {
	keys []solana.PublicKey
	compiled
}

// parseInstruction is the jsonParsed form of an instruction. Those that this node
// does not read, and those with data that is too short, are shown undecoded.
func parseInstruction(keys []solana.PublicKey, c compiled) object {
	p := parser{keys, c}
	program := keys[c.program]
	out := object{"programId": program, "stackHeight": c.height}
	var name, kind string
	var info object
	switch {
	case isMemoProgram(program):
		out["program"], out["parsed"] = "spl-memo", string(c.data)
		return out
	case program == solana.SystemProgramID:
		name = "system"
		kind, info = p.system()
	case program == solana.SPLAssociatedTokenAccountProgramID:
		name = "spl-associated-token-account"
		kind, info = p.associated()
	case program == solana.AddressLookupTableProgramID:
		name = lookupTableName
		kind, info = p.lookupTable()
	case isTokenProgram(program):
		name = tokenProgramName(program)
		kind, info = p.token()
	}
	if kind == "" {
		accounts := []solana.PublicKey{}
		for _, place := range c.accounts {
			accounts = append(accounts, keys[place])
		}
		out["accounts"], out["data"] = accounts, base58.Encode(c.data)
		return out
	}
	out["program"], out["parsed"] = name, object{"type": kind, "info": info}
	return out
}

// key is the account at a place of the instruction; nil where it has none.
func (p parser) key(i int) any {
	if i >= len(p.accounts) {
		return nil
	}
	return p.keys[p.accounts[i]]
}

// named gives names to the first accounts of the instruction.
func (p parser) named(names ...string) object {
	out := object{}
	for i, name := range names {
		out[name] = p.key(i)
	}
	return out
}

func (p parser) public(at int) solana.PublicKey { return solana.PublicKey(p.data[at : at+32]) }

// system reads the System program's instructions (solana-system-interface).
func (p parser) system() (string, object) {
	if len(p.data) < 4 {
		return "", nil
	}
	kind, size := le.Uint32(p.data), len(p.data)
	switch {
	case kind == 0 && size >= 52:
		info := p.named("source", "newAccount")
		info["lamports"], info["space"], info["owner"] = le.Uint64(p.data[4:]), le.Uint64(p.data[12:]), p.public(20)
		return "createAccount", info
	case kind == 1 && size >= 36:
		info := p.named("account")
		info["owner"] = p.public(4)
		return "assign", info
	case kind == 2 && size >= 12:
		info := p.named("source", "destination")
		info["lamports"] = le.Uint64(p.data[4:])
		return "transfer", info
	case kind == 4:
		return "advanceNonce", p.named("nonceAccount", "recentBlockhashesSysvar", "nonceAuthority")
	case kind == 5 && size >= 12:
		info := p.named("nonceAccount", "destination", "recentBlockhashesSysvar", "rentSysvar", "nonceAuthority")
		info["lamports"] = le.Uint64(p.data[4:])
		return "withdrawFromNonce", info
	case kind == 6 && size >= 36:
		info := p.named("nonceAccount", "recentBlockhashesSysvar", "rentSysvar")
		info["nonceAuthority"] = p.public(4)
		return "initializeNonce", info
	case kind == 7 && size >= 36:
		info := p.named("nonceAccount", "nonceAuthority")
		info["newAuthorized"] = p.public(4)
		return "authorizeNonce", info
	case kind == 8 && size >= 12:
		info := p.named("account")
		info["space"] = le.Uint64(p.data[4:])
		return "allocate", info
	}
	return "", nil
}

// lookupTableName is how jsonParsed calls the program of address lookup tables.
const lookupTableName = "address-lookup-table"

// lookupTable reads the instructions on address lookup tables (solana-address-lookup-table-interface).
func (p parser) lookupTable() (string, object) {
	if len(p.data) < 4 {
		return "", nil
	}
	const extendAt = 4 + 8
	info, size := p.named("lookupTableAccount", "lookupTableAuthority"), len(p.data)
	switch kind := le.Uint32(p.data); {
	case kind == 0 && size >= 13:
		info["payerAccount"], info["systemProgram"] = p.key(2), p.key(3)
		info["recentSlot"], info["bumpSeed"] = le.Uint64(p.data[4:]), p.data[12]
		return "createLookupTable", info
	case kind == 1:
		return "freezeLookupTable", info
	case kind == 2 && size >= extendAt && uint64(size-extendAt)/solana.PublicKeyLength >= le.Uint64(p.data[4:]):
		added := []solana.PublicKey{}
		for i := range int(le.Uint64(p.data[4:])) {
			added = append(added, p.public(extendAt+solana.PublicKeyLength*i))
		}
		if info["newAddresses"] = added; len(p.accounts) >= 4 {
			info["payerAccount"], info["systemProgram"] = p.key(2), p.key(3)
		}
		return "extendLookupTable", info
	case kind == 3:
		return "deactivateLookupTable", info
	case kind == 4:
		info["recipient"] = p.key(2)
		return "closeLookupTable", info
	}
	return "", nil
}

// associated reads the associated token account program's instructions.
func (p parser) associated() (string, object) {
	info := p.named("source", "account", "wallet", "mint", "systemProgram", "tokenProgram")
	switch {
	case len(p.data) == 0 || p.data[0] == 0:
		return "create", info
	case p.data[0] == associatedIdempotent:
		return "createIdempotent", info
	}
	return "", nil
}

// signedBy adds who authorised an instruction: one key, or a multisig account and
// those of its keys that signed.
func (p parser) signedBy(info object, name string, at int) object {
	if len(p.accounts) <= at+1 {
		info[name] = p.key(at)
		return info
	}
	info["multisig"+strings.ToUpper(name[:1])+name[1:]] = p.key(at)
	signers := []any{}
	for i := at + 1; i < len(p.accounts); i++ {
		signers = append(signers, p.key(i))
	}
	info["signers"] = signers
	return info
}

// token reads the instructions of SPL Token and Token-2022 that move or open
// things (solana-program/token, interface/src/instruction.rs).
func (p parser) token() (string, object) {
	if len(p.data) == 0 {
		return "", nil
	}
	if kind, info := p.tokenAmounts(); kind != "" {
		return kind, info
	}
	size := len(p.data)
	switch kind := p.data[0]; {
	case kind == 5:
		return "revoke", p.signedBy(p.named("source"), "owner", 1)
	case kind == 9:
		return "closeAccount", p.signedBy(p.named("account", "destination"), "owner", 2)
	case kind == tokenFreeze:
		return "freezeAccount", p.signedBy(p.named("account", "mint"), "freezeAuthority", 2)
	case kind == tokenThaw:
		return "thawAccount", p.signedBy(p.named("account", "mint"), "freezeAuthority", 2)
	case kind == 17:
		return "syncNative", p.named("account")
	case kind == 18 && size >= 33:
		info := p.named("account", "mint")
		info["owner"] = p.public(1)
		return "initializeAccount3", info
	case kind == tokenInitializeMint2 && size >= 34:
		info := p.named("mint")
		info["decimals"], info["mintAuthority"] = p.data[1], p.public(2)
		return "initializeMint2", info
	case kind == 21:
		info := p.named("mint")
		info["extensionTypes"] = []string{"immutableOwner"}
		return "getAccountDataSize", info
	case kind == 22:
		return "initializeImmutableOwner", p.named("account")
	}
	return "", nil
}

// tokenAmounts reads those that carry an amount, and with it the decimals where
// they are checked.
func (p parser) tokenAmounts() (string, object) {
	shapes := map[byte]struct {
		kind      string
		names     []string
		authority string
		checked   bool
	}{
		3:                    {"transfer", []string{"source", "destination"}, "authority", false},
		4:                    {"approve", []string{"source", "delegate"}, "owner", false},
		tokenMintTo:          {"mintTo", []string{"mint", "account"}, "mintAuthority", false},
		8:                    {"burn", []string{"account", "mint"}, "authority", false},
		tokenTransferChecked: {"transferChecked", []string{"source", "mint", "destination"}, "authority", true},
		13:                   {"approveChecked", []string{"source", "mint", "delegate"}, "owner", true},
		14:                   {"mintToChecked", []string{"mint", "account"}, "mintAuthority", true},
		15:                   {"burnChecked", []string{"account", "mint"}, "authority", true},
	}
	shape, ok := shapes[p.data[0]]
	const amountEnd = 9
	if !ok || len(p.data) < amountEnd || shape.checked && len(p.data) == amountEnd {
		return "", nil
	}
	info := p.signedBy(p.named(shape.names...), shape.authority, len(shape.names))
	amount := le.Uint64(p.data[1:])
	if shape.checked {
		info["tokenAmount"] = units(amount, p.data[amountEnd])
	} else {
		info["amount"] = units(amount, 0)["amount"]
	}
	return shape.kind, info
}

package svm

import (
	"bytes"
	"fmt"

	"github.com/gagliardetto/solana-go"
)

func (d *draw) nonceStep(payer solana.PublicKey) []solana.Instruction {
	if len(d.nonces) == 0 || d.one(3) {
		key := d.fresh()
		d.nonces = append(d.nonces, key)
		list := nonceOpen(payer, key, d.person())
		if d.one(2) {
			list = append(list, pay(payer, key, 1000))
		}
		return list
	}
	key, authority := pick(d, d.nonces...), d.person()
	if a := d.accounts[key]; isNonce(a) && !d.one(6) {
		authority = nonceAuthority(a.Data)
	}
	switch d.rnd.IntN(6) {
	case 0:
		return []solana.Instruction{nonceAdvance(key, authority)}
	case 5:
		return []solana.Instruction{system(pack(initializeNonceAccount, d.person()), writes(key),
			read(solana.SysVarRecentBlockHashesPubkey), read(solana.SysVarRentPubkey))}
	case 1:
		return []solana.Instruction{system(pack(authorizeNonceAccount, d.person()), writes(key), signs(authority))}
	case 2:
		lamports := pick(d, MinimumBalance(nonceSize), 500, 1000, MinimumBalance(nonceSize)+1000, d.accounts[key].Lamports, d.rnd.Uint64())
		return []solana.Instruction{system(pack(withdrawNonceAccount, lamports), writes(key), writes(d.person()),
			read(solana.SysVarRecentBlockHashesPubkey), read(solana.SysVarRentPubkey), signs(authority))}
	case 3:
		return []solana.Instruction{system(pack(upgradeNonceAccount), writes(key))}
	default:
		return []solana.Instruction{nonceAdvance(key, authority), nonceAdvance(key, authority)}
	}
}

func (d *draw) budgetStep(solana.PublicKey) []solana.Instruction {
	b := func(kind int, value any) solana.Instruction {
		return instruction(computeBudgetProgram, pack(byte(kind), value))
	}
	switch d.rnd.IntN(8) {
	case 0:
		return []solana.Instruction{b(setComputeUnitLimit, d.rnd.IntN(30_000))}
	case 1:
		return []solana.Instruction{b(setComputeUnitPrice, d.rnd.Uint64N(5_000_000))}
	case 2:
		return []solana.Instruction{instruction(computeBudgetProgram, pick(d, []byte{9}, nil, []byte{2, 1}, []byte{3, 1, 2, 3, 4}))}
	case 3:
		return []solana.Instruction{b(requestHeapFrame, d.rnd.IntN(70)*1024)}
	case 4:
		// litesvm leaves out the byte code of programs that can be upgraded, so that
		// limits near what a transaction loads can't be compared.
		return []solana.Instruction{b(setLoadedAccountsDataSizeLimit, pick(d, 0, d.rnd.IntN(140), 2_000_000+d.rnd.IntN(2_000_000), 80<<20))}
	default:
		return []solana.Instruction{b(setComputeUnitLimit, d.rnd.IntN(300_000)), b(setComputeUnitPrice, pick(d, d.rnd.Uint64N(5_000_000), d.rnd.Uint64()))}
	}
}

func (d *draw) garbage(solana.PublicKey) []solana.Instruction {
	data := make([]byte, d.rnd.IntN(40))
	for i := range data {
		data[i] = byte(d.rnd.Uint32())
	}
	if len(data) > 0 {
		data[0] = byte(d.rnd.IntN(50))
	}
	var accounts []*solana.AccountMeta
	for range d.rnd.IntN(6) {
		accounts = append(accounts, pick(d, writes(d.holder()), writes(d.mint()), signs(d.person()), read(d.person())))
	}
	program := pick(d, solana.TokenProgramID, solana.Token2022ProgramID, solana.SPLAssociatedTokenAccountProgramID,
		solana.SystemProgramID, solana.MemoProgramID, d.person())
	return []solana.Instruction{instruction(program, data, accounts...)}
}

func (d *draw) lamportStep(payer solana.PublicKey) []solana.Instruction {
	switch d.rnd.IntN(6) {
	case 0:
		return []solana.Instruction{pay(payer, d.fresh(), d.rnd.Uint64N(2_000_000))}
	case 1:
		return []solana.Instruction{pay(payer, d.holder(), d.amount())}
	case 2: // not signed, or not to be written
		to := pick(d, read(d.person()), writes(d.fresh()))
		from := pick(d, writes(d.person()), signs(d.person()))
		return []solana.Instruction{system(pack(transfer, d.amount()), from, to)}
	case 3:
		return []solana.Instruction{pay(payer, pick(d, solana.TokenProgramID, solana.SysVarRentPubkey, solana.MemoProgramID, incinerator), d.amount())}
	default:
		return []solana.Instruction{pay(payer, d.person(), d.amount()*1000)}
	}
}

func (d *draw) systemStep(payer solana.PublicKey) []solana.Instruction {
	key, owner := d.fresh(), d.person()
	space := pick(d, uint64(d.rnd.IntN(100)), 0, maxAccountData, maxAccountData+1, d.rnd.Uint64())
	switch d.rnd.IntN(6) {
	case 0:
		return []solana.Instruction{open(payer, d.person(), owner, 0)}
	case 1:
		return []solana.Instruction{system(pack(createAccount, MinimumBalance(int(space%1000)), space, owner), signsWrite(payer), signsWrite(key))}
	case 2:
		if space = d.rnd.Uint64N(100); d.one(3) {
			d.nonces = append(d.nonces, key) // which it isn't quite
			return []solana.Instruction{pay(payer, key, 2_000_000), system(pack(allocate, pick(d, space, nonceSize)), signsWrite(key))}
		}
		return []solana.Instruction{system(pack(allocate, space), pick(d, signsWrite(key), signs(key), writes(key)))}
	case 3:
		return []solana.Instruction{pay(payer, key, MinimumBalance(0)), system(pack(assign, owner), pick(d, signsWrite(key), signs(key), writes(key)))}
	case 4:
		return []solana.Instruction{
			system(pack(allocate, uint64(maxAccountData)), signsWrite(key)),
			system(pack(allocate, uint64(maxAccountData)), signsWrite(d.fresh())),
			system(pack(allocate, space), signsWrite(d.fresh())),
		}
	default:
		return []solana.Instruction{system(pack(assign, owner), signsWrite(d.person()))}
	}
}

// seededStep uses addresses that are derived with seeds.
func (d *draw) seededStep(payer solana.PublicKey) []solana.Instruction {
	marked := solana.PublicKey(pack(make([]byte, 11), programDerivedMarker))
	base, owner := d.person(), pick(d, solana.SystemProgramID, solana.SystemProgramID, solana.SystemProgramID, d.person(), marked)
	seed := pick(d, "vault", "vault", fmt.Sprint(d.rnd.IntN(40)), string(bytes.Repeat([]byte("s"), 33)), "no \xff text")
	address, err := withSeed(base, seed, owner)
	if err != nil || d.one(10) {
		address = d.fresh()
	}
	text := pack(uint64(len(seed)), seed)
	who := pick(d, signs(base), signs(base), signs(base), read(base))
	space := d.rnd.Uint64N(64)
	switch d.rnd.IntN(5) {
	case 0:
		return []solana.Instruction{system(pack(createAccountWithSeed, base, text, MinimumBalance(int(space)), space, owner),
			signsWrite(payer), writes(address), who)}
	case 1:
		return []solana.Instruction{system(pack(allocateWithSeed, base, text, space, owner), writes(address), who)}
	case 2:
		return []solana.Instruction{system(pack(assignWithSeed, base, text, owner), writes(address), who)}
	case 3:
		return []solana.Instruction{pay(payer, address, 2_000_000)}
	default:
		return []solana.Instruction{system(pack(transferWithSeed, d.amount(), text, owner), writes(address), who, writes(d.person()))}
	}
}

// prefundedStep opens accounts that may have lamports already.
func (d *draw) prefundedStep(payer solana.PublicKey) []solana.Instruction {
	key, lamports := d.fresh(), pick(d, 0, MinimumBalance(9), d.rnd.Uint64N(3_000_000))
	accounts := []*solana.AccountMeta{pick(d, signsWrite(key), signsWrite(key), signs(key), writes(d.person())), pick(d, signsWrite(payer), writes(d.person()))}
	list := []solana.Instruction{system(pack(createPrefunded, lamports, d.rnd.Uint64N(10), d.person()), accounts[:1+d.rnd.IntN(2)]...)}
	if d.one(2) {
		list = append([]solana.Instruction{pay(payer, key, MinimumBalance(9))}, list...)
	}
	return list
}

// shortStep leaves out accounts that an instruction of System's needs.
func (d *draw) shortStep(payer solana.PublicKey) []solana.Instruction {
	steps := []func(solana.PublicKey) []solana.Instruction{d.nonceStep, d.lamportStep, d.systemStep, d.seededStep, d.prefundedStep}
	list := pick(d, steps...)(payer)
	for i, in := range list {
		data, err := in.Data()
		if err != nil || in.ProgramID() != solana.SystemProgramID {
			continue
		}
		accounts := in.Accounts()
		list[i] = instruction(in.ProgramID(), data, accounts[:d.rnd.IntN(len(accounts)+1)]...)
	}
	return list
}

package svm

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/gagliardetto/solana-go"
)

// draw makes random transactions out of what the chain holds: mostly right, often
// wrong in one place.
type draw struct {
	*pair
	rnd *rand.Rand

	people, mints, holders, multisigs, nonces []solana.PublicKey
	program                                   solana.PublicKey // the token program of this step
	names                                     int
}

func newDraw(p *pair, seed uint64) *draw {
	d := &draw{pair: p, rnd: rand.New(rand.NewPCG(seed, 1)), program: solana.TokenProgramID}
	for i := range 6 {
		d.people = append(d.people, p.payer(fmt.Sprintf("person %d of %d", i, seed)))
	}
	d.names = int(seed) << 32
	return d
}

func (d *draw) fresh() solana.PublicKey {
	d.names++
	return d.key(fmt.Sprint("fresh ", d.names))
}

func (d *draw) one(in int) bool { return d.rnd.IntN(in) == 0 }

func pick[T any](d *draw, list ...T) T { return list[d.rnd.IntN(len(list))] }

func (d *draw) person() solana.PublicKey { return pick(d, d.people...) }

func (d *draw) mint() solana.PublicKey {
	if len(d.mints) == 0 || d.one(25) {
		return d.person()
	}
	return pick(d, d.mints...)
}

func (d *draw) holder() solana.PublicKey {
	if len(d.holders) == 0 || d.one(20) {
		return d.person()
	}
	return pick(d, d.holders...)
}

func (d *draw) amount() uint64 {
	switch d.rnd.IntN(10) {
	case 0:
		return 0
	case 1:
		return d.rnd.Uint64()
	case 2:
		return d.rnd.Uint64N(3_000_000)
	}
	return d.rnd.Uint64N(1000)
}

// dataOf is an account's data if it is a token program's of a size.
func (d *draw) dataOf(k solana.PublicKey, size int) []byte {
	a := d.accounts[k]
	if (a.Owner != solana.TokenProgramID && a.Owner != solana.Token2022ProgramID) || len(a.Data) < size {
		return nil
	}
	return a.Data
}

// programOf is the token program that owns an account, mostly.
func (d *draw) programOf(k solana.PublicKey) solana.PublicKey {
	if owner := d.accounts[k].Owner; owner == solana.Token2022ProgramID || owner == solana.TokenProgramID {
		if !d.one(40) {
			return owner
		}
	}
	return pick(d, solana.TokenProgramID, solana.TokenProgramID, solana.Token2022ProgramID)
}

// authority gives an authority and its signers: mostly the right ones.
func (d *draw) authority(of solana.PublicKey) []*solana.AccountMeta {
	if d.one(12) {
		of = d.person()
	}
	if data := d.dataOf(of, tokenMultisigSize); len(data) == tokenMultisigSize {
		metas := []*solana.AccountMeta{read(of)}
		for i := range int(data[1]) {
			member := solana.PublicKey(data[3+32*i : 35+32*i])
			switch d.rnd.IntN(6) {
			case 0:
			case 1:
				metas = append(metas, read(member))
			case 2:
				metas = append(metas, signs(member), signs(member))
			default:
				metas = append(metas, signs(member))
			}
		}
		return metas
	}
	if _, ours := d.keys[of]; !ours || d.one(15) {
		return []*solana.AccountMeta{read(of)}
	}
	return []*solana.AccountMeta{signs(of)}
}

func (d *draw) ownerOf(holder solana.PublicKey) solana.PublicKey {
	data := d.dataOf(holder, tokenAccountSize)
	if data == nil {
		return d.person()
	}
	if data[72] == 1 && d.one(3) { // a delegate
		return solana.PublicKey(data[76:108])
	}
	return solana.PublicKey(data[32:64])
}

func (d *draw) authorityOf(mint solana.PublicKey, freeze bool) solana.PublicKey {
	data := d.dataOf(mint, mintSize)
	switch {
	case data == nil:
		return d.person()
	case freeze:
		return solana.PublicKey(data[50:82])
	}
	return solana.PublicKey(data[4:36])
}

// match finds the mint of a holder, another holder of it and its decimals, mostly.
func (d *draw) match(holder solana.PublicKey) (mint, other solana.PublicKey, decimals byte) {
	mint, other, decimals = d.mint(), d.holder(), 6
	if data := d.dataOf(holder, tokenAccountSize); data != nil && !d.one(10) {
		mint = solana.PublicKey(data[:32])
		for range 8 {
			k := d.holder()
			if o := d.dataOf(k, tokenAccountSize); o != nil && solana.PublicKey(o[:32]) == mint {
				other = k
				break
			}
		}
	}
	if data := d.dataOf(mint, mintSize); data != nil && !d.one(15) {
		decimals = data[mintDecimalsAt]
	}
	return mint, other, decimals
}

// token is an instruction of a token program on accounts with an authority.
func (d *draw) token(data []byte, authority solana.PublicKey, accounts ...*solana.AccountMeta) []solana.Instruction {
	return []solana.Instruction{instruction(d.program, data, append(accounts, d.authority(authority)...)...)}
}

// step draws what one transaction may do.
func (d *draw) step(payer solana.PublicKey) (string, []solana.Instruction) {
	d.program = solana.TokenProgramID
	kinds := []struct {
		weight int
		name   string
		draw   func(payer solana.PublicKey) []solana.Instruction
	}{
		{2, "mint", d.newMint},
		{3, "associated account", d.newAssociated},
		{1, "plain account", d.newHolder},
		{3, "mint to", d.mintTo},
		{4, "transfer checked", d.transferChecked},
		{5, "one holder", d.holderStep},
		{1, "freeze", d.freeze},
		{1, "set authority", d.setAuthority},
		{1, "multisig", d.newMultisig},
		{1, "conversions", d.conversion},
		{1, "memo", d.memo},
		{1, "nonce", d.nonceStep},
		{2, "budget", d.budgetStep},
		{1, "garbage", d.garbage},
		{2, "lamports", d.lamportStep},
		{2, "system", d.systemStep},
		{1, "seeded", d.seededStep},
		{1, "prefunded", d.prefundedStep},
		{1, "short", d.shortStep},
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := d.rnd.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k.name, k.draw(payer)
		}
	}
	panic("unreachable: the weights add up")
}

func (d *draw) newMint(payer solana.PublicKey) []solana.Instruction {
	mint := d.fresh()
	d.program = pick(d, solana.TokenProgramID, solana.TokenProgramID, solana.TokenProgramID, solana.Token2022ProgramID)
	size, lamports := mintSize, MinimumBalance(mintSize)
	switch d.rnd.IntN(8) {
	case 0:
		lamports--
	case 1:
		size++
	}
	initialize := pack(byte(20), byte(d.rnd.IntN(10)), d.person(), byte(0))
	if d.one(2) {
		initialize = pack(initialize[:len(initialize)-1], byte(1), d.person())
	}
	list := []solana.Instruction{
		system(pack(createAccount, lamports, uint64(size), d.program), signsWrite(payer), signsWrite(mint)),
		instruction(d.program, initialize, writes(mint)),
	}
	if d.one(6) { // the older form, with the Rent sysvar
		list[1] = instruction(d.program, pack(byte(0), initialize[1:]), writes(mint), read(solana.SysVarRentPubkey))
	}
	if d.program == solana.Token2022ProgramID && d.one(3) { // with a fee on transfers
		size = 165 + 1 + 4 + 108
		fee := pack(byte(26), byte(0), byte(1), d.person(), byte(1), d.person(), uint16(d.rnd.IntN(300)), uint64(d.rnd.IntN(5000)))
		list = []solana.Instruction{
			open(payer, mint, d.program, size), instruction(d.program, fee, writes(mint)), list[1],
		}
	}
	d.mints = append(d.mints, mint)
	return list
}

func (d *draw) newAssociated(payer solana.PublicKey) []solana.Instruction {
	owner, mint := d.person(), d.mint()
	if len(d.multisigs) > 0 && d.one(4) {
		owner = pick(d, d.multisigs...)
	}
	program := d.programOf(mint)
	account, _, err := solana.FindAssociatedTokenAddressWithProgram(owner, mint, program)
	if err != nil || d.one(12) {
		account = d.fresh()
	}
	d.holders = append(d.holders, account)
	kind := pick(d, nil, []byte{0}, []byte{1}, []byte{1}, []byte{2})
	list := []solana.Instruction{instruction(solana.SPLAssociatedTokenAccountProgramID, kind,
		signsWrite(payer), writes(account), read(owner), read(mint), read(solana.SystemProgramID), read(program))}
	if d.one(5) { // somebody sent lamports to the address before
		list = append([]solana.Instruction{pay(payer, account, 900_000+d.rnd.Uint64N(2_000_000))}, list...)
	}
	return list
}

// newHolder makes a token account that is not an associated one, by one of the
// three instructions there are.
func (d *draw) newHolder(payer solana.PublicKey) []solana.Instruction {
	account, mint, owner := d.fresh(), d.mint(), d.person()
	if d.one(4) {
		mint = solana.WrappedSol
	}
	program := d.programOf(mint)
	d.holders = append(d.holders, account)
	list := []solana.Instruction{open(payer, account, program, tokenAccountSize)}
	if d.one(3) {
		list = append(list, instruction(program, []byte{22}, writes(account)))
	}
	switch d.rnd.IntN(3) {
	case 0:
		return append(list, instruction(program, []byte{1}, writes(account), read(mint), read(owner), read(solana.SysVarRentPubkey)))
	case 1:
		return append(list, instruction(program, pack(byte(16), owner), writes(account), read(mint), read(solana.SysVarRentPubkey)))
	default:
		return append(list, instruction(program, pack(byte(18), owner), writes(account), read(mint)))
	}
}

func (d *draw) mintTo(solana.PublicKey) []solana.Instruction {
	holder := d.holder()
	mint, _, decimals := d.match(holder)
	d.program = d.programOf(holder)
	data := pack(byte(7), d.amount()*1000)
	if d.one(3) {
		data = pack(byte(14), d.amount(), decimals)
	}
	return d.token(data, d.authorityOf(mint, false), writes(mint), writes(holder))
}

func (d *draw) transferChecked(solana.PublicKey) []solana.Instruction {
	from := d.holder()
	mint, to, decimals := d.match(from)
	d.program = d.programOf(from)
	return d.token(pack(byte(12), d.amount(), decimals), d.ownerOf(from), writes(from), read(mint), writes(to))
}

// holderStep is an instruction of a token account's owner.
func (d *draw) holderStep(solana.PublicKey) []solana.Instruction {
	from := d.holder()
	mint, to, decimals := d.match(from)
	d.program = d.programOf(from)
	owner, amount := d.ownerOf(from), d.amount()
	switch d.rnd.IntN(10) {
	case 0, 1:
		return d.token(pack(byte(3), amount), owner, writes(from), writes(to))
	case 2:
		return d.token(pack(byte(4), amount), owner, writes(from), read(d.person()))
	case 3:
		return d.token(pack(byte(13), amount, decimals), owner, writes(from), read(mint), read(d.person()))
	case 4:
		return d.token([]byte{5}, owner, writes(from))
	case 5:
		return d.token(pack(byte(8), amount), owner, writes(from), writes(mint))
	case 6:
		return d.token(pack(byte(15), amount, decimals), owner, writes(from), writes(mint))
	case 7:
		return []solana.Instruction{instruction(d.program, []byte{17}, writes(from))}
	case 8: // take lamports that are too many
		return d.token([]byte{38}, owner, writes(from), writes(d.person()))
	default:
		return d.token([]byte{9}, owner, writes(from), writes(d.person()))
	}
}

func (d *draw) freeze(solana.PublicKey) []solana.Instruction {
	holder := d.holder()
	mint, _, _ := d.match(holder)
	d.program = d.programOf(holder)
	return d.token([]byte{byte(10 + d.rnd.IntN(2))}, d.authorityOf(mint, true), writes(holder), read(mint))
}

func (d *draw) setAuthority(solana.PublicKey) []solana.Instruction {
	of, to := d.holder(), d.person()
	if d.one(2) {
		d.program = d.programOf(of)
		return d.token(pack(byte(6), byte(2+d.rnd.IntN(2)), byte(1), to), d.ownerOf(of), writes(of))
	}
	of = d.mint()
	d.program = d.programOf(of)
	kind := d.rnd.IntN(2)
	return d.token(pack(byte(6), byte(kind), byte(d.rnd.IntN(2)), to), d.authorityOf(of, kind == 1), writes(of))
}

func (d *draw) newMultisig(payer solana.PublicKey) []solana.Instruction {
	multisig := d.fresh()
	d.multisigs = append(d.multisigs, multisig)
	members := 1 + d.rnd.IntN(5)
	if d.one(10) {
		members = 12
	}
	accounts := []*solana.AccountMeta{writes(multisig)}
	kind := byte(19)
	if d.one(4) {
		kind = 2
		accounts = append(accounts, read(solana.SysVarRentPubkey))
	}
	for range members {
		accounts = append(accounts, read(d.person()))
	}
	return []solana.Instruction{
		open(payer, multisig, solana.TokenProgramID, tokenMultisigSize),
		instruction(solana.TokenProgramID, []byte{kind, byte(d.rnd.IntN(6))}, accounts...),
	}
}

// conversion is one of those that only return something.
func (d *draw) conversion(solana.PublicKey) []solana.Instruction {
	mint := d.mint()
	data := pick(d, []byte{21}, pack(byte(23), d.amount()),
		pack(byte(24), pick(d, "1.5", "0", "12345.678901", "x", "", "18446744073709551616", "1.")))
	return []solana.Instruction{instruction(d.programOf(mint), data, read(mint))}
}

func (d *draw) memo(solana.PublicKey) []solana.Instruction {
	text := pick(d, []byte("order:81723"), []byte("сорок 🙂"), []byte{0xff, 0xfe}, []byte("ab\xe2\x82"),
		[]byte("\xed\xa0\x80"), bytes.Repeat([]byte("x"), 300), nil)
	var accounts []*solana.AccountMeta
	if d.one(2) {
		accounts = append(accounts, signs(d.person()))
	}
	if d.one(6) {
		accounts = append(accounts, read(d.person()))
	}
	return []solana.Instruction{instruction(solana.MemoProgramID, text, accounts...)}
}

package svm

import (
	"crypto/sha256"
	"unicode/utf8"

	"github.com/gagliardetto/solana-go"
)

// Instructions of the System program.
const (
	createAccount          = 0
	assign                 = 1
	transfer               = 2
	createAccountWithSeed  = 3
	advanceNonceAccount    = 4
	withdrawNonceAccount   = 5
	initializeNonceAccount = 6
	authorizeNonceAccount  = 7
	allocate               = 8
	allocateWithSeed       = 9
	assignWithSeed         = 10
	transferWithSeed       = 11
	upgradeNonceAccount    = 12
	createPrefunded        = 13 // SIMD-0312
)

// System's own error numbers.
const (
	errAccountInUse     = 0
	errNegativeLamports = 1
	errInvalidLength    = 3
	errAddressMismatch  = 5
)

// Numbers of the errors of deriving an address with a seed, which come out of
// System as if they were its own.
const (
	errSeedLength   = 0
	errIllegalOwner = 2
)

// What System refuses of a derived address: a longer seed, and an owner whose
// address ends like what programs derive theirs from.
const (
	maxSeed              = 32
	programDerivedMarker = "ProgramDerivedAddress"
)

// arguments reads the data of an instruction in bincode. Once something is missing
// everything is, and bad says so.
type arguments struct {
	data []byte
	bad  bool
}

func (a *arguments) take(n uint64) []byte {
	if n > uint64(len(a.data)) {
		a.bad, a.data = true, nil
	}
	if a.bad {
		return nil
	}
	taken := a.data[:n]
	a.data = a.data[n:]
	return taken
}

func (a *arguments) number() uint64 {
	b := a.take(8)
	if a.bad {
		return 0
	}
	return le.Uint64(b)
}

// text reads a string, which must be UTF-8.
func (a *arguments) text() string {
	b := a.take(a.number())
	if !utf8.Valid(b) {
		a.bad, a.data = true, nil
	}
	return string(b)
}

func (a *arguments) key() (k solana.PublicKey) {
	copy(k[:], a.take(solana.PublicKeyLength))
	return k
}

// system runs an instruction of the System program.
func (x *execution) system(data []byte) error {
	if len(data) < 4 {
		return errBadData()
	}
	in := &arguments{data: data[4:]}
	switch kind := le.Uint32(data); kind {
	case createAccount:
		lamports, space, owner := in.number(), in.number(), in.key()
		return x.with(in, 2, func() error { return x.create(nil, lamports, space, owner) })
	case assign:
		owner := in.key()
		return x.with(in, 1, func() error { return x.assign(x.account(0), nil, owner) })
	case transfer:
		lamports := in.number()
		return x.with(in, 2, func() error { return x.transfer(0, 1, lamports) })
	case advanceNonceAccount:
		return x.with(in, 1, x.advanceNonce)
	case withdrawNonceAccount:
		lamports := in.number()
		return x.with(in, 2, func() error { return x.withdrawNonce(lamports) })
	case initializeNonceAccount:
		authority := in.key()
		return x.with(in, 1, func() error { return x.initializeNonce(authority) })
	case authorizeNonceAccount:
		authority := in.key()
		return x.with(in, 1, func() error { return x.authorizeNonce(authority) })
	case allocate:
		space := in.number()
		return x.with(in, 1, func() error { return x.allocate(x.account(0), nil, space) })
	case createAccountWithSeed, allocateWithSeed, assignWithSeed:
		return x.systemSeeded(kind, in)
	case transferWithSeed:
		lamports, seed, owner := in.number(), in.text(), in.key()
		return x.with(in, 3, func() error { return x.transferSeeded(lamports, seed, owner) })
	case upgradeNonceAccount:
		return x.with(in, 1, x.upgradeNonce)
	case createPrefunded:
		lamports, space, owner := in.number(), in.number(), in.key()
		accounts := 1
		if lamports > 0 {
			accounts = 2
		}
		return x.with(in, accounts, func() error { return x.createPrefunded(lamports, space, owner) })
	}
	return errBadData()
}

// with runs an instruction if its data were complete and it has enough accounts.
func (x *execution) with(in *arguments, accounts int, run func() error) error {
	if in.bad {
		return errBadData()
	}
	if err := x.need(accounts); err != nil {
		return err
	}
	return run()
}

// seeded is an address that was derived from another with a seed, which is the one
// that signs for it.
type seeded struct {
	base solana.PublicKey
	text string
}

// addressOf is how logs name an account.
func addressOf(key solana.PublicKey, from *seeded) string {
	base := "None"
	if from != nil {
		base = "Some(" + from.base.String() + ")"
	}
	return "Address { address: " + key.String() + ", base: " + base + " }"
}

func (x *execution) signedFor(key solana.PublicKey, from *seeded) bool {
	if from != nil {
		key = from.base
	}
	return x.signed(key)
}

func (x *execution) systemSeeded(kind uint32, in *arguments) error {
	from := &seeded{base: in.key(), text: in.text()}
	var lamports, space uint64
	if kind == createAccountWithSeed {
		lamports = in.number()
	}
	if kind != assignWithSeed {
		space = in.number()
	}
	owner := in.key()
	target, accounts := 0, 1
	if kind == createAccountWithSeed {
		target, accounts = 1, 2
	}
	return x.with(in, accounts, func() error {
		if err := x.derivedFrom(x.account(target).key, from, owner); err != nil {
			return err
		}
		switch kind {
		case createAccountWithSeed:
			return x.create(from, lamports, space, owner)
		case allocateWithSeed:
			if err := x.allocate(x.account(0), from, space); err != nil {
				return err
			}
		}
		return x.assign(x.account(0), from, owner)
	})
}

// derivedFrom checks that an address is the one that a seed gives.
func (x *execution) derivedFrom(key solana.PublicKey, from *seeded, owner solana.PublicKey) error {
	derived, err := withSeed(from.base, from.text, owner)
	if err != nil {
		return err
	}
	if derived != key {
		x.log.add("Create: address %s does not match derived address %s", key, derived)
		return custom(errAddressMismatch)
	}
	return nil
}

// withSeed derives an address from another one, a seed and a program.
func withSeed(base solana.PublicKey, seed string, owner solana.PublicKey) (solana.PublicKey, error) {
	if len(seed) > maxSeed {
		return solana.PublicKey{}, custom(errSeedLength)
	}
	if string(owner[solana.PublicKeyLength-len(programDerivedMarker):]) == programDerivedMarker {
		return solana.PublicKey{}, custom(errIllegalOwner)
	}
	return sha256.Sum256([]byte(string(base[:]) + seed + string(owner[:]))), nil
}

// create makes an account at place 1, paid from place 0.
func (x *execution) create(from *seeded, lamports, space uint64, owner solana.PublicKey) error {
	to := x.account(1)
	if to.Lamports > 0 {
		x.log.add("Create Account: account %s already in use", addressOf(to.key, from))
		return custom(errAccountInUse)
	}
	if err := x.allocate(to, from, space); err != nil {
		return err
	}
	if err := x.assign(to, from, owner); err != nil {
		return err
	}
	return x.transfer(0, 1, lamports)
}

// createPrefunded makes an account at place 0, which may have lamports already. What it gets besides is paid from place 1.
func (x *execution) createPrefunded(lamports, space uint64, owner solana.PublicKey) error {
	to := x.account(0)
	if err := x.allocate(to, nil, space); err != nil {
		return err
	}
	if err := x.assign(to, nil, owner); err != nil || lamports == 0 {
		return err
	}
	return x.transfer(1, 0, lamports)
}

func (x *execution) allocate(a reference, from *seeded, space uint64) error {
	if !x.signedFor(a.key, from) {
		x.log.add("Allocate: 'to' account %s must sign", addressOf(a.key, from))
		return fail("MissingRequiredSignature")
	}
	if len(a.Data) != 0 || a.Owner != solana.SystemProgramID {
		x.log.add("Allocate: account %s already in use", addressOf(a.key, from))
		return custom(errAccountInUse)
	}
	if space > maxAccountData {
		x.log.add("Allocate: requested %d, max allowed %d", space, maxAccountData)
		return custom(errInvalidLength)
	}
	if err := a.checkData(int(space)); err != nil { // before the memory is taken
		return err
	}
	return a.setData(make([]byte, space))
}

func (x *execution) assign(a reference, from *seeded, owner solana.PublicKey) error {
	if a.Owner == owner {
		return nil
	}
	if !x.signedFor(a.key, from) {
		x.log.add("Assign: account %s must sign", addressOf(a.key, from))
		return fail("MissingRequiredSignature")
	}
	return a.setOwner(owner)
}

func (x *execution) transfer(from, to int, lamports uint64) error {
	if a := x.account(from); !a.signer {
		x.log.add("Transfer: `from` account %s must sign", a.key)
		return fail("MissingRequiredSignature")
	}
	return x.move(from, to, lamports)
}

// move takes lamports from an account whose right to give them was checked.
func (x *execution) move(from, to int, lamports uint64) error {
	a := x.account(from)
	if len(a.Data) != 0 {
		x.log.add("Transfer: `from` must not carry data")
		return fail("InvalidArgument")
	}
	if lamports > a.Lamports {
		x.log.add("Transfer: insufficient lamports %d, need %d", a.Lamports, lamports)
		return custom(errNegativeLamports)
	}
	if err := a.subLamports(lamports); err != nil {
		return err
	}
	return x.account(to).addLamports(lamports)
}

// transferSeeded pays from place 0, whose address was derived from the one at
// place 1, to place 2.
func (x *execution) transferSeeded(lamports uint64, seed string, owner solana.PublicKey) error {
	base := x.account(1)
	if !base.signer {
		x.log.add("Transfer: 'from' account %s must sign", base.key)
		return fail("MissingRequiredSignature")
	}
	derived, err := withSeed(base.key, seed, owner)
	if err != nil {
		return err
	}
	if from := x.account(0); derived != from.key {
		x.log.add("Transfer: 'from' address %s does not match derived address %s", from.key, derived)
		return custom(errAddressMismatch)
	}
	return x.move(0, 2, lamports)
}

// upgradeNonce would turn a nonce account of the first version into one of today's;
// no chain of ours has any of those.
func (x *execution) upgradeNonce() error {
	a := x.account(0)
	if a.Owner != solana.SystemProgramID {
		return fail("InvalidAccountOwner")
	}
	if !a.writable {
		return fail("InvalidArgument")
	}
	if _, known := nonceState(a.Data); !known {
		return fail("InvalidAccountData")
	}
	return fail("InvalidArgument")
}

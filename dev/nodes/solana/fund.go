package solana

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"kivuko/dev/nodes/solana/svm"
)

// Instructions of the token programs (solana-program/token, interface/src/instruction.rs).
const (
	tokenMintTo          = 7
	tokenFreeze          = 10
	tokenThaw            = 11
	tokenTransferChecked = 12
	tokenInitializeMint2 = 20
	tokenTransferFee     = 26
	associatedIdempotent = 1
	setUnitLimit         = 2
)

// fundUnits is the compute unit limit of the node's own transactions. A number
// that is never the same twice is added to it: two equal fundings on one block
// hash would be one transaction.
const (
	fundUnits   = 200_000
	fundNumbers = 1_000_000
)

type funds struct{ number atomic.Uint32 }

// FundSOL sends lamports from the genesis account.
func (n *Node) FundSOL(to solana.PublicKey, lamports uint64) (solana.Signature, error) {
	if lamports == 0 {
		return solana.Signature{}, errors.New("solana: fund: want 1 lamport or more")
	}
	return n.submit(nil, system.NewTransferInstruction(lamports, mustKey(GenesisAddress), to).Build())
}

// FundToken sends units of a token from the genesis account to the owner's
// associated account, which it opens where it must.
func (n *Node) FundToken(mint, owner solana.PublicKey, units uint64) (solana.Signature, error) {
	if units == 0 {
		return solana.Signature{}, errors.New("solana: fund: want 1 unit or more")
	}
	m, err := n.mint(mint)
	if err != nil {
		return solana.Signature{}, err
	}
	genesis := mustKey(GenesisAddress)
	data := append(binary.LittleEndian.AppendUint64([]byte{tokenTransferChecked}, units), m.decimals)
	return n.submit(nil, openAccount(owner, mint, m.program), solana.NewInstruction(m.program, solana.AccountMetaSlice{
		solana.Meta(associated(genesis, mint, m.program)).WRITE(), solana.Meta(mint),
		solana.Meta(associated(owner, mint, m.program)).WRITE(), solana.Meta(genesis).SIGNER(),
	}, data))
}

// openAccount is CreateIdempotent of the associated token account program.
func openAccount(owner, mint, program solana.PublicKey) solana.Instruction {
	return solana.NewInstruction(solana.SPLAssociatedTokenAccountProgramID, solana.AccountMetaSlice{
		solana.Meta(mustKey(GenesisAddress)).WRITE().SIGNER(), solana.Meta(associated(owner, mint, program)).WRITE(),
		solana.Meta(owner), solana.Meta(mint), solana.Meta(solana.SystemProgramID), solana.Meta(program),
	}, []byte{associatedIdempotent})
}

// Freeze makes the owner's associated account of a token refuse every transfer, as
// the issuers of USDT and USDC can, or lets it go again.
func (n *Node) Freeze(mint, owner solana.PublicKey, frozen bool) (solana.Signature, error) {
	m, err := n.mint(mint)
	if err != nil {
		return solana.Signature{}, err
	}
	code := byte(tokenThaw)
	if frozen {
		code = tokenFreeze
	}
	return n.submit(nil, openAccount(owner, mint, m.program), solana.NewInstruction(m.program, solana.AccountMetaSlice{
		solana.Meta(associated(owner, mint, m.program)).WRITE(), solana.Meta(mint), solana.Meta(mustKey(GenesisAddress)).SIGNER(),
	}, []byte{code}))
}

// mint reads a mint at the newest block.
func (n *Node) mint(address solana.PublicKey) (tokenMint, error) {
	n.ledger.mu.RLock()
	defer n.ledger.mu.RUnlock()
	account, _ := n.ledger.view(processed, 0).Account(address)
	m, ok := readMint(account)
	if !ok {
		return tokenMint{}, fmt.Errorf("solana: %s is not a mint", address)
	}
	return m, nil
}

// NewMint says what a mint is like.
type NewMint struct {
	Decimals uint8
	// Token2022 makes it a mint of Token-2022.
	Token2022 bool
	// FeeBasisPoints is what Token-2022 keeps of each transfer.
	FeeBasisPoints uint16
}

// maxFeePoints is a fee of everything.
const maxFeePoints = 10_000

// CreateMint makes a mint whose whole supply, a trillion tokens at 6 decimals, the
// genesis account has.
func (n *Node) CreateMint(spec NewMint) (solana.PublicKey, solana.Signature, error) {
	if spec.FeeBasisPoints > maxFeePoints || (spec.FeeBasisPoints > 0 && !spec.Token2022) {
		return solana.PublicKey{}, solana.Signature{}, fmt.Errorf(
			"solana: fee of a mint: want 0 to %d basis points, and a fee with Token-2022 alone", maxFeePoints)
	}
	key, err := solana.NewRandomPrivateKey()
	if err != nil {
		return solana.PublicKey{}, solana.Signature{}, fmt.Errorf("solana: make a key: %w", err)
	}
	mint, genesis := key.PublicKey(), mustKey(GenesisAddress)
	program, size := solana.TokenProgramID, mintBytes
	if spec.Token2022 {
		program = solana.Token2022ProgramID
	}
	var steps []solana.Instruction
	if spec.FeeBasisPoints > 0 {
		size = len(feeMintData(genesis))
		data := append([]byte{tokenTransferFee, 0}, append(optionKey(genesis), optionKey(genesis)...)...)
		data = binary.LittleEndian.AppendUint16(data, spec.FeeBasisPoints)
		data = binary.LittleEndian.AppendUint64(data, genesisUnits)
		steps = append(steps, solana.NewInstruction(program, solana.AccountMetaSlice{solana.Meta(mint).WRITE()}, data))
	}
	initialise := append([]byte{tokenInitializeMint2, spec.Decimals}, genesis[:]...)
	supply := binary.LittleEndian.AppendUint64([]byte{tokenMintTo}, genesisUnits)
	steps = append(steps,
		solana.NewInstruction(program, solana.AccountMetaSlice{solana.Meta(mint).WRITE()}, append(initialise, optionKey(genesis)...)),
		openAccount(genesis, mint, program),
		solana.NewInstruction(program, solana.AccountMetaSlice{
			solana.Meta(mint).WRITE(), solana.Meta(associated(genesis, mint, program)).WRITE(), solana.Meta(genesis).SIGNER(),
		}, supply))
	open := system.NewCreateAccountInstruction(svm.MinimumBalance(size), uint64(size), program, genesis, mint).Build()
	signature, err := n.submit(key, append([]solana.Instruction{open}, steps...)...)
	return mint, signature, err
}

// optionKey is a key that an instruction may leave out.
func optionKey(key solana.PublicKey) []byte { return append([]byte{1}, key[:]...) }

// submit signs a transaction with the genesis key, and another where one is given,
// and lets it wait for a block. Fault switches don't see it.
func (n *Node) submit(other solana.PrivateKey, steps ...solana.Instruction) (solana.Signature, error) {
	limit := binary.LittleEndian.AppendUint32([]byte{setUnitLimit}, fundUnits+n.funds.number.Add(1)%fundNumbers)
	steps = append([]solana.Instruction{solana.NewInstruction(solana.ComputeBudget, nil, limit)}, steps...)
	l := n.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	genesis := GenesisKey()
	built, err := solana.NewTransaction(steps, l.head().hash, solana.TransactionPayer(genesis.PublicKey()))
	if err != nil {
		return solana.Signature{}, fmt.Errorf("solana: build a transaction: %w", err)
	}
	if _, err := built.Sign(func(key solana.PublicKey) *solana.PrivateKey {
		if key == genesis.PublicKey() {
			return &genesis
		}
		return &other
	}); err != nil {
		return solana.Signature{}, fmt.Errorf("solana: sign a transaction: %w", err)
	}
	wire, err := built.MarshalBinary()
	if err != nil {
		return solana.Signature{}, fmt.Errorf("solana: encode a transaction: %w", err)
	}
	tx, err := svm.Decode(wire)
	if err != nil {
		return solana.Signature{}, fmt.Errorf("solana: %w", err)
	}
	view := l.view(processed, 0)
	if result := l.machine.Execute(tx, view.context(), view); result.Err != nil {
		if result.Err.Kind == "ProgramAccountNotFound" {
			return solana.Signature{}, fmt.Errorf("solana: %w", errNoProgram)
		}
		return solana.Signature{}, fmt.Errorf("solana: the node's own transaction would fail: %w; %q", result.Err, result.Logs)
	}
	if !l.pool.add(&pooled{tx: tx}) {
		return solana.Signature{}, errors.New("solana: too many transactions wait")
	}
	return tx.ID(), nil
}

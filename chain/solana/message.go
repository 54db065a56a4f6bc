package solana

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"

	bin "github.com/gagliardetto/binary"
	sdk "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	computebudget "github.com/gagliardetto/solana-go/programs/compute-budget"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
)

// maxTransactionBytes is the size of a packet of the network, signatures included
// (solana packet.rs PACKET_DATA_SIZE).
const maxTransactionBytes = 1232

// uniqueBytes is the randomness of a transaction's memo. Solana has no sequence numbers, so two equal payments with one
// blockhash would be one transaction and pay once. The memo makes each unique; varying a price would only make that likely.
const uniqueBytes = 16

// plan is the complete content of a transaction of ours.
type plan struct {
	intent
	source    sdk.PublicKey // the sender's token account
	dest      sdk.PublicKey // the token account that is paid
	create    bool          // creates dest, as the recipient's associated token account, if it does not exist
	limit     uint32        // units of computation
	price     uint64        // micro-lamports for each
	unique    [uniqueBytes]byte
	blockhash sdk.Hash      // or the value of the nonce account
	nonce     sdk.PublicKey // the nonce account that it uses; zero if a block limits its life
}

// instructions are the plan as instructions, always in this order: the advance of its nonce account, if any, the two of the
// compute budget, the memo, and those that move the money.
func (p plan) instructions() []sdk.Instruction {
	var all []sdk.Instruction
	if !p.nonce.IsZero() {
		all = append(all, advance(p.nonce, p.payer)) // the network looks for it only in the first place
	}
	// The memo names no signers, so the program does not require any.
	memo := sdk.NewInstruction(sdk.MemoProgramID, nil, hex.AppendEncode(nil, p.unique[:]))
	all = append(all,
		computebudget.NewSetComputeUnitLimitInstruction(p.limit).Build(),
		computebudget.NewSetComputeUnitPriceInstruction(p.price).Build(),
		memo,
	)
	if !p.token {
		all = append(all, system.NewTransferInstruction(p.units, p.from, p.to).Build())
		return append(all, p.stepInstructions()...)
	}
	if p.create {
		// Idempotent, because anyone can create the account first.
		all = append(all, ata.NewCreateIdempotentInstruction(p.payer, p.to, p.mint).Build())
	}
	var signers []sdk.PublicKey // in place of a sender that can't sign itself
	if p.joint != nil {
		signers = p.joint.signers
	}
	return append(all, token.NewTransferCheckedInstruction(p.units, p.decimals, p.source, p.mint, p.dest, p.from, signers).Build())
}

// message compiles the plan.
func (p plan) message() ([]byte, error) {
	m, err := compile(p.payer, p.blockhash, p.instructions())
	if err != nil {
		return nil, err
	}
	body, err := m.MarshalBinary()
	if err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the message can't be encoded")
	}
	signatures := 1 + sdk.SignatureLength*int(m.Header.NumRequiredSignatures)
	if len(body)+signatures > maxTransactionBytes {
		return nil, chain.Errorf(chain.ReasonProtocol, "the transaction has %d bytes, the network accepts %d", len(body)+signatures, maxTransactionBytes)
	}
	return body, nil
}

// rights are a transaction's permissions on an account.
type rights struct{ signer, writable bool }

// class orders accounts as in the header of a message: writable signers, other signers, writable accounts, other accounts.
func (r rights) class() int {
	switch {
	case r.signer && r.writable:
		return 0
	case r.signer:
		return 1
	case r.writable:
		return 2
	}
	return 3
}

const classes = 4

// compile makes a legacy message. It merges the rights of an account that appears more than once before it sorts the
// accounts. solana-go merges them afterwards and leaves the account in its old place, so that another one gets its rights;
// it also modifies the instructions that it was given. The fee payer is first and writable.
func compile(payer sdk.PublicKey, blockhash sdk.Hash, all []sdk.Instruction) (*sdk.Message, error) {
	var seen []sdk.PublicKey
	granted := map[sdk.PublicKey]rights{}
	note := func(key sdk.PublicKey, r rights) {
		before, known := granted[key]
		if !known {
			seen = append(seen, key)
		}
		granted[key] = rights{signer: before.signer || r.signer, writable: before.writable || r.writable}
	}
	note(payer, rights{signer: true, writable: true})
	for _, in := range all {
		for _, a := range in.Accounts() {
			note(a.PublicKey, rights{signer: a.IsSigner, writable: a.IsWritable})
		}
		note(in.ProgramID(), rights{})
	}
	m := &sdk.Message{RecentBlockhash: blockhash}
	counts := [classes]int{}
	index := map[sdk.PublicKey]uint16{}
	for class := range classes {
		for _, key := range seen {
			if granted[key].class() == class {
				index[key] = uint16(len(m.AccountKeys))
				m.AccountKeys = append(m.AccountKeys, key)
				counts[class]++
			}
		}
	}
	if len(m.AccountKeys) > math.MaxUint8 {
		return nil, chain.Errorf(chain.ReasonProtocol, "a message has %d accounts, at most %d fit", len(m.AccountKeys), math.MaxUint8)
	}
	m.Header = sdk.MessageHeader{
		NumRequiredSignatures:       uint8(counts[0] + counts[1]), // bounded by the number of accounts above
		NumReadonlySignedAccounts:   uint8(counts[1]),
		NumReadonlyUnsignedAccounts: uint8(counts[3]),
	}
	for _, in := range all {
		data, err := in.Data()
		if err != nil {
			return nil, chain.Wrap(chain.ReasonProtocol, err, "an instruction can't be encoded")
		}
		compiled := sdk.CompiledInstruction{ProgramIDIndex: index[in.ProgramID()], Data: data, Accounts: []uint16{}}
		for _, a := range in.Accounts() {
			compiled.Accounts = append(compiled.Accounts, index[a.PublicKey])
		}
		m.Instructions = append(m.Instructions, compiled)
	}
	return m, nil
}

// readMessage decodes bytes to be signed and refuses any that would not be sent as they are.
func readMessage(body []byte) (*sdk.Message, error) {
	wrong := chain.Errorf(chain.ReasonProtocol, "the prepared bytes are not a message")
	m := &sdk.Message{}
	decoder := bin.NewBinDecoder(body)
	if len(body) > maxTransactionBytes || m.UnmarshalWithDecoder(decoder) != nil || decoder.Remaining() != 0 || m.GetVersion() != sdk.MessageVersionLegacy {
		return nil, wrong
	}
	if again, err := m.MarshalBinary(); err != nil || !bytes.Equal(again, body) || m.Sanitize() != nil {
		return nil, wrong
	}
	return m, nil
}

// Forms of the instructions that have variable parts in a plan.
const (
	budgetInstructions = 2
	setLimit           = 2 // ComputeBudgetInstruction::SetComputeUnitLimit(u32)
	setPrice           = 3 // ComputeBudgetInstruction::SetComputeUnitPrice(u64)
	limitLength        = 1 + 4
	priceLength        = 1 + 8
	// The instructions of a payment: budget, memo and transfer, and one more to create an account.
	plainInstructions  = budgetInstructions + 2
	createInstructions = plainInstructions + 1
)

// planOf reads the parts of a message that the intent does not fix: blockhash, budget, memo, and whether the recipient's
// token account is created. The caller compares the plan's own message with the bytes, so nothing else is checked here.
func planOf(in intent, nonce sdk.PublicKey, m *sdk.Message) (plan, error) {
	p := plan{intent: in, blockhash: m.RecentBlockhash, nonce: nonce}
	wrong := func(what string) (plan, error) {
		return p, chain.Errorf(chain.ReasonProtocol, "the prepared bytes differ from the transfer: %s", what)
	}
	said := m.Instructions
	if !nonce.IsZero() && len(said) > 0 {
		said = said[1:]
	}
	p.create = in.token && len(said) == createInstructions
	if len(said) != plainInstructions+len(p.stepInstructions()) && !p.create {
		return wrong("other instructions")
	}
	limit, price, memo := said[0].Data, said[1].Data, said[2].Data
	if len(limit) != limitLength || limit[0] != setLimit || len(price) != priceLength || price[0] != setPrice {
		return wrong("no compute budget")
	}
	p.limit, p.price = binary.LittleEndian.Uint32(limit[1:]), binary.LittleEndian.Uint64(price[1:])
	if n, err := hex.Decode(p.unique[:], memo[:min(len(memo), 2*uniqueBytes)]); err != nil || n != uniqueBytes {
		return wrong("another memo")
	}
	if !in.token {
		return p, nil
	}
	var err error
	if p.source, err = tokenAccount(in.from, in.mint); err != nil {
		return p, err
	}
	if p.dest = in.to; p.create {
		p.dest, err = tokenAccount(in.to, in.mint)
	}
	return p, err
}

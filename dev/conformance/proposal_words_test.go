package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	tronaddress "github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	sdk "github.com/gagliardetto/solana-go"
	"go.temporal.io/sdk/temporal"

	"kivuko/chain"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange"
)

// seenPayment is what the tool of an owner shows of the bytes that it is to sign, without a look at what the API says of them.
type seenPayment struct {
	to     string // the recipient; on Solana its token account
	units  *big.Int
	digest []byte // what the tool's key signs
}

// toolReads reads bytes with the libraries of others.
func (s *signatories) toolReads(t *testing.T, body []byte) seenPayment {
	t.Helper()
	switch s.client.Network() {
	case exchange.Ethereum:
		var typed apitypes.TypedData
		if err := json.Unmarshal(body, &typed); err != nil {
			t.Fatal(err)
		}
		digest, _, err := apitypes.TypedDataAndHash(typed)
		if err != nil {
			t.Fatal(err)
		}
		data := hexutil.MustDecode(typed.Message["data"].(string))
		return seenPayment{common.BytesToAddress(data[4:36]).Hex(), new(big.Int).SetBytes(data[36:68]), digest}
	case exchange.Tron:
		raw := transactionOf(t, body).GetRawData()
		call := &core.TriggerSmartContract{}
		if err := raw.GetContract()[0].GetParameter().UnmarshalTo(call); err != nil {
			t.Fatal(err)
		}
		data, digest := call.GetData(), sha256.Sum256(body)
		return seenPayment{hex.EncodeToString(data[16:36]), new(big.Int).SetBytes(data[36:68]), digest[:]}
	case exchange.Solana:
	}
	unsigned, err := sdk.TransactionFromBytes(slices.Concat(body[:1], make([]byte, 64*int(body[0])), body)) // the message begins with the number of its signers
	if err != nil {
		t.Fatal(err)
	}
	m := unsigned.Message
	pays := m.Instructions[len(m.Instructions)-1]
	return seenPayment{m.AccountKeys[pays.Accounts[2]].String(), new(big.Int).SetUint64(binary.LittleEndian.Uint64(pays.Data[1:9])), body}
}

// recipient is an address as that tool shows it.
func (s *signatories) recipient(t *testing.T, address string) string {
	t.Helper()
	switch s.client.Network() {
	case exchange.Tron:
		raw, err := tronaddress.Base58ToAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(raw[1:])
	case exchange.Solana:
		return solanaATA(t, solanaKey(t, address), solanaKey(t, solananode.USDTAddress)).String()
	case exchange.Ethereum:
	}
	return address
}

// Whoever controls the API can show other words than the bytes say, or bytes that pay someone else with the words of the approved payment. An
// owner's own tool reads the bytes: it shows who gets what, and signs nothing but what it shows. A signature that is made all the same is worth
// nothing for the proposal; nor is an officer's confirmation, which names the bytes.
func TestAnOwnersToolSeesSwappedBytes(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "2")
		l := s.prepares(t, proposal, s.outside[0].Address, s.officer)
		honest := s.joint(t, l)
		right := s.toolReads(t, honest.Body)
		if right.to != s.recipient(t, proposal.Destination) || right.units.Cmp(proposal.Amount.Units()) != 0 || !bytes.Equal(right.digest, l.Digest) {
			t.Errorf("the tool shows %+v, want %s to %s with %x", right, proposal.Amount, s.recipient(t, proposal.Destination), l.Digest)
		}
		thief, d := s.NewAccount(t).Address, honest.JointDraft
		d.Transfer = &chain.Transfer{From: d.Transfer.From, To: thief, Amount: d.Transfer.Amount}
		swapped, err := s.client.PrepareJoint(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		wrong := s.toolReads(t, swapped.Body)
		if wrong.to != s.recipient(t, thief) || bytes.Equal(wrong.digest, l.Digest) {
			t.Errorf("the tool shows %+v, and not the thief's %s", wrong, s.recipient(t, thief))
		}
		_, err = s.brings(t, l, signedBy(t, s.outside[0], wrong.digest))
		var e *temporal.ApplicationError
		if !errors.As(err, &e) || e.Type() != string(exchange.CodeInvalid) {
			t.Errorf("the signature of other bytes was taken: %v", err)
		}
		// An officer compares the confirmation digest with that of the bytes: it is the hash of what a key signs.
		of := func(digest []byte) string { sum := sha256.Sum256(digest); return hex.EncodeToString(sum[:]) }
		if of(right.digest) != l.Intent() || of(wrong.digest) == l.Intent() {
			t.Errorf("the confirmation digest is %s, of the bytes %s, and of others %s", l.Intent(), of(right.digest), of(wrong.digest))
		}
		if len(s.book.signatures) != 0 {
			t.Errorf("stored: %+v", s.book.signatures)
		}
	})
}

package solana

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"
)

// vector is one entry of the public material: signed transactions of the clusters and of other wallets' tests, and token
// accounts.
type vector struct {
	Kind, ID       string
	Owner, Mint    string
	TokenProgram   string          `json:"token_program"`
	Transaction    string          `json:"expected_tx_base64"`
	Message        string          `json:"expected_message_base64"`
	Published      string          `json:"published_signature"`
	Expected       json.RawMessage // an address, or a decoded transaction
	Input          vectorKeys
	MessageMatches bool `json:"message_matches"`
}

type vectorKeys struct {
	Key      string `json:"private_key_base58"`
	KeyHex   string `json:"private_key_hex"`
	FeePayer string `json:"fee_payer_private_key_base58"`
}

type decoded struct {
	AccountKeys     []string `json:"account_keys"`
	FeePayer        string   `json:"fee_payer"`
	Header          [3]uint8
	Programs        []string
	RecentBlockhash string   `json:"recent_blockhash"`
	Signatures      []string `json:"signatures_base58"`
	Size            int
	Nonce           bool `json:"uses_durable_nonce"`
	Version         string
}

// vectors reads the fixtures, which are beside the repository and not in it.
func vectors(t *testing.T, kind string, count int) []vector {
	t.Helper()
	content, err := os.ReadFile(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	var out []vector
	for _, v := range file.Vectors {
		if v.Kind == kind {
			out = append(out, v)
		}
	}
	if len(out) < count {
		t.Fatalf("%d vectors of kind %s, want %d", len(out), kind, count)
	}
	return out
}

// fixture is the file of published vectors, which we may not copy.
func fixture(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KIVUKO_FIXTURES")
	if dir == "" {
		t.Skip("the published vectors are not here: KIVUKO_FIXTURES names the folder above them, see the Makefile")
	}
	return filepath.Join(dir, "solana/vectors.json")
}

// seed is the key of a vector; publishers write 32 or 64 bytes.
func seed(t *testing.T, text58, textHex string) testKey {
	t.Helper()
	var b []byte
	var err error
	if text58 != "" {
		b, err = base58.Decode(text58)
	} else {
		b, err = hex.DecodeString(textHex)
	}
	if err != nil || len(b) < 32 {
		t.Fatalf("the vector's key: %v", err)
	}
	return keyOf(b[:32])
}

func TestTransactionVectors(t *testing.T) {
	for _, v := range vectors(t, "signed-transaction", 21) {
		t.Run(v.ID, func(t *testing.T) {
			want := decoded{}
			if err := json.Unmarshal(v.Expected, &want); err != nil {
				t.Fatal(err)
			}
			raw, err := base64.StdEncoding.DecodeString(v.Transaction)
			if err != nil {
				t.Fatal(err)
			}
			id, err := decodeSigned(raw)
			if err != nil {
				t.Fatal(err)
			}
			if id != want.Signatures[0] || len(raw) != want.Size || (v.Published != "" && id != v.Published) {
				t.Errorf("%s with %d bytes, want %s with %d", id, len(raw), want.Signatures[0], want.Size)
			}
			for _, broken := range [][]byte{append(bytes.Clone(raw), 0), raw[:len(raw)-1], flipped(raw, 5), flipped(raw, len(raw)-1)} {
				if _, err := decodeSigned(broken); err == nil {
					t.Error("changed bytes were accepted")
				}
			}
			tx := &sdk.Transaction{}
			if err := tx.UnmarshalBase64(v.Transaction); err != nil {
				t.Fatal(err)
			}
			checkDecoded(t, tx, want)
			checkSignatures(t, tx, v)
			checkCompiled(t, tx)
		})
	}
}

func flipped(b []byte, i int) []byte {
	c := bytes.Clone(b)
	c[i] ^= 1
	return c
}

func checkDecoded(t *testing.T, tx *sdk.Transaction, want decoded) {
	t.Helper()
	m := &tx.Message
	header := [3]uint8{m.Header.NumRequiredSignatures, m.Header.NumReadonlySignedAccounts, m.Header.NumReadonlyUnsignedAccounts}
	if !slices.Equal(m.AccountKeys.ToBase58(), want.AccountKeys) || header != want.Header || m.RecentBlockhash.String() != want.RecentBlockhash ||
		m.AccountKeys[0].String() != want.FeePayer || tx.UsesDurableNonce() != want.Nonce {
		t.Errorf("decoded as %v %v %s", m.AccountKeys, header, m.RecentBlockhash)
	}
	for i, s := range tx.Signatures {
		if s.String() != want.Signatures[i] {
			t.Errorf("signature %d is %s, want %s", i, s, want.Signatures[i])
		}
	}
}

// checkSignatures recreates the published signatures from the published keys.
func checkSignatures(t *testing.T, tx *sdk.Transaction, v vector) {
	t.Helper()
	body, err := tx.Message.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if v.Message != "" && v.MessageMatches && encode(body) != v.Message {
		t.Errorf("the message is %s, want %s", encode(body), v.Message)
	}
	keys := []testKey{seed(t, v.Input.Key, v.Input.KeyHex)}
	if v.Input.FeePayer != "" {
		keys = append(keys, seed(t, v.Input.FeePayer, ""))
	}
	made := 0
	for _, k := range keys {
		signature, err := k.Sign(body)
		if err != nil {
			t.Fatal(err)
		}
		for i, signer := range tx.Message.Signers() {
			if bytes.Equal(signer[:], k.PublicKey()) {
				made++
				if !bytes.Equal(tx.Signatures[i][:], signature) {
					t.Errorf("the signature of %s differs", signer)
				}
			}
		}
	}
	if made != len(keys) {
		t.Errorf("%d of %d keys signed", made, len(keys))
	}
}

// checkCompiled compiles the instructions again. The result must have the same instructions with the same rights, in any
// order of accounts.
func checkCompiled(t *testing.T, tx *sdk.Transaction) {
	t.Helper()
	var all []sdk.Instruction
	for i := range tx.Message.Instructions {
		in := &tx.Message.Instructions[i]
		program, err := tx.Message.Program(in.ProgramIDIndex)
		if err != nil {
			t.Fatal(err)
		}
		accounts, err := in.ResolveInstructionAccounts(&tx.Message)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sdk.NewInstruction(program, accounts, in.Data))
	}
	m, err := compile(tx.Message.AccountKeys[0], tx.Message.RecentBlockhash, all)
	if err != nil {
		t.Fatal(err)
	}
	sameInstructions(t, m, all)
	if m.Header != tx.Message.Header {
		t.Errorf("the header is %+v, want %+v", m.Header, tx.Message.Header)
	}
}

// sameInstructions resolves a message and compares it with its source.
func sameInstructions(t testing.TB, m *sdk.Message, want []sdk.Instruction) {
	t.Helper()
	if len(m.Instructions) != len(want) {
		t.Fatalf("%d instructions, want %d", len(m.Instructions), len(want))
	}
	granted := map[sdk.PublicKey]rights{}
	for i, in := range want {
		data, err := in.Data()
		if err != nil {
			t.Fatal(err)
		}
		program, err := m.Program(m.Instructions[i].ProgramIDIndex)
		if err != nil || program != in.ProgramID() || !bytes.Equal(m.Instructions[i].Data, data) {
			t.Errorf("instruction %d is of %s with %x (%v)", i, program, m.Instructions[i].Data, err)
		}
		got, err := m.Instructions[i].ResolveInstructionAccounts(m)
		if err != nil || len(got) != len(in.Accounts()) {
			t.Fatalf("instruction %d has %d accounts (%v)", i, len(got), err)
		}
		for j, a := range in.Accounts() {
			if got[j].PublicKey != a.PublicKey {
				t.Errorf("account %d of instruction %d is %s, want %s", j, i, got[j].PublicKey, a.PublicKey)
			}
			g := granted[a.PublicKey]
			granted[a.PublicKey] = rights{signer: g.signer || a.IsSigner, writable: g.writable || a.IsWritable}
		}
		granted[in.ProgramID()] = granted[in.ProgramID()]
	}
	granted[m.AccountKeys[0]] = rights{signer: true, writable: true}
	if len(granted) != len(m.AccountKeys) {
		t.Errorf("%d accounts, want %d", len(m.AccountKeys), len(granted))
	}
	for key, want := range granted {
		writable, err := m.IsWritable(key)
		if got := (rights{signer: m.IsSigner(key), writable: writable}); err != nil || got != want {
			t.Errorf("%s may %+v, want %+v (%v)", key, got, want, err)
		}
	}
}

func TestTokenAccountVectors(t *testing.T) {
	classic := 0
	for _, v := range vectors(t, "ata", 6) {
		var want string
		if err := json.Unmarshal(v.Expected, &want); err != nil {
			t.Fatal(err)
		}
		owner, mint := sdk.MustPublicKeyFromBase58(v.Owner), sdk.MustPublicKeyFromBase58(v.Mint)
		got, err := tokenAccount(owner, mint)
		if err != nil {
			t.Fatal(err)
		}
		if v.TokenProgram != sdk.TokenProgramID.String() {
			// The account depends on the program, so a driver with the wrong program would pay an account without an owner.
			if got.String() == want {
				t.Errorf("%s: the account of another program", v.ID)
			}
			continue
		}
		classic++
		if got.String() != want {
			t.Errorf("%s: %s, want %s", v.ID, got, want)
		}
	}
	if classic < 5 {
		t.Errorf("%d accounts of the Token program were compared", classic)
	}
}

package tron

import (
	"bytes"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
)

// A signed transaction is accepted if it is exactly the one that was handed out, signed by the sender. The signature may
// have the form that some wallets write.
func TestTakeSigned(t *testing.T) {
	c := offline(t)
	key := testKey{unhex(t, "2d8f68944bdbfbc0769542fba8fc2d2a3de67393334471624364c7006da2aa54")}
	thief := testKey{bytes.Repeat([]byte{7}, 32)}
	from, err := c.Address(key.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	u := prepared(t, c, from)
	signed, err := c.Sign(u, key)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(do func(*core.Transaction)) []byte {
		tx := &core.Transaction{}
		if err := proto.Unmarshal(signed.Raw, tx); err != nil {
			t.Fatal(err)
		}
		do(tx)
		raw, err := deterministic.Marshal(tx)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, raw := range map[string][]byte{
		"as it is": signed.Raw, "v of a wallet": edit(func(tx *core.Transaction) { tx.Signature[0][64] += 27 }),
	} {
		got, err := c.TakeSigned(u, raw)
		if err != nil || got.TxID != signed.TxID || !bytes.Equal(got.Raw, signed.Raw) || c.KnownID(u) != got.TxID {
			t.Errorf("%s: %s, %v", name, got.TxID, err)
		}
	}
	stolen, err := thief.Sign(u.Payload)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "unsigned": edit(func(tx *core.Transaction) { tx.Signature = nil }),
		"another's signature":    edit(func(tx *core.Transaction) { tx.Signature[0] = stolen }),
		"two signatures":         edit(func(tx *core.Transaction) { tx.Signature = append(tx.Signature, stolen) }),
		"a short signature":      edit(func(tx *core.Transaction) { tx.Signature[0] = tx.Signature[0][:64] }),
		"another transaction":    edit(func(tx *core.Transaction) { tx.RawData.Timestamp++ }),
		"another recovery value": edit(func(tx *core.Transaction) { tx.Signature[0][64] ^= 1 }),
		"bytes behind":           append(bytes.Clone(signed.Raw), 0x0a, 0x00),
	} {
		if got, err := c.TakeSigned(u, raw); err == nil {
			t.Errorf("%s: taken as %s", name, got.TxID)
		}
	}
	other := u
	other.Transfer.To = alice
	if _, err := c.TakeSigned(other, signed.Raw); chain.ReasonOf(err) != chain.ReasonProtocol {
		t.Errorf("it pays a recipient other than the transfer's: %v", err)
	}
}

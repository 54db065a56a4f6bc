package ethereum

import (
	"bytes"
	"testing"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// A signed transaction is accepted if it is exactly the one that was handed out, signed by the sender.
func TestTakeSigned(t *testing.T) {
	t.Parallel()
	c, k, thief := driver(t, paying(t)), newKey(t), newKey(t)
	u := prepared(t, c, k, money.Must(money.USDT, "100"))
	signed, err := c.Sign(u, k)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.TakeSigned(u, signed.Raw); err != nil || got.TxID != signed.TxID || !bytes.Equal(got.Raw, signed.Raw) || c.KnownID(u) != "" {
		t.Errorf("%s, %v", got.TxID, err)
	}
	// raw adds a signature of the payload without any check.
	raw := func(u chain.Unsigned, signature []byte) []byte {
		e, err := decode(u.Body[20:])
		if err != nil {
			t.Fatal(err)
		}
		tx, err := e.transaction(signature)
		if err != nil {
			t.Fatal(err)
		}
		out, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	mine, err := k.Sign(u.Payload)
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := thief.Sign(u.Payload)
	if err != nil {
		t.Fatal(err)
	}
	another := prepared(t, c, k, money.Must(money.USDT, "101"))
	theirs, err := c.Sign(another, k)
	if err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "another's signature": raw(u, stolen), "the other half of s": raw(u, highS(mine)),
		"another amount": theirs.Raw, "the right signature under another amount": raw(another, mine), "bytes behind": append(bytes.Clone(signed.Raw), 0),
	} {
		if got, err := c.TakeSigned(u, bytes); err == nil {
			t.Errorf("%s: taken as %s", name, got.TxID)
		}
	}
	other := u
	other.Nonce++
	if _, err := c.TakeSigned(other, signed.Raw); err == nil {
		t.Error("another number was accepted")
	}
}

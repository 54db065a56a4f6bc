package chain

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"kivuko/exchange/money"
)

// whole is a joint transaction with every part set.
func whole() Joint {
	at := func(n uint64) Block {
		return Block{Number: n, ID: "block", Parent: "before", Time: time.Date(2026, 11, 21, 9, 0, 0, 1_000_000, time.UTC), Height: n - 1}
	}
	owners := []Owner{{Address: "a", Weight: 1}, {Address: "b", Weight: 2}}
	change := OwnersChange{Owners: owners, Threshold: 2, Control: &OwnersChange{Owners: owners, Threshold: 3}}
	return Joint{
		JointDraft: JointDraft{
			Account: "account", Transfer: &Transfer{From: "account", To: "b", Amount: money.Must(money.USDT, "12.5")}, Owners: &change,
			Quorum: Quorum{
				Owners: owners, Threshold: 2, Control: &Quorum{Owners: owners, Threshold: 3}, Permission: 2, Sequence: 1<<63 + 1,
				Head: Head{Latest: at(9), Final: at(7)}, Moving: true,
			},
			Sequence: 1<<63 + 1, Signers: []string{"a", "b"}, FeePayer: "payer", NonceAccount: "nonce", Life: time.Hour,
		},
		Digest: []byte{0, 1, 255}, Body: []byte(`{"x": 1}`), ID: "id", ExpiresAt: at(1).Time, RefBlock: "ref", Block: at(7),
		FeeLimit: money.Must(money.TRX, "3"),
	}
}

// everyPart fails for a part of a value that is zero: the round trip would not notice its loss.
func everyPart(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		everyPart(t, v.Elem(), path)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() && v.Type() != reflect.TypeFor[money.Amount]():
		for i := range v.NumField() {
			everyPart(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case v.IsZero() && !strings.HasPrefix(path, ".JointDraft.Quorum.Control.") && path != ".JointDraft.Owners.Control.Control":
		t.Errorf("%s is not set", path)
	}
}

// reordered is a text as a database returns it, which keeps the parts and not their order.
func reordered(t *testing.T, text []byte) []byte {
	t.Helper()
	var parts map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&parts); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAStoredJointTransactionHasEveryPart(t *testing.T) {
	j := whole()
	everyPart(t, reflect.ValueOf(j), "")
	text, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeJoint(reordered(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if !back.Transfer.Equal(*j.Transfer) || !back.FeeLimit.Equal(j.FeeLimit) {
		t.Errorf("the amounts are %s and %s", back.Transfer.Amount, back.FeeLimit)
	}
	back.Transfer.Amount, back.FeeLimit = j.Transfer.Amount, j.FeeLimit // compared above: == does not compare their values
	if !reflect.DeepEqual(back, j) {
		t.Errorf("it comes back as\n%+v\nwant\n%+v", back, j)
	}
}

// The names are those of stored rows: a changed one makes signatures of owners unreadable.
func TestTheNamesOfAStoredJointTransactionStay(t *testing.T) {
	text, err := whole().Encode()
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"account", "transfer", "owners", "quorum", "sequence", "signers", "fee_payer", "nonce_account", "life", "digest", "body", "id", "expires_at",
		"ref_block", "block", "fee_limit",
	} {
		if _, there := parts[name]; !there {
			t.Errorf("%s is missing", name)
		}
		delete(parts, name)
	}
	if len(parts) > 0 {
		t.Errorf("there are further parts: %v", parts)
	}
}

func TestAnotherTextIsNoJointTransaction(t *testing.T) {
	text, err := whole().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string]string{
		"nothing": "", "a number": "1", "two": string(text) + string(text), "half": string(text[:len(text)/2]),
		"a part that is not known": strings.Replace(string(text), `"account"`, `"module":"m","account"`, 1),
	} {
		if j, err := DecodeJoint([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", what, j)
		}
	}
}

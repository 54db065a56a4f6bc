package tron

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxBodyBytes bounds a request; a transaction in JSON is a few times its size.
const maxBodyBytes = 4 << 20

// arguments are a request's fields, from a JSON body or a query. The first field
// that does not read is kept in err.
type arguments struct {
	fields object
	err    error
}

func readArguments(r *http.Request) (*arguments, error) {
	a := &arguments{fields: object{}}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber() // an amount does not fit a float
		if err := d.Decode(&a.fields); err != nil {
			return nil, fmt.Errorf("parse the request: %w", err)
		}
	}
	for k, v := range r.URL.Query() {
		a.fields[k] = v[0]
	}
	return a, nil
}

func (a *arguments) fail(name, rule string) {
	if a.err == nil {
		a.err = fmt.Errorf("%s: %s", name, rule)
	}
}

func (a *arguments) text(name string) string {
	switch v := a.fields[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	a.fail(name, "want text")
	return ""
}

func (a *arguments) flag(name string) bool {
	v, _ := a.fields[name].(bool)
	return v || a.fields[name] == "true"
}

func (a *arguments) integer(name string) int64 {
	text := a.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.fail(name, "want a whole number")
	}
	return n
}

func (a *arguments) bytes(name string) []byte {
	b, err := hex.DecodeString(strings.TrimPrefix(a.text(name), "0x"))
	if err != nil {
		a.fail(name, "want hexadecimal digits")
	}
	return b
}

// visible reports whether addresses are in base58check, here and in the answer.
func (a *arguments) visible() bool { return a.flag("visible") }

// address reads base58check when "visible" is set and hexadecimal digits when it
// isn't, as java-tron does, so that a client with the wrong form finds out. A
// missing one is nil.
func (a *arguments) address(name string) []byte {
	text := a.text(name)
	if text == "" {
		return nil
	}
	if form := strings.HasPrefix(text, "T"); form != a.visible() {
		a.fail(name, map[bool]string{true: "INVALID base58 String", false: "INVALID hex String"}[a.visible()])
		return nil
	}
	parsed, err := ParseAddress(text)
	if err != nil {
		a.fail(name, err.Error())
		return nil
	}
	return parsed[:]
}

// transaction reads the JSON form of a transaction. As java-tron, it packs
// raw_data and ignores raw_data_hex: wallets change the first alone.
func (a *arguments) transaction() *core.Transaction {
	tx := &core.Transaction{RawData: &core.TransactionRaw{}}
	raw, ok := a.fields["raw_data"].(object)
	if !ok {
		a.fail("raw_data", "want an object")
	}
	if err := fill(tx.RawData.ProtoReflect(), raw, a.visible()); err != nil {
		a.fail("raw_data", err.Error())
	}
	list, _ := a.fields["signature"].([]any)
	for _, s := range list {
		text, _ := s.(string)
		b, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil {
			a.fail("signature", "want hexadecimal digits")
		}
		tx.Signature = append(tx.Signature, b)
	}
	return tx
}

// fill reads a message from the form that toJSON writes. A field that the
// message does not have is passed over, as java-tron does.
func fill(m protoreflect.Message, from object, visible bool) error {
	for name, value := range from {
		field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if field == nil || value == nil || field.IsMap() {
			continue
		}
		if !field.IsList() {
			v, err := valueOf(m.NewField(field), field, value, visible)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			m.Set(field, v)
			continue
		}
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s: want a list", name)
		}
		for _, one := range list {
			var empty protoreflect.Value
			if field.Kind() == protoreflect.MessageKind {
				empty = m.Mutable(field).List().NewElement()
			}
			v, err := valueOf(empty, field, one, visible)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			m.Mutable(field).List().Append(v)
		}
	}
	return nil
}

func valueOf(empty protoreflect.Value, field protoreflect.FieldDescriptor, value any, visible bool) (protoreflect.Value, error) {
	switch v := value.(type) {
	case object:
		if field.Kind() != protoreflect.MessageKind {
			return empty, errors.New("an object is too much")
		}
		if packed, ok := empty.Message().Interface().(*anypb.Any); ok {
			return empty, fillAny(packed, v, visible)
		}
		return empty, fill(empty.Message(), v, visible)
	case bool:
		if field.Kind() == protoreflect.BoolKind {
			return protoreflect.ValueOfBool(v), nil
		}
	case json.Number:
		return numberOf(field, v)
	case string:
		return textOf(field, v, visible)
	}
	return empty, errors.New("want another kind of value")
}

// fillAny reads a contract's parameter.
func fillAny(packed *anypb.Any, from object, visible bool) error {
	url, _ := from["type_url"].(string)
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return fmt.Errorf("type_url %q: %w", url, err)
	}
	value, _ := from["value"].(object)
	m := kind.New()
	if err := fill(m, value, visible); err != nil {
		return err
	}
	return anypb.MarshalFrom(packed, m.Interface(), deterministic)
}

func numberOf(field protoreflect.FieldDescriptor, v json.Number) (protoreflect.Value, error) {
	n, err := v.Int64()
	if err != nil {
		return protoreflect.Value{}, errors.New("want a whole number")
	}
	switch field.Kind() {
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n), nil
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)), nil
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), nil
	}
	return protoreflect.Value{}, errors.New("a number is too much")
}

func textOf(field protoreflect.FieldDescriptor, text string, visible bool) (protoreflect.Value, error) {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.EnumKind:
		if text == strings.ToLower(text) { // as compilers write an ABI
			text = capital(text)
		}
		value := field.Enum().Values().ByName(protoreflect.Name(text))
		if value == nil {
			return protoreflect.Value{}, fmt.Errorf("%s has no %q", field.Enum().Name(), text)
		}
		return protoreflect.ValueOfEnum(value.Number()), nil
	case protoreflect.BytesKind:
		if visible && textFields[field.FullName()] {
			return protoreflect.ValueOfBytes([]byte(text)), nil
		}
		if visible && addressFields[field.Name()] {
			a, err := ParseAddress(text)
			return protoreflect.ValueOfBytes(a[:]), err
		}
		raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		return protoreflect.ValueOfBytes(raw), err
	}
	return protoreflect.Value{}, errors.New("text is too much")
}

func (a *arguments) transactionHex() *core.Transaction {
	tx := &core.Transaction{}
	if err := proto.Unmarshal(a.bytes("transaction"), tx); err != nil {
		a.fail("transaction", "want an encoded Transaction")
	}
	return tx
}

func (a *arguments) trigger() *core.TriggerSmartContract {
	m := &core.TriggerSmartContract{
		OwnerAddress: a.address("owner_address"), ContractAddress: a.address("contract_address"),
		Data: a.bytes("data"), CallValue: a.integer("call_value"),
	}
	if selector := a.text("function_selector"); selector != "" {
		m.Data = append(crypto.Keccak256([]byte(selector))[:4], a.bytes("parameter")...)
	}
	return m
}

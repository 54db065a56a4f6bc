package tron

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// object is a JSON object.
type object = map[string]any

// addressFields are the fields that hold addresses, and textFields those that
// hold text in bytes. A request with "visible" gets the first in base58check and
// the second as text (java-tron HttpSelfFormatFieldName).
var (
	addressFields = map[protoreflect.Name]bool{
		"address": true, "owner_address": true, "to_address": true, "account_address": true, "receiver_address": true,
		"contract_address": true, "origin_address": true, "witness_address": true, "approved_list": true, "from": true, "to": true,
		"fromAddress": true, "toAddress": true, "account": true, "fromAccounts": true, "toAccounts": true,
		"caller_address": true, "transferTo_address": true,
	}
	textFields = map[protoreflect.FullName]bool{
		"protocol.Return.message": true, "protocol.TransactionInfo.resMessage": true, "protocol.Account.account_name": true,
	}
)

// toJSON writes a message the way java-tron's HTTP API does: protobuf field
// names, bytes in hexadecimal, enums by name, an Any as value and type_url, and
// nothing for what is at its default.
func toJSON(m proto.Message, visible bool) object {
	out := object{}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			out[string(field.Name())] = mapJSON(field, v.Map(), visible)
		case field.IsList():
			list := make([]any, v.List().Len())
			for i := range list {
				list[i] = scalarJSON(field, v.List().Get(i), visible)
			}
			out[string(field.Name())] = list
		default:
			out[string(field.Name())] = scalarJSON(field, v, visible)
		}
		return true
	})
	return out
}

// mapJSON writes a map as a list of keys with their values, in order.
func mapJSON(field protoreflect.FieldDescriptor, m protoreflect.Map, visible bool) []object {
	list := []object{}
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		list = append(list, object{"key": k.String(), "value": scalarJSON(field.MapValue(), v, visible)})
		return true
	})
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a["key"].(string), b["key"].(string)) })
	return list
}

func bytesJSON(field protoreflect.FieldDescriptor, raw []byte, visible bool) string {
	switch {
	case visible && textFields[field.FullName()]:
		return string(raw)
	case visible && addressFields[field.Name()]:
		if len(raw) == common.AddressLength { // of a log
			return addressOfVM(common.Address(raw)).String()
		}
		if a, ok := addressOf(raw); ok {
			return a.String()
		}
	}
	return hex.EncodeToString(raw)
}

func scalarJSON(field protoreflect.FieldDescriptor, v protoreflect.Value, visible bool) any {
	switch field.Kind() {
	case protoreflect.BytesKind:
		return bytesJSON(field, v.Bytes(), visible)
	case protoreflect.EnumKind:
		if value := field.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
		return int32(v.Enum())
	case protoreflect.MessageKind:
		packed, ok := v.Message().Interface().(*anypb.Any)
		if !ok {
			return toJSON(v.Message().Interface(), visible)
		}
		inner, err := packed.UnmarshalNew()
		if err != nil {
			return object{"value": hex.EncodeToString(packed.Value), "type_url": packed.TypeUrl}
		}
		return object{"value": toJSON(inner, visible), "type_url": packed.TypeUrl}
	}
	return v.Interface()
}

func transactionJSON(tx *core.Transaction, visible bool) object {
	if tx.GetRawData() == nil {
		return object{}
	}
	id := TransactionID(tx)
	out := object{
		"visible": visible, "txID": id.String(), "raw_data": toJSON(tx.RawData, visible), "raw_data_hex": hex.EncodeToString(encode(tx.RawData)),
	}
	if len(tx.Signature) > 0 {
		signatures := make([]string, len(tx.Signature))
		for i, s := range tx.Signature {
			signatures[i] = hex.EncodeToString(s)
		}
		out["signature"] = signatures
	}
	if len(tx.Ret) > 0 {
		out["ret"] = []any{object{"contractRet": tx.Ret[0].ContractRet.String()}}
	}
	return out
}

func blockJSON(b *block, detail, visible bool) object {
	if b == nil {
		return object{}
	}
	header := toJSON(b.message.BlockHeader, visible)
	raw := header["raw_data"].(object)
	raw["number"], raw["timestamp"] = b.number, b.time // also when zero
	out := object{"blockID": b.id.String(), "block_header": header}
	if detail && len(b.message.Transactions) > 0 {
		list := make([]object, len(b.message.Transactions))
		for i, tx := range b.message.Transactions {
			list[i] = transactionJSON(tx, visible)
		}
		out["transactions"] = list
	}
	return out
}

func blocksJSON(blocks []*block, visible bool) object {
	list := make([]object, len(blocks))
	for i, b := range blocks {
		list[i] = blockJSON(b, true, visible)
	}
	return object{"block": list}
}

func returnJSON(r *api.Return, visible bool) object {
	out := object{}
	if r.Result {
		out["result"] = true
	}
	if r.Code != api.Return_SUCCESS {
		out["code"] = r.Code.String()
	}
	if len(r.Message) > 0 {
		out["message"] = toJSON(r, visible)["message"]
	}
	return out
}

// writeJSON answers a request. An error is java-tron's: status 200 and "Error".
func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

var errNoSuchMethod = errors.New("no such method on the development node")

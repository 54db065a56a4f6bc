package storetest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Handover is a transaction that gives an account on TRON to its owners, with an invented signature. Another number makes another one.
func Handover(t testing.TB, a exchange.MultisigAccount, expires time.Time, number byte) exchange.MultisigHandover {
	t.Helper()
	expires = expires.UTC().Truncate(time.Millisecond)
	body := slices.Concat([]byte{0x0a, 2, 1, number, 0x22, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x40}, number64(expires.UnixMilli()), Giving(a), []byte{0x70}, number64(expires.Add(-time.Minute).UnixMilli()))
	return HandoverOf(a.ID, body, expires)
}

// HandoverOf is a transaction of an account that says what a body says.
func HandoverOf(account uuid.UUID, body []byte, expires time.Time) exchange.MultisigHandover {
	digest := sha256.Sum256(body)
	id := hex.EncodeToString(digest[:])
	return exchange.MultisigHandover{
		ID: uuid.Must(uuid.NewV7()), AccountID: account, TxID: id, Body: body, ExpiresAt: expires,
		Joint: []byte(`{"id": "` + id + `", "body": "` + base64.StdEncoding.EncodeToString(body) + `"}`),
		Raw:   slices.Concat(part(0x0a, body), part(0x12, make([]byte, 65))),
	}
}

// Giving is what such a transaction does, as its bytes have it.
func Giving(a exchange.MultisigAccount) []byte {
	owners := slices.SortedFunc(slices.Values(a.Owners), func(x, y exchange.MultisigOwner) int { return cmp.Compare(x.Address, y.Address) })
	var keys []byte
	for _, o := range owners {
		keys = append(keys, part(0x3a, part(0x0a, plainAddress(o.Address)), []byte{0x10}, number64(int64(o.Weight)))...)
	}
	operations := append([]byte{2, 0, 0, 0x80}, make([]byte, 28)...)
	owner := part(0x12, part(0x1a, []byte("owner")), []byte{0x20}, number64(int64(a.ControlThreshold)), keys)
	active := part(0x22, []byte{8, 2, 0x10, 2}, part(0x1a, []byte("payments")), []byte{0x20}, number64(int64(a.Threshold)), part(0x32, operations), keys)
	update := part(0x12, part(0x0a, plainAddress(a.Address)), owner, active)
	return part(0x5a, []byte{8, 46}, part(0x12, part(0x0a, []byte("type.googleapis.com/protocol.AccountPermissionUpdateContract")), update))
}

func part(tag byte, content ...[]byte) []byte {
	all := bytes.Join(content, nil)
	return slices.Concat([]byte{tag}, number64(int64(len(all))), all)
}

func number64(n int64) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// plainAddress is an address on TRON without its checksum. An invented one has some bytes too.
func plainAddress(address string) []byte {
	const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	n := new(big.Int)
	for _, c := range address {
		n.Add(n.Mul(n, big.NewInt(58)), big.NewInt(int64(max(strings.IndexRune(digits, c), 0))))
	}
	n.Mod(n, new(big.Int).Lsh(big.NewInt(1), 200))
	return n.FillBytes(make([]byte, 25))[:21]
}

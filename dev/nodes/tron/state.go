package tron

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// space says what a state key names.
type space byte

const (
	spaceAccount          space = iota + 1 // *core.Account
	spaceContract                          // *core.SmartContract
	spaceEnergyFactor                      // int64, ten-thousandths above 1.0
	spaceCode                              // []byte
	spaceNonce                             // uint64
	spaceSlot                              // common.Hash, never zero
	spaceDelegation                        // *core.DelegatedResource, free to take back
	spaceLockedDelegation                  // *core.DelegatedResource, locked until a time
)

// stateKey names one value of the state. word is the storage slot, or the
// receiver of a delegation.
type stateKey struct {
	space   space
	address Address
	word    [32]byte
}

type change struct {
	key stateKey
	old any
}

// state is the chain's state as one map of immutable values. Every write notes
// the value it replaced, so a transaction, a block or a whole fork is undone by
// writing the old values back; nothing is ever copied as a whole.
//
// A state with a base is an overlay: reads fall through, writes stay in it.
type state struct {
	values  map[stateKey]any
	journal []change
	base    func(stateKey) any
}

func newState() *state { return &state{values: map[stateKey]any{}} }

// overlay returns a scratch state on top of base, for runs that must leave no
// trace.
func overlay(base func(stateKey) any) *state {
	return &state{values: map[stateKey]any{}, base: base}
}

func (s *state) get(k stateKey) any {
	v, ok := s.values[k]
	if !ok && s.base != nil {
		return s.base(k)
	}
	return v
}

// put stores a value; nil removes it.
func (s *state) put(k stateKey, v any) {
	s.journal = append(s.journal, change{k, s.get(k)})
	s.write(k, v)
}

func (s *state) write(k stateKey, v any) {
	if v == nil && s.base == nil {
		delete(s.values, k)
		return
	}
	s.values[k] = v
}

func (s *state) mark() int { return len(s.journal) }

func (s *state) revert(mark int) {
	for i := len(s.journal) - 1; i >= mark; i-- {
		s.write(s.journal[i].key, s.journal[i].old)
	}
	s.journal = s.journal[:mark]
}

// undo is what a block replaced: the value each key it touched had before.
type undo map[stateKey]any

// cut ends the open journal and returns it in compact form.
func (s *state) cut() undo {
	u := make(undo)
	for _, c := range s.journal {
		if _, ok := u[c.key]; !ok {
			u[c.key] = c.old
		}
	}
	s.journal = nil
	return u
}

func (s *state) apply(u undo) {
	for k, old := range u {
		s.write(k, old)
	}
}

// before returns a reader of the state as it was before the given blocks, which
// are the newest ones, oldest first.
func (s *state) before(blocks []undo) func(stateKey) any {
	return func(k stateKey) any {
		for _, u := range blocks {
			if old, ok := u[k]; ok {
				return old
			}
		}
		for _, c := range s.journal {
			if c.key == k {
				return c.old
			}
		}
		return s.get(k)
	}
}

// digest is a hash over every value: two nodes with the same digest hold the
// same state.
func (s *state) digest() Hash {
	keys := make([]stateKey, 0, len(s.values))
	for k := range s.values {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b stateKey) int {
		return cmp.Or(cmp.Compare(a.space, b.space), slices.Compare(a.address[:], b.address[:]), slices.Compare(a.word[:], b.word[:]))
	})
	h := sha256.New()
	var size [8]byte
	for _, k := range keys {
		h.Write([]byte{byte(k.space)})
		h.Write(k.address[:])
		h.Write(k.word[:])
		v := encodeValue(s.values[k])
		binary.BigEndian.PutUint64(size[:], uint64(len(v)))
		h.Write(size[:])
		h.Write(v)
	}
	return Hash(h.Sum(nil))
}

func encodeValue(v any) []byte {
	switch x := v.(type) {
	case proto.Message:
		return encode(x)
	case []byte:
		return x
	case common.Hash:
		return x[:]
	case int64:
		return binary.BigEndian.AppendUint64(nil, uint64(x))
	case uint64:
		return binary.BigEndian.AppendUint64(nil, x)
	}
	panic(fmt.Sprintf("tron: state holds a %T", v))
}

func accountKey(a Address) stateKey { return stateKey{space: spaceAccount, address: a} }

// account returns nil when the account was never activated. The result is
// shared: change it through edit alone.
func (s *state) account(a Address) *core.Account {
	return asAccount(s.get(accountKey(a)))
}

func asAccount(v any) *core.Account {
	x, _ := v.(*core.Account)
	return x
}

// edit changes a copy of an existing account and stores it.
func (s *state) edit(a Address, f func(*core.Account)) {
	x := proto.Clone(s.account(a)).(*core.Account)
	f(x)
	s.put(accountKey(a), x)
}

func (s *state) contract(a Address) *core.SmartContract {
	x, _ := s.get(stateKey{space: spaceContract, address: a}).(*core.SmartContract)
	return x
}

func (s *state) energyFactor(a Address) int64 {
	x, _ := s.get(stateKey{space: spaceEnergyFactor, address: a}).(int64)
	return x
}

func (s *state) setEnergyFactor(a Address, factor int64) {
	var v any
	if factor != 0 {
		v = factor
	}
	s.put(stateKey{space: spaceEnergyFactor, address: a}, v)
}

// debit takes sun from an account; false when the account cannot pay.
func (s *state) debit(a Address, sun int64) bool {
	if sun == 0 {
		return true
	}
	x := s.account(a)
	if x == nil || x.Balance < sun {
		return false
	}
	s.edit(a, func(x *core.Account) { x.Balance -= sun })
	return true
}

// credit adds sun and activates the account when it is new.
func (s *state) credit(a Address, sun, now int64) {
	if s.account(a) == nil {
		s.createAccount(a, core.AccountType_Normal, now)
	}
	s.edit(a, func(x *core.Account) { x.Balance += sun })
}

func (s *state) createAccount(a Address, kind core.AccountType, now int64) {
	x := &core.Account{Address: slices.Clone(a[:]), Type: kind, CreateTime: now}
	if kind == core.AccountType_Normal {
		x.OwnerPermission = defaultOwnerPermission(a)
		x.ActivePermission = []*core.Permission{defaultActivePermission(a)}
	}
	s.put(accountKey(a), x)
}

package tron

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"

	"kivuko/chain"
)

// Permissions of an account (java-tron AccountPermissionUpdateActuator): the owner permission may do everything, also change
// the permissions; each active permission may do what its operations allow, of which bit n stands for the contract type n.
const (
	maxOwners        = 5 // getTotalSignNum
	ownerPermission  = 0
	firstActive      = 2 // actives are numbered from here, in their order
	operationsLength = 32
	ownerName        = "owner"
	paymentsName     = "payments"
)

// payments are the operations of the active permission that the owners' payments use: transfers of TRX and calls of
// contracts. The chain can't limit the calls to tokens. What is signed is, because it is built here.
var payments = operations(core.Transaction_Contract_TransferContract, core.Transaction_Contract_TriggerSmartContract)

func operations(kinds ...core.Transaction_Contract_ContractType) []byte {
	bits := make([]byte, operationsLength)
	for _, k := range kinds {
		bits[k/8] |= 1 << (k % 8)
	}
	return bits
}

func allows(p *core.Permission, kind core.Transaction_Contract_ContractType) bool {
	bits := p.GetOperations()
	return int(kind/8) < len(bits) && bits[kind/8]&(1<<(kind%8)) != 0
}

// signsAlone returns why an account's own key can't sign for it alone under its owner permission, or nil. An account without
// an owner permission has the default one, its own key.
func signsAlone(account *core.Account, own accountID) error {
	p := account.GetOwnerPermission()
	if p == nil {
		return nil
	}
	var weight int64
	for _, k := range p.GetKeys() {
		if id, ok := fromFull(k.GetAddress()); ok && id == own {
			weight = k.GetWeight()
		}
	}
	switch {
	case weight == 0:
		return chain.Errorf(chain.ReasonForeign, "the key of %s can't sign for it any more: its owner permission names other keys", own)
	case weight < p.GetThreshold():
		return chain.Errorf(chain.ReasonForeign, "the key of %s can't sign for it alone: its owner permission wants a weight of %d, and the key has %d",
			own, p.GetThreshold(), weight)
	}
	return nil
}

// quorumOf reads the owners of an account of several owners. It accepts one form, in which payments need the one active
// permission, and nothing weaker than it can change the owners. ReasonForeign names the rule that an account breaks.
func quorumOf(account *core.Account) (chain.Quorum, error) {
	refuse := func(format string, args ...any) (chain.Quorum, error) {
		return chain.Quorum{}, chain.Errorf(chain.ReasonForeign, format, args...)
	}
	owner, actives := account.GetOwnerPermission(), account.GetActivePermission()
	switch {
	case len(account.GetAddress()) == 0:
		return refuse("the account does not exist: it was never activated")
	case account.GetType() == core.AccountType_Contract:
		return refuse("the account is a contract")
	case account.GetIsWitness() || account.GetWitnessPermission() != nil:
		return refuse("the account has a witness permission")
	case owner == nil:
		return refuse("the account has one owner, its own key")
	}
	active, err := paying(actives)
	if err != nil {
		return chain.Quorum{}, err
	}
	q := chain.Quorum{Permission: active.GetId()}
	if q.Owners, q.Threshold, err = keysOf(active); err != nil {
		return chain.Quorum{}, err
	}
	control := chain.Quorum{}
	if control.Owners, control.Threshold, err = keysOf(owner); err != nil {
		return chain.Quorum{}, err
	}
	if !slices.Equal(q.Owners, control.Owners) || q.Threshold != control.Threshold {
		q.Control = &control
	}
	if err := checkQuorum(q); err != nil {
		return refuse("%s", err)
	}
	return q, nil
}

// paying returns the permission that payments use: it must be the only active one, and allow nothing else.
func paying(actives []*core.Permission) (*core.Permission, error) {
	movers := 0
	for _, p := range actives {
		if allows(p, core.Transaction_Contract_AccountPermissionUpdateContract) {
			return nil, chain.Errorf(chain.ReasonForeign, "the active permission %d may change the permissions (operation %d)",
				p.GetId(), core.Transaction_Contract_AccountPermissionUpdateContract)
		}
		if allows(p, core.Transaction_Contract_TransferContract) || allows(p, core.Transaction_Contract_TriggerSmartContract) {
			movers++
		}
	}
	switch {
	case movers > 1:
		return nil, chain.Errorf(chain.ReasonForeign, "%d active permissions may move money; only one may", movers)
	case len(actives) != 1:
		return nil, chain.Errorf(chain.ReasonForeign, "the account has %d active permissions; it must have one, for payments", len(actives))
	case !slices.Equal(actives[0].GetOperations(), payments):
		return nil, chain.Errorf(chain.ReasonForeign, "the active permission %d has the operations %x; those for payments are %x",
			actives[0].GetId(), actives[0].GetOperations(), payments)
	case actives[0].GetId() < firstActive:
		return nil, chain.Errorf(chain.ReasonForeign, "the active permission has the number %d", actives[0].GetId())
	}
	return actives[0], nil
}

// keysOf reads the owners of a permission, ordered by address.
func keysOf(p *core.Permission) ([]chain.Owner, uint32, error) {
	if p.GetThreshold() <= 0 || p.GetThreshold() > math.MaxUint32 {
		return nil, 0, chain.Errorf(chain.ReasonForeign, "permission %d wants a weight of %d", p.GetId(), p.GetThreshold())
	}
	var owners []chain.Owner
	for _, k := range p.GetKeys() {
		id, ok := fromFull(k.GetAddress())
		if !ok || k.GetWeight() <= 0 || k.GetWeight() > math.MaxUint32 {
			return nil, 0, chain.Errorf(chain.ReasonForeign, "permission %d has the key %s with the weight %d",
				p.GetId(), hex.EncodeToString(k.GetAddress()), k.GetWeight())
		}
		owners = append(owners, chain.Owner{Address: id.String(), Weight: uint32(k.GetWeight())})
	}
	slices.SortFunc(owners, byAddress)
	return owners, uint32(p.GetThreshold()), nil
}

// byAddress orders owners. The base58 forms have the order of the bytes, because all have the same length.
func byAddress(a, b chain.Owner) int { return cmp.Compare(a.Address, b.Address) }

// alone reads the owner of an account that its own key controls: of one that is to get several owners. All permissions are
// replaced then, so an account with another one, which would be lost, is refused.
func alone(account *core.Account, own accountID) (chain.Quorum, error) {
	err := signsAlone(account, own)
	switch actives := account.GetActivePermission(); {
	case err != nil:
		return chain.Quorum{}, err
	case len(account.GetOwnerPermission().GetKeys()) > 1, account.GetIsWitness(), account.GetWitnessPermission() != nil,
		len(actives) > 1, len(actives) == 1 && !onlyKey(actives[0], own):
		return chain.Quorum{}, chain.Errorf(chain.ReasonForeign, "%s is not an ordinary account: it has permissions of other keys", own)
	}
	return chain.Quorum{Owners: []chain.Owner{{Address: own.String(), Weight: 1}}, Threshold: 1}, nil
}

func onlyKey(p *core.Permission, own accountID) bool {
	return len(p.GetKeys()) == 1 && slices.Equal(p.GetKeys()[0].GetAddress(), own.full())
}

// controlling is the quorum that may change the owners.
func controlling(q chain.Quorum) chain.Quorum {
	if q.Control != nil {
		return chain.Quorum{Owners: q.Control.Owners, Threshold: q.Control.Threshold}
	}
	return chain.Quorum{Owners: q.Owners, Threshold: q.Threshold}
}

// same reports whether two quorums have the same owners and thresholds, for payments and for changes.
func same(a, b chain.Quorum) bool {
	x, y := controlling(a), controlling(b)
	return slices.Equal(a.Owners, b.Owners) && a.Threshold == b.Threshold && a.Permission == b.Permission &&
		slices.Equal(x.Owners, y.Owners) && x.Threshold == y.Threshold
}

// checkQuorum refuses owners with which the account would not be one of several owners, or whose changes need less than their
// payments.
func checkQuorum(q chain.Quorum) error {
	control := controlling(q)
	if err := checkOwners(q); err != nil {
		return fmt.Errorf("the owners for payments: %w", err)
	}
	if err := checkOwners(control); err != nil {
		return fmt.Errorf("the owners for changes of the owners: %w", err)
	}
	switch {
	case len(q.Owners) == 1:
		return errors.New("one key alone makes payments; an account of several owners has at least two")
	case control.Threshold < q.Threshold:
		return fmt.Errorf("changes of the owners want a weight of %d, which is less than the %d of payments", control.Threshold, q.Threshold)
	case fewest(control) < fewest(q):
		return fmt.Errorf("changes of the owners need %d keys, which is less than the %d of payments", fewest(control), fewest(q))
	}
	return nil
}

// checkOwners checks the rules of the chain for the keys of a permission.
func checkOwners(q chain.Quorum) error {
	if len(q.Owners) == 0 || len(q.Owners) > maxOwners {
		return fmt.Errorf("there are %d, and TRON allows 1 to %d", len(q.Owners), maxOwners)
	}
	var sum uint64
	for i, o := range q.Owners {
		id, err := parse(o.Address)
		switch {
		case err != nil:
			return fmt.Errorf("%q %w", o.Address, err)
		case burns(id):
			return fmt.Errorf("%s has no key", o.Address)
		case o.Weight == 0:
			return fmt.Errorf("%s has no weight", o.Address)
		case i > 0 && q.Owners[i-1].Address == o.Address:
			return fmt.Errorf("%s is named twice", o.Address)
		case i > 0 && q.Owners[i-1].Address > o.Address:
			return errors.New("they are not ordered by address")
		}
		sum += uint64(o.Weight)
	}
	if q.Threshold == 0 || sum < uint64(q.Threshold) {
		return fmt.Errorf("the threshold is %d, and their weights sum up to %d", q.Threshold, sum)
	}
	return nil
}

// fewest is the least number of owners who reach the threshold.
func fewest(q chain.Quorum) int { return reach(q, func(a, b uint32) int { return cmp.Compare(b, a) }) }

// most is the largest number of owners that can be needed to reach it.
func most(q chain.Quorum) int { return reach(q, cmp.Compare[uint32]) }

// reach counts the owners who reach the threshold when they sign in an order of their weights.
func reach(q chain.Quorum, order func(a, b uint32) int) int {
	owners := slices.Clone(q.Owners)
	slices.SortStableFunc(owners, func(a, b chain.Owner) int { return order(a.Weight, b.Weight) })
	var sum uint64
	for i, o := range owners {
		if sum += uint64(o.Weight); sum >= uint64(q.Threshold) {
			return i + 1
		}
	}
	return len(owners) + 1
}

// after is the quorum that a change makes.
func after(change chain.OwnersChange) chain.Quorum {
	q := chain.Quorum{Owners: ordered(change.Owners), Threshold: change.Threshold, Permission: firstActive}
	if change.Control != nil {
		q.Control = &chain.Quorum{Owners: ordered(change.Control.Owners), Threshold: change.Control.Threshold}
	}
	return q
}

func ordered(owners []chain.Owner) []chain.Owner {
	return slices.SortedStableFunc(slices.Values(owners), byAddress)
}

// setOwners sets the contract that gives an account other owners. It names all permissions: those that it doesn't name would
// be lost. Its keys are ordered, so that a change has one encoding.
func setOwners(raw *core.TransactionRaw, account accountID, q chain.Quorum) error {
	owner := &core.Permission{Type: core.Permission_Owner, Id: ownerPermission, PermissionName: ownerName}
	if err := setKeys(owner, controlling(q)); err != nil {
		return err
	}
	active := &core.Permission{Type: core.Permission_Active, Id: firstActive, PermissionName: paymentsName, Operations: payments}
	if err := setKeys(active, q); err != nil {
		return err
	}
	return setContract(raw, core.Transaction_Contract_AccountPermissionUpdateContract, &core.AccountPermissionUpdateContract{
		OwnerAddress: account.full(), Owner: owner, Actives: []*core.Permission{active},
	})
}

func setKeys(p *core.Permission, q chain.Quorum) error {
	p.Threshold = int64(q.Threshold)
	for _, o := range q.Owners {
		key, err := parse(o.Address)
		if err != nil {
			return chain.Errorf(chain.ReasonAddress, "the owner %q %s", o.Address, err)
		}
		p.Keys = append(p.Keys, &core.Key{Address: key.full(), Weight: int64(o.Weight)})
	}
	return nil
}

package ethereum

import (
	"bytes"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"kivuko/chain"
)

// ownerStep is one call by which a Safe changes its owners (OwnerManager). Both owners set: old is replaced by new.
type ownerStep struct {
	old, new  common.Address
	threshold uint32
}

// The methods of OwnerManager.
const (
	swapSignature      = "swapOwner(address,address,address)"
	addSignature       = "addOwnerWithThreshold(address,uint256)"
	removeSignature    = "removeOwner(address,address,uint256)"
	thresholdSignature = "changeThreshold(uint256)"
)

// follows reports whether the contract's call needs the owner before the one that goes, in its list.
func (s ownerStep) follows() bool { return s.old != (common.Address{}) }

// calldata is the call. previous is the owner before old in the contract's list.
func (s ownerStep) calldata(previous common.Address) []byte {
	threshold := static(numberWord(big.NewInt(int64(s.threshold))))
	added, gone, before := static(addressWord(s.new)), static(addressWord(s.old)), static(addressWord(previous))
	switch none := (common.Address{}); {
	case s.old != none && s.new != none:
		return encodeCall(swapSignature, before, gone, added)
	case s.old != none:
		return encodeCall(removeSignature, before, gone, threshold)
	case s.new != none:
		return encodeCall(addSignature, added, threshold)
	}
	return encodeCall(thresholdSignature, threshold)
}

// ownerSteps are the steps from a quorum to another one, always the same for the same two: owners are replaced as long as both
// some go and some come, then the rest is added or removed, and the last step leaves the new threshold.
func ownerSteps(from chain.Quorum, to chain.OwnersChange) ([]ownerStep, error) {
	before, err := addressesOf(from.Owners)
	if err != nil {
		return nil, err
	}
	after, err := addressesOf(to.Owners)
	if err != nil {
		return nil, err
	}
	gone := slices.DeleteFunc(slices.Clone(before), func(a common.Address) bool { return slices.Contains(after, a) })
	come := slices.DeleteFunc(slices.Clone(after), func(a common.Address) bool { return slices.Contains(before, a) })
	var steps []ownerStep
	count, threshold := uint32(len(before)), from.Threshold
	for ; len(gone) > 0 && len(come) > 0; gone, come = gone[1:], come[1:] {
		steps = append(steps, ownerStep{old: gone[0], new: come[0]})
	}
	for _, a := range come {
		count++
		threshold = min(to.Threshold, count)
		steps = append(steps, ownerStep{new: a, threshold: threshold})
	}
	for _, a := range gone {
		count--
		threshold = min(to.Threshold, count)
		steps = append(steps, ownerStep{old: a, threshold: threshold})
	}
	if threshold != to.Threshold {
		steps = append(steps, ownerStep{threshold: to.Threshold})
	}
	if len(steps) == 0 {
		return nil, chain.Errorf(chain.ReasonUnsupported, "the account has these owners and this threshold already")
	}
	return steps, nil
}

// addressesOf reads owners of a quorum or a change, in the order of their addresses.
func addressesOf(owners []chain.Owner) ([]common.Address, error) {
	all := make([]common.Address, 0, len(owners))
	for _, o := range owners {
		a, err := parse(o.Address)
		if err != nil {
			return nil, chain.Errorf(chain.ReasonAddress, "the owner %s", err)
		}
		if o.Weight != 1 || o.Address != a.Hex() {
			return nil, chain.Errorf(chain.ReasonUnsupported,
				"the owner %s of weight %d: on Ethereum each owner counts once, by its canonical address", quote(o.Address), o.Weight)
		}
		all = append(all, a)
	}
	slices.SortFunc(all, common.Address.Cmp)
	return all, nil
}

// checkOwners refuses owners and a threshold that no Safe can have.
func checkOwners(account common.Address, owners []chain.Owner, threshold uint32) error {
	all, err := addressesOf(owners)
	if err != nil {
		return err
	}
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		return chain.Errorf(chain.ReasonUnsupported, "an owner is named twice")
	}
	for _, a := range all {
		if burns(a) || a == account {
			return chain.Errorf(chain.ReasonUnsupported, "%s can't be an owner", a)
		}
	}
	if len(all) > maxSafeOwners || threshold < 1 || int(threshold) > len(all) {
		return chain.Errorf(chain.ReasonUnsupported,
			"%d of %d owners: want a threshold of at least one and at most the owners, of whom there can be %d", threshold, len(all), maxSafeOwners)
	}
	return nil
}

// places finds the owner before each step's old one. list is the contract's list when the first step is made.
func places(steps []ownerStep, list []common.Address) ([]common.Address, error) {
	list = slices.Clone(list)
	previous := make([]common.Address, len(steps))
	for i, s := range steps {
		switch at := slices.Index(list, s.old); {
		case !s.follows():
			if s.new != (common.Address{}) {
				list = slices.Insert(list, 0, s.new) // the contract adds at the front
			}
		case at < 0:
			return nil, chain.Errorf(chain.ReasonForeign, "%s is no owner", s.old)
		default:
			previous[i] = sentinel
			if at > 0 {
				previous[i] = list[at-1]
			}
			if list[at] = s.new; s.new == (common.Address{}) {
				list = slices.Delete(list, at, at+1)
			}
		}
	}
	return previous, nil
}

const multiSendSignature = "multiSend(bytes)"

// ownersTx is the SafeTx that takes the steps: a call of the account to itself, or several that are made together.
func ownersTx(account common.Address, steps []ownerStep, previous []common.Address, nonce uint64) safeTx {
	if len(steps) == 1 {
		return safeCall(account, new(big.Int), steps[0].calldata(previous[0]), nonce)
	}
	var packed []byte
	for i, s := range steps {
		packed = append(packed, packCall(account, s.calldata(previous[i]))...)
	}
	t := safeCall(safeMultiSend.address, new(big.Int), encodeCall(multiSendSignature, bytesArgument(packed)), nonce)
	t.operation = operationDelegateCall
	return t
}

// packCall is a call without ether in the encoding of multiSend: operation, recipient, value, length, data.
func packCall(to common.Address, data []byte) []byte {
	return bytes.Join([][]byte{{operationCall}, to.Bytes(), numberWord(new(big.Int)), numberWord(big.NewInt(int64(len(data)))), data}, nil)
}

// placesIn reads the owners before each step's old one out of a SafeTx that takes these steps. They are the one thing in it
// that neither changes what it does nor follows from the account's owners: with a wrong one the contract refuses the call.
func placesIn(account common.Address, steps []ownerStep, data []byte) ([]common.Address, bool) {
	calls := [][]byte{data}
	if len(steps) > 1 {
		input, ours := bytes.CutPrefix(data, selector(multiSendSignature))
		packed, ok := bytesAt(input, big.NewInt(wordLength))
		if !ours || !ok {
			return nil, false
		}
		calls = nil
		for _, s := range steps {
			size := len(packCall(account, s.calldata(common.Address{})))
			if len(packed) < size {
				return nil, false
			}
			calls, packed = append(calls, packed[size-len(s.calldata(common.Address{})):size]), packed[size:]
		}
	}
	previous := make([]common.Address, len(steps))
	for i, s := range steps {
		const selectorLength = 4
		if len(calls[i]) < selectorLength+wordLength {
			return nil, false
		}
		if s.follows() {
			previous[i] = common.BytesToAddress(calls[i][selectorLength : selectorLength+wordLength])
		}
	}
	return previous, true
}

package tron

import (
	"bytes"
	"math"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// Staking and delegation after java-tron's FreezeBalanceV2, UnfreezeBalanceV2,
// WithdrawExpireUnfreeze, DelegateResource and UnDelegateResource actuators.

const resourceError = "ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]"

func isStakeable(r core.ResourceCode) bool {
	return r == core.ResourceCode_BANDWIDTH || r == core.ResourceCode_ENERGY
}

func missingAccount(a Address) error { return invalid("Account[%s] does not exist", a.Hex()) }

func (s *state) validateFreeze(owner Address, m *core.FreezeBalanceV2Contract) (int64, error) {
	x := s.account(owner)
	switch {
	case x == nil:
		return 0, missingAccount(owner)
	case m.FrozenBalance <= 0:
		return 0, invalid("frozenBalance must be positive")
	case m.FrozenBalance < sunPerTRX:
		return 0, invalid("frozenBalance must be greater than or equal to 1 TRX")
	case m.FrozenBalance > x.Balance:
		return 0, invalid("frozenBalance must be less than or equal to accountBalance")
	case !isStakeable(m.Resource):
		return 0, invalid(resourceError)
	}
	return 0, nil
}

// addStake changes the staked amount of one resource.
func addStake(x *core.Account, r core.ResourceCode, sun int64) {
	for _, f := range x.FrozenV2 {
		if f.Type == r {
			f.Amount += sun
			return
		}
	}
	x.FrozenV2 = append(x.FrozenV2, &core.Account_FreezeV2{Type: r, Amount: sun})
}

func (s *state) freeze(owner Address, m *core.FreezeBalanceV2Contract) {
	s.edit(owner, func(x *core.Account) {
		x.Balance -= m.FrozenBalance
		addStake(x, m.Resource, m.FrozenBalance)
	})
}

func (s *state) validateUnfreeze(owner Address, m *core.UnfreezeBalanceV2Contract, now int64) (int64, error) {
	x := s.account(owner)
	if x == nil {
		return 0, missingAccount(owner)
	}
	if !isStakeable(m.Resource) {
		return 0, invalid("ResourceCode error.valid ResourceCode[BANDWIDTH、Energy]")
	}
	held := staked(x, m.Resource)
	if held == 0 {
		name := "BANDWIDTH"
		if m.Resource == core.ResourceCode_ENERGY {
			name = "Energy"
		}
		return 0, invalid("no frozenBalance(%s)", name)
	}
	if m.UnfreezeBalance <= 0 || m.UnfreezeBalance > held {
		return 0, invalid("Invalid unfreeze_balance, [%d] is error", m.UnfreezeBalance)
	}
	if unstaking(x, now) >= maxUnstaking {
		return 0, invalid("Invalid unfreeze operation, unfreezing times is over limit")
	}
	return 0, nil
}

// unstaking counts the withdrawals from stake that wait for their time.
func unstaking(x *core.Account, now int64) (waiting int64) {
	for _, u := range x.UnfrozenV2 {
		if u.UnfreezeExpireTime > now {
			waiting++
		}
	}
	return waiting
}

// unfreeze also withdraws what has waited long enough, and returns how much that was.
func (s *state) unfreeze(owner Address, m *core.UnfreezeBalanceV2Contract, now int64) (sun int64) {
	sun = s.withdraw(owner, now)
	s.edit(owner, func(x *core.Account) {
		addStake(x, m.Resource, -m.UnfreezeBalance)
		x.UnfrozenV2 = append(x.UnfrozenV2, &core.Account_UnFreezeV2{
			Type: m.Resource, UnfreezeAmount: m.UnfreezeBalance, UnfreezeExpireTime: now + unstakeMillis,
		})
	})
	return sun
}

func (s *state) validateCancel(owner Address) (int64, error) {
	x := s.account(owner)
	if x == nil {
		return 0, missingAccount(owner)
	}
	if len(x.UnfrozenV2) == 0 {
		return 0, invalid("No unfreezeV2 list to cancel")
	}
	return 0, nil
}

// cancelUnfreezes stakes again what waits to be withdrawn, and withdraws what has waited long enough.
func (s *state) cancelUnfreezes(owner Address, now int64) (withdrawn int64, staked map[string]int64) {
	withdrawn = s.withdraw(owner, now)
	staked = map[string]int64{}
	for _, r := range []core.ResourceCode{core.ResourceCode_BANDWIDTH, core.ResourceCode_ENERGY, core.ResourceCode_TRON_POWER} {
		staked[r.String()] = 0
	}
	s.edit(owner, func(x *core.Account) {
		for _, u := range x.UnfrozenV2 {
			addStake(x, u.Type, u.UnfreezeAmount)
			staked[u.Type.String()] += u.UnfreezeAmount
		}
		x.UnfrozenV2 = nil
	})
	return withdrawn, staked
}

// expiredUnstakes is the sun an account may withdraw.
func expiredUnstakes(x *core.Account, now int64) (sun int64) {
	for _, u := range x.GetUnfrozenV2() {
		if u.UnfreezeExpireTime <= now {
			sun += u.UnfreezeAmount
		}
	}
	return sun
}

func (s *state) validateWithdraw(owner Address, now int64) (int64, error) {
	x := s.account(owner)
	if x == nil {
		return 0, missingAccount(owner)
	}
	if expiredUnstakes(x, now) == 0 {
		return 0, invalid("no unFreeze balance to withdraw ")
	}
	return 0, nil
}

func (s *state) withdraw(owner Address, now int64) (sun int64) {
	s.edit(owner, func(x *core.Account) {
		sun = expiredUnstakes(x, now)
		x.Balance += sun
		var waiting []*core.Account_UnFreezeV2
		for _, u := range x.UnfrozenV2 {
			if u.UnfreezeExpireTime > now {
				waiting = append(waiting, u)
			}
		}
		x.UnfrozenV2 = waiting
	})
	return sun
}

func delegationKey(from, to Address, locked bool) stateKey {
	k := stateKey{space: spaceDelegation, address: from}
	if locked {
		k.space = spaceLockedDelegation
	}
	copy(k.word[:], to[:])
	return k
}

func (s *state) delegation(from, to Address, locked bool) *core.DelegatedResource {
	d, _ := s.get(delegationKey(from, to, locked)).(*core.DelegatedResource)
	return d
}

// amounts returns the sun and the time it is locked until, of one resource.
func amounts(d *core.DelegatedResource, r core.ResourceCode) (sun, until int64) {
	if r == core.ResourceCode_ENERGY {
		return d.GetFrozenBalanceForEnergy(), d.GetExpireTimeForEnergy()
	}
	return d.GetFrozenBalanceForBandwidth(), d.GetExpireTimeForBandwidth()
}

// addDelegation changes one record and removes it when nothing is left.
func (s *state) addDelegation(from, to Address, locked bool, r core.ResourceCode, sun, until int64) {
	d := &core.DelegatedResource{From: bytes.Clone(from[:]), To: bytes.Clone(to[:])}
	if old := s.delegation(from, to, locked); old != nil {
		d = proto.Clone(old).(*core.DelegatedResource)
	}
	if r == core.ResourceCode_ENERGY {
		d.FrozenBalanceForEnergy += sun
		d.ExpireTimeForEnergy = until
	} else {
		d.FrozenBalanceForBandwidth += sun
		d.ExpireTimeForBandwidth = until
	}
	if d.FrozenBalanceForEnergy == 0 && d.FrozenBalanceForBandwidth == 0 {
		s.put(delegationKey(from, to, locked), nil)
		return
	}
	s.put(delegationKey(from, to, locked), d)
}

// unlockExpired turns delegations whose lock has run out into free ones.
func (s *state) unlockExpired(from, to Address, now int64) {
	for _, r := range []core.ResourceCode{core.ResourceCode_BANDWIDTH, core.ResourceCode_ENERGY} {
		if sun, until := amounts(s.delegation(from, to, true), r); sun > 0 && until < now {
			s.addDelegation(from, to, true, r, -sun, 0)
			s.addDelegation(from, to, false, r, sun, 0)
		}
	}
}

// delegable is the staked sun of a resource that is not in use.
func delegable(x *core.Account, r core.ResourceCode, now int64) int64 {
	if r == core.ResourceCode_ENERGY {
		return staked(x, r) - min(staked(x, r), energyUsed(x, now)*sunPerTRX/energyPerTRX)
	}
	return staked(x, r) - min(staked(x, r), bandwidthUsed(x, now)*sunPerTRX/bandwidthPerTRX)
}

func (s *state) validateDelegate(owner Address, m *core.DelegateResourceContract, now int64) (int64, error) {
	x := s.account(owner)
	receiver, ok := addressOf(m.ReceiverAddress)
	switch {
	case x == nil:
		return 0, missingAccount(owner)
	case m.Balance < sunPerTRX:
		return 0, invalid("delegateBalance must be greater than or equal to 1 TRX")
	case !isStakeable(m.Resource):
		return 0, invalid(resourceError)
	case delegable(x, m.Resource, now) < m.Balance && m.Resource == core.ResourceCode_ENERGY:
		return 0, invalid("delegateBalance must be less than or equal to available FreezeEnergyV2 balance")
	case delegable(x, m.Resource, now) < m.Balance:
		return 0, invalid("delegateBalance must be less than or equal to available FreezeBandwidthV2 balance")
	case !ok:
		return 0, invalid("Invalid receiverAddress")
	case receiver == owner:
		return 0, invalid("receiverAddress must not be the same as ownerAddress")
	case s.account(receiver) == nil:
		return 0, missingAccount(receiver)
	case s.account(receiver).Type == core.AccountType_Contract:
		return 0, invalid("Do not allow delegate resources to contract addresses")
	case !m.Lock:
		return 0, nil
	case m.LockPeriod < 0 || m.LockPeriod > maxLockBlocks:
		return 0, invalid("The lock period of delegate resource cannot be less than 0 and cannot exceed %d!", maxLockBlocks)
	}
	if _, until := amounts(s.delegation(owner, receiver, true), m.Resource); lockMillis(m) < until-now {
		return 0, invalid("The lock period for %s this time cannot be less than the remaining time[%dms] of the last lock period for %s!",
			m.Resource, until-now, m.Resource)
	}
	return 0, nil
}

func lockMillis(m *core.DelegateResourceContract) int64 {
	if m.LockPeriod == 0 {
		return defaultLockBlocks * blockMillis
	}
	return m.LockPeriod * blockMillis
}

func (s *state) delegate(owner Address, m *core.DelegateResourceContract, now int64) {
	receiver, _ := addressOf(m.ReceiverAddress)
	s.unlockExpired(owner, receiver, now)
	var until int64
	if m.Lock {
		until = now + lockMillis(m)
	}
	s.addDelegation(owner, receiver, m.Lock, m.Resource, m.Balance, until)
	s.edit(owner, func(x *core.Account) {
		addStake(x, m.Resource, -m.Balance)
		addDelegated(x, m.Resource, m.Balance)
	})
	s.edit(receiver, func(x *core.Account) { addAcquired(x, m.Resource, m.Balance) })
}

func addDelegated(x *core.Account, r core.ResourceCode, sun int64) {
	if r == core.ResourceCode_ENERGY {
		resources(x).DelegatedFrozenV2BalanceForEnergy += sun
		return
	}
	x.DelegatedFrozenV2BalanceForBandwidth += sun
}

func addAcquired(x *core.Account, r core.ResourceCode, sun int64) {
	if r == core.ResourceCode_ENERGY {
		resources(x).AcquiredDelegatedFrozenV2BalanceForEnergy += sun
		return
	}
	x.AcquiredDelegatedFrozenV2BalanceForBandwidth += sun
}

func (s *state) validateUndelegate(owner Address, m *core.UnDelegateResourceContract, now int64) (int64, error) {
	receiver, ok := addressOf(m.ReceiverAddress)
	switch {
	case s.account(owner) == nil:
		return 0, missingAccount(owner)
	case !ok:
		return 0, invalid("Invalid receiverAddress")
	case receiver == owner:
		return 0, invalid("receiverAddress must not be the same as ownerAddress")
	}
	free, locked := s.delegation(owner, receiver, false), s.delegation(owner, receiver, true)
	if free == nil && locked == nil {
		return 0, invalid("delegated Resource does not exist")
	}
	if m.Balance <= 0 {
		return 0, invalid("unDelegateBalance must be more than 0 TRX")
	}
	if !isStakeable(m.Resource) {
		return 0, invalid("ResourceCode error.valid ResourceCode[BANDWIDTH、Energy]")
	}
	available, _ := amounts(free, m.Resource)
	if sun, until := amounts(locked, m.Resource); until < now {
		available += sun
	}
	if available < m.Balance && m.Resource == core.ResourceCode_ENERGY {
		return 0, invalid("insufficient delegateFrozenBalance(Energy), request=%d, unlock_balance=%d", m.Balance, available)
	}
	if available < m.Balance {
		return 0, invalid("insufficient delegatedFrozenBalance(BANDWIDTH), request=%d, unlock_balance=%d", m.Balance, available)
	}
	return 0, nil
}

// undelegate takes stake back. What the receiver used of it comes back as used.
func (s *state) undelegate(owner Address, m *core.UnDelegateResourceContract, now int64) {
	receiver, _ := addressOf(m.ReceiverAddress)
	s.unlockExpired(owner, receiver, now)
	s.addDelegation(owner, receiver, false, m.Resource, -m.Balance, 0)
	var usage int64
	s.edit(receiver, func(x *core.Account) {
		usage = movedUsage(x, m.Resource, m.Balance, now)
		addAcquired(x, m.Resource, -m.Balance)
		addUsage(x, m.Resource, -usage, now)
	})
	s.edit(owner, func(x *core.Account) {
		addDelegated(x, m.Resource, -m.Balance)
		addStake(x, m.Resource, m.Balance)
		addUsage(x, m.Resource, usage, now)
	})
}

func movedUsage(x *core.Account, r core.ResourceCode, sun, now int64) int64 {
	all := stakeFor(x, r)
	if all == 0 {
		return 0
	}
	used, rate := bandwidthUsed(x, now), int64(bandwidthPerTRX)
	if r == core.ResourceCode_ENERGY {
		used, rate = energyUsed(x, now), energyPerTRX
	}
	share := float64(used) * (float64(sun) / float64(all)) // java-tron divides doubles here
	return min(sun/sunPerTRX*rate, int64(math.Floor(share)))
}

func addUsage(x *core.Account, r core.ResourceCode, units, now int64) {
	if r == core.ResourceCode_ENERGY {
		setEnergyUsed(x, energyUsed(x, now)+units, now)
		return
	}
	setBandwidthUsed(x, bandwidthUsed(x, now)+units, now)
}

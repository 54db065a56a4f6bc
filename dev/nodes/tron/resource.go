package tron

import (
	"math/big"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// Chain parameters, in sun unless named otherwise: the main network's of 2026
// (GetChainParameters).
const (
	sunPerTRX           = 1_000_000
	energyFee           = 100     // per unit of energy
	bandwidthFee        = 1_000   // per byte
	createAccountFee    = 100_000 // in place of bandwidth, for a transaction that activates an account
	activationFee       = 1_000_000
	multiSignFee        = 1_000_000
	memoFee             = 1_000_000
	permissionUpdateFee = 100_000_000
	maxFeeLimit         = 15_000_000_000
	freeBandwidth       = 600 // bytes per account and day
	// energyPerTRX and bandwidthPerTRX stand in for the main network's division
	// of a fixed supply among everything staked.
	energyPerTRX    = 10
	bandwidthPerTRX = 1
	// resultBytes is added to a transaction's size for the result a block holds.
	resultBytes   = 64
	millisPerDay  = 24 * 60 * 60 * 1000
	unstakeMillis = 14 * millisPerDay
	maxUnstaking  = 32 // at once per account
	// blockMillis is the main network's interval, in which lock periods count.
	blockMillis       = 3_000
	defaultLockBlocks = 3 * millisPerDay / blockMillis
	maxLockBlocks     = 30 * millisPerDay / blockMillis
)

// recovered is what is left of a used resource after linear recovery over 24
// hours, rounded up.
func recovered(used, since, now int64) int64 {
	elapsed := now - since
	if elapsed >= millisPerDay || used == 0 {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(used), big.NewInt(millisPerDay-max(0, elapsed)))
	n.Add(n, big.NewInt(millisPerDay-1))
	return n.Div(n, big.NewInt(millisPerDay)).Int64()
}

// staked is the sun an account holds staked for a resource, without what others
// delegated to it.
func staked(x *core.Account, r core.ResourceCode) int64 {
	for _, f := range x.GetFrozenV2() {
		if f.Type == r {
			return f.Amount
		}
	}
	return 0
}

// stakeFor is the sun whose resource the account may use.
func stakeFor(x *core.Account, r core.ResourceCode) int64 {
	if r == core.ResourceCode_ENERGY {
		return staked(x, r) + x.GetAccountResource().GetAcquiredDelegatedFrozenV2BalanceForEnergy()
	}
	return staked(x, r) + x.GetAcquiredDelegatedFrozenV2BalanceForBandwidth()
}

func energyLimit(x *core.Account) int64 {
	return stakeFor(x, core.ResourceCode_ENERGY) / sunPerTRX * energyPerTRX
}

func bandwidthLimit(x *core.Account) int64 {
	return stakeFor(x, core.ResourceCode_BANDWIDTH) / sunPerTRX * bandwidthPerTRX
}

func energyUsed(x *core.Account, now int64) int64 {
	r := x.GetAccountResource()
	return recovered(r.GetEnergyUsage(), r.GetLatestConsumeTimeForEnergy(), now)
}

func bandwidthUsed(x *core.Account, now int64) int64 {
	return recovered(x.GetNetUsage(), x.GetLatestConsumeTime(), now)
}

func freeBandwidthUsed(x *core.Account, now int64) int64 {
	return recovered(x.GetFreeNetUsage(), x.GetLatestConsumeFreeTime(), now)
}

// energyLeft is the staked energy an account can use now.
func (s *state) energyLeft(a Address, now int64) int64 {
	x := s.account(a)
	return max(0, energyLimit(x)-energyUsed(x, now))
}

func (s *state) useEnergy(a Address, units, now int64) {
	if units == 0 {
		return
	}
	s.edit(a, func(x *core.Account) { setEnergyUsed(x, energyUsed(x, now)+units, now) })
}

func resources(x *core.Account) *core.Account_AccountResource {
	if x.AccountResource == nil {
		x.AccountResource = &core.Account_AccountResource{}
	}
	return x.AccountResource
}

func setEnergyUsed(x *core.Account, units, now int64) {
	r := resources(x)
	r.EnergyUsage, r.LatestConsumeTimeForEnergy = units, now
}

func setBandwidthUsed(x *core.Account, bytes, now int64) {
	x.NetUsage, x.LatestConsumeTime = bytes, now
}

// payBandwidth is java-tron's BandwidthProcessor.consume: staked bandwidth, then
// the free allowance, then TRX. A transaction that activates an account never
// uses the free allowance and pays a flat fee instead of bytes.
func (s *state) payBandwidth(tx *core.Transaction, owner Address, activates bool, now int64, receipt *core.ResourceReceipt) error {
	x := s.account(owner)
	if x == nil {
		return invalid("account [%s] does not exist", owner)
	}
	size := int64(proto.Size(&core.Transaction{RawData: tx.RawData, Signature: tx.Signature})) + resultBytes
	staked := size <= bandwidthLimit(x)-bandwidthUsed(x, now)
	free := !activates && size <= freeBandwidth-freeBandwidthUsed(x, now)
	switch {
	case staked:
		receipt.NetUsage = size
	case free:
		receipt.NetUsage = size
	case activates:
		receipt.NetFee = createAccountFee
	default:
		receipt.NetFee = size * bandwidthFee
	}
	if x.Balance < receipt.NetFee {
		return insufficientResources()
	}
	s.edit(owner, func(x *core.Account) {
		x.LatestOprationTime = now
		x.Balance -= receipt.NetFee
		if staked {
			setBandwidthUsed(x, bandwidthUsed(x, now)+size, now)
		} else if free {
			x.FreeNetUsage, x.LatestConsumeFreeTime = freeBandwidthUsed(x, now)+size, now
		}
	})
	return nil
}

func insufficientResources() error {
	return &Refusal{api.Return_BANDWITH_ERROR, "Account resource insufficient error."}
}

// payExtras takes the fees that hang on the form of a transaction: for a second
// signature and for a memo.
func (s *state) payExtras(tx *core.Transaction, owner Address) (int64, error) {
	var fee int64
	if len(tx.Signature) > 1 {
		fee += multiSignFee
	}
	if len(tx.RawData.Data) > 0 {
		fee += memoFee
	}
	if !s.debit(owner, fee) {
		return 0, insufficientResources()
	}
	return fee, nil
}

// callLimit is the energy a contract call may use: fee_limit caps the caller's
// total, staked energy included, and the contract's owner may add a share
// (java-tron VMActuator.getTotalEnergyLimitWithFixRatio).
func (s *state) callLimit(caller Address, contract *core.SmartContract, feeLimit, value, now int64) int64 {
	affordable := s.energyLeft(caller, now) + max(0, s.account(caller).GetBalance()-value)/energyFee
	limit := min(affordable, feeLimit/energyFee)
	if contract == nil {
		return limit
	}
	origin, _ := addressOf(contract.OriginAddress)
	percent := contract.ConsumeUserResourcePercent
	if origin == caller || percent >= 100 {
		return limit
	}
	share := min(s.energyLeft(origin, now), contract.OriginEnergyLimit)
	if percent > 0 {
		share = min(share, limit*(100-percent)/percent)
	}
	return limit + share
}

// payEnergy settles a run: the contract owner's share from staked energy, then
// the caller's staked energy, then TRX.
func (s *state) payEnergy(caller Address, contract *core.SmartContract, r *callResult, now int64, receipt *core.ResourceReceipt) error {
	receipt.EnergyUsageTotal, receipt.EnergyPenaltyTotal = r.used, r.penalty
	rest := r.used
	if origin, ok := addressOf(contract.GetOriginAddress()); ok && origin != caller {
		share := r.used * (100 - contract.ConsumeUserResourcePercent) / 100
		share = min(share, contract.OriginEnergyLimit, s.energyLeft(origin, now))
		s.useEnergy(origin, share, now)
		receipt.OriginEnergyUsage = share
		rest -= share
	}
	receipt.EnergyUsage = min(rest, s.energyLeft(caller, now))
	s.useEnergy(caller, receipt.EnergyUsage, now)
	receipt.EnergyFee = (rest - receipt.EnergyUsage) * energyFee
	if !s.debit(caller, receipt.EnergyFee) {
		return executionError("%x insufficient balance, balance: %d, amount: %d", caller[:], s.account(caller).GetBalance(), receipt.EnergyFee)
	}
	return nil
}

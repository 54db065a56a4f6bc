package tron

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Refusal is why the node does not take a transaction, in java-tron's code and
// words (Wallet.broadcastTransaction).
type Refusal struct {
	Code    api.ReturnResponseCode
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func invalid(format string, args ...any) error {
	return &Refusal{api.Return_CONTRACT_VALIDATE_ERROR, "Contract validate error : " + fmt.Sprintf(format, args...)}
}

func executionError(format string, args ...any) error {
	return &Refusal{api.Return_CONTRACT_EXE_ERROR, "Contract execute error : " + fmt.Sprintf(format, args...)}
}

// ownerOf decodes a contract and returns who it acts for.
func ownerOf(c *core.Transaction_Contract) (Address, proto.Message, error) {
	m, err := c.GetParameter().UnmarshalNew()
	if err != nil {
		return Address{}, nil, err
	}
	field := m.ProtoReflect().Descriptor().Fields().ByName("owner_address")
	if field == nil || field.Kind() != protoreflect.BytesKind {
		return Address{}, nil, errors.New("contract has no owner_address")
	}
	a, ok := addressOf(m.ProtoReflect().Get(field).Bytes())
	if !ok {
		return Address{}, m, errors.New("Invalid ownerAddress!") //nolint:staticcheck,revive // java-tron's text
	}
	return a, m, nil
}

// incoming is a decoded transaction on its way into the state.
type incoming struct {
	tx      *core.Transaction
	id      Hash
	owner   Address
	message proto.Message
	// verified is set while the signatures are known to hold in the present state.
	verified bool
	// forced is a result the fault switches decreed for a contract call.
	forced core.Transaction_ResultContractResult
}

func decode(tx *core.Transaction) (*incoming, error) {
	if n := len(tx.GetRawData().GetContract()); n == 0 {
		return nil, invalid("Contract not exists")
	} else if n > 1 {
		return nil, &Refusal{api.Return_OTHER_ERROR, fmt.Sprintf(
			"Error: tx %s contract size should be exactly 1, this is extend feature ,actual :%d", TransactionID(tx), n)}
	}
	c := tx.RawData.Contract[0]
	owner, message, err := ownerOf(c)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if want := c.Type.String(); string(message.ProtoReflect().Descriptor().Name()) != want {
		return nil, invalid("contract type error, expected type [%s], real type[%s]", want, message.ProtoReflect().Descriptor().Name())
	}
	return &incoming{tx: tx, id: TransactionID(tx), owner: owner, message: message}, nil
}

// applyTransaction takes a transaction into the state and writes its result into
// tx.Ret. A returned error means that the transaction cannot be in a block and
// that the caller must revert the state.
func (s *state) applyTransaction(block *blockContext, in *incoming) (*core.TransactionInfo, error) {
	if !in.verified {
		if err := s.checkSignatures(in.tx, in.id, in.owner); err != nil {
			return nil, err
		}
	}
	info := &core.TransactionInfo{
		Id: bytes.Clone(in.id[:]), BlockNumber: block.number, BlockTimeStamp: block.time,
		Receipt: &core.ResourceReceipt{}, ContractResult: [][]byte{{}},
	}
	if err := s.payBandwidth(in.tx, in.owner, s.activates(in.message), block.time, info.Receipt); err != nil {
		return nil, err
	}
	extras, err := s.payExtras(in.tx, in.owner)
	if err != nil {
		return nil, err
	}
	fee, err := s.validate(block, in.owner, in.message)
	if err != nil {
		return nil, err
	}
	result, err := s.actuate(block, in, info, fee)
	if err != nil {
		return nil, err
	}
	info.Fee = fee + extras + info.Receipt.NetFee + info.Receipt.EnergyFee
	in.tx.Ret = []*core.Transaction_Result{{ContractRet: result}}
	if result != core.Transaction_Result_SUCCESS {
		info.Result = core.TransactionInfo_FAILED
	}
	return info, nil
}

// activates reports whether the transaction makes a new account.
func (s *state) activates(message proto.Message) bool {
	switch m := message.(type) {
	case *core.AccountCreateContract:
		return true
	case *core.TransferContract:
		to, ok := addressOf(m.ToAddress)
		return ok && s.account(to) == nil
	}
	return false
}

// validate is what java-tron's actuators check, also when a node builds a
// transaction for a client. It returns the system contract's fee.
func (s *state) validate(block *blockContext, owner Address, message proto.Message) (int64, error) {
	switch m := message.(type) {
	case *core.TransferContract:
		return s.validateTransfer(owner, m)
	case *core.AccountCreateContract:
		return s.validateAccountCreate(owner, m)
	case *core.AccountPermissionUpdateContract:
		return s.validatePermissionUpdate(owner, m)
	case *core.FreezeBalanceV2Contract:
		return s.validateFreeze(owner, m)
	case *core.UnfreezeBalanceV2Contract:
		return s.validateUnfreeze(owner, m, block.time)
	case *core.WithdrawExpireUnfreezeContract:
		return s.validateWithdraw(owner, block.time)
	case *core.CancelAllUnfreezeV2Contract:
		return s.validateCancel(owner)
	case *core.DelegateResourceContract:
		return s.validateDelegate(owner, m, block.time)
	case *core.UnDelegateResourceContract:
		return s.validateUndelegate(owner, m, block.time)
	case *core.CreateSmartContract:
		return 0, validateCreate(owner, m)
	case *core.TriggerSmartContract:
		return 0, s.validateTrigger(owner, m)
	}
	return 0, invalid("the development node does not carry out %s", message.ProtoReflect().Descriptor().Name())
}

func (s *state) validateTransfer(owner Address, m *core.TransferContract) (int64, error) {
	to, ok := addressOf(m.ToAddress)
	x, receiver := s.account(owner), s.account(to)
	switch {
	case !ok:
		return 0, invalid("Invalid toAddress!")
	case to == owner:
		return 0, invalid("Cannot transfer TRX to yourself.")
	case x == nil:
		return 0, invalid("Validate TransferContract error, no OwnerAccount.")
	case m.Amount <= 0:
		return 0, invalid("Amount must be greater than 0.")
	case receiver.GetType() == core.AccountType_Contract:
		return 0, invalid("Cannot transfer TRX to a smartContract.")
	}
	var fee int64
	if receiver == nil {
		fee = activationFee
	}
	if m.Amount > math.MaxInt64-fee || receiver.GetBalance() > math.MaxInt64-m.Amount {
		return 0, invalid("long overflow")
	}
	if x.Balance < m.Amount+fee {
		return 0, invalid("Validate TransferContract error, balance is not sufficient.")
	}
	return fee, nil
}

func (s *state) validateAccountCreate(owner Address, m *core.AccountCreateContract) (int64, error) {
	to, ok := addressOf(m.AccountAddress)
	x := s.account(owner)
	switch {
	case x == nil:
		return 0, missingAccount(owner)
	case x.Balance < activationFee:
		return 0, invalid("Validate CreateAccountActuator error, insufficient fee.")
	case !ok:
		return 0, invalid("Invalid account address")
	case s.account(to) != nil:
		return 0, invalid("Account has existed")
	}
	return activationFee, nil
}

func validateCreate(owner Address, m *core.CreateSmartContract) error {
	n := m.NewContract
	switch {
	case n == nil || !bytes.Equal(n.OriginAddress, owner[:]):
		return invalid("OwnerAddress is not equals OriginAddress")
	case n.ConsumeUserResourcePercent < 0 || n.ConsumeUserResourcePercent > 100:
		return invalid("percent must be >= 0 and <= 100")
	case n.OriginEnergyLimit <= 0:
		return invalid("The originEnergyLimit must be > 0")
	case n.CallValue < 0:
		return invalid("callValue must be >= 0")
	case m.CallTokenValue != 0 || m.TokenId != 0:
		return invalid("the development node has no TRC-10 tokens")
	}
	return nil
}

func (s *state) validateTrigger(owner Address, m *core.TriggerSmartContract) error {
	a, ok := addressOf(m.ContractAddress)
	switch {
	case !ok || s.contract(a) == nil:
		return invalid("No contract or not a smart contract")
	case m.CallValue < 0:
		return invalid("callValue must be >= 0")
	case m.CallTokenValue != 0 || m.TokenId != 0:
		return invalid("the development node has no TRC-10 tokens")
	case m.CallValue > 0 && s.account(owner).GetBalance() < m.CallValue:
		return invalid("Validate InternalTransfer error, balance is not sufficient.")
	}
	return nil
}

// actuate carries a validated contract out; fee is the system contract's.
func (s *state) actuate(block *blockContext, in *incoming, info *core.TransactionInfo, fee int64) (core.Transaction_ResultContractResult, error) {
	if !s.debit(in.owner, fee) {
		return 0, executionError("%x insufficient balance, balance: %d, amount: %d", in.owner[:], s.account(in.owner).GetBalance(), fee)
	}
	switch m := in.message.(type) {
	case *core.TransferContract:
		to, _ := addressOf(m.ToAddress)
		s.debit(in.owner, m.Amount)
		s.credit(to, m.Amount, block.time)
	case *core.AccountCreateContract:
		to, _ := addressOf(m.AccountAddress)
		s.createAccount(to, core.AccountType_Normal, block.time)
	case *core.AccountPermissionUpdateContract:
		s.updatePermissions(in.owner, m)
	case *core.FreezeBalanceV2Contract:
		s.freeze(in.owner, m)
	case *core.UnfreezeBalanceV2Contract:
		info.WithdrawExpireAmount = s.unfreeze(in.owner, m, block.time)
		info.UnfreezeAmount = m.UnfreezeBalance
	case *core.WithdrawExpireUnfreezeContract:
		info.WithdrawExpireAmount = s.withdraw(in.owner, block.time)
	case *core.CancelAllUnfreezeV2Contract:
		info.WithdrawExpireAmount, info.CancelUnfreezeV2Amount = s.cancelUnfreezes(in.owner, block.time)
	case *core.DelegateResourceContract:
		s.delegate(in.owner, m, block.time)
	case *core.UnDelegateResourceContract:
		s.undelegate(in.owner, m, block.time)
	case *core.CreateSmartContract, *core.TriggerSmartContract:
		return s.runContract(block, in, info)
	}
	return core.Transaction_Result_SUCCESS, nil
}

func (s *state) updatePermissions(owner Address, m *core.AccountPermissionUpdateContract) {
	s.edit(owner, func(x *core.Account) {
		x.OwnerPermission = proto.Clone(m.Owner).(*core.Permission)
		x.OwnerPermission.Id = ownerPermissionID
		x.ActivePermission = nil
		for i, p := range m.Actives {
			p = proto.Clone(p).(*core.Permission)
			p.Id = firstActivePermissionID + int32(i)
			x.ActivePermission = append(x.ActivePermission, p)
		}
	})
}

// runContract deploys or triggers, then settles the energy and fills in the
// receipt.
func (s *state) runContract(block *blockContext, in *incoming, info *core.TransactionInfo) (core.Transaction_ResultContractResult, error) {
	feeLimit := in.tx.RawData.FeeLimit
	if feeLimit < 0 || feeLimit > maxFeeLimit {
		return 0, invalid("feeLimit must be >= 0 and <= %d", int64(maxFeeLimit))
	}
	c := &call{caller: in.owner, forced: in.forced}
	var contract *core.SmartContract
	create, isCreate := in.message.(*core.CreateSmartContract)
	if isCreate {
		c.contract, c.initCode, c.value = contractAddress(in.id, in.owner), create.NewContract.Bytecode, create.NewContract.CallValue
		if s.account(c.contract) != nil {
			return 0, invalid("Trying to create a contract with existing contract address: %s", c.contract)
		}
	} else {
		trigger := in.message.(*core.TriggerSmartContract)
		c.contract, _ = addressOf(trigger.ContractAddress)
		c.input, c.value = trigger.Data, trigger.CallValue
		contract = s.contract(c.contract)
	}
	c.limit = s.callLimit(in.owner, contract, feeLimit, c.value, block.time)
	r := execute(s, block, c)
	if isCreate && r.result == core.Transaction_Result_SUCCESS {
		s.registerContract(c.contract, create.NewContract)
	}
	info.Receipt.Result, info.ContractResult, info.Log = r.result, [][]byte{r.output}, r.logs
	info.ContractAddress, info.ResMessage = bytes.Clone(c.contract[:]), []byte(r.message)
	if err := s.payEnergy(in.owner, contract, r, block.time, info.Receipt); err != nil {
		return 0, err
	}
	return r.result, nil
}

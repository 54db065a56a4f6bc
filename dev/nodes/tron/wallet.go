package tron

import (
	"bytes"
	"context"
	"errors"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// walletServer is TRON's Wallet service as a full node offers it. Its methods
// that answer about accounts, contracts and single transactions see the pool on
// top of the head, as java-tron's do: being readable is not being in a block.
type walletServer struct {
	api.UnimplementedWalletServer
	node *Node
}

// returnOf is how a refusal travels: in the message, not as a gRPC error.
func returnOf(err error) *api.Return {
	if err == nil {
		return &api.Return{Result: true}
	}
	var r *Refusal
	if errors.As(err, &r) {
		return &api.Return{Code: r.Code, Message: []byte(r.Message)}
	}
	return &api.Return{Code: api.Return_OTHER_ERROR, Message: []byte("Error: " + err.Error())}
}

func extend(tx *core.Transaction) *api.TransactionExtention {
	id := TransactionID(tx)
	return &api.TransactionExtention{Transaction: tx, Txid: id[:], Result: &api.Return{Result: true}}
}

// build answers the methods that make an unsigned transaction.
func (w *walletServer) build(m proto.Message, kind core.Transaction_Contract_ContractType) (*api.TransactionExtention, error) {
	c := w.node.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	tx, err := c.build(m, kind)
	if err != nil {
		return &api.TransactionExtention{Result: returnOf(err)}, nil
	}
	return extend(tx), nil
}

// buildOld answers the first generation of those methods, which return the bare
// transaction and an empty one on failure.
func (w *walletServer) buildOld(m proto.Message, kind core.Transaction_Contract_ContractType) (*core.Transaction, error) {
	x, err := w.build(m, kind)
	if err != nil || x.Transaction == nil {
		return &core.Transaction{}, err
	}
	return x.Transaction, nil
}

func (w *walletServer) CreateTransaction(_ context.Context, m *core.TransferContract) (*core.Transaction, error) {
	return w.buildOld(m, core.Transaction_Contract_TransferContract)
}

func (w *walletServer) CreateTransaction2(_ context.Context, m *core.TransferContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_TransferContract)
}

func (w *walletServer) CreateAccount(_ context.Context, m *core.AccountCreateContract) (*core.Transaction, error) {
	return w.buildOld(m, core.Transaction_Contract_AccountCreateContract)
}

func (w *walletServer) CreateAccount2(_ context.Context, m *core.AccountCreateContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_AccountCreateContract)
}

func (w *walletServer) AccountPermissionUpdate(_ context.Context, m *core.AccountPermissionUpdateContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_AccountPermissionUpdateContract)
}

func (w *walletServer) FreezeBalanceV2(_ context.Context, m *core.FreezeBalanceV2Contract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_FreezeBalanceV2Contract)
}

func (w *walletServer) UnfreezeBalanceV2(_ context.Context, m *core.UnfreezeBalanceV2Contract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_UnfreezeBalanceV2Contract)
}

func (w *walletServer) WithdrawExpireUnfreeze(_ context.Context, m *core.WithdrawExpireUnfreezeContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_WithdrawExpireUnfreezeContract)
}

func (w *walletServer) DelegateResource(_ context.Context, m *core.DelegateResourceContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_DelegateResourceContract)
}

func (w *walletServer) UnDelegateResource(_ context.Context, m *core.UnDelegateResourceContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_UnDelegateResourceContract)
}

func (w *walletServer) DeployContract(_ context.Context, m *core.CreateSmartContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_CreateSmartContract)
}

func (w *walletServer) TriggerContract(_ context.Context, m *core.TriggerSmartContract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_TriggerSmartContract)
}

func (w *walletServer) TriggerConstantContract(_ context.Context, m *core.TriggerSmartContract) (*api.TransactionExtention, error) {
	return w.node.chain.constantCall(m, false), nil
}

func (w *walletServer) EstimateEnergy(_ context.Context, m *core.TriggerSmartContract) (*api.EstimateEnergyMessage, error) {
	return w.node.chain.estimateEnergy(m, false), nil
}

func (w *walletServer) BroadcastTransaction(ctx context.Context, tx *core.Transaction) (*api.Return, error) {
	return w.node.broadcast(ctx, tx)
}

func (w *walletServer) GetTransactionSignWeight(_ context.Context, tx *core.Transaction) (*api.TransactionSignWeight, error) {
	c := w.node.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.state.signWeight(tx), nil
}

func (w *walletServer) GetTransactionApprovedList(_ context.Context, tx *core.Transaction) (*api.TransactionApprovedList, error) {
	c := w.node.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.state.approvedList(tx), nil
}

// approvedList lists who signed, without judging whether they may.
func (s *state) approvedList(tx *core.Transaction) *api.TransactionApprovedList {
	out := &api.TransactionApprovedList{Transaction: extend(tx), Result: &api.TransactionApprovedList_Result{}}
	set := func(code api.TransactionApprovedList_ResultResponseCode, message string) *api.TransactionApprovedList {
		out.Result.Code, out.Result.Message = code, message
		return out
	}
	if len(tx.GetRawData().GetContract()) == 0 {
		return set(api.TransactionApprovedList_Result_OTHER_ERROR, "Invalid transaction: no valid contract")
	}
	owner, _, err := ownerOf(tx.RawData.Contract[0])
	if err != nil || s.account(owner) == nil {
		return set(api.TransactionApprovedList_Result_OTHER_ERROR, "class org.tron.core.exception.PermissionException : Account does not exist!")
	}
	var signers [][]byte
	for _, signature := range tx.Signature {
		a, err := Recover(TransactionID(tx), signature)
		if errors.Is(err, errSignatureMath) {
			return set(api.TransactionApprovedList_Result_COMPUTE_ADDRESS_ERROR, err.Error())
		}
		if err != nil {
			return set(api.TransactionApprovedList_Result_SIGNATURE_FORMAT_ERROR, err.Error())
		}
		signers = append(signers, bytes.Clone(a[:]))
	}
	out.ApprovedList = signers
	return out
}

// constantCall runs a contract on a scratch copy, at the pending state or at the
// solidified block.
func (c *chain) constantCall(m *core.TriggerSmartContract, solid bool) *api.TransactionExtention {
	c.mu.RLock()
	defer c.mu.RUnlock()
	refuse := func(err error) *api.TransactionExtention { return &api.TransactionExtention{Result: returnOf(err)} }
	caller, ok := addressOf(m.OwnerAddress)
	if !ok {
		return refuse(invalid("Invalid ownerAddress!"))
	}
	base, block := c.state.get, c.pendingContext()
	if solid {
		b := c.blocks[c.solid]
		base, block = c.solidView(), c.context(b.number, b.time, Address{})
	}
	scratch := overlay(base)
	contract, ok := addressOf(m.ContractAddress)
	if !ok || scratch.contract(contract) == nil {
		return refuse(invalid("Smart contract is not exist."))
	}
	tx, err := c.build(m, core.Transaction_Contract_TriggerSmartContract)
	if err != nil {
		return refuse(err)
	}
	r := execute(scratch, block, &call{
		caller: caller, contract: contract, input: m.Data, value: m.CallValue, limit: constantEnergyLimit,
	})
	return constantAnswer(extend(tx), r)
}

// constantAnswer words a result as java-tron does: a REVERT leaves Result true
// and Code SUCCESS, and only Message and the transaction's Ret tell.
func constantAnswer(x *api.TransactionExtention, r *callResult) *api.TransactionExtention {
	ret := core.Transaction_Result_SUCESS
	switch r.result {
	case core.Transaction_Result_SUCCESS:
	case core.Transaction_Result_REVERT:
		ret = core.Transaction_Result_FAILED
		x.Result.Message = []byte(r.message)
	default:
		return &api.TransactionExtention{Result: &api.Return{
			Code: api.Return_CONTRACT_EXE_ERROR, Message: []byte(exceptionClass(r.result) + " : " + r.message),
		}}
	}
	x.ConstantResult, x.EnergyUsed, x.EnergyPenalty, x.Logs = [][]byte{r.output}, r.used, r.penalty, r.logs
	x.Transaction.Ret = []*core.Transaction_Result{{Ret: ret}}
	return x
}

// exceptionClass is the Java class java-tron names in front of such an error.
func exceptionClass(r core.Transaction_ResultContractResult) string {
	const program = "class org.tron.core.vm.program.Program$"
	switch r {
	case core.Transaction_Result_OUT_OF_ENERGY:
		return program + "OutOfEnergyException"
	case core.Transaction_Result_OUT_OF_MEMORY:
		return program + "OutOfMemoryException"
	case core.Transaction_Result_BAD_JUMP_DESTINATION:
		return program + "BadJumpDestinationException"
	case core.Transaction_Result_ILLEGAL_OPERATION:
		return program + "IllegalOperationException"
	}
	return "class java.lang.RuntimeException"
}

// estimateEnergy answers like a java-tron node with vm.estimateEnergy switched
// on: the energy of one simulated run, or an error when it would not succeed.
func (c *chain) estimateEnergy(m *core.TriggerSmartContract, solid bool) *api.EstimateEnergyMessage {
	x := c.constantCall(m, solid)
	if x.Result.Code == api.Return_SUCCESS && len(x.Result.Message) > 0 {
		x.Result = &api.Return{Result: true, Code: api.Return_CONTRACT_EXE_ERROR, Message: x.Result.Message}
	}
	if x.Result.Code != api.Return_SUCCESS {
		return &api.EstimateEnergyMessage{Result: x.Result}
	}
	return &api.EstimateEnergyMessage{Result: x.Result, EnergyRequired: x.EnergyUsed}
}

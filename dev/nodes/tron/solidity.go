package tron

import (
	"context"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// solidityServer is TRON's WalletSolidity service: the chain up to the
// solidified block and nothing after it. java-tron offers it on a port of its
// own, and so does this node, so that a client that asks the wrong port finds out.
type solidityServer struct {
	api.UnimplementedWalletSolidityServer
	node *Node
}

func (s *solidityServer) GetNowBlock(context.Context, *api.EmptyMessage) (*core.Block, error) {
	return reading(s.node.chain, func() *core.Block { return s.node.chain.top(true).plain() })
}

func (s *solidityServer) GetNowBlock2(context.Context, *api.EmptyMessage) (*api.BlockExtention, error) {
	return reading(s.node.chain, func() *api.BlockExtention { return s.node.chain.top(true).extend() })
}

func (s *solidityServer) GetBlock(_ context.Context, m *api.BlockReq) (*api.BlockExtention, error) {
	s.node.chain.mu.RLock()
	defer s.node.chain.mu.RUnlock()
	return s.node.chain.blockBySpec(m, true)
}

func (s *solidityServer) GetBlockByNum(_ context.Context, m *api.NumberMessage) (*core.Block, error) {
	return reading(s.node.chain, func() *core.Block { return s.node.chain.blockAt(m.Num, true).plain() })
}

func (s *solidityServer) GetBlockByNum2(_ context.Context, m *api.NumberMessage) (*api.BlockExtention, error) {
	return reading(s.node.chain, func() *api.BlockExtention { return s.node.chain.blockAt(m.Num, true).extend() })
}

func (s *solidityServer) GetTransactionCountByBlockNum(_ context.Context, m *api.NumberMessage) (*api.NumberMessage, error) {
	return reading(s.node.chain, func() *api.NumberMessage {
		b := s.node.chain.blockAt(m.Num, true)
		if b == nil {
			return &api.NumberMessage{Num: -1}
		}
		return &api.NumberMessage{Num: int64(len(b.infos))}
	})
}

func (s *solidityServer) GetTransactionById(_ context.Context, m *api.BytesMessage) (*core.Transaction, error) {
	return reading(s.node.chain, func() *core.Transaction { return s.node.chain.transaction(m.Value, true) })
}

func (s *solidityServer) GetTransactionInfoById(_ context.Context, m *api.BytesMessage) (*core.TransactionInfo, error) {
	return reading(s.node.chain, func() *core.TransactionInfo { return s.node.chain.transactionInfo(m.Value, true) })
}

func (s *solidityServer) GetTransactionInfoByBlockNum(_ context.Context, m *api.NumberMessage) (*api.TransactionInfoList, error) {
	return reading(s.node.chain, func() *api.TransactionInfoList { return s.node.chain.transactionInfos(m.Num, true) })
}

func (s *solidityServer) GetAccount(_ context.Context, m *core.Account) (*core.Account, error) {
	return reading(s.node.chain, func() *core.Account { return s.node.chain.account(m.Address, true) })
}

func (s *solidityServer) TriggerConstantContract(_ context.Context, m *core.TriggerSmartContract) (*api.TransactionExtention, error) {
	return s.node.chain.constantCall(m, true), nil
}

func (s *solidityServer) EstimateEnergy(_ context.Context, m *core.TriggerSmartContract) (*api.EstimateEnergyMessage, error) {
	return s.node.chain.estimateEnergy(m, true), nil
}

func (s *solidityServer) GetEnergyPrices(context.Context, *api.EmptyMessage) (*api.PricesResponseMessage, error) {
	return price(energyFee), nil
}

func (s *solidityServer) GetBandwidthPrices(context.Context, *api.EmptyMessage) (*api.PricesResponseMessage, error) {
	return price(bandwidthFee), nil
}

func (s *solidityServer) ListWitnesses(context.Context, *api.EmptyMessage) (*api.WitnessList, error) {
	return reading(s.node.chain, func() *api.WitnessList { return s.node.chain.witnessList() })
}

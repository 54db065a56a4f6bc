package tron

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// reading runs f under the chain's read lock.
func reading[T any](c *chain, f func() T) (T, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return f(), nil
}

// blockByText finds a block by its number or by its id in hexadecimal.
func (c *chain) blockByText(text string, solid bool) (*block, error) {
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == len(Hash{}) {
		n, ok := c.byID[Hash(raw)]
		if !ok {
			return nil, nil
		}
		return c.blockAt(n, solid), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("id_or_num %q: want a block number or 64 hexadecimal digits", text))
	}
	return c.blockAt(n, solid), nil
}

func (w *walletServer) GetNowBlock(context.Context, *api.EmptyMessage) (*core.Block, error) {
	return reading(w.node.chain, func() *core.Block { return w.node.chain.head().plain() })
}

func (w *walletServer) GetNowBlock2(context.Context, *api.EmptyMessage) (*api.BlockExtention, error) {
	return reading(w.node.chain, func() *api.BlockExtention { return w.node.chain.head().extend() })
}

func (w *walletServer) GetBlock(_ context.Context, m *api.BlockReq) (*api.BlockExtention, error) {
	w.node.chain.mu.RLock()
	defer w.node.chain.mu.RUnlock()
	return w.node.chain.blockBySpec(m, false)
}

func (w *walletServer) GetBlockByNum(_ context.Context, m *api.NumberMessage) (*core.Block, error) {
	return reading(w.node.chain, func() *core.Block { return w.node.chain.blockAt(m.Num, false).plain() })
}

func (w *walletServer) GetBlockByNum2(_ context.Context, m *api.NumberMessage) (*api.BlockExtention, error) {
	return reading(w.node.chain, func() *api.BlockExtention { return w.node.chain.blockAt(m.Num, false).extend() })
}

func (w *walletServer) GetBlockById(_ context.Context, m *api.BytesMessage) (*core.Block, error) {
	return reading(w.node.chain, func() *core.Block {
		b, _ := w.node.chain.blockByText(hex.EncodeToString(m.Value), false)
		return b.plain()
	})
}

func (w *walletServer) GetBlockByLimitNext2(_ context.Context, m *api.BlockLimit) (*api.BlockListExtention, error) {
	return reading(w.node.chain, func() *api.BlockListExtention {
		return extendAll(w.node.chain.blockRange(m.StartNum, m.EndNum))
	})
}

func (w *walletServer) GetBlockByLatestNum2(_ context.Context, m *api.NumberMessage) (*api.BlockListExtention, error) {
	return reading(w.node.chain, func() *api.BlockListExtention {
		if m.Num <= 0 || m.Num > maxLatestBlocks {
			return &api.BlockListExtention{}
		}
		end := w.node.chain.head().number + 1
		return extendAll(w.node.chain.blockRange(max(0, end-m.Num), end))
	})
}

func (w *walletServer) GetTransactionCountByBlockNum(_ context.Context, m *api.NumberMessage) (*api.NumberMessage, error) {
	return reading(w.node.chain, func() *api.NumberMessage {
		b := w.node.chain.blockAt(m.Num, false)
		if b == nil {
			return &api.NumberMessage{Num: -1}
		}
		return &api.NumberMessage{Num: int64(len(b.infos))}
	})
}

func (w *walletServer) GetTransactionInfoByBlockNum(_ context.Context, m *api.NumberMessage) (*api.TransactionInfoList, error) {
	return reading(w.node.chain, func() *api.TransactionInfoList { return w.node.chain.transactionInfos(m.Num, false) })
}

func (w *walletServer) GetTransactionById(_ context.Context, m *api.BytesMessage) (*core.Transaction, error) {
	return reading(w.node.chain, func() *core.Transaction { return w.node.chain.transaction(m.Value, false) })
}

func (w *walletServer) GetTransactionInfoById(_ context.Context, m *api.BytesMessage) (*core.TransactionInfo, error) {
	return reading(w.node.chain, func() *core.TransactionInfo { return w.node.chain.transactionInfo(m.Value, false) })
}

func (w *walletServer) GetTransactionFromPending(_ context.Context, m *api.BytesMessage) (*core.Transaction, error) {
	return reading(w.node.chain, func() *core.Transaction { return w.node.chain.pending(m.Value) })
}

func (w *walletServer) GetTransactionListFromPending(context.Context, *api.EmptyMessage) (*api.TransactionIdList, error) {
	return reading(w.node.chain, func() *api.TransactionIdList {
		out := &api.TransactionIdList{}
		for _, p := range w.node.chain.pool {
			out.TxId = append(out.TxId, p.id.String())
		}
		return out
	})
}

func (w *walletServer) GetPendingSize(context.Context, *api.EmptyMessage) (*api.NumberMessage, error) {
	return reading(w.node.chain, func() *api.NumberMessage { return &api.NumberMessage{Num: int64(len(w.node.chain.pool))} })
}

func (w *walletServer) GetAccount(_ context.Context, m *core.Account) (*core.Account, error) {
	return reading(w.node.chain, func() *core.Account { return w.node.chain.account(m.Address, false) })
}

func (w *walletServer) GetAccountResource(_ context.Context, m *core.Account) (*api.AccountResourceMessage, error) {
	return reading(w.node.chain, func() *api.AccountResourceMessage { return w.node.chain.accountResource(m.Address) })
}

func (w *walletServer) GetAccountNet(_ context.Context, m *core.Account) (*api.AccountNetMessage, error) {
	return reading(w.node.chain, func() *api.AccountNetMessage {
		r := w.node.chain.accountResource(m.Address)
		return &api.AccountNetMessage{
			FreeNetUsed: r.FreeNetUsed, FreeNetLimit: r.FreeNetLimit, NetUsed: r.NetUsed, NetLimit: r.NetLimit,
			TotalNetLimit: r.TotalNetLimit, TotalNetWeight: r.TotalNetWeight,
		}
	})
}

func (w *walletServer) GetDelegatedResourceV2(_ context.Context, m *api.DelegatedResourceMessage) (*api.DelegatedResourceList, error) {
	return reading(w.node.chain, func() *api.DelegatedResourceList { return w.node.chain.delegations(m.FromAddress, m.ToAddress) })
}

func (w *walletServer) GetCanDelegatedMaxSize(_ context.Context, m *api.CanDelegatedMaxSizeRequestMessage) (*api.CanDelegatedMaxSizeResponseMessage, error) {
	return reading(w.node.chain, func() *api.CanDelegatedMaxSizeResponseMessage {
		return &api.CanDelegatedMaxSizeResponseMessage{MaxSize: w.node.chain.delegable(m.OwnerAddress, core.ResourceCode(m.Type))}
	})
}

func (w *walletServer) GetContract(_ context.Context, m *api.BytesMessage) (*core.SmartContract, error) {
	return reading(w.node.chain, func() *core.SmartContract {
		if c := w.node.chain.contractInfo(m.Value).SmartContract; c != nil {
			return c
		}
		return &core.SmartContract{}
	})
}

func (w *walletServer) GetContractInfo(_ context.Context, m *api.BytesMessage) (*core.SmartContractDataWrapper, error) {
	return reading(w.node.chain, func() *core.SmartContractDataWrapper { return w.node.chain.contractInfo(m.Value) })
}

func price(sun int64) *api.PricesResponseMessage {
	return &api.PricesResponseMessage{Prices: fmt.Sprintf("0:%d", sun)}
}

func (w *walletServer) GetEnergyPrices(context.Context, *api.EmptyMessage) (*api.PricesResponseMessage, error) {
	return price(energyFee), nil
}

func (w *walletServer) GetBandwidthPrices(context.Context, *api.EmptyMessage) (*api.PricesResponseMessage, error) {
	return price(bandwidthFee), nil
}

func (w *walletServer) GetMemoFee(context.Context, *api.EmptyMessage) (*api.PricesResponseMessage, error) {
	return price(memoFee), nil
}

func (w *walletServer) GetChainParameters(context.Context, *api.EmptyMessage) (*core.ChainParameters, error) {
	return chainParameters(), nil
}

func (w *walletServer) GetNodeInfo(context.Context, *api.EmptyMessage) (*core.NodeInfo, error) {
	return reading(w.node.chain, func() *core.NodeInfo { return w.node.chain.nodeInfo() })
}

func (w *walletServer) ListNodes(context.Context, *api.EmptyMessage) (*api.NodeList, error) {
	return &api.NodeList{}, nil
}

func (w *walletServer) ListWitnesses(context.Context, *api.EmptyMessage) (*api.WitnessList, error) {
	return reading(w.node.chain, func() *api.WitnessList { return w.node.chain.witnessList() })
}

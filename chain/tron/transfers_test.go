package tron

import (
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/exchange/money"
)

// An unreadable event is reported, and the rest of its block is returned all the same.
func TestTransfersNameWhatTheyCannotRead(t *testing.T) {
	c := offline(t)
	id, _, tx := signedFixture(t, c)
	good := proto.CloneOf(tx)
	good.Ret = []*core.Transaction_Result{{ContractRet: core.Transaction_Result_SUCCESS}}
	odd := make([]byte, len(idBytes(t, id)))
	odd[0] = 1
	block := (&stub{}).headBlock(7)
	block.Transactions = []*api.TransactionExtention{{Transaction: good, Txid: odd}, {Transaction: good, Txid: idBytes(t, id)}}
	token := c.contracts[money.USDT]
	node := &stub{head: 9, block: block, infos: &api.TransactionInfoList{TransactionInfo: []*core.TransactionInfo{
		{Id: idBytes(t, id), BlockNumber: 7, Receipt: &core.ResourceReceipt{}},
		{Id: odd, BlockNumber: 7, Receipt: &core.ResourceReceipt{}, Log: []*core.TransactionInfo_Log{{
			Address: token[:], Topics: [][]byte{transferTopic(), make([]byte, 32), make([]byte, 32)}, Data: make([]byte, 31),
		}}},
	}}}
	got, err := stubbed(t, []*stub{node}, []*stub{node}).Transfers(t.Context(), 7)
	if err != nil || len(got.Movements) != 1 || len(got.Unreadable) != 1 || got.Unreadable[0].TxID[:2] != "01" || got.Unreadable[0].Detail == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

package soak

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	tron "github.com/fbsobreira/gotron-sdk/pkg/client"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"kivuko/dev/demo"
	"kivuko/exchange/money"
)

// Tools of others, by which owners send what they signed.

// sendsOnTron sends the owners' transaction with gotron.
func (o *office) sendsOnTron(ctx context.Context, y demo.Payload, signatures []string) error {
	raw, err := hex.DecodeString(y.RawData)
	if err != nil {
		return err
	}
	tx := &core.Transaction{RawData: &core.TransactionRaw{}}
	if err := proto.Unmarshal(raw, tx.RawData); err != nil {
		return err
	}
	for _, one := range signatures {
		signature, err := hex.DecodeString(one)
		if err != nil {
			return err
		}
		tx.Signature = append(tx.Signature, signature)
	}
	gotron := tron.NewGrpcClient(o.stack.Addresses.TronGRPC)
	if err := gotron.Start(grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return err
	}
	defer gotron.Stop()
	sent, err := gotron.BroadcastCtx(ctx, tx)
	if err == nil && !sent.GetResult() {
		err = fmt.Errorf("the node answered %s", sent.GetCode())
	}
	return err
}

const execTransaction = `[{"type":"function","name":"execTransaction","inputs":[{"name":"to","type":"address"},{"name":"value","type":"uint256"},{"name":"data","type":"bytes"},
	{"name":"operation","type":"uint8"},{"name":"safeTxGas","type":"uint256"},{"name":"baseGas","type":"uint256"},{"name":"gasPrice","type":"uint256"},{"name":"gasToken","type":"address"},
	{"name":"refundReceiver","type":"address"},{"name":"signatures","type":"bytes"}],"outputs":[{"type":"bool"}]}]`

// execution is the call by which a Safe carries out what its owners signed. It wants their signatures by the owners' addresses.
func execution(y demo.Payload, c club, signatures []string) ([]byte, error) {
	var typed apitypes.TypedData
	if err := json.Unmarshal(y.TypedData, &typed); err != nil {
		return nil, err
	}
	text := func(field string) string { return fmt.Sprint(typed.Message[field]) }
	data, err := hexutil.Decode(text("data"))
	if err != nil {
		return nil, err
	}
	owners := []demo.Owner{c.baraka, c.safe}
	byOwner := map[string]string{}
	for i, o := range owners {
		byOwner[o.Address] = signatures[i]
	}
	slices.SortFunc(owners, func(a, b demo.Owner) int {
		return bytes.Compare(common.HexToAddress(a.Address).Bytes(), common.HexToAddress(b.Address).Bytes())
	})
	var joined []byte
	for _, o := range owners {
		joined = append(joined, common.FromHex(byOwner[o.Address])...)
	}
	contract, err := abi.JSON(strings.NewReader(execTransaction))
	if err != nil {
		return nil, err
	}
	none := new(big.Int)
	return contract.Pack("execTransaction", common.HexToAddress(text("to")), none, data, uint8(0), none, none, none, common.Address{}, common.Address{}, joined)
}

// sendsOnEthereum has somebody with a new key send and pay for what the owners of a Safe signed.
func (o *office) sendsOnEthereum(ctx context.Context, d action, y demo.Payload, c club, signatures []string) error {
	call, err := execution(y, c, signatures)
	if err != nil {
		return err
	}
	payer, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	if err := d.node.Fund(ctx, crypto.PubkeyToAddress(payer.PublicKey).Hex(), money.Must(money.ETH, toolsOwnCoins)); err != nil {
		return err
	}
	node, err := ethclient.DialContext(ctx, "http://"+o.stack.Addresses.EthereumRPC)
	if err != nil {
		return err
	}
	defer node.Close()
	return sends(ctx, node, payer, common.HexToAddress(c.Address), call)
}

func sends(ctx context.Context, node *ethclient.Client, payer *ecdsa.PrivateKey, to common.Address, call []byte) error {
	const gas, bid = 500_000, 2
	id, err := node.ChainID(ctx)
	if err != nil {
		return err
	}
	price, err := node.SuggestGasPrice(ctx)
	if err != nil {
		return err
	}
	price.Mul(price, big.NewInt(bid))
	tx, err := types.SignNewTx(payer, types.LatestSignerForChainID(id), &types.LegacyTx{GasPrice: price, Gas: gas, To: &to, Data: call})
	if err != nil {
		return err
	}
	return node.SendTransaction(ctx, tx)
}

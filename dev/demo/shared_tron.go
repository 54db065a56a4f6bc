package demo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"
	tool "github.com/fbsobreira/gotron-sdk/pkg/client"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"kivuko/exchange"
)

// made has another tool, gotron, make an account of three owners on TRON, with money in it. It returns the account and its owners.
func (o opening) made(ctx context.Context) (string, []map[string]any, error) {
	account, err := OutsideOwner(exchange.Tron, "account")
	if err != nil {
		return "", nil, err
	}
	keys, owners := map[string]int64{}, []map[string]any{}
	for _, name := range []string{BarakasKey, NjerisKey, SafeKey} {
		own, err := OutsideOwner(exchange.Tron, name)
		if err != nil {
			return "", nil, err
		}
		keys[own.Address] = 1
		owners = append(owners, map[string]any{"address": own.Address, "label": name})
	}
	gotron := tool.NewGrpcClient(o.TronGRPC)
	if err := gotron.Start(grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return "", nil, err
	}
	defer gotron.Stop()
	if known, err := gotron.GetAccountCtx(ctx, account.Address); err == nil && len(known.GetOwnerPermission().GetKeys()) > 1 {
		return account.Address, owners, nil // by an earlier run that did not get further
	}
	for _, m := range needs(exchange.Tron) {
		if err := o.node.Fund(ctx, account.Address, m.brings); err != nil {
			return "", nil, err
		}
	}
	if err := shareOnTron(ctx, gotron, account, keys); err != nil {
		return "", nil, fmt.Errorf("making %s an account of several owners: %w", account.Address, err)
	}
	o.say("Baraka makes %s an account of three owners with another tool, gotron", account.Address)
	return account.Address, owners, nil
}

// shareOnTron gives an account other owners. Its own key can do nothing any more then.
func shareOnTron(ctx context.Context, gotron *tool.GrpcClient, account Owner, keys map[string]int64) error {
	permission := func() map[string]any { return map[string]any{"threshold": int64(signing), "keys": keys} }
	payments := permission()
	payments["name"], payments["operations"] = "payments", map[string]bool{
		core.Transaction_Contract_TransferContract.String(): true, core.Transaction_Contract_TriggerSmartContract.String(): true,
	}
	built, err := gotron.UpdateAccountPermissionCtx(ctx, account.Address, permission(), nil, []map[string]any{payments})
	if err != nil {
		return err
	}
	raw, err := proto.Marshal(built.GetTransaction().GetRawData())
	if err != nil {
		return err
	}
	key, err := crypto.ToECDSA(account.seed[:])
	if err != nil {
		return err
	}
	digest := sha256.Sum256(raw)
	signature, err := crypto.Sign(digest[:], key)
	if err != nil {
		return err
	}
	built.Transaction.Signature = [][]byte{signature}
	if sent, err := gotron.BroadcastCtx(ctx, built.GetTransaction()); err != nil || !sent.GetResult() {
		return errors.Join(err, fmt.Errorf("the node answered %s", sent.GetMessage()))
	}
	for { // a node reads permissions from its newest block
		now, err := gotron.GetAccountCtx(ctx, account.Address)
		if err == nil && len(now.GetOwnerPermission().GetKeys()) == len(keys) {
			return nil
		}
		if pause(ctx) != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

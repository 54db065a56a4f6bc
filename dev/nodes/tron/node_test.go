package tron

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/client"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	trx     = sunPerTRX
	feeCap  = 100 * trx
	someTRX = 1000 * trx
)

// bench is a node of a test's own and the ways to reach it.
type bench struct {
	*Node
	t      *testing.T
	sdk    *client.GrpcClient
	wallet api.WalletClient
	solid  api.WalletSolidityClient
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newBench starts a node in memory that makes blocks when told to.
func newBench(t *testing.T) *bench { return startBench(t, Config{}) }

func startBench(t *testing.T, cfg Config) *bench {
	t.Helper()
	cfg.Log = quiet()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	b := &bench{Node: n, t: t, sdk: client.NewGrpcClient(n.GRPCAddr())}
	if err := b.sdk.Start(grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.sdk.Stop)
	b.wallet = b.sdk.Client
	conn, err := grpc.NewClient(n.SolidityAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	b.solid = api.NewWalletSolidityClient(conn)
	return b
}

// actor is a key and its address.
type actor struct {
	key  *ecdsa.PrivateKey
	addr Address
}

func newActor(name string) actor {
	h := sha256.Sum256([]byte("actor " + name))
	key, err := crypto.ToECDSA(h[:])
	if err != nil {
		panic(err)
	}
	return actor{key, AddressOfKey(key)}
}

func (a actor) String() string { return a.addr.String() }

// funded returns actors with someTRX each, and with USDT when units is not zero.
func (b *bench) funded(units int64, names ...string) []actor {
	b.t.Helper()
	var out []actor
	for _, name := range names {
		a := newActor(name)
		b.must(b.FundTRX(a.addr, someTRX))
		if units > 0 {
			b.must(b.FundToken(mustAddress(USDTAddress), a.addr, big.NewInt(units)))
		}
		out = append(out, a)
	}
	b.block()
	return out
}

func (b *bench) must(id Hash, err error) Hash {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) block() Block {
	b.t.Helper()
	out, err := b.ProduceBlock()
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// built fails the test when the node did not build the transaction.
func (b *bench) built(x *api.TransactionExtention, err error) *core.Transaction {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	if x.GetResult().GetCode() != api.Return_SUCCESS || x.Transaction == nil {
		b.t.Fatalf("build: %s %s", x.Result.Code, x.Result.Message)
	}
	return x.Transaction
}

// signed appends the actors' signatures.
func (b *bench) signed(tx *core.Transaction, by ...actor) *core.Transaction {
	b.t.Helper()
	for _, a := range by {
		if err := Sign(tx, a.key); err != nil {
			b.t.Fatal(err)
		}
	}
	return tx
}

func (b *bench) broadcastRaw(tx *core.Transaction) *api.Return {
	b.t.Helper()
	r, err := b.wallet.BroadcastTransaction(context.Background(), tx)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// send signs, broadcasts and expects acceptance.
func (b *bench) send(tx *core.Transaction, by ...actor) Hash {
	b.t.Helper()
	r := b.broadcastRaw(b.signed(tx, by...))
	if !r.Result {
		b.t.Fatalf("broadcast: %s %s", r.Code, r.Message)
	}
	return TransactionID(tx)
}

// refused signs, broadcasts and expects a refusal with the code and text.
func (b *bench) refused(tx *core.Transaction, code api.ReturnResponseCode, text string, by ...actor) {
	b.t.Helper()
	r := b.broadcastRaw(b.signed(tx, by...))
	if r.Result || r.Code != code || !bytes.Contains(r.Message, []byte(text)) {
		b.t.Fatalf("broadcast answered result=%v %s %q, want %s with %q", r.Result, r.Code, r.Message, code, text)
	}
}

// mined sends, makes a block and returns the receipt.
func (b *bench) mined(tx *core.Transaction, by ...actor) *core.TransactionInfo {
	b.t.Helper()
	id := b.send(tx, by...)
	b.block()
	return b.receipt(id)
}

func (b *bench) receipt(id Hash) *core.TransactionInfo {
	b.t.Helper()
	info := b.lookup(id)
	if len(info.Id) == 0 {
		b.t.Fatalf("transaction %s is not in a block", id)
	}
	return info
}

func (b *bench) lookup(id Hash) *core.TransactionInfo {
	b.t.Helper()
	info, err := b.wallet.GetTransactionInfoById(context.Background(), &api.BytesMessage{Value: id[:]})
	if err != nil {
		b.t.Fatal(err)
	}
	return info
}

func (b *bench) transferTRX(from, to actor, sun int64) *core.Transaction {
	b.t.Helper()
	return b.built(b.wallet.CreateTransaction2(context.Background(),
		&core.TransferContract{OwnerAddress: from.addr[:], ToAddress: to.addr[:], Amount: sun}))
}

// calldata packs a selector and 32-byte words.
func calldata(signature string, words ...[]byte) []byte {
	out := bytes.Clone(crypto.Keccak256([]byte(signature))[:4])
	for _, w := range words {
		out = append(append(out, make([]byte, 32-len(w))...), w...)
	}
	return out
}

func addressWord(a Address) []byte { return a[1:] }
func number(n int64) []byte        { return big.NewInt(n).Bytes() }

func (b *bench) trigger(from actor, contract string, data []byte) *core.Transaction {
	b.t.Helper()
	at := mustAddress(contract)
	tx := b.built(b.wallet.TriggerContract(context.Background(),
		&core.TriggerSmartContract{OwnerAddress: from.addr[:], ContractAddress: at[:], Data: data}))
	tx.RawData.FeeLimit = feeCap
	return tx
}

func (b *bench) transferToken(from, to actor, token string, units int64) *core.Transaction {
	b.t.Helper()
	return b.trigger(from, token, calldata("transfer(address,uint256)", addressWord(to.addr), number(units)))
}

// constant runs a read-only call and returns the answer as java-tron words it.
func (b *bench) constant(from actor, contract string, data []byte) *api.TransactionExtention {
	b.t.Helper()
	at := mustAddress(contract)
	x, err := b.wallet.TriggerConstantContract(context.Background(),
		&core.TriggerSmartContract{OwnerAddress: from.addr[:], ContractAddress: at[:], Data: data})
	if err != nil {
		b.t.Fatal(err)
	}
	return x
}

func (b *bench) tokenBalance(token string, of Address) int64 {
	b.t.Helper()
	x := b.constant(newActor("reader"), token, calldata("balanceOf(address)", addressWord(of)))
	if len(x.ConstantResult) != 1 || len(x.ConstantResult[0]) != 32 {
		b.t.Fatalf("balanceOf: %s %q", x.Result.Code, x.Result.Message)
	}
	return new(big.Int).SetBytes(x.ConstantResult[0]).Int64()
}

func (b *bench) balance(of Address) int64 {
	b.t.Helper()
	x, err := b.wallet.GetAccount(context.Background(), &core.Account{Address: of[:]})
	if err != nil {
		b.t.Fatal(err)
	}
	return x.Balance
}

// genesis is the actor that owns the tokens.
func genesisActor() actor {
	key := mustKey(GenesisKey)
	return actor{key, AddressOfKey(key)}
}

func TestGenesisIsFixed(t *testing.T) {
	if got := GenesisKey; got != fmt.Sprintf("%x", sha256.Sum256([]byte(genesisKeySeed))) {
		t.Errorf("GenesisKey is not the hash of its seed: %s", got)
	}
	for _, c := range []struct{ name, want, got string }{
		{"GenesisAddress", GenesisAddress, AddressOfKey(mustKey(GenesisKey)).String()},
		{"USDTAddress", USDTAddress, tokenAddress("USDT").String()},
		{"USDCAddress", USDCAddress, tokenAddress("USDC").String()},
	} {
		if c.want != c.got {
			t.Errorf("%s = %s, derived %s", c.name, c.want, c.got)
		}
	}
	b := newBench(t)
	for _, token := range []string{USDTAddress, USDCAddress} {
		if got := b.tokenBalance(token, mustAddress(GenesisAddress)); got != genesisTokens {
			t.Errorf("genesis holds %d units of %s, want %d", got, token, int64(genesisTokens))
		}
	}
	if id := b.ChainID(); id == 728126428 || id == 2494104990 || id == 3448148188 || id == 0 {
		t.Errorf("chain id %d is a public network's", id)
	}
}

// The main network's USDT costs 14,610 energy to a holder and 29,610 to an
// address that never held it, before the dynamic factor (published 64,285 and
// 130,285 divided by 4.4).
func TestUSDTTransferEnergyIsNearTheMainNetworks(t *testing.T) {
	b := newBench(t)
	ab := b.funded(50_000_000, "alice")
	alice, bob := ab[0], newActor("bob")
	for _, c := range []struct {
		name string
		want int64
	}{{"cold recipient", 29_610}, {"hot recipient", 14_610}} {
		r := b.mined(b.transferToken(alice, bob, USDTAddress, 1_000_000), alice).Receipt
		got := r.EnergyUsageTotal
		if bytes := max(r.NetUsage, r.NetFee/bandwidthFee); bytes < 340 || bytes > 350 {
			t.Errorf("%s: %d bytes of bandwidth, the main network takes 345 to 350", c.name, bytes)
		}
		if got < c.want*98/100 || got > c.want*102/100 {
			t.Errorf("%s: %d energy, want %d within 2 %%", c.name, got, c.want)
		}
	}
	if err := b.SetEnergyFactor(mustAddress(USDTAddress), 34_000); err != nil {
		t.Fatal(err)
	}
	info := b.mined(b.transferToken(alice, bob, USDTAddress, 1_000_000), alice)
	if got := info.Receipt.EnergyUsageTotal; got < 64_285*98/100 || got > 64_285*102/100 {
		t.Errorf("with the factor 4.4: %d energy, want 64285 within 2 %%", got)
	}
	if info.Receipt.EnergyPenaltyTotal == 0 {
		t.Error("the receipt does not show the penalty")
	}
}

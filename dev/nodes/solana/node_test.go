package solana

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"log/slog"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
)

const sol = solana.LAMPORTS_PER_SOL

// bench is a node of a test's own and the ways to reach it.
type bench struct {
	*Node
	t      *testing.T
	client *rpc.Client
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
	return &bench{Node: n, t: t, client: rpc.New("http://" + n.RPCAddr())}
}

func newActor(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte("actor " + name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

// alice is an actor with 100 SOL in the newest block.
func (b *bench) alice() solana.PrivateKey {
	b.t.Helper()
	a := newActor("alice")
	if _, err := b.FundSOL(a.PublicKey(), 100*sol); err != nil {
		b.t.Fatal(err)
	}
	b.block()
	return a
}

func (b *bench) block() Block { return b.blocks(1) }

func (b *bench) blocks(n int) Block {
	b.t.Helper()
	out, err := b.ProduceBlocks(n)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) finalise() {
	b.t.Helper()
	if _, err := b.Finalise(); err != nil {
		b.t.Fatal(err)
	}
}

// latest is the newest block hash.
func (b *bench) latest() solana.Hash { return b.Head().Hash }

// signed makes a transaction that the first key pays for.
func (b *bench) signed(on solana.Hash, steps []solana.Instruction, keys ...solana.PrivateKey) *solana.Transaction {
	b.t.Helper()
	tx, err := solana.NewTransaction(steps, on, solana.TransactionPayer(keys[0].PublicKey()))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := tx.Sign(func(key solana.PublicKey) *solana.PrivateKey {
		for _, k := range keys {
			if k.PublicKey() == key {
				return &k
			}
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return tx
}

// pay is a transfer of lamports on the newest block hash.
func (b *bench) pay(from, to solana.PrivateKey, lamports uint64) *solana.Transaction {
	b.t.Helper()
	return b.signed(b.latest(), []solana.Instruction{
		system.NewTransferInstruction(lamports, from.PublicKey(), to.PublicKey()).Build(),
	}, from)
}

// offer sends with a preflight against the newest block.
func (b *bench) offer(tx *solana.Transaction) (solana.Signature, error) {
	return b.client.SendTransactionWithOpts(context.Background(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed})
}

func (b *bench) send(tx *solana.Transaction) solana.Signature {
	b.t.Helper()
	signature, err := b.offer(tx)
	if err != nil {
		b.t.Fatal(err)
	}
	return signature
}

// lamports is a balance at a commitment.
func (b *bench) lamports(of solana.PrivateKey, c rpc.CommitmentType) uint64 {
	b.t.Helper()
	out, err := b.client.GetBalance(context.Background(), of.PublicKey(), c)
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Value
}

// status is what getSignatureStatuses says, nil for nothing.
func (b *bench) status(signature solana.Signature) *rpc.SignatureStatusesResult {
	b.t.Helper()
	out, err := b.client.GetSignatureStatuses(context.Background(), true, signature)
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Value[0]
}

// refused checks the code of an error of the RPC and returns it.
func refused(t *testing.T, err error, code int) *jsonrpc.RPCError {
	t.Helper()
	var refusal *jsonrpc.RPCError
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Fatalf("got %v, want a refusal with code %d", err, code)
	}
	return refusal
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"public address":      {RPCAddr: "0.0.0.0:8899"},
		"no port":             {ControlAddr: "localhost"},
		"interval":            {SlotInterval: 1},
		"depth":               {FinalDepth: -1},
		"confirmed too late":  {ConfirmDepth: 10, FinalDepth: 5},
		"every slot skipped":  {SkipEvery: 1},
		"websocket's address": {WSAddr: "1.2.3.4:1"},
	} {
		cfg.Log = quiet()
		if n, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
			_ = n.Close()
		}
	}
}

func TestAddressesFollowFromTheKeys(t *testing.T) {
	for name, want := range map[string]string{
		"genesis": GenesisAddress, "usdt mint": USDTAddress, "usdc mint": USDCAddress, "fee mint": FeeMintAddress, "memo owner": MemoOwnerAddress,
	} {
		if got := developmentKey(name).PublicKey().String(); got != want {
			t.Errorf("%s: %s, the constant is %s", name, got, want)
		}
	}
}
